"""Choosing the number of mixture components by BIC, held-out likelihood and minimum message length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Rows, n_rows
from likely.core.blocks import Blocks
from likely.core.em_loop import mean_log_prob
from likely.core.errors import DomainError, LikelyError, sentence
from likely.core.row_hashes import row_hashes
from likely.core.warnings import warnings_discarded
from likely.estimation.scikit_learn import clone
from likely.metrics.confidence_intervals import errors_to_best, largest, simplest_within_error
from likely.mixture.mixture import Mixture
from likely.mixture.priors import MixturePrior
from likely.mixture.sparse_weights import Price

FOLDS = 5
CRITERIA = ("bic", "held-out", "prior")
NAMES = {"bic": "BIC", "held-out": "held-out", "prior": "the sparse prior"}
HUGE = 1e8  # from here on numbers are printed in scientific notation
PATIENT: dict[str, Any] = {"tol": 1e-5, "max_iter": 1000}  # superfluous components lose their weight slowly


@dataclass(frozen=True, eq=False)
class ComponentChoice:
    """Criteria for each number of components, and the number that each criterion chooses.

    The result of `choose_components`; it prints as a table.

    Parameters
    ----------
    numbers : list of int
        Numbers of components (m of them).
    bic : ndarray (m,)
        BIC = −2 log-likelihood + parameters · log n; smaller is better.
    held_out : ndarray (m,)
        Mean log-likelihood of held-out rows, in nats per row; larger is better.
    held_out_error : ndarray (m,)
        Standard error of its difference to the best.
    message_length : ndarray (m,)
        Message length in nats; NaN where no fit with the sparse prior had this number.
    n_components_mml : int, optional
        Number of components of minimum message length.
    best : dict
        Chosen number by criterion: "bic", "held-out" and "prior".
    converged : dict
        Whether the fits converged, by criterion: of each number (m,), or of all fits at once.
    distinct : int, optional
        Number of distinct rows, where larger numbers were requested and skipped.

    See Also
    --------
    choose_components : Computes it.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1.0, (50, 2)) for m in (-4.0, 4.0)])
    >>> choice = lk.choose_components(lk.MixtureDensity(random_state=0), X, [1, 2, 3], criteria=["bic"])
    >>> choice.numbers, choice.best, choice.bic.argmin()
    ([1, 2, 3], {'bic': 2}, np.int64(1))
    """

    numbers: list[int]
    bic: Array  # (m,): −2 log-likelihood + parameters · log rows; the least is best
    held_out: Array  # (m,): mean log-likelihood of held-out rows, nats per row; the largest is best
    held_out_error: Array  # (m,): standard error of its difference to the best
    message_length: Array  # (m,): message length in nats; NaN where no fit with the sparse prior had this number
    n_components_mml: int | None = None  # number of components of minimum message length
    best: dict[str, int] = field(default_factory=dict)
    converged: dict[str, Any] = field(default_factory=dict)  # by criterion: of each number (m,), or of all fits at once
    distinct: int | None = None  # distinct rows, where larger numbers were requested and skipped

    def __str__(self) -> str:
        lines = [f"{'components':>10} {'BIC':>12} {'held-out, nats per row':>22} {'message':>12}"]
        return "\n".join([*lines, *map(self._line, range(len(self.numbers))), *self._remarks()])

    def _line(self, i: int) -> str:
        cell = f"{_formatted(self.held_out[i], 4)} ± {_formatted(self.held_out_error[i], 4)}"
        cell = cell if np.isfinite(self.held_out[i]) else "–"
        cells = f"{_formatted(self.bic[i], 1):>12} {cell:>22} {_formatted(self.message_length[i], 1):>12}"
        return f"{self.numbers[i]:>10} {cells}  {', '.join(self._marks(i))}".rstrip()

    def _marks(self, i: int) -> Iterator[str]:
        chosen = [NAMES[criterion] for criterion in CRITERIA if self.best.get(criterion) == self.numbers[i]]
        if chosen:
            yield f"chosen by {', '.join(chosen)}"
        if "held-out" in self.best and i == largest(self.held_out) and self.best["held-out"] != self.numbers[i]:
            yield "largest held-out"

    def _remarks(self) -> Iterator[str]:
        if np.isfinite(self.held_out_error).any():
            yield "± is the standard error of the difference to the largest held-out;"
            yield "the smallest number within that distance is chosen"
        elif "held-out" in self.best:
            yield "held-out: no rows could be held out and scored"
        if self.n_components_mml is not None:
            left = f"{self.n_components_mml} of {max(self.numbers)} components"
            yield f"a sparse prior leaves {left}: minimum message length"
        if self.distinct is not None:
            yield f"larger numbers were skipped; distinct rows: {self.distinct}"
        unconverged = [names for criterion in CRITERIA if (names := self._unconverged(criterion))]
        if unconverged:
            yield f"NOT converged: {'; '.join(unconverged)}: allow more refits (max_iter)"

    def _unconverged(self, criterion: str) -> str:
        """The numbers whose fits reached max_iter."""
        converged = np.asarray(self.converged.get(criterion, True))
        if converged.all() or not converged.ndim:
            return "" if converged.all() else NAMES[criterion]
        failed = [str(k) for k, ok in zip(self.numbers, converged, strict=True) if not ok]
        return f"{NAMES[criterion]} of {', '.join(failed)}"


def _formatted(value: float, digits: int) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.{digits}f}" if abs(value) < HUGE else f"{value:.4g}"


def choose_components(
    estimator: Any, X: Rows, numbers: Iterable[int] = range(1, 11), *, sample_weight: ArrayLike | None = None,
    criteria: Iterable[str] = CRITERIA,
) -> ComponentChoice:  # fmt: skip
    """Compare numbers of components of a mixture density.

    Numbers beyond that of the distinct rows are skipped. The criteria are:

    - "bic": Bayesian information criterion of a fit to all rows; components without weight are not counted.
    - "held-out": five-fold cross-validated log-likelihood, folds assigned by row contents; the smallest number
      within one standard error of the best is chosen.
    - "prior": the largest number is fitted with a sparse prior that removes components not worth their
      parameters; then the smallest remaining one is removed and EM continues, down to the smallest number
      (Figueiredo and Jain 2002). The minimum message length wins; its number need not be in `numbers`.

    Parameters
    ----------
    estimator : MixtureDensity
        The estimator; its `n_components` is not used.
    X : array-like (n, d)
        Rows; NaN is a missing value.
    numbers : iterable of int, default range(1, 11)
        Numbers of components.
    sample_weight : array-like (n,), optional
        Weight per row.
    criteria : iterable of {"bic", "held-out", "prior"}
        The criteria; all by default.

    Returns
    -------
    ComponentChoice
        The criteria per number; `best` says what each selects.

    See Also
    --------
    MixtureDensity : The estimator.
    choose_k : The same for k-means.

    References
    ----------
    Bishop (2006), chapter 9; Figueiredo and Jain (2002).

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (50, 2)) for m in (-4.0, 4.0)])
    >>> choose_components(lk.MixtureDensity(random_state=0), X, range(1, 3)).best
    {'bic': 2, 'held-out': 2, 'prior': 2}
    """
    requested, criteria = _checked(numbers, criteria)
    X, weight = _rows(estimator, X, sample_weight)
    folds, distinct = _assign_folds(estimator, X)
    available = [k for k in requested if k <= distinct] or [distinct]
    found = _Curves(available)
    with warnings_discarded():  # warnings of single candidates are not shown
        by_held_out = partial(_by_held_out, folds=folds)
        for criterion, compute in (("bic", _by_bic), ("held-out", by_held_out), ("prior", _by_prior)):
            if criterion in criteria:
                compute(found, estimator, X, weight)
    return found.choice(distinct if requested[-1] > distinct else None)


class _Curves:
    """Criteria computed so far."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, unknown = numbers, np.full(len(numbers), np.nan)
        self.bic, self.held_out, self.held_out_error, self.message_length = unknown, unknown, unknown, unknown
        self.best: dict[str, int] = {}
        self.converged: dict[str, Any] = {}

    def choice(self, distinct: int | None) -> ComponentChoice:
        return ComponentChoice(
            self.numbers, self.bic, self.held_out, self.held_out_error, self.message_length, self.best.get("prior"),
            self.best, self.converged, distinct,
        )  # fmt: skip


def _checked(numbers: Iterable[int], criteria: Iterable[str]) -> tuple[list[int], tuple[str, ...]]:
    numbers, criteria = sorted({int(k) for k in numbers}), tuple(criteria)
    if not numbers or numbers[0] < 1:
        raise DomainError(sentence("choose_components", "numbers must be whole and at least 1", numbers))
    unknown = [criterion for criterion in criteria if criterion not in CRITERIA]
    if unknown or not criteria:
        raise DomainError(
            sentence("choose_components", f"criteria must be among {', '.join(CRITERIA)}", unknown or "nothing")
        )
    return numbers, criteria


def _rows(estimator: Any, X: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Validated rows, so that subsets of them pass validation again."""
    probe = clone(estimator)
    probe._validate_params()
    checked, weight = probe.checked_rows(X, sample_weight, reset=True)
    probe._refuse_emptiness(checked)
    return (X, sample_weight) if n_rows(checked) == n_rows(X) else (checked, weight)


def _assign_folds(estimator: Any, X: Any) -> tuple[Index, int]:
    """The fold of each row (n,), and the number of distinct rows."""
    distinct, which = np.unique(row_hashes(clone(estimator).validate_rows(X, reset=True)), return_inverse=True)
    return which % FOLDS, len(distinct)  # hashes do not depend on row order, and copies stay together


def _fitted(estimator: Any, X: Any, weight: Any, k: int, **more: Any) -> Any:
    return clone(estimator).set_params(n_components=k, **more).fit(X, sample_weight=weight)


def _has_converged(fitted: Any) -> bool:
    return bool(fitted.report_.converged or fitted.report_.stopped_early)


def _log_likelihood(model: Any, rows: Any, weight: Any) -> float:
    each = model.log_prob(rows)
    return float(each.sum() if weight is None else each @ np.asarray(weight))


# ------------------------------------------------------------------------------- BIC


def _by_bic(found: _Curves, estimator: Any, X: Any, weight: Any) -> None:
    fits = [_fitted(estimator, X, weight, k) for k in found.numbers]
    found.bic = np.array([_bic(fitted, X, weight) for fitted in fits])
    found.best["bic"] = found.numbers[int(np.nanargmin(found.bic))]
    found.converged["bic"] = np.array([_has_converged(fitted) for fitted in fits])


def _bic(fitted: Any, X: Any, weight: Any) -> float:
    n = float(fitted.stats_.total_weight)
    total = _log_likelihood(fitted.model_, fitted.validate_rows(X, reset=False), weight)
    return -2 * total + float(fitted.model_.pruned().n_parameters * np.log(max(n, 1.0)))


# ------------------------------------------------------------------------ held-out rows


def _by_held_out(found: _Curves, estimator: Any, X: Any, weight: Any, folds: Index) -> None:
    """Mean log-likelihood of each fold under models of the others; −inf where one could not be learned."""
    n_folds = int(folds.max()) + 1
    scores, converged = (
        np.full((n_folds, len(found.numbers)), np.nan),
        np.ones((n_folds, len(found.numbers)), dtype=bool),
    )
    for f in range(n_folds if n_folds > 1 else 0):
        here, rest = np.flatnonzero(folds == f), np.flatnonzero(folds != f)
        w = (None, None) if weight is None else (np.asarray(weight)[here], np.asarray(weight)[rest])
        for i, k in enumerate(found.numbers):
            scores[f, i], converged[f, i] = _score(estimator, X, (here, rest), w, k)
    error = errors_to_best(scores.T)
    found.held_out = scores.mean(axis=0)
    found.held_out_error = np.full(len(found.numbers), np.nan) if error is None else error
    found.best["held-out"] = found.numbers[simplest_within_error(found.held_out, error)]
    found.converged["held-out"] = converged.all(axis=0)


def _score(estimator: Any, X: Any, at: Any, w: Any, k: int) -> tuple[float, bool]:
    try:
        fitted = _fitted(estimator, _taken(X, at[1]), w[1], k)
        rows = fitted.validate_rows(_taken(X, at[0]))
        rows = fitted.mask_unknown(rows, fitted.learned_model_)[0]  # unseen levels
        return mean_log_prob(fitted.model_, Blocks.of(rows, w[0])), _has_converged(fitted)
    except LikelyError:
        return -np.inf, True


def _taken(X: Any, at: Any) -> Any:
    return X.iloc[at] if hasattr(X, "iloc") else X[at] if hasattr(X, "shape") else [X[i] for i in at]


# ------------------------------------------------------------------------- a sparse prior


def _by_prior(found: _Curves, estimator: Any, X: Any, weight: Any) -> None:
    lengths, converged = _message_lengths(estimator, X, weight, found.numbers[0], found.numbers[-1])
    found.message_length = np.array([lengths.get(k, np.nan) for k in found.numbers])
    found.best["prior"] = min(sorted(lengths), key=lambda k: lengths[k])
    found.converged["prior"] = converged


def _message_lengths(estimator: Any, X: Any, weight: Any, least: int, largest: int) -> tuple[dict[int, float], bool]:
    """Message lengths from the largest number of components down, and whether all fits converged.

    Each fit continues from the one before, so that the random initialization is made once.
    """
    patient = clone(estimator).set_params(early_stopping=None, **_patience(estimator))
    price, rows, total = _price(patient, X, weight, largest)
    lengths: dict[int, float] = {}
    converged, size, start = True, largest, estimator.init
    while True:
        prior = _over_parts(estimator.prior, price.prior(size, total))
        fitted = _fitted(patient, X, weight, size, init=start, prior=prior)
        left = fitted.learned_model_.pruned()
        lengths[left.size] = price.message_length(left.weights, total, _log_likelihood(left, rows, weight))
        converged &= _has_converged(fitted)
        if left.size <= least:
            return lengths, converged
        start, size = _without_weakest(left), left.size - 1


def _patience(estimator: Any) -> dict[str, Any]:
    return {name: max(getattr(estimator, name), value) for name, value in PATIENT.items()}


def _price(estimator: Any, X: Any, weight: Any, size: int) -> tuple[Price, Any, float]:
    """Parameter counts of the components, the rows as components take them, and their weight."""
    probe = clone(estimator).set_params(n_components=size)
    rows = probe.validate_rows(X, reset=True)
    total = float(n_rows(rows) if weight is None else np.sum(weight))
    return Price.of(probe.blank_model(rows, None, weight).components), rows, total


def _over_parts(given: Any, sparse: Any) -> Any:
    """A sparse prior of the weights together with the given prior of the components."""
    return (
        MixturePrior.trusted(weights=sparse, components=given.components) if isinstance(given, MixturePrior) else sparse
    )


def _without_weakest(model: Mixture) -> Mixture:
    rest = np.delete(np.arange(model.size), model.weights.argmin())
    weights = model.weights[rest]
    return Mixture.trusted(weights=weights / weights.sum(), components=model.components.take(rest))

"""How many components: three answers side by side, so that nobody has to trust one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.core.arrays import Array, Index, n_rows
from likely.core.blocks import Blocks
from likely.core.errors import DomainError, LikelyError, sentence
from likely.core.fit_loop import mean_log_prob
from likely.core.row_hashes import row_hashes
from likely.core.warnings import unheard
from likely.mixture.mixture import Mixture
from likely.mixture.priors import MixturePrior
from likely.mixture.sparse_weights import Price

FOLDS = 5
WAYS = ("bic", "held-out", "prior")
NAMES = {"bic": "BIC", "held-out": "held-out", "prior": "the sparse prior"}
HUGE = 1e8  # from which on a number is told by its order
PATIENT: dict[str, Any] = {"tol": 1e-5, "max_iter": 1000}  # parts that do not pay for themselves go slowly


@dataclass(frozen=True, eq=False)
class ComponentChoice:
    """What each number of components is worth, and which each way of looking would choose."""

    numbers: list[int]
    bic: Array  # (m,): −2 log-likelihood + parameters · log rows; the least is best
    held_out: Array  # (m,): mean log-likelihood of rows left out, nats a row; the largest is best
    held_out_error: Array  # (m,): standard error of its difference to the best
    message: Array  # (m,): message length in nats where a sparse prior came by, NaN elsewhere; the least is best
    emptied: int | None = None  # components of the shortest message, of the largest number
    best: dict[str, int] = field(default_factory=dict)
    converged: dict[str, Any] = field(default_factory=dict)  # by way: of each number (m,), or of all fits at once
    distinct: int | None = None  # distinct rows, where larger numbers were asked for and left out

    def __str__(self) -> str:
        lines = [f"{'components':>10} {'BIC':>12} {'held-out, nats per row':>22} {'message':>12}"]
        return "\n".join([*lines, *map(self._line, range(len(self.numbers))), *self._remarks()])

    def _line(self, i: int) -> str:
        held = f"{_told(self.held_out[i], 4)} ± {_told(self.held_out_error[i], 4)}"
        held = held if np.isfinite(self.held_out[i]) else "–"
        cells = f"{_told(self.bic[i], 1):>12} {held:>22} {_told(self.message[i], 1):>12}"
        return f"{self.numbers[i]:>10} {cells}  {', '.join(self._marks(i))}".rstrip()

    def _marks(self, i: int) -> Iterator[str]:
        chosen = [NAMES[way] for way in WAYS if self.best.get(way) == self.numbers[i]]
        if chosen:
            yield f"chosen by {', '.join(chosen)}"
        if "held-out" in self.best and i == _largest(self.held_out) and self.best["held-out"] != self.numbers[i]:
            yield "largest held-out"

    def _remarks(self) -> Iterator[str]:
        if np.isfinite(self.held_out_error).any():
            yield "± is the standard error of the difference to the largest held-out;"
            yield "the smallest number that is no further below it than that is chosen"
        elif "held-out" in self.best:
            yield "held-out: no rows could be left out and scored"
        if self.emptied is not None:
            yield f"a sparse prior leaves {self.emptied} of {max(self.numbers)} components: the shortest message"
        if self.distinct is not None:
            yield f"larger numbers were left out; distinct rows: {self.distinct}"
        unsettled = [told for way in WAYS if (told := self._unsettled(way))]
        if unsettled:
            yield f"NOT converged: {'; '.join(unsettled)}: allow more refits (max_iter)"

    def _unsettled(self, way: str) -> str:
        """The numbers whose fits ran out of refits."""
        settled = np.asarray(self.converged.get(way, True))
        if settled.all() or not settled.ndim:
            return "" if settled.all() else NAMES[way]
        return f"{NAMES[way]} of {', '.join(str(k) for k, ok in zip(self.numbers, settled, strict=True) if not ok)}"


def _told(value: float, digits: int) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.{digits}f}" if abs(value) < HUGE else f"{value:.4g}"


def choose_components(
    estimator: Any, X: Any, numbers: Iterable[int] = range(1, 11), *, sample_weight: Any = None,
    by: Iterable[str] = WAYS,
) -> ComponentChoice:  # fmt: skip
    """Compare numbers of components of a `MixtureDensity` on rows X; there are never more than distinct rows.

    - **"bic"**: Schwarz's criterion, after a fit to all rows; components without weight are not counted.
    - **"held-out"**: log-likelihood of rows left out, five folds dealt by what rows hold; the smallest number within
      one standard error of the best is chosen.
    - **"prior"**: the largest number is fitted with a prior that empties components which do not pay for their
      parameters; then the weakest of the rest is taken away and learning goes on, down to the smallest number
      (Figueiredo and Jain 2002). The shortest message on this way is the answer, which need not be in `numbers`.

    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (150, 2)) for m in (-5.0, 0.0, 5.0)])
    >>> choose_components(lk.MixtureDensity(random_state=0), X, range(1, 6)).best
    {'bic': 3, 'held-out': 3, 'prior': 3}
    """
    asked, ways = _checked(numbers, by)
    X, weight = _rows(estimator, X, sample_weight)
    folds, distinct = _dealt(estimator, X)
    kept = [k for k in asked if k <= distinct] or [distinct]
    found = _Curves(kept)
    with unheard():  # what a candidate lacks is no news
        for way, look in (("bic", _by_bic), ("held-out", partial(_by_held_out, folds=folds)), ("prior", _by_prior)):
            if way in ways:
                look(found, estimator, X, weight)
    return found.choice(distinct if asked[-1] > distinct else None)


class _Curves:
    """What has been found so far."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, unknown = numbers, np.full(len(numbers), np.nan)
        self.bic, self.held_out, self.held_out_error, self.message = unknown, unknown, unknown, unknown
        self.best: dict[str, int] = {}
        self.converged: dict[str, Any] = {}

    def choice(self, distinct: int | None) -> ComponentChoice:
        return ComponentChoice(
            self.numbers, self.bic, self.held_out, self.held_out_error, self.message, self.best.get("prior"),
            self.best, self.converged, distinct,
        )  # fmt: skip


def _checked(numbers: Iterable[int], by: Iterable[str]) -> tuple[list[int], tuple[str, ...]]:
    numbers, ways = sorted({int(k) for k in numbers}), tuple(by)
    if not numbers or numbers[0] < 1:
        raise DomainError(sentence("choose_components", "numbers must be whole and at least 1", numbers))
    unknown = [way for way in ways if way not in WAYS]
    if unknown or not ways:
        raise DomainError(sentence("choose_components", f"by must be among {', '.join(WAYS)}", unknown or "nothing"))
    return numbers, ways


def _rows(estimator: Any, X: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Rows that have crossed the border once, so that slices of them can cross it again."""
    probe = clone(estimator)
    probe._validate_params()
    checked, weight = probe._checked(X, sample_weight, reset=True)
    probe._refuse_emptiness(checked)
    return (X, sample_weight) if n_rows(checked) == n_rows(X) else (checked, weight)


def _dealt(estimator: Any, X: Any) -> tuple[Index, int]:
    """The fold of each row (n,), and how many rows differ."""
    distinct, which = np.unique(row_hashes(clone(estimator)._rows(X, reset=True)), return_inverse=True)
    return which % FOLDS, len(distinct)  # hashes are in no order of the rows, and copies stay together


def _fitted(estimator: Any, X: Any, weight: Any, k: int, **more: Any) -> Any:
    return clone(estimator).set_params(n_components=k, **more).fit(X, sample_weight=weight)


def _settled(fitted: Any) -> bool:
    return bool(fitted.report_.converged or fitted.report_.stopped_early)


def _log_likelihood(model: Any, rows: Any, weight: Any) -> float:
    each = model.log_prob(rows)
    return float(each.sum() if weight is None else each @ np.asarray(weight))


# ------------------------------------------------------------------------------- BIC


def _by_bic(found: _Curves, estimator: Any, X: Any, weight: Any) -> None:
    fits = [_fitted(estimator, X, weight, k) for k in found.numbers]
    found.bic = np.array([_bic(fitted, X, weight) for fitted in fits])
    found.best["bic"] = found.numbers[int(np.nanargmin(found.bic))]
    found.converged["bic"] = np.array([_settled(fitted) for fitted in fits])


def _bic(fitted: Any, X: Any, weight: Any) -> float:
    n = float(fitted.stats_.total_weight)
    total = _log_likelihood(fitted.model_, fitted._rows(X, reset=False), weight)
    return -2 * total + float(fitted.model_.pruned().n_parameters * np.log(max(n, 1.0)))


# ------------------------------------------------------------------------ rows left out


def _by_held_out(found: _Curves, estimator: Any, X: Any, weight: Any, folds: Index) -> None:
    """Mean log-likelihood of each fold under models of the others; −inf where one could not be learned."""
    turns = int(folds.max()) + 1
    scores, settled = np.full((turns, len(found.numbers)), np.nan), np.ones((turns, len(found.numbers)), dtype=bool)
    for f in range(turns if turns > 1 else 0):
        here, rest = np.flatnonzero(folds == f), np.flatnonzero(folds != f)
        w = (None, None) if weight is None else (np.asarray(weight)[here], np.asarray(weight)[rest])
        for i, k in enumerate(found.numbers):
            scores[f, i], settled[f, i] = _score(estimator, X, (here, rest), w, k)
    found.held_out, found.held_out_error = _with_error(scores)
    found.best["held-out"] = _simplest(found.numbers, found.held_out, found.held_out_error)
    found.converged["held-out"] = settled.all(axis=0)


def _score(estimator: Any, X: Any, at: Any, w: Any, k: int) -> tuple[float, bool]:
    try:
        fitted = _fitted(estimator, _taken(X, at[1]), w[1], k)
        rows = fitted._known(fitted._rows(_taken(X, at[0]), reset=False), fitted._learned)[0]  # new levels are gaps
        return mean_log_prob(fitted.model_, Blocks.of(rows, w[0])), _settled(fitted)
    except LikelyError:
        return -np.inf, True


def _taken(X: Any, at: Any) -> Any:
    return X.iloc[at] if hasattr(X, "iloc") else X[at] if hasattr(X, "shape") else [X[i] for i in at]


def _with_error(folds: Array) -> tuple[Array, Array]:
    """Mean over folds, and the standard error of its difference to the best mean."""
    mean = folds.mean(axis=0)
    if len(folds) < 2 or not np.isfinite(mean).any():
        return mean, np.full(len(mean), np.nan)
    with np.errstate(invalid="ignore"):
        return mean, np.std(folds - folds[:, [_largest(mean)]], axis=0, ddof=1) / np.sqrt(len(folds))


def _largest(held: Array) -> int:
    return int(np.argmax(np.where(np.isfinite(held), held, -np.inf)))


def _simplest(numbers: list[int], held: Array, error: Array) -> int:
    best = _largest(held)
    near = [i for i in range(best + 1) if np.isfinite(held[i]) and held[best] - held[i] <= error[i]]
    return numbers[min([*near, best])]


# ------------------------------------------------------------------------- a sparse prior


def _by_prior(found: _Curves, estimator: Any, X: Any, weight: Any) -> None:
    lengths, settled = _walk(estimator, X, weight, found.numbers[0], found.numbers[-1])
    found.message = np.array([lengths.get(k, np.nan) for k in found.numbers])
    found.best["prior"] = min(sorted(lengths), key=lambda k: lengths[k])
    found.converged["prior"] = settled


def _walk(estimator: Any, X: Any, weight: Any, least: int, largest: int) -> tuple[dict[int, float], bool]:
    """Message lengths on the way from the largest number of components down, and whether all fits settled.

    Learning goes on from what was learned, so that a start by chance is made once.
    """
    patient = clone(estimator).set_params(early_stopping=None, **_patience(estimator))
    price, rows, total = _price(patient, X, weight, largest)
    lengths: dict[int, float] = {}
    settled, size, start = True, largest, estimator.init
    while True:
        prior = _over_parts(estimator.prior, price.prior(size, total))
        fitted = _fitted(patient, X, weight, size, init=start, prior=prior)
        left = fitted._learned.pruned()
        lengths[left.size] = price.message_length(left.weights, total, _log_likelihood(left, rows, weight))
        settled &= _settled(fitted)
        if left.size <= least:
            return lengths, settled
        start, size = _without_weakest(left), left.size - 1


def _patience(estimator: Any) -> dict[str, Any]:
    return {name: max(getattr(estimator, name), value) for name, value in PATIENT.items()}


def _price(estimator: Any, X: Any, weight: Any, size: int) -> tuple[Price, Any, float]:
    """What a component must pay for, the rows as components take them, and their weight."""
    probe = clone(estimator).set_params(n_components=size)
    rows = probe._rows(X, reset=True)
    total = float(n_rows(rows) if weight is None else np.sum(weight))
    return Price.of(probe._blank_for(rows, None, weight).components), rows, total


def _over_parts(given: Any, sparse: Any) -> Any:
    """A sparse prior of the weights beside what was said of the parts."""
    return (
        MixturePrior.trusted(weights=sparse, components=given.components) if isinstance(given, MixturePrior) else sparse
    )


def _without_weakest(model: Mixture) -> Mixture:
    rest = np.delete(np.arange(model.size), model.weights.argmin())
    weights = model.weights[rest]
    return Mixture.trusted(weights=weights / weights.sum(), components=model.components.some(rest))

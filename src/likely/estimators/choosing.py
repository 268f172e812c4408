"""How many components: three answers side by side, so that nobody has to trust one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.core.arrays import Array, n_rows
from likely.core.hashing import row_hashes
from likely.core.learn import mean_log_prob
from likely.core.notes import unheard
from likely.errors import DomainError, LikelyError, sentence
from likely.models.emptying import SparseWeights

FOLDS = 5
WAYS = ("bic", "held-out", "prior")


@dataclass(frozen=True, eq=False)
class ComponentChoice:
    """What each number of components is worth, and which each way of looking would choose."""

    numbers: list[int]
    bic: Array  # (m,): −2 log-likelihood + parameters · log rows; the least is best
    held_out: Array  # (m,): mean log-likelihood of rows left out, nats a row; the largest is best
    held_out_error: Array  # (m,): standard error of its difference to the best
    emptied: int | None  # components that a sparse prior left of the largest number
    best: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{'components':>10} {'BIC':>14} {'held-out, nats a row':>24}"]
        for i, k in enumerate(self.numbers):
            held = f"{self.held_out[i]:.4f} ± {self.held_out_error[i]:.4f}" if np.isfinite(self.held_out[i]) else "–"
            bic = f"{self.bic[i]:.1f}" if np.isfinite(self.bic[i]) else "–"
            marks = ", ".join(f"least {w}" if w == "bic" else f"best {w}" for w in WAYS[:2] if self.best.get(w) == k)
            lines.append(f"{k:>10} {bic:>14} {held:>24}  {marks}".rstrip())
        if self.emptied is not None:
            lines.append(f"a sparse prior leaves {self.emptied} of {max(self.numbers)} components")
        return "\n".join(lines)


def choose_components(
    estimator: Any, X: Any, numbers: Iterable[int] = range(1, 11), *, sample_weight: Any = None,
    by: Iterable[str] = WAYS,
) -> ComponentChoice:  # fmt: skip
    """Compare numbers of components of a `MixtureDensity` on rows X.

    - **"bic"**: Schwarz's criterion, after a fit to all rows; components without weight are not counted.
    - **"held-out"**: log-likelihood of rows left out, five folds dealt by what rows hold; the smallest number within
      one standard error of the best is chosen.
    - **"prior"**: the largest number is fitted with a prior that empties components which do not pay for their
      parameters (Figueiredo and Jain); what is left is the answer.

    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (150, 2)) for m in (-5.0, 0.0, 5.0)])
    >>> choose_components(lk.MixtureDensity(random_state=0), X, range(1, 6)).best
    {'bic': 3, 'held-out': 3, 'prior': 3}
    """
    numbers, ways = _checked(numbers, by)
    X, weight = _rows(estimator, X, sample_weight)
    with unheard():  # what a candidate lacks is no news
        bic = _bics(estimator, X, weight, numbers) if "bic" in ways else np.full(len(numbers), np.nan)
        folds = _held_out(estimator, X, weight, numbers) if "held-out" in ways else np.full((1, len(numbers)), np.nan)
        emptied = _left(estimator, X, weight, max(numbers)) if "prior" in ways else None
    held, error = _with_error(folds)
    best = {}
    if "bic" in ways:
        best["bic"] = numbers[int(np.nanargmin(bic))]
    if "held-out" in ways:
        best["held-out"] = _simplest(numbers, held, error)
    if emptied is not None:
        best["prior"] = emptied
    return ComponentChoice(numbers, bic, held, error, emptied, best)


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


def _fitted(estimator: Any, X: Any, weight: Any, k: int, **more: Any) -> Any:
    return clone(estimator).set_params(n_components=k, **more).fit(X, sample_weight=weight)


def _bics(estimator: Any, X: Any, weight: Any, numbers: list[int]) -> Array:
    return np.array([_bic(_fitted(estimator, X, weight, k), X, weight) for k in numbers])


def _bic(fitted: Any, X: Any, weight: Any) -> float:
    each = fitted.model_.log_prob(fitted._rows(X, reset=False))
    n = float(len(each) if weight is None else np.sum(weight))
    total = float(each.sum() if weight is None else each @ np.asarray(weight))
    return -2 * total + fitted.model_.pruned().n_parameters * np.log(max(n, 1.0))


def _held_out(estimator: Any, X: Any, weight: Any, numbers: list[int]) -> Array:
    """Mean log-likelihood of each fold under models of the others (F, m); −inf where one could not be learnt."""
    probe = clone(estimator)
    rows = probe._rows(X, reset=True)
    fold = np.empty(n_rows(rows), dtype=np.intp)
    distinct, which = np.unique(row_hashes(rows), return_inverse=True)
    fold = (np.arange(len(distinct)) % FOLDS)[which]  # hashes are in no order of the rows, and copies stay together
    out = np.full((min(FOLDS, len(distinct)), len(numbers)), -np.inf)
    for f in range(len(out)):
        here, rest = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        w = (None, None) if weight is None else (np.asarray(weight)[here], np.asarray(weight)[rest])
        for i, k in enumerate(numbers):
            out[f, i] = _score(estimator, X, (here, rest), w, k)
    return out


def _score(estimator: Any, X: Any, at: Any, w: Any, k: int) -> float:
    from likely.core.blocks import Blocks

    try:
        fitted = _fitted(estimator, _taken(X, at[1]), w[1], k)
        rows = fitted._known(fitted._rows(_taken(X, at[0]), reset=False), fitted._learnt)[0]  # new levels are gaps
        return mean_log_prob(fitted.model_, Blocks.of(rows, w[0]))
    except LikelyError:
        return -np.inf


def _taken(X: Any, at: Any) -> Any:
    return X.iloc[at] if hasattr(X, "iloc") else X[at] if hasattr(X, "shape") else [X[i] for i in at]


def _with_error(folds: Array) -> tuple[Array, Array]:
    """Mean over folds, and the standard error of its difference to the best mean."""
    mean = folds.mean(axis=0)
    if len(folds) < 2 or not np.isfinite(mean).any():
        return mean, np.full(len(mean), np.nan)
    best = int(np.nanargmax(np.where(np.isfinite(mean), mean, -np.inf)))
    with np.errstate(invalid="ignore"):
        return mean, np.std(folds - folds[:, [best]], axis=0, ddof=1) / np.sqrt(len(folds))


def _simplest(numbers: list[int], held: Array, error: Array) -> int:
    best = int(np.argmax(held))
    near = [i for i in range(best + 1) if np.isfinite(held[i]) and held[best] - held[i] <= error[i]]
    return numbers[min([*near, best])]


def _left(estimator: Any, X: Any, weight: Any, largest: int) -> int:
    """Components left of the largest number by a prior that makes each pay for its parameters.

    No component of average size is emptied at the start: else all of a rich model would go at once.
    """
    first = _fitted(estimator, X, weight, largest)
    cost = 0.5 * (first.model_.n_parameters - largest + 1) / largest
    rows = first.stats_.total_weight
    sparse = SparseWeights.costing(largest, min(cost, 0.5 * rows / largest))
    emptied = _fitted(estimator, X, weight, largest, prior=sparse, max_iter=max(estimator.max_iter, 500))
    return int(emptied.model_.pruned().size)

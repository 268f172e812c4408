"""Confidence intervals of proportions and means, with weighted and clustered rows."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from likely.core.arrays import Array, Index, check_option, weights
from likely.core.errors import DataError, DomainError, sentence
from likely.distributions.distribution import lone

IntervalMethod = Literal["exact", "wilson"]


class Interval(NamedTuple):
    """A proportion and its confidence interval.

    Parameters
    ----------
    value : float or ndarray
        The proportion.
    low, high : float or ndarray
        Ends of the interval.
    """

    value: Any
    low: Any
    high: Any

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f}–{self.high:.4f})"


class Mean(NamedTuple):
    """A mean with its confidence interval and standard errors.

    Parameters
    ----------
    value : float
        The mean.
    low, high : float
        Ends of the interval.
    se : float
        Standard error over rows.
    se_folds : float, optional
        Standard error over folds, where there are some.
    """

    value: float
    low: float
    high: float
    se: float
    se_folds: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f}–{self.high:.4f})"


def shown_p(p: float) -> str:
    """A p-value as text.

    >>> shown_p(0.042), shown_p(1e-200)
    ('p = 0.042', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


# ------------------------------------------------------------------------ weights


def as_counts(weight: Any, n: int, whose: str = "weights") -> Array:
    """Weights (n,) rescaled so that their sum is the effective number of rows.

    Integers are frequencies and stay unchanged. Fractions are shares: their sum becomes Kish's effective
    size (Σw)² / Σw², so that scaling all of them changes no interval.

    >>> as_counts([2, 0, 1], 3), as_counts([0.25, 0.25], 2)
    (array([2., 0., 1.]), array([1., 1.]))
    """
    w = weights(weight, n, whose)
    if w is None:
        return np.ones(n)
    total = float(w.sum())
    if not total:
        raise DataError(sentence(whose, "some row must have a positive weight", f"{n} rows of weight 0"))
    if (w == np.floor(w)).all():
        return w
    shares = w / total  # squares of tiny weights would underflow
    return shares / float(shares @ shares)


# -------------------------------------------------------------------- proportions


def proportion_interval(
    wrong: ArrayLike, n: ArrayLike, level: float = 0.95, method: IntervalMethod = "exact"
) -> Interval:
    """Confidence interval of a proportion k/n: Clopper–Pearson (exact) or Wilson.

    Exact: P(K ≥ k | low) = P(K ≤ k | high) = (1 − level)/2, by quantiles of beta distributions, also for k and n that
    are not integers (weights, through `as_counts`). Arrays are processed entrywise.

    Parameters
    ----------
    wrong : float or array-like
        Number k of errors, or of any other event.
    n : float or array-like
        Number of trials.
    level : float, default 0.95
        Confidence level.
    method : {"exact", "wilson"}, default "exact"
        Clopper–Pearson, or Wilson.

    Returns
    -------
    Interval
        The proportion and the ends of its interval.

    References
    ----------
    Clopper and Pearson (1934); Wilson (1927); Ney, lecture notes, 2.5.

    Examples
    --------
    >>> tuple(round(x, 4) for x in proportion_interval(2, 178))
    (0.0112, 0.0014, 0.04)
    """
    k, n = np.asarray(wrong, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not ((n > 0) & (k >= 0) & (k <= n * (1 + 1e-12))).all():
        got = f"{lone(k)} of {lone(n)}"
        raise DataError(sentence("proportion_interval", "0 ≤ wrong ≤ n and n > 0 are needed", got))
    check_option(method, IntervalMethod, "proportion_interval", "method")
    tail = _tail(level)
    k = np.minimum(k, n)
    low, high = _INTERVALS[method](k, n, tail)
    return Interval(*(lone(part) for part in (k / n, low, high)))


def _exact(k: Array, n: Array, tail: float) -> tuple[Array, Array]:
    low = np.where(k > 0, betaincinv(np.where(k > 0, k, 1.0), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.where(k < n, n - k, 1.0), 1 - tail), 1.0)
    return low, high


def _wilson(k: Array, n: Array, tail: float) -> tuple[Array, Array]:
    z2 = float(ndtri(tail)) ** 2
    center = (k + z2 / 2) / (n + z2)
    half = np.sqrt(z2 * (k * (n - k) / n + z2 / 4)) / (n + z2)
    return np.where(k > 0, center - half, 0.0), np.where(k < n, center + half, 1.0)


_INTERVALS = {"exact": _exact, "wilson": _wilson}


def weighted_proportion(
    hit: Any, weight: Array, level: float = 0.95, method: IntervalMethod = "exact"
) -> Interval | None:
    """The weighted share of `hit` (n,), weights (n,) as counts or shares; None without any weight."""
    if not weight.size or not weight.any():
        return None
    w = as_counts(weight, len(weight))
    return proportion_interval(float(w @ np.asarray(hit, dtype=np.float64)), float(w.sum()), level, method)


# -------------------------------------------------------------------------- means


def mean(values: Any, weight: Any = None, fold: Index | None = None, level: float = 0.95) -> Mean:
    """A weighted mean with Student's t interval: se² = s²/n with n − 1 degrees of freedom.

    Over folds, se² = Σ W_f (m_f − m)² / (ΣW (F − 1)): the weighted variance of the F fold means. One row gives
    no variance: the standard error is then infinite, as it is where a value is infinite.

    >>> round(mean([1.0, 2.0, 3.0]).se, 4)
    0.5774
    """
    x = np.asarray(values, dtype=np.float64)
    w = as_counts(weight, len(x), "mean")
    x, w, fold = _present(x, w, fold)
    n = float(w.sum())
    if not np.isfinite(x).all():
        return Mean(float(x.max()), float(x.max()), np.inf, np.inf, None if fold is None else np.inf)
    middle = float(w @ x) / n
    se = np.sqrt(float(w @ (x - middle) ** 2) / (n - 1) / n) if n > 1 else np.inf
    half = float(-stdtrit(n - 1, _tail(level)) * se) if n > 1 else np.inf
    return Mean(middle, middle - half, middle + half, float(se), _over_folds(x, w, fold, middle))


def mean_over_clusters(values: Any, weight: Any, cluster: Index, level: float = 0.95) -> Mean:
    """A weighted mean with a cluster-robust standard error: rows of one group, person or day belong together."""
    found = mean(values, weight, cluster, level)
    groups = len(np.unique(cluster))
    if found.se_folds is None or not np.isfinite(found.se_folds) or groups < 2:
        return found
    half = float(-stdtrit(groups - 1, _tail(level)) * found.se_folds)
    return Mean(found.value, found.value - half, found.value + half, found.se_folds, found.se_folds)


def paired_difference(loss: Array, least: Array, weight: Any = None, cluster: Index | None = None) -> Mean:
    """Mean of loss − least over the same rows, with its standard error: cluster-robust where rows have clusters.

    Differences of paired losses vary less than the losses. Two infinite losses are equal.

    >>> paired_difference(np.array([1.0, 2.0, np.inf]), np.array([0.5, 1.5, np.inf])).value
    0.3333333333333333
    """
    with np.errstate(invalid="ignore"):
        more = np.where(loss == least, 0.0, loss - least)
    found = mean(more, weight, cluster)
    over = found.se_folds
    return found if over is None or not np.isfinite(over) else found._replace(se=over)


def is_tied(difference: Mean | None, resolution: float = 0.0) -> bool:
    """Whether a paired difference to the best is within one standard error, or negligible.

    If a single row is decided differently, difference and error are 1/n: a tie, in spite of rounding.
    """
    if difference is None or not np.isfinite(difference.value):
        return False
    return bool(difference.value <= max(difference.se * (1 + 1e-9), resolution))


def errors_to_best(folds: Array) -> Array | None:
    """Standard error of each model's mean score difference to the best (m,), over folds (m, F); None of one fold.

    >>> errors_to_best(np.array([[1.0, 2.0], [0.5, 1.0]]))
    array([0.  , 0.25])
    """
    means = folds.mean(axis=1)
    if folds.shape[1] < 2 or not np.isfinite(means).any():
        return None
    with np.errstate(invalid="ignore"):
        gap = folds - folds[largest(means)]
        return np.asarray(gap.std(axis=1, ddof=1) / np.sqrt(folds.shape[1]))


def largest(scores: Array) -> int:
    """The place of the largest finite score."""
    return int(np.argmax(np.where(np.isfinite(scores), scores, -np.inf)))


def simplest_within_error(scores: Array, error: Array | None) -> int:
    """The first score, of models from simple to complex, within its standard error of the largest.

    >>> simplest_within_error(np.array([1.0, 1.9, 2.0]), np.array([0.5, 0.2, 0.0]))
    1
    """
    best = largest(scores)
    if error is None:
        return best
    with np.errstate(invalid="ignore"):
        near = np.flatnonzero(np.isfinite(scores[:best]) & (scores[best] - scores[:best] <= error[:best]))
    return int(near[0]) if len(near) else best


def _present(x: Array, w: Array, fold: Index | None) -> tuple[Array, Array, Index | None]:
    """Rows with positive weight."""
    if not len(x):
        raise DataError(sentence("mean", "at least one row is needed", "none"))
    here = w > 0
    if np.isnan(x[here]).any():
        row = np.flatnonzero(here & np.isnan(x))[0]
        raise DataError(sentence("mean", "values must be numbers", f"NaN at row {row}"))
    return x[here], w[here], None if fold is None else fold[here]


def _over_folds(x: Array, w: Array, fold: Index | None, middle: float) -> float | None:
    if fold is None:
        return None
    _, which = np.unique(fold, return_inverse=True)
    size = np.bincount(which, w)
    if len(size) < 2:
        return np.inf
    means = np.bincount(which, w * x) / size
    return float(np.sqrt(size @ (means - middle) ** 2 / (size.sum() * (len(size) - 1))))


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise DomainError(sentence("interval", "level must lie between 0 and 1", level, "0.95 is usual"))
    return 0.5 * (1 - level)

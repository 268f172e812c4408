"""Novelty (outlier) score of rows and its threshold for a given false-alarm rate.

The novelty score of a row is the difference of its log p(x) from the median of the model's own samples with the same
missing entries, in units of their interquartile range. So rows with and without missing values are comparable. The
threshold is set so that a stated share of *held-out* rows exceeds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask, n_rows
from likely.core.columns import Columns
from likely.core.engine import one_blas_thread
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged
from likely.core.value import derived
from likely.core.warnings import warn
from likely.distributions.categorical.categorical import is_missing

DRAWS, WITH_MISSING = 2048, 96  # samples of the model for the reference distribution, complete and with missing entries
PATTERNS = 4096  # patterns of missing entries in the cache
ENTRIES = 1 << 25  # numbers in all samples: of models with very many columns fewer rows are drawn, in parts
WITHOUT_SUPPORT = (  # the reason why rows are novel at any rate, and the remedy
    "have p(x) = 0 under a model fitted without them, or a level that the others lack, "
    "and such rows are always novel; "
    "use a density with unbounded support, or more rows"
)


def novelty_score(model: Any, X: Any, log_prob: Array | None = None) -> Array:
    """(median − log p(x)) / interquartile range of each row (n,), against samples with the same missing values.

    For sequences, against samples of the same length.
    """
    if isinstance(X, Ragged):
        from likely.estimation.novelty.sequence_novelty import sequence_novelty_score

        return sequence_novelty_score(model, X, log_prob)
    scores = np.asarray(model.log_prob(X) if log_prob is None else log_prob, dtype=np.float64)
    ordinary = Ordinary.of(model)
    out = np.empty(len(scores))
    with one_blas_thread():  # many small solves: on a busy machine threads would wait for each other
        for rows, missing in _patterns(X):
            middle, spread = ordinary.scores(missing)
            out[rows] = (middle - scores[rows]) / spread
    return out


class Ordinary:
    """Reference distribution of log p: median and interquartile range over samples, by pattern of missing entries."""

    def __init__(self, model: Any) -> None:
        self.model, self.known, rng = model, {}, np.random.default_rng(0)
        width = getattr(model, "dim", None)
        rows = min(DRAWS, max(ENTRIES // width, 2 * WITH_MISSING)) if isinstance(width, int) and width else DRAWS
        if rows == DRAWS:
            self.draws = model.sample(DRAWS, rng)
            return
        self.draws = model.sample(WITH_MISSING, rng)
        scores = [model.log_prob(self.draws)]
        scores += [model.log_prob(model.sample(WITH_MISSING, rng)) for _ in range(rows // WITH_MISSING - 1)]
        self.whole = quartiles(np.concatenate(scores))

    known: dict[bytes, tuple[float, float]]
    whole: tuple[float, float] | None = None  # without missing entries, if not all samples are stored

    @classmethod
    def of(cls, model: Any) -> Ordinary:
        """Cached with the model: values are immutable."""
        return derived(model, cls)

    def scores(self, missing: Any) -> tuple[float, float]:
        """Median and interquartile range of log p over samples in which these columns are missing."""
        if missing is None and self.whole is not None:
            return self.whole
        key = b"" if missing is None else missing.tobytes()
        if key not in self.known:
            draws = self.draws if missing is None else _with_missing(self.draws[:WITH_MISSING], missing)
            if len(self.known) > PATTERNS:
                self.known.clear()
            self.known[key] = quartiles(self.model.log_prob(draws))
        return self.known[key]


def alarm(kept: Array, rate: float, whose: str) -> float:
    """The threshold that new rows exceed at the given rate, from stored novelty scores and weights (2 or more rows, m).

    Of n exchangeable rows the next one exceeds the k-th largest with probability k / (n + 1). Rows of infinite score
    are novel at any rate (`exceeds`): if more of those were stored than the rate allows, it cannot be met, with a
    warning.
    """
    if not 0 < rate < 1:
        raise DomainError(sentence(whose, "novelty is a false-alarm rate between 0 and 1", rate))
    value, weight = kept[0], kept[1]
    if not len(value):
        raise DomainError(sentence(whose, "novelty needs rows for its threshold", "none", "fit first"))
    warn_of_support(kept, rate, whose)
    order = np.argsort(value)[::-1]
    allowed = rate * (weight.sum() + 1)
    k = int(np.searchsorted(np.cumsum(weight[order]), allowed * (1 + 1e-12), side="right"))
    return float(value[order[max(k - 1, 0)]])


class Support(NamedTuple):
    """The false-alarm rate that stored novelty scores support: the stated one, or the smallest above it."""

    rate: float
    rows: float  # total weight
    impossible: float  # weight of infinite scores: novel at any rate


def supported(kept: Array, rate: float) -> Support | None:
    """The supported false-alarm rate if the stated one is smaller; None if it is supported."""
    value, weight = kept[0], kept[1]
    n, impossible = float(weight.sum()), float(weight[np.isposinf(value)].sum())
    least = max(impossible, 1.0)
    return Support(least / (n + 1), n, impossible) if least > rate * (n + 1) else None


def warn_of_support(kept: Array, rate: float, whose: str) -> None:
    """Warn of the supported false-alarm rate, if the stated one is not supported."""
    found = supported(kept, rate)
    if found is None:
        return
    if found.impossible > rate * (found.rows + 1):
        share = f"{100 * found.impossible / found.rows:.2g} % of the training rows"
        warn(f"{whose}: a false-alarm rate of {rate:g} cannot be met: {share} {WITHOUT_SUPPORT}")
    else:
        text = f"a false-alarm rate of {rate:g} is too small for {found.rows:.0f} rows; {found.rate:.2g} is used"
        warn(f"{whose}: {text}")


def support_in_words(kept: Array | None, rate: float) -> tuple[str, str]:
    """The supported false-alarm rate as text, with the stated one and the reason in parentheses if they differ.

    >>> support_in_words(np.ones((2, 40)), 0.01), support_in_words(np.ones((2, 40)), 0.1)
    (('0.024', ' (0.01 was requested; 40 rows support no less)'), ('0.1', ''))
    """
    found = None if kept is None or not kept.shape[1] else supported(kept, rate)
    if found is None:
        return f"{rate:g}", ""
    why = f"{found.rows:.0f} rows support no less"
    if found.impossible > rate * (found.rows + 1):
        why = f"{100 * found.impossible / found.rows:.2g} % of the training rows are novel at any rate"
    return f"{found.rate:.2g}", f" ({rate:g} was requested; {why})"


def exceeds(score: Array, limit: float) -> Mask:
    """Mask of novel rows (n,): those above the threshold, and always those of infinite score."""
    return np.asarray((score > limit) | np.isposinf(score))


def quartiles(scores: Array) -> tuple[float, float]:
    """Median and interquartile range of scores."""
    finite = scores[np.isfinite(scores)]
    low, middle, high = np.quantile(finite, [0.25, 0.5, 0.75]) if len(finite) else (0.0, 0.0, 0.0)
    return float(middle), float(high - low) or 1.0  # all equal: then nats are the unit


def _patterns(X: Any) -> list[tuple[Index, Any]]:
    """Rows grouped by pattern of missing columns: (which rows, by column)."""
    if hasattr(X, "tocsr"):  # sparse rows are complete
        return [(np.arange(n_rows(X)), None)]
    mask = missing_entries(X)
    some = mask.any(axis=1)
    groups: list[tuple[Index, Any]] = [(np.flatnonzero(~some), None)] if not some.all() else []
    if some.any():
        at = np.flatnonzero(some)
        _, first, which = np.unique(np.packbits(mask[at], axis=1), axis=0, return_index=True, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        cuts = np.cumsum(np.bincount(which.ravel()))[:-1]
        groups += [(at[rows], mask[at[f]]) for rows, f in zip(np.split(order, cuts), first, strict=True)]
    return groups


def missing_entries(X: Any) -> Mask:
    """Mask of missing entries of rows (n, d); a sequence counts as complete."""
    if isinstance(X, Columns):
        return np.concatenate([missing_entries(part) for part in X.parts.values()], axis=1)
    if hasattr(X, "offsets"):
        return np.zeros((n_rows(X), 1), bool)
    if hasattr(X, "tocsr"):  # sparse rows have none
        return np.broadcast_to(np.False_, X.shape)
    a = X if isinstance(X, np.ndarray) else np.asarray(X)
    a = a.reshape(len(a), -1)
    if a.dtype.kind == "f":
        return np.isnan(a)
    if a.dtype == object:
        return np.array([[is_missing(cell) for cell in row] for row in a.tolist()], dtype=bool).reshape(a.shape)
    return np.zeros(a.shape, bool)


def _with_missing(draws: Any, missing: Any) -> Any:
    """Samples with the same columns missing."""
    if isinstance(draws, Columns):
        parts, at = {}, 0
        for name, part in draws.parts.items():
            width = 1 if part.ndim == 1 else part.shape[1]
            parts[name], at = _with_missing(part, missing[at : at + width]), at + width
        return Columns(parts)
    flat = draws.ndim == 1
    out = (draws[:, None] if flat else draws).astype(np.float64 if draws.dtype.kind in "f" else object)
    out[:, missing] = np.nan if out.dtype.kind == "f" else None
    return out[:, 0] if flat else out

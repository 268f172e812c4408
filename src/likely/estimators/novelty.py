"""How unlike training a row is, and from where on to say so.

The surprise of a row is how far its log p(x) lies below the median of rows that the model itself would draw with the
same gaps, in units of their spread. So rows with and without gaps are compared alike. The alarm is set so that a
stated share of rows that the model had *not* learnt from would raise it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask, n_rows
from likely.core.columns import Columns
from likely.errors import DomainError, FitWarning, sentence
from likely.families.categorical import is_missing

DRAWS = 2048  # rows drawn from the model to know what it finds ordinary
KEPT = 4096  # surprises of training rows that are kept to set alarms


def surprise(model: Any, X: Any, log_prob: Array | None = None) -> Array:
    """(median − log p(x)) / spread of each row (n,), against the model's own draws with the same gaps."""
    scores = np.asarray(model.log_prob(X) if log_prob is None else log_prob, dtype=np.float64)
    draws = model.sample(DRAWS, np.random.default_rng(0))
    out = np.empty(len(scores))
    for rows, gaps in _patterns(X):
        middle, spread = _ordinary(model.log_prob(_with_gaps(draws, gaps)))
        out[rows] = (middle - scores[rows]) / spread
    return out


def alarm(kept: Array, rate: float, whose: str) -> float:
    """The surprise that a share `rate` of the kept ones (weights (m,), surprises (m,)) exceeds."""
    if not 0 < rate < 1:
        raise DomainError(sentence(whose, "novelty is a false-alarm rate between 0 and 1", rate))
    value, weight = kept
    if not len(value):
        raise DomainError(sentence(whose, "novelty needs rows to set its alarm by", "none", "fit first"))
    if weight.sum() * rate < 1:
        n = weight.sum()
        text = f"a false-alarm rate of {rate:g} is finer than {n:.0f} rows can set; {1 / (n + 1):.2g} is used"
        warnings.warn(f"{whose}: {text}", FitWarning, stacklevel=4)
    order = np.argsort(value)[::-1]
    above = np.cumsum(weight[order])  # rows that would raise an alarm set at each value
    k = int(np.searchsorted(above, rate * (weight.sum() + 1), side="right"))
    return float(value[order[min(k, len(value) - 1)]])


def spread_out(value: Array, weight: Array | None) -> Array:
    """At most `KEPT` surprises with their weights (2, m), evenly over their order."""
    weight = np.ones(len(value)) if weight is None else np.asarray(weight, dtype=np.float64)
    if len(value) > KEPT:
        pick = np.linspace(0, len(value) - 1, KEPT).round().astype(int)
        order = np.argsort(value, kind="stable")[pick]
        value, weight = value[order], weight[order] * (weight.sum() / weight[order].sum())
    return np.stack([value, weight])


def _ordinary(scores: Array) -> tuple[float, float]:
    low, middle, high = np.quantile(scores[np.isfinite(scores)], [0.25, 0.5, 0.75]) if len(scores) else (0, 0, 0)
    return float(middle), float(high - low) or 1.0  # all alike: then nats are the unit


def _patterns(X: Any) -> list[tuple[Index, Any]]:
    """Rows grouped by which columns are missing: (which rows, by column)."""
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
    """Which entries of rows were not observed (n, d); a row that is a sequence counts as whole."""
    if isinstance(X, Columns):
        return np.concatenate([missing_entries(part) for part in X.parts.values()], axis=1)
    if hasattr(X, "offsets"):
        return np.zeros((n_rows(X), 1), bool)
    a = X if isinstance(X, np.ndarray) else np.asarray(X)
    a = a.reshape(len(a), -1)
    if a.dtype.kind == "f":
        return np.isnan(a)
    if a.dtype == object:
        return np.array([[is_missing(cell) for cell in row] for row in a.tolist()], dtype=bool).reshape(a.shape)
    return np.zeros(a.shape, bool)


def _with_gaps(draws: Any, gaps: Any) -> Any:
    """Draws in which the same columns are missing."""
    if gaps is None:
        return draws
    if isinstance(draws, Columns):
        parts, at = {}, 0
        for name, part in draws.parts.items():
            width = 1 if part.ndim == 1 else part.shape[1]
            parts[name], at = _with_gaps(part, gaps[at : at + width]), at + width
        return Columns(parts)
    flat = draws.ndim == 1
    out = (draws[:, None] if flat else draws).astype(np.float64 if draws.dtype.kind in "f" else object)
    out[:, gaps] = np.nan if out.dtype.kind == "f" else None
    return out[:, 0] if flat else out

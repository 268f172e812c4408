"""Columns without any observed entry: detection, warning, and an error where all columns are such."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.blocks import Blocks
from likely.core.errors import DataError, sentence
from likely.core.warnings import Note, warn


def nothing_seen(whose: str) -> DataError:
    """The error for rows without any observed entry."""
    expected, remedy = "at least one entry must have been observed", "give rows that are not all NaN"
    return DataError(sentence(whose, expected, "none", remedy))


def warn_of_unobserved_columns(blocks: Blocks, whose: str, prior: Any = None, rest_tells: bool = False) -> None:
    """Warn of columns without observed values; raise if all columns are such and there is no explicit prior.

    `rest_tells`: missing entries follow from the rest of the row, so that single columns need no warning.
    """
    never, d = unseen_columns(blocks)
    if not len(never):
        return
    if len(never) == d and (prior is None or isinstance(prior, str)):
        raise nothing_seen(whose)
    if not rest_tells:
        warn(never_observed(whose, never, prior))


def warn_of_missing_values(whose: str, seen: Array, weight: Any, prior: Any) -> None:
    """Warn of columns that no member has observed: `seen` (..., d) is the observed weight, `weight` that of rows."""
    never = np.flatnonzero(seen.reshape(-1, seen.shape[-1]).sum(axis=0) == 0)
    if len(never) and np.sum(weight) > 0:
        warn(never_observed(whose, never, prior))


def never_observed(whose: str, columns: Index, prior: Any) -> Note:
    """The warning about columns without any observed entry."""
    what = "the initial model" if prior is None else "the prior"
    rest = f"its distribution is that of {what}; leave it out"
    if len(columns) > 1:
        rest = f"their distributions are those of {what}; leave them out"
    return Note(whose, f"{{columns}} never observed: {rest}", columns=tuple(columns.tolist()))


def unseen_columns(blocks: Blocks) -> tuple[Index, int]:
    """Columns without an observed entry in rows of positive weight, and the number of columns; reads only as needed."""
    never = None
    for block in blocks:
        z = _floats(block.x)
        if z is None or (block.weight is not None and np.shape(block.weight) != (len(z),)):
            break  # no table of numbers, where missing values look different; or weights that are rejected later
        z = z if block.weight is None else z[block.weight > 0]
        if len(z):
            missing = np.asarray(np.isnan(z).all(axis=0))
            never = missing if never is None else never & missing
            if not never.any():
                break
    return (np.empty(0, dtype=np.intp), 0) if never is None else (np.flatnonzero(never), len(never))


def _floats(x: Any) -> Array | None:
    """Rows as a matrix of floats with NaN for missing values; None for anything else."""
    if not hasattr(x, "__array__") or np.iscomplexobj(x):
        return None
    try:
        z = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return None if z.ndim not in (1, 2) else z[:, None] if z.ndim == 1 else z

"""Columns of which nothing was ever seen: found, told of, and refused where there are no others."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.blocks import Blocks
from likely.core.errors import DataError, about_columns, sentence
from likely.core.warnings import tell


def nothing_seen(whose: str) -> DataError:
    """The refusal of rows in which nothing was observed."""
    expected, remedy = "at least one entry must have been observed", "give rows that are not all NaN"
    return DataError(sentence(whose, expected, "none", remedy))


def tell_unseen(blocks: Blocks, whose: str, prior: Any = None, rest_tells: bool = False) -> None:
    """Warn of columns without observed values; if all columns are, only a prior of your own gives a distribution.

    `rest_tells`: what is missing follows from the rest of the row, so that there is nothing to say of single columns.
    """
    never, d = unseen_columns(blocks)
    if not len(never):
        return
    if len(never) == d and (prior is None or isinstance(prior, str)):
        raise nothing_seen(whose)
    if not rest_tells:
        tell(never_observed(whose, never, prior))


def tell_of_gaps(whose: str, seen: Array, weight: Any, prior: Any) -> None:
    """Say which columns no member of a stack has seen: `seen` (..., d) of rows that weigh so much."""
    never = np.flatnonzero(seen.reshape(-1, seen.shape[-1]).sum(axis=0) == 0)
    if len(never) and np.sum(weight) > 0:
        tell(never_observed(whose, never, prior))


def never_observed(whose: str, columns: Index, prior: Any) -> str:
    """The note on columns without a single entry."""
    what = "the model began with" if prior is None else "the prior says"
    rest = f"its distribution is only what {what}; leave it out"
    if len(columns) > 1:
        rest = f"their distributions are only what {what}; leave them out"
    return f"{whose}: {about_columns(columns)} never observed: {rest}"


def unseen_columns(blocks: Blocks) -> tuple[Index, int]:
    """Columns in which no row that counts has an entry, and how many there are; blocks are read until all were seen."""
    never = None
    for block in blocks:
        z = _floats(block.x)
        if z is None or (block.weight is not None and np.shape(block.weight) != (len(z),)):
            break  # no table of numbers: what is missing there has other names; or weights that will be refused
        z = z if block.weight is None else z[block.weight > 0]
        if len(z):
            gaps = np.asarray(np.isnan(z).all(axis=0))
            never = gaps if never is None else never & gaps
            if not never.any():
                break
    return (np.empty(0, dtype=np.intp), 0) if never is None else (np.flatnonzero(never), len(never))


def _floats(x: Any) -> Array | None:
    """Rows as a matrix of floats that may have gaps; None for anything else."""
    if not hasattr(x, "__array__") or np.iscomplexobj(x):
        return None
    try:
        z = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return None if z.ndim not in (1, 2) else z[:, None] if z.ndim == 1 else z

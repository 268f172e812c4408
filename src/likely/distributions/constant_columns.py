"""Detection of constant columns, for which the scale of a distribution cannot be estimated."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Index, rows
from likely.core.blocks import Blocks

NARROW = "constant over all data: the estimated scale is nearly 0"  # the message after the columns and their verb


def constant_columns(blocks: Blocks, whose: str) -> Index:
    """Columns whose observed entries of rows with positive weight are all equal; blocks are read until none is left.

    >>> constant_columns(Blocks.of(np.array([[1.0, 2.0], [1.0, 3.0], [np.nan, 2.0]])), "test").tolist()
    [0]
    """
    low = high = None
    for block in blocks:
        z = rows(block.x, None, whose)
        z = z if block.weight is None else z[np.asarray(block.weight) > 0]
        if not len(z):
            continue
        missing = np.isnan(z)
        least, most = np.where(missing, np.inf, z).min(axis=0), np.where(missing, -np.inf, z).max(axis=0)
        low, high = (least, most) if low is None or high is None else (np.minimum(low, least), np.maximum(high, most))
        if (low < high).all():
            break
    return np.empty(0, dtype=np.intp) if low is None or high is None else np.flatnonzero(low == high)

"""Imputed sequences in the type of the input: only missing entries change."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.ragged import Ragged, is_single_sequence
from likely.estimation.imputed_rows import filled_in
from likely.imputation.impute_sequences import as_given


def filled_sequences(component: Any, like: Any, rows: Ragged) -> Any:
    """The sequences `like` with missing entries taken from `rows`, the component's validated rows."""
    seqs = Ragged.of(like)
    frames = seqs.values
    flat = isinstance(frames, np.ndarray) and frames.ndim == 1
    filled = component.decode_rows(rows.values, frames[:, None] if flat else frames)
    out = Ragged.trusted(values=filled[:, 0] if flat else filled, offsets=seqs.offsets)
    if hasattr(like, "columns") and is_single_sequence(like):
        return _in_table(like, out[0])
    given = as_given(out, like)
    if isinstance(given, list):
        return [_in_table(a, b) if hasattr(a, "columns") else b for a, b in zip(like, given, strict=True)]
    return given


def _in_table(table: Any, frames: Any) -> Any:
    return filled_in(table, frames[:, None] if getattr(frames, "ndim", 2) == 1 else frames)

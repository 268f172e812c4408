"""Warnings on classes with too few training rows: a single row, or no variation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.core.errors import enumerated

SHOWN = 5  # maximum number of columns named in a warning


def notes_on_classes(clf: Any, rows: int) -> Iterator[str]:
    """Warnings on the classes of a classifier fitted to the given number of rows."""
    single = [repr(c) for c, n in zip(clf.classes_.tolist(), clf.class_count_, strict=True) if n <= 1]
    total = clf.stats_.total_weight
    if single and rows > 2 * total:
        note = f"weights sum to {total:.3g} for {rows} rows, so the prior outweighs them"
        yield f"{note}: weights are frequencies, rescale them"
    elif len(single) == 1:
        yield f"class {single[0]} has one row: its variance is that of the prior"
    elif single:
        yield f"{enumerated('class', single)} have one row each: their variance is that of the prior"
    for label, columns in constant_columns(clf):
        note = f"class {label!r} does not vary in {', '.join(map(repr, columns))}"
        yield f"{note}: its variance there is that of the prior"


def constant_columns(clf: Any) -> Iterator[tuple[Any, list[str]]]:
    """Classes of several rows with columns that vary elsewhere, but not within them."""
    variance = _variances(clf.stats_.components)
    if variance is None:
        return
    still = (variance == 0) & (variance > 0).any(axis=0) & (clf.class_count_ > 1)[:, None]
    names, labels = clf.column_names(), clf.classes_.tolist()
    for k in np.flatnonzero(still.any(axis=1)):
        yield labels[k], [names[j] for j in np.flatnonzero(still[k])][:SHOWN]


def _variances(stats: Any) -> Any:
    """Variance of each column within each class (C, d), where all columns are numbers."""
    if hasattr(stats, "components") and hasattr(stats, "names"):
        each = [_variances(s) for _, s in stats.components]
        return None if any(v is None for v in each) else np.concatenate(each, axis=1)
    return getattr(stats, "variance", None)

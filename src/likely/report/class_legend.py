"""Markers of the classes: one per class, or only the largest classes if there are many."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.report.markers import COLORS, OTHER
from likely.report.study import Study

FEW = 12  # up to here every class is drawn and tabled


def sizes(study: Study) -> Array:
    """Number of rows per class (C,), if known."""
    if study.evaluation is not None:
        return study.evaluation.confusion.sum(axis=1)
    counted = [np.nansum(np.asarray(c.counts, dtype=float), axis=1) for c in study.columns if c.counts is not None]
    return max(counted, key=lambda n: float(n.sum()), default=np.zeros(len(study.classes)))


def largest(study: Study, k: int) -> list[int]:
    """The k classes with the most rows, in the order of the classes."""
    return sorted(np.argsort(-sizes(study), kind="stable")[:k].tolist())


def marks(study: Study) -> list[int]:
    """The mark of each class (C,): its own place, or that of "others" where there are too many."""
    n = len(study.classes)
    if n <= FEW:
        return list(range(n))
    return [place.index(c) if c in place else OTHER for place in [largest(study, COLORS)] for c in range(n)]


def legend_items(study: Study) -> list[tuple[int, str]]:
    """(mark, name) of each class that has its own mark, and one entry for the others."""
    pairs = [(m, str(name)) for m, name in zip(marks(study), study.classes, strict=True)]
    own = [(m, name) for m, name in pairs if m != OTHER]
    left = len(pairs) - len(own)
    return own + ([(OTHER, f"{left} other classes")] if left else [])

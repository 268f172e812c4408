"""Summary statistics and histograms of one column, per class."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import ShapeError, sentence
from likely.report.number_format import clipped, number, percent
from likely.report.study import ColumnFacts

BINS = 24
LEVELS = 12  # of a category; the rarer ones are added up


def column_facts(
    name: str, kind: str, values: Any, labels: Any, n_classes: int, *, weight: Any = None, reason: str = "",
) -> ColumnFacts:  # fmt: skip
    """Facts of one column: values (n,) and labels (n,), the index of each row's class.

    Numbers miss where they are NaN, categories where they are None (or NaN).

    >>> facts = column_facts("color", "category", ["red", "blue", None, "red"], [0, 0, 1, 1], 2)
    >>> facts.levels, facts.counts.tolist(), facts.missing
    (('red', 'blue'), [[1.0, 1.0], [1.0, 0.0]], 1.0)
    """
    cells, labels = np.asarray(values), np.asarray(labels, dtype=np.intp)
    w = np.ones(len(cells)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not cells.shape == labels.shape == w.shape:
        expected = f"values, label and weight of column {name!r} must have one length"
        raise ShapeError(sentence("column_facts", expected, f"{cells.shape}, {labels.shape} and {w.shape}"))
    seen = _is_observed(cells)
    describe = _of_numbers if cells.dtype.kind in "fiub" else _of_levels
    facts = describe(cells[seen], labels[seen], w[seen], n_classes)
    return ColumnFacts(name, kind, reason, missing=float(w[~seen].sum()), **facts)


def _is_observed(cells: Any) -> Any:
    if cells.dtype.kind == "f":
        return np.isfinite(cells)
    return np.array([c is not None and c == c for c in cells.tolist()], dtype=bool)  # NaN is not itself


def _of_numbers(x: Any, labels: Any, w: Array, n_classes: int) -> dict[str, Any]:
    x = x.astype(np.float64)
    distinct = np.unique(x)
    if not len(distinct):
        return {"distinct": 0, "summary": "all values are missing"}
    edges = bin_edges(x, distinct)
    bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    low, middle, high = np.quantile(x, [0, 0.5, 1])
    words = f"{number(low)} to {number(high)}; median {number(middle)}" if high > low else f"always {number(low)}"
    return {"distinct": len(distinct), "summary": words, "edges": edges,
            "counts": _table(labels, bins, w, n_classes, len(edges) - 1)}  # fmt: skip


def bin_edges(x: Array, distinct: Array) -> Array:
    """Edges between few values, else even ones over all but the outermost hundredth; the end bins hold the rest.

    >>> bin_edges(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0]))
    array([-0.5,  0.5,  1.5])
    """
    if len(distinct) == 1:
        return distinct[0] + np.array([-0.5, 0.5])
    if len(distinct) <= BINS:
        between = (distinct[1:] + distinct[:-1]) / 2
        return np.concatenate([[2 * distinct[0] - between[0]], between, [2 * distinct[-1] - between[-1]]])
    low, high = np.quantile(x, [0.005, 0.995])
    low, high = (low, high) if high > low else (distinct[0], distinct[-1])
    return np.linspace(low, high, BINS + 1)


def _of_levels(cells: Any, labels: Any, w: Array, n_classes: int) -> dict[str, Any]:
    names, which = np.unique(np.array([str(c) for c in cells.tolist()], dtype=object), return_inverse=True)
    if not len(names):
        return {"distinct": 0, "summary": "all values are missing"}
    counts = _table(labels, which, w, n_classes, len(names))
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    counts, levels = counts[:, order], [str(names[i]) for i in order]
    share = counts.sum(axis=0) / max(counts.sum(), 1e-300)
    words = ", ".join(f"{clipped(v, 20)} {percent(s)}" for v, s in zip(levels[:3], share[:3], strict=True))
    if len(levels) > LEVELS:
        counts = np.column_stack([counts[:, : LEVELS - 1], counts[:, LEVELS - 1 :].sum(axis=1)])
        levels = [*levels[: LEVELS - 1], f"{len(levels) - LEVELS + 1} others"]
    more = ", …" if len(names) > 3 else ""
    return {"distinct": len(names), "summary": words + more, "levels": tuple(levels), "counts": counts}


def _table(labels: Any, bins: Any, w: Array, n_classes: int, n_bins: int) -> Array:
    cells = np.bincount(labels * n_bins + bins, w, n_classes * n_bins)
    return np.asarray(cells, dtype=np.float64).reshape(n_classes, n_bins)

"""Base class of densities that store points with weights; those of a stack are stored end to end."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from likely.core.arrays import Array, Index, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.distributions.distribution import Distribution
from likely.neighbors.distinct_rows import checked_edges


class StoredPoints(Distribution):
    """Common part of kernel and k-nearest-neighbor densities: the points, their weights and members."""

    points: Array  # (n, d)
    weight: Array | None  # (n,); the constructor fills it in
    edges: Index | None  # (K + 1,): start of the points of each member; None for one value

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.points.shape[1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return None if self.edges is None else len(self.edges) - 1

    @property
    def _w(self) -> Array:
        assert self.weight is not None
        return self.weight

    @cached_property
    def _labels(self) -> Index:
        """The member of each point (n,)."""
        if self.edges is None:
            return np.zeros(len(self.points), np.intp)
        return np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))

    def member(self, k: int) -> Self:
        """One member of a stack."""
        assert self.edges is not None
        own = slice(self.edges[k], self.edges[k + 1])
        return self.replace(points=self.points[own].copy(), weight=self._w[own].copy(), edges=None, **self._own(k))

    def _own(self, k: int) -> dict[str, Any]:
        """Other fields of member k."""
        return {}

    @cached_property
    def _each(self) -> list[Self]:
        return [self] if self.members is None else [self.member(k) for k in range(self.members)]


def with_weight(points: Array, weight: Any, edges: Any, whose: str) -> tuple[Array, Array, Index | None]:
    """Points of positive weight, their weights (None: ones) and the starts of members."""
    n = len(points)
    w = np.ones(n) if weight is None else parameter(weight, whose, "weight")
    if w.shape != (n,):
        raise ShapeError(sentence(whose, f"weight must have one entry per point ({n})", w.shape))
    if not ((w >= 0).all() and (w > 0).any()):
        raise DomainError(sentence(whose, "weights must not be negative, and some of them positive", float(w.min())))
    with np.errstate(over="ignore"):
        total = float(w.sum())
    if not 1e-290 < total < np.inf:
        raise DomainError(sentence(whose, "weights must add up to a number in range", f"{total:g}"))
    e, positive = checked_edges(edges, n, whose), w > 0
    if not positive.all():
        e = None if e is None else np.concatenate([[0], np.cumsum(positive)])[e].astype(np.intp)
        points, w = points[positive], w[positive]
    if e is not None and (np.diff(e) < 1).any():
        raise DataError(sentence(whose, "every member needs a point with weight", "a member without"))
    return points, w, e


def end_to_end(parts: list[Any]) -> dict[str, Any]:
    """Points, weights and edges of single distributions as those of a stack."""
    edges = np.cumsum([0, *(len(p.points) for p in parts)]).astype(np.intp)
    points, weight = np.concatenate([p.points for p in parts]), np.concatenate([p._w for p in parts])
    return {"points": points, "weight": weight, "edges": edges}

"""Reseeding of empty components: each takes one half of the rows of the heaviest component."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.fit_report import EMPTY
from likely.core.sketch import Sketch
from likely.mixture.embedding import embedded
from likely.mixture.initialization import from_shares, halves
from likely.mixture.mixture import Mixture


def revived(model: Mixture, sketch: Sketch, prior: Any) -> Mixture:
    """The mixture with its empty components reseeded from the heaviest ones, fitted to a sketch of the rows."""
    points = embedded(model.components, sketch.rows, sketch.weight)
    shares = model.posterior(sketch.rows)
    for k in np.flatnonzero(model.weights <= EMPTY):
        shares = _split(shares, points, sketch.weight, int(k))
    return from_shares(model, sketch.rows, sketch.weight, shares, prior)


def _split(shares: Array, points: Array, weight: Array, into: int) -> Array:
    """Responsibilities (m, K) after component `into` took half of the rows of the heaviest one whose rows differ."""
    own = shares.argmax(axis=1)
    for heavy in np.argsort(-(weight @ shares), kind="stable"):
        mine = np.flatnonzero(own == heavy)
        if _differ(points[mine]):
            taken = mine[halves(points[mine], weight[mine]) == 1]
            shares = shares.copy()
            shares[taken, into] += shares[taken, heavy]
            shares[taken, heavy] = 0.0
            return shares
    return shares


def _differ(points: Array) -> bool:
    return len(points) > 1 and bool((points != points[0]).any())

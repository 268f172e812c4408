"""Reseeding of empty components: each takes one half of the rows of the heaviest component."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.fit_report import EMPTY
from likely.core.sketch import Sketch
from likely.mixture.embedding import embedded
from likely.mixture.initialization import from_responsibilities, halves
from likely.mixture.mixture import Mixture


def reseeded(model: Mixture, sketch: Sketch, prior: Any) -> Mixture:
    """The mixture with its empty components reseeded from the heaviest ones, fitted to a sketch of the rows."""
    points = embedded(model.components, sketch.rows, sketch.weight)
    resp = model.posterior(sketch.rows)
    for k in np.flatnonzero(model.weights <= EMPTY):
        resp = _split(resp, points, sketch.weight, int(k))
    return from_responsibilities(model, sketch.rows, sketch.weight, resp, prior)


def _split(resp: Array, points: Array, weight: Array, into: int) -> Array:
    """Responsibilities (m, K) after component `into` took half of the rows of the heaviest one whose rows differ."""
    assignment = resp.argmax(axis=1)
    for heavy in np.argsort(-(weight @ resp), kind="stable"):
        members = np.flatnonzero(assignment == heavy)
        if _differ(points[members]):
            moved = members[halves(points[members], weight[members]) == 1]
            resp = resp.copy()
            resp[moved, into] += resp[moved, heavy]
            resp[moved, heavy] = 0.0
            return resp
    return resp


def _differ(points: Array) -> bool:
    return len(points) > 1 and bool((points != points[0]).any())

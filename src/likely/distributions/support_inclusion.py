"""Absolute continuity: whether p has probability where q has none, so that KL(p ‖ q) is infinite."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Mask
from likely.core.errors import LikelyError
from likely.distributions.support import FARTHEST, Atoms, Line

MIN_LOG_PROB = -300.0  # log-densities below this may be −inf by underflow, not by the end of the support
GAP = 1e-12  # relative difference of two endpoints that counts as rounding error
RAYS = np.array([1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0])


def rules_out(q: Any, p: Any, seen: Atoms | Line | None) -> bool:
    """True if p has probability where q has none; `seen` is the support of p as given by `look`.

    >>> import likely as lk
    >>> from likely.distributions.support import look
    >>> bell, box = lk.Gaussian([0.0], 1.0), lk.Uniform(-30.0, 30.0)
    >>> rules_out(box, bell, look(bell)), rules_out(bell, box, look(box))
    (True, False)
    """
    if isinstance(seen, Atoms):
        return bool(_impossible(q, p, _more_values(seen)).any())
    if isinstance(seen, Line):
        return _along_the_line(q, p, seen) or _by_ends(q, p, seen)
    return bool(_impossible(q, p, _rays(p)).any())


def _impossible(q: Any, p: Any, x: Array | None, min_log_prob: float = MIN_LOG_PROB) -> Mask:
    """Mask of rows with positive density under p and zero density under q."""
    if x is None or not len(x):
        return np.zeros(1, dtype=bool)
    with np.errstate(all="ignore"):
        try:
            logs, others = (np.asarray(distribution.log_prob(x), dtype=np.float64) for distribution in (p, q))
        except (LikelyError, TypeError, ValueError):  # rows that one of them rejects
            return np.zeros(1, dtype=bool)
    return np.asarray((logs > min_log_prob) & np.isneginf(others))


def _more_values(seen: Atoms) -> Array | None:
    """The listed values, and values beyond them on both sides of each column, too improbable to be listed."""
    values = np.asarray(seen.values)
    if values.dtype.kind not in "iuf" or values.ndim != 2:
        return None
    mode, steps = values[int(np.argmax(seen.log_probs))], 2.0 ** np.arange(21)
    rows = [values.astype(np.float64)]
    for j in range(values.shape[1]):
        for start, side in ((values[:, j].min(), -1.0), (values[:, j].max(), 1.0)):
            more = np.tile(mode.astype(np.float64), (len(steps), 1))
            more[:, j] = start + side * steps
            rows.append(more)
    return np.concatenate(rows)


def _along_the_line(q: Any, p: Any, line: Line) -> bool:
    """True if q excludes two adjacent points of a fine grid that p allows: a single point has probability 0."""
    t = np.linspace(-FARTHEST, FARTHEST, 6007)
    near = np.linspace(-4.0, 4.0, 2003)
    found = [_impossible(q, p, line.places(grid)[:, None]) for grid in (t, near)]
    return any(bool((out[1:] & out[:-1]).any()) for out in found)


def _by_ends(q: Any, p: Any, line: Line) -> bool:
    """True if the support of p extends beyond that of q, from the quantiles of 0 and 1 of both."""
    if not (hasattr(p, "quantile") and hasattr(q, "quantile")):
        return False
    try:
        ends_p, ends_q = (np.ravel(distribution.quantile(np.array([0.0, 1.0]))) for distribution in (p, q))
    except (LikelyError, TypeError, ValueError):
        return False
    places: list[float] = []
    for a, b, side in zip(ends_p, ends_q, (-1.0, 1.0), strict=True):
        if np.isfinite(b) and side * (a - b) > GAP * (abs(b) + line.scale):
            far = a if np.isfinite(a) else b + side * line.scale
            places += [b + (far - b) * share for share in (0.01, 0.25, 0.5, 0.75, 0.99)]
    return bool(places) and bool(_impossible(q, p, np.array(places)[:, None], -np.inf).any())


def _rays(p: Any) -> Array | None:
    """Samples of p, and points farther out in the same directions."""
    drawn = p.sample(256, np.random.default_rng(0))
    if not isinstance(drawn, np.ndarray) or drawn.dtype.kind != "f" or drawn.ndim != 2:
        return None
    center = np.median(drawn, axis=0)
    return np.asarray((center + RAYS[:, None, None] * (drawn - center)).reshape(-1, drawn.shape[1]))

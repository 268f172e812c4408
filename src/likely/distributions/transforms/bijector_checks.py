"""Is a change of variables one to one where the distribution lives? Asked once, when the distribution is built."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.distributions.transforms.bijector import KINDS, Bijector, FunctionChange

ME = "Transformed"
OUTSIDE = 1e-6  # probability outside of a change's domain that rounding and truncated models may have
DRAWS = 4096
ROUNDING = 1e-12
LIKE = 1e-3  # of the spread: how near there and back must lead


def refuse_outside_domain(distribution: Any, change: Bijector) -> None:
    """A distribution may not have weight where the change leads nowhere, as the logarithm of negative numbers."""
    low, high = (np.asarray(end, dtype=np.float64) for end in KINDS[change.kind].domain(change.scale))
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return
    mass = _mass_outside(distribution, float(low), float(high))
    if mass > OUTSIDE:
        expected = (
            f"the distribution must live where {change.kind!r} is defined, between {float(low):g} and {float(high):g}"
        )
        raise DomainError(
            sentence(ME, expected, f"probability {mass:.3g} outside", "take another distribution or change")
        )


def _mass_outside(distribution: Any, low: float, high: float) -> float:
    if int(getattr(distribution, "dim", 1)) == 1 and hasattr(distribution, "cdf"):
        ends = np.array([low, high if math.isfinite(high) else 0.0])
        below, above = np.asarray(distribution.cdf(ends), dtype=np.float64)[:2]
        return float(np.max(below + (1.0 - above if math.isfinite(high) else 0.0)))
    x = np.asarray(distribution.sample(DRAWS, np.random.default_rng(0)), dtype=np.float64)
    return float(((x < low) | (x > high)).mean(axis=0).max())


def refuse_turns(distribution: Any, change: FunctionChange) -> None:
    """In one column a function must only rise or only fall, over all that the distribution can be."""
    for one in _members(distribution):
        x = spread_over(one)
        y = change.forward(x[:, None]).ravel()
        nowhere = np.isnan(y)
        if nowhere.any():
            expected = "forward must be a number wherever the distribution has weight"
            raise DomainError(sentence(ME, expected, f"NaN for {nowhere.mean():.3g} of it, as at {x[nowhere][0]:.6g}"))
        y = y[np.isfinite(y)]
        steps, noise = np.diff(y), ROUNDING * (np.abs(y[1:]) + np.abs(y[:-1]))
        if not ((steps >= -noise).all() or (steps <= noise).all()):
            turn = "one that turns"
            raise DomainError(sentence(ME, "forward must only rise, or only fall", turn, "cut it in pieces"))
        if len(y) > 1 and y[0] == y[-1]:
            raise DomainError(sentence(ME, "forward must be one to one", f"{y[0]:g} everywhere"))


def refuse_other_inverses(distribution: Any, change: FunctionChange) -> None:
    """`inverse` must lead back: forward(inverse(y)) = y, and inverse(forward(x)) = x for all but a few far rows."""
    if change.back is None:
        return
    for one in _members(distribution):
        x = np.asarray(one.sample(256, np.random.default_rng(0)), dtype=np.float64).reshape(256, -1)
        y = change.forward(x)
        back = change.inverse(y)
        again = change.forward(back)
        there, here = _strays(again, y), _strays(back, x)
        if there.any() or here.mean() > 0.01:
            i = int(np.argmax(there if there.any() else here))
            got = f"x = {x[i].tolist()} ↦ y = {y[i].tolist()} ↦ {back[i].tolist()}"
            raise DomainError(sentence(ME, "inverse must undo forward, which must be one to one", got))


def _strays(found: Array, wanted: Array) -> Array:
    """Rows that are finite on both sides and differ by more than a thousandth of the columns' spread."""
    known = np.isfinite(found).all(axis=1) & np.isfinite(wanted).all(axis=1)
    middle = wanted[known]
    spread = np.subtract(*np.quantile(middle, [0.75, 0.25], axis=0)) if len(middle) else 1.0
    with np.errstate(all="ignore"):
        apart = np.abs(found - wanted) > LIKE * (spread + np.abs(wanted))
    return np.asarray(known & apart.any(axis=1))


def _members(distribution: Any) -> list[Any]:
    k = getattr(distribution, "members", None)
    return [distribution] if k is None else [distribution.member(i) for i in range(min(k, 8))]


def spread_over(distribution: Any) -> Array:
    """Places (m,) in order from one end of a distribution to the other: quantiles where it has them, else draws."""
    draws = np.asarray(distribution.sample(257, np.random.default_rng(0)), dtype=np.float64).ravel()
    if not hasattr(distribution, "quantile"):
        return np.unique(draws)
    tails = 10.0 ** -np.arange(3.0, 13.0)
    p = np.concatenate([tails, (np.arange(1000) + 0.5) / 1000, 1 - tails])
    places = np.asarray(distribution.quantile(p), dtype=np.float64).ravel()
    return np.unique(np.concatenate([draws, places[np.isfinite(places)]]))

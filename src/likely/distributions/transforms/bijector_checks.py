"""Checks that a bijector is defined and one-to-one on the support of a distribution, at construction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.distributions.transforms.bijector import KINDS, Bijector, FunctionBijector

ME = "Transformed"
OUTSIDE = 1e-6  # probability outside the domain of a bijector that is accepted for rounding and truncated models
DRAWS = 4096
ROUNDING = 1e-12
LIKE = 1e-3  # of the interquartile range: accepted error of inverse(forward(x))


def refuse_outside_domain(distribution: Any, change: Bijector) -> None:
    """Raise if the distribution has probability outside the domain of the bijector, as log of negative numbers."""
    low, high = (np.asarray(end, dtype=np.float64) for end in KINDS[change.kind].domain(change.scale))
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return
    mass = _mass_outside(distribution, float(low), float(high))
    if mass > OUTSIDE:
        expected = f"the support must lie in the domain of {change.kind!r}, between {float(low):g} and {float(high):g}"
        raise DomainError(
            sentence(ME, expected, f"probability {mass:.3g} outside", "use another distribution or bijector")
        )


def _mass_outside(distribution: Any, low: float, high: float) -> float:
    if int(getattr(distribution, "dim", 1)) == 1 and hasattr(distribution, "cdf"):
        ends = np.array([low, high if math.isfinite(high) else 0.0])
        below, above = np.asarray(distribution.cdf(ends), dtype=np.float64)[:2]
        return float(np.max(below + (1.0 - above if math.isfinite(high) else 0.0)))
    x = np.asarray(distribution.sample(DRAWS, np.random.default_rng(0)), dtype=np.float64)
    return float(((x < low) | (x > high)).mean(axis=0).max())


def refuse_nonmonotone(distribution: Any, change: FunctionBijector) -> None:
    """Raise unless a function of one column is monotone on the support of the distribution."""
    for one in _members(distribution):
        x = points_of_support(one)
        y = change.forward(x[:, None]).ravel()
        undefined = np.isnan(y)
        if undefined.any():
            expected = "forward must be a number on the support of the distribution"
            got = f"NaN for {undefined.mean():.3g} of it, as at {x[undefined][0]:.6g}"
            raise DomainError(sentence(ME, expected, got))
        y = y[np.isfinite(y)]
        steps, noise = np.diff(y), ROUNDING * (np.abs(y[1:]) + np.abs(y[:-1]))
        if not ((steps >= -noise).all() or (steps <= noise).all()):
            got, remedy = "one that increases and decreases", "split it into monotone pieces"
            raise DomainError(sentence(ME, "forward must be monotone", got, remedy))
        if len(y) > 1 and y[0] == y[-1]:
            raise DomainError(sentence(ME, "forward must be one-to-one", f"{y[0]:g} everywhere"))


def refuse_wrong_inverse(distribution: Any, change: FunctionBijector) -> None:
    """Raise unless forward(inverse(y)) = y, and inverse(forward(x)) = x for all but a few extreme rows."""
    if change.back is None:
        return
    for one in _members(distribution):
        x = np.asarray(one.sample(256, np.random.default_rng(0)), dtype=np.float64).reshape(256, -1)
        y = change.forward(x)
        back = change.inverse(y)
        again = change.forward(back)
        wrong_y, wrong_x = _differs(again, y), _differs(back, x)
        if wrong_y.any() or wrong_x.mean() > 0.01:
            i = int(np.argmax(wrong_y if wrong_y.any() else wrong_x))
            got = f"x = {x[i].tolist()} ↦ y = {y[i].tolist()} ↦ {back[i].tolist()}"
            raise DomainError(sentence(ME, "inverse must undo forward, which must be one-to-one", got))


def _differs(found: Array, wanted: Array) -> Array:
    """Mask of rows that are finite in both and differ by more than 1e-3 of the interquartile range."""
    finite = np.isfinite(found).all(axis=1) & np.isfinite(wanted).all(axis=1)
    values = wanted[finite]
    iqr = np.subtract(*np.quantile(values, [0.75, 0.25], axis=0)) if len(values) else 1.0
    with np.errstate(all="ignore"):
        different = np.abs(found - wanted) > LIKE * (iqr + np.abs(wanted))
    return np.asarray(finite & different.any(axis=1))


def _members(distribution: Any) -> list[Any]:
    k = getattr(distribution, "members", None)
    return [distribution] if k is None else [distribution.member(i) for i in range(min(k, 8))]


def points_of_support(distribution: Any) -> Array:
    """Sorted points (m,) over the support of a distribution: quantiles if it has them, and samples."""
    draws = np.asarray(distribution.sample(257, np.random.default_rng(0)), dtype=np.float64).ravel()
    if not hasattr(distribution, "quantile"):
        return np.unique(draws)
    tails = 10.0 ** -np.arange(3.0, 13.0)
    p = np.concatenate([tails, (np.arange(1000) + 0.5) / 1000, 1 - tails])
    places = np.asarray(distribution.quantile(p), dtype=np.float64).ravel()
    return np.unique(np.concatenate([draws, places[np.isfinite(places)]]))

"""Resampling schemes of particle filters: systematic, stratified, multinomial, residual.

In every scheme particle i has N W_i copies on average; schemes differ in the variance of the number of copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, check_option

ResamplingScheme = Literal["systematic", "stratified", "residual", "multinomial"]


def resampled(name: str, weights: Array, n: int, rng: Generator) -> Index:
    """Sorted ancestors (n,) of n particles drawn by normalized weights (N,).

    >>> resampled("systematic", np.array([0.5, 0.0, 0.25, 0.25]), 4, np.random.default_rng(0)).tolist()
    [0, 0, 2, 3]
    """
    return scheme(name)(np.ascontiguousarray(weights), n, rng)


def scheme(name: str, whose: str = "ParticleFilter") -> Callable[[Array, int, Generator], Index]:
    """The resampling scheme of that name."""
    check_option(name, ResamplingScheme, whose, "resample")
    return SCHEMES[name]


def _systematic(weights: Array, n: int, rng: Generator) -> Index:
    """Systematic resampling: one uniform number for all strata; copies are ⌊NW⌋ or ⌈NW⌉."""
    return _in_strata(weights, np.full(n, rng.random()))


def _stratified(weights: Array, n: int, rng: Generator) -> Index:
    """Stratified resampling: one uniform number per stratum."""
    return _in_strata(weights, rng.random(n))


def _multinomial(weights: Array, n: int, rng: Generator) -> Index:
    """Multinomial resampling: n independent draws; sorted uniform numbers from sums of exponential ones."""
    steps = np.cumsum(rng.standard_exponential(n + 1))
    return _chosen(weights, steps[:-1] / steps[-1])


def _residual(weights: Array, n: int, rng: Generator) -> Index:
    """Residual resampling: ⌊NW⌋ copies each, and multinomial resampling of the residual weights."""
    expected = weights * (n / weights.sum())
    sure = np.floor(expected)
    left = n - int(sure.sum())
    rest = np.maximum(expected - sure, 0.0)
    drawn = _multinomial(rest, left, rng) if left > 0 and rest.any() else np.empty(0, np.intp)
    certain = np.repeat(np.arange(len(weights)), sure.astype(np.intp))
    return np.sort(np.concatenate([certain, drawn]), kind="stable")[:n]


SCHEMES: dict[str, Callable[[Array, int, Generator], Index]] = {
    "systematic": _systematic, "stratified": _stratified, "residual": _residual, "multinomial": _multinomial,
}  # fmt: skip


def _chosen(weights: Array, points: Array) -> Index:
    from likely.statespace.particle._loops import choose

    out = np.empty(len(points), dtype=np.intp)
    choose(_own(weights), points, out)
    return out


def _in_strata(weights: Array, offsets: Array) -> Index:
    from likely.statespace.particle._loops import strata

    out = np.empty(len(offsets) + 1, dtype=np.intp)
    strata(_own(weights), offsets, out)
    return out[:-1].copy()


def _own(weights: Array) -> Array:
    """Writable array of the type that the loops were compiled for."""
    return weights if weights.flags.writeable else weights.copy()

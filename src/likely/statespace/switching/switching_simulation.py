"""Simulation of switching linear-Gaussian models: regimes, states and observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, whole_number
from likely.core.ragged import Ragged
from likely.statespace.linear.linear_simulation import _inputs_and_lengths

ME = "SwitchingLinearGaussian"


def simulate(model: Any, n: int, rng: Generator, length: Any, inputs: Any) -> tuple[Ragged, Ragged, Ragged]:
    """Draw regimes, states and observations of n sequences, frame by frame for all of them."""
    n = whole_number(n, f"{ME}.sample", "n")
    u, lengths = _inputs_and_lengths(model.regimes[0], n, length, inputs)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    F = int(offsets[-1])
    z, x, y = np.zeros(F, np.int64), np.empty((F, model.states)), np.empty((F, model.dim))
    for t in range(int(lengths.max(initial=0))):
        at = offsets[:-1][lengths > t] + t
        z[at] = _next(model.initial[None] if not t else model.transition[z[at - 1]], rng.random(len(at)))
        x[at] = _moved(model, z[at], x[at - 1] if t else None, None if u is None else u[at], rng)
    _observe(model, z, x, y, u, rng)
    return Ragged(z, offsets), Ragged(x, offsets), Ragged(y, offsets)


def _next(distributions: Array, u: Array) -> Index:
    reach = np.cumsum(distributions, axis=1)
    reach[:, -1] = np.inf
    return np.asarray((u[:, None] >= reach).sum(axis=1))


def _moved(model: Any, z: Index, before: Array | None, u: Array | None, rng: Generator) -> Array:
    s, noise = model.stack, rng.standard_normal((len(z), model.states))
    if before is None:
        return np.asarray(s.m[z] + np.einsum("ni,nij->nj", noise, s.U[z]))
    out = np.einsum("nij,nj->ni", s.A[z], before) + np.einsum("ni,nij->nj", noise, s.N[z])
    return out if u is None else out + _pushed(model, "control", z, u, model.states)


def _pushed(model: Any, name: str, z: Index, u: Array, width: int) -> Array:
    zero = np.zeros((width, u.shape[1]))
    by = np.stack([zero if getattr(m, name) is None else getattr(m, name) for m in model.regimes])
    return np.einsum("nij,nj->ni", by[z], u)


def _observe(model: Any, z: Index, x: Array, y: Array, u: Array | None, rng: Generator) -> None:
    s = model.stack
    y[:] = np.einsum("nij,nj->ni", s.C[z], x) + np.einsum("ni,nij->nj", rng.standard_normal(y.shape), s.R[z])
    if u is not None:
        y += _pushed(model, "feedthrough", z, u, model.dim)

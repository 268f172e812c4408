"""Simulation of linear-Gaussian models: sequences from the model, and the simulation smoother p(x | y)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, check_integer
from likely.core.covariates import table
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear.kalman_filter import Series, added, read_only, series_of
from likely.statespace.linear.kalman_smoother import smooth_part

ME = "LinearGaussian"


def simulate(model: Any, n: int, rng: Generator, length: Any, inputs: Any) -> tuple[Ragged, Ragged]:
    """Draw states and observations of n sequences."""
    n = check_integer(n, f"{ME}.sample", "n")
    u, lengths = _inputs_and_lengths(model, n, length, inputs)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    x, y = _simulated(model, offsets, u, rng)
    return Ragged(x, offsets), Ragged(y, offsets)


def _inputs_and_lengths(model: Any, n: int, length: Any, inputs: Any) -> tuple[Array | None, Index]:
    if inputs is not None:
        seqs = Ragged.of(inputs)
        if len(seqs) != n:
            raise ShapeError(sentence(f"{ME}.sample", f"inputs of {n} sequences are needed", len(seqs)))
        return table(seqs.values), seqs.lengths
    if model.n_inputs:
        raise DomainError(sentence(f"{ME}.sample", f"this model has {model.n_inputs} inputs", "none", "give inputs="))
    length = model.length if length is None else length
    if length is None:
        raise DomainError(sentence(f"{ME}.sample", "a length of the sequences is needed", "none"))
    a = np.broadcast_to(np.asarray(length), (n,))
    if a.dtype.kind not in "iu" or (a < 0).any() or (model.length is not None and a.max(initial=0) > model.length):
        raise DomainError(
            sentence(f"{ME}.sample", "length must be an integer of frames, or one per sequence", repr(length))
        )
    return None, a.astype(np.intp)


def _simulated(model: Any, offsets: Index, u: Array | None, rng: Any) -> tuple[Array, Array]:
    from likely.statespace.linear import _loops as kalman

    rng = np.random.default_rng(rng)  # a generator stays as it is, a number is a seed
    m, F, n = model.matrices, int(offsets[-1]), len(offsets) - 1
    t = np.arange(F) - np.repeat(offsets[:-1], np.diff(offsets))
    initial_states = model.initial_mean + rng.standard_normal((n, model.states)) @ m.U
    noise, observation_noise = (
        _colored(m.N, rng.standard_normal((F, model.states)), t),
        rng.standard_normal((F, model.dim)),
    )
    intercept = np.zeros((1, model.states)) if u is None or model.control is None else added(u, model.control, offsets)
    x = np.empty((F, model.states))
    kalman.simulate_states(
        m.A, read_only(np.ascontiguousarray(intercept)), noise, read_only(offsets), initial_states, x
    )
    y = x @ m.C[0].T if len(m.C) == 1 else np.einsum("fij,fj->fi", m.C[t], x)
    y = y + _colored(m.R, observation_noise, t)
    return x, y if u is None or model.feedthrough is None else y + added(u, model.feedthrough, offsets)


def _colored(root: Array, z: Array, t: Index) -> Array:
    return z @ root[0] if len(root) == 1 else np.einsum("fi,fij->fj", z, root[t])


def simulation_smoother(model: Any, y: Any, n: int, rng: Generator, inputs: Any) -> Array:
    """Simulation smoother (Durbin and Koopman 2002): x⁺ + E[x | y − y⁺] for simulated (x⁺, y⁺); shape (n, T, d)."""
    n = check_integer(n, f"{ME}.draw_states", "n", 1)
    series = series_of(model, y, inputs)
    if len(series.offsets) != 2:
        raise ShapeError(sentence(f"{ME}.draw_states", "one sequence is needed", f"{len(series.offsets) - 1}"))
    T = len(series.y)
    offsets = np.arange(n + 1, dtype=np.intp) * T
    x, simulated = _simulated(
        model.replace(control=None, feedthrough=None, initial_mean=np.zeros(model.states)), offsets, None, rng
    )
    intercept = series.intercept if series.inputs is None else np.tile(series.intercept, (n, 1))
    inputs_ = None if series.inputs is None else np.tile(series.inputs, (n, 1))
    difference = Series(np.tile(series.y, (n, 1)) - simulated, offsets, intercept, inputs_)
    found = passes.map_parts(lambda part, before: smooth_part(model, part, before, lag_one=False)[1], difference)
    return (x + np.concatenate(found)).reshape(n, T, model.states)

"""Imputation in sequences: posterior state probabilities of each frame, then the emission of each state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Mask
from likely.core.errors import DataError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.ragged_input import is_list_of_sequences
from likely.core.warnings import warnings_discarded
from likely.distributions.stacks.tied import untied
from likely.hmm.hmm import HMM


def is_of_sequences(model: Any) -> bool:
    """True for an HMM, a stack of them, or a mixture of them: rows are sequences."""
    inner = untied(model)
    return isinstance(inner, HMM) or (hasattr(inner, "components") and is_of_sequences(inner.components))


def any_in(frames: Mask, seqs: Ragged) -> Mask:
    """Which sequences (n,) have a frame that is marked (T,)."""
    count = np.concatenate([[0], np.cumsum(frames)])
    return np.asarray(count[seqs.offsets[1:]] > count[seqs.offsets[:-1]])


def frame_responsibilities(model: HMM, seqs: Ragged, resp: Array | None, rng: Generator | None) -> Array:
    """Smoothed p(s_t = k | x) of every frame (T, C·K), times the weight (n, C) of each HMM in a sequence.

    With a generator one state path drawn from p(s | x), so that neighboring missing values are drawn jointly.
    """
    chains = model.members or 1
    out = np.zeros((len(seqs.values), chains * model.states))
    for c in range(chains):
        weight = np.ones(len(seqs)) if resp is None else resp[:, c]
        some = np.flatnonzero(weight > 0)
        if len(some):
            one = model if model.members is None else model.member(c)
            at = np.repeat(weight > 0, seqs.lengths)
            states = _of_one_hmm(one, seqs[some], rng) * np.repeat(weight[some], seqs.lengths[some])[:, None]
            out[at, c * model.states : (c + 1) * model.states] = states
    return out


def _of_one_hmm(model: HMM, seqs: Ragged, rng: Generator | None) -> Array:
    known = _state_posterior(model, seqs)
    return known if rng is None else np.eye(model.states)[model.sample_states(seqs, rng)]


def _state_posterior(model: Any, seqs: Ragged) -> Array:
    """p(state | sequence) of all frames (T, K); raises for a sequence of probability 0."""
    with warnings_discarded():  # an impossible sequence is an error here
        found = model.smooth(seqs)
    bad = np.flatnonzero(np.isneginf(found.log_prob))
    if len(bad):
        expected, remedy = "sequences to impute must have positive probability", "correct it, or leave it out"
        got = f"sequence {bad[0]}, which has probability 0 under the model"
        raise DataError(sentence(f"{type(model).__name__}.impute", expected, got, remedy))
    return np.asarray(found.states.values)


def as_given(filled: Ragged, x: Any) -> Any:
    """Sequences in the form in which they came: a list of arrays, an array (n, T, D), one array, or a Ragged."""
    if isinstance(x, Ragged):
        return filled
    if is_single_sequence(x):
        return _own(filled[0])
    return [_own(one) for one in filled] if is_list_of_sequences(x) else np.stack([_own(one) for one in filled])


def _own(frames: Any) -> Any:
    return frames.copy() if isinstance(frames, np.ndarray) else frames

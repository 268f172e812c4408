"""Baum–Welch algorithm: E-step by forward–backward or along Viterbi paths, M-step by normalized expected counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, sentence
from likely.core.ragged import Ragged
from likely.hmm import forward_backward
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.viterbi import best_paths


def e_step(model: Any, seqs: Ragged, w: Array, known: Ragged | None) -> HMMStats:
    """E-step: expected counts of states and transitions under the posterior of the forward–backward algorithm."""
    chain, known_values = model.chains[0], None if known is None else known.values
    logs = forward_backward.apply_known_states(model.scores(seqs), known_values)
    expected = forward_backward.posterior(chain.summed, logs, seqs.offsets, w)
    impossible = np.flatnonzero(np.isneginf(expected.log_prob) & (w > 0))
    if len(impossible):  # their frames count as missing: the objective reports it
        logs[np.repeat(np.isin(np.arange(len(seqs)), impossible), seqs.lengths)] = 0.0
        expected = forward_backward.posterior(
            chain.summed, forward_backward.apply_known_states(logs, known_values), seqs.offsets, w
        )
        w = np.where(np.isneginf(expected.log_prob), 0.0, w)
    uses = chain.uses(expected.initial, expected.transition, expected.final, float(w[seqs.lengths == 0].sum()))
    emission = model.emission.collect(in_double(seqs.values), expected.states)
    states_known = model.initial.size == model.states and forward_backward.all_known(known_values)
    total = (
        float(w @ np.where(w > 0, expected.log_prob, 0.0))
        - forward_backward.expected_log(expected.states, logs)
        - chain.expected_log(uses)
    )
    entropy = -np.inf if len(impossible) and not (w[impossible] > 0).all() else 0.0 if states_known else total
    return model.stats_of(uses, expected.states.sum(axis=0), emission, entropy, states_known)


def viterbi_e_step(model: Any, seqs: Ragged, w: Array, known: Ragged | None) -> HMMStats:
    """E-step of Viterbi training (hard EM): counts along the most probable path of each sequence."""
    chain, known_values = model.chains[0], None if known is None else known.values
    logs = forward_backward.apply_known_states(np.array(model._best_scores(seqs), order="C"), known_values)
    path = best_paths(chain.best_logs, logs.copy(), seqs.offsets)
    impossible = np.isneginf(path.log_prob) & (w > 0)
    if impossible.any():
        logs[np.repeat(impossible, seqs.lengths)] = 0.0
        path = best_paths(chain.best_logs, forward_backward.apply_known_states(logs, known_values), seqs.offsets)
        w = np.where(np.isneginf(path.log_prob), 0.0, w)
    uses = chain.best_uses(*path.counted(seqs.offsets, w, model.states), float(w[seqs.lengths == 0].sum()))
    frames, frame_weight = in_double(seqs.values), np.repeat(w, seqs.lengths)
    hard_option = {"hard": True} if getattr(model.emission, "hides_labels", False) else {}
    emission = model.emission.collect(frames, frame_weight, labels=path.states, **hard_option)
    counts = np.bincount(path.states, frame_weight, model.states).astype(np.float64)
    entropy = -np.inf if (w[impossible] == 0).any() else 0.0
    return model.stats_of(uses, counts, emission, entropy, False)


def m_step(model: Any, stats: HMMStats, prior: Any = None) -> Any:
    """M-step: relative frequencies of the expected counts, or the posterior mode, and the M-step of the emissions."""
    if prior is None and not stats.total_weight > 0:
        raise DataError(sentence("HMM", "at least one frame with weight is needed", "none", "or give a prior"))
    pseudo_counts = (0.0, 0.0, 0.0) if prior is None else prior.pseudo_counts
    initial = normalized_counts(
        (stats.initial + pseudo_counts[0])[..., None, :], model.initial[..., None, :], None, None
    )[0][..., 0, :]
    transition, final = normalized_counts(
        stats.transition + pseudo_counts[1], model.transition, stats.final + pseudo_counts[2], model.final
    )
    emission_prior = None if prior is None else prior.emission
    return type(model).trusted(
        initial=initial,
        transition=transition,
        final=final,
        emission=model.emission.refit(stats.emission, emission_prior),
    )


def normalized_counts(
    transition: Array, allowed: Array, final: Any, allowed_final: Array | None
) -> tuple[Array, Array | None]:
    """Counts normalized to probabilities; impossible transitions stay so, and a state never left keeps its own."""
    counts = np.where(allowed > 0, transition, 0.0)
    final_counts = 0.0 if allowed_final is None else np.where(allowed_final > 0, final, 0.0)
    total = counts.sum(axis=-1) + final_counts
    left = total > 0
    safe = np.where(left, total, 1.0)
    probs = np.where(left[..., None], counts / safe[..., None], allowed)
    return probs, None if allowed_final is None else np.where(left, final_counts / safe, allowed_final)


def in_double(values: Any) -> Any:
    """Frames in double precision: probabilities are computed from their scores."""
    return (
        values.astype(np.float64)
        if getattr(values, "dtype", None) == np.float32 and hasattr(values, "astype")
        else values
    )

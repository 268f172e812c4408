"""Baum–Welch algorithm: E-step by forward–backward or along Viterbi paths, M-step by normalized expected counts.

`e_step` has three branches. Gaussian emissions, and mixtures of them, on short sequences take one sweep over the frames
(`gaussian_e_step`). Other blocks of sequences take the forward–backward algorithm, and then the statistics that follow
from its posterior. A long sequence does the same piece by piece: its statistics are the sum of theirs.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array, Index
from likely.core.errors import DataError, sentence
from likely.hmm import forward_backward
from likely.hmm.forward_backward import Pass, Posterior, scaled_or_log
from likely.hmm.gaussian_e_step import gaussian_e_step
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.logistic_transition import LogisticTransition
from likely.hmm.sequence_blocks import Part, SequenceBlocks
from likely.hmm.viterbi import Path, viterbi_in_pieces, viterbi_of_scores


def e_step(data: SequenceBlocks, weight: Array) -> HMMStats:
    """Sufficient statistics of sequences with weights (n,) above 0."""
    with np.errstate(all="ignore"):
        stats = None if data.is_varying or data.hard or data.known is not None else gaussian_e_step(data, weight)
        if stats is not None:
            return stats
        return reduce(add, (_block_stats(data, a, b, weight[a:b]) for a, b in data.blocks() or [(0, 0)]))


def _block_stats(data: SequenceBlocks, a: int, b: int, w: Array) -> HMMStats:
    """Statistics of sequences a … b − 1.

    The frames of impossible ones count as missing, or the sequence not at all: the objective reports it.
    """
    if data.is_cut(a, b):
        for unobserved in (False, True):
            stats = _path_in_pieces(data, a, unobserved) if data.hard else _posterior_in_pieces(data, a, unobserved)
            if stats is not None:
                return stats * float(w[0])
        nothing = _expected_statistics(data, data.block(a, a), _no_posterior(data), w[:0])
        return nothing.replace(entropy=np.array(-np.inf))

    def infer(part: Part) -> Posterior | Path:
        scores = part.arcs, part.logs, part.seqs.offsets
        return viterbi_of_scores(*scores) if data.hard else forward_backward.posterior(*scores, w)

    part = data.block(a, b)
    found = infer(part)
    impossible = np.isneginf(found.log_prob)
    if impossible.any():
        part = data.block(a, b, impossible)
        found = infer(part)
        w = np.where(np.isneginf(found.log_prob), 0.0, w)
    if isinstance(found, Path):
        stats = _path_statistics(data, part, found.states, previous_states(found.states, part.seqs.offsets), w)
    else:
        stats = _expected_statistics(data, part, found, w)
    return (
        stats.replace(entropy=np.array(-np.inf)) if (w[impossible] == 0).any() else _without_entropy_if_observed(stats)
    )


def _posterior_in_pieces(data: SequenceBlocks, i: int, unobserved: bool) -> HMMStats | None:
    """Sum of the statistics over the pieces of one long sequence; None where it is impossible."""

    def run(method: Pass) -> HMMStats | None:
        stats = None
        for part, found in data.smoothed(i, method, unobserved):
            if np.isneginf(found.log_prob[0]):
                return None
            own = _expected_statistics(data, part, found, np.ones(1))
            stats = own if stats is None else own + stats
        return stats

    stats = scaled_or_log(run)
    return None if stats is None else _without_entropy_if_observed(stats)


def _path_in_pieces(data: SequenceBlocks, i: int, unobserved: bool) -> HMMStats | None:
    """The same along the Viterbi path; None where there is none."""
    pieces, score = viterbi_in_pieces(data, i, unobserved)
    if np.isneginf(score):
        return None
    stats = None
    for part, path, state in pieces:
        before = np.concatenate([[state], path[:-1]])
        own = _path_statistics(data, part, path, before, np.ones(1))
        stats = own if stats is None else own + stats
    return stats


def _expected_statistics(data: SequenceBlocks, part: Part, found: Posterior, w: Array) -> HMMStats:
    """Expected statistics from the posterior of some sequences, or of a piece of one."""
    model, gamma = data.model, found.states
    first, last = _ends(part)
    initial, final = gamma[first].sum(axis=0), gamma[last].sum(axis=0)
    entropy = float(w @ np.where(w > 0, found.log_prob, 0.0)) - _expected_log(gamma, part.logs)
    if isinstance(model.transition, LogisticTransition):
        assert part.z is not None
        transition: Any = model.transition.collect(found.transition, part.arcs, part.z)
        entropy -= float(transition.fitted) + float(xlogy(initial, model.initial).sum())
    else:
        uses = model.chains[0].uses(initial, found.transition, final, _empty_weight(part, w))
        initial, transition, final = uses.initial, uses.transition, uses.final
        entropy -= model.chains[0].expected_log(uses)
    return HMMStats.trusted(
        initial=initial, transition=transition, final=final, counts=gamma.sum(axis=0),
        emission=model.emission.collect(in_double(part.seqs.values), gamma), entropy=np.asarray(entropy),
        seen=model.initial.size == model.states and forward_backward.all_known(part.known),
    )  # fmt: skip


def _path_statistics(data: SequenceBlocks, part: Part, path: Index, before: Index, w: Array) -> HMMStats:
    """Statistics along one path (T,), taken as observed; before (T,) are the previous states, −1 at first frames."""
    model, K, frame_weight = data.model, data.model.states, np.repeat(w, part.seqs.lengths)
    initial, pairs, final = path_counts(path, before, frame_weight, *_ends(part), K)
    if isinstance(model.transition, LogisticTransition):
        assert part.z is not None
        transition: Any = model.transition.collect_path(path, before, frame_weight, part.arcs, part.z)
    else:
        uses = model.chains[0].best_uses(initial, pairs, final, _empty_weight(part, w))
        initial, transition, final = uses.initial, uses.transition, uses.final
    hard_option = {"hard": True} if getattr(model.emission, "hides_labels", False) else {}
    emission = model.emission.collect(in_double(part.seqs.values), frame_weight, labels=path, **hard_option)
    return HMMStats.trusted(
        initial=initial, transition=transition, final=final, emission=emission,
        counts=np.bincount(path, frame_weight, K).astype(np.float64), entropy=np.array(0.0), seen=False,
    )  # fmt: skip


def path_counts(
    path: Index, before: Index, weight: Array, first: Index, last: Index, K: int
) -> tuple[Array, Array, Array]:
    """Weighted counts of initial states (K,), transitions (K, K) and final states (K,) along a path (T,).

    before (T,) are the previous states, −1 where there is none; first and last are the frames that begin and end
    sequences.
    """

    def counted(index: Index, at: Index, size: int) -> Array:
        return np.bincount(index, weight[at], size).astype(np.float64)

    inside = np.flatnonzero(before >= 0)
    pairs = counted(before[inside] * K + path[inside], inside, K * K).reshape(K, K)
    return counted(path[first], first, K), pairs, counted(path[last], last, K)


def _without_entropy_if_observed(stats: HMMStats) -> HMMStats:
    """Statistics of whole sequences: known states have no entropy."""
    return stats.replace(entropy=np.array(0.0)) if stats.seen else stats


def _no_posterior(data: SequenceBlocks) -> Posterior:
    K = data.model.states
    return Posterior(np.empty((0, K)), np.zeros((0, K, K) if data.is_varying else (K, K)), np.empty(0))


def _ends(part: Part) -> tuple[Index, Index]:
    """First and last frames of the sequences of a part, as far as they are in it."""
    offsets, nonempty = part.seqs.offsets, part.seqs.lengths > 0
    none = np.empty(0, dtype=np.intp)
    return offsets[:-1][nonempty] if part.begins else none, offsets[1:][nonempty] - 1 if part.ends else none


def previous_states(path: Index, offsets: Index) -> Index:
    """The state before each frame, −1 where a sequence begins."""
    before = np.concatenate([[-1], path])[:-1]
    before[offsets[:-1][np.diff(offsets) > 0]] = -1
    return before


def _empty_weight(part: Part, w: Array) -> float:
    """Weight of the sequences without a frame."""
    return float(w[part.seqs.lengths == 0].sum())


def _expected_log(probs: Array, logs: Array) -> float:
    """Σ p · log q over the entries with p > 0."""
    value = float(probs.ravel() @ logs.ravel())
    return value if np.isfinite(value) else float(np.vdot(probs, np.where(probs > 0, logs, 0.0)))


def m_step(model: Any, stats: HMMStats, prior: Any = None) -> Any:
    """M-step: relative frequencies of the expected counts, or the posterior mode, and the M-step of the emissions."""
    if prior is None and not stats.total_weight > 0:
        raise DataError(sentence("HMM", "at least one frame with weight is needed", "none", "or give a prior"))
    initial_counts, pseudo_counts, final_counts = (0.0, 0.0, 0.0) if prior is None else prior.pseudo_counts
    initial = normalized_counts(
        (stats.initial + initial_counts)[..., None, :], model.initial[..., None, :], None, None
    )[0][..., 0, :]
    if isinstance(model.transition, LogisticTransition):
        transition: Any = model.transition.refit(stats.transition, None if prior is None else prior.transition)
        final = None
    else:
        transition, final = normalized_counts(
            stats.transition + pseudo_counts, model.transition, stats.final + final_counts, model.final
        )
    emission = model.emission.refit(stats.emission, None if prior is None else prior.emission)
    return type(model).trusted(initial=initial, transition=transition, final=final, emission=emission)


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

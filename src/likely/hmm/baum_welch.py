"""E-step of Baum–Welch: forward–backward, then expected statistics; or along the Viterbi path alone.

`e_step` has three branches. Gaussian emissions, and mixtures of them, on short sequences take one fused sweep over the
frames: features of frames are computed once, for scores and for sums. Other blocks of sequences take the
forward–backward algorithm, and then the statistics that follow from its posterior. A long sequence does the same piece
by piece: its statistics are the sum of theirs.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array, Index, Mask, rows
from likely.core.blocks import runs
from likely.core.ragged import Ragged
from likely.distributions.gaussian.fused_em_sweep import shared_sweep
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.mahalanobis import load_loops
from likely.distributions.gaussian.moments import Moments, scratch
from likely.hmm import forward_backward
from likely.hmm.forward_backward import Pass, Posterior, scaled_or_log
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.logistic_transition import LogisticTransition
from likely.hmm.sequence_blocks import Part, SequenceBlocks
from likely.hmm.viterbi import Path, viterbi_in_pieces, viterbi_of_scores
from likely.mixture.mixture import Mixture, MixtureStats

FRAMES = 4096  # of a block of the fused sweep: its features and responsibilities stay in cache
WIDE = 64  # states from which the recursion takes most of the time: no gain, and all posteriors would be stored


def e_step(data: SequenceBlocks, weight: Array) -> HMMStats:
    """Sufficient statistics of sequences with weights (n,) above 0."""
    with np.errstate(all="ignore"):
        stats = None if data.is_varying or data.hard or data.known is not None else fused_e_step(data, weight)
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
    return stats.replace(entropy=np.array(-np.inf)) if (w[impossible] == 0).any() else _settled(stats)


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
    return None if stats is None else _settled(stats)


def _path_in_pieces(data: SequenceBlocks, i: int, unobserved: bool) -> HMMStats | None:
    """The same along the Viterbi path; None where there is none."""
    path, score = viterbi_in_pieces(data, i, unobserved)
    if np.isneginf(score):
        return None
    before, one = previous_states(path, np.array([0, len(path)])), np.ones(1)
    pieces = (_path_statistics(data, data.piece(i, a, z, True), path[a:z], before[a:z], one) for a, z in data.pieces(i))
    return reduce(add, pieces)


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


def _settled(stats: HMMStats) -> HMMStats:
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


def in_double(values: Any) -> Any:
    """Frames in double precision: probabilities are computed from their scores."""
    return (
        values.astype(np.float64)
        if getattr(values, "dtype", None) == np.float32 and hasattr(values, "astype")
        else values
    )


# ------------------------------------------------------------------ fused sweep


def fused_e_step(data: SequenceBlocks, weight: Array) -> HMMStats | None:
    """Sufficient statistics in one sweep over complete frames; None where it does not apply.

    Blocks of rows are whole sequences here. Between the two matrix products, where a mixture computes responsibilities
    row by row, the forward–backward algorithm computes state posteriors.
    """
    model, seqs = data.model, data.frames
    mixed = isinstance(model.emission, Mixture)
    distribution = model.emission.components if mixed else model.emission
    if not isinstance(distribution, Gaussian) or not len(seqs.values) or (model.states >= WIDE and not mixed):
        return None
    if data.is_long(int(seqs.lengths.argmax())):
        return None
    if len(distribution.form.thin) or (
        mixed and not model.emission.weights.all()
    ):  # sums of scores would lose digits here
        return None
    load_loops()  # compiled loops are needed here anyway
    x = rows(seqs.values, distribution.dim, "HMM")
    accumulator = _Accumulator(model, seqs, weight)
    offset = np.log(model.emission.weights.ravel()) if mixed else np.zeros(distribution.members or 1)
    scored: list[float] = []
    responsibilities = accumulator.of_mixtures if mixed else accumulator.of_states
    emission = shared_sweep(distribution, x, offset, responsibilities, accumulator.edges, scored)
    return accumulator.stats(emission, scored[0]) if emission is not None and accumulator.possible else None


class _Accumulator:
    """Accumulated expected states and transitions of all blocks."""

    def __init__(self, model: Any, seqs: Ragged, weight: Array) -> None:
        self.model, self.chain, self.seqs, self.weight = model, model.chains[0].summed, seqs, weight
        runs_ = runs(seqs, FRAMES)
        self.blocks = {int(seqs.offsets[a]): (a, b) for a, b in runs_ if seqs.offsets[b] > seqs.offsets[a]}
        self.edges = [(int(seqs.offsets[a]), int(seqs.offsets[b])) for a, b in self.blocks.values()]
        K = model.states
        self.first_and_last, self.transition = np.zeros((2, K)), np.zeros((K, K))  # first and last states; transitions
        self.unscaled = np.zeros((K, K))  # Σ_t α_{t−1}(i) b_beta_t(j), not yet multiplied by a_ij
        self.total = np.zeros(1)  # Σ weight · log p(x)
        self.transposed = np.ascontiguousarray(self.chain.transition.T)[None]
        self.possible = self.chain.empty > 0 or not (weight[seqs.lengths == 0] > 0).any()
        self.label_entropy = np.zeros(K)  # entropy of the component labels of each state's mixture

    def of_states(self, logs: Array, at: slice) -> Array:
        """Scores log b (K, rows) of a block become γ = p(state | sequence), weighted."""
        return self._e_step(logs, at).T

    def of_mixtures(self, logs: Array, at: slice) -> Array:
        """As `of_states` where each state has a mixture: γ is split by the component responsibilities."""
        K, n = self.model.states, logs.shape[1]
        log_terms = logs.reshape(K, -1, n)
        log_max = np.maximum(log_terms.max(axis=1), -1e308)  # −inf − (−inf) would be NaN
        log_terms -= log_max[:, None]
        responsibilities = np.exp(log_terms)
        total = responsibilities.sum(axis=1)
        gamma = self._e_step(np.log(total) + log_max, at).T
        safe = np.where(total > 0, total, 1.0)
        log_terms[responsibilities == 0] = 0.0
        log_terms *= responsibilities
        self.label_entropy += (gamma * (np.log(safe) - log_terms.sum(axis=1) / safe)).sum(axis=1)
        responsibilities *= (gamma / safe)[:, None]
        return responsibilities.reshape(-1, n)

    def _e_step(self, scores: Array, at: slice) -> Array:
        """γ (T, K) of a block's frames from their scores (K, T); expected counts are accumulated."""
        from likely.hmm._loops import scaled_recursions as loops

        a, b = self.blocks[at.start]
        (K, T), arcs = scores.shape, self.chain
        offsets, weight = self.seqs.offsets[a : b + 1] - at.start, np.array(self.weight[a:b])
        work, gamma = scratch("work", 4, T, K), np.empty((T, K))
        chain, entry = (arcs.initial, arcs.matrices, arcs.final), arcs.entry[None]
        if not loops.e_step(
            scores, chain, self.transposed, entry, offsets, weight, work, gamma, self.first_and_last, self.total
        ):
            return self._log_e_step(np.ascontiguousarray(scores.T), offsets, weight, self.seqs.lengths[a:b] > 0)
        self.unscaled += work[1, :-1].T @ work[2, 1:]
        return gamma

    def _log_e_step(self, logs: Array, offsets: Index, weight: Array, nonempty: Mask) -> Array:
        """As `_e_step` where some sequences need logarithms; `stats` counts those without a frame."""
        found = forward_backward.posterior(self.chain, logs, offsets, weight)
        self.possible &= bool(np.isfinite(found.log_prob[nonempty]).all())
        whole = offsets[:-1][nonempty], offsets[1:][nonempty] - 1
        self.first_and_last += [found.states[at].sum(axis=0) for at in whole]
        self.transition += found.transition
        self.total += float(weight[nonempty] @ found.log_prob[nonempty])
        return found.states

    def stats(self, emission: Any, scored: float) -> HMMStats:
        """The statistics of all sequences."""
        chain = self.model.chains[0]
        none = self.seqs.lengths == 0
        empty = float(self.weight[none].sum())
        total = float(self.total[0]) + (float(empty * chain.logs.empty) if empty > 0 else 0.0)
        uses = chain.uses(
            self.first_and_last[0],
            self.transition + self.chain.transition * self.unscaled,
            self.first_and_last[1],
            empty,
        )
        entropy = total - (scored + float(self.label_entropy.sum())) - chain.expected_log(uses)
        counts = np.array(emission.weight if isinstance(emission, Moments) else emission.rows)
        if isinstance(self.model.emission, Mixture):
            counts = counts.reshape(self.model.emission.weights.shape)
            emission = MixtureStats.trusted(counts=counts, components=emission, entropy=self.label_entropy, seen=False)
            counts = counts.sum(axis=1)
        return HMMStats.trusted(
            initial=uses.initial, transition=uses.transition, final=uses.final, counts=counts, emission=emission,
            entropy=np.asarray(entropy), seen=False,
        )  # fmt: skip

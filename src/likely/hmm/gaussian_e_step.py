"""Baum–Welch E-step in one sweep for Gaussian emissions: features of frames are computed once, for scores and for sums.

Blocks of rows are whole sequences here. Between the two matrix products, where a mixture computes responsibilities row
by row, the forward–backward algorithm computes state posteriors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask, rows
from likely.core.blocks import runs
from likely.core.ragged import Ragged
from likely.distributions.gaussian.fused_em_sweep import shared_sweep
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments, scratch
from likely.hmm import forward_backward
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.sequence_blocks import SequenceBlocks
from likely.mixture.mixture import Mixture, MixtureStats

FRAMES = 4096  # of a block: its features and responsibilities stay in cache
WIDE = 64  # states from which the recursion takes most of the time: no gain, and all posteriors would be stored


def gaussian_e_step(data: SequenceBlocks, weight: Array) -> HMMStats | None:
    """Sufficient statistics of complete sequences under one chain; None where the sweep does not apply."""
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

"""Baum and Welch in one sweep for Gaussian emissions: features of frames are formed once, for scores and for sums.

Strips of rows are whole sequences here. Between the two products, where a mixture settles shares row by row, the chain
settles them over all paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask, rows
from likely.core.blocks import runs
from likely.core.ragged import Ragged
from likely.distributions.gaussian.fused_em_sweep import shared_sweep
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.mahalanobis import load_loops
from likely.distributions.gaussian.moments import Moments, scratch
from likely.hmm import forward_backward
from likely.mixture.mixture import Mixture, MixtureStats

FRAMES = 4096  # of a strip: features and shares of it stay in cache
WIDE = 64  # states from which the recursion takes most of the time: nothing is gained, and all shares would be kept


def swept(model: Any, seqs: Ragged, weight: Array) -> Any:
    """Statistics of complete sequences under one chain; None where the sweep does not apply."""
    mixed = isinstance(model.emission, Mixture)
    distribution = model.emission.components if mixed else model.emission
    if not isinstance(distribution, Gaussian) or not len(seqs.values) or (model.states >= WIDE and not mixed):
        return None
    if len(distribution.form.thin) or (mixed and not model.emission.weights.all()):  # sums of scores would lose digits
        return None
    load_loops()  # compiled loops are needed here anyway
    x = rows(seqs.values, distribution.dim, "HMM")
    visits = _Visits(model, seqs, weight)
    offset = np.log(model.emission.weights.ravel()) if mixed else np.zeros(distribution.members or 1)
    scored: list[float] = []
    settle = visits.of_mixtures if mixed else visits.of_states
    parts = shared_sweep(distribution, x, offset, settle, visits.edges, scored)
    return visits.stats(parts, scored[0]) if parts is not None and visits.possible else None


class _Visits:
    """What all paths through all strips add up to."""

    def __init__(self, model: Any, seqs: Ragged, weight: Array) -> None:
        self.model, self.chain, self.seqs, self.weight = model, model.chains[0].summed, seqs, weight
        runs_ = runs(seqs, FRAMES)
        self.strips = {int(seqs.offsets[a]): (a, b) for a, b in runs_ if seqs.offsets[b] > seqs.offsets[a]}
        self.edges = [(int(seqs.offsets[a]), int(seqs.offsets[b])) for a, b in self.strips.values()]
        K = model.states
        self.ends_of, self.transition = np.zeros((2, K)), np.zeros((K, K))  # first and last states; moves
        self.between = np.zeros((K, K))  # moves that are not yet multiplied by their probabilities
        self.total = np.zeros(1)  # Σ weight · log p(x)
        self.back = np.ascontiguousarray(self.chain.transition.T)
        self.possible = self.chain.empty > 0 or not (weight[seqs.lengths == 0] > 0).any()
        self.unsure = np.zeros(K)  # entropy of the parts of each state's mixture

    def of_states(self, logs: Array, at: slice) -> Array:
        """Scores (K, rows) of a strip become p(state | sequence), in weight."""
        return self._settled(logs, at).T

    def of_mixtures(self, logs: Array, at: slice) -> Array:
        """The same where each state has a mixture: its share of a frame is shared out among its parts."""
        K, n = self.model.states, logs.shape[1]
        each = logs.reshape(K, -1, n)
        top = np.maximum(each.max(axis=1), -1e308)  # −inf − (−inf) would be no number
        each -= top[:, None]
        shares = np.exp(each)
        total = shares.sum(axis=1)
        gamma = self._settled(np.log(total) + top, at).T
        safe = np.where(total > 0, total, 1.0)
        each[shares == 0] = 0.0
        each *= shares
        self.unsure += (gamma * (np.log(safe) - each.sum(axis=1) / safe)).sum(axis=1)
        shares *= (gamma / safe)[:, None]
        return shares.reshape(-1, n)

    def _settled(self, scores: Array, at: slice) -> Array:
        """p(state | sequence) of a strip's frames (T, K) from their scores (K, T), and all that is summed of them."""
        from likely.hmm._loops import scaled_recursions as loops

        a, b = self.strips[at.start]
        (K, T), way = scores.shape, self.chain
        offsets, weight = self.seqs.offsets[a : b + 1] - at.start, np.array(self.weight[a:b])
        frames, gamma = scratch("frames", 4, T, K), np.empty((T, K))
        arcs = (way.initial, way.transition, way.final)
        if not loops.visit(
            scores, arcs, self.back, way.entry, offsets, weight, frames, gamma, self.ends_of, self.total
        ):
            return self._carefully(np.ascontiguousarray(scores.T), offsets, weight, self.seqs.lengths[a:b] > 0)
        self.between += frames[1, :-1].T @ frames[2, 1:]
        return gamma

    def _carefully(self, logs: Array, offsets: Index, weight: Array, there: Mask) -> Array:
        """The same where some sequences need logarithms; `stats` counts those without a frame."""
        found = forward_backward.posterior(self.chain, logs, offsets, weight)
        self.possible &= bool(np.isfinite(found.log_prob[there]).all())
        self.ends_of += [found.initial, found.final]
        self.transition += found.transition
        self.total += float(weight[there] @ found.log_prob[there])
        return found.states

    def stats(self, parts: Any, scored: float) -> Any:
        chain = self.model.chains[0]
        none = self.seqs.lengths == 0
        empty = float(self.weight[none].sum())
        total = float(self.total[0]) + (float(empty * chain.logs.empty) if empty > 0 else 0.0)
        uses = chain.uses(
            self.ends_of[0], self.transition + self.chain.transition * self.between, self.ends_of[1], empty
        )
        entropy = total - (scored + float(self.unsure.sum())) - chain.expected_log(uses)
        counts = np.array(parts.weight if isinstance(parts, Moments) else parts.rows)
        if isinstance(self.model.emission, Mixture):
            counts = counts.reshape(self.model.emission.weights.shape)
            parts = MixtureStats.trusted(counts=counts, components=parts, entropy=self.unsure, seen=False)
            counts = counts.sum(axis=1)
        return self.model.stats_of(uses, counts, parts, entropy, False)

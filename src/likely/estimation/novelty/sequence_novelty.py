"""Novelty score of sequences: log p(x) compared with samples of the same length.

Sequences of several lengths, with several shares of missing entries, are sampled from the model; median and
interquartile range of log p are interpolated in both. So long and short sequences, with and without missing values,
are comparable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.columns import Columns
from likely.core.covariates import n_covariates
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged
from likely.core.value import derived
from likely.distributions.stacks.tied import untied
from likely.estimation.novelty.novelty_score import missing_entries, quartiles
from likely.hmm.forward_backward import log_likelihoods
from likely.hmm.hmm import HMM
from likely.mixture.mixture import Mixture

FRAMES = 8000  # frames sampled per length: many short sequences, few long ones
FEWEST, MOST = 96, 384  # sequences sampled per length
LONGEST = 1024  # length beyond which log p is extrapolated linearly, and its spread with the square root
RATIO = 2  # ratio of successive lengths
PARTS = 4  # shares of missing entries: 0, 1/4 … 3/4


def sequence_novelty_score(model: Any, seqs: Ragged, log_prob: Array | None = None) -> Array:
    """(median − log p(x)) / interquartile range of each sequence (n,), against the model's samples of equal length."""
    if n_covariates(seqs):
        expected = "novelty is judged against samples of the model, and covariates are not modeled"
        raise DomainError(sentence("novelty_score", expected, "sequences with covariates", "use novelty=None"))
    scores = np.asarray(model.log_prob(seqs) if log_prob is None else log_prob, dtype=np.float64)
    if not len(scores):
        return scores
    middle, spread = OrdinarySequences.of(model).at(seqs.lengths.astype(np.float64), share_missing(seqs))
    return np.asarray((middle - scores) / spread)


def share_missing(seqs: Ragged) -> Array:
    """Share of missing entries of each sequence (n,)."""
    missing = np.concatenate([[0.0], np.cumsum(missing_entries(seqs.values).mean(axis=1))])
    return np.asarray((missing[seqs.offsets[1:]] - missing[seqs.offsets[:-1]]) / np.maximum(seqs.lengths, 1)).clip(
        0.0, 1.0
    )


class OrdinarySequences:
    """Median and interquartile range of log p over a model's samples, by length and share of missing entries."""

    def __init__(self, model: Any) -> None:
        self.model, self.known = model, {}

    known: dict[tuple[int, int], tuple[float, float] | None]  # None: the model has no sequences of that length

    @classmethod
    def of(cls, model: Any) -> OrdinarySequences:
        """Cached with the model: values are immutable."""
        return derived(model, cls)

    def at(self, lengths: Array, missing: Array) -> tuple[Array, Array]:
        """Median and spread for sequences of these lengths and shares of missing entries, each (n,)."""
        place = missing * PARTS
        low = np.floor(place).astype(int)
        out = np.zeros((2, len(lengths)))
        for part in np.unique(np.concatenate([low, np.ceil(place).astype(int)])).tolist():
            near = np.abs(place - part) < 1  # linear between neighboring shares
            out[:, near] += (1.0 - np.abs(place - part))[near] * np.stack(
                self._interpolated_in_length(lengths[near], part)
            )
        return out[0], out[1]

    def _interpolated_in_length(self, lengths: Array, part: int) -> tuple[Array, Array]:
        """The same for one share of missing entries, interpolated in the length."""
        grid = _lengths(float(lengths.min()), float(lengths.max()))
        found = [(length, self._drawn(length, part)) for length in grid]
        sound = [(length, *scores) for length, scores in found if scores is not None] or [self._nearest(grid[-1], part)]
        place, middle, spread = np.array(sound, dtype=np.float64).T
        return _interpolated(lengths, place, middle), _spread(lengths, place, spread)

    def _drawn(self, length: int, part: int) -> tuple[float, float] | None:
        if (length, part) not in self.known:
            self.known[length, part] = self._scored(length, part)
        return self.known[length, part]

    def _scored(self, length: int, part: int) -> tuple[float, float] | None:
        if length == 0:
            return 0.0, 1.0
        rng, n = np.random.default_rng(length), int(np.clip(FRAMES // length, FEWEST, MOST))
        draws = drawn(self.model, n, rng, length)
        if draws is not None and part:
            draws = draws.map(lambda values: _thinned(values, part / PARTS, n, rng))
        return None if draws is None else quartiles(self.model.log_prob(draws))

    def _nearest(self, length: int, part: int) -> tuple[int, float, float]:
        """The next longer sequences that the model can generate."""
        for longer in range(length + 1, 4 * length + 64):
            scores = self._drawn(longer, part)
            if scores is not None:
                return longer, *scores
        return length, 0.0, 1.0


def _thinned(values: Any, share: float, n: int, rng: Generator) -> Any:
    """Frames of n sequences of one length, each with that share of its entries missing at random."""
    if isinstance(values, Columns):
        return Columns({name: _thinned(part, share, n, rng) for name, part in values.parts.items()})
    out = values.astype(np.float64 if values.dtype.kind in "f" else object)
    chance = rng.random((n, out.size // n))
    limit = np.quantile(chance, share, axis=1, keepdims=True) if share < 1 else 1.0
    out[(chance < limit).reshape(out.shape)] = np.nan if out.dtype.kind == "f" else None
    return out


def drawn(model: Any, n: int, rng: Generator, length: int) -> Ragged | None:
    """n sequences of one length sampled from an HMM or a mixture of HMMs; None if it generates none."""
    if not isinstance(model, Mixture):
        return None if np.isneginf(log_length(model, length)[0]) else model.sample(n, rng, length)
    with np.errstate(divide="ignore"):
        logs = np.log(model.weights) + _of_members(model, length)
    if np.isneginf(logs.max()):
        return None
    shares = np.exp(logs - logs.max())
    counts = rng.multinomial(n, shares / shares.sum())
    parts = [drawn(model.components.member(k), int(c), rng, length) for k, c in enumerate(counts) if c]
    return Ragged.joined([part for part in parts if part is not None])


def log_length(model: Any, length: int) -> Array:
    """log p(length) of a sequence: (1,), or (C,) for a stack; 0 without final probabilities."""
    if isinstance(model, Mixture):
        logs = _of_members(model, length).reshape(model.weights.shape)
        with np.errstate(divide="ignore"):
            return np.atleast_1d(np.logaddexp.reduce(np.log(model.weights) + logs, axis=-1))
    if not isinstance(model, HMM) or model.final is None:
        return np.zeros(getattr(model, "members", None) or 1)
    flat = np.zeros((length, len(model.chains) * model.states))
    with np.errstate(all="ignore"):
        return log_likelihoods([chain.summed for chain in model.chains], flat, np.array([0, length]))[0]


def _of_members(model: Mixture, length: int) -> Array:
    """log p(length) under each component (K,)."""
    parts = untied(model.components)
    if parts is model.components:
        return log_length(parts, length)
    return log_length(parts, length)[model.components.index]


def _lengths(least: float, most: float) -> list[int]:
    """Integer lengths about RATIO apart that cover the range, up to LONGEST."""
    out = [1]
    while out[-1] < min(most, LONGEST):
        out.append(min(max(out[-1] + 1, round(out[-1] * RATIO)), LONGEST))
    first = sum(length <= least for length in out) - 1
    kept = out[max(min(first, len(out) - 2), 0) :]
    return [0, *kept] if least < 1 else kept


def _interpolated(x: Array, place: Array, value: Array) -> Array:
    """Linear interpolation between points, and extrapolation by the last slope."""
    out = np.interp(x, place, value)
    if len(place) == 1:
        return np.asarray(value[0] * x / max(place[0], 1.0))
    above, below = x > place[-1], x < place[0]
    slope = np.diff(value)[[0, -1]] / np.diff(place)[[0, -1]]
    out[above] = value[-1] + slope[1] * (x[above] - place[-1])
    out[below] = value[0] + slope[0] * (x[below] - place[0])
    return np.asarray(out)


def _spread(x: Array, place: Array, value: Array) -> Array:
    """Interpolated spread; beyond the last point it grows with the square root, as for sums."""
    inside = place > 0  # the spread at length 0 is that of the shortest
    out = np.interp(x, place[inside], value[inside]) if inside.any() else np.full(len(x), value[0])
    return np.asarray(np.where(x > place[-1], value[-1] * np.sqrt(x / max(place[-1], 1.0)), out))

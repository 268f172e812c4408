"""Novelty score of frames under an HMM: the predictive probability of a frame at least as improbable."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, is_gap
from likely.core.columns import Columns
from likely.core.ragged import Ragged
from likely.estimation.novelty.novelty_score import _patterns
from likely.hmm.hmm import HMM

DRAWS = 4000  # samples for the distribution of the novelty score
BLOCK = 256  # frames compared with all samples at a time


class ChainTail:
    """Frames sampled from each state of an HMM, weighted by the predictive state probabilities."""

    def __init__(self, hmm: HMM) -> None:
        self.hmm = hmm
        self.distribution, self.each = hmm.emission, max(DRAWS // hmm.states, 100)
        rng = np.random.default_rng(0)
        self.drawn = [self.distribution.member(k).sample(self.each, rng) for k in range(hmm.states)]
        self.state = np.repeat(np.arange(hmm.states), self.each)
        self.scored: dict[Any, tuple[Any, Any]] = {}  # by pattern of missing entries

    def __call__(self, predicted: Any, y: Any, log_p: float, inputs: Any = None) -> float | None:
        """P(a frame at least as improbable), with the same entries missing; None if nothing is observed."""
        missing = _missing_pattern(y)
        if all(_flat(missing)):
            return None
        top, shares = self._scores(missing)
        with np.errstate(divide="ignore"):
            logs = top + np.log(shares @ predicted.probs)
        as_odd = logs <= log_p + 1e-9 * (1 + abs(log_p))
        share = np.bincount(self.state[as_odd], minlength=len(predicted.probs)) @ predicted.probs / self.each
        return float((share * self.each + 1) / (self.each + 1))  # including the frame itself

    def along(self, x: Ragged) -> Array:
        """P(a frame at least as improbable | past frames) of all frames (T,); NaN if nothing is observed."""
        predicted, logs = self._predicted(x), self.hmm.scores(x)
        top = logs.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = (predicted * np.exp(logs - top)).sum(axis=1, keepdims=True)
            log_p = np.where(np.isneginf(top), -np.inf, top + np.log(total))
        out = np.full(len(log_p), np.nan)
        for rows, gap in _patterns(x.values):
            missing = _missing_pattern(_frame(x.values, int(rows[0])))
            if gap is not None and all(_flat(missing)):
                continue
            best, shares = self._scores(missing)
            for at in np.array_split(rows, max(len(rows) // BLOCK, 1)):
                with np.errstate(divide="ignore"):
                    drawn = best + np.log(predicted[at] @ shares.T)
                odd = drawn <= log_p[at] + 1e-9 * (1 + np.abs(log_p[at]))
                share = (odd.reshape(len(at), -1, self.each).mean(axis=2) * predicted[at]).sum(axis=1)
                out[at] = (share * self.each + 1) / (self.each + 1)
        return out

    def _predicted(self, x: Ragged) -> Array:
        """Predictive state probabilities p(state | past frames) of every frame (T, K)."""
        ways = self.hmm.chains[0].summed
        known = self.hmm.posterior(x, lag=0).values
        out = np.empty_like(known)
        out[1:] = known[:-1] @ ways.transition
        out[x.offsets[:-1][x.lengths > 0]] = ways.initial
        total = out.sum(axis=1, keepdims=True)
        return np.divide(out, total, out=np.zeros_like(out), where=total > 0)

    def _scores(self, missing: Any) -> tuple[Any, Any]:
        """Log-density of each sample under its best state (n,), and all states relative to it (n, K)."""
        if missing not in self.scored:
            logs = np.concatenate([self.distribution.log_prob(_with_missing(x, missing)) for x in self.drawn])
            top = logs.max(axis=1)
            self.scored[missing] = top, np.exp(logs - top[:, None])
        return self.scored[missing]


def _frame(values: Any, i: int) -> Any:
    return {name: part[i] for name, part in values.parts.items()} if isinstance(values, Columns) else values[i]


def _missing_pattern(y: Any) -> Any:
    """The pattern of missing entries of a frame, as a key."""
    if isinstance(y, dict):
        return tuple((name, _missing_pattern(part)) for name, part in y.items())
    return tuple(bool(is_gap(cell)) for cell in np.ravel(np.asarray(y)).tolist())


def _flat(missing: Any) -> list[bool]:
    return [one for gap in missing for one in ([gap] if isinstance(gap, bool) else _flat(gap[1]))]


def _with_missing(x: Any, missing: Any) -> Any:
    """Rows with the same entries missing."""
    if not any(_flat(missing)):
        return x
    if not isinstance(missing[0], bool):
        return Columns({name: _with_missing(np.asarray(x[name]), own) for name, own in missing})
    a = np.asarray(x)
    a = a.astype(np.float64 if a.dtype.kind in "biuf" else object)
    wide = a[:, None] if a.ndim == 1 else a
    nothing: Any = np.nan if a.dtype.kind == "f" else None
    wide = np.where(np.array(missing), nothing, wide)
    return wide[:, 0] if a.ndim == 1 else wide

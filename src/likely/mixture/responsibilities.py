"""Who is responsible for a row: shares p(k | x) of K members, and how unsure they are."""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array

NOTHING = -230.0  # log of a share that is none: 1e-100; smaller ones would be numbers that processors are slow with


def settled(logs: Array, prior: Array, weight: Array | None = None) -> tuple[Array, float]:
    """Shares (K, n) of log-joints, times the weight of each row, and Σ weight · entropy. `logs` is used up.

    Where all are −inf, no member can explain a row: the prior (K,) decides. Inside, NumPy must have been told to
    say nothing.
    """
    unsettled = Unsettled(logs.shape[1], weight)
    shares = unsettled.shares(logs, slice(None))
    return shares, unsettled.entropy(prior, [(slice(None), shares)])


def load_loops() -> None:
    """Import the compiled version of `settled`: worth it before many rows are scored; the results are the same bits."""
    import likely.mixture._loops  # noqa: F401


class Unsettled:
    """Rows whose shares are found strip by strip; what is left to settle is done for all of them at the end."""

    def __init__(self, n: int, weight: Array | None) -> None:
        self.weight = np.ones(n) if weight is None else np.array(weight)
        self.total, self.unsure = np.empty((2, n))
        self.loops = sys.modules.get("likely.mixture._loops")

    def shares(self, logs: Array, at: slice) -> Array:
        """Shares (K, rows) of the rows `at`, times their weight."""
        total, unsure = self.total[at], self.unsure[at]
        if self.loops is None:
            return _by_numpy(logs, self.weight[at], total, unsure)
        top = np.empty(logs.shape[1])
        self.loops.drop(logs, top, NOTHING)
        shares = np.exp(logs)
        self.loops.share_out(logs, shares, NOTHING, self.weight[at], total, unsure)
        return shares

    def entropy(self, prior: Array, strips: list[tuple[slice, Array]]) -> float:
        """Σ weight · entropy; rows that no member can explain get their shares by the prior."""
        entropy = np.log(self.total) - self.unsure / self.total
        if not self.total.all():
            none = self.total == 0
            entropy[none] = -xlogy(prior, prior).sum()
            for at, shares in strips:
                here = np.flatnonzero(none[at])
                shares[:, here] = prior[:, None] * self.weight[at][here]
        return float(entropy @ self.weight)

    @property
    def all_explained(self) -> bool:
        """True if some member can explain each row."""
        return bool(self.total.all())


def _by_numpy(logs: Array, weight: Array, total: Array, unsure: Array) -> Array:
    logs -= logs.max(axis=0)
    np.copyto(logs, NOTHING, where=~(logs > NOTHING))
    shares = np.exp(logs)
    shares *= logs > NOTHING
    total[:] = _one_by_one(shares)
    logs *= shares
    unsure[:] = _one_by_one(logs)
    shares *= weight / total
    return shares


def _one_by_one(numbers: Array) -> Array:
    """Sums over members (n,), one member after another: of a single row NumPy would add pairs, to other bits."""
    out = np.array(numbers[0])
    for row in numbers[1:]:
        out += row
    return out

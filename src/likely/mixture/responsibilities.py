"""Responsibilities p(k | x) of K components and the entropy of the hidden labels, in the log domain."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array
from likely.core.job_size import is_large

LOG_FLOOR = -230.0  # log of a negligible responsibility, 1e-100: below it, arithmetic on subnormal numbers is slow


def weighted_responsibilities(logs: Array, prior: Array, weight: Array | None = None) -> tuple[Array, float]:
    """Responsibilities (K, n) from log-joints, times the weight of each row, and Σ weight · entropy; overwrites `logs`.

    Where all are −inf, the row has density 0 under every component: the prior (K,) is taken. The caller has set
    np.errstate to ignore.
    """
    accumulator = ResponsibilityAccumulator(logs.shape[1], weight)
    resp = accumulator.responsibilities(logs, slice(None))
    return resp, accumulator.entropy(prior, [(slice(None), resp)])


class ResponsibilityAccumulator:
    """Responsibilities computed block by block; rows of density 0 are completed at the end."""

    def __init__(self, n: int, weight: Array | None) -> None:
        self.weight = np.ones(n) if weight is None else np.array(weight)
        self.total, self.sum_r_log_r = np.empty((2, n))

    def responsibilities(self, logs: Array, at: slice) -> Array:
        """Responsibilities (K, rows) of the rows `at`, times their weight."""
        total, sum_r_log_r = self.total[at], self.sum_r_log_r[at]
        by = _by_loops if is_large() else _by_numpy  # equal bit for bit
        return by(logs, self.weight[at], total, sum_r_log_r)

    def entropy(self, prior: Array, strips: list[tuple[slice, Array]]) -> float:
        """Σ weight · entropy; rows of density 0 under every component get the prior as responsibilities."""
        entropy = np.log(self.total) - self.sum_r_log_r / self.total
        if not self.total.all():
            none = self.total == 0
            entropy[none] = -xlogy(prior, prior).sum()
            for at, resp in strips:
                here = np.flatnonzero(none[at])
                resp[:, here] = prior[:, None] * self.weight[at][here]
        return float(entropy @ self.weight)

    @property
    def all_possible(self) -> bool:
        """True if every row has positive density under some component."""
        return bool(self.total.all())


def _by_loops(logs: Array, weight: Array, total: Array, sum_r_log_r: Array) -> Array:
    from likely.mixture import _loops as loops

    top = np.empty(logs.shape[1])
    loops.subtract_max(logs, top, LOG_FLOOR)
    resp = np.exp(logs)
    loops.normalize_to_weight(logs, resp, LOG_FLOOR, weight, total, sum_r_log_r)
    return resp


def _by_numpy(logs: Array, weight: Array, total: Array, sum_r_log_r: Array) -> Array:
    logs -= logs.max(axis=0)
    np.copyto(logs, LOG_FLOOR, where=~(logs > LOG_FLOOR))
    resp = np.exp(logs)
    resp *= logs > LOG_FLOOR
    total[:] = _sum_over_components(resp)
    logs *= resp
    sum_r_log_r[:] = _sum_over_components(logs)
    resp *= weight / total
    return resp


def _sum_over_components(numbers: Array) -> Array:
    """Sums over components (n,), one after another: NumPy's pairwise sum of a single row has other rounding."""
    out = np.array(numbers[0])
    for row in numbers[1:]:
        out += row
    return out

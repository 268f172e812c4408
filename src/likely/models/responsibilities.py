"""Who is responsible for a row: shares p(k | x) of K members, and how unsure they are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array

NOTHING = -230.0  # log of a share that is none: 1e-100; smaller ones would be numbers that processors are slow with


def settled(logs: Array, prior: Array, weight: Array | None = None) -> tuple[Array, float]:
    """Shares (K, n) of log-joints, times the weight of each row, and Σ weight · entropy. `logs` is used up.

    Where all are −inf, no member can explain a row: the prior (K,) decides. Inside, NumPy must have been told to
    say nothing.
    """
    loops = sys.modules.get("likely.loops.shares")
    shares, total, unsure = (_by_numpy if loops is None else _by_loops)(logs, loops)
    entropy = np.log(total) - unsure / total
    factor = 1.0 / total if weight is None else weight / total
    none = np.flatnonzero(total == 0)
    if len(none):
        factor[none], entropy[none] = 1.0 if weight is None else weight[none], -xlogy(prior, prior).sum()
        shares[:, none] = prior[:, None]
    if loops is None:
        shares *= factor
    else:
        loops.scale(shares, factor)
    return shares, float(entropy.sum() if weight is None else entropy @ weight)


def _by_numpy(logs: Array, loops: Any) -> tuple[Array, Array, Array]:
    logs -= logs.max(axis=0)
    np.copyto(logs, NOTHING, where=~(logs > NOTHING))
    shares = np.exp(logs)
    shares *= logs > NOTHING
    total = _one_by_one(shares)
    logs *= shares
    return shares, total, _one_by_one(logs)


def _one_by_one(a: Array) -> Array:
    """Sums over members in their order, as the loops add; NumPy's own sum of a lone column goes in pairs."""
    return np.add.reduce(a, axis=0) if a.shape[1] != 1 else np.add.accumulate(a, axis=0)[-1]


def _by_loops(logs: Array, loops: Any) -> tuple[Array, Array, Array]:
    top, total, unsure = np.empty((3, logs.shape[1]))
    loops.drop(logs, top, NOTHING)
    shares = np.exp(logs)
    loops.add_up(logs, shares, NOTHING, total, unsure)
    return shares, total, unsure

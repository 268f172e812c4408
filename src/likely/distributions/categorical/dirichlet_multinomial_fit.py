"""Maximum-likelihood fit of the Dirichlet-multinomial distribution: Newton's method for log α, linear in columns."""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma

from likely.core.arrays import Array, Index
from likely.numerics.newton_ascent import Objective, newton_maximize
from likely.numerics.special import gamma_excess, log_minus_digamma

SMALLEST, LARGEST = 1e-8, 1e8  # bounds of α
STARTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # initial concentrations, of which the best is used


def fitted_alpha(cell: Index, value: Array, each: Array, width: int, old: Array) -> Array:
    """α (d,) for counts `value` > 0 of columns `cell`, d = width − 1; the last column holds totals of rows.

    log p = Σ w [log Γ(αⱼ + x)/Γ(αⱼ)] − Σ w [log Γ(α₀ + N)/Γ(α₀)] + constant (Minka 2000). Starts
    from the previous α, or from the relative frequencies, whichever is better.
    """
    d = width - 1
    last = cell == d
    counts = (cell[~last], value[~last], each[~last])
    share = np.bincount(counts[0], counts[1] * counts[2], d) + 1e-300
    share = share / share.sum()

    def objective(logs: Array) -> Objective:
        return _objective(logs, *counts, value[last], each[last])

    starts = [np.log(np.clip(one, SMALLEST, LARGEST)) for one in (old, *(share * size for size in STARTS))]
    best = max(starts, key=lambda logs: _log_likelihood(np.exp(logs), *counts, value[last], each[last]))
    return np.asarray(np.exp(newton_maximize(objective, best, np.log(SMALLEST), np.log(LARGEST))))


def _objective(logs: Array, at: Index, x: Array, w: Array, totals: Array, rows: Array) -> Objective:
    alpha = np.exp(logs)
    whole, a = float(alpha.sum()), alpha[at]
    common = float(rows @ _digamma_difference(np.asarray(whole), totals))
    slope = np.asarray((np.bincount(at, w * _digamma_difference(a, x), len(alpha)) - common) * alpha, dtype=np.float64)
    own = np.bincount(at, w * (polygamma(1, a) - polygamma(1, a + x)), len(alpha))
    lift = float(rows @ (polygamma(1, whole) - polygamma(1, whole + totals)))
    return Objective(_log_likelihood(alpha, at, x, w, totals, rows), slope, own * alpha**2 - slope, lift, alpha)


def _log_likelihood(alpha: Array, at: Index, x: Array, w: Array, totals: Array, rows: Array) -> float:
    """The log-likelihood: Γ(a + x)/Γ(a) as a^x times a factor near 1 for large a, without cancellation."""
    whole, a = float(alpha.sum()), alpha[at]
    return float(w @ (x * np.log(a / whole) + gamma_excess(a, x)) - rows @ gamma_excess(whole, totals))


def _digamma_difference(a: Array, x: Array) -> Array:
    """ψ(a + x) − ψ(a)."""
    return np.asarray(np.log1p(x / a) + log_minus_digamma(a) - log_minus_digamma(a + x))

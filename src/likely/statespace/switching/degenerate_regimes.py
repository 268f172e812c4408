"""Check for degenerate regimes: predictive covariances of the observation with different supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd

MESSAGE = (
    "SwitchingLinearGaussian: regime {} predicts some observation without any error, other regimes do not: "
    "their densities have no common dominating measure, so regime weights and evidence are not meaningful; give every "
    "regime some observation noise"
)


def incomparable(regimes: Any) -> str:
    """A warning if the predictive covariances of the regimes have different supports, else "".

    >>> import likely as lk
    >>> exact, noisy = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[q]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.0, 1.0))
    >>> incomparable([exact, noisy])[:59], incomparable([exact, exact]), incomparable([noisy, noisy])
    ('SwitchingLinearGaussian: regime 0 predicts some observation', '', '')
    """
    spreads = [_predicted_covariance(m) for m in regimes]
    unit = np.sqrt(np.max([np.diagonal(S) for S in spreads], axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    ranks = [_rank(S) for S in spreads]
    together = _rank(np.sum([S / unit[:, None] / unit for S in spreads], axis=0))
    low = [k for k, rank in enumerate(ranks) if rank < together]
    return MESSAGE.format(low[0]) if low else ""


def _predicted_covariance(m: Any) -> Array:
    """One-step predictive covariance (p, p) of the observation, d frames after an exactly known state."""
    A, Q, C, R = m.transition, m.process_covariance, m.observation, m.observation_covariance
    P = Q
    for _ in range(len(A)):
        gain = P @ C.T @ np.linalg.pinv(spd.symmetric(C @ P @ C.T + R), hermitian=True)
        P = spd.symmetric(A @ (P - gain @ C @ P) @ A.T + Q)
    return spd.symmetric(C @ P @ C.T + R)


def _rank(S: Array) -> int:
    """Rank of a covariance, independent of the units of its columns."""
    unit = np.sqrt(np.maximum(np.diagonal(S), 0.0))
    safe = np.where(unit > 0, unit, 1.0)
    values = np.linalg.eigvalsh(S / safe[:, None] / safe)
    return int((values > 1e-12).sum())

"""Regimes that cannot be compared: one foresees an observation exactly, the other only to some accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd

TOLD = (
    "SwitchingLinearGaussian: regime {} foresees some observation without any error, other regimes do not: "
    "probabilities of "
    "the one and densities of the others are no common measure, and weights and evidence mean little; give every "
    "regime some observation noise"
)


def incomparable(regimes: Any) -> str:
    """A warning, where regimes spread observations in different directions; "" where all spread in the same.

    >>> import likely as lk
    >>> exact, noisy = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[q]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.0, 1.0))
    >>> incomparable([exact, noisy])[:59], incomparable([exact, exact]), incomparable([noisy, noisy])
    ('SwitchingLinearGaussian: regime 0 foresees some observation', '', '')
    """
    spreads = [_predicted_covariance(m) for m in regimes]
    unit = np.sqrt(np.max([np.diagonal(S) for S in spreads], axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    ranks = [_rank(S) for S in spreads]
    together = _rank(np.sum([S / unit[:, None] / unit for S in spreads], axis=0))
    low = [k for k, rank in enumerate(ranks) if rank < together]
    return TOLD.format(low[0]) if low else ""


def _predicted_covariance(m: Any) -> Array:
    """The covariance (p, p) of a frame given all before, as small as d frames after a state known exactly."""
    A, Q, C, R = m.transition, m.process_covariance, m.observation, m.observation_covariance
    P = Q
    for _ in range(len(A)):
        gain = P @ C.T @ np.linalg.pinv(spd.symmetric(C @ P @ C.T + R), hermitian=True)
        P = spd.symmetric(A @ (P - gain @ C @ P) @ A.T + Q)
    return spd.symmetric(C @ P @ C.T + R)


def _rank(S: Array) -> int:
    """Directions in which there is any spread, whatever the columns' units."""
    unit = np.sqrt(np.maximum(np.diagonal(S), 0.0))
    safe = np.where(unit > 0, unit, 1.0)
    values = np.linalg.eigvalsh(S / safe[:, None] / safe)
    return int((values > 1e-12).sum())

"""Exact diffuse initialization of the Kalman filter: the augmented filter of the diffuse phase, and its moments.

The recursions are in `_loops`: `diffuse_pass`, `smooth_diffuse_pass`, and `_diffuse_step` for one frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.core.value import Value
from likely.numerics import covariance_roots


@dataclass(frozen=True, eq=False)
class DiffusePart(Value):
    """Augmented filter of the diffuse phase (de Jong 1991): the state given η, where δ = offset + basis η is diffuse.

    The state is N(mean + loadings η, rootᵀ root). `information_root` [G | g] is the square-root information array of η
    with misfit |G η − g|², `n_free` the number of coordinates of η that are not fixed exactly, and `log_prob` the part
    of the log-likelihood that depends on the information about δ.
    """

    mean: Annotated[Array, declared.numbers("d")]  # (d,)
    root: Annotated[Array, declared.numbers("d d")]  # (d, d)
    loadings: Annotated[Array, declared.numbers("d q")]  # (d, q)
    basis: Annotated[Array, declared.numbers("q q")]  # (q, q)
    offset: Annotated[Array, declared.numbers("q")]  # (q,)
    information_root: Annotated[Array, declared.numbers("r r")]  # (q + 1, q + 1)
    n_free: int
    log_prob: float

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Shapes of a diffuse part of q directions: q + 1 information rows, and at most q free coordinates."""
        q = len(fields["offset"])
        if len(fields["information_root"]) != q + 1:
            return f"information_root must have shape {(q + 1, q + 1)}"
        return "" if 0 <= fields["n_free"] <= q else f"n_free must lie in 0 … {q}"


def diffuse_moments(part: DiffusePart) -> tuple[Array, Array]:
    """Mean and covariance of the state in the diffuse phase; infinite variances in undetermined directions."""
    n_free, q = part.n_free, len(part.offset)
    G, g = part.information_root[:, :n_free], part.information_root[:, q]
    if not (np.isfinite(G).all() and np.isfinite(part.loadings[:, :n_free]).all()):
        got, remedy = "infinite loadings of the diffuse initial state", "the transition matrix is unstable or too large"
        raise DomainError(sentence("LinearGaussian", "states must not overflow", got, remedy))
    unit = np.sqrt((G * G).sum(axis=0))
    unit[unit == 0] = 1.0  # columns may have any units: small ones must not appear undetermined
    G = G / unit
    u, s, vt = np.linalg.svd(G, full_matrices=True)
    determined = s > 1e-11 * max(float(s.max(initial=0.0)), 1e-300)
    v = vt[: len(s)][determined]
    M = part.loadings[:, :n_free] / unit
    mean = part.mean + M @ (v.T @ ((u[:, : len(s)][:, determined].T @ g) / s[determined]))
    factor = (M @ v.T) / s[determined]
    covariance = covariance_roots.square(part.root) + factor @ factor.T
    null_part = M - (M @ v.T) @ v
    diffuse = np.abs(null_part).max(axis=1, initial=0.0) > 1e-9 * np.maximum(np.abs(M).max(axis=1, initial=0.0), 1e-300)
    covariance[diffuse], covariance[:, diffuse] = 0.0, 0.0
    covariance[diffuse, diffuse] = np.inf
    return mean, covariance

"""Fused E-step and accumulation of sufficient statistics: the features of a strip of rows are used for both.

log p(x | k) of all members is one product of the members' natural parameters with the features (1, u, u uᵀ) of rows
(an exponential family); the sufficient statistics are one product of the features with the responsibilities. Between
the two, the caller (mixture, HMM) turns log-densities into responsibilities. Both products find the strip in cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.moments import ColumnMoments, Moments

FAR = 1e4  # squared distance of a mean from the frame's origin, in variances, at which sums are accurate to 1e-11

Responsibilities = Callable[[Array, slice], Array]  # joint log-densities (K, rows) of a strip → weights (K, rows)


def shared_sweep(
    distribution: Any, x: Array, offset: Array, responsibilities: Responsibilities,
    edges: list[tuple[int, int]] | None = None, scored: list[float] | None = None,
) -> Moments | ColumnMoments | None:  # fmt: skip
    """Sufficient statistics of complete rows (n, d), weighted by `responsibilities` of log p(x | k) + offset_k.

    None where this does not apply: few members, one covariance for all, rows with missing entries, or rows so far
    from the means that the product would lose digits. There are no side effects then. `edges` are the boundaries of
    strips, where the caller needs certain ones. `scored` gains Σ responsibility · (log p(x | k) + offset_k).
    """
    form, natural = distribution.form, distribution._natural
    if natural is None or form.shared or not form.reach > 0 or form._too_ill_conditioned:
        return None
    natural = np.array(natural)
    natural[0] += offset
    d, (p, K) = x.shape[1], natural.shape
    sums, weights = np.zeros((p, K)), []
    constant = (distribution._constant + offset)[form.thin]
    length = np.empty(len(x))
    for at, features in form.strips(x, natural, length, edges):
        logs = np.matmul(natural.T, features)
        if len(form.thin):
            form.white_logs(features[1 : d + 1], constant, logs)
        weights.append(responsibilities(logs, at))
        sums += features @ weights[-1].T
    if not length.max(initial=0.0) <= form.reach:  # a NaN is not below it either
        return None
    if scored is not None:
        scored.append(float(np.vdot(natural, sums)))
    return _moments(distribution, x, weights, sums, d)


def _moments(distribution: Any, x: Array, weights: list[Array], sums: Array, d: int) -> Moments | ColumnMoments | None:
    """Moments about the distribution's origin from weighted sums of features in the units of the frame."""
    origin, unit = distribution.form.frame
    total, rest = sums[0].copy(), moments._ratio(sums[1 : d + 1].T, sums[0][:, None])
    shift = np.where(total[:, None] > 0, (origin - distribution.origin) + rest * unit, 0.0)
    if distribution.kind == "full":
        scatter = moments.unpack(sums[d + 1 :], d) - (total[:, None] * rest)[:, :, None] * rest[:, None, :]
        square = np.diagonal(scatter, axis1=1, axis2=2)
        scatter = scatter * unit[:, None] * unit
    else:
        scatter = square = sums[d + 1 :].T - total[:, None] * rest**2
        scatter = scatter * unit**2
    if not np.isfinite(scatter).all():
        return None
    far = np.flatnonzero(moments._far(rest, square, total[:, None], FAR).any(axis=1))
    exact = distribution.take(far).collect(x, np.concatenate([w[far].T for w in weights])) if len(far) else None
    if exact is not None:  # about their own means, where the frame's origin would cost digits
        shift[far], scatter[far] = exact.shift, exact.scatter
    if distribution.kind == "full":
        return Moments.trusted(
            weight=total, origin=distribution.origin, shift=shift, scatter=moments._not_negative(scatter),
            entropy=np.zeros(len(total)), complete=True,
        )  # fmt: skip
    weight = np.repeat(total[:, None], d, axis=1)
    return ColumnMoments.trusted(
        rows=total, weight=weight, origin=distribution.origin, shift=shift, scatter=np.maximum(scatter, 0.0)
    )

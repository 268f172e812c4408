"""Parameter vectors of multivariate t distributions, for Anderson acceleration of EM."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from likely.core import em_acceleration
from likely.core.arrays import Array
from likely.distributions.student_t.student_t_m_step import LARGEST_DOF, LEAST_DOF
from likely.numerics import spd


def as_vector(distribution: Any, unit: Any) -> Array | None:
    """Parameter vector: center, log-Cholesky factor of the scale and 1/ν, relative to those of `unit`."""
    deviation = np.sqrt(unit._shape.variance)
    kind = getattr(distribution, "kind", "full")
    parts = [((distribution.center - unit.center) / deviation).ravel()]
    if kind == "full":
        root = spd.cholesky(np.ascontiguousarray(distribution.scale))
        if root is None:
            return None
        i, j = np.tril_indices(distribution.dim, -1)
        diagonal = np.diagonal(root, axis1=-2, axis2=-1)
        parts += [np.log(diagonal / deviation).ravel(), (root / deviation[..., None])[..., i, j].ravel()]
    else:
        parts.append(0.5 * np.log(distribution.scale / unit.scale).ravel())
    if not getattr(distribution, "fixed_dof", True):
        parts.append((unit.dof / distribution.dof).ravel())
    return np.concatenate(parts)


def from_vector(vector: Array, unit: Any) -> Any:
    """The distribution with this parameter vector; degrees of freedom are clipped to their range."""
    deviation, shape = np.sqrt(unit._shape.variance), unit.center.shape
    size = unit.center.size
    changes: dict[str, Array] = {"center": unit.center + deviation * vector[:size].reshape(shape)}
    rest = vector[size:]
    if getattr(unit, "kind", "full") == "full":
        i, j = np.tril_indices(unit.dim, -1)
        root = np.zeros(unit.scale.shape)
        k = np.arange(unit.dim)
        root[..., k, k] = np.exp(rest[:size].reshape(shape)) * deviation
        below = rest[size : size + size * (unit.dim - 1) // 2].reshape((*shape[:-1], len(i)))
        root[..., i, j] = below * deviation[..., i]
        changes["scale"] = root @ np.swapaxes(root, -1, -2)
    else:
        changes["scale"] = unit.scale * np.exp(2 * rest[: unit.scale.size]).reshape(unit.scale.shape)
    if not getattr(unit, "fixed_dof", True):
        tails = rest[len(rest) - unit.dof.size :].reshape(unit.dof.shape)
        changes["dof"] = unit.dof / np.clip(tails, unit.dof / LARGEST_DOF, unit.dof / LEAST_DOF)
    return unit.replace(**changes)


AcceleratedEM = partial(em_acceleration.AcceleratedEM, as_vector, from_vector)

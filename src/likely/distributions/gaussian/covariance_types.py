"""Kinds of covariance (full, diagonal, spherical): recognized by shape, validated as positive semidefinite."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Literal, get_args

import numpy as np

from likely.core.arrays import Array, Index, check_option
from likely.core.errors import DomainError, ShapeError, sentence
from likely.numerics import small_matrices, spd

CovarianceKind = Literal["full", "diagonal", "spherical"]
KINDS: tuple[CovarianceKind, ...] = get_args(CovarianceKind)
SMALL = 256  # entries of a covariance up to which checking each one is cheap
# members from which, and columns up to which, one pass per entry beats one factorization per member
MANY, FEW = 256, 8


def covariance_and_kind(mean: Array, covariance: Array, kind: CovarianceKind | None) -> tuple[Array, CovarianceKind]:
    """The covariance in the shape of its kind, and the kind; ambiguous shapes raise."""
    if kind is not None:
        check_option(kind, CovarianceKind, "Gaussian", "kind")
    d, lead, shape = mean.shape[-1], mean.shape[:-1], covariance.shape
    if kind is None and len(shape) <= 2 and shape == (d,) * len(shape):
        return covariance, KINDS[2 - len(shape)]
    shared: dict[tuple[int, ...], CovarianceKind] = {(): "spherical", (d,): "diagonal", (d, d): "full"}
    per_member: dict[tuple[int, ...], CovarianceKind] = {(*lead, d, d): "full"} if lead else {}
    if lead and d == 1 and lead != (1,):
        per_member[(*lead, 1)] = "diagonal"  # with one column the shape is not ambiguous
    named = {"spherical": lead, "diagonal": (*lead, d), "full": (*lead, d, d)}
    if kind is not None and shape == named[kind]:
        return covariance, kind
    found = shared.get(shape) or per_member.get(shape)
    if found is None:
        hint = 'diagonals (K, d) need kind="diagonal", numbers (K,) need kind="spherical"' if lead else ""
        expected = f"covariance for mean {mean.shape} must be a number, ({d},), ({d}, {d})" + (
            f" or ({lead[0]}, {d}, {d})" if lead else ""
        )
        raise ShapeError(sentence("Gaussian", expected, shape, hint))
    return _widened(covariance, found, kind or found, d), kind or found


def _widened(covariance: Array, found: str, kind: str, d: int) -> Array:
    """A spherical or diagonal covariance in the shape of a more general kind."""
    if KINDS.index(found) < KINDS.index(kind):
        raise ShapeError(sentence("Gaussian", f"a {kind} covariance is needed", f"a {found} one", "or leave kind out"))
    if found == "spherical" and kind != "spherical":
        covariance, found = np.repeat(covariance[..., None], d, axis=-1), "diagonal"
    return covariance[..., None] * np.eye(d) if (found, kind) == ("diagonal", "full") else covariance


def check_covariance(covariance: Array, kind: str) -> None:
    """Raise unless the covariance is symmetric and positive semidefinite."""
    if kind != "full":
        # a filter makes one or two distributions per time step: the minimum of few numbers is faster in plain Python
        least = min(covariance.ravel().tolist()) if 0 < covariance.size <= SMALL else covariance.min(initial=0.0)
        if least < 0:
            raise DomainError(sentence("Gaussian", "variances must not be negative", float(least)))
    elif covariance.ndim == 2 and covariance.size <= SMALL:
        _check_small(covariance.tobytes(), len(covariance))
    else:
        _check_full(covariance)


@lru_cache(maxsize=256)
def _check_small(numbers: bytes, d: int) -> None:
    """`_check_full` of one small matrix, cached: the distributions of a filter often share one covariance."""
    _check_full(np.frombuffer(numbers).reshape(d, d))


def _check_full(covariance: Array) -> None:
    if (covariance.shape[-1] == 1 and covariance.min() >= 0) or _all_definite(covariance):
        return
    if not spd.is_symmetric(covariance):
        raise DomainError(sentence("Gaussian", "covariance must be symmetric", remedy="pass (C + C.T) / 2"))
    if spd.cholesky(covariance) is not None:
        return
    for c in covariance.reshape(-1, *covariance.shape[-2:]):
        if (np.diagonal(c) < 0).any() or not spd.is_semidefinite(c):
            least = float(np.linalg.eigvalsh(c)[0])
            raise DomainError(sentence("Gaussian", "covariance must not have negative eigenvalues", f"{least:.3g}"))


def _all_definite(covariance: Array) -> bool:
    """True if one vectorized Cholesky factorization shows a large stack with few columns to be positive definite."""
    if covariance.ndim != 3 or len(covariance) < MANY or covariance.shape[-1] > FEW:
        return False
    if not (covariance == np.swapaxes(covariance, 1, 2)).all():
        return False
    return small_matrices.roots(small_matrices.members_last(covariance)) is not None


def whitened(x: Array, center: Array, root: Array) -> tuple[Array, Array]:
    """z = L⁻¹(x − μ) and v = L⁻ᵀ z, for a Cholesky factor L; for variances s: z = (x − μ)/√s, v = (x − μ)/s."""
    delta = x - center
    if root.ndim < 2:
        return delta / np.sqrt(root), delta / root
    if len(root) == 1:
        z = delta / root[0, 0]
        return z, z / root[0, 0]
    inverse = np.linalg.inv(root)
    z = delta @ inverse.T
    return z, z @ inverse


def covariance_score(z: Array, v: Array, root: Array, weight: Any) -> Array:
    """Derivatives of log p in the Cholesky factor (log diagonal, strictly lower triangle), or in log variances."""
    if root.ndim == 2:
        weighted = weight * v
        diagonal = weighted * z * root.diagonal() - 1
        if len(root) == 1:
            return diagonal
        i, j = strictly_lower(len(root))
        return np.concatenate([diagonal, weighted[:, i] * z[:, j]], axis=1)
    per_column = 0.5 * (weight * z * z - 1)
    return per_column if root.ndim or per_column.shape[1] == 1 else per_column.sum(axis=1, keepdims=True)


@cache
def strictly_lower(d: int) -> tuple[Index, Index]:
    """Row and column indices of the strictly lower triangle."""
    i, j = np.tril_indices(d, -1)
    return i, j

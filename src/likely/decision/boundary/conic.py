"""Classification of a quadric in dimensionless coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array, Mask
from likely.core.errors import DomainError, sentence
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import spd

NOTHING = 1e-10  # tolerance for dimensionless numbers
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Canonical:
    """q(z) = Σ aⱼ zⱼ² + bⱼ zⱼ + c with x = origin + z @ back: both covariances are diagonal in z.

    z is in standard deviations of the mean covariance, so every number here is dimensionless. Entries of a
    and b that are 0 up to rounding are 0.
    """

    a: Array  # (d,)
    b: Array  # (d,)
    c: float
    origin: Array  # (d,): between the means
    back: Array  # (d, d): rows are the axes of z, in x
    half: Array  # (d,): the mean of the first distribution; that of the second is its opposite
    mine: Array  # (d,): variances of the first distribution
    other: Array  # (d,): variances of the second, 2 − those of the first
    noise: float  # rounding error due to the covariances

    @property
    def curved(self) -> Mask:
        """Axes with a nonzero quadratic coefficient."""
        return self.a != 0

    @property
    def top(self) -> Array:
        """The extremum of the quadratic part along curved axes; 0 along others."""
        return np.divide(-0.5 * self.b, self.a, out=np.zeros_like(self.b), where=self.curved)

    @property
    def slope(self) -> Array:
        """The linear part along axes without curvature."""
        return np.where(self.curved, 0.0, self.b)

    @property
    def level(self) -> float:
        """The constant at the extremum; 0 up to rounding."""
        parts = np.divide(0.25 * self.b**2, self.a, out=np.zeros_like(self.b), where=self.curved)
        rest = self.c - float(parts.sum())
        return 0.0 if abs(rest) <= (NOTHING + self.noise) * (1 + abs(self.c) + float(np.abs(parts).sum())) else rest

    def value(self, z: Array) -> Array:
        """q of rows (n, d)."""
        return np.asarray((z * (self.a * z + self.b)).sum(axis=-1) + self.c)

    def to_x(self, z: Array) -> Array:
        """Rows in the coordinates of the data."""
        return np.asarray(self.origin + z @ self.back)


def canonical(p: Gaussian, q: Gaussian, offset: float) -> Canonical:
    """log p(x) − log q(x) + offset in coordinates that diagonalize both covariances (simultaneous diagonalization)."""
    P, Q = np.ascontiguousarray(p.covariance_matrix), np.ascontiguousarray(q.covariance_matrix)
    scale = np.maximum(spd.scales(P), spd.scales(Q))
    P, Q = P / scale[:, None] / scale, Q / scale[:, None] / scale
    root = spd.cholesky(0.5 * P + 0.5 * Q)
    if root is None or spd.cholesky(P) is None or spd.cholesky(Q) is None:
        expected, remedy = "both covariances must be positive definite", "add a little to the diagonal"
        raise DomainError(sentence("decision_boundary", expected, "a singular one", remedy))
    inverse = spd.inverse_factor(root)
    mine, turn = np.linalg.eigh(spd.symmetric(inverse @ P @ inverse.T))
    other = np.einsum(
        "ij,ik,kj->j", turn, spd.symmetric(inverse @ Q @ inverse.T), turn
    )  # 2 − variances, without cancellation
    white = np.abs(turn.T @ inverse)
    noise = 8 * EPS * float(np.einsum("ji,ik,jk->j", white, np.abs(P) + np.abs(Q), white).max())
    into = turn.T @ inverse / scale
    half = 0.5 * into @ (p.mean - q.mean)
    a = 0.5 * (mine - other) / (mine * other)
    b = half / mine + half / other
    c = offset + 0.5 * float((np.log(other) - np.log(mine)).sum() + (half**2 * (1 / other - 1 / mine)).sum())
    lost = EPS * (np.abs(into) @ (np.abs(p.mean) + np.abs(q.mean))) + noise * float(np.abs(half).sum())
    a = np.where(np.abs(mine - other) <= NOTHING + noise, 0.0, a)
    b = np.where(np.abs(b) <= NOTHING + 8 * lost * (1 / mine + 1 / other), 0.0, b)
    middle = 0.5 * p.mean + 0.5 * q.mean
    return Canonical(a, b, c, middle, (turn.T @ root.T) * scale, half, mine, other, noise)


def kind_of(form: Canonical) -> str:
    """The kind of {z: q(z) = 0}, which is invariant under affine maps."""
    d, up, down = len(form.a), int((form.a > 0).sum()), int((form.a < 0).sum())
    tilted, level = bool(form.slope.any()), form.level
    if up + down == 0:
        return _flat(d, tilted, level)
    if tilted:
        return _parabolic(d, up, down)
    if up and down:
        return _saddle(d, up + down, level)
    return _round(d, up + down, level if up else -level)


def _flat(d: int, tilted: bool, level: float) -> str:
    if tilted:
        return {1: "point", 2: "line"}.get(d, "hyperplane")
    return "none" if level else "everywhere"


def _parabolic(d: int, up: int, down: int) -> str:
    if d == 2:
        return "parabola"
    if up + down < d - 1:
        return "parabolic cylinder"
    return "saddle" if up and down else "paraboloid"


def _saddle(d: int, rank: int, level: float) -> str:
    if d == 2:
        return "hyperbola" if level else "crossing lines"
    if rank == 2:
        return "hyperbolic cylinder" if level else "crossing hyperplanes"
    if not level:
        return "cone"
    return "hyperboloid" if rank == d else "hyperbolic cylinder"


def _round(d: int, rank: int, level: float) -> str:
    """All coefficients of one sign: `level` is positive if there is no real solution."""
    if level > 0:
        return "none"
    if rank == 1:
        one, two = {
            1: ("point", "two points"),
            2: ("line", "parallel lines"),
        }.get(d, ("hyperplane", "parallel hyperplanes"))
        return two if level else one
    if rank == d:
        return ("ellipse" if d == 2 else "ellipsoid") if level else "point"
    return "cylinder" if level else "flat"


def is_round(matrix: Array) -> bool:
    """True if a matrix is a multiple of the identity, up to rounding."""
    size = float(np.abs(matrix).max())
    return size > 0 and bool((np.abs(matrix / size - np.eye(len(matrix)) * (matrix[0, 0] / size)) <= 1e-9).all())

"""Pairwise distances that are computed once and used for all bandwidths.

In many columns a tree prunes nothing, and matrix products are the fastest way to all distances. Only the nearest others
of each row are stored (of few rows all); a bound decides whether the rest matter at some bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.density.kernels import Kernel

KEPT = 512  # nearest others of each row whose distances are stored; all, if there are few rows
ALL = 2048  # rows up to which all distances are stored: 32 megabytes
TIERS = (32, 128, KEPT)  # the nearest are added in tiers, as long as the rest might matter
BY_COLUMNS = 6  # columns up to which differences cost less than products
CLOSE = 1e-6  # of both lengths: products lose ten digits of smaller squared distances, and differences do not
BLOCK = 2**17  # pairs per block: a megabyte, which stays in cache
WORTH = 5e8  # pairs × (columns + 16) beyond which a second thread pays off


@dataclass(frozen=True, eq=False)
class Cloud:
    """Whitened points, with their centered coordinates and squared norms for matrix products."""

    points: Array  # (m, d)
    weight: Array  # (m,)

    @cached_property
    def _center(self) -> Array:
        return np.asarray(self.points.mean(axis=0))

    @cached_property
    def _centered(self) -> tuple[Array, Array]:
        z = self.points - self._center
        return z, np.einsum("ij,ij->i", z, z)

    def squared_from(self, x: Array) -> Array:
        """Squared distances (n, m) of rows (n, d) to all points; relative errors stay below 1e-9."""
        if x.shape[1] <= BY_COLUMNS:
            return self._by_differences(x)
        (y, size), z = self._centered, x - self._center
        both = np.einsum("ij,ij->i", z, z)[:, None] + size
        far = z @ y.T
        far *= -2.0
        far += both
        both *= CLOSE
        self._exact_where(far < both, x, far)
        return far

    def _by_differences(self, x: Array) -> Array:
        far = (x[:, :1] - self.points[:, 0]) ** 2
        for j in range(1, x.shape[1]):
            step = x[:, j, None] - self.points[:, j]
            step *= step
            far += step
        return far

    def _exact_where(self, close: Mask, x: Array, far: Array) -> None:
        i, j = np.divmod(np.flatnonzero(close.ravel()), close.shape[1])  # half the time of two indices
        step = max(1, 8 * BLOCK // x.shape[1])
        for start in range(0, len(i), step):
            a, b = i[start : start + step], j[start : start + step]
            away = x[a] - self.points[b]
            far[a, b] = np.einsum("ij,ij->i", away, away)

    def by_blocks(self, n: int, work: Callable[[slice], None]) -> None:
        """Work on n rows in blocks whose distances stay in cache; on all cores if there is much work."""
        m, d = self.points.shape
        step = max(64, BLOCK // m)
        blocks = [slice(start, min(start + step, n)) for start in range(0, n, step)]
        with one_blas_thread():
            for _ in ordered_map(work, blocks, cores() if n * m * (d + 16.0) > WORTH else 1):
                pass

    def log_sums(self, x: Array, inv: float, kernel: Kernel, skip: Index | None = None) -> Array:
        """log Σ_n w_n k(|x − y_n|² · inv) of whitened rows (n, d), for row i without point skip[i]."""
        out = np.empty(len(x))

        def fill(part: slice) -> None:
            far = self.squared_from(x[part])
            if skip is not None:
                far[np.arange(len(far)), skip[part]] = np.inf
            out[part] = _summed(far, inv, kernel, self.weight)

        self.by_blocks(len(x), fill)
        return out


def _summed(far: Array, inv: float, kernel: Kernel, weight: Array) -> Array:
    """log Σ w k(r²) with the largest term factored out; `far` is overwritten."""
    far *= inv
    with np.errstate(all="ignore"):
        logs = log_kernel(far, kernel)
        top = logs.max(axis=1)
        logs -= np.where(np.isfinite(top), top, 0.0)[:, None]
        np.exp(logs, out=logs)
        return np.asarray(np.log(logs @ weight) + np.where(np.isfinite(top), top, 0.0))


def log_kernel(r2: Array, kernel: Kernel) -> Array:
    """log k(r²) − log k(0) of squared distances in bandwidths, for all kernels but the cube."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if kernel.code == 0:
            return np.asarray(-0.5 * r2)
        if kernel.code == 1:
            return np.asarray(-0.5 * kernel.b * np.log1p(r2 / kernel.a))
        if kernel.code == 2:
            return -np.sqrt(r2)
        if kernel.code == 5:
            return np.where(r2 <= 1.0, np.log(np.cos(0.5 * np.pi * np.sqrt(np.minimum(r2, 1.0)))), -np.inf)
        if kernel.b == 0:
            return np.where(r2 <= 1.0, 0.0, -np.inf)
        return np.where(r2 <= 1.0, kernel.b * np.log(1.0 - np.minimum(r2, 1.0) ** (0.5 * kernel.a)), -np.inf)


# ------------------------------------------------------------------------ far


def far_log_sums(x: Array, points: Array, weight: Array, kernel: Kernel, skip: Index | None = None) -> Array:
    """log Σ_n w_n k(|x − y_n|) of whitened rows (n, d) so far away that squares would overflow."""
    out, step = np.empty(len(x)), max(1, BLOCK // points.size)
    with np.errstate(all="ignore"):
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            logs = _log_kernel_of(lengths(x[part], points, kernel.code == 4), kernel)
            if skip is not None:
                logs[np.arange(len(logs)), skip[part]] = -np.inf
            top = logs.max(axis=1)
            shift = np.where(np.isfinite(top), top, 0.0)
            out[part] = np.log(np.exp(logs - shift[:, None]) @ weight) + shift
    return out


def lengths(x: Array, points: Array, cube: bool = False) -> Array:
    """|x − y| (n, m) of rows and points without overflow of squares; for the cube, twice the largest entry.

    Differences of halves are taken, for a difference may overflow, and the largest is factored out of the root.
    """
    away = 0.5 * x[:, None] - 0.5 * points
    largest = np.abs(away).max(axis=2)
    if cube:
        return np.asarray(4.0 * largest)
    unit = np.where(largest > 0, largest, 1.0)
    with np.errstate(over="ignore"):
        return np.asarray(2.0 * (unit * np.sqrt(((away / unit[..., None]) ** 2).sum(axis=2))))


def _log_kernel_of(r: Array, kernel: Kernel) -> Array:
    """log k(r) − log k(0) of distances in bandwidths, without r² where the kernel does not need it."""
    if kernel.code == 1:
        return np.asarray(-kernel.b * np.log(np.hypot(1.0, r / np.sqrt(kernel.a))))
    if kernel.code == 2:
        return -r
    return np.where(r <= 1.0, 0.0, -np.inf) if kernel.code == 4 else log_kernel(r * r, kernel)


# ----------------------------------------------------------------------- kept


@dataclass(frozen=True, eq=False)
class NearestDistances:
    """Squared distances of the first rows to their nearest others, for leave-one-out scores at any bandwidth."""

    cloud: Cloud
    near: Array  # (n, k): squared distances in increasing order
    weights: Array  # (n, k): weights of these, or (1,) where all weights are equal
    tiers: tuple[int, ...]
    rest: Array  # (n, tiers): total weight of the others beyond the tier

    @property
    def nearest(self) -> Array:
        """Squared distance of each row to the nearest other (n,)."""
        return self.near[:, 0]

    def first(self, n: int) -> NearestDistances:
        """The first n rows."""
        weights = self.weights if self.weights.ndim == 1 else self.weights[:n]
        return NearestDistances(self.cloud, self.near[:n], weights, self.tiers, self.rest[:n])

    def log_sums(self, inv: float, kernel: Kernel, tolerance: float) -> Array:
        """log Σ_{n≠m} w_n k(|y_m − y_n|² · inv) of each row m, to a relative error of `tolerance`."""
        with np.errstate(all="ignore"):
            top = log_kernel(self.near[:, 0] * inv, kernel)
            total, active = np.zeros(len(top)), np.flatnonzero(np.isfinite(top))
            for start, stop, rest in zip((0, *self.tiers), self.tiers, self.rest.T, strict=False):
                total[active] += self._tier(active, start, stop, inv, kernel, top)
                if stop < self.near.shape[1]:
                    best = log_kernel(self.near[active, stop] * inv, kernel)
                    most = rest[active] * np.exp(best - top[active])
                    active = active[most > tolerance * total[active]]
            if self.tiers[-1] < self.near.shape[1] and len(active):  # what is not stored matters: compute it
                rows = self.cloud.points[active]
                return self._replaced(active, np.log(total) + top, self.cloud.log_sums(rows, inv, kernel, active))
            return np.asarray(np.where(np.isfinite(top), np.log(total) + top, -np.inf))

    def _replaced(self, active: Index, logs: Array, exact: Array) -> Array:
        logs[active] = exact
        return np.where(np.isnan(logs), -np.inf, logs)

    def _tier(self, rows: Index, start: int, stop: int, inv: float, kernel: Kernel, top: Array) -> Array:
        every = len(rows) == len(self.near)
        far = self.near[:, start:stop] if every else self.near[rows, start:stop]
        logs = log_kernel(far * inv, kernel)
        logs -= top[rows, None]
        terms = np.exp(logs, out=logs)
        if self.weights.ndim == 1:
            return np.asarray(terms.sum(axis=1) * self.weights[0])
        weights = self.weights[:, start:stop] if every else self.weights[rows, start:stop]
        return np.einsum("ij,ij->i", terms, weights)


def pairs_of(y: Array, weight: Array, n: int) -> NearestDistances:
    """Distances of the first `n` rows to their nearest others: 513 numbers per row, of few rows all."""
    cloud, m = Cloud(y, weight), len(y)
    alike = bool((weight == weight[0]).all())
    kept = m - 1 if m <= ALL else KEPT
    tiers = (*(t for t in TIERS if t < kept), kept)
    width = kept + 1 if m - 1 > kept else kept  # one more, where others are left out: a lower bound of their distances
    near, weights = np.empty((n, width)), np.empty((1,) if alike else (n, width))

    def fill(part: slice) -> None:
        far = cloud.squared_from(y[part])
        far[np.arange(len(far)), np.arange(part.start, part.stop)] = np.inf  # the row itself is excluded
        if alike:
            nearest = far if width == m - 1 else np.partition(far, width, axis=1)[:, :width]
            near[part] = np.sort(nearest, axis=1)[:, :width]
        else:
            at = np.argsort(far, axis=1)[:, :width]
            near[part], weights[part] = np.take_along_axis(far, at, axis=1), weight[at]

    cloud.by_blocks(n, fill)
    if alike:
        weights[0] = weight[0]
    others = weight.sum() - weight[:n]
    rest = [others - (t * weight[0] if alike else weights[:, :t].sum(axis=1)) for t in tiers]
    return NearestDistances(cloud, near, weights, tiers, np.stack(rest, axis=1))

"""Squared Mahalanobis distances (x − μ)ᵀ Σ⁻¹ (x − μ) of rows to all members of a stack of elliptical distributions.

Many members: one matrix product of quadratic features of x (1, x, x xᵀ) with the members' natural parameters, half the
arithmetic of the Cholesky form and none of its temporaries. A member with a very small eigenvalue would lose digits
that way: the directions of its small eigenvalues are left out of the product and added as squares of whitened
coordinates, whose error grows with the condition number of the factor and not with its square. Few members, and rows
so far from the means that any product would lose digits: triangular solves with Cholesky factors, which are also the
reference implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask, refuse_infinite
from likely.core.job_size import is_large
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.numerics import spd

MANY = 4  # members from which the product beats the factors (measured at d = 2 … 64)
WIDE = 64  # columns up to which it does: the features of a full covariance grow with their square
CHUNK = 1 << 20  # numbers of an intermediate array at a time
ALLOWED = 1e-9  # absolute error of a distance that is accepted from the product; beyond it, factors
SWEEP = 3_000_000  # multiplications per strip of a sweep: with more calls, two threads would wait for each other
MAX_CONDITION = (
    1e5  # condition number (column deviation to smallest deviation) up to which whitening is accurate enough
)
AWAY = 1e10  # squared length in the frame up to which whitened coordinates are used
NARROW = 3  # columns up to which there are so few patterns that NumPy, one after another, needs no compiled loop


class _Narrow(NamedTuple):
    """Directions (D, d) in the frame's units that are added as squares, their centers (D, 1) and members (D,)."""

    directions: Array
    center: Array
    members: Index
    regular: Array  # (T, d, d): precision matrices of the ill-conditioned members without these directions


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Quadratic forms of K members: means (K, d), covariances (K, d, d) or (K, d); leading axis 1 is one for all."""

    mean: Array
    covariance: Array
    whose: str

    @property
    def diagonal(self) -> bool:
        """True if the columns are uncorrelated."""
        return self.covariance.ndim == 2

    @property
    def shared(self) -> bool:
        """True if all members share one covariance."""
        return len(self.covariance) == 1 and len(self.mean) > 1

    # -------------------------------------------------------------- factors

    @cached_property
    def roots(self) -> Array | None:
        """Standard deviations (k, d) or lower Cholesky factors (k, d, d); None if a covariance is singular."""
        if not self.diagonal:
            return spd.cholesky(self.covariance)
        return np.sqrt(self.covariance) if (self.covariance > 0).all() else None

    @cached_property
    def supports(self) -> list[spd.Degenerate]:
        """The support (range) of each singular covariance."""
        full = self.covariance if not self.diagonal else self.covariance[:, :, None] * np.eye(self.covariance.shape[1])
        supports = [spd.rank_deficient_factor(s) for s in full]
        return [s for s in supports if s is not None]

    @cached_property
    def logdet(self) -> Array:
        """log det Σ per member (K,); the log pseudo-determinant where Σ is singular."""
        if self.roots is None:
            logdet = np.array([s.logdet for s in self.supports])
        elif self.diagonal:
            logdet = np.log(self.covariance).sum(axis=1)
        else:
            logdet = spd.logdet(self.roots)
        return np.broadcast_to(logdet, (len(self.mean),))

    @cached_property
    def rank(self) -> Array:
        """Rank of each member's covariance (K,): the dimension of its support."""
        d = self.mean.shape[1]
        rank = np.array([s.factor.shape[1] for s in self.supports]) if self.roots is None else np.array([d])
        return np.broadcast_to(rank, (len(self.mean),))

    # ----------------------------------------------------- the product form

    @cached_property
    def frame(self) -> tuple[Array, Array]:
        """Origin and unit per column in which features are formed: mean of the means, root mean variance."""
        variance = self.covariance if self.diagonal else np.diagonal(self.covariance, axis1=1, axis2=2)
        unit = np.sqrt(variance.mean(axis=0))
        return self.mean.mean(axis=0), np.where(unit > 0, unit, 1.0)

    def work(self, n: int) -> float:
        """Scalar operations for n rows."""
        return float(n * self.mean.size * (1 if self.diagonal or self.shared else self.mean.shape[1]))

    @cached_property
    def _in_frame(self) -> tuple[Array, Array, float]:
        """Means (K, d) and precision matrices in the frame's units, and the largest eigenvalue of the latter."""
        assert self.roots is not None
        origin, unit = self.frame
        center = (self.mean - origin) / unit
        if self.diagonal:
            precision = unit**2 / self.covariance
            return center, precision, float(precision.max())
        inverse = spd.inverse_factor(self.roots) * unit
        if self.shared:  # in whitened coordinates the precision is the identity
            return center @ inverse[0].T, inverse[0], 1.0
        precision = np.swapaxes(inverse, 1, 2) @ inverse
        return center, precision, float(self._largest.max())

    @cached_property
    def _largest(self) -> Array:
        """Largest eigenvalue of each member's precision matrix in the frame's units (K,)."""
        unit = self.frame[1]
        if self.diagonal:
            return np.broadcast_to((unit**2 / self.covariance).max(axis=1), (len(self.mean),))
        assert self.roots is not None
        inverse = spd.inverse_factor(self.roots) * unit
        return np.linalg.norm(inverse, ord=2, axis=(1, 2)) ** 2

    @cached_property
    def reach(self) -> float:
        """Squared length in the frame up to which products keep their error below ALLOWED; −1: use factors."""
        wide = self.mean.shape[1] > WIDE and not (self.diagonal or self.shared)
        if self.roots is None or len(self.mean) < MANY or wide:
            return -1.0
        if not len(self.thin):
            return self.error_reach
        regular = np.delete(self._reaches, self.thin)
        return float(regular.min()) if len(regular) else -1.0 if self._too_ill_conditioned else AWAY

    @cached_property
    def error_reach(self) -> float:
        """Squared length in the frame up to which distances by precision matrices are accurate to ALLOWED."""
        center, _, largest = self._in_frame
        size = (center**2).sum(axis=1)
        if self.shared and not self.diagonal:
            size = self._stretched(size, (((self.mean - self.frame[0]) / self.frame[1]) ** 2).sum(axis=1))
        return ALLOWED / (self._units * spd.EPS * largest) - float(size.max())

    @property
    def _units(self) -> float:
        """Rounding errors of a distance in units of EPS; measured: 8 up to d = 8, 15 at d = 40."""
        return 16 + 0.5 * self.mean.shape[1]

    # ---------------------------------------------- ill-conditioned members

    @cached_property
    def _reaches(self) -> Array:
        """`error_reach` per member (K,)."""
        center = self._in_frame[0]
        return ALLOWED / (self._units * spd.EPS * self._largest) - (center**2).sum(axis=1)

    @cached_property
    def thin(self) -> Index:
        """Ill-conditioned members: an eigenvalue so small that the product would be inaccurate at the other members."""
        if self.shared or self.diagonal or self.roots is None:
            return np.empty(0, np.intp)
        center = self._in_frame[0]
        usual = 3 * (center.shape[1] + float((center**2).sum(axis=1).max()))
        return np.flatnonzero(self._reaches < usual)

    @property
    def _too_ill_conditioned(self) -> bool:
        """True if a member is too ill-conditioned even for whitened coordinates."""
        return bool(self._largest[self.thin].max(initial=0.0) > MAX_CONDITION**2)

    @cached_property
    def _narrow(self) -> _Narrow:
        """The directions in which ill-conditioned members have less variance than the product can take within `reach`.

        Variances and directions are those of an eigendecomposition, whose error is that of the covariance itself, but
        for the small ones, which are taken from the Cholesky factor: v = R Vᵀ(u − c) with RᵀR = Vᵀ Σ⁻¹ V.
        """
        assert self.roots is not None
        unit, center = self.frame[1], self._in_frame[0][self.thin]
        inverse = spd.inverse_factor(self.roots[self.thin]) * unit
        variances, axes = np.linalg.eigh(self.covariance[self.thin] / unit[:, None] / unit)
        least = self._units * spd.EPS * (self.reach + (center**2).sum(axis=1)) / ALLOWED
        rows, members, regular = [], [], np.zeros_like(inverse)
        for t, small in enumerate(variances < least[:, None]):
            V, others = axes[t][:, small], axes[t][:, ~small]
            rows.append(np.linalg.qr(inverse[t] @ V, mode="r") @ V.T)
            members += [self.thin[t]] * len(rows[-1])
            regular[t] = others / variances[t][~small] @ others.T
        at = np.array(members, dtype=np.intp)
        directions = np.concatenate(rows)
        return _Narrow(directions, np.einsum("ij,ij->i", directions, self._in_frame[0][at])[:, None], at, regular)

    def subtract_narrow(self, u: Array, out: Array) -> None:
        """Subtract ½ v² of all narrow directions of u (d, n) in the frame from their members' rows of out (K, n)."""
        directions, center, members, _ = self._narrow
        v = directions @ u
        if is_large():
            from likely.distributions.gaussian._loops.quadratic_features import subtract_squares

            subtract_squares(v, center, members, out)
        else:
            v -= center
            v *= v
            v *= 0.5
            np.subtract.at(out, members, v)

    def _add_narrow(self, x: Array, factor: float, out: Array) -> None:
        """Add factor · v² of all narrow directions of rows x to the columns of out (n, K), by strips of rows."""
        origin, unit = self._frame_columns
        step = max(CHUNK // 8 // len(self._narrow.members), 64)
        for a in range(0, len(x), step):
            v = self._narrow.directions @ ((x[a : a + step].T - origin) / unit)
            v -= self._narrow.center
            np.add.at(out[a : a + step].T, self._narrow.members, factor * v * v)

    def _stretched(self, white: Array, plain: Array) -> Array:
        """Error bound |v||W||u| on the squared length of whitened coordinates v = Wu."""
        return np.sqrt(white * plain) * self._stretch

    @cached_property
    def _stretch(self) -> float:
        return float(np.linalg.norm(self._in_frame[1]))

    def natural(self, factor: float, constant: Array, whole: bool = False) -> Array:
        """Natural parameters (p, K), contiguous per member: features @ natural = factor · distance + constant.

        Narrow directions of ill-conditioned members are left out unless the `whole` distance is asked for.
        """
        center, precision, _ = self._in_frame
        if len(self.thin) and not whole and not self._too_ill_conditioned:
            precision = precision.copy()
            precision[self.thin] = self._narrow.regular
        K, d = center.shape
        if self.diagonal:
            pulled = precision * center
            square = np.broadcast_to(factor * precision, (K, d))
            parts = [factor * (pulled * center).sum(1) + constant, -2 * factor * pulled, square]
        elif self.shared:
            parts = [factor * (center**2).sum(1) + constant, -2 * factor * center, np.full(K, factor)]
        else:
            pulled = np.einsum("kij,kj->ki", precision, center)
            i, j = moments.packing(d)
            quadratic = factor * precision[:, i, j] * np.where(i == j, 1.0, 2.0)
            parts = [factor * (pulled * center).sum(1) + constant, -2 * factor * pulled, quadratic]
        return np.concatenate([part.reshape(K, -1) for part in parts], axis=1).T

    def features(self, x: Array, circle: Array, out: Array) -> Array:
        """Write the features of rows into out (p, n), with buffer `circle`; their squared length in the frame (n,)."""
        d = x.shape[1]
        origin, unit = self._frame_columns
        u = circle[:d]
        u[:] = x.T
        u -= origin
        u /= unit
        if self._white:
            return self._whitened(u, np.einsum("in,in->n", u, u), out)
        if self.diagonal:
            out[0], out[1 : d + 1] = 1.0, u
            np.multiply(u, u, out=out[d + 1 :])
        else:
            moments.expand(circle, d, out)
        return np.add.reduce(out[d + 1 : 2 * d + 1], axis=0)  # the squares come first among the pairs

    def _whitened(self, u: Array, length: Array, out: Array) -> Array:
        """Write 1, whitened coordinates v = Wu and |v|² into out (d + 2, n); the error bound `_stretched` (n,)."""
        d = len(u)
        out[0], out[1 : d + 1] = 1.0, self._in_frame[1] @ u
        np.einsum("in,in->n", out[1 : d + 1], out[1 : d + 1], out=out[d + 1])
        return self._stretched(out[d + 1], length)

    @cached_property
    def _frame_columns(self) -> tuple[Array, Array]:
        """The frame as column vectors (d, 1)."""
        origin, unit = self.frame
        return origin[:, None], unit[:, None]

    # ------------------------------------------------------------ evaluation

    def complete(self, x: Array, factor: float, constant: Array, natural: Array | None = None) -> Array:
        """factor · distance + constant for complete rows (n, K); NaN for rows with missing entries."""
        natural = self.natural(factor, constant) if natural is None and self.reach > 0 else natural
        with np.errstate(all="ignore"):
            return self.evaluate(x, factor, constant, natural)

    def evaluate(self, x: Array, factor: float, constant: Array, natural: Array | None) -> Array:
        """`complete` called with NumPy's warnings off: turning them off takes a sixth of the time of one row."""
        if natural is None or self.reach <= 0:
            return self.by_factors(x, factor, constant)
        out, length = self._by_product(x, natural)
        if self._too_ill_conditioned:
            for k in self.thin:
                out[:, k] = factor * self._distance(x, int(k)) + constant[k]
        elif len(self.thin):
            self._add_narrow(x, factor, out)
        unsafe = (length > self.reach).nonzero()[0]  # not NaN: such a row has a missing entry, and factors do not help
        if len(unsafe):
            out[unsafe] = self.by_factors(x[unsafe], factor, constant)
        return out

    def _by_product(self, x: Array, natural: Array) -> tuple[Array, Array]:
        """features @ natural (n, K), and the rows' squared lengths in the frame (n,).

        The result is contiguous per member: so the product is fastest, and so are sums over members.
        """
        n, d = x.shape
        if n < moments.FEW:
            features = np.empty((len(natural), n))
            length = self.features(x, np.empty((d + d // 2, n)), features)
            return np.matmul(natural.T, features).T, length
        if is_large():
            return self._by_loop(x, natural)
        out, length = np.empty((natural.shape[1], n)), np.empty(n)
        for at, circle, features in moments.feature_strips(n, d, *self._size(natural)):
            length[at] = self.features(x[at], circle, features)
            np.matmul(natural.T, features, out=out[:, at])
        return out.T, length

    def _by_loop(self, x: Array, natural: Array) -> tuple[Array, Array]:
        """`_by_product` with the compiled loop that forms the features of a strip in one pass: bit-for-bit equal."""
        from likely.distributions.gaussian._loops.quadratic_features import expand_rows

        n, (p, K), (origin, unit) = len(x), natural.shape, self.frame
        out, length = np.empty((K, n)), np.empty(n)
        step = min(moments.feature_rows(*self._size(natural)), n)
        features = moments.scratch("features", p, step)
        plain = moments.scratch("circle", 1 + x.shape[1], step) if self._white else features
        for a in range(0, n, step):
            at = slice(a, min(a + step, n))
            expand_rows(_for_loop(x[at]), origin, unit, *self._pairs, plain, length[at])
            part = features[:, : at.stop - a]
            if self._white:
                length[at] = self._whitened(plain[1:, : at.stop - a], length[at], part)
            np.matmul(natural.T, part, out=out[:, at])
        return out.T, length

    def strips(
        self, x: Array, natural: Array, length: Array, edges: list[tuple[int, int]] | None = None
    ) -> Iterator[tuple[slice, Array]]:
        """Strips of rows: slice and features (p, rows); `length` (n,) becomes |u|²."""
        n, d = x.shape
        from likely.distributions.gaussian._loops.quadratic_features import expand_rows

        by_loop, (origin, unit) = is_large(), self.frame
        if edges is None:
            step = max(min(moments.feature_rows(*self._size(natural), SWEEP), n), 1)
            edges = [(a, min(a + step, n)) for a in range(0, n, step)]
        step = max((b - a for a, b in edges), default=1)
        circle, features = moments.scratch("circle", d + d // 2, step), moments.scratch("features", len(natural), step)
        for a, b in edges:
            rows, at, part = b - a, slice(a, b), features[:, : b - a]
            if by_loop:
                expand_rows(_for_loop(x[at]), origin, unit, *self._pairs, features, length[at])
            else:
                length[at] = self.features(x[at], circle[:, :rows], part)
            yield at, part

    def _size(self, natural: Array) -> tuple[int, int]:
        """Number of features, and the larger dimension of the product with them."""
        p, K = natural.shape
        return p, max(K, self.mean.shape[1]) if self._white else K

    @property
    def _white(self) -> bool:
        """True if all members share one full covariance: features are whitened coordinates and their squared length."""
        return self.shared and not self.diagonal

    @cached_property
    def _pairs(self) -> Index:
        """Columns whose products are features (2, pairs)."""
        d = self.mean.shape[1]
        if self._white:
            return np.empty((2, 0), np.intp)
        return np.stack([np.arange(d)] * 2) if self.diagonal else moments.packing(d)

    def by_factors(self, x: Array, factor: float, constant: Array) -> Array:
        """`complete` by one Cholesky factor per member: slower, and as accurate as the covariance allows."""
        with np.errstate(all="ignore"):
            if self.shared and self.roots is not None and not self._scattered:
                out = factor * self._to_all(x) + constant
            else:
                out = np.stack([factor * self._distance(x, k) + constant[k] for k in range(len(self.mean))], axis=1)
        overflowed = np.isnan(out) & np.isfinite(x).all(axis=1, keepdims=True)
        if overflowed.any():  # a finite row so far from the mean that its distance overflows
            out[overflowed] = np.inf * np.sign(factor)
        return out

    @cached_property
    def _scattered(self) -> bool:
        """True if means lie so far apart that distances in whitened coordinates lose digits near a mean."""
        assert self.roots is not None
        centered = self.mean - self.frame[0]
        white = centered / self.roots[0] if self.diagonal else spd.solve_factor(self.roots[0], centered).T
        return bool(not (white**2).sum(axis=1).max() <= 1e8)  # 10,000 deviations: 1e-12 of a distance of 1

    def _to_all(self, x: Array) -> Array:
        """Squared distances (n, K) under one covariance: Euclidean distances of whitened rows and means, in strips."""
        assert self.roots is not None
        out = np.empty((len(x), len(self.mean)))
        origin = self.frame[0]
        white = [
            z / self.roots[0] if self.diagonal else spd.solve_factor(self.roots[0], z).T
            for z in (x - origin, self.mean - origin)
        ]
        step = max(1, CHUNK // max(self.mean.size, 1))
        for a in range(0, len(x), step):
            delta = white[0][a : a + step, None, :] - white[1]
            np.einsum("nkd,nkd->nk", delta, delta, out=out[a : a + step])
        return out

    def _distance(self, x: Array, k: int) -> Array:
        """Squared distances (n,) to member k; inf outside the support of a singular covariance."""
        z = x - self.mean[k]
        j = k if len(self.covariance) > 1 else 0
        if self.roots is None:
            support = self.supports[j]
            v = z @ support.inverse
            off = support.outside_range(z, np.abs(self.mean[k]))
            return np.where(off, np.inf, np.einsum("nd,nd->n", v, v)) + 0.0 * z.sum(axis=1)
        if self.diagonal:
            v = z / self.roots[j]
            return np.einsum("nd,nd->n", v, v)
        v = spd.solve_factor(self.roots[j], z)
        return np.einsum("dn,dn->n", v, v)

    def incomplete(self, x: Array, quick: bool = True) -> tuple[Array, Array, Array]:
        """Squared distance, log det Σ_oo (both (n, K)) and number of observed columns (n,) of incomplete rows.

        `quick=False` factorizes the marginal covariance of each pattern: the reference implementation.
        """
        refuse_infinite(x, self.whose)
        mask = observed(x)
        if self.roots is None:
            return self._incomplete_singular(x)
        if self.diagonal:
            return self._incomplete_diagonal(x, mask)
        return self._incomplete_full(x, mask, quick)

    def _incomplete_diagonal(self, x: Array, mask: Mask) -> tuple[Array, Array, Array]:
        assert self.roots is not None
        observed_columns = mask.astype(np.float64)
        origin, unit = self.frame
        u = np.where(mask, (x - origin) / unit, 0.0)
        near = np.einsum("nd,nd->n", u, u) <= self.reach
        q = np.empty((len(x), len(self.mean)))
        if near.any():  # one product of [m, m x, m x²] for all members
            center, precision, _ = self._in_frame
            precision = np.broadcast_to(precision, center.shape)
            pulled = precision * center
            q[near] = u[near] ** 2 @ precision.T - 2 * u[near] @ pulled.T + observed_columns[near] @ (pulled * center).T
        for k in range(len(self.mean)) if not near.all() else ():
            v = np.where(mask[~near], (x[~near] - self.mean[k]) / self.roots[min(k, len(self.roots) - 1)], 0.0)
            q[~near, k] = np.einsum("nd,nd->n", v, v)
        logdet = np.broadcast_to(observed_columns @ np.log(self.covariance).T, q.shape)
        return np.maximum(q, 0.0), logdet, mask.sum(axis=1)

    def _incomplete_full(self, x: Array, mask: Mask, quick: bool) -> tuple[Array, Array, Array]:
        origin, unit = self.frame
        filled = np.where(mask, x, origin)
        u = (filled - origin) / unit
        q, logdet = np.empty((len(x), len(self.mean))), np.empty((len(x), len(self.mean)))
        patterns = Patterns.of(mask)
        if self.shared or mask.shape[1] <= NARROW:
            return self._incomplete_by_pattern(x, patterns)
        few_missing = patterns.seen.sum(axis=1) * 2 >= mask.shape[1]
        if not (quick and self.error_reach > 0):
            few_missing = np.zeros(len(few_missing), bool)
        few, others = patterns.split(few_missing)
        inaccurate = self._by_precision(filled, u, few, q, logdet)
        self._by_covariance(u, others, q, logdet)
        if inaccurate is not None:  # rows too far from the frame's origin for the product
            self._by_covariance(u, inaccurate, q, logdet)
        logdet += 2 * (mask @ np.log(unit))[:, None]
        return q, logdet, mask.sum(axis=1)

    @cached_property
    def _plain(self) -> Array:
        """Natural parameters of the squared distance itself."""
        return self.natural(1.0, np.zeros(len(self.mean)), whole=True)

    @cached_property
    def _for_loops(self) -> tuple[Array, Array, Array, Array, Array]:
        """Means, covariances, precisions, Λμ and log det Σ in the frame's units with K as last axis, for the loops."""
        origin, unit = self.frame
        center = np.ascontiguousarray(((self.mean - origin) / unit).T)
        covariance = np.broadcast_to(self.covariance / unit[:, None] / unit, (len(self.mean), len(unit), len(unit)))
        if self.error_reach > 0 and not self.shared:
            _, precision, _ = self._in_frame
            pulled = np.ascontiguousarray(np.einsum("kij,kj->ik", precision, center.T))
            base = self.logdet - 2 * np.log(unit).sum()
        else:
            precision, pulled, base = np.empty((0, 0, 0)), np.empty((0, 0)), np.empty(0)
        # copies, always: a read-only view would be one more type, and the loop compiled once more for it
        covariance, precision = (np.array(np.moveaxis(a, 0, -1), order="C") for a in (covariance, precision))
        return center, covariance, precision, pulled, base

    def _by_precision(self, filled: Array, u: Array, few: Patterns, q: Array, logdet: Array) -> Patterns | None:
        """Write q and logdet of rows with few missing entries, by blocks of the precision matrix.

        Returns the patterns for which this is not accurate enough.
        """
        if not len(few.order):
            return None
        from likely.distributions.gaussian._loops.missing_values import by_precision

        rows = filled[few.order]
        if self.reach > 0:
            part, length = self._by_product(rows, self._plain)
            part = np.ascontiguousarray(part)
        else:
            part = self.by_factors(rows, 1.0, np.zeros(len(self.mean)))
            length = np.einsum("nd,nd->n", u[few.order], u[few.order])
        if not (length <= self.error_reach).all():
            return few
        _, _, precision, pulled, base = self._for_loops
        determinant = np.empty_like(part)
        by_precision(u[few.order], few.seen, few.starts, precision, pulled, base, part, determinant)
        q[few.order], logdet[few.order] = np.maximum(part, 0.0), determinant
        return None

    def _by_covariance(self, u: Array, patterns: Patterns, q: Array, logdet: Array) -> None:
        """Write q and logdet of rows by the Cholesky factor of each pattern's marginal covariance Σ_oo."""
        if not len(patterns.order):
            return
        from likely.distributions.gaussian._loops.missing_values import by_covariance

        center, covariance, _, _, _ = self._for_loops
        rows = np.ascontiguousarray(u[patterns.order])
        part, determinant = np.empty((len(rows), len(self.mean))), np.empty((len(rows), len(self.mean)))
        by_covariance(rows, patterns.seen, patterns.starts, center, covariance, part, determinant)
        q[patterns.order], logdet[patterns.order] = part, determinant

    def _incomplete_by_pattern(self, x: Array, patterns: Patterns) -> tuple[Array, Array, Array]:
        """One covariance for all members, or few patterns: each pattern's marginal is factorized for all its rows."""
        q, logdet = np.empty((len(x), len(self.mean))), np.empty((len(x), len(self.mean)))
        none = np.zeros(len(self.mean))
        for p, columns in enumerate(patterns.seen):
            rows = patterns.order[patterns.starts[p] : patterns.starts[p + 1]]
            at = np.flatnonzero(columns)
            if not len(at):
                q[rows], logdet[rows] = 0.0, 0.0
                continue
            part = self._marginal(at)
            natural = part._plain if part.reach > 0 and not len(part.thin) else None  # else `complete` adds them
            q[rows], logdet[rows] = part.complete(x[np.ix_(rows, at)], 1.0, none, natural), part.logdet
        n_observed = np.empty(len(x))
        n_observed[patterns.order] = patterns.counts()
        return np.maximum(q, 0.0), logdet, n_observed

    def _marginal(self, at: Index) -> Quadratic:
        """The form of the columns `at`; kept where there are few patterns of them."""
        kept, key = self._marginals, at.tobytes()
        if key not in kept:
            part = Quadratic(self.mean[:, at], self.covariance[:, at[:, None], at], self.whose)
            if self.mean.shape[1] > NARROW:
                return part
            kept[key] = part
        return kept[key]

    @cached_property
    def _marginals(self) -> dict[bytes, Quadratic]:
        return {}

    def _incomplete_singular(self, x: Array) -> tuple[Array, Array, Array]:
        """Singular covariances: the marginal of each pattern, one after another."""
        mask = observed(x)
        patterns = Patterns.of(mask)
        q, logdet = np.zeros((len(x), len(self.mean))), np.zeros((len(x), len(self.mean)))
        rank = np.zeros((len(x), len(self.mean)))
        for p, columns in enumerate(patterns.seen):
            rows = patterns.order[patterns.starts[p] : patterns.starts[p + 1]]
            at = np.flatnonzero(columns)
            covariance = self.covariance[:, at] if self.diagonal else self.covariance[:, at[:, None], at]
            part = Quadratic(self.mean[:, at], covariance, self.whose)
            q[rows] = part.by_factors(x[np.ix_(rows, at)], 1.0, np.zeros(len(self.mean)))
            logdet[rows], rank[rows] = part.logdet, part.rank
        return q, logdet, rank


def _for_loop(x: Array) -> Array:
    """Rows of the array type that the loop was compiled for: writeable and aligned."""
    return x if x.flags.writeable and x.flags.aligned else x.copy()

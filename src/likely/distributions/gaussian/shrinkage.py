"""Shrinkage of class covariances (regularized discriminant analysis) with the weight chosen by leave-one-out.

Each class covariance S is shrunk toward a target T (the pooled covariance, or its own diagonal) by a weight λ
(Ney 3.5; Friedman 1989): (1 − λ) S + λ T. λ maximizes the leave-one-out log-likelihood of the rows.

From the rows this is exact for a given prior or none (`ShrunkCovariances.by_rows`): leaving a row out is a rank-one
downdate of S and of T, so one simultaneous diagonalization of both serves all rows and all weights. Of a weak prior,
only the covariance that it follows changes with the row; its mean and its shrinkage of correlations are held fixed.
From sufficient statistics alone (`ShrunkCovariances.by_statistics`) it is an approximation: the squared distance
of a row enters by its average over the class, which the statistics hold (Hoffbeck and Landgrebe, 1996), and by the
distribution of the leverages of Gaussian rows about their mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv

from likely.core.arrays import Array, Index
from likely.core.blocks import ROWS
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.variance_floors import column_floor, regularized
from likely.numerics import spd

GRID = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 45)])  # shrinkage weights λ that are compared
TIE = 1e-9  # of the log-likelihood: weights within this of the best count as equal; the smallest of them is taken
LEAST = 1e-9  # of the target's variance: variance of directions in the null space, as in `spd.repaired`
SMALL = 0.03  # leverages up to which the change of a diagonal is expanded: the remainder is below 1e-5 nats per row
MANY = 64  # rows from which a series expansion pays
SIZES = 64  # row weights with a diagonalization of their own; where there are more, similar ones share one


def pooled_covariance(covariances: Array, weight: Array, pooling: str) -> Array:
    """Pooled covariance (d, d) of K covariances (K, d, d): weighted by rows ("observation") or equally ("class")."""
    shares = weight if pooling == "observation" else (weight > 0).astype(np.float64)
    return np.asarray(np.tensordot(shares / shares.sum(), covariances, axes=1))


@dataclass(frozen=True, eq=False)
class ShrunkCovariances:
    """Class covariances S = scale/rows, their shrinkage targets T, and the change of both when a row is left out.

    Without a row x of weight m and deviation δ from the mean, the mean moves by m δ/(κ − m) away from x, and with
    β = κm/(κ − m)

        (rows − m) S' = scale + e(m) P − β (1 + e(m)/m) δδᵀ,   T' = τ(m) T + σ(m) scale + e(m) η(m) P − β γ(m) δδᵀ

    (a diagonal target is the diagonal of S'). e(m) is the change of a prior that follows the pooled covariance P. A
    target pooled by observation is then P itself; one pooled by class is not.
    """

    weight: Array  # (K,): weight of the rows
    scatter: Array  # (K, d, d): Σ w δδᵀ of the rows
    mean: Array  # (K, d)
    kappa: Array  # (K,): effective number of rows of the mean
    scale: Array  # (K, d, d)
    rows: Array  # (K,): effective number of rows of the covariance, including the prior's pseudo-counts
    target: Array  # (K, d, d)
    pooling: str  # of the target: "observation", "class", or "none" for the class's own diagonal
    total: float  # effective number of rows of a target pooled by observation
    following: float  # pseudo-counts of the prior, where it follows the pooled covariance; else 0

    @classmethod
    def of(cls, stats: Moments, prior: Any, pooling: str, following: bool) -> ShrunkCovariances:
        """Class covariances and targets for statistics of K classes under a prior (None: maximum likelihood).

        A prior with a scale matrix (`NormalInverseWishart`, `PseudoObservations`) enters S and T, so they are what
        "full" and "pooled" would give; any other prior is one of the mean only. `following` says that the prior was
        made from the pooled covariance of these statistics ("weak"). Directions in the null space of the pooled
        covariance get the same variance in all classes, whatever their weights: they must not decide.
        """
        stats = regularized(stats)
        n, d = stats.weight, stats.shift.shape[-1]
        mean, kappa, scale, rows = stats.mean, n, np.array(stats.scatter), n
        extra: Any = 0.0
        if _has_scale_matrix(prior):
            post = prior.update(stats)
            mean, kappa, scale = post.mean, post.kappa, np.array(np.broadcast_to(post.scale, scale.shape))
            extra = prior.dof + d + 2.0 if hasattr(prior, "dof") else prior.rows
            rows = n + extra
        floor = column_floor(stats.pooled())[0]
        made = cls(
            weight=n, scatter=stats.scatter, mean=mean, kappa=kappa, scale=scale, rows=rows, target=scale,
            pooling=pooling, total=float(n.sum()), following=float(np.max(extra)) if following else 0.0,
        )  # fmt: skip
        return made._with_target(prior, floor)

    @property
    def own(self) -> Array:
        """Class covariances S (K, d, d), at λ = 0; 0 for classes without rows."""
        return self.scale / np.maximum(self.rows, 1e-300)[:, None, None]

    @property
    def within(self) -> Array:
        """Pooled within-class covariance P (d, d): the mode of a prior that follows it."""
        return np.asarray(self.scatter.sum(axis=0) / self.weight.sum())

    def at(self, share: Array) -> Array:
        """Shrunk covariances (1 − λ_k) S_k + λ_k T_k per class."""
        s = share[:, None, None]
        return spd.symmetric((1 - s) * self.own + s * self.target)

    def _with_target(self, prior: Any, floor: Array) -> ShrunkCovariances:
        """The same with the shrinkage target: own diagonal, or pooled covariance (under a prior, its MAP estimate)."""
        own, total = self.own, self.total
        if self.pooling == "none":
            diagonal = np.maximum(np.diagonal(own, axis1=1, axis2=2), floor)
            pooled = np.maximum(np.diagonal(pooled_covariance(own, self.weight, "observation")), floor)
            diagonal = np.where((self.rows > 1)[:, None], diagonal, pooled)  # the variance of one row is 0
            return replace(self, target=diagonal[:, None, :] * np.eye(len(floor)))
        if self.pooling == "class":
            target = pooled_covariance(own, self.weight, "class")
        elif _has_scale_matrix(prior) and not self.following and _one_covariance(prior):
            added = (self.scale - prior.scale).sum(axis=0)  # the posterior mode of one covariance for all classes
            total += float(prior.dof + len(floor) + 1 + len(own) if hasattr(prior, "dof") else prior.rows)
            target = (prior.scale + added) / total
        else:  # one prior per class: the mode of the product of the posteriors is Σ scale / Σ rows
            target = pooled_covariance(own, self.rows, "observation")
            total = total if self.following else float(self.rows.sum())
        target[np.diag_indices(len(target))] = np.maximum(np.diagonal(target), floor)
        return replace(self, target=np.array(np.broadcast_to(_regular(target), own.shape)), total=total)

    # ------------------------------------------------------- leave-one-out weight

    def by_rows(self, x: Array, weight: Array, edges: Index) -> Array:
        """Shrinkage weight λ per class (K,) by leave-one-out, for distinct rows (n, d) sorted by class.

        All copies of a row are left out together. A class with fewer than two distinct rows takes the target.
        """
        out = np.ones(len(self.weight))
        for k in range(len(out)):
            at = slice(edges[k], edges[k + 1])
            if edges[k + 1] - edges[k] > 1:
                out[k] = _best(self.left_out(k, x[at], weight[at]))
        return out

    def left_out(self, k: int, x: Array, m: Array) -> Array:
        """Leave-one-out log-likelihood (grid,) of the rows x (n, d) of class k with weights m, up to a constant."""
        z = x - self.mean[k]
        if self.pooling == "none":
            return self._left_out_of_diagonal(k, z, m)
        total = np.zeros(len(GRID))
        separate = self.pooling == "class" and self.following > 0  # then the prior's change is no multiple of T
        for middle, similar in _similar_weights(m) if separate else [(1.0, slice(None))]:
            w, spectrum = self._diagonalized_ends(k, middle)
            y = z[similar] @ w.T
            np.square(y, out=y)
            for size, equal in _equal_weights(m[similar]):
                a, rank = self._spectrum(k, spectrum, size, middle)
                q = y[equal] @ (1.0 / a).T
                distance = self._deviation_growth(k, size) * q
                total += size * _log_likelihood(np.log(a).sum(axis=1), rank * q, distance).sum(axis=0)
        return total

    def _diagonalized_ends(self, k: int, m: float) -> tuple[Array, Array]:
        """Simultaneous diagonalization (W, s) of scale matrix and target, with the prior's change for weight m."""
        scale, target = self.scale[k], self.target[k]
        if self.pooling == "class" and self.following:
            change = self._prior_change(m) * self.within
            scale, target = scale + change, target + (1.0 / self.rows[self.weight > 0]).mean() * change
        return _simultaneous_diagonalization(scale, target)

    def _spectrum(self, k: int, spectrum: Array, m: Any, near: float) -> tuple[Array, Array]:
        """Eigenvalues (grid, d) in units of the target before the rank-one downdate, and its factor (grid,).

        `spectrum` is that of `_diagonalized_ends` for the weight `near`; the further change of the prior counts as a
        multiple of the target.
        """
        n, rest, extra = self.rows[k], self.rows[k] - m, self._prior_change(m)
        beta = self.kappa[k] * m / (self.kappa[k] - m)
        further = extra
        if self.pooling == "class":
            further = extra - self._prior_change(near)
            inverse_rows = 1.0 / self.rows[self.weight > 0]
            kept = (1.0 / rest - 1.0 / n) / len(inverse_rows)
            gamma = 1.0 / rest / len(inverse_rows) + extra / m * (kept + inverse_rows.mean())
            target = 1.0 + further * inverse_rows.mean() + kept * (spectrum + further)
        else:
            target, gamma = np.full_like(spectrum, self.total / (self.total - m)), 1.0 / (self.total - m)
        g = GRID[:, None]
        a = (1 - g) * (spectrum + further) / rest + g * target
        return np.maximum(a, LEAST), beta * ((1 - GRID) * (1 + extra / m) / rest + GRID * gamma)

    def _prior_change(self, m: Any) -> Any:
        """e(m): factor of the pooled covariance by which a prior that follows it changes."""
        return self.following * m / (self.weight.sum() - m) if self.following else 0.0 * m

    def _deviation_growth(self, k: int, m: Any) -> Any:
        """Factor (κ/(κ − m))² by which the squared deviation from the mean grows without the row."""
        return (self.kappa[k] / (self.kappa[k] - m)) ** 2

    def _left_out_of_diagonal(self, k: int, z: Array, m: Array) -> Array:
        """Leave-one-out log-likelihood (grid,) for a diagonal target, all of whose entries change.

        Most rows change it little: log det and distance are expanded to second and third order in that change. For
        the others the correlation matrix without the row is diagonalized.
        """
        total = np.zeros(len(GRID))
        exact = np.ones(len(z), dtype=bool)
        for size, equal in _equal_weights(m):
            if len(z[equal]) >= MANY:
                at = np.arange(len(z))[equal]
                few, value = self._expanded(k, z[equal], size)
                exact[at[few]] = False
                total += size * value
        at = np.flatnonzero(exact)
        step = max(2**18 // max(z.shape[1] ** 2, len(GRID) * z.shape[1]), 1)
        for i in range(0, len(at), step):
            chunk = at[i : i + step]
            total += m[chunk] @ self._diagonalized(k, z[chunk], m[chunk])
        return total

    def _scale_without(self, k: int, m: Any) -> tuple[Any, Any]:
        """The scale matrix without a row before the rank-one downdate, and the factor of the latter."""
        extra, kappa = self._prior_change(m), self.kappa[k]
        scale = self.scale[k] + np.asarray(extra)[..., None, None] * (self.within if self.following else 0.0)
        return scale, kappa * m / (kappa - m) * (1 + extra / m)

    def _diagonalized(self, k: int, z: Array, m: Array) -> Array:
        """Leave-one-out log-likelihoods (n, grid) of rows, by one eigendecomposition per row."""
        scale, beta = self._scale_without(k, m)
        unit = spd.scales(self.scale[k])
        z, scale = z / unit, scale / unit[:, None] / unit
        scale -= (beta[:, None] * z)[:, :, None] * z[:, None, :]
        variance = np.maximum(np.diagonal(scale, axis1=1, axis2=2), LEAST)
        root = np.sqrt(variance)
        r, V = np.linalg.eigh(spd.symmetric(scale / root[:, :, None] / root[:, None, :]))
        y = np.einsum("nij,ni->nj", V, z / root) ** 2
        a = np.maximum((1 - GRID)[:, None] * r[:, None, :] + GRID[:, None], LEAST)
        rest = (self.rows[k] - m)[:, None]
        q = (y[:, None, :] / a).sum(axis=2) * rest * self._deviation_growth(k, m)[:, None]
        return -0.5 * (np.log(a).sum(axis=2) + np.log(variance).sum(axis=1)[:, None] - z.shape[1] * np.log(rest) + q)

    def _expanded(self, k: int, z: Array, m: float) -> tuple[Index, Array]:
        """Indices of rows with small leverage, and the sum of their log-likelihoods (grid,) by series expansion."""
        scale, beta = self._scale_without(k, m)
        unit, own, d = spd.scales(scale), spd.scales(self.scale[k]), z.shape[1]
        few = np.flatnonzero(beta * np.square(z / unit).sum(axis=1) <= SMALL)
        r, V = np.linalg.eigh(spd.symmetric(scale / unit[:, None] / unit))
        rest = self.rows[k] - m
        logs = 2 * np.log(unit / own).sum() - d * np.log(rest)
        total = np.zeros(len(GRID))
        for strip in np.split(few, range(ROWS, len(few), ROWS)):
            x = z[strip] / unit
            y, v = x @ V, x * x
            for i, share in enumerate(GRID):
                a, u = np.maximum((1 - share) * r + share, LEAST), beta * share
                change, q = _diagonal_change(y, v, V, a, u)
                logdet = np.log(a).sum() + logs - change
                distance = self._deviation_growth(k, m) * rest * q
                total[i] += _log_likelihood(logdet, beta * (1 - share) * q, distance).sum()
        return few, total

    # ---------------------------------------------- from sufficient statistics

    def by_statistics(self) -> Array:
        """Shrinkage weight λ per class (K,) by approximate leave-one-out from sufficient statistics.

        λ = 0 and λ = 1 are among the weights that are compared, so by this criterion neither is better than the
        result.
        """
        out = np.ones(len(self.weight))
        for k, n in enumerate(self.weight):
            if n > 1:
                out[k] = _best(float(n) * self._expected(k, float(n)))
        return out

    def _expected(self, k: int, n: float) -> Array:
        """Mean log-likelihood (grid,) of a left-out row of weight 1, up to a constant."""
        w, spectrum = self._diagonalized_ends(k, 1.0)
        variance = np.maximum(spd.trace_form(w[:, None, :], self.scatter[k]), 0.0) / n
        moved = self._deviation_growth(k, 1.0)
        if self.pooling == "none":
            d, rest, g = len(spectrum), self.rows[k] - 1.0, GRID[:, None]
            a = np.maximum((1 - g) * spectrum / rest + g * self.rows[k] / rest, LEAST)
            unit = self.kappa[k] / (self.kappa[k] - 1.0) / rest * (1 + self._prior_change(1.0))
            q, dof = _distances(variance, a)
            logs = _log_rest((1 - GRID) * unit * q, dof, n)
            logs = logs + d * _log_rest(GRID * unit * q / d, np.ones_like(q), n)
            rank = ((1 - GRID) + GRID / d) * unit
        else:
            a, rank = self._spectrum(k, spectrum, 1.0, 1.0)
            q, dof = _distances(variance, a)
            logs = _log_rest(rank * q, dof, n)
        with np.errstate(invalid="ignore"):
            value = -0.5 * (np.log(a).sum(axis=1) + logs + moved * _over_rest(q, rank, dof, n))
        return np.where(np.isfinite(value), value, -np.inf)


def _has_scale_matrix(prior: Any) -> bool:
    """True for a prior of mean and covariance whose posterior has a scale matrix and a number of rows."""
    return hasattr(prior, "scale") and hasattr(prior, "kappa")


def _one_covariance(prior: Any) -> bool:
    """True for a prior with one scale matrix and one number of rows for all classes."""
    return np.ndim(prior.scale) == 2 and np.ndim(prior.dof if hasattr(prior, "dof") else prior.rows) == 0


def _best(value: Array) -> float:
    """The smallest λ whose log-likelihood equals the maximum up to rounding; 1 if none is finite."""
    top = float(np.max(value, initial=-np.inf, where=~np.isnan(value)))
    if not np.isfinite(top):
        return 1.0
    return float(GRID[int(np.argmax(value >= top - TIE * max(abs(top), 1.0)))])


def _equal_weights(m: Array) -> Iterator[tuple[float, Any]]:
    """Distinct weights, and the rows that have each."""
    sizes, which = np.unique(m, return_inverse=True)
    if len(sizes) == 1:
        yield float(sizes[0]), slice(None)
        return
    order = np.argsort(which, kind="stable")
    yield from zip(sizes.tolist(), np.split(order, np.cumsum(np.bincount(which))[:-1]), strict=True)


def _similar_weights(m: Array) -> Iterator[tuple[float, Index]]:
    """Groups of rows with similar weights (one weight per group, if there are few), and the median weight of each."""
    sizes, which = np.unique(m, return_inverse=True)
    parts = np.array_split(np.arange(len(sizes)), min(len(sizes), SIZES))
    for part in parts:
        yield float(sizes[part[len(part) // 2]]), np.flatnonzero((which >= part[0]) & (which <= part[-1]))


def _log_likelihood(logdet: Array, leverage: Array, distance: Array) -> Array:
    """−½ [log det + log(1 − u) + q/(1 − u)]: log-density of a row after the rank-one downdate with leverage u."""
    rest = 1.0 - leverage
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rest > 0, -0.5 * (logdet + np.log(rest) + distance / rest), -np.inf)


def _diagonal_change(y: Array, v: Array, V: Array, a: Array, u: float) -> tuple[Array, Array]:
    """For A = V diag(a) Vᵀ and rows x = V y with v = x²: −log det(I − u A⁻¹ diag(v)), and xᵀ (A − u diag(v))⁻¹ x."""
    inverse = (V / a) @ V.T
    h = (y / a) @ V.T
    vh = v * h
    g = vh @ inverse
    change = u * (v @ np.diagonal(inverse)) + 0.5 * u**2 * ((v @ inverse**2) * v).sum(axis=1)
    q = (y * y) @ (1.0 / a) + u * (vh * h).sum(axis=1) + u**2 * (g * vh).sum(axis=1) + u**3 * (v * g * g).sum(axis=1)
    return change, q


def _simultaneous_diagonalization(scale: Array, target: Array) -> tuple[Array, Array]:
    """W and s with W T Wᵀ = I and W B Wᵀ = diag(s) for target T and scale matrix B."""
    root = spd.cholesky(np.ascontiguousarray(target[None]))
    w = spd.inverse_factor(spd.cholesky(_regular(target)[None]) if root is None else root)[0]  # type: ignore[arg-type]
    values, vectors = np.linalg.eigh(spd.symmetric(w @ scale @ w.T))
    return vectors.T @ w, np.maximum(values, 0.0)


def _regular(covariance: Array) -> Array:
    """A positive definite target: correlations are shrunk until the Cholesky factorization exists."""
    for share in (0.0, 1e-9, 1e-6, 1e-3, 1e-1, 1.0):
        candidate = (1 - share) * covariance
        candidate[np.diag_indices(len(candidate))] = np.diagonal(covariance)
        if spd.cholesky(np.ascontiguousarray(candidate[None])) is not None:
            break
    return candidate


def _distances(variance: Array, a: Array) -> tuple[Array, Array]:
    """Mean squared distance (grid,) of rows with these variances per axis, and its effective degrees of dof."""
    terms = variance / a
    q = terms.sum(axis=1)
    return q, q**2 / np.maximum((terms**2).sum(axis=1), 1e-300)


def _leverages(u: Array, dof: Array, n: float) -> Array:
    """Leverages (grid, m) with mean u: quantiles of the beta distribution, which leverages of Gaussian rows have.

    As many quantiles as there are rows, up to twelve: the largest leverage of few rows is not extreme.
    """
    a = np.maximum(0.5 * dof, 1e-6)
    inside = np.clip(u, 1e-300, 1 - 1e-12)
    m = int(min(max(n, 2.0), 12.0))
    at = betaincinv(a[:, None], (a * (1 - inside) / inside)[:, None], (np.arange(m) + 0.5) / m)
    return np.minimum(at * (u / np.maximum(at.mean(axis=1), 1e-300))[:, None], 1.0)  # scaled to the known mean


def _log_rest(u: Array, dof: Array, n: float) -> Array:
    """Mean of log(1 − u) over the leverages u of the rows."""
    with np.errstate(divide="ignore"):
        return np.where(u < 1, np.log1p(-_leverages(u, dof, n)).mean(axis=1), -np.inf)


def _over_rest(q: Array, b: Array, dof: Array, n: float) -> Array:
    """Mean of q / (1 − b q) over the squared distances q of the rows."""
    u = _leverages(b * q, dof, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(b > 0, (u / (1 - u)).mean(axis=1) / np.where(b > 0, b, 1.0), q)
    return np.where(b * q < 1, over, np.inf)

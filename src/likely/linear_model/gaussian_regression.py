"""Linear regression with Gaussian noise: the conditional density p(y | x) = N(y | W φ(x), Σ), one or a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.basis.polynomials import Identity
from likely.core import declared
from likely.core.arrays import (
    Array,
    BadEntry,
    Index,
    checked_labels,
    n_rows,
    numbers,
    parameter,
    refuse_infinite,
    rows,
    unmasked,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.columns import Columns
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.core.warnings import Note, warn
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import Patterns
from likely.distributions.stacks.stack_statistics import joined
from likely.linear_model.least_squares import RegressionStats
from likely.numerics import spd
from likely.numerics.special import LOG_2PI

COLUMNS = Identity()  # the default basis
FLOOR = 1e-14  # of the variance of a target: noise variances below it are rounding errors of an exact fit


@dataclass(frozen=True, eq=False)
class GaussianRegression(Value):
    """Linear regression p(y | x) = N(y | W φ(x), Σ) of m targets on M basis functions   (Bishop 3.1, Herbst 3.1).

    NaN in y is unobserved: a row without any target contributes nothing, missing targets among several are integrated
    out.

    Parameters
    ----------
    coefficients : array-like (M,), (m, M) or (K, m, M)
        Coefficients W: (M,) for one target or (m, M), with a leading axis K for a stack.
    covariance : float or array-like (m, m), (K,) or (K, m, m)
        Covariance Σ of the noise, one per member of a stack, or shared by all.

    Examples
    --------
    >>> line = GaussianRegression([1.0, 2.0], 0.25)
    >>> line.given([[3.0]]).mean, line.log_prob([7.0], [[3.0]]).round(4)
    (array([[7.]]), array([-0.2258]))
    """

    one_distribution = True  # a prior applies to all parameters or to none

    coefficients: Annotated[Array, declared.numbers("* m M")]  # W: (m, M) or (K, m, M)
    covariance: Annotated[Array, declared.numbers("* m m | m m")]  # Σ: (m, m), shared in a stack, or (K, m, m)
    basis: Annotated[Any, declared.value("a basis", "design", "n_functions")] = COLUMNS

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that noise covariances can be covariances."""
        return "" if spd.is_symmetric(fields["covariance"]) else "covariance must be symmetric"

    def __post_init__(self) -> None:
        me = "GaussianRegression"
        W = parameter(self.coefficients, me, "coefficients")
        W = W[None] if W.ndim == 1 else W
        if W.ndim not in (2, 3) or 0 in W.shape:
            raise ShapeError(sentence(me, "coefficients must have shape (M,), (m, M) or (K, m, M)", W.shape))
        covariance = _covariance(parameter(self.covariance, me, "covariance"), W)
        if not spd.is_symmetric(covariance) or spd.cholesky(covariance) is None:
            raise DomainError(sentence(me, "covariance must be symmetric and positive definite"))
        if not (hasattr(self.basis, "design") and hasattr(self.basis, "n_functions")):
            remedy = "as lk.basis.Polynomial(3)"
            raise DomainError(sentence(me, "basis must be a basis", type(self.basis).__name__, remedy))
        self._set(coefficients=W, covariance=covariance)

    # ------------------------------------------------------------------ shape

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.coefficients) if self.coefficients.ndim == 3 else None

    @property
    def targets(self) -> int:
        """Number of targets m."""
        return int(self.coefficients.shape[-2])

    @property
    def tied(self) -> bool:
        """True for a stack with one noise covariance for all members."""
        return self.covariance.ndim < self.coefficients.ndim

    @property
    def _covariances(self) -> Array:
        """Noise covariances in the shape of a stack (K, m, m), or (m, m)."""
        return np.broadcast_to(self.covariance, (*self.coefficients.shape[:-1], self.targets))

    def member(self, k: int) -> GaussianRegression:
        """One member of a stack."""
        return self.replace(coefficients=self.coefficients[k].copy(), covariance=np.array(self._covariances[k]))

    def take(self, index: Any) -> GaussianRegression:
        """Members `index` as a stack."""
        covariance = self.covariance if self.tied else self.covariance[index]
        return self.replace(coefficients=self.coefficients[index], covariance=np.array(covariance))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: coefficients, and the free entries of the noise covariances."""
        noises = 1 if self.members is None or self.tied else self.members
        return self.coefficients.size + noises * self.targets * (self.targets + 1) // 2

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the noise covariances."""
        return float(np.linalg.eigvalsh(self.covariance).min())

    def in_words(self) -> str:
        """The kind of conditional density."""
        return f"a linear regression of {self.targets} targets on {self.coefficients.shape[-1]} basis functions"

    # ---------------------------------------------------------------- density

    def design(self, x: Any) -> Array:
        """Values of the basis functions; an entry of x that is missing or infinite is an error."""
        x = _regressors(x)
        phi = self.basis.design(x)
        if phi.shape[1:] != self.coefficients.shape[-1:]:
            expected = f"x must have as many columns as give {self.coefficients.shape[-1]} basis functions"
            raise ShapeError(sentence("GaussianRegression", expected, f"{phi.shape[1]} functions of {x.shape}"))
        with np.errstate(all="ignore"):
            if not np.isfinite(phi.sum()):
                refuse_missing_values(x, phi)
        return np.asarray(phi)

    def given(self, x: Any) -> Gaussian:
        """The densities of y at the rows of x: Gaussians, one member per row, with one covariance."""
        if self.members is not None:
            expected = "given(x) is defined for one regression"
            raise DomainError(sentence("GaussianRegression", expected, f"a stack of {self.members}", "take member(k)"))
        return Gaussian.trusted(mean=self.design(x) @ self.coefficients.T, covariance=self.covariance, kind="full")

    def _means(self, phi: Array) -> Array:
        """W φ of each row: (n, m), or (n, K, m) for a stack."""
        flat = phi @ self.coefficients.reshape(-1, phi.shape[1]).T
        return flat.reshape(len(phi), *self.coefficients.shape[:-1])

    def log_prob(self, y: Any, x: Any) -> Array:
        """Conditional log-density log p(y | x) of each row; 0 where no target is observed.

        Parameters
        ----------
        y : array-like (n,) or (n, m)
            Targets; NaN is unobserved.
        """
        return map_rows(lambda block: self._log_prob_block(block["y"], block["x"]), self._paired(y, x), self.members)

    def _paired(self, y: Any, x: Any) -> Columns:
        y = unmasked(y) if hasattr(y, "shape") else numbers(y, "GaussianRegression")
        x = _regressors(x)
        if len(x) != n_rows(y):
            raise ShapeError(sentence("GaussianRegression", f"x must have one row per target ({n_rows(y)})", len(x)))
        return Columns(y=y, x=x)

    def _targets(self, y: Any) -> Array:
        y = rows(y, self.targets, "GaussianRegression")
        refuse_infinite(y, "GaussianRegression")
        return y

    def _log_prob_block(self, y: Any, x: Any) -> Array:
        y = self._targets(y)
        seen = np.flatnonzero(~np.isnan(y).all(axis=1))
        out = np.zeros((len(y), self.members or 1))
        if len(seen):
            residual = y[seen, None] - self._means(self.design(x[seen])).reshape(len(seen), -1, self.targets)
            out[seen] = self._log_noise_density(residual)
        return out if self.members is not None else out[:, 0]

    def _log_noise_density(self, residual: Array) -> Array:
        """log N(r | 0, Σ) of residuals (n, K, m) with missing entries: (n, K)."""
        if self.targets == 1:
            variance = np.atleast_1d(self._covariances[..., 0, 0])
            return -0.5 * (LOG_2PI + np.log(variance) + residual[..., 0] ** 2 / variance)
        covariances = self._covariances.reshape(-1, self.targets, self.targets)
        zero = np.zeros(self.targets)
        noises = [Gaussian.trusted(mean=zero, covariance=c.copy(), kind="full") for c in covariances]
        return np.stack([noise.log_prob(residual[:, k]) for k, noise in enumerate(noises)], axis=1)

    def sample(self, x: Any, rng: Generator) -> Array:
        """One sample of y for each row of x: (n, m), or (n, K, m) for a stack."""
        mean = self._means(self.design(x))
        root = np.linalg.cholesky(self._covariances)
        return np.asarray(mean + np.einsum("...ij,n...j->n...i", root, rng.standard_normal(mean.shape)))

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(
        cls, y: Any, x: Any, basis: Any = None, members: int | None = None, tied: bool = False
    ) -> GaussianRegression:
        """Initial model: least squares of the first rows, the same for all members."""
        basis = COLUMNS if basis is None else basis
        y = rows(unmasked(y)[:ROWS] if hasattr(y, "shape") else y, None, "GaussianRegression")
        x = _regressors(x)[: len(y)]
        m, M = y.shape[1], basis.n_functions(x.shape[1])
        spread = np.nanvar(y, axis=0) if len(y) else np.ones(m)
        covariance = np.diag(np.where(spread > 0, spread, 1.0))
        one = cls.trusted(coefficients=np.zeros((m, M)), covariance=covariance, basis=basis)
        stats = one.collect(y, x)
        W, covariance = stats.solve().coefficients, covariance if members is None or tied else covariance[None]
        if members is None:
            return one.replace(coefficients=W)
        covariance = covariance if tied else np.repeat(covariance, members, axis=0)
        return one.replace(coefficients=np.repeat(W[None], members, axis=0), covariance=covariance)

    def collect(
        self, y: Any, x: Any, weight: Any = None, *, labels: Index | None = None, log_mask: Any = None
    ) -> RegressionStats:
        """Sufficient statistics of rows (φ(x), y): weight, mean and scatter.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) is the member of each row (−1: none). Targets missing
        among several are replaced by their conditional expectation under this model, with their conditional covariance
        added (the E-step of EM). `log_mask` is for conditional densities that hide labels: there are none here.
        """
        if log_mask is not None:
            raise DomainError(sentence("GaussianRegression", "log_mask is for hidden labels, and there are none"))
        pairs = self._paired(y, x)
        n = len(pairs)
        w = weights(weight, n, "GaussianRegression")
        if w is not None and w.ndim == 2 and w.shape[1] != self.members:
            expected = f"weight must have one column per member ({self.members})"
            raise ShapeError(sentence("GaussianRegression", expected, w.shape))
        if n > ROWS * BLOCKS:
            blocks = Blocks.of(pairs, w, labels=labels)
            return Threads().total(lambda b: self.collect(b.x["y"], b.x["x"], b.weight, labels=b.labels), blocks)
        if labels is not None:
            if self.members is None:
                raise DomainError(sentence("GaussianRegression", "labels are for a stack", "one regression"))
            one_hot = checked_labels(labels, n, self.members, "GaussianRegression")[:, None] == np.arange(self.members)
            w = one_hot * (1.0 if w is None else w if w.ndim == 2 else w[:, None])
        elif self.members is not None and (w is None or w.ndim == 1):
            w = np.repeat((np.ones(n) if w is None else w)[:, None], self.members, axis=1)
        return self._collect(self._targets(pairs["y"]), pairs["x"], w)

    def _collect(self, y: Array, x: Any, w: Array | None) -> RegressionStats:
        missing = np.isnan(y)
        seen = np.flatnonzero(~missing.all(axis=1))
        if len(seen) < len(y):
            y, x, missing, w = y[seen], x[seen], missing[seen], None if w is None else w[seen]
        z = np.concatenate([self.design(x), y], axis=1)
        part = np.flatnonzero(missing.any(axis=1))
        if len(part):
            z[np.ix_(part, np.arange(z.shape[1] - self.targets, z.shape[1]))] = np.nan_to_num(y[part])
        origin = z[0] if len(z) else np.zeros(self.coefficients.shape[-1] + self.targets)
        if not len(part):
            return RegressionStats.of(self._moments(z, w, origin), self.targets)
        whole = np.flatnonzero(~missing.any(axis=1))
        sums = self._moments(z[whole], None if w is None else w[whole], origin)
        sums = sums + self._expected_moments(z[part], missing[part], None if w is None else w[part], origin)
        return RegressionStats.of(sums, self.targets)

    def _moments(self, z: Array, w: Array | None, origin: Array) -> moments.Moments:
        if w is None or w.ndim == 1:
            sums = moments.of_rows(z, w, origin)
            if sums is None:
                raise moments.overflow("GaussianRegression")
            return sums
        return moments.of_weighted_rows(z, w, origin)

    def _expected_moments(self, z: Array, missing: Any, w: Array | None, origin: Array) -> moments.Moments:
        """Expected moments of rows in which some of several targets are missing, for each member."""
        w = np.ones(len(z)) if w is None else w
        patterns, m = Patterns.of(~missing), self.targets
        out = []
        for k, one in enumerate([self] if self.members is None else map(self.member, range(self.members))):
            wk = w if w.ndim == 1 else np.ascontiguousarray(w[:, k])
            filled, means = z.copy(), z[:, :-m] @ one.coefficients.T
            extra, entropy = np.zeros((m, m)), 0.0
            for p, mask in enumerate(patterns.seen):
                at = patterns.order[patterns.starts[p] : patterns.starts[p + 1]]
                u, o = np.flatnonzero(~mask), np.flatnonzero(mask)  # unobserved and observed targets
                slope = np.linalg.solve(one.covariance[np.ix_(o, o)], one.covariance[np.ix_(o, u)])
                rest = spd.symmetric(one.covariance[np.ix_(u, u)] - one.covariance[np.ix_(u, o)] @ slope)
                residual = z[at][:, -m:][:, o] - means[np.ix_(at, o)]
                filled[np.ix_(at, z.shape[1] - m + u)] = means[np.ix_(at, u)] + residual @ slope
                extra[np.ix_(u, u)] += wk[at].sum() * rest
                entropy += 0.5 * wk[at].sum() * (len(u) * (LOG_2PI + 1) + np.linalg.slogdet(rest)[1])
            sums = self._moments(filled, wk, origin)
            scatter = np.array(sums.scatter)
            scatter[-m:, -m:] += extra
            out.append(sums.replace(scatter=scatter, entropy=np.asarray(entropy), complete=False))
        return moments.stacked(out) if self.members is not None else out[0]

    def joined_stats(self, parts: list[RegressionStats]) -> RegressionStats:
        """Statistics of all members, concatenated from those of consecutive groups."""
        sums = joined(None, [p.sums for p in parts])
        names = ("rows", "log_noise")
        return parts[0].replace(
            sums=sums, **{name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
        )

    def _checked(self, stats: RegressionStats) -> RegressionStats:
        wanted = (self.coefficients.shape[:-2], self.coefficients.shape[-1] + self.targets)
        got = (stats.rows.shape, stats.sums.mean.shape[-1])
        if got != wanted or stats.targets != self.targets:
            expected = f"statistics of {wanted[1]} columns, {self.members or 'no'} members are needed"
            raise ShapeError(sentence("GaussianRegression", expected, f"{got[1]} columns, rows {got[0]}"))
        return stats

    def refit(self, stats: RegressionStats, prior: Any = None) -> GaussianRegression:
        """Weighted least squares and the residual covariance, or with a prior the posterior mode.

        A member without rows keeps its parameters. Where basis functions depend on each other the coefficients have
        minimum norm; an exact fit gets a noise variance of 1e-14 of the target's. Warnings say so.
        """
        stats = self._checked(stats)
        if prior is not None:
            whole = stats.as_complete()  # the M-step takes expected statistics of missing targets as they are
            found = (prior._as_tied() if self.tied and hasattr(prior, "tied") else prior).update(whole).point("mode")
            return self.replace(coefficients=found.coefficients, covariance=found.covariance)
        if not stats.total_weight > 0:
            expected = "at least one row with weight is needed"
            raise DataError(sentence("GaussianRegression", expected, "none", "or give a prior"))
        found = stats.solve()
        has_rows = (stats.rows > 0)[..., None, None]
        W = np.where(has_rows, found.coefficients, self.coefficients)
        self._tell_dependent(found.dependent & has_rows[..., 0])
        if self.tied:
            scatter, weight = found.residual_scatter.sum(axis=0), stats.rows.sum()
        else:
            scatter, weight = found.residual_scatter, stats.rows
        by = np.asarray(weight)[..., None, None]
        covariance = np.where(by > 0, scatter / np.where(by > 0, by, 1.0), self.covariance)
        return self.replace(coefficients=W, covariance=self._regular(covariance, stats))

    def _tell_dependent(self, dependent: Any) -> None:
        if dependent.any():
            columns = tuple(np.flatnonzero(dependent.reshape(-1, dependent.shape[-1]).any(axis=0)).tolist())
            text = "the basis functions are linearly dependent ({columns} a combination of those before): "
            warn(Note("GaussianRegression", f"{text}coefficients of minimum norm were taken", columns=columns))

    def residual_covariance(self, stats: RegressionStats) -> Array:
        """The noise covariance of largest likelihood at these coefficients.

        Returns
        -------
        ndarray (m, m)
            Covariance of the residuals.
        """
        rest = self._residual_root(self._checked(stats))
        scatter = np.swapaxes(rest, -1, -2) @ rest
        return self._regular(scatter / stats.rows[..., None, None], stats)

    def _residual_root(self, stats: RegressionStats) -> Array:
        """A (..., D, m) with AᵀA = Σ w (y − W φ)(y − W φ)ᵀ, without cancellation."""
        W, m = self.coefficients, self.targets
        eye = np.broadcast_to(np.eye(m), (*W.shape[:-2], m, m))
        return np.asarray(stats.root @ np.concatenate([-np.swapaxes(W, -1, -2), eye], axis=-2))

    def _regular(self, covariance: Array, stats: RegressionStats) -> Array:
        """Noise covariances that are densities: variances of exact fits are raised, with a warning."""
        pooled = stats.pooled()
        least = FLOOR * pooled.target_scatter / max(float(pooled.rows), 1e-300)
        least = np.where(least > 0, least, 1e-16 * np.maximum(pooled.sums.mean[-self.targets :] ** 2, 1.0))
        out = np.array(covariance.reshape(-1, self.targets, self.targets))
        for one in out:
            variance = np.diagonal(one)
            low = variance < least
            if low.any() or spd.cholesky(one) is None:
                one[np.diag_indices(self.targets)] = np.where(low, least, variance)
                if spd.cholesky(one) is None:
                    one[:] = spd.repaired(one)[0]
                text = "the targets are fitted exactly: noise variances were set to 1e-14 of the targets' variances"
                warn(Note("GaussianRegression", text))
        return out.reshape(covariance.shape)

    def objective(self, stats: RegressionStats, prior: Any = None) -> float:
        """Expected log-likelihood + entropy of missing targets + log prior."""
        stats, m = self._checked(stats), self.targets
        rest = self._residual_root(stats)
        root: Array = np.asarray(np.linalg.cholesky(self._covariances), dtype=np.float64)
        distance = (np.linalg.solve(root, np.swapaxes(rest, -1, -2)) ** 2).sum(axis=(-2, -1))
        value = -0.5 * np.sum(stats.rows * (m * LOG_2PI + spd.logdet(root)) + m * stats.log_noise + distance)
        value += np.sum(stats.entropy)
        if prior is not None:
            prior = prior._as_tied() if self.tied and hasattr(prior, "tied") else prior
            value += np.sum(prior.log_density(self))
        return float(value)

    def weak_prior(self, stats: RegressionStats) -> Any:
        """Weakly informative prior: a hundredth of a row for the coefficients, a few rows for the noise."""
        from likely.linear_model.priors import weak_regression_prior

        return weak_regression_prior(self, stats)


def _covariance(given: Array, W: Array) -> Array:
    """A noise covariance (m, m), or one per member (K, m, m), from a number, one per member, or matrices."""
    m, lead = W.shape[-2], W.shape[:-2]
    if given.ndim == 0 or (m > 0 and given.shape == lead and lead):
        given = given[..., None, None] * np.eye(m)
    if given.shape not in ((m, m), (*lead, m, m)):
        expected = f"covariance must be a number, ({m}, {m}){f' or ({lead[0]}, {m}, {m})' if lead else ''}"
        raise ShapeError(sentence("GaussianRegression", expected, given.shape))
    return given


def _regressors(x: Any) -> Any:
    """Rows of x that can be indexed; a vector is one column."""
    x = unmasked(x) if hasattr(x, "shape") else np.asarray(x)
    return x[:, None] if x.ndim == 1 else x


def refuse_missing_values(x: Any, phi: Array) -> None:
    """Raise an error that names the entry of x that makes a basis function undefined, if there is one."""
    table = np.asarray(x)
    if table.dtype.kind == "f":
        bad = np.argwhere(~np.isfinite(table))
        if len(bad):
            (i, j), expected = bad[0], "entries of x must be finite where the target is observed"
            remedy = "leave the row out, or fill it in (lk.impute)"
            raise BadEntry("GaussianRegression", expected, table[i, j], int(i), int(j), remedy)
    bad = np.argwhere(~np.isfinite(phi))
    if len(bad):
        i, j = bad[0]
        expected = f"basis function {j} must be finite"
        raise BadEntry("GaussianRegression", expected, phi[i, j], int(i), int(j), "rescale the columns of x")

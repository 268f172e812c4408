"""Elliptically symmetric distributions: p(x) ∝ f((x − μ)ᵀ S⁻¹ (x − μ)) with any radial profile f."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import (
    Array,
    BadEntry,
    Index,
    PerMember,
    check_option,
    n_rows,
    numbers,
    parameter,
    refuse_infinite,
    rows,
    sliceable,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.em_loop import FitStep
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Stats
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.distribution import Distribution, in_units, lone
from likely.distributions.elliptical.radial_profile import (
    PROFILES,
    Profile,
    ProfileName,
    check_function,
    log_volume,
    mean_log,
    profile_of,
)
from likely.distributions.elliptical.weighted_rows import WeightedRows, side_by_side, weighted_rows
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.variance_floors import column_floor, raise_to_floor
from likely.distributions.statistics.counts import member_weights, one_column
from likely.distributions.student_t.em_extrapolation import AcceleratedEM
from likely.distributions.student_t.student_t_m_step import prior_mode
from likely.distributions.symmetric_distribution import Centered
from likely.numerics import spd

if TYPE_CHECKING:
    from likely.distributions.elliptical.radial_quantiles import RadialDistribution

ROUNDS = 2000  # iterations of reweighting in one refit, at most
STILL = 1e-12  # convergence tolerance of a step, in units of the scale
SUBSAMPLE = 16_384  # rows of the subsample on which the first fit is made, where there are many
HALVINGS = 30
SLOWEST = 1 / 64  # smallest damping factor of steps that oscillate


class _Reweighted(NamedTuple):
    """Statistics for the posterior mode: moments under weights w r, and the weight Σ w of the rows."""

    moments: Moments
    rows: Array


@dataclass(frozen=True, eq=False)
class Elliptical(Centered, Distribution):
    """Elliptical distribution with a radial profile.

    p(x) = c det(S)^{−1/2} f(q), q = (x − μ)ᵀ S⁻¹ (x − μ).

    The radial profile f is "gaussian" e^{−q/2}, "t" (1 + q/ν)^{−(ν+d)/2}, "laplace" e^{−√q}, "power" e^{−q^β/2},
    "logistic" e^{−√q}/(1 + e^{−√q})², "uniform" (1 inside the ellipse q ≤ 1), or a function.

    Maximum likelihood by iteratively reweighted moments, with weights r = −2f′(q)/f(q). Where log f is convex in q (all
    but "power" with β > 1 and "uniform") each step increases the likelihood; elsewhere steps are halved until they do.
    Rows must be complete: marginals have the same profile only for "gaussian" and "t".

    Parameters
    ----------
    profile : str or callable
        Name of the profile, or a function log f(q), whose normalization constant is computed by adaptive quadrature to
        1e-10 (it cannot be saved to a file).
    center : array-like (d,) or (K, d)
        Center μ.
    scale : float or array-like, default 1.0
        Scale matrix S: a number, (d,), (d, d), or (K, d, d) for a stack.
    shape : float, optional
        Parameter ν of "t", or β of "power".

    See Also
    --------
    Gaussian : The Gaussian profile, with missing values.
    StudentT : The t profile, with missing values.
    EllipticalDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 1.5.

    Examples
    --------
    >>> Elliptical("laplace", [0.0], 1.0).log_prob([[0.0], [2.0]]).round(4)
    array([-0.6931, -2.6931])
    >>> Elliptical(lambda q: -0.5 * q, [0.0, 0.0], 1.0).log_prob([[0.0, 0.0]]).round(6)
    array([-1.837877])
    """

    profile: Annotated[ProfileName | Callable[[Array], ArrayLike], declared.option(ProfileName)]
    center: Annotated[Array, declared.numbers("* d")]  # (d,) or (K, d)
    scale: Annotated[Array, declared.numbers("* d d")] = 1.0  # type: ignore[assignment]  # (d, d) or (K, d, d)
    shape: Annotated[Array, declared.numbers("", 0)] = None  # type: ignore[assignment]  # (): shape parameter of the profile

    def __post_init__(self) -> None:
        if not callable(self.profile):
            check_option(self.profile, ProfileName, "Elliptical", "profile", "a function log f(q)")
        center = np.atleast_1d(parameter(self.center, "Elliptical", "center"))
        if center.ndim > 2 or 0 in center.shape:
            raise ShapeError(sentence("Elliptical", "center must have shape (d,) or (K, d)", center.shape))
        if callable(self.profile):
            check_function(self.profile, center.shape[-1])
        default = 1.0 if callable(self.profile) else PROFILES[self.profile].default
        shape = parameter(default if self.shape is None else self.shape, "Elliptical", "shape")
        if shape.ndim or not shape > 0:
            raise DomainError(sentence("Elliptical", "shape must be one positive number", shape.tolist()))
        scale = Gaussian(center, parameter(self.scale, "Elliptical", "scale")).covariance_matrix
        if spd.cholesky(np.ascontiguousarray(scale)) is None:
            raise DomainError(sentence("Elliptical", "scale must be positive definite", "a singular one"))
        self._set(center=center, scale=np.array(scale), shape=shape)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.center.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.center) if self.center.ndim == 2 else None

    def member(self, k: int) -> Elliptical:
        """One member of a stack."""
        return self.replace(center=self.center[k].copy(), scale=self.scale[k].copy())

    def take(self, index: Any) -> Elliptical:
        """Members `index` as a stack."""
        return self.replace(center=self.center[index], scale=self.scale[index])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: centers and scales; the profile is given."""
        d = self.dim
        return (self.members or 1) * (d + d * (d + 1) // 2)

    @cached_property
    def _radial(self) -> Profile:
        return profile_of(self.profile)

    @cached_property
    def _gaussian(self) -> Gaussian:
        return Gaussian.trusted(mean=self.center, covariance=self.scale, kind="full")

    @property
    def _shape(self) -> Gaussian:
        return self._gaussian

    @cached_property
    def _constant(self) -> float:
        return -log_volume(self._radial, float(self.shape), self.dim)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of complete rows (n, d): (n,), or (n, K) for a stack."""
        x = sliceable(x, self.dim)
        form = self._gaussian.form
        logdet = form.logdet if self.members else form.logdet[0]

        def evaluate(block: Any) -> Array:
            z = self._complete(rows(block, self.dim, "Elliptical"))
            q = self._gaussian.squared_distance(z)
            with np.errstate(over="ignore", invalid="ignore"):
                return self._constant - 0.5 * logdet + self._radial.log_f(q, float(self.shape), self.dim)

        return map_rows(evaluate, x, self.members)

    def _complete(self, z: Array) -> Array:
        refuse_infinite(z, "Elliptical")
        bad = np.argwhere(np.isnan(z))
        if len(bad):
            i, j = (int(k) for k in bad[0])
            remedy = "leave the row out, or use StudentT or Gaussian, which integrate missing values out"
            raise BadEntry("Elliptical", "rows must be complete, without NaN", z[i, j], i, j, remedy)
        return z

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, d), or (n, K, d) for a stack: a uniform direction times a radius from the profile."""
        lead = () if self.members is None else (self.members,)
        count = n * (self.members or 1)
        z = rng.standard_normal((count, self.dim))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        z *= self._radial.radius(count, float(self.shape), self.dim, rng)[:, None]
        root = self._gaussian.form.roots
        assert root is not None
        root = root if self.members else root[0]
        return self.center + np.einsum("...ij,...j->...i", root, z.reshape((n, *lead, self.dim)))

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Mean: the center; for a t profile it exists for shape above 1."""
        if self.profile == "t" and not self.shape > 1:
            expected = "the mean of a t profile exists for shape above 1"
            raise DomainError(sentence("Elliptical", expected, float(self.shape), "use mode"))
        return self.center

    @property
    def covariance(self) -> Array:
        """Covariance E[q]/d · S."""
        return self._radial.spread(float(self.shape), self.dim) / self.dim * self.scale

    @property
    def variance(self) -> Array:
        """Variance per column, in the shape of the center."""
        return np.array(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E log p, with E log f(q) in closed form or by quadrature to 1e-10."""
        logdet = self._gaussian.form.logdet
        mean = mean_log(self.profile, float(self.shape), self.dim)
        return in_units(lone(0.5 * (logdet if self.members else logdet[0]) - self._constant - mean), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """CDF P(X ≤ x) for one column; (n, K) for a stack. In closed form, or by quadrature to 1e-10 for a function.

        >>> Elliptical("logistic", [0.0], 1.0).cdf([0.0, 1.0]).round(4)
        array([0.5   , 0.7311])
        """
        center, unit, radial = self._one_column()
        z = (one_column(x, self.members) - center) / unit
        tail = 0.5 * radial.outside(np.abs(z))
        return np.where(z < 0, tail, 1.0 - tail)

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF) for one column; (n, K) for a stack. NaN outside 0 … 1.

        >>> Elliptical("uniform", [1.0], 4.0).quantile([0.0, 0.5, 0.75])
        array([-1.,  1.,  2.])
        """
        center, unit, radial = self._one_column()
        p = np.asarray(p, dtype=np.float64)
        p = p[..., None] if self.members else p
        valid = (p >= 0) & (p <= 1)
        p = np.where(valid, p, 0.5)
        with np.errstate(divide="ignore"):
            r = radial.radius(np.abs(2 * p - 1), 2 * np.minimum(p, 1 - p))
        return np.where(valid, center + unit * np.where(p < 0.5, -r, r), np.nan)

    def _one_column(self) -> tuple[Any, Any, RadialDistribution]:
        """Center and scale of the one column, and the distribution of the distance from the center."""
        if self.dim != 1:
            expected = "cdf and quantile are defined for one column"
            remedy = 'marginals are known for "gaussian" and "t"'
            raise DomainError(sentence("Elliptical", expected, f"{self.dim} columns", remedy))
        from likely.distributions.elliptical.radial_quantiles import radial_distribution

        return self.center[..., 0], np.sqrt(self.scale[..., 0, 0]), radial_distribution(self.profile, float(self.shape))

    def marginal(self, columns: Sequence[int]) -> Elliptical:
        """Marginal distribution of `columns`, for the profiles "gaussian" and "t", which are closed under it."""
        if self.profile not in ("gaussian", "t"):
            expected, remedy = 'marginals are known for the profiles "gaussian" and "t"', "use sample(n, rng)[:, j]"
            raise DomainError(sentence("Elliptical", expected, repr(self.profile), remedy))
        part = self._gaussian.marginal(columns)
        return self.replace(center=part.mean, scale=np.array(part.covariance_matrix))

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(
        cls, x: ArrayLike, profile: ProfileName | Callable[[Array], ArrayLike] = "power", members: int | None = None,
        shape: float | None = None,
    ) -> Elliptical:  # fmt: skip
        """Initial model: mean and variances of the first rows, in the units of the profile."""
        z = rows(x, None, "Elliptical")
        refuse_infinite(z, "Elliptical")
        start = Gaussian.blank(z, kind="diagonal")
        lead = () if members is None else (members,)
        center = np.array(np.broadcast_to(start.mean, (*lead, start.dim)))
        made = cls(profile, start.mean, np.diag(start.variance), shape)  # type: ignore[arg-type]
        scale = made.scale / made._units
        return made.replace(center=center, scale=np.array(np.broadcast_to(scale, (*lead, *scale.shape))))

    @property
    def _units(self) -> float:
        """E[q]/d, or 1 where there is no variance."""
        try:
            return self._radial.spread(float(self.shape), self.dim) / self.dim
        except DomainError:
            return 1.0

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> WeightedRows:
        """The distinct rows with their weights: a general profile has no sufficient statistic of fixed size."""
        n = n_rows(x)
        w = weights(weight, n, "Elliptical")
        x = x if hasattr(x, "shape") else numbers(x, "Elliptical")
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        z = self._complete(rows(x, self.dim, "Elliptical"))
        return weighted_rows(z, member_weights(w, labels, n, self.members, "Elliptical"), self.members)

    def refit(self, stats: WeightedRows, prior: AnyPrior | None = None) -> Elliptical:
        """Maximum-likelihood estimate, or the posterior mode with a Gaussian's prior for center and scale."""
        self.statistics_in_kind(stats)
        if not self._radial.learns:
            expected = f"the profile {self.profile!r} cannot be fitted"
            remedy = 'use "power" with a large shape, or construct it from its parameters'
            raise DomainError(sentence("Elliptical", expected, remedy=remedy))
        if prior is None and not stats.total_weight > 0:
            raise DataError(sentence("Elliptical", "at least one row with weight is needed", "none", "or give a prior"))
        if self.members is None:
            return self._maximized(stats.values, stats.each, prior, stats)
        found = [self.member(k) for k in range(self.members)]
        for k, own in enumerate(stats.each):
            if prior is not None or own.any():
                found[k] = found[k]._maximized(stats.values[own > 0], own[own > 0], prior, stats)
        return self.replace(center=np.stack([f.center for f in found]), scale=np.stack([f.scale for f in found]))

    def _maximized(self, z: Array, w: Array, prior: Any, stats: WeightedRows) -> Elliptical:
        """Iteratively reweighted moments to convergence: accelerated first, then damped where needed."""
        begin = self._from_subsample(z, w, prior, stats)
        first, has_converged = begin._accelerated(z, w, prior, stats)
        return first if has_converged else first._damped(z, w, prior, stats)

    def _from_subsample(self, z: Array, w: Array, prior: Any, stats: WeightedRows) -> Elliptical:
        """For many rows: a start fitted to a subsample, so that few iterations over all rows remain."""
        every = len(z) // SUBSAMPLE
        if every < 4:
            return self
        few, weight = z[::every], w[::every]
        with warnings_discarded():
            return self._maximized(few, weight * (w.sum() / weight.sum()), prior, stats) if weight.any() else self

    def _accelerated(self, z: Array, w: Array, prior: Any, stats: WeightedRows) -> tuple[Elliptical, bool]:
        """Steps with Anderson acceleration, and whether they have converged."""

        def evaluate(model: Elliptical) -> FitStep:
            return FitStep(model, stats, prior, known_objective=model._log_posterior(z, w, prior))

        em = AcceleratedEM(evaluate, lambda step: step.model._step(z, w, prior, stats), ROUNDS // 10, STILL)
        last, has_converged = em.run(evaluate(self))
        return last.model, has_converged

    def _damped(self, z: Array, w: Array, prior: Any, stats: WeightedRows) -> Elliptical:
        """Plain steps with adaptive damping."""
        now, value, damping, before = self, self._log_posterior(z, w, prior), 1.0, None
        for _ in range(ROUNDS):
            target = now._step(z, w, prior, stats)
            unit = np.sqrt(np.diagonal(now.scale))
            change = (target.scale - now.scale) / unit[:, None] / unit
            direction = np.concatenate([(target.center - now.center) / unit, change.ravel()])
            if before is not None and direction @ before < 0:
                damping = max(0.5 * damping, SLOWEST)  # oscillation: each step overshoots
            after, reached = now._line_search(target, value, z, w, prior, damping)
            step = now._distance_to(after)
            now, value, before = after, max(value, reached), direction
            if step <= STILL:
                return now
        warn(f"Elliptical: not converged: {ROUNDS} iterations made, the last step was {step:.1g} of the scale")
        return now

    def _log_posterior(self, z: Array, w: Array, prior: Any) -> float:
        """Weighted log-likelihood of rows (+ log prior)."""
        with np.errstate(invalid="ignore"):
            value = float((w * self.log_prob(z))[w > 0].sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self._gaussian)))

    def _step(self, z: Array, w: Array, prior: Any, stats: WeightedRows) -> Elliptical:
        """One iteration of reweighting: moments under weights w r."""
        wr = w * self._radial.row_weight(self._gaussian.squared_distance(z), float(self.shape), self.dim)
        found = moments.of_rows(z, wr, self.center.copy())
        if found is None:
            raise moments.overflow()
        n = np.asarray(w.sum())
        if prior is not None:
            point = prior_mode(prior, _Reweighted(found, n), np.ones(()), "full")  # type: ignore[arg-type]
            return self.replace(center=point.mean, scale=np.array(point.covariance))
        scale = (found.scatter / n)[None].copy()
        pooled = moments.of_rows(stats.values, np.atleast_2d(stats.each).sum(axis=0), self.center.copy())
        for note in raise_to_floor(scale, 0, column_floor(pooled), "full") if pooled is not None else ():
            warn(replace(note, whose="Elliptical", text=note.text.replace("covariance", "scale")))
        return self.replace(center=found.mean, scale=scale[0])

    def _line_search(
        self, target: Elliptical, value: float, z: Array, w: Array, prior: Any, step: float
    ) -> tuple[Elliptical, float]:
        """Backtracking from a step toward the target: halved until the objective does not fall."""
        slack = 1e-14 * abs(value) if np.isfinite(value) else 0.0
        for _ in range(HALVINGS):
            center = self.center + step * (target.center - self.center)
            scale = self.scale + step * (target.scale - self.scale)
            one = target if step == 1 else self.replace(center=center, scale=spd.symmetric(scale))
            reached = one._log_posterior(z, w, prior)
            if reached >= value - slack:
                return one, reached
            step *= 0.5
        return self, value

    def _distance_to(self, other: Elliptical) -> float:
        """Largest change of center or scale, in units of the scale."""
        unit = np.sqrt(np.diagonal(other.scale))
        center = np.abs(other.center - self.center) / unit
        return float(max(center.max(), (np.abs(other.scale - self.scale) / unit[:, None] / unit).max()))

    def objective(self, stats: WeightedRows, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the rows (+ log prior)."""
        self.statistics_in_kind(stats)
        logs = self.log_prob(stats.values).T if len(stats.values) else np.zeros(stats.each.shape)
        value = float((stats.each * logs)[stats.each > 0].sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self._gaussian)))

    def weak_prior(self, stats: WeightedRows) -> Any:
        """Weakly informative prior: that of a Gaussian with these rows, its scale in the units of the profile."""
        from likely.distributions.priors.weak_prior import weak_gaussian

        origin = np.atleast_2d(self.center).mean(axis=0)
        if self.members is None:
            found = moments.of_rows(stats.values, stats.each, origin)
        else:
            found = moments.of_weighted_rows(stats.values, np.ascontiguousarray(stats.each.T), origin)
        if found is None:
            raise moments.overflow()
        prior = weak_gaussian(self._gaussian, found)
        return prior.replace(scale=prior.scale / self._units)

    def statistics_in_kind(self, stats: Stats) -> None:
        lead = self.center.shape[:-1]
        if not isinstance(stats, WeightedRows) or stats.values.shape[1] != self.dim or stats.each.shape[:-1] != lead:
            got = getattr(getattr(stats, "values", None), "shape", type(stats).__name__)
            raise ShapeError(sentence("Elliptical", f"rows of {self.dim} columns are needed", got))

    def joined_stats(self, parts: list[WeightedRows]) -> WeightedRows:
        """Statistics of several stacks as those of one."""
        return side_by_side(parts)

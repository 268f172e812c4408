"""Factor analysis and probabilistic PCA: Gaussian with low-rank-plus-diagonal covariance W Wᵀ + Ψ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, PerMember, check_option, numbers, parameter, refuse_infinite, rows
from likely.core.engine import cores, map_rows, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Stats
from likely.core.warnings import Note, warn
from likely.distributions.distribution import Distribution, in_units
from likely.distributions.gaussian.factor_fits import Factors, em_step, factor_analysis, principal_factors
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.latent_factors import Latent
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.variance_floors import column_floor, warn_of_unobserved
from likely.distributions.gaussian.woodbury import LowRank
from likely.numerics.special import LOG_2PI

NoiseKind = Literal["spherical", "diagonal"]
MAX_SNR = 1e4  # signal-to-noise ratio beyond which traces by the Woodbury identity lose digits that the covariance has
WIDE = 64  # columns from which one thread per member pays
LEAST = 1e-9  # floor of the noise variance relative to the column's variance, as for other covariances
ROUNDING = 1e-14  # the same where a prior keeps covariances regular in any case: relative to the current variance


@dataclass(frozen=True, eq=False, repr=False)
class FactorGaussian(Distribution):
    """Gaussian with the covariance of a factor model, N(x | μ, W Wᵀ + Ψ).

    x = W z + μ + ε with z ~ N(0, I_q), ε ~ N(0, Ψ): probabilistic PCA where Ψ = σ²I, factor analysis where it is
    diagonal. NaN entries of x are integrated out. The sufficient statistics are those of a full Gaussian.

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Mean μ; (K, d) is a stack of K members.
    loadings : array-like (d, q) or (K, d, q)
        Loadings W.
    noise_variance : float or array-like, default 1.0
        Variances Ψ: a number or (K,) if spherical, (d,) or (K, d) if diagonal.
    kind : {"spherical", "diagonal"}, optional
        Probabilistic PCA or factor analysis; by default that of the shape of `noise_variance`.

    See Also
    --------
    PPCA : The estimator with spherical noise.
    FactorAnalysis : The estimator with diagonal noise.

    References
    ----------
    Bishop (2006), chapter 12; Herbst and du Preez, lecture notes, 6.3.

    Examples
    --------
    >>> f = FactorGaussian([0.0, 0.0, 1.0], [[1.0], [1.0], [0.0]], 0.5)
    >>> f.log_prob([[0.5, 1.0, 1.0], [0.5, np.nan, 1.0]]).round(4)
    array([-2.8718, -1.7774])
    """

    mean: Annotated[Array, declared.numbers("* d")]  # (d,) or (K, d)
    loadings: Annotated[Array, declared.numbers("?")]  # (d, q) or (K, d, q)
    noise_variance: Annotated[Array, declared.numbers("* d | *", 0)] = 1.0  # type: ignore[assignment]  # spherical ([K]), diagonal ([K,] d): variances
    kind: NoiseKind = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        me = "FactorGaussian"
        mean = np.atleast_1d(parameter(self.mean, me, "mean"))
        if mean.ndim > 2 or 0 in mean.shape:
            raise ShapeError(sentence(me, "mean must have shape (d,) or (K, d)", mean.shape))
        loadings = parameter(self.loadings, me, "loadings")
        if loadings.shape[:-1] != mean.shape:
            expected = f"loadings must have shape {(*mean.shape, 'q')}".replace("'", "")
            raise ShapeError(sentence(me, expected, loadings.shape, "one row per column of the data"))
        refuse_too_many(loadings.shape[-1], mean.shape[-1], me)
        noise, kind = _noise_and_kind(mean, parameter(self.noise_variance, me, "noise_variance"), self.kind)
        if not (noise > 0).all():
            remedy = "a Gaussian with covariance W Wᵀ has none"
            raise DomainError(sentence(me, "noise_variance must be positive", float(noise.min()), remedy))
        self._set(mean=mean, loadings=loadings, noise_variance=noise, kind=kind)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.mean.shape[-1])

    @property
    def factors(self) -> int:
        """Number of latent factors q."""
        return int(self.loadings.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.mean) if self.mean.ndim == 2 else None

    def member(self, k: int) -> FactorGaussian:
        """One member of a stack."""
        parts = {name: np.array(getattr(self, name)[k]) for name in ("mean", "loadings", "noise_variance")}
        return FactorGaussian.trusted(**parts, kind=self.kind)

    def take(self, index: ArrayLike) -> FactorGaussian:
        """Members `index` (an integer array) as a stack."""
        at = np.atleast_1d(np.asarray(index, dtype=np.intp))
        parts = {name: getattr(self, name)[at] for name in ("mean", "loadings", "noise_variance")}
        return FactorGaussian.trusted(**parts, kind=self.kind)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: means, loadings up to a rotation, noise variances."""
        d, q = self.dim, self.factors
        return (self.members or 1) * (d + d * q - q * (q - 1) // 2 + (1 if self.kind == "spherical" else d))

    @cached_property
    def column_noise(self) -> Array:
        """Noise variance per column, in the shape of the mean."""
        noise = self.noise_variance[..., None] if self.kind == "spherical" else self.noise_variance
        return np.ascontiguousarray(np.broadcast_to(noise, self.mean.shape))

    @cached_property
    def gaussian(self) -> Gaussian:
        """The same distribution as a `Gaussian` with full covariance."""
        return Gaussian.trusted(mean=self.mean, covariance=np.array(self.covariance_matrix), kind="full")

    @cached_property
    def covariance_matrix(self) -> Array:
        """W Wᵀ + Ψ: (d, d), or (K, d, d) for a stack."""
        covariance = self.loadings @ np.swapaxes(self.loadings, -1, -2)
        at = np.arange(self.dim)
        covariance[..., at, at] += self.column_noise
        return covariance

    @property
    def variance(self) -> Array:
        """Variance per column, in the shape of the mean."""
        return np.asarray((self.loadings**2).sum(axis=-1) + self.column_noise)

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the covariances of all members."""
        if self.kind == "spherical" and self.factors < self.dim:
            return float(self.noise_variance.min())
        return self.gaussian.smallest_eigenvalue

    @property
    def median(self) -> Array:
        """Median per column: the mean."""
        return self.mean

    @property
    def mode(self) -> Array:
        """Mode: the mean."""
        return self.mean

    def marginal(self, columns: Sequence[int]) -> FactorGaussian:
        """Marginal distribution of `columns`: their rows of W and Ψ, with no more factors than columns."""
        at = self.gaussian._columns(columns)
        loadings = self.loadings[..., at, :]
        if self.factors > len(at):  # W Wᵀ = RᵀR
            loadings = np.swapaxes(np.linalg.qr(np.swapaxes(loadings, -1, -2), mode="r"), -1, -2)
        noise = self.noise_variance if self.kind == "spherical" else self.noise_variance[..., at]
        parts = {"mean": self.mean[..., at], "loadings": loadings, "noise_variance": noise}
        return FactorGaussian.trusted(**{name: np.array(part) for name, part in parts.items()}, kind=self.kind)

    # ---------------------------------------------------------------- density

    @cached_property
    def _low(self) -> LowRank:
        loadings = self.loadings if self.members else self.loadings[None]
        return LowRank(np.atleast_2d(self.mean), loadings, np.atleast_2d(self.column_noise))

    @property
    def _few(self) -> bool:
        """True where factors are so few that q products per row cost less than the full covariance."""
        return 2 * (self.factors + 2) < self.dim

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log N(x | μ, W Wᵀ + Ψ) of rows. NaN entries are missing values."""
        if not self._few:
            return self.gaussian.log_prob(x)
        return map_rows(self.log_prob_block, x if hasattr(x, "shape") else numbers(x, "FactorGaussian"), self.members)

    def log_prob_block(self, block: Any) -> Array:
        """`log_prob` of one block of rows, called with NumPy's warnings off (as by `map_rows`)."""
        if not self._few:
            return self.gaussian.log_prob_block(block)
        z = rows(block, self.dim, "FactorGaussian")
        out = -0.5 * self._low.distance(z) + self._constant
        incomplete = self._incomplete_rows(z, out)
        if len(incomplete):
            out[incomplete] = self.gaussian.log_prob_block(z[incomplete]).reshape(len(incomplete), -1)
        return out if self.members else out[:, 0]

    @cached_property
    def _constant(self) -> Array:
        return -0.5 * (self.dim * LOG_2PI + self._low.logdet)

    def _incomplete_rows(self, x: Array, out: Array) -> Index:
        """Indices of rows with missing entries; infinite entries raise, rows whose distance overflows get density 0."""
        not_finite = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(not_finite):
            refuse_infinite(x[not_finite], "FactorGaussian", not_finite)
            missing = np.isnan(x[not_finite]).any(axis=1)
            complete = not_finite[~missing]
            out[complete] = np.where(np.isnan(out[complete]), -np.inf, out[complete])
            not_finite = not_finite[missing]
        return not_finite

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, d), or (n, K, d) for a stack: μ + W z + ε."""
        z = rng.standard_normal((n, *self.mean.shape[:-1], self.factors))
        noise = rng.standard_normal((n, *self.mean.shape)) * np.sqrt(self.column_noise)
        return np.asarray(self.mean + np.einsum("...dq,n...q->n...d", self.loadings, z) + noise)

    def entropy(self, bits: bool = False) -> PerMember:
        """Differential entropy ½ log det 2πe(W Wᵀ + Ψ), in nats or bits; one per member for a stack."""
        h = 0.5 * (self.dim * (LOG_2PI + 1) + self._low.logdet)
        return in_units(h if self.members else float(h[0]), bits)

    def kl(self, other: FactorGaussian | Gaussian, bits: bool = False) -> PerMember:
        """KL(self ‖ other), where other is a FactorGaussian or a Gaussian; per member for stacks."""
        return self.gaussian.kl(other.gaussian if isinstance(other, FactorGaussian) else other, bits)

    # ---------------------------------------------------------- latent factors

    @cached_property
    def latent(self) -> Latent:
        """Posterior of the latent factors given rows."""
        if self.members:
            expected = "one distribution is needed"
            raise DomainError(sentence("FactorGaussian", expected, "a stack", "take member(k) first"))
        return Latent(self.mean, self.loadings, self.column_noise)

    def posterior(self, x: ArrayLike) -> Gaussian:
        """Posterior of the factors z per row.

        M = I + WᵀΨ⁻¹W over the observed columns; mean M⁻¹WᵀΨ⁻¹(x − μ), covariance M⁻¹.

        Returns
        -------
        Gaussian
            A stack of n members: means (n, q), one covariance (q, q) if no entry is missing.

        Examples
        --------
        >>> FactorGaussian([0.0, 0.0], [[1.0], [1.0]], 0.5).posterior([[1.0, 1.0]]).mean
        array([[0.8]])
        """
        return self.latent.posterior(rows(x, self.dim, "FactorGaussian"))

    def scores(self, x: ArrayLike) -> Array:
        """Factor scores: posterior means E[z | x].

        Returns
        -------
        ndarray (n, q)
            Scores.
        """
        x = x if hasattr(x, "shape") else numbers(x, "FactorGaussian")
        return map_rows(lambda b: self.latent.means(rows(b, self.dim, "FactorGaussian")), x, self.factors)

    def reconstruct(self, x: ArrayLike) -> Array:
        """Reconstruction of rows without noise: μ + W E[z | x].

        Returns
        -------
        ndarray (n, d)
            Reconstructed rows.
        """
        return np.asarray(self.mean + self.scores(x) @ self.loadings.T)

    def impute(self, x: ArrayLike, rng: Generator | None = None) -> Array:
        """Rows with missing entries imputed: by conditional expectation, or with `rng` by conditional samples.

        >>> FactorGaussian([0.0, 0.0], [[1.0], [1.0]], 0.5).impute([[1.5, np.nan]])
        array([[1.5, 1. ]])
        """
        return self.latent.filled(rows(x, self.dim, "FactorGaussian"), rng)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(
        cls, x: ArrayLike, factors: int = 1, kind: NoiseKind = "spherical", members: int | None = None
    ) -> FactorGaussian:
        """Initial model: mean and variance per column of the first rows, loadings 0."""
        check_option(kind, NoiseKind, "FactorGaussian", "kind")
        start = Gaussian.blank(x, kind=kind, members=members)
        refuse_too_many(factors, start.dim, "FactorGaussian")
        loadings = np.zeros((*start.mean.shape, factors))
        return cls.trusted(mean=start.mean, loadings=loadings, noise_variance=start.covariance, kind=kind)

    @property
    def takes_parts(self) -> bool:
        """True where `collect` processes many rows in strips that fit the cache."""
        return self.members is None

    @property
    def origin(self) -> Array:
        """Reference point of the statistics: means are stored as differences from it."""
        return self.gaussian.origin

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> Moments:
        """Sufficient statistics of a full Gaussian; missing entries are filled by an E-step at this model."""
        stats: Moments = self.gaussian.collect(x, weight, labels)
        return stats

    def refit(self, stats: Stats, prior: AnyPrior | None = None) -> FactorGaussian:
        """Maximum-likelihood estimate, or with a prior the posterior mode, with the same number of factors.

        Spherical noise: in closed form (Tipping and Bishop). Diagonal: Newton's method on log ψ until convergence, from
        this model, or where all loadings are 0 from two initial values; the objective never falls. Noise variances are
        at least 1e-9 of a column's variance. A column with neither observed entries nor a prior has loadings 0; its
        noise variance is the common one, or that of this model.
        """
        stats = self.statistics_in_kind(stats)
        warn_of_unobserved(stats, prior, "FactorGaussian")
        mean, covariance, least = self._target(stats, prior)
        informed = _informed_columns(stats, prior)
        if self.members is None:
            with one_blas_thread():
                fits = [self._fitted(covariance, least, informed)]
            parts = {"mean": mean, "loadings": fits[0].loadings, "noise_variance": fits[0].noise}
            self._warn_of_floors(fits, prior)
            found = FactorGaussian.trusted(**parts, kind=self.kind)
            return self._refit_observed_columns(found, stats, prior, covariance, least)
        busy = np.flatnonzero((stats.weight > 0) | (prior is not None)).tolist()
        with one_blas_thread():  # parallel over members instead
            workers = cores() if self.dim >= WIDE else 1
            fits = list(
                ordered_map(lambda k: self.member(k)._fitted(covariance[k], least[k], informed[k]), busy, workers)
            )
        self._warn_of_floors(fits, prior, busy)
        loadings, noise = self.loadings.copy(), self.noise_variance.copy()
        for k, fit in zip(busy, fits, strict=True):
            loadings[k], noise[k] = fit.loadings, fit.noise
        found = FactorGaussian.trusted(mean=mean, loadings=loadings, noise_variance=noise, kind=self.kind)
        return self._refit_observed_columns(found, stats, prior, covariance, least)

    def _refit_observed_columns(
        self, found: FactorGaussian, stats: Moments, prior: Any, covariance: Array, least: Array
    ) -> FactorGaussian:
        """Members with a column that was never observed, refitted to their observed columns where that scores better.

        The prior's pseudo-observations have the column, but in the statistics its entries are expectations under the
        last model: EM would need as many iterations as there are rows per pseudo-observation to change them.
        """
        observed, weight = stats.observed > 0, np.atleast_1d(stats.weight)
        affected = (weight > 0) & ~np.atleast_2d(observed | ~_informed_columns(stats, prior)).all(axis=-1)
        if prior is None or self.kind != "spherical" or not affected.any():
            return found
        loadings, noise = found.loadings.copy(), found.noise_variance.copy()
        for k in np.flatnonzero(affected).tolist():
            distribution, at = (self.member(k), k) if self.members else (self, ...)
            loadings[at], noise[at], _ = distribution._fitted(covariance[at], least[at], observed[at])
        other = found.replace(loadings=loadings, noise_variance=noise)
        scores = [model._observed_objective(stats, prior, affected) for model in (other, found)]
        better = affected & (scores[0] > scores[1])
        if self.members is None:
            return other if better[0] else found
        parts = {name: np.where(better[:, None, None] if name == "loadings" else better, a, b) for name, a, b in
                 (("loadings", loadings, found.loadings), ("noise", noise, found.noise_variance))}  # fmt: skip
        return found.replace(**parts)

    def _observed_objective(self, stats: Moments, prior: Any, which: Mask) -> Array:
        """Expected log-likelihood of the observed columns + log prior, of members `which` (K,); 0 for others."""
        value = np.where(which, np.atleast_1d(self._log_prior(prior)), 0.0)
        for k in np.flatnonzero(which).tolist():
            own, distribution = (stats.member(k), self.member(k)) if self.members else (stats, self)
            at = np.flatnonzero(own.observed > 0)
            value[k] += distribution.marginal(at.tolist()).expected_log_prob(of_columns(own, at))
        return value

    def _log_prior(self, prior: Any) -> Any:
        """Log prior density per member; priors other than pseudo-observations take the full covariance."""
        return prior.log_density(self if hasattr(prior, "rows") else self.gaussian)

    def em_step(self, stats: Stats, prior: AnyPrior | None = None) -> FactorGaussian:
        """One EM iteration with latent factors: slower than `refit`, with the same fixed point.

        Returns
        -------
        FactorGaussian
            The improved model.
        """
        stats = self.statistics_in_kind(stats)
        if self.members is not None or self.kind != "spherical":
            raise DomainError(sentence("FactorGaussian.em_step", "one distribution with spherical noise is needed"))
        mean, covariance, least = self._target(stats, prior)
        at = np.flatnonzero(_informed_columns(stats, prior))
        loadings = np.zeros_like(self.loadings)
        loadings[at], noise = em_step(covariance[np.ix_(at, at)], self.loadings[at], float(self.noise_variance))
        return self.replace(mean=mean, loadings=loadings, noise_variance=np.asarray(max(noise, float(least[at].max()))))

    def _target(self, stats: Moments, prior: Any) -> tuple[Array, Array, Array]:
        """Means, covariances to which factors are fitted, and floors of the noise variances."""
        if prior is not None:
            point = prior.update(stats).point("mode")
            covariance = point.covariance_matrix
            # relative to the prior, which is fixed: a floor that moved with the rows could let the objective fall
            least = np.maximum(LEAST * prior.point("mode").variance, ROUNDING * point.variance)
            return point.mean, covariance, np.broadcast_to(least, point.mean.shape)
        if not (stats.weight > 0).any():
            expected = "at least one row with weight is needed"
            raise DataError(sentence("FactorGaussian", expected, "none", "or give a prior"))
        weight = stats.weight[..., None, None]
        covariance = stats.scatter / np.where(weight > 0, weight, 1.0)
        mean = np.where(stats.weight[..., None] > 0, stats.mean, self.mean)  # a member without rows keeps its mean
        return mean, covariance, np.broadcast_to(self._floor(stats), mean.shape)

    def _floor(self, stats: Moments) -> Array:
        """Floor of the noise variances (d,) relative to the pooled variances; if spherical, the largest of them."""
        pooled = stats.pooled()
        least, constant = column_floor(pooled)
        if self.kind == "spherical":
            observed = pooled.observed > 0
            vary = observed & ~constant
            least = np.full_like(least, least[vary if vary.any() else observed].max())
        return least

    def _fitted(self, covariance: Array, least: Array, informed: Mask) -> Factors:
        """Factors fitted to the columns `informed`; the other columns get loadings 0."""
        if informed.all():
            return self._fitted_to_all(covariance, least)
        at, q = np.flatnonzero(informed), self.factors
        noise = self.noise_variance if self.kind == "spherical" else self.noise_variance[at]
        few = FactorGaussian.trusted(
            mean=self.mean[..., at],
            loadings=self.loadings[..., at, : min(q, len(at))],
            noise_variance=noise,
            kind=self.kind,
        )
        found = few._fitted_to_all(covariance[np.ix_(at, at)], least[at])
        loadings, at_floor = np.zeros((self.dim, q)), np.zeros(self.dim, dtype=bool)
        loadings[at, : found.loadings.shape[1]], at_floor[at] = found.loadings, found.at_floor
        if self.kind == "spherical":
            return Factors(loadings, found.noise, found.at_floor)
        noise = self.variance.copy()
        noise[at] = found.noise
        return Factors(loadings, noise, at_floor)

    def _fitted_to_all(self, covariance: Array, least: Array) -> Factors:
        """Probabilistic PCA or factor analysis of a covariance, by kind."""
        if self.kind == "spherical":
            return principal_factors(covariance, self.factors, float(least.max()))
        start = self.noise_variance if self.loadings.any() else None
        return factor_analysis(covariance, self.factors, least, start)

    def _warn_of_floors(self, fits: list[Factors], prior: Any, busy: Any = None) -> None:
        """Warn where noise variances were raised to their floor; with a prior the covariance is regular in any case."""
        at = [i for i, fit in enumerate(fits) if fit.at_floor.any()]
        if not at or prior is not None:
            return
        members, low = () if busy is None else tuple(int(busy[i]) for i in at), np.empty(0, dtype=np.intp)
        if self.kind == "spherical":
            what = f"{self.factors} factors leave no noise (columns depend on each other, or rows are too few)"
            remedy = "fewer factors or a prior avoid this"
        else:
            low = np.flatnonzero(np.any([fits[i].at_floor for i in at], axis=0))
            own, why = "its own" if len(low) == 1 else "their own", "constant, or explained by a factor: a Heywood case"
            what = f"{{columns}} left without noise of {own} ({why})"
            remedy = "fewer columns or factors avoid this"
        text = f"{what}: it was set to 1e-9 of a column's variance; {remedy}"
        warn(Note("FactorGaussian", text, members, tuple(low.tolist())))

    def statistics_in_kind(self, stats: Stats) -> Moments:
        if not isinstance(stats, Moments):
            expected = "Moments are needed"
            raise ShapeError(
                sentence("FactorGaussian", expected, type(stats).__name__, "collect with a FactorGaussian")
            )
        if stats.shift.shape != self.mean.shape:
            expected = f"statistics must be of shape {self.mean.shape}"
            raise ShapeError(sentence("FactorGaussian", expected, stats.shift.shape))
        return stats

    def objective(self, stats: Stats, prior: AnyPrior | None = None) -> float:
        """EM objective: expected complete-data log-likelihood + entropy of the missing entries + log prior."""
        stats = self.statistics_in_kind(stats)
        value = float(np.sum(self.expected_log_prob(stats)) + stats.entropy.sum())
        return value if prior is None else value + float(np.sum(self._log_prior(prior)))

    def expected_log_prob(self, stats: Moments) -> Array:
        """Expected log-likelihood Σ w E[log p] of the rows behind the statistics.

        Returns
        -------
        float or ndarray (K,)
            In nats; per member of a stack.
        """
        low, d = self._low, self.dim
        if low.svd[1].max(initial=0.0) > MAX_SNR:
            return _by_full_covariance(self.gaussian, stats)
        scatter, weight = stats.scatter.reshape(-1, d, d), np.atleast_1d(stats.weight)
        delta = np.atleast_2d((stats.origin - self.mean) + stats.shift)
        distance = np.array([low.by_sum(low.mean[k] + delta[k][None], k)[0] for k in range(len(delta))])
        value = -0.5 * (weight * (d * LOG_2PI + low.logdet + distance) + low.trace(scatter))
        return value if self.members else value[0]

    def weak_prior(self, stats: Stats) -> Any:
        """Weakly informative prior: a few pseudo-observations with the pooled covariance."""
        from likely.distributions.priors.pseudo_observations import PseudoObservations

        return PseudoObservations.weak(self.statistics_in_kind(stats), self.factors, self.kind)

    def __repr__(self) -> str:
        stack = f", {self.members} members" if self.members else ""
        return f"FactorGaussian({self.kind} noise, d={self.dim}, {self.factors} factors{stack})"


def _by_full_covariance(distribution: Gaussian, stats: Moments) -> Array:
    """`expected_log_prob` from full covariances."""
    stats = stats.replace(entropy=np.zeros_like(stats.entropy))
    if distribution.members is None:
        return np.asarray(distribution.objective(stats))
    return np.array([distribution.member(k).objective(stats.member(k)) for k in range(distribution.members)])


def of_columns(stats: Moments, at: Index) -> Moments:
    """Statistics of columns `at` of one member's rows; the entropy stays that of all columns."""
    parts = {name: getattr(stats, name)[at] for name in ("origin", "shift")}
    return stats.replace(**parts, scatter=stats.scatter[np.ix_(at, at)], seen=stats.observed[at])


def _informed_columns(stats: Moments, prior: Any) -> Mask:
    """Columns with observed entries or a prior, in the shape of the means."""
    observed = stats.observed > 0
    return observed if prior is None else observed | getattr(prior, "known", np.ones(observed.shape[-1], dtype=bool))


def refuse_too_many(factors: int, d: int, whose: str) -> None:
    """Raise if there are more factors than columns."""
    if factors > d:
        raise ShapeError(sentence(whose, f"at most {d} factors are possible for {d} columns", factors, "use fewer"))


def _noise_and_kind(mean: Array, noise: Array, kind: NoiseKind | None) -> tuple[Array, NoiseKind]:
    """Noise variances in the shape of their kind, and the kind."""
    if kind is not None:
        check_option(kind, NoiseKind, "FactorGaussian", "kind")
    lead = mean.shape[:-1]
    if noise.shape == () and lead:
        noise = np.full(lead, float(noise))
    if noise.shape == lead:
        if kind == "diagonal":
            return np.repeat(noise[..., None], mean.shape[-1], axis=-1), kind
        return noise, "spherical"
    if noise.shape == mean.shape and kind != "spherical":
        return noise, "diagonal"
    expected = f"noise for mean {mean.shape} must be a number{f', {lead}' if lead else ''} or {mean.shape}"
    raise ShapeError(sentence("FactorGaussian", expected, noise.shape))

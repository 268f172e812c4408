"""A Gaussian with few causes: q hidden factors move all columns together, and each column has noise of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, Mask, numbers, parameter, refuse_infinite, rows
from likely.core.engine import cores, map_rows, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, about_columns, enumerated, sentence
from likely.core.warnings import tell
from likely.distributions.distribution import Distribution, in_units
from likely.distributions.gaussian.factor_fits import Factors, em_step, factor_analysis, principal_factors
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.latent_factors import Latent
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.variance_floors import column_floor, warn_of_unseen
from likely.distributions.gaussian.woodbury import LowRank
from likely.numerics.special import LOG_2PI

KINDS = ("spherical", "diagonal")
LOUD = 1e4  # signal over noise beyond which traces through the noise lose digits that the covariance still has
WIDE = 64  # columns from which members are worth a thread each
LEAST = 1e-9  # share of a column's variance that noise has at least, as for other covariances
ROUNDING = 1e-14  # the same where a prior keeps covariances regular in any case: of the variance now


@dataclass(frozen=True, eq=False, repr=False)
class FactorGaussian(Distribution):
    """x = W z + μ + ε with z ~ N(0, I_q), ε ~ N(0, Ψ): log N(x | μ, W Wᵀ + Ψ)   (Herbst 6.3).

    One value: mean (d,), loadings (d, q), noise a number (probabilistic PCA: `kind="spherical"`) or (d,) (factor
    analysis: `kind="diagonal"`). A stack: (K, d), (K, d, q), and (K,), (K, d) or one number for all. NaN entries
    of x are integrated out. Statistics are those of a full Gaussian.

    >>> f = FactorGaussian([0.0, 0.0, 1.0], [[1.0], [1.0], [0.0]], 0.5)
    >>> f.log_prob([[0.5, 1.0, 1.0], [0.5, np.nan, 1.0]]).round(4)
    array([-2.8718, -1.7774])
    """

    mean: Array  # (d,) or (K, d)
    loadings: Array  # (d, q) or (K, d, q)
    noise_variance: Array = 1.0  # type: ignore[assignment]  # spherical ([K]), diagonal ([K,] d): variances
    kind: str = None  # type: ignore[assignment]

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
        noise, kind = _understood(mean, parameter(self.noise_variance, me, "noise_variance"), self.kind)
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
        """Number of hidden factors q."""
        return int(self.loadings.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.mean) if self.mean.ndim == 2 else None

    def member(self, k: int) -> FactorGaussian:
        """One member of a stack."""
        parts = {name: np.array(getattr(self, name)[k]) for name in ("mean", "loadings", "noise_variance")}
        return FactorGaussian.trusted(**parts, kind=self.kind)

    def some(self, index: Any) -> FactorGaussian:
        """Some members as a stack; index is an integer array."""
        at = np.atleast_1d(np.asarray(index, dtype=np.intp))
        parts = {name: getattr(self, name)[at] for name in ("mean", "loadings", "noise_variance")}
        return FactorGaussian.trusted(**parts, kind=self.kind)

    @property
    def n_parameters(self) -> int:
        """Free parameters: means, loadings up to a rotation, noise."""
        d, q = self.dim, self.factors
        return (self.members or 1) * (d + d * q - q * (q - 1) // 2 + (1 if self.kind == "spherical" else d))

    @cached_property
    def column_noise(self) -> Array:
        """Noise variance of each column, the shape of the mean."""
        noise = self.noise_variance[..., None] if self.kind == "spherical" else self.noise_variance
        return np.ascontiguousarray(np.broadcast_to(noise, self.mean.shape))

    @cached_property
    def gaussian(self) -> Gaussian:
        """The same distribution with its covariance written out."""
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
        """Variance of each column, the shape of the mean."""
        return np.asarray((self.loadings**2).sum(axis=-1) + self.column_noise)

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """The least variance in any direction of any member."""
        if self.kind == "spherical" and self.factors < self.dim:
            return float(self.noise_variance.min())
        return self.gaussian.smallest_eigenvalue

    @property
    def median(self) -> Array:
        """The number that half of the draws exceed, for each column: the mean."""
        return self.mean

    @property
    def mode(self) -> Array:
        """The most likely point: the mean."""
        return self.mean

    def marginal(self, columns: Sequence[int]) -> FactorGaussian:
        """The distribution of some columns: their rows of W and Ψ, with no more factors than columns."""
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
        """True where factors are so few that q products a row cost less than the covariance written out."""
        return 2 * (self.factors + 2) < self.dim

    def log_prob(self, x: Any) -> Array:
        """log N(x | μ, W Wᵀ + Ψ) for rows (n, d): (n,), or (n, K) for a stack. NaN is 'not observed'."""
        if not self._few:
            return self.gaussian.log_prob(x)
        return map_rows(self.log_prob_block, x if hasattr(x, "shape") else numbers(x, "FactorGaussian"), self.members)

    def log_prob_block(self, block: Any) -> Array:
        """The same for rows that the cache holds, where NumPy was told to say nothing (as by `map_rows`)."""
        if not self._few:
            return self.gaussian.log_prob_block(block)
        z = rows(block, self.dim, "FactorGaussian")
        out = -0.5 * self._low.distance(z) + self._constant
        gaps = self._gaps(z, out)
        if len(gaps):
            out[gaps] = self.gaussian.log_prob_block(z[gaps]).reshape(len(gaps), -1)
        return out if self.members else out[:, 0]

    @cached_property
    def _constant(self) -> Array:
        return -0.5 * (self.dim * LOG_2PI + self._low.logdet)

    def _gaps(self, x: Array, out: Array) -> Index:
        """Rows with something missing; infinities are refused, finite rows beyond all numbers have density 0."""
        odd = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(odd):
            refuse_infinite(x[odd], "FactorGaussian", odd)
            missing = np.isnan(x[odd]).any(axis=1)
            whole = odd[~missing]
            out[whole] = np.where(np.isnan(out[whole]), -np.inf, out[whole])
            odd = odd[missing]
        return odd

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack."""
        z = rng.standard_normal((n, *self.mean.shape[:-1], self.factors))
        noise = rng.standard_normal((n, *self.mean.shape)) * np.sqrt(self.column_noise)
        return np.asarray(self.mean + np.einsum("...dq,n...q->n...d", self.loadings, z) + noise)

    def entropy(self, bits: bool = False) -> Any:
        """½ log det 2πe(W Wᵀ + Ψ), in nats or bits; one per member for a stack."""
        h = 0.5 * (self.dim * (LOG_2PI + 1) + self._low.logdet)
        return in_units(h if self.members else float(h[0]), bits)

    def kl(self, other: FactorGaussian | Gaussian, bits: bool = False) -> Any:
        """KL(self ‖ other), of this or a full Gaussian; stacks go member by member."""
        return self.gaussian.kl(other.gaussian if isinstance(other, FactorGaussian) else other, bits)

    # ---------------------------------------------------------- hidden factors

    @cached_property
    def latent(self) -> Latent:
        """What rows say of the hidden factors."""
        if self.members:
            raise DomainError(sentence("FactorGaussian", "one value is needed", "a stack", "take member(k) first"))
        return Latent(self.mean, self.loadings, self.column_noise)

    def posterior(self, x: Any) -> Gaussian:
        """Posterior of z per row, a stack of n members: means (n, q), one covariance (q, q) if nothing is missing.

        M = I + WᵀΨ⁻¹W over the columns that were seen; mean M⁻¹WᵀΨ⁻¹(x − μ), covariance M⁻¹.

        >>> FactorGaussian([0.0, 0.0], [[1.0], [1.0]], 0.5).posterior([[1.0, 1.0]]).mean
        array([[0.8]])
        """
        return self.latent.posterior(rows(x, self.dim, "FactorGaussian"))

    def scores(self, x: Any) -> Array:
        """Posterior means of the factors (n, q)."""
        x = x if hasattr(x, "shape") else numbers(x, "FactorGaussian")
        return map_rows(lambda b: self.latent.means(rows(b, self.dim, "FactorGaussian")), x, self.factors)

    def reconstruct(self, x: Any) -> Array:
        """What the factors say each row would be without its noise: μ + W E[z | x]."""
        return np.asarray(self.mean + self.scores(x) @ self.loadings.T)

    def impute(self, x: Any, rng: Generator | None = None) -> Array:
        """Rows with gaps filled: by conditional expectation, or with `rng` by draws of the conditional distribution.

        >>> FactorGaussian([0.0, 0.0], [[1.0], [1.0]], 0.5).impute([[1.5, np.nan]])
        array([[1.5, 1. ]])
        """
        return self.latent.filled(rows(x, self.dim, "FactorGaussian"), rng)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Any, factors: int = 1, kind: str = "spherical", members: int | None = None) -> FactorGaussian:
        """A first look: mean and variance of each column of a block, and no loadings yet."""
        if kind not in KINDS:
            raise DomainError(sentence("FactorGaussian", f"kind must be one of {', '.join(KINDS)}", repr(kind)))
        seen = Gaussian.blank(x, kind=kind, members=members)
        refuse_too_many(factors, seen.dim, "FactorGaussian")
        loadings = np.zeros((*seen.mean.shape, factors))
        return cls.trusted(mean=seen.mean, loadings=loadings, noise_variance=seen.covariance, kind=kind)

    @property
    def takes_parts(self) -> bool:
        """True where `collect` works strip by strip, so that many rows at once cost neither cache nor memory."""
        return self.members is None

    @property
    def origin(self) -> Array:
        """The point about which statistics are kept."""
        return self.gaussian.origin

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> Moments:
        """Weight, mean and scatter of rows, gaps filled by an E-step at this model: what a full Gaussian collects."""
        stats: Moments = self.gaussian.collect(x, weight, labels)
        return stats

    def refit(self, stats: Any, prior: Any = None) -> FactorGaussian:
        """The maximum of the likelihood, or with a prior of the posterior, for the same number of factors.

        Spherical noise: in closed form (Tipping and Bishop). Diagonal: Newton's method on log ψ until it settles, from
        here, or where all loadings are 0 from two starts of its own; the objective never falls. Noise is at
        least 1e-9 of a column's variance. A column of which neither rows nor prior say anything has loadings 0;
        its noise is the one of all others, or what it was.
        """
        stats = self._suited(stats)
        warn_of_unseen(stats, prior, "FactorGaussian")
        mean, covariance, least = self._target(stats, prior)
        said = _said(stats, prior)
        if self.members is None:
            with one_blas_thread():
                made = [self._fitted(covariance, least, said)]
            parts = {"mean": mean, "loadings": made[0].loadings, "noise_variance": made[0].noise}
            self._tell(made, prior)
            found = FactorGaussian.trusted(**parts, kind=self.kind)
            return self._of_seen_columns(found, stats, prior, covariance, least)
        busy = np.flatnonzero((stats.weight > 0) | (prior is not None)).tolist()
        with one_blas_thread():  # the cores belong to the members
            workers = cores() if self.dim >= WIDE else 1
            made = list(ordered_map(lambda k: self.member(k)._fitted(covariance[k], least[k], said[k]), busy, workers))
        self._tell(made, prior, busy)
        loadings, noise = self.loadings.copy(), self.noise_variance.copy()
        for k, one in zip(busy, made, strict=True):
            loadings[k], noise[k] = one.loadings, one.noise
        found = FactorGaussian.trusted(mean=mean, loadings=loadings, noise_variance=noise, kind=self.kind)
        return self._of_seen_columns(found, stats, prior, covariance, least)

    def _of_seen_columns(
        self, found: FactorGaussian, stats: Moments, prior: Any, covariance: Array, least: Array
    ) -> FactorGaussian:
        """Members that saw nothing of some column, fitted to the others alone where that explains more.

        The prior's few rows know the column, but in the statistics it is what the last model made of it: EM would need
        as many steps as there are rows for each row of the prior to forget that.
        """
        seen, weight = stats.observed > 0, np.atleast_1d(stats.weight)
        blind = (weight > 0) & ~np.atleast_2d(seen | ~_said(stats, prior)).all(axis=-1)
        if prior is None or self.kind != "spherical" or not blind.any():
            return found
        loadings, noise = found.loadings.copy(), found.noise_variance.copy()
        for k in np.flatnonzero(blind).tolist():
            distribution, at = (self.member(k), k) if self.members else (self, ...)
            loadings[at], noise[at], _ = distribution._fitted(covariance[at], least[at], seen[at])
        other = found.replace(loadings=loadings, noise_variance=noise)
        better = blind & (other._heard(stats, prior, blind) > found._heard(stats, prior, blind))
        if self.members is None:
            return other if better[0] else found
        parts = {name: np.where(better[:, None, None] if name == "loadings" else better, a, b) for name, a, b in
                 (("loadings", loadings, found.loadings), ("noise", noise, found.noise_variance))}  # fmt: skip
        return found.replace(**parts)

    def _heard(self, stats: Moments, prior: Any, which: Mask) -> Array:
        """Expected log-likelihood of the columns that were seen + log prior, of some members (K,); 0 for others."""
        value = np.where(which, np.atleast_1d(self._log_prior(prior)), 0.0)
        for k in np.flatnonzero(which).tolist():
            mine, distribution = (stats.member(k), self.member(k)) if self.members else (stats, self)
            at = np.flatnonzero(mine.observed > 0)
            value[k] += distribution.marginal(at.tolist()).expected_log_prob(of_columns(mine, at))
        return value

    def _log_prior(self, prior: Any) -> Any:
        """What a prior says of each member; those other than of earlier rows know covariances only."""
        return prior.log_density(self if hasattr(prior, "rows") else self.gaussian)

    def em_step(self, stats: Any, prior: Any = None) -> FactorGaussian:
        """One step of EM that treats the factors as hidden: slower than `refit`, and it ends at the same place."""
        stats = self._suited(stats)
        if self.members is not None or self.kind != "spherical":
            raise DomainError(sentence("FactorGaussian.em_step", "one value with spherical noise is needed"))
        mean, covariance, least = self._target(stats, prior)
        at = np.flatnonzero(_said(stats, prior))
        loadings = np.zeros_like(self.loadings)
        loadings[at], noise = em_step(covariance[np.ix_(at, at)], self.loadings[at], float(self.noise_variance))
        return self.replace(mean=mean, loadings=loadings, noise_variance=np.asarray(max(noise, float(least[at].max()))))

    def _target(self, stats: Moments, prior: Any) -> tuple[Array, Array, Array]:
        """Means, the covariances that factors are fitted to, and the least noise of each column."""
        if prior is not None:
            point = prior.update(stats).point("mode")
            covariance = point.covariance_matrix
            # of what the prior says, which stays: a floor that moved with the rows could let the objective fall
            least = np.maximum(LEAST * prior.point("mode").variance, ROUNDING * point.variance)
            return point.mean, covariance, np.broadcast_to(least, point.mean.shape)
        if not (stats.weight > 0).any():
            expected = "at least one row with weight is needed"
            raise DataError(sentence("FactorGaussian", expected, "none", "or give a prior"))
        weight = stats.weight[..., None, None]
        covariance = stats.scatter / np.where(weight > 0, weight, 1.0)
        mean = np.where(stats.weight[..., None] > 0, stats.mean, self.mean)  # a member that saw nothing keeps its own
        return mean, covariance, np.broadcast_to(self._floor(stats), mean.shape)

    def _floor(self, stats: Moments) -> Array:
        """The least noise (d,), relative to what all data show: for one noise, the largest among columns that vary."""
        pooled = stats.pooled()
        least, constant = column_floor(pooled)
        if self.kind == "spherical":
            seen = pooled.observed > 0
            vary = seen & ~constant
            least = np.full_like(least, least[vary if vary.any() else seen].max())
        return least

    def _fitted(self, covariance: Array, least: Array, said: Mask) -> Factors:
        """Factors of the columns of which something is said; the others have no part in them."""
        if said.all():
            return self._fitted_to_all(covariance, least)
        at, q = np.flatnonzero(said), self.factors
        noise = self.noise_variance if self.kind == "spherical" else self.noise_variance[at]
        few = FactorGaussian.trusted(
            mean=self.mean[..., at],
            loadings=self.loadings[..., at, : min(q, len(at))],
            noise_variance=noise,
            kind=self.kind,
        )
        found = few._fitted_to_all(covariance[np.ix_(at, at)], least[at])
        loadings, lifted = np.zeros((self.dim, q)), np.zeros(self.dim, dtype=bool)
        loadings[at, : found.loadings.shape[1]], lifted[at] = found.loadings, found.lifted
        if self.kind == "spherical":
            return Factors(loadings, found.noise, found.lifted)
        noise = self.variance.copy()
        noise[at] = found.noise
        return Factors(loadings, noise, lifted)

    def _fitted_to_all(self, covariance: Array, least: Array) -> Factors:
        if self.kind == "spherical":
            return principal_factors(covariance, self.factors, float(least.max()))
        start = self.noise_variance if self.loadings.any() else None
        return factor_analysis(covariance, self.factors, least, start)

    def _tell(self, made: list[Factors], prior: Any, busy: Any = None) -> None:
        """Say where noise vanished; with a prior the covariance is regular all the same."""
        at = [i for i, one in enumerate(made) if one.lifted.any()]
        if not at or prior is not None:
            return
        where = f" ({enumerated('member', [busy[i] for i in at])})" if busy is not None else ""
        if self.kind == "spherical":
            what = f"{self.factors} factors leave no noise (columns depend on each other, or rows are too few)"
            remedy = "fewer factors or a prior avoid this"
        else:
            low = np.flatnonzero(np.any([made[i].lifted for i in at], axis=0))
            own, why = "its own" if len(low) == 1 else "their own", "constant, or explained by a factor: a Heywood case"
            what = f"{about_columns(low)} left without noise of {own} ({why})"
            remedy = "fewer columns or factors avoid this"
        tell(f"FactorGaussian{where}: {what}: it was set to 1e-9 of a column's variance; {remedy}")

    def _suited(self, stats: Any) -> Moments:
        if not isinstance(stats, Moments):
            expected = "Moments are needed"
            raise ShapeError(
                sentence("FactorGaussian", expected, type(stats).__name__, "collect with a FactorGaussian")
            )
        if stats.shift.shape != self.mean.shape:
            expected = f"statistics must be of shape {self.mean.shape}"
            raise ShapeError(sentence("FactorGaussian", expected, stats.shift.shape))
        return stats

    def objective(self, stats: Any, prior: Any = None) -> float:
        """Expected log-likelihood of the statistics + entropy of what was hidden + log prior."""
        stats = self._suited(stats)
        value = float(np.sum(self.expected_log_prob(stats)) + stats.entropy.sum())
        return value if prior is None else value + float(np.sum(self._log_prior(prior)))

    def expected_log_prob(self, stats: Moments) -> Array:
        """Σ w log p over the rows that statistics stand for; one per member for a stack."""
        low, d = self._low, self.dim
        if low.turned[1].max(initial=0.0) > LOUD:
            return _written_out(self.gaussian, stats)
        scatter, weight = stats.scatter.reshape(-1, d, d), np.atleast_1d(stats.weight)
        delta = np.atleast_2d((stats.origin - self.mean) + stats.shift)
        away = np.array([low.by_sum(low.mean[k] + delta[k][None], k)[0] for k in range(len(delta))])
        value = -0.5 * (weight * (d * LOG_2PI + low.logdet + away) + low.trace(scatter))
        return value if self.members else value[0]

    def weak_prior(self, stats: Any) -> Any:
        """A few rows that look like the pooled data."""
        from likely.distributions.priors.pseudo_observations import EarlierRows

        return EarlierRows.weak(self._suited(stats), self.factors, self.kind)

    def __repr__(self) -> str:
        stack = f", {self.members} members" if self.members else ""
        return f"FactorGaussian({self.kind} noise, d={self.dim}, {self.factors} factors{stack})"


def _written_out(distribution: Gaussian, stats: Moments) -> Array:
    """The same through covariances."""
    stats = stats.replace(entropy=np.zeros_like(stats.entropy))
    if distribution.members is None:
        return np.asarray(distribution.objective(stats))
    return np.array([distribution.member(k).objective(stats.member(k)) for k in range(distribution.members)])


def of_columns(stats: Moments, at: Index) -> Moments:
    """Statistics of some columns of one member's rows; the entropy stays that of all."""
    parts = {name: getattr(stats, name)[at] for name in ("origin", "shift")}
    return stats.replace(**parts, scatter=stats.scatter[np.ix_(at, at)], seen=stats.observed[at])


def _said(stats: Moments, prior: Any) -> Mask:
    """Columns of which rows or the prior say something, the shape of the means."""
    seen = stats.observed > 0
    return seen if prior is None else seen | getattr(prior, "known", np.ones(seen.shape[-1], dtype=bool))


def refuse_too_many(factors: int, d: int, whose: str) -> None:
    """More factors than columns explain nothing more."""
    if factors > d:
        raise ShapeError(sentence(whose, f"at most {d} factors fit {d} columns", factors, "ask for fewer"))


def _understood(mean: Array, noise: Array, kind: str | None) -> tuple[Array, str]:
    """Noise in the shape of its kind."""
    if kind is not None and kind not in KINDS:
        raise DomainError(sentence("FactorGaussian", f"kind must be one of {', '.join(KINDS)}", repr(kind)))
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

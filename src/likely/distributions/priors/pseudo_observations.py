"""Pseudo-observations as a prior of mean and covariance: their number, mean and scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, PerMember, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments, refuse_others
from likely.distributions.gaussian.variance_floors import warn_of_constants
from likely.distributions.priors.normal_inverse_gamma import VarianceKind
from likely.distributions.priors.shrunk_covariance import prior_mean, shrunk_within
from likely.numerics import spd


@dataclass(frozen=True, eq=False)
class PseudoObservations(Value):
    """Prior of r pseudo-observations with scatter Ψ on mean μ and covariance C; the mean counts as κ rows.

    log p(μ, C) = −½ [r log det 2πC + tr C⁻¹Ψ + κ (μ − m)ᵀ C⁻¹ (μ − m)], up to a constant. Factor analysis has no
    conjugate prior, but its posterior mode needs none: pseudo-observations and rows have the joint scatter (Ψ + S)/(r +
    n), and factors are fitted to that. With Ψ positive definite C stays regular for any rows. The normalization
    constant is not known, so there is neither evidence nor sampling. A leading axis makes a stack. A column whose row
    and column of Ψ are 0 is missing in the pseudo-observations and has no prior.

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Mean m.
    kappa : float or array-like (K,)
        Pseudo-counts κ of the mean.
    scale : array-like (d, d) or (K, d, d)
        Scatter Ψ of the pseudo-observations.
    rows : float or array-like (K,)
        Number r of pseudo-observations.
    tied : bool, default False
        A stack of K means with one covariance: Ψ and r are shared.

    See Also
    --------
    FactorGaussian : Its likelihood.
    NormalInverseWishart : The conjugate prior of a full covariance.

    Examples
    --------
    >>> import likely as lk
    >>> prior = PseudoObservations([0.0], 1.0, [[4.0]], 2.0)
    >>> prior.update(lk.Gaussian([0.0], [[1.0]]).collect([[0.0], [3.0]])).point().covariance
    array([[2.5]])
    """

    mean: Annotated[Array, declared.numbers("* d")]  # (..., d)
    kappa: Annotated[Array, declared.numbers("* | ", 0)]  # (...): κ, pseudo-counts of the mean
    scale: Annotated[Array, declared.numbers("* d d | d d")]  # (..., d, d): scatter Ψ of the pseudo-observations
    rows: Annotated[Array, declared.numbers("* | ", 0)]  # (...): number r of pseudo-observations
    tied: bool = False

    def __post_init__(self) -> None:
        me = "PseudoObservations"
        mean = np.atleast_1d(parameter(self.mean, me, "mean"))
        kappa, scale, rows = (parameter(getattr(self, n), me, n) for n in ("kappa", "scale", "rows"))
        d = mean.shape[-1]
        if scale.shape[-2:] != (d, d) or scale.ndim > 3 or mean.ndim > 2:
            raise ShapeError(
                sentence(me, f"scale must have shape ({d}, {d}), with K in front for a stack", scale.shape)
            )
        if not ((kappa > 0).all() and (rows > 0).all()):
            raise DomainError(sentence(me, "kappa and rows must be positive", (kappa.tolist(), rows.tolist())))
        if not spd.is_symmetric(scale) or not _regular(scale):
            raise DomainError(sentence(me, "scale must be symmetric and positive definite"))
        self._set(mean=mean, kappa=kappa, scale=scale, rows=rows)

    @classmethod
    def weak(cls, stats: Moments, factors: int, kind: VarianceKind = "diagonal") -> PseudoObservations:
        """Weakly informative prior that keeps covariances regular: q + 4 pseudo-observations with pooled moments.

        Its scatter is the within-member scatter, with correlations shrunk by a share ((q + 1)/n)⁴, at least 0.01: so a
        single distribution with many rows keeps its estimate (a direction in the null space gets 0.01 (q + 4)/n of a
        column's variance), and a member with three rows is shrunk toward the pooled covariance. A column that was never
        observed has no prior.

        Parameters
        ----------
        factors : int
            Number of factors q.
        kind : {"diagonal", "spherical"}, default "diagonal"
            Kind of noise variance.
        """
        check_option(kind, VarianceKind, "PseudoObservations.weak", "kind")
        pooled = stats.pooled()
        if not pooled.total_weight > 0:
            raise DomainError(sentence("PseudoObservations.weak", "statistics of at least one row are needed", "none"))
        warn_of_constants(pooled, "spherical" if kind == "spherical" else "full")
        shape = shrunk_within(stats, pooled, factors + 1, lambda n: 0.01)
        never = ~(pooled.observed > 0)
        shape[..., never, :], shape[..., never] = 0.0, 0.0
        c, lead = factors + 4.0, shape.shape[:-2]
        return cls.trusted(
            mean=prior_mean(stats, pooled), kappa=np.full(lead, 0.01), scale=spd.symmetric(c * shape),
            rows=np.full(lead, c), tied=False,
        )  # fmt: skip

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.mean.shape[-1])

    @property
    def known(self) -> Mask:
        """Mask of the columns that have a prior (d,)."""
        return _known(self.scale)

    def update(self, stats: Moments) -> PseudoObservations:
        """Posterior: pseudo-observations and rows together."""
        refuse_others(stats, self.dim, "PseudoObservations", full=True)
        n = stats.weight
        kappa = self.kappa + n
        delta = np.where((n > 0)[..., None], (stats.origin - self.mean) + stats.shift, 0.0)
        mean = self.mean + delta * (n / kappa)[..., None]
        between = (self.kappa * n / kappa)[..., None, None] * delta[..., :, None] * delta[..., None, :]
        added, rows = stats.scatter + between, n
        if self.tied and added.ndim == 3:
            added, rows = added.sum(axis=0), n.sum()
        return self.replace(
            mean=mean, kappa=np.asarray(kappa), scale=self.scale + added, rows=np.asarray(self.rows + rows)
        )

    def _as_tied(self) -> PseudoObservations:
        """The prior for members with one covariance: the pseudo-observations of all members together."""
        lead = np.broadcast_shapes(self.scale.shape[:-2], self.rows.shape)
        scale, rows = np.broadcast_to(self.scale, (*lead, self.dim, self.dim)), np.broadcast_to(self.rows, lead)
        if lead:
            scale, rows = scale.sum(axis=0), rows.sum()
        return self.replace(scale=np.array(scale), rows=np.array(rows), tied=True)

    def point(self, rule: PointRule = "mode") -> Gaussian:
        """The Gaussian at the mode: mean m, covariance Ψ/r."""
        if rule != "mode":
            raise DomainError(sentence("PseudoObservations", 'only the "mode" is available', repr(rule)))
        rows = self.rows if self.tied else np.broadcast_to(self.rows, self.mean.shape[:-1])
        covariance = self.scale / rows[..., None, None]
        return Gaussian.trusted(mean=self.mean, covariance=np.array(covariance), kind="full")

    def log_density(self, model: Any) -> PerMember:
        """Log density, up to a constant, of a `Gaussian` or `FactorGaussian`; one per member for a stack.

        One value for all members where they share one covariance.
        """
        at = np.flatnonzero(self.known)
        if len(at) < self.dim:
            return self._marginal(at).log_density(model.marginal(at))
        if self.tied and model.mean.ndim == 2:
            delta = model.mean - self.mean
            kappa = np.broadcast_to(self.kappa, len(delta))
            scatter = self.scale + np.einsum("k,ki,kj->ij", kappa, delta, delta)
            one = Gaussian.trusted(mean=np.zeros(self.dim), covariance=model._shared_matrix(), kind="full")
            return self.replace(mean=one.mean, kappa=np.asarray(1.0), scale=scatter, tied=False).log_density(one)
        delta = model.mean - self.mean
        between = self.kappa[..., None, None] * delta[..., :, None] * delta[..., None, :]
        scatter = np.broadcast_to(self.scale + between, (*model.mean.shape, self.dim))
        weight = np.array(np.broadcast_to(self.rows, model.mean.shape[:-1]))
        pseudo = Moments.trusted(
            weight=weight, origin=np.zeros(self.dim), shift=model.mean, scatter=scatter,
            entropy=np.zeros_like(weight), complete=True,
        )  # fmt: skip
        if isinstance(model, Gaussian):
            return lone(model._expected_log_prob(model.statistics_in_kind(pseudo)))
        return lone(model.expected_log_prob(pseudo))

    def _marginal(self, at: Index) -> PseudoObservations:
        """The prior of columns `at`."""
        return self.replace(mean=self.mean[..., at], scale=self.scale[..., at[:, None], at])

    def draw(self, rng: Generator) -> NoReturn:
        """An error: the constant of this distribution is not known."""
        raise _not_normalized("draw")

    def predictive(self) -> NoReturn:
        """An error: the constant of this distribution is not known."""
        raise _not_normalized("predictive")

    def log_evidence(self, stats: Moments) -> NoReturn:
        """An error: the constant of this distribution is not known."""
        raise _not_normalized("log_evidence")


def _known(scale: Array) -> Mask:
    """Mask of the columns whose row and column of Ψ are not all 0."""
    return np.asarray((scale != 0).reshape(-1, *scale.shape[-2:]).any(axis=(0, 1)))


def _regular(scale: Array) -> bool:
    """True if the scatter of the columns that have a prior is positive definite, and there is at least one."""
    at = np.flatnonzero(_known(scale))
    return bool(len(at)) and spd.cholesky(np.ascontiguousarray(scale[..., at[:, None], at])) is not None


def _not_normalized(verb: str) -> DomainError:
    expected, remedy = "this needs a normalized prior", "use a Gaussian with a NormalInverseWishart prior"
    return DomainError(sentence(f"PseudoObservations.{verb}", expected, "pseudo-observations", remedy))

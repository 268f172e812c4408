"""Conjugate prior of the mean of a Gaussian with known covariance: Worksheet 6, Herbst 2.3.4, Ney 3.8, Bishop 2.3.6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.gaussian_algebra import solve_psd
from likely.distributions.gaussian.moments import ColumnMoments, Moments, refuse_expected, refuse_others
from likely.numerics import spd
from likely.numerics.special import LOG_2PI


@dataclass(frozen=True, eq=False)
class MeanGivenCovariance(Value):
    """Conjugate prior μ ~ N(m, S) of a Gaussian's mean, with known covariance Σ.

    Posterior of n rows with mean x̄: S_n = (S⁻¹ + nΣ⁻¹)⁻¹ and m_n = m + S_n nΣ⁻¹ (x̄ − m); posterior predictive
    N(m_n, Σ + S_n) (the worksheet prints S alone: an erratum). Computed in gain form, so that S may be singular and n
    may be 0.

    Parameters
    ----------
    belief : Gaussian
        Distribution of the mean, one or a stack.
    covariance : float or array-like
        Known covariance Σ: a number, (d,) or (d, d).

    See Also
    --------
    NormalInverseWishart : Unknown covariance.
    CovarianceGivenMean : Known mean.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.3.5.

    Examples
    --------
    >>> import likely as lk
    >>> prior = MeanGivenCovariance(lk.Gaussian([-2.0], 1.0), 4.0)
    >>> post = prior.update(lk.Gaussian([0.0], 1.0).collect(np.zeros((12, 1))))
    >>> post.belief.mean, post.belief.covariance
    (array([-0.5]), array([[0.25]]))
    """

    serves = ("Gaussian",)  # distributions of which it is a prior

    belief: Annotated[Gaussian, declared.distribution]  # distribution of the mean, (d,) or a stack (K, d)
    covariance: Annotated[Array, declared.numbers("d d | d | ")]  # known: a number, (d,) or (d, d)

    def __post_init__(self) -> None:
        if not isinstance(self.belief, Gaussian):
            raise ShapeError(
                sentence("MeanGivenCovariance", "belief must be a Gaussian over the mean", type(self.belief).__name__)
            )
        d = self.belief.dim
        covariance = parameter(self.covariance, "MeanGivenCovariance", "covariance")
        Gaussian(np.zeros(d), covariance)  # the same rules, the same errors
        self._set(covariance=covariance)

    @property
    def _known(self) -> Array:
        c = self.covariance
        return c if c.ndim == 2 else np.diag(np.broadcast_to(c, (self.belief.dim,)))

    def update(self, stats: Moments | ColumnMoments) -> MeanGivenCovariance:
        """Posterior of the mean given these statistics."""
        refuse_others(stats, self.belief.dim, "MeanGivenCovariance")
        n, S, C = self._rows(stats), self.belief._shared_matrix(), self._known
        root = np.sqrt(n)  # (..., d): one count per column, since a diagonal distribution may have missing entries
        inner = root[..., :, None] * S * root[..., None, :] + C
        gain = np.swapaxes(solve_psd(inner, root[..., :, None] * S), -1, -2)
        delta = np.where(n > 0, (stats.origin - self.belief.mean) + stats.shift, 0.0)
        mean = self.belief.mean + np.einsum("...ij,...j->...i", gain, root * delta)
        # Joseph form, not S − gain S, which would cancel where the prior is vague
        shrink = np.eye(len(C)) - gain * root[..., None, :]
        covariance = spd.symmetric(_sandwich(shrink, S) + _sandwich(gain, C))
        return self.replace(belief=Gaussian.trusted(mean=mean, covariance=np.array(covariance), kind="full"))

    def _rows(self, stats: Moments | ColumnMoments) -> Array:
        if isinstance(stats, ColumnMoments):
            if self.covariance.ndim == 2 and not (stats.weight == stats.rows[..., None]).all():
                expected = "missing values need a diagonal known covariance"
                raise DomainError(sentence("MeanGivenCovariance", expected, "a full one"))
            return stats.weight
        return np.broadcast_to(stats.weight[..., None], stats.shift.shape)

    def point(self, rule: PointRule = "mode") -> Gaussian:
        """N(m, Σ): mode, mean and median of the mean agree."""
        check_option(rule, PointRule, "MeanGivenCovariance", "rule")
        return self._at(self.belief.mean)

    def _at(self, mean: Array) -> Gaussian:
        kind = ("spherical", "diagonal", "full")[self.covariance.ndim]
        return Gaussian.trusted(mean=np.array(mean), covariance=np.array(self.covariance), kind=kind)

    def draw(self, rng: Generator) -> Gaussian:
        """A Gaussian with a mean sampled from this distribution."""
        return self._at(self.belief.sample(1, rng)[0])

    def predictive(self) -> Gaussian:
        """Posterior predictive N(m, Σ + S)."""
        return self.belief.noisy(self.covariance)

    def log_evidence(self, stats: Moments | ColumnMoments) -> PerMember:
        """Log marginal likelihood of rows, the mean integrated out; one per member for a stack."""
        refuse_expected(stats, "MeanGivenCovariance")
        n, post = self._rows(stats), self.update(stats)
        # log p(x) = log p(x | μ) + log p(μ) − log p(μ | x) for any μ: take the posterior mean
        best = Gaussian.trusted(
            mean=post.belief.mean,
            covariance=self.covariance,
            kind=("spherical", "diagonal", "full")[self.covariance.ndim],
        )
        likelihood = _log_likelihood(best, stats, n, self._known)
        return lone(likelihood + _at_own(self.belief, best.mean) - _at_own(post.belief, best.mean))

    def log_density(self, model: Gaussian) -> PerMember:
        """Log-density log p(μ) of a Gaussian's mean; one per member for a stack."""
        return _at_own(self.belief, model.mean)

    # ------------------------------------------------- as a distribution over Gaussians

    def log_prob(self, models: Gaussian) -> Any:
        """The density of Gaussians under this distribution, one per member: the same as `log_density`."""
        return self.log_density(models)

    def sample(self, n: int, rng: Generator) -> Gaussian:
        """Gaussians with sampled means, as a stack with one covariance.

        Returns
        -------
        Gaussian
            A stack of n members with one covariance.
        """
        if self.belief.members is not None:
            expected = "one distribution is needed"
            raise ShapeError(sentence("MeanGivenCovariance.sample", expected, "a stack", "use draw"))
        return self._at(self.belief.sample(n, rng))

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy of the distribution of the mean."""
        return self.belief.entropy(bits)

    def kl(self, other: MeanGivenCovariance, bits: bool = False) -> PerMember:
        """KL divergence of the distributions of the mean."""
        return self.belief.kl(other.belief, bits)


def _sandwich(a: Array, b: Array) -> Array:
    return a @ b @ np.swapaxes(a, -1, -2)


def _at_own(belief: Gaussian, means: Array) -> Any:
    """log N(μ_k | belief_k) per member."""
    if means.ndim == 1:
        return float(np.ravel(belief.log_prob(means[None]))[0])
    if belief.members is None:
        return belief.log_prob(means)
    return np.diagonal(belief.log_prob(means))


def _log_likelihood(model: Gaussian, stats: Moments | ColumnMoments, n: Array, known: Array) -> Any:
    """Σ w log N(x | μ, Σ) from the moments, one per member."""
    delta = stats.mean - model.mean
    if isinstance(stats, ColumnMoments):
        v = np.diagonal(known)
        return -0.5 * (n * (LOG_2PI + np.log(v) + delta**2 / v) + stats.scatter / v).sum(axis=-1)
    root = spd.cholesky(known)
    if root is None:
        raise DomainError(
            sentence("MeanGivenCovariance", "the known covariance must be positive definite", "a singular one")
        )
    w = spd.inverse_factor(root)
    trace = spd.trace_form(w, stats.scatter)
    distance = (np.einsum("ij,...j->...i", w, delta) ** 2).sum(axis=-1)
    return -0.5 * (stats.weight * (len(known) * LOG_2PI + spd.logdet(root) + distance) + trace)

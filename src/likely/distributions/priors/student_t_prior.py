"""Prior of a Student-t distribution: a Gaussian's prior of center and scale, gamma prior of degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from likely.core import declared
from likely.core.arrays import Array, PerMember, parameter
from likely.core.errors import DomainError, sentence
from likely.core.protocols import PointRule
from likely.core.stats import Stats
from likely.core.value import Value
from likely.distributions.priors.weak_prior import weak_gaussian


@dataclass(frozen=True, eq=False)
class StudentTPrior(Value):
    """Prior of center, scale and degrees of freedom of a Student-t distribution.

    A Gaussian's prior for center and scale, and ν ~ Gamma(a, b) for the degrees of freedom. Neither is conjugate: there
    is a posterior mode (`StudentT.fit(X, prior=…)`), found iteratively, and no evidence.

    Parameters
    ----------
    shape : NormalInverseWishart, NormalInverseGamma or PseudoObservations
        Prior of center and scale.
    tails : float, default 2.0
        Shape a of the prior of ν.
    rate : float, default 0.1
        Rate b of the prior of ν, whose mode is (a − 1)/b.

    See Also
    --------
    StudentT : Its likelihood.

    References
    ----------
    Juárez and Steel (2010).

    Examples
    --------
    >>> import likely as lk
    >>> prior = StudentTPrior(lk.priors.NormalInverseWishart([0.0], 1.0, [[1.0]], 3.0), 2.0, 0.1)
    >>> round(float(lk.StudentT.fit([[0.0], [1.0], [2.0]], prior=prior).dof), 1)
    9.3
    """

    serves = ("StudentT",)  # distributions of which it is a prior

    shape: Annotated[Any, declared.prior]  # NormalInverseWishart, NormalInverseGamma or PseudoObservations
    tails: Annotated[Array, declared.numbers("")] = 2.0  # type: ignore[assignment]  # a
    rate: Annotated[Array, declared.numbers("")] = 0.1  # type: ignore[assignment]  # b: the mode is (a − 1)/b

    def __post_init__(self) -> None:
        tails, rate = (parameter(getattr(self, name), "StudentTPrior", name) for name in ("tails", "rate"))
        if tails.ndim or rate.ndim or not (tails >= 1 and rate > 0):
            got = (tails.tolist(), rate.tolist())
            raise DomainError(
                sentence("StudentTPrior", "tails must be a number of at least 1 and rate a positive one", got)
            )
        if not (hasattr(self.shape, "update") and hasattr(self.shape, "scale")):
            expected = "shape must be a NormalInverseWishart, NormalInverseGamma or PseudoObservations"
            raise DomainError(sentence("StudentTPrior", expected, type(self.shape).__name__))
        self._set(tails=tails, rate=rate)

    @classmethod
    def weak(cls, distribution: Any, stats: Any) -> StudentTPrior:
        """Weakly informative prior: that of a Gaussian with these moments, and degrees of freedom of 1 to 50.

        Parameters
        ----------
        distribution : StudentT
            The distribution, or stack, to which the statistics belong.
        """
        return cls.trusted(
            shape=weak_gaussian(distribution._shape, stats.moments), tails=np.asarray(2.0), rate=np.asarray(0.1)
        )

    @property
    def kind(self) -> str:
        """The kind of scale of which it is a prior."""
        return str(getattr(self.shape, "kind", "full"))

    def log_dof(self, dof: Array) -> Array:
        """Log prior density of ν.

        Parameters
        ----------
        dof : array-like
            Degrees of freedom ν.

        Returns
        -------
        ndarray
            Log-densities.
        """
        a, b = self.tails, self.rate
        return np.asarray(a * np.log(b) - gammaln(a) + (a - 1) * np.log(dof) - b * dof)

    def dof_slope(self, dof: Array) -> Array:
        """Derivative of log p(ν).

        Parameters
        ----------
        dof : array-like
            Degrees of freedom ν.

        Returns
        -------
        ndarray
            Derivatives.
        """
        return np.asarray((self.tails - 1) / dof - self.rate)

    def log_density(self, model: Any) -> PerMember:
        """Log prior density of (center, scale, ν) of a t distribution; one per member for a stack."""
        tails = 0.0 if model.fixed_dof else self.log_dof(model.dof)
        if model.kind == "independent" and not model.fixed_dof:
            tails = np.sum(tails, axis=-1)
        return self.shape.log_density(model._shape) + tails

    def update(self, stats: Stats) -> NoReturn:
        """Raises: no posterior in closed form."""
        raise _not_conjugate("update")

    def point(self, rule: PointRule = "mode") -> NoReturn:
        """Raises: the mode needs data and an iteration."""
        raise _not_conjugate("point")

    def draw(self, rng: Generator) -> NoReturn:
        """Raises: no posterior in closed form."""
        raise _not_conjugate("draw")

    def predictive(self) -> NoReturn:
        """Raises: only the posterior mode is available."""
        raise _not_conjugate("predictive")

    def log_evidence(self, stats: Stats) -> NoReturn:
        """Raises: no marginal likelihood in closed form."""
        raise _not_conjugate("log_evidence")


def _not_conjugate(verb: str) -> DomainError:
    expected = "the prior of a t distribution is not conjugate: it has a posterior mode only"
    return DomainError(sentence(f"StudentTPrior.{verb}", expected, remedy="use StudentT.fit(X, prior=...)"))

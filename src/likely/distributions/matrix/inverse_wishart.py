"""Inverse Wishart distribution: conjugate prior of a covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, PerMember
from likely.core.errors import DomainError, sentence
from likely.distributions.distribution import in_units, lone
from likely.distributions.matrix.matrix_distribution import (
    MatrixDistribution,
    bartlett,
    divergence_of_dof,
    matrix_constant,
    multidigamma,
)
from likely.numerics import spd
from likely.numerics.special import LOG_2


@dataclass(frozen=True, eq=False)
class InverseWishart(MatrixDistribution):
    """Inverse Wishart distribution with ν degrees of freedom and scale matrix Ψ.

    log p(X | ν, Ψ) = ν/2 log det Ψ/2 − log Γ_d(ν/2) − (ν+d+1)/2 log det X − ½ tr ΨX⁻¹: the distribution of X⁻¹ for
    X ~ `Wishart`(ν, Ψ⁻¹); in one dimension the inverse gamma distribution of shape ν/2 and scale Ψ/2. With a known mean
    it is the conjugate prior of a covariance (`CovarianceGivenMean`), and with an unknown mean a part of
    `NormalInverseWishart`.

    Parameters
    ----------
    dof : float or array-like (K,)
        Degrees of freedom ν > d − 1.
    scale : array-like (d, d) or (K, d, d)
        Scale matrix Ψ.

    See Also
    --------
    Wishart : The distribution of the inverse.
    NormalInverseWishart : The prior of mean and covariance.

    References
    ----------
    Murphy (2012), chapter 4.

    Examples
    --------
    >>> InverseWishart(3.0, [[2.0]]).log_prob([[[1.0]]]).round(4)
    array([-0.8792])
    >>> InverseWishart(5.0, np.eye(2)).mean.tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    _inverse: ClassVar[bool] = True

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples L A⁻ᵀ A⁻¹ Lᵀ with Bartlett factors A and Ψ = L Lᵀ.

        Returns
        -------
        ndarray (n, d, d)
            Matrices; (n, K, d, d) for a stack of K members.
        """
        a = bartlett(self.dof, self.size, n, rng)
        factor = self._root @ np.swapaxes(spd.inverse_factor(a), -1, -2)
        return spd.symmetric(factor @ np.swapaxes(factor, -1, -2))

    def _beyond(self, what: str, above: float) -> Array:
        left = self.dof - above
        if not (left > 0).all():
            expected = f"the {what} needs dof above {above:g}"
            raise DomainError(sentence("InverseWishart", expected, float(self.dof.min()), "use mode"))
        return left[..., None, None]

    @property
    def mean(self) -> Array:
        """Mean Ψ / (ν − d − 1), for ν > d + 1."""
        return self.scale / self._beyond("mean", self.size + 1)

    @property
    def mode(self) -> Array:
        """Mode Ψ / (ν + d + 1)."""
        return self.scale / (self.dof + self.size + 1)[..., None, None]

    @property
    def variance(self) -> Array:
        """Variance per entry, for ν > d + 3."""
        d, c = self.size, self._beyond("variance", self.size + 3)
        v = np.diagonal(self.scale, axis1=-2, axis2=-1)
        outer = v[..., :, None] * v[..., None, :]
        return ((c + 4) * self.scale**2 + (c + 2) * outer) / ((c + 3) * (c + 2) ** 2 * c) if d else outer

    @property
    def mean_logdet(self) -> PerMember:
        """E log det X = log det Ψ/2 − ψ_d(ν/2); one per member for a stack."""
        return lone(spd.logdet(self._root) - self.size * LOG_2 - multidigamma(0.5 * self.dof, self.size))

    def marginal(self, at: ArrayLike) -> InverseWishart:
        """Marginal distribution of a diagonal block: the block of Ψ, dof reduced by the number of omitted columns.

        Parameters
        ----------
        at : array-like of int
            The columns that remain.
        """
        at = np.atleast_1d(at)
        return InverseWishart(self.dof - (self.size - len(at)), self.scale[..., at[:, None], at])

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E log p, in closed form; one per member for a stack."""
        v, d = self.dof, self.size
        mean = spd.logdet(self._root) - d * np.log(v) - np.asarray(self.mean_logdet)  # of log det X⁻¹Ψ/ν
        h = 0.5 * (d + 1) * self.mean_logdet - 0.5 * v * mean - matrix_constant(0.5 * v, d)
        return in_units(lone(h), bits)

    def kl(self, other: InverseWishart, bits: bool = False) -> PerMember:
        """KL(self ‖ other) in closed form; per member for stacks."""
        d, w = self.size, spd.inverse_factor(self._root)
        trace = spd.trace_form(w, other.scale)
        ratio = spd.logdet(self._root) - spd.logdet(other._root)
        value = divergence_of_dof(0.5 * other.dof, 0.5 * self.dof, d)
        return in_units(lone(value + 0.5 * other.dof * ratio + 0.5 * self.dof * (trace - d)), bits)

"""Wishart distribution of scatter matrices, and conjugate prior of a precision matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, PerMember, weights
from likely.core.errors import DataError, DomainError, sentence
from likely.distributions.distribution import in_units, lone
from likely.distributions.matrix.matrix_distribution import (
    LARGEST_DOF,
    MatrixDistribution,
    bartlett,
    divergence_of_dof,
    matrix_constant,
    multidigamma,
)
from likely.distributions.matrix.matrix_rows import matrices
from likely.numerics import spd
from likely.numerics.special import LOG_2


@dataclass(frozen=True, eq=False)
class Wishart(MatrixDistribution):
    """Wishart distribution with ν degrees of freedom and scale matrix V.

    log p(X | ν, V) = (ν−d−1)/2 log det X − ½ tr V⁻¹X − ν/2 log det 2V − log Γ_d(ν/2) for symmetric positive definite X
    (d, d): the distribution of Σ x xᵀ of ν rows of N(0, V). In one dimension it is the gamma distribution of shape ν/2
    and rate 1/2V. With a known mean it is the conjugate prior of a precision (`CovarianceGivenMean`).

    Parameters
    ----------
    dof : float or array-like (K,)
        Degrees of freedom ν > d − 1.
    scale : array-like (d, d) or (K, d, d)
        Scale matrix V.

    See Also
    --------
    InverseWishart : The distribution of the inverse.

    References
    ----------
    Bishop (2006), appendix B.

    Examples
    --------
    >>> Wishart(3.0, [[2.0]]).log_prob([[[1.0]]]).round(4)
    array([-2.2086])
    >>> Wishart(5.0, np.eye(2)).mean.tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """

    _inverse: ClassVar[bool] = False

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Method of moments: mean M of the matrices, and sum of the entry variances Σ (M²ᵢⱼ + MᵢᵢMⱼⱼ)/ν."""
        d = cls.blank(x).size
        rows = matrices(x, d, "Wishart")
        given = weights(weight, len(rows.x), "Wishart")
        w = np.where(rows.seen & rows.inside, np.ones(len(rows.x)) if given is None else given, 0.0)
        if not w.sum() > 0:
            raise DataError(sentence("Wishart", "at least one matrix with weight is needed", "none"))
        mean = np.average(rows.x, axis=0, weights=w)
        variance = float(np.average((rows.x - mean) ** 2, axis=0, weights=w).sum())
        sizes = float((mean**2).sum() + np.trace(mean) ** 2)
        if not variance * (d - 1) < sizes:
            expected, remedy = f"moments must correspond to dof above d − 1 = {d - 1}", "use fit"
            raise DataError(sentence("Wishart", expected, "matrices with a larger variance", remedy))
        dof = min(sizes / variance, LARGEST_DOF) if variance > 0 else LARGEST_DOF
        return cls(np.array(dof), mean / dof)

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples by the Bartlett decomposition.

        Returns
        -------
        ndarray (n, d, d)
            Matrices; (n, K, d, d) for a stack of K members.
        """
        factor = self._root @ bartlett(self.dof, self.size, n, rng)
        return spd.symmetric(factor @ np.swapaxes(factor, -1, -2))

    @property
    def mean(self) -> Array:
        """Mean ν V."""
        return self.dof[..., None, None] * self.scale

    @property
    def mode(self) -> Array:
        """Mode (ν − d − 1) V, for ν ≥ d + 1."""
        by = self.dof - self.size - 1
        if not (by >= 0).all():
            expected = f"the mode exists for dof of at least {self.size + 1}"
            raise DomainError(sentence("Wishart", expected, float(self.dof.min()), "use mean"))
        return by[..., None, None] * self.scale

    @property
    def variance(self) -> Array:
        """Variance per entry: ν (V²ᵢⱼ + Vᵢᵢ Vⱼⱼ)."""
        v = np.diagonal(self.scale, axis1=-2, axis2=-1)
        return self.dof[..., None, None] * (self.scale**2 + v[..., :, None] * v[..., None, :])

    @property
    def mean_logdet(self) -> PerMember:
        """E log det X = ψ_d(ν/2) + log det 2V; one per member for a stack."""
        return lone(multidigamma(0.5 * self.dof, self.size) + self.size * LOG_2 + spd.logdet(self._root))

    def marginal(self, at: ArrayLike) -> Wishart:
        """Marginal distribution of a diagonal block: the same dof, the block of V.

        Parameters
        ----------
        at : array-like of int
            The columns that remain.
        """
        at = np.atleast_1d(at)
        return Wishart(self.dof, self.scale[..., at[:, None], at])

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E log p, in closed form; one per member for a stack."""
        v, d = self.dof, self.size
        mean = np.asarray(self.mean_logdet) - spd.logdet(self._root) - d * np.log(v)  # of log det V⁻¹X/ν
        h = 0.5 * (d + 1) * self.mean_logdet - 0.5 * v * mean - matrix_constant(0.5 * v, d)
        return in_units(lone(h), bits)

    def kl(self, other: Wishart, bits: bool = False) -> PerMember:
        """KL(self ‖ other) in closed form; per member for stacks."""
        d, w = self.size, spd.inverse_factor(other._root)
        trace = spd.trace_form(w, self.scale)
        ratio = spd.logdet(other._root) - spd.logdet(self._root)
        value = divergence_of_dof(0.5 * other.dof, 0.5 * self.dof, d)
        return in_units(lone(value + 0.5 * other.dof * ratio + 0.5 * self.dof * (trace - d)), bits)

"""Lomax distribution: the predictive distribution of exponential waiting times under a gamma prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import hyp2f1

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.distributions.column_distribution import ColumnDistribution
from likely.distributions.distribution import in_units, lone
from likely.numerics.special import log_ratio


@dataclass(frozen=True, eq=False)
class Lomax(ColumnDistribution):
    """Lomax (Pareto type II) distribution.

    log p(x | a, b) = Σⱼ log(a/b) − (a + 1) log(1 + xⱼ/b) for xⱼ ≥ 0, in d independent columns.

    A Pareto distribution shifted to start at 0, and the predictive distribution of an exponential waiting time whose
    rate has a `Gamma` prior of shape a and rate b.

    Parameters
    ----------
    shape : array-like (d,) or (K, d)
        Shapes a.
    scale : array-like (d,) or (K, d)
        Scales b.

    See Also
    --------
    Exponential : The same with a known rate.
    Gamma : The distribution of the rate.

    Examples
    --------
    >>> Lomax(2.0, 3.0).log_prob([0.0, 3.0]).round(4)
    array([-0.4055, -2.4849])
    """

    shape: Annotated[Array, declared.numbers("* d", 0)]  # a: (d,) or (K, d)
    scale: Annotated[Array, declared.numbers("* d", 0)]  # b

    _domains: ClassVar[dict[str, str]] = {"shape": "positive", "scale": "positive"}
    _support = "unsigned"

    @staticmethod
    def _parameter_score(x: Array, shape: Array, scale: Array) -> tuple[Array, ...]:
        """∂ log p by log shape and log scale."""
        z = x / scale
        return 1 - shape * np.log1p(z), (shape + 1) * z / (1 + z) - 1

    def _log_pdf(self, x: Array, shape: Array, scale: Array) -> Array:
        return np.where(
            x >= 0, log_ratio(shape, scale) - (shape + 1) * _log1p_ratio(np.maximum(x, 0.0), scale), -np.inf
        )

    def _cdf(self, x: Array, shape: Array, scale: Array) -> Array:
        return -np.expm1(-shape * _log1p_ratio(np.maximum(x, 0.0), scale))

    def _quantile(self, p: Array, shape: Array, scale: Array) -> Array:
        return scale * np.expm1(-np.log1p(-p) / shape)

    def _draw(self, shape_: tuple[int, ...], rng: Generator, shape: Array, scale: Array) -> Array:
        return np.minimum(scale * np.expm1(rng.standard_exponential(shape_) / shape), np.finfo(np.float64).max)

    def _entropy(self, shape: Array, scale: Array) -> Array:
        return 1.0 + 1.0 / shape + log_ratio(scale, shape)

    @property
    def mean(self) -> Array:
        """Mean b / (a − 1); infinite for a ≤ 1."""
        return np.where(self.shape > 1, self.scale / np.where(self.shape > 1, self.shape - 1, 1.0), np.inf)

    @property
    def variance(self) -> Array:
        """Variance b² a / ((a − 1)² (a − 2)); infinite for a ≤ 2."""
        a = np.where(self.shape > 2, self.shape, 3.0)
        return np.where(self.shape > 2, (self.scale / (a - 1)) ** 2 * (a / (a - 2)), np.inf)

    @property
    def mode(self) -> Array:
        """0."""
        return np.zeros_like(self.shape)

    def kl(self, other: Lomax, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log(a b'/(a' b)) − (a + 1)/a + (a' + 1) E log(1 + x/b').

        The mean is ₂F₁(1, a; a + 1; 1 − b'/b) / a, and 1/a for b' = b.
        """
        self._same_shape(other)
        (a, b), (c, d) = (self.shape, self.scale), (other.shape, other.scale)
        grown = hyp2f1(1.0, a, a + 1.0, 1.0 - d / b) / a
        value = log_ratio(a, c) + log_ratio(d, b) - (a + 1) / a + (c + 1) * grown
        return in_units(lone(value.sum(axis=-1)), bits)


def _log1p_ratio(x: Array, scale: Array) -> Array:
    """log(1 + x/b), also where the quotient overflows."""
    ratio = x / scale
    return np.where(ratio < 1e290, np.log1p(ratio), log_ratio(np.where(x > 0, x, 1.0), scale))

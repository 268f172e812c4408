"""What we believe of a mean direction when the concentration about it is known: a von Mises distribution again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.distributions.distribution import lone
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.distributions.univariate.von_mises import VonMises
from likely.distributions.univariate.von_mises_sum import VonMisesSum
from likely.numerics.bessel import log_i0_scaled
from likely.numerics.special import LOG_2PI


@dataclass(frozen=True, eq=False)
class DirectionPrior(Value):
    """μ ~ VonMises(m, c) with x | μ ~ VonMises(μ, κ), κ known: c eⁱᵐ + κ Σ eⁱˣ is the posterior's vector.

    `belief` is the distribution of μ, one value or a stack; `concentration` κ is a number, (d,) or (K, d). Mode, mean
    and median of the direction are all its center.

    >>> post = DirectionPrior(VonMises(0.0, 1.0), 4.0).update(VonMises(0.0, 4.0).collect([0.5, 0.7]))
    >>> post.belief.center.round(4), post.belief.concentration.round(4)
    (array([0.5358]), array([8.8035]))
    """

    serves = ("VonMises",)  # distributions whose parameters it speaks of

    belief: VonMises
    concentration: Array

    def __post_init__(self) -> None:
        kappa = parameter(self.concentration, "DirectionPrior", "concentration")
        if not isinstance(self.belief, VonMises):
            got = type(self.belief).__name__
            raise DomainError(
                sentence("DirectionPrior", "belief must be a VonMises distribution of the direction", got)
            )
        if kappa.ndim > 2 or not (kappa > 0).all():
            raise DomainError(sentence("DirectionPrior", "concentration must be positive, a number, (d,) or (K, d)"))
        shape = self.belief.center.shape
        if kappa.ndim > len(shape) or any(
            n not in (1, m) for n, m in zip(kappa.shape[::-1], shape[::-1], strict=False)
        ):
            got = (shape, kappa.shape)
            raise ShapeError(sentence("DirectionPrior", "belief and concentration must fit each other", got))
        self._set(belief=self.belief, concentration=kappa)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return self.belief.dim

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return self.belief.members

    def update(self, stats: FeatureSums) -> DirectionPrior:
        """The posterior: vectors add."""
        self._fits(stats.weight.shape, "statistics")
        b = self.belief
        east = b.concentration * np.cos(b.center) + self.concentration * stats.sums[..., 0]
        north = b.concentration * np.sin(b.center) + self.concentration * stats.sums[..., 1]
        told = np.broadcast_to(stats.weight > 0, east.shape)
        center = np.where(told, np.arctan2(north, east), b.center)
        kappa = np.where(told, np.hypot(east, north), b.concentration)
        return self.replace(belief=VonMises.trusted(center=center, concentration=kappa))

    def point(self, rule: str = "mode") -> VonMises:
        """A von Mises distribution about the "mode", "mean" or "median" of the direction, which are one."""
        if rule not in ("mode", "mean", "median"):
            raise DomainError(sentence("DirectionPrior", 'rule must be "mode", "mean" or "median"', repr(rule)))
        return self._distribution(self.belief.center)

    def draw(self, rng: Generator) -> VonMises:
        """A von Mises distribution about a direction from the belief."""
        return self._distribution(self.belief.sample(1, rng)[0])

    def _distribution(self, center: Array) -> VonMises:
        return VonMises.trusted(center=np.array(center), concentration=self._known(center.shape))

    def _known(self, shape: tuple[int, ...]) -> Array:
        return np.array(np.broadcast_to(self.concentration, shape))

    def predictive(self) -> VonMisesSum:
        """One new row, the direction integrated out: the sum of two von Mises angles."""
        b = self.belief
        return VonMisesSum.trusted(
            center=np.array(b.center), concentration=self._known(b.center.shape), belief=np.array(b.concentration)
        )

    def log_evidence(self, stats: FeatureSums) -> Any:
        """log p(the rows, one after another), directions integrated out; one per member for a stack.

        Σⱼ log I₀(c') / I₀(c) − w log 2π I₀(κ), with c' the posterior's concentration.
        """
        after, before = self.update(stats).belief.concentration, self.belief.concentration
        kappa = self._known(after.shape)
        shorter = before + stats.weight * kappa - after  # vectors that do not point one way
        each = log_i0_scaled(after) - log_i0_scaled(before) - shorter
        return lone((each - stats.weight * (LOG_2PI + log_i0_scaled(kappa))).sum(axis=-1))

    def log_density(self, model: VonMises) -> Any:
        """log p(the directions of a von Mises distribution); one per member for a stack."""
        self._fits(model.center.shape, "a model")
        each = self.belief._log_pdf(model.center, **self.belief.parameters)
        return lone(np.broadcast_to(each, model.center.shape).sum(axis=-1))

    def _fits(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(
                sentence("DirectionPrior", f"{what} that fits {self.belief.center.shape} is needed", shape)
            )

"""Conjugate prior of the mean direction of a von Mises distribution with known concentration: von Mises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import lone
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.distributions.univariate.von_mises import VonMises
from likely.distributions.univariate.von_mises_sum import VonMisesSum
from likely.numerics.bessel import log_i0_scaled
from likely.numerics.special import LOG_2PI


@dataclass(frozen=True, eq=False)
class VonMisesPrior(Value):
    """Conjugate prior of the center of a von Mises distribution with known concentration.

    μ ~ VonMises(m, c) for x | μ ~ VonMises(μ, κ), κ known; the posterior has the vector c eⁱᵐ + κ Σ eⁱˣ. Mode, mean and
    median of the direction equal its center.

    Parameters
    ----------
    belief : VonMises
        Distribution of μ, one or a stack.
    concentration : array-like (d,) or (K, d)
        Known concentrations κ.

    See Also
    --------
    VonMises : Its likelihood.
    VonMisesSum : The predictive distribution.

    Examples
    --------
    >>> post = VonMisesPrior(VonMises(0.0, 1.0), 4.0).update(VonMises(0.0, 4.0).collect([0.5, 0.7]))
    >>> post.belief.center.round(4), post.belief.concentration.round(4)
    (array([0.5358]), array([8.8035]))
    """

    serves = ("VonMises",)  # distributions of which it is a prior

    belief: Annotated[VonMises, declared.distribution]
    concentration: Annotated[Array, declared.numbers("?", 0)]

    def __post_init__(self) -> None:
        kappa = parameter(self.concentration, "VonMisesPrior", "concentration")
        if not isinstance(self.belief, VonMises):
            got = type(self.belief).__name__
            raise DomainError(sentence("VonMisesPrior", "belief must be a VonMises distribution of the direction", got))
        if kappa.ndim > 2 or not (kappa > 0).all():
            raise DomainError(sentence("VonMisesPrior", "concentration must be positive, a number, (d,) or (K, d)"))
        shape = self.belief.center.shape
        if kappa.ndim > len(shape) or any(
            n not in (1, m) for n, m in zip(kappa.shape[::-1], shape[::-1], strict=False)
        ):
            got = (shape, kappa.shape)
            expected = "belief and concentration must have shapes that broadcast"
            raise ShapeError(sentence("VonMisesPrior", expected, got))
        self._set(belief=self.belief, concentration=kappa)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return self.belief.dim

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return self.belief.members

    def update(self, stats: FeatureSums) -> VonMisesPrior:
        """Posterior: resultant vectors add."""
        self._fits(stats.weight.shape, "statistics")
        b = self.belief
        east = b.concentration * np.cos(b.center) + self.concentration * stats.sums[..., 0]
        north = b.concentration * np.sin(b.center) + self.concentration * stats.sums[..., 1]
        has_rows = np.broadcast_to(stats.weight > 0, east.shape)
        center = np.where(has_rows, np.arctan2(north, east), b.center)
        kappa = np.where(has_rows, np.hypot(east, north), b.concentration)
        return self.replace(belief=VonMises.trusted(center=center, concentration=kappa))

    def point(self, rule: PointRule = "mode") -> VonMises:
        """Von Mises distribution at the "mode", "mean" or "median" of the direction, which are equal."""
        check_option(rule, PointRule, "VonMisesPrior", "rule")
        return self._distribution(self.belief.center)

    def draw(self, rng: Generator) -> VonMises:
        """Von Mises distribution with a direction sampled from the prior."""
        return self._distribution(self.belief.sample(1, rng)[0])

    def _distribution(self, center: Array) -> VonMises:
        return VonMises.trusted(center=np.array(center), concentration=self._known(center.shape))

    def _known(self, shape: tuple[int, ...]) -> Array:
        return np.array(np.broadcast_to(self.concentration, shape))

    def predictive(self) -> VonMisesSum:
        """Posterior predictive distribution of one row: the sum of two von Mises angles."""
        b = self.belief
        return VonMisesSum.trusted(
            center=np.array(b.center), concentration=self._known(b.center.shape), belief=np.array(b.concentration)
        )

    def log_evidence(self, stats: FeatureSums) -> PerMember:
        """Log marginal likelihood of the rows, directions integrated out; one per member for a stack.

        Σⱼ log I₀(c') / I₀(c) − w log 2π I₀(κ), with c' the posterior's concentration.
        """
        after, before = self.update(stats).belief.concentration, self.belief.concentration
        kappa = self._known(after.shape)
        dispersion = before + stats.weight * kappa - after  # sum of the lengths minus length of the resultant
        ratio = log_i0_scaled(after) - log_i0_scaled(before) - dispersion
        return lone((ratio - stats.weight * (LOG_2PI + log_i0_scaled(kappa))).sum(axis=-1))

    def log_density(self, model: VonMises) -> PerMember:
        """Log density of the directions of a von Mises distribution; one per member for a stack."""
        self._fits(model.center.shape, "a model")
        each = self.belief._log_pdf(model.center, **self.belief.parameters)
        return lone(np.broadcast_to(each, model.center.shape).sum(axis=-1))

    def _fits(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(sentence("VonMisesPrior", f"{what} that fits {self.belief.center.shape} is needed", shape))

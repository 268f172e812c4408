"""Bayes error of two Gaussians: tails of a quadratic form in normal variables by contour integrals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from likely.core.arrays import Array
from likely.core.errors import DomainError
from likely.decision.boundary.conic import Canonical, canonical
from likely.decision.theory.decision_problem import Problem
from likely.distributions.distribution import Estimate
from likely.distributions.gaussian.gaussian import Gaussian

ENOUGH = 1e-7  # error of a tail beyond which sampling is used instead
RARE = -60.0  # log of a probability whose complement is 1
BEND = 0.5  # bend of the contour toward decay of the integrand
FAR = 45.0  # the contour ends at sinh(45) units: 10¹⁹
NODES = (64, 128, 256, 512, 1024, 2048, 4096)


def two_gaussians(asked: Problem) -> Estimate | None:
    """Bayes risk of two Gaussian classes, from the distribution of log p(x | 0)/p(x | 1) under each (Ney 2.5)."""
    if len(asked.distributions) != 2 or not all(
        isinstance(distribution, Gaussian) for distribution in asked.distributions
    ):
        return None
    try:
        form = canonical(*asked.distributions, 0.0)
    except DomainError:  # singular covariances
        return None
    cuts, actions = asked.thresholds()
    if not len(cuts):
        return Estimate(asked.paid + float(asked.excess[actions].sum()), 0.0)
    sides = [_sides(_QuadraticForm.of(form, k), cuts) for k in range(2)]
    error = float(sum(asked.excess[:, k].max() * lost for k, (_, lost) in enumerate(sides))) + form.noise
    if not error <= ENOUGH:
        return None
    chance = np.stack([each for each, _ in sides], axis=1)
    return Estimate(asked.paid + float((asked.excess[actions] * chance).sum()), error)


def _sides(squares: _QuadraticForm, cuts: Array) -> tuple[Array, float]:
    """The probability of each interval between cuts, and its error."""
    tails = [squares.tails(float(cut)) for cut in cuts]
    low, high = np.array([t[0] for t in tails]), np.array([t[1] for t in tails])
    inner = np.where(low[1:] < high[:-1], low[1:] - low[:-1], high[:-1] - high[1:])
    lost = float(sum(abs(t[0] + t[1] - 1) for t in tails)) + 1e-15
    return np.concatenate([low[:1], np.maximum(inner, 0.0), high[-1:]]), lost


@dataclass(frozen=True, eq=False)
class _QuadraticForm:
    """Q = shift + Σ gⱼ eⱼ + wⱼ eⱼ² with standard normal e: a quadratic form of a Gaussian.

    log E exp(sQ) = K(s) = s·shift + Σ −½ log(1 − 2swⱼ) + ½ s²gⱼ²/(1 − 2swⱼ).
    """

    shift: float
    g: Array
    w: Array

    @classmethod
    def of(cls, form: Canonical, k: int) -> _QuadraticForm:
        """The log-likelihood ratio under the first (0) or second (1) distribution."""
        mean, variance = (form.half, form.mine) if k == 0 else (-form.half, form.other)
        shift = form.c + float((form.a * mean**2 + form.b * mean).sum())
        return cls(shift, (2 * form.a * mean + form.b) * np.sqrt(variance), form.a * variance)

    def mirrored(self) -> _QuadraticForm:
        """−Q."""
        return _QuadraticForm(-self.shift, -self.g, -self.w)

    def cumulant(self, s: Any) -> Any:
        """The cumulant generating function K(s) of numbers (n,), real or complex."""
        rest = 1 - 2 * s[:, None] * self.w
        return s * self.shift + (-0.5 * np.log(rest) + 0.5 * s[:, None] ** 2 * self.g**2 / rest).sum(axis=1)

    def tails(self, t: float) -> tuple[float, float]:
        """P(Q < t) and P(Q > t), by separate integrals: their sum is 1 if both are accurate."""
        (low, less), (high, more) = self.mirrored().above(-t), self.above(t)
        if less < RARE:
            return (low if np.isfinite(low) else 0.0), 1.0
        return (1.0, high if np.isfinite(high) else 0.0) if more < RARE else (low, high)

    def above(self, t: float) -> tuple[float, float]:
        """P(Q > t), and the log of its Chernoff bound: min over s of exp(K(s) − st).

        1/2πi ∫ exp(K(s) − st)/s ds through the saddle point right of 0, bent toward decay of the integrand.
        """
        end = 0.5 / self.w.max() if (self.w > 0).any() else np.inf
        if np.isinf(end) and self._most() <= t:
            return 0.0, -np.inf
        saddle, unit = self._saddle(t, end)
        height = float(self._height(np.array([saddle]), t)[0])
        best, change = np.nan, np.inf
        for bend in (-BEND * np.sign(self._slope() - t), 0.0):
            value, moved = self._refined_integral(t, saddle, unit, float(bend), height)
            if moved < change:
                best, change = value, moved
            if change < 1e-13:
                break
        return float(np.clip(best * np.exp(height), 0.0, 1.0)), height + float(np.log(saddle))

    def _most(self) -> float:
        """The largest value of Q if all squares are negative, +inf with a linear part."""
        return np.inf if (self.g[self.w == 0] != 0).any() else self._slope()

    def _slope(self) -> float:
        """K(s)/s for large s."""
        curved = self.w != 0
        return self.shift - float((self.g[curved] ** 2 / (4 * self.w[curved])).sum())

    def _height(self, s: Any, t: float) -> Any:
        return self.cumulant(s) - s * t - np.log(s)

    def _saddle(self, t: float, end: float) -> tuple[float, float]:
        """The saddle point, minimizer of K(s) − st − log s in 0 … `end` by Brent's method, and its width."""
        to_s = (lambda v: end / (1 + np.exp(-v))) if np.isfinite(end) else np.exp
        height = lambda v: float(self._height(np.array([to_s(v)]), t)[0])  # noqa: E731
        v = float(minimize_scalar(height, bounds=(-40.0, 40.0), method="bounded", options={"xatol": 1e-9}).x)
        s = float(to_s(v))
        rest = 1 - 2 * s * self.w
        curvature = float((2 * self.w**2 / rest**2 + self.g**2 / rest**3).sum()) + 1 / s**2
        return s, float(1 / np.sqrt(curvature))

    def _refined_integral(
        self, t: float, saddle: float, unit: float, bend: float, height: float
    ) -> tuple[float, float]:
        """The integral by successively refined sums, and the change of the last refinement."""
        value = change = np.inf
        for n in NODES:
            v = np.linspace(0.0, FAR, n + 1)
            y, slope = unit * np.sinh(v), unit * np.cosh(v)
            s = saddle + 1j * y + bend * unit * (np.cosh(v) - 1)
            with np.errstate(all="ignore"):
                inside = np.exp(self._height(s, t) - height) * (1j + bend * np.tanh(v)) * slope
            inside = np.where(np.isfinite(inside), inside, 0.0).imag
            inside[0] *= 0.5
            new = float(inside.sum()) * FAR / n / np.pi
            change, value = abs(new - value), new
            if change <= 1e-14 * abs(new):
                break
        return value, change / max(abs(value), 1e-300)

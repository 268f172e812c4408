"""Cauchy distribution: heavy tails, neither mean nor variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.core.errors import DomainError, sentence
from likely.distributions.column_distribution import ValueDistribution
from likely.distributions.distribution import in_units, lone
from likely.distributions.scale_floor import grain
from likely.distributions.symmetric_distribution import Centered
from likely.distributions.univariate.laplace import weighted_median
from likely.numerics.special import LOG_2, LOG_PI

STEPS = 200
FAR = 1e130  # units from the median: values beyond are clipped, which changes the estimate by less than rounding
FLOOR = 3e-5  # of the median distance of the other values: the scale where one value has half of the weight


@dataclass(frozen=True, eq=False)
class Cauchy(Centered, ValueDistribution):
    """Cauchy distribution.

    log p(x | μ, s) = −Σⱼ log π sⱼ (1 + zⱼ²) with z = (x − μ) / s, in d independent columns.

    Student's t distribution with one degree of freedom. It has no mean and no variance: `center` is the median, and the
    scale is half the interquartile range. The joint likelihood has one maximum (Copas 1975), found by
    Newton's method, unless half of the weight lies on one value: the scale estimate then goes to its floor.

    Parameters
    ----------
    center : array-like (d,) or (K, d)
        Medians μ.
    scale : array-like (d,) or (K, d)
        Scales s.

    See Also
    --------
    StudentT : More degrees of freedom.
    CauchyDensity : The estimator.

    References
    ----------
    Copas (1975); Ney, lecture notes, 1.5.

    Examples
    --------
    >>> Cauchy(0.0, 1.0).log_prob([0.0, 1.0]).round(4)
    array([-1.1447, -1.8379])
    """

    center: Annotated[Array, declared.numbers("* d")]  # μ: (d,) or (K, d)
    scale: Annotated[Array, declared.numbers("* d", 0)]  # s

    _domains: ClassVar[dict[str, str]] = {"center": "real", "scale": "positive"}
    _spreads: ClassVar[bool] = True

    @staticmethod
    def _parameter_score(x: Array, center: Array, scale: Array) -> tuple[Array, ...]:
        """∂ log p by the center and the log scale."""
        z = (x - center) / scale
        weight = 1 / (1 + z * z)
        return 2 * z * weight / scale, 1 - 2 * weight

    def _log_pdf(self, x: Array, center: Array, scale: Array) -> Array:
        deviation = np.abs(x - center)
        spread = np.pi * (scale + deviation * (deviation / scale))
        inside = (spread > 0) & (spread < np.inf)
        if np.all(inside):
            return np.asarray(-np.log(spread))
        # in logarithms, and in halves where the difference itself overflows
        log_deviation = np.where(np.isinf(deviation), LOG_2 + np.log(np.abs(0.5 * x - 0.5 * center)), np.log(deviation))
        far = LOG_PI + np.logaddexp(np.log(scale), 2 * log_deviation - np.log(scale))
        return -np.where(inside, np.log(spread), far)

    def _cdf(self, x: Array, center: Array, scale: Array) -> Array:
        return np.arctan2(scale, center - x) / np.pi

    def _quantile(self, p: Array, center: Array, scale: Array) -> Array:
        tail = np.minimum(p, 1.0 - p)
        far = scale / np.tan(np.pi * tail)
        near = scale * np.tan(np.pi * (p - 0.5))
        return center + np.where(tail > 0.25, near, np.where(p < 0.5, -far, far))

    def _draw(self, shape: tuple[int, ...], rng: Generator, center: Array, scale: Array) -> Array:
        return center + scale * rng.standard_cauchy(shape)

    def _entropy(self, center: Array, scale: Array) -> Array:
        return np.log(4 * np.pi) + np.log(scale)

    @property
    def mean(self) -> NoReturn:
        """Raises: the mean does not exist."""
        raise DomainError(sentence("Cauchy", "the distribution has no mean", remedy="use center, the median"))

    @property
    def variance(self) -> NoReturn:
        """Raises: the variance does not exist."""
        raise DomainError(
            sentence("Cauchy", "the distribution has no variance", remedy="use scale, half the interquartile range")
        )

    @property
    def expected(self) -> Array:
        """Value imputed for a missing entry: the median."""
        return self.center

    def kl(self, other: Cauchy, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log ((s + s')² + (μ − μ')²) / 4ss'   (Chyzak and Nielsen 2019); member by member."""
        self._same_shape(other)
        root = np.sqrt(self.scale) * np.sqrt(other.scale)
        with np.errstate(over="ignore"):
            deviation = np.hypot(self.scale - other.scale, self.center - other.center) / (2 * root)
            sum_ = np.hypot(0.5 * self.scale + 0.5 * other.scale, 0.5 * self.center - 0.5 * other.center)
            far = 2 * np.log(sum_) - np.log(self.scale) - np.log(other.scale)
            each = np.where(deviation < 1e100, np.log1p(deviation**2), far)
        return in_units(lone(each.sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> NoReturn:
        """Raises: there are no moments to match."""
        raise DomainError(sentence("Cauchy", "the distribution has no moments to match", remedy="use fit"))

    @classmethod
    def _plain(cls, d: int) -> Cauchy:
        return cls.trusted(center=np.zeros(d), scale=np.ones(d))

    def _from_values(self, values: Array, weight: Array, **old: float) -> dict[str, float]:
        center, scale = best_cauchy(values, weight)
        return {"center": center, "scale": scale}


# ---------------------------------------------------------- maximum likelihood


def best_cauchy(values: Array, weight: Array) -> tuple[float, float]:
    """Maximum-likelihood center and scale for sorted values (m,) with weights (m,).

    The likelihood has one stationary point, a maximum, if no value has half of the weight (Copas 1975). Otherwise
    there is no maximum: the center is that value, with a small scale.
    """
    w = weight / weight.sum()
    heaviest = int(w.argmax())
    if w[heaviest] > 0.5 - 1e-12 and not (len(values) == 2 and abs(w[heaviest] - 0.5) <= 1e-12):
        return float(values[heaviest]), _scale_floor(values, w, heaviest)
    smaller = 0.25 if np.abs(values[[0, -1]]).max() > 4e307 else 1.0  # differences must not overflow
    values = values * smaller
    middle = weighted_median(values, w)
    deviation = np.abs(values - middle)
    order = np.argsort(deviation, kind="stable")
    unit = weighted_median(deviation[order], w[order])
    unit = unit if unit > 0 else float(deviation[order][deviation[order] > 0][0])
    with np.errstate(over="ignore"):
        z = np.clip((values - middle) / unit, -FAR, FAR)
    center, log_scale = _maximized(z, w)
    scale = max(float(unit * np.exp(log_scale)), float(np.finfo(np.float64).smallest_subnormal))
    return (middle + unit * center) / smaller, scale / smaller


def _scale_floor(values: Array, w: Array, at: int) -> float:
    others = np.abs(np.delete(values, at) - values[at])
    least = float(grain(values[at])) if len(others) == 0 else FLOOR * float(np.median(others))
    return max(least, 1e-290)


def _maximized(z: Array, w: Array) -> tuple[float, float]:
    """Newton ascent from (0, 1), in center and log scale."""
    at, value = np.zeros(2), _mean_log(z, w, np.zeros(2))
    for _ in range(STEPS):
        step = _newton_step(z, w, at)
        found = _mean_log(z, w, at + step)
        if not found >= value - 1e-14 * abs(value):  # also where it is NaN
            step = _em_step(z, w, at)
            found = _mean_log(z, w, at + step)
        at, value = at + step, max(found, value)
        if np.abs(step[0]) <= 1e-15 * np.exp(at[1]) + 1e-16 and np.abs(step[1]) <= 1e-15:
            break
    return float(at[0]), float(at[1])


def _mean_log(z: Array, w: Array, at: Array) -> float:
    """Mean log-likelihood, up to −log π."""
    scale = np.exp(at[1])
    return float(-at[1] - w @ np.log1p(((z - at[0]) / scale) ** 2))


def _newton_step(z: Array, w: Array, at: Array) -> Array:
    """The Newton step for (center, log scale), limited to 2 scales and a factor of e."""
    scale = np.exp(at[1])
    t = (z - at[0]) / scale
    pull = 1 / (1 + t * t)
    first = np.array([w @ (2 * t * pull), w @ (1 - 2 * pull)])
    cc, cs, ss = w @ (2 * pull * (2 * pull - 1)), w @ (-4 * t * pull**2), w @ (-4 * t * t * pull**2)
    determinant = cc * -1.0 * ss - cs * cs
    if not (cc > 0 and determinant > 0):
        return _em_step(z, w, at)
    # minus the Hessian is [[cc, −cs], [−cs, −ss]]
    step = np.array([-ss * first[0] + cs * first[1], cs * first[0] + cc * first[1]]) / determinant
    step = step / max(1.0, abs(step[0]) / 2, abs(step[1]))
    return np.array([step[0] * scale, step[1]])


def _em_step(z: Array, w: Array, at: Array) -> Array:
    """An EM step with latent scales, which never decreases the likelihood."""
    scale = np.exp(at[1])
    pull = 1 / (1 + ((z - at[0]) / scale) ** 2)
    center = w @ (pull * z) / (w @ pull)
    square = 2 * (w @ (pull * (z - center) ** 2))
    return np.array([center - at[0], 0.5 * np.log(square) - at[1]])

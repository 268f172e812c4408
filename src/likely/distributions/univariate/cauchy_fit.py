"""Maximum-likelihood fit of the Cauchy distribution: Newton's method, with EM steps as safeguard."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.distributions.scale_floor import grain
from likely.distributions.univariate.laplace import weighted_median

STEPS = 200
FAR = 1e130  # units from the median: values beyond are clipped, which changes the estimate by less than rounding
FLOOR = 3e-5  # of the median distance of the other values: the scale where one value has half of the weight


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

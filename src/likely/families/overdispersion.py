"""How much more counts spread than a Poisson law's: the size of a negative binomial law, by maximum likelihood."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.maths.special import deviance, digamma_gap

LIMIT = 1e8  # times the mean: a size from which the law is a Poisson law to eight digits
TINY = 1e-8  # the smallest size looked for


def limit_of(mean: float) -> float:
    """The size that stands for infinity."""
    return LIMIT * max(mean, 1.0)


def fitted_size(x: Array, w: Array) -> tuple[float, float]:
    """Size r and mean m of maximum likelihood for counts x with weights w; r is `limit_of(m)` where no r is best.

    The mean is that of the counts whatever r is. The slope of what is left in r goes from + to − once if the variance
    exceeds the mean, and stays + otherwise: the best law is then a Poisson law, r = ∞.
    """
    total = float(w.sum())
    mean = float(w @ x) / total
    if mean <= 0:
        return 1.0, 0.0
    most = limit_of(mean)
    if float(w @ (x - mean) ** 2) / total <= mean or _slope(most, x, w, mean) >= 0:
        return most, mean
    if _slope(TINY, x, w, mean) <= 0:
        return TINY, mean
    from scipy.optimize import brentq

    found = brentq(lambda t: _slope(float(np.exp(t)), x, w, mean), np.log(TINY), np.log(most), xtol=1e-15, rtol=1e-15)
    return float(np.exp(found)), mean


def _slope(r: float, x: Array, w: Array, mean: float) -> float:
    """r² d/dr of the log-likelihood at p = r / (r + m): Σ w [ψ(x + r) − ψ(r) − log(1 + m/r)], without cancellation.

    log(1 + x/r) − log(1 + m/r) is (x − m)/(r + m), which sums to 0, less a deviance of 1 from (r + x)/(r + m).
    """
    t = (x - mean) / (r + mean)
    spread = w @ deviance(1.0, 1.0 + t, -t)
    return float(r * r * (w @ (digamma_gap(r) - digamma_gap(r + x)) - spread))

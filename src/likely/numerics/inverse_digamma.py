"""Inverse digamma function ψ⁻¹."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, polygamma

from likely.core.arrays import Array
from likely.numerics.special import log_minus_digamma


def inverse_digamma(y: Any) -> Array:
    """a > 0 with ψ(a) = y, by Newton's method from Minka's initial value; convex, so five steps reach rounding.

    >>> inverse_digamma(digamma([0.01, 1.0, 50.0])).round(12)
    array([1.e-02, 1.e+00, 5.e+01])
    """
    y = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore"):
        a = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / np.where(y < -2.22, y + 0.5772156649, -1.0))
    for _ in range(6):
        # from 10 on, log a − gap(a) keeps the digits of a that ψ(a) shows; steps are relative: a stays positive
        residual = np.where(a > 1e3, np.log(a) - log_minus_digamma(a), digamma(a)) - y
        a = np.maximum(a - residual / polygamma(1, a), 0.1 * a)
    return np.asarray(a)

"""Compiled loop: log-densities of one value under K univariate Gaussians, given the logarithms of the variances."""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def one_column(x, mean, variance, log, constant, out):  # type: ignore[no-untyped-def]
    """out (K,) = −½ [(x − μ_k)² / v_k + log v_k + constant]; the logarithms are given: NumPy's are far faster."""
    for k in range(len(mean)):
        z = x - mean[k]
        out[k] = -0.5 * (z * z / variance[k] + log[k] + constant)

"""Mutual information of a contingency table, with the Miller–Madow bias correction for counts."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import entr, rel_entr

from likely.core.arrays import Array
from likely.distributions.distribution import Estimate


def table_information(p: Array, total: float | None) -> Estimate:
    """Σ p log p / (p_a p_b) of probabilities (A, B); of `total` counts, an estimate for the underlying distribution.

    Sampling noise looks like dependence: the Miller–Madow correction (1955) subtracts (nonempty cells − nonempty rows −
    nonempty columns + 1) / 2N, about the mean of the χ² distribution that 2N I follows under independence. It may be
    negative where cells are empty, and then adds: the result never exceeds the smaller of the marginal entropies, as
    I[a; b] ≤ H[a] and I[a; b] ≤ H[b] hold for every table. The error combines in quadrature the
    delta method's √(Var[log ratio] / N), which vanishes at independence, and the independent √(2 ν) / 2N of that χ²
    distribution with ν = (A − 1)(B − 1); a term for possible but empty cells is added.

    >>> table_information(np.array([[0.5, 0.0], [0.0, 0.5]]), None).value.__round__(6)
    0.693147
    """
    independent = p.sum(axis=1)[:, None] * p.sum(axis=0)
    value = max(0.0, float(rel_entr(p, independent).sum()))
    if total is None:
        return Estimate(value, 0.0)
    ratio = np.log(np.divide(p, independent, out=np.ones_like(p), where=p > 0))
    delta = max(0.0, float((p * ratio**2).sum()) - value**2) / total
    cells, rows, columns = (int((t > 0).sum()) for t in (p, p.sum(axis=1), p.sum(axis=0)))
    free = (rows - 1) * (columns - 1)
    most = min(float(entr(p.sum(axis=axis)).sum()) for axis in (0, 1))
    least = min(max(0.0, value - (cells - rows - columns + 1) / (2 * total)), most)
    open_ = (rows * columns - cells) / (2 * total)
    return Estimate(least, math.sqrt(delta + 2 * free / (2 * total) ** 2) + open_)

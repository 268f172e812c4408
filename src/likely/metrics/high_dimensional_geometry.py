"""Geometry of high-dimensional data: concentration of distances, hubness, intrinsic dimension."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from likely.core.arrays import Array, Index, PerMember
from likely.core.errors import DataError, DomainError, ShapeError, sentence


class GaussianShell(NamedTuple):
    """Distribution of ‖x − μ‖² under a Gaussian with Σ = I: χ² of D degrees.

    Parameters
    ----------
    mean : float
        The mean D.
    variance : float
        The variance 2D.
    mode : float
        The mode.
    height : float
        The density at the mode.
    """

    mean: float
    variance: float
    mode: float
    height: float  # of the density at the mode


def gaussian_shell(dim: int) -> GaussianShell:
    """Squared radius of a D-dimensional standard Gaussian: rows lie near √D, not at the center.

    Parameters
    ----------
    dim : int
        Number of dimensions D.

    Returns
    -------
    GaussianShell
        Mean, variance and mode of ‖x − μ‖², and the density at the mode.

    References
    ----------
    Ney, lecture notes, 3.2.

    Examples
    --------
    >>> shell = gaussian_shell(16)
    >>> shell.mean, shell.variance, shell.mode, round(shell.height, 5)
    (16.0, 32.0, 14.0, 0.0745)
    """
    if dim < 2:
        raise DomainError(sentence("gaussian_shell", "dim must be at least 2, else the density has no mode", dim))
    half, mode = dim / 2.0, dim - 2.0
    log_height = (half - 1) * np.log(mode) if mode > 0 else 0.0
    height = float(np.exp(log_height - mode / 2 - half * np.log(2.0) - gammaln(half)))
    return GaussianShell(float(dim), 2.0 * dim, mode, height)


def shell_to_ball_ratio(dim: ArrayLike, density: ArrayLike, factor: ArrayLike = 2.0) -> PerMember:
    """Probability of the ring a … factor·a relative to the ball of radius a: (factor^D − 1) · density.

    Parameters
    ----------
    dim : int or array-like
        Number of dimensions D.
    density : float or array-like
        Mean density in the ring over that in the ball, at most 1 where it falls outward.
    factor : float or array-like, default 2.0
        Outer radius over inner radius.

    Returns
    -------
    float or ndarray
        The ratio.

    References
    ----------
    Ney, lecture notes, 3.2.

    Examples
    --------
    >>> float(shell_to_ball_ratio(16, 0.1))
    6553.5
    """
    D, f, r = (np.asarray(v, dtype=np.float64) for v in (dim, factor, density))
    if not ((f >= 1).all() and (r >= 0).all() and (r <= 1).all() and (D >= 0).all()):
        expected = "dim must not be negative, density lie in 0 … 1, and factor be at least 1"
        got = f"{np.asarray(dim)}, {np.asarray(density)} and {np.asarray(factor)}"
        raise DomainError(sentence("shell_to_ball_ratio", expected, got))
    with np.errstate(over="ignore"):
        grown = f**D
        return np.where(grown > 2, grown - 1, np.expm1(D * np.log(f))) * r


def relative_contrast(nearest: ArrayLike, farthest: ArrayLike) -> Array:
    """Relative contrast (farthest − nearest) / nearest of each row: near 0, distances are not informative.

    It falls like 1/√D for independent columns.

    Parameters
    ----------
    nearest : array-like (n,)
        Distance of each row to its nearest neighbor.
    farthest : array-like (n,)
        Distance of each row to the farthest row.

    Returns
    -------
    ndarray (n,)
        Infinite where the nearest neighbor is a duplicate.

    References
    ----------
    Beyer and others (1999).

    Examples
    --------
    >>> relative_contrast([1.0, 2.0], [3.0, 2.5])
    array([2.  , 0.25])
    """
    near, far = np.asarray(nearest, dtype=np.float64), np.asarray(farthest, dtype=np.float64)
    if near.shape != far.shape or not (far >= near).all() or not (near >= 0).all():
        expected = "nearest and farthest must be distances of one shape, the farthest not below"
        raise ShapeError(sentence("relative_contrast", expected, f"{near.shape} and {far.shape}"))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(near > 0, (far - near) / near, np.where(far > near, np.inf, 0.0))


class Hubness(NamedTuple):
    """Skewness of the number of times that rows are neighbors of others.

    Parameters
    ----------
    skewness : float
        Skewness of the counts; near 0 if all rows are neighbors about equally often.
    largest : float
        The largest count over the mean.
    orphans : float
        Share of rows with count 0 (antihubs).
    """

    skewness: float  # of the counts; near 0 if all rows are neighbors about equally often
    largest: float  # the largest count over the mean
    orphans: float  # share of rows with count 0 (antihubs)


def hubness(neighbors: ArrayLike, n: int) -> Hubness:
    """Hubness: skewness of the k-occurrences of n rows.

    Parameters
    ----------
    neighbors : array-like of int (m, k)
        Row numbers 0 … n − 1 of the k nearest neighbors of m rows.
    n : int
        Number of rows.

    Returns
    -------
    Hubness
        Skewness, the largest count, and the share of rows without a count.

    References
    ----------
    Radovanović, Nanopoulos and Ivanović (2010).

    Examples
    --------
    >>> hubness([[1], [0], [1], [1]], 4).orphans
    0.5
    """
    rows: Index = np.asarray(neighbors)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        expected = f"neighbors must be row numbers 0 … {n - 1} in shape (m, k)"
        raise ShapeError(sentence("hubness", expected, rows.shape))
    counts = np.bincount(rows.ravel(), minlength=n).astype(np.float64)
    centered = counts - counts.mean()
    spread = np.sqrt(np.mean(centered**2))
    skewness = float(np.mean(centered**3) / spread**3) if spread > 0 else 0.0
    return Hubness(skewness, float(counts.max() / counts.mean()), float(np.mean(counts == 0)))


class Dimension(NamedTuple):
    """An estimate of the intrinsic dimension.

    Parameters
    ----------
    value : float
        The estimate.
    error : float
        Its standard error.
    """

    value: float
    error: float


def intrinsic_dimension(away: ArrayLike, blocks: int = 16) -> Dimension:
    """Intrinsic dimension by maximum likelihood: 1/m = mean of log(T_k / T_j).

    The number of neighbors within a radius r grows like r^m, so m is estimated by maximum likelihood for all rows
    together, with (n(k − 1) − 1) for n(k − 1). The standard error is a jackknife over blocks of rows: pass rows in an
    order in which neighbors are adjacent, since these are correlated. With many dimensions and few rows the estimate is
    too small.

    Parameters
    ----------
    away : array-like (n, k)
        Distances T_1 ≤ … ≤ T_k of each row to its k nearest others, none 0.
    blocks : int, default 16
        Number of blocks of the jackknife.

    Returns
    -------
    Dimension
        The estimate and its standard error.

    References
    ----------
    Levina and Bickel (2004); MacKay and Ghahramani (2005).

    Examples
    --------
    >>> radius = np.sort(np.random.default_rng(0).random((4000, 10)), axis=1) ** (1 / 3)
    >>> round(intrinsic_dimension(radius).value, 1)
    3.0
    """
    T = np.asarray(away, dtype=np.float64)
    if T.ndim != 2 or T.shape[1] < 2 or len(T) < 2:
        raise ShapeError(sentence("intrinsic_dimension", "distances must have shape (n, k) with k and n ≥ 2", T.shape))
    if not (np.isfinite(T).all() and (T > 0).all() and (np.diff(T, axis=1) >= 0).all()):
        remedy = "drop duplicate rows"
        raise DataError(
            sentence("intrinsic_dimension", "distances must be finite, positive and increasing", "others", remedy)
        )
    inner = np.log(T[:, -1:] / T[:, :-1]).sum(axis=1)
    terms = T.shape[1] - 1

    def estimate(total: Any, n: Any) -> Any:
        return np.maximum(n * terms - 1, 1) / np.maximum(total, 1e-300)

    parts = np.array_split(inner, min(blocks, len(inner)))
    without = np.array([estimate(inner.sum() - part.sum(), len(inner) - len(part)) for part in parts])
    g = len(parts)
    error = np.sqrt((g - 1) / g * ((without - without.mean()) ** 2).sum())
    return Dimension(float(estimate(inner.sum(), len(inner))), float(error))

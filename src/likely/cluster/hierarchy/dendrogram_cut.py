"""Cutting a dendrogram: the number of clusters by the BIC of one Gaussian per cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from likely.cluster.hierarchy.dendrogram import Dendrogram
from likely.core import declared
from likely.core.arrays import Array, Index, check_option, refuse_infinite, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics.special import LOG_2PI

CutCovariance = Literal["pooled", "full", "diagonal"]
CutChoice = Literal[CutCovariance, "best"]
FLOOR = 1e-9  # variance floor of any direction, relative to the column's variance


@dataclass(frozen=True, eq=False)
class BICCurve(Value):
    """Log-likelihood and BIC of a tree's partitions into k clusters.

    Parameters
    ----------
    k : ndarray of int (m,)
        Numbers of clusters, ascending from 1.
    log_likelihood : ndarray (m,)
        Log-likelihood of rows and labels, one Gaussian per cluster.
    bic : ndarray (m,)
        BIC = −2 log-likelihood + parameters · log n: smaller is better.
    covariance : {"pooled", "full", "diagonal"}
        Covariance of the clusters.
    """

    k: Annotated[Index, declared.numbers("m", 1, np.int64)]  # (m,) ascending from 1
    log_likelihood: Annotated[Array, declared.numbers("m")]  # (m,) of rows and labels, one Gaussian per cluster
    bic: Annotated[Array, declared.numbers("m")]  # (m,) −2 log-likelihood + parameters · log n: smaller is better
    covariance: CutCovariance

    @property
    def best(self) -> int:
        """The number of clusters with the smallest BIC."""
        return int(self.k[np.argmin(self.bic)])


def bic_curve(
    tree: Dendrogram, X: ArrayLike, *, covariance: CutChoice = "best", max_clusters: int | None = None
) -> BICCurve:
    """Log-likelihood and BIC of every cut of a dendrogram, with one Gaussian per cluster.

    log L = Σ_A n_A log(n_A / n) + Σ_A Σ_{i ∈ A} log N(x_i; μ_A, Σ_A),     BIC = −2 log L + p log n.

    Constant columns are ignored; weights are those of the tree. Columns are divided by their standard deviations,
    which changes all log-likelihoods by the same constant.

    Parameters
    ----------
    tree : Dendrogram
        The tree.
    X : array-like (n, d)
        Its rows.
    covariance : {"best", "pooled", "full", "diagonal"}, default "best"
        "pooled": one Σ for all, p = k − 1 + k d + d (d + 1) / 2; "full" and "diagonal": each cluster's own, shrunk to
        the pooled one by d + 2 pseudo-observations, which keeps small clusters regular; "best": the one of the three
        with the smallest BIC.
    max_clusters : int, optional
        Largest number of clusters; √n if None. Beyond, clusters of a few rows each have unbounded likelihoods.

    Returns
    -------
    BICCurve
        The curves; `best` is the number of clusters with the smallest BIC.

    Examples
    --------
    >>> from likely.cluster.hierarchy.linkage import linkage
    >>> X = np.random.default_rng(0).normal([[0.0, 0.0]] * 50 + [[6.0, 0.0]] * 50)
    >>> bic_curve(linkage(X), X).best
    2
    """
    check_option(covariance, CutChoice, "bic_curve", "covariance")
    x, n = _rows_of(tree, X), float(tree.weight.sum())
    max_clusters = min(len(tree), max(2, int(np.ceil(np.sqrt(n)))) if max_clusters is None else max_clusters)
    if max_clusters < 1:
        raise DomainError(sentence("bic_curve", "max_clusters must be at least 1", max_clusters))
    kinds = get_args(CutCovariance) if covariance == "best" else (covariance,)
    scores = np.array([[_score(*part, kind) for kind in kinds] for part in _partitions(tree, x, max_clusters)])[::-1]
    curves = [_curve(scores[:, i], kind, x.shape[1], n) for i, kind in enumerate(kinds)]
    return min(curves, key=lambda curve: float(curve.bic.min()))


def _curve(log_likelihood: Array, covariance: str, d: int, n: float) -> BICCurve:
    k = np.arange(1, len(log_likelihood) + 1)
    spreads = np.ones_like(k) if covariance == "pooled" else k
    parameters = k - 1 + k * d + spreads * (d if covariance == "diagonal" else d * (d + 1) // 2)
    bic = -2 * log_likelihood + parameters * np.log(max(n, 1.0))
    return BICCurve.trusted(k=k, log_likelihood=log_likelihood.copy(), bic=bic, covariance=covariance)


def _rows_of(tree: Dendrogram, X: Any) -> Array:
    """The tree's rows with standardized columns, without constant columns."""
    x = rows(X, None, "bic_curve")
    if len(x) != len(tree):
        raise ShapeError(sentence("bic_curve", f"X must be the {len(tree)} rows that were merged", len(x)))
    refuse_infinite(x, "bic_curve")
    if np.isnan(x).any():
        remedy = "impute first (GaussianDensity, PPCA), or cut by k or height"
        raise DataError(sentence("bic_curve", "likelihood needs rows without missing values", "NaN", remedy))
    w = tree.weight / tree.weight.sum()
    size = np.abs(x).max(axis=0, initial=1e-300)
    z = x / size
    z = z - w @ z
    deviation = np.sqrt(w @ z**2)
    varied = deviation > 1e-14
    return z[:, varied] / deviation[varied]


def _partitions(tree: Dendrogram, x: Array, max_clusters: int) -> Iterator[tuple[Array, Array]]:
    """Weights (k,) and scatters (k, d, d) of the clusters, from `max_clusters` of them up to one."""
    n, label = len(tree), tree.cut(max_clusters)
    w = np.asarray(np.bincount(label, tree.weight, max_clusters), dtype=np.float64)
    mean = np.empty((max_clusters, x.shape[1]))
    for c, column in enumerate(x.T):
        mean[:, c] = np.bincount(label, tree.weight * column, max_clusters) / w
    scatter = np.stack([_scatter(x[label == k] - mean[k], tree.weight[label == k]) for k in range(max_clusters)])
    yield w, scatter
    place = _places(tree, label)
    for t in range(n - max_clusters, n - 1):
        a, b = place[tree.merges[t, 0]], place[tree.merges[t, 1]]
        total, away = w[a] + w[b], mean[b] - mean[a]
        scatter[a] += scatter[b] + w[a] * w[b] / total * np.outer(away, away)
        mean[a] += w[b] / total * away
        w[a], w[b] = total, 0.0
        place[n + t] = a
        yield w[w > 0], scatter[w > 0]


def _places(tree: Dendrogram, label: Index) -> dict[int, int]:
    """The cluster of each node that is a leaf or was merged before the cut."""
    place = dict(enumerate(label.tolist()))
    for t in range(len(tree) - label.max() - 1):
        place[len(tree) + t] = place[int(tree.merges[t, 0])]
    return place


def _scatter(x: Array, weight: Array) -> Array:
    return (x * weight[:, None]).T @ x


def _score(w: Array, scatter: Array, covariance: str) -> float:
    n, d = w.sum(), scatter.shape[-1]
    pooled = scatter.sum(axis=0) / n + FLOOR * np.eye(d)
    own = pooled[None] if covariance == "pooled" else (scatter + (d + 2) * pooled) / (w + d + 2)[:, None, None]
    inside = scatter.sum(axis=0)[None] if covariance == "pooled" else scatter
    if covariance == "diagonal":
        own = own * np.eye(d)
    masses = np.array([n]) if covariance == "pooled" else w
    logdet = np.linalg.slogdet(own)[1]
    distance = np.trace(np.linalg.solve(own, inside), axis1=1, axis2=2)
    return float(w @ np.log(w / n) - 0.5 * (masses @ logdet + distance.sum() + n * d * LOG_2PI))

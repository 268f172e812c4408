"""Agglomerative clustering: the linkage tree of rows or of a distance matrix."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from likely.cluster.hierarchy import _loops as loops
from likely.cluster.hierarchy.dendrogram import Dendrogram
from likely.cluster.hierarchy.greedy_merging import Diagonals, Gaussians, Medians, by_centers, greedy
from likely.cluster.hierarchy.linkage_criteria import Link, Linkage, link_named
from likely.cluster.hierarchy.reciprocal_neighbors import (
    Growing,
    by_points,
    empty_matrix,
    rounds,
    share,
    ward,
    ward_of_squares,
)
from likely.cluster.kmeans.assignment import refuse_empty_rows
from likely.core.arrays import Array, Index, check_option, numbers, refuse_infinite, rows, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.row_hashes import row_hashes
from likely.core.warnings import warn
from likely.distributions.gaussian.missing_values_em import em_moments, expected_rows, gaussian_of

Metric = Literal[
    "euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra", "braycurtis",
    "hamming", "jaccard", "precomputed", "manhattan", "l1", "l2",
]  # fmt: skip
ALIASES = {"manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean"}
WITH_GAPS = {"euclidean": 2, "cityblock": 1}  # metrics with missing values, and their powers
MergedCovariance = Literal["full", "diagonal"]  # of clusters, for linkage "likelihood"
MOST = {"full": 2_000, "diagonal": 5_000}  # number of clusters from which all pairs are compared by likelihood
DETERMINANTS = 1e10  # operations for all pairs, d³ each: two or three seconds; 1,118 clusters of 20 columns


def linkage(
    X: ArrayLike, method: Linkage = "ward", *, metric: Metric = "euclidean", weight: ArrayLike | None = None,
    covariance: MergedCovariance = "full",
) -> Dendrogram:  # fmt: skip
    """Dendrogram of rows, or of a matrix of distances, by agglomerative clustering.

    Ward (without NaN), single and the linkages by centers need memory for n rows; others for up to n² distances.
    "likelihood" begins with Ward's merges, with a warning, above 2,000 rows (5,000 for "diagonal") or where n² d³
    is above 10¹⁰.

    Missing values: for linkages of distances (euclidean, cityblock) distances are over columns that both rows have, and
    scaled by d / d_obs (pairs without such a column get the mean distance). "ward" uses the expected squared
    distances under one Gaussian of all rows, fitted by EM, with a warning. Rows without any entry raise an error. The
    other linkages need complete rows.

    Parameters
    ----------
    X : array-like (n, d)
        Rows; distances (n, n) for metric "precomputed".
    method : str, default "ward"
        "single", "complete", "average" (Ney's group average), "weighted" (McQuitty), "sum" (Ney's weighted
        average: the plain sum), "centroid", "median" (Gower), "coordinate-median" (Ney's median), "ward" (heights as in
        SciPy: the squared error grows by h²/2, and each merge is the one that adds least), "likelihood" (each merge
        loses least of Σ_A −n_A/2 log det(Σ_A + F), F the covariance within √n Ward clusters, so that single rows have a
        likelihood). `cluster.hierarchy.linkage_criteria.LINKS` describes each.
    metric : str, default "euclidean"
        Euclidean, another of SciPy's `cdist`, or "precomputed"; the last four linkages and "centroid" are Euclidean.
    weight : array-like (n,), optional
        Positive weights; a row of weight w is w copies that were merged at height 0.
    covariance : {"full", "diagonal"}, default "full"
        Covariance of the clusters, for method "likelihood".

    Returns
    -------
    Dendrogram
        The tree of merges.

    See Also
    --------
    AgglomerativeClustering : The estimator.
    plot_dendrogram : Plot of the tree.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 10; Ney, lecture notes, 6.2.3.

    Examples
    --------
    >>> linkage([[0.0], [1.0], [5.0], [5.5]], "average").heights
    array([0.5 , 1.  , 4.75])
    """
    kind = link_named(method)
    check_option(metric, Metric, "linkage", "metric")
    check_option(covariance, MergedCovariance, "linkage", "covariance")
    if metric == "precomputed":
        return _of_distances(_checked_distances(X, kind, method), kind, method, weight)
    distance = ALIASES.get(metric, metric)
    x = _checked_rows(X, kind, method, distance)
    w = _checked_weight(weight, len(x))
    labels, first = _distinct(x)
    total = np.asarray(np.bincount(labels, w), dtype=np.float64)
    merges, heights = _merged(x[first], total, kind, method, distance, covariance)
    merges, heights = _with_copies(labels, merges, heights)
    return _tree(merges, heights, w, method)


def _of_distances(matrix: Array, kind: Link, link: str, weight: Any) -> Dendrogram:
    w = _checked_weight(weight, len(matrix))
    return _tree(*_by_matrix(matrix, w, kind), w, link)


def _tree(merges: Index, heights: Array, weight: Array, link: str) -> Dendrogram:
    """Merges in the order of their heights; those of linkages with inversions stay in their order."""
    if link not in ("centroid", "median", "coordinate-median", "likelihood"):
        merges, heights = in_order(merges, heights)
    return Dendrogram.trusted(merges=np.sort(merges, axis=1), heights=heights, weight=weight.copy(), method=link)


def in_order(merges: Index, heights: Array) -> tuple[Index, Array]:
    """The merges by increasing height; a parent that rounding put below its child gets the child's height."""
    n = len(merges) + 1
    tops = [-np.inf] * n + heights.tolist()
    for t, (a, b) in enumerate(merges.tolist(), n):
        tops[t] = max(tops[t], tops[a], tops[b])
    lifted = np.array(tops[n:])
    order = np.argsort(lifted, kind="stable")  # a child was formed before its parent
    place = np.arange(2 * n - 1)
    place[n + order] = n + np.arange(n - 1)
    return place[merges[order]], lifted[order]


# -------------------------------------------------------------------------- algorithms


def _merged(x: Array, w: Array, kind: Link, link: str, metric: str, covariance: str) -> tuple[Index, Array]:
    """Merges of distinct rows with weights."""
    if len(x) == 1:
        return Growing(1).tree()
    if link == "ward" and np.isnan(x).any():
        return _ward_of_expected(x, w)
    if metric != "euclidean" or np.isnan(x).any():
        return _by_matrix(_distances(x, metric), w, kind)
    z, unit = _in_range(x)
    if link == "likelihood":
        return _by_likelihood(z, w, covariance)
    merges, heights = _by_link(z, w, kind, link)
    return merges, heights * unit


def _ward_of_expected(x: Array, w: Array) -> tuple[Index, Array]:
    """Ward's merges of rows with missing entries, by squared distances expected under one Gaussian of all rows.

    E ‖x − y‖² = ‖x̂ − ŷ‖² + tr Cov[x | observed] + tr Cov[y | observed]: as if each row had an additional axis, so that
    the increase of the squared error by a merge is its expectation.
    """
    from scipy.spatial.distance import cdist

    filled, spread = expected_rows(gaussian_of(em_moments(x, w, "linkage")), x)
    z, unit = _in_range(filled)
    spread = spread / unit**2
    out = empty_matrix(len(z))
    for start in range(0, len(z), 256):
        part = slice(start, start + 256)
        out[part] = cdist(z[part], z, "sqeuclidean") + spread[part, None] + spread
    merges, heights = ward_of_squares(out, w)
    return merges, heights * unit


def _by_link(z: Array, w: Array, kind: Link, link: str) -> tuple[Index, Array]:
    if link == "ward":
        return ward(z, w)
    if link == "single":
        return _minimum_spanning_tree(z)
    if kind.join is not None:
        return by_points(z, w, kind)
    if link == "coordinate-median":
        return greedy(Medians(z, w), np.ones(len(z), dtype=bool), Growing(len(z)))
    return by_centers(z, w, link == "median")


def _in_range(x: Array) -> tuple[Array, float]:
    """Centered rows, in a unit (a power of two) in which squares neither overflow nor underflow."""
    low, high = x.min(axis=0), x.max(axis=0)
    middle = 0.5 * low + 0.5 * high
    size = float(np.max(0.5 * high - 0.5 * low, initial=0.0))
    unit = float(2.0 ** np.clip(np.round(np.log2(size)), -1000, 1000)) if size > 0 else 1.0
    return (x - middle) / unit, unit


def _minimum_spanning_tree(z: Array) -> tuple[Index, Array]:
    one, other, square = _edges(len(z))
    loops.shortest_tree(np.array(z.T, order="C"), one, other, square)
    return _joined(one, other, np.sqrt(square))


def _edges(n: int) -> tuple[Index, Index, Array]:
    return np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int64), np.empty(n - 1)


def _joined(one: Index, other: Index, length: Array) -> tuple[Index, Array]:
    """Edges of a tree, shortest first, as merges."""
    order = np.argsort(length, kind="stable")
    merges = np.empty((len(order), 2), dtype=np.int64)
    loops.trees_of_edges(one[order], other[order], merges)
    return merges, length[order]


def _by_matrix(matrix: Array, w: Array, kind: Link) -> tuple[Index, Array]:
    """Merges by a matrix of distances, which is overwritten."""
    if kind.join == loops.SMALLER:
        one, other, length = _edges(len(w))
        loops.shortest_tree_of_matrix(matrix, one, other, length)
        return _joined(one, other, length)
    if kind.join == loops.ADD:
        matrix *= w[:, None]
        matrix *= w
    np.fill_diagonal(matrix, np.inf)
    return rounds(matrix, w, kind, Growing(len(w)))


def _distances(x: Array, metric: str) -> Array:
    """All distances of rows (n, n)."""
    from scipy.spatial.distance import cdist

    n, out = len(x), empty_matrix(len(x))
    if np.isnan(x).any():
        seen = loops.seen_distances
        share(lambda part: seen(x, WITH_GAPS[metric], *part, out), n, n * x.size)
        return _all_known(out)
    for start in range(0, n, 256):
        out[start : start + 256] = cdist(x[start : start + 256], x, metric)
    bad = np.argwhere(~np.isfinite(out))
    if len(bad):
        i, j = bad[0].tolist()
        expected = f"rows must have a {metric} distance"
        remedy = "a row of zeros has no angle: drop such rows" if metric in ("cosine", "correlation") else ""
        raise DataError(sentence("linkage", expected, f"{out[i, j]} between {x[i]} and {x[j]}", remedy))
    return out


def _all_known(distances: Array) -> Array:
    """Distances with pairs without a common column set to the mean of all others, with a warning."""
    unknown = np.isnan(distances)
    if unknown.any():
        known = float(distances.sum(where=~unknown)) / max(float((~unknown).sum() - len(distances)), 1.0)
        distances[unknown] = known
        pairs = int(unknown.sum()) // 2
        warn(f"linkage: {pairs:,} pairs of rows have no column in common: they got the mean distance {known:.4g}")
    return distances


def _by_likelihood(z: Array, w: Array, covariance: str) -> tuple[Index, Array]:
    """Merge with the smallest loss of likelihood; above some thousand clusters by Ward, in the same units."""
    z = _whitened_within(z, w, covariance)
    growing, most = Growing(len(z)), _most(covariance, z.shape[1])
    clusters = Gaussians(z, w) if covariance == "full" else Diagonals(z, w)
    if len(z) > most:
        _begin_by_ward(z, w, clusters, growing, most)
        growing.keep(clusters.forget_swallowed())
        text = f"the first {len(z) - most:,} merges are Ward's, in units of the covariance within small clusters"
        warn(f"linkage: likelihood compares up to {most:,} clusters: {text}")
    return greedy(clusters, clusters.alive.copy(), growing)


def _most(covariance: str, d: int) -> int:
    """The number of clusters to compare: its square, times the cost of a determinant, is bounded."""
    fewer = int(np.sqrt(DETERMINANTS / max(d, 1) ** 3)) if covariance == "full" else MOST[covariance]
    return max(min(MOST[covariance], fewer), 2)


def _begin_by_ward(z: Array, w: Array, clusters: Gaussians | Diagonals, growing: Growing, most: int) -> None:
    """Ward's merges until `most` clusters are left."""
    merges, _ = in_order(*ward(z, w))
    n = len(z)
    place = np.append(np.arange(n), np.zeros(n - 1, dtype=np.int64))
    for t in range(n - most):
        a, b = sorted(place[merges[t]].tolist())
        before = clusters.cost[a] + clusters.cost[b]
        clusters.merge(a, b)
        growing.merge(np.array([a]), np.array([b]), np.maximum(clusters.cost[[a]] - before, 0.0))
        place[n + t] = a


def _whitened_within(z: Array, w: Array, covariance: str) -> Array:
    """Rows whitened by the covariance within clusters of √n rows, as found by Ward."""
    deviation = np.sqrt(np.average((z - np.average(z, axis=0, weights=w)) ** 2, axis=0, weights=w))
    z = z[:, deviation > 0] / deviation[deviation > 0]
    k = min(max(1, int(np.sqrt(w.sum()))), len(z) - 1)
    label = _tree(*ward(z, w), w, "ward").cut(k)
    mass = np.bincount(label, w)
    inside = z - np.stack([np.bincount(label, w * column) / mass for column in z.T], axis=1)[label]
    spread = (inside * w[:, None]).T @ inside / w.sum() + 1e-6 * np.eye(
        z.shape[1]
    )  # a column may be constant within clusters
    if covariance == "diagonal":
        return z / np.sqrt(np.diag(spread))
    return np.ascontiguousarray(np.linalg.solve(np.linalg.cholesky(spread), z.T).T)


# ---------------------------------------------------------------------------- duplicates


def _distinct(x: Array) -> tuple[Index, Index]:
    """The index of each row's distinct row (n,), and the first occurrence of each."""
    _, first, labels = np.unique(row_hashes(x), return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    order = np.argsort(first)
    rank[order] = np.arange(len(first))
    return rank[labels], first[order]


def _with_copies(labels: Index, merges: Index, heights: Array) -> tuple[Index, Array]:
    """Merges of distinct rows as merges of all rows: duplicates come first, at height 0."""
    n, m = len(labels), len(merges) + 1
    if n == m:
        return merges, heights
    order = np.argsort(labels, kind="stable")
    copies: list[list[int]] = []
    node = np.full(m, -1)
    for row in order.tolist():
        u = labels[row]
        if node[u] < 0:
            node[u] = row
        else:
            copies.append([int(node[u]), row])
            node[u] = n + len(copies) - 1
    name = np.append(node, n + len(copies) + np.arange(m - 1))
    return np.concatenate([np.array(copies), name[merges]]), np.append(np.zeros(len(copies)), heights)


# ---------------------------------------------------------------------------- validation


def _checked_rows(X: Any, kind: Link, link: str, metric: str) -> Array:
    x = rows(X, None, "linkage")
    if not x.size:
        raise DataError(sentence("linkage", "at least one row with a column is needed", x.shape))
    refuse_infinite(x, "linkage")
    if kind.join is None and metric != "euclidean":
        remedy = 'use metric="euclidean", or "average"'
        raise DomainError(sentence("linkage", f'method "{link}" needs Euclidean distances', repr(metric), remedy))
    _refuse_missing_values(x, kind, link, metric)
    return x


def _refuse_missing_values(x: Array, kind: Link, link: str, metric: str) -> None:
    gaps = np.argwhere(np.isnan(x))
    if not len(gaps):
        return
    where = f"NaN at row {gaps[0][0]}, column {gaps[0][1]}"
    if kind.join is None and link != "ward":
        remedy = 'impute first (GaussianDensity, PPCA), or use "average", which compares what both rows have'
        raise DataError(sentence("linkage", f'method "{link}" needs complete rows', where, remedy))
    if metric not in WITH_GAPS:
        remedy = "use euclidean or cityblock, which compare what both rows have, or impute first"
        raise DataError(sentence("linkage", f"metric {metric} needs complete rows", where, remedy))
    refuse_empty_rows(x, "linkage")


def _checked_weight(weight: Any, n: int) -> Array:
    w = weights(weight, n, "linkage")
    if w is None:
        return np.ones(n)
    if w.ndim != 1 or not (w > 0).all():
        got = f"shape {w.shape}" if w.ndim != 1 else f"0 at row {int(np.argmin(w))}"
        raise DataError(sentence("linkage", "each row needs one positive weight", got, "drop rows of weight 0"))
    return w


def _checked_distances(X: Any, kind: Link, link: str) -> Array:
    if kind.join is None:
        remedy = 'pass rows, or use "average", "complete", "single", "weighted" or "sum"'
        raise DomainError(sentence("linkage", f'method "{link}" needs rows', "distances", remedy))
    d = numbers(X, "linkage")
    if d.ndim != 2 or d.shape[0] != d.shape[1] or not d.size:
        raise ShapeError(sentence("linkage", "precomputed distances must be a square matrix", d.shape))
    out = empty_matrix(len(d))
    for start in range(0, len(d), 256):  # in strips: no second matrix for the check
        part, across = d[start : start + 256], d[:, start : start + 256].T
        _refuse(~np.isfinite(part) | (part < 0), part, start, "finite and not negative")
        _refuse(np.abs(part - across) > 1e-10 * np.maximum(part, across), part, start, "symmetric")
        out[start : start + 256] = part
    if np.diagonal(out).any():
        i = int(np.argmax(np.diagonal(out) != 0))
        raise DataError(sentence("linkage", "each row's distance to itself must be 0", f"{out[i, i]} at row {i}"))
    return out


def _refuse(bad: Any, part: Array, start: int, expected: str) -> None:
    if bad.any():
        i, j = np.argwhere(bad)[0].tolist()
        raise DataError(sentence("linkage", f"distances must be {expected}", f"{part[i, j]} at ({start + i}, {j})"))

"""Comparison of clusterings: Rand index, mutual information, V-measure, purity, matching."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy

from likely.core.arrays import Array, Index, check_option, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.distributions.categorical.categorical import is_missing

Mean = Literal["arithmetic", "geometric", "min", "max"]


class ContingencyTable(NamedTuple):
    """ContingencyTable table: the weight in cluster i of one partition and cluster j of the other.

    Parameters
    ----------
    table : ndarray (I, J)
        Weights.
    first : list
        Labels of the rows.
    second : list
        Labels of the columns.
    """

    table: Array  # (I, J)
    first: list[Any]  # the labels of the rows
    second: list[Any]  # the labels of the columns


def contingency_table(first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None) -> ContingencyTable:
    """ContingencyTable table of two labelings of the same rows.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    ContingencyTable
        The table, and the labels of its rows and columns.

    Examples
    --------
    >>> contingency_table(["a", "a", "b"], [1, 2, 2]).table
    array([[1., 1.],
           [0., 1.]])
    """
    return _contingency(first, second, weight, "contingency_table")


def _contingency(first: Any, second: Any, weight: Any, whose: str) -> ContingencyTable:
    a, b = codes(first, whose), codes(second, whose)
    if len(a[1]) != len(b[1]):
        expected = "both labelings must be of the same rows"
        raise ShapeError(sentence(whose, expected, f"{len(a[1])} and {len(b[1])} labels"))
    w = weights(weight, len(a[1]), whose)
    if w is not None and w.ndim != 1:
        raise ShapeError(sentence(whose, "weight must have one entry per row", w.shape))
    if not len(a[1]) or (w is not None and not w.any()):
        raise DataError(sentence(whose, "at least one row is needed", "none"))
    I, J = len(a[0]), len(b[0])
    counts = np.bincount(a[1] * J + b[1], w, I * J).astype(np.float64).reshape(I, J)
    there, seen = counts.any(axis=1), counts.any(axis=0)  # rows of weight 0 are dropped
    return ContingencyTable(counts[there][:, seen], _some(a[0], there), _some(b[0], seen))


def codes(labels: Any, whose: str) -> tuple[list[Any], Index]:
    """The distinct labels, sorted where possible, and the index of each row's label among them (n,)."""
    y = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
    y = y if isinstance(y, np.ndarray) else _as_given(y)
    if y.ndim != 1:
        raise ShapeError(sentence(whose, "labels must have shape (n,)", y.shape))
    missing = [i for i, c in enumerate(y) if is_missing(c)] if y.dtype.kind in "fOmM" else []
    if missing:
        raise DataError(sentence(whose, "every row needs a label", f"none at row {missing[0]}", "drop the row"))
    if y.dtype != object:
        found, code = np.unique(y, return_inverse=True)
        return found.tolist(), code
    places = {c: i for i, c in enumerate(dict.fromkeys(y.tolist()))}
    return list(places), np.array([places[c] for c in y.tolist()], dtype=np.intp)


def _as_given(labels: Any) -> NDArray[Any]:
    """Labels of mixed types as objects: a list of them must not become strings."""
    labels = list(labels)
    plain = len({type(c) for c in labels}) == 1 and not isinstance(labels[0], tuple)
    if plain:
        return np.asarray(labels)
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


def _some(labels: list[Any], there: Any) -> list[Any]:
    return [c for c, is_there in zip(labels, there, strict=True) if is_there]


# ------------------------------------------------------------------- pairs of rows


class _Pairs(NamedTuple):
    """Numbers of pairs of rows that are together in both partitions, in the first, in the second, and of all pairs."""

    both: float
    first: float
    second: float
    all: float


def _pairs(first: Any, second: Any, weight: Any, whose: str) -> _Pairs:
    t = _contingency(first, second, weight, whose).table
    return _Pairs(*(float((m * (m - 1)).sum()) / 2 for m in (t, t.sum(axis=1), t.sum(axis=0), t.sum())))


def rand_index(first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Rand index: the share of pairs of rows on which both agree, together in both or apart in both.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    adjusted_rand_index : With an adjustment for chance.

    References
    ----------
    Rand (1971).

    Examples
    --------
    >>> rand_index([0, 0, 1, 1], ["x", "x", "y", "z"])
    0.8333333333333334
    """
    p = _pairs(first, second, weight, "rand_index")
    return 1.0 if p.all <= 0 else (p.all + 2 * p.both - p.first - p.second) / p.all


def adjusted_rand_index(first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Adjusted Rand index: 0 for chance agreement, 1 for perfect agreement.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        At most 1.

    See Also
    --------
    rand_index : Without the adjustment.

    References
    ----------
    Hubert and Arabie (1985).

    Examples
    --------
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    p = _pairs(first, second, weight, "adjusted_rand_index")
    apart = p.all - p.first, p.all - p.second
    mixed = p.first - p.both, p.second - p.both
    neither = p.all - p.first - p.second + p.both
    if mixed == (0.0, 0.0) or p.all <= 0:
        return 1.0
    return 2 * (p.both * neither - mixed[0] * mixed[1]) / (p.first * apart[1] + p.second * apart[0])


def fowlkes_mallows(first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Fowlkes–Mallows index: geometric mean of the pairwise precision and recall.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Fowlkes and Mallows (1983).

    Examples
    --------
    >>> round(fowlkes_mallows([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.7071
    """
    p = _pairs(first, second, weight, "fowlkes_mallows")
    return float(np.sqrt(p.both / p.first) * np.sqrt(p.both / p.second)) if p.both > 0 else 0.0


# --------------------------------------------------------------------- information


class _Information(NamedTuple):
    """Entropies of both partitions and their mutual information, in nats."""

    mutual: float
    first: float
    second: float


def _information(table: Array) -> _Information:
    p = table / table.sum()
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    i, j = np.nonzero(p)
    mutual = float(p[i, j] @ (np.log(p[i, j]) - np.log(rows[i]) - np.log(columns[j])))
    entropies = (float(-xlogy(m, m).sum()) if len(m) > 1 else 0.0 for m in (rows, columns))
    return _Information(max(mutual, 0.0) if min(table.shape) > 1 else 0.0, *entropies)


def mutual_information(first: Any, second: Any, weight: Any = None) -> float:
    """Mutual information Σ p(i, j) log p(i, j) / (p(i) p(j)), in nats.

    >>> round(mutual_information([0, 0, 1, 1], [0, 0, 1, 1]), 4)
    0.6931
    """
    return _information(_contingency(first, second, weight, "mutual_information").table).mutual


def normalized_mutual_information(
    first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None, mean: Mean = "arithmetic"
) -> float:
    """Normalized mutual information: mutual information over the mean entropy.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.
    mean : {"arithmetic", "geometric", "min", "max"}, default "arithmetic"
        Mean of the two entropies.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    adjusted_mutual_information : With an adjustment for chance.

    References
    ----------
    Manning, Raghavan and Schütze (2008), Introduction to Information Retrieval, chapter 16.

    Examples
    --------
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8
    """
    found = _information(_contingency(first, second, weight, "normalized_mutual_information").table)
    whole = _mean(found.first, found.second, mean)
    if found.first == found.second == 0:
        return 1.0  # both have one cluster: they agree
    return found.mutual / whole if whole > 0 else 0.0


def _mean(a: float, b: float, mean: Mean) -> float:
    check_option(mean, Mean, "mutual information", "mean")
    means = {"arithmetic": (a + b) / 2, "geometric": float(np.sqrt(a * b)), "min": min(a, b), "max": max(a, b)}
    return means[mean]


def adjusted_mutual_information(
    first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None, mean: Mean = "arithmetic"
) -> float:
    """Adjusted mutual information: 0 for chance agreement, 1 for perfect agreement.

    The chance level is exact, for partitions with the same cluster sizes; weights must be integers.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.
    mean : {"arithmetic", "geometric", "min", "max"}, default "arithmetic"
        Mean of the two entropies that normalizes.

    Returns
    -------
    float
        At most 1.

    See Also
    --------
    adjusted_rand_index : The same adjustment of pair counts.
    normalized_mutual_information : Without the adjustment.

    References
    ----------
    Vinh, Epps and Bailey (2010).

    Examples
    --------
    >>> round(adjusted_mutual_information([0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 2, 2]), 4)
    0.5024
    """
    table = _contingency(first, second, weight, "adjusted_mutual_information").table
    if not (table == np.round(table)).all():
        remedy = "use normalized_mutual_information, or integers of copies"
        raise DomainError(sentence("adjusted_mutual_information", "weights must be integers", "fractions", remedy))
    found, n = _information(table), table.sum()
    if min(table.shape) == max(table.shape) == 1 or (min(table.shape) == n and max(table.shape) == n):
        return 1.0
    chance = _expected_information(table.sum(axis=1), table.sum(axis=0))
    away = _mean(found.first, found.second, mean) - chance
    return float((found.mutual - chance) / (away if abs(away) > 1e-15 else 1e-15))


def _expected_information(a: Array, b: Array) -> float:
    """Σ_ij E[n_ij/n log(n n_ij / (a_i b_j))], n_ij hypergeometric; each pair of distinct sizes is computed once."""
    n = float(a.sum())
    (sizes, times), (others, often) = np.unique(a, return_counts=True), np.unique(b, return_counts=True)
    total = 0.0
    for x, c in zip(sizes, times, strict=True):
        for y, e in zip(others, often, strict=True):
            total += c * e * _expected_cell(x, y, n)
    return total


def _expected_cell(a: float, b: float, n: float) -> float:
    m = np.arange(max(0.0, a + b - n), min(a, b) + 1)
    log_p = -(gammaln(m + 1) + gammaln(a - m + 1) + gammaln(b - m + 1) + gammaln(n - a - b + m + 1))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()  # exact to rounding, unlike a difference of log-factorials
    gain = np.log(np.maximum(m, 1)) + np.log(n) - np.log(a) - np.log(b)
    return float(p @ (m / n * gain))


def variation_of_information(first: ArrayLike, second: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Variation of information H(first | second) + H(second | first): a distance of partitions.

    Parameters
    ----------
    first, second : array-like (n,)
        Two labelings of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        In nats; 0 for equal partitions.

    References
    ----------
    Meilă (2007).

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [5, 5, 3, 3]), round(variation_of_information([0, 0], [0, 1]), 4)
    (0.0, 0.6931)
    """
    found = _information(_contingency(first, second, weight, "variation_of_information").table)
    return max(0.0, found.first + found.second - 2 * found.mutual)


class VMeasure(NamedTuple):
    """Homogeneity, completeness and their harmonic mean.

    Parameters
    ----------
    homogeneity : float
        1 if each cluster holds one class.
    completeness : float
        1 if each class lies in one cluster.
    v : float
        Weighted harmonic mean of both.
    """

    homogeneity: float
    completeness: float
    v: float


def v_measure(true: ArrayLike, found: ArrayLike, weight: ArrayLike | None = None, beta: float = 1.0) -> VMeasure:
    """V-measure (1 + β) h c / (β h + c) of homogeneity h = 1 − H(true | found) / H(true) and completeness c.

    Parameters
    ----------
    true : array-like (n,)
        True classes; labels of any type.
    found : array-like (n,)
        Clusters of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.
    beta : float, default 1.0
        Weight β of completeness; above 1 it counts more than homogeneity.

    Returns
    -------
    VMeasure
        Homogeneity, completeness and V.

    References
    ----------
    Rosenberg and Hirschberg (2007).

    Examples
    --------
    >>> [round(x, 4) for x in v_measure([0, 0, 1, 1], [0, 0, 1, 2])]
    [1.0, 0.6667, 0.8]
    """
    if not (isinstance(beta, int | float | np.number) and 0 <= beta < np.inf):
        raise DomainError(sentence("v_measure", "beta must be a finite number from 0 on", beta))
    i = _information(_contingency(true, found, weight, "v_measure").table)
    h = i.mutual / i.first if i.first else 1.0
    c = i.mutual / i.second if i.second else 1.0
    return VMeasure(h, c, (1 + beta) * h * c / (beta * h + c) if beta * h + c > 0 else 0.0)


# ------------------------------------------------------------------------ matching


def purity(true: ArrayLike, found: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Purity: the share of rows in the largest class of their cluster; it grows with the number of clusters.

    Parameters
    ----------
    true : array-like (n,)
        True classes; labels of any type.
    found : array-like (n,)
        Clusters of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    best_matching : Each class assigned to one cluster.

    References
    ----------
    Manning, Raghavan and Schütze (2008), Introduction to Information Retrieval, chapter 16.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    t = _contingency(true, found, weight, "purity").table
    return float(t.max(axis=0).sum() / t.sum())


class Matching(NamedTuple):
    """The class of each cluster, each class once, and the resulting accuracy.

    Parameters
    ----------
    names : dict
        From a found label to a true one; clusters without a class are absent.
    accuracy : float
        Share of rows whose cluster is matched to their class.
    """

    names: dict[Any, Any]  # from a found label to a true one; clusters without a class are absent
    accuracy: float


def best_matching(true: ArrayLike, found: ArrayLike, weight: ArrayLike | None = None) -> Matching:
    """Assignment of clusters to classes with the largest accuracy (Hungarian method).

    Parameters
    ----------
    true : array-like (n,)
        True classes; labels of any type.
    found : array-like (n,)
        Clusters of the same rows; labels of any type.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    Matching
        The class of each cluster, and the accuracy.

    See Also
    --------
    purity : Without the restriction that each class is assigned once.

    Examples
    --------
    >>> best_matching(["a", "a", "b", "b"], [1, 1, 0, 1])
    Matching(names={1: 'a', 0: 'b'}, accuracy=0.75)
    """
    from scipy.optimize import linear_sum_assignment

    table, classes, clusters = _contingency(true, found, weight, "best_matching")
    i, j = linear_sum_assignment(table, maximize=True)
    names = {clusters[b]: classes[a] for a, b in zip(i, j, strict=True)}
    return Matching(names, float(table[i, j].sum() / table.sum()))

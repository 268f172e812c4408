"""Dendrogram: the tree of merges of agglomerative clustering, and its cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value


@final
@dataclass(frozen=True, eq=False)
class Dendrogram(Value):
    """Dendrogram: a tree of merges, in which merge t joins clusters merges[t] into cluster n + t, at a height.

    Clusters 0 … n − 1 are the rows. Merges are in order of time, with increasing heights, except for linkages
    with inversions (centroid and median): these are kept, and counted by `inversions`.

    Parameters
    ----------
    merges : array-like of int (n − 1, 2)
        The clusters that each merge joins.
    heights : array-like (n − 1,)
        Height of each merge.
    weight : array-like (n,)
        Weight per row.
    method : str, optional
        The linkage.

    See Also
    --------
    linkage : The dendrogram of rows.
    plot_dendrogram : Its plot.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 10; Ney, lecture notes, 6.2.3.

    Examples
    --------
    >>> from likely.cluster.hierarchy.linkage import linkage
    >>> d = linkage([[0.0], [1.0], [5.0], [5.5]])
    >>> d.cut(2), d.heights.round(2)
    (array([0, 0, 1, 1]), array([0.5 , 1.  , 6.72]))
    """

    merges: Annotated[Index, declared.numbers("?", 0, np.int64)]  # (n − 1, 2)
    heights: Annotated[Array, declared.numbers()]  # (n − 1,)
    weight: Annotated[Array, declared.numbers("n", 0)]  # (n,) of the rows
    method: str = ""

    def __post_init__(self) -> None:
        merges = np.array(self.merges, dtype=np.int64)
        if merges.size % 2:
            raise ShapeError(sentence("Dendrogram", "merges must have shape (n − 1, 2)", merges.shape))
        merges = merges.reshape(-1, 2)
        heights, weight = (
            parameter(self.heights, "Dendrogram", "heights"),
            parameter(self.weight, "Dendrogram", "weight"),
        )
        n = len(merges) + 1
        if heights.shape != (n - 1,) or weight.shape != (n,):
            expected = f"{n - 1} merges need as many heights, and {n} weights"
            raise ShapeError(sentence("Dendrogram", expected, f"{heights.shape} and {weight.shape}"))
        if not (weight > 0).all():
            raise DomainError(sentence("Dendrogram", "weights must be positive", weight.min()))
        _check_tree(merges, n)
        self._set(merges=merges, heights=heights, weight=weight)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.weight)

    @property
    def counts(self) -> Array:
        """The weight of each merged cluster (n − 1,)."""
        return self._sums(self.weight)

    @property
    def linkage(self) -> Array:
        """The linkage matrix (n − 1, 4) of scipy.cluster.hierarchy: two clusters, height, number of rows.

        >>> from likely.cluster.hierarchy.linkage import linkage
        >>> linkage([[0.0], [1.0], [5.0]], "single").linkage
        array([[0., 1., 1., 2.],
               [2., 3., 4., 3.]])
        """
        return np.column_stack([self.merges, self.heights, self._sums(np.ones(len(self)))])

    @property
    def inversions(self) -> int:
        """Number of merges below one of the clusters they join."""
        below = np.append(np.full(len(self), -np.inf), self.heights)
        return int((below[self.merges].max(axis=1, initial=-np.inf) > self.heights).sum())

    @property
    def order(self) -> Index:
        """Order of the leaves without crossing branches (n,)."""
        n = len(self)
        found, waiting = [], [2 * n - 2]
        while waiting:
            node = waiting.pop()
            if node < n:
                found.append(node)
            else:
                waiting += self.merges[node - n, ::-1].tolist()
        return np.array(found, dtype=np.intp)

    def cut(
        self,
        k: int | None = None,
        *,
        height: float | None = None,
        criterion: Literal["likelihood"] | None = None,
        X: ArrayLike | None = None,
        **how: Any,
    ) -> Index:
        """Clusters by cutting the tree: k clusters, all merges up to a height, or the number of the smallest BIC.

        Parameters
        ----------
        k : int, optional
            Number of clusters.
        height : float, optional
            Merges up to this height are made.
        criterion : {"likelihood"}, optional
            Choose the number of clusters by the BIC of rows X (`bic_curve`).
        X : array-like (n, d), optional
            The rows, for the criterion.
        **how : settings
            Settings of `bic_curve`: `covariance`, `max_clusters`.

        Returns
        -------
        ndarray of int (n,)
            Cluster of each row, numbered by the first row of each cluster.

        Examples
        --------
        >>> from likely.cluster.hierarchy.linkage import linkage
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> d = linkage(X)
        >>> d.cut(criterion="likelihood", X=X), d.cut(height=0.15)
        (array([0, 0, 0, 1, 1, 1]), array([0, 0, 1, 2, 2, 3]))
        """
        if (k is not None) + (height is not None) + (criterion is not None) != 1:
            raise DomainError(
                sentence(
                    "Dendrogram.cut", "exactly one of k, height and criterion is needed", f"{k}, {height}, {criterion}"
                )
            )
        if criterion is not None:
            k = self._best(criterion, X, how)
        if k is not None:
            return self._labels(np.arange(len(self.merges)) < len(self) - _integer(k, len(self)))
        if not isinstance(height, int | float | np.number) or np.isnan(height):
            raise DomainError(sentence("Dendrogram.cut", "height must be a number", height))
        return self._labels(self._tops() <= height)

    def _best(self, criterion: str, X: Any, how: dict[str, Any]) -> int:
        from likely.cluster.hierarchy.dendrogram_cut import bic_curve

        if criterion != "likelihood":
            raise DomainError(sentence("Dendrogram.cut", 'criterion must be "likelihood"', repr(criterion)))
        if X is None:
            remedy = 'd.cut(criterion="likelihood", X=X)'
            raise DataError(sentence("Dendrogram.cut", "a cut by likelihood needs the rows X", "None", remedy))
        return bic_curve(self, X, **how).best

    def _tops(self) -> Array:
        """The largest height at or below each merge: larger than its own where the tree has inversions."""
        tops = np.append(np.full(len(self), -np.inf), self.heights)
        for t, (a, b) in enumerate(self.merges.tolist(), len(self)):
            tops[t] = max(tops[t], tops[a], tops[b])
        return tops[len(self) :]

    def _labels(self, done: Any) -> Index:
        """Clusters after the given merges; below each of these only such merges occur."""
        n = len(self)
        labels = np.arange(2 * n - 1)
        for t in np.flatnonzero(done)[::-1]:
            labels[self.merges[t]] = labels[n + t]
        _, first, label = np.unique(labels[:n], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.intp)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[label]

    def _sums(self, leaves: Array) -> Array:
        sums = np.append(leaves, np.zeros(len(self.merges)))
        for t, (a, b) in enumerate(self.merges.tolist(), len(self)):
            sums[t] = sums[a] + sums[b]
        return sums[len(self) :]

    def __repr__(self) -> str:
        text = f"Dendrogram({len(self):,} rows, method={self.method!r}"
        if len(self) > 1:
            text += f", heights {self.heights.min():.4g} … {self.heights.max():.4g}"
        return text + (f", {self.inversions} inversions)" if self.inversions else ")")


def _check_tree(merges: Index, n: int) -> None:
    """Raise an error unless every cluster but the last is merged once, after it was formed."""
    born = np.arange(n, 2 * n - 1)[:, None]
    if (merges < 0).any() or (merges >= born).any() or len(np.unique(merges)) != merges.size:
        expected = "each cluster must be merged once, and only after it was formed"
        raise DomainError(sentence("Dendrogram", expected, "merges that do not form a tree"))


def _integer(k: Any, n: int) -> int:
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k <= n:
        raise DomainError(sentence("Dendrogram.cut", f"k must be an integer from 1 to {n}, the number of rows", k))
    return int(k)

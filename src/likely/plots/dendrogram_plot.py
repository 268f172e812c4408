"""Plot of a dendrogram; the lowest merges of a large tree are collapsed into wedges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.cluster.hierarchy.dendrogram import Dendrogram
from likely.core.arrays import Index
from likely.core.errors import DomainError, ShapeError, sentence
from likely.plots.theme import INK, PALETTE, SOFT, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BRANCHES = 80  # as many are drawn at most for the sake of clusters; beyond, a wedge may hold several, and is gray


def plot_dendrogram(
    tree: Dendrogram, ax: Axes | None = None, *, labels: ArrayLike | None = None, cut: int | float | None = None,
    max_branches: int = 40,
) -> Axes:  # fmt: skip
    """Plot a dendrogram.

    Parameters
    ----------
    tree : Dendrogram
        The result of `linkage`, or `dendrogram_` of a fitted `AgglomerativeClustering`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    labels : sequence of str (n,), optional
        Names of the rows; by default their numbers.
    cut : int or float, optional
        A number of clusters (an int), or a height (a float): clusters get colors, and a line shows where.
    max_branches : int, default 40
        Number of branches that are drawn. Of a larger tree the lowest merges are folded: a wedge reaches up to the
        height at which its rows are one cluster, and says how many they are.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    linkage : The dendrogram of rows.

    Examples
    --------
    >>> from likely.cluster.hierarchy.linkage import linkage
    >>> plot_dendrogram(linkage([[0.0], [1.0], [5.0]]), cut=2).get_ylabel()
    'height (ward)'
    """
    names = _names(labels, len(tree))
    groups, line = _groups(tree, cut)
    shown = min(len(tree), max(2, max_branches, min(int(groups.max()) + 1, BRANCHES)))
    picture = _Picture(tree, shown, groups)
    ax = axes(ax, figsize=(max(6.0, min(14.0, 0.22 * shown)), 4.0))
    _draw(ax, picture, line)
    _name_leaves(ax, picture, names)
    ax.set(ylabel=f"height ({tree.method})" if tree.method else "height", xlim=(-0.8, max(shown - 0.2, 0.8)))
    inversions = f"; {tree.inversions} inversions" if tree.inversions else ""
    ax.set_title(f"{len(tree):,} rows{_clusters(groups, cut)}{inversions}", loc="left")
    return ax


class _Picture:
    """Positions of the nodes, and which of them are collapsed."""

    def __init__(self, tree: Dendrogram, shown: int, groups: Index) -> None:
        n = len(tree)
        self.tree, self.first = tree, 2 * n - shown  # merges from this node on are drawn
        self.height = np.append(np.zeros(n), tree.heights)
        self.size = np.append(np.ones(n), tree.linkage[:, 3]).astype(int)
        self.leaf = _some_leaf(tree)
        self.x = np.zeros(2 * n - 1)
        self.tips = self._tips()
        self.x[self.tips] = np.arange(len(self.tips))
        for node in range(self.first, 2 * n - 1):
            self.x[node] = self.x[tree.merges[node - n]].mean()
        self.color = _colors(tree, self.leaf, groups)

    def _tips(self) -> list[int]:
        """Leaves and folded nodes from left to right."""
        found, waiting, n = [], [2 * len(self.tree) - 2], len(self.tree)
        while waiting:
            node = waiting.pop()
            if node < max(self.first, n):
                found.append(node)
            else:
                waiting += self.tree.merges[node - n, ::-1].tolist()
        return found


def _some_leaf(tree: Dendrogram) -> Index:
    leaf = np.arange(2 * len(tree) - 1)
    for t, (a, _) in enumerate(tree.merges.tolist(), len(tree)):
        leaf[t] = leaf[a]
    return leaf


def _groups(tree: Dendrogram, cut: Any) -> tuple[Index, float | None]:
    """Cluster of each row, and the height of the line that parts them; there is none where heights are inverted."""
    if cut is None:
        return np.zeros(len(tree), dtype=np.intp), None
    if isinstance(cut, float | np.floating):
        return tree.cut(height=float(cut)), float(cut)
    groups = tree.cut(cut)
    at = len(tree) - int(cut)
    below = tree.heights[at - 1] if at else 0.0
    above = tree.heights[at] if at < len(tree.heights) else 1.1 * below
    return groups, None if tree.inversions else float(below + above) / 2


def _colors(tree: Dendrogram, leaf: Index, groups: Index) -> list[str]:
    """A node of one cluster has that cluster's color, counted from left to right; one of several is gray."""
    n = len(tree)
    whole = np.append(np.ones(n, dtype=bool), np.zeros(n - 1, dtype=bool))
    for t, (a, b) in enumerate(tree.merges.tolist(), n):
        whole[t] = whole[a] and whole[b] and groups[leaf[a]] == groups[leaf[b]]
    if groups.max(initial=0) == 0:
        return [PALETTE[0]] * len(whole)
    place = {g: i for i, g in enumerate(dict.fromkeys(groups[tree.order].tolist()))}
    return [PALETTE[place[g] % len(PALETTE)] if w else SOFT for g, w in zip(groups[leaf], whole, strict=True)]


def _draw(ax: Any, p: _Picture, line: float | None) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    n, bends, colors = len(p.tree), [], []
    for node in range(max(p.first, n), 2 * n - 1):
        a, b = p.tree.merges[node - n]
        a, b = (a, b) if p.x[a] < p.x[b] else (b, a)
        h = p.height[node]
        bends.append([(p.x[a], p.height[a]), (p.x[a], h), (p.x[b], h), (p.x[b], p.height[b])])
        colors.append(p.color[node])
        bends += [
            [bends[-1][0], bends[-1][1]],
            [bends[-1][3], bends[-1][2]],
        ]  # each leg in the color of its own branch
        colors += [p.color[a], p.color[b]]
    ax.add_collection(LineCollection(bends, colors=colors, linewidths=1.3, capstyle="round"))
    folded = [node for node in p.tips if node >= n]
    wedges = [[(p.x[i] - 0.36, 0.0), (p.x[i], p.height[i]), (p.x[i] + 0.36, 0.0)] for i in folded]
    ax.add_collection(PolyCollection(wedges, facecolors=[p.color[i] for i in folded], edgecolors="none", alpha=0.75))
    top = float(p.height.max())
    ax.set_ylim(min(0.0, float(p.height.min())), 1.05 * top if top > 0 else 1.0)
    if line is not None:
        ax.axhline(line, color=INK, linewidth=0.8, linestyle=(0, (5, 4)))


def _name_leaves(ax: Any, p: _Picture, names: list[str]) -> None:
    n = len(p.tree)
    words = [names[node] if node < n else f"{p.size[node]:,} rows" for node in p.tips]
    upright = max(map(len, words)) * len(words) <= 60
    ax.set_xticks(range(len(words)), words, rotation=0 if upright else 90, fontsize=7.5 if len(words) > 30 else None)
    ax.tick_params(axis="x", length=0)
    ax.spines["bottom"].set_visible(False)


def _names(labels: Any, n: int) -> list[str]:
    names = [str(i) for i in range(n)] if labels is None else [str(label) for label in labels]
    if len(names) != n:
        raise ShapeError(sentence("plot_dendrogram", f"labels must name each row ({n})", len(names)))
    return names


def _clusters(groups: Index, cut: Any) -> str:
    if isinstance(cut, bool):
        raise DomainError(sentence("plot_dendrogram", "cut must be a number of clusters or a height", cut))
    return "" if cut is None else f", {int(groups.max()) + 1:,} clusters"

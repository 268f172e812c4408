"""Plot of a Chow-Liu tree; line width shows the mutual information of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.plots.theme import INK, PALETTE, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

def plot_chow_liu_tree(
    tree: Any, ax: Axes | None = None, *, names: Sequence[str] | None = None, title: str | None = None,
) -> Axes:  # fmt: skip
    """Plot a Chow–Liu tree, rooted at its center.

    Numbers on the lines are mutual information in bits. The direction of a line has no meaning: any column
    could be the root.

    Parameters
    ----------
    tree : ChowLiuTree or estimator
        The tree, or a fitted estimator of one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    names : sequence of str, optional
        Names of the columns.
    title : str, optional
        Title of the plot.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    References
    ----------
    Chow and Liu (1968).

    Examples
    --------
    >>> x = [[0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0]]
    >>> plot_chow_liu_tree(ChowLiuTree.fit(x), names=["a", "b", "c"]).get_title(loc="left")
    '3 columns, 1.00 bits of mutual information'
    """
    distribution = getattr(tree, "model_", tree)
    if not isinstance(distribution, ChowLiuTree) or distribution.members is not None:
        got = (
            f"a stack of {distribution.members}"
            if isinstance(distribution, ChowLiuTree)
            else type(distribution).__name__
        )
        raise DomainError(sentence("plot_chow_liu_tree", "one ChowLiuTree is needed", got, "take member(k) of a stack"))
    called = _names(names, tree, distribution.dim)
    shared = {edge: bits for edge, bits in zip(distribution.edges, _bits(distribution), strict=True)}
    x, y = _places(distribution.edges, distribution.dim)
    with themed():
        ax = axes(ax, figsize=(max(5.0, min(12.0, 0.9 * (x.max() + 1.5))), max(2.6, 0.85 * (y.max() - y.min() + 1.5))))
        most = max(max(shared.values(), default=0.0), 1e-9)
        for (a, b), bits in shared.items():
            ax.plot([x[a], x[b]], [y[a], y[b]], color=PALETTE[0], alpha=0.75, solid_capstyle="round",
                    linewidth=0.6 + 5.0 * bits / most, zorder=1)  # fmt: skip
            if distribution.dim <= 24:
                ax.text(0.5 * (x[a] + x[b]), 0.5 * (y[a] + y[b]), f"{bits:.2f}", fontsize=7, color=INK, ha="center",
                        va="center", zorder=2, bbox={"fc": "white", "ec": "none", "pad": 0.8})  # fmt: skip
        for j, name in enumerate(called):
            ax.text(x[j], y[j], name, ha="center", va="center", fontsize=9, color=INK, zorder=3,
                    bbox={"boxstyle": "round,pad=0.35", "facecolor": "#eef3f5", "edgecolor": PALETTE[0]})  # fmt: skip
        ax.set(xlim=(x.min() - 0.7, x.max() + 0.7), ylim=(y.min() - 0.6, y.max() + 0.6))
        ax.set_axis_off()
        ax.set_title(
            title or f"{distribution.dim} columns, {sum(shared.values()):.2f} bits of mutual information", loc="left"
        )
    return ax


def _names(names: Any, tree: Any, d: int) -> list[str]:
    if names is None and hasattr(tree, "column_names"):
        names = tree.column_names()
    called = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(called) != d:
        raise ShapeError(sentence("plot_chow_liu_tree", f"names must name each column ({d})", len(called)))
    return called


def _bits(distribution: ChowLiuTree) -> list[float]:
    """Mutual information along each edge."""
    one, found = distribution.marginals(), []
    for p, j in distribution.edges:
        T = distribution.tables[j]
        ratio = np.divide(T, one[j], out=np.ones_like(T), where=(T > 0) & (one[j] > 0))
        found.append(float((one[p][:, None] * T * np.log2(ratio)).sum()))
    return found


def _places(edges: list[tuple[int, int]], d: int) -> tuple[Array, Array]:
    """Positions of the columns: leaves side by side, parents above the middle of their children."""
    near: list[list[int]] = [[] for _ in range(d)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    x, y, free = np.zeros(d), np.zeros(d), 0
    for root in _centers(near, d):
        order, above = _walk(near, root)
        for j in order:
            y[j] = 0.0 if above[j] < 0 else y[above[j]] - 1.0
        for j in _leaves_first(near, root):
            below = [c for c in near[j] if above[c] == j]
            if below:
                x[j] = np.mean([x[c] for c in below])
            else:
                x[j], free = free, free + 1
    return x, y


def _walk(near: list[list[int]], root: int) -> tuple[list[int], dict[int, int]]:
    """Columns of one tree from the root outwards, and what each hangs from."""
    order, above = [root], {root: -1}
    for i in order:
        for j in near[i]:
            if j not in above:
                above[j] = i
                order.append(j)
    return order, above


def _leaves_first(near: list[list[int]], root: int) -> list[int]:
    """Each column after all that hang from it, branches from left to right."""
    out, waiting, above = [], [(root, False)], {root: -1}
    while waiting:
        i, done = waiting.pop()
        if done:
            out.append(i)
            continue
        waiting.append((i, True))
        below = [j for j in near[i] if j != above[i]]
        above.update(dict.fromkeys(below, i))
        waiting += [(j, False) for j in reversed(below)]
    return out


def _centers(near: list[list[int]], d: int) -> list[int]:
    """The middle of the longest path of each tree."""
    left, found = set(range(d)), []
    while left:
        one = _walk(near, min(left))[0]
        far = _walk(near, one[-1])
        path, above = [far[0][-1]], far[1]
        while above[path[-1]] >= 0:
            path.append(above[path[-1]])
        found.append(path[len(path) // 2])
        left -= set(one)
    return found

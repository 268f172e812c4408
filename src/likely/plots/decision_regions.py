"""Plot of decision regions over two columns, with posterior shading, reject and novelty regions."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Rows, Targets, numbers
from likely.core.errors import DataError, DomainError, LikelyError, ShapeError, sentence
from likely.decision.boundary.boundary import decision_boundary
from likely.decision.decide import decide, foreign_posterior
from likely.decision.reject import NOVEL, REJECT
from likely.distributions.gaussian.gaussian import Gaussian
from likely.plots.theme import INK, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ten hues that remain apart for readers who confuse red and green, in the order of their distance
HUES = (
    *("#1f6f8b", "#d1603d", "#5c8a3a", "#8a5aa8", "#c79a2c"),
    *("#33b8c4", "#882255", "#7a5230", "#e58fb0", "#2b3f8c"),
)  # fmt: skip
MARKS = "os^DvP*Xp<"
REFUSED, STRANGE, OTHER = "#ffffff", "#c4c9cd", "#9aa3a9"  # REJECT, NOVEL, further actions
PALE, FULL = 0.1, 0.52  # share of a class's color where all classes are alike, and where one is certain
LABELED = 5  # classes from which regions carry their names: so many colors are not kept in mind
NARROW = 0.035  # of the picture's width: regions that hold no circle of this radius carry none


class DecisionGrid(NamedTuple):
    """Decisions on a grid over two columns."""

    xs: Array  # (s,)
    ys: Array  # (s,)
    region: Index  # (s, s): classes 0 … C − 1, then further actions; REJECT −1, NOVEL −2
    sure: Array  # (s, s): 0 where all classes are equally probable, 1 where one is certain
    names: list[str]  # of classes and further actions
    classes: int  # how many of them are classes


def plot_decision_regions(
    clf: Any, X: Rows, y: Targets | None = None, *, columns: tuple[int, int] = (0, 1), at: ArrayLike | None = None,
    ax: Axes | None = None, steps: int = 240, exact: bool = True, shade: bool = True, **how: Any,
) -> Axes:  # fmt: skip
    """Plot the decision regions of a classifier over two columns, with reject and novelty regions.

    Reject regions are white and hatched, novel ones gray and dotted.

    Parameters
    ----------
    clf : classifier
        A fitted `BayesClassifier`, `KNeighborsClassifier`, …, or any classifier with `predict_proba`.
    X : array-like (n, d)
        Rows that set the range of the plot.
    y : array-like (n,), optional
        Labels; with them the rows are drawn.
    columns : tuple of int, default (0, 1)
        The two columns of the plot.
    at : array-like (d,), {"median", "unobserved"}, optional
        Values of the other columns; "unobserved" integrates them out. None: unobserved where the classifier can leave
        columns out, else medians.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    steps : int, default 240
        Number of grid points per axis.
    exact : bool, default True
        Draw boundaries between Gaussian classes as exact conics instead of grid steps.
    shade : bool, default True
        Colors fade to where the classes are equally probable.
    **how : settings
        Settings of `decide`: `cost`, `reject_cost`, `reject_below`, `novelty`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    decide : The decisions that are drawn.
    plot_decision_boundary : The boundary of two Gaussian classes.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0, 0.0], [3.0, 1.0]], 30, axis=0)
    >>> clf = lk.BayesClassifier().fit(X, np.repeat(["a", "b"], 30))
    >>> plot_decision_regions(clf, X, reject_below=0.9, steps=40).get_xlabel()
    'x0'
    """
    rows = _numbers(X)
    _check(rows, columns, steps)
    plane = _plane(clf, X, rows, columns, _fixed(clf, rows, at), steps, how)
    with themed():
        ax = axes(ax)
        _paint(ax, plane, shade)
        _hatch(ax, plane)
        lines = _conics(clf, plane, columns, rows.shape[1], at, how) if exact else []
        _borders(ax, plane, lines)
        if y is not None:
            _rows(ax, rows, np.asarray(y), columns, getattr(clf, "classes_", None))
        if len(plane.names) >= LABELED:
            _labels(ax, plane)
        _key(ax, plane, y is not None)
    names = _names(clf, X, rows.shape[1])
    ax.set(xlabel=names[columns[0]], ylabel=names[columns[1]], xlim=plane.xs[[0, -1]], ylim=plane.ys[[0, -1]])
    return ax


# ---------------------------------------------------------------------- what to ask


def _numbers(X: Any) -> Array:
    rows = numbers(X.to_numpy() if hasattr(X, "to_numpy") else X, "plot_decision_regions")
    if rows.ndim != 2 or not len(rows):
        raise ShapeError(sentence("plot_decision_regions", "rows must have shape (n, d)", rows.shape))
    return rows


def _check(rows: Array, columns: Any, steps: Any) -> None:
    whole = int | np.integer
    if not (isinstance(columns, tuple | list) and len(columns) == 2 and all(isinstance(c, whole) for c in columns)):
        raise DomainError(
            sentence("plot_decision_regions", "columns must be two integers, such as (0, 1)", repr(columns))
        )
    if not isinstance(steps, whole) or isinstance(steps, bool):
        raise DomainError(sentence("plot_decision_regions", "steps must be an integer, 2 or more", steps))
    a, b = columns
    if not (0 <= min(a, b) and max(a, b) < rows.shape[1]):
        raise DomainError(
            sentence("plot_decision_regions", f"columns {a} and {b} are needed", f"rows of shape {rows.shape}")
        )
    if a == b or steps < 2:
        raise DomainError(
            sentence("plot_decision_regions", "two different columns and two steps or more", f"{columns}, {steps}")
        )
    for j in columns:
        if not np.isfinite(rows[:, j]).any():
            raise DataError(sentence("plot_decision_regions", f"column {j} needs a finite value", "none"))


def _fixed(clf: Any, rows: Array, at: Any) -> Array:
    """One row (d,): what the columns hold that are not drawn."""
    if at is None:
        at = "unobserved" if _takes_gaps(clf) else "median"
    if isinstance(at, str):
        if at not in ("median", "unobserved"):
            raise DomainError(sentence("plot_decision_regions", 'at must be a row, "median" or "unobserved"', repr(at)))
        return np.nanmedian(_finite(rows), axis=0) if at == "median" else np.full(rows.shape[1], np.nan)
    try:
        row = np.asarray(at, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(
            sentence("plot_decision_regions", 'at must be a row, "median" or "unobserved"', at)
        ) from error
    if row.shape != rows.shape[1:]:
        raise ShapeError(sentence("plot_decision_regions", f"at must be one row of {rows.shape[1]} numbers", row.shape))
    return row


def _finite(rows: Array) -> Array:
    """Without infinities, and without columns of nothing."""
    out = np.where(np.isfinite(rows), rows, np.nan)
    empty = np.isnan(out).all(axis=0)
    return np.where(empty, 0.0, out) if empty.any() else out


def _takes_gaps(clf: Any) -> bool:
    """True for classifiers of this library that marginalize NaN out; others may treat it differently."""
    if not hasattr(clf, "log_posterior"):
        return False
    tags = getattr(clf, "__sklearn_tags__", None)
    return True if tags is None else bool(tags().input_tags.allow_nan)


def _plane(clf: Any, X: Any, rows: Array, columns: Any, fixed: Array, steps: int, how: dict[str, Any]) -> DecisionGrid:
    xs, ys = (_span(rows[:, j], steps) for j in columns)
    grid = np.tile(fixed, (steps * steps, 1))
    grid[:, columns[0]], grid[:, columns[1]] = (part.ravel() for part in np.meshgrid(xs, ys))
    asked = _framed(grid, X)
    decided, (classes, posterior) = decide(clf, asked, **how), foreign_posterior(clf, asked)
    names = [str(label) for label in classes.tolist()]
    places = {label: k for k, label in enumerate(classes.tolist())}
    region = np.empty(len(grid), dtype=np.intp)
    for choice in dict.fromkeys(decided.tolist()):
        mine = np.fromiter((d == choice for d in decided.tolist()), dtype=bool, count=len(grid))
        region[mine] = choice.code if choice in (REJECT, NOVEL) else places.setdefault(choice, len(places))
    names += [str(choice) for choice in list(places)[len(names) :]]
    C = max(posterior.shape[1], 2)
    sure = (posterior.max(axis=1) - 1 / C) / (1 - 1 / C)
    return DecisionGrid(
        xs, ys, region.reshape(steps, steps), np.clip(sure, 0, 1).reshape(steps, steps), names, len(classes)
    )


def _span(values: Array, steps: int) -> Array:
    values = values[np.isfinite(values)]
    low, high = values.min(), values.max()
    margin = 0.06 * (high - low or max(abs(high), 1.0))
    return np.linspace(low - margin, high + margin, steps)


def _framed(grid: Array, X: Any) -> Any:
    """The grid as a data frame of the same library, where X is one: classifiers want the names they learned."""
    if not (hasattr(X, "columns") and hasattr(X, "to_numpy")):
        return grid
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    columns = {name: grid[:, j] for j, name in enumerate(frame.columns)}
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _names(clf: Any, X: Any, d: int) -> list[str]:
    if hasattr(X, "columns"):
        return [str(c) for c in X.columns]
    return list(clf.column_names()) if hasattr(clf, "column_names") else [f"x{j}" for j in range(d)]


# ----------------------------------------------------------------------- to draw it


def hue(k: int) -> str:
    """The color of class k."""
    return HUES[k % len(HUES)]


def _color(plane: DecisionGrid, k: int) -> str:
    return hue(k) if k < plane.classes else OTHER


def _colors(plane: DecisionGrid) -> Any:
    from matplotlib.colors import to_rgb

    named = [_color(plane, k) for k in range(len(plane.names))]
    return np.array([to_rgb(c) for c in [*named, STRANGE, REFUSED]])  # from the back: −1 REJECT, −2 NOVEL


def _paint(ax: Any, plane: DecisionGrid, shade: bool) -> None:
    """Each cell in the color of its decision, mixed with white as the classifier is in doubt."""
    base = _colors(plane)[plane.region]
    share = PALE + (FULL - PALE) * (plane.sure if shade else np.full_like(plane.sure, 0.5))
    share = np.where(plane.region < 0, 1.0, share)[..., None]
    picture = 1 - share * (1 - base)
    ax.imshow(
        picture, origin="lower", aspect="auto", extent=(*_edges(plane.xs), *_edges(plane.ys)),
        interpolation="nearest", zorder=0,
    )  # fmt: skip


def _edges(at: Array) -> tuple[float, float]:
    """Where the cells around these middles begin and end."""
    half = 0.5 * float(at[1] - at[0])
    return float(at[0]) - half, float(at[-1]) + half


def _smooth(mask: Any) -> Array:
    """A region as heights: its contour at ½ has no stairs."""
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(mask.astype(np.float64), 0.8, mode="nearest"))


def _hatch(ax: Any, plane: DecisionGrid) -> None:
    """Hatching over reject regions, dots over novelty regions, so that they differ without color."""
    for code, pattern, color in ((REJECT.code, "////", "#b9c2c8"), (NOVEL.code, "..", "#8d969c")):
        mask = plane.region == code
        if mask.any():
            drawn = ax.contourf(
                plane.xs, plane.ys, _smooth(mask), levels=[0.5, 1.5], colors="none", hatches=[pattern], zorder=1
            )
            drawn.set(edgecolor=color, linewidth=0)


def _borders(ax: Any, plane: DecisionGrid, lines: list[Array]) -> None:
    """Where the decision changes: along the grid, except where an exact line is known."""
    for line in lines:
        ax.plot(*line.T, color=INK, lw=1.1, zorder=2)
    codes = np.unique(plane.region)
    for code in codes if len(codes) > 1 and not lines else []:
        height = _smooth(plane.region == code)
        if height.min() < 0.5 < height.max():
            ax.contour(plane.xs, plane.ys, height, levels=[0.5], colors=[INK], linewidths=0.8, zorder=2)


def _labels(ax: Any, plane: DecisionGrid) -> None:
    """The name of each class at the middle of its widest place."""
    from matplotlib.patheffects import withStroke
    from scipy.ndimage import distance_transform_edt

    for k in np.unique(plane.region[plane.region >= 0]).tolist():
        room = distance_transform_edt(np.pad(plane.region == k, 1))[1:-1, 1:-1]
        i, j = np.unravel_index(int(room.argmax()), room.shape)
        if room[i, j] >= NARROW * len(plane.xs):
            halo = [withStroke(linewidth=2.5, foreground="white")]
            style: Any = {"ha": "center", "va": "center", "weight": "bold", "path_effects": halo}
            ax.text(plane.xs[j], plane.ys[i], plane.names[k], color=INK, zorder=4, **style)


def _rows(ax: Any, rows: Array, y: Any, columns: Any, classes: Any) -> None:
    labels = sorted(set(y.tolist()), key=str) if classes is None else np.asarray(classes).tolist()
    size = 16 if len(rows) <= 500 else 8
    for k, label in enumerate(labels):
        mine = y == label
        ax.scatter(
            *rows[mine][:, columns].T, s=size, color=hue(k), marker=MARKS[k % len(MARKS)], edgecolor="white",
            linewidth=0.35, zorder=3,
        )  # fmt: skip


def _key(ax: Any, plane: DecisionGrid, marks: bool) -> None:
    """Legend, outside the axes if it is long."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = [k for k in range(len(plane.names)) if marks or (plane.region == k).any()]
    handles: list[Any] = []
    for k in shown:
        mark = MARKS[k % len(MARKS)] if marks and k < plane.classes else "s"
        handles.append(Line2D([], [], ls="", marker=mark, ms=6, color=_color(plane, k), label=plane.names[k]))
    for code, color, pattern, edge, label in (
        (REJECT.code, REFUSED, "////", "#b9c2c8", "rejected"), (NOVEL.code, STRANGE, "..", "#8d969c", "novel")
    ):  # fmt: skip
        if (plane.region == code).any():
            handles.append(Patch(facecolor=color, edgecolor=edge, hatch=pattern, label=label, linewidth=0))
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, handletextpad=0.4)


# ------------------------------------------------------------------- exact borders


def _conics(clf: Any, plane: DecisionGrid, columns: Any, d: int, at: Any, how: dict[str, Any]) -> list[Array]:
    """Borders of Gaussian classes as polylines; empty where they are something else."""
    model: Any = getattr(clf, "model_", None)
    parts = getattr(model, "components", None)
    parts = getattr(parts, "components", parts)
    plain = (
        set(how) <= {"cost"}
        and (plane.region >= 0).all()
        and (at is None or (isinstance(at, str) and at == "unobserved") or d == 2)
    )
    if not (isinstance(parts, Gaussian) and plain):
        return []
    distributions = parts.marginal(list(columns))
    cost = how.get("cost", getattr(clf, "cost", None))
    try:
        return _met(distributions, model.weights, cost, plane)
    except LikelyError:  # singular covariances, further actions: the grid shows them
        return []


def _met(distributions: Gaussian, weights: Any, cost: Any, plane: DecisionGrid) -> list[Array]:
    """Of the border of each pair, the stretches where no third class is better."""
    K = len(weights)
    if cost is not None and K > 2:
        return []
    window, out = (plane.xs[[0, -1]], plane.ys[[0, -1]]), []
    for i, j in combinations(range(K), 2):
        found = decision_boundary(
            distributions.member(i), distributions.member(j), class_prior=weights[[i, j]] / weights[[i, j]].sum(),
            cost=None if cost is None else cost,
        )  # fmt: skip
        for line in found.points(600, window):
            joint = distributions.log_prob(line) + np.log(weights)
            alone = joint.max(axis=1) <= joint[:, [i, j]].max(axis=1) + 1e-6
            out += [np.where(alone[:, None], line, np.nan)] if alone.any() else []
    return out

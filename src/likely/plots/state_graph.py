"""State graph of a hidden Markov model: states as circles, transitions as arrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, sentence
from likely.plots.state_sequences import state_colors, state_names
from likely.plots.theme import INK, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 40  # states that can be drawn
LEAST = 0.005  # probability of an arrow that is drawn
ARROWS = 3  # between states, a state: of more, the least probable are left out
LABELS = 24  # arrows between states that get a number each: the most probable ones
R, NULL, DOOR = 0.3, 0.13, 0.045  # radius of a state, of one that emits nothing, of entry and exit
ROOM = 0.2  # between the middles of two numbers


def plot_transition_graph(
    model: Any, ax: Axes | None = None, *, names: Sequence[str] | None = None, least: float | None = None,
) -> Axes:  # fmt: skip
    """Plot the state graph of an HMM: states, null states, entry, exit and transition probabilities.

    Chains that only go forward are drawn in a line (branches below each other), others in a circle. An arrow is the
    wider the more probable it is. Numbers stand where there is room for them. Small circles with a broken edge are null
    states.

    Parameters
    ----------
    model : HMM or estimator
        The model, or an estimator that has learned one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    names : sequence of str, optional
        Names of the states.
    least : float, optional
        Arrows of smaller probability are left out. None: 0.005, or, where that would leave more than three arrows per
        state, as much as leaves so many; the title says so.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 0.7]], lk.Gaussian([[0.0], [5.0]], 1.0), final=[0.0, 0.3])
    >>> plot_transition_graph(h).get_title(loc="left")
    '2 states, in a line'
    """
    hmm = getattr(model, "model_", model)
    if not hasattr(hmm, "viterbi") or hmm.members is not None:
        expected, remedy = "one hidden Markov model is needed", "of a classifier, take model_.components.member(c)"
        raise DomainError(sentence("plot_transition_graph", expected, type(model).__name__, remedy))
    g = _Graph.of(hmm, names if names is not None else getattr(model, "state_names", None), least)
    with themed():
        ax = axes(ax, figsize=g.size)
        ax.set_axis_off()
        _draw(ax, g)
        ax.set_title(_title(g), loc="left")
    return ax


def _title(g: _Graph) -> str:
    nulls = f", {len(g.at) - g.states} null" if len(g.at) > g.states else ""
    hidden = (
        f", transitions below {g.least:.2g} left out" if ((g.transition > 0) & (g.transition < g.least)).any() else ""
    )
    return f"{g.states} state{'s' * (g.states != 1)}{nulls}, in a {'line' if g.forward else 'circle'}{hidden}"


@dataclass(frozen=True, eq=False)
class _Graph:
    """Positions of the states, and the arrows."""

    at: Array  # (N, 2)
    names: list[str]
    notes: list[str]  # what a state emits, in a word
    states: int  # K of the N emit
    transition: Array
    initial: Array
    final: Array | None
    least: float
    forward: bool

    @classmethod
    def of(cls, hmm: Any, names: Any, least: float | None) -> _Graph:
        N, K = len(hmm.initial), hmm.states
        if N > MOST:
            remedy = "draw lk.plots.plot_trellis, or a model of fewer"
            raise DomainError(sentence("plot_transition_graph", f"at most {MOST} states can be drawn", N, remedy))
        called = state_names(None if names is not None and len(names) != K else names, K, "plot_transition_graph")
        depth = layers(hmm.transition >= (LEAST if least is None else least))
        least = arrow_threshold(hmm.transition) if least is None else least
        at = _in_line(depth) if depth is not None else _in_circle(N)
        return cls(
            at,
            called,
            [_emits(hmm.emission, k) for k in range(K)],
            K,
            hmm.transition,
            hmm.initial,
            hmm.final,
            least,
            depth is not None,
        )

    @property
    def size(self) -> tuple[float, float]:
        """Of the figure, in inches: an inch a unit, less where that would be too large, but never below half of one."""
        low, high = _extent(self)
        wide, tall = (high - low) * float(np.clip(13.0 / (high - low).max(), 0.5, 1.0))
        return max(float(wide), 2.6), float(tall) + 0.35  # for the title

    def radius(self, k: int) -> float:
        return R if k < self.states else NULL


def arrow_threshold(moves: Array) -> float:
    """The probability from which arrows are drawn: so many a state, and none below 0.005.

    >>> arrow_threshold(np.full((3, 3), 1 / 3)), arrow_threshold(np.array([[0.9, 0.1], [0.001, 0.999]]))
    (0.005, 0.005)
    """
    between = np.sort(moves[~np.eye(len(moves), dtype=bool)])[::-1]
    between, most = between[between >= LEAST], ARROWS * len(moves)
    return LEAST if len(between) <= most else float(between[most - 1])


def layers(arcs: Any) -> Index | None:
    """How far from the beginning each state is (N,), by the longest way; None where a way leads back.

    >>> layers(np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1]])).tolist()
    [0, 1, 2]
    """
    arcs = np.array(arcs, dtype=bool)
    np.fill_diagonal(arcs, False)
    N = len(arcs)
    depth = np.zeros(N, dtype=np.intp)
    for _ in range(N + 1):
        deeper = np.array([max([depth[j] + 1 for j in np.flatnonzero(arcs[:, k])], default=0) for k in range(N)])
        if (deeper == depth).all():
            return None if N > 1 and not arcs.any() else depth
        depth = deeper
    return None


def _in_line(depth: Index) -> Array:
    """A column for each layer; states of one layer below each other."""
    at = np.zeros((len(depth), 2))
    for layer in np.unique(depth):
        own = np.flatnonzero(depth == layer)
        at[own] = [[1.25 * layer, 1.2 * ((len(own) - 1) / 2 - i)] for i in range(len(own))]
    return at


def _in_circle(N: int) -> Array:
    if N == 1:
        return np.zeros((1, 2))
    angle = np.pi / 2 - 2 * np.pi * np.arange(N) / N + (0 if N > 2 else np.pi / 2)
    radius = max(0.95, 1.35 / (2 * np.sin(np.pi / N)))
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _emits(emissions: Any, k: int) -> str:
    """Short description of the emission of a state."""
    distribution = emissions.member(k)
    if type(distribution).__name__ == "Categorical":
        best = str(distribution.values[int(np.argmax(distribution.probs))])
        return best if len(best) <= 6 else best[:5] + "…"
    middle = (
        distribution.mean
        if type(distribution).__name__ in ("Gaussian", "FactorGaussian", "StudentT", "Poisson")
        else None
    )
    if middle is None or np.size(middle) > 2:
        return ""
    spread = float(np.ptp(np.ravel(getattr(emissions, "mean", middle)))) or 1.0  # what is small beside it is 0
    return ", ".join(f"{x if abs(x) > 0.005 * spread else 0.0:.3g}".replace("-", "−") for x in np.ravel(middle))


# ------------------------------------------------------------------------------ drawing


def _draw(ax: Any, g: _Graph) -> None:
    low, high = _extent(g)
    ax.set_aspect("equal")
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    taken = [*g.at.tolist()]
    for k in np.flatnonzero(np.diag(g.transition) >= g.least).tolist():
        _loop(ax, g, k)
    arrows = [(i, j) for i, j in np.argwhere(g.transition >= g.least).tolist() if i != j]
    for rank, (i, j) in enumerate(sorted(arrows, key=lambda arc: -g.transition[arc])):
        _move(ax, g, i, j, taken if rank < LABELS else None)
    for k, p, entry in _doors(g):
        _door(ax, g, k, p, entry)
    _circles(ax, g)


def _doors(g: _Graph) -> list[tuple[int, float, bool]]:
    """Where sequences may begin (True) and end (False), with what probability."""
    ends = np.zeros(len(g.at)) if g.final is None else g.final
    both = ((g.initial, True), (ends, False))
    return [(k, float(p[k]), entry) for p, entry in both for k in np.flatnonzero(p >= LEAST).tolist()]


def _extent(g: _Graph) -> tuple[Array, Array]:
    """Extent of the drawing: circles, loops, entries, exits and curved arrows, with their labels."""
    at, reach = g.at, R + 0.06
    loops = [at[k] + (g.radius(k) + 0.42) * _outward(g, k) for k in range(len(at)) if g.transition[k, k] >= g.least]
    doors = [at[k] + (g.radius(k) + (0.42 if p > 1 - 1e-9 else 0.68)) * _way(g, k, entry) for k, p, entry in _doors(g)]
    points = np.array([*(at - reach), *(at + reach), *loops, *doors])
    low, high = points.min(axis=0), points.max(axis=0)
    if g.forward and _longest(g):
        low[1] = min(low[1], at[:, 1].min() - 0.55 - 0.11 * (1 + _longest(g)))
    return low - 0.05, high + 0.05


def _longest(g: _Graph) -> float:
    """Of the arrows that pass over others, how many layers the longest one passes."""
    i, j = np.nonzero(g.transition >= g.least)
    return float(max(np.abs(g.at[j, 0] - g.at[i, 0]).max() / 1.25 - 1, 0.0)) if len(i) else 0.0


def _circles(ax: Any, g: _Graph) -> None:
    from matplotlib.patches import Circle

    colors = state_colors(g.states)
    for k, (x, y) in enumerate(g.at.tolist()):
        null = k >= g.states
        edge = SOFT if null else colors[k]
        style = {"linestyle": (0, (2, 1.5)), "facecolor": "white"} if null else {"facecolor": _pale(edge)}
        ax.add_patch(Circle((x, y), g.radius(k), edgecolor=INK if null else edge, linewidth=1.5, zorder=3, **style))
        if null:
            continue
        note = g.notes[k]
        size = 10 if len(g.names[k]) <= 4 else 8 if len(g.names[k]) <= 7 else 6.5
        ax.text(
            x, y + (0.07 if note else 0), g.names[k], ha="center", va="center", fontsize=size, zorder=4, weight="bold"
        )
        if note:
            ax.text(x, y - 0.12, note, ha="center", va="center", fontsize=6.5, zorder=4)


def _pale(color: Any) -> Any:
    from matplotlib.colors import to_rgb

    return tuple(1 - 0.22 * (1 - channel) for channel in to_rgb(color))


def _width(p: float) -> float:
    return 0.6 + 1.9 * p


def _move(ax: Any, g: _Graph, i: int, j: int, taken: list[Any] | None) -> None:
    """An arrow from one state to another; in a line, one that passes others is bent below them."""
    from matplotlib.patches import FancyArrowPatch

    a, b = g.at[i], g.at[j]
    far, length = abs(b[0] - a[0]) / 1.25, float(np.hypot(*(b - a)))
    p = float(g.transition[i, j])
    bend = -0.16  # both directions of a pair, side by side
    if g.forward:
        bend = (0.7 + 0.2 * far) / length if far > 1.5 else 0.0
    gone = _shift(a, b, g.radius(i) + 0.03, bend), _shift(b, a, g.radius(j) + 0.04, -bend)
    ax.add_patch(FancyArrowPatch(
        gone[0], gone[1], connectionstyle=f"arc3,rad={bend:.3f}", arrowstyle="-|>", mutation_scale=9, color=INK,
        alpha=0.25 + 0.75 * p, linewidth=_width(p), shrinkA=0, shrinkB=0, zorder=2,
    ))  # fmt: skip
    spot = None if taken is None else _spot(g, a, b, bend, taken)
    if spot is not None and taken is not None:
        taken.append(spot)
        _number(ax, spot, p)


def _spot(g: _Graph, a: Array, b: Array, bend: float, taken: list[Any]) -> Any:
    """A place on an arrow for its number, apart from states and other numbers; None where there is none."""
    normal = np.array([b[1] - a[1], a[0] - b[0]])
    lift = np.array([0.0, 0.11]) if g.forward and abs(bend) < 1e-9 and abs(a[1] - b[1]) < 1e-9 else 0.0
    states, numbers = np.array(taken[: len(g.at)]), np.array(taken[len(g.at) :]).reshape(-1, 2)
    for along in (0.5, 0.4, 0.6) if g.forward else (0.36, 0.42, 0.3, 0.5, 0.25, 0.58, 0.66):
        spot = (1 - along) * a + along * b + 2 * along * (1 - along) * bend * normal + lift
        away = np.hypot(*(states - spot).T).min() > R + 0.04
        if away and (not len(numbers) or np.hypot(*(numbers - spot).T).min() > ROOM):
            return spot
    return None


def _shift(a: Array, b: Array, by: float, bend: float) -> tuple[float, float]:
    """A point on the edge of a's circle, in the direction in which a bent arrow leaves for b."""
    angle = np.arctan2(b[1] - a[1], b[0] - a[0]) - np.arctan(2 * bend)
    return float(a[0] + by * np.cos(angle)), float(a[1] + by * np.sin(angle))


def _loop(ax: Any, g: _Graph, k: int) -> None:
    """Staying: a small loop above a state, or, in a circle, on its outer side."""
    from matplotlib.patches import FancyArrowPatch

    out = _outward(g, k)
    side, r = np.array([-out[1], out[0]]), g.radius(k)
    p = float(g.transition[k, k])
    begin, end = (g.at[k] + (r + 0.01) * (0.82 * out + s * 0.57 * side) for s in (1, -1))
    ax.add_patch(FancyArrowPatch(
        tuple(begin), tuple(end), connectionstyle="arc3,rad=-1.45", arrowstyle="-|>", mutation_scale=9, color=INK,
        alpha=0.25 + 0.75 * p, linewidth=_width(p), shrinkA=0, shrinkB=0, zorder=2,
    ))  # fmt: skip
    _number(ax, g.at[k] + (r + 0.22) * out, p, out)


def _outward(g: _Graph, k: int) -> Array:
    length = float(np.hypot(*g.at[k]))
    return np.array([0.0, 1.0]) if g.forward or length < 1e-9 else g.at[k] / length


def _way(g: _Graph, k: int, entry: bool) -> Array:
    """The direction in which the entry to a state, or the exit from it, lies."""
    out = _outward(g, k)
    if g.forward:
        x = g.at[:, 0]
        edge = g.at[k, 0] == (x.min() if entry else x.max())
        return np.array([-1.0 if entry else 1.0, 0.0]) if edge else np.array([-0.6 if entry else 0.6, -0.8])
    turn = 0.85 if entry else -0.85
    return np.array([out[0] * np.cos(turn) - out[1] * np.sin(turn), out[0] * np.sin(turn) + out[1] * np.cos(turn)])


def _door(ax: Any, g: _Graph, k: int, p: float, entry: bool) -> None:
    """A short arrow from the entry, or to the exit, with its probability where it is not certain."""
    from matplotlib.patches import Circle, FancyArrowPatch

    way = _way(g, k, entry)
    near, far = g.at[k] + (g.radius(k) + 0.03) * way, g.at[k] + (g.radius(k) + 0.4) * way
    edge = far - (DOOR + 0.02) * way  # an arrow that touches the circle would hide it
    begin, end = (edge, near) if entry else (near, edge)
    ax.add_patch(FancyArrowPatch(
        tuple(begin), tuple(end), arrowstyle="-|>", mutation_scale=8, color=INK, linewidth=_width(p),
        alpha=0.25 + 0.75 * p, shrinkA=0, shrinkB=0, zorder=2,
    ))  # fmt: skip
    ax.add_patch(Circle(tuple(far), DOOR, edgecolor=INK, facecolor=INK if entry else "white", linewidth=1.2, zorder=3))
    if p < 1 - 1e-9:
        beyond = np.array([0.0, -1.0]) if g.forward and way[1] else way  # below, for a neighbor's door is beside
        _number(ax, far + DOOR * beyond, p, beyond)


def _number(ax: Any, at: Any, p: float, way: Any = None) -> None:
    """A probability in two digits, on white; beyond the point where a way is given, whatever the scale."""
    text = f"{p:.2f}" if p < 0.995 or p == 1 else f"{p:.3f}"
    text = "1" if p == 1 else text.lstrip("0") if p < 1 else text
    gap = np.zeros(2) if way is None else 3.0 * np.asarray(way)  # in points
    sides = [0 if way is None or abs(w) < 0.4 else int(np.sign(w)) for w in (gap / 3.0)]
    ax.annotate(
        text, tuple(at), tuple(gap), textcoords="offset points", fontsize=7, zorder=5,
        ha=("center", "left", "right")[sides[0]], va=("center", "bottom", "top")[sides[1]],
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
    )  # fmt: skip

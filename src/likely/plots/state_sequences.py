"""Plots of state sequences: posterior probabilities over time, Viterbi path and signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Rows
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged, single_sequence
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 600  # frames beyond which several share a column of the picture
COLUMNS = 240  # of the picture, then: three dots each, where a frame a dot would be a barcode
TURNS = 240  # changes of state beyond which the best path would be a wall of color
SYMBOLS = 80  # words of a sequence that are written out
LINES = 6  # columns of a signal that are drawn
UNLIKE = 0.2  # a column that fills less of the common scale than this needs a scale of its own


class DecodedSequence(NamedTuple):
    """One decoded sequence, as needed for a plot."""

    shares: Array  # (T, K): p(state | sequence)
    path: Index  # (T,): the best path
    log_prob: float
    signal: Any  # (T, d) numbers, or (T,) words
    columns: list[str]
    names: list[str]  # (K,) of the states


def plot_trellis(
    model: Any, x: Rows, ax: Any = None, *, names: Sequence[str] | None = None, columns: Any = None,
    lag: int | None = None, path: bool = True,
) -> Axes:  # fmt: skip
    """Plot p(state | sequence) over time, the Viterbi path as a line, the signal above.

    Of more than 600 frames several share a column of the picture, which shows their mean.

    Parameters
    ----------
    model : HMM or estimator
        The model, or an estimator that has learned one.
    x : array-like (T, d)
        One sequence.
    ax : matplotlib.axes.Axes or pair of them, optional
        Axes for the states, or for the signal and the states. On a new figure (None) columns of unlike scales get a
        strip each; on axes that were given each is drawn on its own scale.
    names : sequence of str, optional
        Names of the states.
    columns : sequence of str, optional
        Names of the columns of the signal.
    lag : int, optional
        Number of later frames that may be used: None all, 0 none (the filter).
    path : bool, default True
        Draw the Viterbi path.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    plot_state_probabilities : Probabilities stacked over time.

    Examples
    --------
    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> plot_trellis(h, [0.1, -0.3, 4.8, 5.2]).get_ylabel()
    'state'
    """
    decoded = decoded_sequence(model, x, names, columns, lag, whose="plot_trellis")
    T, K = decoded.shares.shape
    edges = _edges(T, "plot_trellis")
    with themed():
        above, ax = (
            _stacked(_strips(decoded), K) if ax is None else ([], ax) if hasattr(ax, "imshow") else ([ax[0]], ax[1])
        )
        image = ax.imshow(
            _means(decoded.shares, edges).T, origin="upper", aspect="auto", cmap="Blues", vmin=0, vmax=1,
            interpolation="nearest", extent=(-0.5, T - 0.5, K - 0.5, -0.5),
        )  # fmt: skip
        turns = _changes(decoded.path)
        if path and len(turns) <= 2 * TURNS:
            ax.step(turns, decoded.path[turns], where="mid", color=PALETTE[1], linewidth=1.8, label="Viterbi path")
        _named_states(ax, decoded.names)
        ax.set(xlabel=_frames(edges), ylabel="state", xlim=(-0.5, T - 0.5))
        draw_strips(above, decoded, edges)
        (above[0] if above else ax).set_title(_title(decoded, lag), loc="left")
        bar = ax.figure.colorbar(image, ax=ax, pad=0.015, fraction=0.03, aspect=12)
        bar.set_label("p(state), filtered" if lag == 0 else "p(state)")
        bar.outline.set_visible(False)
    return ax


def plot_state_probabilities(
    model: Any, x: Rows, ax: Axes | None = None, *, names: Sequence[str] | None = None, columns: Any = None,
    lag: int | None = None,
) -> Axes:  # fmt: skip
    """Plot probabilities of the states stacked over time, with the signal drawn over them.

    A signal of one column has its own axis, on the right; several stand in strips above, or, on axes that were given,
    over the states and each on its own scale.

    Parameters
    ----------
    model : HMM or estimator
        The model, or an estimator that has learned one.
    x : array-like (T, d)
        One sequence.
    ax : matplotlib.axes.Axes or pair of them, optional
        Axes for the states, or for the signal and the states; None makes a new figure.
    names : sequence of str, optional
        Names of the states.
    columns : sequence of str, optional
        Names of the columns of the signal.
    lag : int, optional
        Number of later frames that may be used: None all, 0 none (the filter).

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    plot_trellis : One row per state, with the Viterbi path.

    Examples
    --------
    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> plot_state_probabilities(h, [0.1, -0.3, 4.8, 5.2]).get_ylabel()
    'p(state)'
    """
    decoded = decoded_sequence(model, x, names, columns, lag, whose="plot_state_probabilities")
    T, K = decoded.shares.shape
    edges = _edges(T, "plot_state_probabilities")
    with themed():
        above, ax = (
            _stacked(_strips(decoded), 6) if ax is None and _several(decoded) else ([], axes(ax, figsize=(8.0, 3.2)))
        )
        shares = np.repeat(_means(decoded.shares, edges), 2, axis=0)  # a frame is a step, not a point
        at = np.stack([edges[:-1] - 0.5, edges[1:] - 0.5], axis=1).ravel()
        ax.stackplot(at, shares.T, colors=state_colors(K), alpha=0.55, labels=decoded.names, edgecolor="none")
        label = "p(state), filtered" if lag == 0 else "p(state)"
        ax.set(xlabel=_frames(edges), ylabel=label, xlim=(-0.5, T - 0.5), ylim=(0, 1))
        draw_strips(above, decoded, edges)
        if not above:
            _draw_signal(_over(ax), decoded, edges, over=True)
        (above[0] if above else ax).set_title(_title(decoded, lag), loc="left")
        if K <= 20:
            ax.legend(title="state", loc="upper left", bbox_to_anchor=(1.0 if above else 1.08, 1.0), reverse=True)
    return ax


def _over(ax: Any) -> Any:
    """Axes for the signal over those of the states, with a scale on the right."""
    over = ax.twinx()
    over.spines["right"].set_visible(True)
    return over


def _stacked(strips: int, K: int) -> tuple[list[Any], Any]:
    """Axes for the strips of a signal, and below them for K states."""
    states = 0.9 + 0.32 * min(max(K, 3), 16)
    each = 1.2 if strips == 1 else 0.75
    with themed() as plt:
        size, heights = (8.0, 0.3 + each * strips + states), (*[each] * strips, states)
        found = plt.subplots(strips + 1, 1, figsize=size, height_ratios=heights, sharex=True, layout="constrained")[1]
    return list(found[:-1]), found[-1]


# ----------------------------------------------------------------------- what is drawn


def decoded_sequence(
    model: Any, x: Any, names: Any = None, columns: Any = None, lag: int | None = None, *, whose: str
) -> DecodedSequence:
    """Decode one sequence; for estimators the original states, not their expansion."""
    hmm = getattr(model, "model_", model)
    if not hasattr(hmm, "viterbi"):
        expected, remedy = "a hidden Markov model is needed", "of a classifier, take model_.components.member(c)"
        raise DomainError(sentence(whose, expected, type(model).__name__, remedy))
    given = single_sequence(Ragged.of(model.frames(x) if hasattr(model, "frames") else x), whose)
    rows = _crossed(model, given)
    way = hmm.viterbi(rows)
    shares, states = hmm.posterior(rows, lag).values, way.states.values
    density = getattr(model, "density_", model)
    if hasattr(density, "topology_"):
        own = density.topology_.original
        shares, states = shares @ np.eye(int(own.max()) + 1)[own], own[states]
    called = state_names(names if names is not None else getattr(model, "state_names", None), shares.shape[1], whose)
    signal, titles = _signal(given.values, columns, whose)
    if columns is None and hasattr(model, "columns") and len(model.columns) == len(titles):
        titles = list(model.columns)
    return DecodedSequence(shares, states, float(hmm.log_prob(rows)[0]), signal, titles, called)


def _crossed(model: Any, given: Ragged) -> Ragged:
    """The validated sequence, unseen categories as missing."""
    density = getattr(model, "density_", model)
    if not hasattr(density, "validate_rows"):
        return given
    return density.mask_unknown(density.validate_rows(given, reset=False), density.learned_model_)[0]


def state_names(names: Any, K: int, whose: str) -> list[str]:
    """Names of the states; their numbers by default."""
    called = [str(k) for k in range(K)] if names is None else [str(name) for name in names]
    if len(called) != K:
        raise ShapeError(sentence(whose, f"names must name each of {K} states", len(called)))
    return called


def state_colors(K: int) -> list[Any]:
    """A color for each state: those of the house, or of a scale where they would not do."""
    if K <= len(PALETTE):
        return list(PALETTE[:K])
    import matplotlib as mpl

    return [mpl.colormaps["viridis"](k / (K - 1)) for k in range(K)]


def _signal(values: Any, columns: Any, whose: str) -> tuple[Any, list[str]]:
    """Numbers (T, d) with their names, or words (T,)."""
    if isinstance(values, Columns):
        numeric = {name: np.asarray(p) for name, p in values.parts.items() if np.asarray(p).dtype.kind in "biuf"}
        if not numeric:
            return np.asarray(next(iter(values.parts.values()))), []
        parts = [p.reshape(len(p), -1) for p in numeric.values()]
        names = [name for name, p in zip(numeric, parts, strict=True) for _ in range(p.shape[1])]
        return np.concatenate(parts, axis=1), names
    a = np.asarray(values)
    if a.dtype.kind not in "biuf":
        return a.reshape(len(a)), []
    a = a.reshape(len(a), -1)
    names = [f"x{j}" for j in range(a.shape[1])] if columns is None else [str(name) for name in columns]
    if len(names) != a.shape[1]:
        raise ShapeError(sentence(whose, f"columns must name each of {a.shape[1]} columns", len(names)))
    return a.astype(np.float64), names


def _title(decoded: DecodedSequence, lag: int | None) -> str:
    how = "" if lag is None else ", filtered" if lag == 0 else f", {lag} frames later"
    return f"{len(decoded.path):,} frames, log p = {decoded.log_prob:.5g}{how}".replace("-", "−")


# ------------------------------------------------------------------------------ drawing


def _several(decoded: DecodedSequence) -> bool:
    return bool(decoded.signal.ndim == 2 and decoded.signal.shape[1] > 1)


def _strips(decoded: DecodedSequence) -> int:
    """How many strips a signal needs: one, or one per column where their scales are unlike."""
    return min(decoded.signal.shape[1], LINES) if _several(decoded) and unlike(decoded.signal[:, :LINES]) else 1


def unlike(x: Array) -> bool:
    """Whether some of the columns would be flat lines on a scale for all of them.

    >>> unlike(np.array([[0.0, 900.0], [1.0, 1000.0]])), unlike(np.array([[0.0, 1.0], [1.0, 3.0]]))
    (True, False)
    """
    spans = np.array([np.ptp(known) if len(known := c[np.isfinite(c)]) else np.nan for c in x.T])
    known = x[np.isfinite(x)]
    return bool(known.size and np.nanmin(spans) < UNLIKE * np.ptp(known)) if len(spans) > 1 else False


def own_scales(x: Array) -> Array:
    """Each column stretched over 0 … 1; one that is constant lies in the middle."""
    known = np.where(np.isfinite(x), x, np.nan)
    low, high = np.fmin.reduce(known, axis=0), np.fmax.reduce(known, axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, (known - low) / span, 0.5 + 0.0 * known)


def draw_strips(strips: list[Any], decoded: DecodedSequence, edges: Index) -> None:
    """The signal: a column a strip where there are as many, else all on one."""
    if len(strips) <= 1:
        for ax in strips:
            _draw_signal(ax, decoded, edges)
        return
    for j, ax in enumerate(strips):
        _bare(ax)
        _draw_line(ax, decoded.signal[:, j], edges, INK, decoded.columns[j])
        ax.set_ylabel(decoded.columns[j], rotation=0, ha="right", va="center")
        ax.tick_params(labelsize=7)
    _say_rest(strips[-1], decoded)


def _draw_signal(ax: Any, decoded: DecodedSequence, edges: Index, over: bool = False) -> None:
    """The signal on axes of its own, or over others: lines of numbers, or the words themselves."""
    _bare(ax)
    if decoded.signal.ndim == 1:
        _draw_words(ax, decoded.signal)
        return
    shown = decoded.signal[:, :LINES]
    own = unlike(shown)
    for j, y in enumerate((own_scales(shown) if own else shown).T):
        color = INK if len(shown.T) == 1 else PALETTE[j % len(PALETTE)]
        _draw_line(ax, y, edges, color, decoded.columns[j], band=not over)  # a band would hide the states
    ax.set_ylabel(decoded.columns[0] if len(shown.T) == 1 else "each on its own scale" if own else "signal")
    if own:
        ax.set_yticks([])
    if len(shown.T) > 1:
        place = {"loc": "lower left", "bbox_to_anchor": (1.08, 0.0)}  # the states' legend is above it
        place = place if over else {"loc": "upper left", "bbox_to_anchor": (1.0, 1.1)}
        ax.legend(**place, fontsize=7, handlelength=1.2, borderaxespad=0.2)
    _say_rest(ax, decoded)


def _bare(ax: Any) -> None:
    ax.tick_params(labelbottom=False, bottom=False)
    ax.spines["bottom"].set_visible(False)


def _say_rest(ax: Any, decoded: DecodedSequence) -> None:
    """A note where not all columns are drawn."""
    if decoded.signal.ndim == 2 and decoded.signal.shape[1] > LINES:
        note = f"{LINES} of {decoded.signal.shape[1]} columns"
        ax.annotate(note, (1, 0), xycoords="axes fraction", ha="right", va="top", fontsize=7, color=SOFT)


def _draw_line(ax: Any, y: Array, edges: Index, color: str, name: str, band: bool = True) -> None:
    """A line through the frames; where several share a column, through their means, in the band of all values."""
    if len(edges) - 1 == len(y):
        marks = {"marker": ".", "markersize": 4} if len(y) <= 60 else {}
        ax.plot(np.arange(len(y)), y, color=color, linewidth=1.1, label=name, **marks)
        return
    at, known = (edges[:-1] + edges[1:] - 1) / 2, np.isfinite(y)
    count = np.add.reduceat(known.astype(np.float64), edges[:-1])
    sums = np.add.reduceat(np.where(known, y, 0.0), edges[:-1])
    if band:
        low, high = np.fmin.reduceat(y, edges[:-1]), np.fmax.reduceat(y, edges[:-1])
        ax.fill_between(at, low, high, color=color, linewidth=0, alpha=0.18)
    ax.plot(at, np.where(count > 0, sums / np.maximum(count, 1), np.nan), color=color, linewidth=1.1, label=name)


def _draw_words(ax: Any, words: Any) -> None:
    """Words in a row where there is room for them, else a dot at the height of each level."""
    ax.set_yticks([])
    texts = ["·" if word is None or word != word else str(word) for word in words.tolist()]
    if len(texts) * max(map(len, texts)) <= SYMBOLS:
        ax.set_ylim(0, 1)
        ax.spines["left"].set_visible(False)
        for t, word in enumerate(texts):
            ax.text(t, 0.5, word, ha="center", va="center", fontsize=8.5)
        return
    levels = sorted(set(texts))
    at = np.searchsorted(levels, texts)
    ax.scatter(np.arange(len(texts)), at, s=6, color=INK, linewidth=0)
    if len(levels) <= 12:
        ax.set_yticks(range(len(levels)), levels, fontsize=7)
    ax.set_ylim(-0.7, len(levels) - 0.3)


def _named_states(ax: Any, names: list[str]) -> None:
    step = -(-len(names) // 25)
    ax.set_yticks(range(0, len(names), step), names[::step])
    for k in range(1, len(names)):
        ax.axhline(k - 0.5, color=SOFT, linewidth=0.4)


def _edges(T: int, whose: str) -> Index:
    """Where the columns of a picture begin: a frame each, or several where there are too many."""
    if T < 1:
        raise DataError(sentence(whose, "at least one frame is needed", "none"))
    return np.arange(T + 1) if T <= WIDE else np.linspace(0, T, COLUMNS + 1).round().astype(np.intp)


def _frames(edges: Index) -> str:
    """Label of the time axis."""
    each = edges[-1] / (len(edges) - 1)
    return "frame" if each == 1 else f"frame (means of {each:,.3g} in a column)"


def _means(a: Array, edges: Index) -> Array:
    return np.asarray(np.add.reduceat(a, edges[:-1], axis=0) / np.diff(edges)[:, None])


def _changes(path: Index) -> Index:
    """The first frame, the last, and those on both sides of every change of state."""
    at = np.flatnonzero(np.diff(path))
    return np.unique(np.concatenate([[0], at, at + 1, [len(path) - 1]]))

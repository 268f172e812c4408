"""Pictures of hidden states show what the model says of them, and models are drawn as they go."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
from likely.core.errors import DomainError, ShapeError
from likely.plots.state_graph import ARROWS, DOOR, LEAST, MOST, ROOM, arrow_threshold, layers, plot_transition_graph
from likely.plots.state_sequences import COLUMNS, LINES, decoded_sequence, plot_state_probabilities, plot_trellis


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def model():
    return lk.HMM([0.7, 0.3], [[0.9, 0.1], [0.2, 0.8]], lk.Gaussian([[0.0], [4.0]], 1.0))


@pytest.fixture
def x(rng):
    return np.repeat([0.0, 4.0, 0.0], [10, 8, 12]) + rng.normal(size=30)


def words(ax):
    return [t.get_text() for t in ax.texts]


# -------------------------------------------------------------------------- states over time


@pytest.mark.parametrize("lag", [None, 0, 2])
def test_the_shading_is_the_posterior_and_the_line_the_best_path(model, x, lag):
    ax = plot_trellis(model, x, lag=lag)
    np.testing.assert_allclose(ax.images[0].get_array(), model.posterior(x, lag=lag).T, atol=1e-12)
    path = model.viterbi(x).states
    at, states = ax.lines[0].get_data() if ax.lines[0].get_label() == "Viterbi path" else ax.lines[-1].get_data()
    np.testing.assert_array_equal(path[np.asarray(at, dtype=int)], states)
    assert {0, len(x) - 1} <= set(np.asarray(at, dtype=int).tolist())
    above = ax.figure.axes[0]
    np.testing.assert_array_equal(above.lines[0].get_ydata(), x)


def test_the_stack_is_the_posterior(model, x):
    ax = plot_state_probabilities(model, x, names=["low", "high"])
    tops = [band.get_paths()[0].vertices for band in ax.collections]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["high", "low"]
    low = model.posterior(x)[:, 0]
    edge = {round(float(y), 9) for y in tops[0][:, 1]}
    assert {round(float(p), 9) for p in low} <= edge


def test_on_given_axes_or_a_pair(model, x):
    _, ax = plt.subplots()
    assert plot_trellis(model, x, ax) is ax and plot_state_probabilities(model, x, plt.subplots()[1]) is not None
    figure, (above, below) = plt.subplots(2)
    assert plot_trellis(model, x, (above, below), columns=["volts"]) is below and above.get_ylabel() == "volts"
    figure.canvas.draw()


def test_estimators_speak_of_the_states_that_were_asked_for(rng):
    x = [np.repeat([0.0, 5.0, 0.0], 6) + rng.normal(size=18) for _ in range(4)]
    h = lk.HMMDensity(n_states=2, durations=7, random_state=0).fit(x)
    seen = decoded_sequence(h, x[0], whose="plot_trellis")
    np.testing.assert_allclose(seen.shares, h.predict_proba(x[0]), atol=1e-12)
    np.testing.assert_array_equal(seen.path, h.predict(x[0]))
    assert plot_trellis(h, x[0]).get_ylim() == (1.5, -0.5)


def test_words_are_written_where_there_is_room_and_dots_where_not(rng):
    h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Categorical([[0.9, 0.1], [0.1, 0.9]], levels=["a", "b"]))
    short, long = rng.choice(["a", "b"], 20), rng.choice(["a", "b"], 200)
    assert words(plot_trellis(h, short).figure.axes[0]) == short.tolist()
    above = plot_trellis(h, long).figure.axes[0]
    assert not above.texts and len(above.collections[0].get_offsets()) == 200


def test_many_frames_share_columns(model, rng):
    x = np.repeat([0.0, 4.0], 25_000) + rng.normal(size=50_000)
    ax = plot_trellis(model, x)
    assert ax.images[0].get_array().shape == (2, COLUMNS)
    np.testing.assert_allclose(ax.images[0].get_array().mean(axis=1), model.posterior(x).mean(axis=0), atol=1e-3)
    assert "means of 208" in plot_state_probabilities(model, x).get_xlabel()


@pytest.mark.slow
def test_missing_values_and_several_columns_are_drawn(rng):
    h = lk.HMMDensity(n_states=2, random_state=0).fit([rng.normal(size=(40, 8))])
    x = rng.normal(size=(25, 8))
    x[3:6] = np.nan
    plot_trellis(h, x).figure.canvas.draw()
    plot_state_probabilities(h, x).figure.canvas.draw()


def test_columns_of_unlike_scales_stand_in_strips(rng):
    x = rng.normal(size=(40, 3)) * [1.0, 100.0, 0.01] + [0.0, 1000.0, 0.0]
    h = lk.HMM([1.0], [[1.0]], lk.Gaussian(x.mean(axis=0)[None], np.cov(x.T)))
    for draw in (plot_trellis, plot_state_probabilities):
        strips = draw(h, x, columns=["a", "b", "c"]).figure.axes[:3]
        assert [strip.get_ylabel() for strip in strips] == ["a", "b", "c"]
        for j, strip in enumerate(strips):
            np.testing.assert_array_equal(strip.lines[0].get_ydata(), x[:, j])
    over = plot_state_probabilities(h, x, plt.subplots()[1]).figure.axes[-1]
    assert "own scale" in over.get_ylabel()
    spans = [(line.get_ydata().min(), line.get_ydata().max()) for line in over.lines]
    np.testing.assert_allclose(spans, [(0.0, 1.0)] * 3)


def test_like_columns_share_a_strip_and_those_left_out_are_counted(rng):
    x = rng.normal(size=(40, 8))
    h = lk.HMM([1.0], [[1.0]], lk.Gaussian(np.zeros((1, 8)), 1.0))
    above = plot_trellis(h, x).figure.axes[0]
    assert len(above.lines) == LINES and f"{LINES} of 8 columns" in words(above)


def test_a_long_signal_is_its_means(model):
    x = np.tile([0.0, 4.0], 5_000)
    x[:100] = np.nan
    over = plot_state_probabilities(model, x).figure.axes[-1]
    drawn = over.lines[0].get_ydata()
    assert len(drawn) == COLUMNS and not over.collections and np.isnan(drawn[0])
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], 2.0, atol=0.1)


def test_bad_requests(model, x):
    with pytest.raises(ShapeError, match="each of 2 states"):
        plot_trellis(model, x, names=["only"])
    with pytest.raises(ShapeError, match="each of 1 columns"):
        plot_trellis(model, x, columns=["a", "b"])
    with pytest.raises(DomainError, match="a hidden Markov model is needed"):
        plot_state_probabilities(lk.Gaussian([0.0], 1.0), x)
    with pytest.raises(lk.DataError, match="one sequence"):
        plot_trellis(model, [x, x])


# ------------------------------------------------------------------------------ the graph


def circles(ax):
    """Those of states; entries and exits are smaller."""
    return [p for p in ax.patches if type(p).__name__ == "Circle" and p.get_radius() > DOOR]


def numbers(ax):
    return sorted(float(w) for w in words(ax) if w.startswith(".") or w in ("1",))


def test_every_arrow_has_its_probability():
    h = lk.HMM([0.75, 0.25], [[0.6, 0.15], [0.0, 0.68]], lk.Gaussian([[10.0], [20.0]], 1.0), final=[0.25, 0.32])
    ax = plot_transition_graph(h, names=["calm", "storm"])
    ax.figure.canvas.draw()
    assert numbers(ax) == [0.15, 0.25, 0.25, 0.32, 0.6, 0.68, 0.75]
    assert {"calm", "storm", "10", "20"} <= set(words(ax)) and "in a line" in ax.get_title(loc="left")


def test_what_goes_back_is_drawn_in_a_circle_and_null_states_are_marked(model):
    assert "in a circle" in plot_transition_graph(model).get_title(loc="left")
    null = lk.HMM(
        [1, 0, 0], [[0.5, 0, 0.5], [0, 0.6, 0], [0, 1, 0]], lk.Gaussian([[0.0], [3.0]], 1.0), final=[0, 0.4, 0]
    )
    ax = plot_transition_graph(null)
    assert "2 states, 1 null, in a line" in ax.get_title(loc="left")
    edges = [p.get_linestyle() for p in circles(ax)]
    assert len(edges) == 3 and len({str(e) for e in edges}) == 2


def middles(ax):
    """Where the numbers of moves stand: those without an offset."""
    return np.array([t.xy for t in ax.texts if hasattr(t, "xyann") and t.xyann == (0.0, 0.0)])


@pytest.mark.parametrize("states", [5, 8, 12, 20])
def test_dense_chains_show_what_is_probable(rng, states):
    moves = 0.5 * rng.dirichlet(np.full(states, 0.6), states) + 0.5 * np.eye(states)
    ax = plot_transition_graph(
        lk.HMM(np.full(states, 1 / states), moves, lk.Gaussian(rng.normal(size=(states, 1)), 1.0))
    )
    least = arrow_threshold(moves)
    between = moves[~np.eye(states, dtype=bool)]
    assert least > LEAST and (between >= least).sum() == ARROWS * states
    assert f"below {least:.2g} left out" in ax.get_title(loc="left")
    at = middles(ax)
    assert len(at) > 5 and (np.hypot(*(at[:, None] - at[None]).T) + np.eye(len(at)) > ROOM).all()


def test_arrows_do_not_touch_the_exit_and_small_chains_fill_their_figure(model):
    h = lk.HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 0.7]], lk.Gaussian([[0.0], [5.0]], 1.0), final=[0.0, 0.3])
    ax = plot_transition_graph(h)
    ax.figure.canvas.draw()
    exits = [
        p for p in ax.patches if type(p).__name__ == "Circle" and p.get_radius() < 0.1 and p.get_facecolor()[0] == 1
    ]
    (leave,) = exits
    box = leave.get_window_extent()
    arrows = [p.get_window_extent() for p in ax.patches if type(p).__name__ == "FancyArrowPatch"]
    assert not any(box.overlaps(arrow) for arrow in arrows)
    assert not any(box.overlaps(t.get_window_extent()) for t in ax.texts)
    wide, tall = plot_transition_graph(model).figure.get_size_inches()
    assert wide > 1.6 * tall


def test_layers_are_longest_ways():
    assert layers(lk.hmm.Topology.steps(4, (0, 1, 2)).transition).tolist() == [0, 1, 2, 3]
    assert layers(lk.hmm.Topology.parallel(4, 2).transition).tolist() == [0, 1, 0, 1]
    assert layers(lk.hmm.Topology.ergodic(3).transition) is None
    assert layers(np.ones((1, 1))).tolist() == [0]


@pytest.mark.some_cases(7)
@pytest.mark.parametrize("topology", ["ergodic", "left-to-right", "cyclic", "parallel", (0, 1, 2)])
@pytest.mark.parametrize("states", [1, 2, 7])
def test_all_topologies_can_be_drawn(rng, topology, states):
    t = lk.hmm.Topology.of(topology, states)
    starts, moves, ends = t.probabilities()
    h = lk.HMM(starts, moves, lk.Gaussian(rng.normal(size=(states, 3)), 1.0), final=ends)
    ax = plot_transition_graph(h)
    ax.figure.canvas.draw()
    assert len(circles(ax)) == states


def test_a_stack_and_too_many_states_are_refused(rng):
    starts, moves, _ = lk.hmm.Topology.ergodic(MOST + 1).probabilities()
    with pytest.raises(DomainError, match="at most 40"):
        plot_transition_graph(lk.HMM(starts, moves, lk.Gaussian(rng.normal(size=(MOST + 1, 1)), 1.0)))
    two = lk.HMM([[1.0], [1.0]], [[[1.0]], [[1.0]]], lk.Gaussian([[0.0], [1.0]], 1.0))
    with pytest.raises(DomainError, match="member"):
        plot_transition_graph(two)

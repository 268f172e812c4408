"""Pictures of a warping show its path and what it joins."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from likely.alignment.dtw import dtw
from likely.core.errors import ShapeError
from likely.plots.warping_plot import MATCHES, plot_alignment, plot_warping_path

A, B = [1, 0, 1, 2, 1], [1, 0, 2, 1]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_path_is_on_the_image():
    w = dtw(A, B, band=1)
    ax = plot_warping_path(A, B, w)
    (line,) = ax.lines
    assert np.column_stack(line.get_data()).tolist() == w.path[:, ::-1].tolist()
    image = ax.images[0].get_array()
    assert image.shape == (5, 4) and (image.mask == np.isinf(w.costs)).all() and image[4, 3] == w.total


def test_matches_are_joined(rng):
    w = dtw(A, B)
    lines = plot_alignment(A, B, w).collections[0].get_segments()
    assert [(s[0][0], s[1][0]) for s in lines] == [tuple(p) for p in w.path.tolist()]
    long = rng.normal(size=(2, 300))
    assert len(plot_alignment(*long, dtw(*long)).collections[0].get_segments()) == MATCHES


@pytest.mark.slow
def test_several_columns_missing_values_and_given_axes(rng):
    a, b = rng.normal(size=(20, 2)), rng.normal(size=(15, 2))
    a[3] = np.nan
    _, ax = plt.subplots()
    assert plot_warping_path(a, b, dtw(a, b), ax) is ax
    assert "column 1 of 2" in plot_alignment(a, b, dtw(a, b), column=1).get_title(loc="left")
    assert "column" not in plot_alignment(A, B, dtw(A, B)).get_title(loc="left")
    ax.figure.canvas.draw()


def test_other_series_are_refused():
    with pytest.raises(ShapeError, match="that was warped"):
        plot_warping_path(B, A, dtw(A, B))
    with pytest.raises(ShapeError, match="column"):
        plot_alignment(A, B, dtw(A, B), column=1)

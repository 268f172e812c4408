"""A picture of an utterance shows its words where they were heard."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from likely.language.transcript import Transcript
from likely.plots.word_plot import plot_word_segments

HEARD = Transcript(("one", "two"), np.array([0, 9]), np.array([7, 20]), -31.5, np.array([0.99, 0.8]))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_bars_stand_where_words_were_heard():
    ax = plot_word_segments(HEARD)
    boxes = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in ax.patches]
    assert boxes == [(0, 7, 0.99), (9, 11, 0.8)]
    assert [text.get_text() for text in ax.texts] == ["one", "two"]


@pytest.mark.parametrize("columns", [1, 12])
def test_frames_stand_below_where_nothing_covers_them(columns, rng):
    ax = plot_word_segments(HEARD, rng.normal(size=(22, columns)))
    (below,) = [other for other in ax.figure.axes if other is not ax]
    assert ax.get_xlim() == below.get_xlim() == (0, 22)
    assert below.get_position().y1 <= ax.get_position().y0 and bool(below.images) == (columns == 12)
    marks = {float(line.get_xdata()[0]) for line in below.lines if len(line.get_xdata()) == 2}
    assert marks == {0, 7, 9, 20}


@pytest.mark.parametrize("columns", [1, 12])
def test_on_one_axes_frames_lie_behind(columns, rng):
    _, own = plt.subplots()
    ax = plot_word_segments(HEARD, rng.normal(size=(22, columns)), own)
    (back,) = [other for other in ax.figure.axes if other is not ax]
    assert ax is own and back.get_zorder() < ax.get_zorder()
    assert all(image.get_alpha() < 0.3 for image in back.images) and bool(back.lines) == (columns == 1)


def test_words_without_confidence():
    ax = plot_word_segments(Transcript(("one",), np.array([3]), np.array([5]), -2.0))
    assert [bar.get_height() for bar in ax.patches] == [1.0]


def test_words_that_are_numbers():
    ax = plot_word_segments(Transcript((3,), np.array([3]), np.array([5]), -2.0))
    assert [text.get_text() for text in ax.texts] == ["3"]

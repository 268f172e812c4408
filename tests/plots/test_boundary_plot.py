"""A border is drawn where it is."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
from likely.plots.boundary_plot import plot_decision_boundary


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_curve_lies_on_the_border_and_regions_beside_it():
    found = lk.decision_boundary(lk.Gaussian([0.0, 0.0], [1.0, 4.0]), lk.Gaussian([2.0, 1.0], [4.0, 1.0]))
    ax = plot_decision_boundary(found, window=((-6, 6), (-6, 6)), names=("a", "b"))
    drawn = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) == 400]
    assert len(drawn) >= 2 and all(np.abs(found.value(line)).max() < 1e-9 for line in drawn)
    assert ax.get_title(loc="left") == "Hyperbola" and len(ax.collections) == 2
    assert ax.get_legend_handles_labels()[1] == ["a", "b"]


def test_one_class_everywhere_can_be_drawn():
    ax = plot_decision_boundary(
        lk.decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([0.0, 0.0], 2.0), class_prior=[0.01, 0.99])
    )
    assert ax.get_title(loc="left") == "No boundary" and len(ax.collections) == 1


def test_more_columns_are_refused():
    with pytest.raises(lk.DomainError, match="two columns"):
        plot_decision_boundary(lk.decision_boundary(lk.Gaussian([0.0] * 3, 1.0), lk.Gaussian([1.0] * 3, 1.0)))

"""Maps show what is decided, whoever decides."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

import likely as lk
from likely.plots.decision_regions import _fixed, _plane, plot_decision_regions

NAMES = np.array(["a", "b", "c"], dtype=object)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, NAMES[y]


def plane_of(clf, X, columns, steps, at=None, **how):
    return _plane(clf, X, np.asarray(X, dtype=float), columns, _fixed(clf, np.asarray(X, dtype=float), at), steps, how)


def test_the_map_is_what_is_decided(iris):
    X, y = iris[0][:, 2:], iris[1]
    clf = lk.BayesClassifier().fit(X, y)
    plane = plane_of(clf, X, (0, 1), 40, reject_below=0.9, novelty=0.05)
    assert set(np.unique(plane.region)) == {-2, -1, 0, 1, 2}
    at = np.array([[plane.xs[j], plane.ys[i]] for i, j in ((0, 0), (20, 20), (30, 35), (5, 3))])
    decided = clf.decide(at, reject_below=0.9, novelty=0.05)
    shown = [plane.region[i, j] for i, j in ((0, 0), (20, 20), (30, 35), (5, 3))]
    assert shown == [d.code if d in (lk.REJECT, lk.NOVEL) else list(NAMES).index(d) for d in decided]
    ax = plot_decision_regions(clf, X, y, steps=40, reject_below=0.9, novelty=0.05)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "c", "rejected", "novel"]


def test_exact_borders_are_where_two_classes_meet(iris):
    X, y = iris[0][:, 2:], iris[1]
    clf = lk.BayesClassifier().fit(X, y)
    lines = [line.get_xydata() for line in plot_decision_regions(clf, X, steps=30).lines]
    points = np.concatenate([line[np.isfinite(line).all(axis=1)] for line in lines])
    top = np.sort(clf.predict_proba(points), axis=1)
    np.testing.assert_allclose(top[:, -1], top[:, -2], atol=1e-6)
    assert len(points) > 100
    assert not plot_decision_regions(clf, X, steps=30, exact=False).lines


def test_costs_move_the_exact_border(iris):
    X, y = iris[0][50:, 2:], iris[1][50:]
    clf = lk.BayesClassifier().fit(X, y)
    dear = plot_decision_regions(clf, X, steps=30, cost=[[0, 9], [1, 0]]).lines
    P = clf.predict_proba(dear[0].get_xydata())
    np.testing.assert_allclose(P[:, 0], 9 * P[:, 1], rtol=1e-6)


def test_other_columns_are_left_out_or_fixed(iris):
    X, y = iris
    clf = lk.BayesClassifier().fit(X, y)
    out = plane_of(clf, X, (2, 3), 12)
    alone = lk.Mixture(clf.model_.weights, clf.model_.components.marginal([2, 3]))
    grid = np.stack([part.ravel() for part in np.meshgrid(out.xs, out.ys)], axis=1)
    np.testing.assert_array_equal(out.region.ravel(), alone.log_posterior(grid).argmax(axis=1))
    fixed = plane_of(clf, X, (2, 3), 12, at="median")
    rows = np.tile(np.median(X, axis=0), (144, 1))
    rows[:, 2:] = grid
    np.testing.assert_array_equal(NAMES[fixed.region.ravel()], clf.predict(rows))
    given = plane_of(clf, X, (2, 3), 12, at=np.median(X, axis=0))
    np.testing.assert_array_equal(given.region, fixed.region)


def test_foreign_classifiers_and_frames(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=["one", "two", "three", "four"])
    with np.errstate(all="raise"):
        forest = RandomForestClassifier(5, random_state=0).fit(frame, y)
        ax = plot_decision_regions(forest, frame, y, columns=(3, 0), steps=12, reject_below=0.7)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("four", "one")
    near = KNeighborsClassifier(3).fit(X, y)
    plane = plane_of(near, X, (0, 1), 10)
    rows = np.tile(np.median(X, axis=0), (100, 1))
    rows[:, 0], rows[:, 1] = (part.ravel() for part in np.meshgrid(plane.xs, plane.ys))
    np.testing.assert_array_equal(NAMES[plane.region.ravel()], near.predict(rows))
    with pytest.raises(lk.DomainError, match="novelty"):
        plot_decision_regions(near, X, novelty=0.1)


def test_further_actions_have_a_place_and_a_name(iris):
    X, y = iris[0][:, 2:], iris[1]
    clf = lk.BayesClassifier().fit(X, y)
    cost = lk.Cost([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.1, 0.1, 0.1]], actions=["ask"])
    ax = plot_decision_regions(clf, X, y, steps=40, cost=cost)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "c", "ask"]


def test_ten_classes_carry_their_names(rng):
    X = np.concatenate([rng.normal(size=(30, 2)) + 8 * np.array([k % 4, k // 4]) for k in range(10)])
    y = np.repeat(np.arange(10), 30)
    ax = plot_decision_regions(lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, y), X, y, steps=60)
    assert {t.get_text() for t in ax.texts} == {str(k) for k in range(10)}


@pytest.mark.filterwarnings("ignore:.*is constant")
def test_missing_values_and_flat_columns_can_be_drawn(rng):
    X = rng.normal(size=(40, 3))
    y = X[:, 0] > 0
    X[::5, 1], X[:, 2] = np.nan, 7.0
    clf = lk.NaiveBayes().fit(X, y)
    plot_decision_regions(clf, X, y, steps=12)
    plot_decision_regions(clf, X, y, columns=(0, 2), steps=12)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"columns": (0, 7)}, "columns 0 and 7"),
        ({"columns": (-1, 0)}, "columns -1 and 0"),
        ({"columns": (1, 1)}, "two different columns"),
        ({"at": "mean"}, "median"),
        ({"at": [1.0]}, "one row of 2"),
    ],
)
def test_refusals(iris, how, words):
    X, y = iris[0][:, 2:], iris[1]
    with pytest.raises(lk.LikelyError, match=words):
        plot_decision_regions(lk.BayesClassifier().fit(X, y), X, steps=10, **how)


def test_a_row_of_numbers_for_the_other_columns_and_questions_that_make_no_sense():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + np.repeat([[0.0], [2.0]], 30, axis=0)
    y = np.repeat([0, 1], 30)
    clf = lk.BayesClassifier().fit(X, y)
    assert plot_decision_regions(clf, X, y, at=np.zeros(3), steps=20).get_xlabel() == "x0"
    for how in ({"steps": 30.5}, {"columns": (0, "a")}, {"columns": (0,)}, {"at": ["a", "b", "c"]}):
        with pytest.raises(lk.LikelyError, match="plot_decision_regions"):
            plot_decision_regions(clf, X, y, **how)

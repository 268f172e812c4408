"""Errors against rows and columns: by hand, and the shapes that theory promises."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import likely as lk
from likely.metrics.confidence_intervals import proportion_interval
from likely.model_selection.cross_validation import evaluate
from likely.model_selection.learning_curves import hughes_curve, learning_curve

X, Y = load_iris(return_X_y=True)


def test_the_last_point_is_the_plain_evaluation():
    rows, whole = learning_curve(GaussianNB(), X, Y, sizes=[0.5, 1.0]), evaluate(GaussianNB(), X, Y)
    assert rows.at.tolist() == [60, 120]
    assert (rows.test_error[-1], rows.test_low[-1], rows.test_high[-1]) == pytest.approx(tuple(whole.error))
    columns = hughes_curve(GaussianNB(), X, Y)
    assert columns.at.tolist() == [1, 2, 4]
    assert columns.test_error[-1] == pytest.approx(whole.error.value)
    folds = [np.mean((whole.predicted != whole.truth)[whole.fold == k]) for k in range(5)]
    np.testing.assert_allclose(rows.fold_error[-1], folds)


def test_more_rows_help_and_training_flatters():
    rows, labels = load_digits(return_X_y=True)
    curve = learning_curve(LinearDiscriminantAnalysis(), rows[:900], labels[:900], sizes=[60, 200, 600], cv=3)
    assert (np.diff(curve.test_error) < 0).all()
    assert (curve.train_error < curve.test_error).all()
    assert (curve.test_low < curve.test_error).all() and (curve.test_error < curve.test_high).all()


def test_training_intervals_go_by_one_training_set():
    curve = learning_curve(GaussianNB(), X, Y, sizes=[90])
    _, low, high = proportion_interval(curve.train_error[0] * 90, 90)
    np.testing.assert_allclose([curve.train_low[0], curve.train_high[0]], [low, high], rtol=1e-9)


def test_small_samples_hold_every_class(rng):
    rows, labels = rng.normal(size=(200, 2)), (np.arange(200) < 4).astype(int)
    curve = learning_curve(GaussianNB(), rows, labels, sizes=[4])
    assert np.isfinite(curve.test_error).all()


def test_columns_beyond_the_informative_ones_hurt(rng):
    """Hughes: with rows given, noise columns raise the test error while the training error falls."""
    labels = np.arange(80) % 2
    rows = rng.normal(size=(80, 64))
    rows[:, :3] += 1.2 * labels[:, None]
    curve = hughes_curve(LinearDiscriminantAnalysis(), rows, labels, columns_order="given", dims=[1, 3, 48])
    assert curve.best == 3
    assert curve.train_error[2] < curve.train_error[0] < curve.test_error[2]


@pytest.mark.slow
def test_ranking_finds_the_informative_columns_without_a_look_at_test_rows(rng):
    labels = np.arange(300) % 3
    rows = rng.normal(size=(300, 20))
    rows[:, 13] += 4 * labels
    rows[5, 13] = np.nan
    ranked = hughes_curve(lk.NaiveBayes(), rows, labels, dims=[1])
    assert ranked.test_error[0] < 0.1
    assert hughes_curve(lk.NaiveBayes(), rows, labels, columns_order="given", dims=[1]).test_error[0] > 0.5
    noise = rng.normal(size=(60, 500))
    honest = hughes_curve(GaussianNB(), noise, np.arange(60) % 2, dims=[5])
    assert honest.train_error[0] < 0.35 < honest.test_error[0]  # chosen on all rows, the test error would be low too


@pytest.mark.slow
def test_columns_are_named_or_random():
    frame = pd.DataFrame(X, columns=list("abcd"))
    a = hughes_curve(GaussianNB(), frame, Y, columns_order=["c", "a"])
    b = hughes_curve(GaussianNB(), X, Y, columns_order=[2, 0])
    assert a.at.tolist() == [1, 2]
    np.testing.assert_array_equal(a.test_error, b.test_error)
    random = [hughes_curve(GaussianNB(), frame, Y, columns_order="random", random_state=s) for s in (0, 0, 1)]
    assert (random[0].test_error == random[1].test_error).all()
    assert (random[0].test_error[:2] != random[2].test_error[:2]).any()


def test_weights_are_copies(rng):
    w = rng.integers(0, 4, 150)
    again = np.repeat(np.arange(150), w)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    a = hughes_curve(tree, X, Y, sample_weight=w)
    b = hughes_curve(tree, X[again], Y[again])
    np.testing.assert_allclose(a.test_error, b.test_error)
    np.testing.assert_allclose(a.test_high, b.test_high)


def test_a_curve_prints_as_a_table_and_is_plain_json():
    curve = learning_curve(GaussianNB(), X, Y)
    lines = str(curve).splitlines()
    assert len(lines) == 2 + len(curve.at) and "test error" in lines[0]
    assert len({len(line) for line in lines}) == 1
    assert json.loads(json.dumps(curve.as_dict()))["at"] == curve.at.tolist()


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (lambda: learning_curve(GaussianNB(), X, Y, sizes=[1000]), "1 … 120"),
        (lambda: learning_curve(GaussianNB(), X, Y, sizes=[]), "sizes"),
        (lambda: hughes_curve(GaussianNB(), X, Y, dims=[5]), "1 … 4"),
        (lambda: hughes_curve(GaussianNB(), X, Y, columns_order="best"), "ranked"),
        (lambda: hughes_curve(GaussianNB(), X, Y, columns_order=[7]), "7"),
        (lambda: hughes_curve(GaussianNB(), pd.DataFrame({"k": ["u", "v"] * 75}), Y), "'k'"),
    ],
)
def test_bad_input_is_named(run, word):
    with pytest.raises(lk.LikelyError, match=word):
        run()

"""Units are ours to choose, for regressions too: each, and the maps of X under which predictions stay.

| regression | maps of X |
|---|---|
| least squares | invertible affine maps |
| automatic relevance determination | a scale and a shift of each column |
| evidence, ridge by evidence | rotations, one scale, shifts |
| ridge by leave-one-out | the same; ridge with a given penalty: rotations and shifts |

Under y → a y + b predictions change as y does, and standard deviations by |a|. At an offset of 1e8 predictions are
right to the rounding of what they are made of.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")
FREE = {
    "least squares": lk.LinearRegression(),
    "relevance": lk.BayesianLinearRegression(prior="ard"),
    "evidence": lk.BayesianLinearRegression(),
    "ridge by evidence": lk.Ridge("evidence"),
    "ridge by leave-one-out": lk.Ridge("leave-one-out"),
}
ALL = {**FREE, "ridge": lk.Ridge(3.0)}
SCALES = [2.0**-332, 1.0, 2.0**332]  # 1e-100 and 1e100, of which no digit is rounded
SLACK = {"relevance": 1e-5}  # ends where the evidence has 10 digits: coefficients have half of them


def table():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.0]]) + [0.0, 1.0, -2.0]
    return X, 2.0 + X @ [1.0, 0.0, -0.5] + 0.4 * rng.standard_normal(60)


def answers(estimator, X, y):
    m = clone(estimator).fit(X, y)
    return m.predict(X, return_std=True)


def same(found, wanted, name, size=1.0):
    slack = SLACK.get(name, 1e-9)
    for a, b in zip(found, wanted, strict=True):
        assert np.abs(a - b).max() <= slack * size * np.abs(wanted[1]).max()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ALL)
def test_units_and_offsets_of_the_target(name, scale):
    X, y = table()
    mean, std = answers(ALL[name], X, y)
    found = answers(ALL[name], X, scale * y)
    same((found[0] / scale, found[1] / scale), (mean, std), name)
    shifted = answers(ALL[name], X, -y + 1e8)
    same((1e8 - shifted[0], shifted[1]), (mean, std), name, 1e4)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FREE)
def test_one_scale_of_all_columns(name, scale):
    X, y = table()
    same(answers(FREE[name], scale * X, y), answers(FREE[name], X, y), name)


@pytest.mark.parametrize("name", ALL)
def test_rotations_and_shifts(name):
    if name == "relevance":  # knows its axes
        return
    X, y = table()
    turn = np.linalg.qr(np.random.default_rng(6).standard_normal((3, 3)))[0]
    same(answers(ALL[name], X @ turn + [5.0, -3.0, 1e3], y), answers(ALL[name], X, y), name)


@pytest.mark.parametrize("name", ["least squares", "relevance"])
def test_scales_of_single_columns(name):
    X, y = table()
    same(answers(FREE[name], X * [2.0**-200, 1.0, 2.0**150], y), answers(FREE[name], X, y), name)


def test_least_squares_takes_any_affine_map():
    X, y = table()
    A = np.random.default_rng(7).standard_normal((3, 3))
    same(answers(lk.LinearRegression(), X @ A + 7.0, y), answers(lk.LinearRegression(), X, y), "least squares")


@pytest.mark.parametrize("name", ALL)
def test_the_order_of_rows_and_columns_does_not_matter(name):
    X, y = table()
    order = np.random.default_rng(8).permutation(60)
    mean, std = answers(ALL[name], X[order][:, [2, 0, 1]], y[order])
    wanted = answers(ALL[name], X, y)
    same((mean, std), (wanted[0][order], wanted[1][order]), name)

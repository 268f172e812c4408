"""Our constraints accept what scikit-learn's do."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import KFold
from sklearn.utils._param_validation import make_constraint

import likely as lk
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions, for_scikit_learn, is_allowed

CONSTRAINTS = [
    *(Interval(Real, 0, 1, closed=closed) for closed in ("left", "right", "both", "neither")),
    Interval(Integral, 1, None, closed="left"), Interval(Real, None, None, closed="neither"),
    Interval(Real, 0, None, closed="neither"), StrOptions({"a", "weak"}), HasMethods(["fit", "predict"]),
    HasMethods(["fit"], "an estimator"), "array-like", "boolean", "random_state", "cv_object", callable, None, dict,
]  # fmt: skip
VALUES = [
    0, 1, -1, 2, 0.0, 0.5, 1.0, 1.5, -0.5, np.nan, np.inf, -np.inf, True, False, np.True_, np.float32(0.5), np.int64(1),
    2**32 - 1, 2**32, "a", "b", "", None, [], [1, 2], (1,), {}, {"a": 1}, np.zeros(2), np.array(3.0),
    pd.Series([1.0]), csr_array((2, 2)), np.random.RandomState(0), np.random.default_rng(0), KFold(3), iter([1]), len,
    lk.BayesClassifier, lk.BayesClassifier(), lk.GaussianDensity(), 1j, object(),
]  # fmt: skip


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_the_same_values_are_allowed(constraint):
    theirs = make_constraint(for_scikit_learn({"x": [constraint]})["x"][0])
    for value in VALUES:
        assert is_allowed(value, [constraint]) == bool(theirs.is_satisfied_by(value)), repr(value)


def test_a_parameter_without_validation_takes_anything():
    assert all(is_allowed(value, "no_validation") for value in VALUES)
    assert for_scikit_learn({"x": "no_validation"}) == {"x": "no_validation"}


def test_the_message_is_that_of_scikit_learn():
    with pytest.raises(ValueError, match=r"'max_iter' parameter of GaussianDensity must be an int in the range \[1"):
        lk.GaussianDensity(max_iter=0).fit([[0.0], [1.0]])
    with pytest.raises(TypeError, match=r"must be an estimator of densities \(such as GaussianDensity\(\)\) or None"):
        lk.BayesClassifier(3).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="max_iter must be a number"):
        lk.GaussianDensity(max_iter=True).fit([[0.0], [1.0]])

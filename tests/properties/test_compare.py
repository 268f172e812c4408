"""How statistics are compared: sums of terms that cancel, relative to the sizes of these terms."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Gaussian, StudentT
from likely.distributions import Bijector, Transformed
from tests.properties.compare import gap
from tests.properties.stats import EXACT


def of_student_t():
    """Two rows with log r of both signs, and weights with which ½ Σ w o log r is almost 0."""
    model, x = StudentT([0.0, 0.0], np.eye(2), 5.0), np.array([[0.1, 0.0], [4.0, 1.0]])
    near, far = (float(model.collect(x[i : i + 1]).level) for i in (0, 1))
    assert near > 0 > far
    return model, model.collect(x, [-far, near * (1 + 1e-6)]), "level"


def of_a_transform():
    """Columns stretched and shrunk by the same factor: log |det| of rows with either column missing is ± log 3."""
    model = Transformed(Gaussian([0.0, 0.0], np.eye(2)), Bijector.affine([3.0, 1 / 3]))
    x = np.random.default_rng(0).normal(size=(30, 2))
    x[:15, 0] = x[15:, 1] = np.nan
    return model, model.collect(x), "slope"


@pytest.mark.parametrize("make", [of_student_t, of_a_transform])
def test_rounding_of_terms_that_cancel_is_no_difference(make):
    model, stats, name = make()
    value = getattr(stats, name)
    assert abs(value) < 1e-5
    assert gap(stats, stats.replace(**{name: value + 1e-15}), model) <= EXACT
    assert gap(stats, stats.replace(**{name: value + 1e-10}), model) > EXACT

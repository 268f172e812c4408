from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import likely as lk
from likely.distributions.univariate.triangular import STEEPEST


@pytest.mark.parametrize("mode", [0.0, 0.1, 1.0, 2.0, 3.5, 4.0])
def test_moments_lead_back_to_the_triangle(mode):
    mean, variance, skewness = (float(part) for part in st.triang(mode / 4, -1.0, 4.0).stats(moments="mvs"))
    found = lk.distributions.Triangular.from_moments(mean, variance, skewness)
    assert [*found.low, *found.mode, *found.high] == pytest.approx([-1.0, mode - 1.0, 3.0], abs=1e-6)


def test_rows_and_the_distribution_have_the_same_moments(rng):
    x = lk.distributions.Triangular([0.0, 2.0], [1.0, 4.0], [4.0, 7.0]).sample(3000, rng)
    x[::9, 0] = np.nan
    found = lk.estimate(lk.distributions.Triangular, x, "moments")
    for j in range(2):
        column = x[~np.isnan(x[:, j]), j]
        one = found.marginal([j])
        distribution = st.triang(
            float((one.mode - one.low)[0] / (one.high - one.low)[0]), one.low[0], (one.high - one.low)[0]
        )
        assert distribution.stats(moments="mvs") == pytest.approx(
            [column.mean(), column.var(), st.skew(column)], abs=1e-9
        )


def test_a_weight_is_a_repetition():
    x, times = np.array([0.0, 1.0, 1.5, 3.0, 9.0]), np.array([1.0, 3.0, 2.0, 2.0, 0.0])
    one = lk.distributions.Triangular.moments_fit(x, weight=times)
    many = lk.distributions.Triangular.moments_fit(np.repeat(x, times.astype(int)))
    assert [*one.low, *one.mode, *one.high] == pytest.approx([*many.low, *many.mode, *many.high])


@pytest.mark.parametrize("known", [{"low": 0.0}, {"high": 4.0}, {"low": 0.0, "high": 4.0}])
def test_known_ends_stay(known, rng):
    x = lk.distributions.Triangular(0.0, 1.0, 4.0).sample(4000, rng)
    found = lk.distributions.Triangular.moments_fit(x, **known)
    assert all(getattr(found, name) == end for name, end in known.items())
    assert found.mean == pytest.approx([x.mean()], rel=1e-12)
    if len(known) == 1:
        assert found.variance == pytest.approx([x.var()], rel=1e-9)
    again = lk.estimate(found, x, "moments")  # a value passes on what it knows
    assert (again.known, again.mode) == (found.known, found.mode)


def test_what_no_triangle_has_is_reported_or_refused():
    with pytest.warns(lk.FitWarning, match="column 0 is more skewed than any triangular distribution"):
        found = lk.distributions.Triangular.moments_fit([0.0, 0.0, 0.0, 0.0, 9.0])
    assert found.mode == pytest.approx(found.low, abs=1e-6)
    with pytest.raises(lk.DataError, match="column 0 is constant"):
        lk.distributions.Triangular.moments_fit([2.0, 2.0])
    with pytest.raises(lk.DomainError, match="skewness lie within"):
        lk.distributions.Triangular.from_moments(0.0, 1.0, 1.1 * STEEPEST)


def test_the_median_of_levels_is_by_their_numbers():
    assert lk.Categorical([0.2, 0.8], levels=[7.0, 3.0]).median == 3.0
    assert lk.Categorical([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]).median.tolist() == [1, 0]
    with pytest.raises(lk.DomainError, match=r"Categorical\.median: levels must be numbers"):
        _ = lk.Categorical([0.2, 0.8], levels=["low", "high"]).median


@pytest.mark.parametrize(
    ("known", "value"), [({"low": 1.5}, "1.0"), ({"high": 2.5}, "3.0"), ({"low": 0, "high": 2}, "3.0")]
)
def test_moments_refuse_rows_beyond_known_ends_as_fit_does(known, value):
    x = [1.0, 2.0, 2.0, 3.0]
    for verb in (lk.distributions.Triangular.fit, lk.distributions.Triangular.moments_fit):
        with pytest.raises(lk.DataError, match=rf"within the known ends.*{value} at row"):
            verb(x, **known)
    weight = [float(v not in (1.0, 3.0)) + 0.1 * (v == 2.0) for v in x]
    with pytest.raises(lk.DataError, match="needs a variance above 0"):  # rows that do not count are not there
        lk.distributions.Triangular.moments_fit(x, weight=weight, **known)


def test_options_that_nobody_reads_are_refused():
    with pytest.raises(lk.DomainError, match="no options but low and high are known, got lowest"):
        lk.distributions.Triangular.moments_fit([1.0, 2.0, 4.0], lowest=0.0)
    with pytest.raises(lk.DomainError, match="no options, got robust"):
        lk.Laplace.moments_fit([1.0, 2.0, 4.0], robust=True)

"""Distances against χ²: SciPy's tests, gaps, copies, and what the sentence says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics.confidence_intervals import proportion_interval
from likely.metrics.goodness_of_fit import mahalanobis_goodness_of_fit, shell_volume_fraction


def distances(n=500, dim=4, seed=0):
    return np.random.default_rng(seed).chisquare(dim, n)


def test_kolmogorov_agrees_with_scipy():
    d2 = distances() * 1.1
    theirs = scipy.stats.kstest(d2, "chi2", args=(4,))
    ours = mahalanobis_goodness_of_fit(d2, 4).kolmogorov
    assert ours.value == pytest.approx(theirs.statistic, abs=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=0.03)


def test_anderson_and_darling_by_their_sum():
    d2 = np.sort(distances(80)) * 0.9
    u, v = scipy.stats.chi2.cdf(d2, 4), scipy.stats.chi2.sf(d2, 4)
    i = np.arange(1, 81)
    statistic = -80 - ((2 * i - 1) * (np.log(u) + np.log(v[::-1]))).sum() / 80
    assert mahalanobis_goodness_of_fit(d2, 4).anderson.value == pytest.approx(statistic, rel=1e-10)


@pytest.mark.parametrize(("a", "p"), [(1.933, 0.10), (2.492, 0.05), (3.070, 0.025), (3.878, 0.01), (0.7744, 0.5)])
def test_tail_of_anderson_and_darling_as_tabulated(a, p):
    from likely.metrics.goodness_of_fit import _anderson_tail

    assert _anderson_tail(a) == pytest.approx(p, rel=0.01)


def test_tests_keep_their_level():
    found = [mahalanobis_goodness_of_fit(distances(60, seed=s), 4) for s in range(400)]
    for name in ("kolmogorov", "anderson"):
        assert 0.06 < np.mean([getattr(c, name).p_value < 0.1 for c in found]) < 0.15


def test_rows_with_missing_values_have_their_own_dimension():
    rng = np.random.default_rng(1)
    dims = rng.integers(0, 7, 3000)
    d2 = np.where(dims > 0, rng.chisquare(np.maximum(dims, 1)), 0.0)
    check = mahalanobis_goodness_of_fit(d2, dims)
    assert check.kolmogorov.p_value > 0.01 and check.anderson.p_value > 0.01
    assert check.dim == 6 and check.rows == (dims > 0).sum()
    assert mahalanobis_goodness_of_fit(d2, 3).kolmogorov.p_value < 1e-6
    np.testing.assert_allclose(check.observed[20:180], check.expected[20:180], rtol=0.15)


def test_integer_weights_are_copies():
    d2, w = distances(60), np.random.default_rng(2).integers(0, 4, 60)
    ours, copies = mahalanobis_goodness_of_fit(d2, 4, w), mahalanobis_goodness_of_fit(np.repeat(d2, w), 4)
    np.testing.assert_allclose(ours.kolmogorov, copies.kolmogorov)
    np.testing.assert_allclose(ours.anderson, copies.anderson)
    assert ours.beyond == copies.beyond


def test_share_beyond_and_quantiles():
    d2 = distances(5000)
    check = mahalanobis_goodness_of_fit(d2, 4)
    assert check.beyond == proportion_interval((d2 > scipy.stats.chi2.ppf(0.99, 4)).sum(), 5000)
    assert check.observed[-1] == d2.max() and len(check.observed) == 200
    np.testing.assert_allclose(check.expected[-1], scipy.stats.chi2.isf(0.5 / 5000, 4))


def test_the_sentence_names_what_is_wrong():
    rng = np.random.default_rng(3)
    assert "agree with χ²" in mahalanobis_goodness_of_fit(distances(), 4).verdict
    heavy = (rng.standard_t(3, size=(2000, 4)) ** 2).sum(axis=1)
    assert "heavier than Gaussian" in mahalanobis_goodness_of_fit(heavy, 4).verdict
    box = (12 * (rng.random((2000, 4)) - 0.5) ** 2).sum(axis=1)
    assert "do not follow" in mahalanobis_goodness_of_fit(box, 4).verdict
    peaked = distances(2000) * rng.choice([0.3, 1.5], 2000, p=[0.6, 0.4])
    assert "heavier" in mahalanobis_goodness_of_fit(peaked, 4).verdict
    near = distances(2000) * 0.7
    assert "nearer" in mahalanobis_goodness_of_fit(near, 4).verdict


def test_extreme_distances_stay_numbers():
    check = mahalanobis_goodness_of_fit([0.0, 1.0, 1e6, 3.0], [2, 3, 1, 3])
    numbers = [*check.kolmogorov, *check.anderson, *check.expected, *check.observed]
    assert np.isfinite(numbers).all()


def test_bad_input_is_named():
    with pytest.raises(DataError, match="row 1"):
        mahalanobis_goodness_of_fit([1.0, np.nan], 2)
    with pytest.raises(DataError, match="row 0"):
        mahalanobis_goodness_of_fit([-1.0, 1.0], 2)
    with pytest.raises(ShapeError, match="integer"):
        mahalanobis_goodness_of_fit([1.0, 1.0], 2.5)
    with pytest.raises(DataError, match="with an entry"):
        mahalanobis_goodness_of_fit([0.0], [0])
    with pytest.raises(ShapeError, match=r"\(n,\)"):
        mahalanobis_goodness_of_fit([[1.0]], 1)


def test_most_of_a_ball_is_its_shell():
    """Herbst 1.4: ε = 1/D gives 0.65132 at D = 10, 0.63397 at 100, and 1 − 1/e in the limit."""
    dims = np.array([10, 100, 10**9])
    np.testing.assert_allclose(shell_volume_fraction(dims, 1 / dims), [0.65132, 0.63397, 1 - np.exp(-1)], atol=5e-6)
    assert shell_volume_fraction(3, 1.0) == 1.0 and shell_volume_fraction(3, 0.0) == 0.0
    with pytest.raises(DomainError, match="eps"):
        shell_volume_fraction(3, 2.0)

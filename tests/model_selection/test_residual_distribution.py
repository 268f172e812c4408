"""Densities of held-out residuals: normalized, conformal coverage, one distribution."""

import numpy as np
import pytest
from scipy import stats

import likely as lk
from likely.model_selection.residual_distribution import (
    ResidualDistribution,
    ResidualPredictive,
    center_and_scale,
    with_residuals_of_others,
)

SHAPES = {
    "normal": stats.norm(), "heavy": stats.t(2.5), "skewed": stats.expon(), "two": stats.uniform(-1, 2),
}  # fmt: skip


@pytest.mark.parametrize("n", [1, 3, 30, 2000])
@pytest.mark.parametrize("shape", SHAPES)
def test_density_distribution_function_and_quantiles_agree(shape, n):
    z = ResidualDistribution.of(SHAPES[shape].rvs(n, random_state=0))
    x = np.concatenate([-np.geomspace(1e5, 1e-6, 60_000), np.geomspace(1e-6, 1e5, 60_000)]) + z.mean[0]
    density = np.exp(z.log_prob(x))
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-3)
    mass = np.concatenate([[0.0], np.cumsum(np.diff(x) * (density[1:] + density[:-1]) / 2)])
    np.testing.assert_allclose(z.cdf(x)[1000:-1000:997], mass[1000:-1000:997], atol=2e-3)
    p = np.array([1e-6, 0.01, 0.5, 0.9, 1 - 1e-6])
    np.testing.assert_allclose(z.cdf(z.quantile(p)), p, atol=1e-9)
    assert np.trapezoid(density * x, x) == pytest.approx(z.mean[0], abs=1e-2 * float(z.spread))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [20, 60, 400])
def test_intervals_have_their_coverage(shape, n):
    true = SHAPES[shape]
    held = []
    for seed in range(150):
        low, high = ResidualDistribution.of(true.rvs(n, random_state=seed)).quantile([0.05, 0.95])
        held.append(true.cdf(high) - true.cdf(low))
    assert 0.885 < np.mean(held) < 0.96


def test_a_mean_within_its_error_is_zero_and_a_bias_is_kept():
    z = np.random.default_rng(0).standard_normal(100)
    assert ResidualDistribution.of(z).mean[0] == pytest.approx(0.0, abs=1e-15)
    assert ResidualDistribution.of(z + 1.0).mean[0] == pytest.approx(z.mean() + 1.0)


def test_whole_weights_are_copies():
    z, w = np.random.default_rng(1).standard_normal(200), np.arange(200) % 4
    a, b = ResidualDistribution.of(z, w), ResidualDistribution.of(np.repeat(z, w))
    np.testing.assert_allclose(a.quantile([0.05, 0.5, 0.95]), b.quantile([0.05, 0.5, 0.95]), atol=0.02)
    assert float(a.rows) == float(b.rows)


def test_many_residuals_are_thinned_without_changing_quantiles():
    z = np.random.default_rng(2).standard_normal(50_000)
    found = ResidualDistribution.of(z)
    assert len(found.centers) == 500
    np.testing.assert_allclose(found.quantile([0.05, 0.95]), np.quantile(z, [0.05, 0.95]), atol=0.03)


def test_samples_follow_the_density():
    z = ResidualDistribution.of(np.random.default_rng(3).standard_normal(40))
    x = z.sample(20_000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(x, z.cdf).pvalue > 1e-3


def test_a_stack_moves_and_scales():
    z = ResidualDistribution.of(np.random.default_rng(4).standard_normal(50))
    p = ResidualPredictive([10.0, -5.0, 0.0], [1.0, 2.0, 0.5], z)
    y = np.array([11.0, -6.0, 0.2])
    np.testing.assert_allclose(p.log_prob_each(y), z.log_prob((y - p.center) / p.scale) - np.log(p.scale))
    np.testing.assert_allclose(np.diagonal(p.log_prob(y)), p.log_prob_each(y))
    np.testing.assert_allclose(p.quantile([0.1, 0.9]), p.center + np.outer(z.quantile([0.1, 0.9]), p.scale))
    assert p.take([1]).members == 1 and p.member(2).center[0] == 0.0
    from likely.io.model_files import dumps, loads

    np.testing.assert_array_equal(loads(dumps(z)).centers, z.centers)


def test_rows_are_scored_by_the_residuals_of_other_folds():
    rng = np.random.default_rng(5)
    y, fold = rng.standard_normal(60), np.arange(60) % 3
    e = with_residuals_of_others(np.zeros(60), np.ones(60), y, fold)
    own = ResidualDistribution.of(y[fold != 1]).log_prob(y[fold == 1])
    np.testing.assert_allclose(e.log_prob[fold == 1], own)


@pytest.mark.parametrize("bad", [[], [np.nan], [np.inf, 1.0]])
def test_bad_residuals_are_told(bad):
    with pytest.raises(lk.DataError, match="finite residuals"):
        ResidualDistribution.of(bad)


def test_predictions_that_are_not_finite_are_told():
    class Broken:
        def predict(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(lk.DataError, match="finite"):
        center_and_scale(Broken(), np.zeros((3, 1)))

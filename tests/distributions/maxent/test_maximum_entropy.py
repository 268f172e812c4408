"""Maximum entropy: Jaynes's dice, distributions with names, and honest refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, iv

import likely as lk

LINE, HALF = (-np.inf, np.inf), (0.0, np.inf)


def test_the_dice_of_brandeis():
    """Jaynes 1962: mean 4.5 gives .05435 .07877 .11416 .16545 .23977 .34749."""
    found = lk.distributions.maximum_entropy(values=[1, 2, 3, 4, 5, 6], expect={"mean": 4.5})
    assert found.probs == pytest.approx([0.05435, 0.07877, 0.11416, 0.16545, 0.23977, 0.34749], abs=6e-6)
    assert found.mean == pytest.approx(4.5, abs=1e-10)
    assert found.entropy() == pytest.approx(1.61358, abs=1e-5)


def test_nothing_known_is_uniform():
    assert lk.distributions.maximum_entropy(values=["a", "b", "c"]).probs == pytest.approx(np.full(3, 1 / 3))
    flat = lk.distributions.maximum_entropy(interval=(2.0, 5.0))
    assert isinstance(flat, lk.Uniform)
    assert flat.entropy() == pytest.approx(math.log(3.0))
    assert flat.cdf([3.0]) == pytest.approx([1 / 3])


def test_any_other_distribution_with_these_expectations_has_less_entropy():
    rng = np.random.default_rng(0)
    values = np.arange(8.0)
    p = rng.dirichlet(np.ones(8))
    best = lk.distributions.maximum_entropy(values=values, expect={"mean": p @ values, np.sqrt: p @ np.sqrt(values)})
    assert best.mean == pytest.approx(p @ values)
    assert best.probs @ np.sqrt(values) == pytest.approx(p @ np.sqrt(values))
    assert best.entropy() > lk.Categorical(p).entropy()


def test_features_as_arrays_and_twice_the_same():
    found = lk.distributions.maximum_entropy(values=["a", "b", "c"], expect=[([1, 0, 0], 0.5), ([2, 0, 0], 1.0)])
    assert found.probs == pytest.approx([0.5, 0.25, 0.25])
    edge = lk.distributions.maximum_entropy(values=[1, 2, 3, 4], expect={"mean": 4.0})
    assert edge.probs.tolist() == [0.0, 0.0, 0.0, 1.0]
    near = lk.distributions.maximum_entropy(values=[1, 2, 3, 4], expect={"mean": 3.99999})
    assert near.mean == pytest.approx(3.99999, abs=1e-9)


def test_distributions_with_names():
    bell = lk.distributions.maximum_entropy(interval=LINE, expect={"mean": 1.0, "variance": 4.0})
    assert isinstance(bell, lk.Gaussian) and bell.mean.tolist() == [1.0] and bell.covariance.tolist() == [[4.0]]
    waits = lk.distributions.maximum_entropy(interval=HALF, expect={"mean": 2.0})
    assert isinstance(waits, lk.Exponential) and waits.rate.tolist() == [0.5]
    gamma = lk.distributions.maximum_entropy(interval=HALF, expect={"mean": 1.5, "log": digamma(3) - math.log(2)})
    assert isinstance(gamma, lk.Gamma) and (gamma.shape[0], gamma.rate[0]) == pytest.approx((3.0, 2.0))
    sharp = lk.distributions.maximum_entropy(interval=LINE, expect={"abs": 2.0})
    assert isinstance(sharp, lk.Laplace) and sharp.scale.tolist() == [2.0]
    ends = {"log": digamma(2) - digamma(5), "log1m": digamma(3) - digamma(5)}
    beta = lk.distributions.maximum_entropy(interval=(0.0, 1.0), expect=ends)
    assert isinstance(beta, lk.Beta) and (beta.a[0], beta.b[0]) == pytest.approx((2.0, 3.0))


def test_the_same_distributions_through_the_general_way():
    """Functions hide the names: the numerical distribution must be the named one."""
    x = np.linspace(-3, 5, 9)
    bell = lk.distributions.maximum_entropy(interval=LINE, expect=[(lambda z: z, 1.0), (lambda z: (z - 1) ** 2, 4.0)])
    assert bell.log_prob(x) == pytest.approx(stats.norm(1.0, 2.0).logpdf(x), abs=1e-8)
    assert bell.cdf(x) == pytest.approx(stats.norm(1.0, 2.0).cdf(x), abs=1e-10)
    assert bell.quantile([0.1, 0.7]) == pytest.approx(stats.norm(1.0, 2.0).ppf([0.1, 0.7]), abs=1e-9)
    waits = lk.distributions.maximum_entropy(interval=HALF, expect=[(lambda z: z, 2.0)])
    assert waits.cdf([1.0, 4.0]) == pytest.approx(stats.expon(scale=2.0).cdf([1.0, 4.0]), abs=1e-10)
    mirrored = lk.distributions.maximum_entropy(interval=(-np.inf, 3.0), expect={"mean": 1.0})
    assert mirrored.cdf([0.0, 2.0]) == pytest.approx(np.exp((np.array([0.0, 2.0]) - 3) / 2), abs=1e-10)


def test_truncated_and_heavy_ones():
    cut = lk.distributions.maximum_entropy(interval=(0.0, 1.0), expect={"mean": 1 / (1 - math.exp(-1)) - 1})
    assert cut.multipliers == pytest.approx([1.0])
    bell = lk.distributions.maximum_entropy(interval=(-1.0, 1.0), expect={"mean": 0.1, "variance": 0.2})
    scale = math.sqrt(-0.5 / bell.multipliers[1])
    center = bell.multipliers[0] * scale**2
    exact = stats.truncnorm((-1 - center) / scale, (1 - center) / scale, center, scale)
    assert (exact.mean(), exact.var()) == pytest.approx((0.1, 0.2))
    assert bell.entropy() == pytest.approx(float(exact.entropy()))
    pareto = lk.distributions.maximum_entropy(interval=(1.0, np.inf), expect={"log": 0.5})
    assert pareto.cdf([2.0]) == pytest.approx([1 - 2.0**-2])
    flat = lk.distributions.maximum_entropy(interval=LINE, expect={"mean": 0.0, "square": 1.0, "fourth": 2.0})
    assert (flat.mean, flat.variance, flat.expected(lambda x: x**4)) == pytest.approx((0.0, 1.0, 2.0), abs=1e-9)
    assert flat.entropy() < lk.Gaussian([0.0], 1.0).entropy()
    draws = flat.sample(3000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(draws, flat.cdf).pvalue > 1e-3


def test_circular_moments_give_von_mises():
    kappa, mu = 1.5, 0.4
    ratio = iv(1, kappa) / iv(0, kappa)
    expect = {"cos": ratio * math.cos(mu), "sin": ratio * math.sin(mu)}
    found = lk.distributions.maximum_entropy(interval=(-math.pi, math.pi), expect=expect)
    assert isinstance(found, lk.distributions.VonMises)
    assert (found.center[0], found.concentration[0]) == pytest.approx((mu, kappa))
    x = np.linspace(-3.0, 3.0, 13)
    assert found.log_prob(x) == pytest.approx(stats.vonmises(kappa, mu).logpdf(x), abs=1e-8)


def test_scales_do_not_matter():
    for scale in (1e-8, 1e8):
        found = lk.distributions.maximum_entropy(
            interval=LINE, expect={"mean": scale, "square": 2 * scale**2, "fourth": 8 * scale**4}
        )
        assert found.mean == pytest.approx(scale) and found.variance == pytest.approx(scale**2)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"values": [1, 2, 3], "expect": {"mean": 4.0}}, r"E\[mean\] must lie in 1 … 3"),
        ({"values": [1, 2, 3, 4, 5, 6], "expect": {"mean": 3.5, "variance": 7.0}}, "jointly feasible"),
        ({"values": [1, 2, 3, 4, 5, 6], "expect": {"mean": 3.5, "variance": 0.2}}, "jointly feasible"),
        ({"values": [1, 2], "expect": {"variance": 1.0}}, "needs a mean"),
        ({"values": [1, 2], "expect": {"mean": 1.5, "square": 1.0}}, "larger than the squared mean"),
        ({"values": ["a", "b"], "expect": {"mean": 1.0}}, "number for every value"),
        ({"values": [1, 2], "expect": {"skew": 1.0}}, "a name must be"),
        ({"values": [1, 2], "expect": {"mean": np.nan}}, "finite"),
        ({"values": []}, "must be a list"),
        ({}, "one of values and interval"),
        ({"interval": (1.0, 0.0)}, "low below high"),
        ({"interval": LINE}, "bound the entropy"),
        ({"interval": LINE, "expect": {"mean": 1.0}}, "bound the entropy"),
        ({"interval": LINE, "expect": {"mean": 0.0, "square": 1.0, "cube": 0.5}}, "jointly infeasible"),
        ({"interval": LINE, "expect": {"mean": 0.0, "square": 1.0, "fourth": 4.0}}, "jointly infeasible"),
        ({"interval": (0.0, 1.0), "expect": {"mean": 2.0}}, r"E\[mean\] must lie"),
        ({"interval": (0.0, 1.0), "expect": {"mean": 0.5, "variance": 0.3}}, "jointly infeasible"),
    ],
)
def test_what_cannot_be_met_is_refused(asked, match):
    with pytest.raises(lk.LikelyError, match=match):
        lk.distributions.maximum_entropy(**asked)


def test_a_feature_that_jumps_is_reported():
    with pytest.warns(lk.FitWarning, match="smooth"):
        lk.distributions.maximum_entropy(interval=(0.0, 10.0), expect=[(lambda x: (x > 3.3) * 1.0, 0.9)])


@pytest.mark.parametrize("mean", [1e-12, 1e-9, 1e-4])
def test_small_means_are_met_relative_to_themselves(mean):
    assert lk.distributions.maximum_entropy(interval=(0, 1), expect={"mean": mean}).mean == pytest.approx(
        mean, rel=1e-9
    )


def test_draws_follow_the_distribution_function():
    distribution = lk.distributions.MaximumEntropyDistribution(("mean", "fourth"), [1.0, -1.0], -np.inf, np.inf)
    draws = distribution.sample(50_000, np.random.default_rng(2))[:, 0]
    assert np.abs(np.sort(distribution.cdf(draws)) - (np.arange(50_000) + 0.5) / 50_000).max() < 0.008

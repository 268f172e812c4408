from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

import likely as lk


def test_it_adds_up_to_one():
    prior = lk.priors.BilateralPareto(0.0, 1.0, 3.0)

    def f(u, l):
        return np.exp(prior.log_density(lk.Uniform(l, u)))

    total, _ = integrate.dblquad(f, -np.inf, 0.0, 1.0, np.inf)
    assert total == pytest.approx(1.0, rel=1e-6)


def test_ends_move_out_only():
    prior = lk.priors.BilateralPareto(0.0, 1.0, 2.0)
    distribution = lk.Uniform(0.0, 1.0)
    inside, outside = prior.update(distribution.collect([0.3, 0.6])), prior.update(distribution.collect([-1.0, 4.0]))
    assert (inside.low[0], inside.high[0], inside.shape[0]) == (0.0, 1.0, 4.0)
    assert (outside.low[0], outside.high[0], outside.shape[0]) == (-1.0, 4.0, 4.0)


def test_the_weak_prior_is_the_unbiased_estimate():
    x = np.array([1.0, 2.0, 4.0])
    distribution = lk.Uniform.fit(x, prior="weak")
    wanted = lk.Uniform.unbiased_fit(x)
    np.testing.assert_allclose([distribution.low, distribution.high], [wanted.low, wanted.high])


def test_members_of_a_stack_have_their_own():
    x, labels = np.array([0.0, 1.0, 2.0, 100.0, 101.0, 102.0, 7.0]), np.array([0, 0, 0, 1, 1, 1, 2])
    stack = lk.Uniform(np.zeros((4, 1)), 1.0)
    stats = stack.collect(x, labels=labels)
    fitted = stack.refit(stats, stack.weak_prior(stats))
    np.testing.assert_allclose(fitted.low[:2, 0], [-1.0, 99.0])
    np.testing.assert_allclose(fitted.low[2, 0], 7.0 - 51.0)  # one value: half of the range of all to each side
    assert fitted.low[3, 0] < 0 and fitted.high[3, 0] > 102  # nobody's: all rows together


def test_points():
    prior = lk.priors.BilateralPareto(0.0, 1.0, 3.0)
    mean, median = prior.point("mean"), prior.point("median")
    assert (mean.low[0], mean.high[0]) == (-0.5, 1.5)
    assert median.high[0] == pytest.approx(2 ** (1 / 3))
    with pytest.raises(lk.DomainError, match="shape above 1"):
        lk.priors.BilateralPareto(0.0, 1.0, 0.5).point("mean")


def test_refusals():
    for wrong in ((1.0, 1.0, 2.0), (0.0, 1.0, 0.0)):
        with pytest.raises(lk.DomainError, match="positive, and low below high"):
            lk.priors.BilateralPareto(*wrong)
    with pytest.raises(lk.ShapeError, match="fit"):
        lk.priors.BilateralPareto([0.0, 0.0], 1.0, 2.0).update(lk.Uniform([0.0] * 3, 1.0).collect(np.zeros((1, 3))))
    assert lk.priors.BilateralPareto(0.0, 1.0, 2.0).log_density(lk.Uniform(0.5, 2.0)) == -np.inf

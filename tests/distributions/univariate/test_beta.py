"""The beta distribution against SciPy, the Dirichlet distribution and the sum of all sequences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats

from likely.core.errors import DomainError, ShapeError
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.univariate.beta import Beta

AB = [(0.3, 0.4), (1.0, 1.0), (2.0, 5.0), (0.5, 3.0), (7.0, 0.9), (300.0, 40.0)]


@pytest.mark.parametrize(("a", "b"), AB)
def test_it_is_scipys(a, b):
    distribution, want = Beta(a, b), scipy.stats.beta(a, b)
    x = np.linspace(0.01, 0.99, 33)
    assert np.allclose(distribution.log_prob(x), want.logpdf(x), rtol=1e-11, atol=1e-11)
    below = distribution.cdf(x)
    inside = (below > 1e-250) & (below < 1 - 1e-6)  # nearer to 1 its digits do not tell x
    assert np.allclose(below, want.cdf(x), rtol=1e-11) and np.allclose(
        distribution.quantile(below)[inside], x[inside], rtol=1e-8
    )
    assert distribution.mean[0] == pytest.approx(want.mean()) and distribution.variance[0] == pytest.approx(want.var())
    assert distribution.median[0] == pytest.approx(want.median()) and distribution.entropy() == pytest.approx(
        want.entropy(), abs=1e-10
    )


def test_it_is_a_dirichlet_distribution_of_two_levels():
    x = np.linspace(0.05, 0.95, 9)
    for (a, b), (c, d) in product(AB, AB):
        two = Dirichlet([a, b])
        assert np.allclose(Beta(a, b).log_prob(x), two.log_prob(np.stack([x, 1 - x], axis=1)), atol=1e-11)
        assert Beta(a, b).kl(Beta(c, d)) == pytest.approx(two.kl(Dirichlet([c, d])), abs=1e-12)


def test_modes_are_guarded():
    a, b = np.array([0.5, 1.0, 0.5, 3.0, 1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0, 0.5, 2.0, 1.0, 2.0])
    mode = Beta(a, b).mode
    assert mode.tolist() == [0.5, 0.5, 0.0, 1.0, 0.0, 1.0, 2 / 3]
    assert np.isfinite(Beta(a, b).point("mode").probs).all()


def test_outside_and_missing():
    assert Beta(2.0, 3.0).log_prob([-0.1, 1.1, np.nan, 0.0]).tolist() == [-np.inf, -np.inf, 0.0, -np.inf]
    assert Beta(1.0, 1.0).log_prob([0.0, 0.5, 1.0]) == pytest.approx(np.zeros(3), abs=1e-12)
    x = Beta(1e-3, 1e-3).sample(2000, np.random.default_rng(0))
    assert ((x > 0) & (x < 1)).all() and abs(x.mean() - 0.5) < 0.06


def test_the_evidence_is_that_of_all_sequences():
    """Over all sequences of four rows it adds up to one."""
    prior, model = Beta([0.7, 2.0], [1.5, 0.4]), Bernoulli([0.5, 0.5])
    rows = list(product([0.0, 1.0], repeat=2))
    total = sum(np.exp(prior.log_evidence(model.collect(np.array(s)))) for s in product(rows, repeat=4))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_laplaces_rule():
    post = Beta(1.0, 1.0).update(Bernoulli(0.5).collect([1, 1, 0, 1]))
    assert post.predictive().probs[0] == pytest.approx(4 / 6) and post.point("mode").probs[0] == 0.75
    assert Beta.symmetric(2, 1.0).update(Bernoulli([0.5, 0.5]).collect([[1, 0]])).mode == pytest.approx([2 / 3, 1 / 3])


def test_the_weak_prior():
    x = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 1]])
    model = Bernoulli.blank(x)
    stats = model.collect(x)
    prior = model.weak_prior(stats)
    fitted = model.refit(stats, prior)
    assert fitted.probs[2] == pytest.approx(0.5)  # where both were seen, the maximum-likelihood estimate stays
    assert fitted.probs[0] == pytest.approx((4 + 0.9) / 5) and fitted.probs[1] == pytest.approx(0.1 / 5)
    assert np.allclose(prior.a + prior.b, 3.0)
    nothing = Beta.weak(model.collect(np.full((2, 3), np.nan)))
    assert np.allclose(nothing.mode, 0.5)


def test_one_column_serves_all_and_one_distribution_all_members():
    x = np.random.default_rng(1).integers(0, 2, (30, 3))
    stack = Bernoulli(np.full((2, 3), 0.5))
    post = Beta(2.0, 2.0).update(stack.collect(x, labels=np.arange(30) % 2))
    assert post.a.shape == (2, 3) and post.member(1).a == pytest.approx(2 + x[1::2].sum(axis=0))
    assert Beta(2.0, 2.0).log_evidence(stack.collect(x)).shape == (2,)


def test_what_does_not_fit():
    for a, b in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0)):
        with pytest.raises(DomainError):
            Beta(a, b)
    for a, b in (([1.0, 2.0], [1.0, 2.0, 3.0]), (np.ones((1, 1, 1)), 1.0), ([], [])):
        with pytest.raises(ShapeError):
            Beta(a, b)
    with pytest.raises(ShapeError):
        Beta([1.0, 1.0], 1.0).update(Bernoulli([0.5] * 3).collect(np.ones((1, 3))))
    with pytest.raises(DomainError, match="one column"):
        Beta([1.0, 1.0], 1.0).cdf([0.5])
    with pytest.raises(DomainError, match="'mode', 'mean', 'median'"):
        Beta(1.0, 1.0).point("middle")

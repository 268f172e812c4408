"""Maximum-likelihood fits of gamma, beta and Dirichlet: against SciPy, with missing values, weights and hazards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import likely as lk


@pytest.mark.parametrize("shape", [0.05, 0.8, 3.0, 50.0, 1e4])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_gamma_against_scipy(shape, scale):
    x = np.maximum(scipy.stats.gamma(shape).rvs(400, random_state=1), 1e-200)
    found = lk.Gamma.fit(x * scale)
    a, _, theta = scipy.stats.gamma.fit(x, floc=0)
    assert found.shape[0] == pytest.approx(a, rel=1e-7)
    assert 1 / found.rate[0] / scale == pytest.approx(theta, rel=1e-7)


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.2), (2.0, 5.0), (400.0, 3.0), (1e4, 1e4)])
def test_beta_against_scipy(a, b):
    x = np.clip(scipy.stats.beta(a, b).rvs(400, random_state=2), 1e-12, 1 - 1e-12)
    found = lk.Beta.fit(x)
    best = scipy.stats.beta.fit(x, floc=0, fscale=1)[:2]
    assert found.log_prob(x).sum() >= scipy.stats.beta(*best).logpdf(x).sum() - 1e-7
    assert (found.a[0], found.b[0]) == pytest.approx(best, rel=1e-5)
    log, log1 = np.log(x).mean(), np.log1p(-x).mean()
    from scipy.special import digamma

    assert digamma(found.a[0]) - digamma(found.a[0] + found.b[0]) == pytest.approx(log, rel=1e-9)
    assert digamma(found.b[0]) - digamma(found.a[0] + found.b[0]) == pytest.approx(log1, rel=1e-9)


def test_dirichlet_obeys_its_equations(rng):
    from scipy.special import digamma

    x = lk.Dirichlet([0.5, 2.0, 7.0, 1.0]).sample(2000, rng)
    w = rng.random(2000)
    found = lk.Dirichlet.fit(x, w)
    assert digamma(found.alpha) - digamma(found.alpha.sum()) == pytest.approx(w @ np.log(x) / w.sum(), rel=1e-10)
    assert found.alpha == pytest.approx([0.5, 2.0, 7.0, 1.0], rel=0.1)
    two = lk.Dirichlet.fit(x[:, :2] / x[:, :2].sum(axis=1, keepdims=True))
    beta = lk.Beta.fit(x[:, 0] / x[:, :2].sum(axis=1))
    assert two.alpha == pytest.approx([beta.a[0], beta.b[0]], rel=1e-8)


def test_a_share_that_is_missing_is_what_the_others_leave(rng):
    x = lk.Dirichlet([2.0, 3.0, 4.0]).sample(50, rng)
    gappy = x.copy()
    gappy[::3, 1] = np.nan
    assert lk.Dirichlet.fit(gappy).alpha == pytest.approx(lk.Dirichlet.fit(x).alpha, rel=1e-9)
    gappy[7, :2] = np.nan
    with pytest.raises(lk.DataError, match="row 7, column 1"):
        lk.Dirichlet.fit(gappy)


def test_edges_are_refused_by_row_and_column():
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.Gamma.fit(np.array([1.0, 0.0, 2.0]))
    with pytest.raises(lk.DataError, match="row 2, column 0"):
        lk.Beta.fit(np.array([0.1, 0.5, 1.0]))
    with pytest.raises(lk.DataError, match="row 0, column 1"):
        lk.Dirichlet.fit([[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(lk.DataError, match="sum to 1"):
        lk.Dirichlet.fit([[0.5, 0.5], [0.5, 0.6]])


def test_constant_columns_and_single_rows_give_finite_distributions():
    for value in (1e-200, 1.0, 1e8, 1e200):
        for x in ([value], [value, value, value]):
            distribution = lk.Gamma.fit(np.array(x))
            assert (
                np.isfinite([distribution.shape, distribution.rate]).all()
                and np.isfinite(distribution.log_prob(np.array(x))).all()
            )
    for value in (1e-12, 0.5, 1 - 1e-12):
        distribution = lk.Beta.fit(np.array([value, value]))
        assert (
            np.isfinite([distribution.a, distribution.b]).all()
            and np.isfinite(distribution.log_prob(np.array([value]))).all()
        )
    flat = lk.Dirichlet.fit([[0.2, 0.3, 0.5]] * 3)
    assert np.isfinite(flat.alpha).all() and flat.mean == pytest.approx([0.2, 0.3, 0.5], rel=1e-6)


def test_moments():
    x = scipy.stats.gamma(3.0).rvs(500, random_state=3)
    distribution = lk.Gamma.moments_fit(x)
    assert distribution.mean[0] == pytest.approx(x.mean()) and distribution.variance[0] == pytest.approx(x.var())
    y = scipy.stats.beta(3.0, 2.0).rvs(500, random_state=3)
    distribution = lk.Beta.moments_fit(y)
    assert distribution.mean[0] == pytest.approx(y.mean()) and distribution.variance[0] == pytest.approx(y.var())
    with pytest.raises(lk.DomainError, match="variance"):
        lk.Beta.from_moments(0.5, 0.5)
    with pytest.raises(lk.DomainError, match="no unbiased"):
        lk.Gamma.unbiased_fit(x)


def test_estimators_answer_zeros_in_words():
    with pytest.warns(lk.FitWarning, match="0 counts as missing"):
        found = lk.GammaDensity(prior=None).fit([[0.0], [1.0], [2.0], [6.0]])
    assert found.shape_ == pytest.approx(lk.Gamma.fit([[1.0], [2.0], [6.0]]).shape)
    assert found.score_samples([[0.0]])[0] == 0.0
    with pytest.raises(lk.DataError, match="row 0, column 0"):
        lk.GammaDensity(zeros="error").fit([[0.0], [1.0]])
    with pytest.warns(lk.FitWarning, match="not between 0 and 1"):
        lk.BetaDensity().fit([[0.0], [0.3], [0.5], [1.5]])
    with pytest.raises(lk.DataError, match="row 3, column 0"):
        lk.BetaDensity(outside="error").fit([[0.1], [0.3], [0.5], [1.5]])
    with pytest.warns(lk.FitWarning, match="divided by their sums"):
        lk.DirichletDensity().fit([[2.0, 3.0], [1.0, 4.0]])
    with pytest.warns(lk.FitWarning, match="are set to it"):
        lk.DirichletDensity().fit([[0.0, 1.0], [0.5, 0.5]])


def test_ends_of_a_share_are_units():
    x = scipy.stats.beta(2.0, 3.0).rvs((200, 1), random_state=4)
    one, hundred = lk.BetaDensity(prior=None).fit(x), lk.BetaDensity(high=100.0, prior=None).fit(100 * x)
    assert hundred.a_ == pytest.approx(one.a_)
    assert hundred.score_samples(100 * x) == pytest.approx(one.score_samples(x) - np.log(100.0))
    assert 10 < hundred.sample(100, 0).mean() < 90


@pytest.mark.slow
def test_mixtures_products_and_classifiers(rng):
    x = np.concatenate([rng.gamma(30, 1, (200, 1)), rng.gamma(2, 1, (200, 1))])
    mixture = lk.MixtureDensity(lk.GammaDensity(), 2, random_state=0).fit(x)
    assert np.sort(mixture.model_.components.mean[:, 0]) == pytest.approx([2.0, 30.0], rel=0.15)
    y = np.repeat(["a", "b"], 200)
    assert lk.BayesClassifier(lk.GammaDensity()).fit(x, y).score(x, y) > 0.98
    shares = np.concatenate([rng.dirichlet([9, 1, 1], 200), rng.dirichlet([1, 1, 9], 200)])
    assert lk.BayesClassifier(lk.DirichletDensity()).fit(shares, y).score(shares, y) > 0.98
    chain = lk.HMMDensity(lk.BetaDensity(), n_states=2, random_state=0).fit(shares[:, :1])
    assert chain.model_.emission.members == 2


def test_word_counts_in_bursts(rng):
    truth = lk.distributions.DirichletMultinomial([0.5, 2.0, 1.0], 30)
    x = truth.sample(3000, rng)
    found = lk.distributions.DirichletMultinomial.fit(x)
    assert found.alpha == pytest.approx(truth.alpha, rel=0.1)
    best = found.log_prob(x).sum()
    for j in range(3):
        for size in (0.999, 1.001):
            near = np.array(found.alpha)
            near[j] *= size
            assert lk.distributions.DirichletMultinomial(near, 30).log_prob(x).sum() < best
    stats = found.collect(x)
    assert found.objective(stats) == pytest.approx(best, rel=1e-12)
    import scipy.sparse

    sparse = lk.distributions.DirichletMultinomial.fit(scipy.sparse.csr_array(x))
    assert sparse.alpha == pytest.approx(found.alpha, rel=1e-12)
    two = lk.distributions.DirichletMultinomial.fit(x[:, :2][x[:, :2].sum(axis=1) == 20])
    urn = lk.distributions.BetaBinomial.fit(x[:, 0][x[:, :2].sum(axis=1) == 20], trials=20)
    assert two.alpha == pytest.approx([urn.a[0], urn.b[0]], rel=1e-6)
    with pytest.raises(lk.DataError, match="row 0, column 1"):
        found.collect([[1.0, np.nan, 2.0]])
    y = np.arange(300) % 2
    clf = lk.BayesClassifier(lk.distributions.DirichletMultinomialDensity()).fit(scipy.sparse.csr_array(x[:300]), y)
    assert clf.predict_proba(x[:5]).shape == (5, 2)


@pytest.mark.parametrize("offset", [1e3, 1e8, 1e12])
def test_narrow_gamma_columns_keep_their_variance(offset):
    """Far from 0 the gamma distribution is a Gaussian: its variance is that of the rows, to 1 / offset."""
    x = offset + np.array([1.0, 2.0, 4.0, 3.0])
    distribution = lk.Gamma.fit(x)
    np.testing.assert_allclose(
        [distribution.mean[0] - offset, distribution.variance[0]], [2.5, 1.25], rtol=3 / offset + 1e-16 * offset
    )
    plain = lk.Gamma(1.0, 1.0)
    parts = plain.refit(plain.collect(x[:1]) + plain.collect(x[1:3]) + plain.collect(x[3:]))
    weighed = lk.Gamma.fit(np.append(x, offset), weight=[2.0, 2.0, 2.0, 2.0, 0.0])
    for other in (parts, weighed):
        np.testing.assert_allclose(other.variance, distribution.variance, rtol=1e-4)


def test_narrow_members_far_from_each_other_keep_their_variances():
    x = np.concatenate([5 + 1e-9 * np.arange(5), 3e6 + np.arange(5)])
    labels = np.repeat([0, 1], 5)
    stack = lk.Gamma(np.ones((2, 1)), np.ones((2, 1)))
    both = stack.refit(stack.collect(x, labels=labels))
    np.testing.assert_allclose(both.variance[:, 0], [2e-18, 2.0], rtol=1e-5)
    pooled = stack.collect(x, labels=labels).pooled()
    np.testing.assert_allclose(pooled.means(), [[x.mean()], [np.log(x.mean()) - np.log(x).mean()]], rtol=1e-12)

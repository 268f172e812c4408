"""Seven rules for one question, on the numbers of the notes."""

import numpy as np
import pytest

import likely as lk

COIN = [[1], [1], [1]]


def test_three_ones_of_three():  # Herbst 2.1
    assert lk.estimate(lk.Bernoulli, COIN).probs == 1.0
    assert lk.estimate(lk.Bernoulli, COIN, "predictive", prior=lk.Beta(1, 1)).probs == pytest.approx(4 / 5)
    assert lk.estimate(lk.Bernoulli, COIN, "predictive", prior=lk.Beta(2, 2)).probs == pytest.approx(5 / 7)
    assert lk.estimate(lk.Bernoulli, COIN, "map", prior=lk.Beta(2, 2)).probs == pytest.approx(4 / 5)
    assert lk.estimate(lk.Bernoulli, COIN, "posterior mean", prior=lk.Beta(2, 2)).probs == pytest.approx(5 / 7)


@pytest.mark.parametrize(
    ("n", "mean", "variance"), [(1, -1.6, 0.8), (4, -1.0, 0.5), (12, -0.5, 0.25), (100, -0.0769, 0.0385)]
)
def test_a_mean_with_known_variance(n, mean, variance):  # Ney 3.8
    prior = lk.priors.MeanGivenCovariance(lk.Gaussian([-2.0], 1.0), 4.0)
    x = np.zeros((n, 1))
    assert lk.estimate(lk.Gaussian([0.0], 4.0), x, "posterior mean", prior=prior).mean[0] == pytest.approx(
        mean, abs=5e-5
    )
    next_row = lk.estimate(lk.Gaussian([0.0], 4.0), x, "predictive", prior=prior)
    assert next_row.variance[0] - 4.0 == pytest.approx(variance, abs=5e-5)


def test_the_worksheet_predicts_with_both_covariances():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 2))
    S0 = np.array([[2.0, 0.3], [0.3, 1.0]])
    S = np.linalg.inv(np.linalg.inv(S0) + 7 * np.eye(2))
    prior = lk.priors.MeanGivenCovariance(lk.Gaussian([0.0, 0.0], S0), np.eye(2))
    distribution = lk.estimate(lk.Gaussian([0.0, 0.0], np.eye(2)), x, "predictive", prior=prior)
    assert np.allclose(distribution.covariance_matrix, np.eye(2) + S) and np.allclose(
        distribution.mean, S @ x.sum(axis=0)
    )


def test_closed_forms_of_the_notes():  # Ney 3.4
    laplace = lk.estimate(lk.Laplace, np.array([1.0, 2.0, 4.0, 8.0, 16.0])[:, None])
    assert laplace.center[0] == 4.0 and laplace.scale[0] == pytest.approx(4.2)
    assert lk.estimate(lk.Poisson, [[1], [2], [6]]).rate[0] == 3.0
    assert lk.estimate(lk.Bernoulli, [[1], [0], [0], [1], [1]]).probs[0] == pytest.approx(0.6)


def test_unbiased_counts_weights_as_copies():
    x = np.array([[1.0, 0.0], [3.0, 1.0], [4.0, 5.0]])
    w = np.array([2.0, 1.0, 3.0])
    distribution = lk.estimate(lk.Gaussian, x, "unbiased", weight=w)
    assert np.allclose(distribution.covariance, np.cov(np.repeat(x, [2, 1, 3], axis=0).T))
    diagonal = lk.estimate(lk.Gaussian([0.0, 0.0], [1.0, 1.0]), x, "unbiased", weight=w)
    assert diagonal.kind == "diagonal" and np.allclose(diagonal.covariance, np.diagonal(distribution.covariance))
    assert np.allclose(lk.estimate(lk.Gaussian, x, "moments", weight=w).covariance, distribution.covariance * 5 / 6)
    assert lk.estimate(lk.Exponential, [[1.0], [2.0], [3.0]], "unbiased").rate[0] == pytest.approx(2 / 6)


@pytest.mark.slow
def test_unbiased_is_right_on_average():
    rng = np.random.default_rng(1)
    found = [lk.estimate(lk.Gaussian, rng.normal(0.0, 2.0, (4, 1)), "unbiased").covariance[0, 0] for _ in range(3000)]
    assert np.mean(found) == pytest.approx(4.0, abs=5 * np.std(found) / np.sqrt(3000))


def test_what_does_not_exist_is_said():
    with pytest.raises(lk.DomainError, match="needs a prior"):
        lk.estimate(lk.Bernoulli, COIN, "map")
    with pytest.raises(lk.DomainError, match="unbiased"):
        lk.estimate(lk.StudentT, [[0.0], [1.0], [3.0]], "unbiased")
    with pytest.raises(lk.DomainError, match="rule must be"):
        lk.estimate(lk.Bernoulli, COIN, "best")
    with pytest.raises(lk.DomainError, match="needs complete data"):
        lk.estimate(lk.StudentT, [[0.0], [1.0], [3.0]], "posterior mean", prior="weak")
    with pytest.raises(lk.DataError, match="complete rows"):
        lk.estimate(lk.Gaussian, [[0.0, 1.0], [np.nan, 1.0], [2.0, 2.0]], "unbiased")
    with pytest.raises(lk.DomainError, match="distribution that can be fitted"):
        lk.estimate(int, COIN)


@pytest.mark.parametrize("name", ["ml", "MLE", "Maximum Likelihood", "maximum-likelihood"])
def test_names_of_maximum_likelihood(name):
    assert lk.estimate(lk.Poisson, [1, 2, 3], name).rate == 2.0


@pytest.mark.parametrize("name", ["MAP", "posterior mode", "Posterior Mode"])
def test_names_of_the_posterior_mode(name):
    assert lk.estimate(lk.Poisson, [1, 2, 3], name, prior=lk.Gamma(1.0, 1.0)).rate == 1.5


def test_what_earlier_data_cannot_say_names_the_distribution_and_the_way_out():
    x = [0.2, 0.3, 0.7]
    distribution = lk.Beta(1.0, 1.0)
    prior = distribution.weak_prior(distribution.collect(x))
    ways = {
        "posterior mean": lambda: lk.estimate(lk.Beta, x, "posterior mean", prior="weak"),
        "predictive distribution": lambda: lk.estimate(lk.Beta, x, "predictive", prior="weak"),
        "evidence": lambda: prior.log_evidence(distribution.collect(x)),
    }
    for what, way in ways.items():
        with pytest.raises(lk.DomainError, match=rf'no {what} is known of Beta.*lk.estimate\(lk.Beta, x, "map"'):
            way()


def test_moments_of_one_column_with_missing_values_are_those_without():
    x = np.random.default_rng(0).standard_t(6, 200)
    gappy = np.insert(x, [3, 90], np.nan)
    want, found = lk.StudentT.moments_fit(x), lk.StudentT.moments_fit(gappy)
    assert found.dof == want.dof and found.scale == want.scale
    weight = np.arange(202.0)
    want = lk.StudentT.moments_fit(x, weight[~np.isnan(gappy)])
    assert lk.estimate(lk.StudentT, gappy, "moments", weight=weight).dof == want.dof
    with pytest.raises(lk.DataError, match="complete rows"):
        lk.StudentT.moments_fit(np.column_stack([gappy, gappy]))

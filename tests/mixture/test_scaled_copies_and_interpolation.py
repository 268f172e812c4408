"""The contamination model and interpolation of given densities, as mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import likely as lk
from likely.core.em_loop import StoppingRule, fit, iterate

ALPHA = 25.0


def dirty(n=200, d=2, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * np.where(rng.random(n) < 0.1, 5.0, 1.0)[:, None]
    return np.where(rng.random(X.shape) < gaps, np.nan, X)


def tukey(X, kind="full", share=0.1):
    return lk.Mixture(
        [1 - share, share], lk.mixture.ScaledCopies(lk.Gaussian.blank(X, kind=kind), np.array([1.0, ALPHA]))
    )


def log_likelihood(X, share, mean, S):
    each = [np.log(w) + multivariate_normal(mean, f * S).logpdf(X) for w, f in ((1 - share, 1.0), (share, ALPHA))]
    return float(logsumexp(each, axis=0).sum())


def test_members_are_one_gaussian_at_several_sizes():
    g = lk.Gaussian([1.0, 2.0], [[2.0, 0.3], [0.3, 1.0]])
    s = lk.mixture.ScaledCopies(g, np.array([1.0, ALPHA]))
    x = np.array([[0.0, 1.0], [4.0, np.nan]])
    np.testing.assert_allclose(s.log_prob(x)[:, 1], lk.Gaussian(g.mean, ALPHA * g.covariance).log_prob(x))
    assert s.n_parameters == g.n_parameters and s.members == 2


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_em_finds_the_maximum_of_the_likelihood(d):
    X = dirty(d=d)
    report = fit(tukey(X), X, stop=StoppingRule(2000, 1e-12))
    base, share = report.model.components.base, report.model.weights[1]
    assert report.converged and report.objective == pytest.approx(log_likelihood(X, share, base.mean, base.covariance))

    def loss(p):
        root = np.zeros((d, d))
        root[np.tril_indices(d)] = p[1 + d :]
        return -log_likelihood(X, 1 / (1 + np.exp(-p[0])), p[1 : 1 + d], root @ root.T)

    start = np.r_[np.log(share / (1 - share)), base.mean, np.linalg.cholesky(base.covariance)[np.tril_indices(d)]]
    rng = np.random.default_rng(0)
    best = min(minimize(loss, start + 0.1 * rng.normal(size=len(start)), method="BFGS").fun for _ in range(3))
    assert report.objective == pytest.approx(-best, rel=1e-7)


@pytest.mark.some_cases(5)
@pytest.mark.slow
@pytest.mark.parametrize("prior", [None, "weak"])
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_the_objective_never_falls(kind, gaps, prior):
    for seed in range(5):
        X, w = dirty(60, 3, seed, gaps), np.random.default_rng(seed).uniform(0, 2, 60)
        steps = iterate(tukey(X, kind), lk.core.Blocks.of(X, w), prior=prior)
        trace = [next(steps).objective for _ in range(12)]
        assert (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()


def test_classes_may_be_contaminated_each_on_its_own():
    rng = np.random.default_rng(0)
    X = np.concatenate([dirty(150, seed=1), dirty(150, seed=2) + [8.0, 0.0]])
    clf = lk.BayesClassifier(lk.mixture.ContaminatedDensity(scale=ALPHA)).fit(X, np.repeat(["a", "b"], 150))
    alone = lk.mixture.ContaminatedDensity(scale=ALPHA, prior=None).fit(X[:150])
    assert clf.model_.components.weights.shape == (2, 2)
    np.testing.assert_allclose(clf.model_.components.components.base.mean[0], alone.mean_, atol=0.1)
    assert clf.score(X, np.repeat(["a", "b"], 150)) > 0.95 and clf.sample(5, rng)[0].shape == (5, 2)


def test_an_outlier_leads_the_plain_distribution_astray_and_not_this_one():
    X = np.append(np.random.default_rng(0).normal(0.0, 1.0, 99), 50.0)[:, None]
    robust = lk.mixture.ContaminatedDensity(scale=1000.0).fit(X)
    assert abs(robust.mean_[0]) < 0.2 and 0.7 < robust.covariance_[0, 0] < 1.3
    assert robust.outlier_probability(X)[-1] > 0.99 and robust.outlier_probability(X)[:-1].max() < 0.5


@pytest.mark.parametrize("bad", [[0.0, 1.0], [], [[1.0]], [-1.0, 2.0]])
def test_factors_must_be_sizes(bad):
    with pytest.raises((lk.DomainError, lk.ShapeError)):
        lk.mixture.ScaledCopies(lk.Gaussian([0.0], 1.0), np.array(bad))


# ---------------------------------------------------------------- interpolation


def test_weights_of_given_densities_are_the_one_maximum():
    rng = np.random.default_rng(0)
    x, w = rng.normal(0, np.where(rng.random(500) < 0.3, 3.0, 0.5)), rng.integers(0, 3, 500).astype(float)
    m = lk.mixture.interpolation_weights([lk.Gaussian([0.0], 9.0), lk.Gaussian([0.0], 0.25)], x[:, None], w)

    def loss(a):
        return -(w * np.logaddexp(np.log(a) + norm(0, 3).logpdf(x), np.log1p(-a) + norm(0, 0.5).logpdf(x))).sum()

    best = minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12})
    assert m.weights[0] == pytest.approx(best.x, abs=1e-4)
    assert (m.log_prob(x[:, None]) @ w) == pytest.approx(-best.fun, rel=1e-9)


def test_fixed_parts_stay_as_they_are_also_beside_labels():
    parts = lk.mixture.FixedComponents(lk.Gaussian([[0.0], [4.0]], 1.0))
    x = np.array([[0.1], [3.9], [4.2]])
    report = fit(lk.Mixture([0.5, 0.5], parts), lk.core.Blocks.of(x, labels=np.array([0, 1, 1])))
    assert report.model.components is parts and report.model.weights == pytest.approx([1 / 3, 2 / 3])
    assert report.objective == pytest.approx(report.model.log_joint(x)[[0, 1, 2], [0, 1, 1]].sum())


@pytest.mark.slow
def test_unlike_densities_of_one_kind_of_rows_interpolate():
    distributions = [lk.Gaussian([0.0], 1.0), lk.StudentT([0.0], [[1.0]], 3.0)]
    x = np.random.default_rng(0).standard_t(3, (3000, 1))
    assert lk.mixture.interpolation_weights(distributions, x).weights[1] > 0.7

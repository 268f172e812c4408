"""The normal-inverse-Wishart distribution: against SciPy, on paper, and as a weak prior."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likely import DomainError, FitWarning, Gaussian, ShapeError
from likely.priors import NormalInverseGamma, NormalInverseWishart

PSI = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.fixture
def prior():
    return NormalInverseWishart([1.0, -1.0], 2.0, PSI, 6.0)


def test_its_density_is_scipys(prior, rng):
    for _ in range(5):
        g = prior.draw(rng)
        want = scipy.stats.invwishart(df=6.0, scale=PSI).logpdf(g.covariance)
        want += scipy.stats.multivariate_normal(prior.mean, g.covariance / 2.0).logpdf(g.mean)
        assert prior.log_density(g) == pytest.approx(want, rel=1e-11)


def test_its_draws_are_scipys(prior, rng):
    ours = np.array([prior.draw(rng).covariance[0, 1] for _ in range(3000)])
    theirs = scipy.stats.invwishart(df=6.0, scale=PSI).rvs(3000, random_state=rng)[:, 0, 1]
    assert scipy.stats.ks_2samp(ours, theirs).pvalue > 1e-6


def test_points_by_formula(prior):
    """Mode of (μ, Σ): Ψ/(ν + d + 2); mean: Ψ/(ν − d − 1)."""
    np.testing.assert_allclose(prior.point("mode").covariance, PSI / 10.0, rtol=1e-14)
    np.testing.assert_allclose(prior.point("mean").covariance, PSI / 3.0, rtol=1e-14)
    median = prior.point("median").variance
    marginal = scipy.stats.invgamma(2.5, scale=np.diag(PSI) / 2)  # ν − d + 1 = 5 degrees of freedom
    np.testing.assert_allclose(median, marginal.median(), rtol=1e-10)


def test_the_posterior_on_paper():
    """Gelman et al. 3.6: κ, ν grow by n; Ψ by the scatter and κn/(κ + n) between the means."""
    x = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    post = NormalInverseWishart([0.0, 0.0], 1.0, np.eye(2), 4.0).update(Gaussian([5.0, 5.0], np.eye(2)).collect(x))
    assert post.kappa == 4.0 and post.dof == 7.0
    np.testing.assert_allclose(post.mean, [0.75, 0.75])
    np.testing.assert_allclose(post.scale, np.eye(2) + [[2.0, 0.0], [0.0, 6.0]] + 0.75 * np.ones((2, 2)), rtol=1e-13)


def test_the_predictive_is_a_t_distribution(prior):
    t = prior.predictive()
    assert t.dof == 5.0
    np.testing.assert_allclose(t.scale, PSI * 3.0 / (2.0 * 5.0), rtol=1e-14)
    x = np.array([[0.0, 0.0], [3.0, 1.0]])
    np.testing.assert_allclose(
        t.log_prob(x), scipy.stats.multivariate_t(prior.mean, PSI * 0.3, df=5.0).logpdf(x), rtol=1e-12
    )


def test_in_one_column_it_is_a_normal_inverse_gamma(rng):
    wishart = NormalInverseWishart([0.5], 2.0, [[3.0]], 4.0)
    gamma = NormalInverseGamma([0.5], 2.0, [3.0], 4.0)
    x = rng.standard_normal((9, 1))
    full, diagonal = Gaussian([0.0], [[1.0]]), Gaussian([0.0], [1.0])
    assert wishart.log_evidence(full.collect(x)) == pytest.approx(gamma.log_evidence(diagonal.collect(x)), rel=1e-13)
    assert wishart.log_density(Gaussian([0.3], [[2.0]])) == pytest.approx(
        gamma.log_density(Gaussian([0.3], [2.0])), rel=1e-13
    )
    for rule in ("mode", "mean", "median"):
        np.testing.assert_allclose(wishart.point(rule).covariance.ravel(), gamma.point(rule).covariance, rtol=1e-13)


def test_a_far_offset_costs_no_digits(rng):
    x = rng.standard_normal((20, 2))
    near = NormalInverseWishart([0.0, 0.0], 1.0, PSI, 5.0).update(Gaussian([0.0, 0.0], PSI).collect(x))
    by = 2.0**27
    moved = (x + by) - by
    exact = NormalInverseWishart([0.0, 0.0], 1.0, PSI, 5.0).update(Gaussian([0.0, 0.0], PSI).collect(moved))
    far = NormalInverseWishart([by, by], 1.0, PSI, 5.0).update(Gaussian([by, by], PSI).collect(x + by))
    np.testing.assert_allclose(far.scale, exact.scale, rtol=1e-13)
    np.testing.assert_allclose(far.mean - by, near.mean, atol=1e-7)


# -------------------------------------------------------------------- weak


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_weak_prior_makes_few_rows_a_density(rng, n):
    x = rng.standard_normal((n, 4)) * [1.0, 1e-6, 1e6, 0.0] + [0.0, 1.0, 0.0, 7.0]
    with pytest.warns(FitWarning, match="constant over all data"):
        g = Gaussian.fit(x, prior="weak")
    assert (
        np.isfinite(g.log_prob(x)).all()
        and np.linalg.eigvalsh(g.covariance / np.sqrt(np.outer(g.variance, g.variance)))[0] > 0
    )


def test_the_weak_prior_leaves_a_well_determined_distribution_alone(rng):
    """Its mode is the pooled covariance: variances stay, correlations shrink by less than c / n."""
    x = rng.standard_normal((1000, 3)) @ rng.standard_normal((3, 3))
    plain, weak = Gaussian.fit(x), Gaussian.fit(x, prior="weak")
    np.testing.assert_allclose(weak.variance, plain.variance, rtol=1e-2)
    assert np.abs(plain.kl(weak)) < 1e-4
    np.testing.assert_allclose(weak.mean, plain.mean, atol=1e-12)


def test_the_weak_prior_leans_small_members_on_the_pool(rng):
    labels = np.array([0] * 200 + [1] * 2)
    x = rng.standard_normal((202, 2)) @ [[2.0, 0.0], [1.0, 1.0]] + 10.0 * labels[:, None]
    blank = Gaussian.blank(x, members=2)
    stats = blank.collect(x, labels=labels)
    g = blank.refit(stats, NormalInverseWishart.weak(stats))
    within = stats.scatter.sum(axis=0) / 202
    ratio = np.linalg.eigvalsh(np.linalg.solve(within, g.covariance[1]))
    assert 0.3 < ratio.min() and ratio.max() < 3.0


@pytest.mark.parametrize("scale", [1e-100, 1e-5, 1e5, 1e100])
def test_the_weak_prior_follows_the_units(rng, scale):
    x = rng.standard_normal((6, 3))
    units = np.array([scale, 1.0, 1 / scale])
    a, b = Gaussian.fit(x, prior="weak"), Gaussian.fit(x * units, prior="weak")
    np.testing.assert_allclose(b.covariance / units[:, None] / units, a.covariance, rtol=1e-10)
    np.testing.assert_allclose(b.mean / units, a.mean, rtol=1e-10, atol=1e-13)


def test_nothing_seen_gives_no_weak_prior():
    g = Gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(DomainError, match="at least one row"):
        g.weak_prior(g.collect(np.empty((0, 2))))


# ----------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        (([0.0, 0.0], 0.0, PSI, 5.0), DomainError),
        (([0.0, 0.0], -1.0, PSI, 5.0), DomainError),
        (([0.0, 0.0], 1.0, PSI, 1.0), DomainError),
        (([0.0, 0.0], 1.0, np.ones((2, 2)), 5.0), DomainError),
        (([0.0, 0.0], 1.0, [[1.0, 0.2], [0.1, 1.0]], 5.0), DomainError),
        (([0.0, 0.0], 1.0, np.eye(3), 5.0), ShapeError),
        (([0.0, 0.0], 1.0, 1.0, 5.0), ShapeError),
        (([0.0, np.nan], 1.0, PSI, 5.0), DomainError),
    ],
)
def test_what_is_no_such_distribution_is_refused(parts, error):
    with pytest.raises(error, match=r"^NormalInverseWishart: "):
        NormalInverseWishart(*parts)


def test_a_mean_needs_enough_degrees_of_freedom():
    with pytest.raises(DomainError, match="needs dof above 3"):
        NormalInverseWishart([0.0, 0.0], 1.0, PSI, 3.0).point("mean")


def test_the_evidence_needs_complete_rows(prior):
    stats = Gaussian([0.0, 0.0], PSI).collect([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(DomainError, match="complete rows"):
        prior.log_evidence(stats)
    prior.update(stats)  # an E-step's statistics do update: that is EM with a prior


def test_statistics_of_another_kind_are_refused(prior):
    with pytest.raises(ShapeError, match="Moments are needed"):
        prior.update(Gaussian([0.0, 0.0], [1.0, 1.0]).collect(np.zeros((3, 2))))
    with pytest.raises(ShapeError, match="statistics of 2 columns"):
        prior.update(Gaussian([0.0], [[1.0]]).collect(np.zeros((3, 1))))
    with pytest.raises(ShapeError, match="Moments are needed"):
        Gaussian([0.0, 0.0], 1.0).refit(Gaussian([0.0, 0.0], 1.0).collect(np.zeros((3, 2))), prior)


def test_singular_covariances_have_no_density(prior):
    with pytest.raises(DomainError, match="positive definite"):
        prior.log_density(Gaussian([0.0, 0.0], np.ones((2, 2))))


@pytest.mark.parametrize("tied", [False, True])
def test_the_weak_priors_mode_is_the_pooled_covariance(rng, tied):
    """Worth 2d + 4 rows (2d + 3 + K where K members share it), with ν = d + 2 and a mean worth a hundredth of a row."""
    x, labels = rng.standard_normal((5000, 3)) @ rng.standard_normal((3, 3)), np.arange(5000) % 4
    blank = Gaussian.blank(x, members=4, tied=tied)
    stats = blank.collect(x + labels[:, None], labels=labels)
    prior = blank.weak_prior(stats)
    within = stats.scatter.sum(axis=0) / 5000
    mode = prior.scale / (prior.dof + 4 + (4 if tied else 1))
    assert prior.dof == 5.0 and prior.kappa == 0.01
    np.testing.assert_allclose(np.diagonal(mode), np.diagonal(within), rtol=1e-12)
    np.testing.assert_allclose(mode, within, rtol=1e-5)


@pytest.mark.slow
def test_a_column_that_is_seldom_seen_costs_the_others_none_of_their_correlations(rng):
    """Each column's own count says how far its correlations shrink, and the shape stays positive definite."""
    x = rng.normal(size=(500, 1)) + 0.1 * rng.normal(size=(500, 4))
    x[6:, 3] = np.nan
    model = Gaussian.fit(x, prior="weak")
    shape = NormalInverseWishart.weak(model.collect(x)).point("mode").covariance
    size = np.sqrt(np.diagonal(shape))
    correlation = shape / size[:, None] / size
    assert correlation[:3, :3].min() > 0.98 and np.abs(correlation[3, :3]).max() < 0.5
    assert np.linalg.eigvalsh(correlation).min() > 0


def test_without_missing_values_the_shrunk_share_is_that_of_the_rows(rng):
    x = rng.normal(size=(9, 3)) @ rng.normal(size=(3, 3))
    stats = Gaussian.blank(x).collect(x)
    mode = NormalInverseWishart.weak(stats).point("mode").covariance
    want = stats.scatter / 9 * (1 - (3 / 8) ** 4)
    want[np.diag_indices(3)] = np.diagonal(stats.scatter) / 9
    np.testing.assert_allclose(mode, want, rtol=1e-12)


def test_priors_of_members_with_one_covariance_are_multiplied(rng):
    """The mode of the product of the members' densities, and the density up to a constant."""
    x, labels = rng.normal(size=(30, 2)), np.repeat([0, 1], [10, 20])
    means, kappa = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([1.0, 3.0])
    scales, dof = np.stack([PSI, 20 * np.eye(2)]), np.array([4.0, 9.0])
    tied = Gaussian.blank(x, members=2, tied=True)
    stats = tied.collect(x, labels=labels)
    prior = NormalInverseWishart(means, kappa, scales, dof)
    model, post = tied.refit(stats, prior), prior.update(stats)
    np.testing.assert_allclose(model.mean, post.mean, rtol=1e-12)
    np.testing.assert_allclose(model.covariance, post.scale.sum(axis=0) / (dof + 4.0 + [10, 20]).sum(), rtol=1e-12)

    def log_density(g):
        wishart = sum(scipy.stats.invwishart(dof[k], scales[k]).logpdf(g.covariance) for k in (0, 1))
        normal = [scipy.stats.multivariate_normal(means[k], g.covariance / kappa[k]).logpdf(g.mean[k]) for k in (0, 1)]
        return wishart + sum(normal)

    other = Gaussian(means, PSI)
    ours = [g.objective(stats, prior) - g.objective(stats) for g in (model, other)]
    assert ours[0] - ours[1] == pytest.approx(log_density(model) - log_density(other), rel=1e-10)

"""The normal-inverse-gamma distribution, column by column or one variance for all."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats

from likely import DomainError, FitWarning, Gaussian, ShapeError
from likely.priors import NormalInverseGamma


@pytest.fixture
def prior():
    return NormalInverseGamma([1.0, -1.0], [2.0, 0.5], [2.0, 3.0], [5.0, 6.0])


def test_its_density_is_scipys(prior, rng):
    g = prior.draw(rng)
    want = sum(
        scipy.stats.invgamma(prior.dof[j] / 2, scale=prior.scale[j] / 2).logpdf(g.covariance[j])
        + scipy.stats.norm(prior.mean[j], np.sqrt(g.covariance[j] / prior.kappa[j])).logpdf(g.mean[j])
        for j in range(2)
    )
    assert prior.log_density(g) == pytest.approx(want, rel=1e-12)


def test_the_spherical_density_is_scipys(rng):
    prior = NormalInverseGamma([1.0, -1.0], [2.0, 0.5], 2.0, 5.0, kind="spherical")
    g = prior.draw(rng)
    want = scipy.stats.invgamma(2.5, scale=1.0).logpdf(g.covariance)
    want += scipy.stats.norm(prior.mean, np.sqrt(g.covariance / prior.kappa)).logpdf(g.mean).sum()
    assert prior.log_density(g) == pytest.approx(want, rel=1e-12)


def test_points_by_formula(prior):
    np.testing.assert_allclose(prior.point("mode").covariance, [2.0 / 8.0, 3.0 / 9.0])
    np.testing.assert_allclose(prior.point("mean").covariance, [2.0 / 3.0, 3.0 / 4.0])
    np.testing.assert_allclose(
        prior.point("median").covariance,
        scipy.stats.invgamma(prior.dof / 2, scale=prior.scale / 2).median(),
        rtol=1e-10,
    )
    spherical = NormalInverseGamma([0.0] * 3, 1.0, 2.0, 5.0, kind="spherical")
    assert spherical.point("mode").covariance == pytest.approx(2.0 / (5.0 + 2 + 3))


def test_missing_values_count_for_their_own_column(prior, rng):
    x = rng.standard_normal((20, 2))
    x[::3, 1] = np.nan
    post = prior.update(Gaussian([0.0, 0.0], [1.0, 1.0]).collect(x))
    for j in range(2):
        alone = NormalInverseGamma(prior.mean[j], prior.kappa[j], prior.scale[[j]], prior.dof[[j]])
        one = alone.update(Gaussian([0.0], [1.0]).collect(x[~np.isnan(x[:, j]), j]))
        assert post.dof[j] == one.dof[0] and post.kappa[j] == one.kappa[0]
        np.testing.assert_allclose([post.mean[j], post.scale[j]], [one.mean[0], one.scale[0]], rtol=1e-13)


def test_the_evidence_of_missing_values_is_that_of_what_was_seen(prior, rng):
    x = rng.standard_normal((12, 2))
    x[::3, 1] = np.nan
    g, belief, total = Gaussian([0.0, 0.0], [1.0, 1.0]), prior, 0.0
    for row in x:
        total += float(belief.predictive().log_prob(row[None])[0])
        belief = belief.update(g.collect(row[None]))
    assert prior.log_evidence(g.collect(x)) == pytest.approx(total, abs=1e-11)


def test_predictives(prior):
    t = prior.predictive()
    want = [
        scipy.stats.t(
            prior.dof[j], prior.mean[j], np.sqrt(prior.scale[j] / prior.dof[j] * (1 + 1 / prior.kappa[j]))
        ).logpdf(0.3)
        for j in (0, 1)
    ]
    assert t.log_prob([[0.3, 0.3]])[0] == pytest.approx(sum(want), rel=1e-12)
    joint = NormalInverseGamma([1.0, -1.0], [2.0, 0.5], 2.0, 5.0, kind="spherical").predictive()
    shape = np.diag(2.0 / 5.0 * np.array([1.5, 3.0]))
    assert joint.log_prob([[0.3, 0.3]])[0] == pytest.approx(
        scipy.stats.multivariate_t([1.0, -1.0], shape, df=5.0).logpdf([0.3, 0.3]), rel=1e-12
    )


@pytest.mark.parametrize("kind", ["diagonal", "spherical"])
def test_a_tied_distribution_meets_its_variances_once(rng, kind):
    """K means, one set of variances: dof grow by all rows, and the mode divides by K means more."""
    x, labels = rng.standard_normal((30, 2)), np.arange(30) % 3
    scale, dof = (np.ones(2), np.full(2, 4.0)) if kind == "diagonal" else (1.0, 4.0)
    prior = NormalInverseGamma(np.zeros((3, 2)), 1.0, scale, dof, kind=kind, tied=True)
    g = Gaussian(np.zeros((3, 2)), np.ones(2) if kind == "diagonal" else 1.0)
    post = prior.update(g.collect(x, labels=labels))
    assert np.array_equal(np.ravel(post.dof), [34.0] * 2 if kind == "diagonal" else [64.0])
    assert np.ravel(post.kappa).tolist() == [11.0] * 6
    mode = post.point("mode")
    assert mode.tied and mode.covariance.shape == g.covariance.shape
    np.testing.assert_allclose(
        mode.covariance, post.scale / (post.dof + 2 + (3 if kind == "diagonal" else 6)), rtol=1e-14
    )


@pytest.mark.parametrize("kind", ["diagonal", "spherical"])
def test_the_weak_prior(rng, kind):
    x = rng.standard_normal((1, 3)) * [1.0, 1e-6, 0.0] + [0.0, 1.0, 7.0]
    with pytest.warns(FitWarning, match="constant over all data"):
        assert np.isfinite(Gaussian.fit(x, kind=kind, prior="weak").log_prob(x)).all()
    many = rng.standard_normal((500, 3))
    plain, weak = Gaussian.fit(many, kind=kind), Gaussian.fit(many, kind=kind, prior="weak")
    np.testing.assert_allclose(weak.covariance, plain.covariance, rtol=1e-2)
    stats = Gaussian.blank(many, kind=kind).collect(many)
    mode = NormalInverseGamma.weak(stats, kind).point("mode").covariance
    np.testing.assert_allclose(mode, plain.covariance, rtol=1e-10)  # its mode is the pooled variance


@pytest.mark.parametrize(
    ("parts", "options", "error"),
    [
        (([0.0], 0.0, 1.0, 1.0), {}, DomainError),
        (([0.0], 1.0, 0.0, 1.0), {}, DomainError),
        (([0.0], 1.0, 1.0, 0.0), {}, DomainError),
        (([0.0, 0.0], 1.0, [1.0, 1.0, 1.0], 3.0), {}, ShapeError),
        (([0.0, 0.0], 1.0, [1.0, 1.0], 3.0), {"kind": "spherical"}, ShapeError),
        (([0.0], 1.0, 1.0, 1.0), {"kind": "full"}, DomainError),
        (([np.inf], 1.0, 1.0, 1.0), {}, DomainError),
    ],
)
def test_what_is_no_such_distribution_is_refused(parts, options, error):
    with pytest.raises(error, match=r"^NormalInverseGamma: "):
        NormalInverseGamma(*parts, **options)


def test_a_mean_needs_enough_degrees_of_freedom():
    with pytest.raises(DomainError, match="needs dof above 2"):
        NormalInverseGamma([0.0], 1.0, 1.0, 2.0).point("mean")


def test_kinds_do_not_mix(prior):
    full, spherical = Gaussian([0.0, 0.0], np.eye(2)), Gaussian([0.0, 0.0], 1.0)
    for g in (full, spherical):
        stats = g.collect(np.zeros((3, 2)))
        with pytest.raises(DomainError, match="needs a prior for a"):
            g.refit(stats, prior)
        with pytest.raises(DomainError, match="needs a prior for a"):
            g.objective(stats, prior)
    with pytest.raises(ShapeError, match="statistics of 2 columns"):
        prior.update(Gaussian([0.0], [1.0]).collect(np.zeros((3, 1))))


def test_the_evidence_refuses_an_e_step(prior):
    stats = Gaussian([0.0, 0.0], np.eye(2)).collect([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(DomainError, match="complete rows"):
        prior.log_evidence(stats)


def test_a_spherical_weak_prior_pools_what_was_seen(rng):
    """One variance for all entries: a column that was never seen has no say in it, a constant one has its share."""
    x = 1e-6 * rng.standard_normal((50, 3))
    x[:, 2] = np.nan
    for data in (x, np.where(np.arange(3) == 2, 7.0, x)):
        stats = Gaussian.blank(data, kind="spherical").collect(data)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            mode = NormalInverseGamma.weak(stats, "spherical").point("mode").covariance
        said = [str(w.message) for w in told]
        assert said == [] if np.isnan(data).any() else "column 2 is constant over all data: this reduces" in said[0]
        seen = ~np.isnan(data)
        want = np.nansum((data - np.nanmean(np.where(seen, data, 0.0), axis=0)) ** 2) / seen.sum()
        assert mode == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("kind", ["diagonal", "spherical"])
def test_priors_of_each_member_add_up_for_one_covariance(rng, kind):
    x, labels = rng.normal(size=(30, 2)) * [1.0, 3.0], np.repeat([0, 1, 2], 10)
    tied = Gaussian.blank(x, members=3, kind=kind, tied=True)
    scale, dof = rng.uniform(1, 5, (3, 2)), rng.uniform(2, 6, (3, 2))
    scale, dof = (scale, dof) if kind == "diagonal" else (scale[:, 0], dof[:, 0])
    prior = NormalInverseGamma(rng.normal(size=(3, 2)), 1.0, scale, dof, kind=kind)
    stats = tied.collect(x, labels=labels)
    found = tied.refit(stats, prior)
    best = found.objective(stats, prior)
    for _ in range(20):
        near = found.replace(
            mean=found.mean + 0.05 * rng.normal(size=(3, 2)),
            covariance=np.asarray(found.covariance * np.exp(0.05 * rng.normal(size=found.covariance.shape))),
        )
        assert found.tied and near.objective(stats, prior) < best

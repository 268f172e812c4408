"""Rows that came before count as rows: the prior is what they would have said."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DomainError, Gaussian, Prior, ShapeError
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.priors.pseudo_observations import PseudoObservations


@pytest.fixture
def prior():
    return PseudoObservations([0.5, -1.0, 0.0], 2.0, np.diag([3.0, 2.0, 1.0]) + 0.3, 5.0)


def test_plays_the_role(prior):
    assert isinstance(prior, Prior)


def test_updates_add(prior, rng):
    g = Gaussian(np.zeros(3), np.eye(3))
    a, b = g.collect(rng.normal(size=(9, 3))), g.collect(rng.normal(size=(5, 3)) + 3)
    once, twice = prior.update(a + b), prior.update(a).update(b)
    for name in ("mean", "kappa", "scale", "rows"):
        np.testing.assert_allclose(getattr(once, name), getattr(twice, name), rtol=1e-12, atol=1e-12)


def test_it_is_the_likelihood_of_its_rows(rng):
    """A prior made of rows, all counted alike, weighs a model as the rows do."""
    x = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 3))
    g = Gaussian.fit(x)
    stats = g.collect(x)
    prior = PseudoObservations(stats.mean, 20.0, stats.scatter, 20.0)
    for other in (g, Gaussian([1.0, 0.0, 2.0], np.eye(3)), FactorGaussian([1.0, 0.0, 2.0], np.ones((3, 1)), 0.5)):
        assert prior.log_density(other) == pytest.approx(other.log_prob(x).sum(), rel=1e-10)


def test_the_mode_beats_its_neighbors(prior, rng):
    best = prior.point()
    for _ in range(50):
        wide = best.covariance + 1e-2 * np.outer(*[rng.normal(size=3)] * 2)
        assert prior.log_density(Gaussian(best.mean + 1e-2 * rng.normal(size=3), wide)) < prior.log_density(best)


@pytest.mark.parametrize("kind", ["spherical", "diagonal"])
def test_refit_finds_the_posterior_mode(prior, rng, kind):
    f = FactorGaussian.blank(rng.normal(size=(9, 3)), factors=1, kind=kind)
    stats = f.collect(rng.normal(size=(9, 3)) * [1, 2, 3])
    best = f.refit(stats, prior)
    top = best.objective(stats, prior)
    for _ in range(100):
        near = FactorGaussian(
            best.mean + 1e-2 * rng.normal(size=3), best.loadings + 1e-2 * rng.normal(size=(3, 1)),
            best.noise_variance * np.exp(1e-2 * rng.normal(size=best.noise_variance.shape)),
        )  # fmt: skip
        assert near.objective(stats, prior) <= top + 1e-9


def test_stacks_are_their_members(prior, rng):
    f = FactorGaussian.blank(rng.normal(size=(9, 3)), factors=1, members=2)
    x = rng.normal(size=(30, 3))
    stats = f.collect(x, labels=np.arange(30) % 2)
    both = f.refit(stats, prior)
    for k in (0, 1):
        alone = f.member(k).refit(stats.member(k), prior)
        np.testing.assert_allclose(both.loadings[k], alone.loadings, rtol=1e-10, atol=1e-12)
    want = [prior.log_density(both.member(k)) for k in (0, 1)]
    np.testing.assert_allclose(prior.log_density(both), want)
    np.testing.assert_allclose(prior.log_density(both.gaussian), want)


def test_weak_needs_rows_and_says_what_is_constant(rng):
    f = FactorGaussian.blank(np.ones((3, 2)), factors=1)
    with pytest.raises(DomainError, match="at least one row"):
        f.weak_prior(f.collect(np.empty((0, 2))))
    with pytest.warns(match="constant over all data"):
        f.weak_prior(f.collect(np.column_stack([rng.normal(size=9), np.ones(9)])))


def test_what_it_refuses(prior, rng):
    for verb, arguments in (("draw", (rng,)), ("predictive", ()), ("log_evidence", (None,))):
        with pytest.raises(DomainError, match="normalized prior"):
            getattr(prior, verb)(*arguments)
    with pytest.raises(DomainError, match="only the"):
        prior.point("mean")
    with pytest.raises(ShapeError, match="scale must have shape"):
        PseudoObservations([0.0, 0.0], 1.0, np.eye(3), 1.0)
    with pytest.raises(DomainError, match="must be positive"):
        PseudoObservations([0.0], 0.0, [[1.0]], 1.0)
    with pytest.raises(DomainError, match="positive definite"):
        PseudoObservations([0.0], 1.0, [[-1.0]], 1.0)


def test_of_a_column_without_scatter_it_says_nothing(rng):
    part = PseudoObservations([0.5, -1.0], 2.0, [[3.0, 0.3], [0.3, 1.0]], 5.0)
    scale = np.zeros((3, 3))
    scale[np.ix_([0, 2], [0, 2])] = part.scale
    whole = PseudoObservations([0.5, 9.0, -1.0], 2.0, scale, 5.0)
    assert whole.known.tolist() == [True, False, True] and part.known.all()
    f = FactorGaussian(rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 1)), [0.4, 0.7])
    for distribution in (f, f.gaussian, f.member(0)):
        np.testing.assert_allclose(
            whole.log_density(distribution), part.log_density(distribution.marginal([0, 2])), rtol=1e-12
        )
    with pytest.raises(DomainError, match="positive definite"):
        PseudoObservations([0.0, 0.0], 1.0, np.zeros((2, 2)), 1.0)


def test_weak_says_nothing_of_a_column_that_no_row_shows(rng):
    x = np.insert(rng.normal(size=(30, 2)), 1, np.nan, axis=1)
    f = FactorGaussian(np.zeros(3), np.ones((3, 1)), 1.0)
    prior = f.weak_prior(f.collect(x))
    assert prior.known.tolist() == [True, False, True]
    two = f.marginal([0, 2])
    np.testing.assert_allclose(prior.scale[np.ix_([0, 2], [0, 2])], two.weak_prior(two.collect(x[:, [0, 2]])).scale)


@pytest.mark.parametrize("each", [False, True])
def test_one_covariance_for_all_members_is_the_mode(prior, rng, each):
    """The rows that came before add up, as those of now do: nothing near explains both better."""
    x, labels = rng.normal(size=(40, 3)) * np.repeat([1.0, 4.0], [10, 30])[:, None], np.repeat([0, 1], [10, 30])
    if each:
        prior = PseudoObservations(
            np.stack([prior.mean, -prior.mean]), [1.0, 0.5], np.stack([prior.scale, 9 * prior.scale]), [3.0, 5.0]
        )
    tied = Gaussian.blank(x, members=2, tied=True)
    stats = tied.collect(x, labels=labels)
    found = tied.refit(stats, prior)
    assert found.tied
    rows = np.broadcast_to(prior.rows, 2).sum() if each else prior.rows
    scatter = stats.scatter.sum(axis=0) + (prior.scale.sum(axis=0) if each else prior.scale)
    for k in range(2):
        kappa, n = np.broadcast_to(prior.kappa, 2)[k], stats.weight[k]
        delta = stats.mean[k] - np.broadcast_to(prior.mean, (2, 3))[k]
        scatter = scatter + kappa * n / (kappa + n) * np.outer(delta, delta)
    np.testing.assert_allclose(found.covariance, scatter / (rows + 40), rtol=1e-12)
    best = found.objective(stats, prior)
    for _ in range(20):
        root = np.linalg.cholesky(found.covariance) @ (np.eye(3) + 0.02 * rng.normal(size=(3, 3)))
        near = found.replace(mean=found.mean + 0.05 * rng.normal(size=(2, 3)), covariance=root @ root.T)
        assert near.objective(stats, prior) < best

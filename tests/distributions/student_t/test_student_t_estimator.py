"""A robust density in all places where a Gaussian one stands."""

import numpy as np
import pytest

import likely as lk


def classes(n=150, seed=0):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.standard_normal((n, 2)), rng.standard_normal((n, 2)) + [4.0, 0.0]])
    return x, np.repeat(["a", "b"], n)


@pytest.mark.slow
def test_wrong_rows_do_not_cost_a_classifier_its_boundary():
    x, y = classes()
    spoilt = x.copy()
    spoilt[:30] = [40.0, 40.0]  # a fifth of class a
    clean, _ = classes(seed=1)
    robust = lk.BayesClassifier(lk.StudentTDensity()).fit(spoilt, y).score(clean, y)
    plain = lk.BayesClassifier(lk.GaussianDensity()).fit(spoilt, y).score(clean, y)
    assert robust > 0.95 and robust > plain + 0.05


@pytest.mark.slow
def test_mixtures_of_t_distributions_keep_their_groups_apart_from_noise():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.standard_t(2.0, (150, 2)), rng.standard_t(2.0, (150, 2)) + [12.0, 0.0]])
    mixture = lk.MixtureDensity(lk.StudentTDensity(), 2, random_state=0).fit(x)
    centers = mixture.model_.components.center[np.argsort(mixture.model_.components.center[:, 0])]
    assert np.abs(centers - [[0.0, 0.0], [12.0, 0.0]]).max() < 0.5
    assert (mixture.model_.components.dof < 6).all()


@pytest.mark.slow
def test_states_of_a_chain_emit_t_distributions():
    rng = np.random.default_rng(4)
    states = np.repeat([0, 1, 0, 1], 60)
    x = np.where(states, 5.0, 0.0)[:, None] + rng.standard_t(2.0, (240, 1))
    hmm = lk.HMMDensity(lk.StudentTDensity(), 2, random_state=0).fit([x])
    centers = np.sort(hmm.model_.emission.center[:, 0])
    assert np.abs(centers - [0.0, 5.0]).max() < 0.6


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical", "independent"])
def test_kinds_and_fixed_dof(kind):
    x, _ = classes()
    density = lk.StudentTDensity(kind, 4.0).fit(x)
    assert density.model_.kind == kind and (np.asarray(density.dof_) == 4.0).all()
    assert density.model_.n_parameters < lk.StudentTDensity(kind).fit(x).model_.n_parameters
    assert np.isfinite(density.score(x)) and density.sample(3, random_state=0).shape == (3, 2)


@pytest.mark.slow
def test_a_part_of_a_product():
    x, _ = classes()
    product = lk.ProductDensity(lk.StudentTDensity()).fit(x)
    assert np.isfinite(product.score(x))


@pytest.mark.slow
def test_the_weak_prior_costs_nothing_where_entries_are_missing():
    """0.5 nats per row, when the prior was made of rows that a distribution without correlations had filled."""
    rng = np.random.default_rng(0)
    causes = np.random.default_rng(7).normal(size=(2, 6))

    def draw(n):
        rows = rng.normal(size=(n, 2)) @ causes + 0.1 * rng.normal(size=(n, 6))
        return rows / np.sqrt(rng.chisquare(5, (n, 1)) / 5)

    x, new = draw(200), draw(2000)
    x[rng.random(x.shape) < 0.15] = np.nan
    weak, plain = (lk.StudentTDensity(prior=prior).fit(x).score(new) for prior in ("weak", None))
    assert weak > plain - 0.02

"""Priors of the Gaussian are distributions over Gaussians: draws, densities, entropies and divergences agree."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk

PAIRS = {
    "wishart": (
        lk.priors.NormalInverseWishart([0.5, -1.0], 2.0, [[3.0, 0.4], [0.4, 2.0]], 7.0),
        lk.priors.NormalInverseWishart([0.0, 0.0], 1.0, [[2.0, 0.0], [0.0, 2.5]], 6.0),
    ),
    "gamma": (
        lk.priors.NormalInverseGamma([0.5, -1.0], [2.0, 3.0], [3.0, 1.0], [7.0, 9.0]),
        lk.priors.NormalInverseGamma([0.0, 0.0], 1.0, [2.0, 2.5], 6.0),
    ),
    "spherical": (
        lk.priors.NormalInverseGamma([0.5, -1.0], 2.0, 3.0, 7.0, kind="spherical"),
        lk.priors.NormalInverseGamma([0.0, 0.0], 1.0, 2.0, 6.0, kind="spherical"),
    ),
    "mean": (
        lk.priors.MeanGivenCovariance(lk.Gaussian([0.5, -1.0], [[1.0, 0.2], [0.2, 2.0]]), 2.0),
        lk.priors.MeanGivenCovariance(lk.Gaussian([0.0, 0.0], [[2.0, 0.0], [0.0, 1.5]]), 2.0),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_entropy_and_divergence_are_expectations(name, rng):
    p, q = PAIRS[name]
    models = p.sample(40_000, rng)
    surprisal, ratio = -p.log_prob(models), p.log_prob(models) - q.log_prob(models)
    for exact, draws in ((p.entropy(), surprisal), (p.kl(q), ratio)):
        assert abs(draws.mean() - exact) < 5 * draws.std() / np.sqrt(len(draws))
    assert p.kl(p) == pytest.approx(0, abs=1e-12) and p.kl(q) > 0.05
    assert p.kl(q, bits=True) == pytest.approx(p.kl(q) / np.log(2))


@pytest.mark.parametrize("name", PAIRS)
def test_draws_have_the_mean_they_should(name, rng):
    p, _ = PAIRS[name]
    models = p.sample(40_000, rng)
    center = p.belief.mean if name == "mean" else p.mean
    error = models.mean.std(axis=0) / np.sqrt(40_000)
    assert (np.abs(models.mean.mean(axis=0) - center) < 5 * error).all()
    if name != "mean":
        spread = models.covariance
        assert (np.abs(spread.mean(axis=0) - p.point("mean").covariance) < 6 * spread.std(axis=0) / 200).all()

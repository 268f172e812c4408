"""Gamma variates in logs, and probabilities from them, where the variates themselves would underflow."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.numerics.gamma_draws import draw_probabilities, log_gamma_variates


def test_logs_of_gamma_variates():
    """E log G(α) = ψ(α), which is close to −1/α for small α."""
    for alpha, mean, deviation in ((3.0, 0.92278, 0.62844), (1e-8, -1e8, 1e8)):
        logs = log_gamma_variates(np.array(alpha), (100_000,), np.random.default_rng(0))
        assert logs.mean() == pytest.approx(mean, abs=5 * deviation / np.sqrt(100_000))


@pytest.mark.parametrize("scale", [1e-200, 1e-307, 1e-311])
def test_tiny_parameters_choose_one_category_by_their_ratios(scale):
    alpha = scale * np.array([2.0, 3.0, 5.0])
    draws = draw_probabilities(alpha, 20_000, np.random.default_rng(1))
    assert np.isin(draws, (0.0, 1.0)).all() and (draws.sum(axis=1) == 1).all()
    assert np.abs(draws.mean(axis=0) - [0.2, 0.3, 0.5]).max() < 0.015  # four standard errors


@pytest.mark.parametrize(
    "tiny",
    [
        lk.Dirichlet([2e-311, 3e-311]), lk.distributions.DirichletMultinomial([2e-311, 3e-311], 7),
        lk.distributions.BetaBinomial(7, 2e-311, 3e-311), lk.NegativeBinomial(1e-200, 1e-310),
        lk.distributions.BetaNegativeBinomial(1e-200, 1e-200, 1e108),
        lk.distributions.BetaNegativeBinomial(1e-162, 1.5, 1e308),
    ],
)  # fmt: skip
def test_distributions_of_tiny_parameters_can_be_sampled(tiny):
    assert np.isfinite(tiny.sample(100, np.random.default_rng(2))).all()

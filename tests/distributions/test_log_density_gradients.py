"""Slopes by formula are those that differences find, for every distribution that has formulas."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.distributions.log_density_gradients import formulas_of
from likely.distributions.unconstrained_parameters import FreeParameters, declare_constraints
from tests.public_names import public

FULL = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]])
DISTRIBUTIONS = {
    "Gaussian": lk.Gaussian([0.0, 1.0, -1.0], FULL),
    "Gaussian of one column": lk.Gaussian([2.0], [[4.0]]),
    "Gaussian diagonal": lk.Gaussian([0.0, 1.0], [0.5, 4.0]),
    "Gaussian spherical": lk.Gaussian([0.0, 1.0, 2.0], 3.0),
    "StudentT": lk.StudentT([0.0, 1.0, -1.0], FULL, 4.0),
    "StudentT of one column": lk.StudentT([2.0], [[4.0]], 3.0),
    "StudentT diagonal": lk.StudentT([0.0, 1.0], [0.5, 4.0], 6.0),
    "StudentT spherical": lk.StudentT([0.0, 1.0], 3.0, 6.0),
    "StudentT independent": lk.StudentT([0.0, 1.0], [0.5, 4.0], [3.0, 6.0], kind="independent"),
    "StudentT almost Gaussian": lk.StudentT([0.0, 1.0], [0.5, 4.0], 1e6),
    "Poisson": lk.Poisson([3.0, 0.5]),
    "Bernoulli": lk.Bernoulli([0.3, 0.8]),
    "Categorical": lk.Categorical([0.2, 0.3, 0.5]),
    "NegativeBinomial": lk.NegativeBinomial([2.0, 5.0], [0.4, 0.7]),
    "Gamma": lk.Gamma([2.0, 0.7], [3.0, 0.1]),
    "Beta": lk.Beta([2.0, 0.7], [3.0, 4.0]),
    "Dirichlet": lk.Dirichlet([2.0, 3.0, 0.9]),
    "Laplace": lk.Laplace([0.0, 3.0], [1.0, 5.0]),
    "Cauchy": lk.distributions.Cauchy([0.0, 3.0], [1.0, 5.0]),
    "Exponential": lk.Exponential([2.0, 0.1]),
    "ChiSquare": lk.distributions.ChiSquare([3.0, 9.0]),
    "Lomax": lk.distributions.Lomax([3.0, 1.5], [2.0, 0.1]),
    "VonMises": lk.distributions.VonMises([0.0, 2.0], [2.0, 9.0]),
    "Binomial": lk.Binomial([5, 9], [0.3, 0.6]),
    "BetaBinomial": lk.distributions.BetaBinomial([5, 9], [2.0, 0.8], [3.0, 1.0]),
}


def beside(distribution, rng):
    """Formulas, differences, θ somewhat off the distribution, and rows."""
    free = FreeParameters(distribution)
    return formulas_of(free), free, free.start + 0.1 * rng.normal(size=len(free.start)), distribution.sample(40, rng)


def test_every_formula_is_tested():
    with_scores = {
        kind.__name__ for kind in public().values() if isinstance(kind, type) and "_parameter_score" in vars(kind)
    }
    assert {name.split()[0] for name in DISTRIBUTIONS} == with_scores


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_slopes(name, rng):
    fast, free, theta, x = beside(DISTRIBUTIONS[name], rng)
    z, fine = fast.table(x)
    assert fine.all()
    slopes = free.scores(theta, x)
    assert fast.scores(theta, z) == pytest.approx(slopes, rel=1e-6, abs=1e-7)
    assert fast.scores(theta, z[:1]) == pytest.approx(slopes[:1], rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_one_parameter_alone(name, rng):
    distribution = DISTRIBUTIONS[name]
    for part in FreeParameters(distribution).names:
        free = FreeParameters(distribution, (part,))
        x = distribution.sample(20, rng)
        fast = formulas_of(free)
        assert fast.scores(free.start, fast.table(x)[0]) == pytest.approx(
            free.scores(free.start, x), rel=1e-6, abs=1e-7
        )


@pytest.mark.parametrize(
    ("distribution", "x"),
    [
        (lk.Gaussian([0.0, 0.0], 1.0), [[1.0, np.nan]]), (lk.Gamma(1.0, 1.0), [[0.0]]), (lk.Gamma(1.0, 1.0), [[-1.0]]),
        (lk.Poisson(1.0), [[1.5]]), (lk.Bernoulli(0.5), [[2.0]]), (lk.Binomial(3, 0.5), [[4.0]]),
        (lk.Categorical([0.5, 0.5]), [[2.0]]), (lk.Dirichlet([1.0, 1.0]), [[0.5, 0.6]]), (lk.Beta(1.0, 1.0), [[1.0]]),
        (lk.Laplace(0.0, 1.0), [[np.inf]]),
    ],
)  # fmt: skip
def test_rows_that_formulas_do_not_hold_for_are_known(distribution, x):
    assert not formulas_of(FreeParameters(distribution)).table(np.array(x))[1].any()


def test_distributions_of_others_and_other_ways_have_none():
    assert formulas_of(FreeParameters(lk.distributions.BetaNegativeBinomial(1.0, 3.0, 2.0))) is None
    assert formulas_of(FreeParameters(lk.Categorical([0.5, 0.5], levels=["a", "b"]))) is None
    from likely.distributions.unconstrained_parameters import TABLE

    before = TABLE["Gamma"]
    try:
        declare_constraints("Gamma", shape="positive")
        assert formulas_of(FreeParameters(lk.Gamma(1.0, 2.0))) is None
    finally:
        TABLE["Gamma"] = before

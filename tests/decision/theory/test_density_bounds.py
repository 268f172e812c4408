"""Overlaps of densities: formulas against integrals and sums, and above the Bayes error."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad

import likely as lk

S = [0.1, 0.35, 0.5, 0.9]


def test_gaussians_against_quadrature():
    p, q = lk.Gaussian([0.0], 1.0), lk.Gaussian([1.5], 6.0)
    for s in S:
        expected = quad(lambda x, s=s: float(np.exp(s * p.log_prob([[x]]) + (1 - s) * q.log_prob([[x]]))[0]), -40, 40)[
            0
        ]
        bound, _ = lk.decision.chernoff_bound(p, q, class_prior=[0.2, 0.8], exponent=s)
        np.testing.assert_allclose(bound.value, 0.2**s * 0.8 ** (1 - s) * expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("p", "q", "rows"),
    [
        (lk.Bernoulli([0.2, 0.0, 0.7]), lk.Bernoulli([0.5, 0.3, 0.7]), list(itertools.product([0, 1], repeat=3))),
        (lk.Poisson([2.0, 0.0]), lk.Poisson([5.0, 1.0]), list(itertools.product(range(60), repeat=2))),
        (lk.Categorical([0.2, 0.8, 0.0]), lk.Categorical([0.4, 0.5, 0.1]), [0, 1, 2]),
    ],
)
def test_discrete_distributions_by_enumeration(p, q, rows):
    x = np.array(rows, dtype=float)
    a, b = np.exp(p.log_prob(x)), np.exp(q.log_prob(x))
    for s in S:
        np.testing.assert_allclose(
            lk.decision.chernoff_bound(p, q, exponent=s)[0].value, 0.5 * (a**s * b ** (1 - s)).sum(), rtol=1e-10
        )
    np.testing.assert_allclose(lk.decision.bhattacharyya_bound(p, q).value, 0.5 * np.sqrt(a * b).sum(), rtol=1e-10)


def test_coins_are_half_the_bound_of_the_notes():
    for lam, D in [(0.8, 3), (0.6, 11)]:
        found = lk.decision.bhattacharyya_bound(lk.Bernoulli([lam] * D), lk.Bernoulli([1 - lam] * D))
        np.testing.assert_allclose(2 * found.value, (4 * lam * (1 - lam)) ** (D / 2), rtol=1e-12)


def test_the_best_exponent_is_the_least_of_a_grid(rng):
    for _ in range(5):
        A = rng.normal(size=(3, 3))
        p, q = lk.Gaussian(rng.normal(size=3), A @ A.T + np.eye(3)), lk.Gaussian(rng.normal(size=3), 1.0)
        prior = rng.dirichlet([2, 2])
        bound, s = lk.decision.chernoff_bound(p, q, class_prior=prior)
        grid = [
            lk.decision.chernoff_bound(p, q, class_prior=prior, exponent=t)[0].value for t in np.linspace(0, 1, 201)
        ]
        assert bound.value <= min(grid) + 1e-12 and bound.value <= prior.min() + 1e-12 and 0 <= s <= 1
        exact = lk.bayes_error(p, q, class_prior=prior)
        assert exact.value <= bound.value + 4 * exact.error
        assert bound.value <= lk.decision.bhattacharyya_bound(p, q, class_prior=prior).value + 1e-12


def test_by_draws_where_there_is_no_formula(rng):
    p, q = lk.Gaussian([0.0], 1.0), lk.Gaussian([1.5], 6.0)
    m = lk.Mixture([1.0], lk.Gaussian([[1.5]], 6.0))
    drawn, exact = lk.decision.bhattacharyya_bound(p, m, rng=rng), lk.decision.bhattacharyya_bound(p, q)
    assert exact.error == 0 < drawn.error and abs(drawn.value - exact.value) < 5 * drawn.error
    bound, s = lk.decision.chernoff_bound(p, m, rng=rng)
    best, t = lk.decision.chernoff_bound(p, q)
    assert abs(bound.value - best.value) < 5 * bound.error and abs(s - t) < 0.05


def test_distributions_that_never_meet_and_distributions_that_are_one():
    assert lk.decision.bhattacharyya_bound(lk.Categorical([1.0, 0.0]), lk.Categorical([0.0, 1.0])).value == 0
    same = lk.Gaussian([3.0, 1e9], [1e-12, 1e12])
    assert lk.decision.chernoff_bound(same, same, class_prior=[0.9, 0.1])[0].value == pytest.approx(0.1)
    assert lk.decision.bhattacharyya_bound(same, same).value == pytest.approx(0.5)
    with pytest.raises(lk.DomainError, match="0 … 1"):
        lk.decision.chernoff_bound(same, same, exponent=2.0)

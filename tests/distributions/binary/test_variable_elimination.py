"""Variable elimination against enumeration of all cells."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.distributions.binary.log_linear_fit import exact_log_z
from likely.distributions.binary.sign_products import number_of_sets
from likely.distributions.binary.variable_elimination import drawn_by_elimination, eliminated, order_of
from likely.numerics.walsh_hadamard import all_cells


def sparse_net(d, degree, seed=0):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=number_of_sets(d, 2))
    b[d + 1 :] *= rng.random(len(b) - d - 1) < degree / d
    return b


@pytest.mark.parametrize("degree", [0, 1, 3, 12])
def test_the_constant_is_that_of_all_cells(degree):
    for seed in range(3):
        b = sparse_net(12, degree, seed)
        assert eliminated(b, 12).log_z == pytest.approx(exact_log_z(b, 12, 2), abs=1e-10)


def test_draws_are_of_the_distribution():
    b = sparse_net(8, 2, 1)
    distribution, found = lk.LogLinear.normalized(b, 8), eliminated(b, 8)
    x = drawn_by_elimination(found, 40_000, np.random.default_rng(0))
    signs, cells = 2 * x - 1, 2 * all_cells(8) - 1
    want = (cells * distribution.probabilities[:, None]).T @ cells
    assert np.abs(signs.T @ signs / len(x) - want).max() <= 5 / np.sqrt(len(x))
    assert np.abs(x.mean(axis=0) - distribution.mean).max() <= 5 * 0.5 / np.sqrt(len(x))


def test_a_ladder_of_two_hundred_is_exact_and_all_with_all_is_refused():
    d = 200
    J = np.zeros((d, d))
    J[np.arange(d - 2), np.arange(2, d)] = 0.4
    J[np.arange(0, d, 2), np.arange(1, d, 2)] = 0.3
    b = np.concatenate([[0.0], np.full(d, 0.1), J[np.triu_indices(d, 1)]])
    distribution = lk.LogLinear.normalized(b, d)
    assert distribution.error == 0
    T = np.array([[[np.exp(0.4 * (a * c + e * f) + 0.3 * c * f + 0.1 * (c + f)) for c in (-1, 1) for f in (-1, 1)]
                   for a in (-1, 1) for e in (-1, 1)]])[0]  # fmt: skip
    first = np.array([np.exp(0.3 * c * f + 0.1 * (c + f)) for c in (-1, 1) for f in (-1, 1)])
    log_z, v = 0.0, first
    for _ in range(d // 2 - 1):
        v = v @ T
        log_z, v = log_z + np.log(v.sum()), v / v.sum()
    assert -distribution.weights[0] == pytest.approx(log_z + np.log(v.sum()), rel=1e-12)
    assert order_of(np.ones((40, 40)) - np.eye(40)) is None

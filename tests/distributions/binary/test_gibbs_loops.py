"""The compiled Gibbs sweep against its reference implementation."""

from __future__ import annotations

import numpy as np

from likely.distributions.binary._loops import gibbs_sweep


def test_a_sweep_visits_columns_in_turn():
    rng = np.random.default_rng(0)
    J = rng.normal(size=(6, 6))
    J = J + J.T
    np.fill_diagonal(J, 0.0)
    z = np.where(rng.random((50, 6)) < 0.5, 1.0, -1.0)
    field, chance = rng.normal(size=6), rng.logistic(size=(50, 6))
    slow, fast, couple = z.copy(), z.copy(), z @ J
    for j in range(6):
        slow[:, j] = np.where(2 * (0.7 * slow @ J[:, j] + field[j]) > chance[:, j], 1.0, -1.0)
    gibbs_sweep(fast, couple, field, 0.7, J, chance)
    assert np.array_equal(fast, slow) and not np.array_equal(fast, z)
    assert np.allclose(couple, fast @ J, atol=1e-12)

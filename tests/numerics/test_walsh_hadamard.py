"""Fast Walsh–Hadamard transform against its matrix."""

from __future__ import annotations

import numpy as np
import pytest

from likely.numerics.walsh_hadamard import all_cells, cell_numbers, cells_of, expectations


@pytest.mark.parametrize("d", [1, 2, 5, 6, 9])
def test_equals_the_matrix_of_products(d):
    rng = np.random.default_rng(d)
    z, sets = 2 * all_cells(d) - 1, all_cells(d) == 1
    phi = np.stack([z[:, s].prod(axis=1) for s in sets])  # (sets, cells)
    a = rng.normal(size=(3, 1 << d))
    assert np.allclose(expectations(a), a @ phi.T, atol=1e-12)
    assert np.allclose(cells_of(a), a @ phi, atol=1e-12)
    assert np.allclose(cells_of(expectations(a)) / (1 << d), a, atol=1e-13)


def test_cells_are_numbered_in_their_order():
    assert np.array_equal(cell_numbers(all_cells(7)), np.arange(128))

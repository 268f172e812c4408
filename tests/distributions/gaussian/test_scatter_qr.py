"""A root adds like the scatter it is a root of, and keeps digits that the scatter has lost."""

from __future__ import annotations

import numpy as np
import pytest

from likely import ShapeError
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.scatter_qr import ScatterRoot, centered_rows, root_of_rows


def squared(stats: ScatterRoot):
    return stats.root.T @ stats.root


@pytest.mark.parametrize("n", [1, 3, 50])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_it_is_a_root_of_the_scatter(rng, n, offset):
    x, w = rng.normal(size=(n, 4)) + offset, rng.random(n) + 0.1
    want = moments.of_rows(x, w, np.zeros(4))
    for made in (root_of_rows, centered_rows):
        got = made(x, w, np.zeros(4))
        np.testing.assert_allclose(squared(got), want.scatter, atol=1e-12 + 1e-14 * offset)
        np.testing.assert_allclose(got.mean, want.mean, rtol=1e-14)
        assert got.total_weight == pytest.approx(float(want.weight))


def test_it_is_a_commutative_monoid(rng):
    x, w, origin = rng.normal(size=(60, 5)) * [1e3, 1, 1, 1e-3, 1], rng.random(60), np.ones(5)
    a, b, c = (root_of_rows(x[i : i + 20], w[i : i + 20], origin) for i in (0, 20, 40))
    whole = root_of_rows(x, w, origin)
    for total in ((a + b) + c, a + (b + c), c + b + a, sum([a, b, c])):
        np.testing.assert_allclose(squared(total), squared(whole), rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(total.mean, whole.mean, rtol=1e-13)
    nothing = root_of_rows(x[:0], None, origin)
    assert (a + nothing).root is a.root and (nothing + a).root is a.root
    np.testing.assert_allclose(squared(a * 3.0), 3 * squared(a))
    np.testing.assert_allclose(
        squared(root_of_rows(x, np.full(60, 2.0), origin)), squared(2 * root_of_rows(x, None, origin))
    )


def test_small_singular_values_survive(rng):
    """1e-10 beside 1: the scatter shows rounding, the root ten digits."""
    u, v = np.linalg.qr(rng.normal(size=(100, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    u = np.linalg.qr(u - u.mean(axis=0))[0]
    x = u * [1.0, 1e-5, 1e-10] @ v.T
    parts = [root_of_rows(x[i : i + 25], None, np.zeros(3)) for i in range(0, 100, 25)]
    values = np.linalg.svd(sum(parts).root, compute_uv=False)
    np.testing.assert_allclose(values, [1.0, 1e-5, 1e-10], rtol=1e-5)
    squares = np.linalg.eigvalsh(moments.of_rows(x, None, np.zeros(3)).scatter)
    assert abs(squares[0] / 1e-20 - 1) > 1e-2


def test_what_it_cannot_use(rng):
    assert root_of_rows(np.array([[1.0, np.nan]]), None, np.zeros(2)) is None
    assert root_of_rows(np.array([[1e200, 0.0], [-1e200, 0.0]]), None, np.zeros(2)) is None
    with pytest.raises(ShapeError, match="2 columns"):
        root_of_rows(np.ones((2, 2)), None, np.zeros(2)) + root_of_rows(np.ones((2, 3)), None, np.zeros(3))

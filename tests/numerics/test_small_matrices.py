"""Cholesky factors of many small matrices against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

from likely.numerics import small_matrices, spd


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_factors_and_solutions(d):
    rng = np.random.default_rng(d)
    A = rng.normal(size=(40, d, d + 2))
    full = A @ np.swapaxes(A, 1, 2)
    root = small_matrices.roots(small_matrices.members_last(full))
    lower = np.moveaxis(root, -1, 0)
    np.testing.assert_allclose(lower, np.linalg.cholesky(full), atol=1e-12)
    np.testing.assert_allclose(small_matrices.logdet(root), np.linalg.slogdet(full)[1])
    z, many = rng.normal(size=(40, d)), rng.normal(size=(40, d, 3))
    for rows, back in ((z, z[..., None]), (many, many)):
        last = small_matrices.members_last(rows)
        want = np.linalg.solve(lower, back).reshape(rows.shape)
        np.testing.assert_allclose(np.moveaxis(small_matrices.solve(root, last), -1, 0), want, atol=1e-9)
        want = np.linalg.solve(np.swapaxes(lower, 1, 2), back).reshape(rows.shape)
        np.testing.assert_allclose(np.moveaxis(small_matrices.solve_transposed(root, last), -1, 0), want, atol=1e-9)
    got = small_matrices.apply(root, small_matrices.members_last(z))
    np.testing.assert_allclose(got.T, np.einsum("kij,kj->ki", lower, z), atol=1e-12)
    shared = small_matrices.solve(root[..., :1], small_matrices.members_last(z))
    np.testing.assert_allclose(shared, np.linalg.solve(lower[0], z.T), atol=1e-9)


@pytest.mark.parametrize("bad", [np.zeros((2, 2)), np.ones((2, 2)), np.diag([1.0, -1.0]), np.full((2, 2), np.nan)])
def test_none_where_lapack_says_none(bad):
    stack = np.stack([np.eye(2), bad])
    assert small_matrices.roots(small_matrices.members_last(stack)) is None
    if np.isfinite(bad).all():
        assert spd.cholesky(stack) is None

"""Positive definite matrices: Cholesky factors, rank detection and regularization, independent of units."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.numerics import spd

seeds = st.integers(0, 2**32 - 1)


def some(rng, d, K=None, condition=1.0):
    a = np.linalg.qr(rng.standard_normal((*(() if K is None else (K,)), d, d)))[0]
    values = 10.0 ** rng.uniform(-np.log10(condition), 0, d) if condition > 1 else 1 + rng.random(d)
    return spd.symmetric((a * values) @ np.swapaxes(a, -1, -2))


@given(seeds, st.integers(1, 6))
def test_factors_give_the_matrix_back(seed, d):
    a = some(np.random.default_rng(seed), d, 3)
    root = spd.cholesky(a)
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), a, atol=1e-14)
    assert np.array_equal(root, np.tril(root))
    np.testing.assert_allclose(spd.logdet(root), np.linalg.slogdet(a)[1], atol=1e-12)
    np.testing.assert_allclose(spd.precision(root) @ a, np.broadcast_to(np.eye(d), a.shape), atol=1e-11)


@given(seeds, st.integers(1, 6))
def test_factors_do_not_depend_on_units(seed, d):
    """Powers of two scale every number exactly, so the factor's bits scale along."""
    rng = np.random.default_rng(seed)
    a = some(rng, d)
    unit = 2.0 ** rng.integers(-200, 200, d)
    scaled = spd.cholesky(a * unit[:, None] * unit)
    np.testing.assert_allclose(scaled / unit[:, None], spd.cholesky(a), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_what_is_lost_in_rounding_is_not_safe(rng, d):
    """A column that is the others plus a share of noise: safe down to the tolerance, not below."""
    a = rng.standard_normal((d + 1, 3 * d + 5))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    for share, safe in ((1e-2, True), (1e-6, True), (1e-9, False), (0.0, False)):
        b = a.copy()
        b[d] = b[:d].sum(axis=0) / np.linalg.norm(b[:d].sum(axis=0)) + share * a[d]
        scale = 10.0 ** rng.uniform(-50, 50, d + 1)
        matrix = spd.symmetric((b @ b.T) * scale[:, None] * scale)
        assert (spd.cholesky(matrix) is not None) is safe


@pytest.mark.parametrize(
    "a", [np.zeros((2, 2)), np.ones((2, 2)), [[1.0, 2.0], [2.0, 1.0]], [[-1.0]], [[1.0, 0.0], [0.0, 0.0]]]
)
def test_what_is_not_positive_definite_has_no_factor(a):
    assert spd.cholesky(np.asarray(a, float)) is None
    assert spd.cholesky(np.stack([np.eye(len(a)), np.asarray(a, float)])) is None  # one bad member spoils a stack


@pytest.mark.parametrize(("K", "d"), [(1, 1), (1, 7), (3, 2), (9, 4), (40, 3), (200, 2)])
def test_inverse_factors_by_both_routes(rng, K, d):
    """LAPACK matrix by matrix, and row by row for many at once."""
    root = np.linalg.cholesky(some(rng, d, K, 1e4))
    w = spd.inverse_factor(root)
    assert w.shape == root.shape and np.array_equal(w, np.tril(w))
    np.testing.assert_allclose(w @ root, np.broadcast_to(np.eye(d), root.shape), atol=1e-10)
    np.testing.assert_allclose(spd._inverse_factors(root), w, rtol=1e-12, atol=1e-12 * np.abs(w).max())


def test_inverse_factors_to_the_digits_of_the_matrix(rng):
    root = np.linalg.cholesky(some(rng, 5, condition=1e8))
    exact = mpmath.inverse(mpmath.matrix(root.tolist()))
    exact = np.array(exact.tolist(), dtype=float)
    for w in (spd.inverse_factor(root), spd._inverse_factors(root[None])[0]):
        assert np.abs(w - exact).max() <= 1e-11 * np.abs(exact).max()


@given(seeds, st.integers(1, 6), st.integers(0, 5))
def test_solving_with_a_factor(seed, d, n):
    rng = np.random.default_rng(seed)
    root, z = np.linalg.cholesky(some(rng, d)), rng.standard_normal((n, d))
    want = np.linalg.solve(root, z.T)
    v = spd.solve_factor(root, z.copy())
    assert v.shape == (d, n)
    np.testing.assert_allclose(v, want, rtol=1e-10, atol=1e-12)


def test_a_missing_value_in_one_row_stays_in_that_row(rng):
    root, z = np.linalg.cholesky(some(rng, 6)), rng.standard_normal((50, 6))
    z[7, 2] = np.nan
    v = spd.solve_factor(root, z.copy())
    assert np.isnan(v[:, 7]).any() and np.isfinite(np.delete(v, 7, axis=1)).all()


@given(seeds, st.integers(1, 6), st.integers(0, 5))
def test_degenerate_matrices_live_on_a_flat(seed, d, r):
    rng = np.random.default_rng(seed)
    r = min(r, d)
    b = rng.standard_normal((d, r)) * 10.0 ** rng.uniform(-3, 3, (d, 1))
    flat = spd.rank_deficient_factor(spd.symmetric(b @ b.T))
    assert flat.factor.shape == (d, r)
    scale = np.sqrt(np.maximum(np.diagonal(b @ b.T), 1e-300))
    np.testing.assert_allclose(
        flat.factor @ flat.factor.T / np.outer(scale, scale), b @ b.T / np.outer(scale, scale), atol=1e-9
    )
    z = rng.standard_normal((5, r)) @ b.T
    assert not flat.outside_range(z, np.zeros(d)).any()
    if r:
        white = z @ flat.inverse
        np.testing.assert_allclose(
            (white**2).sum(axis=1), np.einsum("ni,ij,nj->n", z, np.linalg.pinv(b @ b.T, hermitian=True), z), rtol=1e-4
        )
    if r < d:
        assert flat.outside_range(z + scale * rng.standard_normal((5, d)), np.zeros(d)).all()


def test_a_column_that_does_not_vary_is_off_by_its_own_size():
    flat = spd.rank_deficient_factor(np.diag([4.0, 0.0]))
    z = np.array([[1.0, 0.0], [1.0, 1e-14], [1.0, 1e-10], [1.0, 1e-30]])
    assert flat.outside_range(z, np.array([0.0, 1.0])).tolist() == [False, False, True, False]
    assert flat.outside_range(z, np.array([0.0, 0.0])).tolist() == [False, True, True, True]


def test_indefinite_matrices_have_no_flat():
    assert spd.rank_deficient_factor(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert spd.rank_deficient_factor(np.array([[0.0, 1.0], [1.0, 1.0]])) is None


@given(seeds, st.integers(2, 6))
def test_repaired_matrices_are_near_and_safe(seed, d):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((d, d - 1)) * 10.0 ** rng.uniform(-5, 5, (d, 1))
    a = spd.symmetric(b @ b.T)
    fixed, rank = spd.repaired(a)
    s = spd.scales(a)
    assert rank == d - 1 and spd.cholesky(fixed) is not None
    assert np.abs((fixed - a) / s[:, None] / s).max() <= 1e-8
    assert np.array_equal(fixed, fixed.T)


def test_symmetry_is_relative():
    assert spd.is_symmetric(np.array([[1e-20, 1e-12], [1e-12 * (1 + 1e-10), 1.0]]))
    assert not spd.is_symmetric(np.array([[1e-20, 1e-12], [1.1e-12, 1.0]]))
    assert spd.scales(np.array([[4.0, 0.0], [0.0, 0.0]])).tolist() == [2.0, 1.0]


@given(seeds, st.integers(2, 12), st.integers(0, 12))
def test_semidefinite_as_the_eigenvalues_say(seed, d, rank):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, rank)) * 10.0 ** rng.integers(-6, 7, size=(d, 1))
    a = spd.symmetric(A @ A.T)
    assert spd.is_semidefinite(a) and spd.rank_deficient_factor(a) is not None
    s = spd.scales(a)
    bent = a - 1e-3 * np.diag(s**2) * (rank < d)  # a direction of no variance gets a negative one
    assert spd.is_semidefinite(bent) == (spd.rank_deficient_factor(bent) is not None)

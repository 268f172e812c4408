"""One factorisation of two vectors, against matrices written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from likely.models.joint_gaussian import Linear, backward_gain, joint, root_of, seen, triangular


def problem(rng, d=4, p=3):
    near = Linear(rng.standard_normal(p), rng.standard_normal((d, p)), rng.standard_normal((p + 1, p)), np.ones(p))
    return near, triangular(rng.standard_normal((d, d)))


def test_conditioning(rng):
    near, root = problem(rng)
    m, z = rng.standard_normal(4), rng.standard_normal(3)
    S = near.slope.T @ near.slope + near.noise.T @ near.noise
    cross = root.T @ near.slope
    found = seen(m, root, near, z - near.mean)
    np.testing.assert_allclose(found.mean, m + cross @ np.linalg.solve(S, z - near.mean))
    np.testing.assert_allclose(found.mean, m + found.white @ root)
    np.testing.assert_allclose(
        found.root.T @ found.root, root.T @ root - cross @ np.linalg.solve(S, cross.T), atol=1e-12
    )
    assert found.log_prob == pytest.approx(multivariate_normal(near.mean, S).logpdf(z))
    assert (np.tril(found.root, -1) == 0).all() and (found.root.diagonal() >= 0).all()
    np.testing.assert_allclose(near.root.T @ near.root, S)
    np.testing.assert_allclose(backward_gain(*joint(near, root)[:2]), np.linalg.solve(S, cross.T))


def test_on_a_flat(rng):
    """z₃ = z₁ + z₂ always: the third says nothing that the first two did not, and what contradicts is impossible."""
    near, root = problem(rng, p=2)
    both = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    flat = Linear(near.mean @ both, near.slope @ both, near.noise @ both, np.ones(3))
    m, e = np.zeros(4), np.array([0.3, -0.2])
    two, three = seen(m, root, near, e), seen(m, root, flat, e @ both)
    np.testing.assert_allclose(three.mean, two.mean, atol=1e-9)
    np.testing.assert_allclose(three.root.T @ three.root, two.root.T @ two.root, atol=1e-9)
    S = flat.root.T @ flat.root
    assert three.log_prob == pytest.approx(multivariate_normal(np.zeros(3), S, allow_singular=True).logpdf(e @ both))
    assert seen(m, root, flat, e @ both + [0.0, 0.0, 0.1]).log_prob == -np.inf
    assert np.isfinite(backward_gain(*joint(flat, root)[:2])).all()


def test_roots(rng):
    a = rng.standard_normal((6, 4))
    np.testing.assert_allclose(triangular(a).T @ triangular(a), a.T @ a)
    np.testing.assert_allclose(triangular(a[:2]).T @ triangular(a[:2]), a[:2].T @ a[:2], atol=1e-12)
    for c in (a.T @ a, a[:2].T @ a[:2], np.zeros((3, 3)), np.diag([1e12, 0.0, 1e-12])):
        np.testing.assert_allclose(root_of(c).T @ root_of(c), c, rtol=1e-9, atol=1e-9)

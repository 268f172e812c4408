"""Fisher's discriminant directions against the generalized eigenproblem, in any units, and where S_w is singular."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

import likely as lk
from likely.decomposition.discriminant_subspace import DiscriminantSubspace


def problem(K=4, d=6, n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    A = rng.normal(size=(d, d))
    X = (rng.normal(size=(K, d)) * 2)[y] + rng.normal(size=(n, d)) @ A
    return X, y


def scatters(X, y):
    m = X.mean(axis=0)
    W = sum((X[y == k] - X[y == k].mean(axis=0)).T @ (X[y == k] - X[y == k].mean(axis=0)) for k in np.unique(y))
    B = sum((y == k).sum() * np.outer(X[y == k].mean(axis=0) - m, X[y == k].mean(axis=0) - m) for k in np.unique(y))
    return W / len(X), B / len(X)


def moments(X, y):
    return lk.Gaussian.blank(X, members=int(y.max()) + 1).collect(X, labels=y)


@pytest.mark.parametrize("seed", range(5))
def test_both_scatters_are_diagonal_at_once(seed):
    X, y = problem(seed=seed)
    axes = DiscriminantSubspace.of_statistics(moments(X, y))
    W, B = scatters(X, y)
    assert np.abs(axes.axes @ W @ axes.axes.T - np.eye(3)).max() <= 1e-10
    assert np.abs(axes.axes @ B @ axes.axes.T - np.diag(axes.ratios)).max() <= 1e-10 * axes.ratios.max()
    want = eigh(B, W, eigvals_only=True)[::-1]
    assert np.allclose(axes.ratios, want[:3], rtol=1e-9) and (want[3:] < 1e-10).all()  # rank S_b ≤ K − 1
    assert axes.criterion("trace") == pytest.approx(np.trace(np.linalg.solve(W, B)), rel=1e-9)


def test_no_other_plane_is_better():
    X, y = problem()
    W, B = scatters(X, y)
    axes, rng = DiscriminantSubspace.of_statistics(moments(X, y), 2), np.random.default_rng(1)
    for _ in range(200):
        V = axes.axes.T + rng.normal(size=(6, 2)) * 10 ** rng.uniform(-4, 1)
        s = np.linalg.solve(V.T @ W @ V, V.T @ B @ V)
        assert np.trace(s) <= axes.criterion("trace") + 1e-9
        assert np.linalg.det(s) <= axes.criterion("determinant") + 1e-9


def test_more_axes_than_classes_differ_in():
    X, y = problem()
    W, B = scatters(X, y)
    axes = DiscriminantSubspace.of_statistics(moments(X, y), 5, beyond=True)
    assert np.abs(axes.axes @ W @ axes.axes.T - np.eye(5)).max() <= 1e-10
    assert np.allclose(axes.ratios[3:], 0, atol=1e-10)
    V = axes.axes.T
    want = np.linalg.det(np.linalg.solve(V.T @ W @ V, V.T @ (W + B) @ V))
    assert axes.criterion("determinant") == pytest.approx(want, rel=1e-9)
    with pytest.raises(lk.DomainError, match=r"at most 3 axes.*determinant"):
        DiscriminantSubspace.of_statistics(moments(X, y), 4)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e8, 1e100])
def test_linear_maps_change_nothing(scale):
    X, y = problem()
    rng = np.random.default_rng(3)
    A = rng.normal(size=(6, 6)) * scale
    before, after = (DiscriminantSubspace.of_statistics(moments(Z, y)) for Z in (X, X @ A + rng.normal(size=6) * scale))
    assert np.allclose(after.ratios, before.ratios, rtol=1e-9)
    z, w = before.project(X), after.project(X @ A + np.random.default_rng(3).normal(size=0).sum())
    w = w - w.mean(axis=0)
    assert np.abs(np.abs((z * w).mean(axis=0)) / np.sqrt((z**2).mean(axis=0) * (w**2).mean(axis=0)) - 1).max() <= 1e-8


def test_directions_without_spread_in_any_class_come_first():
    X, y = problem(3)
    Z = np.column_stack([X, X[:, 0] - X[:, 1], (y == 1).astype(float), np.full(len(X), 4.0)])
    axes = DiscriminantSubspace.of_statistics(moments(Z, y))
    assert np.isinf(axes.ratios[0]) and np.isfinite(axes.ratios[1:]).all()
    z = axes.project(Z)
    assert max(z[y == k, 0].std() for k in range(3)) <= 1e-6 * z[:, 0].std()  # it tells class 1 from the others
    assert abs(z[y == 1, 0].mean() - z[y == 0, 0].mean()) > 1
    W, _ = scatters(Z, y)
    assert (axes.axes[1] @ W @ axes.axes[1]) == pytest.approx(1.0, abs=1e-8)


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(12, 50)), np.arange(12) % 3
    axes = DiscriminantSubspace.of_statistics(moments(X, y))
    assert np.isinf(axes.ratios).all() and len(axes.axes) == 2
    shrunk = DiscriminantSubspace.of_statistics(moments(X, y), shrinkage=0.5)
    assert np.isfinite(shrunk.ratios).all()


def test_bad_input():
    with pytest.raises(lk.DataError, match="some column must vary"):
        DiscriminantSubspace.of(np.zeros((2, 2)), np.ones((3, 2)), np.ones(3))
    with pytest.raises(lk.DataError, match="class means must differ"):
        DiscriminantSubspace.of(np.eye(2), np.ones((3, 2)), np.ones(3))
    with pytest.raises(lk.DomainError, match="criterion"):
        DiscriminantSubspace.of(np.eye(1), [[0.0], [1.0]], [1, 1]).criterion("sum")
    with pytest.raises(lk.ShapeError, match="shares"):
        DiscriminantSubspace.of(np.eye(2), np.ones((3, 2)), np.ones(2))

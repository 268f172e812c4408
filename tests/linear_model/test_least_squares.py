from __future__ import annotations

import numpy as np
import pytest

from likely import ShapeError, Stats
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.scatter_qr import root_of_rows
from likely.linear_model.least_squares import (
    GramStats,
    RegressionStats,
    condition_number,
    gram_of_rows,
    inverse_gram,
)


def by_moments(z, w):
    return moments.of_rows(z, w, z[0] if len(z) else np.zeros(z.shape[1]))


def by_root(z, w):
    return root_of_rows(z, w, z[0] if len(z) else np.zeros(z.shape[1]))


KINDS = {"moments": by_moments, "root": by_root, "gram": gram_of_rows}
EPS = {"moments": 1e-10, "root": 1e-12, "gram": 1e-13}


def rows(rng, n=60, offset=0.0, constant=True):
    x = rng.standard_normal((n, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 5.0]]) + offset
    phi = np.column_stack([np.ones(n), x]) if constant else x
    y = np.column_stack([x @ [1.0, 2.0, -1.0] + rng.standard_normal(n), rng.standard_normal(n)])
    return phi, y, rng.random(n) + 0.1


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_solve_least_squares(rng, kind, constant):
    phi, y, w = rows(rng, constant=constant)
    stats = RegressionStats.of(KINDS[kind](np.column_stack([phi, y]), w), 2)
    s = np.sqrt(w)[:, None]
    wanted = np.linalg.lstsq(s * phi, s * y, rcond=None)[0]
    found, eps = stats.solve(), EPS[kind]
    np.testing.assert_allclose(found.coefficients, wanted.T, rtol=eps, atol=eps)
    rest = s * (y - phi @ wanted)
    np.testing.assert_allclose(found.residual_scatter, rest.T @ rest, rtol=10 * eps)
    np.testing.assert_allclose(inverse_gram(stats), np.linalg.inv((s * phi).T @ (s * phi)), rtol=100 * eps, atol=eps)
    mean = w @ y / w.sum()
    np.testing.assert_allclose(stats.target_scatter, w @ (y - mean) ** 2, rtol=1e-12)
    R = stats.root
    assert np.allclose(R, np.triu(R))
    z = s * np.column_stack([phi, y])
    np.testing.assert_allclose(R.T @ R, z.T @ z, rtol=1e-10, atol=1e-10)
    assert condition_number(stats) == pytest.approx(np.linalg.cond(s * phi / np.linalg.norm(s * phi, axis=0)), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_sums(rng, kind):
    phi, y, w = rows(rng)
    z = np.column_stack([phi, y])
    take = KINDS[kind]
    parts = [RegressionStats.of(take(z[a:b], w[a:b]), 2) for a, b in ((0, 7), (7, 30), (30, 60), (60, 60))]
    whole = RegressionStats.of(take(z, w), 2)
    assert isinstance(whole, Stats) and whole.total_weight == pytest.approx(w.sum())
    forward, backward = sum(parts), sum(parts[::-1])
    scale = np.sqrt(np.outer(*2 * [(whole.root**2).sum(axis=0)]))
    for other in (forward, backward, RegressionStats.of(take(z, 2 * w), 2) * 0.5):
        assert np.abs((other.root.T @ other.root - whole.root.T @ whole.root) / scale).max() < 1e-14
    twice = np.repeat(z, 2, axis=0)
    np.testing.assert_allclose(
        RegressionStats.of(take(twice, None), 2).solve().coefficients,
        RegressionStats.of(take(z, np.full(60, 2.0)), 2).solve().coefficients, rtol=EPS[kind], atol=EPS[kind],
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_equal_the_batch_far_from_the_origin(rng, kind):
    phi, y, w = rows(rng, 300, 1e8)
    z, take = np.column_stack([phi, y + 1e8]), KINDS[kind]
    whole = RegressionStats.of(take(z, w), 2).solve()
    parts = sum(RegressionStats.of(take(z[a : a + 50], w[a : a + 50]), 2) for a in range(0, 300, 50)).solve()
    np.testing.assert_allclose(parts.coefficients[:, 1:], whole.coefficients[:, 1:], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(parts.residual_scatter, whole.residual_scatter, rtol=1e-12, atol=1e-10)
    assert not whole.dependent.any()


@pytest.mark.parametrize("kind", KINDS)
def test_dependent_columns_are_named_and_the_norm_is_least(rng, kind):
    phi, y, w = rows(rng)
    phi = np.column_stack([phi, phi[:, 1] - 2 * phi[:, 2], 0 * phi[:, 0]])
    stats = RegressionStats.of(KINDS[kind](np.column_stack([phi, y]), w), 2)
    found = stats.solve()
    assert np.flatnonzero(found.dependent).tolist() == [4, 5]
    s = np.sqrt(w)[:, None]
    wanted = np.linalg.lstsq(s * phi, s * y, rcond=1e-10)[0]
    np.testing.assert_allclose(found.coefficients, wanted.T, rtol=1e-6, atol=1e-7)
    half = np.linalg.pinv(s * phi, rcond=1e-10)
    np.testing.assert_allclose(inverse_gram(stats), half @ half.T, rtol=1e-5, atol=1e-8)
    assert condition_number(stats) > 1e6


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_several_targets(rng, kind):
    phi, y, w = rows(rng)
    both = RegressionStats.of(KINDS[kind](np.column_stack([phi, y]), w), 2)
    for j in range(2):
        alone = RegressionStats.of(KINDS[kind](np.column_stack([phi, y[:, j]]), w), 1)
        np.testing.assert_allclose(
            both.of_target(j).root.T @ both.of_target(j).root, alone.root.T @ alone.root, rtol=1e-10
        )


def test_no_rows_and_other_shapes(rng):
    phi, y, _ = rows(rng)
    z = np.column_stack([phi, y])
    nothing, some = (RegressionStats.of(gram_of_rows(part, None), 2) for part in (z[:0], z))
    assert nothing.total_weight == 0 and np.array_equal((nothing + some).sums.high, some.sums.high)
    with pytest.raises(ShapeError, match="must be GramStats"):
        some + RegressionStats.of(by_moments(z, None), 2)
    with pytest.raises(ShapeError, match="6 columns"):
        some.sums + gram_of_rows(z[:, 1:], None)
    assert gram_of_rows(np.array([[np.nan, 1.0]]), None) is None
    assert gram_of_rows(np.array([[1e200, 1.0]]), None) is None
    assert isinstance(some.sums, GramStats)

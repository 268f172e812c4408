"""Weight, mean and scatter keep their digits wherever the data lie, and however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely import DataError, ShapeError
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.moments import ColumnMoments, Moments, expand, packing, unpack

EXACT = 1e-12


def longdouble(x, w, origin=0.0):
    """Mean − origin and scatter in extended precision."""
    x, w = x.astype(np.longdouble) - origin, w.astype(np.longdouble)
    mean = (w[:, None] * x).sum(axis=0) / w.sum()
    z = x - mean
    return mean, (w[:, None] * z).T @ z


def check(stats, x, w, origin):
    mean, scatter = longdouble(x, w, origin)
    scale = np.sqrt(np.diagonal(scatter) / w.sum()).astype(float)
    assert np.abs((stats.shift - mean) / scale).max() <= EXACT
    if isinstance(stats, Moments):
        outer = np.sqrt(np.multiply.outer(np.diagonal(scatter), np.diagonal(scatter)))
        assert np.abs((stats.scatter - scatter) / outer).max() <= EXACT
    else:
        assert np.abs(stats.scatter / np.diagonal(scatter) - 1).max() <= EXACT


@pytest.mark.some_cases(9)
@pytest.mark.parametrize("columns", [1, 3, 60])  # beyond 48, members are done one by one
@pytest.mark.parametrize("offset", [0.0, 1e8, -1e8])
@pytest.mark.parametrize("far", [0.0, 1.0])
def test_moments_of_rows_to_twelve_digits(rng, offset, far, columns):
    """About an origin near the data (far = 0), and about one that a block has drifted away from."""
    x = rng.standard_normal((3000, columns)) @ (np.eye(columns) + rng.random((columns, columns)) / columns)
    x += offset + np.linspace(0, 50 * far, 3000)[:, None]
    w, origin = rng.random(3000), np.full(columns, offset)
    check(moments.of_rows(x, w, origin), x, w, origin)
    check(moments.of_rows(x, None, origin), x, np.ones(3000), origin)
    check(moments.columns_of_rows(x, w, origin), x, w, origin)
    both = np.stack([w, np.where(np.arange(3000) < 100, w, 0.0)], axis=1)
    for stats in (moments.of_weighted_rows(x, both, origin), moments.columns_of_rows(x, both, origin)):
        check(stats.member(0), x, w, origin)
        check(stats.member(1), x[:100], w[:100], origin)


@pytest.mark.parametrize("distance", [3.0, 19.0, 30.0, 1e3, 1e6, 1e9])
def test_members_far_from_each_other_keep_their_digits(rng, distance):
    labels = rng.integers(0, 4, 1000)
    x = rng.standard_normal((1000, 2)) + distance * labels[:, None]
    w = np.eye(4)[labels]
    for stats in (moments.of_weighted_rows(x, w, np.zeros(2)), moments.columns_of_rows(x, w, np.zeros(2))):
        for k in range(4):
            one = stats.member(k)
            mean, scatter = longdouble(x[labels == k], np.ones((labels == k).sum()))
            found = np.diagonal(one.scatter) if isinstance(one, Moments) else one.scatter
            assert np.abs(found / np.diagonal(scatter) - 1).max() <= EXACT
            assert np.abs(one.shift - mean).max() <= 1e-12 * max(distance, 1.0)


@pytest.mark.parametrize("value", [1e3, 1e8, 1e160, 1e300])
def test_a_row_without_weight_does_not_matter_whatever_stands_in_it(rng, value):
    x, w = rng.standard_normal((400, 2)), rng.random(400)
    x[0], w[0] = (value, -value), 0.0
    origin = np.zeros(2)
    check(moments.of_rows(x, w, origin), x[1:], w[1:], origin)
    check(moments.columns_of_rows(x, w, origin), x[1:], w[1:], origin)
    both = np.stack([w, w], axis=1)
    check(moments.of_weighted_rows(x, both, origin).member(1), x[1:], w[1:], origin)
    check(moments.columns_of_rows(x, both, origin).member(1), x[1:], w[1:], origin)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [1e155, 1e160, 1e308])
def test_squares_that_overflow_are_an_error(rng, value):
    x = rng.standard_normal((50, 2))
    x[3, 1] = value
    w = np.ones((50, 2))
    assert moments.of_rows(x, None, np.zeros(2)) is None
    for attempt in (moments.of_weighted_rows, moments.columns_of_rows):
        with pytest.raises(DataError, match="sums of squares must be finite"):
            attempt(x, w, np.zeros(2))
    a, b = moments.of_rows(x[:3], None, np.zeros(2)), moments.of_rows(np.full((1, 2), value), None, np.zeros(2))
    for first, second in ((a, b), (a.columns(), b.columns())):
        with pytest.raises(DataError, match="sums of squares must be finite"):
            _ = first + second


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 30), st.integers(0, 30))
def test_columns_are_the_diagonal(seed, d, n, m):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((m, d)) + 5
    origin = np.zeros(d)
    a, b = moments.of_rows(x, None, origin), moments.of_rows(y, None, origin)
    whole, parts = (a + b).columns(), moments.columns_of_rows(np.concatenate([x, y]), None, origin)
    assert isinstance(whole, ColumnMoments) and np.array_equal(whole.weight, parts.weight)
    np.testing.assert_allclose(whole.shift, parts.shift, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whole.scatter, parts.scatter, rtol=1e-12, atol=1e-12)


def test_missing_values_count_for_their_own_column_only(rng):
    x = rng.standard_normal((60, 3)) + 1e8
    x[rng.random(x.shape) < 0.5] = np.nan
    x[:, 2] = np.nan
    w = rng.random((60, 2))
    stats = moments.columns_of_rows(x, w, np.full(3, 1e8))
    for k in range(2):
        for j in range(2):
            seen = ~np.isnan(x[:, j])
            mean, scatter = longdouble(x[seen, j : j + 1], w[seen, k], 1e8)
            assert stats.weight[k, j] == pytest.approx(w[seen, k].sum(), rel=1e-13)
            assert abs(stats.shift[k, j] - mean[0]) <= 1e-12
            assert stats.scatter[k, j] == pytest.approx(float(scatter[0, 0]), rel=1e-12)
    assert np.array_equal(stats.weight[:, 2], [0, 0]) and np.array_equal(stats.shift[:, 2], [0, 0])
    np.testing.assert_allclose(stats.rows, w.sum(axis=0))


def test_origins_are_moved_when_two_differ(rng):
    x, y = rng.standard_normal((20, 2)), rng.standard_normal((30, 2)) + 3
    a, b = moments.of_rows(x, None, np.zeros(2)), moments.of_rows(y, None, np.full(2, 3.0))
    both = moments.of_rows(np.concatenate([x, y]), None, np.zeros(2))
    for total in (a + b, b + a):
        np.testing.assert_allclose(total.mean, both.mean, rtol=1e-13)
        np.testing.assert_allclose(total.scatter, both.scatter, rtol=1e-13)
    assert np.array_equal((a + b).origin, a.origin) and np.array_equal((b + a).origin, b.origin)


def test_pooling_forgets_who_owned_what(rng):
    x, labels = rng.standard_normal((50, 2)), rng.integers(0, 3, 50)
    w = np.eye(3)[labels]
    for stats, whole in (
        (moments.of_weighted_rows(x, w, np.zeros(2)), moments.of_rows(x, None, np.zeros(2))),
        (moments.columns_of_rows(x, w, np.zeros(2)), moments.columns_of_rows(x, None, np.zeros(2))),
    ):
        pooled = stats.pooled()
        np.testing.assert_allclose(pooled.scatter, whole.scatter, rtol=1e-12)
        np.testing.assert_allclose(pooled.mean, whole.mean, rtol=1e-12, atol=1e-14)
        assert whole.pooled() is whole and stats.total_weight == pytest.approx(50)


def test_variances_are_zero_where_nothing_was_seen():
    assert moments.empty((), 2, np.zeros(2)).variance.tolist() == [0.0, 0.0]
    assert moments.empty((3,), 2, np.zeros(2)).variance.shape == (3, 2)


def test_statistics_of_other_columns_do_not_add():
    with pytest.raises(ShapeError, match="both must have 2 columns"):
        _ = moments.empty((), 2, np.zeros(2)) + moments.empty((), 3, np.zeros(3))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8])
def test_pairs_are_packed_around_a_circle(rng, d):
    """Each product of two columns once, by windows of one circle; `packing` says which is which."""
    u = rng.standard_normal((d, 7))
    circle, out = np.empty((d + d // 2, 7)), np.empty((1 + d + d * (d + 1) // 2, 7))
    circle[:d] = u
    expand(circle, d, out)
    i, j = packing(d)
    assert sorted(map(tuple, np.sort(np.stack([i, j], axis=1)))) == [(a, b) for a in range(d) for b in range(a, d)]
    assert np.array_equal(out[0], np.ones(7)) and np.array_equal(out[1 : d + 1], u)
    np.testing.assert_array_equal(out[d + 1 :], u[i] * u[j])
    np.testing.assert_array_equal(unpack(out[d + 1 :], d), np.einsum("in,jn->nij", u, u))


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("full", [True, False])
def test_owned_rows_are_summed_in_segments(rng, offset, full):
    x, labels, w = rng.standard_normal((500, 3)) + offset, rng.integers(-1, 40, 500), rng.random(500)
    labels[labels == 7] = 8  # member 7 has no rows
    x += 30.0 * labels[:, None]
    first = np.array([np.flatnonzero(labels == k)[0] for k in range(40) if k != 7])
    x[first], w[first] = 1e9, 0.0  # the first row of each label is far out, and counts for nothing
    origin = np.full(3, offset)
    stats = moments.of_labeled_rows(x, w, labels, 40, origin, full)
    for k in range(40):
        mine = (labels == k) & (w > 0)
        assert stats.member(k).total_weight == pytest.approx(w[mine].sum(), rel=1e-13)
        if mine.sum() > 1:
            check(stats.member(k), x[mine], w[mine], origin)
    assert np.array_equal(stats.shift[7], np.zeros(3)) and not stats.scatter[7].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_owned_rows_with_missing_values_go_another_way(rng, bad):
    x = rng.standard_normal((50, 2))
    x[3, 1] = bad
    assert moments.of_labeled_rows(x, None, np.arange(50) % 20, 20, np.zeros(2), True) is None


def test_a_constant_column_has_no_scatter():
    x = np.full((1000, 2), 0.1)
    for value in (0.1, 1e8 / 3, -7e-9):
        x[:, 0] = value
        for stats in (
            moments.of_rows(x, None, x[0]),
            moments.columns_of_rows(x, np.random.default_rng(0).random(1000), x[0]),
        ):
            assert (np.sqrt(stats.variance) <= 1e-15 * np.abs(x[0])).all()


def test_scatters_are_symmetric_to_the_bit(rng):
    x, w = rng.standard_normal((100, 4)), rng.random((100, 3))
    total = moments.of_rows(x, w[:, 0], np.zeros(4)) + moments.of_rows(x, None, np.zeros(4))
    many = moments.of_weighted_rows(x, w, np.zeros(4))
    for scatter in (total.scatter, many.scatter, (many + many).scatter):
        assert np.array_equal(scatter, np.swapaxes(scatter, -1, -2))

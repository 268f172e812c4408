"""Rows with labels: whatever way they are sorted and cut, each member gets the moments of its own rows."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DataError, Gaussian
from likely.core.arrays import BadEntry
from likely.distributions.gaussian import gaussian, rows_by_label
from likely.distributions.gaussian.rows_by_label import by_label, gather_rows, rows_per_member, sum_over_slices

KINDS = ["full", "diagonal", "spherical"]


def stack(members, d, kind="full"):
    spread = {"full": np.repeat(np.eye(d)[None], members, axis=0), "diagonal": np.ones((members, d))}
    return Gaussian(np.zeros((members, d)), spread.get(kind, np.ones(members)), kind=kind)


def plain(x, w, labels, k, origin):
    """Weight, mean − origin and scatter of a member's rows in extended precision."""
    mine = labels == k
    x, w = x[mine].astype(np.longdouble) - origin, w[mine].astype(np.longdouble)
    mean = (w[:, None] * x).sum(axis=0) / w.sum()
    return w.sum(), mean, (w[:, None] * (x - mean)).T @ (x - mean)


def same(stats, x, w, labels, members):
    for k in range(members):
        one = stats.member(k)
        weight, shift, scatter = plain(x, w, labels, k, one.origin)
        scale = np.sqrt(np.diagonal(scatter).astype(float) / float(weight))
        assert one.total_weight == pytest.approx(float(weight), rel=1e-12)
        assert np.abs((one.shift - shift) / scale).max() <= 1e-12
        found = one.scatter if one.scatter.ndim == 2 else np.diag(one.scatter)
        want = scatter if one.scatter.ndim == 2 else np.diag(np.diagonal(scatter))
        assert np.abs((found - want) / np.multiply.outer(scale, scale)).max() <= 1e-12 * float(weight)


@pytest.mark.parametrize("members", [1, 3, 255, 256, 70_000])
def test_rows_in_the_order_of_their_labels(rng, members):
    labels = rng.integers(-1, members, 1000)
    order, edges = by_label(labels, members)
    assert np.array_equal(order, np.argsort(labels, kind="stable"))
    assert np.array_equal(edges, np.searchsorted(labels[order], np.arange(members + 1)))


def test_each_member_gets_its_own_rows(rng):
    x, w, labels = rng.standard_normal((50, 3)), rng.random(50), rng.integers(-1, 4, 50)
    for k, (mine, weight, at) in enumerate(rows_per_member(x, w, labels, 5)):
        assert np.array_equal(at, np.flatnonzero(labels == k))
        assert np.array_equal(mine, x[labels == k]) and np.array_equal(weight, w[labels == k])
    assert all(weight is None for _, weight, _ in rows_per_member(x, None, labels, 5))


def test_turns_cover_every_row_once():
    assert sum_over_slices(10, 4, lambda at: list(range(10))[at]) == list(range(10))
    assert sum_over_slices(0, 4, lambda at: [at]) == [slice(0, 4)]  # nothing has statistics, too


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("members", [3, 40])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_labels_are_weights_of_one_and_zero(rng, monkeypatch, kind, members, offset):
    """Rows sorted a few at a time, with some of nobody's, far from zero and from each other."""
    monkeypatch.setattr(rows_by_label, "LEAST", 64)
    monkeypatch.setattr(rows_by_label, "GATHER", 200)
    n = 40 * members
    x, w, labels = rng.standard_normal((n, 3)), rng.random(n) + 0.1, rng.integers(-1, members, n)
    x += offset + 30.0 * labels[:, None]
    distribution = stack(members, 3, kind).replace(mean=np.full((members, 3), offset))
    same(distribution.collect(x, w, labels=labels), x, w, labels, members)
    same(distribution.collect(x, labels=labels), x, np.ones(n), labels, members)


@pytest.mark.parametrize("kind", KINDS)
def test_segments_and_members_agree(rng, monkeypatch, kind):
    x, w, labels = rng.standard_normal((3000, 4)) * [1.0, 1e-3, 1e3, 7.0], rng.random(3000), rng.integers(0, 20, 3000)
    distribution, found = stack(20, 4, kind), []
    for share in (0, 10**9):  # never in segments, always
        monkeypatch.setattr(gaussian, "SEGMENT_PRODUCTS", share)
        assert distribution._in_segments == bool(share)
        found.append(distribution.collect(x, w, labels=labels))
    for a, b in zip(found[0].field_values().values(), found[1].field_values().values(), strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_cut_as_rows_come(rng, kind):
    """More rows than are sorted at a time, more than a part holds: the same statistics as of pieces."""
    d = 2
    n = gather_rows(d) + 5000
    x, labels = rng.standard_normal((n, d)), rng.integers(0, 4, n)
    distribution = stack(4, d, kind)
    whole, cut = distribution.collect(x, labels=labels), distribution.collect(x[:777], labels=labels[:777])
    cut = cut + distribution.collect(x[777:], labels=labels[777:])
    np.testing.assert_allclose(whole.mean, cut.mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(whole.scatter, cut.scatter, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_each_members_own(rng, kind):
    x, labels = rng.standard_normal((400, 3)), rng.integers(-1, 3, 400)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[labels == 2] = np.nan_to_num(x[labels == 2])  # one member's rows are complete
    x[np.flatnonzero(labels == -1)[0], 1] = np.inf  # nobody's
    distribution = stack(3, 3, kind)
    stats = distribution.collect(x, labels=labels)
    for k in range(3):
        one = distribution.member(k)
        one.__dict__["origin"] = distribution.origin
        want = one.collect(x[labels == k])
        for name, part in stats.member(k).field_values().items():
            if isinstance(part, np.ndarray) and getattr(want, name) is not None:
                np.testing.assert_allclose(part, getattr(want, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", [3, 5000, 100_000])
def test_an_infinity_is_named_by_its_row(rng, kind, row):
    x, labels = rng.standard_normal((150_000, 2)), rng.integers(0, 3, 150_000)
    x[row, 1] = -np.inf
    with pytest.raises(BadEntry, match=rf"-inf at row {row}, column 1"):
        stack(3, 2, kind).collect(x, labels=labels)


@pytest.mark.parametrize("kind", KINDS)
def test_squares_that_overflow_are_refused(kind):
    x = np.array([[1e200, 0.0], [-1e200, 1.0], [0.0, 2.0]])
    with pytest.raises(DataError, match="must be finite"):
        stack(2, 2, kind).collect(x, labels=np.zeros(3, int))


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_exact_rows(rng, kind):
    x, labels = rng.standard_normal((300, 2)).astype(np.float32), rng.integers(0, 3, 300)
    a, b = (stack(3, 2, kind).collect(z, labels=labels) for z in (x, x.astype(np.float64)))
    assert a.scatter.tobytes() == b.scatter.tobytes() and a.shift.tobytes() == b.shift.tobytes()

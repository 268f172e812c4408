"""Nearest neighbors under DTW against brute force; lower bounds are lower bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely.alignment import _loops as warp
from likely.alignment.bands import band_of, band_rows
from likely.alignment.nearest_series import envelopes, nearest
from likely.alignment.pairwise_dtw import Rules, pair_totals
from likely.alignment.series import all_series
from likely.core.job_size import job

COSTS = {"cityblock": 0, "sqeuclidean": 1, "euclidean": 2}


@pytest.fixture(autouse=True)
def large_job():
    """Small ones compare all pairs."""
    with job(math.inf):
        yield


def walks(rng, n, D=1, equal=True):
    lengths = np.full(n, 40) if equal else rng.integers(20, 50, n)
    return all_series([rng.normal(size=(T, D)).cumsum(axis=0) for T in lengths.tolist()], "test")


def brute(queries, known, k, rules, leave_out=False):
    totals = pair_totals(queries, known, rules)
    if leave_out:
        np.fill_diagonal(totals, np.inf)
    order = np.argsort(totals, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(totals, order, 1), order


@pytest.mark.some_cases(21)
@pytest.mark.parametrize("kind", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize(
    ("band", "equal"),
    [(None, True), (None, False), (4, True), ("itakura", True), (20, False), (0.4, False), (("itakura", 3.0), False)],
)
def test_search_equals_brute_force(kind, D, band, equal, rng):
    known, queries = walks(rng, 60, D, equal), walks(rng, 25, D, equal)
    rules = Rules(kind, False, band=band_of(band, "test"))
    for k in (1, 3, 60):
        found, (totals, order) = nearest(queries, known, k, rules), brute(queries, known, k, rules)
        assert (found.indices == order).all() and (found.distances == totals).all()
    found, (totals, order) = nearest(known, known, 2, rules, leave_out=True), brute(known, known, 2, rules, True)
    assert (found.indices == order).all() and (found.distances == totals).all()


def test_of_equals_the_first_wins(rng):
    one = walks(rng, 5)
    known = all_series([one.one(i % 5) for i in range(100)], "test")
    for band in (None, 3):
        found = nearest(known, known, 4, Rules(1, True, band=band_of(band, "test")))
        assert (found.indices == (np.arange(100) % 5)[:, None] + 5 * np.arange(4)).all()
        found = nearest(known, known, 1, Rules(1, True, band=band_of(band, "test")), leave_out=True)
        own = np.arange(100) % 5
        assert (found.indices[:, 0] == np.where(np.arange(100) < 5, own + 5, own)).all()


def test_integers_have_many_ties(rng):
    known = all_series(rng.integers(0, 2, (80, 6)), "test")
    for kind in COSTS.values():
        rules = Rules(kind, False)
        found, (totals, order) = nearest(known, known, 7, rules), brute(known, known, 7, rules)
        assert (found.indices == order).all() and (found.distances == totals).all()


@pytest.mark.parametrize("kind", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("band", [0, 3, 40, "itakura"])
def test_bounds_are_bounds(kind, band, rng):
    x = walks(rng, 20, 2)
    lo, hi = band_rows(band_of(band, "test"), 40, 40, "test")
    low, high = envelopes(x, lo, hi)
    totals = pair_totals(x, x, Rules(kind, False, band=band_of(band, "test")))
    tight = []
    for i in range(20):
        for j in range(20):
            span = slice(j * 40, j * 40 + 40)
            bound = warp._lb_keogh(x.one(i), low[span], high[span], kind)
            assert bound <= totals[i, j] * (1 + 1e-12)
            assert warp._lb_kim(x.one(i), x.one(j), kind) <= totals[i, j] * (1 + 1e-12)
            tight.append(bound)
    assert np.sum(tight) > (0.99 if band == 0 else 0.01) * totals.sum()


def test_bounds_save_grids(rng):
    t = np.linspace(0, 6, 60)
    X = np.concatenate([np.sin(t + p) + 0.1 * rng.normal(size=(40, 60)) for p in (0.0, 2.0, 4.0)])
    x = all_series(X, "test")
    assert nearest(x, x, 1, Rules(1, True, band=band_of(3, "test")), leave_out=True).filled < 0.5


def test_one_frame_and_constant_series():
    known = all_series([[1.0], [2.0], [2.0, 2.0], [5.0, 5.0, 5.0]], "test")
    found = nearest(all_series([[2.0]], "test"), known, 4, Rules(0, False))
    assert found.indices.tolist() == [[1, 2, 0, 3]] and found.distances.tolist() == [[0.0, 0.0, 1.0, 9.0]]


def test_missing_values_are_searched_too(rng):
    known = [s.copy() for s in rng.normal(size=(9, 20))]
    known[3][4:7] = np.nan
    x = all_series(known, "test")
    found = nearest(all_series([known[3]], "test"), x, 1, Rules(1, True))
    assert found.indices.tolist() == [[3]] and found.distances.tolist() == [[0.0]]


def test_bounds_save_grids_of_bands_between_unequal_lengths(rng):
    lengths = rng.integers(40, 60, 90).tolist()
    shapes = [np.sin(np.linspace(0, 6, T) + 2 * (i % 3)) + 5 * (i % 3) for i, T in enumerate(lengths)]
    x = all_series([s + 0.1 * rng.normal(size=len(s)) for s in shapes], "test")
    assert nearest(x, x, 1, Rules(1, True, band=band_of(0.5, "test")), leave_out=True).filled < 0.5

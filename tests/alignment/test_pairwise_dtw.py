"""DTW of all pairs in vector lanes equals single pairs bit for bit, for any lengths, bands and workers."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from likely.alignment import _loops as warp
from likely.alignment import pairwise_dtw as warp_pairs
from likely.alignment.bands import band_of, band_rows
from likely.alignment.dtw import dtw
from likely.alignment.pairwise_dtw import dtw_matrix
from likely.alignment.subsequence_search import subsequence_dtw
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.job_size import job
from likely.core.ragged import Ragged


def some(rng, n, D=1, equal=True):
    return [rng.normal(size=(25 if equal else int(rng.integers(15, 40)), D)) for _ in range(n)]


def one_by_one(seqs, others, **how):
    return np.array([[dtw(a, b, **how).distance for b in others] for a in seqs])


@pytest.mark.slow
@pytest.mark.some_cases(4)
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean", "euclidean"])
def test_the_same_bits_as_one_by_one(metric, D, equal, rng):
    """In vector lanes, as in a large job, and in NumPy."""
    seqs, others = some(rng, 21, D, equal), some(rng, 18, D, equal)
    for band in (None, 0.4, ("itakura", 4.0)):
        own, across = (one_by_one(seqs, b, metric=metric, band=band) for b in (seqs, others))
        for work in (0.0, math.inf):
            with job(work):
                assert (dtw_matrix(seqs, metric=metric, band=band) == own).all()
                assert (dtw_matrix(seqs, others, metric=metric, band=band) == across).all()


@pytest.mark.parametrize(
    "how",
    [
        {"step_pattern": "symmetric 1/2"}, {"step_pattern": "asymmetric"}, {"open_begin": True, "open_end": True},
        {"metric": "cosine"}, {"metric": ("mahalanobis", [[2.0, 0.5], [0.5, 1.0]])},
    ],
)  # fmt: skip
def test_other_rules(how, rng):
    seqs = some(rng, 7, 2)
    assert (dtw_matrix(seqs, **how) == one_by_one(seqs, seqs, **how)).all()


def test_costs_of_ones_own(rng):
    seqs, others = some(rng, 6, 2, equal=False), some(rng, 4, 2, equal=False)
    for how in ({}, {"step_pattern": "symmetric 1/2"}, {"band": 0.5}, {"open_begin": True}):
        own = dtw_matrix(seqs, others, metric=lambda x, y: cdist(x, y, "cityblock"), **how)
        assert own == pytest.approx(dtw_matrix(seqs, others, metric="cityblock", **how), rel=1e-12)
    lopsided = dtw_matrix(seqs[:3], metric=lambda x, y: np.maximum(x[:, :1] - y[:, 0], 0.0))
    assert lopsided[0, 1] != lopsided[1, 0], "a function need not be symmetric"
    with pytest.raises(ShapeError, match=r"dtw_matrix \(sequences 0 and 0\): a metric must return numbers"):
        dtw_matrix(seqs, metric=lambda x, y: np.abs(x[0] - y[0]).sum())


def test_missing_values_and_masks(rng):
    seqs = some(rng, 6, 2)
    mask = np.tri(25, dtype=bool)
    assert (dtw_matrix(seqs, band=mask) == one_by_one(seqs, seqs, band=mask)).all()
    for s in seqs:
        s[rng.random(s.shape) < 0.2] = np.nan
        s[3] = np.nan
    M = dtw_matrix(seqs)
    assert one_by_one(seqs, seqs) == pytest.approx(M, rel=1e-12) and (M == M.T).all()


def test_all_forms_of_sequences_are_the_same(rng):
    X = rng.normal(size=(5, 12))
    M = dtw_matrix(X)
    for same in (list(X), X.tolist(), Ragged.from_list(list(X)), X[:, :, None], X.astype(object)):
        assert (dtw_matrix(same) == M).all()
    assert dtw_matrix(X.astype(np.float32)) == pytest.approx(M, rel=1e-5)
    assert dtw_matrix(X[:1]).tolist() == [[0.0]]


def test_the_number_of_workers_does_not_matter(rng, monkeypatch):
    seqs = some(rng, 80, 1, equal=False)
    assert sum(map(len, seqs)) ** 2 > warp_pairs.SMALL
    found = []
    for workers in (1, 2, 5):
        monkeypatch.setattr(warp_pairs, "cores", lambda workers=workers: workers)
        found.append(dtw_matrix(seqs, metric="sqeuclidean").tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("seqs", "how", "error", "words"),
    [
        ([], {}, DataError, "at least one sequence"),
        ([1.0, 2.0], {}, ShapeError, "sequence 0"),
        ("ab", {}, DataError, "several sequences"),
        (np.zeros(3), {}, ShapeError, "several sequences"),
        ([[1, 2], []], {}, DataError, "sequence 1"),
        ([[1, 2], [1, np.inf]], {}, DataError, "row 1, column 0 of sequence 1"),
        ([[1, 2], [np.nan]], {}, DataError, "of sequence 1"),
        ([[1, 2], [[1, 2]]], {}, ShapeError, "entries per frame"),
        ([np.zeros(20), np.zeros(90)], {"band": 0}, DomainError, "a radius of at least"),
        ([[1e200], [-1e200]], {"metric": "sqeuclidean"}, DomainError, "sequences 0 and 1"),
        ([np.zeros(9), np.zeros(2)], {"step_pattern": "symmetric 2"}, DomainError, "sequences 0 and 1"),
    ],
)  # fmt: skip
def test_refusals(seqs, how, error, words):
    with pytest.raises(error, match=words):
        dtw_matrix(seqs, **how)


def test_both_sides_need_the_same_width():
    with pytest.raises(ShapeError, match="1 and 2"):
        dtw_matrix([[1.0, 2.0]], [np.zeros((3, 2))])


@pytest.mark.some_cases(4)
@pytest.mark.slow
@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize("band", [0.9, 0.2, 58, 4, ("itakura", 3.0)])
def test_bands_between_unequal_lengths_fill_lanes(band, D, rng):
    seqs = [rng.normal(size=(int(T), D)) for T in rng.integers(20, 60, 40)]
    M = dtw_matrix(seqs, metric="euclidean", band=band)
    assert (one_by_one(seqs, seqs, metric="euclidean", band=band) == M).all() and (M == M.T).all()


def test_rows_of_a_band_in_the_loop_are_those_of_the_table(rng):
    meant = (None, 0, 1, 2, 7, 0.05, 0.29, 1.0, ("itakura", 1.0), ("itakura", 2.5))
    for band in (band_of(one, "test") for one in meant):
        for n, m in rng.integers(1, 120, (60, 2)).tolist():
            whole = warp._connected(*band.plain, n, m)
            try:
                lo, hi = band_rows(band, n, m, "test")
            except DomainError:
                assert not whole
                continue
            assert whole
            assert [warp._band_row(*band.plain, n, m, i) for i in range(n)] == list(zip(lo, hi, strict=True))


def test_a_band_too_narrow_names_the_sequences():
    with pytest.raises(DomainError, match=r"sequences 0 and 2\).*a radius of at least"):
        dtw_matrix([np.zeros(20), np.zeros(21), np.zeros(90)], band=1)


@pytest.mark.slow
def test_bands_do_not_cost_far_more_than_grids(rng, monkeypatch):
    """Every pair of lengths is another band: they must not be taken one after the other."""
    seqs = [rng.normal(size=n) for n in range(60, 160)]
    monkeypatch.setattr(warp_pairs, "cores", lambda: 1)
    spent = {}
    for band in (None, 0.8):
        dtw_matrix(seqs[:30], band=band)
        times = []
        for _ in range(3):
            begin = time.process_time()
            dtw_matrix(seqs, band=band)
            times.append(time.process_time() - begin)
        spent[band] = min(times)
    assert spent[0.8] < 8 * spent[None]


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_one_column_neither_overflows_nor_vanishes(size):
    a, b = [size, 0.0], [0.0, 3 * size]
    expected = dtw(a, b, metric="cityblock").distance
    assert dtw(a, b, metric="euclidean").distance == expected > 0
    assert dtw_matrix([a, b], metric="euclidean")[0, 1] == expected
    assert dtw_matrix([a, b, [size]], metric="euclidean", band=2)[0, 1] == expected
    assert subsequence_dtw([size], [0.0, 3 * size], metric="euclidean").distances == [size]
    assert dtw(a, b, metric=("mahalanobis", [[1.0]])).distance == expected


def test_open_ends_must_be_flags_and_may_have_masks(rng):
    with pytest.raises(DomainError, match="open_begin must be True or False"):
        dtw_matrix([[1, 2], [1, 2]], open_begin="no")
    seqs, mask = some(rng, 4), np.tri(25, k=3, dtype=bool)
    how = {"band": mask, "open_end": True}
    assert (dtw_matrix(seqs, **how) == one_by_one(seqs, seqs, **how)).all()


@pytest.mark.parametrize("steps", ["unweighted", "symmetric", "asymmetric 1/2"])
def test_open_ends_with_missing_values_are_the_single_pairs(steps, rng):
    seqs = [np.where(rng.random(30) < 0.2, np.nan, rng.normal(size=30)) for _ in range(5)]
    how = {"step_pattern": steps, "open_begin": True, "open_end": True, "metric": "sqeuclidean"}
    assert (dtw_matrix(seqs, **how) == one_by_one(seqs, seqs, **how)).all()

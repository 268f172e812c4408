"""Subsequence DTW: all matches of a query are found, also in series of a million frames."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from likely.alignment.dtw import dtw
from likely.alignment.subsequence_search import subsequence_dtw
from likely.core.errors import DataError, DomainError, ShapeError


@pytest.mark.some_cases(3)
@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean", "euclidean"])
@pytest.mark.parametrize("D", [1, 2])
def test_the_best_place_is_that_of_an_open_grid(metric, D, rng):
    for _ in range(5):
        q, s = rng.normal(size=(6, D)), rng.normal(size=(25, D))
        p, w = subsequence_dtw(q, s, metric=metric), dtw(q, s, metric=metric, open_begin=True, open_end=True)
        assert p.distances[0] == w.distance and p.stops[0] == w.end + 1 and p.starts[0] == w.path[0, 1]
        every = min(dtw(q, s[i:j], metric=metric).distance for i in range(25) for j in range(i + 1, 26))
        assert p.distances[0] == pytest.approx(every, rel=1e-12)


@pytest.mark.parametrize("steps", ["symmetric", "symmetric 1/2", "asymmetric", "asymmetric 2"])
def test_other_rules_of_steps_find_the_best_of_all_parts(steps, rng):
    def far(q, part, **how):
        try:
            return dtw(q, part, step_pattern=steps, **how).distance
        except DomainError:  # too unlike in length
            return np.inf

    for D in (1, 2):
        q, s = rng.normal(size=(5, D)), rng.normal(size=(16, D))
        parts = {(i, j): far(q, s[i:j]) for i in range(16) for j in range(i + 1, 17)}
        p = subsequence_dtw(q, s, n_matches=3, step_pattern=steps)
        assert p.distances[0] == pytest.approx(min(parts.values()), rel=1e-12)
        spans = list(zip(p.starts.tolist(), p.stops.tolist(), strict=True))
        assert p.distances == pytest.approx([parts[span] for span in spans], rel=1e-12)
        assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in itertools.combinations(spans, 2))


def test_costs_of_ones_own_and_missing_values(rng):
    q, s = rng.normal(size=(6, 2)), rng.normal(size=(60, 2))
    s[[10, 30, 31]] = np.nan
    for steps in ("unweighted", "symmetric 1"):
        own = subsequence_dtw(q, s, 3, metric=lambda x, y: cdist(x, y, "cityblock"), step_pattern=steps)
        want = subsequence_dtw(q, s, 3, metric="cityblock", step_pattern=steps)
        assert own.distances == pytest.approx(want.distances, rel=1e-12) and (own.starts == want.starts).all()
    with pytest.raises(DomainError, match="lengths differ too much"):
        subsequence_dtw(s[:9], s[12:14], step_pattern="symmetric 2")


def test_places_do_not_overlap_and_are_found_in_order(rng):
    q = np.sin(np.linspace(0, 6, 30))
    s = 3 + 0.1 * rng.normal(size=2_000)
    for at, noise in ((100, 0.0), (900, 0.05), (1500, 0.1)):
        s[at : at + 60] = np.sin(np.linspace(0, 6, 60)) + noise
    p = subsequence_dtw(q, s, n_matches=3)
    assert [round(x, -1) for x in p.starts.tolist()] == [100, 900, 1500]
    assert (np.diff(p.distances) > 0).all()
    many = subsequence_dtw(q, s, n_matches=1_000)
    spans = sorted(zip(many.starts.tolist(), many.stops.tolist(), strict=True))
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(spans)) and len(many) > 20
    assert (np.diff(many.distances) >= 0).all()
    near = subsequence_dtw(q, s, n_matches=1_000, max_distance=float(p.distances[-1]))
    assert (near.starts == p.starts).all()


@pytest.mark.slow
def test_a_million_frames(rng):
    import tracemalloc

    s = rng.normal(size=10**6).cumsum()
    subsequence_dtw(s[:20], s[:100])
    tracemalloc.start()
    p = subsequence_dtw(s[700_000:700_020], s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p.starts.tolist() == [700_000] and p.distances[0] == 0.0 and peak < 100e6


def test_missing_values_are_no_place_to_hide(rng):
    q = np.sin(np.linspace(0, 6, 30))
    s = 3 + 0.1 * rng.normal(size=500)
    s[100:200] = np.nan
    s[300:330] = q
    s[310] = np.nan
    p = subsequence_dtw(q, s)
    assert p.starts.tolist() == [300] and p.distances[0] == 0.0
    two = np.stack([s, s], 1)
    two[::2, 0] = np.nan
    assert subsequence_dtw(np.stack([q, q], 1), two).starts.tolist() == [300]


def test_many_places_are_those_taken_one_by_one(rng):
    """The greedy rule, written out: the cheapest end that is left, then all that overlaps it goes."""
    q, s = rng.normal(size=4), np.round(rng.normal(size=600), 1)
    each = [dtw(q, s[: t + 1], open_begin=True) for t in range(600)]
    left = {t: (w.distance, int(w.path[0, 1])) for t, w in enumerate(each)}
    expected = []
    while left:
        t = min(left, key=lambda t: (left[t][0], t))
        d, begin = left[t]
        expected.append((begin, t + 1, d))
        left = {u: x for u, x in left.items() if u < begin or x[1] > t}
    for k in (1, 7, 10_000):
        p = subsequence_dtw(q, s, n_matches=k)
        assert list(zip(p.starts.tolist(), p.stops.tolist(), p.distances.tolist(), strict=True)) == expected[:k]


def test_very_many_places_are_quick(rng):
    s = rng.normal(size=200_000)
    subsequence_dtw(s[:3], s[:100])
    begin = time.process_time()
    p = subsequence_dtw(s[:3], s, n_matches=10**6)
    assert len(p) > 20_000 and time.process_time() - begin < 3.0


@pytest.mark.filterwarnings("error")
def test_missing_frames_are_no_places():
    assert subsequence_dtw([1.0, 2.0], [np.nan] * 5 + [1.0, 2.0]).starts.tolist() == [5]
    p = subsequence_dtw([1.0, 2.0, 1.0], [np.nan] * 50 + [1.0, 2.0, 1.5] + [np.nan] * 50, n_matches=9)
    assert p.starts[0] == 50 and p.stops[0] == 53 and p.distances[0] == 0.5
    assert all(50 <= x < 53 for x in p.starts.tolist()) and all(50 < x <= 53 for x in p.stops.tolist())


def test_open_ends_keep_off_missing_frames():
    nan = np.nan
    w = dtw([1.0, 2, 3], [9.0, 9, nan, nan, nan, 9, 1, 2, 3.2], open_begin=True, open_end=True)
    assert w.path.tolist() == [[0, 6], [1, 7], [2, 8]] and w.distance == pytest.approx(0.2)
    s = [nan] * 50 + [1.0, 2, 1.5] + [nan] * 50
    both = dtw([1.0, 2, 1], s, open_begin=True, open_end=True)
    assert both.distance == subsequence_dtw([1.0, 2, 1], s).distances[0] == 0.5
    with pytest.raises(DomainError, match="half of the frames"):
        dtw([1.0] * 60, [1.0, *[nan] * 57, 1.0], open_begin=True)


@pytest.mark.parametrize("steps", ["unweighted", "symmetric", "symmetric 1/2"])
@pytest.mark.parametrize(("begin", "end"), [(True, True), (True, False), (False, True)])
def test_open_ends_with_missing_values_by_trying_all_parts(steps, begin, end, rng):
    """Of all parts that are seen at both open ends and by half, none is nearer than the one found."""
    for _ in range(12):
        q, s = rng.normal(size=5), np.where(rng.random(14) < 0.25, np.nan, rng.normal(size=14))
        s[0] = s[-1] = 0.0
        found = dtw(q, s, step_pattern=steps, open_begin=begin, open_end=end)
        i, j = found.path[0, 1], found.end + 1
        bare = np.isnan(s)
        assert not bare[i] and not bare[j - 1] and bare[i:j].mean() <= 0.5
        assert found.distance == pytest.approx(dtw(q, s[i:j], step_pattern=steps).distance)
        assert (i == 0 or begin) and (j == 14 or end)


@pytest.mark.parametrize(
    ("q", "s", "how", "error"),
    [
        ([1.0], [1.0], {"n_matches": 0}, DomainError),
        ([1.0], [1.0], {"max_distance": -1.0}, DomainError),
        ([], [1.0], {}, DataError),
        ([1.0], [np.inf], {}, DataError),
        ([1.0], [[1.0, 2.0]], {}, ShapeError),
        ([1e300], [-1e300], {"metric": "sqeuclidean"}, DomainError),
    ],
)  # fmt: skip
def test_refusals(q, s, how, error):
    with pytest.raises(error):
        subsequence_dtw(q, s, **how)

"""DTW against enumeration of all warping paths."""

from __future__ import annotations

import itertools
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from likely.alignment.bands import band_of, band_rows, connected, least_radius
from likely.alignment.dtw import dtw, number_of_paths
from likely.alignment.step_patterns import RULES, UNWEIGHTED, StepPattern
from likely.core.errors import DataError, DomainError, ShapeError

Y1, Y2 = [1, 0, 1, 2, 1], [1, 0, 2, 1]


def all_paths(n, m, steps=UNWEIGHTED, allowed=None, open_begin=False, open_end=False, bare=((), ())):
    """Every path through n × m points that the rule, the mask and bare frames allow, with the weights of its points.

    A point of weight 0 is not matched, so that the mask has nothing to say.
    """
    allowed = np.ones((n, m), dtype=bool) if allowed is None else allowed
    first = range(m if open_begin else 1)
    waiting = [([(0, j)], [steps.start]) for j in first if allowed[0, j] or not steps.start]
    while waiting:
        cells, weights = waiting.pop()
        i, j = cells[-1]
        if i == n - 1 and (j == m - 1 or open_end):
            yield cells, weights
        for chain in steps.chains:
            p, q, more = i, j, []
            for di, dj, w in chain:
                p, q = p + di, q + dj
                if p >= n or q >= m or (w and not allowed[p, q]):
                    break
                if (not di and p in bare[0]) or (not dj and q in bare[1]):
                    break
                more.append(((p, q), w))
            else:
                waiting.append((cells + [c for c, _ in more], weights + [w for _, w in more]))


def cheapest(C, **how):
    totals = [sum(w * C[c] for c, w in zip(*path, strict=True) if w) for path in all_paths(*C.shape, **how)]
    return min(totals, default=None)


def total_along(warping, C, steps=UNWEIGHTED):
    """The path is one of the allowed ones, and its cost is the total."""
    route = warping._route
    return sum(w * C[tuple(c)] for c, w in zip(route.path.tolist(), route.weight, strict=True) if w)


# ------------------------------------------------------------------ the notes (Herbst 9.3)


def point(k):
    """Grid points are numbered from 1, along the first signal first."""
    return (k - 1) % 5, (k - 1) // 5


def test_the_worked_example_of_the_notes():
    w = dtw(Y1, Y2)
    totals = [0, 1, 1, 2, 2, 1, 0, 1, 3, 3, 2, 2, 1, 1, 2, 2, 3, 1, 2, 1]
    assert [w.costs[point(k)] for k in range(1, 21)] == totals
    assert w.path.tolist() == [list(point(k)) for k in (1, 7, 8, 14, 20)]
    assert w.total == w.distance == 1.0 and w.normalized == 0.2


def test_where_each_point_of_the_notes_is_reached_from():
    """The notes print I(12) = 6; 7 is as cheap a way, and diagonal (see the errata)."""
    expected = [1, 2, 3, 4, 1, 1, 7, 3, 4, 6, 7, 7, 8, 14, 11, 11, 13, 13, 14]
    C = np.abs(np.subtract.outer(Y1, Y2)).astype(float)
    for k, before in zip(range(2, 21), expected, strict=True):
        i, j = point(k)
        path = dtw(costs=C[: i + 1, : j + 1]).path
        assert tuple(path[-2]) == point(before), k


def test_number_of_paths():
    assert number_of_paths(5, 4) == 129 and number_of_paths(5, 4, diagonal=False) == 35
    assert number_of_paths(6, 5) == 681 and number_of_paths(6, 5, diagonal=False) == 126
    for n, m in itertools.product(range(1, 7), repeat=2):
        assert number_of_paths(n, m) == sum(1 for _ in all_paths(n, m))
    assert number_of_paths(500, 500) > 10**370
    with pytest.raises(DomainError, match="from 1"):
        number_of_paths(0, 3)


# ----------------------------------------------------------------------- enumeration


@pytest.mark.parametrize("name", RULES)
def test_every_rule_finds_the_cheapest_path(name, rng):
    for n, m in itertools.product(range(1, 7), repeat=2):
        C = rng.exponential(size=(n, m))
        best = cheapest(C, steps=RULES[name])
        if best is None:
            with pytest.raises(DomainError, match="path"):
                dtw(costs=C, step_pattern=name)
            continue
        w = dtw(costs=C, step_pattern=name)
        assert w.total == pytest.approx(best, rel=1e-12)
        assert total_along(w, C) == pytest.approx(best, rel=1e-12)
        assert tuple(w.path[0]) == (0, 0) and tuple(w.path[-1]) == (n - 1, m - 1)


@cache
def every_path(n, m, name, begin, end):
    """All paths as rows of weights (paths, n · m)."""
    found = list(all_paths(n, m, RULES[name], open_begin=begin, open_end=end))
    weights = np.zeros((len(found), n * m))
    for row, (cells, w) in enumerate(found):
        weights[row, [i * m + j for i, j in cells]] = w
    return weights


@pytest.mark.slow
def test_ten_thousand_problems():
    """Sizes up to 6 × 6, every rule, masks and open ends, against all paths at once."""
    rng, tried, names = np.random.default_rng(11), 0, list(RULES)
    while tried < 10_000:
        n, m = rng.integers(1, 7, 2).tolist()
        name, C = names[int(rng.integers(len(names)))], rng.exponential(size=(n, m))
        begin, end = (rng.random(2) < 0.3).tolist() if n * m <= 20 else (False, False)
        mask = rng.random((n, m)) < 0.9
        weights = every_path(n, m, name, begin, end)
        allowed = ~((weights > 0) & ~mask.ravel()).any(axis=1)
        if not allowed.any():
            continue
        tried += 1
        best = (weights[allowed] @ C.ravel()).min()
        w = dtw(costs=C, step_pattern=name, band=mask, open_begin=begin, open_end=end)
        assert abs(w.total - best) <= 1e-12 * max(best, 1.0)
        if mask.all() and name == "unweighted":
            assert dtw(costs=C, open_begin=begin, open_end=end).total == w.total


@pytest.mark.parametrize("name", ["symmetric", "symmetric 1/2", "symmetric 1", "symmetric 2"])
def test_all_paths_of_a_symmetric_rule_weigh_as_much(name):
    for n, m in ((4, 4), (5, 6)):
        assert {round(sum(w), 9) for _, w in all_paths(n, m, RULES[name])} == {n + m}
        assert {round(sum(w), 9) for _, w in all_paths(n, m, RULES["a" + name])} == {n}


@pytest.mark.parametrize("begin", [False, True])
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_open_ends(name, begin, end, rng):
    for n, m in itertools.product((1, 2, 3, 4), (1, 3, 5)):
        C = rng.exponential(size=(n, m))
        best = cheapest(C, steps=RULES[name], open_begin=begin, open_end=end)
        if best is not None:
            w = dtw(costs=C, step_pattern=name, open_begin=begin, open_end=end)
            assert w.total == pytest.approx(best, rel=1e-12)
            assert total_along(w, C) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("band", [0, 1, 2, 0.4, "itakura", ("itakura", 3.0)])
@pytest.mark.parametrize("name", ["unweighted", "symmetric", "symmetric 1"])
def test_bands(band, name, rng):
    tried = 0
    for n, m in itertools.product(range(1, 7), repeat=2):
        a, b = rng.normal(size=n), rng.normal(size=m)
        C = np.abs(a[:, None] - b)
        try:
            lo, hi = band_rows(band_of(band, "test"), n, m, "test")
        except DomainError:
            continue
        inside = (np.arange(m) >= lo[:, None]) & (np.arange(m) < hi[:, None])
        best = cheapest(C, steps=RULES[name], allowed=inside)
        if best is not None:
            tried += 1
            w = dtw(a, b, band=band, step_pattern=name)
            assert w.total == pytest.approx(best, rel=1e-12)
            assert inside[w.path[:, 0], w.path[:, 1]].all()
            assert dtw(b, a, band=band, step_pattern=name).total == pytest.approx(best, rel=1e-12)
            masked = dtw(a, b, band=inside, step_pattern=name)
            assert masked.total == pytest.approx(best, rel=1e-12)
    assert tried >= 6


SKIPS = {
    "leaves out frames of both": StepPattern((((1, 1, 1.0),), ((1, 0, 0.0), (1, 1, 1.0)), ((0, 1, 0.0), (1, 1, 1.0)))),
    "asymmetric": RULES["asymmetric"],
    "a start that costs nothing": StepPattern((((1, 1, 1.0),), ((1, 0, 1.0),), ((0, 1, 1.0),)), start=0.0),
    "some for nothing": StepPattern((((1, 1, 2.0),), ((1, 1, 0.0), (1, 0, 1.0)), ((0, 1, 0.0),))),
}


@pytest.mark.parametrize("name", SKIPS)
def test_what_is_skipped_may_be_forbidden(name, rng):
    """A step of weight 0 could not cross a forbidden point: 2.85 where the cheapest path costs 2.05."""
    steps, crossed = SKIPS[name], 0
    for n, m in itertools.product(range(1, 6), repeat=2):
        for share in (0.9, 0.6):
            C, mask = rng.exponential(size=(n, m)), rng.random((n, m)) < share
            best = cheapest(C, steps=steps, allowed=mask)
            if best is None:
                with pytest.raises(DomainError, match=r"path|cost"):
                    dtw(costs=C, step_pattern=steps, band=mask)
                continue
            w = dtw(costs=C, step_pattern=steps, band=mask)
            assert w.total == pytest.approx(best, rel=1e-12) == total_along(w, C)
            assert dtw(costs=np.where(mask, C, np.inf), step_pattern=steps).total == pytest.approx(best, rel=1e-12)
            assert mask[tuple(w.path[w._route.weight > 0].T)].all()
            crossed += not mask[tuple(w.path.T)].all()
    assert crossed


@pytest.mark.parametrize("band", [0, 1, 0.4, "itakura"])
@pytest.mark.parametrize("name", ["asymmetric", "leaves out frames of both"])
def test_a_band_says_what_may_be_matched(band, name, rng):
    for n, m in itertools.product(range(2, 6), repeat=2):
        C = rng.exponential(size=(n, m))
        try:
            lo, hi = band_rows(band_of(band, "test"), n, m, "test")
        except DomainError:
            continue
        inside = (np.arange(m) >= lo[:, None]) & (np.arange(m) < hi[:, None])
        best = cheapest(C, steps=SKIPS[name], allowed=inside)
        if best is not None:
            assert dtw(costs=C, band=band, step_pattern=SKIPS[name]).total == pytest.approx(best, rel=1e-12)
            assert dtw(costs=C, band=inside, step_pattern=SKIPS[name]).total == pytest.approx(best, rel=1e-12)


def test_a_random_mask(rng):
    for _ in range(40):
        C, mask = rng.exponential(size=(5, 4)), rng.random((5, 4)) < 0.8
        best = cheapest(C, allowed=mask)
        if best is None:
            with pytest.raises(DomainError, match="mask"):
                dtw(costs=C, band=mask)
        else:
            w = dtw(costs=C, band=mask)
            assert w.total == pytest.approx(best) and mask[w.path[:, 0], w.path[:, 1]].all()
            assert dtw(costs=np.where(mask, C, np.inf)).total == w.total


def test_the_three_step_loop_and_its_twin_agree_to_the_last_bit(rng):
    other = StepPattern((((1, 1, 1.0),), ((0, 1, 1.0),), ((1, 0, 1.0),)))  # the same rule, and not the same object
    for n, m, D in ((30, 40, 1), (40, 25, 3), (1, 9, 2), (9, 1, 1)):
        a, b = rng.normal(size=(n, D)), rng.normal(size=(m, D))
        for metric in ("cityblock", "sqeuclidean", "euclidean"):
            one, twin = dtw(a, b, metric=metric), dtw(a, b, metric=metric, step_pattern=other)
            assert one.total == twin.total == one.costs[-1, -1]
            whole = dtw(np.round(3 * a), np.round(3 * b), metric="cityblock")
            assert total_along(whole, np.abs(np.round(3 * a)[:, None] - np.round(3 * b)).sum(2)) == whole.total


def test_ties_go_to_the_diagonal_and_then_along_a():
    assert dtw(costs=np.zeros((3, 3))).path.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert (
        dtw(costs=np.zeros((4, 3)), step_pattern="symmetric").path.tolist() == dtw(costs=np.zeros((4, 3))).path.tolist()
    )
    C = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 0.0]])
    assert dtw(costs=C).path.tolist() == [[0, 0], [1, 0], [2, 1]]


# ----------------------------------------------------------------------------- costs


def plain_twin(a, b, cost, radius=None):
    """The textbook's double loop, for a total."""
    T = np.full((len(a) + 1, len(b) + 1), np.inf)
    T[0, 0] = 0.0
    for i, j in itertools.product(range(len(a)), range(len(b))):
        if radius is None or abs(i - j) <= radius:
            T[i + 1, j + 1] = cost(a[i], b[j]) + min(T[i, j], T[i, j + 1], T[i + 1, j])
    return T[-1, -1]


def test_costs_are_what_they_say(rng):
    a, b = rng.normal(size=(20, 3)), rng.normal(size=(25, 3))
    S = np.cov(rng.normal(size=(3, 30)))
    P = np.linalg.inv(S)
    for metric, f in {
        "cityblock": lambda x, y: np.abs(x - y).sum(),
        "sqeuclidean": lambda x, y: ((x - y) ** 2).sum(),
        "euclidean": lambda x, y: np.linalg.norm(x - y),
        "cosine": lambda x, y: 1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y),
    }.items():
        w = dtw(a, b, metric=metric)
        expected = plain_twin(a, b, f)
        assert w.total == pytest.approx(expected, rel=1e-12)
        assert w.distance == pytest.approx(np.sqrt(expected) if metric == "sqeuclidean" else expected, rel=1e-12)
    far = plain_twin(a, b, lambda x, y: np.sqrt((x - y) @ P @ (x - y)))
    assert dtw(a, b, metric=("mahalanobis", S)).distance == pytest.approx(far, rel=1e-10)


@pytest.mark.parametrize("name", ["unweighted", "symmetric 1", "asymmetric"])
def test_a_cost_of_ones_own(name, rng):
    """A function of all frames of both gives the matrix of costs; frames not observed cost nothing."""
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(11, 2))
    a[4], b[7] = np.nan, np.nan
    for metric, named in (("cityblock", "cityblock"), ("euclidean", "euclidean"), ("sqeuclidean", "sqeuclidean")):
        own = dtw(a, b, metric=lambda x, y, metric=metric: cdist(x, y, metric), step_pattern=name, open_end=True)
        want = dtw(a, b, metric=named, step_pattern=name, open_end=True)
        assert own.total == pytest.approx(want.total, rel=1e-12) and (own.path == want.path).all()
    up = np.arange(6.0)
    ahead = dtw(up, up, metric=lambda x, y: np.where(x > y.T, np.inf, np.abs(x - y.T - 1)))
    assert (ahead.path[:, 0] <= ahead.path[:, 1]).all(), "infinity forbids a match"


def test_a_radius_as_other_libraries_have_it(rng):
    a, b = rng.normal(size=(2, 60)).cumsum(axis=1)
    for radius in (0, 3, 10):
        expected = np.sqrt(plain_twin(a, b, lambda x, y: (x - y) ** 2, radius))
        assert dtw(a, b, metric="sqeuclidean", band=radius).distance == pytest.approx(expected, rel=1e-12)
    assert dtw(a, b, metric="sqeuclidean", band=0).distance == pytest.approx(np.linalg.norm(a - b), rel=1e-12)
    assert dtw(a, b, band=0.05).total == dtw(a, b, band=3).total


def test_a_share_of_frames_is_not_rounded_down_by_rounding():
    """0.29 · 100 is 28.999…"""
    assert [band_of(share, "dtw").frames(100) for share in (0.28, 0.29, 0.57, 0.295)] == [28, 29, 57, 29]


def test_a_band_that_leaves_no_path_says_which_would():
    with pytest.raises(DomainError, match="a radius of at least 2"):
        dtw(np.arange(100.0), np.arange(30.0), band=0)
    for n, m in itertools.product((1, 2, 3, 7, 20, 31), repeat=2):
        r = least_radius(n, m)
        assert connected(*band_rows(band_of(r, "test"), n, m, "test"), m)
        if r:
            with pytest.raises(DomainError, match=f"a radius of at least {r}"):
                band_rows(band_of(r - 1, "test"), n, m, "test")
    with pytest.raises(DomainError, match="raise the slope"):
        dtw(np.arange(2.0), np.arange(9.0), band=("itakura", 1.0))


# ------------------------------------------------------------------------------ gaps


def test_missing_values_by_enumeration(rng):
    """A frame that was not seen costs nothing and is matched once; partial frames are scaled to all entries."""
    for n, m in itertools.product(range(1, 6), repeat=2):
        a, b = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        for x in (a, b):
            x[1::3] = np.nan
            x[2::4, 1] = np.nan
        C, seen = np.zeros((n, m)), ~np.isnan(a[:, None] - b)
        parts = np.where(seen, np.abs(a[:, None] - b), 0.0).sum(axis=2)
        counts = seen.sum(axis=2)
        C[counts > 0] = parts[counts > 0] * 2 / counts[counts > 0]
        bare = tuple({int(i) for i in np.flatnonzero(np.isnan(x).all(axis=1))} for x in (a, b))
        for name in ("unweighted", "symmetric", "symmetric 1"):
            best = cheapest(C, steps=RULES[name], bare=bare)
            if best is None:
                continue
            w = dtw(a, b, step_pattern=name)
            assert w.total == pytest.approx(best, rel=1e-12)
            scale = (n + m) / (n + m - len(bare[0]) - len(bare[1]))
            assert w.distance == pytest.approx(best * scale, rel=1e-12)
            if name != "symmetric 1":
                assert dtw(b, a, step_pattern=name).distance == pytest.approx(w.distance, rel=1e-12)
            touched = w.path[:, 0].tolist()
            assert all(touched.count(i) == 1 for i in bare[0])


def test_a_series_with_missing_values_stays_near_itself(rng):
    ratio = []
    for _ in range(20):
        a, other = rng.normal(size=(2, 200)).cumsum(axis=1)
        holes = np.where(rng.random(200) < 0.3, np.nan, a)
        assert dtw(a, holes).total == 0.0
        ratio.append(dtw(other, holes).distance / dtw(other, a).distance)
    assert 0.75 < np.mean(ratio) < 1.1  # distances to others do not dwindle


def test_frames_without_a_common_entry_cost_as_others_do(rng):
    """Two sensors that take turns: a path must not slip through where they have nothing in common."""
    a, b = rng.normal(size=(2, 30, 2))
    for x in (a, b):
        x[::2, 0], x[1::2, 1] = np.nan, np.nan
    in_common = np.abs(a[:, None] - b)
    typical = 2 * np.nanmean(in_common)
    assert dtw(a, b[:-1]).total > 10 * typical / 2
    C = np.where(np.isnan(in_common).all(axis=2), typical, 2 * np.nansum(in_common, axis=2))
    assert dtw(a, b[:-1]).grid.local_costs()[:, :-1].shape == (30, 28)
    assert dtw(a, b).grid.local_costs() == pytest.approx(C, rel=1e-12)


# ----------------------------------------------------------------------------- in use


def test_warping_one_onto_the_other(rng):
    t = np.linspace(0, 6, 80)
    a, b = np.sin(t), np.sin(6 * (np.linspace(0, 1, 50)) ** 1.5)
    w = dtw(a, b)
    assert (
        np.abs(w.warp_b(b) - a).mean() < 0.05 < np.abs(np.interp(np.linspace(0, 49, 80), np.arange(50), b) - a).mean()
    )
    assert w.warp_a(np.stack([a, -a], 1)).shape == (50, 2)
    part = dtw(a[20:40], a, open_begin=True, open_end=True)
    assert part.distance == 0.0 and part.path[0, 1] == 20 and part.end == 39
    assert np.isnan(part.warp_a(a[20:40])[:20]).all()
    with pytest.raises(ShapeError, match="80 frames"):
        w.warp_a(b)


def test_a_warping_is_a_value(rng):
    w = dtw(rng.normal(size=9), rng.normal(size=8))
    again = pickle.loads(pickle.dumps(w))
    assert again.distance == w.distance and (again.path == w.path).all()
    with pytest.raises(ValueError, match="read-only"):
        w.path[0] = 1
    with pytest.raises(AttributeError):
        w.total = 2.0


def test_what_the_caller_does_later_changes_nothing(rng):
    a, b = rng.normal(size=(2, 20))
    C = np.abs(np.subtract.outer(a, b))
    lazy, table, expected = dtw(a, b), dtw(costs=C), dtw(a.copy(), b.copy()).path.tolist()
    a[:], C[:] = 0.0, 1.0
    assert lazy.path.tolist() == table.path.tolist() == expected


def test_read_only_and_strided_input(rng):
    a, b = rng.normal(size=(2, 40))
    locked, expected = a.copy(), dtw(a[::2], b).total
    locked.setflags(write=False)
    assert dtw(locked[::2], b.astype(">f8")).total == expected
    assert dtw(locked, b).total == dtw(a, b).total
    C = np.abs(np.subtract.outer(a, b))
    C.setflags(write=False)
    assert dtw(costs=C).total == dtw(a, b).total == dtw(costs=np.asfortranarray(C)).total


def test_long_series_need_little_memory():
    import tracemalloc

    a = np.sin(np.arange(20_000) / 50.0)
    dtw(a[:50], a[:50])
    tracemalloc.start()
    assert dtw(a, np.roll(a, 3), band=10).distance > 0
    path = dtw(a, a[5:], band=20).path
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(path) >= 20_000 and peak < 20e6


# ----------------------------------------------------------------------------- hazards


def test_hazards():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtw([3.0], [5.0]).total == 2.0 and dtw([3.0], [5, 6, 7]).total == 9.0
        assert dtw(np.ones(50), np.ones(30)).total == 0.0
        assert dtw(np.arange(5, dtype=np.int8), np.arange(5, dtype=np.uint8)).total == 0.0
        assert dtw([True, False], [False, True]).total == 2.0
        big = dtw([1e300, -1e300], [-1e300, 1e300])
        assert big.total == 4e300
        with pytest.raises(DomainError, match="rescale the series"):
            dtw([1e300, -1e300], [-1e300, 1e300], metric="sqeuclidean")
        with pytest.raises(DomainError, match="must not overflow"):
            dtw([1.7e308, 1.7e308], [-1.7e308, -1.7e308])
        assert dtw([[1e300, 1e300]], [[1e300, -1e300]], metric="cosine").total == pytest.approx(1.0)
        x = np.linspace(0, 1, 20, dtype=np.float32)
        assert dtw(x, x[::2]).total == dtw(x.astype(float), x[::2].astype(float)).total


@pytest.mark.parametrize(
    ("a", "b", "how", "error", "words"),
    [
        ([1, np.inf], [1, 2], {}, DataError, "inf at row 1, column 0"),
        ([], [1, 2], {}, DataError, "at least one frame"),
        (["1", "2"], [1, 2], {}, DataError, "numbers"),
        (["a"], [1, 2], {}, DataError, "numbers"),
        ([np.nan, np.nan], [1, 2], {}, DataError, "NaN only"),
        ([[1, 2]], [[1, 2, 3]], {}, ShapeError, "2 and 3"),
        ([[[1]]], [1], {}, ShapeError, "shape"),
        ([[1], [1, 2]], [1], {}, ShapeError, "same number"),
        (np.array([1j]), [1], {}, DataError, "complex"),
        (np.array(["2020-01-01"], dtype="M8[D]"), [1], {}, DataError, "dates"),
        ([1], None, {}, DataError, "two series"),
        ([1], [1], {"costs": [[1]]}, DomainError, "both"),
        (None, None, {"costs": [[np.nan]]}, DataError, "nan at row 0"),
        (None, None, {"costs": [1.0]}, ShapeError, "n, m"),
        (None, None, {"costs": [[np.inf]]}, DomainError, "finite cost|path"),
        ([1], [1], {"metric": "manhattan"}, DomainError, "cityblock"),
        ([1], [1], {"metric": lambda x, y: 0}, ShapeError, r"must return numbers \(1, 1\)"),
        ([1], [1], {"metric": lambda x, y: np.full((1, 1), np.nan)}, DataError, "nan for frames 0 and 0"),
        ([[1, np.nan]], [[1, 1]], {"metric": lambda x, y: x @ y.T}, DataError, "frames that are complete"),
        ([1], [1], {"metric": ("mahalanobis", [[-1.0]])}, DomainError, "positive definite"),
        ([1], [1], {"metric": ("mahalanobis", np.eye(2))}, ShapeError, "as frames have"),
        ([[1.0, np.nan]], [[1, 2]], {"metric": "cosine"}, DataError, "whole"),
        ([[0.0, 0.0]], [[1, 2]], {"metric": "cosine"}, DataError, "nonzero frames"),
        ([1], [1], {"step_pattern": "four"}, DomainError, "unweighted"),
        ([1], [1], {"band": -1}, DomainError, "band must be"),
        ([1], [1], {"band": 1.5}, DomainError, "0 … 1"),
        ([1], [1], {"band": True}, DomainError, "band must be"),
        ([1], [1], {"band": "wide"}, DomainError, "band must be"),
        ([1], [1], {"band": np.ones((2, 2), dtype=bool)}, ShapeError, "mask"),
        ([1], [1], {"band": 3, "open_end": True}, DomainError, "open ends"),
        ([1], [1], {"open_end": "yes"}, DomainError, "True or False"),
    ],
)  # fmt: skip
def test_what_cannot_be_warped_is_refused_in_words(a, b, how, error, words):
    with pytest.raises(error, match=words):
        dtw(a, b, **how)


@pytest.mark.parametrize("chains", [(), ((),), (((2, 1, 1.0),),), (((0, 0, 1.0),),), (((1, 1, -1.0),),)])
def test_a_rule_must_be_a_table_of_steps(chains):
    with pytest.raises((DomainError, ShapeError), match="StepPattern"):
        StepPattern(chains)


def test_a_covariance_must_be_symmetric():
    x, y = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    with pytest.raises(DomainError, match=r"symmetric, got 0\.9 at"):
        dtw(x, y, metric=("mahalanobis", [[1.0, 0.9], [0.0, 1.0]]))
    assert dtw(x, y, metric=("mahalanobis", [[1.0, 0.5], [0.5, 1.0]])).distance == pytest.approx(2.0)


def test_a_path_without_weight_has_no_mean():
    w = dtw([1.0, 2, 3], [1.0, 2, 4], step_pattern=StepPattern((((1, 1, 0.0),),), 0.0))
    assert w.total == 0.0
    with pytest.raises(DomainError, match="positive weight"):
        _ = w.normalized

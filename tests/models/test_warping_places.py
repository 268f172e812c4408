"""A query is found where it is, as often as it is there, also in series of a million frames."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.errors import DataError, DomainError, ShapeError
from likely.models.warp_places import subsequence
from likely.models.warping import dtw


@pytest.mark.parametrize("cost", ["absolute", "squared", "euclidean"])
@pytest.mark.parametrize("D", [1, 2])
def test_the_best_place_is_that_of_an_open_grid(cost, D, rng):
    for _ in range(5):
        q, s = rng.normal(size=(6, D)), rng.normal(size=(25, D))
        p, w = subsequence(q, s, cost=cost), dtw(q, s, cost=cost, open_begin=True, open_end=True)
        assert p.distances[0] == w.distance and p.stops[0] == w.end + 1 and p.starts[0] == w.path[0, 1]
        every = min(dtw(q, s[i:j], cost=cost).distance for i in range(25) for j in range(i + 1, 26))
        assert p.distances[0] == pytest.approx(every, rel=1e-12)


def test_places_do_not_overlap_and_are_found_in_order(rng):
    q = np.sin(np.linspace(0, 6, 30))
    s = 3 + 0.1 * rng.normal(size=2_000)
    for at, noise in ((100, 0.0), (900, 0.05), (1500, 0.1)):
        s[at : at + 60] = np.sin(np.linspace(0, 6, 60)) + noise
    p = subsequence(q, s, k=3)
    assert [round(x, -1) for x in p.starts.tolist()] == [100, 900, 1500]
    assert (np.diff(p.distances) > 0).all()
    many = subsequence(q, s, k=1_000)
    spans = sorted(zip(many.starts.tolist(), many.stops.tolist(), strict=True))
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(spans)) and len(many) > 20
    assert (np.diff(many.distances) >= 0).all()
    near = subsequence(q, s, k=1_000, most=float(p.distances[-1]))
    assert (near.starts == p.starts).all()


def test_a_million_frames(rng):
    import tracemalloc

    s = rng.normal(size=10**6).cumsum()
    subsequence(s[:20], s[:100])
    tracemalloc.start()
    p = subsequence(s[700_000:700_020], s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p.starts.tolist() == [700_000] and p.distances[0] == 0.0 and peak < 100e6


def test_gaps_are_no_place_to_hide(rng):
    q = np.sin(np.linspace(0, 6, 30))
    s = 3 + 0.1 * rng.normal(size=500)
    s[100:200] = np.nan
    s[300:330] = q
    s[310] = np.nan
    p = subsequence(q, s)
    assert p.starts.tolist() == [300] and p.distances[0] == 0.0
    two = np.stack([s, s], 1)
    two[::2, 0] = np.nan
    assert subsequence(np.stack([q, q], 1), two).starts.tolist() == [300]


@pytest.mark.parametrize(
    ("q", "s", "how", "error"),
    [
        ([1.0], [1.0], {"k": 0}, DomainError),
        ([1.0], [1.0], {"most": -1.0}, DomainError),
        ([], [1.0], {}, DataError),
        ([1.0], [np.inf], {}, DataError),
        ([1.0], [[1.0, 2.0]], {}, ShapeError),
        ([1e300], [-1e300], {"cost": "squared"}, DomainError),
    ],
)  # fmt: skip
def test_refusals(q, s, how, error):
    with pytest.raises(error):
        subsequence(q, s, **how)

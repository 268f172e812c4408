"""Ziggurat normal variates: distribution, tails, and reproducibility by seed."""

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import stats

from likely.numerics import normal_draws
from likely.numerics._loops import ziggurat
from likely.numerics.normal_draws import R, fill_normal


@pytest.fixture(scope="module")
def many():
    return fill_normal(Generator(SFC64(5)), np.empty((4, 1_000_000)))


def test_layers_have_one_area_and_close_at_the_top():
    edges = normal_draws._edges()
    heights = np.exp(-0.5 * edges[1:] ** 2)
    areas = edges[1:-1] * np.diff(heights)
    np.testing.assert_allclose(areas, edges[0] * heights[0], rtol=1e-12)
    assert len(edges) == 257 and (np.diff(edges) < 0).all()


@pytest.mark.slow
def test_distribution(many):
    assert stats.kstest(many.ravel()[::3], "norm").pvalue > 1e-4


@pytest.mark.slow
def test_moments(many):
    n = many.size
    for power, mean, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)]:
        assert abs((many**power).mean() - mean) < 4.5 * (variance / n) ** 0.5


@pytest.mark.parametrize("edge", [0.2, 1.0, 2.5, R, 3.9, 4.5])
def test_counts_in_cells_and_tails(many, edge):
    for share, p in [((many > edge).mean(), stats.norm.sf(edge)), ((many < -edge).mean(), stats.norm.sf(edge))]:
        assert abs(share - p) < 4.5 * (p / many.size) ** 0.5


@pytest.mark.slow
def test_wedges_are_settled():
    """Without a look at the wedges, each layer's edge would stand out in a fine histogram."""
    z = np.abs(fill_normal(Generator(SFC64(8)), np.empty(4_000_000)))
    edges = normal_draws._edges()[::-1]  # cells between the layers
    inner = np.concatenate([edges[:-1], [np.inf]])
    seen = np.histogram(z, inner)[0]
    expected = len(z) * 2 * -np.diff(stats.norm.sf(inner))
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_neighbors_do_not_depend_on_each_other(many):
    z = many[0]
    for lag in (1, 2, 7):
        assert abs((z[lag:] * z[:-lag]).mean()) < 4.5 / len(z) ** 0.5
        assert abs((z[lag:] ** 2 * z[:-lag] ** 2).mean() - 1) < 4.5 * (8 / len(z)) ** 0.5


def test_the_seed_makes_them():
    a, b = (fill_normal(Generator(SFC64(3)), np.empty((7, 3))) for _ in range(2))
    assert a.tobytes() == b.tobytes()
    assert fill_normal(Generator(SFC64(4)), np.empty(0)).shape == (0,)


def test_the_bits_are_those_of_numpy():
    """The loop goes on from the generator's state; while no point is unsettled it takes one word a number."""
    ours, theirs = Generator(SFC64(2)), Generator(SFC64(2))
    out, unsettled, state = np.empty(20), np.empty(21, np.uint64), ours.bit_generator.state
    assert ziggurat(state["state"]["state"], normal_draws._edges(), out, unsettled) == 0
    bits = theirs.bit_generator.random_raw(20)
    np.testing.assert_array_equal(np.signbit(out), (bits >> np.uint64(8)) & np.uint64(1))
    ours.bit_generator.state = state
    assert ours.random() == theirs.random()

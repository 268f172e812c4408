"""Resampling schemes: the expected number of copies."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DomainError
from likely.statespace.particle._loops import choose, strata
from likely.statespace.particle.resampling import SCHEMES, resampled

TIMES = 4000


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("n", [5, 12])
def test_copies_on_average(name, n):
    """E[copies of i] = n W_i; five standard errors over all particles: 1e-6 each."""
    weights = np.array([0.31, 0.0, 0.07, 0.4, 0.22])
    rng = np.random.default_rng(1)
    counts = np.stack([np.bincount(resampled(name, weights, n, rng), minlength=5) for _ in range(TIMES)])
    assert (counts.sum(1) == n).all() and (counts[:, 1] == 0).all()
    error = counts.std(0) / np.sqrt(TIMES)
    assert (np.abs(counts.mean(0) - n * weights) <= 5 * error + 1e-12).all()
    if name in ("systematic", "residual"):
        assert (counts >= np.floor(n * weights - 1e-9)).all()
    if name == "systematic":
        assert (counts <= np.ceil(n * weights + 1e-9)).all()


def test_variances_of_copies():
    """Independent choices have the binomial's variance; the others have less."""
    weights = np.random.default_rng(0).dirichlet(np.ones(30))
    rng = np.random.default_rng(1)
    spread = {}
    for name in SCHEMES:
        counts = np.stack([np.bincount(resampled(name, weights, 30, rng), minlength=30) for _ in range(TIMES)])
        spread[name] = counts.var(0).sum()
    binomial = (30 * weights * (1 - weights)).sum()
    assert spread["multinomial"] == pytest.approx(binomial, rel=0.05)
    assert max(spread["systematic"], spread["stratified"], spread["residual"]) < 0.8 * binomial


@pytest.mark.parametrize("seed", range(5))
def test_loops_and_searching_agree(seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(200, 0.2))
    weights[rng.random(200) < 0.3] = 0.0
    offsets = rng.random(300)
    points = (np.arange(300) + offsets) / 300
    reach = np.cumsum(weights)
    want = np.searchsorted(reach / reach[-1], points, side="right")
    out = np.empty(300, np.intp)
    choose(weights, points, out)
    np.testing.assert_array_equal(out, want)
    longer = np.empty(301, np.intp)
    strata(weights, offsets, longer)
    np.testing.assert_array_equal(longer[:-1], want)


@pytest.mark.parametrize("name", SCHEMES)
def test_edges(name):
    rng = np.random.default_rng(0)
    assert resampled(name, np.array([1.0]), 3, rng).tolist() == [0, 0, 0]
    assert resampled(name, np.array([0.0, 1.0, 0.0]), 4, rng).tolist() == [1] * 4
    even = resampled(name, np.full(1000, 1e-3), 1000, rng)
    assert even.dtype == np.intp and (np.diff(even) >= 0).all() and even[-1] < 1000
    frozen = np.full(4, 0.25)
    frozen.setflags(write=False)
    assert len(resampled(name, frozen, 4, rng)) == 4


@pytest.mark.parametrize("at", [0.0, np.nextafter(1.0, 0.0)])
def test_points_at_the_ends_of_the_line(at):
    weights = np.array([0.0, 0.5, 0.5 - 1e-17, 0.0])
    out = np.empty(1, np.intp)
    choose(weights, np.array([at]), out)
    assert weights[out[0]] > 0
    longer = np.empty(4, np.intp)
    strata(weights, np.full(3, at), longer)
    assert (weights[longer[:-1]] > 0).all()


def test_unknown_names():
    with pytest.raises(DomainError, match="'systematic', 'stratified', 'residual', 'multinomial'"):
        resampled("systemic", np.ones(1), 1, np.random.default_rng(0))

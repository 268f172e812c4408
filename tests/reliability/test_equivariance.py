"""Units and offsets are ours to choose: each model, and the maps under which it *is* equivariant.

| model | maps |
|---|---|
| full Gaussian | every invertible affine map |
| diagonal Gaussian | a scale and a shift of each column, permutations of columns |
| spherical Gaussian | rotations, one scale, shifts |
| Poisson, Categorical | permutations of columns, levels |
| Robbins and Monro's steps for a Gaussian | a scale of each column |

Fitting commutes with the map, and the log-likelihood changes by n log |det A|.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely import Categorical, Gaussian, Poisson, StoppingRule, fit
from likely.core import Blocks
from likely.inference import RobbinsMonro

SCALES = [1e-100, 1e-30, 1e-4, 1.0, 1e4, 1e30, 1e100]
OFFSETS = [0.0, 1.0, 1e4, 1e8]


def rotation(rng, d):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def maps(kind, rng, d, scale, offset):
    """A map x → x Aᵀ + b of that kind: mixed by up to 1e3 where columns may be mixed, the scale, and an offset
    in units of the mapped data."""
    if kind == "full":
        a = rotation(rng, d) * 10.0 ** rng.uniform(-1.5, 1.5, d) @ rotation(rng, d)
    elif kind == "diagonal":
        a = np.diag(rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(-3, 3, d))
    else:
        a = rotation(rng, d)
    a = a * scale
    spread = np.sqrt((a**2).sum(axis=1))
    return a, offset * spread * rng.choice([-1.0, 1.0], d)


def affine_gap(g, h, a, b, kind):
    """Largest distance between the map of a fit and the fit of the mapped data, in the mapped units."""
    unit = np.sqrt(h.variance)
    mean = np.abs((g.mean @ a.T + b) - h.mean) / unit
    mapped = a @ g.covariance_matrix @ a.T
    spread = np.abs(mapped - h.covariance_matrix) / np.outer(unit, unit)
    return float(mean.max()), float(spread.max())


@pytest.mark.some_cases(20)
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("scale", SCALES)
def test_fits_follow_the_map(kind, scale, offset):
    rng = np.random.default_rng([len(kind), SCALES.index(scale), OFFSETS.index(offset)])
    d, n = 3, 200
    x = rng.standard_normal((n, d)) @ [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, -0.3, 0.7]]
    a, b = maps(kind, rng, d, scale, offset)
    y = x @ a.T + b
    # the offset has rounded the data: compare with the rounded data moved back, exactly
    g, h = Gaussian.fit((y - b) / scale, kind=kind), Gaussian.fit(y, kind=kind)
    mean, spread = affine_gap(g, h, np.eye(d) * scale, b, kind)
    assert mean <= 4 * np.finfo(float).eps * max(offset, 1e3) and spread <= 1e-12
    shift = d * np.log(scale)
    before, after = g.log_prob((y - b) / scale).sum(), h.log_prob(y).sum() + n * shift
    assert abs(after - before) <= 1e-9 * abs(before)
    if offset <= 1.0:  # and the mixing itself, where rounding leaves the data alone
        g = Gaussian.fit(x, kind=kind)
        mean, spread = affine_gap(g, h, a, b, kind)
        assert mean <= 1e-10 and spread <= 1e-10
        shift = np.linalg.slogdet(a / scale)[1] + d * np.log(scale)
        before, after = g.log_prob(x).sum(), h.log_prob(y).sum() + n * shift
        assert abs(after - before) <= 1e-9 * abs(before)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_em_with_missing_values_follows_the_map(kind, scale, offset):
    """Gaps know their column, so the map is one of columns; from the mapped start, step by step."""
    rng = np.random.default_rng([OFFSETS.index(offset), SCALES.index(scale)])
    x = rng.standard_normal((120, 3)) @ [[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [0.0, -0.3, 0.7]]
    x[rng.random(x.shape) < 0.25] = np.nan
    unit = scale * 10.0 ** rng.uniform(-3, 3, 3)
    y = x * unit + offset * unit
    x = (y - offset * unit) / unit
    start = Gaussian.blank(x, kind=kind)
    cov = start.covariance * (np.outer(unit, unit) if kind == "full" else unit**2)
    mapped = Gaussian(start.mean * unit + offset * unit, cov, kind=kind)
    a, b = (fit(m, data, stop=StoppingRule(12, 0.0)) for m, data in ((start, x), (mapped, y)))
    rows = np.isfinite(x).sum(axis=0)
    shift = float(rows @ np.log(unit))
    assert len(a.trace) == len(b.trace)
    for before, after in zip(a.trace, b.trace, strict=True):
        assert abs(after + shift - before) <= 1e-9 * abs(before)


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_weak_priors_follow_the_units_of_columns(kind):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((5, 3))
    unit = np.array([1e-50, 1e3, 1e50]) if kind != "spherical" else np.full(3, 1e40)
    g, h = Gaussian.fit(x, kind=kind, prior="weak"), Gaussian.fit(x * unit, kind=kind, prior="weak")
    np.testing.assert_allclose(h.variance / unit**2, g.variance, rtol=1e-11)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["full", "diagonal", "spherical"]))
def test_the_order_of_rows_and_columns_does_not_matter(seed, kind):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 60)), int(rng.integers(1, 6))
    x, w = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d), rng.random(n) + 0.01
    rows, columns = rng.permutation(n), rng.permutation(d)
    g, h = Gaussian.fit(x, w, kind=kind), Gaussian.fit(x[rows][:, columns], w[rows], kind=kind)
    unit = np.sqrt(h.variance)
    assert np.abs((g.mean[columns] - h.mean) / unit).max() <= 1e-12
    want = g.covariance_matrix[np.ix_(columns, columns)]
    assert np.abs((want - h.covariance_matrix) / np.outer(unit, unit)).max() <= 1e-12


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_members_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    x, w = rng.standard_normal((40, d)), rng.random((40, K))
    order = rng.permutation(K)
    for kind in ("full", "diagonal", "spherical"):
        stack = Gaussian.blank(x, kind=kind, members=K)
        a, b = stack.refit(stack.collect(x, w)), stack.refit(stack.collect(x, w[:, order]))
        np.testing.assert_allclose(b.mean, a.mean[order], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(b.covariance, a.covariance[order], rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(b.log_prob(x), a.log_prob(x)[:, order], rtol=1e-9, atol=1e-9)


def test_counts_and_levels_permute():
    rng = np.random.default_rng(6)
    x, order = rng.poisson([1.0, 5.0, 20.0], (40, 3)), np.array([2, 0, 1])
    assert np.array_equal(Poisson.fit(x[:, order]).rate, Poisson.fit(x).rate[order])
    c, rename = rng.integers(0, 3, 40), np.array([2, 0, 1])
    assert np.array_equal(Categorical.fit(rename[c], levels=3).probs[rename], Categorical.fit(c, levels=3).probs)


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("offset", [0.0, 1e8, -1e8])
def test_other_chunkings_agree_to_twelve_digits(kind, offset):
    """Promise 3: the same bits for the same blocks, 1e-12 for others, also 1e8 spreads away."""
    rng = np.random.default_rng(7)
    x, w = rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 3)) + offset, rng.random(3000)
    blank = Gaussian.blank(x[:50], kind=kind)
    fits = [
        fit(blank, Blocks.of(x, w, rows=rows, blocks=blocks))
        for rows, blocks in ((4096, 8), (1000, 1), (77, 3), (1, 500))
    ]
    again = fit(blank, Blocks.of(x, w, rows=77, blocks=3))
    assert again.stats.scatter.tobytes() == fits[2].stats.scatter.tobytes()
    unit = np.sqrt(fits[0].stats.variance)
    for other in fits[1:]:
        assert np.abs((other.stats.shift - fits[0].stats.shift) / unit).max() <= 1e-12
        assert np.abs(other.model.variance / fits[0].model.variance - 1).max() <= 1e-12
        outer = np.outer(unit, unit)
        assert np.abs((other.model.covariance_matrix - fits[0].model.covariance_matrix) / outer).max() <= 1e-12


@pytest.mark.slow
@pytest.mark.some_cases(5)
@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("scales", [[1e-9, 1e-9], [1e-4, 1e-4], [1.0, 1e6], [1e-6, 1e6], [1e9, 1e9]], ids=str)
def test_streams_follow_the_units_of_columns(kind, scales):
    """Steps along the natural gradient are the same in all units, also where two columns have unlike ones."""
    x, unit = np.random.default_rng(0).normal(3.0, 1.0, (2000, 2)), np.array(scales)
    spread = np.array([2.0, 2.0])

    def learned(u):
        start = spread * u * u
        distribution = Gaussian(2.5 * u, np.diag(start) if kind == "full" else start, kind=kind)
        return RobbinsMonro(distribution).run(x * u).distribution

    one, other = learned(np.ones(2)), learned(unit)
    assert other.mean / unit == pytest.approx(one.mean, rel=1e-6)
    assert other.covariance_matrix / np.outer(unit, unit) == pytest.approx(one.covariance_matrix, rel=1e-6, abs=1e-6)
    assert one.mean == pytest.approx([3.0, 3.0], abs=0.15) and one.variance == pytest.approx([1.0, 1.0], abs=0.2)

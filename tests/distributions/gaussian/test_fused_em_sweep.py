"""E-step and sums in one sweep, against `log_prob` and `collect` one after the other, and against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, softmax

from likely import Gaussian, Mixture
from likely.distributions.gaussian import fused_em_sweep
from tests.mixture.test_mixture import gaussians, plain_joint
from tests.reliability.plainly import log_probs

KINDS = ["full", "diagonal", "spherical"]


def separately(m, x, w):
    """The statistics of the same E-step without the sweep."""
    shares = softmax(m.log_joint(x), axis=1) * (1.0 if w is None else w[:, None])
    return shares, m.components.collect(x, shares)


def gap(m, got, want):
    """The largest difference of weights, means and scatters, in units of the data as the members see them."""
    unit = np.sqrt(m.components.variance)
    n = np.maximum(want.weight if m.components.kind == "full" else want.rows, 1e-300)[:, None]
    weight = np.abs(got.weight - want.weight).max() / n.max()
    seen = (n[:, 0] > 1e-9 * n.sum())[:, None]  # the mean of next to no weight is nobody's
    spread = np.sqrt(
        np.maximum(np.diagonal(want.scatter, axis1=1, axis2=2) if m.components.kind == "full" else want.scatter, 0) / n
    )
    size = np.maximum(unit, spread)
    mean = (seen * np.abs(got.mean - want.mean) / size).max()
    by = size[:, :, None] * size[:, None, :] if m.components.kind == "full" else size**2
    n = n[:, :, None] if m.components.kind == "full" else n
    return max(weight, mean, (np.abs(got.scatter - want.scatter) / (n.sum() * by)).max())


def swept(m, x, w=None):
    stats = m._collect_in_one_pass(np.ascontiguousarray(x), w)
    assert stats is not None  # else the test would test nothing
    return stats


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("K", "d", "n"), [(16, 3, 1000), (40, 2, 333), (20, 8, 5000), (17, 1, 64)])
def test_one_sweep_is_two(kind, weighted, K, d, n):
    rng = np.random.default_rng([K, d, n])
    m = Mixture(rng.dirichlet(np.full(K, 5.0)), gaussians(kind, K, d))
    x, w = m.sample(n, rng), rng.random(n) if weighted else None
    if m.components._natural is None:
        pytest.skip("so few members go another way")
    stats = swept(m, x, w)
    shares, want = separately(m, x, w)
    np.testing.assert_allclose(stats.counts, shares.sum(axis=0), rtol=1e-10)
    assert gap(m, stats.components, want) <= 1e-11
    each = entr(softmax(plain_joint(m, x), axis=1)).sum(axis=1)
    assert stats.entropy == pytest.approx(float(each.sum() if w is None else w @ each), rel=1e-9)
    joint = plain_joint(m, x)
    top = joint.max(axis=1)
    log_p = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
    want_objective = float(log_p.sum() if w is None else w @ log_p)
    assert m.objective(stats) == pytest.approx(want_objective, rel=1e-10)


@pytest.mark.parametrize(("p", "K", "n"), [(231, 12, 560), (231, 12, 1081), (10, 4, 0), (10, 4, 1), (2000, 40, 70)])
def test_products_in_pieces_are_the_products(p, K, n, rng):
    natural, features, weights = rng.normal(size=(K, p)).T, rng.normal(size=(p, n)), rng.normal(size=(K, n))
    pieces = fused_em_sweep._pieces(n, p * K)
    assert [at.start for at, _ in pieces] + [n] == [0] + [at.stop for at, _ in pieces] or not pieces
    assert bool(pieces) == (p == 231)
    np.testing.assert_allclose(fused_em_sweep._scores(natural, features), natural.T @ features, rtol=0, atol=1e-11)
    np.testing.assert_allclose(fused_em_sweep._weighted_sums(features, weights), features @ weights.T, atol=1e-11)


def by_dense_sums(x, shares):
    """Weight, mean and scatter of each member with long doubles: an oracle that an offset does not blunt."""
    x, shares = x.astype(np.longdouble), shares.astype(np.longdouble)
    weight = shares.sum(axis=0)
    mean = (shares.T @ x) / weight[:, None]
    scatter = np.stack([(shares[:, k, None] * (x - mean[k])).T @ (x - mean[k]) for k in range(len(mean))])
    return weight.astype(float), mean.astype(float), scatter.astype(float)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, -1e8])
@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_an_offset_costs_no_digits(kind, offset):
    rng = np.random.default_rng(3)
    plain = Mixture(np.full(16, 1 / 16), gaussians(kind, 16, 3))
    x = np.round(plain.sample(2000, rng) * 2**20) / 2**20  # what an offset of 1e8 leaves of a number
    x = (x + offset) - offset
    m = Mixture(plain.weights, plain.components.replace(mean=plain.components.mean + offset))
    stats = swept(m, x + offset)
    weight, mean, scatter = by_dense_sums(x, softmax(m.log_joint(x + offset), axis=1))
    np.testing.assert_allclose(stats.counts, weight, rtol=1e-9)
    tolerance = 1e-9 if offset == 0 else 1e-7 if abs(offset) < 1e6 else 2e-6  # of shares, which log p rounds
    np.testing.assert_allclose(
        stats.components.mean - offset, mean, atol=max(tolerance * 1e-2, 4e-16 * abs(offset) * 4)
    )
    want = scatter if kind == "full" else np.diagonal(scatter, axis1=1, axis2=2)
    np.testing.assert_allclose(stats.components.scatter, want, rtol=1e-8, atol=1e-8 * np.abs(want).max())


@pytest.mark.slow
@pytest.mark.some_cases(2)
@pytest.mark.parametrize("thin", [1e-3, 1e-5, 1e-6])
def test_thin_covariances(thin):
    """Members that are needles: their distances go through white coordinates, in the same sweep."""
    rng = np.random.default_rng(4)
    parts = gaussians("full", 16, 3)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    covariance = np.array(parts.covariance)
    covariance[:4] = turn @ np.diag([1.0, 1.0, thin**2]) @ turn.T
    m = Mixture(np.full(16, 1 / 16), Gaussian(parts.mean, covariance))
    x = m.sample(1000, rng)
    stats = m._collect_in_one_pass(x, None)
    shares = softmax(log_probs(m.components, x) + np.log(m.weights), axis=1)
    if stats is None:  # too thin even for that: the general way has to be right, then
        stats = m.collect(x)
    np.testing.assert_allclose(stats.counts, shares.sum(axis=0), rtol=1e-7 if thin > 1e-6 else 1e-5)
    W = np.linalg.inv(np.linalg.cholesky(m.components.covariance))
    weight, _, scatter = by_dense_sums(x, shares)
    white = W @ (stats.components.scatter - scatter) @ np.swapaxes(W, 1, 2) / weight[:, None, None]
    eps = np.finfo(float).eps  # in units of each member's own spread, in every direction: what float64 can hold
    assert np.abs(white).max() <= 1e-9 + 20 * eps / thin**2


def test_rows_far_out_are_left_to_the_general_way():
    rng = np.random.default_rng(5)
    m = Mixture(np.full(16, 1 / 16), gaussians("full", 16, 3))
    x = m.sample(500, rng)
    x[7] = 1e9
    assert m._collect_in_one_pass(x, None) is None
    stats = m.collect(x)
    assert stats.counts.sum() == pytest.approx(500.0) and np.isfinite(stats.components.scatter).all()
    far = int(m.log_joint(x[7:8]).argmax())
    want = plain_joint(m, x[7:8]).argmax()
    assert far == want and stats.components.mean[far].max() > 1e5


def test_rows_beyond_the_reach_of_the_product_are_scored_by_factors():
    rng = np.random.default_rng(5)
    parts = gaussians("full", 16, 3)
    covariance = np.array(parts.covariance)
    covariance[0] = np.diag([1.0, 1.0, 1e-2])
    m = Mixture(np.full(16, 1 / 16), Gaussian(parts.mean, covariance))
    x = m.sample(2000, rng)
    origin, unit = m.components.form.frame
    x[::100] = origin + unit * np.sqrt(1.5 * m.components.form.reach / 3)
    assert fused_em_sweep.FAR > 1.5 * m.components.form.reach
    stats = swept(m, x)
    shares = softmax(log_probs(m.components, x) + np.log(m.weights), axis=1)
    np.testing.assert_allclose(stats.counts, shares.sum(axis=0), rtol=1e-10)
    assert gap(m, stats.components, m.components.collect(x, shares)) <= 1e-11


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_values_are_left_to_the_general_way(kind):
    rng = np.random.default_rng(6)
    m = Mixture(np.full(16, 1 / 16), gaussians(kind, 16, 3))
    x = m.sample(300, rng)
    x[5, 1] = np.nan
    assert m._collect_in_one_pass(x, None) is None
    assert m.collect(x).counts.sum() == pytest.approx(300.0)


def test_an_infinity_is_named():
    m = Mixture(np.full(16, 1 / 16), gaussians("full", 16, 3))
    x = m.sample(300, np.random.default_rng(6))
    x[250, 2] = np.inf
    with pytest.raises(ValueError, match="inf at row 250, column 2"):
        m.collect(x)


def test_few_members_and_ties_are_left_to_the_general_way():
    rng = np.random.default_rng(7)
    tied = Mixture(np.full(5, 0.2), gaussians("tied"))
    x = tied.sample(100, rng)
    assert tied._collect_in_one_pass(x, None) is None and tied.collect(x).counts.sum() == pytest.approx(100.0)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_a_far_member_is_summed_about_its_own_mean(kind, monkeypatch):
    """Means far from the frame's origin, in their own spreads, would lose digits there."""
    rng = np.random.default_rng(8)
    spread = np.array([1e-4, *np.ones(15)])
    parts = Gaussian(
        np.concatenate([[[50.0, 50.0]], rng.standard_normal((15, 2))]),
        spread[:, None, None] * np.eye(2) if kind == "full" else spread[:, None] * np.ones(2), kind=kind,
    )  # fmt: skip
    m = Mixture(np.full(16, 1 / 16), parts)
    x = m.sample(4000, rng)
    stats = m._collect_in_one_pass(x, None)
    stats = m.collect(x) if stats is None else stats
    weight, _, scatter = by_dense_sums(x, softmax(plain_joint(m, x), axis=1))
    want = scatter[0] if kind == "full" else np.diagonal(scatter[0])
    np.testing.assert_allclose(stats.components.scatter[0], want, rtol=1e-9, atol=1e-9 * weight[0] * 1e-4)
    assert fused_em_sweep.FAR < 50.0**2 / 1e-4  # so that this is the case in question


def test_a_member_without_weight_has_no_part():
    m = Mixture([0.0, *np.full(16, 1 / 16)], gaussians("full", 17, 2))
    stats = m.collect(m.sample(500, np.random.default_rng(9)))
    assert stats.counts[0] == 0.0 and np.isfinite(stats.components.scatter).all()
    assert np.isfinite(m.refit(stats).components.covariance).all()

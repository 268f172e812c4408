"""Everything linear keeps a Gaussian a Gaussian: each method against dense numerics and against the others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likely import DomainError, Gaussian, ShapeError


def spd(rng, d, K=None):
    a = rng.standard_normal((*(() if K is None else (K,)), d, d + 2))
    return a @ np.swapaxes(a, -1, -2)


@pytest.fixture
def g(rng):
    return Gaussian(rng.standard_normal(4), spd(rng, 4))


@pytest.fixture
def stack(rng):
    return Gaussian(rng.standard_normal((3, 4)), spd(rng, 4, 3))


def same(a, b, tol=1e-10):
    """Two Gaussians are the same distribution."""
    np.testing.assert_allclose(a.mean, b.mean, rtol=tol, atol=tol)
    np.testing.assert_allclose(
        a.covariance_matrix, b.covariance_matrix, rtol=tol, atol=tol * np.abs(b.covariance_matrix).max()
    )


def members(stack):
    return [stack.member(k) for k in range(stack.members)]


# ------------------------------------------------------ marginal, conditional


@pytest.mark.parametrize("columns", [[0], [2, 0], [-1, 1], np.array([True, False, True, False])])
def test_marginals_are_parts(g, columns):
    at = np.arange(4)[columns]
    m = g.marginal(columns)
    assert np.array_equal(m.mean, g.mean[at]) and np.array_equal(m.covariance, g.covariance[np.ix_(at, at)])


def test_marginals_keep_their_kind(rng):
    diagonal = Gaussian(np.arange(3.0), [1.0, 2.0, 3.0]).marginal([2, 1])
    assert diagonal.kind == "diagonal" and diagonal.covariance.tolist() == [3.0, 2.0]
    assert Gaussian(np.arange(3.0), 2.0).marginal([1]).kind == "spherical"
    stack = Gaussian(rng.standard_normal((2, 3)), np.ones((2, 3)), kind="diagonal").marginal([0, 2])
    assert stack.members == 2 and stack.covariance.shape == (2, 2) and stack.kind == "diagonal"


@pytest.mark.parametrize("columns", [[], [4], [-5], [0, 0], [0, -4], [0.5], ["a"]])
def test_columns_are_distinct_and_there(g, columns):
    with pytest.raises(ShapeError, match="columns must"):
        g.marginal(columns)


def test_the_conditional_is_a_ratio_of_densities(g, rng):
    x = rng.standard_normal((5, 4))
    for row in x:
        c = g.condition({1: row[1], 3: row[3]})
        ratio = g.log_prob(row[None]) - g.marginal([1, 3]).log_prob(row[None, [1, 3]])
        np.testing.assert_allclose(c.log_prob(row[None, [0, 2]]), ratio, rtol=1e-10)


def test_the_conditional_in_two_columns():
    c = Gaussian([1.0, 2.0], [[4.0, 3.0], [3.0, 9.0]]).condition({1: 5.0})
    assert c.mean[0] == pytest.approx(1 + 3 / 9 * 3) and c.covariance[0, 0] == pytest.approx(4 - 9 / 9)


def test_conditions_in_steps_are_conditions_at_once(g):
    at_once = g.condition({0: 1.0, 2: -1.0})
    in_steps = g.condition({0: 1.0}).condition({1: -1.0})  # column 2 is now column 1
    same(in_steps, at_once)


def test_vectors_of_values_give_a_regression(g, rng):
    v = rng.standard_normal(7)
    many = g.condition({1: v, 2: 0.5})
    assert many.members == 7 and many.tied
    for k in range(7):
        same(many.member(k), g.condition({1: v[k], 2: 0.5}))


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("tied", [False, True])
def test_stacks_condition_member_by_member(rng, kind, tied):
    lead = () if tied else (3,)
    spread = {
        "full": spd(rng, 4, None if tied else 3),
        "diagonal": 1 + rng.random((*lead, 4)),
        "spherical": 1 + rng.random(lead),
    }
    stack = Gaussian(rng.standard_normal((3, 4)), spread[kind], kind=kind)
    for values in ({0: 0.3}, {0: 0.3, 3: np.array([1.0, 2.0, 3.0])}):
        c = stack.condition(values)
        for k, one in enumerate(members(stack)):
            mine = {j: np.ravel(v)[k if np.size(v) > 1 else 0] for j, v in values.items()}
            same(c.member(k), one.condition(mine))


def test_conditioning_on_a_singular_part_takes_what_there_is():
    c = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])  # columns 0 and 1 are one
    one, both = Gaussian(np.zeros(3), c).condition({0: 2.0}), Gaussian(np.zeros(3), c).condition({0: 2.0, 1: 2.0})
    assert both.mean[0] == pytest.approx(1.0) and both.covariance[0, 0] == pytest.approx(0.75)
    np.testing.assert_allclose(one.mean, [2.0, 1.0])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({0: 1, 1: 1, 2: 1, 3: 1}, "at least one column must remain"),
        ({}, "columns must be distinct"),
        ({9: 1.0}, "columns must lie in"),
        ({0: [[1.0]]}, "a number or a vector"),
        ({0: [1.0, 2.0], 1: [1.0, 2.0, 3.0]}, "the same length"),
    ],
)
def test_conditions_that_cannot_be_met(g, values, says):
    with pytest.raises(ShapeError, match=says):
        g.condition(values)
    with pytest.raises(ShapeError, match="one per member"):
        Gaussian(np.zeros((3, 2)), 1.0).condition({0: [1.0, 2.0]})
    with pytest.raises(DomainError, match="finite"):
        g.condition({0: np.nan})


# ------------------------------------------------------------ maps and Bayes


def test_affine_maps_are_maps_of_samples(g, rng):
    a, b, noise = rng.standard_normal((2, 4)), rng.standard_normal(2), spd(rng, 2)
    y = g.affine(a, b, noise)
    n = 100_000
    x = g.sample(n, rng) @ a.T + b + rng.multivariate_normal(np.zeros(2), noise, n)
    assert (np.abs(x.mean(axis=0) - y.mean) <= 4.9 * np.sqrt(y.variance / n)).all()
    spread = np.cov(x.T)
    error = np.sqrt((np.outer(y.variance, y.variance) + y.covariance**2) / n)
    assert (np.abs(spread - y.covariance) <= 4.9 * error).all()


def test_invertible_maps_change_the_density_by_their_determinant(g, rng):
    a, b = rng.standard_normal((4, 4)), rng.standard_normal(4)
    x = rng.standard_normal((9, 4))
    shift = np.linalg.slogdet(a)[1]
    np.testing.assert_allclose(g.affine(a, b).log_prob(x @ a.T + b) + shift, g.log_prob(x), rtol=1e-9)


def test_maps_compose(g, rng):
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((2, 3))
    same(g.affine(a, 1.0).affine(b, 2.0), g.affine(b @ a, b @ np.ones(3) + 2.0))


@pytest.mark.parametrize("rank", [1, 2])
def test_maps_may_lose_and_add_dimensions(g, rng, rank):
    a = rng.standard_normal((5, rank)) @ rng.standard_normal((rank, 4))
    y = g.affine(a)
    want = scipy.stats.multivariate_normal(y.mean, y.covariance, allow_singular=True)
    x = g.sample(10, rng) @ a.T
    np.testing.assert_allclose(y.log_prob(x), want.logpdf(x), rtol=1e-7)
    assert (y.form.rank == rank).all()


def test_a_row_vector_is_a_projection(g):
    assert g.affine([1.0, 0.0, 0.0, 0.0]).mean[0] == g.mean[0]


def test_stacks_map_member_by_member(stack, rng):
    a, b = rng.standard_normal((2, 4)), rng.standard_normal(2)
    y = stack.affine(a, b, 0.5)
    for k, one in enumerate(members(stack)):
        same(y.member(k), one.affine(a, b, [0.5, 0.5]))


def joint(g, a, b, r):
    """The distribution of (x, A x + b + noise) stacked."""
    m = len(a)
    both = np.concatenate([np.eye(g.dim), a])
    noise = np.zeros((g.dim + m, g.dim + m))
    noise[g.dim :, g.dim :] = r
    return g.affine(both, np.concatenate([np.zeros(g.dim), b]), noise)


@pytest.mark.parametrize("noise", ["matrix", "none"])
def test_the_posterior_is_the_conditional_of_the_joint(g, rng, noise):
    a, b, y = rng.standard_normal((2, 4)), rng.standard_normal(2), rng.standard_normal(2)
    r = spd(rng, 2) if noise == "matrix" else np.zeros((2, 2))
    same(g.posterior(y, a, b, r), joint(g, a, b, r).condition({4: y[0], 5: y[1]}), tol=1e-9)


def test_the_posterior_by_precisions(g, rng):
    """Herbst 8.11 with the erratum: [P⁻¹ + AᵀR⁻¹A]⁻¹."""
    a, r, y = rng.standard_normal((3, 4)), spd(rng, 3), rng.standard_normal(3)
    post = g.posterior(y, a, 0.0, r)
    precision = np.linalg.inv(g.covariance) + a.T @ np.linalg.inv(r) @ a
    np.testing.assert_allclose(post.covariance, np.linalg.inv(precision), rtol=1e-8, atol=1e-12)
    want = np.linalg.solve(precision, np.linalg.solve(g.covariance, g.mean) + a.T @ np.linalg.solve(r, y))
    np.testing.assert_allclose(post.mean, want, rtol=1e-8)


def test_rows_of_observations_give_a_stack(g, rng):
    a, y = rng.standard_normal((2, 4)), rng.standard_normal((6, 2))
    many = g.posterior(y, a, 0.0, 0.3)
    assert many.members == 6 and many.tied
    for k in range(6):
        same(many.member(k), g.posterior(y[k], a, 0.0, 0.3))


def test_stacks_learn_member_by_member(stack, rng):
    a, y = rng.standard_normal((2, 4)), rng.standard_normal((3, 2))
    post, one_y = stack.posterior(y, a, noise=0.3), stack.posterior(y[0], a, noise=0.3)
    for k, one in enumerate(members(stack)):
        same(post.member(k), one.posterior(y[k], a, noise=0.3))
        same(one_y.member(k), one.posterior(y[0], a, noise=0.3))


def test_posterior_covariances_never_lose_their_sign(rng):
    g = Gaussian(np.zeros(3), 1e12 * np.eye(3))
    post = g.posterior(np.ones(3), np.eye(3), noise=1e-12)
    assert np.linalg.eigvalsh(post.covariance)[0] > 0
    np.testing.assert_allclose(post.mean, 1.0, rtol=1e-12)


# --------------------------------------------------- sums, noise and products


def test_sums_of_independent_variables(rng):
    p, q = Gaussian([0.0, 1.0], spd(rng, 2)), Gaussian([2.0, 3.0], spd(rng, 2))
    s = p.sum(q)
    assert np.array_equal(s.mean, [2.0, 4.0]) and np.array_equal(s.covariance, p.covariance + q.covariance)
    d = Gaussian([0.0, 1.0], [1.0, 2.0]).sum(Gaussian([1.0, 1.0], [3.0, 4.0]))
    assert d.kind == "diagonal" and d.covariance.tolist() == [4.0, 6.0]
    assert Gaussian([0.0, 1.0], 1.0).sum(Gaussian([1.0, 1.0], 2.0)).covariance == 3.0
    same(p.sum(Gaussian([1.0, 1.0], [3.0, 4.0])), p.sum(Gaussian([1.0, 1.0], np.diag([3.0, 4.0]))))


def test_noise_is_a_convolution(rng):
    """Crowley's sensor: N(μ, Σ + β), for a number, a diagonal and a matrix."""
    g, beta = Gaussian([1.0, 2.0], spd(rng, 2)), spd(rng, 2)
    same(g.noisy(beta), g.sum(Gaussian([0.0, 0.0], beta)))
    same(g.noisy(0.5), g.noisy([0.5, 0.5]))
    assert np.array_equal(g.noisy(0.0).covariance, g.covariance)


def test_products_are_pointwise_up_to_the_overlap(rng):
    p, q = Gaussian(rng.standard_normal(3), spd(rng, 3)), Gaussian(rng.standard_normal(3), spd(rng, 3))
    x = rng.standard_normal((8, 3))
    np.testing.assert_allclose(
        p.product(q).log_prob(x) + p.log_overlap(q), p.log_prob(x) + q.log_prob(x), rtol=1e-9, atol=1e-9
    )
    same(p.product(q), q.product(p), tol=1e-9)


def test_the_overlap_is_an_integral():
    p, q = Gaussian([0.0], 1.0), Gaussian([1.0], [[2.0]])
    x = np.linspace(-20, 20, 20_001)[:, None]
    mass = np.exp(p.log_prob(x) + q.log_prob(x)).sum() * (x[1, 0] - x[0, 0])
    assert p.log_overlap(q) == pytest.approx(np.log(mass), rel=1e-12)


def test_one_factor_of_a_product_may_be_singular():
    flat = Gaussian([1.0, 2.0], [[1.0, 1.0], [1.0, 1.0]])
    out = flat.product(Gaussian([0.0, 0.0], np.eye(2)))
    # on the flat x = (1 + t, 2 + t): t ~ N(0, 1) times exp(−((1 + t)² + (2 + t)²)/2)
    assert out.mean == pytest.approx([1 - 1.0, 2 - 1.0]) and out.covariance == pytest.approx(np.full((2, 2), 1 / 3))


@pytest.mark.parametrize("name", ["sum", "product", "log_overlap", "kl"])
def test_stacks_meet_member_by_member(name, rng):
    p, q = Gaussian(rng.standard_normal((3, 2)), spd(rng, 2, 3)), Gaussian(rng.standard_normal((3, 2)), spd(rng, 2))
    one = Gaussian([0.0, 1.0], spd(rng, 2))
    for a, b in ((p, q), (q, p), (p, one), (one, p)):
        out = getattr(a, name)(b)
        for k in range(3):
            mine, theirs = a.member(k) if a.members else a, b.member(k) if b.members else b
            want = getattr(mine, name)(theirs)
            if isinstance(want, Gaussian):
                same(out.member(k), want)
            else:
                assert out[k] == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("name", ["sum", "product", "log_overlap", "kl"])
@pytest.mark.parametrize("other", [Gaussian([0.0], 1.0), Gaussian([0.0] * 3, 1.0), Gaussian(np.zeros((2, 2)), 1.0)])
def test_unlike_partners_are_refused(name, other):
    with pytest.raises(ShapeError, match=f"Gaussian.{name}: both must have 2 columns"):
        getattr(Gaussian(np.zeros((3, 2)), 1.0), name)(other)


@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        (lambda g: g.affine(np.ones((2, 3))), ShapeError),
        (lambda g: g.affine(np.ones((2, 4, 4))), ShapeError),
        (lambda g: g.affine(np.ones((2, 4)), [1.0, 2.0, 3.0]), ShapeError),
        (lambda g: g.affine(np.ones((2, 4)), noise=np.ones(3)), ShapeError),
        (lambda g: g.affine(np.ones((2, 4)), noise=[[1.0, 2.0], [2.0, 1.0]]), DomainError),
        (lambda g: g.affine(np.ones((2, 4)), noise=-1.0), DomainError),
        (lambda g: g.posterior([1.0], np.ones((2, 4))), ShapeError),
        (lambda g: g.posterior([1.0, 2.0], np.ones((2, 3))), ShapeError),
        (lambda g: g.posterior(np.ones((2, 2, 2)), np.ones((2, 4))), ShapeError),
        (lambda g: g.posterior([1.0, np.nan], np.ones((2, 4))), DomainError),
        (lambda g: g.noisy(np.eye(3)), ShapeError),
        (lambda g: g.noisy([[1.0, 0.1], [0.0, 1.0]]), ShapeError),
    ],
)
def test_maps_that_do_not_fit_are_refused(g, attempt, error):
    with pytest.raises(error, match=r"^Gaussian\."):
        attempt(g)


def test_results_own_their_memory_and_are_read_only(g, rng):
    v = rng.standard_normal(3)
    for out in (g.marginal([0, 1]), g.condition({0: v}), g.affine(np.eye(4)), g.noisy(1.0), g.sum(g), g.product(g)):
        assert not out.mean.flags.writeable and not out.covariance.flags.writeable
        assert not np.shares_memory(out.covariance, g.covariance)


def test_spread_over_noise_is_a_ratio_of_determinants():
    stack = Gaussian([[0.0, 0.0], [1.0, 1.0]], np.array([[[2.0, 0.5], [0.5, 1.0]], [[4.0, 0.0], [0.0, 9.0]]]))
    assert np.allclose(stack.log_spread_over_noise([0.5, 2.0]), np.log([1.75, 36.0]))
    assert Gaussian([0.0, 0.0], 3.0).log_spread_over_noise(3.0) == pytest.approx(0.0)
    with pytest.raises(DomainError, match="positive definite"):
        stack.log_spread_over_noise([0.0, 1.0])

"""The Gaussian itself: how it is built, what it says of points, and what it learns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats

from likely import DataError, DomainError, FitWarning, Gaussian, LikelyError, ShapeError

S2 = np.array([[2.0, 0.3], [0.3, 1.0]])


def spd(rng, d, K=None):
    a = rng.standard_normal((*(() if K is None else (K,)), d, d + 2))
    return a @ np.swapaxes(a, -1, -2)


# ------------------------------------------------------------- constructor

ONES2, ONES3 = np.zeros(2), np.zeros((3, 2))
READINGS = [
    # mean, covariance, kind given → kind, shape of the covariance, tied
    (0.0, 1.0, None, "spherical", (), False),
    (ONES2, 2.0, None, "spherical", (), False),
    (ONES2, [1.0, 2.0], None, "diagonal", (2,), False),
    (ONES2, S2, None, "full", (2, 2), False),
    (ONES2, 2.0, "diagonal", "diagonal", (2,), False),
    (ONES2, 2.0, "full", "full", (2, 2), False),
    (ONES2, [1.0, 2.0], "full", "full", (2, 2), False),
    (ONES2, S2, "full", "full", (2, 2), False),
    (ONES3, 2.0, None, "spherical", (), True),
    (ONES3, [1.0, 2.0], None, "diagonal", (2,), True),
    (ONES3, S2, None, "full", (2, 2), True),
    (ONES3, np.stack([S2] * 3), None, "full", (3, 2, 2), False),
    (ONES3, np.ones((3, 2)), "diagonal", "diagonal", (3, 2), False),
    (ONES3, np.ones(3), "spherical", "spherical", (3,), False),
    (ONES3, [1.0, 2.0], "diagonal", "diagonal", (2,), True),
    (ONES3, 3.0, "full", "full", (2, 2), True),
    # K equals d: without `kind`, (d,) and (d, d) are shared; with it, one per member
    (np.zeros((2, 2)), S2, None, "full", (2, 2), True),
    (np.zeros((2, 2)), S2, "full", "full", (2, 2), True),
    (np.zeros((2, 2)), [[1.0, 2.0], [3.0, 4.0]], "diagonal", "diagonal", (2, 2), False),
    (np.zeros((2, 2)), [1.0, 2.0], None, "diagonal", (2,), True),
    (np.zeros((2, 2)), [1.0, 2.0], "diagonal", "diagonal", (2,), True),
    (np.zeros((2, 2)), [1.0, 2.0], "spherical", "spherical", (2,), False),
    (np.zeros((1, 1)), 2.0, None, "spherical", (), True),
    (np.zeros((1, 1)), [[2.0]], None, "full", (1, 1), True),
    (np.zeros((1, 1)), [[[2.0]]], None, "full", (1, 1, 1), False),
]


@pytest.mark.parametrize(("mean", "covariance", "asked", "kind", "shape", "tied"), READINGS)
def test_each_shape_has_one_reading(mean, covariance, asked, kind, shape, tied):
    g = Gaussian(mean, covariance, kind=asked)
    assert (g.kind, g.covariance.shape, g.tied) == (kind, shape, tied)
    full = g.covariance_matrix
    assert full.shape == (*g.mean.shape, g.dim) and g.variance.shape == g.mean.shape
    assert np.array_equal(np.diagonal(full, axis1=-2, axis2=-1), g.variance)


@pytest.mark.parametrize(
    ("mean", "covariance", "kind", "error"),
    [
        (ONES2, np.ones(3), None, ShapeError),
        (ONES2, np.ones((3, 3)), None, ShapeError),
        (ONES3, np.ones(3), None, ShapeError),  # numbers (K,) need kind
        (ONES3, np.ones((3, 2)), None, ShapeError),  # diagonals (K, d) need kind
        (ONES3, np.ones((4, 2, 2)), None, ShapeError),
        (ONES2, S2, "diagonal", ShapeError),
        (ONES2, [1.0, 2.0], "spherical", ShapeError),
        (np.zeros((2, 2)), S2, "spherical", ShapeError),
        (np.zeros((2, 2, 2)), 1.0, None, ShapeError),
        (np.zeros(0), 1.0, None, ShapeError),
        (np.zeros((0, 2)), 1.0, None, ShapeError),
        ([[0.0, 1.0], [2.0]], 1.0, None, ShapeError),
        (ONES2, 1.0, "round", DomainError),
        (ONES2, -1.0, None, DomainError),
        (ONES2, [1.0, -1e-300], None, DomainError),
        (ONES2, [[1.0, 0.5], [0.4, 1.0]], None, DomainError),
        (ONES2, [[1.0, 2.0], [2.0, 1.0]], None, DomainError),
        (ONES2, [[0.0, 0.1], [0.1, 1.0]], None, DomainError),
        (ONES2, [[-1.0, 0.0], [0.0, -1.0]], None, DomainError),
        (ONES2, np.nan, None, DomainError),
        ([0.0, np.inf], 1.0, None, DomainError),
        (ONES2, "one", None, ShapeError),
    ],
)
def test_what_cannot_be_read_is_refused(mean, covariance, kind, error):
    with pytest.raises(error, match=r"^Gaussian: "):
        Gaussian(mean, covariance, kind=kind)


def test_symmetry_is_judged_in_the_columns_own_units():
    scale = np.array([1e-100, 1e100])
    c = np.array([[1.0, 0.5], [0.5, 1.0]]) * scale[:, None] * scale
    Gaussian(ONES2, c)
    with pytest.raises(DomainError, match="symmetric"):
        Gaussian(ONES2, c * [[1.0, 1.0], [1.001, 1.0]])


def test_members_of_a_stack(rng):
    means, covariances = rng.standard_normal((4, 3)), spd(rng, 3, 4)
    g = Gaussian(means, covariances)
    assert g.members == 4 and g.dim == 3 and not g.tied
    assert np.array_equal(g.member(2).mean, means[2]) and np.array_equal(g.member(-1).covariance, covariances[3])
    tied = Gaussian(means, covariances[0])
    assert tied.tied and np.array_equal(tied.member(3).covariance, covariances[0])


def test_repr_tells_small_ones_in_full():
    assert repr(Gaussian([0.0], 1.0)) == "Gaussian(mean=[0.0], covariance=1.0, kind='spherical')"
    assert repr(Gaussian(np.zeros((5, 3)), np.eye(3))) == "Gaussian(full, d=3, 5 members with one covariance)"


# ----------------------------------------------------------------- density


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_log_density_is_scipys(rng, d):
    mean, c = rng.standard_normal(d), spd(rng, d)
    x = rng.standard_normal((50, d)) * 5
    want = scipy.stats.multivariate_normal(mean, c).logpdf(x)
    np.testing.assert_allclose(Gaussian(mean, c).log_prob(x), want, rtol=1e-10)
    diagonal = scipy.stats.norm(mean, np.sqrt(np.diag(c))).logpdf(x).sum(axis=1)
    np.testing.assert_allclose(Gaussian(mean, np.diag(c).copy()).log_prob(x), diagonal, rtol=1e-13)
    np.testing.assert_allclose(
        Gaussian(mean, 2.0).log_prob(x), scipy.stats.norm(mean, 2**0.5).logpdf(x).sum(1), rtol=1e-13
    )


def test_mahalanobis_counts_standard_deviations(rng):
    g = Gaussian([1.0, 2.0], S2)
    x = rng.standard_normal((20, 2))
    z = x - g.mean
    want = np.einsum("ni,ij,nj->n", z, np.linalg.inv(S2), z)
    np.testing.assert_allclose(g.squared_distance(x), want, rtol=1e-12)
    np.testing.assert_allclose(g.mahalanobis(x), np.sqrt(want), rtol=1e-12)
    assert Gaussian([0.0], 4.0).mahalanobis([[6.0]])[0] == 3.0
    assert g.squared_distance([[1.0, np.nan]])[0] == 0.0 and g.squared_distance([[3.0, np.nan]])[0] == pytest.approx(
        2.0
    )


def test_squared_distance_in_rotated_coordinates():
    """Herbst 2.3 with the erratum: Δ² = yᵀ Λ⁻¹ y for y = Uᵀ(x − μ), eigenvectors in columns."""
    g = Gaussian([1.0, -1.0], S2)
    variances, axes = g.principal_axes()
    x = np.array([[0.3, 2.0], [-1.0, 5.0]])
    y = (x - g.mean) @ axes
    np.testing.assert_allclose((y**2 / variances).sum(axis=1), g.squared_distance(x), rtol=1e-12)
    np.testing.assert_allclose(axes @ np.diag(variances) @ axes.T, S2, rtol=1e-14)
    assert variances[0] >= variances[1]


def test_entropy_of_the_standard_normal():
    assert Gaussian([0.0], 1.0).entropy() == pytest.approx(1.4189385, abs=5e-8)  # Herbst 1.6
    assert Gaussian([0.0], 1.0).entropy(bits=True) == pytest.approx(1.4189385 / np.log(2), abs=1e-7)


def test_divergence_in_closed_form():
    a, b = Gaussian([1.0], 2.0), Gaussian([0.0], 3.0)
    assert a.kl(b) == pytest.approx(0.5 * (2 / 3 + 1 / 3 - 1 + np.log(3 / 2)), rel=1e-14)
    with pytest.raises(DomainError, match="positive definite"):
        Gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]).kl(Gaussian([0.0, 0.0], 1.0))
    with pytest.raises(DomainError, match="positive definite"):
        Gaussian([0.0, 0.0], 1.0).kl(Gaussian([0.0, 0.0], [1.0, 0.0]))


def test_divergence_of_stacks_goes_member_by_member(rng):
    p = Gaussian(rng.standard_normal((3, 2)), spd(rng, 2, 3))
    q = Gaussian(rng.standard_normal((3, 2)), spd(rng, 2))
    one = Gaussian([0.0, 1.0], [1.0, 2.0])
    np.testing.assert_allclose(p.kl(q), [p.member(k).kl(q.member(k)) for k in range(3)], rtol=1e-12)
    np.testing.assert_allclose(p.kl(one), [p.member(k).kl(one) for k in range(3)], rtol=1e-12)
    np.testing.assert_allclose(one.kl(p), [one.kl(p.member(k)) for k in range(3)], rtol=1e-12)


def test_a_singular_density_lives_on_its_flat(rng):
    a = rng.standard_normal((4, 2))
    g = Gaussian(np.arange(4.0), a @ a.T)
    want = scipy.stats.multivariate_normal(g.mean, g.covariance, allow_singular=True)
    x = g.sample(20, rng)
    np.testing.assert_allclose(g.log_prob(x), want.logpdf(x), rtol=1e-9)
    assert (g.log_prob(x + [1e-3, 0, 0, 0]) == -np.inf).all()
    assert g.entropy() == pytest.approx(
        0.5 * (2 * np.log(2 * np.pi * np.e) + np.log(np.linalg.det(a.T @ a))), rel=1e-12
    )
    assert np.isnan(g.log_prob([[np.nan] * 4])).sum() == 0


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_singular_densities_do_not_depend_on_units(rng, scale):
    a = rng.standard_normal((3, 2))
    g = Gaussian(np.zeros(3), a @ a.T)
    units = np.array([scale, 1.0, 1 / scale])
    h = Gaussian(np.zeros(3), a @ a.T * units[:, None] * units)
    x = g.sample(10, rng)
    assert np.isfinite(h.log_prob(x * units)).all()
    # on a flat, volumes change by the flat's own factor, the same for all points
    change = h.log_prob(x * units) - g.log_prob(x)
    assert np.ptp(change) <= 1e-9


def test_marginals_of_a_singular_density_integrate_missing_values_out():
    g = Gaussian([0.0, 1.0, 2.0], np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]))
    x = np.array([[0.5, np.nan, 3.0], [np.nan, np.nan, 3.0], [0.5, 1.5, np.nan], [0.5, 2.5, np.nan]])
    want = [
        scipy.stats.norm.logpdf(0.5) + scipy.stats.norm.logpdf(3.0, 2.0, 2.0),
        scipy.stats.norm.logpdf(3.0, 2.0, 2.0),
    ]
    np.testing.assert_allclose(g.log_prob(x)[:2], want, rtol=1e-12)
    # columns 0 and 1 move together: one dimension, of length √2 a standard deviation
    assert g.log_prob(x)[2] == pytest.approx(scipy.stats.norm.logpdf(0.5) - 0.5 * np.log(2.0), rel=1e-12)
    assert g.log_prob(x)[3] == -np.inf


def test_a_variance_of_nothing_is_a_point():
    g = Gaussian([1.0, 2.0], [0.0, 4.0])
    assert g.log_prob([[1.0, 2.0], [1.5, 2.0]]).tolist() == [
        pytest.approx(-np.log(2.0) - 0.5 * np.log(2 * np.pi)),
        -np.inf,
    ]
    point = Gaussian([1.0, 2.0], 0.0)
    assert point.log_prob([[1.0, 2.0], [1.0, 2.1]]).tolist() == [0.0, -np.inf] and point.entropy() == 0.0
    assert np.array_equal(point.sample(2, np.random.default_rng(0)), [[1.0, 2.0]] * 2)


def test_a_stack_with_one_singular_member(rng):
    c = np.stack([np.eye(2), np.ones((2, 2))])
    g = Gaussian(np.zeros((2, 2)), c)
    x = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, np.nan]])
    out = g.log_prob(x)
    for k in range(2):
        np.testing.assert_allclose(out[:, k], g.member(k).log_prob(x), rtol=1e-12)
    assert np.array_equal(np.isinf(out), [[False, False], [False, True], [False, False]])
    assert np.ptp(g.sample(50, rng)[:, 1] @ [1.0, -1.0]) < 1e-12


# ------------------------------------------------------- distribution function


def test_stacks_give_a_column_a_member():
    g = Gaussian([[0.0], [1.0], [2.0]], [[[1.0]], [[4.0]], [[9.0]]])
    x, p = np.array([-1.0, 0.0, 2.5, 7.0]), np.array([0.1, 0.5, 0.9])
    for k in range(3):
        assert np.array_equal(g.cdf(x)[:, k], g.member(k).cdf(x))
        assert np.array_equal(g.log_cdf(x)[:, k], g.member(k).log_cdf(x))
        assert np.array_equal(g.quantile(p)[:, k], g.member(k).quantile(p))
    assert g.cdf(x[:, None]).shape == (4, 3)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_point_is_passed_at_once():
    g = Gaussian([2.0], 0.0)
    assert g.cdf([1.0, 2.0, 3.0]).tolist() == [0.0, 1.0, 1.0]
    assert g.log_cdf([1.0, 2.0, 3.0]).tolist() == [-np.inf, 0.0, 0.0]
    assert g.quantile([0.0, 0.3, 1.0]).tolist() == [2.0, 2.0, 2.0]
    assert np.isnan(g.quantile([-0.1, 1.1])).all() and np.isnan(Gaussian([2.0], 1.0).quantile(1.1))


def test_distribution_functions_are_of_one_column():
    for attempt in (lambda g: g.cdf([0.0]), lambda g: g.quantile(0.5), lambda g: g.log_cdf([0.0])):
        with pytest.raises(DomainError, match=r"2 columns: take marginal\(\[j\]\) first"):
            attempt(Gaussian([0.0, 0.0], 1.0))


# ---------------------------------------------------------------- learning


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_the_fit_is_the_sample_moments(rng, kind):
    x, w = rng.standard_normal((40, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, -5.0], rng.random(40)
    g = Gaussian.fit(x, w, kind=kind)
    mean = w @ x / w.sum()
    c = (w[:, None] * (x - mean)).T @ (x - mean) / w.sum()
    want = {"full": c, "diagonal": np.diag(c), "spherical": np.diag(c).mean()}[kind]
    np.testing.assert_allclose(g.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(g.covariance, want, rtol=1e-12, atol=1e-14)


def test_likelihood_of_a_fit_is_a_determinant(rng):
    """Ney 8.2.4 with the erratum: Σ log N = −N/2 log det(2πe Σ̂)."""
    x = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 4))
    g = Gaussian.fit(x)
    want = -30 * np.linalg.slogdet(2 * np.pi * np.e * np.cov(x.T, bias=True))[1]
    assert g.log_prob(x).sum() == pytest.approx(want, rel=1e-12)


def test_projected_moments_are_moments_of_projected_data(rng):
    """Crowley with the erratum: Rᵀ Σ R."""
    x, r = rng.standard_normal((50, 4)) + 3.0, rng.standard_normal((4, 2))
    moments, data = Gaussian.fit(x).affine(r.T), Gaussian.fit(x @ r)
    np.testing.assert_allclose(moments.mean, data.mean, rtol=1e-12)
    np.testing.assert_allclose(moments.covariance, data.covariance, rtol=1e-11)


@pytest.mark.parametrize(("kind", "tied", "count"), [("full", False, 195), ("full", True, 85), ("diagonal", False, 60)])
def test_free_parameters_of_three_classes_in_ten_columns(kind, tied, count):
    """Herbst 4.2.3."""
    assert Gaussian.blank(np.ones((2, 10)), kind=kind, members=3, tied=tied).n_parameters == count


def test_unbiased_divides_by_one_less(rng):
    x = rng.standard_normal((12, 3))
    for kind in ("full", "diagonal", "spherical"):
        blank = Gaussian.blank(x, kind=kind)
        g = blank.refit(blank.collect(x), unbiased=True)
        c = np.cov(x.T)
        want = {"full": c, "diagonal": np.diag(c), "spherical": np.trace(c) / 3}[kind]
        np.testing.assert_allclose(g.covariance, want, rtol=1e-12)
    labels = np.arange(12) % 3
    tied = Gaussian.blank(x, members=3, tied=True)
    pooled = sum(np.cov(x[labels == k].T) * 3 for k in range(3)) / 9
    np.testing.assert_allclose(tied.refit(tied.collect(x, labels=labels), unbiased=True).covariance, pooled, rtol=1e-12)
    with pytest.raises(DataError, match="unbiased needs a weight above 1"):
        blank.refit(blank.collect(x[:1]), unbiased=True)


def test_a_stack_learns_each_member_from_its_rows(rng):
    x, labels = rng.standard_normal((60, 2)) * 3, rng.integers(0, 3, 60)
    for kind in ("full", "diagonal", "spherical"):
        blank = Gaussian.blank(x, kind=kind, members=3)
        stack = blank.refit(blank.collect(x, labels=labels))
        for k in range(3):
            one = Gaussian.fit(x[labels == k], kind=kind)
            np.testing.assert_allclose(stack.member(k).mean, one.mean, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(stack.member(k).covariance, one.covariance, rtol=1e-11)


def test_a_tied_stack_pools_scatters_about_their_own_means(rng):
    x, labels = rng.standard_normal((60, 2)), np.repeat([0, 1, 2], 20)
    x += np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])[labels]
    blank = Gaussian.blank(x, members=3, tied=True)
    stack = blank.refit(blank.collect(x, labels=labels))
    pooled = sum(np.cov(x[labels == k].T, bias=True) for k in range(3)) / 3
    np.testing.assert_allclose(stack.covariance, pooled, rtol=1e-12)


def test_moments_of_a_full_distribution_serve_the_others(rng):
    x = rng.standard_normal((30, 3))
    stats = Gaussian.blank(x).collect(x)
    for kind in ("diagonal", "spherical"):
        np.testing.assert_allclose(
            Gaussian.blank(x, kind=kind).refit(stats).covariance, Gaussian.fit(x, kind=kind).covariance, rtol=1e-13
        )
    with pytest.raises(ShapeError, match="a full covariance needs Moments"):
        Gaussian.blank(x).refit(Gaussian.blank(x, kind="diagonal").collect(x))


def test_a_diagonal_distribution_leaves_missing_values_out(rng):
    x = rng.standard_normal((50, 3))
    x[rng.random(x.shape) < 0.4] = np.nan
    g = Gaussian.fit(x, kind="diagonal")
    np.testing.assert_allclose(g.mean, np.nanmean(x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(g.covariance, np.nanvar(x, axis=0), rtol=1e-12)
    s = Gaussian.fit(x, kind="spherical")
    want = np.nansum((x - np.nanmean(x, axis=0)) ** 2) / np.isfinite(x).sum()
    assert s.covariance == pytest.approx(want, rel=1e-12)


def test_blank_looks_and_starts_near_the_data(rng):
    x = rng.standard_normal((20, 2)) + 1e8
    x[0, 1] = np.nan
    g = Gaussian.blank(x, kind="diagonal", members=4)
    assert g.members == 4 and not g.tied and np.allclose(g.mean, 1e8) and (g.variance > 0).all()
    with pytest.raises(DomainError, match="kind must be one of"):
        Gaussian.blank(x, kind="round")


def test_singular_estimates_are_lifted_and_say_so(rng):
    x = rng.standard_normal((20, 3))
    x[:, 1] = 5.0
    with pytest.warns(FitWarning, match="column 1 is constant over all data"):
        g = Gaussian.fit(x)
    assert np.isfinite(g.log_prob(x)).all() and g.variance[1] == pytest.approx((5e-8) ** 2, rel=1e-12)
    x[:, 1] = x[:, 0]
    with pytest.warns(FitWarning, match="rank 2 of 3"):
        g = Gaussian.fit(x)
    assert np.isfinite(g.log_prob(x)).all() and np.linalg.eigvalsh(g.covariance)[0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(Gaussian.fit(x, prior="weak").log_prob(x)).all()


def test_a_member_with_one_row_borrows_a_floor(rng):
    x, labels = rng.standard_normal((21, 2)) * [1.0, 100.0], np.array([0] * 20 + [1])
    blank = Gaussian.blank(x, members=2)
    with pytest.warns(FitWarning, match=r"\(member 1\).*constant here"):
        g = blank.refit(blank.collect(x, labels=labels))
    pooled = np.var(x, axis=0)
    np.testing.assert_allclose(g.variance[1], 1e-9 * pooled, rtol=1e-9)


@pytest.mark.parametrize("attempt", [lambda g, s: g.objective(s), lambda g, s: g.collect([[0.0, np.nan]])])
def test_a_singular_distribution_cannot_learn_from_missing_values_or_tell_its_objective(attempt):
    g = Gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(DomainError, match="not singular"):
        attempt(g, g.collect([[0.0, 0.0], [1.0, 2.0]]))


def test_an_label_needs_a_stack():
    with pytest.raises(DomainError, match="labels are for a stack"):
        Gaussian([0.0], 1.0).collect([[1.0]], labels=[0])


@pytest.mark.parametrize("x", [np.zeros((3, 3)), np.zeros(4), "no", [[1, 2], [3]], np.zeros((2, 2), complex), 3.0])
def test_rows_of_another_kind_are_refused(x):
    g = Gaussian([0.0, 0.0], 1.0)
    for attempt in (g.log_prob, g.collect, g.mahalanobis):
        with pytest.raises(LikelyError):
            attempt(x)


def test_expectations_come_with_their_error(rng):
    value, error = Gaussian([1.0, 2.0], S2).expect(lambda x: x[..., 0] * x[..., 1], n=50_000, rng=rng)
    assert 0 < error < 0.05 and abs(value - 2.3) < 4.9 * error


def test_a_covariance_that_passed_is_known_by_its_numbers_alone():
    """Small covariances are checked once; an array that was changed since, or refused before, is looked at again."""
    C = np.array([[2.0, 0.5], [0.5, 1.0]])
    for _ in range(2):
        assert Gaussian([0.0, 0.0], C).kind == "full"
    C[0, 1] = 0.75
    for _ in range(2):
        with pytest.raises(DomainError, match="symmetric"):
            Gaussian([0.0, 0.0], C)
    C[:] = [[1.0, 2.0], [2.0, 1.0]]
    for _ in range(2):
        with pytest.raises(DomainError, match="negative eigenvalues"):
            Gaussian([0.0, 0.0], C)
    for _ in range(2):
        with pytest.raises(DomainError, match="negative"):
            Gaussian([0.0, 0.0], [1.0, -1.0])

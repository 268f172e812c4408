"""The Bayes error against published numbers, enumeration, brute grids and draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import likely as lk
from likely.decision.theory.bayes_error import by_draws
from likely.decision.theory.bayes_error_integrals import in_the_plane, on_the_line
from likely.decision.theory.decision_problem import problem
from likely.decision.theory.gaussian_pair_error import _QuadraticForm, two_gaussians
from likely.distributions.distribution import Estimate

S = np.array([[1.0, 0.3], [0.3, 2.0]])
SQUARE = (lk.Gaussian([0.0, 0.0], S), lk.Gaussian([2.0, 1.0], [[4.0, 0.3], [0.3, 0.5]]))


class Plain:
    """A distribution that can only score and sample."""

    def __init__(self, distribution):
        self.distribution, self.dim = distribution, distribution.dim

    def log_prob(self, x):
        return self.distribution.log_prob(x)

    def sample(self, n, rng):
        return self.distribution.sample(n, rng)


# ------------------------------------------------------------------ closed forms


@pytest.mark.parametrize(("v", "error"), [(1, 0.308538), (2, 0.158655), (3, 0.066807), (4, 0.022750)])
def test_two_gaussians_with_equal_priors_err_by_half_their_distance(v, error):
    found = lk.bayes_error(lk.Gaussian([0.0], 1.0), lk.Gaussian([float(v)], 1.0))
    assert found.error == 0 and round(found.value, 6) == error
    same = lk.bayes_error(lk.Gaussian(np.zeros(v * v), 1.0), lk.Gaussian(np.ones(v * v), 1.0))  # D features, one σ each
    np.testing.assert_allclose(same.value, ndtr(-v / 2), rtol=1e-13)


def test_the_row_of_the_notes_with_unequal_priors():
    a, b = lk.Gaussian([0.0, 0.0], S), lk.Gaussian([2.0, 1.0], S)
    assert round(a.squared_distance([[2.0, 1.0]])[0], 7) == 4.0837696
    assert round(float(lk.bayes_error(a, b, class_prior=[0.7, 0.3])), 7) == 0.1366457
    assert round(float(lk.bayes_error(b, a, class_prior=[0.3, 0.7])), 7) == 0.1366457


def test_far_tails_keep_their_digits():
    found = lk.bayes_error(lk.Gaussian([0.0], 1.0), lk.Gaussian([40.0], 1.0))
    np.testing.assert_allclose(found.value, stats.norm.sf(20), rtol=1e-12)


@pytest.mark.parametrize(
    ("lam", "errors"),
    [(0.8, [0.2, 0.104, 0.05792, 0.0116542, 0.00096970]), (0.6, [0.4, 0.352, 0.31744, 0.246502, 0.174378])],
)
def test_mirrored_coins_as_in_the_notes(lam, errors):
    for D, error in zip((1, 3, 5, 11, 21), errors, strict=True):
        found = lk.bayes_error(lk.Bernoulli([lam] * D), lk.Bernoulli([1 - lam] * D))
        np.testing.assert_allclose(found.value, error, rtol=5e-6)  # as many digits as are printed
        np.testing.assert_allclose(found.value, stats.binom.cdf(D // 2, D, lam), rtol=1e-12)
        even = lk.bayes_error(lk.Bernoulli([lam] * (D + 1)), lk.Bernoulli([1 - lam] * (D + 1)))
        np.testing.assert_allclose(even.value, found.value, rtol=1e-12)  # ties count half
        assert found.value <= (4 * lam * (1 - lam)) ** (D / 2)
    bounds = [(4 * 0.8 * 0.2) ** (D / 2) for D in (1, 3, 5, 11, 21)]
    np.testing.assert_allclose(bounds, [0.8, 0.512, 0.32768, 0.0859, 0.00922], rtol=1e-3)


def test_thousands_of_coins_are_a_sum_over_their_number():
    D, lam = 4001, 0.52
    found = lk.bayes_error(lk.Bernoulli([lam, 1 - lam] * 2000 + [lam]), lk.Bernoulli([1 - lam, lam] * 2000 + [1 - lam]))
    np.testing.assert_allclose(found.value, stats.binom.cdf(D // 2, D, lam), rtol=1e-9)


# --------------------------------------------------------------------------- sums


def enumerated(distributions, prior, rows):
    joint = np.stack(
        [p * np.exp(distribution.log_prob(rows)) for p, distribution in zip(prior, distributions, strict=True)], axis=1
    )
    return float((joint.sum(axis=1) - joint.max(axis=1)).sum())


@pytest.mark.parametrize("K", [2, 3, 5])
def test_coins_by_enumeration(rng, K):
    probs = rng.random((K, 7))
    probs[:, 3], probs[:, 4], probs[0, 5] = probs[:, 2], 1 - probs[:, 2], 0.0
    distributions, prior = [lk.Bernoulli(p) for p in probs], rng.dirichlet(np.ones(K))
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=7)))
    found = lk.bayes_error(*distributions, class_prior=prior)
    assert found.error == 0
    np.testing.assert_allclose(found.value, enumerated(distributions, prior, rows), rtol=1e-12)


def test_columns_of_even_coins_are_mirrored_too():
    p = np.array([[0.5, 0.5, 0.5], [0.9, 0.1, 0.1]])
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    found = lk.bayes_error(lk.Bernoulli(p))
    distributions = [lk.Bernoulli(q) for q in p]
    np.testing.assert_allclose(found.value, enumerated(distributions, [0.5, 0.5], rows), rtol=1e-12)


def test_counts_and_levels_by_enumeration():
    distributions = lk.Poisson([1.0, 2.0]), lk.Poisson([3.0, 2.5])
    rows = np.array(list(itertools.product(range(60), repeat=2)), dtype=float)
    np.testing.assert_allclose(
        lk.bayes_error(*distributions).value, enumerated(distributions, [0.5, 0.5], rows), rtol=1e-12
    )
    distributions = lk.Categorical([0.5, 0.5, 0.0], ["a", "b", "c"]), lk.Categorical([0.2, 0.3, 0.5], ["a", "b", "c"])
    assert lk.bayes_error(*distributions) == Estimate(pytest.approx(0.25), 0.0)
    distributions = lk.Mixture([0.3, 0.7], lk.Poisson([[1.0], [9.0]])), lk.Poisson([4.0])
    rows = np.arange(80.0)[:, None]
    found = lk.bayes_error(*distributions)
    assert found.error == 0
    np.testing.assert_allclose(found.value, enumerated(distributions, [0.5, 0.5], rows), rtol=1e-12)
    distributions = lk.Multinomial([0.1, 0.9], length=4), lk.Multinomial([0.6, 0.4], length=4)
    rows = np.array([[k, 4 - k] for k in range(5)], dtype=float)
    np.testing.assert_allclose(
        lk.bayes_error(*distributions).value, enumerated(distributions, [0.5, 0.5], rows), rtol=1e-12
    )


# ---------------------------------------------------------------------- integrals


def by_grid(distributions, prior, x):
    joint = np.stack(
        [p * np.exp(distribution.log_prob(x[:, None])) for p, distribution in zip(prior, distributions, strict=True)],
        axis=1,
    )
    return float(np.trapezoid(joint.sum(axis=1) - joint.max(axis=1), x))


@pytest.mark.slow
def test_one_column_against_a_fine_grid():
    x = np.linspace(-60, 60, 2_000_001)
    distributions = lk.Gaussian([0.0], 1.0), lk.Gaussian([0.5], 9.0), lk.StudentT([3.0], [[1.0]], 5.0)
    found = lk.bayes_error(*distributions, class_prior=[0.2, 0.5, 0.3])
    assert 0 < found.error < 1e-9
    np.testing.assert_allclose(found.value, by_grid(distributions, [0.2, 0.5, 0.3], x), atol=1e-6)
    distributions = lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [3.0]], 1.0)), lk.Gaussian([1.0], 9.0)
    np.testing.assert_allclose(lk.bayes_error(*distributions).value, by_grid(distributions, [0.5, 0.5], x), atol=1e-9)


def test_unequal_variances_have_a_formula():
    r = math.sqrt(math.log(9) * 9 / 8)
    expected = 0.5 * (2 * ndtr(-r)) + 0.5 * (ndtr(r / 3) - ndtr(-r / 3))
    found = lk.bayes_error(lk.Gaussian([5e8], 1e-6), lk.Gaussian([5e8], 9e-6))
    np.testing.assert_allclose(found.value, expected, atol=1e-6)  # at 5e8 a double is 6e-8 wide
    found = lk.bayes_error(lk.Gaussian([0.0], 1.0), lk.Gaussian([0.0], 9.0))
    np.testing.assert_allclose(found.value, expected, rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_the_plane_knows_no_units(scale):
    """Circles in the plane: the radius has an exponential distribution."""
    r2 = math.log(16) / 0.75
    expected = 0.5 * math.exp(-r2 / 2) + 0.5 * (1 - math.exp(-r2 / 8))
    a, b = lk.Gaussian(np.zeros(2), scale**2 * np.eye(2)), lk.Gaussian(np.zeros(2), 4 * scale**2 * np.eye(2))
    found = lk.bayes_error(a, b)
    assert found.error < 1e-9
    np.testing.assert_allclose(found.value, expected, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
def test_sums_of_squares_are_chi_squares(d):
    for t in (0.01, 1.0, d, 5.0 * d, 20.0 * d):
        low, high = _QuadraticForm(0.0, np.zeros(d), np.ones(d)).tails(t)
        np.testing.assert_allclose([low, high], [stats.chi2.cdf(t, d), stats.chi2.sf(t, d)], rtol=1e-11)
        low, high = _QuadraticForm(2.0 * d, np.full(d, 4.0), np.full(d, 2.0)).tails(2 * t)  # 2 (e + 1)²
        np.testing.assert_allclose([low, high], [stats.ncx2.cdf(t, d, d), stats.ncx2.sf(t, d, d)], rtol=1e-8)
    low, high = _QuadraticForm(1.0, np.array([3.0, 4.0]), np.zeros(2)).tails(6.0)  # N(1, 25)
    np.testing.assert_allclose([low, high], [ndtr(1), ndtr(-1)], rtol=1e-12)
    assert _QuadraticForm(0.0, np.zeros(2), -np.ones(2)).tails(0.0) == (pytest.approx(1.0, abs=1e-12), 0.0)


def random_pair(rng, d, apart):
    A, B = rng.normal(size=(2, d, d))
    means = rng.normal(size=(2, d)) * apart
    return lk.Gaussian(means[0], A @ A.T + 0.1 * np.eye(d)), lk.Gaussian(means[1], B @ B.T + 0.1 * np.eye(d))


@pytest.mark.slow
@pytest.mark.parametrize("cost", [None, [[0, 5], [1, 0], [0.3, 0.3]]])
def test_contours_lines_and_planes_agree(rng, cost):
    for apart in (0.0, 0.5, 2.0):
        for _ in range(3):
            asked = problem(random_pair(rng, 2, apart), [0.3, 0.7], cost, "test")
            plane, contour = in_the_plane(asked), two_gaussians(asked)
            assert abs(plane.value - contour.value) <= plane.error + contour.error < 1e-8
            asked = problem(random_pair(rng, 1, apart), [0.3, 0.7], cost, "test")
            assert on_the_line(asked).value == pytest.approx(two_gaussians(asked).value, abs=1e-12)


@pytest.mark.parametrize("d", [3, 8, 30])
def test_two_gaussians_in_many_columns(rng, d):
    distributions = random_pair(rng, d, 0.3)
    found = lk.bayes_error(*distributions, class_prior=[0.4, 0.6])
    drawn = by_draws(problem(distributions, [0.4, 0.6], None, "test"), None, 50_000, rng)
    assert found.error < 1e-9 and abs(found.value - drawn.value) < 5 * drawn.error


def test_spheres_have_a_formula_in_every_dimension():
    d, v = 12, 4.0
    r2 = d * math.log(v) / (1 - 1 / v)
    expected = 0.5 * stats.chi2.sf(r2, d) + 0.5 * stats.chi2.cdf(r2 / v, d)
    found = lk.bayes_error(lk.Gaussian(np.full(d, 1e6), 1.0), lk.Gaussian(np.full(d, 1e6), v))
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


@pytest.mark.slow
def test_three_shared_covariances_lie_in_a_plane(rng):
    A = rng.normal(size=(6, 6))
    cov = A @ A.T + np.eye(6)
    distributions = [lk.Gaussian(m, cov) for m in rng.normal(size=(3, 6)) * 2]
    found, drawn = (
        lk.bayes_error(*distributions),
        by_draws(problem(tuple(distributions), None, None, "test"), None, 200_000, rng),
    )
    assert found.error < 2e-9 and abs(found.value - drawn.value) < 5 * drawn.error


COSTLY = [[0, 5], [1, 0], [0.3, 0.3]]
CASES = [
    (SQUARE, {"class_prior": [0.7, 0.3]}),
    (SQUARE, {"cost": COSTLY}),
    ((lk.Gaussian([0.0, 0.0], S), lk.Gaussian([2.0, 1.0], S)), {"cost": COSTLY}),
    (
        (lk.Gaussian([0.0], 1.0), lk.Gaussian([0.0], 9.0), lk.Gaussian([3.0], 1.0)),
        {"cost": [[0, 5, 1], [1, 0, 2], [1, 1, 0]]},
    ),
    ((*SQUARE, lk.Gaussian([0.0, 3.0], 0.5)), {}),
    ((lk.Bernoulli([0.1, 0.9, 0.4]), lk.Bernoulli([0.6, 0.5, 0.4])), {"cost": COSTLY}),
    ((lk.Poisson([4.0]), lk.Poisson([7.0])), {"cost": COSTLY, "class_prior": [0.9, 0.1]}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("distributions", "how"), CASES)
def test_exact_ways_agree_with_draws(distributions, how):
    found = lk.bayes_error(*distributions, **how)
    drawn = lk.bayes_error(*map(Plain, distributions), **how, n=200_000, rng=np.random.default_rng(3))
    assert found.error < 2e-9 < drawn.error < 0.01
    assert abs(found.value - drawn.value) < 4.5 * drawn.error


@pytest.mark.slow
def test_draws_go_on_to_the_tolerance(rng):
    distributions = Plain(lk.Gaussian(np.zeros(5), 1.0)), Plain(lk.Gaussian(np.ones(5), 2.0))
    found = lk.bayes_error(*distributions, tolerance=3e-4, rng=rng)
    exact = lk.bayes_error(distributions[0].distribution, distributions[1].distribution)
    assert exact.error < 1e-12 and abs(found.value - exact.value) < 5 * found.error
    assert 0 < found.error <= 3e-4
    z = [(lk.bayes_error(*distributions, n=2000, rng=rng).value - found.value) / 0.005 for _ in range(20)]
    assert np.abs(z).max() < 5


def test_a_tolerance_out_of_reach_is_reported(monkeypatch):
    monkeypatch.setattr("likely.decision.theory.bayes_error.MOST", 200_000)
    distributions = Plain(lk.Gaussian([0.0], 1.0)), Plain(lk.Gaussian([2.0], 1.0))
    with pytest.warns(lk.FitWarning, match="not met by 200,000 samples"):
        assert lk.bayes_error(*distributions, tolerance=1e-6).error > 1e-6


@pytest.mark.slow
def test_error_bars_cover_the_truth():
    distributions, truth = (Plain(lk.Gaussian([0.0], 1.0)), Plain(lk.Gaussian([2.0], 1.0))), ndtr(-1.0)
    rng = np.random.default_rng(1)
    z = np.array(
        [(e.value - truth) / e.error for e in (lk.bayes_error(*distributions, n=1000, rng=rng) for _ in range(300))]
    )
    assert 0.8 < z.std() < 1.15 and abs(z.mean()) < 0.2


def test_what_draws_cannot_see_is_in_the_error_bar():
    far = Plain(lk.Gaussian([0.0], 1.0)), Plain(lk.Gaussian([20.0], 1.0))
    found = lk.bayes_error(*far, n=1000)
    assert found.value < 1e-9 < 1e-4 < found.error


# ------------------------------------------------------------------------ who asks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not converged")
def test_classifiers_and_mixtures_know_their_classes(rng):
    X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(100, 2)) * 2 + 1])
    y = np.repeat(["a", "b"], [300, 100])
    clf = lk.BayesClassifier().fit(X, y)
    found = lk.bayes_error(clf)
    assert found == lk.bayes_error(clf.model_) and found.error < 1e-9
    distributions = [clf.model_.components.member(k) for k in range(2)]
    assert found == lk.bayes_error(*distributions, class_prior=clf.class_prior_)
    by_label = lk.bayes_error(clf, class_prior={"a": 0.5, "b": 0.5})
    assert by_label == lk.bayes_error(*distributions) == lk.bayes_error(clf.model_.components)
    pooled = lk.BayesClassifier(lk.GaussianDensity("pooled"), cost={"a": {"a": 0, "b": 5}, "b": {"a": 1, "b": 0}})
    assert lk.bayes_error(pooled.fit(X, y)).error == 0 and lk.bayes_error(pooled).value > 0
    mixed = lk.BayesClassifier(lk.MixtureDensity(lk.GaussianDensity(), 2, random_state=0)).fit(X, y)
    assert 0.05 < lk.bayes_error(mixed, n=5000).value < 0.25


def test_unlike_parts_and_sequences_need_only_score_and_sample(rng):
    p = lk.Product({"a": lk.Gaussian([0.0], 1.0), "b": lk.Categorical([0.3, 0.7])})
    q = lk.Product({"a": lk.Gaussian([2.0], 1.0), "b": lk.Categorical([0.3, 0.7])})
    found = lk.bayes_error(p, q, rng=rng)
    assert abs(found.value - ndtr(-1)) < 5 * found.error


@pytest.mark.slow
def test_points_and_flats_are_never_mistaken():
    """What is singular holds its rows with certainty; a density beside it says nothing."""
    G = lk.Gaussian
    flat = G([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])
    for distributions in ((G([0.0], 0.0), G([1.0], 1.0)), (flat, G([1.0, 0.0], 1.0)), (G([0.0], 0.0), G([1.0], 0.0))):
        found = lk.bayes_error(*distributions)
        assert found.value == 0 and found.error < 1e-4
        assert lk.decision.bhattacharyya_bound(*distributions).value == 0
    assert lk.bayes_error(G([0.0], 0.0), G([0.0], 0.0)).value == 0.5
    other = G([2.0, 2.0], [[1.0, 1.0], [1.0, 1.0]])  # on the same flat, √8 apart at a deviation of √2
    found = lk.bayes_error(flat, other)
    assert abs(found.value - ndtr(-1.0)) < 5 * found.error


def test_counts_in_one_proportion_count_together():
    a, b = lk.Poisson([10.0, 5.0, 1.0, 7.0] * 3), lk.Poisson([12.0, 6.0, 1.2, 7.0] * 3)
    found = lk.bayes_error(a, b)
    assert found.error == 0
    np.testing.assert_allclose(found.value, lk.bayes_error(lk.Poisson([48.0]), lk.Poisson([57.6])).value, rtol=1e-12)
    assert lk.bayes_error(a, a).value == pytest.approx(0.5)
    pair = lk.Poisson([1.0, 2.0]), lk.Poisson([3.0, 0.0])
    rows = np.array(list(itertools.product(range(60), repeat=2)), dtype=float)
    np.testing.assert_allclose(lk.bayes_error(*pair).value, enumerated(pair, [0.5, 0.5], rows), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_sizes_far_apart():
    G = lk.Gaussian
    assert lk.bayes_error(G([0.0], 1e-200), G([0.0], 1e200)).value < 1e-90
    for d in (1, 2, 3, 7):
        assert lk.bayes_error(G(np.zeros(d), 1e-8), G(np.zeros(d), 1e8)).value < 1e-6
        found = lk.bayes_error(G(np.zeros(d), 1.0), G(np.full(d, 1e6), 2.0))
        assert found.value < 1e-300 and found.error < 1e-12
    far = lk.bayes_error(G(np.zeros(3), 1.0), G(np.full(3, 30.0), 2.0))
    assert 1e-105 < far.value < 1e-100


def test_factors_are_gaussians(rng):
    X = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    X[100:] *= 2
    clf = lk.BayesClassifier(lk.decomposition.PPCA(2)).fit(X, np.repeat([0, 1], 100))
    assert lk.bayes_error(clf).error < 1e-9 and lk.decision_boundary(clf).kind in ("ellipsoid", "hyperboloid")


def test_classes_that_never_come_do_not_count():
    distributions = lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 1.0), lk.Gaussian([2.0], 1.0)
    found = lk.bayes_error(*distributions, class_prior=[0.5, 0.0, 0.5])
    np.testing.assert_allclose(found.value, ndtr(-1), rtol=1e-12)
    assert lk.bayes_error(*distributions, class_prior=[0.0, 1.0, 0.0]).value == pytest.approx(0)
    assert lk.bayes_error(distributions[0], distributions[0]).value == 0.5


@pytest.mark.parametrize(
    ("distributions", "how", "words"),
    [
        ((), {}, "two classes or more"),
        ((lk.Gaussian([0.0], 1.0),), {}, "two classes or more"),
        ((lk.Gaussian([0.0], 1.0), 3), {}, "log_prob and sample"),
        ((lk.Gaussian([0.0], 1.0), lk.Gaussian([0.0, 1.0], 1.0)), {}, "same number of columns"),
        ((lk.Gaussian([0.0], 1.0), lk.Gaussian([[0.0], [1.0]], 1.0)), {}, "lone"),
        (SQUARE, {"class_prior": [0.5, 0.6]}, "add to 1"),
        (SQUARE, {"cost": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, "column for each"),
        (SQUARE, {"tolerance": -1.0}, "positive"),
        (SQUARE, {"n": 1}, "2 or more"),
        ((lk.BayesClassifier(),), {}, "fitted"),
    ],
)
def test_refusals(distributions, how, words):
    with pytest.raises(lk.LikelyError, match=words):
        lk.bayes_error(*distributions, **how)


def test_an_estimate_is_a_number():
    assert float(Estimate(0.25, 0.1)) == 0.25


def test_a_score_that_is_no_density_is_reported():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + y[:, None]
    with pytest.warns(lk.FitWarning, match="integrate to one, got KNNBalls"):
        lk.bayes_error(lk.BayesClassifier(lk.KNNDensity(3)).fit(X, y), n=200)

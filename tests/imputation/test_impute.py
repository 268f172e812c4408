"""Missing values: marginal likelihood, EM against a general optimizer, imputation by expectation or draw."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal

from likely import (
    Bernoulli,
    Categorical,
    DataError,
    DomainError,
    Gaussian,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Product,
    StoppingRule,
    StudentT,
    fit,
    impute,
)
from likely.core import Columns
from likely.distributions import FactorGaussian, Stack, Tied
from likely.mixture import FixedComponents, ScaledCopies
from tests.reliability.em_problems import gaussians

NAN = np.nan


def mixture(kind="full", K=3, d=3, seed=1):
    rng = np.random.default_rng(seed)
    return Mixture(rng.dirichlet(np.full(K, 4.0)), gaussians(rng, K, d, kind))


def gappy(m, n=60, rate=0.4, seed=2):
    rng = np.random.default_rng(seed)
    x = m.sample(n, rng)
    x[rng.random(x.shape) < rate] = NAN
    return x


# -------------------------------------------------------------------- scoring


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_a_missing_value_is_integrated_out_numerically(kind):
    m = mixture(kind, d=2)
    for row in ([0.3, NAN], [NAN, -1.2], [2.5, NAN]):
        row = np.array(row)
        at = int(np.flatnonzero(np.isnan(row))[0])

        def density(t, row=row, at=at):
            filled = row.copy()
            filled[at] = t
            return float(np.exp(m.log_prob(filled[None])[0]))

        want, error = quad(density, -40, 40, points=np.sort(m.components.mean[:, at]), epsabs=1e-13, limit=200)
        assert error < 1e-8 and np.exp(m.log_prob(row[None])[0]) == pytest.approx(want, rel=1e-8)


def test_a_missing_value_in_counts_and_categories_is_summed_out():
    m = Mixture([0.3, 0.7], Product({"a": Poisson([[1.0], [4.0]]), "b": Categorical([[0.2, 0.8], [0.9, 0.1]])}))
    whole = np.array([[a, 1.0] for a in range(200)])
    assert m.log_prob([[NAN, 1.0]])[0] == pytest.approx(logsumexp(m.log_prob(whole)), rel=1e-12)
    both = np.array([[3.0, 0.0], [3.0, 1.0]])
    assert m.log_prob([[3.0, NAN]])[0] == pytest.approx(logsumexp(m.log_prob(both)), rel=1e-12)
    assert m.log_prob([[NAN, NAN]])[0] == pytest.approx(0.0, abs=1e-15)
    coins = Mixture([0.3, 0.7], Bernoulli([[0.2, 0.5], [0.9, 0.4]]))
    assert coins.log_prob([[NAN, 1.0]])[0] == pytest.approx(
        logsumexp(coins.log_prob([[0.0, 1.0], [1.0, 1.0]])), rel=1e-13
    )


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_a_row_that_was_not_seen_at_all_says_nothing(kind):
    m = mixture(kind)
    nothing = np.full((2, 3), NAN)
    np.testing.assert_allclose(m.log_prob(nothing), 0.0, atol=1e-12)
    np.testing.assert_allclose(m.posterior(nothing), np.tile(m.weights, (2, 1)), rtol=1e-12)
    stats = m.collect(nothing)  # the labels of such rows are what they were expected to be
    np.testing.assert_allclose(stats.counts, 2 * m.weights, rtol=1e-12)
    x = m.sample(50, np.random.default_rng(3))
    with_empty = m.refit(m.collect(np.concatenate([x, nothing])))
    np.testing.assert_allclose(with_empty.components.mean, m.refit(m.collect(x)).components.mean, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------- learning


@pytest.mark.slow
def test_em_with_missing_values_finds_the_summit_that_a_plain_optimizer_finds():
    """Two Gaussians in two columns, a third of the entries missing: 11 parameters, climbed both ways."""
    truth = Mixture(
        [0.4, 0.6], Gaussian([[-2.0, 0.0], [2.0, 1.0]], [[[1.0, 0.5], [0.5, 1.0]], [[0.7, -0.3], [-0.3, 0.9]]])
    )
    x = gappy(truth, 150, 0.3)
    x = x[np.isfinite(x).any(axis=1)]

    def unpacked(p):
        w = softmax(np.array([0.0, p[0]]))
        roots = np.zeros((2, 2, 2))
        roots[:, 0, 0], roots[:, 1, 1], roots[:, 1, 0] = np.exp(p[5:7]), np.exp(p[7:9]), p[9:11]
        return w, p[1:5].reshape(2, 2), roots @ np.swapaxes(roots, 1, 2)

    def log_likelihood(p):
        w, means, covariances = unpacked(p)
        total = 0.0
        for pattern in ([0, 1], [0], [1]):
            seen = np.isfinite(x[:, pattern]).all(axis=1) & (np.isfinite(x).sum(axis=1) == len(pattern))
            rows = x[seen][:, pattern]
            each = [multivariate_normal(m[pattern], S[np.ix_(pattern, pattern)]).logpdf(rows) for m, S in zip(means, covariances, strict=True)]  # fmt: skip # noqa: E501
            total += logsumexp(np.stack(each, axis=-1) + np.log(w), axis=-1).sum()
        return total

    start = Mixture([0.5, 0.5], Gaussian([[-1.0, 0.0], [1.0, 0.0]], np.stack([np.eye(2)] * 2)))
    report = fit(start, x, stop=StoppingRule(3000, 1e-12)).require_converged()
    m = report.model
    roots = np.linalg.cholesky(m.components.covariance)
    here = np.concatenate(
        [
            [np.log(m.weights[1] / m.weights[0])],
            m.components.mean.ravel(),
            np.log(roots[:, 0, 0]),
            np.log(roots[:, 1, 1]),
            roots[:, 1, 0],
        ]
    )
    assert report.objective == pytest.approx(log_likelihood(here), rel=1e-10)
    far = np.array([0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = minimize(lambda p: -log_likelihood(p), far, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    assert -found.fun == pytest.approx(report.objective, abs=1e-6)
    w, means, covariances = unpacked(found.x)
    np.testing.assert_allclose(m.weights, w, atol=1e-4)
    np.testing.assert_allclose(m.components.mean, means, atol=1e-3)
    np.testing.assert_allclose(m.components.covariance, covariances, atol=1e-3)


# ------------------------------------------------------------------- expectation


def by_hand(m, row):
    """E[missing | seen] by the dense formula, one part after the other."""
    seen, gap = np.flatnonzero(np.isfinite(row)), np.flatnonzero(np.isnan(row))
    logs, expected = [], []
    for w, mean, S in zip(m.weights, m.components.mean, m.components.covariance_matrix, strict=True):
        if len(seen):
            inverse = np.linalg.inv(S[np.ix_(seen, seen)])
            away = row[seen] - mean[seen]
            logs.append(np.log(w) + multivariate_normal(mean[seen], S[np.ix_(seen, seen)]).logpdf(row[seen]))
            expected.append(mean[gap] + S[np.ix_(gap, seen)] @ inverse @ away)
        else:
            logs.append(np.log(w))
            expected.append(mean[gap])
    out = row.copy()
    out[gap] = softmax(logs) @ np.array(expected)
    return out


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_gaussian_missing_values_are_filled_by_conditional_expectation(kind):
    m = mixture(kind)
    x = gappy(m, 40, 0.5)
    x[0] = NAN
    got = impute(m, x)
    np.testing.assert_allclose(got, [by_hand(m, row) for row in x], rtol=1e-9, atol=1e-10)
    kept = np.isfinite(x)
    assert (got[kept] == x[kept]).all() and np.isnan(x[0]).all()  # what was seen is untouched, and so is the input
    assert impute(m, got).tobytes() == got.tobytes()


def test_one_covariance_for_all_and_shared_parts():
    rng = np.random.default_rng(4)
    tied = Mixture([0.2, 0.8], gaussians(rng, 2, 3, "full", tied=True))
    x = gappy(tied, 20)
    np.testing.assert_allclose(impute(tied, x), [by_hand(tied, row) for row in x], rtol=1e-9, atol=1e-10)
    distribution = gaussians(rng, 2, 3, "full")
    shared = Mixture([0.2, 0.3, 0.5], Tied(distribution, [0, 1, 0]))
    plain = Mixture([0.2, 0.3, 0.5], distribution.take(np.array([0, 1, 0])))
    np.testing.assert_allclose(impute(shared, x), impute(plain, x), rtol=1e-10)


def test_counts_flags_and_categories():
    m = Mixture(
        [0.5, 0.5], Product({"n": Poisson([[1.0], [9.0]]), "c": Categorical([[0.9, 0.1], [0.2, 0.8]], ["a", "b"])})
    )
    x = Columns(n=np.array([[NAN], [9.0], [NAN]]), c=np.array(["a", None, None], dtype=object))
    filled = impute(m, x)
    share = np.array([0.9, 0.2]) / 1.1
    np.testing.assert_allclose(filled["n"][:, 0], [share @ [1.0, 9.0], 9.0, 5.0], rtol=1e-12)
    assert filled["c"].ravel().tolist() == ["a", "b", "a"]  # the third: 0.55 against 0.45
    flags = Mixture([0.5, 0.5], Bernoulli([[0.9, 0.9], [0.2, 0.1]]))
    np.testing.assert_allclose(impute(flags, np.array([[1.0, NAN]])), [[1.0, (0.9 * 0.9 + 0.2 * 0.1) / 1.1]])


def test_mixtures_of_mixtures_are_filled_as_the_flat_mixture_that_they_are():
    rng = np.random.default_rng(10)
    inner = gaussians(rng, 6, 3, "full")
    outer, within = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2), 3)
    nested, flat = Mixture(outer, Mixture(within, inner)), Mixture((outer[:, None] * within).ravel(), inner)
    x = gappy(flat, 50)
    np.testing.assert_allclose(impute(nested, x), impute(flat, x), rtol=1e-9, atol=1e-10)
    drawn = impute(nested, np.tile(x[:1], (20_000, 1)), np.random.default_rng(11))
    mean, covariance = conditional_moments(flat, x[0])
    assert np.isnan(x[0]).any() and np.isfinite(x[0]).any()
    error = np.sqrt(np.diagonal(covariance) / 20_000)
    assert (np.abs(drawn.mean(axis=0)[np.isnan(x[0])] - mean) < 5 * error).all()


def test_a_product_with_a_mixture_inside():
    """The label of the whole says how probable the label inside is; each part of a row has its own gaps."""
    rng = np.random.default_rng(12)
    inside = Mixture(rng.dirichlet(np.ones(2), 2), gaussians(rng, 4, 2, "full"))
    m = Mixture([0.4, 0.6], Product({"v": inside, "n": Poisson([[1.0], [9.0]])}))
    v = np.array([[0.5, NAN], [NAN, 1.0]])
    x = Columns(v=v, n=np.array([[3.0], [NAN]]))
    share = m.posterior(x)
    want = sum(share[:, [c]] * impute(inside.member(c), v) for c in range(2))
    np.testing.assert_allclose(impute(m, x)["v"], want, rtol=1e-10)


def test_single_precision_comes_back_as_such():
    m = mixture()
    x = gappy(m).astype(np.float32)
    got = impute(m, x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, impute(m, x.astype(np.float64)), rtol=1e-6, atol=1e-6)


def test_what_cannot_be_filled_says_so():
    with pytest.raises(DomainError, match=r"impute: Gaussian, categorical, .* are needed, got StudentT"):
        impute(StudentT([0.0], [1.0], 3.0), np.array([[NAN]]))
    words = Mixture([0.5, 0.5], Multinomial([[0.5, 0.5], [0.2, 0.8]]))
    with pytest.raises(DomainError, match=r"counts are drawn given their total.*impute by expectation"):
        impute(words, np.array([[1.0, NAN]]), np.random.default_rng(0))
    with pytest.raises(DomainError, match=r"impute: one density is needed, got a stack of 2: take member\(k\)"):
        impute(words.components, np.array([[1.0, NAN]]))
    with pytest.raises(DataError, match=r"impute: values must be finite.*row 0, column 0"):
        impute(Gaussian([0.0, 0.0], np.eye(2)), np.array([[np.inf, NAN]]))


# ------------------------------------------------------------------- units, and flats


@pytest.mark.parametrize("units", [[0.01, 1.0, 1e6], [1e-8, 1.0, 1e8], [1e8, 1e-8, 1e8], [1e-100, 1.0, 1e100]])
@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_units_do_not_matter(units, kind):
    m, unit = mixture(kind), np.array(units)
    scale = unit[:, None] * unit if kind == "full" else unit**2
    other = Mixture(m.weights, Gaussian(m.components.mean * unit, m.components.covariance * scale, kind))
    x = gappy(m, 40, 0.4)
    want = np.array([by_hand(m, row) for row in x])  # the dense formula, where it is safe
    np.testing.assert_allclose(impute(other, x * unit) / unit, want, rtol=1e-9, atol=1e-10)
    plain, scaled = (
        impute(distribution, z, np.random.default_rng(3)) for distribution, z in ((m, x), (other, x * unit))
    )
    np.testing.assert_allclose(scaled / unit, plain, rtol=1e-6, atol=1e-6)


def test_columns_that_determine_each_other():
    """The third column is the sum of the first two: two of them tell the third, and a copy tells nothing new."""
    A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    unit = np.array([1e-3, 1.0, 1e5])
    distribution = Gaussian(np.array([1.0, 2.0, 3.0]) * unit, (A @ A.T) * unit[:, None] * unit)
    x = np.array([[4.0, 1.0, NAN], [4.0, NAN, 5.0], [NAN, NAN, 6.0]]) * unit
    for rng in (None, np.random.default_rng(0)):
        got = impute(distribution, x, rng) / unit
        np.testing.assert_allclose(got[:2], [[4.0, 1.0, 5.0], [4.0, 1.0, 5.0]], atol=1e-6)
        assert got[2, 0] + got[2, 1] == pytest.approx(6.0)
    twice = Gaussian([0.0, 0.0, 0.0], [[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    np.testing.assert_allclose(impute(twice, np.array([[2.0, 2.0, NAN]])), [[2.0, 2.0, 1.0]], atol=1e-12)
    still = Gaussian([0.0, 7.0, 0.0], np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 1.0]]))
    np.testing.assert_allclose(impute(still, np.array([[2.0, 7.0, NAN], [2.0, NAN, 0.0]]))[[0, 1], [2, 1]], [1.0, 7.0])


# ------------------------------------------------------------------- words, sizes, unlike members


def test_words_are_filled_in_proportion_to_what_was_seen():
    probs = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    m = Mixture([0.4, 0.6], Multinomial(probs, length=7.0))
    x = np.array([[3.0, NAN, 1.0], [NAN, NAN, 4.0], [1.0, 2.0, 3.0], [NAN, NAN, NAN]])
    got, share = impute(m, x), m.posterior(x)
    assert got[0, 1] == pytest.approx(share[0] @ (4.0 * probs[:, 1] / (probs[:, 0] + probs[:, 2])))
    np.testing.assert_allclose(got[1, :2], share[1] @ (4.0 * probs[:, :2] / probs[:, 2:]))
    np.testing.assert_allclose(got[3], 7.0 * m.weights @ probs)
    seen = np.isfinite(x)
    assert (got[seen] == x[seen]).all()


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_sizes_fixed_parts_and_factors_are_gaussians_too(kind):
    rng = np.random.default_rng(13)
    base = gaussians(rng, 2, 3, kind).member(0)
    sized = ScaledCopies(base, [1.0, 50.0])
    x = gappy(Mixture([0.5, 0.5], sized.gaussian), 30)
    for distribution in (sized, FixedComponents(sized)):
        got = impute(Mixture([0.9, 0.1], distribution), x)
        np.testing.assert_allclose(got, impute(Mixture([0.9, 0.1], sized.gaussian), x), rtol=1e-10)
    few = FactorGaussian(rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 1)), np.array([0.5, 0.2]), "spherical")
    np.testing.assert_allclose(
        impute(Mixture([0.3, 0.7], few), x), impute(Mixture([0.3, 0.7], few.gaussian), x), rtol=1e-9
    )
    np.testing.assert_allclose(impute(few.member(0), x), impute(few.member(0).gaussian, x), rtol=1e-8, atol=1e-10)


def test_unlike_members_fill_by_their_shares():
    rng = np.random.default_rng(14)
    stack = gaussians(rng, 3, 3, "full")
    flat = Mixture([0.2, 0.5, 0.3], stack)
    inner = Mixture([0.4, 0.6], stack.take(np.array([0, 2])))
    unlike = Mixture([0.5, 0.5], Stack([stack.member(1), inner]))
    x = gappy(flat, 40)
    np.testing.assert_allclose(impute(unlike, x), impute(flat, x), rtol=1e-9, atol=1e-10)
    drawn = impute(unlike, np.tile(x[:1], (20_000, 1)), np.random.default_rng(11))[:, np.isnan(x[0])]
    mean, covariance = conditional_moments(flat, x[0])
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(np.diagonal(covariance) / 20_000)).all()


def test_unlike_members_with_categories():
    """Levels are added up over members that know different ones, through products and mixtures."""
    a = Product({"c": Categorical([0.6, 0.4], ["u", "v"]), "n": Poisson([1.0])})
    b = Product({"c": Categorical([[0.5, 0.5], [0.1, 0.9]], ["v", "w"]), "n": Poisson([[2.0], [9.0]])})
    m = Mixture([0.5, 0.5], Stack([a, Mixture([0.5, 0.5], b)]))
    x = Columns(c=np.array([None, "u", None], dtype=object), n=np.array([[0.0], [NAN], [9.0]]))
    got = impute(m, x)
    share = np.exp([-1.0, -2.0, -9.0]) * [0.5, 0.25, 0.25]
    votes = share @ [[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9]]
    assert got["c"].tolist() == ["uvw"[votes.argmax()], "u", "w"] and got["n"][:, 0].tolist() == [0.0, 1.0, 9.0]
    drawn = impute(m, Columns(c=np.full(3000, None), n=np.zeros((3000, 1))), np.random.default_rng(2))["c"]
    rate = np.array([(drawn == level).mean() for level in "uvw"])
    np.testing.assert_allclose(rate, votes / votes.sum(), atol=0.05)
    with pytest.raises(DomainError, match="got StudentT"):
        other = Stack([Gaussian([0.0], 1.0), StudentT([0.0], [[1.0]], 3.0)])
        impute(Mixture([0.5, 0.5], other), np.array([[NAN]]))


def test_counts_whose_rates_were_integrated_out():
    distribution = NegativeBinomial([3.0, 2.0], [0.5, 0.25])
    x = np.tile([NAN, 4.0], (20_000, 1))
    np.testing.assert_allclose(impute(distribution, x[:1]), [[distribution.mean[0], 4.0]])
    drawn = impute(distribution, x, np.random.default_rng(0))
    assert (drawn[:, 1] == 4.0).all() and drawn[:, 0].var() == pytest.approx(float(distribution.variance[0]), rel=0.1)


# ------------------------------------------------------------------- what comes back


def test_what_lacks_nothing_passes_through_whatever_its_distribution():
    words = scipy.sparse.csr_array([[2, 0, 1], [0, 1, 0]])
    parts = {
        "w": Multinomial([0.2, 0.3, 0.5]),
        "t": StudentT([0.0], [[1.0]], 3.0),
        "v": Gaussian([0.0, 0.0], np.eye(2)),
    }
    x = Columns(w=words, t=np.array([[1.0], [2.0]]), v=np.array([[NAN, 1.0], [2.0, NAN]]))
    for rng in (None, np.random.default_rng(0)):
        got = impute(Product(parts), x, rng)
        assert scipy.sparse.issparse(got["w"]) and (got["w"] != words).nnz == 0
        assert got["t"].tolist() == [[1.0], [2.0]] and np.isfinite(got["v"]).all()
    coins = impute(Mixture([0.5, 0.5], Bernoulli([[0.2] * 3, [0.6] * 3])), scipy.sparse.csr_array([[1.0, 0.0, 1.0]]))
    assert scipy.sparse.issparse(coins) and coins.toarray().tolist() == [[1.0, 0.0, 1.0]]
    t = np.array([[1.0], [2.0]])
    same = impute(StudentT([0.0], [[1.0]], 3.0), t)
    assert same is not t and same.tolist() == t.tolist()


def test_rows_come_back_in_the_shape_and_precision_that_they_had():
    distribution = Mixture(
        [0.5, 0.5], Product({"n": Poisson([[1.0], [9.0]]), "c": Categorical([[0.9, 0.1], [0.2, 0.8]])})
    )
    x = np.array([[NAN, 1.0], [3.0, NAN], [2.0, 0.0]], dtype=np.float32)
    got = impute(distribution, x)
    assert isinstance(got, np.ndarray) and got.dtype == np.float32 and got.shape == x.shape
    assert impute(Poisson([2.0]), np.array([NAN, 3.0])).tolist() == [2.0, 3.0]
    assert impute(Categorical([0.1, 0.9], ["a", "b"]), np.array([NAN, NAN])).tolist() == ["b", "b"]
    assert impute(Categorical([0.1, 0.9]), np.array([-1, 0])).tolist() == [1, 0]
    assert impute(Categorical([0.1, 0.9], ["a", "b"]), ["a", None]).tolist() == ["a", "b"]


# -------------------------------------------------------------------------- draws


def conditional_moments(m, row):
    """Mean and covariance of the missing given the seen: those of the parts, mixed."""
    seen, gap = np.flatnonzero(np.isfinite(row)), np.flatnonzero(np.isnan(row))
    logs, means, spreads = [], [], []
    for w, mean, S in zip(m.weights, m.components.mean, m.components.covariance_matrix, strict=True):
        pull = S[np.ix_(gap, seen)] @ np.linalg.inv(S[np.ix_(seen, seen)])
        logs.append(np.log(w) + multivariate_normal(mean[seen], S[np.ix_(seen, seen)]).logpdf(row[seen]))
        means.append(mean[gap] + pull @ (row[seen] - mean[seen]))
        spreads.append(S[np.ix_(gap, gap)] - pull @ S[np.ix_(seen, gap)])
    share = softmax(logs)
    total = share @ np.array(means)
    return total, sum(s * (S + np.outer(a - total, a - total)) for s, S, a in zip(share, spreads, means, strict=True))


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_draws_have_the_right_mean_and_covariance(kind):
    m, n = mixture(kind), 60_000
    for row in (np.array([0.5, NAN, NAN]), np.array([NAN, 1.0, NAN]), np.array([NAN, 0.3, -1.0])):
        drawn = impute(m, np.tile(row, (n, 1)), np.random.default_rng(5))[:, np.isnan(row)]
        mean, covariance = conditional_moments(m, row)
        error = np.sqrt(np.diagonal(covariance) / n)
        assert (np.abs(drawn.mean(axis=0) - mean) < 5 * error).all()
        got = np.cov(drawn.T).reshape(covariance.shape)
        size = np.sqrt(np.outer(np.diagonal(covariance), np.diagonal(covariance)))
        assert (np.abs(got - covariance) < 0.06 * size).all()


def test_draws_of_a_row_come_from_one_part():
    """Not from the mean of all: between two clouds there is nothing."""
    m = Mixture([0.5, 0.5], Gaussian([[-10.0, 0.0], [10.0, 0.0]], 1.0))
    drawn = impute(m, np.tile([NAN, 0.0], (500, 1)), np.random.default_rng(6))[:, 0]
    assert (np.abs(np.abs(drawn) - 10) < 6).all() and 150 < (drawn > 0).sum() < 350


def test_draws_of_counts_and_categories():
    n, rng = 40_000, np.random.default_rng(7)
    m = Mixture([0.5, 0.5], Product({"n": Poisson([[1.0], [9.0]]), "c": Categorical([[0.9, 0.1], [0.2, 0.8]])}))
    x = np.tile([NAN, 1.0], (n, 1))
    counts = impute(m, x, rng)[:, 0]
    share = np.array([0.1, 0.8]) / 0.9
    mean = share @ [1.0, 9.0]
    variance = share @ [1.0 + 1.0, 9.0 + 81.0] - mean**2  # of a mixture of counts, not of one count
    assert abs(counts.mean() - mean) < 5 * np.sqrt(variance / n)
    assert counts.var() == pytest.approx(variance, rel=0.05) and (counts == np.floor(counts)).all()
    levels = impute(m, np.tile([9.0, NAN], (n, 1)), rng)[:, 1].astype(int)
    share = m.posterior(np.array([[9.0, NAN]]))[0]
    assert abs(levels.mean() - share @ [0.1, 0.8]) < 5 * 0.5 / np.sqrt(n)


def test_a_draw_is_the_same_for_the_same_seed():
    m = mixture()
    x = gappy(m)
    a, b = (impute(m, x, np.random.default_rng(8)) for _ in range(2))
    assert a.tobytes() == b.tobytes() and a.tobytes() != impute(m, x, np.random.default_rng(9)).tobytes()

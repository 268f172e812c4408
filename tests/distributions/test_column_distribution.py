from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import likely as lk
from likely.core.errors import DataError, DomainError, FitWarning, ShapeError
from tests.public_names import public

PAIRS = [
    lk.Laplace(0.0, 1.0), lk.distributions.Cauchy(0.0, 1.0), lk.Uniform(0.0, 1.0),
    lk.distributions.Triangular(0.0, 0.5, 1.0), lk.Exponential(1.0),
    lk.distributions.ChiSquare(2.0), lk.distributions.VonMises(0.0, 1.0), lk.Binomial(3, 0.5),
    lk.distributions.BetaBinomial(3, 1.0, 1.0), lk.Poisson(1.0),
    lk.Bernoulli(0.5), lk.Gamma(1.0, 1.0), lk.Beta(1.0, 1.0), lk.distributions.Lomax(2.0, 1.0),
]  # fmt: skip


def widened(distribution, d):
    names = [n for n in distribution.field_values() if isinstance(getattr(distribution, n), np.ndarray)]
    return distribution.replace(**{n: np.repeat(getattr(distribution, n), d) for n in names})


@pytest.mark.parametrize("distribution", PAIRS, ids=lambda distribution: type(distribution).__name__)
def test_divergences_are_between_distributions_of_as_many_columns(distribution):
    assert widened(distribution, 3).kl(widened(distribution, 3)) == pytest.approx(0.0, abs=1e-12)
    for a, b in ((2, 1), (2, 3)):
        with pytest.raises(ShapeError, match="the same columns"):
            widened(distribution, a).kl(widened(distribution, b))


def test_divergence_of_binomial_distributions_of_unlike_trials():
    x = np.arange(11)
    p, q = stats.binom.pmf(x, 10, 0.3), stats.binom.logpmf(x, 12, 0.3)
    assert lk.Binomial(10, 0.3).kl(lk.Binomial(12, 0.3)) == pytest.approx(p @ (np.log(p) - q), rel=1e-12)
    assert lk.Binomial(12, 0.3).kl(lk.Binomial(10, 0.3)) == np.inf
    p, q = stats.betabinom.pmf(x, 10, 2, 1), stats.betabinom.logpmf(x, 12, 2, 1)
    assert lk.distributions.BetaBinomial(10, 2, 1).kl(lk.distributions.BetaBinomial(12, 2, 1)) == pytest.approx(
        p @ (np.log(p) - q), rel=1e-12
    )
    assert lk.distributions.BetaBinomial(12, 2, 1).kl(lk.distributions.BetaBinomial(10, 2, 1)) == np.inf


@pytest.mark.parametrize("distribution", [lk.Binomial, lk.distributions.BetaBinomial, lk.NegativeBinomial, lk.Poisson])
def test_fractions_among_counts_are_refused(distribution):
    with pytest.raises(
        DataError, match=f"^{distribution.__name__}: counts must be integers, got 1.5 at row 0, column 0"
    ):
        distribution.fit([1.5, 2, 3, 9])


@pytest.mark.parametrize("distribution", [lk.Laplace, lk.Poisson, lk.Binomial])
def test_no_rows_are_refused_in_the_name_of_the_distribution(distribution):
    with pytest.raises(DataError, match=f"^{distribution.__name__}: at least one row"):
        distribution.fit([])


def test_trials_that_do_not_fit_are_refused():
    for trials in ([1, 2], "a"):
        with pytest.raises(ShapeError, match="trials must be"):
            lk.Binomial.fit(np.ones((4, 3)), trials=trials)


def test_known_numbers_are_passed_to_estimates():
    x = np.random.default_rng(0).binomial(40, 0.5, (9000, 1)).astype(float)
    x[-1] = 39.0
    for rule in ("moments", "unbiased"):
        found = lk.estimate(lk.Binomial(40, 0.5), x, rule)
        assert found.trials == 40 and found.probs == pytest.approx(x.mean() / 40)
    assert lk.estimate(lk.Binomial, x).trials == 39  # a larger count than those of the first rows


@pytest.mark.parametrize("distribution, prior", [
    (lk.Bernoulli, lk.Gamma(1, 1)), (lk.Exponential, lk.Beta(1, 1)), (lk.Poisson, lk.Beta(1, 1)),
    (lk.Uniform, lk.Beta(1, 1)), (lk.Laplace, lk.Gamma(1, 1)), (lk.Gaussian, lk.Gamma(1, 1)),
])  # fmt: skip
def test_priors_of_other_distributions_are_refused(distribution, prior):
    message = f"{type(prior).__name__} is not a prior of {distribution.__name__}"
    with pytest.raises(DomainError, match=message):
        distribution.fit([[1.0], [0.0]], prior=prior)
    with pytest.raises(DomainError, match=message):
        lk.estimate(distribution, [[1.0], [0.0]], "map", prior=prior)
    with pytest.raises(DomainError, match="prior must be a Prior"):
        distribution.fit([[1.0], [0.0]], prior=3)


@pytest.mark.filterwarnings("error")
def test_numbers_near_the_largest():
    flat = lk.Uniform(-1e308, 1e308)
    np.testing.assert_allclose(flat.quantile([0.25, 0.5, 1.0]), [-5e307, 0.0, 1e308])
    np.testing.assert_allclose(flat.cdf([0.0, 5e307]), [0.5, 0.75])
    assert np.isfinite(flat.sample(100, np.random.default_rng(0))).all() and flat.variance == np.inf
    peaked = lk.distributions.Triangular(-1e308, 0.0, 1e308)
    np.testing.assert_allclose(peaked.log_prob([0.0, 5e307]), -308 * np.log(10) - [0, np.log(2)])
    np.testing.assert_allclose(peaked.cdf([0.0, 5e307]), [0.5, 0.875])
    np.testing.assert_allclose(peaked.quantile([0.5, 0.875]), [0.0, 5e307], atol=1e292)
    assert peaked.entropy() == pytest.approx(0.5 + 308 * np.log(10))
    assert lk.distributions.Cauchy(0, 1e300).kl(lk.distributions.Cauchy(0, 1e-300)) == pytest.approx(
        600 * np.log(10) - np.log(4)
    )
    assert lk.Laplace(0, 1e200).variance == np.inf
    assert lk.Laplace.moments_fit([1e150, -1e150]).scale == pytest.approx(1e150 / np.sqrt(2))


BASE = np.random.default_rng(3).normal(size=59)
FAR = {f"{size:g}": np.append(BASE, size) for size in (1e153, 1e160, 1e200, -1e300, 1e307)}
TINY = {f"{size:g}": BASE * size for size in (1e-300, 1e-310, 1e-320, 5e-324)}
MIXED = {"tiny and 1": np.append(1e-310 * BASE, 1.0), "tiny and 1e300": np.append(1e-310 * BASE, 1e300)}
OTHERS = {"two of 5e-324": np.repeat([0.0, 5e-324], [29, 31]), "half": BASE[:, None] * [1, 1e300]}
HAZARDS = {**FAR, **TINY, **MIXED, **OTHERS}


@pytest.mark.parametrize("name", HAZARDS)
@pytest.mark.parametrize(
    "distribution",
    [lk.distributions.Cauchy, lk.distributions.Triangular, lk.Laplace, lk.Uniform, lk.Gamma, lk.Exponential],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_outliers_and_denormal_columns_get_finite_densities(distribution, name):
    x = np.ravel(HAZARDS[name])
    x = np.maximum(np.abs(x), 5e-324) if distribution in (lk.Gamma, lk.Exponential) else x
    if distribution is lk.Gamma and np.median(x) < 1e-305 and x.max() < 1:  # its rate would be no number
        with pytest.raises(DataError, match="got rate = inf: rescale the column"):
            distribution.fit(x)
        return
    for prior in (None, "weak"):
        logs = distribution.fit(x, prior=prior).log_prob(x)
        assert np.isfinite(logs[np.abs(x) > 0]).all() and not np.isnan(logs).any() and not np.isposinf(logs).any()


@pytest.mark.parametrize(
    "distribution", [lk.Laplace, lk.distributions.Triangular, lk.Exponential, lk.distributions.ChiSquare]
)
def test_numbers_that_are_too_large_to_learn_from_are_refused(distribution):
    with pytest.raises(DataError, match=r"column 0 must be such that .*: rescale the column"):
        distribution.fit(
            np.linspace(1.0, 17.0, 60) * 1e307
            - (9e307 if distribution in (lk.Laplace, lk.distributions.Triangular) else 0.0) * 1.9
        )


@pytest.mark.parametrize(
    ("distribution", "x", "said"),
    [
        (lk.Exponential, [0.0, 0.0], "Exponential: column 0 is 0 or next to 0 throughout"),
        (lk.Beta, 0.3 + 1e-9 * np.arange(9), "column 0 is too narrow for b to be estimated: b is held at 1e\\+12"),
        (
            lk.distributions.VonMises,
            0.3 + 1e-10 * np.arange(9),
            "column 0 is too narrow for the concentration to be estimated",
        ),
    ],
)
def test_parameters_at_their_limit_are_reported(distribution, x, said):
    for prior in (None, "weak"):
        with pytest.warns(FitWarning, match=said):
            distribution.fit(x, prior=prior)
        estimator = public()[f"{distribution.__name__}Density"](prior=prior)
        with pytest.warns(FitWarning, match=said.split("column")[-1].replace("0 is", "is")):
            estimator.fit(np.reshape(x, (-1, 1)))


@pytest.mark.filterwarnings("error")
def test_moments_that_no_distribution_has():
    for distribution in (lk.Uniform, lk.Laplace):
        with pytest.raises(DomainError, match="variance must not be negative"):
            distribution.from_moments(0, -1)
        with pytest.raises(DataError, match="too far apart"):
            distribution.moments_fit([1e200, -1e200])
    with pytest.raises(DomainError):
        lk.distributions.BetaBinomial.from_moments(0, 0, 5)


def test_a_chi_square_distribution_learns_nothing_from_zeros():
    with pytest.raises(DataError, match="row 1, column 0"):
        lk.distributions.ChiSquare.fit([1.0, 0.0, 2.0])
    with pytest.warns(FitWarning, match="0 counts as missing"):
        found = lk.distributions.ChiSquareDensity(prior=None).fit([[0.0], [1.0], [2.0]])
    np.testing.assert_allclose(found.dof_, lk.distributions.ChiSquare.fit([1.0, 2.0]).dof)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", [
    lk.Binomial([7, 30], [0.2, 0.9]), lk.distributions.BetaBinomial([7, 30], [0.5, 2.0], 3.0),
    lk.Binomial([[7, 30], [9, 3]], [[0.2, 0.0], [1.0, 0.5]]),
])  # fmt: skip
def test_scores_that_are_looked_up_are_those_of_each_entry(distribution):
    rng = np.random.default_rng(3)
    x = rng.choice([0, 1, 2, 3, 7, 8, 30, 31, -1, 1.5, np.nan], (300, 2))
    one_by_one = np.concatenate([distribution.log_prob(x[i : i + 1]) for i in range(len(x))])
    np.testing.assert_allclose(distribution.log_prob(x), one_by_one, rtol=1e-14)


def test_medians_and_quantiles_of_distributions_of_counts():
    coins = lk.Bernoulli([0.2, 0.5, 0.7])
    assert coins.median.tolist() == [stats.bernoulli.median(p) for p in coins.probs]
    at, p = np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), np.array([0.0, 0.3, 0.31, 1.0])
    coin = lk.Bernoulli(0.7)
    np.testing.assert_allclose(coin.cdf(at), stats.bernoulli.cdf(at, 0.7))
    assert coin.quantile(p[1:]).tolist() == stats.bernoulli.ppf(p[1:], 0.7).tolist()
    assert np.isnan(coin.quantile([-0.1, 1.1])).all()
    rates = np.array([0.1, 0.7, 3.3, 1e4])
    assert lk.Poisson(rates).median.tolist() == stats.poisson.median(rates).tolist()
    assert lk.Gaussian([1.0, 2.0], 1.0).median.tolist() == [1.0, 2.0]
    assert lk.StudentT([1.0, 2.0], 1.0, 3.0).median.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "distribution", [lk.Gamma([0.5, 2.0], 1.0), lk.Beta([0.5, 2.0], 1.0), lk.distributions.ChiSquare([1.0, 4.0])],
    ids=lambda distribution: type(distribution).__name__,
)  # fmt: skip
def test_a_column_that_rules_a_row_out_outweighs_a_pole(distribution):
    one, other = distribution.marginal([0]), distribution.marginal([1])
    assert one.log_prob([[0.0]]) == np.inf and other.log_prob([[0.0]]) == -np.inf
    assert distribution.log_prob([[0.0, 0.0], [0.0, 0.5]]).tolist() == [-np.inf, np.inf]
    both = distribution.replace(
        **{name: np.stack([part] * 2) for name, part in distribution.field_values().items() if np.ndim(part)}
    )
    assert both.log_prob([[0.0, 0.0]]).tolist() == [[-np.inf, -np.inf]]
    assert lk.Product({"a": one, "b": other}).log_prob(lk.core.Columns(a=[0.0], b=[0.0])) == -np.inf


DISTRIBUTIONS = [lk.Gamma, lk.Laplace, lk.Gaussian, lk.StudentT, lk.Poisson, lk.Bernoulli, lk.Binomial, lk.Categorical]


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("name", ["sample_weight", "weights"])
def test_weights_by_another_name_are_told_theirs(distribution, name):
    with pytest.raises(
        lk.DomainError, match=rf"{distribution.__name__}.fit: there is no option {name}=: .* called weight="
    ):
        distribution.fit([1, 0, 1, 1], **{name: [1, 1, 1, 2]})
    with pytest.raises(lk.DomainError, match="no option bogus="):
        distribution.fit([1, 0, 1, 1], bogus=3)


def test_a_number_is_a_row_where_rows_have_one_column():
    distributions = [
        lk.Laplace(0.0, 1.0), lk.Gaussian([0.0], 1.0), lk.Poisson(2.0), lk.Bernoulli(0.3), lk.Gamma(2.0, 1.0),
        lk.Beta(2.0, 2.0), lk.StudentT([0.0], [[1.0]], 3.0), lk.distributions.Elliptical("logistic", [0.0], 1.0),
        lk.Mixture([0.5, 0.5], lk.Laplace([[0.0], [1.0]], 1.0)),
        lk.distributions.GridDistribution(0.0, 0.5, [0.5, 0.5]),
        lk.distributions.LatticeDistribution(0.0, 1.0, [0.5, 0.5]),
    ]  # fmt: skip
    for distribution in distributions:
        for one in (1.0, 1, np.float64(1.0), np.array(1.0)):
            assert distribution.log_prob(one).tolist() == distribution.log_prob([1.0]).tolist()
    with pytest.raises(lk.ShapeError, match="got one number"):
        lk.Laplace([0.0, 1.0], 1.0).log_prob(3.0)


def test_reprs_leave_out_what_is_usual():
    assert repr(lk.Gamma([2.0], [1.0])) == "Gamma(shape=[2.], rate=[1.])"
    assert repr(lk.Gamma(2.0, 1.0, likelihood="exponential")).endswith("likelihood='exponential')")
    assert repr(lk.Beta(2.0, 1.0)) == "Beta(a=[2.], b=[1.])"
    assert repr(lk.StudentT([1 / 3], [[2 / 3]], 5.123456789)) == (
        "StudentT([0.333333], scale=[[0.666667]], dof=5.12346, kind='full')"
    )

"""A summary covers every distribution: the right numbers under the right names, and intervals with their coverage."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

import likely as lk

N = 60
RNG = np.random.default_rng(0)
REAL, POSITIVE = RNG.normal(5.0, [1.0, 2.0, 3.0], (N, 3)), RNG.gamma(2.0, 1.5, (N, 3))
SHARES, ANGLES = RNG.beta(2.0, 3.0, (N, 3)), RNG.vonmises(0.5, 2.0, (N, 3))
COUNTS, BITS = RNG.poisson(4.0, (N, 3)).astype(float), (RNG.random((N, 3)) < 0.4).astype(float)
PARTS = RNG.dirichlet([2.0, 3.0, 4.0], N)

# estimator, rows, numbers that the summary must show, in order
CASES = {
    "t": (lk.StudentTDensity(), REAL, lambda m: [m.center[0], m.scale[0, 0] ** 0.5]),
    "t, spherical": (lk.StudentTDensity("spherical"), REAL, lambda m: [m.center[0], float(m.scale) ** 0.5]),
    "t, independent": (lk.StudentTDensity("independent"), REAL, lambda m: [m.center[0], m.scale[0] ** 0.5]),
    "elliptical": (lk.distributions.EllipticalDensity(), REAL, lambda m: [m.center[0], m.scale[0, 0] ** 0.5]),
    "laplace": (lk.LaplaceDensity(), REAL, lambda m: [m.center[0], m.scale[0], m.center[1]]),
    "cauchy": (lk.distributions.CauchyDensity(), REAL, lambda m: [m.center[0], m.scale[0], m.center[1]]),
    "uniform": (lk.UniformDensity(), REAL, lambda m: [m.low[0], m.high[0], m.low[1]]),
    "triangular": (lk.distributions.TriangularDensity(), REAL, lambda m: [m.low[0], m.mode[0], m.high[0]]),
    "exponential": (lk.ExponentialDensity(), POSITIVE, lambda m: m.rate),
    "gamma": (lk.GammaDensity(), POSITIVE, lambda m: [m.shape[0], m.rate[0], m.shape[1]]),
    "chi square": (lk.distributions.ChiSquareDensity(), POSITIVE, lambda m: m.dof),
    "beta": (lk.BetaDensity(), SHARES, lambda m: [m.a[0], m.b[0], m.a[1]]),
    "von Mises": (lk.distributions.VonMisesDensity(), ANGLES, lambda m: [m.center[0], m.concentration[0], m.center[1]]),
    "binomial": (lk.BinomialDensity(trials=30), COUNTS, lambda m: [30.0, m.probs[0], 30.0, m.probs[1]]),
    "beta-binomial": (lk.distributions.BetaBinomialDensity(trials=30), COUNTS, lambda m: [30.0, m.a[0], m.b[0]]),
    "negative binomial": (lk.NegativeBinomialDensity(), COUNTS**2, lambda m: [m.mean[0], m.size[0], m.prob[0]]),
    "dirichlet": (lk.DirichletDensity(), PARTS, lambda m: [m.alpha[0] / m.alpha.sum(), m.alpha[0]]),
    "urn": (lk.distributions.DirichletMultinomialDensity(), COUNTS, lambda m: [m.alpha[0] / m.alpha.sum(), m.alpha[0]]),
    "walsh": (lk.distributions.WalshDensity(), BITS, lambda m: m.expectations[1:]),
    "log walsh": (lk.distributions.WalshDensity(log=True), BITS, lambda m: m.weights[1:]),
    "bahadur": (lk.distributions.BahadurDensity(), BITS, lambda m: [*m.probs, *m.correlations[4:]]),
    "parzen": (lk.KernelDensity(), REAL, lambda m: [m.relative_bandwidth[0], *m.bandwidth]),
    "histogram": (lk.HistogramDensity(), REAL, lambda m: m.masses[:3]),
    "neighbors": (lk.KNNDensity(), REAL, lambda m: m._unit),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.core.errors.FitWarning")
@pytest.mark.parametrize("case", CASES)
def test_every_distribution_is_reported(case, tmp_path):
    estimator, X, numbers = CASES[case]
    fitted = estimator.fit(X)
    page = fitted.summary()
    wanted = [float(v) for v in numbers(fitted.model_)]
    np.testing.assert_allclose([row.estimate for row in page["parameters"].rows][: len(wanted)], wanted)
    assert len(str(page).splitlines()) > 10 and "nan" not in str(page)
    assert json.loads(page.to_json())["tables"][0]["rows"] and page.to_html().startswith("<div")
    lk.save(fitted, tmp_path / "m")
    assert str(lk.load(tmp_path / "m").summary()).splitlines()[0] == str(page).splitlines()[0]


def test_a_tree_tells_what_leans_on_what():
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [6, 2, 4], axis=0)
    tree = lk.ChowLiuTreeDensity(prior=None).fit(X)
    rows = {row.parameter: row for row in tree.summary()["parameters"].rows}
    child = int(np.argmax(tree.parents_))
    assert tree.parents_.tolist() == [-1, 0] and child == 1
    assert rows["P(0)"].estimate == pytest.approx(8 / 12) and rows["P(1 | x0 = 0)"].estimate == pytest.approx(2 / 8)
    exact = binomtest(2, 8).proportion_ci(0.95)
    np.testing.assert_allclose(rows["P(1 | x0 = 0)"][3:], [exact.low, exact.high])


def test_intervals_of_rates_and_chances_are_exact():
    row = lk.ExponentialDensity(prior=None).fit(POSITIVE[:, :1]).summary()["parameters"].rows[0]
    total = POSITIVE[:, 0].sum()
    np.testing.assert_allclose(row[3:], stats.gamma(N).ppf([0.025, 0.975]) / total)
    row = lk.BinomialDensity(trials=30, prior=None).fit(COUNTS[:, :1]).summary()["parameters"].rows[1]
    exact = binomtest(int(COUNTS[:, 0].sum()), 30 * N).proportion_ci(0.95)
    np.testing.assert_allclose(row[3:], [exact.low, exact.high])


def test_what_has_no_likelihood_has_no_aic():
    for estimator, X in ((lk.distributions.WalshDensity(), BITS), (lk.KernelDensity(), REAL), (lk.KNNDensity(), REAL)):
        facts = estimator.fit(X).summary().facts
        assert "AIC" not in facts and "log-likelihood" not in facts
    assert "AIC" in lk.distributions.WalshDensity(log=True).fit(BITS).summary().facts


def test_predictive_distributions_tell_of_what_was_learned():
    for estimator, X, off, distribution in (
        (lk.PoissonDensity(predictive=True), COUNTS, False, "NegativeBinomial"),
        (lk.GaussianDensity("full", predictive="all"), REAL, None, "full StudentT"),
        (lk.BinomialDensity(trials=30, predictive=True), COUNTS, False, "BetaBinomial"),
    ):  # fmt: skip
        page = estimator.fit(X).summary()
        plain = estimator.set_params(predictive=off).fit(X).summary()
        assert page["parameters"] == plain["parameters"] and page.facts == plain.facts
        assert page.notes[-1].endswith(f"posterior predictive distribution: {distribution}.")

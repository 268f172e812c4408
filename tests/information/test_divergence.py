"""Entropy, divergence and their relatives: closed forms, sums, quadrature and Monte Carlo agree."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import likely as lk
from likely.distributions.entropy import averaged
from likely.information.divergence import _sampled_kl

ONE, TWO = lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 4.0)
HUMPS = lk.Mixture([0.3, 0.7], lk.Gaussian([[0.0], [5.0]], 1.0))
PLANE = lk.Mixture([0.3, 0.7], lk.Gaussian([[0.0, 0.0], [5.0, 1.0]], 1.0))
WIDE = lk.Gaussian([3.5, 0.5], [9.0, 2.0])


def near(estimate, value, errors=4.0):
    return abs(estimate.value - value) <= errors * estimate.error + 1e-9


def test_numbers_of_the_notes():
    assert lk.entropy(ONE).value == pytest.approx(0.5 * (1 + math.log(2 * math.pi)), abs=1e-12)
    assert round(lk.entropy(ONE).value, 7) == 1.4189385  # H 1.6
    assert lk.entropy(lk.Categorical(np.full(8, 1 / 8)), bits=True).value == pytest.approx(3.0)
    assert float(lk.entropy(ONE)) == lk.entropy(ONE).value


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (lk.Poisson(3.0), stats.poisson(3.0).entropy()),
        (lk.Gamma(2.0, 3.0), stats.gamma(2.0, scale=1 / 3).entropy()),
        (lk.StudentT([0.0], [[1.0]], 1.0), math.log(4 * math.pi)),
        (lk.Beta(1.0, 1.0), 0.0),
        (lk.distributions.sum_of(lk.Beta(1, 1), copies=2), 0.5),  # the triangle
    ],
)
def test_entropies_against_scipy(distribution, expected):
    found = lk.entropy(distribution)
    assert found.value == pytest.approx(float(expected), abs=1e-6)
    assert found.error == 0


def test_quadrature_of_a_mixture_agrees_with_draws_and_with_a_fine_sum():
    exact = lk.entropy(HUMPS)
    assert exact.error == 0
    x = np.linspace(-12, 20, 400_001)
    logs = HUMPS.log_prob(x[:, None])
    assert exact.value == pytest.approx(-np.exp(logs) @ logs * (x[1] - x[0]), abs=1e-9)
    drawn = -HUMPS.log_prob(HUMPS.sample(200_000, np.random.default_rng(1)))
    assert abs(drawn.mean() - exact.value) < 5 * drawn.std() / math.sqrt(len(drawn))


def test_mixtures_in_the_plane_come_with_an_error_that_holds():
    found = [lk.entropy(PLANE, n=4000, rng=np.random.default_rng(k)) for k in range(40)]
    truth = lk.entropy(PLANE, n=400_000).value
    scaled = np.array([(e.value - truth) / e.error for e in found])
    assert 0.6 < scaled.std() < 1.5 and abs(scaled.mean()) < 0.6


# ------------------------------------------------------------------------------ kl


def test_gaussians_against_the_formula():
    expected = 0.5 * (1 / 4 + 1 / 4 - 1 + math.log(4))
    assert lk.kl_divergence(ONE, TWO).value == pytest.approx(expected)
    assert lk.kl_divergence(ONE, TWO, bits=True).value == pytest.approx(expected / math.log(2))
    alike = [lk.Mixture([1.0], lk.Gaussian(g.mean[None], g.covariance_matrix[None])) for g in (ONE, TWO)]
    assert lk.kl_divergence(*alike).value == pytest.approx(expected, abs=1e-9)  # the same, by quadrature


def test_draws_agree_with_closed_forms_and_are_never_negative():
    p, q = lk.Gaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 1.0]]), lk.Gaussian([0.5, 0.0], [1.5, 1.0])
    alike = [lk.Mixture([1.0], lk.Gaussian(g.mean[None], g.covariance_matrix[None])) for g in (p, q)]
    for seed in range(5):
        found = lk.kl_divergence(*alike, n=20_000, rng=np.random.default_rng(seed))
        assert found.error > 0 and near(found, float(p.kl(q)))
        assert lk.kl_divergence(alike[0], alike[0], n=100, rng=np.random.default_rng(seed)).value >= 0


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (lk.Categorical([0.5, 0.5]), lk.Categorical([1.0, 0.0])),
        (lk.Categorical([0.5, 0.5], levels=["a", "b"]), lk.Categorical([0.5, 0.5], levels=["a", "c"])),
        (ONE, lk.Gamma(2.0, 1.0)),  # a negative number is impossible there
        (lk.StudentT([0.0], [[1.0]], 1.0), ONE),  # E[x²] is infinite
        (lk.StudentT([0.0], [[1.0]], 2.0), ONE),
        (lk.Poisson(3.0), lk.Bernoulli(0.5)),
        (lk.Poisson(3.0), ONE),  # a list and a line
        (lk.Gaussian([0.0, 0.0], [1.0, 0.0]), WIDE),  # a line in the plane
        (lk.Gaussian([0.0, 0.0], [1.0, 0.0]), lk.Gaussian([0.0, 1.0], [1.0, 0.0])),  # parallel lines
    ],
)
def test_what_q_rules_out_costs_infinity(p, q):
    found = lk.kl_divergence(p, q)
    assert found.value == math.inf
    assert found.error == 0


def test_single_points_do_not_count():
    """The density of Beta(2, 2) is 0 at 0 and 1, where a uniform distribution has no weight."""
    assert lk.kl_divergence(lk.Uniform(0.0, 1.0), lk.Beta(2.0, 2.0)).value == pytest.approx(2 - math.log(6), abs=1e-9)
    assert lk.information.js_divergence(lk.Uniform(0.0, 1.0), lk.Uniform(0.5, 1.5), bits=True).value == pytest.approx(
        0.5
    )


def test_levels_may_stand_in_another_order():
    p, q = lk.Categorical([0.2, 0.8], levels=["a", "b"]), lk.Categorical([0.5, 0.5], levels=["b", "a"])
    assert lk.kl_divergence(p, q).value == pytest.approx(0.2 * math.log(0.4) + 0.8 * math.log(1.6))


def test_singular_gaussians_on_one_flat():
    p, q = lk.Gaussian([0.0, 7.0], [1.0, 0.0]), lk.Gaussian([1.0, 7.0], [4.0, 0.0])
    assert lk.kl_divergence(p, q).value == pytest.approx(lk.kl_divergence(ONE, TWO).value)


@pytest.mark.parametrize(("p", "q"), [(ONE, TWO), (HUMPS, TWO), (lk.Poisson(3.0), lk.NegativeBinomial(3.0, 0.5)),
                                      (lk.Gamma(2.0, 1.0), lk.Gamma(3.0, 1.0)), (PLANE, WIDE)])  # fmt: skip
def test_inequalities_and_the_chain(p, q):
    there, back, between = lk.kl_divergence(p, q), lk.kl_divergence(q, p), lk.information.js_divergence(p, q)
    assert there.value > 0 and back.value > 0 and there.value != pytest.approx(back.value)
    assert lk.kl_divergence(p, p).value == pytest.approx(0.0, abs=1e-9)
    assert 0 < between.value < math.log(2)
    slack = 4 * (between.error + there.error + back.error) + 1e-12
    assert between.value <= 0.25 * (there.value + back.value) + slack  # Lin 1991
    cross, own = lk.information.cross_entropy(p, q), lk.entropy(p)
    assert cross.value == pytest.approx(own.value + there.value, abs=5 * (cross.error + own.error + there.error) + 1e-8)


def test_js_is_symmetric_and_one_bit_at_most():
    far = lk.Gaussian([100.0], 1.0)
    assert lk.information.js_divergence(ONE, far, bits=True).value == pytest.approx(1.0)
    assert lk.information.js_divergence(ONE, TWO).value == pytest.approx(
        lk.information.js_divergence(TWO, ONE).value, abs=1e-10
    )
    assert lk.information.js_divergence(lk.Poisson(1.0), ONE, bits=True).value == pytest.approx(1.0)


def test_stacks_go_member_by_member():
    stack = lk.Gaussian([[0.0], [1.0], [3.0]], 1.0)
    assert lk.kl_divergence(stack, ONE).value.tolist() == [0.0, 0.5, 4.5]
    assert lk.kl_divergence(ONE, stack).value.tolist() == [0.0, 0.5, 4.5]
    found = lk.entropy(lk.Mixture([[0.5, 0.5], [1.0, 0.0]], lk.Gaussian([[0.0], [9.0], [0.0], [1.0]], 1.0)))
    assert found.value == pytest.approx([1.4189385 + math.log(2), 1.4189385], abs=1e-4)
    with pytest.raises(lk.ShapeError, match="the same number of members"):
        lk.kl_divergence(stack, lk.Gaussian([[0.0], [1.0]], 1.0))


def test_products_add():
    p = lk.Product({"a": ONE, "b": lk.Poisson(2.0), "c": HUMPS})
    q = lk.Product({"a": TWO, "b": lk.NegativeBinomial(2.0, 0.5), "c": TWO})
    parts = [lk.kl_divergence(p[name], q[name]).value for name in "abc"]
    assert lk.kl_divergence(p, q).value == pytest.approx(sum(parts))
    assert lk.entropy(p).value == pytest.approx(sum(lk.entropy(part).value for _, part in p.components))


def test_what_is_no_density_is_refused():
    with pytest.raises(lk.DomainError, match="a density is needed"):
        lk.entropy([0.5, 0.5])
    with pytest.raises(lk.ShapeError, match="equally many columns"):
        lk.kl_divergence(ONE, WIDE)
    with pytest.raises(lk.DomainError, match="16 samples"):
        lk.entropy(PLANE, n=1)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (lk.Gaussian([0.0], 1.0), lk.Uniform(-7.0, 7.0)),
        (lk.Gaussian([0.0], 1.0), lk.Uniform(-20.0, 20.0)),
        (lk.Gamma(1.0, 1.0), lk.Uniform(0.0, 30.0)),
        (lk.Uniform(0.0, 1.0), lk.Uniform(0.0, 1 - 1e-9)),
        (lk.Poisson(3.0), lk.Binomial(40, 0.075)),
        (lk.Gaussian([0.0, 0.0], 1.0), lk.Uniform([-5.0, -5.0], [5.0, 5.0])),
    ],
)
def test_small_probabilities_that_q_rules_out_cost_infinity_too(p, q):
    assert lk.kl_divergence(p, q) == (math.inf, 0.0)
    assert math.isfinite(lk.kl_divergence(q, p).value)


def test_means_of_heavy_tails_are_reported():
    with pytest.warns(lk.FitWarning, match="may be infinite"):
        assert lk.kl_divergence(lk.StudentT([0.0, 0.0], 1.0, 1.0), lk.Gaussian([0.0, 0.0], 1.0)).error == math.inf


def test_distributions_without_a_closed_entropy_are_summed_or_drawn():
    distribution = lk.distributions.BetaNegativeBinomial(3, 2.5, 4)
    counts = np.arange(200_000.0)
    logs = distribution.log_prob(counts[:, None])
    found = lk.entropy(distribution, rng=np.random.default_rng(3))
    assert abs(found.value + float(np.exp(logs) @ logs)) < 4 * found.error + 1e-6


def test_columns_and_arrays_are_named():
    with pytest.raises(lk.ShapeError, match="equally many columns"):
        lk.kl_divergence(lk.Gaussian([0.0], 1.0), lk.StudentT([0.0, 0.0], 1.0, 3.0))
    with pytest.raises(lk.DomainError, match="Categorical"):
        lk.kl_divergence([0.5, 0.5], [0.9, 0.1])


def test_finitely_many_cells_have_a_finite_error():
    """Draws of one distribution hardly ever meet the other: heavy tails, but no endless ones."""
    d = 16
    rng = np.random.default_rng(1)
    b = np.concatenate([[0.0], rng.normal(size=d), 0.3 * rng.normal(size=d * (d - 1) // 2)])
    p, q = lk.distributions.LogLinear.normalized(b, d), lk.Bernoulli(np.full(d, 0.01))
    terms = np.exp(np.random.default_rng(0).exponential(2.0, 2000))
    with pytest.warns(lk.FitWarning, match="may be infinite"):
        assert averaged(terms).error == math.inf
    with pytest.warns(lk.FitWarning, match="rough: increase n"):
        assert averaged(terms, bounded=True).error < math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _sampled_kl(p, q, 2000, rng)
    assert found.error < math.inf and near(found, lk.kl_divergence(p, q).value)


def test_errors_of_draws_are_in_the_unit_of_their_values():
    nats, bits = (lk.entropy(PLANE, bits, n=200, rng=np.random.default_rng(1)) for bits in (False, True))
    assert nats.error > 0 and np.divide(bits, nats) == pytest.approx([1 / np.log(2)] * 2)

"""What a distribution looks like from outside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import likely as lk
from likely.distributions.support import Atoms, Line, integral, is_discrete, look


@pytest.mark.parametrize(
    ("distribution", "kind"),
    [
        (lk.Poisson(3.0), Atoms), (lk.Poisson([3.0, 1.0]), Atoms), (lk.Bernoulli([0.2, 0.3, 0.9]), Atoms),
        (lk.Categorical([0.2, 0.8], levels=["a", "b"]), Atoms), (lk.NegativeBinomial(2.0, 0.1), Atoms),
        (lk.Gaussian([0.0], 1.0), Line), (lk.Gamma(2.0, 3.0), Line), (lk.Beta(0.5, 0.5), Line),
        (lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [9.0]], 1.0)), Line),
        (lk.Gaussian([0.0, 0.0], 1.0), type(None)),
        (lk.Product({"a": lk.Gaussian([0.0], 1.0), "b": lk.Poisson(1.0)}), type(None)),
    ],
)  # fmt: skip
def test_kinds_of_distributions(distribution, kind):
    assert type(look(distribution)) is kind
    assert is_discrete(distribution) == (kind is Atoms)


def test_lists_hold_all_probability():
    for distribution in (lk.Poisson(300.0), lk.NegativeBinomial(0.5, 0.01), lk.Bernoulli([0.1] * 8)):
        assert np.exp(look(distribution).log_probs).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("dof", [1.0, 3.0, 50.0])
def test_moments_of_t_distributions_at_any_scale(scale, dof):
    distribution = lk.StudentT([5 * scale], [[scale**2]], dof)
    value, error = integral(look(distribution), distribution, lambda x, logs: ((x - 5 * scale) / scale) ** 2)
    if dof <= 2:
        assert value == np.inf
    else:
        assert value == pytest.approx(dof / (dof - 2), rel=1e-7)
        assert error < 1e-6


def test_what_is_no_density_is_noticed():
    class Half:
        def log_prob(self, x):
            return lk.Gaussian([0.0], 1.0).log_prob(x) - np.log(2.0)

        def sample(self, n, rng):
            return rng.normal(size=(n, 1))

    assert integral(look(Half()), Half(), lambda x, logs: logs) is None


def at(x):
    return x[..., 0]


UNIT = lk.Gaussian([0.0], 1.0)
NORMAL = lk.Gaussian([1.5], [[2.3]])
SPREAD = stats.norm(1.5, np.sqrt(2.3))


@pytest.mark.some_cases(14)
@pytest.mark.parametrize(
    ("distribution", "g", "exact"),
    [
        (NORMAL, lambda x: at(x) ** 2, 4.55),
        (NORMAL, lambda x: np.exp(at(x)), np.exp(1.5 + 1.15)),
        (NORMAL, lambda x: np.abs(at(x) - 1.5), np.sqrt(4.6 / np.pi)),
        (NORMAL, lambda x: (at(x) > 1) & (at(x) < 1.001), SPREAD.cdf(1.001) - SPREAD.cdf(1)),
        (NORMAL, lambda x: 1e-30 * at(x) ** 2, 4.55e-30),
        (lk.distributions.Cauchy(0, 1), lambda x: np.sqrt(np.abs(at(x))), np.sqrt(2)),
        (lk.StudentT([0.0], [[1.0]], 5.0), lambda x: at(x) ** 4, 25.0),
        (lk.distributions.Lomax(2.5, 1.0), lambda x: at(x) ** 2, 8 / 3),
        (lk.Exponential(2.0), lambda x: np.log(at(x)), -np.euler_gamma - np.log(2)),
        (lk.Exponential(2.0), lambda x: at(x) ** -0.5, np.sqrt(2 * np.pi)),
        (lk.Beta(0.5, 0.5), at, 0.5),
        (
            lk.distributions.VonMises(0.5, 2.0),
            lambda x: np.cos(at(x) - 0.5),
            float(lk.distributions.VonMises(0.5, 2.0).resultant[0]),
        ),
        (lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [9.0]], 1.0)), lambda x: at(x) ** 2, 41.5),
        (lk.Uniform(0, 1), lambda x: at(x) > 0.9999, 1e-4),
        (lk.StudentT([0.0], [[1.0]], 3.0), lambda x: np.abs(at(x)), 2 * np.sqrt(3) / np.pi),
        (lk.StudentT([0.0], [[1.0]], 5.0), lambda x: at(x) ** 2, 5 / 3),
        (lk.StudentT([0.0], [[1.0]], 2.1), lambda x: at(x) ** 2, 21.0),
        (lk.Gaussian([0.0], 25.0), lambda x: np.exp(at(x)), np.exp(12.5)),
        (lk.Gaussian([0.0], 400.0), lambda x: np.exp(at(x)), np.exp(200.0)),
        (UNIT, lambda x: np.exp(0.4 * at(x) ** 2), np.sqrt(5)),
        (UNIT, lambda x: np.abs(at(x)) ** -0.5, 2**-0.25 * special.gamma(0.25) / np.sqrt(np.pi)),
        (lk.Exponential(1.0), lambda x: np.exp(0.9 * at(x)), 10.0),
        (lk.Gamma(0.1, 1.0), lambda x: np.log(at(x)), special.digamma(0.1)),
        (lk.Gamma(1.0, 1.0), lambda x: at(x) ** -0.5, np.sqrt(np.pi)),
        (lk.Gamma(1.5, 1.0), lambda x: 1 / at(x), 2.0),
        (lk.Gamma(1.1, 1.0), lambda x: 1 / at(x), 10.0),
        (lk.Gamma(2.0, 1e200), at, 2e-200),
        (lk.Gamma(1e6, 1.0), lambda x: at(x) ** 2, 1e12 + 1e6),
    ],
)
def test_expectations_lie_within_their_error(distribution, g, exact):
    value, error = distribution.expect(g)
    assert abs(value - exact) <= error <= 1e-4 * abs(exact)


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("p", [1e-4, 0.003, 0.3, 1 / 3, 0.5, 0.9, 0.999])
def test_jumps_anywhere_within_a_panel(p):
    """The edges of panels are near quantiles: jumps at many places between two of them."""
    for share in (0.0, 0.2, 0.5, 0.998, 0.9999):
        cut = SPREAD.ppf(p + share / 512 * (1 - p))
        value, error = NORMAL.expect(lambda x, cut=cut: x[..., 0] > cut)
        assert abs(value - SPREAD.sf(cut)) <= error <= 1e-9


def test_expectations_of_vectors_and_stacks():
    value, error = NORMAL.expect(lambda x: np.stack([at(x), at(x) ** 2], axis=-1))
    np.testing.assert_allclose(value, [1.5, 4.55], rtol=1e-12)
    assert error.shape == (2,) and error.max() < 1e-9
    stack = lk.Laplace([[0.0], [3.0]], [[1.0], [2.0]])
    np.testing.assert_allclose(stack.expect(lambda x: at(x) ** 2).value, [2.0, 17.0], rtol=1e-12)
    np.testing.assert_allclose(stack.expect(lambda x: x).value, [[0.0], [3.0]], atol=1e-12)


@pytest.mark.some_cases(10)
@pytest.mark.parametrize(
    ("distribution", "g"),
    [
        (lk.distributions.Cauchy(0, 1), at), (lk.distributions.Cauchy(0, 1), lambda x: at(x) ** 2),
        (lk.distributions.Lomax(1.5, 1.0), lambda x: at(x) ** 2),
        (NORMAL, lambda x: 1 / at(x)), (NORMAL, lambda x: np.exp(at(x) ** 2)),
        (UNIT, lambda x: np.exp(at(x) ** 2)), (UNIT, lambda x: np.exp(at(x) ** 2 / 2)),
        (UNIT, lambda x: np.exp(at(x) ** 3)),
        (UNIT, lambda x: 1 / np.abs(at(x))), (UNIT, lambda x: 1 / np.abs(at(x) - 0.3)), (UNIT, lambda x: at(x) ** -2),
        (lk.Exponential(1.0), lambda x: np.exp(at(x))), (lk.Exponential(1.0), lambda x: np.exp(at(x)) / (1 + at(x))),
        (lk.Gamma(0.5, 1.0), lambda x: 1 / at(x)), (lk.Gamma(0.9, 1.0), lambda x: 1 / at(x)),
        (lk.Gamma(0.5, 1.0), lambda x: at(x) ** -0.5), (lk.Gamma(2.0, 1.0), lambda x: at(x) ** -2),
        (lk.Beta(0.5, 0.5), lambda x: 1 / (1 - at(x))),
        (lk.StudentT([0.0], [[1.0]], 3.0), lambda x: np.abs(at(x)) ** 3),
    ],
)  # fmt: skip
def test_expectations_that_do_not_exist_are_refused(distribution, g):
    with (
        np.errstate(all="ignore"),
        pytest.raises(lk.DomainError, match=r"does not exist, or its integral does not conv.*: pass a g that"),
    ):
        distribution.expect(g)


def test_expectations_that_are_zero_or_next_to_it_are_none_that_diverge():
    """The error is small beside E|g(x)|, or beside the size of g."""
    for distribution, g in [
        (lk.StudentT([0.0], [[1.0]], 3.0), at), (UNIT, lambda x: 1e6 * at(x) ** 3), (UNIT, lambda x: at(x) > 8),
    ]:  # fmt: skip
        value, error = distribution.expect(g)
        assert abs(value) <= error < 1e-6


def test_functions_that_are_no_numbers_are_refused():
    with (
        np.errstate(all="ignore"),
        pytest.raises(lk.DomainError, match=r"g must be a number wherever .*, got NaN at -"),
    ):
        NORMAL.expect(lambda x: np.log(at(x)))

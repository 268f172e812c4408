"""Every distribution keeps its digits: log p, distribution function and quantile against mpmath (reliability row 6).

`pytest -m campaign tests/properties/test_accuracy.py -s` takes 10,000 points a distribution and prints the worst of
each.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from tests.properties.accuracy import CASES, SPREADS, cdf_error, quantile_holds, wrong_bits
from tests.public_names import public

BITS = 4.0  # of every distribution: there are no exceptions
RELATIVE = 1e-9

# public distributions that are no formula of their own: what they are made of is in the table, and these test them
ELSEWHERE = {
    "FactorGaussian": "tests/distributions/gaussian/test_factor_gaussian.py: dense Gaussians",
    "ProbabilityTable": "tests/distributions/categorical/test_probability_table.py: tables by hand",
    "Product": "tests/distributions/test_product.py: the sum of its parts",
    "Stack": "tests/distributions/stacks/test_stack.py: its members",
    "Tied": "tests/distributions/stacks/test_tied.py: its members",
    "Transformed": "tests/distributions/transforms/test_transformed.py: the distribution and the slope",
    "LatticeDistribution": "tests/distributions/test_support.py: its own table",
    "GridDistribution": "tests/distributions/test_support.py: its own table",
    "MaximumEntropyDistribution": "tests/distributions/maxent/test_maximum_entropy.py: the named distributions",
    "Walsh": "tests/distributions/binary/test_walsh.py: all rows enumerated",
    "LogLinear": "tests/distributions/binary/test_log_linear.py: all rows enumerated",
    "Bahadur": "tests/distributions/binary/test_walsh.py: all rows enumerated",
    "ChowLiuTree": "tests/distributions/categorical/test_chow_liu.py: all rows enumerated",
}


def distributions() -> set[str]:
    """Public classes of likely.distributions, but for priors, that score."""
    found = {
        name: thing
        for name, thing in public().items()
        if isinstance(thing, type) and thing.__module__.startswith("likely.distributions.")
    }
    return {n for n, thing in found.items() if ".priors." not in thing.__module__ and hasattr(thing, "log_prob")}


def test_every_public_distribution_is_in_the_table():
    covered = {name for c in CASES for name in c.covers}
    assert distributions() - covered - set(ELSEWHERE) == set()
    assert {"Gamma", "Beta", "Dirichlet", "NormalGamma", "NormalInverseGamma", "NormalInverseWishart"} <= covered


def worst(measure, case, count: int, seed: int, of: int) -> tuple[float, str]:
    """The largest of a measure over random points, in words where; one point in `of` at least must be of use."""
    rng = np.random.default_rng(seed)
    with mp.workdps(50):
        points = [case.point(rng) for _ in range(count)]
        found = [(value, i) for i, point in enumerate(points) if (value := measure(case, point)) is not None]
    assert len(found) >= count // of
    value, at = max(found, key=lambda pair: pair[0])
    return value, f"on {len(found)} points, at {points[at]}"


def worst_of(case, count: int, seed: int) -> float:
    bits, where = worst(wrong_bits, case, count, seed, 3)
    print(f"{case.name}: log_prob {bits:.1f} excess wrong bits {where}")
    return bits


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_log_prob(case):
    assert worst_of(case, 60, 1) <= BITS


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_log_prob_at_ten_thousand_points(case):
    assert worst_of(case, 10_000, 2) <= BITS


def worst_share(s, count: int, seed: int) -> float:
    error, where = worst(cdf_error, s, count, seed, 4)
    print(f"{s.name}: cdf relative error {error:.1e} {where}")
    return error


def chance(rng) -> float:
    """A probability in either tail or between."""
    return float(
        [10 ** rng.uniform(-300, -1), rng.uniform(0.01, 0.99), 1 - 10 ** rng.uniform(-15, -1)][rng.integers(3)]
    )


def missed(s, count: int, seed: int) -> list:
    rng, out = np.random.default_rng(seed), []
    with mp.workdps(50):
        for _ in range(count):
            p, parameters = chance(rng), s.point(rng)[1:]
            good, q = quantile_holds(s, p, parameters, RELATIVE)
            if not good:
                out.append((p, parameters, q))
    print(f"{s.name}: {len(out)} quantiles of {count} missed", out[:3])
    return out


@pytest.mark.some_cases(8)
@pytest.mark.slow
@pytest.mark.parametrize("s", SPREADS, ids=lambda s: s.name)
def test_cdf_and_quantile(s):
    count = 4 if s.costly else 20
    assert worst_share(s, count, 3) <= RELATIVE
    assert missed(s, count, 4) == []


@pytest.mark.campaign
@pytest.mark.parametrize("s", SPREADS, ids=lambda s: s.name)
def test_cdf_and_quantile_at_many_points(s):
    count = 60 if s.costly else 1000
    assert worst_share(s, count, 5) <= RELATIVE
    assert missed(s, count, 6) == []

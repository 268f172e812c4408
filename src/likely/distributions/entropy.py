"""Entropy of a distribution: closed form, sum or quadrature where possible, else Monte Carlo.

Every function returns an `Estimate`: a value and its standard error, which is 0 for sums and integrals. The unit is
nats, or bits on request.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyDensity
from likely.core.warnings import warn
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.binary.binary_expansion import SignDistribution
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.distributions.distribution import Estimate, in_units
from likely.distributions.product import Product
from likely.distributions.statistics.expected_counts import urn_entropy
from likely.distributions.support import Atoms, Line, generator, integral, look
from likely.distributions.univariate.beta_negative_binomial import BetaNegativeBinomial

CELLS = (SignDistribution, Bernoulli, ChowLiuTree, Categorical)  # distributions with finite support
EXACT = 1e-9  # a relative error below this is reported as 0
HEAVY = 0.6  # Hill's 1/α from which a standard error is unreliable: ½, and twice its own error
ALONE = 0.05  # share of the sum of squares that one term must have before the tail index is estimated


def entropy(distribution: AnyDensity, bits: bool = False, n: int = 100_000, rng: Generator | None = None) -> Estimate:
    """Entropy H[x] = −E[log p(x)].

    Closed form, sum or quadrature where possible, else an average over samples. A stack gives one value and one error
    per member.

    Parameters
    ----------
    distribution : density
        The distribution.
    bits : bool, default False
        Measure in bits instead of nats.
    n : int, default 100,000
        Number of samples, where they are needed.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The entropy and its error.

    See Also
    --------
    kl_divergence : Relative entropy of two distributions.
    mutual_information : Dependence of variables.

    References
    ----------
    Cover and Thomas (2006), chapter 2; Herbst and du Preez, lecture notes, 1.6.

    Examples
    --------
    >>> import likely as lk
    >>> lk.entropy(lk.Gaussian([0.0], 1.0))
    Estimate(value=1.4189385332046727, error=0.0)
    >>> lk.entropy(lk.Categorical([0.5, 0.25, 0.25]), bits=True).value
    1.5
    """
    rng = generator(rng)
    return by_members("entropy", lambda p: entropy_of(p, n, rng), bits, distribution)


def entropy_of(distribution: Any, n: int, rng: Generator) -> Estimate:
    """Entropy of a single distribution, by n samples where there is no closed form, sum or quadrature."""
    if isinstance(distribution, Product):
        return added([entropy_of(part, n, rng) for _, part in distribution.components])
    if isinstance(distribution, BetaNegativeBinomial):
        return exactly(urn_entropy(distribution))
    own = _own_entropy(distribution, n, rng)
    if own is not None:
        return own
    support = look(distribution)
    if isinstance(support, Atoms):
        return exactly(-mean_of(support.log_probs, support.log_probs))
    found = integral(support, distribution, lambda x, logs: -logs) if isinstance(support, Line) else None
    if found is not None:
        return rounded(found)
    return averaged(-scores(distribution, distribution.sample(draws(n), rng)), has_cells(distribution))


def _own_entropy(distribution: Any, n: int, rng: Generator) -> Estimate | None:
    """The distribution's own entropy, with its error if it has one; None where it has no closed form."""
    try:
        if hasattr(distribution, "_entropy_estimate"):
            return Estimate(*distribution._entropy_estimate(draws(n), rng))
        value = distribution.entropy() if hasattr(distribution, "entropy") else None
    except DomainError:
        return None
    return value if value is None or isinstance(value, Estimate) else exactly(value)


def draws(n: int, whose: str = "entropy") -> int:
    """Validated number of samples: enough for a standard error."""
    if not n >= 16:
        raise DomainError(sentence(whose, "n must be 16 samples or more", n))
    return int(n)


def scores(distribution: Any, x: Any) -> Array:
    """Log-density of rows (n,); NaN raises."""
    logs = np.asarray(distribution.log_prob(x), dtype=np.float64)
    if np.isnan(logs).any():
        raise DomainError(sentence(type(distribution).__name__, "log_prob must be a number for every row", "NaN"))
    return logs


def mean_of(log_probs: Array, values: Array) -> float:
    """Expectation Σ p v, leaving out values of probability 0."""
    return float(np.exp(log_probs) @ np.where(log_probs > -np.inf, values, 0.0))


# ------------------------------------------------------------------- member by member


def by_members(whose: str, f: Callable[..., Estimate], bits: bool, *distributions: Any) -> Estimate:
    """f of single distributions, or per member where some are stacks."""
    for distribution in distributions:
        if not (hasattr(distribution, "log_prob") and hasattr(distribution, "sample")):
            expected = "a density is needed, with log_prob and sample"
            remedy = "fit one, or pass estimator.model_"
            if isinstance(distribution, list | tuple | np.ndarray):
                remedy = "lk.Categorical(probabilities) is one"
            raise DomainError(sentence(whose, expected, type(distribution).__name__, remedy))
    sizes = {
        distribution.members for distribution in distributions if getattr(distribution, "members", None) is not None
    }
    if not sizes:
        return _in_units(f(*distributions), bits)
    if len(sizes) > 1:
        raise ShapeError(sentence(whose, "stacks must have the same number of members", sorted(sizes)))
    found = [f(*(_member(distribution, k) for distribution in distributions)) for k in range(sizes.pop())]
    return _in_units(Estimate(np.array([e.value for e in found]), np.array([e.error for e in found])), bits)


def _member(distribution: Any, k: int) -> Any:
    return distribution if getattr(distribution, "members", None) is None else distribution.member(k)


def _in_units(found: Estimate, bits: bool) -> Estimate:
    return Estimate(in_units(found.value, bits), in_units(found.error, bits))


def exactly(value: Any) -> Estimate:
    """An estimate with error 0."""
    return Estimate(float(value), 0.0)


def added(parts: list[Estimate]) -> Estimate:
    """Sum of independent estimates: variances add."""
    return Estimate(float(sum(e.value for e in parts)), math.sqrt(sum(e.error**2 for e in parts)))


def rounded(found: tuple[float, float]) -> Estimate:
    """An estimate whose error is set to 0 where it is rounding error."""
    value, error = found
    return Estimate(value, 0.0 if error <= EXACT * (1 + abs(value)) or math.isinf(value) else error)


def averaged(terms: Array, bounded: bool = False, whose: str = "entropy") -> Estimate:
    """Sample mean of independent terms with its standard error; one infinite term makes it infinite.

    `bounded`: the terms take finitely many values, so mean and variance exist, however heavy the tail looks.
    """
    if np.isinf(terms).any():
        return exactly(terms[np.isinf(terms)][0])
    if len(terms) < 2:
        raise DomainError(sentence(whose, "n must be 16 samples or more", len(terms)))
    error = float(terms.std(ddof=1)) / math.sqrt(len(terms))
    weight = tail_weight(terms)
    if weight > HEAVY:
        expected = "the terms of a Monte Carlo mean should have a finite variance"
        got = f"a tail like x^(−{1 / weight:.2g})"
        no_mean = weight >= 1 and not bounded
        warn(sentence(whose, expected, got, _heavy_tail_note(no_mean, bounded)))
        error = math.inf if no_mean else error
    return Estimate(float(terms.mean()), error)


def _heavy_tail_note(no_mean: bool, bounded: bool) -> str:
    if no_mean:
        return "the value may be infinite"
    return "its standard error is rough: increase n" if bounded else "its standard error is unreliable"


def has_cells(*distributions: Any) -> bool:
    """True if every distribution has finite support, so that the averaged terms are bounded."""
    parts = [
        part
        for distribution in distributions
        for part in ([p for _, p in distribution.components] if isinstance(distribution, Product) else [distribution])
    ]
    return all(isinstance(part, CELLS) for part in parts)


def tail_weight(terms: Array) -> float:
    """Hill estimate of the tail index 1/α of |terms|: no finite variance from ½ on, no finite mean from 1 on."""
    m = min(len(terms) // 10, math.ceil(3 * math.sqrt(len(terms))))
    if m < 32:
        return 0.0
    sizes = np.abs(terms - np.median(terms))
    top = np.sort(np.partition(sizes, -m - 1)[-m - 1 :])
    if not (top[0] > 0 and top[-1] ** 2 > ALONE * float(sizes @ sizes)):
        return 0.0
    return float(np.log(top[1:] / top[0]).mean())

"""Entropy of one distribution: closed form, sum or quadrature where there is one, draws elsewhere.

Every function gives an `Estimate`: a value and its standard error, which is 0 where the value was summed or integrated.
Nats are the unit; bits if asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import tell
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.binary.binary_expansion import SignDistribution
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.chow_liu import ChowTree
from likely.distributions.distribution import Estimate, in_units
from likely.distributions.product import Product
from likely.distributions.statistics.expected_counts import urn_entropy
from likely.distributions.support import Atoms, Line, generator, integral, look
from likely.distributions.univariate.beta_negative_binomial import BetaNegativeBinomial

CELLS = (SignDistribution, Bernoulli, ChowTree, Categorical)  # distributions of finitely many cells
EXACT = 1e-9  # an error below this share is called none
HEAVY = 0.6  # Hill's 1/α from which an error bar means little: ½, and twice its own error
ALONE = 0.05  # share of the sum of squares that one term must have before tails are looked at


def entropy(distribution: Any, bits: bool = False, n: int = 100_000, rng: Generator | None = None) -> Estimate:
    """H[x] = −E[log p(x)] (Herbst 1.6): closed form, sum or quadrature where there is one, n draws elsewhere.

    A stack gives one value and one error a member.

    >>> import likely as lk
    >>> lk.entropy(lk.Gaussian([0.0], 1.0))
    Estimate(value=1.4189385332046727, error=0.0)
    >>> lk.entropy(lk.Categorical([0.5, 0.25, 0.25]), bits=True).value
    1.5
    """
    rng = generator(rng)
    return by_members(lambda p: entropy_of(p, n, rng), bits, distribution)


def entropy_of(distribution: Any, n: int, rng: Generator) -> Estimate:
    """H[x] of a lone distribution, by n draws where there is no other way."""
    if isinstance(distribution, Product):
        return added([entropy_of(part, n, rng) for _, part in distribution.components])
    if isinstance(distribution, BetaNegativeBinomial):
        return exactly(urn_entropy(distribution))
    own = _own_entropy(distribution, n, rng)
    if own is not None:
        return own
    seen = look(distribution)
    if isinstance(seen, Atoms):
        return exactly(-mean_of(seen.log_probs, seen.log_probs))
    found = integral(seen, distribution, lambda x, logs: -logs) if isinstance(seen, Line) else None
    if found is not None:
        return rounded(found)
    return averaged(-scores(distribution, distribution.sample(draws(n), rng)), has_cells(distribution))


def _own_entropy(distribution: Any, n: int, rng: Generator) -> Estimate | None:
    """What the distribution says itself, with its error where it has one; None where it has no closed form."""
    try:
        if hasattr(distribution, "_entropy_estimate"):
            return Estimate(*distribution._entropy_estimate(draws(n), rng))
        value = distribution.entropy() if hasattr(distribution, "entropy") else None
    except DomainError:
        return None
    return value if value is None or isinstance(value, Estimate) else exactly(value)


def draws(n: int) -> int:
    """A number of draws that an error bar can be made of."""
    if not n >= 16:
        raise DomainError(sentence("information", "n must be 16 draws or more", n))
    return int(n)


def scores(distribution: Any, x: Any) -> Array:
    """log p of rows (n,), NaN never."""
    logs = np.asarray(distribution.log_prob(x), dtype=np.float64)
    if np.isnan(logs).any():
        raise DomainError(sentence(type(distribution).__name__, "log_prob must be a number for every row", "NaN"))
    return logs


def mean_of(log_probs: Array, values: Array) -> float:
    """Σ p v, where what cannot happen does not count."""
    return float(np.exp(log_probs) @ np.where(log_probs > -np.inf, values, 0.0))


# ------------------------------------------------------------------- member by member


def by_members(f: Callable[..., Estimate], bits: bool, *distributions: Any) -> Estimate:
    """f of lone distributions, or of each member where some are stacks."""
    for distribution in distributions:
        if not (hasattr(distribution, "log_prob") and hasattr(distribution, "sample")):
            expected = "a density is needed, with log_prob and sample"
            remedy = "fit one, or pass estimator.model_"
            if isinstance(distribution, list | tuple | np.ndarray):
                remedy = "lk.Categorical(probabilities) is one"
            raise DomainError(sentence("information", expected, type(distribution).__name__, remedy))
    sizes = {
        distribution.members for distribution in distributions if getattr(distribution, "members", None) is not None
    }
    if not sizes:
        return _in_units(f(*distributions), bits)
    if len(sizes) > 1:
        raise ShapeError(sentence("information", "stacks must have equally many members", sorted(sizes)))
    found = [f(*(_member(distribution, k) for distribution in distributions)) for k in range(sizes.pop())]
    return _in_units(Estimate(np.array([e.value for e in found]), np.array([e.error for e in found])), bits)


def _member(distribution: Any, k: int) -> Any:
    return distribution if getattr(distribution, "members", None) is None else distribution.member(k)


def _in_units(found: Estimate, bits: bool) -> Estimate:
    return Estimate(in_units(found.value, bits), in_units(found.error, bits))


def exactly(value: Any) -> Estimate:
    """A number without an error."""
    return Estimate(float(value), 0.0)


def added(parts: list[Estimate]) -> Estimate:
    """Sums of independent estimates: errors add by squares."""
    return Estimate(float(sum(e.value for e in parts)), math.sqrt(sum(e.error**2 for e in parts)))


def rounded(found: tuple[float, float]) -> Estimate:
    """A value and its error, which is called none where it is rounding."""
    value, error = found
    return Estimate(value, 0.0 if error <= EXACT * (1 + abs(value)) or math.isinf(value) else error)


def averaged(terms: Array, bounded: bool = False) -> Estimate:
    """The mean of independent terms with its standard error; one infinite term makes it infinite.

    `bounded`: there are only so many terms that could come, so mean and variance exist, however far the tail goes.
    """
    if np.isinf(terms).any():
        return exactly(terms[np.isinf(terms)][0])
    if len(terms) < 2:
        raise DomainError(sentence("information", "n must be 16 draws or more", len(terms)))
    error = float(terms.std(ddof=1)) / math.sqrt(len(terms))
    weight = tail_weight(terms)
    if weight > HEAVY:
        expected = "terms of a mean by draws should have a variance"
        got = f"a tail like x^(−{1 / weight:.2g})"
        endless = weight >= 1 and not bounded
        tell(sentence("information", expected, got, _of_heavy_tails(endless, bounded)))
        error = math.inf if endless else error
    return Estimate(float(terms.mean()), error)


def _of_heavy_tails(endless: bool, bounded: bool) -> str:
    if endless:
        return "the value may be infinite"
    return "its error bar is rough: raise n" if bounded else "its error bar means little"


def has_cells(*distributions: Any) -> bool:
    """True where each distribution has finitely many cells, so that what is averaged is bounded."""
    parts = [
        part
        for distribution in distributions
        for part in ([p for _, p in distribution.components] if isinstance(distribution, Product) else [distribution])
    ]
    return all(isinstance(part, CELLS) for part in parts)


def tail_weight(terms: Array) -> float:
    """Hill's 1/α of |terms|, whose largest behave like x^(−α): from ½ on there is no variance, from 1 on no mean."""
    m = min(len(terms) // 10, math.ceil(3 * math.sqrt(len(terms))))
    if m < 32:
        return 0.0
    sizes = np.abs(terms - np.median(terms))
    top = np.sort(np.partition(sizes, -m - 1)[-m - 1 :])
    if not (top[0] > 0 and top[-1] ** 2 > ALONE * float(sizes @ sizes)):
        return 0.0
    return float(np.log(top[1:] / top[0]).mean())

"""Sums of independent variables whose distribution is known in closed form (closure under convolution)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.transforms.bijector import Bijector
from likely.distributions.transforms.transformed import Transformed
from likely.distributions.univariate.binomial import Binomial
from likely.distributions.univariate.cauchy import Cauchy
from likely.distributions.univariate.chi_square import ChiSquare
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.poisson import Poisson


class Term(NamedTuple):
    """Weighted term w · x of a sum, with `copies` independent x of one distribution."""

    distribution: Any
    weight: float
    copies: int


def known_sum(terms: list[Term]) -> Any | None:
    """Distribution of a sum in closed form; None where there is none.

    >>> known_sum([Term(Poisson(2.0), 1.0, 3), Term(Poisson(1.0), 1.0, 1)])
    Poisson(rate=[7.])
    """
    if not terms:
        return Gaussian(np.zeros(1), np.zeros((1, 1)))  # an empty sum: point mass at 0
    if len(terms) == 1 and terms[0].copies == 1:
        return _one(terms[0])
    rules = {RULES.get(type(term.distribution).__name__) for term in terms}
    rule = rules.pop() if len(rules) == 1 else None
    return None if rule is None else rule(terms)


def _one(term: Term) -> Any | None:
    if term.weight == 1:
        return term.distribution
    if isinstance(term.distribution, Gaussian):
        return _gaussian([term])
    return Transformed(term.distribution, Bijector.affine(term.weight)) if hasattr(term.distribution, "cdf") else None


def _gaussian(terms: list[Term]) -> Any | None:
    if len({term.distribution.dim for term in terms}) > 1:
        return None
    mean = sum(t.copies * t.weight * t.distribution.mean for t in terms)
    return Gaussian(mean, sum(t.copies * t.weight**2 * t.distribution.covariance_matrix for t in terms))


def _unweighted(terms: list[Term]) -> bool:
    return all(term.weight == 1 and term.distribution.dim == 1 for term in terms)


def _equal(terms: list[Term], name: str) -> bool:
    found = [getattr(term.distribution, name) for term in terms]
    return all(np.array_equal(found[0], other) for other in found)


def _poisson(terms: list[Term]) -> Any | None:
    return Poisson(sum(t.copies * t.distribution.rate for t in terms)) if _unweighted(terms) else None


def _negative_binomial(terms: list[Term]) -> Any | None:
    if not (_unweighted(terms) and _equal(terms, "prob") and _equal(terms, "rest")):
        return None
    first = terms[0].distribution
    return NegativeBinomial(sum(t.copies * t.distribution.size for t in terms), first.prob, first.rest)


def _with_one_rate(terms: list[Term], shape: Callable[[Any], Array]) -> Any | None:
    """Sum of gamma distributions of equal rate; a weight w changes the rate to b/w."""
    rates = [t.distribution.rate / t.weight for t in terms if t.weight > 0 and t.distribution.dim == 1]
    if len(rates) < len(terms) or any(not np.array_equal(rates[0], rate) for rate in rates):
        return None
    return Gamma(np.sum([t.copies * shape(t.distribution) for t in terms], axis=0), rates[0])


def _binomial(terms: list[Term]) -> Any | None:
    """Sum of binomial (or Bernoulli) distributions of equal success probability."""
    if not (_unweighted(terms) and _equal(terms, "probs")):
        return None
    trials = sum(t.copies * np.asarray(getattr(t.distribution, "trials", 1.0)) for t in terms)
    return Binomial(np.atleast_1d(trials), terms[0].distribution.probs)


def _cauchy(terms: list[Term]) -> Any | None:
    if any(term.distribution.dim != 1 for term in terms):
        return None
    center = np.sum([t.copies * t.weight * t.distribution.center for t in terms], axis=0)
    return Cauchy(center, np.sum([t.copies * abs(t.weight) * t.distribution.scale for t in terms], axis=0))


def _chi_square(terms: list[Term]) -> Any | None:
    return ChiSquare(np.sum([t.copies * t.distribution.dof for t in terms], axis=0)) if _unweighted(terms) else None


RULES: dict[str, Callable[[list[Term]], Any | None]] = {
    "Gaussian": _gaussian,
    "Poisson": _poisson,
    "NegativeBinomial": _negative_binomial,
    "Gamma": lambda terms: _with_one_rate(terms, lambda distribution: distribution.shape),
    "Exponential": lambda terms: _with_one_rate(terms, lambda distribution: np.ones_like(distribution.rate)),
    "Bernoulli": _binomial,
    "Binomial": _binomial,
    "Cauchy": _cauchy,
    "ChiSquare": _chi_square,
}

"""Bayes error of discrete distributions by exact summation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from likely.core.arrays import Array, Index
from likely.decision.theory.decision_problem import Problem
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.distribution import Distribution, Estimate
from likely.distributions.univariate.poisson import Poisson

STATES = 2**21  # maximum number of terms
CLOSE = 1e-14  # difference below which probabilities are equal


def coins(asked: Problem) -> Estimate | None:
    """Independent Bernoulli columns: of columns with equal probabilities only the number of ones matters   (Ney 2.6.3).

    So D equal columns have D + 1 states, not 2^D. Columns that are mirrored (1 − p in every class) count as equal.
    """
    if not all(isinstance(distribution, Bernoulli) for distribution in asked.distributions):
        return None
    probs, many = _kinds(np.stack([distribution.probs for distribution in asked.distributions], axis=1))  # (G, C), (G,)
    if np.prod(many + 1.0) > STATES:
        return None
    log_probs = np.zeros((1, len(asked.distributions)))
    for p, m in zip(probs, many, strict=True):
        log_probs = (log_probs[:, None] + _binomial(int(m), p)[None]).reshape(-1, len(asked.distributions))
    return Estimate(asked.paid + float((np.exp(log_probs) @ asked.excess.T).min(axis=1).sum()), 0.0)


def _kinds(probs: Array) -> tuple[Array, Index]:
    """Distinct columns (G, C) and their multiplicities: columns with equal probabilities in all classes are dropped."""
    probs = probs[np.ptp(probs, axis=1) > 0]
    flipped = np.where(probs[:, :1] > 0.5, 1.0 - probs, probs)
    ambiguous = flipped[:, 0] == 0.5
    first = flipped[:, -1] > 0.5
    flipped = np.where((ambiguous & first)[:, None], 1.0 - flipped, flipped)
    _, at, many = np.unique(np.round(flipped / CLOSE), axis=0, return_index=True, return_counts=True)
    return flipped[at], many


def _binomial(m: int, p: Array) -> Array:
    """log of the binomial probabilities of 0 … m ones (m + 1, C)."""
    ones = np.arange(m + 1.0)[:, None]
    ways = gammaln(m + 1.0) - gammaln(ones + 1) - gammaln(m - ones + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(ones > 0, ones * np.log(p), 0.0)
        down = np.where(ones < m, (m - ones) * np.log1p(-p), 0.0)
    return ways + up + down


class _Drawn(Exception):
    """Raised if a distribution would sample: its expectations are not finite sums."""


class _NoDraws:
    """A stand-in for a random generator that raises `_Drawn` when used."""

    def __getattr__(self, name: str) -> Any:
        raise _Drawn


def by_expectations(asked: Problem) -> Estimate | None:
    """Σ_c p(c) E[risk(x) | c] by exact sums; None if a distribution would need sampling."""
    asked = _fewer_counts(asked)
    try:
        return Estimate(
            float(asked.prior @ [_summed(distribution, asked.risk) for distribution in asked.distributions]), 0.0
        )
    except _Drawn:
        return None


def _fewer_counts(asked: Problem) -> Problem:
    """Poisson columns with proportional rates in all classes are merged: only their sum matters."""
    if not all(isinstance(distribution, Poisson) for distribution in asked.distributions):
        return asked
    rates = np.stack([distribution.rate for distribution in asked.distributions], axis=1)  # (d, C)
    rates = rates[np.ptp(rates, axis=1) > 0]
    if not len(rates):
        return replace(asked, distributions=(Poisson(np.ones(1)),) * len(asked.distributions))
    ratios = np.round(rates / rates.max(axis=1, keepdims=True) / CLOSE)
    _, kind = np.unique(ratios, axis=0, return_inverse=True)
    merged = np.zeros((kind.max() + 1, len(asked.distributions)))
    np.add.at(merged, kind.ravel(), rates)
    return replace(asked, distributions=tuple(Poisson(rate) for rate in merged.T))


def _summed(distribution: Any, g: Any) -> float:
    """E[g(x)] by finite sums; of a mixture, by component."""
    weights: Any = getattr(distribution, "weights", None)
    parts: Any = getattr(distribution, "components", None)
    if weights is not None and getattr(parts, "members", None):
        return float(sum(w * _summed(parts.member(k), g) for k, w in enumerate(weights.tolist()) if w > 0))
    if getattr(type(distribution), "expect", Distribution.expect) is Distribution.expect:  # no exact expectation
        raise _Drawn
    found = distribution.expect(g, 1, _NoDraws())
    if found.error > 0:
        raise _Drawn
    return float(found)

"""Bayes error: the smallest possible error rate (or risk) of a classification problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.errors import DomainError, sentence
from likely.core.warnings import warn
from likely.decision.theory.bayes_error_integrals import in_the_plane, on_the_line, shared_covariance
from likely.decision.theory.bayes_error_sums import by_expectations, coins
from likely.decision.theory.decision_problem import Problem, problem
from likely.decision.theory.gaussian_pair_error import two_gaussians
from likely.distributions.distribution import Estimate

DRAWS = 100_000  # default number of samples
MOST = 20_000_000  # maximum number of samples
BATCH = 100_000  # samples per block


def bayes_error(
    *distributions: Any, class_prior: ArrayLike | Mapping[Any, float] | None = None, cost: Any = None,
    tolerance: float | None = None, n: int = DRAWS, rng: Generator | None = None,
) -> Estimate:  # fmt: skip
    """Bayes error (or, with costs, Bayes risk) ∫ min_a Σ_c L(a, c) p(c) p(x | c) dx   (Ney 2.2, 2.5).

    - **distributions**: the densities p(x | c), one per class; or one stack, one `Mixture`, one fitted
      `BayesClassifier`. All of one kind: probabilities of values, or densities over the same columns.
    - **class_prior**: p(c); None: those of the mixture or classifier, else equal. **cost**: L (A, C); None: 0/1.
    - **tolerance**: the standard error to reach by Monte Carlo sampling. **n**: number of samples without a tolerance.

    `error` is 0 for closed forms and finite sums: two Gaussians that share a covariance, Q(v/2) for equal
    priors; discrete distributions. One column with a cdf, two Gaussians in any number of columns, and more of them in a
    plane are integrated numerically, with an estimate of the integration error. Elsewhere the smallest posterior cost
    is averaged over samples of each class, and `error` is the standard error.

    >>> import likely as lk
    >>> round(float(bayes_error(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 0.0], 1.0))), 6)
    0.158655
    >>> round(float(bayes_error(lk.Poisson(1.0), lk.Poisson(4.0))), 6)
    0.159202
    """
    asked = problem(distributions, class_prior, cost, "bayes_error")
    _check(tolerance, n)
    _warn_of_scores(asked)
    if len(asked.distributions) == 1:
        return Estimate(float(asked.cost.table.min()), 0.0)
    asked = _possible(asked)
    for way in (shared_covariance, coins, on_the_line, by_expectations, two_gaussians, in_the_plane):
        found = way(asked)
        if found is not None and (tolerance is None or found.error <= tolerance):
            return found
    return by_draws(asked, tolerance, n, rng or np.random.default_rng(0))


def _warn_of_scores(asked: Problem) -> None:
    """Warn of densities that do not integrate to one: the result is not an error rate."""
    odd = [
        type(distribution).__name__
        for distribution in asked.distributions
        if not getattr(distribution, "integrates", True)
    ]
    if odd:
        remedy = "the value is not an error rate: use KernelDensity, or lk.evaluate on new rows"
        warn(sentence("bayes_error", "densities should integrate to one", f"{odd[0]}, which does not", remedy))


def _check(tolerance: Any, n: Any) -> None:
    number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if tolerance is not None and not (number and np.isfinite(tolerance) and tolerance > 0):
        raise DomainError(sentence("bayes_error", "tolerance must be positive", tolerance))
    if not (isinstance(n, int | np.integer) and n >= 2):
        raise DomainError(sentence("bayes_error", "n must be a whole number of draws, 2 or more", n))


def _possible(asked: Problem) -> Problem:
    """The problem without classes of probability 0; their actions are kept."""
    at = np.flatnonzero(asked.prior > 0)
    if len(at) == len(asked.prior):
        return asked
    rest = np.setdiff1d(np.arange(len(asked.cost.table)), at)
    table = asked.cost.table[np.concatenate([at, rest])][:, at]
    cost = type(asked.cost).trusted(table=table, actions=tuple(f"action {k}" for k in rest), classes=None)
    return Problem(tuple(asked.distributions[k] for k in at), asked.prior[at], cost, np.arange(len(at)))


def by_draws(asked: Problem, tolerance: float | None, n: int, rng: Generator) -> Estimate:
    """Monte Carlo estimate, stratified by class, of the posterior expected cost."""
    sums = np.zeros((len(asked.distributions), 3))  # draws, Σ r, Σ r² of each class
    wanted = n
    while True:
        for k, distribution in enumerate(asked.distributions):
            size = max(round(float(asked.prior[k]) * min(wanted, BATCH)), 2)
            risk = np.asarray(asked.risk(distribution.sample(size, rng)), dtype=np.float64)
            sums[k] += size, risk.sum(), risk @ risk
        found = _estimate(asked, sums)
        done = sums[:, 0].sum()
        if (done >= n and tolerance is None) or (tolerance is not None and found.error <= tolerance):
            return found
        if done >= MOST:
            warn(f"bayes_error: tolerance {tolerance:.3g} not met by {MOST:,} samples: the error is {found.error:.3g}")
            return found
        wanted = BATCH if tolerance is not None else int(n - done)


def _estimate(asked: Problem, sums: Any) -> Estimate:
    """The stratified mean and its standard error, with an allowance for regions too rare to be sampled."""
    count, first, second = sums.T
    mean = first / count
    variance = np.maximum(second / count - mean**2, 0.0) / np.maximum(count - 1, 1)
    table = asked.cost.table
    table = np.where(np.isinf(table), table.min(axis=0), table)  # actions that are never taken cost nothing
    unseen = float((asked.prior * (table.max(axis=0) - table.min(axis=0)) / count).max())
    error = float(np.hypot(np.sqrt(asked.prior**2 @ variance), unseen))
    return Estimate(float(asked.prior @ mean), error)

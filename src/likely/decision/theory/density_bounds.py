"""Bhattacharyya and Chernoff bounds of the Bayes error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.core.protocols import AnyDensity
from likely.decision.posteriors import ClassPrior
from likely.decision.theory.decision_problem import Problem, problem
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.distribution import Estimate
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.univariate.poisson import Poisson
from likely.numerics import spd

DRAWS = 100_000


def bhattacharyya_bound(
    p: AnyDensity, q: AnyDensity, class_prior: ClassPrior | None = None, *, n: int = DRAWS,
    rng: Generator | None = None,
) -> Estimate:  # fmt: skip
    """Bhattacharyya upper bound of the Bayes error of two classes: √(p(0) p(1)) ∫ √(p q) dx.

    Independent Bernoulli columns, mirrored: ½ (4λ(1 − λ))^{D/2}, half of the bound in Ney 2.6.3. Exact for
    two distributions of one kind: `Gaussian`, `Bernoulli`, `Poisson`, `Categorical`; by sampling elsewhere.

    Parameters
    ----------
    p, q : density
        Densities of the two classes.
    class_prior : array-like (2,), optional
        Class probabilities; equal by default.
    n : int
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The bound and its standard error, 0 for closed forms.

    See Also
    --------
    chernoff_bound : A tighter bound.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Ney, lecture notes, 2.6.3.

    Examples
    --------
    >>> import likely as lk
    >>> round(float(bhattacharyya_bound(lk.Bernoulli([0.8] * 3), lk.Bernoulli([0.2] * 3))), 6)
    0.256
    """
    n = checked_draws(n, "bhattacharyya_bound")
    return _bound(problem((p, q), class_prior, None, "bhattacharyya_bound"), 0.5, n, rng)


def chernoff_bound(
    p: AnyDensity, q: AnyDensity, class_prior: ClassPrior | None = None, *,
    exponent: float | None = None, n: int = DRAWS, rng: Generator | None = None,
) -> tuple[Estimate, float]:  # fmt: skip
    """Chernoff upper bound of the Bayes error of two classes: min over s of p(0)ˢ p(1)¹⁻ˢ ∫ pˢ q¹⁻ˢ dx.

    The logarithm is convex in s, so the minimum is found by a line search; s = ½ is the Bhattacharyya bound.

    Parameters
    ----------
    p, q : density
        Densities of the two classes.
    class_prior : array-like (2,), optional
        Class probabilities; equal by default.
    exponent : float, optional
        The exponent s, between 0 and 1; None minimizes.
    n : int
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    bound : Estimate
        The bound and its standard error, 0 for closed forms.
    exponent : float
        The exponent s.

    See Also
    --------
    bhattacharyya_bound : The bound at s = ½.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2.

    Examples
    --------
    >>> import likely as lk
    >>> bound, s = chernoff_bound(lk.Gaussian([0.0], 1.0), lk.Gaussian([2.0], 1.0))
    >>> round(float(bound), 6), round(s, 3)
    (0.303265, 0.5)
    """
    n = checked_draws(n, "chernoff_bound")
    asked = problem((p, q), class_prior, None, "chernoff_bound")
    if exponent is not None:
        if not 0 <= exponent <= 1:
            raise DomainError(sentence("chernoff_bound", "exponent must lie in 0 … 1", exponent))
        return _bound(asked, float(exponent), n, rng), float(exponent)
    log_overlap = _closed(asked) or _drawn(asked, n, rng)[0]
    s = _least(lambda s: _log_bound(asked, log_overlap, s))
    return _bound(asked, s, n, rng), float(s)


def both_bounds(asked: Problem, n: int, rng: Generator) -> tuple[Estimate, Estimate]:
    """Bhattacharyya and Chernoff bound from the same samples, so that the second is never above the first."""
    closed = _closed(asked)
    if closed is not None:
        s = _least(lambda s: _log_bound(asked, closed, s))
        return _bound(asked, 0.5, n, rng), _bound(asked, s, n, rng)
    log_overlap, overlap = _drawn(asked, n, rng)
    s = _least(lambda s: _log_bound(asked, log_overlap, s))
    shares = [float(np.exp(_log_share(asked, each))) for each in (0.5, s)]
    found = [Estimate(*(share * np.array(overlap(each)))) for share, each in zip(shares, (0.5, s), strict=True)]
    return found[0], found[1]


def checked_draws(n: Any, whose: str) -> int:
    """Validated number of samples, 2 or more."""
    if not (isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 2):
        raise DomainError(sentence(whose, "n must be an integer of draws, 2 or more", n))
    return int(n)


def _bound(asked: Problem, s: float, n: int, rng: Generator | None) -> Estimate:
    closed = _closed(asked)
    if closed is not None:
        return Estimate(float(np.exp(_log_bound(asked, closed, s))), 0.0)
    _, overlap = _drawn(asked, n, rng)
    value, error = overlap(s)
    share = float(np.exp(_log_share(asked, s)))
    return Estimate(share * value, share * error)


def _log_share(asked: Problem, s: float) -> float:
    with np.errstate(divide="ignore"):
        return float(xlogy(s, asked.prior[0]) + xlogy(1 - s, asked.prior[1]))


def _log_bound(asked: Problem, log_overlap: Any, s: float) -> float:
    return _log_share(asked, s) + float(log_overlap(s))


def _least(f: Any) -> float:
    """Minimizer of a convex function on 0 … 1, by Brent's method."""
    inside = float(minimize_scalar(f, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x)
    return min(
        (inside, 0.0, 1.0, 0.5), key=f
    )  # constant if the distributions are equal, and the minimum may be at an end


# ------------------------------------------------------------------------ closed forms


def _closed(asked: Problem) -> Any:
    """s ↦ log ∫ pˢ q¹⁻ˢ in closed form; None if there is none."""
    p, q = asked.distributions
    formulas: dict[Any, Any] = {
        Gaussian: _gaussians, Bernoulli: _bernoullis, Poisson: _poissons, Categorical: _categoricals
    }  # fmt: skip
    for distribution, formula in formulas.items():
        if isinstance(p, distribution) and isinstance(q, distribution):
            return formula(p, q)
    return None


def _gaussians(p: Gaussian, q: Gaussian) -> Any:
    """−½ s(1 − s) Δᵀ Σ_s⁻¹ Δ − ½ log |Σ_s| / (|Σ_p|¹⁻ˢ |Σ_q|ˢ), with Σ_s = (1 − s) Σ_p + s Σ_q."""
    A, B = np.ascontiguousarray(p.covariance_matrix), np.ascontiguousarray(q.covariance_matrix)
    scale = np.maximum(spd.scales(A), spd.scales(B))
    A, B, delta = A / scale[:, None] / scale, B / scale[:, None] / scale, (p.mean - q.mean) / scale
    roots = spd.cholesky(A), spd.cholesky(B)
    if roots[0] is None or roots[1] is None:
        return None
    a, b = (float(spd.logdet(root)) for root in roots if root is not None)

    def log_overlap(s: float) -> float:
        root = spd.cholesky((1 - s) * A + s * B)
        assert root is not None  # a mean of two positive definite matrices is positive definite
        away = np.asarray(spd.solve_factor(root, delta[None].copy()))
        gap = float(spd.logdet(root)) - (1 - s) * a - s * b
        return -0.5 * s * (1 - s) * float((away**2).sum()) - 0.5 * max(gap, 0.0)

    return log_overlap


def _bernoullis(p: Bernoulli, q: Bernoulli) -> Any:
    def log_overlap(s: float) -> float:
        both = _powers(p.probs, q.probs, s) + _powers(1 - p.probs, 1 - q.probs, s)
        with np.errstate(divide="ignore"):
            return float(np.log(both).sum())

    return log_overlap


def _poissons(p: Poisson, q: Poisson) -> Any:
    def log_overlap(s: float) -> float:
        return float((_powers(p.rate, q.rate, s) - s * p.rate - (1 - s) * q.rate).sum())

    return log_overlap


def _categoricals(p: Categorical, q: Categorical) -> Any:
    with np.errstate(divide="ignore"):
        mine, other = p.probs, np.exp(q.log_prob(p.values))
    return lambda s: _log(float(_powers(mine, other, s).sum()))


def _powers(a: Array, b: Array, s: float) -> Array:
    """aˢ b¹⁻ˢ, 0 where one of them is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.exp(s * np.log(a) + (1 - s) * np.log(b))
    return np.where((a > 0) & (b > 0), out, 0.0)


def _log(a: float) -> float:
    return float(np.log(a)) if a > 0 else -np.inf


# ------------------------------------------------------------------------------ sampling


def _drawn(asked: Problem, n: int, rng: Generator | None) -> tuple[Any, Any]:
    """s ↦ log of the overlap, and s ↦ (overlap, standard error), from samples of the even mixture of both."""
    rng = rng or np.random.default_rng(0)
    half = max(n // 2, 2)
    each = []
    for distribution in asked.distributions:
        logs = asked.log_probs(distribution.sample(half, rng))
        each.append(logs - np.logaddexp(logs[:, :1], logs[:, 1:]) + np.log(2.0))

    def overlap(s: float) -> tuple[float, float]:
        parts = [_powers(np.exp(logs[:, 0]), np.exp(logs[:, 1]), s) for logs in each]
        value = 0.5 * sum(float(part.mean()) for part in parts)
        error = 0.5 * np.sqrt(sum(float(part.var(ddof=1)) for part in parts) / half)
        return value, float(np.hypot(error, 1.0 / (2 * half)))

    return (lambda s: _log(overlap(s)[0])), overlap

"""Kullback–Leibler divergence, cross-entropy and Jensen–Shannon divergence.

Every function gives an `Estimate`: a value and its standard error, which is 0 where the value is exact.
The unit is nats, or bits if requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import rel_entr

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyDensity
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.distribution import Estimate
from likely.distributions.entropy import (
    added,
    averaged,
    by_members,
    draws,
    entropy_of,
    exactly,
    has_cells,
    mean_of,
    rounded,
    scores,
)
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.product import Product
from likely.distributions.statistics.expected_counts import urn_kl
from likely.distributions.support import Atoms, Line, generator, integral, log_density, look
from likely.distributions.support_inclusion import rules_out
from likely.distributions.univariate.beta_negative_binomial import BetaNegativeBinomial
from likely.numerics.special import LOG_2


def kl_divergence(
    p: AnyDensity, q: AnyDensity, bits: bool = False, n: int = 100_000, rng: Generator | None = None
) -> Estimate:
    """Kullback–Leibler divergence KL(p ‖ q) = E_p[log p(x) − log q(x)] ≥ 0; infinite where q = 0 < p.

    Monte Carlo estimates draw half of the samples from each distribution, with weights of at most 2 and nonnegative
    terms. Stacks are compared member by member; a single distribution is compared with each member of a stack.

    Parameters
    ----------
    p, q : distribution
        The distributions.
    bits : bool, default False
        Measure in bits instead of nats.
    n : int, default 100000
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The divergence and its standard error, 0 for closed forms.

    See Also
    --------
    js_divergence : A symmetric divergence.
    cross_entropy : With the entropy of p added.

    References
    ----------
    Cover and Thomas (2006), chapter 2; Bishop (2006), chapter 1; Herbst and du Preez, lecture notes, 1.6.1.

    Examples
    --------
    >>> import likely as lk
    >>> lk.kl_divergence(lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 1.0)).value
    0.5
    >>> lk.kl_divergence(lk.Categorical([0.5, 0.5]), lk.Categorical([1.0, 0.0])).value
    inf
    """
    rng = generator(rng)
    return by_members("kl_divergence", lambda a, b: _kl(a, b, n, rng), bits, p, q)


def cross_entropy(
    p: AnyDensity, q: AnyDensity, bits: bool = False, n: int = 100_000, rng: Generator | None = None
) -> Estimate:
    """Cross-entropy −E_p[log q(x)] = H[p] + KL(p ‖ q): the expected code length of p under a code for q.

    Parameters
    ----------
    p, q : distribution
        The distributions.
    bits : bool, default False
        Measure in bits instead of nats.
    n : int, default 100000
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The cross-entropy and its standard error, 0 for closed forms.

    See Also
    --------
    kl_divergence : The excess over the entropy of p.

    References
    ----------
    Cover and Thomas (2006), chapter 2.

    Examples
    --------
    >>> import likely as lk
    >>> lk.information.cross_entropy(lk.Bernoulli(0.5), lk.Bernoulli(0.25), bits=True).value.__round__(6)
    1.207519
    """
    rng = generator(rng)
    return by_members("cross_entropy", lambda a, b: _cross_entropy(a, b, n, rng), bits, p, q)


def js_divergence(
    p: AnyDensity, q: AnyDensity, bits: bool = False, n: int = 100_000, rng: Generator | None = None
) -> Estimate:
    """Jensen–Shannon divergence ½ KL(p ‖ m) + ½ KL(q ‖ m) with m = ½ (p + q): symmetric and at most log 2.

    Parameters
    ----------
    p, q : distribution
        The distributions.
    bits : bool, default False
        Measure in bits instead of nats.
    n : int, default 100000
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The divergence and its standard error, 0 for closed forms.

    See Also
    --------
    kl_divergence : The divergence that is not symmetric.

    References
    ----------
    Lin (1991).

    Examples
    --------
    >>> import likely as lk
    >>> lk.information.js_divergence(lk.Categorical([1.0, 0.0]), lk.Categorical([0.0, 1.0]), bits=True).value
    1.0
    """
    rng = generator(rng)
    return by_members("js_divergence", lambda a, b: _js(a, b, n, rng), bits, p, q)


def _kl(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    _same_columns(p, q, "kl_divergence")
    closed = _closed_kl(p, q, n, rng)
    if closed is not None:
        return closed
    support, other = look(p), look(q)
    if support is not None and other is not None and type(support) is not type(other):
        return exactly(math.inf)  # mutually singular distributions
    if rules_out(q, p, support):
        return exactly(math.inf)
    if isinstance(support, Atoms):
        log_q = log_density(q, support.values)
        return exactly(
            rel_entr(np.exp(support.log_probs), np.exp(log_q)).sum() if _plain(log_q) else _kl_in_logs(support, log_q)
        )
    found = (
        integral(support, p, lambda x, logs: logs - log_density(q, x[:, None])) if isinstance(support, Line) else None
    )
    return _not_negative(rounded(found)) if found is not None else _sampled_kl(p, q, n, rng)


def _same_columns(p: Any, q: Any, whose: str) -> None:
    d, e = getattr(p, "dim", None), getattr(q, "dim", None)
    if isinstance(d, int) and isinstance(e, int) and d != e:
        raise ShapeError(sentence(whose, "both distributions must have equally many columns", (d, e)))


def _plain(log_q: Array) -> bool:
    """Whether probabilities do not underflow."""
    return bool((log_q[np.isfinite(log_q)] > -700).all())


def _kl_in_logs(p: Atoms, log_q: Array) -> float:
    possible = p.log_probs > -np.inf
    if np.isneginf(log_q[possible]).any():
        return math.inf
    return mean_of(p.log_probs[possible], p.log_probs[possible] - log_q[possible])


def _not_negative(found: Estimate) -> Estimate:
    """Nonnegative value: rounding must not violate Gibbs' inequality."""
    return Estimate(max(found.value, 0.0), found.error)


def _closed_kl(p: Any, q: Any, n: int, rng: Generator) -> Estimate | None:
    if isinstance(p, Product) and isinstance(q, Product) and p.names == q.names:
        return added([_kl(part, q[name], n, rng) for name, part in p.components])
    if isinstance(p, Gaussian) and isinstance(q, Gaussian):
        return _gaussian_kl(p, q)
    if isinstance(p, BetaNegativeBinomial) and isinstance(q, BetaNegativeBinomial):
        return exactly(urn_kl(p, q))
    if isinstance(p, Categorical) and isinstance(q, Categorical) and p.values.tolist() != q.values.tolist():
        return None
    if type(p) is not type(q) or not hasattr(p, "kl"):
        return None
    try:
        value = float(p.kl(q))
    except DomainError:  # too many cells, for example: Monte Carlo still works
        return None
    return exactly(max(value, 0.0) if not math.isnan(value) else math.inf)


def _gaussian_kl(p: Gaussian, q: Gaussian) -> Estimate:
    """Also of singular covariances: infinite unless both have the same support, then computed within it."""
    basis, other = _range_basis(p), _range_basis(q)
    if basis.shape[1] == other.shape[1] == p.dim:
        return exactly(p.kl(q))
    if basis.shape[1] != other.shape[1] or not np.isfinite(q.log_prob(_in_basis(p, basis))).all():
        return exactly(math.inf)
    if not basis.shape[1]:
        return exactly(0.0)
    return exactly(p.affine(basis.T).kl(q.affine(basis.T)))


def _range_basis(distribution: Gaussian) -> Array:
    """An orthonormal basis (d, r) of the range of the covariance."""
    rank = int(np.ravel(distribution.form.rank)[0])
    values, vectors = np.linalg.eigh(distribution.covariance_matrix)
    return np.asarray(vectors[:, len(values) - rank :])


def _in_basis(distribution: Gaussian, basis: Array) -> Array:
    spread = np.sqrt(np.einsum("ir,ij,jr->r", basis, distribution.covariance_matrix, basis))
    return np.concatenate([distribution.mean[None], distribution.mean + (basis * spread).T])


def _sampled_kl(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    """E_m[u log(u/v) − u + v] with m = ½ (p + q), u = p/m, v = q/m: bounded weights, nonnegative terms."""
    return _halves(p, q, n, rng, _kl_terms, "kl_divergence")


def _kl_terms(log_p: Array, log_q: Array) -> Array:
    u, v = _shares(log_p, log_q)
    log_ratio = np.where(u > 0, log_p - np.where(u > 0, log_q, 0.0), 0.0)
    return np.where(u > 0, u * log_ratio, 0.0) - u + v


def _js_terms(log_p: Array, log_q: Array) -> Array:
    u, v = _shares(log_p, log_q)
    return 0.5 * (rel_entr(u, 1.0) + rel_entr(v, 1.0))


def _shares(log_p: Array, log_q: Array) -> tuple[Array, Array]:
    both = np.logaddexp(log_p, log_q) - LOG_2
    return np.exp(log_p - both), np.exp(log_q - both)


def _halves(p: Any, q: Any, n: int, rng: Generator, terms: Callable[[Array, Array], Array], whose: str) -> Estimate:
    """Monte Carlo mean of terms under ½ (p + q), with as many draws from each."""
    half = (draws(n, whose) + 1) // 2
    with np.errstate(invalid="ignore"):
        each = [terms(scores(p, x), scores(q, x)) for x in (p.sample(half, rng), q.sample(half, rng))]
    parts = [averaged(one, has_cells(p, q), whose) for one in each]
    return Estimate(0.5 * (parts[0].value + parts[1].value), 0.5 * math.hypot(parts[0].error, parts[1].error))


def _cross_entropy(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    _same_columns(p, q, "cross_entropy")
    p_support, q_support = look(p), look(q)
    if (p_support is not None and q_support is not None) or _has_closed_form(p, q):
        parts = [entropy_of(p, n, rng), _kl(p, q, n, rng)]
        if all(part.error == 0 for part in parts):
            return added(parts)
    return averaged(-scores(q, p.sample(draws(n, "cross_entropy"), rng)), has_cells(p, q), "cross_entropy")


def _has_closed_form(p: Any, q: Any) -> bool:
    return type(p) is type(q) and hasattr(p, "entropy") and (hasattr(p, "kl") or isinstance(p, BetaNegativeBinomial))


def _js(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    _same_columns(p, q, "js_divergence")
    support, other = look(p), look(q)
    if isinstance(support, Atoms) and isinstance(other, Atoms):
        return exactly(0.5 * (_to_middle(support, p, q) + _to_middle(other, q, p)))
    if isinstance(support, Line) and isinstance(other, Line):
        found = [integral(support, p, _above_middle(q)), integral(other, q, _above_middle(p))]
        if found[0] is not None and found[1] is not None:
            return _not_negative(rounded((0.5 * (found[0][0] + found[1][0]), 0.5 * (found[0][1] + found[1][1]))))
    elif support is not None and other is not None:
        return exactly(LOG_2)  # a discrete and a continuous distribution are mutually singular
    return _halves(p, q, n, rng, _js_terms, "js_divergence")


def _to_middle(support: Atoms, p: Any, q: Any) -> float:
    middle = np.logaddexp(support.log_probs, log_density(q, support.values)) - LOG_2
    return mean_of(support.log_probs, support.log_probs - np.where(np.isneginf(middle), 0.0, middle))


def _above_middle(q: Any) -> Callable[[Array, Array], Array]:
    return lambda x, logs: logs - np.logaddexp(logs, log_density(q, x[:, None])) + LOG_2

"""Information: how much a law leaves open, and how far one law is from another.

Every function gives an `Estimate`: a value and its standard error, which is 0 where the value was summed or integrated.
Nats are the unit; bits if asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import rel_entr

from likely.core.arrays import Array
from likely.core.notes import tell
from likely.errors import DomainError, ShapeError, sentence
from likely.families.bernoulli import Bernoulli
from likely.families.beta_negative_binomial import BetaNegativeBinomial
from likely.families.categorical import Categorical
from likely.families.chow_tree import ChowTree
from likely.families.count_sums import urn_entropy, urn_kl
from likely.families.gaussian import Gaussian
from likely.families.law import Estimate, in_units
from likely.families.line import Atoms, Line, generator, integral, log_density, look
from likely.families.product import Product
from likely.families.sign_law import SignLaw
from likely.families.supports import rules_out
from likely.maths.special import LOG_2

CELLS = (SignLaw, Bernoulli, ChowTree, Categorical)  # laws of finitely many cells
EXACT = 1e-9  # an error below this share is called none
HEAVY = 0.6  # Hill's 1/α from which an error bar means little: ½, and twice its own error
ALONE = 0.05  # share of the sum of squares that one term must have before tails are looked at


def entropy(law: Any, bits: bool = False, n: int = 100_000, rng: Generator | None = None) -> Estimate:
    """H[x] = −E[log p(x)] (Herbst 1.6): closed form, sum or quadrature where there is one, n draws elsewhere.

    A stack gives one value and one error a member.

    >>> import likely as lk
    >>> lk.entropy(lk.Gaussian([0.0], 1.0))
    Estimate(value=1.4189385332046727, error=0.0)
    >>> lk.entropy(lk.Categorical([0.5, 0.25, 0.25]), bits=True).value
    1.5
    """
    rng = generator(rng)
    return _members(lambda p: _entropy(p, n, rng), bits, law)


def kl(p: Any, q: Any, bits: bool = False, n: int = 100_000, rng: Generator | None = None) -> Estimate:
    """KL(p ‖ q) = E_p[log p(x) − log q(x)] ≥ 0 (Herbst 1.6.1); infinite where q rules out what p does not.

    By draws, half of them come from each law, with weights that cannot exceed 2 and terms that are never negative.
    Stacks go member by member; a lone law is compared with each member of a stack.

    >>> import likely as lk
    >>> lk.kl(lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 1.0)).value
    0.5
    >>> lk.kl(lk.Categorical([0.5, 0.5]), lk.Categorical([1.0, 0.0])).value
    inf
    """
    rng = generator(rng)
    return _members(lambda a, b: _kl(a, b, n, rng), bits, p, q)


def cross_entropy(p: Any, q: Any, bits: bool = False, n: int = 100_000, rng: Generator | None = None) -> Estimate:
    """−E_p[log q(x)] = H[p] + KL(p ‖ q): what a message costs that was coded for q.

    >>> import likely as lk
    >>> lk.cross_entropy(lk.Bernoulli(0.5), lk.Bernoulli(0.25), bits=True).value.__round__(6)
    1.207519
    """
    rng = generator(rng)
    return _members(lambda a, b: _cross_entropy(a, b, n, rng), bits, p, q)


def js_divergence(p: Any, q: Any, bits: bool = False, n: int = 100_000, rng: Generator | None = None) -> Estimate:
    """½ KL(p ‖ m) + ½ KL(q ‖ m) with m = ½ (p + q): symmetric, and never above log 2, which is one bit.

    >>> import likely as lk
    >>> lk.js_divergence(lk.Categorical([1.0, 0.0]), lk.Categorical([0.0, 1.0]), bits=True).value
    1.0
    """
    rng = generator(rng)
    return _members(lambda a, b: _js(a, b, n, rng), bits, p, q)


# ------------------------------------------------------------------- member by member


def _members(f: Callable[..., Estimate], bits: bool, *laws: Any) -> Estimate:
    """f of lone laws, or of each member where some are stacks."""
    for law in laws:
        if not (hasattr(law, "log_prob") and hasattr(law, "sample")):
            expected = "a density is needed, with log_prob and sample"
            remedy = "fit one, or pass estimator.model_"
            if isinstance(law, list | tuple | np.ndarray):
                remedy = "lk.Categorical(probabilities) is one"
            raise DomainError(sentence("information", expected, type(law).__name__, remedy))
    sizes = {law.members for law in laws if getattr(law, "members", None) is not None}
    if not sizes:
        return _in_units(f(*laws), bits)
    if len(sizes) > 1:
        raise ShapeError(sentence("information", "stacks must have equally many members", sorted(sizes)))
    found = [f(*(_member(law, k) for law in laws)) for k in range(sizes.pop())]
    return _in_units(Estimate(np.array([e.value for e in found]), np.array([e.error for e in found])), bits)


def _member(law: Any, k: int) -> Any:
    return law if getattr(law, "members", None) is None else law.member(k)


def _in_units(found: Estimate, bits: bool) -> Estimate:
    return Estimate(in_units(found.value, bits), in_units(found.error, bits))


def exactly(value: Any) -> Estimate:
    """A number without an error."""
    return Estimate(float(value), 0.0)


def added(parts: list[Estimate]) -> Estimate:
    """Sums of independent estimates: errors add by squares."""
    return Estimate(float(sum(e.value for e in parts)), math.sqrt(sum(e.error**2 for e in parts)))


def _settled(found: tuple[float, float]) -> Estimate:
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


def _finite(*laws: Any) -> bool:
    """True where each law has finitely many cells, so that what is averaged is bounded."""
    parts = [part for law in laws for part in ([p for _, p in law.parts] if isinstance(law, Product) else [law])]
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


# ---------------------------------------------------------------------------- one law


def _entropy(law: Any, n: int, rng: Generator) -> Estimate:
    if isinstance(law, Product):
        return added([_entropy(part, n, rng) for _, part in law.parts])
    if isinstance(law, BetaNegativeBinomial):
        return exactly(urn_entropy(law))
    own = _own_entropy(law, n, rng)
    if own is not None:
        return own
    seen = look(law)
    if isinstance(seen, Atoms):
        return exactly(-_mean(seen.log_probs, seen.log_probs))
    found = integral(seen, law, lambda x, logs: -logs) if isinstance(seen, Line) else None
    if found is not None:
        return _settled(found)
    return averaged(-scores(law, law.sample(draws(n), rng)), _finite(law))


def _own_entropy(law: Any, n: int, rng: Generator) -> Estimate | None:
    """What the law says itself, with its error where it has one; None where it has no closed form."""
    try:
        if hasattr(law, "_entropy_estimate"):
            return Estimate(*law._entropy_estimate(draws(n), rng))
        value = law.entropy() if hasattr(law, "entropy") else None
    except DomainError:
        return None
    return value if value is None or isinstance(value, Estimate) else exactly(value)


def draws(n: int) -> int:
    """A number of draws that an error bar can be made of."""
    if not n >= 16:
        raise DomainError(sentence("information", "n must be 16 draws or more", n))
    return int(n)


def scores(law: Any, x: Any) -> Array:
    """log p of rows (n,), NaN never."""
    logs = np.asarray(law.log_prob(x), dtype=np.float64)
    if np.isnan(logs).any():
        raise DomainError(sentence(type(law).__name__, "log_prob must be a number for every row", "NaN"))
    return logs


def _mean(log_probs: Array, values: Array) -> float:
    """Σ p v, where what cannot happen does not count."""
    return float(np.exp(log_probs) @ np.where(log_probs > -np.inf, values, 0.0))


# --------------------------------------------------------------------------- two laws


def _kl(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    _same_columns(p, q)
    closed = _closed_kl(p, q, n, rng)
    if closed is not None:
        return closed
    seen, other = look(p), look(q)
    if seen is not None and other is not None and type(seen) is not type(other):
        return exactly(math.inf)  # one of them has no density where the other lives
    if rules_out(q, p, seen):
        return exactly(math.inf)
    if isinstance(seen, Atoms):
        log_q = log_density(q, seen.values)
        return exactly(rel_entr(np.exp(seen.log_probs), np.exp(log_q)).sum() if _plain(log_q) else _far(seen, log_q))
    found = integral(seen, p, lambda x, logs: logs - log_density(q, x[:, None])) if isinstance(seen, Line) else None
    return _not_negative(_settled(found)) if found is not None else _sampled_kl(p, q, n, rng)


def _same_columns(p: Any, q: Any) -> None:
    d, e = getattr(p, "dim", None), getattr(q, "dim", None)
    if isinstance(d, int) and isinstance(e, int) and d != e:
        raise ShapeError(sentence("information", "both laws must have equally many columns", (d, e)))


def _plain(log_q: Array) -> bool:
    """Whether probabilities can be written as numbers."""
    return bool((log_q[np.isfinite(log_q)] > -700).all())


def _far(p: Atoms, log_q: Array) -> float:
    possible = p.log_probs > -np.inf
    if np.isneginf(log_q[possible]).any():
        return math.inf
    return _mean(p.log_probs[possible], p.log_probs[possible] - log_q[possible])


def _not_negative(found: Estimate) -> Estimate:
    """Rounding may not break the divergence inequality."""
    return Estimate(max(found.value, 0.0), found.error)


def _closed_kl(p: Any, q: Any, n: int, rng: Generator) -> Estimate | None:
    if isinstance(p, Product) and isinstance(q, Product) and p.names == q.names:
        return added([_kl(part, q[name], n, rng) for name, part in p.parts])
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
    except DomainError:  # too many cells, say: draws can still tell
        return None
    return exactly(max(value, 0.0) if not math.isnan(value) else math.inf)


def _gaussian_kl(p: Gaussian, q: Gaussian) -> Estimate:
    """Also between singular ones: infinite unless both live on one flat, and there as on any other plane."""
    basis, other = _flat(p), _flat(q)
    if basis.shape[1] == other.shape[1] == p.dim:
        return exactly(p.kl(q))
    if basis.shape[1] != other.shape[1] or not np.isfinite(q.log_prob(_on_flat(p, basis))).all():
        return exactly(math.inf)
    if not basis.shape[1]:
        return exactly(0.0)
    return exactly(p.affine(basis.T).kl(q.affine(basis.T)))


def _flat(law: Gaussian) -> Array:
    """An orthonormal basis (d, r) of the directions in which the law varies."""
    rank = int(np.ravel(law.form.rank)[0])
    values, vectors = np.linalg.eigh(law.covariance_matrix)
    return np.asarray(vectors[:, len(values) - rank :])


def _on_flat(law: Gaussian, basis: Array) -> Array:
    spread = np.sqrt(np.einsum("ir,ij,jr->r", basis, law.covariance_matrix, basis))
    return np.concatenate([law.mean[None], law.mean + (basis * spread).T])


def _sampled_kl(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    """E_m[u log(u/v) − u + v] with m = ½ (p + q), u = p/m, v = q/m: bounded weights, no negative term."""
    return _halves(p, q, n, rng, _kl_terms)


def _kl_terms(log_p: Array, log_q: Array) -> Array:
    u, v = _shares(log_p, log_q)
    gap = np.where(u > 0, log_p - np.where(u > 0, log_q, 0.0), 0.0)
    return np.where(u > 0, u * gap, 0.0) - u + v


def _js_terms(log_p: Array, log_q: Array) -> Array:
    u, v = _shares(log_p, log_q)
    return 0.5 * (rel_entr(u, 1.0) + rel_entr(v, 1.0))


def _shares(log_p: Array, log_q: Array) -> tuple[Array, Array]:
    both = np.logaddexp(log_p, log_q) - LOG_2
    return np.exp(log_p - both), np.exp(log_q - both)


def _halves(p: Any, q: Any, n: int, rng: Generator, terms: Callable[[Array, Array], Array]) -> Estimate:
    """The mean of terms under ½ (p + q), as many draws from each."""
    half = (draws(n) + 1) // 2
    with np.errstate(invalid="ignore"):
        each = [terms(scores(p, x), scores(q, x)) for x in (p.sample(half, rng), q.sample(half, rng))]
    parts = [averaged(one, _finite(p, q)) for one in each]
    return Estimate(0.5 * (parts[0].value + parts[1].value), 0.5 * math.hypot(parts[0].error, parts[1].error))


def _cross_entropy(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    _same_columns(p, q)
    apart, own = look(p), look(q)
    if (apart is not None and own is not None) or _has_closed_form(p, q):
        parts = [_entropy(p, n, rng), _kl(p, q, n, rng)]
        if all(part.error == 0 for part in parts):
            return added(parts)
    return averaged(-scores(q, p.sample(draws(n), rng)), _finite(p, q))


def _has_closed_form(p: Any, q: Any) -> bool:
    return type(p) is type(q) and hasattr(p, "entropy") and (hasattr(p, "kl") or isinstance(p, BetaNegativeBinomial))


def _js(p: Any, q: Any, n: int, rng: Generator) -> Estimate:
    _same_columns(p, q)
    seen, other = look(p), look(q)
    if isinstance(seen, Atoms) and isinstance(other, Atoms):
        return exactly(0.5 * (_to_middle(seen, p, q) + _to_middle(other, q, p)))
    if isinstance(seen, Line) and isinstance(other, Line):
        found = [integral(seen, p, _above_middle(q)), integral(other, q, _above_middle(p))]
        if found[0] is not None and found[1] is not None:
            return _not_negative(_settled((0.5 * (found[0][0] + found[1][0]), 0.5 * (found[0][1] + found[1][1]))))
    elif seen is not None and other is not None:
        return exactly(LOG_2)  # a list and a line have nothing in common
    return _halves(p, q, n, rng, _js_terms)


def _to_middle(seen: Atoms, p: Any, q: Any) -> float:
    middle = np.logaddexp(seen.log_probs, log_density(q, seen.values)) - LOG_2
    return _mean(seen.log_probs, seen.log_probs - np.where(np.isneginf(middle), 0.0, middle))


def _above_middle(q: Any) -> Callable[[Array, Array], Array]:
    return lambda x, logs: logs - np.logaddexp(logs, log_density(q, x[:, None])) + LOG_2


__all__ = ["cross_entropy", "entropy", "js_divergence", "kl"]

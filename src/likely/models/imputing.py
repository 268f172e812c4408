"""What is missing, filled in: by what is expected of it given what was seen, or by a draw from its law."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, rows
from likely.core.columns import Columns
from likely.errors import DomainError, sentence
from likely.families.bernoulli import Bernoulli
from likely.families.categorical import Categorical, is_missing, one_column_of
from likely.families.factor_gaussian import FactorGaussian
from likely.families.gaps import Patterns, observed
from likely.families.gaussian import Gaussian
from likely.families.poisson import Poisson
from likely.families.product import Product
from likely.families.shared import Shared
from likely.models.mixture import Mixture


def impute(model: Any, x: Any, rng: Generator | None = None) -> Any:
    """Rows with gaps filled: E[missing | seen], or with a generator one draw of the missing given the seen.

    A category is filled with its most probable level where nothing is drawn. Rows come back as they came in.

    >>> import likely as lk
    >>> g = lk.Gaussian([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]])
    >>> impute(g, np.array([[2.0, np.nan]]))
    array([[2. , 1.6]])
    """
    return _filled(model, x, None, rng)


@singledispatch
def _filled(law: Any, x: Any, shares: Array | None, rng: Generator | None) -> Any:
    """Rows filled by a law, or by the members of a stack with a share in each row (n, K)."""
    raise DomainError(sentence("impute", "gaps can be filled by Gaussian, categorical, Poisson, Bernoulli "
                               "parts, products and mixtures of them", type(law).__name__))  # fmt: skip


@_filled.register
def _(law: Mixture, x: Any, shares: Array | None, rng: Generator | None) -> Any:
    """Parts of a mixture have their posterior shares of its rows; in a draw, all gaps of a row come from one part."""
    inside = law.log_joint(x).reshape(-1, law.members or 1, law.size)
    with np.errstate(invalid="ignore"):
        inside = np.exp(inside - inside.max(axis=2, keepdims=True))
    inside = np.where(np.isnan(inside), law.weights, inside)  # a row that no part can explain
    inside /= inside.sum(axis=2, keepdims=True)
    each = (inside if shares is None else inside * shares[:, :, None]).reshape(len(inside), -1)
    if rng is not None:
        each = np.eye(each.shape[1])[_drawn(each, rng)]
    return _filled(law.parts, x, each, rng)


def _drawn(shares: Array, rng: Generator) -> Index:
    """A place in each row (n,), drawn by shares (n, K)."""
    heap = np.cumsum(shares, axis=1)
    own = (heap < rng.random((len(shares), 1)) * heap[:, -1:]).sum(axis=1)
    return np.minimum(own, shares.shape[1] - 1)


@_filled.register
def _(law: Gaussian, x: Any, shares: Array | None, rng: Generator | None) -> Array:
    z = np.array(rows(x, law.dim, "impute"))
    mean, covariance = np.atleast_2d(law.mean), law.covariance_matrix.reshape(-1, law.dim, law.dim)
    shares = np.ones((len(z), 1)) if shares is None else shares
    patterns = Patterns.of(observed(z))
    for p, seen in enumerate(patterns.seen):
        at = patterns.order[patterns.starts[p] : patterns.starts[p + 1]]
        if not seen.all():
            z[at] = _of_pattern(z[at], np.asarray(seen, dtype=bool), mean, covariance, shares[at], rng)
    return z.astype(getattr(x, "dtype", np.float64)) if getattr(x, "dtype", None) == np.float32 else z


def _of_pattern(z: Array, seen: Any, mean: Array, covariance: Array, shares: Array, rng: Generator | None) -> Array:
    """Rows with the same gaps, filled member by member."""
    o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
    total = np.zeros((len(z), len(m)))
    for k in range(len(mean)):
        some = np.flatnonzero(shares[:, k] > 0)
        if not len(some):
            continue
        S, away = covariance[k], z[some][:, o] - mean[k, o]
        pull = np.linalg.lstsq(S[np.ix_(o, o)], S[np.ix_(o, m)], rcond=None)[0] if len(o) else np.zeros((0, len(m)))
        expected = mean[k, m] + away @ pull
        if rng is not None:
            left = S[np.ix_(m, m)] - S[np.ix_(m, o)] @ pull
            values, vectors = np.linalg.eigh((left + left.T) / 2)
            noise = rng.standard_normal((len(some), len(m)))
            expected = expected + (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        total[some] += shares[some, k, None] * expected
    out = z.copy()
    out[:, m] = total
    return out


@_filled.register
def _(law: FactorGaussian, x: Any, shares: Array | None, rng: Generator | None) -> Any:
    return _filled(law.gaussian, x, shares, rng)


@_filled.register
def _(law: Shared, x: Any, shares: Array | None, rng: Generator | None) -> Any:
    if law.what != "all" or shares is None:
        return _filled(law.parts, x, shares, rng)
    return _filled(law.parts, x, shares @ np.eye(law.parts.members)[law.index], rng)


@_filled.register
def _(law: Product, x: Any, shares: Array | None, rng: Generator | None) -> Columns:
    cut = law._cut(x)
    return Columns({name: _filled(part, cut[name], shares, rng) for name, part in law.parts})


@_filled.register(Poisson)
@_filled.register(Bernoulli)
def _(law: Any, x: Any, shares: Array | None, rng: Generator | None) -> Array:
    z = np.array(rows(x, law.dim, "impute"))
    shares = np.ones((len(z), 1)) if shares is None else shares
    expected = shares @ np.atleast_2d(law.mean)
    if rng is not None:
        expected = rng.poisson(expected) if isinstance(law, Poisson) else (rng.random(expected.shape) < expected) * 1.0
    return np.where(np.isnan(z), expected, z)


@_filled.register
def _(law: Categorical, x: Any, shares: Array | None, rng: Generator | None) -> Any:
    cells = np.array(one_column_of(x))
    gaps = np.array([i for i, cell in enumerate(cells) if is_missing(cell)], dtype=np.intp)
    if not len(gaps):
        return cells[:, None]
    shares = np.ones((len(cells), 1)) if shares is None else shares
    probs = shares[gaps] @ np.atleast_2d(law.probs)
    level = probs.argmax(axis=1) if rng is None else _drawn(probs, rng)
    cells[gaps] = law.values[level]
    return cells[:, None]

"""Unconstrained parameterization: logarithms, log-odds, softmax and log-Cholesky factors of constrained parameters.

An optimizer can then take any step without leaving the parameter domain of the distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.numerics import spd

ME = "free parameters"
LEAST = 1e-12  # a value on the boundary (a probability of 0) is moved inside by this
FURTHEST = 300.0  # a logarithm beyond which numbers overflow
FLATTEST = 250.0  # log-odds beyond which the likelihood no longer depends on the probability


class ParameterTransform(NamedTuple):
    """Transform of one parameter to an unconstrained vector, and its inverse from (..., P) to (..., *shape)."""

    free: Callable[[Array], Array]
    back: Callable[[Array, tuple[int, ...]], Array]
    bound: float = np.inf  # absolute value of a coordinate beyond which the distribution no longer changes


def _shaped(v: Array, shape: tuple[int, ...]) -> Array:
    return v.reshape((*v.shape[:-1], *shape))


def _exp(v: Array) -> Array:
    return np.exp(np.clip(v, -FURTHEST, FURTHEST))


def _logistic(v: Array) -> Array:
    return np.clip(1 / (1 + _exp(-v)), LEAST, 1 - LEAST)


def _logs(a: Array) -> Array:
    """Logarithms, flattened; 0 is replaced by LEAST, positive values may be arbitrarily small."""
    return np.asarray(np.log(np.where(a > 0, a, LEAST)).ravel())


def _log_odds(p: Array) -> Array:
    p = np.clip(p.ravel(), LEAST, 1 - LEAST)
    return np.log(p) - np.log1p(-p)


def _centered_logs(p: Array) -> Array:
    logs = np.log(np.maximum(p, LEAST))
    return np.asarray((logs - logs.mean(axis=-1, keepdims=True)).ravel())


def _softmax(v: Array, shape: tuple[int, ...]) -> Array:
    a = _shaped(v, shape)
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def _factor(c: Array) -> Array:
    """Log-Cholesky parameters of a covariance: log diagonal, then strictly lower triangle; logs of variances."""
    if c.ndim < 2:
        return _logs(c)
    root = spd.cholesky(c)
    if root is None:
        remedy = "start from one that is positive definite"
        raise DomainError(sentence("RobbinsMonro", "a covariance must be positive definite", "a singular one", remedy))
    return np.concatenate([np.log(np.diagonal(root)), root[np.tril_indices(len(c), -1)]])


def _from_factor(v: Array, shape: tuple[int, ...]) -> Array:
    if len(shape) < 2:
        return _shaped(_exp(v), shape)
    d = shape[-1]
    root = np.zeros((*v.shape[:-1], d, d))
    root[..., np.arange(d), np.arange(d)] = _exp(v[..., :d])
    i, j = np.tril_indices(d, -1)
    root[..., i, j] = v[..., d:]
    return np.asarray(root @ np.swapaxes(root, -1, -2))


CONSTRAINTS: dict[str, ParameterTransform] = {
    "real": ParameterTransform(np.ravel, _shaped),
    "positive": ParameterTransform(_logs, lambda v, shape: _shaped(_exp(v), shape), FURTHEST),
    "probability": ParameterTransform(_log_odds, lambda v, shape: _shaped(_logistic(v), shape), FLATTEST),
    "simplex": ParameterTransform(_centered_logs, _softmax, FLATTEST),
    "covariance": ParameterTransform(_factor, _from_factor, FURTHEST),
}
# parameters of each distribution with their transforms; distributions of independent columns declare their own
TABLE: dict[str, dict[str, str]] = {
    "Gaussian": {"mean": "real", "covariance": "covariance"},
    "StudentT": {"center": "real", "scale": "covariance", "dof": "positive"},
    "Poisson": {"rate": "positive"},
    "Bernoulli": {"probs": "probability"},
    "Categorical": {"probs": "simplex"},
    "Multinomial": {"probs": "simplex"},
    "NegativeBinomial": {"size": "positive", "prob": "probability"},
    "Gamma": {"shape": "positive", "rate": "positive"},
    "Beta": {"a": "positive", "b": "positive"},
    "Dirichlet": {"alpha": "positive"},
}
BUILT_IN = dict(TABLE)
_DOMAINS = {"real": "real", "positive": "positive", "unsigned": "positive", "probability": "probability"}


def declare_constraints(distribution: type | str, **constraints: str) -> None:
    """Declare the domains of a class's parameters, for inference in unconstrained coordinates.

    Parameters
    ----------
    distribution : type or str
        The class, or its name.
    **constraints : {"real", "positive", "probability", "simplex", "covariance"}
        Domain per parameter.

    See Also
    --------
    RobbinsMonro : Estimation in unconstrained coordinates.

    Examples
    --------
    >>> declare_constraints("Rayleigh", scale="positive")
    """
    if not constraints or not set(constraints.values()) <= set(CONSTRAINTS):
        raise DomainError(sentence(ME, f"a domain must be one of {', '.join(CONSTRAINTS)}", constraints))
    TABLE[distribution if isinstance(distribution, str) else distribution.__name__] = constraints


def constraints_of(distribution: Any) -> dict[str, str]:
    """The parameters of a distribution and the domain of each."""
    for cls in type(distribution).__mro__:
        if cls.__name__ in TABLE:
            return TABLE[cls.__name__]
    domains = getattr(distribution, "_domains", None)
    if domains and any(word in _DOMAINS for word in domains.values()):  # a number of trials is fixed, not estimated
        return {name: _DOMAINS[word] for name, word in domains.items() if word in _DOMAINS}
    expected, remedy = "the domains of the distribution's parameters must be declared", "use declare_constraints"
    raise DomainError(sentence(ME, expected, type(distribution).__name__, remedy))


def _bounds_of(constraint: ParameterTransform, shape: tuple[int, ...], freed: Array) -> Array:
    """Bound of each coordinate beyond which it has no effect; inf for the lower triangle of a Cholesky factor."""
    bounds = np.full(len(freed), constraint.bound)
    if constraint.back is _from_factor and len(shape) == 2:
        bounds[shape[0] :] = np.inf
    return bounds


class FreeParameters:
    """Unconstrained vector θ (P,) of a distribution's parameters, and back: a distribution, or a stack for (M, P).

    >>> import likely as lk
    >>> free = FreeParameters(lk.Gaussian([2.0], [[4.0]]))
    >>> free.start.round(4), free.distribution(np.array([0.0, 0.0])).covariance.tolist()
    (array([2.    , 0.6931]), [[1.0]])
    """

    def __init__(self, distribution: Any, learn: tuple[str, ...] = ()) -> None:
        constraints = constraints_of(distribution)
        if getattr(distribution, "members", None) is not None:
            raise DomainError(
                sentence(ME, "a single distribution is needed", f"a stack of {distribution.members}", "take member(k)")
            )
        if unknown := [name for name in learn if name not in constraints]:
            raise DomainError(sentence(ME, f"learned parameters must be among {', '.join(constraints)}", unknown[0]))
        self.like = distribution
        self.names = [name for name in constraints if not learn or name in learn]
        self.fixed = [name for name in constraints if name not in self.names]
        self.constraints = [CONSTRAINTS[constraints[name]] for name in self.names]
        self.shapes = [np.shape(getattr(distribution, name)) for name in self.names]
        freed = [
            constraint.free(np.asarray(getattr(distribution, name)))
            for constraint, name in zip(self.constraints, self.names, strict=True)
        ]
        self.start = np.concatenate(freed).astype(np.float64)
        self.ends = np.cumsum([len(v) for v in freed])[:-1]
        self.bounds = np.concatenate(
            [_bounds_of(*part) for part in zip(self.constraints, self.shapes, freed, strict=True)]
        )
        excluded = {*constraints, "rest"}  # "rest" is computed by the constructor
        self.extras = {f.name: getattr(distribution, f.name) for f in fields(distribution) if f.name not in excluded}

    def distribution(self, theta: Array) -> Any:
        """The distribution at θ (P,), or a stack of distributions at (M, P)."""
        parts = np.split(theta, self.ends, axis=-1)
        learned = zip(self.names, self.constraints, parts, self.shapes, strict=True)
        found = {name: constraint.back(v, shape) for name, constraint, v, shape in learned}
        lead = theta.shape[:-1]
        kept = {name: self._repeated(getattr(self.like, name), lead) for name in self.fixed}
        return type(self.like)(**found, **kept, **self.extras)

    @staticmethod
    def _repeated(part: Array, lead: tuple[int, ...]) -> Array:
        return np.broadcast_to(part, (*lead, *np.shape(part)))

    def scores(self, theta: Array, x: Any) -> Array:
        """Scores ∂ log p(x_i | θ) / ∂θ (n, P) by central differences, evaluated as one stack."""
        return self.scores_and_logs(theta, x, theta)[0]

    def scores_and_logs(self, theta: Array, x: Any, point: Array, h: float = 1e-5) -> tuple[Array, Array]:
        """Scores at θ, and log p(x_i | point) (n,), evaluated as one stack."""
        P = len(theta)
        near = np.concatenate([theta + h * np.eye(P), theta - h * np.eye(P), point[None]])
        logs = np.asarray(self.distribution(near).log_prob(x), dtype=np.float64)
        with np.errstate(invalid="ignore"):
            slopes = (logs[:, :P] - logs[:, P:-1]) / (2 * h)
        return np.where(np.isfinite(slopes), slopes, 0.0), logs[:, -1]


__all__ = ["FreeParameters", "declare_constraints", "constraints_of"]

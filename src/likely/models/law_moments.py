"""The first two moments of a stack of laws: all that a Gaussian belief can remember of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.errors import DomainError, LikelyError, ShapeError, sentence
from likely.families.gaussian import Gaussian
from likely.models.mixture import Mixture


class LawMoments(NamedTuple):
    """Means and covariances of N laws, and the stack itself."""

    mean: Array  # (N, p)
    covariance: Array  # (N, p, p), or (p, p) where all have one
    law: Any


def law_moments(law: Any, members: int, whose: str) -> LawMoments:
    """Mean and covariance of each of N laws, whatever they are: Gaussian, StudentT, Poisson, Mixture …

    >>> import likely as lk
    >>> law_moments(lk.Poisson([[2.0, 3.0]]), 1, "test").covariance.tolist()
    [[[2.0, 0.0], [0.0, 3.0]]]
    """
    try:
        mean, covariance = (law.mean, law.covariance) if isinstance(law, Mixture) else _found(law)
    except LikelyError as error:
        raise DomainError(sentence(whose, "its laws must have a mean and a covariance", f'"{error}"')) from error
    mean = mean[None] if members == 1 and mean.ndim == 1 else mean
    if mean.ndim != 2 or len(mean) != members:
        expected = f"the law of {members} states must be a stack of {members} members, means ({members}, columns)"
        remedy = "write the function for a stack of states (N, d), not for one state"
        raise ShapeError(sentence(whose, expected, f"means {mean.shape}", remedy))
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        expected = "means and covariances must be finite"
        raise DomainError(sentence(whose, expected, "NaN or infinity", "see what the function does with its states"))
    return LawMoments(mean, covariance, law)


def _found(law: Any) -> tuple[Array, Array]:
    mean = getattr(law, "mean", None)
    if mean is None or isinstance(mean, dict | list) or callable(mean):
        raise DomainError(sentence(type(law).__name__, "it has no mean in numbers", remedy="return a law that has one"))
    return np.asarray(mean, dtype=np.float64), _covariance(law)


def _covariance(law: Any) -> Array:
    if isinstance(law, Gaussian):
        return _matrix(law.covariance, law.kind, law.dim)
    written_out = getattr(law, "covariance_matrix", None)
    if written_out is None and getattr(law, "kind", "full") == "full":
        written_out = getattr(law, "covariance", None)
    if written_out is not None:
        return np.asarray(written_out, dtype=np.float64)
    variance = getattr(law, "variance", None)
    if variance is None or isinstance(variance, dict | list) or callable(variance):
        expected = "it has neither covariance nor variance"
        raise DomainError(sentence(type(law).__name__, expected, remedy="return a law that has one"))
    v = np.asarray(variance, dtype=np.float64)
    return v[..., None] * np.eye(v.shape[-1])


def _matrix(covariance: Array, kind: str, d: int) -> Array:
    """A Gaussian's covariance written out, shared ones once."""
    if kind == "full":
        return covariance
    return (covariance if kind == "diagonal" else covariance[..., None])[..., None] * np.eye(d)

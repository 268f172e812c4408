"""Posteriors under another class prior, and combination of independent measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.decision.posteriors import ClassPrior, class_shares
from likely.decision.posteriors import posteriors as checked


def change_prior(posterior: ArrayLike, trained: Any, new: Any) -> Array:
    """Posteriors under other class priors: p'(c | x) ∝ p(c | x) p'(c) / p(c).

    Parameters
    ----------
    posterior : array-like (n, C)
        Posterior probabilities; each row sums to 1.
    trained : array-like (C,)
        Class prior that the posteriors contain, as a rule the frequencies in the training data.
    new : array-like (C,)
        Class prior to put in its place.

    Returns
    -------
    ndarray (n, C)
        Posteriors under the new prior.

    See Also
    --------
    combine_posteriors : One posterior from several measurements.

    References
    ----------
    Bishop (2006), chapter 1; Herbst and du Preez, lecture notes, 1.5.4.

    Examples
    --------
    >>> change_prior([[0.96, 0.04]], [0.5, 0.5], [0.0004, 0.9996]).round(4)
    array([[0.0095, 0.9905]])
    """
    P = checked(posterior, "change_prior")
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(change_log_prior(np.log(P), trained, new)))


def change_log_prior(log_posterior: Array, trained: Any, new: Any) -> Array:
    """The same for log-posteriors (n, C), without underflow."""
    C = log_posterior.shape[1]
    old, wished = (class_shares(p, C, "change_prior", name) for p, name in ((trained, "trained"), (new, "new")))
    if ((old == 0) & (wished > 0)).any():
        c = int(np.flatnonzero((old == 0) & (wished > 0))[0])
        raise DomainError(
            sentence("change_prior", f"class {c} must have a positive probability in training", "probability 0")
        )
    with np.errstate(divide="ignore"):
        shift = np.where(wished > 0, np.log(wished) - np.log(np.where(old > 0, old, 1.0)), -np.inf)
    return _normalized(log_posterior + shift, "change_prior")


def combine_posteriors(posteriors: Sequence[Any], class_prior: ClassPrior) -> Array:
    """One posterior from several measurements that are independent given the class.

    p(c | x₁ … x_M) ∝ p(c)^(1 − M) Π p(c | x_m): each posterior contains the prior once, and so must the result.

    Parameters
    ----------
    posteriors : sequence of array-like (n, C)
        Posteriors of the same n cases, one array per measurement.
    class_prior : array-like (C,)
        Class prior that each of them contains.

    Returns
    -------
    ndarray (n, C)
        The combined posteriors.

    See Also
    --------
    change_prior : Posteriors under other class priors.

    References
    ----------
    Bishop (2006), chapter 1; Herbst and du Preez, lecture notes, 1.5.4.

    Examples
    --------
    >>> p = [[0.00951249, 0.99048751]]
    >>> combine_posteriors([p, p], [0.0004, 0.9996]).round(4)
    array([[0.1873, 0.8127]])
    """
    parts = [checked(p, "combine_posteriors") for p in posteriors]
    if not parts or len({p.shape for p in parts}) > 1:
        raise ShapeError(sentence("combine_posteriors", "posteriors of one shape are needed", [p.shape for p in parts]))
    prior = class_shares(class_prior, parts[0].shape[1], "combine_posteriors")
    with np.errstate(divide="ignore"):
        logs = sum(np.log(p) for p in parts)
        shift = np.where(prior > 0, (1 - len(parts)) * np.log(np.where(prior > 0, prior, 1.0)), -np.inf)
    return np.asarray(np.exp(_normalized(logs + shift, "combine_posteriors")))


def _normalized(logs: Array, whose: str) -> Array:
    total = logsumexp(logs, axis=1, keepdims=True)
    if not np.isfinite(total).all():
        i = int(np.flatnonzero(~np.isfinite(total[:, 0]))[0])
        raise DataError(
            sentence(
                whose,
                "some class must have a positive posterior",
                f"none at row {i}: the posteriors contradict each other",
            )
        )
    return np.asarray(logs - total)

"""Sums of state-space models: block-diagonal states, one observation that is the sum of their signals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.ragged import Ragged


class Signal(NamedTuple):
    """Signal of one component of a sum of models: mean and covariance; Ragged for many sequences."""

    mean: Any  # (T, p)
    covariance: Any  # (T, p, p)


def structural_components(result: Any, *parts: Any) -> list[Signal]:
    """Signals C_i x_i of the components of a sum of models, from its filtered or smoothed states, in their order.

    Parameters
    ----------
    result : States
        Filtered or smoothed states of the sum.
    *parts : LinearGaussian
        The models that were added.

    Returns
    -------
    list of Signal
        Mean and covariance of the signal of each component.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> trend, season = lk.LinearGaussian.local_trend(0.1, 0.0, 1.0), lk.LinearGaussian.seasonal(4, 0.1)
    >>> y = np.arange(20) + np.tile([1.0, 0.0, -1.0, 0.0], 5)
    >>> up, wave = structural_components((trend + season).smooth(y), trend, season)
    >>> wave.mean[:5, 0].round(2) + 0.0
    array([ 1.,  0., -1.,  0.,  1.])
    """
    sizes = [part.observation.shape[-1] for part in parts]
    mean, covariance = result.mean, result.covariance
    d = (mean.values if isinstance(mean, Ragged) else mean).shape[-1]
    if sum(sizes) != d:
        expected = f"the components of a sum of {d} states are needed, in its order"
        raise ShapeError(sentence("structural_components", expected, f"components of {sizes} states"))
    ends = np.cumsum(sizes)
    return [_signal(part, mean, covariance, slice(e - n, e)) for part, n, e in zip(parts, sizes, ends, strict=True)]


def _signal(part: Any, mean: Any, covariance: Any, at: slice) -> Signal:
    if not isinstance(mean, Ragged):
        return Signal(*_observed_moments(part.observation, mean[:, at], covariance[:, at, at]))
    each = [_observed_moments(part.observation, m[:, at], P[:, at, at]) for m, P in zip(mean, covariance, strict=True)]
    return Signal(Ragged.from_list([m for m, _ in each]), Ragged.from_list([P for _, P in each]))


def _observed_moments(C: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    C = C[: len(mean)] if C.ndim == 3 else C
    return (C @ mean[:, :, None])[:, :, 0], observed_covariance(C, covariance)


def observed_covariance(C: Array, P: Array) -> Array:
    """C P Cᵀ for covariances (T, d, d); infinite variances, as in the diffuse phase, stay infinite.

    >>> observed_covariance(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[[np.inf, 0.0], [0.0, 3.0]]])).tolist()
    [[[inf, 0.0], [0.0, 12.0]]]
    """
    diffuse = np.isinf(np.diagonal(P, axis1=-2, axis2=-1))
    if not diffuse.any():
        return C @ P @ np.swapaxes(C, -1, -2)
    loads_diffuse = ((C != 0) @ diffuse[:, :, None])[:, :, 0]
    out = C @ np.where(np.isfinite(P), P, 0.0) @ np.swapaxes(C, -1, -2)
    out[loads_diffuse[:, :, None] | loads_diffuse[:, None, :]] = 0.0
    at, which = np.nonzero(loads_diffuse)
    out[at, which, which] = np.inf
    return out


# --------------------------------------------------------------------- sums


def joined_initial(a: Any, b: Any) -> dict[str, Array]:
    """Initial distribution of a sum: block-diagonal; diffuse directions of a part stay diffuse."""
    (m, P, D), (n, R, E) = initial_of(a), initial_of(b)
    diffuse = blocks(D, E)
    return {
        "initial_mean": np.concatenate([m, n]),
        "initial_covariance": blocks(P, R),
        **({"diffuse": diffuse} if diffuse.size else {}),
    }


def initial_of(model: Any) -> tuple[Array, Array, Array]:
    """Mean (d,), covariance (d, d) and diffuse directions (d, q) of the initial state; all diffuse if not given."""
    d = model.observation.shape[-1]
    mean = np.zeros(d) if model.initial_mean is None else model.initial_mean
    nothing = model.initial_covariance is None and model.diffuse is None
    P = np.zeros((d, d)) if model.initial_covariance is None else model.initial_covariance
    D = np.eye(d) if nothing else np.zeros((d, 0)) if model.diffuse is None else model.diffuse
    return mean, P, D


def joined_inputs(a: Any, b: Any) -> dict[str, Array]:
    """Control and feedthrough of a sum: both parts get the same inputs; a part without inputs ignores them."""
    control = _pair(a.control, b.control, a.observation.shape[-1], b.observation.shape[-1])
    feed = _pair(a.feedthrough, b.feedthrough, a.observation.shape[-2], b.observation.shape[-2])
    widths = {x.shape[-1] for x in (*control, *feed)}
    if len(widths) > 1:
        expected = "parts of a sum get the same inputs, so they must have the same number of them"
        raise ShapeError(sentence("sum", expected, sorted(widths)))
    found = {"control": np.concatenate(broadcast_in_time(*control), axis=-2)} if control else {}
    return found | ({"feedthrough": np.add(*broadcast_in_time(*feed))} if feed else {})


def _pair(x: Array | None, y: Array | None, rows: int, others: int) -> tuple[Array, ...]:
    """Both matrices, zeros for a missing one; () if both are missing."""
    if x is None and y is None:
        return ()
    if x is None or y is None:
        k = (y if x is None else x).shape[-1]  # type: ignore[union-attr]
        return (np.zeros((rows, k)) if x is None else x), (np.zeros((others, k)) if y is None else y)
    return x, y


def broadcast_in_time(x: Array, y: Array) -> tuple[Array, Array]:
    """Two matrices broadcast to a common time axis, if one varies with time."""
    if x.ndim == y.ndim == 3 and len(x) != len(y):
        expected = "time-varying parts of a sum must have the same number of frames"
        raise ShapeError(sentence("sum", expected, f"{len(x)} and {len(y)}"))
    T = [len(z) for z in (x, y) if z.ndim == 3]
    return (np.broadcast_to(x, (*T[:1], *x.shape[-2:])), np.broadcast_to(y, (*T[:1], *y.shape[-2:])))


def blocks(x: Array, y: Array) -> Array:
    """Block-diagonal matrix [[x, 0], [0, y]], per frame if one varies with time.

    >>> blocks(np.ones((1, 1)), np.full((1, 2), 3.0)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 3.0, 3.0]]
    """
    x, y = broadcast_in_time(x, y)
    (r, c), (s, e) = x.shape[-2:], y.shape[-2:]
    out = np.zeros((*x.shape[:-2], r + s, c + e))
    out[..., :r, :c], out[..., r:, c:] = x, y
    return out


def kron(x: Any, y: Any) -> Array:
    """Kronecker product x ⊗ y."""
    return np.asarray(np.kron(x, y), dtype=np.float64)


def concatenated(x: Array, y: Array) -> Array:
    """[x, y], per frame if one varies with time."""
    return np.concatenate(broadcast_in_time(x, y), axis=-1)


def check_addable(a: Any, b: Any) -> None:
    """Refuse a sum of models of different types or numbers of observed columns."""
    name = type(a).__name__
    if type(b) is not type(a):
        raise DomainError(sentence("sum", f"{name} adds to another {name}", type(b).__name__))
    p, q = a.observation.shape[-2], b.observation.shape[-2]
    if p != q:
        expected = "parts of a sum must observe the same number of columns"
        raise ShapeError(sentence("sum", expected, f"{p} and {q}", "give both an observation matrix of the same rows"))


def added(a: Any, b: Any) -> Any:
    """Linear-Gaussian model of the sum y = y_a + y_b, states of a first."""
    check_addable(a, b)
    return type(a)(
        transition=blocks(a.transition, b.transition),
        process_covariance=blocks(a.process_covariance, b.process_covariance),
        observation=concatenated(a.observation, b.observation),
        observation_covariance=np.add(*broadcast_in_time(a.observation_covariance, b.observation_covariance)),
        **joined_initial(a, b),
        **joined_inputs(a, b),
    )

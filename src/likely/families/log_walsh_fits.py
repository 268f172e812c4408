"""A log-linear law of few binary columns is learnt and normalised exactly, over all cells.

Up to `EXACT` columns all 2ᵈ cells are summed by the fast Walsh–Hadamard transform, and maximum likelihood is a convex
problem solved by Newton's method: the Hessian's entry for sets S and T is E[φ_S φ_T] − E[φ_S] E[φ_T], and φ_S φ_T is
φ of the symmetric difference, so one transform gives all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from likely.core.arrays import Array
from likely.core.notes import tell
from likely.families.sign_sums import places
from likely.maths.hadamard import cells_of, expectations

EXACT = 20  # columns up to which all cells are summed
NEWTON = 1500  # sets up to which Newton's equations are solved
STEPS, SMALL = 200, 1e-14  # Newton steps, and the size of a gradient that is rounding
NOTHING = 1e-25  # twice the gain a row that a Newton step promises: beyond it the sums over cells are rounding
SEEN = 1e-11  # a gain a row that the value can show
FLAT = 1e-10  # information in a direction: where less is left, weights can run on without end
FAR = 40.0  # a weight beyond it says that some set never varies


# ------------------------------------------------------------------- all the cells


def all_log_cells(weights: Array, d: int, order: int) -> Array:
    """Σ_S b_S φ_S(x) in every cell (2ᵈ,)."""
    full = np.zeros(1 << d)
    full[places(d, order)] = weights
    return cells_of(full)


def exact_log_z(weights: Array, d: int, order: int) -> float:
    """log Σₓ exp Σ_{S ≠ ∅} b_S φ_S(x)."""
    return float(logsumexp(all_log_cells(np.concatenate([[0.0], weights[1:]]), d, order)))


def most_likely(mean: Array, start: Array, d: int, order: int) -> Array:
    """The weights (M,), the first −log Z, whose expectations are `mean` (M,): maximum likelihood.

    `start` is tried against independent columns; a step that would not gain is halved.
    """
    if len(mean) > NEWTON:
        return _by_gradients(mean, start, d, order)
    b = _better_start(mean, start, d, order)
    value, q = _state(b, mean, d, order)
    for _ in range(STEPS):
        gradient = mean - q[places(d, order)]
        gradient[0] = 0.0
        step = _newton_step(gradient, q, d, order)
        if np.abs(gradient).max() <= SMALL or gradient @ step <= NOTHING or np.abs(b).max() > FAR:
            break
        better = _halved(b, step, float(gradient @ step), value, mean, d, order)
        if better is None:
            break
        b, value, q = better
    flat = bool(np.linalg.eigvalsh(_information(q, d, order))[0] < FLAT)
    return _closed(b, mean, q, d, order, flat)


def _closed(b: Array, mean: Array, q: Array, d: int, order: int, flat: bool = False) -> Array:
    """Weights with −log Z in front; a warning where there is no maximum."""
    off = _off(mean, q, places(d, order))
    if flat or off > 1e-8 or np.abs(b[1:]).max(initial=0.0) > FAR:
        text = "LogWalsh: some products of columns never vary, so weights grow without end: give a prior"
        tell(f"{text} (expectations are {off:.1e} off where it stopped)", stacklevel=4)
    b = b.copy()
    b[0] = -exact_log_z(b, d, order)
    return b


def _better_start(mean: Array, start: Array, d: int, order: int) -> Array:
    alone = np.zeros_like(mean)
    alone[1 : d + 1] = np.arctanh(np.clip(mean[1 : d + 1], -1 + 1e-12, 1 - 1e-12))
    start = np.concatenate([[0.0], start[1:]])
    return max((alone, start), key=lambda b: float(b @ mean) - exact_log_z(b, d, order))


def _state(b: Array, mean: Array, d: int, order: int) -> tuple[float, Array]:
    """Mean log-likelihood a row, and the expectations of all 2ᵈ products."""
    logs = all_log_cells(b, d, order)
    total = float(logsumexp(logs))
    return float(b @ mean) - total, expectations(np.exp(logs - total))


def _information(q: Array, d: int, order: int) -> Array:
    """Covariances of all products of signs but the empty one (M − 1, M − 1)."""
    at = places(d, order)[1:]
    return np.asarray(q[at[:, None] ^ at] - q[at][:, None] * q[at])


def _newton_step(gradient: Array, q: Array, d: int, order: int) -> Array:
    H = _information(q, d, order)
    ridge = 1e-13 * max(float(np.trace(H)) / len(H), 1e-300)
    H[np.diag_indices(len(H))] += ridge
    step = np.zeros_like(gradient)
    try:
        step[1:] = np.linalg.solve(H, gradient[1:])
    except np.linalg.LinAlgError:
        step[1:] = gradient[1:]
    return step if gradient @ step > 0 else gradient


def _halved(b: Array, step: Array, gain: float, value: float, mean: Array, d: int, order: int) -> Any:
    """The first of step, step/2, … that gains; None where rounding is all there is.

    Where the promised gain is too small to be seen in the value, a whole step counts if the gradient shrinks.
    """
    if gain < SEEN:
        found, q = _state(b + step, mean, d, order)
        at = places(d, order)
        before = _state(b, mean, d, order)[1]
        return (b + step, found, q) if _off(mean, q, at) < 0.5 * _off(mean, before, at) else None
    top = float(np.abs(step).max())
    t = min(1.0, 4.0 / top) if top > 0 else 1.0  # far from the summit a Newton step knows nothing
    for _ in range(40):
        new = b + t * step
        found, q = _state(new, mean, d, order)
        if found > value:
            return new, found, q
        t *= 0.5
    return None


def _off(mean: Array, q: Array, at: Any) -> float:
    return float(np.abs(mean - q[at]).max())


def _by_gradients(mean: Array, start: Array, d: int, order: int) -> Array:
    """The same for very many sets, by a quasi-Newton method that needs no matrix."""
    from scipy.optimize import minimize

    def loss(b: Array) -> tuple[float, Array]:
        value, q = _state(np.concatenate([[0.0], b]), mean, d, order)
        return -value, (q[places(d, order)] - mean)[1:]

    first = _better_start(mean, start, d, order)
    found = minimize(
        loss, first[1:], jac=True, method="L-BFGS-B", bounds=[(-FAR, FAR)] * (len(mean) - 1),
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    b = np.concatenate([[0.0], found.x])
    return _closed(b, mean, _state(b, mean, d, order)[1], d, order)


def independent(mean: Array, d: int) -> Array:
    """Weights (1 + d,) of columns that do not know each other: b = atanh E[z], log Z = Σ log 2 cosh b."""
    b = np.arctanh(np.clip(mean[1 : d + 1], -1 + 1e-15, 1 - 1e-15))
    return np.concatenate([[-float(np.logaddexp(b, -b).sum())], b])

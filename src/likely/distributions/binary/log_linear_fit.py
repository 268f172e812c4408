"""Exact maximum likelihood and normalization of log-linear models of few binary columns.

All 2ᵈ cells are summed by the fast Walsh–Hadamard transform, and maximum likelihood is a convex
problem solved by Newton's method: the Hessian's entry for sets S and T is E[φ_S φ_T] − E[φ_S] E[φ_T], and φ_S φ_T is
φ of the symmetric difference, so one transform gives all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.warnings import warn
from likely.distributions.binary.sign_products import pair_matrix, places, split_sizes
from likely.numerics.walsh_hadamard import all_cells, cells_of, expectations

NEWTON = 1500  # sets up to which Newton's equations are solved
STEPS, SMALL = 200, 1e-14  # Newton steps, and the size of a gradient that is rounding
NOTHING = 1e-25  # Newton decrement per row below which the sums over cells are rounding
SEEN = 1e-11  # the smallest gain per row that the objective resolves
FLAT = 1e-10  # eigenvalue of the information below which weights are unbounded
HALVED = 8  # columns from which cells of pairwise models are computed by halves
EDGE = 14.0  # initial field of a constant column
FAR = 40.0  # a weight beyond it shows that some product is constant


# ------------------------------------------------------------------- all the cells


def all_log_cells(weights: Array, d: int, order: int) -> Array:
    """Σ_S b_S φ_S(x) in every cell (2ᵈ,)."""
    if order <= 2 and d >= HALVED:
        return _cells_of_pairs(weights, d, order)
    full = np.zeros(1 << d)
    full[places(d, order)] = weights
    return cells_of(full)


def _cells_of_pairs(weights: Array, d: int, order: int) -> Array:
    """The same for pairwise models: one matrix product of two halves of the columns, a fifth of a transform's time.

    b + f(u) + g(v) + uᵀ J v for signs u of the first half and v of the second.
    """
    b, single, *pairs = split_sizes(weights, d, order)
    J, half = pair_matrix(pairs[0], d) if pairs else np.zeros((d, d)), d // 2
    u, v = 2.0 * all_cells(half) - 1.0, 2.0 * all_cells(d - half) - 1.0
    f = b + u @ single[:half] + np.einsum("ni,ni->n", u @ J[:half, :half], u)
    g = v @ single[half:] + np.einsum("ni,ni->n", v @ J[half:, half:], v)
    left = np.column_stack([u @ J[:half, half:], f, np.ones(len(f))])
    right = np.column_stack([v, np.ones(len(g)), g])
    return np.asarray(left @ right.T).ravel()


def exact_log_z(weights: Array, d: int, order: int) -> float:
    """log Σₓ exp Σ_{S ≠ ∅} b_S φ_S(x)."""
    return _exponentials(all_log_cells(np.concatenate([[0.0], weights[1:]]), d, order))[1]


def _exponentials(logs: Array) -> tuple[Array, float]:
    """exp(logs − maximum), in place, and the log-sum-exp."""
    top = float(logs.max())
    logs -= top
    np.exp(logs, out=logs)
    return logs, top + float(np.log(logs.sum()))


def most_likely(mean: Array, start: Array, d: int, order: int) -> Array:
    """The weights (M,), the first −log Z, whose expectations are `mean` (M,): maximum likelihood.

    `start`, a distribution, is compared with independent columns; a step without gain is halved.
    """
    if len(mean) > NEWTON:
        return _by_gradients(mean, start, d, order)
    b = _better_start(mean, start, d)
    value, q = _state(b, mean, d, order)
    for _ in range(STEPS):
        gradient = mean - q[places(d, order)]
        gradient[0] = 0.0
        step = _newton_step(gradient, q, d, order)
        if np.abs(gradient).max() <= SMALL or gradient @ step <= NOTHING or np.abs(b).max() > FAR:
            break
        better = _line_search(b, step, float(gradient @ step), value, q, mean, d, order)
        if better is None:
            break
        b, value, q = better
    singular = bool(np.linalg.eigvalsh(_information(q, d, order))[0] < FLAT)
    return _finished(b, mean, value, q, d, order, singular)


def _finished(b: Array, mean: Array, value: float, q: Array, d: int, order: int, singular: bool = False) -> Array:
    """Weights with −log Z first; a warning where the likelihood has no maximum."""
    off = _max_error(mean, q, places(d, order))
    if singular or off > 1e-8 or np.abs(b[1:]).max(initial=0.0) > FAR:
        text = "LogLinear: some products of columns are constant, so weights are unbounded: give a prior"
        warn(f"{text} (expectations are off by {off:.1e} at the last step)")
    return _with_constant(b, mean, value)


def _with_constant(b: Array, mean: Array, value: float) -> Array:
    """−log Z first: mean log-likelihood per row minus Σ b E[φ]."""
    return np.concatenate([[value - float(b[1:] @ mean[1:])], b[1:]])


def _better_start(mean: Array, start: Array, d: int) -> Array:
    """The start, or independent columns, whichever has the higher likelihood; both with −log Z."""
    independent_b = np.zeros_like(mean)
    independent_b[: d + 1] = independent(mean, d)
    independent_b[1 : d + 1] = np.clip(independent_b[1 : d + 1], -EDGE, EDGE)
    better = max((independent_b, start), key=lambda b: float(b[0] + b[1:] @ mean[1:]))
    return np.concatenate([[0.0], better[1:]])


def _state(b: Array, mean: Array, d: int, order: int) -> tuple[float, Array]:
    """Mean log-likelihood per row, and the expectations of all 2ᵈ products."""
    cells, total = _exponentials(all_log_cells(b, d, order))
    q = expectations(cells)
    q /= q[0]
    return float(b @ mean) - total, q


def _information(q: Array, d: int, order: int) -> Array:
    """Fisher information: covariances of all products of spins but the empty one (M − 1, M − 1)."""
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


def _line_search(b: Array, step: Array, gain: float, value: float, q: Array, mean: Array, d: int, order: int) -> Any:
    """Backtracking line search: the first of step, step/2, … with a gain; None at rounding level.

    Where the predicted gain is below the resolution of the objective, a full step is accepted if the gradient shrinks.
    """
    if gain < SEEN:
        found, after = _state(b + step, mean, d, order)
        at = places(d, order)
        return (b + step, found, after) if _max_error(mean, after, at) < 0.5 * _max_error(mean, q, at) else None
    top = float(np.abs(step).max())
    t = min(1.0, 4.0 / top) if top > 0 else 1.0  # far from the maximum a Newton step is unreliable
    for _ in range(40):
        new = b + t * step
        found, q = _state(new, mean, d, order)
        if found > value:
            return new, found, q
        t *= 0.5
    return None


def _max_error(mean: Array, q: Array, at: Any) -> float:
    return float(np.abs(mean - q[at]).max())


def _by_gradients(mean: Array, start: Array, d: int, order: int) -> Array:
    """The same for very many sets, by a quasi-Newton method without a Hessian."""
    from scipy.optimize import minimize

    def loss(b: Array) -> tuple[float, Array]:
        value, q = _state(np.concatenate([[0.0], b]), mean, d, order)
        return -value, (q[places(d, order)] - mean)[1:]

    first = _better_start(mean, start, d)
    found = minimize(
        loss, first[1:], jac=True, method="L-BFGS-B", bounds=[(-FAR, FAR)] * (len(mean) - 1),
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    b = np.concatenate([[0.0], found.x])
    return _finished(b, mean, *_state(b, mean, d, order), d, order)


def independent(mean: Array, d: int) -> Array:
    """Weights (1 + d,) of independent columns: b = atanh E[z], log Z = Σ log 2 cosh b."""
    b = np.arctanh(np.clip(mean[1 : d + 1], -1 + 1e-15, 1 - 1e-15))
    return np.concatenate([[-float(np.logaddexp(b, -b).sum())], b])

"""How a log-linear law of binary columns is learnt and normalised: exactly over all cells, or by annealing.

Up to `EXACT` columns all 2ᵈ cells are summed by the fast Walsh–Hadamard transform, and maximum likelihood is a convex
problem solved by Newton's method: the Hessian's entry for sets S and T is E[φ_S φ_T] − E[φ_S] E[φ_T], and φ_S φ_T is
φ of the symmetric difference, so one transform gives all of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from likely.core.arrays import Array
from likely.core.notes import tell
from likely.errors import DataError, sentence
from likely.families.sign_sums import pair_matrix, places, split_sizes
from likely.maths.hadamard import cells_of, expectations

EXACT = 20  # columns up to which all cells are summed
NEWTON = 1500  # sets up to which Newton's equations are solved
STEPS, SMALL = 200, 1e-14  # Newton steps, and the size of a gradient that is rounding
NOTHING = 1e-25  # twice the gain a row that a Newton step promises: beyond it the sums over cells are rounding
SEEN = 1e-11  # a gain a row that the value can show
FLAT = 1e-10  # information in a direction: where less is left, weights can run on without end
FAR = 40.0  # a weight beyond it says that some set never varies
CHAINS, TEMPERATURES, SWEEPS = 100, 100, 20  # of annealed importance sampling; sweeps after it for draws
ENOUGH, WORK = 40, 100_000  # chains of equal worth that log Z wants; chains × columns that it may take
LEAST = 0.05  # smallest eigenvalue of a correlation matrix that is inverted
SEED = 2001  # of every annealing: the same statistics give the same bits


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


# ----------------------------------------------------------------- too many columns


class Annealed(NamedTuple):
    """log Z with its standard error, the last states of the chains (n, d) of signs, and what each is worth (n,)."""

    log_z: float
    error: float
    states: Array
    share: Array

    @property
    def effective(self) -> float:
        """As how many chains of equal worth these count."""
        return float(1.0 / (self.share**2).sum())


def independent(mean: Array, d: int) -> Array:
    """Weights (1 + d,) of columns that do not know each other: b = atanh E[z], log Z = Σ log 2 cosh b."""
    b = np.arctanh(np.clip(mean[1 : d + 1], -1 + 1e-15, 1 - 1e-15))
    return np.concatenate([[-float(np.logaddexp(b, -b).sum())], b])


def mean_field(mean: Array, n: float, d: int) -> Array:
    """Weights (M,) of fields and couplings from means and correlations of signs in n rows, by mean-field inversion."""
    return weights_of_field(mean[1 : d + 1], reliable(mean, n, d)[1])


def reliable(mean: Array, n: float, d: int) -> tuple[Array, Array]:
    """Averages of signs and pairs (M,), and correlations (d, d), without what noise alone would give (`_denoised`)."""
    m = mean[1 : d + 1]
    pairs = pair_matrix(mean[d + 1 :], d)
    if (np.abs(m) >= 1).any():
        expected = f"with more than {EXACT} columns each must vary"
        got = f"column {int(np.abs(m).argmax())}, which is constant"
        raise DataError(sentence("LogWalsh", expected, got, 'give a prior, such as "weak"'))
    scale = np.sqrt(1.0 - m**2)
    R = _denoised((pairs + pairs.T - np.outer(m, m)) / np.outer(scale, scale), n)
    both = R * np.outer(scale, scale) + np.outer(m, m)
    return np.concatenate([[1.0], m, both[np.triu_indices(d, 1)]]), R


def weights_of_field(m: Array, R: Array) -> Array:
    """Weights (M,) of fields and couplings from means (d,) and correlations (d, d).

    J = −C⁻¹ off the diagonal, where C is the covariance of the signs (Kappen and Rodríguez 1998), is right for weak
    couplings; what each pair would need by itself takes the place of what C⁻¹ would give it (Sessak and Monasson 2009),
    which is right for strong ones in a sparse net. Fields follow, pair by pair (exact on trees). The constant in front
    is left 0.
    """
    d, scale = len(m), np.sqrt(1.0 - m**2)
    loops = -np.linalg.inv(R) - R / (1.0 - np.minimum(R**2, 1.0 - LEAST**2))
    loops = np.where(np.eye(d, dtype=bool), 0.0, loops) / np.outer(scale, scale)
    pair, field, _ = of_pairs(m, R * np.outer(scale, scale))
    J, alone = pair + loops, np.arctanh(m)
    h = alone + (field - alone[:, None]).sum(axis=1) - loops @ m
    return np.concatenate([[0.0], h, J[np.triu_indices(d, 1)]])


def of_pairs(m: Array, C: Array) -> tuple[Array, Array, Array]:
    """Of each pair by itself (d, d): coupling, field of its first column, log p(1, 1), from means and covariances."""
    d, both = len(m), C + np.outer(m, m)
    np.fill_diagonal(both, m**2)
    p = {(s, t): 0.25 * (1 + s * m[:, None] + t * m[None, :] + s * t * both) for s in (1, -1) for t in (1, -1)}
    logs = {key: np.log(np.maximum(each, 1e-9)) for key, each in p.items()}
    J = 0.25 * (logs[1, 1] + logs[-1, -1] - logs[1, -1] - logs[-1, 1])
    field = 0.25 * (logs[1, 1] + logs[1, -1] - logs[-1, 1] - logs[-1, -1])
    J[np.diag_indices(d)], field[np.diag_indices(d)] = 0.0, np.arctanh(m)
    return J, field, logs[1, 1]


def _denoised(R: Array, n: float) -> Array:
    """Correlations (d, d) without those that n rows of independent columns would show: r (1 − t²/r²) where |r| > t.

    t² = 2 log m / n for m pairs, which hardly any of m correlations of noise exceeds (Donoho and Johnstone 1994; the
    rule is the garrotte of Gao 1998). If what is left is no correlation matrix, all of it is drawn to 0 until it is
    one.
    """
    d = len(R)
    limit = 2.0 * np.log(max(d * (d - 1) / 2, 2.0)) / n
    square = np.clip(R**2, 1e-300, None)
    R = R * np.maximum(1.0 - limit / square, 0.0)
    R[np.diag_indices(d)] = 0.0
    low = float(np.linalg.eigvalsh(R)[0])
    if low < LEAST - 1.0:
        R = R * ((1.0 - LEAST) / -low)
    R[np.diag_indices(d)] = 1.0
    return R


def annealed_enough(weights: Array, d: int, rng: Generator, start: Array | None = None) -> Annealed:
    """`annealed`, with more chains while few of them carry nearly all of the weight and the columns allow it."""
    n = CHAINS
    found = annealed(weights, d, n, rng, start=start)
    while found.effective < ENOUGH and 4 * n * d <= WORK:
        n *= 4
        found = annealed(weights, d, n, rng, start=start)
    return found


def step_of(weights: Array, d: int, n: int, rng: Generator, start: Array | None = None) -> Array:
    """States (n, d) of annealed chains, drawn again by what each is worth."""
    found = annealed(weights, d, n, rng, start=start)
    return np.ascontiguousarray(found.states[rng.choice(n, n, p=found.share)])


def annealed(
    weights: Array, d: int, n: int, rng: Generator, sweeps: int = 0, start: Array | None = None
) -> Annealed:  # fmt: skip
    """log Z of fields and couplings by annealed importance sampling (Neal 2001), from n chains.

    Each begins with independent columns of fields `start` (d,), meets the couplings in `TEMPERATURES` steps, and
    keeps count of what each step is worth; the mean of the counts is unbiased for Z, and its logarithm is jackknifed.
    """
    _, h, c = split_sizes(weights, d, 2)
    upper = pair_matrix(c, d)
    J = upper + upper.T
    alone = np.clip(h if start is None else start, -2.0, 2.0)
    z = np.where(rng.random((n, d)) < 1.0 / (1.0 + np.exp(-2.0 * alone)), 1.0, -1.0)
    worth = np.full(n, float(np.logaddexp(alone, -alone).sum()))
    couple = z @ J
    for t in range(TEMPERATURES):
        worth += (0.5 * np.einsum("nd,nd->n", couple, z) + z @ (h - alone)) / TEMPERATURES
        beta = (t + 1.0) / TEMPERATURES
        sweep(z, couple, (1 - beta) * alone + beta * h, beta, J, rng)
    for _ in range(sweeps):
        sweep(z, couple, h, 1.0, J, rng)
    top = worth.max()
    share = np.exp(worth - top)
    error = float(share.std(ddof=1) / share.mean() / np.sqrt(n)) if n > 1 else float("inf")
    return Annealed(float(top + _log_mean(share)), error, z, share / share.sum())


def _log_mean(share: Array) -> float:
    """log of the mean, without the bias that a logarithm has (jackknife)."""
    n, plain = len(share), float(np.log(share.mean()))
    rest = (share.sum() - share) / max(n - 1, 1)
    if n < 2 or not (rest > 1e-3 * share.mean()).all():  # one chain is all: nothing is known of the bias
        return plain
    return n * plain - (n - 1) * float(np.log(rest).mean())


def sweep(z: Array, couple: Array, h: Array, beta: float, J: Array, rng: Generator) -> None:
    """One visit of every column by Gibbs' sampler, all chains side by side, in place."""
    from likely.loops.gibbs import sweep_signs

    u = rng.random(z.shape)
    chance = np.log(np.maximum(u, 1e-300)) - np.log1p(-u)
    sweep_signs(z, couple, np.ascontiguousarray(h), float(beta), J, chance)

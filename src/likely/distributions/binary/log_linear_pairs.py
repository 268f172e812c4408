"""Pairwise (Ising) models of many binary columns: penalized likelihood with persistent chains and width selection.

The log-likelihood per row, Σ_S b_S E[φ_S] − log Z, needs of the data only the means E[φ_S]. Couplings have a Student-t
prior with 2 degrees of freedom: small ones are shrunk to 0, large ones hardly. Its width
starts small, where columns are independent, and grows; at each width some Newton steps are made, with expectations
and covariances estimated from persistent chains. For every width the held-out log-likelihood is estimated as the
log-likelihood minus the effective number of parameters per row (Akaike 1973; Takeuchi 1976). The best width is fitted
to convergence with more chains, and compared with independent columns and the best forest, which are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, sentence
from likely.core.warnings import tell
from likely.distributions.binary.annealed_importance_sampling import SEED, annealed_enough, tell_of_error
from likely.distributions.binary.log_linear_fit import EXACT, independent
from likely.distributions.binary.persistent_chains import PersistentChains, solved
from likely.distributions.binary.sign_products import pair_matrix

PRECISIONS = 10.0 ** np.arange(4.0, 0.5, -0.5)  # 1/width² of the prior: from strong to weak shrinkage
FREEDOM = 2.0  # degrees of freedom of the prior: two heavy tails, a finite width
FIELD = 0.1  # precision of the prior of fields about those of independent columns
STEPS, LAST = 9, 20  # Newton steps at each width, and at the selected one
CHAINS, FEWEST, MOST = 64_000, 200, 1000  # number of chains: this many spins in total, and between these limits
MORE, LIMIT = 100_000, 4000  # the same for the final fit
ROUNDS, NEAR = 10, 0.05  # conjugate gradient iterations per step, and their tolerance
LAYERS, APART = 4, 0.5  # sweeps whose states estimate a covariance; fraction that counts, as they are correlated
PROBES, TURNS = 2, 3  # random probes of a trace estimate; fixed-point iterations of its correction
RIDGE = 1e-3  # added to covariances, which few chains may estimate as 0
ROUGH, CERTAIN = 100, 400  # annealed chains for log Z at each width, and at the end
LEFT = 0.1  # nats per row that the final fit may still gain
DOUBT = 2.0  # standard errors of log Z by which a candidate must be better


class Candidate(NamedTuple):
    """Weights (M,) with −log Z first, its standard error, and the estimated held-out log-likelihood per row.

    The prior's precision is infinite where no couplings were fitted by chains.
    """

    weights: Array
    error: float
    value: float
    precision: float = np.inf

    @property
    def sure(self) -> float:
        """The value minus DOUBT standard errors of log Z."""
        return self.value - DOUBT * self.error


def learned_pairs(mean: Array, n: float, d: int) -> Candidate:
    """Weights (M,) and the standard error of log Z, from means of spins and of products of pairs in n rows.

    Never worse on the training rows than independent columns: these are taken, with a warning, if all else fails.
    """
    refuse_constant(mean[1 : d + 1])
    plain = _independent(mean, n, d)
    with one_blas_thread():
        best = _best_width(mean, n, d, exact_candidates(mean, n, d))
    if best.weights @ mean < plain.weights @ mean - DOUBT * best.error:
        tell("LogLinear: no couplings improve the likelihood over independent columns: order 1 is kept")
        best = plain
    tell_of_error(best.error)
    return best


def exact_candidates(mean: Array, n: float, d: int) -> Candidate:
    """Independent columns or the best forest: both exact and without iteration."""
    refuse_constant(mean[1 : d + 1])
    return max((_independent(mean, n, d), forest(mean, n, d)), key=lambda c: c.sure)


def _independent(mean: Array, n: float, d: int) -> Candidate:
    b = np.concatenate([independent(mean, d), np.zeros(len(mean) - 1 - d)])
    return Candidate(b, 0.0, float(b @ mean) - d / n)


def refuse_constant(m: Array) -> None:
    """Raise for constant columns: without a prior they would have an infinite field."""
    if (np.abs(m) >= 1).any():
        expected = f"with more than {EXACT} columns each must vary"
        got = f"column {int(np.abs(m).argmax())}, which is constant"
        raise DataError(sentence("LogLinear", expected, got, 'give a prior, such as "weak"'))


# --------------------------------------------------------------------------- climb


def _best_width(mean: Array, n: float, d: int, known: Candidate) -> Candidate:
    """The best width, fitted to convergence; or the given candidate, if no width is better."""
    field = field_of(mean, d)
    chains = PersistentChains.independent(field, int(np.clip(CHAINS / d, FEWEST, MOST)), np.random.default_rng(SEED))
    found: list[tuple[Candidate, float, PersistentChains]] = []
    for precision in PRECISIONS:
        chains = PersistentChains(chains.weights, chains.states, np.random.default_rng(SEED + len(found)))
        _newton_ascent(chains, mean[1:], field, n, precision, STEPS)
        found.append((_evaluated(chains, mean, field, n, precision), precision, chains))
        if _falling([one[0].value for one in found]):
            break
    best, precision, chains = _narrowest(found)
    if best.value <= known.sure - LEFT:
        return known
    chains = chains.enlarged(max(int(np.clip(MORE / d, 0, LIMIT)), len(chains.states)))
    _newton_ascent(chains, mean[1:], field, n, precision, LAST)
    last = _normalized(chains, field, CERTAIN)
    gain = float(last.weights @ mean - best.weights @ mean)
    last = last._replace(value=best.value + gain, precision=precision)
    return max((known, best, last), key=lambda c: c.sure)


def _narrowest(found: list[tuple[Candidate, float, PersistentChains]]) -> tuple[Candidate, float, PersistentChains]:
    """The narrowest prior whose value is within the noise of the best."""
    best = max((one[0] for one in found), key=lambda c: c.sure)
    return next(one for one in found if one[0].value >= best.value - 0.5 * np.hypot(best.error, one[0].error))


def _falling(values: list[float]) -> bool:
    """True where the last two widths were both worse than the one before."""
    return len(values) > 2 and values[-3] > max(values[-2:])


def _newton_ascent(
    chains: PersistentChains, target: Array, field: Array, n: float, precision: float, steps: int
) -> None:
    """Newton steps with moments from the chains, first full, then decreasing; the later ones are averaged."""
    full_steps, iterates = steps // 3, []
    chains.reanneal()
    for t in range(steps):
        rate = 1.0 if t < full_steps else (t - full_steps + 2.0) ** -0.75
        chains.follow(rate * _newton(chains, target, field, n, precision))
        iterates.append(chains.weights)
    chains.follow(np.mean(iterates[full_steps:], axis=0) - chains.weights)


def _newton(chains: PersistentChains, target: Array, field: Array, n: float, precision: float) -> Array:
    expected, pull = chains.moments(chains.states), pull_of(chains.weights, len(field), n, precision)
    deviation = chains.weights.copy()
    deviation[: len(field)] -= field
    times = chains.curvature(chains.states)
    scale = np.maximum(1.0 - expected**2, 10 * RIDGE) + pull
    return solved(lambda v: times(v) + (pull + RIDGE) * v, target - expected - pull * deviation, scale, ROUNDS, NEAR)


def field_of(mean: Array, d: int) -> Array:
    """Fields (d,) of independent columns: the prior's center."""
    return np.arctanh(mean[1 : d + 1])


def pull_of(weights: Array, d: int, n: float, precision: float) -> Array:
    """Precision of the prior of each weight, per row: (ν + 1)/(ν width² + b²)/n."""
    pull = (FREEDOM + 1.0) / (FREEDOM / precision + weights**2)
    pull[:d] = FIELD
    return np.asarray(pull / n)


def _evaluated(chains: PersistentChains, mean: Array, field: Array, n: float, precision: float) -> Candidate:
    """The weights with −log Z, and their estimated held-out log-likelihood."""
    found = _normalized(chains, field, ROUGH)
    value = float(found.weights @ mean) - _effective_parameters(chains, n, precision) / n
    return found._replace(value=value, precision=precision)


def _normalized(chains: PersistentChains, field: Array, n_chains: int) -> Candidate:
    b = np.concatenate([[0.0], chains.weights])
    found = annealed_enough(b, chains.dim, np.random.default_rng(SEED), field, n_chains)
    b[0] = -found.log_z
    return Candidate(b, found.error, -np.inf)


def _effective_parameters(chains: PersistentChains, n: float, precision: float) -> float:
    """Effective number of parameters tr C (C + P/n)⁻¹; C the covariance of all φ, P the prior's precision.

    C is estimated from N states, whose noise makes a penalty of P look like P/(1 − trace/N) (Marčenko and Pastur 1967,
    as used by Wei, Hu and Steinhardt 2022): so the penalty is reduced by that factor before the trace is taken. The
    diagonal alone is an upper bound, and is used where there are too few states.
    """
    pull = pull_of(chains.weights, chains.dim, n, precision)
    z = chains.states_after_sweeps(LAYERS)
    spread = np.maximum(1.0 - chains.moments(z) ** 2, 0.0)
    found = most = float((spread / (spread + pull)).sum())
    if 2 * len(z) < len(pull):
        return most
    for _ in range(TURNS):
        less = pull * max(1.0 - found / (APART * len(z)), 0.05)
        found = min(_trace(chains, z, less, spread), most)
    return found


def _trace(chains: PersistentChains, z: Array, pull: Array, spread: Array) -> float:
    """tr C (C + pull)⁻¹ over states (n, d), by random probes (Hutchinson 1990)."""
    rng, times, total = np.random.default_rng(SEED), chains.curvature(z), 0.0
    scale = np.maximum(spread, 10 * RIDGE) + pull
    for _ in range(PROBES):
        v = rng.choice([-1.0, 1.0], len(pull))
        total += float(v @ solved(lambda u: times(u) + pull * u, times(v), scale, 2 * ROUNDS, 0.02))
    return max(total / PROBES, 0.0)


# -------------------------------------------------------------------------- forest


def forest(mean: Array, n: float, d: int) -> Candidate:
    """The best forest of pairs (Chow and Liu 1968), with exact −log Z: p(x) = Π p(xᵢ) Π p(xᵢ, xⱼ)/(p(xᵢ) p(xⱼ)).

    Only correlations above the noise level become edges; each counts as two parameters, as it was selected.
    """
    m, R = mean[1 : d + 1], reliable(mean, n, d)
    i, j = _spanning(R)
    C = R * np.sqrt(np.outer(1 - m**2, 1 - m**2))
    J, field, ones = _of_pairs(m, C)
    field_alone = np.arctanh(m)
    h, couplings = field_alone.copy(), np.zeros((d, d))
    np.add.at(h, i, field[i, j] - field_alone[i])
    np.add.at(h, j, field[j, i] - field_alone[j])
    couplings[i, j] = J[i, j]
    p = np.log(0.5 * (1 + m))
    at_ones = p.sum() + (ones[i, j] - p[i] - p[j]).sum()  # log p(1, 1, …), whose signs are all +1
    b = np.concatenate([[0.0], h, couplings[np.triu_indices(d, 1)]])
    b[0] = at_ones - b.sum()
    return Candidate(b, 0.0, float(b @ mean) - (d + 2 * len(i)) / n)


def reliable(mean: Array, n: float, d: int) -> Array:
    """Thresholded correlations (d, d) of spins: r (1 − t²/r²) for |r| > t, else 0.

    t² = 2 log m / n for m pairs, which hardly any of m noise correlations exceeds (Donoho and Johnstone 1994; the
    nonnegative garrote of Gao 1998).
    """
    m, pairs = mean[1 : d + 1], pair_matrix(mean[d + 1 :], d)
    scale = np.sqrt(1.0 - m**2)
    R = (pairs + pairs.T - np.outer(m, m)) / np.outer(scale, scale)
    limit = 2.0 * np.log(max(d * (d - 1) / 2, 2.0)) / n
    R = R * np.maximum(1.0 - limit / np.maximum(R**2, 1e-300), 0.0)
    R[np.diag_indices(d)] = 1.0
    return R


def _spanning(R: Array) -> tuple[Index, Index]:
    """Edges i < j of the maximum spanning forest of correlations above the noise level."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    upper = np.triu(np.abs(R), 1)
    information = -np.log1p(-np.minimum(upper**2, 1 - 1e-9))
    tree = minimum_spanning_tree(-information).tocoo()
    i, j = np.minimum(tree.row, tree.col), np.maximum(tree.row, tree.col)
    return i.astype(np.intp), j.astype(np.intp)


def _of_pairs(m: Array, C: Array) -> tuple[Array, Array, Array]:
    """For each pair separately (d, d): coupling, field of its first column, log p(1, 1), from means and covariances."""
    d, both = len(m), C + np.outer(m, m)
    np.fill_diagonal(both, m**2)
    p = {(s, t): 0.25 * (1 + s * m[:, None] + t * m[None, :] + s * t * both) for s in (1, -1) for t in (1, -1)}
    logs = {key: np.log(np.maximum(each, 1e-9)) for key, each in p.items()}
    J = 0.25 * (logs[1, 1] + logs[-1, -1] - logs[1, -1] - logs[-1, 1])
    field = 0.25 * (logs[1, 1] + logs[1, -1] - logs[-1, 1] - logs[-1, -1])
    J[np.diag_indices(d)], field[np.diag_indices(d)] = 0.0, np.arctanh(m)
    return J, field, logs[1, 1]

"""Pairs of very many binary columns: climb with a crowd of chains, under a prior that left-out rows would choose.

The log-likelihood a row, Σ_S b_S E[φ_S] − log Z, needs of the rows only the averages E[φ_S]. Couplings have Student's t
distribution with 2 degrees of freedom as their prior: noise is drawn to 0, what is strong is left alone. Its width
begins small, where columns are independent, and grows; at each width some Newton steps are taken with what a crowd of
chains shows of expectations and covariances. Of every width it is estimated what rows that were left out would say: the
log-likelihood less the effective number of parameters per row (Akaike 1973; Takeuchi 1976). The best width is climbed
to the end with a larger crowd, beside independent columns and the best forest, whose constants are exact.
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
from likely.distributions.binary.persistent_chains import Crowd, solved
from likely.distributions.binary.sign_products import pair_matrix

PRECISIONS = 10.0 ** np.arange(4.0, 0.5, -0.5)  # 1/width² of the prior: from hardly any coupling to nearly free
FREEDOM = 2.0  # degrees of freedom of the prior: two heavy tails, a finite width
FIELD = 0.1  # precision of the prior of fields about those of independent columns
STEPS, LAST = 9, 20  # Newton steps at each width, and at the chosen one
CHAINS, FEWEST, MOST = 64_000, 200, 1000  # of the crowd: so many in all columns together, and between these
MORE, LIMIT = 100_000, 4000  # the same of the larger crowd of the last climb
ROUNDS, NEAR = 10, 0.05  # of conjugate gradients in a step, and how near is enough
LAYERS, APART = 4, 0.5  # sweeps whose states make a covariance; share of them that counts, as they are alike
PROBES, TURNS = 2, 3  # random vectors that a trace is estimated from; rounds until it agrees with its own correction
RIDGE = 1e-3  # added to covariances that few chains may call 0
ROUGH, CERTAIN = 100, 400  # annealed chains for log Z at each width, and at the end
LEFT = 0.1  # nats a row that the last climb may still gain
DOUBT = 2.0  # standard errors of log Z that a candidate must be better by


class Candidate(NamedTuple):
    """Weights (M,) with −log Z in front, its standard error, and the estimated log-likelihood of a left-out row.

    The prior's precision is infinite where nothing was climbed.
    """

    weights: Array
    error: float
    value: float
    precision: float = np.inf

    @property
    def sure(self) -> float:
        """The value, less what its constant may have lost."""
        return self.value - DOUBT * self.error


def learned_pairs(mean: Array, n: float, d: int) -> Candidate:
    """Weights (M,) and the standard error of log Z, from averages of signs and pairs of signs in n rows.

    Never worse, on the rows as they are, than independent columns: these are taken, with a warning, if all else fails.
    """
    refuse_constant(mean[1 : d + 1])
    plain = _alone(mean, n, d)
    with one_blas_thread():
        best = _climbed(mean, n, d, without_climbing(mean, n, d))
    if best.weights @ mean < plain.weights @ mean - DOUBT * best.error:
        tell(
            "LogLinear: no couplings were found that explain the rows better than independent columns: order 1 is kept"
        )
        best = plain
    tell_of_error(best.error)
    return best


def without_climbing(mean: Array, n: float, d: int) -> Candidate:
    """Independent columns or the best forest: both exact, and known at once."""
    refuse_constant(mean[1 : d + 1])
    return max((_alone(mean, n, d), forest(mean, n, d)), key=lambda c: c.sure)


def _alone(mean: Array, n: float, d: int) -> Candidate:
    alone = np.concatenate([independent(mean, d), np.zeros(len(mean) - 1 - d)])
    return Candidate(alone, 0.0, float(alone @ mean) - d / n)


def refuse_constant(m: Array) -> None:
    """Without a prior, a column in which all rows agree would have an infinite field."""
    if (np.abs(m) >= 1).any():
        expected = f"with more than {EXACT} columns each must vary"
        got = f"column {int(np.abs(m).argmax())}, which is constant"
        raise DataError(sentence("LogLinear", expected, got, 'give a prior, such as "weak"'))


# --------------------------------------------------------------------------- climb


def _climbed(mean: Array, n: float, d: int, known: Candidate) -> Candidate:
    """The best of all widths, climbed to the end; or what is known, if no width is better."""
    field = field_of(mean, d)
    crowd = Crowd.independent(field, int(np.clip(CHAINS / d, FEWEST, MOST)), np.random.default_rng(SEED))
    found: list[tuple[Candidate, float, Crowd]] = []
    for precision in PRECISIONS:
        crowd = Crowd(crowd.weights, crowd.states, np.random.default_rng(SEED + len(found)))
        _climb(crowd, mean[1:], field, n, precision, STEPS)
        found.append((_judged(crowd, mean, field, n, precision), precision, crowd))
        if _falling([one[0].value for one in found]):
            break
    best, precision, crowd = _narrowest(found)
    if best.value <= known.sure - LEFT:
        return known
    crowd = crowd.enlarged(max(int(np.clip(MORE / d, 0, LIMIT)), len(crowd.states)))
    _climb(crowd, mean[1:], field, n, precision, LAST)
    last = _normalized(crowd, field, CERTAIN)
    gain = float(last.weights @ mean - best.weights @ mean)
    last = last._replace(value=best.value + gain, precision=precision)
    return max((known, best, last), key=lambda c: c.sure)


def _narrowest(found: list[tuple[Candidate, float, Crowd]]) -> tuple[Candidate, float, Crowd]:
    """The first, so the narrowest width, that the noise of the constants does not tell from the best."""
    best = max((one[0] for one in found), key=lambda c: c.sure)
    return next(one for one in found if one[0].value >= best.value - 0.5 * np.hypot(best.error, one[0].error))


def _falling(values: list[float]) -> bool:
    """True where the last two widths were both worse than the one before."""
    return len(values) > 2 and values[-3] > max(values[-2:])


def _climb(crowd: Crowd, target: Array, field: Array, n: float, precision: float, steps: int) -> None:
    """Newton steps with what the crowd shows, first whole, then ever smaller; the later ones are averaged."""
    whole, kept = steps // 3, []
    crowd.anew()
    for t in range(steps):
        rate = 1.0 if t < whole else (t - whole + 2.0) ** -0.75
        crowd.follow(rate * _newton(crowd, target, field, n, precision))
        kept.append(crowd.weights)
    crowd.follow(np.mean(kept[whole:], axis=0) - crowd.weights)


def _newton(crowd: Crowd, target: Array, field: Array, n: float, precision: float) -> Array:
    shown, pull = crowd.moments(crowd.states), pull_of(crowd.weights, len(field), n, precision)
    away = crowd.weights.copy()
    away[: len(field)] -= field
    times = crowd.curvature(crowd.states)
    scale = np.maximum(1.0 - shown**2, 10 * RIDGE) + pull
    return solved(lambda v: times(v) + (pull + RIDGE) * v, target - shown - pull * away, scale, ROUNDS, NEAR)


def field_of(mean: Array, d: int) -> Array:
    """The fields (d,) that independent columns would have: the prior's center."""
    return np.arctanh(mean[1 : d + 1])


def pull_of(weights: Array, d: int, n: float, precision: float) -> Array:
    """The precision, a row, with which the prior holds each weight: (ν + 1)/(ν width² + b²)/n."""
    pull = (FREEDOM + 1.0) / (FREEDOM / precision + weights**2)
    pull[:d] = FIELD
    return np.asarray(pull / n)


def _judged(crowd: Crowd, mean: Array, field: Array, n: float, precision: float) -> Candidate:
    """The weights with their constant, and what a left-out row would say of them."""
    found = _normalized(crowd, field, ROUGH)
    value = float(found.weights @ mean) - _effective(crowd, n, precision) / n
    return found._replace(value=value, precision=precision)


def _normalized(crowd: Crowd, field: Array, chains: int) -> Candidate:
    b = np.concatenate([[0.0], crowd.weights])
    found = annealed_enough(b, crowd.dim, np.random.default_rng(SEED), field, chains)
    b[0] = -found.log_z
    return Candidate(b, found.error, -np.inf)


def _effective(crowd: Crowd, n: float, precision: float) -> float:
    """tr C (C + P/n)⁻¹, the effective number of parameters; C the covariance of all φ, P the prior's precision.

    C comes from N states, whose own noise makes a pull of P look like one of P/(1 − trace/N) (Marčenko and Pastur 1967,
    as used by Wei, Hu and Steinhardt 2022): so the pull is lessened by that much before the trace is taken. The
    diagonal alone never gives less than the truth, and stands where there are too few states for more.
    """
    pull = pull_of(crowd.weights, crowd.dim, n, precision)
    z = crowd.several(LAYERS)
    spread = np.maximum(1.0 - crowd.moments(z) ** 2, 0.0)
    found = most = float((spread / (spread + pull)).sum())
    if 2 * len(z) < len(pull):
        return most
    for _ in range(TURNS):
        less = pull * max(1.0 - found / (APART * len(z)), 0.05)
        found = min(_trace(crowd, z, less, spread), most)
    return found


def _trace(crowd: Crowd, z: Array, pull: Array, spread: Array) -> float:
    """tr C (C + pull)⁻¹ over states (n, d), from random signs (Hutchinson 1990)."""
    rng, times, total = np.random.default_rng(SEED), crowd.curvature(z), 0.0
    scale = np.maximum(spread, 10 * RIDGE) + pull
    for _ in range(PROBES):
        v = rng.choice([-1.0, 1.0], len(pull))
        total += float(v @ solved(lambda u: times(u) + pull * u, times(v), scale, 2 * ROUNDS, 0.02))
    return max(total / PROBES, 0.0)


# -------------------------------------------------------------------------- forest


def forest(mean: Array, n: float, d: int) -> Candidate:
    """The best forest of pairs (Chow and Liu 1968), with its exact −log Z: p(x) = Π p(xᵢ) Π p(xᵢ, xⱼ)/(p(xᵢ) p(xⱼ)).

    Only correlations that noise alone would not show become edges; each counts as two parameters, as it was chosen.
    """
    m, R = mean[1 : d + 1], reliable(mean, n, d)
    i, j = _spanning(R)
    C = R * np.sqrt(np.outer(1 - m**2, 1 - m**2))
    J, field, ones = _of_pairs(m, C)
    alone = np.arctanh(m)
    h, kept = alone.copy(), np.zeros((d, d))
    np.add.at(h, i, field[i, j] - alone[i])
    np.add.at(h, j, field[j, i] - alone[j])
    kept[i, j] = J[i, j]
    p = np.log(0.5 * (1 + m))
    at_ones = p.sum() + (ones[i, j] - p[i] - p[j]).sum()  # log p(1, 1, …), whose signs are all +1
    b = np.concatenate([[0.0], h, kept[np.triu_indices(d, 1)]])
    b[0] = at_ones - b.sum()
    return Candidate(b, 0.0, float(b @ mean) - (d + 2 * len(i)) / n)


def reliable(mean: Array, n: float, d: int) -> Array:
    """Correlations (d, d) of signs without those that n rows of independent columns would show: r (1 − t²/r²), |r| > t.

    t² = 2 log m / n for m pairs, which hardly any of m correlations of noise exceeds (Donoho and Johnstone 1994; the
    rule is the garrotte of Gao 1998).
    """
    m, pairs = mean[1 : d + 1], pair_matrix(mean[d + 1 :], d)
    scale = np.sqrt(1.0 - m**2)
    R = (pairs + pairs.T - np.outer(m, m)) / np.outer(scale, scale)
    limit = 2.0 * np.log(max(d * (d - 1) / 2, 2.0)) / n
    R = R * np.maximum(1.0 - limit / np.maximum(R**2, 1e-300), 0.0)
    R[np.diag_indices(d)] = 1.0
    return R


def _spanning(R: Array) -> tuple[Index, Index]:
    """Edges i < j of the forest with the largest correlations that are more than noise."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    upper = np.triu(np.abs(R), 1)
    information = -np.log1p(-np.minimum(upper**2, 1 - 1e-9))
    tree = minimum_spanning_tree(-information).tocoo()
    i, j = np.minimum(tree.row, tree.col), np.maximum(tree.row, tree.col)
    return i.astype(np.intp), j.astype(np.intp)


def _of_pairs(m: Array, C: Array) -> tuple[Array, Array, Array]:
    """Of each pair by itself (d, d): coupling, field of its first column, log p(1, 1), from means and covariances."""
    d, both = len(m), C + np.outer(m, m)
    np.fill_diagonal(both, m**2)
    p = {(s, t): 0.25 * (1 + s * m[:, None] + t * m[None, :] + s * t * both) for s in (1, -1) for t in (1, -1)}
    logs = {key: np.log(np.maximum(each, 1e-9)) for key, each in p.items()}
    J = 0.25 * (logs[1, 1] + logs[-1, -1] - logs[1, -1] - logs[-1, 1])
    field = 0.25 * (logs[1, 1] + logs[1, -1] - logs[-1, 1] - logs[-1, -1])
    J[np.diag_indices(d)], field[np.diag_indices(d)] = 0.0, np.arctanh(m)
    return J, field, logs[1, 1]

"""Imputation of missing values: conditional expectations, or draws from the conditional distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, Mask, Rows, n_rows, refuse_infinite, rows, unmasked
from likely.core.columns import Columns
from likely.core.covariates import apart, with_covariates
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.binary.binary_expansion import SignDistribution
from likely.distributions.categorical.categorical import MISSING, Categorical, is_missing, one_column_of
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.distributions.categorical.multinomial import SMALLEST, Multinomial
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.column_distribution import ColumnDistribution
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.product import Product
from likely.distributions.stacks.stack import Stack
from likely.distributions.stacks.tied import Tied
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.poisson import Poisson
from likely.hmm.hmm import HMM
from likely.imputation.impute_sequences import (
    any_in,
    as_given,
    frame_responsibilities,
    is_of_sequences,
)
from likely.mixture.interpolation import FixedComponents
from likely.mixture.mixture import Mixture
from likely.mixture.scaled_copies import ScaledCopies
from likely.numerics import spd


def impute(model: Any, x: Rows, rng: Generator | None = None) -> Any:
    """Impute missing values: E[missing | observed], or one draw of the missing given the observed.

    A categorical column gets its most probable level where nothing is drawn. In sequences, states are smoothed:
    E[x_t | x] = Σ_k p(s_t = k | x) E[x_t | observed part of x_t, k].

    Parameters
    ----------
    model : value or estimator
        A density or sequence model, or a fitted estimator of one.
    x : array-like (n, d), Columns or sequences
        Rows; NaN is a missing value.
    rng : numpy.random.Generator, optional
        Draw the missing values instead of taking their expectation.

    Returns
    -------
    ndarray, Columns or sequences
        Rows as they came in: an array as an array, `Columns` as `Columns`, with observed entries unchanged; complete
        rows are returned as they are.

    References
    ----------
    Little and Rubin (2002), Statistical Analysis with Missing Data.

    Examples
    --------
    >>> import likely as lk
    >>> g = lk.Gaussian([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]])
    >>> impute(g, np.array([[2.0, np.nan]]))
    array([[2. , 1.6]])
    """
    members = getattr(model, "members", None)
    if members is not None:
        remedy = "take member(k), or give the members weights in a Mixture"
        raise DomainError(sentence("impute", "one density is needed", f"a stack of {members}", remedy))
    if is_of_sequences(model):
        return as_given(_filled(model, Ragged.of(x), None, rng), x)
    x = unmasked(x) if hasattr(x, "shape") or isinstance(x, Mapping) else _listed(x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim == 2:
        refuse_infinite(x, "impute")
    at = np.flatnonzero(_incomplete_rows(model, x))
    if not isinstance(x, np.ndarray) or x.ndim != 2 or len(at) == len(x):
        return _filled(model, x, None, rng)
    out = x.copy()  # complete rows are not evaluated
    if len(at):
        filled = _filled(model, x[at], None, rng)
        out = out.astype(np.result_type(out, filled)) if out.dtype.kind in "iub" else out
        out[at] = filled
    return out


def _listed(x: Any) -> Any:
    a = np.asarray(x)
    return np.asarray(x, dtype=object) if a.dtype.kind == "U" else a  # ["a", nan] would become strings


# ---------------------------------------------------------------- what is missing


def missing_cells(x: Any) -> Mask:
    """Mask of missing entries of an array: NaN, or None among objects.

    >>> missing_cells(np.array([["a", None], ["b", "c"]], dtype=object)).tolist()
    [[False, True], [False, False]]
    """
    a = np.asarray(unmasked(x))
    if a.dtype.kind == "f":
        return np.isnan(a)
    if a.dtype != object:
        return np.zeros(a.shape, dtype=bool)
    return np.array([is_missing(cell) for cell in a.ravel()], dtype=bool).reshape(a.shape)


def _incomplete_rows(distribution: Any, x: Any) -> Mask:
    """Which rows (n,) have missing entries, as their distribution reads them."""
    if isinstance(distribution, HMM):
        frames = apart(x).frames if distribution.is_logistic else x
        return any_in(_incomplete_rows(distribution.emission, frames.values), x)
    if isinstance(distribution, Product):
        cut = distribution.as_columns(x)
        return np.any([_incomplete_rows(part, cut[name]) for name, part in distribution.components], axis=0)
    if isinstance(distribution, Stack):
        return np.any([_incomplete_rows(part, x) for part in distribution.components], axis=0)
    if isinstance(distribution, Mixture | Tied | FixedComponents):
        return _incomplete_rows(distribution.components, x)
    if isinstance(distribution, Categorical):
        return distribution.encode(x) == MISSING
    return _rows_with_missing(x)


def _rows_with_missing(x: Any) -> Mask:
    """Which rows (n,) have missing entries; sparse rows and sequences have none."""
    if isinstance(x, Mapping):
        return np.any([_rows_with_missing(part) for part in x.values()], axis=0)
    if is_sparse(x) or hasattr(x, "offsets"):
        return np.zeros(n_rows(x), dtype=bool)
    found = missing_cells(x)
    return np.asarray(found.reshape(len(found), -1).any(axis=1))


def _copied(x: Any) -> Any:
    if isinstance(x, Mapping):
        return Columns({name: _copied(part) for name, part in x.items()})
    return x.copy() if hasattr(x, "copy") else x


def _in_kind(z: Array, x: Any) -> Array:
    """Numbers in the shape, and single precision in the precision, that came in."""
    single = getattr(x, "dtype", None) == np.float32
    return np.reshape(z.astype(np.float32) if single else z, np.shape(x))


# ------------------------------------------------------------------ distribution by distribution


def _filled(distribution: Any, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    """Rows imputed by a distribution, or by the members of a stack with responsibilities (n, K)."""
    return _fill(distribution, x, resp, rng) if _incomplete_rows(distribution, x).any() else _copied(x)


@singledispatch
def _fill(distribution: Any, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    """The same, for rows with missing entries."""
    expected = (
        "Gaussian, categorical, multinomial, Poisson, Bernoulli components, products and mixtures of them are needed"
    )
    raise DomainError(sentence("impute", expected, type(distribution).__name__))


@_fill.register
def _(distribution: Mixture, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    """Components weighted by posterior probability; in a draw, all missing entries of a row come from one component."""
    inside = _component_posterior(distribution, x)
    each = (inside if resp is None else inside * resp[:, :, None]).reshape(len(inside), -1)
    return _filled(distribution.components, x, each if rng is None else _one_hot_draw(each, rng), rng)


def _component_posterior(distribution: Mixture, x: Any) -> Array:
    """p(component | row) within each mixture of a stack (n, C, M)."""
    inside = distribution.log_joint(x).astype(np.float64).reshape(-1, distribution.members or 1, distribution.size)
    with np.errstate(invalid="ignore"):
        inside = np.exp(inside - inside.max(axis=2, keepdims=True))
    inside = np.where(np.isnan(inside), distribution.weights, inside)  # density 0 under every component
    return inside / inside.sum(axis=2, keepdims=True)


def _one_hot_draw(resp: Array, rng: Generator) -> Array:
    """One-hot responsibilities (n, K): one member per row, drawn by its probability."""
    return np.eye(resp.shape[1])[_drawn(resp, rng)]


def _drawn(resp: Array, rng: Generator) -> Index:
    """One index per row (n,), drawn by probabilities (n, K)."""
    heap = np.cumsum(resp, axis=1)
    own = (heap < rng.random((len(resp), 1)) * heap[:, -1:]).sum(axis=1)
    return np.minimum(own, resp.shape[1] - 1)


@_fill.register(FactorGaussian)
@_fill.register(ScaledCopies)
def _(distribution: Any, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    if resp is None and isinstance(distribution, FactorGaussian):
        return _in_kind(distribution.impute(x, rng), x)
    return _filled(distribution.gaussian, x, resp, rng)


@_fill.register
def _(distribution: FixedComponents, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    return _filled(distribution.components, x, resp, rng)


@_fill.register
def _(distribution: Tied, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    if distribution.what != "all" or resp is None:
        return _filled(distribution.components, x, resp, rng)
    return _filled(distribution.components, x, resp @ np.eye(distribution.components.members)[distribution.index], rng)


@_fill.register
def _(distribution: Product, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    return _by_component(distribution, dict(distribution.components), x, resp, rng)


def _by_component(distribution: Product, parts: Mapping[str, Any], x: Any, resp: Any, rng: Any) -> Any:
    """Independent components share only the row's label; an array that was cut is put together again."""
    cut = distribution.as_columns(x)
    filled = {name: _filled(part, cut[name], resp, rng) for name, part in parts.items()}
    if not isinstance(x, Mapping):
        return np.column_stack(list(filled.values()))
    return Columns({name: filled[name] if name in filled else _copied(cut[name]) for name in cut})


# ------------------------------------------------------------------- sequences


@_fill.register
def _(distribution: HMM, x: Any, resp: Array | None, rng: Generator | None) -> Ragged:
    """Only sequences with missing values are evaluated, and of these only their incomplete frames are imputed.

    Covariates stay with their frames.
    """
    which = np.flatnonzero(_incomplete_rows(distribution, x))
    some: Ragged = x[which]
    states = frame_responsibilities(distribution, some, None if resp is None else resp[which], rng)
    if distribution.is_logistic:
        frames, covariates = apart(some)
        filled = _filled_frames(distribution.emission, frames.values, states, rng)
        done = with_covariates(frames.map(lambda _: filled), frames.map(lambda _: covariates))
    else:
        done = some.map(lambda _: _filled_frames(distribution.emission, some.values, states, rng))
    if len(which) == len(x):
        return done
    place = np.empty(len(x), dtype=np.intp)
    rest = np.setdiff1d(np.arange(len(x)), which)
    place[which], place[rest] = np.arange(len(which)), len(which) + np.arange(len(rest))
    return Ragged.joined([done, x[rest]])[place]


def _filled_frames(distribution: Any, frames: Any, states: Array, rng: Generator | None) -> Any:
    if not isinstance(frames, np.ndarray):
        return _filled(distribution, frames, states, rng)
    at, out = np.flatnonzero(_incomplete_rows(distribution, frames)), frames.copy()
    filled = _filled(distribution, frames[at], states[at], rng)
    out = out.astype(filled.dtype) if out.dtype != filled.dtype else out
    out[at] = filled
    return out


# ------------------------------------------------------------------- Gaussians


@_fill.register
def _(distribution: Gaussian, x: Any, resp: Array | None, rng: Generator | None) -> Array:
    if distribution.kind != "full":
        return _column_by_column(distribution, x, resp, rng)
    z = _numbers(distribution, x)
    patterns, fill = Patterns.of(observed(z)), _Regression(distribution, rng)
    resp = np.ones((len(z), 1)) if resp is None else resp
    for p, seen in enumerate(patterns.seen):
        at = patterns.order[patterns.starts[p] : patterns.starts[p + 1]]
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        if len(m):
            z[np.ix_(at, m)] = fill(z[np.ix_(at, o)], o, m, resp[at])
    return _in_kind(z, x)


def _numbers(distribution: Any, x: Any) -> Array:
    """Rows as numbers that may be written to."""
    z = np.array(rows(x, distribution.dim, "impute"))
    refuse_infinite(z, "impute")
    return z


class _Regression:
    """Conditional Gaussian of the missing given the observed: μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o)   (Herbst 2.3).

    In units of standard deviations, so that the units of columns do not matter. Where Σ_oo is singular,
    the pseudo-inverse replaces the inverse.
    """

    def __init__(self, distribution: Gaussian, rng: Generator | None) -> None:
        self.mean, self.rng = np.atleast_2d(distribution.mean), rng
        covariance = distribution.covariance if distribution.covariance.ndim == 3 else distribution.covariance[None]
        unit = spd.scales(covariance)
        shape = self.mean.shape
        self.unit = np.broadcast_to(unit, shape)
        self.correlation = np.broadcast_to(covariance / unit[:, :, None] / unit[:, None, :], (*shape, shape[1]))

    def __call__(self, z: Array, o: Index, m: Index, resp: Array) -> Array:
        """Imputed values (n, m) for rows of one missingness pattern, from the observed ones (n, o)."""
        used = np.flatnonzero((resp > 0).any(axis=0))
        pull = self._coefficients(used, o, m)
        root = None if self.rng is None else self._conditional_root(used, o, m, pull)
        total = np.zeros((len(z), len(m)))
        for i, k in enumerate(used):
            some = np.flatnonzero(resp[:, k] > 0)
            white = ((z[some] - self.mean[k, o]) / self.unit[k, o]) @ pull[i]
            if self.rng is not None and root is not None:
                white += self.rng.standard_normal(white.shape) @ root[i]
            total[some] += resp[some, k, None] * (self.mean[k, m] + self.unit[k, m] * white)
        return total

    def _coefficients(self, used: Index, o: Index, m: Index) -> Array:
        """Regression coefficients R_oo⁻¹ R_om of each member (K, o, m)."""
        seen, across = self.correlation[np.ix_(used, o, o)], self.correlation[np.ix_(used, o, m)]
        if not len(o) or spd.cholesky(seen) is not None:
            return np.asarray(np.linalg.solve(seen, across), dtype=np.float64)
        return np.asarray(np.linalg.pinv(seen, rcond=spd.rank_tolerance(len(o)), hermitian=True) @ across)

    def _conditional_root(self, used: Index, o: Index, m: Index, pull: Array) -> Array:
        """Square roots A of the conditional covariance R_mm − R_mo R_oo⁻¹ R_om = AᵀA (K, m, m), singular or not."""
        left = self.correlation[np.ix_(used, m, m)] - self.correlation[np.ix_(used, m, o)] @ pull
        values, vectors = np.linalg.eigh(spd.symmetric(left))
        return np.sqrt(np.maximum(values, 0.0))[:, :, None] * np.swapaxes(vectors, 1, 2)


# ------------------------------------------------------- counts, flags and levels


@_fill.register(Poisson)
@_fill.register(NegativeBinomial)
@_fill.register(Bernoulli)
@_fill.register(ColumnDistribution)
def _column_by_column(distribution: Any, x: Any, resp: Array | None, rng: Generator | None) -> Array:
    """Independent columns: the observed entries determine only the responsibilities of the members."""
    z = _numbers(distribution, x)
    resp = np.ones((len(z), 1)) if resp is None else resp
    at = np.flatnonzero(np.isnan(z).any(axis=1))
    mean = distribution.expected if isinstance(distribution, ColumnDistribution) else distribution.mean
    guess = resp[at] @ np.atleast_2d(mean) if rng is None else _draws(distribution, resp[at].argmax(axis=1), rng)
    z[at] = np.where(np.isnan(z[at]), guess, z[at])
    return _in_kind(z, x)


@_fill.register(SignDistribution)
@_fill.register(ChowLiuTree)
def _conditional_on_observed(distribution: Any, x: Any, resp: Array | None, rng: Generator | None) -> Array:
    """Dependent columns: E[xⱼ | observed] of each missing entry, or draws, one column after another."""
    z = _numbers(distribution, x)
    resp = np.ones((len(z), 1)) if resp is None else resp
    at = np.flatnonzero(np.isnan(z).any(axis=1))
    members = (
        [distribution]
        if distribution.members is None
        else [distribution.member(k) for k in range(distribution.members)]
    )
    if rng is None:
        each = np.stack([_expected_missing(one, z[at]) for one in members], axis=1)
        guess = np.einsum("nk,nkd->nd", resp[at] / resp[at].sum(axis=1, keepdims=True), each)
        z[at] = np.where(np.isnan(z[at]), guess, z[at])
        return _in_kind(z, x)
    own = resp[at].argmax(axis=1)
    for k in np.unique(own):
        mine = at[own == k]
        z[mine] = _drawn_missing(members[k], z[mine], rng)
    return _in_kind(z, x)


def _expected_missing(distribution: Any, z: Array) -> Array:
    """E[xⱼ | observed] in every missing entry of rows (n, d)."""
    out = z.copy()
    for j in np.flatnonzero(np.isnan(z).any(axis=0)).tolist():
        rows = np.flatnonzero(np.isnan(z[:, j]))
        levels, p = _level_probabilities(distribution, z[rows], j)
        out[rows, j] = p @ levels
    return out


def _drawn_missing(distribution: Any, z: Array, rng: Generator) -> Array:
    """Rows with each missing entry drawn given all before it (ancestral sampling)."""
    out = z.copy()
    for j in np.flatnonzero(np.isnan(z).any(axis=0)).tolist():
        rows = np.flatnonzero(np.isnan(out[:, j]))
        levels, p = _level_probabilities(distribution, out[rows], j)
        at = (np.cumsum(p, axis=1) <= rng.random(len(rows))[:, None]).sum(axis=1)
        out[rows, j] = levels[np.minimum(at, len(levels) - 1)]
    return out


def _level_probabilities(distribution: Any, z: Array, j: int) -> tuple[Array, Array]:
    """Levels of a column, and p(level | other observed entries) of each row (n, L); uniform where none is possible."""
    levels = distribution.levels[j] if isinstance(distribution, ChowLiuTree) else np.array([0.0, 1.0])
    logs = np.empty((len(z), len(levels)))
    for a, level in enumerate(levels):
        z = z.copy()
        z[:, j] = level
        logs[:, a] = distribution.log_prob(z)
    top = logs.max(axis=1, keepdims=True)
    p = np.where(np.isfinite(top), np.exp(logs - np.where(np.isfinite(top), top, 0.0)), 1.0)
    return levels, p / p.sum(axis=1, keepdims=True)


def _draws(distribution: Any, own: Index, rng: Generator) -> Array:
    """One draw from the given member for each row (n, d)."""
    if distribution.members is None:
        return np.asarray(distribution.sample(len(own), rng))
    out = np.empty((len(own), distribution.dim))
    for k in np.unique(own):
        out[own == k] = distribution.member(k).sample(int((own == k).sum()), rng)
    return out


@_fill.register
def _(distribution: Multinomial, x: Any, resp: Array | None, rng: Generator | None) -> Array:
    """N_observed p_missing / P_observed under each member; its mean where the observed columns have probability 0."""
    if rng is not None:
        expected = "counts are drawn given their total, which is unknown with missing values"
        remedy = "impute by expectation: without a generator, or random_state=None"
        raise DomainError(sentence("impute", expected, "NaN in a Multinomial's rows", remedy))
    z = _numbers(distribution, x)
    resp = np.ones((len(z), 1)) if resp is None else resp
    probs, seen = np.atleast_2d(distribution.probs), observed(z)
    share = seen @ probs.T
    total = np.where(seen, z, 0.0).sum(axis=1)[:, None]
    times = np.where(share > SMALLEST, total / np.maximum(share, SMALLEST), float(distribution.length))
    return _in_kind(np.where(seen, z, (resp * times) @ probs), x)


@_fill.register
def _(distribution: Categorical, x: Any, resp: Array | None, rng: Generator | None) -> Any:
    return _levels_in(
        x, distribution.encode(x) == MISSING, distribution.values, np.atleast_2d(distribution.probs), resp, rng
    )


def _levels_in(x: Any, missing: Mask, values: Any, probs: Array, resp: Array | None, rng: Generator | None) -> Any:
    """Cells with the most probable level, or a drawn one, where they are missing."""
    cells = np.array(one_column_of(x))
    at = np.flatnonzero(missing)
    each = np.repeat(probs, len(at), axis=0) if resp is None else resp[at] @ probs
    level = values[each.argmax(axis=1) if rng is None else _drawn(each, rng)]
    if cells.dtype != object and (cells.dtype.kind in "US") != (np.asarray(level).dtype.kind in "USO"):
        cells = cells.astype(object)  # a column of nothing but NaN among strings
    cells[at] = level
    return cells.reshape(np.shape(x))


# --------------------------------------------------------------- unlike members


@_fill.register
def _(distribution: Stack, x: Any, resp: Array, rng: Generator | None) -> Any:
    """Members of different types, each by its own rule: means by responsibilities, levels by their probabilities."""
    parts, resp = _flattened(distribution.components, x, resp)
    resp = resp if rng is None else _one_hot_draw(resp, rng)
    first = parts[0]
    if all(isinstance(part, Product) and part.names == first.names for part in parts):
        each = {name: Stack.trusted(components=tuple(part[name] for part in parts)) for name in first.names}
        return _by_component(first, each, x, resp, rng)
    if all(isinstance(part, Categorical) for part in parts):
        values, probs = _common_levels(parts)
        return _levels_in(x, _incomplete_rows(distribution, x), values, probs, resp, rng)
    if isinstance(x, Mapping):
        return _fill.dispatch(object)(distribution, x, resp, rng)
    z = np.array(rows(x, distribution.dim, "impute"))
    total = np.zeros_like(z)
    for k, part in enumerate(parts):
        some = np.flatnonzero(resp[:, k] > 0)
        if len(some):
            total[some] += resp[some, k, None] * _filled(part, z[some], None, rng)
    return _in_kind(np.where(np.isnan(z), total, z), x)


def _flattened(parts: Sequence[Any], x: Any, resp: Array) -> tuple[list[Any], Array]:
    """Members that are mixtures replaced by their components, with responsibilities of their own."""
    distributions: list[Any] = []
    columns: list[Array] = []
    for k, part in enumerate(parts):
        if isinstance(part, Mixture):
            distributions += [part.components.member(j) for j in range(part.size)]
            columns.append(_component_posterior(part, x)[:, 0] * resp[:, [k]])
        else:
            distributions.append(part)
            columns.append(resp[:, [k]])
    return distributions, np.concatenate(columns, axis=1)


def _common_levels(parts: Sequence[Categorical]) -> tuple[Any, Array]:
    """The union of all levels, and the probability of each under each member (K, L)."""
    place: dict[Any, int] = {}
    for part in parts:
        for value in part.values.tolist():
            place.setdefault(value, len(place))
    probs = np.zeros((len(parts), len(place)))
    for k, part in enumerate(parts):
        probs[k, [place[value] for value in part.values.tolist()]] = part.probs
    same_kind = len({part.values.dtype.kind for part in parts}) == 1
    return np.array(list(place), dtype=None if same_kind else object), probs

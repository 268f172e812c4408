"""Base classes of distributions with independent columns, each column with its own univariate distribution.

A subclass is a frozen dataclass of parameters. It defines the domain of each parameter, and log-density, CDF, quantile
function and sampling of single entries; shapes, stacks, missing values, blocks and threads are handled here. The
sufficient statistics are one of two: sums of features (`FeatureSums`, exponential families) or the weighted values
themselves (`WeightedValues`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import (
    Array,
    BadEntry,
    Index,
    Mask,
    PerMember,
    n_rows,
    parameter,
    refuse_infinite,
    rows,
    sliceable,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows, one_blas_thread
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import AnyPrior
from likely.core.warnings import Note, warn
from likely.distributions.categorical.sparse_counts import SparseRows, is_sparse
from likely.distributions.constant_columns import NARROW, constant_columns
from likely.distributions.distribution import Distribution, added, in_units, lone
from likely.distributions.statistics.counts import member_weights, one_column
from likely.distributions.statistics.feature_sums import FeatureSums, feature_sums
from likely.distributions.statistics.weighted_values import WeightedValues, side_by_side, weighted_values

DOMAINS: dict[str, tuple[Any, str]] = {
    "real": (lambda a: np.isfinite(a), "finite"),
    "positive": (lambda a: a > 0, "positive"),
    "unsigned": (lambda a: a >= 0, "not negative"),
    "probability": (lambda a: (a >= 0) & (a <= 1), "between 0 and 1"),
    "count": (lambda a: (a >= 1) & (a == np.floor(a)), "integers from 1 on"),
}
LOOK = 4096  # rows that `blank` uses
WIDEST = 1 << 16  # largest count of a column whose log-probabilities are tabulated


class ColumnDistribution(Distribution):
    """Independent columns: log p(x) = Σⱼ log p(xⱼ | θⱼ); parameters are numbers, (d,), or (K, d) for a stack.

    A row has log-density −inf if one column has, even where another column has a pole (+inf).
    """

    one_distribution: ClassVar[bool] = True  # not composed of others: a prior applies to all parameters or to none
    _domains: ClassVar[dict[str, str]]  # domain of each parameter, a key of DOMAINS
    _counts_to: ClassVar[str | None] = None  # the parameter that is the largest count, as the number of trials
    _spreads: ClassVar[bool] = False  # True where a constant column makes the scale 0
    _limits: ClassVar[dict[str, tuple[float, str]]] = {}  # value from which a parameter is at its bound, and why
    _support: ClassVar[str] = "real"  # support of entries: "real", "positive" (> 0), "unsigned", "unit", "count"

    def __post_init__(self) -> None:
        me = type(self).__name__
        given = {name: parameter(getattr(self, name), me, name) for name in self._domains}
        try:
            fitted = np.broadcast_arrays(*(np.atleast_1d(part) for part in given.values()))
        except ValueError as error:
            shapes = tuple(part.shape for part in given.values())
            expected = f"{' and '.join(given)} must have shapes that broadcast"
            raise ShapeError(sentence(me, expected, shapes)) from error
        if fitted[0].ndim > 2 or 0 in fitted[0].shape:
            expected = f"{' and '.join(given)} must be numbers, (d,) or (K, d)"
            raise ShapeError(sentence(me, expected, fitted[0].shape))
        parts = {name: np.array(part) for name, part in zip(given, fitted, strict=True)}
        for name, part in parts.items():
            inside, words = DOMAINS[self._domains[name]]
            if not inside(part).all():
                raise DomainError(sentence(me, f"{name} must be {words}", float(part[~inside(part)][0])))
        self._agree(**parts)
        self._set(**parts)

    def _agree(self, **parts: Array) -> None:
        """Raise for parameters that are valid one by one but not together."""

    # ------------------------------------------------------------------ shape

    @property
    def parameters(self) -> dict[str, Array]:
        """All parameters by name, each of shape (d,) or (K, d)."""
        return {name: getattr(self, name) for name in self._domains}

    @property
    def _shape(self) -> tuple[int, ...]:
        return next(iter(self.parameters.values())).shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return self._shape[-1]

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return self._shape[0] if len(self._shape) == 2 else None

    def member(self, k: int) -> Self:
        """One member of a stack."""
        return self.replace(**{name: part[k].copy() for name, part in self.parameters.items()})

    def take(self, index: Any) -> Self:
        """Members `index` as a stack."""
        return self.replace(**{name: part[index] for name, part in self.parameters.items()})

    def marginal(self, columns: Any) -> Self:
        """Marginal distribution of `columns`."""
        at = np.atleast_1d(np.asarray(columns))
        if (
            at.dtype.kind not in "iu"
            or at.ndim != 1
            or (len(at) and not (-self.dim <= at.min() <= at.max() < self.dim))
        ):
            raise DomainError(sentence(type(self).__name__, f"columns must lie in 0 … {self.dim - 1}", at.tolist()))
        return self.replace(**{name: part[..., at].copy() for name, part in self.parameters.items()})

    def _same_shape(self, other: Any) -> None:
        """Raise unless the other distribution has the same number of columns (and members, if both are stacks)."""
        same_columns(self, other)

    def fixed_parameters(self) -> dict[str, Any]:
        """Fixed parameters, which are given and not estimated, as `blank` and the estimators take them."""
        return {}

    @classmethod
    def parameters_seen_in(cls, x: ArrayLike) -> dict[str, Any]:
        """Options of `blank` that depend on all rows, not on the first ones alone."""
        return {}

    # ------------------------------------------- to be defined by a subclass
    # functions of entries without NaN; parameters are passed by name and broadcast against the entries

    _log_pdf: Callable[..., Array]  # (x, …): log p, −inf outside the support
    _cdf: Callable[..., Array]  # (x, …): P(X ≤ x)
    _quantile: Callable[..., Array]  # (p, …): the x with P(X ≤ x) = p
    _entropy: Callable[..., Array]  # (…): entropy −E log p per column, in nats
    mean: Any  # per column; infinite or an error where it does not exist
    refit: Callable[..., Self]  # (stats, prior)
    _plain: Callable[..., Self]  # (d, …): a class method: an initial distribution of d columns
    # (z, shares): statistics of validated rows under weights (m, n), m = 1 if the same for all members
    _collected: Callable[..., Any]

    def _draw(self, *how: Any, **parts: Any) -> Array:
        """(shape, rng, …): independent samples of a shape whose last axes are those of the parameters."""
        shape, rng = how
        return self._quantile(rng.random(shape), **parts)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows. NaN entries are missing values."""
        x = sliceable(x, self.dim)
        me, single = type(self).__name__, self.members is None
        stack = [self] if single else [self.member(k) for k in range(self.members or 0)]

        scores = [one._scorer(n_rows(x)) for one in stack]

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, me)
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, me), me)
            columns = [score(z) for score in scores]
            return columns[0] if single else np.stack(columns, axis=1)

        return map_rows(evaluate, x, self.members)

    def _scorer(self, n: int) -> Callable[[Array], Array]:
        """The function that scores rows: by table lookup for many rows of counts with few values."""
        if self._counts_to is None or not n > 2 * (most := getattr(self, self._counts_to).max()) or most > WIDEST:
            return self._row_sums
        return table_scorer(self, getattr(self, self._counts_to))

    def _row_sums(self, z: Array) -> Array:
        return added(self._entries(z, self._log_pdf))

    def _entries(self, z: Array, f: Any) -> Array:
        """f per entry, 0 where an entry is missing (f is evaluated at a valid placeholder there)."""
        missing = np.isnan(z)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            if not missing.any():
                return np.asarray(f(z, **self.parameters))
            return np.where(missing, 0.0, f(np.where(missing, self._harmless, z), **self.parameters))

    takes_parts: ClassVar[bool] = False  # True where one large block is less work than many
    _harmless: ClassVar[float] = 0.5  # placeholder of missing entries: in the support of every such distribution

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, d), or (n, K, d) for a stack."""
        return np.asarray(self._draw((n, *self._shape), rng, **self.parameters))

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution function P(X ≤ x) for one column; (n, K) for a stack."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            return np.asarray(self._cdf(one_column(x, self.members), **self._one_column()))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF) for one column; (n, K) for a stack. NaN outside 0 … 1."""
        p = np.asarray(p, dtype=np.float64)
        p = p[..., None] if self.members else p
        inside = (p >= 0) & (p <= 1)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            found = self._quantile(np.where(inside, p, 0.5), **self._one_column())
        return np.where(inside, found, np.nan)

    def _one_column(self) -> dict[str, Any]:
        if self.dim != 1:
            me, remedy = type(self).__name__, "take marginal([j]) first"
            expected = "cdf and quantile are defined for one column"
            raise DomainError(sentence(me, expected, f"{self.dim} columns", remedy))
        return {name: part[..., 0] for name, part in self.parameters.items()}

    @property
    def median(self) -> Array:
        """Median per column."""
        return np.asarray(self._quantile(np.full(self._shape, 0.5), **self.parameters))

    @property
    def expected(self) -> Array:
        """Value for imputing missing entries: the mean, or the median where there is no mean."""
        mean = np.asarray(self.mean)
        return mean if np.isfinite(mean).all() else np.where(np.isfinite(mean), mean, self.median)

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E log p, summed over columns; one per member for a stack."""
        return in_units(lone(self._entropy(**self.parameters).sum(axis=-1)), bits)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: all of them."""
        return sum(int(part.size) for part in self.parameters.values())

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, **fixed: Any) -> Self:
        """Initial model: fitted to the first rows, or a default where they have no observed entry."""
        if not hasattr(cls, "_plain"):
            return super().blank(x)  # a distribution that cannot be fitted
        z = rows(x, None, cls.__name__)[:LOOK]
        if z.shape[1] == 0:
            raise ShapeError(sentence(cls.__name__, "at least one column is needed", z.shape))
        plain = cls._plain(z.shape[1], **fixed)
        found = plain.refit(plain.collect(z)) if np.isfinite(z).any() else plain
        if members is None:
            return found
        return found.replace(
            **{name: np.repeat(part[None], members, axis=0) for name, part in found.parameters.items()}
        )

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> Self:
        """The distribution with this mean and variance (method of moments)."""
        expected = "mean and variance do not determine this distribution"
        raise DomainError(sentence(cls.__name__, expected, remedy="use fit"))

    @classmethod
    def fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Maximum-likelihood estimate for weighted rows (with a prior, the posterior mode)."""
        refuse_empty(x, cls.__name__)
        if cls._support == "count":
            refuse_fractions(x, cls.__name__)
        return super().fit(x, weight, **options)

    def estimated_from(self, blocks: Blocks, prior: Any, *args: Any, **how: Any) -> FitReport:
        """Report of the fit; warns of constant columns and of parameters at their bounds, if there is no prior."""
        report = super().estimated_from(blocks, prior, *args, **how)
        if prior is None or isinstance(prior, str):
            constant = constant_columns(blocks, type(self).__name__) if self._spreads else ()
            if len(constant):
                warn(Note(type(self).__name__, f"{{columns}} {NARROW}", columns=tuple(int(j) for j in constant)))
            report.model._warn_of_limits(constant)
        return report

    def _warn_of_limits(self, already_warned: Any = ()) -> None:
        """Warn of columns in which a parameter is at its upper bound; not of those in `already_warned`."""
        for name, (most, why) in self._limits.items():
            part = np.atleast_2d(getattr(self, name))
            held = np.setdiff1d(np.flatnonzero((part >= most).any(axis=0)), already_warned)
            if len(held):
                got = f"{name} is held at {part[:, held].max():.0e}"
                warn(Note(type(self).__name__, f"{{columns}} {why}: {got}", columns=tuple(held.tolist())))

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Unbiased estimate of the parameters; a weight of k counts as k copies."""
        return super().unbiased_fit(x, weight)

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Method of moments: the distribution with the mean and variance (over n) of weighted rows (n, d)."""
        refuse_options(options, f"{cls.__name__}.moments_fit")
        return cls.from_moments(*column_moments(x, weight, cls.__name__))

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> Any:
        """Sufficient statistics of weighted rows (n, d); missing entries have weight 0.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) is the member of each row (−1: none).
        """
        me, n = type(self).__name__, n_rows(x)
        w = weights(weight, n, me)
        if n > ROWS * BLOCKS and not self.takes_parts:
            return self._collect_blocks(x, w, labels)
        z = rows(x, self.dim, me)
        refuse_infinite(z, me)
        refuse_outside(z, self._support, me)
        return self._collected(z, member_weights(w, labels, n, self.members, me))

    def _collect_blocks(self, x: Any, w: Array | None, labels: Index | None) -> Any:
        try:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        except DataError:
            z = rows(x, self.dim, type(self).__name__)  # the same error, with the row number in the whole table
            refuse_infinite(z, type(self).__name__)
            refuse_outside(z, self._support, type(self).__name__)
            raise

    def _learned(self, **parts: Array) -> Self:
        """The distribution with these parameters; raises where overflow or underflow made them invalid."""
        for name, part in parts.items():
            valid = np.isfinite(part) & DOMAINS[self._domains[name]][0](part)
            if not valid.all():
                got = f"{name} = {float(part[~valid][0]):g}"
                raise too_large(type(self).__name__, valid, got)
        return self.replace(**parts)

    def _check(self, stats: Any) -> None:
        if not stats.total_weight > 0:
            me, remedy = type(self).__name__, "or give a prior"
            raise DataError(sentence(me, "at least one row with weight is needed", "none", remedy))
        self._fits(stats)

    def _fits(self, stats: Any) -> None:
        if stats.weight.shape != self._shape:
            me = type(self).__name__
            raise ShapeError(sentence(me, f"statistics must be of shape {self._shape}", stats.weight.shape))


class FeatureDistribution(ColumnDistribution):
    """Exponential family: the sufficient statistics are sums of a few features of each entry.

    A subclass defines `_features(x)`, `_from_means` (maximum likelihood: parameters that match the mean features) and
    `_expected_log` (E log p as a function of mean features).
    """

    _n_features: ClassVar[int]

    _features: Callable[[Array], list[Array]]  # of entries
    _from_means: Callable[[list[Array]], dict[str, Array]]  # maximum-likelihood parameters for mean features
    _expected_log: Callable[..., Array]  # (means, …): mean log p of entries with these mean features

    def _collected(self, z: Array, shares: Any) -> FeatureSums:
        return feature_sums(z, shares, self.members, self._features, self._n_features, self._harmless)

    def refit(self, stats: FeatureSums, prior: AnyPrior | None = None) -> Self:
        """Maximum-likelihood estimate, or with a prior the posterior mode; unobserved columns keep their parameters."""
        self._fits(stats)
        if not (finite := np.isfinite(stats.sums).all(axis=-1)).all():
            raise too_large(type(self).__name__, finite, "sums that overflow")
        if prior is not None:
            return prior.update(stats).point("mode")
        self._check(stats)
        observed = stats.weight > 0
        found = self._from_means(stats.means(self._plain(1)._features(np.full(1, self._harmless))))
        return self._learned(**{name: np.where(observed, part, getattr(self, name)) for name, part in found.items()})

    def objective(self, stats: FeatureSums, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._fits(stats)
        means = stats.means(self._plain(1)._features(np.full(1, self._harmless)))
        terms = stats.weight * np.where(stats.weight > 0, self._expected_log(means, **self.parameters), 0.0)
        value = float(terms.sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))


class ValueDistribution(ColumnDistribution):
    """Distribution whose statistics are the distinct values with their weights (no fixed-size sufficient statistic).

    A subclass defines `_from_values` for one column: maximum-likelihood parameters for sorted values (m,) with
    weights (m,).
    """

    takes_parts = True  # values are sorted, so one large block is less work than many
    _from_values: Callable[..., dict[str, float]]  # (values, weight, …): new parameters; current ones by name

    def _collected(self, z: Array, shares: Any) -> WeightedValues:
        return weighted_values(z, shares, self.members)

    def refit(self, stats: WeightedValues, prior: AnyPrior | None = None) -> Self:
        """Maximum-likelihood estimate, or with a prior the posterior mode; unobserved columns keep their parameters."""
        self._fits(stats)
        if prior is not None:
            return self._mode(prior, stats)
        self._check(stats)
        parts = {name: np.array(part) for name, part in self.parameters.items()}
        flat = {name: part.reshape(-1) for name, part in parts.items()}
        with one_blas_thread():
            self._from_cells(stats, flat)
        return self._learned(**parts)

    def _from_cells(self, stats: WeightedValues, flat: dict[str, Array]) -> None:
        """Write the maximum-likelihood parameters of each (member, column) cell with data into flattened arrays."""
        for cell, values, weight in stats.cells():
            found = self._from_values(values, weight, **{name: float(part[cell]) for name, part in flat.items()})
            for name, number in found.items():
                flat[name][cell] = number

    def _log_learned(self, x: Array, **parts: Array) -> Array:
        """Log-density of the values in the statistics; count distributions also accept expected (fractional) counts."""
        return np.asarray(self._log_pdf(x, **parts))

    def objective(self, stats: WeightedValues, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._fits(stats)
        own = {name: part.reshape(-1)[stats.cell] for name, part in self.parameters.items()}
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            logs = self._log_learned(stats.value, **own)
        value = float((stats.each * logs)[stats.each > 0].sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def joined_stats(self, parts: list[WeightedValues]) -> WeightedValues:
        """Statistics of consecutive members as those of the whole stack."""
        return side_by_side(parts)


def table_scorer(distribution: ColumnDistribution, most: Array) -> Callable[[Array], Array]:
    """Log-density of rows of counts 0 … most by table lookup; −inf for other values, 0 for missing entries."""
    tables = []
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        for j, top in enumerate(most.tolist()):
            own = {name: part[j] for name, part in distribution.parameters.items()}
            tables += [distribution._log_pdf(np.arange(top + 1.0), **own), np.array([-np.inf, 0.0])]
    flat = np.concatenate(tables)
    start = np.concatenate([[0], np.cumsum(most + 3)[:-1]]).astype(np.intp)

    def score(z: Array) -> Array:
        with np.errstate(invalid="ignore"):
            at = np.where((z >= 0) & (z <= most) & (z == np.floor(z)), z, most + 1)
        at = np.where(np.isnan(z), most + 2, at)
        return np.asarray(flat[at.astype(np.intp) + start].sum(axis=1))

    return score


_OUTSIDE: dict[str, tuple[Any, str]] = {
    "positive": (lambda z: z <= 0, "values must be positive"),
    "unsigned": (lambda z: z < 0, "values must not be negative"),
    "unit": (lambda z: (z < 0) | (z > 1), "values must lie in 0 … 1"),
    "count": (lambda z: z < 0, "counts must not be negative"),
}


def outside(z: Array, support: str) -> tuple[Mask, str] | None:
    """Mask of entries (n, d) outside the support, and the expectation for the message; None if there are none."""
    if support not in _OUTSIDE:
        return None
    beyond, expected = _OUTSIDE[support]
    with np.errstate(invalid="ignore"):
        bad = beyond(z)
    return (bad, expected) if bad.any() else None


def refuse_outside(z: Array, support: str, whose: str) -> None:
    """Raise for entries outside the support; the first is named by row and column."""
    found = outside(z, support)
    if found is not None:
        i, j = (int(k) for k in np.argwhere(found[0])[0])
        raise BadEntry(whose, found[1], z[i, j], i, j, "correct it, or replace it by NaN")


def same_columns(distribution: Any, other: Any) -> None:
    """Raise unless both are of the same class, with the same numbers of columns and members."""
    me = type(distribution).__name__
    if not isinstance(other, type(distribution)):
        raise DomainError(sentence(f"{me}.kl", f"a {me} is needed", type(other).__name__, "use lk.kl_divergence"))
    if distribution.dim != other.dim or len({distribution.members, other.members} - {None}) > 1:
        got = [
            f"{one.dim} columns" + (f" and {one.members} members" if one.members else "")
            for one in (distribution, other)
        ]
        raise ShapeError(
            sentence(f"{me}.kl", "both distributions must have the same columns and members", " and ".join(got))
        )


def too_large(whose: str, valid: Any, got: str) -> DataError:
    """The error for a column whose values make sums or parameters overflow; `valid` (..., d) is False there."""
    column = int(np.argwhere(~valid)[0][-1])
    expected = f"values of column {column} must be such that sums and parameters are finite"
    return DataError(sentence(whose, expected, got, "rescale the column"))


def refuse_options(options: dict[str, Any], whose: str, known: str = "") -> None:
    """Raise for unknown options."""
    if options:
        expected = f"no options but {known} are known" if known else "there are no options"
        raise DomainError(sentence(whose, expected, next(iter(options))))


def refuse_empty(x: Any, whose: str) -> None:
    """Raise if there are no rows."""
    if n_rows(x) == 0 if is_sparse(x) else hasattr(x, "__len__") and len(x) == 0:
        raise DataError(sentence(whose, "at least one row is needed", "0 rows"))


def fractions(x: Any, whose: str) -> tuple[Index, Index, Array]:
    """Rows, columns and values of the entries that are not integers; none for input that can be read only once."""
    if is_sparse(x):
        matrix = SparseRows.of(x, None, whose).matrix
        at = np.flatnonzero(broken(matrix.data))
        return np.searchsorted(matrix.indptr, at, side="right") - 1, matrix.indices[at], matrix.data[at]
    if not hasattr(x, "__len__"):
        return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
    z = rows(x, None, whose)
    i, j = np.nonzero(broken(z))
    return i, j, z[i, j]


def broken(z: Array) -> Mask:
    """Mask of finite numbers that are not integers."""
    with np.errstate(invalid="ignore"):
        return np.asarray((z != np.floor(z)) & np.isfinite(z))


def refuse_fractions(
    x: Any, whose: str, remedy: str = "round it, or use a distribution of real numbers", names: Any = None
) -> None:  # fmt: skip
    """Raise for entries that are not integers, which have probability 0 under a distribution of counts."""
    i, j, values = fractions(x, whose)
    if len(i):
        column = int(j[0]) if names is None else repr(names[j[0]])
        got = f"{values[0]:g} at row {i[0]}, column {column}"
        raise DataError(sentence(whose, "counts must be integers", got, remedy))


def warn_of_fractions(x: Any, whose: str, what: str) -> None:
    """Warn of columns with entries that are not integers; `what` says how these are treated."""
    at = np.unique(fractions(x, whose)[1])
    if len(at):
        warn(Note(whose, f"{{columns}} not all integers: {what}", columns=tuple(at.tolist())))


def column_moments(x: Any, weight: Any, whose: str) -> tuple[Array, Array]:
    """Mean and variance (over n) per column of weighted rows; missing entries have weight 0."""
    z = rows(x, None, whose)
    refuse_infinite(z, whose)
    w = weights(weight, len(z), whose)
    entry_weight = np.where(np.isnan(z), 0.0, 1.0 if w is None else w[:, None])
    total = entry_weight.sum(axis=0)
    refuse_few(total, 0.0, whose)
    mean = ((entry_weight / total) * np.where(entry_weight > 0, z, 0.0)).sum(axis=0)
    half = np.where(entry_weight > 0, 0.5 * z - 0.5 * mean, 0.0)  # half the deviation, which cannot overflow
    unit = np.abs(half).max(axis=0, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)
    with np.errstate(over="ignore"):
        variance = 4 * (entry_weight * (half / unit) ** 2).sum(axis=0) / total * unit * unit
    if not np.isfinite(variance).all():
        raise DataError(sentence(whose, "the variance of each column must be finite", "values too far apart"))
    return mean, variance


def unsigned_variance(variance: Any, whose: str) -> Array:
    """Validated variance: not negative."""
    given = parameter(variance, whose, "variance")
    if not (given >= 0).all():
        raise DomainError(sentence(f"{whose}.from_moments", "variance must not be negative", float(given.min())))
    return given


def refuse_few(weight: Array, more_than: float, whose: str) -> None:
    """Raise unless each column is observed in more than that many rows."""
    if not (weight > more_than).all():
        expected = f"each column must be observed in more than {more_than:g} rows"
        raise DataError(sentence(whose, expected, float(np.min(weight, initial=np.inf))))

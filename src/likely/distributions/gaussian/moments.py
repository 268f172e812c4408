"""Additive sufficient statistics of a Gaussian: weight, mean and scatter matrix.

Means are stored as differences (`shift`) from an origin near the data, and scatters about their own mean, so that an
offset of 1e8 costs no digits. Two statistics are merged by the formula of Chan, Golub and LeVeque. On NIST's NumAcc4,
plain sums of squares keep no digit of the standard deviation, this keeps all that the data have.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Self, TypeVar

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, aligned, refuse_infinite
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value

S = TypeVar("S", "Moments", "ColumnMoments")


@dataclass(frozen=True, eq=False)
class Moments(Addable, Value):
    """Weight, mean and scatter matrix of rows, or of rows under K columns of weights."""

    weight: Annotated[Array, declared.numbers("*", 0)]  # (...)
    origin: Annotated[Array, declared.numbers("d")]  # (d,): means are kept relative to it
    shift: Annotated[Array, declared.numbers("* d")]  # (..., d): mean − origin; 0 where the weight is 0
    scatter: Annotated[Array, declared.numbers("* d d")]  # (..., d, d): Σ w (x − mean)(x − mean)ᵀ
    entropy: Annotated[Array, declared.numbers("*")]  # (...): Σ w H[missing entries | observed entries], in nats
    complete: bool = True
    # (..., d): weight of the observed entries per column; None if all are observed
    seen: Annotated[Array | None, declared.maybe(declared.numbers("* d", 0))] = None

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that a scatter matrix is symmetric up to rounding, with a non-negative diagonal."""
        scatter, mean = fields["scatter"], fields["origin"] + fields["shift"]
        variance = np.diagonal(scatter, axis1=-2, axis2=-1)
        if (variance < 0).any():
            return "the diagonal of scatter must not be negative"
        # a constant column has scatter 0 and leaves only the rounding of its mean
        unit = np.hypot(np.sqrt(variance), 1e-6 * np.sqrt(fields["weight"])[..., None] * np.abs(mean))
        d = unit.shape[-1]
        return "" if _symmetric(scatter.reshape(-1, d, d), unit.reshape(-1, d)) else "scatter must be symmetric"

    @property
    def filled(self) -> bool:
        """True if missing entries were filled by a model (expected statistics of an E-step)."""
        return not self.complete

    @property
    def observed(self) -> Array:
        """Weight of the observed entries per column (..., d)."""
        return np.broadcast_to(self.weight[..., None], self.shift.shape) if self.seen is None else self.seen

    @property
    def mean(self) -> Array:
        """Weighted mean (..., d)."""
        return self.origin + self.shift

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.weight))

    @property
    def variance(self) -> Array:
        """Variance per column, scatter / weight (..., d); 0 where the weight is 0."""
        return _ratio(np.diagonal(self.scatter, axis1=-2, axis2=-1), self.weight[..., None])

    def __add__(self, other: Moments) -> Moments:
        shift_b = _shift_about(other, self.origin)
        weight, shift, delta, factor = _merge(self.weight, self.shift, other.weight, shift_b)
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter
            scatter += (factor[..., None, None] * delta[..., :, None]) * delta[..., None, :]
        return Moments.trusted(
            weight=weight, origin=self.origin, shift=shift, scatter=_finite(scatter),
            entropy=self.entropy + other.entropy, complete=self.complete and other.complete,
            seen=None if self.seen is None and other.seen is None else self.observed + other.observed,
        )  # fmt: skip

    def __mul__(self, factor: float) -> Self:
        parts = {name: getattr(self, name) * factor for name in ("weight", "scatter", "entropy")}
        if factor == 0:  # without weight there is no mean
            return self.replace(**parts, shift=np.zeros_like(self.shift), complete=True, seen=None)
        if self.seen is not None:
            parts["seen"] = self.seen * factor
        return self.replace(**parts)

    __rmul__ = __mul__

    def moved(self, origin: Array) -> Array:
        """Means relative to another origin (..., d)."""
        return _shift_about(self, origin)

    def pooled(self) -> Moments:
        """Moments of the rows of all members together."""
        return _pooled(self)

    def columns(self) -> ColumnMoments:
        """The diagonal as `ColumnMoments`, for distributions with uncorrelated columns."""
        weight = np.broadcast_to(self.weight[..., None], self.shift.shape).copy()
        scatter = np.diagonal(self.scatter, axis1=-2, axis2=-1).copy()
        return ColumnMoments.trusted(
            rows=self.weight, weight=weight, origin=self.origin, shift=self.shift, scatter=scatter
        )

    def member(self, k: int) -> Moments:
        """The moments of one member of a stack."""
        seen = None if self.seen is None else self.seen[k]
        return self.replace(
            weight=self.weight[k], shift=self.shift[k], scatter=self.scatter[k], entropy=self.entropy[k], seen=seen
        )


@dataclass(frozen=True, eq=False)
class ColumnMoments(Addable, Value):
    """Weight, mean and scatter per column: missing entries have weight 0."""

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    origin: Annotated[Array, declared.numbers("d")]  # (d,)
    shift: Annotated[Array, declared.numbers("* d")]  # (..., d)
    scatter: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): Σ w (x − mean)²

    complete = True

    @property
    def observed(self) -> Array:
        """Weight of the observed entries per column (..., d)."""
        return self.weight

    @property
    def mean(self) -> Array:
        """Weighted mean of the observed entries (..., d)."""
        return self.origin + self.shift

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.rows))

    @property
    def variance(self) -> Array:
        """Variance per column, scatter / weight (..., d); 0 where the weight is 0."""
        return _ratio(self.scatter, self.weight)

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        shift_b = _shift_about(other, self.origin)
        weight, shift, delta, factor = _merge(self.weight, self.shift, other.weight, shift_b, per_column=True)
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter + factor * delta**2
        return ColumnMoments.trusted(
            rows=self.rows + other.rows, weight=weight, origin=self.origin, shift=shift, scatter=_finite(scatter)
        )

    def __mul__(self, factor: float) -> Self:
        parts = {name: getattr(self, name) * factor for name in ("rows", "weight", "scatter")}
        return self.replace(**parts, shift=self.shift if factor else np.zeros_like(self.shift))

    __rmul__ = __mul__

    def moved(self, origin: Array) -> Array:
        """Means relative to another origin (..., d)."""
        return _shift_about(self, origin)

    def pooled(self) -> ColumnMoments:
        """Moments of the rows of all members together."""
        return _pooled(self)

    def member(self, k: int) -> ColumnMoments:
        """The moments of one member of a stack."""
        return self.replace(rows=self.rows[k], weight=self.weight[k], shift=self.shift[k], scatter=self.scatter[k])


def overflow(whose: str = "Gaussian") -> DataError:
    """The error for squares that overflow."""
    got = "values of about 1e154 or more, whose squares overflow"
    return DataError(sentence(whose, "sums of squares must be finite", got, "rescale the columns"))


def refuse_others(stats: Any, d: int, whose: str, full: bool = False) -> None:
    """Raise unless `stats` are moments of d columns; with `full`, moments with scatter matrices."""
    if not isinstance(stats, Moments if full else Moments | ColumnMoments):
        wanted = "Moments" if full else "Moments or ColumnMoments"
        raise ShapeError(
            sentence(whose, f"{wanted} are needed", type(stats).__name__, "collect with a Gaussian of this kind")
        )
    if stats.shift.shape[-1] != d:
        raise ShapeError(sentence(whose, f"statistics of {d} columns are needed", stats.shift.shape[-1]))


def refuse_expected(stats: Moments | ColumnMoments, whose: str) -> None:
    """Raise for expected statistics of an E-step: the evidence is defined for complete rows."""
    if not stats.complete:
        expected = "the evidence needs complete rows"
        raise DomainError(sentence(whose, expected, "expected statistics of rows with missing values"))


def _finite(scatter: Array) -> Array:
    if not np.isfinite(scatter).all():
        raise overflow()
    return scatter


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)


def _shift_about(stats: Moments | ColumnMoments, origin: Array) -> Array:
    """The shift of `stats` relative to another origin."""
    if stats.origin is origin:
        return stats.shift
    if stats.origin.shape != origin.shape:
        raise ShapeError(sentence("Moments", f"both must have {len(origin)} columns", len(stats.origin)))
    has_weight = stats.weight > 0
    if isinstance(stats, Moments):
        has_weight = has_weight[..., None]
    return np.where(has_weight, stats.shift + (stats.origin - origin), 0.0)


def _merge(wa: Array, ma: Array, wb: Array, mb: Array, per_column: bool = False) -> tuple[Array, Array, Array, Array]:
    """Weight and mean of two sets merged, the difference of their means, and wa·wb/(wa + wb) (Chan et al.)."""
    weight = wa + wb
    delta = mb - ma
    share = _ratio(wb, weight)
    by_entry = share if per_column else share[..., None]
    return weight, ma + delta * by_entry, delta, wa * share


def _pooled(stats: S) -> S:
    if stats.shift.ndim == 1:
        return stats
    odd = []  # pairwise: one half of the members is added to the other half, so sixty members take six sums
    while (size := len(stats.shift)) > 1:
        if size % 2:
            odd.append(stats.member(size - 1))
        low, high = np.arange(size // 2), np.arange(size // 2, 2 * (size // 2))
        stats = stats.member(low) + stats.member(high)  # type: ignore[arg-type]
    return sum(odd, stats.member(0))


# ------------------------------------------------------------------ from rows

PIVOT_ROWS = 64  # enough rows for a pivot within a fraction of a standard deviation of the block's mean
STRIP = 1 << 17  # numbers centered at a time: a megabyte, still in the second-level cache for the product
PACKED = 48  # columns up to which pairs of columns are packed
FEATURES = 1 << 17  # features of rows formed at a time, for the same reason
SMALL = 1_000_000  # multiplications up to which OpenBLAS has a kernel for small products, twice as fast with 10 members
FEW = 16  # rows below which pairs are picked by index: making windows costs more than they save
FAR = 400.0  # squared distance from pivot to mean, in variances, at which scatters are still right to 1e-12


def _pivot(x: Array, weight: Array | None) -> Array:
    """The mean of a subsample of the rows with positive weight."""
    step = max(1, len(x) // PIVOT_ROWS)
    subsample = x[::step]
    if weight is not None:
        positive = weight[::step] > 0 if weight.ndim == 1 else weight[::step].any(axis=1)
        subsample = subsample[positive] if positive.any() else x[[np.unravel_index(weight.argmax(), weight.shape)[0]]]
    return subsample.mean(axis=0)


def _far(rest: Array, scatter: Array, total: Array, far: float = FAR) -> Mask:
    """True where the mean lies so far from the pivot that the scatter about it has lost digits."""
    return (rest**2 > far * _ratio(scatter, total)) & (total > 0)


def _weighted_rows(x: Array, weight: Array) -> tuple[Array, Array]:
    """Rows with a positive weight, after squares overflowed: entries of rows without weight must not matter."""
    unweighted = ~weight.any(axis=1)
    if not unweighted.any():
        raise overflow()
    return x[~unweighted], weight[~unweighted]


def _step(n: int, d: int) -> int:
    return max(min(max(2048, STRIP // max(d, 1)), n), 1)  # shorter strips cost the product a sixth at d = 128


_LOCAL = threading.local()


def scratch(use: str, *shape: int) -> Array:
    """Thread-local buffer that is reused: a new megabyte per strip would cost its page faults each time."""
    size = math.prod(shape)
    kept: Array | None = getattr(_LOCAL, use, None)
    if kept is None or len(kept) < size:
        kept = aligned(size)
        setattr(_LOCAL, use, kept)
    return kept[:size].reshape(shape)


def _strips(x: Array, pivot: Array) -> Iterator[tuple[slice, Array]]:
    """Strips of z = x − pivot, in one buffer."""
    n, d = x.shape
    step = _step(n, d)
    buffer = scratch("strip", step, d)
    for a in range(0, n, step):
        strip = x[a : a + step]
        yield slice(a, a + step), _centered(strip, pivot, buffer[: len(strip)])


def _centered(x: Array, pivot: Array, out: Array) -> Array:
    """x − pivot, several rows per NumPy inner loop, which would otherwise be only d long."""
    n, d = x.shape
    side = max(1, 256 // max(d, 1))
    whole = n - n % side
    np.subtract(x[:whole].reshape(-1, side * d), np.tile(pivot, side), out=out[:whole].reshape(-1, side * d))
    np.subtract(x[whole:], pivot, out=out[whole:])
    return out


def _sums_about(pivot: Array, x: Array, weight: Array | None) -> tuple[Array, Array]:
    """Σ w z and Σ w z zᵀ of z = x − pivot."""
    d = x.shape[1]
    sums, products = np.zeros(d), np.zeros((d, d))
    ones = np.ones(_step(*x.shape))
    for at, z in _strips(x, pivot):
        if weight is None:
            sums += ones[: len(z)] @ z
        else:
            sums += weight[at] @ z
            z *= np.sqrt(weight[at])[:, None]
        products += z.T @ z
    return sums, products


def _column_sums_about(pivot: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Σ w z and Σ w z² of z = x − pivot, under each column of weight: (K, d) both."""
    sums, squares = np.zeros((2, weight.shape[1], x.shape[1]))
    for at, z in _strips(x, pivot):
        sums += weight[at].T @ z
        z *= z
        squares += weight[at].T @ z
    return sums, squares


def of_rows(x: Array, weight: Array | None, origin: Array, pivot: Array | None = None) -> Moments | None:
    """Moments of complete rows (n, d); None if an entry is NaN or infinite, or squares overflow.

    Sums are taken about a pivot near the mean of the rows: the product then loses no digits to the distance between
    rows and origin, and the column sums detect any NaN at no cost. If weights move the mean far from the pivot, the
    sums are repeated about that mean.
    """
    n, d = x.shape
    if n == 0:
        return empty((), d, origin)
    first = pivot is None
    with np.errstate(over="ignore", invalid="ignore"):
        pivot = _pivot(x, weight) if pivot is None else pivot
        total = float(n) if weight is None else float(weight.sum())
        sums, scatter = _sums_about(pivot, x, weight)
        if not np.isfinite(sums).all():
            return None
        if total == 0:
            return empty((), d, origin)
        rest = sums / total
        scatter -= total * np.multiply.outer(rest, rest)
        if first and weight is not None and not (rest**2 * total <= FAR * np.diagonal(scatter)).all():
            return of_rows(x, weight, origin, pivot + rest)
    if not np.isfinite(scatter).all():
        return None
    return Moments.trusted(
        weight=np.asarray(total), origin=origin, shift=(pivot - origin) + rest,
        scatter=_not_negative(scatter), entropy=np.zeros(()), complete=True,
    )  # fmt: skip


def _weighted_products(x: Array, weight: Array, pivot: Array) -> tuple[Array, Array, Array]:
    """Σ w (K,), Σ w z (K, d) and Σ w z zᵀ (K, d, d) of z = x − pivot, under each column of weight."""
    n, d = x.shape
    sums = np.zeros((1 + d + d * (d + 1) // 2, weight.shape[1]))
    for at, circle, features in feature_strips(n, d, *sums.shape):
        np.subtract(x[at].T, pivot[:, None], out=circle[:d])
        expand(circle, d, features)
        sums += features @ weight[at]
    return sums[0].copy(), sums[1 : d + 1].T, unpack(sums[d + 1 :], d)


def feature_strips(n: int, d: int, p: int, members: int) -> Iterator[tuple[slice, Array, Array]]:
    """Strips of rows with two reused buffers: (d + d // 2, rows), and (p, rows) for p features."""
    step = max(min(feature_rows(p, members), n), 1)
    circle, features = scratch("circle", d + d // 2, step), scratch("features", p, step)
    for a in range(0, n, step):
        rows = min(step, n - a)
        yield slice(a, a + rows), circle[:, :rows], features[:, :rows]


@cache
def feature_rows(p: int, members: int, most: int = SMALL) -> int:
    """Rows per strip: as many as fit the cache, no more than the small BLAS kernel takes unless strips get short."""
    rows, small = max(256, FEATURES // p), most // (p * members)
    return min(rows, small if small >= 256 else rows) // 8 * 8


def of_complete_rows(x: Array, weight: Array, origin: Array) -> Moments | None:
    """`of_weighted_rows`; None if an entry is NaN or infinite, also in a row of weight 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        complete = bool(np.isfinite(np.add.reduce(x, axis=None)))
    return of_weighted_rows(x, weight, origin) if complete else None


def of_weighted_rows(x: Array, weight: Array, origin: Array) -> Moments:
    """Moments of complete rows under each column of `weight` (n, K), as one product with packed pairs of columns.

    Where the mean of a member lies many standard deviations from the pivot, its sums are repeated about its own mean:
    the packed product would lose digits.
    """
    if x.shape[1] > PACKED:  # packed pairs save half the arithmetic, but not where they leave the cache
        members = [of_rows(x, np.ascontiguousarray(w), origin) for w in weight.T]
        if all(m is not None for m in members):
            return stacked([m for m in members if m is not None])
    with np.errstate(over="ignore", invalid="ignore"):
        pivot = _pivot(x, weight) if len(x) else origin
        total, first, second = _weighted_products(x, weight, pivot)
        rest = _ratio(first, total[:, None])
        scatter = second - total[:, None, None] * (rest[:, :, None] * rest[:, None, :])
    if not np.isfinite(scatter).all():
        return of_weighted_rows(*_weighted_rows(x, weight), origin)
    shift = (pivot - origin) + rest
    far = _far(rest, np.diagonal(scatter, axis1=1, axis2=2), total[:, None]).any(axis=1)
    for k in np.flatnonzero(far):
        one = of_rows(x, weight[:, k], origin, pivot + rest[k])
        if one is not None:
            scatter[k], shift[k] = one.scatter, one.shift
    shift = np.where(total[:, None] > 0, shift, 0.0)
    return Moments.trusted(
        weight=total, origin=origin, shift=shift, scatter=_not_negative(scatter), entropy=np.zeros(len(total)),
        complete=True,
    )  # fmt: skip


def columns_of_rows(x: Array, weight: Array | None, origin: Array, at: Index | None = None) -> ColumnMoments:
    """Column moments of rows (n, d) where NaN is a missing value; weight (n,), (n, K) or None.

    The sums detect non-finite entries at no cost; only then are infinities searched. `at` (n,) are the row numbers for
    the message.
    """
    n, d = x.shape
    w = np.ones((n, 1)) if weight is None else weight if weight.ndim == 2 else weight[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        pivot = _pivot(x, weight) if n else origin
        sums, squares = _column_sums_about(pivot, x, w)
        clean = bool(np.isfinite(sums).all())
    if clean:
        entry_weight = np.repeat(w.sum(axis=0)[:, None], d, axis=1)
    else:
        refuse_infinite(x, "Gaussian", at)
        mask = ~np.isnan(x)
        pivot = _observed_mean(np.where(mask, x, 0.0), mask, origin)
        entry_weight = w.T @ mask
    with np.errstate(over="ignore", invalid="ignore"):
        if not clean:
            z = np.where(mask, x - pivot, 0.0)
            sums, squares = w.T @ z, w.T @ (z * z)
        rest = _ratio(sums, entry_weight)
        scatter = squares - entry_weight * rest**2
    if not np.isfinite(scatter).all():
        x, w = _weighted_rows(x, w)
        return columns_of_rows(x, w if weight is None or weight.ndim == 2 else w[:, 0], origin)
    shift = np.where(entry_weight > 0, (pivot - origin) + rest, 0.0)
    far = _far(rest, scatter, entry_weight)
    for k in np.flatnonzero(far.any(axis=1)):
        at = far[k]
        shift[k, at], scatter[k, at] = _about_own_mean(x[:, at], w[:, k], (pivot + rest[k])[at], origin[at])
    parts = {"rows": w.sum(axis=0), "weight": entry_weight, "shift": shift, "scatter": np.maximum(scatter, 0.0)}
    if weight is None or weight.ndim == 1:
        parts = {name: part[0] for name, part in parts.items()}
    return ColumnMoments.trusted(origin=origin, **{k: np.array(v) for k, v in parts.items()})


def _observed_mean(x: Array, mask: Array, otherwise: Array) -> Array:
    """Means of the observed entries; missing ones are 0 in x."""
    count = mask.sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(count > 0, x.sum(axis=0) / np.maximum(count, 1), otherwise)


def _about_own_mean(x: Array, weight: Array, pivot: Array, origin: Array) -> tuple[Array, Array]:
    """Shifts and scatters of columns under one member's weights, with the means as pivots."""
    x, w = x[weight > 0], weight[weight > 0]
    z = np.where(np.isnan(x), 0.0, x - pivot)
    total = w @ ~np.isnan(x)
    rest = w @ z / total
    return (pivot - origin) + rest, w @ (z * z) - total * rest**2


def of_labeled_rows(x: Array, weight: Array | None, labels: Index, members: int, origin: Array, full: bool) -> Any:
    """Moments per member of complete labeled rows; None if an entry is NaN or infinite.

    Rows are sorted by label, centered on their label's mean and summed in segments: the cost does not grow with
    the number of members.
    """
    order = np.argsort(labels, kind="stable")[int((labels < 0).sum()) :]
    x, own = x[order], labels[order]
    w = np.ones(len(x)) if weight is None else weight[order]
    total: Array = np.bincount(own, w, members).astype(np.float64)
    d = x.shape[1]
    starts = np.flatnonzero(np.diff(own, prepend=-1))
    present = own[starts]
    shift, square = np.zeros((members, d)), np.zeros((members, d * d if full else d))
    if len(x):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size, by = np.diff(starts, append=len(x)), total[present, None]
            pivot = x[starts]  # the label's first row, then its mean; the first row may be an outlier of weight 0
            pivot = pivot + _ratio(np.add.reduceat((x - np.repeat(pivot, size, axis=0)) * w[:, None], starts), by)
            z = x - np.repeat(pivot, size, axis=0)
            rest = _ratio(np.add.reduceat(z * w[:, None], starts), by)
            products = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1) if full else z * z
            between = (rest[:, :, None] * rest[:, None, :]).reshape(len(rest), -1) if full else rest * rest
            square[present] = np.add.reduceat(products * w[:, None], starts) - by * between
            shift[present] = (pivot - origin) + rest
        if not (np.isfinite(shift).all() and np.isfinite(square).all()):
            return None
    shift[total == 0], square[total == 0] = 0.0, 0.0
    if not full:
        weights, square = np.repeat(total[:, None], d, axis=1), np.maximum(square, 0.0)
        return ColumnMoments.trusted(rows=total, weight=weights, origin=origin, shift=shift, scatter=square)
    square = _not_negative(square.reshape(members, d, d))
    zero = np.zeros(members)
    return Moments.trusted(weight=total, origin=origin, shift=shift, scatter=square, entropy=zero, complete=True)


def empty(lead: tuple[int, ...], d: int, origin: Array) -> Moments:
    """Moments of no rows: the identity of the sum."""
    return Moments.trusted(
        weight=np.zeros(lead), origin=origin, shift=np.zeros((*lead, d)), scatter=np.zeros((*lead, d, d)),
        entropy=np.zeros(lead), complete=True,
    )  # fmt: skip


def stacked(members: list[Moments]) -> Moments:
    """Statistics of members with the same origin as those of one stack."""
    names = ("weight", "shift", "scatter", "entropy")
    parts = {name: np.stack([getattr(m, name) for m in members]) for name in names}
    if any(m.seen is not None for m in members):
        parts["seen"] = np.stack([m.observed for m in members])
    return Moments.trusted(origin=members[0].origin, complete=all(m.complete for m in members), **parts)


def expand(circle: Array, d: int, out: Array) -> None:
    """Write 1, u and the products of all pairs of columns u into out (1 + d + d (d + 1) / 2, n), pairs as in `packing`.

    `circle` (d + d // 2, n) begins with u (d, n) and is continued here by its first half: the pairs at one cyclic
    distance are then one window against another, and all distances one call of NumPy. With one call per column,
    threads would wait for the interpreter's lock.
    """
    n, (row, entry) = circle.shape[1], circle.strides
    u, products = circle[:d], out[d + 1 :]
    full, half = (d + 1) // 2, d // 2
    out[0], out[1 : d + 1] = 1.0, u
    if n < FEW:
        pairs = u.take(packing(d), axis=0)
        np.multiply(pairs[0], pairs[1], out=products)
        return
    circle[d:] = u[:half]
    windows = np.lib.stride_tricks.as_strided(circle, (full, d, n), (row, row, entry), writeable=False)
    np.multiply(u, windows, out=products[: full * d].reshape(full, d, n))
    if d % 2 == 0:  # the pairs at the largest distance, each once
        np.multiply(u[:half], u[half:], out=products[full * d :])


@cache
def packing(d: int) -> Index:
    """Columns (i, j) of each product in `expand`: j = i, then j = i + 1 modulo d, and so on."""
    distance, i = np.divmod(np.arange(d * (d + 1) // 2), d)
    return np.stack([i, (i + distance) % d])


def unpack(packed: Array, d: int) -> Array:
    """Symmetric matrices (K, d, d) from packed pairs (d (d + 1) / 2, K)."""
    i, j = packing(d)
    out = np.empty((packed.shape[1], d, d))
    out[:, i, j] = packed.T
    out[:, j, i] = packed.T
    return out


def _not_negative(scatter: Array) -> Array:
    """Set negative diagonal entries to 0: rounding may leave −1e-30 for a constant column."""
    i = np.arange(scatter.shape[-1])
    scatter[..., i, i] = np.maximum(scatter[..., i, i], 0.0)
    return scatter


def _symmetric(a: Array, unit: Array) -> bool:
    """Whether matrices (K, d, d) are symmetric up to 1e-8 of their units; in strips, to avoid copying large ones."""
    K, d = unit.shape
    members, rows = max(1, 10**5 // d**2), max(1, 10**5 // d)
    for k in (slice(i, i + members) for i in range(0, K, members)):
        for j in (slice(i, i + rows) for i in range(0, d, rows)):
            apart = np.abs(a[k, j] - np.swapaxes(a[k, :, j], 1, 2))
            if not (apart <= 1e-8 * unit[k, j, None] * unit[k, None] + 1e-300).all():
                return False
    return True

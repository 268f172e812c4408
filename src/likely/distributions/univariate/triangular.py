"""Triangular distribution: piecewise linear density between two ends, with a mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, BadEntry, PerMember, check_option, n_rows, parameter, rows, weights
from likely.core.errors import DataError, DomainError, about_columns, sentence
from likely.core.warnings import warn
from likely.distributions.column_distribution import (
    ValueDistribution,
    column_moments,
    refuse_options,
    unsigned_variance,
)
from likely.distributions.distribution import in_units, lone
from likely.distributions.scale_floor import grain
from likely.distributions.statistics.weighted_values import WeightedValues
from likely.distributions.univariate.triangular_fit import best_triangle
from likely.distributions.univariate.uniform import log_width
from likely.numerics.special import LOG_2, log_ratio

KnownEnds = Literal["", "low", "high", "both"]
STEEPEST = 0.4 * np.sqrt(2.0)  # the skewness of a triangle with its mode at an end
NODES, SHARES = np.polynomial.legendre.leggauss(24)
LIKE = 1 / 3  # ratio of heights above which Gauss–Legendre quadrature is exact to rounding; below, the closed form is
NEAREST = 1e-290  # of the range, from the lowest value: nearer values are merged with it, so that slopes stay finite


@dataclass(frozen=True, eq=False)
class Triangular(ValueDistribution):
    """Triangular distribution.

    p(x | a, c, b) = Πⱼ 2/(b − a) · (x − a)/(c − a) up to c, and (b − x)/(b − c) beyond, in d columns.

    With both ends fixed the likelihood has its maximum at one of the values; otherwise the ends are estimated too, and
    lie beyond the data unless the mode is an extreme value.

    Parameters
    ----------
    low : array-like (d,) or (K, d)
        Lower ends a.
    mode : array-like (d,) or (K, d)
        Modes c.
    high : array-like (d,) or (K, d)
        Upper ends b.
    known : {"", "low", "high", "both"}, default ""
        The ends that are fixed, not estimated.

    See Also
    --------
    Uniform : A constant density.
    TriangularDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 1.3.

    Examples
    --------
    >>> Triangular(0.0, 1.0, 4.0).log_prob([0.5, 1.0, 5.0]).round(4)
    array([-1.3863, -0.6931,    -inf])
    """

    low: Annotated[Array, declared.numbers("* d")]  # a: (d,) or (K, d)
    mode: Annotated[Array, declared.numbers("* d")]  # c
    high: Annotated[Array, declared.numbers("* d")]  # b
    known: KnownEnds = ""

    _domains: ClassVar[dict[str, str]] = {"low": "real", "mode": "real", "high": "real"}
    _spreads: ClassVar[bool] = True

    def _agree(self, **parts: Array) -> None:
        low, mode, high = parts["low"], parts["mode"], parts["high"]
        if not ((low <= mode) & (mode <= high) & (low < high)).all():
            raise DomainError(sentence("Triangular", "low ≤ mode ≤ high, and low below high, are needed"))
        check_option(self.known, KnownEnds, "Triangular", "known")

    def _log_pdf(self, x: Array, low: Array, mode: Array, high: Array) -> Array:
        unit = safe_scale(low, high)
        x, low, mode, high = x * unit, low * unit, mode * unit, high * unit
        left, right = x < mode, x > mode
        # ratios of heights first: one over a denormal width overflows
        along = np.where(left, x - low, np.where(right, high - x, 1.0))
        whole = np.where(left, mode - low, np.where(right, high - mode, 1.0))
        height = log_ratio(along, whole) - np.log(high - low)
        return np.where((x >= low) & (x <= high), height + LOG_2 + np.log(unit), -np.inf)

    def _cdf(self, x: Array, low: Array, mode: Array, high: Array) -> Array:
        unit = safe_scale(low, high)
        x, low, mode, high = x * unit, low * unit, mode * unit, high * unit
        at = np.clip(x, low, high)
        left = ((at - low) / (high - low)) * ((at - low) / np.where(mode > low, mode - low, 1.0))
        before, past = (mode - low) / (high - low), np.where(high > mode, high - mode, 1.0)
        right = before + ((at - mode) / (high - low)) * (1 + (high - at) / past)
        return np.where(at < mode, left, np.where(at > mode, np.minimum(right, 1.0), before))

    def _quantile(self, p: Array, low: Array, mode: Array, high: Array) -> Array:
        unit = safe_scale(low, high)
        low, mode, high = low * unit, mode * unit, high * unit
        width, before = high - low, (mode - low) / (high - low)
        left = low + width * np.sqrt(p * before)
        rest = np.sqrt((1 - p) * ((high - mode) / width))
        # measured from the nearer end: with the mode at low, high − width √(1 − p) would lose small p
        right = np.where(p < 0.5, low + width * ((p + before * (1 - p)) / (1 + rest)), high - width * rest)
        return np.clip(np.where(p < before, left, right), low, high) / unit

    def _entropy(self, low: Array, mode: Array, high: Array) -> Array:
        return 0.5 + log_width(low, high) - LOG_2

    @property
    def mean(self) -> Array:
        """(a + c + b) / 3."""
        return self.low / 3 + self.mode / 3 + self.high / 3

    @property
    def variance(self) -> Array:
        """(r² − r u + u²) / 18 with r = b − a and u = c − a."""
        with np.errstate(over="ignore"):  # overflows to infinity
            r, u = 0.5 * self.high - 0.5 * self.low, 0.5 * self.mode - 0.5 * self.low
            return np.asarray((r * (r - u) + u * u) / 4.5)

    def kl(self, other: Triangular, bits: bool = False) -> PerMember:
        """KL(self ‖ other), integrated piece by piece in closed form; infinite unless other covers the interval."""
        self._same_shape(other)
        inside = (other.low <= self.low) & (self.high <= other.high)
        cuts = np.sort(np.stack([self.low, self.mode, self.high, np.clip(other.mode, self.low, self.high)]), axis=0)
        cross = mean_log_of_lines(cuts, *(_heights(cuts, distribution) for distribution in (self, other)))
        value = np.where(inside, -self._entropy(**self.parameters) - cross, np.inf)
        return in_units(lone(np.maximum(value, 0.0).sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, **fixed: Any) -> Self:
        """Initial model; `low` and `high` are fixed ends: numbers, or one per column."""
        return super().blank(x, members, **fixed)

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike, skewness: ArrayLike = 0.0) -> Triangular:
        """Distribution with this mean, variance and skewness.

        Parameters
        ----------
        skewness : array-like, default 0.0
            The skewness, within ±0.5657; 0 puts the mode in the middle.

        Examples
        --------
        >>> Triangular.from_moments(2.0, 1 / 6)
        Triangular(low=[1.], mode=[2.], high=[3.])
        """
        me = "Triangular"
        spread = unsigned_variance(variance, me)
        given = np.broadcast_arrays(parameter(mean, me, "mean"), spread, parameter(skewness, me, "skewness"))
        if not (given[1] > 0).all() or not (np.abs(given[2]) <= STEEPEST * (1 + 1e-12)).all():
            expected = "variance must be positive, and skewness lie within ±0.5657"
            raise DomainError(sentence("Triangular.from_moments", expected, (given[1].tolist(), given[2].tolist())))
        return cls(*corners(*given))

    @classmethod
    def moments_fit(
        cls, x: ArrayLike, weight: ArrayLike | None = None, low: ArrayLike | None = None, high: ArrayLike | None = None,
        **options: Any,
    ) -> Triangular:  # fmt: skip
        """Method of moments: mean, variance and skewness (over n) of weighted rows; fewer of them with known ends.

        With one known end it matches mean and variance, with two the mean, as closely as these ends allow.

        Parameters
        ----------
        low : array-like, optional
            Known lower ends.
        high : array-like, optional
            Known upper ends.
        """
        refuse_options(options, "Triangular.moments_fit", "low and high")
        mean, variance, skewness = standard_moments(x, weight, "Triangular")
        plain = cls._plain(len(mean), low, high)
        w = weights(weight, n_rows(x), "Triangular")
        plain._refuse_beyond(rows(x, None, "Triangular"), None if w is None else w[:, None] > 0)
        if plain.known == "both":
            mode = np.clip(3 * mean - plain.low - plain.high, plain.low, plain.high)
            return cls(plain.low, mode, plain.high, "both")
        if plain.known == "low":
            return cls(plain.low, *corners_beyond(plain.low, mean, variance), "low")
        if plain.known == "high":
            mode, low = (-part for part in corners_beyond(-plain.high, -mean, variance))
            return cls(low, mode, plain.high, "high")
        warn_of_steepness(skewness, "Triangular")
        return cls(*corners(mean, variance, skewness))

    @classmethod
    def _plain(cls, d: int, low: Any = None, high: Any = None) -> Triangular:
        known = get_args(KnownEnds)[(low is not None) + 2 * (high is not None)]
        ends = np.zeros(d) if low is None else cls._ends(low, d, "low")
        top = ends + 1.0 if high is None else cls._ends(high, d, "high")
        ends = top - 1.0 if low is None and high is not None else ends
        if not (ends < top).all():
            raise DomainError(sentence("Triangular", "low must lie below high"))
        return cls.trusted(low=ends, mode=0.5 * ends + 0.5 * top, high=top, known=known)

    @classmethod
    def _ends(cls, end: Any, d: int, name: str) -> Array:
        given = parameter(end, "Triangular", name)
        if given.shape not in ((), (1,), (d,)):
            raise DomainError(sentence("Triangular", f"{name} must be a number, or one for each of {d} columns", end))
        return np.array(np.broadcast_to(given, (d,)))

    @property
    def n_parameters(self) -> int:
        """Free parameters: the mode, and ends that are not fixed."""
        return int(self.mode.size) * (3 - sum(self._known_ends))

    @property
    def _known_ends(self) -> tuple[bool, bool]:
        return self.known in ("low", "both"), self.known in ("high", "both")

    def fixed_parameters(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name, known in zip(("low", "high"), self._known_ends, strict=True) if known
        }

    def _collected(self, z: Array, shares: Any) -> WeightedValues:
        self._refuse_beyond(z)
        return super()._collected(z, shares)

    def _refuse_beyond(self, z: Array, counts: Any = None) -> None:
        """Raise for rows, or those with weight, outside the fixed ends of every member."""
        if not self.known:
            return
        low, high = self._known_ends
        least = self.low.min(axis=0) if self.members and low else self.low
        most = self.high.max(axis=0) if self.members and high else self.high
        with np.errstate(invalid="ignore"):
            bad = np.argwhere((((z < least) & low) | ((z > most) & high)) & (True if counts is None else counts))
        if len(bad):
            i, j = (int(k) for k in bad[0])
            raise BadEntry("Triangular", "values must lie within the known ends", z[i, j], i, j, "move the ends")

    def _from_values(self, values: Array, weight: Array, **old: float) -> dict[str, float]:
        a, b = (old[name] if known else None for name, known in zip(("low", "high"), self._known_ends, strict=True))
        center = float(values[0])
        if len(values) == 1:
            least = float(grain(center))
            a, b = center - least if a is None else a, center + least if b is None else b
            return {"low": a, "mode": center, "high": b if b > a else a + least}
        with np.errstate(over="ignore"):
            unit = float(values[-1] - values[0])
        if not np.isfinite(unit):  # the ends would overflow
            return {"low": -np.inf, "mode": center, "high": np.inf}
        low_end, high_end = (None if end is None else (end - center) / unit for end in (a, b))
        z = (values - center) / unit
        start = np.flatnonzero(np.diff(np.where(z < NEAREST, 0.0, z), prepend=-1.0))
        with np.errstate(over="ignore"):
            tried = (old["low"] - center) / unit, (old["high"] - center) / unit
        best = best_triangle(z[start], np.add.reduceat(weight, start), low_end, high_end, tried)
        mode, last = float(values[start[best.mode]]), float(values[-1])
        # an end rounded onto a value would give it density 0
        low = min(center + unit * best.low, float(np.nextafter(center, -np.inf)) if mode > center else mode)
        high = max(center + unit * best.high, float(np.nextafter(last, np.inf)) if mode < last else mode)
        low, high = low if a is None else a, high if b is None else b
        return {"low": min(low, mode), "mode": mode, "high": max(high, mode)}

    def weak_prior(self, stats: WeightedValues) -> Any:
        """Pseudo-observations of weight 0.1 from a member's own rows; from all rows where it has one distinct value.

        Rows of other members would make every triangle as wide as all data together.
        """
        from likely.distributions.priors.pseudo_data import STRENGTH, PseudoData

        whole = PseudoData.weak(self, stats).stats
        if self.members is None:
            return PseudoData(self, whole)
        return PseudoData(self, own_values_or(stats, whole, STRENGTH))


def safe_scale(low: Array, high: Array) -> Array:
    """Scale factor: ¼ where the difference of the ends overflows, else 1."""
    return np.where(0.25 * high - 0.25 * low > 4e307, 0.25, 1.0)


def own_values_or(stats: WeightedValues, others: WeightedValues, strength: float) -> WeightedValues:
    """A cell's own values with total weight `strength`; those of `others` where it has at most one distinct value."""
    cells = {cell: (value, each) for cell, value, each in others.cells()}
    if not cells:  # no observed entries
        return others
    mine = {cell: (value, each * (strength / each.sum())) for cell, value, each in stats.cells() if len(value) > 1}
    cells = {cell: mine.get(cell, cells[cell]) for cell in sorted(cells)}
    cell = np.concatenate([np.full(len(value), at) for at, (value, _) in cells.items()]).astype(np.intp)
    value, each = (np.concatenate([both[i] for both in cells.values()]) for i in (0, 1))
    weight = np.bincount(cell, each, stats.weight.size).reshape(stats.weight.shape)
    return stats.trusted(rows=np.full(stats.rows.shape, strength), weight=weight, cell=cell, value=value, each=each)


def _heights(cuts: Array, distribution: Triangular) -> tuple[Array, Array]:
    """Density of a triangle at the two ends of each piece, as limits from inside the piece."""
    middle = 0.5 * (cuts[:-1] + cuts[1:])
    a, c, b = distribution.low, distribution.mode, distribution.high
    rising = middle <= c
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = [
            2
            / (b - a)
            * np.where(rising, (at - a) / np.where(c > a, c - a, 1.0), (b - at) / np.where(b > c, b - c, 1.0))
            for at in (cuts[:-1], cuts[1:])
        ]
    return ends[0], ends[1]


def mean_log_of_lines(cuts: Array, p: tuple[Array, Array], q: tuple[Array, Array]) -> Array:
    """Σ over pieces of ∫ p(x) log q(x) dx, both linear: cuts (m + 1, ...), heights (m, ...) at the pieces' ends."""
    width = np.diff(cuts, axis=0)
    p0, p1 = p
    q0, q1 = (np.maximum(end, 0.0) for end in q)
    small, large = np.minimum(q0, q1), np.maximum(q0, q1)
    like = small > LIKE * large
    each = np.where(like, _smooth(p0, p1, np.where(like, q0, 1.0), np.where(like, q1, 1.0)), 0.0)
    steep = ~like & (large > 0)
    each = np.where(steep, _steep(p0, p1, np.where(steep, q0, 0.0), np.where(steep, q1, 1.0)), each)
    return np.asarray(np.where(width > 0, width * each, 0.0).sum(axis=0))


def _smooth(p0: Array, p1: Array, q0: Array, q1: Array) -> Array:
    u = 0.5 * (NODES + 1)
    line, log = p0[..., None] * (1 - u) + p1[..., None] * u, np.log(q0[..., None] * (1 - u) + q1[..., None] * u)
    return np.asarray((line * log) @ (0.5 * SHARES))


def _steep(p0: Array, p1: Array, q0: Array, q1: Array) -> Array:
    """In q: ∫ (α + β q) log q dq / (q₁ − q₀), with p = α + β q."""
    rise = q1 - q0
    beta = (p1 - p0) / rise
    alpha = p0 - beta * q0
    first = xlogy(q1, q1) - xlogy(q0, q0) - rise
    second = 0.5 * (xlogy(q1 * q1, q1) - xlogy(q0 * q0, q0)) - 0.25 * (q1 + q0) * rise
    return np.asarray((alpha * first + beta * second) / rise)


def corners(mean: Array, variance: Array, skewness: Array) -> tuple[Array, Array, Array]:
    """Lower end, mode and upper end from mean, variance and skewness, which must lie within ±0.5657.

    The three sum to 0 about the mean; their products in pairs sum to −6σ², and their product is 10μ₃ (Viète).

    >>> [round(float(part), 3) for part in corners(np.array(2.0), np.array(2 / 3), np.array(0.0))]
    [0.0, 2.0, 4.0]
    """
    angle = np.arccos(np.clip(skewness / STEEPEST, -1.0, 1.0))
    size = 2 * np.sqrt(2 * variance)
    low, mode, high = (mean + size * np.cos((angle + 2 * np.pi * k) / 3) for k in (1, 2, 0))
    return low, np.clip(mode, low, high), high


def corners_beyond(low: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mode and upper end from mean and variance, for a known lower end: a quadratic equation.

    Moments that no triangle has are replaced by the nearest possible ones: a mode at one of the ends.
    """
    whole = 3 * (mean - low)  # (c − a) + (b − a)
    width = np.clip(0.5 * (whole + np.sqrt(np.maximum(24 * variance - whole**2 / 3, 0.0))), 0.5 * whole, whole)
    return low + (whole - width), low + width


def standard_moments(x: Any, weight: Any, whose: str) -> tuple[Array, Array, Array]:
    """Weighted mean, variance and skewness (over n) of each column; missing entries are skipped."""
    mean, variance = column_moments(x, weight, whose)
    if not (variance > 0).all():
        got = f"{about_columns(np.flatnonzero(variance <= 0).tolist())} constant"
        raise DataError(sentence(whose, "the method of moments needs a variance above 0 per column", got, "use fit"))
    z = rows(x, None, whose)
    w = weights(weight, len(z), whose)
    w_observed = np.where(np.isnan(z), 0.0, 1.0 if w is None else w[:, None])
    cubes = np.where(w_observed > 0, (np.where(w_observed > 0, z, mean) - mean) / np.sqrt(variance), 0.0) ** 3
    return mean, variance, (w_observed * cubes).sum(axis=0) / w_observed.sum(axis=0)


def warn_of_steepness(skewness: Array, whose: str) -> None:
    """Warn of columns that are more skewed than any triangular distribution."""
    steep = np.flatnonzero(np.abs(skewness) > STEEPEST)
    if len(steep):
        how = f"{about_columns(steep.tolist())} more skewed than any triangular distribution ({STEEPEST:.4f})"
        warn(f"{whose}: {how}: the mode is put at an end")

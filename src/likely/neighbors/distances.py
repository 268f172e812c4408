"""Metrics: Minkowski distances of rows that were transformed once (scaled, whitened, standardized)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args

import numpy as np

from likely.core.arrays import Array, Index, check_option, parameter, refuse_infinite, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.core.warnings import warnings_discarded
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_values_em import any_missing, em_moments, expected_rows, gaussian_of
from likely.numerics.spd import cholesky, inverse_factor

PlainMetric = Literal["l1", "l2", "linf", "lp", "scaled", "mahalanobis", "correlation"]
MetricName = Literal[PlainMetric, "euclidean", "manhattan", "cityblock", "chebyshev", "minkowski"]
METRICS: tuple[PlainMetric, ...] = get_args(PlainMetric)
SYNONYMS: dict[str, PlainMetric] = {
    "euclidean": "l2", "manhattan": "l1", "cityblock": "l1", "chebyshev": "linf", "minkowski": "lp",
}  # fmt: skip
WORDS = {
    "l1": "l1 (sum of absolute differences)", "l2": "l2 (Euclidean)", "linf": "linf (largest difference)",
    "scaled": "scaled (columns divided by their within-class standard deviation)",
    "mahalanobis": "mahalanobis (within-class covariance)", "correlation": "correlation (1 − r of two rows)",
}  # fmt: skip
LEARNED = ("scaled", "mahalanobis")  # these need a scale or covariance
HIGHEST = 64.0  # larger powers overflow; the limit is linf


@dataclass(frozen=True, eq=False)
class Metric(Value):
    """A distance between rows: `prepare` transforms them, and then it is (Σ|z|^p)^(1/p)   (Ney 2.5).

    l1, l2, linf and lp are the plain ones; "scaled" divides columns by `scale` (d,); "mahalanobis" whitens rows by a
    covariance `scale` (d, d); "correlation" is 1 − r, half the squared distance of rows brought to mean 0 and
    length 1. A constant row has no correlation: its r with others is 0. Squared Mahalanobis distances of rows
    with missing entries (NaN) are those expected under a Gaussian `distribution` of all rows, if there is one. The
    names "euclidean", "manhattan", "cityblock", "chebyshev" and "minkowski" mean l2, l1, l1, linf and lp.

    >>> Metric("lp", p=3.0).between([[0.0, 0.0]], [[1.0, 1.0], [2.0, 0.0]]).round(3)
    array([[1.26, 2.  ]])
    """

    name: MetricName = "l2"
    p: float = 2.0
    scale: Array | None = None  # (d,) of "scaled", (d, d) of "mahalanobis"
    distribution: Gaussian | None = None  # of all rows: for the expectation of missing entries in "mahalanobis"
    unsure: bool = (
        False  # whether training rows have missing entries: one more column then holds the uncertainty of each
    )

    def __post_init__(self) -> None:
        check_option(self.name, MetricName, "Metric", "metric")
        self._set(name=plain_name(self.name))
        if self.name == "lp" and not 1.0 <= float(self.p) <= HIGHEST:
            expected, remedy = f"p must lie in 1 … {HIGHEST:g}", 'the limit of large p is metric="linf"'
            raise DomainError(sentence("Metric", expected, self.p, remedy))
        p = {"l1": 1.0, "linf": np.inf, "lp": float(self.p)}.get(self.name, 2.0)
        self._set(name=self.name, p=p, scale=_checked_scale(self.name, self.scale))

    @classmethod
    def learned(
        cls, name: MetricName, x: Array, weight: Array | None = None, labels: Index | None = None, *,
        p: float = 2.0, scale: Any = None,
    ) -> Self:  # fmt: skip
        """The metric for rows x (n, d): "scaled" and "mahalanobis" are estimated from them, within classes if these
        are known (`labels`), as `GaussianDensity("pooled")` does.
        """
        name = plain_name(name)
        gaps, distribution = name == "mahalanobis" and any_missing(x), None
        if gaps or (name == "mahalanobis" and scale is None):
            stats = em_moments(x, weight, "Gaussian") if gaps else Gaussian.blank(x).collect(x, weight)
            distribution = gaussian_of(stats)
        if name in LEARNED and scale is None:
            scale = _scale_of(x, weight, labels, "diagonal" if name == "scaled" else "full")
        return cls(name, p, scale if name in LEARNED else None, distribution, gaps)

    def prepare(self, x: Any, whose: str, *, asked: bool = False) -> Array:
        """Rows in coordinates with a plain Minkowski distance; of queries (`asked`) or of training rows."""
        z = rows(x, None if self.scale is None else len(self.scale), whose)
        refuse_infinite(z, whose)
        if self.name == "mahalanobis" and self.distribution is not None:
            return self._expected(z, asked)
        if self.name in ("mahalanobis", "correlation") and np.isnan(z).any():
            remedy = 'use metric="scaled", or impute them first (GaussianDensity().impute)'
            raise DataError(sentence(whose, f'metric="{self.name}" needs rows without missing values', "NaN", remedy))
        if self.name == "scaled":
            return z / np.asarray(self.scale)
        if self.name == "mahalanobis":
            return self._whitened(z)
        return _standardized(z, asked) if self.name == "correlation" else z

    def _expected(self, z: Array, asked: bool) -> Array:
        """Whitened conditional expectations; if training rows have missing entries, √tr of the uncertainty is added."""
        z, spread = self._filled(z)
        out = self._whitened(z)
        return np.column_stack([out, np.sqrt(0.0 * spread if asked else spread)]) if self.unsure else out

    def uncertainty(self, x: Array) -> Array:
        """tr Σ⁻¹Cov[x | observed] of queries (n,), added to squared distances; 0 without missing entries."""
        return np.zeros(len(x)) if self.distribution is None or not any_missing(x) else self._filled(x)[1]

    def _filled(self, z: Array) -> tuple[Array, Array]:
        assert self.distribution is not None
        white = inverse_factor(self._root())
        return expected_rows(self.distribution, z, white.T @ white)

    def distances(self, sums: Array) -> Array:
        """Distances from sums Σ|z|^p of prepared rows."""
        if self.name == "correlation":
            return sums / 2.0
        if self.p == 2.0:
            return np.sqrt(sums)
        return sums if self.p in (1.0, np.inf) else sums ** (1.0 / self.p)

    def between(self, a: Any, b: Any) -> Array:
        """All distances of rows a (m, d) to rows b (n, d), directly (m, n): for few rows, and as a reference."""
        za, zb = self.prepare(a, "Metric", asked=True), self.prepare(b, "Metric")
        with np.errstate(over="ignore"):  # overflow means infinitely far
            more = self.uncertainty(rows(a, None, "Metric"))
            each = [sums(zb, z, self.p) + t for z, t in zip(za, more, strict=True)]
            return self.distances(np.stack(each)) if each else np.empty((0, len(zb)))

    def _root(self) -> Array:
        root = cholesky(np.asarray(self.scale))
        if root is None:
            expected = "covariance must be positive definite"
            raise DomainError(sentence("Metric", expected, "one that is not", 'use metric="scaled"'))
        return root

    def _whitened(self, z: Array) -> Array:
        # no BLAS: results do not depend on the other rows
        return np.einsum("ij,kj->ik", z, inverse_factor(self._root()))


def plain_name(name: MetricName) -> PlainMetric:
    """The name of a metric here, for one that it has elsewhere."""
    return cast(PlainMetric, SYNONYMS.get(name, name) if isinstance(name, str) else name)


def metric_words(metric: Any, p: float) -> str:
    """A metric in words.

    >>> metric_words("manhattan", 2.0), metric_words("lp", 4.0)
    ('l1 (sum of absolute differences)', 'lp with p = 4')
    """
    name = str(plain_name(metric))
    return WORDS.get(name, f"{name} with p = {p:g}")


def sums(known: Array, query: Array, p: float) -> Array:
    """Σ|z|^p of one prepared query (d,) to training rows (n, d), in the order of columns; sums with NaN are rescaled.

    (Adding column by column gives the same bits as the compiled search.)
    """
    out, seen = np.zeros(len(known)), np.zeros(len(known))
    for j, column in enumerate(known.T):
        z = np.abs(column - query[j])
        there = z == z
        z = np.where(there, z, 0.0)
        seen += there
        out = np.maximum(out, z) if p == np.inf else out + (z if p == 1 else z * z if p == 2 else z**p)
    if (seen == known.shape[1]).all():
        return out
    made_up = out if p == np.inf else out * known.shape[1] / np.maximum(seen, 1)
    return np.where(seen == known.shape[1], out, np.where(seen > 0, made_up, np.inf))


def _checked_scale(name: str, scale: Any) -> Array | None:
    if name not in LEARNED:
        return None
    if scale is None:
        raise DomainError(sentence("Metric", f'"{name}" needs a scale', "None", "use Metric.learned, or pass one"))
    a = parameter(scale, "Metric", "scale")
    if a.ndim != (1 if name == "scaled" else 2) or (a.ndim == 2 and a.shape[0] != a.shape[1]):
        wanted = "(d,), standard deviations" if name == "scaled" else "(d, d), a covariance"
        raise ShapeError(sentence("Metric", f'scale of "{name}" must have shape {wanted}', a.shape))
    if name == "scaled" and not (a > 0).all():
        raise DomainError(sentence("Metric", "standard deviations must be above 0", a.min()))
    return a


def _scale_of(x: Array, weight: Array | None, labels: Index | None, kind: CovarianceKind) -> Array:
    """Standard deviations (d,) or covariance (d, d) of rows, within classes if these are known; never singular."""
    members = None if labels is None else int(labels.max()) + 1
    blank = Gaussian.blank(x, kind=kind, members=members, tied=members is not None)
    if kind == "full" and any_missing(x):
        with warnings_discarded():
            return np.array(gaussian_of(em_moments(x, weight, "Gaussian", labels, members)).covariance)
    stats = blank.collect(x, weight) if labels is None else blank.collect(x, weight, labels=labels)
    distribution = blank.refit(stats, blank.weak_prior(stats))
    return np.sqrt(distribution.covariance) if kind == "diagonal" else np.array(distribution.covariance)


def _standardized(z: Array, asked: bool) -> Array:
    """Rows with mean 0 and length 1, with two more columns that separate constant rows from all others."""
    if z.shape[1] < 2:
        raise ShapeError(sentence("Metric", "correlation needs at least two columns", z.shape[1]))
    top = np.abs(z).max(axis=1, keepdims=True, initial=0.0)
    unit = z / np.where(top > 0, top, 1.0)
    centered = unit - unit.mean(axis=1, keepdims=True)
    length = np.sqrt((centered**2).sum(axis=1, keepdims=True))
    flat = length[:, 0] <= 1e-14 * np.sqrt(z.shape[1])
    out = np.zeros((len(z), z.shape[1] + 2))
    out[:, :-2] = np.where(flat[:, None], 0.0, centered / np.where(length > 0, length, 1.0))
    out[flat, -1 if asked else -2] = 1.0
    return out

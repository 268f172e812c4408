"""Expected sufficient statistics of the Student-t distribution: moments weighted by latent precisions.

A row at squared distance q with o observed entries has the expected latent precision r = (ν + o)/(ν + q), which is
about 1 for typical rows and small for outliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.moments import ColumnMoments, Moments

PLAIN = ("seen", "entries", "near", "far", "excess", "level")


@dataclass(frozen=True, eq=False)
class ScaleSums(Addable, Value):
    """Moments under weights w r, and sums over rows for the degrees of freedom.

    Never complete: r depends on the model of the E-step. For independent columns each entry has its own r, and the
    last four sums are (..., d).
    """

    # (..., d + 1): weight of the rows by their number of observed entries
    seen: Annotated[Array, declared.numbers("* e", 0)]
    entries: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries per column
    near: Annotated[Array, declared.numbers("* | * d", 0)]  # (...) or (..., d): Σ w (r − 1) of rows with r > 1
    # as near: Σ w (1 − r) of rows with r < 1; separate, because the difference of both may be tiny
    far: Annotated[Array, declared.numbers("* | * d", 0)]
    excess: Annotated[Array, declared.numbers("* | * d", 0)]  # as near: Σ w (r − 1 − log r)
    # as near: ½ Σ w (o log r + log det of the conditional scale of missing entries)
    level: Annotated[Array, declared.numbers("* | * d")]
    # under weights w r; conditional covariances of missing entries under weights w
    moments: Annotated[Moments | ColumnMoments, declared.stats]

    complete = False

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check the sums of a Student t: moments of the same columns and members; counts from 0 to all columns."""
        inside, entries = fields["moments"], fields["entries"]
        if type(inside).__name__ not in ("Moments", "ColumnMoments") or inside.shift.shape != entries.shape:
            return "moments must be of the same columns and members"
        alike = {fields[name].shape for name in ("near", "far", "excess", "level")}
        if fields["seen"].shape != (*entries.shape[:-1], entries.shape[-1] + 1) or len(alike) > 1:
            return "seen must count 0 to d columns, and all other sums be of one shape"
        return "" if alike <= {entries.shape, entries.shape[:-1]} else "sums must be of the same columns and members"

    @property
    def filled(self) -> bool:
        """True if missing entries were filled by the model; distributions without correlations leave them out."""
        return isinstance(self.moments, Moments) and bool(self.seen[..., 1:-1].any())

    @property
    def rows(self) -> Array:
        """Weight of the rows with at least one observed entry (...)."""
        return np.asarray(self.seen[..., 1:].sum(axis=-1))

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(self.rows.sum())

    @property
    def surplus(self) -> Array:
        """Σ w (r − 1) (...), or (..., d) for independent columns."""
        return np.asarray(self.near - self.far)

    @property
    def pulled(self) -> Array:
        """Σ w r of rows (...)."""
        return self.moments.weight if isinstance(self.moments, Moments) else self.moments.rows

    def __add__(self, other: ScaleSums) -> Self:
        if self.entries.shape != other.entries.shape or type(self.moments) is not type(other.moments):
            expected = f"both must have shape {self.entries.shape} and the same kind"
            raise ShapeError(sentence("ScaleSums", expected, other.entries.shape))
        both: Any = self.moments + other.moments
        return self.trusted(
            **{name: np.asarray(getattr(self, name) + getattr(other, name)) for name in PLAIN}, moments=both
        )

    def __mul__(self, factor: float) -> Self:
        parts = {name: np.asarray(getattr(self, name) * factor) for name in PLAIN}
        return self.trusted(**parts, moments=self.moments * factor)

    __rmul__ = __mul__

    def member(self, k: Any) -> Self:
        """Statistics of one member of a stack, or of several."""
        parts = {name: np.array(getattr(self, name)[k]) for name in PLAIN}
        return self.trusted(**parts, moments=self.moments.member(k))

    def pooled(self) -> Self:
        """Statistics of the rows of all members together."""
        if self.entries.ndim == 1:
            return self
        parts = {name: np.asarray(getattr(self, name).sum(axis=0)) for name in PLAIN}
        return self.trusted(**parts, moments=self.moments.pooled())


def stacked(members: list[ScaleSums]) -> ScaleSums:
    """Statistics of members with the same origin as those of one stack."""
    parts = {name: np.stack([getattr(m, name) for m in members]) for name in PLAIN}
    inside: Any = [m.moments for m in members]
    if isinstance(inside[0], Moments):
        return ScaleSums.trusted(**parts, moments=moments.stacked(inside))
    names = ("rows", "weight", "shift", "scatter")
    columns = {name: np.stack([getattr(m, name) for m in inside]) for name in names}
    return ScaleSums.trusted(**parts, moments=ColumnMoments.trusted(origin=inside[0].origin, **columns))


def side_by_side(parts: list[ScaleSums]) -> ScaleSums:
    """Several stacks as one, about the origin of the first."""
    origin = parts[0].moments.origin
    inside = [p.moments.replace(origin=origin, shift=p.moments.moved(origin)) for p in parts]
    plain = [p.replace(moments=m) for p, m in zip(parts, inside, strict=True)]
    return stacked([p.member(k) for p in plain for k in range(len(p.entries))])


def entry_moments(x: Array, weight: Array, origin: Array) -> ColumnMoments:
    """Column moments of rows (n, d) under one weight per entry (n, d); NaN is a missing value."""
    counted = ~np.isnan(x) & (weight > 0)
    w = np.where(counted, weight, 0.0)
    total = w.sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.where(counted, x - origin, 0.0)
        shift = np.divide((w * z).sum(axis=0), total, out=np.zeros(len(total)), where=total > 0)
        z = np.where(counted, z - shift, 0.0)  # about the mean, against cancellation
        rest = np.divide((w * z).sum(axis=0), total, out=np.zeros(len(total)), where=total > 0)
        scatter = (w * z * z).sum(axis=0) - total * rest**2
    if not np.isfinite(scatter).all():
        raise moments.overflow()
    return ColumnMoments.trusted(
        rows=np.asarray(w.max(axis=1, initial=0.0).sum()), weight=total, origin=origin, shift=shift + rest,
        scatter=np.maximum(scatter, 0.0),
    )  # fmt: skip

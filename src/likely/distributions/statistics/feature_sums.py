"""Sufficient statistics of exponential families: weight and sums of features per column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.statistics.counts import per_member


@dataclass(frozen=True, eq=False)
class FeatureSums(Addable, Value):
    """Σ w of the observed entries, and Σ w t(x) for each of F features t."""

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    sums: Annotated[Array, declared.numbers("* d f")]  # (..., d, F)

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "FeatureSums", name) for name, part in self.field_values().items()}
        lead, shape, sums = (parts[name].shape for name in ("rows", "weight", "sums"))
        if len(lead) > 1 or shape[:-1] != lead or len(shape) != len(lead) + 1 or sums[:-1] != shape:
            got = (lead, shape, sums)
            raise ShapeError(sentence("FeatureSums", "shapes must be (...), (..., d) and (..., d, F)", got))
        if (parts["rows"] < 0).any() or (parts["weight"] < 0).any():
            raise DomainError(sentence("FeatureSums", "weights must not be negative"))
        self._set(**parts)

    def means(self, otherwise: list[Array]) -> list[Array]:
        """Mean of each feature (..., d); `otherwise` where the weight is 0."""
        observed = self.weight > 0
        weight = np.where(observed, self.weight, 1.0)
        found = (self.sums[..., f] / weight for f in range(self.sums.shape[-1]))
        return [np.where(observed, mean, np.ravel(other)[0]) for mean, other in zip(found, otherwise, strict=True)]

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: FeatureSums) -> Self:
        if self.sums.shape != other.sums.shape:
            raise ShapeError(sentence("FeatureSums", f"both must have shape {self.sums.shape}", other.sums.shape))
        return self.trusted(
            **{name: np.asarray(part + getattr(other, name)) for name, part in self.field_values().items()}
        )

    def __mul__(self, factor: float) -> Self:
        return self.trusted(**{name: np.asarray(part * factor) for name, part in self.field_values().items()})

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Sums over the rows of all members together."""
        if self.rows.ndim == 0:
            return self
        return self.trusted(**{name: np.asarray(part.sum(axis=0)) for name, part in self.field_values().items()})

    def member(self, k: Any) -> Self:
        """Sums of one member of a stack, or of several."""
        return self.trusted(**{name: np.array(part[k]) for name, part in self.field_values().items()})


def feature_sums(
    z: Array, shares: Any, members: int | None, features: Callable[[Array], list[Array]], count: int, harmless: float
) -> FeatureSums:
    """Sufficient statistics of rows (n, d), NaN for missing entries, under weights (m, n)."""
    total = shares @ np.ones(len(z))
    observed = ~np.isnan(z)
    complete = bool(observed.all())
    weight = np.repeat(total[:, None], z.shape[1], axis=1) if complete else shares @ observed.astype(np.float64)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        columns = features(z if complete else np.where(observed, z, harmless))
        columns = columns if complete else [np.where(observed, f, 0.0) for f in columns]
    sums = np.stack([shares @ f for f in columns], axis=-1) if count else np.zeros((*weight.shape, 0))
    parts = {"rows": total, "weight": weight, "sums": sums}
    return FeatureSums.trusted(**{name: per_member(part, members) for name, part in parts.items()})

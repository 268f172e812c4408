"""What an exponential family takes from data: how much was seen of each column, and sums of features of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.statistics.counts import per_member


@dataclass(frozen=True, eq=False)
class FeatureSums(Addable, Value):
    """Σ w of the entries that were seen, and Σ w t(x) for each of F features t."""

    rows: Array  # (...): weight of the rows
    weight: Array  # (..., d): weight of the entries that were seen
    sums: Array  # (..., d, F)

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "FeatureSums", name) for name, part in self._field_values().items()}
        lead, shape, sums = (parts[name].shape for name in ("rows", "weight", "sums"))
        if len(lead) > 1 or shape[:-1] != lead or len(shape) != len(lead) + 1 or sums[:-1] != shape:
            got = (lead, shape, sums)
            raise ShapeError(sentence("FeatureSums", "shapes must be (...), (..., d) and (..., d, F)", got))
        if (parts["rows"] < 0).any() or (parts["weight"] < 0).any():
            raise DomainError(sentence("FeatureSums", "weights must not be negative"))
        self._set(**parts)

    def means(self, otherwise: list[Array]) -> list[Array]:
        """Mean of each feature (..., d); that of a harmless entry where nothing was seen."""
        seen = self.weight > 0
        where = np.where(seen, self.weight, 1.0)
        found = (self.sums[..., f] / where for f in range(self.sums.shape[-1]))
        return [np.where(seen, mean, np.ravel(other)[0]) for mean, other in zip(found, otherwise, strict=True)]

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: FeatureSums) -> Self:
        if self.sums.shape != other.sums.shape:
            raise ShapeError(sentence("FeatureSums", f"both must have shape {self.sums.shape}", other.sums.shape))
        return self.trusted(
            **{name: np.asarray(part + getattr(other, name)) for name, part in self._field_values().items()}
        )

    def __mul__(self, factor: float) -> Self:
        return self.trusted(**{name: np.asarray(part * factor) for name, part in self._field_values().items()})

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """All members as one."""
        if self.rows.ndim == 0:
            return self
        return self.trusted(**{name: np.asarray(part.sum(axis=0)) for name, part in self._field_values().items()})

    def member(self, k: Any) -> Self:
        """The sums of one member of a stack, or of some."""
        return self.trusted(**{name: np.array(part[k]) for name, part in self._field_values().items()})


def feature_sums(
    z: Array, shares: Any, members: int | None, features: Callable[[Array], list[Array]], count: int, harmless: float
) -> FeatureSums:
    """The statistic of rows (n, d), NaN where nothing was seen, under weights (m, n)."""
    total = shares @ np.ones(len(z))
    seen = ~np.isnan(z)
    clean = bool(seen.all())
    weight = np.repeat(total[:, None], z.shape[1], axis=1) if clean else shares @ seen.astype(np.float64)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        each = features(z if clean else np.where(seen, z, harmless))
        each = each if clean else [np.where(seen, f, 0.0) for f in each]
    sums = np.stack([shares @ f for f in each], axis=-1) if count else np.zeros((*weight.shape, 0))
    parts = {"rows": total, "weight": weight, "sums": sums}
    return FeatureSums.trusted(**{name: per_member(part, members) for name, part in parts.items()})

"""Sufficient statistics of the gamma distribution: the mean, and the log of the mean minus the mean log.

log x̄ − mean log x determines the shape. As a difference of two means it cancels where a column has a small variance; as

    mean of u − log(1 + u)  with  u = (x − x̄) / x̄,

it is a sum of nonnegative terms. Sums about two means are shifted to the common mean before they are added, as moments
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.statistics.counts import per_member
from likely.numerics.special import deviance, log_ratio

POOR = 1e-4  # relative size below which a shifted sum is computed again about the member's own mean


@dataclass(frozen=True, eq=False)
class PositiveSums(Addable, Value):
    """Σ w of the observed entries, their mean, and Σ w (u − log(1 + u)) about it."""

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    mean: Annotated[Array, declared.numbers("* d", 0)]  # (..., d); 1 where the weight is 0
    lack: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): Σ w (u − log(1 + u)) ≥ 0

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "PositiveSums", name) for name, part in self.field_values().items()}
        lead, *shapes = (part.shape for part in parts.values())
        if len(set(shapes)) > 1 or len(lead) > 1 or shapes[0][:-1] != lead or len(shapes[0]) != len(lead) + 1:
            raise ShapeError(sentence("PositiveSums", "shapes must be (...) and (..., d)", (lead, *shapes)))
        if any((parts[name] < 0).any() for name in ("rows", "weight", "lack")) or (parts["mean"] <= 0).any():
            raise DomainError(sentence("PositiveSums", "weights and sums must not be negative, and means positive"))
        self._set(**parts)

    def means(self, otherwise: Any = None) -> list[Array]:
        """The mean, and the log of the mean minus the mean log."""
        return [self.mean, self.lack / np.where(self.weight > 0, self.weight, 1.0)]

    @property
    def sums(self) -> Array:
        """Mean and sum (..., d, 2), for the check that both are finite."""
        return np.stack([self.mean, self.lack], axis=-1)

    def lack_about(self, mean: Array) -> Array:
        """Σ w (u − log(1 + u)) about another number."""
        return np.asarray(self.lack + np.where(self.weight > 0, self.weight * log_lack(self.mean, mean), 0.0))

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: PositiveSums) -> Self:
        if self.weight.shape != other.weight.shape:
            raise ShapeError(sentence("PositiveSums", f"both must have shape {self.weight.shape}", other.weight.shape))
        pair = {name: np.stack([part, getattr(other, name)]) for name, part in self.field_values().items()}
        return _pooled(self.trusted(**pair))

    def __mul__(self, factor: float) -> Self:
        scaled = {name: np.asarray(getattr(self, name) * factor) for name in ("rows", "weight", "lack")}
        return self.replace(**scaled, mean=np.where(scaled["weight"] > 0, self.mean, 1.0))

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Statistics of the rows of all members together."""
        return self if self.rows.ndim == 0 else _pooled(self)

    def member(self, k: Any) -> Self:
        """Statistics of one member of a stack, or of several."""
        return self.trusted(**{name: np.array(part[k]) for name, part in self.field_values().items()})


def _pooled(stats: Any) -> Any:
    """The sum over the first axis."""
    weight = stats.weight.sum(axis=0)
    share = stats.weight / np.where(weight > 0, weight, 1.0)
    mean = np.where(weight > 0, (share * stats.mean).sum(axis=0), 1.0)
    lack = stats.lack_about(mean).sum(axis=0)
    return stats.trusted(rows=np.asarray(stats.rows.sum(axis=0)), weight=weight, mean=mean, lack=lack)


def log_lack(x: Array, about: Array) -> Array:
    """u − log(1 + u) ≥ 0 for u = (x − r) / r, without cancellation where x is near r."""
    with np.errstate(all="ignore"):
        ratio, u = x / about, (x - about) / about
        near = (ratio > 1e-290) & (ratio < 1e290)
        out = deviance(1.0, ratio, -u)
        return out if np.all(near) else np.where(near, out, u - log_ratio(x, about))


def positive_sums(z: Array, shares: Any, members: int | None) -> PositiveSums:
    """Sufficient statistics of rows (n, d) of positive numbers, NaN for missing entries, under weights (m, n)."""
    observed = ~np.isnan(z)
    total, weight = shares @ np.ones(len(z)), shares @ observed.astype(np.float64)
    about = _means(np.asarray(shares.sum(axis=0)).reshape(1, -1), z, observed)[0]
    deviation, lack = _about(z, observed, about, shares)
    divisor = np.where(weight > 0, weight, 1.0)
    mean = np.where(weight > 0, about + about * (deviation / divisor), 1.0)
    # Σ w (u − log(1 + u)) about the member's own mean, where it is minimal
    own = lack - np.where(weight > 0, weight * log_lack(mean, about), 0.0)
    for k, j in np.argwhere(own < POOR * lack):
        mean[k, j] = _means(shares[[k]], z[:, [j]], observed[:, [j]])[0, 0]
        own[k, j] = _about(z[:, [j]], observed[:, [j]], mean[k, [j]], shares[[k]])[1][0, 0]
    parts = {"rows": total, "weight": weight, "mean": mean, "lack": np.maximum(own, 0.0)}
    return PositiveSums.trusted(**{name: per_member(part, members) for name, part in parts.items()})


def _means(shares: Any, z: Array, observed: Array) -> Array:
    """Weighted means (m, d), also where a sum would overflow."""
    top = np.where(observed, z, 0.0).max(axis=0, initial=0.0)
    unit = np.where(top > 1e290, 1e-20, 1.0)
    weight = shares @ observed.astype(np.float64)
    mean = np.asarray(shares @ np.where(observed, z * unit, 0.0)) / np.where(weight > 0, weight, 1.0) / unit
    return np.where(mean > 0, mean, 1.0)


def _about(z: Array, observed: Array, about: Array, shares: Any) -> tuple[Array, Array]:
    """Σ w u and Σ w (u − log(1 + u)), (m, d)."""
    x = np.where(observed, z, about)
    return np.asarray(shares @ ((x - about) / about)), np.asarray(shares @ log_lack(x, about))

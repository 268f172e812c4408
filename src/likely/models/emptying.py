"""A prior that empties components: what explains too few rows to pay for its parameters is given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array, parameter
from likely.core.value import Value
from likely.errors import DomainError, ShapeError, sentence
from likely.families.categorical import Categorical


@dataclass(frozen=True, eq=False)
class SparseWeights(Value):
    """log p(w) = Σ (α − 1) log w_k + constant with α below 1, also below 0: a Dirichlet law that need not be proper.

    A part that explains fewer than 1 − α rows gets no weight. With 1 − α half the number of a part's parameters
    this is the message length of Figueiredo and Jain (2002): emptied parts are those that do not pay for themselves.
    It has a mode, and neither a mean nor draws.

    >>> SparseWeights.costing(3, 4.0).alpha
    array([-3., -3., -3.])
    """

    alpha: Array  # (K,)

    def __post_init__(self) -> None:
        alpha = parameter(self.alpha, "SparseWeights", "alpha")
        if alpha.ndim != 1 or not alpha.size:
            raise ShapeError(sentence("SparseWeights", "alpha must have shape (K,)", alpha.shape))
        if (alpha > 1).any():
            raise DomainError(
                sentence("SparseWeights", "alpha must not be above 1", float(alpha.max()), "use Dirichlet")
            )
        self._set(alpha=alpha)

    @classmethod
    def costing(cls, size: int, rows: float) -> SparseWeights:
        """Each of `size` parts must explain more than so many rows."""
        return cls(np.full(size, 1.0 - rows))

    def update(self, stats: Any) -> SparseWeights:
        """Counts added; what they do not yet pay for stays below 1."""
        return SparseWeights.trusted(alpha=self.alpha + stats.counts)

    def point(self, rule: str = "mode") -> Categorical:
        """The weights of highest density; parts that do not pay for themselves have next to none."""
        from likely.models.mixture import weights_mode

        if rule != "mode":
            raise DomainError(sentence("SparseWeights", "this prior is improper: it has a mode only", repr(rule)))
        return Categorical.trusted(probs=weights_mode(self.alpha, np.zeros_like(self.alpha)), levels=None)

    def log_density(self, model: Categorical) -> Any:
        """Σ (α − 1) log w_k, without the constant that an improper law lacks."""
        with np.errstate(divide="ignore"):
            return ((self.alpha - 1) * np.log(model.probs)).sum(axis=-1)

    def draw(self, rng: Any) -> Any:
        """Not possible: the law is improper."""
        raise self._improper("draws")

    def predictive(self) -> Any:
        """Not possible: the law is improper."""
        raise self._improper("predictive law")

    def log_evidence(self, stats: Any) -> float:
        """Not possible: the law is improper."""
        raise self._improper("evidence")

    def _improper(self, what: str) -> DomainError:
        return DomainError(
            sentence("SparseWeights", f"this prior is improper: it has no {what}", remedy="use Dirichlet")
        )

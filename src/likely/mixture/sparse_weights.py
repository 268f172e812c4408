"""Sparse Dirichlet prior of mixture weights: components whose likelihood gain is below their cost are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.categorical.categorical import Categorical

FEW = 12.0  # rows: a component with fewer costs the same, else many tiny components would be cheaper than a large one


class Price(NamedTuple):
    """Parameter counts that enter the message length: per component, and shared by all components.

    >>> import likely as lk, numpy as np
    >>> Price.of(lk.Gaussian(np.zeros((3, 2)), np.stack([np.eye(2)] * 3)))
    Price(own=5.0, shared=0.0)
    """

    own: float
    shared: float

    @classmethod
    def of(cls, parts: Any) -> Price:
        """The counts of a stack of components; of a single component all parameters are its own."""
        one = float(parts.take(np.array([0])).n_parameters)
        own = (float(parts.n_parameters) - one) / (parts.members - 1) if parts.members > 1 else one
        return cls(own, one - own)

    def prior(self, size: int, rows: float) -> SparseWeights:
        """Prior that requires each component to explain half as many rows as it has parameters.

        It is at most half of the rows of an average component: else all components of a rich model would go at once.
        """
        return SparseWeights.costing(size, min(0.5 * self.own, 0.5 * rows / size))

    def message_length(self, weights: Array, rows: float, log_likelihood: float) -> float:
        """N/2 Σ log(n w_k) + k/2 log n + S/2 log n − log-likelihood, in nats   (Figueiredo, Leitão and Jain 1999).

        Each of the k components has N parameters, estimated from n w_k rows; S shared ones and the weights from all.
        Infinite where a component explains at most N/2 rows; a single component is always possible.

        >>> round(Price(2.0, 0.0).message_length(np.array([0.5, 0.5]), 100.0, -150.0), 3)
        162.429
        """
        counts = rows * weights
        if len(weights) > 1 and counts.min() <= 0.5 * self.own:
            return np.inf
        of_parts = 0.5 * self.own * np.log(np.maximum(counts, min(FEW, max(rows, 1.0)))).sum()
        of_all = 0.5 * (len(weights) + self.shared) * np.log(max(rows, 1.0))
        return float(of_parts + of_all - log_likelihood)


@dataclass(frozen=True, eq=False)
class SparseWeights(Value):
    """Sparse Dirichlet prior of mixture weights, which removes components.

    log p(w) = Σ (α − 1) log w_k + constant with α < 1, also α < 0: a Dirichlet prior that may be improper.

    A component that explains fewer than 1 − α rows gets weight 0. With 1 − α half the number of its parameters
    this is the minimum message length criterion of Figueiredo and Jain (2002).
    The prior has a mode, and neither a mean nor draws.

    Parameters
    ----------
    alpha : array-like (K,)
        Parameters α; they may be negative.

    See Also
    --------
    Dirichlet : The proper prior.
    MixturePrior : The prior of the whole mixture.

    References
    ----------
    Figueiredo and Jain (2002).

    Examples
    --------
    >>> SparseWeights.costing(3, 4.0).alpha
    array([-3., -3., -3.])
    """

    alpha: Annotated[Array, declared.numbers("K")]  # (K,)

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
        """Prior with which each component must explain more than a number of rows.

        Parameters
        ----------
        size : int
            Number of components.
        rows : float
            The number of rows.
        """
        return cls(np.full(size, 1.0 - rows))

    def update(self, stats: Any) -> SparseWeights:
        """Posterior: α plus counts; entries below 1 remain where counts are too small."""
        return SparseWeights.trusted(alpha=self.alpha + stats.counts)

    def point(self, rule: PointRule = "mode") -> Categorical:
        """The weights of highest density; components with too few rows have weight next to 0."""
        from likely.mixture.mixture import weights_mode

        if rule != "mode":
            raise DomainError(sentence("SparseWeights", "this prior is improper: it has a mode only", repr(rule)))
        return Categorical.trusted(probs=weights_mode(self.alpha, np.zeros_like(self.alpha)), levels=None)

    def log_density(self, model: Categorical) -> Any:
        """Σ (α − 1) log w_k, without a normalizing constant: the prior is improper."""
        with np.errstate(divide="ignore"):
            return ((self.alpha - 1) * np.log(model.probs)).sum(axis=-1)

    def draw(self, rng: Generator) -> Any:
        """Raises: the prior is improper."""
        raise self._improper("draws")

    def predictive(self) -> Any:
        """Raises: the prior is improper."""
        raise self._improper("predictive distribution")

    def log_evidence(self, stats: Any) -> float:
        """Raises: the prior is improper."""
        raise self._improper("evidence")

    def _improper(self, what: str) -> DomainError:
        return DomainError(
            sentence("SparseWeights", f"this prior is improper: it has no {what}", remedy="use Dirichlet")
        )

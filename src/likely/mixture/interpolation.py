"""Linear interpolation of fixed densities: only the mixture weights are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, Rows, checked_labels, n_rows, weights
from likely.core.blocks import Blocks
from likely.core.em_loop import StoppingRule, fit
from likely.core.errors import DomainError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.core.warnings import warn
from likely.distributions.distribution import Distribution
from likely.distributions.stacks.stack import Stack
from likely.mixture.mixture import Mixture


@dataclass(frozen=True, eq=False)
class FixedComponents(Distribution):
    """Stack of fixed densities that `refit` does not change: in a `Mixture` only the weights are learned.

    Parameters
    ----------
    components : stack
        The densities.

    See Also
    --------
    interpolation_weights : The weights.

    References
    ----------
    Ney, lecture notes, 6.1.

    Examples
    --------
    >>> import likely as lk
    >>> FixedComponents(lk.Gaussian([[0.0], [4.0]], 1.0)).n_parameters
    0
    """

    components: Annotated[Any, declared.distribution]  # a stack

    def __post_init__(self) -> None:
        if getattr(self.components, "members", None) is None:
            raise DomainError(
                sentence("FixedComponents", "components must be a stack", repr(self.components)[:60], "use Stack")
            )

    @property
    def of_sequences(self) -> bool:  # type: ignore[override]
        """Whether a row is a sequence, as the components define it."""
        return bool(getattr(self.components, "of_sequences", False))

    @property
    def members(self) -> int:
        """Number of members K."""
        return int(self.components.members)

    @property
    def dim(self) -> int:
        """Number of columns per row."""
        return int(self.components.dim)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: none."""
        return 0

    def member(self, k: int) -> Any:
        """One member."""
        return self.components.member(k)

    def take(self, index: Any) -> FixedComponents:
        """Some members, as a stack."""
        return FixedComponents.trusted(components=self.components.take(index))

    def log_prob(self, x: Rows) -> Array:
        """Each member's log-density (n, K)."""
        return self.components.log_prob(x)

    def sample(self, n: int, rng: Generator) -> Any:
        """Draws of each member."""
        return self.components.sample(n, rng)

    def collect(self, x: Rows, weight: ArrayLike | None = None, labels: Index | None = None) -> FixedStats:
        """Weight and log-likelihood of the rows assigned to each member."""
        n = n_rows(x)
        w = weights(weight, n, "FixedComponents")
        if labels is not None:
            at = checked_labels(labels, n, self.members, "FixedComponents")
            member_weight = (at[:, None] == np.arange(self.members)) * (1.0 if w is None else w[:, None])
        else:
            member_weight = np.ones((n, self.members)) if w is None else w if w.ndim == 2 else w[:, None]
            member_weight = np.broadcast_to(member_weight, (n, self.members))
        with np.errstate(invalid="ignore"):
            each = np.where(member_weight > 0, member_weight * self.log_prob(x), 0.0)
        return FixedStats.trusted(weight=member_weight.sum(axis=0), total=each.sum(axis=0))

    def refit(self, stats: Any, prior: AnyPrior | None = None) -> FixedComponents:
        """Itself."""
        return self

    def objective(self, stats: FixedStats, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the collected rows."""
        return float(stats.total.sum())

    def weak_prior(self, stats: Any) -> None:
        """None: nothing is learned."""


@dataclass(frozen=True, eq=False)
class FixedStats(Addable, Value):
    """Weight of the rows assigned to each member, and their log-likelihood."""

    weight: Annotated[Array, declared.numbers("K", 0)]  # (K,)
    total: Annotated[Array, declared.numbers("K")]  # (K,)

    complete = True

    @property
    def total_weight(self) -> float:
        """Weight over all members."""
        return float(self.weight.sum())

    def __add__(self, other: FixedStats) -> FixedStats:
        return FixedStats.trusted(weight=self.weight + other.weight, total=self.total + other.total)

    def __mul__(self, factor: float) -> FixedStats:
        return FixedStats.trusted(weight=self.weight * factor, total=self.total * factor)

    __rmul__ = __mul__

    def member(self, k: Any) -> FixedStats:
        """One member's statistics, or those of some."""
        return FixedStats.trusted(weight=np.asarray(self.weight[k]), total=np.asarray(self.total[k]))


def interpolation_weights(
    densities: Any, x: Any, weight: Any = None, *, prior: Any = None, stop: StoppingRule | None = None
) -> Mixture:
    """Mixture of given densities with maximum-likelihood weights.

    The weights are fitted to held-out rows. The likelihood is concave in them: EM finds the global maximum.

    Parameters
    ----------
    densities : list or stack
        The densities.
    x : array-like (n, d)
        Held-out rows.
    weight : array-like (n,), optional
        Weight per row.
    prior : MixturePrior, optional
        Prior of the weights.
    stop : StoppingRule, optional
        When iterations end.

    Returns
    -------
    Mixture
        The densities with their weights.

    See Also
    --------
    FixedComponents : The components of the result.
    Mixture : The distribution.

    References
    ----------
    Ney, lecture notes, 6.1.

    Examples
    --------
    >>> import likely as lk
    >>> near, far = lk.Gaussian([0.0], 1.0), lk.Gaussian([0.0], 25.0)
    >>> x = np.random.default_rng(0).normal(0.0, 1.0, (1000, 1))
    >>> interpolation_weights([near, far], x).weights.round(2)
    array([1., 0.])
    """
    parts = Stack(tuple(densities)) if isinstance(densities, Sequence) else densities
    K = parts.members
    start = Mixture(np.full(K, 1.0 / K), FixedComponents(parts))
    report = fit(
        start, Blocks.of(x, weight, sequences=start.of_sequences), prior=prior, stop=stop or StoppingRule(2000, 1e-8)
    )
    if not report.converged:
        warn(f"interpolation_weights: not converged: {report.reason}")
    return Mixture.trusted(weights=report.model.weights, components=parts)

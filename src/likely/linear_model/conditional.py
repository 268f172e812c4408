"""Adapter: a conditional density p(y | x) as a density of rows (y, x), for mixtures and hidden Markov models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, sentence
from likely.distributions.distribution import Distribution


@dataclass(frozen=True, eq=False)
class Conditional(Distribution):
    """The conditional density p(y | x) of rows with the parts `y` and `x`; x itself has no distribution.

    A stack of K conditional densities is a stack here, so `Mixture(weights, Conditional(stack))` is a mixture of
    regressions, and `HMM(initial, transition, Conditional(stack))` a Markov-switching regression.

    Parameters
    ----------
    density : conditional density
        A value with `given`, `log_prob`, `collect` and `refit`, such as `GaussianRegression`.

    Examples
    --------
    >>> import likely as lk
    >>> line = lk.linear_model.GaussianRegression([1.0, 2.0], 0.25)
    >>> Conditional(line).log_prob(lk.core.Columns(y=[7.0], x=[[3.0]])).round(4)
    array([-0.2258])
    """

    density: Annotated[Any, declared.value("a conditional density", "given", "log_prob", "collect", "refit")]

    def __post_init__(self) -> None:
        if not (hasattr(self.density, "given") and hasattr(self.density, "collect")):
            expected, remedy = "a conditional density is needed", "as lk.linear_model.GaussianRegression"
            raise DomainError(sentence("Conditional", expected, type(self.density).__name__, remedy))

    @property
    def members(self) -> int | None:
        """Number of members of a stack; None for one value."""
        return None if self.density.members is None else int(self.density.members)

    @property
    def dim(self) -> int:
        """Number of targets."""
        return int(self.density.targets)

    @property
    def tied(self) -> bool:
        """True for a stack whose members share one noise covariance."""
        return bool(getattr(self.density, "tied", False))

    def member(self, k: int) -> Conditional:
        """One member of a stack."""
        return Conditional.trusted(density=self.density.member(k))

    def take(self, index: Any) -> Conditional:
        """Members `index` as a stack."""
        return Conditional.trusted(density=self.density.take(index))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int(self.density.n_parameters)

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the noise covariances."""
        return getattr(self.density, "smallest_eigenvalue", None)

    def in_words(self) -> str:
        """The kind of the conditional density."""
        return str(self.density.in_words())

    def location_words(self, names: list[str] | None = None) -> str:
        """Nothing: the mean depends on x."""
        return ""

    def log_prob(self, x: Any) -> Array:
        """Conditional log-density log p(y | x) of rows."""
        pairs = _pairs(x)
        return np.asarray(self.density.log_prob(pairs["y"], pairs["x"]))

    def sample(self, n: int, rng: Generator) -> Any:
        """Refused: a sample of y needs x."""
        remedy = "sample the conditional density at rows of x: density.sample(x, rng)"
        raise DomainError(sentence("Conditional", "x has no distribution, so rows cannot be sampled", remedy=remedy))

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> Any:
        """Sufficient statistics of weighted rows."""
        pairs = _pairs(x)
        return self.density.collect(pairs["y"], pairs["x"], weight, labels=labels)

    def joined_stats(self, parts: list[Any]) -> Any:
        """Statistics of all members, concatenated from those of consecutive groups."""
        return self.density.joined_stats(parts)

    def refit(self, stats: Any, prior: Any = None) -> Conditional:
        """The conditional density that maximizes the likelihood, or the posterior, of the statistics."""
        return Conditional.trusted(density=self.density.refit(stats, prior))

    def objective(self, stats: Any, prior: Any = None) -> float:
        """What `refit` maximizes, at this model."""
        return float(self.density.objective(stats, prior))

    def weak_prior(self, stats: Any) -> Any:
        """The weak prior of the conditional density."""
        return self.density.weak_prior(stats)


def _pairs(x: Any) -> Columns:
    if isinstance(x, Mapping) and "y" in x and "x" in x:
        return Columns.of(x)
    got = f"parts {', '.join(x)}" if isinstance(x, Mapping) else type(x).__name__
    expected, remedy = "rows must have the parts y and x", "lk.core.Columns(y=…, x=…)"
    raise DataError(sentence("Conditional", expected, got, remedy))

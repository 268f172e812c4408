"""Dirichlet prior of the probabilities of a multinomial distribution (conjugate)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DomainError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.multinomial import Multinomial, MultinomialStats
from likely.distributions.distribution import lone


@dataclass(frozen=True, eq=False)
class MultinomialPrior(Value):
    """Conjugate prior of the probabilities of a multinomial distribution.

    p ~ Dirichlet(α) for x | p ~ Multinomial(p, N): αⱼ − 1 pseudo-counts of column j. One prior applies to the
    statistics of a whole stack.

    Parameters
    ----------
    belief : Dirichlet or array-like (d,) or (K, d)
        The Dirichlet distribution of p, or its α.
    length : float, default 1.0
        Total of the rows that the resulting multinomial distributions draw.

    See Also
    --------
    Multinomial : Its likelihood.
    DirichletMultinomial : The predictive distribution.

    Examples
    --------
    >>> words = Multinomial([0.5, 0.5]).collect([[3, 1]])
    >>> MultinomialPrior([2.0, 2.0]).update(words).point("mode").probs.round(4)
    array([0.6667, 0.3333])
    """

    serves = ("Multinomial",)  # distributions of which it is a prior

    belief: Annotated[Dirichlet, declared.distribution]
    length: Annotated[Array, declared.numbers("", 0)] = 1.0  # type: ignore[assignment]  # ()

    def __post_init__(self) -> None:
        belief = self.belief if isinstance(self.belief, Dirichlet) else Dirichlet(self.belief)
        length = parameter(self.length, "MultinomialPrior", "length")
        Multinomial(np.ones(1), length)  # the same rules, the same errors
        self._set(belief=belief, length=length)

    @classmethod
    def weak(cls, stats: MultinomialStats, length: ArrayLike = 1.0) -> MultinomialPrior:
        """Weakly informative prior: one pseudo-count in total, α = 1 + 1/d: the mode is (n + 1/d) / (N + 1).

        Parameters
        ----------
        length : float, default 1.0
            Total of the rows that the distribution draws.
        """
        return cls.symmetric(stats.counts.shape[-1], 1.0 / stats.counts.shape[-1], length)

    @classmethod
    def symmetric(cls, columns: int, counts: float, length: Any = 1.0) -> MultinomialPrior:
        """Symmetric prior with a pseudo-counts per column: the mode is (n + a) / (N + d a).

        Parameters
        ----------
        columns : int
            Number of columns d.
        counts : float
            Pseudo-counts a per column.
        length : float, default 1.0
            Total of the rows that the distribution draws.
        """
        return cls(Dirichlet.symmetric(columns, 1.0 + counts), length)

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return self.belief.members

    def member(self, k: int) -> MultinomialPrior:
        """One member of a stack."""
        return self.replace(belief=self.belief.member(k))

    def update(self, stats: MultinomialStats) -> MultinomialPrior:
        """Posterior: counts add to α."""
        return self.replace(belief=self.belief.update(stats))  # type: ignore[arg-type]  # counts are all it asks for

    def point(self, rule: PointRule = "mode") -> Multinomial:
        """Multinomial distribution with the "mode", "mean" or "median" of the probabilities (see `Dirichlet`)."""
        check_option(rule, PointRule, "MultinomialPrior", "rule")
        return self._distribution(getattr(self.belief, rule))

    def draw(self, rng: Generator) -> Multinomial:
        """A multinomial distribution with probabilities sampled from this distribution."""
        return self._distribution(self.belief.sample(1, rng)[0])

    def _distribution(self, probs: Array) -> Multinomial:
        return Multinomial.trusted(probs=np.array(probs), length=self.length)

    def predictive(self) -> DirichletMultinomial:
        """Posterior predictive of one row given its total: Dirichlet-multinomial."""
        return DirichletMultinomial.trusted(alpha=self.belief.alpha, length=self.length)

    def log_evidence(self, stats: MultinomialStats) -> PerMember:
        """Log marginal likelihood of the rows given their totals, probabilities integrated out; per member for a stack.

        Σ log Γ(αⱼ + nⱼ)/Γ(αⱼ) − log Γ(α₀ + N)/Γ(α₀) + Σ log N! / Π x!.
        """
        if not stats.complete:
            expected, remedy = "the evidence needs rows without missing values", "leave incomplete rows out"
            raise DomainError(sentence("MultinomialPrior", expected, "missing values", remedy))
        return lone(np.asarray(self.belief.log_evidence(stats)) + stats.constant)  # type: ignore[arg-type]

    def log_density(self, model: Multinomial) -> PerMember:
        """Log density of the probabilities of a multinomial distribution; one per member for a stack."""
        return self.belief.log_density(model)  # type: ignore[arg-type]  # it uses probs alone

"""What we believe of word frequencies: a Dirichlet distribution, and the counts we might have made before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, sentence
from likely.core.value import Value
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.multinomial import Multinomial, WordCounts
from likely.distributions.distribution import lone


@dataclass(frozen=True, eq=False)
class MultinomialPrior(Value):
    """p ~ Dirichlet(α) with x | p ~ Multinomial(p, N): αⱼ − 1 counts of column j were made before.

    `belief` is the `Dirichlet` distribution, or its α: (d,), or (K, d) for a stack; one prior serves a whole stack's
    statistics. `length` is that of the distributions it gives.

    >>> words = Multinomial([0.5, 0.5]).collect([[3, 1]])
    >>> MultinomialPrior([2.0, 2.0]).update(words).point("mode").probs.round(4)
    array([0.6667, 0.3333])
    """

    serves = ("Multinomial",)  # distributions whose parameters it speaks of

    belief: Dirichlet
    length: Array = 1.0  # type: ignore[assignment]  # ()

    def __post_init__(self) -> None:
        belief = self.belief if isinstance(self.belief, Dirichlet) else Dirichlet(self.belief)
        length = parameter(self.length, "MultinomialPrior", "length")
        Multinomial(np.ones(1), length)  # the same rules, the same errors
        self._set(belief=belief, length=length)

    @classmethod
    def weak(cls, stats: WordCounts, length: Any = 1.0) -> MultinomialPrior:
        """One count spread over all columns, α = 1 + 1/d: the mode is (n + 1/d) / (N + 1)."""
        return cls.symmetric(stats.counts.shape[-1], 1.0 / stats.counts.shape[-1], length)

    @classmethod
    def symmetric(cls, columns: int, counts: float, length: Any = 1.0) -> MultinomialPrior:
        """So many counts of each column were made before: the mode is (n + a) / (N + d a)."""
        return cls(Dirichlet.symmetric(columns, 1.0 + counts), length)

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return self.belief.members

    def member(self, k: int) -> MultinomialPrior:
        """One member of a stack."""
        return self.replace(belief=self.belief.member(k))

    def update(self, stats: WordCounts) -> MultinomialPrior:
        """The posterior: counts add to α."""
        return self.replace(belief=self.belief.update(stats))  # type: ignore[arg-type]  # counts are all it asks for

    def point(self, rule: str = "mode") -> Multinomial:
        """Multinomial distribution with the "mode", "mean" or "median" of the probabilities (see `Dirichlet`)."""
        if rule not in ("mode", "mean", "median"):
            raise DomainError(sentence("MultinomialPrior", 'rule must be "mode", "mean" or "median"', repr(rule)))
        return self._distribution(getattr(self.belief, rule))

    def draw(self, rng: Generator) -> Multinomial:
        """A multinomial distribution with probabilities from this distribution."""
        return self._distribution(self.belief.sample(1, rng)[0])

    def _distribution(self, probs: Array) -> Multinomial:
        return Multinomial.trusted(probs=np.array(probs), length=self.length)

    def predictive(self) -> DirichletMultinomial:
        """One new row given its total, probabilities integrated out."""
        return DirichletMultinomial.trusted(alpha=self.belief.alpha, length=self.length)

    def log_evidence(self, stats: WordCounts) -> Any:
        """log p(the rows given their totals), probabilities integrated out; one per member for a stack.

        Σ log Γ(αⱼ + nⱼ)/Γ(αⱼ) − log Γ(α₀ + N)/Γ(α₀) + Σ log N! / Π x!.
        """
        if not stats.complete:
            expected, remedy = "the evidence is of rows without gaps", "leave rows with gaps out"
            raise DomainError(sentence("MultinomialPrior", expected, "gaps", remedy))
        return lone(np.asarray(self.belief.log_evidence(stats)) + stats.constant)  # type: ignore[arg-type]

    def log_density(self, model: Multinomial) -> Any:
        """log p(the probabilities of a multinomial distribution); one per member for a stack."""
        return self.belief.log_density(model)  # type: ignore[arg-type]  # it looks at probs alone

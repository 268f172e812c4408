"""What we believe of a driven chain beforehand: small effects, and one fictitious move from each state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array, Mask, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.hmm.driven.logistic_transitions import log_transition

EFFECT = 2.5  # standard deviation of the log-odds that one standard deviation of a covariate may change


@dataclass(frozen=True, eq=False)
class DrivenPrior(Value):
    """β ~ N(0, 1/ridge), not the intercepts; `strength` pseudo-counts per state, spread over its possible transitions.

    The fictitious moves were made where covariates are `center`; with constant covariates they are those of `HMMPrior`.
    Up to a constant: log p(β) = −½ Σ ridge β² + worth Σ_i mean_j log p(j | i, center).

    >>> DrivenPrior(strength=1.0, center=[0.0], ridge=[0.16], emission=None).ridge
    array([0.16])
    """

    strength: float
    center: Array  # (p,): in the model's units
    ridge: Array  # (p,)
    emission: Any  # the emissions' prior, or None

    def __post_init__(self) -> None:
        center, ridge = (parameter(getattr(self, name), "DrivenPrior", name) for name in ("center", "ridge"))
        if center.ndim != 1 or center.shape != ridge.shape:
            shapes = [center.shape, ridge.shape]
            raise ShapeError(sentence("DrivenPrior", "center (p,) and ridge (p,) must go together", shapes))
        if (ridge < 0).any() or not 0 <= self.strength < np.inf:
            raise DomainError(
                sentence("DrivenPrior", "ridge and worth must not be negative", [ridge.min(), self.strength])
            )
        self._set(strength=float(self.strength), center=center, ridge=ridge)

    @classmethod
    def weak(cls, curvature: Array, parts: Any, effect: float = EFFECT, strength: float = 1.0) -> DrivenPrior:
        """Scaled by the covariates' own spread, which the curvature (K, p + 1, p + 1) of statistics holds."""
        total = curvature.sum(axis=0)
        mean = total[0, 1:] / max(total[0, 0], 1e-300)
        square = np.diag(total)[1:] / max(total[0, 0], 1e-300)
        variance = np.maximum(square - mean**2, 1e-12 * square)
        return cls(strength, mean, variance / effect**2, parts)

    @property
    def penalty(self) -> Array:
        """Ridge of every coefficient, with none on the intercept (p + 1,)."""
        return np.concatenate([[0.0], self.ridge])

    def start_counts(self, initial: Array) -> Array:
        """Fictitious beginnings, evenly over the states that may be first."""
        return np.where(initial > 0, self.strength / max(int((initial > 0).sum()), 1), 0.0)

    def evidence(self, coefficients: Array, possible: Mask) -> tuple[Array, Array]:
        """Gradient and curvature of the fictitious moves, as of real ones."""
        place = np.concatenate([[1.0], self.center])
        probs = np.exp(log_transition(coefficients, possible, place[None])[0])
        even = possible / possible.sum(axis=1, keepdims=True)
        gradient = self.strength * (even - probs)[:, :, None] * place
        return gradient, np.repeat((self.strength * np.outer(place, place))[None], len(possible), axis=0)

    def log_density_of_moves(self, initial: Array, coefficients: Array, possible: Mask) -> float:
        """log p of starts and coefficients, up to a constant."""
        place = np.concatenate([[1.0], self.center])[None]
        even = possible / possible.sum(axis=1, keepdims=True)
        logs = np.where(possible, log_transition(coefficients, possible, place)[0], 0.0)
        squares = np.where(possible[:, :, None], coefficients**2, 0.0) @ self.penalty
        begun = float(xlogy(self.start_counts(initial), initial).sum())
        return begun + self.strength * float((even * logs).sum()) - 0.5 * float(squares.sum())

    def log_density(self, model: Any) -> float:
        """log p of all of a model's parameters, up to a constant."""
        of_parts = 0.0 if self.emission is None else float(np.sum(self.emission.log_density(model.emission)))
        return of_parts + self.log_density_of_moves(model.initial, model.coefficients, model.possible)

    # ------------------------------------------------- what only conjugate distributions can

    def update(self, stats: Any) -> NoReturn:
        """An error: what sequences say of a logit has no finite form; `DrivenHMM.refit` finds the mode step by step."""
        raise _not_conjugate("update")

    def point(self, rule: str = "mode") -> NoReturn:
        """An error: which states may begin, and which moves are possible, the model says."""
        raise _not_conjugate("point")

    def draw(self, rng: Any) -> NoReturn:
        """An error, for the same reason."""
        raise _not_conjugate("draw")

    def predictive(self) -> NoReturn:
        """An error, for the same reason."""
        raise _not_conjugate("predictive")


def _not_conjugate(doing: str) -> DomainError:
    expected = "a prior of coefficients is not conjugate: it has no posterior of its own kind"
    return DomainError(sentence(f"DrivenPrior.{doing}", expected, "asked for", "use refit(stats, prior), or fit"))

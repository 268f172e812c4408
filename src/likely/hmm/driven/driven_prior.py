"""Prior of an HMM with covariate-dependent transitions: Gaussian coefficients and pseudo-counts of transitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import numpy as np
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, Mask, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.hmm.driven.logistic_transitions import log_transition

EFFECT = 2.5  # standard deviation of the log-odds that one standard deviation of a covariate may change


@dataclass(frozen=True, eq=False)
class DrivenPrior(Value):
    """Prior of a `DrivenHMM`.

    β ~ N(0, 1/ridge), not the intercepts; `strength` pseudo-counts per state, spread over its possible transitions.

    The pseudo-counts are at covariates `center`; with constant covariates they are those of `HMMPrior`. Up to a
    constant: log p(β) = −½ Σ ridge β² + strength Σ_i mean_j log p(j | i, center).

    >>> DrivenPrior(strength=1.0, center=[0.0], ridge=[0.16], emission=None).ridge
    array([0.16])
    """

    strength: Annotated[float, declared.number(0)]
    center: Annotated[Array, declared.numbers("p")]  # (p,): in the model's units
    ridge: Annotated[Array, declared.numbers("p", 0)]  # (p,)
    emission: Annotated[Any, declared.maybe(declared.prior)]  # the emissions' prior, or None

    def __post_init__(self) -> None:
        center, ridge = (parameter(getattr(self, name), "DrivenPrior", name) for name in ("center", "ridge"))
        if center.ndim != 1 or center.shape != ridge.shape:
            shapes = [center.shape, ridge.shape]
            raise ShapeError(sentence("DrivenPrior", "center (p,) and ridge (p,) must have the same shape", shapes))
        if (ridge < 0).any() or not 0 <= self.strength < np.inf:
            raise DomainError(
                sentence("DrivenPrior", "ridge and strength must not be negative", [ridge.min(), self.strength])
            )
        self._set(strength=float(self.strength), center=center, ridge=ridge)

    @classmethod
    def weak(cls, curvature: Array, emission: Any, effect: float = EFFECT, strength: float = 1.0) -> DrivenPrior:
        """Weak prior scaled by the variances of the covariates, which the curvature (K, p + 1, p + 1) contains."""
        total = curvature.sum(axis=0)
        mean = total[0, 1:] / max(total[0, 0], 1e-300)
        square = np.diag(total)[1:] / max(total[0, 0], 1e-300)
        variance = np.maximum(square - mean**2, 1e-12 * square)
        return cls(strength, mean, variance / effect**2, emission)

    @property
    def penalty(self) -> Array:
        """Ridge penalty of every coefficient, 0 for the intercept (p + 1,)."""
        return np.concatenate([[0.0], self.ridge])

    def initial_counts(self, initial: Array) -> Array:
        """Pseudo-counts of initial states, uniform over the possible ones."""
        return np.where(initial > 0, self.strength / max(int((initial > 0).sum()), 1), 0.0)

    def evidence(self, coefficients: Array, possible: Mask) -> tuple[Array, Array]:
        """Gradient and curvature of the pseudo-counts of transitions."""
        features = np.concatenate([[1.0], self.center])
        probs = np.exp(log_transition(coefficients, possible, features[None])[0])
        uniform = possible / possible.sum(axis=1, keepdims=True)
        gradient = self.strength * (uniform - probs)[:, :, None] * features
        return gradient, np.repeat((self.strength * np.outer(features, features))[None], len(possible), axis=0)

    def log_density_of_transitions(self, initial: Array, coefficients: Array, possible: Mask) -> float:
        """Log prior density of initial probabilities and coefficients, up to a constant."""
        features = np.concatenate([[1.0], self.center])[None]
        uniform = possible / possible.sum(axis=1, keepdims=True)
        logs = np.where(possible, log_transition(coefficients, possible, features)[0], 0.0)
        squares = np.where(possible[:, :, None], coefficients**2, 0.0) @ self.penalty
        of_initial = float(xlogy(self.initial_counts(initial), initial).sum())
        return of_initial + self.strength * float((uniform * logs).sum()) - 0.5 * float(squares.sum())

    def log_density(self, model: Any) -> float:
        """Log prior density of all parameters of a model, up to a constant."""
        of_emission = 0.0 if self.emission is None else float(np.sum(self.emission.log_density(model.emission)))
        return of_emission + self.log_density_of_transitions(model.initial, model.coefficients, model.possible)

    # ------------------------------------------------- only for conjugate priors

    def update(self, stats: Any) -> NoReturn:
        """Not available: a logistic model has no conjugate posterior; `DrivenHMM.refit` finds the mode iteratively."""
        raise _not_conjugate("update")

    def point(self, rule: str = "mode") -> NoReturn:
        """Not available: the possible initial states and transitions are known to the model only."""
        raise _not_conjugate("point")

    def draw(self, rng: Any) -> NoReturn:
        """Not available, for the same reason."""
        raise _not_conjugate("draw")

    def predictive(self) -> NoReturn:
        """Not available, for the same reason."""
        raise _not_conjugate("predictive")


def _not_conjugate(doing: str) -> DomainError:
    expected = "a prior of coefficients is not conjugate: it has no closed-form posterior"
    return DomainError(sentence(f"DrivenPrior.{doing}", expected, "a call", "use refit(stats, prior), or fit"))

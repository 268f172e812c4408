"""Expected sufficient statistics of a linear-Gaussian state-space model: the result of the E-step of EM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.stats import Addable
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class LinearStats(Addable, Value):
    """Expected sufficient statistics of the EM algorithm: second moments of residuals under the smoothed p(x | y).

    With regressors h_t = (x_{t−1}, u_t) and residuals w_t = x_t − [A F] h_t: Σ E[w wᵀ], Σ E[w hᵀ], Σ E[h hᵀ]; the same
    of v_t = y_t − [C G] g_t with g_t = (x_t, u_t), and of initial states about their mean. Residuals keep the digits
    that raw moments lose when states lie far from 0. Statistics about different matrices are moved to one reference
    before they are added.

    Parameters
    ----------
    n_initial : ndarray ()
        Number (weight) of initial states.
    initial_sum : ndarray (d,)
        Σ E[x_0 − initial_mean].
    initial_scatter : ndarray (d, d)
        Σ E[(x_0 − initial_mean)(x_0 − initial_mean)ᵀ].
    n_transitions : ndarray ()
        Number (weight) of transitions.
    process_scatter : ndarray (d, d)
        Σ E[w wᵀ].
    transition_cross : ndarray (d, d + k)
        Σ E[w hᵀ].
    transition_gram : ndarray (d + k, d + k)
        Σ E[h hᵀ].
    n_observed : ndarray ()
        Number of frames with at least one observed entry.
    observation_scatter : ndarray (p, p)
        Σ E[v vᵀ].
    observation_cross : ndarray (p, d + k)
        Σ E[v gᵀ].
    observation_gram : ndarray (d + k, d + k)
        Σ E[g gᵀ].
    initial_mean : ndarray (d,)
        Reference of the residuals of initial states.
    transition : ndarray (d, d + k)
        Reference [A F] of w.
    observation : ndarray (p, d + k)
        Reference [C G] of v.
    whitened_scatter : ndarray (2, 2)
        Of time-varying covariances S_t of w and of v: Σ tr S_t⁻¹ E[r rᵀ] × size, Σ rank.
    entropy : ndarray ()
        Entropy of the posterior of the states.
    n_frames : ndarray ()
        Number of frames.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> walk.collect([[0.0, 1.0], [2.0]]).n_transitions
    array(1.)
    """

    n_initial: Annotated[Array, declared.numbers("", 0)]  # (): number (weight) of initial states
    initial_sum: Annotated[Array, declared.numbers("d")]  # (d,): Σ E[x_0 − initial_mean]
    initial_scatter: Annotated[Array, declared.numbers("d d")]  # (d, d): Σ E[(x_0 − initial_mean)(·)ᵀ]
    n_transitions: Annotated[Array, declared.numbers("", 0)]  # ()
    process_scatter: Annotated[Array, declared.numbers("d d")]  # (d, d): Σ E[w wᵀ]
    transition_cross: Annotated[Array, declared.numbers("d h")]  # (d, d + k): Σ E[w hᵀ]
    transition_gram: Annotated[Array, declared.numbers("h h")]  # (d + k, d + k): Σ E[h hᵀ]
    n_observed: Annotated[Array, declared.numbers("", 0)]  # (): frames with at least one observed entry
    observation_scatter: Annotated[Array, declared.numbers("p p")]  # (p, p): Σ E[v vᵀ]
    observation_cross: Annotated[Array, declared.numbers("p h")]  # (p, d + k): Σ E[v gᵀ]
    observation_gram: Annotated[Array, declared.numbers("h h")]  # (d + k, d + k): Σ E[g gᵀ]
    initial_mean: Annotated[Array, declared.numbers("d")]  # (d,): reference of the residuals
    transition: Annotated[Array, declared.numbers("d h")]  # (d, d + k): [A F], reference of w
    observation: Annotated[Array, declared.numbers("p h")]  # (p, d + k): [C G], reference of v
    # (2, 2), of time-varying covariances S_t of w and of v: Σ tr S_t⁻¹ E[r rᵀ] × size, Σ rank
    whitened_scatter: Annotated[Array, declared.numbers("w w")]
    entropy: Annotated[Array, declared.numbers("")]  # (): of the posterior of the states
    n_frames: Annotated[Array, declared.numbers("", 0)]  # ()

    complete = False
    unit = "frame"

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Shapes of the moments of states and inputs agree."""
        if fields["whitened_scatter"].shape != (2, 2):
            return "whitened_scatter must have shape (2, 2)"
        enough = len(fields["transition_gram"]) >= len(fields["initial_mean"])
        return "" if enough else "transition_gram must have a row for every state"

    @property
    def total_weight(self) -> float:
        """Weight of all frames."""
        return float(self.n_frames)

    @property
    def units(self) -> float:
        """Number of frames, by which a gain of the objective is divided."""
        return self.total_weight

    def about(self, initial_mean: Array, transition: Array, observation: Array) -> LinearStats:
        """The same moments, of residuals about other matrices.

        Parameters
        ----------
        initial_mean : ndarray (d,)
            Reference of the residuals of initial states.
        transition : ndarray (d, d + k)
            Reference [A F] of w.
        observation : ndarray (p, d + k)
            Reference [C G] of v.

        Returns
        -------
        LinearStats
            The statistics about them.
        """
        if initial_mean is self.initial_mean and transition is self.transition and observation is self.observation:
            return self
        shift, dA, dC = self.initial_mean - initial_mean, self.transition - transition, self.observation - observation
        initial = self.initial_scatter + np.outer(self.initial_sum, shift) + np.outer(shift, self.initial_sum)
        return self.replace(
            initial_sum=self.initial_sum + self.n_initial * shift,
            initial_scatter=initial + self.n_initial * np.outer(shift, shift),
            process_scatter=_shifted(self.process_scatter, self.transition_cross, self.transition_gram, dA),
            transition_cross=self.transition_cross + dA @ self.transition_gram,
            observation_scatter=_shifted(self.observation_scatter, self.observation_cross, self.observation_gram, dC),
            observation_cross=self.observation_cross + dC @ self.observation_gram,
            initial_mean=initial_mean, transition=transition, observation=observation,
        )  # fmt: skip

    def __add__(self, other: LinearStats) -> LinearStats:
        other = other.about(self.initial_mean, self.transition, self.observation)
        return self.replace(**{name: getattr(self, name) + getattr(other, name) for name in SUMS})

    def __mul__(self, factor: float) -> LinearStats:
        return self.replace(**{name: np.asarray(getattr(self, name) * factor) for name in SUMS})

    __rmul__ = __mul__


SUMS = (
    "n_initial",
    "initial_sum",
    "initial_scatter",
    "n_transitions",
    "process_scatter",
    "transition_cross",
    "transition_gram",
    "n_observed",
    "observation_scatter",
    "observation_cross",
    "observation_gram",
    "whitened_scatter",
    "entropy",
    "n_frames",
)


def _shifted(scatter: Array, cross: Array, gram: Array, change: Array) -> Any:
    """Scatter of residuals r + change h, from Σ E[r rᵀ], Σ E[r hᵀ], Σ E[h hᵀ]."""
    if not change.any():
        return scatter
    product = change @ cross.T
    return scatter + product + product.T + change @ gram @ change.T

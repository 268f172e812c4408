"""What learning a linear-Gaussian model adds up: how far states and frames lay from what it expects of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.stats import Addable
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class LinearStats(Addable, Value):
    """Expected second moments under p(x | y), of residuals about the model that looked.

    With h_t = (x_{t−1}, u_t) and w_t = x_t − [A F] h_t: Σ E[w wᵀ], Σ E[w hᵀ], Σ E[h hᵀ]; the same of y_t about
    [C G] (x_t, u_t), and of first states about their mean. Residuals keep what raw moments lose when states lie far
    from 0; two statistics about different models are moved to one reference before they add.

    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> walk.collect([[0.0, 1.0], [2.0]]).n_transitions
    array(1.)
    """

    n_initial: Array  # (): first states
    first: Array  # (d,): Σ E[x_0 − mean]
    first_scatter: Array  # (d, d)
    n_transitions: Array  # ()
    noise: Array  # (d, d): Σ E[w wᵀ]
    noise_by: Array  # (d, d + k): Σ E[w hᵀ]
    before: Array  # (d + k, d + k): Σ E[h hᵀ]
    seen: Array  # (): frames of which something was seen
    observed: Array  # (p, p): Σ E[v vᵀ]
    observed_by: Array  # (p, d + k)
    states: Array  # (d + k, d + k)
    mean: Array  # (d,): the reference of all residuals
    move: Array  # (d, d + k): [A F]
    emit: Array  # (p, d + k): [C G]
    white: Array  # (2, 2), of a noise and an observation that change with time: Σ tr S_t⁻¹ E[r rᵀ] × size, Σ rank
    entropy: Array  # (): of the hidden states
    frames: Array  # ()

    complete = False
    unit = "frame"

    @property
    def total_weight(self) -> float:
        """Weight of all frames."""
        return float(self.frames)

    @property
    def units(self) -> float:
        """What a gain is measured by: frames."""
        return self.total_weight

    def about(self, mean: Array, move: Array, emit: Array) -> LinearStats:
        """The same moments, of residuals about other matrices."""
        if mean is self.mean and move is self.move and emit is self.emit:
            return self
        shift, by, to = self.mean - mean, self.move - move, self.emit - emit
        scatter = self.first_scatter + np.outer(self.first, shift) + np.outer(shift, self.first)
        return self.replace(
            first=self.first + self.n_initial * shift, first_scatter=scatter + self.n_initial * np.outer(shift, shift),
            noise=_moved(self.noise, self.noise_by, self.before, by), noise_by=self.noise_by + by @ self.before,
            observed=_moved(self.observed, self.observed_by, self.states, to),
            observed_by=self.observed_by + to @ self.states, mean=mean, move=move, emit=emit,
        )  # fmt: skip

    def __add__(self, other: LinearStats) -> LinearStats:
        other = other.about(self.mean, self.move, self.emit)
        return self.replace(**{name: getattr(self, name) + getattr(other, name) for name in SUMS})

    def __mul__(self, factor: float) -> LinearStats:
        return self.replace(**{name: np.asarray(getattr(self, name) * factor) for name in SUMS})

    __rmul__ = __mul__


SUMS = (
    "n_initial",
    "first",
    "first_scatter",
    "n_transitions",
    "noise",
    "noise_by",
    "before",
    "seen",
    "observed",
    "observed_by",
    "states",
    "white",
    "entropy",
    "frames",
)


def _moved(scatter: Array, cross: Array, of: Array, by: Array) -> Any:
    if not by.any():
        return scatter
    step = by @ cross.T
    return scatter + step + step.T + by @ of @ by.T

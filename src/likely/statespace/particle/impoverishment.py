"""Detection of sample impoverishment in particle filters: time to common ancestors against the process noise."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.warnings import warn
from likely.statespace.particle.particle_belief import ParticleBelief

FEW = 10  # common ancestors of all particles that end a span
RENEWED = 0.5  # share of the variance that the process noise adds in a span: states of larger variance are not renewed
MOST = 0.5  # share of frames in such spans from which a state counts as impoverished
SPANS = 3  # smallest number of spans for a decision
SAMPLED = 8  # the noise is measured at every so many resamplings


class Descent:
    """Tracks the genealogy of the particles: few common ancestors, and whether the noise has renewed the states since.

    A span ends when FEW families of those at its beginning are left. In a model that forgets, by its dynamics or by the
    observations, a state has far less variance than the noise adds in a span of a frames, V ≪ q a: common ancestors do
    not matter. If V ≈ q a or more, the particles differ only by the noise since their last common ancestor, and do not
    represent the posterior variance, however large the effective sample size is.
    """

    def __init__(self, first: ParticleBelief) -> None:
        d = first.states.shape[1]
        self.varied: Mask = np.ptp(first.states, axis=0) > 0
        self.family: Index | None = None  # (N,): the ancestor of each particle at the beginning of the span
        self.age, self.drawn, self.noise = 0, 0, np.zeros(d)
        self.spans, self.frames, self.not_renewed = 0, 0, np.zeros(d)
        self.warned = False

    def notice(self, belief: ParticleBelief) -> None:
        """Process one more frame of a stream, and warn as soon as some states are impoverished."""
        self.step(belief)
        self.tell(len(belief))

    def step(self, belief: ParticleBelief) -> None:
        """Process one more frame."""
        self.age += 1
        if belief.ancestors is None:
            return
        if self.drawn % SAMPLED == 0:
            self.noise += _within(belief.states, belief.ancestors)
        self.drawn += 1
        self.family = belief.ancestors if self.family is None else self.family[belief.ancestors]
        if np.count_nonzero(np.bincount(self.family)) <= FEW:
            self._end(belief)

    def _end(self, belief: ParticleBelief) -> None:
        made = self.age * self.noise / -(-self.drawn // SAMPLED)
        not_renewed = (
            belief.states.var(axis=0) >= RENEWED * made
        ) & self.varied  # also for states without noise: 0 ≥ 0
        self.spans, self.frames, self.not_renewed = (
            self.spans + 1,
            self.frames + self.age,
            self.not_renewed + self.age * not_renewed,
        )
        self.family, self.age, self.drawn, self.noise = None, 0, 0, np.zeros_like(self.noise)

    @property
    def impoverished(self) -> Mask:
        """Mask (d,) of the states that are impoverished in most of the frames."""
        return np.asarray((self.spans >= SPANS) & (self.not_renewed > MOST * max(self.frames, 1)))

    def tell(self, n: int) -> None:
        """Warn once if some states are impoverished."""
        which = np.flatnonzero(self.impoverished).tolist()
        if not which or self.warned:
            return
        self.warned = True
        states = f"state{'s' * (len(which) > 1)} {', '.join(map(str, which[:8]))}{', …' * (len(which) > 8)}"
        back, many = f"{self.frames / self.spans:.0f} frames", len(which) > 1
        span = f"over {back} resampling leaves at most {FEW} ancestors of all {n:,} particles"
        text = f"sample impoverishment in {states}: {span}, and the process noise of {'these' if many else 'this'}"
        text += f" state{'s' * many} is too small to renew them in that time"
        remedy = "use more particles, or a filter that integrates such states out"
        warn(f"ParticleFilter: {text}; variances and evidence are too small: {remedy}")


def _within(states: Array, family: Index) -> Array:
    """Variance (d,) of states (N, d) within families of one ancestor."""
    count = np.bincount(family)
    at = count[family]
    several = at > 1
    if not several.any():
        return np.zeros(states.shape[1])
    free = np.count_nonzero(several) - np.count_nonzero(count > 1)
    x = states - states.mean(axis=0)
    means = np.stack([np.bincount(family, column) for column in x.T], axis=1)[family] / at[:, None]
    return np.asarray(((x - means)[several] ** 2).sum(axis=0) / free)

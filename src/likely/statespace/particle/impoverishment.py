"""Whether particles still tell apart what hardly moves: how soon they all descend from a few, and how fast noise is."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.warnings import tell
from likely.statespace.particle.particle_belief import ParticleBelief

FEW = 10  # ancestors that all particles descend from
RENEWED = 0.5  # of the variance that noise makes in a span: what varies more is not renewed in it
MOST = 0.5  # share of frames in such spans from which a state counts as impoverished
SPANS = 3  # with fewer there is no telling
SAMPLED = 8  # resamplings at one of which the noise is measured


class Descent:
    """Follows particles back to where they descend from few ancestors, and asks whether noise has renewed them since.

    A span ends when FEW families are left of those at its beginning. Where what is seen, or the model, makes particles
    forget, a state has far less variance than its noise would make in a span of a frames, V ≪ q a: common ancestors are
    forgotten before they matter. Where V ≈ q a or more, particles differ by what noise has done since their last
    common ancestor, and not by what the observations leave open, however large their effective number is.
    """

    def __init__(self, first: ParticleBelief) -> None:
        d = first.states.shape[1]
        self.varied: Mask = np.ptp(first.states, axis=0) > 0
        self.family: Index | None = None  # (N,): the ancestor of each particle at the beginning of the span
        self.age, self.drawn, self.noise = 0, 0, np.zeros(d)
        self.spans, self.frames, self.dry = 0, 0, np.zeros(d)
        self.told = False

    def notice(self, belief: ParticleBelief) -> None:
        """Take in one more frame of a live stream, and warn as soon as some states are impoverished."""
        self.step(belief)
        self.tell(len(belief))

    def step(self, belief: ParticleBelief) -> None:
        """Take in one more frame."""
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
        dry = (belief.states.var(axis=0) >= RENEWED * made) & self.varied  # also of what never moves: 0 ≥ 0
        self.spans, self.frames, self.dry = self.spans + 1, self.frames + self.age, self.dry + self.age * dry
        self.family, self.age, self.drawn, self.noise = None, 0, 0, np.zeros_like(self.noise)

    @property
    def impoverished(self) -> Mask:
        """Which states (d,) particles no longer tell apart, in most of the frames."""
        return np.asarray((self.spans >= SPANS) & (self.dry > MOST * max(self.frames, 1)))

    def tell(self, n: int) -> None:
        """A warning where some are, once."""
        which = np.flatnonzero(self.impoverished).tolist()
        if not which or self.told:
            return
        self.told = True
        states = f"state{'s' * (len(which) > 1)} {', '.join(map(str, which[:8]))}{', …' * (len(which) > 8)}"
        back, many = f"{self.frames / self.spans:.0f} frames", len(which) > 1
        span = f"over {back} resampling leaves at most {FEW} ancestors of all {n:,} particles"
        text = f"the particles no longer tell {states} apart: {span}, and the noise of {'these' if many else 'this'}"
        text += f" state{'s' * many} is too small to spread them again in that time"
        remedy = "take more particles, or a filter that integrates such states out"
        tell(f"ParticleFilter: {text}; spread and evidence are too small: {remedy}")


def _within(states: Array, family: Index) -> Array:
    """Variance (d,) of states (N, d) about the means of their families."""
    count = np.bincount(family)
    at = count[family]
    several = at > 1
    if not several.any():
        return np.zeros(states.shape[1])
    free = np.count_nonzero(several) - np.count_nonzero(count > 1)
    x = states - states.mean(axis=0)
    means = np.stack([np.bincount(family, column) for column in x.T], axis=1)[family] / at[:, None]
    return np.asarray(((x - means)[several] ** 2).sum(axis=0) / free)

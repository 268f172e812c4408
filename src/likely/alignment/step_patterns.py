"""step patterns of DTW as tables: unweighted steps, and those of Sakoe and Chiba with slope constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np

from likely.core.arrays import Array, Index, check_option
from likely.core.errors import DomainError, ShapeError, sentence

Step = tuple[int, int, float]  # frames of a, frames of b, weight of the point where it arrives


class Compiled(NamedTuple):
    """A step pattern as arrays for the compiled functions."""

    moves: Index  # (rules, longest, 2)
    weights: Array  # (rules, longest)
    counts: Index  # (rules,)


@final
@dataclass(frozen=True)
class StepPattern:
    """Step pattern of dynamic time warping: sequences of steps, each taken as a whole.

    Sakoe and Chiba (1978) weight a step by the frames that it advances: di + dj if symmetric, di if asymmetric. So all
    paths have the same total weight, n + m or n, and the total over that is a mean. With the slope constraint P = ½, 1,
    2 a horizontal or vertical run needs P times as many diagonal steps. Of equal sequences the first is preferred.

    Parameters
    ----------
    chains : tuple of tuples of steps
        Sequences of steps (di, dj, weight).
    start : float, default 1.0
        Weight of the first point.

    References
    ----------
    Sakoe and Chiba (1978); Rabiner and Juang (1993), chapter 4.

    Examples
    --------
    >>> StepPattern((((1, 1, 1.0),), ((1, 0, 1.0),), ((0, 1, 1.0),))) == RULES["unweighted"]
    True
    """

    chains: tuple[tuple[Step, ...], ...]
    start: float = 1.0

    def __post_init__(self) -> None:
        if not self.chains or any(not chain for chain in self.chains):
            raise ShapeError(
                sentence("StepPattern", "at least one sequence of at least one step is needed", self.chains)
            )
        for step in (step for chain in self.chains for step in chain):
            _check_step(step)

    def compiled(self) -> Compiled:
        """The pattern as arrays, padded by zeros.

        Returns
        -------
        Compiled
            Arrays for the compiled loops.
        """
        longest = max(map(len, self.chains))
        moves = np.zeros((len(self.chains), longest, 2), dtype=np.int64)
        weights = np.zeros((len(self.chains), longest))
        for s, chain in enumerate(self.chains):
            for t, (di, dj, w) in enumerate(chain):
                moves[s, t], weights[s, t] = (di, dj), w
        return Compiled(moves, weights, np.array([len(c) for c in self.chains], dtype=np.int64))

    @property
    def skips(self) -> bool:
        """True if some step has weight 0: a path then passes through points without a match."""
        return self.start == 0 or any(step[2] == 0 for chain in self.chains for step in chain)

    @property
    def is_symmetric(self) -> bool:
        """True if the pattern is symmetric in the two series."""
        mirrored = {tuple((dj, di, w) for di, dj, w in chain) for chain in self.chains}
        return mirrored == set(self.chains)


def _check_step(step: Step) -> None:
    valid = len(step) == 3 and all(d in (0, 1) for d in step[:2]) and step[0] + step[1] > 0
    if not valid or not 0 <= step[2] < np.inf:
        expected = "a step must be (di, dj, weight): 0 or 1 frame of each, not 0 of both, and a weight from 0"
        raise DomainError(sentence("StepPattern", expected, step, "write longer steps as sequences"))


def _sakoe_chiba(symmetric: bool, runs: tuple[int, ...], diagonals: int = 1) -> StepPattern:
    """Sakoe–Chiba pattern: one diagonal step, or `diagonals` of them followed by a run along one series."""
    chains: list[tuple[Step, ...]] = [((1, 1, 2.0 if symmetric else 1.0),)]
    for run in runs:
        for along in ((0, 1), (1, 0)):
            moves = [(1, 1)] * diagonals + [along] * run
            chains.append(_weighted(moves, symmetric))
    return StepPattern(tuple(chains), 2.0 if symmetric else 1.0)


def _weighted(moves: list[tuple[int, int]], symmetric: bool) -> tuple[Step, ...]:
    """Step weights: frames advanced; for the asymmetric form they are spread evenly over the sequence."""
    if symmetric:
        return tuple((di, dj, float(di + dj)) for di, dj in moves)
    share = sum(di for di, _ in moves) / len(moves)
    return tuple((di, dj, share) for di, dj in moves)


def _without_constraint(symmetric: bool) -> StepPattern:
    """Pattern without slope constraint (P = 0): runs of any length."""
    one = 1.0 if symmetric else 0.0
    chains = (((1, 1, 1.0 + one),), ((1, 0, 1.0),), ((0, 1, one),))
    return StepPattern(chains, 1.0 + one)


UNWEIGHTED = StepPattern((((1, 1, 1.0),), ((1, 0, 1.0),), ((0, 1, 1.0),)))
PatternName = Literal[
    "unweighted", "symmetric", "symmetric 1/2", "symmetric 1", "symmetric 2",
    "asymmetric", "asymmetric 1/2", "asymmetric 1", "asymmetric 2",
]  # fmt: skip
StepPatternLike = PatternName | StepPattern
RULES: dict[str, StepPattern] = {
    "unweighted": UNWEIGHTED,
    "symmetric": _without_constraint(True),
    "asymmetric": _without_constraint(False),
}
for _name, _symmetric in (("symmetric", True), ("asymmetric", False)):
    RULES[f"{_name} 1/2"] = _sakoe_chiba(_symmetric, (1, 2))
    RULES[f"{_name} 1"] = _sakoe_chiba(_symmetric, (1,))
    RULES[f"{_name} 2"] = _sakoe_chiba(_symmetric, (1,), diagonals=2)


def step_pattern_of(steps: StepPatternLike, whose: str) -> StepPattern:
    """One of `RULES` by name, or a `StepPattern` unchanged."""
    if isinstance(steps, StepPattern):
        return steps
    check_option(steps, PatternName, whose, "step_pattern", "a StepPattern")
    return RULES[steps]

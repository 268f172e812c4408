"""Rules of steps: how a path may go on, and what each step counts. A rule is a table, not a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, ShapeError, sentence

Step = tuple[int, int, float]  # frames of a, frames of b, weight of the point where it arrives


class Compiled(NamedTuple):
    """The same table as arrays for the loops."""

    moves: Index  # (rules, longest, 2)
    weights: Array  # (rules, longest)
    counts: Index  # (rules,)


@final
@dataclass(frozen=True)
class StepPattern:
    """A rule: chains of steps (di, dj, weight), one of which is taken as a whole; `start` is the first point's weight.

    Sakoe and Chiba (1978) count a step by the frames that it advances: di + dj if symmetric, di if asymmetric. So all
    paths weigh the same, n + m or n, and the total over that is a mean. With P = ½, 1, 2 a path that went one way has
    to go P times as far along the diagonal. Of equal chains the first is preferred.

    >>> StepPattern((((1, 1, 1.0),), ((1, 0, 1.0),), ((0, 1, 1.0),))) == RULES["three"]
    True
    """

    chains: tuple[tuple[Step, ...], ...]
    start: float = 1.0

    def __post_init__(self) -> None:
        if not self.chains or any(not chain for chain in self.chains):
            raise ShapeError(sentence("StepPattern", "at least one chain of at least one step is needed", self.chains))
        for step in (step for chain in self.chains for step in chain):
            _check_step(step)

    def compiled(self) -> Compiled:
        """Arrays, padded by zeros."""
        longest = max(map(len, self.chains))
        moves = np.zeros((len(self.chains), longest, 2), dtype=np.int64)
        weights = np.zeros((len(self.chains), longest))
        for s, chain in enumerate(self.chains):
            for t, (di, dj, w) in enumerate(chain):
                moves[s, t], weights[s, t] = (di, dj), w
        return Compiled(moves, weights, np.array([len(c) for c in self.chains], dtype=np.int64))

    @property
    def skips(self) -> bool:
        """True if some step weighs nothing: a path then passes through points that it does not match."""
        return self.start == 0 or any(step[2] == 0 for chain in self.chains for step in chain)

    @property
    def even_handed(self) -> bool:
        """True if exchanging the two series changes nothing."""
        mirrored = {tuple((dj, di, w) for di, dj, w in chain) for chain in self.chains}
        return mirrored == set(self.chains)


def _check_step(step: Any) -> None:
    sound = len(step) == 3 and all(d in (0, 1) for d in step[:2]) and step[0] + step[1] > 0
    if not sound or not 0 <= step[2] < np.inf:
        expected = "a step must be (di, dj, weight): 0 or 1 frame of each, not 0 of both, and a weight from 0"
        raise DomainError(sentence("StepPattern", expected, step, "write longer ones as chains"))


def _rule(symmetric: bool, runs: tuple[int, ...], diagonals: int = 1) -> StepPattern:
    """Sakoe and Chiba's rule: one diagonal step, or `diagonals` of them followed by a run along one series."""
    chains: list[tuple[Step, ...]] = [((1, 1, 2.0 if symmetric else 1.0),)]
    for run in runs:
        for along in ((0, 1), (1, 0)):
            moves = [(1, 1)] * diagonals + [along] * run
            chains.append(_weighted(moves, symmetric))
    return StepPattern(tuple(chains), 2.0 if symmetric else 1.0)


def _weighted(moves: list[tuple[int, int]], symmetric: bool) -> tuple[Step, ...]:
    """Weights of a chain: frames advanced; those of the asymmetric form are spread evenly along it."""
    if symmetric:
        return tuple((di, dj, float(di + dj)) for di, dj in moves)
    share = sum(di for di, _ in moves) / len(moves)
    return tuple((di, dj, share) for di, dj in moves)


def _free(symmetric: bool) -> StepPattern:
    """P = 0: runs of any length."""
    one = 1.0 if symmetric else 0.0
    chains = (((1, 1, 1.0 + one),), ((1, 0, 1.0),), ((0, 1, one),))
    return StepPattern(chains, 1.0 + one)


THREE = StepPattern((((1, 1, 1.0),), ((1, 0, 1.0),), ((0, 1, 1.0),)))
RULES: dict[str, StepPattern] = {"three": THREE, "symmetric": _free(True), "asymmetric": _free(False)}
for _name, _symmetric in (("symmetric", True), ("asymmetric", False)):
    RULES[f"{_name} 1/2"] = _rule(_symmetric, (1, 2))
    RULES[f"{_name} 1"] = _rule(_symmetric, (1,))
    RULES[f"{_name} 2"] = _rule(_symmetric, (1,), diagonals=2)


def rule_named(steps: Any, whose: str) -> StepPattern:
    """One of `RULES` by name, or a `StepPattern` as it is."""
    if isinstance(steps, StepPattern):
        return steps
    if not isinstance(steps, str) or steps not in RULES:
        names = ", ".join(f'"{name}"' for name in RULES)
        raise DomainError(sentence(whose, f"steps must be one of {names}, or a Steps", repr(steps)))
    return RULES[steps]

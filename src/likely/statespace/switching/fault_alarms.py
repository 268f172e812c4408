"""Fault alarms: the action of least expected cost under the regime probabilities, per frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, check_integer
from likely.core.description import counted
from likely.decision.cost import Cost
from likely.decision.posteriors import posteriors

ME = "fault_alarms"


class Alarms(NamedTuple):
    """Actions per frame, and the expected cost of each action."""

    actions: Index  # (T,): rows of the cost matrix; row 0 is the action for regime 0, normal operation
    expected_costs: Array  # (T, A)
    first: int | None  # the first frame whose action is not 0

    @property
    def raised(self) -> Index:
        """The frames at which an action other than 0 begins."""
        return np.flatnonzero((self.actions != 0) & (np.append(0, self.actions[:-1]) != self.actions))

    def __repr__(self) -> str:
        some, size = int(np.count_nonzero(self.actions)), counted(len(self.actions), "frame")
        return f"Alarms({size}, {some:,} with an action, first={self.first})"


def fault_alarms(
    posterior: ArrayLike, cost: Cost | ArrayLike | Mapping[Any, Any] | None = None, *, hold: int = 1
) -> Alarms:
    """Actions of least expected cost given regime probabilities (T, K); regime 0 is the normal one.

    Parameters
    ----------
    posterior : array-like (T, K)
        Probabilities of the regimes, one row per frame.
    cost : Cost, matrix (A, K) or dict, optional
        Cost of each action (row) for each true regime (column); the first K rows claim a regime each, others may do
        something else (call somebody). None: every mistake costs 1.
    hold : int, default 1
        An action is changed once another one was cheapest for so many frames in a row.

    Returns
    -------
    Alarms
        The actions, and their expected costs.

    Examples
    --------
    >>> p = [[0.99, 0.01], [0.8, 0.2], [0.3, 0.7]]
    >>> fault_alarms(p, [[0, 10], [1, 0]]).actions.tolist()
    [0, 1, 1]
    """
    P = posteriors(posterior, ME)
    hold = check_integer(hold, ME, "hold", 1)
    table = Cost.of(cost, np.arange(P.shape[1]), named=False)
    expected = table.expected_of(P)
    actions = _held(np.asarray(expected.argmin(axis=1)), hold)
    raised = np.flatnonzero(actions != 0)
    return Alarms(actions, expected, int(raised[0]) if len(raised) else None)


def _held(cheapest: Index, hold: int) -> Index:
    """The action in force: it changes after `hold` frames in a row with the same best action; it starts with 0."""
    if hold == 1 or not len(cheapest):
        return cheapest
    began = np.append(True, cheapest[1:] != cheapest[:-1])
    age = np.arange(len(cheapest)) - np.maximum.accumulate(np.where(began, np.arange(len(cheapest)), 0)) + 1
    ready = np.maximum.accumulate(np.where(age >= hold, np.arange(len(cheapest)), -1))
    return np.where(ready >= 0, cheapest[np.maximum(ready, 0)], 0)

"""Filters with an alarm: a rule that sees each prediction, observation and belief of a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from likely.core import declared
from likely.core.value import Value


class AlarmRule(Protocol):
    """A rule for alarms: `start` is its state before the first observation, None if it needs none."""

    start: Any

    def step(
        self, state: Any, predicted: Any, y: Any, log_prob: float, belief: Any, /, *inputs: Any
    ) -> tuple[Any, bool]:
        """The next state, and whether there is an alarm; `log_prob` is log p(y | past observations).

        A filter that takes inputs passes those of the observation on.
        """
        ...


@dataclass(frozen=True, eq=False)
class AlarmBelief(Value):
    """The belief of a filter, the state of the rule, and whether there is an alarm."""

    belief: Annotated[Any, declared.belief]
    state: Annotated[Any, declared.maybe(declared.value("the state of an alarm", "step", "alarm"))]
    alarm: bool


@dataclass(frozen=True, eq=False)
class AlarmFilter:
    """A filter and a rule for alarms as one filter, for `lk.follow`: checkpoints keep the state of both.

    >>> import likely as lk
    >>> class Outlier:
    ...     start = None
    ...     def step(self, state, predicted, y, log_prob, belief):
    ...         return None, log_prob < -5
    >>> walk = lk.LinearGaussian.local_level(level_variance=0.1, observation_variance=1.0)
    >>> [belief.alarm for belief, _ in lk.follow(AlarmFilter(walk, Outlier()), [0.0, 0.3, 9.0])]
    [False, False, True]
    """

    filter: Any
    rule: AlarmRule

    def initial_belief(self) -> AlarmBelief:
        """The initial belief of the filter, and the rule at its start."""
        return AlarmBelief.trusted(belief=self.filter.initial_belief(), state=self.rule.start, alarm=False)

    def predict(self, belief: AlarmBelief, *inputs: Any) -> AlarmBelief:
        """Prediction step of the filter."""
        return belief.replace(belief=self.filter.predict(belief.belief, *inputs))

    def update(self, belief: AlarmBelief, y: Any, *inputs: Any) -> tuple[AlarmBelief, float]:
        """Update step of the filter, and then of the rule."""
        after, log_prob = self.filter.update(belief.belief, y, *inputs)
        state, alarm = self.rule.step(belief.state, belief.belief, y, log_prob, after, *inputs)
        return AlarmBelief.trusted(belief=after, state=state, alarm=alarm), log_prob

"""The filter role: a belief about what is hidden, carried from one observation to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

from likely.errors import DomainError, sentence

B = TypeVar("B")
Y = TypeVar("Y", contravariant=True)


class Filter(Protocol[B, Y]):
    """Whoever can say what it believes now, what then, and what an observation changes. Beliefs are values."""

    def initial(self) -> B:
        """The belief before anything was seen."""
        ...

    def predict(self, belief: B, /) -> B:
        """The belief one step on, with nothing seen."""
        ...

    def update(self, belief: B, y: Y, /) -> tuple[B, float]:
        """The belief once y is seen, and log p(y | all before)."""
        ...


def step(model: Any, belief: Any, y: Any) -> tuple[Any, float]:
    """One observation of a live stream: the belief after it, and log p(y | all before). A belief of None is the first.

    `model` is a value such as `HMM`, or a fitted estimator of one.

    >>> import likely as lk
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> belief = None
    >>> for x in (0.1, 4.9):
    ...     belief, logp = lk.step(h, belief, x)
    >>> belief.probs.round(4)
    array([0.0001, 0.9999])
    """
    model = getattr(model, "model_", model)
    if not hasattr(model, "update"):
        expected = "a model that can be followed live is needed: initial, predict, update"
        raise DomainError(sentence("step", expected, type(model).__name__, "pass an HMM, or a fitted HMMDensity"))
    return model.update(model.initial() if belief is None else model.predict(belief), y)


def follow(model: Any, observations: Iterable[Any], belief: Any = None) -> Iterator[tuple[Any, float]]:
    """The belief and log p(y | all before) after each of many observations, as they come.

    >>> import likely as lk
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> [int(belief.probs.argmax()) for belief, news in lk.follow(h, [0.1, 4.9, 5.2])]
    [0, 1, 1]
    """
    for y in observations:
        belief, news = step(model, belief, y)
        yield belief, news

"""The filter role: a belief about what is hidden, carried from one observation to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

from likely.core.fingerprints import fingerprint
from likely.core.following import Following, Keeper, refuse_other_model
from likely.core.learners import BayesianLearner, Learner
from likely.errors import DataError, DomainError, sentence

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


def playing(model: Any) -> Any:
    """Who plays the filter: a value such as `HMM`, the value in a fitted estimator, an online learner, a prior.

    >>> import likely as lk
    >>> type(playing(lk.Dirichlet([1.0, 1.0]))).__name__
    'BayesianLearner'
    """
    inner = getattr(model, "model_", model)
    if hasattr(inner, "update") and hasattr(inner, "initial"):
        return inner
    if hasattr(model, "partial_fit"):
        return Learner(model)
    if hasattr(model, "update") and hasattr(model, "log_evidence"):
        return BayesianLearner(model)
    expected = "a model that can be followed live is needed: initial, predict, update"
    remedy = "pass an HMM, a fitted HMMDensity, an estimator with partial_fit, or a prior"
    raise DomainError(sentence("step", expected, type(inner).__name__, remedy))


def step(model: Any, belief: Any, y: Any) -> tuple[Any, float]:
    """One observation of a live stream: the belief after it, and log p(y | all before). A belief of None is the first.

    `model` is a value such as `HMM`, a fitted estimator of one, or an online learner: an estimator with
    `partial_fit`, whose belief is the estimator so far, or a conjugate prior, whose belief is the posterior so far.

    >>> import likely as lk
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> belief = None
    >>> for x in (0.1, 4.9):
    ...     belief, logp = lk.step(h, belief, x)
    >>> belief.probs.round(4)
    array([0.0001, 0.9999])
    """
    plays = playing(model)
    return plays.update(plays.initial() if belief is None else plays.predict(belief), y)


def follow(
    model: Any, observations: Iterable[Any], belief: Any = None, *, keep: Keeper | None = None, every: int = 1,
    replay: bool | None = None,
) -> Iterator[tuple[Any, float]]:  # fmt: skip
    """The belief and log p(y | all before) after each of many observations, as they come.

    `keep` brings back what it holds of this stream, and is given the progress after every `every` observations and
    at the end. An observation counts once its successor is asked for: what nobody got to see is taken again.
    `replay`: whether the observations begin again with the first, so that those taken before are passed over; None:
    what has a length (a list, an array) does, a stream goes on.

    >>> import likely as lk
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> [int(belief.probs.argmax()) for belief, news in lk.follow(h, [0.1, 4.9, 5.2])]
    [0, 1, 1]
    """
    plays = playing(model)
    if keep is None:
        return _unkept(plays, observations, belief)
    if every < 1 or every != int(every):
        raise DomainError(sentence("follow", "every must be a whole number above 0", every))
    whose = fingerprint(plays)
    kept = keep.load()
    if kept is None:
        kept = Following.trusted(model=whose, belief=belief, taken=0, log_evidence=0.0, alarm=None)
    refuse_other_model(kept, whose)
    again = hasattr(observations, "__len__") if replay is None else replay
    return _kept(plays, _after(observations, kept.taken if again else 0), kept, keep, int(every))


def _unkept(plays: Any, observations: Iterable[Any], belief: Any) -> Iterator[tuple[Any, float]]:
    for y in observations:
        belief, news = plays.update(plays.initial() if belief is None else plays.predict(belief), y)
        yield belief, news


def _kept(
    plays: Any, observations: Iterator[Any], now: Following, keep: Keeper, every: int
) -> Iterator[tuple[Any, float]]:
    saved = now
    try:
        for y in observations:
            belief, news = step(plays, now.belief, y)
            yield belief, news
            now = now.replace(belief=belief, taken=now.taken + 1, log_evidence=now.log_evidence + float(news))
            if now.taken % every == 0:
                keep.save(now)
                saved = now
    finally:  # the end, an error, or a consumer who had enough
        if now is not saved:
            keep.save(now)


def _after(observations: Iterable[Any], taken: int) -> Iterator[Any]:
    """The observations that were not yet taken."""
    left = iter(observations)
    passed = sum(1 for _ in islice(left, taken))
    if passed < taken:
        expected = f"the observations must begin again with the first: {taken} of them were taken already"
        raise DataError(sentence("follow", expected, passed, "say replay=False for a stream that goes on"))
    return left

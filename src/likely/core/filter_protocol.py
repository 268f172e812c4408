"""The Filter protocol (belief state, predict, update) and recursive filtering of live observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

from likely.core.errors import DataError, DomainError, sentence
from likely.core.model_fingerprint import fingerprint, in_a_row
from likely.core.online_filters import BayesianLearner, Learner
from likely.core.stream_checkpoint import Following, StreamCheckpointStore, refuse_other_model
from likely.core.time_index import tell_of_uneven

B = TypeVar("B")
Y = TypeVar("Y", contravariant=True)
STREAMS = ("__iter__", "__getitem__")  # types that can be iterated over


class Filter(Protocol[B, Y]):
    """A recursive Bayesian filter: initial belief state, predict step, update step. Beliefs are immutable values."""

    def initial_belief(self) -> B:
        """The belief state before any observation."""
        ...

    def predict(self, belief: B, /) -> B:
        """The predicted belief one time step ahead."""
        ...

    def update(self, belief: B, y: Y, /) -> tuple[B, float]:
        """The belief after observing y, and the predictive log-density log p(y | past observations)."""
        ...


def as_filter(model: Any) -> Any:
    """The object with the filter methods: a value such as `HMM`, a fitted estimator's value, a learner, a prior.

    >>> import likely as lk
    >>> type(as_filter(lk.Dirichlet([1.0, 1.0]))).__name__
    'BayesianLearner'
    """
    if isinstance(model, type):
        expected, name = "a model is needed, not its class", model.__name__
        raise DomainError(sentence("step", expected, f"the class {name}", f"make one: {name}(…)"))
    if hasattr(model, "_live"):  # an estimator that validates observations, too
        return model._live()
    inner = getattr(model, "model_", model)
    if hasattr(inner, "update") and hasattr(inner, "initial_belief"):
        return inner
    if hasattr(model, "partial_fit"):
        return Learner(model)
    if hasattr(model, "update") and hasattr(model, "log_evidence"):
        return BayesianLearner(model)
    expected = "a model with the methods initial_belief, predict and update is needed"
    remedy = "pass an HMM, a fitted HMMDensity, an estimator with partial_fit, or a prior"
    raise DomainError(sentence("step", expected, type(inner).__name__, remedy))


def step(model: Any, belief: Any, y: Any) -> tuple[Any, float]:
    """One filter step: the belief after an observation, and log p(y | past observations). The first belief is None.

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
    filter_ = as_filter(model)
    return filter_.update(filter_.initial_belief() if belief is None else _predicted(filter_, belief), y)


def _predicted(filter_: Any, belief: Any) -> Any:
    """The predicted belief; an error if the belief is not one of this model."""
    try:
        return filter_.predict(belief)
    except (AttributeError, TypeError) as error:
        wanted = type(filter_.initial_belief())
        if isinstance(belief, wanted):
            raise
        expected = f"the belief of {type(filter_).__name__} must be a {wanted.__name__}, or None at first"
        remedy = "the order is step(model, belief, y)"
        raise DomainError(sentence("step", expected, type(belief).__name__, remedy)) from error


def follow(
    model: Any, observations: Iterable[Any], belief: Any = None, *, checkpoint: StreamCheckpointStore | None = None,
    checkpoint_every: int = 1, replay: bool | None = None,
) -> Iterator[tuple[Any, float]]:  # fmt: skip
    """The belief and log p(y | past observations) after each observation of a stream, as they arrive.

    `checkpoint` restores the progress of this stream, and saves it after every `checkpoint_every` observations and at
    the end. An observation counts once the next one is requested: results that the caller never received are computed
    again. `replay`: whether the observations begin again with the first, so that those processed before are skipped;
    None: skip if the observations have a length (a list, an array), continue if they are a stream. Skipped observations
    must equal the processed ones.

    >>> import likely as lk
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> [int(belief.probs.argmax()) for belief, news in lk.follow(h, [0.1, 4.9, 5.2])]
    [0, 1, 1]
    """
    filter_ = as_filter(model)
    _refuse_no_stream(observations)
    if not isinstance(filter_, Learner | BayesianLearner):  # these assume no order
        tell_of_uneven([(observations, lambda: "the stream")], "follow")
    observations = _row_by_row(observations)
    if checkpoint is None:
        return _without_checkpoint(filter_, observations, belief)
    if checkpoint_every < 1 or checkpoint_every != int(checkpoint_every):
        raise DomainError(sentence("follow", "checkpoint_every must be a positive integer", checkpoint_every))
    whose = fingerprint(filter_)
    kept = checkpoint.load()
    if kept is None:
        kept = Following.trusted(model=whose, belief=belief, n_observations=0, log_evidence=0.0, alarm=None)
    refuse_other_model(kept, whose)
    again = hasattr(observations, "__len__") if replay is None else replay
    return _with_checkpoint(
        filter_,
        _not_yet_processed(observations, kept) if again else iter(observations),
        kept,
        checkpoint,
        int(checkpoint_every),
    )


def _refuse_no_stream(observations: Any) -> None:
    """Raise an error for a text (it would be iterated letter by letter) or a single number."""
    single = isinstance(observations, str | bytes) or getattr(observations, "ndim", 1) == 0
    if single or not any(hasattr(observations, name) for name in STREAMS):
        expected, remedy = "a sequence of observations is needed", "pass a list, an array or a generator"
        raise DataError(sentence("follow", expected, repr(observations)[:40], remedy))


def _row_by_row(observations: Any) -> Any:
    """The rows of a data frame (iteration would give its column names)."""
    frame = hasattr(observations, "to_numpy") and getattr(observations, "ndim", 2) == 2
    return observations.to_numpy() if frame else observations


def _without_checkpoint(filter_: Any, observations: Iterable[Any], belief: Any) -> Iterator[tuple[Any, float]]:
    notice = _noticing(filter_, belief)
    for y in observations:
        belief, news = filter_.update(filter_.initial_belief() if belief is None else _predicted(filter_, belief), y)
        notice(belief)
        yield belief, news


def _noticing(filter_: Any, belief: Any) -> Callable[[Any], None]:
    """A callback for each new belief: a model may monitor its beliefs and warn once per stream."""
    return filter_._noticing(belief) if hasattr(filter_, "_noticing") else lambda belief: None


def _with_checkpoint(
    filter_: Any, observations: Iterator[Any], now: Following, checkpoint: StreamCheckpointStore, checkpoint_every: int
) -> Iterator[tuple[Any, float]]:
    saved, notice = now, _noticing(filter_, now.belief)
    try:
        for y in observations:
            belief, news = step(filter_, now.belief, y)
            notice(belief)
            yield belief, news
            now = _advanced(now, y, belief, float(news))
            if now.n_observations % checkpoint_every == 0:
                checkpoint.save(now)
                saved = now
    finally:  # the end, an error, or a consumer that stopped
        if now is not saved:
            checkpoint.save(now)


def _advanced(now: Following, y: Any, belief: Any, news: float) -> Following:
    evidence, seen = now.log_evidence + news, in_a_row(now.seen, y)
    return now.replace(belief=belief, n_observations=now.n_observations + 1, log_evidence=evidence, seen=seen)


def _not_yet_processed(observations: Iterable[Any], kept: Following) -> Iterator[Any]:
    """The observations not yet processed; the processed ones must be there again."""
    left, passed, seen = iter(observations), 0, ""
    for y in islice(left, kept.n_observations):
        passed, seen = passed + 1, in_a_row(seen, y)
    remedy = "pass replay=False for observations that continue the stream"
    if passed < kept.n_observations:
        expected = (
            f"the observations must begin again with the first: {kept.n_observations} of them were processed already"
        )
        raise DataError(sentence("follow", expected, passed, remedy))
    if seen != kept.seen:
        raise DataError(
            sentence("follow", "the observations must begin with those processed already", "others", remedy)
        )
    return left

"""Recursive filtering of live observations, with checkpoints: an interrupted stream is resumed bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from typing import Any, NamedTuple

import numpy as np

from likely.core.errors import DataError, DomainError, LikelyError, sentence
from likely.core.filter_protocol import advance, as_filter, refuse_inputs
from likely.core.model_fingerprint import chained_fingerprint, fingerprint
from likely.core.online_filters import BayesianLearner, Learner
from likely.core.progress import CheckpointStore, Following
from likely.core.time_index import warn_of_uneven

STREAMS = ("__iter__", "__getitem__")  # types that can be iterated over


def follow(
    model: Any, observations: Iterable[Any], belief: Any = None, *, inputs: Any = None, streams: Any = None,
    checkpoint: Any = None, checkpoint_every: int | None = None, replay: bool | None = None,
    on_error: Callable[[LikelyError], object] | None = None,
) -> Iterator[tuple[Any, float]]:  # fmt: skip
    """Filter a stream: the belief and log p(y | past observations) after each observation, as they arrive.

    Parameters
    ----------
    model : value or estimator
        A value such as `HMM` or `LinearGaussian`, a fitted estimator of one, or an online learner: an
        estimator with `partial_fit` scores each row before it learns from it (classifiers: (row, label)), a conjugate
        prior becomes the posterior. Its belief is then the state of learning.
    observations : iterable
        The observations.
    belief : belief, optional
        State to continue from.
    inputs : iterable, optional
        The known inputs of each observation, for filters that take some: the control inputs of a
        `LinearGaussian`, the covariates of an HMM, the times of a `LinearSDE`.
    streams : iterable, optional
        The name of the stream of each observation, where several are interleaved: one filter per stream.
    checkpoint : path or Checkpoint, optional
        A checkpoint file. If it exists, the stream is resumed from it, with bitwise equal results. An observation
        counts once the next one is requested, so that after a crash none is lost and none counts twice; a file of
        another model is an error.
    checkpoint_every : int, optional
        Number of observations per checkpoint; another is written at the end. None: as many as there are streams, so
        that the cost of one does not depend on their number.
    replay : bool, optional
        Whether the observations begin again with the first, so that those processed before are skipped;
        they must be the same. None: True for observations with a length (a list, an array), False for a stream. Pass
        `replay=False` for a list that holds only new observations.
    on_error : callable, optional
        A function that is called with the error of an observation which the filter refuses; it is then
        skipped. None: the error is raised.

    Returns
    -------
    iterator of (belief, float)
        The belief after each observation, and the log-density of the observation given those before it.

    Examples
    --------
    >>> import likely as lk, os, tempfile
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> [int(belief.probs.argmax()) for belief, logp in follow(h, [0.1, 4.9, 5.2])]
    [0, 1, 1]
    >>> path = os.path.join(tempfile.mkdtemp(), "live.likely")
    >>> first = list(follow(h, [0.1, 4.9], checkpoint=path))
    >>> [int(belief.probs.argmax()) for belief, logp in follow(h, [0.1, 4.9, 5.2, 0.3], checkpoint=path)]
    [1, 0]
    """
    filter_ = as_filter(model)
    _refuse_no_stream(observations)
    if inputs is not None:
        refuse_inputs(filter_, "follow")
    if checkpoint_every is not None and (checkpoint_every < 1 or checkpoint_every != int(checkpoint_every)):
        raise DomainError(sentence("follow", "checkpoint_every must be a positive integer", checkpoint_every))
    if streams is None and _assumes_equal_steps(filter_):
        warn_of_uneven([(observations, lambda: "the stream")], "follow")
    source = _together(observations, inputs, streams)
    if checkpoint is None:
        return _filtered(filter_, source, _Streams(belief), on_error)
    every = checkpoint_every or getattr(checkpoint, "every", None)
    store, whose = _store(checkpoint), fingerprint(filter_)
    kept = store.load(Following)
    if kept is not None:
        _refuse_other_model(kept, whose)
        if hasattr(observations, "__len__") if replay is None else replay:
            source = _not_yet_processed(source, kept)
    return _filtered(filter_, source, _Streams(belief, whose, kept), on_error, store, every)


def _assumes_equal_steps(filter_: Any) -> bool:
    """Whether frames are equally spaced for a filter; learners assume no order, and others may take the times."""
    return not isinstance(filter_, Learner | BayesianLearner) and not getattr(filter_, "continuous_time", False)


def _store(checkpoint: Any) -> CheckpointStore:
    if not isinstance(checkpoint, str | os.PathLike):
        store: CheckpointStore = checkpoint
        return store
    from likely.io.checkpoint import Checkpoint

    return Checkpoint(checkpoint)


# ------------------------------------------------------------------------ observations


class Observation(NamedTuple):
    """An observation, the inputs of its frame, and the name of its stream."""

    y: Any
    inputs: Any
    stream: str

    def after(self, seen: str) -> str:
        """The fingerprint of a sequence of observations with this one."""
        named = (self.stream, *self[:2]) if self.stream else self[:2]
        return chained_fingerprint(seen, self.y if not self.stream and self.inputs is None else named)


def _refuse_no_stream(observations: Any) -> None:
    """Raise an error for a text (it would be iterated letter by letter) or a single number."""
    single = isinstance(observations, str | bytes) or getattr(observations, "ndim", 1) == 0
    if single or not any(hasattr(observations, name) for name in STREAMS):
        expected, remedy = "a sequence of observations is needed", "pass a list, an array or a generator"
        raise DataError(sentence("follow", expected, repr(observations)[:40], remedy))


def _together(observations: Any, inputs: Any, streams: Any) -> Iterator[Observation]:
    """Each observation with its inputs and its stream, of which there must be as many."""
    beside = {"inputs": inputs, "streams": streams}
    for name, given in beside.items():
        if hasattr(observations, "__len__") and hasattr(given, "__len__") and len(given) != len(observations):
            expected = f"{name} must have one entry for each of {len(observations)} observations"
            raise DataError(sentence("follow", expected, len(given)))
    return _zipped(_row_by_row(observations), _entries(inputs, None, "inputs"), _entries(streams, "", "streams"))


def _zipped(observations: Any, inputs: Iterator[Any], streams: Iterator[Any]) -> Iterator[Observation]:
    for y in observations:
        yield Observation(y, next(inputs), str(next(streams)))


def _entries(given: Any, absent: Any, name: str) -> Iterator[Any]:
    """One entry per observation; an error where they end too early."""
    if given is None:
        yield from repeat(absent)
    yield from _row_by_row(given)
    raise DataError(sentence("follow", f"{name} must have one entry per observation", "fewer"))


def _row_by_row(observations: Any) -> Any:
    """The rows of a data frame (iteration would give its column names)."""
    frame = hasattr(observations, "to_numpy") and getattr(observations, "ndim", 2) == 2
    return observations.to_numpy() if frame else observations


def _not_yet_processed(source: Iterator[Observation], kept: Following) -> Iterator[Observation]:
    """The observations not yet processed; the processed ones must be there again."""
    passed, seen = 0, ""
    for observation in islice(source, kept.n_observations):
        passed, seen = passed + 1, observation.after(seen)
    remedy = "pass replay=False for observations that continue the stream"
    if passed < kept.n_observations:
        processed = f"{kept.n_observations} of them were processed already"
        expected = f"the observations must begin again with the first: {processed}"
        raise DataError(sentence("follow", expected, passed, remedy))
    if seen != kept.seen:
        expected = "the observations must begin with those processed already"
        raise DataError(sentence("follow", expected, "others", remedy))
    return source


def _refuse_other_model(kept: Following, model: str) -> None:
    if kept.model != model:
        expected = "the saved progress must belong to this model"
        remedy = "follow with the original model, or save this stream in another file"
        raise DataError(sentence("follow", expected, "that of another", remedy))


# ------------------------------------------------------------------------------- loop


def _filtered(
    filter_: Any, source: Iterator[Observation], now: _Streams, on_error: Callable[[LikelyError], object] | None,
    store: CheckpointStore | None = None, every: int | None = None,
) -> Iterator[tuple[Any, float]]:  # fmt: skip
    """Filter steps, one per observation; an observation counts once the next one is requested."""
    saved, notices = now.n_observations, _Notices(filter_)
    try:
        for observation in source:
            y, inputs, stream = observation
            before = now.belief(stream)
            try:
                belief, log_p = advance(filter_, before, y, inputs)
            except LikelyError as error:
                if on_error is None:
                    raise
                on_error(error)
                continue
            notices(stream, before, belief)
            yield belief, log_p
            now.count(stream, belief, float(log_p))
            if store is not None:
                now.seen = observation.after(now.seen)
                if now.n_observations - saved >= (every or len(now.streams)):
                    store.save(now.progress(), at_once=True)
                    saved = now.n_observations
    finally:  # the end, an error, or a consumer that stopped
        if store is not None and now.n_observations > saved:
            store.save(now.progress(), at_once=True)


class _Streams:
    """The state of the loop: belief, number of observations and log-likelihood of each stream."""

    def __init__(self, belief: Any = None, model: str = "", kept: Following | None = None) -> None:
        self.model, self.n_observations, self.seen = model, 0, ""
        self.streams: dict[str, tuple[Any, int, float]] = {} if belief is None else {"": (belief, 0, 0.0)}
        if kept is not None:
            each = zip(kept.beliefs, kept.counts.tolist(), kept.log_probs.tolist(), strict=True)
            self.n_observations, self.seen = kept.n_observations, kept.seen
            self.streams = dict(zip(kept.names, each, strict=True))

    def belief(self, stream: str) -> Any:
        """The belief of a stream; None before its first observation."""
        return self.streams[stream][0] if stream in self.streams else None

    def count(self, stream: str, belief: Any, log_p: float) -> None:
        """One more observation."""
        _, n, log_prob = self.streams.get(stream, (None, 0, 0.0))
        self.streams[stream] = belief, n + 1, log_prob + log_p
        self.n_observations += 1

    def progress(self) -> Following:
        """The state as a frozen value."""
        beliefs, counts, log_probs = zip(*self.streams.values(), strict=True)
        return Following.trusted(
            model=self.model, names=tuple(self.streams), beliefs=beliefs, counts=np.array(counts),
            log_probs=np.array(log_probs), seen=self.seen, more=np.zeros(0, np.uint8), sizes=np.zeros(0, np.int64),
        )  # fmt: skip


class _Notices:
    """Callbacks after each belief: a model may monitor its beliefs (`_noticing`) and warn once per stream."""

    def __init__(self, filter_: Any) -> None:
        self.begin = getattr(filter_, "_noticing", None)
        self.each: dict[str, Callable[[Any], None]] = {}

    def __call__(self, stream: str, before: Any, belief: Any) -> None:
        if self.begin is not None:
            if stream not in self.each:
                self.each[stream] = self.begin(before)
            self.each[stream](belief)

"""Checkpoint state of a followed stream: everything needed to resume after a crash with bitwise equal results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from likely.core.arrays import Index
from likely.core.errors import DataError, sentence
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Following(Value):
    """Belief after n observations and their total log-likelihood; `model` is the model's fingerprint.

    >>> Following("", None, 0, 0.0).n_observations
    0
    """

    model: str
    belief: Any  # None before the first observation
    n_observations: int
    log_evidence: float  # −inf after an observation of density 0
    alarm: Any = None  # the state of the alarm of this stream
    seen: str = ""  # fingerprint of the observations, in order


class StreamCheckpointStore(Protocol):
    """A store for the progress of a stream."""

    def load(self) -> Following | None:
        """The saved progress; None if there is none."""
        ...

    def save(self, following: Following, /) -> None:
        """Save the progress atomically."""
        ...


def _nothing() -> Index:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class FollowedLines(Value):
    """Progress in a feed of lines with one or more streams: lines processed and bytes written."""

    asked: str  # fingerprint of the model and of the options
    header: str  # the first line, if it holds column names
    lines: int  # of the input, with the header
    digest: str  # fingerprint of these lines
    written: int  # bytes of the output
    names: tuple[str, ...]  # of the streams
    streams: tuple[Following, ...]
    output: str = ""  # digest of the bytes written to a file; "": standard output
    more: Index = field(
        default_factory=_nothing
    )  # further streams, packed: a file can describe only some thousand parts


def refuse_other_model(kept: Following, model: str) -> None:
    """Raise an error if the progress belongs to another model."""
    if kept.model != model:
        expected = "the saved progress must belong to this model"
        remedy = "follow with the original model, or save this stream in another file"
        raise DataError(sentence("follow", expected, "that of another", remedy))

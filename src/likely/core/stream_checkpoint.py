"""How far a live stream was followed: all that is needed to go on, after a crash, to the same bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from likely.core.arrays import Index
from likely.core.errors import DataError, sentence
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Following(Value):
    """The belief after `taken` observations, and log p of all of them; `model` is the fingerprint of who believes.

    >>> Following("", None, 0, 0.0).taken
    0
    """

    model: str
    belief: Any  # None before the first observation
    taken: int
    log_evidence: float  # −inf once something came that the model holds for impossible
    alarm: Any = None  # the state of an alarm that goes with the stream
    seen: str = ""  # fingerprint of the observations, in their order, by which they are known again


class Keeper(Protocol):
    """Whoever can keep the progress of a stream, and bring it back."""

    def load(self) -> Following | None:
        """What was kept; None where nothing was."""
        ...

    def save(self, following: Following, /) -> None:
        """Keep it, whole or not at all."""
        ...


def _nothing() -> Index:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class FollowedLines(Value):
    """A feed of lines, which may hold several streams: how many lines were taken and how many bytes were written."""

    asked: str  # fingerprint of the model and of what was asked for
    header: str  # the first line, where it names columns
    lines: int  # of the input, with the header
    digest: str  # of these lines, by which they are known again
    written: int  # bytes of the output
    names: tuple[str, ...]  # of the streams
    streams: tuple[Following, ...]
    output: str = ""  # digest of the bytes that were written to a file; "": standard output
    more: Index = field(default_factory=_nothing)  # further streams, packed: a file describes some thousand parts only


def refuse_other_model(kept: Following, model: str) -> None:
    """Progress belongs to one model."""
    if kept.model != model:
        expected = "the progress that was kept must be that of this model"
        remedy = "follow with the model that began, or keep this stream in another file"
        raise DataError(sentence("follow", expected, "that of another", remedy))

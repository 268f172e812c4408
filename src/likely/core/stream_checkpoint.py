"""Checkpoint state of a followed stream: everything needed to resume after a crash with bitwise equal results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np

from likely.core import declared
from likely.core.arrays import Index
from likely.core.errors import DataError, sentence
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Following(Value):
    """The belief after `taken` observations and their total log-likelihood; `model` is the model's fingerprint.

    >>> Following("", None, 0, 0.0).taken
    0
    """

    model: str
    belief: Annotated[Any, declared.belief]  # None before the first observation
    taken: Annotated[int, declared.count]
    log_evidence: Annotated[float, declared.evidence]  # −inf after an observation of density 0
    # the state of the alarm of this stream
    alarm: Annotated[Any, declared.maybe(declared.value("the state of an alarm", "step", "alarm"))] = None
    seen: str = ""  # fingerprint of the observations, in order


class Keeper(Protocol):
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
    lines: Annotated[int, declared.count]  # of the input, with the header
    digest: str  # fingerprint of these lines
    written: Annotated[int, declared.count]  # bytes of the output
    names: Annotated[tuple[str, ...], declared.texts]  # of the streams
    streams: Annotated[tuple[Following, ...], declared.streams]
    output: str = ""  # digest of the bytes written to a file; "": standard output
    more: Annotated[Index, declared.numbers("?", dtype=np.int64)] = field(
        default_factory=_nothing
    )  # further streams, packed: a file can describe only some thousand parts

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that the streams of a feed have unique names."""
        names = fields["names"]
        alike = len(names) == len(set(names)) == len(fields["streams"])
        return "" if alike else "each stream must have a name of its own"


def refuse_other_model(kept: Following, model: str) -> None:
    """Raise an error if the progress belongs to another model."""
    if kept.model != model:
        expected = "the saved progress must belong to this model"
        remedy = "follow with the original model, or save this stream in another file"
        raise DataError(sentence("follow", expected, "that of another", remedy))

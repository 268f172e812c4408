"""Progress that a checkpoint keeps: of a fit, of followed streams, and of the lines of `likely follow`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.core import declared
from likely.core.arrays import Array, Index
from likely.core.value import Value

LEAST = -float(np.finfo(np.float64).max)


class CheckpointStore(Protocol):
    """A store of progress, such as `lk.core.Checkpoint`."""

    def load(self, kind: type[Any], /) -> Any:
        """The saved progress, which must be of this class; None if there is none."""
        ...

    def save(self, progress: Any, /, at_once: bool = False) -> None:
        """Save the progress atomically, if that is due; `at_once`: in any case."""
        ...


@dataclass(frozen=True, eq=False)
class Progress(Value):
    """A fit: its model, its objective and its history; `reason` is empty until the fit has ended."""

    described: ClassVar[str] = "a checkpoint"

    model: Annotated[Any, declared.density]
    prior: Annotated[Any, declared.maybe(declared.prior)]
    trace: Array  # (t,): the objective of each model so far, this model's last
    held_out: Array  # (t,), or none: mean held-out log-likelihood
    # the model with the best held-out log-likelihood, if it is another
    best: Annotated[Any, declared.maybe(declared.density)]
    weight: Annotated[float, declared.number(0)]  # of all rows, to recognize the data
    reason: str = ""
    converged: bool = False
    early: bool = False
    prior_is_fixed: bool = (
        True  # False while the prior was still recomputed in each pass; the trace is that of such passes
    )

    @property
    def objectives(self) -> list[float]:
        """The trace, with −inf restored where the file holds a finite number."""
        return [float(x) if x > LEAST else -np.inf for x in self.trace]

    @classmethod
    def at(
        cls, model: Any, prior: Any, weight: float, trace: list[float], held_out: list[float], **more: Any
    ) -> Progress:
        """The progress of a run at a given model."""
        more = {"best": None, "reason": "", "converged": False, "early": False, "prior_is_fixed": True, **more}
        numbers = {"trace": _finite(trace), "held_out": _finite(held_out)}
        return cls.trusted(model=model, prior=prior, weight=float(weight), **numbers, **more)


def _finite(numbers: list[float]) -> Array:
    """Finite numbers for the file: an initial model may have log-likelihood −inf."""
    return np.nan_to_num(np.array(numbers, dtype=np.float64), neginf=LEAST)


def _no_bytes() -> NDArray[np.uint8]:
    return np.zeros(0, dtype=np.uint8)


def _no_sizes() -> Index:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Following(Value):
    """Streams that are followed: the belief of each after `counts` observations; `model` is the model's fingerprint.

    >>> Following("", ("",), (None,), np.array([3]), np.array([-1.5])).n_observations
    3
    """

    described: ClassVar[str] = "the progress of a stream"

    model: str
    names: Annotated[tuple[str, ...], declared.texts]  # of the n streams; one without a name is ""
    beliefs: Annotated[tuple[Any, ...], declared.perhaps(declared.belief)]  # None before the first observation
    counts: Annotated[Index, declared.numbers("?", 0, np.int64)]  # (n,): observations
    log_probs: Annotated[Array, declared.logs]  # (n,): total log-likelihood; −inf after an observation of density 0
    seen: str = ""  # fingerprint of the observations, in order
    # in a file, the streams that one description cannot hold: files of some streams each, and their sizes in bytes
    more: Annotated[NDArray[np.uint8], declared.octets] = field(default_factory=_no_bytes)
    sizes: Annotated[Index, declared.numbers("?", 1, np.int64)] = field(default_factory=_no_sizes)

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that streams have unique names, and each a belief, a count and a log-likelihood."""
        names, counts, log_probs = fields["names"], fields["counts"], fields["log_probs"]
        alike = len(names) == len(set(names)) == len(fields["beliefs"])
        alike = alike and counts.shape == log_probs.shape == (len(names),)
        return "" if alike else "each stream must have a name of its own, a belief, a count and a log-likelihood"

    @property
    def n_observations(self) -> int:
        """Observations of all streams."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class FollowedLines(Following):
    """The same for streams in lines of text: the lines read, and the bytes written."""

    described: ClassVar[str] = "the progress of a feed"

    asked: str = ""  # fingerprint of the model and of the options
    header: str = ""  # the first line, if it holds column names
    lines: Annotated[int, declared.count] = 0  # of the input, with the header
    digest: str = ""  # fingerprint of these lines
    written: Annotated[int, declared.count] = 0  # bytes of the output
    output: str = ""  # digest of the bytes written to a file; "": standard output

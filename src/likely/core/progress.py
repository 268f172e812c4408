"""Progress that a checkpoint keeps: of a fit, of followed streams, and of the lines of `likely follow`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, Index
from likely.core.value import Value

LEAST = -float(np.finfo(np.float64).max)


class Keeper(Protocol):
    """A store of progress, such as `lk.Checkpoint`."""

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

    model: Any
    prior: Any
    trace: Array  # (t,): the objective of each model so far, this model's last
    held_out: Array  # (t,), or none: mean held-out log-likelihood
    best: Any  # the model with the best held-out log-likelihood, if it is another
    weight: float  # of all rows, to recognize the data
    reason: str = ""
    converged: bool = False
    early: bool = False
    standing: bool = True  # False while the prior was still recomputed in each pass; the trace is that of such passes

    @property
    def objectives(self) -> list[float]:
        """The trace, with −inf restored where the file holds a finite number."""
        return [float(x) if x > LEAST else -np.inf for x in self.trace]

    @classmethod
    def at(
        cls, model: Any, prior: Any, weight: float, trace: list[float], held_out: list[float], **more: Any
    ) -> Progress:
        """The progress of a run at a given model."""
        more = {"best": None, "reason": "", "converged": False, "early": False, "standing": True, **more}
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

    >>> Following("", ("",), (None,), np.array([3]), np.array([-1.5])).taken
    3
    """

    described: ClassVar[str] = "the progress of a stream"

    model: str
    names: tuple[str, ...]  # of the n streams; one without a name is ""
    beliefs: tuple[Any, ...]  # None before the first observation
    counts: Index  # (n,): observations
    log_probs: Array  # (n,): total log-likelihood; −inf after an observation of density 0
    seen: str = ""  # fingerprint of the observations, in order
    more: NDArray[np.uint8] = field(default_factory=_no_bytes)  # in a file, the streams that one description cannot
    sizes: Index = field(default_factory=_no_sizes)  # hold: files of some streams each, and their sizes in bytes

    @property
    def taken(self) -> int:
        """Observations of all streams."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class FollowedLines(Following):
    """The same for streams in lines of text: the lines read, and the bytes written."""

    described: ClassVar[str] = "the progress of a feed"

    asked: str = ""  # fingerprint of the model and of the options
    header: str = ""  # the first line, if it holds column names
    lines: int = 0  # of the input, with the header
    digest: str = ""  # fingerprint of these lines
    written: int = 0  # bytes of the output
    output: str = ""  # digest of the bytes written to a file; "": standard output

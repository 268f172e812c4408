"""The rule for compiled loops: which jobs are large enough to compile, or to load compiled code, for.

Compiling a loop takes seconds, once per machine; loading it takes 0.3 s, once per process. The rule looks at the model
and at the job as a whole, never at a chunk or a block of it:

- A `fit` is one job: rows (of sequences: frames) × (entries of the model + 20) × passes at most. If it is small, all
  loops run in plain Python.
- A sequence that is scored is a job of its own: its length × the work of the model per frame, whatever else is in the
  call. Where a NumPy version of the loop exists, it is used for short sequences.
- Where NumPy, or the loop in plain Python, gives the same bits, the work of the whole call decides: nobody can see
  which way was taken.

What this costs, in ms of CPU time, in plain Python and compiled (compiling takes about 1 to 8 s):

    Kalman filter, 300 frames of 1 state      6   0.2      k-means, 600 × 3, 3 clusters       31    3
    smoother, 120 frames of 4 states         27   0.5      neighbors in 5000 × 3 points       69    3
    DTW of all pairs of 6 series of 60       26   0.3      HMM with 2 states, 300 × 3        124   69
    EM of a local level, 300 frames, 20 passes  285   36

A process that repeats small jobs many times, and can wait for the compiler once, sets LIKELY_COMPILE=always in its
environment: then every loop that there is runs compiled (a Kalman filter of 300 frames takes 0.2 ms instead of 6).
Both ways agree to 1e-12 (tests/core/test_job_size.py and the tests of each loop).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

ALWAYS = os.environ.get("LIKELY_COMPILE") == "always"
SMALL = 0.0 if ALWAYS else 2e6  # scalar operations of a fit that plain Python does in about half a second
PER_ROW = 20  # operations that a row costs beside those with the entries of the model
SHORT = 0.0 if ALWAYS else 4e4  # those of a sequence that NumPy, frame after frame, does in some 5 ms, loops in 20–50
LARGE = 3e9  # scalar operations beyond which loading a loop pays that saves a tenth of NumPy's time


class Job(NamedTuple):
    """What runs: scalar operations in all; of a fit also rows × passes, and 0 of anything else."""

    work: float
    visits: float = 0.0


_JOB: ContextVar[Job | None] = ContextVar("likely_job", default=None)


@contextmanager
def job(work: float, visits: float = 0.0) -> Iterator[None]:
    """Inside, one job of so many scalar operations runs, and `visits` to rows if it is a fit.

    A job within another is a part of it.
    """
    if _JOB.get() is not None:
        yield
        return
    token = _JOB.set(Job(work, visits))
    try:
        yield
    finally:
        _JOB.reset(token)


def fit_job(rows: float, model: Any, passes: int) -> AbstractContextManager[None]:
    """The job of a fit: per visit to a row as many operations as the model has entries, and some more."""
    visits = float(rows) * passes
    return job(visits * (entries(model) + PER_ROW), visits)


def is_small() -> bool:
    """True inside of a small fit: loops run in plain Python."""
    now = _JOB.get()
    return now is not None and now.visits > 0 and now.work <= SMALL


def is_small_for(work: float) -> bool:
    """True inside of a fit that is small for a model of so many operations per frame."""
    now = _JOB.get()
    return now is not None and 0 < now.visits * work <= SMALL


def is_large() -> bool:
    """True inside of a large job: loops are loaded also where NumPy gives the same bits."""
    now = _JOB.get()
    return now is not None and now.work > LARGE


def compiles_for(work: float) -> bool:
    """True if a call of so many operations uses a loop whose NumPy version gives the same bits, and is slower."""
    now = _JOB.get()
    return (work if now is None else now.work) > SMALL


def is_short(frames: Any, work: float, visit: float) -> Any:
    """True per sequence of so many frames where it is short for a model that takes `work` operations per frame.

    Inside of a fit, which takes `visit` operations per frame and pass, all sequences are, or none, as the whole of it
    is small or not.
    """
    import numpy as np  # commands that compute nothing load this module, too

    if _JOB.get() is None:
        return np.asarray(frames) * work <= SHORT
    return np.full(np.shape(frames), is_small_for(visit))


def entries(value: Any) -> int:
    """Number of entries of all arrays of a model, those of its components included."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, list | tuple):
        return sum(map(entries, value))
    fields = getattr(value, "__dataclass_fields__", None)
    return 1 if fields is None else sum(entries(getattr(value, name)) for name in fields)

"""The rule for compiled loops: which jobs are large enough to compile, or to load compiled code, for.

Compiling a loop takes seconds, once per machine; loading it takes 0.3 s, once per process. The rule looks at the model
and at the job as a whole, never at a chunk or a block of it:

- A `fit` is one job: rows (of sequences: frames) × (entries of the model + 20) × passes at most. If it is small, all
  loops run in plain Python.
- A sequence that is scored is a job of its own: its length × the work of the model per frame, whatever else is in the
  call. Where a NumPy version of the loop exists, it is used for short sequences.
- Where NumPy gives the same bits, the work of the whole call decides: nobody can see which way was taken.

Both ways agree to 1e-12 (tests/core/test_job_size.py and the tests of each loop).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

SMALL = 1.5e6  # scalar operations of a fit that plain Python does in about a second
PER_ROW = 20  # operations that a row costs beside those with the entries of the model
SHORT = 2e5  # scalar operations of a sequence up to which NumPy, one frame after another, takes about 10 ms
LARGE = 3e9  # scalar operations beyond which loading a loop pays that saves a tenth of NumPy's time

_JOB: ContextVar[tuple[float, bool] | None] = ContextVar("likely_job", default=None)


@contextmanager
def job(work: float, fits: bool = False) -> Iterator[None]:
    """Inside, one job of so many scalar operations runs, a fit or not; a job within another is a part of it."""
    if _JOB.get() is not None:
        yield
        return
    token = _JOB.set((work, fits))
    try:
        yield
    finally:
        _JOB.reset(token)


def is_small() -> bool:
    """True inside of a small fit: loops run in plain Python."""
    work, fits = _JOB.get() or (0.0, False)
    return fits and work <= SMALL


def is_large() -> bool:
    """True inside of a large job: loops are loaded also where NumPy gives the same bits."""
    return (_JOB.get() or (0.0, False))[0] > LARGE


def compiles_for(work: float) -> bool:
    """True if a call of so many operations uses a loop whose NumPy version gives the same bits, and is slower."""
    return (_JOB.get() or (work, False))[0] > SMALL


def is_short(frames: Any, work: float) -> Any:
    """True per sequence of so many frames where it is short for a model that takes `work` operations per frame.

    Inside of a job all sequences are, or none, as the whole of it is small or not: a quarter of the work, which is
    done by four times as many calls.
    """
    whole = _JOB.get()
    return np.asarray(frames) * work <= SHORT if whole is None else np.full(np.shape(frames), whole[0] <= SMALL / 4)


def fit_work(rows: float, model: Any, passes: int) -> float:
    """Scalar operations of a fit."""
    return rows * (entries(model) + PER_ROW) * passes


def entries(value: Any) -> int:
    """Number of entries of all arrays of a model, those of its components included."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, list | tuple):
        return sum(map(entries, value))
    fields = getattr(value, "__dataclass_fields__", None)
    return 1 if fields is None else sum(entries(getattr(value, name)) for name in fields)

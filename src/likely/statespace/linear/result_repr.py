"""Reprs of state-space results: number of frames and states and the log-likelihood, in one line."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.description import counted
from likely.core.ragged import Ragged

SMALL = 4  # entries of a matrix that is written out in a line


def path_words(mean: Any, what: str = "state") -> str:
    """The size of a path (T, d), or of a Ragged of them.

    >>> path_words(np.zeros((100, 1))), path_words(Ragged.of([np.zeros((2, 3)), np.zeros((1, 3))]))
    ('100 frames of 1 state', '2 sequences, 3 frames of 3 states')
    """
    values = mean.values if isinstance(mean, Ragged) else mean
    size = f"{counted(len(values), 'frame')} of {counted(int(np.shape(values)[-1]), what)}"
    return f"{counted(len(mean), 'sequence')}, {size}" if isinstance(mean, Ragged) else size


def states_words(name: str, mean: Any, log_prob: Any) -> str:
    """Repr of filtered or smoothed states; for several sequences log_prob is the total.

    >>> states_words("Smoothed", np.zeros((100, 1)), -633.4645)
    'Smoothed(100 frames of 1 state, log_prob=-633.46)'
    """
    return f"{name}({path_words(mean)}, log_prob={float(np.sum(log_prob)):.2f})"


def matrix_words(a: Any) -> str:
    """A small matrix in a line, a larger one by its shape.

    >>> matrix_words(np.array([[1.0, 0.5], [0.0, 1e-9]])), matrix_words(np.eye(3))
    ('[[1, 0.5], [0, 1e-09]]', '3×3')
    """
    if np.size(a) > SMALL:
        return "×".join(map(str, np.shape(a)))
    rows_text = [", ".join(f"{x:.6g}" for x in row) for row in np.atleast_2d(a).tolist()]
    return "[" + (", ".join(f"[{row}]" for row in rows_text) if np.ndim(a) > 1 else rows_text[0]) + "]"


def start_words(model: Any) -> str:
    """The initial state of a linear model in words: proper, diffuse, or partly diffuse."""
    unknown = 0 if model.diffuse is None else int(model.diffuse.shape[1])
    if not unknown:
        return "proper initial state"
    return (
        "diffuse initial state"
        if unknown == model.states
        else f"initial state diffuse in {unknown} of {model.states} directions"
    )


def linear_words(model: Any, names: tuple[str, ...]) -> str:
    """Repr of a linear model: sizes, initial state, and the named matrices if all of them are small."""
    sizes = [counted(model.states, "state"), counted(model.dim, "column")]
    inputs, length = getattr(model, "n_inputs", 0), getattr(model, "length", None)
    sizes += [counted(inputs, "input")] * bool(inputs)
    sizes += [] if length is None else [f"time-varying over {counted(length, 'frame')}"]
    there = [(name, getattr(model, name)) for name in names if getattr(model, name) is not None]
    small = all(np.size(a) <= SMALL for _, a in there)
    matrices = [f"{name}={matrix_words(a)}" for name, a in there] if small and length is None else []
    return f"{type(model).__name__}({', '.join([*sizes, start_words(model), *matrices])})"

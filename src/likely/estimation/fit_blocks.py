"""Partition of the work of a fit for the cores, random streams, and checkpoint files of runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import n_rows
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.covariates import frames_of
from likely.core.ragged import Ragged
from likely.distributions.stacks.stack import Stack

FRAME_PARTS = 4  # parts for sequences: the overhead per part is larger, and needs the interpreter lock
PARTS = 8  # minimum number of parts of rows, and maximum number of blocks per task


def evenly(X: Any, weight: Any = None, **known: Any) -> Blocks:
    """Rows in at least PARTS parts, frames of sequences in FRAME_PARTS, where there are enough of them: so many passes
    want the cores evenly busy.

    How they are cut depends on their number alone, and so do the bits of the sums.
    """
    if isinstance(X, Ragged):
        n = len(X.values)
        blocks = min(max(-(-n // (FRAME_PARTS * ROWS)), 1), BLOCKS - 1)
        return Blocks.of(X, weight, rows=min(ROWS, max(512, -(-n // FRAME_PARTS))), blocks=blocks, **known)
    n = n_rows(X)
    rows = min(ROWS, max(512, -(-n // PARTS)))
    return Blocks.of(X, weight, rows=rows, blocks=min(max(n // (PARTS * ROWS), 1), PARTS), **known)


def keeper(checkpoint: Any, run: int, runs: int) -> Any:
    """The checkpoint of one of several runs."""
    if checkpoint is None:
        return None
    from likely.io.checkpoint import Checkpoint

    if isinstance(checkpoint, Checkpoint):
        if runs == 1:
            return checkpoint
        return Checkpoint(f"{os.fsdecode(checkpoint.path)}.{run}", checkpoint.every)
    return Checkpoint(checkpoint) if runs == 1 else Checkpoint(f"{checkpoint}.{run}")


def fit_members(blank: Stack, X: Ragged, labels: Any, weight: Any, learn: Callable[[Any, Ragged, Any], Any]) -> Stack:
    """The stack with each member fitted to its own sequences by learn(member, sequences, weights).

    A member without an observed frame stays as it is.
    """
    members = []
    for k, member in enumerate(blank.components):
        mine = np.flatnonzero(labels == k)
        own = X[mine]
        values = frames_of(own).values
        blind = isinstance(values, np.ndarray) and values.dtype.kind == "f" and bool(np.isnan(values).all())
        observed = len(values) > 0 and not blind
        members.append(learn(member, own, None if weight is None else weight[mine]) if observed else member)
    return Stack.trusted(components=tuple(members))


def own_streams(rng: np.random.Generator, contents: list[Any]) -> list[np.random.Generator]:
    """A random stream for each of several sets of rows, determined by the hashes of the rows.

    So neither the order nor the names of classes matter. A single set uses the given stream.
    """
    if len(contents) == 1:
        return [rng]
    seed = int(rng.integers(2**63))
    keys = (int(np.bitwise_xor.reduce(np.unique(hashes), initial=np.uint64(0))) for hashes in contents)
    return [np.random.default_rng([seed, key]) for key in keys]


def seed_of(random_state: Any) -> Any:
    """A seed for NumPy's generator; an old RandomState gives a number."""
    return random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state

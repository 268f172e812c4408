"""What workloads share: sizes, sums over blocks, conversions, and the set-up of libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np


def scaled(n: int, scale: float, least: int = 64) -> int:
    """A size times the scale of the run, at least `least`."""
    return max(least, int(n * scale))


def chunks(n: int, rows: int = 100_000) -> Iterator[slice]:
    """Slices that cover n rows."""
    for start in range(0, n, rows):
        yield slice(start, min(n, start + rows))


def logsumexp(a: Any, axis: int) -> Any:
    """log Σ exp over an axis."""
    top = a.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(a - top).sum(axis=axis))


def array(x: Any) -> Any:
    """Arrays of any library in double precision."""
    x = x.detach().cpu().numpy() if hasattr(x, "detach") else x
    return np.asarray(x, dtype=np.float64)


def threads() -> int:
    """Threads that everybody may use."""
    return int(os.environ.get("BENCH_THREADS", "2"))


def torch_module() -> Any:
    """torch with the threads of the run."""
    import torch

    torch.set_num_threads(threads())
    return torch


def torch_of(dtype: str = "float64") -> Any:
    """torch with that default type: pomegranate mixes types otherwise."""
    torch = torch_module()
    torch.set_default_dtype(getattr(torch, dtype))
    return torch


def library() -> Any:
    """likely with what a first call would import, so that set-up pays for it."""
    import likely as lk

    lk.Gaussian(np.zeros(2), np.eye(2)).log_prob(np.zeros((1, 2)))
    return lk

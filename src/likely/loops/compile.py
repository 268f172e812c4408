"""One decorator for every compiled loop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call, release the lock, keep the machine code where a cache can be written.

    No fastmath (it would change sums), no parallel (threads belong to the engine), no signatures.
    A loop and its helpers share one file: the cache does not notice a change in another file.
    """
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no place to write a cache: a read-only package folder without a home
        logging.getLogger("likely").info("no writable cache for compiled loops (%s): compiling anew", os.getpid())
        made = numba.njit(**options)(function)
    return made

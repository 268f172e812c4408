"""One decorator for every compiled loop."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call, release the lock, keep the machine code where a cache can be written.

    No fastmath (it would change sums), no parallel (threads belong to the engine), no signatures.
    A loop and its helpers share one file: the cache does not notice a change in another file.
    """
    import numba

    _announce()
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no place to write a cache: a read-only package folder without a home
        logging.getLogger("likely").info("no writable cache for compiled loops (%s): compiling anew", os.getpid())
        made = numba.njit(**options)(function)
    return made


@cache
def _announce() -> None:
    """At a terminal, say once why it takes so long: loops are compiled when they are first needed, and then kept."""
    if not sys.stderr.isatty():
        return
    from numba.core import event

    class Told(event.Listener):
        """Speaks at the first compilation and never again."""

        told = False

        def on_start(self, event: Any) -> None:
            ours = getattr(getattr(event.data.get("dispatcher"), "py_func", None), "__module__", "").startswith(
                "likely."
            )
            if ours and not Told.told:
                Told.told = True
                print("likely: compiling loops, once for all (`likely warm` does it in advance) …", file=sys.stderr)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Told())  # type: ignore[no-untyped-call]

"""Decorator of compiled (Numba) functions, and the message that the first call compiles."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from threading import Lock, Timer
from time import perf_counter
from types import FunctionType
from typing import Any

from likely.core.job_size import is_small

LOG = logging.getLogger("likely")
PATIENCE = 1.0  # seconds of compiling after which a message is printed on a terminal
SPEAKS: bool | None = None  # whether the message is printed on stderr; None: in interactive use
MESSAGE = "compiling {}, once: the machine code is kept (`likely warm` does it in advance)"


class CompiledFunction:
    """A loop that Numba compiles on its first call, and its source as a plain Python function.

    Numba is imported with the first loop that is called compiled. In a small job (`core.job_size`) a call runs the
    plain function. A loop and its helpers share one file: the cache does not notice a change in another file.
    """

    def __init__(self, function: Callable[..., Any], entry: bool = False) -> None:
        update_wrapper(self, function)
        self.function, self.entry = function, entry

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, whose helpers are dispatchers too."""
        return _names(self.__module__, True)[self.__name__]

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The plain Python function, whose helpers are plain functions too."""
        return _names(self.__module__, False)[self.__name__]  # type: ignore[no-any-return]

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop, compiled unless the job is small."""
        return self.plain(*arguments) if is_small() else self.dispatcher(*arguments)


@cache
def _names(module: str, by_numba: bool) -> dict[str, Any]:
    """Names of a module in which every loop is Numba's dispatcher, or plain Python."""
    names = dict(vars(sys.modules[module]))
    for name, value in list(names.items()):
        if isinstance(value, CompiledFunction):
            code = FunctionType(value.function.__code__, names, value.function.__name__)
            code.__module__, code.__doc__ = value.function.__module__, value.function.__doc__
            names[name] = _dispatcher(code, value.entry) if by_numba else code
    return names


def _dispatcher(function: Callable[..., Any], entry: bool) -> Any:
    """Numba's dispatcher: releases the GIL, and caches the machine code where possible.

    No fastmath (it would change sums), no parallel (threads belong to the engine), no signatures.
    """
    import numba

    _listen()
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options["no_cpython_wrapper"] = not entry
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable cache: a read-only package folder without a home
        LOG.info("no writable cache for compiled loops (%s): compiling anew", os.getpid())
        return numba.njit(**options)(function)


def compiled(function: Callable[..., Any]) -> CompiledFunction:
    """A loop that is compiled on its first call.

    A helper, whose name begins with an underscore, can be called from compiled code only: without an entry from
    Python the filter's loops compile in four fifths of the time. `with_entry` keeps it for helpers that have tests of
    their own.
    """
    return CompiledFunction(function, entry=not function.__name__.startswith("_"))


def with_entry(function: Callable[..., Any]) -> CompiledFunction:
    """`compiled`, for a helper that can also be called from Python."""
    return CompiledFunction(function, entry=True)


class Announcer:
    """Logs each compilation, and prints a message on a terminal or in a notebook, once per subject.

    A subject is a file of loops, as "kalman". Nothing is printed before compiling took `PATIENCE` seconds.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.told: set[str] = set()
        self.spent = 0.0  # seconds of compiling without a message
        self.depth = 0  # helpers are compiled while their caller is
        self.began = 0.0
        self.timer: Timer | None = None
        self.lock = Lock()

    def start(self, module: str, function: str) -> None:
        """A compilation begins."""
        with self.lock:
            self.depth += 1
            if self.depth > 1:
                return
            self.began = perf_counter()
            LOG.info(MESSAGE.format(f"{module}.{function}"))
            if module not in self.told and somebody_waits():
                self.timer = Timer(max(self.patience - self.spent, 0.0), self.tell, (module,))
                self.timer.daemon = True
                self.timer.start()

    def end(self) -> None:
        """The compilation has ended."""
        with self.lock:
            self.depth -= 1
            if self.depth:
                return
            self.spent += perf_counter() - self.began
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    def tell(self, module: str) -> None:
        """Print the message on standard error: never a warning, which would count as one of the user's."""
        self.told.add(module)
        self.spent = 0.0
        print(f"likely: {MESSAGE.format(f'the loops of {module}')} …", file=sys.stderr, flush=True)


def subject_of(module: str) -> str:
    """The subject of a module of compiled functions."""
    return ".".join(part for part in module.split(".")[1:] if part.strip("_") != "loops")


def somebody_waits() -> bool:
    """True at a terminal, in an interactive interpreter, in a notebook, and in a command that is not quiet."""
    if SPEAKS is not None:
        return SPEAKS
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules
    return interactive or (sys.stderr is not None and sys.stderr.isatty())


@cache
def _listen() -> None:
    """Register a listener for compilations of this package; functions from the cache cause none."""
    from numba.core import event

    announcer = Announcer()

    class Ours(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("likely."):
                announcer.start(subject_of(function.__module__), function.__name__)

        def on_end(self, event: Any) -> None:
            if event.data["dispatcher"].py_func.__module__.startswith("likely."):
                announcer.end()

    event.register("numba:compile", Ours())  # type: ignore[no-untyped-call]

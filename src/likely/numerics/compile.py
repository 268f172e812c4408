"""Decorator of compiled (Numba) functions, and the message that the first call compiles."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from threading import Lock, RLock, Timer
from time import perf_counter
from types import FunctionType
from typing import Any

from likely.core.job_size import is_small

LOG = logging.getLogger("likely")
ANNOUNCE_AFTER = 1.0  # seconds of compiling after which a message is printed on a terminal
ANNOUNCES: bool | None = None  # whether the message is printed on stderr; None: in interactive use
DEFERRED = (0, 68)  # version of Numba with which helpers get machine code inside of their loops only
COLLECTIONS = (50_000, 20, 20)  # thresholds of Python's garbage collector while a loop is compiled
MESSAGE = "compiling {}, once: the machine code is kept (`likely warm` does it in advance)"


class CompiledFunction:
    """A loop that Numba compiles on its first call, and its source as a plain Python function.

    Numba is imported with the first loop that is called compiled. In a small job (`core.job_size`) a call runs the
    plain function. A loop and its helpers share one file: the cache does not notice a change in another file. Helpers,
    whose names begin with an underscore, are compiled with the loops that call them, and called from Python they run
    in plain Python. `is_rare` says that it is optimized for size.
    """

    def __init__(self, function: Callable[..., Any], is_rare: bool = False) -> None:
        update_wrapper(self, function)
        self.function, self.name, self.is_rare = function, function.__name__, is_rare
        self.is_helper = self.name.startswith("_")

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, whose helpers are dispatchers too."""
        with _MAKING:  # two threads would compile the loop twice
            return _names(self.__module__, True)[self.name]

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The plain Python function, whose helpers are plain functions too; silent about overflow, as compiled code."""
        function: Callable[..., Any] = _names(self.__module__, False)[self.name]
        import numpy as np  # the command line loads this module also where nothing is computed

        return np.errstate(all="ignore")(function)

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop, compiled unless the job is small."""
        return self.plain(*arguments) if self.is_helper or is_small() else self.dispatcher(*arguments)


_MAKING = RLock()


@cache
def _names(module: str, by_numba: bool) -> dict[str, Any]:
    """Names of a module in which every loop is Numba's dispatcher, or plain Python."""
    names = dict(vars(sys.modules[module]))
    for name, value in list(names.items()):
        if isinstance(value, CompiledFunction):
            code = FunctionType(value.function.__code__, names, value.function.__name__)
            code.__module__, code.__doc__ = value.function.__module__, value.function.__doc__
            names[name] = _dispatcher(code, value.is_rare) if by_numba else code
    return names


def _dispatcher(function: Callable[..., Any], is_rare: bool) -> Any:
    """Numba's dispatcher: releases the GIL, and caches the machine code of loops where possible.

    No fastmath (it would change sums), no parallel (threads belong to the engine), no signatures.
    """
    numba: Any = import_module("numba")
    _listen()
    is_helper = function.__name__.startswith("_")
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options |= {"no_cpython_wrapper": True} if is_helper else {"cache": True}
    if numba.config.DISABLE_JIT:
        return numba.njit(**options)(function)
    if numba.version_info[:2] == DEFERRED and (is_helper or is_rare):
        options["pipeline_class"] = _compiler(is_helper, is_rare)
    try:
        return _without_literals(numba.njit(**options)(function))
    except RuntimeError:  # no writable cache: a read-only package folder without a home
        LOG.info("no writable cache for compiled loops (%s): compiling anew", os.getpid())
        return _without_literals(numba.njit(**options | {"cache": False})(function))


def _without_literals(dispatcher: Any) -> Any:
    """The dispatcher, which takes the type of a constant argument for any integer: else each would be compiled for."""
    from numba.core.types import unliteral

    resolve = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: resolve(tuple(map(unliteral, args)), kws)
    return dispatcher


@cache
def _compiler(is_helper: bool, is_rare: bool) -> Any:
    """Numba's compiler for helpers, and for rare loops.

    A helper gets neither optimization nor machine code: it gets both inside of the loops that call it. Else it would be
    optimized once by itself, once within each helper that calls it and once within each loop: those of HMMs, Kalman
    filters and DTW take 50–55 s of CPU time to compile instead of 37–42 s. A rare loop with all of its helpers is
    optimized for size, and so is a rare helper in any loop: LLVM neither unrolls nor vectorizes it, which halves LLVM's
    share of the compile time.

    This relies on internals of Numba, so it is used with the version that it was tested with (`DEFERRED`) alone; with
    others all are compiled as usual.
    """
    JITCodeLibrary: Any = import_module("numba.core.codegen").JITCodeLibrary
    Compiler: Any = import_module("numba.core.compiler").Compiler

    class RareLibrary(JITCodeLibrary):  # type: ignore[misc]
        def _optimize_final_module(self) -> None:
            _optimize_for_size(self._final_module)
            super()._optimize_final_module()

    class HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
        def add_llvm_module(self, module: Any) -> None:
            if is_rare:
                _optimize_for_size(module)
            super().add_llvm_module(module)

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # no entry from Python

        @property
        def codegen(self) -> Any:
            return self

        def set_env(self, name: str, environment: Any) -> None:
            """Helpers raise no errors, and need no environment."""

    class LibraryCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            kind = HelperLibrary if is_helper else RareLibrary
            library = kind(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            library.enable_object_caching()
            self.state.library = library
            return super().define_pipelines()

    return LibraryCompiler


def _optimize_for_size(module: Any) -> None:
    """Mark the functions of LLVM's module."""
    for function in module.functions:
        if not function.is_declaration:
            function.add_function_attribute("optsize")


def compiled(function: Callable[..., Any]) -> CompiledFunction:
    """Decorator of loops and of their helpers."""
    return CompiledFunction(function)


def compiled_for_size(function: Callable[..., Any]) -> CompiledFunction:
    """Decorator of loops and helpers that run rarely, or over few entries: compiled in less time, not unrolled."""
    return CompiledFunction(function, is_rare=True)


class FewerCollections:
    """While a loop is compiled, Python's garbage collector runs less often: it takes a tenth of the time.

    The compiler makes millions of objects, and nearly all of them stay until it ends.
    """

    def __init__(self) -> None:
        self.depth = 0  # helpers are compiled while their caller is
        self.usual = gc.get_threshold()
        self.lock = Lock()

    def start(self) -> None:
        """A compilation begins."""
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.usual = gc.get_threshold()
                if 0 < self.usual[0] < COLLECTIONS[0]:  # 0: somebody has switched the collector off
                    gc.set_threshold(*COLLECTIONS)

    def end(self) -> None:
        """The compilation has ended."""
        with self.lock:
            self.depth -= 1
            if self.depth == 0 and gc.get_threshold() == COLLECTIONS:
                gc.set_threshold(*self.usual)


class Announcer:
    """Logs each compilation, and prints a message on a terminal or in a notebook, once per subject.

    A subject is a file of loops, as "kalman". Nothing is printed before compiling took `ANNOUNCE_AFTER` seconds.
    """

    def __init__(self, patience: float = ANNOUNCE_AFTER) -> None:
        self.patience = patience
        self.announced: set[str] = set()
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
            if module not in self.announced and is_interactive():
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
        self.announced.add(module)
        self.spent = 0.0
        print(f"likely: {MESSAGE.format(f'the loops of {module}')} …", file=sys.stderr, flush=True)


def subject_of(module: str) -> str:
    """The subject of a module of compiled functions."""
    return ".".join(part for part in module.split(".")[1:] if part.strip("_") != "loops")


def is_interactive() -> bool:
    """True at a terminal, in an interactive interpreter, in a notebook, and in a command that is not quiet."""
    if ANNOUNCES is not None:
        return ANNOUNCES
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules
    return interactive or (sys.stderr is not None and sys.stderr.isatty())


@cache
def _listen() -> None:
    """Register a listener for compilations of this package; functions from the cache cause none."""
    from numba.core import event

    announcer, collections = Announcer(), FewerCollections()

    class Ours(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("likely."):
                collections.start()
                announcer.start(subject_of(function.__module__), function.__name__)

        def on_end(self, event: Any) -> None:
            if event.data["dispatcher"].py_func.__module__.startswith("likely."):
                announcer.end()
                collections.end()

    event.register("numba:compile", Ours())  # type: ignore[no-untyped-call]

"""Signals of `likely follow`: the process ends between two lines, never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, Self

CALLS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stops:
    """Handler of SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once.

    As a second call ends it like a crash, it leaves what was kept last. What the system was told to ignore (`nohup`)
    stays ignored.
    """

    def __init__(self) -> None:
        self.called, self.waiting = 0, False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in CALLS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
            self.before = {number: signal.signal(number, self._handle_signal) for number in heard}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _handle_signal(self, number: int, frame: object) -> None:
        self.called = number
        for each in self.before:
            signal.signal(each, signal.SIG_DFL)
        if self.waiting:
            self.leave()

    def leave(self) -> None:
        """Exit, if a signal came, with the code that shells expect: 128 plus the number of the signal."""
        if self.called == signal.SIGINT:
            raise KeyboardInterrupt
        if self.called:
            raise SystemExit(128 + self.called)

    def listen(self, read: Callable[[], bytes]) -> bytes:
        """Wait for input; only here may a signal interrupt."""
        self.waiting = True
        try:
            self.leave()  # a call of a moment ago
            return read()
        finally:
            self.waiting = False

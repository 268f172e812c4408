"""Memory checks before allocation: an error with the required size instead of a killed process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from likely.core.errors import DataError, sentence


def available_memory() -> float:
    """Bytes that this process may still allocate; infinite if unknown."""
    limits = [_available(), *_control_group_memory()]
    return min(limits, default=float("inf"))


def refuse_beyond(needed: float, whose: str, what: str, remedy: str) -> None:
    """Raise an error if an array would not fit into memory."""
    left = available_memory()
    if needed > 0.95 * left:
        gigabytes = f"{left / 2**30:.1f} GB free"
        raise DataError(sentence(whose, f"{what} takes {needed / 2**30:,.1f} GB of memory", gigabytes, remedy))


def _available() -> float:
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])
    with suppress(AttributeError, OSError, ValueError):
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def _control_group_memory() -> list[float]:
    """Memory left by the control group (container) limit, if there is one."""
    with suppress(OSError, ValueError):
        folder = Path("/sys/fs/cgroup")
        return [float((folder / "memory.max").read_text()) - float((folder / "memory.current").read_text())]
    return []

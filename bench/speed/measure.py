"""One library on one workload, in a process of its own: `python -m speed.measure WORKLOAD:PEER …` prints one record.

The record has the time of the first call (`first`), of the later ones (`median`, `best`), CPU time over wall time,
the peak of memory during the first call above what was resident before it, cores that other processes used
meanwhile, and the quality figures. Several pairs share the process in smoke tests: memory and first calls then say
little.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import math
import os
import statistics
import sys
import time
import traceback
import warnings
from typing import Any, NamedTuple

from speed.registry import Infeasible, Workload, load

BUSY = 0.1  # cores in others' use above which a call counts as disturbed
SHORT = 0.2  # seconds: shorter calls are repeated more often
MOST = 25  # repeats of short ones


class Call(NamedTuple):
    """One timed call."""

    result: Any
    seconds: float
    cpu: float  # CPU time over wall time
    memory: float | None  # MiB
    busy: float  # cores in others' use


def status(key: str) -> float | None:
    """A figure of /proc/self/status in MiB; None on systems without it."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))
    except OSError:
        return None


def reset_peak() -> None:
    """Start the peak of resident memory anew, where the system allows it."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def machine_seconds() -> float:
    """CPU seconds that the whole machine has spent; 0 where that is not known."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(part) for part in file.readline().split()[1:9]]
    except OSError:
        return 0.0
    return float((sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"))


def wait_for_quiet(patience: float) -> float:
    """Wait until others use little, for at most `patience` seconds; what is left of it."""
    while patience > 0:
        spent, own, start = machine_seconds(), time.process_time(), time.perf_counter()
        time.sleep(min(0.5, patience))
        passed = time.perf_counter() - start
        patience -= passed
        if machine_seconds() - spent - (time.process_time() - own) < BUSY * passed:
            break
    return max(patience, 0.0)


def timed(run: Any) -> Call:
    """One call with its figures."""
    gc.collect()
    reset_peak()
    before = status("VmRSS:")
    machine, own, start = machine_seconds(), time.process_time(), time.perf_counter()
    result = run()
    seconds, own = time.perf_counter() - start, time.process_time() - own
    others = max(0.0, machine_seconds() - machine - own) / seconds if seconds > 0.1 else 0.0  # ticks are 10 ms
    peak = status("VmHWM:")
    memory = None if before is None or peak is None else max(peak - before, 0.0)
    return Call(result, seconds, own / seconds, memory, others)


def measured(work: Workload, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The record of one library."""
    data = work.generate(options.scale)
    try:
        run = work.peers[name].prepare(data)
    except Infeasible as reason:
        return {"status": "infeasible", "why": str(reason)}
    except ImportError as error:
        return {"status": "not installed", "why": str(error)}
    patience = wait_for_quiet(options.quiet)
    first = timed(run)
    wanted = options.repeats or work.repeats
    if not options.repeats and first.seconds < SHORT:
        wanted = max(wanted, min(MOST, math.ceil(1.0 / max(first.seconds, 1e-3))))
    calls: list[Call] = []
    spent = first.seconds
    while sum(call.busy <= BUSY for call in calls) < wanted and len(calls) < 3 * wanted:
        if spent + 1.2 * first.seconds > options.budget:
            break
        patience = wait_for_quiet(patience)
        calls.append(timed(run)._replace(result=None))
        spent += calls[-1].seconds
    quality = {name: plain(value) for name, value in work.judge(data, first.result).items()}
    return {"status": "ok", **figures(first, calls, work), "quality": quality}


def figures(first: Call, calls: list[Call], work: Workload) -> dict[str, Any]:
    """Times of undisturbed calls where there are any, else of all; the first one's if it is the only one."""
    quiet = [call for call in calls if call.busy <= BUSY] or calls or [first]
    best = min(quiet, key=lambda call: call.seconds)
    return {
        "first": first.seconds, "median": statistics.median(call.seconds for call in quiet), "best": best.seconds,
        "repeats": len(calls), "cpu": best.cpu, "memory": first.memory,
        "busy": max(call.busy for call in quiet), "calls": work.calls,
    }  # fmt: skip


def plain(value: Any) -> Any:
    """A number that JSON can hold."""
    value = value.item() if hasattr(value, "item") else value
    return value if not isinstance(value, float) or math.isfinite(value) else repr(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="+", metavar="WORKLOAD:PEER")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=0, help="0: as the workload says")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for all calls")
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds that it may wait for a quiet machine")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to stderr
    works = load()
    for pair in options.pairs:
        workload, peer = pair.split(":")
        try:
            record = measured(works[workload], peer, options)
        except Exception as error:
            traceback.print_exc()
            record = {"status": "failed", "why": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"workload": workload, "peer": peer, **record}), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

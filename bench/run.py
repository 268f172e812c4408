"""likely beside other libraries in one run: time, memory and quality of each, one process after another.

./run bench                          everything: more than an hour on two cores
./run bench --only gmm,kalman        workloads whose name contains one of these
./run bench --peers likely,sklearn   libraries whose name begins so
./run bench --quick                  a fiftieth of the data, one repeat: does it run?
./run bench --publish                also write the table into docs/results/benchmarks.md
./run bench --goals                  also say whether the goals of bench/goals.py are met
./run bench --list                   workloads and libraries
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import environments
import startup
from goals import GOALS, Goal, did_the_job, verdicts
from pages import processor
from pages import table as markdown
from speed.registry import Workload, load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results.jsonl"
PAGE = ROOT / "docs" / "results" / "benchmarks.md"
BEGIN, END = "<!-- begin: written by ./run bench --publish -->", "<!-- end -->"
QUICK = 0.02
LIMIT = 600  # seconds for one process, data and set-up included

Record = dict[str, Any]


# -------------------------------------------------------------------- running


def chosen(works: dict[str, Workload], only: str, peers: str) -> dict[str, list[str]]:
    """Workloads whose name contains one of the words, each with the libraries whose name begins so."""
    words, starts = only.split(","), tuple(peers.split(","))
    found = {
        name: [peer for peer in work.peers if peer.startswith(starts)]
        for name, work in works.items()
        if any(word in name for word in words)
    }
    found = {name: able for name, able in found.items() if able}
    return found or sys.exit(f"bench: nothing matches --only {only!r} --peers {peers!r}: see --list.")


def run_together(pairs: list[tuple[str, str]], works: dict[str, Workload], options: argparse.Namespace) -> list[Record]:
    """The records of some pairs (workload, library) of one environment, in one process."""
    about = [
        {"workload": work, "peer": peer, "size": works[work].size, "note": works[work].peers[peer].note}
        for work, peer in pairs
    ]
    name = environments.environment_of(pairs[0][1])
    python = environments.python_of(name)
    if python is None:
        why = f"the environment {name} is not installed"
        return [{**record, "status": "not installed", "why": why} for record in about]
    command = [str(python), "-W", "ignore", "-m", "speed.measure", *map(":".join, pairs), "--quiet", str(options.quiet)]
    command += ["--scale", str(QUICK), "--budget", "0"] if options.quick else ["--budget", str(options.budget)]
    made, lost = {}, {"status": "failed", "why": "the process ended early"}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=HERE, env=settings(options.threads), stdout=subprocess.PIPE, stderr=errors, text=True
        )
        clock = threading.Timer(LIMIT, process.kill)
        clock.start()
        for line in process.stdout or ():
            record = json.loads(line)
            made[record["workload"], record["peer"]] = record
            print(f"{record['workload']} {record['peer']}: {record['status']}", file=sys.stderr, flush=True)
        process.wait()
        if not clock.is_alive():
            lost = {"status": "timeout", "why": f"more than {LIMIT} s"}
        clock.cancel()
        errors.seek(0)
        last = [line for line in errors.read().splitlines() if line.strip()][-1:]
    lost["why"] += f": {''.join(last)[:200]}" if lost["status"] == "failed" else ""
    return [{**record, **made.get((record["workload"], record["peer"]), lost)} for record in about]


def processes(wanted: dict[str, list[str]], quick: bool) -> list[list[tuple[str, str]]]:
    """Pairs (workload, library) by process: one each, but for a smoke test one process per environment."""
    pairs = [(name, peer) for name, peers in wanted.items() for peer in peers]
    if not quick:
        return [[pair] for pair in pairs]
    of = [environments.environment_of(peer) for _, peer in pairs]
    return [[pair for pair, name in zip(pairs, of, strict=True) if name == one] for one in dict.fromkeys(of)]


def settings(threads: int) -> dict[str, str]:
    """Environment variables: the same number of threads for everybody."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "BENCH_THREADS")
    numbers = dict.fromkeys(names, str(threads))
    own = {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "PYTHONHASHSEED": "0"}
    if threads == 1:
        own["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return {**os.environ, **numbers, **own}


def note(**record: Any) -> None:
    """Append a line to the results."""
    with RESULTS.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def circumstances(options: argparse.Namespace) -> Record:
    """What one needs to know to compare this run with another."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return {
        "date": time.strftime("%Y-%m-%d"), "commit": git.stdout.strip(), "processor": processor(),
        "cores": os.cpu_count(), "threads": options.threads, "python": platform.python_version(),
        "quick": options.quick, "versions": versions(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of what is compared, over all environments that are installed."""
    found: dict[str, str] = {}
    for name, entry in environments.table().items():
        python = environments.python_of(name)
        if python is None:
            continue
        packages = ["likely", "numpy", "numba", *entry["packages"]] if name == environments.BASE else entry["packages"]
        code = (
            "import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\nout = {}\n"
            "for name in sys.argv[1:]:\n    try: out[name] = version(name)\n    except PackageNotFoundError: pass\n"
            "print(json.dumps(out))"
        )
        ran = subprocess.run([str(python), "-c", code, *packages], capture_output=True, text=True, check=True)
        found = {**json.loads(ran.stdout), **found}
    return found


# ------------------------------------------------------------------- printing

HEAD = ["library", "median", "first call", "÷ best", "peak memory", "quality", "how"]


def tables(records: list[Record], works: dict[str, Workload]) -> str:
    """One table per workload; bold is the best."""
    out = []
    for name in dict.fromkeys(record["workload"] for record in records):
        work, own = works[name], [record for record in records if record["workload"] == name]
        able = [record for record in own if did_the_job(record, work.bounds)]
        best = min((record["median"] for record in able), default=None)
        rows = [cells(record, best, work) for record in sorted(own, key=lambda r: r.get("median") or float("inf"))]
        out.append(f"### {name}\n\n{work.size}.\n\n{markdown(HEAD, rows)}")
    return "\n".join(out)


def cells(record: Record, best: float | None, work: Workload) -> list[str]:
    """One row: who, how long, how that compares to the best, memory, quality."""
    if record["status"] != "ok":
        return [record["peer"], *["–"] * 4, record["status"], record.get("why", "")]
    median, same = seconds(record["median"]), did_the_job(record, work.bounds)
    if same and record["median"] == best:
        median = f"**{median}**"
    ratio = f"{record['median'] / best:.2f}" if best else "–"
    quality = ", ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in record["quality"].items())
    quality += "" if same else " (another job: beyond the bound)"
    memory = "–" if record["memory"] is None else f"{record['memory']:.0f} MiB"
    noisy = f" (disturbed: {record['busy']:.1f} cores)" if record["busy"] > 0.1 else ""
    return [record["peer"], median + noisy, seconds(record["first"]), ratio, memory, quality, record["note"]]


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def page(found: Record, records: list[Record], works: dict[str, Workload]) -> str:
    """What `--publish` writes between the markers."""
    names = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    head = (
        f"Measured on {found['date']} at commit `{found['commit']}`: {found['processor']}, {found['cores']} cores, "
        f"{found['threads']} threads for everybody, Python {found['python']}; {names}."
    )
    return f"{BEGIN}\n\n{head}\n\n{tables(records, works)}\n{END}"


def publish(text: str, to: Path = PAGE) -> None:
    """Replace what stands between the markers of the page."""
    old = to.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN, 1)
    to.write_text(before + text + rest.split(END, 1)[1], encoding="utf-8")


def goals_of(records: list[Record], works: dict[str, Workload]) -> str:
    """Goals with verdicts."""
    names = dict.fromkeys(record["workload"] for record in records)
    rows = [
        [name, *said]
        for name in names
        for said in verdicts([r for r in records if r["workload"] == name], works[name].bounds, GOALS.get(name, Goal()))
    ]
    return markdown(["workload", "likely", "goal"], rows)


# ------------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="comma list: words that the names of workloads contain")
    parser.add_argument("--peers", default="", help="comma list: beginnings of the names of libraries")
    parser.add_argument("--quick", action="store_true", help=f"a smoke test: scale {QUICK}, one call, one thread")
    parser.add_argument("--threads", type=int, default=2, help="threads for everybody (default: %(default)s)")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds that each may wait for a quiet machine")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for all calls of one library")
    parser.add_argument("--publish", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--goals", action="store_true", help="whether likely met its goals")
    parser.add_argument("--list", action="store_true", help="workloads and libraries")
    parser.add_argument("--requirements", action="store_true", help=argparse.SUPPRESS)  # for the shell
    return parser.parse_args()


def main() -> int:
    """Run, print, and say by the exit code whether likely did every job."""
    options = arguments()
    works = load()
    wanted = chosen(works, options.only, options.peers)
    if options.quick:
        skipped = [(n, p) for n, peers in wanted.items() for p in peers if works[n].peers[p].compiles_long]
        wanted = {n: [p for p in peers if (n, p) not in skipped] for n, peers in wanted.items()}
        for name, peer in skipped:
            print(f"{name} {peer}: left out of --quick, it compiles for minutes", file=sys.stderr)
    if options.list:
        print("\n".join(f"{name}: {works[name].size}\n    {', '.join(peers)}" for name, peers in wanted.items()))
        return 0
    if options.requirements:
        print("\n".join(environments.requirements(peer for peers in wanted.values() for peer in peers)))
        return 0
    if options.quick:  # threads of BLAS would wait for each other: small products are faster in one
        options.quiet, options.threads = 0.0, 1
    found = circumstances(options)
    note(run=found)
    records = []
    for pairs in processes(wanted, options.quick):
        for record in run_together(pairs, works, options):
            records.append(record)
            note(**record)
    print(page(found, records, works))
    if options.goals:
        print(goals_of(records, works))
    timed = startup.measured(times=2 if options.quick else startup.TIMES)
    note(startup={t.name: t.seconds for t in timed})
    print(markdown(*startup.rows(timed)[:1], startup.rows(timed)[1:]))
    if options.publish:
        publish(page(found, records, works))
    return 0 if all(r["status"] == "ok" for r in records if r["peer"].startswith("likely")) else 1


if __name__ == "__main__":
    sys.exit(main())

"""likely beside its peers in one run: time, memory, quality, and whether the goals are met.

    ./run bench                                all workloads that likely serves, then start-up
    ./run bench --only gaussian_stack,gaps     workloads whose name contains one of these
    ./run bench --quick                        a smoke test on a fiftieth of the data
    ./run bench --threads 1                    everybody on one core
    ./run bench --markdown                     tables for the documentation

The driver is the shared `peers.py`; LIKELY_PEERS names its folder if it is not ../shared/bench.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import startup

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLUGIN = HERE / "likely_plugin.py"
RESULTS = HERE / "results.jsonl"
# prefixes: numpy_gemm and numpy_chol are among them
PEERS = "likely,sklearn,scipy,numpy,torch,pomegranate,fastcluster,filterpy"
QUICK = 0.02
NOISE = 0.1  # cores in others' use above which a time says nothing: the pair is run again, and then not judged
ROUNDS = 3

Record = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """What likely should reach on a workload.

    `allowed` bounds the quality figures: a peer beyond one of them did another, easier job and does not
    count as a rival; likely beyond one of them has missed.
    """

    faster: float | None = None  # best rival's time over likely's, at least
    memory: float | None = None  # MiB beyond the input, at most
    within: tuple[str, float] | None = None  # (own twin, at most this many times its time)
    seconds: tuple[str, float] | None = None  # (own twin, at most this time)
    allowed: tuple[tuple[str, float], ...] = ()


GOALS = {
    "kde": Goal(faster=5.0, allowed=(("max_abs_err", 1e-4),)),
    "gaussian_ml": Goal(faster=2.0, memory=50.0, allowed=(("cov_err", 1e-12),)),
    "gaussian_stack": Goal(faster=3.0, allowed=(("max_err", 1e-8),)),
    "gaussian_gaps": Goal(within=("likely_complete", 3.0), allowed=(("max_err", 1e-8),)),
    "qda": Goal(faster=4.0),
    "lda": Goal(faster=2.0),
    "gaussian_nb": Goal(faster=10.0, memory=50.0 + 16.0),  # MiB; 16 of them are the labels that it returns
    "gmm_full": Goal(faster=5.0, memory=100.0),
    "gmm_diag": Goal(faster=8.0, memory=100.0),
    "multinomial_mixture": Goal(faster=1.0),
    "kmeans": Goal(faster=2.0),
    "hier_ward": Goal(faster=1.0),
    "hier_average": Goal(faster=1.0),
    "pca": Goal(faster=1.3),
    "hmm_gauss": Goal(faster=5.0),
    "hmm_long": Goal(faster=3.0),
    "hmm_gmm": Goal(faster=3.0),
    "knn": Goal(faster=1.0),
    "dtw_full": Goal(faster=3.0),
    "dtw_band": Goal(faster=3.0),
    "kalman": Goal(faster=3.0, allowed=(("mean_err", 1e-6), ("cov_err", 1e-6))),
    "kalman_em": Goal(faster=3.0),
    "kalman_gaps": Goal(faster=1.0),
    "ekf": Goal(faster=1.0, allowed=(("max_err", 1e-6),)),
    "particle": Goal(faster=2.0),
    "latency_kalman": Goal(seconds=("likely", 0.030)),  # of 1000 steps
    "latency_hmm": Goal(seconds=("likely", 0.015)),  # of 100 calls
    "latency_qda": Goal(faster=2.0, seconds=("likely_value", 0.030)),  # of 1000 calls
}


# -------------------------------------------------------------------- running


def driver() -> Path:
    """peers.py, or a sentence that says where it was looked for."""
    folder = Path(os.environ.get("LIKELY_PEERS") or ROOT.parent / "shared" / "bench")
    path = folder / "peers.py"
    if not path.is_file():
        sys.exit(f"bench: no peers.py in {folder}: set LIKELY_PEERS to the folder that holds the peers' benchmark.")
    return path


def served(peers: Path) -> dict[str, list[str]]:
    """Workloads that likely takes part in, with the names of all peers registered for them."""
    sys.dont_write_bytecode = True  # the driver's folder is not ours to write
    spec = importlib.util.spec_from_file_location("peers", peers)
    assert spec is not None and spec.loader is not None
    module = sys.modules["peers"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load_plugins([str(PLUGIN)])
    return {name: list(w.peers) for name, w in module.WORKLOADS.items() if "likely" in w.peers}


def chosen(names: list[str], only: str | None) -> list[str]:
    """Names that contain one of the words asked for."""
    words = only.split(",") if only else [""]
    found = [name for name in names if any(word in name for word in words)]
    return found or sys.exit(f"bench: no workload matches {only!r}: there are {', '.join(names)}.")


def run_peers(peers: Path, names: list[str], options: argparse.Namespace) -> list[Record]:
    """Run the driver, one process a peer, one after another; what was disturbed, again."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.jsonl"
        command = [sys.executable, "-B", str(peers), "--plugin", str(PLUGIN), "--peers", options.peers]
        command += ["--only", ",".join("=" + name for name in names), "--threads", str(options.threads)]
        command += ["--out", str(out), "--redo", str(out), "--noise", str(NOISE), "--quiet", str(options.quiet)]
        command += ["--scale", str(QUICK), "--k", "1"] if options.quick else []
        for _ in range(1 if options.quick else ROUNDS):
            subprocess.run(command, check=True, stdout=sys.stderr)
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    for record in records:
        note(**record)
    return least_disturbed(records)


def least_disturbed(records: list[Record]) -> list[Record]:
    """One record a pair, in the order of the first round: an undisturbed one before others, then the fastest."""
    pairs: dict[tuple[str, str], list[Record]] = {}
    for r in records:
        pairs.setdefault((r["workload"], r["peer"]), []).append(r)
    return [min(same, key=lambda r: (not worked(r), noise(r) > NOISE, r.get("best") or 0.0)) for same in pairs.values()]


def noise(record: Record) -> float:
    """Cores that others used while the best call ran."""
    return float(record.get("busy") or 0.0)


def note(**record: Any) -> None:
    """Append a line to the results; the driver skips lines without a workload."""
    with RESULTS.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def circumstances(options: argparse.Namespace) -> Record:
    """What one needs to know to compare this run with another."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    packages = ("likely", "numpy", "scipy", "numba", "scikit-learn", "torch", "pomegranate")
    return {
        "commit": git.stdout.strip(), "python": platform.python_version(), "machine": platform.machine(),
        "cores": os.cpu_count(), "threads": options.threads, "quick": options.quick,
        "versions": {name: installed(name) for name in packages}, "when": time.strftime("%Y-%m-%dT%H:%M:%S"),
    }  # fmt: skip


def installed(package: str) -> str | None:
    """The version of a package, None where it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# -------------------------------------------------------------------- judging


def worked(record: Record) -> bool:
    """True for a peer that did the job."""
    return record["status"] == "ok" and "error" not in (record.get("quality") or {})


def same_job(record: Record, goal: Goal) -> bool:
    """True if the quality is what the workload asks for."""
    return all(float(record["quality"].get(name, 0.0)) <= bound for name, bound in goal.allowed)


def rival(records: list[Record], goal: Goal) -> Record | None:
    """The fastest other peer that did the same job."""
    able = [r for r in records if worked(r) and not r["peer"].startswith("likely") and same_job(r, goal)]
    return min(able, key=lambda r: r["best"], default=None)


def named(records: list[Record], peer: str) -> Record | None:
    """The record of one peer."""
    return next((r for r in records if r["peer"] == peer and worked(r)), None)


def verdicts(records: list[Record], goal: Goal) -> Iterator[tuple[str, str]]:
    """Each thing that was asked for in words, and whether it was reached."""
    ours, other = named(records, "likely"), rival(records, goal)
    if ours is None:
        yield "likely runs", "MISSED"
        return
    if other is not None:
        ratio = other["best"] / ours["best"]
        wanted = f" (goal {goal.faster:g}×)" if goal.faster else ""
        yield f"{ratio:.2f}× as fast as {other['peer']}{wanted}", verdict(ratio >= (goal.faster or 0.0), ours, other)
    if goal.memory is not None:
        yield f"{ours['rss']:.0f} MiB (goal {goal.memory:g})", verdict(ours["rss"] <= goal.memory)
    if goal.within and (twin := named(records, goal.within[0])):
        ratio = ours["best"] / twin["best"]
        said = f"{ratio:.2f}× the time of {twin['peer']} (goal {goal.within[1]:g}×)"
        yield said, verdict(ratio <= goal.within[1], ours, twin)
    if goal.seconds and (twin := named(records, goal.seconds[0])):
        said = f"{twin['peer']} in {twin['best']:.4g} s (goal {goal.seconds[1]:g} s)"
        yield said, verdict(twin["best"] <= goal.seconds[1], twin)
    for name, bound in goal.allowed:
        value = float(ours["quality"].get(name, 0.0))
        yield f"{name} {value:.1g} (goal {bound:g})", verdict(value <= bound)


def verdict(good: bool, *timed: Record) -> str:
    """Met or missed; neither, where the times that it rests on were disturbed."""
    worst = max(map(noise, timed), default=0.0)
    return f"noisy ({worst:.1f}): run again" if worst > NOISE else "met" if good else "MISSED"


# ------------------------------------------------------------------- printing


def cells(record: Record, records: list[Record], goal: Goal) -> list[str]:
    """One line of the table: who, how long, how that compares to likely, memory, noise, quality."""
    ours = named(records, "likely")
    if not worked(record):
        return [record["workload"], record["peer"], *["–"] * 5, record.get("why") or record["status"]]
    ratio = f"{record['best'] / ours['best']:.2f}" if ours else "–"
    quality = ", ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in record["quality"].items())
    quality += "" if same_job(record, goal) else " (beyond what is allowed: no rival)"
    times = [f"{record['best']:.4g}", f"{record['med']:.4g}", ratio]
    return [
        record["workload"],
        record["peer"],
        *times,
        f"{record['rss']:.0f}",
        f"{noise(record):.2f}",
        quality,
    ]


HEAD = ["workload", "peer", "best s", "median s", "÷ likely", "MiB beyond input", "noise", "quality"]


def plain(table: list[list[str]]) -> str:
    """Columns padded with blanks."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]) - 1)] + [0]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table)


def markdown(table: list[list[str]]) -> str:
    """The same for the documentation."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def report(records: list[Record], show: Callable[[list[list[str]]], str], judge: bool) -> None:
    """The table of all peers, then the goals of each workload."""
    groups: dict[str, list[Record]] = {}
    for r in records:
        groups.setdefault(r["workload"], []).append(r)
    lines = [cells(r, group, GOALS.get(w, Goal())) for w, group in groups.items() for r in group]
    print(show([HEAD, *lines]), end="\n\n")
    if judge:
        goals = [[w, *said] for w, group in groups.items() for said in verdicts(group, GOALS.get(w, Goal()))]
        print(show([["workload", "likely", "goal"], *goals]), end="\n\n")


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma list: words that the names of workloads contain")
    parser.add_argument("--peers", default=PEERS, help="comma list: prefixes of peers' names (default: %(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help=f"a smoke test: scale {QUICK}, one repeat, goals not judged"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads for everybody (default: %(default)s)")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds that each peer may wait for a quiet machine")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    return parser.parse_args()


def main() -> int:
    """Run, print, and say by the exit code whether likely did every job."""
    options = arguments()
    if options.quick:
        options.quiet = min(options.quiet, 2.0)
    peers = driver()
    names = chosen(list(served(peers)), options.only)
    note(run=circumstances(options))
    records = run_peers(peers, names, options)
    show = markdown if options.markdown else plain
    print()
    report(records, show, judge=not options.quick)
    timed = startup.measured(times=2 if options.quick else startup.TIMES)
    note(startup={t.name: t.seconds for t in timed})
    print(show(startup.rows(timed)))
    return 0 if all(worked(r) for r in records if r["peer"].startswith("likely")) else 1


if __name__ == "__main__":
    sys.exit(main())

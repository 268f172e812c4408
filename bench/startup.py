"""What the first seconds cost: imports, the command before it does anything, and first calls that compile.

    python bench/startup.py            # each in a fresh process, the best of 10, after one that fills the file cache
    python bench/startup.py --cold     # first calls with an empty cache of compiled loops, and again with a full one
    python bench/startup.py --cold kalman --loops   # some of them, with the compile time of each loop
    python bench/startup.py --compile  # all loops of each subject of `likely warm`, from an empty cache

Compile time of a loop is its own: what its helpers took is theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

TIMES = 10


class Measure(NamedTuple):
    """A command, what is subtracted from its time, and the seconds that it should stay within."""

    name: str
    command: list[str]
    above: list[str] | None = None
    goal: float | None = None


class Timed(NamedTuple):
    """Seconds of a measure beside its goal."""

    name: str
    seconds: float
    goal: float | None

    @property
    def verdict(self) -> str:
        """Met, missed, or nothing where no goal was set."""
        if self.goal is None:
            return ""
        return "met" if self.seconds <= self.goal else "MISSED"


def python(code: str) -> list[str]:
    """A fresh interpreter that runs this and ends."""
    return [sys.executable, "-c", code]


def likely(argument: str) -> list[str]:
    """The command, as the script in this environment starts it."""
    return python(
        f"import sys; sys.argv = ['likely', '{argument}']; from likely.cli.main import main; sys.exit(main())"
    )


NUMPY = python("import numpy")
MEASURES = [
    Measure("interpreter", python("pass")),
    Measure("import numpy", NUMPY),
    Measure("import likely, above numpy", python("import numpy, likely"), above=NUMPY, goal=0.1),
    Measure("likely.Gaussian, above numpy", python("import numpy, likely; likely.Gaussian"), above=NUMPY),
    Measure("likely --version", likely("--version"), goal=0.15),
    Measure("likely --help", likely("--help"), goal=0.3),
]


def seconds(command: list[str]) -> float:
    """Wall time of one fresh process, which must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def best(commands: list[list[str]], times: int = TIMES) -> list[float]:
    """Best time of each; they take turns, so that a busy minute falls on all of them."""
    for command in commands:
        seconds(command)
    rounds = [[seconds(command) for command in commands] for _ in range(times)]
    return [min(column) for column in zip(*rounds, strict=True)]


def measured(measures: list[Measure] = MEASURES, times: int = TIMES) -> list[Timed]:
    """All measures, each with its own base subtracted."""
    commands = [m.command for m in measures]
    took = dict(zip(map(tuple, commands), best(commands, times), strict=True))
    base = {m.name: took[tuple(m.above)] if m.above else 0.0 for m in measures}
    return [Timed(m.name, took[tuple(m.command)] - base[m.name], m.goal) for m in measures]


def rows(timed: list[Timed]) -> list[list[str]]:
    """The table, header first."""
    body = [[t.name, f"{t.seconds:.3f}", f"{t.goal:g}" if t.goal else "", t.verdict] for t in timed]
    return [["start-up", "seconds", "goal", "verdict"], *body]


# ------------------------------------------------------------------ first calls

PREPARE = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, likely as lk
rng = np.random.default_rng(0)
y = np.arange(300) % 3
X = rng.normal(size=(300, 3)) + y[:, None]
holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
walk = np.cumsum(rng.normal(size=300))
one = np.eye(1)
level = dict(transition=one, process_covariance=one, observation=one, observation_covariance=one)
known = dict(level, initial_mean=[0.0], initial_covariance=one)
"""
FIRST_CALLS = {
    "BayesClassifier": "lk.BayesClassifier().fit(X, y).predict(X)",
    "MixtureDensity": "lk.MixtureDensity(n_components=3, random_state=0).fit(X)",
    "missing entries": "lk.GaussianDensity().fit(holes).score_samples(holes)",
    "HMMDensity.fit": "lk.HMMDensity(n_states=2, random_state=0).fit(X)",
    "viterbi": (
        "lk.HMM(initial=[0.5, 0.5], transition=[[0.9, 0.1], [0.1, 0.9]], emission=lk.Gaussian([[0.0], [1.0]], 1.0))"
        ".viterbi(walk[:, None])"
    ),
    "Kalman filter": "lk.LinearGaussian(**known).filter(walk)",
    "Kalman smoother": "lk.LinearGaussian(**known).smooth(walk)",
    "Kalman filter, missing": "lk.LinearGaussian(**known).filter(np.where(np.arange(300) % 7, walk, np.nan))",
    "Kalman filter, diffuse": "lk.LinearGaussian(**level).filter(walk)",
    "dtw": "lk.dtw(walk[:50], walk[20:80])",
    "DTWClassifier": "lk.DTWClassifier().fit(X[:, :1].reshape(10, 30), y[:10]).predict(X[:, 1].reshape(10, 30))",
    "KMeans": "lk.KMeans(3, random_state=0).fit(X)",
    "kernel density": "lk.KernelDensity().fit(X).score_samples(X)",
    "nearest neighbors": "lk.KNeighborsClassifier().fit(X, y).predict(X)",
}
LISTEN = """
import json, time
from numba.core import event
spent, stack = {}, []
class Clock(event.Listener):
    def on_start(self, e):
        stack.append([time.process_time(), 0.0])
    def on_end(self, e):
        began, inner = stack.pop()
        took, f = time.process_time() - began, e.data["dispatcher"].py_func
        name = f"{f.__module__.rpartition('.')[2]}.{f.__name__}"
        spent[name] = spent.get(name, 0.0) + took - inner
        if stack:
            stack[-1][1] += took
event.register("numba:compile", Clock())
"""


def first_call(code: str, cache: str) -> tuple[float, dict[str, float]]:
    """CPU seconds of a call in a fresh process, data and imports not counted, and those of compiling each loop."""
    timed = f"began = time.process_time()\n{code}\nprint(json.dumps([time.process_time() - began, spent]))"
    env = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(python(LISTEN + PREPARE + timed), check=True, capture_output=True, text=True, env=env)
    seconds, loops = json.loads(done.stdout.splitlines()[-1])
    return seconds, loops


def cold(chosen: list[str], with_loops: bool) -> None:
    """First calls with an empty cache, and with the one that they left."""
    print(f"{'first call':26} {'empty cache':>12} {'cached':>8} {'loops':>6}")
    for name, code in FIRST_CALLS.items():
        if chosen and not any(word.lower() in name.lower() for word in chosen):
            continue
        with tempfile.TemporaryDirectory() as folder:
            seconds, loops = first_call(code, folder)
            again, _ = first_call(code, folder)
        print(f"{name:26} {seconds:12.2f} {again:8.2f} {len(loops):6}", flush=True)
        if with_loops:
            for loop, took in sorted(loops.items(), key=lambda item: -item[1])[:20]:
                print(f"    {loop:40} {took:6.2f}")


COMPILE = """
import math
from likely.cli.warm import JOBS
from likely.core.job_size import job
for name in NAMES or JOBS:
    before = sum(spent.values())
    with job(math.inf):
        JOBS[name]()
    print(json.dumps([name, sum(spent.values()) - before]), flush=True)
"""


def compile_all(subjects: list[str]) -> None:
    """CPU seconds of compiling all loops of each subject, in one process with an empty cache."""
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "NUMBA_CACHE_DIR": folder}
        code = python(LISTEN + PREPARE + f"NAMES = {subjects}\n" + COMPILE)
        with subprocess.Popen(code, stdout=subprocess.PIPE, text=True, env=env) as process:
            assert process.stdout is not None
            for line in process.stdout:
                name, seconds = json.loads(line)
                total += seconds
                print(f"{name:16} {seconds:6.2f}", flush=True)
    print(f"{'all':16} {total:6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cold", nargs="*", metavar="NAME", help="first calls with an empty cache; some of them")
    parser.add_argument("--compile", nargs="*", metavar="SUBJECT", help="CPU seconds of compiling all loops")
    parser.add_argument("--loops", action="store_true", help="with the compile time of each loop")
    asked = parser.parse_args()
    if asked.cold is not None:
        cold(asked.cold, asked.loops)
        sys.exit()
    if asked.compile is not None:
        compile_all(asked.compile)
        sys.exit()
    for line in rows(measured()):
        print(f"{line[0]:30} {line[1]:>8} {line[2]:>6}  {line[3]}")

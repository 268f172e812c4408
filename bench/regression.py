"""Evidence regression of 200,000 rows of 100 columns beside scikit-learn's BayesianRidge, in one run.

    python bench/regression.py                       both, in turn, five times each
    python bench/regression.py --rows 20000 --times 2

Time is CPU time, summed over threads, so that other work on the machine counts little; wall time stands beside it.
Memory is the largest resident set beyond that with the data alone, each measured in a process of its own. α, β and
coefficients are compared: scikit-learn keeps n observations after centering, where one degree of freedom is gone, so β
differs by 1/n.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def data(rows: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    w = rng.standard_normal(columns) * (rng.random(columns) < 0.3)
    return X, X @ w + 2.0 * rng.standard_normal(rows) + 3.0


def likely(X: Any, y: Any) -> Any:
    import likely as lk

    m = lk.BayesianLinearRegression().fit(X, y)
    return float(m.alpha_), float(m.beta_), m.coef_, m.method_


def sklearn(X: Any, y: Any) -> Any:
    from sklearn.linear_model import BayesianRidge

    m = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-10).fit(X, y)
    return float(m.lambda_), float(m.alpha_), m.coef_, "singular value decomposition"


WAYS = {"likely": likely, "sklearn": sklearn}


def memory(way: str, rows: int, columns: int) -> float:
    """Megabytes beyond the data, in a process of its own."""
    out = subprocess.run(
        [sys.executable, __file__, "--memory", way, "--rows", str(rows), "--columns", str(columns)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(json.loads(out.stdout))


def peak(way: str, rows: int, columns: int) -> float:
    """The same here: code is loaded and small data fitted before the data, whose blocks leave no peak of their own."""
    WAYS[way](*data(2000, columns))
    rng, w = np.random.default_rng(0), np.random.default_rng(1).standard_normal(columns)
    X, y = np.empty((rows, columns)), np.empty(rows)
    for a in range(0, rows, 1000):
        X[a : a + 1000] = rng.standard_normal((len(X[a : a + 1000]), columns))
        y[a : a + 1000] = X[a : a + 1000] @ w + rng.standard_normal(len(y[a : a + 1000]))
    Path("/proc/self/clear_refs").write_text("5")  # the largest resident set is counted from here on
    before = resident("VmRSS")
    WAYS[way](X, y)
    return resident("VmHWM") - before


def resident(name: str) -> float:
    """Megabytes of the resident set of this process: VmRSS now, VmHWM at most (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name))) / 1e3


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--rows", type=int, default=200_000)
    ask.add_argument("--columns", type=int, default=100)
    ask.add_argument("--times", type=int, default=5)
    ask.add_argument("--memory", choices=list(WAYS))
    given = ask.parse_args()
    if given.memory:
        print(json.dumps(peak(given.memory, given.rows, given.columns)))
        return
    X, y = data(given.rows, given.columns)
    for way in WAYS.values():
        way(X[:2000], y[:2000])  # imports and caches
    cpu: dict[str, list[float]] = {name: [] for name in WAYS}
    wall: dict[str, list[float]] = {name: [] for name in WAYS}
    found = {}
    for _ in range(given.times):
        for name, way in WAYS.items():
            began, spent = time.perf_counter(), time.process_time()
            found[name] = way(X, y)
            cpu[name].append(time.process_time() - spent)
            wall[name].append(time.perf_counter() - began)
    print(f"{given.rows:,} × {given.columns}, evidence maximization, medians of {given.times}")
    for name in WAYS:
        middle = f"{statistics.median(cpu[name]):.3f} s CPU, {statistics.median(wall[name]):.3f} s wall"
        print(f"{name:8} {middle}, {memory(name, given.rows, given.columns):.0f} MB beyond the data ({found[name][3]})")
    ours, theirs = found["likely"], found["sklearn"]
    ratios = [statistics.median(t["sklearn"]) / statistics.median(t["likely"]) for t in (cpu, wall)]
    print(f"ratio {ratios[0]:.1f} in CPU time, {ratios[1]:.1f} in wall time")
    print(f"α differs by {abs(ours[0] / theirs[0] - 1):.1e}, β by {abs(ours[1] / theirs[1] - 1):.1e} (1/n is", end=" ")
    print(f"{1 / given.rows:.1e}), coefficients by {np.abs(ours[2] - theirs[2]).max():.1e}")


if __name__ == "__main__":
    main()

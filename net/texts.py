"""What the commands print, on data that scikit-learn ships or that is made here: golden texts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_wine

COMMANDS = (
    *("align", "card", "cluster", "decode", "evaluate", "explain", "fit"),
    *("follow", "info", "novelty", "predict", "show", "tour", "warm"),
)
FITS = {  # first: the others read what they write
    "fit": "fit wine.csv --target class --no-baselines -o wine.likely",
    "fit with costs": "fit wine.csv --target class --no-baselines --cost cost.csv --reject-cost 0.3 -o costly.likely",
    "fit numbers": "fit diabetes.csv --target progression --no-baselines --models mean,linear,bayesian -o d.likely",
    "fit one walk": "fit one.csv --sequences --n-states 2 -o walk.likely",
    "fit sequences": "fit walks.csv --sequences --id walk --target kind --n-states 2 -o walks.likely",
}
USES = {
    "show": "show wine.likely",
    "show sequences": "show walks.likely",
    "card": "card wine.likely",
    "card sequences": "card walks.likely",
    "predict": "predict wine.likely few.csv",
    "explain": "explain wine.likely few.csv",
    "explain sequences": "explain walks.likely walks.csv --sequence w3",
    "evaluate": "evaluate wine.likely wine.csv --target class",
    "show numbers": "show d.likely",
    "card numbers": "card d.likely",
    "predict numbers": "predict d.likely sick.csv --quantiles 0.1,0.9 --loss asymmetric --over 3 --under 1",
    "explain numbers": "explain d.likely sick.csv --row 2",
    "evaluate numbers": "evaluate d.likely sick.csv",
    "novelty of numbers": "novelty sick.csv --model d.likely",
    "fit numbers as classes": "fit diabetes.csv --target progression --task classification",
    "fit classes with a loss": "fit wine.csv --target class --loss absolute",
    "cluster": "cluster few.csv --n-components 2",
    "novelty": "novelty few.csv --train wine.csv",
    "decode": "decode walks.likely walks.csv",
    "follow": "follow walk.likely one.csv",
    "align": "align one.csv two.csv",
    "predict with a column missing": "predict wine.likely short.csv",
    "fit without a target": "fit wine.csv --target color",
    "show what is no model": "show wine.csv",
}


def texts() -> dict[str, str]:
    """Each command's help, and what it says of small tables; exit codes and both streams."""
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        out: dict[str, str] = {}
        with ThreadPoolExecutor(2) as pool:
            for some in (FITS, {**USES, "help": "--help", **{f"help {c}": f"{c} --help" for c in COMMANDS}}):
                out |= dict(zip(some, pool.map(lambda line: said(line, folder), some.values()), strict=True))
    return out


def said(line: str, folder: str) -> str:
    """Exit code, standard output and standard error of one command, times and versions masked."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "likely", *line.split()]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    return masked(f"$ likely {line}\n{done.stdout}[stderr]\n{done.stderr}[exit {done.returncode}]\n", folder)


def masked(text: str, folder: str) -> str:
    """Without what changes from run to run.

    >>> masked("in 1.25 s, 3 ms; likely 1.2.3", "/tmp/x")
    'in # s, # ms; likely #'
    """
    text = _without_seconds(text.replace(folder, "FOLDER"))
    text = re.sub(r"\d+(\.\d+)? (s|ms|µs|seconds|minutes)\b", r"# \2", text)
    text = re.sub(r"`[0-9a-f]{12,64}`", "`#`", text)
    text = re.sub(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?", "#", text)
    return re.sub(r"(likely|NumPy|SciPy|Numba|scikit-learn|Python|polars|numpy|scipy|numba) \d[\w.]*", r"\1 #", text)


def _without_seconds(text: str) -> str:
    """A table's column called seconds, masked."""
    lines, end = text.split("\n"), 0
    for i, line in enumerate(lines):
        if " seconds" in line and "model" in line:
            end = line.index(" seconds") + len(" seconds")
        elif not line.strip():
            end = 0
        elif end:
            lines[i] = re.sub(r"[\d.]+$", "#", line[:end]) + line[end:]
    return "\n".join(lines)


def write_data(folder: Path) -> None:
    """Wines, patients, a cost table, walks up and down, and two short sequences."""
    wine = load_wine()
    names = ["alcohol", "flavanoids", "color_intensity", "hue"]
    at = [list(wine.feature_names).index(name) for name in names]
    kinds = np.array(["barolo", "grignolino", "barbera"])[wine.target]
    rows = (_line([*row[at], kind]) for row, kind in zip(wine.data, kinds, strict=True))
    lines = [",".join([*names, "class"]), *rows]
    _write(folder / "wine.csv", lines)
    _write(folder / "few.csv", [lines[0], *lines[1::15]])
    _write(folder / "short.csv", [",".join(line.split(",")[1:]) for line in lines[:5]])
    cost = ["action,barbera,barolo,grignolino", "barbera,0,2,1", "barolo,3,0,1", "grignolino,1,1,0"]
    _write(folder / "cost.csv", cost)
    sick = load_diabetes(scaled=False)
    rows = (_line([*row, progress]) for row, progress in zip(sick.data[:, :5], sick.target, strict=True))
    lines = [",".join([*sick.feature_names[:5], "progression"]), *rows]
    _write(folder / "diabetes.csv", lines)
    _write(folder / "sick.csv", [lines[0], *lines[1::50]])
    _write(folder / "walks.csv", ["walk,kind,height", *_walks()])
    for name, seed in (("one", 1), ("two", 2)):
        x = np.cumsum(np.random.default_rng(seed).standard_normal(12))
        _write(folder / f"{name}.csv", ["x", *(f"{v:.3f}" for v in x)])


def _walks() -> Iterator[str]:
    for k in range(12):
        way = "up" if k % 2 else "down"
        x = np.cumsum(np.random.default_rng(k).standard_normal(20) + (0.5 if way == "up" else -0.5))
        yield from (f"w{k},{way},{v:.3f}" for v in x)


def _line(cells: list[object]) -> str:
    return ",".join(str(c) for c in cells)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")

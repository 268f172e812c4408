"""The benchmark runs, and scripts call the library by names that exist."""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


def loaded(path: Path) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up in it
    spec.loader.exec_module(module)
    return module


startup = loaded(ROOT / "bench" / "startup.py")
SCRIPTS = sorted(path for folder in ("bench", "docs", "net") for path in (ROOT / folder).rglob("*.py"))


def stale(source: str) -> Iterator[str]:
    """Names of the library, imported or reached through `lk`, and keywords of their calls, that do not exist.

    >>> sorted(stale("from likely import Parzen, Gaussian as G; lk.HMM(starts=[1.0]); G.fitted; G.fit(1); lk.kl"))
    ['G.fitted', 'HMM(starts=)', 'Parzen', 'kl']
    """
    tree = ast.parse(source)
    known: dict[str, Any] = {"lk": import_module("likely")}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "likely":
            module = import_module(node.module)
            for alias in node.names:
                if hasattr(module, alias.name):
                    known[alias.asname or alias.name] = getattr(module, alias.name)
                else:
                    yield alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (of := reached(node.func, known)):
            taken = keywords(of[1])
            yield from (f"{of[0]}({k.arg}=)" for k in node.keywords if taken and k.arg and k.arg not in taken)
        elif isinstance(node, ast.Attribute) and (of := reached(node.value, known)) and inspect.isclass(of[1] or 0):
            if not hasattr(of[1], node.attr):
                yield f"{of[0]}.{node.attr}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lk":
            if not hasattr(known["lk"], node.attr):
                yield node.attr


def reached(node: ast.expr, known: dict[str, Any]) -> tuple[str, Any] | None:
    """Name and value of an expression such as `lk.Gaussian.fit` or an imported name, if it can be told."""
    if isinstance(node, ast.Name) and node.id != "lk":
        return (node.id, known[node.id]) if node.id in known else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lk":
        return (node.attr, getattr(known["lk"], node.attr)) if hasattr(known["lk"], node.attr) else None
    if isinstance(node, ast.Attribute) and (of := reached(node.value, known)) and hasattr(of[1], node.attr):
        return f"{of[0]}.{node.attr}", getattr(of[1], node.attr)
    return None


def keywords(of: Any) -> set[str]:
    """Keywords that a callable takes; none where it takes any, or where that is not known."""
    try:
        parameters = inspect.signature(of).parameters
    except (TypeError, ValueError):
        return set()
    return set() if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) else set(parameters)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scripts_use_names_that_exist(path: Path) -> None:
    assert list(stale(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("name", [p.stem for p in SCRIPTS if p.parent.name == "bench"])
def test_scripts_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    loaded(ROOT / "bench" / f"{name}.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", startup.FIRST_CALLS)
def test_a_first_call_that_is_timed_runs(name: str) -> None:
    exec(startup.PREPARE + startup.FIRST_CALLS[name], {})


def test_every_library_of_the_benchmark_has_an_environment(bench: Any) -> None:
    works = bench.load()
    every = {peer for work in works.values() for peer in work.peers}
    assert {bench.environments.environment_of(peer) for peer in every} == {*bench.environments.table()}
    assert all("likely" in work.peers for work in works.values())
    needed = bench.environments.requirements(["torch", "likely", "dynamax"])
    assert [line.split()[0] for line in needed] == ["torch", "jax"]


def test_bold_is_the_best_and_a_row_that_lost_stays(bench: Any) -> None:
    work = bench.load()["kde"]
    common = {"workload": "kde", "first": 1.0, "memory": 3.0, "busy": 0.0, "note": ""}
    records = [
        {**common, "peer": "likely", "status": "ok", "median": 0.5, "quality": {"max_abs_err": 1e-6}},
        {**common, "peer": "scipy", "status": "ok", "median": 0.25, "quality": {"max_abs_err": 1e-12}},
        {**common, "peer": "sklearn", "status": "ok", "median": 0.1, "quality": {"max_abs_err": 1e-2}},  # another job
        {"workload": "kde", "peer": "torch", "status": "not installed", "why": "no environment", "note": ""},
    ]
    text = bench.tables(records, {"kde": work})
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert "**250 ms**" in rows["scipy"] and "**" not in rows["likely"] + rows["sklearn"]
    assert "| 500 ms | 1 s | 2.00 | 3 MiB |" in rows["likely"] and "another job" in rows["sklearn"]
    assert "not installed" in rows["torch"]


def test_tables_are_published_between_markers(bench: Any, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{bench.BEGIN}\nold\n{bench.END}\nafter\n")
    bench.publish(f"{bench.BEGIN}\nnew\n{bench.END}", page)
    assert page.read_text() == f"before\n{bench.BEGIN}\nnew\n{bench.END}\nafter\n"
    published = (ROOT / "docs" / "results" / "benchmarks.md").read_text(encoding="utf-8")
    assert published.count(bench.BEGIN) == published.count(bench.END) == 1


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return loaded(ROOT / "bench" / "run.py")


@pytest.mark.slow
def test_a_library_is_measured_in_a_process_of_its_own(bench: Any) -> None:
    options = argparse.Namespace(quick=True, quiet=0.0, threads=1, budget=0.0)
    pairs = [("gaussian_ml", "likely"), ("gaussian_ml", "numpy"), ("gaussian_gaps", "scipy")]
    ours, plain, other = bench.run_together(pairs, bench.load(), options)
    assert ours["status"] == plain["status"] == "ok" and 0 < ours["median"] < 60
    assert ours["quality"]["loglik"] == pytest.approx(plain["quality"]["loglik"], abs=1e-9)
    assert other["status"] == "infeasible" and "NaN" in other["why"]


@pytest.mark.campaign
def test_every_workload_of_ours_runs(tmp_path: Path) -> None:
    bench = shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("results.jsonl", ".*"))
    command = [sys.executable, str(bench / "run.py"), "--quick", "--peers", "likely,sklearn,numpy,scipy"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    records = [json.loads(line) for line in (bench / "results.jsonl").read_text().splitlines()]
    ran = {r["workload"] for r in records if r.get("peer") == "likely" and r["status"] == "ok"}
    assert len(ran) >= 30 and {"hmm_gauss", "hmm_gmm", "gmm_full", "kalman_em", "latency_hmm"} <= ran


DATA = Path(os.environ.get("LIKELY_DATA") or ROOT.parent / "shared" / "data")
FILES = tomllib.loads((ROOT / "bench" / "data.toml").read_text(encoding="utf-8"))


@pytest.mark.skipif(not DATA.is_dir(), reason="no data: set LIKELY_DATA to the folder that holds them")
@pytest.mark.parametrize("name", FILES)
def test_data_have_their_checksum(name: str) -> None:
    digests = [hashlib.sha256(path.read_bytes()) for path in sorted(DATA.glob(name))]
    assert len(digests) == FILES[name].get("files", 1)
    one = digests[0] if "files" not in FILES[name] else hashlib.sha256(b"".join(d.digest() for d in digests))
    assert one.hexdigest() == FILES[name]["sha256"]


def test_data_have_a_source_and_a_license() -> None:
    assert all(entry["source"] and entry["license"] and entry["form"] for entry in FILES.values())

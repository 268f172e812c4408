"""The benchmark runs, and scripts call the library by names that exist."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DRIVER = Path(os.environ.get("LIKELY_PEERS") or ROOT.parent / "shared" / "bench")

OF_THE_DRIVER = ("likely_plugin",)  # imports the shared driver


def loaded(path: Path) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up in it
    spec.loader.exec_module(module)
    return module


startup = loaded(ROOT / "bench" / "startup.py")
SCRIPTS = sorted(path for folder in ("bench", "docs", "net") for path in (ROOT / folder).glob("*.py"))


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


@pytest.mark.parametrize("name", [p.stem for p in SCRIPTS if p.parent.name == "bench" and p.stem not in OF_THE_DRIVER])
def test_scripts_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    loaded(ROOT / "bench" / f"{name}.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", startup.FIRST_CALLS)
def test_a_first_call_that_is_timed_runs(name: str) -> None:
    exec(startup.PREPARE + startup.FIRST_CALLS[name], {})


@pytest.mark.campaign
@pytest.mark.skipif(not (DRIVER / "peers.py").is_file(), reason="no data: set LIKELY_PEERS to the folder of peers.py")
def test_every_workload_of_ours_runs(tmp_path: Path) -> None:
    bench = shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("results.jsonl", ".*"))
    env = {**os.environ, "LIKELY_PEERS": str(DRIVER)}
    command = [sys.executable, str(bench / "run.py"), "--quick", "--peers", "likely"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    records = [json.loads(line) for line in (bench / "results.jsonl").read_text().splitlines()]
    ran = {r["workload"] for r in records if r.get("peer") == "likely" and r["status"] == "ok"}
    assert len(ran) >= 28 and {"hmm_gauss", "hmm_gmm", "gmm_full", "kalman_em", "latency_hmm"} <= ran

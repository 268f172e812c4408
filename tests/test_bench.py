"""The benchmark runs: its scripts call the library by names that exist."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DRIVER = Path(os.environ.get("LIKELY_PEERS") or ROOT.parent / "shared" / "bench")

spec = importlib.util.spec_from_file_location("startup", ROOT / "bench" / "startup.py")
startup = importlib.util.module_from_spec(spec)
spec.loader.exec_module(startup)


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

"""Kill -9 while a file is being overwritten, again and again: there is always a whole model under its name."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import likely as lk
from tests.io.examples import same

WRITER = """
import sys
import numpy as np
import likely as lk

models = [lk.Gaussian(np.full(int(sys.argv[2]), float(k)), 1.0 + k) for k in range(2)]
print("ready", flush=True)
while True:
    for model in models:
        lk.save(model, sys.argv[1])
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs kill -9")


def models(size: int) -> list[lk.Gaussian]:
    return [lk.Gaussian(np.full(size, float(k)), 1.0 + k) for k in range(2)]


def killed_while_writing(path: Path, size: int, rng: random.Random) -> None:
    """Start a process that overwrites the file without end, and kill it at some moment."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(size)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(rng.random() ** 2 * 0.1)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()


def survives(path: Path, kills: int, size: int = 50_000) -> None:
    old_or_new = models(size)
    lk.save(old_or_new[0], path)
    rng = random.Random(kills)
    half_written = 0
    for k in range(20 * kills):
        if k >= kills and half_written:  # more only where the machine was too busy for the writer to begin
            break
        killed_while_writing(path, size, rng)
        assert any(same(lk.load(path), model) for model in old_or_new)
        left = [p for p in path.parent.iterdir() if p != path]
        half_written += bool(left)
        for p in left:  # what the killed process could not clear away
            assert p.name.startswith(".likely-") and p.name.endswith(".tmp")
            p.unlink()
    print(f"{kills} kills, {half_written} of them in the middle of a file")
    assert half_written  # else the kills came at the wrong moments and prove nothing


@pytest.mark.slow
def test_ten_kills_leave_a_readable_file(tmp_path):
    survives(tmp_path / "g.likely", 10)


@pytest.mark.campaign
def test_two_hundred_kills_leave_a_readable_file(tmp_path):
    survives(tmp_path / "g.likely", 200)

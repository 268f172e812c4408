"""The main job, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import likely as lk


@pytest.mark.slow
def test_tour_writes_what_it_promises(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "likely", "tour"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "bit-for-bit the same" in done.stdout and "DIFFERENT" not in done.stdout
    folder = tmp_path / "likely-tour"
    assert (folder / "tour.png").stat().st_size > 20_000
    assert "color intensity" in (folder / "summary.html").read_text(encoding="utf-8")
    assert isinstance(lk.load(folder / "wine.likely"), lk.ProductDensity)
    assert "Classification with costs and a reject option" in done.stdout and "is chosen: it costs" in done.stdout
    assert lk.load(folder / "model.likely").classes_.tolist() == ["Barbera", "Barolo", "Grignolino"]
    assert "Barolo" in (folder / "report.html").read_text(encoding="utf-8")
    assert {p.name for p in tmp_path.iterdir()} == {"likely-tour"}

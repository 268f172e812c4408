"""Models that several tests use: each is made once, by the command itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.tables import mixed_frame, run, wine_frame, write

COSTS = "action,Barolo,Grignolino,Barbera\nGrignolino,5,0,1\nBarolo,0,1,9\nBarbera,1,1,0\nask an expert,2,2,2\n"


@pytest.fixture(scope="session")
def wine_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """wine.csv, cost.csv, and the model and report that `likely fit` makes of them."""
    folder = tmp_path_factory.mktemp("wine")
    write(wine_frame(), folder / "wine.csv")
    (folder / "cost.csv").write_text(COSTS)
    done = run("fit", folder / "wine.csv", "--target", "class", "--cost", folder / "cost.csv", "--reject-cost", 0.3,
               "--no-baselines", "-o", folder / "model.likely", "--report", folder / "report.html",
               "--json")  # fmt: skip
    return _kept(done, folder)


@pytest.fixture(scope="session")
def mixed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sick.csv, a table of numbers, counts and words with gaps, and what `likely fit` makes of it."""
    folder = tmp_path_factory.mktemp("mixed")
    write(mixed_frame(), folder / "sick.csv")
    done = run("fit", folder / "sick.csv", "--target", "sick", "--no-baselines", "-o", folder / "model.likely",
               "--cv", 3, "--report", folder / "report.html", "--json")  # fmt: skip
    return _kept(done, folder)


def _kept(done: Result, folder: Path) -> Path:
    assert done.exit_code == 0, done.stderr
    (folder / "fit.json").write_text(done.stdout)
    (folder / "fit.txt").write_text(done.stderr)
    return folder

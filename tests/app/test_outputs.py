"""What is written never takes the place of what is read, nor of another output; asked before anything is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from likely.app.outputs import check_outputs
from likely.errors import DataError, LikelyError, ModelFileError
from tests.app.tables import mixed_frame, run, write

COST = "action,ill,well\nill,0,1\nwell,1,0\n"


@pytest.fixture
def here(tmp_path, monkeypatch, mixed_folder) -> Path:
    """A folder with tables, costs, a prior, a model, and other names for two of them."""
    monkeypatch.chdir(tmp_path)
    write(mixed_frame(60), tmp_path / "a.csv")
    write(mixed_frame(60, 1), tmp_path / "b.csv")
    (tmp_path / "cost.csv").write_text(COST)
    (tmp_path / "prior.csv").write_text("class,probability\nill,0.5\nwell,0.5\n")
    (tmp_path / "m.likely").write_bytes((mixed_folder / "model.likely").read_bytes())
    (tmp_path / "link.csv").symlink_to("a.csv")
    os.link(tmp_path / "a.csv", tmp_path / "hard.csv")
    (tmp_path / "sub").mkdir()
    return tmp_path


COMMANDS = [
    "cluster a.csv --report a.csv", "cluster a.csv --model a.csv", "cluster a.csv -o a.csv",
    "cluster a.csv -o sub/../a.csv", "cluster a.csv -o link.csv", "cluster link.csv -o a.csv",
    "cluster a.csv -o hard.csv", "cluster *.csv -o b.csv", "cluster a.csv b.csv --report b.csv",
    "novelty a.csv --train b.csv -o b.csv", "novelty a.csv --train b.csv -o a.csv",
    "novelty a.csv --train b.csv --save b.csv", "novelty a.csv --train b.csv --save a.csv",
    "novelty a.csv --model m.likely -o m.likely", "novelty - --train *.csv -o b.csv",
    "fit a.csv --target sick -o a.csv", "fit a.csv --target sick --report a.csv",
    "fit a.csv --target sick --cost cost.csv --report cost.csv",
    "fit a.csv --target sick --class-prior prior.csv --report prior.csv",
    "predict m.likely a.csv -o a.csv", "predict m.likely a.csv -o m.likely",
    "predict m.likely a.csv --cost cost.csv -o cost.csv", "predict m.likely - --class-prior prior.csv -o prior.csv",
    "evaluate m.likely a.csv --report a.csv", "evaluate m.likely a.csv --report m.likely",
    "evaluate m.likely a.csv --cost cost.csv --report cost.csv", "card m.likely -o m.likely",
]  # fmt: skip
TWINS = [
    "cluster a.csv --model x --report x", "cluster a.csv -o x --model x", "cluster a.csv -o x --report sub/../x",
    "cluster a.csv --report clusters.csv", "novelty a.csv --train b.csv --save x -o x",
    "fit a.csv --target sick -o x --report x", "fit a.csv --target sick --report model.likely",
]  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_input_is_overwritten(here, command):
    before = contents(here)
    done = run(*command.split())
    assert done.exit_code == 3 and "is read and would be overwritten" in done.stderr and done.stdout == ""
    assert contents(here) == before


@pytest.mark.parametrize("command", TWINS)
def test_outputs_do_not_replace_each_other(here, command):
    before = contents(here)
    done = run(*command.split())
    assert done.exit_code == 3 and "each needs a file of its own" in done.stderr
    assert contents(here) == before


def test_a_file_may_be_replaced_that_is_not_read(here):
    (here / "old.csv").write_text("old")
    done = run("predict", "m.likely", "a.csv", "-o", "old.csv")
    assert done.exit_code == 0 and (here / "old.csv").read_text().startswith("decision")


def test_streams_and_what_was_not_asked_for_are_no_files(tmp_path):
    check_outputs({"-o": "-", "--model": None}, ["-", None])
    with pytest.raises(DataError, match="name another file with --report"):
        check_outputs({"-o": None, "--report": str(tmp_path / "new")}, [str(tmp_path / "new")])


def test_what_cannot_be_written_is_told_by_its_kind(tmp_path):
    with pytest.raises(ModelFileError, match="make the folder first"):
        check_outputs({"--model": str(tmp_path / "no" / "m")}, [], models=("--model",))
    with pytest.raises(LikelyError, match="a folder"):
        check_outputs({"-o": str(tmp_path)}, [])

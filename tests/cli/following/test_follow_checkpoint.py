"""Progress of many streams: a line costs what its own costs, and a journal that ends anywhere is as good as none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likely as lk
from likely.cli.following import follow_checkpoint
from likely.cli.following.follow_checkpoint import JOURNAL, CheckpointStore
from likely.core.errors import ModelFileError
from likely.io import model_files
from tests.cli.tables import run

WALK = lk.LinearGaussian(
    transition=[[1.0]],
    process_covariance=[[0.1]],
    observation=[[1.0]],
    observation_covariance=[[1.0]],
    initial_mean=[0.0],
    initial_covariance=[[1.0]],
)


def feed(ids: int, each: int) -> list[str]:
    x = np.random.default_rng(0).normal(size=(each, ids))
    return ["who,x\n", *(f"pump {i},{x[t, i]}\n" for t in range(each) for i in range(ids))]


@pytest.fixture
def at(tmp_path: Path) -> Path:
    lk.save(WALK, tmp_path / "walk.likely")
    return tmp_path


def command(at: Path, *more: Any) -> list[Any]:
    return ["follow", at / "walk.likely", *more, "--id", "who", "--checkpoint", at / "k.likely"]


def reference(at: Path, rows: list[str]) -> bytes:
    (at / "in.csv").write_text("".join(rows))
    done = run("follow", at / "walk.likely", at / "in.csv", "--id", "who", "-o", at / "whole.csv")
    assert done.exit_code == 0, done.stderr
    return (at / "whole.csv").read_bytes()


def crashed(at: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str]) -> None:
    """Follow some lines, keep each, and vanish as a power cut has it: nobody gets to tidy up."""
    (at / "in.csv").write_text("".join(rows))
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "close", lambda *ignored, **named: None)
        done = run(*command(at, at / "in.csv", "--checkpoint-every", 1, "-o", at / "out.csv"))
    assert done.exit_code == 0 and (at / ("k.likely" + JOURNAL)).exists(), done.stderr


def goes_on(at: Path, rows: list[str]) -> bytes:
    (at / "in.csv").write_text("".join(rows))
    done = run(*command(at, at / "in.csv", "-o", at / "out.csv"))
    assert done.exit_code == 0 and not (at / ("k.likely" + JOURNAL)).exists(), done.stderr
    return (at / "out.csv").read_bytes()


@pytest.mark.slow
def test_a_line_costs_the_same_however_many_streams_there_are(at, monkeypatch):
    sizes: list[int] = []
    pack = model_files._packed

    def counted(thing: Any) -> bytes:
        sizes.append(len(data := pack(thing)))
        return data

    monkeypatch.setattr(model_files, "_packed", counted)
    rows = feed(200, 3)
    done = run(*command(at), stdin="".join(rows))
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == len(rows)
    assert sum(sizes) < 2000 * len(rows)  # bytes; all streams at each line are some 60,000
    assert [
        kept.n_observations
        for kept in CheckpointStore(str(at / "k.likely"), lk.load(at / "k.likely").asked).load().streams
    ] == [3] * 200


@pytest.mark.slow
def test_a_crash_leaves_the_same_bytes(at, monkeypatch):
    rows = feed(5, 8)
    whole = reference(at, rows)
    for cut in (2, 14, 40):
        crashed(at, monkeypatch, rows[:cut])
        assert lk.load(at / "k.likely").lines == 1  # the header; all that came later is in the journal
        assert goes_on(at, rows) == whole
        (at / "k.likely").unlink()


@pytest.mark.slow
def test_a_journal_may_end_anywhere(at, monkeypatch):
    rows = feed(3, 4)
    whole = reference(at, rows)
    crashed(at, monkeypatch, rows[:10])
    kept = {name: (at / name).read_bytes() for name in ("k.likely", "k.likely" + JOURNAL, "out.csv")}
    journal = kept["k.likely" + JOURNAL]
    for cut in {0, 7, 8, 15, 16, len(journal) - 1, len(journal), *range(0, len(journal), 331)}:
        for name, data in kept.items():
            (at / name).write_bytes(data)
        (at / ("k.likely" + JOURNAL)).write_bytes(journal[:cut] + b"\x07" * (cut % 40))
        assert goes_on(at, rows) == whole


def test_a_journal_belongs_to_its_file(at, monkeypatch):
    rows = feed(3, 4)
    whole = reference(at, rows)
    crashed(at, monkeypatch, rows[:4])
    older = (at / "k.likely").read_bytes()
    assert goes_on(at, rows[:4])
    crashed(at, monkeypatch, rows[:9])
    journal = (at / ("k.likely" + JOURNAL)).read_bytes()
    (at / "k.likely").write_bytes(older)  # somebody brought a copy back
    assert goes_on(at, rows) == whole
    (at / "k.likely").unlink()  # and deleted it
    (at / ("k.likely" + JOURNAL)).write_bytes(journal)
    assert goes_on(at, rows) == whole


@pytest.mark.slow
def test_the_journal_is_written_up_before_it_grows_long(at, monkeypatch):
    monkeypatch.setattr(follow_checkpoint, "ROOM", (4000, 1))
    longest, write = [0], CheckpointStore._write

    def noted(self: CheckpointStore, entry: bytes) -> None:
        write(self, entry)
        assert self.journal is not None
        longest.append(self.journal.tell())

    monkeypatch.setattr(CheckpointStore, "_write", noted)
    rows = feed(4, 30)
    whole = reference(at, rows)
    crashed(at, monkeypatch, rows[:90])
    assert 2000 < max(longest) < 8000 and lk.load(at / "k.likely").lines > 70
    assert goes_on(at, rows) == whole


@pytest.mark.slow
def test_more_streams_than_one_description_can_hold(at):
    rows = feed(4000, 1)
    (at / "in.csv").write_text("".join(rows))
    assert run(*command(at, at / "in.csv", "-o", at / "out.csv")).exit_code == 0
    kept = lk.load(at / "k.likely")
    assert len(kept.streams) == 50 and len(kept.more)
    more = [*rows, "pump 3999,0.5\n", "pump 3,0.5\n"]
    assert [line.split(b",")[1] for line in goes_on(at, more).splitlines()[-2:]] == [b"1", b"1"]


def test_streams_of_a_stranger_are_refused(at):
    assert run(*command(at), stdin="".join(feed(60, 1))).exit_code == 0
    kept = lk.load(at / "k.likely")
    for inside in (follow_checkpoint._joined([model_files.dumps(WALK)]), b"\xff" * 64, kept.more.tobytes()[:80]):
        lk.save(kept.replace(more=follow_checkpoint._numbers(inside)), at / "k.likely")
        with pytest.raises(ModelFileError):
            CheckpointStore(str(at / "k.likely"), kept.asked).load()


def test_the_journal_is_no_other_file(at):
    done = run(*command(at, "-", "-o", at / ("k.likely" + JOURNAL)), stdin="who,x\na,1\n")
    assert done.exit_code == 3 and "journal" in done.stderr and "a file of its own" in done.stderr
    (at / ("k.likely" + JOURNAL)).mkdir()
    done = run(*command(at), stdin="who,x\na,1\n")
    assert done.exit_code == 4 and "a folder" in done.stderr

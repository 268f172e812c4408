"""Checkpoints of many streams: a crash leaves the same bytes, and the cost of a line does not grow with the streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likely as lk
from likely.cli.follow import LineCheckpoint
from likely.core.errors import ModelFileError
from likely.core.progress import FollowedLines
from likely.io import checkpoint, model_files
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


def crashed(at: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], every: int) -> None:
    """Follow some lines, keep some, and vanish as a power cut has it: nothing is saved at the end."""
    (at / "in.csv").write_text("".join(rows))
    save = LineCheckpoint.save

    def due(self: LineCheckpoint, following: Any, at_once: bool = True) -> None:
        if following.n_observations % every == 0:
            save(self, following)

    with monkeypatch.context() as patch:
        patch.setattr(LineCheckpoint, "save", due)
        patch.setattr(LineCheckpoint, "close", lambda self: None)
        done = run(*command(at, at / "in.csv", "--checkpoint-every", every, "-o", at / "out.csv"))
    assert done.exit_code == 0 and (at / "k.likely").exists(), done.stderr


def goes_on(at: Path, rows: list[str]) -> bytes:
    (at / "in.csv").write_text("".join(rows))
    done = run(*command(at, at / "in.csv", "-o", at / "out.csv"))
    assert done.exit_code == 0, done.stderr
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
    assert lk.core.Checkpoint(at / "k.likely").load(FollowedLines).counts.tolist() == [3] * 200


@pytest.mark.slow
def test_a_crash_leaves_the_same_bytes(at, monkeypatch):
    rows = feed(5, 8)
    whole = reference(at, rows)
    for cut, every, lines in ((2, 1, 2), (14, 5, 11), (40, 7, 36)):
        crashed(at, monkeypatch, rows[:cut], every)
        assert lk.load(at / "k.likely").lines == lines
        assert goes_on(at, rows) == whole
        (at / "k.likely").unlink()


def test_a_file_may_be_cut_short_anywhere_and_is_then_refused(at):
    rows = feed(3, 4)
    (at / "in.csv").write_text("".join(rows))
    assert run(*command(at, at / "in.csv", "-o", at / "out.csv")).exit_code == 0
    kept, written = (at / "k.likely").read_bytes(), (at / "out.csv").read_bytes()
    for cut in (0, 7, len(kept) // 2, len(kept) - 1):
        (at / "k.likely").write_bytes(kept[:cut])
        done = run(*command(at, at / "in.csv", "-o", at / "out.csv"))
        assert done.exit_code == 4 and "k.likely" in done.stderr and (at / "out.csv").read_bytes() == written


def test_lines_without_an_observation_count_too(at):
    """A pipe that ends after its header, or after a bad line, goes on without either."""
    for text, lines in (("who,x\n", 1), ("a,1\nb,oops\n", 3), ("\n\n", 5), ("a,2\n", 6)):
        done = run(*command(at, "--skip-bad"), stdin=text)
        assert done.exit_code == 0 and lk.load(at / "k.likely").lines == lines, done.stderr
    assert lk.load(at / "k.likely").counts.tolist() == [2] and done.stdout.startswith("a,1,")


@pytest.mark.slow
def test_more_streams_than_one_description_can_hold(at):
    rows = feed(4000, 1)
    (at / "in.csv").write_text("".join(rows))
    assert run(*command(at, at / "in.csv", "-o", at / "out.csv")).exit_code == 0
    kept = lk.load(at / "k.likely")
    assert len(kept.beliefs) == checkpoint.TOGETHER and len(kept.sizes) == 4000 / checkpoint.TOGETHER - 1
    more = [*rows, "pump 3999,0.5\n", "pump 3,0.5\n"]
    assert [line.split(b",")[1] for line in goes_on(at, more).splitlines()[-2:]] == [b"1", b"1"]


def test_streams_of_a_stranger_are_refused(at, monkeypatch):
    monkeypatch.setattr(checkpoint, "TOGETHER", 20)
    assert run(*command(at), stdin="".join(feed(60, 1))).exit_code == 0
    kept, path = lk.load(at / "k.likely"), at / "k.likely"
    own = kept.more.tobytes()
    twice = own[: kept.sizes[0]]
    for inside, sizes in (
        (model_files.dumps(WALK), [len(model_files.dumps(WALK))]), (b"\xff" * 64, [64]), (own[:80], [80]),
        (own, [len(own)]), (own, kept.sizes[:1]), (twice * 2, [len(twice)] * 2),
    ):  # fmt: skip
        lk.save(kept.replace(more=np.frombuffer(inside, np.uint8), sizes=np.array(sizes)), path)
        with pytest.raises(ModelFileError):
            lk.core.Checkpoint(path).load(FollowedLines)
    lk.save(kept, path)
    assert len(lk.core.Checkpoint(path).load(FollowedLines).names) == 60


def test_a_checkpoint_of_follow_is_none_of_the_command(at):
    list(lk.follow(WALK, [1.0, 2.0], checkpoint=at / "k.likely"))
    done = run(*command(at), stdin="who,x\na,1\n")
    assert done.exit_code == 4 and "progress of a feed, got Following" in done.stderr


def test_a_line_that_the_filter_refuses_is_not_done(tmp_path):
    """Corrected, it is filtered: a checkpoint counts lines whose observations it holds, and no others."""
    lk.save(lk.LinearSDE.ornstein_uhlenbeck(1.0, observation_variance=0.1), tmp_path / "m.likely")
    rows = ["t,x\n", *(f"{t},{x!r}\n" for t, x in enumerate(np.random.default_rng(0).normal(size=9).tolist()))]
    asked = ["follow", tmp_path / "m.likely", tmp_path / "in.csv", "--time", "t"]
    (tmp_path / "in.csv").write_text("".join(rows))
    assert run(*asked, "-o", tmp_path / "whole.csv").exit_code == 0
    (tmp_path / "in.csv").write_text("".join([*rows[:6], "1,0.5\n", *rows[7:]]))  # time goes back
    kept = ["-o", tmp_path / "out.csv", "--checkpoint", tmp_path / "k.likely"]
    done = run(*asked, *kept)
    assert done.exit_code == 3 and "line 7" in done.stderr and lk.load(tmp_path / "k.likely").lines == 6
    (tmp_path / "in.csv").write_text("".join(rows))
    assert run(*asked, *kept).exit_code == 0
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    (tmp_path / "in.csv").write_text("".join([*rows, "1,0.5\n", "9,0.5\n"]))
    done = run(*asked, *kept, "--skip-bad")
    assert done.exit_code == 3 and "these options" in done.stderr
    done = run(*asked, "--skip-bad", "--checkpoint", tmp_path / "other.likely")
    assert done.exit_code == 0 and "line 11" in done.stderr and lk.load(tmp_path / "other.likely").lines == 12
    assert lk.load(tmp_path / "other.likely").counts.tolist() == [10]

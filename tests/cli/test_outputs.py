"""What is written never takes the place of what is read, nor of another output; asked before anything is done."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, LikelyError, ModelFileError
from likely.io.atomic_write import write_text
from tests.cli.tables import mixed_frame, run, write

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
    "cluster a.csv --report a.csv", "cluster a.csv --save-model a.csv", "cluster a.csv -o a.csv",
    "cluster a.csv -o sub/../a.csv", "cluster a.csv -o link.csv", "cluster link.csv -o a.csv",
    "cluster a.csv -o hard.csv", "cluster *.csv -o b.csv", "cluster a.csv b.csv --report b.csv",
    "novelty a.csv --train b.csv -o b.csv", "novelty a.csv --train b.csv -o a.csv",
    "novelty a.csv --train b.csv --save-model b.csv", "novelty a.csv --train b.csv --save-model a.csv",
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
    "cluster a.csv --save-model x --report x", "cluster a.csv -o x --save-model x",
    "cluster a.csv -o x --report sub/../x",
    "cluster a.csv --report clusters.csv", "novelty a.csv --train b.csv --save-model x -o x",
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


def test_what_cannot_be_written_is_reported_by_its_kind(tmp_path):
    with pytest.raises(ModelFileError, match="make the folder first"):
        check_outputs({"--model": str(tmp_path / "no" / "m")}, [], models=("--model",))
    with pytest.raises(LikelyError, match="a folder"):
        check_outputs({"-o": str(tmp_path)}, [])


# ------------------------------------------------------------- devices and FIFOs

needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")


def read_behind(path: Path) -> tuple[Thread, list[bytes]]:
    """Reads a FIFO until its writer closes it, beside the test."""
    found: list[bytes] = []
    reader = Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    return reader, found


@needs_fifo
@pytest.mark.parametrize(
    "command", ["predict m.likely a.csv -o", "card m.likely -o", "evaluate m.likely a.csv --report"]
)
def test_an_output_is_written_into_a_fifo(here, command):
    os.mkfifo(here / "fifo")
    reader, found = read_behind(here / "fifo")
    done = run(*command.split(), "fifo")
    reader.join(20)
    assert done.exit_code == 0 and stat.S_ISFIFO(os.stat(here / "fifo").st_mode)
    run(*command.split(), "file")
    assert [text[:300] for text in found] == [(here / "file").read_bytes()[:300]]


@needs_fifo
def test_pictures_and_reports_go_into_a_fifo(tmp_path):
    from likely.cli.figures import saved
    from likely.report import Study, write_report

    class Drawing:
        def savefig(self, stream, dpi, format):
            stream.write(f"{format} {dpi}".encode())

    for write_it in (lambda p: saved(Drawing(), str(p)), lambda p: write_report(Study("x", "y", ("a", "b")), p)):
        fifo = tmp_path / f"{len(list(tmp_path.iterdir()))}.svg"
        os.mkfifo(fifo)
        reader, found = read_behind(fifo)
        write_it(fifo)
        reader.join(20)
        assert stat.S_ISFIFO(fifo.stat().st_mode) and found[0] and len(found) == 1


@needs_fifo
@pytest.mark.parametrize(
    "command",
    [
        "fit a.csv --target sick -o fifo",
        "cluster a.csv --save-model fifo",
        "novelty a.csv --train b.csv --save-model fifo",
    ],
)
def test_a_model_is_not_written_into_a_fifo(here, command):
    os.mkfifo(here / "fifo")
    done = run(*command.split())
    assert done.exit_code == 4 and "fifo: a model needs a file" in done.stderr
    assert stat.S_ISFIFO(os.stat(here / "fifo").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named_and_stays_a_device(here):
    done = run("predict", "m.likely", "a.csv", "-o", "/dev/full")
    assert done.exit_code == 1 and "/dev/full: the file cannot be written, got No space left on device" in done.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_nothing_is_lost_in_the_null_device(here):
    check_outputs({"-o": os.devnull, "--report": os.devnull}, [os.devnull])
    assert run("predict", "m.likely", "a.csv", "-o", os.devnull).exit_code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_text_is_forced_to_the_disk_before_it_replaces_a_file(tmp_path, monkeypatch):
    log = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (log.append(name), real(*a))[1])
    write_text(str(tmp_path / "a.txt"), "é\n")
    assert log == ["fsync", "replace", "fsync"] and (tmp_path / "a.txt").read_bytes() == "é\n".encode()


def test_a_full_disk_leaves_the_old_text(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LikelyError, match=r"a\.txt: the file cannot be written, got No space left .*: make room"):
        write_text(str(tmp_path / "a.txt"), "new")
    assert contents(tmp_path) == {str(tmp_path / "a.txt"): b"old"}


def test_a_file_that_is_replaced_keeps_its_permissions_and_links(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o600)
    (tmp_path / "link").symlink_to("a.txt")
    write_text(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a.txt").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output_is_named(here):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "likely", "predict", "m.likely", "a.csv"], stdout=full, stderr=subprocess.PIPE
        )
    told = b"standard output: the file cannot be written, got No space left on device: make room"
    assert done.returncode == 1 and told in done.stderr

"""The command line as a user meets it: a process, its two streams and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from likely._version import __version__
from likely.cli import info, main

ANSI = "\x1b["


def run(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a Python with these arguments."""
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, env={**os.environ, **environ}, timeout=60
    )


def likely(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "likely", *args, **environ)


def test_version():
    ran = likely("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"likely {__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(flag):
    ran = likely(flag)
    assert ran.returncode == 0 and ran.stderr == ""
    for name, (_, summary) in main.COMMANDS.items():
        assert name in ran.stdout and summary in ran.stdout
    assert "_LIKELY_COMPLETE=bash_source likely" in ran.stdout


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_light_commands_load_nothing_heavy(flag):
    ran = run("-X", "importtime", "-m", "likely", flag)
    loaded = {line.split("|")[-1].strip() for line in ran.stderr.splitlines() if "import time:" in line}
    heavy = {"numpy", "scipy", "numba", "sklearn", "polars", "rich", "likely.cli.info"}
    assert "click" in loaded and not loaded & heavy


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_in_the_table_loads(name):
    target, summary = main.COMMANDS[name]
    command = main.Deferred(name, target, summary).load()
    assert isinstance(command, click.Command)


def test_installed_script_is_the_same_command():
    script = Path(sys.executable).with_name("likely")
    if not script.exists():
        pytest.skip("likely is not installed in this environment")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, f"likely {__version__}\n")


@pytest.mark.slow
def test_info_plain():
    ran = likely("info", NO_COLOR="1")
    assert ran.returncode == 0 and ran.stderr == ""
    facts = dict(line.split(maxsplit=1) for line in ran.stdout.splitlines() if not line.startswith("Numba"))
    assert facts["likely"] == __version__
    assert "BLAS" in facts and set(info.REQUIRED) <= set(facts)
    assert "Numba cache" in ran.stdout and ANSI not in ran.stdout


@pytest.mark.slow
def test_info_json():
    ran = likely("info", "--json")
    facts = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert facts["likely"] == __version__
    assert facts["cores"] >= 1
    assert facts["blas"][0]["threads"] >= 1
    assert all(facts["dependencies"].values())
    assert isinstance(facts["numba_cache"]["writable"], bool)


@pytest.mark.slow
def test_info_markdown():
    ran = likely("info", "--markdown")
    first, rule, *rows = ran.stdout.splitlines()
    assert ran.returncode == 0
    assert (first, rule) == ("| what | here |", "|---|---|")
    assert f"| likely | {__version__} |" in rows
    assert all(row.count("|") == 3 for row in rows)


def test_info_wants_one_form():
    ran = likely("info", "--json", "--markdown")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "choose one" in ran.stderr


def test_numba_cache_follows_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "made" / "later"))
    assert info.numba_cache() == {"writable": True, "folder": str(tmp_path / "made" / "later")}


def test_numba_cache_needs_a_folder(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(info, "cache_folders", lambda: iter([tmp_path / "file" / "below"]))
    assert info.numba_cache() == {"writable": False, "folder": None}


def test_reports_hide_the_home_folder(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: "/home/ada")
    assert info.shorten(Path("/home/ada/.cache/numba")) == os.path.join("~", ".cache", "numba")
    assert info.shorten(Path("/home/adam")) == str(Path("/home/adam"))


@pytest.mark.parametrize("args", [("no-such-command",), ("info", "--no-such-option"), ("--no-such-option",)])
def test_usage_errors_exit_with_2_and_talk_on_stderr(args):
    ran = likely(*args)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "No such" in ran.stderr


FAILING = """
from likely.core import errors
from likely.cli import main as cli

@cli.likely.command()
def fail():
    raise {error}

cli.main(["fail"])
"""


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("LikelyError", 1),
        ("NotConverged", 1),
        ("DomainError", 1),
        ("ShapeError", 3),
        ("DataError", 3),
        ("ModelFileError", 4),
    ],
)
def test_errors_of_ours_become_one_line_and_a_code(kind, code):
    ran = run("-c", FAILING.format(error=f"errors.{kind}('row 18:\\n  not a number.')"))
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", "likely: row 18: not a number.\n")


def test_a_kind_of_a_kind_keeps_its_code():
    ran = run("-c", FAILING.format(error="type('BadColumn', (errors.DataError,), {})('column b.')"))
    assert (ran.returncode, ran.stderr) == (3, "likely: column b.\n")


def test_other_errors_keep_their_traceback():
    ran = run("-c", FAILING.format(error="KeyError('a bug')"))
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr and "a bug" in ran.stderr


def test_completion_knows_commands_and_their_options():
    def complete(words: str, cword: str) -> str:
        code = "from likely.cli.main import main; main()"
        return run("-c", code, _LIKELY_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=cword).stdout

    assert "plain,info" in complete("likely in", "1")
    assert "plain,--markdown" in complete("likely info --m", "2")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("fit - --target y <&-", 3, "likely: standard input: the stream must be open"),
        ("--version >&-", 1, "likely: standard output: the stream must be open"),
        ("fit /no/such.csv --target y 2>&-", 3, ""),
        ("fit /no/such.csv --target y <&- >&-", 3, "likely: /no/such.csv: there is no such file"),
        ("--version <&- 2>&-", 0, ""),
    ],
)
def test_closed_streams_are_reported_in_a_sentence(command, code, words):
    ran = subprocess.run(["sh", "-c", f"{sys.executable} -m likely {command}"], capture_output=True, text=True)
    assert ran.returncode == code and ran.stderr.startswith(words) and ran.stderr.count("\n") == bool(words)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
def test_what_is_printed_to_a_closed_stream_gets_into_no_file(tmp_path):
    code = "import sys; from likely.cli import main as cli; cli._replace_closed_streams(); "
    code += "print(open(sys.argv[1], 'w').fileno(), file=sys.stderr)"
    command = f'{sys.executable} -c "{code}" {tmp_path / "x"} <&- >&-'
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert int(ran.stderr) > 2

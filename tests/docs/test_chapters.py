"""The README and every chapter run from top to bottom, and print what they say they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

from tests.printed import same_text

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|text|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_COMMANDS = {"classifying-a-table"}  # pages whose commands run, too; elsewhere they are for people to type


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """Kind, content and line of each fenced block of code or output."""
    text = page.read_text(encoding="utf-8")
    found = [(m[1], m[2], text[: m.start()].count("\n") + 2) for m in BLOCK.finditer(text)]
    return [block for block in found if block[0] != "sh" or page.stem in WITH_COMMANDS]


def shell(script: str) -> str:
    """What commands print on standard output; `likely` is the one of this Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(["sh", "-e"], input=script, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_numbers_may_differ_in_the_last_printed_digit_and_nothing_else() -> None:
    assert same_text("[1.   0.98] 3", "[1.   0.97]  3") and same_text("[0.99 1.  ]", "[1. 1.]")
    assert same_text("error -0. of 1.2e-05", "error 0. of 1.3e-05")
    assert not same_text("0.98", "0.96") and not same_text("3 rows", "4 rows") and not same_text("a 1.0", "b 1.0")
    assert not same_text("1.0 1.0", "1.0") and not same_text("1.2e-05", "1.2e-04")


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.stem)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType(f"page_{page.stem}")  # a real module: dataclasses look themselves up in it
    monkeypatch.setitem(sys.modules, module.__name__, module)
    scope = vars(module)
    printed = ""
    for kind, content, line in blocks(page):
        if kind == "text":
            assert same_text(printed, content), f"{page.name}:{line} prints otherwise:\n{printed}"
            continue
        if kind == "sh":
            printed = shell(content)
            continue
        out = StringIO()
        with redirect_stdout(out):
            exec(compile("\n" * (line - 1) + content, str(page), "exec"), scope)
        printed = out.getvalue()


def test_the_reference_names_everything() -> None:
    import likely.plots
    from likely.names import HOMES

    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([\w.]+)`", text))
    paths = {f"{space}.{name}".removeprefix("likely.") for space, homes in HOMES.items() for name in homes}
    assert {path for path in paths if not path.startswith("plots.")} <= listed
    assert {space for space in HOMES if space != "likely.plots"} <= set(re.findall(r"automodule:: (\S+)", text))
    drawn = set(re.findall(r"auto(?:function|class):: likely\.plots\.\w+\.(\w+)", text))
    assert drawn == set(likely.plots.__all__)


def test_every_chapter_is_named_in_the_readme() -> None:
    chapters = re.search(
        r"caption: Chapters.*?\n\n(.*?)```", (ROOT / "docs" / "index.md").read_text("utf-8"), re.DOTALL
    )
    assert chapters
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in chapters[1].split() if f"docs/{name}.md" not in readme] == []


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem not in ("api", "index")], ids=lambda p: p.stem)
def test_links_are_plain(page: Path) -> None:
    """A role of Sphinx is raw text to those who read a page where the code lives; a link must lead to a page."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"\{(?:doc|ref)\}`", text) == []
    linked = re.findall(r"\]\(([\w/.-]+\.md)(?:#[\w-]*)?\)", text)
    assert [name for name in linked if not (page.parent / name).exists()] == []


def test_pages_are_found() -> None:
    assert {p.stem for p in PAGES if blocks(p)} >= {"README", "concepts", "gaussians", "adding-a-distribution"}

"""The README and every chapter run from top to bottom, and print what they say they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

from tests.printed import same_text

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "reference"} & set(page.parts)),
]
BLOCK = re.compile(r"^```(python|text|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_COMMANDS = {"a-table", "classifying-a-table", "predicting-a-number"}  # pages whose commands run, too


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


def test_the_reference_names_everything_once() -> None:
    from likely.names import HOMES

    subjects = tomllib.loads((ROOT / "docs" / "reference" / "subjects.toml").read_text(encoding="utf-8"))
    listed = [name for subject in subjects.values() for name in subject["names"]]
    paths = {f"{space}.{name}".removeprefix("likely.") for space, homes in HOMES.items() for name in homes}
    assert set(listed) == paths and len(listed) == len(paths)


@pytest.mark.parametrize("folder", ["getting-started", "guide", "how-to", "results", "development"])
def test_every_page_is_in_the_tree_of_its_folder(folder: str) -> None:
    pages = {page.stem for page in (ROOT / "docs" / folder).glob("*.md")} - {"index"}
    index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    tree = re.findall(r"\{toctree\}\n(?::.*\n)*\n(.*?)```", index, re.DOTALL)
    assert pages == set(" ".join(tree).split())


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "contributing"], ids=lambda p: p.stem)
def test_links_are_plain(page: Path) -> None:
    """A role of Sphinx is raw text to those who read a page where the code lives; a link must lead to a page."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"\{(?:doc|ref)\}`", text) == []
    linked = re.findall(r"\]\(([\w/.-]+\.md)(?:#[\w-]*)?\)", text)
    made = {"reference/index.md", "gallery.md"}  # when the pages are built
    assert [name for name in linked if name not in made and not (page.parent / name).exists()] == []


def test_pages_are_found() -> None:
    assert {p.stem for p in PAGES if blocks(p)} >= {"README", "concepts", "gaussians", "adding-a-distribution"}

"""Imports point one way, and nothing in the library runs what it did not write."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "likely"

# Each room may import itself and what stands to its right.
ORDER = (
    *("app", "recognisers", "plots", "estimators", "io", "neural", "models"),
    *("decisions", "engines", "data", "priors", "families", "maths", "loops", "core", "errors"),
)
ANYWHERE = {"_version"}  # whom all may import
LOBBY = {"__init__", "__main__", "_version", "files"}  # may import any room ...
LAZY_LOBBY = {"__init__", "files"}  # ... these two on first use only
LAZY_EXTRAS = {  # further rooms, inside functions
    "estimators": {"files"},
    "app": {"files", "__init__"},
    "families": {"priors"},  # a law names its conjugate partner: `weak_prior`
}
ONLY_IN = {"sklearn": "estimators", "numba": "loops"}  # third parties that one room keeps

UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "__import__"}
TABLES_OF_NAMES = {"__init__.py", "app/cli.py", "plots/__init__.py"}  # may import by name, from tables of their own
UNSAFE_TEXT = re.compile(r"""pickle\.load|joblib|(?<![\w.])(eval|exec)\(|import_module\((?!["'][\w.]+["']\))""")

SOURCES = sorted(PACKAGE.rglob("*.py"))


class Import(NamedTuple):
    module: str  # absolute, as in likely.core.blocks
    names: tuple[str, ...]  # what is taken from it
    lazy: bool  # inside a function, so on first use
    line: int


def name_of(path: Path) -> str:
    """The path within the package, as in core/blocks.py."""
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    """The folder of a source file, or its own name where it stands in the lobby."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.AST, package: str, lazy: bool = False) -> Iterator[Import]:
    """Every import in a module of that package; one for type checkers only counts as lazy."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), lazy, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield Import(absolute(node, package), names, lazy, node.lineno)
        else:
            yield from imports(node, package, lazy or is_deferred(node))


def is_deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that `from ..maths import special` means inside likely.families."""
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def imports_of(path: Path) -> list[Import]:
    package = ".".join(("likely", *path.relative_to(PACKAGE).parts[:-1]))
    return list(imports(ast.parse(path.read_text(encoding="utf-8")), package))


def rooms_entered(found: Import) -> set[str]:
    """The rooms of ours that an import enters; a public name taken from `likely` itself enters __init__."""
    first, *rest = found.module.split(".")
    if first != "likely":
        return set()
    if rest:
        return {rest[0]}
    known = {*ORDER, *LOBBY}
    return {name if name in known else "__init__" for name in found.names or ("__init__",)}


def may_enter(room: str, target: str, lazy: bool) -> bool:
    if target in ANYWHERE or target == room:
        return True
    if room in LOBBY:
        return lazy or room not in LAZY_LOBBY or target == "errors"
    if lazy and target in LAZY_EXTRAS.get(room, ()):
        return True
    return room != "loops" and target in ORDER[ORDER.index(room) :]


def wrong_imports(path: Path) -> Iterator[str]:
    room = room_of(path)
    for found in imports_of(path):
        for target in rooms_entered(found):
            if not may_enter(room, target, found.lazy):
                yield f"{name_of(path)}:{found.line}: {room} must not import {target}"
        keeper = ONLY_IN.get(found.module.split(".")[0], room)
        if keeper != room:
            yield f"{name_of(path)}:{found.line}: only {keeper} may import {found.module}"


def test_every_room_has_a_place_in_the_order():
    rooms = {room_of(path) for path in SOURCES}
    assert rooms <= {*ORDER, *LOBBY}


def test_imports_point_one_way():
    assert {name_of(path): wrong for path in SOURCES if (wrong := list(wrong_imports(path)))} == {}


@pytest.mark.parametrize(
    ("room", "target", "lazy", "allowed"),
    [
        ("app", "core", False, True),
        ("core", "app", True, False),
        ("families", "maths", False, True),
        ("maths", "families", False, False),
        ("loops", "core", False, False),
        ("loops", "errors", False, False),
        ("errors", "core", True, False),
        ("__init__", "models", True, True),
        ("__init__", "models", False, False),
        ("files", "estimators", False, False),
        ("estimators", "files", True, True),
        ("estimators", "files", False, False),
        ("models", "files", True, False),
    ],
)
def test_the_order_means_what_it_says(room, target, lazy, allowed):
    assert may_enter(room, target, lazy) is allowed


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import likely.numerics.special", {"maths"}),
        ("from likely.core import blocks", {"core"}),
        ("from likely import errors, Gaussian", {"errors", "__init__"}),
        ("from ..maths import special", {"maths"}),
        ("from . import poisson", {"families"}),
        ("import numpy", set()),
    ],
)
def test_imports_are_understood(line, expected):
    (found,) = imports(ast.parse(line), "likely.families")
    assert rooms_entered(found) == expected


def test_importing_likely_is_light():
    heavy = ("numba", "sklearn", "scipy.stats", "matplotlib")
    code = f"import likely, sys; print(*(name for name in {heavy} if name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def unsafe_code(tree: ast.AST, package: str = "likely", tables: bool = False) -> Iterator[str]:
    """What could run code that the library did not write: pickles, evaluation, imports by a computed name."""
    for found in imports(tree, package):
        if found.module.split(".")[0] in UNSAFE_MODULES:
            yield f"line {found.line}: imports {found.module}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in UNSAFE_CALLS:
            yield f"line {node.lineno}: calls {called}"
        if called.split(".")[-1] == "import_module" and not tables and not is_literal(node.args):
            yield f"line {node.lineno}: imports by a computed name"


def is_literal(args: list[ast.expr]) -> bool:
    return bool(args) and all(isinstance(arg, ast.Constant) for arg in args)


def test_source_runs_nothing_foreign():
    trees = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    found = {name: list(unsafe_code(tree, tables=name in TABLES_OF_NAMES)) for name, tree in trees.items()}
    assert {name: unsafe for name, unsafe in found.items() if unsafe} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "eval('1')",
        "exec(code)",
        "importlib.import_module(name)",
        "import_module(f'likely.{name}')",
    ],
)
def test_unsafe_code_is_seen(line):
    assert list(unsafe_code(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["network.eval()", "import_module('likely.core')", "evaluate(x)", "'joblib is not used'"]
)
def test_safe_code_is_left_alone(line):
    assert not list(unsafe_code(ast.parse(line)))
    assert line.startswith("'") or not UNSAFE_TEXT.search(line)


def code_in(path: Path) -> str:
    """The code of a documentation file: all of a script, the fenced blocks of a chapter."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    return "\n".join(re.findall(r"^(?:```|:::).*?\n(.*?)^(?:```|:::)", text, re.DOTALL | re.MULTILINE))


def test_docs_teach_nothing_unsafe():
    files = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.py")]
    chapters = [path for path in files if "_build" not in path.parts]
    assert [path.name for path in chapters if UNSAFE_TEXT.search(code_in(path))] == []

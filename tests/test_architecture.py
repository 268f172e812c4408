"""Imports point one way, and nothing in the library runs what it did not write."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from likely.core import errors

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "likely"

# Two layers. A module may import its own package and what stands before it in its layer; estimators may import all
# values. The estimators of a subject (`<subject>/**/estimator.py` and `<subject>/**/estimators/`) stand between
# `estimation` and `model_selection`, in the order of the subjects.
VALUES = (
    *("core", "data", "features", "io", "numerics", "basis", "distributions", "information", "neighbors", "decision"),
    *("metrics", "cluster", "mixture", "density", "decomposition", "hmm", "linear_model", "alignment", "statespace"),
    *("inference", "imputation", "language"),
)
UPPER = (
    *("model_selection", "classify", "gp", "tree", "neural", "convert"),
    *("automl", "recognizers", "plots", "report", "cli", "server"),
)
ORDER = (
    *VALUES,
    "estimation",
    *(f"{subject} estimators" for subject in VALUES),
    *UPPER,
)
LOBBY = {"__init__", "__main__", "_version", "extend", "names", "priors", "speech"}  # files of `likely` itself
FACADE = {"cli"}  # may import `likely` itself, as a user does
GENERIC = {"__init__", "_loops", "estimator", "priors"}  # names that several files may have

UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "__import__"}
# these import by name, from tables of their own
TABLES_OF_NAMES = {"names.py", "cli/main.py", "io/registry.py"}
TABLES_OF_CLASSES = {"names.py", "io/registry.py"}  # name what files may hold, wherever it lives
UNSAFE_TEXT = re.compile(r"""pickle\.load|joblib|(?<![\w.])(eval|exec)\(|import_module\((?!["'][\w.]+["']\))""")

SOURCES = sorted(PACKAGE.rglob("*.py"))


class Import(NamedTuple):
    module: str  # absolute, as in likely.core.blocks
    names: tuple[str, ...]  # what is taken from it
    line: int


def name_of(path: Path) -> str:
    """The path within the package, as in core/blocks.py."""
    return path.relative_to(PACKAGE).as_posix()


def dotted(path: Path) -> str:
    """The name of the module in a file, as in likely.core.blocks."""
    return ".".join(("likely", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {dotted(path) for path in SOURCES}


def room_of(module: str) -> str:
    """The place of a module in the order: its subject, or the estimators of its subject."""
    first, *deeper = module.split(".")[1:] or ["__init__"]
    return f"{first} estimators" if first in VALUES and {"estimator", "estimators"} & {*deeper} else first


@cache  # parsing takes seconds
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Imports and calls, wherever they stand."""
    return [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom | ast.Call)]


def imports(nodes: list[ast.AST], package: str) -> Iterator[Import]:
    """Every import in a module of that package, in functions too; `import_module` of a literal name is one."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield Import(absolute(node, package), tuple(alias.name for alias in node.names), node.lineno)
        elif isinstance(node, ast.Call) and last_name(node.func) == "import_module" and is_literal(node.args):
            yield Import(str(ast.literal_eval(node.args[0])), (), node.lineno)


def last_name(called: ast.expr) -> str:
    """c of a.b.c; nothing where what is called has no name. `ast.unparse` of every call would take seconds."""
    return called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that `from ..numerics import special` means inside likely.distributions."""
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


@cache
def told_of(path: Path) -> tuple[list[Import], list[str]]:
    """The imports of a file, and its unsafe code."""
    package = ".".join(("likely", *path.relative_to(PACKAGE).parts[:-1]))
    nodes = nodes_of(tree_of(path))
    return list(imports(nodes, package)), list(unsafe_code(nodes, tables=name_of(path) in TABLES_OF_NAMES))


def modules_entered(found: Import) -> set[str]:
    """The modules of ours that an import enters; a public name taken from `likely` itself enters `likely`."""
    if found.module.split(".")[0] != "likely":
        return set()
    inner = {f"{found.module}.{name}" for name in found.names}
    return {name if name in MODULES else found.module for name in inner} or {found.module}


def may_enter(room: str, target: str) -> bool:
    if target == room or target in {"_version", "names"} or room in LOBBY:
        return True
    if target == "__init__":
        return room in FACADE
    return ORDER.index(target) < ORDER.index(room)


def is_private(module: str) -> bool:
    """Whether some part of the name, beyond `likely`, begins with an underscore."""
    return any(part.startswith("_") for part in module.split(".")[2:])


def wrong_imports(path: Path) -> Iterator[str]:
    module, room = dotted(path), room_of(dotted(path))
    for found in told_of(path)[0] if name_of(path) not in TABLES_OF_CLASSES else plain_imports(path):
        where = f"{name_of(path)}:{found.line}"
        for target in sorted(modules_entered(found)):
            if not may_enter(room, room_of(target)):
                yield f"{where}: {room} must not import {target}"
            if is_private(target) and target.split(".")[1] != module.split(".")[1]:
                yield f"{where}: {target} is private to likely.{target.split('.')[1]}"
        yield from (f"{where}: {said}" for said in foreign(found.module.split(".")[0], module, room))


def plain_imports(path: Path) -> list[Import]:
    """The imports of a file by statement alone."""
    nodes = nodes_of(tree_of(path))
    return list(imports([node for node in nodes if not isinstance(node, ast.Call)], "likely"))


def foreign(name: str, module: str, room: str) -> Iterator[str]:
    """What is wrong with importing a third party there."""
    if name == "numba" and module != "likely.numerics.compile":
        yield "only numerics/compile.py may import numba"
    if name == "sklearn" and room in VALUES:
        yield "values must not import scikit-learn"


def test_every_module_has_a_place_in_the_order():
    assert {room_of(module) for module in MODULES} <= {*ORDER, *LOBBY}


@pytest.mark.slow
def test_imports_point_one_way():
    assert {name_of(path): wrong for path in SOURCES if (wrong := list(wrong_imports(path)))} == {}


def test_a_file_name_is_used_once():
    bases = Counter(path.stem for path in SOURCES)
    assert {name for name, times in bases.items() if times > 1} <= GENERIC


def test_no_folder_is_crowded():
    files = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in SOURCES if path.stem != "__init__")
    assert {folder: n for folder, n in files.items() if n > 30} == {}


@pytest.mark.parametrize(
    ("room", "target", "allowed"),
    [
        ("cli", "core", True),
        ("core", "cli", False),
        ("core", "numerics", False),
        ("distributions", "numerics", True),
        ("numerics", "distributions", False),
        ("mixture", "hmm", False),
        ("hmm", "estimation", False),
        ("hmm", "distributions estimators", False),
        ("estimation", "language", True),
        ("estimation", "hmm estimators", False),
        ("hmm estimators", "mixture estimators", True),
        ("mixture estimators", "hmm estimators", False),
        ("distributions estimators", "statespace", True),
        ("model_selection", "classify", False),
        ("classify", "statespace estimators", True),
        ("__init__", "cli", True),
        ("cli", "__init__", True),
        ("plots", "__init__", False),
        ("core", "_version", True),
    ],
)
def test_the_order_means_what_it_says(room, target, allowed):
    assert may_enter(room, target) is allowed


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("likely", "__init__"),
        ("likely._version", "_version"),
        ("likely.hmm.viterbi", "hmm"),
        ("likely.hmm._loops.log_recursions", "hmm"),
        ("likely.hmm.estimators.hmm_density", "hmm estimators"),
        ("likely.distributions.gaussian.estimator", "distributions estimators"),
        ("likely.estimation.novelty.novelty_score", "estimation"),
        ("likely.classify.bayes", "classify"),
    ],
)
def test_a_module_knows_its_room(module, room):
    assert room_of(module) == room and (module in MODULES or not SOURCES)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import likely.numerics.special", {"likely.numerics.special"}),
        ("from likely.core import blocks", {"likely.core.blocks"}),
        ("from likely.core.blocks import Blocks", {"likely.core.blocks"}),
        ("from likely import core, Gaussian", {"likely.core", "likely"}),
        ("from ..numerics import special", {"likely.numerics.special"}),
        ("def f():\n    from likely.core import blocks", {"likely.core.blocks"}),
        ("import_module('likely.core.blocks')", {"likely.core.blocks"}),
        ("import numpy", set()),
    ],
)
def test_imports_are_understood(line, expected):
    (found,) = imports(nodes_of(ast.parse(line)), "likely.distributions")
    assert modules_entered(found) == expected


@pytest.mark.parametrize(
    ("name", "module", "allowed"),
    [
        ("numba", "likely.numerics.compile", True),
        ("numba", "likely.hmm._loops.log_recursions", False),
        ("sklearn", "likely.hmm.hmm", False),
        ("sklearn", "likely.hmm.estimators.hmm_density", True),
        ("sklearn", "likely.classify.bayes", True),
        ("scipy", "likely.hmm.hmm", True),
    ],
)
def test_third_parties_have_their_places(name, module, allowed):
    assert (not list(foreign(name, module, room_of(module)))) is allowed


def test_importing_likely_is_light():
    heavy = ("numba", "sklearn", "scipy.stats", "matplotlib")
    code = f"import likely, sys; print(*(name for name in {heavy} if name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def unsafe_code(nodes: list[ast.AST], package: str = "likely", tables: bool = False) -> Iterator[str]:
    """What could run code that the library did not write: pickles, evaluation, imports by a computed name."""
    for found in imports(nodes, package):
        if found.module.split(".")[0] in UNSAFE_MODULES:
            yield f"line {found.line}: imports {found.module}"
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = last_name(node.func)
        if isinstance(node.func, ast.Name) and called in UNSAFE_CALLS:
            yield f"line {node.lineno}: calls {called}"
        if called == "import_module" and not tables and not is_literal(node.args):
            yield f"line {node.lineno}: imports by a computed name"


def is_literal(args: list[ast.expr]) -> bool:
    return bool(args) and all(isinstance(arg, ast.Constant) for arg in args)


@pytest.mark.slow
def test_source_runs_nothing_foreign():
    found = {name_of(path): told_of(path)[1] for path in SOURCES}
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
    assert list(unsafe_code(nodes_of(ast.parse(line))))


@pytest.mark.parametrize(
    "line", ["network.eval()", "import_module('likely.core')", "evaluate(x)", "'joblib is not used'"]
)
def test_safe_code_is_left_alone(line):
    assert not list(unsafe_code(nodes_of(ast.parse(line))))
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


IMPORT_NAMES = {"scikit-learn": "sklearn"}  # where the package is called otherwise


def test_every_dependency_is_imported_and_every_extra_that_is_named_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = [re.split(r"[><=]", line)[0] for line in project["dependencies"] + extras["plot"]]
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    imported = {*re.findall(r"^ *(?:import|from) (\w+)", source, re.MULTILINE)}
    assert [name for name in names if IMPORT_NAMES.get(name, name) not in imported] == []
    assert {*re.findall(r"likely\[(\w+)\]", source)} <= {*extras}

    from likely.cli import info

    assert [*info.REQUIRED, *info.OPTIONAL] == names


WRITES = re.compile(r"__dict__(\[[^\]]*\] = |\.(update|setdefault)\()")
WRITERS = {"core/value.py", "statespace/linear/state_belief.py"}  # the mechanism; a constructor with a measured reason


def test_values_are_written_through_their_declared_caches_only():
    values = [path for path in SOURCES if room_of(dotted(path)) in VALUES]
    found = {name_of(path) for path in values if WRITES.search(path.read_text(encoding="utf-8"))}
    assert found == WRITERS


# ------------------------------------------------------------------------------ messages


def pasted(tree: ast.AST) -> Iterator[int]:
    """Lines where an exception of another library, or its text, stands after "got" in a message of our own."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name):
        kinds = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else set()
        if kinds and all(hasattr(errors, kind) for kind in kinds):
            continue
        for call in (node for node in ast.walk(handler) if isinstance(node, ast.Call)):
            at = {"sentence": 2, "Refusal": 1}.get(getattr(call.func, "id", ""))
            if at is not None and len(call.args) > at and shows(call.args[at], handler.name):
                yield call.lineno


def shows(got: ast.expr, name: str) -> bool:
    """Whether an expression has the text of the exception in it; its type, or a field of it, is no text."""
    parts = list(ast.walk(got))
    inside = {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
    inside |= {id(a) for part in parts if isinstance(part, ast.Call) and named(part) != "str" for a in part.args}
    return any(isinstance(part, ast.Name) and part.id == name and id(part) not in inside for part in parts)


def named(call: ast.Call) -> str:
    return getattr(call.func, "id", "")


@pytest.mark.slow
def test_no_foreign_exception_is_pasted_after_got():
    found = [f"{name_of(path)}:{line}" for path in SOURCES for line in pasted(tree_of(path))]
    assert not found


@pytest.mark.parametrize(
    ("got", "bad"),
    [
        *(("error", True), ("str(error)", True), ('f"{error!r}"[:80]', True), ("error.strerror or error", True)),
        *(("type(error).__name__", False), ("error.strerror", False), ("not_json(error)", False), ('"text"', False)),
    ],
)
def test_a_pasted_exception_is_seen(got, bad):
    source = f"try:\n    f()\nexcept ValueError as error:\n    raise DataError(sentence('x', 'y', {got}))\n"
    ours = source.replace("ValueError", "LikelyError")
    assert list(pasted(ast.parse(source))) == [4] * bad and not list(pasted(ast.parse(ours)))


@cache
def words_in_tables(path: Path) -> frozenset[str]:
    """Strings and names that stand in tables at module level."""
    assigned = [
        node.value for node in tree_of(path).body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
    ]
    parts = [part for value in assigned for part in ast.walk(value)]
    said = {word for n in parts if isinstance(n, ast.Constant) for word in str(n.value).split()}
    return frozenset(said | {n.id for n in parts if isinstance(n, ast.Name)})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Lomax", "VonMises", "BetaBinomial", "DirichletMultinomial", "Elliptical"])
def test_a_distribution_stands_in_one_table(name):
    """Adding one touches its own file, its test, and one line of `names.py`."""
    assert {name_of(path) for path in SOURCES if words_in_tables(path) & {name, f"{name}Density"}} == {"names.py"}


@pytest.mark.slow
def test_no_underscore_method_is_called_from_another_package():
    """A method that another package calls is public, and hidden from `dir` if users do not need it."""
    homes: dict[str, set[str]] = {}
    for path in SOURCES:
        room = path.relative_to(PACKAGE).parts[0]
        for cls in (node for node in tree_of(path).body if isinstance(node, ast.ClassDef)):
            for part in cls.body:
                if isinstance(part, ast.FunctionDef) and part.name.startswith("_") and not part.name.startswith("__"):
                    homes.setdefault(part.name, set()).add(room)
    del homes["_validate_params"], homes["_support"]  # of scikit-learn; a field of distributions
    found = set()
    for path in SOURCES:
        room = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute) and node.attr in homes and room not in homes[node.attr]:
                if ast.unparse(node.value) not in ("self", "cls", "super()"):
                    found.add(f"{name_of(path)}: {ast.unparse(node)}")
    assert found == set()

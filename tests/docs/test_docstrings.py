"""Docstrings of everything public are in numpydoc form: parameters, results, attributes and examples."""

from __future__ import annotations

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from numpydoc.validate import validate

from likely.core.value import INTERNAL as OF_VALUES
from likely.estimation.component import INTERNAL as OF_COMPONENTS
from likely.names import HOMES
from tests.ledger import ROOT

GOLDEN = ROOT / "net" / "golden" / "numbers.json"

# numpydoc's codes that are checked. Left out: layout of quotation marks (GL01–GL03), extended summaries (ES01) and See
# Also (SA01), which are written where they help, and SS05, which takes plurals for verbs. EX01: see `needs_example`.
CODES = frozenset(
    "GL06 GL07 GL08 GL09 GL10 SS01 SS02 SS03 SS04 SS06 PR01 PR02 PR03 PR04 PR05 PR06 PR07 PR08 PR09 PR10 "
    "RT01 RT02 RT03 RT04 RT05 YD01 SA02 SA03 SA04 EX01".split()
)


def public_objects() -> Iterator[tuple[str, Any]]:
    """Import path and object: public functions, classes, and what `dir` of a class shows of its methods."""
    seen = set()
    for homes in HOMES.values():
        for name, module in homes.items():
            thing = getattr(import_module(module), name)
            if not inspect.isroutine(thing) and not inspect.isclass(thing):
                continue
            of_class = methods(thing) if inspect.isclass(thing) else ()
            for path, each in [(f"{module}.{name}", thing), *of_class]:
                if path not in seen and "<" not in path:
                    seen.add(path)
                    yield path, each


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Import path and function of the public methods and properties of a class that the library defines."""
    for name in dir(cls):
        if name.startswith("_") or name in OF_VALUES | OF_COMPONENTS:
            continue
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", member)
        function = inspect.unwrap(function) if callable(function) else function
        if inspect.isfunction(function) and function.__module__.startswith("likely"):
            yield f"{function.__module__}.{function.__qualname__}", member


def needs_example(path: str, thing: Any) -> bool:
    """Functions and classes have an example; methods show theirs in the class."""
    is_error = inspect.isclass(thing) and issubclass(thing, BaseException)
    return not is_error and (inspect.isclass(thing) or path.rsplit(".", 2)[1].islower())


def findings(path: str, thing: Any) -> list[str]:
    """What numpydoc finds in a docstring."""
    codes = CODES - {"PR01"} if getattr(thing, "_is_protocol", False) else CODES  # a protocol is not constructed
    found = [(code, text) for code, text in validate(path)["errors"] if code in codes]
    return [f"{path}: {code} {text}" for code, text in found if code != "EX01" or needs_example(path, thing)]


@pytest.fixture(scope="module")
def by_package() -> dict[str, list[tuple[str, Any]]]:
    packages = defaultdict(list)
    for path, thing in public_objects():
        packages[path.split(".")[1]].append((path, thing))
    return packages


PACKAGES = sorted({module.split(".")[1] for homes in HOMES.values() for module in homes.values()})


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_numpydoc_finds_nothing_in_public_docstrings(by_package, package):
    found = [line for path, thing in by_package[package] for line in findings(path, thing)]
    assert not found, f"{len(found)} findings:\n" + "\n".join(found[:40])


def test_a_docstring_without_parameters_is_found():
    path = "likely.core.docstrings.completed"  # a helper: no parameters are described
    assert any("PR01" in line for line in findings(path, import_module("likely.core.docstrings").completed))


def test_names_in_see_also_are_public():
    public = {name for homes in HOMES.values() for name in homes}
    named = ((path, name) for path, thing in public_objects() for name in documented(thing, "See Also"))
    assert not [each for each in named if each[1].partition(".")[0] not in public]


def documented(thing: Any, section: str) -> set[str]:
    """Names in a section of a docstring."""
    body = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", inspect.getdoc(thing) or "", re.M | re.S)
    entries = re.findall(r"^(\S[^:\n]*)", body[1], re.M) if body else []
    return {name.strip() for entry in entries for name in entry.split(",")}


def fitted_attributes() -> dict[str, set[str]]:
    """Attributes that `fit` makes, by class: from the golden numbers of the regression net."""
    found = defaultdict(set)
    for case in json.loads(GOLDEN.read_text(encoding="utf-8")).values():
        names = {name.split(".")[1] for name in case if re.match(r"fitted\.\w+_(\.|$)", name)}
        if "fitted.@type" in case:
            found[case["fitted.@type"]] |= names
    return found


@pytest.mark.parametrize("name", sorted(fitted_attributes()))
def test_every_fitted_attribute_is_documented(name):
    module = next(homes[name] for homes in HOMES.values() if name in homes)
    missing = fitted_attributes()[name] - documented(getattr(import_module(module), name), "Attributes")
    assert not missing


@pytest.mark.parametrize("thing", ["LinearRegression", "KMeans"])
def test_documented_names_are_read(thing):
    cls = getattr(import_module("likely"), thing)
    assert {"n_features_in_", "model_"} <= documented(cls, "Attributes")

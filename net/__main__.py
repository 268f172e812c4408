"""`./run net`: whether the library still says what it said. See `--help`.

Golden tables lie in net/golden: numbers of every value, estimator and function, texts of every command, public names,
promises with their tests. `renames.toml` tells what was renamed on purpose, until --renew writes the golden tables
under the new names; `renewed.toml` keeps what was renewed or renamed, at which commit, and why.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import subprocess
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
RENAMES, RENEWED = HERE / "renames.toml", HERE / "renewed.toml"
WHAT = ("names", "numbers", "texts", "ledger")


def main() -> int:
    asked = arguments()
    began = time.perf_counter()
    found: list[tuple[str, str]] = []  # key, sentence
    for what in asked.only or WHAT:
        found += [(key, said) for key, said in CHECKS[what](asked) if wanted(key, asked.case)]
    seconds = time.perf_counter() - began
    if asked.renew:
        print(f"net: {len(found)} renewed or gone, {seconds:.0f} s")
        return 0
    for _, said in found:
        print(said)
    print(f"net: {len(found)} differences, {seconds:.0f} s" if found else f"net: as it was, {seconds:.0f} s")
    if found and (there := machine()) != (then := read("machine.json")):
        print(f"the golden tables come from {then}; this is {there}")
    return bool(found)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run net", description=(__doc__ or "").partition("\n")[2])
    parser.add_argument("--only", action="append", choices=WHAT, help="one of the four checks; repeatable")
    parser.add_argument("--case", default="*", metavar="PATTERN", help='such as "estimator/*"')
    parser.add_argument("--renew", action="store_true", help="take what is now for golden, where --case says so")
    parser.add_argument("--why", default="", help="the reason, kept with the commit in net/renewed.toml")
    asked = parser.parse_args()
    if asked.renew and not asked.why and (GOLDEN / "names.json").exists():
        parser.error("--renew needs --why: it is kept with the commit")
    if asked.renew:
        log(asked)
        settle()
    return asked


def wanted(key: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(key, pattern) or fnmatch.fnmatchcase(key, f"{pattern}:*")


# ----------------------------------------------------------------- the checks

Found = Iterator[tuple[str, str]]


def names(asked: argparse.Namespace) -> Found:
    """Public names, their signatures and members."""
    from net import compare
    from net.names import api

    now, golden = api(), read("names.json")
    for key in sorted(golden.keys() | now.keys()):
        for said in compare.tables(*({key: t[key]} if key in t else {} for t in (golden, now)), "name"):
            yield f"name/{key}", said
    renewed(asked, "names.json", golden, now, "name/{}")


def numbers(asked: argparse.Namespace) -> Found:
    """Golden numbers of values and estimators, and whether each has some."""
    from net import compare

    everything = read("numbers.json")
    chosen = [case for case in cases() if wanted(case[0], asked.case)]
    golden = {name: leaves for name, leaves in everything.items() if wanted(name, asked.case)}
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(measured, (name for name, _, _ in chosen)))
    now = {name: leaves for (name, _, _), leaves in zip(chosen, results, strict=True)}
    for name, _, tolerance in chosen:
        if FAILED in now[name]:
            if asked.renew:
                raise SystemExit(f"net: {name} ends in {now[name][FAILED]}: mend it, then renew")
            yield name, f"{name}: ends in {now[name][FAILED]}"
            continue
        if name not in golden:
            yield name, f"{name}: a new case"
            continue
        for said in compare.numbers(golden[name], now[name], name, tolerance):
            yield name, said
    for name in golden.keys() - now.keys():
        yield name, f"{name}: the case is gone"
    if asked.case == "*":
        for name in without_numbers(now):
            yield f"coverage/{name}", f"coverage: no case makes a {name}"
    elif not chosen and not golden and (asked.only or WHAT) == ["numbers"]:
        yield asked.case, f"no case is called {asked.case}"
    others = {name: leaves for name, leaves in everything.items() if not wanted(name, asked.case)}
    renewed(asked, "numbers.json", others | golden, now, "{}")


def cases() -> Iterator[tuple[str, Callable[[], Any], float]]:
    from net import estimators, functions, values

    for module in (values, estimators, functions):
        yield from module.cases()


FAILED = "@error"  # the leaf of a case that raised an error: the others are still compared


def measured(name: str) -> dict[str, Any]:
    """The leaves of one case, and the kinds of warnings that it gave; run in a worker."""
    from net.record import flat

    make = next(make for other, make, _ in cases() if other == name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            out = dict(flat(make()))
        except Exception as error:
            return {FAILED: f"{type(error).__name__}: {error}"}
    return {**out, "warnings": ", ".join(sorted({w.category.__name__ for w in said}))}


def without_numbers(now: dict[str, dict[str, Any]]) -> list[str]:
    """Public classes and functions that no case returns or names; protocols and errors need none."""
    import inspect
    import re

    from net import estimators, functions, values
    from tests.properties import members, pairs
    from tests.public_names import public

    source = "".join(inspect.getsource(module) for module in (values, estimators, functions, members, pairs))
    known = {leaf for leaves in now.values() for path, leaf in leaves.items() if path.endswith("@type")}
    known |= {type(member.value).__name__ for member in members.MEMBERS}
    known |= {name for path in re.findall(r"\blk\.([\w.]+)", source) for name in path.split(".")}
    return [name for name, value in public().items() if name not in known and _has_numbers(value)]


def _has_numbers(value: Any) -> bool:
    bare = getattr(value, "_is_protocol", False) or (isinstance(value, type) and issubclass(value, BaseException))
    return callable(value) and not bare


def texts(asked: argparse.Namespace) -> Found:
    """What each command prints."""
    from net import compare
    from net.texts import texts as made

    golden, now = read("texts.json"), made()
    for name in sorted(golden.keys() | now.keys()):
        said = compare.text(golden.get(name, ""), now.get(name, ""))
        if said:
            yield f"text/{name}", f"text/{name}: {said}"
    renewed(asked, "texts.json", golden, now, "text/{}")


def ledger(asked: argparse.Namespace) -> Found:
    """Whether every test that a promise rests on exists, and whether a promise or one of its tests was dropped."""
    from net import compare
    from tests.ledger import PROCESSOR, load, missing, split

    for test in missing():
        yield f"ledger/{test}", f"ledger: there is no test {test}"
    now = {}
    for p in load():
        ids = {name: how for how, some in (("every run", p.tests), ("campaign", p.campaign)) for name in some}
        now[p.promise] = {
            name if name == PROCESSOR else f"{Path(split(name)[0]).stem}::{split(name)[1]}": how
            for name, how in ids.items()
        }
    golden = read("ledger.json")
    for key in sorted(golden.keys() | now.keys()):
        for said in compare.tables(*({key: t[key]} if key in t else {} for t in (golden, now)), "promise"):
            yield f"ledger/{key}", said
    renewed(asked, "ledger.json", golden, now, "ledger/{}")


CHECKS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "names": names, "numbers": numbers, "texts": texts, "ledger": ledger,
}  # fmt: skip


# -------------------------------------------------------------- golden tables


def read(name: str) -> Any:
    """A golden table under the names of now: intended renamings are applied."""
    path = GOLDEN / name
    table = json.loads(path.read_text()) if path.exists() else {}
    return RENAMED[name](renames(), table) if name in RENAMED and RENAMES.exists() else table


RENAMED: dict[str, Callable[[Any, Any], Any]] = {
    "names.json": lambda how, table: how.api(table),
    "numbers.json": lambda how, table: {how.text(name): how.numbers(leaves) for name, leaves in table.items()},
    "texts.json": lambda how, table: {name: how.text(text) for name, text in table.items()},
}


def write(name: str, table: Any) -> None:
    lines = [f"{json.dumps(key)}: {json.dumps(table[key], ensure_ascii=False)}" for key in sorted(table)]
    (GOLDEN / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")  # a line per case: differences can be read


def renewed(asked: argparse.Namespace, file: str, golden: dict[str, Any], now: dict[str, Any], key: str) -> None:
    """With --renew: the golden table, with what is now wherever --case says so."""
    if not asked.renew:
        return
    chosen = {name for name in golden.keys() | now.keys() if wanted(key.format(name), asked.case)}
    table = {name: entry for name, entry in golden.items() if name not in chosen}
    write(file, table | {name: now[name] for name in chosen & now.keys()})
    write("machine.json", machine())


def renames() -> Any:
    from net.compare import Renames

    return Renames(renamed().items())


def renamed() -> dict[str, str]:
    """Intended renamings, old name to new."""
    return tomllib.loads(RENAMES.read_text()).get("renamed", {}) if RENAMES.exists() else {}


def settle() -> None:
    """Golden tables under the new names, and no renamings left: a second time, one could rename what another made."""
    for name in RENAMED:
        write(name, read(name))
    RENAMES.unlink(missing_ok=True)


def log(asked: argparse.Namespace) -> None:
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=HERE).stdout.strip()
    told = {"after": commit, "case": asked.case, "of": ", ".join(asked.only or WHAT), "why": asked.why}
    lines = ["[[renewed]]", *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in told.items())]
    if renamed():
        lines += ["[renewed.renamed]", *(f"{json.dumps(old)} = {json.dumps(new)}" for old, new in renamed().items())]
    with RENEWED.open("a") as out:
        out.write("\n".join([*lines, "\n"]))


def machine() -> dict[str, str]:
    """Versions and processor: numbers are those of the same ones to the last digits that are compared."""
    from importlib.metadata import version

    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "scikit-learn", "polars")}
    return {"processor": processor(), "python": platform.python_version(), **packages}


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())

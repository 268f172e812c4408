"""What differs between the golden tables and those of now, in sentences; and how a renaming is told."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.printed import same_text

Rename = tuple[str, str]  # "HMM.starts", "HMM.initial": of one class; "*.starts": of all; "Parzen", "KDE": a name


class Renames:
    """Intended renamings, old to new; applied to the golden tables before they are compared."""

    def __init__(self, pairs: Iterable[Rename]) -> None:
        self.names: dict[str, str] = {}
        self.members: dict[tuple[str, str], str] = {}
        for old, new in pairs:
            owner, _, member = old.rpartition(".")
            if owner:
                self.members[owner, member] = new.rpartition(".")[2]
            else:
                self.names[old] = new

    def name(self, old: str) -> str:
        """A class or function, as in "Parzen" or "plots.border"; into a namespace: "rand" to "metrics.rand_index"."""
        space, _, last = old.rpartition(".")
        return f"{space}.{self.members[space, last]}" if (space, last) in self.members else self.names.get(old, old)

    def member(self, owner: str, old: str, method: str = "") -> str:
        """A field, parameter, method or attribute of a class, or a parameter of a method, by the old names."""
        owners = ([f"{owner}.{method}", f"*.{method}"] if method else []) + [owner, "*"]
        return next((self.members[one, old] for one in owners if (one, old) in self.members), old)

    def signature(self, owner: str, text: str, method: str = "") -> str:
        """Parameters renamed: words before "=", "," or ")" that are no default."""

        def one(found: re.Match[str]) -> str:
            return self.member(owner, found[0], method)

        return re.sub(r"(?<![\w.'\"=])[A-Za-z_]\w*(?=[=,)])", one, text)

    def api(self, golden: dict[str, Any]) -> dict[str, Any]:
        """The table of names as it should be now."""
        out = {}
        for name, entry in golden.items():
            entry = dict(entry)
            if "signature" in entry:
                entry["signature"] = self.signature(name, entry["signature"])
            if "members" in entry:
                entry["members"] = {
                    self.member(name, m): self.signature(name, s, m) for m, s in entry["members"].items()
                }
            out[self.name(name)] = entry
        return out

    def numbers(self, leaves: dict[str, Any]) -> dict[str, Any]:
        """The leaves of one case under the paths that they should have now."""
        types = {path.removesuffix("@type").rstrip("."): t for path, t in leaves.items() if path.endswith("@type")}
        out = {}
        for path, leaf in leaves.items():
            parts, new = path.split("."), []
            for i, part in enumerate(parts):
                new.append(self.member(types.get(".".join(parts[:i]), ""), part))
            out[".".join(new)] = self.name(leaf) if path.endswith("@type") else leaf
        return out

    def text(self, golden: str) -> str:
        """A text with the names that changed, as whole words."""
        for old, new in self.names.items():
            golden = re.sub(rf"\b{re.escape(old)}\b", new.rpartition(".")[2], golden)
        return golden


# ----------------------------------------------------------------- differences


def tables(golden: dict[str, Any], now: dict[str, Any], what: str) -> Iterator[str]:
    """Entries that are gone, new, or other."""
    for name in golden.keys() - now.keys():
        yield f"{what} {name}: gone"
    for name in now.keys() - golden.keys():
        yield f"{what} {name}: new"
    for name in sorted(golden.keys() & now.keys()):
        a, b = golden[name], now[name]
        if isinstance(a, dict) and isinstance(b, dict):
            yield from tables(a, b, f"{what} {name}:")
        elif a != b:
            yield f"{what} {name}: was {a}, is {b}"


def numbers(golden: dict[str, Any], now: dict[str, Any], case: str, tolerance: float) -> Iterator[str]:
    """Leaves of one case that are gone, new, or further away than the tolerance allows."""
    for path in sorted(golden.keys() - now.keys()):
        yield f"{case}: {path} is gone"
    for path in sorted(now.keys() - golden.keys()):
        yield f"{case}: {path} is new"
    for path in sorted(golden.keys() & now.keys()):
        said = leaf(golden[path], now[path], tolerance)
        if said:
            yield f"{case}: {path} {said}"


def leaf(a: Any, b: Any, tolerance: float) -> str:
    """What differs between two leaves; empty if nothing does.

    Arrays are measured by their largest entry.

    >>> leaf(1.0, 1.0 + 1e-13, 1e-12), leaf(1.0, 1.1, 1e-12)
    ('', 'was 1, is 1.1')
    """
    if isinstance(a, dict) and isinstance(b, dict):
        if a["shape"] != b["shape"]:
            return f"had shape {a['shape']}, has {b['shape']}"
        size = max((abs(v) for v in a["values"] if isinstance(v, float)), default=0.0)
        pairs = list(zip(a["values"], b["values"], strict=True))
        worst = max((_away(u, v, size) for u, v in pairs), default=0.0)
        if any(_away(u, v, abs(u)) > SMALL for u, v in pairs if isinstance(u, float) and abs(u) > TINY * size):
            return "has a small entry that changed by more than a thousandth of itself"
        if "sum" in a and isinstance(a["sum"], float):
            worst = max(worst, _away(a["sum"], b["sum"], size * math.prod(a["shape"])))
        return "" if worst <= tolerance else f"differs by {worst:.1e} of its largest entry (allowed {tolerance:.0e})"
    if isinstance(a, float) and isinstance(b, float):
        return "" if _away(a, b, abs(a)) <= tolerance else f"was {a:.12g}, is {b:.12g}"
    return "" if type(a) is type(b) and a == b else f"was {a!r}, is {b!r}"


SMALL, TINY = 1e-3, 1e-9  # entries below this share of the largest may be rounding of it


def _away(a: Any, b: Any, size: float) -> float:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) / (size or 1.0) if a != b else 0.0
    return 0.0 if type(a) is type(b) and a == b else math.inf


def text(golden: str, now: str) -> str:
    """The first line that differs; numbers may in their last printed digit, or by 1e-7 of themselves."""
    before, after = golden.splitlines(), now.splitlines()
    for i in range(max(len(before), len(after))):
        a, b = (lines[i] if i < len(lines) else "(nothing)" for lines in (before, after))
        if not same_text(b, a, relative=1e-7):
            return f"line {i + 1}\n      was: {a}\n      is:  {b}"
    return ""

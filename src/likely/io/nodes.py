"""Values and plain settings as JSON nodes: what a reader of the file sees, and all that a file can say.

    null, true, 3, 2.5, "text"                      themselves
    [...]                                           a list
    {"tuple": [...]}, {"dict": {...}}               a tuple, a dict with text keys
    {"float": "inf"}                                inf, -inf or nan, which JSON lacks
    {"array": 0, "shape": [2, 2]}                   array number 0 of the file, mentioned once
    {"strings": ["a", "b"], "dtype": "object"}      an array of texts (n,); dtype is "object" or "str"
    {"class": "Gaussian", "mean": ..., ...}         one of the classes in the table, with all its fields
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likely.io.container import DTYPES, LARGEST, MAX_RANK, Refusal, Tensor, short

MAX_DEPTH = 32
MAX_NODES = 100_000  # a tenth of a second of reading; 1 MB of header could hold five times as many
MAX_TEXTS = 4_000_000  # characters of an array of texts, in which each takes as much room as the longest
ODD_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
NATIVE = {dtype.newbyteorder("=") for dtype in DTYPES.values()}
FIELD = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)  # what a field or a setting may be called


class Catalogue(Protocol):
    """The classes that a file may hold: how to take one apart, and how to build it again."""

    def take_apart(self, thing: Any) -> tuple[str, dict[str, Any]] | None:
        """The class's name in files and its named parts; None if the thing is of no class of ours."""
        ...

    def build(self, name: str, parts: dict[str, Any], where: str) -> Any:
        """The thing again; a Refusal if the name is unknown or the parts do not make one."""
        ...


def inside(where: str, name: str) -> str:
    """The place of a part, as one would write it in Python: model_.parts[2].mean."""
    return f"{where}.{name}" if where else name


def proper(text: str, where: str) -> str:
    """The same text, if it can be written as UTF-8: half a surrogate pair cannot."""
    try:
        return text if text.isascii() else text.encode("utf-8").decode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(f"{where} must be proper text", short(text)) from None


# --------------------------------------------------------------------- writing


class Writer:
    """Turns things into nodes and keeps the arrays that the nodes mention."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.arrays: list[NDArray[Any]] = []

    def node(self, x: Any, where: str = "", depth: int = 0) -> Any:
        """The node of one thing; `where` is its place, for messages."""
        if depth > MAX_DEPTH:
            raise Refusal(f"{where} must not be nested deeper than {MAX_DEPTH} levels", remedy="does it hold itself?")
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, np.ndarray):
            return self._array(x, where)
        return _WRITERS.get(type(x), Writer._of_class)(self, x, where, depth)

    def _of_class(self, x: Any, where: str, depth: int) -> dict[str, Any]:
        found = self.catalogue.take_apart(x)
        if found is None:
            raise Refusal(f"{where or 'this'} cannot be saved", _described(x), _remedy(x))
        name, parts = found
        return {"class": name, **{n: self.node(p, inside(where, n), depth + 1) for n, p in parts.items()}}

    def _items(self, xs: Any, where: str, depth: int) -> list[Any]:
        return [self.node(x, f"{where}[{i}]", depth + 1) for i, x in enumerate(xs)]

    def _entries(self, xs: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
        if not all(type(key) is str for key in xs):
            raise Refusal(f"the keys of {where} must be texts", short(list(xs)))
        return {proper(key, where): self.node(x, f"{where}[{short(key)}]", depth + 1) for key, x in xs.items()}

    def _array(self, x: NDArray[Any], where: str) -> dict[str, Any]:
        """Numbers go to the file's arrays, texts into the node."""
        if x.dtype.kind in "OU":
            return _strings(x, where)
        native = x.dtype.newbyteorder("=")
        if native not in NATIVE or x.ndim > MAX_RANK:
            raise Refusal(f"{where} must be an array of {', '.join(sorted(map(str, NATIVE)))}", f"{x.dtype} {x.shape}")
        self.arrays.append(np.asarray(x, dtype=native, order="C"))
        return {"array": len(self.arrays) - 1, "shape": list(x.shape)}

    def _whole(self, x: int, where: str, depth: int) -> int:
        if abs(x) > LARGEST:
            raise Refusal(f"{where} must fit into 64 bits", f"{x.bit_length()} bits")
        return x

    def _real(self, x: float, where: str, depth: int) -> Any:
        return x if math.isfinite(x) else {"float": repr(x)}


_WRITERS: dict[type, Callable[[Writer, Any, str, int], Any]] = {
    type(None): lambda writer, x, where, depth: None,
    bool: lambda writer, x, where, depth: x,
    int: Writer._whole,
    float: Writer._real,
    str: lambda writer, x, where, depth: proper(x, where),
    list: Writer._items,
    tuple: lambda writer, x, where, depth: {"tuple": writer._items(x, where, depth)},
    dict: lambda writer, x, where, depth: {"dict": writer._entries(x, where, depth)},
}


def _strings(x: NDArray[Any], where: str) -> dict[str, Any]:
    if x.ndim != 1 or not all(isinstance(s, str) for s in x):
        raise Refusal(f"{where} must be numbers, or a row of texts", f"objects of shape {x.shape}")
    return {"strings": [proper(str(s), where) for s in x], "dtype": "object" if x.dtype.kind == "O" else "str"}


def _described(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")


def _remedy(x: Any) -> str:
    if isinstance(x, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        return "a generator in mid-stream is no setting, give random_state as a whole number"
    if callable(x):
        return "functions are code, and a file holds none"
    return "a file holds plain settings, arrays, and the classes that likely.files.names() lists"


# --------------------------------------------------------------------- reading


class Reader:
    """Turns nodes back into things: each array is used once, and nothing is left over."""

    def __init__(self, catalogue: Catalogue, arrays: list[NDArray[Any]]) -> None:
        self.catalogue = catalogue
        self.arrays: list[NDArray[Any] | None] = [*arrays]
        self.count = 0

    def whole(self, node: Any) -> Any:
        """The thing that a file holds; every array must have been used."""
        thing = self.thing(node)
        left = [i for i, a in enumerate(self.arrays) if a is not None]
        if left:
            raise Refusal("every array must belong to something", f"{len(left)} that nothing mentions: {short(left)}")
        return thing

    def thing(self, node: Any, where: str = "", depth: int = 0) -> Any:
        """The thing that one node stands for."""
        self.count += 1
        if depth > MAX_DEPTH or self.count > MAX_NODES:
            raise Refusal(f"a file may hold {MAX_NODES} nodes, nested {MAX_DEPTH} levels deep", "more")
        if isinstance(node, dict):
            read = next((read for mark, read in _READERS.items() if mark in node), _unknown)
            return read(self, node, where, depth)
        if isinstance(node, list):
            return self._items(node, where, depth)
        return proper(node, where) if isinstance(node, str) else node

    def _items(self, nodes: Any, where: str, depth: int) -> list[Any]:
        if not isinstance(nodes, list):
            raise Refusal(f"{where} must be a list", short(nodes))
        return [self.thing(n, f"{where}[{i}]", depth + 1) for i, n in enumerate(nodes)]

    def _entries(self, nodes: Any, where: str, depth: int) -> dict[str, Any]:
        if not isinstance(nodes, dict):
            raise Refusal(f"{where} must be a dict", short(nodes))
        return {proper(key, where): self.thing(n, f"{where}[{short(key)}]", depth + 1) for key, n in nodes.items()}

    def _of_class(self, node: dict[str, Any], where: str, depth: int) -> Any:
        parts = dict(node)
        name = parts.pop("class")
        if not isinstance(name, str) or not all(FIELD.fullmatch(n) for n in (name, *parts)):
            raise Refusal(f"{where or 'the content'} must be a class with plain field names", short([name, *parts]))
        built = {n: self.thing(p, inside(where, n), depth + 1) for n, p in parts.items()}
        return self.catalogue.build(name, built, where)

    def _array(self, node: dict[str, Any], where: str, depth: int) -> NDArray[Any]:
        """The array of that number, which is then used up: two values must not share memory a file gives once."""
        i = _only(node, where, "array", "shape")
        if type(i) is not int or not 0 <= i < len(self.arrays):
            raise Refusal(f"{where} must be one of {len(self.arrays)} arrays", short(i))
        array, self.arrays[i] = self.arrays[i], None
        if array is None:
            raise Refusal(f"array {i} must be mentioned once", f"again in {where}")
        if node["shape"] != [*array.shape]:
            raise Refusal(f"{where} must have the shape of array {i}, {array.shape}", short(node["shape"]))
        return array


def _only(node: dict[str, Any], where: str, mark: str, *others: str) -> Any:
    """What stands under the mark; the node must have just these keys."""
    if set(node) != {mark, *others}:
        raise Refusal(f"{where or 'the content'} must have {' and '.join((mark, *others))}", short(list(node)))
    return node[mark]


def _read_strings(reader: Reader, node: dict[str, Any], where: str, depth: int) -> NDArray[Any]:
    strings = _only(node, where, "strings", "dtype")
    if not isinstance(strings, list) or not all(type(s) is str for s in strings):
        raise Refusal(f"{where} must be texts", short(strings))
    if node["dtype"] not in ("object", "str"):
        raise Refusal(f'the dtype of {where} must be "object" or "str"', short(node["dtype"]))
    if len(strings) * max(map(len, strings), default=0) > MAX_TEXTS:
        raise Refusal(f"the texts of {where} must be shorter or fewer", f"{len(strings)}, the longest too long")
    return np.array([proper(s, where) for s in strings], dtype=object if node["dtype"] == "object" else np.str_)


def _read_float(reader: Reader, node: dict[str, Any], where: str, depth: int) -> float:
    name = _only(node, where, "float")
    if not isinstance(name, str) or name not in ODD_FLOATS:
        raise Refusal(f"{where} must be {', '.join(ODD_FLOATS)}", short(name))
    return ODD_FLOATS[name]


def _unknown(reader: Reader, node: dict[str, Any], where: str, depth: int) -> Any:
    raise Refusal(f"{where or 'the content'} must say what it is ({', '.join(_READERS)})", short(list(node)))


_READERS: dict[str, Callable[[Reader, dict[str, Any], str, int], Any]] = {
    "class": Reader._of_class,
    "array": Reader._array,
    "tuple": lambda reader, node, where, depth: tuple(reader._items(_only(node, where, "tuple"), where, depth)),
    "dict": lambda reader, node, where, depth: reader._entries(_only(node, where, "dict"), where, depth),
    "strings": _read_strings,
    "float": _read_float,
}


# ------------------------------------------------------------------ describing


def outline(node: Any, tensors: list[Tensor], depth: int = 0) -> Any:
    """The same tree for the eye: arrays become words, as in "float64 (2, 2)"; nothing is built."""
    if depth > 2 * MAX_DEPTH:
        raise Refusal(f"a file may be nested {MAX_DEPTH} levels deep", "more")
    if isinstance(node, list):
        return [outline(n, tensors, depth + 1) for n in node]
    if not isinstance(node, dict):
        return node
    if "class" not in node and (mark := next((m for m in ("tuple", "dict", "float", "strings") if m in node), "")):
        return outline(node[mark], tensors, depth + 1)
    i = node.get("array")
    if "class" not in node and type(i) is int and 0 <= i < len(tensors):
        return f"{tensors[i].dtype} {tensors[i].shape}"
    return {name: outline(n, tensors, depth + 1) for name, n in node.items()}

"""JSON nodes of values and plain settings: writer and reader of the description in a model file.

- null, true, 3, 2.5, "text": themselves; [...]: a list
- {"tuple": [...]}, {"dict": {...}}: a tuple, a dict with text keys
- {"float": "inf"}: inf, -inf or nan, which JSON lacks
- {"array": 0, "shape": [2, 2]}: array number 0 of the file; each is mentioned once
- {"labels": ["a", "b"], "dtype": "str"}: an array (n,) of texts, or ("object") of texts, numbers and booleans
- {"class": "Gaussian", "mean": ..., ...}: one of the classes in the table, with all its fields
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
MAX_NODES = 30_000  # about 1 MB of header, 30 ms to read
LONGEST = 250_000  # nodes of the longest description: 32 bytes each
MAX_TEXTS = 4_000_000  # characters of an array of strings, in which each takes as much memory as the longest
NATIVE = {dtype.newbyteorder("=") for dtype in DTYPES.values()}
WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float16": "float32"}
ODD_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
LABELS = (str, int, float, bool)
FIELD = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)  # valid names of classes, fields and settings


class Catalog(Protocol):
    """The classes that a file may hold: how to serialize and how to build them."""

    def take_apart(self, thing: Any) -> tuple[str, dict[str, Any]] | None:
        """The class name in files and the named fields; None if the class cannot be saved."""
        ...

    def build(self, name: str, parts: dict[str, Any], where: str) -> Any:
        """The object; a Refusal if the name is unknown or the fields are invalid."""
        ...


class Walk:
    """Tree traversal with the current path, so that errors can name it."""

    def __init__(self, catalog: Catalog, most: int = MAX_NODES) -> None:
        self.catalog = catalog
        self.path: list[str | int] = []
        self.count, self.most = 0, most

    @property
    def where(self) -> str:
        """The path as Python code: model_.components[2].mean."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step[:40]}" for step in self.path]
        return "".join(steps).lstrip(".") or "the content"

    def enter(self, step: str | int) -> None:
        """Descend one level, within the limits of depth and number of nodes."""
        self.path.append(step)
        self.count += 1
        if len(self.path) > MAX_DEPTH or self.count > self.most:
            self.path.clear()
            raise Refusal(f"a file may have {self.most} parts, nested {MAX_DEPTH} levels deep", "more")

    def proper(self, text: str) -> str:
        """The string itself, if it can be encoded as UTF-8 (a lone surrogate cannot)."""
        try:
            return text if text.isascii() else text.encode("utf-8").decode("utf-8")
        except UnicodeEncodeError:
            raise Refusal(f"{self.where} must be proper text", short(text)) from None


# --------------------------------------------------------------------- writing


class Writer(Walk):
    """Converts objects to nodes and collects the arrays that the nodes refer to."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, LONGEST)
        self.arrays: list[NDArray[Any]] = []

    def node(self, x: Any) -> Any:
        """The node of one object."""
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, np.ndarray):
            return self._labels(x) if x.dtype.kind in "OU" else self._array(x)
        write = _WRITERS.get(type(x))
        return write(self, x) if write else self._of_class(x)

    def _part(self, x: Any, step: str | int) -> Any:
        self.enter(step)
        node = self.node(x)
        self.path.pop()
        return node

    def _of_class(self, x: Any) -> dict[str, Any]:
        found = self.catalog.take_apart(x)
        if found is None:
            raise Refusal(f"{self.where} cannot be saved", f"{type(x).__module__}.{type(x).__qualname__}", _remedy(x))
        name, parts = found
        return {"class": name, **{n: self._part(p, n) for n, p in parts.items()}}

    def _items(self, xs: Any) -> list[Any]:
        return [self._part(x, i) for i, x in enumerate(xs)]

    def _entries(self, xs: dict[Any, Any]) -> dict[str, Any]:
        if not all(type(key) is str for key in xs):
            raise Refusal(f"the keys of {self.where} must be texts", short(list(xs)))
        return {self.proper(key): self._part(x, key) for key, x in xs.items()}

    def _array(self, x: NDArray[Any]) -> dict[str, Any]:
        """Numeric arrays go to the file's arrays; dtypes with few bits are widened."""
        native = np.dtype(WIDER.get(x.dtype.name, x.dtype.newbyteorder("=")))
        if native not in NATIVE or x.ndim > MAX_RANK:
            expected = f"{self.where} must be an array of {', '.join(sorted(map(str, NATIVE)))}"
            raise Refusal(expected, f"{x.dtype} {x.shape}")
        self.arrays.append(np.asarray(x, dtype=native, order="C"))
        return {"array": len(self.arrays) - 1, "shape": list(x.shape)}

    def _labels(self, x: NDArray[Any]) -> dict[str, Any]:
        found = [label.item() if isinstance(label, np.generic) else label for label in x.reshape(-1)]
        if x.ndim != 1 or not all(type(label) in LABELS for label in found):
            raise Refusal(
                f"{self.where} must be an array of numbers, or a 1-D array of strings and numbers",
                f"objects of shape {x.shape}",
            )
        return {"labels": [self.node(label) for label in found], "dtype": "object" if x.dtype.kind == "O" else "str"}

    def _integer(self, x: int) -> int:
        if abs(x) > LARGEST:
            raise Refusal(f"{self.where} must fit into 64 bits", f"{x.bit_length()} bits")
        return x


_WRITERS: dict[type, Callable[[Writer, Any], Any]] = {
    type(None): lambda writer, x: None,
    bool: lambda writer, x: x,
    int: Writer._integer,
    float: lambda writer, x: x if math.isfinite(x) else {"float": repr(x)},
    str: Writer.proper,
    list: Writer._items,
    tuple: lambda writer, x: {"tuple": writer._items(x)},
    dict: lambda writer, x: {"dict": writer._entries(x)},
}


def _remedy(x: Any) -> str:
    if isinstance(x, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        return "a random generator is not a setting, pass random_state as an integer"
    if callable(x):
        return "functions are code, and a file holds none"
    return "a file holds plain settings, arrays, and the classes that likely.io.model_files.names() lists"


# --------------------------------------------------------------------- reading


class Reader(Walk):
    """Converts nodes back to objects: each array is used once, and none is left over."""

    def __init__(self, catalog: Catalog, arrays: list[NDArray[Any]], most: int = MAX_NODES) -> None:
        super().__init__(catalog, most)
        self.arrays: list[NDArray[Any] | None] = [*arrays]

    def whole(self, node: Any) -> Any:
        """The object in a file; every array must have been used."""
        thing = self.thing(node)
        left = [i for i, a in enumerate(self.arrays) if a is not None]
        if left:
            raise Refusal("every array must belong to something", f"{len(left)} that nothing mentions: {short(left)}")
        return thing

    def thing(self, node: Any) -> Any:
        """The object of one node."""
        if isinstance(node, dict):
            read = next((read for mark, read in _READERS.items() if mark in node), _unmarked)
            return read(self, node)
        if isinstance(node, list):
            return self._items(node)
        return self.proper(node) if isinstance(node, str) else node

    def _part(self, node: Any, step: str | int) -> Any:
        self.enter(step)
        thing = self.thing(node)
        self.path.pop()
        return thing

    def _items(self, nodes: Any) -> list[Any]:
        if not isinstance(nodes, list):
            raise Refusal(f"{self.where} must be a list", short(nodes))
        return [self._part(n, i) for i, n in enumerate(nodes)]

    def _entries(self, nodes: Any) -> dict[str, Any]:
        if not isinstance(nodes, dict):
            raise Refusal(f"{self.where} must be a dict", short(nodes))
        return {self.proper(key): self._part(n, key) for key, n in nodes.items()}

    def _of_class(self, node: dict[str, Any]) -> Any:
        parts = dict(node)
        name = parts.pop("class")
        if not isinstance(name, str) or not all(FIELD.fullmatch(n) for n in (name, *parts)):
            raise Refusal(f"{self.where} must be a class with plain field names", short([name, *parts]))
        built = {n: self._part(p, n) for n, p in parts.items()}
        return self.catalog.build(name, built, self.where)

    def _array(self, node: dict[str, Any]) -> NDArray[Any]:
        """The array of that number, which can be used only once."""
        i = self.only(node, "array", "shape")
        if type(i) is not int or not 0 <= i < len(self.arrays):
            raise Refusal(f"{self.where} must be one of {len(self.arrays)} arrays", short(i))
        array, self.arrays[i] = self.arrays[i], None
        if array is None:
            raise Refusal(f"array {i} must be mentioned once", f"again in {self.where}")
        if node["shape"] != [*array.shape]:
            raise Refusal(f"{self.where} must have the shape of array {i}, {array.shape}", short(node["shape"]))
        return array

    def _labels(self, node: dict[str, Any]) -> NDArray[Any]:
        found, dtype = self.only(node, "labels", "dtype"), node["dtype"]
        kinds = {"object": LABELS, "str": (str,)}.get(dtype if isinstance(dtype, str) else "")
        if kinds is None or not isinstance(found, list) or not all(type(label) in kinds for label in found):
            raise Refusal(f'{self.where} must be labels with dtype "object" or "str"', short([dtype, found]))
        if dtype == "str" and len(found) * max(map(len, found), default=0) > MAX_TEXTS:
            raise Refusal(f"the texts of {self.where} must be shorter or fewer", f"{len(found)}, and one too long")
        array = np.empty(len(found), dtype=object)
        array[:] = [self.proper(label) if type(label) is str else label for label in found]
        return array if dtype == "object" else array.astype(np.str_)

    def _float(self, node: dict[str, Any]) -> float:
        name = self.only(node, "float")
        if not isinstance(name, str) or name not in ODD_FLOATS:
            raise Refusal(f"{self.where} must be {', '.join(ODD_FLOATS)}", short(name))
        return ODD_FLOATS[name]

    def only(self, node: dict[str, Any], mark: str, *others: str) -> Any:
        """The content under the type key; the node must have exactly these keys."""
        if set(node) != {mark, *others}:
            raise Refusal(f"{self.where} must have {' and '.join((mark, *others))}", short(list(node)))
        return node[mark]


def _unmarked(reader: Reader, node: dict[str, Any]) -> Any:
    raise Refusal(f"{reader.where} must say what it is ({', '.join(_READERS)})", short(list(node)))


_READERS: dict[str, Callable[[Reader, dict[str, Any]], Any]] = {
    "class": Reader._of_class,
    "array": Reader._array,
    "labels": Reader._labels,
    "tuple": lambda reader, node: tuple(reader._items(reader.only(node, "tuple"))),
    "dict": lambda reader, node: reader._entries(reader.only(node, "dict")),
    "float": Reader._float,
}


# ------------------------------------------------------------------ description


def outline(node: Any, tensors: list[Tensor], depth: int = 0) -> Any:
    """The tree for display: arrays become text such as "float64 (2, 2)"; nothing is built."""
    if depth > 2 * MAX_DEPTH:
        raise Refusal(f"a file may be nested {MAX_DEPTH} levels deep", "more")
    if isinstance(node, list):
        return [outline(n, tensors, depth + 1) for n in node]
    if not isinstance(node, dict):
        return node
    mark = next((mark for mark in _READERS if mark in node), "class")
    if mark == "array":
        i = node["array"]
        return f"{tensors[i].dtype} {tensors[i].shape}" if type(i) is int and 0 <= i < len(tensors) else short(i)
    if mark == "class":
        return {name: outline(n, tensors, depth + 1) for name, n in node.items()}
    return outline(node[mark], tensors, depth + 1)

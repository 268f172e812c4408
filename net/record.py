"""What a result holds, as a flat table of plain numbers and words that JSON can keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse

MOST = 240  # entries of one array that are kept; of a larger one these, evenly spread, and its sum

Leaf = Any  # a number, a word, None, or {"shape": [...], "values": [...]}


def flat(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Leaf]]:
    """Every leaf of a value under its path: fields of values, entries of tables, items of lists; nothing private.

    >>> dict(flat({"a": [1.5, "b"], "_c": 3}))
    {'a.0': 1.5, 'a.1': 'b'}
    """
    if depth > 12:
        raise ValueError(f"{path} is nested too deeply")
    kept = _leaf(value)
    if kept is not NotImplemented:
        yield path, kept
        return
    items = _items(value)
    if items is None:
        yield path, f"<{type(value).__name__}>"
        return
    if type(value) not in (list, tuple, dict):
        yield _under(path, "@type"), type(value).__name__
    for name, item in items:
        if not name.startswith("_"):
            yield from flat(item, _under(path, name), depth + 1)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _leaf(value: Any) -> Leaf:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return number(value)
    if scipy.sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubUS":
        return array(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and all(isinstance(v, str) for v in value.flat):
        return array(value.astype(str))
    if isinstance(value, list | tuple) and value and all(type(v) in (int, float, bool) for v in value):
        return array(np.array(value))
    return NotImplemented


def number(value: Any) -> Leaf:
    """A float that JSON can keep: NaN and infinity as words."""
    value = float(value)
    return value if np.isfinite(value) else str(value)


def array(a: np.ndarray) -> Leaf:
    """An array as its shape and its entries; a large one as some of them and the sum."""
    entries = a.ravel()
    out: dict[str, Leaf] = {"shape": list(a.shape)}
    if entries.size > MOST:
        if a.dtype.kind in "fiub":
            out["sum"] = _kept(entries.sum(dtype=float if a.dtype.kind == "f" else int))
        entries = entries[np.linspace(0, entries.size - 1, MOST).astype(int)]
    return {**out, "values": [_kept(v) for v in entries]}


def _kept(v: Any) -> Leaf:
    kind = np.asarray(v).dtype.kind
    return number(v) if kind == "f" else bool(v) if kind == "b" else int(v) if kind in "iu" else str(v)


def _items(value: Any) -> list[tuple[str, Any]] | None:
    if isinstance(value, Mapping):
        return [(str(k), v) for k, v in value.items()]
    if hasattr(value, "_fields"):
        return [(name, getattr(value, name)) for name in value._fields]
    if isinstance(value, list | tuple):
        return [(str(i), v) for i, v in enumerate(value)]
    if dataclasses.is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    return None

"""Model fingerprints: sixteen hexadecimal digits that tie a file to the model it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEEPEST = 40  # maximum depth: deeper nesting (a function that refers to itself) is ignored


def fingerprint(thing: Any) -> str:
    """Sixteen hexadecimal digits from a model's class and all its numbers.

    Values are hashed by their fields, estimators by parameters and fitted attributes, functions by code and closure.

    >>> import likely as lk
    >>> fingerprint(lk.Gaussian([0.0], 1.0)) == fingerprint(lk.Gaussian([0.0], 1.0))
    True
    >>> fingerprint(lk.Gaussian([0.0], 1.0)) == fingerprint(lk.Gaussian([0.0], 2.0))
    False
    """
    digest = blake2b(digest_size=8)
    for part in _hashed_bytes(thing, 0):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def chained_fingerprint(before: str, y: Any) -> str:
    """The running fingerprint of a sequence after appending y; numbers are hashed by value, in any container.

    >>> chained_fingerprint("", 1) == chained_fingerprint("", [1.0]) != chained_fingerprint("", 2)
    True
    """
    return fingerprint([before, _plain(y)])


def _plain(y: Any) -> Any:
    """Numbers as one float64 array; anything else as it is."""
    if isinstance(y, tuple):
        return [_plain(part) for part in y]
    if not isinstance(y, int | float | list | np.ndarray | np.generic) and not hasattr(y, "to_numpy"):
        return y
    try:
        a = np.atleast_1d(np.asarray(y))
    except ValueError:  # lists of different lengths
        return y
    if a.dtype.kind not in "biuf":
        return a.tolist()
    plain = a.astype(np.float64) + 0.0  # no −0
    plain[np.isnan(plain)] = np.nan  # one canonical NaN
    return plain


def _hashed_bytes(x: Any, depth: int) -> Iterator[bytes]:
    if isinstance(x, np.ndarray | np.generic):
        yield from _of_array(np.asarray(x), depth)
    elif x is None or isinstance(x, str | bytes | int | float | complex):
        yield f"{type(x).__name__} {x!r}".encode("utf-8", "surrogatepass")
    elif depth < DEEPEST:
        name, inside = _opened(x)
        yield f"{name} {len(inside)}".encode()
        for key, part in inside:
            yield key.encode("utf-8", "surrogatepass")
            yield from _hashed_bytes(part, depth + 1)


def _of_array(a: NDArray[Any], depth: int) -> Iterator[bytes]:
    yield f"{a.dtype.str} {a.shape}".encode()
    if a.dtype.kind == "O":
        for cell in a.reshape(-1).tolist():
            yield from _hashed_bytes(cell, depth + 1)
    else:
        yield np.ascontiguousarray(a).tobytes()


def _opened(x: Any) -> tuple[str, list[tuple[str, Any]]]:
    """The name of an object's type, and its named parts."""
    if isinstance(x, Mapping):
        return "dict", sorted(((repr(key), part) for key, part in x.items()), key=lambda pair: pair[0])
    if isinstance(x, list | tuple):
        return "list", [("", part) for part in x]
    if isinstance(x, set | frozenset):
        return "set", [(name, None) for name in sorted(map(repr, x))]
    if isinstance(x, FunctionType):
        held = [cell.cell_contents for cell in x.__closure__ or ()]
        return "function", [("code", x.__code__), ("held", held), ("defaults", x.__defaults__)]
    if isinstance(x, CodeType):
        return "code", [("bytes", x.co_code), ("constants", x.co_consts), ("names", x.co_names)]
    return _called(type(x)), _fields(x)


def _called(cls: type) -> str:
    """The name of a class; for our classes without the module, since files may move."""
    ours = cls.__module__.partition(".")[0] == "likely"
    return cls.__qualname__ if ours else f"{cls.__module__}.{cls.__qualname__}"


def _fields(x: Any) -> list[tuple[str, Any]]:
    if is_dataclass(x):
        return [(f.name, getattr(x, f.name)) for f in fields(x) if f.init]
    if hasattr(x, "get_params"):  # an estimator: settings, and what a file would keep
        learned = {name: vars(x)[name] for name in getattr(x, "saved_attributes", vars(x)) if name in vars(x)}
        return sorted({**x.get_params(deep=False), **learned}.items())
    return sorted(getattr(x, "__dict__", {}).items())

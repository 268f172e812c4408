"""Model file container: a JSON header followed by arrays, in the safetensors layout; it cannot contain code.

The layout is that of safetensors: 8 bytes give the length of a JSON header, the header names each array with
its type, shape and offsets, the bytes of the arrays follow contiguously. Our own text is one JSON string in
the header's `__metadata__`, under the key "likely". A description too long for a header (the names of thousands of
columns) is the last array, as the bytes of its JSON, and the note says so: {"note": 12}. The safetensors package writes
the file and can open it; reading is implemented here, because that package does not return the metadata of bytes,
and because the checks here are stricter.
"""

from __future__ import annotations

import json
import math
import reprlib
import zlib
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

KEY = "likely"
MAX_HEADER = 1_000_000  # bytes; safetensors itself would take 100 million
MAX_OBJECTS = 60_000  # lists and objects in a header: 1 MB of them would take 30 MB of memory
MAX_ITEMS = 100_000  # commas in a header: 1 MB of them would take a second
MAX_NOTE = 8_000_000  # bytes of a description in an array
LONG_NOTE = 600_000  # characters from which a description goes into an array: escaped, it could fill the header
MAX_RANK = 8
LARGEST = 2**63 - 1
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "I64": np.dtype("<i8"), "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"), "BOOL": np.dtype("?"),
}  # fmt: skip
FOREIGN = {
    b"PK\x03\x04": "a zip archive (an .npz, or a file of PyTorch)",
    b"\x93NUMPY": "a single NumPy array (.npy)",
    b"\x80": "a stream of Python objects, which could run code",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
}


class Refusal(Exception):
    """The reason why an object cannot be read or written; converted to a ModelFileError that names the file."""

    def __init__(self, expected: str, got: object = None, remedy: str = "") -> None:
        super().__init__(expected, got, remedy)


class Tensor(NamedTuple):
    """Type, shape and offsets of an array in a file, from the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """The header of a file: our description, and the arrays in the order of their numbers."""

    note: dict[str, Any]
    tensors: list[Tensor]


# ------------------------------------------------------------------------ JSON


def parse(text: str) -> Any:
    """Strict JSON: no NaN, infinity, numbers beyond 64 bits, duplicate keys or deep nesting.

    >>> parse('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    objects, items = max(MAX_OBJECTS, len(text) // 32), max(MAX_ITEMS, len(text) // 16)
    if text.count("[") + text.count("{") > objects or text.count(",") > items:
        raise Refusal(f"the header may have {objects} lists and objects and {items} items", "more")
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise Refusal("the header must not be nested so deeply") from None
    except json.JSONDecodeError as error:
        raise Refusal("the header must be JSON", f"{error.msg} at character {error.pos}") from None


def _integer(digits: str) -> int:
    if len(digits) > 18 and (len(digits) > 20 or abs(int(digits)) > LARGEST):
        raise Refusal("integers must fit into 64 bits", short(digits))
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > 40 or not math.isfinite(float(digits)):
        raise Refusal("numbers must be finite", short(digits))
    return float(digits)


def _no_constant(name: str) -> NoReturn:
    raise Refusal("the header must be JSON", name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal("names must be unique", short([name for name, _ in pairs]))
    return found


_DECODER = json.JSONDecoder(
    object_pairs_hook=_once, parse_int=_integer, parse_float=_real, parse_constant=_no_constant, strict=True
)


def short(x: object) -> str:
    """An untrusted object for an error message: quoted and truncated."""
    return _REPR.repr(x)


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxlist, _REPR.maxdict, _REPR.maxstring, _REPR.maxother = 2, 8, 4, 60, 60


# --------------------------------------------------------------------- writing


def pack(note: dict[str, Any], arrays: Iterable[NDArray[Any]]) -> bytes:
    """The bytes of a file with this description and these arrays."""
    from safetensors.numpy import save

    text = json.dumps(note, allow_nan=False, ensure_ascii=False)
    data = save({str(i): a for i, a in enumerate(arrays)}, {KEY: text})
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER:
        remedy = "arrays may have any size, but names and settings must be fewer"
        raise Refusal(f"the header may take {MAX_HEADER} bytes", length, remedy)
    return data


def with_note(content: dict[str, Any], arrays: list[NDArray[Any]]) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The description as stored in the header: itself, or if it is long, the number of the array that holds it."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False)
    if len(text) <= LONG_NOTE:
        return content, arrays
    raw = text.encode("utf-8")
    if len(raw) > MAX_NOTE:
        remedy = "arrays may have any size, but names and settings must be fewer"
        raise Refusal(f"the description of a model may take {MAX_NOTE} bytes", len(raw), remedy)
    return {"note": len(arrays)}, [*arrays, np.frombuffer(raw, np.uint8)]


def note_of(content: dict[str, Any], arrays: list[NDArray[Any]]) -> dict[str, Any]:
    """The description in the last array."""
    array = arrays[-1] if arrays else np.empty(0)
    if content != {"note": len(arrays) - 1} or array.dtype != np.uint8 or array.ndim != 1 or array.size > MAX_NOTE:
        raise Refusal(f"a note must be the last array, of at most {MAX_NOTE} bytes", short(content))
    return _object(parse(_text(array.tobytes())), "the note")


def checksum(arrays: Iterable[NDArray[Any]]) -> int:
    """CRC-32 of the arrays' bytes, in order: it detects damage, not manipulation."""
    crc = 0
    for a in arrays:
        crc = zlib.crc32(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data, crc)
    return crc


# --------------------------------------------------------------------- reading


def header(stream: BinaryIO, size: int) -> Header:
    """Read the header of a file of the given size, and check it completely before any array is read."""
    start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, MAX_HEADER):
        raise Refusal("this is not a model file, or it is truncated", _looks_like(start, size, length))
    text = _text(stream.read(length))
    if not text.startswith("{"):
        raise Refusal("this is not a model file: its header must be a JSON object", short(text[:20]))
    content = _object(parse(text), "the header")
    note = _note(content.pop("__metadata__", None))
    return Header(note, _tensors(content, size - 8 - length))


def _looks_like(start: bytes, size: int, length: int) -> str:
    if size == 0:
        return "an empty file"
    for mark, what in FOREIGN.items():
        if start.startswith(mark):
            return what
    if start.isascii() and start.decode("ascii").isprintable():
        return f"text that begins with {start.decode('ascii')!r}"
    if MAX_HEADER < length <= size - 8:
        return f"a header of {length} bytes where {MAX_HEADER} are allowed"
    return f"{size} bytes"


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("this is not a model file: its header must be text") from None


def _note(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, dict) or not isinstance(metadata.get(KEY), str):
        raise Refusal("this safetensors file holds no model of likely", remedy="open it with the tool that wrote it")
    if len(metadata) > 1:
        raise Refusal(f"the metadata must hold {KEY!r} only", short(list(metadata)))
    return _object(parse(metadata[KEY]), "the note")


def _object(x: Any, what: str) -> dict[str, Any]:
    if not isinstance(x, dict):
        raise Refusal(f"{what} must be a JSON object", type(x).__name__)
    return x


def _tensors(content: dict[str, Any], size: int) -> list[Tensor]:
    """The arrays in the order of their numbers; together they must fill the rest of the file."""
    if set(content) != {str(i) for i in range(len(content))}:
        raise Refusal("arrays must be numbered from 0", short(list(content)))
    tensors = [_tensor(content[str(i)], str(i), size) for i in range(len(content))]
    end = 0
    for tensor in sorted(tensors, key=lambda t: (t.start, t.stop)):
        if tensor.start != end:
            raise Refusal("arrays must be contiguous and not overlap", f"{tensor.start} after {end}")
        end = tensor.stop
    if end != size:
        raise Refusal(f"the arrays must take {end} bytes", size, "the file is truncated or has trailing data")
    return tensors


def _tensor(entry: Any, name: str, size: int) -> Tensor:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise Refusal(f"array {name} must have dtype, shape and data_offsets", short(entry))
    shape, place = entry["shape"], entry["data_offsets"]
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise Refusal(f"array {name} must be one of {', '.join(DTYPES)}", short(entry["dtype"]))
    if not _sizes(shape, size) or len(shape) > MAX_RANK or not _sizes(place, size) or len(place) != 2:
        expected = f"array {name} must have a shape and a place within the file"
        raise Refusal(expected, f"{short(shape)} at {short(place)} of {size} bytes", "the file is damaged or truncated")
    if math.prod(shape) * dtype.itemsize != place[1] - place[0]:
        raise Refusal(f"array {name} of shape {tuple(shape)} must have another number of bytes", place[1] - place[0])
    return Tensor(dtype, tuple(shape), place[0], place[1])


def _sizes(x: Any, most: int) -> bool:
    return isinstance(x, list) and all(type(n) is int and 0 <= n <= most for n in x)


def arrays(stream: BinaryIO, tensors: list[Tensor]) -> list[NDArray[Any]]:
    """Read the arrays that follow the header, each into its own memory."""
    found: dict[int, NDArray[Any]] = {}
    for i in sorted(range(len(tensors)), key=lambda i: (tensors[i].start, tensors[i].stop)):
        found[i] = _filled(stream, tensors[i], i)
    return [found[i] for i in range(len(tensors))]


def _filled(stream: BinaryIO, tensor: Tensor, i: int) -> NDArray[Any]:
    try:
        array = np.empty(tensor.shape, tensor.dtype)
    except MemoryError:
        raise Refusal(f"array {i} needs {tensor.stop - tensor.start} bytes of memory", "less") from None
    raw = array.reshape(-1).view(np.uint8)
    if stream.readinto(raw.data) != raw.size:  # type: ignore[attr-defined]
        raise Refusal(f"array {i} must be complete", "the end of the file")
    if array.dtype == np.bool_ and raw.size and raw.max() > 1:
        raise Refusal(f"array {i} must hold bytes 0 and 1, for it is boolean", int(raw.max()))
    return array

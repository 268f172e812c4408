"""Model files: `save` and `load` of values and estimators, bitwise exact and safe for untrusted files.

A file holds arrays and a description, never code: the class it names is looked up in `io.registry`, its fields are
checked (`io.schema`), and the class's own constructor has the last word.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, BinaryIO

from likely._version import __version__
from likely.core.errors import ModelFileError, sentence, unread

FORMAT = 2  # format 1 had other names of classes and fields, and is an error

Path = str | os.PathLike[str]
ROUTINES = (FunctionType, BuiltinFunctionType, MethodType, partial)


# ---------------------------------------------------------------------- save and load


def save(thing: Any, path: Path) -> None:
    """Write a value or an estimator to a file.

    The file is written atomically: a temporary file is written, synced to disk and renamed, so that neither a crash
    nor a full disk can leave an incomplete model. (A process that is killed leaves the old model, and a file
    `.likely-….tmp` in the same folder.)

    Parameters
    ----------
    thing : value or estimator
        What to save.
    path : str or path
        The file; its suffix is .likely.

    See Also
    --------
    load : Read a model file.

    Examples
    --------
    >>> import likely as lk, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "g.likely")
    >>> lk.save(lk.Gaussian([0.0, 1.0], [2.0, 3.0]), path)
    >>> lk.load(path)
    Gaussian(mean=[0.0, 1.0], covariance=[2.0, 3.0], kind='diagonal')
    """
    from likely.io.atomic_write import whole_file

    with _speaking_of(path, "written"):
        data = _packed(thing)
        with whole_file(path) as stream:
            stream.write(data)


def load(path: Path) -> Any:
    """Read a model file; it gives the same bits, hence the same scores, as what was saved.

    An untrusted file is safe to open: any defect raises a ModelFileError.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    value or estimator
        What was saved.

    See Also
    --------
    save : Write a model file.

    Examples
    --------
    >>> import likely as lk, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "g.likely")
    >>> lk.save(lk.Gaussian([0.0], 1.0), path)
    >>> lk.load(path).log_prob([[0.5]]).round(4)
    array([-1.0439])
    """
    with _speaking_of(path), _opened(path) as (stream, size):
        return _thing(stream, size)


def describe(path: Path) -> dict[str, Any]:
    """The description in a model file, without building the model or reading its arrays.

    >>> import likely as lk, tempfile, os
    >>> from likely.io.model_files import describe
    >>> path = os.path.join(tempfile.mkdtemp(), "g.likely")
    >>> lk.save(lk.Gaussian([0.0, 1.0], [2.0, 3.0]), path)
    >>> describe(path)["content"]
    {'class': 'Gaussian', 'mean': 'float64 (2,)', 'covariance': 'float64 (2,)', 'kind': 'diagonal'}
    """
    with _speaking_of(path), _opened(path) as (stream, size):
        return _outline(stream, size)


def dumps(thing: Any) -> bytes:
    """The bytes that `save` would write.

    >>> import likely as lk
    >>> from likely.io.model_files import dumps, loads
    >>> loads(dumps(lk.Gaussian([0.0], 1.0)))
    Gaussian(mean=[0.0], covariance=1.0, kind='spherical')
    """
    with _speaking_of("model file"):
        return _packed(thing)


def loads(data: bytes) -> Any:
    """The object of these bytes."""
    with _speaking_of("model file"):
        return _thing(BytesIO(data), len(data))


def names() -> list[str]:
    """The classes that can be saved."""
    from likely.io import registry

    return registry.storable()


# ------------------------------------------------------------------- errors and opening


@contextmanager
def _speaking_of(path: Path, done: str = "read") -> Iterator[None]:
    """Convert refusals and system errors to one message that names the file."""
    from likely.io.atomic_write import REMEDIES
    from likely.io.container import Refusal

    whose = os.fsdecode(path)
    try:
        yield
    except Refusal as refusal:
        raise ModelFileError(sentence(whose, *refusal.args)) from refusal.__cause__
    except OSError as error:
        if done == "read" and isinstance(error, FileNotFoundError):
            raise ModelFileError(unread(whose, error)) from error
        remedy, got = REMEDIES.get(error.errno or 0, ""), error.strerror or "a system error"
        raise ModelFileError(sentence(whose, f"the file cannot be {done}", got, remedy)) from error


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A file open for reading, and its size; folders, pipes and devices are errors."""
    from likely.io.atomic_write import real
    from likely.io.container import Refusal

    kind = os.stat(real(path)).st_mode
    if not stat.S_ISREG(kind):
        raise Refusal("this must be a file", "a folder" if stat.S_ISDIR(kind) else "something else")
    with open(real(path), "rb") as stream:
        yield stream, os.fstat(stream.fileno()).st_size


# --------------------------------------------------------------- objects ↔ bytes


def _packed(thing: Any) -> bytes:
    """The bytes of a file; they are read back once, so that only loadable files are written."""
    from likely.io import container, json_nodes, schema

    if schema.take_apart(thing) is None:
        raise container.Refusal(*_no_file_for(thing))
    writer = json_nodes.Writer(schema)
    content, arrays = container.with_note(writer.node(thing), writer.arrays)
    note = {"format": FORMAT, "likely": __version__, "crc": container.checksum(arrays), "content": content}
    data = container.pack(note, arrays)
    _thing(BytesIO(data), len(data))
    return data


def _no_file_for(thing: Any) -> tuple[str, str, str]:
    """Expected, got and remedy for objects that cannot be saved."""
    name = type(thing).__name__
    if not isinstance(thing, type) and _holds_functions(thing):
        expected = "a file holds numbers and no code, and this object consists of functions"
        return expected, name, "save the belief, from which filtering resumes exactly, and build the model in code"
    return "only values and estimators of likely can be saved", name, "likely.io.model_files.names() lists them"


def _holds_functions(thing: Any, deep: int = 3) -> bool:
    """Whether a record, or a record in it, has functions among its fields."""
    parts = [getattr(thing, f.name) for f in fields(thing)] if is_dataclass(thing) else []
    return any(isinstance(part, ROUTINES) or (deep > 0 and _holds_functions(part, deep - 1)) for part in parts)


def _thing(stream: BinaryIO, size: int) -> Any:
    from likely.io import container, json_nodes, schema

    header = container.header(stream, size)
    content = _content(header.note)
    arrays = container.arrays(stream, header.tensors)
    reader = json_nodes.Reader(schema, arrays)
    if "note" in content:
        content, size = _of_class(container.note_of(content, arrays)), arrays[-1].size
        reader = json_nodes.Reader(schema, arrays[:-1], max(json_nodes.MAX_NODES, size // 32))
    try:
        thing = reader.whole(content)
    except container.Refusal as refusal:
        expected, got, remedy = refusal.args
        raise container.Refusal(expected, got, remedy or _other_version(header.note)) from refusal.__cause__
    if header.note.get("crc", checked := container.checksum(arrays)) != checked:
        raise container.Refusal("the arrays must be as they were written", "another checksum", "the file is damaged")
    return thing


def _outline(stream: BinaryIO, size: int) -> dict[str, Any]:
    from likely.io import container, json_nodes

    note, tensors = container.header(stream, size)
    content = _content(note)
    if "note" in content:  # it follows the other arrays
        content = _of_class(container.note_of(content, container.arrays(stream, tensors)))
    return {**note, "content": json_nodes.outline(content, tensors)}


def _content(note: dict[str, Any]) -> Any:
    """The node of the object, if the format is known."""
    from likely.io.container import Refusal, short

    number, version = note.get("format"), note.get("likely")
    if type(number) is not int or number < 1 or not isinstance(version, str) or len(version) > 60:
        raise Refusal("the note must begin with a format and a version", short([number, version]))
    if number < FORMAT:
        expected = f"likely {__version__} reads files of format {FORMAT}"
        raise Refusal(expected, f"format {number}, written by likely {version!a}", "fit the model again and save it")
    if number > FORMAT:
        expected = f"likely {__version__} reads files up to format {FORMAT}"
        remedy = f"install likely {version!a} or later, or save the model again with an older one"
        raise Refusal(expected, f"format {number}, written by likely {version!a}", remedy)
    if set(note) - {"crc"} != {"format", "likely", "content"}:
        raise Refusal("the note must have a format, a version and a content of some class", short(list(note)))
    content = note["content"]
    return content if isinstance(content, dict) and "note" in content else _of_class(content)


def _of_class(content: Any) -> dict[str, Any]:
    """The description of an object, which must begin with its class."""
    from likely.io.container import Refusal, short

    if not isinstance(content, dict) or "class" not in content:
        expected = "the note must have a format, a version and a content of some class"
        raise Refusal(expected, short(list(content) if isinstance(content, dict) else content))
    return content


def _other_version(note: dict[str, Any]) -> str:
    same = note["likely"] == __version__
    return "" if same else f"the file was written by likely {note['likely']!a}, this is {__version__}"

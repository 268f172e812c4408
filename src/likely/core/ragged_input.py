"""Conversion of sequences in any form (lists, arrays, data frames) to concatenated frames and lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from numbers import Number, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Index, in_memory, is_gap
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.time_index import warn_of_uneven

Frames = Any  # an array (T, …), or Columns of T rows
WHOSE = "Ragged"
NUMBERS, WORDS = "biuf", "USO"


class Joined(NamedTuple):
    """Concatenated sequences."""

    frames: Frames  # (T, …)
    lengths: Index  # (n,): number of frames of each
    names: tuple[str, ...] | None = None  # column names of frames given as data frames


def frames_of(x: Any, lengths: Any = None) -> Joined:
    """Validated sequences: concatenated frames, the number of frames of each sequence, and column names.

    A list holds sequences, an array (n, T, D) too; anything with fewer axes is one sequence, or is split by `lengths`.

    >>> frames, lengths, _ = frames_of([[1.0, 2.0, 3.0], [4.0]])
    >>> frames.tolist(), lengths.tolist()
    ([1.0, 2.0, 3.0, 4.0], [3, 1])
    """
    x = in_memory(x)
    _refuse_no_sequences(x)
    if is_list_of_sequences(x):
        if lengths is not None:
            expected = "lengths split one long array, and these are sequences already"
            raise ShapeError(sentence(WHOSE, expected, f"a list of {len(x)}", "leave lengths out"))
        return from_iterable(x, _shallow)
    whole = frames(x, "what is given")
    if getattr(whole, "ndim", 1) == 3:
        return Joined(*_stacked(whole, lengths))
    whole = _shallow(whole, "what is given")
    counts = np.array([len(whole)], dtype=np.intp) if lengths is None else _checked_sum(lengths, len(whole))
    if hasattr(x, "index") and hasattr(x, "iloc"):
        warn_of_uneven(_pieces(x, counts), WHOSE)
    return Joined(whole, counts, usable_names(_column_labels(x)))


def joined(parts: Sequence[Frames]) -> tuple[Frames, Index]:
    """Concatenated frames of several sequences; empty sequences do not determine the shape of a frame."""
    lengths = np.fromiter((len(part) for part in parts), dtype=np.intp, count=len(parts))
    telling = np.flatnonzero(lengths).tolist() or [*range(len(parts))][:1]
    if not telling:
        return np.empty(0), lengths
    _refuse_unlike(parts, telling)
    return _end_to_end([parts[i] for i in telling]), lengths


def from_iterable(sequences: Iterable[Any], check: Callable[[Frames, str], Frames] | None = None) -> Joined:
    """A list of sequences, each validated, concatenated; arrays of one numeric dtype take a fast path."""
    given = list(sequences)
    if given and all(type(s) is np.ndarray and s.ndim in (1, 2) and s.dtype.kind in NUMBERS for s in given):
        if len({(s.dtype, s.shape[1:]) for s in given}) == 1:
            return Joined(np.concatenate(given), np.fromiter(map(len, given), dtype=np.intp, count=len(given)))
    given = [in_memory(s) for s in given]
    parts = [frames(s, f"sequence {i}") for i, s in enumerate(given)]
    names = usable_names(_same_labels(given))
    warn_of_uneven(((s, partial("sequence {}".format, i)) for i, s in enumerate(given)), WHOSE)
    whole, lengths = joined([check(part, f"sequence {i}") for i, part in enumerate(parts)] if check else parts)
    return Joined(whole, lengths, names)


def frames(s: Any, which: str) -> Frames:
    """One sequence as an array (T, …), or as Columns where frames have named parts of different types."""
    if isinstance(s, Columns):
        return s
    if isinstance(s, Mapping):
        return Columns.of(s)
    if hasattr(s, "columns"):
        return side_by_side({str(name): cells(s[name]) for name in s.columns})
    a = s if isinstance(s, np.ndarray) else _as_array(s, which)
    if a.dtype.kind == "c":
        raise DataError(sentence(WHOSE, f"{which} must hold real numbers, categories or strings", "complex numbers"))
    if a.ndim == 0:
        raise ShapeError(sentence(WHOSE, f"{which} must be an array of frames, (T,) or (T, D)", _named(s)))
    return a


def side_by_side(columns: Mapping[Any, Any]) -> Frames:
    """Columns as frames: a single one is (T,), several numeric ones are (T, D), anything else stays named."""
    parts = list(columns.values())
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(p, np.ndarray) and p.ndim == 1 and p.dtype.kind in NUMBERS for p in parts):
        return np.stack(parts, axis=1)
    return Columns({str(name): part for name, part in columns.items()})


def cells(column: Any) -> NDArray[Any]:
    """A column of a table as an array: numbers with NaN where missing, strings as objects with None.

    >>> cells([1, None, 2.5]).tolist(), cells(["a", None]).tolist()
    ([1.0, nan, 2.5], ['a', None])
    """
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:
        return np.asarray(column, dtype="datetime64[ns]")  # pandas: in UTC
    a = column.to_numpy() if hasattr(column, "to_numpy") else column
    if not isinstance(a, np.ndarray):
        a = np.array(a, dtype=object) if isinstance(a, list | tuple) else np.asarray(a)
    return _by_type(a) if a.dtype.kind in WORDS else a


# ----------------------------------------------------------------- names of columns


def _column_labels(s: Any) -> tuple[Any, ...] | None:
    """The column names of a data frame; None for anything else."""
    plain = isinstance(s, Columns | Mapping | np.ndarray) or not hasattr(s, "columns")
    return None if plain else tuple(s.columns)


def _same_labels(given: list[Any]) -> tuple[Any, ...] | None:
    """The column names shared by all sequences, in one order; None where some have no names."""
    labels = {i: _column_labels(s) for i, s in enumerate(given) if hasattr(s, "__len__") and len(s)}
    named = {i: names for i, names in labels.items() if names is not None}
    first = next(iter(named), 0)
    for i, names in named.items():
        if names != named[first]:
            expected = f"sequence {i} must have the columns {_listed(named[first])}, as sequence {first} has"
            raise ShapeError(sentence(WHOSE, expected, _listed(names), "select and order them in the same way"))
    return named[first] if named and len(named) == len(labels) else None


def usable_names(labels: tuple[Any, ...] | None) -> tuple[str, ...] | None:
    """Column names if they are strings; integer labels are ignored."""
    return labels if labels and all(isinstance(name, str) for name in labels) else None


def _listed(labels: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, labels[:8])) + (" …" if len(labels) > 8 else "")


def _pieces(x: Any, lengths: Index) -> Iterator[tuple[Any, Callable[[], str]]]:
    """Each sequence of a table split by lengths, and its name in messages."""
    if len(lengths) == 1:
        yield x, lambda: "the series"
        return
    for i, end in enumerate(np.cumsum(lengths).tolist()):
        yield x.iloc[end - int(lengths[i]) : end], partial("sequence {}".format, i)


# ----------------------------------------------------------------- one sequence


def _as_array(s: Any, which: str) -> NDArray[Any]:
    """A list, tuple, range or series as an array; numbers and missing values among strings stay what they are."""
    if hasattr(s, "to_numpy"):
        return cells(s)
    _refuse_text(s, which)
    if not isinstance(s, list | tuple | range) and not hasattr(s, "__array__"):
        if isinstance(s, Iterable) or hasattr(s, "tocsr"):
            got, remedy = _named(s), "pass an array or a list"
            raise DataError(sentence(WHOSE, f"{which} must be an array or a list of frames", got, remedy))
    try:
        a = np.asarray(s)
    except ValueError as error:
        expected = f"{which} must have frames of equal length"
        raise ShapeError(
            sentence(WHOSE, expected, "rows of different lengths", "use the same number of entries in every frame")
        ) from error
    if a.dtype.kind in WORDS and isinstance(s, list | tuple):
        return _by_type(np.asarray(s, dtype=object), a)
    return a


def _by_type(a: NDArray[Any], words: NDArray[Any] | None = None) -> NDArray[Any]:
    """Objects that are all numbers as float64, all strings as `words` if given; missing values become NaN or None."""
    flat = a.ravel().tolist()
    if words is not None and all(isinstance(c, str) for c in flat):
        return words
    gap = np.fromiter(map(is_gap, flat), dtype=bool, count=len(flat))
    present = [c for c, missing in zip(flat, gap.tolist(), strict=True) if not missing]
    out = np.full(len(flat), None if present else np.nan, dtype=object if present else float)
    if all(isinstance(c, Real | Decimal) for c in present):
        out = np.full(len(flat), np.nan)
    out[~gap] = present
    return out.reshape(a.shape)


def _shallow(a: Frames, which: str) -> Frames:
    """Raise an error unless a frame is a scalar or a vector."""
    if getattr(a, "ndim", 1) > 2:
        remedy = "pass a list of arrays (T, D), with deeper axes flattened"
        raise ShapeError(sentence(WHOSE, f"{which} must have shape (T,) or (T, D)", a.shape, remedy))
    return a


# --------------------------------------------------------------------- many


def is_list_of_sequences(x: Any) -> bool:
    """Whether x is a list or object array of sequences; a list of plain numbers is one sequence."""
    if isinstance(x, np.ndarray):
        return x.dtype == object and x.ndim == 1 and len(x) > 0 and _is_sequence(x[0])
    if not isinstance(x, list | tuple) or not all(isinstance(s, Number | str) or is_gap(s) for s in x):
        return isinstance(x, list | tuple)
    words = [s for s in x if isinstance(s, str)]
    if words:
        remedy = "pass [x] for one sequence of strings, [list(s) for s in x] for sequences of letters"
        raise DataError(sentence(WHOSE, "a list must hold sequences", f"texts such as {words[0][:20]!r}", remedy))
    return False


def _is_sequence(s: Any) -> bool:
    return hasattr(s, "__len__") and not isinstance(s, str | bytes) and getattr(s, "shape", None) != ()


def _refuse_no_sequences(x: Any) -> None:
    if isinstance(x, Iterator):
        expected = "sequences must be re-iterable: learning passes over them more than once"
        raise DataError(sentence(WHOSE, expected, "an iterator", "pass list(x)"))
    _refuse_text(x, "what is given")
    if isinstance(x, list | tuple) and not x:
        raise DataError(sentence(WHOSE, "at least one sequence is needed", "an empty list"))


def _refuse_text(s: Any, which: str) -> None:
    if isinstance(s, str | bytes):
        expected = f"{which} must be an array or a list of frames"
        remedy = "list(text) gives letters, text.split() words"
        raise DataError(sentence(WHOSE, expected, f"the text {s[:20]!r}", remedy))


def _refuse_unlike(parts: Sequence[Frames], telling: list[int]) -> None:
    """Raise an error unless all sequences have frames of the same form as the first one."""
    first = telling[0]
    wanted = _form(parts[first])
    for i in telling:
        if _form(parts[i]) != wanted:
            expected = f"sequence {i} must have frames of {_form_text(wanted)}, as sequence {first} has"
            raise ShapeError(sentence(WHOSE, expected, _form_text(_form(parts[i]))))


def _form(part: Frames) -> tuple[Any, ...]:
    """The form that frames must share: the names of their parts, or their shape."""
    return tuple(part) if isinstance(part, Columns) else part.shape[1:]


def _form_text(form: tuple[Any, ...]) -> str:
    return f"parts {', '.join(form)}" if form and isinstance(form[0], str) else f"shape {form}"


def _end_to_end(parts: list[Frames]) -> Frames:
    if isinstance(parts[0], Columns):
        return Columns({name: _end_to_end([p.parts[name] for p in parts]) for name in parts[0]})
    kinds = {part.dtype.kind for part in parts}
    if kinds & set(WORDS) and len(kinds) > 1:  # strings and numbers: keep both as objects
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


# ------------------------------------------------------------------- lengths


def _stacked(a: NDArray[Any], lengths: Any) -> tuple[Frames, Index]:
    """n sequences in an array (n, T, D): all T frames of each, or the first `lengths` of them, followed by padding."""
    n, T, D = a.shape
    if lengths is None:
        return a.reshape(n * T, D), np.full(n, T, dtype=np.intp)
    count = _checked_lengths(lengths)
    if len(count) != n or (count > T).any():
        expected = f"lengths of sequences in an array {a.shape} must be {n} numbers up to {T}"
        raise ShapeError(sentence(WHOSE, expected, _list(count)))
    return a[np.arange(T) < count[:, None]], count


def _checked_sum(lengths: Any, frames: int) -> Index:
    count = _checked_lengths(lengths)
    if count.sum() != frames:
        expected = f"lengths must add up to the number of frames, {frames}"
        raise ShapeError(sentence(WHOSE, expected, f"{count.sum()} from {_list(count)}"))
    return count


def _checked_lengths(lengths: Any) -> Index:
    count = np.asarray(lengths)
    if count.ndim != 1 or not len(count) or count.dtype.kind not in "iuf" or not (count == np.floor(count)).all():
        raise ShapeError(sentence(WHOSE, "lengths must be integers, one per sequence", _list(count)))
    if (count < 0).any():
        raise ShapeError(sentence(WHOSE, "lengths must not be negative", _list(count)))
    return count.astype(np.intp)


def _list(a: NDArray[Any]) -> str:
    shown = np.ravel(a)[:5].tolist()
    return f"[{', '.join(map(str, shown))}{', …' if a.size > 5 else ''}]"


def _named(s: Any) -> str:
    return f"the number {s}" if isinstance(s, Real) else f"an object of type {type(s).__name__}"

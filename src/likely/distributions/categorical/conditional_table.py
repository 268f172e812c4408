"""Parsing of conditional probability tables p(new | given) from mappings and arrays, with errors by row."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, numbers
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.distributions.categorical.categorical import known_levels

SUM_TO_ONE = 1e-9


def distribution_of(name: str, distribution: Any) -> tuple[Array, NDArray[Any]]:
    """Probabilities and levels of one variable from a mapping."""
    if not isinstance(distribution, Mapping) or not distribution:
        expected = f"variable {name} needs a mapping from levels to probabilities"
        raise DataError(
            sentence("ProbabilityTable", expected, type(distribution).__name__, f'{name}={{"a": 0.3, "b": 0.7}}')
        )
    probs = numbers(list(distribution.values()), "ProbabilityTable")
    return _sound(probs, f"the probabilities of {name}"), levels_of(list(distribution), len(distribution), name)


def _sound(probs: Array, what: str) -> Array:
    """Check that rows along the last axis are distributions."""
    if not np.isfinite(probs).all() or (probs < 0).any():
        raise DomainError(sentence("ProbabilityTable", f"{what} must be finite and not negative", probs.tolist()))
    sums = float(probs.sum())
    if abs(sums - 1) > SUM_TO_ONE:
        raise DomainError(sentence("ProbabilityTable", f"{what} must sum to 1", f"{sums:.12g}", "correct one of them"))
    return probs


def levels_of(given: Any, size: int, name: str) -> NDArray[Any]:
    """The levels of a variable, checked; integers from 0 where none are given."""
    levels = known_levels(given, size, f"ProbabilityTable ({name})")
    return np.arange(size) if levels is None else levels


def conditional(
    rows: Any, levels: Any, name: str, given: list[NDArray[Any]], names: list[str]
) -> tuple[Array, NDArray[Any]]:
    """p(name | given) as an array with the new variable last, and its levels."""
    if not isinstance(rows, Mapping):
        return _conditional_array(rows, levels, name, [len(g) for g in given], names)
    if not given:
        return distribution_of(name, rows)
    first: Any = next(iter(rows.values()), {})
    found = list(first) if isinstance(first, Mapping) and levels is None else list(levels or ())
    keys = {_key(key): row for key, row in rows.items()}
    cells = list(product(*(g.tolist() for g in given)))
    unknown = [key for key in keys if key not in set(cells)]
    if unknown:
        got, close = _shown(unknown[0]), did_you_mean([_shown(unknown[0])], [_shown(c) for c in cells])
        raise DomainError(sentence("ProbabilityTable.times", f"rows must be levels of {', '.join(names)}", got, close))
    table = np.array([_row(keys, cell, found, name) for cell in cells])
    return table.reshape([*(len(g) for g in given), len(found)]), levels_of(found, len(found), name)


def _conditional_array(
    rows: Any, levels: Any, name: str, sizes: list[int], names: list[str]
) -> tuple[Array, NDArray[Any]]:
    table = numbers(rows, "ProbabilityTable.times")
    if table.ndim != len(sizes) + 1 or list(table.shape[:-1]) != sizes or not table.shape[-1]:
        expected = f"rows must have shape ({', '.join(map(str, [*sizes, f'levels of {name}']))})"
        raise ShapeError(sentence("ProbabilityTable.times", expected, table.shape))
    bad = np.argwhere(~(np.abs(table.sum(axis=-1) - 1) <= SUM_TO_ONE) | (table < 0).any(axis=-1))
    if len(bad):
        where = ", ".join(f"{n} number {i}" for n, i in zip(names, bad[0], strict=True))
        expected = f"each row must be probabilities of {name} that sum to 1"
        raise DomainError(sentence("ProbabilityTable.times", expected, f"{table[tuple(bad[0])].tolist()} at {where}"))
    return table, levels_of(levels, table.shape[-1], name)


def _row(keys: Mapping[Any, Any], cell: tuple[Any, ...], found: list[Any], name: str) -> Array:
    """The distribution of a new variable at one combination of given levels."""
    row = keys.get(cell)
    if not isinstance(row, Mapping) or set(row) != set(found):
        got = f"nothing for {_shown(cell)}" if row is None else f"{row!r} for {_shown(cell)}"
        expected = f"each row must give a probability to every level {found} of {name}"
        raise DomainError(sentence("ProbabilityTable.times", expected, got))
    return _sound(numbers([row[level] for level in found], "ProbabilityTable.times"), f"row {_shown(cell)} of {name}")


def _key(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _shown(cell: Any) -> str:
    return repr(cell[0]) if isinstance(cell, tuple) and len(cell) == 1 else repr(cell)


def did_you_mean(wrong: list[Any], known: Any) -> str:
    """A suggestion where a known name is spelled similarly."""
    close = get_close_matches(str(wrong[0]), [str(k) for k in known], 1, 0.5) if wrong else []
    return f"did you mean {close[0]}" if close else ""

"""JSON parsing of untrusted text: integers of any length and nesting of any depth give a value or a ValueError."""

from __future__ import annotations

import json
from typing import Any

MOST_LEVELS = 100  # levels of nesting: a cell is a number or a string, and nested values are only printed
LONGEST = 308  # number of digits up to which every integer is within the range of float64


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text; an integer beyond the range of float64 is returned as a string of digits.

    >>> found = parsed('{"a": 1, "b": ' + 400 * "9" + "}")
    >>> found["a"], found["b"] == 400 * "9"
    (1, True)
    """
    try:
        value = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError(f"more than {MOST_LEVELS} levels of nesting") from None
    if _levels(value) > MOST_LEVELS:
        raise ValueError(f"more than {MOST_LEVELS} levels of nesting")
    return value


def not_json(error: Exception) -> str:
    """The position of a JSON syntax error, from the standard library's exception.

    >>> try: json.loads('{"a" 1}')
    ... except ValueError as error: not_json(error)
    'something else at line 1, character 6'
    """
    if isinstance(error, json.JSONDecodeError):
        return f"something else at line {error.lineno}, character {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "bytes that are not UTF-8"
    return str(error) if type(error) is ValueError else "what cannot be read"  # raised by `parsed`, with our message


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= LONGEST else digits


def _levels(value: Any) -> int:
    """The nesting depth of lists and objects."""
    levels, inside = 0, [value]
    while inside := [part for part in inside if isinstance(part, list | dict)]:
        levels += 1
        inside = [part for outer in inside for part in (outer.values() if isinstance(outer, dict) else outer)]
    return levels

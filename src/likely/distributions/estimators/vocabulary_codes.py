"""Coding of words by given vocabularies, one per column, and decoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, sentence
from likely.distributions.categorical.categorical import is_missing


def coded(X: Any, words: Any, whose: str) -> Array:
    """Codes (n, d) of the words of each column; NaN where missing, the vocabulary size where unknown.

    >>> coded(np.array([["red", "no"], ["green", None]], dtype=object), [["blue", "red"], ["no", "yes"]], "")
    array([[ 1.,  0.],
           [ 2., nan]])
    """
    if X.shape[1] != len(words):
        raise DataError(sentence(whose, f"words are given for {len(words)} columns", f"{X.shape[1]} columns"))
    return np.column_stack([_places(X[:, j], known) for j, known in enumerate(words)])


def _places(column: Any, known: Any) -> Array:
    at = {str(word): float(i) for i, word in enumerate(known)}
    return np.array([np.nan if is_missing(cell) else at.get(str(cell), float(len(at))) for cell in column], dtype=float)


def worded(rows: Array, words: Any) -> Any:
    """The words of each code (n, d); None where missing.

    >>> worded(np.array([[1.0, np.nan]]), [["blue", "red"], ["no", "yes"]]).tolist()
    [['red', None]]
    """
    out = np.full(np.shape(rows), None, dtype=object)
    for j, known in enumerate(words):
        at = np.asarray(rows[:, j], dtype=np.float64)
        here = np.flatnonzero((at >= 0) & (at < len(known)))
        out[here, j] = np.array([str(word) for word in known], dtype=object)[at[here].astype(int)]
    return out


def refuse_unlike_words(words: Any, whose: str) -> None:
    """Raise unless the vocabulary is a list of distinct strings for each column."""
    lists = isinstance(words, list | tuple) and all(isinstance(known, list | tuple) for known in words)
    if not (lists and words and all(known and len(set(map(str, known))) == len(known) for known in words)):
        expected = "words must be a list of different words for each column"
        raise DomainError(sentence(whose, expected, type(words).__name__))

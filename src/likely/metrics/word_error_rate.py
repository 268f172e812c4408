"""Word error rate: alignment of reference and hypothesis by edit distance, bootstrap intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Seed, is_gap, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.metrics.confidence_intervals import Interval, as_counts

Tokens = tuple[Hashable, ...]

MARKS = " SDI"  # of a match, a substitution, a deletion, an insertion
CELLS = 2**24  # operations in memory; longer texts are processed twice
DRAWS_AT_ONCE = 2**20  # utterances of bootstrap samples: 8 MB


class Confusion(NamedTuple):
    """Number of times that a word was recognized as another.

    Parameters
    ----------
    reference : object or None
        Word of the reference; None is an insertion.
    hypothesis : object or None
        Recognized word; None is a deletion.
    times : float
        Weighted number of times.
    """

    reference: Any
    hypothesis: Any
    times: float


@dataclass(frozen=True)
class WordAlignment:
    """Alignment of two word sequences; `str` shows it in columns.

    Parameters
    ----------
    reference, hypothesis : tuple
        Words.
    marks : str
        The operation of each column: a letter of " SDI" for match, substitution, deletion, insertion.

    Examples
    --------
    >>> print(word_errors("the cat sat", "the hat sat down").alignments[0])
    REF: the cat sat ****
    HYP: the hat sat down
             S       I
    """

    reference: Tokens
    hypothesis: Tokens
    marks: str  # a letter of " SDI" per column

    def __iter__(self) -> Iterator[tuple[Any, Any, str]]:
        """Columns as (reference, hypothesis, mark): None where a side has no word."""
        references, hypotheses = iter(self.reference), iter(self.hypothesis)
        return ((None if m == "I" else next(references), None if m == "D" else next(hypotheses), m) for m in self.marks)

    def __str__(self) -> str:
        return self.show()

    def show(self, width: int = 100) -> str:
        """Lines REF, HYP and marks, wrapped at `width` characters."""
        return "\n\n".join(_lines(columns) for columns in _pages(map(_printed, self), width - 5))


@dataclass(frozen=True, eq=False)
class WordErrors:
    """Word errors of a recognizer over utterances; totals are weighted sums.

    rate = (substitutions + deletions + insertions) / words of the reference.

    Parameters
    ----------
    counts : ndarray of int (n, 4)
        Substitutions, deletions, insertions and reference words of each utterance.
    alignments : tuple of WordAlignment
        One per utterance.
    weight : array-like (n,), optional
        Weight per utterance.

    See Also
    --------
    word_errors : Word errors of texts.

    Examples
    --------
    >>> found = word_errors("one two three", "one too")
    >>> found.substitutions, found.deletions, round(found.rate, 2)
    (1, 1, 0.67)
    """

    counts: Index
    alignments: tuple[WordAlignment, ...]
    weight: Array | None = None

    @cached_property
    def _totals(self) -> list[Any]:
        return (self.counts.sum(axis=0) if self.weight is None else self.weight @ self.counts).tolist()

    @property
    def substitutions(self) -> float:
        """Number of substituted words."""
        return self._totals[0]

    @property
    def deletions(self) -> float:
        """Number of deleted words (in the reference only)."""
        return self._totals[1]

    @property
    def insertions(self) -> float:
        """Number of inserted words (in the hypothesis only)."""
        return self._totals[2]

    @property
    def length(self) -> float:
        """Number of reference words."""
        return self._totals[3]

    @property
    def errors(self) -> float:
        """Total number of errors."""
        return sum(self._totals[:3])

    @property
    def rate(self) -> float:
        """Word error rate: errors over reference words; more than 1 with many insertions."""
        _refuse_wordless(self)
        return self.errors / self.length

    @property
    def wrong_utterances(self) -> float:
        """Utterance error rate: the share of utterances with an error."""
        wrong = self.counts[:, :3].any(axis=1)
        return float(np.average(wrong, weights=self.weight))

    def confusions(self, matches: bool = False) -> list[Confusion]:
        """Confusions, the most frequent first.

        Parameters
        ----------
        matches : bool, default False
            Include correct words.

        Returns
        -------
        list of Confusion
            Reference word, hypothesis and number of times.

        Examples
        --------
        >>> word_errors(["a", "b", "a"], ["c", "b", "c"]).confusions()
        [Confusion(reference='a', hypothesis='c', times=2)]
        """
        found: Counter[tuple[Any, Any]] = Counter()
        each = [1] * len(self.alignments) if self.weight is None else self.weight.tolist()
        for alignment, weight in zip(self.alignments, each, strict=True):
            for references, hypotheses, mark in alignment:
                if weight and (matches or mark != " "):
                    found[references, hypotheses] += weight
        return [Confusion(*pair, count) for pair, count in found.most_common()]

    def interval(self, level: float = 0.95, draws: int = 2000, seed: Seed = 0) -> Interval:
        """The word error rate with a bootstrap interval over utterances.

        Errors in one utterance are correlated, so utterances are resampled, not words. Integer weights are copies.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level.
        draws : int, default 2000
            Number of bootstrap samples.
        seed : int or numpy.random.Generator, default 0
            Seed or random number generator.

        Returns
        -------
        Interval
            The rate and the ends of its interval.

        References
        ----------
        Bisani and Ney (2004).
        """
        _refuse_wordless(self)
        if not 0 < level < 1 or draws < 1:
            raise DomainError(sentence("interval", "0 < level < 1 and draws ≥ 1 are needed", f"{level} and {draws}"))
        copies = as_counts(self.weight, len(self.counts), "word_errors")
        if copies.sum() < 2:
            raise DataError(sentence("interval", "several utterances are needed for resampling", len(self.counts)))
        rates = np.concatenate(list(_resampled(self.counts, copies, draws, np.random.default_rng(seed))))
        low, high = np.quantile(rates, [0.5 - level / 2, 0.5 + level / 2])
        return Interval(self.rate, float(low), float(high))

    def __str__(self) -> str:
        kinds = f"{self.substitutions:g} S, {self.deletions:g} D, {self.insertions:g} I"
        if not self.length:
            return f"no reference words: {kinds}"
        return f"word error rate {self.rate:.2%} ({kinds} of {self.length:g} words)"


def word_errors(
    reference: Any, hypothesis: Any, *, costs: Sequence[float] = (1, 1, 1), weight: ArrayLike | None = None
) -> WordErrors:
    """Word errors of a hypothesis against a reference, by a minimum-cost alignment of each pair.

    D(i, j) = min{ D(i−1, j−1) + [r_i ≠ h_j] c_S, D(i−1, j) + c_D, D(i, j−1) + c_I },   rate = (S + D + I) / N.

    Ties, from the end, prefer matches and substitutions, then deletions, then insertions.

    Parameters
    ----------
    reference, hypothesis : str, list, list of lists or Ragged
        One utterance each, a text (split at blanks) or a list of words of any kind; or many, as lists of these lists
        (`[text.split() for text in texts]`) or Ragged.
    costs : sequence of three numbers, default (1, 1, 1)
        Costs of a substitution, a deletion, an insertion. They determine the alignment; the rate counts every error as
        one. (4, 3, 3) are NIST's: equal words are then matched more often, sometimes with more errors.
    weight : array-like (n,), optional
        Weight per utterance.

    Returns
    -------
    WordErrors
        Counts, alignments and the word error rate.

    References
    ----------
    Levenshtein (1966).

    Examples
    --------
    >>> e = word_errors("the cat sat", "the hat sat down")
    >>> e.substitutions, e.deletions, e.insertions, round(e.rate, 4)
    (1, 0, 1, 0.6667)
    """
    references, hypotheses = _utterances(reference, hypothesis)
    c = _checked(costs)
    w = weights(weight, len(references), "word_errors")
    if w is not None and (w.ndim != 1 or not w.any()):
        raise DataError(sentence("word_errors", "weight must have one entry per utterance, not all zero", w.shape))
    alignments = tuple(align_words(r, h, c) for r, h in zip(references, hypotheses, strict=True))
    counts = [[a.marks.count(mark) for mark in "SDI"] + [len(a.reference)] for a in alignments]
    return WordErrors(np.array(counts, dtype=np.intp), alignments, w)


# ---------------------------------------------------------------------- alignment


def align_words(reference: Tokens, hypothesis: Tokens, costs: Array) -> WordAlignment:
    """The minimum-cost alignment of two word lists, in blocks of the table if they are long."""
    places: dict[Hashable, int] = {}
    r, h = (
        np.array([places.setdefault(word, len(places)) for word in words], dtype=np.int64)
        for words in (reference, hypothesis)
    )
    return WordAlignment(reference, hypothesis, "".join(MARKS[move] for move in _moves(r, h, costs).tolist()))


def _moves(r: Any, h: Any, costs: Array, cells: int = CELLS) -> Any:
    """The operations of the alignment; costs are stored at block boundaries only, and blocks are computed again."""
    from likely.metrics._loops import edit_rows, edit_trace

    n, m = len(r), len(h)
    strip = max(cells // (m + 1), isqrt(n), 1)
    tolerance = 1e-9 * costs.max()
    moves = np.empty((min(strip, n), m + 1), dtype=np.uint8)
    row, begun = costs[2] * np.arange(m + 1.0), []
    for a in range(0, n, strip):
        begun.append(row.copy())
        edit_rows(r[a : a + strip], h, costs, tolerance, row, moves[: n - a])
    out = np.full(n + m, 3, dtype=np.uint8)  # above the first row only insertions are left
    column, end = m, n + m
    for a in reversed(range(0, n, strip)):
        if a + strip < n:
            edit_rows(r[a : a + strip], h, costs, tolerance, begun[a // strip], moves)
        column, end = edit_trace(moves[: n - a], column, out, end)
    return out[end - column :]


# ------------------------------------------------------------------------- input


def _utterances(reference: Any, hypothesis: Any) -> tuple[list[Tokens], list[Tokens]]:
    """Both sides as lists of utterances of equal length."""
    sides = [_listed(reference, "reference"), _listed(hypothesis, "hypothesis")]
    if any(map(_holds_lists, sides)):
        references, hypotheses = (
            [_words(one, f"{name} {i}") for i, one in enumerate(side)] for name, side in _named(sides)
        )
    else:
        references, hypotheses = ([_words(side, name)] for name, side in _named(sides))
    if len(references) != len(hypotheses):
        expected = "every reference needs its hypothesis"
        raise ShapeError(sentence("word_errors", expected, f"{len(references)} and {len(hypotheses)} utterances"))
    return references, hypotheses


def _named(sides: list[list[Any]]) -> Iterable[tuple[str, list[Any]]]:
    return zip(("reference", "hypothesis"), sides, strict=True)


def _listed(side: Any, name: str) -> list[Any]:
    if isinstance(side, str):
        return side.split()
    if hasattr(side, "to_list"):
        return side.to_list()
    if not isinstance(side, Iterable) or isinstance(side, dict | set | bytes):
        expected = f"{name} must be a text or a list of words, or a list of such lists"
        raise DataError(sentence("word_errors", expected, type(side).__name__))
    return side.tolist() if isinstance(side, np.ndarray) else list(side)


def _holds_lists(side: list[Any]) -> bool:
    return any(isinstance(one, list | tuple | np.ndarray) for one in side)


def _words(side: Any, name: str) -> Tokens:
    words = tuple(_listed(side, name))
    for i, word in enumerate(words):
        if is_gap(word) or not isinstance(word, Hashable):
            expected = f"{name}: words must be strings, numbers or other hashable values"
            raise DataError(sentence("word_errors", expected, f"{type(word).__name__} at place {i}"))
        if isinstance(word, str) and (not word or len(word.split()) != 1):
            remedy = "pass many texts as [text.split() for text in texts]"
            raise DataError(sentence("word_errors", f"{name}: a word must not contain blanks", repr(word[:40]), remedy))
    return words


def _checked(costs: Any) -> Array:
    try:
        c = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError):
        c = np.empty(0)
    if c.shape != (3,) or not (np.isfinite(c) & (c > 0)).all():
        expected = "costs of a substitution, a deletion and an insertion must be three positive numbers"
        raise DomainError(sentence("word_errors", expected, costs))
    return c


def _refuse_wordless(found: WordErrors) -> None:
    if not found.length:
        got = f"no word, and {found.insertions:g} insertions"
        raise DataError(sentence("word error rate", "the reference must have words", got, "see .insertions"))


# -------------------------------------------------------------------- resampling


def _resampled(counts: Index, copies: Array, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Word error rates of bootstrap samples of utterances; samples without a reference word are dropped."""
    errors, length, total = counts[:, :3].sum(axis=1), counts[:, 3], copies.sum()
    at_once = max(DRAWS_AT_ONCE // len(counts), 1)
    for first in range(0, draws, at_once):
        drawn = rng.multinomial(round(total), copies / total, size=min(at_once, draws - first))
        words = drawn @ length
        yield (drawn @ errors)[words > 0] / words[words > 0]


# ----------------------------------------------------------------------- printing


def _printed(column: tuple[Any, Any, str]) -> tuple[str, str, str]:
    """A column with padded words, asterisks where a side has no word."""
    references, hypotheses, mark = column
    wide = max(len(str(word)) for word in (references, hypotheses) if word is not None)
    top, bottom = (("*" * wide if word is None else str(word)).ljust(wide) for word in (references, hypotheses))
    return top, bottom, mark.ljust(wide)


def _pages(columns: Iterable[tuple[str, str, str]], width: int) -> Iterator[list[tuple[str, str, str]]]:
    page: list[tuple[str, str, str]] = []
    for column in columns:
        if page and sum(len(one[0]) + 1 for one in page) + len(column[0]) > width:
            yield page
            page = []
        page.append(column)
    yield page


def _lines(columns: list[tuple[str, str, str]]) -> str:
    texts = [" ".join(parts) for parts in zip(*columns, strict=True)] or ["", "", ""]
    return "\n".join(
        (name + text).rstrip() for name, text in zip(("REF: ", "HYP: ", "     "), texts, strict=True)
    ).rstrip()

"""Bigram language model with beginning and end of utterance: estimated from text, or given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, parameter, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence

WHOSE = "WordNetwork"
SUM_TO_ONE = 1e-9


class Bigram(NamedTuple):
    """Bigram probabilities: of the first word, of the next word given a word, and of the end after a word.

    Each row of `bigram` sums to 1 with its entry of `final`; what `initial` lacks is the probability of no word at all.

    Parameters
    ----------
    initial : ndarray (C,)
        Probability of each first word.
    bigram : ndarray (C, C)
        Probability p(next word | word), one row per word.
    final : ndarray (C,)
        Probability p(end | word).

    See Also
    --------
    learn_bigram : The estimate from utterances.

    Examples
    --------
    >>> learn_bigram([["on", "off"], ["on"]], ["on", "off"], alpha=1.0).bigram.round(2)
    array([[0.2 , 0.4 ],
           [0.25, 0.25]])
    """

    initial: Array  # (C,)
    bigram: Array  # (C, C): p(next word | word)
    final: Array  # (C,): p(end | word)


def learn_bigram(
    utterances: Iterable[Sequence[str]], names: Sequence[str], alpha: float = 0.5, weight: ArrayLike | None = None
) -> Bigram:
    """Estimate a bigram with additive smoothing: p(w | v) = (n_vw + α) / (n_v + α (C + 1)).

    The end of an utterance counts as one more word after v; its beginning is a row of its own.

    Parameters
    ----------
    utterances : iterable of sequences of str
        Words of each utterance; an utterance may be empty.
    names : sequence of str
        The C words.
    alpha : float, default 0.5
        Pseudo-count α per event.
    weight : array-like (n,), optional
        Weight per utterance.

    Returns
    -------
    Bigram
        The probabilities.

    References
    ----------
    Jurafsky and Martin (2009); Ney, lecture notes, 9.

    Examples
    --------
    >>> learn_bigram([["yes", "no"], ["no"]], ["no", "yes"], alpha=0.0)
    Bigram(initial=array([0.5, 0.5]), bigram=array([[0., 0.],
           [1., 0.]]), final=array([1., 0.]))
    """
    texts = [_words(text, i) for i, text in enumerate(utterances)]
    if not np.isfinite(alpha) or alpha < 0:
        raise DomainError(sentence("learn_bigram", "alpha must be a number from 0 on", alpha))
    w = weights(weight, len(texts), "learn_bigram")
    counts = _counted(texts, list(names), np.ones(len(texts)) if w is None else w)
    C = len(counts) - 1
    counts[C, C] -= alpha  # no smoothing of the empty utterance
    counts += alpha
    totals = counts.sum(axis=1, keepdims=True)
    if not (totals > 0).all():
        never = "the beginning" if not totals[C] > 0 else repr(names[int(np.argmin(totals))])
        raise DataError(sentence("learn_bigram", "every word must be followed by something", f"nothing after {never}",
                                 "give more utterances, or alpha above 0"))  # fmt: skip
    probs = counts / totals
    return Bigram(probs[C, :C].copy(), probs[:C, :C].copy(), probs[:C, C].copy())


def _words(text: Any, i: int) -> list[str]:
    if isinstance(text, str):
        remedy = "split it: text.split()"
        raise DataError(sentence("learn_bigram", f"utterance {i} must be a list of words", repr(text[:40]), remedy))
    return [str(word) for word in text]


def _counted(texts: list[list[str]], names: list[str], weight: Array) -> Array:
    """Bigram counts (C + 1, C + 1): the last row is the beginning, the last column the end."""
    place = {name: c for c, name in enumerate(check_names(names, len(names)))}
    C = len(place)
    counts = np.zeros((C + 1, C + 1))
    for i, (text, w) in enumerate(zip(texts, weight.tolist(), strict=True)):
        unknown = next((word for word in text if word not in place), None)
        if unknown is not None:
            expected = "utterances must consist of words in names"
            raise DataError(sentence("learn_bigram", expected, f"{unknown!r} in utterance {i}"))
        at = [C, *(place[word] for word in text), C]
        np.add.at(counts, (at[:-1], at[1:]), w)
    return counts


def check_names(names: Any, count: int) -> tuple[str, ...]:
    """Validate names: one per word, no duplicates."""
    given = (names,) if isinstance(names, str) else tuple(names)
    if len(given) != count:
        raise ShapeError(sentence(WHOSE, f"names must be {count} texts, one per word", len(given)))
    seen: set[str] = set()
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise DomainError(sentence(WHOSE, "names must be texts, not empty", repr(name)))
        if name in seen:
            raise DomainError(sentence(WHOSE, "names must be unique", f"{name!r} twice"))
        seen.add(name)
    return given


def check_bigram(bigram: Any, starts: Any, ends: Any, C: int) -> Bigram:
    """Validate a bigram of C words; what is not given is uniform.

    Rows of a bigram that all sum to 1 leave no probability for the end: without `ends`, each is scaled for an end of
    probability 1 / (C + 1). For rows that sum to less, the rest is the probability of the end.
    """
    if isinstance(bigram, Bigram):
        bigram, starts, ends = bigram.bigram, bigram.initial, bigram.final
    begin = np.full(C, 1.0 / C) if starts is None else _probabilities(starts, "initial", (C,))
    if begin.sum() > 1 + SUM_TO_ONE:
        raise DomainError(sentence(WHOSE, "initial must not sum to more than 1", float(begin.sum())))
    ends = np.full(C, ends) if ends is not None and np.ndim(ends) == 0 else ends
    leave = None if ends is None else _probabilities(ends, "final", (C,))
    if bigram is None:
        leave = np.full(C, 1.0 / (C + 1)) if leave is None else leave
        follow = np.repeat((1.0 - leave)[:, None] / C, C, axis=1)
    else:
        follow = _probabilities(bigram, "bigram", (C, C))
        follow, leave = _with_ends(follow, leave, C)
    totals = follow.sum(axis=1) + leave
    worst = int(np.abs(totals - 1).argmax())
    if abs(totals[worst] - 1) > SUM_TO_ONE:
        expected = f"row {worst} of bigram must sum to 1 with its entry of final"
        raise DomainError(sentence(WHOSE, expected, float(totals[worst]), "see learn_bigram"))
    if not (leave > 0).any():
        raise DomainError(sentence(WHOSE, "an utterance must be able to end", "final probabilities that are all 0"))
    return Bigram(begin, follow, leave)


def _with_ends(follow: Array, leave: Array | None, C: int) -> tuple[Array, Array]:
    if leave is not None:
        return follow, leave
    sums = follow.sum(axis=1)
    if (np.abs(sums - 1) <= SUM_TO_ONE).all():
        return follow * (C / (C + 1)), np.full(C, 1.0 / (C + 1))
    return follow, np.clip(1.0 - sums, 0.0, 1.0)


def _probabilities(value: Any, name: str, shape: tuple[int, ...]) -> Array:
    a = parameter(value, WHOSE, name)
    if a.shape != shape:
        raise ShapeError(sentence(WHOSE, f"{name} must have shape {shape}", a.shape))
    if (a < 0).any():
        raise DomainError(sentence(WHOSE, f"{name} must not be negative", float(a.min())))
    return a

"""Errors between lists of words, against every way to edit one into the other."""

from __future__ import annotations

import os
import time
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely import DataError, DomainError, Ragged, ShapeError
from likely.metrics import word_error_rate as module
from likely.metrics.word_error_rate import word_errors

words = st.lists(st.sampled_from("abc"), max_size=7)
COSTS = [(1, 1, 1), (4, 3, 3), (0.3, 0.1, 0.2), (1, 2, 0.5), (3, 1, 1)]


def scripts(reference, hypothesis):
    """Every edit script, as marks in order."""
    if not reference and not hypothesis:
        yield ""
    if reference and hypothesis:
        mark = " " if reference[0] == hypothesis[0] else "S"
        yield from (mark + rest for rest in scripts(reference[1:], hypothesis[1:]))
    if reference:
        yield from ("D" + rest for rest in scripts(reference[1:], hypothesis))
    if hypothesis:
        yield from ("I" + rest for rest in scripts(reference, hypothesis[1:]))


def price(marks, costs):
    return sum(costs["SDI".index(mark)] for mark in marks if mark != " ")


def preferred(reference, hypothesis, costs):
    """The cheapest script; read from its end, opposite words come before D, and D before I."""
    every = list(scripts(reference, hypothesis))
    least = min(price(marks, costs) for marks in every)
    cheap = [marks for marks in every if price(marks, costs) < least + 1e-9]
    return min(cheap, key=lambda marks: [" SDI".replace("S", " ").index(m.replace("S", " ")) for m in marks[::-1]])


@pytest.mark.parametrize("costs", COSTS)
def test_the_alignment_is_the_cheapest_of_all(costs):
    small = ["", "a", "ab", "ba", "aab", "abca", "cba", "bbac"]
    for reference, hypothesis in product(small, small):
        found = word_errors(list(reference), list(hypothesis), costs=costs)
        marks = preferred(reference, hypothesis, costs)
        assert found.alignments[0].marks == marks, (reference, hypothesis)
        got = found.substitutions, found.deletions, found.insertions, found.length
        assert got == (marks.count("S"), marks.count("D"), marks.count("I"), len(reference))


def distance(a, b):
    """Levenshtein's recursion as he wrote it."""

    @cache
    def d(i, j):
        if not i or not j:
            return i + j
        return min(d(i - 1, j - 1) + (a[i - 1] != b[j - 1]), d(i - 1, j) + 1, d(i, j - 1) + 1)

    return d(len(a), len(b))


@given(words, words, words)
def test_errors_are_a_distance(a, b, c):
    def d(x, y):
        return word_errors(x, y).errors

    assert d(a, b) == distance(a, b) == d(b, a)
    assert d(a, c) <= d(a, b) + d(b, c)
    assert (d(a, b) == 0) == (a == b)
    assert abs(len(a) - len(b)) <= d(a, b) <= max(len(a), len(b))


@given(words, words, st.sampled_from(COSTS))
def test_an_alignment_holds_both_sides(a, b, costs):
    (alignment,) = word_errors(a, b, costs=costs).alignments
    columns = list(alignment)
    assert [x for x, _, _ in columns if x is not None] == a and [y for _, y, _ in columns if y is not None] == b
    for x, y, mark in columns:
        assert {" ": x == y, "S": None not in (x, y) and x != y, "D": y is None, "I": x is None}[mark]


@given(words.filter(bool), words, st.integers(1, 40), st.sampled_from(COSTS))
def test_strips_change_nothing(a, b, cells, costs):
    r, h = (np.array([ord(c) for c in x], dtype=np.int64) for x in (a, b))
    c = np.array(costs, dtype=float)
    assert module._moves(r, h, c, cells).tolist() == module._moves(r, h, c).tolist()


def test_long_texts_are_quick():
    rng = np.random.default_rng(6)
    reference = rng.integers(0, 500, 2000)
    hypothesis = np.delete(reference, rng.choice(2000, 150, replace=False))
    hypothesis[rng.choice(len(hypothesis), 100, replace=False)] = 1000  # a word that was never said
    word_errors([1], [2])  # loads the loop
    began = time.perf_counter()
    found = word_errors(reference, hypothesis)
    interpreted = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
    assert interpreted or time.perf_counter() - began < 1.0  # 0.02 s on an idle machine
    assert 200 < found.errors <= 250 and found.deletions - found.insertions == 150


def test_a_text_beyond_the_strip_is_gone_through_twice():
    rng = np.random.default_rng(1)
    reference, hypothesis = rng.integers(0, 9, (2, 500))
    c = np.ones(3)
    whole = module._moves(reference, hypothesis, c)
    assert np.array_equal(whole, module._moves(reference, hypothesis, c, cells=3000))
    assert np.count_nonzero(whole) == distance_by_rows(reference, hypothesis)


def distance_by_rows(a, b):
    """The same table row by row in NumPy: insertions are a running minimum."""
    at = np.arange(len(b) + 1)
    row = at.copy()
    for token in a:
        best = np.minimum(row + 1, np.append(len(a) + len(b) + 1, row[:-1] + (b != token)))
        row = np.minimum.accumulate(best - at) + at
    return row[-1]


# -------------------------------------------------------------------------- input


def test_texts_lists_and_many_of_them():
    one = word_errors("the cat sat", "the hat sat down")
    assert (one.substitutions, one.deletions, one.insertions, one.length) == (1, 0, 1, 3)
    assert word_errors(["the", "cat", "sat"], "the hat sat down").rate == one.rate == pytest.approx(2 / 3)
    said, heard = [["a", "b"], ["c"], []], [["a"], ["c"], ["d"]]
    many = word_errors(said, heard)
    assert many.counts.tolist() == [[0, 1, 0, 2], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert many.rate == pytest.approx(2 / 3) and many.wrong_utterances == pytest.approx(2 / 3)
    assert word_errors(Ragged.of(said), Ragged.of(heard)).counts.tolist() == many.counts.tolist()
    assert word_errors([["a", "b"], "c d"], ["a b", ["c"]]).errors == 1
    assert word_errors([1, 2, 3], np.array([1, 3])).deletions == 1
    assert word_errors(np.array([[1, 2], [3, 4]]), [[1], [3, 4]]).counts[0].tolist() == [0, 1, 0, 2]


def test_the_rate_may_exceed_one_and_needs_words():
    assert word_errors("a", "b c d").rate == 3.0
    silence = word_errors("", "a b")
    assert silence.insertions == 2 and str(silence) == "no reference words: 0 S, 0 D, 2 I"
    with pytest.raises(DataError, match=r"the reference must have words, .* 2 insertions"):
        silence.rate  # noqa: B018
    assert word_errors("", "").errors == 0


def test_a_weight_of_k_is_k_copies():
    said, heard = [["a", "b"], ["c"], ["d", "e"]], [["x", "b"], ["c"], ["d"]]
    weighted = word_errors(said, heard, weight=[3, 1, 0])
    copies = word_errors([*[said[0]] * 3, said[1]], [*[heard[0]] * 3, heard[1]])
    for name in ("substitutions", "deletions", "insertions", "length", "rate", "wrong_utterances"):
        assert getattr(weighted, name) == pytest.approx(getattr(copies, name))
    assert weighted.confusions() == copies.confusions() == [("a", "x", 3)]
    a, b = weighted.interval(draws=4000), copies.interval(draws=4000)
    assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=0.03)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "kind", "told"),
    [
        ([["a"]], [["a"], ["b"]], ShapeError, "1 and 2 utterances"),
        (["a b", "c"], ["a b", "c"], DataError, r"a word must not contain blanks.*\[text.split\(\) for text"),
        (["a", None], ["a"], DataError, "reference: .*NoneType at place 1"),
        ([["a"]], [[{}]], DataError, "hypothesis 0: .*dict at place 0"),
        (["a", ""], ["a"], DataError, "not contain blanks"),
        (3, ["a"], DataError, "reference must be a text or a list of words.*int"),
        ([["a"], 3], [["a"], ["b"]], DataError, "reference 1 must be"),
    ],
)
def test_what_cannot_be_compared(reference, hypothesis, kind, told):
    with pytest.raises(kind, match=told):
        word_errors(reference, hypothesis)


@pytest.mark.parametrize("costs", [(1, 1), (0, 1, 1), (1, -1, 1), (1, np.inf, 1), "abc", None])
def test_costs_are_three_positive_numbers(costs):
    with pytest.raises(DomainError, match="three positive numbers"):
        word_errors("a", "b", costs=costs)


@pytest.mark.parametrize("weight", [[1.0], [0.0, 0.0], [-1.0, 1.0]])
def test_weights_fit(weight):
    with pytest.raises((DataError, ShapeError)):
        word_errors([["a"], ["b"]], [["a"], ["b"]], weight=weight)


# ------------------------------------------------------------------- what is told


def test_alignments_print_in_columns():
    found = word_errors("we went to town today", "we want to the town", costs=(4, 3, 3))
    assert str(found.alignments[0]) == (
        "REF: we went to *** town today\n"
        "HYP: we want to the town *****\n"
        "        S       I        D"
    )  # fmt: skip
    assert str(found) == "word error rate 60.00% (1 S, 1 D, 1 I of 5 words)"
    assert str(word_errors("", "").alignments[0]) == "REF:\nHYP:"
    pages = word_errors(["word"] * 30, ["word"] * 30).alignments[0].show(width=40).split("\n\n")
    assert len(pages) == 5 and all(len(line) <= 40 for page in pages for line in page.splitlines())
    assert sum(page.splitlines()[0].count("word") for page in pages) == 30


def test_confusions_are_counted():
    found = word_errors([["one", "two"], ["one"], ["nine"]], [["nine", "two", "oh"], ["nine"], []])
    assert found.confusions() == [("one", "nine", 2), (None, "oh", 1), ("nine", None, 1)]
    assert ("two", "two", 1) in found.confusions(matches=True)


@pytest.mark.slow
def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(9)
    inside, trials, truth = 0, 200, 0.2
    for _ in range(trials):
        lengths = rng.integers(1, 6, 60)
        said = [["a"] * n for n in lengths]
        heard = [["b" if wrong else "a" for wrong in rng.random(n) < truth] for n in lengths]
        rate, low, high = word_errors(said, heard).interval(level=0.9, draws=400)
        inside += low <= truth <= high
        assert low <= rate <= high
    assert 0.83 < inside / trials < 0.96


def test_the_interval_is_wider_where_errors_go_together():
    said = [["a"] * 10] * 40
    together = [["b"] * 10] * 8 + [["a"] * 10] * 32
    apart = [["b"] * 2 + ["a"] * 8] * 40
    a, b = word_errors(said, together).interval(), word_errors(said, apart).interval()
    assert a.value == b.value == pytest.approx(0.2) and a.high - a.low > 0.2 and b.high == b.low == pytest.approx(0.2)
    assert word_errors(said, together).interval(seed=0) == a != word_errors(said, together).interval(seed=1, draws=50)


def test_intervals_need_utterances_and_words():
    with pytest.raises(DataError, match="several utterances"):
        word_errors("a", "b").interval()
    with pytest.raises(DataError, match="must have words"):
        word_errors([[], []], [["a"], []]).interval()
    with pytest.raises(DomainError, match="level"):
        word_errors([["a"], ["b"]], [["a"], []]).interval(level=1.5)

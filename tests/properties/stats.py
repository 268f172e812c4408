"""What every statistic owes: it is a sum. Order, grouping and repetition do not matter."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from likely import DataError, LikelyError, Stats
from tests.properties.compare import arrays_of, bits, gap
from tests.properties.members import Member
from tests.properties.suite import Suite, search

PROPERTIES = Suite()
EXACT = 1e-12


class Case(NamedTuple):
    """Rows, weights, where they are cut, and the model that looks at them."""

    model: Any
    x: np.ndarray
    weight: np.ndarray
    cuts: list[int]

    def chunks(self) -> list[slice]:
        edges = [0, *sorted(self.cuts), len(self.x)]
        return [slice(a, b) for a, b in pairwise(edges)]


@st.composite
def cases(draw: Any, m: Member, offsets: tuple[float, ...] = (0.0,)) -> Case:
    """Up to 40 rows of a member: some with gaps, some weights zero, cut anywhere, at an offset."""
    n = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = m.rows(n, rng, draw(st.sampled_from([0.0, 0.3])))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) * rng.random(n)
    cuts = draw(st.lists(st.integers(0, n), max_size=4))
    by = draw(st.sampled_from(offsets)) if m.moved else 0.0
    return Case(m.moved(m.value, by) if by else m.value, x + by, weight, cuts)


def learns(m: Member) -> bool:
    return m.learns


def stacked(m: Member) -> bool:
    return m.learns and m.stack


@PROPERTIES.add(when=learns, by_class=True)
def plays_the_role(m: Member):
    stats = m.value.collect(m.rows(5, np.random.default_rng(0)))
    assert isinstance(stats, Stats) and stats.complete is not m.hidden
    assert stats.total_weight == pytest.approx(5 * (m.value.members or 1))


@PROPERTIES.add(when=learns, searches=True)
def sums_commute_and_associate(m: Member):
    @search(cases(m))
    def check(case: Case):
        model, x, w, _ = case
        a, b, c = (model.collect(part, v) for part, v in zip(np.array_split(x, 3), np.array_split(w, 3), strict=True))
        assert gap(a + b, b + a, model) <= EXACT
        assert gap((a + b) + c, a + (b + c), model) <= EXACT

    check()


@PROPERTIES.add(when=learns, searches=True)
def nothing_is_the_zero_of_the_sum(m: Member):
    @search(cases(m))
    def check(case: Case):
        model, x, w, _ = case
        zero, a = model.collect(np.empty((0, m.dim))), model.collect(x, w)
        assert zero.total_weight == 0
        assert gap(a + zero, a, model) <= 4e-16 and gap(zero + a, a, model) <= 4e-16
        assert gap(zero + zero, zero) == 0

    check()


@PROPERTIES.add(when=learns, searches=True)
def a_factor_is_a_weight(m: Member):
    @search(cases(m), st.sampled_from([0.0, 0.25, 1.0, 7.0]))
    def check(case: Case, factor: float):
        model, x, w, _ = case
        a = model.collect(x, w)
        assert gap(a * factor, model.collect(x, w * factor), model) <= EXACT
        assert gap(a * 0.5 + a * 0.5, a, model) <= EXACT
        assert bits(a * 1.0) == bits(a)

    check()


@PROPERTIES.add(when=learns, searches=True)
def a_weight_is_a_repetition(m: Member):
    @search(cases(m), st.integers(0, 2**32 - 1))
    def check(case: Case, seed: int):
        model, x, _, _ = case
        times = np.random.default_rng(seed).integers(0, 4, len(x))
        assert gap(model.collect(x, times), model.collect(np.repeat(x, times, axis=0)), model) <= EXACT
        assert gap(model.collect(x, np.ones(len(x))), model.collect(x), model) <= EXACT

    check()


@PROPERTIES.add(when=learns, searches=True)
def chunks_are_the_batch(m: Member):
    @search(cases(m, offsets=(0.0, 1e8, -1e8)))
    def check(case: Case):
        total = case.model.collect(case.x[:0])
        for part in case.chunks():
            total = total + case.model.collect(case.x[part], case.weight[part])
        assert gap(total, case.model.collect(case.x, case.weight), case.model) <= EXACT

    check()


@PROPERTIES.add(when=learns, searches=True)
def rows_without_weight_are_absent(m: Member):
    @search(cases(m))
    def check(case: Case):
        model, x, w, _ = case
        assert gap(model.collect(x, w), model.collect(x[w > 0], w[w > 0]), model) <= EXACT

    check()


@PROPERTIES.add(when=stacked, searches=True)
def owners_are_masks_are_weights(m: Member):
    K = m.value.members

    @search(cases(m, offsets=(0.0, 1e8)), st.integers(0, 2**32 - 1))
    def check(case: Case, seed: int):
        model, x, w, _ = case
        labels = np.random.default_rng(seed).integers(-1, K, len(x))
        mask = labels[:, None] == np.arange(K)
        by_label = model.collect(x, w, labels=labels)
        assert gap(by_label, model.collect(x, w[:, None] * mask), model) <= EXACT
        assert gap(model.collect(x, labels=labels), model.collect(x, mask.astype(float)), model) <= EXACT

    check()


@PROPERTIES.add(when=stacked, searches=True)
def members_see_their_own_weights(m: Member):
    @search(cases(m), st.integers(0, 2**32 - 1))
    def check(case: Case, seed: int):
        model, x, _, _ = case
        w = np.random.default_rng(seed).random((len(x), model.members))
        stats = model.collect(x, w)
        if hasattr(stats, "member") and not hasattr(model, "index"):
            for k in range(model.members):
                # the member's own origin differs from the stack's: means agree to the grain of their distance
                assert gap(stats.member(k), model.member(k).collect(x, w[:, k]), model.member(k)) <= EXACT
        assert stats.total_weight == pytest.approx(w.sum(), rel=1e-12, abs=1e-12) or np.isnan(x).all(axis=1).any()

    check()


@PROPERTIES.add(when=learns, by_class=True)
def statistics_are_read_only(m: Member):
    stats = m.value.collect(m.rows(9, np.random.default_rng(1), 0.2))
    assert all(not a.flags.writeable for a in arrays_of(stats + stats) if a.ndim)


@PROPERTIES.add(when=learns, by_class=True)
def rows_do_not_change(m: Member):
    x = m.rows(9, np.random.default_rng(1), 0.2)
    w = np.ones(9)
    kept = x.copy()
    x.setflags(write=False)
    w.setflags(write=False)
    m.value.collect(x, w)
    assert x.tobytes() == kept.tobytes()


@PROPERTIES.add(when=learns, by_class=True)
def large_data_are_collected_in_blocks(m: Member):
    """Beyond 32,768 rows `collect` hands blocks to threads; a stream of its own blocks is the same."""
    x = np.repeat(m.rows(50, np.random.default_rng(2)), 700, axis=0)
    once = m.value.collect(x[::700])
    assert gap(m.value.collect(x), once * 700.0, m.value) <= EXACT


@PROPERTIES.add(when=lambda m: m.learns and not isinstance(m.columns[-1], int), by_class=True)
def infinities_are_refused_by_row_and_column(m: Member):
    x = m.rows(9, np.random.default_rng(3), 0.2)
    x[4, -1] = np.inf
    place = r"\(part '\w+'\): .* row 4, column \d" if hasattr(m.value, "names") else rf"row 4, column {m.dim - 1}"
    for attempt in (m.value.collect, m.value.log_prob):
        with pytest.raises(DataError, match=place):
            attempt(x)


@PROPERTIES.add(when=learns, by_class=True)
def weights_must_fit(m: Member):
    x = m.rows(5, np.random.default_rng(4))
    K = m.value.members or 1
    for bad in ([1.0] * 4, [1.0, 1.0, 1.0, 1.0, -1.0], [np.nan] * 5, np.ones((5, K + 1)), 3.0):
        with pytest.raises(LikelyError, match="weight"):
            m.value.collect(x, bad)


@PROPERTIES.add(when=stacked, by_class=True)
def owners_must_fit(m: Member):
    x = m.rows(5, np.random.default_rng(4))
    for bad in ([0] * 4, [0, 0, 0, 0, m.value.members], [0.5] * 5):
        with pytest.raises(LikelyError, match="labels"):
            m.value.collect(x, labels=bad)

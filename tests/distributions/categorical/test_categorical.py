"""The categorical distribution: levels of every type, exact frequencies, and missing values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.stats

from likely.core.blocks import Blocks
from likely.core.errors import DataError, DomainError, ShapeError
from likely.distributions.categorical.categorical import Categorical, LevelCounts
from likely.distributions.categorical.dirichlet import Dirichlet

COLORS = ["red", "green", "blue"]  # not in order
DISTRIBUTION = Categorical([0.2, 0.3, 0.5], COLORS)
STACK = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])

# --------------------------------------------------------------------- levels


CELLS = ["blue", "red", None, "pink", "green"]
WITH_NAN = ["blue", "red", np.nan, "pink", "green"]


@pytest.mark.parametrize(
    "x",
    [
        CELLS,
        WITH_NAN,
        np.array(CELLS, dtype=object),
        np.array(WITH_NAN, dtype=object)[:, None],
        pl.Series(CELLS),
        pl.DataFrame({"color": CELLS}),
        np.array(["blue", "red", np.nan, ["pink"], "green"], dtype=object),
    ],
    ids=["list", "list with NaN", "objects", "a column", "polars", "a polars frame", "a cell that is no key"],
)
def test_texts_are_understood_wherever_they_come_from(x):
    check_texts(x)


def test_texts_are_understood_from_pandas():
    pd = pytest.importorskip("pandas")
    with_na = ["blue", "red", pd.NA, "pink", "green"]
    for x in (
        pd.Series(CELLS),
        pd.Series(with_na, dtype="string"),
        pd.Categorical(CELLS),
        pd.DataFrame({"a": with_na}),
    ):
        check_texts(x)
    assert Categorical.over(3).encode(pd.Series([0, 2, pd.NA], dtype="Int64")).tolist() == [0, 2, -1]


def check_texts(x):
    assert DISTRIBUTION.encode(x).tolist() == [2, 0, -1, -2, 1]
    assert DISTRIBUTION.encode(x).dtype == np.intp
    wanted = np.log([0.5, 0.2, 1.0, 1.0, 0.3])
    wanted[3] = -np.inf
    assert np.array_equal(DISTRIBUTION.log_prob(x), wanted)


@pytest.mark.parametrize(
    ("levels", "x", "codes"),
    [
        (None, [0, 2, -1, 3, -5], [0, 2, -1, -2, -2]),
        (None, np.array([0, 2, 1], np.uint8), [0, 2, 1]),
        (None, [0.0, np.nan, 2.0, 0.5, -1.0, 7.0, np.inf], [0, -1, 2, -2, -1, -2, -2]),
        (None, [True, False], [1, 0]),
        (None, np.array([0, None, 2.0, np.nan, "2", -1], dtype=object), [0, -1, 2, -1, -2, -1]),
        (None, ["0", "1"], [-2, -2]),
        ([30, 10, 20], [10, 20, 30, 15, -1], [1, 2, 0, -2, -2]),
        ([30, 10, 20], [10.0, np.nan, 20.5, 99.0], [1, -1, -2, -2]),
        ([0.5, -1.0, 2.0], [2, -1, 0], [2, 1, -2]),
        ([0.5, -1.0, 2.0], np.array([0.5, 2.0, np.nan], np.float32), [0, 2, -1]),
        ([True, False], [False, True], [1, 0]),
        ([True, False], np.array([False, None], dtype=object), [1, -1]),
        (COLORS, [1.0, np.nan], [-2, -1]),
        (COLORS, np.array(["blue", "reddish", "r"]), [2, -2, -2]),
        (["1", 1, 2.5], np.array(["1", 1, 2.5, True, None], dtype=object), [0, 1, 2, 1, -1]),
        ([10, 20], np.array([10, 20, None, 10.0, "10"], dtype=object), [0, 1, -1, 0, -2]),
    ],
)
def test_values_find_their_level(levels, x, codes):
    size = 3 if levels is None else len(levels)
    assert Categorical(np.full(size, 1 / size), levels).encode(x).tolist() == codes


def test_levels_stay_as_they_are_given():
    for levels in (COLORS, [3, 1, 2], [0.5, 0.1, 9.0], np.array([3, 1, 2], np.int16)):
        kept = Categorical([0.2, 0.3, 0.5], levels).levels
        assert kept.tolist() == list(levels) and not kept.flags.writeable
    assert Categorical([0.5, 0.5], [False, True]).levels.dtype == bool
    assert Categorical([0.5, 0.5], ["1", 1]).levels.tolist() == ["1", 1]  # objects: the text stays a text
    given = np.array(COLORS)
    Categorical([0.2, 0.3, 0.5], given)
    given[0] = "mine"  # still writable


def test_probabilities_are_not_touched():
    probs = np.array([0.1, 0.2, 0.7 + 1e-12])
    assert Categorical(probs).probs.tobytes() == probs.tobytes()


def test_a_stack_shares_its_levels():
    stack = Categorical(STACK, COLORS)
    assert np.array_equal(np.exp(stack.log_prob(["red", None, "blue"])), [[0.2, 0.6], [1.0, 1.0], [0.5, 0.0]])
    assert stack.member(1).levels.tolist() == COLORS and stack.members == 2 and stack.mode.tolist() == ["blue", "red"]


def test_large_inputs_in_blocks(rng):
    x = np.array(COLORS)[rng.integers(0, 3, 40_000)]
    distribution = DISTRIBUTION
    assert np.array_equal(distribution.log_prob(x), np.log(distribution.probs)[distribution.encode(x)])
    found = distribution.collect(x)
    assert found.counts.tolist() == [np.sum(x == c) for c in COLORS] and found.rows == 40_000
    x = x.astype(object)
    x[39_999] = "pink"
    with pytest.raises(DataError, match="'pink' at row 39999"):
        distribution.collect(x)


# -------------------------------------------------------------------- moments


def test_moments_against_sums():
    distribution = Categorical([0.2, 0.3, 0.5], [10, -2, 4])
    assert distribution.mean == pytest.approx(3.4) and distribution.variance == pytest.approx(
        0.2 * 6.6**2 + 0.3 * 5.4**2 + 0.5 * 0.6**2
    )
    assert distribution.mode == 4 and DISTRIBUTION.mode == "blue" and Categorical([0.2, 0.8]).mean == pytest.approx(0.8)
    assert np.allclose(Categorical(STACK).mean, [1.3, 0.4]) and np.allclose(Categorical(STACK).variance, [0.61, 0.24])
    assert distribution.expect(lambda x: x**2).value == pytest.approx(distribution.variance + distribution.mean**2)
    assert distribution.expect(np.sin).error == 0
    assert np.allclose(Categorical(STACK).expect(lambda x: x).value, [1.3, 0.4])
    assert Categorical([0.0, 1.0]).expect(lambda x: [np.inf, 1.0]).value == 1.0  # what cannot happen does not count


def test_information_against_scipy():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4, 0.0])
    assert Categorical(p).entropy() == pytest.approx(scipy.stats.entropy(p), rel=1e-15)
    assert Categorical(q).entropy(bits=True) == pytest.approx(scipy.stats.entropy(q, base=2), rel=1e-15)
    assert Categorical(q).kl(Categorical(p)) == pytest.approx(scipy.stats.entropy(q, p), rel=1e-14)
    assert Categorical(p).kl(Categorical(q)) == np.inf and Categorical(q).kl(Categorical(q)) == 0
    assert Categorical(STACK).kl(Categorical(STACK[::-1])).tolist() == [np.inf, Categorical(q).kl(Categorical(p))]
    with pytest.raises(DomainError, match="same levels"):
        Categorical(p, COLORS).kl(Categorical(p, sorted(COLORS)))


def test_distribution_function_and_quantiles_over_numbers():
    """Herbst 1.2.2: four levels seen 4, 2, 1 and 1 times give .5, .75, .875 and 1."""
    distribution = Categorical.fit(np.repeat([0, 1, 2, 3], [4, 2, 1, 1]))
    assert distribution.cdf([-1, 0, 1, 1.5, 2, 3, 9]).tolist() == [0.0, 0.5, 0.75, 0.75, 0.875, 1.0, 1.0]
    assert distribution.quantile([0.0, 0.5, 0.51, 0.875, 0.9, 1.0]).tolist() == [0, 0, 1, 2, 3, 3]
    unsorted = Categorical([0.2, 0.0, 0.8], [10, 99, -2])
    assert unsorted.cdf([-2, 10, 98]).tolist() == [0.8, 1.0, 1.0]
    assert unsorted.quantile([0.8, 0.81, 1.0]).tolist() == [-2, 10, 10]
    stack = Categorical(STACK)
    assert stack.cdf([0, 1]).tolist() == [[0.2, 0.6], [0.5, 1.0]]
    assert stack.quantile([0.3, 1.0]).tolist() == [[1, 0], [2, 1]]
    for act in (DISTRIBUTION.cdf, DISTRIBUTION.quantile, lambda p: DISTRIBUTION.mean, lambda p: DISTRIBUTION.variance):
        with pytest.raises(DomainError, match="levels must be numbers"):
            act(0.5)
    with pytest.raises(DomainError, match=r"0 … 1"):
        distribution.quantile(1.5)


def test_draws_follow_the_distribution(rng):
    x = DISTRIBUTION.sample(20_000, rng)
    assert x.shape == (20_000,)
    found = [np.mean(x == c) for c in COLORS]
    assert np.abs(np.array(found) - DISTRIBUTION.probs).max() <= 5 * 0.5 / np.sqrt(20_000)
    y = Categorical(STACK).sample(20_000, rng)
    assert y.shape == (20_000, 2) and y[:, 1].max() == 1  # a level of probability 0 is never drawn
    assert abs(y[:, 1].mean() - 0.4) <= 5 * 0.5 / np.sqrt(20_000)


# -------------------------------------------------------------------- learning


def test_relative_frequencies_are_the_estimate():
    """Ney 3.4 and Herbst 2.1: n/N; three of three ones give 1."""
    assert Categorical.over(2).refit(Categorical.over(2).collect([1, 1, 1])).probs.tolist() == [0.0, 1.0]
    assert Categorical.fit([1, 0, 1, 1]).probs.tolist() == [0.25, 0.75]
    distribution = Categorical.fit(["b", "a", None, "b", "b"], [1, 1, 5, 1, 1])
    assert distribution.levels.tolist() == ["a", "b"] and distribution.probs.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("x", "levels", "size"),
    [
        ([0, 2, 2], None, 3),
        ([0.0, 2.0, np.nan], None, 3),
        (np.array([0, None, 1], dtype=object), None, 2),
        ([1, 2, 2], [1, 2], 2),
        ([-1, 0, 1], [-1, 0, 1], 3),
        ([0, 10**9], [0, 10**9], 2),
        ([0.0, 0.5], [0.0, 0.5], 2),
        ([True, False], [False, True], 2),
        (["b", "a", "b"], ["a", "b"], 2),
        (np.array(["b", np.nan, "a"], dtype=object), ["a", "b"], 2),
        (np.array(["b", 1], dtype=object), [1, "b"], 2),
    ],
)
def test_levels_are_found(x, levels, size):
    for distribution in (Categorical.blank(x), Categorical.fit(x)):
        assert (
            None if distribution.levels is None else distribution.levels.tolist()
        ) == levels and distribution.size == size


def test_levels_of_all_data_are_found_not_only_of_the_first_block():
    x = np.zeros(10_000, int)
    x[9_999] = 7
    assert Categorical.fit(x).probs.tolist() == [0.9999, 0, 0, 0, 0, 0, 0, 0.0001]
    names = np.array(["a"] * 9_999 + ["z"], dtype=object)
    assert Categorical.fit(Blocks.of(names)).levels.tolist() == ["a", "z"]
    assert Categorical.fit(names, levels=["z", "a", "m"]).probs.tolist() == [0.0001, 0.9999, 0.0]


def test_codes_with_missing_ones_are_asked_for_by_their_number():
    distribution = Categorical.fit([0, 1, -1, 1, -1], levels=3)
    assert distribution.levels is None and np.allclose(distribution.probs, [1 / 3, 2 / 3, 0])
    with pytest.raises(DataError, match="at least one level"):
        Categorical.fit([np.nan, np.nan])


def assert_same(a: LevelCounts, b: LevelCounts) -> None:
    np.testing.assert_allclose(a.counts, b.counts, rtol=1e-13)
    np.testing.assert_allclose(a.rows, b.rows, rtol=1e-13)


def test_weights_are_repetitions_and_parts_add_up(rng):
    x, w = np.array([*COLORS, None], dtype=object)[rng.integers(0, 4, 60)], rng.integers(0, 4, 60)
    assert_same(DISTRIBUTION.collect(x, w), DISTRIBUTION.collect(np.repeat(x, w)))
    assert_same(DISTRIBUTION.collect(x[:20]) + DISTRIBUTION.collect(x[20:]), DISTRIBUTION.collect(x))
    assert_same(2.5 * DISTRIBUTION.collect(x), DISTRIBUTION.collect(x, np.full(60, 2.5)))
    assert_same(DISTRIBUTION.collect(x[:0]) + DISTRIBUTION.collect(x), DISTRIBUTION.collect(x))
    missing = [v is None for v in x]
    assert (
        DISTRIBUTION.collect(x).rows == 60
        and DISTRIBUTION.collect(x).counts.sum() == 60 - sum(missing)
        and DISTRIBUTION.collect(x).complete
    )


def test_members_of_a_stack_see_their_own_rows(rng):
    x, labels, w = rng.integers(-1, 3, 50), rng.integers(-1, 2, 50), rng.random((50, 2))
    stack = Categorical([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    for k in range(2):
        one = stack.member(k)
        assert_same(stack.collect(x, labels=labels).member(k), one.collect(x[labels == k]))
        assert_same(stack.collect(x, w[:, 0], labels=labels).member(k), one.collect(x[labels == k], w[labels == k, 0]))
        assert_same(stack.collect(x, w).member(k), one.collect(x, w[:, k]))
        assert_same(stack.collect(x, w[:, 0]).member(k), one.collect(x, w[:, 0]))
    assert_same(stack.collect(x, labels=labels).pooled(), one.collect(x[labels >= 0]))


def test_objective_is_the_sum_of_weighted_log_probs(rng):
    x, w = rng.integers(-1, 3, 50), rng.random((50, 2))
    stack = Categorical([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    assert stack.objective(stack.collect(x, w)) == pytest.approx((w * stack.log_prob(x)).sum(), rel=1e-12)
    prior = Dirichlet([2.0, 3.0, 1.5])
    wanted = (w * stack.log_prob(x)).sum() + sum(prior.log_density(stack.member(k)) for k in range(2))
    assert stack.objective(stack.collect(x, w), prior) == pytest.approx(wanted, rel=1e-12)
    sure = Categorical([1.0, 0.0])
    assert sure.objective(sure.collect([0, 0])) == 0.0 and sure.objective(sure.collect([0, 1])) == -np.inf


def test_refit_keeps_what_it_knows_of_members_without_rows():
    stack = Categorical(STACK)
    refitted = stack.refit(stack.collect([0, 1, 1], labels=[0, 0, 0]))
    assert refitted.probs[1].tolist() == STACK[1].tolist() and np.allclose(refitted.probs[0], [1 / 3, 2 / 3, 0])
    with pytest.raises(DataError, match="at least one row"):
        stack.refit(stack.collect([0, 1], [0.0, 0.0]))
    assert stack.refit(stack.collect([]), Dirichlet.symmetric(3, 2.0)).probs.tolist() == [[1 / 3] * 3] * 2


def test_the_weak_prior_is_one_observation_spread_over_the_levels():
    stats = DISTRIBUTION.collect(["red", "red", "blue"])
    fitted = DISTRIBUTION.refit(stats, DISTRIBUTION.weak_prior(stats))
    assert np.allclose(fitted.probs, (np.array([2, 0, 1]) + 1 / 3) / 4, rtol=1e-14)
    assert fitted.levels.tolist() == COLORS
    assert np.allclose(Categorical.fit(["red", "red", "blue"], prior="weak").probs, [1.5 / 4, 2.5 / 4])
    with pytest.raises(DomainError, match="same levels"):
        DISTRIBUTION.refit(stats, Dirichlet([1.0, 1.0, 1.0], sorted(COLORS)))


def test_single_precision_comes_back():
    assert Categorical([0.5, 0.5]).log_prob(np.array([0, 1], np.float32)).dtype == np.float32
    assert DISTRIBUTION.log_prob(["red"]).dtype == np.float64


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Categorical([0.5, 0.4]), DomainError, "sum to 1, got 0.9"),
        (lambda: Categorical([1.5, -0.5]), DomainError, "negative"),
        (lambda: Categorical([[[1.0]]]), ShapeError, r"\(K, L\)"),
        (lambda: Categorical([0.5, 0.5], ["a"]), ShapeError, r"\(2,\)"),
        (lambda: Categorical([0.5, 0.5], ["a", "a"]), DomainError, "distinct"),
        (lambda: Categorical([0.5, 0.5], [1, 1.0]), DomainError, "distinct"),
        (lambda: Categorical([0.5, 0.5], [1.0, np.nan]), DomainError, "finite numbers"),
        (lambda: Categorical([0.5, 0.5], ["a", None]), DomainError, "strings"),
        (lambda: Categorical([0.5, 0.5], np.array(["2020", "2021"], "M8[Y]")), DomainError, "strings"),
        (lambda: DISTRIBUTION.collect(["red", "pink"]), DataError, "'pink' at row 1"),
        (lambda: Categorical([0.5, 0.5]).collect([0, 5]), DataError, "5 at row 1"),
        (lambda: Categorical([0.5, 0.5]).log_prob([[0, 1]]), ShapeError, r"\(n, 1\)"),
        (lambda: Categorical([0.5, 0.5]).collect([0], labels=[0]), DomainError, "for a stack"),
        (lambda: Categorical([0.5, 0.5]).refit(DISTRIBUTION.collect(["red"])), ShapeError, r"\(2,\), got \(3,\)"),
        (lambda: LevelCounts([1.0, -1.0], 0.0), DomainError, "negative"),
        (lambda: LevelCounts([1.0, 1.0], [2.0]), ShapeError, r"rows \(...\)"),
        (lambda: DISTRIBUTION.collect(["red"]) + Categorical.over(2).collect([0]), ShapeError, "both"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()

"""Probability tables: Herbst's examples, sums by enumeration, and error messages."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.probability_table import ConditionalTable, ProbabilityTable

RATES = {"forged": {"reject": 0.96, "accept": 0.04}, "genuine": {"reject": 0.04, "accept": 0.96}}
WORDS = {"A": ["x", "y"], "B": [0, 1, 2], "C": [True, False]}


def forgery(prior=0.0004, tests=1):
    table = ProbabilityTable(S={"forged": prior, "genuine": 1 - prior})
    for i in range(tests):
        table = table.times(f"M{i + 1}", given="S", rows=RATES)
    return table


def some_table(seed=0, shape=(2, 3, 2)):
    p = np.random.default_rng(seed).dirichlet(np.ones(int(np.prod(shape)))).reshape(shape)
    return ProbabilityTable.joint(p, WORDS), p


# ------------------------------------------------------------------- the forgeries


def test_one_rejection_is_no_proof():
    """Herbst 1.2.1: 4 in 10,000 are forged, the test errs in 4 %."""
    p = forgery()
    assert p.marginal("M1")["reject"] == pytest.approx(0.040368, abs=1e-12)
    assert p.probability(M1="reject") == pytest.approx(0.040368, abs=1e-12)
    assert p.condition(M1="reject").marginal("S")["forged"] == pytest.approx(0.00951249, abs=5e-9)
    assert p.condition(M1="reject")["forged"] == p.given("M1")["reject"]["forged"]


def test_more_tests_convince():
    p = forgery(tests=3)
    assert p.condition(M1="reject", M2="reject").marginal("S")["forged"] == pytest.approx(0.18731707, abs=5e-9)
    assert p.condition(M1="reject", M2="reject", M3="reject")["forged"] == pytest.approx(0.84690, abs=5e-6)
    assert forgery(0.5).condition(M1="reject")["forged"] == pytest.approx(0.96)


def test_tests_agree_only_through_what_they_test():
    p = forgery(0.3, tests=2)
    assert p.independent("M1", "M2", given="S") and not p.independent("M1", "M2")
    assert p.mutual_information("M1", "M2", given="S") == pytest.approx(0, abs=1e-12)
    assert p.mutual_information("M1", "M2") > 0.01


# ------------------------------------------------------------------ by enumeration


def test_marginals_and_conditionals_by_enumeration():
    table, p = some_table()
    for b, c in itertools.product(range(3), range(2)):
        total = sum(p[a, b, c] for a in range(2))
        assert table.marginal("C", "B")[WORDS["C"][c], WORDS["B"][b]] == pytest.approx(total)
        distribution = table.condition(B=b, C=WORDS["C"][c])
        assert distribution.names == ("A",) and distribution["y"] == pytest.approx(p[1, b, c] / total)
        assert table.given("C", "B")[WORDS["C"][c], b]["y"] == pytest.approx(p[1, b, c] / total)
        assert table.given("C", "B")[{"B": b, "C": WORDS["C"][c]}]["y"] == pytest.approx(p[1, b, c] / total)
    np.testing.assert_allclose(table.given("B").probs.sum(axis=(1, 2)), 1)
    assert table["y", 2, False] == p[1, 2, 1] == table[{"A": "y", "B": 2, "C": False}]
    assert table[{"B": 2}] == pytest.approx(p[:, 2].sum())


def test_events_of_several_levels():
    table, p = some_table()
    assert table.probability(B=[0, 2], A="x") == pytest.approx(p[0, [0, 2]].sum())
    distribution = table.condition(B={0, 2})
    assert distribution.names == ("A", "B", "C") and distribution.levels[1].tolist() == [0, 2]
    np.testing.assert_allclose(distribution.probs, p[:, [0, 2]] / p[:, [0, 2]].sum())
    np.testing.assert_allclose(table.condition(A=None).probs, table.marginal("B", "C").probs)
    assert table.probability() == pytest.approx(1)


def test_times_with_several_given_by_enumeration():
    table, p = some_table()
    rng = np.random.default_rng(1)
    distributions = {
        (c, a): dict(zip("uvw", rng.dirichlet([1, 1, 1]), strict=True)) for c in WORDS["C"] for a in WORDS["A"]
    }
    grown = table.times("D", given=("C", "A"), rows=distributions)
    for a, b, c, d in itertools.product(range(2), range(3), range(2), range(3)):
        cell = WORDS["A"][a], b, WORDS["C"][c], "uvw"[d]
        assert grown[cell] == pytest.approx(p[a, b, c] * distributions[cell[2], cell[0]][cell[3]])
    rows = np.array([[list(distributions[c, a].values()) for a in WORDS["A"]] for c in WORDS["C"]])
    again = table.times("D", given=("C", "A"), rows=rows, levels=list("uvw"))
    np.testing.assert_array_equal(again.probs, grown.probs)
    np.testing.assert_allclose(grown.marginal("A", "B", "C").probs, p)


def test_several_keywords_are_independent():
    table = ProbabilityTable(A={"x": 0.2, "y": 0.8}, B={0: 0.5, 1: 0.3, 2: 0.2})
    assert table["y", 1] == pytest.approx(0.24)
    assert table.independent("A", "B") and table.mutual_information("A", "B") == pytest.approx(0, abs=1e-15)
    same = ProbabilityTable(A={"x": 0.2, "y": 0.8}).times("B", rows={0: 0.5, 1: 0.3, 2: 0.2})
    np.testing.assert_allclose(same.probs, table.probs)


# --------------------------------------------------------------------- information


def test_entropies_add_up():
    table, p = some_table(2)
    assert table.entropy() == pytest.approx(scipy.stats.entropy(p.ravel()))
    assert table.entropy(bits=True) == pytest.approx(scipy.stats.entropy(p.ravel(), base=2))
    parts = table.marginal("A").entropy() + table.marginal("B", "C").entropy()
    assert table.mutual_information("A", ("B", "C")) == pytest.approx(parts - table.entropy())
    chain = table.mutual_information("A", "C") + table.mutual_information("A", "B", given="C")
    assert table.mutual_information("A", ("B", "C")) == pytest.approx(chain)


@pytest.mark.parametrize(("kind", "theirs"), [("chi2", "pearson"), ("g", "log-likelihood")])
def test_independence_test_agrees_with_scipy(kind, theirs):
    counts = np.random.default_rng(3).poisson(20, (4, 3))
    table = ProbabilityTable.from_counts(counts, {"A": list("abcd"), "B": list("uvw")})
    ours = table.independence_test("A", "B", kind=kind)
    expected = scipy.stats.chi2_contingency(counts, correction=False, lambda_=theirs)
    np.testing.assert_allclose(ours, (expected.statistic, expected.dof, expected.pvalue))


def test_conditional_independence_test_sums_over_what_is_given():
    counts = np.random.default_rng(4).poisson(15, (2, 3, 2)).astype(float)
    counts[1, :, 0] = 0  # an empty row at the first level of C
    table = ProbabilityTable.from_counts(counts, WORDS)
    ours = table.independence_test("A", "B", given="C")
    each = scipy.stats.chi2_contingency(counts[:, :, 1], correction=False)
    np.testing.assert_allclose(ours, (each.statistic, each.dof, each.pvalue))
    with pytest.raises(DomainError, match="from_counts"):
        forgery().independence_test("S", "M1")


def test_independence_test_keeps_its_level():
    rng = np.random.default_rng(5)
    p = np.outer([0.3, 0.7], [0.2, 0.3, 0.5]).ravel()
    below = [
        ProbabilityTable.from_counts(rng.multinomial(200, p).reshape(2, 3), {"A": [0, 1], "B": [0, 1, 2]})
        .independence_test("A", "B").p_value < 0.1
        for _ in range(400)
    ]  # fmt: skip
    assert 0.05 < np.mean(below) < 0.15


# -------------------------------------------------------------------- as a density


def test_rows_of_every_kind_are_scored():
    table, p = some_table()
    rows = {"A": ["x", "y"], "B": [2, 0], "C": [False, True]}
    expected = np.log([p[0, 2, 1], p[1, 0, 0]])
    cells = [("x", 2, False), ("y", 0, True)]
    for x in (rows, Columns(rows), pd.DataFrame(rows), pl.DataFrame(rows), cells, np.array(cells, dtype=object)):
        np.testing.assert_allclose(table.log_prob(x), expected)
    assert ProbabilityTable(A={"x": 0.25, "y": 0.75}).log_prob(["y", "x"])[1] == pytest.approx(np.log(0.25))


def test_what_was_not_observed_is_summed_out():
    table, p = some_table()
    rows = {"A": ["x", None, None, "x", "z"], "B": [2, 0, np.nan, np.nan, 0]}
    expected = [p[0, 2].sum(), p[:, 0].sum(), 1.0, p[0].sum(), 0.0]
    np.testing.assert_allclose(np.exp(table.log_prob(rows)), expected)


def test_a_lone_variable_is_a_categorical_distribution():
    distribution = Categorical([0.2, 0.3, 0.5], ["r", "g", "b"])
    table = ProbabilityTable(color=dict(zip(["r", "g", "b"], [0.2, 0.3, 0.5], strict=True)))
    x = ["b", "r", None, "pink"]
    np.testing.assert_array_equal(table.log_prob({"color": x}), distribution.log_prob(x))
    assert table.mode == distribution.mode and table.entropy() == pytest.approx(distribution.entropy())


def test_draws_follow_the_table():
    table, p = some_table(6)
    draws = table.sample(20_000, np.random.default_rng(0))
    found = ProbabilityTable.from_rows(draws)
    assert found.names == ("A", "B", "C") and found.total == 20_000
    order = np.argsort(WORDS["C"])
    chi2 = scipy.stats.chisquare(found.probs.ravel() * 20_000, p[:, :, order].ravel() * 20_000)
    assert chi2.pvalue > 0.001
    again = table.sample(5, np.random.default_rng(1))["B"].tolist()
    assert again == table.sample(5, np.random.default_rng(1))["B"].tolist()
    never = ProbabilityTable(A={"no": 0.0, "yes": 1.0, "nor": 0.0}).sample(100, np.random.default_rng(0))
    assert set(never["A"]) == {"yes"}


def test_counted_rows_with_weights_are_copies():
    rows = {"A": ["x", "y", "x", None], "B": [1, 1, 0, 1]}
    w = [2, 0, 3, 5]
    ours = ProbabilityTable.from_rows(rows, w)
    copies = ProbabilityTable.from_rows({k: np.repeat(np.array(v, dtype=object), w) for k, v in rows.items()})
    assert ours["x", 0] == copies["x", 0] == 0.6
    assert ours.total == copies.total == 5


def test_mode_names_its_levels():
    assert forgery(0.5, 2).mode in (
        {"S": "forged", "M1": "reject", "M2": "reject"}, {"S": "genuine", "M1": "accept", "M2": "accept"},
    )  # fmt: skip


# ------------------------------------------------------------------------- at large


def test_millions_of_cells():
    table = ProbabilityTable(S={"a": 0.3, "b": 0.7})
    for i in range(20):
        table = table.times(f"M{i}", given="S", rows={"a": {1: 0.6, 0: 0.4}, "b": {1: 0.2, 0: 0.8}})
    assert table.probs.size == 2**21
    seen = {f"M{i}": 1 for i in range(5)}
    odds = 0.3 / 0.7 * 3.0**5
    assert table.condition(**seen).marginal("S")["a"] == pytest.approx(odds / (1 + odds))
    assert "more cells" in repr(table)
    with pytest.raises(DomainError, match="cells"):
        table.times("big", rows=np.full(1000, 0.001), levels=range(1000))


def test_values_stay_as_they_were():
    given = np.array([[0.1, 0.2], [0.3, 0.4]])
    table = ProbabilityTable.joint(given, {"A": [0, 1], "B": [0, 1]})
    given[0, 0] = 9
    assert table[0, 0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        table.probs[0, 0] = 0.2
    for again in (copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        assert again.names == table.names and again[1, 1] == 0.4


def test_text_shows_names_levels_and_probabilities():
    lines = str(forgery()).splitlines()
    assert lines[0].split() == ["S", "M1", "p(S,", "M1)"]
    assert lines[1].split() == ["forged", "reject", "0.000384"]
    shown = str(forgery().given("S"))
    assert "p(M1 | S)" in shown and "0.96" in shown
    assert isinstance(forgery().given("S"), ConditionalTable)


# ------------------------------------------------------------------------ mistakes


def test_impossible_conditions_are_refused_not_nan():
    table = ProbabilityTable(S={"a": 1.0, "b": 0.0}).times(
        "M", given="S", rows={"a": {"u": 1.0, "v": 0.0}, "b": {"u": 0.5, "v": 0.5}}
    )
    with pytest.raises(DomainError, match="positive probability, got p\\(M = 'v'\\) = 0"):
        table.condition(M="v")
    with pytest.raises(DomainError, match="positive probability"):
        table.given("S")["b"]
    assert not np.isnan(table.given("S").probs).any()
    assert table.independent("S", "M")


BAD_ROW = {"forged": {"reject": 0.96, "accept": 0.04}, "genuine": {"reject": 0.04, "accept": 0.06}}


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: ProbabilityTable(), DataError, "at least one variable"),
        (lambda: ProbabilityTable(S={"a": 0.5, "b": 0.6}), DomainError, "of S must sum to 1, got 1.1"),
        (lambda: ProbabilityTable(S={"a": -0.5, "b": 1.5}), DomainError, "not negative"),
        (lambda: ProbabilityTable(S={"a": np.nan, "b": 1.0}), DomainError, "finite"),
        (lambda: ProbabilityTable(S=[0.5, 0.5]), DataError, "mapping"),
        (lambda: ProbabilityTable(S={}), DataError, "mapping"),
        (lambda: forgery().times("M2", given="S", rows=BAD_ROW), DomainError, "row 'genuine' of M2 must sum to 1"),
        (lambda: forgery().times("M2", given="S", rows={"forged": RATES["forged"]}), DomainError, "nothing for 'genu"),
        (lambda: forgery().times("M2", given="S", rows={**RATES, "fake": {}}), DomainError, "levels of S, got 'fake'"),
        (lambda: forgery().times("M1", given="S", rows=RATES), DomainError, "new name"),
        (lambda: forgery().times("M2", given="s", rows=RATES), DomainError, "did you mean S|got 's'"),
        (lambda: forgery().times("M2", given="S", rows=[[0.5, 0.5]]), ShapeError, "shape"),
        (lambda: forgery().times("M2", given="S", rows=[[0.5, 0.5], [0.5, 0.6]]), DomainError, "S number 1"),
        (lambda: forgery().condition(M1="rejected"), DomainError, "did you mean reject"),
        (lambda: forgery().condition(N1="reject"), DomainError, "did you mean M1"),
        (lambda: forgery().condition(S="forged", M1="reject"), DomainError, "must be left"),
        (lambda: forgery().marginal(), DomainError, "at least one variable"),
        (lambda: forgery().marginal("S", "S"), DomainError, "twice"),
        (lambda: forgery()["forged"], ShapeError, "one level is needed for each"),
        (lambda: forgery().given("S", "M1"), DomainError, "some be left"),
        (lambda: forgery(tests=2).given("S", "M1")["forged"], ShapeError, "one level for each"),
        (lambda: forgery().independent("S", "S"), DomainError, "different variables"),
        (lambda: forgery().log_prob([["forged"]]), ShapeError, "one level for each"),
        (lambda: ProbabilityTable.joint([0.5, 0.5], {"A": [0, 1], "B": [0]}), ShapeError, "one axis"),
        (lambda: ProbabilityTable.joint([0.5, 0.4], {"A": [0, 1]}), DomainError, "sum to 0.9"),
        (lambda: ProbabilityTable.joint([0.5, 0.5], {"A": [0, 0]}), DomainError, "distinct"),
        (lambda: ProbabilityTable.joint([0.5, 0.5], {"A": [0, 1, 2]}), ShapeError, "levels"),
        (lambda: ProbabilityTable.from_counts([0, 0], {"A": [0, 1]}), DataError, "not all 0"),
        (lambda: ProbabilityTable.from_counts([-1, 2], {"A": [0, 1]}), DataError, "not negative"),
        (lambda: ProbabilityTable.from_rows({"A": [None, None]}), DataError, "column A"),
    ],
)
def test_mistakes_are_named(act, error, words):
    with pytest.raises(error, match=words):
        act()


def test_true_is_not_one():
    table = ProbabilityTable(A={True: 0.5, False: 0.5})
    assert table[True] == 0.5
    with pytest.raises(DomainError, match="levels of A"):
        table[1]


def test_fields_of_a_file_are_checked():
    good = dict(forgery().field_values())
    assert ProbabilityTable.inconsistency(good) == ""
    for change in (
        {"probs": good["probs"] * 2}, {"probs": -good["probs"]}, {"names": ("S", "S")}, {"names": ("S",)},
        {"levels": (good["levels"][0], np.array(["a", "a"]))}, {"levels": good["levels"][:1]}, {"total": -1.0},
        {"probs": np.full((2, 2), np.nan)}, {"total": np.nan},
    ):  # fmt: skip
        assert ProbabilityTable.inconsistency({**good, **change})


def test_rare_events_may_depend_on_each_other():
    rows = {"f": {"reject": 0.96, "accept": 0.04}, "g": {"reject": 0.04, "accept": 0.96}}
    p = ProbabilityTable(S={"f": 1e-10, "g": 1 - 1e-10}).times("M", given="S", rows=rows)
    assert not p.independent("S", "M")

"""Mutual information and conditional entropy of tables, densities and rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_regression
from sklearn.metrics import mutual_info_score

import likely as lk

TABLE = np.array([[0.1, 0.2, 0.05], [0.3, 0.05, 0.3]])
SPREAD = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.5]])


def entropy_of(p):
    p = np.ravel(p)[np.ravel(p) > 0]
    return -float(p @ np.log(p))


def test_chain_rule_of_the_errata():
    """H[x, y] = H[y | x] + H[x], not H[x | y] + H[x] (Herbst 1.6)."""
    joint, of_x, of_y = entropy_of(TABLE), entropy_of(TABLE.sum(1)), entropy_of(TABLE.sum(0))
    assert lk.information.conditional_entropy(TABLE, given=0).value == pytest.approx(joint - of_x)
    assert lk.information.conditional_entropy(TABLE, given=1).value == pytest.approx(joint - of_y)
    assert lk.information.conditional_entropy(TABLE, given=1).value + of_x != pytest.approx(joint)
    assert lk.mutual_information(TABLE).value == pytest.approx(of_x + of_y - joint)
    assert lk.mutual_information(TABLE).value == pytest.approx(
        of_y - lk.information.conditional_entropy(TABLE, given=0).value
    )


def test_counts_come_with_an_error_that_holds():
    rng = np.random.default_rng(0)
    truth = lk.mutual_information(TABLE)
    assert truth.error == 0
    found = [lk.mutual_information(rng.multinomial(2000, TABLE.ravel()).reshape(TABLE.shape)) for _ in range(100)]
    scaled = [(e.value - truth.value) / e.error for e in found]
    assert 0.7 < np.std(scaled) < 1.4


def test_counts_against_scikit_learn():
    counts = np.array([[30, 10, 2], [5, 50, 20]])
    plain = mutual_info_score(None, None, contingency=counts)
    assert lk.mutual_information(counts / counts.sum()).value == pytest.approx(plain)
    assert lk.mutual_information(counts).value == pytest.approx(plain - (6 - 2 - 3 + 1) / (2 * 117))  # Miller and Madow


@pytest.mark.parametrize(
    "counts", [[[5, 0], [0, 5]], [[1, 0], [0, 1]], [[5, 0, 0], [0, 5, 1], [0, 0, 1]], [[2, 0]] * 2]
)
def test_counts_say_no_more_than_the_entropy_of_either_side(counts):
    shares = np.array(counts) / np.sum(counts)
    most = min(entropy_of(shares.sum(axis=axis)) for axis in (0, 1))
    value = lk.mutual_information(counts).value
    assert 0 <= value <= most + 1e-12
    rows, columns = np.nonzero(counts)
    repeated = [np.repeat(side, np.array(counts)[rows, columns]) for side in (rows, columns)]
    if len(repeated[0]) > 4:
        few = [side.astype(float) for side in repeated]  # too rare to be counted: by neighbors
        assert lk.mutual_information(*few).value <= most + 1e-12


def test_few_labels_beside_numbers_say_no_more_than_their_entropy():
    rng = np.random.default_rng(1)
    for seed in range(5):
        label = np.repeat([0.0, 1.0], 15 + seed)
        x = 100 * label + rng.random(len(label))
        assert lk.mutual_information(x, label).value <= np.log(2) + 1e-12


def test_scattered_counts_are_no_dependence():
    """200 rows in 100 cells: the plain sum is 0.2 nats off."""
    rng = np.random.default_rng(4)
    tables = [rng.multinomial(200, np.full(100, 0.01)).reshape(10, 10) for _ in range(300)]
    found = [lk.mutual_information(table) for table in tables]
    assert np.mean([e.value < 2 * e.error for e in found]) > 0.95
    assert np.mean([e.error for e in found]) < 0.12


def test_tables_by_name():
    table = lk.distributions.ProbabilityTable.joint(TABLE, {"x": ["a", "b"], "y": [0, 1, 2]})
    assert lk.mutual_information(table).value == pytest.approx(lk.mutual_information(TABLE).value)
    assert lk.mutual_information(table, split="y", bits=True).value == pytest.approx(
        lk.mutual_information(TABLE).value / math.log(2)
    )
    assert lk.information.conditional_entropy(table, given="x").value == pytest.approx(
        lk.information.conditional_entropy(TABLE, 0).value
    )
    three = lk.distributions.ProbabilityTable.joint(np.full((2, 2, 2), 1 / 8), {"a": [0, 1], "b": [0, 1], "c": [0, 1]})
    assert lk.mutual_information(three, split="a", given="c").value == 0


def test_gaussians_in_closed_form():
    distribution = lk.Gaussian(np.zeros(3), SPREAD)
    expected = 0.5 * math.log(SPREAD[0, 0] * np.linalg.det(SPREAD[1:, 1:]) / np.linalg.det(SPREAD))
    assert lk.mutual_information(distribution, split=[0]).value == pytest.approx(expected)
    assert lk.mutual_information(distribution, split=[1, 2]).value == pytest.approx(expected)
    assert lk.mutual_information(distribution, split=-3).value == pytest.approx(expected)
    chain = (
        lk.information.conditional_entropy(distribution, given=[0]).value + lk.entropy(distribution.marginal([0])).value
    )
    assert chain == pytest.approx(lk.entropy(distribution).value)
    stack = lk.Gaussian(np.zeros((2, 3)), np.stack([SPREAD, np.eye(3)]))
    assert lk.mutual_information(stack, split=[0]).value == pytest.approx([expected, 0.0])


@pytest.mark.slow
def test_mixtures_by_draws_against_a_grid():
    distribution = lk.Mixture([0.3, 0.7], lk.Gaussian([[0.0, 0.0], [3.0, 3.0]], 1.0))
    x = np.linspace(-7, 10, 341)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    p = np.exp(distribution.log_prob(grid.reshape(-1, 2))).reshape(341, 341) * (x[1] - x[0]) ** 2
    truth = lk.mutual_information(p / p.sum()).value
    found = lk.mutual_information(distribution, split=[0])
    assert abs(found.value - truth) < 4 * found.error < 0.02
    given = lk.information.conditional_entropy(distribution, given=[0])
    alone = lk.entropy(lk.Mixture(distribution.weights, distribution.components.marginal([0])))
    both = lk.entropy(distribution)
    assert abs(given.value + alone.value - both.value) < 5 * (given.error + both.error)


def test_unlike_parts():
    p = lk.Product({"a": lk.Gaussian([[0.0], [3.0]], 1.0), "b": lk.Categorical([[0.9, 0.1], [0.2, 0.8]])})
    assert lk.mutual_information(p.member(0), split="a").value == 0
    assert lk.information.conditional_entropy(p.member(0), given="a").value == pytest.approx(entropy_of([0.9, 0.1]))
    mixed = lk.Mixture([0.3, 0.7], p)
    found = lk.mutual_information(mixed, split="a")
    x = np.linspace(-8, 11, 20_001)
    each = np.exp(p["a"].log_prob(x[:, None])) * [0.3, 0.7]
    joint = each @ p["b"].probs * (x[1] - x[0])
    assert abs(found.value - lk.mutual_information(joint / joint.sum()).value) < 4 * found.error


def test_t_distributions_know_of_each_other_though_uncorrelated():
    assert lk.mutual_information(lk.StudentT([0.0, 0.0], 1.0, 3.0), split=[0]).value > 0.01


# ------------------------------------------------------------------- nearest neighbors


@pytest.mark.parametrize(("rho", "k"), [(0.0, 4), (0.6, 4), (0.9, 4), (0.6, 10)])
def test_neighbors_on_gaussians(rho, k):
    rng, found = np.random.default_rng(5), []
    for _ in range(30):
        z = rng.normal(size=(400, 2))
        y = rho * z[:, 0] + math.sqrt(1 - rho**2) * z[:, 1]
        found.append(lk.mutual_information(1e6 * z[:, 0] + 7, y, n_neighbors=k))
    values, errors = np.array([e.value for e in found]), np.array([e.error for e in found])
    assert abs(values.mean() + 0.5 * math.log(1 - rho**2)) < 4 * values.std() / math.sqrt(30) + 0.015
    assert 0.6 < values.std() / errors.mean() < 1.6


def test_neighbors_against_scikit_learn_and_labels():
    rng = np.random.default_rng(6)
    z = rng.integers(0, 3, 2000)
    x = z + 0.5 * rng.normal(size=2000)
    y = x + rng.normal(size=2000)
    peer = mutual_info_regression(x[:, None], y, n_neighbors=4, random_state=0)[0]
    assert lk.mutual_information(x, y).value == pytest.approx(peer, abs=0.01)
    parts = lk.Product({"x": lk.Gaussian([[0.0], [1.0], [2.0]], 0.25), "z": lk.Categorical(np.eye(3))})
    truth = lk.mutual_information(lk.Mixture(np.full(3, 1 / 3), parts), split="x").value
    for labels in (z, np.array(["a", "b", "c"])[z]):
        found = lk.mutual_information(labels, x)
        assert abs(found.value - truth) < 4 * found.error


def test_repeated_rows_are_a_table():
    rng = np.random.default_rng(7)
    z = rng.integers(0, 3, 2000)
    y = np.where(rng.random(2000) < 0.7, z, rng.integers(0, 3, 2000))
    counts = np.histogram2d(z, y, 3)[0]
    assert lk.mutual_information(z, y).value == pytest.approx(lk.mutual_information(counts).value, abs=0.02)


@pytest.mark.parametrize("case", ["rounded", "counts", "zeros"])
def test_values_that_repeat(case):
    """Rounded numbers, thinned counts, and a column of which half is one value."""
    rng, found = np.random.default_rng(9), []
    for _ in range(4):
        z = rng.normal(size=(2000, 2))
        a, b = np.round(z[:, 0], 1), np.round(np.round(z[:, 0], 1) + z[:, 1], 1)
        if case == "counts":
            a = rng.poisson(50, 2000)
            b = rng.binomial(a, 0.5)
        if case == "zeros":
            a, b = np.maximum(z[:, 0], 0.0), (z[:, 0] > 0) + 0.5 * z[:, 1]
        found.append(lk.mutual_information(a, b))
    parts = lk.Product({"x": lk.Gaussian([[0.0], [1.0]], 0.25), "z": lk.Categorical(np.eye(2))})
    halves = lk.mutual_information(lk.Mixture([0.5, 0.5], parts), split="x").value
    truth = {"rounded": 0.3466, "counts": 0.3483, "zeros": halves}[case]
    assert np.mean([e.value for e in found]) == pytest.approx(truth, abs=0.03)
    assert all(abs(e.value - truth) < 3 * e.error < 0.2 for e in found)


def test_rows_with_themselves():
    rng = np.random.default_rng(10)
    z, labels = rng.normal(size=1000), rng.integers(0, 4, 1000)
    assert lk.mutual_information(z, z).value == lk.mutual_information(z, 3 - 2 * z).value == math.inf
    with pytest.warns(lk.FitWarning, match="function of the other"):
        assert lk.mutual_information(z, z**2).error > 0.3
    found = lk.mutual_information(labels, labels)
    assert abs(found.value - math.log(4)) < 3 * found.error
    assert lk.mutual_information([0, 1] * 50, [0, 1] * 50).error > 0


def test_missing_values_are_left_out_and_bad_rows_named():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 2))
    y = x[:, :1] + rng.normal(size=(300, 1))
    gappy = np.vstack([x, [[np.nan, 1.0]]])
    assert lk.mutual_information(gappy, np.vstack([y, [[0.0]]])) == lk.mutual_information(x, y)
    x[7, 1] = np.inf
    with pytest.raises(lk.DataError, match="row 7, column 1"):
        lk.mutual_information(x, y)
    with pytest.raises(lk.ShapeError, match="pair by pair"):
        lk.mutual_information(x[:5], y)
    with pytest.raises(lk.DomainError, match="neighbors"):
        lk.mutual_information(y, y, n_neighbors=300)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: lk.mutual_information(np.ones(3)), "two variables"),
        (lambda: lk.mutual_information([[0.5, -0.1], [0.3, 0.3]]), "not negative"),
        (lambda: lk.mutual_information(lk.Gaussian([0.0, 0.0], 1.0)), "split"),
        (lambda: lk.mutual_information(lk.Gaussian([0.0, 0.0], 1.0), split=[2]), "one side"),
        (lambda: lk.mutual_information(lk.Gaussian([0.0, 0.0], 1.0), split=[0, 1]), "one side"),
        (lambda: lk.information.conditional_entropy(TABLE, given=2), "axis"),
        (lambda: lk.mutual_information([[0.3, 0.1], [0.05, 0.7]]), "adds to 1.15: divide"),
        (lambda: lk.information.conditional_entropy([[0.3, 0.1], [0.05, 0.7]]), "adds to 1.15: divide"),
    ],
)
def test_refusals(wrong, match):
    with pytest.raises(lk.LikelyError, match=match):
        wrong()


@pytest.mark.parametrize("share", [0.5500001, 0.5509, 0.5491])
def test_rounded_probabilities_are_no_counts(share):
    table = np.array([[0.3, 0.1], [0.05, share]])
    exact = table / table.sum()
    assert lk.mutual_information(table) == pytest.approx(lk.mutual_information(exact))
    assert lk.mutual_information(exact.astype(np.float32)).value == pytest.approx(lk.mutual_information(exact).value)
    assert lk.mutual_information(exact.astype(np.float32)).error == 0
    assert lk.information.conditional_entropy(table).value == pytest.approx(
        lk.information.conditional_entropy(exact).value
    )
    assert lk.mutual_information([[30.0, 10.0], [5.0, 55.0]]).error > 0  # integers are counts
    assert lk.mutual_information(100 * np.array([[0.3, 0.1], [0.05, 0.55]])).error > 0  # 55.00000000000001 too

"""Imputation in sequences by an HMM, against enumeration of all paths and against mixtures of single frames."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import likely as lk
from likely.core.columns import Columns
from likely.core.errors import DataError
from likely.core.ragged import Ragged
from likely.imputation.impute import impute

NAN = np.nan
STARTS, MOVES = [0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]]
FULL = lk.Gaussian([[0.0, 1.0], [4.0, -1.0]], [[[1.0, 0.7], [0.7, 2.0]], [[1.0, -0.5], [-0.5, 1.0]]])
X = np.array([[0.3, NAN], [NAN, NAN], [3.0, -0.2], [NAN, 0.5]])


def by_all_paths(model: lk.HMM, x: np.ndarray) -> np.ndarray:
    """E[x_t | x] with every path of states weighed by its probability."""
    logs, K = model.emission.log_prob(x), model.states
    total, mass = np.zeros(x.shape), 0.0
    each = [impute(model.emission.member(k), x) for k in range(K)]
    for path in product(range(K), repeat=len(x)):
        p = model.initial[path[0]] * np.prod([model.transition[a, b] for a, b in pairwise(path)])
        p *= np.exp(sum(logs[t, s] for t, s in enumerate(path)))
        p *= 1.0 if model.final is None else model.final[path[-1]]
        total += p * np.stack([each[s][t] for t, s in enumerate(path)])
        mass += p
    return total / mass


@pytest.mark.parametrize("ends", [False, True])
def test_expectations_are_those_over_all_paths(ends: bool) -> None:
    moves = np.array(MOVES)
    model = lk.HMM(STARTS, moves * [[0.9], [0.5]], FULL, final=[0.1, 0.5]) if ends else lk.HMM(STARTS, moves, FULL)
    assert_allclose(impute(model, X), by_all_paths(model, X), rtol=1e-12)


def test_emissions_that_are_mixtures() -> None:
    mixed = lk.Mixture(
        [[0.5, 0.5], [0.9, 0.1]], lk.Gaussian([[0.0, 0.0], [1.0, 5.0], [4.0, 4.0], [9.0, 9.0]], np.eye(2))
    )
    model = lk.HMM(STARTS, MOVES, mixed)
    assert_allclose(impute(model, X), by_all_paths(model, X), rtol=1e-10)


def test_tied_emissions() -> None:
    tied = lk.HMM([0.5, 0.3, 0.2], np.full((3, 3), 1 / 3), lk.distributions.Tied(FULL, [0, 1, 0]))
    assert_allclose(impute(tied, X), by_all_paths(tied, X), rtol=1e-12)


def test_draws_have_the_mean_and_the_memory_of_the_chain() -> None:
    sticky = lk.HMM([0.5, 0.5], [[0.99, 0.01], [0.01, 0.99]], lk.Gaussian([[0.0], [10.0]], 1.0))
    x = np.array([NAN, NAN, NAN])
    rng = np.random.default_rng(0)
    draws = impute(sticky, [x] * 4000, rng)
    high = np.stack(draws) > 5.0
    assert abs(high.mean() - 0.5) < 0.03
    assert (high[:, 0] == high[:, 2]).mean() > 0.96  # gaps of one sequence are drawn together
    means = np.mean(impute(lk.HMM(STARTS, MOVES, FULL), [X] * 3000, rng), axis=0)
    assert_allclose(means, by_all_paths(lk.HMM(STARTS, MOVES, FULL), X), atol=0.15)


def test_sequences_come_back_as_they_came() -> None:
    model = lk.HMM(STARTS, MOVES, FULL)
    whole = np.array([[1.0, 2.0]])
    a, b = impute(model, [X, whole])
    assert_array_equal(b, whole)
    assert_allclose(a, impute(model, X))
    ragged = impute(model, Ragged.from_list([whole, X, whole]))
    assert isinstance(ragged, Ragged)
    assert_allclose(ragged[1], a)
    assert_array_equal(ragged[0], whole)
    assert impute(model, np.stack([X, X])).shape == (2, 4, 2)
    seen = ~np.isnan(X)
    assert_array_equal(a[seen], X[seen])
    assert impute(model, [X.astype(np.float32)])[0].dtype == np.float32


def test_levels_and_products() -> None:
    words = lk.Categorical([[0.9, 0.1], [0.1, 0.9]], ["a", "b"])
    model = lk.HMM(STARTS, [[0.99, 0.01], [0.01, 0.99]], words)
    x = np.array(["b", None, "b", None], dtype=object)
    assert impute(model, x).tolist() == ["b", "b", "b", "b"]
    both = lk.Product([("size", lk.Gaussian([[0.0], [9.0]], 1.0)), ("word", words)])
    chain = lk.HMM(STARTS, [[0.99, 0.01], [0.01, 0.99]], both)
    out = impute(chain, [Columns(size=[[0.1], [NAN], [0.3]], word=np.array([None, "a", None], dtype=object))])[0]
    assert out["word"].tolist() == ["a", "a", "a"]
    assert abs(out["size"][1, 0]) < 0.2


def test_drawn_missing_values_follow_the_path_that_all_frames_allow() -> None:
    """The first frames say state 0, the later ones state 1, and no move joins them: only state 1 explains them all."""
    model = lk.HMM(STARTS, np.eye(2), lk.Gaussian([[0.0], [100.0]], 1.0))
    x = np.array([0.0, 0.0, NAN, 100.0, 100.0, 100.0])
    drawn = [float(np.ravel(impute(model, x, rng=np.random.default_rng(seed)))[2]) for seed in range(5)]
    assert all(abs(one - 100.0) < 6 for one in drawn) and len(set(drawn)) == 5


def test_a_mixture_of_chains_shares_each_sequence() -> None:
    stack = lk.HMM([[1.0], [1.0]], [[[1.0]], [[1.0]]], lk.Gaussian([[0.0, 0.0], [5.0, 5.0]], np.eye(2)))
    mixture = lk.Mixture([0.5, 0.5], stack)
    out = impute(mixture, [np.array([[0.0, 0.0], [NAN, NAN]]), np.array([[5.0, NAN], [NAN, 5.0]])])
    assert_allclose(out[0][1], [0.0, 0.0], atol=1e-3)
    assert_allclose(out[1], 5.0, atol=1e-3)


def test_neighbors_tell_more_than_the_frame_alone() -> None:
    truth = lk.HMM([0.5, 0.5], [[0.95, 0.05], [0.05, 0.95]], lk.Gaussian([[0.0, 0.0], [3.0, 3.0]], np.eye(2)))
    rng = np.random.default_rng(4)
    x = truth.sample(30, rng, 100)
    holed = np.where(rng.random((len(x.values), 1)) < 0.3, NAN, x.values)
    seqs = Ragged(holed, x.offsets)
    gap = np.isnan(holed)
    chain = lk.HMMDensity(lk.GaussianDensity(), 2, random_state=0).fit(seqs)
    mixture = lk.MixtureDensity(lk.GaussianDensity(), 2, random_state=0).fit(holed[~gap.any(axis=1)])
    ours = np.mean((chain.impute(seqs).values - x.values)[gap] ** 2)
    theirs = np.mean((mixture.impute(holed) - x.values)[gap] ** 2)
    assert ours < 0.7 * theirs


@pytest.mark.slow
def test_the_estimator_gives_back_lists_tables_and_one_array() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = [rng.normal(0, 1, (20, 2)) for _ in range(6)]
    x[2][3] = NAN
    h = lk.HMMDensity(lk.GaussianDensity(), 2, random_state=0).fit(x)
    filled = h.impute(x)
    assert isinstance(filled, list)
    assert not np.isnan(filled[2]).any()
    assert_array_equal(filled[0], x[0])
    assert_allclose(h.impute(x[2]), filled[2])
    tables = [pd.DataFrame(a, columns=["u", "v"]) for a in x]
    back = h.impute(tables)[2]
    assert list(back.columns) == ["u", "v"]
    assert_allclose(back.to_numpy(), filled[2])
    drawn = h.impute(x, random_state=0)
    assert not np.allclose(drawn[2][3], filled[2][3])
    one = lk.HMMDensity(lk.GaussianDensity(), 2, random_state=0).fit([a[:, 0] for a in x])
    assert one.impute([a[:, 0] for a in x])[2].shape == (20,)
    words = [np.where(a[:, 0] > 0, "p", "n").astype(object) for a in x]
    words[0][4] = None
    levels = lk.HMMDensity(lk.CategoricalDensity(), 2, random_state=0).fit(words)
    assert levels.impute(words)[0][4] in ("p", "n")


def test_what_cannot_be_is_refused_in_words() -> None:
    model = lk.HMM([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], lk.Categorical([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]))
    with pytest.raises(DataError, match="positive probability"):
        impute(model, np.array(["b", None], dtype=object))

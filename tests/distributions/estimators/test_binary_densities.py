"""Densities of dependent binary columns and of few levels: in classifiers and streams, on real data, with hazards."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import likely as lk
from tests.reliability.test_hazards_of_estimators import ANSWERED, GAPS, REFUSED

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data")
DENSITIES = {
    "walsh": lk.distributions.WalshDensity(), "log walsh": lk.distributions.WalshDensity(2, log=True),
    "bahadur": lk.distributions.BahadurDensity(),
    "tree": lk.ChowLiuTreeDensity(),
}  # fmt: skip
POSITIVE = {name: density for name, density in DENSITIES.items() if name in ("log walsh", "tree")}

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")


def parity(n=400, d=5, seed=0):
    """Two classes with even coins in every column: only pairs tell them apart."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, d)).astype(float)
    y = rng.integers(0, 2, n)
    flip = rng.random(n) < 0.1
    x[:, 1] = np.where((y == 1) ^ flip, x[:, 0], 1 - x[:, 0])
    return x, y


@pytest.mark.parametrize("name", DENSITIES)
def test_pairs_tell_what_columns_do_not(name):
    X, y = parity()
    alone = lk.BayesClassifier(lk.BernoulliDensity()).fit(X[:200], y[:200]).score(X[200:], y[200:])
    found = lk.BayesClassifier(DENSITIES[name]).fit(X[:200], y[:200]).score(X[200:], y[200:])
    assert alone < 0.65 and found > 0.83


@pytest.mark.parametrize("name", DENSITIES)
def test_chunks_are_the_batch_and_minus_one_is_zero(name):
    X, _ = parity()
    density = DENSITIES[name]
    whole, parts = clone(density).fit(X), clone(density)
    for a in range(0, 400, 123):
        parts.partial_fit(X[a : a + 123])
    assert np.abs(parts.score_samples(X) - whole.score_samples(X)).max() <= 1e-9
    signs = clone(density).fit(2 * X - 1)
    assert np.allclose(signs.score_samples(2 * X - 1), whole.score_samples(X), atol=1e-12)
    sparse = clone(density).fit(scipy.sparse.csr_array(X))
    assert np.allclose(sparse.score_samples(scipy.sparse.csr_array(X)), whole.score_samples(X), atol=1e-12)
    assert clone(density).fit(X.astype(np.float32)).score_samples(X.astype(np.float32)).dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_leave_one_out_is_learning_without_the_row(name):
    X, y = parity(30)
    clf = lk.BayesClassifier(DENSITIES[name])
    found = clf.leave_one_out(X, y)
    for i in (0, 7, 19):
        rest = np.arange(30) != i
        want = clone(clf).fit(X[rest], y[rest]).log_posterior(X[i : i + 1])[0]
        assert np.allclose(found[i], want, atol=1e-7)


def test_quietly_binary_and_loudly_not():
    import warnings

    X, _ = parity(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.distributions.WalshDensity(2, log=True).fit(2 * X - 1)
    with pytest.warns(lk.FitWarning, match="x0.*not all 0 and 1"):
        lk.distributions.WalshDensity(2, log=True).fit(X * 3)
    with pytest.raises(lk.DataError, match="must be 0 or 1"):
        lk.distributions.BahadurDensity(threshold=None).fit(X * 3)


def test_trees_grow_levels_and_meet_strangers():
    t = lk.ChowLiuTreeDensity().partial_fit([[0, 1], [1, 1], [0, 0]]).partial_fit([[-1, 1], [-1, 0]])
    whole = lk.ChowLiuTreeDensity().fit([[0, 1], [1, 1], [0, 0], [-1, 1], [-1, 0]])
    assert np.allclose(t.score_samples([[-1, 1], [1, 0]]), whole.score_samples([[-1, 1], [1, 0]]))
    assert t.score_samples([[7, 1]])[0] == -np.inf
    clf = lk.BayesClassifier(lk.ChowLiuTreeDensity()).fit(
        [[0, 1], [1, 1], [0, 0], [1, 0]] * 5, ["a", "b", "a", "b"] * 5
    )
    assert np.allclose(clf.predict_proba([[9, 1]]), clf.predict_proba([[np.nan, 1]]))
    assert clf.decide([[9, 1]], novelty=0.1)[0] is lk.NOVEL


@pytest.mark.slow
def test_missing_values_in_a_classifier():
    X, y = parity(600)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    for density in POSITIVE.values():
        assert lk.BayesClassifier(density).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.75


@pytest.mark.some_cases(30)
@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")
@pytest.mark.parametrize("hazard", [*ANSWERED, *GAPS])
@pytest.mark.parametrize("name", POSITIVE)
def test_hazards_that_have_an_answer(name, hazard):
    X, y = {**ANSWERED, **GAPS}[hazard]()
    density = POSITIVE[name]
    if np.shape(X)[1] > 20 and name == "log walsh":
        with pytest.raises(lk.DomainError, match="ChowLiuTreeDensity"):
            lk.BayesClassifier(density).fit(X, y)
        return
    assert np.isfinite(clone(density).fit(X).score_samples(X)).all()
    P = lk.BayesClassifier(density).fit(X, y).predict_proba(X)
    assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("hazard", REFUSED)
@pytest.mark.parametrize("name", DENSITIES)
def test_hazards_that_are_refused(name, hazard):
    make, says = REFUSED[hazard]
    X, _ = make()
    with pytest.raises((ValueError, TypeError), match=says):
        clone(DENSITIES[name]).fit(X)


def promoters():
    path = DATA / "bio" / "promoters.csv"
    if not path.exists():
        pytest.skip("no data: promoters.csv is not here")
    cells = [line.split(",") for line in path.read_text().split()[1:]]
    X = np.array([list(c[2].lower()) for c in cells])
    bits = np.stack([X == base for base in "acgt"], axis=2).reshape(len(X), -1).astype(float)
    return bits, np.array([c[0] for c in cells])


@pytest.mark.campaign
def test_promoters_of_228_bits():
    """106 sequences of 57 bases: ten folds, with published errors of 4 to 13 % for methods that know no biology."""
    X, y = promoters()
    wrong = 0
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        clf = lk.BayesClassifier(lk.ChowLiuTreeDensity())
        wrong += int((clf.fit(X[train], y[train]).predict(X[test]) != y[test]).sum())
    assert wrong <= 25


@pytest.mark.parametrize("name", POSITIVE)
def test_missing_values_are_filled_by_what_was_seen(name):
    X, _ = parity(300)
    X[:, 1] = X[:, 0]
    fitted = clone(POSITIVE[name]).fit(X)
    row = np.array([[1.0, np.nan, 0.0, np.nan, 1.0]])
    cells = np.repeat(row, 4, axis=0)
    cells[:, [1, 3]] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    p = np.exp(fitted.score_samples(cells))
    want = (p / p.sum()) @ cells
    assert np.allclose(fitted.impute(row)[0], want, atol=1e-10)
    drawn = fitted.impute(np.repeat(row, 4000, axis=0), random_state=0)
    assert np.abs(drawn.mean(axis=0) - want).max() <= 5 * 0.5 / np.sqrt(4000)
    both = lk.BayesClassifier(POSITIVE[name]).fit(X, X[:, 2])
    assert np.isfinite(lk.impute(both.model_, row)).all()


def test_columns_that_look_like_numbers_are_reported():
    rng = np.random.default_rng(0)
    with pytest.warns(lk.FitWarning, match="2 columns look like real numbers.*probability 0.*bin them"):
        lk.ChowLiuTreeDensity().fit(rng.normal(size=(100, 2)))
    with pytest.warns(lk.FitWarning, match=r"1 column looks like real numbers .*\(x1: 30 values\)"):
        lk.ChowLiuTreeDensity().fit(
            np.column_stack([np.arange(30) % 3, rng.normal(size=30)])
        )  # few rows, no value twice
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.ChowLiuTreeDensity().fit(np.column_stack([np.arange(30) % 3, 0.5 * (np.arange(30) % 7)]))


def test_a_tree_with_missing_values_learns_by_em():
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.random((500, 4)) < 0.2, axis=1) % 2.0
    x[rng.random(x.shape) < 0.25] = np.nan
    tree = lk.ChowLiuTreeDensity(prior=None, tol=1e-9).fit(x)
    assert tree.report_.converged and tree.n_iter_ > 2
    assert tree.report_.trace[-1] == pytest.approx(tree.score_samples(x).sum(), rel=1e-6)
    assert tree.model_.edges == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize(
    "density", [lk.distributions.WalshDensity(2, log=True), lk.distributions.BahadurDensity(), lk.BernoulliDensity()]
)
@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decide"])
def test_rows_to_decide_that_are_not_binary_are_reported_once(density, ask):
    X, y = parity(100)
    clf = lk.BayesClassifier(density, novelty=0.05).fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        getattr(clf, ask)(X[:3])
        assert not [note for note in said if "0 and 1" in str(note.message)]
        getattr(clf, ask)([[5, 0.3, -3, 0, 1]])
    told = [str(note.message) for note in said if "0 and 1" in str(note.message)]
    assert len(told) == 1 and "x0, x1, x2" in told[0]


def test_notes_keep_the_names_of_what_to_use_instead():
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2
    for estimator in (lk.ChowLiuTreeDensity(), lk.BayesClassifier(lk.ChowLiuTreeDensity())):
        with pytest.warns(lk.FitWarning, match="^ChowLiuTreeDensity: .* use GaussianDensity or KernelDensity"):
            estimator.fit(X, y)


def test_words_are_refused_with_a_way_to_give_them():
    X = [["y", "n"], ["n", "y"], ["y", "y"]]
    with pytest.raises(ValueError, match=r"got 'y' at row 0: .*ChowLiuTreeDensity\(words="):
        lk.ChowLiuTreeDensity().fit(X)
    with pytest.raises(ValueError, match=r"got 'y' at row 0: .*ChowLiuTreeDensity\(words="):
        lk.distributions.WalshDensity().fit(X)
    assert lk.ChowLiuTreeDensity(words=[["n", "y"]] * 2).fit(X).score_samples([["y", "q"]])[0] == -np.inf

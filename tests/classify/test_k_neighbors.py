"""KNeighborsClassifier: votes by hand and by scikit-learn, priors as densities say, weights as copies, real data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import likely as lk
from likely.core.errors import DomainError, FitWarning

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def rows(n=300, d=3, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) + 0.8 * y[:, None], y


@pytest.mark.parametrize(("metric", "theirs"), [("l2", "euclidean"), ("l1", "manhattan"), ("linf", "chebyshev")])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_votes_as_in_scikit_learn(metric, theirs, weights):
    X, y = rows()
    Q, _ = rows(50, seed=1)
    ours = lk.KNeighborsClassifier(7, metric, weights=weights, smoothing=1e-12).fit(X, y)
    other = KNeighborsClassifier(7, weights=weights, metric=theirs).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(Q), other.predict_proba(Q), atol=1e-11)
    away, found = ours.kneighbors(Q, 4)
    expected = NearestNeighbors(n_neighbors=4, metric=theirs).fit(X).kneighbors(Q)
    np.testing.assert_allclose(away, expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found, expected[1])


def test_missing_values_as_scikit_learn_measures_them():
    X, y = rows(100)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    from sklearn.metrics.pairwise import nan_euclidean_distances

    away, _ = lk.KNeighborsClassifier(3).fit(X, y).kneighbors(X, 5)
    D = np.nan_to_num(nan_euclidean_distances(X, X), nan=np.inf)
    np.testing.assert_allclose(away, np.sort(D, axis=1)[:, :5], atol=1e-7)


def test_posteriors_by_hand():
    X, y = [[0.0], [1.0], [2.0], [8.0], [9.0]], ["a", "a", "a", "b", "b"]
    m = lk.KNeighborsClassifier(3).fit(X, y)
    np.testing.assert_allclose(m.predict_proba([[8.4]]), [[(1 + 0.6) / 4, (2 + 0.4) / 4]])
    np.testing.assert_allclose(m.predict_proba([[0.0]]), [[(3 + 0.6) / 4, 0.4 / 4]])
    assert np.isfinite(m.log_posterior([[1e9]])).all()


def test_priors_change_as_densities_say():
    """p(x | c) = k_c / (N_c V): with other priors, posteriors are p(c) k_c / N_c, normalized."""
    X, y = rows(400, classes=2)
    keep = (y == 0) | (np.arange(400) % 4 == 0)
    X, y = X[keep], y[keep]
    Q, _ = rows(20, seed=1)
    prior = np.array([0.2, 0.8])
    m = lk.KNeighborsClassifier(15, class_prior=prior, smoothing=1e-9).fit(X, y)
    votes = m._voters.votes(Q, 15)[0]
    expected = prior * votes / np.bincount(y)
    np.testing.assert_allclose(m.predict_proba(Q), expected / expected.sum(axis=1, keepdims=True), atol=1e-7)
    plain = lk.KNeighborsClassifier(15, smoothing=2.0).fit(X, y)
    changed = lk.change_prior(plain.predict_proba(Q), plain.class_prior_, prior)
    np.testing.assert_allclose(plain.with_class_prior(prior).predict_proba(Q), changed, rtol=1e-10)
    decided = plain.decide(Q, class_prior=prior)
    np.testing.assert_array_equal(decided, plain.with_class_prior(prior).predict(Q))


@pytest.mark.parametrize("how", [{}, {"weights": "distance"}, {"metric": "mahalanobis"}, {"prototypes": "edited"}])
def test_integer_weights_are_copies(how):
    X, y = rows(120)
    w = np.random.default_rng(2).integers(0, 4, 120)
    copies = np.repeat(np.arange(120), w)
    Q, _ = rows(30, seed=1)
    ours = lk.KNeighborsClassifier(6, **how).fit(X, y, w)
    other = lk.KNeighborsClassifier(6, **how).fit(X[copies], y[copies])
    np.testing.assert_allclose(ours.predict_proba(Q), other.predict_proba(Q), atol=1e-9)
    if "prototypes" not in how:
        first = np.searchsorted(copies, np.flatnonzero(w))
        np.testing.assert_allclose(ours.leave_one_out(), other.leave_one_out()[first], atol=1e-9)


def test_fractions_of_weight_make_more_neighbors():
    X, y = rows(100)
    Q, _ = rows(20, seed=1)
    half = lk.KNeighborsClassifier(3).fit(X, y, np.full(100, 0.5))
    np.testing.assert_allclose(
        half.predict_proba(Q), lk.KNeighborsClassifier(6, smoothing=2.0).fit(X, y).predict_proba(Q)
    )


def test_leave_one_out_by_leaving_each_row_out():
    X, y = rows(60)
    m = lk.KNeighborsClassifier(5).fit(X, y)
    votes = m._voters.votes_left_out(5)[0]
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        np.testing.assert_array_equal(
            votes[i], lk.KNeighborsClassifier(5).fit(X[rest], y[rest])._voters.votes(X[[i]], 5)[0][0]
        )


def test_k_is_chosen_by_the_errors_or_the_log_score_of_rows_left_out():
    X, y = rows(400)
    m = lk.KNeighborsClassifier("leave-one-out").fit(X, y)
    ks, errors, logs = m.left_out_scores_.T
    assert (
        errors[ks == m.n_neighbors_] == errors.min()
        and logs[ks == m.n_neighbors_] == logs[errors == errors.min()].max()
    )
    assert lk.KNeighborsClassifier("leave-one-out", criterion="log").fit(X, y).n_neighbors_ == ks[logs.argmax()] > 5
    one = lk.KNeighborsClassifier(7).fit(X, y)
    told = one._posterior(one._voters.votes_left_out(7)[0])  # with the class sizes of all rows
    assert logs[ks == 7][0] == pytest.approx(told[np.arange(400), y].mean(), rel=1e-12)
    assert errors[ks == 7][0] == pytest.approx((told.argmax(axis=1) != y).mean(), rel=1e-12)
    with pytest.raises(ValueError, match="criterion"):
        lk.KNeighborsClassifier(criterion="accuracy").fit(X, y)
    assert lk.KNeighborsClassifier([3, 50]).fit(X, y).n_neighbors_ in (3, 50)
    with pytest.raises(lk.DomainError, match="integers"):
        lk.KNeighborsClassifier([2.5]).fit(X, y)


def strict_islands(n, seed):
    """Islands, each of one class, some labels wrong: one island is told by few rows, and is sure of itself."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 40, n)
    X = np.stack([at % 8, at // 8], axis=1) * 10.0 + rng.normal(size=(n, 2))
    y = np.array([0, 1, 1, 0, 1, 0, 0, 1])[at % 8] ^ (at // 8) % 2
    return X, np.where(rng.random(n) < 0.04, 1 - y, y)


def test_errors_and_the_log_score_ask_for_different_k():
    X, y = strict_islands(600, 0)
    Z, z = strict_islands(4000, 1)
    few = lk.KNeighborsClassifier("leave-one-out").fit(X, y)
    many = lk.KNeighborsClassifier("leave-one-out", criterion="log").fit(X, y)
    ks, errors, logs = few.left_out_scores_.T
    assert (
        few.n_neighbors_ != many.n_neighbors_
        and errors[ks == few.n_neighbors_] < errors[ks == many.n_neighbors_]
        and logs[ks == few.n_neighbors_] < logs[ks == many.n_neighbors_]
    )
    assert few.score(Z, z) >= many.score(Z, z)
    proper = [m.predict_log_proba(Z)[np.arange(4000), z].mean() for m in (few, many)]
    assert proper[1] > proper[0]


def test_of_equal_errors_the_larger_log_score_decides():
    X = np.concatenate([np.arange(30.0), 100 + np.arange(30.0)])[:, None]  # nobody ever errs
    m = lk.KNeighborsClassifier([1, 3, 10]).fit(X, np.repeat([0, 1], 30))
    ks, errors, logs = m.left_out_scores_.T
    assert (errors == 0).all() and m.n_neighbors_ == ks[logs.argmax()] == 10


def test_k_makes_decisions_cheap_where_mistakes_have_a_price():
    X, y = rows(400)
    cost = [[0.0, 20.0, 1.0], [1.0, 0.0, 1.0], [1.0, 20.0, 0.0]]  # to miss class 1 is dear
    m = lk.KNeighborsClassifier("leave-one-out", cost=cost).fit(X, y)
    ks, paid, _ = m.left_out_scores_.T
    for k, price in zip(ks[::4], paid[::4], strict=True):
        P = np.exp(lk.KNeighborsClassifier(int(k)).fit(X, y).leave_one_out())
        decided = (P @ np.transpose(cost)).argmin(axis=1)
        assert price == pytest.approx(np.mean(np.array(cost)[decided, y]), rel=1e-12)
    assert paid[ks == m.n_neighbors_] == paid.min() < paid.max()
    asked = lk.KNeighborsClassifier("leave-one-out", cost=cost, reject_cost=0.0).fit(X, y)
    assert (asked.left_out_scores_[:, 1] == 0).all()  # who may refuse for nothing pays nothing


def test_k_is_judged_under_the_class_probabilities_that_are_given():
    X, y = rows(300)
    m = lk.KNeighborsClassifier([1, 5, 20], class_prior=[0.1, 0.6, 0.3]).fit(X, y)
    one = lk.KNeighborsClassifier(5, class_prior=[0.1, 0.6, 0.3]).fit(X, y)
    logs = one._posterior(one._voters.votes_left_out(5)[0])
    judging = np.array([0.1, 0.6, 0.3])[y] / np.bincount(y)[y]
    assert m.left_out_scores_[1, 1] == pytest.approx(np.average(logs.argmax(axis=1) != y, weights=judging))
    assert m.left_out_scores_[1, 2] == pytest.approx(np.average(logs[np.arange(300), y], weights=judging))


def test_chunks_equal_the_batch():
    X, y = rows(200)
    Q, _ = rows(30, seed=1)
    for metric in ("l2", "scaled", "mahalanobis"):
        batch = lk.KNeighborsClassifier(5, metric).fit(X, y)
        parts = lk.KNeighborsClassifier(5, metric)
        for i in range(0, 200, 50):
            parts.partial_fit(X[i : i + 50], y[i : i + 50], classes=[0, 1, 2])
        np.testing.assert_allclose(parts.predict_proba(Q), batch.predict_proba(Q), atol=1e-12)
    with pytest.raises(lk.DataError, match="labels must be among"):
        parts.partial_fit(X[:2], [7, 7])


def test_novel_rows_costs_and_rejections():
    X, y = rows(500, classes=2)
    m = lk.KNeighborsClassifier(9).fit(X, y)
    Q, _ = rows(2000, classes=2, seed=1)
    alarms = np.mean([d is lk.NOVEL for d in m.decide(Q, novelty=0.05)])
    assert 0.02 < alarms < 0.09
    done = m.decide([[50.0, 50.0, 50.0]], novelty=0.05, full=True)
    assert done.choice[0] is lk.NOVEL and "neighbor " in done.reasons[0]
    sure = m.predict_proba(Q).max(axis=1)
    refused = np.array([d is lk.REJECT for d in m.decide(Q, reject_below=0.8)])
    np.testing.assert_array_equal(refused, sure < 0.8)
    dear = lk.KNeighborsClassifier(9, cost=[[0.0, 100.0], [1.0, 0.0]]).fit(X, y)
    assert dear.predict(Q).mean() > m.predict(Q).mean() + 0.1


def test_rows_with_nothing_in_common_do_not_vote():
    X = [[0.0, np.nan], [0.1, np.nan], [np.nan, 5.0], [np.nan, 5.1]]
    m = lk.KNeighborsClassifier(3).fit(X, ["a", "a", "b", "b"])
    np.testing.assert_allclose(m.predict_proba([[0.0, np.nan]]), [[2.5 / 3, 0.5 / 3]])
    np.testing.assert_allclose(m.predict_proba([[np.nan, np.nan]]), [[0.5, 0.5]])
    with pytest.raises(lk.DataError, match="needs rows without missing values"):
        lk.KNeighborsClassifier(1, "correlation").fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 0, 1]).predict(
            [[np.nan, 0.0]]
        )


@pytest.mark.filterwarnings("ignore:.*all rows vote")
@pytest.mark.parametrize("trained", ["complete", "gaps"])
def test_mahalanobis_neighbors_by_expected_squared_distances(trained, tmp_path):
    """Against the mean over draws of what is missing, which dense conditional formulas give."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    y = (X[:, 0] > 0).astype(int)
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    if trained == "gaps":
        with pytest.warns(lk.FitWarning, match="KNeighborsClassifier: entries are missing: .* found by EM"):
            m = lk.KNeighborsClassifier(4, "mahalanobis", weights="distance").fit(holes, y)
    else:
        m = lk.KNeighborsClassifier(4, "mahalanobis", weights="distance").fit(X, y)
    known, mean, cov = holes if trained == "gaps" else X, m.distribution_.mean, m.distribution_.covariance
    inverse = np.linalg.inv(m.scale_)

    def conditional(x):
        g, o = np.isnan(x), ~np.isnan(x)
        filled, left = x.copy(), np.zeros((3, 3))
        slope = cov[np.ix_(g, o)] @ np.linalg.inv(cov[np.ix_(o, o)])
        filled[g] = mean[g] + slope @ (x[o] - mean[o])
        left[np.ix_(g, g)] = cov[np.ix_(g, g)] - slope @ cov[np.ix_(o, g)]
        return filled, float((left * inverse).sum())

    a, b = [conditional(x) for x in holes], [conditional(x) for x in known]
    squares = np.array([[(p - q) @ inverse @ (p - q) + s + t for q, t in b] for p, s in a])
    away, _ = m._voters.search.nearest(holes, 4)
    np.testing.assert_allclose(away, np.sqrt(np.sort(squares, axis=1)[:, :4]), rtol=1e-9)
    if trained == "gaps":
        np.fill_diagonal(squares, np.inf)
        away, _ = m._voters.search.nearest_others(4)
        np.testing.assert_allclose(away, np.sqrt(np.sort(squares, axis=1)[:, :4]), rtol=1e-9)
    m.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "m.likely").predict_proba(holes), m.predict_proba(holes))
    assert m.score(holes, y) > 0.7


def test_all_vote_where_there_are_fewer_than_k():
    with pytest.warns(lk.FitWarning, match="all rows vote"):
        m = lk.KNeighborsClassifier(5).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    np.testing.assert_allclose(m.predict_proba([[2.0]]), [[(2 + 2 / 3) / 4, (1 + 1 / 3) / 4]])


def test_error_of_one_neighbor_lies_between_bayes_and_twice_that():
    """Cover and Hart 1967: e ≤ e_NN ≤ 2 e (1 − e), for many rows; here e = Φ(−1) of two Gaussians two apart."""
    rng = np.random.default_rng(0)
    n, m = 20_000, 20_000
    y, truth = rng.integers(0, 2, n), rng.integers(0, 2, m)
    X, Q = rng.normal(size=(n, 1)) + 2 * y[:, None], rng.normal(size=(m, 1)) + 2 * truth[:, None]
    found = np.mean(lk.KNeighborsClassifier(1).fit(X, y).predict(Q) != truth)
    e = float(ndtr(-1.0))
    assert e < found < 2 * e * (1 - e) + 3 * np.sqrt(0.25 / m)
    x = np.linspace(-8, 10, 20_001)
    p = 1 / (1 + np.exp(2 * x - 2))
    density = 0.5 * (np.exp(-(x**2) / 2) + np.exp(-((x - 2) ** 2) / 2)) / np.sqrt(2 * np.pi)
    limit = np.trapezoid(2 * p * (1 - p) * density, x)  # the asymptotic error of the rule itself
    assert found == pytest.approx(limit, abs=4 * np.sqrt(limit / m))


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "digits" / "usps.npz").exists(), reason="no data: the digits are not here")
def test_usps_as_published():
    z = np.load(DATA / "digits" / "usps.npz")
    (X, y), (Q, truth) = ((z[f"x_{p}"].reshape(-1, 256), z[f"y_{p}"]) for p in ("train", "test"))
    wrong = np.sum(lk.KNeighborsClassifier(1).fit(X, y).predict(Q) != truth)
    assert wrong == 113  # of 2007: 5.63 %


@pytest.mark.skipif(not (DATA / "tables" / "satimage_trn.csv").exists(), reason="no data: the table is not here")
def test_satimage_as_published():
    train, test = (np.loadtxt(DATA / "tables" / f"satimage_{p}.csv", delimiter=",", skiprows=1) for p in ("trn", "tst"))
    errors = {}
    for k in (1, 5):
        clf = lk.KNeighborsClassifier(k).fit(train[:, :-1], train[:, -1].astype(int))
        errors[k] = 100 * np.mean(clf.predict(test[:, :-1]) != test[:, -1])
    assert errors == {1: pytest.approx(10.55), 5: pytest.approx(9.55)}


def test_bad_input_is_named():
    X, y = rows(20)
    with pytest.raises(lk.DataError, match="every row needs a label"):
        lk.KNeighborsClassifier().fit(X, [None] + ["a"] * 19)
    X[3, 1] = np.inf
    with pytest.raises(lk.DataError, match="row 3, column 1"):
        lk.KNeighborsClassifier().fit(X, y)
    with pytest.raises(lk.DomainError, match="class_prior"):
        lk.KNeighborsClassifier(class_prior={"x": 1.0}).fit(*rows(20))


@pytest.mark.parametrize("keep", [None, "edited", "condensed"])
def test_weights_are_copies_whatever_is_kept(keep):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(300, 2)), rng.integers(0, 4, 300)
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    copies = np.repeat(np.arange(300), w)
    one = lk.KNeighborsClassifier(3, prototypes=keep).fit(X, y, sample_weight=w)
    other = lk.KNeighborsClassifier(3, prototypes=keep).fit(X[copies], y[copies])
    assert np.allclose(one.predict_proba(X), other.predict_proba(X))


def test_densities_of_kept_rows_count_kept_rows():
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.1).astype(int)
    X = rng.normal(size=(3000, 2)) + 3.0 * y[:, None]
    clf = lk.KNeighborsClassifier(15, prototypes="edited", class_prior="uniform").fit(X, y)
    kept = np.bincount(y[clf.prototype_indices_])
    plain = lk.KNeighborsClassifier(15).fit(X[clf.prototype_indices_], y[clf.prototype_indices_])
    odds = plain.log_posterior(X)[:, 1] - plain.log_posterior(X)[:, 0] - np.log(kept[1] / kept[0])
    told = clf.log_posterior(X)
    assert np.allclose(told[:, 1] - told[:, 0], odds)


def test_numbers_of_neighbors_to_choose_from(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    clf = lk.KNeighborsClassifier(np.array([1, 3, 5])).fit(X, y)
    lk.save(clf, tmp_path / "k.likely")
    assert lk.load(tmp_path / "k.likely").n_neighbors_ == clf.n_neighbors_
    for bad, says in (([], "empty list"), (["a"], "integers"), ([1.5], "integers"), ([0], "integers")):
        with pytest.raises(lk.DomainError, match=says):
            lk.KNeighborsClassifier(bad).fit(X, y)


def test_it_warns_in_its_own_name():
    X, y = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]), [0, 0, 1, 1]
    with pytest.warns(lk.FitWarning, match="KNeighborsClassifier: column 1 is constant"):
        lk.KNeighborsClassifier(1, "scaled").fit(X, y)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_several_k_by_one_search_are_each_k_by_its_own(weights):
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 6, (80, 2)).astype(float), rng.integers(0, 3, 80)
    for w in (None, rng.integers(1, 4, 80).astype(float), rng.uniform(0.2, 2.0, 80)):
        voters = lk.KNeighborsClassifier(3, weights=weights).fit(X, y, w)._voters
        ks = (1, 2, 5, 20, 70)
        votes, reach = voters.left_out_for_each(ks, weights == "distance")
        for i, k in enumerate(ks):
            alone = voters.votes_left_out(k, weights == "distance")
            np.testing.assert_allclose(votes[i], alone[0], rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(reach[i], alone[1])


@pytest.mark.slow
def test_left_out_weights_are_copies_where_rows_coincide():
    """Of rows at one place the first counts, its own copies included; a grid of integers has many such places."""
    rng = np.random.default_rng(5)
    for seed in range(30):
        X, y = rng.integers(0, 3, (25, 2)).astype(float), rng.integers(0, 2, 25)
        w = rng.integers(1, 4, 25)
        for k in (1, 3, 6):
            weighted = lk.KNeighborsClassifier(k).fit(X, y, w).leave_one_out()
            copies = lk.KNeighborsClassifier(k).fit(np.repeat(X, w, axis=0), np.repeat(y, w)).leave_one_out()
            first = np.cumsum(w) - w
            np.testing.assert_allclose(weighted, copies[first], rtol=1e-12, err_msg=f"{seed} {k}")


@pytest.mark.parametrize("prior", [None, "uniform", [0.9, 0.1]])
def test_leaving_a_row_out_is_learning_without_it(prior):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [34, 6])
    told = lk.KNeighborsClassifier(5, class_prior=prior).fit(X, y).leave_one_out()
    for i in (0, 20, 39):
        rest = np.arange(40) != i
        alone = lk.KNeighborsClassifier(5, class_prior=prior).fit(X[rest], y[rest]).log_posterior(X[i : i + 1])
        np.testing.assert_allclose(told[i], alone[0], rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("criterion", ["errors", "log"])
def test_a_class_that_will_not_come_has_no_say_in_k(criterion):
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], 60)
    X = rng.normal(size=(180, 2)) + y[:, None]
    clf = lk.KNeighborsClassifier("leave-one-out", class_prior=[0.5, 0.5, 0.0], criterion=criterion).fit(X, y)
    assert np.isfinite(clf.left_out_scores_).all() and clf.n_neighbors_ > 1


def test_k_of_edited_rows_is_judged_by_all_rows():
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], 150)
    X = rng.normal(size=(300, 2)) + y[:, None]
    clf = lk.KNeighborsClassifier("leave-one-out", prototypes="edited").fit(X, y)
    new = rng.normal(size=(4000, 2)) + np.repeat([0, 1], 2000)[:, None]
    told, true = clf.left_out_scores_[:, 1].min(), np.mean(clf.predict(new) != np.repeat([0, 1], 2000))
    assert (
        len(clf.prototype_indices_) < 290 and abs(told - true) < 0.06
    )  # by the rows that stayed it would be next to nothing


def test_the_smallest_k_asked_for_stays_where_all_are_too_many():
    with pytest.warns(FitWarning, match="all rows vote"):
        assert lk.KNeighborsClassifier([10, 20]).fit([[0.0], [1.0], [2.0]], [0, 1, 1]).n_neighbors_ == 10
    with pytest.raises(DomainError, match="numbers to choose from"):
        lk.KNeighborsClassifier([[1, 2], [3]]).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


def test_ties_of_even_votes_do_not_go_against_the_row_that_is_left_out():
    rng = np.random.default_rng(9)
    y = np.tile([0, 1], 300)
    X, new = rng.normal(size=(600, 2)) + y[:, None], rng.normal(size=(20_000, 2)) + np.tile([0, 1], 10_000)[:, None]
    clf = lk.KNeighborsClassifier([2, 4]).fit(X, y)
    for k, told, _ in clf.left_out_scores_:
        true = np.mean(lk.KNeighborsClassifier(int(k)).fit(X, y).predict(new) != np.tile([0, 1], 10_000))
        assert abs(told - true) < 0.05


def test_weights_whose_sum_overflows_are_refused():
    with pytest.raises(lk.DataError, match="the sum of sample_weight must be finite, got a sum that overflows: divide"):
        lk.KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1], [1e308, 1e308])


def test_a_class_without_rows_has_a_small_share_at_any_weight():
    shares = [
        lk.KNeighborsClassifier(1, class_prior="uniform")
        .partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1, 2], sample_weight=[w, w])
        .predict_proba([[0.0]])
        for w in (5e-324, 1e-200)
    ]
    assert np.isfinite(shares).all() and np.allclose(*shares, atol=1e-12)

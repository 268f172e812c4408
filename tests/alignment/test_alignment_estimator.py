"""DTWClassifier: votes, bands chosen by leave-one-out, model selection, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import likely as lk
from likely.alignment.estimator import SHARES, DTWClassifier
from likely.alignment.pairwise_dtw import dtw_matrix
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged


def spoken(rng, n=40, D=1, equal=False):
    """Three shapes at different speeds."""
    seqs, labels = [], []
    for i in range(n):
        t = np.linspace(0, 1, 30 if equal else int(rng.integers(25, 45))) ** rng.uniform(0.6, 1.6)
        shape = (np.sin(7 * t), np.cos(7 * t), np.sin(12 * t))[i % 3]
        seqs.append(np.stack([shape] * D, 1) + 0.3 * rng.normal(size=(len(t), D)))
        labels.append(("rise", "fall", "wave")[i % 3])
    return seqs, labels


@pytest.mark.slow
@pytest.mark.some_cases(12)
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("how", [{}, {"band": 0.5}, {"metric": "cityblock"}, {"metric": "cosine"}])
def test_votes_are_those_of_brute_force(k, weights, how, rng):
    X, y = spoken(rng, 60, D=2)
    m = DTWClassifier(k, weights=weights, **how).fit(X[:40], y[:40])
    M = dtw_matrix(X, X[:40], metric=how.get("metric", "sqeuclidean"), band=how.get("band"))
    peer = KNeighborsClassifier(k, metric="precomputed", weights=weights).fit(M[:40], y[:40])
    assert m.predict_proba(X[40:]) == pytest.approx(peer.predict_proba(M[40:]), abs=1e-9)
    assert (m.predict(X[40:]) == peer.predict(M[40:])).all()
    distances, indices = m.kneighbors(X[40:], 4)
    assert (distances == np.take_along_axis(M[40:], indices, 1)).all() and (np.diff(distances) >= 0).all()
    assert m.score(X[40:], y[40:]) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("how", [
    {"step_pattern": "symmetric 1/2"}, {"step_pattern": "asymmetric 1", "band": 0.6},
    {"metric": lambda x, y: cdist(x, y, "cityblock")},
])  # fmt: skip
def test_slopes_and_costs_of_ones_own(how, rng):
    X, y = spoken(rng, 24, D=2)
    m = DTWClassifier(3, **how).fit(X[:16], y[:16])
    metric, steps = how.get("metric", "sqeuclidean"), how.get("step_pattern", "unweighted")
    M = dtw_matrix(X, X[:16], metric=metric, step_pattern=steps, band=how.get("band"))
    peer = KNeighborsClassifier(3, metric="precomputed").fit(M[:16], y[:16])
    assert m.predict_proba(X[16:]) == pytest.approx(peer.predict_proba(M[16:]), abs=1e-9)
    assert DTWClassifier(3, **{**how, "band": "best"}).fit(X[:16], y[:16]).band_ in SHARES


def test_series_that_steps_cannot_join_are_no_neighbors(rng):
    X, y = [np.arange(10.0), np.arange(11.0), np.arange(40.0)], ["a", "b", "c"]
    m = DTWClassifier(step_pattern="symmetric 1").fit(X, y)
    assert m.predict([np.arange(12.0), np.arange(38.0)]).tolist() == ["b", "c"]
    with pytest.raises(DomainError, match="1 neighbors must be within reach, got fewer for sequence 1"):
        m.predict([np.arange(12.0), np.arange(100.0)])
    with pytest.raises(DomainError, match="step_pattern must be one of"):
        DTWClassifier(step_pattern="sideways").fit(X, y)


def test_novelty_is_a_rate_of_false_alarms(rng):
    X, y = spoken(rng, 120)
    m = DTWClassifier(3).fit(X, y)
    new, strange = spoken(rng, 200)[0], [x + 5 * np.sign(np.sin(np.arange(len(x))))[:, None] for x in X[:10]]
    assert all(choice is lk.NOVEL for choice in m.decide(strange, novelty=0.05))
    assert np.mean([choice is lk.NOVEL for choice in m.decide(new, novelty=0.1)]) == pytest.approx(0.1, abs=0.1)
    told = m.decide(strange[:1], novelty=0.05, full=True)
    assert "nearest series reach" in told.reasons[0]
    reach = m.kneighbors()[0][:, -1]
    limit = np.sort(reach)[::-1][int(0.1 * 121) - 1]  # of n exchangeable series the next exceeds the k-th: k / (n + 1)
    found = m.kneighbors(new)[0][:, -1] > limit
    assert found.tolist() == [choice is lk.NOVEL for choice in m.decide(new, novelty=0.1)]
    with pytest.raises(DomainError, match="novelty needs more than k = 3 sequences"):
        DTWClassifier(3).fit(X[:3], y[:3]).decide(X[:1], novelty=0.1)


def test_names_of_columns_are_those_of_fit(rng):
    X, y = spoken(rng, 6, D=2)
    table = [pd.DataFrame(x, columns=["u", "v"]) for x in X]
    m = DTWClassifier().fit(table, y)
    assert m.feature_names_in_.tolist() == ["u", "v"] and (m.predict(X) == m.predict(table)).all()
    with pytest.raises(DataError, match="frames must have the columns u, v, as in fit, got v, u"):
        m.predict([t[["v", "u"]] for t in table])
    with pytest.raises(ShapeError, match="sequence 1 must have the columns"):
        DTWClassifier().fit([table[0], table[1][["v", "u"]]], y[:2])


@pytest.mark.slow
def test_one_neighbor_is_sure_of_itself(rng):
    X, y = spoken(rng)
    m = DTWClassifier().fit(X, y)
    P = m.predict_proba(X)
    assert set(np.unique(P)) == {0.0, 1.0} and (m.predict(X) == y).all()
    assert m.classes_.tolist() == ["fall", "rise", "wave"] and m.class_prior_.sum() == pytest.approx(1)


def test_a_training_series_is_its_own_neighbor_unless_left_out(rng):
    X, y = spoken(rng, 12)
    m = DTWClassifier().fit(X, y)
    assert (m.kneighbors(X)[1][:, 0] == np.arange(12)).all()
    distances, indices = m.kneighbors()
    assert (indices[:, 0] != np.arange(12)).all() and (distances > 0).all()


@pytest.mark.slow
def test_deciding(rng):
    X, y = spoken(rng)
    m = DTWClassifier(5).fit(X, y)
    shares = m.predict_proba(X).max(axis=1)
    done = m.decide(X, reject_below=0.9)
    assert [d is lk.REJECT for d in done] == (shares < 0.9).tolist()
    dear = np.array([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]]) * [[1.0, 100.0, 1.0]]
    assert (m.decide(X, cost=dear) == "rise").sum() >= (m.predict(X) == "rise").sum()


@pytest.mark.slow
def test_the_best_band_is_the_narrowest_of_the_best(rng):
    X, y = spoken(rng, 30, equal=True)
    m = DTWClassifier(band="best").fit(X, y)
    errors = []
    for share in SHARES:
        M = dtw_matrix(X, metric="sqeuclidean", band=share)
        np.fill_diagonal(M, np.inf)
        errors.append(np.mean(np.array(y)[M.argmin(axis=1)] != y))
    assert m.left_out_errors_ == pytest.approx(errors) and m.band_ == SHARES[int(np.argmin(errors))]
    assert (m.predict(X) == DTWClassifier(band=m.band_).fit(X, y).predict(X)).all()
    uneven = DTWClassifier(band="best").fit(*spoken(rng, 12))
    assert np.isfinite(uneven.left_out_errors_).any() and uneven.predict(spoken(rng, 3)[0]).shape == (3,)


@pytest.mark.slow
def test_model_selection_over_lists_and_ragged(rng):
    X, y = spoken(rng)
    scores = cross_val_score(DTWClassifier(), X, y, cv=3)
    assert (cross_val_score(DTWClassifier(), Ragged.from_list(X), y, cv=3) == scores).all()
    found = GridSearchCV(DTWClassifier(), {"n_neighbors": [1, 3], "metric": ["sqeuclidean", "cityblock"]}, cv=3).fit(
        X, y
    )
    assert found.best_score_ >= scores.mean()
    assert clone(DTWClassifier(3, band=0.1)).get_params() == {
        "n_neighbors": 3,
        "band": 0.1,
        "metric": "sqeuclidean",
        "step_pattern": "unweighted",
        "weights": "uniform",
    }


def test_missing_values(rng):
    X, y = spoken(rng)
    holes = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    assert cross_val_score(DTWClassifier(), holes, y, cv=3).mean() > 0.8


def test_arrays_of_equal_length(rng):
    X, y = spoken(rng, 20, D=2, equal=True)
    a = np.stack(X)
    assert (DTWClassifier().fit(a, y).kneighbors()[0] == DTWClassifier().fit(X, y).kneighbors()[0]).all()
    flat = a[:, :, 0]
    assert DTWClassifier().fit(flat, y).predict(flat[:2].astype(np.float32)).tolist() == y[:2]


def test_gun_point_has_its_published_errors(data_dir):
    """Bagnall et al. 2017: 8.7 % Euclidean, 9.3 % without a band, 8.7 % with the best one, of 150 test series."""
    d = np.load(data_dir / "ucr" / "GunPoint.npz")
    for band, wrong in ((0, 13), (None, 14), ("best", 13)):
        m = DTWClassifier(band=band).fit(d["x_train"], d["y_train"])
        assert (m.predict(d["x_test"]) != d["y_test"]).sum() == wrong


def test_files(rng, tmp_path):
    X, y = spoken(rng, 12, D=2)
    X[2][3] = np.nan
    m = DTWClassifier(3, band=0.6, metric=("mahalanobis", np.eye(2))).fit(X, y)
    m.save(tmp_path / "m.likely")
    again = lk.load(tmp_path / "m.likely")
    assert (again.predict_proba(X) == m.predict_proba(X)).all() and again.band_ == 0.6


@pytest.mark.parametrize(
    ("how", "X", "y", "error", "words"),
    [
        ({"n_neighbors": 3}, [[1.0], [2.0]], [0, 1], DomainError, "number of sequences"),
        ({"metric": "far"}, [[1.0], [2.0]], [0, 1], DomainError, "metric must be"),
        ({"band": "wide"}, [[1.0], [2.0]], [0, 1], DomainError, "band must be"),
        ({"band": "best"}, [[1.0]], [0], DataError, "more than k"),
        ({}, [[1.0], [2.0]], [0], DataError, "one label per sequence of X, got 1 labels for 2 sequences"),
        ({}, [[1.0], [2.0]], [0, None], DataError, "label"),
        ({}, [[1.0], [np.inf]], [0, 1], DataError, "of sequence 1"),
        ({"weights": "other"}, [[1.0], [2.0]], [0, 1], ValueError, "weights"),
    ],
)  # fmt: skip
def test_refusals(how, X, y, error, words):
    with pytest.raises(error, match=words):
        DTWClassifier(**how).fit(X, y)


def test_numbers_that_are_too_large_are_refused():
    m = DTWClassifier().fit([[1e300, 0.0], [-1e300, 0.0]], [0, 1])
    with pytest.raises(DomainError, match="rescale the series"):
        m.predict([[1.0, 2.0]])
    assert DTWClassifier(metric="cityblock").fit([[1e300, 0.0], [-1e300, 0.0]], [0, 1]).predict([[1e299, 2.0]]) == [0]


def test_refusals_when_predicting():
    m = DTWClassifier().fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ShapeError, match="1 entries"):
        m.predict([np.zeros((3, 2))])
    with pytest.raises(DomainError, match="from 1 to 1"):
        m.kneighbors(n_neighbors=2)


@pytest.mark.filterwarnings("error")
def test_an_exact_match_has_all_the_weight():
    m = DTWClassifier(3, weights="distance").fit([[0.0, 1], [1.0, 2], [3, 4.0]], [0, 1, 1])
    assert m.predict_proba([[0.0, 1]]).tolist() == [[1.0, 0.0]]
    tiny = DTWClassifier(2, weights="distance", metric="cityblock").fit([[0.0], [1e-310]], [0, 1])
    assert tiny.predict_proba([[1e-320]]).sum() == pytest.approx(1.0)


def test_it_can_be_evaluated(rng):
    X, y = spoken(rng)
    found = lk.evaluate(DTWClassifier(3), X, y, cv=3)
    assert found.error.value < 0.3 and found.cost is None


def test_bands_between_unequal_lengths_are_searched(rng):
    X, y = spoken(rng, 60)
    m = DTWClassifier(band=0.7).fit(X[:40], y[:40])
    M = dtw_matrix(X[40:], X[:40], metric="sqeuclidean", band=0.7)
    assert (m.kneighbors(X[40:])[1][:, 0] == M.argmin(axis=1)).all()
    with pytest.raises(DomainError, match="a radius of at least"):
        DTWClassifier(band=0).fit(X[:40], y[:40]).predict([np.zeros(400)])


def test_a_file_keeps_the_metric_and_can_be_shown(rng, tmp_path):
    from click.testing import CliRunner

    from likely.cli.main import likely

    X, y = spoken(rng, 12)
    path = tmp_path / "dtw.likely"
    DTWClassifier(3, metric="cityblock", band=0.6).fit(X, y).save(path)
    again = lk.load(path)
    assert again.metric == "cityblock" and (again.predict(X) == y).mean() > 0.6
    done = CliRunner().invoke(likely, ["show", str(path)])
    assert done.exit_code == 0, done.output
    assert "DTWClassifier" in done.output


@pytest.mark.slow
def test_lengths_cut_one_array_into_sequences(rng):
    X, y = spoken(rng, 20, D=2)
    frames, lengths = np.concatenate(X), [len(x) for x in X]
    m, cut = DTWClassifier(3).fit(X, y), DTWClassifier(3).fit(frames, y, lengths=lengths)
    assert (cut.predict(frames, lengths=lengths) == m.predict(X)).all()
    assert (cut.predict_log_proba(frames, lengths=lengths) == m.predict_log_proba(X)).all()
    assert (cut.decide(frames, novelty=0.1, lengths=lengths) == m.decide(X, novelty=0.1)).all()
    assert (cut.kneighbors(frames, 2, lengths=lengths)[1] == m.kneighbors(X, 2)[1]).all()
    assert cut.score(frames, y, lengths=lengths) == m.score(X, y)
    with pytest.raises(ShapeError, match="lengths split one long array"):
        cut.predict(Ragged.of(X), lengths=lengths)

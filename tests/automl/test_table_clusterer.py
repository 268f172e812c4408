"""Clusters of a table: the estimator that goes into a file, and how shape and number are chosen."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import likely as lk
from likely.automl.table_clusterer import TableClusterer, most_clusters
from likely.automl.table_mixture import bic, discover, shapes
from likely.core.errors import DataError, DomainError, FitWarning, ModelFileError
from likely.estimation.novelty.mixture_novelty_score import held_out_novelty_scores

REAL = {"a": "real", "b": "real"}


def lumps(n: int = 240, seed: int = 0, slant: float = 0.0) -> tuple[pl.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    k = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2)) @ np.array([[1.0, slant], [0.0, 1.0]]) + 9.0 * np.stack([k, -k], axis=1)
    return pl.DataFrame(X, schema=["a", "b"]), k


@pytest.mark.slow
def test_arrays_are_read_in_the_order_of_the_training_table(tmp_path):
    X, k = lumps(120)
    X = X.with_columns(flag=pl.Series((k == 1) * 1.0), same=pl.lit(3.0)).select("flag", "same", "a", "b")
    model = TableClusterer(3, n_init=1).fit(X)
    assert model.feature_names_in_.tolist() == X.columns and list(model.schema) == ["a", "b", "flag"]
    model.save(tmp_path / "m")
    for one in (model, lk.load(tmp_path / "m"), TableClusterer(3, n_init=1).fit(X.to_numpy())):
        np.testing.assert_allclose(one.predict_proba(X.to_numpy()), model.predict_proba(X), atol=1e-12)
        with pytest.raises(DataError, match=r"the 4 columns of training, in that order: .* got shape"):
            one.predict(X.drop("same").to_numpy())


@pytest.mark.slow
@pytest.mark.parametrize("by", ["bic", "held-out", "prior"])
def test_every_way_finds_the_lumps(by):
    X, k = lumps()
    model = TableClusterer(criterion=by, max_components=4, n_init=2).fit(X)
    assert model.n_components_ == 3 and adjusted_rand_score(k, model.labels_) == 1.0
    assert model.found_.criterion == by and set(model.found_.choice.best) == {"bic", "held-out", "prior"}
    assert (np.diff(model.weights_) <= 0).all() and model.weights_.sum() == pytest.approx(1.0)
    assert np.array_equal(model.predict_proba(X).argmax(axis=1) + 1, model.labels_)


@pytest.mark.slow
def test_bic_is_that_of_scikit_learn():
    X, _ = lumps()
    start = np.array([[0.0, 0.0], [9.0, -9.0], [18.0, -18.0]])
    ours = lk.MixtureDensity(lk.GaussianDensity("full"), 3, prior=None, init=start, tol=1e-9, max_iter=500).fit(X)
    peer = GaussianMixture(3, means_init=start, tol=1e-9, max_iter=500, reg_covar=0.0).fit(X.to_numpy())
    assert bic(ours, X) == pytest.approx(peer.bic(X.to_numpy()), rel=1e-6)


@pytest.mark.parametrize(("slant", "shape"), [(0.0, "diagonal"), (4.0, "full")])
def test_the_shape_is_that_of_the_rows(slant, shape):
    X, _ = lumps(slant=slant)
    found = discover(X, REAL, 3, n_init=1)
    assert found.shape == shape and found.bic[shape] == min(found.bic.values()) and found.criterion == "given"
    assert "as requested" in found.why and "BIC" in found.why


def test_shapes_need_rows_and_columns():
    wide = {f"x{j}": "real" for j in range(12)}
    assert list(shapes(wide, 269)) == ["diagonal"] and list(shapes(wide, 270)) == ["full", "diagonal"]
    assert list(shapes({"c": "count", "w": "binary"}, 100)) == [""]
    assert list(shapes({"a": "real", "c": "count"}, 100)) == ["diagonal"]


@pytest.mark.slow
def test_words_that_occur_once_do_not_spoil_the_choice():
    X, _ = lumps()
    words = [f"odd-{i}" if i % 40 == 0 else "usual" if i % 2 else "other" for i in range(240)]
    found = discover(X.with_columns(w=pl.Series(words)), {**REAL, "w": "category"}, max_components=4, n_init=1)
    assert np.isfinite(found.choice.held_out).all() and found.choice.best["bic"] == 3


def test_rows_without_weight_are_not_there():
    X, _ = lumps(120)
    odd = pl.concat([X, pl.DataFrame({"a": [1e6] * 5, "b": [1e6] * 5})])
    w = np.r_[np.ones(120), np.zeros(5)]
    found, plain = discover(odd, REAL, 3, weight=w, n_init=1), discover(X, REAL, 3, n_init=1)
    np.testing.assert_allclose(np.sort(found.mixture.weights_), np.sort(plain.mixture.weights_), atol=1e-9)
    assert held_out_novelty_scores(found.mixture, odd, w)[1].sum() == 120


@pytest.mark.slow
def test_left_out_surprises_are_larger_than_those_of_rows_learned_from():
    rng = np.random.default_rng(0)
    X = pl.DataFrame(rng.normal(size=(40, 6)), schema=[f"x{j}" for j in range(6)])
    found = discover(X, dict.fromkeys(X.columns, "real"), 2, n_init=1)
    from likely.estimation.novelty.novelty_score import novelty_score

    own = novelty_score(found.mixture.model_, X.to_numpy())
    assert np.median(held_out_novelty_scores(found.mixture, X)[0]) > np.median(own)


class Fussy(lk.GaussianDensity):
    """A density that refuses to learn without the row that holds 5."""

    def fit(self, X, y=None, sample_weight=None):
        if 5.0 not in np.asarray(X):
            raise DataError("Fussy: the row that holds 5 is needed.")
        return super().fit(X, y, sample_weight)


def test_rows_that_only_a_model_that_knows_them_could_score_are_left_out_and_that_is_said():
    X = np.random.default_rng(0).normal(size=(40, 1))
    X[7] = 5.0
    with pytest.warns(FitWarning, match=r"novelty: 4 of 40 rows could not be scored .* the other rows set the alarm"):
        kept = held_out_novelty_scores(Fussy("diagonal").fit(X), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = held_out_novelty_scores(lk.GaussianDensity("diagonal").fit(X), X)
    assert kept.shape == (3, 36) and kept[1].sum() == 36 and np.isfinite(kept).all()
    assert set(kept[0].tolist()) <= set(plain[0].tolist())  # what stays is as it was, and 5 is not among it
    assert plain[0].max() > kept[0].max()


def test_a_single_row_sets_no_alarm():
    X = np.array([[1.0]])
    with pytest.warns(FitWarning, match=r"1 of 1 rows .* the model's own samples set the alarm"):
        kept = held_out_novelty_scores(lk.GaussianDensity("diagonal").fit(X), X)
    assert kept.shape == (3, 0)


def test_a_cluster_is_worth_three_distinct_rows():
    few = pl.DataFrame({"a": [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, None]})
    assert most_clusters(few, 10) == 2 and most_clusters(few, 1) == 1
    assert most_clusters(few, 10, [0, 0, 0, 0, 0, 1, 1, 0]) == 1
    long = pl.concat([pl.DataFrame({"a": [0.0] * 1000}), pl.DataFrame({"a": np.arange(9.0)})])
    assert most_clusters(long, 10) == 3
    made = TableClusterer(n_init=1).fit({"x": [1.5, 2.5, 7.25], "y": [2.5, 9.5, 3.5]})
    assert made.n_components_ == 1


@pytest.mark.slow
def test_it_comes_back_from_a_file_as_it_was(tmp_path):
    X, _ = lumps(120)
    X = X.with_columns(color=pl.Series(["red", "blue", None] * 40), visits=pl.Series(list(range(6)) * 20))
    model = TableClusterer(3, n_init=1, kinds={"visits": "count"}).fit(X)
    model.card_ = json.dumps({"task": "clusters"})
    model.save(tmp_path / "m")
    again = lk.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X)) and again.card == {"task": "clusters"}
    assert np.array_equal(again.score_samples(X), model.score_samples(X)) and again.schema == model.schema
    assert np.array_equal(again.predict(X.select(reversed(X.columns)).to_dict()), model.labels_)
    assert clone(again).get_params() == again.get_params()


@pytest.mark.parametrize("change", [
    {"schema_": "[]"}, {"schema_": "{"}, {"card_": "3"}, {"schema_": '{"a": {"kind": "odd"}}'},
    {"order_": np.array([0, 0, 1])}, {"held_out_novelty_": np.zeros((2, 3))}, {"schema_": '{"z": {"kind": "real"}}'},
])  # fmt: skip
def test_what_does_not_fit_together_is_no_model(tmp_path, change):
    model = TableClusterer(3, n_init=1).fit(lumps(90)[0])
    vars(model).update(change)
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "m")


def test_what_cannot_be_is_refused():
    X, _ = lumps(60)
    with pytest.raises(DataError, match="there are 60 rows"):
        TableClusterer(61).fit(X)
    with pytest.raises(DomainError, match="criterion must be one of"):
        discover(X, REAL, criterion="luck")
    with pytest.raises(DataError, match="weight above 0"):
        discover(X, REAL, 2, weight=np.zeros(60))
    model = TableClusterer(2, n_init=1).fit(X)
    with pytest.raises(DataError, match='the model needs column "b"'):
        model.predict(X.drop("b"))

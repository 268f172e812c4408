"""What crosses the border wrongly is named: which column, which row, what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import cross_val_score

import likely as lk
from likely.core.warnings import warnings_discarded


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_is_named_by_column_and_row(frame):
    with pytest.raises(lk.DataError, match=r"column 'name' must be numbers, got 'abc' at row 1"):
        lk.GaussianDensity().fit(frame({"size": ["1", "2"], "name": ["3", "abc"]}))


def test_text_in_an_array_is_named():
    with pytest.raises(lk.DataError, match="column 1 must be numbers, got 'x' at row 0"):
        lk.GaussianDensity().fit([[1.0, "x"], [2.0, "y"]])


def test_infinity_is_named(rng):
    X = rng.normal(size=(9000, 3))
    X[8000, 2] = np.inf
    d = lk.GaussianDensity()
    with pytest.raises(lk.DataError, match="row 8000, column 2"):
        d.fit(X)
    with pytest.raises(lk.DataError, match="row 8000, column 2"):
        lk.GaussianDensity().fit(X[:10]).score_samples(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dates_are_no_numbers(frame):
    when = pd.date_range("2024-01-01", periods=3)
    table = frame({"when": when if frame is pd.DataFrame else when.to_pydatetime().tolist()})
    for estimator in (lk.GaussianDensity(), lk.CategoricalDensity()):
        with pytest.raises(lk.DataError, match="column 'when'"):
            estimator.fit(table)


COUNTS = [
    lk.PoissonDensity(),
    lk.BinomialDensity(),
    lk.distributions.BetaBinomialDensity(),
    lk.NegativeBinomialDensity(),
]


@pytest.mark.parametrize("density", COUNTS, ids=repr)
def test_counts_that_are_none_are_refused_by_column(density, rng):
    X = rng.poisson(3, (20, 2)).astype(float)
    X[4, 1] = 2.5
    told = f"^{type(density).__name__}: counts must be integers, got 2.5 at row 4, column"
    with pytest.raises(lk.DataError, match=rf"{told} 1: round it, or use a distribution of real numbers"):
        density.fit(X)
    with pytest.raises(lk.DataError, match=f"{told} 'visits'"):
        density.fit(pd.DataFrame(X, columns=["calls", "visits"]))
    with pytest.raises(lk.DataError, match=f"{told} 'visits'"):
        lk.BayesClassifier(density).fit(pd.DataFrame(X, columns=["calls", "visits"]), np.arange(20) % 2)
    if isinstance(density, lk.PoissonDensity | lk.NegativeBinomialDensity):
        with pytest.raises(lk.DataError, match=f"{told} 1"):
            density.fit(scipy.sparse.csr_array(X))
    X[4, 1] = np.nan
    assert np.isneginf(density.fit(X).score_samples([[1.0, 2.5]]))  # a score is 0, not an error


def test_identifiers_are_suspected():
    with pytest.warns(lk.FitWarning, match="as many levels as rows"):
        lk.CategoricalDensity().fit(np.arange(50)[:, None])


def test_minus_one_is_no_level_that_was_seen():
    d = lk.CategoricalDensity().fit(np.array([0, 1, 2, 1])[:, None])
    assert d.score_samples([[-1], [5]]).tolist() == [-np.inf, -np.inf]


def test_columns_may_be_cross_validated_and_come_from_frames(rng):
    table = lk.core.Columns(pd.DataFrame({"a": rng.normal(size=60), "n": rng.poisson(3, 60)}))
    p = lk.ProductDensity([("a", lk.GaussianDensity()), ("n", lk.PoissonDensity())])
    assert np.isfinite(cross_val_score(p, table, cv=3)).all()


def test_a_column_that_is_not_there_is_named(rng):
    frame = pd.DataFrame({"a": rng.normal(size=9), "b": rng.normal(size=9)})
    with pytest.raises(lk.DataError, match="column 'c' is needed"):
        lk.ProductDensity([("x", lk.GaussianDensity(), ["a", "c"])]).fit(frame)
    p = lk.ProductDensity([("a", lk.GaussianDensity()), ("b", lk.GaussianDensity())]).fit(lk.core.Columns(frame))
    with pytest.raises(lk.DataError, match="column 'b' is needed"):
        p.score_samples(lk.core.Columns(a=frame["a"]))


def test_a_part_with_a_constant_is_named(rng):
    frame = pd.DataFrame({"a": rng.normal(size=9), "b": np.full(9, 7.0)})
    with pytest.warns(lk.FitWarning, match=r"part 'b': .*column 'b' is constant") as said:
        lk.ProductDensity(lk.GaussianDensity("diagonal")).fit(frame)
    assert not any("part 'a'" in str(w.message) for w in said)


def test_a_missing_cell_among_texts_stays_missing():
    c = lk.core.Columns(color=["red", None, "blue", float("nan")])
    np.testing.assert_allclose(lk.Categorical.fit(c["color"]).probs, [0.5, 0.5])


def test_a_summary_without_prior_claims_none(rng):
    p = lk.ProductDensity(lk.GaussianDensity("diagonal"), prior=None).fit(rng.normal(size=(30, 2)))
    assert p.summary().facts["prior"].startswith("none") and not p.summary().notes


def test_em_says_it_once(rng):
    X = rng.normal(size=(4, 5))
    X[0, 0] = np.nan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lk.Gaussian.fit(X)
    texts = [str(w.message) for w in said]
    assert len(texts) == len(set(texts)) and any("singular" in t for t in texts)
    assert all(w.filename == __file__ or "distribution.py" in w.filename for w in said)


# --------------------------------------------------------------------------- masked arrays


def hidden(X, where):
    """The same rows twice: with a mask over nonsense, and with NaN."""
    X = np.asarray(X)
    return np.ma.masked_array(np.where(where, np.asarray(-999, X.dtype), X), where), np.where(where, np.nan, X)


@pytest.mark.some_cases(5)
@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        lk.GaussianDensity("diagonal"), lk.LaplaceDensity(), lk.HistogramDensity(), lk.KernelDensity(),
        lk.ProductDensity(), lk.MixtureDensity(n_components=2, random_state=0), lk.decomposition.PPCA(1),
        lk.StudentTDensity(),
        lk.HMMDensity(n_states=2, random_state=0),
    ],
)  # fmt: skip
def test_what_is_masked_was_not_observed(estimator, rng):
    X = rng.normal(size=(60, 3))
    masked, gaps = hidden(X, X > 1.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lk.FitWarning)
        expected = clone(estimator).fit(gaps).score_samples(gaps)
        np.testing.assert_allclose(clone(estimator).fit(masked).score_samples(masked), expected)


def test_masked_counts_and_answers_were_not_observed(rng):
    counts = rng.poisson(3.0, (60, 2))
    masked, gaps = hidden(counts, counts > 5)
    np.testing.assert_allclose(lk.PoissonDensity().fit(masked).rate_, lk.PoissonDensity().fit(gaps).rate_)
    answers, where = rng.random((60, 2)) < 0.3, rng.random((60, 2)) < 0.2
    expected = lk.BernoulliDensity().fit(np.where(where, np.nan, answers)).probs_
    np.testing.assert_allclose(lk.BernoulliDensity().fit(np.ma.masked_array(answers, where)).probs_, expected)
    words = np.ma.masked_array(np.where(answers, "yes", "no"), where)
    told = lk.CategoricalDensity(prior=None).fit(words).model_["x0"].probs
    np.testing.assert_allclose(told[1], answers[~where[:, 0], 0].mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    "classifier",
    [
        lk.BayesClassifier(),
        lk.NaiveBayes(),
        lk.KNeighborsClassifier(),
        lk.NearestCentroidClassifier(),
        lk.TableClassifier(),
    ],
)
def test_classifiers_see_no_masked_entries(classifier, rng):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    masked, gaps = hidden(X, X > 1.2)
    expected = clone(classifier).fit(gaps, y).predict_proba(gaps)
    np.testing.assert_allclose(clone(classifier).fit(masked, y).predict_proba(masked), expected)


def test_those_that_need_whole_rows_refuse_masked_ones(rng):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    masked = hidden(X, X > 1.2)[0]
    for link in ("centroid", "likelihood"):
        with pytest.raises(lk.DataError, match="NaN at row"):
            lk.AgglomerativeClustering(2, linkage=link).fit(masked)
    gaps = hidden(X, X > 1.2)[1]
    with warnings_discarded():
        both = [lk.FisherDiscriminant().fit(rows, y).transform(rows) for rows in (masked, gaps)]
    np.testing.assert_array_equal(*both)


def test_values_see_no_masked_entries(rng):
    X = rng.normal(size=(60, 2))
    masked, gaps = hidden(X, X > 1.0)
    distribution = lk.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(distribution.log_prob(masked), distribution.log_prob(gaps))
    np.testing.assert_allclose(lk.fit(distribution, masked).model.mean, lk.fit(distribution, gaps).model.mean)
    np.testing.assert_allclose(distribution.collect(masked).mean, distribution.collect(gaps).mean)
    np.testing.assert_allclose(lk.impute(distribution, masked), lk.impute(distribution, gaps))
    np.testing.assert_allclose(lk.Laplace(0.0, 1.0).cdf(masked[:, 0]), lk.Laplace(0.0, 1.0).cdf(gaps[:, 0]))
    np.testing.assert_allclose(lk.Ragged.of([masked, masked[:3]]).values, np.concatenate([gaps, gaps[:3]]))
    np.testing.assert_allclose(lk.core.Columns(a=masked)["a"], gaps)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [int, bool, str])
def test_a_masked_label_is_missing_and_the_others_keep_their_kind(kind, rng):
    X, y, where = rng.normal(size=(60, 2)), (np.arange(60) % 2).astype(kind), rng.random(60) < 0.3
    clf = lk.BayesClassifier().fit(X, np.ma.masked_array(y, where))
    expected = lk.BayesClassifier().fit(X, np.where(where, None, y.astype(object)))
    assert clf.classes_.tolist() == expected.classes_.tolist() and isinstance(clf.classes_.tolist()[0], kind)
    np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X))
    with pytest.raises(lk.DataError, match="every row needs a label, got None at row"):
        lk.KNeighborsClassifier().fit(X, np.ma.masked_array(y, where))


def test_a_masked_weight_is_refused(rng):
    weight = np.ma.masked_array(np.ones(9), np.arange(9) == 3)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        lk.GaussianDensity().fit(rng.normal(size=(9, 2)), sample_weight=weight)


# ------------------------------------------------------------------------- other containers


@pytest.mark.parametrize("make", [lambda: lk.KMeans(2), lambda: lk.AgglomerativeClustering(2), lambda: lk.PCA(1)])
def test_categories_are_named_by_column(make):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Categorical(["u", "v", "u"])})
    with pytest.raises(lk.DataError, match=r"column 'b' must be numbers, got 'u' at row 0"):
        make().fit(frame)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: lk.GaussianDensity(), lambda: lk.HMMDensity(n_states=2, random_state=0),
                                  lambda: lk.LinearGaussianDensity(n_states=1, max_iter=3)])  # fmt: skip
def test_pandas_own_missing_values_in_an_array_are_missing_values(make, rng):
    X = rng.normal(size=(20, 1)).astype(object)
    gaps = X.copy()
    X[3, 0], gaps[3, 0] = pd.NA, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lk.FitWarning)
        expected = make().fit(gaps.astype(float)).score(gaps.astype(float))
        assert make().fit(X).score(X) == pytest.approx(expected)


def test_a_lazy_frame_is_collected(rng):
    frame, y = pl.DataFrame(rng.normal(size=(30, 2)), schema=["a", "b"]), np.arange(30) % 2
    for clf in (lk.BayesClassifier(), lk.NaiveBayes(), lk.TableClassifier()):
        learned = clone(clf).fit(frame.lazy(), y)
        assert np.array_equal(learned.predict_proba(frame.lazy()), clone(clf).fit(frame, y).predict_proba(frame))
    assert lk.GaussianDensity().fit(frame.lazy()).score(frame.lazy()) == lk.GaussianDensity().fit(frame).score(frame)
    assert lk.evaluate(lk.BayesClassifier(), frame.lazy(), y).error == lk.evaluate(lk.BayesClassifier(), frame, y).error


def test_missing_values_of_pandas_in_lists():
    rows = [[1.0, pd.NA], [2.0, 3.0], [0.5, 1.0], [pd.NA, 2.0]] * 5
    plain = [[np.nan if cell is pd.NA else cell for cell in row] for row in rows]
    with warnings_discarded():
        assert lk.GaussianDensity().fit(rows).score(plain) == lk.GaussianDensity().fit(plain).score(plain)


def test_lazy_rows_and_labels_are_collected():
    frame = pl.DataFrame({"x": np.arange(20.0), "y": [0, 1] * 10})
    features, labels = frame.select("x"), frame.select("y")
    eager = lk.BayesClassifier().fit(features, labels["y"])
    with pytest.warns(DataConversionWarning, match="column-vector"):
        lazy = lk.BayesClassifier().fit(features.lazy(), labels.lazy())
    assert np.array_equal(lazy.predict_proba(features.lazy()), eager.predict_proba(features))


def test_a_classifier_is_no_component():
    with pytest.raises(ValueError, match="must be an estimator of densities"):
        lk.MixtureDensity(lk.BayesClassifier(), n_components=2).fit(np.zeros((4, 2)))
    with pytest.raises(lk.DataError, match=r"^GaussianDensity: rows of numbers are needed, got named parts \(a, b\)"):
        lk.GaussianDensity().fit(lk.core.Columns(a=[1.0, 2.0], b=[3.0, 4.0]))


def test_a_list_of_masked_rows_keeps_their_masks(rng):
    """NumPy drops the masks when it makes one array of a list."""
    X = rng.normal(size=(30, 2))
    masked, gaps = hidden(X, X > 0.5)
    distribution = lk.Gaussian([0.0, 0.0], 1.0)
    np.testing.assert_allclose(distribution.log_prob(list(masked)), distribution.log_prob(gaps))
    np.testing.assert_allclose(lk.fit(distribution, list(masked)).model.mean, lk.fit(distribution, gaps).model.mean)
    expected = lk.GaussianDensity("diagonal").fit(gaps).score_samples(gaps)
    np.testing.assert_allclose(lk.GaussianDensity("diagonal").fit(list(masked)).score_samples(list(masked)), expected)
    chain = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0, 0.0], [1.0, 1.0]], 1.0))
    np.testing.assert_allclose(chain.log_prob([list(masked)]), chain.log_prob([gaps]))

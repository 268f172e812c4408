"""How sequences enter estimators: `lengths` are never taken for `y`, columns keep their names, codes are told of."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import likely as lk
from likely import FitWarning, Ragged, ShapeError

CHAIN = lk.HMM([1.0, 0.0], [[0.8, 0.2], [0.2, 0.8]], lk.Gaussian([[0.0, 0.0], [3.0, -3.0]], 1.0))
S = [np.asarray(s) for s in CHAIN.sample(8, np.random.default_rng(0), length=20)]
X, LENGTHS = np.concatenate(S), [len(s) for s in S]
Y = np.repeat(["a", "b"], 4)

UNSUPERVISED = {
    "HMMDensity": lambda: lk.HMMDensity(n_states=2, max_iter=3, random_state=0),
    "LinearGaussianDensity": lambda: lk.LinearGaussianDensity(max_iter=2),
    "SwitchingDensity": lambda: lk.SwitchingDensity(2, max_iter=2, random_state=0),
    "MixtureDensity": lambda: lk.MixtureDensity(lk.HMMDensity(n_states=1), 2, max_iter=3, random_state=0),
    "MixtureClusterer": lambda: lk.MixtureClusterer(lk.HMMDensity(n_states=1), 2, max_iter=3, random_state=0),
    "SequenceDensity": lambda: lk.automl.SequenceDensity(),
}


@pytest.fixture(autouse=True)
def _short_fits():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not converged")
        yield


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_lengths_in_the_place_of_y_are_refused(name):
    """hmmlearn's fit(X, lengths) gave one long sequence without a word: starts 0.25 for 0.06."""
    for given, y in ((X, LENGTHS), (S, [1, 2, 3]), (np.stack(S), LENGTHS[:7]), (S, 20)):
        with pytest.raises(ShapeError, match=rf"^{name}: y is not used.*write lengths="):
            UNSUPERVISED[name]().fit(given, y)


@pytest.mark.parametrize("name", ["HMMDensity", "LinearGaussianDensity", "SwitchingDensity", "MixtureDensity"])
def test_lengths_in_the_place_of_y_are_refused_in_score_and_streams(name):
    fitted = UNSUPERVISED[name]().fit(S)
    for verb in (fitted.score, fitted.partial_fit):
        with pytest.raises(ShapeError, match="write lengths="):
            verb(X, LENGTHS)
    assert fitted.score(X, lengths=LENGTHS) == pytest.approx(fitted.score(S), rel=1e-12)


def test_lengths_in_the_place_of_y_are_refused_when_clusters_are_assigned():
    clusterer = lk.MixtureClusterer(lk.HMMDensity(n_states=1, max_iter=2), 2, max_iter=2, random_state=0)
    with pytest.raises(ShapeError, match=r"^MixtureClusterer: y is not used.*write lengths="):
        clusterer.fit_predict(X, LENGTHS)
    np.testing.assert_array_equal(clusterer.fit_predict(X, lengths=LENGTHS), clusterer.fit_predict(S))


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSUPERVISED)
def test_a_label_per_sequence_or_per_frame_of_one_is_ignored(name):
    """As pipelines of scikit-learn hand it on."""
    for given, y in ((S, Y), (X, np.zeros(len(X))), (X, ["a"])):
        UNSUPERVISED[name]().fit(given, y)


def test_driven_chains_refuse_them_too():
    u = np.random.default_rng(1).normal(size=(len(X), 1))
    h = lk.HMMDensity(n_states=1, max_iter=2).fit(X, covariates=u, lengths=LENGTHS)
    for verb in (h.fit, h.score):
        with pytest.raises(ShapeError, match=r"^HMMDensity: y is not used.*write lengths="):
            verb(X, LENGTHS, covariates=u)


@pytest.mark.slow
def test_a_classifier_cuts_one_array_by_lengths():
    density = lk.HMMDensity(n_states=2, max_iter=5, random_state=0)
    want = lk.BayesClassifier(density).fit(S, Y)
    clf = lk.BayesClassifier(density).fit(X, Y, lengths=LENGTHS)
    assert_array_equal(clf.predict_proba(X, lengths=LENGTHS), want.predict_proba(S))
    assert_array_equal(clf.predict_log_proba(X, lengths=LENGTHS), want.log_posterior(S))
    assert_array_equal(clf.predict(X, lengths=LENGTHS), want.predict(S))
    assert_array_equal(clf.decide(X, lengths=LENGTHS, reject_below=0.9), want.decide(S, reject_below=0.9))
    assert_array_equal(clf.score_samples(X, lengths=LENGTHS), want.score_samples(S))
    assert_array_equal(clf.novelty_score(X, lengths=LENGTHS), want.novelty_score(S))
    assert clf.score(X, Y, lengths=LENGTHS) == want.score(S, Y)
    streamed = lk.BayesClassifier(density).partial_fit(X, Y, lengths=LENGTHS)
    assert_array_equal(streamed.predict_proba(S), lk.BayesClassifier(density).partial_fit(S, Y).predict_proba(S))
    with pytest.raises(lk.DataError, match="give lengths= of the sequences"):
        lk.BayesClassifier(density).fit(X, Y)
    with pytest.raises(lk.DomainError, match="this is a density of rows"):
        lk.BayesClassifier().fit(X, Y, lengths=LENGTHS)


# --------------------------------------------------------------------- names of columns


@pytest.mark.parametrize("name", ["HMMDensity", "LinearGaussianDensity", "SwitchingDensity", "MixtureDensity"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_list_of_data_frames_keeps_its_names(name, frame):
    """Columns in another order gave other states without a word."""
    table = [frame({"x": s[:, 0], "y": s[:, 1]}) for s in S]
    swapped = [t[["y", "x"]] for t in table]
    fitted = UNSUPERVISED[name]().fit(table)
    assert fitted.feature_names_in_.tolist() == ["x", "y"]
    want = UNSUPERVISED[name]().fit(S)
    assert_array_equal(fitted.score_samples(table), want.score_samples(S))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        fitted.score_samples(swapped)
    with pytest.raises(ShapeError, match="sequence 2 must have the columns 'x', 'y', as sequence 0 has, got 'y', 'x'"):
        UNSUPERVISED[name]().fit([*table[:2], *swapped[2:]])


def test_names_survive_lengths_cuts_classes_and_long_tables():
    whole = pd.DataFrame(X, columns=["x", "y"]).assign(who=np.repeat(range(8), 20))
    both = whole[["x", "y"]]
    clf = lk.BayesClassifier(lk.HMMDensity(n_states=1)).fit(both, Y, lengths=LENGTHS)
    assert clf.feature_names_in_.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match="same order"):
        clf.predict(both[["y", "x"]], lengths=LENGTHS)
    h = lk.HMMDensity(n_states=1).fit(Ragged.from_table(whole, "who")[0])
    with pytest.raises(ValueError, match="same order"):
        h.predict(Ragged.from_table(whole[["y", "who", "x"]], "who")[0])
    with pytest.raises(ValueError, match="same order"):
        lk.HMMDensity(n_states=1).fit(Ragged.of(both, LENGTHS)[2:5]).score_samples([both[["y", "x"]]])


def test_sequences_of_named_tables_go_by_name():
    table = [pd.DataFrame(s, columns=["x", "y"]) for s in S]
    d = lk.automl.SequenceDensity().fit(table)
    assert list(d.columns) == ["x", "y"]
    assert_array_equal(d.score_samples([t[["y", "x"]] for t in table]), d.score_samples(table))
    assert_array_equal(d.score_samples(S), d.score_samples(table))
    assert_array_equal(d.score_samples(X, lengths=LENGTHS), d.score_samples(S))
    assert_array_equal(d.predict_proba(X, lengths=LENGTHS).values, d.predict_proba(S).values)
    assert_array_equal(
        d.predict(X, lengths=LENGTHS).values, lk.automl.SequenceDensity().fit(X, lengths=LENGTHS).predict(S).values
    )


# ------------------------------------------------------------------------ codes


def told(given, component=None):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        lk.HMMDensity(component, n_states=1, max_iter=2).fit(given)
    return [str(w.message) for w in heard if "distinct integers" in str(w.message)]


@pytest.mark.slow
def test_gaussians_that_nobody_asked_for_do_not_fit_codes_in_silence():
    codes = np.random.default_rng(0).integers(0, 4, (2, 100))
    found = told(list(codes))
    assert len(found) == 1 and "CategoricalDensity()" in found[0] and "PoissonDensity()" in found[0]
    assert told(list(codes > 1)) and told([np.column_stack([codes[0], 10_000 * np.arange(100)])])
    assert not told(list(codes), lk.GaussianDensity()) and not told(list(codes), lk.CategoricalDensity())
    assert not told(list(codes * 1.0)), "floats are measurements"
    assert not told([np.random.default_rng(0).integers(0, 1000, 500)]), "many values: an instrument's counts"
    assert not told([np.array([3, 1, 4, 1, 5])]) and not told([codes[0] - 2]), "too short to say; signed numbers"
    with pytest.warns(FitWarning, match=r"^HMMDensity: column 0 holds 4 distinct"):
        lk.HMMDensity(n_states=1, max_iter=2).fit(list(codes), covariates=list(codes * 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HMMDensity", "LinearGaussianDensity", "SwitchingDensity"])
def test_sequences_without_frames_are_reported(name):
    with pytest.warns(FitWarning, match=rf"^{name}: sequence 1 has no frames"):
        found = UNSUPERVISED[name]().fit([S[0], np.empty((0, 2)), *S[1:]])
    assert_allclose(found.score_samples(S), UNSUPERVISED[name]().fit(S).score_samples(S))


def test_lazy_frames_are_collected():
    frame = pl.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eager = lk.HMMDensity(n_states=2, random_state=0).fit(frame)
        lazy = lk.HMMDensity(n_states=2, random_state=0).fit(frame.lazy())
        assert_array_equal(lazy.predict(frame.lazy()), eager.predict(frame))
        assert_array_equal(Ragged.of([frame.lazy(), frame.lazy()]).values, Ragged.of([frame, frame]).values)
        track = lk.LinearGaussian.constant_velocity(dim=2)
        assert_array_equal(track.log_prob(frame.lazy()), track.log_prob(frame))


@pytest.mark.parametrize(
    "estimator",
    [lk.HMMDensity(n_states=2), lk.LinearGaussianDensity(lk.LinearGaussian.constant_velocity(dim=2))],
)
def test_a_column_of_words_is_named(estimator):
    frame = pd.DataFrame({"x": X[:, 0], "c": pd.Categorical(["u", "v"] * (len(X) // 2))})
    for data in (frame, [frame, frame]):
        with pytest.raises(lk.DataError, match=r": column 'c' must be numbers, got 'u': drop the column, or use "):
            estimator.fit(data)

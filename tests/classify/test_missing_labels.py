"""Labels that are all, partly or not there: one `fit`, and the likelihood that a textbook writes down for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import likely as lk
from likely.estimation.class_labels import checked_labels, encoded_with_gaps
from tests.properties.compare import arrays_of, bits
from tests.reliability.plainly import log_prior, log_probs

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")

RNG = np.random.default_rng(1)
Y = RNG.integers(0, 3, 240)
X = np.array([[-3.0, 0.0], [0.0, 2.5], [3.0, -1.0]])[Y] + RNG.standard_normal((240, 2))
HIDDEN = RNG.random(240) < 0.7

DENSITIES = {
    "full": lk.GaussianDensity(), "diagonal": lk.GaussianDensity("diagonal"), "pooled": lk.GaussianDensity("pooled"),
    "by class": lk.GaussianDensity("pooled", pooling="class"), "likelihood": lk.GaussianDensity(prior=None),
    "mixtures": lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2, random_state=0),
    "tied mixtures": lk.MixtureDensity(lk.GaussianDensity("diagonal"), 4, tie="all", random_state=0),
    "one covariance": lk.MixtureDensity(lk.GaussianDensity("full"), 2, tie="covariance", random_state=0),
    "pooled mixtures": lk.MixtureDensity(lk.GaussianDensity("pooled"), 2, random_state=0),
    "product": lk.ProductDensity(),
}  # fmt: skip


def named(y, hidden=HIDDEN, gap=None):
    out = np.array(["a", "b", "c"], dtype=object)[y]
    out[hidden] = gap
    return out


# ----------------------------------------------------------------- the likelihood


@pytest.mark.some_cases(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_some_labels_the_likelihood_is_the_one_of_the_book(name):
    """Σ over labeled rows log p(c) p(x | c) + Σ over the others log Σ_c p(c) p(x | c), + log prior; never falling."""
    clf = lk.BayesClassifier(DENSITIES[name]).fit(X, named(Y))
    report, rows = clf.report_, clf.density_.validate_rows(X, reset=False)
    m = report.model
    joint = log_probs(m.components, rows) + np.log(m.weights)
    seen = ~HIDDEN
    want = float(joint[np.flatnonzero(seen), Y[seen]].sum() + logsumexp(joint[HIDDEN], axis=1).sum())
    assert report.objective == pytest.approx(want + log_prior(m, report.prior), rel=1e-9)
    assert (np.diff(report.trace) >= -1e-10 * np.abs(report.trace[0])).all() and len(report.trace) > 2
    assert report.stats.total_weight == pytest.approx(240.0)
    assert (clf.predict(X) == named(Y, np.zeros(240, bool))).mean() > 0.85


@pytest.mark.parametrize("name", [n for n in DENSITIES if "mixtures" not in n and n != "one covariance"])
def test_all_labels_are_the_closed_form(name):
    clf = lk.BayesClassifier(DENSITIES[name]).fit(X, named(Y, np.zeros(240, bool)))
    assert clf.report_.reason.startswith("closed form") and clf.report_.iterations == 1
    frequencies = np.bincount(Y) / 240
    np.testing.assert_allclose(clf.class_prior_, frequencies, rtol=1e-12)


def test_hidden_rows_of_no_weight_change_nothing():
    clf = lk.BayesClassifier().fit(X[~HIDDEN], named(Y)[~HIDDEN])
    weighted = lk.BayesClassifier().fit(X, named(Y), sample_weight=(~HIDDEN).astype(float))
    np.testing.assert_allclose(weighted.predict_proba(X), clf.predict_proba(X), rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_a_weight_is_so_many_copies_with_labels_missing():
    times = np.random.default_rng(2).integers(0, 4, 240)
    for name in ("full", "diagonal", "mixtures", "tied mixtures"):
        a = lk.BayesClassifier(DENSITIES[name]).fit(X, named(Y), sample_weight=times)
        b = lk.BayesClassifier(DENSITIES[name]).fit(np.repeat(X, times, axis=0), np.repeat(named(Y), times))
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-6, atol=1e-9)
        assert a.report_.objective == pytest.approx(b.report_.objective, rel=1e-10)


def test_hidden_rows_help():
    """Four labels a class and many rows without: better than the four alone."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 2000)
    x = np.where(y[:, None] == 1, 1.0, -1.0) * np.array([[1.5, 0.0]]) + rng.standard_normal((2000, 2)) @ [
        [1, 0.8],
        [0, 0.6],
    ]
    few = np.zeros(2000, bool)
    few[np.concatenate([np.flatnonzero(y == c)[:4] for c in (0, 1)])] = True
    alone = lk.BayesClassifier().fit(x[few], y[few])
    both = lk.BayesClassifier().fit(x, np.where(few, y.astype(float), np.nan))
    assert both.score(x, y) >= alone.score(x, y) - 0.005
    assert both.classes_.tolist() == [0, 1]


# ------------------------------------------------------------------- what is missing


@pytest.mark.some_cases(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    "y",
    [
        named(Y), named(Y, gap=np.nan), named(Y, gap=pd.NA), named(Y, gap=float("nan")),
        pd.Series(named(Y)), pd.Series(named(Y), dtype="string"), pd.Series(named(Y)).astype("category"),
        named(Y).tolist(),
    ],
    ids=["None", "NaN", "pd.NA", "float", "Series", "string", "category", "list"],
)  # fmt: skip
def test_every_word_for_missing(y):
    clf, want = lk.BayesClassifier().fit(X, y), lk.BayesClassifier().fit(X, named(Y))
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert bits(clf.model_) == bits(want.model_)


@pytest.mark.slow
@pytest.mark.parametrize(
    "y",
    [
        np.where(HIDDEN, np.nan, Y), pd.Series(Y).astype("Int64").mask(HIDDEN), pd.Series(Y).where(~HIDDEN),
        [None if h else int(v) for v, h in zip(Y, HIDDEN, strict=True)],
    ],
    ids=["float", "Int64", "Series", "list"],
)  # fmt: skip
def test_numbers_come_back_as_integers(y):
    clf = lk.BayesClassifier().fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2] and clf.classes_.dtype.kind in "iu"
    assert clf.predict(X).dtype.kind in "iu"
    assert bits(clf.model_) == bits(lk.BayesClassifier().fit(X, named(Y)).model_)


@pytest.mark.slow
def test_booleans_and_dates():
    flags = np.array([None if h else bool(v) for v, h in zip(Y > 0, HIDDEN, strict=True)], dtype=object)
    clf = lk.BayesClassifier().fit(X, flags)
    assert clf.classes_.tolist() == [False, True] and clf.predict(X).dtype == bool
    dates = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"])[Y]).mask(HIDDEN)  # gaps are pd.NaT
    clf = lk.BayesClassifier().fit(X, dates.dt.year)
    assert clf.classes_.tolist() == [2020, 2021, 2022]
    texts = dates.dt.strftime("%Y").astype(object)
    texts[HIDDEN] = pd.NaT
    assert lk.BayesClassifier().fit(X, texts).classes_.tolist() == ["2020", "2021", "2022"]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
def test_no_label_at_all_is_a_clear_error(gap):
    y = np.full(240, gap, dtype=object)
    with pytest.raises(lk.DataError, match=r"at least one row needs a label.*MixtureClusterer"):
        lk.BayesClassifier().fit(X, y)
    with pytest.raises(lk.DataError, match="at least one row needs a label"):
        lk.BayesClassifier().fit(X, np.full(240, np.nan))


def test_the_labels_that_are_there_are_still_checked():
    y = named(Y)
    y[np.flatnonzero(~HIDDEN)[0]] = 3
    with pytest.raises(lk.DataError, match="all labels must be of one kind"):
        lk.BayesClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"[Uu]nknown label type|continuous"):
        lk.BayesClassifier().fit(X, np.where(HIDDEN, np.nan, Y + 0.5))
    bad = np.where(HIDDEN, np.nan, Y.astype(float))
    bad[np.flatnonzero(~HIDDEN)[1]] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        lk.BayesClassifier().fit(X, bad)
    with pytest.raises(lk.DataError, match="one label per row"):
        lk.BayesClassifier().fit(X, named(Y)[:-1])


def test_places_of_labels():
    y = checked_labels(["b", None, "a", "b"], 4, "me", allow_missing=True)
    classes, labels = encoded_with_gaps(y)
    assert classes.tolist() == ["a", "b"] and labels.tolist() == [1, -1, 0, 1]
    y = checked_labels([np.nan, 7.0, -2.0], 3, "me", allow_missing=True)
    classes, labels = encoded_with_gaps(y)
    assert classes.tolist() == [-2, 7] and classes.dtype.kind == "i" and labels.tolist() == [-1, 1, 0]
    with pytest.raises(lk.DataError, match="every row needs a label"):
        checked_labels([1.0, np.nan], 2, "me")


def test_one_class_only():
    y = np.full(240, None, dtype=object)
    y[:5] = "a"
    clf = lk.BayesClassifier().fit(X, y)
    assert clf.classes_.tolist() == ["a"] and (clf.predict(X) == "a").all()
    plain = lk.GaussianDensity().fit(X)  # all rows are its own, then
    np.testing.assert_allclose(clf.score_samples(X), plain.score_samples(X), rtol=1e-6)


# ------------------------------------------------------------------------ streams


def test_a_stream_with_labels_missing():
    classes = ["a", "b", "c"]
    clf = lk.BayesClassifier().partial_fit(X[:80], named(Y)[:80], classes=classes)
    before = clf.learned_model_
    stats = clf.stats_
    clf.partial_fit(X[80:160], named(Y)[80:160])
    y, hidden, x = Y[80:160], HIDDEN[80:160], X[80:160]
    mask = np.where(hidden[:, None] | (y[:, None] == np.arange(3)), 0.0, -np.inf)
    new = before.collect(x, log_mask=mask)
    np.testing.assert_allclose(clf.stats_.counts, stats.counts + new.counts, rtol=1e-10)
    clf.partial_fit(X[160:], named(Y)[160:])
    assert clf.stats_.total_weight == pytest.approx(240.0)
    assert clf.score(X, named(Y, np.zeros(240, bool))) > 0.85
    clf.partial_fit(X[:3], [None, "b", None])
    with pytest.raises(lk.DataError, match="labels must be among the classes"):
        clf.partial_fit(X[:2], ["d", None])


def test_a_stream_may_have_a_block_without_any_label():
    clf = lk.BayesClassifier().partial_fit(X[:120], named(Y)[:120], classes=["a", "b", "c"])
    before = clf.stats_.total_weight
    clf.partial_fit(X[120:130], [None] * 10)
    assert clf.stats_.total_weight == pytest.approx(before + 10)
    with pytest.raises(lk.DataError, match="at least one row needs a label"):  # there is nothing to begin with
        lk.BayesClassifier().partial_fit(X[:10], [None] * 10, classes=["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixtures", "tied mixtures"])
def test_streams_of_classes_with_mixtures(name):
    clf = lk.BayesClassifier(DENSITIES[name]).partial_fit(X[:120], named(Y)[:120], classes=["a", "b", "c"])
    clf.partial_fit(X[120:], named(Y)[120:])
    assert clf.stats_.total_weight == pytest.approx(240.0)
    assert clf.score(X, named(Y, np.zeros(240, bool))) > 0.85
    assert all(np.isfinite(a).all() for a in arrays_of(clf.model_))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full", "mixtures", "tied mixtures"])
def test_a_class_that_is_named_and_never_seen(name):
    y = named(Y)
    y[y == "c"] = None
    clf = lk.BayesClassifier(DENSITIES[name]).partial_fit(X, y, classes=["a", "b", "c"])
    assert clf.classes_.tolist() == ["a", "b", "c"] and np.isfinite(clf.predict_proba(X)).all()


# ------------------------------------------------------------- labels and entries


@pytest.mark.slow
def test_labels_and_entries_missing_at_once():
    x = X.copy()
    x[np.random.default_rng(4).random(x.shape) < 0.2] = np.nan
    for name in ("full", "diagonal", "mixtures"):
        clf = lk.BayesClassifier(DENSITIES[name]).fit(x, named(Y))
        m = clf.report_.model
        joint = log_probs(m.components, x) + np.log(m.weights)
        seen = ~HIDDEN
        want = float(joint[np.flatnonzero(seen), Y[seen]].sum() + logsumexp(joint[HIDDEN], axis=1).sum())
        assert clf.report_.objective == pytest.approx(want + log_prior(m, clf.report_.prior), rel=1e-9)
        assert clf.score(x, named(Y, np.zeros(240, bool))) > 0.7


@pytest.mark.slow
def test_leaving_one_out_is_fitting_without_it():
    x, y = X[:40], named(Y)[:40]
    got = lk.BayesClassifier().leave_one_out(x, y)
    for i in (0, 7, int(np.flatnonzero(~HIDDEN)[2])):
        rest = np.arange(40) != i
        want = lk.BayesClassifier().fit(x[rest], y[rest]).log_posterior(x[[i]])[0]
        np.testing.assert_allclose(got[i], want, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_class_priors_with_labels_missing():
    y = named(Y)
    fixed = lk.BayesClassifier(class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    np.testing.assert_allclose(fixed.class_prior_, [0.2, 0.3, 0.5])
    pulled = lk.BayesClassifier(class_prior=1e6).fit(X, y)
    np.testing.assert_allclose(pulled.class_prior_, 1 / 3, atol=1e-3)


@pytest.mark.slow
def test_hard_labels_in_classes_with_mixtures():
    density = lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2, hard=True, random_state=0)
    clf = lk.BayesClassifier(density).fit(X, named(Y, np.zeros(240, bool)))
    m = clf.report_.model
    inner = m.components.weights.ravel()
    joint = (log_probs(m.components.components, X) + np.log(inner)).reshape(240, 3, 2).max(axis=2) + np.log(m.weights)
    want = float(joint[np.arange(240), Y].sum()) + log_prior(m, clf.report_.prior)
    assert clf.report_.objective == pytest.approx(want, rel=1e-9)
    assert (np.diff(clf.report_.trace) >= -1e-10 * abs(clf.report_.trace[0])).all()


@pytest.mark.slow
def test_windows_that_do_not_settle_say_why():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    x = rng.normal(size=(400, 2)) + y[:, None]
    names = np.where(np.arange(400) % 10 == 0, None, y).astype(object)
    with pytest.warns(lk.FitWarning, match="a kernel density has a leave-one-out score") as told:
        clf = lk.BayesClassifier(lk.KernelDensity()).fit(x, names)
    assert not any("covariance" in str(note.message) for note in told)
    assert clf.report_.trace[-1] == max(clf.report_.trace)


def test_a_missing_label_is_called_what_it_is():
    with pytest.raises(lk.DataError, match=r"every row needs a label, got None at row 1 \("):
        lk.KNeighborsClassifier().fit(X[:4], ["a", None, "b", "b"])

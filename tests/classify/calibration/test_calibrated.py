"""Any classifier joins the decision layer: real checks, real data, and beside scikit-learn's own calibration."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import estimator_checks as checks

import likely as lk
from likely.classify.calibration.calibrated import CalibratedClassifier
from tests.cases import scikit_learn_checks

TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
ESTIMATORS = [
    CalibratedClassifier(GaussianNB(), "logistic", 3),  # the quickest first: it meets the checks of classes alone
    CalibratedClassifier(TREE),
    CalibratedClassifier(TREE, "isotonic", reject_cost=0.4),
    CalibratedClassifier(LogisticRegression(max_iter=200), "temperature", 3, cost=None, reject_below=0.5),
]
NOT_YIELDED = [
    checks.check_dataframe_column_names_consistency,
    checks.check_param_validation,
    checks.check_inplace_ensure_writeable,
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@scikit_learn_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", NOT_YIELDED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_check_that_is_not_yielded(estimator, check):
    check("CalibratedClassifier", estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_checks_that_want_data(estimator, rng):
    X, y = rng.normal(size=(60, 4)), np.repeat([0, 1, 2], 20)
    X[np.arange(60), y] += 6
    checks.check_classifiers_predictions(X, y, "CalibratedClassifier", estimator)
    for kind in ("NotAnArray", "PandasDataframe"):
        checks.check_estimators_data_not_an_array("CalibratedClassifier", estimator, X, y, kind)


@pytest.fixture
def table(rng):
    X = rng.normal(size=(240, 4))
    side = (X[:, 0] + 0.7 * rng.normal(size=240) > 0).astype(int) + (X[:, 1] > 0.8)
    return X, np.array(["low", "mid", "top"], dtype=object)[side]


def is_sound(clf, X):
    log_p = clf.log_posterior(X)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-9)
    return np.isfinite(log_p).all() and log_p.shape[1] == len(clf.classes_)


# --------------------------------------------------------------- it calibrates


CASES = [  # data, classifier, number of splits, and the most that may be left of its own log-loss
    ("cancer", GaussianNB(), 5, 0.4),
    pytest.param("cancer", RandomForestClassifier(50, random_state=0), 3, 0.8, marks=pytest.mark.campaign),
    ("cancer", make_pipeline(StandardScaler(), SVC()), 8, None),
    ("digits", GaussianNB(), 2, 0.3),
    pytest.param("digits", RandomForestClassifier(50, random_state=0), 2, 0.5, marks=pytest.mark.campaign),
    pytest.param("digits", KNeighborsClassifier(), 2, 0.8, marks=pytest.mark.campaign),
    ("digits", make_pipeline(StandardScaler(), SVC()), 2, None),
    pytest.param(
        "digits", make_pipeline(StandardScaler(), LinearSVC(random_state=0)), 2, None, marks=pytest.mark.campaign
    ),
]


def halves(name, seed):
    X, y = {"digits": load_digits, "cancer": load_breast_cancer}[name](return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    a, b = order[::2], order[1::2]
    return X[a], y[a], X[b], y[b]


def mean_loss(clf, data, splits):
    """Log-loss on the other half, over some ways to halve the data: one alone is mostly luck."""
    losses = []
    for seed in range(splits):
        A, a, B, b = halves(data, seed)
        losses.append(log_loss(b, clone(clf).fit(A, a).predict_proba(B)))
    return np.mean(losses)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("data", "estimator", "splits", "left"), CASES, ids=lambda v: str(v)[-30:])
def test_posteriors_get_better_and_no_worse_than_scikit_learn_makes_them(data, estimator, splits, left):
    ours = mean_loss(CalibratedClassifier(estimator), data, splits)
    if left is not None:
        assert ours < left * mean_loss(estimator, data, splits)
    for method in ("sigmoid", "isotonic"):  # with one refitted model, as we have
        peer = CalibratedClassifierCV(estimator, method=method, cv=5, ensemble=False)
        assert ours < 1.05 * mean_loss(peer, data, splits)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spambase.csv", "satimage_trn.csv"])
def test_posteriors_get_better_on_tables(data_dir, name):
    a = np.loadtxt(data_dir / "tables" / name, delimiter=",", skiprows=1)
    a = a[np.random.default_rng(0).permutation(len(a))[:3000]]
    X, y = a[:, :-1], a[:, -1].astype(int)
    before = GaussianNB().fit(X[::2], y[::2])
    after = CalibratedClassifier(GaussianNB()).fit(X[::2], y[::2])
    assert log_loss(y[1::2], after.predict_proba(X[1::2])) < 0.6 * log_loss(y[1::2], before.predict_proba(X[1::2]))
    assert expected_error(after, X[1::2], y[1::2]) < 0.5 * expected_error(before, X[1::2], y[1::2])


def expected_error(clf, X, y, bins=10):
    """Expected calibration error of the top label, by hand."""
    p = clf.predict_proba(X)
    top, hit = p.max(axis=1), clf.classes_[p.argmax(axis=1)] == y
    bin_of = np.minimum((top * bins).astype(int), bins - 1)
    gaps = [abs(top[bin_of == k].sum() - hit[bin_of == k].sum()) for k in range(bins)]
    return sum(gaps) / len(y)


# ---------------------------------------------------------- any classifier, any table


@pytest.mark.some_cases(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        SVC(decision_function_shape="ovo"),
        make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")),
        GridSearchCV(SVC(), {"C": [1, 10]}, cv=3),
        RidgeClassifier(),
        LinearSVC(random_state=0),
        KNeighborsClassifier(),
        HistGradientBoostingClassifier(max_iter=3),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_any_classifier_joins(table, estimator, classes):
    X, y = table
    X, y = (X, y) if classes == 3 else (X[y != "top"], y[y != "top"])
    clf = CalibratedClassifier(estimator, cv=3).fit(X, y)
    assert is_sound(clf, X)
    assert clf.score(X, y) > 0.6
    assert clf.classes_.tolist() == sorted(set(y))
    np.testing.assert_allclose(clf.class_prior_, [np.mean(y == c) for c in clf.classes_])


@pytest.mark.slow
def test_decisions_and_rejections_work(table):
    X, y = table
    clf = CalibratedClassifier(SVC(), reject_below=0.7).fit(X, y)
    refused = clf.decide(X) == lk.REJECT
    np.testing.assert_array_equal(refused, clf.predict_proba(X).max(axis=1) < 0.7)
    dear = [[0, 9, 9], [1, 0, 1], [1, 1, 0]]
    assert (CalibratedClassifier(SVC(), cost=dear).fit(X, y).predict(X) == "low").sum() < (
        clf.predict(X) == "low"
    ).sum()


@pytest.mark.slow
def test_missing_entries_reach_who_can_use_them(table, rng):
    X, y = table
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    assert is_sound(CalibratedClassifier(HistGradientBoostingClassifier(max_iter=3)).fit(X, y), X)
    with pytest.raises(ValueError, match="NaN"):
        CalibratedClassifier(LogisticRegression()).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_with_texts_go_through_pipelines(table, rng, kind):
    X, y = table
    columns = {**{name: X[:, i] for i, name in enumerate("abcd")}, "k": rng.choice(["u", "v"], len(y)).tolist()}
    frame = pd.DataFrame(columns) if kind == "pandas" else pl.DataFrame(columns)
    encode = make_column_transformer((OneHotEncoder(), ["k"]), remainder="passthrough")
    clf = CalibratedClassifier(make_pipeline(encode, LogisticRegression())).fit(frame, y)
    assert is_sound(clf, frame)
    assert list(clf.feature_names_in_) == ["a", "b", "c", "d", "k"]


@pytest.mark.slow
def test_sparse_rows_lists_and_texts(table):
    X, y = table
    for rows in (sp.coo_array(X), sp.csc_matrix(X), X.tolist()):
        assert is_sound(CalibratedClassifier(LinearSVC(random_state=0)).fit(rows, y.tolist()), rows)
    texts = [f"{'spam' if i % 2 else 'ham'} word{i % 7}" for i in range(60)]
    clf = CalibratedClassifier(make_pipeline(TfidfVectorizer(), LinearSVC())).fit(texts, [i % 2 for i in range(60)])
    assert clf.predict(["ham", "spam"]).tolist() == [0, 1]


@pytest.mark.slow
def test_nested_parameters_are_searched(table):
    search = GridSearchCV(
        CalibratedClassifier(TREE), {"estimator__max_depth": [1, 3], "method": ["isotonic", "auto"]}, cv=3
    )
    assert search.fit(*table).best_params_["estimator__max_depth"] == 3


# -------------------------------------------------------------------- weights


class OneSize(StandardScaler):
    """A step that learns nothing from the rows, so that weights concern the last step alone."""

    def fit(self, X, y=None):
        return super().fit(np.array([[-1.0] * X.shape[1], [1.0] * X.shape[1]]))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [TREE, GaussianNB(), make_pipeline(OneSize(), GaussianNB())], ids=str)
def test_weights_are_copies_also_in_the_folds(table, rng, estimator):
    X, y = table
    w = rng.integers(0, 4, len(y))
    again = rng.permutation(np.repeat(np.arange(len(y)), w))
    weighted = CalibratedClassifier(estimator).fit(X, y, sample_weight=w)
    repeated = CalibratedClassifier(estimator).fit(X[again], y[again])
    assert weighted.method_ == repeated.method_
    np.testing.assert_allclose(weighted.log_posterior(X), repeated.log_posterior(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_)


def test_an_estimator_without_weights_is_reported(table, rng):
    X, y = table
    with pytest.warns(lk.FitWarning, match="KNeighborsClassifier takes no weights"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=rng.integers(1, 3, len(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))


# ------------------------------------------------------------- folds and classes


def test_groups_are_kept_apart(table, rng):
    X, y = table
    groups = np.arange(len(y)) // 4
    X = X + 30 * rng.normal(size=(60, 4))[groups]  # a group betrays its rows to who has seen it
    y = rng.choice(["no", "yes"], 60)[groups]
    torn = CalibratedClassifier(KNeighborsClassifier(1), "temperature").fit(X, y)
    kept = CalibratedClassifier(KNeighborsClassifier(1), "temperature").fit(X, y, groups=groups)
    assert torn.predict_proba(X).max() > 0.9
    assert kept.predict_proba(X).max() < 0.75
    by_splitter = CalibratedClassifier(KNeighborsClassifier(1), "temperature", GroupKFold(5)).fit(X, y, groups=groups)
    assert by_splitter.predict_proba(X).max() < 0.75


def test_a_class_with_one_row_is_named_and_learned(table):
    X, y = table
    y[7] = "rare"
    with pytest.warns(lk.FitWarning, match="class 'rare' has one distinct row"):
        clf = CalibratedClassifier(TREE).fit(X, y)
    assert "rare" in clf.classes_ and is_sound(clf, X)


def test_fewer_rows_than_folds_still_teach(rng):
    X = np.concatenate([rng.normal(size=(3, 2)), 5 + rng.normal(size=(3, 2))])
    clf = CalibratedClassifier(GaussianNB(), cv=10).fit(X, [0, 0, 0, 1, 1, 1])
    assert clf.score(X, [0, 0, 0, 1, 1, 1]) == 1


def test_a_class_absent_from_a_training_fold_is_named(table):
    X, y = table
    splits = [(np.flatnonzero(y != "top"), np.flatnonzero(y == "top")), (np.arange(120), np.arange(120, 240))]
    with pytest.warns(lk.FitWarning, match="class 'top' is absent"):
        assert is_sound(CalibratedClassifier(GaussianNB(), cv=splits).fit(X, y), X)


def test_one_class_has_posterior_one(table):
    X, _ = table
    clf = CalibratedClassifier(TREE).fit(X, ["only"] * len(X))
    assert (clf.log_posterior(X) == 0).all()


def test_a_fitted_estimator_is_calibrated_as_it_is(table):
    X, y = table
    forest = RandomForestClassifier(20, random_state=0).fit(X[:120], y[:120])
    clf = CalibratedClassifier(forest, cv="prefit").fit(X[120:], y[120:])
    assert clf.estimator_ is forest
    before, after = (log_loss(y[120:], c.predict_proba(X[120:])) for c in (forest, clf))
    assert after < before
    two = CalibratedClassifier(forest, cv="prefit").fit(X[120:][y[120:] != "top"], y[120:][y[120:] != "top"])
    assert two.classes_.tolist() == ["low", "mid", "top"] and is_sound(two, X)
    np.testing.assert_allclose(two.class_prior_[2], 0)
    with pytest.raises(lk.DataError, match="'new'"):
        CalibratedClassifier(forest, cv="prefit").fit(X[:2], ["low", "new"])
    with pytest.raises(ValueError, match="not fitted"):
        CalibratedClassifier(TREE, cv="prefit").fit(X, y)


@pytest.mark.slow
def test_same_seed_same_bits(table):
    X, y = table
    a, b = (CalibratedClassifier(TREE, random_state=3).fit(X, y).log_posterior(X) for _ in range(2))
    np.testing.assert_array_equal(a, b)


# --------------------------------------------------------------------- bad input


def test_what_cannot_be_calibrated_is_said(table):
    X, y = table
    with pytest.raises(ValueError, match="'estimator' parameter of Calibrated"):
        CalibratedClassifier(DecisionTreeRegressor()).fit(X, y)
    with pytest.raises(lk.DomainError, match="all pairs"):
        CalibratedClassifier(SVC(kernel="precomputed")).fit(X @ X.T, y)
    with pytest.raises(ValueError, match="weight"):
        CalibratedClassifier(TREE).fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(lk.DomainError, match="novelty"):
        CalibratedClassifier(TREE).fit(X, y).decide(X, novelty=0.01)


def test_saving_says_why_not_and_what_to_do(table, tmp_path):
    clf = CalibratedClassifier(TREE).fit(*table)
    with pytest.raises(lk.ModelFileError, match=r"DecisionTreeClassifier.*BayesClassifier"):
        clf.save(tmp_path / "x.likely")
    with pytest.raises(lk.ModelFileError, match=r"DecisionTreeClassifier.*BayesClassifier"):
        lk.save(clf, tmp_path / "x.likely")
    assert not list(tmp_path.iterdir())


def test_what_the_estimator_inside_can_do(table, tmp_path):
    X, y = table
    clf = CalibratedClassifier(lk.BayesClassifier(lk.GaussianDensity("pooled"))).fit(X, y)
    assert (clf.explain(X[:3]).decided == clf.estimator_.predict(X[:3])).all()
    assert (clf.decide(X + 1e6, novelty=0.05) == lk.NOVEL).all()
    assert np.array_equal(clf.score_samples(X), clf.estimator_.score_samples(X))
    assert not hasattr(CalibratedClassifier(TREE), "explain")
    clf.save(tmp_path / "c.likely")
    assert np.array_equal(lk.load(tmp_path / "c.likely").predict_proba(X), clf.predict_proba(X))


# ------------------------------------------------------------------- class probabilities, and the short form


def test_other_class_probabilities_after_calibration():
    X, y = load_breast_cancer(return_X_y=True)
    clf = lk.CalibratedClassifier(GaussianNB(), method="temperature").fit(X[::2], y[::2])
    other = clf.with_class_prior([0.9, 0.1])
    expected = lk.change_prior(clf.predict_proba(X[1::2]), clf.class_prior_, [0.9, 0.1])
    np.testing.assert_allclose(other.predict_proba(X[1::2]), expected, atol=1e-12)
    assert (other.decide(X[1::2]) == clf.decide(X[1::2], class_prior=[0.9, 0.1])).all()
    back = other.with_class_prior(clf.class_prior_)
    np.testing.assert_allclose(back.predict_proba(X[1::2]), clf.predict_proba(X[1::2]), atol=1e-12)
    assert np.allclose(other.fit(X[::2], y[::2]).predict_proba(X), clf.predict_proba(X))  # fit forgets it


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "sequences"])
def test_calibration_of_a_bayes_classifier_is_short_for_calibrated(kind, tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 30)
    if kind == "rows":
        X = rng.normal(size=(60, 1)).repeat(4, axis=1) + 0.3 * rng.normal(size=(60, 4)) + (y == "b")[:, None]
        make = lambda **how: lk.NaiveBayes(**how)  # noqa: E731
    else:
        slow = rng.normal(size=60)  # frames of a sequence share what a chain takes for independent
        X = [(slow[i] + (y[i] == "b") + 0.3 * rng.normal(size=rng.integers(8, 20)))[:, None] for i in range(60)]
        make = lambda **how: lk.BayesClassifier(lk.HMMDensity(n_states=1), **how)  # noqa: E731
    short = make(calibration="temperature").fit(X, y)
    long = lk.CalibratedClassifier(make(), method="temperature").fit(X, y)
    assert float(short.calibration_.temperature) > 1.5
    np.testing.assert_array_equal(short.log_posterior(X), long.log_posterior(X))
    assert (short.predict(X) == make().fit(X, y).predict(X)).all()  # softened, not reordered
    lk.save(short, tmp_path / "m.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "m.likely").log_posterior(X), short.log_posterior(X))
    shifted = short.with_class_prior([0.9, 0.1]).predict_proba(X)
    np.testing.assert_allclose(shifted, lk.change_prior(short.predict_proba(X), [0.5, 0.5], [0.9, 0.1]), atol=1e-12)
    costly = make(calibration="temperature", cost=[[0, 9], [1, 0]]).fit(X, y)
    P = costly.predict_proba(X)
    assert (costly.predict(X) == np.where(9 * P[:, 1] <= P[:, 0], "a", "b")).all()
    with pytest.raises(lk.DomainError, match="all rows at once"):
        make(calibration="temperature").partial_fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["logistic", "isotonic", "auto"])
def test_a_bayes_classifier_takes_every_method_of_calibration(method, tmp_path):
    X, y = load_wine(return_X_y=True)
    clf = lk.BayesClassifier(calibration=method).fit(X[:, :4], y)
    want = lk.CalibratedClassifier(lk.BayesClassifier(), method).fit(X[:, :4], y)
    np.testing.assert_array_equal(clf.predict_proba(X[:, :4]), want.predict_proba(X[:, :4]))
    lk.save(clf, tmp_path / "m.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "m.likely").predict_proba(X[:, :4]), clf.predict_proba(X[:, :4]))


def test_rows_without_a_label_have_no_say_in_the_calibration():
    rng = np.random.default_rng(1)
    y = np.array([0, 1] * 40)
    X = rng.normal(size=(80, 2)) + y[:, None]
    hidden = np.concatenate([y.astype(float), np.full(10, np.nan)])
    clf = lk.BayesClassifier(calibration="temperature")
    more = clf.fit(np.concatenate([X, rng.normal(size=(10, 2))]), hidden).calibration_.temperature
    assert float(more) == float(clf.fit(X, y.astype(float)).calibration_.temperature)


def test_a_reject_rule_on_plain_posteriors_of_sequences_is_noted():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(i % 2, 1, (9, 1)) for i in range(40)], [str(i % 2) for i in range(40)]
    clf = lk.BayesClassifier(lk.HMMDensity(n_states=1)).fit(X, y)
    with pytest.warns(lk.FitWarning, match="too overconfident for a reject rule"):
        clf.decide(X, reject_below=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.decide(X)
        lk.BayesClassifier(lk.HMMDensity(n_states=1), calibration="temperature").fit(X, y).decide(X, reject_below=0.9)
        lk.BayesClassifier().fit([x[0] for x in X], y).decide([x[0] for x in X], reject_below=0.9)

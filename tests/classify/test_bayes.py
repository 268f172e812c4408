"""Classifiers against their peers, against plain formulas, and against themselves in chunks and with weights."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely as lk

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")

DENSITIES = {
    "full": lambda: lk.GaussianDensity(),
    "diagonal": lambda: lk.GaussianDensity("diagonal"),
    "spherical": lambda: lk.GaussianDensity("spherical"),
    "pooled": lambda: lk.GaussianDensity("pooled"),
    "pooled by class": lambda: lk.GaussianDensity("pooled", pooling="class"),
    "shrunk-pooled": lambda: lk.GaussianDensity("shrunk-pooled"),
    "shrunk-diagonal": lambda: lk.GaussianDensity("shrunk-diagonal"),
    "mean integrated": lambda: lk.GaussianDensity("pooled", predictive="mean"),
    "all integrated": lambda: lk.GaussianDensity(predictive="all"),
    "noise": lambda: lk.GaussianDensity("diagonal", noise=0.1),
    "product": lambda: lk.ProductDensity(),
    "unequal": lambda: lk.ProductDensity(
        [("a", lk.GaussianDensity(), [0, 1]), ("b", lk.GaussianDensity("diagonal"), [2, 3])]
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]


def holes(X, share, seed=0):
    out = X.copy()
    out[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return out


# ------------------------------------------------------------------ equal answers


@pytest.mark.parametrize(
    ("density", "peer"),
    [
        (lk.GaussianDensity(prior=None), QuadraticDiscriminantAnalysis()),
        (lk.GaussianDensity("pooled", prior=None), LinearDiscriminantAnalysis(solver="lsqr")),
        (lk.GaussianDensity("diagonal", prior=None), GaussianNB(var_smoothing=0)),
    ],
)
def test_equal_to_scikit_learn(density, peer):
    X, y = load_wine(return_X_y=True)
    if isinstance(peer, QuadraticDiscriminantAnalysis):  # it divides by n − 1: make up for it by weights of its own
        ours, theirs = lk.BayesClassifier(density).fit(X, y), peer.fit(X, y)
        n = np.bincount(y)
        for k in range(3):
            assert np.allclose(ours.model_.components.covariance[k] * n[k] / (n[k] - 1), np.cov(X[y == k].T))
        assert (ours.predict(X) == theirs.predict(X)).all()
        return
    ours = lk.BayesClassifier(density).fit(X, y)
    assert np.allclose(ours.predict_proba(X), peer.fit(X, y).predict_proba(X), atol=1e-9)


def test_posteriors_are_bayes_theorem(iris):
    X, y = iris
    clf = lk.BayesClassifier(lk.GaussianDensity(prior=None)).fit(X, y)
    joint = np.stack(
        [
            np.log((y == c).mean()) + multivariate_normal(X[y == c].mean(0), np.cov(X[y == c].T, bias=True)).logpdf(X)
            for c in clf.classes_
        ],
        axis=1,
    )
    assert np.allclose(clf.score_samples(X), np.logaddexp.reduce(joint, axis=1), atol=1e-9)
    assert np.allclose(clf.predict_log_proba(X), joint - np.logaddexp.reduce(joint, axis=1)[:, None], atol=1e-9)


def test_a_missing_entry_is_integrated_out(iris):
    X, y = iris
    clf = lk.BayesClassifier().fit(X, y)
    gaps = X[:20].copy()
    gaps[:, 1] = np.nan
    parts = [clf.model_.components.member(k).marginal([0, 2, 3]) for k in range(3)]
    joint = np.log(clf.class_prior_) + np.stack([p.log_prob(X[:20][:, [0, 2, 3]]) for p in parts], axis=1)
    assert np.allclose(clf.predict_log_proba(gaps), joint - np.logaddexp.reduce(joint, axis=1)[:, None], atol=1e-10)
    nothing = clf.predict_proba(np.full((1, 4), np.nan))
    assert np.allclose(nothing, clf.class_prior_)


# -------------------------------------------------------- weights, chunks, offsets


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("name", DENSITIES)
def test_weights_equal_repetition(iris, name):
    X, y = iris
    w = np.random.default_rng(0).integers(0, 4, len(X))
    a = lk.BayesClassifier(DENSITIES[name]()).fit(X, y, sample_weight=w)
    b = lk.BayesClassifier(DENSITIES[name]()).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert np.allclose(a.predict_log_proba(X), b.predict_log_proba(X), rtol=1e-10, atol=1e-10)
    assert np.allclose(a.score_samples(X), b.score_samples(X), rtol=1e-12, atol=1e-10)


@pytest.mark.some_cases(11)
@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_chunks_equal_the_batch(iris, name, offset):
    X, y = iris
    X = X + offset
    order = np.random.default_rng(1).permutation(len(X))
    batch, stream = lk.BayesClassifier(DENSITIES[name]()), lk.BayesClassifier(DENSITIES[name]())
    # `fit` chooses the weight of a blend by the rows, `partial_fit` by the statistics
    (batch.partial_fit if name in ("shrunk-pooled", "shrunk-diagonal") else batch.fit)(X, y)
    for part in np.array_split(order, 4):
        stream.partial_fit(X[part], y[part], classes=np.unique(y.astype(str)))
    assert np.allclose(stream.score_samples(X), batch.score_samples(X), rtol=1e-9, atol=1e-6 if offset else 1e-9)


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("name", [n for n in DENSITIES if n != "all integrated"])  # which needs complete rows
def test_missing_values_in_training_and_use(iris, name):
    X, y = iris
    clf = lk.BayesClassifier(DENSITIES[name]()).fit(holes(X, 0.15), y)
    P = clf.predict_proba(holes(X, 0.15, seed=1))
    assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1)
    assert clf.score(X, y) > (0.85 if name == "spherical" else 0.92)


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("name", [n for n in DENSITIES if n != "noise"])
def test_units_do_not_matter(iris, name):
    """A common factor for spherical distributions, a factor a column for the others."""
    X, y = iris
    unit = 1e-100 if name == "spherical" else 10.0 ** np.array([-100, 3, 7, 100])
    a = lk.BayesClassifier(DENSITIES[name]()).fit(X, y).predict_log_proba(X)
    b = lk.BayesClassifier(DENSITIES[name]()).fit(X * unit, y).predict_log_proba(X * unit)
    assert np.allclose(a, b, rtol=1e-8, atol=1e-7)


def test_order_of_rows_columns_and_names_of_classes_do_not_matter(iris):
    X, y = iris
    order, columns = np.random.default_rng(2).permutation(len(X)), [2, 0, 3, 1]
    a = lk.BayesClassifier().fit(X, y).predict_log_proba(X)
    b = lk.BayesClassifier().fit(X[order][:, columns], y[order]).predict_log_proba(X[:, columns])
    assert np.allclose(a, b, rtol=1e-9, atol=1e-9)
    renamed = np.array([{"setosa": 9, "versicolor": 5, "virginica": 1}[c] for c in y])
    assert np.allclose(lk.BayesClassifier().fit(X, renamed).predict_log_proba(X)[:, ::-1], a, atol=1e-9)


# ------------------------------------------------------------- few data, blends


@pytest.mark.slow
def test_shrunk_covariances_have_the_ends_they_say(iris):
    X, y = iris
    fit = lambda **how: lk.BayesClassifier(lk.GaussianDensity(prior=None, **how)).fit(X, y).predict_log_proba(X)  # noqa: E731
    assert np.allclose(fit(covariance="shrunk-pooled", shrinkage=0.0), fit(covariance="full"), atol=1e-8)
    assert np.allclose(fit(covariance="shrunk-pooled", shrinkage=1.0), fit(covariance="pooled"), atol=1e-8)
    assert np.allclose(fit(covariance="shrunk-diagonal", shrinkage=0.0), fit(covariance="full"), atol=1e-8)
    assert np.allclose(fit(covariance="shrunk-diagonal", shrinkage=1.0), fit(covariance="diagonal"), atol=1e-8)
    fit = lambda **how: lk.BayesClassifier(lk.GaussianDensity(**how)).fit(X, y).predict_log_proba(X)  # noqa: E731
    assert np.allclose(fit(covariance="shrunk-pooled", shrinkage=0.0), fit(covariance="full"), atol=1e-8)
    assert np.allclose(fit(covariance="shrunk-pooled", shrinkage=1.0), fit(covariance="pooled"), rtol=0.01)
    assert np.allclose(fit(covariance="shrunk-diagonal", shrinkage=0.0), fit(covariance="full"), atol=1e-8)


def test_pooling_by_class_is_the_plain_mean(iris):
    X, y = iris
    keep = np.r_[0:50, 50:70, 100:150]
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled", pooling="class", prior=None)).fit(X[keep], y[keep])
    each = [np.cov(X[keep][y[keep] == c].T, bias=True) for c in clf.classes_]
    assert np.allclose(clf.model_.components.covariance, np.mean(each, axis=0)) and clf.model_.components.tied
    by_row = lk.BayesClassifier(lk.GaussianDensity("pooled", prior=None)).fit(X[keep], y[keep])
    assert np.allclose(by_row.model_.components.covariance, np.average(each, axis=0, weights=[50, 20, 50]))


def test_interpolation_helps_where_rows_are_few():
    rng = np.random.default_rng(0)
    d, n = 10, 14
    root = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(0.2, 2, d)
    means = rng.normal(size=(3, d)) * 0.6
    draw = lambda m: np.concatenate([rng.normal(size=(m, d)) @ root.T + mu for mu in means])  # noqa: E731
    X, test = draw(n), draw(2000)
    y, truth = np.repeat(range(3), n), np.repeat(range(3), 2000)
    error = {
        kind: 1 - lk.BayesClassifier(lk.GaussianDensity(kind)).fit(X, y).score(test, truth)
        for kind in ("full", "shrunk-pooled", "pooled")
    }
    assert error["shrunk-pooled"] < error["full"] and error["shrunk-pooled"] < error["pooled"] + 0.03


# ----------------------------------------------------------------------- Bayesian


def test_the_worksheet_predictive():
    """W: known covariance I, prior N(m₀, Σ₀) of the mean: predictive N(m, I + S), S = (Σ₀⁻¹ + nI)⁻¹."""
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(0, 1, (7, 2)), rng.normal(3, 1, (4, 2))])
    y = np.repeat([0, 1], [7, 4])
    prior = lk.priors.MeanGivenCovariance(lk.Gaussian([1.0, 1.0], 4.0), 1.0)
    clf = lk.BayesClassifier(lk.GaussianDensity(prior=prior, predictive="mean")).fit(X, y)
    for k, n in enumerate((7, 4)):
        S = np.linalg.inv(np.eye(2) / 4 + n * np.eye(2))
        m = S @ (np.ones(2) / 4 + X[y == k].sum(axis=0))
        part = clf.model_.components.member(k)
        assert np.allclose(part.mean, m) and np.allclose(part.covariance_matrix, np.eye(2) + S)


def test_the_t_predictive_is_each_classes_posterior(iris):
    X, y = iris
    prior = lk.priors.NormalInverseWishart(X.mean(0), 1.0, np.eye(4), 6.0)
    clf = lk.BayesClassifier(lk.GaussianDensity(prior=prior, predictive="all")).fit(X, y)
    for k, c in enumerate(clf.classes_):
        rows = X[y == c]
        distribution = prior.update(lk.Gaussian.fit(rows).collect(rows)).predictive()
        assert np.allclose(clf.model_.components.member(k).log_prob(X), distribution.log_prob(X), atol=1e-9)


def test_integrating_out_has_heavier_tails_than_plugging_in():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(12, 4)) + np.repeat([0, 1], 6)[:, None], np.repeat([0, 1], 6)
    test, truth = rng.normal(size=(4000, 4)) + np.repeat([0, 1], 2000)[:, None], np.repeat([0, 1], 2000)

    def log_loss(**how):
        L = lk.BayesClassifier(lk.GaussianDensity(**how)).fit(X, y).predict_log_proba(test)
        return -L[np.arange(4000), truth].mean()

    assert log_loss(predictive="all") < log_loss()
    assert log_loss(covariance="pooled", predictive="mean") < log_loss(covariance="pooled") + 1e-9


def test_class_priors():
    X, y = [[0.0], [1.0], [2.0], [9.0]], ["a", "a", "a", "b"]
    fit = lambda prior: lk.BayesClassifier(class_prior=prior).fit(X, y).class_prior_.tolist()  # noqa: E731
    assert fit(None) == [0.75, 0.25] and fit("uniform") == [0.5, 0.5] and fit([0.1, 0.9]) == [0.1, 0.9]
    assert fit({"b": 0.3, "a": 0.7}) == [0.7, 0.3]
    assert fit(1.0) == pytest.approx([4 / 6, 2 / 6]) and fit(lk.Dirichlet([2.0, 5.0])) == pytest.approx(
        [5 / 11, 6 / 11]
    )
    with pytest.raises(lk.LikelyError, match="each class"):
        fit({"a": 1.0})


def test_known_noise_widens_every_class(iris):
    X, y = iris
    plain = lk.BayesClassifier(lk.GaussianDensity(prior=None)).fit(X, y).model_.components
    noise = np.diag([0.1, 0.2, 0.3, 0.4])
    for given, added in ((noise, noise), ([0.1, 0.2, 0.3, 0.4], noise), (0.5, 0.5 * np.eye(4))):
        noisy = lk.BayesClassifier(lk.GaussianDensity(prior=None, noise=given)).fit(X, y).model_.components
        assert np.allclose(noisy.covariance, plain.covariance + added)
    with pytest.raises(lk.ShapeError, match="noise"):
        lk.BayesClassifier(lk.GaussianDensity(noise=[1.0, 2.0])).fit(X, y)
    with pytest.raises(lk.DomainError, match="closed form"):
        lk.BayesClassifier(lk.GaussianDensity(noise=1.0, predictive="all")).fit(X, y)
    with pytest.raises(lk.DomainError, match="needs a prior"):
        lk.BayesClassifier(lk.GaussianDensity(prior=None, predictive="all")).fit(X, y)


# ------------------------------------------------------------------ small classes


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("name", DENSITIES)
def test_one_row_in_a_class(iris, name):
    X, y = iris
    X, y = np.concatenate([X, [[9.0, 9.0, 9.0, 9.0]]]), np.append(y, "lone")
    with pytest.warns(lk.FitWarning, match="'lone' has one row"):
        clf = lk.BayesClassifier(DENSITIES[name]()).fit(X, y)
    P = clf.predict_proba(X)
    assert np.isfinite(P).all() and clf.predict(X[-1:])[0] == "lone"


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("name", DENSITIES)
def test_a_class_that_does_not_vary(iris, name):
    X, y = iris
    X = X.copy()
    X[:50, 1] = 3.0
    with pytest.warns(lk.FitWarning, match=r"'setosa' does not vary in 'x1'"):
        clf = lk.BayesClassifier(DENSITIES[name]()).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all() and clf.score(X, y) > 0.85


def test_without_a_prior_the_class_is_named_too():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 3)), rng.normal(size=(2, 3)) + 4])
    with pytest.warns(lk.FitWarning, match="class 'few'"):
        lk.BayesClassifier(lk.GaussianDensity(prior=None)).fit(X, ["many"] * 30 + ["few"] * 2)


def test_one_class_only():
    clf = lk.BayesClassifier().fit([[0.0], [1.0], [2.0]], ["a"] * 3)
    assert clf.predict([[50.0]]).tolist() == ["a"] and clf.predict_proba([[1.0]]).tolist() == [[1.0]]
    with pytest.warns(lk.FitWarning, match="too small"):
        assert clf.decide([[50.0], [1.0]], novelty=0.1).tolist() == [lk.NOVEL, "a"]


# ---------------------------------------------------------------------- the border


def test_data_frames_and_names(iris):
    X, y = iris
    names = ["sl", "sw", "pl", "pw"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        clf = lk.BayesClassifier().fit(frame, y)
        assert clf.feature_names_in_.tolist() == names
        out = clf.predict_frame(frame, reject_below=0.99)
        assert type(out) is type(frame) and list(out.columns)[:2] == ["decision", "cost"]
        assert "REJECT" in set(out["decision"].to_list() if hasattr(out["decision"], "to_list") else out["decision"])
        with pytest.raises(ValueError, match="feature names"):
            clf.predict(frame[["sw", "sl", "pl", "pw"]])


@pytest.mark.slow
def test_pipelines_grids_and_cross_validation(iris):
    X, y = iris
    pipe = make_pipeline(StandardScaler(), lk.BayesClassifier(lk.GaussianDensity()))
    grid = GridSearchCV(pipe, {"bayesclassifier__density__covariance": ["full", "pooled", "diagonal"]}).fit(X, y)
    assert grid.best_score_ > 0.95
    inner = GridSearchCV(lk.BayesClassifier(lk.GaussianDensity()), {"density__covariance": ["full", "pooled"]}).fit(
        X, y
    )
    assert inner.best_params_["density__covariance"] in ("full", "pooled")
    assert cross_val_score(lk.NaiveBayes(), X, y).mean() > 0.9


def test_settings_of_a_default_density_can_be_searched():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    grid = GridSearchCV(lk.BayesClassifier(), {"density__covariance": ["full", "pooled"]}, cv=2).fit(X, y)
    assert grid.best_estimator_.density.covariance == grid.best_params_["density__covariance"]
    clf = lk.BayesClassifier()
    assert clone(clf).density is None and clf.get_params() == lk.BayesClassifier().get_params()
    assert clf.set_params(density__covariance="pooled", cost=None).density.covariance == "pooled"
    assert clf.set_params(density=None).density is None
    nested = lk.BayesClassifier(lk.MixtureDensity()).set_params(density__component__covariance="diagonal")
    assert nested.density.component.covariance == "diagonal"
    assert lk.HMMDensity().set_params(component__covariance="diagonal").component.covariance == "diagonal"
    with pytest.raises(ValueError, match="Invalid parameter"):
        lk.BayesClassifier().set_params(density__covarience="full")


@pytest.mark.parametrize(
    ("make", "example"),
    [
        (lambda: lk.BayesClassifier("gaussian"), r"such as GaussianDensity\(\)"),
        (lambda: lk.MixtureDensity(3), r"such as GaussianDensity\(\) in MixtureDensity\(.*n_components=3\)"),
        (lambda: lk.MixtureDensity(lk.GaussianDensity), r"such as GaussianDensity\(\)"),
        (lambda: lk.HMMDensity(2), r"such as GaussianDensity\(\) in HMMDensity\(.*states=3\)"),
        (lambda: lk.ProductDensity("gaussian"), r"such as GaussianDensity\(\)"),
    ],
)
def test_what_is_no_density_is_told_what_one_is(make, example):
    with pytest.raises(ValueError, match=example) as caught:
        make().fit([[0.0], [1.0], [3.0]], *([["a", "b", "b"]] if isinstance(make(), lk.BayesClassifier) else []))
    assert "_blank" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        ([[1.0], [np.inf], [2.0]], ["a", "b", "a"], "row 1, column 0"),
        ([[1.0], [2.0]], ["a"], "one label per row of X, got 1 labels for 2 rows"),
        ([[1.0], [2.0]], [None, None], "label"),
        ([["x"], ["y"]], ["a", "b"], "must be numbers"),
        ([[1.0], [2.0]], [[0, 1], [1, 0]], "1d"),
        (np.empty((0, 2)), [], "0 sample"),
    ],
)
def test_bad_input_is_named(X, y, says):
    with pytest.raises(ValueError, match=says):
        lk.BayesClassifier().fit(X, y)


def test_labels_of_every_kind(iris):
    X, _ = iris
    for labels in ([True, False], [-1, 1], [1.0, 2.0], ["a", "b"], np.array([2**40, 3]), [np.str_("u"), np.str_("v")]):
        y = np.array(labels)[np.repeat([0, 1, 0], 50)]
        clf = lk.BayesClassifier().fit(X, y)
        assert clf.classes_.tolist() == sorted(np.unique(y).tolist()) and set(clf.predict(X)) <= set(np.unique(y))
    with pytest.raises(lk.DataError, match="one kind"):
        lk.BayesClassifier().fit([[0.0], [1.0]], np.array(["a", 1], dtype=object))


def test_new_classes_must_have_been_named(iris):
    X, y = iris
    clf = lk.BayesClassifier().partial_fit(X[:100], y[:100])
    with pytest.raises(lk.DataError, match="name all classes"):
        clf.partial_fit(X[100:], y[100:])
    named = lk.BayesClassifier().partial_fit(X[:100], y[:100], classes=["setosa", "versicolor", "virginica"])
    assert named.predict_proba(X)[:, 2].max() == 0  # nothing of it was seen yet
    assert named.partial_fit(X[100:], y[100:]).score(X, y) > 0.95


def test_float32_decides_as_float64(iris):
    X, y = load_wine(return_X_y=True)
    a = lk.BayesClassifier().fit(X.astype(np.float32), y)
    assert a.predict_proba(X.astype(np.float32)).dtype == np.float64
    assert (a.predict(X.astype(np.float32)) == lk.BayesClassifier().fit(X, y).predict(X)).mean() >= 0.99


def test_a_row_beyond_all_numbers_gives_the_prior_and_is_novel(iris):
    X, y = iris
    clf = lk.BayesClassifier().fit(X, y)
    far = np.full((1, 4), 1e300)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        P = clf.predict_proba(far)
    assert np.isfinite(P).all() and P.sum() == pytest.approx(1)
    assert clf.decide(far, novelty=0.05).tolist() == [lk.NOVEL]


# ------------------------------------------------------------------- leaving one out


@pytest.mark.slow
@pytest.mark.some_cases(5)
@pytest.mark.parametrize("name", [*DENSITIES, "naive"])
def test_leave_one_out_equals_fitting_without_the_row(iris, name):
    X, y = iris
    X, y = np.concatenate([X, X[:3]]), np.append(y, y[:3])  # of copies, one is left out
    clf = lk.NaiveBayes() if name == "naive" else lk.BayesClassifier(DENSITIES[name]())
    L = clf.leave_one_out(X, y)
    for i in (0, 57, 152):
        rest = np.arange(len(X)) != i
        assert np.allclose(clf.fit(X[rest], y[rest]).predict_log_proba(X[i : i + 1]), L[i], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_leave_one_out_with_missing_values(iris):
    X, y = iris
    X, y = holes(X[::9], 0.1), y[::9]
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled"))
    L = clf.leave_one_out(X, y)
    for i in (0, 8, 16):
        rest = np.arange(len(X)) != i
        assert np.allclose(clf.fit(X[rest], y[rest]).predict_log_proba(X[i : i + 1]), L[i], atol=1e-3)


@pytest.mark.slow
def test_leave_one_out_of_a_calibrated_classifier_is_calibrated_without_the_row(iris):
    X, y = iris[0][::6], iris[1][::6]
    X = np.concatenate([X, X[:, ::-1] + 0.01 * X**2], axis=1)  # columns that are no news make it too sure
    found = lk.evaluate(lk.NaiveBayes(calibration="temperature"), X, y, cv="leave-one-out").log_posterior
    for i in (0, 12, 23):
        rest = np.arange(len(y)) != i
        np.testing.assert_allclose(found[i], lk.NaiveBayes(calibration="temperature").fit(X[rest], y[rest])
                                   .log_posterior(X[[i]])[0], atol=1e-9)  # fmt: skip
    assert np.abs(found - lk.NaiveBayes().leave_one_out(X, y)).max() > 0.5


@pytest.mark.slow
def test_leave_one_out_takes_one_copy_of_a_weight(iris):
    X, y = iris
    w = np.random.default_rng(3).integers(1, 4, len(X))
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled"))
    a = clf.leave_one_out(X, y, sample_weight=w)
    b = clf.leave_one_out(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert np.allclose(np.repeat(a, w, axis=0), b, atol=1e-9)


def test_leave_one_out_of_a_table_of_categories():
    X = np.array([[0]] * 50 + [[1]] * 50)
    y = np.array([0] * 40 + [1] * 10 + [1] * 40 + [0] * 10)
    L = lk.NaiveBayes("categorical").leave_one_out(X, y)
    assert np.mean(L.argmax(axis=1) != y) == pytest.approx(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("far", [-999999999.0, 1e8, 1e10])
def test_leave_one_out_beside_an_outlier(far):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[0] = far
    clf = lk.BayesClassifier()
    L = clf.leave_one_out(X, y)
    for i in (0, 1, 2):
        rest = np.arange(60) != i
        assert np.allclose(clf.fit(X[rest], y[rest]).predict_log_proba(X[i : i + 1]), L[i], rtol=1e-4, atol=1e-4)


def test_rows_that_no_class_explains_are_decided_by_the_prior_everywhere():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), np.array(["a"] * 20 + ["b"] * 80)
    clf, far = lk.BayesClassifier().fit(X, y), np.full((1, 2), 1e160)
    assert clf.predict_proba(far).tolist() == [[0.2, 0.8]]
    assert clf.predict(far).tolist() == clf.decide(far).tolist() == ["b"]


def test_another_prior_counts_for_novelty_and_in_logs():
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], [990, 10])
    X = rng.normal(size=(1000, 2)) + 30.0 * (y == "b")[:, None]
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, y)
    new = np.concatenate([rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + 30.0])
    rare = clf.decide(new, novelty=0.05)
    even = clf.decide(new, novelty=0.05, class_prior="uniform")
    assert (even == clf.with_class_prior("uniform").decide(new, novelty=0.05)).all()
    assert np.mean(even == lk.NOVEL) < 0.12 < np.mean(rare == lk.NOVEL)
    assert clf.decide(new[:1], class_prior={"a": 0.0, "b": 1.0}).tolist() == ["b"]  # exp(−748) is not 0
    assert clf.decide(X[:5], class_prior=[0.2, 0.8]).tolist() == ["a"] * 5


def test_notes_on_shrunk_covariances_are_of_the_model_and_not_of_its_folds(iris):
    X, y = iris
    clf = lk.BayesClassifier(lk.GaussianDensity("shrunk-pooled", prior=None)).fit(X, y)
    own = clf.stats_.components.scatter / clf.class_count_[:, None, None]
    pooled = np.tensordot(clf.class_prior_, own, axes=1)
    s = clf.density_.shrinkage_[:, None, None]
    assert np.allclose(clf.model_.components.covariance, (1 - s) * own + s * pooled)


def test_names_of_columns_follow_the_parts():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame({"u": rng.normal(size=60), "v": rng.normal(size=60) + 5 * y, "k": np.where(y, "p", "q")})
    parts = [("k", lk.CategoricalDensity(), ["k"]), ("xy", lk.GaussianDensity(), ["v", "u"])]
    why = lk.BayesClassifier(lk.ProductDensity(parts)).fit(frame, y).explain(frame[:1])
    assert why.columns == ["k", "v", "u"] and why.values[0] == ["q", frame["v"][0], frame["u"][0]]
    frame.loc[y == 0, "v"] = 1.0
    with pytest.warns(lk.FitWarning, match="does not vary in 'v'"):
        lk.BayesClassifier(lk.ProductDensity(parts[1:])).fit(frame, y)


def test_weights_that_sum_to_one_are_reported(iris):
    X, y = iris
    with pytest.warns(lk.FitWarning, match="weights sum to 1 for 150 rows"):
        lk.BayesClassifier().fit(X, y, sample_weight=np.full(150, 1 / 150))


def test_a_fixed_shrinkage_gives_a_lone_row_the_whole_target(iris):
    X, y = iris
    X, y = np.concatenate([X, [[9.0, 9.0, 9.0, 9.0]]]), np.append(y, "lone")
    clf = lk.BayesClassifier(lk.GaussianDensity("shrunk-pooled", shrinkage=0.25)).fit(X, y)
    assert clf.density_.shrinkage_[clf.classes_.tolist().index("lone")] == 1.0


def test_the_integrated_mean_widens_by_one_row_in_n(iris):
    X, y = iris
    plain = lk.BayesClassifier(lk.GaussianDensity()).fit(X, y).model_.components.covariance
    wide = lk.BayesClassifier(lk.GaussianDensity(predictive="mean")).fit(X, y).model_.components.covariance
    assert np.allclose(wide / plain, 1 + 1 / 50.01)


@pytest.mark.slow
def test_threads_leave_the_warnings_of_the_process_alone(iris):
    from concurrent.futures import ThreadPoolExecutor

    X, y = iris
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: lk.BayesClassifier().fit(X, y), range(40)))
    assert warnings.filters == before


@pytest.mark.parametrize(
    ("cost", "prior"),
    [
        (pd.DataFrame([[0, 5], [1, 0]], index=[0, 1], columns=[0, 1]), None),
        ({0: {0: 0, 1: 5}, 1: {0: 1, 1: 0}}, {0: 0.3, 1: 0.7}),
    ],
)
def test_settings_of_every_form_are_saved(tmp_path, cost, prior):
    X, y = [[0.0], [1.0], [5.0], [6.5]], [0, 0, 1, 1]
    clf = lk.BayesClassifier(cost=cost, class_prior=prior).fit(X, y)
    clf.save(tmp_path / "c.likely")
    again = lk.load(tmp_path / "c.likely")
    assert (again.decide(X) == clf.decide(X)).all() and np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    moved = clf.with_class_prior({0: 0.2, 1: 0.8})
    moved.save(tmp_path / "m.likely")
    assert np.array_equal(lk.load(tmp_path / "m.likely").predict_proba(X), moved.predict_proba(X))


@pytest.mark.parametrize("settings", [{"covariance": "poled"}, {"predictive": "al"}, {"shrinkage": 7}])
def test_misspelled_settings_of_a_density_are_refused(iris, settings):
    X, y = iris
    density = lk.GaussianDensity(**settings)
    for clf in (lk.BayesClassifier(density), lk.NaiveBayes(density), lk.BayesClassifier(lk.ProductDensity(density))):
        with pytest.raises(ValueError, match=next(iter(settings))):
            clf.fit(X, y)
        with pytest.raises(ValueError, match=next(iter(settings))):
            clone(clf).partial_fit(X, y)


def test_a_distribution_in_the_place_of_an_estimator_is_told_its_name():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    for density in (lk.Laplace, lk.Laplace([0.0, 0.0], 1.0), lk.LaplaceDensity):
        with pytest.raises(lk.DomainError, match=r"use LaplaceDensity\(\)"):
            lk.BayesClassifier(density).fit(X, y)


def thin_classes(n, rng):
    """Two classes a little apart in directions in which six columns move together: what tells them is correlation."""
    y = rng.integers(0, 2, n)
    moved = y[:, None] * np.array([0.15, -0.1, 0.1, 0.0, 0.05, -0.1])
    causes = np.random.default_rng(7).normal(size=(2, 6))
    return rng.normal(size=(n, 2)) @ causes + 0.1 * rng.normal(size=(n, 6)) + moved, y


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_the_weak_prior_costs_no_errors_where_entries_are_missing(stream):
    """Two in a hundred, when the prior was made of rows that a model without correlations had filled."""
    errors = {"weak": 0.0, None: 0.0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        (X, y), (new, truth) = thin_classes(100, rng), thin_classes(4000, rng)
        X[rng.random(X.shape) < 0.15] = np.nan
        for prior in errors:
            clf = lk.BayesClassifier(lk.GaussianDensity("pooled", prior=prior))
            clf = clf.partial_fit(X, y) if stream else clf.fit(X, y)
            errors[prior] += np.mean(clf.predict(new) != truth) / 3
    assert errors["weak"] < errors[None] + 0.005 and errors["weak"] < 0.185


def test_a_full_covariance_is_not_integrated_out_of_rows_with_missing_values(iris):
    """The t distribution counts rows, and would take what was filled in as seen; a diagonal one counts entries."""
    X, y = iris
    gappy = holes(X, 0.15)
    for made in (lk.GaussianDensity(predictive="all"), lk.BayesClassifier(lk.GaussianDensity(predictive="all"))):
        with pytest.raises(lk.DomainError, match=r"in closed form needs complete rows, got missing entries"):
            made.fit(gappy, y)
    known = lk.priors.MeanGivenCovariance(lk.Gaussian(X.mean(axis=0), np.eye(4)), np.cov(X.T))
    with pytest.raises(lk.DomainError, match="needs complete rows"):
        lk.GaussianDensity(prior=known, predictive="mean").fit(gappy)
    diagonal = lk.GaussianDensity("diagonal", predictive="all").fit(gappy)
    assert np.isfinite(diagonal.score(gappy)) and len(set(np.ravel(diagonal.model_.dof))) == 4


@pytest.mark.slow
def test_the_integrated_mean_counts_the_entries_of_each_column(iris):
    """Never narrower than the exact distribution of the mean, which also learns from other columns."""
    X = holes(iris[0][:40], 0.3)
    wide, plain = lk.GaussianDensity(predictive="mean").fit(X), lk.GaussianDensity().fit(X)
    S, kappa = plain.covariance_, float(plain.prior_.kappa)
    own = 1 / np.sqrt(kappa + (~np.isnan(X)).sum(axis=0))
    assert np.allclose(wide.covariance_, S + own[:, None] * S * own)
    information = kappa * np.linalg.inv(S)
    for row in X:
        at = np.flatnonzero(~np.isnan(row))
        information[np.ix_(at, at)] += np.linalg.inv(S[np.ix_(at, at)])
    exact = np.diagonal(S + np.linalg.inv(information))
    assert (np.diagonal(wide.covariance_) >= exact - 1e-12).all()
    assert (np.diagonal(wide.covariance_) <= 1.05 * exact).all()


def test_a_note_on_many_classes_names_the_first_of_them(rng):
    X, y = rng.normal(size=(60, 2)), [f"L{i:02d}" if i < 30 else "common" for i in range(60)]
    with pytest.warns(lk.FitWarning, match=r"classes 'L00', 'L01', 'L02', 'L03', 'L04' and 25 more have one row each:"):
        lk.BayesClassifier(lk.GaussianDensity("diagonal", prior="weak")).fit(X, y)

"""Tools of scikit-learn around our estimators, which are not derived from its base class."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import likely as lk
from likely.estimation.base_estimator import BaseEstimator
from likely.estimation.scikit_learn import clone as own_clone

X, Y = load_iris(return_X_y=True)


def bayes():
    return lk.BayesClassifier(lk.GaussianDensity("pooled"))


@pytest.mark.parametrize(
    "tool",
    [
        StackingClassifier([("bayes", bayes()), ("naive", lk.NaiveBayes())], lk.KNeighborsClassifier(5), cv=3),
        VotingClassifier([("bayes", bayes()), ("naive", lk.NaiveBayes())], voting="soft"),
        CalibratedClassifierCV(bayes(), cv=3), OneVsRestClassifier(lk.BayesClassifier()),
        BaggingClassifier(bayes(), n_estimators=3, random_state=0),
        make_pipeline(FeatureUnion([("pca", lk.PCA(2)), ("fisher", lk.FisherDiscriminant())]), bayes()),
        make_pipeline(StandardScaler(), SequentialFeatureSelector(bayes(), n_features_to_select=2, cv=2), bayes()),
        GridSearchCV(make_pipeline(lk.PCA(), bayes()), {"pca__n_components": [1, 2]}),
    ],
    ids=lambda tool: type(tool).__name__,
)  # fmt: skip
def test_meta_estimators_take_our_classifiers(tool):
    fitted = clone(tool).fit(X, Y)
    assert fitted.score(X, Y) > 0.9
    assert cross_val_score(clone(tool), X, Y, cv=2).mean() > 0.9
    assert (pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)).all()


def test_kinds_are_told_by_tags():
    assert is_classifier(bayes()) and not is_regressor(bayes()) and not is_classifier(lk.GaussianDensity())
    assert is_classifier(make_pipeline(StandardScaler(), bayes())) and is_clusterer(lk.KMeans(2))
    assert lk.GaussianDensity().__sklearn_tags__().estimator_type == "density_estimator"
    assert cross_val_predict(bayes(), X, Y, method="predict_proba").shape == (150, 3)  # folds are stratified


def test_scikit_learn_knows_what_is_fitted():
    with pytest.raises(NotFittedError):
        check_is_fitted(bayes())
    with pytest.raises(NotFittedError, match="This BayesClassifier instance is not fitted yet"):
        bayes().predict(X)
    check_is_fitted(bayes().fit(X, Y))


@pytest.mark.parametrize("copied", [clone, own_clone])
def test_clones_are_unfitted_and_keep_what_scikit_learn_has_set(copied):
    with sklearn.config_context(enable_metadata_routing=True):
        made = copied(bayes().set_fit_request(sample_weight=True).fit(X, Y))
        assert made.get_metadata_routing().fit.requests["sample_weight"] is True
    assert not hasattr(made, "model_") and made.density is not bayes().density and made.density.covariance == "pooled"
    out = copied(lk.PCA(2).set_output(transform="pandas")).fit_transform(X)
    assert isinstance(out, pd.DataFrame) and list(out) == ["pca0", "pca1"]


def test_a_constructor_that_changes_a_setting_cannot_be_cloned():
    class Copying(BaseEstimator):
        def __init__(self, value=()):
            self.value = list(value)

    with pytest.raises(RuntimeError, match="value"):
        clone(Copying([2.5]))


def test_metadata_is_routed_on_request():
    weight = np.where(Y == 0, 1.0, 3.0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = bayes().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        found = GridSearchCV(asked, {"density__covariance": ["pooled"]}).fit(X, Y, sample_weight=weight)
        np.testing.assert_array_equal(found.best_estimator_.class_prior_, bayes().fit(X, Y, weight).class_prior_)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            cross_val_score(bayes(), X, Y, params={"sample_weight": weight})
        with pytest.raises(TypeError, match="Unexpected args"):
            bayes().set_fit_request(nonsense=True)
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        bayes().set_fit_request(sample_weight=True)
    assert not hasattr(bayes(), "set_transform_request") and hasattr(lk.PCA, "set_fit_request")


def test_notebooks_show_a_diagram():
    pipe = make_pipeline(StandardScaler(), bayes()).fit(X, Y)
    for thing in (bayes(), bayes().fit(X, Y), pipe):
        assert "BayesClassifier" in thing._repr_html_()
        assert set(thing._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert "covariance" in bayes()._repr_html_()  # the table of parameters
    with sklearn.config_context(display="text"):
        assert not hasattr(bayes(), "_repr_html_") and "text/html" not in bayes()._repr_mimebundle_()


def test_printed_as_scikit_learn_prints():
    class Peer(sklearn.base.BaseEstimator):
        def __init__(self, density=None, novelty=None, cost=None):
            self.density, self.novelty, self.cost = density, novelty, cost

    Ours = type("Peer", (BaseEstimator,), {"__init__": Peer.__init__})
    cases = [{}, {"novelty": 0.1}, {"cost": [[0, 1]] * 4, "novelty": 0.25}, {"cost": "x" * 70, "novelty": 0.5}]
    for case in cases:
        nested = {**case, "density": case.get("cost")}
        assert repr(Ours(**case)) == repr(Peer(**case))
        assert repr(Ours(Ours(**nested), 0.5)) == repr(Peer(Peer(**nested), 0.5))
    with sklearn.config_context(print_changed_only=False):
        assert repr(Ours()) == "Peer(cost=None, density=None, novelty=None)"
    long = repr(Ours(cost=list(range(1000))))
    assert len(long) < 720 and "..." in long
    inside = repr(make_pipeline(StandardScaler(), bayes()))
    assert inside.endswith("BayesClassifier(density=GaussianDensity(covariance='pooled')))])")


def test_unknown_parameters_are_named():
    with pytest.raises(ValueError, match=r"Invalid parameter 'nonsense' for estimator BayesClassifier\(.*density"):
        bayes().set_params(nonsense=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense' for estimator GaussianDensity"):
        bayes().set_params(density__nonsense=1)
    changed = bayes().set_params(density=lk.GaussianDensity(), density__covariance="full", novelty=0.1)
    assert changed.density.covariance == "full" and changed.novelty == 0.1


def test_a_class_without_a_constructor_has_no_parameters():
    class Plain(lk.extend.DensityEstimator):
        pass

    assert Plain().get_params() == {} and repr(Plain()) == "Plain()" and isinstance(clone(Plain()), Plain)

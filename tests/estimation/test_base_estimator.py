"""Names of other libraries: what they are here is said, and nothing else changes."""

from __future__ import annotations

import copy
import inspect
import pickle
from operator import attrgetter

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk
from likely.estimation.base_estimator import PARAMETERS
from likely.io import model_files
from tests.public_names import public

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.arange(40) % 2


@pytest.mark.parametrize(
    ("kind", "settings", "use"),
    [
        (lk.HMMDensity, {"n_components": 3}, "n_states="),
        (lk.HMMDensity, {"covariance_type": "diag"}, "component=GaussianDensity(covariance=…)"),
        (lk.HMMDensity, {"transmat_prior": 2.0}, "prior="), (lk.HMMDensity, {"startprob_prior": 2.0}, "prior="),
        (lk.HMMDensity, {"n_iter": 9}, "max_iter="), (lk.MixtureDensity, {"init_params": 3}, "init="),
        (lk.MixtureDensity, {"covariance_type": "full"}, "component=GaussianDensity(covariance=…)"),
        (lk.GaussianDensity, {"covariance_type": "full"}, "covariance="),
        (lk.KMeans, {"n_components": 3}, "n_clusters="), (lk.KMeans, {"initialization": "random"}, "init="),
        (lk.BayesClassifier, {"priors": [0.5, 0.5]}, "class_prior="),
        (lk.BayesClassifier, {"n_components": 2}, "density=MixtureDensity(n_components=…)"),
        (lk.BayesClassifier, {"tol": 1e-3}, "density=GaussianDensity(tol=…)"),
        (lk.NaiveBayes, {"priors": [0.5, 0.5]}, "class_prior="), (lk.KernelDensity, {"bw_method": 0.2}, "bandwidth="),
        (lk.KernelDensity, {"scale": 0.2}, "relative_bandwidth=scale**0.5"),
        (lk.KNNDensity, {"k": 3}, "n_neighbors="), (lk.KNeighborsClassifier, {"k": 3}, "n_neighbors="),
        (lk.DTWClassifier, {"k": 3}, "n_neighbors="), (lk.AgglomerativeClustering, {"affinity": "l2"}, "metric="),
        (lk.LinearGaussianDensity, {"k_states": 2}, "n_states="), (lk.SwitchingDensity, {"k_regimes": 2}, "n_regimes="),
        (lk.GaussianDensity, {"covarience": "full"}, "covariance="), (lk.PoissonDensity, {"alpha": 1.0}, "prior="),
    ],
)  # fmt: skip
def test_a_parameter_of_another_library_is_translated(kind, settings, use):
    with pytest.raises(TypeError) as caught:
        kind(**settings)
    assert str(caught.value) == f"{kind.__name__} takes no {next(iter(settings))}=; use {use}"


def test_a_parameter_that_nobody_has_gets_the_list():
    with pytest.raises(TypeError, match="GaussianDensity takes no zzz=; its parameters are covariance, prior, pooling"):
        lk.GaussianDensity(zzz=1)
    with pytest.raises(TypeError, match=r"n_components=; use n_states=; HMMDensity takes no n_iter=; use max_iter="):
        lk.HMMDensity(n_components=2, n_iter=3)
    with pytest.raises(TypeError, match="positional"):
        lk.GaussianDensity("full", "weak", "more")


def estimators():
    return [one for one in public().values() if isinstance(one, type) and hasattr(one, "get_params")]


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_constructors_are_as_they_were(kind):
    names = [name for name in inspect.signature(kind).parameters if name != "self"]
    assert list(inspect.signature(kind.__init__).parameters)[1:] == names and sorted(names) == kind._get_param_names()
    foreign = next(name for name in PARAMETERS if name not in names)
    needed = [p.name for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
    with pytest.raises(TypeError, match=f"^{kind.__name__} takes no {foreign}=; "):
        kind(**dict.fromkeys(needed), **{foreign: 1})


@pytest.mark.parametrize(
    ("fitted", "there"),
    [
        (lambda: lk.GaussianDensity().fit(X), {"means_": "mean_", "precision_": "the inverse of covariance_"}),
        (
            lambda: lk.MixtureDensity(lk.GaussianDensity(), 2, random_state=0).fit(X),
            {"means_": "model_.components.mean", "covariances_": "model_.components.covariance",
             "precisions_": "the inverse of model_.components.covariance", "converged_": "report_.converged"},
        ),
        (
            lambda: lk.HMMDensity(n_states=2, random_state=0, max_iter=3).fit(X),
            {"transmat_": "model_.transition", "startprob_": "model_.initial", "means_": "model_.emission.mean",
             "covars_": "model_.emission.covariance", "decode": "model_.viterbi"},
        ),
        (lambda: lk.BayesClassifier().fit(X, Y), {"priors_": "class_prior_", "theta_": "model_.components.mean"}),
        (lambda: lk.KMeans(2, random_state=0).fit(X), {"centers_": "cluster_centers_"}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_an_attribute_of_another_library_is_translated(fitted, there):
    model = fitted()
    for name, ours in there.items():
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; here it is {ours}$"):
            getattr(model, name)
        assert not hasattr(model, name) and getattr(model, name, 7) == 7
        assert attrgetter(ours.removeprefix("the inverse of "))(model) is not None
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_'$"):
        _ = model.nothing_
    ask = "predict" if hasattr(model, "predict") else "score_samples"
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert vars(other).keys() == vars(model).keys()
        np.testing.assert_array_equal(getattr(other, ask)(X), getattr(model, ask)(X))
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_what_a_property_says_is_not_hidden():
    with pytest.raises(AttributeError, match="no attribute 'model_'"):
        _ = lk.PoissonDensity().rate_  # not fitted yet
    with pytest.raises(AttributeError, match=r"no attribute 'means_'$"):
        _ = lk.GaussianDensity().means_  # nothing to point to


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (lk.DTWClassifier(n_neighbors=True), [X, X]),
        (lk.HMMDensity(n_states=True), [X, X]),
        (lk.MixtureDensity(n_components=True), X),
        (lk.GaussianDensity(tol=False), X),
    ],
)
def test_truth_values_are_no_numbers(estimator, data):
    told = rf"^{type(estimator).__name__}: \w+ must be a number, got (True|False)\.$"
    with pytest.raises(lk.DomainError, match=told):
        estimator.fit(data, None if data is X else [0, 1])


def test_a_file_with_a_truth_value_for_a_number_is_refused():
    fitted = lk.DTWClassifier(n_neighbors=1).fit([X, X + 1], [0, 1])
    fitted.n_neighbors = True
    with pytest.raises(lk.ModelFileError, match="n_neighbors must be a number, got True"):
        model_files.loads(model_files.dumps(fitted))

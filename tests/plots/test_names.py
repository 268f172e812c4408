"""Every picture goes by its name, however often it is asked for."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
import likely.plots
from likely.names import PUBLIC, SPACES
from tests.public_names import signature_parts, stub, stub_path, untyped

UNTYPED = 0.135  # share of parameters and results of public signatures whose type contains Any; it was 0.205


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_no_name_is_that_of_a_file():
    files = {module.name for module in pkgutil.iter_modules(likely.plots.__path__)}
    assert not files & set(likely.plots.__all__)
    folders = {module.name for module in pkgutil.iter_modules(lk.__path__)}
    assert folders & set(lk.__all__) == SPACES
    for space in SPACES - {"extend", "priors", "speech"}:  # which are files
        module = import_module(f"likely.{space}")
        assert not {inner.name for inner in pkgutil.iter_modules(module.__path__)} & set(module.__all__)


def test_stubs_are_not_stale():
    for space in PUBLIC:
        assert stub_path(space).read_text(encoding="utf-8") == stub(space), "python -m tests.public_names writes it"


def test_types_of_public_signatures_are_said():
    """Any is for what has no type: estimators of other libraries, models of any kind. The share only falls."""
    parts = signature_parts()
    assert len(untyped(parts)) / len(parts) <= UNTYPED


def test_a_name_of_another_namespace_is_said():
    with pytest.raises(AttributeError, match=r"'likely' has no attribute 'purity'; it is likely.metrics.purity$"):
        _ = lk.purity
    with pytest.raises(AttributeError, match=r"'likely.metrics' has no attribute 'HMM'; it is likely.HMM$"):
        _ = lk.metrics.HMM


def examples(rng):
    X = rng.normal(size=(30, 2))
    h = lk.HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], lk.Gaussian([[0.0], [5.0]], 1.0))
    heard = lk.speech.Transcript(("one",), np.array([0]), np.array([7]), -31.5, np.array([0.99]))
    mixture = lk.MixtureDensity(lk.GaussianDensity(), 2, random_state=0)
    clf = lk.BayesClassifier().fit(X, X[:, 0] > 0)
    a, b = [1.0, 0, 1, 2, 1], [1.0, 0, 2, 1]
    pca = lk.PCA().fit(X)
    walk = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    plane = lk.LinearGaussian.constant_velocity(dim=2)
    return {
        "DensityDisplay": lambda p: p.from_model(lk.Gaussian([0.0, 0.0], 1.0)),
        "EvaluationDisplay": lambda p: p.from_estimator(clf, X, X[:, 0] > 0),
        "ScoresDisplay": lambda p: p.from_estimator(pca, X), "ScreeDisplay": lambda p: p.from_estimator(pca),
        "plot_alignment": lambda p: p(a, b, lk.dtw(a, b)), "plot_transition_graph": lambda p: p(h),
        "plot_component_criteria": lambda p: p(lk.choose_components(mixture, X, (1, 2))),
        "plot_decision_regions": lambda p: p(clf, X, X[:, 0] > 0),
        "plot_dendrogram": lambda p: p(lk.cluster.linkage(X)),
        "plot_state_probabilities": lambda p: p(h, a), "plot_convergence": lambda p: p(mixture.fit(X).report_),
        "plot_trellis": lambda p: p(h, a), "plot_warping_path": lambda p: p(a, b, lk.dtw(a, b)),
        "plot_word_segments": lambda p: p(heard),
        "plot_state_estimates": lambda p: p(walk, a),
        "plot_track": lambda p: p(plane.smooth(X)), "plot_regimes": lambda p: p(np.eye(2)),
        "plot_particles": lambda p: p(lk.ParticleFilter(walk.distributions, 20).run(a)),
        "plot_chow_liu_tree": lambda p: p(lk.distributions.ChowLiuTree.fit(np.sign(X))),
        "plot_fisher_projection": lambda p: p(lk.FisherDiscriminant().fit(X, X[:, 0] > 0), X, X[:, 0] > 0),
        "plot_distribution": lambda p: p(lk.Poisson(3.0), p(lk.Laplace(0.0, 1.0))),
        "plot_decision_boundary": lambda p: p(
            lk.decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([1.0, 0.0], 2.0))
        ),
    }  # fmt: skip


@pytest.mark.slow
def test_every_picture_can_be_drawn_twice(rng):
    drawn = examples(rng)
    assert set(drawn) == set(likely.plots.__all__)
    for name, draw in drawn.items():
        for _ in range(2):
            draw(getattr(lk.plots, name))
            plt.close("all")

"""Densities of sequences as densities of classes and as components of mixtures, in files and in streams."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core import with_covariates
from likely.io import model_files


def walks(memory, n, rng, T=60):
    """Autoregressions: level, and how strongly a frame depends on the one before."""
    out = []
    for _ in range(n):
        x = np.zeros(T)
        for t in range(1, T):
            x[t] = memory * x[t - 1] + rng.normal()
        out.append(x[:, None])
    return out


def driven(effect, n, rng, T=60):
    """Two states, left with log-odds −2 + effect · u: frames at 0 or 4, and the covariates u."""
    out = []
    for _ in range(n):
        u, z = rng.normal(size=(T, 1)), np.zeros(T, dtype=int)
        for t in range(1, T):
            z[t] = z[t - 1] ^ (rng.random() < 1 / (1 + np.exp(2 - effect * u[t, 0])))
        out.append((4.0 * z[:, None] + rng.normal(size=(T, 1)), u))
    return with_covariates([x for x, _ in out], [u for _, u in out])


def two_kinds(kind):
    """A density, and twenty sequences of each of two kinds."""
    rng = np.random.default_rng(0)
    if kind == "covariates":
        X = lk.Ragged.joined([driven(3.0, 20, rng), driven(-3.0, 20, rng)])
        return lk.HMMDensity(n_states=2, max_iter=10, random_state=0), X
    X = lk.Ragged.of([*walks(0.9, 20, rng), *walks(-0.5, 20, rng)])
    if kind == "linear":
        return lk.LinearGaussianDensity(max_iter=30), X
    return lk.SwitchingDensity(2, max_iter=3, random_state=0), X


KINDS = ["linear", "switching", "covariates"]
Y = np.repeat(["a", "b"], 20)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_as_the_densities_of_classes(kind):
    density, X = two_kinds(kind)
    train = np.arange(40) % 2 == 0
    clf = lk.BayesClassifier(density).fit(X[train], Y[train])
    assert clf.score(X[~train], Y[~train]) >= 0.9
    again = lk.BayesClassifier(density).fit(X[train], Y[train]).log_posterior(X[~train])
    assert np.array_equal(again, clf.log_posterior(X[~train]))
    again = model_files.loads(model_files.dumps(clf))
    assert np.array_equal(again.log_posterior(X), clf.log_posterior(X))
    assert clf.decide(X[~train], reject_below=0.999).shape == (20,)
    if kind == "covariates":
        with pytest.raises(lk.DomainError, match="covariates are not modeled"):
            clf.decide(X, novelty=0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_as_the_components_of_a_mixture(kind):
    density, X = two_kinds(kind)
    fitted = lk.MixtureDensity(density, 2, random_state=0, n_init=3).fit(X)
    found = fitted.model_.posterior(X).argmax(axis=1)
    share = lk.metrics.adjusted_rand_index(found, Y)
    if kind == "covariates":  # frames of both kinds are alike, and starts see frames only: no more than a better fit
        assert fitted.score(X) > density.fit(X).score(X)
    else:
        assert share > 0.5
    again = model_files.loads(model_files.dumps(fitted))
    assert np.array_equal(again.score_samples(X), fitted.score_samples(X))
    each = np.log(fitted.model_.weights) + fitted.model_.components.log_prob(X)
    assert np.allclose(np.logaddexp.reduce(each, axis=1), fitted.score_samples(X))

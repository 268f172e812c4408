"""Model-free densities as estimators and classes: streams, weights, scales of their own, real data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import likely as lk

DATA = Path(os.environ.get("LIKELY_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
DENSITIES = [
    lk.KernelDensity(), lk.KernelDensity(kernel="elliptical", bandwidth="maximum"), lk.KernelDensity(bandwidth=0.5),
    lk.KernelDensity(kernel="t", bandwidth="scott"), lk.KernelDensity(kernel="epanechnikov"),
    lk.KernelDensity(unit="class"), lk.KernelDensity(unit="common"),
    lk.HistogramDensity([-9.0, -2.0, -1.0, 0.0, 1.0, 9.0]), lk.KNNDensity(3),
]  # fmt: skip


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) * [0.5, 1.0] + np.stack([2.0 * y, (y == 1) * 3.0], axis=1), y


@pytest.mark.some_cases(4)
@pytest.mark.slow
@pytest.mark.parametrize("density", DENSITIES, ids=repr)
def test_streams_are_the_batch(density):
    from sklearn.base import clone

    X, y = table()
    whole, stream = clone(density).fit(X), clone(density)
    for part in np.array_split(np.random.default_rng(1).permutation(240), 5):
        stream.partial_fit(X[part])
    assert np.allclose(stream.score_samples(X), whole.score_samples(X), rtol=1e-12)
    clf, later = lk.BayesClassifier(clone(density)).fit(X, y), lk.BayesClassifier(clone(density))
    for part in np.array_split(np.arange(240), 5):
        later.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert np.allclose(later.predict_proba(X), clf.predict_proba(X), atol=1e-9)


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("density", DENSITIES, ids=repr)
def test_classes_are_distinguished(density):
    X, y = table()
    Z, z = table(seed=1)
    clf = lk.BayesClassifier(density).fit(X, y)
    assert clf.score(Z, z) > 0.9
    out = clf.leave_one_out(X[:45], y[:45])
    assert (out.argmax(axis=1) == y[:45]).mean() > 0.8
    assert clf.sample(10, random_state=0)[0].shape == (10, 2)


@pytest.mark.slow
def test_each_class_has_its_own_bandwidth():
    rng = np.random.default_rng(2)
    lumps = np.repeat(rng.normal(size=(10, 2)) * 5, 20, axis=0) + 0.05 * rng.normal(size=(200, 2))
    X, y = np.concatenate([lumps, rng.normal(size=(200, 2))]), np.repeat([0, 1], 200)
    alone = lk.KernelDensity().fit(X[y == 1])
    for unit in ("pooled", "class", "common"):
        model = lk.BayesClassifier(lk.KernelDensity(unit=unit)).fit(X, y).model_.components
        relative = model.relative_bandwidth
        assert relative[0] < 0.1 and relative[1] > 0.2
        for k in (0, 1):  # the best of its own rows that were left out
            one, rows = model.member(k), X[y == k]
            best = one.objective(one.collect(rows))
            for factor in (0.9, 1.1):
                assert best > one.replace(bandwidth=one.bandwidth * factor).objective(one.collect(rows))
        if unit == "class":
            assert alone.relative_bandwidth_[0] == pytest.approx(relative[1], rel=1e-9)


@pytest.mark.slow
def test_leave_one_out_of_a_classifier_is_learning_from_the_rest():
    X, y = table(45)
    clf = lk.BayesClassifier(lk.KernelDensity(bandwidth="maximum")).fit(X, y)
    out = clf.leave_one_out(X, y)
    for i in (0, 7, 31):
        rest = np.arange(45) != i
        other = lk.BayesClassifier(lk.KernelDensity(bandwidth="maximum")).fit(X[rest], y[rest])
        want = other.log_posterior(X[i : i + 1])
        assert np.allclose(out[i], want[0], atol=1e-9)


@pytest.mark.parametrize("density", DENSITIES, ids=repr)
def test_summaries(density):
    text = str(density.fit(table()[0]).summary())
    assert type(density).__name__ in text and ("log-likelihood" in text or "no density" in text)


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_a_mixture_with_labels_of_which_some_are_missing():
    X, y = table()
    hidden = np.where(np.arange(240) % 4 == 0, None, y).astype(object)
    clf = lk.BayesClassifier(lk.KernelDensity(bandwidth="silverman")).fit(X, hidden)
    assert clf.score(X, y) > 0.85


def test_joint_histograms_see_what_columns_do_not():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (2000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # exclusive or
    joint = lk.BayesClassifier(lk.HistogramDensity(6, joint=True)).fit(X, y)
    apart = lk.BayesClassifier(lk.HistogramDensity(6)).fit(X, y)
    assert joint.score(X, y) > 0.95 and apart.score(X, y) < 0.65


def ripley(name):
    path = DATA / "tables" / name
    if not path.exists():
        pytest.skip("no data: Ripley's are not here")
    rows = np.loadtxt(path, skiprows=1, delimiter=",")
    return rows[:, :2], rows[:, 2].astype(int)


def test_ripleys_two_classes():
    """Ripley (1996): about 8 % is the best that can be done; kernel densities come near it."""
    X, y = ripley("ripley_synth_tr.csv")
    Z, z = ripley("ripley_synth_te.csv")
    clf = lk.BayesClassifier(lk.KernelDensity()).fit(X, y)
    assert clf.score(Z, z) >= 0.9

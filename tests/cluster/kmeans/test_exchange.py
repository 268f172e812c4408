"""Exchange: the change that is tracked is the change that happens, and the end is no worse than Lloyd's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.cluster.kmeans._loops.exchange_pass import exchange_pass
from likely.cluster.kmeans.centroids import Centroids
from likely.cluster.kmeans.exchange import exchange
from likely.cluster.kmeans.kmeans import kmeans
from likely.cluster.kmeans.lloyd import lloyd, with_own_variances
from likely.core.em_loop import StoppingRule

EXACT = StoppingRule(300, 0.0)


def scatter_of(x, w, labels, k):
    """The criterion from its definition, over what was seen."""
    total = 0.0
    for q in range(k):
        z, v = x[labels == q], w[labels == q][:, None]
        seen = np.where(np.isnan(z), 0.0, v)
        mean = np.divide(np.nansum(v * z, axis=0), seen.sum(axis=0), out=np.zeros(x.shape[1]), where=seen.any(axis=0))
        total += np.nansum(v * (z - mean) ** 2)
    return total


@pytest.mark.parametrize("has_missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_change_is_tracked_exactly(has_missing, weighted):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((150, 3)) < has_missing, np.nan, rng.normal(size=(150, 3)))
    w = rng.random(150) + 0.1 if weighted else np.ones(150)
    labels = rng.integers(0, 5, 150).astype(np.int32)
    before = scatter_of(x, w, labels, 5)
    stats = Centroids(np.zeros((5, 3))).collect(x[:0])
    seen = np.stack([np.where(np.isnan(x), 0.0, w[:, None])[labels == q].sum(axis=0) for q in range(5)])
    sums = np.stack([np.nansum((w[:, None] * x)[labels == q], axis=0) for q in range(5)])
    moved, change = exchange_pass(
        x, w, has_missing > 0, 0.0, labels, sums / seen, seen, np.bincount(labels, minlength=5), seen.sum(axis=1),
        np.zeros(5) + stats.scatter,
    )  # fmt: skip
    assert moved > 20
    assert change < 0
    assert scatter_of(x, w, labels, 5) - before == pytest.approx(change, rel=1e-9)


@pytest.mark.parametrize("has_missing", [0.0, 0.2])
def test_it_ends_no_worse_than_lloyd_and_every_row_is_nearest_to_its_own(has_missing):
    better = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = np.where(rng.random((120, 2)) < has_missing, np.nan, rng.normal(size=(120, 2)))
        batch = lloyd(x, np.nan_to_num(x[:7]) + 1e-3 * rng.normal(size=(7, 2)), stop=EXACT)
        found = exchange(x, batch)
        assert found.report.converged
        assert found.inertia <= batch.inertia * (1 + 1e-12)
        assert (np.diff(found.report.trace) >= -1e-9).all()
        assert lloyd(x, found.model, stop=EXACT).inertia == pytest.approx(found.inertia, rel=1e-12)
        better += found.inertia < 0.999 * batch.inertia
    assert better > 0


def test_the_last_row_of_a_cluster_stays():
    x = np.array([[0.0], [1.0], [10.0]])
    found = exchange(x, lloyd(x, [[0.5], [10.0]], stop=EXACT))
    assert np.bincount(found.labels).min() == 1


@pytest.mark.slow
def test_brute_force_is_reached_from_some_start():
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(7, 2))
        labels = (np.array(c) for c in itertools.product(range(3), repeat=7))
        least = min(scatter_of(x, np.ones(7), label, 3) for label in labels if len(set(label)) == 3)
        found = kmeans(x, 3, method="exchange", n_init=20, rng=np.random.default_rng(0))
        assert found.inertia == pytest.approx(least, rel=1e-9)


def test_weights_equal_copies_in_any_order():
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(90, 2)), rng.integers(0, 4, 90)
    copies = np.repeat(x, w, axis=0)[rng.permutation(w.sum())]
    a = kmeans(x, 5, w, method="exchange", rng=np.random.default_rng(0))
    b = kmeans(copies, 5, method="exchange", rng=np.random.default_rng(0))
    assert a.inertia == pytest.approx(b.inertia, rel=1e-9)
    np.testing.assert_allclose(a.model.mean, b.model.mean, rtol=1e-9)


def test_own_variances_gain_too():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.normal(0, 0.3, (80, 2)), rng.normal(2, 2.0, (80, 2))])
    own = with_own_variances(x, lloyd(x, x[[0, 100]], stop=EXACT))
    found = exchange(x, own)
    assert found.report.objective >= own.report.objective - 1e-9
    assert (np.diff(found.report.trace) >= -1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("variances", ["equal", "own"])
@pytest.mark.parametrize("passes", [1, 2, 300])
def test_labels_statistics_and_criterion_are_of_one_moment(variances, passes):
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(300, 2))
        options = {"method": "exchange", "variances": variances, "stop": StoppingRule(passes, 1e-6)}
        found = kmeans(x, 8, rng=np.random.default_rng(0), **options)
        np.testing.assert_array_equal(found.labels, found.model.assign(x))
        np.testing.assert_array_equal(found.report.stats.counts, np.bincount(found.labels, minlength=8))
        assert found.inertia == pytest.approx(((x - found.model.mean[found.labels]) ** 2).sum(), rel=1e-12)
        assert found.report.objective == pytest.approx(found.model.objective(found.report.stats), rel=1e-12)
        assert (np.diff(found.report.trace) >= -1e-9).all()


def test_all_passes_are_counted():
    x = np.random.default_rng(0).normal(size=(300, 2))
    count = {}
    for variances in ("equal", "own"):
        for method in ("batch", "exchange"):
            options = {"method": method, "variances": variances, "stop": StoppingRule(1, 1e-6)}
            count[variances, method] = kmeans(x, 8, rng=np.random.default_rng(0), **options).refits
    assert count == {("equal", "batch"): 1, ("equal", "exchange"): 2, ("own", "batch"): 2, ("own", "exchange"): 3}

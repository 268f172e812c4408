"""k-means is what the plain formula says: beside enumeration, scikit-learn, and itself without any short cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.cluster import KMeans as Peer
from sklearn.datasets import load_iris

from likely.cluster.kmeans.assignment import KMeansData
from likely.cluster.kmeans.centroids import Centroids, CentroidStats
from likely.cluster.kmeans.kmeans import kmeans
from likely.cluster.kmeans.lloyd import lloyd, with_own_variances
from likely.core.em_loop import StoppingRule, fit
from likely.core.errors import DataError, FitWarning, ShapeError
from likely.core.online_em import online_em

EXACT = StoppingRule(300, 0.0)


def plain_costs(x, mean):
    return np.nansum((x[:, None] - mean) ** 2, axis=2)


def blobs(n=2_000, d=5, k=7, seed=0, has_missing=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(k, d))[rng.integers(0, k, n)] * 3 + rng.normal(size=(n, d))
    return np.where(rng.random(x.shape) < has_missing, np.nan, x)


def starts(x, k, seed=0):
    return np.nan_to_num(x[np.random.default_rng(seed).choice(len(x), k, replace=False)])


# --------------------------------------------------------------------- assigning


@pytest.mark.parametrize("has_missing", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_labels_are_those_of_the_plain_formula(has_missing, dtype):
    x = blobs(has_missing=has_missing).astype(dtype)
    c = Centroids(starts(x.astype(float), 30))
    np.testing.assert_array_equal(c.assign(x), plain_costs(x.astype(float), c.mean).argmin(axis=1))


def test_ties_go_to_the_first_center():
    grid = np.array(list(itertools.product(range(9), repeat=2)), dtype=float)
    c = Centroids([[0.0, 0.0], [4.0, 4.0], [0.0, 8.0], [8.0, 0.0], [4.0, 4.0], [8.0, 8.0]])
    np.testing.assert_array_equal(c.assign(grid), plain_costs(grid, c.mean).argmin(axis=1))
    assert 4 not in c.assign(grid)


def test_near_ties_are_settled_in_double_precision():
    rng = np.random.default_rng(0)
    middle = rng.normal(size=(3_000, 4))
    middle[:, 0] = rng.integers(-3, 4, 3_000) * 1e-12
    c = Centroids([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 0, 0, 50.0]])
    np.testing.assert_array_equal(c.assign(middle), plain_costs(middle, c.mean).argmin(axis=1))


def test_a_far_center_does_not_blur_the_others():
    x = blobs()
    c = Centroids(np.concatenate([starts(x, 5), [[1e9] * 5]]))
    np.testing.assert_array_equal(c.assign(x), plain_costs(x, c.mean).argmin(axis=1))
    outlier = np.concatenate([x, [[1e60] * 5]])
    np.testing.assert_array_equal(c.assign(outlier)[:-1], plain_costs(x, c.mean).argmin(axis=1))


@pytest.mark.parametrize("has_missing", [0.0, 0.3])
def test_own_variances_weigh_distances(has_missing):
    x = blobs(has_missing=has_missing)
    variance = np.array([0.1, 1.0, 10.0, 3.0])
    c = Centroids(starts(x, 4), variance, 1.0)
    seen = (~np.isnan(x)).sum(axis=1)[:, None]
    cost = plain_costs(x, c.mean) / (2 * variance) + 0.5 * seen * np.log(variance)
    np.testing.assert_array_equal(c.assign(x), cost.argmin(axis=1))


def test_distances_are_euclidean_over_what_was_seen():
    x = blobs(500, has_missing=0.2)
    c = Centroids(starts(x, 6))
    np.testing.assert_allclose(c.distances(x), np.sqrt(plain_costs(x, c.mean)), rtol=1e-12)
    full = np.nan_to_num(x)
    np.testing.assert_allclose(c.distances(full), np.sqrt(plain_costs(full, c.mean)), rtol=1e-9)
    assert c.distances(full.astype(np.float32)).dtype == np.float32


# ------------------------------------------------------------------------ passes


@pytest.mark.slow
@pytest.mark.some_cases(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(4))
def test_it_takes_the_same_steps_as_scikit_learn(seed):
    x = blobs(seed=seed)
    start = starts(x, 12, seed)
    for steps in (1, 3, 300):
        peer = Peer(12, init=start, n_init=1, max_iter=steps, tol=0, algorithm="lloyd").fit(x)
        ours = lloyd(x, start, stop=StoppingRule(steps, 0.0))
        np.testing.assert_allclose(ours.model.mean, peer.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(ours.labels, peer.labels_)
        assert ours.inertia == pytest.approx(peer.inertia_, rel=1e-10)


@pytest.mark.parametrize("has_missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_and_workers_change_no_bit(has_missing, weighted):
    x = blobs(40_000, 3, 9, has_missing=has_missing)
    w = np.random.default_rng(0).random(len(x)) if weighted else None
    start = starts(x, 15)
    slow = lloyd(x, start, w, stop=StoppingRule(12, 0.0), bounds=False, workers=1)
    fast = lloyd(x, start, w, stop=StoppingRule(12, 0.0), workers=4)
    np.testing.assert_array_equal(fast.model.mean, slow.model.mean)
    np.testing.assert_array_equal(fast.labels, slow.labels)
    assert fast.report.trace == slow.report.trace


@pytest.mark.parametrize("has_missing", [0.0, 0.2])
def test_the_common_learning_loop_is_its_slow_twin(has_missing):
    x = blobs(3_000, has_missing=has_missing)
    start = starts(x, 8)
    twin = fit(Centroids(start), x, stop=StoppingRule(300, 0.0))
    ours = lloyd(x, start, stop=EXACT)
    np.testing.assert_allclose(ours.model.mean, twin.model.mean, rtol=1e-9)
    assert ours.report.objective == pytest.approx(twin.objective, rel=1e-12)


@pytest.mark.parametrize("has_missing", [0.0, 0.3])
def test_the_criterion_never_rises_and_is_what_it_says(has_missing):
    for seed in range(10):
        x = blobs(300, 3, seed=seed, has_missing=has_missing)
        found = lloyd(x, starts(x, 8, seed), stop=EXACT)
        trace = np.array(found.report.trace)
        assert (np.diff(trace) >= -1e-9 * abs(trace[:-1])).all()
        assert found.report.converged
        assert found.inertia == pytest.approx(plain_costs(x, found.model.mean).min(axis=1).sum(), rel=1e-12)
        assert found.report.iterations == len(trace) - 1


def test_weights_equal_repetition():
    rng = np.random.default_rng(1)
    x, w = blobs(400, has_missing=0.1), rng.integers(0, 4, 400)
    start = starts(x, 6)
    a = lloyd(x, start, w, stop=EXACT)
    b = lloyd(np.repeat(x, w, axis=0), start, stop=EXACT)
    np.testing.assert_allclose(a.model.mean, b.model.mean, rtol=1e-9)
    assert a.inertia == pytest.approx(b.inertia, rel=1e-9)
    np.testing.assert_allclose(a.report.stats.counts, b.report.stats.counts)


def test_a_stream_is_learned_by_the_common_online_loop():
    x = blobs(1_200, has_missing=0.1)
    start = Centroids(starts(x, 5))
    total, model = None, start
    for chunk, streamed in zip(np.array_split(x, 6), online_em(start, np.array_split(x, 6)), strict=True):
        new = model.collect(chunk)
        total = new if total is None else total + new
        model = model.refit(total)
        np.testing.assert_allclose(streamed.mean, model.mean, rtol=1e-12)


def test_iris_has_its_known_criterion():
    found = kmeans(load_iris().data, 3, n_init=10, rng=np.random.default_rng(0))
    assert found.inertia == pytest.approx(78.851441426, rel=1e-9)  # what every k-means finds
    assert sorted(np.bincount(found.labels)) == [38, 50, 62]


def test_running_out_of_passes_is_not_converged():
    x = blobs()
    found = lloyd(x, starts(x, 20), stop=StoppingRule(2, 0.0))
    assert not found.report.converged
    assert "still moving" in found.report.reason
    assert found.report.iterations == 2
    assert lloyd(x, starts(x, 20), stop=StoppingRule(300, 0.05)).report.reason.startswith("the criterion falls by less")


def test_empty_clusters_begin_anew_at_far_rows():
    x = np.concatenate([blobs(200, 2, 1), [[100.0, 100.0], [-100.0, 50.0]]])
    found = lloyd(x, np.zeros((3, 2)), stop=EXACT)
    assert (np.bincount(found.labels, minlength=3) > 0).all()
    assert found.report.reseeded == 2
    assert found.labels[-1] != found.labels[-2]


def test_an_empty_cluster_stays_where_no_row_is_away_from_its_center():
    found = lloyd(np.array([[1.0], [1.0], [2.0]]), [[1.0], [2.0], [7.0]], stop=EXACT)
    assert found.inertia == 0
    assert found.report.converged


# ---------------------------------------------------------------------- hazards


def rotation(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def test_rotation_scale_and_offset_move_the_centers_alone():
    x = np.round(blobs(1_000) * 64) / 64
    start = starts(x, 7)
    want = lloyd(x, start, stop=EXACT)
    turn = rotation(5)
    turned = lloyd(x @ turn, start @ turn, stop=EXACT)
    np.testing.assert_allclose(turned.model.mean, want.model.mean @ turn, atol=1e-9)
    shifted = lloyd(x + 1e8, start + 1e8, stop=EXACT)
    np.testing.assert_array_equal(shifted.labels, want.labels)
    assert shifted.inertia == pytest.approx(want.inertia, rel=1e-7)
    for scale in (2.0**-400, 1e-100, 1e100, 2.0**450):
        scaled = lloyd(x * scale, start * scale, stop=EXACT)
        np.testing.assert_array_equal(scaled.labels, want.labels)
        np.testing.assert_allclose(scaled.model.mean / scale, want.model.mean, rtol=1e-9)


def test_columns_that_are_constant_or_never_seen():
    x = blobs(200, 3)
    x[:, 1] = 4.0
    x[:, 2] = np.nan
    with pytest.warns(FitWarning, match="never observed"):
        found = kmeans(x, 3, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.model.mean[:, 1], 4.0)
    assert np.isfinite(found.model.mean).all()


def test_tiny_columns_beside_a_large_one_keep_their_bounds():
    """Single precision cannot hold such distances: bounds must then skip nothing."""
    x = blobs(300, 4) * [1e-81, 1e-81, 0.0, 1e-81] + [0.0, 0.0, 1.0510324, 0.0]
    almost = x + [0.0, 0.0, 1.0, 0.0] * (np.arange(300) == 7)[:, None]
    for rows in (x, almost):
        fast, slow = (lloyd(rows, rows[:6], stop=EXACT, bounds=on) for on in (True, False))
        np.testing.assert_array_equal(fast.labels, slow.labels)
        np.testing.assert_array_equal(fast.labels, ((rows[:, None] - fast.model.mean) ** 2).sum(axis=2).argmin(axis=1))


def test_more_clusters_than_distinct_rows_is_said():
    with pytest.warns(UserWarning, match="there are 2"):
        found = kmeans(np.array([[1.0, 1.0]] * 5 + [[2.0, 2.0]] * 3), 4, rng=np.random.default_rng(0))
    assert found.model.members == 2
    assert found.inertia == 0


def test_one_row_is_one_cluster():
    found = kmeans([[3.0, 4.0]], 1)
    assert found.model.mean.tolist() == [[3.0, 4.0]]
    assert found.report.converged


def test_what_it_refuses():
    x = blobs(50)
    with pytest.raises(DataError, match="row 41, column 2"):
        bad = x.copy()
        bad[41, 2] = np.inf
        lloyd(bad, starts(x, 2))
    with pytest.raises(ShapeError, match="5 columns"):
        lloyd(x, np.zeros((2, 4)))
    with pytest.raises(DataError, match="at least one row"):
        lloyd(np.zeros((0, 2)), np.zeros((1, 2)))
    with pytest.raises(DataError, match="weight"):
        lloyd(x, starts(x, 2), np.zeros(50))
    with pytest.raises(DataError, match="overflow"):
        lloyd(x * 1e200, starts(x, 2) * 1e200)


def test_an_infinity_far_down_is_named_by_its_row():
    x = np.zeros((70_000, 2))
    x[65_001, 1] = -np.inf
    with pytest.raises(DataError, match="row 65001, column 1"):
        KMeansData.of(x)


# -------------------------------------------------------------------- statistics


def test_statistics_add():
    x, w = blobs(900, has_missing=0.1), np.random.default_rng(0).random(900)
    c = Centroids(starts(x, 5))
    whole = c.collect(x, w)
    parts = sum([c.collect(x[:100], w[:100]), c.collect(x[100:], w[100:])])
    assert isinstance(parts, CentroidStats)
    np.testing.assert_allclose(parts.moments.mean, whole.moments.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.scatter, whole.scatter, rtol=1e-10)
    assert parts.total_weight == pytest.approx(w.sum())
    np.testing.assert_allclose((whole * 2.0).counts, 2 * whole.counts)
    np.testing.assert_allclose(whole.member(np.array([2, 0])).counts, whole.counts[[2, 0]])
    np.testing.assert_array_equal(c.take([2, 0]).mean, c.mean[[2, 0]])


def test_own_variances_never_lower_their_objective_and_find_the_narrow_cluster():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 0.2, (300, 2)), rng.normal(3, 2.0, (300, 2))])
    equal = lloyd(x, [[0.0, 0.0], [3.0, 3.0]], stop=EXACT)
    own = with_own_variances(x, equal, stop=StoppingRule(200, 0.0))
    trace = own.report.trace
    assert (np.diff(trace) >= -1e-9).all()
    narrow, wide = np.sort(own.model.variance)
    assert narrow == pytest.approx(0.04, rel=0.2)
    assert wide == pytest.approx(4.0, rel=0.2)
    truth = np.repeat([0, 1], 300)
    assert (own.labels == truth).mean() > (equal.labels == truth).mean()


def test_every_row_on_its_center_has_no_variance_to_tell():
    x = np.array([[0.0], [5.0]])
    with pytest.warns(UserWarning, match="equals its center"):
        found = kmeans(x, 2, variances="own", rng=np.random.default_rng(0))
    assert found.inertia == 0


# ------------------------------------------------------- criteria that would cancel


@pytest.mark.parametrize("far", [1e8, 1e9, 1e10, 1e13])
def test_one_row_far_away_does_not_end_the_passes(far):
    x = np.random.default_rng(1).normal(size=(2_000, 2))
    x = np.concatenate([x, [[far, 0.0]]])
    start = np.concatenate([x[:7], x[-1:]])
    found, exact = lloyd(x, start), lloyd(x, start, stop=EXACT)
    assert found.report.converged and found.report.iterations > 20
    assert found.inertia <= exact.inertia * (1 + 1e-4)
    assert (np.diff(found.report.trace) >= -1e-9 * abs(found.report.trace[-1])).all()


@pytest.mark.parametrize("spread", [1e-8, 1e-10, 1e-12])
def test_small_clusters_far_apart_are_settled_by_their_own_size(spread):
    rng = np.random.default_rng(0)
    x = np.repeat([[-1.0, 0.0], [1.0, 0.0]], 400, axis=0) + spread * rng.normal(size=(800, 2))
    found = lloyd(x, x[[0, 1, 2, 3, 400, 401, 402, 403]], stop=EXACT)
    mean = x[[0, 1, 2, 3, 400, 401, 402, 403]]
    for _ in range(300):
        label = plain_costs(x, mean).argmin(axis=1)
        mean = np.stack([x[label == q].mean(axis=0) for q in range(8)])
    quick = lloyd(x, x[[0, 1, 2, 3, 400, 401, 402, 403]])
    assert quick.report.iterations > 5
    assert found.inertia == pytest.approx(plain_costs(x, mean).min(axis=1).sum(), rel=1e-3)
    assert quick.inertia <= found.inertia * (1 + 1e-3)


def test_a_start_out_of_reach_finds_rows_without_a_word(recwarn):
    x = np.concatenate([np.random.default_rng(0).normal(m, 1.0, (50, 2)) for m in (0.0, 9.0)])
    found = lloyd(x, [[0.0, 0.0], [1e300, -1e300]], stop=EXACT)
    assert found.inertia == pytest.approx(lloyd(x, x[[0, -1]], stop=EXACT).inertia)
    assert (Centroids([[0.0, 0.0], [1e300, 1e300]]).assign(x) == 0).all()
    assert not recwarn.list


def test_rows_without_any_entry_are_refused_by_number():
    x = blobs(50, 3, 2)
    x[[4, 7]] = np.nan
    with pytest.raises(DataError, match="nothing but NaN in rows 4 and 7: drop these rows"):
        kmeans(x, 2)
    kept = np.ones(50)
    kept[[4, 7]] = 0.0
    assert kmeans(x, 2, kept, rng=np.random.default_rng(0)).report.stats.total_weight == 48


def test_a_column_that_is_never_observed_is_reported():
    x = blobs(50, 3, 2)
    x[:, 1] = np.nan
    with pytest.warns(FitWarning, match="column 1 is never observed"):
        kmeans(x, 2, rng=np.random.default_rng(0))

"""DTW barycenters: inertia never increases, weights are repetitions, missing values do not count."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from likely.alignment.barycenters import barycenter
from likely.alignment.dtw import dtw
from likely.core.errors import DataError, DomainError, FitWarning, ShapeError


def bumps(rng, n=12):
    """The same bump, at different speeds."""
    made = []
    for _ in range(n):
        t = np.linspace(0, 1, int(rng.integers(40, 60))) ** rng.uniform(0.7, 1.4)
        made.append(np.exp(-0.5 * ((t - 0.5) / 0.1) ** 2) + 0.02 * rng.normal(size=len(t)))
    return made


def test_inertia_is_what_it_says_and_never_rises(rng):
    seqs = bumps(rng)
    b = barycenter(seqs)
    assert (np.diff(b.trace) < 0).all() and len(b.trace) > 2 and b.converged
    assert b.inertia == pytest.approx(sum(dtw(b.mean, s, metric="sqeuclidean").total for s in seqs), rel=1e-12)
    medoid = min(sum(dtw(m, s, metric="sqeuclidean").total for s in seqs) for m in seqs)
    assert b.inertia < medoid
    assert b.mean.max() > 0.9  # a plain mean of stretched series is flatter
    flat = np.mean([np.interp(np.linspace(0, 1, 50), np.linspace(0, 1, len(s)), s) for s in seqs], axis=0)
    assert flat.max() < 0.9


@pytest.mark.parametrize("steps", ["symmetric", "symmetric 1/2", "symmetric 2", "asymmetric", "asymmetric 1"])
def test_other_rules_of_steps_count_as_they_weigh(steps, rng):
    seqs = bumps(rng, 6)
    b = barycenter(seqs, step_pattern=steps, max_iter=4, tol=0.3)
    assert (np.diff(b.trace) < 0).all() and len(b.trace) > 1
    assert b.inertia == pytest.approx(
        sum(dtw(b.mean, s, metric="sqeuclidean", step_pattern=steps).total for s in seqs), rel=1e-12
    )
    one = [dtw(b.mean, s, metric="sqeuclidean", step_pattern=steps)._route for s in seqs]
    total, weight = np.zeros(len(b.mean)), np.zeros(len(b.mean))
    for route, s in zip(one, seqs, strict=True):
        np.add.at(total, route.path[:, 0], route.weight * s[route.path[:, 1]])
        np.add.at(weight, route.path[:, 0], route.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        after = barycenter(seqs, step_pattern=steps, init=b.mean, max_iter=1, tol=0.0)
    assert after.mean[:, 0] == pytest.approx(total / weight, rel=1e-9)


@pytest.mark.parametrize("metric", ["cityblock", "euclidean", "cosine", lambda x, y: np.abs(x - y.T)])
def test_costs_without_a_mean_are_refused(metric, rng):
    with pytest.raises(DomainError, match='metric must be "sqeuclidean": a mean minimizes squared distances alone'):
        barycenter(bumps(rng, 3), metric=metric)


def test_without_room_to_warp_it_is_the_mean(rng):
    X = rng.normal(size=(7, 20))
    b = barycenter(X, band=0)
    assert b.mean[:, 0] == pytest.approx(X.mean(axis=0), rel=1e-12)
    assert b.inertia == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(), rel=1e-12)


def test_weights_are_copies(rng):
    seqs = bumps(rng, 5)
    copies = [seqs[i] for i in (0, 1, 1, 2, 4, 4, 4)]
    b, c = barycenter(seqs, weight=[1, 2, 1, 0, 3]), barycenter(copies)
    assert b.mean == pytest.approx(c.mean, rel=1e-10) and b.inertia == pytest.approx(c.inertia, rel=1e-10)


def test_several_columns_missing_values_and_given_lengths(rng):
    seqs = [np.stack([s, -s], 1) for s in bumps(rng)]
    whole = barycenter(seqs)
    for s in seqs:
        s[rng.random(s.shape) < 0.2] = np.nan
        s[5] = np.nan
    b = barycenter(seqs)
    assert (np.diff(b.trace) < 0).all() and np.isfinite(b.mean).all()
    assert dtw(b.mean, whole.mean).distance < 0.1 * len(b.mean)
    assert barycenter(seqs, length=30).mean.shape == (30, 2)
    start = np.zeros((25, 2))
    assert barycenter(seqs, init=start).mean.shape == (25, 2)


def test_one_series_is_its_own_average():
    b = barycenter([[1.0, 5.0, 2.0]])
    assert b.mean.ravel().tolist() == [1.0, 5.0, 2.0] and b.inertia == 0.0 and b.converged


def test_running_out_of_passes_is_not_converged(rng):
    with pytest.warns(FitWarning, match="not converged"):
        assert not barycenter(bumps(rng), max_iter=1).converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert barycenter(bumps(rng)).converged


@pytest.mark.parametrize(
    ("seqs", "how", "error"),
    [
        ([], {}, DataError),
        ([[1.0]], {"weight": [0.0]}, DataError),
        ([[1.0]], {"weight": [1.0, 2.0]}, ShapeError),
        ([[1.0]], {"weight": [-1.0]}, DataError),
        ([[1.0]], {"length": 0}, DomainError),
        ([[1.0]], {"length": 2, "init": [1.0]}, DomainError),
        ([[1.0]], {"init": np.zeros((2, 2))}, ShapeError),
        ([[1.0]], {"max_iter": 0}, DomainError),
        ([[1.0]], {"tol": -1.0}, DomainError),
        ([[1e300], [-1e300]], {}, DomainError),
    ],
)  # fmt: skip
def test_refusals(seqs, how, error):
    with pytest.raises(error):
        barycenter(seqs, **how)

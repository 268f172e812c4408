"""The plane of two Fisher directions, against scipy's generalized eigenvectors; and what drives decisions."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.linalg import eigh

from likely.automl.candidates import model_candidates
from likely.automl.model_comparison import ComparisonTask
from likely.cli.example_data import wine
from likely.cli.fitting.discriminant_plane import FisherPlane, regions, separation
from likely.cli.fitting.permutation_importance import importance


def scatters(X, labels):
    means = np.stack([X[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    within = (X - means[labels]).T @ (X - means[labels]) / len(X)
    between = (means[labels] - X.mean(axis=0)).T @ (means[labels] - X.mean(axis=0)) / len(X)
    return within, between


def test_directions_are_those_of_the_generalized_problem():
    X, y, _ = wine()
    labels = np.unique(y, return_inverse=True)[1]
    plane = FisherPlane.of(X, labels, 3)
    within, between = scatters(X, labels)
    values, vectors = eigh(between, within)
    for k in range(2):
        ours, theirs = plane.forward[:, k], vectors[:, -1 - k]
        cosine = abs(ours @ within @ theirs) / np.sqrt((ours @ within @ ours) * (theirs @ within @ theirs))
        assert cosine > 1 - 1e-9
    np.testing.assert_allclose(plane.share, values[-1:-3:-1] / values[-2:].sum(), rtol=1e-6)


def test_separation_is_the_trace_without_what_chance_gives():
    X, y, _ = wine()
    labels = np.unique(y, return_inverse=True)[1]
    within, between = scatters(X, labels)
    pillai = np.trace(np.linalg.solve(within + between, between))
    assert abs(separation(X, labels, 3) - (pillai - 13 * 2 / 178)) < 1e-8
    rng = np.random.default_rng(0)
    noise = [separation(rng.normal(size=(200, 10)), rng.integers(0, 3, 200), 3) for _ in range(20)]
    assert np.mean(noise) < 0.05  # 0.1 without the correction


def test_back_and_forth():
    X, y, _ = wine()
    plane = FisherPlane.of(X, np.unique(y, return_inverse=True)[1], 3)
    z = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(plane.seen(plane.returned(z)), z, atol=1e-9)


def test_units_do_not_matter_and_weights_are_copies():
    X, y, _ = wine()
    labels, weight = np.unique(y, return_inverse=True)[1], np.tile([1.0, 3.0], 89)
    plane = FisherPlane.of(X, labels, 3, weight)
    scale = np.geomspace(1e-6, 1e6, 13)
    scaled = FisherPlane.of(X * scale + 5, labels, 3, weight)
    np.testing.assert_allclose(np.abs(scaled.seen(X * scale + 5)), np.abs(plane.seen(X)), atol=1e-6)
    copies = np.repeat(np.arange(178), weight.astype(int))
    twice = FisherPlane.of(X[copies], labels[copies], 3)
    np.testing.assert_allclose(np.abs(twice.seen(X)), np.abs(plane.seen(X)), atol=1e-8)


def test_singular_scatter_and_two_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    labels = (X[:, 0] > 0).astype(int)
    X = np.column_stack([X, X[:, 0] + X[:, 1], labels, np.full(100, 7.0)])  # dependent, decisive, constant
    plane = FisherPlane.of(X, labels, 2)
    z = plane.seen(X)
    assert np.isfinite(z).all() and plane.share[0] > 0.999
    assert z[labels == 0, 0].max() < z[labels == 1, 0].min() or z[labels == 1, 0].max() < z[labels == 0, 0].min()
    within, _ = scatters(z, labels)
    assert abs(np.corrcoef(z.T)[0, 1]) < 1e-6 and within[1, 1] > 0.5


def test_missing_values_lie_at_the_mean():
    X, y, _ = wine()
    labels = np.unique(y, return_inverse=True)[1]
    plane = FisherPlane.of(X, labels, 3)
    np.testing.assert_allclose(plane.seen(np.full((1, 13), np.nan)), 0.0)
    assert FisherPlane.of(np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X), labels, 3) is not None
    assert FisherPlane.of(X[:, :1], labels, 3) is None


def test_regions_are_decisions_of_places_mapped_back():
    X, y, _ = wine()
    plane = FisherPlane.of(X, np.unique(y, return_inverse=True)[1], 3)
    seen = []

    def decide(rows):
        seen.append(rows)
        return rows[:, 0] > plane.mean[0]

    region = regions(plane, np.array([-1.0, 1.0]), np.array([-2.0, 0.0, 2.0]), decide)
    assert region.shape == (3, 2)
    np.testing.assert_allclose(plane.seen(seen[0])[3], [1.0, 0.0], atol=1e-9)


def test_the_column_that_decides_drives_the_decisions():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = pl.DataFrame({"noise": rng.normal(size=300), "signal": rng.normal(3.0 * y), "echo": rng.normal(size=300)})
    field = ComparisonTask.of(X, np.array([0, 1]), y, 5)
    (pooled,) = [
        candidate for candidate in model_candidates(dict.fromkeys(X.columns, "real")) if candidate.key == "pooled"
    ]
    drivers = importance(field, list(field.X.columns), pooled.estimator)
    assert drivers[0].column == "signal" and abs(drivers[0].increase - 0.43) < 0.05
    assert all(abs(driver.increase) < 3 * driver.se + 0.01 for driver in drivers[1:])
    assert importance(field, list(field.X.columns), pooled.estimator) == drivers

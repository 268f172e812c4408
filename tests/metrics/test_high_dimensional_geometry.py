"""High dimensions: published numbers, and estimates that keep their error bars."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics.high_dimensional_geometry import (
    gaussian_shell,
    hubness,
    intrinsic_dimension,
    relative_contrast,
    shell_to_ball_ratio,
)


@pytest.mark.parametrize(("dim", "height"), [(8, 0.11202), (16, 0.07450), (32, 0.05122), (64, 0.03573)])
def test_shell_of_a_gaussian_as_in_the_notes(dim, height):
    """Ney 3.2: mean D, variance 2D, mode D − 2."""
    shell = gaussian_shell(dim)
    assert (shell.mean, shell.variance, shell.mode) == (dim, 2 * dim, dim - 2)
    assert shell.height == pytest.approx(height, abs=5e-6)
    assert shell.height == pytest.approx(scipy.stats.chi2.pdf(dim - 2, dim), rel=1e-12)


def test_ring_and_ball_as_in_the_notes():
    """Ney 3.2 with D = 16 and a tenth of the density: 6553.5."""
    assert shell_to_ball_ratio(16, 0.1) == pytest.approx(6553.5, rel=1e-12)
    assert shell_to_ball_ratio(3, 1.0, factor=2.0) == pytest.approx(7.0)
    with pytest.raises(DomainError, match="factor"):
        shell_to_ball_ratio(3, 1.0, 0.5)
    with pytest.raises(DomainError, match="at least 2"):
        gaussian_shell(1)


def test_contrast_falls_with_the_dimension():
    found = []
    for d in (2, 10, 100, 1000):
        x = np.random.default_rng(0).normal(size=(200, d))
        away = np.sort(np.sqrt(((x[:20, None] - x) ** 2).sum(axis=2)), axis=1)[:, 1:]
        found.append(np.median(relative_contrast(away[:, 0], away[:, -1])))
    assert found == sorted(found, reverse=True) and found[0] > 10 and found[-1] < 0.2
    np.testing.assert_array_equal(relative_contrast([0.0, 0.0], [0.0, 1.0]), [0.0, np.inf])
    with pytest.raises(ShapeError, match="one shape"):
        relative_contrast([1.0], [0.5])


def test_hubs_are_counted():
    found = hubness([[1, 2], [2, 0], [1, 0], [1, 2]], 5)
    counts = np.array([2, 3, 3, 0, 0])
    assert found.skewness == pytest.approx(scipy.stats.skew(counts))
    assert found.largest == pytest.approx(3 / 1.6) and found.orphans == 0.4
    with pytest.raises(ShapeError, match="row numbers"):
        hubness([[5]], 5)


def test_dimension_of_a_poisson_process_and_its_error():
    """Radii of the nearest points of a Poisson process in D dimensions: volumes are sums of exponential steps."""
    for dim in (1, 3, 8):
        estimates = []
        for seed in range(200):
            volume = np.cumsum(np.random.default_rng(seed).exponential(size=(100, 6)), axis=1)
            estimates.append(intrinsic_dimension(volume ** (1 / dim)))
        values, errors = np.array(estimates).T
        assert values.mean() == pytest.approx(dim, abs=4 * values.std() / np.sqrt(200))
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(values.std(), rel=0.2)


def test_bad_distances_are_named():
    with pytest.raises(DataError, match="duplicate"):
        intrinsic_dimension([[0.0, 1.0], [1.0, 2.0]])
    with pytest.raises(ShapeError, match="k and n"):
        intrinsic_dimension([[1.0], [2.0]])


def test_a_ring_is_no_denser_than_the_ball():
    with pytest.raises(DomainError, match=r"density lie in 0 … 1"):
        shell_to_ball_ratio(5, 2)

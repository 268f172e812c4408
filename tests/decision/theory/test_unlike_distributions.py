"""Distributions that cannot be compared, distributions with many breaks, and questions that make no sense."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk


@pytest.mark.parametrize(
    "ask", [lk.bayes_error, lk.decision.error_bounds, lk.decision.bhattacharyya_bound, lk.decision.chernoff_bound]
)
def test_counts_beside_densities_are_refused(ask):
    with pytest.raises(lk.DomainError, match="Poisson and Gaussian"):
        ask(lk.Poisson([3.0]), lk.Gaussian([3.0], 1.0))


def test_unlike_densities_are_one_kind():
    assert 0 < float(lk.bayes_error(lk.StudentT([0.0], 1.0, 3.0), lk.Gaussian([1.0], 1.0))) < 0.5


def test_histograms_of_unlike_edges_are_summed_exactly():
    rng = np.random.default_rng(0)
    edges = [np.linspace(-6, 6, m) for m in (3001, 2778)]
    distributions = [
        lk.Histogram.fit(rng.standard_normal((9000, 1)) + a, edges=[e]) for a, e in zip((0.0, 0.4), edges, strict=True)
    ]
    every = np.union1d(*edges)
    middle = 0.5 * (every[1:] + every[:-1])[:, None]
    want = (
        0.5
        * np.minimum(*(np.exp(distribution.log_prob(middle)) for distribution in distributions)).ravel()
        @ np.diff(every)
    )
    found = lk.bayes_error(*distributions)
    assert found.value == pytest.approx(want, abs=1e-10) and found.error <= 1e-6


@pytest.mark.slow
def test_narrow_windows_are_all_seen():
    points = np.random.default_rng(1).standard_normal(60)
    spikes, wide = lk.KDE(points, 1e-4), lk.Gaussian([0.0], 1.0)
    gap = points[:, None] + 1e-4 * np.linspace(-8, 8, 4001)
    p, q = (np.exp(distribution.log_prob(gap.reshape(-1, 1))).reshape(gap.shape) for distribution in (spikes, wide))
    want = 0.5 * (1 - np.maximum(p - q, 0).sum() * (gap[0, 1] - gap[0, 0]))
    found = lk.bayes_error(spikes, wide)
    assert abs(found.value - want) <= max(4 * found.error, 1e-3)


def test_bounds_from_draws_say_how_sure_they_are():
    a, b = lk.StudentT([0.0], 1.0, 3.0), lk.Gaussian([1.0], 1.0)
    for seed in range(3):
        found = lk.decision.error_bounds(a, b, n=2000, rng=np.random.default_rng(seed))
        assert found.chernoff <= found.bhattacharyya
        assert found.errors["gini"] > 0 and "±" in str(found)
        assert found.bayes == pytest.approx(float(lk.bayes_error(a, b)), abs=1e-9)
    with pytest.raises(lk.DomainError, match="n must be an integer"):
        lk.decision.error_bounds(a, b, n=1)


def test_questions_that_make_no_sense():
    a, b = lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 1.0], 1.0)
    three = lk.Gaussian(np.eye(3), np.ones((3, 3)))
    for wrong, text in (
        (lambda: lk.bayes_error(a, b, tolerance="x"), "tolerance"),
        (lambda: lk.bayes_error(a, b, class_prior=[-1, 2]), "none may be negative"),
        (lambda: lk.decision_boundary(three), "pair must say"),
        (lambda: lk.decision_boundary(three, pair=3), "two of the classes"),
        (lambda: lk.decision_boundary(a, b).points(1.5), "integer"),
        (lambda: lk.decision_boundary(a, b).points(0), "integer"),
    ):
        with pytest.raises(lk.LikelyError, match=text):
            wrong()


def test_lines_are_written_out():
    line = lk.decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 1.0], 1.0))
    assert line.describe().text == ["line: 1 x0 + 0.5 x1 − 1.25 = 0"]

"""The weak prior of hidden parts keeps them from collapsing, and widens none that its rows determine."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.distributions.gaussian.moments import ColumnMoments
from likely.distributions.priors.initial_moments import SHARE, _upper_limit, softened
from likely.distributions.priors.pseudo_observations import PseudoObservations


def planes(seed, n, d=5):
    """Two parts, each wide in two directions of its own and thin in all others, with means far from each other."""
    shape, r = np.random.default_rng(1000 + seed), np.random.default_rng(seed)
    means, loadings = 3 * shape.normal(size=(2, d)), shape.normal(size=(2, d, 2))

    def draw(n):
        y = r.integers(2, size=n)
        return means[y] + np.einsum("nij,nj->ni", loadings[y], r.normal(size=(n, 2))) + 0.1 * r.normal(size=(n, d))

    return draw(n), draw(1000)


def held_out(x, more, prior, **how):
    component = lk.GaussianDensity(how.pop("covariance", "full"))
    return lk.MixtureDensity(component, 2, prior=prior, random_state=0, **how).fit(x).score(more)


@pytest.mark.parametrize(
    "how", [{}, {"covariance": "diagonal"}, {"covariance": "spherical"}, {"tie": "covariance"}], ids=str
)
def test_the_default_explains_other_rows_as_well_as_no_prior(how):
    """It was worse by 0.7 nats per row ("full"), 0.1 ("diagonal") and 0.35 (one covariance)."""
    sets = [planes(seed, 200) for seed in range(4)]
    lost = [held_out(*rows, None, **how) - held_out(*rows, "weak", **how) for rows in sets]
    assert np.median(lost) < 0.01 and max(lost) < 0.05


@pytest.mark.slow
def test_the_default_explains_other_rows_as_well_with_missing_entries():
    lost = []
    for seed in range(3):
        x, more = planes(seed, 200)
        x[np.random.default_rng(seed).random(x.shape) < 0.15] = np.nan
        lost.append(held_out(x, more, None) - held_out(x, more, "weak"))
    assert np.median(lost) < 0.03 and max(lost) < 0.1


def test_few_rows_lean_on_all_of_them():
    """25 rows of 20 columns for each part: without a prior covariances are all but singular."""
    r = np.random.default_rng(0)
    x, more = (r.normal(size=(n, 20)) + 6 * r.integers(2, size=(n, 1)) for n in (50, 1000))
    assert held_out(x, more, "weak") > held_out(x, more, None) + 10


def test_a_state_that_is_thin_stays_so():
    """States of a hidden Markov model: one of them has a hundredth of the standard deviation of the other."""
    r = np.random.default_rng(0)
    path = np.cumsum(r.random(400) < 0.05) % 2
    frames = r.normal(size=(400, 3)) * np.where(path, 0.01, 1.0)[:, None] + 3.0 * path[:, None]
    found = lk.HMMDensity(lk.GaussianDensity(), 2, random_state=0).fit([frames]).model_.emission
    thin = int(np.argmin(found.variance[:, 0]))
    np.testing.assert_allclose(found.variance[thin], frames[path == 1].var(axis=0), rtol=0.4)  # it was 50 times as wide


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("n", [50, 200])
def test_a_part_may_be_a_thousand_times_as_thin_as_the_others(covariance, n):
    """Its standard deviation was 7 (n = 200) and 26 times (50) too large."""
    r = np.random.default_rng(0)
    x = np.concatenate([r.normal(size=(n, 3)), 5.0 + 0.001 * r.normal(size=(n, 3))])
    found = lk.MixtureDensity(lk.GaussianDensity(covariance), 2, random_state=0).fit(x).model_.components
    thin = found.variance[np.argmin(found.variance[:, 0])]
    assert (np.sqrt(thin) < 0.0025).all()


def stack(x, labels, kind="full"):
    return lk.Gaussian.blank(x, members=int(labels.max()) + 1, kind=kind).collect(x, labels=labels)


def test_parts_of_few_rows_get_the_pooled_covariance_with_some_of_all():
    r = np.random.default_rng(1)
    x, labels = r.normal(size=(12, 4)) + np.repeat([0.0, 5.0, 9.0], 4)[:, None], np.repeat([0, 1, 2], 4)
    stats = stack(x, labels)
    covariance = softened(stats, 1).scatter / 4
    within = sum(4 * np.cov(x[labels == k].T, ddof=0) for k in range(3)) / 12
    want = (1 - SHARE) * within + SHARE * 3 ** (-2 / 4) * np.cov(x.T, ddof=0)
    np.testing.assert_allclose(covariance, np.broadcast_to(want, (3, 4, 4)), rtol=1e-10)


@pytest.mark.parametrize("one_for_all", [False, True])
def test_no_direction_gets_more_than_its_rows_leave_open(one_for_all):
    x, _ = planes(0, 400)
    labels = lk.MixtureDensity(n_components=2, random_state=0).fit(x).model_.most_probable(x)
    stats = stack(x, labels)
    soft = softened(stats, 1, one_for_all)
    found, n = (stats.scatter, stats.weight) if not one_for_all else (stats.scatter.sum(0)[None], [400.0])
    for k in range(len(n)):
        most = 1 / (1 - (np.sqrt(5) + 1) / np.sqrt(n[k] - (2 if one_for_all else 1))) ** 2
        seen, given = found[k] / n[k], soft.scatter[k] / stats.weight[k]
        ratio = np.linalg.eigvals(np.linalg.solve(seen, given)).real
        assert ratio.max() < 1.001 * max(most, 2.0) and ratio.min() > 0
    prior = lk.Gaussian.blank(x, members=2, tied=one_for_all).weak_prior(soft)
    assert isinstance(prior, PseudoObservations) is not one_for_all
    assert prior.scale.shape == ((5, 5) if one_for_all else (2, 5, 5))


def test_columns_are_limited_one_by_one():
    r = np.random.default_rng(2)
    x, labels = np.concatenate([r.normal(size=(50, 2)), r.normal(size=(50, 2)) * [0.01, 1.0]]), np.repeat([0, 1], 50)
    soft = softened(stack(x, labels, "diagonal"), 1)
    variance = soft.scatter / soft.weight
    assert isinstance(soft, ColumnMoments) and variance[0, 0] > 0.3
    pooled = variance[0, 0]
    assert variance[1, 0] <= max(1e-4 * 2, pooled / 49 * 1.01)


def test_rows_leave_open_what_they_are_too_few_to_show():
    assert _upper_limit(np.array([0.0, 0.5]), np.array([7.0]), 3).tolist() == [1.0, 1.0]  # up to (√3 + 1)² rows
    found = _upper_limit(np.array([0.0, 4.9e-6]), np.array([100.0]), 4)
    np.testing.assert_allclose(found, [0.01, 1e-5])  # a sample variance of 0: 1/n
    np.testing.assert_allclose(_upper_limit(np.array([0.1, 0.9]), np.array([100.0]), 4), [0.1 / 0.7**2, 1.0])
    draws = np.random.default_rng(0).normal(size=(200, 60, 4))
    least = np.linalg.eigvalsh(np.swapaxes(draws, 1, 2) @ draws / 60).min(axis=1)
    opened = least * float(_upper_limit(np.array(0.001), np.array(60.0), 4)) / 0.001
    assert np.mean(opened < 1.0) < 0.05 and np.median(opened) < 2.5  # the true variance is left open, and not much more

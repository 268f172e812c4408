"""Variances near 0: gradients against finite differences, and fits that leave the boundary."""

from __future__ import annotations

import numpy as np
import pytest

from likely import LinearGaussian, Ragged, StoppingRule
from likely.priors import LinearPrior
from likely.statespace import ConstrainedLinearGaussian
from likely.statespace.linear.kalman_filter import series_of
from likely.statespace.linear.linear_em import e_step, e_step_of_means
from likely.statespace.linear.quasi_newton import check_converged, fit_quasi_newton
from likely.statespace.linear.variance_boundary import check_boundary, variance_directions, with_raised
from tests.reference.make_linear_em import START

LEVEL = LinearGaussian.local_level


def collector(y):
    def look(m):
        series = series_of(m, y)
        return e_step(m, series, None), e_step_of_means(m, series, None)

    return look


def walk(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return 50.0 + np.cumsum(rng.normal(size=n)) + 2.0 * rng.normal(size=n)


def gappy(m, seed=0):
    rng = np.random.default_rng(seed)
    x = m.sample(4, rng, [20, 30, 5, 9])
    return Ragged(np.where(rng.random(x.values.shape) < 0.2, np.nan, x.values), x.offsets)


FORMS = [
    {},
    {"process_covariance": "diagonal", "observation_covariance": "spherical"},
    {"process_covariance": "scale", "observation_covariance": "scale"},
    {"process_covariance": [("full", [0]), ("scale", [1])], "observation_covariance": np.array([1, 0])},
]


@pytest.mark.parametrize("form", FORMS, ids=["full", "labels", "scale", "blocks"])
@pytest.mark.parametrize("prior", [False, True])
def test_slopes_are_those_of_log_p(form, prior):
    m = LinearGaussian(**START)
    y = gappy(m)
    learner = ConstrainedLinearGaussian.of(
        m, ["process_covariance", "observation_covariance", "initial_covariance"], form
    )
    learner = learner.refit(learner.collect(y))
    m = learner.model
    distribution = LinearPrior(m.collect(gappy(m, 3)) * 0.3) if prior else None
    found = variance_directions(m, collector(y)(m), distribution, learner.structure)
    assert {direction.name for direction in found} == {
        "process_covariance",
        "observation_covariance",
        "initial_covariance",
    }

    def total(at):
        return float(at.log_prob(y).sum()) + (distribution.log_density(at) if distribution else 0.0)

    for direction in found:
        h = 1e-5
        plain = (total(with_raised(m, [direction], [h])) - total(with_raised(m, [direction], [-h]))) / (2 * h)
        assert direction.gradient == pytest.approx(plain, rel=1e-5, abs=1e-5)
        assert -1e-9 < direction.share <= 1.0 + 1e-9 and direction.rounding < 1e-10


def test_sizes_of_what_changes_with_time_too():
    T = 30
    sizes = np.linspace(0.2, 2.0, T)[:, None, None]
    m = LinearGaussian(**{**START, "process_covariance": np.array(START["process_covariance"]) * sizes})
    learner = ConstrainedLinearGaussian.of(m, ["process_covariance"], {"process_covariance": "scale"})
    y = Ragged.of(np.sin(np.arange(2.0 * T) ** 2).reshape(T, 2))
    (direction,) = variance_directions(m, collector(y)(m), None, learner.structure)
    h = 1e-5
    ahead, behind = (float(with_raised(m, [direction], [by]).log_prob(y).sum()) for by in (h, -h))
    assert direction.gradient == pytest.approx((ahead - behind) / (2 * h), rel=1e-5)
    assert 0 < direction.share < 1


@pytest.mark.usefixtures("compiled_loops")
def test_the_share_falls_with_the_variance():
    """Below the data's scale, variance / share is that scale, whatever the variance."""
    y = walk()
    learner = ConstrainedLinearGaussian.of(LEVEL(1.0, 4.0), ["process_covariance"])
    scales = []
    for noise in (1e-3, 1e-4, 1e-5):
        m = LEVEL(noise, 4.0)
        (direction,) = variance_directions(m, collector(y)(m), None, learner.structure)
        scales.append(noise / direction.share)
    assert max(scales) / min(scales) < 1.5 and 0.01 < scales[-1] < 10


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("tiny", [1e-6, 1e-12, 1e-20, 1e-60])
@pytest.mark.parametrize("which", ["process_covariance", "observation_covariance"])
def test_a_variance_that_is_lost_is_found_again(tiny, which):
    y = walk()
    want = fit_quasi_newton(
        ConstrainedLinearGaussian.of(LEVEL(1.0, 4.0), ["process_covariance", "observation_covariance"]), Ragged.of(y)
    )
    start = LEVEL(tiny, 6.0) if which == "process_covariance" else LEVEL(9.0, tiny)
    learner = ConstrainedLinearGaussian.of(start, ["process_covariance", "observation_covariance"])
    found = check_boundary(start, collector(y), None, learner.structure, 1e-3)
    assert which in [direction.name for direction in found.variance_directions]
    report = fit_quasi_newton(learner, Ragged.of(y))
    assert report.converged and report.objective == pytest.approx(want.objective, abs=1e-4)
    assert (np.diff(report.trace) >= -1e-9).all()


@pytest.mark.usefixtures("compiled_loops")
def test_a_variance_that_belongs_at_0_is_left_there():
    """Differences of white noise: a level that moves would explain them worse, however little."""
    y = np.diff(np.random.default_rng(1).normal(size=301))
    reports = [
        fit_quasi_newton(
            ConstrainedLinearGaussian.of(LEVEL(q, 1.0), ["process_covariance", "observation_covariance"]), Ragged.of(y)
        )
        for q in (1e-9, 1.0)
    ]
    assert all(r.converged and r.model.model.process_covariance.item() < 1e-5 for r in reports)
    assert reports[0].objective == pytest.approx(reports[1].objective, abs=1e-3)
    found = check_boundary(reports[0].model.model, collector(y), None, reports[0].model.structure, 1e-3)
    assert not found.variance_directions and not found.cut


@pytest.mark.usefixtures("compiled_loops")
def test_em_alone_does_not_call_it_converged():
    from likely import fit

    y = Ragged.of(walk())
    stop = StoppingRule(200, 1e-8)
    stuck = fit(
        ConstrainedLinearGaussian.of(LEVEL(1e-9, 6.0), ["process_covariance", "observation_covariance"]), y, stop=stop
    )
    assert stuck.converged
    told = check_converged(stuck, y, 1e-8)
    assert not told.converged and "start from a larger process_covariance" in told.reason
    good = fit_quasi_newton(
        ConstrainedLinearGaussian.of(LEVEL(1.0, 4.0), ["process_covariance", "observation_covariance"]), y
    )
    assert check_converged(good, y, 1e-8).converged


@pytest.mark.slow
def test_trend_and_season_end_at_one_place():
    rng = np.random.default_rng(0)
    t = np.arange(240)
    y = 300 + 0.1 * t + 3 * np.sin(2 * np.pi * t / 6) + np.cumsum(rng.normal(0, 0.2, 240)) + rng.normal(0, 0.3, 240)
    reached = []
    for size in (1e-6, 1.0):
        m = LinearGaussian.local_trend(size, size * 1e-2, size) + LinearGaussian.seasonal(6, size * 1e-2)
        form = {"process_covariance": np.array([1, 2, 3, 0, 0, 0, 0])}
        reached.append(
            fit_quasi_newton(
                ConstrainedLinearGaussian.of(m, ["process_covariance", "observation_covariance"], form), Ragged.of(y)
            ).objective
        )
    assert reached[0] == pytest.approx(reached[1], abs=1e-2)


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_only_what_was_too_small_to_see_is_judged_where_it_is_raised(seed):
    """The start's variance is 0 at the maximum. Raised for a look, it bends the slopes of all others: at a maximum a
    fit said "not converged: begin with a greater observation"."""
    m = LinearGaussian(
        transition=[[0.95]],
        process_covariance=[[0.5]],
        observation=[[1.0]],
        observation_covariance=[[0.5]],
        initial_mean=[0.0],
        initial_covariance=[[1e-9]],
    )
    y = m.sample(1, np.random.default_rng(seed), 40)
    m = m.replace(initial_mean=y[0][0])
    top = fit_quasi_newton(
        ConstrainedLinearGaussian.of(m, ["process_covariance", "observation_covariance"]),
        y,
        stop=StoppingRule(2000, 1e-14),
    ).model.model
    every = ConstrainedLinearGaussian.of(
        top, ["process_covariance", "observation_covariance", "initial_covariance"]
    ).structure
    first = variance_directions(top, collector(y)(top), None, every)
    assert [direction.name for direction in first if direction.below_rounding] == ["initial_covariance"]
    found = check_boundary(top, collector(y), None, every, 1e-13)
    assert found.n_looks > 1 and not found.cut and not found.variance_directions

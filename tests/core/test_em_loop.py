"""The one learning loop: monotone, honest about how it ended, and stoppable."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import likely as lk
from likely import DataError, DomainError, Gaussian, NotConverged, StoppingRule, fit
from likely.core import Blocks, iterate
from likely.core.em_loop import resolve_prior


@pytest.fixture
def gappy(rng):
    x = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) + [10.0, 0.0, -5.0]
    x[rng.random(x.shape) < 0.3] = np.nan
    return x


def blank(x):
    return Gaussian.blank(x)


def test_complete_data_are_one_pass(rng):
    x = rng.standard_normal((50, 2))
    report = fit(blank(x), x)
    assert report.converged and report.iterations == 1 and len(report.trace) == 1
    assert report.objective == pytest.approx(report.model.log_prob(x).sum(), rel=1e-12)
    assert "closed form" in report.reason and str(report).startswith("Gaussian: converged after 1 refit:")


def test_em_never_falls_and_reports_the_likelihood_of_its_model(gappy):
    report = fit(blank(gappy), gappy, stop=StoppingRule(200, 1e-9))
    assert report.converged and (np.diff(report.trace) >= -1e-9).all() and report.iterations == len(report.trace) - 1
    assert report.objective == pytest.approx(report.model.log_prob(gappy).sum(), rel=1e-12)


def test_running_out_of_passes_is_not_convergence(gappy):
    report = fit(blank(gappy), gappy, stop=StoppingRule(max_iter=2, tol=0.0))
    assert not report.converged and report.iterations == 2 and len(report.trace) == 3
    assert "NOT converged" in str(report) and "2 refits" in report.reason
    with pytest.raises(NotConverged, match="the objective must converge"):
        report.require_converged()


def test_settling_is_convergence(gappy):
    report = fit(blank(gappy), gappy, stop=StoppingRule(500, 1e-4))
    assert report.converged and report.require_converged() is report
    gain = report.trace[-1] - report.trace[-2]
    assert gain <= 1e-4 * report.stats.total_weight and report.iterations < 500


def test_the_tolerance_is_a_unit_of_weight(gappy):
    once = fit(blank(gappy), gappy, stop=StoppingRule(500, 1e-5))
    heavy = fit(blank(gappy), Blocks.of(gappy, np.full(200, 1000.0)), stop=StoppingRule(500, 1e-5))
    assert heavy.iterations == once.iterations


class Interrupting:
    """An engine that presses Ctrl-C in its n-th pass."""

    def __init__(self, when):
        self.left = when

    def total(self, collect, blocks):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        stats = None
        for block in blocks:
            stats = collect(block) if stats is None else stats + collect(block)
        return stats


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_ctrl_c_returns_the_best_so_far(gappy, passes):
    report = fit(blank(gappy), gappy, engine=Interrupting(passes), stop=StoppingRule(100, 0.0))
    assert not report.converged and report.reason == "interrupted" and len(report.trace) == passes
    steps = iterate(blank(gappy), gappy)
    wanted = [next(steps) for _ in range(passes)][-1]
    assert report.model.mean.tobytes() == wanted.model.mean.tobytes()
    assert report.objective == wanted.objective


def test_ctrl_c_before_anything_was_seen_is_ctrl_c(gappy):
    with pytest.raises(KeyboardInterrupt):
        fit(blank(gappy), gappy, engine=Interrupting(0))


@pytest.mark.parametrize("make", [lambda x: (row for row in x), lambda x: iter([x]), lambda x: map(np.asarray, x)])
def test_a_generator_is_refused_and_pointed_to_online(gappy, make):
    with pytest.raises(DataError, match=r"re-iterable.*use lk\.online_em for a stream"):
        fit(blank(gappy), make(gappy))


@pytest.mark.parametrize("bad", [{"max_iter": 0}, {"tol": -1.0}, {"tol": np.nan}])
def test_when_to_stop_must_make_sense(bad):
    with pytest.raises(DomainError, match="max_iter must be an integer and at least 1"):
        StoppingRule(**bad)


def test_iterate_yields_the_model_that_looked(gappy):
    start = blank(gappy)
    steps = iterate(start, gappy)
    first, second = next(steps), next(steps)
    assert first.model is start and first.objective == pytest.approx(start.log_prob(gappy).sum(), rel=1e-12)
    assert second.objective > first.objective


def test_the_weak_prior_is_resolved_once(gappy):
    steps = iterate(blank(gappy), gappy, prior="weak")
    first, *others = (next(steps).prior for _ in range(4))
    assert not isinstance(first, str) and all(prior is first for prior in others)


@pytest.mark.parametrize("rule", ["weak", lambda model, stats: model.weak_prior(stats)])
def test_a_rule_is_applied_to_correlations_that_were_learned(rule):
    """Not to those of the first model, which knows none: its prior would pull what is learned toward none."""
    r = np.random.default_rng(0)
    x = r.normal(size=(200, 1)) + 0.1 * r.normal(size=(200, 3))
    x[r.random(x.shape) < 0.3] = np.nan
    step = next(iterate(blank(x), x, prior=rule))
    for covariance in (step.prior.point("mode").covariance, step.model.covariance):
        size = np.sqrt(np.diagonal(covariance))
        assert (covariance / size[:, None] / size).min() > 0.97


def test_a_prior_that_asks_no_statistics_stands_at_once(gappy):
    given = blank(gappy).weak_prior(blank(gappy).collect(gappy))
    plain = iterate(blank(gappy), gappy, prior=given)
    first, _, second = next(iterate(blank(gappy), gappy, prior=lambda *_: given)), next(plain), next(plain)
    assert first.prior is given and first.objective == second.objective


def narrow():
    """Rows of condition 1e4, of which two fifths of the entries are missing; and the direction of least variance."""
    r = np.random.default_rng(5)
    axes = np.linalg.qr(r.normal(size=(6, 6)))[0]
    x = r.normal(size=(150, 6)) * np.logspace(0, -2, 6) @ axes.T
    x[r.random(x.shape) < 0.4] = np.nan
    return x, axes[:, -1]


@pytest.mark.slow
def test_the_prior_is_followed_to_its_fixed_point():
    """It stood after steps that changed it by 1e-4 nats per row, of which many were to come."""
    x, thin = narrow()
    report = fit(blank(x), x, prior="weak", stop=StoppingRule(3000, 1e-7))
    again = report.model.weak_prior(report.stats)
    assert report.converged and report.iterations < 50
    for one in (report.prior, again):
        variance = thin @ one.point("mode").covariance @ thin
        assert variance == pytest.approx(thin @ again.point("mode").covariance @ thin, rel=0.01)
    usual = fit(blank(x), x, prior="weak", stop=StoppingRule(100, 1e-6)).model.covariance
    assert thin @ usual @ thin == pytest.approx(thin @ report.model.covariance @ thin, rel=0.03)


def test_a_prior_that_still_moves_is_held_and_told_of():
    x, _ = narrow()
    report = fit(blank(x), x, prior="weak", stop=StoppingRule(3, 0.1))
    assert report.converged  # to the tolerance that was asked for
    report = fit(blank(x), x, prior="weak", stop=StoppingRule(4, 1e-3))
    assert "the prior was held" in report.reason or "still moving" in report.reason


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_ctrl_c_before_the_prior_stands_returns_the_best_so_far(passes):
    x, _ = narrow()
    report = fit(blank(x), x, prior="weak", engine=Interrupting(passes), stop=StoppingRule(100, 1e-9))
    assert not report.converged and report.reason == "interrupted" and len(report.trace) == 1
    want = report.model.log_prob(x).sum() + report.prior.log_density(report.model)
    assert report.objective == pytest.approx(want, rel=1e-10)
    assert np.isfinite(report.model.covariance).all()


def test_with_a_prior_the_penalized_objective_never_falls(gappy):
    report = fit(blank(gappy), gappy, prior="weak", stop=StoppingRule(100, 1e-10))
    assert (np.diff(report.trace) >= -1e-9).all()
    want = report.model.log_prob(gappy).sum() + report.prior.log_density(report.model)
    assert report.objective == pytest.approx(want, rel=1e-10)


def test_other_words_for_a_prior_are_refused(gappy):
    with pytest.raises(DomainError, match='"weak" or None'):
        fit(blank(gappy), gappy, prior="strong")
    assert resolve_prior(None, None, None) is None


def test_no_rows_are_an_error():
    with pytest.raises(DataError, match="at least one block of rows"):
        fit(Gaussian([0.0, 0.0], 1.0), np.empty((0, 2)))


# ------------------------------------------------------------ what a row is, the model knows


def test_a_list_for_a_model_of_sequences_holds_sequences():
    """Vectors of equal length were read as rows of a table: ShapeError, and one long array as many sequences."""
    rng = np.random.default_rng(0)
    hmm = lk.HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], lk.Gaussian([[-1.0], [1.0]], 1.0))
    x, z = (rng.normal(size=30) for _ in range(2))
    stop = lk.StoppingRule(3, 0.0)
    want = lk.fit(hmm, lk.Ragged.from_list([x, z]), stop=stop)
    for data in ([x, z], [x.tolist(), z.tolist()], np.stack([x, z])[:, :, None]):
        found = lk.fit(hmm, data, stop=stop)
        assert found.trace == want.trace and found.model.transition.tobytes() == want.model.transition.tobytes()
    assert next(lk.core.iterate(hmm, [x])).objective == pytest.approx(hmm.log_prob([x]).sum(), rel=1e-12)
    long = rng.normal(size=9000)
    assert next(lk.core.iterate(hmm, long)).objective == pytest.approx(hmm.log_prob(long)[0], rel=1e-12)
    held = lk.fit(hmm, [x, z], stop=stop, held_out=[x, z])
    assert held.held_out[0] == pytest.approx(hmm.log_prob([x, z]).mean(), rel=1e-12)


def test_models_made_of_models_of_sequences_know_it_too():
    rng = np.random.default_rng(1)
    x = [rng.normal(size=25), rng.normal(3.0, 1.0, size=25), rng.normal(size=25)]
    level = [lk.LinearGaussian.local_level(q, 1.0) for q in (0.1, 1.0)]
    both = lk.Mixture([0.5, 0.5], lk.distributions.Stack(tuple(level)))
    assert both.of_sequences and not lk.Gaussian([0.0], 1.0).of_sequences
    joint = np.stack([m.log_prob(x) for m in level], axis=1) + np.log(0.5)
    assert_allclose(both.log_prob(x), np.logaddexp.reduce(joint, axis=1))
    assert_allclose(next(lk.core.iterate(both, x)).objective, np.logaddexp.reduce(joint, axis=1).sum())
    mixed = lk.mixture.interpolation_weights(level, x)
    assert_allclose(mixed.log_prob(x), np.logaddexp.reduce(joint - np.log(0.5) + np.log(mixed.weights), axis=1))

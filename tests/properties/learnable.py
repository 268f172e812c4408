"""What every learnable owes: learning never lowers its objective, and the objective is the likelihood."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from likely import DataError, Learnable, LikelyError, StoppingRule, fit
from tests.properties.compare import bits, gap
from tests.properties.members import Member
from tests.properties.stats import EXACT, Case, cases
from tests.properties.suite import Suite, search

PROPERTIES = Suite()


def learns(m: Member) -> bool:
    return m.learns


def stacked(m: Member) -> bool:
    return m.learns and m.stack


def log_likelihood(model: Any, x: np.ndarray, w: np.ndarray) -> float:
    """Σ w log p(x), over all members of a stack."""
    return float((over_members(w, model) * over_members(model.log_prob(x), model)).sum())


def over_members(a: np.ndarray, model: Any) -> np.ndarray:
    """(n,) or (n, K) as (n, K)."""
    return np.repeat(a[:, None], model.members or 1, axis=1) if a.ndim == 1 else a


@PROPERTIES.add(when=learns, by_class=True)
def plays_the_role(m: Member):
    assert isinstance(m.value, Learnable)


@PROPERTIES.add(when=learns, searches=True)
def the_objective_is_the_likelihood(m: Member):
    """At the model that collected, whatever was missing (Neal and Hinton: the bound is tight there)."""

    @search(cases(m))
    def check(case: Case):
        model, x, w, _ = case
        want = log_likelihood(model, x, w)
        size = log_likelihood_size(model, x, w)
        assert abs(model.objective(model.collect(x, w)) - want) <= 1e-9 * max(size, 1.0)

    check()


def log_likelihood_size(model: Any, x: np.ndarray, w: np.ndarray) -> float:
    return float((over_members(w, model) * np.abs(over_members(model.log_prob(x), model))).sum())


@PROPERTIES.add(when=stacked)
def the_objective_of_a_stack_is_that_of_its_members(m: Member):
    rng = np.random.default_rng(1)
    x = m.rows(40, rng, 0.3)
    w = rng.random((40, m.value.members))
    want = log_likelihood(m.value, x, w)
    assert m.value.objective(m.value.collect(x, w)) == pytest.approx(want, rel=1e-9)


@PROPERTIES.add(when=learns, searches=True)
def refitting_never_lowers_the_objective(m: Member):
    """For the same statistics, and so for the likelihood of the data: each round of EM gains."""
    rng = np.random.default_rng(2)
    for trial in range(6 if settings().max_examples <= 100 else 60):
        x, w = m.rows(60, rng, 0.3 * (trial % 2)), rng.random(60)
        model = m.value
        for _ in range(4):
            stats = model.collect(x, w)
            better = model.refit(stats)
            before, after = model.objective(stats), better.objective(stats)
            assert after >= before - 1e-10 * abs(before)
            gained = log_likelihood(better, x, w) - log_likelihood(model, x, w)
            assert gained >= -1e-10 * abs(before)
            model = better


@PROPERTIES.add(when=learns)
def a_fit_is_a_fixed_point(m: Member):
    rng = np.random.default_rng(3)
    x, w = m.rows(80, rng), 0.5 + rng.random(80)
    fitted = fit(m.value, weighted(x, w), stop=StoppingRule(2000, 1e-13)).require_converged().model
    again = fitted.refit(fitted.collect(x, w))
    assert gap(again, fitted) <= (1e-5 if m.hidden else EXACT)


def weighted(x: np.ndarray, w: np.ndarray) -> Any:
    from likely.core import Blocks

    return Blocks.of(x, w)


@PROPERTIES.add(when=lambda m: m.learns and m.gaps)
def a_fit_with_gaps_is_a_summit(m: Member):
    """After convergence another round gains nothing, and the report tells the likelihood."""
    rng = np.random.default_rng(4)
    x = m.rows(80, rng, 0.2)
    report = fit(m.value, x, stop=StoppingRule(3000, 1e-12)).require_converged()
    assert report.objective == pytest.approx(log_likelihood(report.model, x, np.ones(80)), rel=1e-9)
    stats = report.model.collect(x)
    assert report.model.refit(stats).objective(stats) - report.objective <= 1e-8 * abs(report.objective)


@PROPERTIES.add(when=learns, by_class=True)
def chunks_fit_as_the_batch(m: Member):
    rng = np.random.default_rng(5)
    x, w = m.rows(50, rng), rng.random(50)
    model = m.value
    total = model.collect(x[:9], w[:9]) + model.collect(x[9:31], w[9:31]) + model.collect(x[31:], w[31:])
    assert gap(model.refit(total), model.refit(model.collect(x, w))) <= EXACT


@PROPERTIES.add(when=learns, by_class=True)
def a_weight_fits_as_a_repetition(m: Member):
    rng = np.random.default_rng(6)
    x, times = m.rows(40, rng), rng.integers(0, 4, 40)
    a, b = m.value.collect(x, times), m.value.collect(np.repeat(x, times, axis=0))
    assert gap(m.value.refit(a), m.value.refit(b)) <= EXACT


@PROPERTIES.add(when=stacked, by_class=True)
def members_without_weight_stay_as_they_were(m: Member):
    """All of a member stays, or where it shares with others what is its own: the mean."""
    rng, value = np.random.default_rng(7), m.value
    alone = 0 if getattr(value, "what", "") == "all" else value.members - 1
    w = rng.random((40, value.members))
    w[:, alone] = 0.0
    fitted = value.refit(value.collect(m.rows(40, rng), w))
    assert bits(middle(fitted.member(alone))) == bits(middle(value.member(alone)))
    if not shares(value):
        assert bits(fitted.member(alone)) == bits(value.member(alone))
    busy = (alone + 1) % value.members
    assert bits(fitted.member(busy)) != bits(value.member(busy))


def middle(value: Any) -> Any:
    """The mean, or what stands for it in a distribution that has none."""
    return value.expected if hasattr(value, "expected") else value.mean


def shares(value: Any) -> bool:
    """True if members have a covariance together."""
    inside = [part for _, part in value.components] if hasattr(value, "names") else [value]
    return any(getattr(v, "tied", False) or getattr(v, "what", "") == "covariance" for v in inside)


@PROPERTIES.add(when=learns)
def a_weak_prior_settles_what_the_data_leave_open(m: Member):
    rng = np.random.default_rng(8)
    for n in (1, 2, 30):
        x = m.rows(n, rng)
        stats = m.value.collect(x)
        prior = m.value.weak_prior(stats)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = m.value.refit(stats, prior)
        assert np.isfinite(fitted.log_prob(x)).all()
        assert fitted.objective(stats, prior) >= m.value.objective(stats, prior) - 1e-10 * abs(
            fitted.objective(stats, prior)
        )


@PROPERTIES.add(when=learns, by_class=True)
def nothing_to_learn_from_is_an_error(m: Member):
    for x, w in ((np.empty((0, m.dim)), None), (m.rows(3, np.random.default_rng(9)), np.zeros(3))):
        with pytest.raises(DataError, match="weight is needed"):
            m.value.refit(m.value.collect(x, w))


@PROPERTIES.add(when=learns, by_class=True)
def statistics_of_another_shape_are_refused(m: Member):
    if not (hasattr(m.value, "expected") or hasattr(m.value, "mean")) or m.dim == 1 or hasattr(m.value, "components"):
        return
    other = type(m.value).blank(np.ones((3, m.dim + 1)))
    with pytest.raises(LikelyError):
        m.value.refit(other.collect(np.ones((3, m.dim + 1))))


@PROPERTIES.add(when=lambda m: m.learns and not m.stack)
def free_parameters_are_counted(m: Member):
    assert m.value.n_parameters >= 1 and isinstance(m.value.n_parameters, int)


@PROPERTIES.add(when=stacked)
def free_parameters_of_a_stack_are_at_most_those_of_its_members(m: Member):
    each = sum(one.n_parameters for one in m.each())
    assert 0 < m.value.n_parameters <= each

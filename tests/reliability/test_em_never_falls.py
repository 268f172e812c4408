"""EM never goes down, for any family, tie, prior, gap, weight or label; and what it reports is the likelihood.

A fall means more than 1e-10 of the objective (or of a nat a row, where that is more), and more than rounding takes in
the thinnest direction of a covariance, 2e-16 of its condition. Floors alone may bring one about: without a prior, a
covariance that has become singular is lifted to 1e-9 of the columns' variances, and the lifted one is not the
maximum. `fit` then returns the model before the fall, not converged, and says why.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from likely import DataError, LikelyError, StoppingRule, fit
from likely.core import Serial
from likely.core.em_loop import FALLS, FitStep, iterate
from likely.core.warnings import warnings_collected, warnings_discarded
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from tests.properties.compare import arrays_of
from tests.reliability.em_problems import FAMILIES, Problem, problem

STEPS = 4
FALL = 1e-10
LOOKED_AT = 25  # every so many problems the objective is recomputed from scratch
EPS = float(np.finfo(np.float64).eps)
LIFTED = re.compile("set to 1e-9 of|set to 1e-8 of|covariance is singular")
NOTHING = re.compile("at least one row")


def size(step: FitStep) -> float:
    """What a change of the objective is compared with."""
    return max(abs(step.objective), float(step.stats.total_weight))


def climbs(p: Problem, look: bool) -> int:
    """Make some steps; every one must keep its word. Gives how often a floor intervened."""
    floors, before = 0, None
    with warnings_collected() as heard:
        steps = iterate(p.start, p.data, prior=p.prior, engine=Serial(), hard=p.hard)
        for _ in range(STEPS):
            told = len(heard)
            step = next(steps)
            assert np.isfinite(step.objective)
            if before is not None and fell(before, step):
                lifted = p.prior is None and any(LIFTED.search(str(note)) for note in heard[told:])
                assert lifted
                floors += 1
            if look:
                want = p.objective(step.model, step.prior)
                rounding = 4 * EPS * condition(step.model) + (EPS * offset(step.model)) ** 2
                assert abs(step.objective - want) <= (1e-9 + rounding) * max(size(step), 1.0)
            before = step
    is_sound(step)  # what is not a number stays so
    return floors


def is_sound(step: FitStep) -> None:
    assert all(np.isfinite(a).all() for a in arrays_of(step.model))
    assert (step.model.weights >= 0).all() and abs(step.model.weights.sum() - 1) <= 1e-9
    assert all(np.linalg.eigvalsh(r).min() > 0 for r in correlations(step.model))


def correlations(distribution: Any) -> list[np.ndarray]:
    """All covariances inside a model, in the units of their columns; with one noise for all columns, as they are."""
    if hasattr(distribution, "covariance_matrix"):
        S = distribution.covariance_matrix
        if isinstance(distribution, FactorGaussian) and distribution.kind == "spherical":
            return [S]
        unit = np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))
        return [S / unit[..., :, None] / unit[..., None, :]]
    inside = getattr(distribution, "components", ())
    inside = [part for _, part in inside] if isinstance(inside, tuple) else [inside]
    return [r for part in inside for r in correlations(part)]


def fell(before: FitStep, step: FitStep) -> bool:
    """True if the objective is lower by more than 1e-10, and more than rounding takes in the thinnest direction."""
    lost = (before.objective - step.objective) / size(before)
    return bool(lost > FALL and lost > FALL + EPS * max(condition(before.model), condition(step.model)))


def condition(distribution: Any) -> float:
    """The worst condition of any covariance: digits that no formula can give back."""
    return max((float(np.linalg.cond(r).max()) for r in correlations(distribution)), default=1.0)


def offset(distribution: Any) -> float:
    """The farthest mean, in standard deviations: its rounding moves each row by so many of them times EPS."""
    if hasattr(distribution, "covariance_matrix"):
        spread = np.sqrt(np.diagonal(distribution.covariance_matrix, axis1=-2, axis2=-1))
        return float(np.max(np.abs(distribution.mean) / spread))
    inside = getattr(distribution, "components", ())
    inside = [part for _, part in inside] if isinstance(inside, tuple) else [inside]
    return max((offset(part) for part in inside if part is not None), default=0.0)


def something_seen(p: Problem) -> bool:
    """Every part of a row has an entry that was seen, in some row that counts."""
    n = len(p.x) if not hasattr(p.x, "toarray") else p.x.shape[0]
    counts = np.ones(n, dtype=bool) if p.weight is None else p.weight > 0
    counts &= np.ones(n, dtype=bool) if p.labels is None else p.labels >= 0
    parts = [p.x] if not hasattr(p.x, "parts") else list(p.x.parts.values())
    return all(hasattr(x, "toarray") or bool(np.isfinite(x[counts]).any()) for x in parts)


def search(family: str, seeds: range) -> None:
    floors = 0
    for seed in seeds:
        p = problem(family, seed)
        try:
            floors += climbs(p, look=seed % LOOKED_AT == 0)
        except LikelyError as error:  # in one sentence, where there is nothing to learn from
            assert NOTHING.search(str(error)) and not something_seen(p), f"{family}, seed {seed}"
        except Exception as error:
            raise AssertionError(f"{family}, seed {seed}") from error
    print(f"{family}: {len(seeds)} problems, {floors} steps in which a floor lifted a covariance")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_problems(family):
    search(family, range(10))


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("family", FAMILIES)
def test_ten_thousand_problems(family, part):
    search(family, range(10 + 1000 * part, 1010 + 1000 * part))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_reports_the_likelihood(family):
    for seed in range(20_000, 20_004):
        p = problem(family, seed)
        if something_seen(p):
            climbs(p, look=True)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["full", "tied", "shared covariance", "shared all", "product"])
def test_a_fit_without_prior_returns_the_model_before_a_fall(family):
    """Those problems of the search in which a floor intervened, and others: the report says what happened."""
    stopped = 0
    for seed in range(50):
        p = problem(family, seed)
        if p.prior is not None or not something_seen(p):
            continue
        with warnings_collected() as heard:
            report = fit(p.start, p.data, engine=Serial(), stop=StoppingRule(30, 0.0), hard=p.hard)
        slack = FALLS * np.maximum(np.abs(report.trace), report.stats.total_weight)
        assert (np.diff(report.trace) >= -slack[:-1]).all()
        if "a singular estimate had to be regularized" in report.reason:
            stopped += 1
            assert not report.converged and any(LIFTED.search(str(note)) for note in heard)
            want = p.objective(report.model, None)
            with warnings_discarded():
                lifted = report.model.refit(report.stats)  # the step that was not taken: no better, up to rounding
            worst = max(condition(report.model), condition(lifted))
            rounding = (1e-9 + 4 * EPS * worst) * max(abs(want), report.stats.total_weight)
            assert abs(report.objective - want) <= rounding and p.objective(lifted, None) <= want + rounding
    if family in ("full", "product"):
        assert stopped


def test_nothing_to_learn_from_is_said():
    seen = 0
    for family in ("full", "diagonal", "Poisson"):
        p = problem(family, 3)
        nothing = np.full((4, p.start.dim), np.nan)
        for prior in (None, "weak"):
            try:
                is_sound(next(iterate(p.start, nothing, prior=prior)))
            except (DataError, LikelyError) as error:
                seen += 1
                assert NOTHING.search(str(error))
    assert seen

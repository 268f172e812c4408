"""Learning a linear-Gaussian model never goes down, whatever is learned in whatever form; what is fixed stays."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DataError, StoppingRule
from likely.core import Serial
from likely.core.em_loop import iterate
from likely.numerics.covariance_roots import is_covariance
from likely.statespace.linear.linear_structure import variance_labels
from likely.statespace.linear.quasi_newton import fit_quasi_newton
from tests.properties.compare import arrays_of
from tests.reliability.linear_problems import KINDS, Problem, problem

STEPS = 5
FALL = 1e-10
EPS = 2.3e-16
FEW = {kind: 0.2 if kind == "far" else 0.02 for kind in KINDS}  # may end in a covariance that collapses: 15 %, 0.1 %


def condition(model) -> float:
    """The largest ratio of variances that a covariance has in its own units, singular directions left out."""
    worst = 1.0
    for a in (model.process_covariance, model.observation_covariance, model.initial_covariance):
        for one in a.reshape(-1, *a.shape[-2:]):
            s = np.sqrt(np.where(np.diagonal(one) > 0, np.diagonal(one), 1.0))
            values = np.linalg.eigvalsh(one / s[:, None] / s[None, :])
            values = values[values > 1e-13 * max(values[-1], 1e-300)]
            worst = max(worst, values.max(initial=1.0) / values.min(initial=1.0))
    return worst


def collapsed(model) -> bool:
    """True if some covariance is nearly singular in its own units, or has almost no variance at all."""
    return condition(model) > 1e9 or any(
        np.linalg.matrix_rank(a, tol=1e-9 * max(a.max(), 1e-300)) < len(a)
        for a in (model.process_covariance, model.observation_covariance)
        if a.ndim == 2
    )


def climbs(p: Problem) -> str:
    """Make some steps, each of which must keep its word: "climbed", "collapsed" or "impossible" is how it ended."""
    before, first = None, p
    with np.errstate(all="ignore"):
        steps = iterate(p.start, p.data, prior=p.prior, engine=Serial())
        for _ in range(STEPS):
            step = next(steps)
            model = step.model.model
            assert not np.isnan(step.objective) and step.objective < np.inf
            assert all(np.isfinite(a).all() for a in arrays_of(model))
            assert all(
                is_covariance(a)
                for a in (model.process_covariance, model.observation_covariance, model.initial_covariance)
            )
            if before is not None:
                size = max(abs(step.objective), step.stats.total_weight, 1.0)
                if p.prior is None and not collapsed(before.model.model) and collapsed(model):
                    return "collapsed"  # so few frames have no likeliest model: what follows is rounding
                slack = FALL + 16 * EPS * max(condition(before.model.model), condition(model))
                assert (before.objective - step.objective) / size <= slack
            if before is not None or in_form(p):  # a start that has not the form asked for is no mark to beat
                before = step
            p = Problem(step.model, p.x, p.weight, step.prior)
    fixed_stay(first, model)
    return "climbed" if np.isfinite(step.objective) else "impossible"


def in_form(p: Problem) -> bool:
    """True if covariances are of the form that is learned: a step by themselves would leave it so."""
    for name in ("process_covariance", "observation_covariance"):
        form = p.start.structure.form.get(name, "full")
        if name in p.start.structure.learn and not (isinstance(form, str) and form in ("full", "scale")):
            a = getattr(p.start.model, name)
            labels = variance_labels(len(a), form)
            there = labels > 0
            off = np.abs(a - np.diag(np.diagonal(a)))[there].max(initial=0.0) > 0
            if off or any(np.ptp(np.diagonal(a)[labels == g]) > 0 for g in np.unique(labels[there])):
                return False
    return True


def fixed_stay(p: Problem, model) -> None:
    """What is not learned is as it was, to the bit; fixed entries are, and shared ones are one number."""
    s, old = p.start.structure, p.start.model
    for name in (
        "transition",
        "control",
        "observation",
        "feedthrough",
        "process_covariance",
        "observation_covariance",
        "initial_mean",
        "initial_covariance",
    ):
        a, b = getattr(old, name), getattr(model, name)
        if name not in s.learn:
            assert a is b or np.array_equal(a, b)
        elif (
            name in s.form
            and not isinstance(s.form[name], str)
            and name not in ("process_covariance", "observation_covariance")
        ):
            labels = s.form[name]
            assert np.array_equal(a[labels == 0], b[labels == 0])
            if labels.dtype.kind != "b":
                for group in np.unique(labels[labels > 0]):
                    moved = (b - a)[labels == group]
                    assert np.allclose(moved, moved[0], rtol=1e-9, atol=1e-12 * np.abs(b).max())


def search(kind: str, seeds: range) -> None:
    ends: list[str] = []
    for seed in seeds:
        try:
            ends.append(climbs(problem(kind, seed)))
        except DataError as error:  # a start that the sequences do not determine
            assert kind == "diffuse" and "diffuse initial state" in str(error), f"{kind}, seed {seed}: {error}"
        except Exception as error:
            raise AssertionError(f"{kind}, seed {seed}") from error
    assert ends.count("impossible") < len(seeds) / 2 and ends.count("climbed") > len(seeds) / 2
    assert ends.count("collapsed") <= FEW[kind] * len(seeds) + 1, f"{kind}: {ends.count('collapsed')} of {len(seeds)}"


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("kind", KINDS)
def test_problems(kind):
    search(kind, range(12))


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_many_problems(kind):
    search(kind, range(12, 1375))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("kind", KINDS)
def test_climbing_never_falls_and_is_no_worse_than_em(kind):
    for seed in range(200, 202):
        p = problem(kind, seed)
        with np.errstate(all="ignore"):
            if not in_form(p):
                p = Problem(p.start.refit(p.start.collect(p.x, p.weight)), p.x, p.weight, p.prior)
            report = fit_quasi_newton(p.start, p.data, p.prior, StoppingRule(60, 1e-8))
            steps = iterate(p.start, p.data, prior=report.prior, engine=Serial())
            plain = [next(steps) for _ in range(12)][-1]
        slack = 1e-9 * max(abs(report.objective), 1.0)
        assert (np.diff(report.trace) >= -slack).all()
        assert report.objective >= plain.objective - slack
        assert all(np.isfinite(a).all() for a in arrays_of(report.model.model))
        fixed_stay(p, report.model.model)

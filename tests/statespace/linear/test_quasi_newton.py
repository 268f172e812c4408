"""BFGS: number of passes, and that an interrupted or stopped fit loses nothing."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DataError, LinearGaussian, Ragged, StoppingRule
from likely.core import Checkpoint
from likely.core.em_loop import INTERRUPTED
from likely.statespace import ConstrainedLinearGaussian
from likely.statespace.linear import quasi_newton
from likely.statespace.linear.quasi_newton import EM_PASSES, fit_quasi_newton
from tests.reference.make_linear_em import START


class Cut(Exception):
    """The machine went off."""


def learner(**other):
    return ConstrainedLinearGaussian.of(
        LinearGaussian(**{**START, **other}), ["transition", "process_covariance", "observation_covariance"]
    )


def data(seed=0):
    rng = np.random.default_rng(seed)
    x = LinearGaussian(**START).sample(6, rng, rng.integers(20, 40, 6))
    return Ragged(np.where(rng.random(x.values.shape) < 0.1, np.nan, x.values), x.offsets)


def stopping(monkeypatch, after, error):
    """Every E-step of BFGS after so many raises the error."""
    looks, plain = [0], quasi_newton._collect

    def look(*args, **more):
        looks[0] += 1
        if looks[0] > after:
            raise error
        return plain(*args, **more)

    monkeypatch.setattr(quasi_newton, "_collect", look)
    return looks


@pytest.mark.parametrize("most", [1, 5, 10, 12, 13, 14, 15, 17, 20, 25, 40])
def test_no_more_passes_are_made_than_asked_for(most, monkeypatch):
    looks, plain = [0], LinearGaussian.collect

    def collect(self, *args, **more):
        looks[0] += 1
        return plain(self, *args, **more)

    monkeypatch.setattr(LinearGaussian, "collect", collect)
    report = fit_quasi_newton(learner(), data(), stop=StoppingRule(most, 1e-11))
    assert looks[0] <= most + 1 and report.iterations <= most
    assert (np.diff(report.trace) >= -1e-9).all()
    if most < EM_PASSES + 4:
        assert not report.converged and report.iterations == most


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_climb_that_is_cut_off_goes_on_where_it_was(tmp_path, monkeypatch, after):
    y, path = data(), tmp_path / "a.likely"
    whole = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9))
    with monkeypatch.context() as patch, pytest.raises(Cut):
        stopping(patch, after, Cut())
        fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9), checkpoint=Checkpoint(path))
    kept = Checkpoint(path).load()
    assert len(kept.trace) > EM_PASSES + 1 and kept.trace[-1] > whole.trace[EM_PASSES] and not kept.converged
    looks = stopping(monkeypatch, 10**9, None)
    again = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9), checkpoint=Checkpoint(path))
    assert again.converged and again.objective == pytest.approx(whole.objective, abs=1e-5)
    assert again.trace[: len(kept.trace) - 1] == kept.trace.tolist()[:-1] and (np.diff(again.trace) >= -1e-9).all()
    assert looks[0] > 0 and again.iterations <= 200


@pytest.mark.slow
def test_cut_off_in_the_first_passes_it_comes_to_the_same_bits(tmp_path):
    y, path = data(), tmp_path / "a.likely"
    whole = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9))

    class Failing(Checkpoint):
        def save(self, progress):
            super().save(progress)
            if self.passes == 6:
                raise Cut

    with pytest.raises(Cut):
        fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9), checkpoint=Failing(path))
    again = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9), checkpoint=Checkpoint(path))
    assert again.trace == whole.trace and np.array_equal(
        again.model.model.process_covariance, whole.model.model.process_covariance
    )


def test_a_finished_climb_is_found_again_and_other_data_are_refused(tmp_path, monkeypatch):
    y, path = data(), tmp_path / "a.likely"
    whole = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9), checkpoint=Checkpoint(path))
    looks = stopping(monkeypatch, 10**9, None)
    again = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9), checkpoint=Checkpoint(path))
    assert again.trace == whole.trace and again.converged and again.reason == whole.reason and looks[0] == 0
    assert np.array_equal(again.model.model.process_covariance, whole.model.model.process_covariance)
    with pytest.raises(DataError, match="same data"):
        fit_quasi_newton(learner(), data(1), stop=StoppingRule(200, 1e-9), checkpoint=Checkpoint(path))


@pytest.mark.parametrize("after", [1, 5])
def test_an_interrupt_returns_the_best_so_far(monkeypatch, after):
    y = data()
    stopping(monkeypatch, after, KeyboardInterrupt())
    report = fit_quasi_newton(learner(), y, stop=StoppingRule(200, 1e-9))
    assert not report.converged and report.reason == INTERRUPTED
    assert report.objective == pytest.approx(report.model.log_prob(y).sum(), rel=1e-10)
    assert report.objective > report.trace[EM_PASSES] - 1e-12

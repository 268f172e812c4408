"""The rule for compiled loops: what it looks at, and that both ways agree."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import likely as lk
from likely.core import job_size
from likely.core.blocks import Blocks, size
from likely.core.engine import Threads
from likely.core.job_size import entries, is_large, is_short, is_small, job
from likely.numerics.compile import CompiledFunction
from likely.statespace.linear import kalman_filter
from likely.statespace.linear.linear_em import ConstrainedLinearGaussian
from likely.statespace.linear.quasi_newton import fit_quasi_newton
from likely.statespace.linear.short_sequences import are_short


def test_a_job_is_small_large_or_neither():
    for work, fits, small, large in (
        (1.0, True, True, False),
        (1.0, False, False, False),
        (math.inf, True, False, True),
    ):
        with job(work, fits):
            assert (is_small(), is_large()) == (small, large)
    assert not is_small() and not is_large()


def test_a_job_within_another_is_a_part_of_it():
    with job(math.inf):
        with job(1.0, visits=1.0):
            assert is_large() and not is_small()
        assert is_large()
    with pytest.raises(ZeroDivisionError), job(math.inf):
        1 / 0  # noqa: B018
    assert not is_large()


def test_a_sequence_is_short_by_itself_and_in_a_job_with_all_others():
    assert is_short([1, 10**9], 10.0, 20.0).tolist() == [True, False]
    with job(1.0, visits=1.0):
        assert is_short([1, 10**9], 10.0, 20.0).all()
    with job(math.inf, visits=1e9):
        assert not is_short([1, 10**9], 10.0, 20.0).any()
    with job(1.0, visits=job_size.SMALL / 15.0):
        assert is_short(1, 20.0, 10.0) and not is_short(1, 10.0, 20.0)  # in a fit by the work of a visit


def test_threads_of_the_engine_see_the_job():
    blocks = Blocks.of(np.zeros((100_000, 1)), rows=1000, blocks=1)
    with job(1.0, visits=1.0):
        assert Threads(2).total(lambda b: float(is_small()), blocks) == 100.0
        with ThreadPoolExecutor(1) as pool:
            assert not pool.submit(is_small).result()  # a thread of somebody else does not


def test_entries_are_those_of_all_arrays():
    model = lk.Mixture([0.5, 0.5], lk.Gaussian(np.zeros((2, 3)), np.stack([np.eye(3)] * 2)))
    assert entries(model) >= 2 + 2 * 3 + 2 * 9


def test_the_size_of_data_is_in_rows_or_frames():
    assert size(Blocks.of(np.zeros((9000, 2)))) == 9000
    assert size(Blocks.of([np.zeros((3, 1)), np.zeros((4, 1))], sequences=True)) == 7
    assert size(Blocks.read([lambda: [Blocks.of(np.zeros((2, 1))).first]])) == math.inf


def jobs():
    """Fits whose loops run in plain Python or compiled, with the numbers that must agree."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2)) + 3 * (np.arange(60) % 2)[:, None]
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    emission = lk.Gaussian([[0.0, 0.0], [3.0, 3.0]], [np.eye(2)] * 2)
    hmm = lk.HMM(initial=[0.5, 0.5], transition=[[0.8, 0.2], [0.2, 0.8]], emission=emission)
    one = np.eye(1)
    level = lk.LinearGaussian(transition=one, process_covariance=one, observation=one, observation_covariance=one)
    return {
        "missing values": (lk.Gaussian(np.zeros(2), np.eye(2)), holes),
        "mixture": (lk.Mixture([0.5, 0.5], emission), holes),
        "HMM": (hmm, [x[:40], x[40:]]),
        "linear": (level, [x[:25, :1], x[30:, :1]]),
    }


@pytest.mark.parametrize("name", sorted(jobs()))
def test_small_fits_equal_compiled_ones(monkeypatch, name):
    """The same fit, small by the rule, and with a rule under which nothing is small."""
    model, data = jobs()[name]
    stop = lk.StoppingRule(max_iter=4, tol=0.0)
    called = set()
    run = CompiledFunction.__call__
    monkeypatch.setattr(CompiledFunction, "__call__", lambda self, *a: (called.add(is_small()), run(self, *a))[1])
    small = lk.fit(model, data, stop=stop)
    assert False not in called
    monkeypatch.setattr(job_size, "SMALL", -1.0)
    called.clear()
    compiled = lk.fit(model, data, stop=stop)
    assert True not in called
    np.testing.assert_allclose(small.trace, compiled.trace, rtol=1e-12)
    for got, want in zip(arrays(small.model), arrays(compiled.model), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("small", [True, False])
def test_a_quasi_newton_fit_is_one_job(monkeypatch, small):
    """All of its passes take the way of the whole, also where each sequence by itself is short."""
    seen = []
    monkeypatch.setattr(kalman_filter, "are_short", lambda *a: seen.append(are_short(*a)) or seen[-1])
    monkeypatch.setattr(job_size, "SMALL", math.inf if small else -1.0)
    level = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=2.0)
    y = np.random.default_rng(0).standard_normal((3, 12)).cumsum(axis=1)
    fit_quasi_newton(ConstrainedLinearGaussian.of(level, ["process_covariance"]), lk.Ragged.of(list(y[:, :, None])))
    assert seen and {bool(flag) for flags in seen for flag in flags} == {small}


def arrays(value):
    """All arrays of a model."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple):
        return [a for v in value for a in arrays(v)]
    return [a for name in getattr(value, "__dataclass_fields__", ()) for a in arrays(getattr(value, name))]

"""A time index with holes or uneven steps is told of wherever sequences enter; an even one is not."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import likely as lk
from likely import FitWarning, Ragged

N = 40
VALUES = np.random.default_rng(0).normal(size=N).cumsum()
DAYS = pd.date_range("2020-01-01", periods=N)

EVEN = {
    "days": DAYS,
    "days, no frequency noted": pd.DatetimeIndex(DAYS.to_numpy()),
    "month starts": pd.DatetimeIndex(pd.date_range("2020-01-01", periods=N, freq="MS").to_numpy()),
    "business days": pd.DatetimeIndex(pd.date_range("2020-01-01", periods=N, freq="B").to_numpy()),
    "clock change": pd.date_range("2020-03-20", periods=N, tz="Europe/Berlin"),
    "a clock that jitters": DAYS + pd.to_timedelta(np.random.default_rng(1).normal(size=N), unit="min"),
    "periods": pd.period_range("2020-01", periods=N, freq="M"),
    "durations": pd.to_timedelta(np.arange(N), unit="s"),
    "numbers": pd.RangeIndex(N),
    "numbers with holes": pd.Index(np.arange(N) ** 2),
}
UNEVEN = {
    "a hole": DAYS.append(pd.DatetimeIndex(["2020-12-31"]))[1:],
    "random times": DAYS[0] + pd.to_timedelta(np.random.default_rng(2).exponential(1.0, N).cumsum(), unit="D"),
    "backwards": DAYS[::-1],
    "twice the same": DAYS[:-1].insert(3, DAYS[3]),
    "missing times": DAYS[:-1].insert(3, pd.NaT),
    "a month left out": pd.period_range("2020-01", periods=N + 1, freq="M").delete(5),
}


def notes(do):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        do()
    return [str(w.message) for w in heard if "time index" in str(w.message)]


@pytest.mark.parametrize("name", EVEN)
def test_even_steps_are_quiet(name):
    series = pd.Series(VALUES, EVEN[name])
    assert not notes(lambda: Ragged.of([series])) and not notes(lambda: Ragged.of(series.to_frame("x")))


@pytest.mark.parametrize("name", UNEVEN)
def test_uneven_steps_are_reported_once_with_the_way_out(name):
    series = pd.Series(VALUES, UNEVEN[name])
    for entry in ([series], series, series.to_frame("x"), [pd.Series(VALUES, DAYS), series.to_frame("x")["x"]]):
        found = notes(lambda entry=entry: Ragged.of(entry))
        assert len(found) == 1 and "asfreq" in found[0] and "LinearSDE" in found[0]


@pytest.mark.slow
def test_every_entry_of_sequences_tells():
    """A local level of a series without its missing days gave another likelihood in silence."""
    holed = pd.Series(VALUES, DAYS).where(lambda s: (s.index.day < 5) | (s.index.day > 9)).dropna()
    level = lk.LinearGaussian.local_level(0.1, 1.0)
    with pytest.warns(FitWarning, match="a step of 6 days 00:00:00 after 2020-01-04"):
        level.log_prob([holed])
    chain = lk.HMM([1.0], [[1.0]], lk.Gaussian([[0.0]], 1.0))
    table = pd.DataFrame({"x": holed, "y": -holed})
    for do in (lambda: level.log_prob(holed), lambda: level.smooth(holed), lambda: level.filter([holed]),
               lambda: chain.log_prob(holed), lambda: chain.posterior([holed]), lambda: lk.fit(chain, [holed, holed]),
               lambda: lk.HMMDensity(n_states=1).fit(table), lambda: lk.HMMDensity(n_states=1).fit([table]),
               lambda: lk.FaultMonitor().fit(table)):  # fmt: skip
        assert len(notes(do)) == 1


def test_lengths_cut_the_index_too():
    two = pd.concat([pd.Series(VALUES, DAYS)] * 2).to_frame("x")
    assert not notes(lambda: Ragged.of(two, [N, N])) and notes(lambda: Ragged.of(two))
    found = notes(lambda: Ragged.of(pd.concat([two[:N], two[N:].drop(DAYS[5])]), [N, N - 1]))
    assert len(found) == 1 and "of sequence 1 is uneven" in found[0]


def test_a_model_of_any_times_is_not_told():
    holed = pd.Series(VALUES, DAYS).drop(DAYS[5:9])

    model = lk.LinearSDE.matern(1.5, length_scale=2.0, variance=1.0, observation_variance=0.1)
    assert not notes(lambda: model.log_prob(holed, np.asarray((holed.index - DAYS[0]).days, dtype=float)))


def test_a_stream_with_an_uneven_index_is_told():
    """`filter` said so; `lk.follow` of the same series did not."""
    holed, level = pd.Series(VALUES, DAYS).drop(DAYS[4:7]), lk.LinearGaussian.local_level(1.0, 1.0)
    for stream in (holed, holed.to_frame("x")):
        (found,) = notes(lambda stream=stream: list(lk.follow(level, stream)))
        assert found.startswith("follow: the time index of the stream is uneven")
    assert not notes(lambda: list(lk.follow(level, pd.Series(VALUES, DAYS))))
    learner = lk.GaussianDensity().fit(VALUES[:, None])  # the order of rows is nothing to it
    assert not notes(lambda: list(lk.follow(learner, holed.to_frame("x"))))
    timed = lk.LinearSDE.matern(1.5, length_scale=2.0, variance=1.0, observation_variance=0.1)
    times = np.asarray((holed.index - DAYS[0]).days, dtype=float)
    assert not notes(lambda: list(lk.follow(timed, holed, inputs=times)))

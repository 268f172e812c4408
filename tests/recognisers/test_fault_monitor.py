"""The monitor: false alarms as stated, delays beside the optimum, gaps, constants, costs, restarts, a real plant."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely as lk
from likely.core.notes import unheard
from likely.errors import DataError, DomainError, ShapeError
from likely.recognisers.fault_monitor import FaultMonitor, allowed_share, exceeding, quantile

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def plant(rng: np.random.Generator, T: int, p: int = 6) -> np.ndarray:
    """Sensors that follow two slow motions, in some noise."""
    mix = np.random.default_rng(99).normal(size=(2, p))
    z = np.zeros((T + 50, 2))
    for t in range(1, len(z)):
        z[t] = 0.8 * z[t - 1] + 0.6 * rng.normal(size=2)
    return z[50:] @ mix + 0.5 * rng.normal(size=(T, p)) + np.arange(p)


def stated(rate: float, seeds: range, frames: int) -> float:
    """The share of normal frames in alarm, on average over plants, where `rate` was asked for."""
    shares = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        monitor = FaultMonitor(false_alarm_rate=rate).fit(plant(rng, 1500))
        shares.append(monitor.watch(plant(rng, frames)).alarm.mean())
    return float(np.mean(shares))


def test_false_alarms_come_as_often_as_stated() -> None:
    """Within a factor of 2.5: a threshold from 1,500 frames is not exact."""
    assert 0.02 < stated(0.05, range(3), 1000) < 0.125


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_false_alarms_over_many_plants(rate: float) -> None:
    """Within a factor of 2."""
    assert rate / 2 < stated(rate, range(12), 3000) < 2 * rate


def test_rare_false_alarms_by_the_tail() -> None:
    rng = np.random.default_rng(4)
    monitor = FaultMonitor(false_alarm_rate=0.001).fit(plant(rng, 1500))
    assert monitor.watch(plant(rng, 2000)).alarm.mean() < 0.005


def test_the_delay_is_near_that_of_the_best_procedure() -> None:
    """A shift of 1.5 standard deviations in each of 2 white sensors, unknown to the monitor; Shiryaev's knows it."""
    rng, shift = np.random.default_rng(5), np.array([1.5, 1.5])
    monitor = FaultMonitor(false_alarm_rate=0.002).fit(rng.normal(size=(2000, 2)))
    ratio = lambda x: x @ shift - shift @ shift / 2  # noqa: E731
    limit = shiryaev_limit(ratio(rng.normal(size=(20_000, 2))), 0.002)
    ours, best = [], []
    for _ in range(40):
        x = rng.normal(size=(60, 2)) + np.where(np.arange(60) < 20, 0.0, 1.0)[:, None] * shift
        ours.append(delay(monitor.watch(x).alarm[20:]))
        best.append(delay(shiryaev(ratio(x))[20:] > limit))
    assert np.mean(best) < np.mean(ours) < 2 * np.mean(best) + 2.0


def delay(alarm: np.ndarray) -> int:
    return int(np.argmax(alarm)) if alarm.any() else len(alarm)


def shiryaev(z: np.ndarray, hazard: float = 1e-3, repair: float = 1e-2) -> np.ndarray:
    """Log-odds of a change by the known law, with the same hazard and repair."""
    out, fault = np.empty(len(z)), hazard
    for t, one in enumerate(z):
        odds = fault / (1 - fault) * np.exp(one)
        out[t] = np.log(odds)
        fault = odds / (1 + odds)
        fault = fault * (1 - repair) + (1 - fault) * hazard
    return out


def shiryaev_limit(z: np.ndarray, rate: float) -> float:
    return float(np.quantile(shiryaev(z), 1 - rate))


def test_the_faulty_sensor_speaks() -> None:
    rng = np.random.default_rng(6)
    monitor = FaultMonitor().fit(plant(rng, 1000))
    for sensor in range(6):
        x = plant(rng, 80)
        x[40:, sensor] += 3.0
        seen = monitor.watch(x)
        assert seen.alarm[45:].mean() > 0.8
        assert np.bincount(seen.contributions[45:].argmax(axis=1), minlength=6).argmax() == sensor


def test_surprise_is_in_bits_and_zero_on_average() -> None:
    rng = np.random.default_rng(7)
    monitor = FaultMonitor().fit(plant(rng, 2000))
    x = plant(rng, 1000)
    assert abs(monitor.watch(x).surprise.mean()) < 0.6
    x[:, 2] += 4.0
    assert monitor.watch(x).surprise.mean() > 2.0


def test_costs_move_the_alarm() -> None:
    rng = np.random.default_rng(8)
    x, stream = plant(rng, 800), plant(rng, 300)
    stream[150:, 1] += 1.5
    found = {}
    for ratio in (0.1, 1.0, 100.0):
        monitor = FaultMonitor(cost_false=ratio, cost_missed=1.0).fit(x)
        seen = monitor.watch(stream)
        np.testing.assert_array_equal(seen.alarm, seen.fault * 1.0 > (1 - seen.fault) * ratio)
        found[ratio] = seen.alarm.sum(), monitor.false_alarm_rate_
    assert found[0.1][0] >= found[1.0][0] >= found[100.0][0]
    assert found[0.1][1] >= found[1.0][1] >= found[100.0][1]
    assert found[0.1][0] > found[100.0][0]


def test_missing_sensors() -> None:
    rng = np.random.default_rng(9)
    x, stream = plant(rng, 1000), plant(rng, 400)
    holes = x.copy()
    holes[rng.random(x.shape) < 0.05] = np.nan
    monitor = FaultMonitor().fit(holes)
    stream[rng.random(stream.shape) < 0.2] = np.nan
    stream[100:110] = np.nan  # a line that was cut
    seen = monitor.watch(stream)
    assert np.isfinite(seen.log_odds).all() and np.isfinite(seen.contributions).all()
    assert seen.alarm.mean() < 0.05
    assert not seen.alarm[101:110].any() or seen.alarm[100]
    stream[200:, 3] += 6.0
    assert monitor.watch(stream).alarm[210:].mean() > 0.7


def test_gaps_count_as_the_model_says() -> None:
    """log p of frames with gaps, while no fault counts at all, is that of the linear-Gaussian model."""
    rng = np.random.default_rng(10)
    monitor = FaultMonitor(hazard=1e-12).fit(plant(rng, 500))
    x = plant(rng, 40)
    x[rng.random(x.shape) < 0.3] = np.nan
    m = monitor.model_.replace(shares=np.zeros(6))
    units = np.where(np.isnan(x), 0.0, np.log(m.scale)).sum()
    linear = m.normal.linear.log_prob((x - m.mean) / m.scale - m.normal.mean)[0] - units
    np.testing.assert_allclose(m.run(x).log_prob.sum(), linear, rtol=1e-8)


def test_a_constant_sensor_is_an_alarm_when_it_moves() -> None:
    rng = np.random.default_rng(11)
    x = np.hstack([plant(rng, 600), np.full((600, 1), 7.0)])
    with unheard():
        monitor = FaultMonitor().fit(x)
    stream = np.hstack([plant(rng, 60), np.full((60, 1), 7.0)])
    quiet = monitor.watch(stream).alarm.sum()
    stream[30:, 6] = 7.5
    seen = monitor.watch(stream)
    assert quiet <= 3 and seen.alarm[31:].all() and seen.contributions[40].argmax() == 6
    assert "Never moved: sensor 6" in monitor.summary()
    with pytest.raises(DataError, match="some sensor must move"):
        FaultMonitor().fit(np.ones((100, 3)))


def test_known_faults_are_told_apart_and_unknown_ones_are_said_to_be() -> None:
    rng = np.random.default_rng(12)

    def faulty(kind: str, T: int) -> np.ndarray:
        x = plant(rng, T)
        if kind == "bias":
            x[:, 0] += 3.0
        if kind == "noise":
            x[:, 4] += 3.0 * rng.normal(size=T)
        if kind == "new":
            x[:, 2] += np.where(np.arange(T) % 2, 5.0, -5.0)
        return x

    stretches, labels = [plant(rng, 1000), faulty("bias", 300), faulty("noise", 300)], ["normal", "bias", "noise"]
    monitor = FaultMonitor().fit(stretches, labels)
    assert monitor.classes_.tolist() == ["bias", "noise"]
    for column, kind in enumerate(["bias", "noise", "new"]):
        stream = np.vstack([plant(rng, 50), faulty(kind, 60)])
        found = monitor.diagnose(stream)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert np.bincount(found[65:].argmax(axis=1), minlength=3).argmax() == column
        assert monitor.watch(stream).alarm[60:].mean() > 0.7
    rows = np.repeat(labels, [len(s) for s in stretches])
    again = FaultMonitor().fit(np.vstack(stretches), rows)
    np.testing.assert_allclose(again.model_.threshold, monitor.model_.threshold)


def test_live_equals_batch_and_a_restart_has_the_same_bits(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(13)
    monitor = FaultMonitor().fit([plant(rng, 500), plant(rng, 200) + 2.0], ["normal", "shift"])
    x = plant(rng, 60)
    x[10, 2] = np.nan
    x[40:] += 2.0
    seen, live = monitor.watch(x), list(lk.follow(monitor, x))
    np.testing.assert_array_equal(seen.log_odds, [b.log_odds for b, _ in live])
    np.testing.assert_array_equal(seen.log_prob, [news for _, news in live])
    for cut in (10, 45):  # in the middle of a gap, and of a fault
        lk.save(live[cut][0], tmp_path / "belief")
        monitor.save(tmp_path / "monitor")
        again = lk.follow(lk.load(tmp_path / "monitor"), x[cut + 1 :], lk.load(tmp_path / "belief"))
        np.testing.assert_array_equal(seen.log_odds[cut + 1 :], [b.log_odds for b, _ in again])
    speaking = monitor.speaking(live[-1][0], top=3)
    assert len(speaking) == 3 and speaking[0][1] >= speaking[1][1]


def test_a_frame_that_never_came_is_one_of_gaps() -> None:
    rng = np.random.default_rng(14)
    m, x = FaultMonitor().fit(plant(rng, 300)).model_, plant(rng, 4)
    belief = m.initial()
    for row in x[:2]:
        belief, _ = m.update(belief if belief.time == 0 else m.predict(belief), row)
    skipped = m.predict(m.predict(belief))
    told, _ = m.update(m.predict(belief), np.full(6, np.nan))
    np.testing.assert_array_equal(skipped.log_weights, m.predict(told).log_weights)


def test_weights_are_copies() -> None:
    rng = np.random.default_rng(15)
    a, b = plant(rng, 200), plant(rng, 150)
    one = FaultMonitor().fit([a, b], sample_weight=[2.0, 1.0]).model_
    two = FaultMonitor().fit([a, a, b]).model_
    np.testing.assert_allclose(one.normal.moves, two.normal.moves, atol=1e-9)
    np.testing.assert_allclose(one.shares, two.shares, atol=1e-9)
    np.testing.assert_allclose(one.threshold, two.threshold)
    np.testing.assert_allclose(one.mean, two.mean)


def test_shares_of_evidence() -> None:
    rng = np.random.default_rng(16)
    z = rng.normal(-0.5, 1.0, 20_000)  # a true log-likelihood ratio of a shift by 1
    assert allowed_share([z], np.ones(1)) > 0.85
    assert 0.4 < allowed_share([2 * z], np.ones(1)) < 0.6
    assert allowed_share([z + 1.0], np.ones(1)) == 0.0


def test_quantiles_from_tails() -> None:
    x = np.random.default_rng(17).exponential(size=2000)
    assert abs(quantile(x, np.ones(2000), 0.05) - np.log(20)) < 0.3
    assert abs(quantile(x, np.ones(2000), 1e-4) - np.log(1e4)) < 1.5
    assert 0.3e-4 < exceeding(x, np.ones(2000), np.log(1e4)) < 3e-4


def test_what_cannot_be_is_refused() -> None:
    rng = np.random.default_rng(18)
    x = plant(rng, 200)
    with pytest.raises(NotFittedError):
        FaultMonitor().watch(x)
    monitor = FaultMonitor().fit(x)
    with pytest.raises(ShapeError):
        monitor.watch(x[:, :4])
    with pytest.raises(ShapeError, match="6 sensors"):
        lk.step(monitor, None, np.zeros(5))
    with pytest.raises(DataError, match="finite"):
        lk.step(monitor, None, np.full(6, np.inf))
    with pytest.raises(DataError, match="row 3, column 2"):
        bad = x.copy()
        bad[3, 2] = np.inf
        monitor.watch(bad)
    with pytest.raises(DataError, match="at least 20"):
        FaultMonitor().fit(x[:10])
    with pytest.raises(DataError, match="normal operation"):
        FaultMonitor(normal=0).fit([x], [1])
    with pytest.raises(ShapeError, match="one label"):
        FaultMonitor().fit([x, x], ["normal"])
    with pytest.raises(DataError, match="sensor 1 never was"):
        hole = x.copy()
        hole[:, 1] = np.nan
        FaultMonitor().fit(hole)
    for settings in (
        {"hazard": 0.0},
        {"false_alarm_rate": 2},
        {"cost_false": 1.0},
        {"cost_false": -1, "cost_missed": 1},
    ):
        with pytest.raises(DomainError):
            FaultMonitor(**settings).fit(x)
    assert clone(monitor).get_params()["hazard"] == 1e-3


def test_the_tennessee_eastman_plant() -> None:
    path = DATA / "switching" / "tennessee_eastman.npz"
    if not path.exists():
        pytest.skip("no plant")
    z = np.load(path)
    monitor = FaultMonitor(false_alarm_rate=0.01).fit(z["train00"])
    assert monitor.watch(z["test00"]).alarm.mean() < 0.03
    for fault, least in ((1, 0.98), (4, 0.98), (5, 0.95), (6, 0.98), (14, 0.95)):
        seen = monitor.watch(z[f"test{fault:02d}"])
        assert seen.alarm[160:].mean() > least
        assert seen.alarm[:160].mean() < 0.05

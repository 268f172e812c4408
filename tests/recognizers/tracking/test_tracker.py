"""Tracker: the Kalman filter without clutter, simulated targets in clutter, 2-D and 3-D, real flights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.recognizers.tracking.tracker import Tracker

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data")


def flight(rng: np.random.Generator, T: int, dim: int = 2, side: float = 40.0, clutter: float = 6.0, lost: int = 10**9):
    """A target that is seen nine times of ten, until it is gone, among Poisson clutter in a box."""
    model = lk.LinearGaussian.constant_velocity(
        dim, 1.0, 0.02, 0.25, initial=(np.r_[np.zeros(dim), np.ones(dim) * 0.5], 0.1)
    )
    states, y = (np.asarray(part[0]) for part in model.simulate(1, rng, T))
    scans = []
    for t, z in enumerate(y):
        there = t < lost and rng.random() < 0.9
        scans.append(np.vstack([z[None][:there], rng.uniform(-side, side, (rng.poisson(clutter), dim))]))
    return states, scans, clutter / (2 * side) ** dim


def test_without_clutter_it_is_kalmans_filter_and_smoother() -> None:
    model = lk.LinearGaussian.constant_velocity(2, 0.5, 0.3, 0.7)
    y = np.array(model.sample(1, np.random.default_rng(0), 40)[0])
    y[[5, 6]] = np.nan
    tracker = Tracker(dim=2, dt=0.5, spectral_density=0.3, observation_variance=0.7)
    track, smooth = tracker.run(y), tracker.smooth(y)
    known, later = model.filter(y), model.smooth(y)
    np.testing.assert_allclose(track.mean[2:], known.mean[2:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(track.covariance[2:], known.covariance[2:], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(track.log_prob.sum(), known.log_prob, rtol=1e-10)
    np.testing.assert_allclose(smooth.mean, later.mean, atol=1e-9)
    np.testing.assert_allclose(track.surprisal, -track.log_prob / np.log(2))
    assert track.confirmed.all() and (track.exists == 1).all()


def test_irregular_times_without_clutter() -> None:
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.exponential(1.0, 30))
    model = lk.LinearSDE.constant_velocity(2, 0.3, 0.7)
    y = np.array(model.sample(1, rng, times)[0])
    found = Tracker(spectral_density=0.3, observation_variance=0.7).run(y, times)
    known = model.filter(y, times)
    np.testing.assert_allclose(found.mean[2:], known.mean[2:], atol=1e-8)
    np.testing.assert_allclose(found.log_prob.sum(), known.log_prob, rtol=1e-9)
    smooth = Tracker(spectral_density=0.3, observation_variance=0.7).smooth(y, times)
    np.testing.assert_allclose(smooth.mean, model.smooth(y, times).mean, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 3])
def test_a_target_in_clutter_is_kept(dim: int) -> None:
    kept, errors, naive = 0, [], []
    for seed in range(6):
        states, scans, density = flight(np.random.default_rng(seed), 50, dim)
        tracker = Tracker(
            dim=dim,
            spectral_density=0.02,
            observation_variance=0.25,
            clutter_density=density,
            detection_probability=0.9,
            speed=1.0,
        )
        track = tracker.run(scans)
        off = np.linalg.norm(track.mean[:, :dim] - states[:, :dim], axis=1)
        kept += bool(track.confirmed[-1] and off[-1] < 3)
        errors.append(np.nanmedian(off[10:]))
        naive.append(np.sqrt(0.25 * dim))
    assert kept >= 5
    assert np.median(errors) < np.median(naive)  # better than a sensor without clutter


@pytest.mark.slow
def test_a_target_that_is_gone_is_lost() -> None:
    gone, there = [], []
    for seed in range(5):
        _, scans, density = flight(np.random.default_rng(100 + seed), 60, lost=30)
        track = Tracker(
            spectral_density=0.02,
            observation_variance=0.25,
            clutter_density=density,
            detection_probability=0.9,
            speed=1.0,
        ).run(scans)
        there.append(track.confirmed[15:30].mean())
        gone.append(not track.confirmed[40:].any())
    assert sum(gone) >= 4
    assert np.mean(there) > 0.9


@pytest.mark.slow
def test_clutter_alone_is_not_followed() -> None:
    rng, false = np.random.default_rng(5), 0
    for _ in range(5):
        scans = [rng.uniform(-40, 40, (rng.poisson(6), 2)) for _ in range(40)]
        track = Tracker(
            spectral_density=0.02,
            observation_variance=0.25,
            clutter_density=6 / 6400,
            detection_probability=0.9,
            speed=1.0,
        ).run(scans)
        false += int(track.confirmed.sum())
    assert false <= 6  # frames of 200


@pytest.mark.slow
def test_smoothing_in_clutter_is_better() -> None:
    filtered, smoothed = [], []
    for seed in range(5):
        states, scans, density = flight(np.random.default_rng(seed), 50)
        tracker = Tracker(
            spectral_density=0.02,
            observation_variance=0.25,
            clutter_density=density,
            detection_probability=0.9,
            speed=1.0,
        )
        for found, errors in ((tracker.run(scans), filtered), (tracker.smooth(scans), smoothed)):
            errors.append(np.nanmedian(np.linalg.norm(found.mean[:, :2] - states[:, :2], axis=1)))
    assert np.mean(smoothed) < 0.9 * np.mean(filtered)


def test_smoothing_almost_without_clutter_is_the_smoother() -> None:
    model = lk.LinearGaussian.constant_velocity(2, 1.0, 0.1, 0.5, initial=([0, 0, 1, 1], 1.0))
    y = np.array(model.sample(1, np.random.default_rng(6), 20)[0])
    found = Tracker(
        model,
        clutter_density=1e-12,
        detection_probability=1.0,
        gate=1.0,
        initial_existence=1.0,
        survival_probability=1.0,
    ).smooth(y)
    known = model.smooth(y)
    np.testing.assert_allclose(found.mean, known.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, known.covariance, atol=1e-6)


def test_empty_scans_and_scans_that_never_were() -> None:
    tracker = Tracker(
        spectral_density=0.02, observation_variance=0.25, clutter_density=0.001, detection_probability=0.9, speed=1.0
    )
    track = tracker.run([np.empty((0, 2))] * 5)
    assert (
        np.isnan(track.mean).all() and not track.exists.any() and track.describe().facts["with a confirmed track"] == 0
    )
    assert len(tracker.run([])) == 0
    line = [np.array([[t, t]], dtype=float) for t in range(12)]
    blind, empty = (tracker.run([*line, *[gap] * 4]) for gap in (None, []))
    assert blind.exists[-1] > 0.9 > empty.exists[-1]
    assert blind.confirmed[-1] and not empty.confirmed[-1] and empty.lost[0] in range(12, 16)


def test_associations_name_the_measurement() -> None:
    scans = [np.array([[9.0, -9.0], [t, t]]) for t in range(10)]
    track = Tracker(
        spectral_density=0.01, observation_variance=0.04, clutter_density=0.001, detection_probability=0.9, speed=2.0
    ).run(scans)
    assert track.association[-1].shape == (3,)
    assert track.association[-1][2] > 0.99 or track.association[-1][1] > 0.99


@pytest.mark.usefixtures("compiled_loops")
def test_live_equals_run_and_goes_on_from_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    _, scans, density = flight(np.random.default_rng(7), 20)
    tracker = Tracker(
        spectral_density=0.02, observation_variance=0.25, clutter_density=density, detection_probability=0.9, speed=1.0
    )
    track, live = tracker.run(scans), list(lk.follow(tracker, scans))
    np.testing.assert_array_equal(track.mean, [b.mean for b, _ in live])
    np.testing.assert_array_equal(track.log_prob, [news for _, news in live])
    lk.save(live[9][0], tmp_path / "belief")
    tracker.save(tmp_path / "tracker")
    again = list(lk.follow(lk.load(tmp_path / "tracker"), scans[10:], lk.load(tmp_path / "belief")))
    np.testing.assert_array_equal(track.mean[10:], [b.mean for b, _ in again])


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_learning_finds_the_noise() -> None:
    rng = np.random.default_rng(8)
    model = lk.LinearGaussian.constant_velocity(
        2, 0.5, np.diag([0.3, 1.2]), np.diag([0.5, 2.0]), initial=(np.zeros(4), 1.0)
    )
    tracks = model.sample(20, rng, 100)
    tracker = Tracker(dt=0.5).fit(tracks)
    np.testing.assert_allclose(tracker.spectral_density_, [0.3, 1.2], rtol=0.35)
    np.testing.assert_allclose(tracker.observation_variance_, [0.5, 2.0], rtol=0.15)
    np.testing.assert_allclose(tracker.motion.observation_covariance.diagonal(), tracker.observation_variance_)
    timed = Tracker().fit(Ragged.of(tracks)[:4], times=[0.5 * np.arange(100)] * 4)
    one = Tracker(dt=0.5).fit(Ragged.of(tracks)[:4])
    np.testing.assert_allclose(timed.observation_variance_, one.observation_variance_, rtol=0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_weights_are_copies() -> None:
    model = lk.LinearGaussian.constant_velocity(1, 1.0, 0.3, 0.5, initial=(np.zeros(2), 1.0))
    tracks = [np.array(x) for x in model.sample(3, np.random.default_rng(9), 30)]
    a = Tracker(dim=1).fit(tracks, sample_weight=[2.0, 1.0, 0.0])
    b = Tracker(dim=1).fit([tracks[0], tracks[0], tracks[1]])
    np.testing.assert_allclose(
        [a.spectral_density_, a.observation_variance_], [b.spectral_density_, b.observation_variance_], rtol=1e-2
    )


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match=r"Scan 1.*finite"):
        Tracker().run([[0.0, 0.0], [np.inf, 0.0]])
    with pytest.raises(ShapeError, match="Scan 0"):
        Tracker().run([np.zeros((1, 3))])
    with pytest.raises(DataError, match="one measurement at most"):
        Tracker().run([np.zeros((2, 2))])
    with pytest.raises(DomainError, match="speed"):
        Tracker(clutter_density=0.1).run([np.zeros((2, 2))])
    with pytest.raises(ShapeError, match="one for each"):
        Tracker().run(np.zeros((3, 2)), times=[0.0, 1.0])
    with pytest.raises(DomainError, match="continuous time"):
        Tracker(lk.LinearGaussian.constant_velocity(2)).run(np.zeros((2, 2)), times=[0.0, 1.0])
    with pytest.raises(DataError, match="needs times"):
        Tracker(lk.LinearSDE.constant_velocity(2)).run(np.zeros((2, 2)))
    with pytest.raises(DomainError, match="must be None"):
        Tracker(lk.LinearGaussian.constant_velocity(2)).fit(np.zeros((5, 2)))
    with pytest.raises(ShapeError, match="tracks must have shape"):
        Tracker(dim=3).fit(np.zeros((5, 2)))
    with pytest.raises(DataError, match="three consecutive measurements"):
        Tracker().fit(np.zeros((2, 2)))
    with pytest.raises(DataError, match="straight"):
        Tracker().fit(np.zeros((20, 2)))
    with pytest.raises(DataError, match="list of arrays"):
        Tracker().run("scans")


def test_data_frames_no_scans_and_a_measurement_beyond_all_bounds() -> None:
    pd = pytest.importorskip("pandas")
    y = np.cumsum(np.random.default_rng(10).normal(size=(20, 2)), axis=0)
    np.testing.assert_array_equal(Tracker().run(pd.DataFrame(y)).mean, Tracker().run(y).mean)
    assert Tracker().smooth([]).mean.shape == (0, 4)
    radar = Tracker(clutter_density=1e-3, detection_probability=0.9, speed=1.0)
    with np.errstate(all="raise"):
        track = radar.run([*[row[None] for row in y], np.array([[1e200, 1e200]])])
    assert track.association[-1][1] == 0.0 and np.isfinite(track.log_prob).all()


def test_settings_are_scikit_learns() -> None:
    tracker = clone(Tracker(clutter_density=0.1, speed=2.0))
    assert tracker.get_params()["clutter_density"] == 0.1


@pytest.mark.slow
def test_a_drone() -> None:
    path = DATA / "tracking" / "uav_gps.csv"
    if not path.exists():
        pytest.skip("no data: the drone is not here")
    t, lat, lon = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2, 3)).T
    meters = np.column_stack([(lon - lon[0]) * 111_320 * np.cos(np.radians(lat[0])), (lat - lat[0]) * 111_320])
    half = len(t) // 2
    tracker = Tracker().fit(meters[:half], times=t[:half])
    track = tracker.run(meters[half:], t[half:])
    assert np.isfinite(track.mean).all()
    assert np.linalg.norm(track.mean[5:, :2] - meters[half + 5 :], axis=1).mean() < 3.0

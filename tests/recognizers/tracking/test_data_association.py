"""Data association against enumeration of all associations, the Kalman filter, and simulated targets in clutter."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.recognizers.tracking.data_association import DataAssociation, collapsed
from likely.statespace.linear.state_belief import StateBelief
from likely.statespace.nonlinear.extended_kalman_filter import ExtendedKalmanFilter
from likely.statespace.nonlinear.state_space import StateSpace

START = ([0.0, 0.0, 1.0, 0.5], np.diag([4.0, 4.0, 1.0, 1.0]))


def motion(**others: object) -> lk.LinearGaussian:
    return lk.LinearGaussian.constant_velocity(2, 1.0, 0.1, 0.5, **{"initial": START, **others})


def kalman(
    m: np.ndarray, P: np.ndarray, z: np.ndarray, model: lk.LinearGaussian
) -> tuple[np.ndarray, np.ndarray, float]:
    """The textbook's update."""
    C, R = model.observation, model.observation_covariance
    S = C @ P @ C.T + R
    K = P @ C.T @ np.linalg.inv(S)
    return m + K @ (z - C @ m), P - K @ S @ K.T, multivariate_normal(C @ m, S).logpdf(z)


def enumerated(model: lk.LinearGaussian, scans: list[np.ndarray], clutter: float, detection: float) -> list[tuple]:
    """Every sequence of associations: log-probability with all scans, mean and covariance at the last."""
    out = []
    for way in product(*(range(len(z) + 1) for z in scans)):
        m, P, total = model.initial_mean, model.initial_covariance, 0.0
        for t, (a, z) in enumerate(zip(way, scans, strict=True)):
            if t:
                m, P = model.transition @ m, model.transition @ P @ model.transition.T + model.process_covariance
            if a == 0:
                total += np.log(1 - detection) + len(z) * np.log(clutter)
            else:
                m, P, news = kalman(m, P, z[a - 1], model)
                total += np.log(detection) + news + (len(z) - 1) * np.log(clutter)
        out.append((total, m, P))
    return out


def moments(ways: list[tuple]) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    logs = np.array([w[0] for w in ways])
    total = np.logaddexp.reduce(logs)
    share = np.exp(logs - total)
    mean = sum(s * w[1] for s, w in zip(share, ways, strict=True))
    cov = sum(s * (w[2] + np.outer(w[1] - mean, w[1] - mean)) for s, w in zip(share, ways, strict=True))
    return float(total), share, mean, cov


def scans_of(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [np.array([t + 0.3, 0.5 * t]) + rng.normal(scale=2.0, size=(n, 2)) for t in range(3)]


def test_one_scan_is_the_mixture_of_all_associations() -> None:
    model, z = motion(), scans_of(np.random.default_rng(0), 3)[0]
    radar = DataAssociation(model, 0.05, 0.8, gate=1.0, initial_existence=1.0, survival_probability=1.0, birth_odds=0.0)
    total, share, mean, cov = moments(enumerated(model, [z], 0.05, 0.8))
    way = radar.possible(model.initial_belief(), z)
    np.testing.assert_allclose(way.shares, share, rtol=1e-10)
    for state, (_, m, P) in zip(way.states, enumerated(model, [z], 0.05, 0.8), strict=True):
        np.testing.assert_allclose(state.mean, m, atol=1e-10)
        np.testing.assert_allclose(state.covariance, P, atol=1e-10)
    belief, news = radar.update(radar.initial_belief(), z)
    np.testing.assert_allclose(news, total, rtol=1e-12)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
    np.testing.assert_allclose(belief.covariance, cov, atol=1e-10)


def test_three_scans_come_near_to_the_exact_mixture() -> None:
    model, scans = motion(), scans_of(np.random.default_rng(1), 2)
    radar = DataAssociation(model, 0.02, 0.9, gate=1.0, initial_existence=1.0, survival_probability=1.0, birth_odds=0.0)
    total, _, mean, _ = moments(enumerated(model, scans, 0.02, 0.9))
    found = [news for _, news in lk.follow(radar, scans)]
    *_, (belief, _) = lk.follow(radar, scans)
    assert abs(sum(found) - total) < 0.5
    assert np.abs(belief.mean - mean).max() < 0.5 * np.sqrt(belief.covariance.diagonal().max())


def test_evidence_of_a_target_that_may_not_be_there() -> None:
    """p(scan) = (1 − r) λⁿ + r p(scan | there), written out; the posterior of existence by Bayes."""
    model, z = motion(), scans_of(np.random.default_rng(2), 2)[0]
    radar = DataAssociation(model, 0.05, 0.8, gate=1.0, initial_existence=0.3, birth_odds=0.0)
    there = np.exp(moments(enumerated(model, [z], 0.05, 0.8))[0])
    belief, news = radar.update(radar.initial_belief(), z)
    total = 0.7 * 0.05**2 + 0.3 * there
    np.testing.assert_allclose([news, belief.exists], [np.log(total), 0.3 * there / total], rtol=1e-10)


@pytest.mark.slow
def test_a_scan_has_probability_one() -> None:
    """Over Poisson clutter in a square, E[p(scan) / p(scan | clutter)] = 1, births and gate included."""
    model = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.1]],
        observation=[[1.0]],
        observation_covariance=[[0.2]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    rng, density = np.random.default_rng(3), 0.2
    radar = DataAssociation(model, density, 0.7, gate=0.9, initial_existence=0.4, birth_odds=0.05)
    first = radar.initial_belief()
    ratios = []
    for _ in range(1200):
        z = rng.uniform(-10, 10, size=(rng.poisson(20 * density), 1))
        ratios.append(np.exp(radar.update(first, z)[1] - len(z) * np.log(density)))
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios) / np.sqrt(len(ratios))


def test_without_clutter_it_is_kalmans_filter() -> None:
    for start in (START, None):
        model = motion(initial=start)
        y = np.array(model.sample(1, np.random.default_rng(4), 30)[0])
        y[[3, 9]] = np.nan
        y[12, 0] = np.nan
        pairs = zip(lk.follow(DataAssociation(model), y[:, None]), lk.follow(model, y), strict=True)
        for (ours, a), (theirs, b) in pairs:
            assert a == b
            np.testing.assert_array_equal(ours.mean, theirs.mean)
            np.testing.assert_array_equal(ours.covariance, theirs.covariance)
            assert ours.exists == 1


def test_missed_detections_without_clutter() -> None:
    radar = DataAssociation(motion(), detection_probability=0.6, survival_probability=0.9)
    belief, news = radar.update(radar.initial_belief(), np.empty((0, 2)))
    np.testing.assert_allclose(news, np.log(0.4))
    belief, news = radar.update(radar.predict(belief), [])
    np.testing.assert_allclose([news, belief.exists], [np.log(1 - 0.9 * 0.6), 0.9 * 0.4 / (1 - 0.9 * 0.6)])
    belief, news = radar.update(radar.predict(belief), [1.0, 1.0])
    assert belief.exists == 1


def test_collapsing_keeps_moments() -> None:
    rng = np.random.default_rng(5)
    states = [StateBelief(rng.normal(size=3), np.triu(rng.normal(size=(3, 3)))) for _ in range(4)]
    b = rng.dirichlet(np.ones(4))
    one = collapsed(b, states)
    mean = sum(w * s.mean for w, s in zip(b, states, strict=True))
    cov = sum(w * (s.covariance + np.outer(s.mean - mean, s.mean - mean)) for w, s in zip(b, states, strict=True))
    np.testing.assert_allclose(one.mean, mean)
    np.testing.assert_allclose(one.covariance, cov)


def test_angles_are_averaged_across_the_cut() -> None:
    one = collapsed([0.5, 0.5], [StateBelief([3.1], [[0.1]]), StateBelief([-3.1], [[0.1]])], [0])
    assert abs(abs(one.mean[0]) - np.pi) < 1e-9
    assert one.variance[0] < 0.02


def test_the_gate_holds_its_share() -> None:
    model = motion()
    radar, rng = DataAssociation(model, 0.01, gate=0.9, initial_existence=1.0), np.random.default_rng(6)
    mean, root = radar.expected(model.initial_belief())
    z = mean + rng.normal(size=(20_000, 2)) @ root
    assert abs(len(radar._inside(model.initial_belief(), z)) / 20_000 - 0.9) < 0.01


@pytest.mark.slow
def test_a_track_begins_is_confirmed_and_is_lost() -> None:
    rng = np.random.default_rng(7)
    radar = DataAssociation(motion(initial=None), clutter_density=0.002, detection_probability=0.9, speed=2.0)
    scans = []
    for t in range(60):
        z = rng.uniform(-30, 30, size=(rng.poisson(7), 2))
        if 10 <= t < 40 and rng.random() < 0.9:
            z = np.vstack([z, [t - 25.0, 0.5 * t - 10] + 0.7 * rng.normal(size=2)])
        scans.append(z)
    seen = [belief for belief, _ in lk.follow(radar, scans)]
    status = np.array([b.confirmed for b in seen])
    assert not status[:10].any() and status[18:40].all() and not status[46:].any()
    assert seen[0].status in ("none", "tentative") and seen[30].status == "confirmed"
    assert np.hypot(*(seen[39].mean[:2] - [14.0, 9.5])) < 2.5


@pytest.mark.slow
def test_errors_are_as_large_as_the_filter_says() -> None:
    """The squared error in units of the claimed covariance is χ² of 4 degrees (median 3.36), but for lost tracks."""
    model, rng, nees = motion(), np.random.default_rng(8), []
    radar = DataAssociation(model, 0.005, 0.9, initial_existence=1.0, survival_probability=1.0)
    for _ in range(80):
        states, y = model.simulate(1, rng, 25)
        scans = [
            np.vstack([z[None][: rng.random() < 0.9], z + rng.uniform(-10, 10, (rng.poisson(2.0), 2))]) for z in y[0]
        ]
        *_, (belief, _) = lk.follow(radar, scans)
        off = belief.mean - states[0][-1]
        nees.append(off @ np.linalg.solve(belief.covariance, off))
    assert 2.4 < np.median(nees) < 4.4
    assert np.mean(np.array(nees) > 18.5) < 0.08  # 0.001 of them, if none were ever lost


def test_ranges_and_bearings_through_an_extended_filter() -> None:
    rng = np.random.default_rng(9)

    def seen(x: np.ndarray) -> lk.Gaussian:
        return lk.Gaussian(np.stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])], axis=1), [0.04, 1e-4])

    A = np.eye(4) + np.eye(4, k=2)
    distribution = StateSpace(
        lk.Gaussian([-20.0, 1.0, 1.0, -0.1], np.diag([1.0, 1.0, 0.1, 0.1])),
        lambda x: lk.Gaussian(x @ A.T, np.diag([1e-4, 1e-4, 1e-4, 1e-4])), seen,
    )  # fmt: skip
    radar = DataAssociation(
        ExtendedKalmanFilter(distribution, wrap=[1]),
        clutter_density=0.05,
        detection_probability=0.95,
        initial_existence=1.0,
    )
    x, scans, truth = np.array([-20.0, 1.2, 1.0, -0.1]), [], []
    for _ in range(20):  # it crosses the cut of the angle at π
        z = np.array([np.hypot(*x[:2]), np.arctan2(x[1], x[0])]) + [0.2, 0.01] * rng.normal(size=2)
        z[1] = (z[1] + np.pi) % (2 * np.pi) - np.pi
        scans.append(np.vstack([z, np.column_stack([rng.uniform(0, 30, 3), rng.uniform(-np.pi, np.pi, 3)])]))
        truth.append(x)
        x = A @ x
    *_, (belief, _) = lk.follow(radar, scans)
    assert belief.confirmed
    assert np.hypot(*(belief.mean[:2] - truth[-1][:2])) < 1.0


@pytest.mark.slow
def test_times_through_a_continuous_model() -> None:
    """Equal steps of a continuous model are a model in discrete time, clutter and all."""
    rng = np.random.default_rng(10)
    scans = [np.vstack([[0.5 * t, 0.2 * t], rng.uniform(-9, 9, (2, 2))]) for t in range(8)]
    options = {"clutter_density": 0.01, "detection_probability": 0.9, "speed": 1.0}
    even = DataAssociation(lk.LinearGaussian.constant_velocity(2, 0.5, 0.1, 0.2), **options)
    free = DataAssociation(lk.LinearSDE.constant_velocity(2, 0.1, 0.2), **options)
    a = [belief.mean for belief, _ in lk.follow(even, scans)]
    b = [belief.mean for belief, _ in lk.follow(free, scans, inputs=[0.5 * t for t in range(len(scans))])]
    np.testing.assert_allclose(a, b, atol=1e-9)
    with pytest.raises(DataError, match="times must not fall"):
        list(lk.follow(free, scans[:2], inputs=[1.0, 0.5]))
    with pytest.raises(DataError, match="a scan needs its time"):
        free.update(free.initial_belief(), scans[0])


def test_what_cannot_be_is_refused() -> None:
    model = motion()
    for bad in (
        {"clutter_density": -1},
        {"detection_probability": 0},
        {"gate": 1.5},
        {"survival_probability": 0},
        {"confirm_above": 0.05},
        {"initial_existence": 0.0},
    ):
        with pytest.raises(DomainError):
            DataAssociation(model, **bad)
    with pytest.raises(DomainError, match="in clutter needs a proper initial"):
        DataAssociation(motion(initial=None), clutter_density=0.1)
    with pytest.raises(DomainError, match="speed"):
        DataAssociation(motion(initial=None), clutter_density=0.1, speed=-1.0)
    with pytest.raises(DomainError, match="LinearGaussian"):
        DataAssociation(lk.Gaussian([0.0], 1.0))
    radar = DataAssociation(model, clutter_density=0.1, initial_existence=0.5)
    with pytest.raises(ShapeError, match="scan must have shape"):
        radar.update(radar.initial_belief(), np.zeros((2, 3)))
    with pytest.raises(DataError, match="finite"):
        radar.update(radar.initial_belief(), [[np.inf, 0.0]])
    with pytest.raises(DataError, match="complete"):
        radar.update(radar.initial_belief(), [[np.nan, 0.0]])
    with pytest.raises(DataError, match="one measurement at most"):
        DataAssociation(model).update(DataAssociation(model).initial_belief(), np.zeros((2, 2)))


def test_a_belief_can_be_kept(tmp_path) -> None:  # type: ignore[no-untyped-def]
    radar = DataAssociation(motion(initial=None), clutter_density=0.01, detection_probability=0.9, speed=1.0)
    scans = [np.array([[0.1 * t, 0.0], [5.0, -t]]) for t in range(6)]
    seen = [belief for belief, _ in lk.follow(radar, scans)]
    for thing, name in ((radar.initial_belief(), "a"), (seen[2], "b"), (radar, "c")):
        lk.save(thing, tmp_path / name)
    belief, again = lk.load(tmp_path / "b"), lk.load(tmp_path / "c")
    for z, kept in zip(scans[3:], seen[3:], strict=True):
        belief, _ = lk.step(again, belief, z)
        np.testing.assert_array_equal(belief.mean, kept.mean)
        np.testing.assert_array_equal(belief.weights, kept.weights)
    assert lk.load(tmp_path / "a").status == "none"

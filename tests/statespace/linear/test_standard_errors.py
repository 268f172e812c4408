"""Standard errors: against another library's curvature, what simulation says, and what cannot be known."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from likely import FitWarning, LinearGaussian, LinearLearner, Ragged, Stop
from likely.statespace.linear.quasi_newton import learned
from likely.statespace.linear.standard_errors import standard_errors

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "linear_em.json").read_text())["nile"]
DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data") / "timeseries"


@pytest.fixture(scope="module")
def nile():
    path = DATA / "Nile.csv"
    if not path.exists():
        pytest.skip("no data: the series are not here")
    return np.array([float(line.split(",")[-1]) for line in path.read_text().split()[1:]])


def test_the_nile_as_statsmodels_has_it(nile):
    seen, level = REFERENCE["at"]
    errors = standard_errors(LinearGaussian.local_level(level, seen), nile, ["noise", "observation"])
    assert errors.names == ("noise[0, 0]", "observation[0, 0]")
    want = np.array(REFERENCE["covariance"])[::-1, ::-1]
    np.testing.assert_allclose(errors.covariance, want, rtol=1e-4)
    np.testing.assert_allclose(errors["observation"], [[np.sqrt(want[1, 1])]], rtol=1e-4)


def test_the_maximum_of_the_nile_as_statsmodels_has_it(nile):
    learner = LinearLearner.of(LinearGaussian.local_level(1.0, 1.0), ["noise", "observation"])
    found = learned(learner, Ragged.of(nile), stop=Stop(500, 1e-8)).model.model
    assert found.observation.item() == pytest.approx(REFERENCE["params"][0], rel=5e-4)
    assert found.noise.item() == pytest.approx(REFERENCE["params"][1], rel=5e-4)
    assert found.log_prob(nile).sum() == pytest.approx(REFERENCE["log_prob"], rel=1e-9)


def test_of_what_is_seen_without_noise_they_are_those_of_a_regression():
    """x_t = a x_{t−1} + w, seen exactly: the error of a is √(q / Σ x²), of q it is q √(2/n)."""
    rng = np.random.default_rng(0)
    true = LinearGaussian([[0.8]], [[2.0]], [[1.0]], [[0.0]], [0.0], [[1.0]])
    y = true.sample(1, rng, 400)
    found = learned(LinearLearner.of(true, ["transition", "noise"]), y, stop=Stop(100, 1e-12)).model.model
    errors = standard_errors(found, y, ["transition", "noise"])
    x = y.values[:, 0]
    assert errors["transition"].item() == pytest.approx(np.sqrt(found.noise.item() / (x[:-1] ** 2).sum()), rel=1e-5)
    assert errors["noise"].item() == pytest.approx(found.noise.item() * np.sqrt(2 / 399), rel=1e-5)


def test_structure_decides_what_has_an_error():
    rng = np.random.default_rng(1)
    m = LinearGaussian.constant_velocity(dim=2, dt=0.5, noise=1.0, observation=0.5, start=(0.0, 1.0))
    y = m.sample(5, rng, 60)
    form = {"noise": "scale", "observation": "spherical", "transition": np.array(4 * [[0, 0, 0, 0]])}
    form["transition"][0, 2] = form["transition"][1, 3] = 1
    learner = LinearLearner.of(m, list(form), form)
    found = learned(learner, y).model.model
    errors = standard_errors(found, y, list(form), form)
    assert errors.names == ("transition[0, 2]", "noise[0, 0]", "observation[0, 0]")
    assert set(errors) == set(form) and len(errors) == 3
    fixed = np.ones((4, 4), dtype=bool)
    fixed[0, 2] = fixed[1, 3] = False
    assert (errors["transition"][fixed] == 0).all() and (errors["transition"][~fixed] > 0).all()
    assert errors["transition"][0, 2] == errors["transition"][1, 3]
    assert errors["observation"][0, 1] == 0 and errors["observation"][0, 0] == errors["observation"][1, 1]
    np.testing.assert_allclose(errors["noise"] / errors["noise"][0, 0], found.noise / found.noise[0, 0], rtol=1e-6)
    assert (np.linalg.eigvalsh(errors.covariance) > 0).all()


def test_sizes_of_what_changes_with_time_agree_with_those_of_what_does_not():
    rng = np.random.default_rng(4)
    m = LinearGaussian.local_level(1.0, 2.0, start=(0.0, 1.0))
    y = m.sample(1, rng, 80)
    many = m.replace(noise=np.tile(m.noise, (80, 1, 1)))
    form = {"noise": "scale"}
    a = standard_errors(m, y, ["noise", "observation"], form)
    b = standard_errors(many, y, ["noise", "observation"], form)
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-6)
    assert b["noise"].shape == (80, 1, 1)


def test_a_weight_is_so_many_copies():
    rng = np.random.default_rng(2)
    m = LinearGaussian.local_level(1.0, 2.0, start=(0.0, 1.0))
    y = m.sample(3, rng, 40)
    one = standard_errors(m, y, ["noise"], weight=[2.0, 1.0, 0.0])
    other = standard_errors(m, Ragged.joined([y[:1], y[:1], y[1:2]]), ["noise"])
    np.testing.assert_allclose(one["noise"], other["noise"], rtol=1e-8)


def test_what_data_do_not_determine_is_infinite_and_said():
    """Size of emission and of noise: only their product is seen."""
    rng = np.random.default_rng(3)
    m = LinearGaussian([[0.9]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[0.0]])
    y = m.sample(2, rng, 100)
    m = learned(LinearLearner.of(m, ["emission", "noise", "observation"]), y, stop=Stop(500, 1e-13)).model.model
    with pytest.warns(FitWarning, match="do not determine emission"):
        errors = standard_errors(m, y, ["emission", "noise", "observation"])
    assert np.isinf(errors["emission"]).all() and np.isinf(errors["noise"]).all()
    assert np.isfinite(errors["observation"]).all() and not np.isnan(errors.covariance).any()


def test_inputs_have_errors_too():
    rng = np.random.default_rng(5)
    u = rng.normal(size=(300, 1))
    m = LinearGaussian([[0.5]], [[1.0]], [[1.0]], [[0.5]], [0.0], [[1.0]], control=[[2.0]], feedthrough=[[1.0]])
    y = m.sample(1, rng, inputs=Ragged.of(u))
    errors = standard_errors(m, y, ["control", "feedthrough"], inputs=Ragged.of(u))

    def total(f, g):
        return float(m.replace(control=np.array([[f]]), feedthrough=np.array([[g]])).log_prob(y, Ragged.of(u)).sum())

    h = 1e-3
    second = np.array([
        [(total(2 + (a + c) * h, 1 + (b + d) * h) - total(2 + (a - c) * h, 1 + (b - d) * h)
          - total(2 - (a - c) * h, 1 - (b - d) * h) + total(2 - (a + c) * h, 1 - (b + d) * h)) / (4 * h * h)
         for c, d in ((1, 0), (0, 1))] for a, b in ((1, 0), (0, 1))
    ])  # fmt: skip
    np.testing.assert_allclose(errors.covariance, np.linalg.inv(-second), rtol=1e-4)


def test_starts_are_few_beside_frames():
    """One start and many frames, seen badly: its mean is known by the covariance that it has, not by frames."""
    rng = np.random.default_rng(7)
    m = LinearGaussian([[0.5]], [[1.0]], [[1e-2]], [[1.0]], [0.0], [[1.0]])
    y = m.sample(1, rng, 5000)
    errors = standard_errors(m, y, ["mean", "observation"])
    h = 1.0
    second = [float(m.replace(mean=np.array([x])).log_prob(y).sum()) for x in (-h, 0.0, h)]
    assert errors["mean"][0] == pytest.approx((-(second[0] - 2 * second[1] + second[2]) / h**2) ** -0.5, rel=1e-3)


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """95 % intervals of logarithms of variances, 100 times: between 90 and 99 % hold it."""
    rng = np.random.default_rng(6)
    true = LinearGaussian.local_level(1.0, 2.0, start=(0.0, 1.0))
    held = []
    for _ in range(100):
        y = true.sample(1, rng, 300)
        found = learned(LinearLearner.of(true, ["noise", "observation"]), y).model.model
        errors = standard_errors(found, y, ["noise", "observation"])
        for name in ("noise", "observation"):
            value, error = getattr(found, name).item(), errors[name].item()
            held.append(abs(np.log(value / getattr(true, name).item())) < 1.96 * error / value)
    assert 0.90 < np.mean(held) < 0.99

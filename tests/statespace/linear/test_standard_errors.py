"""Standard errors against another library's Hessian and against simulation; undetermined parameters."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from likely import FitWarning, LinearGaussian, Ragged, StoppingRule
from likely.statespace import ConstrainedLinearGaussian
from likely.statespace.linear.quasi_newton import fit_quasi_newton
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
    errors = standard_errors(
        LinearGaussian.local_level(level, seen), nile, ["process_covariance", "observation_covariance"]
    )
    assert errors.names == ("process_covariance[0, 0]", "observation_covariance[0, 0]")
    want = np.array(REFERENCE["covariance"])[::-1, ::-1]
    np.testing.assert_allclose(errors.covariance, want, rtol=1e-4)
    np.testing.assert_allclose(errors["observation_covariance"], [[np.sqrt(want[1, 1])]], rtol=1e-4)


@pytest.mark.slow
def test_the_maximum_of_the_nile_as_statsmodels_has_it(nile):
    learner = ConstrainedLinearGaussian.of(
        LinearGaussian.local_level(1.0, 1.0), ["process_covariance", "observation_covariance"]
    )
    found = fit_quasi_newton(learner, Ragged.of(nile), stop=StoppingRule(500, 1e-8)).model.model
    assert found.observation_covariance.item() == pytest.approx(REFERENCE["params"][0], rel=5e-4)
    assert found.process_covariance.item() == pytest.approx(REFERENCE["params"][1], rel=5e-4)
    assert found.log_prob(nile).sum() == pytest.approx(REFERENCE["log_prob"], rel=1e-9)


def test_of_what_is_seen_without_noise_they_are_those_of_a_regression():
    """x_t = a x_{t−1} + w, seen exactly: the error of a is √(q / Σ x²), of q it is q √(2/n)."""
    rng = np.random.default_rng(0)
    true = LinearGaussian(
        transition=[[0.8]],
        process_covariance=[[2.0]],
        observation=[[1.0]],
        observation_covariance=[[0.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    y = true.sample(1, rng, 400)
    found = fit_quasi_newton(
        ConstrainedLinearGaussian.of(true, ["transition", "process_covariance"]), y, stop=StoppingRule(100, 1e-12)
    ).model.model
    errors = standard_errors(found, y, ["transition", "process_covariance"])
    x = y.values[:, 0]
    assert errors["transition"].item() == pytest.approx(
        np.sqrt(found.process_covariance.item() / (x[:-1] ** 2).sum()), rel=1e-5
    )
    assert errors["process_covariance"].item() == pytest.approx(
        found.process_covariance.item() * np.sqrt(2 / 399), rel=1e-5
    )


def test_structure_decides_what_has_an_error():
    rng = np.random.default_rng(1)
    m = LinearGaussian.constant_velocity(
        dim=2, dt=0.5, spectral_density=1.0, observation_variance=0.5, initial=(0.0, 1.0)
    )
    y = m.sample(5, rng, 60)
    form = {
        "process_covariance": "scale",
        "observation_covariance": "spherical",
        "transition": np.array(4 * [[0, 0, 0, 0]]),
    }
    form["transition"][0, 2] = form["transition"][1, 3] = 1
    learner = ConstrainedLinearGaussian.of(m, list(form), form)
    found = fit_quasi_newton(learner, y).model.model
    errors = standard_errors(found, y, list(form), form)
    assert errors.names == ("transition[0, 2]", "process_covariance[0, 0]", "observation_covariance[0, 0]")
    assert set(errors) == set(form) and len(errors) == 3
    fixed = np.ones((4, 4), dtype=bool)
    fixed[0, 2] = fixed[1, 3] = False
    assert (errors["transition"][fixed] == 0).all() and (errors["transition"][~fixed] > 0).all()
    assert errors["transition"][0, 2] == errors["transition"][1, 3]
    assert (
        errors["observation_covariance"][0, 1] == 0
        and errors["observation_covariance"][0, 0] == errors["observation_covariance"][1, 1]
    )
    np.testing.assert_allclose(
        errors["process_covariance"] / errors["process_covariance"][0, 0],
        found.process_covariance / found.process_covariance[0, 0],
        rtol=1e-6,
    )
    assert (np.linalg.eigvalsh(errors.covariance) > 0).all()


def test_sizes_of_what_changes_with_time_agree_with_those_of_what_does_not():
    rng = np.random.default_rng(4)
    m = LinearGaussian.local_level(1.0, 2.0, initial=(0.0, 1.0))
    y = m.sample(1, rng, 80)
    many = m.replace(process_covariance=np.tile(m.process_covariance, (80, 1, 1)))
    form = {"process_covariance": "scale"}
    a = standard_errors(m, y, ["process_covariance", "observation_covariance"], form)
    b = standard_errors(many, y, ["process_covariance", "observation_covariance"], form)
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-6)
    assert b["process_covariance"].shape == (80, 1, 1)


def test_a_weight_is_so_many_copies():
    rng = np.random.default_rng(2)
    m = LinearGaussian.local_level(1.0, 2.0, initial=(0.0, 1.0))
    y = m.sample(3, rng, 40)
    one = standard_errors(m, y, ["process_covariance"], weight=[2.0, 1.0, 0.0])
    other = standard_errors(m, Ragged.joined([y[:1], y[:1], y[1:2]]), ["process_covariance"])
    np.testing.assert_allclose(one["process_covariance"], other["process_covariance"], rtol=1e-8)


def test_what_data_do_not_determine_is_infinite_and_said():
    """Size of emission and of noise: only their product is seen."""
    rng = np.random.default_rng(3)
    m = LinearGaussian(
        transition=[[0.9]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[0.0]],
    )
    y = m.sample(2, rng, 100)
    m = fit_quasi_newton(
        ConstrainedLinearGaussian.of(m, ["observation", "process_covariance", "observation_covariance"]),
        y,
        stop=StoppingRule(500, 1e-13),
    ).model.model
    with pytest.warns(FitWarning, match="do not determine observation"):
        errors = standard_errors(m, y, ["observation", "process_covariance", "observation_covariance"])
    assert np.isinf(errors["observation"]).all() and np.isinf(errors["process_covariance"]).all()
    assert np.isfinite(errors["observation_covariance"]).all() and not np.isnan(errors.covariance).any()


def test_inputs_have_errors_too():
    rng = np.random.default_rng(5)
    u = rng.normal(size=(300, 1))
    m = LinearGaussian(
        transition=[[0.5]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[0.5]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        control=[[2.0]],
        feedthrough=[[1.0]],
    )
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
    m = LinearGaussian(
        transition=[[0.5]],
        process_covariance=[[1.0]],
        observation=[[1e-2]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    y = m.sample(1, rng, 5000)
    errors = standard_errors(m, y, ["initial_mean", "observation_covariance"])
    h = 1.0
    second = [float(m.replace(initial_mean=np.array([x])).log_prob(y).sum()) for x in (-h, 0.0, h)]
    assert errors["initial_mean"][0] == pytest.approx(
        (-(second[0] - 2 * second[1] + second[2]) / h**2) ** -0.5, rel=1e-3
    )


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_intervals_cover_the_truth():
    """95 % intervals of logarithms of variances, 100 times: between 90 and 99 % hold it."""
    rng = np.random.default_rng(6)
    true = LinearGaussian.local_level(1.0, 2.0, initial=(0.0, 1.0))
    held = []
    for _ in range(100):
        y = true.sample(1, rng, 300)
        found = fit_quasi_newton(
            ConstrainedLinearGaussian.of(true, ["process_covariance", "observation_covariance"]), y
        ).model.model
        errors = standard_errors(found, y, ["process_covariance", "observation_covariance"])
        for name in ("process_covariance", "observation_covariance"):
            value, error = getattr(found, name).item(), errors[name].item()
            held.append(abs(np.log(value / getattr(true, name).item())) < 1.96 * error / value)
    assert 0.90 < np.mean(held) < 0.99

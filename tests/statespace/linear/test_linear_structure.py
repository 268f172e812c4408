"""Constraints of learned parameters: blocks, shared variances of which one is 0, number of free parameters."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DomainError, LinearGaussian, Ragged, ShapeError, load, save
from likely.statespace import ConstrainedLinearGaussian
from likely.statespace.linear.linear_structure import covariance_from
from likely.statespace.linear.log_likelihood_gradient import Coordinates
from likely.statespace.linear.quasi_newton import fit_quasi_newton
from likely.statespace.linear.standard_errors import standard_errors

L = LinearGaussian
BLOCKS = [("scale", [0, 1]), ("spherical", [2]), ("fixed", [3, 4])]


def moving_with_season(noise=1.0, season=0.1):
    return L.constant_velocity(dim=1, dt=0.5, spectral_density=noise, observation_variance=0.3) + L.seasonal(4, season)


@pytest.mark.parametrize("form", ["diagonal", "spherical", np.array([1, 1]), np.array([3, 3])])
def test_a_variance_of_0_stays_0_and_has_no_share(form):
    old = np.diag([0.0, 1.0])
    new = covariance_from(old, np.diag([3.0, 8.0]), 2.0, np.zeros(2), form)
    assert np.array_equal(new, np.diag([0.0, 4.0]))


@pytest.mark.parametrize("form", ["full", "diagonal", "spherical", "scale"])
def test_a_scatter_below_rounding_takes_no_variance_away_for_good(form):
    assert covariance_from(np.array([[1e-20]]), np.array([[-1e-14]]), 10.0, np.zeros(2), form).item() == 1e-20


def test_blocks_are_learned_each_by_itself():
    rng = np.random.default_rng(0)
    true = moving_with_season()
    y = true.replace(diffuse=None, initial_covariance=np.eye(5)).sample(4, rng, 150)
    start = moving_with_season(20.0, 3.0)
    learner = ConstrainedLinearGaussian.of(
        start, ["process_covariance"], {"process_covariance": [("scale", [0, 1]), ("full", [2]), ("fixed", [3, 4])]}
    )
    report = fit_quasi_newton(learner, y)
    found = report.model.model.process_covariance
    assert report.converged and (np.diff(report.trace) >= -1e-9).all()
    np.testing.assert_allclose(
        found[:2, :2] / found[0, 0], true.process_covariance[:2, :2] / true.process_covariance[0, 0], rtol=1e-9
    )
    assert not found[:2, 2:].any() and not found[3:].any()
    errors = standard_errors(report.model.model, y, ["process_covariance"], learner.structure.form)
    assert errors.names == ("process_covariance[0, 0]", "process_covariance[2, 2]")
    for at in ((0, 0), (2, 2)):
        assert abs(found[at] - true.process_covariance[at]) < 4 * errors["process_covariance"][at]
    assert report.objective >= true.log_prob(y).sum()


def test_a_step_in_blocks_is_that_of_each_block():
    rng = np.random.default_rng(1)
    old, scatter = (a @ a.T for a in rng.normal(size=(2, 5, 7)))
    learner = ConstrainedLinearGaussian.of(
        L(transition=np.eye(5), process_covariance=old, observation=np.eye(5), observation_covariance=np.eye(5)),
        ["process_covariance"],
        {"process_covariance": BLOCKS},
    )
    new = covariance_from(old, scatter, 3.0, np.zeros(2), learner.structure.form["process_covariance"])
    for kind, at in BLOCKS[:2]:
        inside = np.ix_(at, at)
        assert np.array_equal(new[inside], covariance_from(old[inside], scatter[inside], 3.0, np.zeros(2), kind))
    assert np.array_equal(new[3:, 3:], old[3:, 3:]) and not new[:2, 2:].any() and not new[2, 3:].any()


def test_blocks_are_filed(tmp_path):
    learner = ConstrainedLinearGaussian.of(
        moving_with_season(), ["process_covariance"], {"process_covariance": BLOCKS[:2]}
    )
    save(learner, tmp_path / "a.likely")
    back = load(tmp_path / "a.likely")
    assert np.array_equal(back.structure.form["process_covariance"], learner.structure.form["process_covariance"])
    y = np.sin(np.arange(40.0) ** 2)
    assert np.array_equal(
        back.refit(back.collect(y)).model.process_covariance, learner.refit(learner.collect(y)).model.process_covariance
    )


@pytest.mark.parametrize(
    "form, words",
    [
        ([("round", [0])], "must be one of fixed, full"),
        ([("full", [0, 5])], "list indices in 0 … 4"),
        ([("full", [0, 1]), ("scale", [1])], "each index once"),
        ([("full", [])], "list indices"),
        (np.array([[0, 0, 1, 1, 1], [1, 2, 1, 1, 1]]), "one form per block"),
    ],
)
def test_blocks_that_are_none_are_refused_in_words(form, words):
    with pytest.raises((DomainError, ShapeError), match=words):
        ConstrainedLinearGaussian.of(moving_with_season(), ["process_covariance"], {"process_covariance": form})


@pytest.mark.parametrize(
    "noise, learn, form, count",
    [
        (np.array([[0.25, 0.5], [0.5, 1.0]]), ["process_covariance"], "full", 1),
        (np.diag([0.0, 1.0]), ["process_covariance"], "diagonal", 1),
        (np.diag([0.0, 1.0]), ["process_covariance"], "spherical", 1),
        (np.diag([0.0, 0.0]), ["process_covariance"], "scale", 0),
        (np.diag([0.0, 1.0]), ["transition", "process_covariance"], "full", 3),
        (np.eye(2), ["transition", "process_covariance", "initial"], "full", 12),
        (np.eye(2), ["process_covariance"], [("full", [0]), ("fixed", [1])], 1),
    ],
)
def test_numbers_that_cannot_move_are_not_counted(noise, learn, form, count):
    m = L(
        transition=[[1.0, 1.0], [0.0, 1.0]],
        process_covariance=noise,
        observation=[[1.0, 0.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0, 0.0],
        initial_covariance=np.eye(2),
    )
    learner = ConstrainedLinearGaussian.of(m, learn, {"process_covariance": form})
    y = Ragged.of(np.cumsum(np.sin(np.arange(40.0) ** 2)))
    assert learner.n_parameters == count == len(Coordinates(m, m.collect(y), learner.structure))

"""Arguments passed to user functions by their signatures, and errors for ambiguous ones."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError
from likely.statespace.nonlinear.extended_kalman_filter import ExtendedKalmanFilter
from likely.statespace.nonlinear.function_arguments import DISTRIBUTION, PROPOSAL, wrapped
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.particle.particle_filter import ParticleFilter

GIVEN = [
    (lambda x: x, "X"),
    (lambda x, t: t, 2),
    (lambda x, t, u: u, 3),
    (lambda *a: len(a), 3),
    (lambda x, scale=5: scale, 5),
    (lambda x, *, u: u, 3),
    (lambda x, *, t, u: (t, u), (2, 3)),
    (lambda x, t, u=None: u, 3),
    (lambda x, u=None, t=None: (t, u), (2, 3)),
    (partial(lambda x, t: t, t=9), 9),
    (lambda x, **rest: len(rest), 0),
]


@pytest.mark.parametrize("function, expected", GIVEN)
def test_functions_get_what_they_take(function, expected):
    assert wrapped(function, DISTRIBUTION, "test")("X", 2, 3) == expected


def test_proposals_may_take_the_observation_and_inputs():
    assert wrapped(lambda x, y, t: (y, t), PROPOSAL, "test")("X", "Y", 2, 3) == ("Y", 2)
    assert wrapped(lambda x, y, t, u: u, PROPOSAL, "test")("X", "Y", 2, 3) == 3


def test_builtins_without_a_signature_get_states():
    assert wrapped(np.exp, DISTRIBUTION, "test")(0.0, 2, 3) == 1.0


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda x, t=0: t, "t=0"),
        (lambda x, *, u=1.0: u, "u=1.0"),
        (lambda x, t, u, more: x, "more"),
        (lambda x, *, more: x, "more without one"),
        (lambda: 1, "x, t, u"),
    ],
)
def test_what_cannot_be_filled(function, words):
    with pytest.raises(DomainError, match=words):
        wrapped(function, DISTRIBUTION, "test")
    with pytest.raises(DomainError, match=words):
        StateSpace(lk.Gaussian([0.0], 1.0), function, lambda x: lk.Gaussian(x, 1.0))


DRIVEN = StateSpace(
    lk.Gaussian([0.0], 1.0), lambda x, t, u: lk.Gaussian(x + u[0], 1.0), lambda x, *, u: lk.Gaussian(x * u[0], 1.0)
)


@pytest.mark.parametrize("make", [ExtendedKalmanFilter, lk.UnscentedKalmanFilter, lambda m: ParticleFilter(m, 5)])
def test_distributions_that_need_inputs_say_so(make):
    with pytest.raises(DataError, match=r"StateSpace\.observation: it takes inputs u, and none were given.*inputs="):
        make(DRIVEN).filter([1.0, 2.0])
    assert np.isfinite(make(DRIVEN).filter([1.0, 2.0], np.ones((2, 1))).mean).all()


def test_other_mistakes_are_the_users_own():
    with pytest.raises(TypeError, match="unsupported"):
        wrapped(lambda x, t, u: x + "1", DISTRIBUTION, "test")(1, 2, np.ones(1))
    with pytest.raises(TypeError, match="unsupported"):
        wrapped(lambda x: x + "1", DISTRIBUTION, "test")(1, 2, None)


def still(x):
    return lk.Gaussian(x, 1.0)


def test_models_of_named_functions_go_to_other_processes():
    again = pickle.loads(pickle.dumps(StateSpace(lk.Gaussian([0.0], 1.0), still, still)))
    assert again.transition_distribution(np.zeros((2, 1)), 1).members == 2

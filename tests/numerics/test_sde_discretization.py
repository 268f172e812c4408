"""Exact discretization of linear SDEs against closed forms and multiple precision."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

from likely.core.errors import DomainError
from likely.numerics import lyapunov
from likely.numerics.sde_discretization import coupled, discretize, is_nilpotent

STEPS = np.array([1e-9, 1e-3, 0.37, 1.0, 20.0])
MATERN = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-27.0, -27.0, -9.0]])
SYSTEMS = {
    "settling": (MATERN, np.diag([0.0, 0.0, 7.0])),
    "singular": (np.array([[0.0, 1.0], [0.0, -0.7]]), np.diag([0.0, 2.0])),
    "turning": (np.array([[0.0, 1.0], [-9.0, 0.0]]), np.diag([0.0, 2.0])),
    "unstable": (np.array([[0.0, 1.0], [2.0, 0.3]]), np.eye(2)),
    "full": (np.random.default_rng(0).standard_normal((4, 4)), np.eye(4) + 0.5),
    "slow beside fast": (np.array([[-1e6, 1.0], [0.0, -1e-3]]), np.eye(2)),
    "other units": (MATERN * np.array([[1, 1, 1], [1, 1, 1], [1e9, 1e6, 1e3]]), np.diag([0.0, 0.0, 7.0])),
}


def van_loan(F, Qc, h):
    """The block exponential, with so many digits that it cannot overflow or cancel."""
    d = len(F)
    with mp.workdps(400 if np.abs(F).max() * h < 1e3 else 60):
        block = mp.matrix(2 * d, 2 * d)
        for i in range(d):
            for j in range(d):
                block[i, j], block[d + i, d + j] = -mp.mpf(F[i, j]) * h, mp.mpf(F[j, i]) * h
                block[i, d + j] = mp.mpf(Qc[i, j]) * h
        E = mp.expm(block)
        A = E[d:, d:].T
        Q = A * E[:d, d:]
        return [np.array(M.tolist(), dtype=float) for M in (A, Q)]


LARGE = ("slow beside fast", "other units")  # whose long steps need too many digits: see the closed forms


@pytest.mark.some_cases(12)
@pytest.mark.parametrize(
    "name, h", [(name, h) for name in SYSTEMS for h in (1e-9, 1e-3, 0.37, 5.0) if h <= 1e-3 or name not in LARGE]
)
def test_against_many_digits(name, h):
    F, Qc = SYSTEMS[name]
    (A,), (Q,) = discretize(F, Qc, np.array([h]))
    want_A, want_Q = van_loan(F, Qc, h)
    size = np.sqrt(np.outer(want_Q.diagonal(), want_Q.diagonal()))
    assert np.abs(A - want_A).max() <= 1e-13 * np.abs(want_A).max()
    assert (np.abs(Q - want_Q) <= 1e-13 * size).all()


@pytest.mark.parametrize("h", [*STEPS, 1e6, 1e-12])
def test_constant_velocity_to_the_last_digit(h):
    (A,), (Q,) = discretize(np.eye(2, k=1), np.diag([0.0, 1.3]), np.array([h]))
    np.testing.assert_array_equal(A, [[1.0, h], [0.0, 1.0]])
    np.testing.assert_allclose(Q, 1.3 * np.array([[h**3 / 3, h**2 / 2], [h**2 / 2, h]]), rtol=1e-15)


@pytest.mark.parametrize("h", [*STEPS, 1e6])
def test_constant_acceleration(h):
    (A,), (Q,) = discretize(np.eye(3, k=1), np.diag([0.0, 0.0, 1.0]), np.array([h]))
    want = [[h**5 / 20, h**4 / 8, h**3 / 6], [h**4 / 8, h**3 / 3, h**2 / 2], [h**3 / 6, h**2 / 2, h]]
    np.testing.assert_allclose(A, [[1.0, h, h * h / 2], [0.0, 1.0, h], [0.0, 0.0, 1.0]], rtol=1e-15)
    np.testing.assert_allclose(Q, want, rtol=1e-15)


@pytest.mark.parametrize("rate", [1e-8, 1e-2, 1.0, 3e3])
def test_ornstein_uhlenbeck_of_any_rate(rate):
    steps = np.array([1e-9, 1e-3, 0.37, 20.0, 1e8])
    A, Q = discretize(np.array([[-rate]]), np.array([[2.0]]), steps)
    with np.errstate(under="ignore"):
        want = np.exp(-rate * steps)
    close = rate * steps < 100  # beyond, e⁻ˣ itself is known to x digits of rounding only
    np.testing.assert_allclose(A[close, 0, 0], want[close], rtol=3e-14)
    np.testing.assert_allclose(A[:, 0, 0], want, atol=1e-15)
    np.testing.assert_allclose(Q[:, 0, 0], -np.expm1(-2 * rate * steps) / rate, rtol=1e-13)


def test_integrated_ornstein_uhlenbeck_far_ahead():
    r, q, h = 0.7, 2.0, 1e4
    (A,), (Q,) = discretize(np.array([[0.0, 1.0], [0.0, -r]]), np.diag([0.0, q]), np.array([h]))
    np.testing.assert_allclose(A, [[1.0, 1 / r], [0.0, 0.0]], rtol=1e-13, atol=1e-15)
    want = q / r**2 * (h - 2 / r + 1 / (2 * r))
    np.testing.assert_allclose(Q, [[want, q / (2 * r * r)], [q / (2 * r * r), q / (2 * r)]], rtol=1e-13)


def test_slow_beside_fast_far_ahead():
    F, h = np.array([[-1e6, 1.0], [0.0, -1e-3]]), 200.0
    (A,), (Q,) = discretize(F, np.eye(2), np.array([h]))
    slow = np.exp(-1e-3 * h)
    np.testing.assert_allclose(A, [[0.0, slow / (1e6 - 1e-3)], [0.0, slow]], rtol=1e-13, atol=1e-20)
    np.testing.assert_allclose(Q[1, 1], -np.expm1(-2e-3 * h) / 2e-3, rtol=1e-13)


def test_steps_follow_each_other():
    """Two steps make one: A(a + b) = A(b) A(a), Q(a + b) = A(b) Q(a) A(b)ᵀ + Q(b)."""
    F, Qc = SYSTEMS["full"]
    A, Q = discretize(F, Qc, np.array([0.3, 0.5, 0.8]))
    np.testing.assert_allclose(A[1] @ A[0], A[2], rtol=1e-13)
    np.testing.assert_allclose(A[1] @ Q[0] @ A[1].T + Q[1], Q[2], rtol=1e-13)


def test_step_of_nothing():
    A, Q = discretize(MATERN, np.eye(3), np.array([0.0]))
    np.testing.assert_array_equal(A[0], np.eye(3))
    np.testing.assert_array_equal(Q[0], np.zeros((3, 3)))


def test_noise_is_positive_definite_for_tiny_steps():
    _, Q = discretize(MATERN, np.diag([0.0, 0.0, 1.0]), np.array([1e-7]))
    unit = np.sqrt(Q[0].diagonal())
    assert np.linalg.eigvalsh(Q[0] / np.outer(unit, unit))[0] > 1e-4


def test_states_that_do_not_meet():
    F = np.zeros((5, 5))
    F[0, 3] = F[3, 4] = 1.0
    assert [at.tolist() for at in coupled(F, np.zeros((5, 5)))] == [[0, 3, 4], [1], [2]]
    assert is_nilpotent(F)
    assert not is_nilpotent(F + F.T)


def test_where_it_settles():
    rng = np.random.default_rng(1)
    for d in (1, 3, 7):
        B = rng.standard_normal((d, d))
        A, Q = B / (1.05 * np.abs(np.linalg.eigvals(B)).max()), np.eye(d)
        np.testing.assert_allclose(lyapunov.solve_discrete_lyapunov(A, Q), solve_discrete_lyapunov(A, Q), rtol=1e-10)
        F = B - (np.linalg.eigvals(B).real.max() + 0.3) * np.eye(d)
        np.testing.assert_allclose(
            lyapunov.solve_continuous_lyapunov(F, Q), solve_continuous_lyapunov(F, -Q), rtol=1e-10, atol=1e-12
        )


def test_settled_near_the_edge():
    phi = 1 - 1e-9
    np.testing.assert_allclose(
        lyapunov.solve_discrete_lyapunov(np.array([[phi]]), np.eye(1)), [[1 / ((1 - phi) * (1 + phi))]], rtol=1e-6
    )


@pytest.mark.parametrize("A", [[[1.0]], [[0.5, 0.0], [0.0, -1.2]]])
def test_what_never_settles(A):
    with pytest.raises(DomainError, match="unit circle"):
        lyapunov.solve_discrete_lyapunov(np.array(A), np.eye(len(A)))
    with pytest.raises(DomainError, match="negative real parts"):
        lyapunov.solve_continuous_lyapunov(np.array(A), np.eye(len(A)))

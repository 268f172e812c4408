from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from likely.linear_model.evidence import Problem, maximize, relevance


def problem(phi, y):
    R = np.linalg.qr(np.column_stack([phi, y]), mode="r")
    M = phi.shape[1]
    R = np.vstack([R, np.zeros((M + 1 - len(R), M + 1))])
    return Problem(R[:M, :M], R[:M, M], float(R[M, M] ** 2), float(len(y)))


def dense(phi, y, alpha, beta):
    used = np.isfinite(alpha)
    covariance = np.eye(len(y)) / beta + (phi[:, used] / alpha[used]) @ phi[:, used].T
    return multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)


def rows(rng, n=40, M=6, noise=0.3):
    phi = rng.standard_normal((n, M)) * [1.0, 3.0, 0.1, 1.0, 1.0, 1.0][:M]
    return phi, phi @ [1.0, 0.0, 0.0, 2.0, 0.0, -1.0][:M] + noise * rng.standard_normal(n)


def posterior(phi, y, alpha, beta):
    precision = alpha * np.eye(phi.shape[1]) + beta * phi.T @ phi
    return beta * np.linalg.solve(precision, phi.T @ y)


@pytest.mark.parametrize("n", [3, 8, 40, 200])
def test_the_evidence_is_that_of_dense_algebra_and_its_maximum(rng, n):
    phi, y = rows(rng, n)
    found = maximize(problem(phi, y))
    assert found.log_evidence == pytest.approx(dense(phi, y, found.alpha, found.beta), rel=1e-9)
    if not found.converged:
        return
    for a, b in ((1.02, 1.0), (0.98, 1.0), (1.0, 1.02), (1.0, 0.98), (1.02, 0.98)):
        assert dense(phi, y, a * found.alpha, b * found.beta) < found.log_evidence


def test_it_is_the_fixed_point_of_mackay(rng):
    phi, y = rows(rng)
    found = maximize(problem(phi, y))
    alpha, beta = found.alpha[0], found.beta
    m = posterior(phi, y, alpha, beta)
    eigenvalues = np.linalg.eigvalsh(beta * phi.T @ phi)
    gamma = (eigenvalues / (alpha + eigenvalues)).sum()
    assert found.effective == pytest.approx(gamma, rel=1e-10)
    assert alpha == pytest.approx(gamma / (m @ m), rel=1e-9)
    assert beta == pytest.approx((len(y) - gamma) / ((y - phi @ m) ** 2).sum(), rel=1e-9)
    peer = BayesianRidge(
        fit_intercept=False, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=2000, compute_score=True
    ).fit(phi, y)
    assert (found.beta, alpha, found.log_evidence) == pytest.approx(
        (peer.alpha_, peer.lambda_, peer.scores_[-1]), rel=1e-8
    )


def test_where_there_is_nothing_to_learn_the_prior_wins(rng):
    phi = rng.standard_normal((200, 4))
    y = rng.standard_normal(200)
    y -= phi @ np.linalg.lstsq(phi, y, rcond=None)[0]  # orthogonal to all functions
    found = maximize(problem(phi, y))
    assert np.isinf(found.alpha).all() and found.converged and found.effective == 0
    assert "all coefficients are 0" in found.reason
    assert found.log_evidence == pytest.approx(dense(phi, y, found.alpha, found.beta), rel=1e-10)


def test_an_exact_fit_has_the_least_noise(rng):
    phi = rng.standard_normal((30, 3))
    y = phi @ [1.0, 2.0, 3.0]
    found = maximize(problem(phi, y).least_noise(float(y.var())))
    assert found.converged and 1 / found.beta == pytest.approx(1e-14 * y.var() * 30 / 27, rel=0.2)
    assert found.effective == pytest.approx(3.0)


def test_more_functions_than_rows(rng):
    phi, y = rows(rng, 4)
    found = maximize(problem(phi, y))
    assert np.isfinite(found.log_evidence)
    assert found.log_evidence == pytest.approx(dense(phi, y, found.alpha, found.beta), rel=1e-6)


def test_no_functions_at_all(rng):
    y = rng.standard_normal(20)
    found = maximize(problem(np.zeros((20, 1)), y))
    assert found.log_evidence == pytest.approx(-10 * (np.log(2 * np.pi * (y @ y) / 20) + 1))
    empty = maximize(Problem(np.zeros((0, 0)), np.zeros(0), float(y @ y), 20.0))
    assert empty.log_evidence == pytest.approx(found.log_evidence)


def test_noise_alone_for_a_given_prior(rng):
    phi, y = rows(rng)
    root = np.tril(rng.standard_normal((6, 6))) + 3 * np.eye(6)
    found = maximize(problem(phi, y), root)

    def evidence(beta):
        return multivariate_normal(np.zeros(40), np.eye(40) / beta + phi @ root @ root.T @ phi.T).logpdf(y)

    assert found.log_evidence == pytest.approx(evidence(found.beta), rel=1e-10)
    assert max(evidence(1.01 * found.beta), evidence(0.99 * found.beta)) < found.log_evidence


@pytest.mark.parametrize("n", [10, 40, 300])
def test_relevance_is_a_maximum_and_removes_functions(rng, n):
    phi, y = rows(rng, n)
    found = relevance(problem(phi, y))
    assert found.converged
    assert found.log_evidence == pytest.approx(dense(phi, y, found.alpha, found.beta), rel=1e-9)
    assert found.log_evidence >= maximize(problem(phi, y)).log_evidence - 1e-9
    for i in range(6):
        for factor in (0.5, 0.9, 1.1, 2.0):
            other = found.alpha.copy()
            other[i] = other[i] * factor if np.isfinite(other[i]) else 1e3 * factor
            assert dense(phi, y, other, found.beta) <= found.log_evidence + 1e-6
    assert np.isfinite(found.alpha[[0, 3, 5]]).all()


def test_relevance_never_lowers_the_evidence(rng, monkeypatch):
    from likely.linear_model import evidence

    phi, y = rows(rng)
    values = []
    for sweeps in range(1, 8):
        monkeypatch.setattr(evidence, "SWEEPS", sweeps)
        values.append(evidence.relevance(problem(phi, y)).log_evidence)
    assert (np.diff(values) >= -1e-9).all()
    monkeypatch.setattr(evidence, "SWEEPS", 1)
    assert not evidence.relevance(problem(phi, y)).converged


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_on_the_plateau_of_a_narrow_prior_the_boundary_is_the_solution(scale):
    """Targets without a trend: the evidence grows to a limit as α does, and rounding decides among its last values."""
    boundary = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        phi, y = rng.standard_normal((30, 3)), scale * rng.standard_normal(30)
        found = maximize(problem(phi, y))
        assert found.converged
        if np.isinf(found.alpha).all():
            boundary += 1
            assert "all coefficients are 0" in found.reason and found.effective == 0
            for alpha in (1e2, 1e4, 1e6):
                assert dense(phi, y, np.full(3, alpha * found.beta), found.beta) <= found.log_evidence + 1e-9
    assert boundary > 20

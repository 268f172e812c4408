"""Sequential Monte Carlo against conjugate answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import likely as lk
from likely.core.errors import DataError, DomainError
from likely.inference.sequential_monte_carlo import smc_sampler

RNG = np.random.default_rng(0)
Y = RNG.normal([1.0, -0.5], 1.0, (12, 2))
PRIOR = lk.Gaussian([0.0, 0.0], [4.0, 1.0])
NOISE = np.array([[1.0, 0.4], [0.4, 0.8]])


def piece(y):
    return lambda x: multivariate_normal.logpdf(x - y, cov=NOISE)


def likelihood(x):
    return sum(piece(y)(x) for y in Y)


def exact():
    """Evidence and posterior of the mean of Gaussian rows, one row after another."""
    distribution, total = PRIOR, 0.0
    logs = []
    for y in Y:
        total += float(distribution.noisy(NOISE).log_prob(y[None])[0])
        distribution = distribution.posterior(y, np.eye(2), noise=NOISE)
        logs.append(total)
    return distribution, np.diff(logs, prepend=0.0)


WAYS = {
    "tempered": {"likelihood": likelihood},
    "given temperatures": {"likelihood": likelihood, "temperatures": [0.02, 0.1, 0.3, 1.0]},
    "pieces": {"pieces": [piece(y) for y in Y]},
    "targets": {"targets": [lambda x, k=k: PRIOR.log_prob(x) + k / 4 * likelihood(x) for k in (1, 2, 3, 4)]},
}


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_evidence_and_posterior(way):
    distribution, logs = exact()
    found = [smc_sampler(PRIOR, n_particles=1000, random_state=s, **WAYS[way]) for s in range(8)]
    evidence = np.array([f.log_evidence for f in found])
    assert abs(np.log(np.exp(evidence - logs.sum()).mean())) < 0.12 and evidence.std() < 0.3
    mean = np.mean([f.mean for f in found], axis=0)
    np.testing.assert_allclose(mean, distribution.mean, atol=0.02)
    np.testing.assert_allclose(
        np.mean([f.covariance for f in found], axis=0), distribution.covariance, rtol=0.15, atol=0.01
    )


def test_one_more_observation_a_step():
    _, logs = exact()
    found = smc_sampler(PRIOR, n_particles=8000, pieces=(piece(y) for y in Y), random_state=1)  # a generator will do
    np.testing.assert_allclose(found.log_evidences, logs, atol=0.12)
    assert found.temperatures is None and len(found.ess) == 12
    moved = ~np.isnan(found.acceptance_rate)
    assert 0 < moved.sum() < 12 and (found.ess[moved] < 4000).all() and (found.ess[~moved] >= 4000).all()


def test_two_modes_far_apart():
    """A mixture that a chain would not cross: both modes keep their share."""

    def target(x):
        return np.logaddexp(np.log(0.3) + norm.logpdf(x[:, 0], -6, 0.3), np.log(0.7) + norm.logpdf(x[:, 0], 6, 0.3))

    prior = lk.Gaussian([0.0], 25.0)
    found = [
        smc_sampler(prior, n_particles=2000, likelihood=lambda x: target(x) - prior.log_prob(x), random_state=s)
        for s in range(8)
    ]
    assert np.mean([f.belief.expect(lambda x: x[:, 0] > 0) for f in found]) == pytest.approx(0.7, abs=0.05)
    assert np.mean([f.log_evidence for f in found]) == pytest.approx(0.0, abs=0.1)


def test_temperatures_rise_to_one_at_the_wanted_size():
    found = smc_sampler(PRIOR, n_particles=2000, likelihood=likelihood, ess_threshold=0.7)
    assert found.temperatures[-1] == 1.0 and (np.diff(found.temperatures) > 0).all()
    np.testing.assert_allclose(found.ess[:-1], 1400, rtol=0.01)
    assert ((found.acceptance_rate > 0.1) & (found.acceptance_rate < 0.6)).all()


def test_hard_edges():
    """A likelihood of 0 beyond an edge: P(x > 1) under a normal distribution."""

    def inside(x):
        return np.where(x[:, 0] > 1.0, 0.0, -np.inf)

    found = smc_sampler(lk.Gaussian([0.0], 1.0), n_particles=20_000, likelihood=inside)
    assert found.log_evidence == pytest.approx(norm.logsf(1.0), abs=0.06)
    assert found.belief.states.min() > 1.0
    assert found.mean[0] == pytest.approx(norm.pdf(1.0) / norm.sf(1.0), abs=0.04)


def test_anybodys_moves():
    """Exact draws of the posterior as the kernel: the answer needs no other."""
    distribution, _ = exact()
    found = smc_sampler(
        PRIOR,
        n_particles=3000,
        likelihood=likelihood,
        mcmc_steps=lambda x, log, rng: rng.permutation(distribution.sample(len(x), rng)),
    )
    np.testing.assert_allclose(found.mean, distribution.mean, atol=0.03)
    still = smc_sampler(PRIOR, n_particles=500, likelihood=likelihood, mcmc_steps=0)
    assert np.isnan(still.acceptance_rate).all() and np.isfinite(still.log_evidence)


def test_the_same_bits_again():
    a, b = (smc_sampler(PRIOR, n_particles=200, likelihood=likelihood, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(a.belief.states, b.belief.states)
    assert a.log_evidence == b.log_evidence != smc_sampler(PRIOR, n_particles=200, likelihood=likelihood).log_evidence
    assert "200 particles" in repr(a)
    none = smc_sampler(PRIOR, [], n_particles=50)
    assert none.log_evidence == 0.0 and len(none.belief) == 50
    assert np.isfinite(smc_sampler(PRIOR, n_particles=1, pieces=[piece(Y[0])]).log_evidence)


@pytest.mark.parametrize(
    "how, error, words",
    [
        ({}, DomainError, "one of targets"),
        ({"likelihood": likelihood, "targets": []}, DomainError, "one of targets"),
        ({"likelihood": 3}, DomainError, "must be a function"),
        ({"likelihood": lambda x: x}, DataError, "one log-density per state"),
        ({"likelihood": lambda x: x[:, 0] * np.nan}, DataError, "below infinity"),
        ({"likelihood": lambda x: np.full(len(x), np.inf)}, DataError, "below infinity"),
        ({"likelihood": lambda x: np.full(len(x), -np.inf)}, DataError, "positive at some"),
        ({"pieces": [lambda x: np.full(len(x), -np.inf)]}, DataError, "positive density under target 1"),
        ({"likelihood": lambda x: "a"}, DataError, "log-densities"),
        ({"likelihood": likelihood, "ess_threshold": 1.0}, DomainError, "between 0 and 1"),
        ({"targets": [likelihood], "ess_threshold": 2}, DomainError, "0 … 1"),
        ({"likelihood": likelihood, "temperatures": [0.5, 0.2, 1.0]}, DomainError, "increase"),
        ({"likelihood": likelihood, "temperatures": []}, DomainError, "increase"),
        ({"targets": [likelihood], "temperatures": [1.0]}, DomainError, "temperatures need a likelihood"),
        ({"likelihood": likelihood, "n_particles": 0}, DomainError, "n_particles must be"),
        ({"likelihood": likelihood, "mcmc_steps": -1}, DomainError, "mcmc_steps"),
        ({"likelihood": likelihood, "resample": "no"}, DomainError, "resample"),
    ],
)
def test_what_cannot_be(how, error, words):
    with pytest.raises(error, match=words):
        smc_sampler(PRIOR, **{"n_particles": 20, **how})


def test_initial_must_be_a_density():
    with pytest.raises(DomainError, match="initial must be a density"):
        smc_sampler(3, likelihood=likelihood)


@pytest.mark.parametrize("far", [1e10, 1e100, 1e150])
def test_weights_of_an_outlier_add_up_to_one(far):
    found = smc_sampler(
        lk.Gaussian([0.0], 1e-12), pieces=[lambda x: -0.5 * (x[:, 0] - far) ** 2], n_particles=500, ess_threshold=0
    )
    assert np.exp(found.belief.log_weights).sum() == pytest.approx(1.0, abs=1e-9)
    assert found.log_evidence == pytest.approx(-0.5 * far**2) and 1 <= found.ess[0] <= 500 + 1e-6


# ------------------------------------------------------------------- spaces that grow


def test_paths_that_grow_give_the_evidence_of_a_linear_model():
    """f(x₁ … x_n) = p(x₁ … x_n, y₁ … y_n) with a proposal that sees y: Kalman's filter has the integral."""
    model = lk.LinearGaussian(
        transition=[[0.9]],
        process_covariance=[[0.5]],
        observation=[[1.0]],
        observation_covariance=[[0.3]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    y = model.sample(1, np.random.default_rng(3), length=12)[0][:, 0]

    def joint(x, k):
        x = x[:, :, 0]
        log = norm.logpdf(x[:, 0]) + norm.logpdf(y[:k], x, np.sqrt(0.3)).sum(axis=1)
        return log + norm.logpdf(x[:, 1:], 0.9 * x[:, :-1], np.sqrt(0.5)).sum(axis=1)

    def toward(mean, variance, seen):
        gain = variance / (variance + 0.3)
        return lk.Gaussian(mean + gain * (seen - mean), gain * 0.3)

    targets = [lambda x, k=k: joint(x, k) for k in range(1, 13)]
    found = lk.inference.smc_sampler(
        toward(np.zeros(1), 1.0, y[0]), targets, n_particles=4000, random_state=1,
        proposal=lambda x: toward(0.9 * x[:, -1], 0.5, y[x.shape[1]]),
    )  # fmt: skip
    assert found.log_evidence == pytest.approx(float(model.log_prob([y[:, None]])[0]), abs=0.1)
    assert found.paths.shape == (4000, 12, 1) and found.ess[0] == pytest.approx(4000)  # the best first draw
    last = model.filter(y[:, None])
    assert found.mean[0] == pytest.approx(last.mean[-1, 0], abs=0.05)
    again = lk.inference.smc_sampler(
        toward(np.zeros(1), 1.0, y[0]), targets, n_particles=4000, random_state=1, mcmc_steps=2,
        proposal=lambda x: toward(0.9 * x[:, -1], 0.5, y[x.shape[1]]),
    )  # fmt: skip
    assert again.log_evidence == pytest.approx(float(model.log_prob([y[:, None]])[0]), abs=0.1)


@pytest.mark.slow
def test_self_avoiding_walks_are_counted():
    """4, 12, 36, 100, 284, 780, 2172, 5916 walks of 1 … 8 steps on the square grid."""
    way = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])

    def new_places(x):
        places = np.cumsum(way[x[:, :, 0].astype(int)], axis=1) @ [1, 1000]
        return np.where([len({0, *one}) == len(one) + 1 for one in places.tolist()], 0.0, -np.inf)

    step = lk.Categorical(np.full(4, 0.25), levels=[0, 1, 2, 3])
    found = lk.inference.smc_sampler(step, [new_places] * 8, n_particles=20_000, proposal=lambda x: step)
    counted = np.exp(found.log_evidences.cumsum())
    np.testing.assert_allclose(counted, [4, 12, 36, 100, 284, 780, 2172, 5916], rtol=0.05)
    assert new_places(found.paths[:50]).max() == 0


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"proposal": lambda x: 3.0}, "a density of x must be given"),
        ({"proposal": lambda x: lk.Gaussian(np.zeros((7, 1)), 1.0)}, r"one density per path \(50\)"),
        ({"proposal": 3}, "function of paths"),
    ],
)
def test_proposals_that_are_none(how, says):
    with pytest.raises(lk.LikelyError, match=says):
        lk.inference.smc_sampler(
            lk.Gaussian([0.0], 1.0), [lambda x: x[:, 0, 0], lambda x: x[:, 1, 0]], n_particles=50, **how
        )

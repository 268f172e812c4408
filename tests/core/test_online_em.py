"""Learning from a stream: one statistic is kept, and with step 1 nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DomainError, Gaussian, fit, online_em
from likely.core import Block


@pytest.fixture
def x(rng):
    return rng.standard_normal((300, 2)) @ [[2.0, 0.5], [0.0, 0.1]] + [1e8, -3.0]


def last(models):
    *_, model = models
    return model


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("prior", [None, "weak"])
def test_step_one_ends_at_the_batch_answer(x, kind, prior):
    start = Gaussian.blank(x, kind=kind)
    streamed = last(online_em(start, (x[i : i + 7] for i in range(0, 300, 7)), step=1.0, prior=prior))
    batch = fit(start, x, prior=prior).model
    assert (np.abs(streamed.mean - batch.mean) <= 2 * np.spacing(np.abs(batch.mean))).all()
    np.testing.assert_allclose(streamed.covariance, batch.covariance, rtol=1e-12, atol=1e-12 * batch.variance.min())


def test_blocks_carry_weights(x, rng):
    w = rng.random(300)
    start = Gaussian.blank(x)
    streamed = last(online_em(start, (Block(x[i : i + 50], w[i : i + 50]) for i in range(0, 300, 50))))
    np.testing.assert_allclose(streamed.covariance, Gaussian.fit(x, w).covariance, rtol=1e-12)


def test_a_model_comes_after_each_block(x):
    models = list(online_em(Gaussian.blank(x), np.split(x, 3)))
    for n, model in zip((100, 200, 300), models, strict=True):
        np.testing.assert_allclose(model.covariance, Gaussian.fit(x[:n]).covariance, rtol=1e-12)


def test_step_zero_keeps_the_last_block_only(x):
    model = last(online_em(Gaussian.blank(x), np.split(x, 3), step=0.0))
    np.testing.assert_allclose(model.covariance, Gaussian.fit(x[200:]).covariance, rtol=1e-9)


@pytest.mark.parametrize("eta", [0.1, 0.5])
def test_a_constant_step_forgets_geometrically(x, eta):
    blocks = np.split(x, 6)
    model = last(online_em(Gaussian.blank(x), blocks, step=lambda t: 1.0 if t == 1 else eta))
    share = np.array([(1 - eta) ** 5] + [eta * (1 - eta) ** (5 - t) for t in range(1, 6)])
    want = Gaussian.fit(x, np.repeat(share, 50))
    np.testing.assert_allclose(model.covariance, want.covariance, rtol=1e-12)
    np.testing.assert_allclose(model.mean, want.mean, rtol=1e-15)


def test_a_power_step_weights_blocks_as_robbins_and_monro_say(x):
    a, blocks = 0.6, np.split(x, 5)
    model = last(online_em(Gaussian.blank(x), blocks, step=a))
    eta = np.arange(1, 6) ** -a
    share = np.array([eta[t] * np.prod(1 - eta[t + 1 :]) for t in range(5)])
    np.testing.assert_allclose(model.covariance, Gaussian.fit(x, np.repeat(share, 60)).covariance, rtol=1e-11)


def test_a_stream_with_missing_values_learns(rng):
    truth = Gaussian([1.0, 2.0], [[1.0, 0.8], [0.8, 1.0]])
    x = truth.sample(20_000, rng)
    x[rng.random(x.shape) < 0.3] = np.nan
    model = last(online_em(Gaussian.blank(x[:100]), np.split(x, 100), step=0.6))
    assert truth.kl(model) < 0.01


@pytest.mark.parametrize("step", [-0.1, 1.1])
def test_a_power_lies_between_zero_and_one(x, step):
    with pytest.raises(DomainError, match=r"step must lie in \[0, 1\]"):
        list(online_em(Gaussian.blank(x), [x], step=step))


@pytest.mark.parametrize("eta", [0.0, 1.5, np.nan])
def test_a_step_size_lies_above_zero_and_up_to_one(x, eta):
    with pytest.raises(DomainError, match=r"in \(0, 1\], got .* at t = 2"):
        list(online_em(Gaussian.blank(x), [x, x], step=lambda t: 1.0 if t == 1 else eta))

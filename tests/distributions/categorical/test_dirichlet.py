"""The Dirichlet distribution as a density, and as conjugate prior of a Categorical."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.protocols import Prior
from likely.distributions.categorical.categorical import Categorical, LevelCounts
from likely.distributions.categorical.dirichlet import Dirichlet

EPS = float(np.finfo(float).eps)
ALPHA = np.array([0.7, 2.0, 4.5])

# --------------------------------------------------------------------- the distribution


def worst_bits(n: int) -> float:
    """Wrong bits beyond those that rounding x and α alone would spoil."""
    rng, worst = np.random.default_rng(5), -99.0
    with mp.workdps(50):
        for _ in range(n):
            size = rng.integers(2, 6)
            alpha = (
                10 ** rng.uniform(-6, 6, size)
                if rng.random() < 0.5
                else 10 ** rng.uniform(-6, 6) * rng.uniform(0.5, 2, size)
            )
            x = Dirichlet(alpha).sample(1, rng)[0] if rng.random() < 0.6 else rng.dirichlet(np.ones(size))
            if (x <= 0).any():
                continue
            A, X = [mp.mpf(float(a)) for a in alpha], [mp.mpf(float(v)) for v in x]
            total = sum(A)
            exact = mp.loggamma(total) + sum((a - 1) * mp.log(v) - mp.loggamma(a) for a, v in zip(A, X, strict=True))
            if exact > -1e5:
                by_alpha = sum(
                    abs(a * (mp.digamma(total) - mp.digamma(a) + mp.log(v))) for a, v in zip(A, X, strict=True)
                )
                error = abs(mp.mpf(float(Dirichlet(alpha).log_prob(x[None])[0])) - exact)
                spoilt = abs(exact) + by_alpha + sum(abs(a - 1) for a in A)
                worst = max(worst, float(mp.log(error / (EPS * spoilt), 2)) if error else -99.0)
    return worst


@pytest.mark.slow
def test_log_prob_is_right_to_the_last_bits():
    assert worst_bits(400) <= 2


@pytest.mark.campaign
def test_log_prob_is_right_to_the_last_bits_at_ten_thousand_points():
    assert worst_bits(10_000) <= 2


def test_against_scipy(rng):
    x = rng.dirichlet([1.0, 2.0, 3.0], 30)
    distribution, peer = Dirichlet(ALPHA), scipy.stats.dirichlet(ALPHA)
    assert np.allclose(distribution.log_prob(x), peer.logpdf(x.T), rtol=1e-12)
    assert np.allclose(distribution.mean, peer.mean())
    assert np.allclose(distribution.variance, peer.var())
    assert np.allclose(distribution.covariance, peer.cov())
    assert distribution.entropy() == pytest.approx(
        float(peer.entropy()), rel=1e-12
    ) and distribution.concentration == pytest.approx(7.2)
    beta = scipy.stats.beta(2.0, 5.0)
    assert np.allclose(Dirichlet([2.0, 5.0]).log_prob(x[:, :1] * [1, -1] + [0, 1]), beta.logpdf(x[:, 0]), rtol=1e-12)
    stack = Dirichlet([ALPHA, ALPHA[::-1]])
    assert np.array_equal(stack.log_prob(x), np.stack([stack.member(k).log_prob(x) for k in range(2)], axis=1))
    assert np.allclose(stack.covariance[1], scipy.stats.dirichlet(ALPHA[::-1]).cov())


def test_it_adds_up_to_one():
    nodes, shares = np.polynomial.legendre.leggauss(40)
    u, w = 0.5 + 0.5 * nodes, 0.5 * shares
    x, v = np.meshgrid(u, u, indexing="ij")  # y = (1 − x) v covers the triangle
    rows = np.stack([x, (1 - x) * v, (1 - x) * (1 - v)], axis=-1).reshape(-1, 3)
    for alpha in ([1.0, 2.0, 3.0], [4.0, 1.0, 7.0]):
        density = np.exp(Dirichlet(alpha).log_prob(rows)).reshape(x.shape) * (1 - x)
        assert w @ density @ w == pytest.approx(1.0, rel=1e-12)


def test_points_off_the_simplex_and_on_its_edge():
    distribution = Dirichlet([1.0, 2.0, 0.5])
    assert distribution.log_prob([[0.5, 0.6, 0.1], [-0.1, 0.6, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]).tolist() == [
        -np.inf,
        -np.inf,
        -np.inf,
        np.inf,
    ]
    assert np.isfinite(distribution.log_prob([[0.0, 0.4, 0.6]]))[0]
    assert distribution.log_prob([[1.0, 0.0, 0.0]])[0] == -np.inf  # 0 · ∞: never NaN
    with pytest.raises(DataError, match="row 0, column 1"):
        distribution.log_prob([[0.5, np.inf, 0.5]])


def test_missing_values_are_summed_into_one_entry():
    distribution = Dirichlet([0.7, 2.0, 4.5, 1.1])
    gap = np.array([[0.2, np.nan, 0.3, np.nan]])
    assert distribution.log_prob(gap)[0] == pytest.approx(
        Dirichlet([0.7, 4.5, 3.1]).log_prob([[0.2, 0.3, 0.5]])[0], rel=1e-13
    )
    assert distribution.log_prob([[0.2, np.nan, 0.3, 0.1]])[0] == pytest.approx(
        distribution.log_prob([[0.2, 0.4, 0.3, 0.1]])[0], rel=1e-13
    )
    assert distribution.log_prob(np.full((2, 4), np.nan)).tolist() == [0.0, 0.0]

    def along(z):
        return np.exp(distribution.log_prob([[0.2, z, 0.3, 0.5 - z]])[0])

    assert np.exp(distribution.log_prob(gap)[0]) == pytest.approx(scipy.integrate.quad(along, 0, 0.5)[0], rel=1e-8)


@pytest.mark.slow
def test_entropy_and_divergence_keep_their_digits(rng):
    with mp.workdps(50):
        for _ in range(100):
            a = 10 ** rng.uniform(-6, 6, 3)
            b = 10 ** rng.uniform(-6, 6, 3) if rng.random() < 0.5 else a * (1 + 1e-4 * rng.normal(size=3))
            A, B = [mp.mpf(float(v)) for v in a], [mp.mpf(float(v)) for v in b]
            P, Q = sum(A), sum(B)
            entropy = (
                sum(mp.loggamma(v) for v in A)
                - mp.loggamma(P)
                + (P - 3) * mp.digamma(P)
                - sum((v - 1) * mp.digamma(v) for v in A)
            )
            assert abs(float(Dirichlet(a).entropy() - entropy)) <= 1e-14 * (30 + abs(float(entropy)))
            kl = (
                mp.loggamma(P)
                - mp.loggamma(Q)
                + sum(
                    mp.loggamma(v) - mp.loggamma(u) + (u - v) * (mp.digamma(u) - mp.digamma(P))
                    for u, v in zip(A, B, strict=True)
                )
            )
            assert abs(float(Dirichlet(a).kl(Dirichlet(b)) - kl)) <= 1e-12 * float(kl) + 1e-13


def test_draws_follow_the_distribution(rng):
    distribution = Dirichlet([ALPHA, [1e-3, 1e-3, 1e-3]])
    x = distribution.sample(20_000, rng)
    assert x.shape == (20_000, 2, 3) and np.abs(x.sum(axis=-1) - 1).max() <= 1e-14 and (x >= 0).all()
    for i in range(3):
        peer = scipy.stats.beta(ALPHA[i], ALPHA.sum() - ALPHA[i])
        assert scipy.stats.kstest(x[:, 0, i], peer.cdf).statistic <= 0.0191  # the DKW bound at 1e-6
    assert np.abs(x[:, 1].mean(axis=0) - 1 / 3).max() <= 5 * np.sqrt(2 / 9 / 20_000)


# ------------------------------------------------------------------- the prior


def test_it_plays_the_role():
    assert isinstance(Dirichlet([1.0, 1.0]), Prior)


def test_three_of_three_ones():
    """Herbst 2.1: the frequency is 1; after a flat prior 4/5 is predicted, after Beta(2, 2) 5/7."""
    model = Categorical.over(2)
    ones = model.collect([1, 1, 1])
    assert model.refit(ones).probs[1] == 1.0
    assert Dirichlet([1.0, 1.0]).update(ones).predictive().probs[1] == pytest.approx(4 / 5, rel=1e-15)
    assert Dirichlet([2.0, 2.0]).update(ones).predictive().probs[1] == pytest.approx(5 / 7, rel=1e-15)
    assert Dirichlet([2.0, 2.0]).update(ones).point().probs[1] == pytest.approx(4 / 5, rel=1e-15)


def stats_of(n, rng):
    model = Categorical(np.full((3, 4), 0.25))
    return model.collect(rng.integers(-1, 4, n), rng.random((n, 3)))


@pytest.mark.parametrize("prior", [Dirichlet([0.7, 2.0, 4.5, 1.0]), Dirichlet(np.arange(1.0, 13.0).reshape(3, 4))])
def test_updating_twice_is_updating_with_the_sum(prior, rng):
    a, b = stats_of(30, rng), stats_of(20, rng)
    once, twice = prior.update(a + b), prior.update(a).update(b)
    assert once.alpha.shape == (3, 4) and np.allclose(once.alpha, twice.alpha, rtol=1e-13, atol=0)
    assert np.allclose(prior.log_evidence(a + b), prior.log_evidence(a) + prior.update(a).log_evidence(b), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_evidence_is_the_product_of_predictives(scale, rng):
    x, prior = rng.integers(-1, 3, 80), Dirichlet(ALPHA * scale)
    model, one_by_one, now = Categorical.over(3), [], prior
    for value in x:
        one_by_one.append(now.predictive().log_prob([value])[0])
        now = now.update(model.collect([value]))
    assert prior.log_evidence(model.collect(x)) == pytest.approx(np.sum(one_by_one), rel=1e-12)


def test_evidence_of_a_sequence_by_hand():
    stats = Categorical.over(2).collect([0, 1, 1], [1, 1, 1])
    assert Dirichlet([1.0, 1.0]).log_evidence(stats) == pytest.approx(np.log(1 / 2 * 1 / 3 * 2 / 4), rel=1e-14)
    wanted, _ = scipy.integrate.quad(lambda p: (1 - p) * p**2, 0, 1)
    assert Dirichlet([1.0, 1.0]).log_evidence(stats) == pytest.approx(np.log(wanted), rel=1e-12)


def test_bayes_theorem_holds_at_every_point(rng):
    stats, prior = stats_of(20, rng), Dirichlet([0.7, 2.0, 4.5, 1.0])
    models = Categorical(rng.dirichlet(np.ones(4), 3))
    for k in range(3):
        one, mine = models.member(k), stats.member(k)
        left = one.objective(mine, prior) - prior.log_evidence(mine)
        assert left == pytest.approx(prior.update(mine).log_density(one), rel=1e-11)
    each = [prior.log_density(models.member(k)) for k in range(3)]
    assert np.array_equal(prior.log_density(models), each)
    stack = Dirichlet([ALPHA, 2 * ALPHA, 3 * ALPHA])
    theta = Categorical(rng.dirichlet(np.ones(3), 3))
    assert np.array_equal(stack.log_density(theta), [stack.member(k).log_density(theta.member(k)) for k in range(3)])


def test_the_mode_maximizes_the_density(rng):
    distribution = Dirichlet([1.5, 2.0, 4.5])
    best = distribution.log_density(distribution.point("mode"))
    assert (distribution.log_prob(rng.dirichlet(50 * distribution.mode, 200)) < best).all()


@pytest.mark.parametrize(
    ("alpha", "mode"),
    [
        ([3.0, 2.0, 1.0], [2 / 3, 1 / 3, 0.0]),
        ([0.5, 2.0, 4.0], [0.0, 0.25, 0.75]),
        ([0.5, 0.5, 1.5], [0.0, 0.0, 1.0]),
        ([1.0, 1.0], [0.5, 0.5]),
        ([0.2, 0.6], [0.25, 0.75]),
        ([[0.5, 2.0], [0.1, 0.3]], [[0.0, 1.0], [0.25, 0.75]]),
    ],
)
def test_the_mode_is_guarded_on_the_edge(alpha, mode):
    """The errata to de Freitas: with α below 1 the formula would turn negative."""
    found = Dirichlet(alpha).point("mode")
    assert np.allclose(found.probs, mode, rtol=1e-14) and (found.probs >= 0).all()
    Categorical(found.probs)  # its constructor agrees


def test_points_and_predictive():
    distribution = Dirichlet([2.0, 5.0], ["no", "yes"])
    assert distribution.point("mean").probs.tolist() == distribution.predictive().probs.tolist() == [2 / 7, 5 / 7]
    median = scipy.stats.beta(2.0, 5.0).median()
    assert distribution.point("median").probs[0] == pytest.approx(median, rel=1e-10)
    assert distribution.point("median").probs.sum() == pytest.approx(1.0)
    assert distribution.point("median").levels.tolist() == ["no", "yes"]
    assert distribution.update(LevelCounts([1.0, 2.0], 3.0)).levels is distribution.levels
    assert Dirichlet([3.0]).point("median").probs.tolist() == [1.0]
    tiny = Dirichlet([1e-6, 1e-6, 1e-6]).point("median").probs  # each entry's median is 0 to rounding
    assert tiny.sum() == pytest.approx(1.0)
    with pytest.raises(DomainError, match="rule"):
        distribution.point("middle")


def test_models_drawn_from_it_have_its_probabilities(rng):
    distribution = Dirichlet([ALPHA], ["a", "b", "c"])
    draws = np.array([distribution.draw(rng).probs for _ in range(2000)])
    assert draws.shape == (2000, 1, 3) and distribution.draw(rng).levels.tolist() == ["a", "b", "c"]
    assert (np.abs(draws.mean(axis=0) - distribution.mean) <= 5 * np.sqrt(distribution.variance / 2000)).all()


def test_weak_and_symmetric():
    stats = Categorical.over(4).collect([0, 0, 3])
    assert Dirichlet.weak(stats).alpha.tolist() == [1.25] * 4
    assert np.allclose(Dirichlet.weak(stats).update(stats).point().probs, (np.array([2, 0, 0, 1]) + 0.25) / 4)
    assert Dirichlet.symmetric(3, 0.5).alpha.tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Dirichlet([1.0, 0.0]), DomainError, "positive, got 0.0"),
        (lambda: Dirichlet([[[1.0]]]), ShapeError, r"\(K, L\)"),
        (lambda: Dirichlet([1.0, 1.0], ["a"]), ShapeError, r"Dirichlet: levels must have shape \(2,\)"),
        (lambda: Dirichlet([1.0, 1.0]).update(LevelCounts([1.0] * 3, 3.0)), ShapeError, r"fit alpha of shape \(2,\)"),
        (
            lambda: Dirichlet([[1.0, 1.0]]).update(LevelCounts([1.0] * 2, 2.0)),
            ShapeError,
            r"fit alpha of shape \(1, 2\)",
        ),
        (lambda: Dirichlet([1.0, 1.0]).log_density(Categorical.over(3)), ShapeError, "2 levels"),
        (lambda: Dirichlet([1.0, 1.0]).log_prob([[0.2, 0.3, 0.5]]), ShapeError, r"\(n, 2\)"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_moments_are_those_of_the_shares():
    x = lk.Dirichlet([1.0, 2.0, 5.0]).sample(80, np.random.default_rng(0))
    w = np.random.default_rng(1).integers(0, 3, 80).astype(float)
    distribution, copies = lk.Dirichlet.moments_fit(x, w), np.repeat(x, w.astype(int), axis=0)
    share = distribution.alpha / distribution.alpha.sum()
    assert np.allclose(share, copies.mean(axis=0))
    assert (share * (1 - share)).sum() / (distribution.alpha.sum() + 1) == pytest.approx(copies.var(axis=0).sum())
    with pytest.raises(lk.DataError, match="alike"):
        lk.Dirichlet.moments_fit([[0.5, 0.5], [0.5, 0.5]])

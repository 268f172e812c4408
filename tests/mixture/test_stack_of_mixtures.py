"""A stack of mixtures equals its members: scoring, fitting, ties between them, and concatenated statistics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from likely import (
    Bernoulli,
    Categorical,
    DomainError,
    Gaussian,
    Mixture,
    Multinomial,
    Poisson,
    Product,
    ShapeError,
    StoppingRule,
    fit,
)
from likely.core import Blocks, Columns, Serial, Threads
from likely.distributions import Tied
from likely.mixture.mixture import MixtureStats
from likely.priors import MixturePrior
from tests.mixture.test_mixture import close
from tests.properties.compare import bits
from tests.reliability.em_problems import gaussians
from tests.reliability.plainly import log_probs

C, M, D = 3, 2, 2
KINDS = ["full", "diagonal", "spherical", "tied", "shared covariance", "shared all", "Poisson", "categorical",
         "multinomial", "Bernoulli", "product", "mixtures"]  # fmt: skip


def parts_of(kind, rng, K=C * M):
    if kind in ("full", "diagonal", "spherical"):
        return gaussians(rng, K, D, kind)
    if kind == "tied":
        return gaussians(rng, K, D, "full", tied=True)
    if kind == "shared covariance":  # pooled within a mixture
        distribution, index = gaussians(rng, K, D, "full"), np.repeat(np.arange(K // M), M)
        return Tied(Gaussian(distribution.mean, distribution.covariance[index * M]), index, "covariance")
    if kind == "shared all":  # the same parts for all, weights of their own
        return Tied(gaussians(rng, M, D, "full"), np.tile(np.arange(M), K // M))
    if kind == "mixtures":
        return Mixture(rng.dirichlet(np.ones(2), K), gaussians(rng, 2 * K, D, "full"))
    if kind == "product":
        return Product({"a": gaussians(rng, K, 1, "diagonal"), "b": Poisson(rng.gamma(2.0, 2.0, (K, 1)))})
    return {
        "Poisson": lambda: Poisson(rng.gamma(2.0, 2.0, (K, D))),
        "categorical": lambda: Categorical(rng.dirichlet(np.ones(4), K)),
        "multinomial": lambda: Multinomial(rng.dirichlet(np.ones(D), K), length=5),
        "Bernoulli": lambda: Bernoulli(rng.uniform(0.1, 0.9, (K, D))),
    }[kind]()  # fmt: skip


def stack_of(kind, seed=1):
    rng = np.random.default_rng(seed)
    return Mixture(rng.dirichlet(np.full(M, 3.0), C), parts_of(kind, rng))


def rows_of(m, n=90, seed=2):
    rng = np.random.default_rng(seed)
    return Mixture(np.full(C, 1 / C), m).sample(n, rng)


# -------------------------------------------------------------------- scoring


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_scores_as_its_members(kind):
    m = stack_of(kind)
    x = rows_of(m)
    want = log_probs(m, x)
    np.testing.assert_allclose(m.log_prob(x), want, rtol=1e-10, atol=1e-10)
    for c in range(C):
        np.testing.assert_allclose(m.member(c).log_prob(x), want[:, c], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(m.take([2, 0]).log_prob(x), want[:, [2, 0]], rtol=1e-10, atol=1e-10)
    assert m.members == C and m.size == M and m.member(1).members is None and m.log_joint(x).shape == (len(x), C * M)


def test_draws_of_a_stack_stand_side_by_side():
    m = stack_of("full")
    x = m.sample(20_000, np.random.default_rng(3))
    assert x.shape == (20_000, C, D)
    for c in range(C):
        mean = m.weights[c] @ m.components.mean[c * M : (c + 1) * M]
        assert (np.abs(x[:, c].mean(axis=0) - mean) < 5 * x[:, c].std(axis=0) / np.sqrt(20_000)).all()


def test_what_needs_one_mixture_says_so():
    m = stack_of("full")
    for verb in ("posterior", "log_posterior"):
        with pytest.raises(DomainError, match=r"a stack of 3: take member\(c\) first"):
            getattr(m, verb)(rows_of(m))
    with pytest.raises(DomainError, match="pruned"):
        m.pruned()
    with pytest.raises(ShapeError, match="one column per mixture"):
        m.collect(rows_of(m), np.ones((90, 2)))
    with pytest.raises(ShapeError, match="one entry per row"):
        m.member(0).collect(rows_of(m), np.ones((90, 2)))


# ------------------------------------------------------------------- learning


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_weights_of_one_and_each_learns_alone(kind, hard):
    m = stack_of(kind)
    x, rng = rows_of(m, 400), np.random.default_rng(4)
    labels, w = rng.integers(-1, C, 400), rng.random(400)
    by_label = m.collect(x, w, labels=labels, hard=hard)
    shares = np.where(labels[:, None] == np.arange(C), w[:, None], 0.0)
    by_weight = m.collect(x, shares, hard=hard)
    np.testing.assert_allclose(by_label.counts, by_weight.counts, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(by_label.entropy, by_weight.entropy, rtol=1e-9, atol=1e-9)
    one, other = m.refit(by_label), m.refit(by_weight)
    np.testing.assert_allclose(one.log_prob(x), other.log_prob(x), rtol=1e-7, atol=1e-7)
    assert m.objective(by_label) == pytest.approx(m.objective(by_weight), rel=1e-10)
    if kind in ("shared all", "tied"):  # what they share, they learn together
        return
    for c in range(C):
        mine = np.flatnonzero(labels == c)
        alone = m.member(c).refit(m.member(c).collect(x[mine], w[mine], hard=hard))
        np.testing.assert_allclose(alone.log_prob(x), one.log_prob(x)[:, c], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_the_likelihood_of_what_each_owns(kind):
    m = stack_of(kind)
    x, rng = rows_of(m), np.random.default_rng(5)
    w = rng.random((90, C))
    want = float((w * log_probs(m, x)).sum())
    assert m.objective(m.collect(x, w)) == pytest.approx(want, rel=1e-9)
    inner = log_probs(m.components, x) if kind != "mixtures" else None
    if inner is not None:  # the maximum approximation counts the best part alone
        best = (inner + np.log(m.weights.ravel())).reshape(90, C, M).max(axis=2)
        assert m.objective(m.collect(x, w, hard=True)) == pytest.approx(float((w * best).sum()), rel=1e-9)


def test_weights_follow_the_textbook():
    """One step by hand: w_cm = Σ_i γ_icm / Σ_i,m γ_icm, over the rows that class c owns."""
    m = stack_of("full")
    x, labels = rows_of(m), np.random.default_rng(6).integers(0, C, 90)
    joint = (log_probs(m.components, x) + np.log(m.weights.ravel())).reshape(90, C, M)
    share = softmax(joint, axis=2) * (labels[:, None] == np.arange(C))[:, :, None]
    fitted = m.refit(m.collect(x, labels=labels))
    np.testing.assert_allclose(fitted.weights, share.sum(axis=0) / share.sum(axis=(0, 2))[:, None], rtol=1e-10)
    flat = share.reshape(90, C * M)
    mean = flat.T @ x / flat.sum(axis=0)[:, None]
    np.testing.assert_allclose(fitted.components.mean, mean, rtol=1e-9)
    for k in range(C * M):
        away = x - mean[k]
        want = (flat[:, k, None] * away).T @ away / flat[:, k].sum()
        np.testing.assert_allclose(fitted.components.covariance[k], want, rtol=1e-8, atol=1e-10)


def test_tied_densities_are_learned_from_all_classes_and_weights_from_each():
    m = stack_of("shared all")
    x, labels = rows_of(m), np.random.default_rng(7).integers(0, C, 90)
    inner = log_probs(m.components.components, x)
    share = softmax(inner[:, None, :] + np.log(m.weights), axis=2)[np.arange(90), labels]  # (n, M)
    fitted = m.refit(m.collect(x, labels=labels))
    np.testing.assert_allclose(fitted.components.components.mean, share.T @ x / share.sum(axis=0)[:, None], rtol=1e-9)
    want = np.stack([share[labels == c].mean(axis=0) for c in range(C)])
    np.testing.assert_allclose(fitted.weights, want, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_without_rows_keeps_what_it_had(kind):
    m = stack_of(kind)
    x = rows_of(m)
    labels = np.random.default_rng(8).integers(0, C - 1, 90)  # nobody owns the last
    fitted = m.refit(m.collect(x, labels=labels))
    np.testing.assert_array_equal(fitted.weights[-1], m.weights[-1])
    assert np.isfinite(fitted.log_prob(x)).all()
    if kind not in ("tied", "shared all"):
        np.testing.assert_array_equal(fitted.member(C - 1).log_prob(x), m.member(C - 1).log_prob(x))


# ----------------------------------------------------------------- statistics


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "shared all"])
def test_statistics_of_members_join_to_those_of_the_stack(kind):
    m = stack_of(kind)
    x, w = rows_of(m), np.random.default_rng(9).random((90, C))
    stats = m.collect(x, w)
    joined = m.joined_stats([stats.member(np.array([0])), stats.member(np.array([1, 2]))])
    assert isinstance(joined, MixtureStats)
    close(joined, stats)
    one = stats.member(1)
    assert m.member(1).objective(one) == pytest.approx(float(w[:, 1] @ log_probs(m, x)[:, 1]), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_a_stack_are_a_monoid(kind):
    m = stack_of(kind)
    x, rng = rows_of(m), np.random.default_rng(10)
    labels, w = rng.integers(-1, C, 90), rng.random(90)
    cuts = [slice(0, 20), slice(20, 21), slice(21, 90)]
    a, b, c = (m.collect(x[s], w[s], labels=labels[s]) for s in cuts)
    close((a + b) + c, a + (b + c), rtol=1e-11)
    whole = m.collect(x, w, labels=labels)
    np.testing.assert_allclose((a + b + c).counts, whole.counts, rtol=1e-11, atol=1e-13)
    one, other = m.refit(a + b + c), m.refit(whole)
    np.testing.assert_allclose(one.log_prob(x), other.log_prob(x), rtol=1e-8, atol=1e-8)
    doubled = m.refit(whole * 2.0)
    np.testing.assert_allclose(doubled.log_prob(x), other.log_prob(x), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["full", "shared all", "shared covariance", "mixtures"])
@pytest.mark.parametrize("n", [90, 9000])
def test_engines_give_the_same_bits(kind, n):
    m = Mixture(np.full(C, 1 / C), stack_of(kind))
    x, labels = m.sample_labeled(n, np.random.default_rng(11))
    data = Blocks.of(x, labels=labels, rows=1024, blocks=2)
    a, b = (fit(m, data, prior="weak", engine=e, stop=StoppingRule(3, 0.0)) for e in (Serial(), Threads(2)))
    assert bits(a.model) == bits(b.model) and a.trace == b.trace


# ------------------------------------------------------------------- classes


def test_labels_all_some_and_none_are_one_thing():
    """With a mask that names one class the joint EM does what labels do; with none it is a mixture of mixtures."""
    m = Mixture([0.5, 0.3, 0.2], stack_of("full"))
    x, labels = m.sample_labeled(120, np.random.default_rng(12))
    mask = np.where(labels[:, None] == np.arange(C), 0.0, -np.inf)
    seen, masked = m.collect(x, labels=labels), m.collect(x, log_mask=mask)
    np.testing.assert_allclose(masked.counts, seen.counts)
    np.testing.assert_allclose(masked.components.counts, seen.components.counts, rtol=1e-9)
    assert m.objective(masked) == pytest.approx(m.objective(seen), rel=1e-10)
    hidden = m.collect(x)
    joint = np.log(m.weights) + log_probs(m.components, x)
    assert m.objective(hidden) == pytest.approx(float(logsumexp(joint, axis=1).sum()), rel=1e-10)
    half = np.where(np.arange(120)[:, None] < 60, mask, 0.0)
    assert m.objective(m.collect(x, log_mask=half)) == pytest.approx(
        float(joint[np.arange(60), labels[:60]].sum() + logsumexp(joint[60:], axis=1).sum()), rel=1e-10
    )


def test_the_best_of_the_best_is_what_hard_labels_count():
    m = Mixture([0.5, 0.3, 0.2], stack_of("full"))
    x = m.sample(80, np.random.default_rng(13))
    inner = (log_probs(m.components.components, x) + np.log(m.components.weights.ravel())).reshape(80, C, M)
    want = float((inner.max(axis=2) + np.log(m.weights)).max(axis=1).sum())
    assert m.objective(m.collect(x, hard=True)) == pytest.approx(want, rel=1e-10)


@pytest.mark.slow
def test_a_prior_has_the_shape_of_the_mixture():
    m = Mixture([0.5, 0.3, 0.2], stack_of("full"))
    x, labels = m.sample_labeled(120, np.random.default_rng(14))
    prior = m.weak_prior(m.collect(x, labels=labels))
    assert isinstance(prior, MixturePrior) and isinstance(prior.components, MixturePrior)
    report = fit(m, Blocks.of(x, labels=labels), prior=prior, stop=StoppingRule(1000, 1e-9))
    assert report.converged and (np.diff(report.trace) >= -1e-9).all()


def test_rows_with_named_parts():
    rng = np.random.default_rng(15)
    m = Mixture([0.4, 0.3, 0.3], stack_of("product"))
    x = Columns(a=rng.normal(size=(50, 1)), b=rng.poisson(3.0, 50).astype(float))
    assert m.log_prob(x).shape == (50,) and m.collect(x).counts.sum() == pytest.approx(50.0)

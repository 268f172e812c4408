"""Mixtures against direct formulas, with observed, hidden and partially observed labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import likely as lk
from likely import (
    Categorical,
    DomainError,
    Gaussian,
    Mixture,
    Poisson,
    Product,
    ShapeError,
    StoppingRule,
    StudentT,
    fit,
)
from likely.core import Blocks, Columns, Serial, Threads
from likely.core.em_loop import gather, iterate
from likely.distributions import Stack
from likely.priors import MixturePrior
from tests.properties.compare import arrays_of, bits

WEIGHTS = np.array([0.2, 0.05, 0.3, 0.25, 0.2])
KINDS = ["full", "tied", "diagonal", "spherical"]


def gaussians(kind, K=5, d=3, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((K, d, d + 2))
    full = a @ np.swapaxes(a, 1, 2) / d
    spread = {
        "full": full, "tied": full[0], "diagonal": full[:, range(d), range(d)], "spherical": full[:, 0, 0],
    }[kind]  # fmt: skip
    return Gaussian(2 * rng.standard_normal((K, d)), spread, kind="full" if kind == "tied" else kind)


def mixture(kind="full", d=3):
    return Mixture(WEIGHTS, gaussians(kind, d=d))


def plain_joint(m, x):
    """log w_k p_k(x), by SciPy."""
    each = zip(m.weights, m.components.mean, m.components.covariance_matrix, strict=True)
    return np.stack([np.log(w) + multivariate_normal(mean, S).logpdf(x).reshape(len(x)) for w, mean, S in each], axis=1)


# -------------------------------------------------------------------- density


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 300, 5000])  # few rows, strips, blocks: each goes its own way
def test_formulas(kind, n):
    m = mixture(kind)
    x = m.sample(n, np.random.default_rng(2))
    joint = plain_joint(m, x)
    total = logsumexp(joint, axis=1)
    np.testing.assert_allclose(m.log_joint(x), joint, atol=1e-9)
    np.testing.assert_allclose(m.log_prob(x), total, atol=1e-9)
    np.testing.assert_allclose(m.log_posterior(x), joint - total[:, None], atol=1e-9)
    np.testing.assert_allclose(m.posterior(x), np.exp(joint - total[:, None]), atol=1e-10)
    np.testing.assert_allclose(m.posterior(x).sum(axis=1), 1.0, rtol=1e-14)


class Foreign(np.ndarray):
    """Rows that are no plain array."""


def by_hand(m, x, what):
    """What `map_rows` would do with many rows, on these."""
    with np.errstate(all="ignore"):
        joint = m.components.log_prob(x) + np.log(m.weights)
        if what == "log_joint":
            return joint
        joint -= joint.max(axis=1, keepdims=True)
        share = np.exp(joint)
        total = share.sum(axis=1, keepdims=True)
        return share / total if what == "posterior" else joint - np.log(total)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_few_rows_have_the_bits_of_the_general_way(kind, d):
    """One row, a few, a list of them, a view with steps, a subclass: the same numbers to the last bit."""
    m = mixture(kind, d)
    x = m.sample(40, np.random.default_rng(3))
    for what in ("log_joint", "log_posterior", "posterior"):
        f = getattr(m, what)
        for n in (1, 2, 7, 20):
            got = f(x[:n])
            assert got.flags.c_contiguous and got.shape == (n, 5) and got.flags.owndata
            assert got.tobytes() == by_hand(m, x[:n], what).tobytes()
            wide = np.repeat(x[:n], 2, axis=1)[:, ::2]
            for same in (x[:n].tolist(), wide, np.asfortranarray(x[:n]), x[:n].view(Foreign)):
                assert np.asarray(f(same)).tobytes() == got.tobytes()
    assert m.log_prob(x[:1]).tobytes() == m.log_prob(x[:1].tolist()).tobytes()


@pytest.mark.parametrize("d", [1, 2, 3, 8, 20])
def test_features_of_few_rows_are_those_of_many(d):
    """Pairs picked by index and pairs by windows around the circle are the same products."""
    form = gaussians("full", d=d).form
    x = np.random.default_rng(4).standard_normal((64, d))
    p = 1 + d + d * (d + 1) // 2
    many, few = np.empty((p, 64)), np.empty((p, 1))
    length = form.features(x, np.empty((d + d // 2, 64)), many)
    for i in range(64):
        assert form.features(x[i : i + 1], np.empty((d + d // 2, 1)), few)[0] == pytest.approx(length[i], rel=1e-14)
        assert few[:, 0].tobytes() == many[:, i].tobytes()


def of_students():
    return Mixture([0.4, 0.6], StudentT([[0.0, 1.0], [3.0, -1.0]], [[[2.0, 0.3], [0.3, 1.0]]] * 2, [4.0, 9.0]))


@pytest.mark.parametrize("make", [lambda: mixture(), of_students], ids=["Gaussian", "StudentT"])
def test_single_precision(make):
    m = make()
    x = m.sample(500, np.random.default_rng(5)).astype(np.float32)
    for what in ("log_joint", "log_prob", "log_posterior", "posterior"):
        for n in (1, 500):
            out, exact = getattr(m, what)(x[:n]), getattr(m, what)(x[:n].astype(np.float64))
            kind = np.float64 if "posterior" in what else np.float32  # costs weigh small probabilities
            assert out.dtype == kind and out.tobytes() == exact.astype(kind).tobytes()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 3, 300])
def test_an_outlier_beyond_all_numbers_is_still_decided(kind, n):
    """At 1e300 squared distances overflow: no part can be told from another there, so the prior decides."""
    m = mixture(kind)
    x = m.sample(n, np.random.default_rng(6))
    x[0] = 1e300
    assert np.isneginf(m.log_prob(x)[0]) and np.isfinite(m.log_prob(x)[1:]).all()
    np.testing.assert_array_equal(m.posterior(x)[0], WEIGHTS)
    np.testing.assert_array_equal(m.log_posterior(x)[0], np.log(WEIGHTS))
    far = m.posterior(np.full((1, 3), 1e7))  # far out, but not beyond numbers
    assert np.isfinite(far).all() and far.sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("error")
def test_a_row_that_no_part_can_explain_has_the_prior():
    m = Mixture([0.25, 0.75], Poisson([[1.0], [9.0]]))
    x = np.array([[2.0], [0.5], [-1.0]])
    assert np.isneginf(m.log_prob(x)[1:]).all()
    np.testing.assert_array_equal(m.posterior(x)[1:], [[0.25, 0.75]] * 2)
    np.testing.assert_array_equal(m.log_posterior(x)[1:], np.log([[0.25, 0.75]] * 2))


@pytest.mark.filterwarnings("error")
def test_a_part_without_weight_explains_nothing():
    m = Mixture([0.0, 1.0], Gaussian([[0.0], [5.0]], 1.0))
    assert m.posterior([[0.0]]).tolist() == [[0.0, 1.0]]
    assert m.log_prob([[0.0]])[0] == pytest.approx(Gaussian([5.0], 1.0).log_prob([[0.0]])[0], rel=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_integrated_out(kind):
    m = mixture(kind)
    x = m.sample(50, np.random.default_rng(7))
    x[:, 1] = np.nan
    rest = Mixture(WEIGHTS, m.components.marginal([0, 2]))
    np.testing.assert_allclose(m.log_prob(x), rest.log_prob(x[:, [0, 2]]), atol=1e-9)
    np.testing.assert_allclose(m.posterior(x), rest.posterior(x[:, [0, 2]]), atol=1e-9)


@pytest.mark.parametrize("n", [1, 70_000])
def test_an_infinity_is_named_by_its_row(n):
    x = np.zeros((n, 3))
    x[n - 1, 2] = np.inf
    with pytest.raises(ValueError, match=f"inf at row {n - 1}, column 2"):
        mixture().posterior(x)


def test_samples_have_the_moments_of_the_density():
    m = mixture()
    x, label = m.sample_labeled(200_000, np.random.default_rng(8))
    assert np.abs(np.bincount(label) / len(x) - WEIGHTS).max() < 0.006
    mean = WEIGHTS @ m.components.mean
    away = m.components.mean - mean
    covariance = np.einsum("k,kij->ij", WEIGHTS, m.components.covariance + away[:, :, None] * away[:, None, :])
    error = np.sqrt(np.diagonal(covariance) / len(x))
    assert (np.abs(x.mean(axis=0) - mean) < 5 * error).all()
    assert np.abs(np.cov(x.T) - covariance).max() < 0.03 * covariance.max()
    narrow = Gaussian(
        m.components.mean[2], 0.5 * m.components.covariance[2]
    )  # E[q/p] = 1: what is drawn is what is scored
    ratio = np.exp(narrow.log_prob(x) - m.log_prob(x))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(len(x))


def test_parts_of_any_distribution():
    distributions = {
        "poisson": Poisson([[1.0, 3.0], [9.0, 0.5]]), "categorical": Categorical([[0.2, 0.8], [0.7, 0.3]]),
        "t": StudentT([[0.0], [3.0]], [1.0, 2.0], [3.0, 5.0], kind="spherical"),
        "several": Stack([Gaussian([0.0], 1.0), Gaussian([2.0], [[2.0]])]),
    }  # fmt: skip
    rng = np.random.default_rng(9)
    for parts in distributions.values():
        m = Mixture([0.4, 0.6], parts)
        x = m.sample(30, rng)
        joint = parts.log_prob(x) + np.log(m.weights)
        np.testing.assert_allclose(m.log_prob(x), logsumexp(joint, axis=1), rtol=1e-13, atol=1e-13)


def test_wrong_pieces_are_refused():
    for weights in ([0.5, 0.6], [1.5, -0.5]):
        with pytest.raises(DomainError, match="sum to 1"):
            Mixture(weights, Gaussian([[0.0], [1.0]], 1.0))
    with pytest.raises(ShapeError, match="one weight per member"):
        Mixture([0.5, 0.5], Gaussian([0.0], 1.0))


# ------------------------------------------------------------------- learning


def labeled(kind, n=3000, gaps=0.0, d=3):
    m = mixture(kind, d)
    rng = np.random.default_rng(10)
    x, labels = m.sample_labeled(n, rng)
    x[rng.random(x.shape) < gaps] = np.nan
    labels = np.where(rng.random(n) < 0.05, -1, labels)
    return m, x, labels, rng.random(n)


def close(a, b, rtol=1e-12):
    """Statistics alike to twelve digits of their own scale."""
    for one, other in zip(arrays_of(a), arrays_of(b), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * max(np.abs(other).max(initial=0.0), 1.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_labels_are_shares_of_one(kind, gaps):
    m, x, labels, w = labeled(kind, gaps=gaps)
    shares = np.where(labels[:, None] == np.arange(5), w[:, None], 0.0)
    seen = m.collect(x, w, labels=labels)
    np.testing.assert_allclose(seen.counts, shares.sum(axis=0), rtol=1e-12)
    want = m.components.collect(x, shares)
    np.testing.assert_allclose(seen.components.mean, want.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(seen.components.scatter, want.scatter, rtol=1e-9, atol=1e-9)
    known = np.where(labels[:, None] == np.arange(5), 0.0, -np.inf)[labels >= 0]
    masked = m.collect(x[labels >= 0], w[labels >= 0], log_mask=known)  # a mask that leaves one label says the same
    np.testing.assert_allclose(masked.counts, seen.counts, rtol=1e-12)
    np.testing.assert_allclose(masked.components.scatter, seen.components.scatter, rtol=1e-9, atol=1e-9)
    assert masked.entropy == 0.0 and not masked.complete
    assert seen.complete == (not gaps or kind in ("diagonal", "spherical"))


def test_a_row_that_its_known_part_cannot_explain_stays_with_it():
    m = Mixture([0.5, 0.5], lk.Uniform([[0.0], [5.0]], [[1.0], [6.0]]))
    stats = m.collect([[5.5], [5.5]], log_mask=np.array([[0.0, -np.inf], [-np.inf, 0.0]]))
    assert stats.counts.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_is_fitted_in_one_pass(kind):
    m, x, labels, w = labeled(kind)
    report = fit(m, Blocks.of(x, w, labels=labels))
    assert report.converged and report.iterations == 1
    total = w[labels >= 0].sum()
    for k in range(5):
        mine = labels == k
        assert report.model.weights[k] == pytest.approx(w[mine].sum() / total, rel=1e-12)
        np.testing.assert_allclose(
            report.model.components.mean[k], np.average(x[mine], axis=0, weights=w[mine]), rtol=1e-10
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", [0.0, 0.3])
def test_learning_hidden_labels_never_loses(kind, known):
    _, x, labels, w = labeled(kind, 400, gaps=0.05)
    given = np.where((np.arange(400) < known * 400)[:, None] & (labels[:, None] != np.arange(5)), -np.inf, 0.0)
    given[labels < 0] = 0.0
    start = Mixture(np.full(5, 0.2), gaussians(kind, seed=11))
    steps = iterate(start, Blocks.of(x, w, log_mask=given))
    trace = [next(steps).objective for _ in range(15)]
    assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all() and trace[-1] > trace[0] + 10
    tight = float(w @ logsumexp(start.log_joint(x) + given, axis=1))  # the bound, at the model that collected
    assert trace[0] == pytest.approx(tight, rel=1e-10)


def test_hidden_labels_are_found_again():
    truth = Mixture([0.3, 0.7], Gaussian([[-4.0, 0.0], [4.0, 1.0]], np.stack([np.eye(2), 2 * np.eye(2)])))
    x = truth.sample(4000, np.random.default_rng(12))
    start = Mixture([0.5, 0.5], Gaussian([[-1.0, 0.0], [1.0, 0.0]], np.stack([np.eye(2) * 5] * 2)))
    found = fit(start, x, stop=StoppingRule(200, 1e-9)).require_converged().model
    assert np.abs(found.weights - truth.weights).max() < 0.03
    assert np.abs(found.components.mean - truth.components.mean).max() < 0.15


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seen", [True, False])
def test_statistics_are_a_monoid(kind, seen):
    m, x, labels, w = labeled(kind, 900)
    cuts = [slice(0, 200), slice(200, 500), slice(500, 900)]
    a, b, c = (m.collect(x[s], w[s], labels=labels[s] if seen else None) for s in cuts)
    close((a + b) + c, a + (b + c))
    close(a + b, b.replace(components=b.components) + a)
    zero = m.collect(x[:0], labels=labels[:0] if seen else None)
    close(zero + a, a)
    close(a + zero, a)
    close(2.0 * a, a + a)
    assert (a + b).total_weight == pytest.approx(a.total_weight + b.total_weight)
    whole = m.collect(x, w, labels=labels if seen else None)
    close(a + b + c, whole, 1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_equal_the_batch_beyond_a_part(kind):
    m, x, labels, _ = labeled(kind, 70_000, d=2)
    whole = m.collect(x, labels=labels)
    cut = sum((m.collect(x[a : a + 9999], labels=labels[a : a + 9999]) for a in range(9999, 70_000, 9999)),
              start=m.collect(x[:9999], labels=labels[:9999]))  # fmt: skip
    close(cut, whole, 1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seen", [True, False])
def test_engines_agree_to_the_bit(kind, seen):
    m, x, labels, w = labeled(kind, 3000, gaps=0.02)
    blocks = Blocks.of(x, w, labels=labels if seen else None, rows=500, blocks=2)
    for data in (blocks, blocks.whole()):
        want = bits(Serial().total(lambda b: gather(m, b), data))
        assert all(bits(Threads(k).total(lambda b: gather(m, b), data)) == want for k in (2, 3))


def test_offsets_keep_their_digits():
    m, x, labels, _ = labeled("full")
    far = m.replace(components=m.components.replace(mean=m.components.mean + 1e8))
    near, away = m.collect(x, labels=labels).components, far.collect(x + 1e8, labels=labels).components
    np.testing.assert_allclose(away.scatter, near.scatter, rtol=1e-6, atol=1e-4)  # x + 1e8 has eight digits left


def test_weights_count_as_copies():
    m, x, labels, _ = labeled("full", 300)
    times = np.random.default_rng(13).integers(0, 4, 300)
    for seen in (True, False):
        a = m.collect(x, times, labels=labels if seen else None)
        b = m.collect(np.repeat(x, times, axis=0), labels=np.repeat(labels, times) if seen else None)
        close(a, b, 1e-11)


def test_mixed_columns():
    parts = Product({"size": Gaussian([[0.0], [4.0]], 1.0), "visits": Poisson([[1.0], [6.0]])})
    m = Mixture([0.5, 0.5], parts)
    x, labels = m.sample_labeled(9000, np.random.default_rng(14))
    assert isinstance(x, Columns)
    found = fit(m, Blocks.of(x, labels=labels)).model
    assert np.abs(found.components["visits"].rate.ravel() - [1.0, 6.0]).max() < 0.2
    assert (found.posterior(x).argmax(axis=1) == labels).mean() > 0.95


OF_A_MEAN = lk.priors.NormalInverseWishart([0.0], 1.0, [[1.0]], 3.0)  # a prior, but not one of probabilities


@pytest.mark.parametrize("alpha", [1.0, 3.0, [1.5, 1.0, 4.0, 2.0, 1.0]])
def test_weights_under_a_prior_are_its_posterior_mode(alpha):
    m, x, labels, w = labeled("full")
    stats, prior = m.collect(x, w, labels=labels), MixturePrior(lk.Dirichlet(np.broadcast_to(alpha, 5)), None)
    events = stats.counts + np.broadcast_to(alpha, 5) - 1
    np.testing.assert_allclose(m.refit(stats, prior).weights, events / events.sum(), rtol=1e-12)


@pytest.mark.parametrize(("given", "name"), [({"weights": None, "components": "weak"}, "components"),
                                             ({"components": "weak"}, "components"),
                                             ({"weights": [1.0, 2.0], "components": None}, "weights"),
                                             ({"weights": OF_A_MEAN, "components": None}, "weights")])  # fmt: skip
def test_a_prior_of_no_prior_is_refused(given, name):
    with pytest.raises(DomainError, match=rf"{name} must be a prior or None, got .*pass a prior such as"):
        MixturePrior(**given)


def test_scores_of_components_are_not_written_to(monkeypatch):
    """A component of another package may return an array that it keeps, or a read-only one."""
    m, x = Mixture([0.3, 0.7], Poisson([[1.0], [6.0]])), np.array([[0.0], [3.0], [9.0]])
    known, stats = m.log_prob(x), m.collect(x)
    kept = np.array(m.components.log_prob(x))
    before = kept.copy()
    kept.setflags(write=False)
    monkeypatch.setattr(Poisson, "log_prob", lambda self, x: kept)
    np.testing.assert_array_equal(m.log_prob(x), known)
    np.testing.assert_array_equal(m.collect(x).counts, stats.counts)
    np.testing.assert_array_equal(kept, before)

"""Ties: what members share is learned from all of them."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DataError, DomainError, Gaussian, Poisson, ShapeError
from likely.distributions import Tied
from likely.priors import NormalInverseGamma, NormalInverseWishart


def groups(rng, n=120):
    labels = rng.integers(0, 4, n)
    x = rng.standard_normal((n, 2)) * (1 + labels[:, None]) + 20 * labels[:, None]
    return x, labels


# ------------------------------------------------------------------------- all


def test_tied_members_are_one_density(rng):
    s = Tied(Gaussian(rng.standard_normal((2, 2)), 1.0), [1, 0, 1])
    x = rng.standard_normal((5, 2))
    out = s.log_prob(x)
    assert s.members == 3 and out.shape == (5, 3) and np.array_equal(out[:, 0], out[:, 2])
    assert np.array_equal(s.member(2).mean, s.components.mean[1])
    draws = s.sample(500, rng)
    assert draws.shape == (500, 3, 2) and abs(np.corrcoef(draws[:, 0, 0], draws[:, 2, 0])[0, 1]) < 0.25


def test_their_statistics_are_summed(rng):
    x, labels = groups(rng)
    s = Tied(Gaussian(np.zeros((2, 2)), np.stack([np.eye(2)] * 2)), [0, 1, 1, 0])
    fitted = s.refit(s.collect(x, labels=labels))
    for part, mine in ((0, [0, 3]), (1, [1, 2])):
        want = Gaussian.fit(x[np.isin(labels, mine)])
        np.testing.assert_allclose(fitted.components.member(part).mean, want.mean, rtol=1e-12)
        np.testing.assert_allclose(fitted.components.member(part).covariance, want.covariance, rtol=1e-12)
    assert fitted.n_parameters == 2 * 5


def test_rows_of_nobody_do_not_count(rng):
    x, labels = groups(rng)
    s = Tied(Gaussian(np.zeros((2, 2)), 1.0), [0, 1, 1, 0])
    some = np.where(labels == 3, -1, labels)
    np.testing.assert_allclose(s.collect(x, labels=some).weight[0], (labels == 0).sum())


def test_other_families_tie_too():
    s = Tied(Poisson([[1.0], [5.0]]), [0, 0, 1])
    fitted = s.refit(s.collect([[1], [3], [9]], labels=[0, 1, 2]))
    assert fitted.components.rate.tolist() == [[2.0], [9.0]]
    assert np.shape(s.entropy()) == (3,)


# ------------------------------------------------------------------ covariance


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_pooled_covariances_are_means_of_scatters_about_their_own_means(rng, kind):
    """Ney 3.4: members 0 and 2 share, members 1 and 3 share."""
    x, labels = groups(rng)
    s = Tied(Gaussian.blank(x, kind=kind, members=4), [7 % 2, 0, 1, 0], what="covariance")
    fitted = s.refit(s.collect(x, labels=labels))
    for mine in ([0, 2], [1, 3]):
        n = np.isin(labels, mine).sum()
        pooled = sum(np.cov(x[labels == k].T, bias=True) * (labels == k).sum() for k in mine) / n
        want = {"full": pooled, "diagonal": np.diag(pooled), "spherical": np.trace(pooled) / 2}[kind]
        for k in mine:
            np.testing.assert_allclose(fitted.member(k).covariance, want, rtol=1e-11)
            np.testing.assert_allclose(fitted.member(k).mean, x[labels == k].mean(axis=0), rtol=1e-12)


def test_one_group_is_a_tied_stack(rng):
    x, labels = groups(rng)
    s = Tied(Gaussian.blank(x, members=4), [0, 0, 0, 0], what="covariance")
    tied = Gaussian.blank(x, members=4, tied=True)
    a, b = s.refit(s.collect(x, labels=labels)), tied.refit(tied.collect(x, labels=labels))
    np.testing.assert_allclose(a.components.covariance, b.covariance, rtol=1e-13)
    assert a.components.tied and a.n_parameters == b.n_parameters == 8 + 3
    # and it can be refitted again
    np.testing.assert_allclose(a.refit(a.collect(x, labels=labels)).components.covariance, b.covariance, rtol=1e-12)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_a_shared_covariance_meets_its_prior_once(rng, kind):
    x, labels = groups(rng)
    s = Tied(Gaussian.blank(x, kind=kind, members=4), [0, 1, 0, 1], what="covariance")
    stats = s.collect(x, labels=labels)
    prior = s.weak_prior(stats)
    assert isinstance(prior, NormalInverseWishart if kind == "full" else NormalInverseGamma)
    fitted = s.refit(stats, prior)
    tied = prior.replace(tied=True)
    want = fitted.components.objective(stats) + sum(
        float(tied.log_density(Gaussian(fitted.components.mean[g], fitted.components.covariance[g[0]], kind=kind)))
        for g in ([0, 2], [1, 3])
    )
    assert fitted.objective(stats, prior) == pytest.approx(want, rel=1e-12)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(20):
            nudged = fitted.replace(
                parts=fitted.components.replace(mean=fitted.components.mean + size * rng.standard_normal((4, 2)))
            )
            assert nudged.objective(stats, prior) <= fitted.objective(stats, prior)


def test_a_group_without_weight_stays(rng):
    x, labels = groups(rng)
    s = Tied(Gaussian.blank(x, members=4), [0, 1, 0, 1], what="covariance")
    mine = np.isin(labels, [0, 2])
    fitted = s.refit(s.collect(x[mine], labels=labels[mine]))
    assert np.array_equal(fitted.member(1).covariance, s.member(1).covariance)
    with pytest.raises(DataError, match="weight is needed"):
        s.refit(s.collect(x[:0], labels=labels[:0]))


@pytest.mark.parametrize(
    ("parts", "index", "what", "error"),
    [
        (Gaussian([0.0], 1.0), [0], "all", DomainError),
        (Gaussian(np.zeros((2, 1)), 1.0), [0, 2], "all", ShapeError),
        (Gaussian(np.zeros((2, 1)), 1.0), [-1], "all", ShapeError),
        (Gaussian(np.zeros((2, 1)), 1.0), [], "all", ShapeError),
        (Gaussian(np.zeros((2, 1)), 1.0), [[0, 1]], "all", ShapeError),
        (Gaussian(np.zeros((2, 1)), 1.0), [0, 1], "mean", DomainError),
        (Gaussian(np.zeros((2, 1)), 1.0), [0, 1, 1], "covariance", ShapeError),
        (Poisson([[1.0], [2.0]]), [0, 0], "covariance", ShapeError),
        (Gaussian(np.zeros((2, 1)), [1.0, 2.0], kind="spherical"), [0, 0], "covariance", DomainError),
    ],
)
def test_what_cannot_be_tied_is_refused(parts, index, what, error):
    with pytest.raises(error, match=r"^Tied: "):
        Tied(parts, index, what)


def test_weights_need_a_column_a_member():
    s = Tied(Gaussian(np.zeros((2, 1)), 1.0), [0, 1, 1])
    with pytest.raises(ShapeError, match=r"one column per member \(3\)"):
        s.collect(np.zeros((4, 1)), np.ones((4, 2)))

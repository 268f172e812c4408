"""Principal axes are eigenvectors of the covariance, and the reconstruction error is the remaining variance."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DataError, DomainError, Gaussian, ShapeError
from likely.decomposition.principal_subspace import PrincipalSubspace, axes_of, dependent, gram_loses_rank, spectrum
from likely.distributions.gaussian.scatter_qr import centered_rows, root_of_rows


@pytest.fixture
def x(rng):
    return rng.normal(size=(80, 5)) @ rng.normal(size=(5, 5)) + [1, 2, 3, 4, 5]


def moments_of(x):
    return Gaussian.blank(x).collect(x)


def test_axes_are_eigenvectors(x):
    p = PrincipalSubspace.of(moments_of(x), 3)
    c = np.cov(x.T, bias=True)
    np.testing.assert_allclose(p.axes @ c @ p.axes.T, np.diag(p.variances), atol=1e-10)
    np.testing.assert_allclose(p.variances, np.linalg.eigvalsh(c)[::-1][:3])
    assert p.total == pytest.approx(np.trace(c))


def test_the_relative_error_is_that_of_the_reconstruction(x):
    whole = PrincipalSubspace.of(moments_of(x))
    for q in range(6):
        p = PrincipalSubspace.of(moments_of(x), q)
        lost = ((p.reconstruct(x) - x) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum()
        assert p.relative_error() == pytest.approx(lost, abs=1e-12)
        assert whole.relative_error(q) == pytest.approx(lost, abs=1e-12)
    with pytest.raises(DomainError, match="components must lie in"):
        whole.relative_error(6)


def test_no_other_axes_lose_less(x, rng):
    p = PrincipalSubspace.of(moments_of(x), 2)
    for _ in range(50):
        axes = np.linalg.qr(np.linalg.qr(p.axes.T)[0] + 0.05 * rng.normal(size=(5, 2)))[0]
        z = x - x.mean(axis=0)
        assert ((z - z @ axes @ axes.T) ** 2).sum() >= p.relative_error() * (z**2).sum() - 1e-9


def test_three_roads_lead_to_the_same_axes(rng):
    x = rng.normal(size=(8, 12)) * np.linspace(3, 1, 12)
    roads = [
        PrincipalSubspace.of(moments_of(x), 5),
        PrincipalSubspace.of(root_of_rows(x, None, np.zeros(12)), 5),
        axes_of(s := centered_rows(x, None, np.zeros(12)), spectrum(s, 5, gram=True), 5),
    ]
    for p in roads[1:]:
        np.testing.assert_allclose(p.axes, roads[0].axes, atol=1e-9)
        np.testing.assert_allclose(p.variances, roads[0].variances, rtol=1e-10)
        assert p.rest == pytest.approx(float(roads[0].rest))


def test_whitening_makes_white(x):
    p = PrincipalSubspace.of(moments_of(x), 4)
    y = p.whiten(x)
    np.testing.assert_allclose(np.cov(y.T, bias=True), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(p.restore(y, white=True), p.reconstruct(x), atol=1e-10)


def test_a_share_of_the_variance(x):
    shares = PrincipalSubspace.of(moments_of(x)).shares.cumsum()
    for q in range(1, 5):
        assert len(PrincipalSubspace.of(moments_of(x), float(shares[q - 1] - 1e-9)).variances) == q
    with pytest.raises(DomainError, match="between 0 and 1"):
        PrincipalSubspace.of(moments_of(x), 1.5)


def test_all_that_is_seen_is_the_rank(rng):
    x = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 6))
    assert len(PrincipalSubspace.of(moments_of(x)).variances) == 3
    assert PrincipalSubspace.of(moments_of(x)).relative_error() == pytest.approx(0.0, abs=1e-12)


def test_nothing_varies():
    p = PrincipalSubspace.of(moments_of(np.ones((4, 2))), 2)
    assert p.relative_error(0) == 0.0 and p.shares.tolist() == [0.0, 0.0]
    with pytest.raises(DomainError, match="positive variance along every axis"):
        p.whiten(np.ones((1, 2)))


def test_what_it_refuses(x):
    p = PrincipalSubspace.of(moments_of(x), 2)
    with pytest.raises(DataError, match=r"row 1, column 2.*PPCA"):
        p.project(np.where(np.arange(15).reshape(3, 5) == 7, np.nan, 0.0))
    with pytest.raises(DataError, match="finite"):
        p.project([[np.inf] * 5])
    with pytest.raises(DataError, match="at least one row"):
        PrincipalSubspace.of(Gaussian.blank(x).collect(x[:0]))
    with pytest.raises(DomainError, match="orthonormal"):
        PrincipalSubspace([0.0, 0.0], [[1.0, 1.0]], [1.0], 0.0)
    with pytest.raises(ShapeError, match="are needed"):
        PrincipalSubspace([0.0, 0.0], [[1.0, 0.0]], [1.0, 2.0], 0.0)
    with pytest.raises(DomainError, match="must be descending"):
        PrincipalSubspace([0.0, 0.0], np.eye(2), [1.0, 2.0], 0.0)


def test_what_depends_on_other_columns_is_found_in_any_units(rng):
    a = rng.normal(size=(80, 3))
    x = np.column_stack([a, a[:, 0] - 2 * a[:, 1], np.full(80, 5.0)])
    for unit in (np.ones(5), 10.0 ** np.array([-8, 3, 0, 6, 1])):
        stats = moments_of(x * unit)
        rank, flat = dependent(stats)
        assert rank == 3 and flat.shape == (5, 1) and flat[4] == 0
        assert np.ptp(x * unit @ flat) < 1e-13 * np.abs(x * unit * flat.T).max()


def test_what_products_of_rows_hide(rng):
    x = rng.normal(size=(6, 40))
    assert (
        not gram_loses_rank(x)
        and not gram_loses_rank(np.repeat(x, 2, axis=0))
        and not gram_loses_rank(np.zeros((3, 4)))
    )
    assert gram_loses_rank(x * np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1e-9]]).T)

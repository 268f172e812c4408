"""PCA against scikit-learn: chunks equal the batch, and the choice between scatter and R factor."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition

from likely import DataError, DomainError, FitWarning
from likely.decomposition.estimators.pca import PCA
from tests.cases import scikit_learn_checks


@scikit_learn_checks(
    [PCA(), PCA(1), PCA(0.9), PCA(2, whiten=True), PCA(solver="qr"), PCA(solver="scatter")],
    expected_failed_checks=lambda p: {"check_estimators_nan_inf": "transform takes NaN"} if p.solver == "qr" else {},
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture
def X(rng):
    return rng.normal(size=(300, 8)) @ rng.normal(size=(8, 8)) + np.arange(8)


@pytest.mark.parametrize("solver", ["auto", "qr"])
@pytest.mark.parametrize("shape", [(300, 8), (20, 60)])
def test_it_agrees_with_scikit_learn(rng, solver, shape):
    X = rng.normal(size=shape) * np.linspace(5, 1, shape[1])
    ours, peer = PCA(4, solver=solver).fit(X), decomposition.PCA(4, svd_solver="full").fit(X)
    signs = np.sign((ours.components_ * peer.components_).sum(axis=1))
    np.testing.assert_allclose(ours.components_, peer.components_ * signs[:, None], atol=1e-9)
    np.testing.assert_allclose(ours.singular_values_, peer.singular_values_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ * shape[0] / (shape[0] - 1), peer.explained_variance_)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X) * signs, atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), peer.inverse_transform(peer.transform(X)))
    assert ours.relative_error_ == pytest.approx(1 - peer.explained_variance_ratio_.sum())


def test_chunks_equal_the_batch(rng):
    """To 1e-12, where scikit-learn's incremental PCA is off by percents."""
    X = rng.normal(size=(1000, 20)) + (rng.normal(size=(1000, 5)) * np.linspace(2, 1, 5)) @ rng.normal(size=(5, 20))
    for solver in ("auto", "qr"):
        batch, chunks = PCA(5, solver=solver).fit(X), PCA(5, solver=solver)
        for part in np.array_split(X, 7):
            chunks.partial_fit(part)
        np.testing.assert_allclose(chunks.singular_values_, batch.singular_values_, rtol=1e-12)
        np.testing.assert_allclose(chunks.components_, batch.components_, atol=1e-11)
        np.testing.assert_allclose(chunks.mean_, batch.mean_, atol=1e-13)


def test_few_rows_at_a_time_and_on_from_a_fit(rng):
    X = rng.normal(size=(40, 60)) * np.linspace(5, 1, 60)
    batch = PCA(3).fit(X)
    on = PCA(3).fit(X[:25]).partial_fit(X[25:])
    assert batch.solver_ == "gram"
    np.testing.assert_allclose(on.singular_values_, batch.singular_values_, rtol=1e-10)
    np.testing.assert_allclose(PCA(3).partial_fit(X[:2]).partial_fit(X[2:]).components_, batch.components_, atol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "qr"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_weight_is_a_repetition(rng, solver, wide):
    X = rng.normal(size=(12, 20 if wide else 4))
    times = rng.integers(0, 4, 12)
    a, b = PCA(solver=solver).fit(X, sample_weight=times), PCA(solver=solver).fit(np.repeat(X, times, axis=0))
    assert a.components_.shape == b.components_.shape
    np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-8)


def tiny(rng):
    """Singular values 1 … 1e-10, in a hundred rows."""
    u = np.linalg.qr(rng.normal(size=(100, 4)) @ np.eye(4))[0]
    u = np.linalg.qr(u - u.mean(axis=0))[0]
    return u * [1.0, 1e-3, 1e-8, 1e-10] @ np.linalg.qr(rng.normal(size=(4, 4)))[0]


def test_it_changes_the_solver_where_the_scatter_is_blind_and_says_so(rng):
    X = tiny(rng)
    with pytest.warns(FitWarning, match="an R factor was used"):
        p = PCA().fit(X)
    assert p.solver_ == "qr"
    np.testing.assert_allclose(p.singular_values_, [1.0, 1e-3, 1e-8, 1e-10], rtol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PCA(2).fit(X).solver_ == "scatter"  # what was asked for is in plain sight
        assert PCA(solver="scatter").fit(X).n_components_ == 2
        assert PCA(solver="qr").fit(X).n_components_ == 4
    with pytest.warns(FitWarning, match="at the rounding level"):
        PCA(4).partial_fit(X)


def test_dependent_columns_are_no_reason_to_warn(rng):
    X = rng.normal(size=(200, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(200)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = PCA().fit(X)
    assert p.n_components_ == 3 and p.relative_error_ == pytest.approx(0, abs=1e-14)


def test_an_r_factor_needs_complete_rows(X):
    stream = PCA(solver="qr").partial_fit(X)
    X[7, 2] = np.nan
    for learn in (PCA(solver="qr").fit, PCA(solver="qr").partial_fit, stream.partial_fit):
        with pytest.raises(DataError, match=r'NaN at row 7, column 2.*solver="scatter".*PPCA'):
            learn(X)


def plain_em(X, passes=300):
    """Mean and covariance of a Gaussian by maximum likelihood, row by row, from dense conditional formulas."""
    mean, cov = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    for _ in range(passes):
        filled, spread = np.array([expected(mean, cov, x) for x in X]), np.zeros_like(cov)
        for x in X:
            m, o = np.isnan(x), ~np.isnan(x)
            spread[np.ix_(m, m)] += cov[np.ix_(m, m)] - cov[np.ix_(m, o)] @ np.linalg.solve(
                cov[np.ix_(o, o)], cov[np.ix_(o, m)]
            )
        mean = filled.mean(axis=0)
        cov = ((filled - mean).T @ (filled - mean) + spread) / len(X)
    return mean, cov


def expected(mean, cov, x):
    """The row with E[missing | seen] in its gaps."""
    m, o, out = np.isnan(x), ~np.isnan(x), x.copy()
    out[m] = mean[m] + cov[np.ix_(m, o)] @ np.linalg.solve(cov[np.ix_(o, o)], x[o] - mean[o])
    return out


@pytest.mark.slow
def test_axes_of_rows_with_missing_values_are_those_of_a_gaussian_found_by_em():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(70, 4)) + np.arange(4)
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    holes = holes[~np.isnan(holes).all(axis=1)]
    with pytest.warns(FitWarning, match="PCA: entries are missing: .* found by EM"):
        p = PCA().fit(holes)
    mean, cov = plain_em(holes)
    values, vectors = np.linalg.eigh(cov)
    np.testing.assert_allclose(p.mean_, mean, atol=2e-3)
    np.testing.assert_allclose(p.explained_variance_, values[::-1], rtol=5e-3)
    np.testing.assert_allclose(np.abs(np.sum(p.components_.T * vectors[:, ::-1], axis=0)), 1.0, atol=1e-4)
    learned = p.stats_.scatter / p.stats_.weight
    want = np.array([p.components_ @ (expected(p.mean_, learned, x) - p.mean_) for x in holes])
    np.testing.assert_allclose(p.transform(holes), want, atol=1e-4)
    whole = PCA(2).fit(X)  # also where training rows were complete, and only the new ones are not
    covariance = np.cov(X.T, bias=True)
    want = np.array([whole.components_ @ (expected(whole.mean_, covariance, x) - whole.mean_) for x in holes])
    np.testing.assert_allclose(whole.transform(holes), want, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_rows_with_missing_values_in_streams_weights_and_extremes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(300, 5))
    holes = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    whole, stream = PCA(2).fit(holes), PCA(2)
    for i in range(0, 300, 100):
        stream.partial_fit(holes[i : i + 100])
    np.testing.assert_allclose(stream.explained_variance_, whole.explained_variance_, rtol=0.05)
    w = rng.integers(1, 4, 300)
    weighted, copies = PCA(2).fit(holes, sample_weight=w), PCA(2).fit(np.repeat(holes, w, axis=0))
    np.testing.assert_allclose(weighted.explained_variance_, copies.explained_variance_, rtol=1e-6)
    assert np.isfinite(PCA(3).fit(holes[:4]).transform(holes)).all()  # fewer rows than columns
    np.testing.assert_allclose(whole.transform(np.full((1, 5), np.nan)), 0.0, atol=1e-12)
    for bad, says in ((np.nan, "column 2 must be observed"), (np.inf, "row 0, column 2")):
        spoilt = holes.copy()
        spoilt[:, 2] = bad
        with pytest.raises(DataError, match=says):
            PCA(2).fit(spoilt)


def test_whitening(X):
    p = PCA(3, whiten=True).fit(X)
    np.testing.assert_allclose(np.cov(p.transform(X).T, bias=True), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(p.inverse_transform(p.transform(X)), PCA(3).fit(X).principal_.reconstruct(X), atol=1e-9)


def test_frames_go_in_and_come_out(X):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    out = PCA(2).set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == ["pca0", "pca1"] and len(out) == 300
    assert PCA(2).fit(X.astype(np.float32)).transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scales_and_offsets(X, scale):
    a, b, far = PCA(3).fit(X), PCA(3).fit(X * scale), PCA(3).fit(X + 1e8)
    np.testing.assert_allclose(b.components_, a.components_, atol=1e-9)
    np.testing.assert_allclose(b.singular_values_, a.singular_values_ * scale, rtol=1e-10)
    np.testing.assert_allclose(far.singular_values_, a.singular_values_, rtol=1e-7)


def test_what_it_refuses(X):
    with pytest.raises(DomainError, match="at most 8"):
        PCA(9).fit(X)
    with pytest.raises(DomainError, match="at most 5"):
        PCA(6).fit(X[:5])
    with pytest.raises(DataError, match="overflow"):
        PCA(2).fit(X * 1e200)
    assert PCA().fit(X[:1]).transform(X[:1]).tolist() == [[0.0]]


@pytest.mark.slow
def test_real_digits(data_dir):
    """USPS: as many axes hold 90 % of the variance as scikit-learn keeps, and one fewer does not."""
    X = np.load(data_dir / "digits" / "usps.npz")["x_train"].reshape(-1, 256).astype(float)[:2000]
    p, peer = PCA(0.9).fit(X), decomposition.PCA(0.9, svd_solver="covariance_eigh").fit(X)
    assert p.n_components_ == peer.n_components_
    assert p.relative_error_ <= 0.1 < p.principal_.relative_error(p.n_components_ - 1)


def test_a_stream_says_that_it_keeps_the_scatter_only(rng):
    X = rng.normal(size=(500, 7)) * 10.0 ** np.linspace(-6, 6, 7)
    with pytest.warns(FitWarning, match="an R factor was used"):
        assert PCA().fit(X).n_components_ == 7
    for wanted in (None, 7):
        with pytest.warns(FitWarning, match="a stream keeps the scatter only"):
            PCA(wanted).partial_fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PCA().partial_fit(rng.normal(size=(500, 7)))
        PCA(0.9).partial_fit(X)  # what was asked for is in plain sight
        PCA().partial_fit(np.insert(rng.normal(size=(500, 7)), 2, 3.7, axis=1))
        assert PCA(solver="qr").partial_fit(X).n_components_ == 7


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
@pytest.mark.parametrize("offset", [0.0, 3.7e6])
def test_constant_and_copied_columns_need_no_other_route(rng, scale, offset):
    X = rng.normal(size=(300, 5)) + offset
    for more in (np.full(300, 3.7), X[:, 2], 2.0 * X[:, 1] if offset == 0 else X[:, 1]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p = PCA().fit(np.column_stack([X, more]) * scale)
        assert p.solver_ == "scatter" and p.n_components_ == 5
    with pytest.warns(FitWarning, match="an R factor was used"):  # almost a copy is none
        p = PCA().fit(np.column_stack([X, X[:, 2] + 1e-7 * rng.normal(size=300)]) * scale)
    assert p.solver_ == "qr" and p.n_components_ == 6


def test_copied_rows_need_no_other_route(rng):
    X = np.repeat(rng.normal(size=(4, 30)), 3, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = PCA().fit(X)
        assert PCA().fit(X[:1]).n_components_ == PCA().fit(X[:2]).n_components_ == 1
    assert p.solver_ == "gram" and p.n_components_ == 3
    X[0] += 1e-9 * rng.normal(size=30)
    with pytest.warns(FitWarning, match="an R factor was used"):
        assert PCA().fit(X).n_components_ == 4

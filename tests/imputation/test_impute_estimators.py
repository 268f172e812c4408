"""Every density imputes and returns rows in their input format: a frame, an array or named components."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import likely as lk
from likely.imputation.impute import impute

NAN = np.nan
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) @ RNG.normal(size=(3, 3)) + [5.0, -2.0, 0.0]
HOLED = np.where(np.random.default_rng(1).random(X.shape) < 0.2, NAN, X)
COLORS = np.array(["red", "green", "blue"], dtype=object)[RNG.integers(0, 3, 120)]
SHAPES = np.where(COLORS == "red", "round", "square").astype(object)
CELLS = np.stack([COLORS, SHAPES], axis=1)
CELLS_HOLED = np.where(np.random.default_rng(2).random(CELLS.shape) < 0.2, None, CELLS)
VISITS = RNG.poisson(3.0, 120)

REAL = [
    lk.GaussianDensity(), lk.GaussianDensity("diagonal"), lk.mixture.ContaminatedDensity(), lk.decomposition.PPCA(1),
    lk.FactorAnalysis(1),
    lk.ProductDensity(), lk.MixtureDensity(n_components=2, random_state=0, tol=1e-3),
    lk.MixtureDensity(lk.ProductDensity(), 2, random_state=0, tol=1e-3),
    lk.MixtureDensity(lk.decomposition.PPCA(1), 2, random_state=0, tol=1e-3),
]  # fmt: skip
NAMES = [f"{i}-{type(d).__name__}" for i, d in enumerate(REAL)]


def frames(table, names="abcdefg"):
    columns = {name: table[:, j] for j, name in zip(range(table.shape[1]), names, strict=False)}
    return pd.DataFrame(columns), pl.DataFrame(columns)


# --------------------------------------------------------------------- numbers


@pytest.mark.slow
@pytest.mark.some_cases(5)
@pytest.mark.parametrize("density", REAL, ids=NAMES)
def test_arrays_and_frames_of_numbers(density):
    d = density.fit(HOLED)
    got, seen = d.impute(HOLED), np.isfinite(HOLED)
    assert type(got) is np.ndarray and np.isfinite(got).all() and (got[seen] == HOLED[seen]).all()
    want = impute(d.model_, HOLED)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert d.impute(HOLED.astype(np.float32)).dtype == np.float32
    assert (d.impute(HOLED, random_state=0) == d.impute(HOLED, random_state=0)).all()
    assert (d.impute(HOLED, random_state=0)[~seen] != got[~seen]).all()
    np.testing.assert_array_equal(d.impute(X), X)
    np.testing.assert_allclose(d.impute(HOLED.tolist()), got)
    for frame in frames(HOLED):
        back = density.fit(frame).impute(frame)
        assert type(back) is type(frame) and list(back.columns) == list(frame.columns)
        np.testing.assert_allclose(back.to_numpy(), got, rtol=1e-6, atol=1e-9)
        assert np.isfinite(density.score_samples(back)).all()


def test_a_pandas_index_and_types_are_kept():
    frame = pd.DataFrame({"a": HOLED[:, 0].astype(np.float32), "b": HOLED[:, 1]}, index=[7] * len(HOLED))
    back = lk.GaussianDensity().fit(frame).impute(frame)
    assert back.index.equals(frame.index) and (back.dtypes == frame.dtypes).all() and not back.isna().any().any()
    assert frame.isna().any().any()  # the input is not written to


def test_columns_in_any_order_of_parts():
    density = lk.ProductDensity([("p", lk.GaussianDensity(), [2, 0]), ("q", lk.GaussianDensity(), [1])])
    d = density.fit(HOLED)
    both = lk.GaussianDensity().fit(HOLED[:, [2, 0]]).impute(HOLED[:, [2, 0]])
    np.testing.assert_allclose(d.impute(HOLED)[:, [2, 0]], both)
    for frame in frames(HOLED):
        named = lk.ProductDensity([("p", lk.GaussianDensity(), ["c", "a"]), ("q", lk.GaussianDensity(), ["b"])])
        back = named.fit(frame).impute(frame)
        np.testing.assert_allclose(back.to_numpy(), d.impute(HOLED), rtol=1e-9)


# ------------------------------------------------------------------ categories


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("width", [1, 2])
def test_tables_of_categories(mixed, width):
    density = lk.CategoricalDensity()
    density = lk.MixtureDensity(density, 2, random_state=0, tol=1e-3) if mixed else density
    x = CELLS_HOLED[:, :width]
    d = density.fit(x)
    got, seen = d.impute(x), ~pd.isna(x)
    assert got.shape == x.shape and got.dtype == object and (got[seen] == x[seen]).all() and not pd.isna(got).any()
    draws = d.sample(50, random_state=1)
    assert draws.shape == (50, width) and np.isfinite(d.score_samples(draws)).all()
    for frame in frames(x):
        back = density.fit(frame).impute(frame)
        assert type(back) is type(frame) and (np.asarray(back.to_numpy(), dtype=object) == got).all()


def test_types_of_columns_of_categories():
    p = pd.DataFrame({"a": pd.Categorical(CELLS_HOLED[:, 0]), "b": pd.array(CELLS_HOLED[:, 1], dtype="string")})
    q = pl.DataFrame({"a": CELLS_HOLED[:, 0], "b": CELLS_HOLED[:, 1]}).with_columns(pl.col("a").cast(pl.Categorical))
    for density in (lk.CategoricalDensity(), lk.MixtureDensity(lk.CategoricalDensity(), 2, random_state=0, tol=1e-3)):
        back = density.fit(p).impute(p)
        assert (back.dtypes == p.dtypes).all() and not back.isna().any().any()
        back = density.fit(q).impute(q)
        assert back.schema == q.schema and back.null_count().sum_horizontal()[0] == 0


def test_levels_that_are_numbers():
    x = np.array([[1.0, 0.0], [2.0, NAN], [2.0, 5.0], [NAN, 5.0], [2.0, 5.0]])
    got = lk.CategoricalDensity().fit(x).impute(x)
    assert got.dtype == float and got.tolist() == [[1.0, 0.0], [2.0, 5.0], [2.0, 5.0], [2.0, 5.0], [2.0, 5.0]]


# --------------------------------------------------------------- parts of unlike kinds


def unlike():
    parts = [("v", lk.GaussianDensity(), ["x", "y"]), ("n", lk.PoissonDensity()), ("c", lk.CategoricalDensity())]
    return [lk.ProductDensity(parts), lk.MixtureDensity(lk.ProductDensity(parts), 2, random_state=0, tol=1e-3)]


@pytest.mark.parametrize("which", [0, 1])
def test_frames_of_unlike_columns(which):
    density = unlike()[which]
    holes = np.random.default_rng(5).random(120) < 0.2
    p = pd.DataFrame({
        "c": np.where(holes, None, COLORS), "x": HOLED[:, 0], "n": pd.array(np.where(holes, None, VISITS), "Int64"),
        "y": HOLED[:, 1],
    })  # fmt: skip
    visits = [None if gap else int(n) for gap, n in zip(holes, VISITS, strict=True)]
    q = pl.DataFrame({"c": np.where(holes, None, COLORS), "x": HOLED[:, 0], "n": visits, "y": HOLED[:, 1]})
    density.fit(p)
    back, same = density.impute(p), density.impute(q)
    assert list(back) == list(p) and list(same.columns) == list(q.columns)
    assert not back.isna().any().any() and same.null_count().sum_horizontal()[0] == 0
    assert str(back["n"].dtype) == "Float64" and same["n"].dtype == pl.Float64  # 3.1 visits are not an integer
    np.testing.assert_allclose(back[["x", "n", "y"]].astype(float), same[["x", "n", "y"]].to_numpy(), rtol=1e-9)
    assert back["c"].tolist() == same["c"].to_list()
    drawn, other = density.impute(p, random_state=0), density.impute(q, random_state=0)
    assert (drawn.dtypes == p.dtypes).all() and other.schema == q.schema  # a drawn count is one
    assert np.isfinite(density.score_samples(density.sample(20, random_state=0))).all()


@pytest.mark.parametrize("mixed", [False, True])
def test_named_parts_with_sparse_words(mixed):
    words = scipy.sparse.random_array((120, 30), density=0.2, rng=np.random.default_rng(3), format="csr")
    words.data = np.ceil(words.data * 3)
    density = lk.ProductDensity(
        [("v", lk.GaussianDensity()), ("w", lk.MultinomialDensity()), ("c", lk.CategoricalDensity())]
    )
    density = lk.MixtureDensity(density, 2, random_state=0, tol=1e-3) if mixed else density
    x = lk.core.Columns(v=HOLED, w=words, c=CELLS_HOLED[:, 0])
    got = density.fit(x).impute(x)
    assert isinstance(got, lk.core.Columns) and list(got) == ["v", "w", "c"]
    assert scipy.sparse.issparse(got["w"]) and (got["w"] != words).nnz == 0
    assert got["c"].shape == (120,) and got["c"].dtype == object and not pd.isna(got["c"]).any()
    assert np.isfinite(got["v"]).all()
    assert isinstance(density.impute(dict(x)), lk.core.Columns)
    draws = density.sample(10, random_state=0)
    assert set(draws) == {"v", "w", "c"} and np.isfinite(density.score_samples(draws)).all()


def test_flags_are_not_cut_and_counts_are_expected():
    x = np.array([[3.0, 0.0], [0.0, NAN], [2.0, 1.0], [1.0, 1.0]])
    with pytest.warns(UserWarning, match="above 0 count as 1"):
        d = lk.BernoulliDensity().fit(x)
    got = d.impute(x)
    assert got[0, 0] == 3.0 and 0 < got[1, 1] < 1  # what was seen is handed back, not what was made of it
    counts = np.array([[3.0, NAN], [1.0, 1.0], [4.0, 4.0]])
    assert lk.MultinomialDensity(prior=None).fit(counts).impute(counts)[0, 1] == pytest.approx(3.0, rel=1e-3)
    sparse = scipy.sparse.csr_array(np.nan_to_num(x) > 0, dtype=float)
    assert (lk.BernoulliDensity().fit(sparse).impute(sparse) != sparse).nnz == 0


def test_what_cannot_be_filled_says_so():
    with pytest.raises(lk.DomainError, match="got StudentT"):
        lk.GaussianDensity("diagonal", predictive="all").fit(HOLED).impute(HOLED)
    with pytest.raises(lk.DomainError, match="impute by expectation"):
        lk.MultinomialDensity().fit([[1.0, 2.0]]).impute([[1.0, NAN]], random_state=0)
    with pytest.raises(ValueError, match="features"):
        lk.GaussianDensity().fit(HOLED).impute(HOLED[:, :2])

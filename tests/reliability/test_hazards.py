"""The hazard matrix for values: each hazard is either answered rightly or refused with one documented sentence.

Runs with RuntimeWarnings as errors: no bare LinAlgError, ZeroDivisionError, IndexError or warning may escape.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from likely import Categorical, DataError, FitWarning, Gaussian, LikelyError, Poisson, Product, ShapeError

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.core.errors.FitWarning")

KINDS = ["full", "diagonal", "spherical"]
FITS: dict[str, Callable[..., Any]] = {
    **{f"Gaussian-{kind}": lambda x, w=None, kind=kind, **o: Gaussian.fit(x, w, kind=kind, **o) for kind in KINDS},
    **{
        f"Gaussian-{kind}-weak": lambda x, w=None, kind=kind, **o: Gaussian.fit(x, w, kind=kind, prior="weak", **o)
        for kind in KINDS
    },
}


def rows(n=30, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) @ np.linalg.cholesky(np.eye(d) + 0.5)


# -------------------------------------------------- degenerate, yet answerable


def constant(x):
    x[:, 1] = 7.0
    return x


def zero(x):
    x[:, 1] = 0.0
    return x


def duplicate_columns(x):
    x[:, 2] = x[:, 0]
    return x


def duplicated_rows(x):
    return np.repeat(x[:2], 10, axis=0)


def nearly_constant(x):
    x[:, 1] = 1e8 + x[:, 1]
    return x


DEGENERATE = {
    "constant column": constant,
    "all-zero column": zero,
    "duplicate columns": duplicate_columns,
    "fewer rows than columns": lambda x: x[:2],
    "as many rows as columns": lambda x: x[:3],
    "one row": lambda x: x[:1],
    "one row of zeros": lambda x: 0.0 * x[:1],
    "duplicated rows": duplicated_rows,
    "everything constant": lambda x: np.full_like(x, 3.0),
    "a spread of 1e-8 of the size": nearly_constant,
}


@pytest.mark.parametrize("hazard", DEGENERATE)
@pytest.mark.parametrize("name", FITS)
def test_degenerate_data_give_a_density(name, hazard):
    x = DEGENERATE[hazard](rows())
    g = FITS[name](x)
    assert np.isfinite(g.mean).all() and (g.variance > 0).all()
    unit = np.sqrt(g.variance)
    assert np.linalg.eigvalsh(g.covariance_matrix / np.outer(unit, unit))[0] > 0
    np.testing.assert_allclose(g.mean, x.mean(axis=0), rtol=1e-12, atol=1e-12)
    out = g.log_prob(x)
    assert np.isfinite(out).all()
    far = g.log_prob(x + 10.0 * (np.sqrt(g.variance) + np.abs(x)))
    assert not np.isnan(far).any() and (far < out).all()


CONSTANT = {
    "constant column": "column 1 is constant over all data",
    "all-zero column": "column 1 is constant over all data",
    "one row": "columns 0, 1 and 2 are constant over all data",
    "one row of zeros": "columns 0, 1 and 2 are constant over all data",
    "everything constant": "columns 0, 1 and 2 are constant over all data",
}
SINGULAR = {
    "duplicate columns": "rank 2 of 3",
    "fewer rows than columns": "rank 1 of 3",
    "as many rows as columns": "rank 2 of 3",
    "duplicated rows": "rank 1 of 3",
}


def told(name, hazard):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FITS[name](DEGENERATE[hazard](rows()))
    return [str(w.message) for w in caught if issubclass(w.category, FitWarning)]


@pytest.mark.parametrize("hazard", DEGENERATE)
@pytest.mark.parametrize("name", FITS)
def test_and_it_says_what_was_done_once(name, hazard):
    """A constant column gets a spread that the data do not show, with a prior or without; where only directions are
    missing a prior helps, and the warning without one says so. One variance for all columns needs neither."""
    said = told(name, hazard)
    wanted = dict(CONSTANT)
    if name == "Gaussian-spherical":
        wanted = {h: text for h, text in CONSTANT.items() if "0, 1 and 2" in text}
    if name == "Gaussian-full":
        wanted |= SINGULAR
    if hazard in wanted:
        assert len(said) == 1 and wanted[hazard] in said[0]
        assert ("a prior avoids this" in said[0]) is (hazard in SINGULAR)
    else:
        assert said == []


# ------------------------------------------------------------- kinds of input


def memmap(x, folder):
    path = folder / "rows.npy"
    np.save(path, x)
    return np.load(path, mmap_mode="r")


INPUTS = {
    "int8": lambda x, _: x.astype(np.int8),
    "uint8": lambda x, _: x.astype(np.uint8),
    "int64": lambda x, _: x.astype(np.int64),
    "bool": lambda x, _: x > 60,
    "float16": lambda x, _: x.astype(np.float16),
    "float32": lambda x, _: x.astype(np.float32),
    "big-endian": lambda x, _: x.astype(">f8"),
    "F-order": lambda x, _: np.asfortranarray(x),
    "non-contiguous": lambda x, _: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x, _: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "read-only": lambda x, _: frozen(x),
    "read-only memmap": memmap,
    "list": lambda x, _: x.tolist(),
    "data frame": lambda x, _: frame(x),
    "object": lambda x, _: x.astype(object),
}


def frozen(x):
    x = x.copy()
    x.setflags(write=False)
    return x


def frame(x):
    import pandas as pd

    return pd.DataFrame(x, columns=["a", "b", "c"])


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", FITS)
def test_every_kind_of_input_is_read(name, kind, tmp_path):
    x = np.round(rows() * 20 + 60).clip(0, 120)  # integers that every kind can hold
    given = INPUTS[kind](x, tmp_path)
    want = np.asarray(given, dtype=np.float64)
    g, h = FITS[name](given), FITS[name](want)
    assert g.mean.tobytes() == h.mean.tobytes() and g.covariance.tobytes() == h.covariance.tobytes()
    out = g.log_prob(given)
    assert out.dtype == (np.float32 if kind == "float32" else np.float64)
    np.testing.assert_allclose(out, h.log_prob(want), rtol=1e-6 if kind == "float32" else 0)


def test_small_integers_do_not_overflow():
    x = np.full((1000, 1), 127, np.int8)
    x[::2] = -128
    g = Gaussian.fit(x, kind="diagonal")
    assert g.mean[0] == pytest.approx(-0.5, abs=1e-12) and g.variance[0] == pytest.approx(127.5**2, rel=1e-14)


@pytest.mark.parametrize("name", FITS)
def test_single_precision_decides_alike(name):
    """Promise 14: of two members, float32 rows choose the one that float64 rows choose, 999 times in 1000."""
    x = rows(4000, 3, seed=5)
    g = FITS[name](x)
    stack = Gaussian(np.stack([g.mean, g.mean + 1.0]), g.covariance, kind=g.kind)
    single, double = stack.log_prob(x.astype(np.float32)), stack.log_prob(x)
    assert (single.argmax(axis=1) == double.argmax(axis=1)).mean() >= 0.999


# ------------------------------------------------------------------- NaN, inf


@pytest.mark.parametrize("name", FITS)
def test_an_infinity_is_named_by_row_and_column(name):
    for value in (np.inf, -np.inf):
        x = rows()
        x[17, 2] = value
        x[3, 0] = np.nan
        with pytest.raises(DataError, match=rf"{value} at row 17, column 2: correct it, or replace it by NaN"):
            FITS[name](x)
        with pytest.raises(DataError, match="at row 17, column 2"):
            FITS[name](rows()).log_prob(x)


@pytest.mark.parametrize("name", FITS)
def test_a_column_that_was_never_seen_is_left_alone(name):
    x = rows()
    x[:, 1] = np.nan
    g = FITS[name](x)
    seen = Gaussian.fit(x[:, [0, 2]], kind=g.kind, prior="weak" if "weak" in name else None)
    np.testing.assert_allclose(g.mean[[0, 2]], x[:, [0, 2]].mean(axis=0), rtol=1e-10, atol=1e-12)
    assert np.isfinite(g.log_prob(x)).all() and g.variance[1] > 0
    if "weak" not in name:
        np.testing.assert_allclose(g.marginal([0, 2]).covariance, seen.covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FITS)
def test_a_row_that_was_never_seen_is_no_row(name):
    x = rows()
    with_empty = np.insert(x, 7, np.nan, axis=0)
    g, h = FITS[name](x), FITS[name](with_empty)
    np.testing.assert_allclose(h.mean, g.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(h.covariance, g.covariance, rtol=1e-12, atol=1e-13)
    assert g.log_prob(with_empty)[7] == 0.0


@pytest.mark.parametrize("name", FITS)
def test_nothing_seen_at_all_is_an_error(name):
    with pytest.raises(LikelyError, match="at least one entry must have been observed"):
        FITS[name](np.full((4, 3), np.nan))


# ------------------------------------------------------- empty and ill-shaped


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        (np.empty((0, 3)), DataError, "0 rows"),
        ([], DataError, "0 rows"),
        (np.empty((5, 0)), ShapeError, r"\(5, 0\)"),
        (np.zeros((2, 3, 4)), ShapeError, r"\(2, 3, 4\)"),
        (np.float64(3.0), ShapeError, "data with rows"),
        (np.zeros((3, 2), complex), DataError, "real numbers"),
        ([["a", "b"], ["c", "d"]], DataError, "must be numbers"),
        ((row for row in np.zeros((3, 2))), DataError, r"lk\.online_em"),
    ],
)
def test_what_has_no_rows_of_numbers_is_refused(name, x, error, says):
    with pytest.raises(error, match=says):
        FITS[name](x)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("weight", "error", "says"),
    [
        (np.zeros(30), LikelyError, "at least one row"),
        (np.full(30, -1.0), DataError, "-1.0 at row 0"),
        (np.where(np.arange(30) == 4, np.nan, 1.0), DataError, "nan at row 4"),
        (np.where(np.arange(30) == 4, np.inf, 1.0), DataError, "inf at row 4"),
        (np.ones(29), ShapeError, r"one entry per row \(30\)"),
        (np.ones((30, 2)), ShapeError, "weight"),
        ("heavy", LikelyError, "weight"),
        (2.0, ShapeError, "one entry per row"),
    ],
)
def test_weights_that_make_no_sense_are_refused(name, weight, error, says):
    with pytest.raises(error, match=says):
        FITS[name](rows(), weight)


@pytest.mark.parametrize("name", FITS)
def test_weights_of_any_size_mean_the_same(name):
    if "weak" in name:  # a prior is worth so many rows: weights are not free of scale there
        return
    x, w = rows(), np.random.default_rng(1).random(30)
    g = FITS[name](x, w)
    for factor in (1e-200, 1e-8, 1e8, 1e200):
        h = FITS[name](x, w * factor)
        np.testing.assert_allclose(h.covariance, g.covariance, rtol=1e-12)


# ---------------------------------------------------------- sizes of numbers


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("value", [1e10, 1e154, 1e155, 1e300, -1.7e308])
def test_a_far_point_has_a_density_or_none_but_never_nan(name, value):
    g = FITS[name](rows())
    x = rows(5)
    x[2, 1] = value
    out = g.log_prob(x)
    assert not np.isnan(out).any() and (out[2] < -1e15) and np.isfinite(np.delete(out, 2)).all()
    stack = Gaussian(np.stack([g.mean] * 5) + np.arange(5.0)[:, None], g.covariance, kind=g.kind)
    for rows_ in (x, np.where(np.arange(3) == 0, np.nan, x)):
        many = stack.log_prob(rows_)
        assert not np.isnan(many).any() and (many[2] < -1e15).all() and np.isfinite(np.delete(many, 2, axis=0)).all()
        assert not np.isnan(stack.mahalanobis(rows_)).any()


@pytest.mark.parametrize("n", [3, 5000])
def test_what_single_precision_cannot_hold_is_minus_infinity(n):
    out = Gaussian([0.0], 1.0).log_prob(np.full((n, 1), 1e30, np.float32))
    assert out.dtype == np.float32 and (out == -np.inf).all()


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("value", [1e160, 1e300, 1.7e308])
def test_a_row_whose_square_overflows_is_refused_in_a_fit(name, value):
    x = rows()
    x[3, 1] = value
    for data in (x, np.where(np.arange(30)[:, None] == 9, np.nan, x)):
        with pytest.raises(DataError, match="rescale the column"):
            FITS[name](data)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-147, 1e151])
def test_columns_too_small_or_large_to_square_are_refused(name, scale):
    with pytest.raises(DataError, match="rescale the column"):
        FITS[name](rows() * scale)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("scale", [1e-140, 1e-100, 1e100, 1e140])
def test_other_scales_are_answered(name, scale):
    g, h = FITS[name](rows()), FITS[name](rows() * scale)
    np.testing.assert_allclose(h.covariance / scale / scale, g.covariance, rtol=1e-11)


def test_a_constant_that_cannot_be_squared_is_refused():
    x = rows()
    x[:, 1] = 1e300
    with pytest.raises(DataError, match="rescale the column"):
        Gaussian.fit(x)


def test_denormal_weights_and_counts():
    w = np.full(30, 5e-324)
    with pytest.raises(LikelyError):
        Gaussian.fit(rows(), np.zeros(30))
    g = Poisson.fit(np.arange(30.0)[:, None], w * 1e16)
    assert np.isfinite(g.rate).all()


# -------------------------------------------------------------- other families


@dataclass(frozen=True)
class Counted:
    fit: Callable[..., Any]
    x: Any


OTHERS = {
    "Poisson": Counted(lambda x, w=None: Poisson.fit(x, w), np.array([[0.0, 3.0], [2.0, 1.0], [5.0, 4.0]])),
    "Categorical": Counted(lambda x, w=None: Categorical.fit(x, w, levels=3), np.array([0, 1, 2, 1])),
    "Product": Counted(
        lambda x, w=None: Product.fit(x, w, distributions={"a": Gaussian, "b": Poisson}),
        {"a": np.array([[0.0], [1.0], [4.0]]), "b": np.array([1.0, 2.0, 0.0])},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_families_refuse_bad_weights(name):
    family = OTHERS[name]
    n = len(family.x["a"]) if isinstance(family.x, dict) else len(family.x)
    for bad in (np.zeros(n), -np.ones(n), np.full(n, np.nan), np.ones(n + 1)):
        with pytest.raises(LikelyError, match="weight"):
            family.fit(family.x, bad)


@pytest.mark.parametrize("name", OTHERS)
def test_other_families_learn_from_one_row(name):
    family = OTHERS[name]
    one = {k: v[:1] for k, v in family.x.items()} if isinstance(family.x, dict) else family.x[:1]
    assert not np.isnan(family.fit(one).log_prob(one)).any()


@pytest.mark.parametrize("row", [0, 5000, 40_000])
def test_poisson_names_the_row_of_an_infinity(row):
    x = np.ones((50_000, 2))
    x[row, 1] = np.inf
    for attempt in (Poisson([1.0, 1.0]).log_prob, Poisson([1.0, 1.0]).collect, Poisson.fit):
        with pytest.raises(DataError, match=f"inf at row {row}, column 1"):
            attempt(x)

"""Kinds of columns, from made-up ones and from real files."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.stats

from likely.core.errors import DataError, from_shell
from likely.data.cells import as_words
from likely.data.column_types import count_tail, is_count, is_name_of_key, judged, kind_of
from likely.data.table import Table

DATA = Path(os.environ.get("LIKELY_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
TABLES = DATA / "tables"
needs_data = pytest.mark.skipif(not TABLES.is_dir(), reason="no data: the tables are not here")

rng = np.random.default_rng(7)
N = 400


def words(values):
    """As a CSV file would give them."""
    return [None if value is None else str(value) for value in values]


CASES = {
    "fractions": ("real", words(rng.normal(size=N).round(3))),
    "negative whole": ("real", words(rng.integers(-50, 50, N))),
    "large whole": ("real", words(rng.integers(1000, 90_000, N))),
    "whole floats": ("real", words(rng.integers(1000, 90_000, N).astype(float))),
    "age": ("real", words(rng.integers(17, 90, N))),
    "mark from 1 to 5": ("real", words(rng.integers(1, 6, N))),
    "pixel": ("real", words(np.minimum(rng.poisson(9, N) * 2, 16))),
    "mostly zero amounts": ("real", words(np.where(rng.random(N) < 0.9, 0, rng.integers(100, 9999, N)))),
    "sorted velocities": ("real", words(np.sort(rng.integers(9000, 34_000, 80)))),
    "poisson": ("count", words(rng.poisson(3.0, N))),
    "rare events": ("count", words(rng.poisson(0.2, N))),
    "overdispersed": ("count", words(rng.negative_binomial(1, 0.2, N))),
    "zero or one": ("binary", words(rng.integers(0, 2, N))),
    "minus one or one": ("binary", words(rng.choice([-1.0, 1.0], N))),
    "two words": ("binary", words(rng.choice(["red", "blue"], N))),
    "answers": ("binary", words(rng.choice(["Yes", "no", "YES", "No"], N))),
    "colors": ("category", words(rng.choice(["red", "blue", "green"], N))),
    "some numbers among words": ("category", words(rng.choice(["1", "2", "x", "y"], N))),
    "postal codes": ("category", words(rng.choice(["01067", "80331", "20095"], N))),
    "forty levels": ("category", words(rng.choice([f"level {i}" for i in range(40)], N))),
    "a few rows of words": ("category", ["a", "b", "c"]),
    "row numbers": ("identifier", words(range(1, N + 1))),
    "restarting row numbers": ("identifier", words([*range(1, 51)] * 4)),
    "ids with few gaps": ("identifier", words(np.sort(rng.choice(int(1.1 * N), N, replace=False) + 5))),
    "consumer_price_index": ("real", words(rng.permutation(9000)[:N])),
    "sorted incomes": ("real", words(np.sort(rng.choice(3 * N, N, replace=False) + 5000))),
    "customer_id": ("identifier", words(rng.permutation(90_000)[:N])),
    "long keys": ("identifier", words(rng.integers(2**60, 2**62, N))),
    "user names": ("identifier", [f"user{i}" for i in rng.permutation(9999)[:N]]),
    "many levels": ("identifier", words(rng.choice([f"u{i}" for i in range(200)], N))),
    "sentences": ("text", [f"this is the remark number {i} of many" for i in range(N)]),
    "iso dates": ("date", [str(dt.date(2020, 1, 1) + dt.timedelta(days=i % 90)) for i in range(N)]),
    "iso times": ("date", ["2024-12-31T23:59:59Z", "2024-01-01 00:00:00.5", "2024-01-01T10:00+02:00"]),
    "european dates": ("date", ["31/12/2024", "1/2/2024", "28.02.24"]),
    "american dates": ("date", ["12/31/2024", "2/1/2024"]),
    "named months": ("date", ["31 Dec 2024", "1-Feb-2024", "March 5, 2023"]),
    "clock": ("date", ["12:30:00", "9:15", "11:00 pm"]),
    "packed dates": ("date", ["20241231", "20230101", "20220630"]),
    "constant number": ("constant", ["3"] * N),
    "constant word with gaps": ("constant", ["x", None] * N),
    "empty": ("empty", [None] * N),
    "not numbers at all": ("empty", ["NAN", "-nan"]),
}


@pytest.mark.parametrize("name", CASES)
def test_kinds_of_cells_as_written(name):
    kind, cells = CASES[name]
    assert kind_of(pl.Series(name, cells, dtype=pl.String)) == kind
    with_gaps = pl.Series(name, [*cells, None, None, None], dtype=pl.String)
    got, reason = judged(with_gaps)
    assert got == kind and reason


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("binary", pl.Series([True, False, None])),
        ("constant", pl.Series([True, True])),
        ("date", pl.Series([dt.date(2024, 1, 1), None])),
        ("date", pl.Series([dt.timedelta(seconds=3)])),
        ("text", pl.Series([[1, 2], [3]])),
        ("text", pl.Series([{"a": 1}, {"a": 2}])),
        ("real", pl.Series([1.5, float("nan"), 2.0])),
        ("empty", pl.Series([float("nan"), None])),
        ("empty", pl.Series([None, None])),
        ("count", pl.Series(rng.poisson(2.0, N), dtype=pl.UInt8)),
    ],
)
def test_kinds_of_typed_columns(kind, column):
    assert kind_of(column) == kind


def test_a_mixed_column_is_named_by_row_and_column():
    cells = [*map(str, range(17)), "n/a!", "3"]
    told = 'row 18, column "petal_width": "n/a!" is not a number. Use '
    with pytest.raises(DataError) as caught:
        kind_of(pl.Series("petal_width", cells))
    assert str(caught.value) == told + 'None in its place, or kinds={"petal_width": "category"}.'
    with pytest.raises(DataError) as caught, from_shell():
        kind_of(pl.Series("petal_width", cells))
    assert str(caught.value) == told + '--missing "n/a!", or --as petal_width=category.'


def test_below_four_fifths_numbers_it_is_words():
    assert kind_of(pl.Series("x", ["1", "2", "3", "4", "5", "6", "7", "a", "b"])) == "category"
    with pytest.raises(DataError, match='row 9, column "x": "a"'):
        kind_of(pl.Series("x", ["1", "2", "3", "4", "5", "6", "7", "8", "a", "b"]))
    assert kind_of(pl.Series("x", ["1", "2", "3", "4", "a"])) == "category"  # four numbers say too little


@pytest.mark.parametrize("word", ["inf", "-Infinity", "1e999"])
def test_infinity_is_named(word):
    told = f'row 3, column "x": "{word}" is not a finite number. Use None in its place'
    with pytest.raises(DataError, match=told):
        kind_of(pl.Series("x", ["1", None, word]))
    with pytest.raises(DataError, match='row 2, column "x": "inf" is not a finite number'):
        kind_of(pl.Series("x", [1.0, float("inf")]))


DRESSED = [["3,14", "2,5", "-1,0"], ["1,234.5", "12,000", "7,500"], ["5 %", "7%", "12.5 %"], ["$5", "$1,200"]]


@pytest.mark.parametrize("cells", DRESSED)
def test_numbers_in_a_dress_are_not_guessed(cells):
    with pytest.raises(DataError, match=r'row 1, column "price": .* is not guessed. Write plain numbers'):
        kind_of(pl.Series("price", cells * 3))


def test_count_tail_is_that_of_the_distributions():
    for k, mean, variance in [(3, 2.0, 2.0), (16, 5.4, 22.0), (0, 0.2, 0.2), (40, 8.9, 120.0)]:
        distribution = scipy.stats.poisson(mean) if mean == variance else scipy.stats.nbinom(
            mean**2 / (variance - mean), mean / variance
        )  # fmt: skip
        assert count_tail(k, mean, variance) == pytest.approx(distribution.sf(k), rel=1e-9)


@pytest.mark.parametrize("mean", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_poisson_counts_are_seldom_missed(mean):
    draws = np.random.default_rng(5)
    samples = [draws.poisson(mean, 300) for _ in range(100)]
    varied = [pl.Series(sample) for sample in samples if len(set(sample.tolist())) > 2]
    assert sum(map(is_count, varied)) >= 0.9 * len(varied) and varied


def test_names_of_keys():
    assert all(map(is_name_of_key, ["id", "PatientID", "row nr.", "UUID", "index", "Row No"]))
    assert not any(
        map(is_name_of_key, ["humidity", "width", "paid", "notes", "keyboard", "x1", "price index", "serial_sevens"])
    )


EXPECTED = {  # file → target, {column: kind} for the telling ones, number of columns in use
    "adult_train.csv.gz": ("income", {"age": "real", "workclass": "category", "sex": "binary", "fnlwgt": "real"}, 14),
    "crabs.csv": ("sp", {"sex": "binary", "index": "identifier", "FL": "real"}, 6),
    "spambase.csv": ("spam", {"x0": "real", "esl_test": "binary"}, 58),
    "letter.csv": ("label", {"split": "binary", "x1": "real", "x5": "real"}, 17),
    "satimage_trn.csv": ("label", {"x0": "real", "x35": "real"}, 36),
    "pendigits.csv": ("label", {"x0": "real", "x15": "real"}, 17),
    "optdigits.csv": ("label", {"x0": "constant", "x39": "constant", "x2": "real"}, 63),
    "heart_keel.csv": ("label", {"x0": "real", "x1": "binary", "x4": "real", "x11": "count"}, 13),
    "forensic_glass.csv": ("type", {"RI": "real", "Na": "real"}, 9),
    "shuttle_trn.csv.gz": ("label", {"x0": "real", "x1": "real"}, 9),
    "wine_keel.csv": ("label", {"x0": "real", "x7": "real", "x12": "real"}, 13),
    "ionosphere_keel.csv": ("label", {"x0": "binary", "x1": "real"}, 33),
    "galaxies.csv": (None, {"dat": "real"}, 1),
    "california_housing.csv.gz": (None, {"ocean_proximity": "category", "total_rooms": "real"}, 10),
    "boston.csv": (None, {"chas": "binary", "rad": "real", "zn": "real"}, 14),
}


@needs_data
@pytest.mark.parametrize("name", EXPECTED)
def test_kinds_in_real_files(name):
    target, kinds, used = EXPECTED[name]
    table = Table.of(TABLES / name, target=target)
    found = {column.name: column.kind for column in table.columns}
    assert {column: found[column] for column in kinds} == kinds
    assert len(table.used) == used and len(table.rows()) == len(table)


@needs_data
def test_published_sizes():
    adult = Table.of(TABLES / "adult_train.csv.gz", target="income")
    assert adult.class_counts == {"<=50K": 24720, ">50K": 7841}  # the file's own documentation
    gaps = {column.name: column.n_missing for column in adult.columns if column.n_missing}
    assert gaps == {"workclass": 1836, "occupation": 1843, "native_country": 583}


def test_huge_integers_stay_what_they_are():
    words = as_words(pl.Series("x", [1e20, 3e20, None]))
    assert words.null_count() == 1 and words.n_unique() == 3


@pytest.mark.parametrize(
    "cells",
    [
        [str(10**40 + i * 10**38) for i in range(40)],
        [f"1e{300 + i % 9}" for i in range(40)],
        [f"{'-' * (i % 2)}{1 + i / 60:.3f}e308" for i in range(40)],
        [str(2**63 + 4096 * (i % 5)) for i in range(40)],
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_beyond_64_bits_are_numbers(cells):
    table = Table.of({"x": cells, "y": ["a", "b"] * 20}, target="y", kinds={"x": "real"})
    assert table.frame["x"].to_list() == [float(cell) for cell in cells]
    assert np.isfinite(table.columns[0].range).all()
    assert judged(pl.Series("x", cells))[0] in ("real", "identifier", "category")
    again = Table.like({"x": {"kind": "count"}}, {"x": cells})
    assert again.frame["x"].to_list() == [float(cell) for cell in cells]  # none becomes missing


def test_integers_of_any_type_are_numbers():
    for dtype in (pl.UInt64, pl.Int128):
        assert kind_of(pl.Series("x", [2**63 + 2048 * (i % 7) for i in range(40)], dtype=dtype)) == "real"


def test_a_cell_too_long_to_repeat_has_a_way_out():
    with pytest.raises(DataError, match=r"is not a finite number\. Correct the cell, or leave the column out"):
        kind_of(pl.Series("x", ["1", "2", "9" * 400]))


def test_large_measurements_are_no_keys():
    """Every float beyond 2⁵³ is whole; only digits that were written are a key."""
    values = 1e18 * np.random.default_rng(0).lognormal(size=40)
    assert kind_of(pl.Series("doping", values)) == "real"
    written = pl.DataFrame({"doping": [f"{v:.4g}" for v in values], "key": [str(int(v)) for v in values]})
    found = {column.name: column.kind for column in Table.of(written).columns}
    assert found == {"doping": "real", "key": "identifier"}


def test_a_table_without_measurements_is_told_the_way_out():
    told = r"got none: .*: add one, or set its type with "
    with from_shell(), pytest.raises(DataError, match=told + r"--as NAME=KIND\.$"):
        Table.of({"k": np.arange(20)})
    with pytest.raises(DataError, match=told + r'kinds=\{"NAME": "KIND"\}\.$'):
        Table.of({"k": np.arange(20)})

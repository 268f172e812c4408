"""`likely align`: the same distance and path as in Python, from two files or one long table."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from likely.alignment.dtw import dtw
from tests.cli.tables import run, write


@pytest.fixture
def both(tmp_path):
    rng = np.random.default_rng(0)
    t = np.linspace(0, 6, 40)
    a, b = np.stack([np.sin(t), np.cos(t)], 1), np.stack([np.sin(t**1.1), np.cos(t**1.1)], 1)[:30]
    a, b = a + 0.1 * rng.normal(size=a.shape), b + 0.1 * rng.normal(size=b.shape)
    for name, x in (("a", a), ("b", b)):
        write(pl.DataFrame(x, schema=["u", "v"]), tmp_path / f"{name}.csv")
    parts = [pl.DataFrame(x, schema=["u", "v"]).with_columns(id=pl.lit(i), t=pl.Series(range(len(x))))
             for i, x in ((1, a), (2, b))]  # fmt: skip
    write(pl.concat(parts).reverse(), tmp_path / "long.csv")
    return tmp_path, a, b


def test_two_files_give_distance_and_path(both):
    at, a, b = both
    done = run(
        "align", at / "a.csv", at / "b.csv", "-o", at / "p.csv", "--band", 0.4, "--metric", "sqeuclidean", "--json"
    )
    assert done.exit_code == 0, done.stderr
    want = dtw(a, b, band=0.4, metric="sqeuclidean")
    assert json.loads(done.stdout)["distance"] == pytest.approx(want.distance)
    got = pl.read_csv(at / "p.csv")
    np.testing.assert_array_equal(got.select("a", "b").to_numpy(), want.path)
    np.testing.assert_allclose(got["b v"], b[want.path[:, 1], 1])


def test_one_long_table(both):
    at, a, b = both
    done = run("align", at / "long.csv", "--id", "id", "--time", "t", "--ids", 1, 2, "--columns", "u", "--open-end")
    assert done.exit_code == 0, done.stderr
    assert f"{dtw(a[:, 0], b[:, 0], open_end=True).distance:.6g}" in done.stdout


def test_the_path_may_go_to_stdout_and_the_figures_then_do_not(both):
    at, a, b = both
    done = run("align", at / "a.csv", at / "b.csv", "-o", "-")
    assert pl.read_csv(done.stdout.encode()).height == len(dtw(a, b).path) and "distance" in done.stderr


@pytest.mark.slow
def test_a_picture_is_drawn_whole_or_not_at_all(both):
    pytest.importorskip("matplotlib")
    at, _, _ = both
    assert run("align", at / "a.csv", at / "b.csv", "--plot", at / "p.png").exit_code == 0
    assert (at / "p.png").read_bytes().startswith(b"\x89PNG")
    assert run("align", at / "a.csv", at / "b.csv", "--plot", at / "no" / "p.png").exit_code == 1


@pytest.mark.parametrize(
    "args, words",
    [
        (("a.csv",), "Name two files"),
        (("a.csv", "b.csv", "a.csv"), "Two sequences"),
        (("long.csv", "--id", "id", "--ids", "1", "3"), 'there must be a sequence "3"'),
        (("a.csv", "long.csv"), "columns must be as many as those of"),
        (("a.csv", "b.csv", "--band", "wide"), "neither a fraction below 1"),
        (("a.csv", "b.csv", "--step-pattern", "hops"), "hops"),
        (("a.csv", "none.csv"), "none.csv"),
        (("a.csv", "b.csv", "--columns", "w"), '"w"'),
        (("a.csv", "b.csv", "-o", "a.csv"), "would be overwritten"),
    ],
)
def test_bad_requests_are_answered_in_words(both, monkeypatch, args, words):
    monkeypatch.chdir(both[0])
    done = run("align", *args)
    assert done.exit_code in (1, 2, 3) and words in done.stderr


def test_words_are_no_series(both):
    at, _, _ = both
    for name in "cd":
        write(pl.DataFrame({"u": ["x", "y"]}), at / f"{name}.csv")
    done = run("align", at / "c.csv", at / "d.csv")
    assert done.exit_code == 3 and "frames must be numbers" in done.stderr

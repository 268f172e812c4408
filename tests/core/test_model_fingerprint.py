"""A fingerprint is the same for the same model and another for any other, in every process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.core.model_fingerprint import chained_fingerprint, fingerprint


def test_every_number_counts():
    def model(moves=0.9, mean=5.0):
        return lk.HMM([0.5, 0.5], [[moves, 1 - moves], [0.1, 0.9]], lk.Gaussian([[0.0], [mean]], 1.0))

    first = fingerprint(model())
    assert first == fingerprint(model()) and len(first) == 16
    assert len({first, fingerprint(model(0.8)), fingerprint(model(mean=np.nextafter(5.0, 6)))}) == 3
    assert fingerprint(lk.Poisson([1.0])) != fingerprint(lk.Bernoulli([1.0]))


def test_parts_do_not_run_into_each_other():
    assert fingerprint(["ab", "c"]) != fingerprint(["a", "bc"]) != fingerprint([["a"], "bc"])
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(1) != fingerprint(1.0) != fingerprint("1")


def test_functions_count_by_their_code_and_what_they_hold():
    def scaled(factor):
        return lambda x: factor * x

    assert fingerprint(scaled(2.0)) == fingerprint(scaled(2.0)) != fingerprint(scaled(3.0))
    assert fingerprint(lambda x: x + 1) != fingerprint(lambda x: x + 2)

    def endless():
        return endless

    assert fingerprint(endless) == fingerprint(endless)


def test_rows_of_things_count_by_value_and_order():
    def row(*things):
        seen = ""
        for thing in things:
            seen = chained_fingerprint(seen, thing)
        return seen

    frame = pl.DataFrame({"a": [1.0], "b": [2.0]})
    assert row(1, "a") == row(np.float32(1), "a") != row("a", 1)
    assert row([1, 2]) == row(np.array([1.0, 2.0])) != row([2, 1])
    assert row(frame) == row(np.array([[1.0, 2.0]])) != row(frame.with_columns(a=3.0))
    assert row(([1.0], "x")) == row((np.array([1]), "x")) != row(([1.0], "y"))
    assert row([[1], [1, 2]]) != row([[1], [1, 3]]) and row(["a", None]) != row(["b", None])
    assert row(-0.0) == row(0.0) and row(float("nan")) == row(-np.nan)


def test_estimators_count_by_settings_and_what_was_learned():
    x = np.random.default_rng(0).normal(size=(50, 2))
    one, two = lk.GaussianDensity().fit(x), lk.GaussianDensity().fit(x[:49])
    assert fingerprint(one) == fingerprint(lk.GaussianDensity().fit(x)) != fingerprint(two)
    assert fingerprint(lk.GaussianDensity("diagonal")) != fingerprint(lk.GaussianDensity())


@pytest.mark.slow
def test_it_is_the_same_in_another_process():
    code = (
        "import likely as lk; from likely.core.model_fingerprint import fingerprint as f; print(f(lk.Poisson([1.5])))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == fingerprint(lk.Poisson([1.5]))

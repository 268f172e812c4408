"""Costs and class probabilities from small files and lists."""

from __future__ import annotations

import numpy as np
import pytest

from likely.cli.costs import read_class_prior, read_cost
from likely.core.errors import DataError

CLASSES = np.array(["a", "b"])


def cost(tmp_path, text: str):
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    return read_cost(str(tmp_path / "c.csv"), CLASSES)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_rows_and_columns_in_any_order(tmp_path, separator):
    text = "\ufeffaction,b,a\nask,3,4\nb,0,1\na,9,0\n".replace(",", separator)
    found = cost(tmp_path, text)
    assert found.table.tolist() == [[0, 9], [1, 0], [4, 3]] and found.actions == ("ask",)


def test_the_corner_may_be_empty_and_classes_may_be_numbers(tmp_path):
    (tmp_path / "c.csv").write_text(",1,2\n1,0,5\n2,1,0\n")
    assert read_cost(str(tmp_path / "c.csv"), np.array([1, 2])).table.tolist() == [[0, 5], [1, 0]]


@pytest.mark.parametrize("spelled", [("-1.0", "1.0"), ("-1", "1"), ("-1.0", "+1")])
def test_classes_that_are_numbers_may_be_spelled_otherwise(tmp_path, spelled):
    a, b = spelled
    (tmp_path / "c.csv").write_text(f"action,{a},{b}\n{a},0,5\n{b},1,0\nask,2,2\n")
    found = read_cost(str(tmp_path / "c.csv"), np.array([-1.0, 1.0]))
    assert found.table.tolist() == [[0, 5], [1, 0], [2, 2]] and found.actions == ("ask",)
    assert read_class_prior(f"{b}=0.3,{a}=0.7", np.array([-1.0, 1.0])) == [0.7, 0.3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an empty file"),
        ("action,a\na,0\n", 'a column for the true class "b"'),
        ("action,a,c\na,0,1\nb,1,0\n", '"c"'),
        ("action,a,b\na,0,1\n", 'a row for deciding "b"'),
        ("action,a,b\na,0,1\nb,1\n", 'row "b" must have a cost for each of 2 classes'),
        ("action,a,b\na,0,much\nb,1,0\n", 'deciding "a" where "b" is true must be a number, or inf, got "much"'),
        ("action,a,b\na,0,-inf\nb,1,0\n", "must be a number"),
        ("action,a,b\na,0,1\nb,1,0\nb,2,0\n", '"b" twice'),
        ("action,a,b,b\na,0,1,1\nb,1,0,0\n", '"b" twice'),
        ("only words\n", "costs are a table"),
    ],
)
def test_wrong_tables_name_class_and_way_out(tmp_path, text, words):
    with pytest.raises(DataError, match=r"c\.csv: ") as caught:
        cost(tmp_path, text)
    assert words in str(caught.value)


def test_class_probabilities(tmp_path):
    (tmp_path / "p.csv").write_text("class,probability\nb,0.25\na,0.75\n")
    for given in ("0.75,0.25", "b=0.25, a=0.75", str(tmp_path / "p.csv")):
        assert read_class_prior(given, CLASSES) == [0.75, 0.25]
    assert read_class_prior("uniform", CLASSES) == [0.5, 0.5]


@pytest.mark.parametrize("given", ["0.5", "a=0.5", "a=0.5,c=0.5", "a=0.9,b=0.9", "a=-1,b=2", "a=x,b=1", "half"])
def test_wrong_class_probabilities(given):
    with pytest.raises(DataError, match="--class-prior"):
        read_class_prior(given, CLASSES)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: there is no such file\.$"):
        read_cost(str(tmp_path / "none.csv"), ["a", "b"])

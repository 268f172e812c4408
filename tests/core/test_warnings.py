"""Warnings point to the line that called the library, and are said once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, FitWarning
from likely.core.warnings import Note, warn, warnings_discarded, warnings_once, warnings_renamed


def heard(f):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        f()
    return said


def signs(n=200):
    x = np.random.default_rng(0).integers(0, 2, (n, 3)).astype(float)
    x[:, 1] = 1.0
    return x


@pytest.mark.parametrize(
    "call",
    [
        lambda: lk.Gaussian.fit(np.arange(8.0).reshape(2, 4)),
        lambda: lk.Poisson.fit([[np.nan, 1.0], [np.nan, 2.0]]),
        lambda: lk.Multinomial.fit([[0.5, 1.0], [1.0, 2.0]]),
        lambda: lk.distributions.BetaBinomial.fit([[1.0], [1.0], [2.0], [1.0]]),
        lambda: lk.NegativeBinomial.fit([[1.0], [1.0], [2.0], [1.0]]),
        lambda: lk.estimate(lk.Gaussian, np.arange(8.0).reshape(2, 4)),
        lambda: lk.distributions.LogLinear.fit(signs(), order=2),
        lambda: lk.GaussianDensity().fit(np.ones((5, 2))),
        lambda: lk.BayesClassifier(lk.GaussianDensity()).fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1]),
    ],
    ids="Gaussian Poisson Multinomial BetaBinomial NegativeBinomial estimate LogLinear density Bayes".split(),
)
def test_they_point_to_the_caller(call):
    said = heard(call)
    assert said and {w.filename for w in said} == {__file__}


def test_notes_and_errors_are_reported_in_the_name_of_who_was_called():
    with pytest.warns(FitWarning) as heard, warnings_renamed("Outer", "Inner"):
        warn("Inner (class 1): x")
        warn("Innermost: Inner y")
    assert [str(w.message) for w in heard] == ["Outer (class 1): x", "Innermost: Inner y"]
    with pytest.raises(DataError, match=r"^Outer: Inner needs rows") as caught, warnings_renamed("Outer", "Inner"):
        raise DataError("Inner: Inner needs rows")
    assert caught.value.args == ("Outer: Inner needs rows",)
    with pytest.raises(KeyError, match="Inner"), warnings_renamed("Outer", "Inner"):
        raise KeyError("Inner")  # no message of ours


def test_each_is_said_once_and_named():
    def twice():
        with warnings_once(lambda note: note.with_columns(["a", "b"]).with_members("class", ["x", "y"])):
            for _ in range(2):
                warn(Note("Gaussian", "{columns} constant", members=(1,), columns=(0, 1)))
            warn("plain")
            with warnings_discarded():
                warn("other")
        with warnings_once(lambda note: None):
            warn("dropped")

    assert [str(w.message) for w in heard(twice)] == ["Gaussian (class 'y'): columns 'a' and 'b' are constant", "plain"]


def test_a_name_that_was_given_stays():
    note = Note("Gaussian", "{columns} constant", members=(0,), columns=(1,), parts=("size",))
    named = note.with_columns(["a", "b"]).with_columns(["c", "d"]).with_members("state").with_members("class", ["x"])
    assert str(named.called("PCA", "Gaussian")) == "part 'size': Gaussian (state 0): column 'b' is constant"
    assert str(note.with_columns(["a"])) == "part 'size': Gaussian (member 0): column 1 is constant"

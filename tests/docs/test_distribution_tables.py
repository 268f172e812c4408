"""The tables of the chapters are what the distributions say when they are asked, and no distribution is left out."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import likely as lk
from likely.distributions.distribution import Distribution
from tests.docs.distribution_tables import CASES, QUESTIONS, TABLES, answer, written
from tests.public_names import public

MADE_OF_OTHERS = {
    "Product", "Stack", "Tied", "Transformed", "LatticeDistribution", "GridDistribution", "MaximumEntropyDistribution",
}  # fmt: skip  # what they can say is what their parts can


@pytest.mark.slow
@pytest.mark.parametrize("page", TABLES)
def test_tables_are_not_stale(page):
    title, make = TABLES[page]
    assert written(page, title) == make(), "python -m tests.docs.distribution_tables writes it anew"


def test_no_distribution_is_left_out():
    found = public()
    distributions = {
        name for name, thing in found.items() if inspect.isclass(thing) and issubclass(thing, Distribution)
    }
    distributions = {name for name in distributions if found[name].__module__.split(".")[1] == "distributions"}
    assert distributions - MADE_OF_OTHERS <= set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_not_known_is_refused_in_words(name):
    """Whatever is no answer is an error of ours that names the distribution."""
    for case in filter(None, CASES[name]()):
        for question, ask in QUESTIONS.items():
            if not answer(case.distribution, question):
                with pytest.raises(lk.LikelyError, match=rf"^{name}"):
                    ask(case.distribution)


@pytest.mark.parametrize("name", ["NegativeBinomial", "BetaNegativeBinomial", "Poisson", "Binomial", "BetaBinomial"])
def test_medians_of_counts_are_their_quantiles(name):
    one, several = (case.distribution for case in CASES[name]())
    assert one.median.tolist() == [one.quantile(0.5)]
    assert several.median.tolist() == [float(one.quantile(0.5))] * 2


def test_questions_nobody_asks_are_plain_attribute_errors():
    distribution = lk.distributions.DirichletMultinomial([1.0, 2.0], 3)
    assert not hasattr(distribution, "mode")
    with pytest.raises(AttributeError, match="no attribute 'color'"):
        _ = distribution.color
    with pytest.raises(lk.DomainError, match="this distribution has no cdf in closed form"):
        distribution.cdf(np.zeros(2))

"""The tables of the chapters are what the laws say when they are asked, and no law is left out."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import likely as lk
from likely.distributions.distribution import Law
from tests.docs.law_tables import CASES, QUESTIONS, TABLES, answer, written

MADE_OF_OTHERS = {
    "Product", "Several", "Shared", "Transformed", "LatticeLaw", "GridLaw", "MaximumEntropyLaw",
}  # fmt: skip  # what they can say is what their parts can


@pytest.mark.slow
@pytest.mark.parametrize("page", TABLES)
def test_tables_are_not_stale(page):
    title, make = TABLES[page]
    assert written(page, title) == make(), "python -m tests.docs.law_tables writes it anew"


def test_no_law_is_left_out():
    public = {name: getattr(lk, name) for name in lk.__all__}
    laws = {name for name, thing in public.items() if inspect.isclass(thing) and issubclass(thing, Law)}
    laws = {name for name in laws if public[name].__module__.split(".")[1] == "distributions"}
    assert laws - MADE_OF_OTHERS <= set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_not_known_is_refused_in_words(name):
    """Whatever is no answer is an error of ours that names the law."""
    for case in filter(None, CASES[name]()):
        for question, ask in QUESTIONS.items():
            if not answer(case.law, question):
                with pytest.raises(lk.LikelyError, match=rf"^{name}"):
                    ask(case.law)


@pytest.mark.parametrize("name", ["NegativeBinomial", "BetaNegativeBinomial", "Poisson", "Binomial", "BetaBinomial"])
def test_medians_of_counts_are_their_quantiles(name):
    one, several = (case.law for case in CASES[name]())
    assert one.median.tolist() == [one.quantile(0.5)]
    assert several.median.tolist() == [float(one.quantile(0.5))] * 2


def test_questions_nobody_asks_are_plain_attribute_errors():
    law = lk.DirichletMultinomial([1.0, 2.0], 3)
    assert not hasattr(law, "mode")
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = law.colour
    with pytest.raises(lk.DomainError, match="no cdf is known of this law"):
        law.cdf(np.zeros(2))

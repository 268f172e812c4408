"""Two tables of the chapters, made by asking the distributions: what each can say, and how its information is found.

`python -m tests.docs.distribution_tables` writes them into distributions.md and information-theory.md of docs/guide,
between their marks.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import likely as lk
from likely.distributions.support import Atoms, look
from likely.distributions.univariate.uniform_predictive import UniformPredictive

DOCS = Path(__file__).parents[2] / "docs" / "guide"
S = np.array([[2.0, 0.5], [0.5, 1.0]])
TREE = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1]], dtype=float)


class Case(NamedTuple):
    """A distribution with another of its kind, for divergences."""

    distribution: Any
    other: Any


def tree(weight: Any) -> lk.distributions.ChowLiuTree:
    blank = lk.distributions.ChowLiuTree.blank(TREE)
    return blank.refit(blank.collect(TREE, np.asarray(weight, dtype=float)))


# of each distribution: in one column, in several; None where there is no such thing
CASES: dict[str, Callable[[], tuple[Case | None, Case | None]]] = {
    "Gaussian": lambda: (
        Case(lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 2.0)),
        Case(lk.Gaussian([0.0, 1.0], S), lk.Gaussian([1.0, 1.0], 1.0)),
    ),
    "FactorGaussian": lambda: (
        None,
        Case(
            lk.distributions.FactorGaussian([0.0, 1.0], [[1.0], [0.5]], [0.5, 0.2]),
            lk.distributions.FactorGaussian([0.0, 0.0], [[1.0], [0.1]], [0.7, 0.2]),
        ),
    ),
    "StudentT": lambda: (
        Case(lk.StudentT([0.0], [[1.0]], 5.0), lk.StudentT([1.0], [[2.0]], 7.0)),
        Case(lk.StudentT([0.0, 0.0], S, 5.0), lk.StudentT([1.0, 0.0], S, 7.0)),
    ),
    "Elliptical": lambda: (
        Case(lk.distributions.Elliptical("logistic", [0.0], 1.0), lk.distributions.Elliptical("logistic", [1.0], 2.0)),
        Case(lk.distributions.Elliptical("logistic", [0.0, 0.0], S),
            lk.distributions.Elliptical("logistic", [1.0, 0.0], S)),
    ),
    "Laplace": lambda: columns(lk.Laplace, (0.0, 1.0), (1.0, 2.0)),
    "Cauchy": lambda: columns(lk.distributions.Cauchy, (0.0, 1.0), (1.0, 2.0)),
    "Uniform": lambda: columns(lk.Uniform, (0.0, 1.0), (-1.0, 2.0)),
    "Triangular": lambda: columns(lk.distributions.Triangular, (0.0, 0.3, 1.0), (-1.0, 0.5, 2.0)),
    "UniformPredictive": lambda: columns(UniformPredictive, (0.0, 3.0, 2.5), (-1.0, 3.0, 2.0)),
    "Exponential": lambda: columns(lk.Exponential, (2.0,), (1.0,)),
    "Lomax": lambda: columns(lk.distributions.Lomax, (3.0, 2.0), (2.5, 1.0)),
    "ChiSquare": lambda: columns(lk.distributions.ChiSquare, (3.0,), (5.0,)),
    "Gamma": lambda: columns(lk.Gamma, (2.0, 3.0), (1.5, 1.0)),
    "Beta": lambda: columns(lk.Beta, (2.0, 3.0), (1.5, 1.0)),
    "Dirichlet": lambda: (None, Case(lk.Dirichlet([2.0, 3.0, 4.0]), lk.Dirichlet([1.0, 1.5, 3.0]))),
    "VonMises": lambda: columns(lk.distributions.VonMises, (0.0, 2.0), (1.0, 1.0)),
    "VonMisesSum": lambda: columns(lk.distributions.VonMisesSum, (0.0, 2.0, 1.0), (1.0, 1.0, 2.0)),
    "Poisson": lambda: columns(lk.Poisson, (3.0,), (4.0,)),
    "NegativeBinomial": lambda: columns(lk.NegativeBinomial, (2.0, 0.4), (3.0, 0.5)),
    "BetaNegativeBinomial": lambda: columns(lk.distributions.BetaNegativeBinomial, (2.0, 3.0, 1.0), (3.0, 2.0, 1.0)),
    "Bernoulli": lambda: columns(lk.Bernoulli, (0.3,), (0.4,)),
    "Binomial": lambda: columns(lk.Binomial, (5, 0.3), (5, 0.4)),
    "BetaBinomial": lambda: columns(lk.distributions.BetaBinomial, (5, 2.0, 3.0), (5, 1.0, 1.0)),
    "Categorical": lambda: (Case(lk.Categorical([0.2, 0.3, 0.5]), lk.Categorical([0.1, 0.1, 0.8])), None),
    "Multinomial": lambda: (None, Case(lk.Multinomial([0.2, 0.3, 0.5], 4), lk.Multinomial([0.1, 0.1, 0.8], 4))),
    "DirichletMultinomial": lambda: (
        None,
        Case(lk.distributions.DirichletMultinomial([2.0, 3.0, 1.0], 4),
            lk.distributions.DirichletMultinomial([1.0, 1.0, 1.0], 4)),
    ),
    "Wishart": lambda: (None, Case(lk.distributions.Wishart(5.0, S), lk.distributions.Wishart(6.0, np.eye(2)))),
    "InverseWishart": lambda: (None,
        Case(lk.distributions.InverseWishart(7.0, S), lk.distributions.InverseWishart(8.0, np.eye(2)))),
    "Walsh": lambda: (None,
        Case(lk.distributions.Walsh.of([0.2, 0.1, 0.3, 0.4]), lk.distributions.Walsh.of([0.25] * 4))),
    "LogLinear": lambda: (
        None,
        Case(lk.distributions.LogLinear.normalized([0.0, 0.3, -0.4, 0.2], 2),
            lk.distributions.LogLinear.normalized([0.0, 0.1, 0.4, 0.2], 2)),
    ),
    "Bahadur": lambda: (
        None,
        Case(lk.distributions.Bahadur([0.4, 0.6], [1.0, 0, 0, 0.2]),
            lk.distributions.Bahadur([0.5, 0.6], [1.0, 0, 0, 0.1])),
    ),
    "ChowLiuTree": lambda: (None, Case(tree([1, 2, 1, 2, 1, 1, 2]), tree([2, 1, 2, 1, 1, 2, 1]))),
    "Mixture": lambda: (
        Case(
            lk.Mixture([0.3, 0.7], lk.Gaussian([[0.0], [5.0]], 1.0)),
            lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [4.0]], 1.0)),
        ),
        Case(
            lk.Mixture([0.3, 0.7], lk.Gaussian([[0.0, 0.0], [5.0, 1.0]], 1.0)),
            lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0, 0.0], [4.0, 0.0]], 1.0)),
        ),
    ),
}  # fmt: skip


def columns(kind: Any, mine: tuple[float, ...], others: tuple[float, ...]) -> tuple[Case, Case]:
    """A distribution of independent columns: one, and two of the same."""
    return Case(kind(*mine), kind(*others)), Case(*(kind(*([part] * 2 for part in one)) for one in (mine, others)))


# --------------------------------------------------------------------- what each distribution can say

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda distribution: distribution.mean,
    "mode": lambda distribution: distribution.mode,
    "median": lambda distribution: distribution.median,
    "variance": lambda distribution: distribution.variance,
    "entropy": lambda distribution: lk.entropy(distribution, n=256).value,
    "cdf": lambda distribution: distribution.cdf([0.5]),
    "quantile": lambda distribution: distribution.quantile([0.5]),
    "draws": lambda distribution: distribution.sample(3, np.random.default_rng(0)),
}


def answer(distribution: Any, question: str) -> bool:
    """True if it answers with numbers; False if it refuses, in words of ours (anything else is a mistake)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lk.FitWarning)
        try:
            return bool(np.isfinite(np.asarray(QUESTIONS[question](distribution), dtype=float)).all())
        except lk.LikelyError:
            return False


def cell(cases: tuple[Case | None, Case | None], question: str) -> str:
    found = [answer(case.distribution, question) for case in cases if case is not None]
    if all(found):
        return "yes"
    return "one column" if found[0] and len(found) > 1 else "no"


def what_distributions_say() -> str:
    lines = ["| distribution | " + " | ".join(QUESTIONS) + " |", "|---" * (len(QUESTIONS) + 1) + "|"]
    for name, make in CASES.items():
        cases = make()
        lines.append(f"| `{name}` | " + " | ".join(cell(cases, question) for question in QUESTIONS) + " |")
    return "\n".join(lines)


# ------------------------------------------------------------------- how information is found

SUMMED = {  # methods of distributions that are sums or integrals, not closed forms
    ("Poisson", "entropy"): "sum", ("NegativeBinomial", "entropy"): "sum", ("Binomial", "entropy"): "sum",
    ("BetaBinomial", "entropy"): "sum", ("BetaBinomial", "kl"): "sum", ("Multinomial", "entropy"): "sum",
    ("LogLinear", "entropy"): "sum", ("LogLinear", "kl"): "sum", ("BetaNegativeBinomial", "entropy"): "sum",
    ("BetaNegativeBinomial", "kl"): "sum", ("NegativeBinomial", "kl"): "closed form for equal sizes, else sum",
    ("Elliptical", "entropy"): "closed form, or quadrature", ("VonMisesSum", "entropy"): "quadrature",
}  # fmt: skip


def how(case: Case, what: str) -> str:
    """By which way lk.entropy or lk.kl_divergence found its answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lk.FitWarning)
        found = lk.entropy(case.distribution, n=512) if what == "entropy" else lk.kl_divergence(*case, n=512)
    if found.error > 0:
        return "draws"
    name = type(case.distribution).__name__
    if (name, what) in SUMMED:
        return SUMMED[name, what]
    if hasattr(case.distribution, what):
        return "closed form"
    return "sum" if isinstance(look(case.distribution), Atoms) else "quadrature"


def ways(cases: tuple[Case | None, Case | None], what: str) -> str:
    one, several = (None if case is None else how(case, what) for case in cases)
    if one is None or several is None or one == several:
        return one or several or ""
    return f"{one}; in several columns {several}"


def how_information_is_found() -> str:
    lines = ["| distribution | entropy | divergence from another of its kind |", "|---|---|---|"]
    for name, make in CASES.items():
        cases = make()
        lines.append(f"| `{name}` | {ways(cases, 'entropy')} | {ways(cases, 'kl')} |")
    return "\n".join(lines)


TABLES = {
    "distributions.md": ("what distributions say", what_distributions_say),
    "information-theory.md": ("how information is found", how_information_is_found),
}


def written(page: str, title: str) -> str:
    """The table between its marks."""
    found = re.search(rf"<!-- {title} -->\n\n(.*?)\n\n<!-- end -->", (DOCS / page).read_text(encoding="utf-8"), re.S)
    assert found is not None, f"docs/guide/{page} has no table between <!-- {title} --> and <!-- end -->"
    return found[1]


def refresh() -> None:
    for page, (title, make) in TABLES.items():
        path = DOCS / page
        path.write_text(path.read_text(encoding="utf-8").replace(written(page, title), make()), encoding="utf-8")


if __name__ == "__main__":
    refresh()

"""Parameters of each distribution per column: one function per distribution, with exact intervals where known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from likely.core.arrays import Array
from likely.distributions.binary.bahadur import Bahadur
from likely.distributions.binary.log_linear import LogLinear
from likely.distributions.binary.sign_products import sets_of
from likely.distributions.binary.walsh import Walsh
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.pair_counts import offsets_of
from likely.distributions.column_distribution import ColumnDistribution
from likely.distributions.elliptical.elliptical import Elliptical
from likely.distributions.student_t.student_t import StudentT
from likely.distributions.univariate.beta import Beta
from likely.distributions.univariate.beta_binomial import BetaBinomial
from likely.distributions.univariate.binomial import Binomial
from likely.distributions.univariate.cauchy import Cauchy
from likely.distributions.univariate.chi_square import ChiSquare
from likely.distributions.univariate.exponential import Exponential
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.laplace import Laplace
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.triangular import Triangular
from likely.distributions.univariate.uniform import Uniform
from likely.distributions.univariate.von_mises import VonMises
from likely.estimation.parameter_intervals import PARAMETER_ROWS, Row, of_share

WORDS = {"dof": "degrees of freedom", "probs": "probability", "prob": "probability"}


def _columns(model: ColumnDistribution, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The parameters of each column, by the names of the distribution."""
    for j, name in enumerate(names):
        for title, values in model.parameters.items():
            yield Row(name, WORDS.get(title, title), float(values[j]), None, None)


def _exponential(model: Exponential, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Exact: λ Σ x of n waiting times has the gamma distribution of shape n."""
    tail = 0.5 * (1 - level)
    for j, name in enumerate(names):
        n, total = float(stats.weight[j]), float(stats.sums[j, 0])
        interval = (
            tuple(float(gammaincinv(n, p)) / total for p in (tail, 1 - tail)) if n > 0 and total > 0 else (None, None)
        )
        yield Row(name, "rate", float(model.rate[j]), *interval)


def _binomial(model: Binomial, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Clopper–Pearson interval of each probability, over all trials of all rows."""
    for j, name in enumerate(names):
        ones, zeros = float(stats.ones[j]), float(stats.zeros[j])
        yield Row(name, "trials", float(model.trials[j]), None, None)
        yield Row(name, "probability", float(model.probs[j]), *of_share(ones, ones + zeros, level))


def _negative_binomial(model: NegativeBinomial, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The mean, size and probability."""
    for name, *values in zip(names, model.mean, model.size, model.prob, strict=True):
        for title, value in zip(("mean", "size", "probability"), values, strict=True):
            yield Row(name, title, float(value), None, None)


def _robust(model: StudentT, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Location and scale of each column, degrees of freedom, and correlations."""
    squared = np.broadcast_to(model.scale.diagonal() if model.kind == "full" else model.scale, (len(names),))
    yield from _located(names, model.center, squared)
    dof = np.atleast_1d(model.dof)
    whose = names if len(dof) > 1 else ["all columns" if len(names) > 1 else names[0]]
    yield from (Row(name, "degrees of freedom", float(nu), None, None) for name, nu in zip(whose, dof, strict=True))
    if model.kind == "full":
        yield from _correlations(names, model.scale)


def _elliptical(model: Elliptical, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Location and scale of each column, and correlations; the profile is given."""
    yield from _located(names, model.center, model.scale.diagonal())
    yield from _correlations(names, model.scale)


def _located(names: list[str], center: Array, squared: Array) -> Iterator[Row]:
    for name, middle, square in zip(names, center, squared, strict=True):
        yield Row(name, "center", float(middle), None, None)
        yield Row(name, "scale", float(square) ** 0.5, None, None)


def _correlations(names: list[str], scale: Array) -> Iterator[Row]:
    root = np.sqrt(scale.diagonal())
    for i, name in enumerate(names):
        for j in range(i):
            value = float(np.clip(scale[i, j] / root[i] / root[j], -1, 1))
            yield Row(f"{names[j]}, {name}", "correlation", value, None, None)


def _proportions(
    model: Dirichlet | DirichletMultinomial, stats: Any, names: list[str], level: float
) -> Iterator[Row]:  # fmt: skip
    """The expected share of each column, and the concentration α."""
    for name, share, alpha in zip(names, model.alpha / model.alpha.sum(), model.alpha, strict=True):
        yield Row(name, "share", float(share), None, None)
        yield Row(name, "α", float(alpha), None, None)


def _signs(model: Walsh | LogLinear, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The coefficient of every set of columns: an expectation of signs, or a coupling in log p."""
    word, each = ("weight", model.weights) if isinstance(model, LogLinear) else ("mean of signs", model.expectations)
    yield from _sets(model, names, each, word, 1)


def _bahadur(model: Bahadur, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The probability of a one in each column, and the correlations of two and more columns."""
    yield from (Row(name, "P(1)", float(p), None, None) for name, p in zip(names, model.probs, strict=True))
    yield from _sets(model, names, model.correlations, "correlation", 2)


def _sets(model: Any, names: list[str], each: Array, word: str, smallest: int) -> Iterator[Row]:
    """One row for every set of at least the given number of columns, in the order of the distribution."""
    at = 1  # the empty set comes first, and belongs to no column
    for sets in sets_of(model.dim, model.order):
        for columns in np.atleast_2d(sets).tolist():
            if len(columns) >= smallest:
                yield Row(", ".join(names[j] for j in columns), word, float(each[at]), None, None)
            at += 1


def _tree(model: ChowLiuTree, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """p of each level given each level of the parent column, with Clopper–Pearson intervals."""
    start = offsets_of(model.levels)
    for j, (name, own) in enumerate(zip(names, model.levels, strict=True)):
        parent, here = int(model.parent[j]), slice(int(start[j]), int(start[j + 1]))
        if parent < 0:
            counts = stats.singles[here]
            yield from _given(name, "", own, model.tables[j, 0], counts, level)
            continue
        for a, condition in enumerate(model.levels[parent]):
            condition_text = f" | {names[parent]} = {condition:g}"
            yield from _given(
                name, condition_text, own, model.tables[j, a], stats.pairs[int(start[parent]) + a, here], level
            )


def _given(name: str, condition: str, levels: Array, p: Array, counts: Array, level: float) -> Iterator[Row]:
    n = float(counts.sum())
    for b, value in enumerate(levels):
        yield Row(name, f"P({value:g}{condition})", float(p[b]), *of_share(float(counts[b]), n, level))


for _distribution in (Beta, BetaBinomial, Cauchy, ChiSquare, Gamma, Laplace, Triangular, Uniform, VonMises):
    PARAMETER_ROWS[_distribution] = _columns
PARAMETER_ROWS.update({
    Exponential: _exponential, Binomial: _binomial, NegativeBinomial: _negative_binomial, StudentT: _robust,
    Elliptical: _elliptical, Dirichlet: _proportions, DirichletMultinomial: _proportions, Walsh: _signs,
    LogLinear: _signs, Bahadur: _bahadur, ChowLiuTree: _tree,
})  # fmt: skip

"""The table of formulas: SciPy's distribution is the same as ours, and parameters are named in their order."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats

import likely as lk
from tests.docs.distribution_tables import CASES, written
from tests.public_names import public

LETTERS: dict[str, Any] = {
    "m": 0.4, "s": 1.7, "v": 2.3, "k": 3.5, "l": -1.2, "c": 0.6, "u": 2.8, "a": 2.4, "b": 1.3, "r": 1.8, "p": 0.35,
    "n": 6, "q": np.array([0.2, 0.5, 0.3]), "M": np.array([0.5, -1.0]), "S": np.array([[2.0, 0.6], [0.6, 1.5]]),
    "W": np.array([[1.0], [0.4]]), "X": np.array([[0.1], [0.7], [2.9], [3.3]]),
    "sqrt": np.sqrt, "eye": np.eye, "arange": np.arange, "len": len,
}  # fmt: skip
SHARES = {"a": np.array([2.0, 0.7, 1.5])}
OWN = {"Dirichlet": SHARES, "DirichletMultinomial": SHARES, "BetaNegativeBinomial": {"r": 3}}  # SciPy wants a whole r
MATRICES = np.array([[[1.0, 0.2], [0.2, 3.0]], [[4.0, -1.0], [-1.0, 0.5]]])
COUNTS = np.array([[1.0, 2.0, 3.0], [6.0, 0.0, 0.0]])
# by the words of the column "x": rows that are possible, and rows that are not
ROWS: dict[str, tuple[Any, Any]] = {
    "real": ([-30.0, -0.4, 0.4, 1.0, 7.0], []), "angle": ([-3.0, 0.0, 2.5], []),
    "l … u": ([-1.1, 0.5, 2.7], [-1.3, 2.9]),
    "x ≥ 0": ([0.01, 1.0, 9.0], [-0.5]), "0 … 1": ([0.01, 0.6], [-0.1, 1.1]), "0, 1": ([0.0, 1.0], [2.0, -1.0]),
    "counts": ([0.0, 1.0, 4.0, 30.0], [-1.0, 0.5]), "0 … n": ([0.0, 2.0, 6.0], [-1.0, 7.0]),
    "level": ([0.0, 1.0, 2.0], [3.0]), "shares": ([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]], []),
    "counts, Σx = n": (COUNTS, []), "vector": ([[0.0, 0.0], [3.0, -7.0]], []), "matrix": (MATRICES, []),
}  # fmt: skip
ELSEWHERE = {
    "Walsh",
    "LogLinear",
    "Bahadur",
    "ChowLiuTree",
    "Mixture",
}  # distributions of binary columns, and mixtures of others

LINES = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in written("distributions.md", "formulas").splitlines()[2:]
]  # fmt: skip


def theirs(distribution: Any, x: Any, mine: Any) -> Any:
    """SciPy's log-density; samples stand in its last axis where a sample is a matrix or shares."""
    if isinstance(mine, lk.distributions.Wishart | lk.distributions.InverseWishart | lk.Dirichlet):
        x = np.moveaxis(x, 0, -1)
    return (distribution.logpmf if hasattr(distribution, "logpmf") else distribution.logpdf)(x)


def name(spelling: str) -> str:
    return spelling.strip("`").split("(")[0]


def made(spelling: str, module: Any, letters: dict[str, Any]) -> Any:
    return eval(spelling.strip("`"), {**letters, name(spelling): getattr(module, name(spelling))})


@pytest.mark.parametrize("line", [line for line in LINES if line[1] != "–"], ids=lambda line: line[0])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy's, of the logarithm of 0
def test_scipy_spells_the_same_distribution(line):
    letters = {**LETTERS, **OWN.get(name(line[0]), {})}
    mine, other = made(line[0], SimpleNamespace(**public()), letters), made(line[1], scipy.stats, letters)
    possible, impossible = (np.asarray(x, dtype=float) for x in ROWS[line[3]])
    found = np.ravel(mine.log_prob(_rows(mine, possible)))
    assert np.isfinite(found).all()
    assert found == pytest.approx(np.ravel(theirs(other, possible, mine)), rel=1e-9)
    if impossible.size:
        assert np.isneginf(mine.log_prob(_rows(mine, impossible))).all()
        assert np.isneginf(theirs(other, impossible, mine)).all()


def _rows(distribution: Any, x: Any) -> Any:
    """One number per row as a column, but levels, which are a plain list."""
    return x if x.ndim > 1 or isinstance(distribution, lk.Categorical) else x[:, None]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_parameters_are_named_in_their_order(line):
    kind = public()[name(line[0])]
    told = [re.match(r"`(\w+)`", part.strip()) for part in line[4].split(";")]
    names = [found[1] for found in told if found]
    taken = list(inspect.signature(kind).parameters)[: len(names)]
    assert names == taken
    assert len(names) == line[0].count(",") + 1


def test_no_distribution_is_without_a_formula():
    assert set(CASES) - ELSEWHERE <= {name(line[0]) for line in LINES}

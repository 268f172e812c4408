"""Candidate regressors for the columns of a table, from simple to complex, compared by `likely fit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from likely.automl.candidates import Candidate, Kinds
from likely.automl.encoded_regressor import CENTERS, KNOTS, EncodedRegressor
from likely.automl.table_classifier import WORDS
from likely.linear_model.estimators.bayesian_linear_regression import BayesianLinearRegression
from likely.linear_model.estimators.linear_regression import LinearRegression
from likely.linear_model.estimators.ridge import Ridge
from likely.neighbors.estimator import KNeighborsRegressor

MOST_FUNCTIONS = 1200  # basis functions beyond which a fit takes minutes
ROWS_A_FUNCTION = 2  # rows per basis function of squares and products, and of least squares
FEWEST = 30  # rows from which radial functions are placed

REGRESSION_NAMES: dict[str, str] = {  # names of all models, the same for every table → what a table must have
    "mean": "nothing",
    "linear": f"{ROWS_A_FUNCTION} rows per column",
    "ridge": "nothing",
    "bayesian": "nothing",
    "ard": f"at most {MOST_FUNCTIONS:,} columns",
    "splines": "columns of numbers, with few enough functions",
    "quadratic": f"{ROWS_A_FUNCTION} rows per square and product of columns, at most {MOST_FUNCTIONS:,} of them",
    "k-nearest-neighbors": "two rows",
    "radial": f"{FEWEST} rows, and at most {CENTERS} columns",
    **dict.fromkeys(("boosting", "forest"), "--baselines"),
}


def regression_candidates(
    kinds: Kinds, rows: float, distinct: Mapping[str, int] | None = None,
    levels: Mapping[str, Sequence[str]] | None = None,
) -> list[Candidate]:  # fmt: skip
    """Candidate regressors for columns of these types, simplest first.

    `rows` is the number of training rows, `distinct` the number of values of each column, `levels` the levels of
    categorical columns.

    >>> [candidate.key for candidate in regression_candidates({"size": "real", "age": "real"}, 1000)]
    ['mean', 'linear', 'ridge', 'bayesian', 'ard', 'splines', 'quadratic', 'k-nearest-neighbors', 'radial']
    """
    distinct, levels = distinct or {}, levels or {}
    numbers = [name for name, kind in kinds.items() if kind not in WORDS]
    d = len(numbers) + sum(len(levels.get(name, "ab")) for name, kind in kinds.items() if kind in WORDS)
    found = _found(numbers, d, rows, distinct)
    return [
        Candidate(key, name, what, i, estimator, work=work)
        for i, (key, name, what, estimator, work) in enumerate(found)
    ]


def _found(
    numbers: Sequence[str], d: int, rows: float, distinct: Mapping[str, int]
) -> Iterator[tuple[str, str, str, Any, float]]:
    """Key, name, assumption, estimator, and work per row in units of about 1.5 µs."""
    evidence = BayesianLinearRegression()
    yield "mean", "mean", "Columns are not used.", EncodedRegressor(LinearRegression(), "constant"), 0.0
    if rows >= ROWS_A_FUNCTION * d:
        yield "linear", "linear regression", "Linear in the columns, least squares.", _encoded(LinearRegression()), 0.0
    yield (
        "ridge", "ridge regression", "Linear in the columns, penalty by leave-one-out.",
        _encoded(Ridge("leave-one-out")), _linear_work(min(d, rows), rows),
    )  # fmt: skip
    yield (
        "bayesian", "Bayesian linear regression", "Linear in the columns, one prior precision by evidence.",
        _encoded(evidence), _linear_work(min(d, rows), rows),
    )  # fmt: skip
    if 1 < d <= MOST_FUNCTIONS:
        yield (
            "ard", "automatic relevance determination", "Linear in the columns, a prior precision per coefficient.",
            _encoded(BayesianLinearRegression(prior="ard")), 2 * _linear_work(d, rows),
        )  # fmt: skip
    M = d + len([name for name in numbers if distinct.get(name, KNOTS) > 5]) * (KNOTS + 1)
    if numbers and M <= MOST_FUNCTIONS and M > d:
        yield (
            "splines", "additive splines", "A sum of smooth functions of single columns, by evidence.",
            _encoded(evidence, "splines"), _linear_work(M, rows),
        )  # fmt: skip
    M = d * (d + 3) // 2
    if numbers and M <= MOST_FUNCTIONS and rows >= ROWS_A_FUNCTION * M:
        yield (
            "quadratic", "quadratic regression", "Squares and products of columns, by evidence.",
            _encoded(evidence, "quadratic"), _linear_work(M, rows),
        )  # fmt: skip
    if rows >= 2:
        yield (
            "k-nearest-neighbors", "nearest neighbors", "Neighboring rows have similar targets.",
            _encoded(KNeighborsRegressor("leave-one-out", weights="distance")), 15.0 if d <= 8 else 10.0 + 2 * d,
        )  # fmt: skip
    if numbers and rows >= FEWEST and d <= CENTERS:
        yield (
            "radial", "radial basis functions", "A smooth function of all columns together, by evidence.",
            _encoded(evidence, "radial"), _linear_work(min(CENTERS, rows / 3) + d, rows),
        )  # fmt: skip


def _encoded(regressor: Any, basis: str = "columns") -> EncodedRegressor:
    return EncodedRegressor(regressor, basis)


def _linear_work(M: float, rows: float) -> float:
    """Work per row of a design with M functions; measured on 500 to 36,000 rows with 8 to 1,000 functions."""
    return M * M / (2500 if rows * M * M > 1e8 else 300)

"""Description of a fitted regression: coefficients with standard errors and intervals, goodness of fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from likely.core.description import Description, DescriptionTable, counted

FILLED = "standard errors, tests and information criteria are left out: entries of X were missing"
FILLED_FACTS = ("F", "p of F", "log-likelihood", "AIC", "BIC")  # which rows with missing entries do not determine
COUNTED = "AIC and BIC count the coefficients, as statsmodels does, and not the noise variance"


def regression_description(estimator: Any, level: float = 0.95) -> Description:
    """The description of a fitted linear regressor; one section per target if there are several."""
    sections = [_of_target(estimator, j, level) for j in range(estimator.stats_.targets)]
    title = type(estimator).__name__
    n, M = float(estimator.stats_.rows), np.atleast_2d(estimator.coefficients_).shape[1]
    text = [f"linear in {counted(M, 'basis function')}, fitted to {counted(n, 'row')} ({estimator.method_})"]
    facts = {"condition number": estimator.condition_number_, **estimator._own_facts()}
    if len(sections) == 1:
        one = sections[0]
        return Description(title, text, {**facts, **one.facts}, one.tables, one.notes)
    return Description(title, text, facts, sections=sections)


def _of_target(estimator: Any, j: int, level: float) -> Description:
    facts, notes = estimator._target_facts(j)
    rows = estimator._coefficient_rows(j, level)
    ends = f"{100 * level:g}% from", "to"
    head = ("function", "coefficient", estimator._error_word, "t", "p", *ends)
    table = DescriptionTable("coefficients", head, rows, {"p": ".3g", "t": ".4g"}, "coefficients")
    return Description(f"target {j}", facts=facts, tables=[table], notes=notes)


def least_squares_facts(estimator: Any, j: int, without: Sequence[str] = ()) -> dict[str, Any]:
    """Goodness of fit of least squares, by the definitions of statsmodels' OLS; those in `without` are left out."""
    stats = estimator.stats_
    n, M = float(stats.rows), np.atleast_2d(estimator.coefficients_).shape[1]
    rank = int((~estimator.dependent_).sum())
    rss = float(estimator.residual_scatter_[j, j])
    constant = estimator._has_constant
    R = stats.root
    total = float(stats.target_scatter[j]) if constant else float((R[:, M + j] ** 2).sum())
    free, used = n - rank, rank - int(constant)
    facts: dict[str, Any] = {"rows": n, "coefficients": M, "residual degrees of freedom": free}
    r2 = 1 - rss / total if total > 0 else float("nan")
    facts["R²"] = r2
    facts["adjusted R²"] = 1 - (1 - r2) * (n - constant) / free if free > 0 else float("nan")
    if free > 0 and used > 0 and rss > 0:
        facts["F"] = (total - rss) / used / (rss / free)
        facts["p of F"] = float(special.fdtrc(used, free, facts["F"]))
    facts["residual standard error"] = float(np.sqrt(rss / free)) if free > 0 else float("nan")
    facts["noise variance (ML)"] = rss / n
    if rss > 0:
        value = -0.5 * (n * (np.log(2 * np.pi * rss / n) + 1) + float(stats.log_noise))
        facts |= {"log-likelihood": value, "AIC": 2 * rank - 2 * value, "BIC": rank * np.log(n) - 2 * value}
    return {name: value for name, value in facts.items() if name not in without}


def t_rows(names: list[str], w: Any, errors: Any, dof: float, level: float) -> list[tuple[Any, ...]]:
    """Coefficients with standard errors, t statistics, p values and intervals."""
    half = float(special.stdtrit(dof, 0.5 + 0.5 * level))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = w / errors
    p = 2 * special.stdtr(dof, -np.abs(t))
    each = zip(names, w, errors, t, p, w - half * errors, w + half * errors, strict=True)
    return [(name, *map(float, numbers)) for name, *numbers in each]


def bare_rows(names: list[str], w: Any) -> list[tuple[Any, ...]]:
    """Coefficients whose errors are not determined."""
    return [(name, float(c), None, None, None, None, None) for name, c in zip(names, w, strict=True)]


def normal_rows(names: list[str], w: Any, errors: Any, quantile: float) -> list[tuple[Any, ...]]:
    """Coefficients with posterior standard deviations and central intervals of a symmetric distribution."""
    each = zip(names, w, errors, w - quantile * errors, w + quantile * errors, strict=True)
    return [(name, float(c), float(e), None, None, float(a), float(b)) for name, c, e, a, b in each]

"""Summary of a linear-Gaussian model: parameters entry by entry, log-likelihood, AIC and BIC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.estimation.density_summary import Summary, _prior
from likely.estimation.parameter_intervals import Row
from likely.statespace.linear.linear_structure import COVARIANCES, NAMES


def linear_summary(estimator: Any, level: float) -> Summary:
    """Summary of learned parameters, log-likelihood, AIC and BIC."""
    model, stats, report = estimator.model_, estimator.stats_, getattr(estimator, "report_", None)
    n, k, fit = float(stats.total_weight), estimator.learned_model_.n_parameters, float(model.objective(stats))
    facts: dict[str, Any] = {
        "frames": int(n) if n == int(n) else n, "columns": estimator.n_features_in_, "states": model.states,
        "learned": ", ".join(estimator.structure_.learn) or "nothing", "parameters": k, "log-likelihood": fit,
        "AIC": 2 * k - 2 * fit, "BIC": float(k * np.log(max(n, 1.0)) - 2 * fit), "prior": _prior(estimator.prior_),
    }  # fmt: skip
    if report is not None:
        facts["converged"] = f"{'yes' if report.converged else 'NO'} ({report.reason})"
    notes = ["States are hidden: standard_errors(X) gives errors of what was learned, from the curvature of log p."]
    if "observation" in estimator.structure_.learn and {"transition", "process_covariance"} & set(
        estimator.structure_.learn
    ):
        told = (
            "States that are free can be turned and scaled without a change of log p: fewer parameters are determined"
        )
        notes.append(f"{told} than are counted, so AIC and BIC ask too much.")
    rows = [row for name in estimator.structure_.learn for row in _entries(model, name)]
    return Summary(f"{type(estimator).__name__}: LinearGaussian", facts, rows, level, notes)


def _entries(model: Any, name: str) -> Iterator[Row]:
    a = getattr(model, name)
    if a.ndim == 3:
        yield Row("", f"mean variance of {name}", float(np.diagonal(a, axis1=1, axis2=2).mean()), None, None)
        return
    assert name in NAMES
    for at in np.ndindex(a.shape):
        if not (name in (*COVARIANCES, "initial_covariance") and at[0] > at[1]):
            yield Row("", f"{name}[{', '.join(map(str, at))}]", float(a[at]), None, None)

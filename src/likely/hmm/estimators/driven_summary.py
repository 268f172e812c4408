"""Summary of a fitted HMM with covariates: log-odds of each transition per covariate, and emission parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.core.errors import LikelyError
from likely.estimation.density_summary import Summary, _prior
from likely.estimation.parameter_intervals import Row, rows_of


def driven_summary(estimator: Any, level: float) -> Summary:
    """Coefficients against the first target that is possible, the emissions, log-likelihood, AIC and BIC."""
    model, stats, report = estimator.model_, estimator.stats_, getattr(estimator, "report_", None)
    n, k, fit = float(stats.total_weight), model.n_parameters, float(estimator.learned_model_.objective(stats))
    of_emission = None if estimator.prior_ is None else estimator.prior_.emission
    facts: dict[str, Any] = {
        "frames": n, "columns": estimator.n_features_in_, "covariates": estimator.n_covariates_in_, "parameters": k,
        "log-likelihood": fit, "AIC": 2 * k - 2 * fit, "BIC": float(k * np.log(max(n, 1.0)) - 2 * fit),
        "prior": f"transitions: {type(estimator.prior_).__name__}, emissions: {_prior(of_emission)}"
        if of_emission else _prior(None),
    }  # fmt: skip
    if report is not None:
        facts["converged"] = f"{'yes' if report.converged else 'NO'} ({report.reason})"
    notes = [
        "The states are hidden: estimates have no exact confidence intervals.",
        "Log-odds are those of a transition against staying (or the first possible one), per unit of the covariate.",
    ]
    rows = [*_transitions(model), *_emissions(model, stats, estimator.column_names(), level)]
    return Summary(f"{type(estimator).__name__}: DrivenHMM", facts, rows, level, notes)


def _transitions(model: Any) -> Iterator[Row]:
    beta = model.raw_coefficients()
    for i, targets in enumerate(model.possible):
        yield Row(f"state {i}", "start", float(model.initial[i]), None, None)
        base = i if targets[i] else int(targets.argmax())
        for j in np.flatnonzero(targets):
            if j != base:
                for q, value in enumerate(beta[i, j] - beta[i, base]):
                    what = "log-odds at 0" if q == 0 else f"log-odds by covariate {q - 1}"
                    yield Row(f"{i} to {j}", what, float(value), None, None)


def _emissions(model: Any, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    for k in range(model.states):
        try:
            inner = list(rows_of(model.emission.member(k), stats.emission.member(k), names, level))
        except (
            KeyError,
            AttributeError,
            LikelyError,
        ):  # a distribution without a summary of its own, or tied states
            return
        yield from (Row(f"{k}: {r.column}", r.parameter, r.estimate, None, None) for r in inner)

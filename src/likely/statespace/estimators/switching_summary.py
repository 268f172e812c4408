"""Summary of a switching model: regime frequencies, transition matrix, learned parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.estimation.density_summary import Summary, _prior
from likely.estimation.parameter_intervals import Row
from likely.statespace.estimators.linear_summary import _entries

NOTES = (
    "Regimes and states are hidden, and the log-likelihood is approximate: estimates have no intervals.",
    "lk.statespace.RaoBlackwellizedFilter(model_, …).run(y).log_evidence estimates the exact one, without bias.",
)


def switching_summary(estimator: Any, level: float) -> Summary:
    """Summary of learned parameters per regime and of the transition matrix, and of convergence."""
    model, stats, learner = estimator.model_, estimator.stats_, estimator.learned_model_
    report, n = getattr(estimator, "report_", None), float(stats.total_weight)
    facts: dict[str, Any] = {
        "frames": int(n) if n == int(n) else n, "sequences": f"{float(stats.initial.sum()):g}",
        "columns": estimator.n_features_in_, "regimes": model.n_regimes, "states": model.states,
        "learned": _learned_words(learner), "parameters": learner.n_parameters,
        "log-likelihood": float(learner.objective(stats)), "prior": _prior_words(estimator.prior_),
        "passes": estimator.n_iter_,
    }  # fmt: skip
    if report is not None:
        facts["converged"] = f"{'yes' if report.converged else 'NO'} ({report.reason})"
    rows = [row for k in range(model.n_regimes) for row in _of_regime(model, stats, learner, k)]
    return Summary(f"{type(estimator).__name__}: SwitchingLinearGaussian", facts, rows, level, list(NOTES))


def _learned_words(learner: Any) -> str:
    """Names of the learned parameters; by regime if they differ."""
    chain, each = list(learner.chain), [list(s.learn) for s in learner.structures]
    if all(names == each[0] for names in each):
        return ", ".join([*each[0], *chain]) or "nothing"
    told = [f"regime {k}: {', '.join(names) or 'nothing'}" for k, names in enumerate(each)]
    return "; ".join([*told, ", ".join(chain)] if chain else told)


def _prior_words(prior: Any) -> str:
    return _prior(None) if prior is None else type(prior).__name__


def _of_regime(model: Any, stats: Any, learner: Any, k: int) -> Iterator[Row]:
    name, total = f"regime {k}", max(float(stats.total_weight), 1e-300)
    yield Row(name, "share of frames", float(stats.counts[k]) / total, None, None)
    yield Row(name, "begins", float(model.initial[k]), None, None)
    yield Row(name, "mean stay, in frames", _stay(float(model.transition[k, k])), None, None)
    for j in range(model.n_regimes):
        yield Row(name, f"moves to {j}", float(model.transition[k, j]), None, None)
    for matrix in learner.structures[k].learn:
        yield from (row._replace(column=name) for row in _entries(model.regimes[k], matrix))


def _stay(p: float) -> float:
    return float(np.inf) if p >= 1.0 else 1.0 / (1.0 - p)

"""Summary of a fitted density: parameters, intervals, log-likelihood, AIC and BIC as text, HTML or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from likely.estimation.novelty.held_out_frames import support
from likely.estimation.parameter_intervals import Row, rows_of
from likely.hmm.hmm import HMM
from likely.hmm.logistic_transition import LogisticPrior
from likely.hmm.priors import HMMPrior
from likely.mixture.mixture import Mixture

SHOWN = 40  # maximum number of table rows in text and HTML; JSON has all


@dataclass(frozen=True)
class Summary:
    """Summary of a fit: facts about the fit, and each parameter with its interval.

    >>> import likely as lk
    >>> s = lk.PoissonDensity(prior=None).fit([[1], [2], [6]]).summary()
    >>> s.facts["log-likelihood"], s.rows[0].estimate
    (-6.3848..., 3.0)
    """

    title: str
    facts: dict[str, Any]
    rows: list[Row]
    level: float
    notes: list[str]

    @classmethod
    def of(cls, estimator: Any, level: float = 0.95) -> Summary:
        """Summarize a fitted density estimator."""
        model = estimator.learned_model_  # the point estimate, if parameters are integrated out
        stats, report = estimator.stats_, getattr(estimator, "report_", None)
        n, k, fit = float(stats.total_weight), model.n_parameters, float(model.objective(stats))
        facts: dict[str, Any] = {
            _counted(model): int(n) if n == int(n) else n, "columns": estimator.n_features_in_,
            **_covariates(model), "parameters": k,
            **settings(model), **_moved(estimator), **_goodness(model, fit, n), "prior": _prior(estimator.prior_),
        }  # fmt: skip
        if report is not None:
            facts["converged"] = f"{'yes' if report.converged else 'NO'} ({report.reason})"
        rows = list(rows_of(model, stats, estimator.column_names(), level))
        notes = list(_notes(estimator, model, rows, facts["prior"] != NO_PRIOR))
        return cls(f"{type(estimator).__name__}: {_kind(model)}", facts, rows, level, notes)

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain Python values."""
        return {
            "title": self.title, "facts": self.facts, "level": self.level, "notes": self.notes,
            "parameters": [row._asdict() for row in self.rows],
        }  # fmt: skip

    def to_json(self, indent: int | None = 2) -> str:
        """The summary as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        head = [self.title, "=" * len(self.title)]
        width = max(map(len, self.facts))
        facts = [f"{name:<{width}}  {_shown(value)}" for name, value in self.facts.items()]
        return "\n".join([*head, *facts, "", *_aligned(self._table()), *self._after()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, page: bool = False) -> str:
        """A fragment of HTML for a notebook, or a whole page."""
        facts = "".join(f"<tr><th>{escape(k)}</th><td>{escape(_shown(v))}</td></tr>" for k, v in self.facts.items())
        head, *body = self._table()
        cells = "".join(f"<th>{escape(c)}</th>" for c in head)
        lines = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in body)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._after() if note)
        fragment = (
            f'<div class="likely-summary"><style>{_CSS}</style><h3>{escape(self.title)}</h3>'
            f'<table class="facts">{facts}</table><table><thead><tr>{cells}</tr></thead>'
            f"<tbody>{lines}</tbody></table>{notes}</div>"
        )
        return _PAGE.format(title=escape(self.title), body=fragment) if page else fragment

    def _table(self) -> list[tuple[str, ...]]:
        percent = f"{100 * self.level:g}%"
        head = ("column", "parameter", "estimate", f"{percent} from", "to")
        table = [(r.column, r.parameter, *map(_shown, (r.estimate, r.low, r.high))) for r in self.rows[:SHOWN]]
        if any(r.low is not None or r.high is not None for r in self.rows):
            return [head, *table]
        return [head[:3], *(line[:3] for line in table)]  # no empty columns

    def _after(self) -> list[str]:
        more = len(self.rows) - SHOWN
        return [
            *([f"… and {more} more (to_dict() has all)"] if more > 0 else []),
            *([""] if self.notes else []),
            *self.notes,
        ]


_CSS = (
    ".likely-summary{font-family:system-ui,sans-serif;font-size:14px;font-variant-numeric:tabular-nums;max-width:46em}"
    ".likely-summary table{border-collapse:collapse;margin:.6em 0}"
    ".likely-summary th,.likely-summary td{padding:.2em .9em .2em 0;text-align:right;border-bottom:1px solid #8884}"
    ".likely-summary th{font-weight:600}"
    ".likely-summary th:nth-child(-n+2),.likely-summary td:nth-child(-n+2){text-align:left}"
    ".likely-summary p{opacity:.75;margin:.2em 0}"
)
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    '<meta name="viewport" content="width=device-width"><style>:root{{color-scheme:light dark}}'
    "body{{margin:2em auto;max-width:48em;padding:0 1em}}</style></head><body>{body}</body></html>"
)


NO_PRIOR = "none (maximum likelihood)"


def _notes(estimator: Any, model: Any, rows: list[Row], with_prior: bool) -> Iterator[str]:
    """Notes on the interpretation of the numbers."""
    told = any(row.low is not None for row in rows)
    if isinstance(model, HMM):
        yield "States are latent: estimates have no exact intervals."
        if model.is_logistic:
            yield "Log-odds of a transition are against staying (or the first possible one), per unit of the covariate."
        yield from support(estimator)
    elif isinstance(model, Mixture):
        yield "Components are latent: estimates have no exact intervals."
    elif not estimator.stats_.complete and told:
        yield "Entries were missing: intervals count the observed entries of each column."
    if told and with_prior and not isinstance(model, Mixture | HMM):
        yield "Intervals are based on the data alone; estimates include the prior."
    if model is not estimator.model_ and _moved(estimator):
        yield "Parameters are those before shrinkage of the covariance: scores use the shrunk one, `covariance_`."
    elif model is not estimator.model_:
        yield f"Scores use the posterior predictive distribution: {_kind(estimator.model_)}."


# distributions whose objective is not the log-likelihood of the rows; without AIC and BIC
OTHER_OBJECTIVES = {
    "Walsh": "fit (minus squared error, shifted)", "Bahadur": "log-likelihood to second order",
    "KDE": "leave-one-out log-likelihood", "KNNBalls": "sum of log scores (no density)",
}  # fmt: skip


def _goodness(model: Any, fit: float, n: float) -> dict[str, float]:
    """Log-likelihood, AIC and BIC."""
    other, k = OTHER_OBJECTIVES.get(type(model).__name__), model.n_parameters
    if other is not None:
        return {other: fit}
    return {"log-likelihood": fit, "AIC": 2 * k - 2 * fit, "BIC": float(k * np.log(max(n, 1.0)) - 2 * fit)}


def settings(distribution: Any) -> dict[str, str]:
    """Hyperparameters of a nonparametric density: bandwidths, or neighbors; none of other distributions."""
    name = type(distribution).__name__
    if name == "KDE":
        kernel = f"t, {distribution.dof:g} degrees of freedom" if distribution.kernel == "t" else distribution.kernel
        rule = distribution.rule if isinstance(distribution.rule, str) else "fixed"
        kernel = "elliptical " * distribution.elliptical + kernel
        return {"kernel": kernel, "bandwidth": rule, "unit": distribution.unit}
    if name == "KNNBalls":
        units = "standardized columns" if distribution.scaled else "original columns"
        return {"k": f"{distribution.n_neighbors:g}", "metric": f"{distribution.metric}, {units}"}
    return {}


def _covariates(model: Any) -> dict[str, int]:
    """The number of covariates of transitions that depend on some."""
    return {"covariates": model.transition.n_covariates} if isinstance(model, HMM) and model.is_logistic else {}


def _moved(estimator: Any) -> dict[str, str]:
    """The shrinkage intensity of a covariance, and how it was chosen."""
    shares = getattr(estimator, "shrinkage_", None)
    return {} if shares is None else {"covariance shrinkage": f"{shares[0]:.3g} ({estimator.shrinkage_method_})"}


def _prior(prior: Any) -> str:
    """The name of the prior; one per part for a product."""
    parts = getattr(prior, "components", None)
    if hasattr(prior, "weights"):
        told = [f"{what}: {_prior(p)}" for what, p in (("weights", prior.weights), ("parts", parts)) if p is not None]
        return ", ".join(told) or NO_PRIOR
    if isinstance(prior, HMMPrior):
        of = "none" if prior.transition is None else type(prior).__name__
        of = "LogisticPrior" if isinstance(prior.transition, LogisticPrior) else of
        return f"transitions: {of}, emissions: {_prior(prior.emission)}"
    if parts is not None:
        named = [f"{name}: {_prior(p)}" for name, p in parts if p is not None]
        return ", ".join(named) or NO_PRIOR
    return NO_PRIOR if prior is None else type(prior).__name__


def _kind(model: Any) -> str:
    kind = getattr(model, "kind", None)
    return f"{kind} {type(model).__name__}" if kind else type(model).__name__


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _aligned(table: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    sides = ("<", "<", ">", ">", ">")[: len(widths)]
    lines = [
        "  ".join(f"{c:{side}{w}}" for c, side, w in zip(row, sides, widths, strict=True)).rstrip() for row in table
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _counted(model: Any) -> str:
    """The number of rows or frames."""
    return "frames" if isinstance(model, HMM) else "rows"

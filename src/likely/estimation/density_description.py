"""Description of a fitted density: parameters with intervals, log-likelihood, AIC and BIC, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from likely.core.description import Description, DescriptionTable
from likely.core.value import Value
from likely.distributions.product import Product
from likely.estimation.novelty.held_out_frames import support
from likely.estimation.parameter_intervals import Row, rows_of
from likely.hmm.hmm import HMM
from likely.hmm.logistic_transition import LogisticPrior
from likely.hmm.priors import HMMPrior
from likely.mixture.mixture import Mixture

NO_PRIOR = "none (maximum likelihood)"


def density_description(estimator: Any, level: float = 0.95) -> Description:
    """The description of a fitted density estimator."""
    model = estimator.learned_model_  # the point estimate, if parameters are integrated out
    rows = list(rows_of(model, estimator.stats_, estimator.column_names(), level))
    counts = {"rows": total_weight(estimator), "columns": estimator.n_features_in_}
    if isinstance(model, HMM):
        counts = {"frames": counts["rows"], "columns": counts["columns"]}
        counts |= {"covariates": model.transition.n_covariates} if model.is_logistic else {}
    facts = {
        **counts, "parameters": model.n_parameters, **getattr(model, "hyperparameters", {}), **_shrinkage(estimator),
        **goodness(estimator), "prior": prior_words(estimator.prior_), **convergence(estimator),
    }  # fmt: skip
    notes = list(_notes(estimator, model, rows, facts["prior"] != NO_PRIOR))
    title = f"{type(estimator).__name__}: {kind_words(model)}"
    return Description(title, facts=facts, tables=[parameter_table(rows, level)], notes=notes)


def parameter_table(rows: Iterable[Row], level: float = 0.95) -> DescriptionTable:
    """Each parameter with its interval."""
    head = ("column", "parameter", "estimate", f"{100 * level:g}% from", "to")
    return DescriptionTable("parameters", head, list(rows), noun="parameters")


def total_weight(estimator: Any) -> float:
    """The number of rows or frames that were learned from."""
    n = float(estimator.stats_.total_weight)
    return int(n) if n == int(n) else n


def goodness(estimator: Any) -> dict[str, float]:
    """Log-likelihood, AIC and BIC; of a model with another objective, that one alone."""
    stats, model = estimator.stats_, estimator.learned_model_
    fit, k, name = float(model.objective(stats)), model.n_parameters, getattr(model, "objective_name", "log-likelihood")
    if name != "log-likelihood":
        return {name: fit}
    bic = float(k * np.log(max(float(stats.total_weight), 1.0)) - 2 * fit)
    return {name: fit, "AIC": 2 * k - 2 * fit, "BIC": bic}


def convergence(estimator: Any) -> dict[str, str]:
    """Whether the fit converged, and why it stopped; nothing of a loaded model."""
    report = getattr(estimator, "report_", None)
    return {} if report is None else {"converged": f"{'yes' if report.converged else 'NO'} ({report.reason})"}


def prior_words(prior: Any) -> str:
    """The name of the prior; one per part for a product."""
    parts = getattr(prior, "components", None)
    if hasattr(prior, "weights"):
        both = (("weights", prior.weights), ("parts", parts))
        return ", ".join(f"{what}: {prior_words(p)}" for what, p in both if p is not None) or NO_PRIOR
    if isinstance(prior, HMMPrior):
        of = "none" if prior.transition is None else type(prior).__name__
        of = "LogisticPrior" if isinstance(prior.transition, LogisticPrior) else of
        return f"transitions: {of}, emissions: {prior_words(prior.emission)}"
    if parts is not None:
        return ", ".join(f"{name}: {prior_words(p)}" for name, p in parts if p is not None) or NO_PRIOR
    return NO_PRIOR if prior is None else type(prior).__name__


def kind_words(model: Any) -> str:
    """The class of a model with its kind, as "full Gaussian"; of a product, those of its parts."""
    if isinstance(model, Product):
        parts = ", ".join(f"{name}: {type(part).__name__}" for name, part in model.components[:6])
        return f"products of {parts}"
    kind = getattr(model, "kind", None)
    return f"{kind} {type(model).__name__}" if isinstance(kind, str) and kind else type(model).__name__


def distributions_table(model: Any) -> DescriptionTable:
    """The distributions of a model with the shapes of their parameters, parts of products on their own lines."""
    head, rows = ("part", "distribution", "shapes", "settings"), list(_distributions("", model))
    rows = rows if len(rows) > 1 else [(None, *row[1:]) for row in rows]  # nothing to distinguish
    return DescriptionTable("parameters", head, rows, noun="parts")


def _distributions(part: str, model: Any) -> Iterator[tuple[str | None, ...]]:
    """The distribution itself, then those inside it; a product is its parts alone."""
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    arrays = ((name, x) for name, x in values.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f")
    shapes = ", ".join(f"{name} {'×'.join(map(str, x.shape)) or 1}" for name, x in arrays)
    settings = ", ".join(f"{name} {value}" for name, value in getattr(model, "hyperparameters", {}).items())
    kind = getattr(model, "kind", None)
    name = type(model).__name__ + (f" ({kind})" if isinstance(kind, str) and kind else "")
    if isinstance(model, Product):
        values = dict(model.components)
    else:
        yield part, name, shapes, settings or None
    for title, value in values.items():
        if isinstance(value, Value):
            yield from _distributions(f"{part} {title}".strip(), value)


def _notes(estimator: Any, model: Any, rows: list[Row], with_prior: bool) -> Iterator[str]:
    """Notes on the interpretation of the numbers."""
    has_intervals = any(row.low is not None for row in rows)
    if isinstance(model, HMM):
        yield "States are latent: estimates have no exact intervals."
        if model.is_logistic:
            yield "Log-odds of a transition are against staying (or the first possible one), per unit of the covariate."
        yield from support(estimator)
    elif isinstance(model, Mixture):
        yield "Components are latent: estimates have no exact intervals."
    elif not estimator.stats_.complete and has_intervals:
        yield "Entries were missing: intervals count the observed entries of each column."
    if has_intervals and with_prior and not isinstance(model, Mixture | HMM):
        yield "Intervals are based on the data alone; estimates include the prior."
    if model is not estimator.model_ and _shrinkage(estimator):
        yield "Parameters are those before shrinkage of the covariance: scores use the shrunk one, `covariance_`."
    elif model is not estimator.model_:
        yield f"Scores use the posterior predictive distribution: {kind_words(estimator.model_)}."


def _shrinkage(estimator: Any) -> dict[str, str]:
    """The shrinkage intensity of a covariance, and how it was chosen."""
    shares = getattr(estimator, "shrinkage_", None)
    return {} if shares is None else {"covariance shrinkage": f"{shares[0]:.3g} ({estimator.shrinkage_method_})"}

"""Description of a fitted Markov-switching regression, with standard errors from the Hessian of the log-likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from likely.core.arrays import Array
from likely.core.description import Description, DescriptionTable, counted
from likely.core.ragged import Ragged
from likely.linear_model.markov_switching import SHARED, SWITCHING, MarkovSwitchingRegression, stationary_distribution

STEP = 1e-4  # of finite differences, in units of each parameter's scale
NO_ERRORS = "no standard errors: the Hessian of the log-likelihood is not negative definite, as at a boundary"


def switching_description(estimator: Any, rows: Ragged | None = None, level: float = 0.95) -> Description:
    """Facts of the fit, parameters by state, and the transition matrix; with rows, also standard errors."""
    m, stats = estimator.regimes_, estimator.stats_
    n, observed = m.n_parameters, float(stats.emission.rows.sum())
    value = m.objective(stats)
    facts: dict[str, Any] = {"frames": float(stats.total_weight), "observed rows": observed, "parameters": n}
    facts |= {"log-likelihood": value, "AIC": 2 * n - 2 * value, "BIC": n * np.log(max(observed, 1.0)) - 2 * value}
    report = getattr(estimator, "report_", None)
    if report is not None:
        facts["convergence"] = f"{'converged' if report.converged else 'NOT converged'}: {report.reason}"
    kind = "mean-adjusted autoregression" if estimator.mean_adjusted else "regression"
    text = [f"a Markov-switching {kind} of {counted(m.states, 'state')}, {counted(estimator.lags, 'lag')}"]
    tables, notes = [_states(estimator), _transitions(estimator)], []
    if rows is not None:
        found = standard_errors(m, rows)
        if found is None:
            notes.append(NO_ERRORS)
        else:
            tables.append(_errors(estimator, *found, level))
    return Description(type(estimator).__name__, text, facts, tables, notes)


def _states(estimator: Any) -> DescriptionTable:
    m = estimator.regimes_
    lags = [f"lag {i}" for i in range(1, estimator.lags + 1)] if estimator.mean_adjusted else []
    head = ("state", "share", "duration", *estimator.coefficient_names_, *lags, "noise sd")
    share = estimator.stats_.counts / estimator.stats_.counts.sum()
    ar = m.ar if estimator.mean_adjusted else np.empty((m.states, 0))
    cells = [
        (k, float(share[k]), float(estimator.expected_durations_[k]), *map(float, estimator.coefficients_[k]),
         *map(float, ar[k]), float(np.sqrt(m.variance[k])))
        for k in range(m.states)
    ]  # fmt: skip
    note = "duration: expected number of frames"
    return DescriptionTable("states", head, cells, {"share": ".1%", "duration": ".3g"}, "states", note)


def _transitions(estimator: Any) -> DescriptionTable:
    A = estimator.transition_
    cells = [(k, *map(float, A[k])) for k in range(len(A))]
    formats = {f"to {k}": ".4f" for k in range(len(A))}
    return DescriptionTable("transitions", ("from", *(f"to {k}" for k in range(len(A)))), cells, formats, "states")


def _errors(estimator: Any, names: list[str], values: Array, errors: Array, level: float) -> DescriptionTable:
    half = float(ndtri(0.5 + 0.5 * level))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = values / errors
    p = 2 * ndtr(-np.abs(z))
    names = [name.format(*estimator.coefficient_names_) for name in names]
    each = zip(names, values, errors, z, p, values - half * errors, values + half * errors, strict=True)
    cells = [(name, *map(float, row)) for name, *row in each]
    head = ("parameter", "estimate", "standard error", "z", "p", f"{100 * level:g}% from", "to")
    return DescriptionTable("parameters", head, cells, {"p": ".3g", "z": ".4g"}, "parameters", most=None)


def standard_errors(m: MarkovSwitchingRegression, rows: Ragged) -> tuple[list[str], Array, Array] | None:
    """Names, values and standard errors of the free parameters; None unless the Hessian is negative definite.

    The parameters are coefficients, noise variances and transition probabilities but the last of each row.
    """
    names, values, scales, build = _parameters(m, rows)
    if m.transition.min() < 1e-6:  # at a boundary
        return None

    def log_prob(theta: Array) -> float:
        return float(build(theta).log_prob(rows).sum())

    n, h = len(values), STEP * scales
    H = np.empty((n, n))
    middle = log_prob(values)
    steps = np.diag(h)
    with np.errstate(all="ignore"):
        for i in range(n):
            H[i, i] = (log_prob(values + steps[i]) - 2 * middle + log_prob(values - steps[i])) / h[i] ** 2
            for j in range(i):
                corner = [
                    log_prob(values + a * steps[i] + b * steps[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
                ]
                H[i, j] = H[j, i] = (corner[0] - corner[1] - corner[2] + corner[3]) / (4 * h[i] * h[j])
    scaled = -H * np.outer(scales, scales)
    if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] <= 0:
        return None
    return names, values, np.sqrt(np.diagonal(np.linalg.inv(scaled))) * scales


def _parameters(m: MarkovSwitchingRegression, rows: Ragged) -> tuple[list[str], Array, Array, Any]:
    """Names, values and scales of free parameters, and the function from values to a model."""
    K, p, x = m.states, m.order, rows.values["x"]
    root = np.sqrt(np.maximum((x**2).mean(axis=0), 1e-300))
    names: list[str] = []
    places: list[tuple[str, Any]] = []
    scales: list[float] = []
    noise = float(np.sqrt(m.variance.mean()))
    shift = 0 if m.roles[0] else 1  # names begin with the constant, if there is one
    for j, role in enumerate(m.roles):
        for k in range(K if role == SWITCHING else 1 if role == SHARED else 0):
            names.append(f"{{{j - shift}}}" + (f", state {k}" if role == SWITCHING and K > 1 else ""))
            places.append(("coefficients", (k if role == SWITCHING else slice(None), j)))
            scales.append(noise / root[j])
    for i in range(p):
        for k in range(1 if m.shared_ar else K):
            names.append(f"lag {i + 1}" + ("" if m.shared_ar else f", state {k}"))
            places.append(("ar", (slice(None) if m.shared_ar else k, i)))
            scales.append(0.3)
    for k in range(1 if m.tied else K):
        names.append("noise variance" + ("" if m.tied else f", state {k}"))
        places.append(("variance", (slice(None) if m.tied else k,)))
        scales.append(float(m.variance[k]))
    for j in range(K):
        for k in range(K - 1):
            names.append(f"transition {j} to {k}")
            places.append(("transition", (j, k)))
            scales.append(float(min(m.transition[j, k], m.transition[j, -1])))

    def build(theta: Array) -> MarkovSwitchingRegression:
        parts = {name: np.array(getattr(m, name)) for name in ("coefficients", "ar", "variance", "transition")}
        for value, (name, at) in zip(theta, places, strict=True):
            parts[name][at] = value
        A = parts["transition"]
        A[:, -1] = 1.0 - A[:, :-1].sum(axis=1)
        initial = stationary_distribution(A) if m.stationary else m.initial
        return m.replace(initial=initial, **parts)

    values = [np.atleast_1d(getattr(m, name)[at])[0] for name, at in places]
    return names, np.array(values), np.array(scales), build

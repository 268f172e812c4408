"""Parameter estimation: maximum likelihood, moments, unbiased, MAP, posterior mean and median, predictive."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from likely.core.arrays import Rows
from likely.core.blocks import Blocks
from likely.core.em_loop import StoppingRule, fit, resolve_prior
from likely.core.errors import DomainError, sentence
from likely.core.protocols import AnyPrior
from likely.core.warnings import warn, warnings_once
from likely.distributions.distribution import Distribution, first_look

RULES = (
    "maximum likelihood", "moments", "unbiased", "map", "posterior mean", "posterior median", "predictive",
)  # fmt: skip
ALIASES = {"ml": "maximum likelihood", "mle": "maximum likelihood", "posterior mode": "map"}


def estimate(
    distribution: Any, x: Rows, rule: str = "maximum likelihood", *, prior: AnyPrior | None = None,
    weight: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Estimate a distribution from weighted rows, by one of seven rules.

    - "maximum likelihood": the parameters that maximize the likelihood.
    - "moments": the distribution has the rows' mean and variance.
    - "unbiased": unbiased estimates (weights are frequencies).
    - "map": the mode of the posterior.
    - "posterior mean", "posterior median": mean and median of the parameters.
    - "predictive": the posterior predictive distribution of the next row.

    Parameters
    ----------
    distribution : type or value
        A class, such as `Gaussian`, or a value, which also gives the kind and the initial parameters.
    x : array-like (n, d)
        Rows; NaN is a missing value.
    rule : str, default "maximum likelihood"
        The rule; capitals do not matter. "ml" and "mle" are maximum likelihood, and "posterior mode" is "map".
    prior : Prior or {"weak"}, optional
        Prior of the parameters, which the last four rules need.
    weight : array-like (n,), optional
        Weight per row: k equals k copies.

    Returns
    -------
    value
        The estimated distribution.

    See Also
    --------
    fit : Fits any model, with a report.
    Prior : Conjugate priors.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 3.4 and 3.8; Herbst and du Preez, lecture notes, 2.1.

    Examples
    --------
    >>> import likely as lk
    >>> coin = [[1], [1], [1]]
    >>> estimate(lk.Bernoulli, coin).probs
    array([1.])
    >>> estimate(lk.Bernoulli, coin, "predictive", prior=lk.Beta(2, 2)).probs.round(4)
    array([0.7143])
    """
    rule = _named(rule)
    if rule not in RULES:
        raise DomainError(sentence("estimate", f"rule must be one of {', '.join(map(repr, RULES))}", repr(rule)))
    kind = distribution if isinstance(distribution, type) else type(distribution)
    if not issubclass(kind, Distribution) and not (hasattr(kind, "collect") and hasattr(kind, "refit")):
        raise DomainError(sentence("estimate", "a distribution that can be fitted is needed", kind.__name__))
    if rule in ("moments", "unbiased"):
        return _direct(distribution, kind, x, rule, weight)
    if rule == "maximum likelihood":
        return _iterated(_start(distribution, kind, x, weight), x, weight, None)
    if prior is None:
        expected, remedy = f'rule "{rule}" needs a prior', 'pass one, such as lk.Beta(1, 1), or "weak"'
        raise DomainError(sentence("estimate", expected, "None", remedy))
    start = _start(distribution, kind, x, weight)
    return _iterated(start, x, weight, prior) if rule == "map" else _from_posterior(start, x, weight, prior, rule)


def _named(rule: Any) -> Any:
    """The rule by its standard name."""
    plain = " ".join(rule.lower().replace("-", " ").replace("_", " ").split()) if isinstance(rule, str) else rule
    return ALIASES.get(plain, plain) if isinstance(plain, str) else plain


def _start(distribution: Any, kind: Any, x: Any, weight: Any) -> Any:
    if not isinstance(distribution, type):
        return distribution
    return kind.blank(
        first_look(Blocks.of(x, weight)), **(kind.parameters_seen_in(x) if hasattr(kind, "parameters_seen_in") else {})
    )


def _direct(distribution: Any, kind: Any, x: Any, rule: str, weight: Any) -> Any:
    """By the distribution's own formula; an instance passes on its kind of covariance and its known parameters."""
    verb = kind.moments_fit if rule == "moments" else kind.unbiased_fit
    if isinstance(distribution, type) or getattr(distribution, "members", None) is not None:
        return verb(x, weight)
    known = (
        {"kind": distribution.kind}
        if hasattr(distribution, "kind")
        else distribution.fixed_parameters()
        if hasattr(distribution, "fixed_parameters")
        else {}
    )
    return verb(x, weight, **known)


def _iterated(start: Any, x: Any, weight: Any, prior: Any) -> Any:
    blocks, usual = Blocks.of(x, weight), StoppingRule(2000, 1e-12)
    own = isinstance(start, Distribution)
    with warnings_once():
        report = (
            start.estimated_from(blocks, prior, usual=usual) if own else fit(start, blocks, prior=prior, stop=usual)
        )
        if not report.converged:
            warn(f"estimate: {type(start).__name__} not converged: {report.reason}")
    return report.model


def _from_posterior(start: Any, x: Any, weight: Any, prior: Any, rule: str) -> Any:
    stats = start.collect(x, weight)
    if not stats.complete:
        expected, remedy = "a posterior in closed form needs complete data", 'use rule="map"'
        raise DomainError(sentence("estimate", expected, "missing values, or latent labels or scales", remedy))
    posterior = resolve_prior(start, stats, prior).update(stats)
    return posterior.predictive() if rule == "predictive" else posterior.point(rule.split()[1])

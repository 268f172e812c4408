"""Confidence intervals of parameters: exact ones where known, one function per distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, chdtri, gammaincinv, ndtri, stdtrit

from likely.core.declared import declarations
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.product import Product
from likely.distributions.stacks.tied import Tied
from likely.distributions.univariate.poisson import Poisson
from likely.hmm.hmm import HMM
from likely.mixture.mixture import Mixture


class Row(NamedTuple):
    """One parameter with its interval; None if there is none."""

    column: str
    parameter: str
    estimate: float
    low: float | None
    high: float | None


def rows_of(model: Any, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Every parameter of a model with its interval at the given confidence level."""
    from likely.estimation import parameter_rows  # noqa: F401  # fills the table

    rows: Callable[..., Iterator[Row]] = PARAMETER_ROWS.get(type(model), _declared)
    yield from rows(model, stats, names, level)


def _declared(model: Any, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Fields with one number, or one per column, of distributions that are not in the table."""
    found = declarations(type(model)) if hasattr(type(model), "__dataclass_fields__") else {}
    for title, kind in found.items():
        if ("*",) in kind.forms and np.ndim(getattr(model, title)) == 0:
            yield Row("", title, float(getattr(model, title)), None, None)
    for j, name in enumerate(names):
        for title, kind in found.items():
            if ("*", "d") in kind.forms and np.shape(getattr(model, title)) == (len(names),):
                yield Row(name, title, float(getattr(model, title)[j]), None, None)


def _gaussian(model: Gaussian, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Means by Student's t, standard deviations by χ², correlations by Fisher's z, from the data alone."""
    seen = stats.observed
    deviation = np.sqrt(stats.variance)
    if model.kind == "spherical":
        deviation = np.full_like(deviation, np.sqrt(stats.scatter.sum() / max(seen.sum(), 1e-300)))
    tail = 0.5 * (1 - level)
    for j, name in enumerate(names):
        n, center, sd = float(seen[j]), float(stats.mean[j]), float(deviation[j])
        entries, means = (n, 1) if model.kind != "spherical" else (float(seen.sum()), len(names))
        dof, root = entries - means, np.sqrt(entries) * sd
        reach = -stdtrit(dof, tail) * root / np.sqrt(dof * n) if dof > 0 and n > 0 else None
        yield Row(name, "mean", float(model.mean[j]), *_around(center, reach))
        wide = (root / np.sqrt(chdtri(dof, tail)), root / np.sqrt(chdtri(dof, 1 - tail))) if dof > 0 else (None, None)
        yield Row(name, "standard deviation", float(np.sqrt(model.variance[j])), *map(_number, wide))
    if model.kind == "full":
        yield from _correlations(model, stats, names, tail)


def _correlations(model: Gaussian, stats: Any, names: list[str], tail: float) -> Iterator[Row]:
    sd = np.sqrt(model.variance)
    own = np.sqrt(np.diagonal(stats.scatter))
    for i in range(len(names)):
        for j in range(i):
            estimate = float(np.clip(model.covariance[i, j] / sd[i] / sd[j], -1, 1))
            r = stats.scatter[i, j] / (own[i] * own[j]) if own[i] * own[j] > 0 else 1.0
            n = float(min(stats.observed[i], stats.observed[j]))
            low = high = None
            if n > 3 and abs(r) < 1:
                z, reach = np.arctanh(r), -ndtri(tail) / np.sqrt(n - 3)
                low, high = float(np.tanh(z - reach)), float(np.tanh(z + reach))
            yield Row(f"{names[j]}, {names[i]}", "correlation", estimate, low, high)


def _poisson(model: Poisson, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Exact (Garwood) intervals of rates."""
    tail = 0.5 * (1 - level)
    for j, name in enumerate(names):
        n, total = float(stats.weight[j]), float(stats.total[j])
        low = gammaincinv(total, tail) / n if n > 0 and total > 0 else 0.0 if n > 0 else None
        high = gammaincinv(total + 1, 1 - tail) / n if n > 0 else None
        yield Row(name, "rate", float(model.rate[j]), _number(low), _number(high))


def _categorical(model: Categorical, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Exact (Clopper–Pearson) intervals of the level probabilities."""
    n = float(stats.counts.sum())
    for value, p, k in zip(model.values.tolist(), model.probs, stats.counts, strict=True):
        yield Row(names[0], f"P({value})", float(p), *of_share(float(k), n, level))


def _multinomial(model: Multinomial, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The same for the share of each column among all counts."""
    n = float(stats.counts.sum())
    for name, p, k in zip(names, model.probs, stats.counts, strict=True):
        yield Row(name, "share", float(p), *of_share(float(k), n, level))


def _bernoulli(model: Bernoulli, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The same for the probability of a one."""
    for name, p, ones, zeros in zip(names, model.probs, stats.ones, stats.zeros, strict=True):
        yield Row(name, "P(1)", float(p), *of_share(float(ones), float(ones + zeros), level))


def of_share(k: float, n: float, level: float) -> tuple[float, float]:
    """Clopper–Pearson bounds of a probability from k of n."""
    tail = 0.5 * (1 - level)
    low = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if n - k > 0 else 1.0
    return float(low), float(high)


def _product(model: Product, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    for name, part in model.components:
        width = int(getattr(part, "dim", 1))
        inner = [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]
        yield from rows_of(part, stats[name], inner, level)


def _factors(model: FactorGaussian, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Means, standard deviations and correlations of the equivalent Gaussian."""
    yield from _gaussian(model.gaussian, stats, names, level)


def _mixture(model: Mixture, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Weights and components, without intervals, since labels are latent."""
    has_rows = type(model.components) in PARAMETER_ROWS
    for k, weight in enumerate(model.weights):
        yield Row(f"component {k}", "weight", float(weight), None, None)
        if has_rows:
            inner = rows_of(model.components.member(k), stats.components.member(k), names, level)
            yield from (Row(f"{k}: {r.column}", r.parameter, r.estimate, None, None) for r in inner)


def _hmm(model: HMM, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Initial, transition and emission parameters, without intervals, since states are latent."""
    has_rows = type(model.emission) in PARAMETER_ROWS
    for i, start in enumerate(model.initial):
        yield Row(f"state {i}", "start", float(start), None, None)
        if model.is_logistic:
            yield from _log_odds(model.transition, i)
        else:
            row = enumerate(model.transition[i])
            yield from (Row(f"state {i}", f"to {j}", float(p), None, None) for j, p in row if p > 0)
        if model.final is not None:
            yield Row(f"state {i}", "end", float(model.final[i]), None, None)
        if has_rows and i < model.states:
            inner = rows_of(model.emission.member(i), _member_stats(model.emission, stats.emission, i), names, level)
            yield from (Row(f"{i}: {r.column}", r.parameter, r.estimate, None, None) for r in inner)


def _member_stats(model: Any, stats: Any, i: int) -> Any:
    """The statistics of member i; None where mixtures share components, which have statistics of their own."""
    return None if isinstance(getattr(model, "components", None), Tied) else stats.member(i)


def _log_odds(transition: Any, i: int) -> Iterator[Row]:
    """Coefficients of transitions from state i against staying, or the first possible one."""
    beta, targets = transition.raw_coefficients()[i], transition.mask[i]
    base = i if targets[i] else int(targets.argmax())
    for j in np.flatnonzero(targets):
        if j != base:
            for q, value in enumerate(beta[j] - beta[base]):
                what = "log-odds at 0" if q == 0 else f"log-odds by covariate {q - 1}"
                yield Row(f"{i} to {j}", what, float(value), None, None)


def _around(value: float, reach: Any) -> tuple[float | None, float | None]:
    return (None, None) if reach is None else (float(value - reach), float(value + reach))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


PARAMETER_ROWS: dict[type, Callable[..., Iterator[Row]]] = {
    Gaussian: _gaussian, Poisson: _poisson, Categorical: _categorical, Product: _product,
    Multinomial: _multinomial, Bernoulli: _bernoulli, FactorGaussian: _factors,
    Mixture: _mixture, HMM: _hmm,
}  # fmt: skip

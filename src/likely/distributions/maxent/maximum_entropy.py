"""Maximum-entropy distributions under moment constraints, on finite sets and on intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import warn
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.distribution import Distribution
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.maxent.maximum_entropy_distribution import (
    FEATURES,
    MaximumEntropyDistribution,
    feature_values,
    interval_map,
    panel_nodes,
)
from likely.distributions.univariate.beta import Beta
from likely.distributions.univariate.exponential import Exponential
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.laplace import Laplace
from likely.distributions.univariate.uniform import Uniform
from likely.distributions.univariate.von_mises import VonMises
from likely.numerics.maxent_dual import dual_value, solve_dual

ME = "maximum_entropy"
CIRCLES = ((-math.pi, math.pi), (0.0, 2 * math.pi))
EDGE = 1e-12  # relative distance to the end of a feature's range that counts as the end


class Constraint(NamedTuple):
    """One moment constraint E[feature] = value."""

    name: str
    feature: Any  # a name, a function, or its values (m,)
    value: float


def maximum_entropy(*, values: ArrayLike | None = None, interval: Any = None, expect: Any = None) -> Distribution:
    """Maximum-entropy distribution p(x) ∝ exp(λ·f(x)) under moment constraints E[f] = c.

    Results with a standard name are returned as that distribution (Gaussian, Exponential, Gamma, Beta, Laplace,
    Uniform, VonMises), others as a `MaximumEntropyDistribution`. Constraints that cannot be met raise an error that
    names them.

    Parameters
    ----------
    values : array-like (m,), optional
        A finite set of values; the result is a `Categorical`.
    interval : tuple, optional
        An interval (low, high), possibly unbounded.
    expect : dict or list of pairs, optional
        Expectations by feature: a name ("mean", "variance", "square", "cube", "fourth", "abs", "log", "log1m", "cos",
        "sin"), a function of an array of values, or, in a list of pairs (feature, value), an array with one entry per
        value.

    Returns
    -------
    Distribution
        The distribution of largest entropy.

    See Also
    --------
    entropy : The entropy of a distribution.
    MaximumEntropyDistribution : Results without a standard name.

    References
    ----------
    Jaynes (1957); Cover and Thomas (2006), chapter 12; Herbst and du Preez, lecture notes, 1.6.

    Examples
    --------
    >>> maximum_entropy(values=[1, 2, 3, 4, 5, 6], expect={"mean": 4.5}).probs.round(4)  # Jaynes's dice
    array([0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475])
    >>> maximum_entropy(interval=(-np.inf, np.inf), expect={"mean": 1.0, "variance": 4.0})
    Gaussian(mean=[1.0], covariance=[[4.0]], kind='full')
    """
    if (values is None) == (interval is None):
        raise DomainError(sentence(ME, "one of values and interval must be given", "both or none"))
    constraints = _constraints(expect)
    return _on_values(values, constraints) if interval is None else _on_interval(*_ends(interval), constraints)


def _constraints(expect: Any) -> list[Constraint]:
    pairs = [] if expect is None else list(expect.items()) if isinstance(expect, Mapping) else list(expect)
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
        raise DomainError(sentence(ME, "expect must be a dict, or pairs (feature, value)", pairs))
    found = {}
    for i, (feature, value) in enumerate(pairs):
        name = feature if isinstance(feature, str) else getattr(feature, "__name__", f"feature {i}")
        if isinstance(feature, str) and feature not in {*FEATURES, "variance"}:
            expected = f"a name must be variance or among {', '.join(FEATURES)}"
            raise DomainError(sentence(ME, expected, repr(feature), "or pass a function"))
        found[name if name not in found else f"{name} {i}"] = (feature, float(parameter(value, ME, f"E[{name}]")))
    return _with_square(found)


def _with_square(found: dict[str, tuple[Any, float]]) -> list[Constraint]:
    """Constraints with a variance replaced by the expected square."""
    if "variance" in found:
        if "mean" not in found:
            raise DomainError(sentence(ME, "a variance needs a mean", "none", 'add "mean", or use "square"'))
        variance = found.pop("variance")[1]
        if not variance > 0:
            raise DomainError(sentence(ME, "a variance must be positive", variance))
        found["square"] = ("square", variance + found["mean"][1] ** 2)
    if "mean" in found and "square" in found and not found["square"][1] > found["mean"][1] ** 2:
        got = f"E[x²] = {found['square'][1]:g} and E[x]² = {found['mean'][1] ** 2:g}"
        raise DomainError(sentence(ME, "a square must be larger than the squared mean", got))
    return [Constraint(name, feature, value) for name, (feature, value) in found.items()]


# -------------------------------------------------------------------------- finite sets


def _on_values(values: Any, constraints: list[Constraint]) -> Categorical:
    cells = np.asarray(values)
    if cells.ndim != 1 or not len(cells):
        raise ShapeError(sentence(ME, "values must be a list", cells.shape))
    features = (
        np.stack([_of_values(k, cells) for k in constraints], axis=1) if constraints else np.zeros((len(cells), 0))
    )
    possible, remaining = _possible(features, constraints)
    probs = np.zeros(len(cells))
    probs[possible] = _probabilities(
        features[np.ix_(possible, remaining)], [constraints[j] for j in np.flatnonzero(remaining)]
    )
    return Categorical(probs / probs.sum(), levels=cells)


def _of_values(constraint: Constraint, cells: Any) -> Array:
    """A feature at all values (m,)."""
    feature = constraint.feature
    try:
        if isinstance(feature, str):
            found = feature_values(feature, np.asarray(cells, dtype=np.float64))
        elif callable(feature):
            found = _called(feature, cells)
        else:
            found = np.asarray(feature, dtype=np.float64)
    except (TypeError, ValueError) as error:
        got, remedy = f"a {type(error).__name__} from it", "check it on one value"
        raise DomainError(sentence(ME, f"{constraint.name} must be a number for every value", got, remedy)) from error
    if found.shape != cells.shape or not np.isfinite(found).all():
        expected = f"{constraint.name} must be a finite number for each of {len(cells)} values"
        raise DomainError(sentence(ME, expected, found.shape if found.shape != cells.shape else "NaN or infinity"))
    return found


def _called(f: Callable[[Any], Any], cells: Any) -> Array:
    try:
        found = np.asarray(f(cells), dtype=np.float64)
        if found.shape == cells.shape:
            return found
    except (TypeError, ValueError):
        pass
    return np.array([float(f(cell)) for cell in cells.tolist()])


def _possible(features: Array, constraints: list[Constraint]) -> tuple[Array, Array]:
    """Masks of values that may have probability, and of constraints that remain.

    A constraint at the end of its range allows only the values at that end, and is then met.
    """
    possible, remaining = np.ones(len(features), dtype=bool), np.ones(len(constraints), dtype=bool)
    for _ in constraints:
        for j in np.flatnonzero(remaining):
            f, c = features[possible, j], constraints[j].value
            low, high = float(f.min()), float(f.max())
            slack = EDGE * max(high - low, abs(c), 1e-300)
            if not low - slack <= c <= high + slack:
                raise DomainError(sentence(ME, f"E[{constraints[j].name}] must lie in {low:g} … {high:g}", f"{c:g}"))
            if c <= low + slack or c >= high - slack:
                end = low if c <= low + slack else high
                possible &= np.abs(features[:, j] - end) <= slack
                remaining[j] = False
    return possible, remaining


def _probabilities(features: Array, constraints: list[Constraint]) -> Array:
    if not constraints:
        return np.full(len(features), 1 / len(features))
    targets = np.array([k.value for k in constraints])
    units = np.ptp(features, axis=0)
    none = np.empty(0, dtype=np.intp)
    found = solve_dual(features, np.zeros(len(features)), targets, units, np.zeros(len(constraints)), none)
    if not found.converged:
        _refuse_together(features, targets, units, constraints)
    logs = features @ found.multipliers
    p = np.exp(logs - logs.max())
    return np.asarray(p / p.sum())


def _refuse_together(features: Array, targets: Array, units: Array, constraints: list[Constraint]) -> None:
    """Raise for constraints that are feasible alone: jointly infeasible, or feasible at the boundary only."""
    from scipy.optimize import linprog

    m, k = features.shape
    scaled = ((features - targets) / units).T
    rows = np.vstack([np.hstack([scaled, -np.ones((k, 1))]), np.hstack([-scaled, -np.ones((k, 1))])])
    total = np.append(np.ones(m), 0.0)[None]
    best = linprog(np.append(np.zeros(m), 1.0), rows, np.zeros(2 * k), total, [1.0], method="highs")
    names = ", ".join(f"E[{one.name}] = {one.value:g}" for one in constraints)
    if best.fun is not None and best.fun > 1e-9:
        got = f"none: some expectation is always off by at least {best.fun:.2g} of its range"
        raise DomainError(sentence(ME, f"{names} must be jointly feasible", got))
    expected = f"{names} must lie inside the feasible region"
    raise DomainError(sentence(ME, expected, "values at its boundary", "move them inwards"))


# --------------------------------------------------------------------------- intervals


def _ends(interval: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError) as error:
        raise DomainError(sentence(ME, "interval must be (low, high)", interval)) from error
    if not low < high:
        raise DomainError(sentence(ME, "interval must be (low, high) with low below high", (low, high)))
    return low, high


def _on_interval(low: float, high: float, constraints: list[Constraint]) -> Any:
    named = {k.name: k.value for k in constraints if isinstance(k.feature, str)}
    if len(named) == len(constraints):
        direct = _closed_form(low, high, named)
        if direct is not None:
            return direct
    distribution = _solved(low, high, constraints)
    return _recognized(distribution, named) if len(named) == len(constraints) else distribution


def _closed_form(low: float, high: float, named: dict[str, float]) -> Any | None:
    """Closed forms: distributions whose parameters follow directly from the expectations."""
    if (low, high) == (-math.inf, math.inf) and set(named) == {"mean", "square"}:
        return Gaussian(np.array([named["mean"]]), np.array([[named["square"] - named["mean"] ** 2]]))
    if (low, high) == (0.0, math.inf) and set(named) == {"mean"} and named["mean"] > 0:
        return Exponential(np.array([1 / named["mean"]]))
    if (low, high) == (-math.inf, math.inf) and set(named) == {"abs"} and named["abs"] > 0:
        return Laplace(np.zeros(1), np.array([named["abs"]]))
    if not named and math.isfinite(high - low):
        return Uniform(np.array([low]), np.array([high]))
    return None


def _solved(low: float, high: float, constraints: list[Constraint]) -> MaximumEntropyDistribution:
    """Numerical solution: multipliers by minimization of the convex dual on quadrature nodes."""
    center, scale = _center_and_scale(low, high, {k.name: k.value for k in constraints})
    t, w = panel_nodes()
    change = interval_map(low, high, center, scale)
    x = change.x(t)
    features = np.stack([_at_points(k, x) for k in constraints], axis=1) if constraints else np.zeros((len(x), 0))
    # log x where x underflowed to 0 is left out: less than 10⁻¹⁶ of the probability lies there
    finite = np.asarray(np.isfinite(features).all(axis=1))
    base = np.where(finite, np.log(w) + change.log_slope(t), -np.inf)
    features = np.where(finite[:, None], features, 0.0)
    ends = _open_ends(low, high, len(t))
    targets, units = np.array([k.value for k in constraints]), _units(features, constraints)
    _refuse_outside(features, base, constraints)
    start = _start(features, base, targets, units, ends)
    found = solve_dual(features, base, targets, units, start, ends)
    if not found.converged:
        _refuse(constraints, low, high)
    distribution = MaximumEntropyDistribution(
        tuple(k.feature for k in constraints), found.multipliers, low, high, center, scale
    )
    for one, unit in zip(constraints, units, strict=True):
        _check(distribution, one, float(unit))
    return distribution


def _check(distribution: MaximumEntropyDistribution, constraint: Constraint, unit: float) -> None:
    """Warn if a constraint is not met under adaptive quadrature, as for features with jumps."""
    value = distribution.integrated(lambda x: feature_values(constraint.feature, x))
    if abs(value - constraint.value) > 1e-6 * max(unit, abs(constraint.value)):
        expected = f"{constraint.name} should be smooth, so that E = {constraint.value:g} is met"
        remedy = (
            "move it inwards" if isinstance(constraint.feature, str) else "smooth it, or give values= on a fine grid"
        )
        warn(sentence(ME, expected, f"{value:g}", remedy))


def _center_and_scale(low: float, high: float, named: dict[str, float]) -> tuple[float, float]:
    """Center and scale of the change of variables for an unbounded interval."""
    mean, square = named.get("mean", 0.0), named.get("square")
    if math.isfinite(low) or math.isfinite(high):
        end = low if math.isfinite(low) else high
        return 0.0, abs(mean - end) or 1.0
    deviation = math.sqrt(square - mean**2) if square is not None else named.get("abs") or abs(mean) or 1.0
    return mean, max(deviation, 1e-300)


def _at_points(constraint: Constraint, x: Array) -> Array:
    if not isinstance(constraint.feature, str) and not callable(constraint.feature):
        expected = f"{constraint.name} must be a name or a function on an interval"
        raise DomainError(sentence(ME, expected, type(constraint.feature).__name__))
    found = feature_values(constraint.feature, x)
    if np.isnan(found).all():
        raise DomainError(sentence(ME, f"{constraint.name} must be a number on the interval", "NaN"))
    return found


def _open_ends(low: float, high: float, n: int) -> Any:
    ends = [0] * (not math.isfinite(low)) + [n - 1] * (not math.isfinite(high))
    return np.array(ends, dtype=np.intp)


def _units(features: Array, constraints: list[Constraint]) -> Array:
    """Typical size of each feature near the center."""
    middle = features[len(features) * 39 // 80 : len(features) * 41 // 80]
    size = np.abs(middle).mean(axis=0) if len(constraints) else np.empty(0)
    size = np.where(size > 0, size, 1.0)
    # features of one sign are met relative to their value, however small: a mean of 10⁻⁹ between 0 and 1
    targets = np.abs([k.value for k in constraints])
    one_sign = ((features >= 0).all(axis=0) | (features <= 0).all(axis=0)) & (targets > 0)
    return np.where(one_sign, np.minimum(size, targets), size)


def _refuse_outside(features: Array, base: Array, constraints: list[Constraint]) -> None:
    relevant = base > base.max() - 60
    for j, one in enumerate(constraints):
        low, high = float(features[relevant, j].min()), float(features[relevant, j].max())
        if not low < one.value < high and high - low < 1e12 * max(1.0, abs(one.value)):
            raise DomainError(sentence(ME, f"E[{one.name}] must lie in {low:g} … {high:g}", f"{one.value:g}"))


def _start(features: Array, base: Array, targets: Array, units: Array, ends: Any) -> Array:
    """Initial multipliers with a finite integral: 0, or the fastest growing feature, decreasing at infinite ends."""
    k = len(targets)
    if not len(ends):
        return np.zeros(k)
    scaled = (features - targets) / units
    for j in np.argsort(-np.abs(features[ends] / units).max(axis=0)):
        tries = [_only(k, j, sign * size) for sign in (-1.0, 1.0) for size in np.geomspace(1e-3, 1e3, 49)]
        duals = [dual_value(scaled, base, lam, ends) for lam in tries]
        if min(duals) < math.inf:
            return np.asarray(tries[int(np.argmin(duals))] / units)
    expected = "on an unbounded interval a constraint must bound the entropy"
    remedy = 'give a "variance", "abs", or on a half-line a "mean"; or bound the interval'
    raise DomainError(sentence(ME, expected, "none that does", remedy))


def _only(k: int, j: int, size: float) -> Array:
    lam = np.zeros(k)
    lam[j] = size
    return lam


def _refuse(constraints: list[Constraint], low: float, high: float) -> None:
    names = ", ".join(f"E[{one.name}] = {one.value:g}" for one in constraints)
    expected = f"some distribution on ({low:g}, {high:g}) must have {names}, and one of them the largest entropy"
    raise DomainError(sentence(ME, expected, "none: they are jointly infeasible", "leave one of them out"))


def _recognized(distribution: MaximumEntropyDistribution, named: dict[str, float]) -> Any:
    """The named distribution with the same exponent, if there is one."""
    lam = dict(zip(named, distribution.multipliers, strict=True))
    ends = distribution.low, distribution.high
    if ends == (0.0, math.inf) and set(named) == {"mean", "log"}:
        return Gamma(lam["log"] + 1, -lam["mean"])
    if ends == (0.0, 1.0) and set(named) == {"log", "log1m"}:
        return Beta(lam["log"] + 1, lam["log1m"] + 1)
    if set(named) == {"cos", "sin"} and ends in CIRCLES:
        angle = np.array([math.atan2(lam["sin"], lam["cos"])])
        return VonMises(angle, np.array([math.hypot(lam["sin"], lam["cos"])]))
    return distribution

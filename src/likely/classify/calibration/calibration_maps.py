"""Calibration maps from scores to posteriors: temperature, logistic (Platt) and isotonic.

A map takes scores (n, C), one column per class, and gives log-posteriors (n, C). Scores are log-probabilities, or the
values of discriminant functions; a constant added to a row does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, cast

import numpy as np
from scipy.special import log_softmax, logsumexp

from likely.classify.calibration.temperature_scaling import (
    common_size,
    platt,
    shrunken_matrix,
    slope_and_lapse,
    smoothed_targets,
)
from likely.core import declared
from likely.core.arrays import Array, Index, check_option, numbers, parameter, weights
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value


class Calibration(Protocol):
    """A map from scores to log-posteriors."""

    @property
    def classes(self) -> int:
        """Number of classes C."""
        ...

    def log_posterior(self, scores: Any, /) -> Array:
        """log p(class | scores) (n, C)."""
        ...


@dataclass(frozen=True, eq=False)
class Temperature(Value):
    """Temperature scaling with a lapse rate: p = (1 − lapse) softmax(scores / temperature) + lapse / C.

    The order of the classes in a row is unchanged (Guo et al., 2017). The lapse rate is the share of rows with
    uninformative scores: without it a few outliers would determine the temperature of all.

    >>> np.exp(Temperature(2.0, 2).log_posterior([[0.0, 4.0]])).round(3)
    array([[0.119, 0.881]])
    """

    temperature: Annotated[Array, declared.numbers("", 0)]  # ()
    classes: int
    lapse: Annotated[Array, declared.numbers("", 0)] = field(default_factory=lambda: np.asarray(0.0))  # (), in 0 … 1

    def __post_init__(self) -> None:
        t = parameter(self.temperature, "Temperature", "temperature")
        lapse = parameter(self.lapse, "Temperature", "lapse")
        if t.shape != () or t <= 0 or self.classes < 1:
            raise DomainError(sentence("Temperature", "one positive number and a number of classes are needed", t))
        if lapse.shape != () or not 0 <= lapse < 1:
            raise DomainError(sentence("Temperature", "the lapse rate must lie in 0 … 1, below 1", lapse))
        self._set(temperature=t, classes=int(self.classes), lapse=lapse)

    def log_posterior(self, scores: Any) -> Array:
        """log of (1 − lapse) softmax(scores / temperature) + lapse / C   (n, C)."""
        z = _scores(scores, self.classes, "Temperature")
        with np.errstate(over="ignore"):  # a tiny temperature: the best class has probability 1
            out = _normalized((z - z.max(axis=1, keepdims=True)) / self.temperature)
        if self.lapse == 0:
            return out
        return np.logaddexp(np.log1p(-self.lapse) + out, np.log(self.lapse / self.classes))

    @classmethod
    def fit(cls, scores: Any, labels: Any, weight: Any = None) -> Temperature:
        """The largest temperature within half a standard error of the best one; `labels` (n,) is the true class."""
        z, labels, w = _sample(scores, labels, weight, "Temperature")
        slope, lapse = slope_and_lapse(z, labels, w)
        return cls.trusted(temperature=np.asarray(1 / slope), classes=z.shape[1], lapse=np.asarray(lapse))


@dataclass(frozen=True, eq=False)
class LogisticMap(Value):
    """A linear map of the scores: log p = log softmax(slope · scores + offset).

    Two classes: Platt's σ(a s + b). More: a matrix and a vector, shrunk to one common slope by a normal prior
    (Dirichlet calibration with off-diagonal shrinkage; Kull et al., 2019).

    >>> np.exp(LogisticMap(np.eye(2), [0.0, 1.0]).log_posterior([[0.0, 0.0]])).round(3)
    array([[0.269, 0.731]])
    """

    slope: Annotated[Array, declared.numbers("C C")]  # (C, C)
    offset: Annotated[Array, declared.numbers("C")]  # (C,)

    def __post_init__(self) -> None:
        slope, offset = parameter(self.slope, "LogisticMap", "slope"), parameter(self.offset, "LogisticMap", "offset")
        if offset.ndim != 1 or slope.shape != (len(offset), len(offset)):
            expected = f"slope must have shape {(offset.size, offset.size)}, one row and one column per class"
            raise ShapeError(sentence("LogisticMap", expected, slope.shape))
        self._set(slope=slope, offset=offset)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return len(self.offset)

    def log_posterior(self, scores: Any) -> Array:
        """log softmax(slope · scores + offset) (n, C)."""
        z = _scores(scores, self.classes, "LogisticMap")
        with np.errstate(over="ignore", invalid="ignore"):
            logits = np.einsum("nj,cj->nc", z, self.slope) + self.offset
        sound = np.isfinite(logits).all(axis=1)
        if not sound.all():
            got = f"an overflow in row {int(np.argmin(sound))}"
            raise DataError(sentence("LogisticMap", "slope · scores must be finite", got, "rescale the scores"))
        return _normalized(logits)

    @classmethod
    def fit(cls, scores: Any, labels: Any, weight: Any = None) -> LogisticMap:
        """The map of maximum (penalized) likelihood; `labels` (n,) is the index of the true class."""
        z, labels, w = _sample(scores, labels, weight, "LogisticMap")
        size, C = common_size(z, w), z.shape[1]
        targets = smoothed_targets(labels, w, C, shared=C != 2)
        slope, offset = (platt if C == 2 else shrunken_matrix)(z / size, targets, w)
        slope = slope - slope.mean(axis=1, keepdims=True)  # it was fitted to centered rows
        return cls.trusted(slope=slope / size, offset=offset)


@dataclass(frozen=True, eq=False)
class IsotonicMap(Value):
    """Isotonic regression per class: log-odds against all others ↦ probability, then rows are normalized.

    Each curve is the least-squares increasing step function of the labels, linear between its steps. One
    pseudo-observation of the other class at either end keeps probabilities from 0 and 1 (Zadrozny and Elkan, 2002).
    """

    knots: Annotated[Array, declared.numbers("M")]  # (M,): log-odds of the knots, by class
    levels: Annotated[Array, declared.numbers("M", 0)]  # (M,): probabilities there
    # (C + 1,): class c owns knots offsets[c] … offsets[c + 1] − 1
    offsets: Annotated[Index, declared.numbers("B", 0, np.int64)]

    def __post_init__(self) -> None:
        knots, levels = parameter(self.knots, "IsotonicMap", "knots"), parameter(self.levels, "IsotonicMap", "levels")
        offsets = np.array(self.offsets, dtype=np.intp)
        _check_curves(knots, levels, offsets)
        self._set(knots=knots, levels=levels, offsets=offsets)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return len(self.offsets) - 1

    def log_posterior(self, scores: Any) -> Array:
        """log of the curves' values, normalized (n, C)."""
        odds = one_against_rest(_scores(scores, self.classes, "IsotonicMap"))
        if self.classes == 2:  # one curve is enough: the other is its complement
            p = self._curve(1, odds[:, 1])
            return np.log(np.stack([1 - p, p], axis=1))
        p = np.stack([self._curve(c, odds[:, c]) for c in range(self.classes)], axis=1)
        return np.log(p / p.sum(axis=1, keepdims=True))

    def _curve(self, c: int, odds: Array) -> Array:
        own = slice(self.offsets[c], self.offsets[c + 1])
        return np.interp(odds, self.knots[own], self.levels[own])

    @classmethod
    def fit(cls, scores: Any, labels: Any, weight: Any = None) -> IsotonicMap:
        """Isotonic regression of the labels; `labels` (n,) is the index of the true class."""
        z, labels, w = _sample(scores, labels, weight, "IsotonicMap")
        odds = one_against_rest(z)
        curves = [rising_curve(odds[:, c], labels == c, w) for c in range(z.shape[1])]
        offsets = np.cumsum([0, *(len(knots) for knots, _ in curves)])
        knots, levels = (np.concatenate(parts) for parts in zip(*curves, strict=True))
        return cls.trusted(knots=knots, levels=levels, offsets=offsets.astype(np.intp))


Fit = Callable[[Any, Any, Any], Any]
Method = Literal["temperature", "logistic", "isotonic"]
MethodChoice = Literal["auto", "temperature", "logistic", "isotonic"]
METHODS: dict[Method, Fit] = {  # the simplest first, for ties
    "temperature": Temperature.fit,
    "logistic": LogisticMap.fit,
    "isotonic": IsotonicMap.fit,
}


def calibrate(scores: Any, labels: Any, weight: Any = None, *, method: str = "temperature") -> Any:
    """Fit a calibration map of one method to scores (n, C) and true classes (n,).

    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=20_000)
    >>> label = (rng.random(20_000) < 1 / (1 + np.exp(-s))).astype(int)
    >>> round(float(calibrate(np.stack([0 * s, 5 * s], axis=1), label).temperature), 1)  # five times too sure
    4.9
    """
    check_option(method, Method, "calibrate", "method")
    with one_blas_thread():  # the products are small: threads would mostly wait for each other
        return METHODS[cast(Method, method)](scores, labels, weight)


def choose_method(
    scores: Any, labels: Any, fold: Any, weight: Any = None, *, discriminant: bool = False
) -> tuple[Method, dict[Method, float]]:
    """The simplest method within one standard error of the best cross-validated log-loss.

    Also the log-loss of each method. `fold` (n,) is the fold of each row; with a single fold the simplest is taken.
    For two classes a slope and an offset are as simple as a slope and a lapse rate: logistic
    comes first if the scores are values of a `discriminant` function, whose zero need not be where the classes are
    equally probable (Platt, 1999), and temperature if they are log-probabilities, with possible outliers.
    """
    z, labels, w = _sample(scores, labels, weight, "calibrate")
    fold = np.asarray(fold) if weight is None else np.asarray(fold)[np.asarray(weight) > 0]
    names: tuple[Method, ...] = (
        ("logistic", "temperature", "isotonic") if discriminant and z.shape[1] == 2 else tuple(METHODS)
    )
    if len(np.unique(fold)) < 2:
        return names[0], {}
    with one_blas_thread():
        losses = {name: _tried(METHODS[name], z, labels, w, fold) for name in names}
    mean = {name: float(np.average(loss, weights=w)) for name, loss in losses.items()}
    best = losses[min(mean, key=mean.__getitem__)]
    return next(name for name, loss in losses.items() if _is_near(loss - best, w)), mean


def _is_near(excess: Array, w: Array) -> bool:
    """True if a mean excess of loss is within one standard error of 0."""
    middle = np.average(excess, weights=w)
    spread = np.average((excess - middle) ** 2, weights=w)
    return bool(middle <= np.sqrt(spread / w.sum()))


def log_loss(log_posterior: Array, labels: Index, weight: Array | None = None) -> float:
    """Weighted mean of −log p(true class).

    >>> round(log_loss(np.log([[0.5, 0.5], [0.2, 0.8]]), np.array([0, 1])), 4)
    0.4581
    """
    return float(np.average(-log_posterior[np.arange(len(labels)), labels], weights=weight))


def one_against_rest(scores: Array) -> Array:
    """s_c − log Σ_{j ≠ c} exp s_j (n, C): the log-odds of each class against all others."""
    C = scores.shape[1]
    if C == 1:
        return np.zeros_like(scores)
    if C == 2:
        odds = scores[:, 1] - scores[:, 0]
        return np.stack([-odds, odds], axis=1)
    top = scores.argmax(axis=1)[:, None]
    largest = np.take_along_axis(scores, top, axis=1)
    shares = np.exp(scores - largest)
    others = scores.copy()
    np.put_along_axis(others, top, -np.inf, axis=1)
    with np.errstate(divide="ignore"):  # the entry of the largest, which depends on the others only
        rest = largest + np.log(shares.sum(axis=1, keepdims=True) - shares)
    np.put_along_axis(rest, top, logsumexp(others, axis=1, keepdims=True), axis=1)
    return np.asarray(scores - rest)


def _check_curves(knots: Array, levels: Array, offsets: Index) -> None:
    ends = offsets.ndim == 1 and len(offsets) >= 2 and offsets[0] == 0 and offsets[-1] == len(knots)
    if not (ends and knots.ndim == 1 and knots.shape == levels.shape and (np.diff(offsets) > 0).all()):
        raise ShapeError(sentence("IsotonicMap", "each class needs its knots and as many levels", knots.shape))
    inside = np.ones(max(len(knots) - 1, 0), dtype=bool)
    inside[offsets[1:-1] - 1] = False
    rising = (np.diff(knots)[inside] > 0).all() and (np.diff(levels)[inside] >= 0).all()
    if not (rising and (levels > 0).all() and (levels < 1).all()):
        raise DomainError(sentence("IsotonicMap", "levels must increase with the knots, above 0 and below 1"))


def _tried(fit: Fit, z: Array, labels: Index, w: Array, fold: Any) -> Array:
    """−log p(true class) of each row (n,) under a map fitted to the other folds."""
    loss = np.empty(len(z))
    for k in np.unique(fold):
        here = fold == k
        log_p = fit(z[~here], labels[~here], w[~here]).log_posterior(z[here])
        loss[here] = -log_p[np.arange(len(log_p)), labels[here]]
    return loss


# ------------------------------------------------------------------------ validation


def _scores(scores: Any, classes: int | None, whose: str) -> Array:
    """Scores as (n, C) finite numbers."""
    z = numbers(scores, whose)
    if z.ndim != 2 or (classes is not None and z.shape[1] != classes):
        wanted = f"(n, {classes})" if classes else "(n, C)"
        raise ShapeError(sentence(whose, f"scores must have shape {wanted}, one column per class", z.shape))
    if not np.isfinite(z).all():
        i, c = np.argwhere(~np.isfinite(z))[0]
        remedy = "clip probabilities of 0 before taking logarithms"
        raise DataError(sentence(whose, "scores must be finite", f"{z[i, c]} at row {i}, class {c}", remedy))
    return z


def _sample(scores: Any, labels: Any, weight: Any, whose: str) -> tuple[Array, Index, Array]:
    """Centered scores, true classes and weights of rows with positive weight."""
    z, w = _scores(scores, None, whose), weights(weight, len(scores), whose)
    labels, w = np.asarray(labels), np.ones(len(z)) if w is None else w
    if labels.shape != (len(z),) or labels.dtype.kind not in "iu":
        raise ShapeError(sentence(whose, f"labels must be integers, one per row ({len(z)})", labels.shape))
    if len(labels) and (labels.min() < 0 or labels.max() >= z.shape[1]):
        raise DataError(sentence(whose, f"labels must lie in 0 … {z.shape[1] - 1}", f"{labels.min()} … {labels.max()}"))
    if not (w > 0).any():
        raise DataError(sentence(whose, "at least one row with a weight is needed", "none"))
    z, labels, w = (part[w > 0] for part in (z, labels.astype(np.intp), w))
    return z - z.mean(axis=1, keepdims=True), labels, w


def _normalized(logits: Array) -> Array:
    return np.asarray(log_softmax(logits, axis=1))


def rising_curve(x: Array, is_member: Any, weight: Array) -> tuple[Array, Array]:
    """Knots and levels of the isotonic regression x ↦ p(member), with one pseudo-observation at either end.

    >>> rising_curve(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 0, 1, 1]), np.ones(4))
    (array([0., 1., 2., 3.]), array([0.333, 0.333, 0.667, 0.667]))
    """
    from scipy.optimize import isotonic_regression  # a tenth of a second to import

    at, mass, hits = _merged(x, np.asarray(is_member, dtype=np.float64), weight)
    share, mass = np.concatenate([[1.0], hits / mass, [0.0]]), np.concatenate([[1.0], mass, [1.0]])
    return _corners(at, isotonic_regression(share, weights=mass).x[1:-1])


def _corners(at: Array, level: Array) -> tuple[Array, Array]:
    """The first and last knot of each step: the others lie on the line between."""
    first = np.concatenate([[True], level[1:] != level[:-1]])
    last = np.concatenate([first[1:], [True]])
    kept = first | last
    return at[kept], level[kept]


def _merged(x: Array, hit: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Distinct sorted x, with the weight and the weighted positives at each."""
    at, where = np.unique(x, return_inverse=True)
    mass, hits = (np.asarray(np.bincount(where, w, len(at)), dtype=np.float64) for w in (weight, weight * hit))
    return at, mass, hits

"""Bounds of the Bayes error from posteriors, nearest-neighbor error and entropy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core.arrays import Array, Index, PerMember, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.decision.posteriors import ClassPrior, posteriors
from likely.decision.theory.bayes_error import bayes_error
from likely.decision.theory.decision_problem import Problem, problem, shares
from likely.decision.theory.density_bounds import DRAWS, both_bounds, checked_draws
from likely.numerics.special import LOG_2

FIELDS = {"Gini": "gini", "entropy": "entropy", "Bhattacharyya": "bhattacharyya", "Chernoff": "chernoff"}  # by label


# ------------------------------------------------------------- from one number to another


def cover_hart_bound(error: ArrayLike, classes: int) -> Any:
    """Cover–Hart upper bound of the asymptotic nearest-neighbor error.

    p_NN ≤ 2 p_B − K/(K − 1) p_B²: exact if the other classes are equally probable, and the local error is constant.

    Parameters
    ----------
    error : float or array-like
        Bayes error p_B.
    classes : int
        Number of classes K.

    Returns
    -------
    float or ndarray
        The bound.

    See Also
    --------
    bayes_error_from_neighbors : The bound in the other direction.

    References
    ----------
    Cover and Hart (1967); Duda, Hart and Stork (2001), chapter 4; Ney, lecture notes, 5.4.

    Examples
    --------
    >>> round(cover_hart_bound(0.1, 2), 6), round(cover_hart_bound(0.1, 3), 6)
    (0.18, 0.185)
    """
    e, K = _error(error, classes, "cover_hart_bound"), _classes(classes, "cover_hart_bound")
    return _lone(2 * e - K / (K - 1) * e**2 if K > 1 else e)


def bayes_error_from_neighbors(error: ArrayLike, classes: int) -> PerMember:
    """Lower bound of the Bayes error from the nearest-neighbor error: Cover–Hart inverted.

    p_B ≥ (K − 1)/K [1 − √(1 − K/(K − 1) p_NN)].

    Parameters
    ----------
    error : float or array-like
        Asymptotic error p_NN of the nearest-neighbor rule.
    classes : int
        Number of classes K.

    Returns
    -------
    float or ndarray
        The bound.

    See Also
    --------
    cover_hart_bound : The bound in the other direction.

    References
    ----------
    Cover and Hart (1967); Duda, Hart and Stork (2001), chapter 4; Ney, lecture notes, 5.4.

    Examples
    --------
    >>> round(bayes_error_from_neighbors(0.18, 2), 6)
    0.1
    """
    e, K = _error(error, classes, "bayes_error_from_neighbors"), _classes(classes, "bayes_error_from_neighbors")
    if K == 1:
        return _lone(e)
    share = (K - 1) / K
    return _lone(e / (1 + np.sqrt(np.maximum(1 - e / share, 0.0))))  # share (1 − √…), without cancellation


def fano_bound(entropy: ArrayLike, classes: int, bits: bool = False) -> Any:
    """Fano's lower bound of the Bayes error: the smallest p_B with h(p_B) + p_B log(K − 1) ≥ H(c | x).

    Parameters
    ----------
    entropy : float or array-like
        Conditional entropy H(c | x).
    classes : int
        Number of classes K.
    bits : bool, default False
        The entropy is in bits instead of nats.

    Returns
    -------
    float or ndarray
        The bound, by bisection.

    See Also
    --------
    hellman_raviv_bound : An upper bound from the same entropy.

    References
    ----------
    Cover and Thomas (2006), chapter 2.

    Examples
    --------
    >>> round(fano_bound(np.log(3.0), 3), 6), fano_bound(0.0, 3)
    (0.666667, 0.0)
    """
    K = _classes(classes, "fano_bound")
    H = np.asarray(entropy, dtype=np.float64) * (LOG_2 if bits else 1.0)
    if not ((H >= 0) & (H <= np.log(K) * (1 + 1e-9))).all():
        expected = f"a conditional entropy of {K} classes lies in 0 … {np.log(K):.6g} nats"
        raise DomainError(sentence("fano_bound", expected, np.asarray(entropy).tolist(), "pass bits=True for bits"))
    low, high = np.zeros_like(H), np.full_like(H, 1 - 1 / K)
    for _ in range(1100 if K > 1 else 0):
        middle = 0.5 * (low + high)
        if not ((middle > low) & (middle < high)).any():
            break
        enough = _fano_entropy(middle, K) >= H
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return _lone(np.where(H <= 0, 0.0, low))


def hellman_raviv_bound(entropy: ArrayLike, bits: bool = False) -> Any:
    """Hellman–Raviv upper bound of the Bayes error: p_B ≤ H(c | x)/2 with H in bits.

    Half of the bound p_B ≤ H in Ney 4.6.

    Parameters
    ----------
    entropy : float or array-like
        Conditional entropy H(c | x).
    bits : bool, default False
        The entropy is in bits instead of nats.

    Returns
    -------
    float or ndarray
        The bound.

    See Also
    --------
    fano_bound : A lower bound from the same entropy.

    References
    ----------
    Hellman and Raviv (1970); Ney, lecture notes, 4.6.

    Examples
    --------
    >>> hellman_raviv_bound(1.0, bits=True)
    0.5
    """
    H = np.asarray(entropy, dtype=np.float64)
    if not (H >= 0).all():
        raise DomainError(sentence("hellman_raviv_bound", "an entropy must not be negative", H.tolist()))
    return _lone(0.5 * H / (1.0 if bits else LOG_2))


def _fano_entropy(e: Array, classes: int) -> Array:
    return np.asarray(-xlogy(e, e) - xlogy(1 - e, 1 - e) + e * np.log(max(classes - 1, 1)))


# --------------------------------------------------------------------- from posteriors


@dataclass(frozen=True)
class ErrorBounds:
    """Lower and upper bounds of the Bayes error, by name; `str` is a table.

    If posteriors are those of a model, not the true ones, the bounds hold under the model; only those from
    labels, `squared_error` and `cross_entropy`, then bound the true Bayes error (up to sampling error).

    Parameters
    ----------
    classes : int
        Number of classes.
    bayes : float
        Mean of 1 − max p: the Bayes error, if these are the true posteriors.
    gini : float
        Mean of 1 − Σ p²: the asymptotic nearest-neighbor error.
    entropy : float
        Mean of −Σ p log p, in nats.
    squared_error : float, optional
        Mean of Σ (p − label)².
    cross_entropy : float, optional
        Mean of −log p(label).
    bhattacharyya : float, optional
        Bound √(p(0) p(1)) ∫ √(p q), of two distributions.
    chernoff : float, optional
        Bound p(0)ˢ p(1)¹⁻ˢ ∫ pˢ q¹⁻ˢ at the best s.
    errors : dict
        Standard errors of the above by name, if estimated by sampling.

    References
    ----------
    Ney, lecture notes, 4.6 and 5.4.

    Examples
    --------
    >>> import likely as lk
    >>> found = lk.decision.error_bounds([[0.9, 0.1], [0.6, 0.4]])
    >>> round(found.bayes, 3), round(found.gini, 3)
    (0.25, 0.33)
    """

    classes: int
    bayes: float  # mean of 1 − max p: the Bayes error, if these are the true posteriors
    gini: float  # mean of 1 − Σ p²: the asymptotic nearest-neighbor error
    entropy: float  # mean of −Σ p log p, in nats
    squared_error: float | None = None  # mean of Σ (p − label)²
    cross_entropy: float | None = None  # mean of −log p(label)
    bhattacharyya: float | None = None  # √(p(0) p(1)) ∫ √(p q), of two distributions
    chernoff: float | None = None  # the smallest p(0)ˢ p(1)¹⁻ˢ ∫ pˢ q¹⁻ˢ
    errors: Mapping[str, float] = field(default_factory=dict)  # standard errors of the above, if estimated by sampling

    @property
    def lower(self) -> dict[str, float]:
        """Lower bounds of the Bayes error."""
        return {
            "Cover–Hart, from Gini": bayes_error_from_neighbors(min(self.gini, 1 - 1 / self.classes), self.classes),
            "Fano, from entropy": fano_bound(min(self.entropy, np.log(self.classes)), self.classes),
        }

    @property
    def upper(self) -> dict[str, float]:
        """Upper bounds of the Bayes error."""
        found = {
            "Gini": self.gini, "Hellman–Raviv, ½ entropy in bits": hellman_raviv_bound(self.entropy),
            "entropy": self.entropy, "squared error": self.squared_error, "cross-entropy": self.cross_entropy,
            "Bhattacharyya": self.bhattacharyya, "Chernoff": self.chernoff,
        }  # fmt: skip
        return {name: bound for name, bound in found.items() if bound is not None}

    @property
    def neighbors(self) -> tuple[float, float]:
        """Bounds of the asymptotic nearest-neighbor error: Bayes error, and Cover–Hart."""
        return self.bayes, cover_hart_bound(min(self.bayes, 1 - 1 / self.classes), self.classes)

    def __str__(self) -> str:
        lines = [f"{'at least':<10}{bound:>9.4f}  {name}" for name, bound in self.lower.items()]
        lines += [f"{'if true':<10}{self.bayes:>9.4f}  mean of 1 − max p{self._doubt('bayes')}"]
        lines += [
            f"{'at most':<10}{bound:>9.4f}  {name}{self._doubt(FIELDS.get(name, ''))}"
            for name, bound in self.upper.items()
        ]
        return "\n".join(lines)

    def _doubt(self, name: str) -> str:
        """Two standard errors, if estimated by sampling."""
        error = self.errors.get(name, 0.0)
        return f", ± {2 * error:.1g}" if error > 0 else ""


def error_bounds(
    *given: Any, truth: ArrayLike | None = None, weight: ArrayLike | None = None,
    class_prior: ClassPrior | None = None, n: int = DRAWS, rng: Generator | None = None,
) -> ErrorBounds:  # fmt: skip
    """All bounds of the Bayes error, from posteriors or from distributions.

    Parameters
    ----------
    *given : array-like (n, C), densities, Mixture or BayesClassifier
        Posteriors; or distributions, a mixture or a fitted classifier as in `bayes_error`, evaluated on samples.
    truth : array-like of int (n,), optional
        Column of the true class of each row, for the bounds that need labels.
    weight : array-like (n,), optional
        Weight per row.
    class_prior : array-like (C,), optional
        Class probabilities; None: those of the mixture or classifier, else equal.
    n : int
        Number of samples.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    ErrorBounds
        The bounds, by name.

    See Also
    --------
    bayes_error : The error itself, from distributions.

    References
    ----------
    Ney, lecture notes, 4.6, 5.4 and 5.5; Cover and Thomas (2006), chapter 2 (Fano); Hellman and Raviv (1970).

    Examples
    --------
    >>> b = error_bounds([[0.9, 0.1], [0.6, 0.4]], truth=[0, 1])
    >>> round(b.bayes, 3), round(b.gini, 3), round(b.squared_error, 3)
    (0.25, 0.33, 0.37)
    """
    if any(
        hasattr(distribution, "log_prob") or hasattr(distribution, "model_") or hasattr(distribution, "fit")
        for distribution in given
    ):
        n = checked_draws(n, "error_bounds")
        return _of_distributions(problem(given, class_prior, None, "error_bounds"), n, rng or np.random.default_rng(0))
    if len(given) != 1:
        raise ShapeError(
            sentence("error_bounds", "one array of posteriors (n, C), or distributions", f"{len(given)} of them")
        )
    P = posteriors(given[0], "error_bounds")
    w = _shares(weight, len(P))
    means: dict[str, Any] = dict(_means(P, w))
    if truth is None:
        return ErrorBounds(P.shape[1], **means)
    labels = _labels(truth, P.shape)
    return ErrorBounds(
        P.shape[1], **means, squared_error=_squared_error(P, labels, w), cross_entropy=_cross_entropy(P, labels, w)
    )


def _means(P: Array, w: Array) -> dict[str, float]:
    return {name: max(float(w @ each), 0.0) for name, each in _each_row(P).items()}


def _of_distributions(asked: Problem, n: int, rng: Generator) -> ErrorBounds:
    """Bayes error and bounds from stratified samples; for two distributions also overlap bounds."""
    sizes = [max(round(share * n), 2) for share in asked.prior]
    draws = [
        asked.log_joint(distribution.sample(size, rng))
        for distribution, size in zip(asked.distributions, sizes, strict=True)
    ]
    each = [_each_row(shares(joint, asked.prior)) for joint in draws]
    found = {name: _stratified([rows[name] for rows in each], asked.prior) for name in each[0]}
    found["bayes"] = tuple(bayes_error(*asked.distributions, class_prior=asked.prior, n=n, rng=rng))
    if len(asked.distributions) == 2:
        near, least = both_bounds(asked, n, rng)
        found |= {"bhattacharyya": tuple(near), "chernoff": tuple(least)}
    values = {name: max(float(value), 0.0) for name, (value, _) in found.items()}
    return ErrorBounds(
        len(asked.distributions), **values, errors={name: float(error) for name, (_, error) in found.items()}
    )


def _each_row(P: Array) -> dict[str, Array]:
    return {"bayes": 1 - P.max(axis=1), "gini": _gini(P), "entropy": -xlogy(P, P).sum(axis=1)}


def _stratified(rows: list[Array], prior: Array) -> tuple[Any, ...]:
    """Mean over classes and its standard error."""
    mean = sum(p * float(one.mean()) for p, one in zip(prior.tolist(), rows, strict=True))
    square = sum(p**2 * float(one.var(ddof=1)) / len(one) for p, one in zip(prior.tolist(), rows, strict=True))
    return mean, float(np.sqrt(square))


def squared_error_bound(posterior: ArrayLike, truth: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Mean of Σ_c (p(c | x) − [c = truth])²: an upper bound of the Bayes error for any model.

    Parameters
    ----------
    posterior : array-like (n, C)
        Posterior probabilities of the model.
    truth : array-like of int (n,)
        Column of the true class of each row.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        The bound.

    References
    ----------
    Ney, lecture notes, 4.6 and 5.5.

    Examples
    --------
    >>> squared_error_bound([[1.0, 0.0], [0.5, 0.5]], [0, 1])
    0.25
    """
    P = posteriors(posterior, "squared_error_bound")
    return _squared_error(P, _labels(truth, P.shape), _shares(weight, len(P)))


def cross_entropy_bound(posterior: ArrayLike, truth: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Mean of −log p(truth | x): an upper bound of the Bayes error for any model.

    Parameters
    ----------
    posterior : array-like (n, C)
        Posterior probabilities of the model.
    truth : array-like of int (n,)
        Column of the true class of each row.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        The bound in nats.

    References
    ----------
    Ney, lecture notes, 4.6.

    Examples
    --------
    >>> round(cross_entropy_bound([[1.0, 0.0], [0.5, 0.5]], [0, 1]), 4)
    0.3466
    """
    P = posteriors(posterior, "cross_entropy_bound")
    return _cross_entropy(P, _labels(truth, P.shape), _shares(weight, len(P)))


def _gini(P: Array) -> Array:
    return np.asarray((P * (1 - P)).sum(axis=1))


def _squared_error(P: Array, labels: Index, w: Array) -> float:
    return float(w @ ((P - np.eye(P.shape[1])[labels]) ** 2).sum(axis=1))


def _cross_entropy(P: Array, labels: Index, w: Array) -> float:
    """Cross-entropy; infinite if a true class has posterior 0, ignoring rows of weight 0."""
    with np.errstate(divide="ignore"):
        each = -np.log(P[np.arange(len(P)), labels])
    return float(w @ np.where(w > 0, each, 0.0)) + 0.0


# ---------------------------------------------------------------------------- validation


def _classes(classes: Any, whose: str) -> int:
    if not (isinstance(classes, int | np.integer) and classes >= 1):
        raise DomainError(sentence(whose, "classes must be an integer, 1 or more", classes))
    return int(classes)


def _error(error: Any, classes: Any, whose: str) -> Array:
    """A validated error rate of K classes: 0 … (K − 1)/K."""
    e, most = np.asarray(error, dtype=np.float64), 1 - 1 / _classes(classes, whose)
    if not ((e >= 0) & (e <= most * (1 + 1e-12))).all():
        raise DomainError(sentence(whose, f"with {classes} classes the error lies in 0 … {most:.6g}", e.tolist()))
    return np.minimum(e, most)


def _shares(weight: Any, n: int) -> Array:
    w = weights(weight, n, "error_bounds")
    w = np.ones(n) if w is None else w
    if w.ndim != 1:
        raise ShapeError(sentence("error_bounds", f"weight must have one entry per row ({n})", w.shape))
    if not w.sum() > 0:
        raise DataError(sentence("error_bounds", "rows of positive weight are needed", "none"))
    return np.asarray(w / w.sum())


def _labels(truth: Any, shape: tuple[int, ...]) -> Index:
    labels = np.asarray(truth)
    if labels.shape != shape[:1] or labels.dtype.kind not in "iub":
        remedy = "np.searchsorted(clf.classes_, y) computes them"
        expected = f"truth must be {shape[0]} integers, the columns of the posteriors"
        raise ShapeError(sentence("error_bounds", expected, f"{labels.dtype} {labels.shape}", remedy))
    labels = labels.astype(np.intp)
    if labels.size and not (labels.min() >= 0 and labels.max() < shape[1]):
        bad = int(np.flatnonzero((labels < 0) | (labels >= shape[1]))[0])
        expected = f"truth must lie in 0 … {shape[1] - 1}"
        raise DataError(sentence("error_bounds", expected, f"{labels[bad]} at row {bad}"))
    return labels


def _lone(a: Any) -> Any:
    return float(a) if np.ndim(a) == 0 else np.asarray(a)

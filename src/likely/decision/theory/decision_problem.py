"""Decision problems: class-conditional distributions, class priors and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.decision.cost import Cost, labels
from likely.decision.posteriors import class_shares
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.gaussian.gaussian import Gaussian


@dataclass(frozen=True, eq=False)
class Problem:
    """Distributions of C classes, their prior probabilities, and the costs of A actions.

    The smallest cost of a class is unavoidable; what matters is the excess over it. So the Bayes risk is
    paid + ∫ min_a Σ_c excess(a, c) p(x | c) dx, where excess holds the class probabilities too.
    """

    distributions: tuple[Any, ...]  # C single distributions
    prior: Array  # (C,)
    cost: Cost  # (A, C)
    classes: Any  # (C,)

    @property
    def paid(self) -> float:
        """The expected cost of the best action in each class."""
        return float(self.prior @ self.cost.table.min(axis=0))

    @property
    def excess(self) -> Array:
        """The excess cost of each action over the best one (A, C), times the class probabilities."""
        table = self.cost.table
        return (table - table.min(axis=0)) * self.prior

    @property
    def counts_mistakes(self) -> bool:
        """True for 0/1 loss without further actions."""
        table = self.cost.table
        return table.shape[0] == table.shape[1] and bool((table == 1.0 - np.eye(len(table))).all())

    def log_probs(self, x: Any) -> Array:
        """log p(x | c) of rows (n, C); a singular Gaussian whose support holds the row takes precedence."""
        out = np.stack(
            [np.asarray(distribution.log_prob(x), dtype=np.float64) for distribution in self.distributions], axis=1
        )
        ranks = np.array([_rank(distribution) for distribution in self.distributions])
        if len(set(ranks[np.isfinite(ranks)])) > 1:
            least = np.where(np.isfinite(out), ranks, np.inf).min(axis=1, keepdims=True)
            out[np.isfinite(ranks) & (ranks > least)] = -np.inf
        return out

    def log_joint(self, x: Any) -> Array:
        """log p(c) p(x | c) of rows (n, C)."""
        with np.errstate(divide="ignore"):
            return self.log_probs(x) + np.log(self.prior)

    def risk(self, x: Any) -> Array:
        """The expected cost of the best action for each row (n,)."""
        return self.cost.expected_of(shares(self.log_joint(x), self.prior)).min(axis=1)

    def action(self, log_probs: Array) -> Any:
        """The action of smallest expected cost (n,) from log p(x | c) (n, C)."""
        top = log_probs.max(axis=1, keepdims=True)
        relative = np.exp(log_probs - np.where(np.isfinite(top), top, 0.0))
        return (relative @ self.excess.T).argmin(axis=1)

    def thresholds(self) -> tuple[Array, Any]:
        """For two classes: increasing thresholds on log p(x | 0)/p(x | 1), and the actions between them (len + 1,)."""
        E = self.excess
        i, j = np.triu_indices(len(E), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = -(E[i, 1] - E[j, 1]) / (E[i, 0] - E[j, 0])
            crossings = np.unique(np.log(ratio[np.isfinite(ratio) & (ratio > 0)]))
        ends = np.concatenate([crossings[:1] - 1.0, crossings, crossings[-1:] + 1.0])
        middle = 0.5 * (ends[1:] + ends[:-1]) if len(crossings) else np.zeros(1)
        actions = self.action(np.stack([middle / 2, -middle / 2], axis=1))
        real = np.flatnonzero(np.diff(actions)) if len(crossings) else np.empty(0, dtype=np.intp)
        return crossings[real], actions[np.concatenate([real, [len(actions) - 1]])]


def _rank(distribution: Any) -> float:
    """The rank of a Gaussian's covariance; +inf for other distributions.

    Densities of different rank cannot be compared: rows on the support of lower rank belong to it with certainty.
    """
    return float(np.ravel(distribution.form.rank)[0]) if isinstance(distribution, Gaussian) else np.inf


def shares(log_joint: Array, prior: Array) -> Array:
    """Posteriors (n, C); a row of density 0 under all classes has the prior."""
    top = log_joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        p = np.exp(log_joint - np.where(np.isfinite(top), top, 0.0))
        return np.where(np.isfinite(top), p / p.sum(axis=1, keepdims=True), prior)


def problem(given: tuple[Any, ...], class_prior: Any, cost: Any, whose: str) -> Problem:
    """A decision problem from distributions, a stack, a mixture or a fitted classifier."""
    if not given:
        raise ShapeError(sentence(whose, "distributions of two classes or more are needed", "none"))
    distributions, own, classes = _members(given[0], whose) if len(given) == 1 else (given, None, None)
    for distribution in distributions:
        _check_distribution(distribution, whose)
    widths = {int(distribution.dim) for distribution in distributions if getattr(distribution, "dim", None) is not None}
    if len(widths) > 1:
        raise ShapeError(sentence(whose, "all distributions must have the same number of columns", sorted(widths)))
    _one_kind(distributions, whose)
    named = classes is not None
    classes = np.arange(len(distributions)) if classes is None else labels(classes)
    if cost is None and len(given) == 1:
        cost = getattr(given[0], "cost", None)
    prior = _prior(class_prior, own, classes, whose)
    plain = tuple(
        distribution.gaussian if isinstance(distribution, FactorGaussian) else distribution
        for distribution in distributions
    )
    return Problem(plain, prior, _finite(Cost.of(cost, classes, named=named), whose), classes)


def _finite(cost: Cost, whose: str) -> Cost:
    """Costs without the actions that are never taken; other infinite costs raise an error."""
    table = cost.table
    if not np.isinf(table).any():
        return cost
    used = ~np.isinf(table).all(axis=1)
    if np.isinf(table[used]).any():
        expected, remedy = "costs must be finite here", "use a large number"
        raise DomainError(sentence(whose, expected, "an infinite cost of an action that may be taken", remedy))
    return Cost.trusted(table=table[used], actions=cost.actions, classes=cost.classes)


def _members(given: Any, whose: str) -> tuple[tuple[Any, ...], Any, Any]:
    """Single distributions, weights and labels of a stack, mixture or classifier."""
    classes = getattr(given, "classes_", None)
    if classes is not None:
        given = getattr(given, "model_", given)
    elif hasattr(given, "fit") and hasattr(given, "get_params"):
        raise DomainError(sentence(whose, "a fitted classifier is needed", type(given).__name__, "fit it first"))
    weights: Any = getattr(given, "weights", None)
    parts: Any = getattr(given, "components", given)
    if np.ndim(weights) == 2:  # a stack of mixtures, one per class
        weights, parts = None, given
    members = getattr(parts, "members", None)
    if not members:
        remedy = "pass the distribution of each class, a stack, a Mixture or a fitted BayesClassifier"
        raise DomainError(
            sentence(whose, "distributions of two classes or more are needed", type(given).__name__, remedy)
        )
    return tuple(parts.member(k) for k in range(members)), weights, classes


def _check_distribution(distribution: Any, whose: str) -> None:
    if not (callable(getattr(distribution, "log_prob", None)) and callable(getattr(distribution, "sample", None))):
        expected = "each class needs a density with log_prob and sample"
        raise DomainError(sentence(whose, expected, type(distribution).__name__))
    if getattr(distribution, "members", None):
        expected, remedy = (
            "several distributions must be single ones, not stacks",
            "pass the stack alone, or one member(k) of it",
        )
        raise ShapeError(sentence(whose, expected, f"a stack of {distribution.members}", remedy))


def _one_kind(distributions: Any, whose: str) -> None:
    """Raise an error if discrete and continuous distributions are mixed."""
    if len({type(distribution) for distribution in distributions}) < 2:
        return
    kinds = [(distribution, _has_atoms(distribution)) for distribution in distributions]
    discrete, smooth = ([distribution for distribution, atoms in kinds if atoms is which] for which in (True, False))
    if discrete and smooth:
        names = f"{type(discrete[0]).__name__} and {type(smooth[0]).__name__}"
        remedy = (
            "such classes do not overlap: where one has atoms, the other has probability 0, and the Bayes error is 0"
        )
        expected = "all distributions must be discrete, or all continuous"
        raise DomainError(sentence(whose, expected, names, remedy))


def _has_atoms(distribution: Any) -> bool | None:
    """True for discrete distributions, False for densities, None if unknown."""
    if isinstance(distribution, Gaussian):
        return False if _rank(distribution) == distribution.dim else None
    if hasattr(distribution, "probs") and not callable(distribution.probs):
        return True
    if getattr(distribution, "dim", None) is None or hasattr(distribution, "components"):
        return None
    drawn = _some_draws(distribution)
    if drawn is None:
        return None
    whole = bool((drawn == np.floor(drawn)).all())
    with np.errstate(all="ignore"):
        beside = np.asarray(distribution.log_prob(drawn[:16] + 0.5), dtype=np.float64)
    return True if whole and np.isneginf(beside).all() else (None if whole else False)


def _some_draws(distribution: Any) -> Array | None:
    """A few samples as rows; None if they are not numbers."""
    try:
        drawn = np.asarray(distribution.sample(64, np.random.default_rng(0)))
    except TypeError:  # a distribution of sequences needs lengths
        return None
    if drawn.dtype.kind not in "biuf" or drawn.ndim not in (1, 2) or not np.isfinite(drawn).all():
        return None
    return np.asarray(drawn.reshape(len(drawn), -1), dtype=np.float64)


def _prior(given: Any, own: Any, classes: Any, whose: str) -> Array:
    if given is None and own is not None:
        return np.array(own, dtype=np.float64)
    if given is None or (isinstance(given, str) and given == "uniform"):
        return np.full(len(classes), 1.0 / len(classes))
    if isinstance(given, dict):
        if set(given) != set(classes.tolist()):
            raise DomainError(sentence(whose, f"class_prior must name each class {classes.tolist()}", list(given)))
        given = [given[c] for c in classes.tolist()]
    return class_shares(given, len(classes), whose)

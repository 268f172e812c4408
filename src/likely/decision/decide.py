"""Decisions from posteriors: minimum expected cost, reject option and novelty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core.arrays import Array, Index, Mask, Rows
from likely.core.errors import DomainError, sentence
from likely.core.protocols import Classifier
from likely.decision.cost import Cost, CostLike, labels
from likely.decision.posteriors import ClassPrior, posteriors
from likely.decision.reject import NOVEL, REJECT, with_rejections

SHOWN = 20  # maximum number of printed rows


def decide(
    posterior: ArrayLike | Classifier, X: Rows | None = None, *,
    cost: CostLike | None = None, reject_cost: float | None = None,
    reject_below: float | None = None, novelty: float | None = None,
    class_prior: ClassPrior | None = None, full: bool = False,
) -> Any:  # fmt: skip
    """Decisions of minimum expected cost, from posteriors or by any classifier on rows X.

    The action argmin_a Σ_c L(a, c) p(c | x), or a rejection.

    Parameters
    ----------
    posterior : array-like (n, C) or classifier
        Posterior probabilities, or a fitted classifier with rows X.
    X : array-like (n, d), optional
        Rows for the classifier.
    cost : Cost, matrix (A, C) or dict, optional
        Cost of each action (row) for each true class (column); None is 0/1 loss. The first C rows decide for the
        classes; a table with fewer rows has other actions only. np.inf: never if that class is possible.
    reject_cost : float, optional
        Reject where that is cheaper than the cheapest action.
    reject_below : float, optional
        Reject instead of a class where the largest posterior is smaller.
    novelty : float, optional
        False-alarm rate: reject rows that are outliers with respect to the training data (generative classifiers only).
    class_prior : array-like (C,) or dict, optional
        Class probabilities other than those of training (classifiers only).
    full : bool, default False
        Return expected costs, runner-up and reasons too.

    Returns
    -------
    ndarray (n,) or Decisions
        A classifier gives labels, names of further actions, `lk.REJECT` and `lk.NOVEL`. So do posteriors with a cost
        table that names its classes or has further actions; without names a class is its number, and an action "action
        1", "action 2", …. With other tables, posteriors give row numbers (−1 for rejection).

    See Also
    --------
    Cost : The cost table.
    bayes_error : The smallest possible error or risk.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Ney, lecture notes, 2.2; Herbst and du Preez, lecture notes, 1.5.

    Examples
    --------
    >>> decide(np.array([[0.9, 0.1], [0.6, 0.4]]), cost=[[0, 5], [1, 0]])
    array([0, 1])
    >>> decide(np.array([[0.9, 0.1], [0.6, 0.4]]), reject_cost=0.3)
    array([ 0, -1])
    >>> decide(np.array([[0.9, 0.1], [0.6, 0.4]]), cost=Cost([[0, 9], [9, 0], [2, 2]], actions=["ask"])).tolist()
    [0, 'ask']
    """
    rules = {"cost": cost, "reject_cost": reject_cost, "reject_below": reject_below}
    if X is None:
        if novelty is not None or class_prior is not None:
            expected = "novelty and class_prior need a classifier and rows X"
            raise DomainError(sentence("decide", expected, "posteriors alone", "see lk.change_prior"))
        P = posteriors(posterior, "decide")
        return _result(P, np.arange(P.shape[1]), rules, None, full, indices=True)
    own = getattr(posterior, "decide", None)
    if callable(own):
        return own(X, **rules, novelty=novelty, class_prior=class_prior, full=full)
    if novelty is not None:
        remedy = "use BayesClassifier, or omit novelty"
        raise DomainError(sentence("decide", "novelty needs a model of p(x)", type(posterior).__name__, remedy))
    classes, P = foreign_posterior(posterior, X)
    if class_prior is not None:
        expected, remedy = "class_prior needs a model with class priors", "use lk.change_prior on its posteriors"
        raise DomainError(sentence("decide", expected, type(posterior).__name__, remedy))
    return _result(P, classes, rules, None, full)


def foreign_posterior(classifier: Any, X: Any) -> tuple[NDArray[Any], Array]:
    """Classes and posteriors (n, C) of any classifier that gives probabilities."""
    whose, classes = type(classifier).__name__, getattr(classifier, "classes_", None)
    if hasattr(classifier, "fit") and classes is None:
        raise DomainError(sentence("decide", "a fitted classifier is needed", f"{whose} without classes_", "fit it"))
    for name, linear in (("log_posterior", np.exp), ("predict_proba", np.asarray)):
        if hasattr(classifier, name):
            P = posteriors(linear(getattr(classifier, name)(X)), "decide")
            return labels(range(P.shape[1]) if classes is None else classes), P
    remedy = f"wrap it: lk.CalibratedClassifier({whose}(…)).fit(X, y)"
    raise DomainError(sentence("decide", "a classifier with probabilities is needed", whose, remedy))


def decisions_from(
    posterior: Array, classes: Any, *, cost: Any = None, reject_cost: float | None = None,
    reject_below: float | None = None, novel: Mask | None = None, why_novel: Any = None,
    full: bool = False,
) -> Any:  # fmt: skip
    """The decisions of a classifier with these posteriors (n, C): labels, action names, REJECT and NOVEL."""
    rules = {"cost": cost, "reject_cost": reject_cost, "reject_below": reject_below}
    return _result(posterior, classes, rules, None if novel is None else (novel, why_novel), full)


def _result(P: Array, classes: Any, rules: dict[str, Any], novelty: Any, full: bool, indices: bool = False) -> Any:
    cost = Cost.of(rules["cost"], classes, named=not indices)
    below = _share(rules["reject_below"], "reject_below")
    with_reject = cost if rules["reject_cost"] is None else cost.with_reject(rules["reject_cost"])
    R = with_reject.expected_of(P)
    novel, why = novelty or (None, None)
    at = with_rejections(R.argmin(axis=1), P, len(cost.table), below, novel)
    refusing = below is not None or with_reject is not cost or novelty is not None
    if indices and cost.classes is not None:
        classes = cost.classes
    if indices and cost.classes is None and not cost.actions:  # classes without names are row numbers of the table
        names, choice = np.arange(len(cost.table)), at
    else:
        names = cost.names(classes)
        choice = _named(at, names, refusing)
    if not full:
        return choice
    return Decisions(choice, at, names, P, R, rules["reject_cost"], below, why, np.asarray(classes))


def _named(at: Index, names: NDArray[Any], refusing: bool) -> NDArray[Any]:
    """Labels of rows of the table; objects if rejection is possible."""
    if not refusing:
        return names[at]
    table = np.empty(len(names) + 2, dtype=object)
    table[:] = [*names.tolist(), NOVEL, REJECT]  # from the end: −1, −2
    return table[at]


def why_not_the_likeliest(top: Any, probability: float, decided: Any, cost: float, cost_of_top: float) -> str:
    """The explanation why costs led to another class than the most probable one."""
    likeliest = f"the most probable class is {top} ({probability:.4g})"
    return f"{likeliest}, but deciding {decided} costs less on average: {cost:.4g} against {cost_of_top:.4g}"


def _share(value: float | None, name: str) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise DomainError(sentence("decide", f"{name} must lie in 0 … 1", value))
    return value


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions for n rows, with expected costs of all actions and reasons: the result of `decide(…, full=True)`.

    Parameters
    ----------
    choice : ndarray (n,)
        Labels, names of actions, `REJECT` and `NOVEL`; or rows of the table, where classes have no names.
    index : ndarray of int (n,)
        Rows of the table; −1 is `REJECT`, −2 is `NOVEL`.
    actions : ndarray (A,)
        Names of the rows of the table.
    posterior : ndarray (n, C)
        Posterior probabilities.
    expected_costs : ndarray (n, A) or (n, A + 1)
        Expected cost of each action; the last column is rejection, where it has a cost.
    reject_cost : float or None
        Cost of rejecting.
    reject_below : float or None
        Threshold of the largest posterior.
    _why_novel : callable or None
        Sentence for a novel row, by its number.
    classes : ndarray (C,)
        Class labels.

    Examples
    --------
    >>> d = decide(np.array([[0.7, 0.3]]), cost=[[0, 5], [1, 0]], reject_cost=0.5, full=True)
    >>> d.choice, d.reasons[0]
    (array([-1]), 'rejected: the cheapest class, 1, would cost 0.7 on average, rejection costs 0.5')
    """

    choice: NDArray[Any]  # (n,): labels, actions, rejections; or rows of the table
    index: Index  # (n,): rows of the table, −1 REJECT, −2 NOVEL
    actions: NDArray[Any]  # (A,): names of the rows of the table
    posterior: Array  # (n, C)
    expected_costs: Array  # (n, A), or (n, A + 1) if rejection has a cost
    reject_cost: float | None
    reject_below: float | None
    _why_novel: Any
    classes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.choice)

    @cached_property
    def cost(self) -> Array:
        """Expected cost of the decision (n,); NaN for a rejection without a cost."""
        refused = np.nan if self.reject_cost is None else self.reject_cost
        taken = self.expected_costs[np.arange(len(self)), np.maximum(self.index, 0)]
        return np.where(self.index >= 0, taken, refused)

    @cached_property
    def ranking(self) -> Index:
        """Rows of the table by increasing expected cost (n, A)."""
        return np.argsort(self.expected_costs[:, : len(self.actions)], axis=1, kind="stable")

    @cached_property
    def runner_up(self) -> NDArray[Any]:
        """The second best action; for a rejection, the best (n,)."""
        order = self.ranking
        second = order[:, min(1, order.shape[1] - 1)]
        return self.actions[np.where(self.index >= 0, second, order[:, 0])]

    @cached_property
    def runner_up_cost(self) -> Array:
        """Expected cost of the runner-up (n,)."""
        order = self.ranking
        second = order[:, min(1, order.shape[1] - 1)]
        return self.expected_costs[np.arange(len(self)), np.where(self.index >= 0, second, order[:, 0])]

    @property
    def reasons(self) -> list[str]:
        """The reason of each decision, one sentence per row."""
        return [self.reason(i) for i in range(len(self))]

    def reason(self, i: int) -> str:
        """The reason of one decision.

        Parameters
        ----------
        i : int
            Row.

        Returns
        -------
        str
            One sentence.
        """
        at, best = int(self.index[i]), self.ranking[i]
        if at == NOVEL.code:
            return f"novel: {self._why_novel(i)}"
        cheapest, next_best = self.actions[best[0]], self.actions[best[min(1, len(best) - 1)]]
        least, then = self.expected_costs[i, best[0]], self.expected_costs[i, best[min(1, len(best) - 1)]]
        if at == REJECT.code and self.reject_cost is not None and self.expected_costs[i].argmin() == len(self.actions):
            kind = "class" if best[0] < self.posterior.shape[1] else "action"
            return (
                f"rejected: the cheapest {kind}, {cheapest}, would cost {least:.4g} on average, "
                f"rejection costs {self.reject_cost:.4g}"
            )
        if at == REJECT.code:
            top = self.posterior[i].argmax()
            share = f"{self.posterior[i, top]:.4g}, below {self.reject_below:.4g}"
            return f"rejected: the most probable class, {self.classes[top]}, has {share}"
        others = f"the next best, {next_best}, {then:.4g}" if np.isfinite(then) else "every other action, inf"
        compared = f"expected cost {least:.4g}; {others}"
        return "; ".join(part for part in (compared, self.cost_decided(i)) if part)

    def cost_decided(self, i: int) -> str:
        """How costs changed a decision that is neither the most probable class nor a rejection.

        Parameters
        ----------
        i : int
            Row.

        Returns
        -------
        str
            One sentence; "" for other decisions.
        """
        at, top = int(self.index[i]), int(self.posterior[i].argmax())
        if at < 0 or at == top:
            return ""
        costs = self.expected_costs[i, [at, top]]
        if not np.isfinite(costs).all():  # the most probable class may not be chosen at all
            return ""
        return why_not_the_likeliest(self.classes[top], self.posterior[i, top], self.actions[at], *costs)

    def records(self) -> Iterator[dict[str, Any]]:
        """One plain dict per row, for JSON.

        Yields
        ------
        dict
            Keys decision, cost, runner_up, runner_up_cost, reason and posterior.
        """
        cost, runner, dear = self.cost, self.runner_up, self.runner_up_cost
        for i, choice in enumerate(self.choice.tolist()):
            yield {
                "decision": str(choice) if choice in (REJECT, NOVEL) else choice,
                "cost": None if np.isnan(cost[i]) else float(cost[i]),
                "runner_up": runner[i] if not isinstance(runner[i], np.generic) else runner[i].item(),
                "runner_up_cost": float(dear[i]), "reason": self.reason(i),
                "posterior": {str(c): float(p) for c, p in zip(self.classes, self.posterior[i], strict=True)},
            }  # fmt: skip

    def __str__(self) -> str:
        head = f"{'row':>5}  {'decision':<16} {'cost':>8}  {'runner-up':<16} {'cost':>8}  reason"
        lines = [
            f"{i:>5}  {self.choice[i]!s:<16} {self.cost[i]:>8.4g}  {self.runner_up[i]!s:<16} "
            f"{self.runner_up_cost[i]:>8.4g}  {self.reason(i)}"
            for i in range(min(len(self), SHOWN))
        ]
        more = [f"… and {len(self) - SHOWN} more rows"] if len(self) > SHOWN else []
        return "\n".join([head, *lines, *more])

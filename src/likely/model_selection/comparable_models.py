"""What a comparison needs of a model: its kind, the log score of rows, and its predictive distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, sentence
from likely.core.value import Value
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.one_row_per_member import log_prob_each
from likely.distributions.stacks.stack import Stack
from likely.estimation.base_estimator import BaseEstimator
from likely.estimation.foreign_classifiers import log_posteriors
from likely.model_selection.conformal import gives_deviation


class ConjugateModel(BaseEstimator):
    """A conjugate prior as a density to be fitted: `model_` is the posterior predictive, `log_evidence_` log p(rows).

    >>> import likely as lk
    >>> coin = ConjugateModel(lk.Beta(1.0, 1.0)).fit([[1.0], [1.0], [0.0]])
    >>> float(np.exp(coin.log_evidence_)), np.exp(coin.score_samples([[1.0]]))
    (0.083333333333, array([0.6]))
    """

    def __init__(self, prior: Any) -> None:
        self.prior = prior

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the prior by the statistics of the rows."""
        stats = _some_point(self.prior).collect(X, sample_weight)
        self.log_evidence_ = float(np.sum(self.prior.log_evidence(stats)))
        self.model_ = self.prior.update(stats).predictive()
        return self

    def score_samples(self, X: Any) -> Array:
        """Log-density of each row under the posterior predictive distribution."""
        return np.asarray(self.model_.log_prob(X))


def _some_point(prior: Any) -> Any:
    """A model that collects the statistics of the prior's family: at its mode, or where there is none its mean."""
    try:
        return prior.point("mode")
    except (DomainError, DataError, NotImplementedError):
        return prior.point("mean")


class Kind(NamedTuple):
    """How models of a kind score rows, and what they predict."""

    score: Callable[[Any, Any, Any], Array]  # model, X, targets → (n,)
    predictive: Callable[[Any, Any, Any], Any]  # model, X, classes


def _class_score(model: Any, X: Any, y: Any) -> Array:
    place = {c: i for i, c in enumerate(y.classes.tolist())}
    at = np.array([place.get(label, -1) for label in y.values.tolist()], dtype=np.intp)
    if (at < 0).any():
        unknown = y.values.tolist()[int(np.argmax(at < 0))]
        raise DataError(sentence("compare", f"labels must be among the classes {list(place)[:12]}", repr(unknown)))
    return log_posteriors(model, X, y.classes)[np.arange(len(at)), at]


def _regression_score(model: Any, X: Any, y: Any) -> Array:
    rows = y.values[:, None] if y.values.ndim == 1 else y.values
    return log_prob_each(predictive_of(model, X), rows)


def predictive_of(model: Any, X: Any) -> Any:
    """The stack of predictive densities of a regression, one per row."""
    if hasattr(model, "predictive"):
        return model.predictive(X)
    center, spread = (np.asarray(part, dtype=np.float64) for part in model.predict(X, return_std=True))
    return Gaussian(center[:, None], (spread**2)[:, None], "diagonal")


def _density_of(model: Any, X: Any, classes: Any) -> Any:
    if not hasattr(model, "model_"):
        expected = "an average needs models of likely, which have model_"
        raise DomainError(sentence("Comparison.predictive", expected, type(model).__name__, "use log_prob(X)"))
    return model.model_


KINDS = {
    "density": Kind(lambda model, X, y: model.score_samples(X), _density_of),
    "classifier": Kind(_class_score, lambda model, X, classes: np.exp(log_posteriors(model, X, classes))),
    "regression": Kind(_regression_score, lambda model, X, classes: predictive_of(model, X)),
}


def kind_of(models: Sequence[Any], y: Any) -> str:
    """The kind of all models; an error names one of another kind."""
    kinds = [_kind(model, y) for model in models]
    other = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        got = f"a {kinds[0]} ({type(models[0]).__name__}) and a {kinds[other]} ({type(models[other]).__name__})"
        raise DomainError(sentence("compare", "all models must be of one kind", got, "compare like with like"))
    return kinds[0]


def _kind(model: Any, y: Any) -> str:
    name = type(model).__name__
    if isinstance(model, type):
        raise DomainError(sentence("compare", "models must be instances", f"the class {model.__name__}"))
    if y is None:
        if hasattr(model, "score_samples") and not is_classifier(model):
            return "density"
        raise DomainError(sentence("compare", "without y, models must be densities", name, "pass y, or a density"))
    if is_classifier(model) and any(hasattr(model, f"predict{ability}") for ability in ("_log_proba", "_proba")):
        return "classifier"
    if hasattr(model, "predictive") or (hasattr(model, "predict") and gives_deviation(model)):
        return "regression"
    expected = "with y, a classifier with probabilities or a regression with a predictive density is needed"
    raise DomainError(sentence("compare", expected, name))


def interleaved(stacks: Sequence[Any]) -> Any:
    """Members of K stacks of n as one stack of n·K: the K of the first row, then those of the second.

    >>> interleaved([Gaussian([[0.0], [1.0]], [1.0]), Gaussian([[5.0], [6.0]], [1.0])]).mean[:, 0]
    array([0., 5., 1., 6.])
    """
    first, alike = stacks[0], all(type(stack) is type(stacks[0]) and isinstance(stack, Value) for stack in stacks)
    own = [_per_member(stack) for stack in stacks] if alike else []
    if alike and all(found.keys() == own[0].keys() for found in own):
        rest = [name for name in first.field_values() if name not in own[0]]
        if all(_equal(getattr(stack, name), getattr(first, name)) for stack in stacks for name in rest):
            merged = {name: np.stack([found[name] for found in own], axis=1) for name in own[0]}
            return first.replace(**{name: part.reshape(-1, *part.shape[2:]) for name, part in merged.items()})
    return Stack(tuple(stack.member(i) for i in range(first.members) for stack in stacks))


def _per_member(stack: Any) -> dict[str, NDArray[Any]]:
    """The fields of a stack with one entry per member: those with an axis more than one member has."""
    one, fields = stack.member(0), stack.field_values()
    return {name: part for name, part in fields.items() if np.ndim(part) > np.ndim(getattr(one, name))}


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else a is b or (isinstance(a, str | int) and a == b)

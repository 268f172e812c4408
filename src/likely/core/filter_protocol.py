"""The Filter protocol (belief state, predict, update) and recursive filtering of live observations."""

from __future__ import annotations

from inspect import signature
from typing import Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from likely.core.arrays import Rows
from likely.core.errors import DomainError, sentence
from likely.core.online_filters import BayesianLearner, Learner

B = TypeVar("B")
Y = TypeVar("Y", contravariant=True)


class Filter(Protocol[B, Y]):
    """A recursive Bayesian filter: initial belief state, predict step, update step. Beliefs are immutable values.

    A filter that takes known inputs (control inputs, covariates, the time of an observation) has one more argument:
    `predict(belief, inputs)` and `update(belief, y, inputs)`, both with the inputs of the frame that is reached.
    """

    def initial_belief(self) -> B:
        """The belief state before any observation."""
        ...

    def predict(self, belief: B, /) -> B:
        """The predicted belief one time step ahead."""
        ...

    def update(self, belief: B, y: Y, /) -> tuple[B, float]:
        """The belief after observing y, and the predictive log-density log p(y | past observations)."""
        ...


def as_filter(model: Any) -> Any:
    """The object with the filter methods: a value such as `HMM`, a fitted estimator's value, a learner, a prior.

    >>> import likely as lk
    >>> type(as_filter(lk.Dirichlet([1.0, 1.0]))).__name__
    'BayesianLearner'
    """
    if isinstance(model, type):
        expected, name = "a model is needed, not its class", model.__name__
        raise DomainError(sentence("step", expected, f"the class {name}", f"make one: {name}(…)"))
    if hasattr(model, "as_online_filter"):  # an estimator that validates observations, too
        return model.as_online_filter()
    inner = getattr(model, "model_", model)
    if hasattr(inner, "update") and hasattr(inner, "initial_belief"):
        return inner
    if hasattr(model, "partial_fit"):
        return Learner(model)
    if hasattr(model, "update") and hasattr(model, "log_evidence"):
        return BayesianLearner(model)
    expected = "a model with the methods initial_belief, predict and update is needed"
    remedy = "pass an HMM, a fitted HMMDensity, an estimator with partial_fit, or a prior"
    raise DomainError(sentence("step", expected, type(inner).__name__, remedy))


def step(model: Any, belief: Any, y: Rows, inputs: ArrayLike | None = None) -> tuple[Any, float]:
    """One filter step: the belief after an observation, and its predictive log-density.

    The log-density is log p(y | past observations).

    Parameters
    ----------
    model : value or estimator
        A value such as `HMM`, a fitted estimator of one, or an online learner: an estimator with `partial_fit`, whose
        belief is the estimator so far, or a conjugate prior, whose belief is the posterior so far.
    belief : belief or None
        The belief so far; None before the first observation.
    y : array-like (d,)
        The observation; NaN is a missing value.
    inputs : array-like, optional
        Inputs of this observation, for filters that take some: the control inputs of a `LinearGaussian`, the covariates
        of an HMM, the time of an observation of a `LinearSDE`.

    Returns
    -------
    belief : belief
        The belief after the observation.
    log_prob : float
        Its predictive log-density.

    See Also
    --------
    follow : Steps over a stream.

    Examples
    --------
    >>> import likely as lk
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> belief = None
    >>> for x in (0.1, 4.9):
    ...     belief, logp = lk.step(h, belief, x)
    >>> belief.probs.round(4)
    array([0.0001, 0.9999])
    """
    filter_ = as_filter(model)
    if inputs is not None:
        refuse_inputs(filter_, "step")
    return advance(filter_, belief, y, inputs)


def refuse_inputs(filter_: Any, whose: str) -> None:
    """Raise an error for inputs of a filter whose `predict` takes none."""
    if len(signature(filter_.predict).parameters) < 2:
        expected, remedy = f"a {type(filter_).__name__} takes no inputs", "leave inputs out"
        raise DomainError(sentence(whose, expected, "some", remedy))


def advance(filter_: Any, belief: Any, y: Any, inputs: Any) -> tuple[Any, float]:
    """Prediction and update step of an object with the filter methods; the first belief is only updated."""
    known = () if inputs is None else (inputs,)
    return filter_.update(filter_.initial_belief() if belief is None else _predicted(filter_, belief, known), y, *known)


def _predicted(filter_: Any, belief: Any, known: tuple[Any, ...]) -> Any:
    """The predicted belief; an error if the belief is not one of this model."""
    try:
        return filter_.predict(belief, *known)
    except (AttributeError, TypeError) as error:
        wanted = type(filter_.initial_belief())
        if isinstance(belief, wanted):
            raise
        expected = f"the belief of {type(filter_).__name__} must be a {wanted.__name__}, or None at first"
        remedy = "the order is step(model, belief, y)"
        raise DomainError(sentence("step", expected, type(belief).__name__, remedy)) from error

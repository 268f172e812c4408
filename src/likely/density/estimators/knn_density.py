"""k-nearest-neighbor density estimator: stores all distinct rows."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, get_args

from numpy.typing import ArrayLike

from likely.density.knn_balls import BallMetricName, KNNBalls
from likely.estimation.component import Traits
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.parameter_intervals import PARAMETER_ROWS, Row


class KNNDensity(DensityEstimator):
    """Nearest-neighbor density estimation, p(x) = k / (N V_k(x)).

    It does not integrate to one.

    Parameters
    ----------
    n_neighbors : float, default 5
        The number k: the total weight of rows that a ball must contain.
    metric : {"l1", "l2", "linf"}, default "l2"
        The norm of the ball.
    scaled : bool, default True
        Measure columns in their standard deviations.
    shared : bool, default False
        In a classifier, one ball for all classes: the posterior is then the share of the k votes, the
        k-nearest-neighbor rule. Else each class has its own balls, and no class has probability 0.
    unbiased : bool, default False
        Use k − 1 instead of k.

    Attributes
    ----------
    model_ : KNNBalls
        The fitted density.

    See Also
    --------
    KernelDensity : A density that integrates to one.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 4; Bishop (2006), chapter 2; Ney, lecture notes, 5.3; Herbst and du Preez,
    lecture notes, 2.5.

    Examples
    --------
    >>> import likely as lk
    >>> X, y = [[0.0], [1.0], [2.0], [9.0], [10.0]], ["low", "low", "low", "high", "high"]
    >>> lk.BayesClassifier(lk.KNNDensity(3, shared=True)).fit(X, y).predict_proba([[4.0]])
    array([[0., 1.]])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Real, 0, None, closed="neither")],
        "metric": [StrOptions(set(get_args(BallMetricName)))],
        "scaled": ["boolean"], "shared": ["boolean"], "unbiased": ["boolean"],
    }  # fmt: skip

    def __init__(
        self,
        n_neighbors: float = 5,
        *,
        metric: BallMetricName = "l2",
        scaled: bool = True,
        shared: bool = False,
        unbiased: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.scaled = scaled
        self.shared = shared
        self.unbiased = unbiased

    prior, max_iter, tol = None, 100, 1e-6  # there is no prior; only missing labels need iterations
    model_types = (KNNBalls,)
    traits = Traits(reports_unobserved=False)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> KNNBalls:
        return KNNBalls.blank(
            X[:1],
            members,
            n_neighbors=float(self.n_neighbors),
            metric=self.metric,
            scaled=bool(self.scaled),
            shared=bool(self.shared),
            unbiased=bool(self.unbiased),
        )

    def prior_rule(self) -> None:
        """A k-nearest-neighbor density takes no prior."""


def _balls(model: KNNBalls, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The unit of each column; k was given, and the points are the data themselves."""
    yield from (Row(name, "unit", float(v), None, None) for name, v in zip(names, model._unit, strict=True))


PARAMETER_ROWS[KNNBalls] = _balls

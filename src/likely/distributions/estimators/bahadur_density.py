"""Estimator of the Bahadur–Lazarsfeld expansion of binary columns."""

from __future__ import annotations

from typing import Any

from likely.distributions.binary.bahadur import Bahadur
from likely.distributions.estimators.binary_density import BinaryDensity


class BahadurDensity(BinaryDensity):
    """Bahadur–Lazarsfeld expansion: `model_` is a `Bahadur` with probabilities, and correlations up to `order`.

    Order 1 is `BernoulliDensity`. Truncated below the number of columns the expansion can be negative, and then log p
    is −inf, with a warning; `WalshDensity(log=True)` stays positive. Prior, threshold, weights, missing values and
    `partial_fit` are as there.

    >>> from likely.distributions.estimators.bahadur_density import BahadurDensity
    >>> b = BahadurDensity(prior=None).fit([[0, 0], [1, 1], [1, 1], [0, 0]])
    >>> b.model_.probs, b.model_.correlations
    (array([0.5, 0.5]), array([1., 0., 0., 1.]))
    """

    def __init__(
        self, order: int = 2, *, prior: Any = "weak", threshold: float | None = 0.0, max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.order = order
        self.prior = prior
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Bahadur,)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Bahadur:
        return Bahadur.blank(X[:1], members, min(int(self.order), X.shape[1]))

"""A Gaussian learnt from rows."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from likely.estimators.shell import EM, PRIOR, DensityEstimator
from likely.families.gaussian import Gaussian


class GaussianDensity(DensityEstimator):
    """Learn a Gaussian: `model_` is a `Gaussian`.

    - **covariance**: "full", "diagonal", "spherical", or "pooled" (one covariance for all members of the stack in
      which the density stands; alone it equals "full").
    - **prior**: "weak" keeps the covariance regular and leaves well-determined estimates as they are
      (`NormalInverseWishart.weak`); None is maximum likelihood; or a `Prior`.
    - **max_iter, tol**: of the EM iteration that gaps (NaN) make necessary for a full covariance.

    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal([1.0, 5.0], [1.0, 2.0], (1000, 2))
    >>> d = lk.GaussianDensity().fit(X)
    >>> d.mean_.round(1), round(d.score(X), 1)
    (array([1. , 4.9]), -3.5)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "covariance": [StrOptions({"full", "diagonal", "spherical", "pooled"})], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, covariance: str = "full", *, prior: Any = "weak", max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.covariance = covariance
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    _model_types = (Gaussian,)

    def _blank(self, X: Any) -> Gaussian:
        return Gaussian.blank(X[:4096], kind="full" if self.covariance == "pooled" else self.covariance)

    @property
    def mean_(self) -> Any:
        """The learnt mean (d,)."""
        return self.model_.mean

    @property
    def covariance_(self) -> Any:
        """The learnt covariance: (d, d), (d,) or a number, by kind."""
        return self.model_.covariance

"""Gaussian density robust to outliers: Tukey's contamination model, fitted by EM."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, get_args

import numpy as np

from likely.core.arrays import Array, Rows
from likely.core.blocks import Blocks
from likely.core.em_loop import StoppingRule, fit, resolve_prior
from likely.core.protocols import PriorLike
from likely.core.warnings import warnings_discarded
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.gaussian import Gaussian
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.mixture.mixture import Mixture
from likely.mixture.priors import MixturePrior
from likely.mixture.scaled_copies import ScaledCopies

FIRST_SHARE = 0.05  # initial proportion of outliers


class ContaminatedDensity(DensityEstimator):
    """Contaminated Gaussian density with inliers and outliers, Tukey's model.

    (1 − ε) N(x | μ, Σ) + ε N(x | μ, α Σ): μ, Σ and the proportion ε of outliers are learned; `outlier_probability`
    gives each row's posterior probability.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical"}, default "full"
        "full", "diagonal" or "spherical".
    scale : float, default 100.0
        Α, the ratio of the outliers' variance to that of the inliers.
    prior : {"weak"}, Prior or None, default "weak"
        Of μ and Σ: "weak", None or a `Prior`.
    max_iter : int, default 200
        Largest number of EM iterations.

    Attributes
    ----------
    model_ : Mixture
        The fitted density.

    See Also
    --------
    StudentTDensity : Outliers of any size.
    ScaledCopies : The components.

    References
    ----------
    Ney, lecture notes, 6.1.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.append(np.random.default_rng(0).normal(0.0, 1.0, 99), 50.0)[:, None]
    >>> d = lk.mixture.ContaminatedDensity(scale=1000.0).fit(X)
    >>> bool(d.covariance_[0, 0] < 1.2), d.outlier_probability(X)[-1].round(3)
    (True, np.float64(1.0))
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "covariance": [StrOptions(set(get_args(CovarianceKind)))],
        "scale": [Interval(Real, 1, None, closed="neither")], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, covariance: CovarianceKind = "full", scale: float = 100.0, *, prior: PriorLike = "weak",
        max_iter: int = 200, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.covariance = covariance
        self.scale = scale
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Mixture,)
    traits = Traits(reports_unobserved=False)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Mixture:
        share = np.array([1 - FIRST_SHARE, FIRST_SHARE])
        weights = share if members is None else np.tile(share, (members, 1))
        base = Gaussian.blank(X[:4096], kind=self.covariance, members=members)
        return Mixture.trusted(weights=weights, components=ScaledCopies(base, np.array([1.0, float(self.scale)])))

    def initialize(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Any, run: int = 0) -> Any:
        """The maximum-likelihood model: a weak prior scaled by it is robust to outliers too."""
        if labels is not None:
            return super().initialize(blank, X, labels, weight, rng, run)
        if self.prior is None:
            return blank
        with warnings_discarded():
            return fit(blank, Blocks.of(X, weight), stop=StoppingRule(min(self.max_iter, 50), 1e-4)).model

    def prior_rule(self) -> Any:
        def rule(model: Mixture, stats: Any) -> Any:
            parts = resolve_prior(model.components, stats.components, self.prior)
            return None if parts is None else MixturePrior.trusted(weights=None, components=parts)

        return rule

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        sound = super().accepts_model(model, width, members) and model.size == 2
        return sound and isinstance(model.components, ScaledCopies)

    @property
    def mean_(self) -> Array:
        """The mean (d,), shared by inliers and outliers."""
        return self.model_.components.base.mean

    @property
    def covariance_(self) -> Array:
        """The covariance of the inliers."""
        return self.model_.components.base.covariance

    @property
    def outlier_fraction_(self) -> float:
        """The proportion ε of outliers."""
        return float(self.model_.weights[1])

    def outlier_probability(self, X: Rows) -> Array:
        """Posterior probability that each row is an outlier.

        Returns
        -------
        ndarray (n,)
            Probabilities.
        """
        check_is_fitted(self)
        return self.model_.posterior(self.validate_rows(X, reset=False))[:, 1]

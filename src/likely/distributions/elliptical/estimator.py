"""Estimator of an elliptical density with a given radial profile."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, get_args

from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.protocols import PriorLike
from likely.distributions.elliptical.elliptical import Elliptical
from likely.distributions.elliptical.radial_profile import LearnedProfile
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions


class EllipticalDensity(DensityEstimator):
    """Estimate center and scale of an elliptical density with a given radial profile.

    Rows must be complete, and are stored: a general profile has no sufficient statistic of fixed size.

    Parameters
    ----------
    profile : {"power", "gaussian", "t", "laplace", "logistic"} or callable, default "power"
        "power" e^{−q^β/2}, "gaussian", "t", "laplace" or "logistic"; or a function log f(q), with which the estimator
        cannot be saved.
    shape : float, optional
        Β of "power" (½ if None: Laplace tails; 1 is the Gaussian; above 1, lighter tails), ν of "t".
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (a Gaussian's, in the units of the profile), None for maximum likelihood, or a `Prior`.

    Attributes
    ----------
    model_ : Elliptical
        The fitted density.

    See Also
    --------
    Elliptical : The distribution.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).laplace([1.0, 5.0], 1.0, (500, 2))
    >>> lk.distributions.EllipticalDensity("power", 0.5).fit(X).center_.round(1)
    array([1.1, 5. ])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "profile": [StrOptions(set(get_args(LearnedProfile))), callable],
        "shape": [Interval(Real, 0, None, closed="neither"), None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, profile: LearnedProfile | Callable[[Array], ArrayLike] = "power", shape: float | None = None, *,
        prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.profile = profile
        self.shape = shape
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Elliptical,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Elliptical:
        return Elliptical.blank(X[:4096], self.profile, members, self.shape)

    @property
    def center_(self) -> Array:
        """Estimated center (d,)."""
        return self.learned_model_.center

    @property
    def scale_(self) -> Array:
        """Estimated scale (d, d)."""
        return self.learned_model_.scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

"""Estimator of a Student-t density: robust to outliers."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, get_args

from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.protocols import PriorLike
from likely.distributions.student_t.student_t import StudentT
from likely.distributions.student_t.student_t_em import ScaleKind
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions


class StudentTDensity(DensityEstimator):
    """Student-t density estimation, robust because outliers have little weight.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical", "independent"}, default "full"
        The kind of scale: "full", "diagonal", "spherical", or "independent": one univariate t distribution with its own
        degrees of freedom per column.
    dof : float, optional
        None estimates the degrees of freedom; a number fixes them (4 is a usual choice; 1 is the Cauchy distribution).
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (that of a Gaussian for center and scale, and ν ~ Gamma(2, 0.1)), None for maximum likelihood, where ν
        may go up to 10⁶ if tails are no heavier than a Gaussian's; or a `Prior`.
    max_iter : int, default 500
        Largest number of EM iterations over latent scales.
    tol : float, default 1e-6
        EM ends when the objective rises by less, in nats per sample.

    Attributes
    ----------
    model_ : StudentT
        The fitted density.

    See Also
    --------
    StudentT : The distribution.
    GaussianDensity : No outliers.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 1.5.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal([1.0, 5.0], [1.0, 2.0], (500, 2))
    >>> X[:100] = 50.0  # a fifth of all rows is wrong
    >>> lk.StudentTDensity().fit(X).center_.round(1)
    array([0.9, 4.9])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "covariance": [StrOptions(set(get_args(ScaleKind)))],
        "dof": [Interval(Real, 0, None, closed="neither"), None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, covariance: ScaleKind = "full", dof: float | None = None, *, prior: PriorLike = "weak",
        max_iter: int = 500, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.covariance = covariance
        self.dof = dof
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (StudentT,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> StudentT:
        return StudentT.blank(X[:4096], self.covariance, members, self.dof)

    @property
    def center_(self) -> Array:
        """Estimated center (d,)."""
        return self.learned_model_.center

    @property
    def scale_(self) -> Array:
        """Estimated scale matrix: (d, d), (d,) or a number, by kind; the covariance is ν/(ν − 2) times it."""
        return self.learned_model_.scale

    @property
    def dof_(self) -> Array:
        """Estimated degrees of freedom: a number, or (d,) for independent columns."""
        return self.learned_model_.dof

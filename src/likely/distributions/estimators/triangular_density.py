"""Estimator of triangular columns, with known or estimated ends."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.triangular import Triangular
from likely.estimation.density_estimator import EM, PRIOR


class TriangularDensity(ColumnDensity):
    """Independent triangular columns: `model_` is a `Triangular`.

    - **low**, **high**: fixed ends, a number or one per column; None estimates them.
    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> lk.TriangularDensity(low=0.0, high=8.0, prior=None).fit([[1.0], [2.0], [4.0]]).mode_
    array([2.])
    """

    _distribution = Triangular
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "low": ["array-like", Real, None], "high": ["array-like", Real, None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, *, low: Any = None, high: Any = None, prior: Any = "weak", max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.low = low
        self.high = high

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Triangular:
        return Triangular.blank(X[:4096], members, low=self.low, high=self.high)

    @property
    def low_(self) -> Any:
        """The lower ends (d,)."""
        return self.learned_model_.low

    @property
    def mode_(self) -> Any:
        """The estimated modes (d,)."""
        return self.learned_model_.mode

    @property
    def high_(self) -> Any:
        """The upper ends (d,)."""
        return self.learned_model_.high

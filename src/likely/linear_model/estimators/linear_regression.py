"""Least squares regression with basis functions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from likely.core.arrays import Array, Mask
from likely.core.errors import DomainError, sentence
from likely.core.value import fill_cache
from likely.core.warnings import Note, warn
from likely.linear_model.design_statistics import Table, refined
from likely.linear_model.estimators.regression_summary import (
    COUNTED,
    FILLED,
    FILLED_FACTS,
    bare_rows,
    least_squares_facts,
    t_rows,
)
from likely.linear_model.estimators.regressor import LinearRegressor
from likely.linear_model.least_squares import GramStats, inverse_gram
from likely.linear_model.priors import MatrixNormalInverseWishart

ESTIMABLE = 1e-6  # difference from the dependence in training up to which it is rounding, in units of the function


class LinearRegression(LinearRegressor):
    """Least squares: y = W φ(x) + Gaussian noise, with coefficients of maximum likelihood (Bishop 3.1, Herbst 3.1).

    `coefficients_` has one entry per basis function; `coef_` and `intercept_` are the same apart. Statistics are a Gram
    matrix in double-double for n·M² < 10⁸ or condition numbers above 10⁵, else R factors (`method_`), and one more
    pass over the rows refines the coefficients. The predictive density is the t distribution of prediction intervals.
    Basis functions that depend on others give a warning that names them, and the coefficients of minimum norm;
    predictions have a density where they do not depend on the choice among coefficients. Missing entries of X, with
    basis=None, are integrated out under a joint Gaussian, which a warning says; then standard errors are withheld.
    With several targets each has the t distribution with n − M degrees of freedom that it has alone.

    Attributes
    ----------
    dependent_ : ndarray of bool (M,)
        Basis functions that depend on those before them.
    residual_scatter_ : ndarray (m, m)
        Sums of squares and products of the residuals.

    Examples
    --------
    >>> m = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.5])
    >>> m.coefficients_.round(3), m.predict([[4.0]]).round(3)
    (array([0.9 , 2.15]), array([9.5]))
    """

    saved_attributes = (*LinearRegressor.saved_attributes, "dependent_", "residual_scatter_")
    _error_word = "standard error"

    def __init__(self, basis: Any = None) -> None:
        self.basis = basis

    def _estimate(self, table: Table | None) -> None:
        found = self.stats_.solve()
        W, self.dependent_, self.residual_scatter_ = found.coefficients, found.dependent, found.residual_scatter
        if self.dependent_.any():
            names = tuple(repr(self.function_names_[j]) for j in np.flatnonzero(self.dependent_))
            text = "a combination of basis functions before: coefficients of minimum norm were taken"
            warn(Note("LinearRegression", f"{{columns}} {text}", columns=names))
        elif table is not None and not isinstance(self.stats_.sums, GramStats) and self.stats_.complete:
            W = refined(table, self.stats_, W)
        self.coefficients_ = W

    dependent_: Mask  # (M,): basis functions that depend on those before them
    residual_scatter_: Array  # (m, m)

    @property
    def covariance_(self) -> Array:
        """Covariance s²(ΦᵀΦ)⁻¹ of the coefficients of the (first) target, s² the residual sum of squares over n − M."""
        return self._covariance_of(0)

    def _covariance_of(self, j: int) -> Array:
        self._refuse_filled("a standard error")
        return inverse_gram(self.stats_) * float(self.residual_scatter_[j, j]) / self._free

    @property
    def _free(self) -> float:
        """Residual degrees of freedom."""
        return float(self.stats_.rows) - int((~self.dependent_).sum())

    @property
    def standard_errors_(self) -> Array:
        """Standard errors of the coefficients, in their shape."""
        self._refuse_filled("a standard error")
        unit, variance = np.diagonal(inverse_gram(self.stats_)), np.diagonal(self.residual_scatter_) / self._free
        each = np.sqrt(np.multiply.outer(variance, unit))
        return each[0] if self.one_target_ else each

    @cached_property
    def posterior_(self) -> MatrixNormalInverseWishart:
        """Distribution of coefficients and noise under the improper prior |Σ|^−m: that of the t intervals.

        Under it the predictive of each target alone has n − M degrees of freedom, as least squares of that target has;
        under |Σ|^(−(m + 1)/2) it would have m − 1 fewer. A function that depends on others has the coefficient 0.
        """
        W = np.atleast_2d(self.coefficients_)
        m, M = W.shape
        if not self._free > 0:
            expected = "a predictive density needs more rows than independent basis functions"
            got, remedy = f"{M} functions, {float(self.stats_.rows):g} rows", "use Ridge or BayesianLinearRegression"
            raise DomainError(sentence("LinearRegression", expected, got, remedy))
        R = self.stats_.root[:M, :M]
        if self.dependent_.any():
            W, R = self._without_dependent(R)
        root = np.ascontiguousarray((R * np.sign(np.diagonal(R))[:, None]).T)
        floor = np.diagonal(self.model_.covariance) * float(self.stats_.rows)
        scale = self.residual_scatter_.copy()
        scale[np.diag_indices(m)] = np.maximum(
            np.diagonal(scale), np.minimum(floor, 1e-10 * floor + np.diagonal(scale))
        )
        found = MatrixNormalInverseWishart.trusted(
            mean=W, precision=root @ root.T, scale=scale, dof=np.asarray(self._free + m - 1), basis=self.basis_,
            tied=False,
        )  # fmt: skip
        return fill_cache(found, _root=root)

    def _without_dependent(self, R: Array) -> tuple[Array, Array]:
        """Coefficients (m, M) and R (M, M) in which dependent functions have the coefficient 0, known exactly."""
        free, out = np.flatnonzero(~self.dependent_), np.flatnonzero(self.dependent_)
        size = np.sqrt((R**2).sum(axis=0))
        Q, inner = np.linalg.qr(R[:, free])
        upper, W = np.zeros_like(R), np.zeros((self.stats_.targets, R.shape[1]))
        upper[np.ix_(free, free)] = inner
        upper[out, out] = 1e10 * np.where(size[out] > 0, size[out], 1.0)
        W[:, free] = np.linalg.solve(inner, Q.T @ self.stats_.root[: len(R), len(R) :]).T
        return W, upper

    def _estimable_design(self, X: Any) -> Array:
        """Basis functions of rows whose dependent functions are the combination that they were in training."""
        phi, M = self._design(X), len(self.dependent_)
        if not self.dependent_.any() or not self._posteriors():
            return phi
        R, free, out = self.stats_.root[:M, :M], np.flatnonzero(~self.dependent_), np.flatnonzero(self.dependent_)
        unit = np.sqrt((R**2).sum(axis=0))
        unit = np.where(unit > 0, unit, 1.0)
        phi_out, phi_free = phi[:, out] / unit[out], phi[:, free] / unit[free]
        inner = np.linalg.qr(R[:, free] / unit[free])
        by = np.linalg.solve(inner.R, inner.Q.T @ (R[:, out] / unit[out]))  # φ_out = φ_free · by, in training
        away = np.abs(phi_out - phi_free @ by)
        size = np.abs(phi_out) + np.abs(phi_free) @ np.abs(by)
        bad = np.argwhere(away > ESTIMABLE * np.maximum(size, 1 / np.sqrt(max(float(self.stats_.rows), 1.0))))
        if len(bad):
            i, k = bad[0].tolist()
            name = self.function_names_[out[k]]
            expected = f"{name!r} must be the combination of other functions that it was in training"
            got, remedy = f"another value at row {i}", "its prediction is not determined: use Ridge"
            raise DomainError(sentence("LinearRegression", expected, got, remedy))
        return phi

    def _sound_state(self, m: int, M: int) -> bool:
        shapes = np.shape(self.dependent_) == (M,) and np.shape(self.residual_scatter_) == (m, m)
        return shapes and np.asarray(self.dependent_).dtype == bool and bool(np.isfinite(self.residual_scatter_).all())

    def _own_facts(self) -> dict[str, Any]:
        return {}

    def _target_facts(self, j: int) -> tuple[dict[str, Any], list[str]]:
        if self.stats_.filled:
            return least_squares_facts(self, j, FILLED_FACTS), [FILLED]
        return least_squares_facts(self, j), [COUNTED]

    def _coefficient_rows(self, j: int, level: float) -> list[tuple[Any, ...]]:
        w = np.atleast_2d(self.coefficients_)[j]
        if self.stats_.filled or not self._free > 0:
            return bare_rows(self.function_names_, w)
        return t_rows(self.function_names_, w, np.atleast_2d(self.standard_errors_)[j], self._free, level)

"""Base of the regressors with a predictive density: validated tables, intervals, decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.basis.polynomials import Identity
from likely.core.arrays import Array, numbers, refuse_infinite
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.warnings import Note, warnings_once
from likely.decision.point_estimates import point_estimate
from likely.distributions.gaussian.missing_values_em import any_missing
from likely.estimation.base_estimator import BaseEstimator, RegressorMixin
from likely.estimation.input_validation import numeric_rows
from likely.estimation.scikit_learn import validate_data
from likely.linear_model.gaussian_regression import refuse_missing_values


class PredictiveRegressor(RegressorMixin, BaseEstimator):
    """Base of regressors on basis functions that have a predictive density of the targets.

    A subclass defines `predictive(X)`, a stack of densities, one per row, and `_n_targets`, and sets `basis_`.
    """

    basis: Any
    basis_: Any
    one_target_: bool

    def predictive(self, X: Any) -> Any:
        """Predictive densities of the targets at rows X, one per row."""
        raise NotImplementedError

    @property
    def _n_targets(self) -> int:
        raise NotImplementedError

    # ---------------------------------------------------------------- tables

    def _checked_rows(self, X: Any, reset: bool) -> Any:
        plain = self.basis is None or isinstance(self.basis, Identity)
        if not plain and (hasattr(X, "columns") or _has_categories(X)):  # a basis may take categories
            X = X if hasattr(X, "columns") else np.asarray(X, dtype=object)
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        remedy = "drop the column, or use a basis that takes categories, such as lk.basis.OneHot"
        return numeric_rows(self, X, reset, remedy)

    def _checked_targets(self, y: Any, n: int, reset: bool) -> Array:
        whose = type(self).__name__
        if y is None:
            raise DataError(f"{whose} requires y to be passed, but the target y is None")
        y = numbers(y.to_numpy() if hasattr(y, "to_numpy") else y, whose)
        if y.ndim not in (1, 2) or len(y) != n:
            expected = f"y must have one entry, or one row of targets, per row of X ({n})"
            raise ShapeError(sentence(whose, expected, y.shape))
        refuse_infinite(y if y.ndim == 2 else y[:, None], f"{whose}: Input y contains infinity")
        if reset:
            self.one_target_ = y.ndim == 1
        elif self.one_target_ != (y.ndim == 1) or (y.ndim == 2 and y.shape[1] != self._n_targets):
            expected = f"y must have {self._n_targets} targets, as before"
            raise ShapeError(sentence(whose, expected, y.shape))
        return y if y.ndim == 2 else y[:, None]

    def _refuse_missing(self, X: Any, expected: str = "rows of X must be complete") -> None:
        """Raise an error that names the first missing entry; a data frame is the matter of its basis."""
        if any_missing_entries(X):
            i, j = np.argwhere(np.isnan(np.asarray(X, dtype=np.float64)))[0]
            got, remedy = f"NaN at row {i}, column {self.column_names()[j]}", "fill it in (lk.impute)"
            raise DataError(sentence(type(self).__name__, expected, got, remedy))

    def _named(self) -> Any:
        """Context manager: warnings speak of this estimator and of the names of its basis functions."""
        me = type(self).__name__

        def named(note: Note) -> Note:
            names = (
                self.basis_.names(self.column_names()) if note.whose == "GaussianRegression" else self.column_names()
            )
            return note.with_columns(names).called(me, "GaussianRegression", "Gaussian", "regression")

        return warnings_once(named)

    # ---------------------------------------------------------------- answers

    @property
    def function_names_(self) -> list[str]:
        """Names of the basis functions."""
        return list(self.basis_.names(self.column_names()))

    def interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper ends of central predictive intervals, in the shape of the predictions."""
        if not 0 < level < 1:
            raise DomainError(sentence(type(self).__name__, "level must lie between 0 and 1", level))
        each = [one.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level]) for one in self._marginals(X)]
        low, high = (np.stack([e[i] for e in each], axis=1) for i in (0, 1))
        return (low[:, 0], high[:, 0]) if self.one_target_ else (low, high)

    def decide(
        self, X: Any, loss: str | Callable[[Array, Array], Array] = "squared", *, over: float | None = None,
        under: float | None = None,
    ) -> Array:  # fmt: skip
        """Estimates of least expected loss under the predictive density (`lk.decision.point_estimate`).

        "squared" gives the mean, "absolute" the median, "asymmetric" with costs `over` and `under` per unit a quantile,
        any function loss(estimate, truth) its numerical minimizer.

        Parameters
        ----------
        loss : {"squared", "absolute", "asymmetric"} or callable
            The loss of an estimate.
        over : float, optional
            Cost per unit of an estimate that is too large, of "asymmetric".
        under : float, optional
            Cost per unit of an estimate that is too small, of "asymmetric".

        Returns
        -------
        ndarray (n,) or (n, m)
            Estimates, one row per row of X.
        """
        each = [point_estimate(one, loss, over=over, under=under) for one in self._marginals(X)]
        return each[0] if self.one_target_ else np.stack(each, axis=1)

    def _design(self, X: Any) -> Array:
        with np.errstate(all="ignore"):
            phi = np.asarray(self.basis_.design(X), dtype=np.float64)
            if not np.isfinite(phi.sum()):
                refuse_missing_values(X, phi)
        return phi

    def _marginals(self, X: Any) -> list[Any]:
        found = self.predictive(X)
        return [found] if found.dim == 1 else [found.marginal([j]) for j in range(found.dim)]

    def save(self, path: Any) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)


def any_missing_entries(X: Any) -> bool:
    """True if a table of numbers has a missing entry; a data frame is the matter of its basis."""
    return isinstance(X, np.ndarray) and X.dtype.kind == "f" and any_missing(X)


def _has_categories(X: Any) -> bool:
    """Whether rows hold texts."""
    table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object) if isinstance(X, list | tuple) else None
    if table is None or table.ndim != 2 or table.dtype.kind not in "OUS":
        return False
    return table.dtype.kind in "US" or any(isinstance(cell, str) for cell in table.ravel()[: 64 * table.shape[1]])

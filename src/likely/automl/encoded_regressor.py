"""EncodedRegressor: a regressor of typed columns, numbers standardized and levels as indicators."""

from __future__ import annotations

import copy
import json
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.basis.localized_functions import GaussianBasis
from likely.basis.per_column import PerColumn
from likely.basis.polynomials import Identity, Polynomial
from likely.basis.splines import BSpline
from likely.core.arrays import Array, Index, Rows, Targets
from likely.core.description import Description
from likely.core.errors import DataError, DomainError, enumerated, sentence
from likely.core.warnings import warn, warnings_discarded, warnings_once
from likely.estimation.base_estimator import (
    BaseEstimator,
    RegressorMixin,
    check_is_fitted,
    whole_or_nothing,
    whole_state,
)
from likely.estimation.foreign_tables import equal_rows
from likely.estimation.input_validation import row_weights
from likely.estimation.parameter_constraints import HasMethods, StrOptions
from likely.estimation.scikit_learn import clone, get_tags

BASES = ("constant", "columns", "splines", "quadratic", "radial")
ADDITIVE = ("columns", "splines")  # bases whose functions are of single columns
KNOTS, FEWEST = 8, 6  # knots of a spline; distinct values from which a column gets one
CENTERS = 600  # radial functions, at most
WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # of radial functions, in units of √d standard deviations
TRIED, FEW_CENTERS = 1000, 200  # rows and radial functions with which the evidence chooses the width
JOINT = 100  # columns up to which missing values are integrated out under a joint Gaussian


class EncodedRegressor(RegressorMixin, BaseEstimator):
    """A regressor of the columns of a data frame: numbers are standardized, each level of a category is an indicator.

    A column that is constant in training is left out. An unknown level counts as missing. Missing values are integrated
    out under a joint Gaussian (`basis="columns"`, up to 100 columns), handled by the regressor itself (nearest
    neighbors), or else replaced by the mean of their column; a warning says which.

    Parameters
    ----------
    regressor : estimator
        `LinearRegression`, `Ridge`, `BayesianLinearRegression` or `KNeighborsRegressor`.
    basis : {"columns", "constant", "splines", "quadratic", "radial"}
        Basis functions of a linear regressor: the columns; none but the constant; cubic B-splines of each number;
        squares and products of all pairs; Gaussians about training rows (with the columns), whose width is chosen by
        the evidence.

    Attributes
    ----------
    regressor_ : estimator
        The regressor, fitted to the encoded columns.
    center_ : ndarray (d,)
        What is subtracted from each encoded column.
    scale_ : ndarray (d,)
        What each encoded column is divided by.

    See Also
    --------
    TableRegressor : A regressor of any table, with types of columns and calibrated intervals.

    Examples
    --------
    >>> import likely as lk, polars as pl
    >>> X = pl.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "color": ["red", "blue", "red", "blue"]})
    >>> m = EncodedRegressor(lk.LinearRegression()).fit(X, [7.0, 4.0, 11.0, 8.0])
    >>> m.predict(pl.DataFrame({"size": [5.0], "color": ["red"]})).round(2)
    array([15.])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "regressor": [HasMethods(["fit", "predict"])], "basis": [StrOptions(set(BASES))],
    }  # fmt: skip
    saved_attributes: tuple[str, ...] = (
        "regressor_", "columns_", "center_", "scale_", "kept_", "fills_", "rotation_",
    )  # fmt: skip
    rotation_: Array | None = None  # (d, r) of a table with more columns than rows

    def __init__(self, regressor: Any, basis: str = "columns") -> None:
        self.regressor = regressor
        self.basis = basis

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a Polars frame of numbers and strings, and targets y (n,)."""
        self._validate_params()
        y = np.asarray(y, dtype=np.float64)
        with whole_or_nothing(self):
            w = np.ones(len(y)) if sample_weight is None else row_weights(sample_weight, np.empty((len(y), 0)))
            self.columns_ = json.dumps(_columns_of(X))
            raw = self._raw(X)
            self._standardize(raw, w)
            gaps = bool(np.isnan(raw[:, self.kept_]).any()) and self.basis != "constant"
            self.fills_ = bool(gaps and not self._takes_gaps(int(self.kept_.sum())))
            if gaps:
                self._tell_of_gaps(raw)
            used = None if sample_weight is None else w
            if not self.kept_.any() and self.basis != "constant":
                raise DataError(sentence("EncodedRegressor", "some column must vary", "none"))
            with warnings_once(lambda note: None if gaps and "entries are missing" in str(note) else note):
                self._learn(self._scaled(raw), y, used)
        return self

    def _standardize(self, raw: Array, w: Array) -> None:
        numbers = np.array([level is None for _, level in self._encoded()], dtype=bool)
        there = ~np.isnan(raw) & (w > 0)[:, None]
        total = np.maximum((w[:, None] * there).sum(axis=0), np.finfo(float).tiny)
        first = raw[np.argmax(there, axis=0), np.arange(raw.shape[1])]
        about = np.where(there, raw - np.where(there.any(axis=0), first, 0.0), 0.0)  # a large offset loses no digits
        shift = (w[:, None] * about).sum(axis=0) / total
        variance = (w[:, None] * np.where(there, about - shift, 0.0) ** 2).sum(axis=0) / total
        least = (1e-13 * np.abs(first)) ** 2
        self.kept_ = there.any(axis=0) & (variance > np.nan_to_num(least))
        self.center_ = np.where(self.kept_, np.nan_to_num(first) + shift, 0.0)
        self.scale_ = np.where(self.kept_ & numbers, np.sqrt(np.where(self.kept_, variance, 1.0)), 1.0)

    def _takes_gaps(self, d: int) -> bool:
        if not hasattr(self.regressor, "basis"):
            return bool(get_tags(self.regressor).input_tags.allow_nan)
        return self.basis == "columns" and d <= JOINT and bool(get_tags(self.regressor).input_tags.allow_nan)

    def _tell_of_gaps(self, raw: Array) -> None:
        gaps = np.isnan(raw) & self.kept_
        found = dict.fromkeys(name for (name, _), gap in zip(self._encoded(), gaps.any(axis=0), strict=True) if gap)
        named = enumerated("column", [f'"{name}"' for name in list(found)[:8]])
        more = f" and {len(found) - 8} more" if len(found) > 8 else ""
        how = "compared over the columns that both rows have"
        if hasattr(self.regressor, "basis"):
            how = "integrated out under a joint Gaussian of all columns"
        how = "replaced by the mean of the column" if self.fills_ else how
        warn(f"{type(self.regressor).__name__}: missing values of {named}{more} are {how}")

    def _learn(self, Z: Array, y: Array, w: Array | None) -> None:
        self.rotation_ = None
        if self.basis == "radial":
            self.regressor_ = _of_largest_evidence(self.regressor, Z, y, w)
            return
        inner = clone(self.regressor)
        if self.basis == "constant":
            Z = np.zeros((len(Z), 1))
            self.kept_, self.fills_ = np.arange(len(self.kept_)) == 0, True
        if self.basis != "columns":
            made = {"constant": lambda: Polynomial(0), "quadratic": lambda: Polynomial(2)}
            inner.set_params(basis=splines(Z) if self.basis == "splines" else made[self.basis]())
        if type(inner).__name__ == "LinearRegression":
            with warnings_discarded():
                dependent = np.asarray(inner.fit(Z, y, w).dependent_)
            if self.basis == "columns" and dependent[1:].any():  # the other columns span the same
                self.kept_ = self.kept_.copy()
                self.kept_[np.flatnonzero(self.kept_)[dependent[1:]]] = False
                Z = Z[:, ~dependent[1:]]
        if self.basis == "columns" and Z.shape[1] > len(Z) and _is_isotropic(inner):
            self.rotation_ = principal_axes(np.nan_to_num(Z))
            Z, self.fills_ = self._rotated(np.nan_to_num(Z)), True
            Z[:, -1] = 0.0  # but for rounding
        self.regressor_ = inner.fit(Z, y, w)

    # ----------------------------------------------------------------- encoding

    def _encoded(self) -> list[tuple[str, str | None]]:
        """Column and level of each encoded column; no level of a number."""
        return [
            (name, level)
            for name, levels in json.loads(self.columns_)
            for level in ([None] if levels is None else levels)
        ]

    def _raw(self, X: Any) -> Array:
        """Numbers and indicators (n, d), NaN where missing."""
        parts = []
        for name, levels in json.loads(self.columns_):
            if levels is None:
                parts.append(X[name].cast(float).to_numpy().astype(np.float64)[:, None])
                continue
            place = {level: j for j, level in enumerate(levels)}
            at = np.array([place.get(cell, -1) for cell in X[name].to_list()], dtype=np.intp)
            table = (at[:, None] == np.arange(len(levels))).astype(np.float64)
            table[at < 0] = np.nan
            parts.append(table)
        return np.hstack(parts) if parts else np.empty((X.height, 0))

    def _scaled(self, raw: Array) -> Array:
        z = ((raw - self.center_) / self.scale_)[:, self.kept_]
        return np.nan_to_num(z) if self.fills_ else z

    def _table(self, X: Any) -> Array:
        check_is_fitted(self, "regressor_")
        z = self._scaled(self._raw(X))
        if np.isnan(z).any() and not self._takes_gaps(z.shape[1]):  # none in training, some now
            z = np.nan_to_num(z)
        return z

    @property
    def encoded_names_(self) -> list[str]:
        """Names of the encoded columns in use."""
        each = zip(self._encoded(), self.kept_.tolist(), strict=True)
        return [name if level is None else f"{name}={level}" for (name, level), kept in each if kept]

    # --------------------------------------------------------------- prediction

    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Expected targets; with `return_std` also the standard deviations of the predictive density.

        Of least squares with too few rows for a predictive density, the deviation is that of the noise alone.

        Returns
        -------
        mean : ndarray (n,)
            Expected targets.
        std : ndarray (n,)
            Standard deviations, with `return_std`.
        """
        Z = self._table(X)
        if not return_std:
            return self._mean(Z)
        try:
            return self.regressor_.predict(self._rotated(Z), return_std=True)
        except DomainError:
            noise = float(np.sqrt(self.regressor_.model_.covariance[0, 0]))
            return self._mean(Z), np.full(len(Z), noise)

    def _mean(self, Z: Array) -> Array:
        return np.asarray(self.regressor_.predict(self._rotated(Z)), dtype=np.float64)

    def _rotated(self, Z: Array) -> Array:
        """Coordinates along the axes, and the distance from their span, whose coefficient only the prior knows."""
        if self.rotation_ is None:
            return Z
        inside = Z @ self.rotation_
        away = np.sqrt(np.maximum((Z**2).sum(axis=1) - (inside**2).sum(axis=1), 0.0))
        return np.column_stack([inside, away])

    def predictive(self, X: Rows) -> Any:
        """Predictive densities of the targets, one per row."""
        return self.regressor_.predictive(self._rotated(self._table(X)))

    # -------------------------------------------------------------- explanation

    @property
    def additive(self) -> bool:
        """Whether the prediction is a sum of functions of single columns."""
        return hasattr(self.regressor, "basis") and self.basis in ADDITIVE

    def contributions(self, X: Rows) -> tuple[float, list[str], Array]:
        """Prediction at the mean row, names of columns, and what each column adds to it.

        Of a linear model that is coefficient × (value − mean); of splines f(value) − f(mean). They add up to the
        prediction.

        Returns
        -------
        base : float
            Prediction at the mean row.
        columns : list of str
            Names of the columns.
        contributions : ndarray (n, columns)
            What each column adds.
        """
        check_is_fitted(self, "regressor_")
        if not self.additive:
            expected = "contributions of columns need a model that adds functions of single columns"
            got = f'{type(self.regressor).__name__}, basis "{self.basis}"' if hasattr(self.regressor, "basis") else ""
            got = got or type(self.regressor).__name__
            raise DomainError(sentence("explain", expected, got, "partial effects are in the report"))
        Z = self._table(X)
        if np.isnan(Z).any():
            Z = self.regressor_.expected_inputs(Z)
        names = [name for (name, _), kept in zip(self._encoded(), self.kept_.tolist(), strict=True) if kept]
        base = float(self._mean(np.zeros((1, Z.shape[1])))[0])
        shown, parts = list(dict.fromkeys(names)), []
        for name in shown:
            own = np.where([one == name for one in names], Z, 0.0)
            parts.append(self._mean(own) - base)
        return base, shown, np.column_stack(parts)

    def describe(self) -> Description:
        """The regressor with the names of the encoded columns; of an unfitted one, its settings."""
        if "regressor_" not in vars(self):
            return super().describe()
        inner = copy.copy(self.regressor_)
        axes = 0 if self.rotation_ is None else self.rotation_.shape[1]
        named = [*(f"axis {j + 1}" for j in range(axes)), "beyond the axes"] if axes else self.encoded_names_
        inner.feature_names_in_ = np.array(named, dtype=object)
        note = "columns of numbers are standardized, indicators of levels centered"
        note += f"; functions are the {axes} principal axes of {int(self.kept_.sum()):,} columns" if axes else ""
        found = inner.describe()
        return found.plus(title=f"EncodedRegressor: {found.title}", notes=[note])

    # -------------------------------------------------------------------- files

    def check_state(self) -> None:
        """After reading a file: columns, scales and regressor belong together."""
        if not whole_state(self, "rotation_"):
            return
        try:
            d = len(self._encoded())
            sound = all(np.shape(part) == (d,) for part in (self.center_, self.scale_, self.kept_))
            sound = sound and np.asarray(self.kept_).dtype == bool and bool((self.scale_ > 0).all())
            sound = sound and type(self.fills_) is bool and self.basis in BASES
            width, rotation = int(self.kept_.sum()), self.rotation_
            if rotation is not None:
                sound = sound and rotation.shape[0] == width and bool(np.isfinite(rotation).all())
                width = rotation.shape[1] + 1
            sound = sound and self.regressor_.n_features_in_ == width
        except (AttributeError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence("EncodedRegressor", "columns, scales and regressor must be consistent"))


def _columns_of(X: Any) -> list[tuple[str, list[str] | None]]:
    """Name and levels of each column, none of numbers."""
    return [
        (column.name, None if column.dtype.is_numeric() else sorted(column.drop_nulls().unique().to_list()))
        for column in X
    ]


# ----------------------------------------------------------------------------- bases


def splines(Z: Array) -> Any:
    """Cubic B-splines of columns with many values, the other columns as they are.

    >>> splines(np.column_stack([np.linspace(0, 1, 50), np.arange(50) % 2])).parts[0][0]
    0
    """
    many = [j for j, column in enumerate(Z.T) if len(np.unique(column)) >= FEWEST]
    rest = tuple(j for j in range(Z.shape[1]) if j not in set(many))
    if not many:
        return Identity()
    knots = int(np.clip(len(Z) // 10, 3, KNOTS))
    return PerColumn((*((j, BSpline(knots)) for j in many), *([(rest, Identity())] if rest else [])))


def _is_isotropic(regressor: Any) -> bool:
    """Whether all coefficients are penalized alike, so that a rotation of the columns changes no prediction."""
    return type(regressor).__name__ == "Ridge" or getattr(regressor, "prior", None) == "evidence"


def principal_axes(Z: Array) -> Array:
    """Orthonormal axes (d, r) that hold all rows, r at most their number.

    >>> principal_axes(np.array([[3.0, 4.0, 0.0], [6.0, 8.0, 0.0]])).round(1).T
    array([[0.6, 0.8, 0. ]])
    """
    values, vectors = np.linalg.eigh(Z @ Z.T)
    seen = values > 1e-10 * values[-1]
    axes = Z.T @ (vectors[:, seen] / np.sqrt(values[seen]))
    axes = np.linalg.qr(axes)[0]  # orthonormal to the last digits
    return axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)


def _of_largest_evidence(regressor: Any, Z: Array, y: Array, w: Array | None) -> Any:
    """Radial functions about some rows, with the width of largest evidence on part of the rows."""
    some = _some_rows(Z, TRIED)
    part = None if w is None else w[some]
    tried = [(_radial(regressor, Z[some], width, FEW_CENTERS).fit(Z[some], y[some], part), width) for width in WIDTHS]
    width = max(tried, key=lambda pair: pair[0].log_evidence_)[1]
    return _radial(regressor, Z, width, CENTERS).fit(Z, y, w)


def _radial(regressor: Any, Z: Array, width: float, most: int) -> Any:
    """The regressor with the columns, and Gaussians about at most so many of the rows, or a third of them."""
    d = Z.shape[1]
    every = tuple(range(d))
    centers = Z[_some_rows(Z, max(1, min(most, len(Z) // 3)))]
    functions = GaussianBasis(centers, np.full(d, width * np.sqrt(d)), joint=True)
    return clone(regressor).set_params(basis=PerColumn(((every, Identity()), (every, functions))))


def _some_rows(Z: Array, most: int) -> Index:
    """At most so many distinct rows, whatever their order."""
    _, first = np.unique(equal_rows(Z), return_index=True)
    return first[np.sort(np.random.default_rng(0).permutation(len(first))[:most])]

"""TableRegressor: a regressor with named, typed columns, calibrated predictive densities and a model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.automl.table_classifier import (
    Schema,
    TableModel,
    Typed,
    arranged_schema,
    column_table,
    laid_out,
    with_names,
)
from likely.core.arrays import Array, Mask, Rows, Targets
from likely.core.description import Description, DescriptionTable, plain
from likely.core.errors import DomainError, sentence
from likely.decision.point_estimates import LOSSES, point_estimate
from likely.estimation.base_estimator import RegressorMixin, check_is_fitted
from likely.estimation.parameter_constraints import HasMethods, StrOptions
from likely.estimation.scikit_learn import clone
from likely.metrics.regression_evaluation import check_loss, loss_words
from likely.model_selection.residual_distribution import ResidualDistribution, ResidualPredictive, center_and_scale


class TableRegressor(RegressorMixin, TableModel):
    """Regressor of table rows with named columns: a data frame, a dict of columns, a file.

    Columns may come in any order, others are ignored, cells may be missing; an unknown level counts as missing (see
    `unseen`). Predictive densities are those of held-out residuals about the prediction (`calibrate`), so that
    intervals have their stated coverage. `likely fit` writes this model where the target is a number.

    Parameters
    ----------
    regressor : estimator, optional
        A regressor of typed columns, such as `EncodedRegressor`; None: Bayesian linear regression by evidence.
    kinds : dict, optional
        Types given by the user, {name: "real", "count", "binary", "category" or "ignore"}.
    calibrate : bool
        Whether `fit` takes the predictive density from residuals of five-fold cross-validation; else it is that of
        the regressor itself.
    loss : {"squared", "absolute", "asymmetric"}
        What `decide` minimizes by default.
    over : float, optional
        Cost per unit of an estimate that is too large, of "asymmetric".
    under : float, optional
        Cost per unit of an estimate that is too small, of "asymmetric".

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    calibration_ : ResidualDistribution or None
        The distribution of (y − prediction) / standard deviation of held-out rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = {"size": rng.uniform(0, 10, 200), "color": rng.choice(["red", "blue"], 200)}
    >>> y = 3 * X["size"] + 5 * (X["color"] == "red") + rng.normal(size=200)
    >>> m = TableRegressor().fit(X, y)
    >>> m.predict({"color": ["red", "green"], "size": [2.0, 2.0]}).round(0)
    array([11.,  9.])
    >>> [round(float(end[0])) for end in m.interval({"color": ["red"], "size": [2.0]}, 0.9)]
    [10, 13]
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "regressor": [HasMethods(["fit", "predict"]), None], "kinds": [dict, None], "calibrate": ["boolean"],
        "loss": [StrOptions(set(LOSSES))], "over": "no_validation", "under": "no_validation",
    }  # fmt: skip
    saved_attributes: tuple[str, ...] = ("regressor_", "schema_", "columns_", "card_", "calibration_")
    _inner_name = "regressor_"
    calibration_: ResidualDistribution | None = None
    regressor_: Any

    def __init__(
        self, regressor: Any = None, kinds: Any = None, calibrate: bool = True, *, loss: str = "squared",
        over: float | None = None, under: float | None = None,
    ) -> None:  # fmt: skip
        self.regressor = regressor
        self.kinds = kinds
        self.calibrate = calibrate
        self.loss = loss
        self.over = over
        self.under = under

    def fit(self, X: Rows, y: Targets, sample_weight: Any = None) -> Self:
        """Infer the column types of X, and fit to targets y (n,)."""
        from likely.automl.regression_task import residuals_of
        from likely.data.table import Table
        from likely.estimation.foreign_classifiers import fitted
        from likely.model_selection.cross_validation import checked_numbers

        self._validate_params()
        check_loss(self.loss, self.over, self.under)
        with self._whole_or_nothing():
            table = Table.of(with_names(X, None, "TableRegressor"), kinds=self.kinds, whose="TableRegressor")
            t = checked_numbers(y, len(table), "TableRegressor")
            schema = arranged_schema(table.schema())
            self._know(schema, table.names)
            rows = laid_out(table.frame, list(schema))
            model = usual_regressor() if self.regressor is None else self.regressor
            with self._spoken(model):
                self.regressor_ = fitted(model, rows, t, sample_weight)
                self.calibration_ = residuals_of(model, rows, t, sample_weight) if self.calibrate else None
        return self

    @classmethod
    def from_fitted(
        cls, regressor: Any, schema: Schema, calibration: ResidualDistribution | None = None,
        columns: Sequence[str] | None = None, **loss: Any,
    ) -> Self:  # fmt: skip
        """A fitted regressor combined with the columns that it was fitted to, in that order.

        Parameters
        ----------
        regressor : estimator
            The fitted regressor.
        schema : dict
            Type and levels of each column, {name: {"kind": …, "levels": […]}}.
        calibration : ResidualDistribution, optional
            The distribution of held-out residuals; None: predictive densities are those of the regressor itself.
        columns : sequence of str, optional
            All columns of the training table in its order, if there were others or another order.
        **loss : settings
            The parameters `loss`, `over` and `under`.
        """
        made = cls(clone(regressor), calibrate=calibration is not None, **loss)
        made.regressor_, made.calibration_ = regressor, calibration
        made._know(schema, columns)
        return made

    # --------------------------------------------------------------- prediction

    def predictive(self, X: Rows) -> Any:
        """Predictive densities of the targets: a stack of univariate densities, one per row."""
        check_is_fitted(self, "regressor_")
        rows = self.frame(X)
        with self._spoken(self.regressor_):
            if self.calibration_ is None:
                return self.regressor_.predictive(rows)
            center, scale = center_and_scale(self.regressor_, rows)
            return ResidualPredictive(center, scale, self.calibration_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means of the predictive densities; with `return_std` also their standard deviations.

        Returns
        -------
        mean : ndarray (n,)
            Expected targets.
        std : ndarray (n,)
            Standard deviations, with `return_std`.
        """
        found = self.predictive(X)
        mean = np.ravel(found.mean)
        return (mean, np.sqrt(np.ravel(found.variance))) if return_std else mean

    def interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper ends (n,) of central predictive intervals."""
        if not 0 < level < 1:
            raise DomainError(sentence("TableRegressor", "level must lie between 0 and 1", level))
        low, high = self.quantiles(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
        return low, high

    def quantiles(self, X: Rows, p: ArrayLike) -> Array:
        """Quantiles of the predictive densities.

        Returns
        -------
        ndarray (K, n)
            Quantiles, one row per probability.
        """
        each = np.atleast_1d(np.asarray(p, dtype=np.float64))
        if not ((each > 0) & (each < 1)).all():
            raise DomainError(sentence("TableRegressor", "probabilities must lie between 0 and 1", p))
        return np.asarray(self.predictive(X).quantile(each)).reshape(len(each), -1)

    def decide(
        self, X: Rows, loss: Any = None, *, over: float | None = None, under: float | None = None
    ) -> Array:  # fmt: skip
        """Estimates of least expected loss under the predictive densities.

        Parameters
        ----------
        loss : {"squared", "absolute", "asymmetric"} or callable, optional
            The loss of an estimate, also any function of arrays; None: that of the model.
        over : float, optional
            Cost per unit of an estimate that is too large, of "asymmetric".
        under : float, optional
            Cost per unit of an estimate that is too small, of "asymmetric".

        Returns
        -------
        ndarray (n,)
            Estimates, one per row.
        """
        if loss is None and over is None and under is None:
            loss, over, under = self.loss, self.over, self.under
        return point_estimate(self.predictive(X), "squared" if loss is None else loss, over=over, under=under)

    def unseen(self, X: Rows) -> dict[str, Mask]:
        """Rows with unknown levels, by column."""
        return self.unseen_categories(self.frame(X))

    def explain(self, X: Rows) -> RegressionExplanation:
        """Contributions of the columns to each prediction; only of models that add functions of single columns.

        Returns
        -------
        RegressionExplanation
            What each column adds to each prediction.
        """
        check_is_fitted(self, "regressor_")
        rows = self.frame(X)
        if not hasattr(self.regressor_, "contributions"):
            expected, remedy = "there is nothing to explain", "it predicts the mean of all targets and uses no column"
            raise DomainError(sentence("TableRegressor", expected, remedy=remedy))
        with self._spoken(self.regressor_):
            base, names, parts = self.regressor_.contributions(rows)
        values = [[rows[name][i] for name in names] for i in range(rows.height)]
        low, high = self.interval(Typed(rows), 0.9)
        return RegressionExplanation(base, names, parts, values, self.predict(Typed(rows)), low, high)

    def _spoken(self, model: Any) -> Any:
        """Context manager: warnings of the model inside speak of this one."""
        from likely.core.warnings import warnings_renamed

        return warnings_renamed("TableRegressor", type(model).__name__)

    # -------------------------------------------------------------- description

    def describe(self) -> Description:
        """Training data, selection, columns and coefficients; of an unfitted one, its settings."""
        if not hasattr(self, "regressor_"):
            return super().describe()
        found, card = self.regressor_.describe(), self.card
        text = [f"model: {found.title.removeprefix('EncodedRegressor: ')}"]
        if card:
            learned = f"learned from {', '.join(card['source'])}: {card['rows']:,} rows, target {card['target']}"
            text = [learned, card["verdict"], f"{text[0]} ({card['what'].rstrip('.')})"]
        text.append(f"decisions minimize the {loss_words(self.loss, self.over, self.under)}")
        tables, z = [column_table(self.schema)], self.calibration_
        if z is None:
            notes = ["Predictive densities are those of the model itself."]
        else:
            notes = [f"Predictive densities are those of the residuals of {float(z.rows):,.6g} held-out rows."]
            if float(z.rows) < 19:
                notes.append("They are too few for intervals of 90 %: the ends are extrapolated.")
        found = found.plus(title=type(self).__name__, tables=tables, notes=notes)
        return replace(found, text=[*text, *found.text])

    def _sound(self) -> bool:
        sound = self._sound_columns() and hasattr(self.regressor_, "predict")
        check_loss(self.loss, self.over, self.under)
        return sound and isinstance(self.calibration_, ResidualDistribution | None)


@dataclass(frozen=True)
class RegressionExplanation:
    """What each column adds to the prediction of each row, from that of the mean row.

    Parameters
    ----------
    base : float
        Prediction at the mean row.
    columns : list of str
        Names of the columns.
    contributions : array (n, d)
        What each column adds.
    values : list of lists
        Values of the columns of each row; None is missing.
    prediction : array (n,)
        Predictions.
    low : array (n,)
        Lower ends of 90 % intervals.
    high : array (n,)
        Upper ends of 90 % intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = {"size": rng.uniform(0, 10, 200), "color": rng.choice(["red", "blue"], 200)}
    >>> y = 3 * X["size"] + 5 * (X["color"] == "red") + rng.normal(size=200)
    >>> found = TableRegressor().fit(X, y).explain({"color": ["red"], "size": [2.0]})
    >>> found.columns, found.contributions.round(1).tolist()
    (['size', 'color'], [[-10.2, 2.7]])
    """

    base: float
    columns: list[str]
    contributions: Array  # (n, columns)
    values: list[list[Any]]  # (n, columns)
    prediction: Array  # (n,)
    low: Array  # (n,)
    high: Array  # (n,)

    def pages(self, names: Sequence[Any]) -> list[Description]:
        """A page per row, the largest contributions first.

        Parameters
        ----------
        names : sequence
            Names of the rows.

        Returns
        -------
        list of Description
            Pages, which print as text.
        """
        return [self._page(i, name) for i, name in enumerate(names)]

    def _page(self, i: int, name: Any) -> Description:
        order = np.argsort(-np.abs(self.contributions[i]), kind="stable").tolist()
        rows: list[tuple[Any, ...]] = [
            (self.columns[j], "missing" if self.values[i][j] is None else self.values[i][j], self.contributions[i, j])
            for j in order
        ]
        rest = float(self.prediction[i] - self.base - self.contributions[i].sum())
        rows += [("all columns at their mean", None, self.base), ("mean held-out residual", None, rest)]
        facts = {"prediction": float(self.prediction[i]), "90 % interval": f"{self.low[i]:.6g} to {self.high[i]:.6g}"}
        formats = {"adds": "+.5g"}
        table = DescriptionTable("", ("column", "value", "adds"), rows, formats, most=None)
        return Description(f"row {name}", facts=facts, tables=[table])

    @property
    def note(self) -> str:
        """What the numbers are."""
        return "Contributions are against the mean of each column, and add up to the prediction."

    def records(self) -> list[dict[str, Any]]:
        """The explanations as plain data.

        Returns
        -------
        list of dict
            One dict per row.
        """
        return [
            plain({
                "prediction": self.prediction[i], "low": self.low[i], "high": self.high[i], "base": self.base,
                "contributions": dict(zip(self.columns, self.contributions[i].tolist(), strict=True)),
            })
            for i in range(len(self.prediction))
        ]  # fmt: skip


def usual_regressor() -> Any:
    """Bayesian linear regression of the columns, with precisions by evidence."""
    from likely.automl.encoded_regressor import EncodedRegressor
    from likely.linear_model.estimators.bayesian_linear_regression import BayesianLinearRegression

    return EncodedRegressor(BayesianLinearRegression())

"""Estimator of categorical columns with levels of any type."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from likely.core.columns import Columns
from likely.core.errors import DataError, sentence
from likely.core.warnings import tell
from likely.distributions.categorical.categorical import UNKNOWN, Categorical, LevelCounts, found_levels, is_missing
from likely.distributions.product import Product, ProductStats
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.imputed_rows import filled_in
from likely.estimation.input_validation import foreign, refuse_dates


class NotACategory(DataError, TypeError):
    """A cell holds a value that cannot be a category."""


class CategoricalDensity(DensityEstimator):
    """Categorical columns: `model_` is a `Categorical`, or a `Product` of them for several columns.

    Levels are strings, numbers or booleans, found in the data; `partial_fit` may add new ones. None and NaN
    are missing. A level not seen in training has probability 0.

    - **prior**: "weak" (one pseudo-count, spread over the levels), None for maximum likelihood, a number α
      (Dirichlet with α pseudo-counts of each level, so 1 is Laplace smoothing), or a `Prior`.
    - **predictive**: True integrates out the probabilities: the mean of their posterior, not its mode.

    >>> import likely as lk
    >>> d = lk.CategoricalDensity(prior=None).fit([["red"], ["blue"], ["red"], ["red"]])
    >>> d.model_.levels.tolist(), d.model_.probs.tolist()
    (['blue', 'red'], [0.25, 0.75])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: Any = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Categorical, Product)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Categorical | Product:
        if len(X) >= 20 and any(len(np.unique(X[:, j].astype(str))) == len(X) for j in range(X.shape[1])):
            text = "CategoricalDensity: a column has as many levels as rows: is it a number, or an identifier?"
            tell(text)
        columns = [Categorical.over(_levels([X[:, j]]), members) for j in range(X.shape[1])]
        return columns[0] if len(columns) == 1 else Product(tuple(zip(self.column_names(), columns, strict=True)))

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        if isinstance(model, Categorical):
            return _widened(model, stats, X[:, 0])
        grown = [_widened(part, stats[name], X[:, j]) for j, (name, part) in enumerate(model.components)]
        models = tuple((name, m) for name, (m, _) in zip(model.names, grown, strict=True))
        return Product(models), ProductStats(tuple((name, s) for name, (_, s) in zip(model.names, grown, strict=True)))

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        return predictive(model, stats, prior, "CategoricalDensity") if self.predictive else model

    def mask_unknown(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        parts = [model] if isinstance(model, Categorical) else [p for _, p in model.components]
        unseen = {
            name: mask
            for j, (name, part) in enumerate(zip(self.column_names(), parts, strict=True))
            if (mask := part.encode(X[:, j]) == UNKNOWN).any()
        }
        return (self._forgotten(X, unseen) if unseen else X), unseen

    def _forgotten(self, X: Any, unseen: dict[str, Any]) -> Any:
        """A copy of the rows with unseen levels set to missing."""
        out, names = X.astype(object), self.column_names()
        for name, mask in unseen.items():
            out[mask, names.index(name)] = None
        return out

    def prior_rule(self) -> Any:
        if isinstance(self.prior, Real):
            return lambda model, stats: _symmetric(model, float(self.prior))
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = foreign(X)
        refuse_dates(X, "CategoricalDensity")
        X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        for j in range(X.shape[1]) if X.dtype == object else ():
            refuse_objects(X[:, j])
        return X

    traits = Traits(sketchable=False)  # levels must be found in all rows

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        """Rows of the model as a table (n, d) of levels, or in the format of the rows `like`."""
        columns = [rows[name] for name in rows] if isinstance(rows, Columns) else [rows]
        kinds = {column.dtype.kind for column in columns}
        table = np.column_stack(columns if len(kinds) == 1 else [column.astype(object) for column in columns])
        return table if like is None else filled_in(like, table)

    @property
    def levels_(self) -> list[Any]:
        """The levels of each column."""
        parts = [self.model_] if isinstance(self.model_, Categorical) else [p for _, p in self.model_.components]
        return [part.values for part in parts]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def refuse_objects(column: Any) -> None:
    """Cells must be strings, numbers or missing."""
    for i, cell in enumerate(column):
        if not (isinstance(cell, str | Real | np.generic) or is_missing(cell)):
            expected = "a category argument must be a string or a number"
            raise NotACategory(sentence("CategoricalDensity", expected, f"{type(cell).__name__} at row {i}"))


def _levels(columns: list[Any]) -> Any:
    """The observed levels as an array, also of integers, so that none stands for missing."""
    levels = found_levels(columns)
    return levels if isinstance(levels, np.ndarray) else np.unique(np.concatenate([_numbers(c) for c in columns]))


def _numbers(column: Any) -> Any:
    cells = np.array([c for c in np.asarray(column).tolist() if not is_missing(c)])
    return cells


def _widened(model: Categorical, stats: LevelCounts, column: Any) -> tuple[Categorical, LevelCounts]:
    """Statistics and model extended by levels of a later chunk."""
    wide = Categorical.over(_levels([model.values, column]), model.members)
    if wide.values.tolist() == model.values.tolist():
        return model, stats
    counts = np.zeros((*stats.counts.shape[:-1], wide.size))
    counts[..., wide.encode(model.values)] = stats.counts
    return wide, stats.replace(counts=counts)


def _symmetric(model: Any, rows: float) -> Any:
    from likely.distributions.categorical.dirichlet import Dirichlet
    from likely.distributions.priors.product_prior import ProductPrior

    if isinstance(model, Categorical):
        return Dirichlet.symmetric(model.size, 1.0 + rows, levels=model.levels)
    return ProductPrior(tuple((name, _symmetric(part, rows)) for name, part in model.components))

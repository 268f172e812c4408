"""Estimator of products of independent components, each with its own estimator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from likely.core.arrays import Rows, in_memory
from likely.core.blocks import Block
from likely.core.columns import Columns
from likely.core.em_loop import resolve_prior
from likely.core.errors import DataError, DomainError, sentence
from likely.core.protocols import PriorLike
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.priors.product_prior import ProductPrior
from likely.distributions.product import Product, ProductStats, told_of_part
from likely.estimation.array_fast_path import has_known_columns
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, a_density
from likely.estimation.imputed_rows import filled_columns, filled_in
from likely.estimation.input_validation import refuse_dates
from likely.estimation.scikit_learn import clone, get_tags, validate_data


class ProductDensity(DensityEstimator):
    """Product of independent components of different types.

    Parameters
    ----------
    components : list or DensityEstimator
        A list of (name, estimator) or (name, estimator, columns), or one estimator that is used for every column
        separately. Rows are `lk.core.Columns` (or a dict) with the components' names, a data frame with columns of
        these names, or an array with one column per component; `columns` names or numbers others.
    prior : {"weak"}, ProductPrior or None, default "weak"
        What a component's own "weak" means here: "weak", or None for maximum likelihood. A component's own number or
        `Prior` takes precedence. Or a `ProductPrior` for the whole.

    Attributes
    ----------
    model_ : Product
        The fitted density.
    densities_ : list of tuples
        Name, estimator and columns of each component.
    takes_arrays_ : bool
        Whether the rows were an array, split into one column per component.

    See Also
    --------
    Product : The distribution.

    Examples
    --------
    >>> import likely as lk
    >>> rows = lk.core.Columns(size=[[1.0], [2.0], [4.0]], color=["red", "blue", "red"])
    >>> p = lk.ProductDensity([("size", lk.GaussianDensity()), ("color", lk.CategoricalDensity(prior=None))]).fit(rows)
    >>> p.model_["color"].probs.round(3)
    array([0.333, 0.667])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "components": [list, tuple, a_density(), None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, components: Any = None, *, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.components = components
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    # ------------------------------------------------------- nested parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, those of named components as name__parameter."""
        found = super().get_params(deep=deep)
        if deep and _are_named(self.components):
            for name, part, *_ in self.components:
                inner = part.get_params() if hasattr(part, "get_params") else {}
                found |= {name: part, **{f"{name}__{key}": value for key, value in inner.items()}}
        return found

    def set_params(self, **params: Any) -> ProductDensity:
        """Set parameters, also nested ones; a named component as a whole by its name."""
        self.components = params.pop("components", self.components)
        if _are_named(self.components) and any(name in params for name, *_ in self.components):
            self.components = [(name, params.pop(name, part), *own) for name, part, *own in self.components]
        return super().set_params(**params)

    # ------------------------------------------------------------------ layout

    saved_attributes = (*DensityEstimator.saved_attributes, "densities_", "takes_arrays_")

    def validate_rows(self, X: Rows, reset: bool = False) -> Columns:
        X = self._table(X, reset)
        if reset:
            self.densities_ = self._laid_out(X)
            for _, part, _ in self.densities_:
                part._validate_params()
        if hasattr(X, "columns"):
            refuse_dates(X, "ProductDensity", [column for _, _, own in self.densities_ for column in own])
        return Columns({name: self._rows_of(part, at, X, reset) for name, part, at in self.densities_})

    def _rows_of(self, part: Any, own: list[Any], X: Any, reset: bool) -> Any:
        """The columns of one component as it takes them; its messages use the names of this table."""
        cells = _taken(X, own)
        width = 1 if isinstance(cells, Columns) else int(np.shape(cells)[-1])
        part.column_titles = self._called(own) if width == len(own) else None  # a named component may have many columns
        part.strict_support = isinstance(self.components, list | tuple)
        return part.validate_rows(cells, reset)

    def _table(self, X: Any, reset: bool) -> Any:
        """The input with named components or numbered columns; names and width are stored or compared."""
        X = in_memory(X)
        named = isinstance(X, Mapping) and not issparse(X)  # a dictionary of keys is a sparse matrix, and a Mapping
        X = Columns.of(X) if named else X
        if named and reset:
            self.n_features_in_, self.feature_names_in_ = len(X.parts), np.array(list(X), dtype=object)
        frame = hasattr(X, "columns")
        if not named and (reset or not has_known_columns(X, self)):
            checked = validate_data(self, X, reset=reset, skip_check_array=frame, dtype=None, ensure_all_finite=False)
            X = X if frame else checked
        if reset:
            self.takes_arrays_ = not (named or frame)
        return X

    def _laid_out(self, X: Any) -> list[tuple[str, Any, list[Any]]]:
        """Each component with a cloned estimator and its columns."""
        names = list(X) if isinstance(X, Mapping) else list(X.columns) if hasattr(X, "columns") else None
        if isinstance(self.components, list | tuple):
            if not _are_named(self.components):
                expected = "components must be (name, estimator) or (name, estimator, columns), each name once"
                raise DomainError(sentence("ProductDensity", expected, repr(self.components)[:80]))
            width = len(names) if names is not None else X.shape[1]
            return [(str(p[0]), clone(p[1]), self._own(p, i, names, width)) for i, p in enumerate(self.components)]
        one = GaussianDensity("diagonal") if self.components is None else self.components
        keys = names if names is not None else list(range(X.shape[1]))
        return [(title, clone(one), [key]) for title, key in zip(super().column_names(), keys, strict=True)]

    def column_names(self) -> list[str]:
        """The columns in the order of the components, which is that of the validated rows."""
        return self._called([column for _, _, columns in self.densities_ for column in columns])

    def _called(self, own: list[Any]) -> list[str]:
        """Names of columns given by name or number."""
        outside = super().column_names()
        return [outside[c] if isinstance(c, int | np.integer) and not isinstance(c, bool) else str(c) for c in own]

    def _own(self, part: Any, i: int, names: list[Any] | None, width: int) -> list[Any]:
        """The columns of one component."""
        if len(part) == 3:
            own = list(part[2]) if isinstance(part[2], list | tuple) else [part[2]]
            if not own or not all(isinstance(column, Hashable) for column in own):
                expected = f"component {part[0]!r} must have a column or a list of columns, at least one"
                raise DomainError(sentence("ProductDensity", expected, repr(part[2])[:80]))
            return own
        if names is not None:
            if part[0] not in names:
                raise DataError(sentence("ProductDensity", f"component {part[0]!r} needs a column of that name", names))
            return [part[0]]
        if len(self.components) != width:
            expected = f"an array must have one column per component ({len(self.components)})"
            raise DomainError(
                sentence("ProductDensity", expected, width, "or name columns: (name, estimator, columns)")
            )
        return [i]

    # ---------------------------------------------------------------- learning

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        parts: Any = getattr(self, "densities_", None)
        shaped = isinstance(parts, list) and all(isinstance(p, list | tuple) and len(p) == 3 for p in parts)
        if not (shaped and isinstance(model, Product) and model.members == members):
            return False
        for name, part, own in parts:
            if not (isinstance(name, str) and isinstance(part, DensityEstimator) and isinstance(own, list)):
                return False
            if name not in model.names or not own or not all(map(_is_label, own)):
                return False
            if not part.accepts_model(model[name], getattr(part, "n_features_in_", None), members):
                return False
        return [p[0] for p in parts] == model.names and isinstance(getattr(self, "takes_arrays_", None), bool)

    def blank_model(self, X: Columns, members: int | None = None, weight: ArrayLike | None = None) -> Product:
        return Product(tuple((name, part.blank_model(X[name], members, weight)) for name, part, _ in self.densities_))

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """What holds for one component, or for all of them."""
        each = [part.traits for _, part, _ in getattr(self, "densities_", ())]
        return Traits(
            latent=any(t.latent for t in each), sketchable=all(t.sketchable for t in each),
            second_pass=any(t.second_pass for t in each),
        )  # fmt: skip

    def initialize(self, blank: Any, X: Any, labels: ArrayLike, weight: Any, rng: Any, run: int = 0) -> Any:
        each = (
            (name, part.initialize(blank[name], X[name], labels, weight, rng, run)) for name, part, _ in self.densities_
        )
        return Product.trusted(components=tuple(each))

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Block | None = None, choose: bool = True) -> Any:
        of, done = dict.fromkeys(model.names) if prior is None else prior, []
        for name, part, _ in self.densities_:
            mine = None if rows is None else replace(rows, x=rows.x[name])
            done.append((name, part.scoring_model(model[name], stats[name], of[name], mine, choose)))
        return model if all(new is model[name] for name, new in done) else Product.trusted(components=tuple(done))

    def mask_unknown(self, X: Columns, model: Any) -> tuple[Columns, dict[str, Any]]:
        parts, unseen = {}, {}
        for name, part, own in self.densities_:
            parts[name], found = part.mask_unknown(X[name], model[name])
            unseen.update({name if len(own) == 1 else f"{name}, {c}": mask for c, mask in found.items()})
        return (Columns(parts) if unseen else X), unseen

    def extend_model(self, model: Any, stats: Any, X: Columns) -> tuple[Product, ProductStats]:
        grown = [(name, part.extend_model(model[name], stats[name], X[name])) for name, part, _ in self.densities_]
        models = tuple((name, m) for name, (m, _) in grown)
        return Product(models), ProductStats(tuple((name, s) for name, (_, s) in grown))

    def prior_rule(self) -> Any:
        if not (self.prior is None or isinstance(self.prior, str)):
            return self.prior

        def rule(model: Product, stats: ProductStats) -> ProductPrior:
            rules = [(name, self._rule_of(part)) for name, part, _ in self.densities_]
            return ProductPrior(
                tuple((name, told_of_part(name, resolve_prior, model[name], stats[name], r)) for name, r in rules)
            )

        return rule

    def _rule_of(self, part: Any) -> Any:
        """A component's own "weak" follows the setting of the whole; its own number or prior takes precedence."""
        own = part.prior_rule()
        return self.prior if isinstance(own, str) else own

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        """Rows of the model in the format of the training rows, or of the rows `like`."""
        if isinstance(like, Mapping) and not issparse(like):
            return Columns({**like, **self._columns(rows, Columns.of(like))})
        columns = self._columns(rows)
        if like is not None and hasattr(like, "columns"):
            return filled_columns(like, columns)
        if like is None and not self.takes_arrays_:
            return Columns(columns)
        table = np.column_stack([columns[at] for at in sorted(columns)])
        return table if like is None else filled_in(like, table, sorted(columns))

    def _columns(self, rows: Any, like: Any = None) -> dict[Any, Any]:
        """The components' columns, under the names or numbers of the input."""
        out = {}
        for name, part, own in self.densities_:
            if len(own) == 1:
                cells = part.decode_rows(rows[name], None if like is None else like[own[0]])
                flat = like is None and getattr(rows[name], "ndim", 2) == 1
                out[own[0]] = cells[:, 0] if flat else cells
                continue
            table = part.decode_rows(rows[name])
            each = {column: table[:, j] for j, column in enumerate(own)}
            out.update(each if like is None else {c: filled_in(like[c], cells) for c, cells in each.items()})
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        parts = [part for _, part, *_ in self.components] if _are_named(self.components) else [self.components]
        of_parts = [get_tags(part).input_tags for part in parts if hasattr(part, "__sklearn_tags__")]
        tags.input_tags.positive_only = bool(of_parts) and all(t.positive_only for t in of_parts)
        tags.input_tags.categorical = bool(of_parts) and all(t.categorical for t in of_parts)
        return tags


def _are_named(parts: Any) -> bool:
    """True for a list of (name, estimator) or (name, estimator, columns)."""
    if not (isinstance(parts, list | tuple) and parts):
        return False
    shaped = all(isinstance(p, list | tuple) and len(p) in (2, 3) and isinstance(p[0], str) for p in parts)
    return shaped and len({p[0] for p in parts}) == len(parts)


def _is_label(column: Any) -> bool:
    """True for the label of a column: a text, a number, or a tuple of labels."""
    return all(map(_is_label, column)) if isinstance(column, tuple) else isinstance(column, str | int | float)


def _taken(X: Any, columns: list[Any]) -> Any:
    """Some columns of an array, a frame or named components, as rows (n, d)."""
    known = list(X) if isinstance(X, Columns) else list(X.columns) if hasattr(X, "columns") else range(X.shape[1])
    missing = [c for c in columns if c not in known]
    if missing:
        raise DataError(sentence("ProductDensity", f"column {missing[0]!r} is needed", f"only {list(known)}"))
    if isinstance(X, np.ndarray):
        return X[:, columns]
    part = X[columns[0]] if len(columns) == 1 else np.column_stack([_values(X[c]) for c in columns])
    part = part if isinstance(part, Columns) else _values(part)
    return part[:, None] if getattr(part, "ndim", 2) == 1 else part


def _values(column: Any) -> Any:
    return column.to_numpy() if hasattr(column, "to_numpy") else column

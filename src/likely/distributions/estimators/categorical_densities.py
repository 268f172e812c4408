"""Estimators of categorical columns: relative frequencies, and Chow–Liu trees."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, in_memory
from likely.core.blocks import Block
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, sentence
from likely.core.protocols import PriorLike
from likely.core.stats import Stats
from likely.core.warnings import warn
from likely.distributions.categorical.categorical import UNKNOWN, Categorical, LevelCounts, found_levels, is_missing
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.distributions.categorical.pair_counts import codes_of, joined_levels, levels_of, pseudo_pair_counts
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.product import Product, ProductStats
from likely.estimation.array_fast_path import is_plain
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.imputed_rows import filled_in
from likely.estimation.input_validation import refuse_dates
from likely.estimation.parameter_constraints import Interval
from likely.estimation.scikit_learn import validate_data
from likely.estimation.sparse_validation import checked_sparse


class NotACategory(DataError, TypeError):
    """A cell holds a value that cannot be a category."""


class CategoricalDensity(DensityEstimator):
    """Categorical columns, independent of each other.

    Levels are strings, numbers or booleans, found in the data; `partial_fit` may add new ones. None and NaN
    are missing. A level not seen in training has probability 0.

    Parameters
    ----------
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" (one pseudo-count, spread over the levels), None for maximum likelihood, a number α (Dirichlet with α
        pseudo-counts of each level, so 1 is Laplace smoothing), or a `Prior`.
    predictive : bool, default False
        True integrates out the probabilities: the mean of their posterior, not its mode.

    Attributes
    ----------
    model_ : Categorical or Product
        The fitted density; a product for several columns.

    See Also
    --------
    Categorical : The distribution.
    ChowLiuTreeDensity : Dependent columns.

    References
    ----------
    Bishop (2006), chapter 2.

    Examples
    --------
    >>> import likely as lk
    >>> d = lk.CategoricalDensity(prior=None).fit([["red"], ["blue"], ["red"], ["red"]])
    >>> d.model_.levels.tolist(), d.model_.probs.tolist()
    (['blue', 'red'], [0.25, 0.75])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: PriorLike = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Categorical, Product)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Categorical | Product:
        if len(X) >= 20 and any(len(np.unique(X[:, j].astype(str))) == len(X) for j in range(X.shape[1])):
            text = "CategoricalDensity: a column has as many levels as rows: is it a number, or an identifier?"
            warn(text)
        columns = [Categorical.over(_levels([X[:, j]]), members) for j in range(X.shape[1])]
        return columns[0] if len(columns) == 1 else Product(tuple(zip(self.column_names(), columns, strict=True)))

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        if isinstance(model, Categorical):
            return _widened(model, stats, X[:, 0])
        grown = [_widened(part, stats[name], X[:, j]) for j, (name, part) in enumerate(model.components)]
        models = tuple((name, m) for name, (m, _) in zip(model.names, grown, strict=True))
        return Product(models), ProductStats(tuple((name, s) for name, (_, s) in zip(model.names, grown, strict=True)))

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
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
        if reset or not is_plain(X, self, object):
            X = in_memory(X)
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


def coded(X: Any, words: Any, whose: str) -> Array:
    """Codes (n, d) of the words of each column; NaN where missing, the vocabulary size where unknown.

    >>> coded(np.array([["red", "no"], ["green", None]], dtype=object), [["blue", "red"], ["no", "yes"]], "")
    array([[ 1.,  0.],
           [ 2., nan]])
    """
    if X.shape[1] != len(words):
        raise DataError(sentence(whose, f"words are given for {len(words)} columns", f"{X.shape[1]} columns"))
    return np.column_stack([_places(X[:, j], known) for j, known in enumerate(words)])


def _places(column: Any, known: Any) -> Array:
    at = {str(word): float(i) for i, word in enumerate(known)}
    return np.array([np.nan if is_missing(cell) else at.get(str(cell), float(len(at))) for cell in column], dtype=float)


def worded(rows: Array, words: Any) -> Any:
    """The words of each code (n, d); None where missing.

    >>> worded(np.array([[1.0, np.nan]]), [["blue", "red"], ["no", "yes"]]).tolist()
    [['red', None]]
    """
    out = np.full(np.shape(rows), None, dtype=object)
    for j, known in enumerate(words):
        at = np.asarray(rows[:, j], dtype=np.float64)
        here = np.flatnonzero((at >= 0) & (at < len(known)))
        out[here, j] = np.array([str(word) for word in known], dtype=object)[at[here].astype(int)]
    return out


def refuse_unlike_words(words: Any, whose: str) -> None:
    """Raise unless the vocabulary is a list of distinct strings for each column."""
    lists = isinstance(words, list | tuple) and all(isinstance(known, list | tuple) for known in words)
    if not (lists and words and all(known and len(set(map(str, known))) == len(known) for known in words)):
        expected = "words must be a list of different words for each column"
        raise DomainError(sentence(whose, expected, type(words).__name__))


MANY, FEW = 64, 8  # levels beyond which a column looks continuous; for mostly unique fractions, beyond the second


class ChowLiuTreeDensity(DensityEstimator):
    """Chow–Liu tree of discrete columns.

    Columns hold numbers of few levels, binary, ternary (−1, 0, 1) or more; levels are found in the data, at most
    512 per column and 8,192 in all, and `partial_fit` may add new ones. Pair counts are additive statistics, and the
    tree of highest likelihood is found exactly. NaN is summed out exactly, in scoring and, by EM, in fitting (with
    very many levels available pairs are counted, with a warning). In a classifier each class has its own tree. A
    level not seen in training has probability 0 (a classifier treats it as missing).

    Parameters
    ----------
    words : list of lists, optional
        None for columns of numbers; the words of each column where columns hold strings, one list per column. A word
        that is none of them is treated as an unseen level.
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" (one pseudo-row of independent columns with the pooled level frequencies), None for maximum likelihood, a
        number of such rows, or a `Prior`.

    Attributes
    ----------
    model_ : ChowLiuTree
        The fitted density.

    See Also
    --------
    ChowLiuTree : The distribution.
    CategoricalDensity : Independent columns.

    References
    ----------
    Chow and Liu (1968); Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> from likely.distributions.estimators.categorical_densities import ChowLiuTreeDensity
    >>> t = ChowLiuTreeDensity().fit([[0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]])
    >>> t.parents_.tolist(), t.levels_[0].tolist()
    ([-1, 0, 0], [0.0, 1.0])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "words": [list, tuple, None], "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], **EM,
    }  # fmt: skip

    def __init__(self, *, words: Any = None, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        self.words = words
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (ChowLiuTree,)
    _for_text = "say which words each column may hold: ChowLiuTreeDensity(words=[['n', 'y'], …])"
    traits = Traits(reports_unobserved=False, sketchable=False)  # levels must be found in all rows

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> ChowLiuTree:
        distribution = ChowLiuTree.blank(X, members)
        self._warn_of_measurements(
            [j for j, known in enumerate(distribution.levels) if _measured(known, X.shape[0])], distribution
        )
        return distribution

    def _warn_of_measurements(self, continuous: list[int], distribution: ChowLiuTree) -> None:
        if not continuous:
            return
        names = ", ".join(str(self.column_names()[j]) for j in continuous[:3]) + (", …" if len(continuous) > 3 else "")
        values = len(distribution.levels[continuous[0]])
        what = f"{_columns(len(continuous))} real numbers rather than few levels ({names}: {values} values)"
        text = "each value becomes a level of its own, and any other value has probability 0"
        warn(f"ChowLiuTreeDensity: {what}: {text}; bin them, or use GaussianDensity or KernelDensity")

    def extend_model(self, model: Any, stats: Any, X: Rows) -> tuple[Any, Any]:
        levels = joined_levels(model.levels, levels_of(X, "ChowLiuTreeDensity"))
        return model.grown(levels), stats.grown(levels)

    def prior_rule(self) -> Any:
        from likely.distributions.priors.pseudo_data import PseudoData

        if isinstance(self.prior, Real):
            strength = float(self.prior)
            return lambda model, stats: PseudoData.trusted(
                distribution=model, stats=pseudo_pair_counts(stats, strength)
            )
        return self.prior

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        if self.words is not None:
            return self._coded(X, reset)
        return checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)

    def _coded(self, X: Any, reset: bool) -> Any:
        """Words as their codes in the vocabulary."""
        refuse_unlike_words(self.words, "ChowLiuTreeDensity")
        X = in_memory(X)
        refuse_dates(X, "ChowLiuTreeDensity")
        cells = validate_data(self, X, reset=reset, dtype=object, ensure_all_finite=False)
        return coded(cells, self.words, "ChowLiuTreeDensity")

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        return super().decode_rows(rows if self.words is None else worded(rows, self.words), like)

    def mask_unknown(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        unseen = codes_of(X.toarray() if scipy.sparse.issparse(X) else X, model.levels, "ChowLiuTreeDensity") == UNKNOWN
        if not unseen.any():
            return X, {}
        X = X.toarray() if scipy.sparse.issparse(X) else X
        names = self.column_names()
        return np.where(unseen, np.nan, X), {names[j]: unseen[:, j] for j in np.flatnonzero(unseen.any(axis=0))}

    @property
    def parents_(self) -> Any:
        """The parent of each column (d,); −1 at the root."""
        return self.model_.parent

    @property
    def levels_(self) -> Any:
        """The levels of each column."""
        return self.model_.levels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _measured(levels: Any, rows: int) -> bool:
    """True where a column looks continuous: very many levels, or fractions that are mostly unique."""
    broken = bool((levels != np.round(levels)).any())
    return len(levels) > MANY or (broken and len(levels) > max(FEW, rows / 2))


def _columns(n: int) -> str:
    return "1 column looks like" if n == 1 else f"{n} columns look like"

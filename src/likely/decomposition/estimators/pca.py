"""Principal component analysis (PCA), incremental and with missing values."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from likely.core.arrays import Array, Rows, refuse_infinite, rows
from likely.core.blocks import Block, Blocks
from likely.core.description import Description, DescriptionTable, counted, loadings_words
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, sentence
from likely.core.warnings import warn
from likely.decomposition.principal_subspace import (
    ROOTED,
    PrincipalSubspace,
    Spectrum,
    axes_of,
    dependent,
    gram_loses_rank,
    number,
    refuse_missing_values,
    spectrum,
)
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.missing_values_em import any_missing, em_moments, expected_rows, gaussian_of
from likely.distributions.gaussian.scatter_qr import ScatterRoot, centered_rows, root_of_rows
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions

PART = 4  # blocks per task: 200,000 rows are then a dozen tasks, and two cores finish together

Solver = Literal["auto", "scatter", "qr"]


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal component analysis.

    Variances are scatter over weight, divided by n (scikit-learn's are n / (n − 1) times as large; its
    `singular_values_` are the same). `partial_fit` adds statistics: chunks equal the batch, by the solver of the first
    chunk; a stream cannot read its rows again, so it warns where the scatter may have lost an axis.

    Rows may have missing entries (NaN), except with solver="qr": mean and scatter are then estimated by EM for a
    Gaussian, and `transform` gives such a row its expected coordinates given the observed entries. In a stream
    with missing entries, each chunk is completed under the model of the chunks before it.

    Parameters
    ----------
    n_components : int or float, optional
        Number of axes; a number below 1 is the proportion of variance that they must explain; None
        keeps every direction whose variance exceeds rounding.
    whiten : bool, default False
        Divide coordinates by their standard deviations.
    solver : {"auto", "scatter", "qr"}, default "auto"
        "scatter" takes eigenvectors of the scatter matrix, in one pass; "qr" singular values of an R factor,
        which costs more and resolves singular values below 3e-7 of the largest. "auto" begins with the scatter (with
        fewer rows than columns: with their Gram matrix) and changes to "qr", with a warning, where
        a requested axis lies below that. Constant columns, copies and sums of other columns are detected and do
        not trigger it.

    Attributes
    ----------
    principal_ : PrincipalSubspace
        Mean, axes and variances.
    solver_ : str
        The solver that was taken.

    See Also
    --------
    PPCA : With a noise model and a likelihood.
    ScreeDisplay : Plot of the variances.

    References
    ----------
    Bishop (2006), chapter 12; Herbst and du Preez, lecture notes, 6.1; Ney, lecture notes, 8.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)) * [5.0, 1.0, 0.1]
    >>> p = PCA(2).fit(X)
    >>> p.transform(X).shape, round(p.relative_error_, 4)
    ((1000, 2), 0.0004)
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither"), None],
        "whiten": ["boolean"],
        "solver": [StrOptions(set(get_args(Solver)))],
    }
    saved_attributes: tuple[str, ...] = ("principal_", "stats_", "solver_", "n_features_in_", "feature_names_in_")

    def __init__(self, n_components: Any = None, *, whiten: bool = False, solver: Solver = "auto") -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.solver = solver

    def fit(self, X: Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the axes to rows X (n, d); `y` is ignored."""
        self._validate_params()
        rows, weight = self.checked_rows(X, sample_weight, reset=True)
        n, d = rows.shape
        self._refuse_too_many(min(n, d))
        self.__dict__.pop("stats_", None)
        if any_missing(rows):
            stats = self._expected(rows, weight)
            return self._adopt(stats, axes_of(stats, spectrum(stats, self.n_components), self.n_components), "scatter")
        wide = self.solver == "auto" and n <= d
        taken = "gram" if wide else "qr" if self.solver == "qr" else "scatter"
        stats = self._gathered(rows, weight, taken)
        found = spectrum(stats, self.n_components, gram=wide)
        wanted = max(min(n - 1, d), 1) if self.n_components is None else number(found, self.n_components)
        if self.solver == "auto" and not found.sees(wanted) and not self._resolves_all(stats, found, rows):
            taken, stats = "qr", self._gathered(rows, weight, "qr")
            found = spectrum(stats)
            _warn_of_route(found, number(found, self.n_components))
        return self._adopt(stats, axes_of(stats, found, self.n_components), taken)

    def partial_fit(self, X: Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit with more rows: their statistics are added to those of all rows before."""
        self._validate_params()
        first = not hasattr(self, "principal_")
        rows, weight = self.checked_rows(X, sample_weight, reset=first)
        self._refuse_too_many(rows.shape[1])
        rooted = self.solver == "qr" if first else isinstance(self.stats_, ScatterRoot)
        taken = "qr" if rooted else "scatter"
        new = self._expected(rows, weight) if any_missing(rows) else self._gathered(rows, weight, taken)
        stats = new if first else self.stats_ + new
        found = spectrum(stats, self.n_components)
        wanted = min(self.n_components, len(found.values)) if _is_integer(self.n_components) else self.n_components
        if (
            taken == "scatter"
            and stats.total_weight > rows.shape[1]
            and not found.sees(_requested_axes(stats, found, wanted))
        ):
            text = "PCA: a requested axis has a variance at the rounding level of the scatter"
            warn(f'{text}, and a stream keeps the scatter only: request fewer axes, or use solver="qr"')
        return self._adopt(stats, axes_of(stats, found, wanted), taken)

    def transform(self, X: Rows) -> Array:
        """Coordinates along the axes (n, q); expected coordinates for rows with missing entries."""
        check_is_fitted(self)
        rows = self.validate_rows(X, reset=False)
        if any_missing(rows):
            refuse_infinite(rows, "PCA")
            rows = expected_rows(gaussian_of(self.stats_), rows)[0].astype(rows.dtype)
        return self.principal_.whiten(rows) if self.whiten else self.principal_.project(rows)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows reconstructed from coordinates (n, q)."""
        check_is_fitted(self)
        return self.principal_.restore(X, white=self.whiten)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)

    # -------------------------------------------------------------- what was learned

    @property
    def components_(self) -> Array:
        """The axes (q, d), one per row."""
        return self.principal_.axes

    @property
    def mean_(self) -> Array:
        """Mean of the rows (d,)."""
        return self.principal_.mean

    @property
    def explained_variance_(self) -> Array:
        """Variance along each axis (q,), divided by n."""
        return self.principal_.variances

    @property
    def explained_variance_ratio_(self) -> Array:
        """Explained variance ratio of each axis (q,)."""
        return self.principal_.shares

    @property
    def singular_values_(self) -> Array:
        """Singular values of the centered rows (q,)."""
        return np.sqrt(self.principal_.variances * self.stats_.total_weight)

    @property
    def relative_error_(self) -> float:
        """Proportion of the variance that the axes do not explain."""
        return self.principal_.relative_error()

    @property
    def n_components_(self) -> int:
        """Number of axes kept."""
        return len(self.principal_.axes)

    # ------------------------------------------------------------------- inside

    validate_rows: Any = DensityEstimator.validate_rows  # input validation is that of the densities
    checked_rows: Any = DensityEstimator.checked_rows

    def _adopt(self, stats: Any, principal: PrincipalSubspace, solver: str) -> Self:
        self.stats_, self.principal_, self.solver_ = stats, principal, solver
        return self

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _refuse_too_many(self, most: int) -> None:
        if _is_integer(self.n_components) and self.n_components > most:
            expected = f"n_components must be at most {most}, the smaller of rows and columns"
            raise DomainError(sentence("PCA", expected, self.n_components))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.solver != "qr"  # in fit
        return tags

    def _resolves_all(self, stats: Any, found: Spectrum, X: Any) -> bool:
        """True if all axes are wanted, and rows have no variance in the directions that the Gram matrix loses."""
        if self.n_components is not None:
            return False
        if isinstance(stats, ScatterRoot):
            return not gram_loses_rank(np.asarray(stats.root))
        rank, flat = dependent(stats)
        if not found.sees(rank):
            return False
        # singular values of an R factor are resolved down to 1e-13 of the largest; squares as in the scatter
        left = map_rows(lambda b: (rows(b, len(flat), "PCA") - stats.mean) @ flat, X, flat.shape[1])
        return bool((np.einsum("nm,nm->m", left, left) <= ROOTED * len(left)).all())

    def _gathered(self, X: Any, weight: Any, taken: str) -> Any:
        """Statistics of the rows: moments, an R factor, or (with few rows) the centered rows themselves."""
        known = getattr(self, "stats_", None)
        origin = _origin(X) if known is None else known.origin
        take: Any = {"scatter": moments.of_rows, "qr": root_of_rows, "gram": centered_rows}[taken]

        def collect(block: Block) -> Any:
            x = rows(block.x, X.shape[1], "PCA")
            stats = take(x, block.weight, origin)
            if stats is None:
                refuse_infinite(x, "PCA")
                refuse_missing_values(x, "PCA")
                raise moments.overflow("PCA")
            return stats

        if taken == "gram":
            return collect(Block(X, weight))
        blocks = Blocks.of(X, weight, blocks=PART)
        return Threads().total(collect, blocks.whole() if taken == "scatter" else blocks)

    def _expected(self, X: Any, weight: Any) -> Any:
        """Statistics of rows with missing entries: by EM, or in a stream under the model so far."""
        refuse_infinite(X, "PCA")
        known = getattr(self, "stats_", None)
        if self.solver == "qr" or isinstance(known, ScatterRoot):
            refuse_missing_values(X, "PCA", 'use solver="scatter", which estimates the scatter by EM, or PPCA')
        if known is None:
            return em_moments(X, weight, "PCA")
        distribution = gaussian_of(known)
        return Threads().total(lambda block: distribution.collect(block.x, block.weight), Blocks.of(X, weight))

    def describe(self) -> Description:
        """Components with their variances and largest loadings; of an unfitted estimator, its settings."""
        if not hasattr(self, "principal_"):
            return super().describe()
        (q, d), shares = self.components_.shape, self.explained_variance_ratio_
        rows = f"fitted to {counted(self.stats_.total_weight, 'row')} (solver: {self.solver_})"
        text = [f"{q} components of {d} columns, {rows}"]
        text += [f"they explain {1 - self.relative_error_:.2%} of the variance"]
        axes = [loadings_words(axis, self.column_names()) for axis in self.components_]
        each = zip(self.explained_variance_.tolist(), shares.tolist(), np.cumsum(shares).tolist(), axes, strict=True)
        formats = {"variance": ".6g", "ratio": ".2%", "cumulative": ".2%"}
        table = [(j, *row) for j, row in enumerate(each, 1)]
        axes_table = DescriptionTable(
            "axes", ("axis", "variance", "ratio", "cumulative", "loadings"), table, formats, "axes"
        )
        return Description(type(self).__name__, text, tables=[axes_table])

    def check_state(self) -> None:
        """After reading a file: axes and statistics must have the same width."""
        principal, stats = getattr(self, "principal_", None), getattr(self, "stats_", None)
        if principal is None and stats is None:
            return
        width = getattr(self, "n_features_in_", None)
        sound = isinstance(principal, PrincipalSubspace) and isinstance(stats, moments.Moments | ScatterRoot)
        sound = sound and type(width) is int and principal.dim == width and stats.shift.shape == (width,)  # type: ignore[union-attr]
        solver = getattr(self, "solver_", None)
        if not (sound and isinstance(solver, str) and solver in ("scatter", "qr", "gram")):
            raise DataError(sentence("PCA", "axes and statistics must be of equal width", type(principal).__name__))


def _is_integer(components: Any) -> bool:
    return isinstance(components, Integral)


def _requested_axes(stats: Any, found: Spectrum, wanted: Any) -> int:
    """The number of axes requested in a stream: None means every column that is not constant."""
    if wanted is not None:
        return number(found, wanted)
    rank, flat = dependent(stats)
    return rank + flat.shape[1]


def _origin(X: Any) -> Array:
    """A point near the data."""
    with np.errstate(all="ignore"):
        near = np.asarray(X[:256], dtype=np.float64).mean(axis=0)
    return np.where(np.isfinite(near), near, 0.0)


def _warn_of_route(found: Any, kept: int) -> None:
    """Warn that an R factor was used, which takes longer: the scatter could not resolve a requested axis."""
    top = float(found.values[0])
    smallest = np.sqrt(found.values[kept - 1] / top) if top > 0 else 0.0
    warn(
        f"PCA: the smallest singular value kept is {smallest:.1e} of the largest: an R factor was used instead of "
        'the scatter matrix, which cannot resolve it (solver="scatter" forbids this, solver="qr" asks for it)',
    )

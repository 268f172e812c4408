"""Rademacher–Walsh expansion: a distribution of binary columns as a sum of products of signs, truncated anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Mask, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.warnings import warn
from likely.distributions.binary.binary_expansion import width_of
from likely.distributions.binary.positive_part import TruncatedExpansion
from likely.distributions.binary.sign_products import SignSums, checked_order, expanded, number_of_sets, places
from likely.numerics.special import LOG_2
from likely.numerics.walsh_hadamard import cells_of
from likely.numerics.walsh_hadamard import expectations as walsh_transform


@dataclass(frozen=True, eq=False)
class Walsh(TruncatedExpansion):
    """Walsh–Hadamard expansion of the distribution of binary columns.

    p(x) = 2⁻ᵈ Σ_S c_S Π_{j ∈ S} (2xⱼ − 1), over sets S of at most `order` columns.

    The coefficients are expectations, c_S = E[Π (2xⱼ − 1)], so fitting is averaging. With all 2ᵈ sets this is any
    distribution of binary columns; truncated earlier it sums to one, but **it can be negative**: `value` shows the
    expansion. The distribution is its positive part: `log_prob`, draws and sums are those of the positive part,
    normalized over all cells, and −inf elsewhere, with a warning. `LogLinear` stays positive. Missing entries (NaN) are
    summed out. There are at most 20 columns.

    Parameters
    ----------
    expectations : array-like (M,) or (K, M)
        Expectations c_S of all sets of at most `order` columns: first of the empty set (1), then of single columns,
        pairs and larger sets.
    dim : int, default 1
        Number of columns d.
    order : int, default 2
        Largest number of columns of a set.

    See Also
    --------
    LogLinear : Expansion of log p(x), which stays positive.
    Bahadur : Expansion in standardized columns.
    WalshDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> Walsh.of([0.4, 0.1, 0.2, 0.3]).coefficients.round(12) + 0.0       # of 1, x₁, x₂ and the pair
    array([ 0.25,  0.  , -0.05,  0.1 ])
    >>> Walsh.of([0.05, 0.05, 0.05, 0.85], order=1).value([[0, 0]]).round(12)
    array([-0.15])
    >>> np.exp(Walsh.of([0.05, 0.05, 0.05, 0.85], order=1).log_prob([[0, 1], [1, 0], [1, 1]])).round(4)
    array([0.2174, 0.2174, 0.5652])
    """

    # (M,) or (K, M): of the empty set (1), single columns, pairs, …
    expectations: Annotated[Array, declared.numbers("* M")]
    dim: Annotated[int, declared.count] = 1
    order: Annotated[int, declared.count] = 2

    objective_name = "fit (minus squared error, shifted)"
    _arrays = ("expectations",)

    def __post_init__(self) -> None:
        c, order = self._sized("expectations", "Walsh", least=0)
        if (np.abs(c) > 1 + 1e-9).any() or (c[..., 0] != 1).any():
            expected = "expectations of signs lie in −1 … 1, and that of the empty set is 1"
            raise DomainError(sentence("Walsh", expected, float(c.flat[np.abs(c - 0.5).argmax()])))
        self._set(expectations=c, order=order)

    @classmethod
    def of(cls, probs: ArrayLike, order: int | None = None) -> Walsh:
        """Expansion of a table of probabilities of all cells, exact unless truncated.

        Parameters
        ----------
        probs : array-like (2ᵈ,)
            Probabilities of the cells 0…00, 0…01 and so on.
        order : int, optional
            Largest number of columns of a set; None is all.
        """
        p = parameter(probs, "Walsh", "probs")
        d = int(p.size).bit_length() - 1
        if p.ndim != 1 or d < 1 or p.size != 1 << d:
            raise ShapeError(sentence("Walsh", "one probability for each of 2, 4, 8, … cells is needed", p.shape))
        if (p < 0).any():
            bad = int(p.argmin())
            raise DomainError(sentence("Walsh", "probabilities must not be negative", f"{p[bad]:g} in cell {bad}"))
        if abs(p.sum() - 1) > 1e-9:
            raise DomainError(sentence("Walsh", "probabilities must sum to 1", float(p.sum())))
        order = checked_order(d, d if order is None else order, "Walsh")
        c = walsh_transform(p / p.sum())[places(d, order)]
        c[0] = 1.0
        return cls.trusted(expectations=np.clip(c, -1.0, 1.0), dim=d, order=order)

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, order: int = 2) -> Walsh:
        """Initial model: uniform, with as many columns as the rows have."""
        d = width_of(x, "Walsh")
        order = checked_order(d, order, "Walsh", least=0)
        M = number_of_sets(d, order)
        c = np.zeros((M,) if members is None else (members, M))
        c[..., 0] = 1.0
        return cls.trusted(expectations=c, dim=d, order=order)

    # ---------------------------------------------------------------- density

    @property
    def coefficients(self) -> Array:
        """Coefficients a = 2⁻ᵈ c in the notation of the notes (..., M)."""
        return self.expectations * 0.5**self.dim

    def value(self, x: ArrayLike) -> Array:
        """The expansion itself, possibly negative; NaN entries are summed out.

        Returns
        -------
        ndarray (n,)
            Values of the expansion; (n, K) for a stack of K members.
        """

        def score(z: Array, observed: Mask, binary: Mask) -> Array:
            sums = self._sums(z) * 0.5 ** observed.sum(axis=1)[:, None]
            return np.where(binary[:, None], sums, 0.0)

        return self._mapped(score, x)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows; −inf where the expansion is not positive."""
        negative, cut = 0, self._positive is not None

        def score(z: Array, observed: Mask, binary: Mask) -> Array:
            nonlocal negative
            sums = (
                self._from_cells(z, observed, binary) * 2.0 ** observed.sum(axis=1)[:, None] if cut else self._sums(z)
            )
            below = (sums <= 0) & binary[:, None]
            negative += int(below.any(axis=1).sum())
            out = np.log(np.where(sums > 0, sums, 0.0)) - LOG_2 * observed.sum(axis=1)[:, None]
            return np.where(binary[:, None], out, -np.inf)

        out = self._mapped(score, x)
        if negative:
            warn_of_negative("Walsh", negative, self.members)
        return out

    def _sums(self, z: Array) -> Array:
        return expanded(z, np.atleast_2d(self.expectations), self.order)

    def _raw_cells(self) -> Array:
        full = np.zeros((self.members or 1, 1 << self.dim))
        full[:, places(self.dim, self.order)] = np.atleast_2d(self.coefficients)
        return cells_of(full)

    def _surely_positive(self) -> bool:
        return bool((np.abs(self.expectations[..., 1:]).sum(axis=-1) <= 1.0).all())

    @property
    def mean(self) -> Array:
        """Probability of a 1 in each column."""
        found = self._mean_of_cells()
        return 0.5 * (1.0 + self.expectations[..., 1 : self.dim + 1]) if found is None else found

    @property
    def n_parameters(self) -> int:
        """Free parameters: all coefficients but that of the empty set."""
        return int(self.expectations[..., 1:].size)

    # --------------------------------------------------------------- learning

    def refit(self, stats: SignSums, prior: Any = None) -> Walsh:
        """Means of the products; with missing values, each over the rows with all of its columns observed.

        >>> w = Walsh.blank([[0, 0]])
        >>> w.refit(w.collect([[0, 0], [1, 1], [1, 1], [0, 1]])).expectations
        array([1. , 0. , 0.5, 0.5])
        """
        if prior is not None:
            self._check(stats)
            return self.refit(prior.update(stats).stats)
        self._refuse_nothing(stats)
        warn_of_missing_values(stats, "Walsh")
        mean = stats.mean
        mean[..., 0] = 1.0
        return self.replace(expectations=self._kept(mean, stats, "expectations"))

    def objective(self, stats: SignSums, prior: AnyPrior | None = None) -> float:
        """Σ_S n_S (2 c_S ĉ_S − c_S²): up to a constant minus the squared error, which the means minimize.

        A truncated expansion minimizes the squared error, not the negative log-likelihood (Parseval: Σₓ (p̂ − p)² = 2⁻ᵈ
        Σ_S (ĉ_S − c_S)²).
        """
        self._check(stats)
        c = self.expectations
        value = float((2 * c * stats.total - c**2 * stats.weight).sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))


def warn_of_missing_values(stats: SignSums, whose: str) -> None:
    """Warn that means are over different rows (available-case analysis): unbiased if missing completely at random."""
    if (stats.weight < stats.weight[..., :1] * (1 - 1e-9)).any():
        text = "missing values: means are over available rows, unbiased if values are missing completely at random"
        warn(f"{whose}: {text}; WalshDensity(log=True) learns by EM")


def warn_of_negative(whose: str, rows: int, members: int | None = None) -> None:
    """Warn of rows where the expansion is not positive; in a stack a row counts once."""
    what = "row lies where the truncated expansion" if rows == 1 else "rows lie where the truncated expansion"
    what += f" of at least one of {members} distributions is" if members else " is"
    warn(f"{whose}: {rows} {what} not positive: log p is −inf there; WalshDensity(log=True) stays positive")

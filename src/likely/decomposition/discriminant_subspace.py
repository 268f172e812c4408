"""Fisher's linear discriminant analysis: directions of largest between-class relative to within-class scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, check_option, parameter, refuse_infinite, rows
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.core.warnings import warn
from likely.decomposition.principal_subspace import refuse_missing_values
from likely.distributions.gaussian.moments import Moments
from likely.numerics.eigenvectors import canonical_basis, with_canonical_signs
from likely.numerics.spd import symmetric

CONSTANT = 1e-14  # share of a column's size: a smaller standard deviation is rounding error of a constant
RANK = 1e-12  # share of the largest variance of standardized columns below which a direction is rounding
FLAT = 1e-10  # share of a direction's variance that lies within classes: below, S_w is singular along it
LOST = 1e-14  # share of variance above which a dropped direction is more than a linear combination of other columns
FILLED = 'fill them first, or use BayesClassifier(GaussianDensity("pooled")), which integrates missing entries out'
LARGEST = 1e150  # of coordinates: what is larger cannot be squared
NOTHING = 1e-12  # share of between-class scatter that is rounding

SeparabilityCriterion = Literal["trace", "determinant"]


@dataclass(frozen=True, eq=False)
class DiscriminantSubspace(Value):
    """Discriminant subspace of Fisher's linear discriminant analysis: coordinates z = B (x − m).

    B S_w Bᵀ = I and B S_b Bᵀ = diag λ, with S_w = 1/n Σ_k Σ (x − m_k)(x − m_k)ᵀ, S_b = 1/n Σ_k n_k (m_k − m)(m_k − m)ᵀ,
    λ descending: the coordinates have unit within-class covariance and diagonal between-class scatter. At most K − 1 of
    the λ are not 0. Where S_w is singular and class means differ, λ is infinite: these directions come first, scaled as
    if 10⁻¹⁰ of their variance lay within classes.

    Parameters
    ----------
    mean : array-like (d,)
        The mean m.
    axes : array-like (q, d)
        The directions B, one per row.
    within : array-like (q,)
        Share of the variance within classes per direction, ascending: λ = (1 − within)/within.
    centroids : array-like (K, q)
        Class means in these coordinates.

    See Also
    --------
    FisherDiscriminant : The estimator.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 3; Bishop (2006), chapter 4; Herbst and du Preez, lecture notes, 4.1.6; Ney,
    lecture notes, 8.2.3.

    Examples
    --------
    >>> axes = DiscriminantSubspace.of(np.diag([1.0, 4.0]), [[0.0, 0.0], [2.0, 0.0]], [0.5, 0.5])
    >>> axes.axes, axes.ratios, axes.project([[2.0, 7.0]])
    (array([[1., 0.]]), array([1.]), array([[1.]]))
    """

    mean: Annotated[Array, declared.numbers("d")]  # (d,)
    axes: Annotated[Array, declared.numbers("q d")]  # (q, d): B
    within: Annotated[Array, declared.numbers("q", 0)]  # (q,), ascending
    centroids: Annotated[Array, declared.numbers("K q")]  # (K, q): the class means in these coordinates

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "DiscriminantSubspace", name) for name, part in self.field_values().items()}
        q, d = len(parts["within"]), len(np.atleast_1d(parts["mean"]))
        K = len(parts["centroids"]) if parts["centroids"].ndim == 2 else 0
        got = tuple(part.shape for part in parts.values())
        if got != ((d,), (q, d), (q,), (K, q)) or not (K and q):
            raise ShapeError(
                sentence(
                    "DiscriminantSubspace", "mean (d,), axes (q, d), within (q,) and centers (K, q) are needed", got
                )
            )
        within = parts["within"]
        if (within < 0).any() or (within > 1 + 1e-9).any() or (np.diff(within) < -1e-9).any():
            raise DomainError(sentence("DiscriminantSubspace", "within must be ascending shares", within.tolist()))
        if np.abs(parts["centroids"]).max() > LARGEST / np.sqrt(q):
            raise DomainError(
                sentence("DiscriminantSubspace", "squared distances of centers must be finite", "an overflow")
            )
        self._set(**parts)

    @classmethod
    def of(
        cls, within: ArrayLike, means: ArrayLike, shares: ArrayLike, components: int | None = None, *,
        beyond: bool = False, shrinkage: float = 0.0, patient: bool = False,
    ) -> DiscriminantSubspace:  # fmt: skip
        """Discriminant directions from within-class scatter, class means and class proportions.

        Parameters
        ----------
        within : array-like (d, d)
            Within-class scatter S_w.
        means : array-like (K, d)
            Class means.
        shares : array-like (K,)
            Class proportions.
        components : int, optional
            Number of directions, at most the rank of S_b (K − 1 for classes in general position).
        beyond : bool, default False
            Allow more: axes with λ = 0 follow, by descending variance of standardized columns.
        shrinkage : float, default 0.0
            Shrinks correlations of S_w.
        patient : bool, default False
            Fewer directions than requested are no error, as early in a stream.
        """
        W, M, p = (
            parameter(within, "DiscriminantSubspace", "within"),
            parameter(means, "DiscriminantSubspace", "means"),
            np.asarray(shares),
        )
        d = M.shape[-1] if M.ndim == 2 else -1
        if W.shape != (d, d) or p.shape != (len(M),):
            raise ShapeError(
                sentence("DiscriminantSubspace", "within (d, d), means (K, d) and shares (K,) are needed", W.shape)
            )
        p = p / p.sum()
        mean = p @ M
        W = (1.0 - shrinkage) * W + shrinkage * np.diag(np.diagonal(W))
        frame = _whitened(W, np.sqrt(p)[:, None] * (M - mean), mean)
        if patient:
            components = _available_so_far(frame, components, beyond)
        axes, inner = _chosen(frame, components, len(M), beyond or patient)
        return cls.trusted(mean=mean, axes=axes, within=inner, centroids=np.ascontiguousarray((M - mean) @ axes.T))

    @classmethod
    def of_statistics(
        cls, stats: Moments, components: int | None = None, *, beyond: bool = False, shrinkage: float = 0.0,
        patient: bool = False,
    ) -> DiscriminantSubspace:  # fmt: skip
        """Discriminant directions from the moments of each class.

        Parameters
        ----------
        stats : Moments
            Moments, a stack of K.
        components : int, optional
            Number of directions, at most the rank of S_b (K − 1 for classes in general position).
        beyond : bool, default False
            Allow more: axes with λ = 0 follow, by descending variance of standardized columns.
        shrinkage : float, default 0.0
            Shrinks correlations of S_w.
        patient : bool, default False
            Fewer directions than requested are no error, as early in a stream.
        """
        has_rows = stats.weight > 0
        n = float(stats.weight.sum())
        if not n > 0:
            raise DataError(sentence("DiscriminantSubspace", "at least one row with weight is needed", "none"))
        within = stats.scatter.sum(axis=0) / n
        means = np.where(has_rows[:, None], stats.mean, 0.0)
        means[~has_rows] = (stats.weight @ means) / n  # a class without rows does not contribute
        return cls.of(within, means, stats.weight / n, components, beyond=beyond, shrinkage=shrinkage, patient=patient)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.axes.shape[1])

    @property
    def ratios(self) -> Array:
        """Ratios λ (q,): variance between classes over variance within; infinite where the latter is 0."""
        with np.errstate(divide="ignore"):
            return np.where(self.within > 0, (1.0 - self.within) / self.within, np.inf)

    def criterion(self, name: SeparabilityCriterion = "trace") -> float:
        """Separability criterion: tr(s_w⁻¹ s_b) = Σ λ, or det(s_w⁻¹ s_b) = Π λ.

        With more directions than S_b has rank, det(s_w⁻¹ s_b) is 0, and det(s_w⁻¹ s_t) = Π (1 + λ) is given instead,
        with the total scatter in place of the between-class scatter (Ney 8.2.4).

        Parameters
        ----------
        name : {"trace", "determinant"}, default "trace"
            Which criterion.

        Returns
        -------
        float
            Its value; larger is better.
        """
        check_option(name, SeparabilityCriterion, "DiscriminantSubspace", "the criterion")
        if name == "trace":
            return float(self.ratios.sum())
        full = bool((self.within < 1.0 - NOTHING).all())
        return float(np.prod(self.ratios if full else 1.0 + self.ratios))

    def project(self, x: ArrayLike) -> Array:
        """Discriminant coordinates of rows.

        Returns
        -------
        ndarray (n, q)
            The coordinates.
        """

        def coordinates(block: Any) -> Array:
            z = rows(block, self.dim, "FisherDiscriminant")
            refuse_infinite(z, "FisherDiscriminant")
            out = (z - self.mean) @ self.axes.T
            if not np.isfinite(out).all():
                refuse_missing_values(z, "FisherDiscriminant", FILLED)
            return out

        return map_rows(coordinates, x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64), len(self.axes))

    def log_joint(self, x: ArrayLike, log_shares: Array) -> Array:
        """Log-densities log p(c) − ½ ‖z − μ_c‖² of Gaussians of one covariance, up to a constant of each row.

        Parameters
        ----------
        log_shares : ndarray (K,)
            Logarithms of the class probabilities p(c).

        Returns
        -------
        ndarray (n, K)
            One column per class.
        """
        z = np.asarray(self.project(x), dtype=np.float64)
        return np.asarray(log_shares + z @ self.centroids.T - 0.5 * (self.centroids**2).sum(axis=1))


class _Frame(NamedTuple):
    """Whitened coordinates: U (d, r) makes the total scatter 1; `between` (K, r) are the weighted class means in it."""

    U: Array
    between: Array
    within: Array  # (r, r)
    variances: Array  # (r,): of the standardized columns, along each direction
    columns: Array  # (c, r): U for the c columns that vary, in units of their standard deviations


def _whitened(W: Array, between: Array, mean: Array) -> _Frame:
    """Whitening of the total scatter; columns are standardized first, so that units do not matter."""
    variance = np.diagonal(W) + (between**2).sum(axis=0)
    used = np.flatnonzero(variance > np.maximum(np.finfo(float).tiny * 1e16, (CONSTANT * np.abs(mean)) ** 2))
    if not len(used):
        expected, remedy = "some column must vary", "rescale the columns, or leave constant ones out"
        raise DataError(
            sentence("DiscriminantSubspace", expected, "columns that are constant, or too small to square", remedy)
        )
    scale = np.sqrt(variance[used])
    Wn, Bn = symmetric(W[np.ix_(used, used)] / scale / scale[:, None]), between[:, used] / scale
    values, vectors = np.linalg.eigh(Wn + Bn.T @ Bn)
    keep = values > RANK * values[-1]
    lost = int(((values > LOST * values[-1]) & ~keep).sum())
    if lost:
        what = "direction is" if lost == 1 else "directions are"
        warn(
            f"DiscriminantSubspace: {lost} {what} nearly singular (1e-6 of the largest deviation) and dropped: "
            "rescale first"
        )
    root = vectors[:, keep] / np.sqrt(values[keep])
    U = np.zeros((len(variance), int(keep.sum())))
    U[used] = root / scale[:, None]
    return _Frame(U, Bn @ root, symmetric(root.T @ Wn @ root), values[keep], root)


def _chosen(frame: _Frame, components: int | None, K: int, beyond: bool) -> tuple[Array, Array]:
    """Directions (q, d) and their within-class shares of the variance (q,): the largest ratios first."""
    _, shares, turns = np.linalg.svd(frame.between, full_matrices=True)
    rank = int((shares**2 > NOTHING).sum())
    q = rank if components is None else int(components)
    most = len(turns) if beyond else rank
    if rank == 0 and not beyond:
        raise DataError(
            sentence("DiscriminantSubspace", "class means must differ", "one mean for all", "name other classes")
        )
    if q > most:
        remedy = "keep fewer" if beyond else 'keep fewer, or choose criterion="determinant"'
        why = "rows vary" if beyond else f"{K} classes differ"
        expected = f"at most {most} axes: {why} in no more directions"
        raise DomainError(sentence("DiscriminantSubspace", expected, q, remedy))
    first = canonical_basis(shares[:rank] ** 2, turns[:rank].T, frame=frame.columns).T
    turns = np.concatenate([first, _by_variance(turns[rank:], frame)])[: max(q, 1)]
    inner = np.einsum("qi,ij,qj->q", turns, frame.within, turns)
    inner = np.maximum.accumulate(np.where(inner > FLAT, np.minimum(inner, 1.0), 0.0))  # descending ratios
    return np.ascontiguousarray(
        with_canonical_signs(frame.U @ turns.T).T / np.sqrt(np.maximum(inner, FLAT))[:, None]
    ), inner


def _available_so_far(frame: _Frame, components: int | None, beyond: bool) -> int:
    """Number of directions available so far in a stream: at least one."""
    rank = int((np.linalg.svd(frame.between, compute_uv=False) ** 2 > NOTHING).sum())
    most = len(frame.variances) if beyond else rank
    return max(min(rank if components is None else int(components), most), 1)


def _by_variance(rest: Array, frame: _Frame) -> Array:
    """Directions (m, r) without class differences, rotated to descending variances of the columns."""
    if not len(rest):
        return rest
    values, vectors = np.linalg.eigh((rest * frame.variances) @ rest.T)
    return canonical_basis(values[::-1], rest.T @ vectors[:, ::-1], frame=frame.columns).T

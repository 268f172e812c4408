"""Standard errors of a linear-Gaussian model from the observed information: the Hessian of log p(y) at the maximum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, SequencesLike
from likely.core.docstrings import complete
from likely.core.warnings import warn
from likely.numerics import spd
from likely.statespace.linear.kalman_filter import series_of
from likely.statespace.linear.linear_em import e_step
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import COVARIANCES, INITIAL, MATRICES, Structure
from likely.statespace.linear.log_likelihood_gradient import Coordinates, VarianceScales, gradients
from likely.statespace.linear.result_repr import matrix_words

STEP = (
    3e-5  # for numbers of size 1: central differences err by STEP², rounding of gradients adds 1e-14 / STEP per frame
)
UNDETERMINED = 1e-7  # information about a direction, as a share of that of complete data
STRAYS = 1e-6  # share of an entry in undetermined directions that makes it undetermined


@complete
@dataclass(frozen=True, eq=False)
class StandardErrors(Mapping[str, Array]):
    """Standard errors by parameter name, each in the shape of its matrix.

    They are 0 for fixed entries and infinite for entries that the data do not determine. The covariance is the inverse
    of the observed information −∂² log p / ∂θ∂θᵀ (Efron and Hinkley 1978).

    Parameters
    ----------
    errors : mapping of str to ndarray
        Standard errors by parameter name.
    names : tuple of str
        Names of the m free entries.
    covariance : ndarray (m, m)
        Covariance of their estimates.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> level = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=1.0)
    >>> y = level.sample(1, np.random.default_rng(0), length=400)
    >>> found = lk.statespace.standard_errors(level, y, ["observation_covariance"])
    >>> found.names, bool(0.05 < found["observation_covariance"].item() < 0.3)
    (('observation_covariance[0, 0]',), True)
    """

    errors: Mapping[str, Array]
    names: tuple[str, ...]
    covariance: Array

    def __getitem__(self, name: str) -> Array:
        return self.errors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.errors)

    def __len__(self) -> int:
        return len(self.errors)

    def __repr__(self) -> str:
        inside = "".join(f", {name}={matrix_words(a)}" for name, a in self.errors.items())
        return f"StandardErrors({len(self.names)} free {'entry' if len(self.names) == 1 else 'entries'}{inside})"


def standard_errors(
    model: Any, y: SequencesLike, learn: Any = None, form: Any = None, *, weight: ArrayLike | None = None,
    inputs: SequencesLike | None = None, prior: Any = None,
) -> StandardErrors:  # fmt: skip
    """Standard errors from the observed information −∂² log p(y) / ∂θ∂θᵀ, at a model that was learned from y.

    The second derivatives are central differences of the exact gradient (Fisher's identity), two E-steps per free
    parameter. The errors are asymptotic, for a maximum in the interior; a variance estimated as 0 has none.

    Parameters
    ----------
    model : LinearGaussian
        The learned model.
    y : array-like (T, p) or sequences
        The observations that it was learned from; NaN is a missing value.
    learn : sequence of str, optional
        Names of the learned parameters, as in `ConstrainedLinearGaussian`.
    form : dict, optional
        Constraints of learned parameters by name.
    weight : array-like (n,), optional
        Weight per sequence.
    inputs : array-like or sequences, optional
        Known inputs (controls), one row per frame.
    prior : LinearPrior, optional
        Prior that was used; it counts as pseudo-observations.

    Returns
    -------
    StandardErrors
        Standard errors by parameter name.

    Examples
    --------
    >>> import likely as lk
    >>> y = np.sin(np.arange(60.0) ** 2)
    >>> known = lk.LinearGaussian(transition=[[0.5]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[0.0]], initial_mean=[0.0], initial_covariance=[[4 / 3]])
    >>> start = lk.statespace.ConstrainedLinearGaussian.of(known, ["process_covariance"])
    >>> found = lk.fit(start, lk.Ragged.of(y)).model.model
    >>> errors = standard_errors(found, y, ["process_covariance"])
    >>> (errors["process_covariance"] / found.process_covariance).round(3), float(np.sqrt(2 / 59).round(3))
    (array([[0.184]]), 0.184)
    """
    structure = Structure.of(model, learn, form)
    series = series_of(model, y, inputs)

    def collect(at: Any) -> LinearStats:
        stats = e_step(at, series_of(at, y, inputs) if _changes_inputs(structure) else series, weight)
        return stats if prior is None else stats + prior.stats

    coordinates = Coordinates(model, collect(model), structure)
    information, counts = _information(model, coordinates, collect)
    return _reported(model, structure, coordinates, information, counts)


def _changes_inputs(structure: Structure) -> bool:
    return "control" in structure.learn or "feedthrough" in structure.learn


def _information(model: Any, coordinates: Coordinates, collect: Callable[[Any], LinearStats]) -> tuple[Array, Array]:
    """Observed information −∂² log p(y) along all directions (m, m), and the count of terms for each (m,)."""
    m = len(coordinates)
    out = np.empty((m, m))
    for j in range(m):
        ahead, behind = (_gradient(coordinates, j, by, collect) for by in (STEP, -STEP))
        out[j] = (behind - ahead) / (2.0 * STEP)
    return spd.symmetric(out), _counts(coordinates, collect(model))


def _counts(coordinates: Coordinates, stats: LinearStats) -> Array:
    """Counts per direction: transitions, observed frames or initial states, whichever the parameter depends on."""
    counts_by_name = {
        "transition": stats.n_transitions,
        "process_covariance": stats.n_transitions,
        "initial_mean": stats.n_initial,
        "initial_covariance": stats.n_initial,
    }
    each = [np.full(len(p.directions), float(counts_by_name.get(_of(p), stats.n_observed))) for p in coordinates.pieces]
    return np.maximum(np.concatenate([np.empty(0), *each]), 1e-300)


def _gradient(coordinates: Coordinates, j: int, by: float, collect: Callable[[Any], LinearStats]) -> Array:
    """The gradient along all directions, one step away in direction j."""
    at = coordinates.model.replace(**_stepped_parameters(coordinates, j, by))
    found = gradients(at, collect(at))
    return np.concatenate([_piece_gradient(piece, at, found) for piece in coordinates.pieces])


def _piece_gradient(piece: Any, at: Any, found: dict[str, Array]) -> Array:
    gradient = found[_of(piece)]
    if isinstance(piece, VarianceScales) and gradient.ndim == 0:  # from d/d log scale to d/d scale
        first = np.flatnonzero(piece.base)[0]
        return np.full(
            len(piece.directions),
            gradient * piece.base.flat[first] / getattr(at, piece.name).flat[first],
        )
    return np.tensordot(piece.directions, gradient, axes=gradient.ndim)


def _of(piece: Any) -> str:
    return getattr(piece, "name", None) or getattr(piece, "names", ("initial_mean",))[0]


def _stepped_parameters(coordinates: Coordinates, j: int, by: float) -> dict[str, Array]:
    """Parameters of the model after a straight step in direction j."""
    k = int(np.searchsorted(coordinates.edges, j, side="right")) - 1
    piece, i = coordinates.pieces[k], j - int(coordinates.edges[k])
    if not hasattr(piece, "name"):  # matrices and means are linear in θ
        theta = np.zeros(len(piece.directions))
        theta[i] = by
        return piece.parts(theta)
    return {piece.name: getattr(coordinates.model, piece.name) + by * piece.directions[i]}


def _reported(
    model: Any, structure: Structure, coordinates: Coordinates, information: Array, counts: Array
) -> StandardErrors:
    units = 1.0 / np.sqrt(counts)  # complete-data information is 1 in these units
    values, vectors = np.linalg.eigh(information * units[:, None] * units[None, :])
    determined, vectors = values > UNDETERMINED, units[:, None] * vectors
    names, rows, errors = [], [], {}
    for name in (n for n in (*MATRICES, *COVARIANCES, *INITIAL) if n in structure.learn):
        changes = _changes(model, coordinates, name)  # (m, *shape)
        changes_flat = changes.reshape(len(changes), -1).T @ vectors
        errors[name] = _deviations(changes_flat, determined, values).reshape(changes.shape[1:])
        for at in _free_entries(changes, name in (*COVARIANCES, "initial_covariance")):
            names.append(f"{name}[{', '.join(map(str, at))}]")
            rows.append(_entry(changes, at) @ vectors)
    table = np.array(rows).reshape(len(rows), len(values))
    if not determined.all():
        undetermined = ~np.isfinite(_deviations(table, determined, values))
        message = ", ".join([n for n, gone in zip(names, undetermined, strict=True) if gone][:5])
        warn(f"standard_errors: the data do not determine {message}: learn fewer parameters, or fix some entries")
    return StandardErrors(errors, tuple(names), _covariance(table, determined, values))


def _changes(model: Any, coordinates: Coordinates, name: str) -> Array:
    """Derivative of each entry of a parameter along every direction (m, *shape)."""
    out = np.zeros((len(coordinates), *getattr(model, name).shape))
    for k, piece in enumerate(coordinates.pieces):
        at = slice(int(coordinates.edges[k]), int(coordinates.edges[k + 1]))
        if name in getattr(piece, "names", ()):
            first = name == piece.names[0]
            out[at] = piece.directions[:, :, : piece.d] if first else piece.directions[:, :, piece.d :]
        elif _of(piece) == name:
            out[at] = piece.directions
    return out


def _entry(changes: Array, at: tuple[int, ...]) -> Array:
    """Derivative of one entry along every direction (m,)."""
    index: Any = (slice(None), *at)
    return np.asarray(changes[index])


def _deviations(changes_flat: Array, determined: Any, values: Array) -> Array:
    """Standard deviations of entries with derivatives along eigenvectors as rows; infinite if undetermined."""
    variance = (changes_flat[:, determined] ** 2 / values[determined]).sum(axis=1)
    outside = (changes_flat[:, ~determined] ** 2).sum(axis=1) > STRAYS**2 * np.maximum(
        (changes_flat**2).sum(axis=1), 1e-300
    )
    return np.where(outside, np.inf, np.sqrt(variance))


def _covariance(table: Array, determined: Any, values: Array) -> Array:
    each = _deviations(table, determined, values) if len(table) else np.empty(0)
    out = (table[:, determined] / values[determined]) @ table[:, determined].T
    undetermined = ~np.isfinite(each)
    out[undetermined], out[:, undetermined] = 0.0, 0.0
    out[undetermined, undetermined] = np.inf
    return spd.symmetric(out)


def _free_entries(changes: Array, symmetric: bool) -> list[tuple[int, ...]]:
    """Free entries, one per group of entries that share a value; the upper triangle of a covariance."""
    counts_by_name: list[Array] = []
    out = []
    for at in np.ndindex(changes.shape[1:]):
        row = _entry(changes, at)
        if (symmetric and at[-2] > at[-1]) or not row.any() or any(_parallel(row, other) for other in counts_by_name):
            continue
        counts_by_name.append(row)
        out.append(at)
    return out


def _parallel(a: Array, b: Array) -> bool:
    return bool(abs(a @ b) >= (1.0 - 1e-12) * np.linalg.norm(a) * np.linalg.norm(b))

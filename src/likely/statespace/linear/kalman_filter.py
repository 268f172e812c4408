"""The Kalman filter over sequences: arranges frames for the compiled passes and hands back what they found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, BadEntry, Index, refuse_infinite, rows
from likely.core.columns import Columns
from likely.core.covariates import COVARIATES, FRAMES, table, with_covariates
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.hmm.decoding import PassedOver
from likely.hmm.hmm import BadFrame
from likely.statespace.linear.result_repr import states_words
from likely.statespace.linear.state_belief import Loose, loose_moments

PART = 65_536  # frames that a thread takes at a time
HUGE = 1e150  # a number whose square may leave the range of numbers once a few are added
ME = "LinearGaussian"


class States(NamedTuple):
    """The state of every frame: mean (T, d), covariance (T, d, d), and log p of all that was seen.

    Of many sequences `mean` and `covariance` are Ragged and log_prob (n,).
    """

    mean: Any
    covariance: Any
    log_prob: Any

    @property
    def std(self) -> Any:
        """Standard deviations (T, d)."""
        return _by_frame(_deviations, self.covariance)

    @property
    def variance(self) -> Any:
        """Variances (T, d)."""
        return _by_frame(_variances, self.covariance)

    def __repr__(self) -> str:
        return states_words("States", self.mean, self.log_prob)


def _deviations(covariance: Array) -> Array:
    return np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))


def _variances(covariance: Array) -> Array:
    return np.array(np.diagonal(covariance, axis1=-2, axis2=-1))


def _by_frame(f: Callable[[Array], Array], covariance: Any) -> Any:
    """f of the covariances of one sequence, or of each of several."""
    return covariance.map(f) if isinstance(covariance, Ragged) else f(covariance)


class Smoothed(NamedTuple):
    """`States` given all frames, and lag_one[t] = Cov(x_t, x_{t−1}) (zero at the first frame)."""

    mean: Any
    covariance: Any
    log_prob: Any
    lag_one: Any

    @property
    def std(self) -> Any:
        """Standard deviations (T, d)."""
        return _by_frame(_deviations, self.covariance)

    @property
    def variance(self) -> Any:
        """Variances (T, d)."""
        return _by_frame(_variances, self.covariance)

    def __repr__(self) -> str:
        return states_words("Smoothed", self.mean, self.log_prob)


class Series(NamedTuple):
    """Sequences in the form that loops take: y without what inputs add to it, and what inputs add to the state."""

    y: Array  # (F, p)
    offsets: Index
    push: Array  # (F, d), or (1, d) of zeros
    inputs: Array | None  # (F, k)

    def cut(self, a: int, b: int) -> Series:
        """Sequences a … b − 1."""
        first, last = int(self.offsets[a]), int(self.offsets[b])
        push = self.push if self.inputs is None else self.push[first:last]
        inputs = None if self.inputs is None else self.inputs[first:last]
        return Series(self.y[first:last], self.offsets[a : b + 1] - first, push, inputs)


@dataclass
class Kept:
    """What a filter pass leaves behind, where the smoother finds it."""

    means: Array
    roots: Array
    same: Any
    news: Array
    total: Array
    tied: Index
    loose: tuple[Array, Array, Array, Array, Array]  # m, U, M a frame; δ and its root a sequence
    rows: Array  # (F, q + 1, q + 1): what each frame knows of δ

    @classmethod
    def room(cls, series: Series, d: int, q: int, keeps: bool) -> Kept:
        """Empty arrays; those of frames only where they are kept."""
        F, n = len(series.y), len(series.offsets) - 1
        some, unknown = (F if keeps else 0), (F if keeps and q else 0)
        loose = (np.empty((unknown, d)), np.empty((unknown, d, d)), np.empty((unknown, d, q)), np.zeros((n, q)),
                 np.zeros((n, q, q)))  # fmt: skip
        return cls(np.empty((some, d)), np.empty((some, d, d)), np.empty(some, np.uint8), np.empty(some), np.zeros(n),
                   np.zeros(n, np.int64), loose, np.empty((unknown, q + 1, q + 1)))  # fmt: skip


def series_of(model: Any, y: Any, inputs: Any = None) -> Series:
    """Sequences checked against the model: widths, lengths, infinities."""
    seqs = Ragged.of(y) if inputs is None else with_covariates(y, inputs)
    u = None
    values = seqs.values
    if isinstance(values, Columns) and {FRAMES, COVARIATES} <= set(values):
        values, u = values[FRAMES], table(values[COVARIATES])
    frames = _frames(values, model.dim, y)
    try:
        refuse_infinite(frames, ME)
    except BadEntry as error:
        raise BadFrame.of(error, seqs.offsets) from None
    longest = int(seqs.lengths.max(initial=0))
    if model.length is not None and longest > model.length:
        expected = f"a model of {model.length} frames needs sequences of at most as many"
        raise ShapeError(sentence(ME, expected, longest, "give matrices for every frame, or constant ones"))
    return _with_inputs(model, np.ascontiguousarray(frames), seqs.offsets, u)


def _frames(values: Any, dim: int, y: Any) -> Array:
    """Frames (F, p); a list of rows is many sequences of one column, and the error says so."""
    try:
        return rows(values, dim, ME)
    except ShapeError:
        if isinstance(y, list | tuple) and np.ndim(values) == 1 and all(np.size(row) == dim for row in y):
            expected = f"frames must have {dim} columns; a list holds sequences, not rows"
            raise ShapeError(
                sentence(ME, expected, f"a list of {len(y)}", "for one sequence write np.array(y)")
            ) from None
        raise


def _with_inputs(model: Any, y: Array, offsets: Index, u: Array | None) -> Series:
    if model.n_inputs and u is None:
        raise DataError(sentence(ME, f"this model has {model.n_inputs} inputs", "none", "give inputs="))
    if u is not None and u.shape[1] != model.n_inputs:
        raise ShapeError(sentence(ME, f"inputs must have {model.n_inputs} columns", u.shape[1]))
    if not model.n_inputs:
        return Series(y, offsets, np.zeros((1, model.states)), None)
    assert u is not None
    if not np.isfinite(u).all():
        f = int(np.argmin(np.isfinite(u).all(axis=1)))
        i = int(np.searchsorted(offsets, f, side="right")) - 1
        raise DataError(sentence(ME, "inputs must be known", f"sequence {i}, frame {f - int(offsets[i])} has gaps"))
    y = y - added(u, model.feedthrough, offsets) if model.feedthrough is not None else y
    push = added(u, model.control, offsets) if model.control is not None else np.zeros((len(y), model.states))
    return Series(np.ascontiguousarray(y), offsets, np.ascontiguousarray(push), u)


def locked(a: Any) -> Any:
    """A read-only view: the loops are compiled for one kind of memory."""
    if a.flags.writeable:
        a = a.view()
        a.setflags(write=False)
    return a


def added(u: Array, by: Array, offsets: Index) -> Array:
    """What inputs (F, k) add through a matrix (r, k), or through one per frame (T, r, k)."""
    if by.ndim == 2:
        return u @ by.T
    t = np.arange(len(u)) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.einsum("frk,fk->fr", by[t], u)


def parts_of(offsets: Index, frames: int = PART) -> list[tuple[int, int]]:
    """Sequences a … b − 1 that together have about so many frames."""
    n = len(offsets) - 1
    if not n:
        return [(0, 0)]
    edges = np.searchsorted(offsets, np.arange(frames, int(offsets[-1]) + frames, frames), side="left")
    edges = np.unique(np.clip(np.concatenate([[0], edges, [n]]), 0, n))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def in_parts(f: Callable[[Series, int], Any], series: Series) -> list[Any]:
    """f(part, number of its first sequence) over parts of the sequences, in threads where there are several."""
    parts = parts_of(series.offsets)
    with one_blas_thread():
        return list(ordered_map(lambda ab: f(series.cut(*ab), ab[0]), parts, cores()))


def filtered(model: Any, series: Series, keeps: bool = True) -> Kept:
    """One filter pass over all sequences of a part."""
    from likely.statespace.linear import _loops as kalman

    m = model.matrices
    n, d, q = len(series.offsets) - 1, model.states, m.E.shape[1]
    kept = Kept.room(series, d, q, keeps)
    frames = m.A, m.N, m.C, m.R, locked(series.push), locked(series.y), locked(series.offsets)
    outcome = kept.means, kept.roots, kept.same, kept.news, kept.total
    mean, root, at = m.m[None], m.U[None], kept.tied
    if q:  # frames before the start is known have a loop of their own: few models need it, and it compiles long
        mean, root = np.empty((n, d)), np.empty((n, d, d))
        kalman.diffuse_pass(*frames, m.m, m.U, m.E, 0, *outcome, kept.tied, *kept.loose, kept.rows, mean, root)
        at = np.minimum(kept.tied + 1, np.diff(series.offsets))
    kalman.filter_pass(*frames, locked(mean), locked(root), 0, locked(at), *outcome)
    if np.isnan(kept.total).any():
        came = f"a state of {model.states} entries that left it after {len(series.y)} frames or sooner"
        remedy = "the transition makes states explode: look at its eigenvalues"
        raise DomainError(sentence(ME, "states must stay in the range of numbers", came, remedy))
    return kept


def passed_over(kept: Kept, series: Series, before: int) -> list[PassedOver]:
    """Sequences of a part with frames that cannot be, which changed no belief."""
    cannot = np.flatnonzero(np.isneginf(kept.news))
    of = np.searchsorted(series.offsets, cannot, side="right") - 1
    return [PassedOver(before + int(n), (cannot[of == n] - series.offsets[n]).tolist()) for n in np.unique(of)]


def covariances(kept: Kept, series: Series) -> tuple[Array, Array]:
    """Filtered means and covariances, with infinite variances while the start is unknown."""
    means, cov = kept.means, np.matmul(np.swapaxes(kept.roots, 1, 2), kept.roots)
    for n in np.flatnonzero(kept.tied > 0).tolist():
        a = int(series.offsets[n])
        for f in range(a, a + int(kept.tied[n])):
            means[f], cov[f] = _unknown(kept, f)
    return means, cov


def _unknown(kept: Kept, f: int) -> tuple[Array, Array]:
    m, U, M = (kept.loose[i][f] for i in range(3))
    q = M.shape[1]
    so_far = Loose.trusted(
        mean=m, root=U, spread=M, basis=np.eye(q), point=np.zeros(q), rows=kept.rows[f], free=q, known=0.0
    )
    return loose_moments(so_far)


def refuse_huge(series: Series) -> None:
    """Entries whose squares are beyond the range of numbers: nothing can be learned from moments that hold them."""
    bad = np.argwhere(np.abs(series.y) > HUGE)
    if len(bad):
        f, column = bad[0].tolist()
        told = (f"{ME}.collect", "the squares of frames must be numbers", f"{series.y[f, column]:g}", f, column,
                "correct it, or replace it by NaN")  # fmt: skip
        n = int(np.searchsorted(series.offsets, f, side="right")) - 1
        raise BadFrame(told, n, f - int(series.offsets[n]))

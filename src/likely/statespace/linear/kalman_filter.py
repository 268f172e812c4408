"""Kalman filter over sequences: input validation, effect of inputs, forward pass, filtered means and covariances.

The recursion is in `_loops.py`: `filter_pass`, and `predict_one` and `update_one` for single frames; that of short
sequences is in `short_sequences.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, BadEntry, Index, Mask, refuse_infinite, rows
from likely.core.columns import Columns
from likely.core.covariates import COVARIATES, FRAMES, table, with_covariates
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import BadFrame, Ragged
from likely.hmm.decoding import SkippedFrames
from likely.statespace.linear.diffuse_initialization import DiffusePart, diffuse_moments
from likely.statespace.linear.result_repr import states_words
from likely.statespace.linear.short_sequences import are_short, filter_short, loop_for

PART = 65_536  # frames per task of a thread
HUGE = 1e150  # a number whose square may overflow once a few are added
ME = "LinearGaussian"


class States(NamedTuple):
    """Means (T, d) and covariances (T, d, d) of the states, and the log-likelihood of the observations.

    For many sequences `mean` and `covariance` are Ragged and log_prob has shape (n,).
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
    """f applied to the covariances of one sequence, or of each sequence of a Ragged."""
    return covariance.map(f) if isinstance(covariance, Ragged) else f(covariance)


class Smoothed(NamedTuple):
    """Smoothed `States`, p(x_t | all frames), and lag_one[t] = Cov(x_t, x_{t−1} | all frames), 0 at the first frame."""

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
    """Sequences in the form that the compiled loops take: y − G u, and the state intercepts F u."""

    y: Array  # (F, p)
    offsets: Index
    intercept: Array  # (F, d), or (1, d) of zeros
    inputs: Array | None  # (F, k)

    def cut(self, a: int, b: int) -> Series:
        """Sequences a … b − 1."""
        first, last = int(self.offsets[a]), int(self.offsets[b])
        intercept = self.intercept if self.inputs is None else self.intercept[first:last]
        inputs = None if self.inputs is None else self.inputs[first:last]
        return Series(self.y[first:last], self.offsets[a : b + 1] - first, intercept, inputs)


@dataclass
class FilterOutput:
    """Output of a filter pass: filtered moments, log-likelihoods, and the augmented filter of the diffuse phase."""

    means: Array  # (F, d)
    roots: Array  # (F, d, d): square roots of the filtered covariances
    is_steady: Any  # (F,): 1 where the root is that of the frame before
    increments: Array  # (F,): log p(y_t | y_1 … y_{t−1})
    total: Array  # (n,): log-likelihood
    diffuse_end: Index  # (n,): frame at which the initial state is determined; the length if never
    diffuse_part: tuple[Array, Array, Array, Array, Array]  # m, U, M per frame; mean and root of δ per sequence
    information: Array  # (F, q + 1, q + 1): square-root information array of δ
    is_short: Mask  # (n,): filtered without compiled loops

    @classmethod
    def empty(cls, series: Series, d: int, q: int, keeps: bool) -> FilterOutput:
        """Arrays to be filled by the pass; those per frame are empty unless `keeps`."""
        F, n = len(series.y), len(series.offsets) - 1
        n_kept, n_diffuse = (F if keeps else 0), (F if keeps and q else 0)
        diffuse_part = (np.empty((n_diffuse, d)), np.empty((n_diffuse, d, d)), np.empty((n_diffuse, d, q)),
                        np.zeros((n, q)), np.zeros((n, q, q)))  # fmt: skip
        return cls(
            means=np.empty((n_kept, d)), roots=np.empty((n_kept, d, d)), is_steady=np.empty(n_kept, np.uint8),
            increments=np.empty(n_kept), total=np.zeros(n), diffuse_end=np.zeros(n, np.int64),
            diffuse_part=diffuse_part, information=np.empty((n_diffuse, q + 1, q + 1)), is_short=np.zeros(n, bool),
        )  # fmt: skip

    def cut(self, series: Series, a: int, b: int) -> FilterOutput:
        """The part of sequences a … b − 1, as views."""
        at, of = slice(int(series.offsets[a]), int(series.offsets[b])), slice(a, b)
        m, U, M, delta, D = self.diffuse_part
        return FilterOutput(
            self.means[at], self.roots[at], self.is_steady[at], self.increments[at], self.total[of],
            self.diffuse_end[of], (m[at], U[at], M[at], delta[of], D[of]), self.information[at], self.is_short[of],
        )  # fmt: skip


def series_of(model: Any, y: Any, inputs: Any = None) -> Series:
    """Validated sequences: widths, lengths and inputs that fit the model, no infinities."""
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
    """Frames (F, p); a list of rows means many sequences of one column, and the error says so."""
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
        got = f"missing or infinite values in sequence {i}, frame {f - int(offsets[i])}"
        raise DataError(sentence(ME, "inputs must be finite", got))
    y = y - added(u, model.feedthrough, offsets) if model.feedthrough is not None else y
    intercept = added(u, model.control, offsets) if model.control is not None else np.zeros((len(y), model.states))
    return Series(np.ascontiguousarray(y), offsets, np.ascontiguousarray(intercept), u)


def read_only(a: Any) -> Any:
    """A read-only view: the loops are compiled for read-only arrays."""
    if a.flags.writeable:
        a = a.view()
        a.setflags(write=False)
    return a


def added(u: Array, by: Array, offsets: Index) -> Array:
    """Effect of inputs (F, k) through a matrix (r, k), or through one matrix per frame (T, r, k)."""
    if by.ndim == 2:
        return u @ by.T
    t = np.arange(len(u)) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.einsum("frk,fk->fr", by[t], u)


def split_sequences(offsets: Index, frames: int = PART) -> list[tuple[int, int]]:
    """Ranges [a, b) of sequences that together have about `frames` frames."""
    n = len(offsets) - 1
    if not n:
        return [(0, 0)]
    edges = np.searchsorted(offsets, np.arange(frames, int(offsets[-1]) + frames, frames), side="left")
    edges = np.unique(np.clip(np.concatenate([[0], edges, [n]]), 0, n))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def map_parts(f: Callable[[Series, int], Any], series: Series) -> list[Any]:
    """f(part, index of its first sequence) over parts of the sequences, in threads if there are several cores."""
    parts = split_sequences(series.offsets)
    with one_blas_thread():
        return list(ordered_map(lambda ab: f(series.cut(*ab), ab[0]), parts, cores()))


def filter_part(model: Any, series: Series, keeps: bool = True) -> FilterOutput:
    """Forward pass of the Kalman filter over all sequences of a part."""
    from likely.statespace.linear import _loops as kalman

    m = model.matrices
    n, d, q = len(series.offsets) - 1, model.states, m.E.shape[1]
    filtered = FilterOutput.empty(series, d, q, keeps)
    filtered.is_short = are_short(model, series)
    mean, root, at = m.m[None], m.U[None], np.zeros(n, np.int64)
    if q:  # the diffuse phase has a loop of its own: few models need it, and its compilation is long
        mean, root = np.empty((n, d)), np.empty((n, d, d))
        loop_for(kalman.diffuse_pass, model, len(series.y))(
            *_frames_for_loops(m, series), m.m, m.U, m.E, 0, *_outputs(filtered), filtered.diffuse_end,
            *filtered.diffuse_part, filtered.information, mean, root,
        )  # fmt: skip
        at = np.minimum(filtered.diffuse_end + 1, np.diff(series.offsets))
    at = filter_short(m, series, mean, root, at, filtered)
    left = int((np.diff(series.offsets) - at).sum())
    if left:
        frames = _frames_for_loops(m, series)
        loop_for(kalman.filter_pass, model, left)(
            *frames, read_only(mean), read_only(root), 0, read_only(at), *_outputs(filtered)
        )
    if np.isnan(filtered.total).any():
        got = f"a state of {model.states} entries that overflowed within {len(series.y)} frames"
        remedy = "the transition matrix is unstable: inspect its eigenvalues"
        raise DomainError(sentence(ME, "states must not overflow", got, remedy))
    return filtered


def _frames_for_loops(m: Any, series: Series) -> tuple[Array, ...]:
    return m.A, m.N, m.C, m.R, read_only(series.intercept), read_only(series.y), read_only(series.offsets)


def _outputs(filtered: FilterOutput) -> tuple[Array, ...]:
    return filtered.means, filtered.roots, filtered.is_steady, filtered.increments, filtered.total


def equal_runs(flags: Any) -> list[tuple[int, int]]:
    """Ranges [a, b) of sequences with equal flags."""
    edges = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    return list(pairwise(edges)) if len(flags) else []


def skipped_frames(filtered: FilterOutput, series: Series, before: int) -> list[SkippedFrames]:
    """Sequences of a part with frames of probability 0, which were treated as missing."""
    impossible = np.flatnonzero(np.isneginf(filtered.increments))
    of = np.searchsorted(series.offsets, impossible, side="right") - 1
    return [SkippedFrames(before + int(n), (impossible[of == n] - series.offsets[n]).tolist()) for n in np.unique(of)]


def filtered_moments(filtered: FilterOutput, series: Series) -> tuple[Array, Array]:
    """Filtered means and covariances, with infinite variances during the diffuse phase."""
    means, cov = filtered.means, np.matmul(np.swapaxes(filtered.roots, 1, 2), filtered.roots)
    for n in np.flatnonzero(filtered.diffuse_end > 0).tolist():
        a = int(series.offsets[n])
        for f in range(a, a + int(filtered.diffuse_end[n])):
            means[f], cov[f] = _diffuse_moments_at(filtered, f)
    return means, cov


def _diffuse_moments_at(output: FilterOutput, f: int) -> tuple[Array, Array]:
    """Filtered mean and covariance of frame f in the diffuse phase."""
    m, U, M = (output.diffuse_part[i][f] for i in range(3))
    q = M.shape[1]
    part = DiffusePart.trusted(
        mean=m, root=U, loadings=M, basis=np.eye(q), offset=np.zeros(q), information_root=output.information[f],
        n_free=q, log_prob=0.0,
    )  # fmt: skip
    return diffuse_moments(part)


def refuse_huge(series: Series) -> None:
    """Refuse entries whose squares overflow: no moments can be computed from them."""
    bad = np.argwhere(np.abs(series.y) > HUGE)
    if len(bad):
        f, column = bad[0].tolist()
        message = (f"{ME}.collect", "the squares of frames must be finite", f"{series.y[f, column]:g}", f, column,
                "correct it, or replace it by NaN")  # fmt: skip
        n = int(np.searchsorted(series.offsets, f, side="right")) - 1
        raise BadFrame(message, n, f - int(series.offsets[n]))

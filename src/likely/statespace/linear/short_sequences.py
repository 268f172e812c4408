"""Kalman filter and smoother of short complete sequences in NumPy: the reference of the compiled loops.

Without missing entries and with constant matrices, roots and gains depend on the model and on the number of the frame
only. They are computed once, by QR factorizations, until they are steady; means of all sequences are then computed
together, frame by frame. Sums over states are taken term by term, so that a sequence has the same bits in any company.
Letters as in `_loops`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.job_size import is_short

CALLS = 100  # of NumPy per frame, in units of the operations that they take the time of
E_STEP = 2.0  # work of a visit in a fit, filter, smoother and moments, in units of a filter step
PLAIN = 3.0  # the same of a loop in plain Python, in units of the steps here
SINGULAR = 1e-10  # share of a column's norm below which its pivot may be rounding: left to the loops
STEADY = 4e-15  # change of a root, in units of the standard deviation, below which it has converged
HALF_LOG_2PI = 0.9189385332046727


class Gains(NamedTuple):
    """What a filter step needs, by frame; the last entry is steady."""

    innovation: Array  # (T, p, p): root S of the innovation covariance
    gain: Array  # (T, p, d): the mean gains its transpose times S⁻ᵀ e
    root: Array  # (T, d, d): filtered root
    log_norm: Array  # (T,): −Σ log of the pivots of S, and constants
    frames: float  # length up to which they serve


def are_short(model: Any, series: Any) -> Mask:
    """Sequences (n,) that are filtered here: short for the model, complete, with constant matrices."""
    m, lengths = model.matrices, np.diff(series.offsets)
    constant = all(len(a) == 1 for a in (m.A, m.N, m.C, m.R))
    work = _work(model)
    short = np.asarray(is_short(lengths, work, E_STEP * work)) & (lengths > 0) & constant
    if short.any():
        gaps = np.flatnonzero(np.isnan(series.y).any(axis=1))
        short[np.searchsorted(series.offsets, gaps, side="right") - 1] = False
    return short


def loop_for(loop: Any, model: Any, frames: int) -> Any:
    """A loop in plain Python if all frames that it will see in this call are few, or a fit is small; else compiled.

    Both have the same bits, so sequences may share the decision.
    """
    work = _work(model)
    return loop.plain if is_short(frames, work, PLAIN * E_STEP * work) else loop.dispatcher


def _work(model: Any) -> float:
    return float(CALLS + (model.states + model.dim) ** 3)


def filter_short(m: Any, series: Any, mean: Array, root: Array, at: Index, out: Any) -> Index:
    """Filter the sequences that are short, number i from frame at[i] on, from `mean` and `root` before it, into `out`.

    Returns the frames from which sequences are left to the loops: those of `at` where a sequence is not short, a
    covariance becomes singular within its length, or a number overflows. `out.is_short` is updated.
    """
    left, lengths = at.copy(), np.diff(series.offsets)
    for first in np.unique(at[out.is_short]).tolist():  # after a diffuse phase; complete sequences have it in common
        chosen = np.flatnonzero(out.is_short & (at == first))
        gains = _gains(m, root[chosen[0] if len(root) > 1 else 0], first, int(lengths[chosen].max()))
        frames = 0.0 if gains is None else gains.frames
        out.is_short[chosen[lengths[chosen] > frames]] = False
        chosen = chosen[lengths[chosen] <= frames]
        if gains is None or not len(chosen):
            continue
        total = _filter_together(m, series, chosen, mean[chosen] if len(mean) > 1 else mean, first, gains, out)
        out.is_short[chosen[~np.isfinite(total)]] = False
        chosen, total = chosen[np.isfinite(total)], total[np.isfinite(total)]
        out.total[chosen] += total
        left[chosen] = lengths[chosen]
    return left


@np.errstate(all="ignore")
def _filter_together(m: Any, series: Any, chosen: Index, mean: Array, first: int, gains: Gains, out: Any) -> Array:
    """Filter sequences of one initial root; their log-likelihoods from frame `first` on."""
    longest_first = np.argsort(-np.diff(series.offsets)[chosen], kind="stable")
    starts, lengths = series.offsets[chosen[longest_first]], np.diff(series.offsets)[chosen[longest_first]]
    times = np.arange(first, int(lengths[0]))
    step, counts = np.minimum(times - first, len(gains.root) - 1), np.searchsorted(-lengths, -times)
    frames = [starts[:n] + t for t, n in zip(times.tolist(), counts.tolist(), strict=True)]
    x = np.broadcast_to(mean, (len(chosen), mean.shape[1]))[longest_first]
    means, white = [], []
    for at, t, g in zip(frames, times.tolist(), step.tolist(), strict=True):
        if t:
            x = _product(x[: len(at)], m.A[0]) + _intercept(series, at)
        z = series.y[at] - _product(x[: len(at)], m.C[0])
        for j, S in enumerate(gains.innovation[g].T):  # Sᵀ z = e
            z[:, j] = (z[:, j] - _product(z[:, :j], S[None, :j])[:, 0] if j else z[:, j]) / S[j]
        x = x[: len(at)] + _product(z, gains.gain[g].T)
        means.append(x)
        white.append(z)
    at, g, z = np.concatenate(frames), np.repeat(step, counts), np.concatenate(white)
    increments = gains.log_norm[g] - 0.5 * _product(z * z, np.ones((1, z.shape[1])))[:, 0]
    if len(out.means):
        out.means[at], out.roots[at], out.increments[at] = np.concatenate(means), gains.root[g], increments
        out.is_steady[at] = np.repeat(times - first, counts) >= len(gains.root)
    which = np.concatenate([longest_first[:n] for n in counts.tolist()])
    total: Array = np.bincount(which, increments, len(chosen)).astype(np.float64)  # frame after frame
    return total


def smooth_short(m: Any, series: Any, filtered: Any, out: Array, cov: Array, lag: Array) -> Mask:
    """Smooth the sequences that were filtered here and had no longer diffuse phase; True (n,) for those.

    Not those in which the covariance of a prediction is singular.
    """
    lengths = np.diff(series.offsets)
    done = filtered.is_short & (filtered.diffuse_end == 0)
    if not done.any():
        return done
    longest = int(np.argmax(np.where(done, lengths, 0)))
    at = slice(int(series.offsets[longest]), int(series.offsets[longest + 1]))
    steady = np.flatnonzero(filtered.is_steady[at])
    roots = filtered.roots[at][: steady[0] if len(steady) else None]
    J, given = _smoother_gains(m, roots)
    if len(J) < len(roots):
        done &= lengths <= len(J) + 1
    _smooth_together(m, series, np.flatnonzero(done), filtered, J, given, out, cov, lag)
    return done


def _smooth_together(
    m: Any, series: Any, chosen: Index, filtered: Any, gains: Array, given: Array, out: Array, cov: Array, lag: Array
) -> None:
    if not len(chosen):
        return
    chosen = chosen[np.argsort(-np.diff(series.offsets)[chosen], kind="stable")]
    starts, lengths, d = series.offsets[chosen], np.diff(series.offsets)[chosen], len(m.A[0])
    x, P = np.zeros((0, d)), np.zeros((0, d, d))
    for t in range(int(lengths[0]) - 1, -1, -1):
        frames = starts[: int(np.searchsorted(-lengths, -t))] + t
        k = len(x)  # sequences that have a later frame; for the others t is the last one
        mean = filtered.means[frames]
        if k:
            J = gains[min(t, len(gains) - 1)]
            e = x - _product(mean[:k], m.A[0]) - _intercept(series, frames[:k] + 1)
            L = np.einsum("nij,kj->nik", P, J)  # Cov(x_{t+1}, x_t)
            if len(lag):
                lag[frames[:k] + 1] = L
            x, P = mean[:k] + _product(e, J), np.einsum("ij,njk->nik", J, L) + given[min(t, len(given) - 1)]
        if k < len(frames):
            U = filtered.roots[frames[k:]]
            x, P = np.concatenate([x, mean[k:]]), np.concatenate([P, np.einsum("nki,nkj->nij", U, U)])
        out[frames], cov[frames] = x, P


def _gains(m: Any, U: Array, first: int, frames: int) -> Gains | None:
    """Gains of frames `first` … until they are steady or a covariance is singular; None if that is the first."""
    A, N, C, R = m.A[0], m.N[0], m.C[0], m.R[0]
    (p, d), found, until = C.shape, [], np.inf
    for t in range(first, frames):
        before = U
        predicted = _triangular(np.vstack([U @ A.T, N])) if t else U
        w = _triangular(np.block([[R, np.zeros((len(R), d))], [predicted @ C.T, predicted]]))
        if not (_is_regular(predicted) and _is_regular(w)):
            until = t
            break
        U = w[p:, p:]
        found.append((w[:p, :p], w[:p, p:], U, -np.log(np.diag(w)[:p]).sum() - p * HALF_LOG_2PI))
        if t > first and (np.abs(U - before) <= STEADY * np.linalg.norm(U, axis=0)).all():
            break
    if not found:
        return None
    innovation, gain, root, log_norm = (np.array(a) for a in zip(*found, strict=True))
    return Gains(innovation, gain, root, log_norm, until)


def _smoother_gains(m: Any, roots: Array) -> tuple[Array, Array]:
    """Gains J (T, d, d) = P_t Aᵀ P_{t+1|t}⁻¹, and Cov(x_t | x_{t+1}, y_1 … y_t), up to a singular P_{t+1|t}."""
    A, N, d = m.A[0], m.N[0], len(m.A[0])
    gains, given = [], []
    for U in roots:
        w = _triangular(np.block([[U @ A.T, U], [N, np.zeros((len(N), d))]]))
        if not _is_regular(w[:d, :d]):
            break
        gains.append(np.linalg.solve(w[:d, :d], w[:d, d:]).T)
        given.append(w[d:, d:].T @ w[d:, d:])
    return np.array(gains).reshape(-1, d, d), np.array(given).reshape(-1, d, d)


def _triangular(stack: Array) -> Array:
    """The triangular factor of a stack, with a diagonal that is not negative; large rows first, whose errors are."""
    r = np.linalg.qr(stack[np.argsort(-np.abs(stack).max(axis=1))], mode="r")
    return np.where(np.diag(r) < 0, -1.0, 1.0)[:, None] * r


def _is_regular(root: Array) -> bool:
    """True if no column depends on those before it."""
    return bool((np.abs(np.diag(root)) > SINGULAR * np.linalg.norm(root, axis=0)).all())


def _product(x: Array, a: Array) -> Array:
    """x aᵀ, summed term by term: a matrix product has other rounding for one row than for many."""
    out = x[:, :1] * a[:, 0]
    for j in range(1, a.shape[1]):
        out += x[:, j : j + 1] * a[:, j]
    return out


def _intercept(series: Any, frames: Index) -> Array:
    return series.intercept[frames] if len(series.intercept) == len(series.y) else series.intercept

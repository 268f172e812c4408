"""E-step of an HMM with covariate-dependent transitions: under all paths (Baum–Welch), or along the Viterbi path."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array, Index
from likely.hmm.baum_welch import in_double
from likely.hmm.driven import driven_forward_backward as recursions
from likely.hmm.driven.driven_decoding import long_path
from likely.hmm.driven.driven_forward_backward import Smoothed
from likely.hmm.driven.driven_pieces import DrivenData, Part
from likely.hmm.driven.driven_stats import DrivenStats
from likely.hmm.driven.logistic_transitions import gradient_and_curvature, path_gradient_and_curvature


def e_step(data: DrivenData, a: int, b: int, w: Array, hard: bool) -> DrivenStats:
    """Sufficient statistics of sequences a … b − 1 with weights w (b − a,)."""
    with np.errstate(all="ignore"):
        if not w.any():
            return _stats(data, data.block(a, a), _empty(data), np.empty(0), False)
        if data.is_cut(a, b):
            return (
                _hard_stats_long(data, a, w)
                if hard
                else recursions.scaled_or_log(lambda method: _soft_stats_long(data, a, w, method))
            )
        return _hard_stats(data, a, b, w) if hard else _soft_stats(data, a, b, w)


def _empty(data: DrivenData) -> Smoothed:
    K = data.model.states
    return Smoothed(np.empty((0, K)), np.empty((0, K, K)), np.empty(0))


def _soft_stats(data: DrivenData, a: int, b: int, w: Array) -> DrivenStats:
    part, initial = data.block(a, b), data.model.initial
    result = recursions.smoothed(initial, part.transition, part.logs, part.seqs.offsets)
    impossible = np.isneginf(result.log_prob) & (w > 0)
    if impossible.any():  # their frames count as missing: the objective reports it
        part = data.block(a, b, impossible)
        result = recursions.smoothed(initial, part.transition, part.logs, part.seqs.offsets)
        w = np.where(np.isneginf(result.log_prob), 0.0, w)
    return _stats(data, part, result, w, bool((w[impossible] == 0).any()))


def _soft_stats_long(
    data: DrivenData, i: int, w: Array, method: recursions.Pass, unobserved: bool = False
) -> DrivenStats:
    """Sum of the statistics over the pieces of one long sequence."""
    stats, total = None, 0.0
    for part, result in data.smoothed(i, method, unobserved):
        total += float(result.log_prob[0])
        if np.isneginf(total):
            break
        own = _stats(data, part, result, w, False)
        stats = own if stats is None else own + stats
    if stats is not None and np.isfinite(total):
        return stats
    if not unobserved:
        return _soft_stats_long(data, i, w, method, True)
    return _stats(data, data.block(i, i), _empty(data), np.empty(0), True)


def _hard_stats(data: DrivenData, a: int, b: int, w: Array) -> DrivenStats:
    part, initial = data.block(a, b), data.model.initial
    path, score = recursions.best_paths(initial, part.transition, part.logs, part.seqs.offsets)
    impossible = np.isneginf(score) & (w > 0)
    if impossible.any():
        part = data.block(a, b, impossible)
        path, score = recursions.best_paths(initial, part.transition, part.logs, part.seqs.offsets)
        w = np.where(np.isneginf(score), 0.0, w)
    before = np.concatenate([[-1], path])[:-1]
    before[part.seqs.offsets[:-1][part.seqs.lengths > 0]] = -1
    return _path_stats(data, part, path, before, w, bool((w[impossible] == 0).any()))


def _hard_stats_long(data: DrivenData, i: int, w: Array) -> DrivenStats:
    path, score = long_path(data, i)
    unobserved = bool(np.isneginf(score))
    if unobserved:
        path, score = long_path(data, i, True)
        if np.isneginf(score):
            return _stats(data, data.block(i, i), _empty(data), np.empty(0), True)
    before = np.concatenate([[-1], path])[:-1]
    pieces = (
        _path_stats(data, data.piece(i, a, z, unobserved), path[a:z], before[a:z], w, False) for a, z in data.pieces(i)
    )
    return reduce(add, pieces)


def _stats(data: DrivenData, part: Part, result: Smoothed, w: Array, lost: bool) -> DrivenStats:
    model, frame_weight = data.model, np.repeat(w, part.seqs.lengths)
    states, xi = result.states * frame_weight[:, None], result.transition
    xi *= frame_weight[:, None, None]
    gradient, curvature = gradient_and_curvature(xi, xi @ np.ones(model.states), part.transition.probs, part.z)
    fitted, initial = recursions.expected_score(xi, part.transition.logs), _initial_counts(part, states)
    total = float(w @ np.where(w > 0, result.log_prob, 0.0)) - recursions.expected_score(states, part.logs)
    entropy = -np.inf if lost else total - fitted - float(xlogy(initial, model.initial).sum())
    return DrivenStats.trusted(
        initial=initial, counts=states.sum(axis=0), entropy=np.asarray(entropy), fitted=np.asarray(fitted),
        emission=model.emission.collect(in_double(part.seqs.values), states), gradient=gradient, curvature=curvature,
        coefficients=model.coefficients,
    )  # fmt: skip


def _path_stats(data: DrivenData, part: Part, path: Index, before: Index, w: Array, lost: bool) -> DrivenStats:
    """Sufficient statistics along one path, which is taken as observed."""
    model, frame_weight = data.model, np.repeat(w, part.seqs.lengths)
    gradient, curvature, fitted = path_gradient_and_curvature(path, before, frame_weight, part.transition, part.z)
    states = np.eye(model.states)[path] * frame_weight[:, None]
    hard_option = {"hard": True} if getattr(model.emission, "hides_labels", False) else {}
    return DrivenStats.trusted(
        initial=_initial_counts(part, states), counts=states.sum(axis=0), entropy=np.asarray(-np.inf if lost else 0.0),
        emission=model.emission.collect(in_double(part.seqs.values), frame_weight, labels=path, **hard_option),
        gradient=gradient, curvature=curvature, fitted=np.asarray(fitted), coefficients=model.coefficients,
    )  # fmt: skip


def _initial_counts(part: Part, states: Array) -> Array:
    """Weight of the sequences that begin in each state (K,)."""
    first = part.seqs.offsets[:-1][part.seqs.lengths > 0] if part.begins else np.empty(0, dtype=np.intp)
    return np.asarray(states[first].sum(axis=0))

"""What a driven chain learns from sequences: under all paths, or along the best one."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array, Index
from likely.hmm.driven import driven_forward_backward as trellis
from likely.hmm.driven.driven_decoding import long_path
from likely.hmm.driven.driven_forward_backward import Smoothed
from likely.hmm.driven.driven_pieces import Look, Part
from likely.hmm.driven.driven_stats import DrivenStats
from likely.hmm.driven.logistic_transitions import evidence, path_evidence
from likely.hmm.hmm import _in_double


def looked(look: Look, a: int, b: int, w: Array, hard: bool) -> DrivenStats:
    """Statistics of sequences a … b − 1 with weights w (b − a,)."""
    with np.errstate(all="ignore"):
        if not w.any():
            return _stats(look, look.whole(a, a), _nothing(look), np.empty(0), False)
        if look.is_cut(a, b):
            return _along_long(look, a, w) if hard else trellis.either(lambda way: _of_long(look, a, w, way))
        return _along_paths(look, a, b, w) if hard else _of_all_paths(look, a, b, w)


def _nothing(look: Look) -> Smoothed:
    K = look.model.states
    return Smoothed(np.empty((0, K)), np.empty((0, K, K)), np.empty(0))


def _of_all_paths(look: Look, a: int, b: int, w: Array) -> DrivenStats:
    part, initial = look.whole(a, b), look.model.initial
    found = trellis.smoothed(initial, part.transition, part.logs, part.seqs.offsets)
    cannot = np.isneginf(found.log_prob) & (w > 0)
    if cannot.any():  # as if nothing had been seen of them: the objective says what is wrong
        part = look.whole(a, b, cannot)
        found = trellis.smoothed(initial, part.transition, part.logs, part.seqs.offsets)
        w = np.where(np.isneginf(found.log_prob), 0.0, w)
    return _stats(look, part, found, w, bool((w[cannot] == 0).any()))


def _of_long(look: Look, i: int, w: Array, way: trellis.Way, free: bool = False) -> DrivenStats:
    """Σ over the pieces of one long sequence."""
    stats, total = None, 0.0
    for part, found in look.smoothed(i, way, free):
        total += float(found.log_prob[0])
        if np.isneginf(total):
            break
        own = _stats(look, part, found, w, False)
        stats = own if stats is None else own + stats
    if stats is not None and np.isfinite(total):
        return stats
    if not free:
        return _of_long(look, i, w, way, True)
    return _stats(look, look.whole(i, i), _nothing(look), np.empty(0), True)


def _along_paths(look: Look, a: int, b: int, w: Array) -> DrivenStats:
    part, initial = look.whole(a, b), look.model.initial
    path, score = trellis.best_paths(initial, part.transition, part.logs, part.seqs.offsets)
    cannot = np.isneginf(score) & (w > 0)
    if cannot.any():
        part = look.whole(a, b, cannot)
        path, score = trellis.best_paths(initial, part.transition, part.logs, part.seqs.offsets)
        w = np.where(np.isneginf(score), 0.0, w)
    before = np.concatenate([[-1], path])[:-1]
    before[part.seqs.offsets[:-1][part.seqs.lengths > 0]] = -1
    return _path_stats(look, part, path, before, w, bool((w[cannot] == 0).any()))


def _along_long(look: Look, i: int, w: Array) -> DrivenStats:
    path, score = long_path(look, i)
    free = bool(np.isneginf(score))
    if free:
        path, score = long_path(look, i, True)
        if np.isneginf(score):
            return _stats(look, look.whole(i, i), _nothing(look), np.empty(0), True)
    before = np.concatenate([[-1], path])[:-1]
    pieces = (_path_stats(look, look.piece(i, a, z, free), path[a:z], before[a:z], w, False) for a, z in look.pieces(i))
    return reduce(add, pieces)


def _stats(look: Look, part: Part, found: Smoothed, w: Array, lost: bool) -> DrivenStats:
    model, each = look.model, np.repeat(w, part.seqs.lengths)
    states, pairs = found.states * each[:, None], found.transition
    pairs *= each[:, None, None]
    gradient, curvature = evidence(pairs, pairs @ np.ones(model.states), part.transition.probs, part.z)
    fitted, initial = trellis.expected_score(pairs, part.transition.logs), _begun(part, states)
    total = float(w @ np.where(w > 0, found.log_prob, 0.0)) - trellis.expected_score(states, part.logs)
    entropy = -np.inf if lost else total - fitted - float(xlogy(initial, model.initial).sum())
    return DrivenStats.trusted(
        initial=initial, counts=states.sum(axis=0), entropy=np.asarray(entropy), fitted=np.asarray(fitted),
        emission=model.emission.collect(_in_double(part.seqs.values), states), gradient=gradient, curvature=curvature,
        coefficients=model.coefficients,
    )  # fmt: skip


def _path_stats(look: Look, part: Part, path: Index, before: Index, w: Array, lost: bool) -> DrivenStats:
    """The same along one path, which hides nothing."""
    model, each = look.model, np.repeat(w, part.seqs.lengths)
    gradient, curvature, fitted = path_evidence(path, before, each, part.transition, part.z)
    states = np.eye(model.states)[path] * each[:, None]
    deeper = {"hard": True} if getattr(model.emission, "hides_labels", False) else {}
    return DrivenStats.trusted(
        initial=_begun(part, states), counts=states.sum(axis=0), entropy=np.asarray(-np.inf if lost else 0.0),
        emission=model.emission.collect(_in_double(part.seqs.values), each, labels=path, **deeper), gradient=gradient,
        curvature=curvature, fitted=np.asarray(fitted), coefficients=model.coefficients,
    )  # fmt: skip


def _begun(part: Part, states: Array) -> Array:
    """Weight of the sequences that begin in each state (K,)."""
    first = part.seqs.offsets[:-1][part.seqs.lengths > 0] if part.begins else np.empty(0, dtype=np.intp)
    return np.asarray(states[first].sum(axis=0))

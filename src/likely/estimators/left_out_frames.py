"""Surprises of frames under chains that had not learnt from them: what alarms of a live feed are set by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.engine import Threads, one_blas_thread
from likely.core.learn import gather
from likely.core.notes import unheard
from likely.core.ragged import Ragged
from likely.errors import LikelyError
from likely.estimators.alarms import MANY, PASSES
from likely.estimators.chain_tail import ChainTail
from likely.models.hmm import HMM

PARTS = 5  # each left out once
JUDGED = 3000  # frames that are asked, at most, or a few more
AGAIN = 4  # more steps of EM without a part, at most: every fit pays for them
ENTRY = 20  # frames before a part that is a piece of a sequence, in which the filter settles


def left_out_frames(density: Any, X: Ragged, weight: Any) -> Array:
    """(3, m): −log P(a frame at least as surprising | all before), its weight, and the stretch that it belongs to.

    Frames stand in the order of time. Sequences are dealt into parts; a few long ones are cut in time where their
    topology lets them begin anywhere. Without a part, learning goes on from what all of them taught, as in
    `alarms`. Of very many frames the chain hardly knows any one: these it judges itself.
    """
    pieces = _pieces(density, X, weight)
    if len(pieces) < 2:
        return np.empty((3, 0))
    out, stretch = [np.empty((3, 0))], 0
    try:
        with unheard(), one_blas_thread():
            for model, part, entries, w in _judges(density, pieces):
                tails = Ragged.trusted(values=ChainTail(model).along(part), offsets=part.offsets)
                for u, entry, v in zip(tails, entries, w, strict=True):
                    seen = -np.log(u[entry:][~np.isnan(u[entry:])])
                    out.append(np.stack([seen, np.full(len(seen), v), np.full(len(seen), float(stretch))]))
                    stretch += 1
    except LikelyError:  # too few frames, or a law that draws nothing: alarms then go by the model alone
        return np.empty((3, 0))
    return np.concatenate(out, axis=1)


class _Part:
    """Sequences of a part, those frames with some before them, how many these are, and weights."""

    def __init__(self, own: list[Any], entered: list[Any], entries: list[int], w: list[float]) -> None:
        self.own, self.entered, self.entries, self.w = own, entered, entries, np.array(w)


def _pieces(density: Any, X: Ragged, weight: Any) -> list[_Part]:
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    there = np.flatnonzero((X.lengths > 0) & (w > 0)).tolist()
    if len(there) >= PARTS:
        dealt = [there[k::PARTS] for k in range(PARTS)]
        return [_Part([X[i] for i in some], [X[i] for i in some], [0] * len(some), w[some].tolist()) for some in dealt]
    if density.model_.ends is not None or density.topology != "ergodic":
        return []
    cut = [np.linspace(0, len(X[i]), PARTS + 1).astype(int) for i in there]
    out = []
    for k in range(PARTS):
        ends = [(i, int(c[k]), int(c[k + 1])) for i, c in zip(there, cut, strict=True) if c[k + 1] > c[k]]
        entries = [min(a, ENTRY) for _, a, _ in ends]
        entered = [X[i][a - e : b] for (i, a, b), e in zip(ends, entries, strict=True)]
        out.append(_Part([X[i][a:b] for i, a, b in ends], entered, entries, [float(w[i]) for i, _, _ in ends]))
    return [part for part in out if part.own]


def _judges(density: Any, pieces: list[_Part]) -> Iterator[tuple[HMM, Ragged, list[int], Array]]:
    """For each part a chain that lacks it, and the frames of it that are asked."""
    total = sum(len(x) for part in pieces for x in part.own)
    learn = _without(density, pieces) if total <= MANY else None
    for k, part in enumerate(pieces):
        some = np.searchsorted(np.cumsum([len(x) for x in part.own]), JUDGED / PARTS) + 1
        most = ENTRY + JUDGED // PARTS  # of a long sequence its beginning
        asked = Ragged.joined([Ragged.of(x[:most], np.array([len(x[:most])])) for x in part.entered[:some]])
        yield density.model_ if learn is None else learn(k), asked, part.entries[:some], part.w[:some]


def _without(density: Any, pieces: list[_Part]) -> Any:
    def collected(model: HMM, some: list[_Part]) -> Any:
        seqs = Ragged.joined([Ragged.of(x, np.array([len(x)])) for part in some for x in part.own])
        data = Blocks.of(seqs, np.concatenate([part.w for part in some]))
        return Threads().total(partial(gather, model, hard=density.hard), data.whole())

    learnt, prior = density._learnt, density.prior_
    each = [collected(learnt, [part]) for part in pieces]

    def without(k: int) -> HMM:
        rest = [part for j, part in enumerate(pieces) if j != k]
        stats: Any = sum(one for j, one in enumerate(each) if j != k)
        model = learnt.refit(stats, prior)
        for _ in range(min(density.n_iter_ // PASSES, AGAIN)):
            stats = collected(model, rest)
            model = model.refit(stats, prior)
        found: HMM = density._finish(model, stats, prior)
        return found

    return without

"""The best way through a network of words, a frame at a time, and the sum over all ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.language.word_units import Plan, Units

PIECE = 2**22  # emission scores in memory at a time, 32 MB

Scores = Callable[[int, int], Array]  # log p(x_t | state) of frames a … b − 1 (b − a, columns)


class Found(NamedTuple):
    """The best way: units in order, silence among them, until which frame each lasts, and its log-score."""

    units: Index  # (n,)
    until: Index  # (n,)
    log_prob: float

    @property
    def lengths(self) -> Index:
        """Frames of each unit (n,)."""
        return np.diff(self.until, prepend=0)

    @property
    def begins(self) -> Index:
        """The first frame of each unit (n,)."""
        return self.until - self.lengths


def pieces(frames: int, columns: int) -> Iterator[tuple[int, int]]:
    """Runs of frames whose scores fit into memory."""
    step = max(1, PIECE // columns)
    return ((a, min(a + step, frames)) for a in range(0, frames, step))


def best_way(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, beam: float) -> Found:
    """Token passing   (Young, Russell and Thornton 1989; Ney 1984): exact for beam = inf."""
    tokens, links = _Tokens.at_the_beginning(units, plan), _Links()
    from likely.language._loops import advance

    for a, b in pieces(frames, columns):
        links.make_room((b - a) * len(plan.finals))
        links.used = advance(
            *units, plan.lm, plan.highest, plan.pause, beam, scores(a, b), a, *tokens, *links.table, links.used
        )
    whole = tokens.boundary + plan.finals
    g = int(whole.argmax())
    if np.isneginf(whole[g]) or not frames:
        return Found(np.empty(0, np.intp), np.empty(0, np.intp), float(whole[g]))
    return links.followed(int(tokens.ended[g]), frames, int(tokens.before[g]), float(whole[g]))


class _Tokens(NamedTuple):
    """What a pass over the frames takes along from one piece to the next."""

    score: Array  # (S,)
    link: Any  # (S,)
    alive: Any  # (U,)
    enter: Array  # (U,)
    source: Index  # (U,)
    boundary: Array  # (G,)
    ended: Index  # (G,)
    before: Any  # (G,)
    record: Any  # (G,)

    @classmethod
    def at_the_beginning(cls, units: Units, plan: Plan) -> _Tokens:
        """One token, at the first boundary, which has link 0."""
        S, U, G = len(units.initial), len(units.context), len(plan.finals)
        record = np.full(G, -1, dtype=np.int32)
        record[0] = 0
        boundary, enter = _entering(units, plan)
        return cls(
            np.full(S, -np.inf), np.zeros(S, dtype=np.int32), np.zeros(U, dtype=np.bool_), enter,
            np.zeros(U, dtype=np.intp), boundary, np.full(G, -1, dtype=np.intp), np.full(G, -1, dtype=np.int32), record,
        )  # fmt: skip


def _entering(units: Units, plan: Plan) -> tuple[Array, Array]:
    """Boundaries (G,) and entries (U,) before the first frame."""
    G, C = plan.lm.shape
    boundary, enter = np.full(G, -np.inf), np.full(len(units.context), -np.inf)
    boundary[0], enter[:C] = 0.0, plan.lm[0]
    enter[C : C + 1] = plan.pause  # the silence of the first boundary, where there is any
    return boundary, enter


class _Links:
    """A table that grows: what ended, until which frame, and the link before."""

    def __init__(self) -> None:
        self.table = [np.full(1, value, dtype=np.int32) for value in (-1, 0, -1)]
        self.used = 1

    def make_room(self, more: int) -> None:
        """Space for so many links beyond those in use; pages that are never touched cost nothing."""
        if self.used + more > len(self.table[0]):
            grown = [np.empty(2 * self.used + more, dtype=np.int32) for _ in self.table]
            for new, old in zip(grown, self.table, strict=True):
                new[: self.used] = old[: self.used]
            self.table = grown

    def followed(self, unit: int, until: int, link: int, score: float) -> Found:
        """The way back from the last unit, turned round."""
        what, when, back = self.table
        way = [(unit, until)]
        while link > 0:
            way.append((int(what[link]), int(when[link])))
            link = int(back[link])
        units, ends = np.array(way[::-1], dtype=np.intp).T
        return Found(units.copy(), ends.copy(), score)


def best_ways(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, k: int) -> list[Found]:
    """The best way of each of the k best word sequences, best first; fewer where there are fewer."""
    from likely.language._loops import advance_many

    S, U, G = len(units.initial), len(units.context), len(plan.finals)
    said = [np.zeros((size, k), dtype=np.int64) for size in (S, U, G)]
    boundary, enter = (_beside_nothing(a, k) for a in _entering(units, plan))
    score, link, source = np.full((S, k), -np.inf), np.zeros((S, k), np.int64), np.zeros((U, k), np.int64)
    ended, before, record = (np.full((G, k), -1, dtype=np.int64) for _ in range(3))
    record[0, 0], links = 0, _Links()
    for a, b in pieces(frames, max(columns, G * k)):
        links.make_room((b - a) * G * k)
        links.used = advance_many(
            *units, plan.lm, plan.highest, plan.pause, scores(a, b), a, score, said[0], link, enter, said[1], source,
            boundary, said[2], ended, before, record, *links.table, links.used,
        )  # fmt: skip
    whole = boundary + plan.finals[:, None]
    order = np.argsort(-whole, axis=None, kind="stable")
    places = zip(*np.unravel_index(order, whole.shape), strict=True)
    chosen: dict[int, tuple[int, int]] = {}
    for g, q in places:
        if np.isfinite(whole[g, q]) and len(chosen) < k:
            chosen.setdefault(int(said[2][g, q]), (int(g), int(q)))
    if not frames:
        return [Found(np.empty(0, np.intp), np.empty(0, np.intp), float(whole[at])) for at in chosen.values()]
    return [links.followed(int(ended[at]), frames, int(before[at]), float(whole[at])) for at in chosen.values()]


def _beside_nothing(a: Array, k: int) -> Array:
    """A first column, and k − 1 that are empty."""
    out = np.full((len(a), k), -np.inf)
    out[:, 0] = a
    return out


def log_total(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, which: Index | None = None) -> Any:
    """log p(frames) over all ways, and of unit which[t] at each frame log p(frames until t, state) (frames, widest)."""
    from likely.language._loops import forward

    alpha = np.full(len(units.initial), -np.inf)
    boundary, enter = _entering(units, plan)
    kept = np.full((frames if which is not None else 0, units.widest), -np.inf)
    summing = plan.summing(back=False)
    for a, b in pieces(frames, columns):
        at = np.full(b - a, -1, dtype=np.intp) if which is None else which[a:b]
        forward(*units, *summing, plan.pause, scores(a, b), at, alpha, enter, boundary, kept[a:b])
    return float(np.logaddexp.reduce(boundary + plan.finals)), kept


def shares_of(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, which: Index) -> Array:
    """p(a token is in unit which[t] at frame t | all frames) of every frame (frames,), 0 where which is −1."""
    from likely.language._loops import backward

    total, kept = log_total(units, plan, scores, frames, columns, which)
    ahead, onward, share = np.full(len(units.initial), -np.inf), plan.finals.copy(), np.zeros(frames)
    turned, summing = units.turned, plan.summing(back=True)
    for a, b in reversed(list(pieces(frames, columns))):
        backward(*turned, *summing, plan.pause, scores(a, b), which[a:b], kept[a:b], total, ahead, onward, share[a:b])
    return np.minimum(share, 1.0)

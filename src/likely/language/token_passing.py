"""Token passing in a word network: Viterbi and k-best decoding, and forward–backward posteriors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.language.word_units import Plan, Units

PIECE = 2**22  # emission scores in memory at a time, 32 MB

Scores = Callable[[int, int], Array]  # log p(x_t | state) of frames a … b − 1 (b − a, columns)


class UnitPath(NamedTuple):
    """The best path: units in order, including silence, the end frame of each, and its log-score."""

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
    """Ranges of frames whose scores fit into memory."""
    step = max(1, PIECE // columns)
    return ((a, min(a + step, frames)) for a in range(0, frames, step))


def best_path(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, beam: float) -> UnitPath:
    """Viterbi decoding by token passing   (Young, Russell and Thornton 1989; Ney 1984): exact for beam = inf."""
    tokens, links = _Tokens.at_the_beginning(units, plan), _Links()
    from likely.language._loops import advance

    for a, b in pieces(frames, columns):
        links.make_room((b - a) * len(plan.finals))
        links.used = advance(
            *units, plan.lm, plan.highest, plan.pause, beam, scores(a, b), a, *tokens, *links.table, links.used
        )
    total = tokens.boundary + plan.finals
    g = int(total.argmax())
    if np.isneginf(total[g]) or not frames:
        return UnitPath(np.empty(0, np.intp), np.empty(0, np.intp), float(total[g]))
    return links.followed(int(tokens.ended[g]), frames, int(tokens.before[g]), float(total[g]))


class _Tokens(NamedTuple):
    """The state of token passing between two pieces of frames."""

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
    """Scores of boundaries (G,) and unit entries (U,) before the first frame."""
    G, C = plan.lm.shape
    boundary, enter = np.full(G, -np.inf), np.full(len(units.context), -np.inf)
    boundary[0], enter[:C] = 0.0, plan.lm[0]
    enter[C : C + 1] = plan.pause  # the silence of the first boundary, if there is one
    return boundary, enter


class _Links:
    """Growing table of traceback links: the unit that ended, until which frame, and the previous link."""

    def __init__(self) -> None:
        self.table = [np.full(1, value, dtype=np.int32) for value in (-1, 0, -1)]
        self.used = 1

    def make_room(self, more: int) -> None:
        """Allocate `more` links beyond those in use; memory pages that are never touched cost nothing."""
        if self.used + more > len(self.table[0]):
            grown = [np.empty(2 * self.used + more, dtype=np.int32) for _ in self.table]
            for new, old in zip(grown, self.table, strict=True):
                new[: self.used] = old[: self.used]
            self.table = grown

    def followed(self, unit: int, until: int, link: int, score: float) -> UnitPath:
        """Backtracking from the last unit."""
        what, when, back = self.table
        path = [(unit, until)]
        while link > 0:
            path.append((int(what[link]), int(when[link])))
            link = int(back[link])
        units, ends = np.array(path[::-1], dtype=np.intp).T
        return UnitPath(units.copy(), ends.copy(), score)


def k_best_paths(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, k: int) -> list[UnitPath]:
    """The best path of each of the k best word sequences, best first; fewer where there are fewer."""
    from likely.language._loops import advance_many

    S, U, G = len(units.initial), len(units.context), len(plan.finals)
    history = [np.zeros((size, k), dtype=np.int64) for size in (S, U, G)]
    boundary, enter = (_first_of_k(a, k) for a in _entering(units, plan))
    score, link, source = np.full((S, k), -np.inf), np.zeros((S, k), np.int64), np.zeros((U, k), np.int64)
    ended, before, record = (np.full((G, k), -1, dtype=np.int64) for _ in range(3))
    record[0, 0], links = 0, _Links()
    for a, b in pieces(frames, max(columns, G * k)):
        links.make_room((b - a) * G * k)
        links.used = advance_many(
            *units, plan.lm, plan.highest, plan.pause, scores(a, b), a, score, history[0], link, enter, history[1],
            source, boundary, history[2], ended, before, record, *links.table, links.used,
        )  # fmt: skip
    total = boundary + plan.finals[:, None]
    order = np.argsort(-total, axis=None, kind="stable")
    places = zip(*np.unravel_index(order, total.shape), strict=True)
    chosen: dict[int, tuple[int, int]] = {}
    for g, q in places:
        if np.isfinite(total[g, q]) and len(chosen) < k:
            chosen.setdefault(int(history[2][g, q]), (int(g), int(q)))
    if not frames:
        return [UnitPath(np.empty(0, np.intp), np.empty(0, np.intp), float(total[at])) for at in chosen.values()]
    return [links.followed(int(ended[at]), frames, int(before[at]), float(total[at])) for at in chosen.values()]


def _first_of_k(a: Array, k: int) -> Array:
    """A first column, and k − 1 columns of −inf."""
    out = np.full((len(a), k), -np.inf)
    out[:, 0] = a
    return out


def forward_pass(
    units: Units, plan: Plan, scores: Scores, frames: int, columns: int, which: Index | None = None
) -> Any:
    """log p(frames) over all paths, and the forward variables of unit which[t] at each frame (frames, widest)."""
    from likely.language._loops import forward

    alpha = np.full(len(units.initial), -np.inf)
    boundary, enter = _entering(units, plan)
    stored = np.full((frames if which is not None else 0, units.widest), -np.inf)
    lm = plan.sparse(by_source=False)
    for a, b in pieces(frames, columns):
        at = np.full(b - a, -1, dtype=np.intp) if which is None else which[a:b]
        forward(*units, *lm, plan.pause, scores(a, b), at, alpha, enter, boundary, stored[a:b])
    return float(np.logaddexp.reduce(boundary + plan.finals)), stored


def unit_posteriors(units: Units, plan: Plan, scores: Scores, frames: int, columns: int, which: Index) -> Array:
    """Posterior probability of unit which[t] at each frame t (frames,), 0 where which is −1."""
    from likely.language._loops import backward

    total, stored = forward_pass(units, plan, scores, frames, columns, which)
    b_beta, boundary_beta, posterior = np.full(len(units.initial), -np.inf), plan.finals.copy(), np.zeros(frames)
    by_source, lm = units.by_source, plan.sparse(by_source=True)
    for a, b in reversed(list(pieces(frames, columns))):
        backward(
            *by_source,
            *lm,
            plan.pause,
            scores(a, b),
            which[a:b],
            stored[a:b],
            total,
            b_beta,
            boundary_beta,
            posterior[a:b],
        )
    return np.minimum(posterior, 1.0)

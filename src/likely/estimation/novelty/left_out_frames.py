"""Surprises of frames under chains that had not learnt from them: what alarms of a live feed are set by."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.engine import Threads, one_blas_thread
from likely.core.errors import LikelyError
from likely.core.fit_loop import gather
from likely.core.ragged import Ragged
from likely.core.warnings import unheard
from likely.estimation.novelty.hmm_surprise import ChainTail
from likely.estimation.novelty.novelty_threshold import MANY, PASSES
from likely.hmm.hmm import HMM
from likely.metrics.false_alarms import MOST, TAIL, correlation_time, quantile, rule_of_three, upper_limit

PARTS = 5  # each left out once
JUDGED = 3000  # frames that are asked, at most, or a few more
AGAIN = 4  # more steps of EM without a part, at most: every fit pays for them
ANEW = 20  # steps of EM that the earlier halves are learnt by
ENTRY = 20  # frames before a part that is a piece of a sequence, in which the filter settles
ENOUGH = 20  # frames left out, with fewer of which the model's own law is believed
MUCH = 3.0  # times as many rare frames as expected: the level drifts


def left_out_frames(density: Any, X: Ragged, weight: Any) -> Array:
    """(3, m): −log P(a frame at least as surprising | all before), its weight, and the stretch that it belongs to.

    Frames stand in the order of time. Sequences are dealt into parts; a few long ones are cut in time where their
    topology lets them begin anywhere. Without a part, learning goes on from what all of them taught, as in
    `alarms`. Of very many frames the chain hardly knows any one: these it judges itself.
    """
    learn = _learnt_on if len(X.values) <= MANY else lambda density, fold: density.model_
    return _surprises(_judges(density, _folds(density, X, weight), JUDGED // PARTS, learn))


def later_half_rate(density: Any, X: Ragged, weight: Any, kept: Array) -> float:
    """The share of later halves that are as rare as the rarest tenth of frames left out, by the earlier halves alone.

    It is far above a tenth where the level drifts. 0 where sequences are not cut in time, or frames are few: whole
    sequences that were left out show what is new in others, and all may take the same course.
    """
    there, w = _there(X, weight)
    if not enough(kept) or len(there) >= PARTS or not _may_be_cut(density):
        return 0.0
    found = _surprises(_judges(density, [_cut_in_time(X, there, w, 1, 2)], JUDGED, _learnt_anew))
    if not enough(found):
        return 0.0
    return float(found[1] @ (found[0] > quantile(*stretches(kept), TAIL))) / float(found[1].sum())


def enough(kept: Array) -> bool:
    """Whether frames left out (3, m) say more of false alarms than the model's own law."""
    return min(kept.shape[1], float(kept[1].sum())) >= ENOUGH


def stretches(kept: Array) -> tuple[list[Array], Array]:
    """Surprises of each stretch of frames (3, m), and the weight of each stretch."""
    parts = np.split(kept, np.flatnonzero(np.diff(kept[2])) + 1, axis=1)
    return [part[0] for part in parts], np.array([part[1, 0] for part in parts])


def drifts(later: float) -> bool:
    """Whether later halves are clearly rarer than what the earlier ones have taught."""
    return later > MUCH * TAIL


def independent_frames(kept: Array) -> float:
    """n / τ: as how many frames those left out (3, m) count that depend on each other (`correlation_time`)."""
    series, w = stretches(kept)
    return float(w @ [len(x) for x in series]) / correlation_time(series, w)


def supported_share(kept: Array, later: float = 0.0, rate: float = 0.0) -> float:
    """The largest share of new frames with a false alarm that frames left out (3, m) do not exclude (95 % confidence).

    Alarms are set such that a share `rate` of the frames left out raises one: so the threshold is a quantile, and the
    share of new frames above it is as uncertain as a count of n `rate` / τ independent frames above it is, about twice
    the rate where six are. Rates below the rule of three, 3τ / n, cannot be told from it: fewer than three frames above
    a threshold support no less than three do. Where the level drifts, alarms may come in as many frames as later halves
    were found to be rare.
    """
    n = independent_frames(kept)
    found = upper_limit(n * max(rate, rule_of_three(n)), n)
    return max(found, later) if drifts(later) else found


def support(density: Any) -> Iterator[str]:
    """Which rate of false alarms the frames left out of a fitted density support, in a sentence; nothing of few."""
    kept, later = vars(density).get("calm_", np.empty((3, 0))), vars(density).get("later_half_rate_", 0.0)
    if not enough(kept):
        return
    rarest = np.ceil(1.0 / rule_of_three(independent_frames(kept)))
    asked = f"where one false alarm in {rarest:,.0f} or more lines followed live is asked for"
    often = supported_words(supported_share(kept, later))
    yield f"Tried on {kept[1].sum():,.0f} frames left out: {asked}, these support {often} (95 % confidence)."
    if drifts(later):
        yield drift(later)


def supported_words(share: float) -> str:
    """How often false alarms come at most, in words; a number of lines is rounded down.

    >>> [supported_words(share) for share in (0.0193, 0.3, 0.6)]
    ['one in 51 lines', 'one in 3.3 lines', 'no rate at all']
    """
    lines = np.floor(1.0 / share) if share <= 0.1 else np.floor(10.0 / share) / 10
    return "no rate at all" if share > MOST else f"one in {lines:,.12g} lines"


def drift(later: float) -> str:
    """What later halves say of a level that drifts, in a sentence."""
    rare = f"{100 * later:.0f} % of the later ones are as rare as the rarest {100 * TAIL:.0f} % of frames left out"
    return f"By the earlier halves alone, {rare}: the level drifts, or slow motions were not all seen."


def _surprises(judges: Iterator[tuple[HMM, Ragged, list[int], Array]]) -> Array:
    """(3, m) of frames by chains that lack them; without any frame where no such chain can be learnt."""
    out, stretch = [np.empty((3, 0))], 0
    try:
        with unheard(), one_blas_thread():
            for model, part, entries, w in judges:
                tails = Ragged.trusted(values=ChainTail(model).along(part), offsets=part.offsets)
                for u, entry, v in zip(tails, entries, w, strict=True):
                    seen = -np.log(u[entry:][~np.isnan(u[entry:])])
                    out.append(np.stack([seen, np.full(len(seen), v), np.full(len(seen), float(stretch))]))
                    stretch += 1
    except LikelyError:  # too few frames, or a law that draws nothing: alarms then go by the model alone
        return np.empty((3, 0))
    return np.concatenate(out, axis=1)


class _Fold(NamedTuple):
    """Sequences to learn from, and those left out: with some frames before them, how many these are, and weights."""

    rest: list[Any]
    rest_w: Array
    out: list[Any]
    entries: list[int]
    w: Array


def _folds(density: Any, X: Ragged, weight: Any) -> list[_Fold]:
    there, w = _there(X, weight)
    if len(there) < PARTS:
        return [_cut_in_time(X, there, w, k, PARTS) for k in range(PARTS)] if _may_be_cut(density) else []
    dealt = [(there[k::PARTS], [i for j, i in enumerate(there) if j % PARTS != k]) for k in range(PARTS)]
    return [
        _Fold([X[i] for i in rest], w[rest], [X[i] for i in out], [0] * len(out), w[out])
        for out, rest in dealt
    ]


def _there(X: Ragged, weight: Any) -> tuple[list[int], Array]:
    """Sequences that count, and the weights of all."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    return np.flatnonzero((X.lengths > 0) & (w > 0)).tolist(), w


def _may_be_cut(density: Any) -> bool:
    """Whether a piece of a sequence is like a sequence: it may begin and end anywhere."""
    return density.model_.ends is None and isinstance(density.topology, str) and density.topology == "ergodic"


def _cut_in_time(X: Ragged, there: list[int], w: Array, k: int, parts: int) -> _Fold:
    """Piece k of each sequence is left out; its neighbors depend on it, and nothing is learnt from them either."""
    rest, rest_w, out, entries, own_w = [], [], [], [], []
    for i in there:
        a, b = (int(len(X[i]) * j / parts) for j in (k, k + 1))
        gap, entry = min(ENTRY, (b - a) // 4), min(a, ENTRY)
        around = [x for x in (X[i][: max(a - gap, 0)], X[i][b + gap :]) if len(x)]
        rest += around
        rest_w += [float(w[i])] * len(around)
        if b > a:
            out.append(X[i][a - entry : b])
            entries.append(entry)
            own_w.append(float(w[i]))
    return _Fold(rest, np.array(rest_w), out, entries, np.array(own_w))


def _judges(density: Any, folds: list[_Fold], most: int, learn: Any) -> Iterator[tuple[HMM, Ragged, list[int], Array]]:
    """For each fold a chain that lacks it, and the frames of it that are asked: so many, or a few more."""
    for fold in folds:
        if fold.out and fold.rest:
            some = np.searchsorted(np.cumsum([len(x) for x in fold.out]) - np.cumsum(fold.entries), most) + 1
            asked = [x[: ENTRY + most] for x in fold.out[:some]]  # of a long sequence its beginning
            yield learn(density, fold), _joined(asked), fold.entries[:some], fold.w[:some]


def _learnt_on(density: Any, fold: _Fold) -> HMM:
    """From the chain of all, some steps of EM on all but a fold."""
    data = Blocks.of(_joined(fold.rest), fold.rest_w)
    model: HMM = density._learnt
    for _ in range(1 + min(density.n_iter_ // PASSES, AGAIN)):
        stats = Threads().total(partial(gather, model, hard=density.hard), data.whole())
        model = model.refit(stats, density.prior_)
    found: HMM = density._finish(model, stats, density.prior_)
    return found


def _learnt_anew(density: Any, fold: _Fold) -> HMM:
    """From the beginning, as the chain of all has states for what is left out; of very many frames the latest."""
    twin = copy(density)
    twin.component_ = deepcopy(density.component_)  # what a first look at frames finds stays with it
    twin.set_params(random_state=0, restarts=1, max_iter=ANEW)
    rest = [x[-MANY // len(fold.rest) :] for x in fold.rest]
    report = twin._learn(_joined(rest), fold.rest_w)
    found: HMM = twin._finish(report.model, report.stats, report.prior)
    return found


def _joined(some: list[Any]) -> Ragged:
    return Ragged.joined([Ragged.of(x, np.array([len(x)])) for x in some])

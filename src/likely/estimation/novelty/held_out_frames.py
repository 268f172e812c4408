"""Cross-validated novelty scores of frames under HMMs: the reference for alarm thresholds of live data."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.em_loop import gather
from likely.core.engine import Threads, one_blas_thread
from likely.core.errors import LikelyError
from likely.core.job_size import fit_job
from likely.core.ragged import Ragged
from likely.core.warnings import warnings_discarded
from likely.estimation.novelty.hmm_novelty_score import ChainTail
from likely.estimation.novelty.novelty_threshold import MANY, PASSES
from likely.hmm.hmm import HMM
from likely.metrics.false_alarms import MOST, TAIL, correlation_time, quantile, rule_of_three, upper_limit

PARTS = 5  # folds
JUDGED = 3000  # maximum number of scored frames, or a few more
AGAIN = 4  # maximum number of EM steps without a fold: every fit pays for them
ANEW = 20  # EM steps on the earlier halves
ENTRY = 20  # burn-in frames of the filter before a piece of a sequence
ENOUGH = 20  # number of held-out frames below which the model's own distribution is used
MUCH = 3.0  # ratio of rare frames to the expectation above which the level drifts


def left_out_frames(density: Any, X: Ragged, weight: Any) -> Array:
    """(3, m): −log P(a frame at least as improbable | past frames), its weight, and its segment.

    Frames are in order of time. Sequences are assigned to folds; a few long ones are split in time if their
    topology lets them begin anywhere. Without a fold, EM is continued from the model of all data. With very many
    frames the influence of a single one is negligible: these are scored by the model itself.
    """
    learn = _learned_on if len(X.values) <= MANY else lambda density, fold: density.model_
    with fit_job(len(X.values), density.model_, PARTS * (1 + AGAIN)):
        return _frame_scores(_judges(density, _folds(density, X, weight), JUDGED // PARTS, learn))


def later_half_rate(density: Any, X: Ragged, weight: Any, kept: Array) -> float:
    """The share of later halves as rare as the rarest tenth of held-out frames, by models of the earlier halves.

    It is far above a tenth if the level drifts. 0 if sequences are not split in time, or frames are few: held-out
    whole sequences include the variation between sequences.
    """
    there, w = _there(X, weight)
    if not enough(kept) or len(there) >= PARTS or not _may_be_cut(density):
        return 0.0
    with fit_job(len(X.values), density.model_, ANEW):
        found = _frame_scores(_judges(density, [_cut_in_time(X, there, w, 1, 2)], JUDGED, _fitted_from_scratch))
    if not enough(found):
        return 0.0
    return float(found[1] @ (found[0] > quantile(*segments(kept), TAIL))) / float(found[1].sum())


def enough(kept: Array) -> bool:
    """Whether there are enough held-out frames (3, m) for false-alarm rates, instead of the model's distribution."""
    return min(kept.shape[1], float(kept[1].sum())) >= ENOUGH


def segments(kept: Array) -> tuple[list[Array], Array]:
    """Novelty scores of each segment of frames (3, m), and the weight of each segment."""
    parts = np.split(kept, np.flatnonzero(np.diff(kept[2])) + 1, axis=1)
    return [part[0] for part in parts], np.array([part[1, 0] for part in parts])


def drifts(later: float) -> bool:
    """Whether later halves are clearly rarer than expected from the earlier ones."""
    return later > MUCH * TAIL


def independent_frames(kept: Array) -> float:
    """Effective number n / τ of independent frames among the held-out ones (3, m) (`correlation_time`)."""
    series, w = segments(kept)
    return float(w @ [len(x) for x in series]) / correlation_time(series, w)


def supported_share(kept: Array, later: float = 0.0, rate: float = 0.0) -> float:
    """Upper confidence limit (95 %) of the false-alarm rate on new frames, from held-out frames (3, m).

    The threshold is the quantile exceeded by a share `rate` of the held-out frames, and the share of new frames above
    it is as uncertain as a count of n `rate` / τ independent frames, about twice the rate if six are above it. Rates
    below the rule of three, 3τ / n, cannot be distinguished from it: fewer than three frames above a threshold support
    no less than three do. If the level drifts, the false-alarm rate may be as large as the share of rare frames in
    later halves.
    """
    n = independent_frames(kept)
    found = upper_limit(n * max(rate, rule_of_three(n)), n)
    return max(found, later) if drifts(later) else found


def support(density: Any) -> Iterator[str]:
    """The false-alarm rate supported by the held-out frames of a fitted density, as a sentence; empty with few."""
    kept, later = vars(density).get("held_out_novelty_", np.empty((3, 0))), vars(density).get("later_half_rate_", 0.0)
    if not enough(kept):
        return
    rarest = np.ceil(1.0 / rule_of_three(independent_frames(kept)))
    asked = f"where one false alarm in {rarest:,.0f} or more live lines is requested"
    often = supported_words(supported_share(kept, later))
    yield f"Tested on {kept[1].sum():,.0f} held-out frames: {asked}, these support {often} (95 % confidence)."
    if drifts(later):
        yield drift(later)


def supported_words(share: float) -> str:
    """The largest false-alarm rate as text; a number of lines is rounded down.

    >>> [supported_words(share) for share in (0.0193, 0.3, 0.6)]
    ['one in 51 lines', 'one in 3.3 lines', 'no rate at all']
    """
    lines = np.floor(1.0 / share) if share <= 0.1 else np.floor(10.0 / share) / 10
    return "no rate at all" if share > MOST else f"one in {lines:,.12g} lines"


def drift(later: float) -> str:
    """The result of the drift check as a sentence."""
    rare = f"{100 * later:.0f} % of the later ones are as rare as the rarest {100 * TAIL:.0f} % of held-out frames"
    return f"By models of the earlier halves, {rare}: the level drifts, or slow variations were not all observed."


def _frame_scores(judges: Iterator[tuple[HMM, Ragged, list[int], Array]]) -> Array:
    """(3, m) of held-out frames; empty if no model can be fitted without them."""
    out, segment = [np.empty((3, 0))], 0
    try:
        with warnings_discarded(), one_blas_thread():
            for model, part, entries, w in judges:
                tails = Ragged.trusted(values=ChainTail(model).along(part), offsets=part.offsets)
                for u, entry, v in zip(tails, entries, w, strict=True):
                    seen = -np.log(u[entry:][~np.isnan(u[entry:])])
                    out.append(np.stack([seen, np.full(len(seen), v), np.full(len(seen), float(segment))]))
                    segment += 1
    except LikelyError:  # too few frames, or a distribution without sampling: thresholds then use the model alone
        return np.empty((3, 0))
    return np.concatenate(out, axis=1)


class _Fold(NamedTuple):
    """Training sequences, and held-out ones with preceding frames, their number, and weights."""

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
    return [_Fold([X[i] for i in rest], w[rest], [X[i] for i in out], [0] * len(out), w[out]) for out, rest in dealt]


def _there(X: Ragged, weight: Any) -> tuple[list[int], Array]:
    """Sequences with positive weight, and the weights of all."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    return np.flatnonzero((X.lengths > 0) & (w > 0)).tolist(), w


def _may_be_cut(density: Any) -> bool:
    """Whether a piece of a sequence is distributed like a sequence: it may begin and end anywhere."""
    return density.model_.final is None and isinstance(density.topology, str) and density.topology == "ergodic"


def _cut_in_time(X: Ragged, there: list[int], w: Array, k: int, parts: int) -> _Fold:
    """Piece k of each sequence is held out; its neighbors depend on it, and are not used for training either."""
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
    """For each fold a model fitted without it, and the frames to be scored."""
    for fold in folds:
        if fold.out and fold.rest:
            some = np.searchsorted(np.cumsum([len(x) for x in fold.out]) - np.cumsum(fold.entries), most) + 1
            asked = [x[: ENTRY + most] for x in fold.out[:some]]  # of a long sequence, the beginning
            yield learn(density, fold), _joined(asked), fold.entries[:some], fold.w[:some]


def _learned_on(density: Any, fold: _Fold) -> HMM:
    """Some EM steps from the model of all data, on all but a fold."""
    data = Blocks.of(_joined(fold.rest), fold.rest_w)
    model: HMM = density.learned_model_
    for _ in range(1 + min(density.n_iter_ // PASSES, AGAIN)):
        stats = Threads().total(partial(gather, model, hard=density.hard), data.whole())
        model = model.refit(stats, density.prior_)
    found: HMM = density.scoring_model(model, stats, density.prior_)
    return found


def _fitted_from_scratch(density: Any, fold: _Fold) -> HMM:
    """Fitted from scratch, as the model of all data has states for the held-out part; at most the latest frames."""
    twin = copy(density)
    twin.component_ = deepcopy(density.component_)  # keep the settings found in the frames
    twin.set_params(random_state=0, n_init=1, max_iter=ANEW)
    rest = [x[-MANY // len(fold.rest) :] for x in fold.rest]
    report = twin.run_em(_joined(rest), fold.rest_w)
    found: HMM = twin.scoring_model(report.model, report.stats, report.prior)
    return found


def _joined(some: list[Any]) -> Ragged:
    return Ragged.joined([Ragged.of(x, np.array([len(x)])) for x in some])

"""Long sequences: piecewise forward–backward and Viterbi give the results of one piece, in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from likely import HMM, Categorical, DataError, FitWarning, Gaussian, Mixture, Ragged
from likely.hmm import forward_backward, sequence_blocks
from likely.hmm.decoding import _fixed_lag
from likely.hmm.forward_backward import ScaledPass, Underflow
from likely.hmm.sequence_blocks import SequenceBlocks
from tests.hmm.in_one_piece import in_one_piece
from tests.properties.compare import arrays_of

MOVES = np.array([[0.95, 0.05, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.02, 0.9, 0.08], [0.03, 0, 0.07, 0.9]])


def chain(final=False) -> HMM:
    leave = np.array([0.0, 0.001, 0.0, 0.002]) if final else None
    transition = MOVES if leave is None else MOVES * (1 - leave)[:, None]
    return HMM([0.4, 0.3, 0.2, 0.1], transition, Gaussian([[0.0], [2.0], [4.0], [6.0]], 1.0), final=leave)


def frames(T: int, outliers: bool = False) -> np.ndarray:
    rng = np.random.default_rng(8)
    x = np.repeat(rng.integers(0, 4, T // 20 + 1) * 2.0, 20)[:T, None] + rng.standard_normal((T, 1))
    if outliers:
        x[rng.integers(0, T, 5)] = 1e4
    return x


def alike(a, b, tol=1e-10) -> None:
    for one, two in zip(arrays_of(a), arrays_of(b), strict=True):
        one, two = np.asarray(one, float), np.asarray(two, float)
        assert np.abs(one - two).max(initial=0) <= tol * max(1.0, float(np.abs(two).max(initial=0)))


@pytest.fixture
def short_pieces(monkeypatch):
    """Borders of pieces every few frames, so that small problems cross many."""
    monkeypatch.setattr(sequence_blocks, "LONG", 20)
    monkeypatch.setattr(sequence_blocks, "PIECE", 7)


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize("T", [21, 28, 200])
def test_pieces_change_nothing(short_pieces, T, outliers, final):
    h, x = chain(final), frames(T, outliers)
    way, logs = h.chains[0].summed, h.scores(Ragged.of(x))
    with np.errstate(all="ignore"):
        want = forward_backward.log_posterior(way, logs, np.array([0, T]), np.ones(1))
    assert h.log_prob([x])[0] == pytest.approx(want.log_prob[0], rel=1e-13)
    stats = h.collect([x], [2.5])
    assert np.abs(stats.initial - 2.5 * want.states[0]).max() <= 1e-10 * T
    assert np.abs(stats.transition - 2.5 * want.transition).max() <= 1e-10 * T
    assert np.abs(stats.counts - 2.5 * want.states.sum(axis=0)).max() <= 1e-10 * T
    assert h.objective(stats) == pytest.approx(2.5 * want.log_prob[0], rel=1e-12)


def test_pieces_with_known_states_and_null_states(short_pieces):
    rng, K = np.random.default_rng(3), 3
    rows = rng.dirichlet(np.ones(5), 5)
    rows[3:, 3:4] = 0
    rows[4] = rows[4] / rows[4].sum()
    h = HMM(rows[4] / rows[4].sum(), rows / rows.sum(axis=1, keepdims=True),
            Categorical(rng.dirichlet(np.ones(4), K)))  # fmt: skip
    x = rng.integers(0, 4, (60, 1)).astype(float)
    known = np.where(rng.random(60) < 0.5, rng.integers(0, K, 60), -1)
    in_pieces = h.collect([x], log_mask=[known])
    whole = in_one_piece(h, [x], known=Ragged(_mask(known, K), [0, 60]))
    alike(in_pieces, whole)


def one_way(T: int, jump: float = 60.0) -> tuple[HMM, np.ndarray]:
    """A chain that never goes back, and frames that want it to: only logarithms keep what the end decides."""
    transition = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
    x = np.random.default_rng(5).standard_normal((T, 1)) + jump
    x[T // 2 :] -= jump
    return HMM([0.4, 0.3, 0.3], transition, Gaussian([[0.0], [jump], [2 * jump]], 1.0)), x


@pytest.mark.parametrize("T", [21, 60])
def test_logarithms_in_pieces(short_pieces, T):
    h, x = one_way(T)
    way, logs = h.chains[0].summed, h.scores(Ragged.of(x))
    with np.errstate(all="ignore"):
        with pytest.raises(Underflow):  # else this would show nothing
            list(SequenceBlocks.of(h, [x]).forwards(0, ScaledPass))
        want = forward_backward.log_posterior(way, logs, np.array([0, T]), np.ones(1))
    in_pieces = h.collect([x], [2.5])
    alike(in_pieces, in_one_piece(h, [x], [2.5]))
    assert np.abs(in_pieces.transition - 2.5 * want.transition).max() <= 1e-10
    assert h.objective(in_pieces) == pytest.approx(2.5 * want.log_prob[0], rel=1e-12)
    assert h.log_prob([x])[0] == pytest.approx(want.log_prob[0], rel=1e-13)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("T", [21, 28, 200])
def test_the_best_path_is_counted_in_pieces(short_pieces, T, final, known):
    h, x = chain(final), frames(T, True)
    told = np.where(np.arange(T) % 9 == 4, h.viterbi(x).states, -1) if known else None
    given = None if told is None else [told]
    in_pieces = h.collect([x], [1.5], log_mask=given, hard=True)
    whole = in_one_piece(h, [x], [1.5], given, hard=True)
    alike(in_pieces, whole)
    states = h.viterbi(x).states
    assert np.allclose(in_pieces.counts, 1.5 * np.bincount(states, minlength=4), rtol=1e-13)


def test_the_best_path_of_mixtures_in_pieces(short_pieces):
    parts = Mixture([[0.5, 0.5], [0.9, 0.1]], Gaussian([[0.0], [1.0], [4.0], [7.0]], 1.0))
    h, x = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], parts), frames(60)
    alike(h.collect([x], hard=True), in_one_piece(h, [x], hard=True))


@pytest.mark.parametrize("hard", [False, True])
def test_long_sequences_that_cannot_be(short_pieces, hard):
    """As if nothing had been seen of them; and where even the chain has no such path, they do not count."""
    h = HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], Categorical([[1.0, 0.0], [0.0, 1.0]]))
    x = np.ones((40, 1))
    alike(h.collect([x], hard=hard), in_one_piece(h, [x], hard=hard))
    back = np.where(np.arange(40) < 9, 1, 0)  # the chain never comes back to state 0
    stats = h.collect([x], log_mask=[back], hard=hard)
    assert stats.entropy == -np.inf and stats.counts.sum() == 0 and stats.transition.sum() == 0


@pytest.mark.parametrize("hard", [False, True])
def test_sequences_without_weight_are_not_looked_at(short_pieces, monkeypatch, hard):
    h = chain()
    some = [frames(30), frames(9), frames(50)[::-1].copy()]
    want = h.collect([some[1]], [2.0], hard=hard)
    looked = []
    scores = HMM.scores
    monkeypatch.setattr(HMM, "scores", lambda self, s, before=0: looked.append(len(s.values)) or scores(self, s))
    found = h.collect(some, [0.0, 2.0, 0.0], hard=hard)
    alike(found, want)
    assert sum(looked) <= 9
    none = h.collect(some, np.zeros(3), log_mask=[np.zeros(len(x), int) for x in some], hard=hard)
    assert none.counts.sum() == 0 and none.total_weight == 0


def test_a_bad_frame_is_named_as_the_user_counts(short_pieces):
    h, x = chain(), [frames(5), frames(8), frames(50)]
    x[2][33] = np.inf
    known = [np.full(len(one), -1) for one in x]
    for given in (None, known):
        for weight in (None, [1.0, 0.0, 1.0]):
            with pytest.raises(DataError, match="sequence 2, frame 33, column 0"):
                h.collect(x, weight, log_mask=given)
    with pytest.raises(DataError, match="frame 33, column 0"):
        h.log_prob(x)


# ------------------------------------------------------- posteriors, piece by piece


@pytest.mark.parametrize("make", [lambda: (chain(True), frames(61, True)), lambda: one_way(60)])
def test_posteriors_in_pieces(short_pieces, make):
    h, x = make()
    T = len(x)
    way, logs, cut = h.chains[0].summed, h.scores(Ragged.of(x)), np.array([0, T])
    with np.errstate(all="ignore"):
        want = forward_backward.log_posterior(way, logs, cut, np.ones(1))
        filtered = forward_backward.filtered(way, logs, cut)[0]
    found = h.smooth(x)
    assert found.log_prob == pytest.approx(want.log_prob[0], rel=1e-13)
    assert np.abs(found.states - want.states).max() <= 1e-11
    assert np.abs(h.posterior(x, lag=0) - filtered).max() <= 1e-11


@pytest.mark.parametrize("make", [lambda: (chain(), frames(61, True)), lambda: one_way(60)])
@pytest.mark.parametrize("lag", [1, 3, 11, 100])
def test_lagged_posteriors_in_pieces(short_pieces, lag, make):
    h, x = make()
    seq = Ragged.of(x)
    with np.errstate(all="ignore"):
        way, logs = h.chains[0].summed, h.scores(seq)
        want = _fixed_lag(way, logs, forward_backward.filtered(way, logs, seq.offsets)[0], seq, lag)
    assert np.abs(h.posterior(x, lag=lag) - want).max() <= 1e-12


def test_posteriors_of_what_cannot_be(short_pieces):
    h = HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], Categorical([[1.0, 0.0], [0.0, 1.0]]))
    with pytest.warns(FitWarning, match="frame 0 of sequence 0 is impossible"):
        assert h.smooth(np.ones((40, 1))).log_prob == -np.inf
    with pytest.warns(FitWarning, match="frame 0 of sequence 0 is impossible"):
        assert np.allclose(h.posterior(np.ones((40, 1)), lag=0).sum(axis=1), 1.0)


@pytest.mark.parametrize("make", [lambda: (chain(True), frames(61, True)), lambda: one_way(60)])
def test_sampled_states_in_pieces(short_pieces, make, monkeypatch):
    h, x = make()
    pieces = h.sample_states([x] * 20, np.random.default_rng(0))
    monkeypatch.setattr(sequence_blocks, "LONG", 2**18)
    assert (pieces == h.sample_states([x] * 20, np.random.default_rng(0))).all()


@pytest.mark.parametrize(("frames", "states", "long"), [(2**13, 1000, True), (2**11, 1000, False), (2**19, 2, True),
                                                        (2**18, 16, False)])  # fmt: skip
def test_pieces_are_shorter_for_many_states(frames, states, long):
    h = HMM(np.full(states, 1 / states), np.eye(states), Gaussian(np.zeros((states, 1)), 1.0))
    data = SequenceBlocks.of(h, [np.zeros((frames, 1))])
    assert data.is_long(0) == long
    assert max(z - a for a, z in data.pieces(0)) * states <= sequence_blocks.SCORES


def _mask(known, K):
    return np.where((known[:, None] < 0) | (known[:, None] == np.arange(K)), 0.0, -np.inf)


def test_complete_states_in_pieces_are_counted(short_pieces):
    h, x = chain(), frames(100)
    states = np.random.default_rng(0).integers(0, 2, 100)
    stats = h.collect([x], log_mask=[states])
    assert stats.complete and np.allclose(stats.counts, np.bincount(states, minlength=4), rtol=1e-13)


def test_best_path_in_pieces(monkeypatch):
    h, x = chain(True), frames(5000)
    whole = h.viterbi(x)
    monkeypatch.setattr(sequence_blocks, "LONG", 512)
    monkeypatch.setattr(sequence_blocks, "PIECE", 100)
    pieces = h.viterbi(x)
    assert (pieces.states == whole.states).all() and pieces.log_prob == pytest.approx(whole.log_prob, rel=1e-13)


def peak(f) -> float:
    tracemalloc.start()
    f()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size / 2**20


def peak_of(what: str, T: int) -> float:
    """Memory of one question about T frames; a first call about few frames loads the compiled functions."""

    def asked(T: int):
        h, x = one_way(T) if what == "logarithms" else (chain(), frames(T))
        seqs, known, masks = Ragged.of(x), Ragged(np.full(T, -1), [0, T]), Ragged(np.zeros((T, h.states)), [0, T])
        return {
            "logarithms": lambda: h.collect(seqs),
            "hard": lambda: h.collect(seqs, hard=True),
            "weight 0": lambda: h.collect(seqs, [0.0]),
            "known": lambda: h.collect(seqs, log_mask=known),
            "masks": lambda: h.collect(seqs, log_mask=masks),
            "smooth": lambda: h.smooth(seqs),
        }[what]

    with np.errstate(all="ignore"):
        asked(100)()
        return peak(asked(T))


@pytest.mark.slow
def test_a_million_frames():
    T, h = 10**6, chain()
    x = frames(T)
    seqs = Ragged.of(x)
    total = float(h.log_prob(seqs)[0])
    with np.errstate(all="ignore"):
        way = h.chains[0].summed
        whole = forward_backward.posterior(way, h.scores(seqs), np.array([0, T]), np.ones(1))
    assert np.isfinite(total) and total == pytest.approx(whole.log_prob[0], rel=1e-12)
    stats = h.collect(seqs)
    assert np.abs(stats.transition - whole.transition).max() <= 1e-10 * T and stats.counts.sum() == pytest.approx(
        T, rel=1e-10
    )
    assert np.abs(stats.counts - whole.states.sum(axis=0)).max() <= 1e-10 * T
    assert h.objective(stats) == pytest.approx(total, rel=1e-11)
    assert peak(lambda: h.collect(seqs)) < 12 and peak(lambda: h.log_prob(seqs)) < 12  # 32 MB are the scores alone
    assert peak(lambda: h.viterbi(x)) < 24  # the path, and a piece


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("what", ["logarithms", "hard", "weight 0", "known", "smooth"])
def test_a_million_frames_in_the_memory_of_a_piece(what):
    """32 MB are the scores alone; the answer of `smooth` is the caller's."""
    T = 10**6
    answer = T * chain().states * 8 / 2**20
    assert peak_of(what, T) < 12 + (answer if what == "smooth" else 0.0)


@pytest.mark.parametrize("what", ["logarithms", "hard", "weight 0", "known", "masks"])
def test_memory_does_not_grow_with_the_length(monkeypatch, what):
    """8,192 frames have 64 kB of states and 256 kB of scores, a piece of 256 frames 8 kB; its borders are kept."""
    monkeypatch.setattr(sequence_blocks, "LONG", 512)
    monkeypatch.setattr(sequence_blocks, "PIECE", 256)
    assert peak_of(what, 2**14) - peak_of(what, 2**13) < 40 / 1024


@pytest.mark.campaign
@pytest.mark.slow
def test_ten_million_frames_are_the_sum_of_their_pieces():
    """log p(x) = Σ log p(piece | all before), each piece from the belief that the one before left."""
    T, part, h = 10**7, 10**6, chain()
    x = np.tile(frames(10**5), (100, 1))
    belief, total = h.initial, 0.0
    for a in range(0, T, part):
        piece = h.replace(initial=belief)
        total += float(piece.log_prob([x[a : a + part]])[0])
        tail = piece.posterior(x[a : a + part], lag=0)[-1]
        belief = tail @ h.transition
    found = float(h.log_prob(Ragged.of(x))[0])
    assert np.isfinite(found) and found == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("outliers", [False, True])
def test_predictive_probabilities_of_frames_are_those_of_one_piece(final, outliers, monkeypatch):
    h, x = chain(final), frames(3000, outliers)
    whole = h.predictive_log_prob(x)
    monkeypatch.setattr(sequence_blocks, "LONG", 500)
    alike(h.predictive_log_prob(x), whole)
    assert whole.sum() == pytest.approx(h.log_prob([x])[0], rel=1e-10)

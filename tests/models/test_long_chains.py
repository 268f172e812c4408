"""A million frames: the same numbers as in one piece, in the memory of one piece."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from likely import HMM, Categorical, Gaussian, Ragged
from likely.models import decoding, long_chains, trellis
from tests.laws.compare import arrays_of

MOVES = np.array([[0.95, 0.05, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.02, 0.9, 0.08], [0.03, 0, 0.07, 0.9]])


def chain(ends=False) -> HMM:
    leave = np.array([0.0, 0.001, 0.0, 0.002]) if ends else None
    moves = MOVES if leave is None else MOVES * (1 - leave)[:, None]
    return HMM([0.4, 0.3, 0.2, 0.1], moves, Gaussian([[0.0], [2.0], [4.0], [6.0]], 1.0), leave)


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
    monkeypatch.setattr(long_chains, "LONG", 20)
    monkeypatch.setattr(long_chains, "PIECE", 7)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize("T", [21, 28, 200])
def test_pieces_change_nothing(short_pieces, T, outliers, ends):
    h, x = chain(ends), frames(T, outliers)
    way, logs = h.chains[0].summed, h.scores(Ragged.of(x))
    with np.errstate(all="ignore"):
        want = trellis.posterior_by_logs(way, logs, np.array([0, T]), np.ones(1))
    assert h.log_prob([x])[0] == pytest.approx(want.log_prob[0], rel=1e-13)
    stats = h.collect([x], [2.5])
    assert np.abs(stats.starts - 2.5 * want.starts).max() <= 1e-10 * T
    assert np.abs(stats.moves - 2.5 * want.moves).max() <= 1e-10 * T
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
    in_pieces = h.collect([x], given=[known])
    whole = h._on_all_paths(Ragged.of([x]), np.ones(1), Ragged(_mask(known, K), [0, 60]))
    alike(in_pieces, whole)


def _mask(known, K):
    return np.where((known[:, None] < 0) | (known[:, None] == np.arange(K)), 0.0, -np.inf)


def test_complete_states_in_pieces_are_counted(short_pieces):
    h, x = chain(), frames(100)
    states = np.random.default_rng(0).integers(0, 2, 100)
    stats = h.collect([x], given=[states])
    assert stats.complete and np.allclose(stats.counts, np.bincount(states, minlength=4), rtol=1e-13)


def test_best_path_in_pieces(monkeypatch):
    h, x = chain(True), frames(5000)
    whole = h.viterbi(x)
    monkeypatch.setattr(decoding, "LONG", 512)
    pieces = h.viterbi(x)
    assert (pieces.states == whole.states).all() and pieces.log_prob == pytest.approx(whole.log_prob, rel=1e-13)


def peak(f) -> float:
    tracemalloc.start()
    f()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size / 2**20


@pytest.mark.slow
def test_a_million_frames():
    T, h = 10**6, chain()
    x = frames(T)
    seqs = Ragged.of(x)
    total = float(h.log_prob(seqs)[0])
    with np.errstate(all="ignore"):
        way = h.chains[0].summed
        whole = trellis.posterior(way, h.scores(seqs), np.array([0, T]), np.ones(1))
    assert np.isfinite(total) and total == pytest.approx(whole.log_prob[0], rel=1e-12)
    stats = h.collect(seqs)
    assert np.abs(stats.moves - whole.moves).max() <= 1e-10 * T and stats.counts.sum() == pytest.approx(T, rel=1e-10)
    assert np.abs(stats.counts - whole.states.sum(axis=0)).max() <= 1e-10 * T
    assert h.objective(stats) == pytest.approx(total, rel=1e-11)
    assert peak(lambda: h.collect(seqs)) < 12 and peak(lambda: h.log_prob(seqs)) < 12  # 32 MB are the scores alone
    assert peak(lambda: h.viterbi(x)) < 80  # back-pointers of two bytes, and the path


@pytest.mark.slow
def test_ten_million_frames_are_the_sum_of_their_pieces():
    """log p(x) = Σ log p(piece | all before), each piece from the belief that the one before left."""
    T, part, h = 10**7, 10**6, chain()
    x = np.tile(frames(10**5), (100, 1))
    belief, total = h.starts, 0.0
    for a in range(0, T, part):
        piece = h.replace(starts=belief)
        total += float(piece.log_prob([x[a : a + part]])[0])
        tail = piece.posterior(x[a : a + part], lag=0)[-1]
        belief = tail @ h.moves
    found = float(h.log_prob(Ragged.of(x))[0])
    assert np.isfinite(found) and found == pytest.approx(total, rel=1e-12)

"""The loops of chains against their NumPy twins; each is compiled for one signature."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.special import logsumexp

from likely import HMM, Categorical, Gaussian, Ragged
from likely.loops import chains, log_chains, paths

jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")
LOOPS = [chains.shift, chains.likelihoods, chains.forward, chains.backward, log_chains.forward, log_chains.backward,
         log_chains.moved, paths.trace, paths.viterbi, paths.k_best, paths.draw]  # fmt: skip


def use_every_way():
    """As the library meets them: views, read-only rows, float32, one sequence and many, outliers, long ones."""
    rng = np.random.default_rng(0)
    for law in (Gaussian([[0.0], [4.0]], 1.0), Categorical([[0.5, 0.5], [0.2, 0.8]])):
        for ends in (None, [0.0, 0.1]):
            moves = np.array([[0.9, 0.1], [0.0, 1.0]]) * (1 - np.array(ends or [0, 0]))[:, None]
            h = HMM([1.0, 0.0], moves, law, ends)
            x = rng.integers(0, 2, (60, 1)).astype(float)
            x[30] = 1e4 if isinstance(law, Gaussian) else 1
            x.setflags(write=False)
            weight = rng.random(3)
            weight.setflags(write=False)
            for rows in (x, x.astype(np.float32), np.asfortranarray(x)):
                seqs = Ragged(rows, [0, 10, 40, 60])
                for some in (seqs, seqs[1:], [rows[:7]]):
                    h.log_prob(some), h.posterior(some), h.posterior(some, 0), h.posterior(some, 2), h.viterbi(some)
                h.collect(seqs), h.collect(seqs, weight), h.collect(seqs, hard=True), h.k_best(rows[:9], 3)
            h.sample(3, rng, length=7)
            h.log_prob([np.tile(x, (1200, 1))]), h.collect([np.tile(x, (1200, 1))])


@jit
def test_each_loop_compiles_once():
    use_every_way()
    assert {f.__name__: len(f.signatures) for f in LOOPS} == {f.__name__: 1 for f in LOOPS}


@jit
def test_options_of_the_one_decorator():
    for f in LOOPS:
        assert f.targetoptions.get("nogil") and f.targetoptions.get("error_model") == "numpy"
        assert not f.targetoptions.get("fastmath") and not f.targetoptions.get("parallel")


def problem(seed):
    rng = np.random.default_rng(seed)
    K, T = int(rng.integers(1, 6)), int(rng.integers(1, 12))
    starts, moves, ends = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K), rng.random(K)
    return starts, moves, ends, rng.standard_normal((T, K)), np.array([0, T])


def test_shift_leaves_each_frame_below_0():
    logs = np.array([[1.0, 3.0, -np.inf, 2.0], [-np.inf, -np.inf, 0.0, 5.0]])
    top, out = np.empty((2, 2)), logs.copy()
    chains.shift(out, top, 2)
    assert top.tolist() == [[3.0, 2.0], [-np.inf, 5.0]]
    assert out.tolist() == [[-2.0, 0.0, -np.inf, 0.0], [-np.inf, -np.inf, -5.0, 0.0]]


@pytest.mark.parametrize("seed", range(25))
def test_scaled_recursions_are_their_twins(seed):
    starts, moves, ends, logs, offsets = problem(seed)
    T, K = logs.shape
    b = np.exp(logs - logs.max(axis=1, keepdims=True))
    alpha, scale, finish, sound, lost = np.empty((T, K)), np.empty(T), np.empty(1), np.empty(1, bool), np.zeros(1)
    chains.forward(starts, moves, ends, np.zeros(K), b, offsets, alpha, scale, finish, sound, lost)
    now, want = starts, np.empty((T, K))
    for t in range(T):
        now = (now if t == 0 else want[t - 1] @ moves) * b[t]
        want[t] = now / now.sum()
        assert scale[t] == pytest.approx(now.sum(), rel=1e-14)
    assert np.allclose(alpha, want, rtol=1e-13) and finish[0] == pytest.approx(want[-1] @ ends, rel=1e-13)
    gamma, ahead = np.empty((2, T, K))
    back, weight = np.ascontiguousarray(moves.T), np.array([2.0])
    chains.backward(back, ends, b, offsets, weight, alpha, scale, finish, sound, gamma, ahead)
    beta = ends / finish[0]
    for t in reversed(range(T)):
        assert np.allclose(gamma[t], 2.0 * want[t] * beta, rtol=1e-12)
        assert np.allclose(ahead[t], 2.0 * beta * b[t] / scale[t], rtol=1e-12)
        beta = moves @ (beta * b[t] / scale[t])
    each, done, fine = np.empty((T, 1)), np.empty((1, 1)), np.empty((1, 1), bool)
    chains.likelihoods(starts[None], moves[None], ends[None], np.zeros((1, K)), b, offsets, each, done, fine)
    assert (each[:, 0] == scale).all() and done[0, 0] == finish[0] and fine.all() and sound.all()


@pytest.mark.parametrize("seed", range(25))
def test_recursions_in_logarithms_are_their_twins(seed):
    starts, moves, ends, logs, offsets = problem(seed)
    T, K = logs.shape
    way = np.log(starts), np.log(moves), np.log(ends)
    alpha, scale, total, used = np.empty((T, K)), np.empty(T), np.empty(1), logs.copy()
    log_chains.forward(*way, used, offsets, alpha, scale, total)
    want = way[0] + logs[0]
    for t in range(T):
        want = want if t == 0 else logsumexp(want[:, None] + way[1], axis=0) + logs[t]
        assert np.allclose(alpha[t] + scale[: t + 1].sum(), want, rtol=1e-13, atol=1e-13)
    assert total[0] == pytest.approx(float(logsumexp(want + way[2])), rel=1e-13)
    beta, gamma, moved = np.empty((T, K)), np.empty((T, K)), np.zeros((K, K))
    log_chains.backward(way[1], way[2], used, offsets, beta)
    log_chains.moved(way[1], used, offsets, alpha, beta, total, np.array([3.0]), gamma, moved)
    assert np.allclose(gamma.sum(axis=1), 3.0) and moved.sum() == pytest.approx(3.0 * (T - 1))
    assert np.allclose(moved.sum(axis=0), gamma[1:].sum(axis=0)) and np.allclose(
        moved.sum(axis=1), gamma[:-1].sum(axis=0)
    )


def test_of_equal_paths_the_lowest_states_win():
    came, last, score, path = np.empty((3, 2), np.int16), np.empty(1, np.intp), np.empty(1), np.empty(3, np.intp)
    flat = np.zeros((3, 2))
    paths.viterbi(np.zeros(2), np.zeros((2, 2)), np.zeros(2), flat, np.array([0, 3]), came, last, score)
    paths.trace(came, np.array([0, 3]), last, path)
    assert path.tolist() == [0, 0, 0] and score[0] == 0.0

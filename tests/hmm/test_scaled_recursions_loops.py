"""Compiled HMM recursions against NumPy references; each is compiled for one signature."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.special import logsumexp

from likely import HMM, Categorical, Gaussian, Ragged
from likely.hmm import LogisticTransition, forward_backward
from likely.hmm._loops import log_recursions, row_softmax, scaled_recursions
from likely.hmm.markov_chain import Chain

jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")
LOOPS = [
    scaled_recursions.shift, scaled_recursions.likelihoods, scaled_recursions.forward, scaled_recursions.backward,
    scaled_recursions.smooth, scaled_recursions.e_step, scaled_recursions.sparse_transition_counts,
    log_recursions.forward, log_recursions.backward, log_recursions.expected_counts, log_recursions.viterbi,
    log_recursions.backtrack, log_recursions.k_best, log_recursions.backward_sampling,
    row_softmax.subtract_row_max, row_softmax.normalize,
]  # fmt: skip


def use_every_way():
    """As the library meets them: views, read-only rows, float32, one sequence and many, outliers, long ones."""
    rng = np.random.default_rng(0)
    for distribution in (Gaussian([[0.0], [4.0]], 1.0), Categorical([[0.5, 0.5], [0.2, 0.8]])):
        for final in (None, [0.0, 0.1]):
            transition = np.array([[0.9, 0.1], [0.0, 1.0]]) * (1 - np.array(final or [0, 0]))[:, None]
            h = HMM([1.0, 0.0], transition, distribution, final=final)
            x = rng.integers(0, 2, (60, 1)).astype(float)
            x[30] = 1e4 if isinstance(distribution, Gaussian) else 1
            x.setflags(write=False)
            weight = rng.random(3)
            weight.setflags(write=False)
            for rows in (x, x.astype(np.float32), np.asfortranarray(x)):
                seqs = Ragged(rows, [0, 10, 40, 60])
                for some in (seqs, seqs[1:], [rows[:7]]):
                    h.log_prob(some), h.posterior(some), h.posterior(some, 0), h.posterior(some, 2), h.viterbi(some)
                h.collect(seqs), h.collect(seqs, weight), h.collect(seqs, hard=True), h.k_best(rows[:9], 3)
            h.sample(3, rng, length=7)
            long = np.tile(x, (1200, 1))
            h.log_prob([long]), h.collect([long]), h.collect([long], hard=True)
    many = HMM(np.full(8, 1 / 8), np.full((8, 8), 1 / 8), Gaussian(rng.random((8, 2)), np.stack([np.eye(2)] * 8)))
    many.collect(Ragged(rng.random((60, 2)), [0, 10, 60]))  # in one sweep, for scores and for sums
    torn = HMM([0.5, 0.5], np.eye(2), Gaussian([[0.0], [100.0]], 1.0))
    torn.sample_states([[0.0, 100.0, 100.0]], rng)
    for slope in (0.0, -900.0):
        beta = np.tile([[0.0, 0.0], [slope, 0.0]], (2, 1, 1))
        h, u = HMM([0.5, 0.5], LogisticTransition(beta), Gaussian([[0.0], [4.0]], 1.0)), [np.zeros(5), np.zeros(9000)]
        y, seen = [np.zeros(5), np.zeros(9000)], {"covariates": u}
        h.log_prob(y, u), h.posterior(y, **seen), h.posterior(y, 1, **seen), h.viterbi(y, u), h.k_best(y[0], 2, u[0])
        h.collect(y, **seen), h.collect(y, hard=True, **seen), h.sample_states(y, rng, **seen)
        h.log_prob([np.zeros(3)], transition=[np.full((3, 2, 2), 0.5)])
    wide = few_arcs(30)
    for final in (np.ones(30), np.zeros(30)):
        way = Chain.trusted(initial=np.full(30, 1 / 30), transition=wide, final=final, states=30).summed
        forward_backward.posterior(way, np.zeros((4, 30)), np.array([0, 4]), np.ones(1))


@pytest.mark.slow
@jit
def test_each_loop_compiles_once():
    use_every_way()
    assert {f.__name__: len(f.dispatcher.signatures) for f in LOOPS} == {f.__name__: 1 for f in LOOPS}


@jit
def test_options_of_the_one_decorator():
    for f in LOOPS:
        assert f.dispatcher.targetoptions.get("nogil") and f.dispatcher.targetoptions.get("error_model") == "numpy"
        assert not f.dispatcher.targetoptions.get("fastmath") and not f.dispatcher.targetoptions.get("parallel")


def few_arcs(K, share=0.05):
    """Moves between many states, most of them impossible."""
    rng = np.random.default_rng(K)
    transition = rng.random((K, K)) * ((rng.random((K, K)) < share) | (np.arange(K) == (np.arange(K) + 1)[:, None] % K))
    return transition / transition.sum(axis=1, keepdims=True)


def test_lists_of_arcs():
    table = np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        indptr, indices, data = log_recursions._possible(np.log(table)[None], 3, False)
        both = log_recursions._possible(np.log(np.stack([table, np.eye(3)])), 9, False)
        assert len(log_recursions._possible(np.log(table)[None], 2, False)[0]) == 0
    assert (
        indptr.tolist() == [0, 2, 2, 3] and indices.tolist() == [1, 2, 0] and np.exp(data).tolist() == [0.5, 0.5, 1.0]
    )
    with np.errstate(divide="ignore"):
        into = log_recursions._possible(np.log(table)[None], 9, True)
        transposed = log_recursions._possible(np.log(table.T)[None], 9, False)
    assert all((a == b).all() for a, b in zip(into, transposed, strict=True))
    assert both[0].tolist() == [0, 3, 4, 6] and both[1].tolist() == [0, 1, 2, 1, 0, 2]
    wide = few_arcs(30)
    indptr, indices, data = scaled_recursions._sparse_rows(wide[None], 0.15)
    assert np.diff(indptr).tolist() == (wide > 0).sum(axis=1).tolist() and (data == wide[wide > 0]).all()
    assert (indices == np.nonzero(wide)[1]).all()
    assert len(scaled_recursions._sparse_rows(wide[None], 0.01)[0]) == 0
    assert len(scaled_recursions._sparse_rows(np.stack([wide] * 2), 0.15)[0]) == 0


@pytest.mark.parametrize("K", [24, 60])
def test_arcs_and_rows_make_the_same_sums(K):
    """By lists of arcs, as the loops choose for few, and by NumPy's products of whole tables."""
    transition, rng, T = few_arcs(K), np.random.default_rng(1), 40
    assert len(scaled_recursions._sparse_rows(transition[None], scaled_recursions.FEW)[0]) == K + 1
    initial, final, logs, cut = np.full(K, 1 / K), rng.random(K), rng.standard_normal((T, K)), np.array([0, T])
    b = np.exp(logs - logs.max(axis=1, keepdims=True))
    alpha, scale, termination, in_range = np.empty((T, K)), np.empty(T), np.empty(1), np.ones(1, bool)
    scaled_recursions.forward(
        initial,
        transition[None],
        final,
        np.zeros((1, K)),
        b[:, None],
        0,
        cut,
        alpha,
        scale,
        termination,
        in_range,
        np.zeros(1),
    )
    each, done, fine = np.empty((1, T)), np.empty((1, 1)), np.empty((1, 1), bool)
    scaled_recursions.likelihoods(
        initial[None], transition[None], final[None], np.zeros((1, K)), b[:, None], cut, each, done, fine
    )
    gamma, b_beta = np.empty((2, T, K))
    transposed = np.ascontiguousarray(transition.T)[None]
    scaled_recursions.backward(
        transposed, final, b, cut, np.ones(1), alpha, scale, termination, in_range, gamma, b_beta
    )
    now, beta = initial, final / termination[0]
    for t in range(T):
        now = (initial if t == 0 else now @ transition) * b[t]
        now = now / now.sum()
        assert np.abs(alpha[t] - now).max() <= 1e-14 and each[0, t] == scale[t]
    for t in reversed(range(T)):
        assert np.abs(gamma[t] - alpha[t] * beta).max() <= 1e-12
        beta = transition @ (beta * b[t] / scale[t])


def test_arcs_of_several_chains_are_kept_apart():
    K, T, rng = 24, 12, np.random.default_rng(2)
    transition = np.stack([few_arcs(K), few_arcs(K)[::-1, ::-1]])
    initial, final, b = np.full((2, K), 1 / K), rng.random((2, K)), rng.random((T, 2 * K))
    each, done, fine = np.empty((2, T)), np.empty((2, 1)), np.empty((2, 1), bool)
    scaled_recursions.likelihoods(
        initial, transition, final, np.zeros((2, K)), b.reshape(T, 2, K), np.array([0, T]), each, done, fine
    )
    for c in range(2):
        now = initial[c] * b[0, c * K : (c + 1) * K]
        for t in range(1, T):
            now = now @ transition[c] * b[t, c * K : (c + 1) * K]
        assert fine[c, 0] and each[c].prod() * done[c, 0] == pytest.approx(now @ final[c], rel=1e-12)


def test_moves_counted_by_arcs_and_as_a_product():
    rng, K = np.random.default_rng(3), 100
    transition, alpha, b_beta, counts = few_arcs(K, 0.01), *rng.random((2, 30, K)), np.empty((K, K))
    assert scaled_recursions.sparse_transition_counts(transition[None], alpha, b_beta, counts)
    assert np.abs(counts - transition * (alpha[:-1].T @ b_beta[1:])).max() <= 1e-12
    assert not scaled_recursions.sparse_transition_counts(few_arcs(K, 0.5)[None], alpha, b_beta, counts)


@pytest.mark.parametrize("K", [24, 60])
def test_best_paths_by_arcs(K):
    rng, T = np.random.default_rng(2), 30
    with np.errstate(divide="ignore"):
        way = np.log(np.full(K, 1 / K)), np.log(few_arcs(K)), np.log(rng.random(K))
    logs, cut = rng.standard_normal((T, K)), np.array([0, T])
    last, score, path = np.empty(1, np.intp), np.empty(1), np.empty(T, np.intp)
    matrix, scores = way[1][None], logs.copy()
    log_recursions.viterbi(way[0], matrix, way[2], scores, cut, last, score)
    log_recursions.backtrack(np.ascontiguousarray(matrix.transpose(0, 2, 1)), scores, cut, last, path)
    best = way[0] + logs[0]
    for t in range(1, T):
        through = best[:, None] + way[1]
        assert path[t - 1] == through[:, path[t]].argmax()
        best = through.max(axis=0) + logs[t]
    assert score[0] == (best + way[2]).max()
    scores, several = np.empty(4), np.empty((4, T), np.intp)
    log_recursions.k_best(way[0], matrix, way[2], logs, 4, scores, several)
    assert scores[0] == pytest.approx(score[0], rel=1e-14) and (several[0] == path).all()
    for one, of in zip(several, scores, strict=True):
        whole = way[0][one[0]] + way[1][one[:-1], one[1:]].sum() + way[2][one[-1]] + logs[np.arange(T), one].sum()
        assert whole == pytest.approx(of, rel=1e-13)


def test_no_state_is_chosen_where_none_can_be():
    path, in_between = np.empty(2, np.intp), np.array([[1.0, 0.0], [0.0, 1.0]])
    with np.errstate(divide="ignore"):
        way = np.log(np.eye(2))[None], np.zeros(2), np.log(in_between)
    log_recursions.backward_sampling(*way, np.array([0, 2]), np.full(2, 0.5), path)
    assert path.tolist() == [-1, 1]


def problem(seed):
    rng = np.random.default_rng(seed)
    K, T = int(rng.integers(1, 6)), int(rng.integers(1, 12))
    initial, transition, final = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K), rng.random(K)
    return initial, transition, final, rng.standard_normal((T, K)), np.array([0, T])


def test_shift_leaves_each_frame_below_0():
    logs = np.array([[1.0, 3.0, -np.inf, 2.0], [-np.inf, -np.inf, 0.0, 5.0]])
    top, out = np.empty((2, 2)), logs.copy()
    scaled_recursions.shift(out, top, 2)
    assert top.tolist() == [[3.0, 2.0], [-np.inf, 5.0]]
    assert out.tolist() == [[-2.0, 0.0, -np.inf, 0.0], [-np.inf, -np.inf, -5.0, 0.0]]


@pytest.mark.parametrize("seed", range(25))
def test_scaled_recursions_are_their_twins(seed):
    initial, transition, final, logs, offsets = problem(seed)
    T, K = logs.shape
    b = np.exp(logs - logs.max(axis=1, keepdims=True))
    alpha, scale, termination, in_range, underflow = (
        np.empty((T, K)),
        np.empty(T),
        np.empty(1),
        np.ones(1, bool),
        np.zeros(1),
    )
    scaled_recursions.forward(
        initial,
        transition[None],
        final,
        np.zeros((1, K)),
        b[:, None],
        0,
        offsets,
        alpha,
        scale,
        termination,
        in_range,
        underflow,
    )
    now, want = initial, np.empty((T, K))
    for t in range(T):
        now = (now if t == 0 else want[t - 1] @ transition) * b[t]
        want[t] = now / now.sum()
        assert scale[t] == pytest.approx(now.sum(), rel=1e-14)
    assert np.allclose(alpha, want, rtol=1e-13) and termination[0] == pytest.approx(want[-1] @ final, rel=1e-13)
    gamma, b_beta = np.empty((2, T, K))
    transposed, weight = np.ascontiguousarray(transition.T)[None], np.array([2.0])
    scaled_recursions.backward(
        transposed, final, b, offsets, weight, alpha, scale, termination, in_range, gamma, b_beta
    )
    beta = final / termination[0]
    for t in reversed(range(T)):
        assert np.allclose(gamma[t], 2.0 * want[t] * beta, rtol=1e-12)
        assert np.allclose(b_beta[t], 2.0 * beta * b[t] / scale[t], rtol=1e-12)
        beta = transition @ (beta * b[t] / scale[t])
    each, done, fine = np.empty((1, T)), np.empty((1, 1)), np.empty((1, 1), bool)
    scaled_recursions.likelihoods(
        initial[None], transition[None], final[None], np.zeros((1, K)), b[:, None], offsets, each, done, fine
    )
    assert (each[0] == scale).all() and done[0, 0] == termination[0] and fine.all() and in_range.all()


@pytest.mark.parametrize("seed", range(25))
def test_recursions_in_logarithms_are_their_twins(seed):
    initial, transition, final, logs, offsets = problem(seed)
    T, K = logs.shape
    way = np.log(initial), np.log(transition), np.log(final)
    alpha, scale, total, used = np.empty((T, K)), np.empty(T), np.empty(1), logs.copy()
    matrix = way[1][None]
    log_recursions.forward(way[0], matrix, way[2], used, offsets, alpha, scale, total)
    want = way[0] + logs[0]
    for t in range(T):
        want = want if t == 0 else logsumexp(want[:, None] + way[1], axis=0) + logs[t]
        assert np.allclose(alpha[t] + scale[: t + 1].sum(), want, rtol=1e-13, atol=1e-13)
    assert total[0] == pytest.approx(float(logsumexp(want + way[2])), rel=1e-13)
    beta, gamma, counts = np.empty((T, K)), np.empty((T, K)), np.zeros((1, K, K))
    log_recursions.backward(matrix, way[2], used, offsets, beta)
    log_recursions.expected_counts(matrix, used, offsets, alpha, beta, total, np.array([3.0]), gamma, counts)
    counts = counts[0]
    assert np.allclose(gamma.sum(axis=1), 3.0) and counts.sum() == pytest.approx(3.0 * (T - 1))
    assert np.allclose(counts.sum(axis=0), gamma[1:].sum(axis=0)) and np.allclose(
        counts.sum(axis=1), gamma[:-1].sum(axis=0)
    )


@pytest.mark.parametrize("seed", range(10))
def test_matrices_of_every_frame_are_those_of_one(seed):
    """The same matrix for each frame, and in one array for all: every bit the same."""
    initial, transition, final, logs, offsets = problem(seed)
    T, K = logs.shape
    b, found = np.exp(logs - logs.max(axis=1, keepdims=True)), []
    for matrices in (transition[None], np.repeat(transition[None], T, axis=0)):
        alpha, scale, termination, in_range = np.empty((T, K)), np.empty(T), np.empty(1), np.ones(1, bool)
        ways = initial, matrices, final, np.zeros((1, K)), b[:, None], 0, offsets
        scaled_recursions.forward(*ways, alpha, scale, termination, in_range, np.zeros(1))
        gamma, b_beta, in_place = *np.empty((2, T, K)), alpha.copy()
        transposed, of_one = np.ascontiguousarray(matrices.transpose(0, 2, 1)), np.ones(1)
        scaled_recursions.backward(
            transposed, final, b, offsets, of_one, alpha, scale, termination, in_range, gamma, b_beta
        )
        scaled_recursions.smooth(transposed, final, b, offsets, scale, termination, in_range, in_place)
        assert (in_place == gamma).all() and in_range[0]
        found.append([scale, termination, alpha, gamma, b_beta])
    for one, two in zip(*found, strict=True):
        assert (one == two).all()


def test_of_equal_paths_the_lowest_states_win():
    last, score, path = np.empty(1, np.intp), np.empty(1), np.empty(3, np.intp)
    flat = np.zeros((3, 2))
    log_recursions.viterbi(np.zeros(2), np.zeros((1, 2, 2)), np.zeros(2), flat, np.array([0, 3]), last, score)
    log_recursions.backtrack(np.zeros((1, 2, 2)), flat, np.array([0, 3]), last, path)
    assert path.tolist() == [0, 0, 0] and score[0] == 0.0

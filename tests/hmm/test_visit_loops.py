"""The E-step of a block in one compiled call against forward–backward."""

import numpy as np
import pytest

from likely.hmm import forward_backward
from likely.hmm._loops import scaled_recursions
from likely.hmm.markov_chain import Chain


def test_exponentials_are_right_to_the_last_place():
    rng = np.random.default_rng(0)
    x = -np.concatenate([[0.0, 1e-300, 1e-10, 707.9], rng.uniform(0, 5, 300), rng.uniform(0, 700, 300)])
    found, room = x.copy(), np.empty_like(x)
    scaled_recursions._exponentials(found, room)
    assert np.abs(found / np.exp(x) - 1).max() < 4e-16
    assert found[0] == 1.0


def test_what_is_next_to_nothing_is_nothing():
    x, room = np.array([-709.0, -1e5, -np.inf]), np.empty(3)
    scaled_recursions._exponentials(x, room)
    assert (x == 0).all()


@pytest.mark.parametrize("K", [1, 3, 4, 8, 13])
@pytest.mark.parametrize("final", [False, True])
def test_one_call_is_the_same_as_many(K, final):
    rng = np.random.default_rng(K)
    rows = rng.dirichlet(np.ones(K + 1), K)
    transition = rows[:, :K] if final else rows[:, :K] / rows[:, :K].sum(axis=1, keepdims=True)
    chain = Chain(rng.dirichlet(np.ones(K)), transition, rows[:, K] if final else None, K).summed
    offsets, weight = np.array([0, 7, 7, 8, 30]), np.array([1.0, 5.0, 0.5, 2.0])
    T = int(offsets[-1])
    scores = rng.normal(-20.0, 8.0, (K, T))
    frames, gamma, ends_of, total = np.empty((4, T, K)), np.empty((T, K)), np.zeros((2, K)), np.zeros(1)
    kept = scores.copy()
    assert scaled_recursions.e_step(
        scores,
        (chain.initial, chain.matrices, chain.final),
        np.ascontiguousarray(chain.transition.T)[None],
        chain.entry[None],
        offsets,
        weight,
        frames,
        gamma,
        ends_of,
        total,
    )
    whole = forward_backward.posterior(chain, np.ascontiguousarray(kept.T), offsets, weight)
    there = np.diff(offsets) > 0
    np.testing.assert_allclose(gamma, whole.states, rtol=1e-11, atol=1e-14)
    ends = [whole.states[at].sum(axis=0) for at in (offsets[:-1][there], offsets[1:][there] - 1)]
    np.testing.assert_allclose(ends_of, ends, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(
        chain.transition * (frames[1, :-1].T @ frames[2, 1:]), whole.transition, rtol=1e-10, atol=1e-13
    )
    assert total[0] == pytest.approx(weight[there] @ whole.log_prob[there], rel=1e-13)
    assert (scores == kept).all()


def test_a_sequence_that_needs_logarithms_is_said():
    chain = Chain(np.array([1.0, 0.0]), np.eye(2), None, 2).summed
    scores = np.array([[0.0, -2000.0], [0.0, 0.0]])
    room = np.empty((4, 2, 2)), np.empty((2, 2)), np.zeros((2, 2)), np.zeros(1)
    arcs = chain.initial, chain.matrices, chain.final
    assert not scaled_recursions.e_step(
        scores, arcs, chain.transition.T.copy()[None], chain.entry[None], np.array([0, 2]), np.ones(1), *room
    )

"""Null states: sums over routes, best routes, and expected uses of arcs."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest

from likely import HMM, Categorical, DomainError, Gaussian
from likely.hmm import Topology
from likely.hmm.markov_chain import Chain
from likely.hmm.topology import with_durations


def looping(rng: np.random.Generator, K: int, Q: int, zeros: float) -> Chain:
    """A chain whose null states may lead back to each other; some always leave."""
    N = K + Q
    rows = rng.standard_gamma(0.6, (N + 1, N + 1)) * (rng.random((N + 1, N + 1)) >= zeros)
    rows[:, 0] += 1e-3
    rows[N, N] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    return Chain.trusted(initial=rows[N, :N].copy(), transition=rows[:N, :N].copy(), final=rows[:N, N].copy(), states=K)


def by_walking(c: Chain) -> np.ndarray:
    """Σ over walks through up to 2²⁰ null states: (K + 1, K + 1), the entry and exit last."""
    K, N = c.states, len(c.initial)
    arcs, out = np.concatenate([c.transition, c.initial[None]]), np.append(c.final, 0.0)
    sources = [*range(K), N]
    walks, far = np.eye(N - K), c.transition[K:, K:]
    for _ in range(20):
        walks, far = walks + far @ walks, far @ far
    assert far.max(initial=0) < 1e-100
    leave = np.concatenate([c.transition[K:, :K], c.final[K:, None]], axis=1)
    return np.concatenate([arcs[sources, :K], out[sources, None]], axis=1) + arcs[sources, K:] @ walks @ leave


def as_table(ways) -> np.ndarray:
    return np.block([[ways.transition, ways.final[:, None]], [ways.initial[None], np.array([[ways.empty]])]])


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.8])
def test_loops_of_null_states_sum_up(zeros):
    rng = np.random.default_rng(3)
    for _ in range(60):
        c = looping(rng, int(rng.integers(1, 4)), int(rng.integers(1, 5)), zeros)
        want = by_walking(c)
        found = as_table(c.summed)
        assert np.abs(found - want).max() <= 1e-12
        assert ((found == 0) == (want == 0)).all() and (found >= 0).all()  # what cannot be is 0, not nearly so
        best = as_table(c.best)
        assert (best <= found * (1 + 1e-12)).all() and ((best == 0) == (want == 0)).all()


def test_best_way_through_loops_is_the_best_of_all_short_ones():
    rng = np.random.default_rng(4)
    for _ in range(40):
        K, Q = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        c = looping(rng, K, Q, 0.4)
        arcs = np.concatenate([c.transition, c.initial[None]])[[*range(K), K + Q]]
        out = np.append(c.final, 0.0)[[*range(K), K + Q]]
        best, at = np.concatenate([arcs[:, :K], out[:, None]], axis=1), arcs[:, K:]
        leave = np.concatenate([c.transition[K:, :K], c.final[K:, None]], axis=1)
        for _ in range(Q):  # a best way visits no null state twice
            best = np.maximum(best, (at[:, :, None] * leave).max(axis=1))
            at = (at[:, :, None] * c.transition[K:, K:]).max(axis=1)
        assert np.allclose(as_table(c.best), best, rtol=1e-14)


def test_what_goes_in_comes_out():
    """Expected uses of arcs, loops of null states too: every null state is left as often as it is entered."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        K, Q = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        c = looping(rng, K, Q, 0.3)
        may = as_table(c.summed) > 0
        ways = rng.random((K + 1, K + 1)) * may
        for uses in (c.uses(ways[K, :K], ways[:K, :K], ways[:K, K], float(ways[K, K])),
                     c.best_uses(ways[K, :K], ways[:K, :K], ways[:K, K], float(ways[K, K]))):  # fmt: skip
            into = uses.transition.sum(axis=0) + uses.initial
            onward = uses.transition.sum(axis=1) + uses.final
            assert np.allclose(into[K:], onward[K:], rtol=1e-10)
            assert np.allclose(onward[:K], ways[:K].sum(axis=1)) and np.allclose(into[:K], ways[:, :K].sum(axis=0))
            assert np.allclose(uses.final.sum(), ways[:, K].sum())
            assert (uses.transition[c.transition == 0] == 0).all() and (uses.final[c.final == 0] == 0).all()


def test_arcs_of_the_best_way_multiply_to_its_probability():
    rng = np.random.default_rng(7)
    for _ in range(30):
        K, Q = int(rng.integers(1, 4)), int(rng.integers(0, 6))
        c = looping(rng, K, Q, 0.5)
        best = as_table(c.best)
        for a, b in zip(*np.nonzero(best), strict=True):
            one = np.zeros((K + 1, K + 1))
            one[a, b] = 1.0
            uses = c.best_uses(one[K, :K], one[:K, :K], one[:K, K], float(one[K, K]))
            assert np.exp(c.expected_log(uses)) == pytest.approx(best[a, b], rel=1e-12)


def test_best_ways_of_many_states_are_found_at_once():
    """1,000 states behind 20 null states: one by one this took half a minute."""
    top = with_durations(Topology.ergodic(20), 50)
    initial, transition, final = top.probabilities()
    c = Chain.trusted(initial=initial, transition=transition, final=final, states=top.states)
    begin = perf_counter()
    assert np.allclose(c.best.transition, c.summed.transition, rtol=1e-13)  # there is but one way from state to state
    assert perf_counter() - begin < 5


def test_uses_are_the_gradient_of_the_log_probability():
    """∂ log p / ∂ log a = expected uses of the arc a: by central differences, null loops and all."""
    rng = np.random.default_rng(6)
    c = looping(rng, 2, 2, 0.0)
    emission = Categorical(rng.dirichlet(np.ones(3), 2))
    x = rng.integers(0, 3, (5, 1)).astype(float)

    def log_prob(transition):
        return float(
            HMM.trusted(initial=c.initial, transition=transition, final=c.final, emission=emission).log_prob([x])[0]
        )

    stats = HMM(c.initial, c.transition, emission, final=c.final).collect([x])
    h = 1e-5
    for a in range(4):
        for b in range(4):
            up, down = np.array(c.transition), np.array(c.transition)
            up[a, b] *= np.exp(h)
            down[a, b] *= np.exp(-h)
            assert (log_prob(up) - log_prob(down)) / (2 * h) == pytest.approx(stats.transition[a, b], abs=1e-8)


@pytest.mark.parametrize(
    ("initial", "transition", "final", "told"),
    [
        ([0.5, 0.6], [[1, 0], [0, 1]], None, "initial must sum to 1"),
        ([0.5, 0.5], [[0.5, 0.4], [0, 1]], None, "of state 0 must sum to 1"),
        ([0.5, 0.5], [[0.5, 0.5], [0, 1]], [0.0, 0.5], "of state 1 must sum to 1"),
        ([1.5, -0.5], [[1, 0], [0, 1]], None, "initial must not be negative"),
        ([0.5, 0.5], [[1, 0], [0, 0.5]], [0.0, 0.5, 0.0], "must have matching shapes"),
    ],
)
def test_what_is_no_chain_is_refused(initial, transition, final, told):
    with pytest.raises((DomainError, ValueError), match=told):
        HMM(initial, transition, Gaussian([[0.0], [1.0]], 1.0), final=final)


def test_a_closed_loop_of_null_states_is_refused():
    with pytest.raises(DomainError, match="null states must come to an end"):
        HMM([1.0, 0, 0], [[0.5, 0.5, 0], [0, 0, 1.0], [0, 1.0, 0]], Gaussian([[0.0]], 1.0))

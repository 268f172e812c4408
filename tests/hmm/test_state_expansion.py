"""Higher-order chains, explicit durations and emissions on transitions: expanded HMMs against direct enumeration."""

from __future__ import annotations

from itertools import pairwise, product
from time import perf_counter

import numpy as np
import pytest
from scipy.special import logsumexp

from likely import HMM, Categorical, DomainError
from likely.distributions import Tied
from likely.hmm import Topology
from likely.hmm.topology import of_higher_order, on_transitions, with_durations

SYMBOLS = 3


def random_model(rng: np.random.Generator, t: Topology) -> HMM:
    """A chain with random probabilities for all that a topology allows, and symbols."""
    rows = (
        [t.initial, *t.transition]
        if t.final is None
        else [np.append(t.initial, False), *np.column_stack([t.transition, t.final])]
    )
    filled = []
    for row in rows:
        w = np.where(row, rng.standard_gamma(1.0, len(row)), 0.0)
        filled.append(w / w.sum())
    table, N = np.array(filled), len(t.initial)
    parts = Categorical(rng.dirichlet(np.ones(SYMBOLS), t.densities))
    final = None if t.final is None else table[1:, N].copy()
    return HMM(table[0, :N].copy(), table[1:, :N].copy(), Tied(parts, t.density), final=final)


def check(model: HMM, x: np.ndarray, logs: list[float]) -> None:
    want = float(logsumexp(logs)) if np.isfinite(logs).any() else -np.inf
    found = float(model.log_prob([x[:, None].astype(float)])[0])
    assert found == want or found == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("mask", [np.ones((2, 2)), np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1]])])
def test_higher_order_is_a_chain_that_remembers(order, final, mask):
    rng, K = np.random.default_rng(1), len(mask)
    t = of_higher_order(Topology.of(mask, K, final), order)
    runs = [r for n in range(1, order + 1) for r in product(range(K), repeat=n)
            if all(mask[a, b] for a, b in pairwise(r))]  # fmt: skip
    place = {run: i for i, run in enumerate(runs)}
    assert len(runs) == t.states and t.original.tolist() == [r[-1] for r in runs]
    h = random_model(rng, t)
    b = np.log(h.emission.components.probs)
    for T in range(1, 6):
        x, logs = rng.integers(0, SYMBOLS, T), []
        for path in product(range(K), repeat=T):
            if not all(mask[i, j] for i, j in pairwise(path)):
                continue
            p, memory = h.initial[place[path[:1]]], path[:1]
            for s in path[1:]:
                after = (*memory, s)[-order:]
                p, memory = p * h.transition[place[memory], place[after]], after
            p *= h.final[place[memory]] if final else 1.0
            logs.append(np.log(p) + sum(b[s, v] for s, v in zip(path, x, strict=True)))
        check(h, x, logs)


def segmentations(T: int, K: int, longest: int):
    """All ways to fill T frames with segments (state, duration), a state never following itself."""

    def grow(done, left):
        if left == 0:
            yield done
        for k in range(K):
            if done and done[-1][0] == k:
                continue
            for d in range(1, min(longest, left) + 1):
                yield from grow([*done, (k, d)], left - d)

    yield from grow([], T)


@pytest.mark.parametrize("final", [False, True])
def test_durations_are_a_semi_markov_model(final):
    """Σ over segmentations of Π p(next state) p(duration) Π p(x | state); the last may be cut off without ends."""
    rng, K, D = np.random.default_rng(2), 3, 3
    h = random_model(rng, with_durations(Topology.ergodic(K, final), D))
    b = np.log(h.emission.components.probs)
    enter = h.initial[K * D :]
    lasts = np.array([[h.transition[K * D + k, k * D + d] for d in range(D)] for k in range(K)])
    onward = np.array([h.transition[k * D, K * D :] for k in range(K)])
    assert np.allclose(lasts.sum(axis=1), 1) and (np.diag(onward) == 0).all()
    for T in range(1, 7):
        x, logs = rng.integers(0, SYMBOLS, T), []
        for parts in segmentations(T, K, D):
            p, at = 1.0, 0
            log = 0.0
            for i, (k, d) in enumerate(parts):
                last = i == len(parts) - 1
                p *= enter[k] if i == 0 else onward[parts[i - 1][0], k]
                p *= lasts[k, d - 1] if final or not last else lasts[k, d - 1 :].sum()
                log += b[k, x[at : at + d]].sum()
                at += d
            p *= h.final[parts[-1][0] * D] if final else 1.0
            logs.append(np.log(p) + log)
        check(h, x, logs)


@pytest.mark.parametrize("final", [False, True])
def test_emissions_on_moves(final):
    """Ney 7.1: p(x_t | s_{t−1}, s_t)."""
    rng, K = np.random.default_rng(3), 2
    t = on_transitions(Topology.ergodic(K, final))
    h, A = random_model(rng, t), t.states
    arcs = [(-1, k) for k in range(K)] + [(i, k) for i in range(K) for k in range(K)]
    assert A == len(arcs) and t.densities == A and t.original.tolist() == [k for _, k in arcs]
    place, b = {arc: a for a, arc in enumerate(arcs)}, np.log(h.emission.components.probs)
    move = np.array([[h.transition[A + i, place[i, k]] for k in range(K)] for i in range(K)])
    for T in range(1, 6):
        x, logs = rng.integers(0, SYMBOLS, T), []
        for path in product(range(K), repeat=T):
            steps = list(zip([-1, *path], path, strict=False))
            p = h.initial[place[steps[0]]] * np.prod([move[i, k] for i, k in steps[1:]])
            p *= h.final[A + path[-1]] if final else 1.0
            logs.append(np.log(p) + sum(b[place[s], v] for s, v in zip(steps, x, strict=True)))
        check(h, x, logs)


def test_expansions_refuse_what_they_cannot_write_out():
    nulls = Topology([True, False], [[1, 1], [1, 0]], None, [0])
    for make in (lambda: of_higher_order(nulls, 2), lambda: with_durations(nulls, 2), lambda: on_transitions(nulls)):
        with pytest.raises(DomainError, match="without null states"):
            make()
    with pytest.raises(DomainError, match="at most 5000 states"):
        of_higher_order(Topology.ergodic(10), 4)
    with pytest.raises(DomainError, match="order must be"):
        of_higher_order(Topology.ergodic(2), 0)
    with pytest.raises(DomainError, match="durations must be"):
        with_durations(Topology.ergodic(2), 0)


def test_runs_are_counted_before_they_are_made():
    """60⁴ runs are refused at once; few runs of many states are written out however many there might have been."""
    begin = perf_counter()
    for order in (4, 40, 10**9):
        with pytest.raises(DomainError, match="at most 5000 states"):
            of_higher_order(Topology.ergodic(60), order)
    assert perf_counter() - begin < 1
    only_on = np.eye(40, k=1, dtype=bool)
    t = of_higher_order(Topology(np.arange(40) == 0, only_on, np.arange(40) == 39, np.arange(40)), 6)
    assert t.states == 5 + 35  # 40⁶ = 4 · 10⁹ runs, all but these impossible


def test_runs_that_lead_nowhere_are_left_out():
    """State 1 is a dead end with an exit: no run of three begins with it, shorter ones begin only at the start."""
    transition = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], dtype=bool)
    t = of_higher_order(Topology([True, False, False], transition, [True, True, True], [0, 1, 2]), 3)
    runs = [(0,), (0, 0), (0, 1), (0, 0, 0), (0, 0, 1), (2, 0, 0), (2, 0, 1)]
    assert t.original.tolist() == [run[-1] for run in runs]

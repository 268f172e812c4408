"""Topologies: possible transitions by name, shortest sequences, and path counts of the (0, 1, 2) model."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from likely import DomainError, ShapeError
from likely.hmm import Topology


def masks(t: Topology) -> list:
    return [t.initial.astype(int).tolist(), t.transition.astype(int).tolist(),
            None if t.final is None else t.final.astype(int).tolist()]  # fmt: skip


def test_named_topologies():
    assert masks(Topology.of("ergodic", 2)) == [[1, 1], [[1, 1], [1, 1]], None]
    assert masks(Topology.of("ergodic", 2, final=True))[2] == [1, 1]
    assert masks(Topology.of("left-to-right", 3)) == [[1, 0, 0], [[1, 1, 0], [0, 1, 1], [0, 0, 1]], [0, 0, 1]]
    assert masks(Topology.of("left-to-right", 3, final=False))[2] is None
    assert masks(Topology.of("cyclic", 3)) == [[1, 1, 1], [[1, 1, 0], [0, 1, 1], [1, 0, 1]], None]
    assert masks(Topology.of("parallel", 4)) == [
        [1, 0, 1, 0], [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]], [0, 1, 0, 1],
    ]  # fmt: skip
    assert masks(Topology.of((0, 1, 2), 3))[1] == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert masks(Topology.of([[1, 1], [0, 1]], 2)) == [[1, 1], [[1, 1], [0, 1]], None]


def test_paths_of_the_012_model():
    """Ney 7.1: from one state, five frames on: 3⁴ paths to 9 states, 1 4 10 16 19 16 10 4 1 of them."""
    t = Topology.steps(9, (0, 1, 2))
    counts = np.linalg.matrix_power(t.transition.astype(int), 4)[0]
    assert counts.tolist() == [1, 4, 10, 16, 19, 16, 10, 4, 1] and counts.sum() == 81
    written = Counter(sum(steps) for steps in product((0, 1, 2), repeat=4))
    assert [written[k] for k in range(9)] == counts.tolist()


def shortest_by_search(t: Topology) -> int | None:
    """Breadth first, one arc at a time, null states cost nothing."""
    K, N = t.states, len(t.initial)
    cost = {int(s): int(s < K) for s in np.flatnonzero(t.initial)}
    for _ in range(2 * N + 2):
        for a, c in list(cost.items()):
            for b in np.flatnonzero(t.transition[a]).tolist():
                cost[b] = min(cost.get(b, 10**9), c + (b < K))
    found = [c for s, c in cost.items() if t.final is None or t.final[s]]
    return min(found, default=None)


def test_shortest_sequences():
    assert Topology.of("left-to-right", 5).min_length == 5 and Topology.of((0, 1, 2), 5).min_length == 3
    assert Topology.of("parallel", 6).min_length == 3 and Topology.of("ergodic", 4).min_length == 1
    rng, seen = np.random.default_rng(0), Counter()
    for _ in range(400):
        K, Q = int(rng.integers(1, 4)), int(rng.integers(0, 3))
        N = K + Q
        transition, initial, final = rng.random((N, N)) < 0.35, rng.random(N) < 0.4, rng.random(N) < 0.4
        try:
            t = Topology(initial, transition, final, np.arange(K))
        except DomainError:
            continue
        want = shortest_by_search(t)
        seen[want] += 1
        if want is None:
            with pytest.raises(DomainError, match="final state must be reachable"):
                t.min_length  # noqa: B018
        else:
            assert t.min_length == want
    assert seen[None] and seen[0] and seen[2]


def test_probabilities_are_those_of_the_mask():
    for t in (Topology.of("left-to-right", 4), Topology.of("ergodic", 3, True), Topology.of("cyclic", 3),
              Topology.of("parallel", 5), Topology.of((1,), 3), Topology.of("ergodic", 1)):  # fmt: skip
        initial, transition, final = t.probabilities(0.7)
        assert initial.sum() == pytest.approx(1) and ((transition > 0) == t.transition).all()
        assert np.allclose(transition.sum(axis=1) + (0 if final is None else final), 1)


def test_ties():
    t = Topology.of("ergodic", 3).tied([5, 2, 5])
    assert t.density.tolist() == [1, 0, 1] and t.densities == 2 and t.states == 3
    with pytest.raises(ShapeError, match="tie must number"):
        Topology.of("ergodic", 3).tied([0, 1])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Topology.of("spiral", 3), "topology must be one of"),
        (lambda: Topology.of((0, -1), 3), "steps must be integers"),
        (lambda: Topology.of((), 3), "steps must be integers"),
        (lambda: Topology.of(np.ones((2, 2)), 3), r"must have shape \(3, 3\)"),
        (lambda: Topology.of(Topology.ergodic(2), 3), "topology of 3 emitting states"),
        (lambda: Topology([True, False], [[1, 0], [0, 0]], None, [0, 1]), "state 1 must have a transition"),
        (lambda: Topology([False], [[1]], None, [0]), "at least one initial state is needed"),
        (lambda: Topology([True, True], [[1, 0], [0, 1]], None, [0, 2]), "density must number"),
        (lambda: Topology.parallel(2, 3), "branches must be"),
    ],
)
def test_what_is_no_topology_is_refused(make, told):
    with pytest.raises((DomainError, ShapeError), match=told):
        make()

"""HMM sampling: frequencies against probabilities, by the Dvoretzky–Kiefer–Wolfowitz bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from likely import HMM, Categorical, DataError, DomainError, Gaussian, Poisson
from likely.distributions.product import Product
from likely.hmm import forward_backward
from likely.hmm.path_sampling import sample_paths, sample_paths_given
from tests.hmm.all_paths import AllPaths, random_chain
from tests.hmm.test_forward_backward import DECEPTIVE

DRAWS = 40_000
FALSE_ALARM = 1e-6
BOUND = float(np.sqrt(np.log(2 / FALSE_ALARM) / (2 * DRAWS)))  # sup |F_n − F|


def chain(seed: int, final: bool, Q: int = 2, K: int = 2) -> HMM:
    rng = np.random.default_rng(seed)
    initial, transition, leave = random_chain(rng, K, Q, final, 0.2)
    return HMM(initial, transition, Categorical(rng.dirichlet(np.ones(2), K)), final=leave)


def close(found: np.ndarray, want: np.ndarray) -> None:
    """Frequencies of cases in any fixed order against their probabilities."""
    assert np.abs(np.cumsum(found) - np.cumsum(want)).max() <= BOUND
    assert (found[want == 0] == 0).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("final", [False, True])
def test_paths_of_a_given_length(seed, final):
    h, T = chain(seed, final), 4
    oracle = AllPaths(h.initial, h.transition, h.final, np.zeros((T, 2)))
    if np.isneginf(oracle.log_prob):
        with pytest.raises(DomainError, match="sequences of that length"):
            h.sample(3, np.random.default_rng(0), length=T)
        return
    paths = sample_paths(h.chains[0], DRAWS, np.random.default_rng(9), T).values.reshape(DRAWS, T)
    found = np.bincount(paths @ 2 ** np.arange(T)[::-1], minlength=2**T) / DRAWS
    close(found, oracle.shares)


@pytest.mark.parametrize("seed", range(6))
def test_sequences_until_they_end(seed):
    """The probability of each short sequence of symbols, and of all longer ones together."""
    h = chain(seed, True)
    drawn = h.sample(DRAWS, np.random.default_rng(10))
    want, found = [], []
    lengths = drawn.lengths
    for T in range(4):
        rows = np.flatnonzero(lengths == T)
        at = (drawn.offsets[rows][:, None] + np.arange(T)).astype(int)
        codes = np.asarray(drawn.values).reshape(-1)[at].astype(int) @ 2 ** np.arange(T)[::-1] if T else 0 * rows
        found.extend(np.bincount(codes.astype(int), minlength=2**T) / DRAWS)
        cases = [np.array(x, float).reshape(T, 1) for x in product((0, 1), repeat=T)]
        want.extend(np.exp([h.log_prob([x])[0] if T else np.log(h.chains[0].summed.empty) for x in cases]))
    close(np.append(found, (lengths > 3).mean()), np.append(want, max(1 - np.sum(want), 0.0) if sum(want) < 1 else 0.0))


def test_paths_given_what_was_seen():
    h = chain(3, True, Q=0, K=3)
    x = np.array([[0.0], [1.0], [1.0]])
    oracle = AllPaths(h.initial, h.transition, h.final, h.emission.log_prob(x))
    way, offsets = h.chains[0].summed, np.arange(0, 3 * DRAWS + 1, 3)
    logs = np.tile(h.scores(_ragged(x)), (DRAWS, 1))
    uniform = np.random.default_rng(1).random(len(logs))
    paths = sample_paths_given(way, logs, offsets, uniform).reshape(DRAWS, 3)
    close(np.bincount(paths @ 3 ** np.arange(3)[::-1], minlength=27) / DRAWS, oracle.shares)


@pytest.mark.parametrize("name", DECEPTIVE)
def test_paths_where_past_and_future_disagree(name):
    """What the past found most unlikely, the future proves: drawn as often as logarithms say."""
    c, logs = DECEPTIVE[name]
    logs, n = np.array(logs, float), 2000
    T, w = len(logs), c.summed
    with np.errstate(all="ignore"):
        want = forward_backward.log_posterior(w, logs, np.array([0, T]), np.ones(1)).states
        uniform = np.random.default_rng(3).random(n * T)
        drawn = sample_paths_given(w, np.tile(logs, (n, 1)), np.arange(0, n * T + 1, T), uniform).reshape(n, T)
    assert (w.transition[drawn[:, :-1], drawn[:, 1:]] > 0).all() and (w.initial[drawn[:, 0]] > 0).all()
    found = (drawn[:, :, None] == np.arange(len(w.initial))).mean(axis=0)
    assert np.abs(found - want).max() <= np.sqrt(np.log(2 / FALSE_ALARM) / (2 * n))
    assert (want[np.arange(T), drawn] > 0).all()


def test_no_path_of_what_cannot_be():
    h = HMM([0.5, 0.5], np.eye(2), Categorical([[1.0, 0.0], [0.0, 1.0]]))
    with pytest.raises(DataError, match="impossible"):
        h.sample_states([[0.0, 1.0]], np.random.default_rng(0))


def _ragged(x):
    from likely import Ragged

    return Ragged.of(x)


def test_frames_come_from_their_states():
    """Along a chain that cannot but alternate, frames alternate between the two distributions."""
    h = HMM([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], Gaussian([[0.0, 9.0], [100.0, -9.0]], 1.0))
    x = h.sample(50, np.random.default_rng(0), length=6)
    values = np.asarray(x.values).reshape(50, 6, 2)
    assert (np.abs(values[:, ::2] - [0, 9]) < 6).all() and (np.abs(values[:, 1::2] - [100, -9]) < 6).all()


def test_lengths_as_asked_and_the_same_seed_the_same_draw():
    h = chain(1, False)
    x = h.sample(3, np.random.default_rng(0), length=[2, 0, 5])
    assert x.lengths.tolist() == [2, 0, 5]
    again = h.sample(3, np.random.default_rng(0), length=[2, 0, 5])
    assert (np.asarray(x.values) == np.asarray(again.values)).all()
    assert len(h.sample(0, np.random.default_rng(0), length=4)) == 0


def test_a_chain_that_never_ends_must_be_told_when():
    with pytest.raises(DomainError, match="give a length"):
        chain(1, False).sample(2, np.random.default_rng(0))


def test_draws_of_columns_and_of_stacks():
    distribution = Product({"size": Gaussian([[0.0], [9.0]], 1.0), "visits": Poisson([[1.0], [50.0]])})
    h = HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], distribution)
    x = h.sample(20, np.random.default_rng(0), length=3)
    assert np.isfinite(h.log_prob(x)).all() and x.lengths.tolist() == [3] * 20
    stack = HMM(np.full((2, 1), 1.0), np.ones((2, 1, 1)), Gaussian([[0.0], [50.0]], 1.0))
    draws = stack.sample(2, np.random.default_rng(0), length=4)
    assert len(draws) == 2 and np.asarray(draws[1].values).min() > 40

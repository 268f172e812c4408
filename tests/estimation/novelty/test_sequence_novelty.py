"""Novelty score of sequences: lengths and gaps do not matter, foreign processes do, and alarms keep their rate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import likely as lk
from likely.core.ragged import Ragged
from likely.estimation.novelty.novelty_score import alarm, novelty_score
from likely.estimation.novelty.sequence_novelty import LONGEST, OrdinarySequences, drawn, log_length, share_missing

CYCLE = np.array([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])
CORNERS = lk.Gaussian([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], np.tile(np.eye(2), (3, 1, 1)))
A = lk.HMM(np.full(3, 1 / 3), CYCLE, CORNERS)
B = lk.HMM(np.full(3, 1 / 3), CYCLE.T.copy(), lk.Gaussian(CORNERS.mean + 1.0, CORNERS.covariance))


def some(n: int, seed: int, low: int = 20, high: int = 80) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(low, high, n)
    both = [*A.sample(n // 2, rng, lengths[: n // 2]), *B.sample(n - n // 2, rng, lengths[n // 2 :])]
    return both, np.repeat(["a", "b"], [n // 2, n - n // 2])


@pytest.fixture(scope="module")
def clf() -> lk.BayesClassifier:
    return lk.BayesClassifier(lk.HMMDensity(lk.GaussianDensity("diagonal"), 3, random_state=0)).fit(*some(120, 0))


def test_draws_of_any_length_are_equally_ordinary() -> None:
    rng = np.random.default_rng(1)
    for length in (1, 2, 7, 45, 300):
        found = novelty_score(A, A.sample(300, rng, length))
        assert abs(np.median(found)) < 0.25, length
        assert 0.7 < np.subtract(*np.quantile(found, [0.75, 0.25])) < 1.4, length


def test_beyond_the_longest_draws_it_goes_on_as_before() -> None:
    found = novelty_score(A, A.sample(40, np.random.default_rng(2), 3 * LONGEST))
    assert abs(np.median(found)) < 1.0
    assert max(length for length, _ in OrdinarySequences.of(A).known) <= LONGEST


@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
def test_missing_values_do_not_matter(share: float) -> None:
    rng = np.random.default_rng(3)
    x = A.sample(300, rng, 60)
    for shape in (x.values.shape, (len(x.values), 1)):  # entries, and whole frames
        seqs = Ragged(np.where(rng.random(shape) < share, np.nan, x.values), x.offsets)
        assert abs(share_missing(seqs).mean() - share) < 0.01
        found = novelty_score(A, seqs)
        assert abs(np.median(found)) < 0.4
        assert 0.6 < np.subtract(*np.quantile(found, [0.75, 0.25])) < 1.5


def test_nothing_seen_is_no_surprise() -> None:
    nothing = Ragged(np.full((5, 2), np.nan), [0, 5, 5])
    assert_allclose(novelty_score(A, nothing), [0.0, 0.0], atol=1e-9)
    assert novelty_score(A, Ragged(np.empty((0, 2)), [0])).tolist() == []


def test_levels_with_missing_values() -> None:
    words = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Categorical([[0.9, 0.1], [0.1, 0.9]], ["a", "b"]))
    rng = np.random.default_rng(5)
    x = words.sample(200, rng, 40)
    values = np.where(rng.random(len(x.values)) < 0.3, None, x.values.astype(object))
    assert abs(np.median(novelty_score(words, Ragged(values, x.offsets)))) < 0.4


def test_lengths_of_chains_that_end() -> None:
    forward = lk.HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 0.6]], lk.Gaussian([[0.0], [3.0]], 1.0), final=[0.0, 0.4])
    lengths = [log_length(forward, t)[0] for t in range(1, 60)]
    assert np.isneginf(lengths[0])
    assert_allclose(np.exp(lengths).sum(), 1.0, atol=1e-9)
    rng = np.random.default_rng(0)
    assert drawn(forward, 5, rng, 1) is None
    assert np.isposinf(novelty_score(forward, Ragged.from_list([np.array([0.0])]))[0])
    assert abs(np.median(novelty_score(forward, forward.sample(400, rng)))) < 0.3


def test_classes_are_drawn_by_weight_and_length() -> None:
    stack = lk.HMM([[1.0], [1.0]], [[[0.9]], [[0.1]]], lk.Gaussian([[0.0], [100.0]], 1.0), final=[[0.1], [0.9]])
    draws = drawn(lk.Mixture([0.5, 0.5], stack), 400, np.random.default_rng(0), 2)
    assert draws is not None
    share = (draws.values[::2, 0] > 50).mean()  # 0.1 · 0.9 under either
    assert abs(share - 0.5) < 0.1
    long = drawn(lk.Mixture([0.5, 0.5], stack), 100, np.random.default_rng(0), 6)
    assert long is not None
    assert (long.values < 50).all()


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_held_out_sequences_raise_the_alarm_at_the_stated_rate(clf: lk.BayesClassifier, rate: float) -> None:
    new, _ = some(1000, 1)
    found, limit = clf.novelty_score(new), alarm(clf.held_out_novelty_, rate, "test")
    assert abs((found > limit).mean() - rate) < 3 * np.sqrt(rate * (1 - rate) / 120)
    lengths = np.array([len(x) for x in new])
    short, long = (found[lengths < 40] > limit).mean(), (found[lengths > 60] > limit).mean()
    assert abs(short - long) < 0.1


@pytest.mark.slow
def test_few_sequences_set_a_sound_alarm_too() -> None:
    rates = []
    for seed in range(6):
        density = lk.HMMDensity(lk.GaussianDensity("diagonal"), 3, random_state=0)
        small = lk.BayesClassifier(density).fit(*some(24, 10 + seed))
        rates.append((small.novelty_score(some(300, 99)[0]) > alarm(small.held_out_novelty_, 0.1, "test")).mean())
    assert 0.02 < np.mean(rates) < 0.2


def test_foreign_sequences_raise_it(clf: lk.BayesClassifier) -> None:
    rng = np.random.default_rng(4)
    new, _ = some(300, 5)
    backwards = clf.decide([x[::-1] for x in new[:150]], novelty=0.05)
    assert np.mean([d is lk.NOVEL for d in backwards]) > 0.2  # four times the rate, by the order of frames alone
    walks = [np.cumsum(rng.normal(0, 1.0, (50, 2)), axis=0) for _ in range(100)]
    assert np.mean([d is lk.NOVEL for d in clf.decide(walks, novelty=0.05)]) > 0.8
    shuffled = clf.novelty_score([rng.permutation(x) for x in new])
    assert np.median(shuffled) > np.median(clf.novelty_score(new)) + 0.5


def test_the_alarm_of_words_that_end() -> None:
    rng = np.random.default_rng(6)

    def words(n: int) -> tuple[list[np.ndarray], np.ndarray]:
        made = [np.concatenate([rng.normal(m + c, 1.0, (rng.integers(3, 9), 2)) for m in (0, 4, 8)])
                for c in (0, 2) for _ in range(n)]  # fmt: skip
        return made, np.repeat([0, 1], n)

    density = lk.HMMDensity(lk.GaussianDensity("diagonal"), 3, topology="left-to-right")
    clf = lk.BayesClassifier(density).fit(*words(40))
    new, truth = words(200)
    assert clf.score(new, truth) > 0.95
    assert abs((clf.novelty_score(new) > alarm(clf.held_out_novelty_, 0.1, "test")).mean() - 0.1) < 0.1
    assert (clf.novelty_score([x[::-1] for x in new]) > alarm(clf.held_out_novelty_, 0.1, "test")).all()


def test_weights_are_copies() -> None:
    x, y = some(30, 7)
    density = lk.HMMDensity(lk.GaussianDensity("diagonal"), 3, random_state=0)
    copies = lk.BayesClassifier(density).fit(x + x, np.concatenate([y, y]))
    twice = lk.BayesClassifier(density).fit(x, y, sample_weight=np.full(30, 2.0))
    assert_allclose(twice.novelty_score(x), copies.novelty_score(x), atol=1e-3)
    assert twice.held_out_novelty_[1].sum() == copies.held_out_novelty_[1].sum() == 60

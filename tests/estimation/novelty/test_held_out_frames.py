"""Frames that a chain had not learned from: their novelty scores, live and at once, in sample and left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import log_ndtr

import likely as lk
from likely.core.ragged import Ragged
from likely.estimation.novelty.held_out_frames import independent_frames, segments, supported_share, supported_words
from likely.estimation.novelty.hmm_novelty_score import ChainTail
from likely.metrics.false_alarms import quantile


def frames(rng, T, d=6, K=4):
    means = 2.0 * np.random.default_rng(5).normal(size=(K, d))
    state = np.zeros(T, dtype=int)
    for t in range(1, T):
        state[t] = state[t - 1] if rng.random() < 0.92 else rng.integers(K)
    return means[state] + rng.normal(size=(T, d))


def fitted(x, **more):
    return lk.HMMDensity(lk.GaussianDensity("full"), n_states=4, random_state=0, **more).fit(x)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_all_frames_at_once_are_as_surprising_as_live(gaps):
    rng = np.random.default_rng(0)
    model = fitted(frames(rng, 300)).model_
    x = [frames(rng, 40), frames(rng, 25)]
    for one in x:
        one[rng.random(one.shape) < gaps] = np.nan
    x[0][7] = np.nan
    tail, found = ChainTail(model), []
    for one in x:
        belief = model.initial_belief()
        for t, y in enumerate(one):
            belief = model.predict(belief) if t else belief
            after, news = model.update(belief, y)
            u = tail(belief, y, news)
            found.append(np.nan if u is None else u)
            belief = after
    np.testing.assert_allclose(tail.along(Ragged.of(x)), found, atol=1.5 / tail.each)  # a draw may tie by rounding


def test_words_and_columns_of_several_kinds():
    rng = np.random.default_rng(1)
    words = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, 120)]
    h = lk.HMMDensity(lk.CategoricalDensity(), n_states=2, random_state=0).fit([words[:, None]])
    assert h.held_out_novelty_.shape == (3, 120) and (h.held_out_novelty_[0] >= 0).all()


@pytest.mark.slow
def test_left_out_frames_are_as_surprising_as_new_ones():
    """400 frames, 4 full covariances: in sample frames look calmer than new ones, left out they do not."""
    left, new, own = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = frames(rng, 400)
        h = fitted(x)
        left.append(h.held_out_novelty_[0].mean())
        own.append(-np.log(ChainTail(h.model_).along(Ragged.of([x]))).mean())
        new.append(-np.log(ChainTail(h.model_).along(Ragged.of([frames(rng, 2000)]))).mean())
    assert np.mean(own) < 1.05 < np.mean(new)
    assert np.mean(left) == pytest.approx(np.mean(new), abs=0.5 * (np.mean(new) - np.mean(own)))


@pytest.mark.slow
def test_which_frames_are_kept():
    rng = np.random.default_rng(2)
    many = fitted([frames(rng, 30) for _ in range(12)])
    assert many.held_out_novelty_.shape == (3, 360) and len(np.unique(many.held_out_novelty_[2])) == 12
    weighted = fitted([frames(rng, 30) for _ in range(6)])
    assert weighted.held_out_novelty_.shape[1] == 180
    along = [frames(rng, 50), frames(rng, 60)]
    assert fitted(along, topology="left-to-right").held_out_novelty_.shape == (
        3,
        0,
    )  # a piece of it begins where none may
    assert fitted(along, topology=np.ones((4, 4))).held_out_novelty_.shape == (3, 0)  # it raised a ValueError
    given = [np.zeros(50, dtype=int), np.ones(60, dtype=int)]
    known = lk.HMMDensity(lk.GaussianDensity("full"), n_states=4, random_state=0).fit(along, states=given)
    assert known.held_out_novelty_.shape == (3, 0)


def test_a_file_keeps_them(tmp_path):
    h = fitted(frames(np.random.default_rng(3), 200))
    lk.save(h, tmp_path / "h.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "h.likely").held_out_novelty_, h.held_out_novelty_)
    del h.held_out_novelty_  # a file of before there were any
    lk.save(h, tmp_path / "old.likely")
    assert not hasattr(lk.load(tmp_path / "old.likely"), "held_out_novelty_")


def left_out(seed, n, memory):
    """Novelty scores (3, n) of frames under a right model, exponential with mean 1, that depend on each other."""
    z = lfilter([np.sqrt(1 - memory**2)], [1.0, -memory], np.random.default_rng([seed, n]).normal(size=n + 100))[100:]
    return np.stack([-log_ndtr(-z), np.ones(n), np.zeros(n)])


@pytest.mark.parametrize("above", [0.3, 3.0, 6.0, 30.0])
@pytest.mark.parametrize(("n", "memory"), [(200, 0.0), (1000, 0.7), (2000, 0.9)])
def test_what_is_supported_counts_that_the_same_frames_set_the_threshold(n, memory, above):
    """With three independent frames above it, 3τ / n was said to be supported; half of the trainings exceeded it."""
    exceeds, more = [], []
    for kept in (left_out(seed, n, memory) for seed in range(60)):
        rate = above / independent_frames(kept)
        share = np.exp(-quantile(*segments(kept), rate))  # of new frames above the threshold
        exceeds.append(share > supported_share(kept, 0.0, rate))
        more.append(share > rate)
    assert np.mean(exceeds) <= 0.1
    assert above < 1 or np.mean(more) > 0.2  # the rate itself is met on average only


def test_rarer_alarms_support_no_less_than_three_frames_above_a_threshold_do():
    kept = left_out(0, 400, 0.5)
    n = independent_frames(kept)
    shares = [supported_share(kept, 0.0, k / n) for k in (0.0, 1.0, 2.99, 6.0, 17.1)]
    np.testing.assert_allclose(np.array(shares) * n, [7.75, 7.75, 7.75, 11.84, 25.6], atol=0.06)
    assert supported_share(kept, 0.4, 0.01) == 0.4  # a level that drifts
    assert supported_words(1 / 51.9) == "one in 51 lines" and supported_words(0.51) == "no rate at all"

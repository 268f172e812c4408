"""Frames that a chain had not learned from: how surprising they are, live and at once, in sample and left out."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.ragged import Ragged
from likely.estimation.novelty.hmm_surprise import ChainTail


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
    assert h.calm_.shape == (3, 120) and (h.calm_[0] >= 0).all()


@pytest.mark.slow
def test_left_out_frames_are_as_surprising_as_new_ones():
    """400 frames, 4 full covariances: in sample frames look calmer than new ones, left out they do not."""
    left, new, own = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = frames(rng, 400)
        h = fitted(x)
        left.append(h.calm_[0].mean())
        own.append(-np.log(ChainTail(h.model_).along(Ragged.of([x]))).mean())
        new.append(-np.log(ChainTail(h.model_).along(Ragged.of([frames(rng, 2000)]))).mean())
    assert np.mean(own) < 1.05 < np.mean(new)
    assert np.mean(left) == pytest.approx(np.mean(new), abs=0.5 * (np.mean(new) - np.mean(own)))


@pytest.mark.slow
def test_which_frames_are_kept():
    rng = np.random.default_rng(2)
    many = fitted([frames(rng, 30) for _ in range(12)])
    assert many.calm_.shape == (3, 360) and len(np.unique(many.calm_[2])) == 12
    weighted = fitted([frames(rng, 30) for _ in range(6)])
    assert weighted.calm_.shape[1] == 180
    along = [frames(rng, 50), frames(rng, 60)]
    assert fitted(along, topology="left-to-right").calm_.shape == (3, 0)  # a piece of it begins where none may
    assert fitted(along, topology=np.ones((4, 4))).calm_.shape == (3, 0)  # it raised a ValueError
    given = [np.zeros(50, dtype=int), np.ones(60, dtype=int)]
    known = lk.HMMDensity(lk.GaussianDensity("full"), n_states=4, random_state=0).fit(along, states=given)
    assert known.calm_.shape == (3, 0)


def test_a_file_keeps_them(tmp_path):
    h = fitted(frames(np.random.default_rng(3), 200))
    lk.save(h, tmp_path / "h.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "h.likely").calm_, h.calm_)
    del h.calm_  # a file of before there were any
    lk.save(h, tmp_path / "old.likely")
    assert not hasattr(lk.load(tmp_path / "old.likely"), "calm_")

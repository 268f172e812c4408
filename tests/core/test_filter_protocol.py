"""A live stream, an observation at a time, believes what the whole sequence would have told so far."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely import HMM, Categorical, Gaussian
from likely.core.errors import DataError, DomainError
from likely.io.follow_stream import follow

MOVES = [[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.3, 0.0, 0.7]]


def model() -> HMM:
    return HMM([0.6, 0.3, 0.1], MOVES, Gaussian([[0.0, 0.0], [3.0, 1.0], [0.0, 5.0]], 1.0))


def test_increments_sum_to_the_log_probability():
    h, rng = model(), np.random.default_rng(0)
    x = rng.normal(1, 3, (200, 2))
    x[50, 0], x[60] = np.nan, np.nan
    steps = list(lk.follow(h, x))
    assert sum(news for _, news in steps) == pytest.approx(h.log_prob([x])[0], rel=1e-12)
    beliefs = np.stack([belief.probs for belief, _ in steps])
    assert np.abs(beliefs - h.posterior(x, lag=0)).max() <= 1e-12
    assert steps[60][1] == pytest.approx(0.0, abs=1e-12)  # nothing seen, nothing learned


def test_a_belief_can_be_carried_on():
    h, x = model(), np.random.default_rng(1).normal(1, 3, (20, 2))
    all_at_once = list(lk.follow(h, x))
    belief = list(lk.follow(h, x[:12]))[-1][0]
    later = list(lk.follow(h, x[12:], belief))
    assert (later[-1][0].probs == all_at_once[-1][0].probs).all() and later[-1][1] == all_at_once[-1][1]


def test_beliefs_are_values():
    h = model()
    first, _ = lk.step(h, None, [0.0, 0.0])
    before = first.probs.copy()
    lk.step(h, first, [3.0, 1.0])
    assert (first.probs == before).all() and not first.probs.flags.writeable


def test_one_column_may_be_a_number():
    h = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Gaussian([[0.0], [5.0]], 1.0))
    for y in (4.0, [4.0], np.array([[4.0]])):
        belief, news = lk.step(h, None, y)
        assert belief.probs[1] > 0.9 and news == pytest.approx(h.log_prob([np.array([[4.0]])])[0], rel=1e-12)
    symbols = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical([[0.9, 0.1], [0.2, 0.8]], levels=["a", "b"]))
    assert lk.step(symbols, None, "b")[0].probs[1] > 0.8


def test_outliers_and_what_cannot_be():
    h = HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], Gaussian([[0.0], [5.0]], 1.0))
    belief, news = lk.step(h, None, 1e5)  # the state that explains it best is impossible here
    assert np.isfinite(news) and belief.probs.tolist() == [1.0, 0.0]
    symbols = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical([[1.0, 0.0], [1.0, 0.0]]))
    belief, news = lk.step(symbols, None, 1)
    assert news == -np.inf and belief.probs.tolist() == [0.5, 0.5]
    belief, news = lk.step(symbols, belief, 0)
    assert news == 0.0 and np.isfinite(belief.probs).all()


def test_after_the_end_nothing_is_likely():
    h = HMM([1.0], [[0.0]], Gaussian([[0.0]], 1.0), final=[1.0])
    belief, _ = lk.step(h, None, 0.0)
    for _ in range(2):
        belief, news = lk.step(h, belief, 0.0)
        assert news == -np.inf and not np.isnan(belief.probs).any()


# ------------------------------------------------------------------------------ kept


class Memory:
    """A keeper that remembers all it was given."""

    def __init__(self, kept=None):
        self.kept = [] if kept is None else [kept]

    def load(self, kind):
        return self.kept[-1] if self.kept else None

    def save(self, following, at_once=False):
        self.kept.append(following)


def series(n: int = 30) -> np.ndarray:
    return np.random.default_rng(3).normal(1, 3, (n, 2))


def test_an_observation_counts_once_the_next_is_asked_for():
    memory = Memory()
    stream = follow(model(), iter(series()), checkpoint=memory)
    next(stream)
    assert memory.kept == []
    next(stream)
    assert [kept.n_observations for kept in memory.kept] == [1]
    stream.close()  # the second was not followed by a third
    assert [kept.n_observations for kept in memory.kept] == [1]


def test_progress_is_kept_at_intervals_and_at_every_kind_of_end():
    memory, x = Memory(), series()
    assert len(list(follow(model(), x, checkpoint=memory, checkpoint_every=12))) == 30
    assert [kept.n_observations for kept in memory.kept] == [12, 24, 30]
    assert memory.kept[-1].log_probs[0] == pytest.approx(model().log_prob([x])[0], rel=1e-12)
    memory = Memory()
    for i, _ in enumerate(follow(model(), x, checkpoint=memory, checkpoint_every=12)):
        if i == 5:
            break
    assert [kept.n_observations for kept in memory.kept] == [5]
    memory = Memory()
    with pytest.raises(lk.core.errors.LikelyError):
        list(follow(model(), [*x[:3], [1.0, 2.0, 3.0]], checkpoint=memory, checkpoint_every=12))
    assert [kept.n_observations for kept in memory.kept] == [3]


@pytest.mark.parametrize("cut", [1, 7, 29, 30])
def test_a_stream_goes_on_to_the_same_bits(cut):
    x, whole = series(), list(follow(model(), series()))
    memory = Memory()
    list(follow(model(), x[:cut], checkpoint=memory))
    for source in (x, list(x)):  # what has a length begins again
        later = list(follow(model(), source, checkpoint=Memory(memory.kept[-1])))
        assert len(later) == 30 - cut
        assert all((a.probs == b.probs).all() and p == q for (a, p), (b, q) in zip(later, whole[cut:], strict=True))
    later = list(follow(model(), iter(x[cut:]), checkpoint=Memory(memory.kept[-1])))  # a stream goes on
    assert [news for _, news in later] == [news for _, news in whole[cut:]]
    later = list(follow(model(), iter(x), checkpoint=Memory(memory.kept[-1]), replay=True))
    assert [news for _, news in later] == [news for _, news in whole[cut:]]


def test_what_does_not_fit_is_refused_at_once():
    memory = Memory()
    list(follow(model(), series(), checkpoint=memory))
    other = HMM([0.6, 0.3, 0.1], MOVES, Gaussian([[0.0, 0.0], [3.0, 1.0], [0.0, 5.5]], 1.0))
    with pytest.raises(lk.core.errors.DataError, match="that of another"):
        follow(other, series(), checkpoint=Memory(memory.kept[-1]))
    with pytest.raises(lk.core.errors.DataError, match="30 of them were processed already, got 20"):
        follow(model(), series()[:20], checkpoint=Memory(memory.kept[-1]))
    with pytest.raises(lk.core.errors.DomainError, match="checkpoint_every must be"):
        follow(model(), series(), checkpoint=Memory(), checkpoint_every=0)
    with pytest.raises(lk.core.errors.DomainError, match="with the methods initial_belief"):
        follow(Gaussian([0.0], 1.0), series())


def test_new_observations_are_not_taken_for_old_ones():
    h = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Gaussian([[0.0], [5.0]], 1.0))
    memory = Memory()
    list(follow(h, [1.0, 2.0, 3.0], checkpoint=memory))
    for source in ([4.0, 5.0, 6.0, 7.0], np.array([1.0, 2.0, 4.0, 3.0]), [1.0, np.nan, 3.0, 4.0]):
        with pytest.raises(lk.core.errors.DataError, match="processed already, got others: pass replay=False"):
            follow(h, source, checkpoint=Memory(memory.kept[-1]))
    later = list(follow(h, [4.0, 5.0, 6.0, 7.0], checkpoint=Memory(memory.kept[-1]), replay=False))
    assert [news for _, news in later] == [news for _, news in follow(h, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])][3:]


def test_observations_are_known_again_in_whatever_they_come():
    h = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Gaussian([[0.0], [5.0]], 1.0))
    memory = Memory()
    list(follow(h, [1, 2.0, [np.nan]], checkpoint=memory))
    for source in (np.array([1.0, 2.0, np.nan, 4.0]), np.array([[1.0], [2.0], [np.nan], [4.0]]), [1.0, 2, -np.nan, 4]):
        assert len(list(follow(h, source, checkpoint=Memory(memory.kept[-1])))) == 1


def test_what_cannot_be_leaves_evidence_of_nothing():
    symbols = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical([[1.0, 0.0], [1.0, 0.0]]))
    memory = Memory()
    list(follow(symbols, [0, 1, 0], checkpoint=memory))
    assert memory.kept[-1].log_probs[0] == -np.inf and memory.kept[-1].n_observations == 3


# ---------------------------------------------------------------- slips of the hand


@pytest.mark.parametrize(
    "slip", [lambda m, b: lk.step(m, 1.0, None), lambda m, b: next(lk.follow(m, [1.0], belief="x")),
             lambda m, b: lk.step(m, np.ones(1), None), lambda m, b: lk.step(m, b, 1.0)]
)  # fmt: skip
def test_what_is_no_belief_is_said_to_be_none(slip):
    walk = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.1]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    others = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Gaussian([[0.0], [5.0]], 1.0)).initial_belief()
    with pytest.raises(DomainError, match=r"LinearGaussian must be a StateBelief, .*step\(model, belief, y\)"):
        slip(walk, others)


def test_errors_of_a_model_itself_come_through():
    class Broken:
        def initial_belief(self):
            return 0.0

        def predict(self, belief):
            return belief.nowhere

        def update(self, belief, y):
            return belief, 0.0

    with pytest.raises(AttributeError, match="nowhere"):
        lk.step(Broken(), 1.0, 2.0)


@pytest.mark.parametrize("use", [lambda: lk.follow(HMM, [1.0]), lambda: lk.step(lk.LinearGaussian, None, 1.0)])
def test_a_class_is_no_model(use):
    with pytest.raises(DomainError, match=r"a model is needed, not its class, got the class \w+: make one"):
        use()


@pytest.mark.parametrize("stream", ["12", b"12", 3.0, np.array(3.0), None])
def test_a_text_or_a_number_is_no_stream(stream):
    with pytest.raises(DataError, match="follow: a sequence of observations is needed"):
        lk.follow(model(), stream)

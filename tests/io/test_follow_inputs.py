"""Known inputs of a stream: every filter that takes some follows as it scores a whole sequence, the others say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import likely as lk
from likely.statespace.nonlinear.state_space import as_distributions

T = 12
RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(T, 1)), RNG.normal(size=(T, 2))
TIMES = np.cumsum(RNG.exponential(size=T))


def linear(**inputs: Any) -> lk.LinearGaussian:
    own = {"control": [[1.0, 0.5]], "feedthrough": [[0.0, 2.0]]} if not inputs else inputs
    return lk.LinearGaussian(
        transition=[[0.9]], process_covariance=[[0.1]], observation=[[1.0]], observation_covariance=[[0.5]],
        initial_mean=[0.0], initial_covariance=[[1.0]], **own,
    )  # fmt: skip


def plain() -> lk.LinearGaussian:
    return linear(control=None)


SWITCHING = lk.SwitchingLinearGaussian([linear(), linear(control=[[-1.0, 0.0]])], [[0.9, 0.1], [0.2, 0.8]])
COEFFICIENTS = np.random.default_rng(1).normal(size=(2, 2, 3)) * [[[0.0]], [[1.0]]]
DRIVEN = lk.HMM([0.5, 0.5], lk.hmm.LogisticTransition(COEFFICIENTS), lk.Gaussian([[0.0], [1.0]], 1.0))
FILTERS = {  # the filter, its inputs, and log p of the whole sequence
    "linear": (linear(), U, lambda m: m.log_prob(Y, U)[0]),
    "control": (linear(control=[[1.0, 0.5]]), U, lambda m: m.log_prob(Y, U)[0]),
    "continuous time": (lk.LinearSDE.ornstein_uhlenbeck(1.0, observation_variance=0.1), TIMES,
                        lambda m: m.log_prob(Y, TIMES)[0]),
    "switching": (SWITCHING, U, lambda m: m.log_prob(Y, U)[0]),
    "imm": (lk.statespace.IMMFilter(SWITCHING), U, lambda m: m.log_prob(Y, U)[0]),
    "paths": (lk.statespace.RaoBlackwellizedFilter(SWITCHING, 8), U, lambda m: m.log_prob(Y, U)[0]),
    "extended": (lk.ExtendedKalmanFilter(as_distributions(linear())), U, lambda m: linear().log_prob(Y, U)[0]),
    "unscented": (lk.UnscentedKalmanFilter(as_distributions(linear())), U, lambda m: linear().log_prob(Y, U)[0]),
    "particles": (lk.ParticleFilter(linear(), 50), U, lambda m: m.log_prob(Y, U)[0]),
    "covariates": (DRIVEN, U, lambda m: m.log_prob([Y], covariates=[U])[0]),
}  # fmt: skip
TAKE_NONE = {
    "linear": plain(),
    "hmm": lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0)),
    "switching": lk.SwitchingLinearGaussian([plain(), plain()], [[0.9, 0.1], [0.2, 0.8]]),
    "imm": lk.statespace.IMMFilter(lk.SwitchingLinearGaussian([plain(), plain()], [[0.9, 0.1], [0.2, 0.8]])),
    "extended": lk.ExtendedKalmanFilter(as_distributions(plain())),
    "particles": lk.ParticleFilter(plain(), 50),
    "prior": lk.priors.NormalInverseWishart([0.0], 1.0, np.eye(1), 4.0),
}


@pytest.mark.parametrize("name", FILTERS)
def test_it_follows_as_it_scores_a_whole_sequence(name):
    model, inputs, whole = FILTERS[name]
    steps = list(lk.follow(model, Y, inputs=inputs))
    assert sum(news for _, news in steps) == pytest.approx(whole(model), rel=1e-9)
    belief = None
    for (_, expected), y, u in zip(steps, Y, inputs, strict=True):
        belief, news = lk.step(model, belief, y, u)
        assert news == expected


@pytest.mark.parametrize("name", FILTERS)
def test_inputs_change_the_answer_and_must_be_there(name):
    model, inputs, _ = FILTERS[name]
    news, other = ([news for _, news in lk.follow(model, Y, inputs=u)] for u in (inputs, np.cumsum(inputs, axis=0)))
    assert news != other
    with pytest.raises(lk.core.errors.LikelyError, match=r"input|time|covariates"):
        list(lk.follow(model, Y))


@pytest.mark.parametrize("name", TAKE_NONE)
def test_a_filter_without_inputs_says_so(name):
    with pytest.raises(lk.DomainError, match=r"takes? (no )?inputs"):
        list(lk.follow(TAKE_NONE[name], Y, inputs=U))
    first, _ = lk.step(TAKE_NONE[name], None, Y[0])
    with pytest.raises(lk.DomainError, match=r"takes? (no )?inputs"):
        lk.step(TAKE_NONE[name], first, Y[1], U[1])


def test_inputs_of_another_number_or_size_are_refused():
    with pytest.raises(lk.DataError, match="inputs must have one entry for each of 12 observations, got 11"):
        lk.follow(linear(), Y, inputs=U[:-1])
    with pytest.raises(lk.DataError, match="inputs must have one entry per observation, got fewer"):
        list(lk.follow(linear(), iter(Y), inputs=iter(U[:-1])))
    with pytest.raises(lk.core.errors.ShapeError, match="2 finite inputs"):
        list(lk.follow(linear(), Y, inputs=U[:, :1]))
    with pytest.raises(lk.core.errors.ShapeError, match="its time, one number"):
        list(lk.follow(FILTERS["continuous time"][0], Y, inputs=U))


@pytest.mark.parametrize("name", ["linear", "continuous time", "covariates", "switching"])
def test_a_stream_with_inputs_resumes_to_the_same_bits(name, tmp_path):
    model, inputs, _ = FILTERS[name]
    whole = [news for _, news in lk.follow(model, Y, inputs=inputs)]
    list(lk.follow(model, Y[:5], inputs=inputs[:5], checkpoint=tmp_path / "live"))
    assert [news for _, news in lk.follow(model, Y, inputs=inputs, checkpoint=tmp_path / "live")] == whole[5:]
    other = inputs.copy()
    other[2] += 0.01
    with pytest.raises(lk.DataError, match="processed already, got others"):
        lk.follow(model, Y, inputs=other, checkpoint=tmp_path / "live")


def test_several_streams_each_have_a_filter(tmp_path):
    names = ["a", "b", "b", "a", "c", "a"] * 2
    for keep in (None, tmp_path / "live"):
        steps = list(lk.follow(linear(), Y, inputs=U, streams=names, checkpoint=keep))
        for name in "abc":
            own = [i for i, stream in enumerate(names) if stream == name]
            alone = lk.follow(linear(), Y[own], inputs=U[own])
            assert [steps[i][1] for i in own] == [news for _, news in alone]
    kept = lk.load(tmp_path / "live")
    assert kept.names == ("a", "b", "c") and kept.counts.tolist() == [6, 4, 2]
    assert kept.log_probs.sum() == pytest.approx(sum(news for _, news in steps))
    assert list(lk.follow(linear(), Y, inputs=U, streams=names, checkpoint=tmp_path / "live")) == []
    with pytest.raises(lk.DataError, match="got others"):
        lk.follow(linear(), Y, inputs=U, streams=["b", *names[1:]], checkpoint=tmp_path / "live")


def test_checkpoints_of_several_streams_are_as_rare_as_there_are_streams(tmp_path):
    class Counting(lk.core.Checkpoint):
        saved: list[int] = []  # noqa: RUF012

        def save(self, progress, at_once=False):
            self.saved.append(progress.n_observations)
            super().save(progress, at_once)

    keep = Counting(tmp_path / "live")
    del keep.every
    list(lk.follow(plain(), Y, streams=list("abcdabcdabcd"), checkpoint=keep))
    assert keep.saved == [1, 5, 9, 12]
    keep.saved.clear()
    list(lk.follow(plain(), Y, streams=list("abcdabcdabcd"), checkpoint=Counting(tmp_path / "other", every=5)))
    assert keep.saved == [5, 10, 12]


def test_a_refused_observation_is_skipped_on_request(tmp_path):
    y, errors = [0.1, [1.0, 2.0], 0.3, np.inf, 0.2], []
    steps = list(lk.follow(plain(), y, on_error=errors.append, checkpoint=tmp_path / "live"))
    good = [news for _, news in lk.follow(plain(), [0.1, 0.3, 0.2])]
    assert [news for _, news in steps] == good and len(errors) == 2 and lk.load(tmp_path / "live").n_observations == 3
    with pytest.raises(lk.core.errors.LikelyError):
        list(lk.follow(plain(), y))

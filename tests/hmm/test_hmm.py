"""HMM: likelihood, Viterbi, posteriors and filtering against enumeration of all paths."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import likely as lk
from likely import HMM, Categorical, FitWarning, Ragged
from tests.hmm.all_paths import EXIT, AllPaths, Small, every_walk, small

TINY = 1e-12


def near(a: float, b: float, tol: float = TINY) -> bool:
    return a == b or abs(a - b) <= tol * max(1.0, abs(b))


def seqs(p: Small) -> Ragged:
    return Ragged(p.x, [0, len(p.x)])


def given_of(p: Small):
    return None if p.given is None else Ragged(p.given, [0, len(p.x)])


# ------------------------------------------------------------- every problem, every answer


def total_is_that_of_all_paths(p: Small) -> None:
    free = p.all_paths(p.scores)
    assert near(p.model.log_prob(seqs(p))[0], free.log_prob)
    assert near(p.model.best_log_prob(seqs(p))[0], best(free))


def best(oracle: AllPaths) -> float:
    return float(oracle.best_logs.max())


def frames_sum_to_the_total(p: Small) -> None:
    """log p(x_t | x_1 … x_{t−1}) is what the filter says of each frame; their sum is log p(x)."""
    total, belief = p.model.log_prob(seqs(p))[0], None
    if not len(p.x) or np.isneginf(total):
        return
    each = p.model.predictive_log_prob(p.x)
    for t, y in enumerate(p.x):
        belief, news = lk.step(p.model, belief, y)
        assert p.model.final is not None or near(each[t], news)  # with `final`, the filter is given that it goes on
    assert near(each.sum(), total)
    assert np.array_equal(p.model.predictive_log_prob(seqs(p)).values, each)


def posterior_is_that_of_all_paths(p: Small) -> None:
    oracle = p.all_paths(p.scores)
    if not len(p.x):
        return
    if np.isneginf(oracle.log_prob):
        with pytest.warns(FitWarning, match="counts as not observed"):
            impossible_frames_are_passed_over(p, p.model.posterior(p.x), None)
        return
    assert np.abs(p.model.posterior(p.x) - oracle.posterior).max() <= TINY


def impossible_frames_are_passed_over(p: Small, found: np.ndarray, lag: int | None) -> None:
    """Frames that are impossible in `lk.step` are as if they had not been seen; after the end no state is possible."""
    scores, T, beliefs, belief = p.scores.copy(), len(p.x), [], None
    for t, y in enumerate(p.x):
        belief, news = lk.step(p.model, belief, y)
        beliefs.append(belief.probs)
        if np.isneginf(news):
            scores[t] = 0.0
    end = next((t for t, b in enumerate(beliefs) if not b.any()), T)
    assert not found[end:].any()
    if lag == 0:
        assert np.abs(found - np.stack(beliefs)).max() <= TINY
    for t in range(end):
        seen = scores[: end if lag is None else min(t + lag + 1, end)]
        paths = p.all_paths(seen) if lag is None and end == T else p.all_paths(seen, free=True)
        paths = paths if np.isfinite(paths.log_prob) else p.all_paths(seen, free=True)
        assert np.abs(found[t] - paths.posterior[t]).max() <= TINY


def statistics_are_expected_uses(p: Small) -> None:
    oracle, N = p.all_paths(), len(p.model.initial)
    stats = p.model.collect(seqs(p), log_mask=given_of(p))
    value = p.model.objective(stats)
    assert near(value, oracle.log_prob)
    if np.isneginf(oracle.log_prob):
        return
    want = oracle.uses
    empty_without_ends = not len(p.x) and p.model.final is None
    assert np.abs(stats.initial - want[N, :N]).max() <= TINY
    assert np.abs(stats.transition - want[:N, :N]).max() <= TINY
    assert empty_without_ends or np.abs(stats.final - want[:N, EXIT]).max() <= TINY
    occupied = oracle.posterior.sum(axis=0) if len(p.x) else np.zeros(p.model.states)
    assert np.abs(stats.counts - occupied).max() <= TINY


def best_path_is_the_best(p: Small) -> None:
    oracle = p.all_paths(p.scores)
    path = p.model.viterbi(seqs(p))
    assert near(path.log_prob[0], best(oracle))
    if np.isfinite(best(oracle)):
        at = int(np.flatnonzero((oracle.paths == path.states[0]).all(axis=1))[0])
        assert near(oracle.best_logs[at], best(oracle))
    if not len(p.x):
        return
    want = np.sort(oracle.best_logs[np.isfinite(oracle.best_logs)])[::-1]
    found = p.model.k_best(p.x, len(oracle.paths) + 2)
    assert len(found) == len(want) and np.allclose([f.log_prob for f in found], want, rtol=TINY, atol=TINY)
    assert len({tuple(f.states) for f in found}) == len(found)
    some = p.model.k_best(p.x, 3)
    assert np.allclose([f.log_prob for f in some], want[:3], rtol=TINY, atol=TINY)


def hard_statistics_are_those_of_the_best_path(p: Small) -> None:
    oracle, N = p.all_paths(), len(p.model.initial)
    stats = p.model.collect(seqs(p), log_mask=given_of(p), hard=True)
    assert near(p.model.objective(stats), best(oracle))
    scores = np.sort(oracle.best_logs)[::-1]
    alone = np.isfinite(scores[0]) and (len(scores) < 2 or scores[0] - scores[1] > 1e-9)
    if alone and not one_way_is_as_good(oracle) and len(p.x):
        want = oracle.best_uses
        assert np.abs(stats.initial - want[N, :N]).max() == 0
        assert np.abs(stats.transition - want[:N, :N]).max() == 0
        assert np.abs(stats.final - want[:N, EXIT]).max() == 0


def one_way_is_as_good(oracle: AllPaths) -> bool:
    tops = [sorted((w.prob for w in options), reverse=True)[:2] for options in oracle.between.values()]
    return any(len(top) == 2 and top[0] - top[1] < 1e-12 for top in tops)


def filters_look_no_further_than_they_may(p: Small) -> None:
    T = len(p.x)
    for lag in (0, 1, 3):
        wanted = []
        for t in range(T):
            seen = p.all_paths(p.scores[: min(t + lag + 1, T)], free=True)
            wanted.append(seen.posterior[t] if np.isfinite(seen.log_prob) else None)
        if not T:
            return
        if any(w is None for w in wanted):
            with pytest.warns(FitWarning, match="counts as not observed"):
                impossible_frames_are_passed_over(p, p.model.posterior(p.x, lag=lag), lag)
            continue
        assert np.abs(p.model.posterior(p.x, lag=lag) - np.stack(wanted)).max() <= TINY


def steps_of_a_stream_are_the_filter(p: Small) -> None:
    with np.errstate(divide="ignore"):
        belief, now = None, np.log(total_starts(p))
    for t in range(len(p.x)):
        seen = p.all_paths(p.scores[: t + 1], free=True)
        if np.isneginf(seen.log_prob):
            assert lk.step(p.model, belief, p.x[t])[1] == -np.inf
            return
        belief, news = lk.step(p.model, belief, p.x[t])
        going = p.all_paths(np.concatenate([p.scores[:t], np.zeros((1, p.model.states))]), free=True).log_prob
        assert near(news, seen.log_prob - (going if t else now))
        assert np.abs(belief.probs - seen.posterior[t]).max() <= TINY


def total_starts(p: Small) -> float:
    """The probability that there is a frame at all."""
    return float(np.exp(p.all_paths(np.zeros((1, p.model.states)), free=True).log_prob))


def forecasts_are_longer_sequences_of_which_the_rest_was_not_seen(p: Small) -> None:
    T, K = p.scores.shape
    now = p.all_paths(p.scores, free=True).log_prob
    if not T or np.isneginf(now) or K ** (T + 2) > 3000:
        return
    ahead = p.model.forecast(p.x, 2)
    for step in (1, 2):
        longer = p.all_paths(np.concatenate([p.scores, np.zeros((step, K))]), free=True)
        assert near(ahead.going[step - 1], float(np.exp(longer.log_prob - now)))
        if np.isfinite(longer.log_prob):
            assert np.abs(ahead.states[step - 1] - longer.posterior[-1]).max() <= TINY
            density = np.exp(ahead[step - 1].log_prob([[0.0], [1.0], [2.0]]))
            assert np.allclose(density, longer.posterior[-1] @ p.model.emission.probs, rtol=TINY, atol=TINY)


DISTRIBUTIONS = [
    total_is_that_of_all_paths,
    posterior_is_that_of_all_paths,
    frames_sum_to_the_total,
    statistics_are_expected_uses,
    best_path_is_the_best,
    hard_statistics_are_those_of_the_best_path,
    filters_look_no_further_than_they_may,
    steps_of_a_stream_are_the_filter,
    forecasts_are_longer_sequences_of_which_the_rest_was_not_seen,
]


def hold(distribution, seeds) -> None:
    for seed in seeds:
        try:
            distribution(small(seed))
        except Exception as error:
            raise AssertionError(f"{distribution.__name__}, seed {seed}") from error


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda f: f.__name__)
def test_small_problems(distribution):
    hold(distribution, range(100))


@pytest.mark.campaign
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda f: f.__name__)
def test_ten_thousand_small_problems(distribution):
    hold(distribution, range(100, 10_250))


@pytest.mark.slow
def test_the_oracle_is_every_walk_one_by_one():
    """Ways between the same two states were joined before paths were written out: that changes nothing."""
    seen = 0
    for seed in range(400):
        p = small(seed)
        if len(p.x) > 3 or len(p.model.initial) == p.model.states:
            continue
        seen += 1
        m, oracle = p.model, p.all_paths(p.scores)
        walks = list(every_walk(m.initial, m.transition, m.final, p.scores))
        logs = [log for _, log in walks]
        assert near(oracle.log_prob, float(logsumexp(logs)) if np.isfinite(logs).any() else -np.inf)
        assert near(best(oracle), max(logs, default=-np.inf))
    assert seen > 50


# ------------------------------------------------------------------ frames that cannot be


def test_what_comes_later_or_elsewhere_changes_no_filtered_posterior():
    """One impossible frame made an error of the whole sequence, and of all others."""
    h = HMM([0.5, 0.5], [[0.9, 0.1], [0.0, 1.0]], Categorical([[0.7, 0.3, 0.0], [0.0, 0.2, 0.8]], ["a", "b", "c"]))
    x = np.array([*"aabcb", "zz", *"cac"], dtype=object)  # no state emits zz, and after c there is no way to a
    with pytest.warns(FitWarning, match=r"^HMM.posterior: frame 5 of sequence 1 .* not observed \(2 frames in all\)"):
        live = h.posterior([x[:4], x, x[:5]], lag=0)
    assert_allclose(live[1][:5], h.posterior(x[:5], lag=0), rtol=1e-12)
    assert_allclose(live[2], live[1][:5], rtol=1e-12)
    assert_allclose(live[1], [belief.probs for belief, _ in lk.follow(h, x)])
    gap = x.copy()
    gap[[5, 7]] = None
    for lag in (1, 3, None):
        with pytest.warns(FitWarning):
            assert_allclose(h.posterior(x, lag=lag), h.posterior(gap, lag=lag))
    with pytest.warns(FitWarning):
        found = h.smooth([x, x[:4]])
    assert np.isneginf(found.log_prob[0]) and found.log_prob[1] == h.log_prob([x[:4]])[0]
    with pytest.warns(FitWarning, match=r"^HMM.forecast: frame 5 of sequence 0"):
        assert_allclose(h.forecast(x, 2).states, h.forecast(gap, 2).states)


@pytest.mark.slow
def test_a_long_sequence_with_impossible_frames_goes_on(monkeypatch):
    from likely.hmm import sequence_blocks

    h = HMM([0.5, 0.5], [[0.9, 0.1], [0.0, 1.0]], Categorical([[0.7, 0.3, 0.0], [0.0, 0.2, 0.8]], ["a", "b", "c"]))
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.choice([*"ab"], 3000), rng.choice([*"abc"], 3000, p=[0.02, 0.18, 0.8])]).astype(object)
    with pytest.warns(FitWarning):
        want = [h.posterior(x, lag=lag) for lag in (0, 2, None)]
    assert_allclose(want[0], [belief.probs for belief, _ in lk.follow(h, x)], atol=1e-12)
    monkeypatch.setattr(sequence_blocks, "LONG", 1000)
    with pytest.warns(FitWarning):
        found = [h.posterior(x, lag=lag) for lag in (0, 2, None)]
    assert_allclose(np.stack(found), np.stack(want), atol=1e-12)

"""Forward–backward: the scaled algorithm agrees with the one in logarithms, also where probabilities underflow."""

from __future__ import annotations

import numpy as np
import pytest

from likely import HMM, Gaussian, Ragged
from likely.hmm import forward_backward
from likely.hmm.decoding import _fixed_lag
from likely.hmm.markov_chain import Chain

TEN = np.log(10.0)
ALIKE = 1e-12


def chain(initial, transition, final=None) -> Chain:
    initial, transition = np.array(initial, float), np.array(transition, float)
    return Chain.trusted(
        initial=initial,
        transition=transition,
        final=None if final is None else np.array(final, float),
        states=len(initial),
    )


def plainly_scaled(c: Chain, logs: np.ndarray) -> tuple[float, np.ndarray]:
    """The textbook's scaled algorithm, which trusts in every number: log p(x) and p(s_t | x)."""
    w, T = c.summed, len(logs)
    with np.errstate(all="ignore"):
        top = logs.max(axis=1, keepdims=True)
        b, alpha, scale, total = np.exp(logs - top), np.empty_like(logs), np.empty(T), float(top.sum())
        for t in range(T):
            now = (w.initial if t == 0 else alpha[t - 1] @ w.transition) * b[t]
            scale[t] = now.sum()
            alpha[t] = now / scale[t]
        finish = float(alpha[-1] @ w.final)
        beta, gamma = w.final / finish, np.empty_like(logs)
        for t in reversed(range(T)):
            gamma[t] = alpha[t] * beta
            beta = w.transition @ (beta * b[t]) / scale[t]
        return total + float(np.log(scale).sum() + np.log(finish)), gamma


def both(c: Chain, logs: np.ndarray, offsets=None, weight=None):
    """All that the fast way says, and all that logarithms say."""
    offsets = np.array([0, len(logs)]) if offsets is None else np.asarray(offsets)
    weight = np.ones(len(offsets) - 1) if weight is None else weight
    with np.errstate(all="ignore"):
        fast = forward_backward.posterior(c.summed, logs, offsets, weight)
        slow = forward_backward.log_posterior(c.summed, logs, offsets, weight)
        alone = forward_backward.log_likelihoods([c.summed], logs.copy(), offsets)[:, 0]
    return fast, slow, alone


def agree(c: Chain, logs: np.ndarray, offsets=None, weight=None) -> forward_backward.Posterior:
    logs = np.ascontiguousarray(logs, dtype=float)
    fast, slow, alone = both(c, logs, offsets, weight)
    size = 1.0 if weight is None else max(1.0, float(np.max(weight)))
    for name in ("states", "transition"):
        one, two = getattr(fast, name), getattr(slow, name)
        assert np.isfinite(one).all() and np.isfinite(two).all()
        assert np.abs(one - two).max(initial=0) <= ALIKE * size * max(1, len(logs)), name
    for total in (fast.log_prob, alone):
        assert (np.isneginf(total) == np.isneginf(slow.log_prob)).all()
        can = np.isfinite(slow.log_prob)
        assert np.allclose(total[can], slow.log_prob[can], rtol=ALIKE, atol=ALIKE)
    return fast


def random_chain(rng, K, zeros, thin) -> Chain:
    def rows(shape):
        w = rng.standard_gamma(0.5, shape) * (rng.random(shape) >= zeros) + 1e-9 * (np.arange(shape[-1]) == 0)
        w *= 10.0 ** -(rng.uniform(0, 320, shape) * (rng.random(shape) < thin))
        w = np.where(w.sum(axis=-1, keepdims=True) > 0, w, 1.0)
        return w / w.sum(axis=-1, keepdims=True)

    initial, on = rows((K,)), rows((K, K + 1))
    if rng.random() < 0.5:
        on = on[:, :K] / np.where(on[:, :K].sum(1) > 0, on[:, :K].sum(1), 1)[:, None]
        return chain(initial, on)
    return chain(initial, on[:, :K], on[:, K])


def random_scores(rng, T, K) -> np.ndarray:
    """Scores as nobody wants them: huge, tiny, impossible, far apart, and frames that contradict each other."""
    spread = 10.0 ** rng.uniform(-1, 4)
    logs = spread * rng.standard_normal((T, K)) * (rng.random((T, 1)) < rng.choice([0.2, 1.0]))
    logs += 10.0 ** rng.uniform(0, 300) * (rng.random((T, 1)) < 0.1)
    logs[rng.random((T, K)) < rng.choice([0.0, 0.2])] = -np.inf
    return logs


def hold(seeds) -> None:
    for seed in seeds:
        rng = np.random.default_rng([7, seed])
        K, n = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        lengths = rng.integers(0, 30, n)
        c = random_chain(rng, K, float(rng.choice([0.0, 0.5])), float(rng.choice([0.0, 0.3])))
        try:
            agree(c, random_scores(rng, int(lengths.sum()), K), [0, *np.cumsum(lengths)], rng.random(n) * 3)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.slow
def test_both_ways_agree_on_nasty_scores():
    hold(range(1500))


@pytest.mark.campaign
def test_both_ways_agree_on_thirty_thousand_nasty_scores():
    hold(range(1500, 31_500))


# ------------------------------------------------- where the textbook's way would be wrong

E = 1e-300
DECEPTIVE = {
    # past and future disagree by more than numbers can tell apart: the lone survivor of frame 0 is wrong
    "disagreement": (chain([0.5, 0.5], np.eye(2)), [[0, -400 * TEN], [-800 * TEN, 0]]),
    "long disagreement": (chain([0.5, 0.5], np.eye(2)), [[0, -90 * TEN]] * 4 + [[-90 * TEN, 0]] * 8),
    "one of three": (
        chain([0.4, 0.3, 0.3], np.eye(3)),
        [[0, -400 * TEN, -100 * TEN], [-500 * TEN, 0, -150 * TEN], [-300 * TEN, 0, -300 * TEN]],
    ),
    "left to right": (  # all frames look like the first state, but a sequence ends in the last one
        chain([1, 0, 0], [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 0.5]], [0, 0, 0.5]), [[0, -400 * TEN, -400 * TEN]] * 4,
    ),
    "an arc of 1e-300": (
        chain([0.5, 0, 0.5], [[1 - E, E, 0], [0, 1, 0], [0, 0, 1]]),
        [[-200 * TEN, -np.inf, 0]] + [[-30 * TEN, 0, -30 * TEN]] * 25,
    ),
    "an end of 1e-300": (chain([0.5, 0.5], [[1, 0], [0, 1 - E]], [0, E]), [[0, -100 * TEN]]),
    "an outlier": (
        chain([0.5, 0.5], np.eye(2)), [[-1.0, -2.0], [-1e6, -1e6 - 2000.0], [-3000.0, -1.0], [-1.0, -1.5]],
    ),
    "1e300": (chain([0.5, 0.5], np.eye(2)), [[1e300, 1e300], [0, -900], [-1900, 0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", DECEPTIVE)
def test_where_the_plain_algorithm_is_wrong_ours_is_right(name):
    c, logs = DECEPTIVE[name]
    logs = np.array(logs, float)
    found = agree(c, logs)
    total, gamma = plainly_scaled(c, logs)
    wrong = not np.isfinite(gamma).all() or np.abs(gamma - found.states).max() > 1e-9
    assert wrong or not abs(total - found.log_prob[0]) <= 1e-9 * abs(found.log_prob[0])


def test_plain_algorithm_is_right_where_nothing_is_lost():
    """Else the test above would show nothing."""
    rng = np.random.default_rng(0)
    c = random_chain(rng, 3, 0.0, 0.0)
    logs = rng.standard_normal((20, 3))
    total, gamma = plainly_scaled(c, logs)
    found = agree(c, logs)
    assert abs(total - found.log_prob[0]) < 1e-11 and np.abs(gamma - found.states).max() < 1e-12


def test_a_clean_sequence_does_not_pay_for_a_bad_neighbor():
    """Only the one that lost something is done again by logarithms; the bits of the other are as if alone."""
    c = chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    clean, bad = np.random.default_rng(1).standard_normal((9, 2)), np.array([[-np.inf, 0], [0, -np.inf], [-2e3, 0]])
    alone = both(c, clean)[0].states
    together = both(c, np.concatenate([clean, bad, clean]), [0, 9, 12, 21])[0].states
    assert (together[:9] == alone).all() and (together[12:] == alone).all()


def test_frames_that_cannot_be_make_a_sequence_impossible_and_nothing_else():
    c = chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    logs = np.zeros((6, 2))
    logs[1] = -np.inf
    fast, slow, alone = both(c, logs, [0, 3, 6], np.array([1.0, 2.0]))
    for found in (fast, slow):
        assert found.log_prob[0] == -np.inf and (found.states[:3] == 0).all()
        assert found.log_prob[1] == pytest.approx(0.0, abs=1e-15) and np.allclose(found.states[3:].sum(1), 2.0)
        assert found.transition.sum() == pytest.approx(4.0)
    assert alone.tolist() == fast.log_prob.tolist()


def test_loss_that_other_paths_hide_is_no_reason_for_logarithms(monkeypatch):
    """An ergodic chain recovers from an outlier at once: the fast way must stay in charge."""
    rng = np.random.default_rng(2)
    c = chain([0.25] * 4, np.full((4, 4), 0.25))
    logs = rng.standard_normal((2000, 4))
    logs[::100, 0] -= 5000.0
    monkeypatch.setattr(forward_backward, "LogPass", None)
    forward_backward.posterior(c.summed, logs, np.array([0, 2000]), np.ones(1))
    forward_backward.log_likelihoods([c.summed], logs.copy(), np.array([0, 2000]))


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_chains_of_few_arcs(share):
    """Along lists of arcs, by whole rows, and by logarithms: all the same, with thin arcs and outliers, too."""
    rng, K = np.random.default_rng(5), 40
    for extreme in (False, True):
        transition = rng.random((K, K)) * (
            (rng.random((K, K)) < share) | np.eye(K, k=1, dtype=bool) | np.eye(K, dtype=bool)
        )
        transition /= transition.sum(axis=1, keepdims=True)
        c = chain(np.full(K, 1 / K), transition)
        logs = random_scores(rng, 50, K) if extreme else rng.standard_normal((50, K))
        found = agree(c, logs, [0, 20, 20, 50], np.array([1.0, 1.0, 2.0]))
        if not extreme:
            total, gamma = plainly_scaled(c, logs[:20])
            assert np.abs(gamma - found.states[:20]).max() < 1e-12 and abs(total - found.log_prob[0]) < 1e-11


# ----------------------------------------------------------------------- filters


@pytest.mark.parametrize("name", [n for n in DECEPTIVE if "end" not in n])
@pytest.mark.parametrize("lag", [0, 1, 2, 30])
def test_filters_of_deceptive_sequences(name, lag):
    c, logs = DECEPTIVE[name]
    logs, w = np.array(logs, float), c.summed
    T, free = len(logs), w._replace(final=np.ones(len(w.initial)))
    with np.errstate(all="ignore"):
        alpha, _ = forward_backward.filtered(w, logs, np.array([0, T]))
        found = alpha if lag == 0 else _fixed_lag(w, logs, alpha, Ragged(logs, [0, T]), lag)
        for t in range(T):
            z = min(T, t + lag + 1)
            want = forward_backward.log_posterior(free, logs[:z], np.array([0, z]), np.ones(1)).states[t]
            assert np.abs(found[t] - want).max() <= 1e-11


@pytest.mark.slow
def test_fixed_lags_of_random_nasty_sequences():
    for seed in range(300):
        rng = np.random.default_rng([9, seed])
        K, T, lag = int(rng.integers(1, 5)), int(rng.integers(1, 15)), int(rng.integers(1, 6))
        c = random_chain(rng, K, 0.0, float(rng.choice([0.0, 0.3])))
        w, logs = c.summed, np.clip(random_scores(rng, T, K), -1e4, 1e300)
        free = w._replace(final=np.ones(K))
        with np.errstate(all="ignore"):
            alpha, news = forward_backward.filtered(w, logs, np.array([0, T]))
            if not np.isfinite(news).all():
                continue
            found = _fixed_lag(w, logs, alpha, Ragged(logs, [0, T]), lag)
            for t in range(T):
                z = min(T, t + lag + 1)
                want = forward_backward.log_posterior(free, logs[:z], np.array([0, z]), np.ones(1)).states[t]
                assert np.abs(found[t] - want).max() <= 1e-11, seed


# ----------------------------------------------------------------- through the model


def test_outliers_under_gaussians_give_numbers():
    h = HMM([1.0, 0.0, 0.0], [[0.6, 0.4, 0], [0, 0.6, 0.4], [0, 0, 1.0]], Gaussian([[0.0], [5.0], [9.0]], 1.0))
    for far in (1e3, 1e6, 1e100, 1e150):
        x = np.array([[0.0], [far], [5.0], [-far], [9.0]])
        assert np.isfinite(h.log_prob([x])).all() and np.isfinite(h.posterior(x)).all()
        assert np.allclose(h.posterior(x).sum(1), 1) and np.isfinite(h.viterbi(x).log_prob)
    x = np.array([[0.0], [1e300], [5.0]])  # its square is no number any more
    assert not np.isnan(h.log_prob([x])).any()

"""Stochastic approximation: the running mean exactly, maximum likelihood within its own error."""

from __future__ import annotations

import math

import numpy as np
import pytest

import likely as lk
from likely.core.filter_protocol import as_filter
from likely.distributions.unconstrained_parameters import FreeParameters, declare_constraints

N = 4000


def test_the_running_mean_exactly():
    """a_{N−1} = σ²/N (Herbst 2.3.4 prints a_N)."""
    x = np.random.default_rng(0).normal(3.0, 2.0, (100, 1))
    rule = lk.inference.RobbinsMonro(
        lk.Gaussian([0.0], 4.0), step=4.0, power=1.0, learn="mean", natural=False, average=False
    )
    belief = None
    for n, row in enumerate(x, 1):
        belief, _ = lk.step(rule, belief, row)
        if n in (1, 2, 10, 100):
            assert belief.distribution.mean == pytest.approx(x[:n].mean(axis=0), abs=1e-8)
    assert belief.distribution.covariance == 4.0  # what is not learned stays


def errors(distribution, x):
    """How far each free parameter is from its maximum-likelihood value, in standard errors of n rows."""
    free = FreeParameters(distribution)
    theta = free.start
    for _ in range(50):  # scoring from where it ended: maximum likelihood itself
        g = free.scores(theta, x)
        theta = theta + np.linalg.lstsq(g.T @ g, g.sum(axis=0), rcond=1e-10)[0]
    g = free.scores(theta, x)
    away = free.start - theta
    away = away - away.mean() if type(distribution).__name__ == "Categorical" else away
    return math.sqrt(away @ (g.T @ g) @ away / len(away))


@pytest.mark.some_cases(5)
@pytest.mark.parametrize(
    ("start", "truth"),
    [
        (lk.Gaussian([0.0], [[1.0]]), lk.Gaussian([3.0], [[4.0]])),
        (lk.Gaussian([0.0, 0.0], [1.0, 1.0]), lk.Gaussian([1.0, -2.0], [4.0, 0.25])),
        (lk.Gaussian([0.0, 0.0], np.eye(2)), lk.Gaussian([1.0, 2.0], [[2.0, 0.8], [0.8, 1.0]])),
        (lk.Gamma(1.0, 1.0), lk.Gamma(3.0, 2.0)),
        (lk.Poisson(1.0), lk.Poisson(20.0)),
        (lk.Categorical([1 / 3] * 3), lk.Categorical([0.1, 0.2, 0.7])),
        (lk.Bernoulli([0.5, 0.5]), lk.Bernoulli([0.1, 0.8])),
        (lk.StudentT([0.0], [[1.0]], 6.0), lk.StudentT([7.0], [[4.0]], 3.0)),
        (lk.Exponential(1.0), lk.Exponential(50.0)),
    ],
    ids=lambda distribution: type(distribution).__name__,
)  # fmt: skip
def test_it_ends_near_maximum_likelihood(start, truth):
    x = truth.sample(N, np.random.default_rng(1))
    found = lk.inference.RobbinsMonro(start).run(x, batch=10)
    assert found.count == N // 10
    assert errors(found.distribution, x) < 2.5
    assert found.distribution.log_prob(x).mean() > truth.log_prob(x).mean() - 3 / N * 5


def test_averages_are_steadier_than_the_last_parameters():
    x = np.random.default_rng(2).poisson(6.0, (400, 1))
    path = [belief for belief, _ in lk.follow(lk.inference.RobbinsMonro(lk.Poisson(6.0)), x)][200:]
    assert np.std([b.average for b in path]) < 0.5 * np.std([b.theta for b in path])


def test_a_far_start_and_an_outlier_do_not_throw_it_away():
    x = np.random.default_rng(3).normal(300.0, 2.0, (20_000, 1))
    x[10_000] = 1e12
    found = lk.inference.RobbinsMonro(lk.Gaussian([280.0], [[1.0]])).run(x, batch=20).distribution
    assert found.mean == pytest.approx([300.0], abs=2.0)


def test_it_is_followed_like_any_learner(tmp_path):
    rule = lk.inference.RobbinsMonro(lk.Poisson(1.0))
    assert as_filter(rule) is rule
    x = np.random.default_rng(4).poisson(5.0, (60, 1))
    steps = list(lk.follow(rule, x))
    assert steps[-1][0].distribution.rate == pytest.approx(rule.run(x).distribution.rate)
    before = steps[29][0]
    assert steps[30][1] == pytest.approx(float(before.distribution.log_prob(x[30:31])[0]))
    keep = tmp_path / "progress.likely"
    list(lk.follow(rule, x[:40], checkpoint=keep))
    again = list(lk.follow(rule, x, checkpoint=keep))
    assert len(again) == 20 and np.array_equal(again[-1][0].theta, steps[-1][0].theta)


def test_weights_are_copies_and_none_is_absence():
    x = np.random.default_rng(5).poisson(5.0, (40, 1))
    w = np.tile([0.0, 1.0, 2.0, 1.0], 10)
    rule = lk.inference.RobbinsMonro(lk.Poisson(1.0))
    assert rule.run(x, w).distribution.rate == rule.run(np.repeat(x, w.astype(int), axis=0)).distribution.rate
    assert rule.run(x, np.full(40, 0.5)).distribution.rate != rule.run(x).distribution.rate


def test_blocks_are_one_step_and_missing_values_say_nothing():
    x = np.random.default_rng(6).normal(2.0, 1.0, (N, 2))
    rule = lk.inference.RobbinsMonro(lk.Gaussian([0.0, 0.0], [1.0, 1.0]), learn=("mean",), natural=False)
    found = rule.run(x, batch=20)
    assert found.count == N // 20
    assert found.distribution.mean == pytest.approx(x.mean(axis=0), abs=0.05)
    x[:, 1] = np.nan
    assert rule.run(x[:200]).distribution.mean[1] == 0.0


def test_distributions_of_ones_own():
    class Rayleigh:
        def log_prob(self, x):
            return 0

        def sample(self, n, rng):
            return 0

    with pytest.raises(lk.DomainError, match="declare_constraints"):
        lk.inference.RobbinsMonro(Rayleigh())
    with pytest.raises(lk.DomainError, match="one of real"):
        declare_constraints("Rayleigh", scale="curly")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"power": 0.5}, "their squares"), ({"power": 1.1}, "their squares"), ({"step": 0.0}, "positive"),
        ({"delay": -1.0}, "negative"), ({"learn": ("speed",)}, "among"),
    ],
)  # fmt: skip
def test_conditions_of_robbins_and_monro(wrong, match):
    with pytest.raises(lk.DomainError, match=match):
        lk.inference.RobbinsMonro(lk.Gaussian([0.0], 1.0), **wrong)
    with pytest.raises(lk.DomainError, match="stack"):
        lk.inference.RobbinsMonro(lk.Poisson([[1.0], [2.0]]))


@pytest.mark.parametrize("far", [1e3, 1e6, -1e9])
def test_starts_that_are_no_starts(far):
    x = np.random.default_rng(7).normal(3.0, 2.0, (4000, 1))
    found = lk.inference.RobbinsMonro(lk.Gaussian([far], 1.0)).run(x, batch=10).distribution
    assert found.mean == pytest.approx([3.0], abs=0.2)
    assert found.covariance == pytest.approx(4.0, rel=0.2)


def test_what_has_not_settled_is_reported():
    """Rows that change in the middle: the last ones lie elsewhere than the answer."""
    x = np.concatenate([np.zeros(2000), np.full(600, 8.0)])[:, None] + np.random.default_rng(8).normal(size=(2600, 1))
    with pytest.warns(lk.FitWarning, match="not converged"):
        lk.inference.RobbinsMonro(lk.Gaussian([0.0], 1.0), learn="mean", power=1.0).run(x, batch=10)


def test_impossible_rows_and_distributions_of_ends_are_refused():
    with pytest.raises(lk.DataError, match="positive density"):
        lk.inference.RobbinsMonro(lk.Gamma(1.0, 1.0)).run([[1.0], [-2.0]])
    for distribution in (lk.Uniform(0.0, 1.0), lk.distributions.Triangular(0.0, 0.5, 1.0)):
        with pytest.raises(lk.DomainError, match="bounds"):
            lk.inference.RobbinsMonro(distribution)


def steps(rule, x):
    """The same recursion, one update after the other."""
    belief = rule.initial_belief()
    for row in x:
        belief, _ = rule.update(belief, row)
    return belief


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize(
    "distribution",
    [lk.Gaussian([0.0, 1.0], np.array([[2.0, 0.5], [0.5, 1.0]])), lk.Gamma(2.0, 3.0), lk.Categorical([0.2, 0.8])],
    ids=lambda distribution: type(distribution).__name__,
)
def test_a_table_and_a_stream_are_one_recursion(distribution, natural):
    x = distribution.sample(700, np.random.default_rng(4))
    rule = lk.inference.RobbinsMonro(distribution, step=0.1, natural=natural)
    whole, one_by_one = rule.run(x), steps(rule, x)
    assert whole.count == one_by_one.count == 700
    assert whole.theta == pytest.approx(one_by_one.theta, rel=1e-10, abs=1e-12)
    assert whole.average == pytest.approx(one_by_one.average, rel=1e-10, abs=1e-12)
    halves = rule.run(x[300:], belief=rule.run(x[:300]))
    assert halves.average == pytest.approx(whole.average, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_formulas_and_differences_walk_the_same_path():
    distribution = lk.StudentT([0.0, 1.0], [1.0, 2.0], 5.0)
    x = distribution.sample(300, np.random.default_rng(5))
    fast, slow = lk.inference.RobbinsMonro(distribution), lk.inference.RobbinsMonro(distribution)
    slow.__dict__["_formulas"] = None
    assert fast.run(x).theta == pytest.approx(slow.run(x).theta, abs=1e-7)
    ahead, behind = steps(fast, x[:50]), steps(slow, x[:50])
    assert fast.update(ahead, x[50])[1] == pytest.approx(slow.update(behind, x[50])[1], abs=1e-7)


def test_missing_values_among_whole_rows_take_the_other_way():
    x = lk.Gaussian([0.0, 3.0], [1.0, 4.0]).sample(400, np.random.default_rng(6))
    x[::7, 0] = np.nan
    found = lk.inference.RobbinsMonro(lk.Gaussian([0.0, 0.0], [1.0, 1.0])).run(x).distribution
    assert found.mean == pytest.approx(np.nanmean(x, axis=0), abs=0.3)


def plain(step, start=0.0):
    """The rule as Robbins and Monro wrote it, for the mean of a Gaussian of variance 4."""
    return lk.inference.RobbinsMonro(lk.Gaussian([start], 4.0), step=step, learn="mean", natural=False)


def test_without_the_information_a_step_has_units(recwarn):
    x = np.random.default_rng(7).normal(50.0, 2.0, (3000, 1))
    assert plain(4.0).run(x).distribution.mean == pytest.approx([50.0], abs=0.5)  # one over the information, 1/σ²
    assert not recwarn
    with pytest.warns(lk.FitWarning, match=r"not converged.*natural=True"):
        assert plain(1e-3).run(x).distribution.mean < 40.0  # it creeps
    with pytest.raises(lk.DomainError, match=r"the path must stay finite.*smaller step"):
        lk.inference.RobbinsMonro(lk.Poisson(1.0), step=1e300, natural=False, power=0.51).run(
            np.array([[3.0], [4.0], [9.0]] * 9)
        )


def test_a_stream_that_has_not_settled_is_reported_as_it_doubles():
    x = np.random.default_rng(8).normal(50.0, 2.0, (600, 1))
    with pytest.warns(lk.FitWarning, match="not converged") as said:
        for _ in lk.follow(plain(1e-3), x):
            pass
    assert len(said) == 2  # after 256 and 512 rows


@pytest.mark.parametrize("rule", [plain(4.0, 49.0), lk.inference.RobbinsMonro(lk.Gaussian([40.0], 9.0))])
def test_a_stream_that_settles_is_not_told_of(rule, recwarn):
    for _ in lk.follow(rule, np.random.default_rng(9).normal(50.0, 2.0, (600, 1))):
        pass
    assert not recwarn


def test_the_information_is_looked_at_sixteen_times_a_doubling():
    rule, at, looks = lk.inference.RobbinsMonro(lk.Poisson(1.0)), 0, []
    while at < 4096:
        at = rule._next_look(at)
        looks.append(at)
    assert [sum(n < look <= 2 * n for look in looks) for n in (64, 256, 1024, 2048)] == [16] * 4


@pytest.mark.parametrize(
    ("rule", "x"),
    [
        (lk.inference.RobbinsMonro(lk.Gaussian([0.0], [1.0]), natural=False, step=10.0), (50.0, 1000)),
        (lk.inference.RobbinsMonro(lk.Gaussian([0.0], [1.0]), natural=False, step=10.0), (50.0, 20)),
         # too few to look at slopes
        (lk.inference.RobbinsMonro(lk.Poisson(1.0), natural=False, step=10.0), (50.0, 1000)),
        (lk.inference.RobbinsMonro(lk.Bernoulli(0.5), natural=False, step=1e4), (0.5, 100)),
    ],
    ids=["Gaussian", "few rows", "Poisson", "Bernoulli"],
)  # fmt: skip
def test_a_run_that_ran_away_is_reported_once(rule, x):
    """Beyond the fence distributions do not change, so that slopes seem to cancel."""
    distribution = type(rule.distribution).__name__
    rng, (mean, n) = np.random.default_rng(10), x
    draws = {"Gaussian": rng.normal(mean, 1.0, n), "Poisson": rng.poisson(mean, n), "Bernoulli": rng.random(n) < mean}
    z = draws[distribution].astype(float)[:, None]
    with pytest.warns(lk.FitWarning, match=r"diverged.*natural=True") as said:
        rule.run(z)
    assert len(said) == 1
    with pytest.warns(lk.FitWarning, match="diverged") as said:
        steps(rule, z[:60])
    assert len(said) == 1


def test_data_frames_are_their_rows():
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(11).normal(3.0, 1.0, (200, 2))
    names = [f"r{i}" for i in range(200)]
    rule = lk.inference.RobbinsMonro(lk.Gaussian([0.0, 0.0], [1.0, 1.0]))
    frame = pandas.DataFrame(x, columns=["a", "b"], index=names)
    wanted = rule.run(x).theta
    assert np.array_equal(rule.run(frame).theta, wanted)
    assert np.array_equal([b.theta for b, _ in lk.follow(rule, frame)], [b.theta for b, _ in lk.follow(rule, x)])
    one, backwards = (
        lk.inference.RobbinsMonro(lk.Gaussian([0.0], [1.0])),
        pandas.Series(x[:, 0], index=range(200, 0, -1)),
    )
    assert np.array_equal(one.run(backwards).theta, one.run(x[:, :1]).theta)


def test_weights_that_would_fill_the_memory_are_refused():
    with pytest.raises(lk.DataError, match=r"visits.*4,000,000,000,000: divide them"):
        lk.inference.RobbinsMonro(lk.Gaussian([0.0], [1.0])).run(np.zeros((400, 1)), np.full(400, 1e10))


def test_truths_are_numbers():
    bits = np.random.default_rng(12).random((300, 2)) < 0.3
    rule = lk.inference.RobbinsMonro(lk.Bernoulli([0.5, 0.5]))
    assert rule._formulas.table(bits) is not None
    assert np.array_equal(rule.run(bits).theta, rule.run(bits.astype(float)).theta)

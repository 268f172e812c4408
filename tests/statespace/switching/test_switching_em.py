"""EM of switching models: exact with known regimes, approximate without; weights; additive statistics."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.blocks import Blocks
from likely.core.em_loop import StoppingRule, fit
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.statespace.linear.linear_em import ConstrainedLinearGaussian
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.switching.switching_em import ConstrainedSwitchingLinearGaussian, fit_switching
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian
from tests.statespace.switching.switching_models import P2, driven, regime, two


def simulated(n: int = 4, T: int = 60, seed: int = 0) -> tuple[Ragged, Ragged]:
    z, _, y = two().simulate(n, np.random.default_rng(seed), T)
    return z, y


def labeled() -> tuple[Ragged, list[list[int]], list[list[np.ndarray]]]:
    """Sequences that stay in one regime each, and the same by regime."""
    rng = np.random.default_rng(1)
    apart = [[np.array(s) for s in m.sample(3, rng, [30, 41, 25])] for m in two().regimes]
    both = [s for pair in zip(*apart, strict=True) for s in pair]
    return Ragged.of(both), [[i % 2] * len(s) for i, s in enumerate(both)], apart


@pytest.mark.slow
def test_labeled_stretches_are_separate_fits() -> None:
    y, given, apart = labeled()
    learn = ["transition", "process_covariance", "observation_covariance"]
    start = SwitchingLinearGaussian((regime(0.5, 0.5, 0.5), regime(0.1, 0.5, 0.5, 2.0)), P2)
    stop = StoppingRule(12, 0.0)
    data = Blocks.of(y, None, log_mask=lk_masks(given, y))
    together = fit_switching(ConstrainedSwitchingLinearGaussian.of(start, learn), data, stop=stop).model
    for k in (0, 1):
        alone = fit(ConstrainedLinearGaussian.of(start.regimes[k], learn), Ragged.of(apart[k]), stop=stop).model.model
        for name in learn:
            np.testing.assert_allclose(getattr(together.regimes[k], name), getattr(alone, name), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(together.transition, np.eye(2))
    np.testing.assert_allclose(together.initial, [0.5, 0.5])


def lk_masks(given: object, y: Ragged) -> Ragged:
    from likely.hmm.hmm import masks

    return masks(Ragged.of(given), y, 2)


def test_given_regimes_are_counted_and_the_expectation_is_exact() -> None:
    """Along a known path the model is one time-varying Kalman model: its moments must be those."""
    z, y = simulated(1, 40)
    stats = two().collect(y, log_mask=z)
    path = np.array(z[0])
    counts = np.zeros((2, 2))
    np.add.at(counts, (path[:-1], path[1:]), 1.0)
    np.testing.assert_allclose(stats.transition, counts, atol=1e-12)
    m = [two().regimes[k] for k in path]
    names = ("transition", "process_covariance", "observation", "observation_covariance")
    chain = LinearGaussian(
        **{n: np.stack([getattr(r, n) for r in m]) for n in names},
        initial_mean=m[0].initial_mean,
        initial_covariance=m[0].initial_covariance,
    )
    known = chain.smooth(np.array(y[0]))
    there = path == 1
    want = np.einsum("ti,tj->ij", known.mean[there], known.mean[there]) + known.covariance[there].sum(axis=0)
    np.testing.assert_allclose(stats.regimes[1].observation_gram, want, atol=1e-9)
    into = np.flatnonzero(there[1:]) + 1
    A = two().regimes[1].transition
    r = known.mean[into] - known.mean[into - 1] @ A.T
    L = known.lag_one[into].sum(axis=0)
    want = (
        r.T @ r
        + known.covariance[into].sum(axis=0)
        - L @ A.T
        - A @ L.T
        + A @ known.covariance[into - 1].sum(axis=0) @ A.T
    )
    np.testing.assert_allclose(stats.regimes[1].process_scatter, want, atol=1e-9)
    chance = np.log(two().initial[path[0]]) + np.log(two().transition[path[:-1], path[1:]]).sum()
    assert two().objective(stats) == pytest.approx(known.log_prob + chance, abs=1e-8)


def test_exact_learning_with_labels_never_falls() -> None:
    z, y = simulated()
    learner = ConstrainedSwitchingLinearGaussian.of(SwitchingLinearGaussian((regime(), regime(0.0, 0.5)), P2))
    report = fit_switching(learner, Blocks.of(y, None, log_mask=lk_masks(list(z), y)), stop=StoppingRule(15, 0.0))
    assert len(report.trace) == 16 and (np.diff(report.trace) > -1e-8).all()


def test_the_objective_is_the_approximate_evidence() -> None:
    _, y = simulated()
    assert two().objective(two().collect(y)) == pytest.approx(float(two().log_prob(y).sum()), abs=1e-9)


def test_weights_are_copies_and_statistics_add() -> None:
    _, y = simulated(3, 20)
    weighted = two().collect(y, [2.0, 0.0, 1.0])
    copies = two().collect(Ragged.of([y[0], y[0], y[2]]))
    added = two().collect(y[:1]) * 2.0 + two().collect(y[2:])
    for other in (copies, added):
        np.testing.assert_allclose(weighted.transition, other.transition, atol=1e-10)
        np.testing.assert_allclose(weighted.entropy, other.entropy, atol=1e-8)
        for a, b in zip(weighted.regimes, other.regimes, strict=True):
            np.testing.assert_allclose(a.process_scatter, b.process_scatter, atol=1e-9)
            np.testing.assert_allclose(a.observation_gram, b.observation_gram, atol=1e-9)
    assert weighted.total_weight == pytest.approx(60.0)


def test_one_regime_learns_as_kalman_does() -> None:
    _, y = simulated(3, 40)
    y = Ragged.of([np.where(np.arange(len(s))[:, None] % 7 == 3, np.nan, s) for s in y])
    learn, stop = ["transition", "process_covariance", "observation_covariance"], StoppingRule(8, 0.0)
    one = fit_switching(
        ConstrainedSwitchingLinearGaussian.of(SwitchingLinearGaussian((regime(),), [[1.0]]), learn), y, stop=stop
    )
    alone = fit(ConstrainedLinearGaussian.of(regime(), learn), y, stop=stop)
    np.testing.assert_allclose(one.trace, alone.trace, rtol=1e-9)
    np.testing.assert_allclose(one.model.regimes[0].process_covariance, alone.model.model.process_covariance, rtol=1e-7)


@pytest.mark.slow
def test_inputs_are_learned() -> None:
    rng = np.random.default_rng(3)
    u = [rng.normal(size=(80, 2)) for _ in range(3)]
    z, _, y = driven().simulate(3, rng, None, u)
    both = lk.core.with_covariates(y, u)
    blank = tuple(m.replace(control=m.control * 0.3) for m in driven().regimes)
    start = SwitchingLinearGaussian(blank, P2)
    known = lk_masks(list(z), y)
    report = fit_switching(
        ConstrainedSwitchingLinearGaussian.of(start, ["control"]),
        Blocks.of(both, None, log_mask=known),
        stop=StoppingRule(300, 0.0),
    )
    assert report.trace[-1] > driven().objective(driven().collect(both, log_mask=known))  # the maximum beats the truth
    for m, true in zip(report.model.regimes, driven().regimes, strict=True):
        np.testing.assert_allclose(m.control[0], true.control[0], atol=0.2)


def scalar(a: float, q: float) -> LinearGaussian:
    return LinearGaussian(
        transition=[[a]],
        process_covariance=[[q]],
        observation=[[1.0]],
        observation_covariance=[[0.1]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )


@pytest.mark.slow
def test_hidden_regimes_are_found() -> None:
    true = SwitchingLinearGaussian((scalar(0.95, 0.05), scalar(-0.7, 0.5)), [[0.97, 0.03], [0.05, 0.95]])
    z, _, y = true.simulate(3, np.random.default_rng(4), 300)
    start = SwitchingLinearGaussian((scalar(0.5, 0.2), scalar(-0.2, 0.2)), [[0.9, 0.1], [0.1, 0.9]])
    report = fit_switching(
        ConstrainedSwitchingLinearGaussian.of(start, ["transition", "process_covariance"]),
        y,
        prior="weak",
        stop=StoppingRule(60, 1e-5),
    )
    found = report.model
    assert report.trace[-1] > report.trace[0] + 50 and found.log_prob(y).sum() > true.log_prob(y).sum() - 5
    right = [np.mean(m.smooth(y).regimes.values.argmax(axis=1) == z.values) for m in (found, true)]
    assert right[0] > 0.9 and right[0] > right[1] - 0.03
    np.testing.assert_allclose([m.transition[0, 0] for m in found.regimes], [0.95, -0.7], atol=0.1)
    np.testing.assert_allclose(np.diagonal(found.transition), [0.97, 0.95], atol=0.04)


def test_what_is_not_learned_stays() -> None:
    _, y = simulated()
    learner = ConstrainedSwitchingLinearGaussian.of(two(), [["process_covariance"], []], chain=("transition",))
    after = learner.refit(learner.collect(y)).model
    assert after.regimes[1].process_covariance is two().regimes[1].process_covariance or np.array_equal(
        after.regimes[1].process_covariance, two().regimes[1].process_covariance
    )
    assert not np.array_equal(after.regimes[0].process_covariance, two().regimes[0].process_covariance)
    assert np.array_equal(after.initial, two().initial) and not np.array_equal(after.transition, two().transition)


def test_moves_that_cannot_be_stay_impossible() -> None:
    _, y = simulated()
    model = two().replace(transition=np.array([[0.9, 0.1], [0.0, 1.0]]))
    after = model.refit(model.collect(y), model.weak_prior(model.collect(y)))
    assert after.transition[1].tolist() == [0.0, 1.0]


def test_what_is_wrong_is_said() -> None:
    _, y = simulated(2, 5)
    with pytest.raises(DomainError, match="one entry per regime"):
        ConstrainedSwitchingLinearGaussian.of(two(), [["process_covariance"]] * 3)
    with pytest.raises(DomainError, match="chain must be"):
        ConstrainedSwitchingLinearGaussian.of(two(), chain="process_covariance")
    with pytest.raises(ShapeError, match="weights must be one per sequence"):
        two().collect(y, np.ones((2, 2)))
    with pytest.raises((DataError, ShapeError), match="given"):
        two().collect(y, log_mask=[[0, 1]])
    with pytest.raises(DomainError, match=r"SwitchingLinearGaussian: regimes must lie in 0 … 1.*got 2"):
        two().collect(y, log_mask=[[0] * 5, [2] * 5])

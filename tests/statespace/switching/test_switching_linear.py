"""Switching linear-Gaussian models: enumeration, IMM and GPB2 filters, smoother, simulation."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.switching.fault_alarms import fault_alarms
from likely.statespace.switching.imm_filter import IMMFilter
from likely.statespace.switching.switching_belief import SwitchingBelief
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian, stationary_or_uniform
from tests.statespace.switching.switching_models import P2, all_paths, driven, regime, two


def drawn(model: SwitchingLinearGaussian, T: int, seed: int = 0, inputs: np.ndarray | None = None) -> np.ndarray:
    given = None if inputs is None else [inputs]
    return np.array(model.sample(1, np.random.default_rng(seed), T if inputs is None else None, given)[0])


def jumps() -> SwitchingLinearGaussian:
    """A level that is calm or wild: after an outlier both ways into the wild regime count."""
    calm, wild = (
        LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[1.0]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.01, 25.0)
    )
    return SwitchingLinearGaussian((calm, wild), [[0.9, 0.1], [0.1, 0.9]])


def with_gaps() -> np.ndarray:
    y = drawn(two(), 7)
    y[3] = np.nan
    return y


# ------------------------------------------------------------------------- exact


def test_enumeration_is_the_sum_over_time_varying_models() -> None:
    y = with_gaps()
    found, wanted = two().exact(y), all_paths(two(), y)
    assert found.log_prob == pytest.approx(wanted["log_prob"], abs=1e-10)
    np.testing.assert_allclose(found.regimes, wanted["regimes"], atol=1e-10)
    np.testing.assert_allclose(found.mean, wanted["mean"], atol=1e-10)
    np.testing.assert_allclose(found.covariance, wanted["covariance"], atol=1e-10)
    np.testing.assert_allclose(found.filtered[-1], found.regimes[-1], atol=1e-12)


def test_filtered_enumeration_is_that_of_what_came_so_far() -> None:
    y = with_gaps()
    found, wanted = two().exact(y), all_paths(two(), y[:4])
    np.testing.assert_allclose(found.filtered[3], wanted["regimes"][3], atol=1e-10)
    np.testing.assert_allclose(found.filtered_mean[3], wanted["mean"][3], atol=1e-10)
    np.testing.assert_allclose(found.filtered_covariance[3], wanted["covariance"][3], atol=1e-10)


def test_enumeration_with_inputs() -> None:
    u = np.random.default_rng(1).normal(size=(6, 2))
    y = drawn(driven(), 6, 2, u)
    found, wanted = driven().exact(y, u), all_paths(driven(), y, u)
    assert found.log_prob == pytest.approx(wanted["log_prob"], abs=1e-10)
    np.testing.assert_allclose(found.regimes, wanted["regimes"], atol=1e-10)
    np.testing.assert_allclose(found.mean, wanted["mean"], atol=1e-10)


def test_best_path_is_the_likeliest() -> None:
    model = SwitchingLinearGaussian((regime(r=0.01), regime(c=9.0, r=0.01)), [[0.5, 0.5], [0.5, 0.5]])
    z, _, y = model.simulate(1, np.random.default_rng(3), 8)
    assert np.mean(model.exact(y[0]).best == z[0]) >= 7 / 8


def test_enumeration_refuses_what_is_too_long() -> None:
    with pytest.raises(DomainError, match=r"2\^30.*RaoBlackwell"):
        two().exact(np.zeros(30))
    with pytest.raises(DataError, match="one sequence"):
        two().exact([[0.0], [1.0]])


# ------------------------------------------------------------------ approximations


@pytest.mark.parametrize("method", ["imm", "gpb2"])
def test_one_regime_is_kalman(method: str) -> None:
    y = drawn(two(), 60)
    y[10:13] = np.nan
    one = SwitchingLinearGaussian((regime(),), [[1.0]])
    found, wanted = one.filter(y, method=method), regime().filter(y)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-10)
    np.testing.assert_allclose(found.covariance, wanted.covariance, atol=1e-10)
    assert found.log_prob == pytest.approx(wanted.log_prob, abs=1e-9)
    np.testing.assert_allclose(one.smooth(y).mean, regime().smooth(y).mean, atol=1e-9)


@pytest.mark.parametrize("method", ["imm", "gpb2"])
def test_regimes_that_are_the_same_are_kalman(method: str) -> None:
    y = drawn(two(), 40)
    same = SwitchingLinearGaussian((regime(),) * 3, np.full((3, 3), 1 / 3))
    found, wanted = same.filter(y, method=method), regime().filter(y)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance, wanted.covariance, atol=1e-9)
    assert found.log_prob == pytest.approx(wanted.log_prob, abs=1e-8)
    np.testing.assert_allclose(found.regimes, 1 / 3, atol=1e-9)


def test_pairs_are_exact_for_two_frames() -> None:
    y = drawn(two(), 2)
    found, wanted = two().filter(y), two().exact(y)
    np.testing.assert_allclose(found.regimes, wanted.filtered, atol=1e-12)
    np.testing.assert_allclose(found.covariance, wanted.filtered_covariance, atol=1e-12)
    assert two().log_prob([y])[0] == pytest.approx(wanted.log_prob, abs=1e-12)


def test_approximations_are_near_the_truth_and_pairs_nearer() -> None:
    off: dict[str, list[float]] = {"imm": [], "gpb2": [], "smooth": []}
    for seed in range(12):
        y = drawn(two(), 10, seed)
        wanted = two().exact(y)
        for method in ("imm", "gpb2"):
            off[method].append(float(np.abs(two().filter(y, method=method).regimes - wanted.filtered).max()))
        off["smooth"].append(float(np.abs(two().smooth(y).regimes - wanted.regimes).max()))
        assert two().log_prob([y])[0] == pytest.approx(wanted.log_prob, abs=0.1)
    assert np.mean(off["gpb2"]) < np.mean(off["imm"]) < 0.05
    assert np.mean(off["smooth"]) < 0.1


def test_what_comes_later_tells_of_jumps() -> None:
    """Where a regime lasts a frame and the next does not depend on it, only the state carries news back."""
    calm, jump = (
        LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[0.3]],
            initial_mean=[0.0],
            initial_covariance=[[4.0]],
        )
        for q in (0.0, 4.0)
    )
    model = SwitchingLinearGaussian((calm, jump), [[0.9, 0.1], [0.9, 0.1]], [1.0, 0.0])
    off, filtered = [], []
    for seed in range(12):
        y = drawn(model, 12, seed)
        wanted = model.exact(y).regimes
        off.append(np.abs(model.smooth(y).regimes - wanted).max())
        filtered.append(np.abs(model.filter(y).regimes - wanted).max())
    assert np.mean(off) < 0.1 < np.mean(filtered)


def test_a_regime_of_almost_no_weight_does_no_harm() -> None:
    """Weights near the smallest numbers once made roots infinite."""
    far = SwitchingLinearGaussian((regime(q=1e-4, r=1e-4), regime(q=1.0, r=1.0)), [[0.5, 0.5], [0.5, 0.5]])
    for size in np.linspace(0.1, 0.6, 60):
        found = far.smooth(np.array([0.0, size, 0.0, -size, 40 * size, 0.0, 0.0]))
        assert np.isfinite(found.covariance).all() and np.isfinite(found.mean).all() and np.isfinite(found.log_prob)


def test_inputs_of_a_batch_and_live_are_the_same() -> None:
    u = np.random.default_rng(1).normal(size=(30, 2))
    y = drawn(driven(), 30, 2, u)
    run, live = IMMFilter(driven()).run(y, u), IMMFilter(driven())
    belief, news = live.initial_belief(), []
    for t in range(30):
        belief, n = live.update(live.predict(belief, u[t]) if t else belief, y[t], u[t])
        news.append(n)
    np.testing.assert_allclose(run.log_evidences, news, atol=1e-12)
    np.testing.assert_allclose(run.regime_posterior[-1], belief.regimes, atol=1e-12)
    assert driven().log_prob([y], [u])[0] == pytest.approx(IMMFilter(driven(), "gpb2").run(y, u).log_evidence)


@pytest.mark.parametrize("method", ["imm", "gpb2"])
def test_following_is_running(method: str) -> None:
    y = drawn(two(), 50)
    y[7] = np.nan
    run = IMMFilter(two(), method).run(y)
    beliefs, news = zip(*lk.follow(IMMFilter(two(), method), y), strict=True)
    np.testing.assert_array_equal(run.log_evidences, news)
    np.testing.assert_allclose(run.regime_posterior, [b.regimes for b in beliefs], atol=1e-14)
    np.testing.assert_allclose(run.mean, [b.mean for b in beliefs], atol=1e-12)
    np.testing.assert_allclose(run.covariance, [b.covariance for b in beliefs], atol=1e-12)
    assert beliefs[-1].time == run.belief.time == 49


def test_the_model_itself_can_be_followed() -> None:
    y = drawn(two(), 20)
    assert sum(news for _, news in lk.follow(two(), y)) == pytest.approx(float(two().log_prob([y])[0]), abs=1e-10)


def test_many_sequences_are_each_one() -> None:
    some = two().sample(4, np.random.default_rng(0), [3, 0, 20, 7])
    found = two().smooth(some)
    assert found.regimes.lengths.tolist() == [3, 0, 20, 7]
    np.testing.assert_allclose(found.mean[2], two().smooth(np.array(some[2])).mean, atol=1e-13)
    np.testing.assert_allclose(found.log_prob[3], two().log_prob([some[3]]), atol=1e-13)
    assert found.log_prob[1] == 0.0


def test_missing_entries_of_a_frame() -> None:
    wide = [
        LinearGaussian(
            transition=[[0.9]],
            process_covariance=[[q]],
            observation=[[1.0], [2.0]],
            observation_covariance=[[1.0, 0.3], [0.3, 0.5]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.1, 4.0)
    ]
    model = SwitchingLinearGaussian(tuple(wide), P2)
    y = drawn(model, 6)
    y[2, 0] = y[4, 1] = np.nan
    wanted = all_paths(model, y)
    assert model.exact(y).log_prob == pytest.approx(wanted["log_prob"], abs=1e-10)
    assert model.log_prob([y])[0] == pytest.approx(wanted["log_prob"], abs=0.05)


def test_evidence_of_pairs_is_a_proper_density() -> None:
    """Σ over a fine grid of the third frame of p(y_0, y_1, y_2) is p(y_0, y_1), also where the filter approximates."""
    y, grid = drawn(two(), 3), np.linspace(-40, 40, 4001)
    three = [np.concatenate([y, [[g]]]) for g in grid]
    total = np.log(np.exp(two().log_prob(three)).sum() * (grid[1] - grid[0]))
    assert total == pytest.approx(float(two().log_prob([y])[0]), abs=1e-6)


def test_a_frame_that_cannot_be_is_impossible() -> None:
    still = LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.0]],
        observation=[[1.0]],
        observation_covariance=[[0.0]],
        initial_mean=[0.0],
        initial_covariance=[[0.0]],
    )
    model = SwitchingLinearGaussian((still, still), P2)
    assert model.log_prob([[0.0, 1.0]])[0] == -np.inf
    belief, news = model.update(model.predict(model.initial_belief()), 1.0)
    assert news == -np.inf and belief.mean == 0.0
    with pytest.raises(DataError, match="density 0 of sequence 1"):
        model.collect([[0.0], [0.0, 1.0]])


@pytest.mark.parametrize("far", [1e5, 1e7, 1e9, 1e12, 1e14, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("method", ["imm", "gpb2"])
def test_weights_add_up_to_one_after_an_outlier(far: float, method: str) -> None:
    """log p of such a frame is −1e14 and worse: weights less that number would have no digits."""
    y = np.array([0.0, far, 0.0, 0.0, 1.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        run = IMMFilter(jumps(), method).run(y)
        np.testing.assert_allclose(run.regime_posterior.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(jumps().smooth(y).regimes.sum(axis=1), 1.0, atol=1e-12)
        for belief, _ in lk.follow(IMMFilter(jumps(), method), y):
            assert abs(np.exp(belief.log_weights).sum() - 1.0) < 1e-12
            SwitchingBelief(belief.means, belief.roots, belief.which, belief.log_weights, 2)
    if far < 1e154:
        exact = jumps().exact(y)
        np.testing.assert_allclose(exact.regimes.sum(axis=1), 1.0, atol=1e-12)
        assert jumps().log_prob([y])[0] == pytest.approx(exact.log_prob, rel=0.3)


def test_smoothing_survives_states_beyond_the_range_of_squares() -> None:
    """An input carries the state of one regime so far that no regime foresees the blend: shares add up to one still."""
    tiny = 1e-240 * np.eye(2)
    parts = {
        "transition": np.diag([0.9, 0.8]), "process_covariance": tiny, "observation": [[1.0, 0.3]],
        "observation_covariance": [[1.0]], "initial_mean": [0.0, 0.0], "initial_covariance": tiny,
    }  # fmt: skip
    model = SwitchingLinearGaussian(tuple(LinearGaussian(**parts, control=[[s], [s]]) for s in (0.0, 1e200)), P2)
    y, u = np.array([[0.0], [0.0], [np.nan], [np.nan], [np.nan]]), np.array([[0.0], [0.0], [1.0], [0.0], [0.0]])
    found = model.smooth(y, u)
    np.testing.assert_allclose(found.regimes.sum(axis=1), 1.0, atol=1e-12)
    assert np.isfinite(found.mean).all()


def test_regimes_of_which_one_has_no_noise_are_reported() -> None:
    """−11.6 exactly, 24.3 by pairs: a probability beside densities."""
    still, walk = (
        LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[q]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.0, 1.0)
    )
    y, uneven = np.r_[np.full(5, 0.3), 0.5, np.full(5, 0.7), 1.2], SwitchingLinearGaussian((walk, still), P2)
    for use in (uneven.exact, uneven.smooth, lambda y: lk.statespace.RaoBlackwellizedFilter(uneven, 9).run(y)):
        with pytest.warns(lk.FitWarning, match=r"regime 1 predicts some observation without any error.*noise"):
            use(y)
    # noise that reaches what is seen a frame later is noise, and regimes that are all exact agree
    glide = LinearGaussian(
        transition=[[1.0, 1.0], [0.0, 1.0]],
        process_covariance=np.diag([0.0, 1.0]),
        observation=[[1.0, 0.0]],
        observation_covariance=[[0.0]],
        initial_mean=[0.0, 0.0],
        initial_covariance=np.eye(2),
    )
    rough = glide.replace(observation_covariance=np.array([[1e-8]]))
    for regimes in ((glide, rough), (still, still), (still.replace(observation=np.array([[2.0]])), still)):
        assert SwitchingLinearGaussian(regimes, P2).incomparable == ""
    sides = [
        LinearGaussian(
            transition=[[0.5]],
            process_covariance=[[0.0]],
            observation=[[1.0], [1.0]],
            observation_covariance=np.diag(r),
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for r in ([0, 1], [1, 0])
    ]
    assert "regime 0" in SwitchingLinearGaussian(tuple(sides), P2).incomparable


# ---------------------------------------------------------------------- simulation


def test_simulation_has_the_chain_and_the_moments() -> None:
    z, x, y = two().simulate(4000, np.random.default_rng(0), 3)
    first = np.stack(list(z))
    np.testing.assert_allclose(first.mean(axis=0), 1 / 3, atol=0.03)
    after = [np.mean(first[first[:, 0] == k, 1] == k) for k in (0, 1)]
    np.testing.assert_allclose(after, [0.9, 0.8], atol=0.03)
    wild = x.values.reshape(-1, 3, 2)[first[:, 1] == 1]
    np.testing.assert_allclose(wild[:, 1] - wild[:, 0] @ two().regimes[1].transition.T, 0.0, atol=6.0)
    np.testing.assert_allclose(
        np.cov((wild[:, 1] - wild[:, 0] @ two().regimes[1].transition.T).T), np.diag([1, 0.5]), atol=0.1
    )
    assert isinstance(y, Ragged) and y.values.shape == (12000, 1)


def test_starts_settle_or_are_all_alike() -> None:
    distribution = stationary_or_uniform(np.array(P2))
    np.testing.assert_allclose(distribution @ np.array(P2), distribution, atol=1e-12)
    np.testing.assert_allclose(
        stationary_or_uniform(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])), 1 / 3
    )
    np.testing.assert_allclose(stationary_or_uniform(np.array([[0.0, 1.0], [1.0, 0.0]])), 0.5)


# ------------------------------------------------------------------------- sentences


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(DomainError, match=r"proper initial distribution.*with_initial_state"):
        SwitchingLinearGaussian((LinearGaussian.local_level(1.0, 1.0),), [[1.0]])
    with pytest.raises(DomainError, match="add up to one"):
        SwitchingLinearGaussian((regime(), regime()), [[0.9, 0.2], [0.5, 0.5]])
    with pytest.raises(ShapeError, match=r"transition must have shape \(2, 2\)"):
        SwitchingLinearGaussian((regime(), regime()), [[1.0]])
    with pytest.raises(ShapeError, match="same numbers of states"):
        SwitchingLinearGaussian(
            (
                regime(),
                LinearGaussian(
                    transition=[[1.0]],
                    process_covariance=[[1.0]],
                    observation=[[1.0]],
                    observation_covariance=[[1.0]],
                    initial_mean=[0.0],
                    initial_covariance=[[1.0]],
                ),
            ),
            P2,
        )
    with pytest.raises(DomainError, match="at least one regime"):
        SwitchingLinearGaussian((), [[1.0]])
    with pytest.raises(DomainError, match="must not change with time"):
        SwitchingLinearGaussian(
            (
                LinearGaussian(
                    transition=np.ones((3, 1, 1)),
                    process_covariance=[[1.0]],
                    observation=[[1.0]],
                    observation_covariance=[[1.0]],
                    initial_mean=[0.0],
                    initial_covariance=[[1.0]],
                ),
            ),
            [[1.0]],
        )
    with pytest.raises(DomainError, match="must be a LinearGaussian"):
        SwitchingLinearGaussian(("a",), [[1.0]])
    with pytest.raises(DataError, match="2 inputs"):
        driven().update(driven().initial_belief(), 0.0)
    with pytest.raises(DataError, match=r"density 0 of sequence 0 at frame 1: replace the outlier.* NaN"):
        two().collect([[0.0, 1e300, 0.0]])
    with pytest.raises(DomainError, match="method must be one of"):
        two().filter([0.0], method="best")
    with pytest.raises(DataError, match="inf"):
        two().log_prob([[0.0, np.inf]])
    with pytest.raises(DataError, match="2 inputs"):
        driven().log_prob([[0.0]])
    with pytest.raises(DomainError, match="switching model"):
        IMMFilter(regime())
    with pytest.raises(DataError, match="add up to one"):
        SwitchingBelief([[0.0]], [[[1.0]]], [0], [0.5], 1)


def test_beliefs_draw_what_they_believe() -> None:
    b = SwitchingBelief([[0.0], [4.0]], [[[1.0]], [[2.0]]], [0, 1], np.log([0.25, 0.75]), 2)
    x = b.sample(200_000, np.random.default_rng(0))
    np.testing.assert_allclose(x.mean(axis=0), b.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(x.T), b.covariance[0, 0], rtol=0.02)


# --------------------------------------------------------------------------- alarms


def test_alarms_weigh_costs() -> None:
    p = np.array([[0.99, 0.01], [0.85, 0.15], [0.2, 0.8], [0.95, 0.05]])
    cheap = fault_alarms(p)
    assert cheap.actions.tolist() == [0, 0, 1, 0] and cheap.first == 2
    dear = fault_alarms(p, [[0, 10], [1, 0], [0.15, 0.15]])  # the third action: have a look
    assert dear.actions.tolist() == [0, 2, 2, 2]
    np.testing.assert_allclose(dear.expected_costs[1], [1.5, 0.85, 0.15])
    assert dear.raised.tolist() == [1]
    assert fault_alarms(p[:1]).first is None


def test_alarms_that_hold_do_not_flicker() -> None:
    p = np.array([0.9, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.9, 0.9])
    actions = fault_alarms(np.stack([p, 1 - p], axis=1), hold=2).actions
    assert actions.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 0]

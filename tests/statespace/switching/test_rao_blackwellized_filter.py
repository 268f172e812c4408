"""Rao–Blackwellized filter against enumeration: unbiased evidence, regimes within Monte Carlo error, restarts."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

import likely as lk
from likely.core.errors import DomainError
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.switching.rao_blackwellized_filter import RaoBlackwellizedFilter, thinned
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian
from tests.statespace.switching.switching_models import driven, regime, two

WAYS = [
    {},
    {"resample": "systematic"},
    {"resample": "multinomial", "ess_threshold": 1.0},
    {"resample": "residual"},
    {"proposal": "prior"},
    {"proposal": "prior", "resample": "stratified", "ess_threshold": 1.0},
]
SEEDS = 200


def observed(T: int = 10) -> np.ndarray:
    y = np.array(two().sample(1, np.random.default_rng(5), T)[0])
    y[4] = np.nan
    return y


@pytest.mark.slow
@pytest.mark.some_cases(2)
@pytest.mark.parametrize("way", WAYS)
def test_evidence_is_unbiased_and_regimes_are_right(way: dict[str, object]) -> None:
    """The mean of 200 estimates is tested at 1e-4 (two-sided t); regimes within five standard errors, 20 numbers."""
    y, n = observed(), 12
    exact = two().exact(y)
    runs = [RaoBlackwellizedFilter(two(), n, random_state=seed, **way).run(y) for seed in range(SEEDS)]  # type: ignore[arg-type]
    ratio = np.exp([r.log_evidence - exact.log_prob for r in runs])
    error = ratio.std(ddof=1) / np.sqrt(SEEDS)
    assert error > 0 and abs(ratio.mean() - 1.0) < student.ppf(1 - 0.5e-4, SEEDS - 1) * error
    # p(y) p(z | y) is what is estimated without bias, so regimes are averaged with the evidence up to their frame
    so_far = np.exp([np.cumsum(r.log_evidences) for r in runs])
    shares = np.array([r.regime_posterior[:, 1] for r in runs])
    mean = (so_far * shares).mean(axis=0) / so_far.mean(axis=0)
    spread = (so_far * (shares - mean)).std(axis=0, ddof=1) / np.sqrt(SEEDS) / so_far.mean(axis=0)
    assert (
        np.abs(mean - exact.filtered[:, 1]) < 5 * spread + 5e-4
    ).all()  # paths rarer than that are not met in 200 runs of 12


def test_nothing_is_lost_while_all_paths_fit() -> None:
    y = observed()
    exact, run = two().exact(y), RaoBlackwellizedFilter(two(), 2**9).run(y)
    assert run.log_evidence == pytest.approx(exact.log_prob, abs=1e-11)
    np.testing.assert_allclose(run.regime_posterior, exact.filtered, atol=1e-12)
    np.testing.assert_allclose(run.mean, exact.filtered_mean, atol=1e-12)
    np.testing.assert_allclose(run.covariance, exact.filtered_covariance, atol=1e-11)


def test_where_particles_came_from_smooths_regimes() -> None:
    y = observed()
    exact, run = two().exact(y), RaoBlackwellizedFilter(two(), 2**9).run(y, keep=True)
    np.testing.assert_allclose(run.regime_smoothed(9), exact.regimes, atol=1e-12)
    np.testing.assert_allclose(run.regime_smoothed(0), exact.filtered, atol=1e-12)
    np.testing.assert_allclose(run.regime_smoothed(2)[3], two().exact(y[:6]).regimes[3], atol=1e-12)
    with pytest.raises(DomainError, match="keep=True"):
        RaoBlackwellizedFilter(two(), 4).run(y).regime_smoothed(2)


def test_one_regime_is_kalman() -> None:
    y = observed(40)
    one, wanted = SwitchingLinearGaussian((regime(),), [[1.0]]), regime().filter(y)
    for way in WAYS:
        run = RaoBlackwellizedFilter(one, 3, **way).run(y)  # type: ignore[arg-type]
        assert run.log_evidence == pytest.approx(wanted.log_prob, abs=1e-9)
        np.testing.assert_allclose(run.covariance, wanted.covariance, atol=1e-9)


def test_inputs_count() -> None:
    u = np.random.default_rng(1).normal(size=(8, 2))
    y = np.array(driven().sample(1, np.random.default_rng(2), None, [u])[0])
    run = RaoBlackwellizedFilter(driven(), 2**7).run(y, u)
    assert run.log_evidence == pytest.approx(driven().exact(y, u).log_prob, abs=1e-11)


@pytest.mark.parametrize("way", WAYS)
def test_following_and_restarting_give_the_bits_of_a_run(way: dict[str, object]) -> None:
    y, f = observed(30), RaoBlackwellizedFilter(two(), 15, random_state=4, **way)  # type: ignore[arg-type]
    run = f.run(y)
    followed = list(lk.follow(f, y))
    np.testing.assert_array_equal(run.log_evidences, [news for _, news in followed])
    np.testing.assert_array_equal(run.regime_posterior, [b.regimes for b, _ in followed])
    again = list(lk.follow(f, y[12:], followed[11][0]))
    np.testing.assert_array_equal(run.log_evidences[12:], [news for _, news in again])
    np.testing.assert_array_equal(run.mean[-1], again[-1][0].mean)


def test_several_sequences_have_their_own_draws() -> None:
    y = observed(25)
    first, second = RaoBlackwellizedFilter(two(), 8, random_state=1).run([y, y])
    assert first.log_evidence == RaoBlackwellizedFilter(two(), 8, random_state=1).run(y).log_evidence
    assert first.log_evidence != second.log_evidence


def test_a_frame_no_path_can_explain() -> None:
    still = LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.0]],
        observation=[[1.0]],
        observation_covariance=[[0.0]],
        initial_mean=[0.0],
        initial_covariance=[[0.0]],
    )
    f = RaoBlackwellizedFilter(SwitchingLinearGaussian((still, still), [[0.5, 0.5], [0.5, 0.5]]), 5)
    with pytest.warns(UserWarning, match="all paths have likelihood 0 at frame 1"):
        run = f.run([0.0, 1.0, 0.0])
    assert run.log_evidence == -np.inf and np.isfinite(run.mean).all() and run.log_evidences[2] == 0.0


def test_impossible_moves_are_never_made() -> None:
    model = SwitchingLinearGaussian((regime(), regime(-0.5, 1.0)), [[0.9, 0.1], [0.0, 1.0]], [1.0, 0.0])
    for way in WAYS:
        run = RaoBlackwellizedFilter(model, 20, **way).run(observed(30), keep=True)  # type: ignore[arg-type]
        np.testing.assert_allclose(run.regime_posterior[0], [1.0, 0.0], atol=1e-12)
        for (which, _, _), (after, _, parents) in zip(run.history, run.history[1:], strict=False):
            assert not ((which[parents] == 1) & (after == 0)).any()


def test_thinning_keeps_weights_on_average_and_never_doubles() -> None:
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.full(40, 0.3)))
    total = np.zeros(40)
    for u in (np.arange(2000) + 0.5) / 2000:
        at, kept = thinned(logs, 10, float(u))
        assert len(at) == 10 and len(set(at.tolist())) == 10 and np.exp(kept).sum() == pytest.approx(1.0)
        total[at] += np.exp(kept)
    np.testing.assert_allclose(total / 2000, np.exp(logs), atol=1e-3)
    assert thinned(np.array([0.0, -np.inf]), 5, 0.5)[0].tolist() == [0]


def test_long_runs_stay_sound() -> None:
    y = two().sample(1, np.random.default_rng(3), 600)[0]
    run = RaoBlackwellizedFilter(two(), 60, random_state=2).run(y)
    assert np.isfinite(run.log_evidences).all() and (np.linalg.eigvalsh(run.covariance) > 0).all()
    assert run.log_evidence == pytest.approx(float(two().log_prob([y])[0]), abs=4.0)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.0, 0.02])
def test_particles_whose_weights_are_no_numbers_go_on(threshold: float) -> None:
    """Without resampling, weights of 30 paths differ by more than e^700 after some thousand frames."""
    quiet, wild = (
        LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[0.01]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (1e-4, 25.0)
    )
    sharp = SwitchingLinearGaussian((quiet, wild), [[0.9, 0.1], [0.1, 0.9]])
    y = np.array(sharp.sample(1, np.random.default_rng(0), 2000)[0])
    run = RaoBlackwellizedFilter(sharp, 30, resample="systematic", ess_threshold=threshold, random_state=1).run(y)
    assert np.isfinite(run.log_evidences).all() and np.isfinite(run.mean).all()
    assert run.log_evidence <= float(sharp.log_prob([y])[0]) + 10.0
    assert len(set(np.asarray(run.belief.particle).tolist())) == 30


def test_paths_that_cannot_be_are_left_out_and_the_others_go_on() -> None:
    """Regime 0 allows no change, so that a change leaves only the paths in regime 1."""
    still, walk = (
        LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[1e-6]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (1e-300, 1.0)
    )
    f = RaoBlackwellizedFilter(
        SwitchingLinearGaussian((still, walk), [[0.5, 0.5], [0.5, 0.5]]), 8, resample="systematic", ess_threshold=0.0
    )
    y = np.concatenate([np.zeros(5), [1e150], np.full(5, 1e150)])
    run = f.run(y)
    assert np.isfinite(run.log_evidences).all()
    np.testing.assert_allclose(run.regime_posterior.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_weights_add_up_to_one_after_an_outlier(way: dict[str, object]) -> None:
    for far in (1e7, 1e12, 1e150):
        for belief, _ in lk.follow(RaoBlackwellizedFilter(two(), 9, **way), [0.0, far, 0.0]):  # type: ignore[arg-type]
            assert abs(np.exp(belief.log_weights).sum() - 1.0) < 1e-12


def test_it_is_a_value_that_files_keep(tmp_path: Path) -> None:
    f, y = RaoBlackwellizedFilter(two(), 9, resample="residual", random_state=3), observed()
    lk.save(f, tmp_path / "f.likely")
    again = lk.load(tmp_path / "f.likely")
    assert isinstance(again, RaoBlackwellizedFilter) and again.resample == "residual" and again.n_particles == 9
    np.testing.assert_array_equal(again.run(y).regime_posterior, f.run(y).regime_posterior)
    np.testing.assert_array_equal(again.filter(y).mean, f.run(y).mean)
    assert f.log_prob(y).shape == (1,) and f.log_prob([y, y]).shape == (2,)


def test_what_is_wrong_is_said() -> None:
    for lag in (-1, 1.5, True):
        with pytest.raises(DomainError, match="lag must be an integer of at least 0"):
            RaoBlackwellizedFilter(two(), 5).run(observed(), keep=True).regime_smoothed(lag)  # type: ignore[arg-type]
    for bad, told in (
        ({"n_particles": 0}, "n_particles must be"),
        ({"n_particles": 5, "resample": "best"}, "resample must be one of 'optimal'"),
        ({"n_particles": 5, "proposal": "prior", "resample": "optimal"}, "resample must be one of 'systematic'"),
        ({"n_particles": 5, "proposal": "guided"}, "proposal must be"),
        ({"n_particles": 5, "ess_threshold": 2.0}, "ess_threshold"),
        ({"n_particles": 5, "random_state": -1}, "random_state"),
    ):
        with pytest.raises(DomainError, match=told):
            RaoBlackwellizedFilter(two(), **bad)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="inputs of 1"):
        RaoBlackwellizedFilter(driven(), 5).run([[0.0, 1.0]], [[[0.0, 0.0]] * 2, [[0.0, 0.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RaoBlackwellizedFilter(two(), 5).run(np.empty((0, 1))).log_evidence == 0.0

"""SwitchingDensity: known, hidden and partly known regimes, initialization, scikit-learn API, alarms, bad input."""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.io.model_files import dumps, loads
from likely.statespace.estimators.switching_density import SwitchingDensity, windows
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.switching.rao_blackwellized_filter import RaoBlackwellizedFilter
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian
from tests.statespace.switching.switching_models import driven, regime

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data")
STICKY = [[0.97, 0.03], [0.05, 0.95]]


def easy() -> SwitchingLinearGaussian:
    """Two regimes far apart: quiet and wild."""
    return SwitchingLinearGaussian((regime(0.9, 0.02, 0.05), regime(-0.8, 2.0, 0.05)), STICKY)


@contextmanager
def _quiet() -> Iterator[None]:
    """Few passes are enough here: nobody needs to hear that they were few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sequences(n: int = 4, T: int = 150) -> tuple[Ragged, Ragged]:
    z, _, y = easy().simulate(n, np.random.default_rng(0), T)
    return z, y


def right(found: Ragged, z: Ragged) -> float:
    return float(np.mean(found.values == z.values))


@pytest.mark.slow
def test_with_all_labels_given_it_learns_the_model() -> None:
    z, y = sequences(6)
    start = [regime(0.5, 0.5, 0.05), regime(0.0, 0.5, 0.05)]
    with _quiet():
        est = SwitchingDensity(start, learn=["transition", "process_covariance"], max_iter=30).fit(y, regimes=list(z))
    np.testing.assert_allclose([m.transition[0, 0] for m in est.model_.regimes], [0.9, -0.8], atol=0.1)
    np.testing.assert_allclose(est.model_.transition, STICKY, atol=0.03)
    assert (np.diff(est.report_.trace) > -1e-8).all()
    assert right(est.predict(y), z) > 0.95


@pytest.mark.slow
def test_regimes_that_are_the_same_are_distinguished_by_windows() -> None:
    z, y = sequences()
    with _quiet():
        est = SwitchingDensity(
            [regime(0.3, 0.3, 0.05)] * 2, learn=["transition", "process_covariance"], random_state=0
        ).fit(y)
    found = est.predict(y)
    assert max(right(found, z), 1 - right(found, z)) > 0.93


@pytest.mark.slow
def test_a_number_of_regimes_is_enough() -> None:
    """Levels and dynamics are guessed from the data; the state that carries the levels stays 1."""
    z, y = sequences()
    far = Ragged.of([1e4 + 50.0 * s for s in y])
    with _quiet():
        est = SwitchingDensity(2, random_state=0, max_iter=30).fit(far)
    found = est.predict(far)
    assert max(right(found, z), 1 - right(found, z)) > 0.9
    assert all(m.transition[-1].tolist() == [0.0, 1.0] and m.states == 2 for m in est.model_.regimes)
    assert est.score(far) > lk.LinearGaussianDensity().fit(far).score(far) + 50


@pytest.mark.slow
def test_more_sequences_are_one_step_more() -> None:
    _, y = sequences(6, 100)
    with _quiet():
        est = SwitchingDensity(easy(), learn=["process_covariance"], max_iter=3).fit(y[:3])
        before = est.score(y[3:])
        est.partial_fit(y[3:])
        stream = SwitchingDensity(2, random_state=0, max_iter=3)
        for part in (y[:2], y[2:4], y[4:]):
            stream.partial_fit(part)
    assert est.stats_.total_weight == pytest.approx(600) and est.score(y[3:]) > before - 0.5
    assert stream.is_online_ and stream.stats_.total_weight == pytest.approx(600) and np.isfinite(stream.score(y))
    with pytest.raises(ValueError, match="features"):
        stream.partial_fit(np.zeros((10, 3)))


def test_the_usual_end_of_learning_is_no_failure_to_be_mended() -> None:
    """Where the approximate evidence would fall the report says so: not converged, and no advice that cannot help."""
    _, y = sequences(3, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lk.FitWarning)
        est = SwitchingDensity(easy(), learn=["process_covariance"], max_iter=300, tol=0.0).fit(y)
    assert not est.report_.converged and est.report_.reason.startswith("the approximate evidence would fall")


@pytest.mark.slow
def test_some_labels_name_the_regimes() -> None:
    z, y = sequences()
    given = [np.where(np.arange(150) < 40, s, -1) for s in z]
    with _quiet():
        est = SwitchingDensity([regime(0.3, 0.3, 0.05)] * 2, learn=["transition", "process_covariance"]).fit(
            y, regimes=given
        )
    assert right(est.predict(y), z) > 0.93


def test_probabilities_and_paths_go_together() -> None:
    z, y = sequences()
    est = SwitchingDensity(easy(), learn=["process_covariance"], max_iter=2, tol=1e9).fit(y)
    p = est.predict_proba(y)
    np.testing.assert_allclose(p.values.sum(axis=1), 1.0, atol=1e-9)
    assert np.array_equal(p.values.argmax(axis=1), est.predict(y).values)
    one = np.array(y[0])
    assert est.predict(one).shape == (150,) and est.predict_proba(one).shape == (150, 2)
    live = est.predict_proba(one, live=True)
    np.testing.assert_allclose(live[:50], est.predict_proba(one[:50], live=True), atol=1e-12)
    np.testing.assert_allclose(live[-1], est.predict_proba(one)[-1], atol=1e-12)
    assert est.score_samples(y).shape == (4,) and est.score(y) == pytest.approx(est.score_samples(y).mean())
    followed = [b.regimes for b, _ in lk.follow(est, one)]
    np.testing.assert_allclose(followed, live, atol=1e-12)
    assert est.sample(2, 0).lengths.tolist() == [150, 150]
    assert right(est.predict(y.values, lengths=[150] * 4), z) == right(est.predict(y), z)


def test_weights_are_copies() -> None:
    _, y = sequences(3, 60)
    with _quiet():
        a = SwitchingDensity(easy(), max_iter=3).fit(y, sample_weight=[2.0, 0.0, 1.0])
        b = SwitchingDensity(easy(), max_iter=3).fit(Ragged.of([y[0], y[0], y[2]]))
    np.testing.assert_allclose(a.model_.transition, b.model_.transition, atol=1e-9)
    np.testing.assert_allclose(
        a.model_.regimes[1].process_covariance, b.model_.regimes[1].process_covariance, atol=1e-8
    )


def test_missing_values_and_inputs() -> None:
    rng = np.random.default_rng(3)
    u = [rng.normal(size=(80, 2)) for _ in range(3)]
    z, _, y = driven().simulate(3, rng, None, u)
    holes = [np.where(rng.random((80, 1)) < 0.1, np.nan, s) for s in y]
    with _quiet():
        est = SwitchingDensity(driven(), learn=["control"], max_iter=5).fit(holes, inputs=u)
    assert np.isfinite(est.score_samples(holes, inputs=u)).all()
    assert right(est.predict(holes, inputs=u), z) > 0.6


def test_alarms_come_from_what_was_seen_so_far() -> None:
    _, y = sequences()
    est = SwitchingDensity(easy(), learn=["process_covariance"], max_iter=2, tol=1e9).fit(y)
    dear = est.alarms(np.array(y[0]), [[0, 100], [1, 0]])
    plain = est.alarms(np.array(y[0]))
    assert (dear.actions >= plain.actions).all() and dear.actions.sum() > plain.actions.sum()
    with pytest.raises(ShapeError, match="one sequence"):
        est.alarms(y)
    again = loads(dumps(est))
    np.testing.assert_array_equal(again.predict_proba(y).values, est.predict_proba(y).values)


def test_manners_of_an_estimator() -> None:
    est = SwitchingDensity(easy(), learn=["process_covariance"], max_iter=3)
    same = clone(est)
    assert same.max_iter == 3 and same.get_params()["learn"] == ["process_covariance"]
    with pytest.raises(NotFittedError):
        est.predict([[0.0]])
    with _quiet():
        assert est.fit(sequences()[1]) is est
    assert est.n_features_in_ == 1 and est.n_iter_ == 3 and np.array_equal(easy().transition, est.n_regimes.transition)


def test_what_is_wrong_is_said() -> None:
    _, y = sequences(2, 20)
    with pytest.raises(ShapeError, match="1 columns"):
        SwitchingDensity(easy()).fit(np.zeros((10, 3)))
    with pytest.raises(DataError, match="observed"):
        SwitchingDensity(easy()).fit(np.full((10, 1), np.nan))
    with pytest.raises(DataError, match="None"):
        SwitchingDensity(easy()).fit(None)
    with pytest.raises(DomainError, match="diffuse"):
        SwitchingDensity([LinearGaussian.local_level(1.0, 1.0)] * 2).fit(y)
    with pytest.raises(DomainError, match=r"SwitchingDensity: regimes must lie in 0 … 1.*got 5"):
        SwitchingDensity(easy()).fit(y, regimes=[[5] * 20] * 2)
    with pytest.raises(ShapeError, match="SwitchingDensity: regimes must be given for every frame"):
        SwitchingDensity(easy()).fit(y, regimes=[[0] * 3] * 2)
    with pytest.raises(ValueError, match="at least one non-zero"):
        SwitchingDensity(easy()).fit(y, sample_weight=[0.0, 0.0])
    with pytest.raises(NotFittedError):
        SwitchingDensity(easy()).summary()
    with pytest.raises(DomainError, match="does not impute"):
        SwitchingDensity(easy()).impute(y)
    with pytest.raises(ValueError, match="max_iter"):
        SwitchingDensity(easy(), max_iter=0).fit(y)
    with pytest.raises(DataError, match="inf"):
        SwitchingDensity(easy()).fit([np.array([[0.0], [np.inf]])])


def test_windows_speak_of_their_own_sequence_only() -> None:
    both = windows(Ragged.of([np.zeros((20, 1)), np.full((20, 1), 100.0)]))
    assert both[:20, 0].max() == 0.0 and both[20:, 0].min() == 100.0
    holes = windows(Ragged.of([np.full((20, 1), np.nan)]))
    assert np.isnan(holes[:, :2]).all()


def test_the_nile_falls_in_1899() -> None:
    path = DATA / "switching" / "tcpd.json.gz"
    if not path.exists():
        pytest.skip("no data")
    with gzip.open(path) as file:
        y = np.array(json.load(file)["nile"]["series"][0]["raw"], dtype=np.float64)
    y = (y - y.mean()) / y.std()
    calm, jump = (
        LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[0.5]],
            initial_mean=[0.0],
            initial_covariance=[[4.0]],
        )
        for q in (0.0, 1.0)
    )
    model = SwitchingLinearGaussian((calm, jump), [[0.99, 0.01], [0.99, 0.01]], [1.0, 0.0])
    jumps = model.smooth(y).regimes[:, 1]
    assert jumps.argmax() == 28 and jumps[28] > 0.5 and (np.delete(jumps, 28) < 0.5).all()
    late = RaoBlackwellizedFilter(model, 200).run(y, keep=True).regime_smoothed(20)[:, 1]
    assert late.argmax() == 28 and late[28] > 0.5


@pytest.mark.slow
def test_regimes_of_few_frames_are_lifted_off_a_singular_observation():
    """By maximum likelihood a regime explains few frames exactly; rounding must not make them impossible."""
    singular = 0
    for seed in range(12):
        x = np.random.default_rng(seed).uniform(0, 20, (20, 5))
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            model = lk.SwitchingDensity(3, prior=None, max_iter=3, random_state=seed).fit([x]).model_
        singular += any("is singular, its frames are too few" in str(note.message) for note in notes)
        assert np.isfinite(model.log_prob([x])).all()
        for one in model.regimes:
            assert np.linalg.eigvalsh(one.observation_covariance).min() > 1e-11 * x.var()
    assert singular >= 3

"""LinearGaussianDensity: fits, input validation, files, online EM, use in classifiers."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import likely as lk
from likely.statespace.estimators.linear_gaussian_density import LinearGaussianDensity
from likely.statespace.linear.subspace_identification import initial_model

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data") / "timeseries"
L = lk.LinearGaussian


@pytest.fixture(scope="module")
def nile():
    path = DATA / "Nile.csv"
    if not path.exists():
        pytest.skip("no data: the series are not here")
    return np.array([float(line.split(",")[-1]) for line in path.read_text().split()[1:]])


def mover(**other):
    return L.constant_velocity(
        **{"dim": 2, "dt": 0.1, "spectral_density": 0.3, "observation_variance": 1.0, "initial": (0.0, 1.0), **other}
    )


def tracks(n=20, seed=0, model=None, gaps=0.1):
    rng = np.random.default_rng(seed)
    x = (model or mover()).sample(n, rng, rng.integers(30, 50, n))
    y = x.values.copy()
    y[rng.random(len(y)) < gaps] = np.nan
    y[rng.random(len(y)) < gaps, 0] = np.nan
    return lk.Ragged(y, x.offsets)


# ----------------------------------------------------------------- learning


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("noise, seen", [(1.0, 1.0), (1000.0, 10000.0), (1e6, 1.0), (1.0, 1e6)])
def test_the_nile_has_the_published_variances(nile, noise, seen):
    """15099 and 1469 (Durbin and Koopman 2012, 2.2.5), from wherever one begins."""
    est = LinearGaussianDensity(L.local_level(noise, seen), ["process_covariance", "observation_covariance"]).fit(nile)
    assert float(
        f"{est.model_.observation_covariance.item():.3g}"
    ) == 15100.0 and est.model_.process_covariance.item() == pytest.approx(1469, rel=5e-4)
    assert est.model_.observation_covariance.item() == pytest.approx(15099, rel=5e-4)
    assert est.report_.converged and est.n_iter_ < 150
    errors = est.standard_errors(nile)
    assert errors["observation_covariance"].item() == pytest.approx(3145.6, rel=1e-2)


@pytest.mark.usefixtures("compiled_loops")
def test_em_alone_is_there_for_who_wants_it():
    y = tracks()
    est = LinearGaussianDensity(mover(), ["observation_covariance"], accelerate=False, max_iter=7, tol=0.0)
    with pytest.warns(lk.FitWarning, match="not converged"):
        est.fit(y)
    want = lk.fit(
        lk.statespace.ConstrainedLinearGaussian.of(mover(), ["observation_covariance"]), y, stop=lk.StoppingRule(7, 0.0)
    ).model.model
    np.testing.assert_allclose(est.model_.observation_covariance, want.observation_covariance, rtol=1e-10)


def test_tracks_with_a_silent_sensor_are_learned_and_followed():
    y = tracks()
    start = mover(spectral_density=3.0, observation_variance=0.1)
    est = LinearGaussianDensity(
        start, ["process_covariance", "observation_covariance"], form={"process_covariance": "scale"}
    ).fit(y)
    assert est.report_.converged and (np.diff(est.report_.trace) >= -1e-8).all()
    errors = est.standard_errors(y)
    for name in ("process_covariance", "observation_covariance"):
        off = getattr(est.model_, name) - getattr(mover(), name)
        assert (np.abs(off) <= 4 * errors[name] + 1e-12).all()
    news = [logp for _, logp in lk.follow(est.model_, y[0])]
    assert sum(news) == pytest.approx(est.score_samples(y)[0], rel=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_a_full_covariance_that_collapses_is_held_by_a_weak_prior():
    y = tracks()
    est = LinearGaussianDensity(
        mover(spectral_density=0.3, observation_variance=1.0), ["process_covariance", "observation_covariance"]
    )
    with pytest.warns(lk.FitWarning, match="tends to a singular one"):
        est.fit(y)
    assert est.report_.converged and np.linalg.eigvalsh(est.model_.process_covariance).min() > 1e-6
    with warnings.catch_warnings(record=True):  # "not converged" or not: that hangs on rounding
        alone = clone(est).set_params(prior=None).fit(y).model_
    assert np.linalg.eigvalsh(alone.process_covariance).min() < 1e-8


def test_sensors_that_agree_closely_are_no_collapse():
    """Two sensors that differ by 1e-4: 1500 frames determine that; the weak prior made it 30 times as wide."""
    rng = np.random.default_rng(0)
    level = np.cumsum(rng.normal(size=1500))
    y = np.column_stack([level, level + 1e-4 * rng.normal(size=1500)]) + 0.5 * rng.normal(size=(1500, 1))
    start = lk.LinearGaussian(
        transition=np.eye(1),
        process_covariance=np.eye(1),
        observation=np.ones((2, 1)),
        observation_covariance=np.eye(2),
        initial_mean=np.zeros(1),
        initial_covariance=9 * np.eye(1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = (
            LinearGaussianDensity(start, ["process_covariance", "observation_covariance"])
            .fit([y])
            .model_.observation_covariance
        )
    apart = np.sqrt(found[0, 0] + found[1, 1] - 2 * found[0, 1])
    assert apart == pytest.approx(1e-4, rel=0.1)


def short_and_silent(n=8):
    """Tracks, one of a single frame, one in which nothing was seen, one in which one sensor was silent."""
    y = list(tracks(n))
    silent = np.column_stack([np.full(12, np.nan), np.linspace(0.0, 1.0, 12)])
    return [y[0][:1], *y[:4], np.full((5, 2), np.nan), *y[4:], silent]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not converged")
@pytest.mark.parametrize("accelerate", [True, False])
def test_tracks_that_say_too_little_of_their_start_are_left_out_with_a_note(accelerate):
    good, both = tracks(8), short_and_silent()
    start = mover(spectral_density=3.0, initial=None)
    est = LinearGaussianDensity(
        start,
        ["process_covariance", "observation_covariance"],
        form={"process_covariance": "scale"},
        accelerate=accelerate,
        max_iter=100,
    )
    with pytest.warns(lk.FitWarning, match="3 of 11 sequences do not determine the diffuse initial state") as told:
        some = clone(est).fit(both, sample_weight=np.arange(1.0, 12.0))
    assert sum("diffuse initial state" in str(w.message) for w in told) == 1
    want = clone(est).fit(good, sample_weight=[2.0, 3, 4, 5, 7, 8, 9, 10])
    assert (
        np.array_equal(some.model_.process_covariance, want.model_.process_covariance)
        and some.report_.trace == want.report_.trace
    )
    assert np.isfinite(some.score_samples(both)).all()
    if accelerate:
        with pytest.warns(lk.FitWarning, match="are left out"):
            errors = some.standard_errors(both, sample_weight=np.arange(1.0, 12.0))
        alone = want.standard_errors(good, [2, 3, 4, 5, 7, 8, 9, 10])
        np.testing.assert_allclose(errors["observation_covariance"], alone["observation_covariance"], rtol=1e-6)
    with pytest.warns(lk.FitWarning, match="left out"):
        assert some.partial_fit(both).stats_.total_weight == want.partial_fit(good).stats_.total_weight
    with pytest.raises(lk.DataError, match="must be determined by at least one sequence"):
        clone(est).fit([both[0], both[5], both[10]])


@pytest.mark.usefixtures("compiled_loops")
def test_passes_alone_leave_them_out_too():
    both = lk.Ragged.from_list(short_and_silent())
    start = lk.statespace.ConstrainedLinearGaussian.of(mover(initial=None), ["observation_covariance"])
    with pytest.warns(lk.FitWarning, match="3 of 11") as told:
        some = lk.fit(start, both, stop=lk.StoppingRule(5, 0.0))
    assert len(told) == 1
    assert some.trace == pytest.approx(lk.fit(start, tracks(8), stop=lk.StoppingRule(5, 0.0)).trace, rel=1e-12)


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("noise, seen", [(1e-6, 15000.0), (1e6, 1e-6), (1e-30, 1.0)])
def test_a_variance_near_0_is_no_trap(nile, noise, seen):
    est = LinearGaussianDensity(L.local_level(noise, seen), ["process_covariance", "observation_covariance"]).fit(nile)
    assert est.report_.converged and est.model_.log_prob(nile)[0] == pytest.approx(-633.46456, abs=1e-4)
    assert (np.diff(est.report_.trace) >= -1e-12 * abs(est.report_.trace[-1])).all()
    with pytest.warns(lk.FitWarning, match="not converged"):
        LinearGaussianDensity(
            L.local_level(noise, seen), ["process_covariance", "observation_covariance"], accelerate=False
        ).fit(nile)


def test_a_weight_is_so_many_copies():
    y = tracks(6)
    times = [2, 1, 0, 3, 1, 1]
    copies = [y[i] for i, k in enumerate(times) for _ in range(k)]
    est = LinearGaussianDensity(
        mover(), ["process_covariance", "observation_covariance"], form={"process_covariance": "scale"}
    )
    one = clone(est).fit(list(y), sample_weight=times)
    other = clone(est).fit(copies)
    np.testing.assert_allclose(one.model_.observation_covariance, other.model_.observation_covariance, rtol=1e-6)
    np.testing.assert_allclose(one.model_.process_covariance, other.model_.process_covariance, rtol=1e-6, atol=1e-15)


@pytest.mark.slow
def test_inputs_are_learned_from():
    rng = np.random.default_rng(2)
    true = L(
        transition=[[0.8]],
        process_covariance=[[0.2]],
        observation=[[1.0]],
        observation_covariance=[[0.1]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        control=[[2.0]],
        feedthrough=[[-1.0]],
    )
    u = [rng.normal(size=(60, 1)) for _ in range(8)]
    y = true.sample(8, rng, inputs=lk.Ragged.from_list(u))
    start = L(
        transition=[[0.8]],
        process_covariance=[[0.2]],
        observation=[[1.0]],
        observation_covariance=[[0.1]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        control=[[0.0]],
        feedthrough=[[0.0]],
    )
    est = LinearGaussianDensity(start, ["control", "feedthrough"]).fit(list(y), inputs=u)
    errors = est.standard_errors(list(y), inputs=u)
    assert abs(est.model_.control.item() - 2.0) < 4 * errors["control"].item()
    assert abs(est.model_.feedthrough.item() + 1.0) < 4 * errors["feedthrough"].item()
    signal = est.predict(y[0], inputs=u[0])
    assert signal.shape == (60, 1) and np.std(signal - y[0]) < 0.6
    assert est.forecast(y[0], 2, inputs=u[0], future=[[0.0], [0.0]]).mean.shape[0] == 2
    assert est.score_samples(np.concatenate(list(y)), np.concatenate(u), lengths=[60] * 8).shape == (8,)
    with pytest.raises(lk.DataError, match="1 inputs"):
        est.score_samples(list(y))
    free = LinearGaussianDensity(n_states=1).fit(list(y), inputs=u)
    assert free.model_.n_inputs == 1 and free.score(list(y), inputs=u) > est.score(list(y), inputs=u) - 5


# ----------------------------------------------------------------- from nothing


@pytest.mark.slow
def test_without_a_model_one_is_found():
    """Two states make a wave about a level; three would too."""
    rng = np.random.default_rng(0)
    t = np.arange(300)
    y = 50.0 + 3 * np.sin(t / 4.0)[:, None] * [1.0, -0.5] + 0.1 * rng.normal(size=(300, 2))
    est = LinearGaussianDensity(n_states=2).fit(y)
    assert est.model_.states == 3
    ahead = est.forecast(y, 20)
    truth = 50.0 + 3 * np.sin((300 + np.arange(20)) / 4.0)[:, None] * [1.0, -0.5]
    assert np.abs(ahead.mean - truth).max() < 0.6
    assert (est.predict(y) - y).std() < 0.15
    assert (est.model_.transition[2] == [0.0, 0.0, 1.0]).all() and est.model_.process_covariance[2].tolist() == [
        0.0,
        0.0,
        0.0,
    ]


def test_a_first_guess_does_not_depend_on_units():
    y = tracks(4)
    a = initial_model(y, 3)
    b = initial_model(lk.Ragged(y.values * [1e-6, 1e6] + [0.0, 1e3], y.offsets), 3)
    np.testing.assert_allclose(a.transition, b.transition, atol=1e-6)
    np.testing.assert_allclose(a.observation[:, :3] * [[1e-6], [1e6]], b.observation[:, :3], rtol=1e-5, atol=1e-12)


@pytest.mark.slow
def test_a_column_that_never_changes_and_one_frame_are_learned_from():
    rng = np.random.default_rng(0)
    y = np.column_stack([np.full(50, 7.0), rng.normal(size=50)])
    est = LinearGaussianDensity().fit(y)
    assert np.isfinite(est.score(y)) and est.model_.observation_covariance[0, 0] > 0
    one = LinearGaussianDensity(n_states=2).fit(y[:1])
    assert np.isfinite(one.score(y[:1]))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_a_column_that_never_changes_is_named_where_a_model_is_given():
    rng = np.random.default_rng(0)
    y = pd.DataFrame({"valve": np.full(50, 7.0), "flow": rng.normal(size=50)})
    form = {"process_covariance": "diagonal", "observation_covariance": "diagonal"}
    est = LinearGaussianDensity(
        L.local_level(1.0, 1.0, dim=2), ["process_covariance", "observation_covariance"], form=form
    )
    with warnings.catch_warnings(record=True) as told:  # which variance underflows first hangs on rounding
        warnings.simplefilter("always")
        try:
            said = [] if est.fit(y).report_.converged else [str(w.message) for w in told]
        except lk.DomainError as error:
            said = [str(error)]
    assert any(re.search(r"column 'valve' is the same in all frames.*weak", text) for text in said)
    with pytest.warns(lk.FitWarning, match="column 'valve' is the same in all frames"):
        clone(est).set_params(form=None).fit(y)
    assert clone(est).set_params(prior="weak").fit(y).report_.converged


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e4, 1e7, 1e8])
def test_a_walk_far_from_0_is_learned_as_near_it(offset):
    y = np.cumsum(np.random.default_rng(0).normal(size=(200, 2)), axis=0)
    near, far = LinearGaussianDensity(n_states=2).fit(y), LinearGaussianDensity(n_states=2).fit(y + offset)
    assert far.score(y + offset) == pytest.approx(near.score(y), abs=1e-4)
    assert far.report_.converged and (np.diff(far.report_.trace) >= -1e-9).all()


def test_two_columns_that_are_one_are_learned_from():
    y = np.cumsum(np.random.default_rng(0).normal(size=200))
    est = LinearGaussianDensity(n_states=2).fit(np.column_stack([y, y]))
    assert np.abs(np.linalg.eigvals(est.model_.transition)).max() < 1.1 and est.report_.converged


# ----------------------------------------------------------------- streams, files


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_more_tracks_add():
    y = tracks(12)
    est = LinearGaussianDensity(
        mover(), ["process_covariance", "observation_covariance"], form={"process_covariance": "scale"}
    )
    whole = clone(est).fit(y)
    parts = clone(est).fit(y[:6])
    before = parts.stats_.total_weight
    parts.partial_fit(y[6:])
    assert parts.stats_.total_weight == pytest.approx(whole.stats_.total_weight) and before < parts.stats_.total_weight
    apart = np.abs(parts.model_.observation_covariance - whole.model_.observation_covariance).max()
    assert (
        apart
        < np.abs(clone(est).fit(y[:6]).model_.observation_covariance - whole.model_.observation_covariance).max() + 0.1
    )
    stream = clone(est)
    for i in range(12):
        stream.partial_fit(y[i : i + 1])
    assert stream.score(y) > est.set_params(max_iter=1).fit(y).score(y) - 5 and "stream" in str(stream.report_)


def test_a_fit_cut_off_goes_on(tmp_path):
    y = tracks(5)
    est = LinearGaussianDensity(mover(), ["observation_covariance"], max_iter=60)
    whole = clone(est).fit(y, checkpoint=tmp_path / "a.likely")
    again = clone(est).fit(y, checkpoint=tmp_path / "a.likely")
    assert np.array_equal(whole.model_.observation_covariance, again.model_.observation_covariance)


@pytest.mark.slow
def test_files_bring_the_same_bits_back(tmp_path):
    y = tracks(5)
    for est in (
        LinearGaussianDensity(mover(), ["process_covariance"], form={"process_covariance": "scale"}),
        LinearGaussianDensity(n_states=2),
    ):
        est.fit(y)
        est.save(tmp_path / "m.likely")
        back = lk.load(tmp_path / "m.likely")
        assert np.array_equal(back.score_samples(y), est.score_samples(y))
        back.partial_fit(y)
        est.partial_fit(y)
        assert np.array_equal(back.model_.process_covariance, est.model_.process_covariance)


# ----------------------------------------------------------------- border


@pytest.mark.usefixtures("compiled_loops")
def test_sequences_in_all_their_forms_are_the_same():
    y = tracks(3, gaps=0.0)
    est = LinearGaussianDensity(mover(), ["observation_covariance"]).fit(y)
    want = est.score_samples(y)
    assert np.array_equal(est.score_samples(list(y)), want)
    assert np.array_equal(est.score_samples(y.values, lengths=y.lengths), want)
    frame = pd.DataFrame(y[0], columns=["east", "north"])
    named = clone(est).fit(frame)
    assert named.feature_names_in_.tolist() == ["east", "north"]
    assert named.score_samples(frame) == pytest.approx(named.score_samples(y[0]), nan_ok=False)
    single = est.score_samples(y[0].astype(np.float32))
    assert single.dtype == np.float32 and single == pytest.approx(want[:1], rel=1e-4)
    assert est.predict(y[0].astype(np.float32)).dtype == np.float32
    assert isinstance(est.predict(y), lk.Ragged) and est.smooth(y[0]).mean.shape == (len(y[0]), 4)
    assert est.filter(y).mean[1].shape == (y.lengths[1], 4)


def test_missing_values_are_filled_and_what_was_seen_stays():
    y = tracks(3)
    est = LinearGaussianDensity(mover(), ["observation_covariance"]).fit(y)
    full = est.impute(y)
    there = ~np.isnan(y.values)
    assert np.isfinite(full.values).all() and np.array_equal(full.values[there], y.values[there])
    drawn = est.impute(list(y), random_state=1)
    assert isinstance(drawn, list) and np.isfinite(np.concatenate(drawn)).all()
    signal = est.predict(y)
    both = ~there.any(axis=1)
    np.testing.assert_allclose(full.values[both], signal.values[both], rtol=1e-9)


@pytest.mark.parametrize(
    "x, words",
    [
        (None, "sequences of frames are needed"),
        ([], "at least one sequence is needed"),
        (np.zeros((0, 2)), "at least one frame is needed"),
        (np.full((5, 2), np.nan), "at least one entry"),
        ([[[1.0, np.inf]], [[0.0, 0.0]]], "sequence 0, frame 0"),
        (np.zeros((5, 3)), "needs frames of 2 columns"),
        (np.array([["a", "b"]]), "must be numbers"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_words(x, words):
    with pytest.raises(lk.LikelyError, match=words):
        LinearGaussianDensity(mover()).fit(x)


def test_settings_that_do_not_fit_are_refused_in_words():
    y = tracks(2)
    with pytest.raises(lk.DomainError, match="learn must be names"):
        LinearGaussianDensity(mover(), ["speed"]).fit(y)
    with pytest.raises(lk.DomainError, match="form of process_covariance"):
        LinearGaussianDensity(mover(), ["process_covariance"], form={"process_covariance": "round"}).fit(y)
    with pytest.raises(ValueError, match="states"):
        LinearGaussianDensity(n_states=0).fit(y)


@pytest.mark.slow
def test_a_summary_says_what_was_learned():
    est = LinearGaussianDensity(mover(), ["observation_covariance"]).fit(tracks(3))
    told = str(est.summary())
    assert "observation_covariance[0, 0]" in told and "parameters      3" in told and "standard_errors" in told
    assert "rotated and scaled" not in told
    free = str(LinearGaussianDensity(n_states=2).fit(tracks(3)).summary())
    assert "parameters      21" in free and "rotated and scaled" in free  # 4 + 6 + 3 + 3 + 2 + 3


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_it_is_chosen_by_cross_validation():
    y = list(tracks(12))
    search = GridSearchCV(LinearGaussianDensity(prior="weak"), {"n_states": [1, 2]}, cv=3).fit(y)
    assert search.best_params_["n_states"] == 2
    assert np.isfinite(
        cross_val_score(LinearGaussianDensity(mover(), ["observation_covariance"]), tracks(12), cv=3)
    ).all()


# ----------------------------------------------------------------- as a class density


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize(
    "density",
    [
        LinearGaussianDensity(
            mover(), ["process_covariance", "observation_covariance"], form={"process_covariance": "scale"}
        ),
        pytest.param(LinearGaussianDensity(n_states=2), marks=pytest.mark.slow),
    ],
    ids=["a model", "from nothing"],
)
def test_two_kinds_of_movers_are_distinguished(density):
    steady, drunk = (
        mover(spectral_density=3.0),
        L.local_level(level_variance=0.5, observation_variance=1.0, dim=2, initial=(0.0, 1.0)),
    )
    X = [*tracks(25, 0, steady), *tracks(25, 1, drunk)]
    y = np.repeat(["steady", "drunk"], 25)
    clf = lk.BayesClassifier(density).fit(X, y)
    new = [*tracks(40, 2, steady), *tracks(40, 3, drunk)]
    assert clf.score(new, np.repeat(["steady", "drunk"], 40)) > 0.8
    if density.model is not None:  # without a prior the classes are learned as if alone
        apart = [clone(density).fit([x for x, c in zip(X, y, strict=True) if c == k]) for k in clf.classes_]
        scores = np.stack([a.score_samples(new) for a in apart], axis=1)
        assert (scores.argmax(axis=1) == (clf.predict(new) == clf.classes_[1])).mean() > 0.99
    clf.partial_fit(X, y)
    assert clf.decide(new[:2], novelty=0.01).shape == (2,)
    assert clf.sample(3, 0, length=7)[0].lengths.tolist() == [7, 7, 7]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_a_label_that_is_missing_is_hidden():
    steady, drunk = (
        mover(spectral_density=3.0),
        L.local_level(level_variance=0.5, observation_variance=1.0, dim=2, initial=(0.0, 1.0)),
    )
    X = [*tracks(15, 0, steady), *tracks(15, 1, drunk)]
    density = LinearGaussianDensity(
        mover(), ["process_covariance", "observation_covariance"], form={"process_covariance": "scale"}, max_iter=20
    )
    clf = lk.BayesClassifier(density).fit(X, [*["steady"] * 15, *["drunk"] * 10, *[None] * 5])
    assert (clf.predict(X[-5:]) == "drunk").mean() >= 0.6 and clf.class_count_.sum() == pytest.approx(30)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("kind", [lk.MixtureDensity, lk.MixtureClusterer])
def test_mixtures_of_linear_models_tell_quiet_from_wild(kind):
    """They failed for a list, a Ragged and an array alike, for nobody knew how to begin with sequences of vectors."""
    rng = np.random.default_rng(0)
    quiet, wild = (lk.LinearGaussian.local_level(q, 0.1) for q in (0.01, 2.0))
    x = [*quiet.sample(8, rng, length=30), *wild.sample(8, rng, length=30)]
    part = LinearGaussianDensity(
        lk.LinearGaussian.local_level(0.3, 0.3), ["process_covariance", "observation_covariance"]
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not converged")
        forms = (x, lk.Ragged.from_list(x), np.stack(x))
        m, *others = (kind(part, 2, random_state=0, max_iter=5).fit(data) for data in forms)
    labels = m.model_.posterior(x).argmax(axis=1)
    assert sorted({tuple(labels[:8]), tuple(labels[8:])}) == [(0,) * 8, (1,) * 8]
    noises = sorted(float(p.process_covariance.item()) for p in m.model_.components.components)
    assert noises[0] < 0.1 and 1.0 < noises[1] < 4.0
    assert all(other.score_samples(x).tobytes() == m.score_samples(x).tobytes() for other in others)

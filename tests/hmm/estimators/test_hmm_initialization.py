"""Initialization of HMMs: ordered topologies begin in order, with null states too, and a given model is respected."""

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError

MEANS = (6.0, 0.0, 3.0)


def steps(n=30, length=8, seed=0):
    rng = np.random.default_rng(seed)
    return [np.concatenate([rng.normal(m, 1.0, (length, 1)) for m in MEANS]) for _ in range(n)]


def with_entry_and_exit():
    """Left to right through three states, entered and left through null states."""
    initial, transition, final = np.zeros(5, bool), np.zeros((5, 5), bool), np.zeros(5, bool)
    initial[3], final[4], transition[3, 0] = True, True, True
    for k in range(3):
        transition[k, k] = transition[k, k + 1 if k < 2 else 4] = True
    return lk.hmm.Topology(initial, transition, final, np.arange(3))


def learned(x, **settings):
    return lk.HMMDensity(lk.GaussianDensity(), 3, **{"topology": "left-to-right", **settings}).fit(x)


def test_null_states_at_both_ends_change_nothing():
    x = steps()
    plain, nulls = learned(x), learned(x, topology=with_entry_and_exit())
    assert nulls.score(x) == pytest.approx(plain.score(x), abs=1e-9)


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("settings", [{"durations": 15}, {"emit": "transitions"}, {"order": 2}], ids=str)
@pytest.mark.parametrize("start", ["auto", "segments"])
def test_expansions_of_ordered_chains_begin_in_order(settings, start):
    x = steps()
    h = learned(x, init=start, **settings)
    truth = np.repeat(np.arange(3), 8)
    assert np.mean([(h.predict(s) == truth).mean() for s in x]) > 0.95
    assert h.score(x) > learned(x).score(x) - 0.5


def two(covariance=((1.0,),)):
    return lk.HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], lk.Gaussian([[0.0], [3.0]], [covariance, covariance]))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"topology": np.array([[1, 1], [0, 1]])}, r"respect the topology, got transition at \(1, 0\)"),
        ({"tie": [0, 0]}, "tie its states as requested"),
        ({"component": lk.MixtureDensity(lk.GaussianDensity(), 3)}, "emissions as the component fits them"),
        ({"component": lk.GaussianDensity("diagonal")}, "diagonal Gaussian"),
    ],
)
def test_a_start_must_be_what_was_asked_for(settings, told):
    component = settings.pop("component", lk.GaussianDensity())
    with pytest.raises(DomainError, match=told):
        lk.HMMDensity(component, 2, init=two(), **settings).fit(steps())


def test_a_start_that_fits_is_taken():
    assert lk.HMMDensity(lk.GaussianDensity(), 2, init=two(), max_iter=1, tol=0).fit(steps()).report_.iterations == 1


@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"durations": 10}, {"emit": "transitions"}], ids=str)
def test_known_states_teach_every_expansion(settings):
    x = steps()
    given = [np.repeat(np.arange(3), 8) for _ in x]
    h = lk.HMMDensity(lk.GaussianDensity(), 3, **settings).fit(x, states=given)
    assert (h.predict(x[0]) == given[0]).all()


def test_known_states_are_cut_as_the_frames_are_and_missing_values_are_unknown():
    x = steps(4)
    flat, states = np.concatenate(x), np.tile(np.repeat([0.0, 1.0, np.nan], 8), 4)
    h = lk.HMMDensity(lk.GaussianDensity(), 3, random_state=0).fit(flat, lengths=[24] * 4, states=states)
    whole = lk.HMMDensity(lk.GaussianDensity(), 3, random_state=0).fit(x, states=[np.repeat([0, 1, -1], 8)] * 4)
    assert h.score(x) == whole.score(x)
    with pytest.raises(DataError, match="SequenceDensity takes names"):
        lk.HMMDensity(n_states=3).fit(x, states=[["a"] * 24] * 4)


def test_a_prior_below_one_is_refused():
    with pytest.raises(ValueError, match="prior"):
        lk.HMMDensity(n_states=2, prior=0.5).fit(steps())
    with pytest.raises(DomainError, match="at least 1"):
        lk.priors.HMMPrior([0.5, 1.0], np.ones((2, 2)), None, None)


# --------------------------------------------------------------------- in use


def live():
    return lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))


def test_a_step_takes_one_frame_and_a_belief_of_its_own():
    with pytest.raises(ShapeError, match="one frame of 1 columns"):
        lk.step(live(), None, [0.0, 5.0, 5.0])
    for belief in (np.ones(2), lk.Categorical([1.0])):
        with pytest.raises(DomainError, match="over 2 states"):
            lk.step(live(), belief, 0.0)
    with pytest.raises(DataError, match="be fitted before it can be followed"):
        lk.step(lk.GaussianDensity(), None, 0.0)


def test_a_fitted_estimator_is_followed_as_its_model():
    h = learned(steps(), topology="ergodic")
    assert lk.step(h, None, [1.0])[1] == lk.step(h.model_, None, [1.0])[1]


def test_a_forecast_from_a_belief_is_that_from_its_sequence():
    x, belief = np.array([0.1, 4.0, 5.2]), None
    for frame in x:
        belief, _ = lk.step(live(), belief, frame)
    np.testing.assert_allclose(live().forecast(belief, 4).states, live().forecast(x, 4).states, rtol=1e-12)


def test_what_no_path_explains_has_no_states():
    h = learned(steps())
    assert h.predict([steps(1)[0][:2]])[0].tolist() == [-1, -1]
    assert np.isneginf(h.score_samples([steps(1)[0][:2]])).all()
    with pytest.raises(DataError, match="at least 3 frames"):
        h.partial_fit([np.zeros((1, 1))])


def test_a_lag_beyond_the_end_is_the_smoother():
    x = np.array([0.0, 1.0, 5.0, 4.0, 0.0])
    np.testing.assert_allclose(live().posterior(x, lag=10**9), live().posterior(x), atol=1e-12)


def test_sequences_without_frames_can_be_asked_about():
    h = learned(steps(), topology="ergodic")
    assert h.score_samples([np.empty((0, 1))]).tolist() == [0.0]
    assert len(h.predict([np.empty((0, 1))])[0]) == 0


def test_a_wrong_width_names_the_estimator_of_sequences():
    with pytest.raises(ValueError, match="but HMMDensity is expecting 1 features"):
        learned(steps()).score_samples([np.zeros((5, 3))])


def test_mixtures_of_chains_find_kinds_of_sequences_and_draw_some():
    forward, back = steps(12, seed=1), [s[::-1] for s in steps(12, seed=2)]
    m = lk.MixtureDensity(lk.HMMDensity(lk.GaussianDensity(), 3, topology="left-to-right"), 2, random_state=0)
    m.fit(forward + back)
    own = m.model_.posterior(lk.Ragged.from_list(forward + back)).argmax(axis=1)
    assert len(set(own[:12])) == len(set(own[12:])) == 1
    assert own[0] != own[-1]
    assert len(m.sample(3, 0)) == 3
    assert m.sample(3, 0, length=9).lengths.tolist() == [9, 9, 9]


def test_one_array_is_one_sequence_with_one_label():
    with pytest.raises(DataError, match="list of arrays"):
        lk.BayesClassifier(lk.HMMDensity()).fit(np.zeros((10, 2)), np.arange(10) % 2)


@pytest.mark.parametrize(
    "how",
    [
        {"topology": "ergodic"}, {"topology": "ergodic", "init": "random"}, {"init": "segments", "n_init": 2},
        {"component": lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2)},
    ],
    ids=str,
)  # fmt: skip
def test_names_and_order_of_classes_do_not_matter(how):
    rng = np.random.default_rng(0)
    x, y = [rng.normal(k % 3, 1.0, (20, 2)).cumsum(axis=0) * 0.1 for k in range(18)], np.arange(18) % 3
    other = np.array([1, 2, 0])
    density = lk.HMMDensity(n_states=2, random_state=0, max_iter=5, **how)
    with pytest.warns(lk.FitWarning):
        a = lk.BayesClassifier(density).fit(x, y).predict_proba(x)
        b = lk.BayesClassifier(density).fit(x, other[y]).predict_proba(x)
    np.testing.assert_allclose(b[:, other], a, atol=1e-8)

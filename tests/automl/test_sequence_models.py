"""Models of sequences that know their columns: they take them by name, in any order, and come back from files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely as lk
from likely.automl.choose_states import choose_states
from likely.automl.sequence_candidates import chain, chain_candidates, emission
from likely.automl.sequence_models import SequenceClassifier, SequenceDensity, kinds_found, laid_out
from likely.core.errors import DataError, DomainError


@pytest.fixture
def mixed(rng):
    words = rng.choice(["a", "b"], 60).astype(object)
    words[3] = None
    frames = lk.core.Columns(x=rng.normal(size=60), n=rng.poisson(3.0, 60).astype(float), w=words)
    return lk.Ragged.of(frames, [20, 25, 15])


def test_kinds_are_found_and_columns_laid_out(mixed):
    kinds = kinds_found(mixed, ())
    assert kinds == {"x": "real", "n": "real", "w": "category"}
    two = laid_out(mixed, (), {"n": "real", "x": "real"})
    np.testing.assert_array_equal(two.values[:, 1], mixed.values["x"])
    assert laid_out(mixed, (), {"w": "category"}).values[3] is None
    assert laid_out(mixed, (), {"n": "category"}).values[0] == str(int(mixed.values["n"][0]))


def test_missing_columns_and_words_for_numbers_are_reported(mixed):
    with pytest.raises(DataError, match='there must be a column "z"'):
        laid_out(mixed, (), {"z": "real"})
    with pytest.raises(DataError, match='column "w": numbers are needed, got words such as'):
        laid_out(mixed, (), {"w": "real"})
    with pytest.raises(DataError, match="frames must have 2 columns"):
        laid_out(lk.Ragged.from_list([np.zeros((3, 3))]), ["a", "b"], {"a": "real"})


def test_emissions_suit_the_columns():
    assert emission({"x": "real"}).covariance == "full"
    assert emission(dict.fromkeys("abcde", "real")).covariance == "diagonal"
    assert type(emission({"n": "count", "m": "count"})).__name__ == "PoissonDensity"
    parts = emission({"x": "real", "n": "count", "w": "category"}).components
    assert [type(p[1]).__name__ for p in parts] == ["GaussianDensity", "PoissonDensity", "CategoricalDensity"]
    assert emission({"x": "real"}, 3).n_components == 3
    with pytest.raises(DomainError, match="one column of words"):
        emission({"w": "category"}, 3)
    candidates = chain_candidates({"x": "real"}, (1, 2), {"reject_cost": 0.1}, {"topology": "cyclic"})
    assert [r.key for r in candidates] == ["prior", "hmm-1", "hmm-2"]
    assert candidates[2].estimator.density.topology == "cyclic" and candidates[2].estimator.reject_cost == 0.1


@pytest.mark.slow
def test_a_density_takes_columns_by_name_and_unseen_words_as_missing(mixed):
    kinds = {"x": "real", "w": "category"}
    inner = chain(kinds, 2, random_state=0).fit(laid_out(mixed, (), kinds))
    d = SequenceDensity.from_fitted(inner, kinds, states=["p", "q"])
    np.testing.assert_allclose(d.score_samples(mixed), inner.score_samples(laid_out(mixed, (), kinds)))
    turned = lk.Ragged.of(lk.core.Columns(w=mixed.values["w"], x=mixed.values["x"]), mixed.lengths)
    np.testing.assert_array_equal(d.predict(turned).values, d.predict(mixed).values)
    strange = mixed.values["w"].copy()
    strange[:20] = "never"
    gone = strange.copy()
    gone[:20] = None
    a, b = (lk.Ragged.of(lk.core.Columns(x=mixed.values["x"], w=w), mixed.lengths) for w in (strange, gone))
    np.testing.assert_allclose(d.score_samples(a), d.score_samples(b))
    assert d.known(a)[1].tolist() == [True, False, False]
    np.testing.assert_allclose(d.predict_proba(mixed).values.sum(axis=1), 1.0)


def test_they_come_back_from_files(mixed, tmp_path):
    x = laid_out(mixed, (), {"x": "real"})
    d = SequenceDensity(lk.HMMDensity(n_states=2, random_state=0)).fit(x)
    d.card_ = '{"made": "by hand"}'
    d.save(tmp_path / "d.likely")
    again = lk.load(tmp_path / "d.likely")
    np.testing.assert_array_equal(again.score_samples(x), d.score_samples(x))
    assert again.card == {"made": "by hand"} and again.state_names == ["0", "1"] and again.columns == {"x0": "real"}
    c = SequenceClassifier(lk.BayesClassifier(lk.HMMDensity(n_states=1))).fit(x, ["a", "b", "a"])
    c.save(tmp_path / "c.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "c.likely").log_posterior(x), c.log_posterior(x))


def test_a_fit_of_unlike_columns_needs_no_settings(mixed):
    c = SequenceClassifier().fit(mixed, ["a", "b", "a"])
    assert c.predict(mixed).shape == (3,) and c.columns["w"] == "category"
    assert SequenceDensity().fit(mixed).score_samples(mixed).shape == (3,)


@pytest.mark.slow
def test_copies_of_a_calibrated_classifier_are_calibrated(tmp_path, recwarn):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = [rng.normal(0.3 * c, 1.0, 20).cumsum() for c in y]  # frames that depend on each other: overconfident
    c = SequenceClassifier(lk.BayesClassifier(lk.HMMDensity(n_states=1)), calibrate=True).fit(x, y)
    assert c.calibration_ is not None and clone(c).calibrate
    lk.save(c, tmp_path / "c.likely")
    np.testing.assert_array_equal(lk.load(tmp_path / "c.likely").log_posterior(x), c.log_posterior(x))
    plain = lk.evaluate(SequenceClassifier(c.classifier), x, y, cv=4)
    assert lk.evaluate(c, x, y, cv=4).log_loss.value < plain.log_loss.value
    assert not any("without calibration" in str(w.message) for w in recwarn)


def test_what_does_not_fit_together_is_refused(mixed):
    x = laid_out(mixed, (), {"x": "real"})
    inner = lk.HMMDensity(n_states=2, random_state=0).fit(x)
    with pytest.raises(DataError, match="must be consistent"):
        SequenceDensity.from_fitted(inner, {"x": "real"}, states=["only"]).check_state()
    with pytest.raises(DataError, match="must be consistent"):
        SequenceDensity.from_fitted(inner, {"x": "real", "y": "real"}).check_state()
    with pytest.raises(NotFittedError, match="SequenceDensity instance is not fitted"):
        SequenceDensity().score_samples(x)


# ---------------------------------------------------------------------- numbers of states


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_the_number_of_states_is_found(rng):
    truth = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [4.0]], 1.0))
    choice = choose_states(lk.HMMDensity(random_state=0), truth.sample(12, rng, length=60), (1, 2, 4))
    text = str(choice)
    assert "± is one standard error of the paired difference to the best" in text
    assert text.count("the best\n") + text.count("the best  ") >= 1 and text.count(" ± ") == 2  # none for the best
    assert choice.best == 2 and choice.pieces == 12 and "chosen" in str(choice)
    assert choice.held_out[1] > choice.held_out[0]


@pytest.mark.slow
def test_held_out_is_what_folds_by_hand_give(rng):
    x = lk.Ragged.from_list([rng.normal(size=(n, 1)) for n in (5, 9, 7, 12, 6)])
    choice = choose_states(lk.HMMDensity(), x, (1,), cv="leave-one-out")
    total = 0.0
    for i in range(5):
        rest = x[np.arange(5) != i]
        total += float(lk.HMMDensity().fit(rest).score_samples(x[[i]])[0])
    assert choice.held_out[0] == pytest.approx(total / len(x.values))


@pytest.mark.slow
def test_one_long_sequence_is_cut_where_it_may_be(rng):
    x = np.repeat(rng.choice([0.0, 6.0], 50), 8) + rng.normal(size=400)
    assert choose_states(lk.HMMDensity(random_state=0), x, (1, 2)).best == 2
    with pytest.raises(DataError, match="pass a number of states"):
        choose_states(lk.HMMDensity(topology="left-to-right"), x, (1, 2))


def test_failures_and_impossible_numbers_lose(rng):
    x = [rng.normal(size=(3, 1)) for _ in range(6)]
    choice = choose_states(lk.HMMDensity(topology="left-to-right"), x, (1, 5))
    assert choice.best == 1 and "at least 5 frames" in choice.failures[5]
    with pytest.raises(DataError, match="some number of states"):
        choose_states(lk.HMMDensity(topology="left-to-right"), x, (5,))
    with pytest.raises(DomainError, match="above 0"):
        choose_states(lk.HMMDensity(), x, (0,))

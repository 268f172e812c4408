"""TableClassifier: a fit that fails changes nothing, and a fit forgets the card of other data."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk

X = {"size": [1.0, 1.2, 3.0, 3.1, 2.9, 0.9], "color": ["red", "red", "blue", "blue", "red", "red"]}
Y = ["a", "a", "b", "b", "b", "a"]


def posteriors(model):
    return model.predict_proba({"size": [1.0, 2.0], "color": ["red", "blue"]})


@pytest.mark.parametrize(
    ("columns", "labels", "why"),
    [
        ({"width": [1.0, 2.0]}, ["a", None, "b"], "labels"),  # after the columns were found
        ({"width": ["u", "v"]}, [0.5, 1.5], "Unknown label type"),
        ({"width": [1.0, 1.0]}, ["a", "b"], "at least one column"),  # while they were looked for
    ],
)
def test_a_fit_that_fails_leaves_the_old_model_whole(columns, labels, why, tmp_path):
    model = lk.TableClassifier().fit(X, Y)
    before, schema = posteriors(model), model.schema
    with pytest.raises(ValueError, match=why):
        model.fit(columns, labels)
    np.testing.assert_array_equal(posteriors(model), before)
    assert model.schema == schema and list(model.feature_names_in_) == ["size", "color"]
    model.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(posteriors(lk.load(tmp_path / "m.likely")), before)


def test_a_first_fit_that_fails_leaves_nothing():
    model = lk.TableClassifier()
    with pytest.raises(ValueError, match="labels"):
        model.fit(X, Y[:3])
    assert not any(name.endswith("_") for name in vars(model))


def test_a_sequence_model_stays_whole_too():
    rng = np.random.default_rng(0)
    model = lk.automl.SequenceDensity().fit([rng.normal(size=(9, 2)) for _ in range(4)])
    schema, before = model.schema, model.density_
    with pytest.raises(ValueError, match="weight"):
        model.fit([rng.normal(size=(9, 3)) for _ in range(4)], sample_weight=[1.0])
    assert model.schema == schema and model.density_ is before


def test_a_refit_forgets_the_card_of_other_data():
    model = lk.TableClassifier().fit(X, Y)
    model.card_ = '{"target": "class"}'
    assert model.fit(X, Y).card == {}

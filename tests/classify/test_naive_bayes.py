"""A distribution of its own for each column, in one classifier."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm, poisson
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import likely as lk

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    frame = pd.DataFrame({
        "size": rng.normal(y * 1.5, 1.0), "visits": rng.poisson(2.0 + 2.0 * y),
        "color": np.where(rng.random(400) < 0.3 + 0.4 * y, "red", "blue"), "member": rng.random(400) < 0.5 + 0.2 * y,
    })  # fmt: skip
    frame.loc[::7, "color"] = None
    frame.loc[3::11, "size"] = np.nan
    return frame, np.array(["no", "yes"], dtype=object)[y]


def test_posteriors_by_hand(table):
    frame, y = table
    clf = lk.NaiveBayes({"visits": lk.PoissonDensity(prior=None), "size": lk.GaussianDensity(prior=None)})
    clf.set_params(
        distributions={
            **clf.distributions,
            "color": lk.CategoricalDensity(prior=None),
            "member": lk.CategoricalDensity(prior=None),
        }
    )
    clf.fit(frame, y)
    joint = np.zeros((len(frame), 2))
    for k, c in enumerate(clf.classes_):
        own = frame[y == c]
        joint[:, k] = np.log(len(own) / len(frame))
        joint[:, k] += np.nan_to_num(norm(own["size"].mean(), own["size"].std(ddof=0)).logpdf(frame["size"]), nan=0.0)
        joint[:, k] += poisson(own["visits"].mean()).logpmf(frame["visits"])
        for name in ("color", "member"):
            shares = own[name].value_counts(normalize=True)
            joint[:, k] += [0.0 if v is None or v != v else np.log(shares[v]) for v in frame[name]]
    want = joint - np.logaddexp.reduce(joint, axis=1)[:, None]
    assert np.allclose(clf.predict_log_proba(frame), want, atol=1e-9)


def as_polars(frame):
    cells = {name: column for name, column in frame.to_dict("list").items()}
    return pl.DataFrame({**cells, "color": [c if isinstance(c, str) else None for c in cells["color"]]})


@pytest.mark.parametrize(
    "make",
    [lambda f: f, as_polars, lambda f: f.to_dict("list"), lambda f: f.to_numpy()],
)
def test_every_make_of_table(table, make):
    frame, y = table
    clf = lk.NaiveBayes().fit(make(frame), y)
    want = lk.NaiveBayes().fit(frame, y).predict_proba(frame)
    assert np.allclose(clf.predict_proba(make(frame)), want, atol=1e-9)


def test_all_numbers_need_no_product():
    X, y = np.random.default_rng(1).normal(size=(50, 3)), np.repeat([0, 1], 25)
    assert isinstance(lk.NaiveBayes().fit(X, y).model_.components, lk.Gaussian)
    assert isinstance(lk.NaiveBayes("poisson").fit(np.abs(X).round(), y).model_.components, lk.Poisson)
    assert isinstance(lk.NaiveBayes({0: "poisson"}).fit(np.abs(X).round(), y).model_.components, lk.Product)


def test_truth_values_are_categories_in_every_make_of_table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.random((200, 3)) < np.where(y[:, None] == 1, 0.7, 0.4)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = lk.NaiveBayes().fit(frame, y).predict_proba(frame)
    clf = lk.NaiveBayes().fit(X, y)
    assert isinstance(clf.density_, lk.CategoricalDensity)
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-12)
    hide = rng.random(X.shape) < 0.2
    hidden = frame.astype(object).mask(hide)
    expected = lk.NaiveBayes().fit(hidden, y).predict_proba(hidden)
    masked = np.ma.masked_array(X, hide)
    np.testing.assert_allclose(lk.NaiveBayes().fit(masked, y).predict_proba(masked), expected, atol=1e-12)


def test_a_level_never_seen_counts_as_unobserved_and_is_novel(table):
    frame, y = table
    clf = lk.NaiveBayes().fit(frame, y)
    new = frame[:3].copy()
    new.loc[0, "color"] = "pink"
    gone = new.copy()
    gone.loc[0, "color"] = None
    assert np.array_equal(clf.predict_proba(new), clf.predict_proba(gone))
    assert clf.decide(new).tolist() == clf.predict(new).tolist()  # without `novelty` nothing is refused
    decided = clf.decide(new, novelty=0.01, full=True)
    assert decided.choice[0] is lk.NOVEL and lk.NOVEL not in decided.choice[1:].tolist()
    assert "'color'" in decided.reasons[0] and "not occur in training" in decided.reasons[0]
    assert np.isposinf(clf.novelty_score(new)[0])


def test_new_levels_in_a_stream(table):
    frame, y = table
    stream = lk.NaiveBayes()
    order = np.argsort(frame["color"].astype(str), kind="stable")  # one color after the other
    for part in np.array_split(order, 5):
        stream.partial_fit(frame.iloc[part], y[part], classes=["no", "yes"])
    batch = lk.NaiveBayes().fit(frame, y)
    assert np.allclose(stream.predict_log_proba(frame), batch.predict_log_proba(frame), atol=1e-9)


def test_saved_and_loaded(table, tmp_path):
    frame, y = table
    clf = lk.NaiveBayes(
        {"visits": "poisson"}, cost={"no": {"no": 0, "yes": 3}, "yes": {"no": 1, "yes": 0}}, novelty=0.02
    )
    clf.fit(frame, y).save(tmp_path / "nb.likely")
    again = lk.load(tmp_path / "nb.likely")
    assert np.array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    assert (again.decide(frame) == clf.decide(frame)).all() and again.distributions == {"visits": "poisson"}
    assert again.partial_fit(frame, y).class_count_.sum() == 800


@pytest.mark.slow
def test_grids_over_distributions(table):
    frame, y = table
    grid = GridSearchCV(lk.NaiveBayes(), {"distributions": ["auto", {"visits": "poisson"}]}, cv=3).fit(frame, y)
    assert grid.best_score_ > 0.7 and clone(grid.best_estimator_).distributions == grid.best_params_["distributions"]


def test_predictive_distributions(table):
    frame, y = table
    distributions = {
        "size": lk.GaussianDensity("diagonal", predictive="all"), "visits": lk.PoissonDensity(predictive=True),
        "color": lk.CategoricalDensity(predictive=True), "member": lk.CategoricalDensity(predictive=True),
    }  # fmt: skip
    clf = lk.NaiveBayes(distributions).fit(frame, y)
    assert isinstance(clf.model_.components["visits"], lk.NegativeBinomial) and isinstance(
        clf.model_.components["size"], lk.StudentT
    )
    assert clf.score(frame, y) > 0.7 and np.isfinite(clf.predict_proba(frame)).all()


def test_what_is_wrong_is_said(table):
    frame, y = table
    with pytest.raises(lk.DataError, match="'weight'"):
        lk.NaiveBayes({"weight": "poisson"}).fit(frame, y)
    with pytest.raises(lk.DomainError, match="'zipf'"):
        lk.NaiveBayes({"size": "zipf"}).fit(frame, y)
    dated = frame.assign(day=pd.Timestamp("2024-01-01"))
    with pytest.raises(lk.DataError, match="day"):
        lk.NaiveBayes().fit(dated, y)


ALIKE = {
    "student-t": "normal", "laplace": "normal", "cauchy": "normal", "triangular": "normal", "exponential": "positive",
    "gamma": "positive", "chi-square": "positive", "beta": "share", "von-mises": "angle", "negative-binomial": "count",
    "binomial": "count", "bernoulli": "bit",
}  # fmt: skip


def columns_of(kind: str, y: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(3)
    draw = {
        "normal": lambda: rng.normal(2.0 * y, 1.0), "positive": lambda: rng.gamma(2.0, 1.0 + y),
        "share": lambda: rng.beta(2.0 + 2 * y, 4.0), "angle": lambda: rng.vonmises(1.0 * y, 3.0),
        "count": lambda: rng.poisson(3.0 + 2 * y), "bit": lambda: rng.random(len(y)) < 0.3 + 0.4 * y,
    }  # fmt: skip
    return np.column_stack([draw[kind]() for _ in range(2)]).astype(float)


@pytest.mark.some_cases(3)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.core.errors.FitWarning")
@pytest.mark.parametrize("distribution", ALIKE)
def test_a_distribution_by_name_is_the_product_of_its_columns(distribution):
    y = np.arange(80) % 2
    X = columns_of(ALIKE[distribution], y)
    whole = lk.NaiveBayes(distribution).fit(X, y)
    each = lk.NaiveBayes({0: distribution, 1: lk.NaiveBayes(distribution)._fresh_density(X)}).fit(X, y)
    assert type(each.model_.components).__name__ == "Product"
    np.testing.assert_allclose(whole.predict_proba(X), each.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert (whole.predict(X) == y).mean() > 0.6


def test_names_of_distributions_stand_beside_each_other():
    y = np.arange(60) % 2
    X = {"wait": columns_of("positive", y)[:, 0], "angle": columns_of("angle", y)[:, 0], "size": 1.0 * y}
    X["size"] += np.linspace(0, 1, 60)
    nb = lk.NaiveBayes({"wait": "exponential", "angle": "von-mises", "size": "laplace"}).fit(X, y)
    assert [type(part).__name__ for _, part in nb.model_.components.components] == [
        "Exponential",
        "VonMises",
        "Laplace",
    ]
    lone = lk.BayesClassifier(lk.ExponentialDensity()).fit(X["wait"][:, None], y)
    others = {"angle": np.full(60, np.nan), "size": np.full(60, np.nan)}
    np.testing.assert_allclose(nb.predict_proba({**X, **others}), lone.predict_proba(X["wait"][:, None]), rtol=1e-9)


# ----------------------------------------------------------------- distributions that do not suit


@pytest.fixture
def patients() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    age, bmi, change = rng.normal(40, 9, 40).round(), rng.normal(30, 5, 40).round(1), rng.normal(size=40).round(3)
    return pd.DataFrame({"age": age, "bmi": bmi, "change": change}), np.arange(40) % 2


@pytest.mark.parametrize(
    ("column", "distribution", "expected"),
    [
        *(("bmi", distribution, "integers") for distribution in ("poisson", "binomial", "negative-binomial")),
        ("bmi", "bernoulli", "values must be 0 or 1"), ("bmi", "beta", "must lie between 0 and 1"),
        *(
            ("change", distribution, "Negative values")
            for distribution in ("exponential", "gamma", "chi-square", "poisson", "binomial")
        ),
    ],
)  # fmt: skip
def test_a_distribution_that_cannot_hold_a_column_is_refused_by_its_name(patients, column, distribution, expected):
    X, y = patients
    odd = X[column][X[column] < 0] if column == "change" else X[column]
    came = rf"got {odd.iloc[0]:g} at row {odd.index[0]}, column '{column}': .*GaussianDensity.*\"gaussian\""
    with pytest.raises(lk.DataError, match=rf"{expected}.*{came}"):
        lk.NaiveBayes({column: distribution}).fit(X, y)
    with pytest.raises(lk.DataError, match=rf"{expected}.*column 'x{list(X).index(column)}'"):
        lk.NaiveBayes({list(X).index(column): distribution}).fit(X.to_numpy(), y)


def test_a_distribution_for_all_columns_refuses_by_name(patients):
    X, y = patients
    with pytest.raises(lk.DataError, match=r"integers, got .* at row \d+, column 'bmi'"):
        lk.NaiveBayes("poisson").fit(X.abs(), y)


def test_parts_name_the_columns_of_the_table(patients):
    X, _ = patients
    X = X.assign(same=3.0)
    with pytest.raises(lk.DataError, match=r"integers, got .* column 'bmi'"):
        lk.ProductDensity([("counts", lk.PoissonDensity(), ["age", "bmi"])]).fit(X)
    with pytest.warns(lk.FitWarning) as heard:
        lk.ProductDensity([
            ("counts", lk.GaussianDensity(), ["age", "same"]), ("up", lk.BernoulliDensity(), "change"),
            ("bmi", lk.LaplaceDensity()),
        ]).fit(X.assign(bmi=5.0))  # fmt: skip
    told = " ".join(str(w.message) for w in heard)
    assert "column 'same' is constant" in told and "change is not all 0 and 1" in told and "bmi is constant" in told
    assert "x0" not in told and "column 0" not in told


@pytest.mark.parametrize("make", [pd.DataFrame, lambda frame: frame.to_numpy(), lambda frame: frame.to_dict("list")])
def test_an_unknown_distribution_is_named_with_its_column(patients, make):
    X, y = patients
    X = make(X)
    column = 1 if isinstance(X, np.ndarray) else "bmi"
    with pytest.raises(
        lk.DomainError, match=rf"the distribution of column {column!r} must be .*poisson.*did you mean \"student-t\""
    ):
        lk.NaiveBayes({column: "student"}).fit(X, y)
    with pytest.raises(
        lk.DomainError, match=rf"the distribution of column {column!r} must be a density, got 3: pass a name"
    ):
        lk.NaiveBayes({column: 3}).fit(X, y)


# ---------------------------------------------------------------------------- notes, once a call


def notes_of(call) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in heard if issubclass(w.category, lk.FitWarning)]


@pytest.mark.parametrize("make", [lk.NaiveBayes, lk.TableClassifier])
def test_values_never_seen_are_reported_once_a_call(table, make):
    X = {"size": [1.0, 1.2, 3.0, 3.1] * 5, "color": ["red", "red", "blue", None] * 5}
    clf = make().fit(X, ["a", "a", "b", "b"] * 5)
    new = {"size": [1.0, 2.0], "color": ["green", "red"]}
    for call in (clf.predict, clf.predict_proba, clf.decide, lambda X: clf.decide(X, full=True)):
        assert [note.partition(": ")[2] for note in notes_of(lambda: call(new))] == [  # noqa: B023
            "'color' holds values that did not occur in training: they count as missing"
        ]
        assert notes_of(lambda: call(X)) == []  # noqa: B023


@pytest.mark.parametrize("clf", [lk.NaiveBayes(), lk.KNeighborsClassifier(1), lk.NearestCentroidClassifier()])
def test_one_class_alone_is_reported(clf):
    X = np.random.default_rng(0).normal(size=(12, 2))
    (note,) = notes_of(lambda: clf.fit(X, ["a"] * 12))
    assert note.startswith(f"{type(clf).__name__}: all labels are 'a', so every row will be assigned to it; add rows")
    assert notes_of(lambda: clf.fit(X, ["a", "b"] * 6)) == []
    (note,) = notes_of(lambda: clone(clf).partial_fit(X, ["a"] * 12))
    assert note.startswith(f"{type(clf).__name__}: all labels are 'a'")
    assert notes_of(lambda: clone(clf).partial_fit(X, ["a"] * 12, classes=["a", "b"])) == []


def test_hidden_labels_are_reported():
    X = np.random.default_rng(0).normal(size=(12, 2))
    notes = notes_of(lambda: lk.NaiveBayes().fit(X, [np.nan, 0.0, 1.0] * 4))
    assert sum("4 of 12 rows have no label: they are used as unlabeled data" in note for note in notes) == 1
    notes = notes_of(lambda: lk.NaiveBayes().partial_fit(X, [np.nan, 0.0, 1.0] * 4))
    assert sum("4 of 12 rows have no label" in note for note in notes) == 1


@pytest.mark.parametrize(
    "make", [lk.KNeighborsClassifier, lk.FisherDiscriminant, lk.TableClassifier, lk.PriorClassifier]
)
@pytest.mark.parametrize("hidden", [None, np.nan])
def test_accuracy_needs_labels(make, hidden):
    """scikit-learn's own message compared a text with None."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    clf = make().fit(X, ["a", "b"] * 6)
    with pytest.raises(
        lk.DataError, match=rf"^{make.__name__}: every row needs a label, got {hidden} at row 3 .* drop them"
    ):
        clf.score(X, ["a", "b", "a", hidden, *["a", "b"] * 4])


def test_named_columns_may_be_evaluated():
    X = {"size": [1.0, 1.2, 3.0, 3.1] * 5, "color": ["red", "red", "blue", None] * 5}
    assert lk.evaluate(lk.NaiveBayes(), X, ["a", "a", "b", "b"] * 5, cv=2).error.value == 0.0

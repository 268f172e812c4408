"""The ladder, the contest on it, the baselines, and the classifier that goes into a file."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import likely as lk
from likely.automl.candidates import (
    NAMES,
    Candidate,
    affordable,
    arranged,
    chosen_candidates,
    joint,
    model_candidates,
    not_applicable,
    same_model,
    without_gaps,
)
from likely.automl.model_comparison import CandidateResult, ComparisonTask, compare_candidates, from_all_rows, ranked
from likely.automl.sklearn_baselines import baselines
from likely.automl.table_classifier import TableClassifier
from likely.classify.calibration.calibrated import CalibratedClassifier
from likely.classify.calibration.calibration_maps import IsotonicMap, LogisticMap, Temperature
from likely.classify.calibration.recalibration import applied, recalibrated
from likely.classify.prior_classifier import PriorClassifier
from likely.cli.example_data import wine
from likely.core.errors import DataError, DomainError, ModelFileError
from tests.cli.tables import mixed_frame

KINDS = {"size": "real", "width": "real", "visits": "count", "color": "category", "smokes": "binary"}


def mixed() -> tuple[pl.DataFrame, np.ndarray]:
    frame = mixed_frame().with_columns(pl.col("visits").cast(pl.Float64))
    return frame.select(list(KINDS)), frame["sick"].to_numpy()


def wine_field(**more) -> ComparisonTask:
    X, y, names = wine()
    classes, labels = np.unique(y, return_inverse=True)
    return ComparisonTask.of(pl.DataFrame({n: X[:, j] for j, n in enumerate(names)}), classes, labels, 5, **more)


def candidates_of(keys: str) -> list[Candidate]:
    return chosen_candidates(model_candidates(dict.fromkeys(wine().names, "real")), keys)


# ------------------------------------------------------------------------- the ladder


OTHERS = (
    {"size": "real", "width": "real"},
    {"visits": "count"},
    {"color": "category"},
    {"visits": "count", "size": "real"},
)


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [KINDS, *OTHERS])
def test_every_candidate_learns_its_columns(kinds):
    X, y = mixed()
    X = X.select(list(kinds))
    candidates = model_candidates(kinds, {"reject_cost": 0.2}, dict.fromkeys(kinds, 15))
    if list(kinds.values()).count("real") > 1:
        assert {"laplace", "student-t"} <= {candidate.key for candidate in candidates}
    assert [candidate.rank for candidate in candidates] == list(range(len(candidates))) and candidates[0].key == "prior"
    assert len({candidate.key for candidate in candidates}) == len(candidates)
    able, words = without_gaps(candidates, kinds, X)
    out = [candidate.name for candidate in candidates if candidate not in able]
    assert words == (f"Left out, for it needs rows without missing numbers: {out[0]}." if out else "")
    for candidate in candidates:
        if candidate in able:
            P = clone(candidate.estimator).fit(X, y).predict_proba(X)
            np.testing.assert_allclose(P.sum(axis=1), 1.0)
        else:
            with pytest.raises(lk.DomainError, match="needs complete rows"):
                clone(candidate.estimator).fit(X, y)
    assert without_gaps(candidates, kinds, X.drop_nulls()) == (candidates, "")


def test_distances_stand_where_all_columns_are_numbers():
    numbers = [candidate.key for candidate in model_candidates({"size": "real", "visits": "count"}, rows=[40, 40])]
    assert numbers[1] == "nearest-centroid" and numbers[-1] == "k-nearest-neighbors"
    assert not {"nearest-centroid", "k-nearest-neighbors"} & {
        candidate.key for candidate in model_candidates(KINDS, rows=[40, 40])
    }
    assert "k-nearest-neighbors" not in [
        candidate.key for candidate in model_candidates({"size": "real"}, rows=[40, 1])
    ]  # nobody to be near to


@pytest.mark.parametrize("key", ["nearest-centroid", "k-nearest-neighbors"])
def test_distances_do_what_every_candidate_does(key, tmp_path):
    """Gaps, costs, novelty, class probabilities in use, a file, an explanation."""
    X, y, names = wine()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    frame = pl.DataFrame({n: X[:, j] for j, n in enumerate(names)}).fill_nan(None)
    candidates = model_candidates(dict.fromkeys(names, "real"), {"novelty": 0.05}, rows=[30, 30, 30])
    model = TableClassifier(next(r for r in candidates if r.key == key).estimator).fit(frame, y)
    assert np.mean(model.predict(frame) != y) < 0.1
    lk.save(model, tmp_path / "m.likely")
    back = lk.load(tmp_path / "m.likely")
    np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))
    far = frame.with_columns(pl.all() + 1e4)[:5]
    assert (back.decide(far, full=True).index == -2).all() and len(back.explain(frame[:3])) == 3


def test_naive_bayes_of_the_candidates_is_naive_bayes():
    X, y = mixed()
    ours = next(candidate for candidate in model_candidates(KINDS) if candidate.key == "naive-bayes").estimator
    other = lk.NaiveBayes({"visits": "poisson"})
    np.testing.assert_allclose(clone(ours).fit(X, y).predict_proba(X), other.fit(X, y).predict_proba(X), rtol=1e-7)


def test_counts_are_levels_where_they_are_few():
    keys = [candidate.key for candidate in model_candidates(KINDS, distinct={"visits": 9})]
    assert "naive-bayes-categorical" in keys
    assert "naive-bayes-categorical" not in [
        candidate.key for candidate in model_candidates(KINDS, distinct={"visits": 300})
    ]
    assert arranged({"a": "binary", "b": "count", "c": "real"}) == ["c", "b", "a"]


def test_a_column_may_be_called_as_a_part():
    X = pl.DataFrame({"x": [0.0, 1.0, 5.0, 6.0], "numbers": ["a", "b", "a", "b"], "counts": ["u", "u", "v", "v"]})
    for candidate in model_candidates({"x": "real", "numbers": "category", "counts": "category"}):
        clone(candidate.estimator).fit(X, [0, 0, 1, 1]).predict(X)


TABLES = [
    {"a": "real"}, {"a": "real", "b": "real"}, {"a": "count"}, {"a": "real", "b": "count"}, {"a": "category"},
    {"a": "category", "b": "binary"}, {"a": "real", "b": "count", "c": "category", "d": "binary"},
    {"a": "real", "b": "real", "c": "count", "d": "category"},
]  # fmt: skip


def candidates_for(kinds):
    levels = {name: ["u", "v"] for name, kind in kinds.items() if kind in ("category", "binary")}
    return model_candidates(kinds, None, dict.fromkeys(kinds, 5), [500, 500], levels) + baselines(kinds)


def test_names_of_models_are_the_same_for_every_table():
    keys = {candidate.key for kinds in TABLES for candidate in candidates_for(kinds)}
    assert keys == set(NAMES)  # no table has a name of its own, and no name is without a table
    for kinds in TABLES:
        candidates = candidates_for(kinds)
        for name in NAMES:
            told = not_applicable(candidates, name)
            if told:
                with pytest.raises(DomainError, match="for these columns there are prior"):
                    chosen_candidates(candidates, name)
                assert f"{name} needs " in told and "needs nothing" not in told
                both = chosen_candidates(candidates, f"prior,{name}")
                assert [candidate.key for candidate in both] == ["prior"]
            else:
                assert len(chosen_candidates(candidates, name)) == 1
        assert len(chosen_candidates(candidates, "naive-bayes")) == len(chosen_candidates(candidates, "diagonal")) == 1


def test_models_stand_in_one_order():
    for kinds in TABLES:
        keys = [candidate.key for candidate in candidates_for(kinds)]
        assert keys == [name for name in NAMES if name in keys]
    told = not_applicable(
        candidates_for({"a": "real"}), "kernel-density,pooled-counts,chow-liu,naive-bayes-categorical"
    )
    assert re.findall(r"([\w-]+) needs", told) == ["naive-bayes-categorical", "chow-liu", "pooled-counts"]
    with pytest.raises(DomainError) as caught:
        chosen_candidates(candidates_for({"a": "real"}), "chow-liu")
    assert "got chow-liu: chow-liu needs two categorical columns" in str(caught.value)


def test_a_model_that_is_compared_under_another_name_is_reported():
    numbers = candidates_for({"a": "real", "b": "real"})
    for key, other in (("naive-bayes", "diagonal"), ("naive-bayes-t", "diagonal-t")):
        assert f"so {key} is the same model as {other}" in same_model(numbers, key)
    assert same_model(numbers, "diagonal,full") == same_model(numbers, "all") == same_model(numbers, "chow-liu") == ""
    words = candidates_for({"a": "real", "b": "category"})
    assert same_model(words, "diagonal") == (
        "The table has categorical columns, so diagonal is the same model as naive-bayes: "
        "it is compared as naive-bayes."
    )
    assert same_model(candidates_for({"a": "real", "b": "count"}), "naive-bayes,diagonal") == ""  # two models there


def test_unknown_models_are_refused_with_the_known_ones():
    with pytest.raises(DomainError, match=r"are prior, nearest-centroid, naive-bayes.*got 'cubic'"):
        chosen_candidates(model_candidates({"a": "real", "b": "real"}), "spherical,cubic")
    assert [r.key for r in chosen_candidates(model_candidates({"a": "real", "b": "real"}), "full, pooled")] == [
        "pooled",
        "full",
    ]


# -------------------------------------------------------------------------- mixtures


def keys_of_mixtures(d: int, rows: list[int]) -> list[str]:
    candidates = model_candidates({f"x{j}": "real" for j in range(d)}, rows=rows)
    return [candidate.key for candidate in candidates if candidate.key.startswith("mixture-")]


def test_mixtures_stand_on_top_where_every_class_has_the_rows():
    assert keys_of_mixtures(2, [200, 200]) == [
        "mixture-diagonal-2", "mixture-diagonal-4", "mixture-full-2", "mixture-tied", "mixture-full-4",
    ]  # fmt: skip
    # two diagonal parts of two columns have 2·4 means and variances and a weight: 9 numbers, 18 rows
    assert keys_of_mixtures(2, [200, 18]) == ["mixture-diagonal-2", "mixture-tied"]
    assert keys_of_mixtures(2, [200, 17]) == ["mixture-tied"]  # a class owns seven weights of the eight shared parts
    assert keys_of_mixtures(2, [200, 13]) == [] and keys_of_mixtures(13, [48, 59, 71]) == []
    assert keys_of_mixtures(1, [200, 200]) == ["mixture-diagonal-2", "mixture-diagonal-4"]
    assert not any(candidate.key.startswith("mixture-") for candidate in model_candidates({"a": "real", "b": "real"}))


@pytest.mark.slow
@pytest.mark.some_cases(1)
@pytest.mark.filterwarnings("ignore:.*distinct rows with gaps")
@pytest.mark.parametrize("kinds", [KINDS, *OTHERS])
def test_every_mixture_learns_its_columns(kinds):
    X, y = (part[:100] for part in mixed())
    for candidate in model_candidates(kinds, rows=[90, 90]):
        if candidate.key.startswith(("mixture-", "kernel-density")):
            P = clone(candidate.estimator).fit(X.select(list(kinds)), y).predict_proba(X.select(list(kinds)))
            np.testing.assert_allclose(P.sum(axis=1), 1.0)
            assert candidate.work > 0


def in_turns(n: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Four lumps in a row that belong to two classes by turns: one Gaussian a class cannot tell them apart."""
    rng = np.random.default_rng(0)
    lump = rng.integers(0, 4, n)
    return pl.DataFrame({"a": 10.0 * lump + rng.normal(size=n), "b": rng.normal(size=n)}), lump % 2


@pytest.mark.slow
def test_a_mixture_wins_where_classes_have_lumps():
    X, y = in_turns(400)
    field = ComparisonTask.of(X, np.array(["u", "v"]), y, 3)
    all_of_them = model_candidates({"a": "real", "b": "real"}, rows=[130, 130])
    contest = compare_candidates(field, chosen_candidates(all_of_them, "full,mixture-full-2,"
                                          "mixture-diagonal-2,mixture-diagonal-4"))  # fmt: skip
    assert contest.winner.candidate.key.startswith("mixture-") and contest.winner.cost < 0.01
    by = {s.candidate.key: s.cost for s in contest.results}
    assert by["full"] > 0.2


@pytest.mark.slow
def test_a_gaussian_stays_where_it_is_as_good():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    X = pl.DataFrame(rng.normal(size=(300, 2)) + 2.0 * y[:, None], schema=["a", "b"])
    field = ComparisonTask.of(X, np.array(["u", "v"]), y, 3)
    candidates = chosen_candidates(
        model_candidates({"a": "real", "b": "real"}, rows=[90, 90]), "pooled,mixture-diagonal-2,mixture-full-2"
    )
    assert compare_candidates(field, candidates).winner.candidate.key == "pooled"


def test_who_is_too_slow_is_left_out_and_named():
    candidates = model_candidates({f"x{j}": "real" for j in range(20)}, rows=[40_000, 40_000])
    kept, words = affordable(candidates, 320_000)
    assert not any(candidate.key.startswith("mixture-") for candidate in kept)
    mixtures = "mixture-diagonal-2,mixture-diagonal-4,mixture-full-2,mixture-tied,mixture-full-4"
    slow = f"{mixtures},kernel-density,k-nearest-neighbors"
    assert f"{slow} compares them" in words and len(kept) == len(candidates) - 7
    few = model_candidates({f"x{j}": "real" for j in range(20)}, rows=[800, 800])
    assert affordable(few, 6_400) == (few, "")
    some, words = affordable(candidates, 100_000)
    assert "mixture-diagonal-2" in [candidate.key for candidate in some] and "mixture-full-4" in words


@pytest.mark.parametrize(
    ("classes", "rows", "columns", "tried"),
    [  # as letter, USPS and satimage, which take seconds; then what takes minutes
        (26, 500, 16, True), (10, 950, 256, True), (6, 860, 36, True), (2, 4000, 2, True), (2, 2000, 16, True),
        (2, 40_000, 20, False), (2, 30_000, 9, False), (2, 64_000, 2, False),
    ],
)  # fmt: skip
def test_kernel_density_is_tried_where_it_takes_seconds(classes, rows, columns, tried):
    candidates = model_candidates({f"x{j}": "real" for j in range(columns)}, rows=[rows] * classes)
    kept, _ = affordable(chosen_candidates(candidates, "kernel-density"), 5 * classes * rows)
    assert bool(kept) == tried


def test_kernel_density_needs_some_rows_of_each_class():
    assert "kernel-density" not in [
        candidate.key for candidate in model_candidates({"a": "real", "b": "real"}, rows=[200, 3])
    ]
    more = [
        next(
            r.work
            for r in model_candidates({f"x{j}": "real" for j in range(d)}, rows=[m, m])
            if r.key == "kernel-density"
        )
        for d in (2, 20) for m in (200, 400)
    ]  # fmt: skip
    assert 0 < more[0] < more[1] < 2 * more[0] and more[2] < more[3]


# ------------------------------------------------------ tails, windows, trees


@pytest.mark.slow
def test_a_robust_model_wins_where_rows_are_wrong():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 2)) + 3.0 * y[:, None]
    wrong = rng.random(400) < 0.08
    X[wrong] += 200.0 * rng.normal(size=(wrong.sum(), 2))
    field = ComparisonTask.of(pl.DataFrame(X, schema=["a", "b"]), np.array(["u", "v"]), y, 3)
    contest = compare_candidates(
        field, chosen_candidates(model_candidates({"a": "real", "b": "real"}), "diagonal,laplace,pooled,full,student-t")
    )
    by = {s.candidate.key: s.cost for s in contest.results}
    assert contest.winner.candidate.key == "student-t" and by["student-t"] < 0.1 and by["laplace"] < 0.15
    assert min(by["diagonal"], by["pooled"], by["full"]) > 0.4


@pytest.mark.slow
def test_kernel_density_wins_where_no_shape_fits():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    turn, radius = rng.uniform(0, 2 * np.pi, 600), 2.0 + 1.5 * y + 0.3 * rng.normal(size=600)  # a ring around a ring
    X = pl.DataFrame({"a": radius * np.cos(turn), "b": radius * np.sin(turn)})
    field = ComparisonTask.of(X, np.array(["u", "v"]), y, 3)
    candidates = chosen_candidates(
        model_candidates({"a": "real", "b": "real"}, rows=[190, 190]), "diagonal,full,mixture-diagonal-2,kernel-density"
    )
    contest = compare_candidates(field, candidates)
    assert contest.winner.candidate.key == "kernel-density" and contest.winner.cost < 0.03


WORDS_OF = {"color": ["blue", "red"], "smokes": ["no", "yes"]}


def leaning(n: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Two words of which neither says anything alone: together they tell the class."""
    rng = np.random.default_rng(0)
    y, first = rng.integers(0, 2, n), rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.95, first ^ y, 1 - (first ^ y))
    words = {"color": np.array(WORDS_OF["color"])[first], "smokes": np.array(WORDS_OF["smokes"])[second]}
    return pl.DataFrame(words), y


@pytest.mark.slow
def test_a_tree_wins_where_words_lean_on_each_other(tmp_path):
    X, y = leaning(300)
    kinds = {"color": "category", "smokes": "binary"}
    candidates = model_candidates(kinds, levels=WORDS_OF)
    assert [candidate.key for candidate in candidates] == ["prior", "naive-bayes", "naive-bayes-t", "chow-liu"]
    contest = compare_candidates(ComparisonTask.of(X, np.array(["u", "v"]), y, 3), candidates)
    assert contest.winner.candidate.key == "chow-liu" and contest.winner.cost == pytest.approx(0.05, abs=0.03)
    model = clone(candidates[-1].estimator).fit(X, y)
    lk.save(model, tmp_path / "m")
    again = lk.load(tmp_path / "m")
    strange = pl.DataFrame({"color": ["red", "pink", None], "smokes": ["no", "no", "yes"]})
    np.testing.assert_array_equal(again.predict_proba(strange), model.predict_proba(strange))
    np.testing.assert_allclose(model.predict_proba(strange)[1:].max(), 0.5, atol=0.1)  # one word alone says nothing
    assert again.explain(strange).values[0] == ["red", "no"] and again.explain(strange).values[1] == [None, "no"]


@pytest.mark.slow
def test_trees_need_two_columns_of_few_known_words():
    kinds = {"color": "category", "smokes": "binary"}
    many = {**WORDS_OF, "color": [str(i) for i in range(51)]}
    for levels in (None, {}, {"color": ["a", "b"]}, many):
        assert "chow-liu" not in [candidate.key for candidate in model_candidates(kinds, levels=levels)]
    assert "chow-liu" not in [candidate.key for candidate in model_candidates({"color": "category"}, levels=WORDS_OF)]
    with_all = {"size": "real", "visits": "count", **kinds, "words": "category"}
    (tree,) = [r for r in model_candidates(with_all, levels={**WORDS_OF, "words": ["a", "b"]}) if r.key == "chow-liu"]
    X, y = mixed()
    X = X.with_columns(words=pl.Series(["a", "b"] * (len(X) // 2 + 1))[: len(X)])
    P = clone(tree.estimator).fit(X.select(arranged(with_all)), y).predict_proba(X.select(arranged(with_all)))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_the_joint_density_of_a_row_has_a_distribution_for_each_kind():
    X, _ = mixed()
    fitted = joint(KINDS, lk.GaussianDensity("full")).fit(X)
    assert [type(part).__name__ for _, part, _ in fitted.densities_] == [
        "GaussianDensity", "PoissonDensity", "CategoricalDensity", "CategoricalDensity",
    ]  # fmt: skip
    assert [own for _, _, own in fitted.densities_] == [["size", "width"], ["visits"], ["color"], ["smokes"]]


@pytest.mark.slow
def test_baselines_take_the_table_as_it_is():
    X, y = mixed()
    for candidate in baselines(KINDS, {"cost": None, "reject_cost": 0.1, "novelty": None}):
        assert candidate.baseline and isinstance(candidate.estimator, CalibratedClassifier)
        model = clone(candidate.estimator).fit(X, y)
        assert (model.predict(X) == y).mean() > 0.75
        strange = X.with_columns(pl.lit("ultraviolet").alias("color"))
        assert np.isfinite(model.predict_proba(strange)).all()


# ------------------------------------------------------------------------ the contest


@pytest.mark.slow
def test_costs_are_those_of_scikit_learns_folds_by_hand():
    field = wine_field(calibrate=False)
    contest = compare_candidates(field, candidates_of("pooled,diagonal"))
    for result in contest.results:
        wrong = 0
        for train, test in field.splits:
            model = clone(result.candidate.estimator).fit(field.X[train], field.classes[field.labels[train]])
            wrong += (model.predict(field.X[test]) != field.classes[field.labels[test]]).sum()
        assert result.cost == pytest.approx(wrong / 178)


@pytest.mark.slow
def test_ties_in_cost_go_to_the_least_log_loss_and_ties_in_that_to_the_simplest():
    contest = compare_candidates(wine_field(), candidates_of("all"))
    near = [s for s in contest.results if s.difference.value <= s.difference.se]
    least = min(near, key=lambda s: s.evaluation.log_loss.value)
    as_true = [s for s in near if s.loss_difference.value <= max(s.loss_difference.se, 1e-3)]
    assert contest.truest.candidate is least.candidate and contest.winner.candidate.rank == min(
        s.candidate.rank for s in as_true
    )
    assert contest.best.difference.value == 0 and contest.results[0].cost == contest.best.cost
    paid = [s.evaluation.costs.table[s.evaluation.decided, s.evaluation.truth] for s in (contest.winner, contest.best)]
    gap = paid[0] - paid[1]
    assert contest.winner.difference.se == pytest.approx(gap.std(ddof=1) / np.sqrt(len(gap)))
    loss = [-s.evaluation.log_posterior_of_truth for s in (contest.winner, contest.truest)]
    assert contest.winner.loss_difference.value == pytest.approx((loss[0] - loss[1]).mean())


def standing_of(field, rank, truth_probability):
    """A result whose posterior of the true class is given row by row; the other class has the rest."""
    p = np.asarray(truth_probability, dtype=float)
    posterior = np.where(np.arange(2) == field.labels[:, None], p[:, None], 1 - p[:, None])
    with np.errstate(divide="ignore"):
        e = field.evaluation(np.log(posterior))
    return CandidateResult(Candidate(f"m{rank}", f"m{rank}", "", rank, None), e, 0.0)


def two_class_field(n=40):
    return ComparisonTask.of(np.zeros((n, 1)), np.array(["u", "v"]), np.arange(n) % 2, 4)


def test_each_step_of_the_rule_by_hand():
    field = two_class_field()
    right = np.r_[0.45, np.full(39, 0.9)]  # but for the first row
    unsure = np.r_[0.45, np.full(39, 0.6)]  # decides as well, and says less
    other = np.r_[0.9, 0.45, 0.45, np.full(37, 0.99)]  # dearer by 1 in 40 (± 0.044), with a smaller log-loss
    twin = np.r_[0.9, 0.45, 0.45, 0.99, np.tile([0.985, 0.995], 18)]  # its log-loss is larger by 1e-5 (± 8e-4)
    many_wrong = np.r_[np.full(10, 0.4), np.full(30, 0.99)]
    results = [standing_of(field, rank, p) for rank, p in enumerate((many_wrong, unsure, right, twin, other))]
    contest = ranked(field, results)
    by_key = {s.candidate.key: s for s in contest.results}
    assert contest.best.candidate.key == "m1"  # of the two that cost the same the simpler one
    assert by_key["m0"].ties == () and by_key["m1"].ties == by_key["m2"].ties == ("cost",)
    assert by_key["m3"].ties == by_key["m4"].ties == ("cost", "log-loss")
    assert contest.truest.candidate.key == "m4" and contest.winner.candidate.key == "m3"
    by_loss = ranked(field, results, "log-loss")
    assert (
        by_loss.best.candidate.key == "m4" and by_loss.winner.candidate.key == "m3" and by_loss.criterion == "log-loss"
    )
    assert ranked(field, results, "error").winner.candidate.key == contest.winner.candidate.key
    with pytest.raises(DomainError, match="criterion must be one of cost, log-loss, error"):
        ranked(field, results, "brier")


def test_one_row_that_is_decided_otherwise_is_a_tie():
    """Difference and standard error are both 1/n, for every n: the last bit must not choose."""
    for n in (40, 56, 178, 250, 768):
        field = two_class_field(n)
        dearer = standing_of(field, 0, np.r_[0.49, np.full(n - 1, 0.9)])
        contest = ranked(field, [dearer, standing_of(field, 1, np.r_[0.51, np.full(n - 1, 0.9)])])
        assert contest.best.candidate.rank == 1 and contest.winner.candidate.rank == 0


def test_twins_that_differ_by_less_than_a_thousandth_are_tied():
    field = two_class_field()
    plain, truer = standing_of(field, 0, np.full(40, 0.9)), standing_of(field, 1, np.full(40, 0.9005))
    assert ranked(field, [plain, truer]).winner.candidate.rank == 0  # better in every row, by 0.0006 nats
    assert ranked(field, [plain, standing_of(field, 1, np.full(40, 0.92))]).winner.candidate.rank == 1


def test_a_truth_held_impossible_is_no_tie_in_log_loss():
    field = two_class_field()
    impossible = np.r_[0.0, np.full(39, 0.99)]
    fair = np.r_[0.4, np.full(39, 0.8)]
    contest = ranked(field, [standing_of(field, 0, impossible), standing_of(field, 1, fair)])
    assert contest.winner.candidate.key == "m1"
    alone = ranked(field, [standing_of(field, 0, impossible), standing_of(field, 1, impossible)])
    assert alone.winner.candidate.key == "m0"  # both infinite: level, so the simpler one


class Fragile(DummyClassifier):
    """Fails where it is told to."""

    def fit(self, X, y, sample_weight=None):
        raise ValueError("this model\ncannot")


def test_who_fails_is_shown_and_the_others_go_on():
    bad = Candidate("bad", "bad", "", 99, Fragile())
    heard = []
    contest = compare_candidates(
        wine_field(), [*candidates_of("pooled"), bad], callback=lambda candidate: heard.append(candidate.key)
    )
    (failed,) = [s for s in contest.results if s.evaluation is None]
    assert failed.failure == "ValueError: this model cannot" and contest.winner.candidate.key == "pooled"
    assert sorted(heard) == ["bad"] * 5 + ["pooled"] * 5
    with pytest.raises(DataError, match="bad: ValueError"):
        compare_candidates(wine_field(), [bad])


@pytest.mark.slow
def test_baselines_are_measured_but_do_not_win():
    baseline = Candidate("logistic", "logistic", "", 0, LogisticRegression(C=1e-3, max_iter=5000), baseline=True)
    contest = compare_candidates(wine_field(), [baseline, *candidates_of("prior")])
    assert contest.winner.candidate.key == "prior" and contest.baseline.candidate is baseline
    assert contest.baseline.difference.value < 0


def test_costs_and_rejection_count():
    cost = lk.Cost([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.05, 0.05, 0.05]], actions=["ask"])
    contest = compare_candidates(wine_field(cost=cost, reject_cost=0.01), candidates_of("prior,pooled"))
    by = {s.candidate.key: s.cost for s in contest.results}
    assert by["prior"] == pytest.approx(0.01) and by["pooled"] <= 0.01


def test_other_class_probabilities_are_as_if_the_model_had_them():
    prior = np.array([0.8, 0.1, 0.1])
    field = wine_field(class_prior=prior, calibrate=False)
    (candidate,) = candidates_of("pooled")
    split = field.splits[0]
    plain = clone(candidate.estimator).fit(field.X[split.train], field.classes[field.labels[split.train]])
    fixed = clone(candidate.estimator).set_params(class_prior=prior.tolist())
    fixed.fit(field.X[split.train], field.classes[field.labels[split.train]])
    rows = field.X[split.test]
    np.testing.assert_allclose(np.exp(field.answers(plain, rows, split)), fixed.predict_proba(rows), atol=1e-9)
    share = np.bincount(field.labels, field.judging) / field.judging.sum()
    np.testing.assert_allclose(share, prior)
    assert from_all_rows(candidate.estimator, field).class_prior_.tolist() == prior.tolist()


@pytest.mark.slow
def test_groups_are_the_witnesses():
    groups = np.arange(178) // 6
    field = wine_field(groups=groups)
    for train, test in field.splits:
        assert not set(groups[train]) & set(groups[test])
    rows = compare_candidates(wine_field(), candidates_of("diagonal,pooled"))
    assert (
        compare_candidates(field, candidates_of("diagonal,pooled")).results[-1].difference.se
        != rows.results[-1].difference.se
    )


# ------------------------------------------------------------------------ calibration


def too_sure(n: int, C: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, C))
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(C, p=p) for p in P])
    scores = factor * logits
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True), labels


@pytest.mark.slow
@pytest.mark.parametrize("C", [2, 4])
def test_overconfident_posteriors_are_softened(C):
    scores, labels = too_sure(3000, C, 4.0)
    found = recalibrated(scores, labels, np.arange(3000) % 5, None)
    softened = np.exp(found.log_posterior[np.arange(3000), labels])
    assert -np.log(softened).mean() < -scores[np.arange(3000), labels].mean() - 0.3
    if C == 4:
        assert float(found.map.temperature) == pytest.approx(4.0, rel=0.1) and "temperature" in found.words


@pytest.mark.slow
def test_honest_posteriors_stay_as_they_are():
    scores, labels = too_sure(3000, 3, 1.0)
    assert recalibrated(scores, labels, np.arange(3000) % 5, None) is None
    assert recalibrated(scores[:20], labels[:20], None, None) is None


@pytest.mark.slow
def test_sequences_are_softened_without_a_mistake_and_shifted_where_that_helps():
    """Forty sequences without a mistake are no evidence for certainty; a class that wins too often is put right."""
    scores = -300.0 * (1.0 - np.eye(4))[np.arange(40) % 4]
    assert recalibrated(scores, np.arange(40) % 4, np.arange(40) % 5, None) is None
    found = recalibrated(scores, np.arange(40) % 4, np.arange(40) % 5, None, sequences=True)
    assert 0.95 < np.exp(found.map.log_posterior(scores)).max(axis=1).mean() < 0.995
    scores, labels = too_sure(600, 3, 10.0)
    assert recalibrated(scores, labels, np.arange(600) % 5, None, sequences=True).method == "temperature"
    shifted = recalibrated(scores + [0.0, 15.0, 0.0], labels, np.arange(600) % 5, None, sequences=True)
    assert shifted.method == "logistic"
    right = [(lp.argmax(axis=1) == labels).sum() for lp in (scores + [0.0, 15.0, 0.0], shifted.log_posterior)]
    assert right[1] > right[0] + 50


def test_impossible_classes_have_a_floor():
    scores, labels = too_sure(500, 2, 6.0)
    scores[:7] = [0.0, -np.inf]
    found = recalibrated(scores, labels, None, None)
    assert np.isfinite(found.log_posterior).all() and np.isfinite(applied(found.map, scores)).all()
    assert applied(None, scores) is scores


CURVE = IsotonicMap([-1.0, 1.0, -1.0, 1.0], [0.2, 0.8, 0.2, 0.8], [0, 2, 4])


# --------------------------------------------------------------------------- the file


@pytest.mark.parametrize("calibration", [None, Temperature(2.0, 2), CURVE])
def test_a_table_classifier_comes_back_as_it_was(tmp_path, calibration):
    X, y = mixed()
    made = TableClassifier().fit(X, y)
    model = TableClassifier.from_fitted(made.classifier_, made.schema, calibration)
    model.card_ = '{"target": "sick"}'
    model.save(tmp_path / "m")
    again = lk.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X)) and again.card == {"target": "sick"}
    assert again.schema == model.schema and again.explain(X[:2]).decided.tolist() == model.predict(X[:2]).tolist()
    np.testing.assert_allclose(again.explain(X[:5]).posterior, again.predict_proba(X[:5]), atol=1e-12)
    np.testing.assert_allclose(again.predict_proba(X).sum(axis=1), 1.0)


def test_explanations_add_up_behind_a_linear_map():
    X, y = mixed()
    made = TableClassifier().fit(X, y)
    model = TableClassifier.from_fitted(made.classifier_, made.schema, LogisticMap(np.eye(2) / 3, [0.2, -0.2]))
    told = model.explain(X[1:9])
    P = model.log_posterior(X[1:9])
    at = [model.classes_.tolist().index(c) for c in told.decided]
    odds = [P[i, c] - P[i, 1 - c] for i, c in enumerate(at)]
    np.testing.assert_allclose(told.log_odds.sum(axis=1) + told.prior_log_odds, odds, atol=1e-9)


def test_a_table_classifier_types_its_columns():
    frame = mixed_frame()
    model = TableClassifier(kinds={"id": "ignore"}).fit(frame.drop("sick"), frame["sick"].to_numpy())
    assert {name: entry["kind"] for name, entry in model.schema.items()} == KINDS
    assert model.feature_names_in_.tolist() == frame.drop("sick").columns and model.n_features_in_ == frame.width - 1
    assert model.score(frame, frame["sick"].to_numpy()) > 0.75
    assert model.unseen(frame) == {}
    with pytest.raises(DataError, match='the model needs column "size"'):
        model.predict(frame.drop("size"))


def test_a_table_classifier_takes_arrays_and_refuses_others():
    X, y, _ = wine()
    model = TableClassifier().fit(X, y)
    assert np.array_equal(model.predict(X), lk.BayesClassifier(lk.GaussianDensity("diagonal")).fit(X, y).predict(X))
    with pytest.raises(DataError, match=r"the 13 columns of training, in that order: x0, x1, .* got shape \(178, 3\)"):
        model.predict(X[:, :3])


def answers_first(n: int = 200) -> tuple[pl.DataFrame, np.ndarray]:
    """Columns in another order than that of the models inside (numbers, counts, answers), and one that is excluded."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, n)
    visits, size = rng.poisson(1.0 + 2.0 * y), rng.normal(4.0 * y, 1.5)
    columns = {
        "flag": (rng.random(n) < 0.3 + 0.4 * y) * 1.0,
        "same": np.full(n, 7.0),
        "visits": visits * 1.0,
        "size": size,
    }
    return pl.DataFrame(columns), y


@pytest.mark.parametrize("array_at_fit", [False, True])
def test_arrays_are_read_in_the_order_of_the_training_table(tmp_path, array_at_fit):
    X, y = answers_first()
    model = TableClassifier().fit(X.to_numpy() if array_at_fit else X, y)
    frame = X.rename({name: f"x{j}" for j, name in enumerate(X.columns)}) if array_at_fit else X
    expected = TableClassifier().fit(X, y).predict_proba(X)
    assert list(model.schema) != model.feature_names_in_.tolist() == frame.columns
    model.save(tmp_path / "m")
    for one in (model, lk.load(tmp_path / "m")):
        np.testing.assert_allclose(one.predict_proba(frame), expected, atol=1e-12)
        np.testing.assert_allclose(one.predict_proba(X.to_numpy()), expected, atol=1e-12)
        np.testing.assert_allclose(one.predict_proba(X.to_numpy().tolist()), expected, atol=1e-12)
        assert one.decide(X.to_numpy()).tolist() == one.decide(frame).tolist()
        with pytest.raises(DataError, match=rf"the 4 columns of training.* {frame.columns[0]}, {frame.columns[1]}"):
            one.predict(X.drop("same").to_numpy())


def test_a_table_classifier_decides_as_it_was_told():
    X, y = mixed()
    clf = clone(next(r for r in model_candidates(KINDS, {"reject_below": 0.99}) if r.key == "naive-bayes").estimator)
    model = TableClassifier(clf).fit(X, y)
    assert lk.REJECT in model.decide(X) and model.reject_below == 0.99
    assert lk.NOVEL in model.decide(X.with_columns(size=pl.lit(1e9)), novelty=0.01)
    assert lk.REJECT not in model.predict(X)
    with pytest.raises(AttributeError):
        _ = model.price


ODD = '{"a": {"kind": "odd"}}'


@pytest.mark.parametrize(
    "change",
    [
        {"schema_": "[]"}, {"schema_": "{"}, {"card_": "3"}, {"schema_": ODD}, {"calibration_": {"map": "Eval"}},
        {"columns_": '["size"]'}, {"columns_": "3"}, {"columns_": None},
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_no_model(tmp_path, change):
    X, y = mixed()
    model = TableClassifier().fit(X, y)
    vars(model).update(change)
    with pytest.raises(ModelFileError):
        lk.save(model, tmp_path / "m")


# ------------------------------------------------------------------- class frequencies


def test_class_frequencies_are_a_dummy_with_costs(tmp_path):
    X, y = mixed()
    w = np.arange(len(y)) % 3
    model = PriorClassifier().fit(X, y, w)
    dummy = DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y, w)
    np.testing.assert_allclose(model.predict_proba(X[:2]), dummy.predict_proba(np.zeros((2, 1))))
    dear = PriorClassifier(cost=[[0, 1], [99, 0]]).fit(X, y)
    assert set(dear.predict(X)) == {"ill"} and set(model.predict(X)) == {"well"}
    dear.save(tmp_path / "m")
    assert np.array_equal(lk.load(tmp_path / "m").predict(X), dear.predict(X))
    assert set(model.decide(X, novelty=0.1)) == {"well"}
    with pytest.raises(DomainError, match="nothing to explain"):
        TableClassifier(PriorClassifier()).fit(X, y).explain(X)


def test_messages_of_a_table_model_speak_python():
    X, y = mixed()
    model = TableClassifier().fit(X, y)
    calls = [
        lambda: model.predict(X.drop("size")),
        lambda: model.predict(X.with_columns(size=pl.lit("A11"))),
        lambda: TableClassifier(kinds={"siez": "real"}).fit(X, y),
        lambda: TableClassifier(kinds={"color": "real"}).fit(X, y),
        lambda: lk.automl.TableClusterer(10_000).fit(X),
    ]
    for call in calls:
        with pytest.raises(DataError) as caught:
            call()
        assert "--" not in str(caught.value)


def test_a_table_model_speaks_in_its_own_name():
    X, y = mixed()
    model = TableClassifier().fit(X, y)
    with pytest.warns(lk.FitWarning, match=r"^TableClassifier: 'color' holds values that did not occur in training"):
        model.predict(X.with_columns(color=pl.lit("mauve")))
    with pytest.warns(lk.FitWarning, match=r"^TableClassifier: all labels are 'ill'"):
        TableClassifier().fit(X, np.full(len(y), "ill"))
    with pytest.raises(DataError, match=r"^TableClassifier: y must have one label per row of X"):
        TableClassifier().fit(X, y[:-1])
    with pytest.raises(DataError, match=r"^TableClassifier requires y"):
        TableClassifier().fit(X, None)
    with pytest.raises(DataError, match=r'^TableClassifier: the model needs column "size"'):
        model.predict(X.drop("size"))
    with pytest.warns(lk.FitWarning, match=r"^SequenceClassifier: all labels are 1, so every sequence"):
        lk.automl.SequenceClassifier().fit([np.arange(5.0)[:, None], np.arange(4.0)[:, None]], [1, 1])


def test_full_covariances_need_rows_for_so_many_columns():
    wide = {f"x{i}": "real" for i in range(1200)}
    kept, words = affordable(model_candidates(wide, rows=[50, 50]), 400)
    assert [candidate.key for candidate in kept][:4] == ["prior", "nearest-centroid", "spherical", "diagonal"]
    assert not {"pooled", "full", "shrunk-pooled", "student-t"} & {candidate.key for candidate in kept}
    assert words.startswith("Left out, for the rows are too few for full covariances") and "pooled,pooled-mean" in words
    for kinds, rows in ((wide, [1500, 1500]), ({f"x{i}": "real" for i in range(900)}, [20, 20])):
        assert all(candidate.carried for candidate in model_candidates(kinds, rows=rows))


def test_a_wide_frame_is_asked_for_its_columns_once():
    """Diagonal distributions start without a d × d matrix, and names are not looked up in a new list per column."""
    asked = []

    class Counted(pl.DataFrame):
        @property
        def columns(self):
            asked.append(1)
            return super().columns

    from likely.estimation.input_validation import refuse_dates

    refuse_dates(Counted({f"x{i}": [1.0] for i in range(50)}), "test", [f"x{i}" for i in range(50)])
    assert len(asked) < 5
    big = lk.Gaussian.blank(np.random.default_rng(0).normal(size=(3, 200_000)), kind="diagonal")
    assert big.covariance.shape == (200_000,)  # the full start would take 320 GB

"""Choosing the number of components: each criterion on data with a known answer, and the printed table."""

from typing import Any

import numpy as np
import pytest

import likely as lk
from likely.mixture.estimators import choose_components as choosing
from likely.mixture.estimators.choose_components import ComponentChoice, choose_components
from likely.mixture.sparse_weights import SparseWeights


def blobs(centers: Any, rows: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, 1.0, (rows, len(c))) for c in centers])


THREE = blobs([[-5, -5], [0, 0], [5, 5]], 60)


def by_prior(X: Any, numbers: Any = range(1, 11), component: Any = None, seed: int = 0, **how: Any) -> ComponentChoice:
    estimator = lk.MixtureDensity(component, random_state=seed, **how)
    return choose_components(estimator, X, numbers, criteria=("prior",))


# ------------------------------------------------------------------- a sparse prior


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("rows", [10, 40, 300])
def test_one_gaussian_is_one_component(rows: int, columns: int) -> None:
    choice = by_prior(np.random.default_rng(0).normal(size=(rows, columns)), range(1, 8))
    assert choice.best == {"prior": 1} and choice.n_components_mml == 1
    assert choice.converged["prior"] is True


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize(("rows", "seeds"), [(40, 10), (300, 6), (2000, 1)])
def test_one_gaussian_is_mostly_one_component(rows: int, seeds: int, columns: int) -> None:
    draws = [np.random.default_rng(100 + s).normal(size=(rows, columns)) for s in range(seeds)]
    found = [by_prior(X, seed=s).n_components_mml for s, X in enumerate(draws)]
    assert found.count(1) >= 0.8 * seeds  # parts that rows set apart by chance keep their own mean and spread


@pytest.mark.slow
@pytest.mark.parametrize(
    ("centers", "rows"),
    [
        ([[-5, -5], [0, 0], [5, 5]], 150),
        ([[-5, -5], [0, 0], [5, 5]], 15),
        ([[0.0], [3.0]], 150),
        ([[0, 0], [3, 0]], 150),
    ],
)
def test_groups_are_counted(centers: Any, rows: int) -> None:
    choice = by_prior(blobs(centers, rows))
    assert choice.best["prior"] == len(centers) and choice.converged["prior"]


@pytest.mark.slow
def test_a_small_group_far_away_is_found() -> None:
    assert by_prior(np.concatenate([blobs([[0, 0]], 300), blobs([[8, 8]], 10, 1)])).n_components_mml == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical", "pooled"])
def test_any_covariance_finds_three(kind: str) -> None:
    assert by_prior(THREE, range(1, 7), lk.GaussianDensity(kind)).n_components_mml == 3


def test_counts_and_words_have_a_message_too() -> None:
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.poisson(m, (100, 2)) for m in (1.0, 20.0)])
    assert by_prior(counts, range(1, 6), lk.PoissonDensity()).n_components_mml == 2


@pytest.mark.slow
def test_the_answer_is_the_shortest_message_on_the_way() -> None:
    choice = by_prior(THREE, range(1, 9))
    seen = np.isfinite(choice.message_length)
    assert seen[:3].all() and choice.numbers[int(np.nanargmin(choice.message_length))] == choice.n_components_mml == 3
    assert np.diff(choice.message_length[:3]).max() < 0  # each of the three pays


def test_the_message_of_one_component_is_that_of_its_gaussian() -> None:
    choice, n = by_prior(THREE, [1]), len(THREE)
    likelihood = lk.MixtureDensity(n_components=1).fit(THREE).score_samples(THREE).sum()
    assert choice.message_length[0] == pytest.approx((5 + 1) / 2 * np.log(n) - likelihood, rel=1e-9)


@pytest.mark.slow
def test_the_way_ends_at_the_smallest_number() -> None:
    choice = by_prior(np.random.default_rng(0).normal(size=(300, 2)), range(2, 6))
    assert choice.n_components_mml is not None and choice.n_components_mml <= 2
    np.testing.assert_array_equal(choice.numbers, [2, 3, 4, 5])


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits() -> None:
    first, again = (by_prior(THREE, range(1, 7), seed=3).message_length for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_what_was_said_of_the_parts_stands() -> None:
    sparse = SparseWeights.costing(2, 1.0)
    given = lk.MixtureDensity(n_components=2, random_state=0).fit(THREE).prior_
    both = choosing._over_parts(lk.priors.MixturePrior(None, given.components), sparse)
    assert both.components is given.components and both.weights is sparse
    assert choosing._over_parts("weak", sparse) is sparse


def test_an_unsettled_walk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "PATIENT", {"tol": 0.0, "max_iter": 1})
    choice = by_prior(np.random.default_rng(0).normal(size=(200, 2)), range(1, 5), max_iter=2, tol=0.0)
    assert choice.converged == {"prior": False}
    assert "NOT converged: the sparse prior: allow more refits" in str(choice)


def test_an_unsettled_fit_is_said_with_its_number() -> None:
    estimator = lk.MixtureDensity(random_state=0, max_iter=1, tol=0.0)
    choice = choose_components(estimator, THREE, [1, 2, 4], criteria=("bic",))
    np.testing.assert_array_equal(choice.converged["bic"][1:], [False, False])
    assert "NOT converged: BIC of" in str(choice) and "2, 4: allow more refits" in str(choice)
    settled = choose_components(lk.MixtureDensity(random_state=0, tol=1e-4), THREE, [3], criteria=("bic",))
    assert settled.converged["bic"].all() and "NOT" not in str(settled)


# --------------------------------------------------------------------------- few rows


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [np.ones((1, 2)), np.ones((7, 2)), [[1.0, 2.0]]])
def test_one_distinct_row_is_one_component(rows: Any) -> None:
    choice = choose_components(lk.MixtureDensity(random_state=0), rows)
    assert choice.numbers == [1] and choice.best == {"bic": 1, "held-out": 1, "prior": 1}
    assert "distinct rows: 1" in str(choice) and "no rows could be held out" in str(choice)


@pytest.mark.parametrize("by", ["bic", "held-out", "prior"])
def test_there_are_no_more_components_than_distinct_rows(by: str) -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 3, axis=0)
    choice = choose_components(lk.MixtureDensity(random_state=0), X, range(1, 11), criteria=(by,))
    assert choice.numbers == [1, 2, 3, 4] and choice.distinct == 4 and choice.best[by] <= 4
    assert "larger numbers were skipped; distinct rows: 4" in str(choice)
    assert choose_components(lk.MixtureDensity(random_state=0), X, [8], criteria=(by,)).numbers == [4]
    assert choose_components(lk.MixtureDensity(random_state=0), X, [2], criteria=(by,)).distinct is None


@pytest.mark.slow
def test_ten_rows_are_not_ten_components() -> None:
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=(10, 2))
        assert choose_components(lk.MixtureDensity(random_state=0), X, criteria=("bic",)).best["bic"] < 10


# --------------------------------------------------------------------------- weights


@pytest.mark.slow
def test_weights_are_copies() -> None:
    X, times = THREE[::4], np.random.default_rng(1).integers(1, 4, len(THREE[::4]))
    how = {"random_state": 0, "tol": 1e-9, "max_iter": 2000}
    weighted = choose_components(lk.MixtureDensity(**how), X, [1, 2, 3], sample_weight=times)
    copied = choose_components(lk.MixtureDensity(**how), np.repeat(X, times, axis=0), [1, 2, 3])
    assert weighted.best == copied.best
    np.testing.assert_allclose(weighted.bic, copied.bic, rtol=1e-7)
    np.testing.assert_allclose(weighted.held_out, copied.held_out, rtol=1e-6)
    np.testing.assert_allclose(weighted.message_length, copied.message_length, rtol=1e-6)


@pytest.mark.slow
def test_rows_without_weight_are_not_there() -> None:
    weight = np.ones(len(THREE) + 30)
    weight[len(THREE) :] = 0
    more = np.concatenate([THREE, np.full((30, 2), 50.0) + np.arange(30)[:, None]])
    estimator = lk.MixtureDensity(random_state=0)
    with_them = choose_components(estimator, more, [1, 3], sample_weight=weight)
    without = choose_components(estimator, THREE, [1, 3])
    np.testing.assert_allclose(with_them.bic, without.bic, rtol=1e-9)
    np.testing.assert_allclose(with_them.held_out, without.held_out, rtol=1e-9)
    np.testing.assert_allclose(with_them.message_length, without.message_length, rtol=1e-9, equal_nan=True)


# ------------------------------------------------------------------------- in words


def invented(**more: Any) -> ComponentChoice:
    held, error = np.array([-5.0, -4.01, -4.0]), np.array([0.1, 0.02, 0.0])
    message = np.array([300.0, 250.0, np.nan])
    best = {"bic": 2, "held-out": 2, "prior": 2}
    return ComponentChoice([1, 2, 3], np.array([610.0, 505.0, 510.0]), held, error, message, 2, best, **more)


def test_the_choice_and_the_largest_are_distinguished() -> None:
    lines = str(invented()).splitlines()
    assert lines[2].endswith("chosen by BIC, held-out, the sparse prior")
    assert lines[3].endswith("largest held-out") and "chosen" not in lines[3]
    assert "standard error of the difference to the largest held-out" in str(invented())
    assert "a sparse prior leaves 2 of 3 components" in str(invented())
    assert lines[3].split()[-3] == "–"  # no sparse prior came by


@pytest.mark.slow
def test_the_pick_is_within_an_error_of_the_largest() -> None:
    choice = choose_components(lk.MixtureDensity(random_state=0), THREE, range(1, 5), criteria=("held-out",))
    picked = choice.numbers.index(choice.best["held-out"])
    assert choice.held_out.max() - choice.held_out[picked] <= choice.held_out_error[picked]
    below = range(picked)
    assert all(choice.held_out.max() - choice.held_out[i] > choice.held_out_error[i] for i in below)


def test_the_picture_shows_every_way() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = lk.plots.plot_component_criteria(invented())
    labels = {line.get_label() for line in ax.lines}
    assert "2 × message length" in labels and "2 by prior" in ax.get_xlabel()
    pyplot.close(ax.figure)


# --------------------------------------------------------------------------- tables


@pytest.mark.slow
@pytest.mark.parametrize("by", ["bic", "prior"])
def test_a_table_says_where_the_search_stopped(by: str) -> None:
    pl = pytest.importorskip("polars")
    from likely.automl.table_mixture import discover

    frame = pl.DataFrame({"a": THREE[:, 0], "b": THREE[:, 1]})
    found = discover(frame, {"a": "real", "b": "real"}, criterion=by, n_init=1)
    assert found.choice.best == {"bic": 3, "held-out": 3, "prior": 3}
    told = {"bic": "1 … 6 (of 10: the search stops three beyond the lowest BIC)", "prior": "weights of 10"}
    assert found.why.startswith("3 clusters: ") and told[by] in found.why


@pytest.mark.slow
def test_every_way_of_a_table_is_within_its_numbers() -> None:
    """A sparse prior that wants more than BIC's search tried makes it go on so far."""
    from likely.automl.table_mixture import _by_bic

    estimator = lk.MixtureDensity(random_state=0, tol=1e-4)
    first = _by_bic(estimator, THREE[:40], None, 10)
    more = _by_bic(estimator, THREE[:40], None, 10, len(first.numbers) + 2, first)
    assert len(first.numbers) == first.best["bic"] + 3 and len(more.numbers) == len(first.numbers) + 2
    np.testing.assert_array_equal(more.bic[: len(first.bic)], first.bic)


# ------------------------------------------------------------------------- real rows


@pytest.mark.slow
def test_old_faithful_has_two_or_three(data_dir: Any) -> None:
    """Messages of two and of three are within a nat of each other: the long eruptions are not quite Gaussian."""
    X = np.loadtxt(data_dir / "timeseries" / "faithful.csv", delimiter=",", skiprows=1)
    choice = by_prior(X, range(1, 8))
    assert choice.n_components_mml in (2, 3)
    assert choice.message_length[0] - choice.message_length[1] > 100
    assert abs(choice.message_length[2] - choice.message_length[1]) < 2


def test_weights_are_copies_where_bins_count_rows():
    x = np.random.default_rng(2).normal(size=(60, 1))
    how = {"numbers": range(1, 3), "criteria": ["bic", "prior"]}
    mixture = lk.MixtureDensity(lk.HistogramDensity("knuth"), 3, random_state=0)
    weighted = lk.choose_components(mixture, x, sample_weight=np.full(60, 2.0), **how)
    copies = lk.choose_components(mixture, np.repeat(x, 2, axis=0), **how)
    np.testing.assert_allclose(weighted.bic, copies.bic, rtol=1e-9)
    np.testing.assert_allclose(weighted.message_length, copies.message_length, rtol=1e-9)

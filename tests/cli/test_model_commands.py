"""`likely evaluate`, `show`, `explain`, `card` and `warm`: what one asks of a model that exists."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss

import likely as lk
from likely.cli.warm import compiled_loops
from tests.cli.tables import mixed_frame, run, wine_frame, write


@pytest.mark.slow
def test_evaluate_measures_new_rows(mixed_folder, tmp_path):
    frame = mixed_frame(300, 11)
    table = write(frame, tmp_path / "new.csv")
    told = json.loads(run("evaluate", mixed_folder / "model.likely", table, "--json").stdout)
    model = lk.load(mixed_folder / "model.likely")
    wrong = (model.predict(frame) != frame["sick"].to_numpy()).mean()
    assert told["error"]["value"] == pytest.approx(wrong)
    assert told["log_loss"]["value"] == pytest.approx(log_loss(frame["sick"].to_list(), model.predict_proba(frame)))
    done = run("evaluate", mixed_folder / "model.likely", table, "--report", tmp_path / "r.html")
    assert "300 rows, 2 classes" in done.stdout and "300 got a class" in done.stdout and done.stderr == ""
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "model.likely on new.csv" in page and len(page) < 500_000


def test_class_probabilities_of_training_change_no_figure(mixed_folder):
    own = lk.load(mixed_folder / "model.likely").class_prior_
    told = ",".join(f"{c}={p!r}" for c, p in zip(("ill", "well"), own.tolist(), strict=True))
    asked = ("evaluate", mixed_folder / "model.likely", mixed_folder / "sick.csv", "--json")
    plain, again = (json.loads(run(*asked, *more).stdout) for more in ((), ("--class-prior", told)))
    assert own[0] != 0.5 and again["log_loss"]["value"] == pytest.approx(plain["log_loss"]["value"], rel=1e-9)


def test_evaluate_knows_the_training_rows(wine_folder):
    done = run("evaluate", wine_folder / "model.likely", wine_folder / "wine.csv")
    assert "training rows of the model" in done.stderr


def test_evaluate_takes_weights_and_other_targets(mixed_folder, tmp_path):
    frame = mixed_frame(60, 4).rename({"sick": "truth"}).with_columns(w=pl.Series([3] + [0] * 59))
    table = write(frame, tmp_path / "t.csv")
    done = run("evaluate", mixed_folder / "model.likely", table, "--target", "truth", "--weight", "w", "--json")
    told = json.loads(done.stdout)
    assert told["error"]["value"] in (0.0, 1.0) and np.sum(told["confusion"]) == 3


@pytest.mark.parametrize(
    ("change", "options", "code", "words"),
    [
        (lambda f: f, ("--target", "clas"), 3, 'did you mean "class"'),
        (lambda f: f.with_columns(pl.lit("Merlot").alias("class")), (), 3, 'row 1: labels must be among'),
        (lambda f: f.with_columns(pl.lit(None, dtype=pl.String).alias("class")), (), 3, "labels are needed"),
        (lambda f: f, ("--report", "nowhere/r.html"), 1, "make the folder first"),
    ],
)  # fmt: skip
def test_evaluate_refuses(wine_folder, tmp_path, change, options, code, words):
    table = write(change(wine_frame()), tmp_path / "t.csv")
    done = run("evaluate", wine_folder / "model.likely", table, *options)
    assert (done.exit_code, done.stdout) == (code, "") and words in done.stderr


def test_show_tells_classes_columns_and_costs(wine_folder, mixed_folder):
    text = run("show", wine_folder / "model.likely").stdout
    assert "learned from" in text and "ask an expert" in text and "rejecting costs 0.3" in text and "flavanoids" in text
    told = json.loads(run("show", mixed_folder / "model.likely", "--json").stdout)
    assert told["columns"]["color"] == {"kind": "category", "levels": ["blue", "green", "red"]}
    classes = next(table for table in told["description"]["tables"] if table["title"] == "classes")
    assert sum(row[1] for row in classes["rows"]) == pytest.approx(1) and told["card"]["target"] == "sick"


@pytest.mark.parametrize("thing", ["value", "density", "classifier", "unfitted"])
def test_show_opens_any_model_file(tmp_path, thing):
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.repeat([0, 1], 25)
    made = {
        "value": lk.Gaussian([0.0, 1.0], [2.0, 3.0]), "density": lk.GaussianDensity().fit(X),
        "classifier": lk.BayesClassifier().fit(X, y), "unfitted": lk.GaussianDensity("diagonal"),
    }[thing]  # fmt: skip
    lk.save(made, tmp_path / "m")
    done = run("show", tmp_path / "m")
    assert done.exit_code == 0 and done.stdout.startswith(type(made).__name__)
    assert json.loads(run("show", tmp_path / "m", "--json").stdout)["content"]["class"] == type(made).__name__


def two_groups() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (n, 3)) for m, n in ((0.0, 60), (8.0, 40))])
    return pl.DataFrame(X, schema=["height", "width", "depth"])


@pytest.mark.parametrize(("made", "words"), [
    (lk.KMeans(2, random_state=0), ("2 clusters in 3 columns, fitted to 100 rows", "60.0%", "40.0%", "height")),
    (
        lk.AgglomerativeClustering(2),
        ("2 clusters of 100 rows, ward linkage", "60.0%", "heights of the last merges"),
    ),
    (lk.PCA(2), ("2 components of 3 columns, fitted to 100 rows", "of the variance", "cumulative", "width")),
    (lk.MixtureDensity(None, 2, random_state=0), ("a mixture of 2 components: full Gaussian", "0.6000", "depth")),
    (lk.MixtureClusterer(None, 2, random_state=0), ("a mixture of 2 components", "0.4000", "BIC")),
])  # fmt: skip
def test_show_gives_a_short_account_of_clusters_and_factors(tmp_path, made, words):
    frame = two_groups()
    lk.save(made.fit(frame), tmp_path / "m")
    text = run("show", tmp_path / "m").stdout
    assert all(word in text for word in words), text
    assert "float64" not in text and len(text.splitlines()) < (45 if isinstance(made, lk.MixtureDensity) else 12)
    if isinstance(made, lk.KMeans | lk.AgglomerativeClustering):  # centers are the means of the rows
        for k in range(2):
            mean = frame["height"].to_numpy()[made.labels_ == k].mean()
            assert f"{mean:.4g}" in text


def test_show_tells_shares_of_variance(tmp_path):
    frame = two_groups()
    lk.PCA().fit(frame).save(tmp_path / "m")
    values = np.linalg.eigvalsh(np.cov(frame.to_numpy().T))[::-1]
    text = run("show", tmp_path / "m").stdout
    assert all(f"{share:.2%}" in text for share in values / values.sum())


@pytest.mark.parametrize("part", [
    lk.CategoricalDensity(), lk.PoissonDensity(), lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2),
    lk.ProductDensity([("real", lk.GaussianDensity(), ["height"]), ("n", lk.PoissonDensity(), ["width"])]),
])  # fmt: skip
def test_show_tells_of_mixtures_of_any_parts(tmp_path, part):
    frame = two_groups().select(pl.col("height", "width").round().abs())
    lk.MixtureDensity(part, 2, random_state=0).fit(frame).save(tmp_path / "m")
    done = run("show", tmp_path / "m")
    assert done.exit_code == 0 and "a mixture of 2 components" in done.stdout and "weight" in done.stdout


def test_show_limits_what_it_shows(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 40))
    lk.KMeans(50, random_state=0).fit(X).save(tmp_path / "m")
    text = run("show", tmp_path / "m").stdout
    assert "… and 20 more clusters" in text and "… and 33 more columns" in text and len(text.splitlines()) <= 40


def test_show_says_what_was_not_fitted(tmp_path):
    lk.save(lk.KMeans(3), tmp_path / "m")
    assert "not fitted" in run("show", tmp_path / "m").stdout


def test_show_of_clusters_from_python_has_no_empty_column(tmp_path):
    lk.automl.TableClusterer(2, n_init=1).fit(two_groups()).save(tmp_path / "m")
    assert "what makes it different" not in run("show", tmp_path / "m").stdout


def test_explain_says_which_columns_decide(wine_folder):
    done = run("explain", wine_folder / "model.likely", wine_folder / "wine.csv", "--row", 84, "--row", 1)
    assert done.stdout.startswith("row 84: Grignolino") and "\nrow 1: Barolo" in done.stdout
    assert done.stdout.count("given all other columns: they need not add up") == 1
    lines = run("explain", wine_folder / "model.likely", wine_folder / "wine.csv", "--row", 84, "--json").stdout
    told = json.loads(lines)
    assert told["row"] == 84 and told["decided"] == "Grignolino"
    assert {c["column"] for c in told["columns"]} == set(wine_frame().columns) - {"class"}
    assert {c["column"]: c["value"] for c in told["columns"]}["hue"] == wine_frame()["hue"][83]


@pytest.mark.slow
def test_explain_says_that_the_cost_decided_and_when_log_odds_add_up(tmp_path):
    path = write(mixed_frame(), tmp_path / "t.csv")
    (tmp_path / "cost.csv").write_text("action,ill,well\nill,0,1\nwell,20,0\n")
    run("fit", path, "--target", "sick", "--no-calibrate", "-q", "--cost", tmp_path / "cost.csv",
        "--models", "naive-bayes", "-o", tmp_path / "naive")  # fmt: skip
    decided = pl.read_csv(run("predict", tmp_path / "naive", path).stdout.encode())
    against = (decided["decision"] == "ill") & (decided["p(well)"] > 0.5)
    assert against.any() and (decided["reason"].is_not_null() == against).all()
    row = int(against.arg_true()[0])
    words = "the most probable class is well"
    reason = decided["reason"][row]
    assert reason.startswith(words) and "but deciding ill costs less on average: 0." in reason
    text = run("explain", tmp_path / "naive", path, "--row", row + 1).stdout
    assert words in text and "need not add up" not in text  # naive Bayes: they do
    (plain,) = run("explain", tmp_path / "naive", path, "--row", row + 1, "--json").stdout.splitlines()
    told = json.loads(plain)
    odds = told["prior_log_odds"] + sum(c["log_odds"] for c in told["columns"])
    assert odds == pytest.approx(np.log(told["posterior"]["ill"] / told["posterior"]["well"]))
    assert told["reason"].startswith(words)


def test_explain_names_columns_of_all_kinds_rightly(mixed_folder):
    done = run("explain", mixed_folder / "model.likely", mixed_folder / "sick.csv", "--row", 2, "--json")
    values = {c["column"]: c["value"] for c in json.loads(done.stdout)["columns"]}
    row = mixed_frame().row(1, named=True)
    assert values == {name: row[name] for name in ("size", "width", "visits", "color", "smokes")}


def test_explain_refuses_rows_beyond(wine_folder):
    done = run("explain", wine_folder / "model.likely", wine_folder / "wine.csv", "--row", 999)
    assert done.exit_code == 3 and "has 178 rows" in done.stderr


def test_card_has_its_chapters(wine_folder, tmp_path):
    run("card", wine_folder / "model.likely", "-o", tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    chapters = [line for line in text.splitlines() if line.startswith("## ")]
    assert chapters == [
        "## What it is", "## Intended use", "## Data", "## How it was chosen", "## Performance",
        "## Costs and reject options", "## Warnings", "## Limitations", "## How to reproduce",
    ]  # fmt: skip
    told = json.loads((wine_folder / "fit.json").read_text())
    assert told["fingerprint"] in text and told["command"] in text and "| ask an expert | 2 | 2 | 2 |" in text
    assert text == run("card", wine_folder / "model.likely").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "words", "held"),
    [
        ("k-nearest-neighbors", "compares with the nearest of", "rows"),
        ("kernel-density", "one density per class", "rows"),
        ("nearest-centroid", "compares with the mean of each class", "rows"),
        ("laplace", "one density per class", "values of columns"),
        ("full", "one density per class", None), ("prior", "uses no column", None),
    ],
)  # fmt: skip
def test_card_says_how_it_decides_and_whether_rows_are_inside(tmp_path, key, words, held):
    table = write(wine_frame(), tmp_path / "t.csv")
    done = run("fit", table, "--target", "class", "--models", key, "--no-baselines", "-o", tmp_path / "m.likely")
    assert done.exit_code == 0, done.stderr
    text = run("card", tmp_path / "m.likely").stdout
    assert words in text and ("The model file holds" in text) == (held is not None)
    assert held is None or f"holds {held} of its training data" in text
    first = str(wine_frame()["proline"][0]).encode()  # and the file is asked, too: as numbers, eight bytes each
    found = np.float64(first.decode()).tobytes() in (tmp_path / "m.likely").read_bytes()
    assert found == (held is not None)


def test_card_needs_a_model_that_was_fitted_here(tmp_path):
    frame = wine_frame()
    lk.BayesClassifier().fit(frame.drop("class"), frame["class"].to_numpy()).save(tmp_path / "m")
    done = run("card", tmp_path / "m")
    assert done.exit_code == 4 and "likely fit" in done.stderr


@pytest.mark.slow
def test_warm_compiles_every_loop():
    done = run("warm")
    loops = compiled_loops()
    assert done.exit_code == 0 and f"{len(loops)} compiled functions are ready" in done.stdout
    assert [name for name, signatures in loops.items() if not signatures] == []


def test_warm_compiles_the_loops_of_some_subjects():
    done = run("warm", "dtw", "dtw")
    assert done.exit_code == 0 and done.stderr.count("dtw:") == 1 and "kalman" not in done.stderr
    asked = run("warm", "kalmann")
    assert asked.exit_code == 2 and "unknown subject 'kalmann': choose from gaussian, missing" in asked.stderr


@pytest.mark.parametrize("name", ["fit", "predict", "evaluate", "explain", "show", "card", "warm"])
def test_help_has_an_example(name):
    done = run(name, "--help")
    assert done.exit_code == 0 and f"likely {name} " in done.stdout.replace("\n", " ")

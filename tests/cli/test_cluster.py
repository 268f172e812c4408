"""`likely cluster`: groups of rows, what makes them different, and files that tell of them."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import likely as lk
from likely.cli.clustering.cluster_profiles import profile, trait_words
from likely.cli.clustering.cluster_run import ClusterJob
from likely.report.cluster_study import ClusterStudy
from likely.report.page import cluster_html
from likely.report.sections.clusters_section import number_curve
from likely.report.study import Study
from tests.cli.tables import run, write


def groups(n: int = 200, seed: int = 0) -> pl.DataFrame:
    """Three groups that differ in two numbers, a count and a color; a key, gaps and a note of who is who."""
    rng = np.random.default_rng(seed)
    k = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    size = rng.normal(np.array([0.0, 8.0, 16.0])[k])
    size[::11] = np.nan
    color = np.where(rng.random(n) < 0.9, np.array(["red", "blue", "green"], dtype=object)[k], "gray").astype(object)
    color[::13] = None
    return pl.DataFrame({
        "case": [f"case-{i:04d}" for i in range(n)], "size": pl.Series(size).fill_nan(None),
        "width": rng.normal(np.array([1.0, -5.0, 4.0])[k]), "visits": rng.poisson(np.array([1.0, 9.0, 1.0])[k]),
        "color": color.tolist(), "who": k,
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the number of clusters is chosen, with all its files."""
    at = tmp_path_factory.mktemp("clusters")
    write(groups(), at / "t.csv")
    done = run("cluster", at / "t.csv", "--id", "case", "--ignore", "who", "--max-components", 4, "--n-init", 2, "-o",
               at / "out.csv", "--save-model", at / "m.likely", "--report", at / "r.html", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (at / "told.json").write_text(done.stdout)
    (at / "told.txt").write_text(done.stderr)
    return at


@pytest.mark.slow
def test_the_groups_are_found_and_described(folder):
    facts, text = json.loads((folder / "told.json").read_text()), (folder / "told.txt").read_text()
    assert len(facts["clusters"]) == 3 and facts["choice"]["best"]["bic"] == 3
    sizes = [c["rows"] for c in facts["clusters"]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == 200
    largest = facts["clusters"][0]
    size, width = groups()["size"].to_numpy(), largest["differences"]["size"]
    rows = pl.read_csv(folder / "out.csv")
    mine = size[rows["cluster"].to_numpy() == 1]
    assert width["value"] == pytest.approx(np.nanmean(mine))
    assert width["apart"] == pytest.approx((np.nanmean(mine) - np.nanmean(size)) / np.nanstd(size))
    assert "3 clusters: the lowest BIC" in text and "certainty" in text and "color = red" in text
    assert set(facts["excluded"]) == {"case", "who"} and facts["certainty"]["mean"] > 0.95


def test_every_number_that_is_tried_is_reported(folder):
    facts, text = json.loads((folder / "told.json").read_text()), (folder / "told.txt").read_text()
    for k, bic in zip(facts["choice"]["numbers"], facts["choice"]["bic"], strict=True):
        assert f": {k} cluster{'s' * (k > 1)}, BIC {bic:,.1f}\n" in text
    assert "learning 3 clusters from all rows" in text


def test_rows_keep_their_columns_and_gain_cluster_and_probability(folder):
    before, after = pl.read_csv(folder / "t.csv"), pl.read_csv(folder / "out.csv")
    assert after.columns == [*before.columns, "cluster", "probability"]
    assert after["case"].to_list() == before["case"].to_list()
    assert adjusted_rand_score(before["who"], after["cluster"]) > 0.95
    assert after["probability"].min() >= 1 / 3 and after["probability"].max() <= 1


def test_the_model_gives_clusters_of_new_rows(folder):
    done = run("predict", folder / "m.likely", folder / "t.csv", "--keep", "case")
    found = pl.read_csv(done.stdout.encode())
    before = pl.read_csv(folder / "out.csv")
    assert found["cluster"].to_list() == before["cluster"].to_list()
    np.testing.assert_allclose(found["probability"], before["probability"])
    np.testing.assert_allclose(found.select("p(1)", "p(2)", "p(3)").sum_horizontal(), 1.0)
    model = lk.load(folder / "m.likely")
    assert np.array_equal(model.predict(groups().drop("who")), before["cluster"].to_numpy())
    lines = run("predict", folder / "m.likely", folder / "t.csv", "--json", "--no-proba").stdout.splitlines()
    assert json.loads(lines[0])["cluster"] == before["cluster"][0]


def test_words_never_seen_and_rows_like_none_are_novel(folder):
    odd = groups(3, 1).with_columns(color=pl.Series(["ultraviolet", "red", "red"]), size=pl.Series([0.0, 1e4, 0.0]))
    done = run("predict", folder / "m.likely", "-", "--novelty", 0.01, stdin=odd.write_csv())
    found = pl.read_csv(done.stdout.encode())
    assert found["novel"][:2].to_list() == [True, True] and "ultraviolet" not in done.stdout
    assert '"color" did not occur' in found["reason"][0] and "bits" in found["reason"][1]


def test_costs_are_not_for_clusters(folder):
    done = run("predict", folder / "m.likely", folder / "t.csv", "--reject-below", 0.9)
    assert done.exit_code == 2 and "is for classifiers" in done.stderr
    done = run("evaluate", folder / "m.likely", folder / "t.csv", "--target", "who")
    assert done.exit_code == 4 and "a fitted classifier is needed" in done.stderr


def test_show_and_card_speak_of_clusters(folder):
    shown = run("show", folder / "m.likely")
    assert shown.exit_code == 0 and "what makes it different" in shown.stdout and "visits" in shown.stdout
    plain = json.loads(run("show", folder / "m.likely", "--json").stdout)
    assert len(plain["description"]["tables"][0]["rows"]) == 3 and plain["card"]["task"] == "clusters"
    card = run("card", folder / "m.likely")
    assert card.exit_code == 0 and "## Clusters" in card.stdout and "A mixture of 3 components" in card.stdout


class Tags(HTMLParser):
    """Whether every element that is opened is closed, and which ids there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.ids |= {value for name, value in attrs if name == "id"}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_has_every_part_and_stands_alone(folder):
    page = (folder / "r.html").read_text(encoding="utf-8")
    tags = Tags(page)
    assert {"profiles", "map", "certainty", "numbers", "learning", "data", "aside", "reproduce"} <= tags.ids
    assert not tags.open and len(page) < 500_000 and page.count("<svg") > 5
    assert "<script" not in page and not re.search(r'(src|href)="(?!#)', page) and "prefers-color-scheme:dark" in page
    assert "likely cluster" in page and "a sparse prior leaves" in page
    assert "Adjusted Rand index between initializations" in page


@pytest.mark.slow
def test_names_from_the_data_stay_text(tmp_path):
    rng = np.random.default_rng(0)
    name = "<script>alert(1)</script>"
    frame = pl.DataFrame({name: rng.normal(size=60), "b": [f"<i>{i % 2}" for i in range(60)]})
    done = run("cluster", write(frame, tmp_path / "t.csv"), "--n-components", 2, "--n-init", 1, "-q", "-o",
               tmp_path / "o.csv", "--report", tmp_path / "r.html")  # fmt: skip
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert done.exit_code == 0 and "<script" not in page and "<i>" not in page and "&lt;i&gt;" in page


@pytest.mark.slow
def test_a_weight_of_two_is_two_copies(tmp_path):
    frame = groups(90).drop("who").with_columns(w=pl.Series([2, 1, 1] * 30))
    write(frame, tmp_path / "w.csv")
    write(frame.select(pl.all().repeat_by("w").explode()).drop("w"), tmp_path / "twice.csv")
    shared = ("--id", "case", "--n-components", 3, "--n-init", 1, "-q", "--as", "visits=count", "-o")
    run("cluster", tmp_path / "w.csv", "--weight", "w", *shared, tmp_path / "a.csv", "--save-model", tmp_path / "a")
    run("cluster", tmp_path / "twice.csv", *shared, tmp_path / "b.csv", "--save-model", tmp_path / "b")
    a, b = (lk.load(tmp_path / name).predict_proba(frame) for name in "ab")
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.slow
def test_one_group_is_one_cluster(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150)})
    done = run("cluster", write(frame, tmp_path / "t.csv"), "--max-components", 3, "--n-init", 1, "--json", "-o",
               tmp_path / "o.csv", "--report", tmp_path / "r.html")  # fmt: skip
    facts = json.loads(done.stdout)
    assert len(facts["clusters"]) == 1 and any("do not separate groups" in warning for warning in facts["warnings"])
    assert "There is one cluster" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("frame", [
    pl.DataFrame({"color": ["red", "blue"] * 30, "shape": ["round", "square"] * 30}),
    pl.DataFrame({"visits": [0, 1, 0, 2, 30, 33, 28, 31, 29, 1] * 6}),
    pl.DataFrame({"x": [1.5] * 30 + [2.5] * 30, "y": [None] * 59 + [3.5]}),
])  # fmt: skip
def test_words_counts_or_copies_alone_will_do(tmp_path, frame):
    done = run("cluster", write(frame, tmp_path / "t.csv"), "--n-components", 2, "-o", tmp_path / "o.csv",
               "--report", tmp_path / "r.html", "--n-init", 1)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    found = pl.read_csv(tmp_path / "o.csv")
    assert found["cluster"].n_unique() == 2 and found["probability"].is_finite().all()


def test_columns_of_the_new_names_are_kept_under_others(tmp_path):
    frame = pl.DataFrame({"cluster": [0.5, 1.5, 9.5, 10.5] * 5, "b": [1.25, 1.5, 4.25, 4.5] * 5})
    done = run("cluster", write(frame, tmp_path / "t.csv"), "--n-components", 2, "--n-init", 1, "-q", "-o", "-")
    assert pl.read_csv(done.stdout.encode()).columns == ["input cluster", "b", "cluster", "probability"]


@pytest.mark.parametrize(("more", "code", "words"), [
    (("--n-components", "many"), 2, "neither"),
    (("--n-components", "500"), 3, "there are 200 rows to make clusters of"),
    (("--ignore", "hight"), 3, "--ignore"),
    (("--id", "cases"), 3, "case"),
    (("--weight", "color"), 3, "weight"),
    (("--json", "-o", "-"), 2, "standard output"),
    (("--save-model", "nowhere/m.likely"), 4, "folder"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, more, code, words):
    table = write(groups(), tmp_path / "t.csv")
    done = run("cluster", table, "-o", tmp_path / "o.csv", "--n-init", 1, *more)
    assert done.exit_code == code and words in done.stderr
    assert not (tmp_path / "o.csv").exists()


def test_a_handful_of_rows_is_not_cut_into_single_ones(tmp_path):
    table = write(pl.DataFrame({"x": [1.5, 2.5, 7.25], "y": [2.5, 9.5, 3.5]}), tmp_path / "t.csv")
    done = run("cluster", table, "-o", tmp_path / "o.csv")
    assert pl.read_csv(tmp_path / "o.csv")["cluster"].to_list() == [1, 1, 1]
    assert "one for three distinct rows" in done.stderr
    run("cluster", table, "-o", tmp_path / "o.csv", "--n-components", 3)
    assert sorted(pl.read_csv(tmp_path / "o.csv")["cluster"]) == [1, 2, 3]


def test_a_single_row_or_two_end_in_words(tmp_path):
    one = write(pl.DataFrame({"x": [1.5], "y": [2.5]}), tmp_path / "one.csv")
    done = run("cluster", one, "-o", tmp_path / "o.csv")
    assert done.exit_code == 3 and '"x" is excluded (every value is 1.5)' in done.stderr
    two = write(pl.DataFrame({"x": [1.5, 2.5], "y": [2.5, 3.5]}), tmp_path / "two.csv")
    assert run("cluster", two, "-o", tmp_path / "o.csv").exit_code == 0
    assert pl.read_csv(tmp_path / "o.csv")["cluster"].to_list() == [1, 1]


def test_a_weight_that_is_text_is_called_so(tmp_path):
    done = run("cluster", write(groups(), tmp_path / "t.csv"), "--weight", "color", "-o", tmp_path / "o.csv")
    assert done.exit_code == 3 and 'weights are numbers, got text such as "' in done.stderr


def test_the_command_says_what_differs_from_the_usual():
    job = ClusterJob(("a b.csv",), n_components=4, ignore=("x", "y"), kinds={"z": "count"}, out="o.csv", seed=3,
                     n_init=5)  # fmt: skip
    asked = "--n-components 4 --n-init 5 --seed 3 --ignore x --ignore y --as z=count -o o.csv"
    assert job.command == f"likely cluster 'a b.csv' {asked}"


def test_traits_are_standardized_differences():
    w = np.array([1.0, 2.0, 0.0, 1.0])
    found = {t.name: t for t in profile({"x": np.array([1.0, np.nan, 5.0, 3.0]), "c": ["a", "a", "b", None]},
                                        {"x": "real", "c": "binary"}, np.array([0, 0, 0, 1]), 2, w)}  # fmt: skip
    assert found["x"].overall == 2.0 and found["x"].values.tolist() == [1.0, 3.0]
    assert found["x"].apart.tolist() == [-1.0, 1.0]
    assert found["c = a"].overall == 1.0 and found["c = a"].apart.tolist() == [0.0, 0.0]
    assert trait_words(list(found.values()), 0) == ["x 1 (−1.0 sd)"]
    one = profile({"c": ["a", "b", "b", "b"]}, {"c": "binary"}, np.array([0, 1, 1, 1]), 2)
    assert [trait_words(one, k) for k in (0, 1)] == [["c = a 100% (all: 25%)"], ["c = b 100% (all: 75%)"]]


def test_a_page_needs_little():
    page = cluster_html(ClusterStudy(Study("t", target="cluster", classes=("cluster 1",)), "1 cluster: told", [3.0]))
    assert "was given, not chosen" in page
    assert "NaN" not in number_curve([1, 2, 3], [np.nan, 2.0, -np.inf], 2, "nats", errors=[np.nan] * 3, left=7)


@pytest.mark.slow
def test_old_faithful(tmp_path):
    folder = Path(os.environ.get("LIKELY_DATA", Path(__file__).parents[3] / "shared" / "data"))
    file = folder / "timeseries" / "faithful.csv"
    if not file.exists():
        pytest.skip("no data: the tables are not here")
    done = run("cluster", file, "--json", "--n-init", 1, "--max-components", 4, "-o", tmp_path / "o.csv", "-q")
    facts = json.loads(done.stdout)
    assert [c["rows"] for c in facts["clusters"]] == [175, 97] and facts["shape"] == "full"
    assert facts["certainty"]["below_0.8"] < 0.01

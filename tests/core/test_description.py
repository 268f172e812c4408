"""Descriptions: every model has one, and text, HTML, Markdown and JSON say the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

import likely as lk
from likely.automl.encoded_regressor import EncodedRegressor
from likely.core.description import Code, Description, DescriptionTable
from likely.io import model_files, registry
from tests.io.examples import (
    ESTIMATORS,
    SEQUENCE_ESTIMATORS,
    VALUES,
    jumps,
    known_trend,
    switching_regression,
    table,
)


def recordings() -> list[np.ndarray]:
    t = np.arange(4000) / 8000.0
    return [np.sin(2 * np.pi * pitch * t) * np.hanning(len(t)) for pitch in (300, 900, 310, 890, 290, 910)]


FRAME = pl.DataFrame(table(), schema=["a", "b"])
OTHERS: dict[str, Callable[[], Any]] = {
    "k-means": lambda: lk.KMeans(2, random_state=0).fit(table()),
    "hierarchy": lambda: lk.AgglomerativeClustering(2).fit(table()),
    "principal components": lambda: lk.PCA(1).fit(table()),
    "linear-Gaussian": lambda: lk.LinearGaussianDensity(known_trend(), max_iter=2, tol=1e9).fit(table(d=1)),
    "switching": lambda: lk.SwitchingDensity(jumps(), max_iter=1, tol=1e9).fit(table(d=1)),
    "fault monitor": lambda: lk.FaultMonitor().fit(table(200)),
    "tracker": lk.Tracker,
    "spoken words": lambda: lk.speech.SpokenWords(2, 1, max_iter=2).fit(recordings(), ["low", "high"] * 3),
    "conformal": lambda: lk.ConformalRegressor(Ridge()).fit(table(), table()[:, 0]),
    "switching regression": switching_regression,
    "mixture of regressions": lambda: lk.linear_model.MixtureRegression(1).fit(table(), table()[:, 0]),
    "encoded regression": lambda: EncodedRegressor(lk.LinearRegression()).fit(FRAME, table()[:, 0]),
    "not fitted": lambda: lk.BayesClassifier(lk.GaussianDensity("pooled")),
}
MODELS = [item for some in (VALUES, ESTIMATORS, SEQUENCE_ESTIMATORS, OTHERS) for item in some.items()]


class Tags(HTMLParser):
    """Whether every element that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open += [tag] if tag not in ("br", "meta") else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_class_that_can_be_saved_describes_itself():
    seen = set()
    for name, make in MODELS:
        made = make()
        model = made[0] if isinstance(made, tuple) else made
        if not hasattr(model, "describe"):  # a pipeline of scikit-learn: files hold it as ours
            model = model_files.loads(model_files.dumps(model))
        found = model.describe()
        assert isinstance(found, Description) and found.title.startswith(type(model).__name__), name
        lines = found.to_text().splitlines()
        assert lines[0] == found.title and len(lines) > 2 and all(len(line) < 1000 for line in lines), name
        assert found.to_markdown().startswith(f"# {found.title}") and json.loads(found.to_json()) == found.to_dict()
        assert not Tags(found.to_html(page=True)).open, name
        seen.add(type(model).__name__)
        if isinstance(model, Pipeline):
            seen.update(type(step).__name__ for _, step in model.steps)
    assert set(registry.storable()) & set(registry.HOME) <= seen


def test_parts_of_a_value_are_facts_and_sections():
    found = lk.Mixture([0.25, 0.75], lk.Product({"size": lk.Gaussian([[0.0], [1.0]], 1.0)})).describe()
    assert found.facts == {"weights": [0.25, 0.75]} and found.sections[0].title == "components: Product"
    assert found.sections[0].sections[0].facts["mean"] == [[0.0], [1.0]]
    assert "components: Product\n  size: Gaussian\n    mean        0\n                1\n" in str(found)


def told() -> Description:
    rows = [(f"<{k}|", k / 8, None) for k in range(33)]
    tables = [DescriptionTable("shares", ("name", "share", "rest"), rows, {"share": ".1%"}, "names")]
    facts = {"rows": 1234, "prior": None, "command": Code("a --b <c>"), "matrix": [[1.0, 0.5], [0.0, 10.0]]}
    return Description(
        "a < b", ["one `code`"], facts, tables, ["a note"], [Description("part", facts={"x": 0.1 + 0.2})]
    )


def test_text_aligns_clips_and_indents():
    lines = told().to_text().splitlines()
    assert lines[:8] == [
        "a < b", "=====", "one `code`", "rows     1,234", "prior    –", "command  a --b <c>", "matrix   1  0.5",
        "         0   10",
    ]  # fmt: skip
    assert lines[8:13] == ["", "shares", "  name   share", "  <0|     0.0%", "  <1|    12.5%"]  # nothing under "rest"
    assert lines[-7:] == ["  <29|  362.5%", "  … and 3 more names", "", "a note", "", "part", "  x  0.3"]


def test_markup_is_escaped_and_json_has_all():
    html, markdown = told().to_html(), told().to_markdown()
    assert "<code>code</code>" in html and "&lt;0|" in html and "<0|" not in html and "a --b &lt;c&gt;" in html
    assert "| &lt;0\\| | 0.0% |" in markdown and "- command: `a --b <c>`" in markdown and "## part" in markdown
    plain = told().to_dict()
    assert len(plain["tables"][0]["rows"]) == 33 and plain["facts"]["matrix"] == [[1.0, 0.5], [0.0, 10.0]]


def test_a_table_is_found_by_its_title():
    assert told()["shares"].rows[1][1] == 0.125
    with pytest.raises(KeyError, match="there are"):
        told()["share"]


def test_wide_tables_are_cut_unless_all_is_wanted():
    names = [f"column {j}" for j in range(14)]
    wide = DescriptionTable("", names, [tuple(range(14))])
    assert wide.lines()[-1] == "… and 4 more columns" and len(wide.cells()[0]) == 10
    assert len(DescriptionTable("", names, [tuple(range(14))] * 40, most=None).cells()) == 41

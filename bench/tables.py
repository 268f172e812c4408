"""Every classifier on real tables: error with a 95 % interval, beside what was published for the same method.

    python bench/tables.py                       all tables, all classifiers
    python bench/tables.py --only letter,wine    tables whose name contains one of these
    python bench/tables.py --markdown            for the documentation

Tables come from LIKELY_DATA, else from ../shared/data. A table with a test part is judged on that; the others by
ten-fold cross-validation, the same folds for all. Published figures: [S] seen in a public source, [M] from memory.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import likely as lk

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "tables"


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and rows to be judged on; without the latter, cross-validation."""

    X: Any
    y: Any
    test: tuple[Any, Any] | None = None
    published: dict[str, str] | None = None  # by classifier, and "other": what else is known


def frame(name: str) -> pl.DataFrame:
    return pl.read_csv(DATA / name, null_values=["?"], infer_schema_length=None)


def numeric(table: pl.DataFrame, target: str = "label", drop: tuple[str, ...] = ()) -> tuple[Any, Any]:
    return table.drop(target, *drop).to_numpy().astype(float), table[target].to_numpy()


def split_column(name: str, published: dict[str, str]) -> Callable[[], Problem]:
    def make() -> Problem:
        table = frame(name)
        parts = [numeric(table.filter(pl.col("split") == part), drop=("split",)) for part in ("train", "test")]
        return Problem(*parts[0], parts[1], published)

    return make


def two_files(train: str, test: str, target: str, published: dict[str, str]) -> Callable[[], Problem]:
    return lambda: Problem(*numeric(frame(train), target), numeric(frame(test), target), published)


def whole(
    name: str, published: dict[str, str], target: str = "label", drop: tuple[str, ...] = ()
) -> Callable[[], Problem]:
    return lambda: Problem(*numeric(frame(name), target, drop), None, published)


def spambase() -> Problem:
    table = frame("spambase.csv")
    target = table.columns[-1]
    parts = [numeric(table.filter(pl.col("esl_test") == k), target, ("esl_test",)) for k in (0, 1)]
    return Problem(*parts[0], parts[1], {"other": "ESL: additive logistic 5.5, tree 8.7, forest 4.9 [M]"})


def adult() -> Problem:
    tables = [frame(name) for name in ("adult_train.csv.gz", "adult_test.csv.gz")]
    target = tables[0].columns[-1]
    train, test = ((table.drop(target), table[target].to_numpy()) for table in tables)
    return Problem(*train, test, {"naive": "≈ 16 [M]", "other": "trees ≈ 14 [M]"})


def oil_flow() -> Problem:
    z = np.load(DATA / "oil_flow.npz")
    return Problem(z["x_train"], z["y_train"], (z["x_test"], z["y_test"]), {})


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "ripley": two_files("ripley_synth_tr.csv", "ripley_synth_te.csv", "yc", {
        "pooled": "10–11 [M]", "other": "Bayes error 8.0 [M]",
    }),
    "satimage": two_files("satimage_trn.csv", "satimage_tst.csv", "label", {
        "pooled": "17.1 (Statlog) [M]", "full": "15.5 (Statlog) [M]", "other": "5 nearest neighbours 9.5 [S]",
    }),
    "letter": split_column("letter.csv", {
        "pooled": "30.2 (Statlog) [M]", "full": "11.3 (Statlog) [M]", "other": "tree 12.6, bagged 6.4 [S]",
    }),
    "pendigits": split_column("pendigits.csv", {"other": "1 nearest neighbour 2.3 [V]"}),
    "optdigits": split_column("optdigits.csv", {"other": "1 nearest neighbour 2.0 [V]"}),
    "spambase": spambase,
    "adult": adult,
    "oil flow": oil_flow,
    "banana": whole("banana_keel.csv", {}),
    "ionosphere": whole("ionosphere_keel.csv", {}),
    "wdbc": whole("wdbc_keel.csv", {}),
    "wine": whole("wine_keel.csv", {"full": "0.6 (UCI, leave-one-out) [M]", "pooled": "1.1 (UCI, leave-one-out) [M]"}),
    "heart": whole("heart_keel.csv", {}),
    "twonorm": whole("twonorm_keel.csv", {"other": "Bayes error 2.3 [M]"}),
    "ring": whole("ring_keel.csv", {"other": "Bayes error 1.3, CART 21.4 [S]"}),
    "glass": whole("forensic_glass.csv", {}, "type"),
    "crabs": whole("crabs.csv", {}, "sp", ("index", "sex")),
    "shuttle": whole("shuttle_trn.csv.gz", {
        "pooled": "4.8 (Statlog, other test) [M]", "full": "6.7 (Statlog, other test) [M]",
        "other": "tree 0.062, bagged 0.014 [S]",
    }),
}  # fmt: skip


def gaussian(covariance: str, **how: Any) -> lk.BayesClassifier:
    return lk.BayesClassifier(lk.GaussianDensity(covariance, **how))


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "spherical": lambda: gaussian("spherical"),
    "naive": lambda: lk.NaiveBayes(),
    "pooled": lambda: gaussian("pooled"),
    "pooled by class": lambda: gaussian("pooled", pooling="class"),
    "pooled, mean integrated": lambda: gaussian("pooled", predictive="mean"),
    "full": lambda: gaussian("full"),
    "full, t predictive": lambda: gaussian("full", predictive="all"),
    "interpolated": lambda: gaussian("interpolated"),
    "emphasised": lambda: gaussian("emphasised"),
    "calibrated forest": lambda: lk.Calibrated(RandomForestClassifier(200, random_state=0)),
    "calibrated SVM": lambda: lk.Calibrated(make_pipeline(StandardScaler(), SVC())),
    "calibrated boosting": lambda: lk.Calibrated(HistGradientBoostingClassifier(random_state=0)),
}
LARGE = 12_000  # rows beyond which the support vector machine is left out


def judged(make: Callable[[], Any], problem: Problem) -> lk.Evaluation:
    """Out-of-sample posteriors of one classifier."""
    if problem.test is None:
        return lk.evaluate(make(), problem.X, problem.y, cv=10)
    clf = make().fit(problem.X, problem.y)
    return lk.Evaluation.of(clf.predict_log_proba(problem.test[0]), problem.test[1], clf.classes_)


def able(name: str, problem: Problem) -> bool:
    """Which classifier takes which table."""
    mixed = isinstance(problem.X, pl.DataFrame)
    if name == "calibrated SVM":
        return not mixed and len(problem.y) <= LARGE
    return not mixed or name == "naive"


def results(only: str | None) -> Iterator[list[str]]:
    words = only.split(",") if only else [""]
    for title, load in PROBLEMS.items():
        if not any(word in title for word in words):
            continue
        problem = load()
        published = problem.published or {}
        how = "10-fold" if problem.test is None else f"{len(problem.y)} + {len(problem.test[1])}"
        yield [f"**{title}** ({how})", "", "", "", "", published.get("other", "")]
        for name, make in CLASSIFIERS.items():
            if not able(name, problem):
                continue
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done = judged(make, problem)
            error, seconds = done.error, time.perf_counter() - start
            figures = [f"{100 * error.value:.1f}", f"{100 * error.low:.1f}–{100 * error.high:.1f}"]
            yield [name, *figures, f"{done.log_loss.value:.3f}", f"{seconds:.2f}", published.get(name, "")]


HEAD = ["classifier", "error %", "95 %", "log-loss", "seconds", "published"]


def main() -> None:
    """Print one line a classifier as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma list: words that the names of tables contain")
    parser.add_argument("--markdown", action="store_true", help="as a table for the documentation")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"tables: no folder {DATA}: set LIKELY_DATA to the folder that holds tables/.")
    if options.markdown:
        print("| " + " | ".join(HEAD) + " |\n|---|--:|--:|--:|--:|---|")
    for row in results(options.only):
        line = (
            "| " + " | ".join(row) + " |"
            if options.markdown
            else "  ".join(c.ljust(w) for c, w in zip(row, (28, 8, 12, 9, 8, 1), strict=True))
        )
        print(line, flush=True)


if __name__ == "__main__":
    main()

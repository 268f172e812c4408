"""Every classifier on real tables: error with a 95 % interval, beside what was published for the same method.

    python bench/tables.py                       all tables, all classifiers
    python bench/tables.py --only letter,wine    tables whose name contains one of these
    python bench/tables.py --classifiers 'full;chosen'
                                                 some classifiers, by their names
    python bench/tables.py --markdown            for the documentation
    python bench/tables.py --rules               only *chosen*, by the rule of `likely fit` and by the rule before it

*chosen* is what `likely fit --no-baselines` chooses, calibration included: the models are compared anew inside the
training rows of each fold. `--rules` sets it beside the older rule, by which the simplest of the models tied in cost
won, with paired differences and their standard errors, by five folds where there is no test part.

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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_random_state

import likely as lk
from likely.automl.model_comparison import compare_candidates, from_all_rows
from likely.automl.table_classifier import TableClassifier, arranged_schema
from likely.cli.fitting.fit_job import Job
from likely.cli.fitting.fit_run import prepared
from likely.cli.fitting.table_data import TableData
from likely.data.table import Table
from likely.decision.cost import Cost
from likely.estimation.class_labels import encoded
from likely.estimation.foreign_classifiers import log_posteriors
from likely.metrics.confidence_intervals import mean
from likely.model_selection.splits import Split, make_splits

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "tables"


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and rows to be judged on; without the latter, cross-validation."""

    X: Any
    y: Any
    test: tuple[Any, Any] | None = None
    published: dict[str, str] | None = None  # by classifier, and "other": what else is known
    cost: Any = None  # of decisions (rows) by true classes (columns); None: every mistake costs 1


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


def german() -> Problem:
    table = frame("german_keel.csv")
    cost = [[0, 5], [1, 0]]  # calling a bad risk (2) good (1) costs five times as much as the reverse (Statlog)
    return Problem(table.drop("label"), table["label"].to_numpy(), None, {"other": "costs 5 : 1 (Statlog)"}, cost)


def oil_flow() -> Problem:
    z = np.load(DATA / "oil_flow.npz")
    return Problem(z["x_train"], z["y_train"], (z["x_test"], z["y_test"]), {})


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "ripley": two_files("ripley_synth_tr.csv", "ripley_synth_te.csv", "yc", {
        "pooled": "10–11 [M]", "other": "Bayes error 8.0 [M]",
    }),
    "satimage": two_files("satimage_trn.csv", "satimage_tst.csv", "label", {
        "pooled": "17.1 (Statlog) [M]", "full": "15.5 (Statlog) [M]", "other": "5 nearest neighbors 9.5 [S]",
    }),
    "letter": split_column("letter.csv", {
        "pooled": "30.2 (Statlog) [M]", "full": "11.3 (Statlog) [M]", "other": "tree 12.6, bagged 6.4 [S]",
    }),
    "pendigits": split_column("pendigits.csv", {"other": "1 nearest neighbor 2.3 [V]"}),
    "optdigits": split_column("optdigits.csv", {"other": "1 nearest neighbor 2.0 [V]"}),
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
    "german": german,
    "pima": whole("pima_keel.csv", {}),
    "segment": whole("segment_keel.csv", {}),
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
    "shrunk-pooled": lambda: gaussian("shrunk-pooled"),
    "shrunk-diagonal": lambda: gaussian("shrunk-diagonal"),
    "naive, calibrated": lambda: lk.CalibratedClassifier(lk.NaiveBayes()),
    "pooled, calibrated": lambda: lk.CalibratedClassifier(gaussian("pooled")),
    "full, calibrated": lambda: lk.CalibratedClassifier(gaussian("full")),
    "calibrated forest": lambda: lk.CalibratedClassifier(RandomForestClassifier(200, random_state=0)),
    "calibrated SVM": lambda: lk.CalibratedClassifier(make_pipeline(StandardScaler(), SVC())),
    "calibrated boosting": lambda: lk.CalibratedClassifier(HistGradientBoostingClassifier(random_state=0)),
}
LARGE = 12_000  # rows beyond which the support vector machine is left out


def judged(make: Callable[[], Any], problem: Problem) -> lk.Evaluation:
    """Out-of-sample posteriors of one classifier."""
    if problem.test is None:
        return lk.evaluate(make(), problem.X, problem.y, cv=10, cost=problem.cost)
    clf = make().fit(problem.X, problem.y)
    return lk.evaluate(clf, *problem.test, cv="prefit", cost=problem.cost)


# ---------------------------------------------------------------------------- chosen


def as_frame(X: Any) -> pl.DataFrame:
    """Columns as a file holds them: numbers that are all whole are written without a point."""
    if isinstance(X, pl.DataFrame):
        return X
    whole = [bool((column == np.floor(column)).all()) for column in X.T]
    return pl.DataFrame({f"x{j}": X[:, j].astype(int) if whole[j] else X[:, j] for j in range(X.shape[1])})


def chosen(problem: Problem, rules: bool, seed: int = 0) -> dict[str, lk.Evaluation]:
    """The choice of `likely fit --no-baselines` inside each training fold: by its rule, and by the one before it."""
    X, y = as_frame(problem.X), np.asarray(problem.y)
    classes, labels = encoded(y)
    if problem.test is None and rules:
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        splits = [Split(*split) for split in folds.split(labels, labels)]
    elif problem.test is None:
        usual = int(check_random_state(0).randint(2**31))  # the folds of `lk.evaluate`
        splits = make_splits(X, labels, 10, seed=usual)
    else:
        X = pl.concat([X, as_frame(problem.test[0])], how="vertical_relaxed")
        splits = [Split(np.arange(len(y)), np.arange(len(y), X.height))]
        classes, labels = encoded(np.concatenate([y, problem.test[1]]))
    found: dict[str, list[Any]] = {"chosen": [], "chosen, ties to the simplest": []}
    for train, test in splits:
        for name, model in chosen_from(X[train], classes[labels[train]], problem.cost).items():
            found[name].append(log_posteriors(model, X[test], classes))
    rows = np.concatenate([split.test for split in splits])
    return {name: lk.Evaluation(np.concatenate(parts), labels[rows], classes, cost=problem.cost)
            for name, parts in found.items()}  # fmt: skip


def chosen_from(X: pl.DataFrame, y: Any, cost: Any) -> dict[str, Any]:
    """The models that the two rules choose for these rows, learned from all of them."""
    table = Table.of(X.with_columns(pl.Series("the label", y)), target="the label")
    field, candidates, *_ = prepared(TableData(Job((), "the label", baselines=False), table))
    field = replace(field, cost=None if cost is None else Cost.of(cost, field.classes))
    contest = compare_candidates(field, candidates, jobs=1)
    simplest = min((s for s in contest.standings if "cost" in s.ties), key=lambda s: s.candidate.rank)
    schema = arranged_schema(table.schema())

    def learned(s: Any) -> Any:
        map = None if s.calibration is None else s.calibration.map
        return TableClassifier.from_fitted(from_all_rows(s.candidate.estimator, field), schema, map)

    return {"chosen": learned(contest.winner), "chosen, ties to the simplest": learned(simplest)}


def compared(found: dict[str, lk.Evaluation]) -> str:
    """Cost and log-loss of the rule less those of the rule before it, row by row."""
    new, old = found.values()
    cost = mean(new.costs.table[new.decided, new.truth] - old.costs.table[old.decided, old.truth])
    loss = mean(old.log_posterior_of_truth - new.log_posterior_of_truth)
    return f"cost {cost.value:+.4f} ± {cost.se:.4f}, log-loss {loss.value:+.4f} ± {loss.se:.4f}"


def able(name: str, problem: Problem) -> bool:
    """Which classifier takes which table."""
    mixed = isinstance(problem.X, pl.DataFrame)
    if name == "calibrated SVM":
        return not mixed and len(problem.y) <= LARGE
    return not mixed or name == "naive"


def results(only: str | None, classifiers: str | None, rules: bool = False, seed: int = 0) -> Iterator[list[str]]:
    words = only.split(",") if only else [""]
    wanted = classifiers.split(";") if classifiers else [*CLASSIFIERS, "chosen"]
    for title, load in PROBLEMS.items():
        if not any(word in title for word in words):
            continue
        problem = load()
        published = problem.published or {}
        folds = "5-fold" if rules else "10-fold"
        how = folds if problem.test is None else f"{len(problem.y)} + {len(problem.test[1])}"
        yield [f"**{title}** ({how})", "", "", "", "", "", published.get("other", "")]
        for name, make in {} if rules else CLASSIFIERS.items():
            if name not in wanted or not able(name, problem):
                continue
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done = judged(make, problem)
            yield line(name, done, time.perf_counter() - start, published.get(name, ""))
        if not rules and "chosen" not in wanted:
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = chosen(problem, rules, seed)
        for name, done in found.items():
            if rules or name == "chosen":
                beside = compared(found) if rules and name == "chosen" else ""
                yield line(name, done, time.perf_counter() - start, beside)


def line(name: str, done: lk.Evaluation, seconds: float, words: str) -> list[str]:
    """One line of the table; a cost where costs were given."""
    error, cost = done.error, "" if done.cost is None else f"{done.mean_cost.value:.3f}"
    figures = [f"{100 * error.value:.1f}", f"{100 * error.low:.1f}–{100 * error.high:.1f}"]
    return [name, *figures, f"{done.log_loss.value:.3f}", cost, f"{seconds:.2f}", words]


HEAD = ["classifier", "error %", "95 %", "log-loss", "cost", "seconds", "published"]


def main() -> None:
    """Print one line a classifier as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma list: words that the names of tables contain")
    parser.add_argument("--classifiers", help="semicolon list of their names")
    parser.add_argument("--markdown", action="store_true", help="as a table for the documentation")
    parser.add_argument("--rules", action="store_true", help="only what is chosen, by two rules")
    parser.add_argument("--seed", type=int, default=0, help="of the division into folds, with --rules")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"tables: no folder {DATA}: set LIKELY_DATA to the folder that holds tables/.")
    if options.markdown:
        print("| " + " | ".join(HEAD) + " |\n|---|--:|--:|--:|--:|--:|---|")
    for row in results(options.only, options.classifiers, options.rules, options.seed):
        text = (
            "| " + " | ".join(row) + " |"
            if options.markdown
            else "  ".join(c.ljust(w) for c, w in zip(row, (28, 8, 12, 9, 7, 8, 1), strict=True))
        )
        print(text, flush=True)


if __name__ == "__main__":
    main()

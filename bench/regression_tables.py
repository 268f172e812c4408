"""`likely fit` on 20 regression tables with fixed splits: the choice beside every single candidate.

    python bench/regression_tables.py --out FILE               all sets, smallest first; appends, and resumes
    python bench/regression_tables.py --out FILE --only boston,energy
    python bench/regression_tables.py --out FILE --table       prints the results in FILE for the documentation

Sets come from LIKELY_DATA (else ../shared/data), folder uci_regression, with their own splits; of sets with more than
5,000 rows the first five. In each split the rows of training are what `likely fit --task regression --baselines` gets:
candidates are compared by five folds of them, one is chosen, and every candidate is then fitted to all of them and
tested on the other rows, with intervals of its held-out residuals.

*choice* is what the rule chooses if scikit-learn's models are eligible, *ours* what `likely fit` writes. *in hindsight*
is the single candidate that is best on the test rows of all splits. Costs of the choice are paired differences over
splits with their standard error. Coverage of 90 % intervals is that of *ours*, over all test rows, beside the range
that has 99 % of a beta-binomial distribution: so many different test rows, and as many calibrating rows as trained.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import betabinom

from likely.automl.model_comparison import from_all_rows, silence
from likely.automl.table_regressor import TableRegressor
from likely.cli.console import Console
from likely.cli.fitting.fit_job import job_of
from likely.cli.fitting.fit_run import compared, prepared
from likely.cli.fitting.table_data import TableData
from likely.metrics.regression_evaluation import RegressionEvaluation

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "uci_regression"
LARGE, FEW = 5_000, 5  # rows from which only the first splits are run
LEVEL = 0.9


def sets() -> dict[str, Any]:
    """The sets by name, smallest first."""
    found = {path.stem: np.load(path) for path in DATA.glob("*.npz")}
    return dict(sorted(found.items(), key=lambda pair: pair[1]["x"].size * _splits(pair[1])))


def _splits(z: Any) -> int:
    masks = len(z["test_mask"])
    return min(masks, FEW) if len(z["y"]) > LARGE else masks


def run_split(z: Any, split: int) -> dict[str, Any]:
    """One run of `likely fit` on the rows of training; every candidate on the test rows."""
    start, mask = time.process_time(), z["test_mask"][split]
    frame = pl.DataFrame({f"x{j}": column for j, column in enumerate(z["x"].T)} | {"y": z["y"].astype(float)})
    train, test = frame.filter(~mask), frame.filter(mask)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/train.csv"
        train.write_csv(path)
        data = TableData(job_of({"files": (path,), "target": "y", "task": "regression", "baselines": True, "jobs": 1}))
    field, candidates, _, left_out = prepared(data)
    contest = compared(data, field, candidates, Console(quiet=True))
    chosen = contest.winner if contest.with_baselines is None else contest.with_baselines
    told: dict[str, Any] = {
        "rows": train.height, "test": test.height, "columns": data.X.width, "left_out": left_out,
        "ours": contest.winner.candidate.key, "choice": chosen.candidate.key, "candidates": {},
    }  # fmt: skip
    y = test["y"].to_numpy()
    for s in contest.standings:
        if s.evaluation is None:
            continue
        with silence():
            fitted = from_all_rows(s.candidate.estimator, field)
            model = TableRegressor.from_fitted(fitted, data.schema, s.map, data.table.names)
            e = RegressionEvaluation.of(model.predictive(test), y, level=LEVEL)
        told["candidates"][s.candidate.key] = {
            "rmse": e.rmse.value, "interval_score": e.interval_score.value, "log_score": e.log_score.value,
            "covered": int(e.covered.sum()), "cv_rmse": s.evaluation.rmse.value,
        }  # fmt: skip
    return {**told, "seconds": time.process_time() - start}


def run(only: str | None, out: Path) -> None:
    """Append what is not there yet."""
    done = {(r["set"], r["split"]) for r in _records(out)}
    for name, z in sets().items():
        if only and not any(word in name for word in only.split(",")):
            continue
        for split in range(_splits(z)):
            if (name, split) in done:
                continue
            found = {"set": name, "split": split, **run_split(z, split)}
            with out.open("a") as stream:
                stream.write(json.dumps(found) + "\n")
            best = found["candidates"][found["choice"]]["rmse"]
            print(f"{name} {split}: {found['choice']} {best:.4g} ({found['seconds']:.0f} s)", flush=True)


# -------------------------------------------------------------------------- tables


def _records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def tables(out: Path) -> None:
    """Both tables, as Markdown."""
    by_set = defaultdict(list)
    for record in _records(out):
        by_set[record["set"]].append(record)
    named = {name: by_set[name] for name in sets() if name in by_set}
    print(
        "| set | rows × columns | splits | choice costs, RMSE | in hindsight | choice costs, interval score "
        "| in hindsight |"
    )
    print("|---|--:|--:|--:|---|--:|---|")
    for name, records in named.items():
        size = f"{records[0]['rows'] + records[0]['test']:,} × {records[0]['columns']}"
        cells = [name, size, f"{len(records)} of {_splits(sets()[name])}"]
        for measure in ("rmse", "interval_score"):
            cells += _cost(records, measure)
        print("| " + " | ".join(cells) + " |")
    print()
    print("| set | ours (splits) | ours | ridge | forest | boosting | coverage | 99 % range |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, records in named.items():
        print("| " + " | ".join([name, *_beside(records)]) + " |")


def _common(records: list[dict[str, Any]]) -> list[str]:
    """Candidates that were there in every split."""
    every = [set(r["candidates"]) for r in records]
    return [key for key in records[0]["candidates"] if all(key in one for one in every)]


def _cost(records: list[dict[str, Any]], measure: str) -> list[str]:
    value = {k: np.array([r["candidates"][k][measure] for r in records]) for k in _common(records)}
    best = min(value, key=lambda k: value[k].mean())
    own = np.array([r["candidates"][r["choice"]][measure] for r in records])
    gap = own - value[best]
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.inf
    mark = "" if gap.mean() <= error + 1e-12 else " **>**"
    return [f"{gap.mean():.3g} ± {error:.2g}{mark}", f"{best} {value[best].mean():.4g}"]


def _beside(records: list[dict[str, Any]]) -> list[str]:
    used = [r["ours"] for r in records]
    count = ", ".join(f"{k} {used.count(k)}" for k in sorted(set(used), key=lambda k: -used.count(k)))
    means = [np.mean([r["candidates"][r["ours"]]["rmse"] for r in records])]
    means += [np.mean([r["candidates"][k]["rmse"] for r in records]) for k in ("ridge", "forest", "boosting")]
    covered = sum(r["candidates"][r["ours"]]["covered"] for r in records)
    tested, n = sum(r["test"] for r in records), records[0]["rows"]
    different = min(tested, n + records[0]["test"])
    spread = betabinom(different, LEVEL * (n + 1), (1 - LEVEL) * (n + 1))
    low, high = spread.ppf([0.005, 0.995]) / different
    inside = "" if low <= covered / tested <= high else " **outside**"
    return [count, *(f"{v:.4g}" for v in means), f"{covered / tested:.1%}{inside}", f"{low:.1%}–{high:.1%}"]


def main() -> None:
    """Run, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of results, one JSON object per line")
    parser.add_argument("--only", help="comma list: words that the names of sets contain")
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"regression_tables: no folder {DATA}: set LIKELY_DATA to the folder that holds uci_regression/.")
    warnings.simplefilter("ignore")
    if options.table:
        tables(options.out)
    else:
        run(options.only, options.out)


if __name__ == "__main__":
    main()

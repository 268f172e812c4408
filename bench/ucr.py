"""Nearest neighbors under time warping on all UCR sets at hand, beside the published errors.

    python bench/ucr.py                       all sets, and the page docs/results/dynamic-time-warping.md
    python bench/ucr.py --only GunPoint,CBF   these only, printed

Data come from LIKELY_DATA, else from ../shared/data. Published: the table of the bake-off of 2017 (columns
Euclidean_1NN, DTW_R1_1NN, DTW_Rn_1NN), which lists 85 sets of the archive; sets that came later have no figure there.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likely.alignment.bands import band_of
from likely.alignment.estimator import SHARES, DTWClassifier
from pages import conditions

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "dynamic-time-warping.md"
COLUMNS = ("Euclidean_1NN", "DTW_R1_1NN", "DTW_Rn_1NN")
SUMMARY = ("err_ED_1NN_pct", "err_DTW_full_1NN_pct", "err_DTW_bestwindow_1NN_pct")
ADJUSTED = {  # sets of which the archive has a version with gaps or unequal lengths; the file holds the adjusted one
    "DodgerLoopGame": "gaps filled in the file", "MelbournePedestrian": "gaps filled in the file",
    "GestureMidAirD1": "lengths made equal in the file", "GestureMidAirD3": "lengths made equal in the file",
    "GesturePebbleZ2": "lengths made equal in the file", "ShakeGestureWiimoteZ": "lengths made equal in the file",
}  # fmt: skip
PREFACE = """# Results: dynamic time warping

By `python bench/ucr.py` (data from `LIKELY_DATA`): the test error in percent of the nearest neighbor on every UCR set
at hand, official split, data as given. *Euclid* is a band of radius 0, *full* has no band, *best* takes the band from
shares 0, 0.01, … 0.2 that makes fewest errors when each training series is classified by the others (`band="best"`).
After each error stands the published one (Bagnall et al. 2017; of sets with another name there in rounded percent),
with the difference in test series. Where best differs by more than one, a band one frame narrower was tried
afterwards, and the note gives its errors. Seconds are those of all three, the choice of the band included, on two busy
cores.
"""


class Set(NamedTuple):
    """Series to learn from and series to be judged on."""

    X: list[Any]
    y: Any
    T: list[Any]
    u: Any


class Row(NamedTuple):
    """A line of the page: wrong test series for Euclid, full and best, published accuracies, the band, notes."""

    name: str
    train: int
    test: int
    length: int
    wrong: tuple[int, int, int]
    published: tuple[float, ...]
    share: float
    seconds: float
    note: str


def read(path: Path) -> Set:
    d = np.load(path, allow_pickle=False)
    return Set(_cut(d["x_train"]), d["y_train"], _cut(d["x_test"]), d["y_test"])


def _cut(x: Any) -> list[Any]:
    """NaN at the end is no gap: the series is over."""
    ends = [int(np.flatnonzero(~np.isnan(row))[-1]) + 1 for row in x]
    return [row[:end].astype(np.float64) for row, end in zip(x, ends, strict=True)]


def published() -> dict[str, tuple[float, ...]]:
    """Accuracies by set; where a set has another name in the table, percent from the summary."""
    with open(DATA / "ucr" / "bakeoff2017_accuracy.csv", newline="") as stream:
        exact = {row[""]: tuple(float(row[c]) for c in COLUMNS) for row in csv.DictReader(stream)}
    with open(DATA / "ucr" / "summary.csv", newline="") as stream:
        told = {row["name"]: [row[c] for c in SUMMARY] for row in csv.DictReader(stream)}
    rounded = {name: tuple(1 - float(e) / 100 for e in errors) for name, errors in told.items() if all(errors)}
    return {**rounded, **exact}


def wrong(data: Set, band: Any) -> tuple[int, DTWClassifier]:
    model = DTWClassifier(band=band).fit(data.X, data.y)
    return int((model.predict(data.T) != data.u).sum()), model


def run(name: str, known: dict[str, tuple[float, ...]]) -> Row:
    data, began = read(DATA / "ucr" / f"{name}.npz"), time.perf_counter()
    euclid, full, (best, model) = wrong(data, 0)[0], wrong(data, None)[0], wrong(data, "best")
    seconds = time.perf_counter() - began
    errors = (euclid, full, best)
    says = known.get(name, ())
    note = "; ".join([*_why(data, errors, says, model), *([ADJUSTED[name]] if name in ADJUSTED else [])])
    return Row(name, len(data.X), len(data.T), len(data.X[0]), errors, says, model.band_, seconds, note)


def _why(data: Set, errors: tuple[int, int, int], says: tuple[float, ...], model: DTWClassifier) -> Iterator[str]:
    """What was found about a difference of more than one test series."""
    told = [round((1 - a) * len(data.T)) for a in says]
    for name, ours, theirs in zip(("Euclid", "full"), errors, told, strict=False):
        if abs(ours - theirs) > 1:
            yield f"{name}: {ours} errors, published {theirs}"
    if told and abs(errors[2] - told[2]) > 1:
        yield f"best: {errors[2]} errors, published {told[2]}; {_near(data, model)}"


def _near(data: Set, model: DTWClassifier) -> str:
    """What a band one frame narrower makes, and all shares that were tried."""
    radius = band_of(model.band_, "ucr").frames(len(data.X[0]))
    shares = [wrong(data, share)[0] for share in SHARES]
    found = f"shares up to 0.2 make {min(shares)} to {max(shares)}"
    return (
        found if radius == 0 else f"radius {radius} here, and {wrong(data, radius - 1)[0]} with {radius - 1}; {found}"
    )


def cell(row: Row, i: int) -> str:
    ours = f"{100 * row.wrong[i] / row.test:.1f}"
    if not row.published:
        return f"{ours} | –"
    theirs = 1 - row.published[i]
    apart = row.wrong[i] - round(theirs * row.test)
    return f"{ours} | {100 * theirs:.1f} ({apart:+d})" if apart else f"{ours} | {100 * theirs:.1f}"


def table(rows: list[Row]) -> Iterator[str]:
    yield "| set | train, test, length | Euclid | published | full | published | best | published | share | s | note |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for r in rows:
        cells = " | ".join(cell(r, i) for i in range(3))
        size = f"{r.train}, {r.test}, {r.length}"
        yield f"| {r.name} | {size} | {cells} | {r.share:g} | {r.seconds:.1f} | {r.note} |"


def summary(rows: list[Row]) -> str:
    told = [r for r in rows if r.published]
    near = [sum(abs(r.wrong[i] - round((1 - r.published[i]) * r.test)) <= 1 for r in told) for i in range(3)]
    return (
        f"Of {len(told)} sets with a published figure, ours is equal to it within one test series in {near[0]} for "
        f"Euclid, {near[1]} for the full grid and {near[2]} for the best band; notes say what was found about the "
        f"others. All {len(rows)} sets took {sum(r.seconds for r in rows):.0f} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of sets, by commas")
    asked = parser.parse_args().only
    names = asked.split(",") if asked else sorted(path.stem for path in (DATA / "ucr").glob("*.npz"))
    known, rows = published(), []
    for name in names:
        rows.append(run(name, known))
        print(list(table(rows))[-1], flush=True)
    print(summary(rows))
    if not asked:
        PAGE.write_text("\n".join([PREFACE, summary(rows), "", *table(rows), "", conditions()]), encoding="utf-8")


if __name__ == "__main__":
    main()

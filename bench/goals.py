"""What likely should reach on each workload of the benchmark, and whether a run did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
NOISE = 0.1  # cores in others' use above which a time says nothing


@dataclass(frozen=True)
class Goal:
    """Ratios and limits for one workload."""

    faster: float | None = None  # best rival's time over likely's, at least
    memory: float | None = None  # MiB beyond the input, at most
    within: tuple[str, float] | None = None  # (own twin, at most this many times its time)
    seconds: tuple[str, float] | None = None  # (own twin, at most this time)


GOALS = {
    "kde": Goal(faster=5.0),
    "gaussian_ml": Goal(faster=2.0, memory=50.0),
    "gaussian_stack": Goal(faster=3.0),
    "gaussian_gaps": Goal(within=("likely_complete", 3.0)),
    "qda": Goal(faster=4.0),
    "lda": Goal(faster=2.0),
    "gaussian_nb": Goal(faster=10.0, memory=50.0 + 16.0),  # MiB; 16 of them are the labels that it returns
    "gmm_full": Goal(faster=5.0, memory=100.0),
    "gmm_diag": Goal(faster=8.0, memory=100.0),
    "multinomial_mixture": Goal(faster=1.0),
    "kmeans": Goal(faster=2.0),
    "hier_ward": Goal(faster=1.0),
    "hier_average": Goal(faster=1.0),
    "pca": Goal(faster=1.3),
    "hmm_gauss": Goal(faster=5.0),
    "hmm_long": Goal(faster=3.0),
    "hmm_gmm": Goal(faster=3.0),
    "knn": Goal(faster=1.0),
    "dtw_full": Goal(faster=3.0),
    "dtw_band": Goal(faster=3.0),
    "kalman": Goal(faster=3.0),
    "kalman_em": Goal(faster=3.0),
    "kalman_gaps": Goal(faster=1.0),
    "ekf": Goal(faster=1.0),
    "particle": Goal(faster=2.0),
    "latency_kalman": Goal(seconds=("likely", 0.030)),  # of 1000 steps
    "latency_hmm": Goal(seconds=("likely", 0.015)),  # of 100 calls
    "latency_qda": Goal(faster=2.0, seconds=("likely_value", 0.030)),  # of 1000 calls
}


def did_the_job(record: Record, bounds: dict[str, float]) -> bool:
    """True for a record with the quality that the workload asks for."""
    quality = record.get("quality") or {}
    return record["status"] == "ok" and all(float(quality.get(name, 0.0)) <= bound for name, bound in bounds.items())


def rival(records: list[Record], bounds: dict[str, float]) -> Record | None:
    """The fastest other library that did the same job."""
    able = [r for r in records if not r["peer"].startswith("likely") and did_the_job(r, bounds)]
    return min(able, key=lambda r: r["median"], default=None)


def verdicts(records: list[Record], bounds: dict[str, float], goal: Goal) -> Iterator[tuple[str, str]]:
    """Each thing that was asked for in words, and whether it was reached."""
    found = {r["peer"]: r for r in records if r["status"] == "ok"}
    ours, other = found.get("likely"), rival(records, bounds)
    if ours is None or not did_the_job(ours, bounds):
        yield "likely does the job", "MISSED"
        return
    if other is not None:
        ratio = other["median"] / ours["median"]
        wanted = f" (goal {goal.faster:g}×)" if goal.faster else ""
        yield f"{ratio:.2f}× as fast as {other['peer']}{wanted}", verdict(ratio >= (goal.faster or 0.0), ours, other)
    if goal.memory is not None and ours["memory"] is not None:
        yield f"{ours['memory']:.0f} MiB (goal {goal.memory:g})", verdict(ours["memory"] <= goal.memory)
    if goal.within and (twin := found.get(goal.within[0])):
        ratio = ours["median"] / twin["median"]
        said = f"{ratio:.2f}× the time of {twin['peer']} (goal {goal.within[1]:g}×)"
        yield said, verdict(ratio <= goal.within[1], ours, twin)
    if goal.seconds and (twin := found.get(goal.seconds[0])):
        said = f"{twin['peer']} in {twin['median']:.4g} s (goal {goal.seconds[1]:g} s)"
        yield said, verdict(twin["median"] <= goal.seconds[1], twin)


def verdict(good: bool, *timed: Record) -> str:
    """Met or missed; neither, where the times that it rests on were disturbed."""
    worst = max((float(r.get("busy") or 0.0) for r in timed), default=0.0)
    return f"noisy ({worst:.1f}): run again" if worst > NOISE else "met" if good else "MISSED"

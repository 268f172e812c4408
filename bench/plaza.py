"""Plaza 1: a mowing robot finds its way by odometry and the ranges to four beacons.

    python bench/plaza.py            all sections, and the page docs/results/localization.md
    python bench/plaza.py --quick    a few steps of the search only; nothing is written

Data come from LIKELY_DATA, else from ../shared/data. Ground truth is looked at once, for the errors in the tables.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

import likely as lk
from likely.statespace.nonlinear.extended_kalman_filter import ExtendedKalmanFilter
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.nonlinear.unscented_kalman_filter import CubatureKalmanFilter, UnscentedKalmanFilter
from pages import conditions, table

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "localization.md"
LEARNED_FROM = 3200  # frames, a third: what noise there is, is learned from these alone
TYPICAL = 40.0  # meters: an error of scale s counts as one of 40 s at the start of the search


class Robot(NamedTuple):
    """What the robot knew: inputs (T, 2) of distance and turn, ranges (T, 4), beacons (4, 2); and the truth (T, 2)."""

    inputs: dict[str, Any]
    course: dict[str, float]  # the first heading of each kind of odometry
    ranges: Any
    beacons: Any
    truth: Any
    reckoned: Any
    facts: dict[str, float]  # what the page says about the data, measured


def load() -> Robot:
    """One frame per line of odometry; a range belongs to the first frame that is not before it."""
    z = np.load(DATA / "tracking" / "plaza1.npz")
    truth, odometry, beacons, reckoned = (z[k] for k in ("ground_truth", "odometry", "beacons", "dead_reckoned_path"))
    total, count = np.zeros((2, len(truth), len(beacons)))
    for when, _, beacon, meters in z["ranges"]:
        at = np.searchsorted(truth[:, 0], when), int(np.flatnonzero(beacons[:, 0] == beacon)[0])
        total[at] += meters
        count[at] += 1
    ranges = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    step = np.diff(reckoned[:, 1:3], axis=0)
    heading = np.unwrap(np.arctan2(step[:, 1], step[:, 0]))
    drifting = np.stack([np.hypot(*step.T), np.diff(heading, prepend=heading[0])], axis=1)
    none = np.zeros((1, 2))
    inputs = {"drifting": np.concatenate([none, drifting]), "as stored": np.concatenate([none, odometry[:, 1:]])}
    course = {"drifting": float(heading[0]), "as stored": float(truth[0, 3])}
    facts = facts_of(truth, odometry, reckoned, heading, len(z["ranges"]), int((count > 1).sum()))
    facts["longer"] = 100 * too_long(ranges, truth[:, 1:3], beacons[:, 1:])
    return Robot(inputs, course, ranges, beacons[:, 1:], truth[:, 1:3], reckoned[:, 1:3], facts)


def facts_of(truth: Any, odometry: Any, reckoned: Any, heading: Any, ranges: int, doubled: int) -> dict[str, float]:
    """Length of the drive, and how far headings of several origins lie apart."""
    summed = truth[0, 3] + np.concatenate([[0.0], np.cumsum(odometry[:, 2])])
    return {
        "minutes": float(np.ptp(truth[:, 0])) / 60,
        "kilometers": float(np.hypot(*np.diff(truth[:, 1:3], axis=0).T).sum()) / 1000,
        "step": float(np.median(np.diff(truth[:, 0]))),
        "ranges": ranges,
        "doubled": doubled,
        "odometry": apart(summed, truth[:, 3]),
        "stored": apart(reckoned[:, 3], truth[:, 3]),
        "drift": apart(heading, truth[1:, 3]),
    }


def apart(a: Any, b: Any) -> float:
    """The largest angle between two headings."""
    return float(np.abs((a - b + np.pi) % (2 * np.pi) - np.pi).max())


def too_long(ranges: Any, truth: Any, beacons: Any) -> float:
    """The share by which ranges exceed distances: the slope of a line through the origin, less 1."""
    distance = np.hypot(*np.moveaxis(truth[:, None] - beacons, -1, 0))
    there = ~np.isnan(ranges)
    return float(distance[there] @ ranges[there] / (distance[there] @ distance[there])) - 1


def integrated(inputs: Any, course: float) -> Any:
    """Where odometry alone would lead."""
    heading = course + np.cumsum(inputs[:, 1])
    return np.cumsum(inputs[:, :1] * np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)


def rmse(found: Any, truth: Any) -> float:
    """Root of the mean squared distance, in meters."""
    return float(np.sqrt(((found[:, :2] - truth) ** 2).sum(axis=1).mean()))


# ------------------------------------------------------------------------- model

ERRORS = {"an offset a beacon": (True, False), "a scale a beacon": (False, True), "both": (True, True)}
START = np.log([0.05, 0.003, 0.5, 3.0, 1e-3])  # slip, turn, range, first error, its walk


def model(robot: Robot, odometry: str, errors: str, logs: Any) -> StateSpace:
    """Pose (x, y, θ), then the error of each beacon's ranges: offsets b, scales s, or both; r = d (1 + s) + b + e."""
    slip, turn, noise, first, walk = np.exp(logs)
    offsets, scales = ERRORS[errors]
    sizes = np.concatenate([np.ones(4 * offsets), np.full(4 * scales, 1 / TYPICAL)])  # in meters, and their share
    beacons = robot.beacons

    def transition(x: Any, t: int, u: Any) -> Any:
        moved, heading = x.copy(), x[:, 2] + u[1]
        moved[:, 0] += u[0] * np.cos(heading)
        moved[:, 1] += u[0] * np.sin(heading)
        moved[:, 2] = heading
        along = slip**2 * abs(u[0]) + 1e-10
        return lk.Gaussian(moved, np.concatenate([[along, along, turn**2], (walk * sizes) ** 2]))

    def observation(x: Any) -> Any:
        d = np.hypot(x[:, :1] - beacons[:, 0], x[:, 1:2] - beacons[:, 1])
        r = d * (1 + x[:, -4:]) if scales else d
        return lk.Gaussian(r + x[:, 3:7] if offsets else r, noise**2)

    mean = np.concatenate([[0.0, 0.0, robot.course[odometry]], np.zeros(len(sizes))])
    return StateSpace(
        lk.Gaussian(mean, np.concatenate([[0.01, 0.01, 0.01], (first * sizes) ** 2])), transition, observation
    )


def chosen(robot: Robot, odometry: str, errors: str, tries: int) -> Any:
    """The noise under which the ranges of the first frames are most probable."""
    y, u = robot.ranges[:LEARNED_FROM], robot.inputs[odometry][:LEARNED_FROM]

    def cost(logs: Any) -> float:
        return -float(ExtendedKalmanFilter(model(robot, odometry, errors, logs)).log_prob(y, u)[0])

    simplex = START + np.concatenate([np.zeros((1, 5)), 0.7 * np.eye(5)])
    options = {"maxfev": tries, "xatol": 0.02, "fatol": 0.1, "initial_simplex": simplex}
    return minimize(cost, START, method="Nelder-Mead", options=options)


# ---------------------------------------------------------------------- sections


def odometries(robot: Robot) -> str:
    lines = [[name, f"{rmse(integrated(u, robot.course[name]), robot.truth):.2f}"] for name, u in robot.inputs.items()]
    lines.insert(0, ["the path that comes with the data", f"{rmse(robot.reckoned, robot.truth):.2f}"])
    return f"## Odometry alone\n\n{table(['odometry', 'RMSE m'], lines)}\n{ODOMETRY.format(**robot.facts)}"


ODOMETRY = """The turns stored as `odometry` add up to the headings of the ground truth with a difference of
{odometry:.1g} radians at most, and the headings stored with the dead-reckoned path differ from them by {stored:.1g}:
they are the truth's, not what a gyroscope said. The dead-reckoned *positions* were made with a heading that drifts by
up to {drift:.2f} radians. Its turns can be read off that path (the direction of each step) and are called "drifting"
here. They are what the robot would have had: the figures that count are theirs.
"""


def error_models(robot: Robot, tries: int) -> tuple[str, str, Any]:
    lines, tried = [], {}
    for errors in ERRORS:
        found = chosen(robot, "drifting", errors, tries)
        tried[errors] = found
        filtered = ExtendedKalmanFilter(model(robot, "drifting", errors, found.x)).filter(
            robot.ranges, robot.inputs["drifting"]
        )
        noise = ", ".join(f"{v:.2g}" for v in np.exp(found.x))
        lines.append(
            [errors, f"{-found.fun:.0f}", f"{filtered.log_prob:.0f}", f"{rmse(filtered.mean, robot.truth):.2f}", noise]
        )
        print(lines[-1], flush=True)
    best = min(tried, key=lambda errors: tried[errors].fun)
    gained = tried["an offset a beacon"].fun - tried[best].fun
    told = RANGES.format(frames=LEARNED_FROM, best=best, gained=gained, **robot.facts)
    head = ["error of ranges", "log p, first third", "log p, all", "RMSE m", "slip, turn, range, first error, walk"]
    return f"## Errors of the ranges\n\n{table(head, lines)}\n{told}", best, tried[best].x


RANGES = """By an extended filter. The five standard deviations (slip in meters per root meter, turn in radians per
frame, noise of a range, error of a beacon at the start and its random walk, in meters at 40 m) maximize the evidence of
the first {frames:,} frames, a third, and stand from then on: no truth is used, and after the first third nothing of the
future. Beside the ground truth, ranges are too long in proportion to the distance, by {longer:.1f} %. That a scale is
worth a try was seen there; the evidence of the first third alone chooses {best}, by {gained:.0f} nats over an offset.
"""

FILTERS = {
    "extended": lambda m: ExtendedKalmanFilter(m),
    "extended, iterated": lambda m: ExtendedKalmanFilter(m, iterations=10),
    "unscented": lambda m: UnscentedKalmanFilter(m),
    "cubature, degree 3": lambda m: CubatureKalmanFilter(m),
    "cubature, degree 5": lambda m: CubatureKalmanFilter(m, 5),
}


def filters(robot: Robot, errors: str, logs: Any, tries: int) -> str:
    parts = []
    for odometry in robot.inputs:
        noise = logs if odometry == "drifting" else chosen(robot, odometry, errors, tries).x
        lines = [measured(robot, odometry, errors, noise, name) for name in FILTERS]
        head = [
            "filter",
            "RMSE m, filtered",
            "after the first third",
            "smoothed",
            "NEES of 2",
            "log p",
            "beyond 4 σ",
            "s",
        ]
        parts.append(f"### Odometry {odometry}\n\n{table(head, lines)}")
    return f"## Filters and smoothers, {errors}\n\n" + "\n".join(parts) + f"\n{TOLD}"


TOLD = """NEES is the squared error of the filtered position in units of its claimed covariance, 2 where the claim is
right. "Beyond 4 σ" is the share of ranges that lie more than four standard deviations from what was expected
before they came: no range needs a gate once its scale is modeled. A smoother has seen the whole drive, a filter only
what came before.
"""


def measured(robot: Robot, odometry: str, errors: str, logs: Any, name: str) -> list[Any]:
    f, u = FILTERS[name](model(robot, odometry, errors, logs)), robot.inputs[odometry]
    start = time.process_time()
    filtered = f.filter(robot.ranges, u)
    seconds = time.process_time() - start
    smoothed = f.smooth(robot.ranges, u)
    away = filtered.mean[:, :2] - robot.truth
    nees = np.einsum("ti,ti->t", away, np.linalg.solve(filtered.covariance[:, :2, :2], away[..., None])[..., 0])
    later = slice(LEARNED_FROM, None)
    line = [
        name, f"{rmse(filtered.mean, robot.truth):.2f}", f"{rmse(filtered.mean[later], robot.truth[later]):.2f}",
        f"{rmse(smoothed.mean, robot.truth):.2f}", f"{nees.mean():.1f}", f"{filtered.log_prob:.0f}",
        f"{100 * beyond_four_sd(f, robot.ranges, u):.2f} %", f"{seconds:.1f}",
    ]  # fmt: skip
    print(odometry, line, flush=True)
    return line


def beyond_four_sd(f: Any, y: Any, u: Any) -> float:
    """The share of ranges beyond four standard deviations of their own prediction."""
    belief, far, seen = None, 0, 0
    for frame, inputs in zip(y, u, strict=True):
        belief = f.initial_belief() if belief is None else f.predict(belief, inputs)
        there = ~np.isnan(frame)
        if there.any():
            predicted = f._observed(belief.mean, belief.root, belief.time, inputs)
            deviation = np.sqrt((predicted.root**2).sum(axis=0))
            far += int((np.abs(frame - predicted.mean)[there] > 4 * deviation[there]).sum())
            seen += int(there.sum())
        belief, _ = f.update(belief, frame, inputs)
    return far / seen


PREFACE = """# Results: robot localization by ranges

By `python bench/plaza.py` (data from `LIKELY_DATA`). Plaza 1: a robot mows for {minutes:.0f} minutes and
{kilometers:.2f} km, with odometry every {step:.1f} s and {ranges:,} ranges to four beacons whose places are known. The
state is the pose and an error of each beacon's ranges; odometry is the input, ranges are observations, missing in most
frames. Several ranges to one beacon in one frame ({doubled} times) are averaged. The start of the path is known.
Seconds are those of the processor for the filter alone: other programs on the machine do not count.
"""


def main() -> None:
    """Run all sections; without --quick they make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    tries, robot = 8 if quick else 150, load()
    first = odometries(robot)
    print(first, flush=True)
    second, errors, logs = error_models(robot, tries)
    third = filters(robot, errors, logs, tries)
    print(second, third, sep="\n")
    if not quick:
        PAGE.write_text("\n".join([PREFACE.format(**robot.facts), first, second, third, conditions()]))


if __name__ == "__main__":
    main()

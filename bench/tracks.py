"""Real tracks: where will the drone, or the ship, be at its next report, and do ellipses hold what they promise?

    python bench/tracks.py            drone and ships, clutter added, and the page docs/results/target-tracking.md
    python bench/tracks.py --quick    a few ships, nothing is written

Data come from LIKELY_DATA, else from ../shared/data. Noise is learned from the first half of the flight, and from half
of the ships; errors are those of the rest.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from likely.recognizers.tracking.tracker import Tracker
from pages import best_bold, conditions, table

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "target-tracking.md"
METERS = 111_320.0  # a degree of latitude
LEVELS = (0.5, 0.9, 0.99)
LONGEST = 60.0  # seconds to the next report, or it is not predicted
FASTEST = 40.0  # meters a second that a ship is believed
SKIPPED = 3  # first reports, from which a velocity is learned


class Path2(NamedTuple):
    """Times (T,) in seconds and places (T, 2) in meters."""

    times: Any
    places: Any


def meters(lat: Any, lon: Any) -> Any:
    """East and north of the first place."""
    return np.column_stack([(lon - lon[0]) * METERS * np.cos(np.radians(lat[0])), (lat - lat[0]) * METERS])


def drone() -> Path2:
    t, lat, lon = np.loadtxt(DATA / "tracking" / "uav_gps.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3)).T
    return Path2(t, meters(lat, lon))


def ships(least: int = 40, fastest: float = FASTEST) -> list[Path2]:
    """Ships with so many reports, two seconds apart and more, that went at least 500 meters; see `believable`."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    with gzip.open(DATA / "tracking" / "solent_ais.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            when = datetime.fromisoformat(row["Time"]).timestamp()
            place = float(row["Latitude_degrees"]), float(row["Longitude_degrees"])
            found.setdefault(row["MMSI"], []).append((when, *place))
    out = []
    for _, reports in sorted(found.items()):
        t, lat, lon = np.array(sorted(reports)).T
        apart = np.concatenate([[True], np.diff(t) >= 2.0])
        path = believable(Path2(t[apart] - t[0], meters(lat[apart], lon[apart])), fastest)
        if len(path.times) >= least and np.ptp(path.places, axis=0).max() > 500:
            out.append(path)
    return out


def believable(path: Path2, fastest: float) -> Path2:
    """Without reports that no ship can have come to, at so many meters a second, from the last one that was kept."""
    kept = [0]
    for i in range(1, len(path.times)):
        j = kept[-1]
        if np.linalg.norm(path.places[i] - path.places[j]) <= fastest * (path.times[i] - path.times[j]):
            kept.append(i)
    return Path2(path.times[kept], path.places[kept])


class Ahead(NamedTuple):
    """Errors one report ahead (n,) of three predictions, and squared distances (n,) in claimed standard deviations."""

    ours: Any
    place: Any
    velocity: Any
    distances: Any


def ahead(tracker: Tracker, path: Path2, longest: float = LONGEST) -> Ahead:
    """Predict every report from those before it; those that come after more than so many seconds are not counted."""
    model, t, y = tracker._continuous, path.times, path.places
    belief, errors, far = model.initial_belief(), [], []
    for i, (when, place) in enumerate(zip(t, y, strict=True)):
        there = model.predict(belief, when)
        if i >= SKIPPED:
            C, R = model.observation, model.observation_covariance
            off = place - C @ there.mean
            errors.append(np.linalg.norm(off))
            far.append(off @ np.linalg.solve(C @ there.covariance @ C.T + R, off))
        belief, _ = model.update(belief, (when, place))
    still = np.linalg.norm(np.diff(y, axis=0), axis=1)[SKIPPED - 1 :]
    step = np.diff(t)
    last = np.diff(y, axis=0)[:-1] / np.maximum(step[:-1, None], 1e-9)
    on = np.linalg.norm(y[2:] - y[1:-1] - last * step[1:, None], axis=1)[SKIPPED - 2 :]
    soon = step[SKIPPED - 1 :] <= longest
    return Ahead(*(np.asarray(part)[soon] for part in (errors, still, on, far)))


def together(parts: list[Ahead]) -> Ahead:
    return Ahead(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def line(name: str, found: Ahead) -> list[str]:
    """Errors and coverage as a row of the table."""
    rms = best_bold([float(np.sqrt((e**2).mean())) for e in found[:3]])
    median = [f"{np.median(e):.2f}" for e in found[:3]]
    inside = [f"{100 * (found.distances <= chi2.ppf(level, 2)).mean():.1f}" for level in LEVELS]
    cells = [f"{root} ({middle})" for root, middle in zip(rms, median, strict=True)]
    return [name, str(len(found.ours)), *cells, *inside]


def prediction(quick: bool) -> str:
    flight, fleet = drone(), ships()
    half = len(flight.times) // 2
    fly = Tracker().fit(flight.places[:half], flight.times[:half])
    lines = [line("drone, second half", ahead(fly, Path2(*(a[half:] for a in flight))))]
    learned, rest = fleet[::2], fleet[1::2]
    learned, rest = (learned[:4], rest[:4]) if quick else (learned, rest)
    sail = Tracker().fit([p.places for p in learned], [p.times for p in learned])
    lines.append(line(f"{len(rest)} ships", together([ahead(sail, p) for p in rest])))
    lines += uncut(sail, quick)
    head = ["track", "reports", "tracker", "last place", "last velocity", "% in 50", "90", "99"]
    noise = "; ".join(
        f"{name}: acceleration {', '.join(f'{v:.2g}' for v in m.spectral_density_)} m²/s³, "
        f"deviation of a report {', '.join(f'{v:.2g}' for v in np.sqrt(m.observation_variance_))} m"
        for name, m in (("drone", fly), ("ships", sail))
    )
    learned = f"Learned, east and north: {noise}."
    return f"## One-step prediction\n\n{table(head, lines)}\n{learned}\n\n{AHEAD}\n{steps(flight)}\n"


def uncut(sail: Tracker, quick: bool) -> list[list[str]]:
    """The same ships, without one rule and without both, by a tracker that learned from such reports itself."""
    every = ships(fastest=np.inf)
    learned, rest = (every[::2][:4], every[1::2][:4]) if quick else (every[::2], every[1::2])
    plain = Tracker().fit([p.places for p in learned], [p.times for p in learned])
    kept = ships()[1::2][:4] if quick else ships()[1::2]
    return [
        line("the same, also after long silence", together([ahead(sail, p, np.inf) for p in kept])),
        line(f"all reports of {len(rest)} ships, nothing taken out", together([ahead(plain, p, np.inf) for p in rest])),
    ]


def steps(path: Path2) -> str:
    """How the drone's reports go: shares that repeat the last place, and how far the others lie from it."""
    moved = np.linalg.norm(np.diff(path.places, axis=0), axis=1)
    turn = np.linalg.norm(np.diff(path.places, 2, axis=0), axis=1)
    return (
        f"Of the drone's reports {100 * (moved == 0).mean():.0f} % repeat the last place to the last digit; second "
        f"differences have a median of {np.median(turn):.2g} m and a 99th percentile of {np.quantile(turn, 0.99):.2g} "
        f"m, {np.quantile(turn, 0.99) / max(np.median(turn), 1e-9):.0f} times as much (a Gaussian has 2.6)."
    )


AHEAD = """Root mean squared error in meters (and the median) of the place of the next report: by the tracker (constant
velocity, noise by maximum likelihood), by the last place, and by the last place and the velocity between the last
two. Reports that a ship would have had to come to at more than 40 m/s were taken out; those that came more than a
minute after the last are followed, but not counted. Both rules were made after a look at the
errors, and the last two lines tell what they hide. It is silence that makes the difference: a few dozen reports after
more than a minute, up to 38 minutes, in which a straight line leads kilometers away, and the last place is by far the
better guess. The last line has another choice of ships, and a tracker that learned from such reports, so it tells
little of the rule of speed alone.

The right columns are shares of reports within the ellipses of 50, 90 and 99 %, and on real tracks they do not hold what
they promise: too many within 50 %, too few within 99 %. Targets do not accelerate by white Gaussian noise. A drone
hovers or flies straight on for most of the time, then brakes and turns within a second or two, and one distribution of
acceleration serves both, as it serves a ferry and a ship at anchor: errors have far heavier tails than a Gaussian. It
is not the grid of the reports (2 cm for the drone), nor its clock (one report a second, to the digit). The drone's
reports come out of a filter of its own, hence no noise is found in them. Where ellipses matter, give a model with
regimes (`SwitchingLinearGaussian`).
"""


def clutter(quick: bool) -> str:
    """False reports are mixed among those of the drone."""
    flight, rng, lines = drone(), np.random.default_rng(0), []
    half = len(flight.times) // 2
    fly = Tracker().fit(flight.places[:half], flight.times[:half])
    t, y = flight.times[half:], flight.places[half:]
    t, y = (t[:60], y[:60]) if quick else (t, y)
    low, high = y.min(axis=0) - 100, y.max(axis=0) + 100
    for count in (1, 5, 20):
        density = count / float(np.prod(high - low))
        scans = [_scan(rng, place, count, low, high) for place in y]
        tracker = Tracker(clutter_density=density, detection_probability=0.9, speed=10.0)
        tracker.spectral_density_ = fly.spectral_density_
        tracker.observation_variance_ = np.maximum(fly.observation_variance_, 0.25)
        track = tracker.run(scans, t)
        off = np.linalg.norm(track.mean[:, :2] - y, axis=1)
        ok = track.confirmed & (off < 10)
        wrong = track.confirmed & (off >= 10)
        lines.append(
            [count, f"{100 * ok.mean():.1f}", f"{100 * wrong.mean():.1f}", f"{np.median(off[ok]):.2f}", len(track.lost)]
        )
        print(lines[-1], flush=True)
    head = ["false reports a scan", "% of scans on the drone", "% on something else", "median error m", "times lost"]
    return f"## Tracking in clutter\n\n{table(head, lines)}\n{CLUTTER}"


def _scan(rng: Any, place: Any, count: int, low: Any, high: Any) -> Any:
    seen = place[None][: int(rng.random() < 0.9)]
    return np.vstack([seen, rng.uniform(low, high, (rng.poisson(count), 2))])


CLUTTER = """The second half of the flight; nine of ten true reports are kept, and false ones are strewn evenly over the
region of the flight and 100 m around it. "On the drone" is a confirmed track within 10 m of the true report. A sharp
turn, for which the learned acceleration leaves no room, loses the track for some scans.
"""

PREFACE = """# Results: target tracking

By `python bench/tracks.py` (data from `LIKELY_DATA`). A drone that reports its place every second (965 reports), and
ships in the Solent that report at irregular times. Noise was learned from the first half of the flight and from
every other ship; what is measured is the other half.
"""


def main() -> None:
    """Run all sections; without --quick they make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    parts = [PREFACE, prediction(quick), clutter(quick), conditions()]
    print("\n".join(parts))
    if not quick:
        PAGE.write_text("\n".join(parts))


if __name__ == "__main__":
    main()

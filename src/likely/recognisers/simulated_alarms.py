"""How often a monitor would raise alarms, and for how long, if normal frames followed laws near the learnt one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.models.fault_watch import FaultWatch
from likely.models.sensor_dynamics import Chosen, plausible

LAWS = 100  # that the frames do not exclude
WIDE, FEWER = 100, 40  # sensors beyond which it is so many laws: each costs time with the cube of the sensors
FRAMES = 1000  # of each
ENTRY = 50  # before them, in which the monitor settles
EXCLUDED = 0.025  # share of laws with the most alarms: half of 5 %, the rest is for what no simulation knows of


class Simulated(NamedTuple):
    """Alarms of a monitor in frames of laws that differ from the learnt one by its sampling error."""

    share: float  # of frames in alarm that only the laws with the most alarms exceed
    run_length: float  # mean number of consecutive frames in alarm under the other laws; 1 where there is none


def simulated_alarms(watch: FaultWatch, normal: Chosen, seed: int = 0) -> Simulated:
    """How often and how long a monitor that has learnt `normal` raises alarms while all is well."""
    rng = np.random.default_rng(seed)
    laws = plausible(normal, LAWS if watch.normal.dim <= WIDE else FEWER, rng)
    alarm = odds_of_streams(watch, laws.frames(normal.law.start, ENTRY + 1 + FRAMES, rng))[ENTRY:] > watch.threshold
    shares = alarm.mean(axis=0)
    share = float(np.quantile(shares, 1.0 - EXCLUDED))
    alarm = alarm[:, shares <= share]
    begins = alarm & ~np.concatenate([np.zeros_like(alarm[:1]), alarm[:-1]])
    return Simulated(share, float(alarm.sum() / begins.sum()) if alarm.any() else 1.0)


def odds_of_streams(watch: FaultWatch, frames: Iterable[Array]) -> Array:
    """Log-odds of a fault (T − 1, B) in B streams at a time, from frames (B, p) without gaps in units of training.

    The first frame is only what the second one is predicted from. The same as `FaultWatch.update`, stream by stream.
    """
    law, c, later = watch.normal, watch.size, iter(frames)
    out: list[Array] = []
    before = next(later)
    offsets, logs = np.zeros((len(before), len(c), law.dim)), np.tile(watch.initial().log_weights, (len(before), 1))
    for x in later:
        u, *of_faults = (one.white(before, x) for one in (law, *watch.faults))
        away, squares = u[:, None] - offsets, (u * u).sum(axis=1)
        pushed = -0.5 * law.dim * np.log1p(c) - 0.5 * ((away * away).sum(axis=2) / (1 + c) - squares[:, None])
        known = [0.5 * (squares - (v * v).sum(axis=1)) + law._constant - one._constant
                 for one, v in zip(watch.faults, of_faults, strict=True)]  # fmt: skip
        logs = watch._moved(logs) if out else logs
        logs[:, 1:] += watch.shares * np.column_stack([pushed, *known])
        fault = np.logaddexp.reduce(logs[:, 1:], axis=1)
        out.append(fault - logs[:, 0])
        logs = logs - np.logaddexp(fault, logs[:, 0])[:, None]
        offsets, before = watch.memory[:, None] * (offsets + (c / (1 + c))[:, None] * away), x
    return np.array(out)

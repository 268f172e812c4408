"""Fault monitors and trackers for `likely follow`: models with a decision rule of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.cli.following.follow_models import Subject


class OfSensors(Subject):
    """A `FaultMonitor`: P(fault), the alarm, and the sensor with the largest contribution in bits."""

    decides = "has its own alarm rule, by costs or by a stated rate; see the column alarm"

    def __init__(self, plays: Any, names: list[str], known: list[str]) -> None:
        super().__init__(plays, dict.fromkeys(names, "real"))
        self.known = known

    def more(self, belief: Any) -> dict[str, Any]:
        """P(fault), P(each known fault), the alarm, and the sensor with the largest contribution, if any."""
        bits = self.plays.contributions(belief)
        most = int(np.argmax(bits))
        each = self.plays.kinds(belief)[2:].tolist()
        return {
            "p(fault)": min(belief.fault, 1.0), **{f"p(fault {k})": p for k, p in zip(self.known, each, strict=True)},
            "alarm": bool(belief.alarm), "speaks": self._name(most) if bits[most] > 0 else "",
            "bits": float(bits[most]),
        }  # fmt: skip

    def _name(self, j: int) -> str:
        return f"sensor {j}" if self.nameless else list(self.columns)[j]


class OfTracks(Subject):
    """A `Tracker`: whether there is a target, whether the track counts as found; its place follows as means."""

    decides = "has its own rule, by its settings confirm and lose; see the column confirmed"

    def more(self, belief: Any) -> dict[str, Any]:
        """P(there is a target), and whether the track is confirmed."""
        return {"exists": min(belief.exists, 1.0), "confirmed": bool(belief.confirmed)}


def recognizer_of(thing: Any, plays: Any, names: list[str]) -> Subject | None:
    """The subject of a monitor or a tracker; None for all else."""
    if type(plays).__name__ == "FaultWatch":
        labels = getattr(thing, "classes_", np.arange(len(plays.faults)))
        return OfSensors(plays, names, [str(label) for label in labels.tolist()])
    return OfTracks(plays, dict.fromkeys(names, "real")) if type(plays).__name__ == "DataAssociation" else None

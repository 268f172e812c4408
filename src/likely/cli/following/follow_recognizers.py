"""Recognizers that decide for themselves, as `likely follow` needs them: a monitor of sensors, a tracker."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.cli.following.follow_models import Subject


class OfSensors(Subject):
    """A `FaultMonitor`: how probable a fault is, whether it calls, and which sensor speaks most, with its bits."""

    decides = "decides itself, by its costs or its stated rate; the column alarm says what"

    def __init__(self, plays: Any, names: list[str], known: list[str]) -> None:
        super().__init__(plays, dict.fromkeys(names, "real"))
        self.known = known

    def more(self, belief: Any) -> dict[str, Any]:
        """P(fault), P(each known fault), the alarm, and who speaks most; nobody does where nothing is off."""
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

    decides = "decides itself, by its settings confirm and lose; the column confirmed says what"

    def more(self, belief: Any) -> dict[str, Any]:
        """P(there is a target), and whether the track is confirmed."""
        return {"exists": min(belief.exists, 1.0), "confirmed": bool(belief.confirmed)}


def recognizer_of(thing: Any, plays: Any, names: list[str]) -> Subject | None:
    """The subject of a monitor or a tracker; None for all else."""
    if type(plays).__name__ == "FaultWatch":
        labels = getattr(thing, "classes_", np.arange(len(plays.faults)))
        return OfSensors(plays, names, [str(label) for label in labels.tolist()])
    return OfTracks(plays, dict.fromkeys(names, "real")) if type(plays).__name__ == "DataAssociation" else None

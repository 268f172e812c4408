"""Models that `likely follow` can filter online: observations from cells, and beliefs in output columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from likely.cli.following.follow_lines import number, word
from likely.core.errors import LikelyError, ModelFileError, sentence

REGIMES = ("probs", "regimes")  # what a belief calls the probabilities of its states


class Subject:
    """A model that is followed: `filter`, `columns` (name → kind) of an observation, `states` their names."""

    decides = ""  # how a model that raises alarms itself does so
    held_out_novelty: Any = np.empty((3, 0))  # novelty scores of frames that the model had not learned from
    later = 0.0  # share of rare frames in later halves, by the earlier ones alone

    def __init__(self, filter_: Any, columns: Mapping[str, str], states: Any = None, original: Any = None) -> None:
        self.filter, self.columns, self.states = filter_, dict(columns), states
        self.roles: dict[str, str] = {}
        self.nameless = list(self.columns) in (["symbol"], [str(j) for j in range(len(self.columns))])
        self.sums = None if original is None else np.eye(int(original.max()) + 1)[original]
        self.timed = bool(getattr(filter_, "continuous_time", False))  # the inputs of a line are then its time
        self.n_inputs = 0 if self.timed else _n_inputs(filter_)

    def observation(self, cells: Mapping[str, Any], missing: frozenset[str]) -> Any:
        """What `update` takes, from cells by the feed's names for them, in the order of the model's columns."""
        return np.array([number(cell, name, missing) for name, cell in cells.items()])

    def shares(self, belief: Any) -> Any:
        """The probabilities of the states, or regimes, that a belief knows of; None where it knows of none."""
        probs = next((getattr(belief, name) for name in REGIMES if hasattr(belief, name)), None)
        return probs if probs is None or self.sums is None else probs @ self.sums

    def more(self, belief: Any) -> dict[str, Any]:
        """Further output columns of a belief, beside states and means."""
        return {}


class OfSensors(Subject):
    """A `FaultMonitor`: P(fault), the alarm, and the sensor with the largest contribution in bits."""

    decides = "has its own alarm rule, by costs or by a stated rate; see the column alarm"

    def __init__(self, filter_: Any, names: list[str], known: list[str]) -> None:
        super().__init__(filter_, dict.fromkeys(names, "real"))
        self.known = known

    def more(self, belief: Any) -> dict[str, Any]:
        """P(fault), P(each known fault), the alarm, and the sensor with the largest contribution, if any."""
        bits = self.filter.contributions(belief)
        most = int(np.argmax(bits))
        each = self.filter.kinds(belief)[2:].tolist()
        name = f"sensor {most}" if self.nameless else list(self.columns)[most]
        return {
            "p(fault)": min(belief.fault, 1.0), **{f"p(fault {k})": p for k, p in zip(self.known, each, strict=True)},
            "alarm": bool(belief.alarm), "speaks": name if bits[most] > 0 else "", "bits": float(bits[most]),
        }  # fmt: skip


class OfTracks(Subject):
    """A `Tracker`: whether there is a target, whether the track counts as found; its place follows as means."""

    decides = "has its own rule, by its settings confirm_above and lose_below; see the column confirmed"

    def more(self, belief: Any) -> dict[str, Any]:
        """P(there is a target), and whether the track is confirmed."""
        return {"exists": min(belief.exists, 1.0), "confirmed": bool(belief.confirmed)}


class OfChains(Subject):
    """A chain whose frames hold words too. As in `lk.follow`, a word that training never saw is missing where the model
    has a table of its own (`SequenceDensity`), and impossible in a bare `HMM` or `HMMDensity`, as in their log p."""

    def __init__(self, known: Any, original: Any, takes_any: bool) -> None:
        super().__init__(known.model_, known.columns, known.state_names, original)
        self.known, self.roles, self.takes_any = known, known.schema["roles"], takes_any
        density = getattr(known, "density_", None)
        self.held_out_novelty, self.later = (
            getattr(density, "held_out_novelty_", self.held_out_novelty),
            getattr(density, "later_half_rate_", self.later),
        )
        self.nameless = self.nameless and not known.card
        self.plain = "category" not in self.columns.values() and _is_plain(known.model_.emission)

    def observation(self, cells: Mapping[str, Any], missing: frozenset[str]) -> Any:
        """A frame as the chain takes it."""
        if self.plain:
            return super().observation(cells, missing)
        from likely.core.columns import Columns
        from likely.core.ragged import Ragged
        from likely.data.read_sequences import Sequences

        parts = {
            name: np.array([word(cell, missing)], dtype=object) if kind == "category" else
            np.array([number(cell, called, missing)])
            for (name, kind), (called, cell) in zip(self.columns.items(), cells.items(), strict=True)
        }  # fmt: skip
        found = Sequences(Ragged.of(Columns(parts), np.array([1])), np.array(["0"]), columns=tuple(parts))
        frame = (self.known.known(found)[0] if self.takes_any else _as_it_is(self.known, found)).values
        return {name: part[0] for name, part in frame.parts.items()} if isinstance(frame, Columns) else frame


def _as_it_is(known: Any, found: Any) -> Any:
    """Frames inside the border of a bare model, whatever words they hold."""
    rows = known.frames(found)
    return known.density_.validate_rows(rows, reset=False) if hasattr(known, "density_") else rows


def _is_plain(distribution: Any) -> bool:
    """Whether frames are rows of numbers."""
    from likely.distributions.stacks.tied import untied

    inner = untied(distribution)
    return not hasattr(inner, "names") and not hasattr(inner, "levels")


def subject_of(thing: Any, path: str) -> Subject:
    """The filter of the model in a file."""
    from likely.core.filter_protocol import as_filter

    try:
        filter_ = as_filter(thing)
    except LikelyError:
        remedy = "`likely show` describes this file"
        got = type(thing).__name__
        raise ModelFileError(sentence(path, "a model with an online filter is needed", got, remedy)) from None
    if hasattr(getattr(filter_, "model", filter_), "emission"):
        return _chain(thing, filter_, path)
    names = _names(thing, filter_, path)
    if hasattr(filter_, "contributions"):
        labels = getattr(thing, "classes_", np.arange(len(filter_.faults)))
        return OfSensors(filter_, names, [str(label) for label in labels.tolist()])
    kind = OfTracks if hasattr(filter_.initial_belief(), "exists") else Subject
    return kind(filter_, dict.fromkeys(names, "real"), _regimes(filter_))


def _chain(thing: Any, filter_: Any, path: str) -> Subject:
    from likely.cli.open_model import BareChain, named

    if (thing is filter_ and getattr(filter_, "members", None) is None) or _n_inputs(filter_):
        bare: Any = BareChain(filter_)  # without scikit-learn, whose import takes longer than all else
        return OfChains(bare, bare.original, takes_any=False)
    known = named(thing, path)
    return OfChains(known, known.density_.topology_.original, takes_any=known is thing)


def _n_inputs(filter_: Any) -> int:
    """Numbers of known inputs per frame: control inputs, or covariates."""
    system = getattr(filter_, "model", filter_)  # of filters that go by another's model
    return int(getattr(system, "n_inputs", None) or getattr(system, "n_covariates", None) or 0)


def _names(thing: Any, filter_: Any, path: str) -> list[str]:
    """Names of the columns; numbers if they have none."""
    given = getattr(thing, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    system = getattr(filter_, "model", filter_)  # of filters that go by another's model
    width = getattr(thing, "n_features_in_", None) or getattr(system, "dim", None)
    width = system.regimes[0].dim if width is None and hasattr(system, "regimes") else width
    if width is None:
        expected = "the number of columns of an observation must be known"
        raise ModelFileError(sentence(path, expected, type(thing).__name__, "follow it from Python: lk.follow"))
    return [str(j) for j in range(int(width))]


def _regimes(filter_: Any) -> list[str] | None:
    system = getattr(filter_, "model", filter_)
    return [str(k) for k in range(len(system.regimes))] if hasattr(system, "regimes") else None


def describe_belief(belief: Any, subject: Subject) -> dict[str, Any]:
    """A belief state in named columns: the most probable state and all probabilities; means and standard deviations.

    >>> from likely.distributions.categorical.categorical import Categorical
    >>> describe_belief(Categorical([0.25, 0.75]), Subject(None, {}, ["calm", "storm"]))
    {'state': 'storm', 'p(calm)': 0.25, 'p(storm)': 0.75}
    """
    cells: dict[str, Any] = subject.more(belief)
    shares = subject.shares(belief)
    if shares is not None:
        names = subject.states or [str(k) for k in range(len(shares))]
        cells["state"] = names[int(np.argmax(shares))]
        cells.update({f"p({name})": min(float(p), 1.0) for name, p in zip(names, shares, strict=True)})
    if hasattr(belief, "mean") and hasattr(belief, "covariance"):
        mean = np.atleast_1d(belief.mean)
        variance = np.diagonal(np.atleast_2d(belief.covariance))
        cells.update({f"mean({i})": _known(m) for i, m in enumerate(mean.tolist())})
        cells.update({f"sd({i})": _known(math.sqrt(max(v, 0.0))) for i, v in enumerate(variance.tolist())})
    return cells


def _known(value: float) -> float | None:
    """A number, or None where there is none: a track that has not begun is nowhere."""
    return None if math.isnan(value) else value

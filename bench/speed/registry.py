"""Workloads and the libraries that do them.

A workload is a generator of data (deterministic, its argument scales the sizes), a quality that is common to all, and
one function per library: the function prepares, and what it returns is timed.

    @workload("kmeans", "500,000 x 16, 64 clusters", bounds={"max_err": 1e-8})
    def kmeans(scale):
        return {"X": ...}

    @kmeans.quality
    def _(d, result):
        return {"inertia": ..., "max_err": ...}

    @kmeans.peer("sklearn", note="KMeans, lloyd")
    def _(d):
        from sklearn.cluster import KMeans

        return lambda: {"centers": KMeans(...).fit(d["X"]).cluster_centers_}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

MODULES = ("gaussians", "mixtures", "clusters", "densities", "hidden_markov", "state_space", "warping")
WORKLOADS: dict[str, Workload] = {}


class Infeasible(Exception):
    """Raised in set-up where a library cannot do a workload; the message is the reason."""


class Peer(NamedTuple):
    """One library's way to do a workload."""

    prepare: Callable[[Any], Callable[[], Any]]
    note: str
    compiles_long: bool  # minutes, whatever the size of the data: not in a smoke test


@dataclass
class Workload:
    """A job, with those who do it."""

    name: str
    size: str
    generate: Callable[[float], Any]
    repeats: int
    calls: int  # of the library within one timed run
    bounds: dict[str, float]  # quality figures beyond which a library did another, easier job
    peers: dict[str, Peer] = field(default_factory=dict)
    judge: Callable[[Any, Any], dict[str, Any]] = lambda d, result: {}

    def quality(self, judge: Callable[[Any, Any], dict[str, Any]]) -> Callable[[Any, Any], dict[str, Any]]:
        """Decorator of the function that gives the quality figures of a result."""
        self.judge = judge
        return judge

    def peer(self, name: str, note: str = "", compiles_long: bool = False) -> Callable[[Any], Any]:
        """Decorator of the function that prepares one library's run."""

        def register(prepare: Any) -> Any:
            self.peers[name] = Peer(prepare, note, compiles_long)
            return prepare

        return register


def workload(
    name: str, size: str, repeats: int = 3, calls: int = 1, bounds: dict[str, float] | None = None
) -> Callable[[Callable[[float], Any]], Workload]:
    """Decorator of a generator of data: it becomes a workload."""

    def register(generate: Callable[[float], Any]) -> Workload:
        WORKLOADS[name] = Workload(name, size, generate, repeats, calls, bounds or {})
        return WORKLOADS[name]

    return register


def load() -> dict[str, Workload]:
    """All workloads."""
    for module in MODULES:
        import_module(f"speed.{module}")
    return WORKLOADS

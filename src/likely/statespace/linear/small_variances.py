"""A variance near 0 hides its slope: in its logarithm all is flat there, so it is looked at in the data's own units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd
from likely.statespace.linear.linear_e_step import inverse, size
from likely.statespace.linear.linear_em import at_model
from likely.statespace.linear.linear_score import flat_root
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import SPREADS, Structure, blocks_of, in_blocks, variance_labels

SMALL = 1e-5  # share of a variance that data know about, below which its slope is looked for further up
PROBE = 1e-3  # share at which it is looked for
LEAST = 1e-12  # share that can be told from none
ROUNDED = 1e-7  # share of a variance that may be rounding
EPS = 64 * float(np.finfo(np.float64).eps)  # of what moments are differences of: a few roundings each
PROBES = 5

Look = Callable[[Any], tuple[LinearStats, LinearStats]]


class Lift(NamedTuple):
    """A variance that may grow: `way` (d, d) is the part of its covariance that is a multiple of it."""

    name: str
    way: Array
    slope: float  # ∂ log p / ∂ log of the variance
    share: float  # 1 − (what stays uncertain of its noise) / variance: variance / share is the data's scale of it
    rounding: float  # share of the variance that moments cannot tell from 0
    frames: float

    @classmethod
    def of(cls, name: str, way: Array, n: float, all_of: float, known: float, rounded: float) -> Lift:
        """From second moments in units of the variance, n of them."""
        return cls(name, way, 0.5 * (all_of - n), 1.0 - (all_of - known) / n, rounded / n, n)

    @property
    def lost(self) -> bool:
        """True if the variance is too small to see its slope."""
        return self.share < SMALL or self.rounding > ROUNDED

    @property
    def until_seen(self) -> float:
        """How many times itself must be added so that its slope is seen, where data still hardly feel it."""
        if self.rounding > ROUNDED:
            return 2.0 * self.rounding / ROUNDED
        return PROBE / max(self.share, LEAST)

    @property
    def gain(self) -> float:
        """What log p would gain about, were it raised to the data's scale: a score test   (½ slope² / information)."""
        return (self.slope / max(self.share, LEAST)) ** 2 / self.frames if self.slope > 0 else 0.0


class Scatters(NamedTuple):
    """Σ E[r rᵀ], its part Σ E[r] E[r]ᵀ, what may be rounding of it, each (d, d), and the weight of all."""

    every: Array
    known: Array
    rounded: Array
    n: float
    white: Array  # (2, 2): of every and of known, where the covariance changes, as in `LinearStats`

    def inside(self, at: Any) -> Scatters:
        """Those of a block."""
        return self._replace(every=self.every[at], known=self.known[at], rounded=self.rounded[at])

    def through(self, f: Callable[[Array], float]) -> tuple[float, float, float]:
        """f of each."""
        return f(self.every), f(self.known), f(self.rounded)


def lifts(model: Any, moments: tuple[LinearStats, LinearStats], prior: Any, structure: Structure) -> list[Lift]:
    """All variances that are learned, from the E-step's moments and those of what it expects alone.

    Noise w of variance v has Σ E[w²] = Z, of which M = Σ E[w]² is known: data tell the share ρ = 1 − (Z − M) / (n v) of
    it, which falls in proportion to v once v is below the scale v / ρ of what data see of it. A maximum needs a slope
    that is not positive: (Z / v − n) / 2 ≤ 0, or v is not at the data's scale because nothing was learned of it.
    """
    every, known = (at_model(model, s if prior is None else s + prior.stats) for s in moments)
    out: list[Lift] = []
    for name, of in _scatters(model, every, known):
        if name in structure.learn and of.n > 0:
            out += _of_form(name, getattr(model, name), of, structure.form.get(name, "full"))
    return out


def _scatters(model: Any, every: LinearStats, known: LinearStats) -> Iterator[tuple[str, Scatters]]:
    white, d = np.stack([every.white, known.white], axis=1), model.states
    P, squares = (every.before - known.before)[:d, :d], np.diagonal(known.before)[:d]
    A = every.move[:, :d]
    moved = np.maximum(np.diagonal(P), np.einsum("ij,jk,ik->i", A, P, A))
    seen = np.einsum("ij,jk,ik->i", every.emit, known.states, every.emit)
    first = model.initial_mean**2 * every.n_initial + np.diagonal(known.first_scatter)
    yield (
        "process_covariance",
        Scatters(every.noise, known.noise, _rounded(moved, squares), float(every.n_transitions), white[0]),
    )
    yield (
        "observation_covariance",
        Scatters(every.observed, known.observed, _rounded(0.0, seen), float(every.seen), white[1]),
    )
    scatter = every.first_scatter, known.first_scatter
    yield "initial_covariance", Scatters(*scatter, _rounded(0.0, first), float(every.n_initial), white[0])


def _rounded(differences: Any, squares: Array) -> Array:
    """What is lost of differences of second moments, and of squares of differences."""
    return np.diag(EPS * np.abs(differences) + EPS**2 * np.abs(squares))


def _of_form(name: str, S: Array, of: Scatters, form: Any) -> Iterator[Lift]:
    if S.ndim == 3:
        yield from _of_changing(name, S, of)
    elif in_blocks(form):
        for kind, at in blocks_of(form):
            inside = np.ix_(at, at)
            for lift in [] if kind == "fixed" else _of_form(name, S[inside], of.inside(inside), kind):
                yield lift._replace(way=_placed(lift.way, inside, S.shape))
    elif isinstance(form, str) and form in ("full", "scale"):
        yield from (_of_directions if form == "full" else _of_size)(name, S, of)
    else:
        yield from _of_labels(name, S, of, variance_labels(len(S), form))


def _placed(way: Array, inside: Any, shape: tuple[int, ...]) -> Array:
    out = np.zeros(shape)
    out[inside] = way
    return out


def _of_changing(name: str, S: Array, of: Scatters) -> Iterator[Lift]:
    """The size of a covariance that changes with time."""
    every, known = of.white[:, 0] / max(size(S), 1e-300)
    if of.white[0, 1] > 0:
        rounded = float(np.trace(of.rounded)) / max(size(S), 1e-300)
        yield Lift.of(name, S, float(of.white[0, 1]), every, known, rounded)


def _of_size(name: str, S: Array, of: Scatters) -> Iterator[Lift]:
    inv, _, rank = inverse(S)
    if rank:
        yield Lift.of(name, S, of.n * float(rank), *of.through(lambda a: float((inv * a).sum())))


def _of_labels(name: str, S: Array, of: Scatters, labels: Any) -> Iterator[Lift]:
    v = np.diagonal(S)
    for label in np.unique(labels[(labels > 0) & (v > 0)]):
        at = np.flatnonzero((labels == label) & (v > 0))
        way = np.zeros_like(S)
        way[at, at] = v[at]
        yield Lift.of(name, way, of.n * len(at), *of.through(lambda a, i=at: float((a[i, i] / v[i]).sum())))  # type: ignore[misc]


def _of_directions(name: str, S: Array, of: Scatters) -> Iterator[Lift]:
    """Directions of a free covariance of which data know more or less, each by itself."""
    K, s = flat_root(S), spd.scales(S)
    back = np.linalg.pinv(K / s[:, None]) / s
    uncertain = back @ (of.every - of.known) @ back.T
    _, vectors = np.linalg.eigh(spd.symmetric(uncertain))
    for u in vectors.T:
        way, row = K @ u, u @ back
        yield Lift.of(name, np.outer(way, way), of.n, *of.through(lambda a, r=row: float(r @ a @ r)))  # type: ignore[misc]


def raised(model: Any, some: list[Lift], by: list[float]) -> Any:
    """The model with these variances greater by so many times themselves."""
    parts = {name: getattr(model, name) for name in (*SPREADS, "initial_covariance")}
    for lift, times in zip(some, by, strict=True):
        parts[lift.name] = parts[lift.name] + times * lift.way
    return model.replace(**{lift.name: parts[lift.name] for lift in some})


class Doubt(NamedTuple):
    """Variances that should be raised, the best first; looks it took, and whether more would have told more."""

    lifts: list[Lift]
    looks: int
    cut: bool


def doubt(model: Any, look: Look, prior: Any, structure: Structure, least: float, looks: int = PROBES) -> Doubt:
    """Which variances ought to be greater, for a gain of at least so much, though their logarithms have no slope.

    Those that are lost in rounding are looked at where they are greater, and only those: the model is not at its
    maximum there, so that the slopes of all others say nothing.
    """
    found, made, good = lifts(model, look(model), prior, structure), 1, []
    while True:
        good += [lift for lift in found if not lift.lost and lift.gain > least]
        lost = [lift for lift in found if lift.lost]
        if not lost or made >= min(looks, PROBES):
            return Doubt(sorted(good, key=lambda lift: -lift.gain), made, bool(lost) and made < PROBES)
        by = [lift.until_seen for lift in lost]
        model = raised(model, lost, by)
        found = [lift for lift in lifts(model, look(model), prior, structure) if _is_raised(lift, model, lost, by)]
        made += 1


def _is_raised(lift: Lift, model: Any, lost: list[Lift], by: list[float]) -> bool:
    """True if most of a variance of the raised model is what was raised; directions need not be the same as before."""
    grown = [(1.0 + times) * other.way for other, times in zip(lost, by, strict=True) if other.name == lift.name]
    S = getattr(model, lift.name)
    if not grown or S.ndim == 3:
        return bool(grown)
    inv = inverse(S)[0]
    way = inv @ lift.way
    return float(np.trace(way @ inv @ sum(grown))) > 0.5 * float(np.trace(way))

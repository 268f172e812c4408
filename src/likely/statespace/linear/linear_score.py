"""The slope of log p(y): what the E-step's moments say before anything is maximized   (Fisher's identity)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd
from likely.statespace.linear.linear_e_step import inverse, size
from likely.statespace.linear.linear_em import at_model
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import (
    MATRICES,
    SPREADS,
    Structure,
    allowed,
    blocks_of,
    flat_of,
    in_blocks,
    information,
    masks_of,
    variance_labels,
)

PAIRS = ((MATRICES[:2], "process_covariance"), (MATRICES[2:], "observation_covariance"))
LEAST = 1e-12  # share of the largest information of complete data below which a direction says nothing


def slopes(model: Any, stats: LinearStats) -> dict[str, Array]:
    """∂ log p(y) / ∂ entries at the model that collected the moments: ∂ E[log p(x, y)] there.

    For residuals r with Σ E[r rᵀ] = Z of weight n and Σ E[r hᵀ] = B: S⁻¹ B for the matrix, ½ (S⁻¹ Z S⁻¹ − n S⁻¹) for S
    (each entry by itself); of an S that changes with time, the slope by the log of its size.

    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> slopes(walk, walk.collect([[0.0, 1.0, 3.0]]))["process_covariance"].round(4)
    array([[0.2988]])
    """
    own = at_model(model, stats)
    out = _of_pair(
        "transition",
        "process_covariance",
        model.process_covariance,
        own.noise,
        own.noise_by,
        own.n_transitions,
        own.white[0],
    )
    out |= _of_pair(
        "observation",
        "observation_covariance",
        model.observation_covariance,
        own.observed,
        own.observed_by,
        own.seen,
        own.white[1],
    )
    if model.diffuse is None:
        weight = inverse(model.initial_covariance)[0]
        out["initial_mean"] = weight @ own.first
        out["initial_covariance"] = _of_spread(weight, own.first_scatter, own.n_initial)
    return out


def _of_pair(
    name: str, of: str, spread: Array, scatter: Array, cross: Array, n: Array, white: Array
) -> dict[str, Array]:
    if spread.ndim == 3:
        return {of: np.asarray(0.5 * (white[0] / max(size(spread), 1e-300) - white[1]))}
    weight = inverse(spread)[0]
    return {name: weight @ cross, of: _of_spread(weight, scatter, n)}


def _of_spread(weight: Array, scatter: Array, n: Any) -> Array:
    return spd.symmetric(0.5 * (weight @ scatter @ weight - n * weight))


class Matrices:
    """Changes θ of a learned [A F] or [C G], along directions of which complete data know equally much."""

    def __init__(self, model: Any, own: LinearStats, structure: Structure, which: int) -> None:
        self.names, of = PAIRS[which]
        self.learn = [name for name in self.names if name in structure.learn]
        self.d = model.states
        self.base = own.emit if which else own.move
        labels = structure.labels(model, self.names)
        labels = np.arange(1, self.base.size + 1).reshape(self.base.shape) if labels is None else labels
        self.masks = masks_of(labels)
        spread, hidden = getattr(model, of), own.states if which else own.before
        count = max(float(own.seen if which else own.n_transitions), 1e-300)
        self.directions = _evenly(self.masks, spread, hidden / count)

    def parts(self, theta: Array) -> dict[str, Array]:
        """The matrices after a change."""
        made = self.base + np.tensordot(theta, self.directions, axes=1)
        both = dict(zip(self.names, (made[:, : self.d], made[:, self.d :]), strict=True))
        return {name: np.ascontiguousarray(both[name]) for name in self.learn}

    def slope(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        return np.tensordot(self.directions, found[self.names[0]], axes=([1, 2], [0, 1]))


def _evenly(masks: Array, spread: Array, of: Array) -> Array:
    """Directions (m, rows, columns) in the span of masks, orthonormal in what one complete frame says of them."""
    ways = allowed(masks, spread)
    known = spd.symmetric(ways @ information(masks, inverse(spread)[0], of) @ ways.T)
    s = spd.scales(known)
    values, vectors = np.linalg.eigh(known / s[:, None] / s[None, :])
    some = values > LEAST * max(float(values.max(initial=0.0)), 1e-300)
    steps = (vectors[:, some] / np.sqrt(values[some])).T / s
    return np.asarray(np.tensordot(steps @ ways, masks, axes=1))


class Mean:
    """Changes of the first state's mean, in units of its covariance; where that is singular, along its flat."""

    def __init__(self, model: Any) -> None:
        self.base, self.root = model.initial_mean, flat_root(model.initial_covariance)
        self.directions = self.root.T

    def parts(self, theta: Array) -> dict[str, Array]:
        """The mean after a change."""
        return {"initial_mean": self.base + self.root @ theta}

    def slope(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        return self.root.T @ found["initial_mean"]


def flat_root(spread: Array) -> Array:
    """K (d, r) with K Kᵀ = S, r its rank; zero rows where S has no variance."""
    s, there, vectors = flat_of(spread)
    values = np.einsum("ij,ik,kj->j", vectors, spread / s[:, None] / s[None, :], vectors)
    rows = np.where(np.diagonal(spread) > 0, s, 0.0)
    return np.asarray(rows[:, None] * vectors[:, there] * np.sqrt(np.maximum(values[there], 0.0)))


class Spread:
    """A free covariance K T Tᵀ Kᵀ: T is triangular with the exponentials of θ on its diagonal, so it stays one."""

    def __init__(self, name: str, spread: Array) -> None:
        self.name, self.root = name, flat_root(spread)
        r = self.root.shape[1]
        self.at = np.tril_indices(r)
        self.diagonal = np.flatnonzero(self.at[0] == self.at[1])
        self.r = r

    @property
    def directions(self) -> Array:
        """Changes of S (m, d, d) by those of a symmetric matrix between K and Kᵀ."""
        unit = np.zeros((len(self.at[0]), self.r, self.r))
        each = np.arange(len(unit))
        unit[each, self.at[0], self.at[1]] = 1.0
        unit[each, self.at[1], self.at[0]] = 1.0
        return np.matmul(np.matmul(self.root, unit), self.root.T)

    def parts(self, theta: Array) -> dict[str, Array]:
        """The covariance after a change."""
        half = self.root @ self._factor(theta)
        return {self.name: spd.symmetric(half @ half.T)}

    def slope(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        T = self._factor(theta)
        out = (2.0 * self.root.T @ found[self.name] @ self.root @ T)[self.at]
        out[self.diagonal] *= np.diagonal(T)
        return out

    def _factor(self, theta: Array) -> Array:
        T = np.zeros((self.r, self.r))
        T[self.at] = theta
        T[np.diag_indices(self.r)] = np.exp(np.diagonal(T))
        return T


class Sizes:
    """Variances that are learned by label: S with rows and columns multiplied by exponentials of θ."""

    def __init__(self, name: str, spread: Array, form: Any) -> None:
        self.name, self.base, d = name, spread, spread.shape[-1]
        labels = variance_labels(d, form)
        there = np.diagonal(spread, axis1=-2, axis2=-1).reshape(-1, d).max(axis=0) > 0
        names = np.unique(labels[(labels > 0) & there])
        self.masks = (labels == names[:, None]).astype(np.float64)

    @property
    def directions(self) -> Array:
        """Changes of S (m, d, d) with each variance."""
        each = [self.base * m[:, None] * m[None, :] for m in self.masks]
        return np.stack(each) if each else np.zeros((0, *self.base.shape))

    def parts(self, theta: Array) -> dict[str, Array]:
        """The covariance after a change."""
        by = np.exp(theta @ self.masks)
        return {self.name: self.base * by[:, None] * by[None, :]}

    def slope(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        slope = found[self.name]
        if slope.ndim == 0:
            return np.full(len(self.masks), 2.0 * slope)
        return 2.0 * self.masks @ np.einsum("ij,ji->i", slope, self.parts(theta)[self.name])


class Apart:
    """A covariance in blocks, each with changes of its own and nothing between them."""

    def __init__(self, name: str, spread: Array, form: Any) -> None:
        self.name, self.base, self.parts_of = name, _only_blocks(spread, form), []
        for kind, at in blocks_of(form):
            if kind != "fixed":
                self.parts_of.append((at, spread_piece(name, np.ascontiguousarray(spread[np.ix_(at, at)]), kind)))
        self.edges = np.cumsum([0, *(len(piece.directions) for _, piece in self.parts_of)])

    @property
    def directions(self) -> Array:
        """Changes of S (m, d, d), each within its block."""
        out = np.zeros((int(self.edges[-1]), *self.base.shape))
        for i, (at, piece) in enumerate(self.parts_of):
            out[np.ix_(np.arange(self.edges[i], self.edges[i + 1]), at, at)] = piece.directions
        return out

    def parts(self, theta: Array) -> dict[str, Array]:
        """The covariance after a change."""
        out = self.base.copy()
        for at, piece, own in self._each(theta):
            out[np.ix_(at, at)] = piece.parts(own)[self.name]
        return {self.name: out}

    def slope(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        each = [piece.slope(own, {self.name: found[self.name][np.ix_(at, at)]}) for at, piece, own in self._each(theta)]
        return np.concatenate([np.empty(0), *each])

    def _each(self, theta: Array) -> list[tuple[Any, Any, Array]]:
        return [(at, p, theta[self.edges[i] : self.edges[i + 1]]) for i, (at, p) in enumerate(self.parts_of)]


def _only_blocks(spread: Array, form: Any) -> Array:
    return np.where(form[0][:, None] == form[0][None, :], spread, 0.0)


def spread_piece(name: str, spread: Array, form: Any) -> Spread | Sizes | Apart:
    """Changes of a covariance of this form."""
    if in_blocks(form):
        return Apart(name, spread, form)
    return Spread(name, spread) if isinstance(form, str) and form == "full" else Sizes(name, spread, form)


class Coordinates:
    """All that is learned of a model as numbers θ, 0 at the model itself: without bounds, and in nobody's units.

    A unit step changes what one complete frame is expected to score by about ½, in every direction.
    """

    def __init__(self, model: Any, stats: LinearStats, structure: Structure) -> None:
        own = at_model(model, stats)
        self.model, self.pieces = model, _pieces(model, own, structure)
        sizes = [len(piece.directions) for piece in self.pieces]
        self.edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    def __len__(self) -> int:
        return int(self.edges[-1])

    def at(self, theta: Array) -> Any:
        """The model at θ."""
        parts: dict[str, Array] = {}
        for piece, own in self._each(theta):
            parts |= piece.parts(own)
        return self.model.replace(**parts)

    def slope(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ of log p, from the slopes at the model at θ."""
        return np.concatenate([np.empty(0), *(piece.slope(own, found) for piece, own in self._each(theta))])

    def _each(self, theta: Array) -> list[tuple[Any, Array]]:
        cuts = zip(self.edges[:-1], self.edges[1:], strict=True)
        return [(piece, theta[a:b]) for piece, (a, b) in zip(self.pieces, cuts, strict=True)]


def _pieces(model: Any, own: LinearStats, structure: Structure) -> list[Any]:
    pieces: list[Any] = []
    for which, (pair, _) in enumerate(PAIRS):
        if any(name in structure.learn for name in pair):
            pieces.append(Matrices(model, own, structure, which))
    for name in (n for n in SPREADS if n in structure.learn):
        pieces.append(spread_piece(name, getattr(model, name), structure.form.get(name, "full")))
    if "initial_mean" in structure.learn:
        pieces.append(Mean(model))
    if "initial_covariance" in structure.learn:
        pieces.append(Spread("initial_covariance", model.initial_covariance))
    return pieces


def score(
    coordinates: Coordinates, look: Callable[[Any], LinearStats], theta: Array, prior: Any = None
) -> tuple[Array, LinearStats]:
    """∂/∂θ of log p(y), plus the log prior, at θ, and the moments that the model there collects."""
    model = coordinates.at(theta)
    stats = look(model)
    both = stats if prior is None else stats + prior.stats
    return coordinates.slope(theta, slopes(model, both)), stats

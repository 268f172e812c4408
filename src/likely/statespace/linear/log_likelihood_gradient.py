"""Score of a linear-Gaussian model: gradient of log p(y) from the E-step's moments (Fisher's identity)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd
from likely.statespace.linear.linear_e_step import mean_variance, pinv_logdet_rank
from likely.statespace.linear.linear_em import about_model
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import (
    COVARIANCES,
    MATRICES,
    Structure,
    allowed_directions,
    blocks_of,
    in_blocks,
    information,
    masks_of,
    support_of,
    variance_labels,
)

PAIRS = ((MATRICES[:2], "process_covariance"), (MATRICES[2:], "observation_covariance"))
LEAST = 1e-12  # share of the largest complete-data information below which a direction is not determined


def gradients(model: Any, stats: LinearStats) -> dict[str, Array]:
    """Gradients ∂ log p(y) / ∂ entries by parameter name, at the model of the E-step: ∂ E[log p(x, y)] there.

    For residuals r with Σ E[r rᵀ] = Z of weight n and Σ E[r hᵀ] = B: S⁻¹ B for the matrix, ½ (S⁻¹ Z S⁻¹ − n S⁻¹) for S
    (entries taken as independent); for a time-varying S, the derivative with respect to the log of its scale.

    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> gradients(walk, walk.collect([[0.0, 1.0, 3.0]]))["process_covariance"].round(4)
    array([[0.2988]])
    """
    own = about_model(model, stats)
    out = _pair_gradients(
        "transition",
        "process_covariance",
        model.process_covariance,
        own.process_scatter,
        own.transition_cross,
        own.n_transitions,
        own.whitened_scatter[0],
    )
    out |= _pair_gradients(
        "observation",
        "observation_covariance",
        model.observation_covariance,
        own.observation_scatter,
        own.observation_cross,
        own.n_observed,
        own.whitened_scatter[1],
    )
    if model.diffuse is None:
        weight = pinv_logdet_rank(model.initial_covariance)[0]
        out["initial_mean"] = weight @ own.initial_sum
        out["initial_covariance"] = _covariance_gradient(weight, own.initial_scatter, own.n_initial)
    return out


def _pair_gradients(
    name: str, of: str, covariance: Array, scatter: Array, cross: Array, n: Array, whitened: Array
) -> dict[str, Array]:
    if covariance.ndim == 3:
        return {of: np.asarray(0.5 * (whitened[0] / max(mean_variance(covariance), 1e-300) - whitened[1]))}
    weight = pinv_logdet_rank(covariance)[0]
    return {name: weight @ cross, of: _covariance_gradient(weight, scatter, n)}


def _covariance_gradient(weight: Array, scatter: Array, n: Any) -> Array:
    return spd.symmetric(0.5 * (weight @ scatter @ weight - n * weight))


class MatrixDirections:
    """Parametrization of a learned [A F] or [C G]: changes θ along directions with equal complete-data information."""

    def __init__(self, model: Any, own: LinearStats, structure: Structure, which: int) -> None:
        self.names, of = PAIRS[which]
        self.learn = [name for name in self.names if name in structure.learn]
        self.d = model.states
        self.base = own.observation if which else own.transition
        labels = structure.labels(model, self.names)
        labels = np.arange(1, self.base.size + 1).reshape(self.base.shape) if labels is None else labels
        self.masks = masks_of(labels)
        covariance, hidden = getattr(model, of), own.observation_gram if which else own.transition_gram
        count = max(float(own.n_observed if which else own.n_transitions), 1e-300)
        self.directions = _normalized_directions(self.masks, covariance, hidden / count)

    def parts(self, theta: Array) -> dict[str, Array]:
        """The matrices at θ."""
        made = self.base + np.tensordot(theta, self.directions, axes=1)
        both = dict(zip(self.names, (made[:, : self.d], made[:, self.d :]), strict=True))
        return {name: np.ascontiguousarray(both[name]) for name in self.learn}

    def gradient(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        return np.tensordot(self.directions, found[self.names[0]], axes=([1, 2], [0, 1]))


def _normalized_directions(masks: Array, covariance: Array, gram: Array) -> Array:
    """Directions (m, rows, columns) in the span of masks, orthonormal in the information of one complete frame."""
    directions = allowed_directions(masks, covariance)
    info = spd.symmetric(directions @ information(masks, pinv_logdet_rank(covariance)[0], gram) @ directions.T)
    s = spd.scales(info)
    values, vectors = np.linalg.eigh(info / s[:, None] / s[None, :])
    determined = values > LEAST * max(float(values.max(initial=0.0)), 1e-300)
    scaled = (vectors[:, determined] / np.sqrt(values[determined])).T / s
    return np.asarray(np.tensordot(scaled @ directions, masks, axes=1))


class InitialMeanDirections:
    """Parametrization of the initial mean, in units of the initial covariance and within its support."""

    def __init__(self, model: Any) -> None:
        self.base, self.root = model.initial_mean, support_root(model.initial_covariance)
        self.directions = self.root.T

    def parts(self, theta: Array) -> dict[str, Array]:
        """The initial mean at θ."""
        return {"initial_mean": self.base + self.root @ theta}

    def gradient(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        return self.root.T @ found["initial_mean"]


def support_root(covariance: Array) -> Array:
    """Square root K (d, r) of a covariance of rank r, K Kᵀ = S; zero rows where S has no variance."""
    s, there, vectors = support_of(covariance)
    values = np.einsum("ij,ik,kj->j", vectors, covariance / s[:, None] / s[None, :], vectors)
    rows = np.where(np.diagonal(covariance) > 0, s, 0.0)
    return np.asarray(rows[:, None] * vectors[:, there] * np.sqrt(np.maximum(values[there], 0.0)))


class CovarianceCholesky:
    """Log-Cholesky parametrization of a free covariance K T Tᵀ Kᵀ: T triangular with exp θ on its diagonal."""

    def __init__(self, name: str, covariance: Array) -> None:
        self.name, self.root = name, support_root(covariance)
        r = self.root.shape[1]
        self.at = np.tril_indices(r)
        self.diagonal = np.flatnonzero(self.at[0] == self.at[1])
        self.r = r

    @property
    def directions(self) -> Array:
        """Changes of S (m, d, d) by entries of the symmetric matrix between K and Kᵀ."""
        unit = np.zeros((len(self.at[0]), self.r, self.r))
        each = np.arange(len(unit))
        unit[each, self.at[0], self.at[1]] = 1.0
        unit[each, self.at[1], self.at[0]] = 1.0
        return np.matmul(np.matmul(self.root, unit), self.root.T)

    def parts(self, theta: Array) -> dict[str, Array]:
        """The covariance after a change."""
        half = self.root @ self._factor(theta)
        return {self.name: spd.symmetric(half @ half.T)}

    def gradient(self, theta: Array, found: dict[str, Array]) -> Array:
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


class VarianceScales:
    """Parametrization of variances by label: S with rows and columns multiplied by exp θ."""

    def __init__(self, name: str, covariance: Array, form: Any) -> None:
        self.name, self.base, d = name, covariance, covariance.shape[-1]
        labels = variance_labels(d, form)
        there = np.diagonal(covariance, axis1=-2, axis2=-1).reshape(-1, d).max(axis=0) > 0
        names = np.unique(labels[(labels > 0) & there])
        self.masks = (labels == names[:, None]).astype(np.float64)

    @property
    def directions(self) -> Array:
        """Changes of S (m, d, d) per label."""
        each = [self.base * m[:, None] * m[None, :] for m in self.masks]
        return np.stack(each) if each else np.zeros((0, *self.base.shape))

    def parts(self, theta: Array) -> dict[str, Array]:
        """The covariance after a change."""
        by = np.exp(theta @ self.masks)
        return {self.name: self.base * by[:, None] * by[None, :]}

    def gradient(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        gradient = found[self.name]
        if gradient.ndim == 0:
            return np.full(len(self.masks), 2.0 * gradient)
        return 2.0 * self.masks @ np.einsum("ij,ji->i", gradient, self.parts(theta)[self.name])


class CovarianceBlocks:
    """Parametrization of a block-diagonal covariance, one piece per block."""

    def __init__(self, name: str, covariance: Array, form: Any) -> None:
        self.name, self.base, self.blocks = name, _only_blocks(covariance, form), []
        for kind, at in blocks_of(form):
            if kind != "fixed":
                self.blocks.append((at, covariance_piece(name, np.ascontiguousarray(covariance[np.ix_(at, at)]), kind)))
        self.edges = np.cumsum([0, *(len(piece.directions) for _, piece in self.blocks)])

    @property
    def directions(self) -> Array:
        """Changes of S (m, d, d), block by block."""
        out = np.zeros((int(self.edges[-1]), *self.base.shape))
        for i, (at, piece) in enumerate(self.blocks):
            out[np.ix_(np.arange(self.edges[i], self.edges[i + 1]), at, at)] = piece.directions
        return out

    def parts(self, theta: Array) -> dict[str, Array]:
        """The covariance after a change."""
        out = self.base.copy()
        for at, piece, own in self._each(theta):
            out[np.ix_(at, at)] = piece.parts(own)[self.name]
        return {self.name: out}

    def gradient(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂/∂θ."""
        each = [
            piece.gradient(own, {self.name: found[self.name][np.ix_(at, at)]}) for at, piece, own in self._each(theta)
        ]
        return np.concatenate([np.empty(0), *each])

    def _each(self, theta: Array) -> list[tuple[Any, Any, Array]]:
        return [(at, p, theta[self.edges[i] : self.edges[i + 1]]) for i, (at, p) in enumerate(self.blocks)]


def _only_blocks(covariance: Array, form: Any) -> Array:
    return np.where(form[0][:, None] == form[0][None, :], covariance, 0.0)


def covariance_piece(name: str, covariance: Array, form: Any) -> CovarianceCholesky | VarianceScales | CovarianceBlocks:
    """Parametrization of a covariance of this form."""
    if in_blocks(form):
        return CovarianceBlocks(name, covariance, form)
    return (
        CovarianceCholesky(name, covariance)
        if isinstance(form, str) and form == "full"
        else VarianceScales(name, covariance, form)
    )


class Coordinates:
    """Unconstrained parametrization θ of all learned parameters, 0 at the model itself, independent of units.

    A unit step changes the expected complete-data log-likelihood of one frame by about ½, in every direction.
    """

    def __init__(self, model: Any, stats: LinearStats, structure: Structure) -> None:
        own = about_model(model, stats)
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

    def gradient(self, theta: Array, found: dict[str, Array]) -> Array:
        """∂ log p / ∂θ, from the gradients by parameter of the model at θ."""
        return np.concatenate([np.empty(0), *(piece.gradient(own, found) for piece, own in self._each(theta))])

    def _each(self, theta: Array) -> list[tuple[Any, Array]]:
        cuts = zip(self.edges[:-1], self.edges[1:], strict=True)
        return [(piece, theta[a:b]) for piece, (a, b) in zip(self.pieces, cuts, strict=True)]


def _pieces(model: Any, own: LinearStats, structure: Structure) -> list[Any]:
    pieces: list[Any] = []
    for which, (pair, _) in enumerate(PAIRS):
        if any(name in structure.learn for name in pair):
            pieces.append(MatrixDirections(model, own, structure, which))
    for name in (n for n in COVARIANCES if n in structure.learn):
        pieces.append(covariance_piece(name, getattr(model, name), structure.form.get(name, "full")))
    if "initial_mean" in structure.learn:
        pieces.append(InitialMeanDirections(model))
    if "initial_covariance" in structure.learn:
        pieces.append(CovarianceCholesky("initial_covariance", model.initial_covariance))
    return pieces


def score(
    coordinates: Coordinates, collect: Callable[[Any], LinearStats], theta: Array, prior: Any = None
) -> tuple[Array, LinearStats]:
    """Score: ∂/∂θ of log p(y) plus the log prior at θ, and the statistics of the E-step there."""
    model = coordinates.at(theta)
    stats = collect(model)
    both = stats if prior is None else stats + prior.stats
    return coordinates.gradient(theta, gradients(model, both)), stats

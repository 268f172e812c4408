"""Plane of the two leading linear discriminant directions, for plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index

TINY = 1e-9  # share of the largest variance below which a direction counts as flat


@dataclass(frozen=True)
class FisherPlane:
    """Two leading directions of S_w⁻¹ S_b, from pooled statistics   (Fisher 1936; Ney 3.9).

    S_w, S_b and S_t = S_w + S_b are taken of columns in units of their own spread. S_t is whitened and S_b
    diagonalized in it, which diagonalizes both and stands also where S_w is singular: an eigenvalue λ of S_b is the
    share of a direction's variance that lies between the classes, λ/(1 − λ) that of S_w⁻¹ S_b. Two classes have one
    such direction; the other axis is then the one of most variance among those in which the classes agree.

    z = Wᵀ (x − mean), and back x = mean + W⁺ z, with all other directions at the mean.
    """

    mean: Array  # (d,)
    forward: Array  # (d, 2): W
    back: Array  # (2, d): W⁺, through the whitened space
    share: tuple[float, float]  # of the separation that each axis carries
    weights: Array  # (d, 2): W for columns in units of their spread

    @classmethod
    def of(cls, X: Array, labels: Index, n_classes: int, weight: Array | None = None) -> FisherPlane | None:
        """The plane for rows X (n, d), NaN as missing, with classes labels (n,); None where rows have no plane."""
        mean, spread, size, U, inner = _whitened(X, labels, n_classes, weight)
        if len(size) < 2:
            return None
        V, share = _axes(inner, size, n_classes)
        W = (U / size) @ V
        return cls(mean, W / spread[:, None], (U * size @ V).T * spread, share, W)

    def seen(self, X: Array) -> Array:
        """Rows X (n, d) in the plane (n, 2)."""
        return np.where(np.isnan(X), 0.0, X - self.mean) @ self.forward

    def returned(self, z: Array) -> Array:
        """Places of the plane (n, 2) in the space of the columns (n, d)."""
        return self.mean + z @ self.back


def separation(X: Array, labels: Index, n_classes: int, weight: Array | None = None) -> float:
    """tr S_t⁻¹ S_b of rows X (n, d), less what it would be by chance   (Pillai's trace).

    It sums over directions the share of variance that lies between classes. Where columns say nothing of the class,
    each of r directions has (C − 1)/n of it on average.
    """
    _, _, size, _, inner = _whitened(X, labels, n_classes, weight)
    return max(float(np.trace(inner)) - len(size) * (n_classes - 1) / len(X), 0.0)


def _whitened(
    X: Array, labels: Index, n_classes: int, weight: Array | None
) -> tuple[Array, Array, Array, Array, Array]:
    """Mean and spread of each column, roots and directions of S_t that of positive variance, and S_b whitened by it."""
    w = np.ones(len(X)) if weight is None else weight
    w = w / w.sum()
    mean, spread = column_moments(X, w)
    Z = np.where(np.isnan(X), 0.0, (X - mean) / spread)  # a gap lies at the mean
    between = _between(Z, labels, n_classes, w)
    values, U = np.linalg.eigh((Z * w[:, None]).T @ Z)
    kept = values > TINY * max(float(values[-1]), 1e-300)
    size, U = np.sqrt(values[kept]), U[:, kept]
    inner = (U / size).T @ between @ (U / size)
    return mean, spread, size, U, (inner + inner.T) / 2


def column_moments(X: Array, w: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the observed entries per column; 1 for a constant column."""
    seen = ~np.isnan(X)
    total = np.maximum(w @ seen, 1e-300)
    mean = (w @ np.where(seen, X, 0.0)) / total
    spread = np.sqrt((w @ np.where(seen, X - mean, 0.0) ** 2) / total)
    return mean, np.where(spread > 0, spread, 1.0)


def _between(Z: Array, labels: Index, n_classes: int, w: Array) -> Array:
    """S_b: the scatter of the class means about the mean of all."""
    share = np.bincount(labels, w, n_classes)
    sums = np.stack([np.bincount(labels, w * column, n_classes) for column in Z.T], axis=1)
    means = sums / np.maximum(share, 1e-300)[:, None] - sums.sum(axis=0)
    return (means * share[:, None]).T @ means


def _axes(inner: Array, size: Array, n_classes: int) -> tuple[Array, tuple[float, float]]:
    """Two directions of the whitened space (r, 2), and the share of the separation along each."""
    values, V = np.linalg.eigh(inner)
    values, V = np.clip(values[::-1], 0.0, 1 - 1e-9), V[:, ::-1]
    apart = values / (1 - values)
    if n_classes < 3 or values[1] <= TINY * max(values[0], 1e-300):
        rest = np.eye(len(size)) - np.outer(V[:, 0], V[:, 0])
        V = np.column_stack([V[:, 0], np.linalg.eigh(rest * size**2 @ rest)[1][:, -1]])
    total = max(float(apart.sum()), 1e-300)
    second = 0.0 if n_classes < 3 else float(apart[1] / total)
    return V[:, :2], (float(apart[0] / total), second)


def axis_label(name: str, weights: Array, columns: list[str]) -> str:
    """Which columns weigh most on an axis.

    >>> axis_label("first direction", np.array([0.1, -2.0, 1.0]), ["hue", "ash", "alcohol"])
    'first direction: ash −, alcohol +'
    """
    order = np.argsort(-np.abs(weights), kind="stable")[:3]
    most = max(float(np.abs(weights).max()), 1e-300)
    loadings = [f"{columns[j]} {'+' if weights[j] > 0 else '−'}" for j in order if abs(weights[j]) > 0.25 * most]
    return f"{name}: {', '.join(loadings)}"


def grid(points: Array, nx: int = 100, ny: int = 75) -> tuple[Array, Array]:
    """Centers of cells that cover all but the outermost points, with a margin."""
    low, high = np.quantile(points, 0.002, axis=0), np.quantile(points, 0.998, axis=0)
    pad = 0.06 * np.maximum(high - low, 1e-9)
    (x0, y0), (x1, y1) = low - pad, high + pad
    return _centers(x0, x1, nx), _centers(y0, y1, ny)


def _centers(low: float, high: float, n: int) -> Array:
    step = (high - low) / n
    return np.asarray(low + step * (np.arange(n) + 0.5), dtype=np.float64)


def rows_of_numbers(places: Array, numbers: list[str], X: Any, schema: Mapping[str, Any]) -> Any:
    """Rows of a model of X from values of its columns of numbers alone: the others are missing, counts are whole."""
    import polars as pl

    from likely.automl.table_classifier import Typed

    known, counts = set(numbers), [name for name in numbers if schema[name]["kind"] == "count"]
    frame = pl.DataFrame({name: places[:, j] for j, name in enumerate(numbers)})
    frame = frame.with_columns(pl.col(name).round().clip(0) for name in counts)
    rest = [pl.lit(None, dtype=X[name].dtype).alias(name) for name in X.columns if name not in known]
    return Typed(frame.with_columns(rest).select(X.columns))


def regions(plane: FisherPlane, xs: Array, ys: Array, decide: Callable[[Array], Any]) -> Any:
    """Decisions at the grid points (ny, nx), mapped back to the space of the columns."""
    places = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    return np.asarray(decide(plane.returned(places))).reshape(len(ys), len(xs))

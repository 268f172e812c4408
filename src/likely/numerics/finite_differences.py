"""Gradient and Hessian by finite differences, in whitened coordinates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likely.core.arrays import Array

Rows = Callable[[Array], Array]  # points (n, d) → values (n,)
GRADIENT_STEP = 1e-4  # step: truncation 1e-8 of the third derivative, rounding 1e-12 of the value
HESSIAN_STEPS = (0.1, 0.05)  # two steps; Richardson extrapolation removes the fourth derivative


def gradient(f: Rows, at: Array, root: Array, beside: float = GRADIENT_STEP) -> Array:
    """Gradient ∂f/∂u (d,) at u = 0 of f(at + root u), by central differences in the units of `root` (d, d)."""
    step = beside * root.T
    values = f(np.concatenate([at + step, at - step]))
    return np.asarray((values[: len(at)] - values[len(at) :]) / (2 * beside))


def curvature(f: Rows, at: Array, value: float, root: Array) -> Array:
    """Hessian ∂²f/∂u∂uᵀ (d, d) at u = 0 of f(at + root u): central differences with two steps, error O(h⁴)."""
    coarse, fine = (_second_differences(f, at, value, root, h) for h in HESSIAN_STEPS)
    return np.asarray((4 * fine - coarse) / 3)


def _second_differences(f: Rows, at: Array, value: float, root: Array, h: float) -> Array:
    """Second differences along ±(e_i + e_j) and ±e_i."""
    d = len(at)
    i, j = np.triu_indices(d, 1)
    steps = h * np.concatenate([np.eye(d), np.eye(d)[i] + np.eye(d)[j]]) @ root.T
    values = f(np.concatenate([at + steps, at - steps]))
    second = (values[: len(steps)] + values[len(steps) :] - 2 * value) / h**2
    out = np.diag(second[:d])
    out[i, j] = out[j, i] = 0.5 * (second[d:] - second[i] - second[j])
    return out


def slope_of_gradient(g: Callable[[Array], Array], at: Array, root: Array) -> Array:
    """The Hessian from gradients in x: rootᵀ ∂g/∂x root, by central differences with two steps."""

    def ring(h: float) -> Array:
        steps = h * root.T
        return np.array([(g(at + s) - g(at - s)) / (2 * h) for s in steps]) @ root

    out = (4 * ring(HESSIAN_STEPS[1] / 10) - ring(HESSIAN_STEPS[0] / 10)) / 3
    return np.asarray(0.5 * (out + out.T))

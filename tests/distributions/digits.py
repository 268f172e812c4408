"""How many digits a distribution of columns keeps, against mpmath with 50 of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

mpmath.mp.dps = 50
Exact = Callable[..., Any]  # (x, parameters…) as mpmath numbers


def log_uniform(rng: np.random.Generator, low: float, high: float, n: int) -> np.ndarray:
    """Numbers of all sizes between 10^low and 10^high."""
    return 10.0 ** rng.uniform(low, high, n)


def places(rng: np.random.Generator, n: int) -> np.ndarray:
    """Places of both signs from 1e-6 to 1e6; a quarter of them 0."""
    return np.where(rng.random(n) < 0.25, 0.0, rng.choice([-1.0, 1.0], n) * log_uniform(rng, -6, 6, n))


def worst_excess_bits(distribution: Any, exact: Exact, x: np.ndarray, *parameters: np.ndarray) -> tuple[float, float]:
    """Most wrong bits of log_prob beyond what half a unit in the last place of each input and of the answer
    explains (TFP's measure), and the least log p among the points."""
    worst, least = 0.0, 0.0
    for point in zip(x, *parameters, strict=True):
        found = float(distribution(*point[1:]).log_prob([point[0]])[0])
        numbers = [mpmath.mpf(float(v)) for v in point]
        wanted = exact(*numbers)
        assert np.isfinite(found), (point, wanted)
        allowed = 0.5 * np.spacing(abs(found))
        for i, v in enumerate(point):
            moved = list(numbers)
            step = mpmath.mpf(float(0.5 * np.spacing(abs(v))))
            slopes = []
            for by in (step, -step):
                moved[i] = numbers[i] + by
                other = exact(*moved)
                slopes.append(abs(float(other - wanted)) if mpmath.isfinite(other) else 0.0)
            allowed += max(slopes)
        error = float(abs(mpmath.mpf(found) - wanted))
        worst, least = max(worst, float(np.log2(max(error / allowed, 1.0)))), min(least, found)
    return worst, least


def worst_relative(
    distribution: Any, exact: Exact, method: str, x: np.ndarray, *parameters: np.ndarray, about: int = 0
) -> float:
    """Largest relative error of cdf or quantile; `about` is the number of a parameter whose own size counts too."""
    worst = 0.0
    for point in zip(x, *parameters, strict=True):
        found = float(getattr(distribution(*point[1:]), method)(point[0]))
        numbers = [mpmath.mpf(float(v)) for v in point]
        wanted = exact(*numbers)
        size = abs(wanted) if not about else abs(wanted - numbers[about]) + abs(numbers[about])
        if size == 0:
            assert found == 0
            continue
        worst = max(worst, float(abs(mpmath.mpf(found) - wanted) / size))
    return worst


def chances(rng: np.random.Generator, n: int) -> np.ndarray:
    """Probabilities in both tails and between."""
    tail = n // 3
    return np.concatenate(
        [log_uniform(rng, -300, -1, tail), rng.uniform(0.01, 0.99, tail), 1 - log_uniform(rng, -15, -1, n - 2 * tail)]
    )

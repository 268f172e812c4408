"""Laplace's approximation: a bell over the highest peak, as wide as the peak is curved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import tell
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import finite_differences
from likely.numerics.special import LOG_2PI

ME = "laplace_approximation"
CLIMBS = 200  # steps of the quasi-Newton climb in one round
ROUNDS = 12  # new units, Newton steps
SETTLED = 1e-6  # distance from the peak, in standard deviations
ROUND = 0.1  # of that half, before a peak is called no parabola
NO_PEAK = 1e-3  # a peak falls by ½ within a standard deviation; what falls by less has no top here


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceApproximation:
    """What a peak looks like: its place, the Gaussian about it, and the integral under that.

    >>> import likely as lk
    >>> lk.laplace_approximation(lambda z: 3 * np.log(z[0]) - z[0] if z[0] > 0 else -np.inf, [1.0])
    LaplaceApproximation(mode=[3.], deviation=[1.7321], log_evidence=1.7641, converged: 1e-06 deviations from the peak)
    """

    mode: Array  # (d,)
    distribution: Gaussian  # N(mode, A⁻¹)
    precision: Array  # A = −∇∇ log f at the mode (d, d)
    log_evidence: float  # log ∫ f ≈ log f(mode) + d/2 log 2π − ½ log det A
    log_density: float  # log f(mode)
    gradient: Array  # of log f at the mode (d,)
    converged: bool
    reason: str
    evaluations: int

    @property
    def deviation(self) -> Array:
        """The standard deviation of each coordinate (d,)."""
        return np.sqrt(self.distribution.variance)

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        mode, deviation = (np.array2string(a, precision=4) for a in (self.mode, self.deviation))
        name = type(self).__name__
        return (
            f"{name}(mode={mode}, deviation={deviation}, log_evidence={self.log_evidence:.4f}, {state}: {self.reason})"
        )


def laplace_approximation(
    log_density: Callable[[Any], Any], x0: Any, *, gradient: Callable[[Array], Any] | None = None,
    hessian: Callable[[Array], Any] | None = None, scale: Any = None, steps: int = CLIMBS,
) -> LaplaceApproximation:  # fmt: skip
    """The Gaussian with the mode and the curvature of a density f that need not be normalized (Herbst 4.4).

    q(z) = N(z | z₀, A⁻¹) with A = −∇∇ log f(z₀), and ∫ f ≈ f(z₀) (2π)^{d/2} / √det A. `log_density` takes one point
    (d,) and gives a number, or rows (n, d) and gives (n,), which is faster; −inf is "impossible". `gradient` (d,) and
    `hessian` (d, d) of log f at a point are found by differences where they are not given. `scale` (d,) says how far
    the coordinates of the start may be off; it need not be right.

    A climb by BFGS, then Newton's steps in the units of the peak. Refused: a start that is impossible or NaN, a
    stationary point that is no peak, a density that rises for ever. What did not settle says so
    (`converged`, `reason`) and warns.

    >>> found = laplace_approximation(lambda z: -0.5 * ((z - [1.0, 2.0]) ** 2 / [1.0, 4.0]).sum(axis=-1), [0.0, 0.0])
    >>> found.mode.round(6), found.distribution.covariance_matrix.round(6).tolist()
    (array([1., 2.]), [[1.0, 0.0], [0.0, 4.0]])
    """
    if not callable(log_density):
        raise DomainError(sentence(ME, "log_density must be a function of a point (d,)", type(log_density).__name__))
    z = np.atleast_1d(parameter(x0, ME, "x0"))
    if z.ndim != 1 or not z.size:
        raise ShapeError(sentence(ME, "start must be one point (d,)", z.shape))
    f = _Watched(log_density, z)
    peak = _looked_at(f, _climbed(f, _Slopes(f, gradient, hessian), _first_point(f, z), _units(z, scale), int(steps)))
    if not peak.converged:
        tell(sentence(ME, "the climb should settle", peak.reason, "start nearer to the peak, or give gradient="))
    return _report(f, peak)


# ------------------------------------------------------------------ the function itself


class _Watched:
    """log f of rows, whether the caller's function takes rows or one point; counts how often it was asked."""

    def __init__(self, f: Callable[[Any], Any], z: Array) -> None:
        self.f, self.asked = f, 0
        self.by_rows = self._takes_rows(z)

    def _takes_rows(self, z: Array) -> bool:
        """d + 2 rows that give d + 2 numbers: a function of one point gives something else, or stumbles."""
        rows = np.repeat(z[None], len(z) + 2, axis=0)
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.f(rows), dtype=np.float64)
        except Exception:  # whatever a function of one point does with a table
            return False
        return found.shape == (len(rows),) and bool(not np.isfinite(found[0]) or (found == found[0]).all())

    def __call__(self, points: Array) -> Array:
        self.asked += len(points)
        with np.errstate(all="ignore"):
            if self.by_rows:
                return self._all(points)
            return np.array([self._one(p) for p in points])

    def _all(self, points: Array) -> Array:
        """Of rows at once; a function that gives a bare number for one row, as SciPy's do, is as good."""
        found = np.asarray(self.f(points), dtype=np.float64)
        if found.size != len(points):
            expected = "log_density must give (n,) for rows (n, d), however many"
            raise ShapeError(sentence(ME, expected, f"{found.shape} for rows {points.shape}"))
        return found.reshape(len(points))

    def _one(self, point: Array) -> float:
        found = np.asarray(self.f(point), dtype=np.float64)
        if found.size != 1:
            expected = "log_density must give one number for a point (d,), or (n,) for rows (n, d)"
            raise ShapeError(sentence(ME, expected, f"{found.shape} for a point {point.shape}"))
        return float(found.reshape(()))

    def at(self, point: Array) -> float:
        return float(self(point[None])[0])


class _Slopes(NamedTuple):
    """Gradient and curvature in the units of a root: given, or by differences."""

    f: _Watched
    gradient: Callable[[Array], Any] | None
    hessian: Callable[[Array], Any] | None

    def slope(self, z: Array, root: Array, beside: float = finite_differences.BESIDE) -> Array:
        if self.gradient is not None:
            return np.asarray(self._given(self.gradient, z, (len(z),), "gradient") @ root)
        return finite_differences.gradient(self.f, z, root, beside)

    def bend(self, z: Array, value: float, root: Array) -> Array:
        """−∂²/∂u∂uᵀ log f."""
        d = len(z)
        if self.hessian is not None:
            return np.asarray(-(root.T @ self._given(self.hessian, z, (d, d), "hessian") @ root))
        if self.gradient is not None:
            given = self.gradient
            return -finite_differences.slope_of_gradient(lambda at: self._given(given, at, (d,), "gradient"), z, root)
        return -finite_differences.curvature(self.f, z, value, root)

    def _given(self, f: Callable[[Array], Any], z: Array, shape: tuple[int, ...], name: str) -> Array:
        found = np.asarray(f(z), dtype=np.float64)
        if found.shape != shape:
            raise ShapeError(sentence(ME, f"{name} must have shape {shape} at a point", found.shape))
        return found


# ------------------------------------------------------------------------- the climb


class _Peak(NamedTuple):
    z: Array
    value: float
    root: Array  # (d, d): units, z = mode + root u
    bend: Array  # (d, d): −∂² log f in these units
    slope: Array  # (d,): in these units
    converged: bool
    reason: str


def _first_point(f: _Watched, z: Array) -> tuple[Array, float]:
    value = f.at(z)
    if not math.isfinite(value):
        what = "NaN" if math.isnan(value) else "impossible (−inf)" if value < 0 else "infinite"
        raise DomainError(sentence(ME, "log_density must be finite at the start", what, "start where it is"))
    return z, value


def _units(z: Array, scale: Any) -> Array:
    if scale is None:
        return np.diag(np.where(z != 0, 0.1 * np.abs(z), 1.0))
    s = np.broadcast_to(parameter(scale, ME, "scale"), z.shape)
    if not (s > 0).all():
        raise DomainError(sentence(ME, "scale must be positive", float(s.min())))
    return np.diag(s)


def _climbed(f: _Watched, slopes_of: _Slopes, first: tuple[Array, float], root: Array, steps: int) -> _Peak:
    """Rounds: climb in the present units, take the curvature as the new unit, until a Newton step is tiny."""
    (z, value), reason = first, f"no peak within {ROUNDS} rounds"
    for turn in range(ROUNDS):
        z, value, root = _bfgs(f, slopes_of, z, value, root, steps if turn == 0 else 25)
        root, bend = _bent(f, slopes_of, z, value, root)
        slope = slopes_of.slope(z, root)
        step = _newton(bend, slope)
        z, value, moved = _line(f, z, value, root @ step, float(slope @ step))
        if np.linalg.norm(step) < SETTLED or (not moved and np.linalg.norm(step) < 1e-3):
            near = max(SETTLED, float(np.linalg.norm(step)))
            return _Peak(z, value, root, bend, slope, True, f"{near:.0e} deviations from the peak")
    return _Peak(z, value, root, bend, slope, False, reason)


def _bent(f: _Watched, slopes_of: _Slopes, z: Array, value: float, root: Array) -> tuple[Array, Array]:
    """Units in which the peak is round, as far as it is a peak, and the curvature seen in them."""
    for _ in range(6):
        bend = slopes_of.bend(z, value, root)
        if not np.isfinite(bend).all():
            root = 0.1 * root  # the ring went over an edge
            continue
        values, vectors = np.linalg.eigh(0.5 * (bend + bend.T))
        if ((values > 0.3) & (values < 3.0)).all():
            return root, bend
        size = np.clip(np.abs(values), 1e-6 * max(np.abs(values).max(), 1e-12), None)
        root = root @ (vectors / np.sqrt(size))
    bend = slopes_of.bend(z, value, root)
    if not np.isfinite(bend).all():
        expected = "log_density must be finite about its peak"
        raise DomainError(
            sentence(ME, expected, f"NaN or −inf beside {_shown(z)}", "is the peak at the edge of what is possible?")
        )
    return root, bend


def _newton(bend: Array, slope: Array) -> Array:
    """The step to the top of the parabola; where it opens upwards, along the slope. At most five units."""
    values, vectors = np.linalg.eigh(0.5 * (bend + bend.T))
    step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-3))
    return np.asarray(step * min(1.0, 5.0 / max(float(np.linalg.norm(step)), 1e-300)))


def _line(f: _Watched, z: Array, value: float, step: Array, rise: float) -> tuple[Array, float, bool]:
    """The step, halved until it goes up."""
    for half in range(40):
        ahead = z + step * 0.5**half
        found = f.at(ahead)
        if found >= value + 1e-4 * 0.5**half * rise - 1e-13 * abs(value) and found < math.inf:
            return ahead, found, True
    return z, value, False


def _bfgs(
    f: _Watched, slopes_of: _Slopes, z: Array, value: float, root: Array, steps: int
) -> tuple[Array, float, Array]:
    """Broyden, Fletcher, Goldfarb and Shanno's climb in the units of root; the units follow the curvature."""
    inverse, slope = np.eye(len(z)), _finite_slope(slopes_of, z, root)
    for _ in range(steps):
        step = inverse @ slope
        rise = float(slope @ step)
        if rise < 1e-8:
            break
        step *= min(1.0, 10.0 / max(float(np.linalg.norm(step)), 1e-300))
        ahead, found, moved = _line(f, z, value, root @ step, float(slope @ step))
        if not moved:
            break
        went = np.asarray(np.linalg.solve(root, ahead - z), dtype=np.float64)
        after = _finite_slope(slopes_of, ahead, root)
        inverse = _updated(inverse, went, slope - after)
        z, value, slope = ahead, found, after
        if not np.abs(z).max() < 1e100:
            _refuse_endless(z)
    return z, value, root


def _finite_slope(slopes_of: _Slopes, z: Array, root: Array) -> Array:
    for beside in (finite_differences.BESIDE, 1e-6, 1e-8):
        found = slopes_of.slope(z, root, beside)
        if np.isfinite(found).all():
            return found
    remedy = "is the start at the edge of what is possible?"
    raise DomainError(sentence(ME, "log_density must have a slope", f"NaN or −inf beside {_shown(z)}", remedy))


def _updated(inverse: Array, went: Array, fell: Array) -> Array:
    """The inverse curvature after a step: unchanged where the function did not bend downwards along it."""
    bend = float(went @ fell)
    if bend <= 1e-12 * float(np.linalg.norm(went) * np.linalg.norm(fell)) or bend < 1e-300:
        return 4.0 * inverse if np.abs(inverse).max() < 1e60 else inverse
    left = np.eye(len(went)) - np.outer(went, fell) / bend
    return np.asarray(left @ inverse @ left.T + np.outer(went, went) / bend)


# ------------------------------------------------------------------- what was found


def _looked_at(f: _Watched, peak: _Peak) -> _Peak:
    """A peak curves down in all directions; a deviation away it is lower, by a half if it is a parabola."""
    values, vectors = np.linalg.eigh(0.5 * (peak.bend + peak.bend.T))
    noise = 1e-12 * abs(peak.value)
    if not (values > max(1e-4, noise / finite_differences.AROUND[1] ** 2)).all():
        _refuse_direction(f, peak, peak.root @ vectors[:, 0], float(values[0]))
    away = (peak.root @ (vectors / np.sqrt(values))).T
    falls = peak.value - f(np.concatenate([peak.z + away, peak.z - away]))
    if (falls < NO_PEAK).any():
        _refuse_endless(peak.z)
    least = float(0.5 * (falls[: len(away)] + falls[len(away) :]).min())
    if least < ROUND:
        reason = f"the peak is no parabola: a deviation away log f falls by {least:.2g}, not by 0.5"
        return peak._replace(converged=False, reason=reason)
    return peak


def _refuse_noise(peak: _Peak, bend: float) -> None:
    """A curvature that rounding alone could have made says nothing of valleys."""
    rounding = 1e-12 * abs(peak.value) / finite_differences.AROUND[1] ** 2
    if rounding > 1e-2 and abs(bend) <= rounding:
        expected = "log f must be near 0 at its peak, so that its curvature can be told from rounding"
        raise DomainError(sentence(ME, expected, f"{peak.value:.3g}", "subtract a constant from log_density"))


def _refuse_direction(f: _Watched, peak: _Peak, way: Array, bend: float) -> None:
    ahead = f(np.stack([peak.z + 1e3 * way, peak.z - 1e3 * way]))
    if (ahead > peak.value + 1e-12 * (1 + abs(peak.value))).any():
        _refuse_endless(peak.z)
    _refuse_noise(peak, bend)
    seen = f"{'no curvature' if abs(bend) < 0.1 else 'a valley'} along {_shown(way / np.linalg.norm(way))}"
    expected, remedy = (
        "−∇∇ log f must be positive definite at a peak",
        "start elsewhere, or take out what it does not tell",
    )
    raise DomainError(sentence(ME, expected, f"{seen} at {_shown(peak.z)}", remedy))


def _refuse_endless(z: Array) -> None:
    expected = "log_density must have a highest point"
    raise DomainError(sentence(ME, expected, f"one that does not fall beyond {_shown(z)}", "add a prior, or bound it"))


def _report(f: _Watched, peak: _Peak) -> LaplaceApproximation:
    inverse = np.linalg.inv(peak.root)
    precision = inverse.T @ (0.5 * (peak.bend + peak.bend.T)) @ inverse
    values, vectors = np.linalg.eigh(0.5 * (peak.bend + peak.bend.T))
    half = peak.root @ (vectors / np.sqrt(values))
    covariance = half @ half.T
    log_det = float(np.log(values).sum() - 2 * np.linalg.slogdet(peak.root)[1])
    evidence = peak.value + 0.5 * (len(peak.z) * LOG_2PI - log_det)
    return LaplaceApproximation(
        mode=peak.z, distribution=Gaussian(peak.z, 0.5 * (covariance + covariance.T)),
        precision=0.5 * (precision + precision.T),
        log_evidence=float(evidence), log_density=peak.value, gradient=peak.slope @ inverse, converged=peak.converged,
        reason=peak.reason, evaluations=f.asked,
    )  # fmt: skip


def _shown(z: Array) -> str:
    return np.array2string(z[:6], precision=4, separator=", ") + (" …" if len(z) > 6 else "")


__all__ = ["LaplaceApproximation", "laplace_approximation"]

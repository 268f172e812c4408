"""Laplace approximation: a Gaussian at the mode of a density, with its curvature, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import warn
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import finite_differences
from likely.numerics.special import LOG_2PI

ME = "laplace_approximation"
BFGS_STEPS = 200  # steps of BFGS in one round
ROUNDS = 12  # rounds of BFGS, rescaling and a Newton step
CONVERGED = 1e-6  # distance from the mode, in standard deviations
NOT_QUADRATIC = 0.1  # smallest decrease of log f one standard deviation from the mode; a parabola has ½
NO_MODE = 1e-3  # with a smaller decrease there is no maximum here


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceApproximation:
    """Laplace approximation of a density: mode, Gaussian with its precision, and log-evidence.

    Parameters
    ----------
    mode : ndarray (d,)
        The mode z₀.
    distribution : Gaussian
        The approximation N(z₀, A⁻¹).
    precision : ndarray (d, d)
        Precision A = −∇∇ log f at the mode.
    log_evidence : float
        Approximation log f(z₀) + d/2 log 2π − ½ log det A of log ∫ f.
    log_density : float
        Value of log f at the mode.
    gradient : ndarray (d,)
        Gradient of log f at the mode.
    converged : bool
        Whether the search converged.
    reason : str
        Why the search ended.
    evaluations : int
        Number of evaluations of log f.
    log_prior : float, optional
        Log prior at the mode, where log f is a log-likelihood plus a log prior.

    See Also
    --------
    laplace_approximation : The approximation of a function.

    Examples
    --------
    >>> import likely as lk
    >>> lk.inference.laplace_approximation(lambda z: 3 * np.log(z[0]) - z[0] if z[0] > 0 else -np.inf, [1.0])
    LaplaceApproximation(mode=[3.], deviation=[1.7321], log_evidence=1.7641, converged: 1e-06 deviations from the mode)
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
    log_prior: float | None = None  # log p(mode), where log f is a log-likelihood plus a log prior

    @property
    def log_occam_factor(self) -> float:
        """Log of the Occam factor p(z₀) (2π)^{d/2} / √det A: the evidence over the likelihood at the mode.

        It is the share of the prior's volume that the data leave, below 0 where they tell something.
        """
        return self.log_evidence - self._log_likelihood()

    def bic_log_evidence(self, n: float) -> float:
        """The crude form of `log_evidence` for n rows: log-likelihood at the mode − d/2 log n, which is −BIC/2.

        It differs from log p(D) by a constant as n grows, whatever the prior (Schwarz 1978).

        Parameters
        ----------
        n : float
            Number of rows.

        Returns
        -------
        float
            The approximation in nats.
        """
        if not n > 0:
            raise DomainError(sentence("bic_log_evidence", "n must be a positive number of rows", n))
        return self._log_likelihood() - 0.5 * len(self.mode) * math.log(n)

    def _log_likelihood(self) -> float:
        if self.log_prior is None:
            expected = "likelihood and prior must be told apart"
            remedy = "pass the log-likelihood, and the prior as log_prior="
            raise DomainError(sentence(ME, expected, "one log_density", remedy))
        return self.log_density - self.log_prior

    @property
    def deviation(self) -> Array:
        """Standard deviation per coordinate (d,)."""
        return np.sqrt(self.distribution.variance)

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        mode, deviation = (np.array2string(a, precision=4) for a in (self.mode, self.deviation))
        name = type(self).__name__
        return (
            f"{name}(mode={mode}, deviation={deviation}, log_evidence={self.log_evidence:.4f}, {state}: {self.reason})"
        )


def laplace_approximation(
    log_density: Callable[[Any], Any], x0: ArrayLike, *, gradient: Callable[[Array], Any] | None = None,
    hessian: Callable[[Array], Any] | None = None, scale: ArrayLike | None = None, max_iter: int = BFGS_STEPS,
    log_prior: Callable[[Any], Any] | None = None,
) -> LaplaceApproximation:  # fmt: skip
    """Laplace approximation of a density f that need not be normalized.

    q(z) = N(z | z₀, A⁻¹) with A = −∇∇ log f(z₀), and ∫ f ≈ f(z₀) (2π)^{d/2} / √det A.

    With `log_prior`, a function as `log_density`, f is the product of a likelihood and a prior (`gradient` and
    `hessian` are those of their log). `log_evidence` is then the log evidence of a model without a closed form, the
    log-likelihood at the mode plus `log_occam_factor`, and `bic_log_evidence(n)` its crude form (Bishop 4.4.1).

    BFGS, then Newton steps in units of the curvature at the mode. Errors: x0 of density 0 or NaN, a stationary point
    that is not a maximum, an unbounded density. A search that did not converge is reported (`converged`, `reason`) with
    a warning.

    Parameters
    ----------
    log_density : callable
        Function log f of one point (d,) that returns a number, or of rows (n, d) that returns (n,), which is faster;
        −inf is a density of 0.
    x0 : array-like (d,)
        Initial point.
    gradient : callable, optional
        Gradient (d,) of log f at a point; by default finite differences.
    hessian : callable, optional
        Hessian (d, d) of log f at a point; by default finite differences.
    scale : array-like (d,), optional
        A rough distance of x0 from the mode per coordinate.
    max_iter : int
        Largest number of BFGS steps.
    log_prior : callable, optional
        Log prior, a function as `log_density`, which is then a log-likelihood.

    Returns
    -------
    LaplaceApproximation
        The mode, the Gaussian, and the log-evidence.

    References
    ----------
    Bishop (2006), chapter 4; Herbst and du Preez, lecture notes, 4.4.

    Examples
    --------
    >>> found = laplace_approximation(lambda z: -0.5 * ((z - [1.0, 2.0]) ** 2 / [1.0, 4.0]).sum(axis=-1), [0.0, 0.0])
    >>> found.mode.round(6), found.distribution.covariance_matrix.round(6).tolist()
    (array([1., 2.]), [[1.0, 0.0], [0.0, 4.0]])
    """
    if not callable(log_density):
        raise DomainError(sentence(ME, "log_density must be a function of a point (d,)", type(log_density).__name__))
    z = np.atleast_1d(parameter(x0, ME, "x0"))
    if z.ndim != 1 or not z.size:
        raise ShapeError(sentence(ME, "x0 must be one point (d,)", z.shape))
    f = _LogDensity(log_density if log_prior is None else _joint(log_density, log_prior), z)
    mode = _checked_mode(
        f, _maximized(f, _Derivatives(f, gradient, hessian), _first_point(f, z), _units(z, scale), int(max_iter))
    )
    if not mode.converged:
        warn(sentence(ME, "the search should converge", mode.reason, "start nearer to the mode, or give gradient="))
    found = _report(f, mode)
    return found if log_prior is None else replace(found, log_prior=_LogDensity(log_prior, z).at(found.mode))


def _joint(log_likelihood: Callable[[Any], Any], log_prior: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not callable(log_prior):
        raise DomainError(sentence(ME, "log_prior must be a function of a point (d,)", type(log_prior).__name__))
    return lambda z: np.asarray(log_likelihood(z), dtype=np.float64) + np.asarray(log_prior(z), dtype=np.float64)


# ------------------------------------------------------------------ the log-density


class _LogDensity:
    """log f of rows, for functions of rows or of one point; counts the evaluations."""

    def __init__(self, f: Callable[[Any], Any], z: Array) -> None:
        self.f, self.n_evaluations = f, 0
        self.by_rows = self._takes_rows(z)

    def _takes_rows(self, z: Array) -> bool:
        """True if d + 2 rows give d + 2 numbers: a function of one point gives something else, or raises."""
        rows = np.repeat(z[None], len(z) + 2, axis=0)
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.f(rows), dtype=np.float64)
        except Exception:  # a function of one point may raise anything
            return False
        return found.shape == (len(rows),) and bool(not np.isfinite(found[0]) or (found == found[0]).all())

    def __call__(self, points: Array) -> Array:
        self.n_evaluations += len(points)
        with np.errstate(all="ignore"):
            if self.by_rows:
                return self._all(points)
            return np.array([self._one(p) for p in points])

    def _all(self, points: Array) -> Array:
        """log f of all rows at once; a function may return a scalar for one row, as SciPy's do."""
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


class _Derivatives(NamedTuple):
    """Gradient and Hessian in the units of a root: given, or by finite differences."""

    f: _LogDensity
    gradient: Callable[[Array], Any] | None
    hessian: Callable[[Array], Any] | None

    def gradient_at(self, z: Array, root: Array, beside: float = finite_differences.GRADIENT_STEP) -> Array:
        if self.gradient is not None:
            return np.asarray(self._given(self.gradient, z, (len(z),), "gradient") @ root)
        return finite_differences.gradient(self.f, z, root, beside)

    def negative_hessian(self, z: Array, value: float, root: Array) -> Array:
        """Negative Hessian −∂²/∂u∂uᵀ log f."""
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


# ------------------------------------------------------------------------- optimization


class _Mode(NamedTuple):
    z: Array
    value: float
    root: Array  # (d, d): units, z = mode + root u
    negative_hessian: Array  # (d, d): negative Hessian −∂² log f in these units
    slope: Array  # (d,): gradient in these units
    converged: bool
    reason: str


def _first_point(f: _LogDensity, z: Array) -> tuple[Array, float]:
    value = f.at(z)
    if not math.isfinite(value):
        what = "NaN" if math.isnan(value) else "impossible (−inf)" if value < 0 else "infinite"
        raise DomainError(sentence(ME, "log_density must be finite at x0", what, "choose another x0"))
    return z, value


def _units(z: Array, scale: Any) -> Array:
    if scale is None:
        return np.diag(np.where(z != 0, 0.1 * np.abs(z), 1.0))
    s = np.broadcast_to(parameter(scale, ME, "scale"), z.shape)
    if not (s > 0).all():
        raise DomainError(sentence(ME, "scale must be positive", float(s.min())))
    return np.diag(s)


def _maximized(
    f: _LogDensity, derivatives: _Derivatives, first: tuple[Array, float], root: Array, max_iter: int
) -> _Mode:
    """Rounds of BFGS in the present units and rescaling by the curvature, until a Newton step is tiny."""
    (z, value), reason = first, f"no maximum within {ROUNDS} rounds"
    for round_ in range(ROUNDS):
        z, value, root = _bfgs(f, derivatives, z, value, root, max_iter if round_ == 0 else 25)
        root, negative_hessian = _rescaled(f, derivatives, z, value, root)
        slope = derivatives.gradient_at(z, root)
        step = _newton(negative_hessian, slope)
        z, value, accepted = _line(f, z, value, root @ step, float(slope @ step))
        if np.linalg.norm(step) < CONVERGED or (not accepted and np.linalg.norm(step) < 1e-3):
            near = max(CONVERGED, float(np.linalg.norm(step)))
            return _Mode(z, value, root, negative_hessian, slope, True, f"{near:.0e} deviations from the mode")
    return _Mode(z, value, root, negative_hessian, slope, False, reason)


def _rescaled(f: _LogDensity, derivatives: _Derivatives, z: Array, value: float, root: Array) -> tuple[Array, Array]:
    """Units in which the negative Hessian is near the identity, where it is positive, and the Hessian in them."""
    for _ in range(6):
        negative_hessian = derivatives.negative_hessian(z, value, root)
        if not np.isfinite(negative_hessian).all():
            root = 0.1 * root  # some points had density 0
            continue
        values, vectors = np.linalg.eigh(0.5 * (negative_hessian + negative_hessian.T))
        if ((values > 0.3) & (values < 3.0)).all():
            return root, negative_hessian
        size = np.clip(np.abs(values), 1e-6 * max(np.abs(values).max(), 1e-12), None)
        root = root @ (vectors / np.sqrt(size))
    negative_hessian = derivatives.negative_hessian(z, value, root)
    if not np.isfinite(negative_hessian).all():
        expected = "log_density must be finite about its mode"
        raise DomainError(
            sentence(ME, expected, f"NaN or −inf near {_shown(z)}", "is the mode at the boundary of the support?")
        )
    return root, negative_hessian


def _newton(negative_hessian: Array, slope: Array) -> Array:
    """Newton step with absolute eigenvalues (uphill along directions of wrong curvature), at most five units long."""
    values, vectors = np.linalg.eigh(0.5 * (negative_hessian + negative_hessian.T))
    step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-3))
    return np.asarray(step * min(1.0, 5.0 / max(float(np.linalg.norm(step)), 1e-300)))


def _line(f: _LogDensity, z: Array, value: float, step: Array, rise: float) -> tuple[Array, float, bool]:
    """Backtracking line search: the step, halved until log f increases sufficiently."""
    for half in range(40):
        ahead = z + step * 0.5**half
        found = f.at(ahead)
        if found >= value + 1e-4 * 0.5**half * rise - 1e-13 * abs(value) and found < math.inf:
            return ahead, found, True
    return z, value, False


def _bfgs(
    f: _LogDensity, derivatives: _Derivatives, z: Array, value: float, root: Array, max_iter: int
) -> tuple[Array, float, Array]:
    """Maximization by BFGS in the units of root."""
    inverse, slope = np.eye(len(z)), _finite_gradient(derivatives, z, root)
    for _ in range(max_iter):
        step = inverse @ slope
        rise = float(slope @ step)
        if rise < 1e-8:
            break
        step *= min(1.0, 10.0 / max(float(np.linalg.norm(step)), 1e-300))
        ahead, found, accepted = _line(f, z, value, root @ step, float(slope @ step))
        if not accepted:
            break
        step_taken = np.asarray(np.linalg.solve(root, ahead - z), dtype=np.float64)
        after = _finite_gradient(derivatives, ahead, root)
        inverse = _updated(inverse, step_taken, slope - after)
        z, value, slope = ahead, found, after
        if not np.abs(z).max() < 1e100:
            _refuse_unbounded(z)
    return z, value, root


def _finite_gradient(derivatives: _Derivatives, z: Array, root: Array) -> Array:
    for beside in (finite_differences.GRADIENT_STEP, 1e-6, 1e-8):
        found = derivatives.gradient_at(z, root, beside)
        if np.isfinite(found).all():
            return found
    remedy = "is x0 at the boundary of the support?"
    raise DomainError(sentence(ME, "log_density must have a gradient", f"NaN or −inf near {_shown(z)}", remedy))


def _updated(inverse: Array, step_taken: Array, gradient_decrease: Array) -> Array:
    """BFGS update of the inverse Hessian; longer steps if log f is not concave along the step."""
    negative_hessian = float(step_taken @ gradient_decrease)
    if (
        negative_hessian <= 1e-12 * float(np.linalg.norm(step_taken) * np.linalg.norm(gradient_decrease))
        or negative_hessian < 1e-300
    ):
        return 4.0 * inverse if np.abs(inverse).max() < 1e60 else inverse
    left = np.eye(len(step_taken)) - np.outer(step_taken, gradient_decrease) / negative_hessian
    return np.asarray(left @ inverse @ left.T + np.outer(step_taken, step_taken) / negative_hessian)


# ------------------------------------------------------------------- checks and result


def _checked_mode(f: _LogDensity, mode: _Mode) -> _Mode:
    """Check of the mode: negative curvature in all directions, and a decrease of about ½ one deviation away."""
    values, vectors = np.linalg.eigh(0.5 * (mode.negative_hessian + mode.negative_hessian.T))
    noise = 1e-12 * abs(mode.value)
    if not (values > max(1e-4, noise / finite_differences.HESSIAN_STEPS[1] ** 2)).all():
        _refuse_direction(f, mode, mode.root @ vectors[:, 0], float(values[0]))
    away = (mode.root @ (vectors / np.sqrt(values))).T
    falls = mode.value - f(np.concatenate([mode.z + away, mode.z - away]))
    if (falls < NO_MODE).any():
        _refuse_unbounded(mode.z)
    least = float(0.5 * (falls[: len(away)] + falls[len(away) :]).min())
    if least < NOT_QUADRATIC:
        reason = f"log f is not quadratic: one deviation from the mode it decreases by {least:.2g}, not by 0.5"
        return mode._replace(converged=False, reason=reason)
    return mode


def _refuse_noise(mode: _Mode, negative_hessian: float) -> None:
    """Refuse a curvature that may be rounding alone."""
    rounding = 1e-12 * abs(mode.value) / finite_differences.HESSIAN_STEPS[1] ** 2
    if rounding > 1e-2 and abs(negative_hessian) <= rounding:
        expected = "log f must be near 0 at its mode, so that its curvature exceeds rounding"
        raise DomainError(sentence(ME, expected, f"{mode.value:.3g}", "subtract a constant from log_density"))


def _refuse_direction(f: _LogDensity, mode: _Mode, direction: Array, negative_hessian: float) -> None:
    ahead = f(np.stack([mode.z + 1e3 * direction, mode.z - 1e3 * direction]))
    if (ahead > mode.value + 1e-12 * (1 + abs(mode.value))).any():
        _refuse_unbounded(mode.z)
    _refuse_noise(mode, negative_hessian)
    kind = "no curvature" if abs(negative_hessian) < 0.1 else "a valley"
    got = f"{kind} along {_shown(direction / np.linalg.norm(direction))}"
    expected, remedy = (
        "−∇∇ log f must be positive definite at a mode",
        "choose another x0, or remove parameters that f does not determine",
    )
    raise DomainError(sentence(ME, expected, f"{got} at {_shown(mode.z)}", remedy))


def _refuse_unbounded(z: Array) -> None:
    expected, got = "log_density must have a maximum", f"one that does not decrease beyond {_shown(z)}"
    raise DomainError(sentence(ME, expected, got, "add a prior, or bound it"))


def _report(f: _LogDensity, mode: _Mode) -> LaplaceApproximation:
    inverse = np.linalg.inv(mode.root)
    precision = inverse.T @ (0.5 * (mode.negative_hessian + mode.negative_hessian.T)) @ inverse
    values, vectors = np.linalg.eigh(0.5 * (mode.negative_hessian + mode.negative_hessian.T))
    half = mode.root @ (vectors / np.sqrt(values))
    covariance = half @ half.T
    log_det = float(np.log(values).sum() - 2 * np.linalg.slogdet(mode.root)[1])
    evidence = mode.value + 0.5 * (len(mode.z) * LOG_2PI - log_det)
    return LaplaceApproximation(
        mode=mode.z, distribution=Gaussian(mode.z, 0.5 * (covariance + covariance.T)),
        precision=0.5 * (precision + precision.T),
        log_evidence=float(evidence), log_density=mode.value, gradient=mode.slope @ inverse, converged=mode.converged,
        reason=mode.reason, evaluations=f.n_evaluations,
    )  # fmt: skip


def _shown(z: Array) -> str:
    return np.array2string(z[:6], precision=4, separator=", ") + (" …" if len(z) > 6 else "")


__all__ = ["LaplaceApproximation", "laplace_approximation"]

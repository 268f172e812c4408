"""Bijectors: invertible transforms with inverse and log Jacobian determinant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit

from likely.core import declared
from likely.core.arrays import Array, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value

ME = "Bijector"


class Kind(NamedTuple):
    """Elementwise bijector: y = forward(x, c), x = inverse(y, c), log |dy/dx|, domain and image."""

    forward: Callable[[Array, Array], Array]
    inverse: Callable[[Array, Array], Array]
    log_det_jacobian: Callable[[Array, Array], Array]  # of x
    domain: Callable[[Array], tuple[Any, Any]]  # of x: open interval
    image: Callable[[Array], tuple[Any, Any]]  # of y
    is_increasing: Callable[[Array], Any]  # True if y increases with x


def _everywhere(c: Array) -> tuple[float, float]:
    return -np.inf, np.inf


def _positive(c: Array) -> tuple[float, float]:
    return 0.0, np.inf


def _unit(c: Array) -> tuple[float, float]:
    return 0.0, 1.0


def _box_cox(x: Array, c: Array) -> Array:
    return np.where(c == 0, np.log(x), np.expm1(c * np.log(x)) / np.where(c == 0, 1.0, c))


def _box_cox_back(y: Array, c: Array) -> Array:
    return np.where(c == 0, np.exp(y), np.exp(np.log1p(c * y) / np.where(c == 0, 1.0, c)))


def _box_cox_image(c: Array) -> tuple[Array, Array]:
    edge = -1 / np.where(c == 0, 1.0, c)
    return np.where(c > 0, edge, -np.inf), np.where(c < 0, edge, np.inf)


BijectorKind = Literal["exp", "log", "logit", "logistic", "power", "box-cox", "affine"]
KINDS: dict[BijectorKind, Kind] = {
    "exp": Kind(lambda x, c: np.exp(x), lambda y, c: np.log(y), lambda x, c: x, _everywhere, _positive,
                lambda c: True),
    "log": Kind(lambda x, c: np.log(x), lambda y, c: np.exp(y), lambda x, c: -np.log(x), _positive, _everywhere,
                lambda c: True),
    "logit": Kind(lambda x, c: logit(x), lambda y, c: expit(y), lambda x, c: -np.log(x) - np.log1p(-x), _unit,
                  _everywhere, lambda c: True),
    "logistic": Kind(lambda x, c: expit(x), lambda y, c: logit(y), lambda x, c: log_expit(x) + log_expit(-x),
                     _everywhere, _unit, lambda c: True),
    "power": Kind(lambda x, c: x**c, lambda y, c: y ** (1 / c), lambda x, c: np.log(np.abs(c)) + (c - 1) * np.log(x),
                  _positive, _positive, lambda c: c > 0),
    "box-cox": Kind(_box_cox, _box_cox_back, lambda x, c: (c - 1) * np.log(x), _positive, _box_cox_image,
                    lambda c: True),
    "affine": Kind(lambda x, c: c * x, lambda y, c: y / c, lambda x, c: np.log(np.abs(c)) + 0 * x, _everywhere,
                   _everywhere, lambda c: c > 0),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Bijector(Value):
    """Built-in change of variables y = g(x), elementwise or by a matrix.

    Made by `Bijector.exp()`, `Bijector.affine(2)` and the other class methods.

    Parameters
    ----------
    kind : str
        Name of the transform.
    scale : float or array-like, default 1.0
        Factor or exponent c: a number, (d,), or for "affine" a matrix (d, d).
    shift : float or array-like (d,), default 0.0
        What is added at the end.

    See Also
    --------
    Transformed : The distribution of y.

    Examples
    --------
    >>> Bijector.box_cox(0.5).forward(np.array([[4.0]])).tolist()
    [[2.0]]
    >>> Bijector.affine([[2.0, 1.0], [0.0, 1.0]], [1.0, 0.0]).log_det_jacobian(np.zeros((1, 2))).round(4)
    array([0.6931])
    """

    kind: BijectorKind
    scale: Annotated[Array, declared.numbers(" | d | d d")] = 1.0  # type: ignore[assignment]  # c: (), (d,), or for "affine" a matrix (d, d)
    shift: Annotated[Array, declared.numbers(" | d")] = 0.0  # type: ignore[assignment]  # (), (d,): added at the end

    def __post_init__(self) -> None:
        check_option(self.kind, BijectorKind, ME, "kind")
        c, b = parameter(self.scale, ME, "scale"), parameter(self.shift, ME, "shift")
        matrix = c.ndim == 2 and self.kind == "affine"
        if (c.ndim > 1 and not matrix) or b.ndim > 1 or (matrix and c.shape[0] != c.shape[1]):
            raise ShapeError(sentence(ME, "scale must be (), (d,) or an affine (d, d), shift () or (d,)", c.shape))
        if matrix and not np.linalg.slogdet(c)[1] > -np.inf:
            raise DomainError(sentence(ME, "a matrix must be invertible", "a singular one"))
        if not matrix and self.kind in ("affine", "power") and (c == 0).any():
            raise DomainError(sentence(ME, f"scale of {self.kind!r} must not be 0", 0.0))
        self._set(scale=c, shift=b)

    @classmethod
    def affine(cls, scale: Any, shift: Any = 0.0) -> Bijector:
        """Affine transform y = c x + b.

        Parameters
        ----------
        scale : float or array-like
            Factor c: a number, one number per column, or a matrix.
        shift : float or array-like (d,), default 0.0
            Shift b.
        """
        return cls("affine", scale, shift)

    @classmethod
    def exp(cls) -> Bijector:
        """Exponential y = eˣ: a Gaussian becomes log-normal."""
        return cls("exp")

    @classmethod
    def log(cls) -> Bijector:
        """Logarithm y = log x."""
        return cls("log")

    @classmethod
    def logit(cls) -> Bijector:
        """Logit y = log x / (1 − x)."""
        return cls("logit")

    @classmethod
    def logistic(cls) -> Bijector:
        """Logistic function y = 1 / (1 + e⁻ˣ)."""
        return cls("logistic")

    @classmethod
    def power(cls, exponent: Any) -> Bijector:
        """Power y = xᶜ for x > 0.

        Parameters
        ----------
        exponent : float or array-like (d,)
            Exponent c.
        """
        return cls("power", exponent)

    @classmethod
    def box_cox(cls, exponent: Any) -> Bijector:
        """Box–Cox transform y = (xᶜ − 1) / c for x > 0; log x where c is 0.

        Parameters
        ----------
        exponent : float or array-like (d,)
            Exponent c.
        """
        return cls("box-cox", exponent)

    # -------------------------------------------------------------- forward and inverse

    @property
    def elementwise(self) -> bool:
        """True if each entry is transformed separately, so that missing entries stay missing."""
        return self.scale.ndim < 2

    @property
    def is_increasing(self) -> bool:
        """True if y increases with x, in one column."""
        return bool(np.all(KINDS[self.kind].is_increasing(np.ravel(self.scale)[:1])))

    def forward(self, x: Array) -> Array:
        """Transformed rows y = g(x).

        Returns
        -------
        ndarray (n, d)
            Transformed rows.
        """
        if not self.elementwise:
            return np.asarray(x @ self.scale.T + self.shift)
        with np.errstate(all="ignore"):
            return np.asarray(KINDS[self.kind].forward(x, self.scale) + self.shift)

    def inverse(self, y: Array) -> Array:
        """Inverse transform x = g⁻¹(y) of rows; NaN outside the image.

        Parameters
        ----------
        y : ndarray (n, d)
            Transformed rows.

        Returns
        -------
        ndarray (n, d)
            Rows.
        """
        z = y - self.shift
        if not self.elementwise:
            return np.asarray(np.linalg.solve(self.scale, z.T).T, dtype=np.float64)
        low, high = KINDS[self.kind].image(self.scale)
        with np.errstate(all="ignore"):
            return np.where((z > low) & (z < high), KINDS[self.kind].inverse(z, self.scale), np.nan)

    def log_det_jacobian(self, x: Array) -> Array:
        """Log absolute Jacobian determinant log |det ∂y/∂x| of rows; missing entries are left out.

        Returns
        -------
        ndarray (n,)
            Logarithms.
        """
        if not self.elementwise:
            return np.full(len(x), np.linalg.slogdet(self.scale)[1])
        with np.errstate(all="ignore"):
            logs = KINDS[self.kind].log_det_jacobian(x, self.scale)
        return np.where(np.isnan(x), 0.0, logs).sum(axis=1)


@dataclass(frozen=True, eq=False)
class FunctionBijector(Value):
    """Bijector from user functions of rows (n, d) → (n, d); what is not given is computed numerically.

    Without `log_det_jacobian`, finite differences; without `inverse`, bisection in one column.
    """

    function: Callable[[Array], Any]
    back: Callable[[Array], Any] | None = None
    slope: Callable[[Array], Any] | None = None
    low: float = -np.inf
    high: float = np.inf
    is_increasing: bool = True

    elementwise = False

    def forward(self, x: Array) -> Array:
        """Transformed rows y = g(x)."""
        return self._mapped(self.function, x, "forward")

    def inverse(self, y: Array) -> Array:
        """Inverse transform x = g⁻¹(y) of rows; NaN outside the image."""
        return self._mapped(self.back, y, "inverse") if self.back is not None else self._bisected(y)

    def _mapped(self, f: Callable[[Array], Any], x: Array, name: str) -> Array:
        with np.errstate(all="ignore"):
            y = np.asarray(f(x), dtype=np.float64)
        y = y[:, None] if y.ndim == 1 and x.shape[1] == 1 else y
        if y.shape != x.shape:
            raise ShapeError(sentence("Transformed", f"{name} must keep the shape of rows {x.shape}", y.shape))
        return y

    def _bisected(self, y: Array) -> Array:
        if y.shape[1] != 1:
            expected = "inverse must be given for more than one column"
            raise DomainError(sentence("Transformed", expected, f"{y.shape[1]} columns"))
        low, high = np.full(y.shape, self.low), np.full(y.shape, self.high)
        for _ in range(1100):  # about a thousand bisections from ±10³⁰⁸; most inputs need sixty
            middle = 0.5 * low + 0.5 * high
            below = self.forward(middle) < y
            up = below if self.is_increasing else ~below
            low, high = np.where(up, middle, low), np.where(up, high, middle)
            if (high - low <= 2e-16 * np.maximum(np.abs(low), np.abs(high))).all():
                break
        reached = self._reached(y)
        return np.where(reached, 0.5 * low + 0.5 * high, np.nan)

    def _reached(self, y: Array) -> Array:
        ends = np.sort(self.forward(np.array([[self.low], [self.high]])).ravel())
        return np.asarray((y >= ends[0]) & (y <= ends[1]))

    def log_det_jacobian(self, x: Array) -> Array:
        """log |det ∂y/∂x| of rows (n, d): (n,)."""
        if self.slope is None:
            return np.asarray(np.linalg.slogdet(self._jacobian(x))[1])
        with np.errstate(all="ignore"):
            given = np.asarray(self.slope(x), dtype=np.float64)
        given = given.sum(axis=1) if given.ndim == 2 else given
        if given.shape != (len(x),):
            raise ShapeError(
                sentence("Transformed", f"log_det_jacobian must give one number per row ({len(x)})", given.shape)
            )
        return given

    def _jacobian(self, x: Array) -> Array:
        """Jacobian matrices (n, d, d) by five-point finite differences."""
        out = np.empty((*x.shape, x.shape[1]))
        for j in range(x.shape[1]):
            h = 1e-3 * np.maximum(np.abs(x[:, j]), 1e-3)
            e = np.zeros_like(x)
            e[:, j] = h
            near = self.forward(x + e) - self.forward(x - e)
            far = self.forward(x + 2 * e) - self.forward(x - 2 * e)
            out[:, :, j] = (8 * near - far) / (12 * h[:, None])
        return out

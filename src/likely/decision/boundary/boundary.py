"""Decision boundary between two Gaussians: a quadric with its equation, kind and geometry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.description import Description
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.decision.boundary.conic import Canonical, canonical, is_round, kind_of
from likely.decision.boundary.conic_curves import curves, straight_lines
from likely.decision.boundary.hyperplane import Hyperplane
from likely.decision.cost import Cost, CostLike
from likely.decision.posteriors import ClassPrior
from likely.decision.theory.decision_problem import problem
from likely.distributions.gaussian.gaussian import Gaussian

ROUND = {"ellipse": "circle", "ellipsoid": "sphere"}
CENTERED = ("circle", "sphere", "ellipse", "ellipsoid", "hyperbola", "hyperboloid", "crossing lines", "cone", "point")
NAMED = 6  # number of columns with printed coefficients
SPREAD = 4.0  # standard deviations around both means in a plot


@dataclass(frozen=True, eq=False)
class Boundary(Value):
    """Decision boundary of two Gaussian classes: {x: xᵀAx + bᵀx + c = 0}.

    The form is the log-odds of the first class against the second, costs included: positive where the first is decided.

    `kind` in one column: "point", "two points"; in two: "circle", "ellipse", "parabola", "hyperbola", "line", "parallel
    lines", "crossing lines", "point"; beyond: "sphere", "ellipsoid", "hyperboloid", "paraboloid", "saddle", "cone",
    "cylinder", "parabolic cylinder", "hyperbolic cylinder", "hyperplane", "parallel hyperplanes", "crossing
    hyperplanes", "flat", "point". Also "none" (one class is chosen everywhere) and "everywhere".

    Parameters
    ----------
    first, second : Gaussian
        Densities of the two classes.
    offset : float, default 0.0
        Log of the ratio of class probabilities and costs, added to the log-odds.

    See Also
    --------
    decision_boundary : The boundary of two densities, or of two classes of a classifier.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Ney, lecture notes, 2.4.

    Examples
    --------
    >>> import likely as lk
    >>> circle = lk.decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([0.0, 0.0], 4.0))
    >>> circle.kind, round(circle.radius, 4)
    ('circle', 1.9227)
    """

    first: Annotated[Gaussian, declared.of_class("Gaussian")]
    second: Annotated[Gaussian, declared.of_class("Gaussian")]
    offset: float = 0.0  # log of the ratio of class probabilities and costs

    def __post_init__(self) -> None:
        first, second = _gaussian(self.first), _gaussian(self.second)
        offset = parameter(self.offset, "Boundary", "offset")
        if first.members is not None or second.members is not None or first.dim != second.dim:
            got = " and ".join(
                f"{g.dim}" + (f" in a stack of {g.members}" if g.members else "") for g in (first, second)
            )
            raise ShapeError(
                sentence("Boundary", "two single Gaussians with the same number of columns are needed", got)
            )
        if offset.ndim:
            raise ShapeError(sentence("Boundary", "offset must be a number", offset.shape))
        self._set(first=first, second=second, offset=float(offset))
        self.form  # noqa: B018  # a singular covariance is refused now

    @cached_property
    def form(self) -> Canonical:
        """The same boundary in dimensionless coordinates."""
        return canonical(self.first, self.second, self.offset)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return self.first.dim

    @cached_property
    def kind(self) -> str:
        """The kind of quadric, as text."""
        kind = kind_of(self.form)
        return ROUND[kind] if kind in ROUND and is_round(self.matrix) else kind

    # ------------------------------------------------------------- the equation

    @cached_property
    def matrix(self) -> Array:
        """A (d, d), 0 for equal covariances."""
        into = self._into
        return np.asarray(into.T @ (self.form.a[:, None] * into))

    @cached_property
    def vector(self) -> Array:
        """Vector b (d,) of xᵀAx + bᵀx + c."""
        return np.asarray(self.form.b @ self._into - 2 * self.matrix @ self.form.origin)

    @cached_property
    def constant(self) -> float:
        """Constant c of xᵀAx + bᵀx + c."""
        o = self.form.origin
        return float(o @ self.matrix @ o - self.form.b @ self._into @ o + self.form.c)

    @cached_property
    def _into(self) -> Array:
        """From x − origin to z (d, d)."""
        scale = np.abs(self.form.back).max(axis=0)
        return np.asarray(np.linalg.inv(self.form.back / scale).T / scale)

    def value(self, x: ArrayLike) -> Array:
        """Log-odds of the first class against the second.

        Parameters
        ----------
        x : array-like (n, d)
            Rows; missing values are integrated out.

        Returns
        -------
        ndarray (n,)
            Positive where the first class is decided, 0 on the boundary.

        Examples
        --------
        >>> decision_boundary(Gaussian([0.0], 1.0), Gaussian([2.0], 1.0)).value([[1.0], [0.0]])
        array([0., 2.])
        """
        return np.asarray(self.first.log_prob(x) - self.second.log_prob(x) + self.offset)

    # ------------------------------------------------------------------- shape

    @property
    def center(self) -> Array | None:
        """The center of symmetry (d,); None if there is none, or many."""
        if self.kind not in CENTERED or (self.dim == 1) or not self.form.curved.all():
            return None
        return np.asarray(self.form.to_x(self.form.top))

    @property
    def radius(self) -> float | None:
        """The radius of a circle or sphere."""
        axes = self.axes
        return None if axes is None or self.kind not in ROUND.values() else float(axes.mean())

    @cached_property
    def _principal(self) -> tuple[Array, Array] | None:
        """Signed squares of the semi-axes (d,), and their directions in rows; negative ones are imaginary."""
        if self.center is None or self.form.level == 0:
            return None
        back = self.form.back
        size = np.abs(back).max()
        spread = (back.T / size) @ ((-self.form.level / self.form.a)[:, None] * back / size)
        squares, turn = np.linalg.eigh(0.5 * (spread + spread.T))
        order = np.argsort(-squares)
        return squares[order] * size * size, turn.T[order]

    @property
    def axes(self) -> Array | None:
        """Semi-axes (d,) of an ellipse, ellipsoid or hyperbola, real ones first, then by decreasing length."""
        return None if self._principal is None else np.sqrt(np.abs(self._principal[0]))

    @property
    def directions(self) -> Array | None:
        """Directions (d, d) of the semi-axes, one per row, each of length 1."""
        return None if self._principal is None else self._principal[1]

    @property
    def foci(self) -> Array | None:
        """Foci of a conic in the plane: two of an ellipse or hyperbola, one of a parabola or circle."""
        if self.kind == "circle" and self.center is not None:
            return self.center[None]
        if self.kind in ("ellipse", "hyperbola") and self._principal is not None and self.center is not None:
            squares, turn = self._principal
            away = np.sqrt(squares[0] - squares[1]) * turn[0]
            return np.stack([self.center + away, self.center - away])
        return self._parabola[1][None] if self.kind == "parabola" else None

    @property
    def vertex(self) -> Array | None:
        """The vertex (2,) of a parabola."""
        return self._parabola[0] if self.kind == "parabola" else None

    @cached_property
    def _parabola(self) -> tuple[Array, Array]:
        """Vertex and focus: κ s² + β s + γ t + c = 0 along the curved axis s and across it t."""
        size, o = np.abs(self.form.back).max(), self.form.origin
        into = self._into * size  # x − o in units of `size`
        j = int(self.form.curved.argmax())
        u = into[j] / np.linalg.norm(into[j])
        w = np.array([-u[1], u[0]])
        kappa = self.form.a[j] * float(into[j] @ into[j])
        linear = self.form.b @ into
        beta, gamma = float(linear @ u), float(linear @ w)
        s = -0.5 * beta / kappa
        t = -(self.form.c - 0.25 * beta**2 / kappa) / gamma
        vertex = s * u + t * w
        return o + size * vertex, o + size * (vertex - 0.25 * gamma / kappa * w)

    @property
    def hyperplane(self) -> Hyperplane:
        """The boundary as a hyperplane, for equal covariances."""
        if self.form.curved.any() or not self.form.b.any():
            expected, remedy = "a hyperplane needs equal covariances and different means", "see kind"
            raise DomainError(sentence("Boundary.hyperplane", expected, self.kind, remedy))
        normal = self.form.b @ self._into
        return Hyperplane(normal, self.form.c - float(normal @ self.form.origin))

    @property
    def roots(self) -> Array:
        """The points (0, 1 or 2) of a boundary in one column, increasing."""
        if self.dim != 1:
            raise DomainError(sentence("Boundary.roots", "points are for one column", f"{self.dim} columns"))
        a, b, c = float(self.form.a[0]), float(self.form.b[0]), self.form.c
        if self.kind in ("none", "everywhere"):
            return np.empty(0)
        if a == 0:
            z = np.array([-c / b])
        else:
            away = np.sqrt(max(-self.form.level / a, 0.0))
            z = np.unique(self.form.top[0] + away * np.array([-1.0, 1.0]))
        return np.sort(self.form.to_x(z[:, None])[:, 0])

    # ----------------------------------------------------------------- plots

    def window(self) -> Array:
        """Range of a plot: both means, with four standard deviations around them.

        Returns
        -------
        ndarray (d, 2)
            Lower and upper end per column.
        """
        means = np.stack([self.first.mean, self.second.mean])
        away = SPREAD * np.sqrt(np.stack([self.first.variance, self.second.variance]))
        return np.stack([(means - away).min(axis=0), (means + away).max(axis=0)], axis=1)

    def points(self, n: int = 200, window: Any = None) -> list[Array]:
        """Polylines of the boundary inside a window of the plane, for plots.

        Parameters
        ----------
        n : int, default 200
            Number of points per polyline.
        window : array-like (2, 2), optional
            Ranges ((x0, x1), (y0, y1)); by default `window()`.

        Returns
        -------
        list of ndarray (n, 2)
            One polyline per branch.

        Examples
        --------
        >>> [line.shape for line in decision_boundary(Gaussian([0.0, 0.0], 1.0), Gaussian([0.0, 0.0], 4.0)).points(50)]
        [(50, 2)]
        """
        if self.dim != 2:
            remedy = "take marginal([i, j]) of both, or roots in one column"
            raise DomainError(sentence("Boundary.points", "curves are drawn in two columns", self.dim, remedy))
        if not (isinstance(n, int | np.integer) and n >= 2):
            raise DomainError(sentence("Boundary.points", "n must be an integer of points, 2 or more", n))
        asked = self.window() if window is None else np.asarray(window, dtype=np.float64)
        if asked.shape != (2, 2) or not np.isfinite(asked).all() or not (asked[:, 1] > asked[:, 0]).all():
            raise ShapeError(sentence("Boundary.points", "window must be ((x0, x1), (y0, y1))", asked.tolist()))
        return curves(self.form, self.kind, n, asked)

    def lines(self) -> list[Hyperplane]:
        """The straight lines that the boundary consists of.

        Returns
        -------
        list of Hyperplane
            One or two lines; none where the boundary is curved.
        """
        if self.dim != 2:
            raise DomainError(sentence("Boundary.lines", "lines are for two columns", f"{self.dim} columns"))
        out = []
        for at, along in straight_lines(self.form, self.kind):
            point, direction = self.form.to_x(at), along @ self.form.back
            direction = direction / np.abs(direction).max()
            normal = np.array([-direction[1], direction[0]])
            out.append(Hyperplane(normal, -float(normal @ point)))
        return out

    def describe(self) -> Description:
        """The boundary as a sentence, with the Gaussians.

        >>> decision_boundary(Gaussian([0.0, 0.0], 1.0), Gaussian([0.0, 0.0], 4.0)).describe().text
        ['circle with center (0, 0) and radius 1.923; inside, the first class is chosen']
        """
        return replace(super().describe(), text=[self._sentence()])

    def _sentence(self) -> str:
        if self.kind == "everywhere":
            return "everywhere: the classes are identical"
        if self.kind == "none":
            return f"none: the {self._winner(self.first.mean)} class is chosen everywhere"
        if self.dim == 1:
            return f"{self.kind} at {' and '.join(f'{x:.4g}' for x in self.roots)}"
        return self.kind + (self._equations() or self._measures()) + self._sides()

    def _equations(self) -> str:
        """Equations of lines and hyperplanes; none for other boundaries."""
        if self.kind in ("line", "hyperplane") and not self.form.curved.any():
            found = [self.hyperplane]
        elif self.dim == 2 and self.kind in ("line", "parallel lines", "crossing lines"):
            found = self.lines()
        else:
            return ""
        return ": " + " and ".join(_equation(plane.normal, plane.offset) for plane in found)

    def _measures(self) -> str:
        parts = [f"center {_tuple(self.center)}"] if self.center is not None else []
        if self.radius is not None:
            parts.append(f"radius {self.radius:.4g}")
        elif self.axes is not None:
            parts.append(f"semi-axes {_tuple(self.axes)}")
        if self.vertex is not None and self.foci is not None:
            parts += [f"vertex {_tuple(self.vertex)}", f"focus {_tuple(self.foci[0])}"]
        return " with " + " and ".join(parts) if parts else ""

    def _sides(self) -> str:
        if self.kind in ("circle", "sphere", "ellipse", "ellipsoid") and self.center is not None:
            return f"; inside, the {self._winner(self.center)} class is chosen"
        return ""

    def _winner(self, x: Array) -> str:
        return "first" if float(self.value(x[None])[0]) > 0 else "second"

    def __repr__(self) -> str:
        return f"Boundary({self._sentence()})"


def _equation(normal: Array, offset: float) -> str:
    """n₀ x0 + n₁ x1 + … + c = 0, the largest coefficient 1; with many columns the first entries of the normal."""
    size = float(normal[np.abs(normal).argmax()])
    normal, offset = normal / size, offset / size + 0.0
    if len(normal) > NAMED:
        return f"normal {_tuple(normal[:NAMED])[:-1]}, …), offset {offset:.4g}"
    parts = [f"{'−' if a < 0 else '+'} {abs(a):.4g} x{j}" for j, a in enumerate(normal) if abs(a) > 1e-12]
    text = " ".join([*parts, f"{'−' if offset < 0 else '+'} {abs(offset):.4g}"] if abs(offset) > 1e-12 else parts)
    return text.removeprefix("+ ") + " = 0"


def _tuple(x: Any) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in x) + ")"


def decision_boundary(
    a: Any, b: Any = None, *, class_prior: ClassPrior | None = None,
    cost: CostLike | None = None, pair: tuple[Any, Any] | None = None,
) -> Boundary:  # fmt: skip
    """Decision boundary of two Gaussian classes, and its kind: circle, ellipse, parabola, hyperbola, lines.

    Parameters
    ----------
    a : Gaussian, Mixture or BayesClassifier
        Density of the first class; or all classes: a stack, a mixture or a fitted classifier of Gaussians.
    b : Gaussian, optional
        Density of the second class.
    class_prior : array-like or dict, optional
        Probabilities of the two classes, or of all classes of a classifier; by default the model's own, else equal.
    cost : Cost, matrix or dict, optional
        Cost of each action (row) for each true class (column); 0–1 by default.
    pair : tuple, optional
        The two classes: labels of a classifier, else numbers; needed where there are more than two.

    Returns
    -------
    Boundary
        The quadratic form, its kind and geometry.

    See Also
    --------
    plot_decision_boundary : The boundary in a plane.
    bayes_error : The error of deciding by it.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Ney, lecture notes, 2.4.

    Examples
    --------
    >>> import likely as lk
    >>> decision_boundary(lk.Gaussian([0.0, 0.0], [1.0, 4.0]), lk.Gaussian([0.0, 0.0], [4.0, 1.0])).kind
    'crossing lines'
    >>> decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 0.0], [1.0, 4.0])).vertex.round(4)
    array([1.3466, 0.    ])
    """
    asked = problem((a,) if b is None else (a, b), class_prior, cost, "decision_boundary")
    i, j = _pair(pair, asked.classes)
    gain = _gains(asked.cost, i, j) * asked.prior[[i, j]]
    if not (gain > 0).all():
        expected = "both classes must have positive probability, and the right class the smallest cost"
        remedy = "one class is chosen everywhere: there is no boundary"
        raise DomainError(sentence("decision_boundary", expected, f"weights {gain.tolist()}", remedy))
    return Boundary(
        _gaussian(asked.distributions[i]), _gaussian(asked.distributions[j]), float(np.log(gain[0]) - np.log(gain[1]))
    )


def _pair(pair: Any, classes: Any) -> tuple[int, int]:
    names = classes.tolist()
    if pair is None and len(names) > 2:
        expected, remedy = f"of {len(names)} classes, pair must say which two", f"pair=({names[0]!r}, {names[1]!r})"
        raise DomainError(sentence("decision_boundary", expected, "none", remedy))
    found = names[:2] if pair is None else (list(pair) if isinstance(pair, tuple | list | np.ndarray) else [pair])
    if len(found) != 2 or any(label not in names for label in found) or found[0] == found[1]:
        raise DomainError(sentence("decision_boundary", f"pair must be two of the classes {names}", found))
    return names.index(found[0]), names.index(found[1])


def _gains(cost: Cost, i: int, j: int) -> Array:
    """The cost saved by deciding for the right one of two classes, (2,)."""
    if cost.actions:
        remedy = "remove further actions, or see plot_decision_regions"
        raise DomainError(
            sentence("decision_boundary", "a boundary lies between two classes", f"actions {cost.actions}", remedy)
        )
    table = cost.table
    return np.array([table[j, i] - table[i, i], table[i, j] - table[j, j]])


def _gaussian(distribution: Any) -> Gaussian:
    if not isinstance(distribution, Gaussian):
        remedy = "see lk.plots.plot_decision_regions for boundaries of other distributions"
        raise DomainError(
            sentence(
                "decision_boundary", "explicit boundaries exist for Gaussians only", type(distribution).__name__, remedy
            )
        )
    return distribution

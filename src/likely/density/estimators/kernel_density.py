"""Parzen windows learned from rows: all of them are kept, and how wide to spread them is what is learned."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from likely.density.bandwidth import UNITS
from likely.density.kde import KDE
from likely.density.kernels import KERNELS, WITH_GAPS
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_intervals import PARAMETER_ROWS, Row


class KernelDensity(DensityEstimator):
    """Learn a density without a model: `model_` is a `KDE`, its points the distinct rows (Ney 5.2, Herbst 2.5).

    - **kernel**: "gaussian", "elliptical" (a Gaussian with the covariance of the class), "t", "cube", "exponential",
      "ball", "epanechnikov", "triangle", "quartic", "triweight" or "tricube".
    - **scale**: α, the squared width of a window in variances of each column, of each class its own:
      "leave-one-out" makes rows that were left out most likely, "maximum" is its closed form with the nearest other
      row only, "scott" and "silverman" are the rules for Gaussian data, and a number is taken as it is. Copies of a row
      are one row with more weight: else windows would shrink to nothing.
    - **dof**: degrees of freedom of the t kernel.
    - **tolerance**: the largest |Δ log p| of a score; None: exact up to 4,096 distinct rows per class, 1e-6 beyond; 0
      is exact always.
    - **unit**: how widths of columns compare: as variances within all classes together ("pooled"), as the class's own
      ("class", Ney 5.2: where it matters how much a column varies; in many columns some hardly vary in a class), or one
      width for all ("common": columns in one and the same unit, as pixels are). None is "pooled", and "class" of
      "elliptical". Each class has its own α in all of them; for one density "pooled" and "class" are the same.

    NaN in rows that are scored is integrated out (gaussian, elliptical, t, cube); a training row with gaps borrows what
    it lacks from the most similar row.

    >>> import likely as lk
    >>> lk.KernelDensity(scale="maximum").fit([[0.0], [1.0], [3.0]]).alpha_.round(3)
    array([1.286])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({*KERNELS, "elliptical"})],
        "scale": [
            StrOptions({"leave-one-out", "maximum", "scott", "silverman"}), Interval(Real, 0, None, closed="neither"),
        ],
        "dof": [Interval(Real, 0, None, closed="neither")],
        "tolerance": [Interval(Real, 0, 1, closed="left"), None],
        "unit": [StrOptions(set(UNITS)), None],
    }  # fmt: skip

    def __init__(
        self, kernel: str = "gaussian", scale: Any = "leave-one-out", *, dof: float = 3.0,
        tolerance: float | None = None, unit: str | None = None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.scale = scale
        self.dof = dof
        self.tolerance = tolerance
        self.unit = unit

    prior, max_iter, tol = None, 100, 1e-6  # nothing is believed in advance; only hidden labels iterate
    _model_types = (KDE,)
    _tells_of_gaps = False

    def _blank(self, X: Any, members: int | None = None) -> KDE:
        long = self.kernel == "elliptical"
        rule = float(self.scale) if isinstance(self.scale, Real) else self.scale
        tolerance = None if self.tolerance is None else float(self.tolerance)
        return KDE.blank(
            X[:1], members, kernel="gaussian" if long else self.kernel, scale=rule, dof=float(self.dof),
            tolerance=tolerance, elliptical=long, unit=self.unit,
        )  # fmt: skip

    def _prior_rule(self) -> None:
        """Windows take no prior."""

    @property
    def alpha_(self) -> Any:
        """The learned α of each member (K,): squared width in variances of its rows, on average over the columns."""
        return self.model_.relative_scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.kernel in (*WITH_GAPS, "elliptical")
        return tags


def _windows(model: KDE, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """α, and how wide windows are in each column; the points are the data themselves."""
    yield Row("all columns", "α", float(model.relative_scale[0]), None, None)
    squared = model.scale.diagonal() if model.elliptical else model.scale
    yield from (Row(name, "width", float(v) ** 0.5, None, None) for name, v in zip(names, squared, strict=True))


PARAMETER_ROWS[KDE] = _windows

"""Kernel density estimator: stores all distinct rows and learns the bandwidth of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.density.bandwidth import BandwidthRule, BandwidthUnit
from likely.density.kde import KDE
from likely.density.kernels import MARGINAL_KERNELS, KernelName
from likely.estimation.component import Traits
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.parameter_intervals import PARAMETER_ROWS, Row

KernelOption = Literal[KernelName, "elliptical"]


class KernelDensity(DensityEstimator):
    """Kernel density estimation (Parzen windows) with a learned bandwidth.

    `bandwidth` and `kernel` mean what they mean in `sklearn.neighbors.KernelDensity`.

    NaN in rows that are scored is integrated out (gaussian, elliptical, t, cube); a training row with missing values
    takes them from the most similar row.

    Parameters
    ----------
    bandwidth : {"leave-one-out", "maximum", "scott", "silverman"}, float or array-like, default "leave-one-out"
        The width h of the kernel: a number in the columns' own units (for all columns and classes), an
        array (d,), or (K, d) for K classes, or a rule that chooses it for each class: "leave-one-out" maximizes the
        leave-one-out log-likelihood, "maximum" is its closed form with the nearest other row only, "scott" and
        "silverman" are the rules for Gaussian data, in standard deviations of the columns (as in SciPy; scikit-learn's
        are not multiplied by them). Copies of a row are one row with more weight: else the bandwidth would shrink to 0.
    kernel : str, default "gaussian"
        "gaussian", "elliptical" (a Gaussian with the covariance of the class), "t", "cube", "exponential",
        "tophat", "epanechnikov", "linear", "cosine", "quartic" (biweight), "triweight" or "tricube".
    relative_bandwidth : float, optional
        Instead of `bandwidth`, the width in standard deviations σ of each column in the `unit`,
        h = relative_bandwidth · σ; of "elliptical", in the covariance of the class (SciPy's `factor`).
    dof : float, default 3.0
        Degrees of freedom of the t kernel.
    tolerance : float, optional
        The largest |Δ log p| of a score; None: exact up to 4,096 distinct rows per class, 1e-6 beyond; 0
        is exact always.
    unit : {"pooled", "class", "common"}, optional
        How bandwidths of columns compare where they are not given: as standard deviations within all classes
        together ("pooled"), as the class's own ("class", Ney 5.2: where it matters how much a column varies; in many
        columns some hardly vary in a class), or one bandwidth for all ("common": columns in one and the same unit, as
        pixels are). None is "pooled", and "class" of "elliptical". Each class has its own relative bandwidth in all of
        them; for one density "pooled" and "class" are the same.

    Attributes
    ----------
    model_ : KDE
        The fitted density, at the distinct rows.

    See Also
    --------
    HistogramDensity : Piecewise constant estimates.
    KNNDensity : Estimates by nearest neighbors.

    References
    ----------
    Silverman (1986); Bishop (2006), chapter 2; Ney, lecture notes, 5.2; Herbst and du Preez, lecture notes, 2.5.

    Examples
    --------
    >>> import likely as lk
    >>> X = [[0.0], [1.0], [3.0]]
    >>> lk.KernelDensity(bandwidth=0.5, kernel="tophat").fit(X).score_samples([[0.8]]).round(3)
    array([-1.099])
    >>> found = lk.KernelDensity(bandwidth="maximum").fit(X)
    >>> found.bandwidth_.round(3), found.relative_bandwidth_.round(3)
    (array([1.414]), array([1.134]))
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "bandwidth": [StrOptions({*get_args(BandwidthRule)}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "kernel": [StrOptions(set(get_args(KernelOption)))],
        "relative_bandwidth": [Interval(Real, 0, None, closed="neither"), None],
        "dof": [Interval(Real, 0, None, closed="neither")],
        "tolerance": [Interval(Real, 0, 1, closed="left"), None],
        "unit": [StrOptions(set(get_args(BandwidthUnit))), None],
    }

    def __init__(
        self, *, bandwidth: BandwidthRule | ArrayLike = "leave-one-out", kernel: KernelOption = "gaussian",
        relative_bandwidth: float | None = None, dof: float = 3.0, tolerance: float | None = None,
        unit: BandwidthUnit | None = None,
    ) -> None:  # fmt: skip
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.relative_bandwidth = relative_bandwidth
        self.dof = dof
        self.tolerance = tolerance
        self.unit = unit

    prior, max_iter, tol = None, 100, 1e-6  # there is no prior; only missing labels need iterations
    model_types = (KDE,)
    traits = Traits(reports_unobserved=False)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> KDE:
        elliptical = self.kernel == "elliptical"
        return KDE.blank(
            X[:1], members, kernel="gaussian" if self.kernel == "elliptical" else self.kernel, bandwidth=self.bandwidth,
            relative_bandwidth=self.relative_bandwidth, dof=float(self.dof),
            tolerance=None if self.tolerance is None else float(self.tolerance), elliptical=elliptical, unit=self.unit,
        )  # fmt: skip

    def prior_rule(self) -> None:
        """A kernel density takes no prior."""

    @property
    def bandwidth_(self) -> Array:
        """Bandwidth of each column in its own units (d,); of "elliptical", the kernel's standard deviations."""
        return self.model_._widths

    @property
    def relative_bandwidth_(self) -> Array:
        """Bandwidth in standard deviations of the columns (1,)."""
        return self.model_.relative_bandwidth

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.kernel in (*MARGINAL_KERNELS, "elliptical")
        return tags


def _bandwidths(model: KDE, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The relative bandwidth, and the bandwidth of each column; the points are the data themselves."""
    yield Row("all columns", "relative bandwidth", float(model.relative_bandwidth[0]), None, None)
    yield from (Row(name, "bandwidth", float(h), None, None) for name, h in zip(names, model._widths, strict=True))


PARAMETER_ROWS[KDE] = _bandwidths

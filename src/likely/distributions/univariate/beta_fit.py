"""Maximum-likelihood fit of the beta distribution from the mean logarithms of x and of 1 − x."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, BadEntry, n_rows, rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.distributions.column_distribution import FeatureDistribution
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.numerics.gamma_dirichlet_shapes import LARGEST, dirichlet_expected_log_prob, dirichlet_shapes


class BetaLearning(FeatureDistribution):
    """Maximum likelihood of a and b by Newton's method for their logarithms, for parameters from 10⁻⁸ to 10¹².

    0 and 1 have no finite logarithms: fitting refuses them, by row and column. A column so narrow that the parameters
    would exceed 10¹² gets a warning: sums of logarithms do not determine them there.
    """

    _domains: ClassVar[dict[str, str]] = {"a": "positive", "b": "positive"}
    _spreads: ClassVar[bool] = True
    _support = "unit"
    _n_features = 2
    _limits: ClassVar[dict[str, tuple[float, str]]] = {
        name: (LARGEST * (1 - 1e-9), f"too narrow for {name} to be estimated") for name in ("a", "b")
    }

    @classmethod
    def _plain(cls, d: int) -> Self:
        return cls.trusted(a=np.ones(d), b=np.ones(d))

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> Self:  # type: ignore[override]
        """Initial model: as many columns as the rows have, each uniform."""
        width = rows(x, None, "Beta").shape[1]
        if width == 0:
            raise ShapeError(sentence("Beta", "at least one column is needed", n_rows(x)))
        shape = (width,) if members is None else (members, width)
        return cls.trusted(a=np.ones(shape), b=np.ones(shape))

    def _features(self, x: Array) -> list[Array]:
        return [np.log(x), np.log1p(-x)]

    def _collected(self, z: Array, shares: Any) -> FeatureSums:
        bad = np.argwhere((z == 0) | (z == 1))
        if len(bad):
            i, j = (int(k) for k in bad[0])
            remedy = "replace it by NaN, or by its value before rounding"
            raise BadEntry("Beta", "values to fit must lie between 0 and 1", z[i, j], i, j, remedy)
        return super()._collected(z, shares)

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        cells = np.stack([means[0].ravel(), means[1].ravel()], axis=1)
        found = np.array([dirichlet_shapes(cell) for cell in cells]).reshape(*means[0].shape, 2)
        return {"a": found[..., 0].copy(), "b": found[..., 1].copy()}

    def _expected_log(self, means: list[Array], a: Array, b: Array) -> Array:
        return dirichlet_expected_log_prob(np.stack([a, b], axis=-1), np.stack(means, axis=-1))

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> Self:
        """The distribution with this mean m and variance v < m (1 − m): a + b = m (1 − m) / v − 1."""
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        whole = mean * (1 - mean) / np.where(variance > 0, variance, np.nan) - 1
        if not ((mean > 0) & (mean < 1) & (whole > 0)).all():
            expected = "the mean must lie in (0, 1) and the variance between 0 and m (1 − m)"
            raise DomainError(sentence("Beta.from_moments", expected, (mean, variance)))
        a, b = np.atleast_1d(mean * whole), np.atleast_1d((1 - mean) * whole)
        return cls.trusted(a=np.array(a), b=np.array(b))

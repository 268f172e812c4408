"""Maximum-likelihood fit of the Dirichlet distribution from the mean logarithms of the proportions."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, BadEntry, Index, n_rows, refuse_infinite, rows, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.distributions.distribution import Distribution
from likely.distributions.statistics.counts import member_weights
from likely.distributions.statistics.feature_sums import FeatureSums, feature_sums
from likely.numerics.gamma_dirichlet_shapes import dirichlet_expected_log_prob, dirichlet_shapes

ON_SIMPLEX = 1e-6  # tolerance of the row sums


class DirichletLearning(Distribution):
    """Maximum likelihood of α (Minka's Newton method for log α): ψ(αᵢ) − ψ(α₀) is the mean of log θᵢ.

    A missing proportion is 1 minus the others; a row that lacks two or more is refused, and so is a proportion of 0,
    which has no logarithm.
    """

    alpha: Array
    _rest_tells: ClassVar[bool] = True

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> Self:
        """Initial model: uniform, with as many proportions as the rows have columns."""
        width = rows(x, None, "Dirichlet").shape[1]
        if width == 0:
            raise ShapeError(sentence("Dirichlet", "at least one column is needed", n_rows(x)))
        return cls.trusted(alpha=np.ones((width,) if members is None else (members, width)), levels=None)

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Method of moments: the mean m of the rows and the sum of the variances Σ mᵢ(1 − mᵢ)/(α₀ + 1).

        >>> import likely as lk
        >>> lk.Dirichlet.moments_fit([[0.2, 0.8], [0.6, 0.4]]).alpha.round(3)
        array([2., 3.])
        """
        z = complete_proportions(rows(x, None, "Dirichlet"))
        given = weights(weight, len(z), "Dirichlet")
        counts = np.ones(len(z)) if given is None else given
        w = np.where(np.isnan(z).any(axis=1), 0.0, counts)
        if not w.sum() > 0:
            raise DataError(sentence("Dirichlet", "at least one row with weight is needed", "none"))
        mean = np.average(np.nan_to_num(z), axis=0, weights=w)
        spread = float(np.average((np.nan_to_num(z) - mean) ** 2, axis=0, weights=w).sum())
        if not spread > 0:
            raise DataError(sentence("Dirichlet", "rows must differ for the method of moments", "rows all alike"))
        return cls(alpha=mean * (float((mean * (1 - mean)).sum()) / spread - 1))  # type: ignore[call-arg]

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> FeatureSums:
        """Sums of log proportions of weighted rows (n, L).

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to (−1: none).
        """
        n = n_rows(x)
        w = weights(weight, n, "Dirichlet")
        if n > ROWS * BLOCKS:
            return self._collect_blocks(x, w, labels)
        z = complete_proportions(rows(x, self.alpha.shape[-1], "Dirichlet"))
        shares = member_weights(w, labels, n, self.members, "Dirichlet")  # type: ignore[attr-defined]
        return feature_sums(z, shares, self.members, lambda a: [np.log(a)], 1, 0.5)  # type: ignore[attr-defined]

    def _collect_blocks(self, x: Any, w: Array | None, labels: Index | None) -> FeatureSums:
        try:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        except DataError:
            complete_proportions(
                rows(x, self.alpha.shape[-1], "Dirichlet")
            )  # the same error, with the row's own number
            raise

    def refit(self, stats: FeatureSums, prior: AnyPrior | None = None) -> Self:
        """Maximum-likelihood α, or with a prior the posterior mode; a member without data keeps its parameters."""
        self._learns_from(stats)
        if prior is not None:
            return prior.update(stats).point("mode")
        if not stats.total_weight > 0:
            raise DataError(sentence("Dirichlet", "at least one row with weight is needed", "none", "or give a prior"))
        observed, logs = np.atleast_1d(stats.rows) > 0, np.atleast_2d(_mean_logs(stats))
        old = np.atleast_2d(self.alpha)
        found = [dirichlet_shapes(mean) if there else a for there, mean, a in zip(observed, logs, old, strict=True)]
        return self.replace(alpha=np.array(found).reshape(self.alpha.shape))

    def objective(self, stats: FeatureSums, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._learns_from(stats)
        each = np.where(stats.rows > 0, stats.rows * dirichlet_expected_log_prob(self.alpha, _mean_logs(stats)), 0.0)
        value = float(each.sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: FeatureSums) -> Any:
        """Pooled pseudo-observations of total weight 0.1."""
        from likely.distributions.priors.pseudo_data import PseudoData

        return PseudoData.weak(self, stats)

    def _learns_from(self, stats: FeatureSums) -> None:
        if stats.weight.shape != self.alpha.shape or stats.sums.shape != (*self.alpha.shape, 1):
            expected = f"statistics must be of shape {self.alpha.shape}"
            raise ShapeError(sentence("Dirichlet", expected, stats.weight.shape))


def _mean_logs(stats: FeatureSums) -> Array:
    return stats.means([np.log(np.full(1, 0.5))])[0]


def complete_proportions(z: Array) -> Array:
    """Rows of proportions that sum to 1, a missing one filled in; raises for rows that cannot be used."""
    refuse_infinite(z, "Dirichlet")
    missing = np.isnan(z)
    many = np.flatnonzero(missing.sum(axis=1) > 1)
    if len(many):
        i, j = int(many[0]), int(np.flatnonzero(missing[many[0]])[1])
        raise BadEntry("Dirichlet", "a row may have at most one missing proportion", np.nan, i, j, "leave the row out")
    total = np.where(missing, 0.0, z).sum(axis=1)
    z = np.where(missing, np.maximum(1.0 - total, 0.0)[:, None], z)
    bad = np.argwhere(z <= 0)
    if len(bad):
        i, j = (int(k) for k in bad[0])
        remedy = "replace it by the detection limit"
        raise BadEntry("Dirichlet", "proportions to fit must be positive", z[i, j], i, j, remedy)
    off = np.flatnonzero(np.abs(z.sum(axis=1) - 1.0) > ON_SIMPLEX)
    if len(off):
        got, remedy = f"{z[off[0]].sum():g} in row {int(off[0])}", "divide each row by its sum"
        raise DataError(sentence("Dirichlet", "proportions of a row must sum to 1", got, remedy))
    return z

"""EM for Gaussian rows with missing entries: expected moments, conditional means and conditional covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.blocks import Blocks
from likely.core.em_loop import StoppingRule, fit
from likely.core.errors import DataError, sentence
from likely.core.fit_report import FitReport
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.scatter_qr import ScatterRoot

STOP = StoppingRule(500, 1e-7)


def any_missing(x: Any) -> bool:
    """True if an entry of an array is NaN; for complete rows this costs one sum."""
    with np.errstate(all="ignore"):
        return not np.isfinite(np.sum(x)) and bool(np.isnan(x).any())


def em_moments(x: Any, weight: Any, whose: str, labels: Index | None = None, members: int | None = None) -> Moments:
    """Expected moments of rows (n, d) with missing entries, by EM under a Gaussian.

    With `labels` (n,), the moments of each of `members` members, which have their own means and one covariance. The
    weak prior keeps the covariance regular; for well-determined rows the result is that of maximum likelihood.
    """
    with np.errstate(all="ignore"):
        blank = Gaussian.blank(x[:4096], members=members, tied=members is not None)
    with warnings_discarded():
        report = fit(blank, Blocks.of(x, weight, labels=labels), prior="weak", stop=STOP)
    stats: Moments = report.stats
    never = np.flatnonzero(~(stats.pooled().observed > 0))
    if len(never):
        expected, remedy = f"column {never[0]} must be observed in some row", "leave the column out"
        raise DataError(sentence(whose, expected, "nothing but NaN", remedy))
    warn_of_expected(report, whose)
    return stats


def warn_of_expected(report: FitReport, whose: str) -> None:
    """Warn that rows had missing entries and that the moments are expectations found by EM."""
    status = "" if report.converged else f" (not converged: {report.reason})"
    warn(f"{whose}: entries are missing: moments are those expected under a Gaussian, found by EM{status}")


def gaussian_of(stats: Moments | ScatterRoot) -> Gaussian:
    """The Gaussian with these moments, its covariance regularized by the weak prior and shared by all members."""
    if isinstance(stats, ScatterRoot):
        parts = {name: getattr(stats, name) for name in ("weight", "origin", "shift")}
        stats = Moments.trusted(**parts, scatter=stats.root.T @ stats.root, entropy=np.zeros(()), complete=True)
    distribution = Gaussian.trusted(mean=stats.mean, covariance=np.eye(stats.shift.shape[-1]), kind="full")
    about = stats.replace(shift=np.zeros_like(stats.shift))  # between-class differences must not enter the covariance
    with warnings_discarded():
        return distribution.refit(about, distribution.weak_prior(about)).replace(mean=stats.mean)


def expected_rows(distribution: Gaussian, x: Array, metric: Array | None = None) -> tuple[Array, Array]:
    """Rows (n, d) with missing entries replaced by E[x_m | x_o], and tr(M Cov[x | x_o]) per row (n,), M = I if None.

    With both, expected squared distances follow: E (x − y)ᵀM(x − y) = (x̂ − ŷ)ᵀM(x̂ − ŷ) + tr M Cov x + tr M Cov y for
    independent rows.

    >>> g = Gaussian([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]])
    >>> filled, variance = expected_rows(g, np.array([[2.0, np.nan], [1.0, 1.0]]))
    >>> filled.round(6).tolist(), variance.round(6).tolist()
    ([[2.0, 1.6], [1.0, 1.0]], [0.36, 0.0])
    """
    out, trace = np.array(x, dtype=np.float64), np.zeros(len(x))
    incomplete = np.flatnonzero(np.isnan(out).any(axis=1))
    if not len(incomplete):
        return out, trace
    precision, mean = distribution._precisions[0], distribution.mean
    patterns = Patterns.of(observed(out[incomplete]))
    for p, mask in enumerate(patterns.seen):
        at = incomplete[patterns.order[patterns.starts[p] : patterns.starts[p + 1]]]
        m, o = np.flatnonzero(~mask), np.flatnonzero(mask)  # missing and observed columns
        covariance = np.linalg.inv(precision[np.ix_(m, m)])
        slope = precision[np.ix_(o, m)] @ covariance
        out[np.ix_(at, m)] = mean[m] - (out[np.ix_(at, o)] - mean[o]) @ slope
        trace[at] = np.trace(covariance) if metric is None else (covariance * metric[np.ix_(m, m)]).sum()
    return out, trace

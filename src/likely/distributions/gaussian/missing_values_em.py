"""Rows with missing entries under a Gaussian: moments by EM, what is expected in the gaps, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.blocks import Blocks
from likely.core.errors import DataError, sentence
from likely.core.fit_loop import Stop, fit
from likely.core.fit_report import FitReport
from likely.core.warnings import tell, unheard
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.scatter_qr import ScatterRoot

STOP = Stop(500, 1e-7)


def any_missing(x: Any) -> bool:
    """True if an entry of an array is NaN; complete rows cost one sum."""
    with np.errstate(all="ignore"):
        return not np.isfinite(np.sum(x)) and bool(np.isnan(x).any())


def em_moments(x: Any, weight: Any, whose: str, labels: Index | None = None, members: int | None = None) -> Moments:
    """Moments of rows (n, d) with missing entries: what EM under a Gaussian expects them to be.

    With `labels` (n,), the moments of each of so many members, which have their own means and one covariance. The weak
    prior keeps the covariance regular; of well-determined rows the moments are those of maximum likelihood.
    """
    with np.errstate(all="ignore"):
        blank = Gaussian.blank(x[:4096], members=members, tied=members is not None)
    with unheard():
        report = fit(blank, Blocks.of(x, weight, labels=labels), prior="weak", stop=STOP)
    stats: Moments = report.stats
    never = np.flatnonzero(~(stats.pooled().observed > 0))
    if len(never):
        expected, remedy = f"column {never[0]} must be observed in some row", "leave the column out"
        raise DataError(sentence(whose, expected, "nothing but NaN", remedy))
    tell_of_expected(report, whose)
    return stats


def tell_of_expected(report: FitReport, whose: str) -> None:
    """Note that rows had missing entries, so that moments are those that EM expects."""
    told = "" if report.converged else f" (not converged: {report.reason})"
    tell(f"{whose}: entries are missing: moments are those expected under a Gaussian, found by EM{told}")


def gaussian_of(stats: Moments | ScatterRoot) -> Gaussian:
    """The Gaussian with these moments, its covariance kept regular by the weak prior; of a stack, one for all."""
    if isinstance(stats, ScatterRoot):
        parts = {name: getattr(stats, name) for name in ("weight", "origin", "shift")}
        stats = Moments.trusted(**parts, scatter=stats.root.T @ stats.root, entropy=np.zeros(()), complete=True)
    distribution = Gaussian.trusted(mean=stats.mean, covariance=np.eye(stats.shift.shape[-1]), kind="full")
    about = stats.replace(shift=np.zeros_like(stats.shift))  # differences of means are not the covariance's business
    with unheard():
        return distribution.refit(about, distribution.weak_prior(about)).replace(mean=stats.mean)


def expected_rows(distribution: Gaussian, x: Array, metric: Array | None = None) -> tuple[Array, Array]:
    """Rows (n, d) with E[missing | seen] in their gaps, and tr(M Cov[x | seen]) of each (n,), M = I if None.

    With both, expected squared distances follow: E (x − y)ᵀM(x − y) = (x̂ − ŷ)ᵀM(x̂ − ŷ) + tr M Cov x + tr M Cov y for
    rows that are drawn independently.

    >>> g = Gaussian([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]])
    >>> filled, spread = expected_rows(g, np.array([[2.0, np.nan], [1.0, 1.0]]))
    >>> filled.round(6).tolist(), spread.round(6).tolist()
    ([[2.0, 1.6], [1.0, 1.0]], [0.36, 0.0])
    """
    out, spread = np.array(x, dtype=np.float64), np.zeros(len(x))
    gappy = np.flatnonzero(np.isnan(out).any(axis=1))
    if not len(gappy):
        return out, spread
    precision, mean = distribution._precisions[0], distribution.mean
    patterns = Patterns.of(observed(out[gappy]))
    for p, seen in enumerate(patterns.seen):
        at = gappy[patterns.order[patterns.starts[p] : patterns.starts[p + 1]]]
        gap, there = np.flatnonzero(~seen), np.flatnonzero(seen)
        covariance = np.linalg.inv(precision[np.ix_(gap, gap)])
        slope = precision[np.ix_(there, gap)] @ covariance
        out[np.ix_(at, gap)] = mean[gap] - (out[np.ix_(at, there)] - mean[there]) @ slope
        spread[at] = np.trace(covariance) if metric is None else (covariance * metric[np.ix_(gap, gap)]).sum()
    return out, spread

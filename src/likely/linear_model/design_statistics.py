"""Statistics of rows (φ(x), y) of a table, read in blocks, and the choice among their kinds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, BadEntry, Mask, n_rows, refuse_infinite
from likely.core.blocks import Block, Blocks
from likely.core.description import counted
from likely.core.engine import Threads
from likely.core.errors import DataError, sentence
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.scatter_qr import root_of_rows
from likely.linear_model.evidence import Problem
from likely.linear_model.gaussian_regression import refuse_missing_values
from likely.linear_model.least_squares import RegressionStats, condition_number, gram_of_rows

PRODUCTS = 1e8  # rows × columns² up to which the Gram matrix in double-double is taken at once: a second
WELL_CONDITIONED = 1e2  # condition number up to which the R factor of the scatter matrix has 12 digits,
CONDITION = 1e5  # and up to which the R factor of the rows, by QR, has 11; then it is the Gram matrix again
PART = 4  # blocks per task
TINY = 1e-290  # squares below it have lost digits
METHODS = {
    "GramStats": "Gram matrix in double-double", "ScatterRoot": "R factor by QR", "Moments": "R factor of the scatter",
}  # fmt: skip


def _about_first(take: Any) -> Any:
    """Statistics of rows about the first one."""
    return lambda z, w: take(z, w, z[0] if len(z) else np.zeros(z.shape[1]))


KINDS = {
    "GramStats": gram_of_rows, "ScatterRoot": _about_first(root_of_rows), "Moments": _about_first(moments.of_rows),
}  # fmt: skip
LIMITS = {"Moments": WELL_CONDITIONED, "ScatterRoot": CONDITION}


class Table(NamedTuple):
    """Rows of regressors and targets, with weights and known relative noise variances."""

    basis: Any
    X: Any
    y: Array  # (n, m)
    weight: Array | None = None
    noise: Array | None = None

    def rows(self, at: slice) -> tuple[Array, Array, Array | None, Array | None]:
        """φ (k, M), y (k, m), weights and relative noise variances of the rows whose targets were observed."""
        X = take_some(self.X, at)
        y, w, v = self.y[at], *(None if a is None else a[at] for a in (self.weight, self.noise))
        refuse_infinite(y, "regression")
        missing = np.isnan(y)
        unseen: Mask = np.asarray(missing.all(axis=1))
        if (missing.any(axis=1) & ~unseen).any():
            i, j = np.argwhere(missing & ~unseen[:, None])[0]
            remedy = "fit GaussianRegression by lk.fit, which integrates it out, or leave the row out"
            raise BadEntry(
                "regression", "all targets of a row must be observed, or none", np.nan, int(i), int(j), remedy
            )
        if unseen.any():
            keep = np.flatnonzero(~unseen)
            X, y, w, v = take_some(X, keep), y[keep], None if w is None else w[keep], None if v is None else v[keep]
        with np.errstate(all="ignore"):  # what overflows is told by row and column
            return np.asarray(self.basis.design(X), dtype=np.float64), y, w, v


def collected(table: Table, take: Any = gram_of_rows) -> RegressionStats:
    """Statistics of all rows, block by block, by a function of rows (φ, y) and weights."""

    def collect(block: Block) -> RegressionStats:
        at = slice(block.start, block.start + len(block))
        phi, y, w, v = table.rows(at)
        z = np.concatenate([phi, y], axis=1)
        by = w if v is None else 1 / v if w is None else w / v
        sums = take(z, by)
        if sums is None:
            refuse_missing_values(take_some(table.X, at), phi)
            raise moments.overflow("regression")
        _refuse_underflow(z, by, phi.shape[1])
        n = float(len(y)) if w is None else float(w.sum())
        log_noise = 0.0 if v is None else float(np.log(v).sum() if w is None else w @ np.log(v))
        return RegressionStats.of(sums, y.shape[1], n, log_noise)

    n = n_rows(table.y)
    return Threads().total(collect, Blocks.of(np.arange(n), table.weight, blocks=PART))


def take_some(X: Any, at: Any) -> Any:
    """Rows of an array or of a data frame."""
    return X.iloc[at] if hasattr(X, "iloc") else X[at]


def _refuse_underflow(z: Array, weight: Array | None, M: int) -> None:
    """Raise an error where squares of a column are too small for a number: all of its sums would be 0."""
    most = np.abs(z).max(axis=0, initial=0.0)
    share = 1.0 if weight is None or not len(weight) else float(weight.max())
    small = np.flatnonzero((most > 0) & (most**2 * share < TINY))
    if len(small):
        j = int(small[0])
        what = f"basis function {j}" if j < M else "the target"
        expected = f"squares of {what} must be at least {TINY:g}"
        raise DataError(sentence("regression", expected, f"values up to {most[j]:.3g}", "multiply it by a constant"))


def chosen(table: Table) -> RegressionStats:
    """Gram matrix in double-double for small and for ill-conditioned tables, else the cheapest R factor that serves."""
    n, m = table.y.shape
    with np.errstate(all="ignore"):
        width = len(table.basis.design(take_some(table.X, slice(1)))[0]) + m
    if n * width**2 < PRODUCTS:
        return collected(table)
    for kind, limit in LIMITS.items():
        stats = collected(table, KINDS[kind])
        if condition_number(stats, centered=True) <= limit:
            return stats
    return collected(table)


def refined(table: Table, stats: RegressionStats, coefficients: Array) -> Array:
    """One step of iterative refinement of coefficients (m, M): residuals of the rows, which are read again."""

    def gradient(block: Block) -> Array:
        phi, y, w, v = table.rows(slice(block.start, block.start + len(block)))
        rest = y - phi @ coefficients.T
        by = w if v is None else 1 / v if w is None else w / v
        return phi.T @ (rest if by is None else by[:, None] * rest)

    g = Threads().total(gradient, Blocks.of(np.arange(n_rows(table.y)), blocks=PART))
    M = coefficients.shape[1]
    R = stats.root[:M, :M]
    return np.asarray(coefficients + np.linalg.solve(R, np.linalg.solve(R.T, g)).T)


def problem_of(stats: RegressionStats, target: int, flat: bool) -> Problem:
    """One target on the basis functions; if `flat`, the first function is a constant without a prior."""
    m = stats.targets
    R, M = stats.root, stats.root.shape[-1] - m
    rest = float((R[M:, M + target] ** 2).sum())
    first = int(flat)
    constant = float(2 * np.log(abs(R[0, 0]))) if flat and R[0, 0] else 0.0
    problem = Problem(
        R[first:M, first:M], R[first:M, M + target], rest, float(stats.rows) - first, float(stats.log_noise) + constant
    )
    if not problem.rows > 0:
        expected = f"at least {first + 1} rows with weight are needed"
        raise DataError(sentence("regression", expected, counted(float(stats.rows), "sample")))
    scatter = float(stats.target_scatter[target])
    size = scatter if scatter > 0 else max(float(stats.sums.mean[M + target]) ** 2, 1.0) * 1e-2
    return problem.least_noise(size / float(stats.rows))

"""How wide a window should be: as wide as makes rows likely that were left out.

v²_d = α σ²_d, with σ²_d the variance of column d in the member's own rows (Ney 5.2), or α times their covariance. What
is chosen here is α, one number a member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.engine import cores, ordered_map
from likely.core.notes import tell
from likely.errors import DataError, sentence
from likely.families.floors import HUGE, ROUNDING, TINY, columns
from likely.models.parzen_kernels import Kernel
from likely.models.parzen_tree import Tree, tree_of

RULES = ("leave-one-out", "maximum", "scott", "silverman", "given")
WORK = 2e10  # rows left out × points × (columns + 16) for one α: beyond it, a sample of the rows is left out
FEW = 1000  # rows that are left out for a first, coarse search
WIDE = 4.0  # α beyond which no window is tried: twice the deviation of all rows
FINE = 1e-3  # of log α
LOOKS = 9  # points of log α that are looked at before a hill is climbed
ROUNDED = 1e-12  # α: windows of a millionth of a deviation mean that rows are copies but for rounding
BRIEF = 1e-6  # what sums of a search may lack
CHUNK = 256  # rows a thread takes at a time
ONE_OF_THEM = 1e-9  # of the variance of all rows: below, a member has no spread of its own


# -------------------------------------------------------------------- spreads


def spreads(rows: Array, weight: Array, owner: Index, members: int) -> Array:
    """σ²_d of each member (K, d); that of all rows where a member's own rows do not spread, or there is but one."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = _variance(rows, weight)
        whole, constant = _floored(rows, weight, whole)
        each = np.stack([_variance(rows[owner == k], weight[owner == k]) for k in range(members)])
    return np.where((each > ONE_OF_THEM * whole) & ~constant, each, whole)


def _variance(x: Array, w: Array) -> Array:
    if not len(x):
        return np.zeros(x.shape[1])
    mean = w @ x / w.sum()
    return np.asarray(w @ (x - mean) ** 2 / w.sum())


def _floored(x: Array, w: Array, variance: Array) -> tuple[Array, Mask]:
    """The variance of all rows; of columns that do not vary, (1e-8 of their size)²."""
    size = np.abs(w @ x / w.sum())
    constant = variance <= np.where(size > 0, ROUNDING * size, 0.0) ** 2
    variance = np.where(constant, np.where(size > 0, 1e-8 * size, 1e-8) ** 2, variance)
    odd = np.flatnonzero(~((variance >= TINY) & (variance <= HUGE)))
    if len(odd):
        expected = f"the squared spread of column {odd[0]} must lie between {TINY:g} and {HUGE:g}"
        raise DataError(sentence("Parzen", expected, float(variance[odd[0]]), "rescale the column"))
    if constant.any() and len(x) > 1:
        note = f"{columns(np.flatnonzero(constant))} is constant over all data: its windows are 1e-8 of its size wide"
        tell(f"Parzen: {note}", stacklevel=4)
    return variance, constant


def shape_of(x: Array, w: Array, variance: Array) -> Array:
    """The covariance (d, d) of a member's rows, its correlations shrunk by (d/n)⁴: never singular."""
    d, unit = len(variance), np.sqrt(variance)
    z = (x - w @ x / w.sum()) / unit
    R = (z * (w / w.sum())[:, None]).T @ z
    share = max(min(1.0, d / max(len(x) - 1, 1)) ** 4, 1e-9)
    R *= 1.0 - share
    R[np.diag_indices(d)] = 1.0
    return np.asarray(R * unit[:, None] * unit)


# ---------------------------------------------------------------------- rules


def chosen(rule: Any, y: Array, weight: Array, kernel: Kernel, which: str = "") -> float:
    """α for white rows y (m, d), which spread as 1 in each column; `which` names the member in a note."""
    if not isinstance(rule, str):
        return float(rule)
    m, d = y.shape
    even = kernel.spread if np.isfinite(kernel.spread) else 1.0
    n = float(weight.sum() ** 2 / (weight @ weight))  # rows that weigh alike and say as much
    if rule == "scott" or m < 2:
        if m < 2 and rule not in ("scott", "silverman"):
            tell(
                f"Parzen: one distinct row leaves nothing to choose a width by: Scott's rule is used{which}",
                stacklevel=4,
            )
        return max(n, 1.0) ** (-2.0 / (d + 4)) / even
    if rule == "silverman":
        return (n * (d + 2) / 4.0) ** (-2.0 / (d + 4)) / even
    nearest = nearest_others(y, kernel.code == 4)
    if rule == "maximum":
        return maximum(nearest, weight, kernel, d)
    return leave_one_out(y, weight, kernel, nearest, which)


def maximum(nearest: Array, weight: Array, kernel: Kernel, d: int) -> float:
    """α of the maximum approximation: only the nearest other row counts.

    For a Gaussian, α = 1/(N D) Σ_m min_{n≠m} Σ_d (x_md − x_nd)²/σ²_d (the exercise of Ney 5.2); other windows maximise
    Σ_m log k(r²_m/α) − (D/2) log α over one number.
    """
    w = weight / weight.sum()
    if kernel.code == 0:
        return float(w @ nearest / d)
    if kernel.code == 2:
        return float((w @ np.sqrt(nearest) / d) ** 2)
    if kernel.code == 4 or (kernel.code == 3 and kernel.b == 0):
        return float(nearest.max()) * (1 + 1e-12)  # the smallest window that reaches everybody's neighbour

    def score(log_alpha: float) -> float:
        return float(w @ _log_kernel(nearest / np.exp(log_alpha), kernel)) - 0.5 * d * log_alpha

    low = np.log(nearest.max()) + 1e-9 if kernel.code == 3 else np.log(w @ nearest / d) - 6
    return float(np.exp(_best(score, low, low + 12, 1e-9)))


def _log_kernel(r2: Array, kernel: Kernel) -> Array:
    with np.errstate(divide="ignore"):
        if kernel.code == 1:
            return np.asarray(-0.5 * kernel.b * np.log1p(r2 / kernel.a))
        return np.asarray(kernel.b * np.log(np.maximum(1.0 - r2 ** (0.5 * kernel.a), 0.0)))


def leave_one_out(y: Array, weight: Array, kernel: Kernel, nearest: Array, which: str = "") -> float:
    """α that maximises Σ_m w_m log p_{−m}(x_m), each distinct row left out with all its copies.

    A coarse search over some rows, then a fine one over all of them, both on log α. Rows that are distinct but for
    rounding make the likelihood rise without end as α falls: an optimum at an edge is told.
    """
    m, d = y.shape
    low, high = _edges(nearest, weight, kernel, d)
    some = min(m, max(FEW, int(WORK / (m * (d + 16)))))
    score = _left_out_score(y, weight, kernel, some)
    if some > 2 * FEW:
        rough = _best_of_all(_left_out_score(y, weight, kernel, FEW), low, high, 0.05)
        at = _best(score, max(low, rough - 0.3), min(high, rough + 0.3), FINE)
        if min(abs(at - rough + 0.3), abs(at - rough - 0.3)) < 0.02:  # the few led astray
            at = _best_of_all(score, low, high, FINE)
    else:
        at = _best_of_all(score, low, high, FINE)
    _tell_of_edges(at, low, high, kernel, which)
    return float(np.exp(at))


def _tell_of_edges(at: float, low: float, high: float, kernel: Kernel, which: str) -> None:
    remedy = "give a number, or scale='scott'"
    if at > high - 0.01 or (at < low + 0.01 and kernel.code < 3):
        end = "widest" if at > high - 0.01 else "narrowest"
        text = f"leaving one out is best at the {end} window tried, α = {np.exp(at):.3g}{which}: no optimum inside"
        tell(f"Parzen: {text}; {remedy}", stacklevel=6)
    elif np.exp(at) < ROUNDED:
        text = f"windows shrink to α = {np.exp(at):.3g}{which}: rows differ from each other by rounding only"
        tell(f"Parzen: {text}; round them, or {remedy}", stacklevel=6)


def _edges(nearest: Array, weight: Array, kernel: Kernel, d: int) -> tuple[float, float]:
    """Logs of the narrowest and widest α that are tried."""
    if kernel.code >= 3:  # narrower, and some row would have nobody in its window
        low = float(np.log(nearest.max())) + 1e-12
    else:
        low = float(np.log(weight @ nearest / weight.sum() / d)) - 4.0
    even = kernel.spread if np.isfinite(kernel.spread) else 1.0
    return low, max(float(np.log(WIDE / even)), low + 2.0)


def _left_out_score(y: Array, weight: Array, kernel: Kernel, some: int) -> Callable[[float], float]:
    tree = tree_of(y, weight)
    d, w, rest = y.shape[1], weight[:some] / weight[:some].sum(), np.log(weight.sum() - weight[:some])

    def score(log_alpha: float) -> float:
        logs = log_sums_of(tree, y[:some], np.exp(-log_alpha), kernel, BRIEF, tree.place[:some])
        return float(w @ (logs - rest)) - 0.5 * d * log_alpha

    return score


def log_sums_of(tree: Tree, y: Array, inv: float, kernel: Kernel, tolerance: float, skip: Index | None = None) -> Array:
    """log Σ_n w_n k(|y − y_n|² · inv) of white rows (n, d), on all cores; to `tolerance`, 0 is exact."""
    from likely.loops.parzen import log_sums

    out = np.empty(len(y))
    places = np.full(len(y), -1) if skip is None else np.ascontiguousarray(skip)
    y = np.ascontiguousarray(y)
    y = y.copy() if not y.flags.writeable else y  # one signature for all: arrays that may be written

    def fill(start: int) -> None:
        part = slice(start, start + CHUNK)
        log_sums(
            y[part], *tree[:-1], float(inv), kernel.code, kernel.a, kernel.b, float(tolerance), places[part], out[part]
        )

    for _ in ordered_map(fill, range(0, len(y), CHUNK), cores()):
        pass
    return out


def _best_of_all(score: Callable[[float], float], low: float, high: float, fine: float) -> float:
    """The same where there may be several hills: first a look at points all the way, then the highest is climbed."""
    grid = np.linspace(low, high, LOOKS)
    scores = [score(at) for at in grid]
    top = int(np.argmax(scores))
    at = _best(score, float(grid[max(top - 1, 0)]), float(grid[min(top + 1, LOOKS - 1)]), fine)
    return at if score(at) >= scores[top] else float(grid[top])  # cubes and balls make jumps, often best at an end


def _best(score: Callable[[float], float], low: float, high: float, fine: float) -> float:
    """Where a score is largest between two ends (Brent)."""
    from scipy.optimize import minimize_scalar

    def cost(at: float) -> float:
        value = score(at)
        return -value if np.isfinite(value) else 1e300

    return float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": fine}).x)


# ----------------------------------------------------------------- neighbours


def nearest_others(y: Array, cube: bool = False) -> Array:
    """Squared distance (m,) of each row to the nearest other; for the cube, twice the largest difference, squared."""
    from scipy.spatial import cKDTree

    if y.shape[1] > 16 and not cube:
        return _nearest_by_products(y)
    far = cKDTree(y).query(y, k=2, p=np.inf if cube else 2.0, workers=cores())[0][:, 1]
    return np.asarray((2.0 * far if cube else far) ** 2)


def _nearest_by_products(y: Array) -> Array:
    """In many dimensions a tree asks everybody: products find the neighbour, and the difference measures it."""
    z = y - y.mean(axis=0)
    size = np.einsum("ij,ij->i", z, z)
    out = np.empty(len(z))
    for start in range(0, len(z), 1024):
        part = slice(start, min(start + 1024, len(z)))
        far = size - 2.0 * (z[part] @ z.T)
        far[np.arange(part.stop - start), np.arange(start, part.stop)] = np.inf
        out[part] = ((z[part] - z[far.argmin(axis=1)]) ** 2).sum(axis=1)
    return out

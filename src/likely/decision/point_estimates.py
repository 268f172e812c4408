"""Point estimates of least expected loss under a predictive density: mean, median, quantile, numerical minimizer."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.core.warnings import warn
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.one_row_per_member import log_prob_each
from likely.distributions.student_t.student_t import StudentT

LOSSES = ("squared", "absolute", "asymmetric")
POINTS = 6  # of the Gauss–Legendre rule in a cell
CENTER = 12  # cells of equal probability between the 5 % quantiles
TAIL = (1e-16, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.05)  # ends of cells of a tail
FAR_TAIL = (1e-300, 1e-100, 1e-50, 1e-30, 1e-22)  # where the upper tail is the mirror image of the lower
NODES = POINTS * (CENTER + 2 * (len(TAIL) + len(FAR_TAIL)))
CELLS = 1_000_000  # losses that are evaluated at a time: 8 MB
ACTIONS = 129  # candidate estimates: quantiles
FAR = (1e-12, 1e-9, 1e-7, 1e-6, 1e-5)  # candidates in the tails
DOUBLINGS = 60  # steps beyond the last candidate
SPLITS = 45  # steps of the golden section, 4e-10 of the first interval
ACCURACY = 1e-4  # of the expected loss, relative to it or to losses at the quartiles


def point_estimate(
    density: Any, loss: str | Callable[[Array, Array], Array] = "squared", *, over: float | None = None,
    under: float | None = None,
) -> Array:  # fmt: skip
    """Point estimates that minimize the expected loss E loss(a, y) under univariate densities.

    The mean for squared loss, the median for absolute loss, the quantile under / (over + under) for asymmetric loss;
    for a function, by golden section from the best of 139 quantiles, and beyond them where the loss falls. The expected
    loss is integrated over the whole density: to probabilities of 1e-300 in the tails of Gaussian and t distributions,
    of 1e-16 in others. Nodes are doubled until it is known to 1e-4; a warning says if it is not.

    Parameters
    ----------
    density : density
        Univariate density, or a stack of n of them.
    loss : {"squared", "absolute", "asymmetric"} or callable, default "squared"
        The loss; a function loss(estimate, truth) of arrays that broadcast.
    over : float, optional
        Asymmetric loss per unit that the estimate lies above the truth.
    under : float, optional
        Asymmetric loss per unit that the estimate lies below the truth.

    Returns
    -------
    ndarray (n,)
        One estimate per member of the stack.

    References
    ----------
    Berger (1985), Statistical Decision Theory and Bayesian Analysis.

    Examples
    --------
    >>> import likely as lk
    >>> point_estimate(lk.Gaussian([[0.0], [5.0]], 1.0), "asymmetric", over=3.0, under=1.0).round(4)
    array([-0.6745,  4.3255])
    """
    if getattr(density, "dim", 1) != 1:
        expected = "a loss of one number needs univariate densities"
        raise DomainError(sentence("point_estimate", expected, f"{density.dim} columns", "take marginal([j]) first"))
    if loss != "asymmetric" and (over is not None or under is not None):
        raise DomainError(sentence("point_estimate", 'over and under are for loss="asymmetric"', repr(loss)))
    if callable(loss):
        return _minimizer(density, loss)
    if loss == "squared":
        return np.ravel(density.mean)
    if loss == "absolute":
        return np.ravel(density.quantile(0.5))
    if loss == "asymmetric":
        costs = (over, under)
        if not all(isinstance(c, Real) and 0 < c < np.inf for c in costs):
            raise DomainError(sentence("point_estimate", "over and under must be positive numbers", costs))
        return np.ravel(density.quantile(float(under) / (float(over) + float(under))))  # type: ignore[arg-type]
    raise DomainError(sentence("point_estimate", f"loss must be one of {', '.join(LOSSES)} or a function", repr(loss)))


def _minimizer(density: Any, loss: Callable[[Array, Array], Array]) -> Array:
    """The minimizer of each member, in blocks of members; the number of nodes doubles until they are enough."""
    members = density.members
    if members is None:
        return _of_block(density, loss)
    size = max(CELLS // NODES, 1)
    blocks = [np.arange(a, min(a + size, members)) for a in range(0, members, size)]
    found = [_of_block(density if len(at) == members else density.take(at), loss) for at in blocks]
    return np.concatenate(found) if found else np.empty(0)


def _of_block(density: Any, loss: Callable[[Array, Array], Array]) -> Array:
    risk = _Risk(density, loss, 1)
    low, high = _bracket(risk)
    best = _golden(risk, low, high)
    value = risk(best)
    for finer in (2, 4, 8, 16):
        risk = _Risk(density, loss, finer)
        reach = (high - low) / (2 * finer)
        best = _golden(risk, np.maximum(best - reach, low), np.minimum(best + reach, high))
        value, before = risk(best), value
        error = float((np.abs(value - before) / np.maximum(np.abs(value), risk.size(best))).max(initial=0.0))
        if error <= ACCURACY:
            return best
    told = f"the expected loss should be known to {ACCURACY:g}; it is known to {error:.1g}"
    warn(sentence("point_estimate", told, remedy="a loss without jumps is integrated better"))
    return best


class _Risk:
    """Expected loss of estimates, one per member: Gauss–Legendre rules in cells of equal or geometric probability.

    The cell that contains the estimate is split there, since most losses have a kink at estimate = truth.
    """

    def __init__(self, density: Any, loss: Callable[[Array, Array], Array], finer: int) -> None:
        self.density, self.loss = density, loss
        symmetric = isinstance(density, Gaussian | StudentT)
        lower = FAR_TAIL + TAIL if symmetric else TAIL
        tail = np.exp(_finer(np.log(lower), finer))
        p, mass = _gauss_log(tail)
        middle = _finer(np.linspace(TAIL[-1], 1 - TAIL[-1], CENTER + 1), finer)
        q, weight = _gauss(middle)
        self.mass = np.concatenate([mass, weight, mass[::-1]])
        self.mass /= self.mass.sum()
        below = self._quantiles(np.concatenate([tail, p]))
        median = self._quantiles([0.5])
        if symmetric:
            above = 2 * median - below
        else:
            above = self._quantiles(1 - np.concatenate([tail, p]))
        inner = self._quantiles(np.concatenate([middle, q]))
        t, c = len(tail), len(middle)
        self.y = np.concatenate([below[t:], inner[c:], above[t:][::-1]])  # (Q, n)
        self.edges = np.concatenate([below[:t], inner[1 : c - 1], above[:t][::-1]])  # (E, n)
        self.spread = np.abs(self._quantiles([0.75]) - self._quantiles([0.25]))[0]
        self.column = np.arange(self.y.shape[1])

    def _quantiles(self, p: Any) -> Array:
        return np.asarray(self.density.quantile(np.asarray(p))).reshape(len(p), -1)

    def size(self, a: Array) -> Array:
        """The scale of losses near an estimate: those at the quartiles, relative to each other."""
        near = np.stack([self._losses(a[None], a[None] + d * self.spread)[0] for d in (-1.0, 0.0, 1.0)])
        return np.maximum(np.ptp(near, axis=0), 1e-300)

    def _losses(self, a: Array, y: Array) -> Array:
        found = np.asarray(self.loss(np.broadcast_to(a, y.shape), y), dtype=np.float64)
        if found.shape != y.shape or np.isnan(found).any():
            got = "NaN" if found.shape == y.shape else f"shape {found.shape}"
            wanted = "loss(estimate, truth) must give one number per pair, as arrays"
            raise DomainError(sentence("point_estimate", wanted, got))
        return found

    def __call__(self, a: Array) -> Array:
        losses = self._losses(a, self.y)
        total = self.mass @ losses
        cell = np.sum(self.edges <= a, axis=0) - 1
        inside = (cell >= 0) & (cell < len(self.edges) - 1)
        cell = np.clip(cell, 0, len(self.edges) - 2)
        low, high = self.edges[cell, self.column], self.edges[cell + 1, self.column]
        at = POINTS * cell[None] + np.arange(POINTS)[:, None]
        own = self.mass[at]
        old = (own * losses[at, self.column]).sum(axis=0)
        inside &= high > low
        if not inside.any():
            return np.asarray(total)
        y, weight = self._split(np.clip(a, low, high), low, high)
        known, found = own.sum(axis=0), weight.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = (weight * self._losses(a, y)).sum(axis=0) * known / found
        smooth = inside & (np.abs(found - known) < 0.01 * known)  # not of counts, whose mass is at single points
        with np.errstate(invalid="ignore"):  # infinite losses stay so
            return np.where(smooth & np.isfinite(total), total - old + np.where(smooth, new, 0.0), total)

    def _split(self, a: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Nodes (2·POINTS, n) on both sides of a within its cell, and their probabilities."""
        x, w = np.polynomial.legendre.leggauss(POINTS)
        x, w = 0.5 * (x + 1)[:, None], 0.5 * w[:, None]
        y = np.concatenate([low + (a - low) * x, a + (high - a) * x])
        weight = np.concatenate([(a - low) * w, (high - a) * w])
        flat = y.reshape(-1, 1)
        if self.density.members is None:
            logs = np.asarray(self.density.log_prob(flat)).ravel()
        else:
            logs = log_prob_each(self.density.take(np.tile(self.column, len(y))), flat)
        return y, weight * np.exp(logs).reshape(y.shape)


def _gauss(edges: Array) -> tuple[Array, Array]:
    """Nodes and weights of Gauss–Legendre rules between edges."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + 0.5 * width * (x + 1)).ravel(), (0.5 * width * w).ravel()


def _gauss_log(edges: Array) -> tuple[Array, Array]:
    """The same on a logarithmic scale."""
    s, w = _gauss(np.log(edges))
    return np.exp(s), w * np.exp(s)


def _finer(edges: Array, by: int) -> Array:
    """Each cell cut in so many."""
    return np.interp(np.arange(by * (len(edges) - 1) + 1) / by, np.arange(len(edges)), edges)


def _bracket(risk: _Risk) -> tuple[Array, Array]:
    """Ends between which the best of many quantiles lies; beyond the last of them steps double."""
    at = np.concatenate([FAR, np.geomspace(1e-4, 0.05, 16), np.linspace(0.06, 0.5, (ACTIONS - 32) // 2)])
    below, above = risk._quantiles(at), risk._quantiles(1 - at[-2::-1])
    candidates = np.concatenate([below, above])
    values = np.stack([risk(a) for a in candidates])
    if not np.isfinite(values.min(axis=0, initial=np.inf)).all():
        expected = "some estimate must have a finite expected loss"
        raise DomainError(sentence("point_estimate", expected, "infinite ones only", "bound the loss"))
    best, column = values.argmin(axis=0), np.arange(values.shape[1])
    low, high = (candidates[np.clip(best + d, 0, len(candidates) - 1), column] for d in (-1, 1))
    for edge, sign in ((0, -1.0), (len(candidates) - 1, 1.0)):
        out = best == edge
        here, value = candidates[edge].copy(), values[edge].copy()
        step = np.maximum(np.abs(candidates[edge] - candidates[len(candidates) // 2]), risk.spread)
        for _ in range(DOUBLINGS):
            if not out.any():
                break
            ahead = np.where(out, here + sign * step, here)
            found = risk(ahead)
            better = out & (found < value)
            back = here if sign > 0 else ahead
            forth = ahead if sign > 0 else here
            low, high = np.where(out, np.minimum(low, back), low), np.where(out, np.maximum(high, forth), high)
            here, value, out, step = np.where(better, ahead, here), np.where(better, found, value), better, 2 * step
        if out.any():
            expected = "the expected loss must have a minimum"
            raise DomainError(sentence("point_estimate", expected, f"one that falls beyond {here[out][0]:.3g}"))
    return low, high


def _golden(risk: _Risk, low: Array, high: Array) -> Array:
    """Golden section, for all members at once."""
    ratio = 0.5 * (np.sqrt(5.0) - 1)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = risk(left), risk(right)
    for _ in range(SPLITS):
        to_left = at_left <= at_right
        low, high = np.where(to_left, low, left), np.where(to_left, right, high)
        new = np.where(to_left, high - ratio * (high - low), low + ratio * (high - low))
        found = risk(new)
        left, right = np.where(to_left, new, right), np.where(to_left, left, new)
        at_left, at_right = np.where(to_left, found, at_right), np.where(to_left, at_left, found)
    middle = 0.5 * (low + high)
    return np.where(risk(middle) <= np.minimum(at_left, at_right), middle, np.where(at_left <= at_right, left, right))

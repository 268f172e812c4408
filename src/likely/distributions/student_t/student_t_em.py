"""How a t distribution learns: outliers are found by the model and count less, again and again, until nothing moves.

Each row's log p holds −(ν + o)/2 · log(ν + q), and log is concave: with r = (ν' + o)/(ν' + q') of the model that looked
and any γ > 0, log(ν + q) ≤ r (ν + q)/(γ (ν + o)) − 1 + log γ (ν + o) − log r. The right-hand side is linear in q, so
what is left is a Gaussian's problem under weights r/γ. One γ for all rows is as good as the best: this is the EM
algorithm over hidden scales in its expanded form (Liu, Rubin and Wu 1998), and its step in ν keeps log Γ((ν + o)/2),
which plain EM replaces by a tangent: ν reaches infinity in a few dozen passes, not in a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from likely.core.arrays import Array, Index, checked_labels, n_rows, numbers, refuse_infinite, rows, weights
from likely.core.blocks import ROWS, Blocks
from likely.core.engine import Engine, Threads
from likely.core.errors import DataError, DomainError, ShapeError, enumerated, sentence
from likely.core.fit_loop import Step, Stop, fit, iterate
from likely.core.fit_report import FitReport
from likely.core.warnings import said_once, tell, unheard
from likely.distributions.distribution import Distribution
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.rows_by_label import rows_per_member
from likely.distributions.gaussian.variance_floors import column_floor, raise_to_floor
from likely.distributions.student_t import scale_statistics
from likely.distributions.student_t.em_extrapolation import PASSES, Climb
from likely.distributions.student_t.scale_statistics import ScaleSums
from likely.distributions.student_t.student_t_m_step import (
    LARGEST_DOF,
    LEAST_DOF,
    best_dof,
    best_scales,
    bound,
    prior_mode,
)
from likely.distributions.unobserved_columns import tell_of_gaps
from likely.numerics import spd
from likely.numerics.special import deviance

FIRST_DOF = 4.0
FIRST_PASSES = 8  # of plain EM, before steps say where they lead
MANY_PARTS = 4  # from so many on, learning begins with a block of each
LOOK = 4096  # rows that a first look takes
FARTHEST = 1e300  # a squared distance beyond counts as this
ROUNDS = 4  # of the inner climb between a prior, γ and ν: the passes go on with it


class LearnsScales(Distribution):
    """Learning of `StudentT`; the value itself is in `student_t`."""

    if TYPE_CHECKING:
        center: Array
        scale: Array
        dof: Array
        kind: str
        fixed_dof: bool

        @property
        def _shape(self) -> Gaussian: ...
        @property
        def dim(self) -> int: ...
        @property
        def members(self) -> int | None: ...
        @property
        def tied(self) -> bool: ...
        def member(self, k: int) -> Self: ...

    @classmethod
    def blank(cls, x: Any, kind: str = "full", members: int | None = None, dof: float | None = None) -> Self:
        """A first look: medians and absolute deviations of a block's columns, which outliers do not move."""
        look = "diagonal" if kind == "independent" else kind
        z = rows(x[:LOOK] if hasattr(x, "shape") else x, None, "StudentT")
        refuse_infinite(z, "StudentT")
        z = np.unique(z, axis=0) if z.size else z  # copies of a row must not move the start: weights are copies too
        start = Gaussian.blank(z, kind=look)
        center, variance = _middle(z, start.mean, np.array(start.variance))
        scale = np.diag(variance) if look == "full" else variance if look == "diagonal" else np.asarray(variance.mean())
        lead = () if members is None else (members,)
        free = np.full((*lead, len(center)) if kind == "independent" else lead, FIRST_DOF if dof is None else dof)
        made = cls(  # type: ignore[call-arg]
            np.array(np.broadcast_to(center, (*lead, *center.shape))),
            np.array(np.broadcast_to(scale, (*lead, *scale.shape))), free, kind,
        )  # fmt: skip
        return made.replace(fixed_dof=dof is not None)

    def _learned_from(
        self, blocks: Blocks, prior: Any, engine: Engine | None = None, stop: Stop | None = None,
        usual: Stop | None = None,
    ) -> FitReport:  # fmt: skip
        """A few passes of EM, then extrapolated ones, up to the maximum itself; with a `stop`, EM alone until then."""
        if stop is not None:
            return fit(self, blocks, prior=prior, engine=engine, stop=stop)
        begin = self._from_some(blocks, prior, engine)
        many = FIRST_PASSES if begin is self else 1
        start = fit(begin, blocks, prior=prior, engine=engine, stop=Stop(many, 1e-8))
        first = Step(start.model, start.stats, start.objective, start.prior)
        if start.stats.filled and start.prior is not prior:  # a rule: so few passes may not have settled the prior
            with said_once():
                first = next(iterate(start.model, blocks, prior=prior, engine=engine))
        elif start.iterations < many and not start.converged:
            return start

        def look(model: Any) -> Step:
            return next(iterate(model, blocks, prior=first.prior, engine=engine))

        with said_once():
            last, converged = Climb(look).run(first)
        reason = "nothing moves" if converged else f"{PASSES} passes made, or rounding decides"
        trace = start.trace if first.model is start.model else [first.objective]
        return FitReport(last.model, last.stats, last.prior, converged, reason, [*trace, last.objective])

    def _from_some(self, blocks: Blocks, prior: Any, engine: Engine | None) -> Self:
        """Many rows: a start that one block of each part agrees on, so that few passes over all are left."""
        if len(blocks.parts) < MANY_PARTS:
            return self
        some = Blocks([[next(iter(part))] for part in blocks.parts])
        if not all(block.weight is None or block.weight.any() for block in some):
            return self
        with unheard():
            found = self._learned_from(Blocks([list(some)]), prior, engine)
        return found.model if found.converged else self

    @classmethod
    def moments_fit(cls, x: Any, weight: Any = None, kind: str = "full") -> Self:
        """Mean, covariance and kurtosis of complete rows: E q² of Mahalanobis distances is d(d + 2)(ν − 2)/(ν − 4).

        Fourth moments need ν > 4, so that heavier tails cannot be found; `fit` can.
        """
        z = rows(x, None, "StudentT")
        if z.shape[1] == 1:  # a row of nothing but a gap says nothing
            seen = ~np.isnan(z[:, 0])
            z, weight = z[seen], None if weight is None else np.asarray(weights(weight, len(seen), "StudentT"))[seen]
        if np.isnan(z).any():
            raise DataError(sentence("StudentT", "moments need complete rows", "rows with gaps", "use fit"))
        look = "diagonal" if kind == "independent" else kind
        g = Gaussian.moments_fit(z, weight, kind=look)
        w = np.ones(len(z)) if weight is None else np.asarray(weight, dtype=np.float64)
        if kind == "independent":
            fourth = np.asarray(np.average((z - g.mean) ** 4, axis=0, weights=w) / g.variance**2)
            least = 3.0
        else:
            fourth = np.asarray(np.average(g.squared_distance(z) ** 2, weights=w))
            least = z.shape[1] * (z.shape[1] + 2.0)
        ratio = np.maximum(fourth / least, 1.0)
        with np.errstate(divide="ignore"):
            dof = np.minimum((4 * ratio - 2) / (ratio - 1), LARGEST_DOF)
        return cls(g.mean, g.covariance * ((dof - 2) / dof), dof, kind)  # type: ignore[call-arg]

    @classmethod
    def unbiased_fit(cls, x: Any, weight: Any = None, kind: str = "full") -> Self:
        """There is none that is known."""
        raise DomainError(sentence("StudentT", "no unbiased estimate is known", remedy="use fit"))

    # --------------------------------------------------------------- E-step

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> ScaleSums:
        """Moments of rows (n, d), outliers counted less, as this model sees them.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to
        (−1: nobody). Gaps are filled with their conditional expectation, whose uncertainty is added.
        """
        n = n_rows(x)
        w = weights(weight, n, "StudentT")
        x = x if hasattr(x, "shape") else numbers(x, "StudentT")
        if n > ROWS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        z = rows(x, self.dim, "StudentT")
        refuse_infinite(z, "StudentT")
        if labels is not None:
            return self._by_label(z, w, labels)
        if self.members and (w is None or w.ndim == 1):
            w = np.repeat((np.ones(n) if w is None else w)[:, None], self.members, axis=1)
        if w is not None and w.ndim == 2 and w.shape[1] != self.members:
            raise ShapeError(sentence("StudentT", f"weight must have a column per member ({self.members})", w.shape))
        return self._sums(z, np.ones(n) if w is None else w)

    def _by_label(self, z: Array, w: Array | None, labels: Index) -> ScaleSums:
        if self.members is None:
            raise DomainError(sentence("StudentT", "label is for a stack", "one value"))
        labels = checked_labels(labels, len(z), self.members, "StudentT")
        out = []
        for k, (mine, own, _) in enumerate(rows_per_member(z, w, labels, self.members)):
            one = self.member(k)
            one._shape.__dict__["origin"] = self._shape.origin
            out.append(one._sums(mine.copy(), np.ones(len(mine)) if own is None else own))
        return scale_statistics.stacked(out)

    def _sums(self, z: Array, w: Array) -> ScaleSums:
        """Statistics of sound rows under weights (n,), or (n, K) for a stack."""
        mask = observed(z)
        o = mask.sum(axis=1)
        if mask.all():
            total = w.sum(axis=0)[..., None]
            counts = {"seen": total * (np.arange(self.dim + 1) == self.dim), "entries": np.repeat(total, self.dim, -1)}
        else:
            w = np.where((o if w.ndim == 1 else o[:, None]) > 0, w, 0.0)
            by = w.T if w.ndim == 2 else w
            counts = {"seen": by @ (o[:, None] == np.arange(self.dim + 1)), "entries": by @ mask.astype(np.float64)}
        if self.kind == "independent":
            return self._by_columns(z, mask, w, counts)
        r, dev = self._counted(z, o, w)
        whole = mask.all()
        level = 0.5 * (w * np.where(w > 0, o[:, None] * (r - 1 - dev) if w.ndim == 2 else o * (r - 1 - dev), 0.0)).sum(
            0
        )
        sums = _sums_of(w, r, dev)
        if self.kind != "full":
            found: Any = moments.columns_of_rows(z, w * r, self._shape.origin)
        elif whole:
            found = self._complete(z, w * r)
        else:
            found, extra = self._with_gaps(z, mask, w, r)
            level = level + extra
        return ScaleSums.trusted(**counts, **sums, level=np.asarray(level), moments=found)

    def _counted(self, z: Array, o: Array, w: Array) -> tuple[Array, Array]:
        """r and r − 1 − log r of each row, of the shape of its weights."""
        form, v = self._shape.form, np.atleast_1d(self.dof)
        q = form.complete(z, 1.0, np.zeros(len(form.mean)))
        gaps = np.flatnonzero(o < self.dim)
        if len(gaps):
            q[gaps] = form.incomplete(z[gaps])[0]
        q = np.clip(q, 0.0, FARTHEST)
        return _pull(q if w.ndim == 2 else q[:, 0], o[:, None] if w.ndim == 2 else o, v if w.ndim == 2 else v[0])

    def _complete(self, z: Array, pulled: Array) -> Moments:
        origin = self._shape.origin
        found = moments.of_rows(z, pulled, origin) if pulled.ndim == 1 else moments.of_complete_rows(z, pulled, origin)
        if found is None:
            raise moments.overflow()
        return found

    def _with_gaps(self, z: Array, mask: Any, w: Array, r: Array) -> tuple[Moments, Array]:
        """Moments of rows of which some have gaps, and ½ Σ w log det of what is not known of these."""
        clean = mask.all(axis=1)
        gaps = np.flatnonzero(~clean & mask.any(axis=1))
        found = self._complete(z[clean], (w * r)[clean])
        if not len(gaps):
            return found, np.zeros(np.shape(found.weight))
        if w.ndim == 1:
            more, extra = self._filled(0, z[gaps], w[gaps], r[gaps])
            return (found + more).replace(complete=True, seen=None), np.asarray(extra)
        each = [self._filled(k, z[gaps], w[gaps, k], r[gaps, k]) for k in range(w.shape[1])]
        both = found + moments.stacked([m for m, _ in each])
        return both.replace(complete=True, seen=None), np.array([extra for _, extra in each])

    def _filled(self, k: int, z: Array, w: Array, r: Array) -> tuple[Moments, float]:
        from likely.distributions.gaussian._loops.missing_values import fill

        origin, precisions = self._shape.origin, self._shape._precisions
        patterns = Patterns.of(observed(z))
        filled = z[patterns.order] - origin
        own = np.ascontiguousarray(w[patterns.order])
        mean = np.ascontiguousarray(self._shape.form.mean[k] - origin)
        precision = precisions[min(k, len(precisions) - 1)]
        spread, determinant, _ = fill(filled, own, patterns.seen, patterns.starts, mean, precision)
        found = moments.of_rows(filled, own * r[patterns.order], np.zeros(self.dim))
        if found is None:
            raise moments.overflow()
        return found.replace(origin=origin, scatter=found.scatter + spread), -0.5 * determinant

    def _by_columns(self, z: Array, mask: Any, w: Array, counts: dict[str, Array]) -> ScaleSums:
        """Each column has a t distribution, and so an r, of its own."""
        out = []
        lead: Any = [w] if w.ndim == 1 else list(w.T)
        distributions = zip(*(np.atleast_2d(a) for a in (self.center, self.scale, self.dof)), lead, strict=True)
        for m, s, v, own in distributions:
            with np.errstate(over="ignore", invalid="ignore"):
                q = np.clip(np.where(mask, (z - m) ** 2 / s, 0.0), 0.0, FARTHEST)
            r, dev = _pull(q, 1.0, v)
            each = np.where(mask, own[:, None], 0.0)
            found = scale_statistics.entry_moments(z, each * r, self._shape.origin)
            logs = (each * (r - 1 - dev)).sum(axis=0)
            out.append({"moments": found, "level": 0.5 * logs, **_sums_of(each, r, dev)})
        many = [
            ScaleSums.trusted(
                **{name: np.array(np.atleast_2d(part)[k]) for name, part in counts.items()}, **sums
            )
            for k, sums in enumerate(out)
        ]  # fmt: skip
        return scale_statistics.stacked(many) if w.ndim == 2 else many[0]

    # --------------------------------------------------------------- M-step

    def refit(self, stats: ScaleSums, prior: Any = None) -> Self:
        """A t distribution that explains the rows better, or with a prior is more probable; the same once none is.

        Degrees of freedom stay within 0.1 … 10⁶, where a t distribution is a Gaussian to all intents. A singular scale
        is lifted just enough to be a density, and a warning says where and why.
        """
        self._suited(stats)
        tell_of_gaps("StudentT", stats.entries, stats.total_weight, prior)
        if prior is not None:
            return self._with_prior(stats, prior)
        if not stats.total_weight > 0:
            raise DataError(sentence("StudentT", "at least one row with weight is needed", "none", "or give a prior"))
        n, U = self._cells(stats)
        seen = stats.entries > 0
        center = np.where(seen, stats.moments.mean, self.center)
        scale = self._lifted(best_scales(self, stats, n, U), stats)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.where(n > 0, stats.surplus / n, 0.0)
            need = stats.excess - n * (s - np.log1p(s))  # the best γ is U/n
        dof = self.dof if self.fixed_dof else best_dof(self._by_seen(stats), need, self.dof)
        return self.replace(center=center, scale=scale, dof=np.array(dof))

    def _with_prior(self, stats: ScaleSums, prior: Any) -> Self:
        """Climb in turns: center and scale, degrees of freedom, γ; each step is exact, so none can lose."""
        n, _ = self._cells(stats)
        shape = getattr(prior, "shape", prior)
        gamma, found = np.ones_like(n), self
        for _ in range(ROUNDS):
            point = prior_mode(shape, stats, gamma, self.kind)
            found = found.replace(center=point.mean, scale=self._shaped(point))
            if not self.fixed_dof:
                need = stats.excess + n * deviance(np.ones_like(gamma), 1 / gamma) + stats.surplus * (1 / gamma - 1)
                found = found.replace(dof=best_dof(self._by_seen(stats), need, found.dof, prior))
            before, gamma = gamma, np.where(n > 0, found._gamma(stats)[0], 1.0)
            if np.abs(gamma / before - 1).max() < 1e-13:
                break
        return found

    def _shaped(self, point: Gaussian) -> Array:
        """A Gaussian's covariance in the kind of this distribution."""
        if self.kind == "full":
            return np.array(point.covariance_matrix)
        return np.array(point.covariance if self.kind == "spherical" else point.variance)

    def objective(self, stats: ScaleSums, prior: Any = None) -> float:
        """A bound of the log-likelihood (+ log prior) that is the log-likelihood at the model that collected."""
        self._suited(stats)
        log_gamma = self._gamma(stats)[1]
        value = bound(self, stats, log_gamma, self._cells(stats)[0])
        if prior is None:
            return value
        known = hasattr(prior, "shape") and hasattr(prior, "log_dof")
        density = prior.log_density(self) if known else prior.log_density(self._shape)
        return value + float(np.sum(density))

    def weak_prior(self, stats: ScaleSums) -> Any:
        """Few rows that look like all rows together, and degrees of freedom that are neither 0 nor infinite."""
        from likely.distributions.priors.student_t_prior import StudentTPrior

        return StudentTPrior.weak(self, stats)

    def _suited(self, stats: Any) -> None:
        if self.tied:
            expected, remedy = "learning needs a scale for each member", "replace the one scale by a stack"
            raise DomainError(sentence("StudentT", expected, "one for all", remedy))
        full = isinstance(getattr(stats, "moments", None), Moments)
        if not isinstance(stats, ScaleSums) or full != (self.kind == "full"):
            raise ShapeError(
                sentence("StudentT", f"sums of a {self.kind} t distribution are needed", type(stats).__name__)
            )
        if stats.entries.shape != self.center.shape or stats.excess.shape != self.dof.shape:
            expected = f"statistics must be of shape {self.center.shape}"
            raise ShapeError(sentence("StudentT", expected, stats.entries.shape))

    def _cells(self, stats: ScaleSums) -> tuple[Array, Array]:
        """Weight of the rows, plain and under r, for each r of its own: (...), or (..., d) for independent columns."""
        if self.kind == "independent":
            return stats.entries, stats.moments.weight
        return stats.rows, stats.pulled

    def _by_seen(self, stats: ScaleSums) -> Array:
        """Weight of rows of which 1 … d entries were seen (..., d); independent columns see one (..., d, 1)."""
        return stats.entries[..., None] if self.kind == "independent" else stats.seen[..., 1:]

    def _gamma(self, stats: ScaleSums) -> tuple[Array, Array]:
        """The best γ for this model, (ν U + Q)/(ν n + D), and its logarithm; 1 where there are no rows."""
        n, _ = self._cells(stats)
        v, q, D = self.dof, self._distances(stats), self._entries(stats)
        below = n * v + D
        rest = np.divide(v * stats.surplus + q - D, below, out=np.zeros(np.shape(n)), where=below > 0)
        return np.asarray(1 + rest), np.log1p(rest)

    def _entries(self, stats: ScaleSums) -> Array:
        if self.kind == "independent":
            return stats.entries
        return stats.rows * self.dim if self.kind == "full" else stats.entries.sum(axis=-1)

    def _distances(self, stats: ScaleSums) -> Array:
        """Q = Σ w r q of these rows, from their moments."""
        found, delta = stats.moments, stats.moments.mean - self.center
        if isinstance(found, Moments):
            roots = self._shape.form.roots
            if roots is None:
                expected = "the objective needs a scale that is not singular"
                raise DomainError(sentence("StudentT", expected, "a singular one", "refit makes one"))
            inverse = spd.inverse_factor(roots)
            inverse = inverse[0] if self.members is None else inverse
            away = (np.einsum("...ij,...j->...i", inverse, delta) ** 2).sum(-1)
            return np.asarray(spd.trace_form(inverse, found.scatter) + found.weight * away)
        each = (found.scatter + found.weight * delta**2) / self._shape.variance
        return np.asarray(each if self.kind == "independent" else each.sum(axis=-1))

    def _lifted(self, scale: Array, stats: ScaleSums) -> Array:
        kind = "diagonal" if self.kind == "independent" else self.kind
        floor = column_floor(stats.moments.pooled())
        flat = np.array(scale if self.members else scale[None])
        notes = {k: note for k in range(len(flat)) if (note := raise_to_floor(flat, k, floor, kind))}
        for text in sorted(set(notes.values())):
            at = enumerated("member", [k for k, note in notes.items() if note == text])
            tell(f"StudentT{f' ({at})' if self.members else ''}: {text.replace('covariance', 'scale')}")
        return flat if self.members else flat[0]

    def joined_stats(self, parts: list[ScaleSums]) -> ScaleSums:
        """Statistics of several runs of members as those of all of them."""
        return scale_statistics.side_by_side(parts)


def _pull(q: Array, o: Any, v: Any) -> tuple[Array, Array]:
    """r = (ν + o)/(ν + q), and r − 1 − log r ≥ 0, exact also where r is near 1."""
    r = (v + o) / (v + q)
    return r, deviance(np.ones_like(r), r, -((o - q) / (v + q)))


def _sums_of(w: Array, r: Array, dev: Array) -> dict[str, Array]:
    over = w * (r - 1)
    parts = {"near": np.maximum(over, 0.0), "far": np.maximum(-over, 0.0), "excess": w * dev}
    return {name: np.asarray(part.sum(axis=0)) for name, part in parts.items()}


def _middle(z: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Median and squared scale of each column that has any spread about its median; else mean and variance."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that is all NaN has no median
        center = np.nanmedian(z, axis=0) if len(z) else mean
        spread = np.nanmedian(np.abs(z - center), axis=0) if len(z) else np.zeros(len(mean))
    squared = (1.4826 * np.nan_to_num(spread)) ** 2
    use = (squared > 1e-12 * variance) & np.isfinite(squared)
    return np.where(use, center, mean), np.where(use, squared, variance)


__all__ = ["LARGEST_DOF", "LEAST_DOF", "LearnsScales"]

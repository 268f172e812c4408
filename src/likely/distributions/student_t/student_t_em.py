"""EM for the Student-t distribution (Gaussian scale mixture): parameter-expanded EM with missing values.

The log-density of a row has the term −(ν + o)/2 · log(ν + q), and log is concave: with r = (ν' + o)/(ν' + q') of the
current model (the expected latent precision) and γ > 0, log(ν + q) ≤ r (ν + q)/(γ (ν + o)) − 1 + log γ (ν + o) − log r.
The right-hand side is linear in q, so the M-step is that of a Gaussian under weights r/γ. One γ for all rows is
optimal: this is parameter-expanded EM over latent scales (PX-EM; Liu, Rubin and Wu 1998). Its step in ν keeps
log Γ((ν + o)/2), which plain EM replaces by a tangent: ν reaches infinity in a few dozen iterations, not in a million.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import (
    Array,
    Index,
    check_option,
    checked_labels,
    n_rows,
    numbers,
    refuse_infinite,
    rows,
    weights,
)
from likely.core.blocks import ROWS, Blocks
from likely.core.em_acceleration import PASSES
from likely.core.em_loop import FitStep, StoppingRule, fit, iterate
from likely.core.engine import Engine, Threads
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import AnyPrior
from likely.core.stats import Stats
from likely.core.value import fill_cache
from likely.core.warnings import Note, warn, warnings_discarded, warnings_once
from likely.distributions.distribution import Distribution
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.rows_by_label import rows_per_member
from likely.distributions.gaussian.variance_floors import column_floor, raise_to_floor
from likely.distributions.student_t import scale_statistics
from likely.distributions.student_t.em_extrapolation import AcceleratedEM
from likely.distributions.student_t.scale_statistics import ScaleSums
from likely.distributions.student_t.student_t_m_step import (
    LARGEST_DOF,
    LEAST_DOF,
    best_dof,
    best_scales,
    bound,
    prior_mode,
)
from likely.distributions.unobserved_columns import warn_of_missing_values
from likely.numerics import spd
from likely.numerics.special import deviance

ScaleKind = Literal[CovarianceKind, "independent"]
FIRST_DOF = 4.0
FIRST_PASSES = 8  # of plain EM before acceleration
MANY_PARTS = 4  # parts of the data from which EM starts on one block of each
BLANK_ROWS = 4096  # rows that `blank` uses
FARTHEST = 1e300  # upper limit of a squared distance
ROUNDS = 4  # of inner coordinate ascent over center and scale, γ and ν: the EM iterations continue it


class StudentTEM(Distribution):
    """EM algorithm of `StudentT`: E-step (`collect`), M-step (`refit`) and objective; the density is in `student_t`."""

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
    def blank(cls, x: Any, kind: ScaleKind = "full", members: int | None = None, dof: float | None = None) -> Self:
        """Initial model: median and median absolute deviation (MAD) per column of the first rows, against outliers."""
        check_option(kind, ScaleKind, "StudentT", "kind")
        shape: CovarianceKind = "diagonal" if kind == "independent" else kind
        z = rows(x[:BLANK_ROWS] if hasattr(x, "shape") else x, None, "StudentT")
        refuse_infinite(z, "StudentT")
        z = np.unique(z, axis=0) if z.size else z  # copies must not change the start: they are equivalent to weights
        start = Gaussian.blank(z, kind=shape)
        center, variance = _median_and_mad(z, start.mean, np.array(start.variance))
        scale = np.asarray(variance.mean())
        if shape != "spherical":
            scale = np.diag(variance) if shape == "full" else variance
        lead = () if members is None else (members,)
        free = np.full((*lead, len(center)) if kind == "independent" else lead, FIRST_DOF if dof is None else dof)
        made = cls(  # type: ignore[call-arg]
            np.array(np.broadcast_to(center, (*lead, *center.shape))),
            np.array(np.broadcast_to(scale, (*lead, *scale.shape))), free, kind,
        )  # fmt: skip
        return made.replace(fixed_dof=dof is not None)

    def estimated_from(
        self, blocks: Blocks, prior: Any, engine: Engine | None = None, stop: StoppingRule | None = None,
        usual: StoppingRule | None = None,
    ) -> FitReport:  # fmt: skip
        """A few iterations of EM, then accelerated EM to convergence; with `stop`, plain EM with that rule."""
        if stop is not None:
            return fit(self, blocks, prior=prior, engine=engine, stop=stop)
        begin = self._from_subsample(blocks, prior, engine)
        many = FIRST_PASSES if begin is self else 1
        start = fit(begin, blocks, prior=prior, engine=engine, stop=StoppingRule(many, 1e-8))
        first = FitStep(start.model, start.stats, start.prior, known_objective=start.objective)
        if start.stats.filled and start.prior is not prior:  # a data-dependent prior may not have converged yet
            with warnings_once():
                first = next(iterate(start.model, blocks, prior=prior, engine=engine))
        elif start.iterations < many and not start.converged:
            return start

        def evaluate(model: Any) -> FitStep:
            return next(iterate(model, blocks, prior=first.prior, engine=engine))

        with warnings_once():
            last, converged = AcceleratedEM(evaluate).run(first)
        reason = "parameters converged" if converged else f"{PASSES} iterations made, or rounding error dominates"
        trace = start.trace if first.model is start.model else [first.objective]
        return FitReport(last.model, last.stats, last.prior, converged, reason, [*trace, last.objective])

    def _from_subsample(self, blocks: Blocks, prior: Any, engine: Engine | None) -> Self:
        """For many rows: a start fitted to one block of each part, so that few iterations over all rows remain."""
        if len(blocks.parts) < MANY_PARTS:
            return self
        subsample = Blocks([[next(iter(part))] for part in blocks.parts])
        if not all(block.weight is None or block.weight.any() for block in subsample):
            return self
        with warnings_discarded():
            found = self.estimated_from(Blocks([list(subsample)]), prior, engine)
        return found.model if found.converged else self

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, kind: ScaleKind = "full") -> Self:
        """Method of moments from mean, covariance and kurtosis of complete rows: E q² = d(d + 2)(ν − 2)/(ν − 4).

        q is the squared Mahalanobis distance. Fourth moments need ν > 4: heavier tails need `fit`.

        Parameters
        ----------
        kind : {"full", "diagonal", "spherical", "independent"}, default "full"
            Kind of scale.
        """
        z = rows(x, None, "StudentT")
        if z.shape[1] == 1:  # rows without any observed entry are left out
            present = ~np.isnan(z[:, 0])
            w = None if weight is None else np.asarray(weights(weight, len(present), "StudentT"))[present]
            z, weight = z[present], w
        if np.isnan(z).any():
            raise DataError(sentence("StudentT", "moments need complete rows", "rows with missing values", "use fit"))
        check_option(kind, ScaleKind, "StudentT", "kind")
        shape: CovarianceKind = "diagonal" if kind == "independent" else kind
        g = Gaussian.moments_fit(z, weight, kind=shape)
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
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, kind: ScaleKind = "full") -> Self:
        """No unbiased estimate is known: raises.

        Parameters
        ----------
        kind : {"full", "diagonal", "spherical", "independent"}, default "full"
            Kind of scale.
        """
        raise DomainError(sentence("StudentT", "no unbiased estimate is known", remedy="use fit"))

    # --------------------------------------------------------------- E-step

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> ScaleSums:
        """E-step: moments of rows (n, d) weighted by their expected latent precision r under this model.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) is the member of each row (−1: none). Missing entries
        are replaced by their conditional expectation, and their conditional covariance is added.
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
            raise ShapeError(sentence("StudentT", f"weight must have one column per member ({self.members})", w.shape))
        return self._sums(z, np.ones(n) if w is None else w)

    def _by_label(self, z: Array, w: Array | None, labels: Index) -> ScaleSums:
        if self.members is None:
            raise DomainError(sentence("StudentT", "labels are for a stack", "one distribution"))
        labels = checked_labels(labels, len(z), self.members, "StudentT")
        out = []
        for k, (zk, wk, _) in enumerate(rows_per_member(z, w, labels, self.members)):
            one = self.member(k)
            fill_cache(one._shape, origin=self._shape.origin)
            out.append(one._sums(zk.copy(), np.ones(len(zk)) if wk is None else wk))
        return scale_statistics.stacked(out)

    def _sums(self, z: Array, w: Array) -> ScaleSums:
        """Expected statistics of validated rows under weights (n,), or (n, K) for a stack."""
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
        r, dev = self._precisions_of_rows(z, o, w)
        complete = mask.all()
        terms = (o[:, None] if w.ndim == 2 else o) * (r - 1 - dev)
        level = 0.5 * (w * np.where(w > 0, terms, 0.0)).sum(0)
        sums = _sums_of(w, r, dev)
        if self.kind != "full":
            found: Any = moments.columns_of_rows(z, w * r, self._shape.origin)
        elif complete:
            found = self._complete(z, w * r)
        else:
            found, extra = self._incomplete(z, mask, w, r)
            level = level + extra
        return ScaleSums.trusted(**counts, **sums, level=np.asarray(level), moments=found)

    def _precisions_of_rows(self, z: Array, o: Array, w: Array) -> tuple[Array, Array]:
        """Expected latent precision r, and r − 1 − log r, per row in the shape of the weights."""
        form, v = self._shape.form, np.atleast_1d(self.dof)
        q = form.complete(z, 1.0, np.zeros(len(form.mean)))
        incomplete = np.flatnonzero(o < self.dim)
        if len(incomplete):
            q[incomplete] = form.incomplete(z[incomplete])[0]
        q = np.clip(q, 0.0, FARTHEST)
        if w.ndim == 1:
            return _expected_precision(q[:, 0], o, v[0])
        return _expected_precision(q, o[:, None], v)

    def _complete(self, z: Array, wr: Array) -> Moments:
        """Moments of complete rows under weights w r."""
        origin = self._shape.origin
        found = moments.of_rows(z, wr, origin) if wr.ndim == 1 else moments.of_complete_rows(z, wr, origin)
        if found is None:
            raise moments.overflow()
        return found

    def _incomplete(self, z: Array, mask: Any, w: Array, r: Array) -> tuple[Moments, Array]:
        """Moments of rows with missing entries, and ½ Σ w log det of the conditional scale of these entries."""
        complete = mask.all(axis=1)
        at = np.flatnonzero(~complete & mask.any(axis=1))
        found = self._complete(z[complete], (w * r)[complete])
        if not len(at):
            return found, np.zeros(np.shape(found.weight))
        if w.ndim == 1:
            more, extra = self._filled(0, z[at], w[at], r[at])
            return (found + more).replace(complete=True, seen=None), np.asarray(extra)
        per_member = [self._filled(k, z[at], w[at, k], r[at, k]) for k in range(w.shape[1])]
        both = found + moments.stacked([m for m, _ in per_member])
        return both.replace(complete=True, seen=None), np.array([extra for _, extra in per_member])

    def _filled(self, k: int, z: Array, w: Array, r: Array) -> tuple[Moments, float]:
        """Moments of rows under member k with missing entries filled, and ½ Σ w log det of their conditional scale."""
        from likely.distributions.gaussian._loops.missing_values import fill

        origin, precisions = self._shape.origin, self._shape._precisions
        patterns = Patterns.of(observed(z))
        filled = z[patterns.order] - origin
        own = np.ascontiguousarray(w[patterns.order])
        mean = np.ascontiguousarray(self._shape.form.mean[k] - origin)
        precision = precisions[min(k, len(precisions) - 1)]
        covariance, log_det, _ = fill(filled, own, patterns.seen, patterns.starts, mean, precision)
        found = moments.of_rows(filled, own * r[patterns.order], np.zeros(self.dim))
        if found is None:
            raise moments.overflow()
        return found.replace(origin=origin, scatter=found.scatter + covariance), -0.5 * log_det

    def _by_columns(self, z: Array, mask: Any, w: Array, counts: dict[str, Array]) -> ScaleSums:
        """Expected statistics of independent columns: one latent precision r per entry."""
        out = []
        lead: Any = [w] if w.ndim == 1 else list(w.T)
        distributions = zip(*(np.atleast_2d(a) for a in (self.center, self.scale, self.dof)), lead, strict=True)
        for m, s, v, own in distributions:
            with np.errstate(over="ignore", invalid="ignore"):
                q = np.clip(np.where(mask, (z - m) ** 2 / s, 0.0), 0.0, FARTHEST)
            r, dev = _expected_precision(q, 1.0, v)
            entry_weight = np.where(mask, own[:, None], 0.0)
            found = scale_statistics.entry_moments(z, entry_weight * r, self._shape.origin)
            logs = (entry_weight * (r - 1 - dev)).sum(axis=0)
            out.append({"moments": found, "level": 0.5 * logs, **_sums_of(entry_weight, r, dev)})
        many = [
            ScaleSums.trusted(
                **{name: np.array(np.atleast_2d(part)[k]) for name, part in counts.items()}, **sums
            )
            for k, sums in enumerate(out)
        ]  # fmt: skip
        return scale_statistics.stacked(many) if w.ndim == 2 else many[0]

    # --------------------------------------------------------------- M-step

    def refit(self, stats: ScaleSums, prior: AnyPrior | None = None) -> Self:
        """M-step: parameters that increase the likelihood, or with a prior the posterior density.

        Degrees of freedom stay within 0.1 … 10⁶, where a t distribution is practically a Gaussian. A singular scale is
        regularized just enough to be a density, and a warning says where and why.
        """
        self.statistics_in_kind(stats)
        warn_of_missing_values("StudentT", stats.entries, stats.total_weight, prior)
        if prior is not None:
            return self._with_prior(stats, prior)
        if not stats.total_weight > 0:
            raise DataError(sentence("StudentT", "at least one row with weight is needed", "none", "or give a prior"))
        n, U = self._cells(stats)
        has_entries = stats.entries > 0
        center = np.where(has_entries, stats.moments.mean, self.center)
        scale = self._regularized(best_scales(self, stats, n, U), stats)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.where(n > 0, stats.surplus / n, 0.0)
            need = stats.excess - n * (s - np.log1p(s))  # the best γ is U/n
        dof = self.dof if self.fixed_dof else best_dof(self._by_observed(stats), need, self.dof)
        return self.replace(center=center, scale=scale, dof=np.array(dof))

    def _with_prior(self, stats: ScaleSums, prior: Any) -> Self:
        """Coordinate ascent over center and scale, degrees of freedom, and γ; each step is an exact maximum."""
        n, _ = self._cells(stats)
        shape = getattr(prior, "shape", prior)
        gamma, found = np.ones_like(n), self
        for _ in range(ROUNDS):
            point = prior_mode(shape, stats, gamma, self.kind)
            found = found.replace(center=point.mean, scale=self._shaped(point))
            if not self.fixed_dof:
                need = stats.excess + n * deviance(np.ones_like(gamma), 1 / gamma) + stats.surplus * (1 / gamma - 1)
                found = found.replace(dof=best_dof(self._by_observed(stats), need, found.dof, prior))
            before, gamma = gamma, np.where(n > 0, found._gamma(stats)[0], 1.0)
            if np.abs(gamma / before - 1).max() < 1e-13:
                break
        return found

    def _shaped(self, point: Gaussian) -> Array:
        """The covariance of a Gaussian in the kind of this distribution."""
        if self.kind == "full":
            return np.array(point.covariance_matrix)
        return np.array(point.covariance if self.kind == "spherical" else point.variance)

    def objective(self, stats: ScaleSums, prior: AnyPrior | None = None) -> float:
        """Lower bound of the log-likelihood (+ log prior), with equality at the model of the E-step."""
        self.statistics_in_kind(stats)
        log_gamma = self._gamma(stats)[1]
        value = bound(self, stats, log_gamma, self._cells(stats)[0])
        if prior is None:
            return value
        known = hasattr(prior, "shape") and hasattr(prior, "log_dof")
        density = prior.log_density(self) if known else prior.log_density(self._shape)
        return value + float(np.sum(density))

    def weak_prior(self, stats: ScaleSums) -> Any:
        """Weakly informative prior: a few pseudo-observations, and a gamma prior of the degrees of freedom."""
        from likely.distributions.priors.student_t_prior import StudentTPrior

        return StudentTPrior.weak(self, stats)

    def statistics_in_kind(self, stats: Stats) -> None:
        if self.tied:
            expected, remedy = "refit needs one scale per member", "replace the shared scale by a stack"
            raise DomainError(sentence("StudentT", expected, "one for all", remedy))
        full = isinstance(getattr(stats, "moments", None), Moments)
        if not isinstance(stats, ScaleSums) or full != (self.kind == "full"):
            raise ShapeError(
                sentence("StudentT", f"statistics of a {self.kind} t distribution are needed", type(stats).__name__)
            )
        if stats.entries.shape != self.center.shape or stats.excess.shape != self.dof.shape:
            expected = f"statistics must be of shape {self.center.shape}"
            raise ShapeError(sentence("StudentT", expected, stats.entries.shape))

    def _cells(self, stats: ScaleSums) -> tuple[Array, Array]:
        """Weight of the rows, Σ w and Σ w r: (...), or (..., d) for independent columns."""
        if self.kind == "independent":
            return stats.entries, stats.moments.weight
        return stats.rows, stats.pulled

    def _by_observed(self, stats: ScaleSums) -> Array:
        """Weight of rows with 1 … d observed entries (..., d); for independent columns (..., d, 1)."""
        return stats.entries[..., None] if self.kind == "independent" else stats.seen[..., 1:]

    def _gamma(self, stats: ScaleSums) -> tuple[Array, Array]:
        """Maximizing γ for this model, (ν U + Q)/(ν n + D), and its logarithm; 1 where there are no rows."""
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
        """Q = Σ w r q of the rows, from their moments."""
        found, delta = stats.moments, stats.moments.mean - self.center
        if isinstance(found, Moments):
            roots = self._shape.form.roots
            if roots is None:
                expected = "objective needs a scale that is not singular"
                raise DomainError(sentence("StudentT", expected, "a singular one", "refit gives one"))
            inverse = spd.inverse_factor(roots)
            inverse = inverse[0] if self.members is None else inverse
            distance = (np.einsum("...ij,...j->...i", inverse, delta) ** 2).sum(-1)
            return np.asarray(spd.trace_form(inverse, found.scatter) + found.weight * distance)
        per_column = (found.scatter + found.weight * delta**2) / self._shape.variance
        return np.asarray(per_column if self.kind == "independent" else per_column.sum(axis=-1))

    def _regularized(self, scale: Array, stats: ScaleSums) -> Array:
        """Scales with variances raised to their floors and singular matrices repaired, with a warning for each."""
        kind = "diagonal" if self.kind == "independent" else self.kind
        floor = column_floor(stats.moments.pooled())
        stack = np.array(scale if self.members else scale[None])
        notes: dict[Note, list[int]] = {}
        for k in range(len(stack)):
            for note in raise_to_floor(stack, k, floor, kind):
                notes.setdefault(note, []).append(k)
        for note, members in notes.items():
            text = note.text.replace("covariance", "scale")
            warn(replace(note, whose="StudentT", text=text, members=tuple(members) if self.members else ()))
        return stack if self.members else stack[0]

    def joined_stats(self, parts: list[ScaleSums]) -> ScaleSums:
        """Statistics of several stacks as those of one."""
        return scale_statistics.side_by_side(parts)


def _expected_precision(q: Array, o: Any, v: Any) -> tuple[Array, Array]:
    """Expected latent precision r = (ν + o)/(ν + q), and r − 1 − log r ≥ 0, accurate also where r is near 1."""
    r = (v + o) / (v + q)
    return r, deviance(np.ones_like(r), r, -((o - q) / (v + q)))


def _sums_of(w: Array, r: Array, dev: Array) -> dict[str, Array]:
    """Σ w (r − 1), split by sign, and Σ w (r − 1 − log r)."""
    over = w * (r - 1)
    parts = {"near": np.maximum(over, 0.0), "far": np.maximum(-over, 0.0), "excess": w * dev}
    return {name: np.asarray(part.sum(axis=0)) for name, part in parts.items()}


def _median_and_mad(z: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Median and squared normalized MAD per column; mean and variance where the MAD is 0."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that is all NaN has no median
        center = np.nanmedian(z, axis=0) if len(z) else mean
        mad = np.nanmedian(np.abs(z - center), axis=0) if len(z) else np.zeros(len(mean))
    squared = (1.4826 * np.nan_to_num(mad)) ** 2
    use = (squared > 1e-12 * variance) & np.isfinite(squared)
    return np.where(use, center, mean), np.where(use, squared, variance)


__all__ = ["LARGEST_DOF", "LEAST_DOF", "StudentTEM"]

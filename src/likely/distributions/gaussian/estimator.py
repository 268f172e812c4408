"""Estimator of a Gaussian density: covariance structure, prior or shrinkage, posterior predictive."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.blocks import Block, Blocks
from likely.core.engine import Threads
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PriorLike
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.shrinkage import ShrunkCovariances, pooled_covariance
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.neighbors.distinct_rows import DistinctRows

Shrunk = Literal["shrunk-pooled", "shrunk-diagonal"]
SHRUNK = get_args(Shrunk)
GaussianCovariance = Literal[CovarianceKind, "pooled", Shrunk]
Pooling = Literal["observation", "class"]
Predictive = Literal["mean", "all"]
EXACT, APPROXIMATE, GIVEN = "leave-one-out", "approximate leave-one-out, from statistics", "given"


class GaussianDensity(DensityEstimator):
    """Gaussian density estimation.

    `model_` is a `StudentT` where parameters are integrated out.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical", "pooled", "shrunk-pooled", "shrunk-diagonal"}, default "full"
        "full" (QDA), "diagonal", "spherical"; "pooled" (LDA): one covariance for all members of a stack (the classes of
        a `BayesClassifier`; for a single density it equals "full"); "shrunk-pooled": each class covariance is shrunk
        toward the pooled one; "shrunk-diagonal": toward its own diagonal.
    prior : {"weak"}, Prior or None, default "weak"
        "weak" keeps the covariance regular and leaves well-determined estimates as they are
        (`NormalInverseWishart.weak`); None is maximum likelihood; or a `Prior`.
    pooling : {"observation", "class"}, default "observation"
        How covariances are pooled: weighted by "observation" (rows), or equally by "class".
    shrinkage : {"leave-one-out"} or float, default "leave-one-out"
        Shrinkage weight of "shrunk-pooled" and "shrunk-diagonal", 0 … 1, or "leave-one-out": chosen per class to
        maximize the leave-one-out log-likelihood; equal rows are left out together. `fit` finds this weight in a second
        pass over the rows. It is exact for a given prior or none; with the weak prior its own dependence on the
        left-out row is neglected in part (its mean and its shrinkage of correlations; at most 0.02 nats in total in 100
        sets). Where the rows are not available (`partial_fit`), have missing entries or belong to latent components,
        the weight is an approximation from the sufficient statistics, best for Gaussian rows. 0 and 1 give what the
        same prior gives for "full" and for "pooled" (or the diagonal of "full").
    predictive : {"mean", "all"}, optional
        None uses point estimates (plug-in); "mean" integrates the mean out: a Gaussian with a larger covariance where
        rows are few; "all" integrates the covariance out too: a Student-t distribution. Needs a prior. With missing
        entries, "mean" uses the number of observed entries per column, and "all" needs a diagonal or spherical
        covariance.
    noise : float or array-like, optional
        Known covariance of an additive measurement error at prediction that training did not have: a number, (d,) or
        (d, d).
    max_iter : int, default 100
        Largest number of EM iterations for missing values (NaN) with a full covariance.
    tol : float, default 1e-6
        EM ends when the objective rises by less, in nats per sample.

    Attributes
    ----------
    model_ : Gaussian or StudentT
        The fitted density.
    shrinkage_ : ndarray (K,)
        Shrinkage weights, one per class.
    shrinkage_method_ : str
        How these weights were found.

    See Also
    --------
    Gaussian : The distribution.
    StudentTDensity : Robust against outliers.
    MixtureDensity : Several components.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 1.4, 3.4, 3.5 and 3.8.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal([1.0, 5.0], [1.0, 2.0], (1000, 2))
    >>> d = lk.GaussianDensity().fit(X)
    >>> d.mean_.round(1), round(d.score(X), 1)
    (array([1. , 4.9]), -3.5)
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "covariance": [StrOptions(set(get_args(GaussianCovariance)))], "prior": PRIOR,
        "pooling": [StrOptions(set(get_args(Pooling)))],
        "shrinkage": [StrOptions({"leave-one-out"}), Interval(Real, 0, 1, closed="both")],
        "predictive": [StrOptions(set(get_args(Predictive))), None],
        "noise": ["array-like", Interval(Real, 0, None, closed="left"), None], **EM,
    }  # fmt: skip

    def __init__(
        self, covariance: GaussianCovariance = "full", *, prior: PriorLike = "weak", pooling: Pooling = "observation",
        shrinkage: Literal["leave-one-out"] | float = "leave-one-out", predictive: Predictive | None = None,
        noise: ArrayLike | None = None, max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.covariance = covariance
        self.prior = prior
        self.pooling = pooling
        self.shrinkage = shrinkage
        self.predictive = predictive
        self.noise = noise
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Gaussian,)
    saved_attributes = (*DensityEstimator.saved_attributes, "shrinkage_", "shrinkage_method_")

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Gaussian:
        kind: CovarianceKind = self.covariance if self.covariance in ("diagonal", "spherical") else "full"
        tied = members is not None and self.covariance == "pooled" and self.pooling == "observation"
        return Gaussian.blank(X[:4096], kind=kind, members=members, tied=tied)

    # ------------------------------------- from the estimate to the model that scores

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Block | None = None, choose: bool = True) -> Any:
        if choose:
            self._choose_shrinkage(model, stats, prior, rows)
        self._refuse_contradictions()
        if self.covariance in SHRUNK:
            model = self._blended(model, stats, prior)
        elif self.covariance == "pooled" and model.members and not model.tied:
            shared = pooled_covariance(model.covariance, stats.weight, "class")
            model = Gaussian.trusted(mean=model.mean, covariance=shared, kind="full")
        if self.predictive is not None:
            model = self._integrated(model, stats, prior)
        return model if self.noise is None else _noisy(model, self.noise)

    def _refuse_contradictions(self) -> None:
        if self.predictive == "all" and (self.covariance in SHRUNK or self.noise is not None):
            what = "noise" if self.noise is not None else f"covariance={self.covariance!r}"
            expected, remedy = f'predictive="all" has no closed form with {what}', 'use predictive="mean"'
            raise DomainError(sentence("GaussianDensity", expected, remedy=remedy))

    def _choose_shrinkage(self, model: Any, stats: Any, prior: Any, rows: Block | None) -> None:
        """Choose the shrinkage weight per class: from the rows if available, else from the sufficient statistics."""
        if self.covariance not in SHRUNK or (self.covariance == "shrunk-pooled" and model.members is None):
            for name in ("shrinkage_", "shrinkage_method_"):
                self.__dict__.pop(name, None)
            return
        shrunk = self._ends(stats, prior)
        if self.shrinkage != "leave-one-out":
            self.shrinkage_, self.shrinkage_method_ = np.where(shrunk.weight > 1, float(self.shrinkage), 1.0), GIVEN
        elif rows is None or not stats.complete:
            self.shrinkage_, self.shrinkage_method_ = shrunk.by_statistics(), APPROXIMATE
        else:
            complete = ~np.isnan(rows.x).any(axis=1)  # rows without any observed entry are left out
            parts = (rows.x, rows.weight, rows.labels)
            x, weight, labels = parts if complete.all() else (None if a is None else a[complete] for a in parts)
            whole = Blocks.of(x, weight, labels=labels)
            distinct = Threads().total(lambda b: DistinctRows.of(b.x, b.weight, b.labels, model.members), whole.whole())
            edges = np.array([0, len(distinct)]) if distinct.edges is None else distinct.edges
            self.shrinkage_, self.shrinkage_method_ = shrunk.by_rows(distinct.rows, distinct.weight, edges), EXACT

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        shares: Any = self.__dict__.get("shrinkage_")
        by = self.__dict__.get("shrinkage_method_")
        sound = by in (EXACT, APPROXIMATE, GIVEN) and np.shape(shares) == (members or 1,)
        return super().accepts_model(model, width, members) and (sound or (shares is None and by is None))

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """A shrinkage weight that is chosen by leave-one-out needs a second pass over the rows."""
        return Traits(second_pass=self.covariance in SHRUNK and self.shrinkage == "leave-one-out")

    def _ends(self, stats: Any, prior: Any) -> ShrunkCovariances:
        """Class covariances and shrinkage targets."""
        stats = _as_stack(stats) if stats.shift.ndim == 1 else stats
        pooling = "none" if self.covariance == "shrunk-diagonal" else self.pooling
        return ShrunkCovariances.of(stats, prior, pooling, self.prior == "weak")

    def _blended(self, model: Gaussian, stats: Any, prior: Any) -> Gaussian:
        """The model with class covariances shrunk toward the pooled covariance or their own diagonal."""
        single = model.members is None
        if single and self.covariance == "shrunk-pooled":
            return model  # there is no pooled covariance to shrink to
        shrunk = self._ends(stats, prior)
        covariance = shrunk.at(np.where(shrunk.weight > 0, self.shrinkage_, 1.0))
        base = Gaussian.trusted(mean=np.atleast_2d(model.mean), covariance=covariance, kind="full")
        regular = base._regularized(covariance, _as_stack(stats) if single else stats)
        return Gaussian.trusted(mean=model.mean, covariance=np.array(regular[0] if single else regular), kind="full")

    def _integrated(self, model: Gaussian, stats: Any, prior: Any) -> Any:
        """Posterior predictive distribution: the mean, or mean and covariance, integrated out."""
        if stats.filled:
            return self._integrated_mean(model, stats, prior)
        if prior is None or self.predictive == "all" or hasattr(prior, "belief"):  # the last has a known covariance
            suited = None if prior is None else model.prior_in_kind(prior)
            return predictive(model, model.statistics_in_kind(stats), suited, "GaussianDensity")
        factor = 1.0 + 1.0 / np.asarray(prior.update(model.statistics_in_kind(stats)).kappa)
        if model.kind == "full":
            covariance = model.covariance_matrix * factor[..., None, None]
            return Gaussian.trusted(mean=model.mean, covariance=covariance, kind="full")
        factor = factor if factor.ndim == model.mean.ndim else factor[..., None]
        return Gaussian.trusted(mean=model.mean, covariance=model.variance * factor, kind="diagonal")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not (self.predictive == "all" and self.covariance == "full")  # to learn from
        return tags

    def _integrated_mean(self, model: Gaussian, stats: Any, prior: Any) -> Gaussian:
        """Mean integrated out with missing entries: Σ + GΣG, G = diag(κ + nⱼ)^-½, where nⱼ rows have column j observed.

        Without missing entries that is (1 + 1/(κ + n)) Σ. Correlated columns, too, carry information about the mean of
        a column whose entry is missing, so that its variance is at most σⱼⱼ/(κ + nⱼ): the predictive covariance is
        slightly too large, never too small.
        """
        if self.predictive == "all" or hasattr(prior, "belief"):
            expected = "integrating parameters of a full covariance out in closed form needs complete rows"
            remedy = 'use predictive="mean" with prior="weak", or covariance="diagonal", or leave such rows out'
            raise DomainError(sentence("GaussianDensity", expected, "missing entries (NaN)", remedy))
        if prior is None:
            return predictive(model, stats, prior, "GaussianDensity")  # raises: a prior is needed
        counts = np.asarray(prior.kappa)[..., None] + stats.observed
        root = 1.0 / np.sqrt(counts)
        covariance = model.covariance_matrix * (1.0 + root[..., :, None] * root[..., None, :])
        return Gaussian.trusted(mean=model.mean, covariance=covariance, kind="full")

    @property
    def mean_(self) -> Array:
        """Estimated mean (d,)."""
        return self.learned_model_.mean

    @property
    def covariance_(self) -> Array:
        """Covariance of `model_`: (d, d), (d,) or a number, by kind."""
        return self.model_.covariance


def _as_stack(stats: Any) -> Any:
    """Moments of one distribution as those of a stack with one member."""
    names = ("weight", "shift", "scatter", "entropy")
    return stats.replace(**{name: getattr(stats, name)[None] for name in names}, seen=None)


def _noisy(model: Any, noise: Any) -> Gaussian:
    """The distribution of rows with independent additive measurement error of known covariance."""
    try:
        error = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError) as bad:
        raise DomainError(sentence("GaussianDensity", "noise must be numbers", type(noise).__name__)) from bad
    d = model.dim
    if error.shape not in ((), (d,), (d, d)):
        raise ShapeError(sentence("GaussianDensity", f"noise must be a number, ({d},) or ({d}, {d})", error.shape))
    return model.noisy(error)

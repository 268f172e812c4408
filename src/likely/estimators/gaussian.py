"""A Gaussian learnt from rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likely.errors import DomainError, ShapeError, sentence
from likely.estimators.shell import EM, PRIOR, DensityEstimator, predictive
from likely.families.blends import blended, pooled_covariance, shares_by_leaving_one_out
from likely.families.floors import column_floor
from likely.families.gaussian import Gaussian

BLENDS = ("interpolated", "emphasised")


class GaussianDensity(DensityEstimator):
    """Learn a Gaussian: `model_` is a `Gaussian` (a `StudentT` if parameters are integrated out).

    - **covariance**: "full", "diagonal", "spherical"; "pooled": one covariance for all members of the stack in
      which the density stands (the classes of a `BayesClassifier`; alone it equals "full"); "interpolated": each
      class's own moved towards the pooled one; "emphasised": towards its own diagonal (Ney 3.5).
    - **prior**: "weak" keeps the covariance regular and leaves well-determined estimates as they are
      (`NormalInverseWishart.weak`); None is maximum likelihood; or a `Prior`.
    - **pooling**: what the pooled covariance is: the mean over "observation"s, or over "class"es.
    - **blend**: how far the last two move, 0 … 1, or "leave-one-out": chosen class by class so that rows are best
      explained by the others of their class. It takes the place of the weak prior.
    - **predictive**: None plugs estimates in; "mean" integrates the mean out, a Gaussian that is wider where rows
      were few; "all" the covariance too, a t law (Worksheet 6, Ney 3.8). Needs a prior. With missing entries, "mean"
      counts for each column the rows that show it, and "all" needs a diagonal or spherical covariance.
    - **noise**: known covariance of an observation error at prediction that training did not have: a number, (d,) or
      (d, d).
    - **max_iter, tol**: of the EM iteration that gaps (NaN) make necessary for a full covariance.

    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal([1.0, 5.0], [1.0, 2.0], (1000, 2))
    >>> d = lk.GaussianDensity().fit(X)
    >>> d.mean_.round(1), round(d.score(X), 1)
    (array([1. , 4.9]), -3.5)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "covariance": [StrOptions({"full", "diagonal", "spherical", "pooled", *BLENDS})], "prior": PRIOR,
        "pooling": [StrOptions({"observation", "class"})],
        "blend": [StrOptions({"leave-one-out"}), Interval(Real, 0, 1, closed="both")],
        "predictive": [StrOptions({"mean", "all"}), None],
        "noise": ["array-like", Interval(Real, 0, None, closed="left"), None], **EM,
    }  # fmt: skip

    def __init__(
        self, covariance: str = "full", *, prior: Any = "weak", pooling: str = "observation",
        blend: Any = "leave-one-out", predictive: str | None = None, noise: Any = None,
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.covariance = covariance
        self.prior = prior
        self.pooling = pooling
        self.blend = blend
        self.predictive = predictive
        self.noise = noise
        self.max_iter = max_iter
        self.tol = tol

    _model_types = (Gaussian,)
    # settings that older files lack
    _added: ClassVar[dict[str, Any]] = {
        "pooling": "observation", "blend": "leave-one-out", "predictive": None, "noise": None,
    }  # fmt: skip

    def _blank(self, X: Any, members: int | None = None) -> Gaussian:
        kind = self.covariance if self.covariance in ("diagonal", "spherical") else "full"
        tied = members is not None and self.covariance == "pooled" and self.pooling == "observation"
        return Gaussian.blank(X[:4096], kind=kind, members=members, tied=tied)

    # ------------------------------------------------- from learnt to scoring

    def _finish(self, model: Any, stats: Any, prior: Any) -> Any:
        self._refuse_contradictions()
        if self.covariance in BLENDS:
            model = self._blended(model, stats)
        elif self.covariance == "pooled" and model.members and not model.tied:
            shared = pooled_covariance(model.covariance, stats.weight, "class")
            model = Gaussian.trusted(mean=model.mean, covariance=shared, kind="full")
        if self.predictive is not None:
            model = self._integrated(model, stats, prior)
        return model if self.noise is None else _noisy(model, self.noise)

    def _refuse_contradictions(self) -> None:
        if self.predictive == "all" and (self.covariance in BLENDS or self.noise is not None):
            what = "noise" if self.noise is not None else f"covariance={self.covariance!r}"
            expected, remedy = f'predictive="all" has no closed form with {what}', 'use predictive="mean"'
            raise DomainError(sentence("GaussianDensity", expected, remedy=remedy))

    def _blended(self, model: Gaussian, stats: Any) -> Gaussian:
        """Each class's own covariance, moved towards the pooled one or towards its diagonal."""
        alone = model.members is None
        if alone and self.covariance == "interpolated":
            return model  # there is nothing else to lean on
        stats = _as_stack(stats) if alone else stats
        own = stats.scatter / np.maximum(stats.weight, 1e-300)[:, None, None]
        target, kept = self._target(own, stats)
        if self.blend == "leave-one-out":
            share = shares_by_leaving_one_out(stats, target, kept)
        else:
            share = np.where(stats.weight > 1, float(self.blend), 1.0)
        self.shares_ = share
        covariance = blended(own, target, share)
        base = Gaussian.trusted(mean=np.atleast_2d(model.mean), covariance=covariance, kind="full")
        lifted = base._regular(covariance, stats)
        lifted = np.where((stats.weight > 0)[:, None, None], lifted, target)
        return Gaussian.trusted(mean=model.mean, covariance=np.array(lifted[0] if alone else lifted), kind="full")

    def _target(self, own: Any, stats: Any) -> tuple[Any, Any]:
        """What covariances move towards (K, d, d), and how much of a row the target holds (K,)."""
        floor = column_floor(stats.pooled())[0]
        n, eye = stats.weight, np.eye(own.shape[-1])
        if self.covariance == "emphasised":
            diagonal = np.maximum(np.diagonal(own, axis1=1, axis2=2), floor)
            pooled = np.maximum(np.diagonal(pooled_covariance(own, n, "observation")), floor)
            diagonal = np.where((n > 1)[:, None], diagonal, pooled)  # one row has no spread of its own
            return diagonal[:, None, :] * eye, np.full(len(n), -1.0)
        one = pooled_covariance(own, n, self.pooling)
        one[np.diag_indices(len(one))] = np.maximum(np.diagonal(one), floor)
        one = _regular(one)
        kept = n / n.sum() if self.pooling == "observation" else np.full(len(n), 1.0 / max((n > 0).sum(), 1))
        return np.broadcast_to(one, own.shape), kept

    def _integrated(self, model: Gaussian, stats: Any, prior: Any) -> Any:
        """The law of the next row: the mean, or mean and covariance, integrated out."""
        if stats.filled:
            return self._integrated_mean(model, stats, prior)
        if prior is None or self.predictive == "all" or hasattr(prior, "belief"):  # the last knows its covariance
            suited = None if prior is None else model._suited_prior(prior)
            return predictive(model, model._suited(stats), suited, "GaussianDensity")
        grown = 1.0 + 1.0 / np.asarray(prior.update(model._suited(stats)).kappa)
        if model.kind == "full":
            covariance = model.covariance_matrix * grown[..., None, None]
            return Gaussian.trusted(mean=model.mean, covariance=covariance, kind="full")
        grown = grown if grown.ndim == model.mean.ndim else grown[..., None]
        return Gaussian.trusted(mean=model.mean, covariance=model.variance * grown, kind="diagonal")

    def _integrated_mean(self, model: Gaussian, stats: Any, prior: Any) -> Gaussian:
        """The same from rows with gaps: Σ + GΣG, G = diag(κ + nⱼ)^-½, where nⱼ rows show column j.

        With no gaps that is (1 + 1/(κ + n)) Σ. Entries of other columns, too, tell of a mean whose own entry is
        missing, so that its variance is σⱼⱼ/(κ + nⱼ) at most: the law is a little too wide, never too narrow.
        """
        if self.predictive == "all" or hasattr(prior, "belief"):
            expected = "integrating parameters of a full covariance out in closed form needs complete rows"
            remedy = 'use predictive="mean" with prior="weak", or covariance="diagonal", or leave such rows out'
            raise DomainError(sentence("GaussianDensity", expected, "missing entries", remedy))
        if prior is None:
            return predictive(model, stats, prior, "GaussianDensity")  # says what is missing
        seen = np.asarray(prior.kappa)[..., None] + stats.observed
        root = 1.0 / np.sqrt(seen)
        covariance = model.covariance_matrix * (1.0 + root[..., :, None] * root[..., None, :])
        return Gaussian.trusted(mean=model.mean, covariance=covariance, kind="full")

    @property
    def mean_(self) -> Any:
        """The learnt mean (d,)."""
        return self._learnt.mean

    @property
    def covariance_(self) -> Any:
        """The covariance that scores: (d, d), (d,) or a number, by kind."""
        return self.model_.covariance


def _as_stack(stats: Any) -> Any:
    """One law's moments as a stack of one."""
    names = ("weight", "shift", "scatter", "entropy")
    return stats.replace(**{name: getattr(stats, name)[None] for name in names}, seen=None)


def _regular(covariance: Any) -> Any:
    """A pooled covariance that can be a target: correlations shrink until it is positive definite."""
    from likely.maths import spd

    for share in (0.0, 1e-9, 1e-6, 1e-3, 1e-1, 1.0):
        candidate = (1 - share) * covariance
        candidate[np.diag_indices(len(candidate))] = np.diagonal(covariance)
        if spd.cholesky(np.ascontiguousarray(candidate[None])) is not None:
            break
    return candidate


def _noisy(model: Any, noise: Any) -> Gaussian:
    """The law of a row that is observed with an independent error of known covariance."""
    try:
        error = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError) as bad:
        raise DomainError(sentence("GaussianDensity", "noise must be numbers", type(noise).__name__)) from bad
    d = model.dim
    if error.shape not in ((), (d,), (d, d)):
        raise ShapeError(sentence("GaussianDensity", f"noise must be a number, ({d},) or ({d}, {d})", error.shape))
    return model.noisy(error)

"""The protocols of models: Density, ConditionalDensity, Learnable, Prior, Classifier."""

from __future__ import annotations

from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, PerMember, Rows, Targets
from likely.core.docstrings import complete
from likely.core.stats import Stats

PointRule = Literal["mode", "mean", "median"]  # of the distribution of parameters: where a point estimate is
AnyPrior: TypeAlias = "Prior[Any, Any]"
AnyDensity: TypeAlias = "Density[Any]"
PriorLike: TypeAlias = 'Literal["weak"] | AnyPrior | None'  # of estimators: None is maximum likelihood

X = TypeVar("X")
S = TypeVar("S", bound=Stats)
T = TypeVar("T", contravariant=True)  # statistics
D = TypeVar("D")


@complete
@runtime_checkable
class Prior(Protocol[T, D]):
    """Protocol of conjugate priors of a family of distributions; a posterior is a prior again.

    See Also
    --------
    Beta : A prior of probabilities.
    NormalInverseWishart : A prior of mean and covariance.

    Examples
    --------
    >>> import likely as lk
    >>> isinstance(lk.Beta(1.0, 1.0), lk.Prior), isinstance(lk.Gaussian([0.0], 1.0), lk.Prior)
    (True, False)
    """

    def update(self, stats: T, /) -> Self:
        """The posterior given sufficient statistics, of the same type: `update(a + b)` equals `update(a).update(b)`."""
        ...

    def point(self, rule: PointRule = "mode", /) -> D:
        """Point estimate: the model at the "mode", "mean" or "median" of the parameters."""
        ...

    def draw(self, rng: Generator, /) -> D:
        """A model with parameters sampled from this distribution."""
        ...

    def predictive(self) -> Any:
        """The posterior predictive density of one new observation (parameters integrated out)."""
        ...

    def log_evidence(self, stats: T, /) -> PerMember:
        """Log marginal likelihood log p(data) of the statistics (parameters integrated out)."""
        ...

    def log_density(self, model: D, /) -> PerMember:
        """Log-density of the model's parameters under this distribution."""
        ...


@complete
@runtime_checkable
class Density(Protocol[X]):
    """Protocol of probability distributions: log-density and sampling.

    See Also
    --------
    Learnable : Densities that can be fitted.
    ConditionalDensity : Densities of a target given regressors.

    Examples
    --------
    >>> import likely as lk
    >>> isinstance(lk.Gaussian([0.0], 1.0), lk.Density)
    True
    """

    def log_prob(self, x: X, /) -> Array:
        """Log-density log p(x) of each row: (n,), or (n, K) for a stack of K distributions."""
        ...

    def sample(self, n: int, rng: Generator, /) -> X:
        """Draw n independent samples; a stack gives (n, K, …)."""
        ...


@complete
@runtime_checkable
class Learnable(Density[X], Protocol[X, S]):
    """Protocol of densities with additive sufficient statistics: `collect` (E-step), `+`, `refit` (M-step).

    See Also
    --------
    Density : Log-density and sampling only.
    fit : Fits any of them.

    References
    ----------
    Dempster, Laird and Rubin (1977); Neal and Hinton (1998).

    Examples
    --------
    >>> import likely as lk
    >>> model = lk.Poisson(1.0)
    >>> isinstance(model, lk.Learnable), model.refit(model.collect([[1], [2]]) + model.collect([[6]])).rate
    (True, array([3.]))
    """

    def collect(self, x: X, weight: Array | None = None) -> S:
        """Sufficient statistics of weighted rows; latent variables contribute their expectation under this model."""
        ...

    def refit(self, stats: S, prior: Prior[S, Any] | None = None) -> Self:
        """The model that maximizes the likelihood (or the posterior, with a prior) given the statistics."""
        ...

    def objective(self, stats: S, prior: Prior[S, Any] | None = None) -> float:
        """What `refit` maximizes, at this model: expected log-likelihood + entropy of latent variables + log prior.

        For statistics collected by this model it is the log-likelihood of the data (plus the
        log prior), with latent variables too (Neal and Hinton's free-energy bound is tight there).
        """
        ...

    def weak_prior(self, stats: S) -> Prior[S, Any]:
        """The prior that `prior="weak"` selects, scaled by the given statistics."""
        ...


@complete
@runtime_checkable
class ConditionalDensity(Protocol[S]):
    """Protocol of densities p(y | x) of a target given regressors, with additive sufficient statistics.

    `likely.linear_model.Conditional` makes one a density of rows (y, x), which mixtures and HMMs take as a component
    or an emission.

    See Also
    --------
    Density : Densities of rows.
    Conditional : A conditional density as a density of rows.

    Examples
    --------
    >>> import likely as lk
    >>> isinstance(lk.linear_model.GaussianRegression([1.0], 1.0), lk.ConditionalDensity)
    True
    """

    def given(self, x: Rows, /) -> Any:
        """The densities of y at the rows of x: a stack with one member per row."""
        ...

    def log_prob(self, y: Targets, x: Rows, /) -> Array:
        """Log-density log p(y | x) of each row: (n,), or (n, K) for a stack of K conditional densities."""
        ...

    def sample(self, x: Rows, rng: Generator, /) -> Array:
        """One sample of y for each row of x.

        Returns
        -------
        ndarray (n, m)
            Samples; (n, K, m) for a stack of K members.
        """
        ...

    def collect(
        self, y: Targets, x: Rows, weight: ArrayLike | None = None, *, labels: ArrayLike | None = None,
        log_mask: ArrayLike | None = None,
    ) -> S:  # fmt: skip
        """Sufficient statistics of weighted rows."""
        ...

    def refit(self, stats: S, prior: AnyPrior | None = None) -> Self:
        """The conditional density that maximizes the likelihood (or the posterior) given the statistics."""
        ...

    def objective(self, stats: S, prior: AnyPrior | None = None) -> float:
        """What `refit` maximizes, at this conditional density."""
        ...

    def weak_prior(self, stats: S) -> Any:
        """The prior that `prior="weak"` selects, scaled by the given statistics."""
        ...


@complete
@runtime_checkable
class Classifier(Protocol):
    """Protocol of probabilistic classifiers.

    Decisions, the reject option, combination and evaluation need log-posteriors only.

    See Also
    --------
    decide : Decisions of least expected cost.
    BayesClassifier : A classifier with a density per class.

    Examples
    --------
    >>> import likely as lk
    >>> isinstance(lk.BayesClassifier(), lk.Classifier)
    True
    """

    def log_posterior(self, x: Rows, /) -> Array:
        """Log posterior probabilities log p(c | x) for each row (n, C); the exponentials of each row sum to 1."""
        ...

"""Base class of all distributions: fitting, expectations, and errors for quantities without a closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.description import counted, vector_words
from likely.core.em_loop import StoppingRule, fit
from likely.core.engine import Engine
from likely.core.errors import DomainError, sentence
from likely.core.fit_report import FitReport
from likely.core.value import Value
from likely.core.warnings import warn, warnings_once
from likely.distributions.support import expectation
from likely.distributions.unobserved_columns import warn_of_unobserved_columns
from likely.numerics.special import LOG_2


class Estimate(NamedTuple):
    """An estimate and its standard error; the error is 0 where the value is exact."""

    value: Any
    error: Any

    def __float__(self) -> float:
        return float(self.value)


class NotKnown(DomainError, AttributeError):
    """A quantity of a distribution has no closed form; `hasattr` is False for it."""


REMEDIES = {  # what to do where a distribution has no closed form of its own
    "mean": "average samples, see expect", "variance": "average samples, see expect",
    "covariance": "average samples, see expect",
    "mode": "maximize log_prob, as lk.inference.laplace_approximation does",
    "median": "estimate it from samples: sample(n, rng)", "cdf": "estimate it from samples: sample(n, rng)",
    "quantile": "estimate it from samples: sample(n, rng)", "entropy": "use lk.entropy(distribution)",
    "kl": "use lk.kl_divergence(p, q)",
}  # fmt: skip


class Distribution(Value):
    """Base class of parametric distributions: an immutable value; a leading axis makes it a stack of K members."""

    @property
    def log_smoothing(self) -> float:
        """Log prior density, up to a constant, of the smoothing in `refit` without a prior: 0 if there is none."""
        return 0.0

    objective_name: ClassVar[str] = "log-likelihood"  # what `objective` is without a prior

    @property
    def hyperparameters(self) -> dict[str, str]:
        """Settings that were chosen, not estimated, by name: the kernel of a kernel density; none of most."""
        return {}

    def in_words(self) -> str:
        """The kind of distribution.

        >>> import likely as lk
        >>> lk.Gaussian([0.0], 1.0).in_words()
        'a spherical Gaussian of 1 column'
        """
        kind = getattr(self, "kind", "")
        name = f"{kind} {type(self).__name__}" if isinstance(kind, str) and kind else type(self).__name__
        return f"a {name} of {counted(self.dim, 'column')}" if hasattr(self, "dim") else f"a {name}"

    def location_words(self, names: list[str] | None = None) -> str:
        """Its probabilities, rates or mean in a few words, with the names of columns; "" where it has none."""
        middle = getattr(self, "probs", getattr(self, "mean", None))
        return "" if middle is None else vector_words(middle, names)

    def member_facts(self, k: int) -> dict[str, str]:
        """What distinguishes a member of a stack, by name, in a few words; nothing of most distributions."""
        return {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise `NotKnown` with a remedy for common quantities that this distribution does not have."""
            if name in REMEDIES:
                expected = f"this distribution has no {name} in closed form"
                raise NotKnown(sentence(type(self).__name__, expected, remedy=REMEDIES[name]))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def member(self, k: int) -> Any:
        """One member of a stack: entry k of each field that is declared with the axis of a stack."""
        return self.replace(**{name: part[k].copy() for name, part in declared.stacked(self).items()})

    def take(self, index: Any) -> Self:
        """Members `index` as a stack."""
        return self.replace(**{name: part[index] for name, part in declared.stacked(self).items()})

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: entries of all arrays of numbers."""
        parts = self.field_values().values()
        return sum(part.size for part in parts if isinstance(part, np.ndarray) and part.dtype.kind == "f")

    def weak_prior(self, stats: Any) -> Any:
        """Weakly informative prior: a tenth of a pseudo-observation with the pooled statistics."""
        from likely.distributions.priors.pseudo_data import PseudoData

        return PseudoData.weak(self, stats)

    @classmethod
    def blank(cls, x: ArrayLike, *args: Any, **options: Any) -> Self:
        """Initial model for rows like these, from which learning starts."""
        raise DomainError(
            sentence(cls.__name__, "this distribution cannot be fitted", remedy="construct it from its parameters")
        )

    @classmethod
    def fit(
        cls, x: Any, weight: Any = None, *, prior: Any = None, engine: Engine | None = None,
        stop: StoppingRule | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Maximum-likelihood estimate for weighted rows (with a prior, the posterior mode).

        Columns that were never observed give a warning, rows without any observed entry an error, unless there is a
        prior.
        """
        blocks = Blocks.of(x, weight)
        with warnings_once():
            warn_of_unobserved_columns(blocks, cls.__name__, prior, cls._rest_tells)
            report = cls._begun(first_look(blocks), options).estimated_from(blocks, prior, engine, stop)
            if not report.converged:
                warn(f"{cls.__name__}: not converged: {report.reason}")
        return report.model

    @classmethod
    def _begun(cls, x: Any, options: dict[str, Any]) -> Self:
        """Initial model; unknown options raise an error in the name of `fit`."""
        try:
            return cls.blank(x, **options)
        except TypeError as error:
            wrong = [name for name in options if f"'{name}'" in str(error)]
            if not wrong or "unexpected keyword" not in str(error):
                raise
            raise no_option(cls.__name__, wrong[0]) from error

    def estimated_from(
        self, blocks: Blocks, prior: Any, engine: Engine | None = None, stop: StoppingRule | None = None,
        usual: StoppingRule = StoppingRule(500, 1e-8),
    ) -> FitReport:  # fmt: skip
        """Report of the fit from this model; without `stop`, a distribution may use a faster algorithm."""
        return fit(self, blocks, prior=prior, engine=engine, stop=stop or usual)

    def _mode(self, prior: Any, stats: Any) -> Any:
        """Posterior mode; where it needs a search (pseudo-data priors), the search starts at this distribution."""
        found = prior.update(stats)
        return (
            found.replace(distribution=self) if type(getattr(found, "distribution", None)) is type(self) else found
        ).point("mode")

    of_sequences: ClassVar[bool] = False  # True where a row is a sequence of time steps
    _rest_tells: ClassVar[bool] = False  # missing entries follow from the rest of the row, as in compositions
    # the mean determines the distribution: maximum likelihood is then also the moment and the unbiased estimate
    _mean_is_all: ClassVar[bool] = False

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Method of moments: the distribution with the moments of weighted rows."""
        if cls._mean_is_all:
            return cls.fit(x, weight)
        raise DomainError(sentence(cls.__name__, "moments do not determine this distribution", remedy="use fit"))

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Unbiased estimate of the parameters; a weight of k counts as k copies."""
        if cls._mean_is_all:
            return cls.fit(x, weight)
        raise DomainError(sentence(cls.__name__, "no unbiased estimate is known", remedy="use fit"))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval of this probability, of a univariate distribution; per member.

        >>> import likely as lk
        >>> low, high = lk.Gaussian([[0.0], [5.0]], 1.0).interval(0.9)
        >>> low.round(3), high.round(3)
        (array([-1.645,  3.355]), array([1.645, 6.645]))
        """
        if not 0 < level < 1:
            raise DomainError(sentence(type(self).__name__, "level must lie between 0 and 1", level))
        low, high = self.quantile(np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level]))  # type: ignore[attr-defined]
        return np.asarray(low), np.asarray(high)

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """Expectation E[g(x)] with its error: a sum for counts, quadrature for one real column, else Monte Carlo.

        g takes rows (m, d), or (m, K, d) of a stack, and gives (m, ...). The error is a bound for quadrature, and the
        standard error for n samples. An integral that does not converge raises, as does one whose error exceeds 1e-3
        of E|g(x)|. Discontinuities of g cost no accuracy; behavior of g on a set of probability below 1e-5 may be
        missed.

        >>> import likely as lk
        >>> value, error = lk.Gaussian([0.0], 1.0).expect(lambda x: x[..., 0] ** 2)
        >>> bool(abs(value - 1.0) <= error < 1e-9)
        True
        """
        found = self._integrated(g)
        if found is not None:
            return found
        values = np.asarray(g(self.sample(n, rng or np.random.default_rng(0))), dtype=np.float64)  # type: ignore[attr-defined]
        return Estimate(values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(n))

    def _integrated(self, g: Callable[[Any], Array]) -> Estimate | None:
        """E[g(x)] by quadrature, per member; None unless rows have one real column."""
        if getattr(self, "dim", None) != 1:
            return None
        members: int | None = getattr(self, "members", None)
        if members is None:
            found = expectation(self, g)
            return None if found is None else Estimate(*found)

        def of(k: int) -> Callable[[Array], Array]:
            return lambda x: np.asarray(g(np.repeat(x[:, None], members, axis=1)))[:, k]

        found_per_member = [expectation(self.member(k), of(k)) for k in range(members)]
        if any(one is None for one in found_per_member):
            return None
        return Estimate(*(np.stack([one[i] for one in found_per_member if one is not None]) for i in (0, 1)))


def no_option(whose: str, name: str) -> DomainError:
    """The error for an unknown option of `fit`; weights have other names in other libraries."""
    remedy = "weights of rows are called weight=" if "weight" in name else ""
    return DomainError(sentence(f"{whose}.fit", f"there is no option {name}=", remedy=remedy))


def first_look(blocks: Blocks) -> Any:
    """The first block with rows of positive weight, without its rows of weight 0."""
    first = blocks.first
    if first.weight is None or (first.weight > 0).all():
        return first.x
    for block in blocks:
        if block.weight is None or (block.weight > 0).any():
            return block.x if block.weight is None else block.x[np.flatnonzero(block.weight > 0)]
    return first.x


def added(logs: Array) -> Array:
    """Sum of log-densities of independent columns over the last axis: −inf wherever one is −inf, even with +inf.

    >>> added(np.array([[1.0, 2.0], [np.inf, 1.0], [np.inf, -np.inf]])).tolist()
    [3.0, inf, -inf]
    """
    with np.errstate(invalid="ignore"):
        total = np.asarray(logs.sum(axis=-1))
    undefined = np.isnan(total)
    return np.where(undefined & np.isneginf(logs).any(axis=-1), -np.inf, total) if undefined.any() else total


def in_units(nats: Any, bits: bool) -> Any:
    """Information in nats, or in bits if `bits`."""
    return nats / LOG_2 if bits else nats


def lone(a: Any) -> Any:
    """A 0-d result as a plain float; stacks stay arrays."""
    return float(a) if np.ndim(a) == 0 else a

"""What every distribution can do because it can score, sample and learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.engine import Engine
from likely.core.errors import DomainError, sentence
from likely.core.fit_loop import Stop, fit
from likely.core.fit_report import FitReport
from likely.core.value import Value
from likely.core.warnings import said_once, tell
from likely.distributions.support import expectation
from likely.distributions.unobserved_columns import tell_unseen
from likely.numerics.special import LOG_2


class Estimate(NamedTuple):
    """A number and its standard error; the error is 0 where the number is exact."""

    value: Any
    error: Any

    def __float__(self) -> float:
        return float(self.value)


class NotKnown(DomainError, AttributeError):
    """A distribution is asked for what nobody has a formula for; `hasattr` says False."""


REMEDIES = {  # what to do where a distribution has no answer of its own
    "mean": "average draws, see expect", "variance": "average draws, see expect",
    "covariance": "average draws, see expect", "mode": "climb log_prob, as lk.laplace_approximation does",
    "median": "take it of draws: sample(n, rng)", "cdf": "count draws: sample(n, rng)",
    "quantile": "take it of draws: sample(n, rng)", "entropy": "use lk.entropy(distribution)", "kl": "use lk.kl(p, q)",
}  # fmt: skip


class Distribution(Value):
    """A frozen density with parameters; a leading axis makes it a stack of K members."""

    @property
    def log_smoothing(self) -> float:
        """Log prior density, up to a constant, of the smoothing that `refit` does even without a prior: 0 if none."""
        return 0.0

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What a distribution is often asked and cannot say is refused in words."""
            if name in REMEDIES:
                expected = f"no {name} is known of this distribution"
                raise NotKnown(sentence(type(self).__name__, expected, remedy=REMEDIES[name]))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def blank(cls, x: Any, *args: Any, **options: Any) -> Self:
        """A first model for rows like these: it only has to look at them."""
        raise DomainError(
            sentence(cls.__name__, "this distribution has no estimator of its own", remedy="build it as a value")
        )

    @classmethod
    def fit(
        cls, x: Any, weight: Any = None, *, prior: Any = None, engine: Engine | None = None,
        stop: Stop | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """The maximum-likelihood value for weighted rows (or the posterior mode, with a prior).

        A column that was never observed is told of, and rows in which nothing was are refused, unless a prior knows.
        """
        blocks = Blocks.of(x, weight)
        with said_once():
            tell_unseen(blocks, cls.__name__, prior, cls._rest_tells)
            report = cls._begun(first_look(blocks), options)._learned_from(blocks, prior, engine, stop)
            if not report.converged:
                tell(f"{cls.__name__}: not converged: {report.reason}")
        return report.model

    @classmethod
    def _begun(cls, x: Any, options: dict[str, Any]) -> Self:
        """A first model; options that nobody knows are refused in the name of `fit`."""
        try:
            return cls.blank(x, **options)
        except TypeError as error:
            wrong = [name for name in options if f"'{name}'" in str(error)]
            if not wrong or "unexpected keyword" not in str(error):
                raise
            raise no_option(cls.__name__, wrong[0]) from error

    def _learned_from(
        self, blocks: Blocks, prior: Any, engine: Engine | None = None, stop: Stop | None = None,
        usual: Stop = Stop(500, 1e-8),
    ) -> FitReport:  # fmt: skip
        """Report of the fit from here; without a `stop`, a distribution may take a faster way to the same result."""
        return fit(self, blocks, prior=prior, engine=engine, stop=stop or usual)

    def _mode(self, prior: Any, stats: Any) -> Any:
        """The posterior mode; a search for it that earlier data make necessary begins here."""
        found = prior.update(stats)
        return (
            found.replace(distribution=self) if type(getattr(found, "distribution", None)) is type(self) else found
        ).point("mode")

    of_sequences: ClassVar[bool] = False  # True where a row is a sequence of frames
    _rest_tells: ClassVar[bool] = False  # what is missing in a row follows from the rest: a column of gaps is learned
    _mean_is_all: ClassVar[bool] = (
        False  # the mean gives the distribution, so its best estimate is unbiased and by moments too
    )

    @classmethod
    def moments_fit(cls, x: Any, weight: Any = None) -> Self:
        """The distribution that has the moments of weighted rows."""
        if cls._mean_is_all:
            return cls.fit(x, weight)
        raise DomainError(sentence(cls.__name__, "moments do not give this distribution", remedy="use fit"))

    @classmethod
    def unbiased_fit(cls, x: Any, weight: Any = None) -> Self:
        """The distribution whose parameters are right on average; a weight of k is k copies."""
        if cls._mean_is_all:
            return cls.fit(x, weight)
        raise DomainError(sentence(cls.__name__, "there is no unbiased estimate that is known", remedy="use fit"))

    def expect(self, g: Callable[[Any], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)] with its error: a sum for counts, an integral for one real number, otherwise the average of n draws.

        g takes rows (m, d), or (m, K, d) of a stack, and gives (m, ...). The error is a bound for an integral, and the
        standard error for draws. An integral that does not converge is refused, as is one whose error exceeds 1e-3 of
        E|g(x)|. Jumps and kinks of g cost no accuracy; what g does where the distribution has less than 1e-5 of its
        weight may go unseen.

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
        """E[g(x)] by quadrature, member by member; None where rows are not one real number each."""
        if getattr(self, "dim", None) != 1:
            return None
        members: int | None = getattr(self, "members", None)
        if members is None:
            found = expectation(self, g)
            return None if found is None else Estimate(*found)

        def of(k: int) -> Callable[[Array], Array]:
            return lambda x: np.asarray(g(np.repeat(x[:, None], members, axis=1)))[:, k]

        each = [expectation(self.member(k), of(k)) for k in range(members)]  # type: ignore[attr-defined]
        if any(one is None for one in each):
            return None
        return Estimate(*(np.stack([one[i] for one in each if one is not None]) for i in (0, 1)))


def no_option(whose: str, name: str) -> DomainError:
    """The refusal of an option that `fit` does not have; weights have other names elsewhere."""
    remedy = "weights of rows are called weight=" if "weight" in name else ""
    return DomainError(sentence(f"{whose}.fit", f"there is no option {name}=", remedy=remedy))


def first_look(blocks: Blocks) -> Any:
    """The first rows that count, a block of them: a row without weight is a row that is not there."""
    first = blocks.first
    if first.weight is None or (first.weight > 0).all():
        return first.x
    for block in blocks:
        if block.weight is None or (block.weight > 0).any():
            return block.x if block.weight is None else block.x[np.flatnonzero(block.weight > 0)]
    return first.x


def added(logs: Array) -> Array:
    """Log-densities of independent columns, added over the last axis: −inf wherever one is, also beside a pole (+inf).

    >>> added(np.array([[1.0, 2.0], [np.inf, 1.0], [np.inf, -np.inf]])).tolist()
    [3.0, inf, -inf]
    """
    with np.errstate(invalid="ignore"):
        total = np.asarray(logs.sum(axis=-1))
    lost = np.isnan(total)
    return np.where(lost & np.isneginf(logs).any(axis=-1), -np.inf, total) if lost.any() else total


def in_units(nats: Any, bits: bool) -> Any:
    """Information in nats, or in bits if asked."""
    return nats / LOG_2 if bits else nats


def lone(a: Any) -> Any:
    """A 0-d result as a plain float; stacks stay arrays."""
    return float(a) if np.ndim(a) == 0 else a

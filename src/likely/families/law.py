"""What every law can do because it can score, sample and learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.engine import Engine
from likely.core.learn import Stop, fit
from likely.core.notes import tell
from likely.core.report import FitReport
from likely.core.value import Value
from likely.errors import DomainError, sentence
from likely.maths.special import LOG_2


class Estimate(NamedTuple):
    """A number and its standard error; the error is 0 where the number is exact."""

    value: Any
    error: Any

    def __float__(self) -> float:
        return float(self.value)


class Law(Value):
    """A frozen density with parameters; a leading axis makes it a stack of K members."""

    @classmethod
    def blank(cls, x: Any, *args: Any, **options: Any) -> Self:
        """A first model for rows like these: it only has to look at them."""
        raise DomainError(sentence(cls.__name__, "this law has no estimator of its own", remedy="build it as a value"))

    @classmethod
    def fit(
        cls, x: Any, weight: Any = None, *, prior: Any = None, engine: Engine | None = None,
        stop: Stop | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """The maximum-likelihood value for weighted rows (or the posterior mode, with a prior)."""
        blocks = Blocks.of(x, weight)
        report = cls.blank(first_look(blocks), **options)._learnt_from(blocks, prior, engine, stop)
        if not report.converged:
            tell(f"{cls.__name__}: not converged: {report.reason}", stacklevel=2)
        return report.model

    def _learnt_from(
        self, blocks: Blocks, prior: Any, engine: Engine | None = None, stop: Stop | None = None,
        usual: Stop = Stop(500, 1e-8),
    ) -> FitReport:  # fmt: skip
        """How learning from here went; without a `stop`, a law that knows a shorter way to the same end takes it."""
        return fit(self, blocks, prior=prior, engine=engine, stop=stop or usual)

    _mean_is_all: ClassVar[bool] = False  # the mean gives the law, so its best estimate is unbiased and by moments too

    @classmethod
    def moments_fit(cls, x: Any, weight: Any = None) -> Self:
        """The law that has the moments of weighted rows."""
        if cls._mean_is_all:
            return cls.fit(x, weight)
        raise DomainError(sentence(cls.__name__, "moments do not give this law", remedy="use fit"))

    @classmethod
    def unbiased_fit(cls, x: Any, weight: Any = None) -> Self:
        """The law whose parameters are right on average; a weight of k is k copies."""
        if cls._mean_is_all:
            return cls.fit(x, weight)
        raise DomainError(sentence(cls.__name__, "there is no unbiased estimate that is known", remedy="use fit"))

    def expect(self, g: Callable[[Any], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)] with its standard error, by n draws (laws that can sum or integrate exactly do so).

        >>> import likely as lk
        >>> value, error = lk.Gaussian([0.0], 1.0).expect(lambda x: x[..., 0] ** 2)
        >>> bool(abs(value - 1.0) < 5 * error)
        True
        """
        values = np.asarray(g(self.sample(n, rng or np.random.default_rng(0))), dtype=np.float64)  # type: ignore[attr-defined]
        return Estimate(values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(n))


def first_look(blocks: Blocks) -> Any:
    """The first rows that count, a block of them: a row without weight is a row that is not there."""
    first = blocks.first
    if first.weight is None or (first.weight > 0).all():
        return first.x
    for block in blocks:
        if block.weight is None or (block.weight > 0).any():
            return block.x if block.weight is None else block.x[np.flatnonzero(block.weight > 0)]
    return first.x


def in_units(nats: Any, bits: bool) -> Any:
    """Information in nats, or in bits if asked."""
    return nats / LOG_2 if bits else nats


def lone(a: Any) -> Any:
    """A 0-d result as a plain float; stacks stay arrays."""
    return float(a) if np.ndim(a) == 0 else a

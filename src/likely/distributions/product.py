"""Product of independent distributions of different kinds, such as a real vector, a count and a category."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, BadEntry, Index, PerMember, Rows, n_rows
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.columns import Columns
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.core.warnings import warnings_once
from likely.distributions.distribution import Distribution, added, in_units


@dataclass(frozen=True, eq=False)
class Product(Distribution):
    """Product distribution of named, independent parts.

    log p(x) = Σ log p_i(x_i): naive Bayes per class. Rows are `Columns` (or a dict) with the parts' names; an array is
    split into consecutive columns, as many per part as it has. Stacks of K members in every part make a stack.

    Parameters
    ----------
    components : dict or sequence of pairs
        Distribution of each part by name.

    See Also
    --------
    ProductDensity : The estimator.
    ProductPrior : Priors of the parts.

    References
    ----------
    Ney, lecture notes, 1.5 and 2.6.1.

    Examples
    --------
    >>> import likely as lk
    >>> p = Product({"size": lk.Gaussian([0.0, 1.0], 1.0), "visits": lk.Poisson(3.0)})
    >>> p.log_prob(lk.core.Columns(size=[[0.0, 1.0]], visits=[2])).round(4)
    array([-3.3338])
    """

    components: Annotated[tuple[tuple[str, Any], ...], declared.pairs(declared.distribution)]

    def __post_init__(self) -> None:
        given = self.components
        pairs = tuple((str(n), p) for n, p in (given.items() if isinstance(given, Mapping) else given))
        if not pairs or len({n for n, _ in pairs}) < len(pairs):
            raise DomainError(sentence("Product", "parts must be named, each name once", [n for n, _ in pairs]))
        for name, part in pairs:
            if not (hasattr(part, "log_prob") and hasattr(part, "sample")):
                raise DomainError(sentence("Product", f"part {name!r} must be a density", type(part).__name__))
        counts = {name: part.members for name, part in pairs}
        if len(set(counts.values())) > 1:
            expected = "all parts must be single distributions, or stacks of the same size"
            raise ShapeError(sentence("Product", expected, counts))
        self._set(components=pairs)

    @property
    def names(self) -> list[str]:
        """The parts' names, in order."""
        return [name for name, _ in self.components]

    def __getitem__(self, name: str) -> Any:
        """The part of that name."""
        return dict(self.components)[name]

    def in_words(self) -> str:
        """The kinds of its parts."""
        return f"independent parts: {'; '.join(f'{name}: {part.in_words()}' for name, part in self.components[:6])}"

    def location_words(self, names: list[str] | None = None) -> str:
        """The locations of the first parts."""
        return "; ".join(f"{name}: {part.location_words()}" for name, part in self.components[:4])

    @property
    def members(self) -> int | None:
        """Number of members of a stack; None for one value."""
        return self.components[0][1].members

    def member(self, k: int) -> Product:
        """One member of a stack."""
        return self._each(lambda _, part: part.member(k))

    def take(self, index: ArrayLike) -> Product:
        """Members `index` as a stack."""
        return self._each(lambda _, part: part.take(index))

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the covariances of the parts that have one."""
        found = [getattr(part, "smallest_eigenvalue", None) for _, part in self.components]
        return min((least for least in found if least is not None), default=None)

    @property
    def dim(self) -> int:
        """Number of columns that all parts take together."""
        return sum(_width(part) for _, part in self.components)

    def _each(self, f: Callable[[str, Any], Any]) -> Product:
        return Product.trusted(components=tuple((name, f(name, part)) for name, part in self.components))

    def as_columns(self, x: Rows) -> Columns:
        """Rows as named columns per part."""
        if isinstance(x, Mapping):
            columns = Columns.of(x)
            missing = [name for name in self.names if name not in columns]
            if missing:
                raise DataError(
                    sentence("Product", f"parts {', '.join(self.names)} are needed", f"no {', '.join(missing)}")
                )
            return columns
        a = np.asarray(x)
        if a.ndim != 2 or a.shape[1] != self.dim:
            expected = f"rows must be Columns with the parts {', '.join(self.names)}, or an array (n, {self.dim})"
            raise ShapeError(sentence("Product", expected, a.shape))
        edges = np.cumsum([0, *(_width(part) for _, part in self.components)])
        return Columns({name: a[:, i:j] for name, i, j in zip(self.names, edges[:-1], edges[1:], strict=True)})

    # ---------------------------------------------------------------- density

    def log_prob(self, x: Rows) -> Array:
        """Σ log p_i(x_i): (n,), or (n, K) for a stack. A missing part contributes 0."""

        def evaluate(block: Columns) -> Array:
            logs = [of_part(name, part.log_prob, block[name]) for name, part in self.components]
            with np.errstate(invalid="ignore"):
                total: Array = sum(logs)
            return added(np.stack(logs, axis=-1)) if np.isnan(total).any() else total

        return map_rows(evaluate, self.as_columns(x), self.members)

    def sample(self, n: int, rng: Generator) -> Columns:
        """Random samples as Columns."""
        return Columns({name: part.sample(n, rng) for name, part in self.components})

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy: the sum of the entropies of the parts."""
        return in_units(sum(part.entropy() for _, part in self.components), bits)

    def kl(self, other: Product, bits: bool = False) -> PerMember:
        """KL(self ‖ other): the sum of the divergences of the parts."""
        self._same_parts(other.names, "kl")
        return in_units(sum(part.kl(other[name]) for name, part in self.components), bits)

    @property
    def mean(self) -> dict[str, Any]:
        """Means per part."""
        return {name: part.mean for name, part in self.components}

    @property
    def variance(self) -> dict[str, Any]:
        """Variances per part."""
        return {name: part.variance for name, part in self.components}

    @property
    def mode(self) -> dict[str, Any]:
        """Modes per part, which together are the joint mode."""
        return {name: part.mode for name, part in self.components}

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all parts."""
        return sum(part.n_parameters for _, part in self.components)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Rows, distributions: Mapping[str, Any]) -> Product:
        """Initial model: `distributions` maps each name to a distribution class, or to (class, options)."""
        columns = Columns.of(x)
        pairs = {
            name: distribution if isinstance(distribution, tuple) else (distribution, {})
            for name, distribution in distributions.items()
        }
        return cls(
            tuple(
                (name, distribution.blank(columns[name], **options)) for name, (distribution, options) in pairs.items()
            )
        )

    def collect(self, x: Rows, weight: Any = None, labels: Index | None = None) -> ProductStats:
        """Sufficient statistics per part."""
        columns = self.as_columns(x)
        if n_rows(columns) > ROWS * BLOCKS:
            blocks = Blocks.of(columns, weight, labels=labels)
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), blocks)
        known = {} if labels is None else {"labels": labels}
        each = ((name, of_part(name, part.collect, columns[name], weight, **known)) for name, part in self.components)
        return ProductStats(tuple(each))

    def refit(self, stats: ProductStats, prior: AnyPrior | None = None) -> Product:
        """Refit of each part from its own statistics, with its own prior if there is one."""
        self._same_parts(stats.names, "refit")
        return self._each(lambda name, part: told_of_part(name, part.refit, stats[name], _of(prior, name)))

    def objective(self, stats: ProductStats, prior: AnyPrior | None = None) -> float:
        """Objective: the sum of the objectives of the parts."""
        return sum(part.objective(stats[name], _of(prior, name)) for name, part in self.components)

    @property
    def log_smoothing(self) -> float:
        """Log density of the smoothing of all parts."""
        return float(sum(getattr(part, "log_smoothing", 0.0) for _, part in self.components))

    def weak_prior(self, stats: ProductStats) -> Any:
        """The weak prior of each part."""
        from likely.distributions.priors.product_prior import ProductPrior

        return ProductPrior(
            tuple((name, told_of_part(name, part.weak_prior, stats[name])) for name, part in self.components)
        )

    def _same_parts(self, names: list[str], doing: str) -> None:
        if names != self.names:
            raise ShapeError(sentence(f"Product.{doing}", f"parts must be {', '.join(self.names)}", ", ".join(names)))


@dataclass(frozen=True, eq=False)
class ProductStats(Addable, Value):
    """Sufficient statistics per part; addition is per part."""

    components: Annotated[tuple[tuple[str, Any], ...], declared.pairs(declared.stats)]

    @property
    def names(self) -> list[str]:
        """The parts' names, in order."""
        return [name for name, _ in self.components]

    def __getitem__(self, name: str) -> Any:
        return dict(self.components)[name]

    @property
    def complete(self) -> bool:
        """True if the statistics of all parts are of complete rows."""
        return all(stats.complete for _, stats in self.components)

    @property
    def filled(self) -> bool:
        """True if a part filled missing entries by its model."""
        return any(getattr(stats, "filled", False) for _, stats in self.components)

    @property
    def total_weight(self) -> float:
        """Largest total weight of any part."""
        return max(float(stats.total_weight) for _, stats in self.components)

    def __add__(self, other: ProductStats) -> ProductStats:
        pairs = zip(self.components, other.components, strict=True)
        return ProductStats(tuple((name, a + b) for (name, a), (_, b) in pairs))

    def __mul__(self, factor: float) -> ProductStats:
        return ProductStats(tuple((name, stats * factor) for name, stats in self.components))

    __rmul__ = __mul__

    def pooled(self) -> ProductStats:
        """Statistics of the rows of all members together."""
        return ProductStats(tuple((name, stats.pooled()) for name, stats in self.components))

    def member(self, k: Any) -> ProductStats:
        """The statistics of one member of a stack."""
        return ProductStats(tuple((name, stats.member(k)) for name, stats in self.components))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.components)


def of_part(name: str, f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """f(...); an error about an entry names the part."""
    try:
        return f(*args, **options)
    except BadEntry as error:
        raise error.inside(f"part {name!r}") from None


def told_of_part(name: str, f: Callable[..., Any], *args: Any) -> Any:
    """f(*args); its warnings and errors name the part."""
    try:
        with warnings_once(lambda note: replace(note, parts=(name, *note.parts))):
            return f(*args)
    except (DataError, DomainError) as error:
        if type(error) not in (DataError, DomainError):
            raise
        raise type(error)(f"part {name!r}: {error}") from error


def _of(prior: Any, name: str) -> Any:
    return None if prior is None else prior[name]


def _width(part: Any) -> int:
    return int(getattr(part, "dim", 1))

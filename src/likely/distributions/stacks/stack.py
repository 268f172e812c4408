"""Stack of arbitrary distributions over the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, Rows, checked_labels, n_rows, weights
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import Distribution, in_units


@dataclass(frozen=True, eq=False)
class Stack(Distribution):
    """Stack of K densities over the same kind of rows: `log_prob` gives (n, K).

    Parameters
    ----------
    components : sequence of densities
        The members.

    See Also
    --------
    Tied : Members that share parameters.
    Mixture : A stack with weights.

    Examples
    --------
    >>> import likely as lk
    >>> s = Stack([lk.Gaussian([0.0], 1.0), lk.StudentT([0.0], [[1.0]], 3.0)])
    >>> s.log_prob([[0.0], [9.0]]).round(2)
    array([[ -0.92,  -1.  ],
           [-41.42,  -7.66]])
    """

    components: Annotated[tuple[Any, ...], declared.items(declared.density)]

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that members that score the same rows have the same number of columns."""
        widths = {part.dim for part in fields["components"]}
        return "" if len(widths) == 1 else f"all members must have one number of columns, not {sorted(widths)}"

    def __post_init__(self) -> None:
        parts = tuple(self.components)
        for k, part in enumerate(parts):
            if not hasattr(part, "log_prob") or getattr(part, "members", None) is not None:
                raise DomainError(sentence("Stack", f"member {k} must be one density", repr(part)[:60]))
        if not parts:
            raise DomainError(sentence("Stack", "at least one member is needed", "none"))
        widths = {getattr(part, "dim", None) for part in parts}
        if len(widths) > 1:
            expected = "all members must have the same number of columns"
            raise ShapeError(sentence("Stack", expected, sorted(map(str, widths))))
        self._set(components=parts)

    @property
    def of_sequences(self) -> bool:  # type: ignore[override]
        """True if a row is a sequence."""
        return bool(getattr(self.components[0], "of_sequences", False))

    @property
    def members(self) -> int:
        """Number of members K."""
        return len(self.components)

    @property
    def dim(self) -> int:
        """Number of columns of a row."""
        return int(self.components[0].dim)

    def member(self, k: int) -> Any:
        """One member."""
        return self.components[k]

    def take(self, index: Any) -> Stack:
        """Members `index` as a stack."""
        return Stack.trusted(components=tuple(self.components[int(k)] for k in index))

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the covariances of the members that have one."""
        found = [getattr(part, "smallest_eigenvalue", None) for part in self.components]
        return min((least for least in found if least is not None), default=None)

    def log_prob(self, x: Rows) -> Array:
        """Log-density per member (n, K)."""
        return np.stack([part.log_prob(x) for part in self.components], axis=1)

    def sample(self, n: int, rng: Generator) -> Any:
        """Random samples of each member, (n, K, …)."""
        return side_by_side([part.sample(n, rng) for part in self.components])

    def entropy(self, bits: bool = False) -> Array:
        """Entropy per member (K,)."""
        return np.array([in_units(part.entropy(), bits) for part in self.components])

    def kl(self, other: Stack, bits: bool = False) -> Array:
        """KL divergence per member (K,)."""
        pairs = zip(self.components, other.components, strict=True)
        return np.array([a.kl(b, bits=bits) for a, b in pairs])

    @property
    def mean(self) -> list[Any]:
        """Mean per member."""
        return [part.mean for part in self.components]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all members."""
        return sum(part.n_parameters for part in self.components)

    def collect(self, x: Rows, weight: ArrayLike | None = None, labels: Index | None = None) -> StackStats:
        """Statistics per member under its column of weights, or of the rows with its label."""
        n = n_rows(x)
        w = weights(weight, n, "Stack")
        if w is not None and w.ndim == 2 and w.shape[1] != self.members:
            raise ShapeError(sentence("Stack", f"weight must have one column per member ({self.members})", w.shape))
        if labels is not None:
            labels, x = checked_labels(labels, n, self.members, "Stack"), np.asarray(x) if isinstance(x, list) else x
        return StackStats(tuple(part.collect(*_share(x, w, labels, k)) for k, part in enumerate(self.components)))

    def refit(self, stats: StackStats, prior: AnyPrior | None = None) -> Stack:
        """Refit of each member from its own statistics; `prior` is one for all members, or one per member."""
        if prior is None and not stats.total_weight > 0:
            raise DataError(sentence("Stack", "at least one row with weight is needed", "none", "or give a prior"))
        priors = each(prior, self.members)
        refits = zip(self.components, stats.components, priors, strict=True)
        return Stack(tuple(refit_or_keep(part, s, p) for part, s, p in refits))

    def objective(self, stats: StackStats, prior: AnyPrior | None = None) -> float:
        """Sum of the objectives of all members."""
        terms = zip(self.components, stats.components, each(prior, self.members), strict=True)
        return sum(part.objective(s, p) for part, s, p in terms)

    @property
    def log_smoothing(self) -> float:
        """Log density of the smoothing of all members."""
        return float(sum(getattr(part, "log_smoothing", 0.0) for part in self.components))

    def weak_prior(self, stats: StackStats) -> tuple[Any, ...]:
        """Weakly informative prior per member, from the pooled statistics of all members of its kind."""
        kinds = [(type(part), getattr(part, "kind", None)) for part in self.components]
        together: dict[Any, Any] = {}
        for kind, s in zip(kinds, stats.components, strict=True):
            together[kind] = together[kind] + s if kind in together else s
        return tuple(part.weak_prior(together[kind]) for part, kind in zip(self.components, kinds, strict=True))


@dataclass(frozen=True, eq=False)
class StackStats(Addable, Value):
    """Statistics per member; addition is per member."""

    components: Annotated[tuple[Any, ...], declared.items(declared.stats)]

    @property
    def complete(self) -> bool:
        """True if the statistics of all members are of complete rows."""
        return all(s.complete for s in self.components)

    @property
    def filled(self) -> bool:
        """True if a member filled missing entries by its model."""
        return any(getattr(s, "filled", False) for s in self.components)

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return sum(float(s.total_weight) for s in self.components)

    def __add__(self, other: StackStats) -> StackStats:
        return StackStats(tuple(a + b for a, b in zip(self.components, other.components, strict=True)))

    def __mul__(self, factor: float) -> StackStats:
        return StackStats(tuple(s * factor for s in self.components))

    __rmul__ = __mul__

    def member(self, k: Any) -> Any:
        """Statistics of one member, or of several."""
        return self.components[k] if np.ndim(k) == 0 else StackStats(tuple(self.components[int(i)] for i in k))


def side_by_side(draws: list[Any]) -> Any:
    """Samples of K members, given as a list, as one array (n, K, …) or as Columns of such."""
    if isinstance(draws[0], Columns):
        return Columns({name: side_by_side([d[name] for d in draws]) for name in draws[0]})
    return np.stack(draws, axis=1)


def each(prior: Any, members: int) -> Iterable[Any]:
    """One prior per member: the same for all, or a tuple or list with one per member."""
    return prior if isinstance(prior, tuple | list) else (prior,) * members


def _share(x: Any, w: Array | None, labels: Index | None, k: int) -> tuple[Any, Array | None]:
    """Rows and weights of member k."""
    if labels is not None:
        at = np.flatnonzero(labels == k)
        return x[at], None if w is None else w[at]
    return x, None if w is None else w if w.ndim == 1 else w[:, k]


def refit_or_keep(part: Any, stats: Any, prior: Any) -> Any:
    """Refit of a member; one without rows and prior keeps its parameters."""
    return part if prior is None and not stats.total_weight > 0 else part.refit(stats, prior)

"""A stack of any members: whatever can score the same rows can stand side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, checked_labels, n_rows, weights
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import Distribution, in_units


@dataclass(frozen=True, eq=False)
class Stack(Distribution):
    """K densities of one kind of row, as a stack: log_prob (n, K).

    >>> import likely as lk
    >>> s = Stack([lk.Gaussian([0.0], 1.0), lk.StudentT([0.0], [[1.0]], 3.0)])
    >>> s.log_prob([[0.0], [9.0]]).round(2)
    array([[ -0.92,  -1.  ],
           [-41.42,  -7.66]])
    """

    components: tuple[Any, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.components)
        for k, part in enumerate(parts):
            if not hasattr(part, "log_prob") or getattr(part, "members", None) is not None:
                raise DomainError(sentence("Stack", f"member {k} must be one density", repr(part)[:60]))
        if not parts:
            raise DomainError(sentence("Stack", "at least one member is needed", "none"))
        widths = {getattr(part, "dim", None) for part in parts}
        if len(widths) > 1:
            raise ShapeError(sentence("Stack", "all members must take rows of one width", sorted(map(str, widths))))
        self._set(components=parts)

    @property
    def of_sequences(self) -> bool:  # type: ignore[override]
        """Whether a row is a sequence, as the parts have it."""
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

    def some(self, index: Any) -> Stack:
        """Some members, as a stack."""
        return Stack.trusted(components=tuple(self.components[int(k)] for k in index))

    @property
    def smallest_eigenvalue(self) -> float | None:
        """The least of the members that have one."""
        found = [getattr(part, "smallest_eigenvalue", None) for part in self.components]
        return min((least for least in found if least is not None), default=None)

    def log_prob(self, x: Any) -> Array:
        """Each member's log-density (n, K)."""
        return np.stack([part.log_prob(x) for part in self.components], axis=1)

    def sample(self, n: int, rng: Generator) -> Any:
        """n draws of each member, (n, K, …)."""
        return side_by_side([part.sample(n, rng) for part in self.components])

    def entropy(self, bits: bool = False) -> Array:
        """Each member's entropy (K,)."""
        return np.array([in_units(part.entropy(), bits) for part in self.components])

    def kl(self, other: Stack, bits: bool = False) -> Array:
        """Member by member (K,)."""
        pairs = zip(self.components, other.components, strict=True)
        return np.array([a.kl(b, bits=bits) for a, b in pairs])

    @property
    def mean(self) -> list[Any]:
        """Each member's mean."""
        return [part.mean for part in self.components]

    @property
    def n_parameters(self) -> int:
        """Free parameters of all members."""
        return sum(part.n_parameters for part in self.components)

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> StackStats:
        """Each member's statistics under its own column of weights, or of the rows that it owns."""
        n = n_rows(x)
        w = weights(weight, n, "Stack")
        if w is not None and w.ndim == 2 and w.shape[1] != self.members:
            raise ShapeError(sentence("Stack", f"weight must have a column per member ({self.members})", w.shape))
        if labels is not None:
            labels, x = checked_labels(labels, n, self.members, "Stack"), np.asarray(x) if isinstance(x, list) else x
        return StackStats(tuple(part.collect(*_share(x, w, labels, k)) for k, part in enumerate(self.components)))

    def refit(self, stats: StackStats, prior: Any = None) -> Stack:
        """Each member from its own statistics; `prior` is one for all, or one each."""
        if prior is None and not stats.total_weight > 0:
            raise DataError(sentence("Stack", "at least one row with weight is needed", "none", "or give a prior"))
        priors = each(prior, self.members)
        refits = zip(self.components, stats.components, priors, strict=True)
        return Stack(tuple(refit_or_keep(part, s, p) for part, s, p in refits))

    def objective(self, stats: StackStats, prior: Any = None) -> float:
        """Objectives of all members, added."""
        terms = zip(self.components, stats.components, each(prior, self.members), strict=True)
        return sum(part.objective(s, p) for part, s, p in terms)

    @property
    def log_smoothing(self) -> float:
        """That of the parts."""
        return float(sum(getattr(part, "log_smoothing", 0.0) for part in self.components))

    def weak_prior(self, stats: StackStats) -> tuple[Any, ...]:
        """Each member's weak prior, scaled by the statistics of all members of its kind together."""
        kinds = [(type(part), getattr(part, "kind", None)) for part in self.components]
        together: dict[Any, Any] = {}
        for kind, s in zip(kinds, stats.components, strict=True):
            together[kind] = together[kind] + s if kind in together else s
        return tuple(part.weak_prior(together[kind]) for part, kind in zip(self.components, kinds, strict=True))


@dataclass(frozen=True, eq=False)
class StackStats(Addable, Value):
    """The statistics of each member; they add member by member."""

    components: tuple[Any, ...]

    @property
    def complete(self) -> bool:
        """True if no member hid anything."""
        return all(s.complete for s in self.components)

    @property
    def filled(self) -> bool:
        """True if a member filled gaps in."""
        return any(getattr(s, "filled", False) for s in self.components)

    @property
    def total_weight(self) -> float:
        """Weight over all members."""
        return sum(float(s.total_weight) for s in self.components)

    def __add__(self, other: StackStats) -> StackStats:
        return StackStats(tuple(a + b for a, b in zip(self.components, other.components, strict=True)))

    def __mul__(self, factor: float) -> StackStats:
        return StackStats(tuple(s * factor for s in self.components))

    __rmul__ = __mul__

    def member(self, k: Any) -> Any:
        """One member's statistics, or those of some."""
        return self.components[k] if np.ndim(k) == 0 else StackStats(tuple(self.components[int(i)] for i in k))


def side_by_side(draws: list[Any]) -> Any:
    """Draws of K members, one list entry each, as one array (n, K, …) or as Columns of such."""
    if isinstance(draws[0], Columns):
        return Columns({name: side_by_side([d[name] for d in draws]) for name in draws[0]})
    return np.stack(draws, axis=1)


def each(prior: Any, members: int) -> Iterable[Any]:
    """One prior per member: the same for all, or a tuple or list with one each."""
    return prior if isinstance(prior, tuple | list) else (prior,) * members


def _share(x: Any, w: Array | None, labels: Index | None, k: int) -> tuple[Any, Array | None]:
    """The rows and weights that member k sees."""
    if labels is not None:
        mine = np.flatnonzero(labels == k)
        return x[mine], None if w is None else w[mine]
    return x, None if w is None else w if w.ndim == 1 else w[:, k]


def refit_or_keep(part: Any, stats: Any, prior: Any) -> Any:
    """A member that saw nothing, and has no prior, keeps what it had."""
    return part if prior is None and not stats.total_weight > 0 else part.refit(stats, prior)

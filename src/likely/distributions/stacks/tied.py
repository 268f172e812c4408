"""Parameter tying: members of a stack that share a whole density, or only a covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from likely.core import declared
from likely.core.arrays import Array, Index, Rows, check_option, checked_labels, n_rows, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Stats
from likely.distributions.distribution import Distribution
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.stack import side_by_side

TiedPart = Literal["all", "covariance"]


@dataclass(frozen=True, eq=False)
class Tied(Distribution):
    """Stack of K members with tied parameters, given by an index.

    Statistics are summed over members with the same index: tied mixtures, tied states.

    Parameters
    ----------
    components : stack
        For "all" the smaller stack, for "covariance" a Gaussian stack of K members.
    index : array-like of int (K,)
        Which members share.
    what : {"all", "covariance"}, default "all"
        "all": member k is part `index[k]` of the smaller stack. "covariance": members with the same index share one
        covariance, the pooled within-member covariance.

    See Also
    --------
    Stack : Members that share nothing.

    References
    ----------
    Ney, lecture notes, 3.4.

    Examples
    --------
    >>> import likely as lk
    >>> s = Tied(lk.Gaussian([[0.0], [5.0]], 1.0), [0, 1, 1])
    >>> s.log_prob([[5.0]]).round(3)
    array([[-13.419,  -0.919,  -0.919]])
    """

    components: Annotated[Any, declared.distribution]  # a stack
    index: Annotated[NDArray[np.intp], declared.numbers("K", dtype=np.int64)]  # (K,)
    what: TiedPart = "all"

    def __post_init__(self) -> None:
        index = np.array(self.index, dtype=np.intp)
        size = getattr(self.components, "members", None)
        if size is None:
            raise DomainError(sentence("Tied", "components must be a stack", repr(self.components)[:60]))
        check_option(self.what, TiedPart, "Tied", "what")
        if self.what == "covariance" and not (isinstance(self.components, Gaussian) and len(index) == size):
            expected = "a tied covariance needs a Gaussian stack with one index per member"
            raise ShapeError(sentence("Tied", expected, f"{len(index)} indices, {size} members"))
        if index.ndim != 1 or not len(index) or index.min() < 0 or index.max() >= size:
            raise ShapeError(sentence("Tied", f"index must be part numbers 0 … {size - 1}", index.tolist()))
        if self.what == "covariance" and not self.components.tied:
            self._check_group_covariances(index)
        self._set(index=index)

    def in_words(self) -> str:
        """The kind of its components."""
        return f"{self.components.in_words()}, shared by some members"

    def _check_group_covariances(self, index: NDArray[np.intp]) -> None:
        leaders = [int(np.flatnonzero(index == g)[0]) for g in index]
        differ = [
            k for k, j in enumerate(leaders) if (self.components.covariance[k] != self.components.covariance[j]).any()
        ]
        if differ:
            k, j = differ[0], leaders[differ[0]]
            expected = "members with the same index must have the same covariance"
            raise DomainError(sentence("Tied", expected, f"members {j} and {k} that differ", "give them the same one"))

    @property
    def of_sequences(self) -> bool:  # type: ignore[override]
        """True if a row is a sequence."""
        return bool(getattr(self.components, "of_sequences", False))

    @property
    def members(self) -> int:
        """Number of members K."""
        return len(self.index)

    @property
    def dim(self) -> int:
        """Number of columns of a row."""
        return int(self.components.dim)

    @property
    def _all(self) -> bool:
        return self.what == "all"

    def member(self, k: int) -> Any:
        """One member."""
        return self.components.member(int(self.index[k]) if self._all else k)

    def take(self, index: Any) -> Tied:
        """Members `index` as a stack; components without members are kept, so that statistics still add."""
        if self._all:
            return self.replace(index=self.index[index])
        return self.replace(components=self.components.take(index), index=self.index[index])

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the covariances of the components."""
        return getattr(self.components, "smallest_eigenvalue", None)

    def log_prob(self, x: Rows) -> Array:
        """Log-density per member (n, K); shared components are evaluated once."""
        out = self.components.log_prob(x)
        return out[:, self.index] if self._all else out

    def sample(self, n: int, rng: Generator) -> Any:
        """Random samples of each member (n, K, …), independent also for tied members."""
        if not self._all:
            return self.components.sample(n, rng)
        return side_by_side([self.member(k).sample(n, rng) for k in range(self.members)])

    def entropy(self, bits: bool = False) -> Array:
        """Entropy per member (K,)."""
        h = self.components.entropy(bits)
        return h[self.index] if self._all else h

    @property
    def mean(self) -> Any:
        """Mean per member."""
        return [self.member(k).mean for k in range(self.members)]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; shared ones count once."""
        if self._all:
            return int(self.components.n_parameters)
        one = self.components.member(0).n_parameters - self.dim
        return self.members * self.dim + len(np.unique(self.index)) * one

    # --------------------------------------------------------------- learning

    def collect(self, x: Rows, weight: ArrayLike | None = None, labels: Index | None = None) -> Any:
        """Statistics of the components, with the weights of tied members summed."""
        if not self._all:
            return self.components.collect(x, weight, labels=labels)
        if labels is not None:
            labels = checked_labels(labels, n_rows(x), self.members, "Tied")
            return self.components.collect(x, weight, labels=np.where(labels >= 0, self.index[labels], -1))
        w = weights(weight, n_rows(x), "Tied")
        if w is None or w.ndim == 1:
            w = np.repeat((np.ones(n_rows(x)) if w is None else w)[:, None], self.members, axis=1)
        if w.shape[1] != self.members:
            raise ShapeError(sentence("Tied", f"weight must have one column per member ({self.members})", w.shape))
        return self.components.collect(x, w @ np.eye(self.components.members)[self.index])

    def refit(self, stats: Any, prior: AnyPrior | None = None) -> Tied:
        """Refit of the components from the summed statistics of the members that share them."""
        if self._all:
            return self.replace(components=self.components.refit(stats, prior))
        if prior is None and not stats.total_weight > 0:
            raise DataError(sentence("Tied", "at least one row with weight is needed", "none", "or give a prior"))
        groups = [np.flatnonzero(self.index == g) for g in np.unique(self.index)]
        fitted = [self._of_group(g, stats.member(g), prior) for g in groups]
        if len(groups) == 1:
            return self.replace(components=fitted[0])
        covariance = np.empty((self.members, *fitted[0].covariance.shape))
        mean = np.empty_like(self.components.mean)
        for rows, one in zip(groups, fitted, strict=True):
            mean[rows], covariance[rows] = one.mean, one.covariance
        return self.replace(components=Gaussian.trusted(mean=mean, covariance=covariance, kind=self.components.kind))

    def _of_group(self, members: NDArray[np.intp], stats: Any, prior: Any) -> Gaussian:
        """Refit of a group of members; without rows and prior they keep their parameters."""
        kept = prior is None and not (stats.observed > 0).any()
        return self._group(members) if kept else self._group(members).refit(stats, prior)

    def _group(self, members: NDArray[np.intp]) -> Gaussian:
        """A group of members as a stack with one covariance."""
        covariance = self.components.covariance if self.components.tied else self.components.covariance[members[0]]
        return Gaussian.trusted(
            mean=self.components.mean[members], covariance=np.array(covariance), kind=self.components.kind
        )

    def objective(self, stats: Any, prior: AnyPrior | None = None) -> float:
        """Objective of `refit`: the prior of a shared covariance counts once."""
        if self._all:
            return float(self.components.objective(stats, prior))
        groups = (np.flatnonzero(self.index == g) for g in np.unique(self.index))
        return sum(self._group(g).objective(stats.member(g), prior) for g in groups)

    @property
    def log_smoothing(self) -> float:
        """Log density of the smoothing of the components, each once."""
        return float(getattr(self.components, "log_smoothing", 0.0))

    def weak_prior(self, stats: Stats) -> Any:
        """Weakly informative prior of the components."""
        return self.components.weak_prior(stats)


def untied(distribution: Any) -> Any:
    """The distinct components of tied members; any other distribution itself."""
    return distribution.components if isinstance(distribution, Tied) and distribution.what == "all" else distribution


def one_covariance(distribution: Any) -> bool:
    """True if the members of a stack share one covariance (or, in groups, a few)."""
    return bool(
        distribution.what == "covariance" if isinstance(distribution, Tied) else getattr(distribution, "tied", False)
    )

"""Mutual information I[a; b] = H[a] + H[b] − H[a, b] and conditional entropy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyDensity
from likely.distributions.categorical.probability_table import ProbabilityTable
from likely.distributions.distribution import Estimate, in_units
from likely.distributions.entropy import added, averaged, draws, entropy, exactly, scores
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.product import Product
from likely.distributions.support import generator
from likely.information.contingency_information import table_information
from likely.information.knn_mutual_information import neighbor_information

ME = "mutual_information"
ROUNDED = 1e-3  # how far probabilities in single precision, or of three digits, may add to something else than 1


def mutual_information(
    joint: ArrayLike | ProbabilityTable | AnyDensity, other: Any = None, *, split: Any = None, given: Any = None,
    bits: bool = False, n: int = 100_000, rng: Generator | None = None, n_neighbors: int = 4,
) -> Estimate:  # fmt: skip
    """Mutual information I[a; b] = E[log p(a, b) / (p(a) p(b))] ≥ 0; 0 if and only if a and b are independent.

    `joint` is one of

    - a table (A, B) of probabilities, which are divided by their sum where that is 1 but for rounding (10⁻³), or of
      counts, integers, with bias correction, see `table_information`;
    - a `ProbabilityTable`: `split` names the variables of one side (all others are the other), `given` a condition;
    - a density of rows: `split` lists the columns, or the components of a `Product`, of one side. Gaussians, t
      distributions and whatever has entropies are exact; mixtures and all others by Monte Carlo sampling;
    - rows X with `other` rows Y, paired: by nearest neighbors, see `neighbor_information`.

    Parameters
    ----------
    joint : array-like, ProbabilityTable or density
        Joint distribution, or rows, as above.
    other : array-like (n, e), optional
        Rows of the other side.
    split : sequence, optional
        Variables, columns or components of one side.
    given : sequence, optional
        Variables of a condition.
    bits : bool, default False
        Measure in bits instead of nats.
    n : int, default 100000
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.
    n_neighbors : int, default 4
        Number of neighbors, for rows.

    Returns
    -------
    Estimate
        The mutual information and its standard error, 0 for closed forms.

    See Also
    --------
    conditional_entropy : Entropy of one side given the other.

    References
    ----------
    Cover and Thomas (2006), chapter 2; Bishop (2006), chapter 1; Kraskov, Stögbauer and Grassberger (2004).

    Examples
    --------
    >>> import likely as lk
    >>> lk.mutual_information([[0.5, 0.0], [0.0, 0.5]], bits=True)
    Estimate(value=1.0, error=0.0)
    >>> lk.mutual_information(lk.Gaussian([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]]), split=[0]).value.__round__(6)
    0.223144
    """
    if other is not None:
        found = neighbor_information(joint, other, n_neighbors)
    elif isinstance(joint, ProbabilityTable):
        a, b = _sides(joint, split, given)
        return exactly(joint.mutual_information(a, b, given, bits))
    elif hasattr(joint, "log_prob"):
        found = _of_distribution(joint, split, n, generator(rng))
    else:
        found = table_information(*_table(joint, ME))
    return Estimate(in_units(found.value, bits), in_units(found.error, bits))


def conditional_entropy(
    joint: ArrayLike | ProbabilityTable | AnyDensity, given: Any = 0, *, bits: bool = False, n: int = 100_000,
    rng: Generator | None = None,
) -> Estimate:  # fmt: skip
    """Conditional entropy H[y | x] = H[x, y] − H[x].

    Parameters
    ----------
    joint : array-like (A, B), ProbabilityTable or density
        Joint distribution of x and y.
    given : int, str or sequence, default 0
        What x is: an axis of a table (A, B), variables of a `ProbabilityTable`, columns of a density or parts
        of a `Product`. All other variables are y.
    bits : bool, default False
        Measure in bits instead of nats.
    n : int, default 100000
        Number of samples, where there is no closed form.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The entropy and its standard error, 0 for closed forms.

    See Also
    --------
    mutual_information : H[y] − H[y | x].

    References
    ----------
    Cover and Thomas (2006), chapter 2; Herbst and du Preez, lecture notes, 1.6.

    Examples
    --------
    >>> import likely as lk
    >>> lk.information.conditional_entropy([[0.25, 0.25], [0.0, 0.5]], given=0, bits=True).value
    0.5
    """
    if isinstance(joint, ProbabilityTable):
        names = (given,) if isinstance(given, str) else tuple(given)
        return exactly(in_units(joint.entropy() - joint.marginal(*names).entropy(), bits))
    if hasattr(joint, "log_prob"):
        found = _conditional(joint, given, n, generator(rng))
    else:
        table = _table(joint, "conditional_entropy")[0]
        if given not in range(table.ndim):
            raise DomainError(sentence("conditional_entropy", f"given must be an axis, 0 … {table.ndim - 1}", given))
        rest = table.sum(axis=tuple(i for i in range(table.ndim) if i != given))
        found = exactly(max(0.0, float(xlogy(rest, rest).sum() - xlogy(table, table).sum())))
    return Estimate(in_units(found.value, bits), in_units(found.error, bits))


# ----------------------------------------------------------------------------- tables


def _table(given: Any, whose: str) -> tuple[Array, float | None]:
    """Probabilities (A, B), and the total where the table holds counts."""
    t = parameter(given, whose, "the table")
    if t.ndim != 2 or not t.size:
        expected = "a table of two variables (A, B) is needed"
        raise ShapeError(sentence(whose, expected, t.shape, "or a density with split=, or rows X with other=Y"))
    if (t < 0).any() or not t.sum() > 0:
        raise DomainError(sentence(whose, "a table must hold probabilities or counts, not negative", float(t.min())))
    total = float(t.sum())
    return t / total, _counted(t, total, whose)


def _counted(t: Array, total: float, whose: str) -> float | None:
    """Total of a table of integers; None for probabilities, which sum to 1 up to rounding."""
    if abs(total - 1) <= ROUNDED:
        return None
    if np.allclose(t, np.rint(t), rtol=1e-9, atol=1e-9):
        return total
    expected = "probabilities must add to 1, and counts be integers"
    remedy = "divide probabilities by their sum, or give counts"
    raise DomainError(sentence(whose, expected, f"a table that adds to {total:.6g}", remedy))


def _sides(table: ProbabilityTable, split: Any, given: Any) -> tuple[Any, Any]:
    known = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    free = [name for name in table.names if name not in known]
    a = [free[0]] if split is None else [split] if isinstance(split, str) else list(split)
    return a, [name for name in free if name not in a]


# --------------------------------------------------------------------------- densities


def _of_distribution(distribution: Any, split: Any, n: int, rng: Generator) -> Estimate:
    if getattr(distribution, "members", None) is not None:
        found = [_of_distribution(distribution.member(k), split, n, rng) for k in range(distribution.members)]
        return Estimate(np.array([e.value for e in found]), np.array([e.error for e in found]))
    if split is None:
        raise DomainError(sentence(ME, "split must say which columns are one side", None, "for instance split=[0]"))
    a, b = _both(distribution, split, ME)
    if isinstance(distribution, Product):
        return exactly(0.0)  # components are independent
    if isinstance(distribution, Gaussian) or (hasattr(distribution, "entropy") and hasattr(distribution, "marginal")):
        found = [
            entropy(part, n=n, rng=rng) for part in (distribution.marginal(a), distribution.marginal(b), distribution)
        ]
        return _difference(found[:2], found[2])
    x = distribution.sample(draws(n, ME), rng)
    return averaged(scores(distribution, x) - _scores_of(distribution, x, a) - _scores_of(distribution, x, b), whose=ME)


def _difference(marginals: list[Estimate], both: Estimate) -> Estimate:
    """H[a] + H[b] − H[a, b], clipped at 0; errors are kept."""
    found = added([*marginals, Estimate(-both.value, both.error)])
    return Estimate(max(0.0, found.value), found.error)


def _both(distribution: Any, split: Any, whose: str) -> tuple[list[Any], list[Any]]:
    """Both sides: column numbers, or names of components."""
    names = _names(distribution)
    everything = list(range(int(distribution.dim))) if names is None else names
    requested: list[Any] = [split] if isinstance(split, str | int | np.integer) else list(split)
    n = len(everything)
    a = [int(j) % n if isinstance(j, int | np.integer) and names is None and -n <= j < n else j for j in requested]
    b = [j for j in everything if j not in a]
    if not a or not b or len(set(a)) < len(a) or any(j not in everything for j in a):
        expected = f"one side must be some, not all, of {everything[:12]}, each once"
        raise DomainError(sentence(whose, expected, split))
    return a, b


def _names(distribution: Any) -> list[str] | None:
    """The names of the components of a product, else None."""
    inner = getattr(distribution, "components", None) if not isinstance(distribution, Product) else distribution
    return inner.names if isinstance(inner, Product) else None


def _scores_of(distribution: Any, x: Any, side: Sequence[Any]) -> Array:
    """log p of some columns alone: the others are set to missing."""
    if _names(distribution) is not None:
        return scores(_some_parts(distribution, side), {name: x[name] for name in side})
    hidden = np.full_like(np.asarray(x, dtype=np.float64), np.nan)
    hidden[:, side] = x[:, side]
    return scores(distribution, hidden)


def _some_parts(distribution: Any, names: Sequence[str]) -> Any:
    if isinstance(distribution, Product):
        return Product.trusted(components=tuple((name, distribution[name]) for name in names))
    return distribution.replace(components=_some_parts(distribution.components, names))


def _conditional(distribution: Any, given: Any, n: int, rng: Generator) -> Estimate:
    if getattr(distribution, "members", None) is not None:
        found = [_conditional(distribution.member(k), given, n, rng) for k in range(distribution.members)]
        return Estimate(np.array([e.value for e in found]), np.array([e.error for e in found]))
    a, b = _both(distribution, given, "conditional_entropy")
    if isinstance(distribution, Product):
        return added([entropy(distribution[name], n=n, rng=rng) for name in b])
    if isinstance(distribution, Gaussian) or (hasattr(distribution, "entropy") and hasattr(distribution, "marginal")):
        both, marginal = entropy(distribution, n=n, rng=rng), entropy(distribution.marginal(a), n=n, rng=rng)
        return Estimate(both.value - marginal.value, math.hypot(both.error, marginal.error))
    x = distribution.sample(draws(n, "conditional_entropy"), rng)
    return averaged(_scores_of(distribution, x, a) - scores(distribution, x), whose="conditional_entropy")


__all__ = ["conditional_entropy", "mutual_information"]

"""Online learning: stochastic approximation of EM on a stream of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from likely.core.blocks import Block
from likely.core.em_loop import gather, resolve_prior
from likely.core.errors import DomainError, sentence
from likely.core.protocols import AnyPrior


def online_em(
    model: Any, blocks: Iterable[Any], *, step: float | Callable[[int], float] = 1.0, prior: AnyPrior | None = None
) -> Iterator[Any]:
    """Online EM: the model after each block of a stream.

    The running statistic is A_t = (1 − η_t) A_{t−1} + η_t s_t.

    Parameters
    ----------
    model : Learnable
        The initial model.
    blocks : iterable
        Blocks of rows.
    step : float or callable, default 1.0
        A function t → η_t in (0, 1] with η_1 = 1, or an exponent a for η_t = t^−a: with 1 all rows have equal weight,
        so that complete data give the batch estimate; with 0.6 the early statistics of an EM model are forgotten
        faster; 0 uses the last block only.
    prior : Prior, {"weak"} or None
        Prior of the parameters; None is maximum likelihood.

    Yields
    ------
    model
        The model after each block.

    See Also
    --------
    fit : Several passes over the same data.

    References
    ----------
    Robbins and Monro (1951); Cappé and Moulines (2009).

    Examples
    --------
    >>> import likely as lk
    >>> for model in lk.online_em(lk.Poisson(1.0), [[[1], [2]], [[6]]]):
    ...     print(model.rate)
    [1.5]
    [3.]
    """
    rate = step if callable(step) else _power(step)
    stats, last = None, 1.0
    for t, block in enumerate(blocks, start=1):
        eta = _checked(rate(t), t)
        new = gather(model, block if isinstance(block, Block) else Block(block))
        # S_t = A_t / η_t: with η = 1/t the factor is 1 and statistics just add
        stats = new if stats is None else stats * ((1 - eta) / eta * last) + new
        last = eta
        model = model.refit(stats, resolve_prior(model, stats, prior))
        yield model


def _power(a: float) -> Callable[[int], float]:
    if not 0 <= a <= 1:
        raise DomainError(sentence("online_em", "step must lie in [0, 1], or be a function of t", a))
    return lambda t: float(t) ** -a


def _checked(eta: float, t: int) -> float:
    if not 0 < eta <= 1:
        raise DomainError(sentence("online_em", "a step size must lie in (0, 1]", f"{eta} at t = {t}"))
    return eta

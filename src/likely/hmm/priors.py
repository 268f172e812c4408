"""What we believe of a hidden Markov model before it is learned: fictitious moves, and a prior of the emissions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln, xlogy

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.hmm.hmm import HMM


@dataclass(frozen=True, eq=False)
class HMMPrior(Value):
    """Dirichlet distributions of what may follow the entry and each state: α − 1 fictitious uses of an arc.

    α = 0 says that an arc is impossible. None leaves all arcs, or the emissions, to maximum likelihood. The
    arrays have the shapes of the model's; one chain's serve every member of a stack.

    log p = Σ over states of log Dirichlet(row | α), so the mode of a row is (n + α − 1) / Σ (n + α − 1)   (Ney 7.4).

    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> HMMPrior.weak(h, None).transition  # one more move from each state, spread over what is possible
    array([[1.5, 1.5],
           [0. , 2. ]])
    """

    initial: Array | None  # (N,)
    transition: Array | None  # (N, N)
    final: Array | None  # (N,), None for chains without
    emission: Any

    def __post_init__(self) -> None:
        checked = {name: _alpha(getattr(self, name), name) for name in ("initial", "transition", "final")}
        initial, transition, final = checked["initial"], checked["transition"], checked["final"]
        if (initial is None) != (transition is None) or (initial is None and final is not None):
            raise DomainError(sentence("HMMPrior", "starts and moves have a prior both, or neither", "one of them"))
        if initial is not None and transition is not None:
            shapes = [initial.shape, transition.shape, initial.shape if final is None else final.shape]
            if shapes != [initial.shape, (*initial.shape, initial.shape[-1]), initial.shape]:
                raise ShapeError(sentence("HMMPrior", "starts (N,), moves (N, N), ends (N,) must go together", shapes))
        self._set(**checked)

    @classmethod
    def weak(cls, model: HMM, parts: Any, strength: float = 1.0) -> HMMPrior:
        """`strength` fictitious ways on from the entry and from each state, spread over all that the model allows."""
        final = None if model.final is None else model.final > 0
        on = (model.transition > 0).sum(axis=-1) + (0 if final is None else final)
        each = strength / np.maximum(on, 1)
        initial = model.initial > 0
        return cls(
            np.where(initial, 1 + strength / initial.sum(axis=-1, keepdims=True), 0.0),
            np.where(model.transition > 0, 1 + each[..., None], 0.0),
            None if final is None else np.where(final, 1 + each, 0.0), parts,
        )  # fmt: skip

    @classmethod
    def symmetric(cls, model: HMM, alpha: float, parts: Any) -> HMMPrior:
        """The same α for every arc that the model allows."""
        final = None if model.final is None else np.where(model.final > 0, alpha, 0.0)
        return cls(np.where(model.initial > 0, alpha, 0.0), np.where(model.transition > 0, alpha, 0.0), final, parts)

    @cached_property
    def pseudo_counts(self) -> tuple[Any, Any, Any]:
        """What is added to the counts of arcs before a mode is taken."""
        return _fictitious(self.initial), _fictitious(self.transition), _fictitious(self.final)

    def log_density_of_arcs(self, model: HMM) -> float:
        """log p of a model's starts, moves and ends."""
        if self.initial is None or self.transition is None:
            return 0.0
        C = model.members or 1
        initial = _each(self.initial, model.initial.shape)
        value = _log_dirichlet(initial, model.initial)
        rows, probs = _each(self.transition, model.transition.shape), model.transition
        if model.final is not None:
            leave = np.zeros_like(model.final) if self.final is None else _each(self.final, model.final.shape)
            rows, probs = (
                np.concatenate([rows, leave[..., None]], -1),
                np.concatenate([probs, model.final[..., None]], -1),
            )
        return float(value.sum() + _log_dirichlet(rows, probs).sum()) if C else 0.0

    def log_density(self, model: HMM) -> float:
        """log p of all of a model's parameters; what has no prior adds nothing."""
        of_parts = 0.0 if self.emission is None else float(np.sum(self.emission.log_density(model.emission)))
        return self.log_density_of_arcs(model) + of_parts

    def update(self, stats: Any) -> HMMPrior:
        """The posterior: counts of arcs are added, and the emissions' statistics."""
        parts = None if self.emission is None else self.emission.update(stats.emission)
        if self.initial is None or self.transition is None:
            return HMMPrior(None, None, None, parts)
        final = None if self.final is None else _added(self.final, stats.final)
        return HMMPrior(_added(self.initial, stats.initial), _added(self.transition, stats.transition), final, parts)

    def point(self, rule: str = "mode") -> HMM:
        """The HMM of the arcs' and the emissions' points."""
        if rule not in ("mode", "mean"):
            raise DomainError(sentence("HMMPrior.point", 'rule must be "mode" or "mean"', repr(rule)))
        less = 1.0 if rule == "mode" else 0.0
        return self._made(
            lambda alpha: np.maximum(alpha - less, 0.0) * (alpha > 0), self._parts_or("point").point(rule)
        )

    def draw(self, rng: Generator) -> HMM:
        """An HMM with arcs and emissions drawn."""
        return self._made(lambda alpha: rng.standard_gamma(alpha + 0.0), self._parts_or("draw").draw(rng))

    def predictive(self) -> HMM:
        """The HMM of expected arcs and the emissions' predictives: exact for one frame, near for more."""
        return self._made(lambda alpha: alpha, self._parts_or("predictive").predictive())

    def log_evidence(self, stats: Any) -> float:
        """log p(states) + log p(frames | states), for statistics of sequences whose states were seen."""
        parts = self._parts_or("log_evidence")
        if not stats.complete or self.initial is None or self.transition is None:
            raise DomainError(
                sentence("HMMPrior.log_evidence", "states and entries must have been seen", "hidden ones")
            )
        after = self.update(stats)
        assert after.initial is not None and after.transition is not None
        value = _log_beta(after.initial) - _log_beta(self.initial)
        rows = _rows_of(after.transition, after.final), _rows_of(self.transition, self.final)
        return float(
            value.sum() + (_log_beta(rows[0]) - _log_beta(rows[1])).sum() + np.sum(parts.log_evidence(stats.emission))
        )

    def _parts_or(self, doing: str) -> Any:
        if self.emission is None or self.initial is None:
            raise DomainError(sentence(f"HMMPrior.{doing}", "arcs and emissions need priors", "None for one of them"))
        return self.emission

    def _made(self, weigh: Any, emission: Any) -> HMM:
        assert self.initial is not None and self.transition is not None
        rows = _normalized(weigh(_rows_of(self.transition, self.final)))
        N = self.transition.shape[-1]
        final = None if self.final is None else rows[..., N].copy()
        return HMM(_normalized(weigh(self.initial)), rows[..., :N].copy(), emission, final=final)


def _alpha(value: Any, name: str) -> Array | None:
    if value is None:
        return None
    alpha = parameter(value, "HMMPrior", name)
    if ((alpha < 1) & (alpha != 0)).any():
        remedy = "below 1 the mode would be at the edge"
        came = float(alpha[(alpha < 1) & (alpha != 0)][0])
        raise DomainError(sentence("HMMPrior", f"{name} must be at least 1, or 0 where an arc cannot be", came, remedy))
    return alpha


def _fictitious(alpha: Array | None) -> Any:
    """α − 1 where an arc is possible."""
    return 0.0 if alpha is None else np.where(alpha > 0, alpha - 1.0, 0.0)


def _each(alpha: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(alpha, shape)


def _rows_of(transition: Array, final: Array | None) -> Array:
    return transition if final is None else np.concatenate([transition, final[..., None]], axis=-1)


def _log_dirichlet(alpha: Array, probs: Array) -> Array:
    """log p of each row of probabilities, over the entries that are possible."""
    possible = alpha > 0
    kernel = np.where(possible, xlogy(np.where(possible, alpha - 1.0, 0.0), probs), 0.0).sum(axis=-1)
    return np.asarray(kernel - _log_beta(alpha))


def _log_beta(alpha: Array) -> Array:
    total = alpha.sum(axis=-1)
    each = np.where(alpha > 0, gammaln(np.where(alpha > 0, alpha, 1.0)), 0.0).sum(axis=-1)
    return np.where(total > 0, each - gammaln(np.where(total > 0, total, 1.0)), 0.0)


def _added(alpha: Array, counts: Array) -> Array:
    return np.where(alpha > 0, alpha + counts, 0.0)


def _normalized(rows: Array) -> Array:
    total = rows.sum(axis=-1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / rows.shape[-1])

"""Prior of a hidden Markov model: Dirichlet distributions or logistic coefficients of transitions, and of emissions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln, xlogy

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.stats import Stats
from likely.core.value import Value
from likely.hmm.hmm import HMM
from likely.hmm.logistic_transition import EFFECT, LogisticPrior


@dataclass(frozen=True, eq=False)
class HMMPrior(Value):
    """Dirichlet priors of the initial distribution and of each row of the transition matrix: α − 1 pseudo-counts.

    α = 0 marks an impossible transition. None leaves all transitions, or the emissions, to maximum likelihood. The
    arrays have the shapes of the model's; those of one chain serve every member of a stack. Where transitions depend on
    covariates, their prior is a `LogisticPrior`, which has a mode only: `update`, `point`, `draw` and `predictive` need
    Dirichlet distributions.

    log p = Σ over states of log Dirichlet(row | α), so the mode of a row is (n + α − 1) / Σ (n + α − 1)   (Ney 7.4).

    Parameters
    ----------
    initial : array-like (N,) or None
        Parameters α of the initial distribution.
    transition : array-like (N, N), LogisticPrior or None
        Parameters α of each row of the transition matrix.
    final : array-like (N,) or None
        Parameters α of the exit probabilities; None for chains without.
    emission : Prior or None
        Prior of the emissions.

    References
    ----------
    Bishop (2006), chapter 13; Ney, lecture notes, 7.4.

    Examples
    --------
    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> HMMPrior.weak(h, None).transition  # one pseudo-count per state, spread over possible transitions
    array([[1.5, 1.5],
           [0. , 2. ]])
    """

    initial: Annotated[Array | None, declared.maybe(declared.numbers("* N", 0))]  # (N,)
    # (N, N), or a LogisticPrior, or None
    transition: Annotated[
        Any, declared.maybe(declared.either(declared.numbers("* N N", 0), declared.of_class("LogisticPrior")))
    ]
    final: Annotated[Array | None, declared.maybe(declared.numbers("* N", 0))]  # (N,), None for chains without
    emission: Annotated[Any, declared.maybe(declared.prior)]

    def __post_init__(self) -> None:
        logistic = isinstance(self.transition, LogisticPrior)
        names = ("initial", "final") if logistic else ("initial", "transition", "final")
        checked = {name: _alpha(getattr(self, name), name) for name in names}
        initial, transition, final = checked["initial"], checked.get("transition", self.transition), checked["final"]
        if (initial is None) != (transition is None) or (initial is None and final is not None):
            raise DomainError(
                sentence("HMMPrior", "initial and transition must both have a prior, or neither", "one of them")
            )
        if logistic and final is not None:
            expected = "final probabilities need constant transitions"
            raise DomainError(sentence("HMMPrior", expected, "a LogisticPrior", "leave final=None"))
        if initial is not None and not logistic:
            shapes = [initial.shape, transition.shape, initial.shape if final is None else final.shape]
            if shapes != [initial.shape, (*initial.shape, initial.shape[-1]), initial.shape]:
                raise ShapeError(
                    sentence(
                        "HMMPrior", "initial (N,), transition (N, N), final (N,) must have matching shapes", shapes
                    )
                )
        self._set(**checked)

    @classmethod
    def weak(
        cls, model: HMM, emission: Any, strength: float = 1.0, stats: Stats | None = None, effect: float = EFFECT
    ) -> HMMPrior:
        """Weak prior of `strength` pseudo-counts per state and for the initial distribution.

        They are spread over all possible transitions. Where transitions depend on covariates, statistics are needed:
        one standard deviation of a covariate in them changes log-odds by about `effect`.

        Parameters
        ----------
        emission : Prior or None
            Prior of the emissions.
        strength : float, default 1.0
            Pseudo-counts per state.
        stats : HMMStats, optional
            Statistics of the data; needed where transitions depend on covariates.
        effect : float, default 2.5
            Change of log-odds that one standard deviation of a covariate makes.
        """
        if model.is_logistic:
            initial = model.initial > 0
            alpha = np.where(initial, 1 + strength / initial.sum(), 0.0)
            return cls(alpha, LogisticPrior.weak(_statistics(stats), strength, effect), None, emission)
        final = None if model.final is None else model.final > 0
        n_targets = (model.transition > 0).sum(axis=-1) + (0 if final is None else final)
        share = strength / np.maximum(n_targets, 1)
        initial = model.initial > 0
        return cls(
            np.where(initial, 1 + strength / initial.sum(axis=-1, keepdims=True), 0.0),
            np.where(model.transition > 0, 1 + share[..., None], 0.0),
            None if final is None else np.where(final, 1 + share, 0.0), emission,
        )  # fmt: skip

    @classmethod
    def symmetric(cls, model: HMM, alpha: float, emission: Any, stats: Stats | None = None) -> HMMPrior:
        """The same α for every transition that is possible in the model; with covariates, at the mean of these.

        Parameters
        ----------
        alpha : float
            Parameter α of every possible transition, at least 1.
        emission : Prior or None
            Prior of the emissions.
        stats : HMMStats, optional
            Statistics of the data; needed where transitions depend on covariates.
        """
        if model.is_logistic:
            initial, targets = np.where(model.initial > 0, alpha, 0.0), float(model.transition.mask.sum(axis=1).mean())
            return cls(initial, LogisticPrior.weak(_statistics(stats), (alpha - 1.0) * targets), None, emission)
        final = None if model.final is None else np.where(model.final > 0, alpha, 0.0)
        return cls(np.where(model.initial > 0, alpha, 0.0), np.where(model.transition > 0, alpha, 0.0), final, emission)

    @cached_property
    def pseudo_counts(self) -> tuple[Any, Any, Any]:
        """The pseudo-counts α − 1 that the posterior mode adds to expected counts."""
        logistic = isinstance(self.transition, LogisticPrior)
        transition = 0.0 if logistic else _pseudo_counts(self.transition)
        return _pseudo_counts(self.initial), transition, _pseudo_counts(self.final)

    def log_density_of_transitions(self, model: HMM) -> float:
        """Log prior density of a model's initial, transition and final probabilities.

        Returns
        -------
        float
            The log-density in nats.
        """
        if self.initial is None or self.transition is None:
            return 0.0
        value = _log_dirichlet(np.broadcast_to(self.initial, model.initial.shape), model.initial)
        if isinstance(self.transition, LogisticPrior):
            return float(value.sum()) + self.transition.log_density(model.transition)
        rows, probs = np.broadcast_to(self.transition, model.transition.shape), model.transition
        if model.final is not None:
            final = np.zeros_like(model.final) if self.final is None else np.broadcast_to(self.final, model.final.shape)
            rows, probs = (
                np.concatenate([rows, final[..., None]], -1),
                np.concatenate([probs, model.final[..., None]], -1),
            )
        return float(value.sum() + _log_dirichlet(rows, probs).sum())

    def log_density(self, model: HMM) -> float:
        """Log prior density of all parameters of a model; those without a prior add nothing."""
        of_emission = 0.0 if self.emission is None else float(np.sum(self.emission.log_density(model.emission)))
        return self.log_density_of_transitions(model) + of_emission

    def update(self, stats: Any) -> HMMPrior:
        """The posterior: expected counts are added to α, and the emissions' prior is updated."""
        self._refuse_logistic("update")
        emission = None if self.emission is None else self.emission.update(stats.emission)
        if self.initial is None or self.transition is None:
            return HMMPrior(None, None, None, emission)
        final = None if self.final is None else _updated(self.final, stats.final)
        return HMMPrior(
            _updated(self.initial, stats.initial), _updated(self.transition, stats.transition), final, emission
        )

    def point(self, rule: PointRule = "mode") -> HMM:
        """Point estimate: an HMM of the posterior modes, or means, of transitions and emissions."""
        if rule not in ("mode", "mean"):
            raise DomainError(sentence("HMMPrior.point", 'rule must be "mode" or "mean"', repr(rule)))
        offset = 1.0 if rule == "mode" else 0.0
        return self._model(
            lambda alpha: np.maximum(alpha - offset, 0.0) * (alpha > 0), self._emission_or_refuse("point").point(rule)
        )

    def draw(self, rng: Generator) -> HMM:
        """Sample an HMM from the prior."""
        return self._model(lambda alpha: rng.standard_gamma(alpha + 0.0), self._emission_or_refuse("draw").draw(rng))

    def predictive(self) -> HMM:
        """The HMM of expected transitions and the emissions' posterior predictives: exact for one frame only."""
        return self._model(lambda alpha: alpha, self._emission_or_refuse("predictive").predictive())

    def log_evidence(self, stats: Any) -> float:
        """Log marginal likelihood log p(states) + log p(frames | states), for statistics with known states."""
        emission = self._emission_or_refuse("log_evidence")
        if not stats.complete or self.initial is None or self.transition is None:
            raise DomainError(sentence("HMMPrior.log_evidence", "states and entries must be observed", "hidden ones"))
        after = self.update(stats)
        assert after.initial is not None and after.transition is not None
        value = _log_beta(after.initial) - _log_beta(self.initial)
        rows = _rows_of(after.transition, after.final), _rows_of(self.transition, self.final)
        return float(
            value.sum()
            + (_log_beta(rows[0]) - _log_beta(rows[1])).sum()
            + np.sum(emission.log_evidence(stats.emission))
        )

    def _refuse_logistic(self, doing: str) -> None:
        if isinstance(self.transition, LogisticPrior):
            expected = "a prior of coefficients is not conjugate: it has no closed-form posterior"
            raise DomainError(sentence(f"HMMPrior.{doing}", expected, "a call", "use refit(stats, prior), or fit"))

    def _emission_or_refuse(self, doing: str) -> Any:
        self._refuse_logistic(doing)
        if self.emission is None or self.initial is None:
            raise DomainError(
                sentence(f"HMMPrior.{doing}", "transitions and emissions need priors", "None for one of them")
            )
        return self.emission

    def _model(self, weights: Any, emission: Any) -> HMM:
        assert self.initial is not None and self.transition is not None
        rows = _normalized(weights(_rows_of(self.transition, self.final)))
        N = self.transition.shape[-1]
        final = None if self.final is None else rows[..., N].copy()
        return HMM(_normalized(weights(self.initial)), rows[..., :N].copy(), emission, final=final)


def _statistics(stats: Any) -> Any:
    """The statistics of transitions that scale a prior of coefficients."""
    if stats is None:
        expected = "statistics are needed where transitions depend on covariates: they scale the coefficients"
        raise DomainError(sentence("HMMPrior", expected, "none", "pass stats=model.collect(x)"))
    return stats.transition


def _alpha(given: Any, name: str) -> Array | None:
    if given is None:
        return None
    alpha = parameter(given, "HMMPrior", name)
    if ((alpha < 1) & (alpha != 0)).any():
        remedy = "below 1 the mode is at the boundary"
        value = float(alpha[(alpha < 1) & (alpha != 0)][0])
        raise DomainError(
            sentence("HMMPrior", f"{name} must be at least 1, or 0 for an impossible transition", value, remedy)
        )
    return alpha


def _pseudo_counts(alpha: Array | None) -> Any:
    """Pseudo-counts α − 1 where a transition is possible."""
    return 0.0 if alpha is None else np.where(alpha > 0, alpha - 1.0, 0.0)


def _rows_of(transition: Array, final: Array | None) -> Array:
    return transition if final is None else np.concatenate([transition, final[..., None]], axis=-1)


def _log_dirichlet(alpha: Array, probs: Array) -> Array:
    """log Dirichlet density of each row of probabilities, over its possible entries."""
    possible = alpha > 0
    kernel = np.where(possible, xlogy(np.where(possible, alpha - 1.0, 0.0), probs), 0.0).sum(axis=-1)
    return np.asarray(kernel - _log_beta(alpha))


def _log_beta(alpha: Array) -> Array:
    total = alpha.sum(axis=-1)
    log_gammas = np.where(alpha > 0, gammaln(np.where(alpha > 0, alpha, 1.0)), 0.0).sum(axis=-1)
    return np.where(total > 0, log_gammas - gammaln(np.where(total > 0, total, 1.0)), 0.0)


def _updated(alpha: Array, counts: Array) -> Array:
    return np.where(alpha > 0, alpha + counts, 0.0)


def _normalized(rows: Array) -> Array:
    total = rows.sum(axis=-1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / rows.shape[-1])

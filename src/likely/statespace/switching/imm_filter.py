"""Interacting multiple model (IMM) filter, and the generalized pseudo-Bayes filter of order 2 (GPB2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, SequencesLike, check_option
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.value import Value
from likely.core.warnings import warn
from likely.statespace.linear.kalman_filter import read_only
from likely.statespace.switching import switching_filter as passes
from likely.statespace.switching.switching_belief import SwitchingBelief, SwitchingRun

Method = Literal["imm", "gpb2"]
ME = "IMMFilter"


@dataclass(frozen=True, eq=False)
class IMMFilter(Value):
    """IMM filter (Blom and Bar-Shalom 1988) for a `SwitchingLinearGaussian`: K Gaussians instead of Kᵗ.

    Both approximate a mixture by the Gaussian of the same mean and covariance (moment matching). Their evidence is a
    proper density of sequences, though not exactly the model's; `RaoBlackwellizedFilter` gives an unbiased estimate.

    Parameters
    ----------
    model : SwitchingLinearGaussian
        The model.
    method : {"imm", "gpb2"}, default "imm"
        "imm": regime j is predicted from the mixture of all regimes with weights p(z_{t−1} = i | z_t = j, y), collapsed
        to one Gaussian: K Kalman filters per frame; "gpb2" (generalized pseudo-Bayes of order 2) runs all K² pairs of
        regimes and collapses afterwards, which is more accurate.

    See Also
    --------
    RaoBlackwellizedFilter : Unbiased estimates of the evidence.

    References
    ----------
    Blom and Bar-Shalom (1988).

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> quiet, wild = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.01, 25.0))
    >>> model = lk.SwitchingLinearGaussian([quiet, wild], [[0.9, 0.1], [0.1, 0.9]])
    >>> IMMFilter(model).run([0.0, 0.3, -0.2, 12.0, 12.1]).regime_posterior.argmax(axis=1).tolist()
    [0, 0, 0, 1, 1]
    """

    model: Annotated[Any, declared.of_class("SwitchingLinearGaussian")]
    method: Method = "imm"

    def __post_init__(self) -> None:
        refuse_other(self.model, ME)
        check_option(self.method, Method, ME, "method")

    @property
    def _both(self) -> bool:
        return self.method == "gpb2"

    def initial_belief(self) -> SwitchingBelief:
        """Belief of the initial state and regime, before any observation."""
        return first_belief(self.model, 0)

    def predict(self, belief: SwitchingBelief, inputs: SequencesLike | None = None) -> SwitchingBelief:
        """Prediction step: the belief one frame later, before its observation."""
        from likely.statespace.linear import _loops as kalman

        s, (K, d) = self.model.stack, self.model.stack.m.shape
        n = K * K if self._both else K
        logs, which, means, roots = np.empty(n), np.empty(n, np.int64), np.empty((n, d)), np.empty((n, d, d))
        own = [np.array(a) for a in (belief.log_weights, belief.which, belief.means, belief.roots)]
        intercept = read_only(self.model.intercept(inputs))
        kalman.interact_once(s.P, s.A, s.N, intercept, self._both, *own, logs, which, means, roots)
        return belief.replace(
            means=means, roots=roots, which=which, log_weights=logs, time=belief.time + 1, parents=None, particle=None
        )

    def update(
        self, belief: SwitchingBelief, y: SequencesLike, inputs: SequencesLike | None = None
    ) -> tuple[SwitchingBelief, float]:
        """Update step: the belief given a frame y too, and log p(y | earlier frames), −inf if y has probability 0."""
        return updated(self.model, belief, y, inputs)

    def run(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Any:
        """Filter one sequence, or many.

        Parameters
        ----------
        y : array-like (T, p) or sequences
            Observations; NaN is a missing value.

        Returns
        -------
        SwitchingRun or list of SwitchingRun
            The result; one per sequence.
        """
        series, alone = passes.switched(self.model, y, inputs), is_single_sequence(y)
        runs = [self._run(series.cut(i, i + 1)) for i in range(len(Ragged.of(y)))]
        return runs[0] if alone else runs

    def filter(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Any:
        """Same as `run`, under the name used by models."""
        return self.run(y, inputs)

    def _run(self, series: passes.Switched) -> SwitchingRun:
        kept = passes.forward(self.model.stack, series, self._both)
        share = np.exp(kept.log_weights)
        ess = 1.0 / np.maximum((share**2).sum(axis=1), 1e-300)
        last = self._belief(kept) if len(share) else None
        return SwitchingRun(share, *passes.moments(share, kept.means, kept.roots), kept.increments, ess, last)

    def _belief(self, kept: passes.Filtered) -> SwitchingBelief:
        K = self.model.n_regimes
        return SwitchingBelief.trusted(
            means=kept.means[-1].copy(), roots=kept.roots[-1].copy(), which=np.arange(K),
            log_weights=kept.log_weights[-1].copy(), n_regimes=K, time=len(kept.increments) - 1, seed=0, parents=None,
            particle=None,
        )  # fmt: skip

    def log_prob(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Array:
        """Approximate log-likelihood log p(y) per sequence (n,)."""
        series = passes.switched(self.model, y, inputs)
        parts = passes.map_parts(
            lambda ab: passes.forward(self.model.stack, series.cut(*ab), self._both).total, series, self.model
        )
        return np.concatenate([np.empty(0), *parts])


def refuse_other(model: Any, whose: str) -> None:
    """Refuse models other than a `SwitchingLinearGaussian`."""
    if not hasattr(model, "stack") or not hasattr(model, "regimes"):
        remedy = "pass a SwitchingLinearGaussian"
        raise DomainError(sentence(whose, "a switching model is needed", type(model).__name__, remedy))


def first_belief(model: Any, seed: int) -> SwitchingBelief:
    """Initial belief: one Gaussian per regime."""
    if model.incomparable:
        warn(model.incomparable)
    s = model.stack
    return SwitchingBelief.trusted(
        means=s.m.copy(), roots=s.U.copy(), which=np.arange(model.n_regimes), log_weights=s.log_initial.copy(),
        n_regimes=model.n_regimes, time=0, seed=seed, parents=None, particle=None,
    )  # fmt: skip


def updated(model: Any, belief: SwitchingBelief, y: Any, inputs: Any) -> tuple[SwitchingBelief, float]:
    """Update step: each Gaussian by its own regime, its weight multiplied by its likelihood."""
    from likely.statespace.linear import _loops as kalman

    s = model.stack
    logs, which, means, roots = (np.array(a) for a in (belief.log_weights, belief.which, belief.means, belief.roots))
    increment = float(kalman.update_many(read_only(model.frame(y, inputs)), s.C, s.R, logs, which, means, roots))
    if increment == -np.inf:
        return belief, increment
    return belief.replace(means=means, roots=roots, log_weights=logs), increment

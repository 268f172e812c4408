"""Rao–Blackwellized particle filter of switching models: sampled regimes, exact Kalman filters given them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, Index, SequencesLike, check_integer, check_option
from likely.core.covariates import table
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.value import Value
from likely.core.warnings import warn
from likely.statespace.linear.kalman_filter import read_only
from likely.statespace.particle.particle_belief import CHOOSE, MOVE, keyed, seed_of, share
from likely.statespace.particle.proposals import is_poor
from likely.statespace.particle.resampling import ResamplingScheme, resampled
from likely.statespace.switching.imm_filter import first_belief, refuse_other, updated
from likely.statespace.switching.switching_belief import SwitchingBelief, SwitchingRun, run_of

ME = "RaoBlackwellizedFilter"
Proposal = Literal["optimal", "prior"]
Scheme = Literal["optimal", ResamplingScheme]


@dataclass(frozen=True, eq=False)
class RaoBlackwellizedFilter(Value):
    """Rao–Blackwellized particle filter of a `SwitchingLinearGaussian`: n regime paths, each with a Kalman filter.

    exp(log_evidence) is an unbiased estimate of p(y). If all paths have likelihood 0 at a frame the increment is −inf,
    the belief stays unchanged, and there is a warning.

    Parameters
    ----------
    model : SwitchingLinearGaussian
        The model.
    n_particles : int
        Number of paths n.
    resample : {"optimal", "systematic", "stratified", "residual", "multinomial"}, optional
        "optimal" (with that proposal, and its default): of n·K successors those of large weight are kept, the others
        are resampled without bias, and no path occurs twice (Fearnhead and Clifford 2003); while Kᵗ ≤ n all paths are
        kept and the filter is exact. Others: each path draws its successor, and paths are resampled by weight.
    ess_threshold : float, default 0.5
        Paths are resampled by weight when the effective sample size falls below ess_threshold · n.
    proposal : {"optimal", "prior"}, default "optimal"
        "optimal": every path is continued to all K regimes, and all are weighted before resampling; "prior": each path
        draws its next regime from `transition`.
    random_state : int, default 0
        Seed; random numbers are keyed by seed and frame, so the methods are pure functions of the belief.

    See Also
    --------
    IMMFilter : A faster approximation.

    References
    ----------
    Fearnhead and Clifford (2003); de Freitas, lecture notes, 13.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> quiet, wild = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.01, 25.0))
    >>> model = lk.SwitchingLinearGaussian([quiet, wild], [[0.9, 0.1], [0.1, 0.9]])
    >>> y = [0.0, 0.3, -0.2, 12.0, 12.1]
    >>> run = RaoBlackwellizedFilter(model, 100, random_state=1).run(y)
    >>> run.regime_posterior.argmax(axis=1).tolist(), bool(abs(run.log_evidence - model.exact(y).log_prob) < 1e-9)
    ([0, 0, 0, 1, 1], True)
    """

    model: Annotated[Any, declared.of_class("SwitchingLinearGaussian")]
    n_particles: Annotated[int, declared.count]
    _: KW_ONLY
    resample: Annotated[Scheme | None, declared.maybe(declared.option(Scheme))] = None
    ess_threshold: Annotated[float, declared.number(0)] = 0.5
    proposal: Proposal = "optimal"
    random_state: Annotated[int, declared.count] = 0

    def __post_init__(self) -> None:
        refuse_other(self.model, ME)
        n, seed = (
            check_integer(self.n_particles, ME, "n_particles", 1),
            check_integer(self.random_state, ME, "random_state"),
        )
        self._set(n_particles=n, random_state=seed, ess_threshold=share(self.ess_threshold, ME, "ess_threshold"))
        check_option(self.proposal, Proposal, ME, "proposal")
        if self.resample is not None:
            schemes = ResamplingScheme if self.proposal == "prior" else Scheme
            check_option(self.resample, schemes, ME, "resample", "None")

    @property
    def _scheme(self) -> Scheme:
        return self.resample or ("systematic" if self.proposal == "prior" else "optimal")

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> SwitchingBelief:
        """Belief of the initial state and regime, before any observation."""
        return self._initial(self.random_state)

    def _initial(self, seed: int) -> SwitchingBelief:
        first = first_belief(self.model, seed)
        if self.proposal == "optimal":
            alive = np.flatnonzero(first.log_weights > -np.inf)
            return _some(first, alive, first.log_weights[alive])
        chosen = resampled(self._scheme, first.weights, self.n_particles, keyed(seed, 0, CHOOSE))
        return _some(first, chosen, np.full(len(chosen), -np.log(self.n_particles)))

    def predict(self, belief: SwitchingBelief, inputs: SequencesLike | None = None) -> SwitchingBelief:
        """Prediction step: resampling of paths, then continuation to the next frame."""
        from likely.statespace.linear import _loops as kalman

        chosen, logs = self._survivors(belief)
        particle, which, logs = self._continued(belief, chosen, logs)
        parents, s = chosen[particle], self.model.stack
        means, roots = belief.means[parents], belief.roots[parents]
        nothing = read_only(np.full((self.model.n_regimes, self.model.dim), np.nan))
        intercept = read_only(self.model.intercept(inputs))
        kalman.step_many(s.A, s.N, s.C, s.R, intercept, nothing, which, True, means, roots, np.empty(len(which)))
        return belief.replace(
            means=means, roots=roots, which=which, log_weights=logs, time=belief.time + 1, parents=parents,
            particle=particle,
        )  # fmt: skip

    def update(
        self, belief: SwitchingBelief, y: SequencesLike, inputs: SequencesLike | None = None
    ) -> tuple[SwitchingBelief, float]:
        """Update step: the belief given a frame y too, and an estimate of log p(y | earlier frames)."""
        after, increment = updated(self.model, belief, y, inputs)
        if increment == -np.inf:
            warn(f"{ME}: all paths have likelihood 0 at frame {belief.time}, and the belief stays unchanged")
        return after, increment

    # ------------------------------------------------------------------ paths

    def _survivors(self, belief: SwitchingBelief) -> tuple[Index, Array]:
        """Sorted indices of the Gaussians that are continued, and their log-weights."""
        n, rng = self.n_particles, keyed(belief.seed, belief.time + 1, CHOOSE)
        if self._scheme == "optimal":
            return thinned(belief.log_weights, n, rng.random())
        if self.proposal == "optimal" and belief.particle is not None:
            at, begins, logs = _particles(belief)
            each = np.exp(logs)
            if len(each) <= n and not is_poor(1.0 / float((each * each).sum()), n, self.ess_threshold):
                return _successors(belief, at, begins, rng.random(len(each))), logs
        elif self.proposal == "prior" and not is_poor(belief.ess, n, self.ess_threshold):
            return np.arange(len(belief)), belief.log_weights
        chosen = resampled(self._scheme, belief.weights, n, rng)
        return chosen, np.full(n, -np.log(n))

    def _continued(self, belief: SwitchingBelief, chosen: Index, logs: Array) -> tuple[Index, Index, Array]:
        """The particle, regime and log-weight of every successor."""
        K, now = self.model.n_regimes, belief.which[chosen]
        if self.proposal == "prior":
            reach = np.cumsum(self.model.transition, axis=1)[now]
            u = keyed(belief.seed, belief.time + 1, MOVE).random(len(chosen)) * reach[:, -1]
            which = (u[:, None] >= reach).sum(axis=1).astype(np.int64)
            return np.arange(len(chosen)), which, np.array(logs)
        after = (logs[:, None] + self.model.log_transition[now]).ravel()
        there = np.flatnonzero(after > -np.inf)
        return there // K, (there % K).astype(np.int64), after[there]

    # -------------------------------------------------------------- sequences

    def run(self, y: SequencesLike, inputs: SequencesLike | None = None, keep: bool = False) -> Any:
        """Filter one sequence, or many.

        Parameters
        ----------
        y : array-like (T, p) or sequences
            Observations; NaN is a missing value.
        keep : bool, default False
            Keep all beliefs: `run.regime_smoothed(lag)` tells the regimes from frames up to `lag` later.

        Returns
        -------
        SwitchingRun or list of SwitchingRun
            The result; one per sequence.
        """
        seqs, alone = Ragged.of(y), is_single_sequence(y)
        known = [None] * len(seqs) if inputs is None else list(Ragged.of(inputs).map(table))
        if len(known) != len(seqs):
            raise DomainError(sentence(ME, f"inputs of {len(seqs)} sequences are needed", len(known)))
        runs = [self._run(frames, known[i], seed_of(self.random_state, i), keep) for i, frames in enumerate(seqs)]
        return runs[0] if alone else runs

    def filter(self, y: SequencesLike, inputs: SequencesLike | None = None, keep: bool = False) -> Any:
        """Same as `run`, under the name used by models.

        Parameters
        ----------
        keep : bool, default False
            Keep all beliefs.

        Returns
        -------
        SwitchingRun or list of SwitchingRun
            The result; one per sequence.
        """
        return self.run(y, inputs, keep)

    def _run(self, frames: Any, inputs: Any, seed: int, keep: bool) -> SwitchingRun:
        belief, rows, history = self._initial(seed), [], []
        for t in range(len(frames)):
            u = None if inputs is None else inputs[t]
            belief = self.predict(belief, u) if t else belief
            belief, increment = self.update(belief, frames[t], u)
            rows.append((belief.regimes, belief.mean, belief.covariance, increment, belief.ess))
            if keep:
                history.append((belief.which, belief.log_weights, belief.parents))
        return run_of(rows, belief, history if keep else None)

    def log_prob(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Array:
        """Estimate of the log-likelihood log p(y) per sequence (n,)."""
        runs = self.run(y, inputs)
        return np.array([r.log_evidence for r in ([runs] if isinstance(runs, SwitchingRun) else runs)])


def _some(belief: SwitchingBelief, index: Index, logs: Array) -> SwitchingBelief:
    """Some of the Gaussians, with other weights."""
    return belief.replace(
        means=belief.means[index], roots=belief.roots[index], which=belief.which[index], log_weights=logs
    )


def thinned(logs: Array, n: int, u: float) -> tuple[Index, Array]:
    """Optimal resampling: at most n of the weighted paths, unbiased in their weights (Fearnhead and Clifford 2003).

    With c such that Σ min(W_i / c, 1) = n, weights above c are kept; of the others n − (number kept) are drawn in
    proportion to W by one uniform number, with weight c each.

    >>> thinned(np.log([0.5, 0.2, 0.2, 0.1]), 3, 0.5)[0].tolist()
    [0, 1, 2]
    """
    alive = np.flatnonzero(logs > -np.inf)
    if len(alive) <= n:
        return alive, logs[alive]
    w = np.exp(logs[alive] - logs[alive].max())
    order = np.argsort(-w, kind="stable")
    rest = np.cumsum(w[order][::-1])[::-1]  # of weights from the i-th largest on
    kept = int(np.argmax(w[order[:n]] * (n - np.arange(n)) <= rest[:n] * (1.0 + 1e-12)))
    c = rest[kept] / (n - kept)
    small = np.sort(order[kept:])
    reach = np.cumsum(w[small])
    points = (np.arange(n - kept) + u) * (reach[-1] / (n - kept))
    picked = small[np.minimum(np.searchsorted(reach, points, side="right"), len(small) - 1)]
    after = np.zeros_like(w)
    after[order[:kept]] = w[order[:kept]]
    np.add.at(after, picked, c)
    chosen = np.flatnonzero(after)
    return alive[chosen], np.log(after[chosen] / after.sum())


def _particles(belief: SwitchingBelief) -> tuple[Index, Index, Array]:
    """Indices of the Gaussians of positive weight, offsets of the particles among them, the particles' log-weights.

    All in the log domain: without resampling the weights of particles underflow.
    """
    at = np.flatnonzero(belief.log_weights > -np.inf)
    logs, particle = belief.log_weights[at], np.asarray(belief.particle)[at]
    begins = np.flatnonzero(np.append(True, particle[1:] != particle[:-1]))
    return at, begins, np.logaddexp.reduceat(logs, begins)


def _successors(belief: SwitchingBelief, at: Index, begins: Index, u: Array) -> Index:
    """One Gaussian per particle, drawn in proportion to their weights, in the order of particles."""
    logs, final = belief.log_weights[at], np.append(begins[1:], len(at)) - 1
    top = np.repeat(np.maximum.reduceat(logs, begins), final - begins + 1)
    reach = np.cumsum(np.exp(logs - top))
    before = np.append(0.0, reach[final[:-1]])
    found = np.searchsorted(reach, before + u * (reach[final] - before), side="right")
    return at[np.clip(found, begins, final)]

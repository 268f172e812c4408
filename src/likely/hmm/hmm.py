"""Hidden Markov model with any emission distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import (
    Array,
    BadEntry,
    Index,
    SequencesLike,
    check_integer,
    checked_labels,
    parameter,
    unmasked,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Block, Blocks
from likely.core.columns import Columns
from likely.core.covariates import COVARIATES, FRAMES, frames_of, table, with_covariates
from likely.core.description import counted
from likely.core.engine import Threads
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.ragged import BadFrame, Ragged, is_single_sequence, single_sequence
from likely.core.value import Value
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.distribution import Distribution
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.stack_statistics import joined
from likely.distributions.stacks.tied import one_covariance, untied
from likely.hmm import decoding, viterbi
from likely.hmm.baum_welch import e_step, in_double, m_step
from likely.hmm.decoding import Forecast, Smoothed, belief_over
from likely.hmm.forward_backward import log_likelihoods, scaled_or_log, stacked
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.logistic_transition import LogisticTransition
from likely.hmm.markov_chain import SUM_TO_ONE, Arcs, Chain, check_chain
from likely.hmm.path_sampling import emitted, sample_driven_paths, sample_paths, sample_states
from likely.hmm.sequence_blocks import PIECE, SequenceBlocks
from likely.hmm.viterbi import Path
from likely.mixture.embedding import by_thirds, embedded


@dataclass(frozen=True, eq=False)
class HMM(Distribution):
    """Hidden Markov model with any emission density.

    p(x) = Σ over paths s of p(s₁) p(x₁ | s₁) Π p(s_t | s_{t−1}) p(x_t | s_t)   (Herbst 9.4, Ney 7.2).

    A sample is a sequence of frames: `Ragged`, a list of arrays, or one array; the first state emits, too. Where
    `initial` and `transition` are longer than the stack of emissions, the last states are *null states*, which emit
    nothing and take no time. A leading axis C makes a stack of C chains over one stack of C·K emissions.

    `transition` may be a `LogisticTransition`: transition probabilities that depend on covariates (input–output HMM),
    in a single chain without null states and `final`. A sample is then a sequence of frames with covariates: methods
    take `covariates` of the same form as x, or both together, by `with_covariates(x, u)`. The model is conditional on
    the covariates: `log_prob` is log p(x | u). Those of a sequence's first frame have no effect; elsewhere a missing
    one is an error. Learning is then a generalized EM: each step maximizes a lower bound of the transition
    log-likelihood, so the likelihood never decreases   (Böhning 1992).

    Time-varying transition probabilities are an argument: `transition` (T, K, K) of `log_prob`, `posterior`, `smooth`,
    `viterbi` and `k_best` replaces that of the model; matrix t leads into frame t, and the first one has no effect.

    Parameters
    ----------
    initial : array-like (N,)
        Initial distribution.
    transition : array-like (N, N) or LogisticTransition
        Transition matrix: row j is p(next state | state j).
    emission : density
        Stack of K members: state k emits from member k. The other N − K states are null states.
    final : array-like (N,), optional
        Exit probabilities, so that the lengths of sequences are modeled; without them, a sequence may stop anywhere.

    See Also
    --------
    HMMDensity : Fits an HMM to sequences.
    LogisticTransition : Transitions that depend on covariates.

    References
    ----------
    Rabiner (1989); Bishop (2006), chapter 13; Murphy (2012), chapter 17; Ney, lecture notes, 7.2; Herbst and du Preez,
    lecture notes, 9.4.

    Examples
    --------
    >>> import likely as lk
    >>> h = HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> h.viterbi([0.1, -0.3, 4.8, 5.2]).states
    array([0, 0, 1, 1])
    >>> rain = lk.hmm.LogisticTransition([[[0.0, 0.0], [-4.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]]])  # u = 1: state 0 ends
    >>> h = HMM([1.0, 0.0], rain, lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> h.forecast([0.1, -0.2], 1, covariates=[1.0], past=[0.0, 0.0]).states.round(2)
    array([[0.02, 0.98]])
    """

    initial: Annotated[Array, declared.numbers("* N", 0)]  # (N,), or (C, N) for a stack
    # (N, N), or (C, N, N), or a LogisticTransition
    transition: Annotated[Any, declared.either(declared.numbers("* N N", 0), declared.of_class("LogisticTransition"))]
    emission: Annotated[Any, declared.distribution]  # a stack of K, or C·K, members; the other N − K states are null
    # (N,), or (C, N): to the exit
    final: Annotated[Array | None, declared.maybe(declared.numbers("* N", 0))] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.transition, LogisticTransition):
            return self._check_logistic()
        initial, transition = parameter(self.initial, "HMM", "initial"), parameter(self.transition, "HMM", "transition")
        final = None if self.final is None else parameter(self.final, "HMM", "final")
        C, N = (1, *initial.shape)[-2:] if initial.ndim in (1, 2) else (0, 0)
        size = getattr(self.emission, "members", None)
        if not N or transition.shape != (*initial.shape, N) or (final is not None and final.shape != initial.shape):
            expected = "initial (N,), transition (N, N) and final (N,) must have matching shapes"
            raise ShapeError(
                sentence("HMM", expected, [initial.shape, transition.shape, None if final is None else final.shape])
            )
        if size is None or size % C or not 0 < size // C <= N:
            expected = f"emission must be a stack of at most {N} members per chain, one for each emitting state"
            raise ShapeError(sentence("HMM", expected, f"{size} members for {C} chains"))
        self._set(initial=initial, transition=transition, final=final)
        for chain in self.chains:
            check_chain(chain.initial, chain.transition, chain.final, chain.states)

    def _check_logistic(self) -> None:
        initial, K = parameter(self.initial, "HMM", "initial"), self.transition.states
        size = getattr(self.emission, "members", None)
        if initial.shape != (K,) or size != K:
            expected = f"transitions of {K} states need initial ({K},) and a stack of {K} emissions, no null states"
            raise ShapeError(sentence("HMM", expected, [initial.shape, size]))
        if self.final is not None:
            remedy = "leave final=None: sequences may stop anywhere"
            raise DomainError(sentence("HMM", "final probabilities need constant transitions", "final", remedy))
        if (initial < 0).any() or abs(initial.sum() - 1) > SUM_TO_ONE:
            raise DomainError(sentence("HMM", "initial must not be negative and must sum to 1", initial.tolist()))
        self._set(initial=initial)

    # ------------------------------------------------------------------ shape

    @property
    def is_logistic(self) -> bool:
        """True if transitions depend on covariates."""
        return isinstance(self.transition, LogisticTransition)

    @property
    def members(self) -> int | None:
        """Number of chains C in a stack; None for one."""
        return len(self.initial) if self.initial.ndim == 2 else None

    @property
    def states(self) -> int:
        """Number of emitting states K of a chain."""
        return int(self.emission.members) // (self.members or 1)

    @property
    def dim(self) -> int:
        """Number of columns of a frame."""
        return int(self.emission.dim)

    @property
    def n_covariates(self) -> int:
        """Number of covariates p that transitions depend on; 0 where they are constant."""
        return self.transition.n_covariates if isinstance(self.transition, LogisticTransition) else 0

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of the emissions, the initial distribution, transitions and final probabilities."""
        if self.is_logistic:
            free_initial = int((self.initial > 0).sum()) - 1
            return int(self.emission.n_parameters) + free_initial + int(self.transition.n_parameters)
        free = [(chain.initial > 0)[None].sum() - 1 for chain in self.chains]
        for chain in self.chains:
            on = (chain.transition > 0).sum(axis=1) + (0 if chain.final is None else chain.final > 0)
            free.append(np.maximum(on - 1, 0).sum())
        return int(self.emission.n_parameters) + int(sum(free))

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the emissions' covariances, where they have any."""
        return getattr(self.emission, "smallest_eigenvalue", None)

    def member(self, c: int) -> HMM:
        """One chain of a stack.

        Parameters
        ----------
        c : int
            Number of the chain, from 0.

        Returns
        -------
        HMM
            The chain.
        """
        at = np.arange(c * self.states, (c + 1) * self.states)
        return HMM.trusted(
            initial=self.initial[c].copy(), transition=self.transition[c].copy(), emission=self.emission.take(at),
            final=None if self.final is None else self.final[c].copy(),
        )  # fmt: skip

    def take(self, index: Any) -> HMM:
        """Some chains of the stack, as a stack."""
        if self.members is None:
            raise DomainError(sentence("HMM.take", "a stack of chains is needed", "one chain"))
        at = (np.asarray(index)[:, None] * self.states + np.arange(self.states)).ravel()
        return HMM.trusted(
            initial=self.initial[index], transition=self.transition[index], emission=self.emission.take(at),
            final=None if self.final is None else self.final[index],
        )  # fmt: skip

    @cached_property
    def chains(self) -> list[Chain]:
        """The Markov chain of each member, without its emissions; transitions are constant."""
        if self.is_logistic:
            raise DomainError(sentence("HMM", "constant transitions are needed here", "a LogisticTransition"))
        final = [None] * (self.members or 1) if self.final is None else self.final.reshape(-1, self.initial.shape[-1])
        initial, K = self.initial.reshape(-1, self.initial.shape[-1]), self.states
        transition = self.transition.reshape(len(initial), *self.transition.shape[-2:])
        parts = zip(initial, transition, final, strict=True)
        return [
            Chain.trusted(
                initial=np.array(s), transition=np.array(m), final=None if e is None else np.array(e), states=K
            )
            for s, m, e in parts
        ]

    @cached_property
    def _member_list(self) -> list[HMM]:
        return [self.member(c) for c in range(self.members)] if self.members else [self]

    @cached_property
    def _arcs(self) -> tuple[list[Arcs], tuple[Array, ...]]:
        """The arcs between emitting states of each chain, and all of them as arrays."""
        chains = [chain.summed for chain in self.chains]
        return chains, stacked(chains)

    def in_words(self) -> str:
        """The number of states, and the kind of the emission."""
        return f"a hidden Markov model of {counted(self.states, 'state')}; each emits {self.emission.in_words()}"

    def mean_durations(self) -> Array:
        """The expected number of frames (K,) in each emitting state before the chain leaves it."""
        with np.errstate(divide="ignore"):
            return 1.0 / (1.0 - np.minimum(np.diag(self.chains[0].summed.transition), 1.0))

    def member_facts(self, k: int) -> dict[str, str]:
        """The mean durations of the states of a member, where transitions are constant."""
        if self.is_logistic:
            return {}
        stays = self.member(k).mean_durations()[:8]
        more = " …" if self.states > len(stays) else ""
        return {"mean durations (frames)": ", ".join(f"{stay:.3g}" for stay in stays) + more}

    def _require_one(self, doing: str) -> None:
        if self.members is not None:
            expected = f"{doing} needs a single chain"
            raise DomainError(sentence("HMM", expected, f"a stack of {self.members}", "take member(c) first"))

    def _data(self, doing: str, x: Any, covariates: Any, transition: Any = None, **options: Any) -> SequenceBlocks:
        """The sequences of a call that needs a single chain."""
        self._require_one(doing)
        return SequenceBlocks.of(self, x, covariates, transition, **options)

    # ---------------------------------------------------------------- density

    def log_prob(
        self, x: SequencesLike, covariates: SequencesLike | None = None, *, transition: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        """Log-likelihood log p(x) of each sequence.

        Returns
        -------
        ndarray (n,)
            Log-likelihoods; (n, C) for a stack of C chains.
        """
        data = SequenceBlocks.of(self, x, covariates, transition)
        out = np.empty((len(data.frames), self.members or 1))

        def fill(a: int, b: int) -> None:
            if data.is_cut(a, b):
                out[a] = [_log_prob_in_pieces(data._replace(model=one), a) for one in self._member_list]
            elif data.is_varying:
                part = data.block(a, b)
                out[a:b] = log_likelihoods([part.arcs], part.logs, part.seqs.offsets)
            else:
                chains, stack = self._arcs
                seqs = data.frames if b - a == len(out) else data.frames[a:b]
                out[a:b] = log_likelihoods(chains, self.scores(seqs, a), seqs.offsets, stack)

        data.fill(fill)
        out = out if self.members else out[:, 0]
        return out.astype(np.float32) if data.frames.dtype == np.float32 else out

    def scores(self, seqs: Ragged, before: int = 0) -> Array:
        """Emission log-likelihoods log p(x_t | state) of all frames under all states (T, C·K), as a new array.

        Parameters
        ----------
        seqs : Ragged
            Sequences.
        before : int, default 0
            Number of sequences before these, for the numbers in error messages.

        Returns
        -------
        ndarray (T, C·K)
            Log-likelihoods, one row per frame.
        """
        try:
            logs = self.emission.log_prob(in_double(seqs.values))
        except BadEntry as error:
            raise BadFrame.of(error, seqs.offsets).after(before) from None
        own = isinstance(logs, np.ndarray) and logs.dtype == np.float64
        if own and logs.flags.owndata and logs.flags.writeable and logs.flags.c_contiguous:
            return logs  # not shared
        return np.array(logs, dtype=np.float64, order="C")

    def sample(
        self, n: int, rng: Generator, length: ArrayLike | None = None, *, covariates: SequencesLike | None = None
    ) -> Any:
        """Sample n sequences (a Ragged): until the chain exits, or of the given `length`, a number or one per sequence.

        For a stack, a list with the sequences of each chain. Where transitions depend on covariates, these are n
        sequences (T_i, p), or a single one (T, p) for all, and both are returned together, as by `with_covariates`:
        `result[i]["frames"]` (T_i, d) and `result[i]["covariates"]` (T_i, p).

        Parameters
        ----------
        covariates : sequences, optional
            Covariates (T_i, p) of each sequence, or (T, p) for all.

        Returns
        -------
        Ragged
            Sequences; a list of them for a stack; frames and covariates where transitions depend on these.
        """
        if self.members is not None:
            return [one.sample(n, rng, length) for one in self._member_list]
        if self.is_logistic:
            u = _covariates_to_sample(covariates, n, length)
            paths = sample_driven_paths(self.initial, self.transition, u, rng)
            return with_covariates(emitted(self.emission, paths, rng), u)
        if length is not None:
            length = _lengths(length)
        return emitted(self.emission, sample_paths(self.chains[0], n, rng, length), rng)

    # --------------------------------------------------------------- decoding

    def viterbi(
        self, x: SequencesLike, covariates: SequencesLike | None = None, *, transition: ArrayLike | None = None,
    ) -> Path:  # fmt: skip
        """Viterbi path: `states` (T,) and `log_prob`; for many sequences a Ragged and (n,).

        For an impossible sequence, log_prob is −inf and every state −1.

        Returns
        -------
        Path
            The path and its joint log-probability.
        """
        data = self._data("viterbi", x, covariates, transition, best=True)
        states, score = viterbi.viterbi(data)
        return Path(states, float(score[0])) if is_single_sequence(x) else Path(Ragged(states, data.offsets), score)

    def k_best(
        self, x: SequencesLike, k: int, covariates: SequencesLike | None = None, *, transition: ArrayLike | None = None
    ) -> list[Path]:
        """The k most probable paths of one sequence, best first; fewer where fewer are possible.

        Parameters
        ----------
        k : int
            Number of paths.

        Returns
        -------
        list of Path
            Paths with their joint log-probabilities.
        """
        k = check_integer(k, "HMM.k_best", "k", 1)
        data = self._data("k_best", x, covariates, transition, best=True)
        single_sequence(data.frames, "HMM.k_best")
        return viterbi.k_best(data, k)

    def posterior(
        self, x: SequencesLike, lag: int | None = None, covariates: SequencesLike | None = None, *,
        transition: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Smoothed probabilities p(s_t | x) of every frame (T, K), a Ragged for many sequences.

        With a `lag` (fixed-lag smoothing) they are conditional on x_1 … x_{t + lag} only.

        `lag=0` gives the filtered (causal) probabilities. A frame that is impossible after those before it counts as
        missing, as in `lk.step`, with a warning; so it changes nothing before it (with `lag=0`), and in no other
        sequence. Where a chain must have exited, no state is possible: all probabilities are 0.

        Returns
        -------
        ndarray (T, K) or Ragged
            Probabilities of the states.
        """
        if lag is not None:
            lag = _integer_lag(lag)
        data = self._data("posterior", x, covariates, transition)
        if lag is not None:
            lag = min(lag, int(data.frames.lengths.max(initial=0)))
        out = decoding.smoothed(data, lag).states
        return out if is_single_sequence(x) else Ragged(out, data.offsets)

    def predictive_log_prob(
        self, x: SequencesLike, covariates: SequencesLike | None = None, *, transition: ArrayLike | None = None
    ) -> Any:
        """Predictive log-likelihood log p(x_t | x_1 … x_{t−1}) of every frame; its sum is `log_prob`.

        If the model has `final` probabilities, a frame has the probability of going on to it, too, and the last one
        that of ending there. Frames after an impossible one are not defined.

        Returns
        -------
        ndarray (T,) or Ragged
            Log-likelihoods per frame; a Ragged for many sequences.

        Examples
        --------
        >>> import likely as lk, numpy as np
        >>> h = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [4.0]], 1.0))
        >>> each = h.predictive_log_prob([0.1, 0.2, 3.9])
        >>> bool(np.isclose(each.sum(), h.log_prob([[0.1, 0.2, 3.9]])[0]))
        True
        """
        data = self._data("predictive_log_prob", x, covariates, transition)
        out = decoding.predictive_log_prob(data)
        return out if is_single_sequence(x) else Ragged(out, data.offsets)

    def smooth(
        self, x: SequencesLike, covariates: SequencesLike | None = None, *, transition: ArrayLike | None = None,
    ) -> Smoothed:  # fmt: skip
        """Forward–backward algorithm: `states`, as `posterior` gives them, and `log_prob` of the sequence.

        Returns
        -------
        Smoothed
            Probabilities (T, K) of the states, and the log-likelihood; for many sequences a Ragged and (n,).
        """
        data = self._data("smooth", x, covariates, transition)
        out, total = decoding.smoothed(data, None)
        return Smoothed(out, float(total[0])) if is_single_sequence(x) else Smoothed(Ragged(out, data.offsets), total)

    def sample_states(self, x: SequencesLike, rng: Generator, covariates: SequencesLike | None = None) -> Index:
        """Sample one state path per sequence from p(s | x), concatenated (T,).

        Returns
        -------
        ndarray of int (T,)
            States of all frames.
        """
        return sample_states(self._data("sample_states", x, covariates), rng)

    def forecast(
        self, x: SequencesLike, steps: int = 1, covariates: ArrayLike | None = None, past: SequencesLike | None = None
    ) -> Forecast:
        """Forecast of states and observations 1 … steps frames after a sequence, or after a belief state.

        Where transitions depend on covariates, `covariates` (steps, p) are those to come, (steps,) for one; `past` (T,
        p) are those of x, unless x has its own. In the result `states` is (steps, K), `mean` (steps, d), and
        `result[i]` the density of the observation i + 1 frames ahead.

        Parameters
        ----------
        x : sequence or Categorical
            The sequence so far, or a belief: the distribution of its last state.
        covariates : array-like (steps, p), optional
            Covariates to come.
        past : array-like (T, p), optional
            Covariates of x, unless x has its own.

        Returns
        -------
        Forecast
            Distributions of the states and of the observations.
        """
        steps = check_integer(steps, "HMM.forecast", "steps", 1)
        if not self.is_logistic:
            matrices = [self.chains[0].summed.transition] * steps
        elif covariates is None or len(np.atleast_1d(covariates)) != steps:
            got = "none" if covariates is None else len(np.atleast_1d(covariates))
            raise ShapeError(sentence("HMM.forecast", f"the covariates of {steps} frames to come are needed", got))
        else:
            matrices = list(self.transition.matrices(covariates))
        if isinstance(x, Categorical):
            return decoding.forecast(self.emission, belief_over(x, self.states), matrices)
        return decoding.forecast(self.emission, decoding.last_filter(self._data("forecast", x, past)), matrices)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> Categorical:
        """Belief state before any frame: the initial distribution."""
        self._require_one("initial_belief")
        return _over_states(self.initial if self.is_logistic else self.chains[0].summed.initial)

    def predict(self, belief: Any, covariates: SequencesLike | None = None) -> Any:
        """Prediction step of the filter: the state one frame later, given that the sequence goes on.

        Where transitions depend on covariates, those (p,) of the frame to come; without them the transition is due, and
        `update` makes it.

        Parameters
        ----------
        covariates : array-like (p,), optional
            Covariates of the frame to come.
        """
        if not self.is_logistic:
            _refuse_inputs(covariates)
            return _over_states(belief_over(belief, self.states) @ self.chains[0].summed.transition)
        if isinstance(belief, PendingTransition):
            expected = "a transition is due already: its covariates must be known before the next"
            raise DomainError(sentence("HMM", expected, "another", "predict(belief, covariates)"))
        due = PendingTransition.trusted(probs=belief_over(belief, self.states))
        return due if covariates is None else self._made(due, covariates)

    def _made(self, due: PendingTransition, covariates: Any) -> Categorical:
        u = np.asarray(covariates, dtype=np.float64).reshape(1, -1)
        return Categorical.trusted(probs=due.probs @ self.transition.matrices(u)[0], levels=None)

    def update(self, belief: Any, y: ArrayLike, covariates: SequencesLike | None = None) -> tuple[Any, float]:
        """Update step of the filter: the belief state given frame y, and log p(y | all before).

        Where transitions depend on covariates, `covariates` (p,) are those of the transition into y; without them y is
        a pair of both, or Columns of "frames" and "covariates". An impossible frame leaves the belief unchanged.

        Parameters
        ----------
        covariates : array-like (p,), optional
            Covariates of the transition into y.
        """
        if not self.is_logistic:
            _refuse_inputs(covariates)
        else:
            y, covariates = _observation(y, self.n_covariates) if covariates is None else (y, covariates)
            belief = self._made(belief, covariates) if isinstance(belief, PendingTransition) else belief
        logs = self.emission.log_prob(y if isinstance(y, Columns) else _one_frame(y, self.dim))[0]
        top = float(logs.max())
        if np.isneginf(top):
            return belief, top
        joint = belief.probs * np.exp(logs - top)
        total = float(joint.sum())
        if total < 1e-200:  # the states with high likelihood are impossible here
            return _updated_by_logs(belief, logs)
        return Categorical.trusted(probs=joint / total, levels=None), top + float(np.log(total))

    # --------------------------------------------------------------- learning

    of_sequences = True
    hides_labels = True  # so that `fit(hard=True)` can use the Viterbi path of each sequence

    @property
    def takes_parts(self) -> bool:
        """`collect` splits blocks itself, at the ends of sequences; with covariates blocks are small anyway."""
        return not self.is_logistic

    def collect(
        self, x: SequencesLike, weight: ArrayLike | None = None, labels: Index | None = None,
        log_mask: ArrayLike | None = None, hard: bool = False, covariates: SequencesLike | None = None,
    ) -> HMMStats:  # fmt: skip
        """E-step of Baum–Welch: expected counts of initial, transition and final states, and emission statistics.

        Parameters
        ----------
        labels : array-like of int (n,), optional
            In a stack, the chain of each sequence.
        log_mask : sequences, optional
            Known states: numbers (T_i,), −1 where unknown, or log-masks (T_i, K).
        hard : bool, default False
            Use the Viterbi path alone (Viterbi training).

        Returns
        -------
        HMMStats
            Expected counts; those of two sets of sequences add.
        """
        data = SequenceBlocks.of(self, x, covariates, best=hard, hard=hard)
        n = len(data.frames)
        w = weights(weight, n, "HMM")
        if w is not None and w.ndim == 2 and (self.members is None or w.shape[1] != self.members):
            raise ShapeError(sentence("HMM", f"weight must have one entry per sequence ({n})", w.shape))
        if log_mask is not None:
            data = data._replace(known=known_states(log_mask, data.frames, self.states))
        w = np.ones(n) if w is None else w
        if self.members is None:
            return self._collect(data, w)
        owner = None if labels is None else checked_labels(labels, n, self.members, "HMM")
        out = []
        for c, one in enumerate(self._member_list):
            own, at = w if w.ndim == 1 else w[:, c], slice(0, n) if owner is None else np.flatnonzero(owner == c)
            out.append(one._collect(data._replace(model=one).take(at), own[at]).as_stack())
        return self.joined_stats(out)

    def _collect(self, data: SequenceBlocks, w: Array) -> HMMStats:
        """Statistics of one chain: of the sequences with weight, many of them on all cores."""
        if not (w > 0).all():
            kept = np.flatnonzero(w > 0)
            return _numbered(lambda: self._collect(data.take(kept), w[kept]), kept)
        if len(data.frames.values) <= ROWS * BLOCKS or len(data.frames) == 1:
            return e_step(data, w)

        def part(block: Block) -> HMMStats:
            at = slice(block.start, block.start + len(block))
            return e_step(data.take(at), w[at])

        return Threads().total(part, Blocks.of(data.frames).whole())

    def _best_scores(self, seqs: Ragged) -> Array:
        """Scores of frames where emissions that are mixtures count by their best component."""
        best = getattr(self.emission, "best_log_prob", None)
        return self.scores(seqs) if best is None else best(in_double(seqs.values))

    def best_log_prob(self, x: SequencesLike) -> Array:
        """Joint log-probability of the Viterbi path, and of the best components: (n,), or (n, C) for a stack.

        Parameters
        ----------
        x : sequences
            A Ragged, a list of arrays (T_i, d), or one array (T, d).

        Returns
        -------
        ndarray (n,)
            Log-probabilities; (n, C) for a stack.
        """
        data = [SequenceBlocks.of(one, x, best=True, hard=True) for one in self._member_list]
        out = [viterbi.viterbi(one).log_prob for one in data]
        return np.stack(out, axis=1) if self.members else out[0]

    def joined_stats(self, parts: list[HMMStats]) -> HMMStats:
        """Statistics of several groups of members as one stack."""
        names = ("initial", "transition", "final", "counts", "entropy")
        arrays = {name: np.concatenate([getattr(s, name) for s in parts]) for name in names}
        inner = joined(self.emission, [s.emission for s in parts])
        return HMMStats.trusted(**arrays, emission=inner, seen=all(s.seen for s in parts))

    def refit(self, stats: HMMStats, prior: AnyPrior | None = None) -> HMM:
        """M-step of Baum–Welch: relative frequencies (or posterior mode) of transitions, and the emissions' M-step.

        An impossible transition stays impossible; a state that was never left keeps its transition probabilities.
        """
        return m_step(self, stats, prior)

    def objective(self, stats: HMMStats, prior: Any = None) -> float:
        """Expected complete-data log-likelihood + entropy of the hidden states + log prior: the EM lower bound."""
        value = float(np.sum(stats.entropy)) + float(
            self.emission.objective(stats.emission, None if prior is None else prior.emission)
        )
        if self.is_logistic:
            value += self.transition.expected_log(stats.transition) + float(xlogy(stats.initial, self.initial).sum())
        else:
            for c, chain in enumerate(self.chains):
                value += chain.expected_log(_uses_of(stats, c if self.members else None, chain.states))
        return value + (0.0 if prior is None else prior.log_density_of_transitions(self))

    @property
    def log_smoothing(self) -> float:
        """The smoothing term of the emissions."""
        return float(getattr(self.emission, "log_smoothing", 0.0))

    def weak_prior(self, stats: HMMStats) -> Any:
        """Weak prior: one pseudo-count per state and for the initial distribution, spread over possible transitions.

        Effects of covariates are moderate: one standard deviation changes log-odds by about 2.5.
        """
        from likely.hmm.priors import HMMPrior

        return HMMPrior.weak(self, untied(self.emission).weak_prior(self.for_prior(stats)), stats=stats)

    def for_prior(self, stats: HMMStats) -> Any:
        """The emissions' statistics that scale a weak prior; those of an initialization are pooled first."""
        if stats.seen or self.states == 1 or hasattr(untied(self.emission), "for_prior"):
            return stats.emission
        tied = untied(self.emission) is not self.emission
        return softened(stats.emission, 1 if tied else self.members or 1, one_covariance(self.emission))


@dataclass(frozen=True, eq=False)
class PendingTransition(Value):
    """Belief state of an HMM whose next transition waits for its covariates.

    Parameters
    ----------
    probs : array-like (K,)
        Probabilities of the states before the transition.

    Examples
    --------
    >>> PendingTransition(np.array([0.5, 0.5])).probs
    array([0.5, 0.5])
    """

    probs: Annotated[Array, declared.numbers("K", 0)]  # (K,): before the transition


def known_states(given: Any, seqs: Ragged, states: int) -> Ragged:
    """Validate known states of all frames: numbers (T,), −1 for unknown, or log-masks (T, K)."""
    known = Ragged.of(given)
    if (known.offsets.shape != seqs.offsets.shape) or (known.offsets != seqs.offsets).any():
        expected = "known states must have one entry per frame of each sequence"
        raise ShapeError(sentence("HMM", expected, f"{known!r} for {seqs!r}"))
    values: NDArray[Any] = known.values
    if values.ndim == 2 and values.shape[1] == states and values.dtype.kind == "f":
        pieces = (values[a : a + PIECE] for a in range(0, len(values), PIECE))  # the memory of one piece
        if not all(((piece == 0) | np.isneginf(piece)).all() for piece in pieces):
            raise DomainError(
                sentence("HMM", "a log-mask must be 0 where a state is possible, −inf where not", "others")
            )
        return known
    if values.size and (
        values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < -1 or values.max() >= states
    ):
        expected = f"known states must be 0 … {states - 1}, −1 where unknown, or log-masks of {states} columns"
        raise DomainError(sentence("HMM", expected, f"{values.dtype} {values.shape}"))
    return Ragged.trusted(values=values.astype(np.intp, copy=False).reshape(-1), offsets=seqs.offsets)


def masks(given: Any, seqs: Ragged, states: int) -> Ragged:
    """Known states as log-masks (T, K): 0 where a state is possible, −inf where not."""
    known = known_states(given, seqs, states)
    if known.values.ndim == 2:
        return known
    table = np.concatenate([np.where(np.eye(states, dtype=bool), 0.0, -np.inf), np.zeros((1, states))])
    return Ragged.trusted(values=table[known.values], offsets=seqs.offsets)


def _numbered(collect: Callable[[], HMMStats], at: Index) -> HMMStats:
    """Statistics of the sequences `at`, with their numbers in error messages."""
    try:
        return collect()
    except BadFrame as error:
        raise BadFrame(error.details, int(at[error.row]), error.frame) from None


def _uses_of(stats: HMMStats, c: int | None, states: int) -> Chain:
    pick: Callable[[Array], Array] = (lambda a: a) if c is None else (lambda a: a[c])
    return Chain.trusted(
        initial=pick(stats.initial), transition=pick(stats.transition), final=pick(stats.final), states=states
    )


def _over_states(probs: Array) -> Categorical:
    total = probs.sum()  # 0 where a chain must have exited: no state is possible, and any frame has log p −inf
    return Categorical.trusted(probs=probs / total if total > 0 else np.zeros(len(probs)), levels=None)


def _updated_by_logs(belief: Categorical, logs: Array) -> tuple[Categorical, float]:
    joint = np.log(belief.probs, where=belief.probs > 0, out=np.full(len(logs), -np.inf)) + logs
    top = float(joint.max())
    if np.isneginf(top):
        return belief, top
    probs = np.exp(joint - top)
    return Categorical.trusted(probs=probs / probs.sum(), levels=None), top + float(np.log(probs.sum()))


def _refuse_inputs(covariates: Any) -> None:
    """Raise an error for inputs of a filter with constant transitions."""
    if covariates is not None:
        remedy = "leave inputs out, or give it transition=LogisticTransition(coefficients)"
        raise DomainError(sentence("HMM", "an HMM with constant transitions takes no inputs", "some", remedy))


def _one_frame(y: Any, dim: int) -> Any:
    """One frame as one row."""
    if isinstance(y, dict):
        return {name: np.asarray(unmasked(part))[None] for name, part in y.items()}
    a = np.asarray(unmasked(y))
    row = a[None] if a.ndim == 0 or (a.ndim == 1 and dim > 1) else a
    if len(row) != 1 or row.ndim > 2:
        raise ShapeError(sentence("HMM", f"one frame of {dim} columns is needed", a.shape, "pass frames one by one"))
    return row


def _observation(y: Any, p: int) -> tuple[Any, Any]:
    """A frame and the covariates (p,) of the transition into it: a pair, or a row of Columns (a dict) with both."""
    if isinstance(y, Columns | dict) and {FRAMES, COVARIATES} <= set(y):
        if isinstance(y, Columns) and len(y) != 1:
            raise ShapeError(sentence("HMM", "an observation is one row", f"{len(y)} rows", "take x[t : t + 1]"))
        return y[FRAMES], y[COVARIATES]
    if isinstance(y, tuple) and len(y) == 2:
        return y
    expected = 'an observation is a pair (frame, covariates), or Columns of "frames" and "covariates"'
    remedy = "lk.step(model, belief, (x, u))" + (", u with one number" if p == 1 else f", u with {p} numbers")
    raise DataError(sentence("HMM", expected, type(y).__name__, remedy))


def _lengths(length: Any) -> Any:
    """Validate lengths of sequences to be sampled: integers, not negative."""
    a = np.asarray(length)
    if a.dtype.kind not in "iu" or a.ndim > 1 or (a < 0).any():
        raise DomainError(
            sentence("HMM.sample", "length must be an integer of frames, or one per sequence", repr(length))
        )
    return a


def _integer_lag(lag: Any) -> int:
    """Validate a lag as a number of frames; covariates in its place get their own message."""
    if np.ndim(lag) or isinstance(lag, Ragged | Columns | list):
        expected, remedy = "the second argument is the lag", "pass covariates by name: covariates=u"
        raise ShapeError(sentence("HMM.posterior", expected, type(lag).__name__, remedy))
    return check_integer(lag, "HMM.posterior", "lag")


def _covariates_to_sample(covariates: Any, n: int, length: Any) -> Ragged:
    """The covariates of n sequences to be sampled: they determine the lengths."""
    if covariates is None or length is not None:
        expected = "covariates are needed for the transitions, and give the lengths"
        remedy = "sample(n, rng, covariates=u)"
        raise DomainError(sentence("HMM.sample", expected, "none" if covariates is None else "length", remedy))
    u = Ragged.of(covariates).map(table)
    u = u[np.zeros(n, dtype=np.intp)] if len(u) == 1 else u
    if len(u) != n:
        raise ShapeError(sentence("HMM.sample", f"covariates of {n} sequences are needed", len(u)))
    return u


def _log_prob_in_pieces(data: SequenceBlocks, i: int) -> float:
    """log p(x) of one long sequence under one chain."""
    return float(scaled_or_log(lambda method: sum(forward.log_prob[0] for _, forward in data.forwards(i, method))))


@embedded.register
def _(distribution: HMM, x: Any, weight: Array) -> Array:
    """Embed a sequence by the embeddings of its frames under the emissions; covariates do not count."""
    x = frames_of(x)
    return by_thirds(embedded(untied(distribution.emission), x.values, x.weights(weight)), x, weight)

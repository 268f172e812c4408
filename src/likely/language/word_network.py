"""Connected-word recognition: word HMMs joined by a bigram language model, decoded by token passing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, Index, Rows, SequencesLike
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import BadFrame, Ragged, is_single_sequence
from likely.core.value import Value
from likely.hmm.hmm import HMM
from likely.hmm.markov_chain import Chain
from likely.language.bigram import Bigram, check_bigram, check_names
from likely.language.token_passing import UnitPath, best_path, forward_pass, k_best_paths, unit_posteriors
from likely.language.transcript import Transcript
from likely.language.word_units import Boundaries, Plan, Units, arc_logs, chained

WHOSE = "WordNetwork"


@dataclass(frozen=True, eq=False, repr=False)
class WordNetwork(Value):
    """Connected-word model p(x, w₁ … w_N) = p(w₁) Π p(w_n | w_{n−1}) p(end | w_N) Π p(x_n | w_n).

    The frames x are segmented into pieces x_n, one per word.

    Parameters
    ----------
    words : HMM or sequence of HMM
        A stack of C HMMs with `final`, or a list of such HMMs, each with as many states as it needs.
    names : sequence of str
        The C words.
    bigram : array-like (C, C) or Bigram, optional
        Probability p(next word | word), or a result of `learn_bigram`; None is uniform. Each row sums to 1
        with its entry of `final`.
    initial : array-like (C,), optional
        Probability of each first word; None is uniform. If it sums to less than 1, the rest is an utterance without
        words.
    final : float or array-like (C,), optional
        Probability p(end of utterance | word). Without it, the rest of rows of `bigram` that sum to less than 1 is
        p(end); where all sum to 1, p(end) is 1 / (C + 1).
    silence : HMM, optional
        HMM with `final` for pauses between words, before and after. It is no word, and the bigram history passes
        through it.
    pause : float, default 0.5
        Probability of silence each time, so that it may be repeated.

    See Also
    --------
    learn_bigram : The bigram of utterances.

    References
    ----------
    Rabiner and Juang (1993); Ney, lecture notes, 7.4.

    Examples
    --------
    >>> import likely as lk
    >>> on, off = (HMM([1.0], [[0.8]], lk.Gaussian([[m]], 1.0), final=[0.2]) for m in (3.0, -3.0))
    >>> heard = WordNetwork([on, off], ["on", "off"]).decode([3.1, 2.7, 2.2, -3.3, -2.9])
    >>> str(heard), heard.begins.tolist(), heard.ends.tolist()
    ('on off', [0, 3], [3, 5])
    """

    words: Annotated[Any, declared.densities]  # an HMM, a stack of C chains; or a tuple of C HMMs
    names: Annotated[tuple[str, ...], declared.texts]
    bigram: Annotated[Any, declared.numbers("C C", 0)] = None  # (C, C)
    initial: Annotated[Any, declared.numbers("C", 0)] = None  # (C,)
    final: Annotated[Any, declared.numbers("C", 0)] = None  # (C,)
    silence: Annotated[HMM | None, declared.maybe(declared.density)] = None
    pause: Annotated[float, declared.number(0)] = 0.5

    def __post_init__(self) -> None:
        words = _listed(self.words)
        count = words.members if isinstance(words, HMM) else len(words)
        names = check_names(self.names, int(count or 0))
        grammar = check_bigram(self.bigram, self.initial, self.final, len(names))
        if not 0 < self.pause < 1:
            raise DomainError(sentence(WHOSE, "pause must be a probability between 0 and 1", self.pause))
        self._set(words=words, names=names, pause=float(self.pause), **grammar._asdict())
        _check_words(self)

    @classmethod
    def of(cls, classifier: Any, bigram: Any = None, **others: Any) -> WordNetwork:
        """The word network of a fitted classifier; labels are names.

        Class priors are replaced by the bigram.

        Parameters
        ----------
        classifier : BayesClassifier
            A fitted classifier of `HMMDensity` with final probabilities.
        bigram : array-like (C, C) or Bigram, optional
            Probability p(next word | word); None is uniform.
        **others : settings
            Further fields by name: `initial`, `final`, `silence`, `pause`.
        """
        words = getattr(getattr(classifier, "model_", None), "components", None)
        if not isinstance(words, HMM):
            expected = "a fitted BayesClassifier with one HMM per class is needed"
            raise DomainError(sentence(f"{WHOSE}.of", expected, type(classifier).__name__))
        return cls(words, tuple(str(label) for label in classifier.classes_), bigram, **others)

    # ------------------------------------------------------------------ shape

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        pause = "" if self.silence is None else ", silence"
        return f"WordNetwork({len(self)} words, {sum(c.states for c in self._chains)} states{pause})"

    @property
    def dim(self) -> int:
        """Number of columns of a frame."""
        return int(_models(self.words)[0].dim)

    @cached_property
    def _chains(self) -> list[Chain]:
        return [chain for part in _models(self.words) for chain in part.chains]

    @cached_property
    def boundaries(self) -> Boundaries:
        """Word boundaries: histories with equal bigram rows."""
        return Boundaries.of(Bigram(self.initial, self.bigram, self.final))

    def word(self, c: int) -> HMM:
        """The HMM of one word.

        Parameters
        ----------
        c : int
            Number of the word.

        Returns
        -------
        HMM
            Its model.
        """
        one: HMM = self.words.member(c) if isinstance(self.words, HMM) else self.words[c]
        return one

    # --------------------------------------------------------------- decoding

    def decode(
        self, x: Rows, beam: float | None = None, penalty: float = 0.0, scale: float = 1.0,
        confidence: bool | float = True,
    ) -> Any:  # fmt: skip
        """Most probable words of a sequence, or of many.

        Parameters
        ----------
        x : array-like (T, d), Ragged or list of arrays
            One sequence, or many.
        beam : float, optional
            Beam pruning: states whose score is more than that below the best one, in nats, are dropped. None is
            exact; where a beam loses all paths to the end, decoding is repeated without.
        penalty : float, default 0.0
            Word insertion penalty, subtracted per word.
        scale : float, default 1.0
            Language model scale: multiplies the logarithms of the bigram, because neighboring frames are correlated and
            the densities overconfident.
        confidence : bool or float, default True
            Sum over all paths under the same scores, without a beam; False saves its time, which is several times that
            of decoding. A number scales the log-likelihood of frames in it: less than 1 for correlated frames (the
            acoustic scale of Wessel, Schlüter, Macherey and Ney 2001).

        Returns
        -------
        Transcript or list of Transcript
            Words with their frames and confidences; one per sequence.
        """
        seqs, width, plan = Ragged.of(x), _checked_beam(beam), self._plan(penalty, scale)
        units, acoustic_scale = (self._units(best=True), self._units(best=False)), _checked_acoustic_scale(confidence)
        tempered = self._plan(acoustic_scale * penalty, scale)

        def one(i: int) -> Transcript:
            with np.errstate(all="ignore"):
                path, scores = self._best(units[0], seqs, i, plan, width)
                posterior = (
                    self._confidence(units[1], path, tempered, scores, acoustic_scale) if acoustic_scale > 0 else None
                )
                return self._transcript(path, posterior)

        with one_blas_thread():
            out = list(ordered_map(one, range(len(seqs)), cores()))
        return out[0] if is_single_sequence(x) else out

    def k_best(self, x: SequencesLike, k: int, penalty: float = 0.0, scale: float = 1.0) -> list[Transcript]:
        """The k most probable word sequences of one utterance, best first.

        No two have the same words. Each has its own best segmentation, and no confidence. Exact.

        Parameters
        ----------
        x : array-like (T, d)
            One sequence.
        k : int
            Number of word sequences.
        penalty : float, default 0.0
            Word insertion penalty, subtracted per word.
        scale : float, default 1.0
            Language model scale.

        Returns
        -------
        list of Transcript
            At most k; fewer where fewer are possible.
        """
        if k < 1 or k != int(k):
            raise DomainError(sentence(f"{WHOSE}.k_best", "k must be an integer above 0", k))
        seqs, plan = Ragged.of(x), self._plan(penalty, scale)
        if len(seqs) != 1:
            raise DataError(sentence(f"{WHOSE}.k_best", "one sequence is needed", repr(seqs)))
        with np.errstate(all="ignore"):
            units, scores = self._units(best=True), _Scores(self, seqs, 0)
            paths = k_best_paths(units, plan, scores, int(seqs.lengths[0]), self._columns[1], int(k))
        return [self._transcript(path, None) for path in paths]

    def log_prob(self, x: SequencesLike) -> Array:
        """Log-density log p(x) of each sequence, summed over all word sequences and paths."""
        seqs, plan, units = Ragged.of(x), self._plan(0.0, 1.0), self._units(best=False)

        def one(i: int) -> float:
            with np.errstate(all="ignore"):
                T = int(seqs.lengths[i])
                return float(forward_pass(units, plan, _Scores(self, seqs, i), T, self._columns[1])[0])

        with one_blas_thread():
            return np.array(list(ordered_map(one, range(len(seqs)), cores())), dtype=np.float64)

    def _plan(self, penalty: float, scale: float) -> Plan:
        if not np.isfinite(penalty) or not np.isfinite(scale) or scale < 0:
            expected = "penalty must be a finite number, scale one from 0 on"
            raise DomainError(sentence(f"{WHOSE}.decode", expected, f"{penalty} and {scale}"))
        return Plan.of(self.boundaries, self.pause if self.silence is not None else 0.0, float(penalty), float(scale))

    def _best(self, units: Units, seqs: Ragged, i: int, plan: Plan, beam: float) -> tuple[UnitPath, _Scores]:
        T, scores = int(seqs.lengths[i]), _Scores(self, seqs, i)
        path = best_path(units, plan, scores, T, self._columns[1], beam)
        if np.isneginf(path.log_prob) and np.isfinite(beam):
            path = best_path(units, plan, scores, T, self._columns[1], np.inf)
        return path, scores

    def _confidence(self, units: Units, path: UnitPath, plan: Plan, scores: _Scores, acoustic_scale: float) -> Array:
        """Posterior probability of each word, averaged over its frames (n,)."""
        is_word = path.units < len(self)
        if not is_word.any():
            return np.empty(0)
        which = np.repeat(np.where(is_word, path.units, -1), path.lengths)
        counted = scores if acoustic_scale == 1 else lambda a, b: acoustic_scale * scores(a, b)
        p = unit_posteriors(units, plan, counted, len(which), self._columns[1], which)
        return np.asarray((np.add.reduceat(p, path.begins) / path.lengths)[is_word])

    def _transcript(self, path: UnitPath, confidence: Array | None) -> Transcript:
        is_word = path.units < len(self)
        words = tuple(self.names[u] for u in path.units[is_word])
        return Transcript.trusted(
            words=words,
            begins=path.begins[is_word],
            ends=path.until[is_word],
            log_prob=path.log_prob,
            confidence=confidence,
        )

    # ------------------------------------------------------------------ flat arrays

    @cached_property
    def _columns(self) -> tuple[list[Index], int]:
        """The columns of emission scores of each unit, and their number."""
        copies = 0 if self.silence is None else len(self.boundaries)
        own, used = chained(np.arange(chain.states) for chain in self._chains)
        if self.silence is None:
            return own, used
        silent = used + np.arange(self.silence.states)
        return own + [silent] * copies, used + self.silence.states

    def _units(self, best: bool) -> Units:
        plain = all(len(c.initial) == c.states for c in self._all_chains)
        return self._best_units if best and not plain else self._summed_units

    @cached_property
    def _all_chains(self) -> list[Chain]:
        return self._chains if self.silence is None else [*self._chains, self.silence.chains[0]]

    @cached_property
    def _summed_units(self) -> Units:
        return self._flat_units(False)

    @cached_property
    def _best_units(self) -> Units:
        return self._flat_units(True)

    def _flat_units(self, best: bool) -> Units:
        paths, context = [arc_logs(chain, best) for chain in self._chains], self.boundaries.context
        if self.silence is not None:
            G = len(self.boundaries)
            paths += [arc_logs(self.silence.chains[0], best)] * G
            context = np.concatenate([context, np.arange(G)])
        return Units.of(paths, context, self._columns[0])

    def joined(self) -> tuple[HMM, Index]:
        """The network as one HMM, and the word of each of its emitting states.

        Boundaries are null states. All methods of an HMM are then exact for the network, at the price of a
        transition matrix of all states.

        Returns
        -------
        hmm : HMM
            The network.
        words : ndarray of int (K,)
            Word of each emitting state; −1 is silence.
        """
        from likely.language.network_hmm import joined

        return joined(self)

    # ---------------------------------------------------------------- sampling

    def sample(self, n: int, rng: Generator) -> tuple[list[tuple[str, ...]], Ragged]:
        """Sample n utterances: the words of each, and their frames."""
        from likely.language.network_hmm import uttered

        return uttered(self, n, rng)


class _Scores:
    """Emission log-likelihoods log p(x_t | state) of frames of one sequence under all words and the silence."""

    def __init__(self, network: WordNetwork, seqs: Ragged, i: int) -> None:
        self.parts = [*_models(network.words), *([] if network.silence is None else [network.silence])]
        self.frames, self.sequence, self.cached = seqs[i], i, ((-1, -1), np.empty((0, 0)))

    def __call__(self, a: int, b: int) -> Array:
        if self.cached[0] != (a, b):  # the backward pass begins with the last piece again
            self.cached = (a, b), self._computed(a, b)
        return self.cached[1]

    def _computed(self, a: int, b: int) -> Array:
        piece = Ragged.trusted(values=self.frames[a:b], offsets=np.array([0, b - a], dtype=np.intp))
        try:
            blocks = [part.scores(piece) for part in self.parts]
        except BadFrame as error:
            raise BadFrame(error.details, self.sequence, a + error.frame) from None
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _models(words: Any) -> tuple[HMM, ...]:
    return (words,) if isinstance(words, HMM) else words


def _listed(words: Any) -> Any:
    """A stack unchanged, anything else as a tuple of single models."""
    if isinstance(words, HMM):
        return words if words.members is not None else (words,)
    listed = tuple(words) if isinstance(words, list | tuple) else ()
    if not listed or not all(isinstance(word, HMM) and word.members is None for word in listed):
        expected = "words must be a stack of HMMs, or a list of single ones"
        raise DomainError(sentence(WHOSE, expected, type(words).__name__ if not listed else "something else in it"))
    return listed


def _check_words(network: WordNetwork) -> None:
    """Validate that all models take the same frames, need at least one frame, and have final probabilities."""
    parts = [*_models(network.words), *([] if network.silence is None else [network.silence])]
    if network.silence is not None and network.silence.members is not None:
        raise DomainError(sentence(WHOSE, "silence must be one HMM", f"a stack of {network.silence.members}"))
    widths = {part.dim for part in parts}
    if len(widths) > 1:
        raise ShapeError(sentence(WHOSE, "all words must take frames with the same number of columns", sorted(widths)))
    for chain, name in zip(network._all_chains, [*network.names, "silence"], strict=False):
        if chain.final is None or not chain.summed.final.any():
            remedy = "give the HMM final probabilities: HMMDensity(..., final=True)"
            raise DomainError(
                sentence(WHOSE, f"the model of {name!r} must come to an end", "one that never does", remedy)
            )
        if chain.summed.empty > 0:
            expected = f"the model of {name!r} must take at least one frame"
            raise DomainError(sentence(WHOSE, expected, f"none with probability {chain.summed.empty:.3g}"))


def _checked_acoustic_scale(confidence: bool | float) -> float:
    """Validate the scale of the frames' log-likelihood in confidences; 0 for none."""
    if not isinstance(confidence, Real | np.bool_) or not 0 <= confidence <= 1:
        raise DomainError(sentence(f"{WHOSE}.decode", "confidence must be True, False or a share of 1", confidence))
    return float(confidence)


def _checked_beam(beam: float | None) -> float:
    if beam is not None and not beam > 0:
        raise DomainError(sentence(f"{WHOSE}.decode", "beam must be above 0, or None for exact decoding", beam))
    return np.inf if beam is None else float(beam)

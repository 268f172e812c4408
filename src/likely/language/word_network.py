"""Words in a row: models of words, joined by which word follows which, and tokens that race through them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.hmm.decoding import is_one
from likely.hmm.hmm import HMM, BadFrame
from likely.hmm.markov_chain import Chain
from likely.language.bigram import Bigram, check_bigram, check_names
from likely.language.token_passing import Found, best_way, best_ways, log_total, shares_of
from likely.language.transcript import Transcript
from likely.language.word_units import Boundaries, Plan, Units, chained, ways_of

WHOSE = "WordNetwork"


@dataclass(frozen=True, eq=False, repr=False)
class WordNetwork(Value):
    """p(x, w₁ … w_N) = p(w₁) Π p(w_n | w_{n−1}) p(end | w_N) Π p(x_n | w_n), x cut into pieces x_n   (Ney 7.4).

    - **words**: a stack of C HMMs with `final`, or a list of such HMMs, each with as many states as it needs.
    - **names**: C texts.
    - **bigram** (C, C): p(next word | word), or what `learn_bigram` gives. None: all words alike. Each row sums to 1
      with its entry of **final** (C,), p(end of utterance | word), which may be one number for all. Without `final`,
      rows that sum to less than 1 end with what they lack; where all sum to 1, they share with an end of 1 / (C + 1).
    - **initial** (C,): p(first word). None: all alike. What it lacks to 1 is an utterance without any word.
    - **silence**: an HMM with `final` that stands between words, before and after, with probability **pause**
      each time, so that it may come again; it is no word, and the word before it is not forgotten.

    >>> import likely as lk
    >>> on, off = (HMM([1.0], [[0.8]], lk.Gaussian([[m]], 1.0), final=[0.2]) for m in (3.0, -3.0))
    >>> heard = WordNetwork([on, off], ["on", "off"]).decode([3.1, 2.7, 2.2, -3.3, -2.9])
    >>> str(heard), heard.begins.tolist(), heard.ends.tolist()
    ('on off', [0, 3], [3, 5])
    """

    words: Any  # an HMM, a stack of C chains; or a tuple of C HMMs
    names: tuple[str, ...]
    bigram: Any = None  # (C, C)
    initial: Any = None  # (C,)
    final: Any = None  # (C,)
    silence: HMM | None = None
    pause: float = 0.5

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
        """The words that a classifier tells apart: a `BayesClassifier` of `HMMDensity` with ends; labels are names.

        `others` are `initial`, `final`, `silence` and `pause`. Class probabilities are left out: the bigram takes their
        place.
        """
        words = getattr(getattr(classifier, "model_", None), "components", None)
        if not isinstance(words, HMM):
            expected = "a fitted BayesClassifier with an HMM for each class is needed"
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
        return int(_each(self.words)[0].dim)

    @cached_property
    def _chains(self) -> list[Chain]:
        return [chain for part in _each(self.words) for chain in part.chains]

    @cached_property
    def boundaries(self) -> Boundaries:
        """Where words meet: histories after which all words follow alike."""
        return Boundaries.of(Bigram(self.initial, self.bigram, self.final))

    def word(self, c: int) -> HMM:
        """The model of one word."""
        one: HMM = self.words.member(c) if isinstance(self.words, HMM) else self.words[c]
        return one

    # --------------------------------------------------------------- decoding

    def decode(
        self, x: Any, beam: float | None = None, penalty: float = 0.0, scale: float = 1.0,
        confidence: bool | float = True,
    ) -> Any:  # fmt: skip
        """The best words for a sequence: a `Transcript`; for many (a Ragged, a list of arrays) a list of them.

        - **beam**: states whose score is more than that below the best one, in nats, are not gone on with. None is
          exact; where a beam loses all ways to the end, decoding is done again without.
        - **penalty** is taken off for every word: more makes fewer words. **scale** multiplies the logarithms of
          the bigram, because neighboring frames say the same thing twice and the densities are too sure.
        - **confidence** sums over all ways under the same scores, whatever the beam; False saves its time, which is
          several times that of decoding. A number is the share of their log-likelihood that frames count in it: less
          than 1 where neighbors repeat each other (the acoustic scale of Wessel, Schlüter, Macherey and Ney 2001).
        """
        seqs, width, plan = Ragged.of(x), _checked_beam(beam), self._plan(penalty, scale)
        units, share = (self._units(best=True), self._units(best=False)), _checked_share(confidence)
        tempered = self._plan(share * penalty, scale)

        def one(i: int) -> Transcript:
            with np.errstate(all="ignore"):
                way, scores = self._best(units[0], seqs, i, plan, width)
                sure = self._confidence(units[1], way, tempered, scores, share) if share > 0 else None
                return self._transcript(way, sure)

        with one_blas_thread():
            out = list(ordered_map(one, range(len(seqs)), cores()))
        return out[0] if is_one(x) else out

    def k_best(self, x: Any, k: int, penalty: float = 0.0, scale: float = 1.0) -> list[Transcript]:
        """The k best word sequences of one utterance, best first, no two with the same words; fewer where there are.

        Each comes with its own best cuts, and without confidence. Exact.
        """
        if k < 1 or k != int(k):
            raise DomainError(sentence(f"{WHOSE}.k_best", "k must be a whole number above 0", k))
        seqs, plan = Ragged.of(x), self._plan(penalty, scale)
        if len(seqs) != 1:
            raise DataError(sentence(f"{WHOSE}.k_best", "one sequence is needed", repr(seqs)))
        with np.errstate(all="ignore"):
            units, scores = self._units(best=True), _Scores(self, seqs, 0)
            ways = best_ways(units, plan, scores, int(seqs.lengths[0]), self._columns[1], int(k))
        return [self._transcript(way, None) for way in ways]

    def log_prob(self, x: Any) -> Array:
        """log p(x) of each sequence (n,), over all words and all ways."""
        seqs, plan, units = Ragged.of(x), self._plan(0.0, 1.0), self._units(best=False)

        def one(i: int) -> float:
            with np.errstate(all="ignore"):
                T = int(seqs.lengths[i])
                return float(log_total(units, plan, _Scores(self, seqs, i), T, self._columns[1])[0])

        with one_blas_thread():
            return np.array(list(ordered_map(one, range(len(seqs)), cores())), dtype=np.float64)

    def _plan(self, penalty: float, scale: float) -> Plan:
        if not np.isfinite(penalty) or not np.isfinite(scale) or scale < 0:
            expected = "penalty must be a finite number, scale one from 0 on"
            raise DomainError(sentence(f"{WHOSE}.decode", expected, f"{penalty} and {scale}"))
        return Plan.of(self.boundaries, self.pause if self.silence is not None else 0.0, float(penalty), float(scale))

    def _best(self, units: Units, seqs: Ragged, i: int, plan: Plan, beam: float) -> tuple[Found, _Scores]:
        T, scores = int(seqs.lengths[i]), _Scores(self, seqs, i)
        way = best_way(units, plan, scores, T, self._columns[1], beam)
        if np.isneginf(way.log_prob) and np.isfinite(beam):
            way = best_way(units, plan, scores, T, self._columns[1], np.inf)
        return way, scores

    def _confidence(self, units: Units, way: Found, plan: Plan, scores: _Scores, share: float) -> Array:
        """p(a token is in the word | all frames), averaged over the frames of each word (n,)."""
        said = way.units < len(self)
        if not said.any():
            return np.empty(0)
        which = np.repeat(np.where(said, way.units, -1), way.lengths)
        counted = scores if share == 1 else lambda a, b: share * scores(a, b)
        p = shares_of(units, plan, counted, len(which), self._columns[1], which)
        return np.asarray((np.add.reduceat(p, way.begins) / way.lengths)[said])

    def _transcript(self, way: Found, confidence: Array | None) -> Transcript:
        said = way.units < len(self)
        words = tuple(self.names[u] for u in way.units[said])
        return Transcript.trusted(
            words=words, begins=way.begins[said], ends=way.until[said], log_prob=way.log_prob, confidence=confidence
        )

    # ---------------------------------------------------------------- written out

    @cached_property
    def _columns(self) -> tuple[list[Index], int]:
        """The columns of emission scores of each unit, and their number."""
        copies = 0 if self.silence is None else len(self.boundaries)
        own, used = chained(np.arange(chain.states) for chain in self._chains)
        if self.silence is None:
            return own, used
        quiet = used + np.arange(self.silence.states)
        return own + [quiet] * copies, used + self.silence.states

    def _units(self, best: bool) -> Units:
        plain = all(len(c.initial) == c.states for c in self._all_chains)
        return self._best_units if best and not plain else self._summed_units

    @cached_property
    def _all_chains(self) -> list[Chain]:
        return self._chains if self.silence is None else [*self._chains, self.silence.chains[0]]

    @cached_property
    def _summed_units(self) -> Units:
        return self._written_out(False)

    @cached_property
    def _best_units(self) -> Units:
        return self._written_out(True)

    def _written_out(self, best: bool) -> Units:
        ways, context = [ways_of(chain, best) for chain in self._chains], self.boundaries.context
        if self.silence is not None:
            G = len(self.boundaries)
            ways += [ways_of(self.silence.chains[0], best)] * G
            context = np.concatenate([context, np.arange(G)])
        return Units.of(ways, context, self._columns[0])

    def joined(self) -> tuple[HMM, Index]:
        """The same as one HMM, and the word of each of its emitting states (K,), −1 for silence.

        Boundaries are null states. All that an HMM can do is then exact for the network, at the price of a
        matrix of all states by all states.
        """
        from likely.language.network_hmm import joined

        return joined(self)

    # ---------------------------------------------------------------- sampling

    def sample(self, n: int, rng: Generator) -> tuple[list[tuple[str, ...]], Ragged]:
        """n utterances: the words of each, and their frames."""
        from likely.language.network_hmm import uttered

        return uttered(self, n, rng)


class _Scores:
    """log p(x_t | state) of some frames of one sequence under all words and the silence."""

    def __init__(self, network: WordNetwork, seqs: Ragged, i: int) -> None:
        self.parts = [*_each(network.words), *([] if network.silence is None else [network.silence])]
        self.frames, self.sequence, self.kept = seqs[i], i, ((-1, -1), np.empty((0, 0)))

    def __call__(self, a: int, b: int) -> Array:
        if self.kept[0] != (a, b):  # the last piece is asked for again when going back
            self.kept = (a, b), self._found(a, b)
        return self.kept[1]

    def _found(self, a: int, b: int) -> Array:
        piece = Ragged.trusted(values=self.frames[a:b], offsets=np.array([0, b - a], dtype=np.intp))
        try:
            each = [part.scores(piece) for part in self.parts]
        except BadFrame as error:
            raise BadFrame(error.told, self.sequence, a + error.frame) from None
        return each[0] if len(each) == 1 else np.concatenate(each, axis=1)


def _each(words: Any) -> tuple[HMM, ...]:
    return (words,) if isinstance(words, HMM) else words


def _listed(words: Any) -> Any:
    """A stack as it is, anything else as a tuple of single models."""
    if isinstance(words, HMM):
        return words if words.members is not None else (words,)
    listed = tuple(words) if isinstance(words, list | tuple) else ()
    if not listed or not all(isinstance(word, HMM) and word.members is None for word in listed):
        expected = "words must be a stack of HMMs, or a list of single ones"
        raise DomainError(sentence(WHOSE, expected, type(words).__name__ if not listed else "something else in it"))
    return listed


def _check_words(network: WordNetwork) -> None:
    """All score the same frames; each takes at least one frame, and comes to an end."""
    parts = [*_each(network.words), *([] if network.silence is None else [network.silence])]
    if network.silence is not None and network.silence.members is not None:
        raise DomainError(sentence(WHOSE, "silence must be one HMM", f"a stack of {network.silence.members}"))
    widths = {part.dim for part in parts}
    if len(widths) > 1:
        raise ShapeError(sentence(WHOSE, "all words must take frames of one width", sorted(widths)))
    for chain, name in zip(network._all_chains, [*network.names, "silence"], strict=False):
        if chain.final is None or not chain.summed.final.any():
            remedy = "give the HMM final probabilities: HMMDensity(..., final=True)"
            raise DomainError(
                sentence(WHOSE, f"the model of {name!r} must come to an end", "one that never does", remedy)
            )
        if chain.summed.empty > 0:
            expected = f"the model of {name!r} must take at least one frame"
            raise DomainError(sentence(WHOSE, expected, f"none with probability {chain.summed.empty:.3g}"))


def _checked_share(confidence: bool | float) -> float:
    """The share of their log-likelihood that frames count in a confidence; 0 where none is asked for."""
    if not isinstance(confidence, Real | np.bool_) or not 0 <= confidence <= 1:
        raise DomainError(sentence(f"{WHOSE}.decode", "confidence must be True, False or a share of 1", confidence))
    return float(confidence)


def _checked_beam(beam: float | None) -> float:
    if beam is not None and not beam > 0:
        raise DomainError(sentence(f"{WHOSE}.decode", "beam must be above 0, or None for exact decoding", beam))
    return np.inf if beam is None else float(beam)

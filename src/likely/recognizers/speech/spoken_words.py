"""Isolated- and connected-word speech recognition: one HMM of MFCC features per word, and a Bayes classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from likely.classify.bayes import BayesClassifier
from likely.classify.feature_classifier import FeatureClassifier
from likely.core.arrays import Array, Mask, Seed, SequencesLike
from likely.core.errors import DataError, DomainError, sentence
from likely.core.protocols import PriorLike
from likely.core.ragged import Ragged
from likely.core.warnings import warn, warnings_discarded
from likely.data.audio import is_one_recording
from likely.decision.cost import CostLike
from likely.decision.posteriors import ClassPrior
from likely.distributions.gaussian.estimator import GaussianCovariance, GaussianDensity
from likely.features.mfcc import MFCC
from likely.features.spectrum import is_silent, loud_part, loudest
from likely.hmm.estimators.hmm_density import HMMDensity
from likely.hmm.hmm import HMM
from likely.hmm.topology import TopologyLike
from likely.language.transcript import Transcript
from likely.language.word_network import WordNetwork
from likely.mixture.estimators.mixture_density import MixtureDensity

# Chosen on training recordings of spoken digits (docs/results-speech): silence trimmed at both ends, delta features
# over seven frames, and level normalization but not the mean, which in half a second belongs to the word as much as to
# the voice.
FEATURES: dict[str, Any] = {"trim": 30.0, "delta_width": 3, "normalize": "level"}

SHARE = 0.2  # acoustic scale of confidences; chosen on training recordings of digits, also noisy (docs/results-speech)
SILENCE_THRESHOLD = 40.0  # decibels below the faintest word of training at which a recording is silence
PENALTY = 80.0  # nats per word, chosen likewise: correlated frames would favor many short words
RECORDINGS = 200  # number of recordings that the background is learned from, at most
PAD = 0.15  # seconds of noise on both sides
HIGHEST_LEVEL, LOWEST_LEVEL = -30.0, -60.0  # dB below the recording's own level
EMPTY = 0.2  # share of recordings padded with digital silence
BELOW = 30.0  # dB below the loudest frame at which a frame is background
EDGE = 0.02  # seconds of a word within reach of delta features: left to the silence, they would cost an insertion each
PARTS = 6


@dataclass(frozen=True, eq=False)
class Heard(Transcript):
    """Recognized words of one recording: word i lasts from begins[i] to ends[i], in seconds from its beginning.

    Words are labels of training: numbers stay numbers. `frames` is the transcript in feature frames, counted from the
    first loud frame; None where the recording was too faint.
    """

    words: tuple[Any, ...]
    begins: Array  # type: ignore[assignment]  # (n,) seconds
    ends: Array  # type: ignore[assignment]  # (n,) seconds
    log_prob: float = 0.0
    confidence: Array | None = None
    frames: Transcript | None = None

    def __str__(self) -> str:
        return " ".join(map(str, self.words))


NOTHING = Heard((), np.empty(0), np.empty(0), 0.0, np.empty(0))  # no words, with certainty


def in_seconds(found: Transcript, cepstra: MFCC, x: Array, labels: dict[str, Any]) -> Heard:
    """Convert a transcript from frames to seconds of the samples x."""
    words = tuple(labels[word] for word in found.words)
    begins, ends = (_seconds(boundary, cepstra, x) for boundary in (found.begins, found.ends))
    return Heard(words, begins, ends, found.log_prob, found.confidence, found)


def _seconds(boundary: Any, cepstra: MFCC, x: Array) -> Array:
    """The time between the centers of the frame before a border and the one after it."""
    first = cepstra.part(x).start + (cepstra.size - cepstra.stride) / 2
    at = (first + np.asarray(boundary) * cepstra.stride) / cepstra.sample_rate
    return np.minimum(at, len(x) / cepstra.sample_rate)


class SpokenWords(FeatureClassifier):
    """Recognition of isolated or connected words: one hidden Markov model per word, and a Bayes classifier.

    A recording is an array of samples at `sample_rate` Hz, a pair (rate, samples) or the name of a WAV file; several
    are a list or a Ragged of samples. Recordings of other rates are resampled.

    A silent recording gets about the class prior as its posterior, so that `decide(recordings, reject_below=…)` rejects
    it, and to `novelty` it is novel.

    Parameters
    ----------
    n_states : int, default 8
        Number of states of the HMM of each word.
    n_components : int, default 4
        Number of components of the Gaussian mixture of each state.
    sample_rate : int, default 8000
        Samples per second of plain arrays.
    features : MFCC, optional
        Feature extraction, whose sample rate then counts; None: `trim=30`, `delta_width=3`, `normalize="level"`.
    topology : str, sequence of int, array-like of bool (K, K) or Topology, default "left-to-right"
        Topology of the HMM of each word: see `HMMDensity`.
    covariance : str, default "diagonal"
        Covariance of the components: see `GaussianDensity`.
    acoustic_scale : float, default 0.05
        Frames overlap and delta features share them, so that they are correlated; their log-likelihoods are multiplied
        by this factor for calibrated posteriors (1: frames independent, given the states).
    prior : {"weak"} or None, default "weak"
        Prior of each HMM: see `HMMDensity`.
    hard : bool, default False
        Viterbi training: use the best path alone.

    Attributes
    ----------
    classifier_ : BayesClassifier
        Classifier of sequences of features.
    silence_ : HMM
        Background model, for `transcribe`.
    min_level_ : float
        Level of the faintest word of training in decibels, for `transcribe`.

    See Also
    --------
    HMMDensity : The HMM of a word.
    WordNetwork : The model of connected words.

    References
    ----------
    Rabiner and Juang (1993); Ney, lecture notes, 1.2.3 and 7.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng, t = np.random.default_rng(0), np.arange(3200) / 8000
    >>> def glide(a, b): return np.sin(2 * np.pi * (a + (b - a) * t) * t) + 0.01 * rng.normal(size=t.size)
    >>> recordings = [glide(*f) for f in [(300, 900), (900, 300)] for _ in range(5)]
    >>> words = SpokenWords(n_states=4, n_components=1).fit(recordings, ["up"] * 5 + ["down"] * 5)
    >>> words.predict([glide(310, 880), glide(910, 290)]).tolist()
    ['up', 'down']
    """

    saved_attributes = ("classifier_", "silence_", "min_level_", "card_")

    def __init__(
        self, n_states: int = 8, n_components: int = 4, *, sample_rate: int = 8000, features: Any = None,
        topology: TopologyLike = "left-to-right", covariance: GaussianCovariance = "diagonal",
        acoustic_scale: float = 0.05, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-2,
        hard: bool = False, class_prior: ClassPrior | None = None,
        cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None, random_state: Seed = 0,
    ) -> None:  # fmt: skip
        self.n_states = n_states
        self.n_components = n_components
        self.sample_rate = sample_rate
        self.features = features
        self.topology = topology
        self.covariance = covariance
        self.acoustic_scale = acoustic_scale
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.hard = hard
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty
        self.random_state = random_state

    # ------------------------------------------------------------------ learning

    def fit(self, X: SequencesLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to recordings X and their words y; a missing word (None) is estimated by EM.

        Parameters
        ----------
        X : recordings
            Samples, pairs (rate, samples) or names of WAV files.
        y : array-like (n,)
            Words; a missing one is None.
        """
        self._check_scale()
        signals = list(self.cepstra.signals(X))
        super().fit(signals, y, sample_weight)
        self.silence_ = background(self.cepstra, signals)
        recording_weight = np.ones(len(signals)) if sample_weight is None else np.asarray(sample_weight)
        self.min_level_ = min(
            loudest(x, self.cepstra.sample_rate) for x, w in zip(signals, recording_weight, strict=True) if w > 0
        )
        return self

    def _built(self) -> BayesClassifier:
        emission = MixtureDensity(GaussianDensity(self.covariance), self.n_components, random_state=self.random_state)
        chain = HMMDensity(
            emission, self.n_states, topology=self.topology, prior=self.prior, max_iter=self.max_iter, tol=self.tol,
            hard=self.hard, final=True, random_state=self.random_state,
        )  # fmt: skip
        return BayesClassifier(chain, self.class_prior, self.cost, self.reject_cost, self.reject_below, self.novelty)

    # ------------------------------------------------------------------ front end

    @property
    def cepstra(self) -> MFCC:
        """The MFCC front end."""
        if self.features is None:
            return MFCC(sample_rate=self.sample_rate, **FEATURES)
        if not isinstance(self.features, MFCC):
            got, remedy = type(self.features).__name__, "pass lk.speech.MFCC(sample_rate=…), or None"
            raise DataError(sentence(type(self).__name__, "features must be an MFCC", got, remedy))
        return self.features

    def _front(self, X: Any, learning: bool = False) -> Ragged:
        """Features of each recording (Ragged); a silent one is refused in training, and else counts as missing."""
        cepstra = self.cepstra
        tracks = [_track(cepstra, x, i, learning) for i, x in enumerate(cepstra.signals(X))]
        if not tracks:
            raise DataError(sentence(type(self).__name__, "at least one recording is needed", "none"))
        return Ragged.from_list(tracks)

    # -------------------------------------------------------------- single words

    def log_posterior(self, X: SequencesLike) -> Array:
        """Log posterior probabilities of the words: p(word | recording) ∝ p(word) p(recording | word)^acoustic_scale.

        Parameters
        ----------
        X : recordings
            Samples, pairs (rate, samples) or names of WAV files.
        """
        self._check_fitted()
        self._check_scale()
        possible = self.class_prior_ > 0
        prior = np.log(self.class_prior_[possible])
        joint = np.full((len(P := super().log_posterior(X)), len(possible)), -np.inf)
        joint[:, possible] = prior + self.acoustic_scale * (P[:, possible] - prior)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    # ----------------------------------------------------------- connected words

    def network(self, bigram: Any = None, **others: Any) -> WordNetwork:
        """Word network with silence between words.

        Parameters
        ----------
        bigram : array-like (C, C) or Bigram, optional
            The language model; None: uniform, and the first word is each word or none with probability 1 / (C + 1).
        **others : settings
            `initial`, `final` and `pause` of `WordNetwork`.

        Returns
        -------
        WordNetwork
            The network.
        """
        self._check_fitted()
        C = len(self.classes_)
        if bigram is None and "initial" not in others:
            others["initial"] = np.full(C, 1.0 / (C + 1))
        return WordNetwork.of(self.classifier_, bigram, silence=self.silence_, **others)

    def transcribe(
        self, recording: Any, bigram: Any = None, *, beam: float | None = 300.0, penalty: float = PENALTY,
        scale: float = 1.0, confidence: bool = True, silence_threshold: float | None = SILENCE_THRESHOLD,
    ) -> Any:  # fmt: skip
        """Connected-word recognition: a `Transcript`; of several recordings, a list of them.

        `begins` and `ends` are seconds from the beginning of the recording, words are labels of training.

        Parameters
        ----------
        recording : recording or list of recordings
            Samples, a pair (rate, samples) or the name of a WAV file.
        bigram : array-like (C, C) or Bigram, optional
            The language model, as in `network`.
        beam : float, optional
            Beam width in nats, as in `WordNetwork.decode`.
        penalty : float
            Word insertion penalty in nats.
        scale : float, default 1.0
            Language model scale: multiplies the logarithms of the bigram.
        confidence : bool, default True
            Compute the confidence of each word, over all paths, with an acoustic scale of 0.2, as frames are
            correlated; False saves its time.
        silence_threshold : float, optional
            A recording whose loudest frame is more than that many decibels below the faintest word of training has no
            words; None decodes all that is not silent.

        Returns
        -------
        Transcript or list of Transcript
            Words with their times and confidences; one per recording.
        """
        self._check_fitted()
        if is_one_recording(recording):
            return self.transcribe(
                [recording],
                bigram,
                beam=beam,
                penalty=penalty,
                scale=scale,
                confidence=confidence,
                silence_threshold=silence_threshold,
            )[0]
        signals, network = list(self.cepstra.signals(recording)), self.network(bigram)
        out: list[Heard] = [NOTHING] * len(signals)
        audible = [i for i, x in enumerate(signals) if self._is_loud(x, i, silence_threshold)]
        if audible:
            tracks = Ragged.from_list([self.cepstra.features(signals[i]) for i in audible])
            found = network.decode(tracks, beam, penalty, scale, SHARE if confidence else False)
            labels = {str(c): c for c in self.classes_.tolist()}
            for i, one in zip(audible, found, strict=True):
                out[i] = in_seconds(one, self.cepstra, signals[i], labels)
        return out

    def _is_loud(self, x: Array, i: int, silence_threshold: float | None) -> bool:
        """False for silence, and for recordings far fainter than those of training."""
        if silence_threshold is not None and not (isinstance(silence_threshold, Real) and silence_threshold > 0):
            raise DomainError(
                sentence("transcribe", "silence_threshold must be decibels above 0, or None", silence_threshold)
            )
        if is_silent(x):
            return False
        below = self.min_level_ - loudest(x, self.cepstra.sample_rate)
        if silence_threshold is None or below <= silence_threshold:
            return True
        note = f"recording {i} is {below:.0f} dB fainter than the faintest word of training, and was treated as silence"
        warn(f"SpokenWords: {note}; silence_threshold=None decodes it")
        return False

    # ------------------------------------------------------------------ internal

    def _novel(self, X: Any, rate: float) -> tuple[Mask, Any]:
        """Novelty mask and explanation; silence is novel, however probable missing values are."""
        novel, why = super()._novel(X, rate)
        silent = np.array([is_silent(x) for x in self.cepstra.signals(X)])
        return novel | silent, _Why(silent, why)

    def _check_scale(self) -> None:
        if not (
            isinstance(self.acoustic_scale, Real)
            and not isinstance(self.acoustic_scale, bool)
            and 0 < self.acoustic_scale <= 1
        ):
            raise DomainError(
                sentence(type(self).__name__, "acoustic_scale must lie above 0, at most 1", self.acoustic_scale)
            )

    def check_state(self) -> None:
        super().check_state()
        self._check_scale()
        silence, level = (vars(self).get(name) for name in ("silence_", "min_level_"))
        if "classifier_" in vars(self) and not (isinstance(silence, HMM) and silence.members is None):
            raise DataError(sentence(type(self).__name__, "silence_ must be an HMM", type(silence).__name__))
        if "classifier_" in vars(self) and not (isinstance(level, float) and np.isfinite(level)):
            raise DataError(sentence(type(self).__name__, "min_level_ must be a number of decibels", repr(level)))


class _Why:
    """Explanation of novelty per recording, on request."""

    def __init__(self, silent: Mask, of_others: Any) -> None:
        self.silent, self.of_others = silent, of_others

    def __call__(self, i: int) -> str:
        return "the recording is silent" if self.silent[i] else str(self.of_others(i))


def _track(cepstra: MFCC, x: Array, i: int, learning: bool) -> Array:
    track = cepstra.features(x)
    if not is_silent(x):
        return track
    if learning:
        raise DataError(sentence("SpokenWords", f"recording {i} must be a word", "silence", "leave it out"))
    return np.full_like(track, np.nan)


# ------------------------------------------------------------ background noise


def background(cepstra: MFCC, signals: Sequence[Array], random_state: Any = 0) -> HMM:
    """A one-state HMM with a Gaussian mixture for the background between words."""
    rng = np.random.default_rng(random_state)
    selected = np.unique(np.linspace(0, len(signals) - 1, RECORDINGS).astype(int))
    tracks = [quiet_frames(cepstra, surrounded(signals[i], cepstra.sample_rate, rng)) for i in selected]
    emission = MixtureDensity(GaussianDensity("diagonal"), PARTS, random_state=0)
    chain = HMMDensity(emission, 1, topology="left-to-right", init="segments", max_iter=20, tol=1e-2, random_state=0)
    with warnings_discarded():  # twenty iterations suffice for silence, whether or not EM has converged
        return chain.fit([track for track in tracks if len(track)]).model_


def surrounded(x: Array, rate: int, rng: Generator) -> Array:
    """The recording padded with faint noise, or digital silence, before and after it."""
    n = round(PAD * rate)
    level = np.sqrt(np.nanmean(x**2)) * 10 ** (rng.uniform(LOWEST_LEVEL, HIGHEST_LEVEL) / 20)
    noise = rng.normal(size=2 * n) * level * (rng.random() >= EMPTY)
    return np.concatenate([noise[:n], x, noise[n:]])


def quiet_frames(cepstra: MFCC, x: Array) -> Array:
    """Features of the frames outside the loud part (m, D)."""
    track = cepstra.replace(trim=None).features(x)
    loud = loud_part(x, cepstra.sample_rate, BELOW, -EDGE)
    middle = cepstra.times(len(track)) * cepstra.sample_rate
    outside = (middle < loud.start) | (middle >= loud.stop)
    return track[outside & ~np.isnan(track).any(axis=1)]

"""Spoken words: each word a chain of states that emit cepstra, and Bayes decides which word was said."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from likely.core.arrays import Array
from likely.core.ragged import Ragged
from likely.data.cepstra import Cepstra
from likely.data.signal import is_silent
from likely.data.sounds import is_one_sound
from likely.errors import DataError, DomainError, sentence
from likely.estimators.bayes import BayesClassifier
from likely.estimators.fronted import Fronted
from likely.estimators.gaussian import GaussianDensity
from likely.estimators.hmm import HMMDensity
from likely.estimators.mixture import MixtureDensity
from likely.models.hmm import HMM
from likely.models.word_network import WordNetwork
from likely.recognisers.background import background

# Chosen on training takes of spoken digits (docs/results-speech): silence off at both ends, slopes over seven frames,
# and the volume taken off but not the mean, which in half a second belongs to the word as much as to the voice.
FEATURES: dict[str, Any] = {"trim": 30.0, "reach": 3, "normalise": "level"}

PENALTY = 80.0  # nats a word, chosen likewise: frames that say the same many times over would pay for many short words


class SpokenWords(Fronted):
    """Recognise spoken words, single or connected: one hidden Markov model a word, and Bayes   (Ney 1.2.3, 7).

    A sound is an array of samples at `rate` Hz, a pair (rate, samples) or the name of a WAV file; several are a list or
    a Ragged of samples. Sounds of other rates are resampled.

    - **states, topology**: of the chain of each word; see `HMMDensity`
    - **components, covariance**: each state emits a mixture of so many Gaussians
    - **rate**: samples a second of plain arrays
    - **features**: a `Cepstra`, whose rate then counts; None: one for words (`trim=30`, `reach=3`, `normalise="level"`)
    - **scale**: frames overlap, and slopes share them: each says the same many times over. Log-likelihoods count this
      share of what they say, so that posteriors keep their word (1: as if frames were independent, given the states)
    - **prior, max_iter, tol, hard, random_state**: of learning, as in `HMMDensity`
    - **class_prior, cost, reject_cost, reject_below, novelty**: of deciding, as in `BayesClassifier`

    What was learnt is a `BayesClassifier` over sequences, `classifier_`, and what is heard between words, `silence_`,
    for `transcribe`. Silence tells nothing: such a sound gets about the class prior as its posterior, so that
    `decide(sounds, reject_below=…)` refuses it.

    >>> import likely as lk, numpy as np
    >>> rng, t = np.random.default_rng(0), np.arange(3200) / 8000
    >>> def glide(a, b): return np.sin(2 * np.pi * (a + (b - a) * t) * t) + 0.01 * rng.normal(size=t.size)
    >>> sounds = [glide(*f) for f in [(300, 900), (900, 300)] for _ in range(5)]
    >>> words = SpokenWords(states=4, components=1).fit(sounds, ["up"] * 5 + ["down"] * 5)
    >>> words.predict([glide(310, 880), glide(910, 290)]).tolist()
    ['up', 'down']
    """

    _saved = ("classifier_", "silence_")

    def __init__(
        self, states: int = 8, components: int = 4, *, rate: int = 8000, features: Any = None,
        topology: Any = "left-to-right", covariance: str = "diagonal", scale: float = 0.05, prior: Any = "weak",
        max_iter: int = 100, tol: float = 1e-2, hard: bool = False, class_prior: Any = None, cost: Any = None,
        reject_cost: float | None = None, reject_below: float | None = None, novelty: float | None = None,
        random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.states = states
        self.components = components
        self.rate = rate
        self.features = features
        self.topology = topology
        self.covariance = covariance
        self.scale = scale
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from sounds X and the words y that they are; a missing word (None) is guessed, by EM."""
        self._check_scale()
        heard = list(self.cepstra.signals(X))
        super().fit(heard, y, sample_weight)
        self.silence_ = background(self.cepstra, heard)
        return self

    def _built(self) -> BayesClassifier:
        emission = MixtureDensity(GaussianDensity(self.covariance), self.components, random_state=self.random_state)
        chain = HMMDensity(
            emission, self.states, topology=self.topology, prior=self.prior, max_iter=self.max_iter, tol=self.tol,
            hard=self.hard, random_state=self.random_state,
        )  # fmt: skip
        return BayesClassifier(chain, self.class_prior, self.cost, self.reject_cost, self.reject_below, self.novelty)

    # ----------------------------------------------------------------- the front

    @property
    def cepstra(self) -> Cepstra:
        """From sound to features."""
        if self.features is None:
            return Cepstra(rate=self.rate, **FEATURES)
        if not isinstance(self.features, Cepstra):
            got, remedy = type(self.features).__name__, "pass lk.Cepstra(rate=…), or None"
            raise DataError(sentence(type(self).__name__, "features must be a Cepstra", got, remedy))
        return self.features

    def _front(self, X: Any, learning: bool = False) -> Ragged:
        """Features of each sound (Ragged); a silent one cannot be learnt from, and else was not observed."""
        cepstra = self.cepstra
        tracks = [_track(cepstra, x, i, learning) for i, x in enumerate(cepstra.signals(X))]
        if not tracks:
            raise DataError(sentence(type(self).__name__, "at least one sound is needed", "none"))
        return Ragged.from_list(tracks)

    # -------------------------------------------------------------- single words

    def log_posterior(self, X: Any) -> Array:
        """log p(word | sound) of each (n, C), columns in the order of `classes_`: p(word) p(sound | word)^scale."""
        prior = np.log(self.class_prior_)
        joint = prior + self.scale * (super().log_posterior(X) - prior)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    # ----------------------------------------------------------- connected words

    def network(self, bigram: Any = None, **others: Any) -> WordNetwork:
        """The words joined, with silence between them where there is some; `bigram` says which follows which.

        None: every word after every word. `others` are `starts`, `ends` and `pause` of `WordNetwork`.
        """
        return WordNetwork.of(self.classifier_, bigram, silence=self.silence_, **others)

    def transcribe(
        self, sound: Any, bigram: Any = None, *, beam: float | None = 300.0, penalty: float = PENALTY, **how: Any
    ) -> Any:
        """The words of a sound in which several follow each other: a `Transcript`; of several sounds, a list of them.

        `begins` and `ends` are frames of `cepstra.step` seconds, counted from the first loud moment. `bigram` is as in
        `network`; `beam`, `penalty` (of each word, in nats: more makes fewer words), `scale` and `confidence` as in
        `WordNetwork.decode`.
        """
        if is_one_sound(sound):
            return self.transcribe([sound], bigram, beam=beam, penalty=penalty, **how)[0]
        return self.network(bigram).decode(self._front(sound), beam=beam, penalty=penalty, **how)

    # -------------------------------------------------------------------- inside

    def _check_scale(self) -> None:
        if not (isinstance(self.scale, int | float) and 0 < self.scale <= 1):
            raise DomainError(sentence(type(self).__name__, "scale must lie above 0, at most 1", self.scale))

    def _check_state(self) -> None:
        super()._check_state()
        self._check_scale()
        silence = vars(self).get("silence_")
        if "classifier_" in vars(self) and not (isinstance(silence, HMM) and silence.members is None):
            raise DataError(sentence(type(self).__name__, "silence_ must be an HMM", type(silence).__name__))


def _track(cepstra: Cepstra, x: Array, i: int, learning: bool) -> Array:
    track = cepstra.features(x)
    if not is_silent(x):
        return track
    if learning:
        raise DataError(sentence("SpokenWords", f"sound {i} must be a word", "silence", "leave it out"))
    return np.full_like(track, np.nan)

"""SpokenWords: synthesized words of gliding tones, and real digits where the data are available."""

from __future__ import annotations

import wave
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely as lk
from likely.classify.bayes import BayesClassifier
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.features.mfcc import MFCC
from likely.metrics.word_error_rate import word_errors
from likely.recognizers.speech.spoken_words import FEATURES, PENALTY, SpokenWords, background, quiet_frames, surrounded

RATE = 8000
VOWELS = {"a": (700, 1200), "e": (450, 1900), "i": (300, 2300), "o": (450, 850), "u": (320, 700)}
WORDS = ("ai", "ou", "eo", "iu")  # none ends and begins as two of them meet, so that a row of words is read in one way


def spoken(word: str, rng: np.random.Generator, rate: int = RATE, voice: float = 1.0) -> np.ndarray:
    """Two formants that glide from vowel to vowel, over a voice with harmonics, in some noise."""
    n = round(rng.uniform(0.25, 0.45) * rate)
    t = np.linspace(0, 1, n)
    recording = np.zeros(n)
    pitch = voice * rng.uniform(110, 130)
    for which in (0, 1):
        formant = np.interp(t, np.linspace(0, 1, len(word)), [VOWELS[v][which] for v in word]) * rng.normal(1, 0.02)
        for k in range(1, int(3500 / pitch)):
            strength = np.exp(-(((k * pitch - formant) / 150) ** 2))
            recording += strength * np.sin(2 * np.pi * k * pitch * np.arange(n) / rate)
    fade = np.minimum(1, 12 * np.minimum(t, 1 - t))
    return fade * recording + 0.003 * rng.normal(size=n)


def spoken_many(each: int, seed: int) -> tuple[list[np.ndarray], list[str]]:
    rng = np.random.default_rng(seed)
    words = [word for word in WORDS for _ in range(each)]
    return [spoken(word, rng) for word in words], words


@pytest.fixture(scope="module")
def model() -> SpokenWords:
    return SpokenWords(n_states=5, n_components=2).fit(*spoken_many(12, 0))


# ------------------------------------------------------------------ single words


@pytest.mark.slow
def test_words_are_recognized(model):
    recordings, words = spoken_many(8, 1)
    assert model.score(recordings, words) >= 0.95
    assert model.predict_proba(recordings).shape == (32, 4)
    np.testing.assert_allclose(model.predict_proba(recordings).sum(axis=1), 1.0)


def test_volume_does_not_matter(model):
    recordings, _ = spoken_many(2, 2)
    np.testing.assert_allclose(
        model.predict_proba([1e-3 * x for x in recordings]), model.predict_proba(recordings), atol=1e-6
    )


def test_all_ways_to_give_a_recording_agree(model, tmp_path):
    (x, *_), _ = spoken_many(1, 3)
    whole = np.round(x / np.abs(x).max() * 32000).astype(np.int16)
    path = tmp_path / "word.wav"
    with wave.open(str(path), "wb") as out:
        out.setparams((1, 2, RATE, 0, "NONE", ""))
        out.writeframes(whole.astype("<i2").tobytes())
    expected = model.log_posterior([whole])
    for recordings in ([path], [str(path)], [(RATE, whole)], Ragged.from_list([whole]), [whole / 32768.0], whole[None]):
        np.testing.assert_allclose(model.log_posterior(recordings), expected, atol=1e-9)


def test_recordings_of_another_rate_are_recognized(model):
    rng = np.random.default_rng(4)
    words = [*WORDS] * 3
    recordings = [(22050, spoken(word, rng, 22050)) for word in words]
    assert model.score(recordings, words) >= 0.9


def test_posteriors_are_those_of_the_chains_tempered(model):
    recordings, _ = spoken_many(2, 5)
    chains = model.classifier_.model_.components
    joint = np.log(model.class_prior_) + 0.05 * chains.log_prob(MFCC(**FEATURES)(recordings))
    expected = joint - logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(model.log_posterior(recordings), expected, atol=1e-8)


@pytest.mark.slow
def test_it_is_a_bayes_classifier_over_cepstra():
    recordings, words = spoken_many(6, 6)
    ours = SpokenWords(3, 2, acoustic_scale=1.0).fit(recordings, words)
    mixture = lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2, random_state=0)
    chain = lk.HMMDensity(mixture, n_states=3, topology="left-to-right", tol=1e-2, random_state=0)
    features = MFCC(**FEATURES)
    plain = BayesClassifier(chain).fit(features(recordings), words)
    np.testing.assert_allclose(ours.log_posterior(recordings), plain.log_posterior(features(recordings)), atol=1e-9)


@pytest.mark.slow
def test_a_weight_of_two_is_a_recording_said_twice():
    recordings, words = spoken_many(5, 7)
    weight = np.arange(len(words)) % 2 + 1
    twice = [i for i, w in enumerate(weight) for _ in range(w)]
    how = {"n_states": 3, "n_components": 1}
    weighted = SpokenWords(**how).fit(recordings, words, sample_weight=weight)
    copied = SpokenWords(**how).fit([recordings[i] for i in twice], [words[i] for i in twice])
    new, _ = spoken_many(3, 8)
    np.testing.assert_allclose(weighted.log_posterior(new), copied.log_posterior(new), atol=1e-6)


@pytest.mark.slow
def test_some_words_may_be_unknown():
    recordings, words = spoken_many(6, 9)
    some = [w if i % 3 else None for i, w in enumerate(words)]
    m = SpokenWords(4, 1).fit(recordings, some)
    assert m.classes_.tolist() == sorted(WORDS) and m.score(recordings, words) > 0.9


@pytest.mark.slow
def test_integers_may_be_words():
    recordings, words = spoken_many(4, 10)
    m = SpokenWords(3, 1).fit(recordings, [WORDS.index(w) for w in words])
    assert m.predict(recordings[:2]).tolist() == [0, 0]


# --------------------------------------------------------------------- decisions


def test_silence_and_scraps_are_refused(model):
    scrap = spoken("ai", np.random.default_rng(0))[:60]
    P = model.predict_proba([np.zeros(3000), np.full(3000, np.nan), scrap])
    assert P.max() < 0.5
    assert all(choice is lk.REJECT for choice in model.decide([np.zeros(3000), scrap], reject_below=0.9))


def test_costs_move_decisions(model):
    recordings, words = spoken_many(4, 11)
    never = 1.0 - np.eye(4)
    never[model.classes_.tolist().index("ai")] = 1e6
    costly = model.decide(recordings, cost=never)
    assert "ai" not in costly.tolist() and (costly[4:] == np.array(words[4:], dtype=object)).mean() > 0.9


def test_a_gap_in_the_recording_is_survived(model):
    recordings, words = spoken_many(4, 12)
    for x in recordings:
        x[len(x) // 2 : len(x) // 2 + 200] = np.nan
    assert model.score(recordings, words) >= 0.85


@pytest.mark.slow
@pytest.mark.filterwarnings("error:invalid value", "error:divide by zero")
@pytest.mark.parametrize("prior", [[0.0, 1.0], [1.0, 0.0]])
def test_a_word_that_is_never_said_has_posterior_zero(prior):
    recordings, words = spoken_many(4, 28)
    m = SpokenWords(3, 1, class_prior=prior).fit(recordings[:8], words[:8])
    assert m.predict_proba([*recordings[:8], np.zeros(900)]).tolist() == [prior] * 9


def test_silence_is_novel(model):
    recordings, _ = spoken_many(1, 29)
    done = model.decide([np.zeros(4000), np.full(4000, np.nan), recordings[0]], novelty=0.05, full=True)
    assert done.choice.tolist() == [lk.NOVEL, lk.NOVEL, "ai"] and "the recording is silent" in done.reason(0)
    noise = model.decide([np.random.default_rng(0).normal(size=4000)], novelty=0.05, full=True)
    assert "p(x) is too small" in noise.reason(0)


# --------------------------------------------------------------- connected words


def utterance(words: list[str], rng: np.random.Generator, gap: float) -> np.ndarray:
    pieces = [spoken(word, rng) for word in words]
    pause = 0.003 * rng.normal(size=round(gap * RATE))
    return np.concatenate([part for x in pieces for part in (x, pause)])


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.4])
def test_connected_words_are_understood(model, gap):
    rng = np.random.default_rng(13)
    said = [rng.choice(WORDS, rng.integers(1, 6)).tolist() for _ in range(12)]
    found = model.transcribe([utterance(words, rng, gap) for words in said])
    assert word_errors(said, [list(t.words) for t in found]).rate < 0.1


def test_one_utterance_gives_one_transcript(model):
    rng = np.random.default_rng(14)
    x = utterance(["ai", "ou"], rng, 0.1)
    one = model.transcribe(x)
    assert str(one) == str(model.transcribe([x])[0]) == "ai ou"
    assert one.begins[0] < one.ends[0] <= one.begins[1] and one.confidence.min() > 0.5


def test_a_grammar_is_obeyed(model):
    rng = np.random.default_rng(15)
    x = utterance(["ai", "ai", "ai"], rng, 0.1)
    at = model.classes_.tolist().index("ai")
    bigram = np.full((4, 4), 0.2)  # what rows lack to 1 is the end
    bigram[at, at] = 0.0
    assert model.transcribe(x).words == ("ai", "ai", "ai")
    words = model.transcribe(x, bigram).words
    assert all(pair != ("ai", "ai") for pair in pairwise(words)) and "ai" in words


# ------------------------------------------------------------- nothing, and when


@pytest.mark.filterwarnings("ignore:SpokenWords")
def test_nothing_was_said(model):
    rng = np.random.default_rng(20)
    recordings = [np.zeros(8000), np.full(900, np.nan), 1e-4 * rng.normal(size=8000), np.full(10, 0.3)]
    for heard in (*model.transcribe(recordings), *map(model.transcribe, recordings)):
        assert heard.words == () and str(heard) == "" and len(heard.begins) == len(heard.ends) == 0
        assert heard.confidence.shape == (0,) and heard.log_prob == 0.0


def test_what_is_far_too_faint_is_reported_and_may_be_listened_to(model):
    x = 1e-4 * utterance(["ai", "ou"], np.random.default_rng(21), 0.1)
    with pytest.warns(lk.FitWarning, match=r"recording 0 is \d\d dB fainter .* silence_threshold=None"):
        assert model.transcribe(x).words == ()
    assert str(model.transcribe(x, silence_threshold=None)) == str(model.transcribe(0.1 * x / 1e-4)) == "ai ou"
    with pytest.raises(DomainError, match="silence_threshold must be decibels"):
        model.transcribe(x, silence_threshold=-3)


def test_silence_among_words_changes_nothing(model):
    rng = np.random.default_rng(22)
    said = [utterance(["ai"], rng, 0.1), np.zeros(4000), utterance(["ou", "eo"], rng, 0.1)]
    assert [str(t) for t in model.transcribe(said)] == ["ai", "", "ou eo"]


@pytest.mark.slow
@pytest.mark.parametrize("trim", [30.0, None])
def test_times_are_seconds_from_the_beginning_of_the_recording(trim):
    rng = np.random.default_rng(23)
    model = SpokenWords(4, 1, features=MFCC(**{**FEATURES, "trim": trim})).fit(*spoken_many(6, 0))
    parts = [0.003 * rng.normal(size=16000), spoken("ai", rng), 0.003 * rng.normal(size=2400), spoken("ou", rng)]
    borders = np.cumsum([len(p) for p in parts]) / RATE
    heard = model.transcribe(np.concatenate([*parts, 0.003 * rng.normal(size=4000)]))
    assert heard.words == ("ai", "ou")
    np.testing.assert_allclose(heard.begins, borders[[0, 2]], atol=0.1)
    np.testing.assert_allclose(heard.ends, borders[[1, 3]], atol=0.1)
    assert heard.frames.words == heard.words and heard.frames.begins.dtype.kind == "i"
    steps = np.diff(heard.begins) / (np.diff(heard.frames.begins) * model.cepstra.step)
    np.testing.assert_allclose(steps, 1.0)
    late = model.transcribe(np.concatenate(parts))
    assert late.ends[-1] <= borders[-1]


def test_times_of_another_rate_are_seconds_too(model):
    rng = np.random.default_rng(24)
    x = np.concatenate([0.003 * rng.normal(size=22050), spoken("ai", rng, 22050)])
    assert model.transcribe((22050, x)).begins == pytest.approx([1.0], abs=0.1)


@pytest.mark.slow
def test_labels_stay_what_they_were():
    recordings, words = spoken_many(5, 25)
    m = SpokenWords(4, 1).fit(recordings, [WORDS.index(w) for w in words])
    heard = m.transcribe(np.concatenate([recordings[0], recordings[5]]))
    assert heard.words == (0, 1) and isinstance(heard.words[0], int) and str(heard) == "0 1"
    assert word_errors([[0, 1]], [heard.words]).rate == 0.0


def test_confidence_counts_a_fifth_and_is_less_sure(model):
    rng = np.random.default_rng(26)
    x = utterance(["ai", "ou", "iu"], rng, 0.0)
    x = x + 0.1 * x.std() * rng.normal(size=len(x))
    tracks = model._front([x])
    full = model.network().decode(tracks, 300.0, PENALTY)[0]
    ours = model.transcribe(x)
    assert ours.words == full.words and ours.log_prob == full.log_prob
    again = model.network().decode(tracks, 300.0, PENALTY, confidence=1.0)[0]
    np.testing.assert_allclose(again.confidence, full.confidence, atol=1e-9)
    assert ours.confidence.max() < full.confidence.max() and (ours.confidence > 0).all()
    assert model.transcribe(x, confidence=False).confidence is None


@pytest.mark.slow
def test_words_may_be_ergodic():
    recordings, words = spoken_many(5, 27)
    m = SpokenWords(3, 1, topology="ergodic").fit(recordings, words)
    assert m.score(recordings, words) > 0.9 and m.transcribe(recordings[0]).words == ("ai",)


def test_the_background_is_faint():
    rng = np.random.default_rng(0)
    c = MFCC(**FEATURES)
    recordings = [spoken("ai", rng) for _ in range(5)]
    loud, quiet = c(recordings[0]), quiet_frames(c, surrounded(recordings[0], RATE, rng))
    assert quiet[:, 0].max() < np.quantile(loud[:, 0], 0.3)
    silence = background(c, recordings)
    assert silence.members is None and silence.states == 1
    assert silence.log_prob([quiet])[0] / len(quiet) > silence.log_prob([loud])[0] / len(loud)


# ------------------------------------------------------------------------ manners


def test_settings_are_scikit_learns(model):
    other = clone(SpokenWords(6, features=MFCC(sample_rate=16000), reject_below=0.9))
    assert other.get_params()["n_states"] == 6 and other.cepstra.sample_rate == 16000
    for use in (other.predict, other.transcribe, other.decide, other.predict_proba):
        with pytest.raises(NotFittedError):
            use([np.arange(900.0)])


@pytest.mark.slow
def test_scale_is_looked_at_whenever_it_is_used():
    recordings, words = spoken_many(3, 30)
    m = SpokenWords(3, 1, acoustic_scale=np.float32(0.05)).fit(recordings, words)
    np.testing.assert_allclose(m.predict_proba(recordings).sum(axis=1), 1.0)
    for wrong in (-1.0, 0.0, "much", True, np.nan):
        with pytest.raises(DomainError, match="scale must lie above 0"):
            m.set_params(acoustic_scale=wrong).predict(recordings)


def test_a_file_brings_it_back(model, tmp_path):
    recordings, _ = spoken_many(2, 16)
    lk.save(model, tmp_path / "words.likely")
    again = lk.load(tmp_path / "words.likely")
    np.testing.assert_array_equal(again.log_posterior(recordings), model.log_posterior(recordings))
    assert str(again.transcribe(recordings[0])) == str(model.transcribe(recordings[0]))


@pytest.mark.slow
def test_features_are_kept_in_a_file(tmp_path):
    recordings, words = spoken_many(3, 17)
    m = SpokenWords(3, 1, features=MFCC(n_coefficients=8, trim=35.0)).fit(recordings, words)
    lk.save(m, tmp_path / "words.likely")
    assert lk.load(tmp_path / "words.likely").features.n_coefficients == 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"recordings": [np.zeros(3000), np.ones(9)]}, "recording 0 must be a word, got silence"),
        ({"recordings": []}, "at least one recording is needed"),
        ({"recordings": [np.ones(0), np.ones(9)]}, "recording 0: a recording needs samples"),
        ({"recordings": np.ones(900)}, r"pass \[recording\]"),
        ({"features": "mfcc"}, "features must be an MFCC"),
        ({"acoustic_scale": 0.0}, "acoustic_scale must lie above 0"),
        ({"n_states": 200}, "at least 200 frames"),
        ({"topology": "spiral"}, "spiral"),
    ],
)
def test_mistakes_are_reported_in_words(change, words):
    recordings, labels = spoken_many(1, 18)
    how = dict(change)
    given = how.pop("recordings", recordings)
    with pytest.raises((DataError, DomainError, ShapeError), match=words):
        SpokenWords(**how).fit(given, labels[: len(given)] if len(given) < 5 else labels)


# -------------------------------------------------------------------- real digits


@pytest.mark.slow
def test_real_digits_of_two_speakers(data_dir):
    z = np.load(data_dir / "spoken_digits" / "fsdd.npz")
    recordings, said, who, take = Ragged(z["samples"], z["offsets"]), z["label"], z["speaker"], z["take"]
    mine = np.isin(who, ["jackson", "theo"])
    train, test = np.flatnonzero(mine & (take >= 5) & (take < 17)), np.flatnonzero(mine & (take < 5))
    model = SpokenWords(n_components=1).fit(recordings[train], said[train])
    assert model.score(recordings[test], said[test]) >= 0.95

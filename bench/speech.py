"""Spoken digits: single words, unknown speakers, connected words, beside hmmlearn in the same run if it is there.

    python bench/speech.py                     all sections, and the page docs/results/speech.md
    python bench/speech.py --only single       sections whose name contains one of these; the others of the page stay
    python bench/speech.py --slow              also the table of settings, learned and judged on training takes only

Data come from LIKELY_DATA, else from ../shared/data: the free spoken digit dataset, 6 speakers × 10 digits × 50 takes
at 8 kHz. Its official split tests on takes 0–4 (300 words).
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likely.core.ragged import Ragged
from likely.features.mfcc import MFCC
from likely.metrics.confidence_intervals import Interval, proportion_interval
from likely.metrics.word_error_rate import WordErrors, word_errors
from likely.recognizers.speech.spoken_words import FEATURES, PENALTY, SpokenWords
from pages import Page, sections_of

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "speech.md"
RATE = 8000
PENALTIES = (0.0, 20.0, 40.0, 80.0, 120.0, 160.0)  # nats per word, of which one is chosen on training takes
PREFACE = """# Results: spoken digits

By `python bench/speech.py` (data from `LIKELY_DATA`: the free spoken digit dataset, six speakers, 50 takes of each
digit, 8 kHz). The official split tests on takes 0–4. Errors are in percent, with exact 95 % intervals; word error
rates with intervals from resampled utterances. Seconds were taken on a busy machine with two cores: orders
of magnitude only.

How the settings were chosen: on takes 5–49 alone. Features (silence trimmed, delta features over seven frames, energy
normalized, no cepstral mean normalization) were compared by five-fold cross-validation over these takes and by leaving
out speakers, with chains of Viterbi training written for that purpose; states, components and `scale` with this
library, nine takes held out at a time; the last section shows the main alternatives, of which most differ by less than
their intervals. The penalty of a word in connected speech was chosen on takes 45–49 with words learned from takes 5–44.
Takes 0–4 were looked at once, with everything fixed. Speakers are left out over all takes; since features were compared
in this way too, that section is slightly optimistic."""


class Digits(NamedTuple):
    """Recordings, what was said, by whom, and which take it was."""

    recordings: Ragged
    words: Any
    speakers: Any
    takes: Any

    def take(self, index: Any) -> Digits:
        return Digits(self.recordings[index], self.words[index], self.speakers[index], self.takes[index])

    def of_takes(self, first: int, last: int) -> Digits:
        return self.take(np.flatnonzero((self.takes >= first) & (self.takes <= last)))


def digits() -> Digits:
    z = np.load(DATA / "spoken_digits" / "fsdd.npz")
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], dtype=object)
    return Digits(Ragged(z["samples"], z["offsets"]), names[z["label"]], z["speaker"], z["take"])


# ------------------------------------------------------------------------ tables


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers stand right."""
    rule = ["---" if i == 0 else "--:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in (head, rule, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, Interval):
        return f"{100 * value.value:.2f} ({100 * value.low:.1f}–{100 * value.high:.1f})"
    return f"{value:.2f}" if isinstance(value, float | np.floating) else str(value)


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and its seconds; told on the error stream, so that a long run shows life."""
    begin = time.perf_counter()
    done = make()
    seconds = time.perf_counter() - begin
    print(f"  … {seconds:.1f} s", file=sys.stderr, flush=True)
    return done, seconds


def wrong(predicted: Any, true: Any) -> Interval:
    return proportion_interval(int(np.sum(predicted != true)), len(true))


# ------------------------------------------------------------------ single words


def single_words(slow: bool) -> str:
    data = digits()
    train, test = data.of_takes(5, 49), data.of_takes(0, 4)
    model, learning = timed(lambda: SpokenWords().fit(train.recordings, train.words))
    P, deciding = timed(lambda: model.predict_proba(test.recordings))
    guess = model.classes_[P.argmax(axis=1)]
    one = min(timed(lambda: model.predict([test.recordings[0]]))[1] for _ in range(20))
    rows = [("SpokenWords()", wrong(guess, test.words), learning, 1e3 * deciding / len(test.words), 1e3 * one)]
    rows += list(peer_rows(train, test))
    text = table(["official split, 300 words", "error %", "learning, s", "ms per word, in a batch", "alone"], rows)
    text += f"\n\nLog-loss {-np.log(P[np.arange(len(P)), _places(model, test.words)]).mean():.4f} nats. "
    text += f"Confused: {_confused(test.words, guess)}."
    text += PEER if len(rows) > 1 else ""
    text += "\n\nRejecting uncertain words (`decide(recordings, reject_below=…)`):\n\n"
    return text + refusals(P, guess, test)


PEER = """ hmmlearn starts from the same equal segments and makes at most 14 passes, about as many as are needed here,
on one thread."""


def _places(model: SpokenWords, words: Any) -> Any:
    return np.searchsorted(model.classes_.astype(str), words.astype(str))


def _confused(true: Any, guess: Any) -> str:
    pairs = [f"{heard} for {said}" for said, heard in zip(true, guess, strict=True) if said != heard]
    return ", ".join(sorted(pairs)) or "none"


def refusals(P: Any, guess: Any, test: Digits) -> str:
    rows = []
    for limit in (0.0, 0.5, 0.7, 0.9, 0.99):
        kept = P.max(axis=1) >= limit
        rows.append((limit, f"{100 * (1 - kept.mean()):.1f}", wrong(guess[kept], test.words[kept])))
    return table(["refuse below", "refused %", "error % of the others"], rows)


def peer_rows(train: Digits, test: Digits) -> Iterator[Sequence[Any]]:
    """hmmlearn's mixtures on the same features, states and components, with the same start: equal segments."""
    try:
        import hmmlearn  # noqa: F401
    except ImportError:
        print("  hmmlearn is not installed: no peer", file=sys.stderr)
        return
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    features = MFCC(**FEATURES)
    X, T = features(train.recordings), features(test.recordings)
    names = sorted(set(train.words))
    peers, learning = timed(lambda: [_peer([*X[np.flatnonzero(train.words == w)]]) for w in names])
    scores, deciding = timed(lambda: np.array([[peer.score(x) for peer in peers] for x in T]))
    guess = np.array(names, dtype=object)[scores.argmax(axis=1)]
    yield "hmmlearn GMMHMM, same features", wrong(guess, test.words), learning, 1e3 * deciding / len(T), "–"


def _peer(sequences: list[Any], states: int = 8, parts: int = 4) -> Any:
    from hmmlearn.hmm import GMMHMM
    from sklearn.cluster import KMeans

    X, lengths = np.concatenate(sequences), [len(s) for s in sequences]
    state = np.concatenate([np.arange(n) * states // n for n in lengths])
    spread = X.var(axis=0)
    group = np.empty(len(X), dtype=int)
    for s in range(states):
        group[state == s] = KMeans(parts, n_init=1, random_state=0).fit_predict(X[state == s] / np.sqrt(spread))
    pick = [[X[(state == s) & (group == m)] for m in range(parts)] for s in range(states)]
    h = GMMHMM(states, parts, init_params="", params="tmcw", n_iter=14, tol=1e-2 * len(X), min_covar=1e-3)
    h.startprob_ = np.eye(states)[0]
    h.transmat_ = 0.8 * np.eye(states) + 0.2 * np.eye(states, k=1)
    h.transmat_[-1, -1] = 1.0
    h.weights_ = np.array([[len(x) for x in row] for row in pick], dtype=float)
    h.weights_ /= h.weights_.sum(axis=1, keepdims=True)
    h.means_ = np.array([[x.mean(axis=0) for x in row] for row in pick])
    h.covars_ = np.array([[x.var(axis=0) + 0.05 * spread for x in row] for row in pick])
    return h.fit(X, lengths)


# -------------------------------------------------------------- unknown speakers


def unknown_speakers(slow: bool) -> str:
    data, rows, all_wrong = digits(), [], 0
    for who in np.unique(data.speakers):
        train, test = data.take(data.speakers != who), data.take(data.speakers == who)
        model, seconds = timed(lambda train=train: SpokenWords().fit(train.recordings, train.words))
        miss = int(np.sum(model.predict(test.recordings) != test.words))
        all_wrong += miss
        rows.append((who, proportion_interval(miss, len(test.words)), seconds))
    rows.append(("all", proportion_interval(all_wrong, len(data.words)), ""))
    text = (
        "Learned from five speakers, judged on all 500 words of the sixth: with five voices to learn from, the sixth "
    )
    return text + "is a stranger.\n\n" + table(["left out", "error %", "learning, s"], rows)


# --------------------------------------------------------------- connected words


class Utterance(NamedTuple):
    samples: Any
    words: list[str]


def utterances(data: Digits, each: int, seed: int, gap: tuple[float, float]) -> list[Utterance]:
    """Three to seven words of one speaker in a row, with pauses of faint noise between."""
    rng = np.random.default_rng(seed)
    return [_utterance(data, who, rng, gap) for who in np.unique(data.speakers) for _ in range(each)]


def _utterance(data: Digits, who: str, rng: np.random.Generator, gap: tuple[float, float]) -> Utterance:
    chosen = rng.choice(np.flatnonzero(data.speakers == who), size=rng.integers(3, 8), replace=False)
    words = [data.recordings[int(i)] / 2.0**15 for i in chosen]
    level = np.sqrt(np.mean(np.concatenate(words) ** 2)) * 10 ** (-40 / 20)
    pieces = []
    for x in words:
        pieces += [x, level * rng.normal(size=round(rng.uniform(*gap) * RATE))]
    joined = np.concatenate(pieces[:-1])
    return Utterance(joined + level * 0.1 * rng.normal(size=len(joined)), [str(data.words[i]) for i in chosen])


def heard(model: SpokenWords, said: list[Utterance], penalty: float, beam: float | None = 300.0) -> WordErrors:
    found = model.transcribe([u.samples for u in said], penalty=penalty, beam=beam, confidence=False)
    return word_errors([u.words for u in said], [list(t.words) for t in found])


GAPS = {"pauses of 50–250 ms": (0.05, 0.25), "no pauses": (0.0, 0.0)}


def connected_words(slow: bool) -> str:
    data = digits()
    early = SpokenWords()
    early.fit(*data.of_takes(5, 44)[:2])
    practice = [u for gap in GAPS.values() for u in utterances(data.of_takes(45, 49), 4, 1, gap)]
    rates = {p: heard(early, practice, p).rate for p in PENALTIES}
    penalty = min(rates, key=lambda p: rates[p])
    model = SpokenWords().fit(*data.of_takes(5, 49)[:2])
    rows = []
    for name, gap in GAPS.items():
        said = utterances(data.of_takes(0, 4), 20, 2, gap)
        errors, seconds = timed(lambda said=said: heard(model, said, penalty))
        kinds = f"{errors.substitutions:g} S, {errors.deletions:g} D, {errors.insertions:g} I of {errors.length:g}"
        rows.append((name, errors.interval(), kinds, errors.wrong_utterances * 100, 1e3 * seconds / len(said)))
    text = "120 utterances, each three to seven test words of one speaker joined, faint noise (40 dB below) between; "
    text += f"every word may follow every word. Penalty of a word: {penalty:g} nats, from takes 45–49 (word error "
    text += "rates there: " + ", ".join(f"{p:g}: {100 * r:.1f} %" for p, r in rates.items()) + ").\n\n"
    head = ["test takes 0–4", "word error rate %", "errors", "utterances with an error %", "ms each"]
    return text + table(head, rows) + "\n\n" + CONFIDENCE + confidences(early, data)


SCALES = (0.05, 0.1, 0.2, 0.5, 1.0)  # of what frames say, for the confidence of words
NOISES = (0.0, 0.1, 0.25)  # standard deviations of noise, in those of the recording
CONFIDENCE = """Confidence of words: how well it tells right words from wrong ones (log-loss, nats per word), for the
acoustic scale, the weight of the frames' log-likelihood, on utterances of takes 45–49 with words learned from takes
5–44, as they are and with noise added. At scale 1, confidence is best for clean recordings and overconfident where
words are wrong. No scale is best everywhere; 0.2, which is never far from the best here, was chosen by this table.

"""


def confidences(model: SpokenWords, data: Digits) -> str:
    said = [u for gap in GAPS.values() for u in utterances(data.of_takes(45, 49), 10, 7, gap)]
    rows = [_judged(model, said, noise) for noise in NOISES]
    return table(["noise", "words right %", *(f"scale {scale:g}" for scale in SCALES)], rows)


def _judged(model: SpokenWords, said: list[Utterance], noise: float) -> Sequence[Any]:
    rng, network = np.random.default_rng(5), model.network()
    recordings = [u.samples + noise * np.std(u.samples) * rng.normal(size=len(u.samples)) for u in said]
    tracks = model.cepstra(recordings)
    found = network.decode(tracks, 300.0, PENALTY, confidence=False)
    errors = word_errors([u.words for u in said], [list(t.words) for t in found])
    right = np.array([mark == " " for one in errors.alignments for _, word, mark in one if word is not None])
    losses = []
    for scale in SCALES:
        judged = network.decode(tracks, 300.0, PENALTY, confidence=scale)
        p = np.clip(np.concatenate([t.confidence for t in judged]), 1e-6, 1 - 1e-6)
        losses.append(f"{-np.mean(np.log(np.where(right, p, 1 - p))):.3f}")
    return f"{noise:g}", f"{100 * right.mean():.1f}", *losses


# ---------------------------------------------------------------------- settings

ALTERNATIVES: dict[str, dict[str, Any]] = {
    "as it is: 8 states, 4 components": {},
    "1 component": {"n_components": 1},
    "8 components": {"n_components": 8},
    "5 states": {"n_states": 5},
    "12 states": {"n_states": 12},
    "silence at the ends kept": {"features": MFCC(**{**FEATURES, "trim": None})},
    "slopes over five frames": {"features": MFCC(**{**FEATURES, "delta_width": 2})},
    "mean taken off": {"features": MFCC(**{**FEATURES, "normalize": "mean"})},
    "mean and variance taken off": {"features": MFCC(**{**FEATURES, "normalize": "mean and variance"})},
    "volume left in": {"features": MFCC(**{**FEATURES, "normalize": None})},
}


def settings(slow: bool) -> str:
    if not slow:
        return sections_of(PAGE).get("Settings, on training takes", "Run with `--slow`.")
    data = digits().of_takes(5, 49)
    text = "Held out are takes 5–13 and then takes 41–49 (1,080 words), learned from the other training takes.\n\n"
    rows = [(name, *_held_out(data, how)) for name, how in ALTERNATIVES.items()]
    return text + table(["setting", "error %", "log-loss", "learning, s"], rows)


def _held_out(data: Digits, how: dict[str, Any]) -> Sequence[Any]:
    miss, loss, seconds, n = 0, 0.0, 0.0, 0
    for first, last in ((5, 13), (41, 49)):
        out = (data.takes >= first) & (data.takes <= last)
        train, test = data.take(np.flatnonzero(~out)), data.take(np.flatnonzero(out))
        model, took = timed(lambda train=train: SpokenWords(**how).fit(train.recordings, train.words))
        log_p = model.log_posterior(test.recordings)
        place = _places(model, test.words)
        miss += int(np.sum(log_p.argmax(axis=1) != place))
        loss -= float(log_p[np.arange(len(place)), place].sum())
        seconds, n = seconds + took, n + len(place)
    return proportion_interval(miss, n), f"{loss / n:.4f}", seconds / 2


# -------------------------------------------------------------------------- page

SECTIONS: dict[str, Callable[[bool], str]] = {
    "Isolated words": single_words, "Unknown speakers": unknown_speakers, "Connected words": connected_words,
    "Settings, on training takes": settings,
}  # fmt: skip


if __name__ == "__main__":
    Page(PAGE, PREFACE, SECTIONS, DATA).main("speech", __doc__)

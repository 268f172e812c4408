"""Result of word recognition in a sound: words and their times in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.features.mfcc import MFCC
from likely.language.transcript import Transcript


@dataclass(frozen=True, eq=False)
class Heard(Transcript):
    """Recognized words of one sound: word i lasts from begins[i] to ends[i], in seconds from its beginning.

    Words are labels of training: numbers stay numbers. `frames` is the transcript in feature frames, counted from the
    first loud frame; None where the sound was too faint.
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

"""What was heard in a sound: words, and when, in seconds from its beginning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.features.mfcc import MFCC
from likely.language.transcript import Transcript


@dataclass(frozen=True, eq=False)
class Heard(Transcript):
    """Words of one sound: word i lasts from begins[i] to ends[i] seconds after the beginning of the sound.

    Words are labels as they were learned: numbers stay numbers. `frames` is the same in frames of the features, counted
    from the first loud moment; None where nothing was loud enough to be listened to.
    """

    words: tuple[Any, ...]
    begins: Array  # type: ignore[assignment]  # (n,) seconds
    ends: Array  # type: ignore[assignment]  # (n,) seconds
    log_prob: float = 0.0
    confidence: Array | None = None
    frames: Transcript | None = None

    def __str__(self) -> str:
        return " ".join(map(str, self.words))


NOTHING = Heard((), np.empty(0), np.empty(0), 0.0, np.empty(0))  # certain, and no words


def in_seconds(found: Transcript, cepstra: MFCC, x: Array, labels: dict[str, Any]) -> Heard:
    """A transcript of the frames of samples x, on the clock of x."""
    words = tuple(labels[word] for word in found.words)
    begins, ends = (_seconds(border, cepstra, x) for border in (found.begins, found.ends))
    return Heard(words, begins, ends, found.log_prob, found.confidence, found)


def _seconds(border: Any, cepstra: MFCC, x: Array) -> Array:
    """The moment between the middles of the frame before a border and the one after it."""
    first = cepstra.part(x).start + (cepstra.size - cepstra.stride) / 2
    at = (first + np.asarray(border) * cepstra.stride) / cepstra.sample_rate
    return np.minimum(at, len(x) / cepstra.sample_rate)

"""Result of connected-word recognition: words, their frames, and confidences."""

from __future__ import annotations

from dataclasses import dataclass

from likely.core.arrays import Array, Index
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Transcript(Value):
    """Recognized words of one utterance; str() is the text.

    Parameters
    ----------
    words : tuple of str
        The words.
    begins : ndarray of int (n,)
        First frame of each word.
    ends : ndarray of int (n,)
        The frame after its last; silence may lie between words.
    log_prob : float
        Joint log-probability of the frames and the best path through the network, including penalty and
        scale; −inf where there is no path, and then there are no words.
    confidence : ndarray (n,), optional
        Posterior probability of each word, averaged over its frames; None if it was not requested.

    Examples
    --------
    >>> import numpy as np
    >>> str(Transcript(("one", "two"), np.array([0, 9]), np.array([7, 20]), -31.5, np.array([0.99, 0.8])))
    'one two'
    """

    words: tuple[str, ...]
    begins: Index  # (n,): the first frame of each
    ends: Index  # (n,): the frame after its last; silence may lie between
    log_prob: float
    confidence: Array | None = None  # (n,), in [0, 1]

    def __post_init__(self) -> None:
        self._set(words=tuple(self.words), begins=self.begins, ends=self.ends, confidence=self.confidence)

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        return " ".join(self.words)

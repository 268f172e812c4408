"""How sure one may be of each word: as the chains see it, but with frames that count for what they add.

Windows overlap and slopes share them, so that every likelihood is too sure of itself: over all ways through the network
it counts a share (the acoustic scale of Wessel, Schlüter, Macherey and Ney 2001). The best words do not change.
"""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.ragged import Ragged
from likely.models.transcript import Transcript
from likely.models.word_network import WordNetwork, _Scores
from likely.models.word_passing import shares_of

SHARE = 0.2  # chosen on training takes of spoken digits, with noise and without (docs/results-speech)


def with_confidence(
    network: WordNetwork, tracks: Ragged, found: list[Transcript], penalty: float, scale: float, share: float = SHARE
) -> list[Transcript]:
    """The transcripts with p(a token is in the word | all frames), averaged over the frames of each word."""
    with one_blas_thread():
        jobs = range(len(found))
        sure = list(ordered_map(lambda i: _sure(network, tracks, i, found[i], penalty, scale, share), jobs, cores()))
    return [one.replace(confidence=c) for one, c in zip(found, sure, strict=True)]


def _sure(
    network: WordNetwork, tracks: Ragged, i: int, found: Transcript, penalty: float, scale: float, share: float
) -> Array:
    if not len(found):
        return np.empty(0)
    place, which = {name: c for c, name in enumerate(network.names)}, np.full(len(tracks[i]), -1, dtype=np.intp)
    for word, begin, end in zip(found.words, found.begins, found.ends, strict=True):
        which[begin:end] = place[word]
    scores, plan = _Scores(network, tracks, i), network._plan(share * penalty, scale)
    with np.errstate(all="ignore"):
        p = shares_of(
            network._summed_units, plan, lambda a, b: share * scores(a, b), len(which), network._columns[1], which
        )
    return np.array([p[begin:end].mean() for begin, end in zip(found.begins, found.ends, strict=True)])

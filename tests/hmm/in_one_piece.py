"""Statistics of whole sequences by forward–backward or Viterbi: neither the fused sweep nor pieces."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from likely.hmm import sequence_blocks
from likely.hmm.baum_welch import _block_stats
from likely.hmm.hmm import HMM, known_states
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.sequence_blocks import SequenceBlocks


def in_one_piece(h: HMM, x: Any, weight: Any = None, known: Any = None, hard: bool = False) -> HMMStats:
    data = SequenceBlocks.of(h, x, best=hard, hard=hard)
    n = len(data.frames)
    if known is not None:
        data = data._replace(known=known_states(known, data.frames, h.states))
    with patch.object(sequence_blocks, "LONG", 2**30), np.errstate(all="ignore"):
        return _block_stats(data, 0, n, np.ones(n) if weight is None else np.asarray(weight))

"""`follow` with checkpoints in a file: an interrupted stream is resumed with bitwise equal results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from likely.core import filter_protocol as filter
from likely.core.errors import ModelFileError, sentence
from likely.core.stream_checkpoint import Following


class StreamCheckpointFile:
    """A checkpoint of a stream in a model file, written atomically."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def load(self) -> Following | None:
        """The saved progress; None if there is no file."""
        from likely.io.model_files import load

        if not os.path.exists(self.path):
            return None
        kept = load(self.path)
        if not isinstance(kept, Following):
            expected, remedy = "this must be the progress of a stream", "choose another file name"
            raise ModelFileError(sentence(os.fsdecode(self.path), expected, type(kept).__name__, remedy))
        return kept

    def save(self, following: Following) -> None:
        """Save the progress atomically: write a new file, sync it, rename it."""
        from likely.io.model_files import save

        save(following, self.path)


def follow(
    model: Any, observations: Iterable[Any], belief: Any = None, *, checkpoint: Any = None, checkpoint_every: int = 1,
    replay: bool | None = None,
) -> Iterator[tuple[Any, float]]:  # fmt: skip
    """The belief and log p(y | past observations) after each observation of a stream, as they arrive.

    - **model**: a value such as `HMM` or `LinearGaussian`, a fitted estimator of one, or an online learner: an
      estimator with `partial_fit` scores each row before it learns from it (classifiers: (row, label)), a conjugate
      prior becomes the posterior. Its belief is then the state of learning.
    - **checkpoint**: a checkpoint file, written after every `checkpoint_every` observations and at the end. If it
      exists, the stream is resumed from it, with bitwise equal results. An observation counts once the next one is
      requested, so that after a crash none is lost and none counts twice; a file of another model is an error.
    - **replay**: whether the observations begin again with the first, so that those processed before are skipped;
      they must be the same. None: True for observations with a length (a list, an array), False for a stream. Pass
      `replay=False` for a list that holds only new observations.

    >>> import likely as lk, os, tempfile
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> path = os.path.join(tempfile.mkdtemp(), "live.likely")
    >>> first = list(follow(h, [0.1, 4.9], checkpoint=path))
    >>> [int(belief.probs.argmax()) for belief, logp in follow(h, [0.1, 4.9, 5.2, 0.3], checkpoint=path)]
    [1, 0]
    """
    store = StreamCheckpointFile(checkpoint) if isinstance(checkpoint, str | os.PathLike) else checkpoint
    return filter.follow(
        model, observations, belief, checkpoint=store, checkpoint_every=checkpoint_every, replay=replay
    )

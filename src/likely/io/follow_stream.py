"""`follow` with its progress in a file: a stream that was interrupted goes on as if nothing had happened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from likely.core import filter
from likely.core.errors import ModelFileError, sentence
from likely.core.stream_checkpoint import Following


class Kept:
    """Keeps the progress of a stream in a model file, whole or not at all."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def load(self) -> Following | None:
        """What was kept; None if there is no file."""
        from likely.io.model_files import load

        if not os.path.exists(self.path):
            return None
        kept = load(self.path)
        if not isinstance(kept, Following):
            expected, remedy = "this must be the progress of a stream", "choose another file name"
            raise ModelFileError(sentence(os.fsdecode(self.path), expected, type(kept).__name__, remedy))
        return kept

    def save(self, following: Following) -> None:
        """Write it beside the old one, force it to the disk, put it in its place."""
        from likely.io.model_files import save

        save(following, self.path)


def follow(
    model: Any, observations: Iterable[Any], belief: Any = None, *, keep: Any = None, every: int = 1,
    replay: bool | None = None,
) -> Iterator[tuple[Any, float]]:  # fmt: skip
    """The belief and log p(y | all before) after each of many observations, as they come.

    - **model**: a value such as `HMM` or `LinearGaussian`, a fitted estimator of one, or an online learner: an
      estimator with `partial_fit` scores each row before it learns from it (classifiers: (row, label)), a conjugate
      prior becomes the posterior. Its belief is then what was learned so far.
    - **keep**: a file in which progress is kept every `every` observations and at the end. If it is there, the stream
      goes on from it, to the same bits. An observation counts once its successor is asked for, so that after a crash
      none is lost and none counts twice; of another model the file is refused.
    - **replay**: whether the observations begin again with the first, so that those taken before are passed over;
      they must be the same. None: what has a length (a list, an array) begins again, a stream goes on. Say
      `replay=False` for a list that holds only what is new.

    >>> import likely as lk, os, tempfile
    >>> h = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> path = os.path.join(tempfile.mkdtemp(), "live.likely")
    >>> first = list(follow(h, [0.1, 4.9], keep=path))
    >>> [int(belief.probs.argmax()) for belief, logp in follow(h, [0.1, 4.9, 5.2, 0.3], keep=path)]
    [1, 0]
    """
    keeper = Kept(keep) if isinstance(keep, str | os.PathLike) else keep
    return filter.follow(model, observations, belief, keep=keeper, every=every, replay=replay)

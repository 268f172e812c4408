"""Checkpoints: the progress of a fit or of followed streams in a model file, from which it is resumed bit for bit."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np

from likely.core.errors import ModelFileError, sentence
from likely.core.progress import Following, Progress
from likely.io.model_files import Path, dumps, load, loads, save

TOGETHER = 200  # streams in one description: a model file may have some 30,000 parts


class Checkpoint:
    """A checkpoint in a file: `lk.fit(model, data, checkpoint=lk.core.Checkpoint("em.likely"))`.

    Each pass (or each `every`-th) is saved atomically. If the file exists when a fit begins, the fit is resumed with
    bitwise equal results; other data raise an error. A finished fit is returned as it ended. Delete the file to start
    again. `lk.follow(…, checkpoint=lk.core.Checkpoint("live.likely"))` keeps streams in the same way.

    Parameters
    ----------
    path : str or path
        The file.
    every : int, default 1
        Number of passes per saved one.

    Examples
    --------
    >>> import likely as lk, numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "em.likely")
    >>> start = lk.Mixture([0.5, 0.5], lk.Gaussian([[2.0], [7.0]], [[[9.0]], [[9.0]]]))
    >>> x = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> first = lk.fit(start, x, prior="weak", stop=lk.StoppingRule(2), checkpoint=lk.core.Checkpoint(path))
    >>> lk.fit(start, x, prior="weak", checkpoint=lk.core.Checkpoint(path)).trace[:3] == first.trace
    True
    """

    def __init__(self, path: Path, every: int = 1) -> None:
        self.path, self.every, self.passes = path, max(int(every), 1), 0

    def load(self, kind: type[Any] = Progress) -> Any:
        """The saved progress.

        Parameters
        ----------
        kind : type
            Class of the progress; another one in the file is an error.

        Returns
        -------
        progress or None
            None if there is no file.
        """
        if not os.path.exists(self.path):
            return None
        kept = load(self.path)
        if type(kept) is not kind:
            expected, remedy = f"this must be {kind.described}", "choose another file name"
            raise ModelFileError(sentence(os.fsdecode(self.path), expected, type(kept).__name__, remedy))
        return _whole(kept, os.fsdecode(self.path)) if isinstance(kept, Following) else kept

    def save(self, progress: Any, at_once: bool = False) -> None:
        """Save the progress, if it is due or the fit has ended.

        Parameters
        ----------
        progress : progress
            What to save.
        at_once : bool, default False
            Save in any case.
        """
        self.passes += 1
        if at_once or self.passes % self.every == 0 or (isinstance(progress, Progress) and progress.reason):
            save(_in_parts(progress) if isinstance(progress, Following) else progress, self.path)


# ------------------------------------------------------------------------- many streams


def _in_parts(now: Following) -> Following:
    """The same as one description of some streams, and files of the others as bytes."""
    if len(now.names) <= TOGETHER:
        return now
    rest = [dumps(_some(now, slice(at, at + TOGETHER))) for at in range(TOGETHER, len(now.names), TOGETHER)]
    sizes = np.array([len(part) for part in rest], dtype=np.int64)
    return _some(now, slice(TOGETHER)).replace(more=np.frombuffer(b"".join(rest), dtype=np.uint8), sizes=sizes)


def _some(now: Following, part: slice) -> Following:
    return now.replace(
        names=now.names[part], beliefs=now.beliefs[part], counts=now.counts[part], log_probs=now.log_probs[part]
    )


def _whole(kept: Following, path: str) -> Following:
    """All streams of a file again; an untrusted file may hold anything in their place."""
    if not len(kept.sizes):
        return kept
    ends = np.cumsum([0, *kept.sizes.tolist()])
    parts = [kept, *(loads(kept.more[a:b].tobytes()) for a, b in pairwise(ends.tolist()))]
    names = tuple(name for part in parts if isinstance(part, Following) for name in part.names)
    alike = all(type(part) is type(kept) for part in parts) and len(set(names)) == len(names)
    if not alike or ends[-1] != len(kept.more):
        raise ModelFileError(sentence(path, "it must hold streams, each with a name of its own", "others"))
    return kept.replace(
        names=names, beliefs=tuple(belief for part in parts for belief in part.beliefs),
        counts=np.concatenate([part.counts for part in parts]),
        log_probs=np.concatenate([part.log_probs for part in parts]), more=kept.more[:0], sizes=kept.sizes[:0],
    )  # fmt: skip

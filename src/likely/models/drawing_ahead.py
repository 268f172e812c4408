"""A second thread draws the normal numbers of the frames to come; since they are keyed by frame, bits stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from likely.core.arrays import Array
from likely.core.engine import cores
from likely.families.each import coloured, draw_each
from likely.families.gaussian import Gaussian
from likely.models.particle_belief import keyed

FRAMES = 8  # that are drawn in one go: handing over costs as much as 2,000 numbers
LARGE, LONG = 4096, 32  # numbers a frame, and frames, from which a thread pays


class Ahead:
    """Normal numbers (N, d) of frames, which may be left out but come in their order; the first starts the thread."""

    def __init__(self, seed: int, shape: tuple[int, ...], frames: int) -> None:
        self.seed, self.shape, self.frames = seed, shape, frames
        self.ready: dict[int, Array] = {}
        self.pool: ThreadPoolExecutor | None = None
        self.coming: Future[dict[int, Array]] | None = None

    def noise(self, t: int) -> Array:
        """The numbers of frame t."""
        if t not in self.ready:
            self._hand_over(t)
        return self.ready.pop(t)

    def _hand_over(self, t: int) -> None:
        """Take what the thread made, if frame t is among it, else make that one; the thread goes on behind it."""
        self.ready = {} if self.coming is None else self.coming.result()
        if self.pool is None:
            self.pool = ThreadPoolExecutor(1, thread_name_prefix="likely")
        after = max(self.ready) if t in self.ready else t
        self.coming = self.pool.submit(self._drawn, after + 1)
        if t not in self.ready:  # the first, or one behind frames whose laws drew otherwise
            self.ready = self._drawn(t, 1)

    def _drawn(self, t: int, frames: int = FRAMES) -> dict[int, Array]:
        return {s: keyed(self.seed, s).standard_normal(self.shape) for s in range(t, min(t + frames, self.frames))}


@contextmanager
def drawing_ahead(seed: int, shape: tuple[int, ...], frames: int) -> Iterator[Ahead | None]:
    """Numbers for frames 1 … T − 1, or None where a thread would not pay."""
    if shape[0] * shape[1] < LARGE or frames < LONG or cores() == 1:
        yield None
        return
    ahead = Ahead(seed, shape, frames)
    try:
        yield ahead
    finally:
        if ahead.pool is not None:
            ahead.pool.shutdown(wait=True, cancel_futures=True)


def draw_ahead(law: Any, seed: int, t: int, ahead: Ahead | None) -> Any:
    """One draw from each member for frame t, with numbers that were drawn ahead if there are some."""
    if ahead is not None and isinstance(law, Gaussian) and law.mean.shape == ahead.shape:
        return coloured(law, ahead.noise(t))
    return draw_each(law, keyed(seed, t))

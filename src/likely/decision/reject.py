"""The reject option: `REJECT` (ambiguous row) and `NOVEL` (outlier)."""

from __future__ import annotations

from typing import Any


class Refusal:
    """A decision that is not a class. It equals only itself, whatever the labels are, and sorts before all of them.

    >>> import numpy as np
    >>> decided = np.array(["a", REJECT, "b", REJECT], dtype=object)
    >>> int((decided == REJECT).sum()), np.unique(decided).tolist()
    (2, [REJECT, 'a', 'b'])
    """

    __slots__ = ("code", "name")

    def __init__(self, name: str, code: int) -> None:
        self.name, self.code = name, code

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __lt__(self, other: Any) -> bool:
        return not isinstance(other, Refusal) or self.code < other.code

    def __gt__(self, other: Any) -> bool:
        return isinstance(other, Refusal) and self.code > other.code

    def __le__(self, other: Any) -> bool:
        return self is other or self < other

    def __ge__(self, other: Any) -> bool:
        return self is other or self > other

    def __reduce__(self) -> str:
        return self.name  # copies and pickles are the same object


REJECT = Refusal("REJECT", -1)  # ambiguous: −1 among row indices
NOVEL = Refusal("NOVEL", -2)  # an outlier with respect to the training data: −2 among row indices

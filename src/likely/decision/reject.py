"""The reject option: Chow's rule for ambiguous rows (`REJECT`), and outliers (`NOVEL`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask


class RejectDecision:
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
        return not isinstance(other, RejectDecision) or self.code < other.code

    def __gt__(self, other: Any) -> bool:
        return isinstance(other, RejectDecision) and self.code > other.code

    def __le__(self, other: Any) -> bool:
        return self is other or self < other

    def __ge__(self, other: Any) -> bool:
        return self is other or self > other

    def __reduce__(self) -> str:
        return self.name  # copies and pickles are the same object


REJECT = RejectDecision("REJECT", -1)  # ambiguous: −1 among row indices
NOVEL = RejectDecision("NOVEL", -2)  # an outlier with respect to the training data: −2 among row indices


def with_rejections(best: Index, posterior: Array, actions: int, below: float | None, novel: Mask | None) -> Index:
    """Decisions (n,) with the codes of `REJECT` and `NOVEL`, from the actions of least expected cost   (Chow 1970).

    A row is rejected where the action after the last of `actions`, rejection at its cost, is the best one, or where a
    class is decided and the largest posterior is `below` a threshold. `novel` rows are outliers, whatever their cost.
    """
    at = np.where(best == actions, REJECT.code, best)
    if below is not None:  # a further action is not a class: the threshold does not apply
        at[(posterior.max(axis=1) < below) & (best < posterior.shape[1])] = REJECT.code
    if novel is not None:
        at[novel] = NOVEL.code
    return at

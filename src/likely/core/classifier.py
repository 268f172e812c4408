"""The role of whatever can be decided by: it knows how probable each class is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from likely.core.arrays import Array


@runtime_checkable
class Classifier(Protocol):
    """Gives log-posteriors; costs, refusals, combination and evaluation need nothing else of it."""

    def log_posterior(self, x: Any, /) -> Array:
        """log p(c | x) of each row (n, C); each row's exponentials add to 1."""
        ...

"""The Classifier protocol: log-posteriors of classes."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from likely.core.arrays import Array


@runtime_checkable
class Classifier(Protocol):
    """A probabilistic classifier: decisions, the reject option, combination and evaluation need log-posteriors only."""

    def log_posterior(self, x: Any, /) -> Array:
        """log p(c | x) for each row (n, C); the exponentials of each row sum to 1."""
        ...

"""The model card of an estimator: how it came about, kept as text in its file."""

from __future__ import annotations

import json
from typing import Any


class WithCard:
    """Base of estimators whose files remember how they were fitted: data, selection, figures, warnings."""

    card_: str = ""  # JSON

    @property
    def card(self) -> dict[str, Any]:
        """The model card as plain values: data, selection, figures."""
        found: dict[str, Any] = json.loads(self.card_ or "{}")
        return found

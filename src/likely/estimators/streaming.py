"""Statistics of a stream in which early models guessed badly: what they saw is forgotten slowly."""

from __future__ import annotations

from typing import Any

FORGETTING = 0.7  # how soon a stream forgets its first, bad guesses: η = (share of new rows)^0.7 (Cappé and Moulines)


def stepped(known: Any, new: Any) -> Any:
    """A_t = (1 − η) A_{t−1} + η s_t a row, for all rows so far; η = (n_t / N_t)^0.7."""
    before, fresh = known.total_weight, new.total_weight
    if not before > 0 or not fresh > 0:
        return known + new
    total = before + fresh
    eta = (fresh / total) ** FORGETTING
    return known * (total * (1 - eta) / before) + new * (total * eta / fresh)

"""Whether two printed texts say the same: rounding may fall either way on another processor."""

from __future__ import annotations

import re

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def same_text(printed: str, shown: str, relative: float = 0.0) -> bool:
    """Whether the words are the same and numbers differ by one unit of the last printed digit at most.

    Integers must be equal. `relative` allows more, as a share of a number: for numbers that are printed with all
    their digits.

    >>> same_text("cost 0.98 of 3", "cost 0.97 of 3"), same_text("3 rows", "4 rows"), same_text("0.98", "0.96")
    (True, False, False)
    """
    if NUMBER.sub(" # ", printed).split() != NUMBER.sub(" # ", shown).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(abs(float(a) - float(b)) <= max(_last_digit(a, b), _share(a, b, relative)) for a, b in pairs)


def _last_digit(a: str, b: str) -> float:
    """One unit (and a little) of the last digit of the more precise of two printed numbers, 0 for integers."""
    unit = 0.0
    for number in (a, b):
        mantissa, _, exponent = number.partition("e")
        _, point, decimals = mantissa.partition(".")
        if point or exponent:
            size = 10.0 ** (int(exponent or 0) - len(decimals))
            unit = min(unit, size) if unit else size
    return 1.01 * unit


def _share(a: str, b: str, relative: float) -> float:
    return relative * abs(float(a)) if "." in a + b else 0.0

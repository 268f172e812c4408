"""Formatting of numbers, percentages and counts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

THIN = "\u202f"  # the space between a number and its unit: narrow, and the two stay on one line
NONE = "–"
_GAPS = re.compile(r"[ \t\r\n\f\v]+")  # not the thin spaces: they hold numbers and units together


def percent(share: float | None) -> str:
    """A fraction in percent: one decimal, and more where it is close to none or all.

    >>> percent(0.9783), percent(0.99962), percent(0.0004), percent(1.0)
    ('97.8\\u202f%', '99.96\\u202f%', '0.04\\u202f%', '100\\u202f%')
    """
    if share is None or not math.isfinite(share):
        return NONE
    return f"{_percent_digits(share)}{THIN}%"


def _percent_digits(share: float) -> str:
    rest = min(abs(share), abs(1.0 - share)) * 100
    if rest < 1e-6:
        return f"{share * 100:.0f}"
    digits = 1 if rest >= 0.1 else min(1 - math.floor(math.log10(rest)) - 1, 6)
    return f"{share * 100:.{digits}f}"


def percent_range(low: float, high: float) -> str:
    """An interval of shares, the unit once.

    >>> percent_range(0.951, 0.992)
    '95.1–99.2\\u202f%'
    """
    return f"{_percent_digits(low)}–{percent(high)}"


def number(value: float | None, digits: int = 3) -> str:
    """A measurement with that many significant digits, without an exponent where it can be read without one.

    >>> number(0.031234), number(1234.5), number(-2.0), number(1.5e-9), number(None)
    ('0.0312', '1,234', '−2', '1.5e−9', '–')
    """
    if value is None or not math.isfinite(value):
        return NONE if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value and not 1e-4 <= abs(value) < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return _minus(f"{_trimmed(mantissa)}e{int(exponent)}")
    decimals = max(digits - 1 - (math.floor(math.log10(abs(value))) if value else 0), 0)
    return _minus(_trimmed(f"{value:,.{decimals}f}"))


def column(values: Sequence[float | None], digits: int = 2) -> list[str]:
    """Numbers of one column with equally many decimals: the smallest keeps `digits` significant ones, within 5.

    >>> column([0.00337, 0.15, None])
    ['0.0034', '0.1500', '–']
    """
    known = [abs(v) for v in values if v is not None and math.isfinite(v) and abs(v) > 1e-12]
    least = math.floor(math.log10(min(known))) if known else 0
    decimals = min(max(digits - 1 - least, 0 if least >= 3 else 1), 5)
    return [
        _minus(f"{round(v, decimals) + 0.0:,.{decimals}f}") if v is not None and math.isfinite(v) else number(v)
        for v in values
    ]


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _minus(text: str) -> str:
    return text.replace("-", "−")


def count(value: float) -> str:
    """A number of rows; weights may make it a fraction.

    >>> count(12345), count(2.25)
    ('12,345', '2.25')
    """
    if abs(value - round(value)) < 1e-9 * max(abs(value), 1.0):
        return f"{round(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else number(value)


def counted(n: float, unit: str = "row") -> str:
    """A number with its noun.

    >>> counted(1), counted(178, "sequence")
    ('1 row', '178 sequences')
    """
    return f"{count(n)} {unit}{'' if n == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """Words in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def clipped(text: object, length: int) -> str:
    """A text of at most that many characters, an ellipsis for what was left out.

    >>> clipped("flavanoids", 6)
    'flava…'
    """
    line = _GAPS.sub(" ", str(text)).strip()
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"

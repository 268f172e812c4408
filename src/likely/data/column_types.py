"""Column types: features (real, count, binary, category), or the reason why a column is excluded."""

from __future__ import annotations

import math
import re
from typing import Any, Literal, get_args

import polars as pl
from scipy.special import betainc, gammainc

from likely.data.cells import are_integers, as_numbers, shown
from likely.data.csv_reader import INDEX
from likely.data.dates import are_dates, are_packed_dates

Measurement = Literal["real", "count", "binary", "category"]
Aside = Literal["date", "identifier", "text", "constant", "empty", "ignore"]
Kind = Measurement | Aside

MEASUREMENTS: tuple[str, ...] = get_args(Measurement)
WISHES = ("real", "count", "binary", "category", "ignore")  # types that a user may specify

NEARLY_ALL = 0.95
FEWEST_ROWS = 10  # number of rows below which distinct values are no evidence of a key
MANY_LEVELS = 1000
LAST_WORDS_OF_KEYS = {"id", "ids", "idx", "nr", "uuid", "guid", "rowid"}
NAMES_OF_KEYS = {
    "index",
    "no",
    "key",
    "row",
    "serial",
    "row no",
    "serial no",
    "row index",
}  # whole names: "price index" is not a key


def kind_of(column: pl.Series) -> Kind:
    """The type of a column by its values and name; a mixed column is an error by row and column.

    >>> kind_of(pl.Series("size", ["1.5", None, "-2"])), kind_of(pl.Series("color", ["red", "blue", "red", "green"]))
    ('real', 'category')
    """
    return judged(column)[0]


def judged(column: pl.Series, cells: pl.Series | None = None) -> tuple[Kind, str]:
    """The type of a column, and the reason as text; `cells` is the column as it was read, if that is another."""
    present = column.drop_nulls()
    if not len(present):
        return "empty", "no cell has a value"
    if column.name == INDEX:
        return "identifier", "the first column has no name, as an index that was saved with the table"
    if column.dtype == pl.Boolean:
        return _constant(present) or ("binary", "true or false")
    if column.dtype.is_temporal():
        return "date", "dates or times"
    numbers = as_numbers(column)
    if numbers is not None and numbers.null_count() == len(numbers):
        return "empty", "no cell has a value"
    if numbers is not None:
        return _constant(numbers.drop_nulls()) or _judged_numbers(numbers, column if cells is None else cells)
    if column.dtype != pl.String:
        return "text", f"nested values ({column.dtype})"
    return _constant(present) or _judged_words(present)


def is_constant(values: pl.Series) -> bool:
    """Whether all present values are equal; two passes cost less than counting distinct values."""
    return bool(values.min() == values.max())


def rounded_away(cells: pl.Series, values: pl.Series) -> bool:
    """Whether long integers that are equal as floats differ as written: a float holds 16 digits.

    >>> rounded_away(pl.Series(["1" + "0" * 20, "1" + "0" * 19 + "1"]), pl.Series([1e20, 1e20]))
    True
    """
    if cells.dtype != pl.String or not values.dtype.is_float():
        return False
    cells = cells.drop_nulls()
    return bool(cells.str.contains(r"^[-+]?\d{17,}$").all()) and cells.n_unique() > 1


def _constant(present: pl.Series) -> tuple[Kind, str] | None:
    return ("constant", f"every value is {shown(present[0])}") if is_constant(present) else None


# ------------------------------------------------------------------------ numbers


def _judged_numbers(numbers: pl.Series, cells: pl.Series) -> tuple[Kind, str]:
    """The type of a varying numeric column: fractions are real; integers may be keys, dates, binary or counts.

    `cells` are the numbers as they are written: every float beyond 2⁵³ is whole, and 1.7e21 is a measurement.
    """
    values = numbers.drop_nulls()
    if not are_integers(values):
        return "real", "numbers with fractions"
    if values.n_unique() == 2:
        return "binary", f"two values, {' and '.join(f'{value:g}' for value in values.unique().sort())}"
    if are_packed_dates(values):
        return "date", "dates such as 20241231"
    why = _why_key(values, are_digits(cells))
    if why:
        return "identifier", why
    if _number(values.min()) < 0:
        return "real", "integers, some below zero"
    if is_count(values):
        return "count", "integers from zero or one upwards, distributed as counts"
    return "real", "integers that are not distributed as counts"


def are_digits(cells: pl.Series) -> bool:
    """Whether all present cells are written as integers, not as 1.7e21.

    >>> are_digits(pl.Series(["17", None])), are_digits(pl.Series(["17", "2e3"])), are_digits(pl.Series([17.0]))
    (True, False, False)
    """
    if cells.dtype != pl.String:
        return cells.dtype.is_integer()
    return bool(cells.drop_nulls().str.contains(r"^[-+]?\d+$").all())


def _why_key(values: pl.Series, in_digits: bool) -> str | None:
    """The reason why integers are row identifiers rather than features, or None."""
    n, distinct = len(values), values.n_unique()
    steps = values.diff().drop_nulls()
    if n >= FEWEST_ROWS and int((steps == 1).sum()) >= NEARLY_ALL * (n - 1):
        return "counts the rows"
    if n >= 3 and distinct > n / 2 and is_name_of_key(values.name):
        return "most values differ, and the name is that of a key"
    if distinct < NEARLY_ALL * n:
        return None
    span = _number(values.max()) - _number(values.min())
    if n >= FEWEST_ROWS and span <= 1.2 * n and bool((steps > 0).all() or (steps < 0).all()):
        return "values differ and follow the order of the rows"
    if n >= FEWEST_ROWS and in_digits and _number(values.abs().max()) > 2**53:
        return "values differ and have more digits than a measurement"
    return None


def is_name_of_key(name: str) -> bool:
    """Whether a column's name ends in a word such as id or nr, or is a word such as index.

    >>> is_name_of_key("PatientID"), is_name_of_key("row nr."), is_name_of_key("consumer_price_index")
    (True, True, False)
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[\W_]+", spaced.lower()) if word]
    return bool(words) and (words[-1] in LAST_WORDS_OF_KEYS or " ".join(words) in NAMES_OF_KEYS)


def is_count(values: pl.Series) -> bool:
    """Whether non-negative integers look like counts of events.

    They begin at zero or one without a gap, have a small median, are right-skewed, and are not underdispersed against a
    Poisson distribution: variance/mean ≥ 1 − 3 √(2/(n − 1)), three standard errors of that ratio. Nor are they
    truncated: on a bounded scale (pixels, marks) a count distribution of this mean and variance would have larger
    values. Large counts are described equally well by a continuous distribution.

    >>> is_count(pl.Series([0, 1, 0, 2, 5, 1, 0, 3])), is_count(pl.Series([17, 40, 38, 90, 52]))
    (True, False)
    """
    first = values.unique().sort().head(2).to_list()
    low, high, middle = first[0], _number(values.max()), _number(values.median())
    begins_small = low <= 1 and first[-1] <= low + 2 and middle <= 10
    if not begins_small or high - middle < 1.5 * (middle - low):
        return False
    n, mean, variance = len(values), _number(values.mean()), _number(values.var())
    return variance >= mean * (1 - 3 * math.sqrt(2 / (n - 1))) and n * count_tail(high, mean, variance) <= 10


def count_tail(k: float, mean: float, variance: float) -> float:
    """P(x > k) of the negative binomial distribution with this mean and variance, or of Poisson without overdispersion.

    >>> round(count_tail(1, 1.0, 1.0), 4)  # Poisson: 1 − 2/e
    0.2642
    """
    if variance <= mean * (1 + 1e-9):
        return float(gammainc(k + 1, mean))
    return float(betainc(k + 1, mean**2 / (variance - mean), 1 - mean / variance))


def _number(value: Any) -> float:
    """A Polars aggregate as a plain number."""
    return float(value)


# -------------------------------------------------------------------------- words


def _judged_words(words: pl.Series) -> tuple[Kind, str]:
    """The type of a varying string column: dates, binary, category, or identifiers and free text."""
    if are_dates(words):
        return "date", "dates or times"
    levels, n = words.n_unique(), len(words)
    if levels == 2 or is_yes_no(words):
        return "binary", f"two values, {' and '.join(shown(level) for level in words.unique().sort()[:2])}"
    if levels > 0.9 * n and n >= FEWEST_ROWS:
        return _names_or_text(words, "nearly all values differ")
    if levels <= max(20, math.isqrt(n)) or levels <= min(n / 10, MANY_LEVELS):
        return "category", f"{levels} levels"
    return _names_or_text(words, f"{levels} different values in {n} rows are too many levels for a category")


def _names_or_text(words: pl.Series, why: str) -> tuple[Kind, str]:
    spaces = _number(words.str.count_matches(r"\s+").mean())
    length = _number(words.str.len_chars().mean())
    return ("text", f"sentences, {why}") if spaces >= 1.5 or length > 40 else ("identifier", why)


def is_yes_no(words: pl.Series) -> bool:
    """Whether strings are yes/no answers, in any case: Yes, no, TRUE."""
    return are_answers(words.drop_nulls().unique().to_list()) if words.n_unique() <= 8 else False


def are_answers(levels: list[str]) -> bool:
    """Whether levels are a pair of answers: yes and no, true and false, y and n, t and f."""
    lower = {str(level).lower() for level in levels}
    return bool(lower) and any(lower <= pair for pair in ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}))

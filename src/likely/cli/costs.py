"""Cost matrices and class priors from CSV files or the command line."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from likely.core.errors import DataError, sentence, unread


def read_cost(path: str, classes: Any) -> Any:
    """The `Cost` in a CSV file: the header names true classes, the first column actions, in any order.

    Each class is an action too; rows beyond the classes are further actions, such as "ask an expert". Where no class
    has a row, all rows are such actions.
    """
    from likely.data.target_labels import as_spelled
    from likely.decision.cost import Cost

    header, *rows = cells_of(path)
    wanted = [str(c) for c in classes.tolist()]
    columns, actions = as_spelled(header[1:], wanted), as_spelled([row[0] for row in rows], wanted)
    _same_classes(columns, wanted, path)
    _rows_for(actions, wanted, path)
    table = [
        [_cost(cell, row[0], column, path) for column, cell in _cells_by_class(columns, row, path)] for row in rows
    ]
    order = [columns.index(c) for c in wanted]
    return Cost.named(actions, classes, [[row[j] for j in order] for row in table])


def cells_of(path: str) -> list[list[str]]:
    """The cells of a small CSV file, spaces trimmed, blank lines left out."""
    from likely.data.csv_reader import sniffed

    text = _text(path)
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if not lines:
        raise DataError(sentence(path, "a table is needed", "an empty file"))
    separator = sniffed(lines)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator, skipinitialspace=True)]
    if len(rows) < 2 or len(rows[0]) < 2:
        expected = "costs are a table: the header names the true classes, the first column the decisions"
        raise DataError(sentence(path, expected, f"{len(rows)} lines of {len(rows[0])} cells"))
    return rows


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(unread(path, error)) from error
    except UnicodeDecodeError as error:
        raise DataError(sentence(path, "text must be UTF-8", remedy="save the file as UTF-8")) from error


def _same_classes(columns: list[str], wanted: list[str], path: str) -> None:
    unknown = [c for c in columns if c not in wanted]
    missing = [c for c in wanted if c not in columns]
    if unknown:
        expected = f"columns must be the true classes {', '.join(wanted)}"
        raise DataError(sentence(path, expected, f'"{unknown[0]}"', _suggestion(unknown[0], wanted)))
    if missing:
        expected = f'there must be a column for the true class "{missing[0]}"'
        raise DataError(sentence(path, expected, f"columns {', '.join(columns)}", "add it"))
    _refuse_twice(columns, "column", path)


def _rows_for(actions: list[str], wanted: list[str], path: str) -> None:
    missing = [c for c in wanted if c not in actions]
    if missing and (
        len(missing) < len(wanted) or any(_suggestion(action, wanted).startswith("did") for action in actions)
    ):
        expected = f'there must be a row for deciding "{missing[0]}"'
        remedy = "add it, with inf if it must never be decided; rows with other names are further actions"
        raise DataError(sentence(path, expected, f"rows {', '.join(actions)}", remedy))
    _refuse_twice(actions, "row", path)


def _refuse_twice(names: list[str], what: str, path: str) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice or "" in names:
        got = f'"{twice[0]}" twice' if twice else "one without a name"
        raise DataError(sentence(path, f"each {what} needs a name of its own", got, "rename it"))


def _cells_by_class(columns: list[str], row: list[str], path: str) -> list[tuple[str, str]]:
    if len(row) != len(columns) + 1:
        expected = f'row "{row[0]}" must have a cost for each of {len(columns)} classes'
        raise DataError(sentence(path, expected, f"{len(row) - 1} cells"))
    return list(zip(columns, row[1:], strict=True))


def _cost(cell: str, action: str, column: str, path: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if math.isnan(value) or value == -math.inf:
        expected = f'the cost of deciding "{action}" where "{column}" is true must be a number, or inf'
        raise DataError(sentence(path, expected, f'"{cell}"'))
    return value


def _suggestion(name: str, names: list[str]) -> str:
    from likely.data.read_table import did_you_mean

    return did_you_mean(name, names)


# ---------------------------------------------------------------- class probabilities


def read_class_prior(given: str, classes: Any) -> list[float]:
    """Class probabilities in the order of the classes, from "uniform", "a=0.2,b=0.8", "0.2,0.8" or a CSV file.

    The file has two columns, class and probability.

    >>> import numpy as np
    >>> read_class_prior("yes=0.1,no=0.9", np.array(["no", "yes"]))
    [0.9, 0.1]
    """
    from likely.data.target_labels import as_spelled

    wanted = [str(c) for c in classes.tolist()]
    if given == "uniform":
        return [1.0 / len(wanted)] * len(wanted)
    pairs = _prior_of_file(given) if Path(given).is_file() else _prior_of_text(given, wanted)
    pairs = dict(zip(as_spelled(list(pairs), wanted), pairs.values(), strict=True))
    unknown = [name for name in pairs if name not in wanted]
    missing = [name for name in wanted if name not in pairs]
    if unknown or missing:
        expected = f"class probabilities are needed for {', '.join(wanted)}"
        got = f'one for "{unknown[0]}"' if unknown else f'none for "{missing[0]}"'
        raise DataError(sentence("--class-prior", expected, got))
    prior = [_probability(pairs[name], name) for name in wanted]
    if abs(sum(prior) - 1) > 1e-6:
        raise DataError(sentence("--class-prior", "probabilities must add to 1", f"{sum(prior):g}"))
    return [p / sum(prior) for p in prior]


def _prior_of_file(path: str) -> dict[str, str]:
    rows = cells_of(path)
    if any(len(row) != 2 for row in rows):
        raise DataError(sentence(path, "two columns are needed: class, probability", f"{len(rows[0])}"))
    return dict((name, value) for name, value in rows if _is_number(value))


def _prior_of_text(given: str, wanted: list[str]) -> dict[str, str]:
    parts = [part.strip() for part in given.split(",")]
    if all("=" in part for part in parts):
        return dict(_trimmed(part.rsplit("=", 1)) for part in parts)
    if len(parts) != len(wanted) or not all(_is_number(part) for part in parts):
        expected = f'a file, "uniform", or class=probability for each of {", ".join(wanted)} is needed'
        raise DataError(sentence("--class-prior", expected, f'"{given}"'))
    return dict(zip(wanted, parts, strict=True))


def _trimmed(pair: list[str]) -> tuple[str, str]:
    return pair[0].strip(), pair[1].strip()


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _probability(text: str, name: str) -> float:
    if not (_is_number(text) and 0 <= float(text) <= 1):
        raise DataError(sentence("--class-prior", f'the probability of "{name}" must lie in 0 … 1', f'"{text}"'))
    return float(text)

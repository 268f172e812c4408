"""Checks that a stream has the columns of the model, at its first line or per line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from likely.cli.following.follow_lines import BadLine, Layout, Positions
from likely.core.errors import DataError, sentence


def refuse_absent(wanted: Iterable[str], layout: Layout, whose: str) -> None:
    """The columns of a header must be there; JSON may leave any out, which is then missing."""
    if layout.names is None:
        return
    absent = [name for name in wanted if name not in layout.names]
    if absent:
        from likely.data.read_table import did_you_mean

        known = did_you_mean(absent[0], list(layout.names))
        remedy = known if known.endswith("?") else f"{known}; --columns says which stand for the model's"
        raise DataError(sentence(whose, f'there must be a column "{absent[0]}"', remedy=remedy))


def refuse_strangers(cells: Mapping[str, Any], columns: list[str], roles: Iterable[str | None], chosen: bool) -> None:
    """A JSON object may leave keys out, and have others; of one that has nothing but others, nothing is understood.

    An array must have a cell for each column, and, where nobody chose columns, no more. `roles` are id and time.
    """
    strangers = [name for name in cells if name not in (*columns, *roles)]
    told = ", ".join(f'"{name}"' for name in columns[:8])
    remedy = "--columns says which stand for the model's"
    if isinstance(cells, Positions):
        if (strangers and not chosen) or any(name not in cells for name in columns):
            raise BadLine(sentence("JSON", f"an array must hold the columns {told}", f"{len(cells)} cells", remedy))
    elif strangers and not any(name in cells for name in columns):
        got = ", ".join(f'"{name}"' for name in strangers[:8])
        raise BadLine(sentence("JSON", f"an object must have some of the columns {told}", got, remedy))

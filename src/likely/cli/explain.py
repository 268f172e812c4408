"""`likely explain`: contribution of each column to the log-odds of a decision."""

from __future__ import annotations

from typing import Any

import click

from likely.cli import options
from likely.core.errors import DataError, sentence

EPILOG = """\b
Example:
  likely explain model.likely new.csv --row 18 --row 20
"""


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option(
    "--row", "rows", metavar="N", type=click.IntRange(1), multiple=True, help="Row number, from 1; repeatable.  [1]"
)
@options.reading
@click.option("--allow-missing", is_flag=True, help="Treat an absent column as missing in all rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def explain(
    model: str, files: tuple[str, ...], rows: tuple[int, ...], sql: str | None, format_: str | None,
    missing: tuple[str, ...], allow_missing: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show how much each column adds to the log-odds of the decision, and the expected cost without it.

    The contribution of a column is conditional on all other columns. In naive Bayes these log-odds and those of the
    class prior add up to the log-odds of the uncalibrated posterior; in other models they need not, and a note says
    so. If the model is calibrated, posterior and log-odds are shown after calibration, where they need not add up;
    --json also gives those before it. For isotonic calibration, which is piecewise constant, log-odds are shown before
    calibration. If costs led to a class other than the most probable one, this is noted.
    """
    from likely.cli.open_model import table_model
    from likely.data.table import Table

    loaded = table_model(model, "explain")
    table = Table.like(
        loaded.schema, list(files), missing=missing, allow_missing=allow_missing, sql=sql, format=format_
    )
    rows = rows or (1,)
    beyond = [row for row in rows if row > len(table)]
    if beyond:
        raise DataError(sentence(f"--row {beyond[0]}", f"the table has {len(table)} rows", remedy="rows count from 1"))
    asked = table.frame[[row - 1 for row in rows]]
    found, unseen = loaded.explain(asked), loaded.unseen(asked)
    click.echo(_json(found, rows) if as_json else _text(found, rows, unseen))


def _text(found: Any, rows: tuple[int, ...], unseen: dict[str, Any]) -> str:
    pages = []
    for i, page in enumerate(found.pages(rows)):
        columns = ", ".join(f'"{name}"' for name, mask in unseen.items() if mask[i])
        note = f"novel: a value of {columns} was not seen in training and counts as missing"
        pages.append(page.plus(notes=[note] * bool(columns)).to_text(indented=True))
    return "\n".join(["\n\n".join(pages), *filter(None, [found.note])])


def _json(found: Any, rows: tuple[int, ...]) -> str:
    import json

    return "\n".join(json.dumps({"row": row, **record}) for row, record in zip(rows, found.records(), strict=True))

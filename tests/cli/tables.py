"""Small tables on disk, and the command line run in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from click.testing import CliRunner, Result

from likely.cli import main
from likely.core.errors import LikelyError


def wine_frame() -> pl.DataFrame:
    from likely.cli.example_data import wine

    X, y, names = wine()
    return pl.DataFrame({name: X[:, j] for j, name in enumerate(names)}).with_columns(pl.Series("class", y))


def mixed_frame(n: int = 240, seed: int = 0) -> pl.DataFrame:
    """Two classes; a number, a count, a color and an answer that depend on them, a key and gaps."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    color = np.where(rng.random(n) < np.where(y, 0.8, 0.3), "red", rng.choice(["blue", "green"], n)).astype(object)
    color[::17] = None
    size = rng.normal(np.where(y, 2.0, 0.0))
    size[::13] = np.nan
    return pl.DataFrame({
        "id": [f"case-{i:04d}" for i in range(n)], "size": pl.Series(size).fill_nan(None),
        "width": rng.normal(np.where(y, -1.0, 0.5), 2.0), "visits": rng.poisson(np.where(y, 4.0, 1.0)),
        "color": color.tolist(), "smokes": np.where(rng.random(n) < np.where(y, 0.7, 0.4), "yes", "no"),
        "sick": np.where(y, "ill", "well"),
    })  # fmt: skip


def run(*args: Any, stdin: str | bytes | None = None) -> Result:
    """A command in this process; an error of ours becomes its exit code and its line, as `main` does it."""
    done = CliRunner().invoke(main.likely, [str(arg) for arg in args], input=stdin)
    if isinstance(done.exception, LikelyError):
        done.exit_code = main.exit_code(done.exception)
        done.stderr_bytes = done.stderr_bytes + f"likely: {done.exception}\n".encode()
    elif done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def write(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_csv(path)
    return path

"""Table fingerprints: equal tables have equal fingerprints, on any machine and with any version."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import polars as pl

from likely.data.cells import printed


def fingerprint(frame: pl.DataFrame) -> str:
    """Sixteen hexadecimal digits from names and values, in order; a changed cell changes them.

    Numbers are hashed by value, so that 1 and 1.0 agree; everything else as text.

    >>> fingerprint(pl.DataFrame({"x": [1, 2]})) == fingerprint(pl.DataFrame({"x": [1.0, 2.0]}))
    True
    """
    digest = blake2b(digest_size=8)
    digest.update(f"{frame.height} {frame.width}".encode())
    for column in frame:
        name = column.name.encode()
        digest.update(len(name).to_bytes(8, "little") + name)
        for part in _contents(column):
            digest.update(part)
    return digest.hexdigest()


def _contents(column: pl.Series) -> tuple[bytes, ...]:
    """A numeric column as 64-bit numbers; any other as lengths (−1 where missing) and text."""
    if column.dtype.is_integer():
        column = column.cast(pl.Float64)
    if column.dtype.is_float():
        values = column.cast(pl.Float64).to_numpy()  # missing values are NaN
        values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
        return b"n", values.astype("<f8").tobytes()
    plain = column.dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
    words = column.cast(pl.String) if plain else printed(column)
    lengths = words.str.len_bytes().cast(pl.Int64).fill_null(-1).to_numpy()
    return b"t", lengths.astype("<i8").tobytes(), "".join(words.drop_nulls().to_list()).encode()

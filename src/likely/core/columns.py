"""Columns: rows of named parts of different types, such as real vectors, counts and categories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from likely.core.arrays import Rows, n_rows, unmasked
from likely.core.errors import DataError, ShapeError, sentence


class Columns(Mapping[str, Any]):
    """Named arrays with the same number of rows; slicing slices all of them.

    Parameters
    ----------
    parts : dict, optional
        Arrays by name: arrays, lists, sparse matrices, data-frame columns, Ragged or Columns.
    **named : array-like
        More of them.

    See Also
    --------
    Product : A density of named parts.
    Ragged : Sequences.

    Examples
    --------
    >>> c = Columns(size=[[1.0, 2.0], [3.0, 4.0]], color=["red", "blue"])
    >>> len(c), list(c), c[1:]["color"].tolist()
    (2, ['size', 'color'], ['blue'])
    """

    def __init__(self, parts: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Parts are arrays, lists, sparse matrices, data-frame columns, Ragged or Columns."""
        if hasattr(parts, "columns"):  # a data frame
            frame: Any = parts
            parts = {str(name): frame[name] for name in frame.columns}
        parts = {**(parts or {}), **named}
        if not parts:
            raise DataError(sentence("Columns", "at least one named part is needed", "none"))
        self.parts = {str(name): _indexable(part) for name, part in parts.items()}
        counts = {name: n_rows(part) for name, part in self.parts.items()}
        self._n = next(iter(counts.values()))
        if set(counts.values()) != {self._n}:
            raise ShapeError(sentence("Columns", "all parts must have the same number of rows", counts))

    @classmethod
    def of(cls, x: Rows) -> Columns:
        """Columns from a dict of arrays; Columns pass through.

        Parameters
        ----------
        x : dict or Columns
            Arrays by name.

        Returns
        -------
        Columns
            The columns.
        """
        if isinstance(x, Columns):
            return x
        if isinstance(x, Mapping):
            return cls(x)
        expected = "named parts are needed: Columns, or a dict of arrays"
        raise DataError(sentence("Columns", expected, type(x).__name__))

    def __len__(self) -> int:
        """Number of rows (not of parts)."""
        return self._n

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, number of parts."""
        return self._n, len(self.parts)

    @property
    def dtype(self) -> Any:
        """Data type: float32 if every part is float32, else float64."""
        alike = all(getattr(part, "dtype", None) == np.float32 for part in self.parts.values())
        return np.dtype(np.float32 if alike else np.float64)

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __getitem__(self, which: Any) -> Any:
        """One part by name; or a slice, mask or index array of rows of all parts."""
        if isinstance(which, str):
            return self.parts[which]
        if isinstance(which, tuple) and len(which) == 2 and which[1] is Ellipsis:  # as scikit-learn takes rows
            which = which[0]
        return Columns({name: part[which] for name, part in self.parts.items()})

    def __contains__(self, name: object) -> bool:
        return name in self.parts

    def __repr__(self) -> str:
        return f"Columns({self._n} rows: {', '.join(self.parts)})"


def _indexable(part: Any) -> Any:
    """Lists and data-frame columns as arrays; what already has rows is unchanged."""
    if isinstance(part, np.ndarray):
        return unmasked(part)
    if isinstance(part, Columns) or hasattr(part, "offsets") or hasattr(part, "tocsr"):
        return part
    if hasattr(part, "to_numpy"):
        return np.asarray(part.to_numpy())
    a = np.asarray(part)
    return np.asarray(part, dtype=object) if a.dtype.kind == "U" and not all(isinstance(c, str) for c in part) else a

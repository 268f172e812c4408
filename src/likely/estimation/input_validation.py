"""Input validation of estimators: tables of any library as arrays, errors by row and column."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, in_memory, is_gap, n_rows, unmasked
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.estimation.array_fast_path import plain_frame
from likely.estimation.class_labels import labeled_things
from likely.estimation.scikit_learn import validate_data

TAKES_TEXT = "drop the column, or use NaiveBayes or CategoricalDensity, which take categories"


def numeric_rows(estimator: Any, X: Any, reset: bool, remedy: str = TAKES_TEXT, **how: Any) -> Any:
    """Validated rows (n, d) of numbers in single or double precision, NaN where missing; errors name strings and dates.

    Infinities raise an error later, by row and column. Further arguments go to scikit-learn's `validate_data`.
    """
    plain = None if reset else plain_frame(X, estimator)
    if plain is not None:
        return np.asarray(plain, order=how.get("order"))
    X, whose = in_memory(X), type(estimator).__name__
    refuse_dates(X, whose)
    if isinstance(X, Columns):
        raise _parts_among(X, whose, remedy)
    how = {"dtype": [np.float64, np.float32], "ensure_all_finite": False, **how}
    try:
        return validate_data(estimator, X, reset=reset, **how)
    except (TypeError, ValueError) as error:
        if isinstance(X, np.ndarray | list | tuple) and "NAType" in str(error):
            cells = np.asarray(X, dtype=object)
            gaps = np.array([is_gap(cell) for cell in cells.ravel().tolist()], dtype=bool).reshape(cells.shape)
            return numeric_rows(estimator, np.where(gaps, np.nan, cells), reset, remedy, **how)
        if "could not convert" in str(error):
            raise _text_among(X, whose, remedy) from error
        raise


def row_weights(sample_weight: Any, X: Any) -> Array:
    """Validated weights (n,): finite and non-negative; a masked one is 0."""
    from sklearn.utils.validation import _check_sample_weight

    n, shape = n_rows(X), np.asarray(unmasked(sample_weight)).shape
    if len(shape) == 1 and shape != (n,):
        each = labeled_things(X)
        raise ShapeError(sentence("sample_weight", f"one weight per {each} is needed ({n})", shape[0]))
    w: Array = _check_sample_weight(unmasked(sample_weight), X, dtype=np.float64, ensure_non_negative=True)
    return w


def refuse_dates(X: Any, whose: str, columns: Any = None) -> None:
    """Raise an error for dates and durations, which are not numbers."""
    if hasattr(X, "columns"):
        there = list(X.columns)  # read once: a frame builds the list each time
        known = set(there)
        kinds = {str(c): str(X[c].dtype) for c in (there if columns is None else columns) if c in known}
    else:
        kinds = {"X": str(getattr(X, "dtype", ""))}
    for name, kind in kinds.items():
        if kind.lower().startswith(("date", "time", "duration")):
            remedy = "drop it, or convert it to a meaningful number"
            raise DataError(sentence(whose, f"column {name!r} must be numbers", kind, remedy))


def _parts_among(X: Columns, whose: str, remedy: str) -> DataError:
    """The first part that is not a column of numbers."""
    for name, part in X.parts.items():
        a = np.asarray(part) if hasattr(part, "__array__") else None
        if a is not None and a.ndim == 1 and a.dtype.kind not in "biuf":
            cell = next((cell for cell in a.tolist() if not is_gap(cell)), None)
            return DataError(sentence(whose, f"column {name!r} must be numbers", f"{cell!r}", remedy))
    got, remedy = f"named parts ({', '.join(list(X)[:5])})", "pass an array or a data frame of numbers"
    return DataError(sentence(whose, "rows of numbers are needed", got, remedy))


def _text_among(X: Any, whose: str, remedy: str) -> DataError:
    """The first cell that is not a number."""
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else None
    table = np.asarray(X, dtype=object)
    for at, cell in np.ndenumerate(table):
        try:
            float(cell)
        except (TypeError, ValueError):
            where = f"column {repr(names[at[1]]) if names else at[1]}" if len(at) > 1 else "rows"
            return DataError(sentence(whose, f"{where} must be numbers", f"{cell!r} at row {at[0]}", remedy))
    return DataError(sentence(whose, "rows must be numbers", "text"))

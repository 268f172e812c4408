"""Input validation of sparse rows: SciPy matrices as CSR."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from likely.core.errors import DataError, sentence
from likely.core.warnings import warn
from likely.distributions.categorical.sparse_counts import SparseRows
from likely.estimation.scikit_learn import validate_data


def checked_sparse(estimator: Any, X: Any, reset: bool) -> Any:
    """Sparse rows as CSR in single or double precision without duplicates; missing and infinite values are errors."""
    X = X.tocsr() if isinstance(X, SparseRows) else X
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    SparseRows.of(X, None, type(estimator).__name__)  # its errors name the estimator
    return X


def refuse_negative(X: Any, whose: str) -> None:
    """Raise an error for the first negative count, by row and column."""
    sparse = scipy.sparse.issparse(X)
    entries = X.data if sparse else X
    with np.errstate(invalid="ignore"):
        if not entries.size or not np.nanmin(entries, initial=0.0) < 0:
            return
        low = np.argwhere(entries < 0)[0]
    at = _place(X, int(low[0])) if sparse else (int(low[0]), int(low[1]))
    got = f"{entries[tuple(low)]:g} at row {at[0]}, column {at[1]}"
    raise DataError(sentence(whose, "counts are needed (Negative values in data)", got))


def warn_of_columns(odd: Any, names: list[str], whose: str, what: str) -> None:
    """Warn of the columns (d,) with a problem, naming up to five of them."""
    which = [names[j] for j in np.flatnonzero(odd)]
    if which:
        more = f" and {len(which) - 5} more" if len(which) > 5 else ""
        what = what.replace("is ", "are ", 1) if len(which) > 1 and what.startswith("is ") else what
        warn(f"{whose}: {', '.join(which[:5])}{more} {what}")


def odd_columns(X: Any, odd: Any) -> Any:
    """Mask of columns (d,) with an entry for which `odd` (of an array) is True; implicit zeros are not tested."""
    with np.errstate(invalid="ignore"):
        if not scipy.sparse.issparse(X):
            return odd(X).any(axis=0)
        return np.bincount(X.indices[odd(X.data)], minlength=X.shape[1]) > 0


def _place(X: Any, at: int) -> tuple[int, int]:
    """Row and column of a stored entry."""
    return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])

"""Validation and encoding of class labels, with missing labels (semi-supervised learning)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Index, in_memory
from likely.core.errors import DataError, sentence
from likely.core.ragged import Ragged
from likely.core.warnings import warn
from likely.distributions.categorical.categorical import is_missing

LOOK = 10_000  # number of labels up to which scikit-learn validates them
SPAN = 4096  # integer labels within this range are counted rather than sorted


def checked_labels(
    y: Any, n: int | None, whose: str, allow_missing: bool = False, none: bool = False, each: str = "row"
) -> NDArray[Any]:  # fmt: skip
    """Validated labels, one per row: strings, numbers or booleans; missing ones if `allow_missing`.

    `none`: all may be missing. `each` is the unit that has a label: a "row" or a "sequence". `n` is their number (None:
    any).
    """
    from sklearn.utils import column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    if y is None:
        raise DataError(f"{whose} requires y to be passed, but the target y is None.")
    y = y.astype(object) if isinstance(y, np.ma.MaskedArray) else y  # labels keep their type beside missing ones
    y = in_memory(y)
    y = y.to_numpy() if hasattr(y, "to_numpy") else y
    y = column_or_1d(_kept_apart(y), warn=True)
    if n is not None and len(y) != n:
        expected = f"y must have one label per {each} of X"
        raise DataError(sentence(whose, expected, f"{len(y)} labels for {n} {each}s"))
    if allow_missing:
        there = ~missing_labels(y)
        if not there.all():
            if none and not there.any():
                return np.full(len(y), None, dtype=object)
            return _with_gaps(y, there, whose, each)
    _refuse_missing(y, whose, each)
    _refuse_mixed(y, whose)
    if y.dtype == object and len(y) and not isinstance(y[0], str):
        y = np.array(y.tolist())
    if y.dtype.kind not in "biu" or len(y) <= LOOK:  # it hashes them three times; many integers are valid labels
        check_classification_targets(y)
    return y


def labeled_things(X: Any) -> str:
    """The unit of a label: a "sequence" in a Ragged or a list of arrays (T, d), else a "row"."""
    listed = isinstance(X, list) and bool(X) and getattr(X[0], "ndim", 0) == 2
    return "sequence" if isinstance(X, Ragged) or listed else "row"


def missing_labels(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of missing labels: None, NaN or another library's missing value (n,)."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind in "mM":
        return np.isnat(y)
    return np.array([is_missing(label) for label in y], dtype=bool) if y.dtype == object else np.zeros(len(y), bool)


def warn_of_labels(classes: NDArray[Any], labels: Index, whose: str, each: str = "row") -> None:
    """Warn of missing labels (−1), which are latent, and of a single class."""
    hidden = int((labels < 0).sum())
    if hidden:
        note = f"{hidden} of {len(labels)} {each}s have no label: they are used as unlabeled data (semi-supervised)"
        warn(f"{whose}: {note}; drop these {each}s to use labeled data only")
    if len(classes) == 1:
        note = f"all labels are {classes.tolist()[0]!r}, so every {each} will be assigned to it"
        warn(f"{whose}: {note}; add {each}s of another class")


def _with_gaps(y: NDArray[Any], there: NDArray[np.bool_], whose: str, each: str) -> NDArray[Any]:
    """Partly missing labels as objects: the present ones are validated, the others are None."""
    if not there.any():
        remedy = f"label some {each}s, or cluster them: MixtureClusterer"
        got = "none (Input y contains NaN or None only)"
        raise DataError(sentence(whose, f"at least one {each} needs a label", got, remedy))
    seen = checked_labels(y[there], int(there.sum()), whose, each=each)
    if y.dtype.kind == "f" and (seen == np.floor(seen)).all():
        seen = seen.astype(np.int64)  # integers that became floats because of NaN
    out = np.full(len(y), None, dtype=object)
    out[there] = seen.tolist()
    return out


def _kept_apart(y: Any) -> Any:
    """A list of strings and missing values as objects, not as strings."""
    a = np.asarray(y)
    return np.asarray(y, dtype=object) if a.dtype.kind == "U" and not hasattr(y, "dtype") else a


def _refuse_missing(y: NDArray[Any], whose: str, each: str) -> None:
    bad: list[int] = []
    if y.dtype.kind == "f" and not np.isfinite(y.sum()):
        bad = np.flatnonzero(~np.isfinite(y)).tolist()
    elif y.dtype == object:
        bad = [i for i, label in enumerate(y) if is_missing(label)]
    if bad:
        what = "infinity" if _is_infinite(y[bad[0]]) else "NaN or None"
        got = f"{y[bad[0]]} at {each} {bad[0]} (Input y contains {what})"
        remedy = f"label these {each}s, or drop them"
        raise DataError(sentence(whose, f"every {each} needs a label", got, remedy))


def _is_infinite(label: Any) -> bool:
    return isinstance(label, float) and math.isinf(label)


def _refuse_mixed(y: NDArray[Any], whose: str) -> None:
    if y.dtype == object:
        kinds = {"text" if isinstance(label, str) else type(label).__name__ for label in y}
        if "text" in kinds and len(kinds) > 1:
            remedy = "convert all of them to strings, or to numbers"
            raise DataError(sentence(whose, "all labels must be of one kind", ", ".join(sorted(kinds)), remedy))


def encoded(y: NDArray[Any]) -> tuple[NDArray[Any], Index]:
    """The sorted classes, and the index of each label among them."""
    if y.dtype.kind in "biu" and y.size and y.dtype != np.uint64:
        low, high = int(y.min()), int(y.max())
        if high - low < SPAN:  # counting takes a twentieth of the time of sorting
            at = y.astype(np.int64) - low if low else y.astype(np.intp, copy=False)
            there = np.flatnonzero(np.bincount(at, minlength=high - low + 1))
            if len(there) <= high - low:
                at = np.searchsorted(there, at)
            return (there + low).astype(y.dtype), at
    if y.dtype == object and all(isinstance(label, str) for label in y):
        y = y.astype(str)
        classes, labels = np.unique(y, return_inverse=True)
        return classes.astype(object), labels
    classes, labels = np.unique(y, return_inverse=True)
    return classes, labels


def encoded_with_gaps(y: NDArray[Any]) -> tuple[NDArray[Any], Index]:
    """The same with missing labels (None): their index is −1."""
    if y.dtype != object:
        return encoded(y)
    there = np.array([label is not None for label in y], dtype=bool)
    if there.all():
        return encoded(y)
    classes, at = encoded(_plain(y[there]))
    labels = np.full(len(y), -1, dtype=np.intp)
    labels[there] = at
    return classes, labels


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    return labels if not len(labels) or isinstance(labels[0], str) else np.array(labels.tolist())


def labels_among(y: NDArray[Any], classes: NDArray[Any], whose: str) -> Index:
    """The index of each label among known classes; −1 if it is missing."""
    found, at = encoded_with_gaps(y)
    places = {c: i for i, c in enumerate(classes.tolist())}
    new = [c for c in found.tolist() if c not in places]
    if new:
        remedy = "name all classes in the first call: partial_fit(X, y, classes=…)"
        raise DataError(sentence(whose, f"labels must be among the classes {classes.tolist()}", repr(new[0]), remedy))
    return np.append(np.array([places[c] for c in found.tolist()], dtype=np.intp), -1)[at]

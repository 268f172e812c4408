"""Functions of scikit-learn, which is imported when one of them is called."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

CONTAINERS = (dict, list, tuple, set, frozenset)  # of estimators


def clone(estimator: Any, *, safe: bool = True) -> Any:
    """An unfitted estimator with the same parameters; `safe` False: a copy of anything else."""
    if hasattr(estimator, "__sklearn_clone__") and not isinstance(estimator, type):
        return estimator.__sklearn_clone__()
    if not safe and not hasattr(estimator, "get_params") and not isinstance(estimator, CONTAINERS):
        return deepcopy(estimator)
    from sklearn.base import clone

    return clone(estimator, safe=safe)


def get_tags(estimator: Any) -> Any:
    """The tags of an estimator."""
    from sklearn.utils import get_tags

    return get_tags(estimator)


def check_random_state(seed: Any) -> Any:
    """A `RandomState` of a seed, or of None."""
    from sklearn.utils import check_random_state

    return check_random_state(seed)


def validate_data(estimator: Any, X: Any, **how: Any) -> Any:
    """Validated rows; number and names of columns are stored in the estimator (`reset`), or compared."""
    from sklearn.utils.validation import validate_data

    return validate_data(estimator, X, **how)


def number_of_rows(X: Any) -> int:
    """Number of rows of any table."""
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    from sklearn.utils.validation import _num_samples

    return int(_num_samples(X))


def has_fit_parameter(estimator: Any, name: str) -> bool:
    """Whether `fit` takes an argument of that name."""
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, name))

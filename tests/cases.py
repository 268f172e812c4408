"""Which cases of a test with many run every time, and which in the campaign only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache, partial
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.utils import estimator_checks

OF_THE_CLASS = (  # what scikit-learn's checks look at here does not depend on the settings of an estimator
    *("cloneable", "tags_renamed", "valid_tag_types", "estimator_repr", "no_attributes_set_in_init"),
    *("fit_score_takes_y", "overwrite_params", "dont_overwrite", "fit_returns_self", "readonly_memmap_input"),
    *("unfitted", "do_not_raise_errors_in_init", "n_features_in", "mixin_order", "positive_only_tag"),
    *("sample_weights_", "complex_data", "dtype_object", "empty_data_messages", "pipeline_consistency"),
    *("sparse_tag", "sparse_array", "sparse_matrix", "f_contiguous", "default_constructible", "get_params"),
    *("set_params", "dict_unchanged", "fit_check_is_fitted", "fit1d", "predict1d", "requires_y_none", "supervised_y"),
    *("regression_target", "multioutput", "multilabel", "partial_fit_n_features", "array_api", "not_an_array"),
    *("dataframe_column_names", "inplace_ensure_writeable", "param_validation"),
)
OF_THE_MODEL = (  # nor here, beyond the classes of estimators inside it
    *("classifiers_train", "classifiers_classes", "estimators_dtypes", "estimators_pickle", "fit_idempotent"),
    *("fit2d_1feature", "fit2d_1sample", "one_label", "subset_invariance", "sample_order_invariance"),
    "sample_weight_equivalence",
)
OF_LABELS = ("classifiers_train", "classifiers_classes", "one_label")  # densities alone meet the others


def rest_in_campaign(cases: Iterable[Any], key: Callable[..., Hashable]) -> list[Any]:
    """The first case of each key as it is; those after it with the marker campaign.

    `key` is a function of a case's values; None keeps a case.

    >>> [len(case.marks) for case in rest_in_campaign([(1, "a"), (2, "a"), (3, None)], lambda n, name: name)]
    [0, 1, 0]
    """
    seen: set[Hashable] = set()
    out = []
    for case in cases:
        values, marks, name = (case, (), None) if isinstance(case, tuple) and not hasattr(case, "marks") else (
            case.values, case.marks, case.id)  # fmt: skip
        of = key(*values)
        later = of is not None and of in seen
        seen.add(of)
        out.append(pytest.param(*values, marks=[*marks, pytest.mark.campaign] if later else marks, id=name))
    return out


def spread(cases: list[set[Hashable]], count: int) -> set[int]:
    """Places of so many cases, given by their values of parameters: evenly spread, all values among them if they fit.

    >>> sorted(spread([{a, b} for a in "xyz" for b in "pq"], 3))
    [0, 2, 5]
    >>> sorted(spread([{a, b} for a in "xy" for b in "pqr"], 3))  # 0, 2 and 5 would leave q out
    [0, 1, 5]
    """
    even = set(np.linspace(0, len(cases) - 1, count).astype(int).tolist())
    seen: set[Hashable] = set()
    kept: set[int] = set()
    best_first = [(-len(values), i not in even, i) for i, values in enumerate(cases)]
    heapify(best_first)
    while len(kept) < min(count, len(cases)):
        new, odd, i = best_first[0]
        now = -len(cases[i] - seen)
        if now != new:  # it has become worse, as any may have but the first that has not
            heapreplace(best_first, (now, odd, i))
            continue
        heappop(best_first)
        kept.add(i)
        seen |= cases[i]
    return kept


def scikit_learn_checks(estimators: list[Any], **how: Any) -> Any:
    """`parametrize_with_checks`, where what depends on classes alone runs for the first estimator of each.

    Checks that are expected to fail, for a reason that is given, run in the campaign.
    """
    found = estimator_checks.parametrize_with_checks(estimators, legacy=True, **how).mark
    names, cases = found.args
    cases = [pytest.param(*c.values, marks=[*c.marks, *_of_failures(c)], id=c.id) for c in map(_as_param, cases)]
    how = {**found.kwargs, "ids": cache(found.kwargs["ids"])}  # the same estimator meets many checks
    return pytest.mark.parametrize(names, rest_in_campaign(cases, _of_the_class), **how)


def _as_param(case: Any) -> Any:
    return case if hasattr(case, "marks") else pytest.param(*case)


def _of_failures(case: Any) -> list[Any]:
    return [pytest.mark.campaign] if any(mark.name == "xfail" for mark in case.marks) else []


def _of_the_class(estimator: Any, check: Any) -> Hashable:
    function = check.func if isinstance(check, partial) else check
    name = function.__name__
    if any(part in name for part in OF_THE_CLASS):
        return type(estimator), name
    if is_classifier(estimator) and not any(part in name for part in OF_LABELS):
        return (type(estimator), name) if any(part in name for part in OF_THE_MODEL) else None
    return (*classes(estimator), name) if any(part in name for part in OF_THE_MODEL) else None


def classes(estimator: Any) -> tuple[type, ...]:
    """The class of an estimator, and those of the estimators that are its parameters."""
    inside = (value for _, value in sorted(estimator.get_params(deep=True).items()))
    return (type(estimator), *(type(value) for value in inside if hasattr(value, "get_params")))


def one_per_class(estimators: Iterable[Any]) -> list[Any]:
    """The first estimator of each class as it is, the others with the marker campaign."""
    return rest_in_campaign([(e,) for e in estimators], type)

"""Descriptions of k-NN, nearest-centroid, prior-only and Fisher classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from likely.cli.console import clipped, columns
from likely.cli.describing.describe_model import COLUMNS, ROWS, _loadings, _names
from likely.report.number_format import number

DISTANCES = {
    "l1": "l1 (sum of absolute differences)", "l2": "l2 (Euclidean)", "linf": "linf (largest difference)",
    "scaled": "scaled (columns divided by their within-class standard deviation)",
    "mahalanobis": "mahalanobis (within-class covariance)", "correlation": "correlation (1 − r of two rows)",
}  # fmt: skip


def comparison(classifier: Any) -> Iterator[str]:
    """Description of a classifier without class densities; empty for others."""
    tell = _DESCRIBERS.get(type(classifier).__name__)
    if tell is not None:
        yield ""
        yield "compares"
        yield from tell(classifier)


def kernel_or_neighbors(distribution: Any) -> str:
    """Kernel and bandwidth, or number of neighbors, of a nonparametric density; empty for other distributions.

    >>> import likely as lk
    >>> kernel_or_neighbors(lk.KernelDensity(relative_bandwidth=0.5).fit([[0.0], [1.0], [3.0]]).model_)
    'kernel gaussian, bandwidth fixed, unit pooled, relative bandwidth 0.5'
    """
    from likely.estimation.density_summary import settings

    told = [f"{name} {value}" for name, value in settings(distribution).items()]
    if hasattr(distribution, "relative_bandwidth"):
        told.append(f"relative bandwidth {_first_values(distribution.relative_bandwidth)}")
    return ", ".join(told)


def kept(thing: Any) -> Iterator[str]:
    """Warning if training rows or values can be read from the file."""
    from likely.estimation.stored_data import what_is_kept

    if held := what_is_kept(thing):
        yield ""
        yield f"This file holds {held} of its training data: anyone with the file can read them."


def _first_values(values: Any) -> str:
    shown = ", ".join(number(float(value)) for value in values[:COLUMNS])
    return shown + (", …" if len(values) > COLUMNS else "")


def _metric(classifier: Any) -> str:
    from likely.neighbors.distances import plain_name

    name = str(plain_name(classifier.metric))
    return DISTANCES.get(name, f"{name} with p = {classifier.p:g}")


def _neighbors(clf: Any) -> Iterator[str]:
    by = "lowest error or cost" if clf.criterion == "errors" else "largest mean log-posterior"
    chosen = f", chosen by leave-one-out cross-validation: {by}" if hasattr(clf, "left_out_scores_") else ""
    left = "" if clf.prototypes is None else f" ({clf.prototypes}, of {len(clf.rows_):,})"
    yield f"  with the nearest of {len(clf.prototype_indices_):,} rows{left}: k = {clf.n_neighbors_}{chosen}"
    yield f"  distance: {_metric(clf)}"
    votes = "count 1 / distance" if clf.weights == "distance" else "count alike"
    yield f"  votes {votes}, and {clf.smoothing:g} more is shared as the classes are among all rows"


def _centers(clf: Any) -> Iterator[str]:
    yield f"  with the {clf.centroid} of each class"
    yield f"  distance: {_metric(clf)}"
    yield ""
    yield "centers"
    names = _names(clf, clf.centers_.shape[1])
    rows = [["", "class", *(clipped(name, 16) for name in names[:COLUMNS])]]
    for label, center in list(zip(clf.classes_.tolist(), clf.centers_, strict=True))[:ROWS]:
        rows.append(["", clipped(str(label), 40), *(number(float(x)) for x in center[:COLUMNS])])
    yield columns(rows, right=tuple(range(2, len(rows[0]))))
    if len(clf.classes_) > ROWS:
        yield f"  … and {len(clf.classes_) - ROWS} more classes"
    if len(names) > COLUMNS:
        yield f"  … and {len(names) - COLUMNS} more columns"


def _no_column(clf: Any) -> Iterator[str]:
    yield "  nothing: it uses no column; its posterior is the class prior"


def _axes(clf: Any) -> Iterator[str]:
    axes = clf.axes_.axes
    shrunk = f", shrinkage {clf.shrinkage:g}" if clf.shrinkage else ""
    yield f"  with class means along {len(axes)} discriminant directions (within-class covariance: identity){shrunk}"
    yield ""
    names = _names(clf, axes.shape[1])
    rows = [["", "axis", "between / within", "loadings (in within-class standard deviations)"]]
    spread = np.sqrt(np.maximum(np.diagonal(_within_covariance(clf)), 0.0))
    for j, (ratio, axis) in enumerate(zip(clf.ratios_[:ROWS].tolist(), axes, strict=False), 1):
        rows.append(["", str(j), number(ratio), _loadings(axis * spread, names)])
    yield columns(rows, right=(1, 2))


def _within_covariance(clf: Any) -> Any:
    stats = clf.stats_
    return stats.scatter.sum(axis=0) / stats.total_weight


_DESCRIBERS: dict[str, Callable[[Any], Iterator[str]]] = {
    "KNeighborsClassifier": _neighbors, "NearestCentroidClassifier": _centers, "FisherDiscriminant": _axes,
    "PriorClassifier": _no_column,
}  # fmt: skip

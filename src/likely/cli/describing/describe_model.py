"""Descriptions of clusterers, mixtures, PCA and other models in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from likely.cli.console import clipped, columns
from likely.report.number_format import number

COLUMNS = 6  # of the table, that fit beside each other
ROWS = 30  # clusters, parts or axes
LOADINGS = 3  # columns that an axis is told by
SPREADS = ("standard deviation", "correlation")  # what is not the middle of a distribution


def account(thing: Any) -> Iterator[str] | None:
    """Description of a fitted clusterer, mixture, PCA, sequence model or recognizer; None for others."""
    found = _ACCOUNTS.get(type(thing).__name__)
    return found[1](thing) if found is not None and hasattr(thing, found[0]) else None


def _kmeans(model: Any) -> Iterator[str]:
    sizes, centers = model.stats_.counts, model.model_.mean
    yield f"{len(centers)} clusters in {centers.shape[1]} columns, fitted to {_weight(sizes.sum())}"
    yield f"inertia (within-cluster sum of squares): {number(float(model.inertia_))}, after {model.n_iter_} iterations"
    yield ""
    yield from _centers(model, sizes, centers)


def _agglomerative(model: Any) -> Iterator[str]:
    tree = model.dendrogram_
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    yield f"{model.n_clusters_} clusters of {len(model.labels_):,} rows, {model.linkage} linkage"
    last = ", ".join(number(float(height)) for height in tree.heights[::-1][:5])
    yield f"heights of the last merges: {last}" if last else "a single row: nothing was merged"
    yield ""
    yield from _centers(model, sizes, getattr(model, "centers_", np.zeros((len(sizes), 0))))


def _centers(model: Any, sizes: Any, centers: Any) -> Iterator[str]:
    names = _names(model, centers.shape[1])
    rows = [["", "cluster", "rows", "share", *(clipped(name, 16) for name in names[:COLUMNS])]]
    for k, size in enumerate(sizes.tolist()[:ROWS]):
        middle = [number(float(x)) for x in centers[k, :COLUMNS]]
        rows.append(["", str(k), f"{size:,.6g}", f"{size / max(sizes.sum(), 1e-300):.1%}", *middle])
    yield columns(rows, right=tuple(range(1, len(rows[0]))))
    yield from _left_out(len(sizes), "clusters", len(names))


def _pca(model: Any) -> Iterator[str]:
    q, d = model.components_.shape
    yield f"{q} components of {d} columns, fitted to {_weight(model.stats_.total_weight)} (solver: {model.solver_})"
    yield f"they explain {1 - model.relative_error_:.2%} of the variance"
    yield ""
    names = _names(model, d)
    rows = [["", "axis", "variance", "share", "together", "loadings"]]
    together = np.cumsum(model.explained_variance_ratio_)
    for j, axis in enumerate(model.components_[:ROWS]):
        share = f"{model.explained_variance_ratio_[j]:.2%}"
        variance = number(float(model.explained_variance_[j]))
        rows.append(["", str(j + 1), variance, share, f"{together[j]:.2%}", _loadings(axis, names)])
    yield columns(rows, right=(1, 2, 3, 4))
    yield from _left_out(q, "axes")


def _loadings(axis: Any, names: list[str]) -> str:
    """The columns with the largest loadings of a component.

    >>> _loadings(np.array([0.1, -0.8, 0.6]), ["a", "b", "c"])
    '−0.80 b, +0.60 c, +0.10 a'
    """
    largest = np.argsort(-np.abs(axis), kind="stable")[:LOADINGS]
    return ", ".join(f"{axis[j]:+.2f} {clipped(names[j], 24)}".replace("-", "−", 1) for j in largest)


def _mixture(model: Any) -> Iterator[str]:
    told = model.summary()
    facts = told.facts
    yield f"a mixture of {model.model_.size} components: {_kind(model.model_.components)}"
    learned = f"fitted to {_weight(facts['rows'])}, {facts['columns']} columns"
    yield f"{learned}; {facts['parameters']:,} parameters, log-likelihood {number(facts['log-likelihood'])}"
    yield f"AIC {number(facts['AIC'])}, BIC {number(facts['BIC'])}; prior: {facts['prior']}"
    yield ""
    middles = [_middles(told.rows, k) for k in range(model.model_.size)]
    shown = list(middles[0])[:COLUMNS]
    rows = [["", "part", "weight", *(clipped(name, 24) for name in shown)]]
    for k, weight in enumerate(model.model_.weights.tolist()[:ROWS]):
        cells = [number(middles[k][name]) if name in middles[k] else "" for name in shown]
        rows.append(["", str(k), f"{weight:.4f}", *cells])
    yield columns(rows, right=tuple(range(1, len(rows[0]))))
    yield from _left_out(model.model_.size, "parts", len(middles[0]))


def _middles(rows: Any, k: int) -> dict[str, float]:
    """Location parameters of component k: means, rates, probabilities."""
    mine = (row for row in rows if row.column.startswith(f"{k}: ") and row.parameter not in SPREADS)
    named = ((row.column.removeprefix(f"{k}: "), row) for row in mine)
    return {name if row.parameter == "mean" else f"{name} {row.parameter}": row.estimate for name, row in named}


def _kind(distribution: Any) -> str:
    if isinstance(getattr(distribution, "components", None), tuple):  # a product names its parts
        return "products of " + ", ".join(
            f"{name}: {type(part).__name__}" for name, part in distribution.components[:COLUMNS]
        )
    kind = getattr(distribution, "kind", "")
    return f"{kind} {type(distribution).__name__}".strip() if isinstance(kind, str) else type(distribution).__name__


def _names(model: Any, d: int) -> list[str]:
    return [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])][:d]


def _weight(rows: float) -> str:
    return f"{rows:,.6g} row{'' if rows == 1 else 's'}"


def _left_out(n: int, what: str, width: int = 0) -> Iterator[str]:
    if n > ROWS:
        yield f"  … and {n - ROWS} more {what}"
    if width > COLUMNS:
        yield f"  … and {width - COLUMNS} more columns"


def _sequences(model: Any) -> Iterator[str]:
    from likely.cli.describing.describe_hmm import table_account

    return table_account(model)


def _hmm(model: Any) -> Iterator[str]:
    from likely.cli.describing.describe_hmm import density_account

    return density_account(model)


def _classifier(model: Any) -> Iterator[str] | None:
    """Description of a classifier, if it is one of sequences."""
    from likely.cli.describing.describe_hmm import classifier_account

    return classifier_account(model) if type(model.density_).__name__ == "HMMDensity" else None


def _told(name: str) -> Callable[[Any], Iterator[str]]:
    """Description of a state-space model; imported lazily."""

    def tell(thing: Any) -> Iterator[str]:
        from likely.cli.describing import describe_statespace

        found: Iterator[str] = getattr(describe_statespace, name)(thing)
        return found

    return tell


# class → (what a fitted one has, who tells of it)
_ACCOUNTS: dict[str, tuple[str, Callable[[Any], Iterator[str] | None]]] = {
    "KMeans": ("model_", _kmeans), "AgglomerativeClustering": ("labels_", _agglomerative), "PCA": ("principal_", _pca),
    "MixtureDensity": ("model_", _mixture), "MixtureClusterer": ("model_", _mixture),
    "HMMDensity": ("model_", _hmm), "SequenceDensity": ("density_", _sequences),
    "SequenceClassifier": ("classifier_", _sequences), "BayesClassifier": ("density_", _classifier),
    "LinearGaussian": ("transition", _told("linear_account")),
    "LinearSDE": ("drift", _told("continuous_account")),
    "SwitchingLinearGaussian": ("regimes", _told("switching_account")),
    "LinearGaussianDensity": ("model_", _told("linear_density_account")),
    "SwitchingDensity": ("model_", _told("switching_density_account")),
    "FaultMonitor": ("model_", _told("monitor_account")), "Tracker": ("dim", _told("tracker_account")),
}  # fmt: skip

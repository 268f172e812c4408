"""Loading of model files for commands: classifiers, clusters and densities with named columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from likely.core.errors import DataError, LikelyError, ModelFileError, sentence

if TYPE_CHECKING:
    from likely.automl.novelty_detector import NoveltyDetector
    from likely.automl.table_classifier import TableClassifier
    from likely.automl.table_clusterer import TableClusterer


def table_model(path: str, command: str = "predict") -> TableClassifier:
    """The classifier in a file, with its columns; a classifier of a data frame, saved from Python, gets them here."""
    from likely.io.model_files import load

    return classifier_of(load(path), path, command)


def classifier_of(model: Any, path: str, command: str = "predict") -> TableClassifier:
    """The same for a loaded object; `command` is for messages."""
    from likely.automl.table_classifier import TableClassifier
    from likely.classify.bayes import BayesClassifier
    from likely.cli.fitting.open_sequence_model import refuse_sequences

    if isinstance(model, TableClassifier) and hasattr(model, "classifier_"):
        return model
    refuse_sequences(model, path, command)
    if isinstance(model, BayesClassifier) and hasattr(model, "model_"):
        return TableClassifier.from_fitted(model, _schema(model, path))
    remedy = "`likely fit` writes such a file, `likely show` describes this one"
    raise ModelFileError(sentence(path, "a fitted classifier is needed", type(model).__name__, remedy))


def cluster_model(path: str) -> tuple[TableClusterer | None, Any]:
    """The cluster model of a file, or None, and the loaded object."""
    from likely.automl.table_clusterer import TableClusterer
    from likely.io.model_files import load

    model = load(path)
    return (model, model) if isinstance(model, TableClusterer) and hasattr(model, "mixture_") else (None, model)


@contextmanager
def card_as_written(path: str) -> Iterator[None]:
    """Raise an error of the file if its card is not as `likely fit` writes it."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, LikelyError):
            raise
        expected, remedy = "the card must be as likely writes it", "fit the model again"
        raise ModelFileError(sentence(path, expected, f"another ({type(error).__name__})", remedy)) from error


def _schema(model: Any, path: str) -> dict[str, dict[str, Any]]:
    return {name: _entry(model.density_, model.learned_model_.components, name) for name in _names(model, path)}


def _names(model: Any, path: str) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        remedy = "fit it to a data frame, or use it from Python"
        raise ModelFileError(sentence(path, "the model must know its columns by name", "numbers alone", remedy))
    return [str(name) for name in names]


def watch_model(path: str) -> NoveltyDetector:
    """The model in a file as one that marks unlikely rows: a classifier, clusters, or a density of named columns."""
    from likely.automl.novelty_detector import NoveltyDetector
    from likely.cli.fitting.open_sequence_model import refuse_sequences
    from likely.estimation.density_estimator import DensityEstimator

    clusters, thing = cluster_model(path)
    if clusters is not None:
        return NoveltyDetector.of_model(clusters)
    refuse_sequences(thing, path, "novelty")
    if isinstance(thing, DensityEstimator) and hasattr(thing, "model_"):
        inner, distribution = getattr(thing, "component_", thing), thing.learned_model_
        distribution = distribution.components if inner is not thing else distribution
        return NoveltyDetector.of_model(
            thing, {name: _entry(inner, distribution, name) for name in _names(thing, path)}
        )
    try:
        return NoveltyDetector.of_model(classifier_of(thing, path))
    except DataError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _entry(density: Any, distribution: Any, name: str) -> dict[str, Any]:
    """Kind and levels of one column, by the density that has learned it."""
    if hasattr(density, "densities_"):
        part, inner = next((title, part) for title, part, own in density.densities_ if name in own)
        return _entry(inner, distribution[part], name)
    if getattr(density, "words", None) is not None:  # a tree over columns of words
        words = density.words[[str(own) for own in density.column_names()].index(name)]
        return {"kind": "category", "levels": [str(word) for word in words]}
    kind = {"CategoricalDensity": "category", "PoissonDensity": "count"}.get(type(density).__name__, "real")
    if kind != "category":
        return {"kind": kind}
    own = distribution[name] if hasattr(distribution, "names") else distribution
    return {"kind": kind, "levels": [str(level) for level in own.values.tolist()]}

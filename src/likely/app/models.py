"""Model files as commands need them: a classifier that knows the columns of its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from likely.errors import LikelyError, ModelFileError, sentence

if TYPE_CHECKING:
    from likely.estimators.table_classifier import TableClassifier
    from likely.estimators.table_clusterer import TableClusterer


def table_model(path: str) -> TableClassifier:
    """The classifier in a file, with its columns; a classifier of a data frame, saved from Python, gets them here."""
    from likely.files import load

    return classifier_of(load(path), path)


def classifier_of(model: Any, path: str) -> TableClassifier:
    """The same for what was read."""
    from likely.estimators.bayes import BayesClassifier
    from likely.estimators.table_classifier import TableClassifier

    if isinstance(model, TableClassifier) and hasattr(model, "classifier_"):
        return model
    if isinstance(model, BayesClassifier) and hasattr(model, "model_"):
        return TableClassifier.around(model, _schema(model, path))
    remedy = "`likely fit` writes such a file, `likely show` says what this one holds"
    raise ModelFileError(sentence(path, "a fitted classifier is needed", type(model).__name__, remedy))


def cluster_model(path: str) -> tuple[TableClusterer | None, Any]:
    """The clusters in a file, None where it holds something else; and what it holds."""
    from likely.estimators.table_clusterer import TableClusterer
    from likely.files import load

    model = load(path)
    return (model, model) if isinstance(model, TableClusterer) and hasattr(model, "mixture_") else (None, model)


@contextmanager
def card_as_written(path: str) -> Iterator[None]:
    """A card that is not as `likely fit` writes it is a fault of the file, whatever it trips over."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, LikelyError):
            raise
        raise ModelFileError(sentence(path, "the card must be as likely writes it", f"{error!r}"[:80])) from error


def _schema(model: Any, path: str) -> dict[str, dict[str, Any]]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        remedy = "fit it to a data frame, or use it from Python"
        raise ModelFileError(sentence(path, "the model must know its columns by name", "numbers alone", remedy))
    return {str(name): _entry(model.density_, model._learnt.parts, str(name)) for name in names}


def _entry(density: Any, law: Any, name: str) -> dict[str, Any]:
    """Kind and levels of one column, by the density that has learnt it."""
    if hasattr(density, "parts_"):
        part, inner = next((title, part) for title, part, own in density.parts_ if name in own)
        return _entry(inner, law[part], name)
    kind = {"CategoricalDensity": "category", "PoissonDensity": "count"}.get(type(density).__name__, "real")
    if kind != "category":
        return {"kind": kind}
    own = law[name] if hasattr(law, "names") else law
    return {"kind": kind, "levels": [str(level) for level in own.values.tolist()]}

"""Loading of model files for commands: models of rows and of sequences, with the columns that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from likely.core.errors import DataError, LikelyError, ModelFileError, sentence

if TYPE_CHECKING:
    from likely.automl.novelty_detector import NoveltyDetector
    from likely.automl.table_classifier import TableClassifier
    from likely.automl.table_clusterer import TableClusterer
    from likely.core.ragged import Ragged


def table_model(path: str, command: str = "predict") -> TableClassifier:
    """The classifier in a file, with its columns; a classifier of a data frame, saved from Python, gets them here."""
    from likely.io.model_files import load

    return classifier_of(load(path), path, command)


def classifier_of(model: Any, path: str, command: str = "predict") -> TableClassifier:
    """The same for a loaded object; `command` is for messages."""
    from likely.automl.table_classifier import TableClassifier

    if isinstance(model, TableClassifier) and hasattr(model, "classifier_"):
        return model
    refuse_sequences(model, path, command)
    if _is_a(model, "BayesClassifier") and hasattr(model, "model_"):
        return TableClassifier.from_fitted(model, _schema(model, path))
    remedy = "`likely fit` writes such a file, `likely show` describes this one"
    raise ModelFileError(sentence(path, "a fitted classifier is needed", type(model).__name__, remedy))


def cluster_model(path: str) -> tuple[TableClusterer | None, Any]:
    """The cluster model of a file, or None, and the loaded object."""
    from likely.io.model_files import load

    model = load(path)
    return (model, model) if _is_a(model, "TableClusterer") and hasattr(model, "mixture_") else (None, model)


def is_regressor(thing: Any) -> bool:
    """Whether it is a fitted model of a table that predicts a number."""
    return _is_a(thing, "TableRegressor") and hasattr(thing, "regressor_")


def refuse_numbers(thing: Any, path: str, command: str) -> None:
    """Raise for a model that predicts a number in a command that it does not serve."""
    if is_regressor(thing):
        remedy = "`likely predict` gives intervals, `likely cluster` or `likely novelty --train` a density of rows"
        raise ModelFileError(
            sentence(path, f"`likely {command}` takes a density of rows", "a regression of the target alone", remedy)
        )


def _is_a(thing: Any, *names: str) -> bool:
    """Whether an object is of one of these classes; by name, because to import the others would take longer."""
    return any(cls.__name__ in names for cls in type(thing).__mro__)


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
    from likely.estimation.density_estimator import DensityEstimator

    clusters, thing = cluster_model(path)
    if clusters is not None:
        return NoveltyDetector.of_model(clusters)
    refuse_sequences(thing, path, "novelty")
    refuse_numbers(thing, path, "novelty")
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
    if getattr(density, "words", None) is not None:  # a tree over categorical columns
        words = density.words[[str(own) for own in density.column_names()].index(name)]
        return {"kind": "category", "levels": [str(word) for word in words]}
    kind = {"CategoricalDensity": "category", "PoissonDensity": "count"}.get(type(density).__name__, "real")
    if kind != "category":
        return {"kind": kind}
    own = distribution[name] if hasattr(distribution, "names") else distribution
    return {"kind": kind, "levels": [str(level) for level in own.values.tolist()]}


# -------------------------------------------------------------------------- sequences


def is_of_sequences(thing: Any) -> bool:
    """Whether the model of a file takes sequences, not rows."""
    inner = getattr(thing, "estimator_", thing)
    kinds = ("SequenceClassifier", "SequenceDensity", "HMMDensity", "HMM", "DTWClassifier")
    return hasattr(thing, "transcribe") or _is_a(inner, *kinds) or _is_a(_density(inner), "HMMDensity")


def unit_of(thing: Any) -> str:
    """What the model of a file takes: "row", "sequence" or "recording"."""
    return "recording" if hasattr(thing, "transcribe") else "sequence" if is_of_sequences(thing) else "row"


OF_ROWS, OF_FRAMES = ("sql", "allow_missing"), ("id", "time", "columns", "sequence")
OF_OTHERS = {"row": OF_FRAMES, "sequence": OF_ROWS, "recording": (*OF_ROWS, *OF_FRAMES, "target", "weight")}


def refuse_others(settings: Mapping[str, Any], unit: str) -> None:
    """Raise if an option is for models of something else."""
    takes = {"row": "sequences", "sequence": "models of rows", "recording": "tables"}[unit]
    for name in OF_OTHERS[unit]:
        if settings.get(name):
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} is for {takes}: this file holds a model of {unit}s.")


def sequence_classifier(thing: Any, path: str) -> Any:
    """A classifier of sequences that knows its columns."""
    known = named(thing, path)
    if not hasattr(known, "classifier_"):
        remedy = "fit one with --target; `likely decode --per sequence` gives log-probabilities"
        raise DataError(sentence(path, "a classifier is needed", "a single hidden Markov model", remedy))
    return known


def refuse_sequences(thing: Any, path: str, command: str) -> None:
    """Raise for a sequence model in a command for rows."""
    if is_of_sequences(thing):
        kind, recordings = type(thing).__name__, "recordings" if hasattr(thing, "transcribe") else "sequences"
        remedy = f"`likely decode` is for {recordings}, `likely show` describes the file"
        raise ModelFileError(
            sentence(path, f"`likely {command}` takes a model of rows", f"{kind}, of {recordings}", remedy)
        )


def named(thing: Any, path: str) -> Any:
    """A model that knows its columns; one saved from Python has them by number."""
    from likely.automl.sequence_models import SequenceClassifier, SequenceDensity
    from likely.classify.bayes import BayesClassifier
    from likely.hmm.estimators.hmm_density import HMMDensity
    from likely.hmm.hmm import HMM

    if isinstance(thing, SequenceClassifier | SequenceDensity):
        return thing
    if isinstance(thing, HMMDensity) and hasattr(thing, "model_"):
        return SequenceDensity.from_fitted(thing, columns_of(thing))
    if isinstance(thing, HMM) and thing.members is None:
        return BareChain(thing)
    if isinstance(thing, BayesClassifier) and isinstance(_density(thing), HMMDensity) and hasattr(thing, "model_"):
        return SequenceClassifier.from_fitted(thing, columns_of(_density(thing)))
    if is_of_sequences(thing) and hasattr(thing, "classes_") and hasattr(thing, "decide"):
        return BareClassifier(thing, path)
    remedy = "`likely fit --sequences` writes one, `likely show` describes this file"
    raise ModelFileError(sentence(path, "a model of sequences is needed", type(thing).__name__, remedy))


def _density(thing: Any) -> Any:
    return getattr(thing, "density_", None)


def columns_of(density: Any) -> dict[str, str]:
    """Columns and kinds of a density without a table: by name where it has some, else by number."""
    from likely.distributions.stacks.tied import untied

    inner = density.component_
    names = [str(name) for name in getattr(density, "feature_names_in_", range(density.n_features_in_))]
    one = {"CategoricalDensity": "category", "PoissonDensity": "count"}.get(type(inner).__name__, "real")
    kinds = dict.fromkeys(names, one)
    for _, part, own in getattr(inner, "densities_", ()):
        for name in own:
            kinds[str(name)] = "category" if type(part).__name__ == "CategoricalDensity" else "real"
    distribution = untied(density.learned_model_.emission) if hasattr(density, "model_") else None
    if hasattr(distribution, "levels") and _kind(distribution) == "real":  # levels that are numbers stay numbers
        kinds = dict.fromkeys(names, "real")
    return {"symbol": next(iter(kinds.values()))} if names == ["0"] else kinds


def _kind(distribution: Any) -> str:
    words = type(distribution).__name__ == "Categorical" and distribution.values.dtype.kind in "USO"
    return "category" if words else "real"


class BareChain:
    """An `HMM` that was saved as it is: columns and states have numbers."""

    card: dict[str, Any] = {}  # noqa: RUF012 - nothing is known of how it came about

    def __init__(self, model: Any) -> None:
        import numpy as np

        from likely.distributions.stacks.tied import untied

        self.model_, self.distribution = model, untied(model.emission)
        self.state_names = [str(k) for k in range(model.states)]
        self.original = np.arange(model.states)  # no expansion is known of
        self.schema: dict[str, Any] = {"roles": {}, "columns": self.columns, "states": None}

    @property
    def columns(self) -> dict[str, str]:
        """Kind of each column, in the order of a frame."""
        if not hasattr(self.distribution, "names"):
            kinds = {str(j): _kind(self.distribution) for j in range(self.distribution.dim)}
            return {"symbol": kinds["0"]} if list(kinds) == ["0"] else kinds
        return {
            name: _kind(part) for part_name, part in self.distribution.components for name in _spread(part_name, part)
        }

    def frames(self, found: Any) -> Ragged:
        """Sequences as the model takes them."""
        from likely.automl.sequence_models import laid_out
        from likely.core.columns import Columns
        from likely.core.ragged import Ragged

        rows = laid_out(found.x, found.columns, self.columns)
        if not hasattr(self.distribution, "names"):
            one = type(self.distribution).__name__ == "Categorical"
            return rows.map(lambda x: x[:, 0]) if one and rows.values.ndim == 2 else rows
        import numpy as np

        flat = rows.values if isinstance(rows.values, Columns) else dict(zip(self.columns, rows.values.T, strict=True))
        parts = {}
        for name, part in self.distribution.components:
            own = [flat[column] for column in _spread(name, part)]
            parts[str(name)] = own[0] if len(own) == 1 else np.stack(own, axis=1)
        return Ragged.of(Columns(parts), rows.lengths)

    def known(self, found: Any) -> tuple[Ragged, Any]:
        """Frames with unseen categories as missing, and which sequences (n,) had one."""
        import numpy as np

        rows = self.frames(found)
        if type(self.distribution).__name__ != "Categorical":
            return rows, np.zeros(len(rows), dtype=bool)
        odd = self.distribution.encode(rows.values) == -2
        if not odd.any():
            return rows, np.zeros(len(rows), dtype=bool)
        labels = np.repeat(np.arange(len(rows)), rows.lengths)
        words = rows.values.astype(object)
        words[odd] = None
        return rows.map(lambda x: words), np.bincount(labels[odd], minlength=len(rows)) > 0


def _spread(name: Any, part: Any) -> list[str]:
    """The columns of one part of a product."""
    return [str(name)] if part.dim == 1 else [f"{name} {j}" for j in range(part.dim)]


class BareClassifier:
    """A classifier of sequences that was saved as it is: it decides, columns have numbers."""

    card: dict[str, Any] = {}  # noqa: RUF012 - nothing is known of how it came about

    def __init__(self, classifier: Any, path: str) -> None:
        self.classifier_, self.path = classifier, path
        inner = getattr(classifier, "estimator_", classifier)
        density = _density(getattr(inner, "classifier_", inner))
        width = 1 if getattr(inner, "frames_", None) is None else inner.frames_.reshape(len(inner.frames_), -1).shape[1]
        self.columns = (
            columns_of(density) if density is not None else
            getattr(inner, "columns", None) or ({"symbol": "real"} if width == 1 else
                                                {str(j): "real" for j in range(width)})
        )  # fmt: skip
        self.schema: dict[str, Any] = {"roles": {}, "columns": self.columns, "states": None}

    def __getattr__(self, name: str) -> Any:
        if name in ("classes_", "class_prior_", "cost", "reject_cost", "reject_below"):
            setting = getattr(self.classifier_, name, None)
            return None if name == "cost" and isinstance(setting, str) else setting
        raise AttributeError(name)

    def frames(self, found: Any) -> Ragged:
        """Sequences as the classifier takes them."""
        from likely.automl.sequence_models import laid_out

        return laid_out(found.x, found.columns, self.columns)

    def log_posterior(self, found: Any) -> Any:
        """log p(c | sequence) (n, C)."""
        return self.classifier_.log_posterior(self.frames(found))

    def decide(self, found: Any, **how: Any) -> Any:
        """The decisions of the classifier; unsupported rules raise an error."""
        try:
            return self.classifier_.decide(self.frames(found), **how)
        except TypeError as error:
            asked = [name for name, value in how.items() if value is not None and f"'{name}'" in str(error)]
            if not asked and "unexpected keyword" in str(error):
                return self.decide(found, **{name: value for name, value in how.items() if value is not None})
            if not asked:
                raise
            expected = f"a {type(self.classifier_).__name__} has no --{asked[0].replace('_', '-')}"
            raise LikelyError(sentence(self.path, expected, remedy="leave it out")) from error

    def score_samples(self, found: Any) -> Any:
        """log p of each sequence where the classifier knows it, else NaN."""
        import numpy as np

        inner = getattr(self.classifier_, "estimator_", self.classifier_)
        if not hasattr(inner, "score_samples"):
            return np.full(len(found), np.nan)
        return inner.score_samples(self.frames(found))

"""Sequence models with named columns and states: SequenceClassifier and SequenceDensity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.automl.typed_models import TypedClassifier, TypedModel
from likely.classify.bayes import BayesClassifier
from likely.classify.calibration.calibration_maps import Calibration
from likely.classify.prior_classifier import PriorClassifier
from likely.core.arrays import Array, Index, Mask, Rows, Targets, is_gap
from likely.core.columns import Columns
from likely.core.description import Description, counted
from likely.core.errors import DataError, sentence
from likely.core.ragged import Ragged
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_constraints import HasMethods
from likely.estimation.scikit_learn import clone
from likely.estimation.sequence_validation import cut, refuse_other_y
from likely.hmm.estimators.hmm_density import HMMDensity
from likely.hmm.estimators.hmm_description import states_table

Kinds = dict[str, str]  # column → "real", "count" or "category"
KINDS = ("real", "count", "category")


class _OfSequences(TypedModel):
    """Base of models of sequences.

    Its schema: `columns` (name → type), `roles` (role → column), and `states`, the names of states if given.
    """

    @property
    def columns(self) -> Kinds:
        """Type of each column, in the order of a frame."""
        found: Kinds = self.schema["columns"]
        return found

    def frames(self, X: Any) -> Ragged:
        """Sequences in the form of the model.

        Parameters
        ----------
        X : Sequences, or sequences in any form
            Sequences, with columns by name or in the order of `columns`.

        Returns
        -------
        Ragged
            Frames with the columns of the model.
        """
        seqs, names = _named(X)
        known = names is not None and (isinstance(seqs.values, Columns) or any(name in self.columns for name in names))
        return laid_out(seqs, names if known else list(self.columns), self.columns)

    def _know_columns_of(self, X: Any) -> Ragged:
        """The same in training: column types are inferred and stored."""
        seqs, names = _named(X)
        width = 1 if getattr(seqs.values, "ndim", 1) == 1 else seqs.values.shape[1]
        names = [f"x{j}" for j in range(width)] if names is None else names
        self._know(kinds_found(seqs, names))
        return laid_out(seqs, names, self.columns)

    def _know(self, columns: Kinds, roles: Mapping[str, str] | None = None, states: list[str] | None = None) -> None:
        self.schema_ = json.dumps({"columns": columns, "roles": dict(roles or {}), "states": states})

    def _learned_words(self) -> list[str]:
        """Training data and columns, as sentences."""
        text, card = [], self.card
        if card:
            span = " to ".join(map(str, sorted(set(card["lengths"]))))
            data = f"{counted(card['sequences'], 'sequence')} of {span} frame{'s' * (span != '1')}"
            text = [f"learned from {', '.join(card['source'])}: {data}"]
        return [*text, f"columns: {', '.join(f'{name} ({kind})' for name, kind in self.columns.items())}"]

    def _sound_columns(self) -> bool:
        """After loading a file: whether columns, roles and states are valid."""
        schema = self.schema
        states, columns = schema["states"], schema["columns"]
        sound = isinstance(schema["roles"], dict) and bool(columns) and all(k in KINDS for k in columns.values())
        return sound and (states is None or all(isinstance(name, str) for name in states))


class SequenceClassifier(_OfSequences, TypedClassifier):
    """Classifier of sequences with named columns; written by `likely fit --sequences --target`.

    Parameters
    ----------
    classifier : classifier, optional
        A `BayesClassifier` of `HMMDensity`; None: one state per class, with a distribution for each column's type.
        `from_fitted` combines a fitted one with its columns.
    calibrate : bool, default False
        Whether `fit` calibrates posteriors on out-of-fold ones where that helps, as in `TableClassifier`.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> x = lk.Ragged.from_list([np.zeros(4), np.ones(5), np.zeros(6), np.ones(3)])
    >>> clf = lk.BayesClassifier(lk.HMMDensity(n_states=1)).fit(x, ["low", "high", "low", "high"])
    >>> SequenceClassifier.from_fitted(clf, {"level": "real"}).predict([[0.9, 1.0, 1.1]])
    array(['high'], dtype=object)
    """

    saved_attributes: tuple[str, ...] = ("classifier_", "schema_", "card_", "calibration_")

    def __init__(self, classifier: Any = None, calibrate: bool = False) -> None:
        self.classifier = classifier
        self.calibrate = calibrate

    def _rows(self, X: Any) -> Ragged:
        return self.frames(X)

    def _usual(self) -> Any:
        from likely.automl.sequence_candidates import chain

        return BayesClassifier(chain(self.columns, 1))

    @classmethod
    def from_fitted(
        cls, classifier: Any, columns: Kinds, roles: Mapping[str, str] | None = None,
        calibration: Calibration | None = None,
    ) -> Self:  # fmt: skip
        """A fitted classifier combined with the columns of a frame, in that order.

        Parameters
        ----------
        classifier : classifier
            The fitted classifier.
        columns : dict
            Type of each column of a frame, {name: "real", "count", "binary" or "category"}, in that order.
        roles : dict, optional
            Columns of the table by role, such as the sequence and the time.
        calibration : calibration map, optional
            The map of its posteriors to calibrated ones.
        """
        made = cls._around(classifier, calibration)
        made._know(columns, roles)
        return made

    def score_samples(self, X: Rows) -> Array:
        """Log-density of each sequence; NaN if class priors alone decide."""
        frames = self.frames(X)
        if isinstance(self.classifier_, PriorClassifier):
            return np.full(len(frames), np.nan)
        with self._spoken(self.classifier_):
            return self.classifier_.score_samples(frames)

    def unseen(self, X: Rows) -> dict[str, Mask]:
        """Sequences with unknown levels, by column."""
        if isinstance(self.classifier_, PriorClassifier):
            return {}
        density, model = self.classifier_.density_, self.classifier_.learned_model_.components
        found = density.mask_unknown(density.validate_rows(self.frames(X), reset=False), model)[1]
        own = dict(zip(density.column_names(), self._names(), strict=True))
        return {own[name]: mask for name, mask in found.items()}

    def _names(self) -> list[str]:
        """The columns in the order of the classifier: a matrix of numbers has no names there."""
        kinds = set(self.columns.values())
        return list(self.columns) if len(kinds) == 1 else super()._names()

    def _sound(self) -> bool:
        sound = super()._sound() and self._sound_columns()
        if sound and not isinstance(self.classifier_, PriorClassifier):
            sound = isinstance(self.classifier_, BayesClassifier) and isinstance(self.classifier_.density_, HMMDensity)
            sound = sound and self.classifier_.n_features_in_ == len(self.columns)
        return sound

    def describe(self) -> Description:
        """Training data, selection, classes and decision rule; of an unfitted one, its settings."""
        if "classifier_" not in vars(self):
            return super().describe()
        found, card = self.classifier_.describe(), self.card
        chosen = [card["verdict"].replace(" per row", " per sequence")] if card else []
        calibrated = (
            [f"Probabilities were {card['calibrated']} on held-out sequences."] if card.get("calibrated") else []
        )
        text = [*self._learned_words(), *chosen, *found.text]
        return replace(found, title=type(self).__name__, text=text).plus(notes=calibrated)


class SequenceDensity(_OfSequences):
    """Hidden Markov model with named columns and states; written by `likely fit --sequences`.

    Parameters
    ----------
    density : HMMDensity, optional
        The hidden Markov model; None: one state, with a distribution for each column's type. `from_fitted` combines a
        fitted one with its columns and the names of its states.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> x = [np.repeat([0.0, 8.0], 9) + np.sin(np.arange(18)) for _ in range(3)]
    >>> h = lk.HMMDensity(n_states=2, topology="left-to-right").fit(x)
    >>> named = SequenceDensity.from_fitted(h, {"level": "real"}, states=["low", "high"])
    >>> named.state_names, named.predict(x)[0].tolist() == [0] * 9 + [1] * 9
    (['low', 'high'], True)
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {"density": [HasMethods(["fit", "score_samples"]), None]}
    _inner_name = "density_"
    saved_attributes: tuple[str, ...] = ("density_", "schema_", "card_")

    def __init__(self, density: DensityEstimator | None = None) -> None:
        self.density = density

    def fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Infer the column types of X, and fit to sequences; `y` is ignored, `lengths` split one array X."""
        from likely.automl.sequence_candidates import chain

        self._validate_params()
        with self._whole_or_nothing():
            frames = self._know_columns_of(cut(X, lengths))
            refuse_other_y(y, frames, type(self).__name__)
            usual = chain(self.columns, 1)
            self.density_ = (usual if self.density is None else clone(self.density)).fit(
                frames, sample_weight=sample_weight
            )
        return self

    @classmethod
    def from_fitted(
        cls, density: DensityEstimator, columns: Kinds, roles: Mapping[str, str] | None = None,
        states: list[str] | None = None,
    ) -> Self:  # fmt: skip
        """A fitted density combined with the columns of a frame, in that order.

        Parameters
        ----------
        density : HMMDensity
            The fitted hidden Markov model.
        columns : dict
            Type of each column of a frame, {name: "real", "count", "binary" or "category"}, in that order.
        roles : dict, optional
            Columns of the table by role, such as the sequence and the time.
        states : list of str, optional
            Names of the states.
        """
        made = cls(clone(density))
        made.density_ = density
        made._know(columns, roles, states)
        return made

    @property
    def model_(self) -> Any:
        """The `HMM` itself."""
        check_is_fitted(self, "density_")
        return self.density_.model_

    @property
    def state_names(self) -> list[str]:
        """Names of the states; their numbers by default."""
        named: list[str] | None = self.schema["states"]
        return named or [str(k) for k in range(int(self.density_.topology_.original.max()) + 1)]

    def known(self, X: Rows) -> tuple[Ragged, Mask]:
        """Validated frames with unknown levels as missing, and the sequences that had one.

        Returns
        -------
        frames : Ragged
            Sequences in the form of the model.
        unknown : ndarray of bool (n,)
            Sequences with an unknown level.
        """
        return known_rows(self.density_, self.frames(X))

    def frame(self, y: Targets) -> Any:
        """One frame in the form of the model: a value, values in the order of `columns`, or a dict by column.

        An unknown level counts as missing, as in `score_samples`.

        Parameters
        ----------
        y : value, array-like (d,) or dict
            The observation.

        Returns
        -------
        ndarray (d,) or Columns
            The frame.
        """
        cells = dict(y) if isinstance(y, Mapping) else dict(zip(self.columns, self._cells(y), strict=True))
        odd = [name for name in cells if name not in self.columns]
        if odd:
            there = ", ".join(f'"{name}"' for name in self.columns)
            raise DataError(
                sentence(type(self).__name__, f"there must be a column {odd[0]!r}", remedy=f"there are {there}")
            )
        parts = {
            name: np.array([cells.get(name)], dtype=object if kind == "category" else np.float64)
            for name, kind in self.columns.items()
        }
        found = self.known(Ragged.of(Columns(parts), [1]))[0].values
        return {name: part[0] for name, part in found.parts.items()} if isinstance(found, Columns) else found

    def _cells(self, y: Any) -> list[Any]:
        """The entries of one frame, in the order of the columns."""
        found = [y] if np.ndim(y) == 0 else np.asarray(y, dtype=object).ravel().tolist()
        if len(found) != len(self.columns):
            expected = f"a frame must have {len(self.columns)} entries: {', '.join(self.columns)}"
            raise DataError(sentence(type(self).__name__, expected, len(found)))
        return found

    def as_online_filter(self) -> LiveFrames:
        return LiveFrames(self.model_, self)

    def score_samples(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Log-density of each sequence; an unknown level counts as missing."""
        return self.model_.log_prob(self.known(cut(X, lengths))[0])

    def predict(self, X: Rows, lengths: ArrayLike | None = None) -> Ragged:
        """The state of each frame on the Viterbi path."""
        return states_of(self.density_, self.known(cut(X, lengths))[0])

    def predict_proba(self, X: Rows, lag: int | None = None, lengths: ArrayLike | None = None) -> Ragged:
        """State probabilities p(state | sequence) of each frame; with a `lag`, fixed-lag smoothing.

        Returns
        -------
        Ragged
            Probabilities (T, K) of each sequence.
        """
        return shares_of(self.model_, self.density_.topology_.original, self.known(cut(X, lengths))[0], lag)

    def _sound(self) -> bool:
        sound = isinstance(self.density_, HMMDensity) and self._sound_columns()
        sound = sound and self.density_.n_features_in_ == len(self.columns)
        return sound and len(self.state_names) == int(self.density_.topology_.original.max()) + 1

    def describe(self) -> Description:
        """Training data, and the density with its states by name; of an unfitted one, its settings."""
        if "density_" not in vars(self):
            return super().describe()
        found = self.density_.describe()
        states = states_table(self.density_, self.state_names, list(self.columns))
        tables = [states, *(table for table in found.tables if table.title != states.title)]
        return replace(found, title=type(self).__name__, text=[*self._learned_words(), *found.text], tables=tables)


class LiveFrames:
    """Filtering of an HMM with the input validation of its estimator, so that live and batch results agree."""

    def __init__(self, model: Any, density: SequenceDensity) -> None:
        self.model, self.density = model, density

    def initial_belief(self) -> Any:
        """The initial belief."""
        return self.model.initial_belief()

    def predict(self, belief: Any) -> Any:
        """The predicted belief one frame ahead."""
        return self.model.predict(belief)

    def update(self, belief: Any, y: Any) -> tuple[Any, float]:
        """The belief after a frame, and its predictive log-density."""
        found: tuple[Any, float] = self.model.update(belief, self.density.frame(y))
        return found


# -------------------------------------------------------------------- inside the border


def known_rows(density: Any, X: Any) -> tuple[Ragged, Mask]:
    """Validated frames with unknown levels as missing, and the sequences (n,) that had one."""
    rows, unseen = density.mask_unknown(density.validate_rows(X, reset=False), density.learned_model_)
    return rows, np.logical_or.reduce([np.zeros(len(rows), dtype=bool), *unseen.values()])


def states_of(density: Any, rows: Ragged) -> Ragged:
    """Viterbi paths of validated frames, in states of the requested topology."""
    own = density.topology_.original
    return density.model_.viterbi(rows).states.map(lambda states: own[states])


def shares_of(model: Any, original: Index, rows: Ragged, lag: int | None = None) -> Ragged:
    """p(state | sequence) of validated frames, summed over the expanded states of each `original` (K,) state."""
    sums = np.eye(int(original.max()) + 1)[original]
    return model.posterior(rows, lag).map(lambda p: p @ sums)


def cells_lost(before: Any, after: Any) -> list[Any]:
    """The distinct unknown levels of frames.

    >>> cells_lost(np.array(["a", "z", "z"], dtype=object), np.array([["a"], [None], [None]], dtype=object))
    ['z']
    """
    if isinstance(before, Columns):
        whole = after if isinstance(after, Columns) else {}
        return [word for name in before for word in cells_lost(before[name], whole.get(name, before[name]))]
    was, now = np.ravel(np.asarray(before, dtype=object)), np.ravel(np.asarray(after, dtype=object))
    if len(was) != len(now):
        return []
    lost = (word for word, cell in zip(was.tolist(), now.tolist(), strict=True) if is_gap(cell) and not is_gap(word))
    return list(dict.fromkeys(lost))


# ---------------------------------------------------------------------------- frames


def _named(X: Any) -> tuple[Ragged, Any]:
    """Sequences, and the names of their columns if given."""
    names = getattr(X, "columns", None)
    if isinstance(names, tuple) and isinstance(getattr(X, "x", None), Ragged):
        return X.x, names
    seqs = Ragged.of(X)
    return seqs, list(seqs.values) if isinstance(seqs.values, Columns) else seqs.names


def kinds_found(seqs: Ragged, names: Any) -> Kinds:
    """The type of each column of a frame: numbers are "real", strings "category"; an empty column counts as numbers.

    >>> kinds_found(Ragged.from_list([[1.0, 2.0]]), ["x"])
    {'x': 'real'}
    """
    return {name: "category" if _has_words(a) else "real" for name, a in by_name(seqs, names).items()}


def never_observed(seqs: Ragged, names: Any) -> list[str]:
    """The columns without any entry.

    >>> never_observed(Ragged.from_list([[[1.0, np.nan]]]), ["x", "y"])
    ['y']
    """
    found = by_name(seqs, names)
    return [name for name, a in found.items() if len(a) and not (_has_words(a) or _has_numbers(a))]


def _has_words(a: NDArray[Any]) -> bool:
    return a.dtype.kind in "US" or (a.dtype.kind == "O" and any(not is_gap(cell) for cell in a.tolist()))


def _has_numbers(a: NDArray[Any]) -> bool:
    return a.dtype.kind in "biu" or (a.dtype.kind == "f" and not np.isnan(a).all())


def laid_out(seqs: Ragged, names: Any, kinds: Kinds) -> Ragged:
    """The columns of `kinds`, in order: numbers as a matrix, one categorical column alone, else `Columns`.

    >>> laid_out(Ragged.from_list([[1.0, 2.0]]), ["x"], {"x": "category"})[0].tolist()
    ['1', '2']
    """
    found = by_name(seqs, names)
    missing = [name for name in kinds if name not in found]
    if missing:
        there = ", ".join(f'"{name}"' for name in list(found)[:8])
        raise DataError(sentence("sequences", f'there must be a column "{missing[0]}"', remedy=f"there are {there}"))
    parts = {name: _as_kind(found[name], kind, name) for name, kind in kinds.items()}
    if len(set(kinds.values()) - {"category"}) == 1 and "category" not in kinds.values():
        return Ragged.of(np.stack(list(parts.values()), axis=1), seqs.lengths)
    return Ragged.of(next(iter(parts.values())) if len(parts) == 1 else Columns(parts), seqs.lengths)


def by_name(seqs: Ragged, names: Any) -> dict[str, NDArray[Any]]:
    """Each column of all frames (T,)."""
    values = seqs.values
    if isinstance(values, Columns):
        return {str(name): np.asarray(values[name]) for name in values}
    table = values[:, None] if values.ndim == 1 else values
    names = [str(name) for name in names]
    if table.ndim != 2 or table.shape[1] != len(names):
        expected = f"frames must have {len(names)} column{'s' * (len(names) != 1)}: {', '.join(names[:8])}"
        raise DataError(sentence("sequences", expected, f"{table.shape[1]}"))
    return {name: table[:, j] for j, name in enumerate(names)}


def _as_kind(a: NDArray[Any], kind: str, name: str) -> NDArray[Any]:
    words = a.dtype.kind in "USO"
    if kind == "category":
        return np.array([None if is_gap(cell) else as_text(cell) for cell in a.tolist()], dtype=object)
    if words and all(is_gap(cell) for cell in a.tolist()):  # a column without any entry has no type
        return np.full(len(a), np.nan)
    if words:
        odd = next(cell for cell in a.tolist() if not is_gap(cell))
        raise DataError(sentence(f'column "{name}"', "numbers are needed", f'words such as "{odd}"'))
    return np.asarray(a, dtype=np.float64)


def as_text(cell: Any) -> str:
    """A level as a string: 1.0 is "1"."""
    return str(int(cell)) if isinstance(cell, float) and cell == int(cell) else str(cell)

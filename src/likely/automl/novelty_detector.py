"""Novelty detection for tables: novelty scores of rows, thresholds, and the columns responsible.

Any generative model can be used: a classifier, a clustering, a density. The threshold is set by held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely.automl.table_classifier import Schema, TableClassifier, laid_out
from likely.automl.table_clusterer import TableClusterer
from likely.classify.bayes import BayesClassifier
from likely.core.arrays import Array, Mask
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, by_caller, sentence
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.novelty.novelty_score import Ordinary, _patterns, alarm

BITS = 1 / np.log(2)
DRAWN = 256  # samples of the model for the usual gain of a column


@dataclass(frozen=True)
class NoveltyScores:
    """Novelty scores of rows: in units of spread, and in bits relative to a typical row."""

    novelty: Array  # (n,): in units of the interquartile range; infinite for an unknown level
    bits: Array  # (n,): (median of log p over samples − log p(x)) / log 2, with the same missing values
    log_prob: Array  # (n,)
    unseen: dict[str, Mask]  # column → mask of rows (n,) with an unknown level

    @property
    def has_unseen(self) -> Mask:
        """Rows (n,) with an unknown level."""
        return np.logical_or.reduce([np.zeros(len(self.bits), bool), *self.unseen.values()])

    def why(self, i: int) -> str:
        """The reason for row i as text."""
        words = [f'"{name}"' for name, mask in self.unseen.items() if mask[i]]
        if words:
            return f"a value of {', '.join(words)} did not occur in training"
        return f"{self.bits[i]:.1f} bits beyond a typical row"


@dataclass(frozen=True)
class NoveltyDetector:
    """A model with its columns and the novelty scores of held-out rows.

    >>> import numpy as np, polars as pl
    >>> rng = np.random.default_rng(0)
    >>> model = TableClusterer(1).fit({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    >>> watch = NoveltyDetector.of_model(model)
    >>> rows = pl.DataFrame({"a": [0.0, 0.0], "b": [0.0, 9.0]})
    >>> (watch.score(rows).novelty > watch.level(0.01)).tolist(), watch.contributions(rows[1:])[0]
    ([False, True], ['b'])
    """

    schema: Schema
    estimator: Any  # a fitted BayesClassifier or DensityEstimator
    held_out_novelty: (
        Array | None
    )  # (3, m): novelty scores of held-out rows (see `estimation.novelty`); None if there are none

    @classmethod
    def of_model(cls, model: Any, schema: Schema | None = None) -> NoveltyDetector:
        """The novelty detector of a model written by `likely fit` or `likely cluster`, or of a named density."""
        if isinstance(model, TableClusterer):
            return cls(model.schema, model.mixture_, model.held_out_novelty_)
        if isinstance(model, TableClassifier) and isinstance(model.classifier_, BayesClassifier):
            return cls(model.schema, model.classifier_, model.classifier_.held_out_novelty_)
        if isinstance(model, DensityEstimator) and hasattr(model, "model_") and schema is not None:
            return cls(schema, model, None)
        expected, remedy = (
            "a generative model, with a density of rows, is needed",
            by_caller("train one with --train", "fit one"),
        )
        raise DataError(sentence("novelty", expected, type(model).__name__, remedy))

    def score(self, frame: Any) -> NoveltyScores:
        """Novelty scores of the rows of a typed frame."""
        rows, unseen = self._known(frame)
        scores = np.asarray(self._model.log_prob(rows), dtype=np.float64)
        novelty, bits = np.empty(len(scores)), np.empty(len(scores))
        ordinary = Ordinary.of(self._model)
        with one_blas_thread():
            for at, missing in _patterns(rows):
                middle, spread = ordinary.scores(missing)
                novelty[at], bits[at] = (middle - scores[at]) / spread, (middle - scores[at]) * BITS
        for mask in unseen.values():
            novelty[mask] = np.inf
        return NoveltyScores(novelty, bits, scores, unseen)

    def level(self, rate: float) -> float:
        """The threshold that a share `rate` of normal rows exceeds: from held-out rows, else from samples."""
        if not 0 < rate < 1:
            raise DomainError(sentence("novelty", "rate is a share between 0 and 1", rate))
        return alarm(self._reference_scores, rate, "novelty")

    def p_value(self, novelty: Array) -> Array:
        """p-value of each row (n,): the fraction of reference rows with at least this score, (1 + more) / (1 + all)."""
        value, weight = self._reference_scores[0], self._reference_scores[1]
        order = np.argsort(value)
        above = np.concatenate([np.cumsum(weight[order][::-1])[::-1], [0.0]])
        more = above[np.searchsorted(value[order], novelty, side="left")]
        return np.asarray((1 + more) / (1 + weight.sum()))

    def contributions(self, frame: Any) -> tuple[list[str], Array]:
        """The column most responsible for each row's surprisal, and its bits (n,)."""
        names, bits = list(self.schema), self.ranking(frame)
        worst = bits.argmax(axis=1)
        return [names[j] for j in worst.tolist()], bits[np.arange(len(worst)), worst]

    def ranking(self, frame: Any) -> Array:
        """The contribution of each column to each row's surprisal, in bits (n, d); −inf where its cell is missing.

        It is the gain of log p when the column is treated as missing, beyond the gain in a typical row; so
        units do not matter. An unknown level contributes infinitely, and so does a value of density 0.
        """
        names, look = list(self.schema), self.score(frame)
        gain = np.stack([self._gain(frame, look.log_prob, name) for name in names], axis=1) - self._usual
        if np.isnan(gain).any():  # density 0 with the column and without it: each column is tested alone
            gain = np.where(np.isnan(gain), self._impossible(frame, names), gain)
        for j, name in enumerate(names):
            gain[look.unseen.get(name, np.zeros(len(gain), bool)), j] = np.inf
            gain[frame[name].is_null().to_numpy(), j] = -np.inf
        return np.asarray(gain * BITS)

    # ---------------------------------------------------------------------- inside

    @property
    def _model(self) -> Any:
        return self.estimator.model_

    def _known(self, frame: Any) -> tuple[Any, dict[str, Mask]]:
        """Validated rows with unknown levels as missing; and their masks by column."""
        e = self.estimator
        if isinstance(e, BayesClassifier):
            rows, unseen = e.density_.mask_unknown(e.density_.validate_rows(frame), e.learned_model_.components)
        else:
            rows, unseen = e.mask_unknown(e.validate_rows(frame, reset=False), e.learned_model_)
        return rows, {name: np.asarray(mask) for name, mask in unseen.items() if np.any(mask)}

    def _gain(self, frame: Any, scores: Array, name: str) -> Array:
        import polars as pl

        without = frame.with_columns(pl.lit(None, dtype=frame[name].dtype).alias(name))
        with np.errstate(invalid="ignore"):
            return np.asarray(self._model.log_prob(self._known(without)[0]), dtype=np.float64) - scores

    def _impossible(self, frame: Any, names: list[str]) -> Array:
        """∞ where a single cell, all others missing, has density 0; else 0 (n, d)."""
        import polars as pl

        out = np.zeros((frame.height, len(names)))
        for j, name in enumerate(names):
            others = [pl.lit(None, dtype=frame[other].dtype).alias(other) for other in names if other != name]
            scores = self._model.log_prob(self._known(frame.with_columns(others))[0])
            out[np.isneginf(np.asarray(scores, dtype=np.float64)), j] = np.inf
        return out

    @cached_property
    def _usual(self) -> Array:
        """The gain of each missing column in a typical row (d,): the median over samples."""
        frame = self._drawn
        scores = np.asarray(self._model.log_prob(self._known(frame)[0]), dtype=np.float64)
        return np.array([float(np.median(self._gain(frame, scores, name))) for name in self.schema])

    @cached_property
    def _drawn(self) -> Any:
        """Samples of the model as a typed frame."""
        return as_frame(Ordinary.of(self._model).draws[:DRAWN], list(self.schema))

    @cached_property
    def _reference_scores(self) -> Array:
        if self.held_out_novelty is not None and self.held_out_novelty.shape[1]:
            return self.held_out_novelty
        draws = self._model.sample(2048, np.random.default_rng(1))
        look = self.score(as_frame(draws, list(self.schema)))
        return np.stack([look.novelty, np.ones(len(look.novelty)), np.ones(len(look.novelty))])


def as_frame(rows: Any, names: list[str]) -> Any:
    """Samples of a model as a frame of these columns; parts are in the order of the columns."""
    import polars as pl

    parts = [np.asarray(part) for part in rows.parts.values()] if hasattr(rows, "parts") else [np.asarray(rows)]
    columns = [column for part in parts for column in (part.reshape(len(part), -1)).T]
    return laid_out(
        pl.DataFrame([pl.Series(name, column.tolist()) for name, column in zip(names, columns, strict=True)]), names
    )

"""Which rows of a table are unlike the ordinary ones, by how much, and which column is to blame.

Any model that scores rows can watch: a classifier, clusters, a density. Its alarm is set by rows that it had not
learned from.
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
DRAWN = 256  # rows of the model's own by which the usual gain of a column is known


@dataclass(frozen=True)
class Look:
    """What a watch saw: how surprising rows are, in spreads and in bits beyond an ordinary row."""

    surprise: Array  # (n,): infinite where a word was never seen
    bits: Array  # (n,): (median of log p over ordinary rows − log p(x)) / log 2, gaps alike
    log_prob: Array  # (n,)
    unseen: dict[str, Mask]  # column → which rows (n,) hold a word that training never saw

    @property
    def strange(self) -> Mask:
        """Rows (n,) with such a word."""
        return np.logical_or.reduce([np.zeros(len(self.bits), bool), *self.unseen.values()])

    def why(self, i: int) -> str:
        """Row i in words."""
        words = [f'"{name}"' for name, mask in self.unseen.items() if mask[i]]
        if words:
            return f"a value of {', '.join(words)} was not seen in training"
        return f"{self.bits[i]:.1f} bits beyond an ordinary row"


@dataclass(frozen=True)
class Watch:
    """A model with the columns it knows and the surprises of rows that it had not learned from.

    >>> import numpy as np, polars as pl
    >>> rng = np.random.default_rng(0)
    >>> model = TableClusterer(1).fit({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    >>> watch = Watch.over(model)
    >>> rows = pl.DataFrame({"a": [0.0, 0.0], "b": [0.0, 9.0]})
    >>> (watch.look(rows).surprise > watch.level(0.01)).tolist(), watch.blame(rows[1:])[0]
    ([False, True], ['b'])
    """

    schema: Schema
    estimator: Any  # a BayesClassifier or a DensityEstimator, fitted
    held_out_surprise: (
        Array | None
    )  # (3, m): surprises of rows not learned from, as `alarms` keeps them; None where there are none

    @classmethod
    def over(cls, model: Any, schema: Schema | None = None) -> Watch:
        """The watch of a model that `likely fit` or `likely cluster` wrote, or of a density with named columns."""
        if isinstance(model, TableClusterer):
            return cls(model.schema, model.mixture_, model.held_out_surprise_)
        if isinstance(model, TableClassifier) and isinstance(model.classifier_, BayesClassifier):
            return cls(model.schema, model.classifier_, model.classifier_.held_out_surprise_)
        if isinstance(model, DensityEstimator) and hasattr(model, "model_") and schema is not None:
            return cls(schema, model, None)
        expected, remedy = (
            "a model is needed that knows how likely a row is",
            by_caller("train one with --train", "fit one"),
        )
        raise DataError(sentence("novelty", expected, type(model).__name__, remedy))

    def look(self, frame: Any) -> Look:
        """How surprising the rows of a typed frame are."""
        rows, unseen = self._known(frame)
        scores = np.asarray(self._model.log_prob(rows), dtype=np.float64)
        surprise, bits = np.empty(len(scores)), np.empty(len(scores))
        ordinary = Ordinary.of(self._model)
        with one_blas_thread():
            for at, gaps in _patterns(rows):
                middle, spread = ordinary.scores(gaps)
                surprise[at], bits[at] = (middle - scores[at]) / spread, (middle - scores[at]) * BITS
        for mask in unseen.values():
            surprise[mask] = np.inf
        return Look(surprise, bits, scores, unseen)

    def level(self, rate: float) -> float:
        """The surprise that a share `rate` of ordinary rows exceeds: by rows not learned from, else by draws."""
        if not 0 < rate < 1:
            raise DomainError(sentence("novelty", "rate is a share between 0 and 1", rate))
        return alarm(self._calm, rate, "novelty")

    def rarity(self, surprise: Array) -> Array:
        """Share of ordinary rows that are as surprising (n,), the row itself among them: (1 + more) / (1 + all)."""
        value, weight = self._calm[0], self._calm[1]
        order = np.argsort(value)
        above = np.concatenate([np.cumsum(weight[order][::-1])[::-1], [0.0]])
        more = above[np.searchsorted(value[order], surprise, side="left")]
        return np.asarray((1 + more) / (1 + weight.sum()))

    def blame(self, frame: Any) -> tuple[list[str], Array]:
        """The column whose value is the most to blame for each row, and its bits (n,)."""
        names, bits = list(self.schema), self.ranking(frame)
        worst = bits.argmax(axis=1)
        return [names[j] for j in worst.tolist()], bits[np.arange(len(worst)), worst]

    def ranking(self, frame: Any) -> Array:
        """How much each column is to blame for each row, in bits (n, d); −inf where its cell is missing.

        Bits are what log p gains when the column is taken as missing, beyond what it gains in an ordinary row; so
        units do not matter. A word never seen is to blame beyond measure, and so is a value that cannot be.
        """
        names, look = list(self.schema), self.look(frame)
        gain = np.stack([self._gain(frame, look.log_prob, name) for name in names], axis=1) - self._usual
        if np.isnan(gain).any():  # impossible with the column and without it: each is asked alone
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
        """Rows inside the border, words never seen as missing; and where those were, by column."""
        e = self.estimator
        if isinstance(e, BayesClassifier):
            rows, strange = e.density_._known(e.density_._rows(frame, reset=False), e._learned.components)
        else:
            rows, strange = e._known(e._rows(frame, reset=False), e._learned)
        return rows, {name: np.asarray(mask) for name, mask in strange.items() if np.any(mask)}

    def _gain(self, frame: Any, scores: Array, name: str) -> Array:
        import polars as pl

        without = frame.with_columns(pl.lit(None, dtype=frame[name].dtype).alias(name))
        with np.errstate(invalid="ignore"):
            return np.asarray(self._model.log_prob(self._known(without)[0]), dtype=np.float64) - scores

    def _impossible(self, frame: Any, names: list[str]) -> Array:
        """∞ where a cell alone, all others missing, has probability 0; else 0 (n, d)."""
        import polars as pl

        out = np.zeros((frame.height, len(names)))
        for j, name in enumerate(names):
            others = [pl.lit(None, dtype=frame[other].dtype).alias(other) for other in names if other != name]
            scores = self._model.log_prob(self._known(frame.with_columns(others))[0])
            out[np.isneginf(np.asarray(scores, dtype=np.float64)), j] = np.inf
        return out

    @cached_property
    def _usual(self) -> Array:
        """What each column's absence gains in an ordinary row (d,): the median over the model's own."""
        frame = self._drawn
        scores = np.asarray(self._model.log_prob(self._known(frame)[0]), dtype=np.float64)
        return np.array([float(np.median(self._gain(frame, scores, name))) for name in self.schema])

    @cached_property
    def _drawn(self) -> Any:
        """Rows of the model's own as a typed frame."""
        return as_frame(Ordinary.of(self._model).draws[:DRAWN], list(self.schema))

    @cached_property
    def _calm(self) -> Array:
        if self.held_out_surprise is not None and self.held_out_surprise.shape[1]:
            return self.held_out_surprise
        draws = self._model.sample(2048, np.random.default_rng(1))
        look = self.look(as_frame(draws, list(self.schema)))
        return np.stack([look.surprise, np.ones(len(look.surprise)), np.ones(len(look.surprise))])


def as_frame(rows: Any, names: list[str]) -> Any:
    """Rows that a model drew, as a frame of these columns; parts stand in the order of the columns."""
    import polars as pl

    parts = [np.asarray(part) for part in rows.parts.values()] if hasattr(rows, "parts") else [np.asarray(rows)]
    columns = [column for part in parts for column in (part.reshape(len(part), -1)).T]
    return laid_out(
        pl.DataFrame([pl.Series(name, column.tolist()) for name, column in zip(names, columns, strict=True)]), names
    )

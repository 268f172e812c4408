"""A mixture for the columns of a table: the shape of its parts and their number, each chosen and said why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.errors import DataError, DomainError, sentence
from likely.estimators.gaussian import GaussianDensity
from likely.estimators.ladder import joint
from likely.estimators.mixture import MixtureDensity
from likely.estimators.tables import take_rows

BY = ("bic", "held-out", "prior")
MOST = 10  # clusters that are tried
ROWS_A_PARAMETER = 3  # that a full covariance must have; with fewer, correlations are noise
CELLS, ROWS = 60_000, 5_000  # by which the number of clusters is chosen; all rows learn afterwards
RARE = 8  # times that a word must occur, so that it is hardly ever in one fold alone
SMALL = 1_000  # rows up to which every number is tried from several starts
PATIENCE = 3  # numbers of clusters that are tried beyond the one of the lowest BIC
QUICK: dict[str, Any] = {
    "tol": 1e-4,
    "max_iter": 100,
}  # of EM while numbers are compared: they differ by far more than that
SETTLED: dict[str, Any] = {"tol": 1e-6, "max_iter": 500}  # of EM for the mixture that is kept
FACTORS_FROM = 10  # columns from which on few causes may explain them
WORDS_OF = {
    "full": "a full covariance for each cluster", "diagonal": "columns independent within a cluster",
    "factors": "a few causes for all real columns", "": "columns independent within a cluster",
}  # fmt: skip
WHY = {
    "bic": "the lowest BIC", "held-out": "the best likelihood of rows not learnt from",
    "prior": "those that a sparse prior over the weights left", "told": "as you said",
}  # fmt: skip


class Found(NamedTuple):
    """A mixture learnt from all rows, and how its shape and number were chosen."""

    mixture: MixtureDensity
    shape: str  # "full", "diagonal", "factors" or "": no real columns
    bic: dict[str, float]  # of each shape that was tried, at its best number
    choice: Any  # a ComponentChoice; None where the number was told
    by: str  # "bic", "held-out", "prior" or "told"
    chosen_on: int  # rows that the choice was made on

    @property
    def why(self) -> str:
        """Number and shape in words."""
        k = self.mixture.model_.size
        words = f"{k} cluster{'s' * (k != 1)}: {WHY[self.by]}"
        if self.choice is not None:
            words += f" among {min(self.choice.numbers)} … {max(self.choice.numbers)}"
        return f"{words}; {self._why_shape}"

    @property
    def _why_shape(self) -> str:
        told = WORDS_OF[self.shape]
        others = {shape: bic for shape, bic in self.bic.items() if shape != self.shape}
        if not others:
            return told
        shape, bic = min(others.items(), key=lambda pair: pair[1])
        return f"{told} (BIC {bic - self.bic[self.shape]:,.0f} lower than {WORDS_OF[shape]})"


def shapes(kinds: Mapping[str, str], rows: float, X: Any = None) -> dict[str, Any]:
    """The densities of one cluster that are worth a try, by the shape of their real part.

    A full covariance needs rows for its parameters. With X, few causes (PPCA) are tried where it has too few of them.

    >>> list(shapes({"a": "real", "b": "real"}, 100)), list(shapes({"a": "real", "b": "real"}, 10))
    (['full', 'diagonal'], ['diagonal'])
    """
    real = [name for name, kind in kinds.items() if kind == "real"]
    d = len(real)
    if d == 0:
        return {"": joint(kinds, None)}
    if d == 1:
        return {"diagonal": joint(kinds, GaussianDensity("diagonal"))}
    found = {"diagonal": joint(kinds, GaussianDensity("diagonal"))}
    if rows >= ROWS_A_PARAMETER * d * (d + 3) / 2:
        return {"full": joint(kinds, GaussianDensity("full")), **found}
    if X is not None and d >= FACTORS_FROM:
        found["factors"] = joint(kinds, _few_causes(X.select(real).to_numpy(), rows))
    return found


def _few_causes(table: Array, rows: float) -> Any:
    """PPCA with the number of factors that serves one Gaussian best."""
    from likely.estimators.factors import PPCA

    return PPCA(int(PPCA().fit(table).model_.factors))


def discover(
    X: Any, kinds: Mapping[str, str], number: int | None = None, *, by: str = "bic", weight: Any = None,
    restarts: int = 3, most: int = MOST, seed: int = 0, density: bool = False,
) -> Found:  # fmt: skip
    """A mixture of the rows of a typed frame: of the shape with the lowest BIC, of `number` parts or as `by` says.

    With `density` the parts need not be clusters: few causes may explain many columns, and BIC alone is looked at.
    """
    if by not in BY:
        raise DomainError(sentence("discover", f"by must be one of {', '.join(BY)}", repr(by)))
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    there = float(X.height if w is None else (w > 0).sum())
    _refuse_more_than_rows(number, there)
    tried = shapes(kinds, there, X if density else None)
    settings: dict[str, Any] = {"restarts": restarts, "random_state": seed}
    if number is not None:
        kept = {**settings, **SETTLED}
        fits = {shape: MixtureDensity(part, number, **kept).fit(X, sample_weight=w) for shape, part in tried.items()}
        bics = {shape: bic(mixture, X, w) for shape, mixture in fits.items()}
        shape = min(bics, key=lambda s: bics[s])
        return Found(fits[shape], shape, bics, None, "told", int(there))
    some, w_some = _some(X, w, seed)
    shape, bics, choice = _chosen(tried, some, w_some, settings, min(most, int(there)), not density)
    mixture = MixtureDensity(tried[shape], int(choice.best[by]), **settings, **SETTLED).fit(X, sample_weight=w)
    return Found(mixture, shape, bics, choice, by, some.height)


def bic(mixture: MixtureDensity, X: Any, weight: Array | None = None) -> float:
    """−2 log-likelihood + parameters · log rows: lower is better   (Schwarz 1978)."""
    scores = mixture.score_samples(X)
    w = np.ones(len(scores)) if weight is None else weight
    counted = w > 0
    return float(-2 * (w[counted] @ scores[counted]) + mixture.model_.n_parameters * np.log(w.sum()))


def _chosen(tried: Mapping[str, Any], X: Any, w: Any, settings: Any, most: int, every: bool) -> tuple[str, Any, Any]:
    """The shape of the lowest BIC, that of each, and for the chosen one what every way would choose."""
    from likely.estimators.choosing import ComponentChoice, choose_components

    quick = {**settings, **QUICK, "restarts": settings["restarts"] if X.height <= SMALL else 1}
    curves = {shape: _bics(MixtureDensity(part, **quick), X, w, most) for shape, part in tried.items()}
    bics = {shape: float(np.min(curve)) for shape, curve in curves.items()}
    shape = min(bics, key=lambda s: bics[s])
    curve, numbers = curves[shape], list(range(1, len(curves[shape]) + 1))
    best, unknown = {"bic": int(np.argmin(curve)) + 1}, np.full(len(curve), np.nan)
    if not every:
        return shape, bics, ComponentChoice(numbers, curve, unknown, unknown, None, best)
    estimator = MixtureDensity(tried[shape], **{**quick, "restarts": min(quick["restarts"], 2)})
    choice = choose_components(estimator, without_rare_words(X), numbers, sample_weight=w, by=("held-out",))
    patient = MixtureDensity(tried[shape], **{**settings, **SETTLED})  # what does not pay for itself goes slowly
    emptied = choose_components(patient, X, [most], sample_weight=w, by=("prior",)).emptied
    assert emptied is not None  # it was asked for
    return shape, bics, replace(choice, bic=curve, emptied=emptied, best={**best, **choice.best, "prior": emptied})


def _bics(estimator: Any, X: Any, w: Any, most: int) -> Array:
    """BIC of 1, 2, … components, until it has risen for a while above its least."""
    from likely.estimators.choosing import choose_components

    found: list[float] = []
    while len(found) < most and len(found) <= int(np.argmin(found or [0.0])) + PATIENCE:
        found += choose_components(estimator, X, [len(found) + 1], sample_weight=w, by=("bic",)).bic.tolist()
    return np.array(found)


def without_rare_words(X: Any) -> Any:
    """A frame in which words that occur a few times only are missing: rows left out must hold nothing unheard of.

    >>> import polars as pl
    >>> without_rare_words(pl.DataFrame({"word": ["a"] * 8 + ["b"]}))["word"].null_count()
    1
    """
    import polars as pl

    often = {}
    for column in X.select(pl.col(pl.String)):
        counts = column.drop_nulls().value_counts(name="n")
        common = counts.filter(pl.col("n") >= RARE)[column.name]
        if 0 < len(common) < len(counts):
            often[column.name] = common.to_list()
    return X.with_columns(pl.when(pl.col(name).is_in(words)).then(pl.col(name)) for name, words in often.items())


def _some(X: Any, w: Any, seed: int) -> tuple[Any, Any]:
    """At most so many rows that the choice takes seconds, drawn evenly among those that count."""
    here = np.arange(X.height) if w is None else np.flatnonzero(w > 0)
    most = int(np.clip(CELLS // max(X.width, 1), 2_000, ROWS))
    if len(here) > most:
        here = np.sort(np.random.default_rng(seed).choice(here, most, replace=False))
    elif len(here) == X.height:
        return X, w
    return take_rows(X, here), None if w is None else w[here]


def _refuse_more_than_rows(number: int | None, rows: float) -> None:
    if not rows:
        raise DataError(sentence("clusters", "some row must have a weight above 0", "none"))
    if number is not None and number > rows:
        raise DataError(
            sentence("--components", f"there are {rows:.0f} rows to make clusters of", number, "ask for fewer")
        )

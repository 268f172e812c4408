"""A mixture for the columns of a table: the shape of its parts and their number, each chosen and said why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from likely.automl.candidates import joint
from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, by_caller, sentence
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.estimation.foreign_tables import take_rows
from likely.mixture.estimators.mixture_density import MixtureDensity

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
    "bic": "the lowest BIC", "held-out": "the best likelihood of rows not learned from",
    "prior": "what a sparse prior over the weights left", "told": "as you said",
}  # fmt: skip


class Found(NamedTuple):
    """A mixture learned from all rows, and how its shape and number were chosen."""

    mixture: MixtureDensity
    shape: str  # "full", "diagonal", "factors" or "": no real columns
    bic: dict[str, float]  # of each shape that was tried, at its best number
    choice: Any  # a ComponentChoice; None where the number was told
    by: str  # "bic", "held-out", "prior" or "told"
    chosen_on: int  # rows that the choice was made on
    most: int = MOST  # clusters that might have been tried

    @property
    def why(self) -> str:
        """Number and shape in words."""
        k = self.mixture.model_.size
        words = f"{k} cluster{'s' * (k != 1)}: {WHY[self.by]}"
        return f"{words}{self._among}; {self._why_shape}"

    @property
    def _among(self) -> str:
        """The numbers that were compared."""
        if self.choice is None:
            return ""
        if self.by == "prior":
            return f" of {self.most}"
        tried = max(self.choice.numbers)
        told = f" (of {self.most}: the search stops three beyond the least BIC)" if tried < self.most else ""
        return f" among 1 … {tried}{told}"

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
    from likely.decomposition.estimators.factor_analysis import PPCA

    return PPCA(int(PPCA().fit(table).model_.factors))


def discover(
    X: Any, kinds: Mapping[str, str], number: int | None = None, *, by: str = "bic", weight: Any = None,
    n_init: int = 3, most: int = MOST, seed: int = 0, density: bool = False, tell: Callable[[str], object] = str,
) -> Found:  # fmt: skip
    """A mixture of the rows of a typed frame: of the shape with the lowest BIC, of `number` parts or as `by` says.

    With `density` the parts need not be clusters: few causes may explain many columns, and BIC alone is looked at.
    `tell` hears of every number that was tried, in words.
    """
    if by not in BY:
        raise DomainError(sentence("discover", f"by must be one of {', '.join(BY)}", repr(by)))
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    there = float(X.height if w is None else (w > 0).sum())
    _refuse_more_than_rows(number, there)
    tried = shapes(kinds, there, X if density else None)
    settings: dict[str, Any] = {"n_init": n_init, "random_state": seed}
    if number is not None:
        kept = {**settings, **SETTLED}
        fits = {shape: MixtureDensity(part, number, **kept).fit(X, sample_weight=w) for shape, part in tried.items()}
        bics = {shape: bic(mixture, X, w) for shape, mixture in fits.items()}
        shape = min(bics, key=lambda s: bics[s])
        return Found(fits[shape], shape, bics, None, "told", int(there))
    some, w_some = _some(X, w, seed)
    most = min(most, some.n_unique())
    shape, bics, choice = _chosen(tried, some, w_some, settings, most, not density, tell)
    tell(f"learning {choice.best[by]} cluster{'s' * (choice.best[by] > 1)} from all rows")
    mixture = MixtureDensity(tried[shape], int(choice.best[by]), **settings, **SETTLED).fit(X, sample_weight=w)
    return Found(mixture, shape, bics, choice, by, some.height, most)


def bic(mixture: MixtureDensity, X: Any, weight: Array | None = None) -> float:
    """−2 log-likelihood + parameters · log rows: lower is better   (Schwarz 1978)."""
    scores = mixture.score_samples(X)
    w = np.ones(len(scores)) if weight is None else weight
    counted = w > 0
    return float(-2 * (w[counted] @ scores[counted]) + mixture.model_.n_parameters * np.log(w.sum()))


def _chosen(
    tried: Mapping[str, Any], X: Any, w: Any, settings: Any, most: int, every: bool, tell: Callable[[str], object]
) -> tuple[str, Any, Any]:
    """The shape of the lowest BIC, that of each, and for the chosen one what every way would choose."""
    quick = {**settings, **QUICK, "n_init": settings["n_init"] if X.height <= SMALL else 1}
    curves = {
        shape: _by_bic(MixtureDensity(part, **quick), X, w, most, tell=_about(shape, tell))
        for shape, part in tried.items()
    }
    bics = {shape: float(curve.bic.min()) for shape, curve in curves.items()}
    shape = min(bics, key=lambda s: bics[s])
    if not every:
        return shape, bics, curves[shape]
    tell(f"{WORDS_OF[shape]}: asking rows not learned from, and a sparse prior")
    return shape, bics, _every_way(tried[shape], X, w, settings, quick, most, curves[shape])


def _about(shape: str, tell: Callable[[str], object]) -> Callable[[str], object]:
    """Whoever tells of numbers need not know of which shape."""
    return lambda text: tell(f"{WORDS_OF[shape]}: {text}")


def _every_way(part: Any, X: Any, w: Any, settings: Any, quick: Any, most: int, by_bic: Any) -> Any:
    """BIC, rows left out and a sparse prior, each over all numbers up to the largest that one of them chose."""
    from likely.mixture.estimators.choose_components import choose_components

    numbers = range(1, most + 1)
    sparse = choose_components(MixtureDensity(part, **settings), X, numbers, sample_weight=w, by=("prior",))
    by_bic = _by_bic(MixtureDensity(part, **quick), X, w, most, sparse.best["prior"], by_bic)
    estimator = MixtureDensity(part, **{**quick, "n_init": min(quick["n_init"], 2)})
    held = choose_components(estimator, without_rare_words(X), by_bic.numbers, sample_weight=w, by=("held-out",))
    settled = held.converged["held-out"]
    return replace(
        by_bic,
        held_out=_padded(held.held_out, by_bic, np.nan),
        held_out_error=_padded(held.held_out_error, by_bic, np.nan),
        message=sparse.message[: len(by_bic.numbers)],
        emptied=sparse.emptied,
        best={**by_bic.best, **held.best, **sparse.best},
        converged={**by_bic.converged, **sparse.converged, "held-out": _padded(settled, by_bic, True)},
    )


def _padded(curve: Array, like: Any, beyond: Any) -> Array:
    """A curve over all numbers: rows without rare words may differ less, and then larger numbers were not tried."""
    return np.pad(curve, (0, len(like.numbers) - len(curve)), constant_values=beyond)


def _by_bic(
    estimator: Any, X: Any, w: Any, most: int, least: int = 1, known: Any = None, tell: Callable[[str], object] = str
) -> Any:
    """BIC of 1, 2, … components, at least so many, until it has risen for a while above its least."""
    from likely.mixture.estimators.choose_components import ComponentChoice, choose_components

    found: list[float] = [] if known is None else known.bic.tolist()
    settled: list[bool] = [] if known is None else known.converged["bic"].tolist()
    while len(found) < least or (len(found) < most and len(found) <= int(np.argmin(found)) + PATIENCE):
        one = choose_components(estimator, X, [len(found) + 1], sample_weight=w, by=("bic",))
        found, settled = [*found, float(one.bic[0])], [*settled, bool(one.converged["bic"][0])]
        tell(f"{len(found)} cluster{'s' * (len(found) > 1)}, BIC {found[-1]:,.1f}")
    numbers, unknown = list(range(1, len(found) + 1)), np.full(len(found), np.nan)
    return ComponentChoice(
        numbers, np.array(found), unknown, unknown, unknown, best={"bic": int(np.argmin(found)) + 1},
        converged={"bic": np.array(settled)},
    )  # fmt: skip


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
        whose = by_caller("--n-components", "n_components")
        raise DataError(sentence(whose, f"there are {rows:.0f} rows to make clusters of", number, "ask for fewer"))

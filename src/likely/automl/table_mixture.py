"""Mixture models for table columns: selection of the covariance shape and the number of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from likely.automl.candidates import joint
from likely.core.arrays import Array, check_option
from likely.core.errors import DataError, by_caller, sentence
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.estimation.foreign_tables import take_rows
from likely.mixture.estimators.mixture_density import MixtureDensity

ClusterCriterion = Literal["bic", "held-out", "prior"]  # how the number of clusters is chosen
MOST = 10  # maximum number of clusters
ROWS_A_PARAMETER = 3  # rows per parameter of a full covariance; with fewer, correlations are noise
CELLS, ROWS = 60_000, 5_000  # rows for choosing the number of clusters; the final fit uses all rows
RARE = 8  # minimum frequency of a level, so that it is hardly ever in one fold only
SMALL = 1_000  # number of rows up to which every number has several initializations
TRIED_BEYOND_BEST = 3  # numbers of clusters tried beyond the lowest BIC
QUICK: dict[str, Any] = {
    "tol": 1e-4,
    "max_iter": 100,
}  # EM tolerance while numbers are compared: they differ by far more
FINAL_FIT: dict[str, Any] = {"tol": 1e-6, "max_iter": 500}  # EM tolerance of the final mixture
FACTORS_FROM = 10  # number of columns from which few factors are tried
WORDS_OF = {
    "full": "a full covariance for each cluster", "diagonal": "columns independent within a cluster",
    "factors": "a few factors for all real columns", "": "columns independent within a cluster",
}  # fmt: skip
WHY = {
    "bic": "the lowest BIC", "held-out": "the best held-out likelihood",
    "prior": "the components left by a sparse prior of the weights", "given": "as requested",
}  # fmt: skip


class ChosenMixture(NamedTuple):
    """A mixture fitted to all rows, and how its shape and number were chosen."""

    mixture: MixtureDensity
    shape: str  # "full", "diagonal", "factors" or "": no real columns
    bic: dict[str, float]  # BIC of each shape, at its best number
    choice: Any  # a ComponentChoice; None if the number was given
    criterion: str  # "bic", "held-out", "prior" or "given"
    chosen_on: int  # number of rows used for the choice
    max_components: int = MOST  # maximum number of clusters

    @property
    def why(self) -> str:
        """Number and shape with the reason, as text."""
        k = self.mixture.model_.size
        words = f"{k} cluster{'s' * (k != 1)}: {WHY[self.criterion]}"
        return f"{words}{self._compared_numbers}; {self._why_shape}"

    @property
    def _compared_numbers(self) -> str:
        """The compared numbers, as text."""
        if self.choice is None:
            return ""
        if self.criterion == "prior":
            return f" of {self.max_components}"
        tried = max(self.choice.numbers)
        note = (
            f" (of {self.max_components}: the search stops three beyond the lowest BIC)"
            if tried < self.max_components
            else ""
        )
        return f" among 1 … {tried}{note}"

    @property
    def _why_shape(self) -> str:
        note = WORDS_OF[self.shape]
        others = {shape: bic for shape, bic in self.bic.items() if shape != self.shape}
        if not others:
            return note
        shape, bic = min(others.items(), key=lambda pair: pair[1])
        return f"{note} (BIC {bic - self.bic[self.shape]:,.0f} lower than {WORDS_OF[shape]})"


def shapes(kinds: Mapping[str, str], rows: float, X: Any = None) -> dict[str, Any]:
    """Candidate densities of one cluster, by the shape of the covariance of real columns.

    A full covariance needs rows for its parameters. With X, few factors (PPCA) are tried if there are too few rows.

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
        found["factors"] = joint(kinds, _ppca_of_best_rank(X.select(real).to_numpy(), rows))
    return found


def _ppca_of_best_rank(table: Array, rows: float) -> Any:
    """PPCA with the number of factors that is best for one Gaussian."""
    from likely.decomposition.estimators.factor_analysis import PPCA

    return PPCA(int(PPCA().fit(table).model_.factors))


def discover(
    X: Any, kinds: Mapping[str, str], number: int | None = None, *, criterion: ClusterCriterion = "bic",
    weight: Any = None, n_init: int = 3, max_components: int = MOST, seed: int = 0, density: bool = False,
    callback: Callable[[str], object] = str,
) -> ChosenMixture:  # fmt: skip
    """Mixture of the rows of a typed frame: the shape of lowest BIC, `number` components or as many as `criterion`
    says.

    With `density` the components need not be clusters: few factors are allowed, and BIC alone is used.
    `callback` is called with a text for every number that was tried.
    """
    check_option(criterion, ClusterCriterion, "TableClusterer", "criterion")
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    there = float(X.height if w is None else (w > 0).sum())
    _refuse_more_than_rows(number, there)
    tried = shapes(kinds, there, X if density else None)
    settings: dict[str, Any] = {"n_init": n_init, "random_state": seed}
    if number is not None:
        kept = {**settings, **FINAL_FIT}
        fits = {shape: MixtureDensity(part, number, **kept).fit(X, sample_weight=w) for shape, part in tried.items()}
        bics = {shape: bic(mixture, X, w) for shape, mixture in fits.items()}
        shape = min(bics, key=lambda s: bics[s])
        return ChosenMixture(fits[shape], shape, bics, None, "given", int(there))
    some, w_some = _random_subset(X, w, seed)
    most = min(max_components, some.n_unique())
    shape, bics, choice = _best_shape(tried, some, w_some, settings, most, not density, callback)
    callback(f"learning {choice.best[criterion]} cluster{'s' * (choice.best[criterion] > 1)} from all rows")
    mixture = MixtureDensity(tried[shape], int(choice.best[criterion]), **settings, **FINAL_FIT).fit(X, sample_weight=w)
    return ChosenMixture(mixture, shape, bics, choice, criterion, some.height, most)


def bic(mixture: MixtureDensity, X: Any, weight: Array | None = None) -> float:
    """BIC: −2 log-likelihood + parameters · log rows; lower is better   (Schwarz 1978)."""
    scores = mixture.score_samples(X)
    w = np.ones(len(scores)) if weight is None else weight
    counted = w > 0
    return float(-2 * (w[counted] @ scores[counted]) + mixture.model_.n_parameters * np.log(w.sum()))


def _best_shape(
    tried: Mapping[str, Any], X: Any, w: Any, settings: Any, most: int, every: bool, callback: Callable[[str], object]
) -> tuple[str, Any, Any]:
    """The shape of the lowest BIC, the BIC of each, and for the chosen one the result of every criterion."""
    quick = {**settings, **QUICK, "n_init": settings["n_init"] if X.height <= SMALL else 1}
    curves = {
        shape: _by_bic(MixtureDensity(part, **quick), X, w, most, callback=_with_shape(shape, callback))
        for shape, part in tried.items()
    }
    bics = {shape: float(curve.bic.min()) for shape, curve in curves.items()}
    shape = min(bics, key=lambda s: bics[s])
    if not every:
        return shape, bics, curves[shape]
    callback(f"{WORDS_OF[shape]}: held-out likelihood and sparse prior")
    return shape, bics, _all_criteria(tried[shape], X, w, settings, quick, most, curves[shape])


def _with_shape(shape: str, callback: Callable[[str], object]) -> Callable[[str], object]:
    """A progress callback that adds the shape."""
    return lambda text: callback(f"{WORDS_OF[shape]}: {text}")


def _all_criteria(part: Any, X: Any, w: Any, settings: Any, quick: Any, most: int, by_bic: Any) -> Any:
    """BIC, held-out likelihood and a sparse prior, each over all numbers up to the largest that one of them chose."""
    from likely.mixture.estimators.choose_components import choose_components

    numbers = range(1, most + 1)
    sparse = choose_components(MixtureDensity(part, **settings), X, numbers, sample_weight=w, criteria=("prior",))
    by_bic = _by_bic(MixtureDensity(part, **quick), X, w, most, sparse.best["prior"], by_bic)
    estimator = MixtureDensity(part, **{**quick, "n_init": min(quick["n_init"], 2)})
    held = choose_components(estimator, without_rare_words(X), by_bic.numbers, sample_weight=w, criteria=("held-out",))
    has_converged = held.converged["held-out"]
    return replace(
        by_bic,
        held_out=_padded(held.held_out, by_bic, np.nan),
        held_out_error=_padded(held.held_out_error, by_bic, np.nan),
        message_length=sparse.message_length[: len(by_bic.numbers)],
        n_components_mml=sparse.n_components_mml,
        best={**by_bic.best, **held.best, **sparse.best},
        converged={**by_bic.converged, **sparse.converged, "held-out": _padded(has_converged, by_bic, True)},
    )


def _padded(curve: Array, like: Any, beyond: Any) -> Array:
    """A curve over all numbers, padded with NaN for numbers that were not tried."""
    return np.pad(curve, (0, len(like.numbers) - len(curve)), constant_values=beyond)


def _by_bic(
    estimator: Any,
    X: Any,
    w: Any,
    most: int,
    least: int = 1,
    known: Any = None,
    callback: Callable[[str], object] = str,
) -> Any:
    """BIC of 1, 2, … components, at least so many, until it has increased for a while above its minimum."""
    from likely.mixture.estimators.choose_components import ComponentChoice, choose_components

    found: list[float] = [] if known is None else known.bic.tolist()
    has_converged: list[bool] = [] if known is None else known.converged["bic"].tolist()
    while len(found) < least or (len(found) < most and len(found) <= int(np.argmin(found)) + TRIED_BEYOND_BEST):
        one = choose_components(estimator, X, [len(found) + 1], sample_weight=w, criteria=("bic",))
        found, has_converged = [*found, float(one.bic[0])], [*has_converged, bool(one.converged["bic"][0])]
        callback(f"{len(found)} cluster{'s' * (len(found) > 1)}, BIC {found[-1]:,.1f}")
    numbers, unknown = list(range(1, len(found) + 1)), np.full(len(found), np.nan)
    return ComponentChoice(
        numbers, np.array(found), unknown, unknown, unknown, best={"bic": int(np.argmin(found)) + 1},
        converged={"bic": np.array(has_converged)},
    )  # fmt: skip


def without_rare_words(X: Any) -> Any:
    """A frame with rare levels as missing: held-out rows must not hold unknown levels.

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


def _random_subset(X: Any, w: Any, seed: int) -> tuple[Any, Any]:
    """A random subset of rows of positive weight, for a choice within seconds."""
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

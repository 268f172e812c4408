"""Comparison of models: posterior probabilities by evidence, cross-validated log scores, and their average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from likely.core.arrays import Array, Index, Rows, Seed
from likely.core.description import Description, DescriptionTable, counted
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior, Prior
from likely.core.warnings import warn, warnings_collected, warnings_discarded
from likely.distributions.stacks.stack import Stack
from likely.estimation.foreign_classifiers import checked_targets, weight_argument
from likely.estimation.foreign_tables import as_table, take_rows
from likely.estimation.input_validation import row_weights
from likely.estimation.parallel import in_threads
from likely.estimation.scikit_learn import check_random_state, clone, number_of_rows
from likely.metrics.confidence_intervals import Mean, mean, paired_difference
from likely.mixture.interpolation import interpolation_weights
from likely.mixture.mixture import Mixture
from likely.model_selection.comparable_models import KINDS, ConjugateModel, interleaved, kind_of
from likely.model_selection.splits import Copies, Split, make_splits

LEAST = -1e4  # log-densities below it count as this when weights are found: e^-10000 is 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models compared on the same rows; prints as a table, the best log score first.

    Parameters
    ----------
    names : tuple of str
        The models, in the order given.
    kind : {"density", "classifier", "regression"}
        What is scored: log p(x), log p(class | x) or log p(y | x).
    models : tuple
        The models fitted to all rows; None where the fit failed.
    log_evidence : array (m,)
        Log marginal likelihood of all rows; NaN where a model has none.
    probabilities : array (m,) or None
        Posterior probabilities of the models; None unless each that was fitted has an evidence.
    log_score : tuple of Mean
        Mean log score of held-out rows, in nats per row, with its interval; None where a fit failed.
    difference : tuple of Mean
        Mean paired difference of the log score to the best one, with its interval and standard error.
    weights : array (m,)
        Weights of the average: the probabilities, else those with the largest held-out likelihood (stacking).
    scores : array (m, n)
        Held-out log score of each tested row.
    failures : tuple of str
        Why a model could not be fitted or scored; empty where it could.
    seconds : tuple of float
        Time of the fits of each model.
    classes : array (C,), optional
        Class labels, of classifiers.
    notes : tuple of str
        What a reader of the table should know: warnings of the fits, weights that a model does not take, rows left out,
        and why there are no posterior probabilities.

    See Also
    --------
    compare : Compare models on the same rows.

    Examples
    --------
    >>> import likely as lk
    >>> coin = np.array([[1.0]] * 15 + [[0.0]] * 5)
    >>> found = lk.compare({"fair": lk.Beta(1e6, 1e6), "any": lk.Beta(1.0, 1.0)}, coin)
    >>> found.best, found.log_prob([[1.0]]).round(3)
    ('any', array([-0.395]))
    """

    names: tuple[str, ...]
    kind: str
    models: tuple[Any, ...]
    log_evidence: Array
    probabilities: Array | None
    log_score: tuple[Mean | None, ...]
    difference: tuple[Mean | None, ...]
    weights: Array
    scores: Array
    failures: tuple[str, ...]
    seconds: tuple[float, ...]
    classes: NDArray[Any] | None = None  # of classifiers
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The most probable model, or the one with the largest log score where there are no probabilities."""
        return self.names[self._order()[0] if self.probabilities is None else int(np.argmax(self.probabilities))]

    @property
    def table(self) -> DescriptionTable:
        """One line per model, the largest log score first."""
        head = (
            "model",
            "log evidence",
            "probability",
            "log score",
            "± s.e.",
            "below the best",
            "± s.e.",
            "weight",
            "s",
        )
        rows = [self._line(i) for i in self._order()]
        note = "log score: mean log density of held-out rows, nats per row; its differences are paired over rows"
        formats = {"log evidence": ".2f", "probability": ".4f", "log score": ".4f", "below the best": ".4f"}
        formats |= {"± s.e.": ".4f", "weight": ".3f", "s": ".2f"}
        return DescriptionTable("models", head, rows, formats, "models", note, most=None)

    def describe(self) -> Description:
        """What was compared, the table, and what is missing in it.

        Returns
        -------
        Description
            Facts, tables and notes; prints as text, and renders as HTML or Markdown.
        """
        n = f"{self.scores.shape[1]:,}"
        what = {"density": "log p(x)", "classifier": "log p(class | x)", "regression": "log p(y | x)"}[self.kind]
        facts = {"score": what, "tested rows": n, "best": self.best}
        failed = [f"{self.names[i]} failed: {why}" for i, why in enumerate(self.failures) if why]
        notes = [*failed, *self.notes]
        return Description("Comparison", facts=facts, tables=[self.table], notes=notes)

    def log_prob(self, X: Rows, y: Targets | None = None) -> Array:
        """Log-density of new rows under the average of the models: log Σ_k w_k p_k.

        Parameters
        ----------
        X : array-like (n, d), data frame or sequences
            Samples, one per row.
        y : array-like (n,), optional
            Class labels or targets; densities have none.

        Returns
        -------
        ndarray (n,)
            Log-density per row.
        """
        used = [i for i in range(len(self.names)) if self.weights[i] > 0]
        each = [KINDS[self.kind].score(self.models[i], X, self._targets(y)) for i in used]
        return np.asarray(logsumexp(np.stack(each, axis=1) + np.log(self.weights[used]), axis=1))

    def predictive(self, X: Rows | None = None) -> Any:
        """The model-averaged predictive distribution Σ_k w_k p_k.

        Parameters
        ----------
        X : array-like (n, d), data frame or sequences, optional
            Samples, one per row; densities take none.

        Returns
        -------
        Mixture or ndarray (n, C)
            Of densities a `Mixture`; of classifiers the class probabilities, in the order of `classes`; of regressions
            a stack of n mixtures, one per row of X.
        """
        used = [i for i in range(len(self.names)) if self.weights[i] > 0]
        weights = self.weights[used] / self.weights[used].sum()
        parts = [KINDS[self.kind].predictive(self.models[i], X, self.classes) for i in used]
        if self.kind == "classifier":
            return np.tensordot(weights, np.stack(parts), axes=1)
        if self.kind == "density":
            return Mixture(weights, Stack(tuple(parts)))
        return Mixture(np.tile(weights, (number_of_rows(X), 1)), interleaved(parts))

    def __str__(self) -> str:
        return str(self.describe())

    def _repr_html_(self) -> str:
        return self.describe().to_html()

    def _order(self) -> list[int]:
        means = [-np.inf if score is None else score.value for score in self.log_score]
        return sorted(range(len(means)), key=lambda i: (-means[i], bool(self.failures[i])))

    def _line(self, i: int) -> tuple[Any, ...]:
        score, difference = self.log_score[i], self.difference[i]
        evidence = None if np.isnan(self.log_evidence[i]) else float(self.log_evidence[i])
        probability = None if self.probabilities is None else float(self.probabilities[i])
        scored = (None, None) if score is None else (score.value, score.se)
        below = (None, None) if difference is None else (difference.value, difference.se)
        return (self.names[i], evidence, probability, *scored, *below, float(self.weights[i]), self.seconds[i])

    def _targets(self, y: Any) -> Any:
        if self.kind == "density":
            return None
        if y is None:
            raise DataError(sentence("Comparison.log_prob", f"y is needed to score a {self.kind}", "None"))
        return Targets(np.asarray(y), self.classes)


class Targets(NamedTuple):
    """Values of the target, and the classes of a classifier."""

    values: NDArray[Any]
    classes: NDArray[Any] | None = None

    def take(self, rows: Index) -> Targets:
        """Those of some rows."""
        return Targets(self.values[rows], self.classes)


def compare(
    models: Any, X: Rows, y: Targets | None = None, prior: AnyPrior | None = None, *, cv: Any = 5,
    groups: ArrayLike | None = None, time: Any = None, sample_weight: ArrayLike | None = None, random_state: Seed = 0,
    n_jobs: int | None = None,
) -> Comparison:  # fmt: skip
    """Compare classifiers, densities or regressions by evidence and by cross-validated log score.

    Posterior probabilities of models are p(M_k | D) ∝ p(M_k) p(D | M_k) with the evidence p(D | M_k), the marginal
    likelihood of all rows. A model has one if it is a conjugate prior, or an estimator whose fit gives `log_evidence_`
    (a density with a conjugate prior that was given; "weak" priors are scaled by the data and give none). A flat prior
    has no scale, and its evidence the unit of other data: such evidences give probabilities only where all models have
    the same flat parameters (`improper_prior_`), such as the constant of `BayesianLinearRegression`. An evidence that
    was maximized over α and β (type II) is that of the best prior of its family, and favors families with more of
    them ("ard"). Beside the evidence each model is fitted to the training rows of common folds and scored by the log
    density of the others.

    Parameters
    ----------
    models : sequence of models, or mapping of names to models
        Estimators, which are cloned, or conjugate priors such as `lk.priors.NormalInverseWishart`. All are densities of
        X (`score_samples`), classifiers (`predict_proba`), or regressions (`predictive(X)`, or
        `predict(X, return_std=True)`, taken as Gaussian).
    X : rows (n, d), data frame or sequences
        The data that all models are compared on.
    y : labels or numbers (n,), optional
        None: the models are densities. Rows of a regression whose target is NaN are left out; `notes` says how many.
    prior : array-like (m,) or mapping by name, optional
        Prior probabilities of the models, up to a factor; None: all equal.
    cv : int, float, splitter, "leave-one-out" or "time"
        How rows are split, as in `evaluate`.
    groups : array-like (n,), optional
        Group of each row; rows of one group are never on both sides of a split.
    time : array-like (n,), optional
        Times of the rows, by which `cv="time"` orders them; None: the order of the rows.
    sample_weight : array-like (n,), optional
        An integer weight of k is k copies of a row, which are trained on or tested together (see `evaluate`). Other
        weights are passed to models that take them; the others are fitted without, and `notes` says so.
    random_state : int, Generator or None
        Seed of the splits.
    n_jobs : int, optional
        Number of threads; None: one per core.

    Returns
    -------
    Comparison
        Evidences, probabilities and held-out scores of the models; prints as a table, the best first.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, chapter 3.4.

    Examples
    --------
    >>> import likely as lk
    >>> coin = np.array([[1.0]] * 15 + [[0.0]] * 5)
    >>> fair, any_coin = lk.Beta(1e6, 1e6), lk.Beta(1.0, 1.0)
    >>> lk.compare({"fair": fair, "any": any_coin}, coin).probabilities.round(3)
    array([0.237, 0.763])
    """
    named, X = _named(models), as_table(X)
    kind = kind_of([model for _, model in named], y)
    targets, labels, weight = _targets(kind, named, X, y, sample_weight)
    chances = _prior(prior, [name for name, _ in named])
    X, at, weight, groups, time, _ = Copies(X, np.arange(len(labels)), weight, groups, time).written_out(cv)
    labels, targets = labels[at], None if targets is None else targets.take(at)
    seed = int(check_random_state(random_state).randint(2**31))
    used, notes = _observed(kind, targets, weight, len(labels))
    splits = _splits(X, targets, labels, cv, weight, groups, time, seed, used)
    notes += _unweighted(named, None if weight is None else weight[used])
    everything = Split(used, np.empty(0, np.intp))
    tasks = [(model, split) for _, model in named for split in [everything, *splits]]
    done = in_threads(lambda task: _run(kind, *task, X, targets, weight), tasks, n_jobs)
    each = [done[i : i + 1 + len(splits)] for i in range(0, len(done), 1 + len(splits))]
    cluster = None if groups is None else np.unique(np.asarray(groups).astype(str), return_inverse=True)[1]
    return _compared(kind, named, each, splits, weight, cluster, chances, targets, notes)


def _observed(kind: str, y: Targets | None, weight: Array | None, n: int) -> tuple[Index, list[str]]:
    """The rows with weight and a target, and a note of those without a target."""
    weighted = np.ones(n, dtype=bool) if weight is None else weight > 0
    if kind != "regression" or y is None:
        return np.flatnonzero(weighted), []
    missing = np.isnan(y.values.reshape(n, -1)).all(axis=1) & weighted
    used = np.flatnonzero(weighted & ~missing)
    if not len(used):
        raise DataError(sentence("compare", "some rows must have a target", f"{n} of NaN"))
    count = int(missing.sum())
    told = f"{counted(count, 'row')} without a target {'was' if count == 1 else 'were'} left out"
    return used, [told] if count else []


def _unweighted(named: Sequence[tuple[str, Any]], weight: Array | None) -> list[str]:
    """A note of models that take no weights, where rows have unequal ones; it is a warning as well."""
    if weight is None or np.ptp(weight) == 0:
        return []
    names = [name for name, model in named if weight_argument(model) is None]
    if not names:
        return []
    told = f"{', '.join(names)}: fit takes no weights, so rows count alike in training; scores are weighted"
    warn(f"compare: {told}")
    return [told]


class _Done(NamedTuple):
    model: Any  # of all rows
    score: Array | None  # (k,) of the tested rows of a split
    seconds: float
    failure: str
    told: tuple[str, ...] = ()  # warnings of the fit


def _run(kind: str, model: Any, split: Split, X: Any, y: Targets | None, weight: Array | None) -> _Done:
    """A model fitted to the training rows of a split, and scored by its test rows, if there are any."""
    start = perf_counter()
    with warnings_collected() as told:
        try:
            learned, score = _fitted(model, X, y, weight, split.train), None
            if len(split.test):
                tested = take_rows(X, split.test)
                found = KINDS[kind].score(learned, tested, None if y is None else y.take(split.test))
                score = np.asarray(found, dtype=np.float64)
                if np.isnan(score).any():
                    raise DataError("the log score of a held-out row is not a number")
            failure = ""
        except Exception as error:  # the failure of one model does not stop the others
            learned, score = None, None
            failure = " ".join(str(error).split())[:200] or type(error).__name__
    warnings = tuple(dict.fromkeys(map(str, told)))
    return _Done(None if len(split.test) else learned, score, perf_counter() - start, failure, warnings)


def _fitted(model: Any, X: Any, y: Targets | None, weight: Array | None, rows: Index) -> Any:
    """A clone fitted to some rows, without a novelty threshold."""
    fresh = clone(model)
    if getattr(fresh, "novelty", None) is not None:
        fresh.set_params(novelty=None)
    given = (take_rows(X, rows),) + (() if y is None else (y.values[rows],))
    name = None if weight is None else weight_argument(fresh)
    weights = {} if name is None or weight is None else {name: weight[rows]}
    return fresh.fit(*given, **weights)


def _compared(
    kind: str, named: Sequence[tuple[str, Any]], each: Sequence[Sequence[_Done]], splits: Sequence[Split],
    weight: Array | None, cluster: Index | None, chances: Array, targets: Targets | None, notes: Sequence[str],
) -> Comparison:  # fmt: skip
    tested = np.concatenate([split.test for split in splits])
    failures = tuple(next((d.failure for d in done if d.failure), "") for done in each)
    able = [not failure for failure in failures]
    if not any(able):
        reasons = "; ".join(f"{name}: {why}" for (name, _), why in zip(named, failures, strict=True))
        raise DataError(sentence("compare", "at least one model must be fitted", reasons))
    scores = np.full((len(named), len(tested)), np.nan)
    for i, done in enumerate(each):
        if able[i]:
            scores[i] = np.concatenate([d.score for d in done[1:] if d.score is not None])
    w = None if weight is None else weight[tested]
    group = None if cluster is None else cluster[tested]
    log_score = tuple(_mean_score(scores[i], w) if able[i] else None for i in range(len(named)))
    best = max(np.flatnonzero(able), key=lambda i: (log_score[i].value, -i))  # type: ignore[union-attr]
    difference = tuple(
        paired_difference(-scores[i], -scores[best], w, group) if able[i] else None for i in range(len(named))
    )
    models = tuple(done[0].model if ok else None for done, ok in zip(each, able, strict=True))
    evidence = np.array([getattr(model, "log_evidence_", None) for model in models], dtype=np.float64)
    evidence[~np.array(able)] = np.nan
    names = tuple(name for name, _ in named)
    why = _incomparable(names, models, evidence, np.array(able))
    probabilities = None if why else _posterior(evidence, chances, np.array(able))
    seconds = tuple(sum(d.seconds for d in done) for done in each)
    weights = _stacking(scores, able, w) if probabilities is None else probabilities
    classes = None if targets is None else targets.classes
    notes = (*notes, *_warnings(names, each), *([why] if why else []))
    return Comparison(
        names, kind, models, evidence, probabilities, log_score, difference, weights, scores, failures, seconds,
        classes, notes,
    )  # fmt: skip


def _warnings(names: Sequence[str], each: Sequence[Sequence[_Done]]) -> list[str]:
    """Warnings of the fits to all rows, each once, with the models that gave it."""
    whose: dict[str, list[str]] = {}
    for name, done in zip(names, each, strict=True):
        for text in done[0].told:
            whose.setdefault(text, []).append(name)
    return [f"{', '.join(who)}: {text}" for text, who in whose.items()]


def _incomparable(names: Sequence[str], models: Sequence[Any], evidence: Array, able: NDArray[np.bool_]) -> str:
    """Why the evidences give no posterior probabilities; empty where they do."""
    none = [names[int(i)] for i in np.flatnonzero(able & np.isnan(evidence))]
    if none:
        which = f"{none[0]} has" if len(none) == 1 else f"{len(none)} models have"
        return f"no posterior probabilities: {which} no log evidence"
    flat = {names[i]: tuple(getattr(models[i], "improper_prior_", ())) for i in np.flatnonzero(able).tolist()}
    if len(set(flat.values())) > 1:
        some, other = (next(n for n, f in flat.items() if bool(f) is has) for has in (True, False))
        told = f"{some} has a flat prior of {flat[some][0]!r}, and {other} has not"
        return f"no posterior probabilities: {told}; the ratio of their evidences would depend on the unit of y"
    return ""


def _mean_score(score: Array, weight: Array | None) -> Mean:
    """The mean of a log score; that of a loss with its sign turned, so that −inf has an infinite error."""
    loss = mean(-score, weight)
    return Mean(-loss.value, -loss.high, -loss.low, loss.se, loss.se_folds)


def _posterior(evidence: Array, chances: Array, able: NDArray[np.bool_]) -> Array | None:
    """p(M_k | D) of the models that were fitted; None unless each has an evidence, or where all are impossible."""
    if np.isnan(evidence[able]).any():
        return None
    with np.errstate(divide="ignore"):
        joint = np.where(able, evidence, -np.inf) + np.log(chances)
    total = logsumexp(joint)
    if not np.isfinite(total):
        return None
    found = np.exp(joint - total)
    return found / found.sum()


def _stacking(scores: Array, able: Sequence[bool], weight: Array | None) -> Array:
    """The weights (m,) of an average with the largest held-out likelihood; 0 of models that failed."""
    out, used = np.zeros(len(scores)), np.flatnonzero(able)
    if len(used) == 1:
        out[used] = 1.0
        return out
    logs = scores[used].T
    top = logs.max(axis=1, keepdims=True)
    logs = np.where(np.isneginf(top), 0.0, np.maximum(logs - np.where(np.isneginf(top), 0.0, top), LEAST))
    with warnings_discarded():
        out[used] = interpolation_weights(_KnownScores(logs.shape[1]), logs, weight).weights
    return out


@dataclass(frozen=True)
class _KnownScores:
    """A stack of densities whose log-densities are the entries of a row."""

    members: int

    @property
    def dim(self) -> int:
        return self.members

    def log_prob(self, x: Any) -> Array:
        return np.array(x, dtype=np.float64)  # a copy: responsibilities are formed in place


# ------------------------------------------------------------------------------ input


def _named(models: Any) -> list[tuple[str, Any]]:
    """Names and models; a name that occurs twice gets a number."""
    if isinstance(models, Mapping):
        named = [(str(name), model) for name, model in models.items()]
    elif isinstance(models, Sequence) and not isinstance(models, str):
        named = [(" ".join(repr(model).split()), model) for model in models]
    else:
        expected = "models must be a list, or a mapping of names to models"
        raise DomainError(sentence("compare", expected, type(models).__name__))
    if not named:
        raise DomainError(sentence("compare", "at least one model is needed", "none"))
    seen: dict[str, int] = {}
    out = []
    for name, model in named:
        seen[name] = seen.get(name, 0) + 1
        model = ConjugateModel(model) if isinstance(model, Prior) else model
        out.append((name if seen[name] == 1 else f"{name} ({seen[name]})", model))
    return out


def _targets(
    kind: str, named: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Targets | None, Index, Array | None]:  # fmt: skip
    n = number_of_rows(X)
    if kind == "classifier":
        classes, labels, weight = checked_targets(X, y, sample_weight, named[0][1])
        return Targets(classes[labels], classes), labels, weight
    weight = None if sample_weight is None else row_weights(sample_weight, np.empty((n, 0)))
    if kind == "density":
        return None, np.zeros(n, dtype=np.intp), weight
    values = np.asarray(y, dtype=np.float64)
    if values.shape[:1] != (n,) or values.ndim > 2:
        raise ShapeError(sentence("compare", f"y must have one number per row ({n})", values.shape))
    return Targets(values), np.zeros(n, dtype=np.intp), weight


def _prior(prior: Any, names: list[str]) -> Array:
    """Prior probabilities (m,) of the models."""
    if isinstance(prior, Mapping):
        unknown = [name for name in prior if name not in names]
        missing = [name for name in names if name not in prior]
        if unknown or missing:
            raise DomainError(sentence("compare", "prior must have one number per model", (unknown or missing)[0]))
        prior = [prior[name] for name in names]
    chances = np.ones(len(names)) if prior is None else np.asarray(prior, dtype=np.float64)
    if chances.shape != (len(names),) or not (chances >= 0).all() or not 0 < chances.sum() < np.inf:
        expected = f"prior must be {len(names)} numbers from 0 on, one per model, not all 0"
        raise DomainError(sentence("compare", expected, prior))
    return chances / chances.sum()


def _splits(
    X: Any, y: Targets | None, labels: Index, cv: Any, weight: Array | None, groups: Any, time: Any, seed: int,
    used: Index,
) -> list[Split]:  # fmt: skip
    """Common splits; of a regression equal rows are told apart by their y."""
    target = y.values if y is not None and y.classes is None else None
    splits = make_splits(X, labels, cv, weight=weight, groups=groups, time=time, seed=seed, target=target)
    splits = [Split(*(part[np.isin(part, used)] for part in split)) for split in splits]
    splits = [split for split in splits if len(split.test) and len(split.train)]
    if not splits:
        raise DataError(sentence("compare", "some rows must be left for testing", "none"))
    return splits

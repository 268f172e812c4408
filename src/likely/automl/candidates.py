"""Models from simple to rich, built for the columns of a table: who stands on the ladder that `likely fit` climbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sklearn.base import clone

from likely.classify.bayes import BayesClassifier
from likely.classify.k_neighbors import KNeighborsClassifier
from likely.classify.nearest_centroid import NearestCentroidClassifier
from likely.classify.prior_classifier import PriorClassifier
from likely.core.errors import DomainError, by_caller, sentence
from likely.density.estimators.kernel_density import KernelDensity
from likely.density.pairwise_distances import BY_COLUMNS
from likely.distributions.estimators.categorical_density import CategoricalDensity
from likely.distributions.estimators.chow_tree_density import ChowTreeDensity
from likely.distributions.estimators.laplace_density import LaplaceDensity
from likely.distributions.estimators.poisson_density import PoissonDensity
from likely.distributions.estimators.product_density import ProductDensity
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.student_t.estimator import StudentTDensity
from likely.mixture.estimators.mixture_density import MixtureDensity

Kinds = Mapping[str, str]  # column → "real", "count", "binary" or "category"

WORDS = ("binary", "category")

PATIENCE: dict[str, Any] = {
    "max_iter": 100,
    "tol": 1e-4,
}  # of EM: decisions settle long before the last digits of the likelihood do

# key, name, what it assumes of the numbers of a class, their density; from simple to rich
SHAPES: tuple[tuple[str, str, str, Any], ...] = (
    ("spherical", "spherical Gaussian", "columns independent, with one variance", GaussianDensity("spherical")),
    ("diagonal", "diagonal Gaussian", "columns independent and Gaussian", GaussianDensity("diagonal")),
    (
        "diagonal-t", "diagonal, t predictive", "columns independent, means and variances integrated out",
        GaussianDensity("diagonal", predictive="all"),
    ),
    (
        "laplace", "Laplace columns", "columns independent, with medians and mean absolute deviations",
        LaplaceDensity(),
    ),
    ("pooled", "pooled Gaussian", "one full covariance for all classes", GaussianDensity("pooled")),
    (
        "pooled-mean", "pooled, mean integrated out", "one full covariance for all classes, uncertain means",
        GaussianDensity("pooled", predictive="mean"),
    ),
    (
        "interpolated", "interpolated Gaussian", "each class's covariance moved toward the pooled one",
        GaussianDensity("interpolated"),
    ),
    (
        "emphasized", "diagonal-emphasized Gaussian", "each class's covariance moved toward its diagonal",
        GaussianDensity("emphasized"),
    ),
    ("full", "full Gaussian", "a full covariance for each class", GaussianDensity("full")),
    (
        "full-t", "full, t predictive", "a full covariance for each class, mean and covariance integrated out",
        GaussianDensity("full", predictive="all"),
    ),
    (
        "student-t", "robust t",
        "a t distribution of four degrees of freedom per class, in which rows far out count little",
        StudentTDensity("full", dof=4.0, **PATIENCE),  # learning the degrees takes seven times as long
    ),
)  # fmt: skip
WHOLE = ("full-t",)  # shapes that need complete rows
INDEPENDENT = ("diagonal", "diagonal-t")  # naive Bayes where all columns are numbers
LONE = ("spherical", *INDEPENDENT, "laplace", "student-t")  # shapes that differ where there is one column only
AS_NUMBERS = ("pooled", "interpolated", "emphasized", "full")  # shapes that are tried with counts among the numbers
FULL = ("pooled", "pooled-mean", "interpolated", "emphasized", "full", "full-t", "student-t")  # d × d covariances
WIDE = 1000  # columns: a covariance of so many is learned in a second
MOST_LEVELS, ALL_LEVELS = 50, 500  # of a column, and of all, that a tree takes: beyond, pairs are mostly never seen
FEW_LEVELS = 20  # values up to which whole numbers may be levels

# key, name, what it assumes of the numbers of a class, shape of a part, parts, whether all classes share them
MIXTURES: tuple[tuple[str, str, str, str, int, bool], ...] = (
    (
        "mixture-diagonal-2", "mixture of two diagonal Gaussians",
        "each class of two kinds of rows, columns independent within one", "diagonal", 2, False,
    ),
    (
        "mixture-diagonal-4", "mixture of four diagonal Gaussians",
        "each class of four kinds of rows, columns independent within one", "diagonal", 4, False,
    ),
    (
        "mixture-full-2", "mixture of two full Gaussians",
        "each class of two kinds of rows, a full covariance each", "full", 2, False,
    ),
    (
        "mixture-tied", "mixture of eight Gaussians for all classes",
        "eight kinds of rows that the classes share, each in its own proportions", "full", 8, True,
    ),
    (
        "mixture-full-4", "mixture of four full Gaussians",
        "each class of four kinds of rows, a full covariance each", "full", 4, False,
    ),
)  # fmt: skip
TWINS = {
    "diagonal": "naive-bayes", "diagonal-t": "naive-bayes-t", "naive-bayes": "diagonal", "naive-bayes-t": "diagonal-t",
}  # one model under two names, where a ladder has one of them only  # fmt: skip
_MIXED = "counts beside columns of words, and two columns of both"
NAMES: dict[str, str] = {  # of all models, the same for every table → what a table must have for it
    "frequencies": "nothing",
    "nearest-mean": "numbers alone",
    "naive-bayes": "nothing",
    "naive-bayes-t": "nothing",
    "naive-bayes-levels": f"counts of at most {FEW_LEVELS} values",
    "chow-tree": f"two columns of words, with at most {MOST_LEVELS} levels each",
    **{key: "nothing" if key in INDEPENDENT else "two columns of numbers" for key, *_ in SHAPES},
    **{f"{key}-counts": _MIXED for key in (INDEPENDENT[0], *AS_NUMBERS)},
    **{key: "columns of numbers, and enough rows of each class for its parameters" for key, *_ in MIXTURES},
    "parzen": "columns of numbers, and some rows of each class for each",
    "neighbors": "numbers alone, and two rows of each class",
    **dict.fromkeys(("boosting", "forest", "logistic"), "--baselines"),
}
ROWS_A_PARAMETER = 2  # that a class must have for each number that its mixture learns; fewer only learn the noise
WORK = (
    10_000_000  # of one model in all splits together, about fifteen seconds of a core; who needs more waits to be named
)


@dataclass(frozen=True)
class Candidate:
    """One model of the ladder: an estimator that was not fitted, and how simple it is."""

    key: str  # what --models calls it
    name: str
    what: str  # what it assumes, in a sentence
    rank: int  # 0 is the simplest
    estimator: Any
    rival: bool = False  # for comparison: cannot be written to a model file
    work: float = 0.0  # that a row makes, about 1.5 µs each; closed forms make none to speak of
    carried: bool = True  # False where the rows are far too few for its covariances


def model_candidates(
    kinds: Kinds, rules: Mapping[str, Any] | None = None, distinct: Mapping[str, int] | None = None,
    rows: Sequence[float] | None = None, levels: Mapping[str, Sequence[str]] | None = None,
) -> list[Candidate]:  # fmt: skip
    """The models that suit columns of these kinds, simplest first; `rules` are settings of every classifier.

    Columns of words have a distribution of levels each, independent of the rest. Numbers have a joint Gaussian of some
    shape. Counts are Poisson, and numbers or levels in the models that say so: small whole numbers may be grades or
    codes. `distinct` says how many values each column has, `rows` how many training rows each class has: where these
    are enough for the parameters, mixtures, Parzen windows and nearest neighbors stand on top. `levels` are the words
    of columns of words: with two such columns or more, these may lean on each other along a tree.

    >>> [candidate.key for candidate in model_candidates({"size": "real", "weight": "real"})][:4]
    ['frequencies', 'nearest-mean', 'spherical', 'diagonal']
    >>> [candidate.key for candidate in model_candidates({"size": "real", "color": "category"})]
    ['frequencies', 'naive-bayes', 'naive-bayes-t']
    """
    rules = dict(rules or {})
    found = [("frequencies", "class frequencies", "no look at the columns", PriorClassifier(**rules))]
    found += _nearest_mean(kinds, rules)
    found += [
        (key, name, what, BayesClassifier(density, **rules))
        for key, name, what, density in chain(
            _densities(kinds, distinct or {}, levels or {}), _mixtures(kinds, rows), _windows(kinds, rows)
        )
    ]
    found += _neighbors(kinds, rows, rules)
    return [
        Candidate(
            key, name, f"{what[0].upper()}{what[1:]}.", i, model,
            work=_work(key, kinds, rows or ()), carried=_carried(key, kinds, rows),
        )
        for i, (key, name, what, model) in enumerate(found)
    ]  # fmt: skip


def arranged(kinds: Kinds) -> list[str]:
    """Columns in the order of the ladder's models: numbers, counts, words.

    >>> arranged({"color": "category", "visits": "count", "size": "real"})
    ['size', 'visits', 'color']
    """
    return [*_of(kinds, "real"), *_of(kinds, "count"), *_of(kinds, *WORDS)]


def chosen_candidates(candidates: Sequence[Candidate], models: str) -> list[Candidate]:
    """The candidates that `--models` asks for: "all", or names (see `NAMES`) with commas between them.

    Names are the same for every table. One that does not apply to this table is left out (`not_applicable` tells of
    it); where none is left, that is an error.
    """
    if models == "all":
        return list(candidates)
    keys, known = _asked(models), [candidate.key for candidate in candidates]
    unknown = [key for key in keys if key not in NAMES and key not in known]
    if unknown or not keys:
        got = repr(unknown[0] if unknown else models)
        raise DomainError(sentence(by_caller("--models", "models"), f"names of models are {', '.join(NAMES)}", got))
    wanted = {_known_as(key, known) for key in keys}
    if not wanted & set(known):
        expected = f"for these columns there are {', '.join(known)}"
        raise DomainError(sentence(by_caller("--models", "models"), expected, models, _needs(known, models)))
    return [candidate for candidate in candidates if candidate.key in wanted]


def same_model(candidates: Sequence[Candidate], models: str) -> str:
    """Which models that `--models` names are compared under another name, because here both are one; else empty.

    >>> same_model(model_candidates({"size": "real", "weight": "real"}), "naive-bayes,pooled")
    'All columns are numbers, so naive-bayes is the same model as diagonal: it is compared as diagonal.'
    """
    known = [candidate.key for candidate in candidates]
    pairs = [(key, _known_as(key, known)) for key in _asked(models) if _known_as(key, known) in known]
    why = {"diagonal": "All columns are numbers", "naive-bayes": "The table has columns of words"}
    told = [
        f"{why[other.removesuffix('-t')]}, so {key} is the same model as {other}: it is compared as {other}."
        for key, other in pairs if key != other
    ]  # fmt: skip
    return " ".join(told)


def not_applicable(candidates: Sequence[Candidate], models: str) -> str:
    """Which models that `--models` names do not apply to this table, and what each needs; empty where all do.

    >>> not_applicable(model_candidates({"size": "real", "color": "category"}), "naive-bayes,diagonal,neighbors")
    'Left out, not for this table: neighbors needs numbers alone, and two rows of each class.'
    """
    told = _needs([candidate.key for candidate in candidates], models)
    return f"Left out, not for this table: {told}." if told else ""


def _needs(known: Sequence[str], models: str) -> str:
    """What those of the models need that are not among the known keys."""
    left = [key for key in _asked(models) if key in NAMES and _known_as(key, known) not in known]
    return "; ".join(f"{key} needs {NAMES[key]}" for key in left)


def _asked(models: str) -> list[str]:
    """Names with commas between them, each once, in the order of the ladder; unknown names first."""
    keys = dict.fromkeys(key.strip() for key in models.split(",") if key.strip())
    order = list(NAMES)
    return sorted(keys, key=lambda key: order.index(key) if key in NAMES else -1)


def _known_as(key: str, known: Sequence[str]) -> str:
    """The key of a model in this ladder: diagonal Gaussians of numbers and naive Bayes are one model."""
    return key if key in known else TWINS.get(key, key)


def affordable(candidates: Sequence[Candidate], rows: float) -> tuple[list[Candidate], str]:
    """The candidates without those that would take longer than all others together, and words on who was left out.

    `rows` are the training rows of all splits together.

    >>> candidates = model_candidates({"a": "real", "b": "real"}, rows=[1e6, 1e6])
    >>> kept, words = affordable(candidates, 8e6)
    >>> [candidate.key for candidate in candidates if candidate not in kept][:1], words[:9]
    (['student-t'], 'Left out,')
    """
    wide = [candidate for candidate in candidates if not candidate.carried]
    slow = [candidate for candidate in candidates if candidate.work * rows > WORK and candidate.carried]
    reasons = {
        "so few rows cannot carry full covariances of so many columns": wide,
        "on so many rows they take longer than all other models together": slow,
    }
    words = [
        f"Left out, for {why}: --models {','.join(candidate.key for candidate in left)} compares them."
        for why, left in reasons.items() if left
    ]  # fmt: skip
    return [candidate for candidate in candidates if candidate not in wide and candidate not in slow], " ".join(words)


def without_gaps(candidates: Sequence[Candidate], kinds: Kinds, X: Any) -> tuple[list[Candidate], str]:
    """The candidates that take rows X, a Polars frame; a sentence says which were left out for missing values.

    A full covariance cannot be integrated out in closed form where entries are missing.

    >>> import polars as pl
    >>> kinds = {"a": "real", "b": "real"}
    >>> candidates = model_candidates(kinds)
    >>> kept, words = without_gaps(candidates, kinds, pl.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]}))
    >>> [candidate.key for candidate in candidates if candidate not in kept], words[:9]
    (['full-t'], 'Left out,')
    """
    numbers = _numbers(kinds)[0]
    if not any(X[name].cast(float).fill_nan(None).null_count() for name in numbers):
        return list(candidates), ""
    kept = [candidate for candidate in candidates if candidate.key not in WHOLE]
    names = ", ".join(candidate.name for candidate in candidates if candidate.key in WHOLE)
    return kept, f"Left out, for it needs rows without missing numbers: {names}." if names else ""


def joint(kinds: Kinds, numbers: Any) -> Any:
    """The density of a whole row: `numbers` for the real columns together, counts Poisson, words level by level.

    >>> type(joint({"size": "real", "weight": "real"}, GaussianDensity("full"))).__name__
    'GaussianDensity'
    """
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    if not counts and not words:
        return numbers
    return _product(real, numbers, _parts(counts, words, predictive=False))


# ------------------------------------------------------------------------- densities


def _mixtures(kinds: Kinds, rows: Sequence[float] | None) -> Iterator[tuple[str, str, str, Any]]:
    """A mixture of Gaussians for the numbers of each class, times the distributions of counts and words."""
    numbers, counts, words = _numbers(kinds)
    if not numbers or rows is None:
        return
    for key, name, what, shape, size, tied in MIXTURES:
        if (shape == "full" and len(numbers) == 1) or not _learnable(len(numbers), shape, size, tied, rows):
            continue
        mixture = MixtureDensity(
            GaussianDensity(shape), size, tie="all" if tied else None, random_state=0, **PATIENCE
        )  # fmt: skip
        others = _parts(counts, words, predictive=False)
        told = f"numbers: {what}; words independent" if others else what
        whole = _product(numbers, mixture, others).set_params(**PATIENCE) if others else mixture
        yield key, name, told, whole


def _windows(kinds: Kinds, rows: Sequence[float] | None) -> Iterator[tuple[str, str, str, Any]]:
    """A window on every row, for the numbers of a class that has some rows for each."""
    numbers, counts, words = _numbers(kinds)
    if not numbers or rows is None or min(rows) < ROWS_A_PARAMETER * len(numbers):
        return
    what, others = "any smooth density: a Gaussian window on every row", _parts(counts, words, predictive=False)
    told = f"numbers: {what}; words independent" if others else what
    yield "parzen", "Parzen windows", told, _product(numbers, KernelDensity(), others) if others else KernelDensity()


def _nearest_mean(kinds: Kinds, rules: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """Numbers alone: a distance to words would be made up."""
    if not _of(kinds, *WORDS):
        what = "columns independent, each with one variance for all classes"
        yield "nearest-mean", "nearest mean", what, NearestCentroidClassifier("scaled", class_prior=None, **rules)


def _neighbors(
    kinds: Kinds, rows: Sequence[float] | None, rules: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, Any]]:
    """Numbers alone, as above, and some rows of each class to be near to."""
    if not _of(kinds, *WORDS) and rows is not None and min(rows) >= ROWS_A_PARAMETER:
        what = "rows that are near in all columns are of the same class"
        yield "neighbors", "nearest neighbors", what, KNeighborsClassifier("leave-one-out", "scaled", **rules)


def _carried(key: str, kinds: Kinds, rows: Sequence[float] | None) -> bool:
    """Whether there are two rows for each column of a full covariance of more than a thousand columns.

    With fewer, a covariance is almost all prior, and d³ operations for each class and split take minutes.
    """
    d = len(_of(kinds, "real", "count"))
    return key.removesuffix("-counts") not in FULL or d <= WIDE or rows is None or sum(rows) >= ROWS_A_PARAMETER * d


def _work(key: str, kinds: Kinds, rows: Sequence[float]) -> float:
    """What a row costs, by parts and columns; measured on tables of 150 to 8,000 rows in 2 to 20 columns."""
    d = len(_of(kinds, "real", "count"))
    if key == "student-t":
        return 2 + d / 4
    if key == "parzen":
        return _work_of_windows(max(rows), d)
    if key == "neighbors":  # in few columns a tree finds them; measured on 2,000 to 32,000 rows in 2 to 60 columns
        return 20.0 if d <= 4 else 60 + sum(rows) / 1000
    shapes = {k: (shape, size) for k, _, _, shape, size, _ in MIXTURES}
    if key not in shapes:
        return 0.0
    shape, size = shapes[key]
    return float(size * (d + (d * d / 20 if shape == "full" else 0)))


def _work_of_windows(m: float, d: int) -> float:
    """What a row of a class of m costs: a tree leaves out most of them in few columns, else all pairs are formed once.

    Measured on 200 to 64,000 rows per class in 1 to 6 columns, and 200 to 10,000 in 8 to 256: right to a factor of two.
    """
    return float(m**0.5 * (1.3 + d / 8) if d <= BY_COLUMNS else 10 + m * (0.06 + d / 8000))


def _learnable(d: int, shape: str, size: int, tied: bool, rows: Sequence[float]) -> bool:
    """Whether every class has enough rows for its own parameters, and all together for those that they share."""
    part = 2 * d if shape == "diagonal" else d * (d + 3) // 2
    own, shared = (size - 1, size * part) if tied else (size * part + size - 1, 0)
    return min(rows) >= ROWS_A_PARAMETER * own and sum(rows) >= ROWS_A_PARAMETER * shared


def _densities(
    kinds: Kinds, distinct: Mapping[str, int], levels: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str, str, Any]]:
    """Key, name, assumption and density of each model that looks at the columns."""
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    if counts or words:
        yield "naive-bayes", "naive Bayes", "columns independent, each with its own distribution", _naive(kinds)
        yield (
            "naive-bayes-t", "naive Bayes, predictive",
            "columns independent, every distribution's parameters integrated out",
            _naive(kinds, predictive=True),
        )  # fmt: skip
    if counts and all(distinct.get(name, FEW_LEVELS + 1) <= FEW_LEVELS for name in counts):
        graded = {name: "category" if kind == "count" else kind for name, kind in kinds.items()}
        what = "columns independent; whole numbers are levels without an order"
        yield "naive-bayes-levels", "naive Bayes, counts as levels", what, _naive(_in_order(graded, kinds))
    yield from _tree(kinds, levels)
    if not words:
        yield from _gaussians(real + counts, [], [])
        return
    if len(real) > 1:
        yield from _gaussians(real, counts, words)
    if counts:
        for key, name, what, density in _gaussians(real + counts, [], words, INDEPENDENT[:1]):
            if (key in AS_NUMBERS and len(real + counts) > 1) or key in INDEPENDENT:
                yield f"{key}-counts", f"{name}, counts as numbers", f"{what}; counts are among the numbers", density


def _tree(kinds: Kinds, levels: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str, Any]]:
    """Words that lean on each other, numbers and counts independent of all."""
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    sizes = [len(levels.get(word, ())) for word in words]
    if len(words) < 2 or 0 in sizes or max(sizes) > MOST_LEVELS or sum(sizes) > ALL_LEVELS:
        return
    tree = (_apart("words", list(kinds)), ChowTreeDensity(words=[list(levels[word]) for word in words]), words)
    what = "words lean on each other along a tree" + ("; numbers independent" if real or counts else "")
    others = [*_parts(counts, [], predictive=False), tree]
    yield "chow-tree", "tree of dependences", what, _product(real, GaussianDensity("diagonal"), others)


def _gaussians(
    numbers: list[str], counts: list[str], words: list[str], more: tuple[str, ...] = ()
) -> Iterator[tuple[str, str, str, Any]]:
    """A joint distribution of each shape for the numbers, times the distributions of counts and words."""
    for key, name, what, density in SHAPES:
        if not counts and not words:
            if key in LONE or len(numbers) > 1:
                yield key, name, what, clone(density)
        elif key in more or key not in INDEPENDENT:  # that is naive Bayes
            others = _parts(counts, words, predictive=key == "full-t")
            whole = _product(numbers, clone(density), others)
            whole = whole.set_params(**PATIENCE) if key == "student-t" else whole
            yield key, name, f"numbers: {what}; words independent", whole


def _naive(kinds: Kinds, predictive: bool = False) -> Any:
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    gaussian = GaussianDensity("diagonal", predictive="all" if predictive else None)
    return _product(real, gaussian, _parts(counts, words, predictive))


def _parts(counts: list[str], words: list[str], predictive: bool) -> list[tuple[str, Any, list[str]]]:
    poisson = [(_apart("counts", [*counts, *words]), PoissonDensity(predictive=predictive), counts)] if counts else []
    return poisson + [(word, CategoricalDensity(predictive=predictive), [word]) for word in words]


def _product(numbers: list[str], gaussian: Any, others: list[tuple[str, Any, list[str]]]) -> Any:
    taken = [name for name, _, _ in others]
    first = [(_apart("numbers", taken), gaussian, numbers)] if numbers else []
    return ProductDensity([*first, *others])


def _apart(name: str, taken: Sequence[str]) -> str:
    """A part's name that no column has."""
    while name in taken:
        name += "_"
    return name


def _in_order(levels: dict[str, str], kinds: Kinds) -> dict[str, str]:
    """Kinds in the order of the columns, so that parts stand as the columns do."""
    return {name: levels[name] for name in arranged(kinds)}


def _numbers(kinds: Kinds) -> tuple[list[str], list[str], list[str]]:
    """Columns taken together as numbers, counts apart, and words: counts are numbers where there are no words."""
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    return (real, counts, words) if words else (real + counts, [], [])


def _of(kinds: Kinds, *wanted: str) -> list[str]:
    return [name for name, kind in kinds.items() if kind in wanted]

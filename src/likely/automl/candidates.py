"""Candidate classifiers for the columns of a table, from simple to complex, compared by `likely fit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from likely.automl.table_classifier import WORDS
from likely.classify.bayes import BayesClassifier
from likely.classify.k_neighbors import KNeighborsClassifier
from likely.classify.nearest_centroid import NearestCentroidClassifier
from likely.classify.prior_classifier import PriorClassifier
from likely.core.errors import DomainError, by_caller, sentence
from likely.density.estimators.kernel_density import KernelDensity
from likely.density.pairwise_distances import BY_COLUMNS
from likely.distributions.estimators.categorical_densities import CategoricalDensity, ChowLiuTreeDensity
from likely.distributions.estimators.continuous_densities import LaplaceDensity
from likely.distributions.estimators.count_densities import PoissonDensity
from likely.distributions.estimators.product_density import ProductDensity
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.student_t.estimator import StudentTDensity
from likely.estimation.scikit_learn import clone
from likely.mixture.estimators.mixture_density import MixtureDensity

Kinds = Mapping[str, str]  # column → "real", "count", "binary" or "category"

FIT_SETTINGS: dict[str, Any] = {
    "max_iter": 100,
    "tol": 1e-4,
}  # EM tolerance: decisions converge long before the last digits of the likelihood

# key, name, assumption on the numeric columns of a class, their density; from simple to complex
SHAPES: tuple[tuple[str, str, str, Any], ...] = (
    ("spherical", "spherical Gaussian", "columns independent, with one variance", GaussianDensity("spherical")),
    ("diagonal", "diagonal Gaussian", "columns independent and Gaussian", GaussianDensity("diagonal")),
    (
        "diagonal-t", "diagonal, t predictive", "columns independent, posterior predictive of means and variances",
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
        "shrunk-pooled", "Gaussian shrunk to pooled", "each class's covariance shrunk to the pooled one",
        GaussianDensity("shrunk-pooled"),
    ),
    (
        "shrunk-diagonal", "Gaussian shrunk to diagonal", "each class's covariance shrunk to its diagonal",
        GaussianDensity("shrunk-diagonal"),
    ),
    ("full", "full Gaussian", "a full covariance for each class", GaussianDensity("full")),
    (
        "full-t", "full, t predictive", "a full covariance for each class, mean and covariance integrated out",
        GaussianDensity("full", predictive="all"),
    ),
    (
        "student-t", "robust t",
        "a t distribution of four degrees of freedom per class, robust against outliers",
        StudentTDensity("full", dof=4.0, **FIT_SETTINGS),  # estimating the degrees of freedom takes seven times as long
    ),
)  # fmt: skip
WHOLE = ("full-t",)  # covariance shapes that need complete rows
INDEPENDENT = ("diagonal", "diagonal-t")  # equal to naive Bayes if all columns are numbers
LONE = ("spherical", *INDEPENDENT, "laplace", "student-t")  # shapes that differ with a single column
AS_NUMBERS = ("pooled", "shrunk-pooled", "shrunk-diagonal", "full")  # shapes compared with counts among the numbers
FULL = ("pooled", "pooled-mean", "shrunk-pooled", "shrunk-diagonal", "full", "full-t", "student-t")  # d × d covariances
WIDE = 1000  # number of columns whose covariance is estimated within a second
MOST_LEVELS, ALL_LEVELS = 50, 500  # levels per column, and in total, for a tree: beyond, most pairs are never observed
FEW_LEVELS = 20  # number of values up to which integers may be levels

# key, name, assumption on the numeric columns of a class, covariance shape, components, whether classes share them
MIXTURES: tuple[tuple[str, str, str, CovarianceKind, int, bool], ...] = (
    (
        "mixture-diagonal-2", "mixture of two diagonal Gaussians",
        "each class a mixture of two components, columns independent within each", "diagonal", 2, False,
    ),
    (
        "mixture-diagonal-4", "mixture of four diagonal Gaussians",
        "each class a mixture of four components, columns independent within each", "diagonal", 4, False,
    ),
    (
        "mixture-full-2", "mixture of two full Gaussians",
        "each class a mixture of two components, a full covariance each", "full", 2, False,
    ),
    (
        "mixture-tied", "mixture of eight Gaussians for all classes",
        "eight components shared by all classes, with class-specific weights", "full", 8, True,
    ),
    (
        "mixture-full-4", "mixture of four full Gaussians",
        "each class a mixture of four components, a full covariance each", "full", 4, False,
    ),
)  # fmt: skip
TWINS = {
    "diagonal": "naive-bayes", "diagonal-t": "naive-bayes-t", "naive-bayes": "diagonal", "naive-bayes-t": "diagonal-t",
}  # one model under two names, of which only one is a candidate  # fmt: skip
_MIXED = "counts and categorical columns, and two columns in total"
NAMES: dict[str, str] = {  # names of all models, the same for every table → what a table must have
    "prior": "nothing",
    "nearest-centroid": "numbers alone",
    "naive-bayes": "nothing",
    "naive-bayes-t": "nothing",
    "naive-bayes-categorical": f"counts of at most {FEW_LEVELS} values",
    "chow-liu": f"two categorical columns, with at most {MOST_LEVELS} levels each",
    **{key: "nothing" if key in INDEPENDENT else "two columns of numbers" for key, *_ in SHAPES},
    **{f"{key}-counts": _MIXED for key in (INDEPENDENT[0], *AS_NUMBERS)},
    **{key: "columns of numbers, and enough rows of each class for its parameters" for key, *_ in MIXTURES},
    "kernel-density": "columns of numbers, and some rows of each class for each",
    "k-nearest-neighbors": "numbers alone, and two rows of each class",
    **dict.fromkeys(("boosting", "forest", "logistic"), "--baselines"),
}
ROWS_A_PARAMETER = 2  # rows of a class per parameter of its mixture; with fewer it overfits
WORK = 10_000_000  # work of one model in all splits together, about fifteen seconds of a core; else only by name


@dataclass(frozen=True)
class Candidate:
    """One candidate model: an unfitted estimator and its rank of complexity."""

    key: str  # its name in --models
    name: str
    what: str  # its assumption, as a sentence
    rank: int  # 0 is the simplest
    estimator: Any
    baseline: bool = False  # for comparison: cannot be written to a model file
    work: float = 0.0  # work per row, in units of about 1.5 µs; negligible for closed forms
    carried: bool = True  # False if the rows are far too few for its covariances
    final: Any = None  # the estimator for all data, where the compared one is fitted more briefly


def model_candidates(
    kinds: Kinds, rules: Mapping[str, Any] | None = None, distinct: Mapping[str, int] | None = None,
    rows: Sequence[float] | None = None, levels: Mapping[str, Sequence[str]] | None = None,
) -> list[Candidate]:  # fmt: skip
    """Candidate models for columns of these types, simplest first; `rules` are parameters of every classifier.

    Categorical columns are independent, with one categorical distribution each. Numeric columns have a joint Gaussian.
    Counts are Poisson, or numbers or levels in some models: small integers may be grades or
    codes. `distinct` is the number of values of each column, `rows` the number of training rows of each class: if these
    are enough for the parameters, mixtures, kernel densities and nearest neighbors are added. `levels` are the levels
    of categorical columns: two such columns or more may depend on each other along a tree.

    >>> [candidate.key for candidate in model_candidates({"size": "real", "weight": "real"})][:4]
    ['prior', 'nearest-centroid', 'spherical', 'diagonal']
    >>> [candidate.key for candidate in model_candidates({"size": "real", "color": "category"})]
    ['prior', 'naive-bayes', 'naive-bayes-t']
    """
    rules = dict(rules or {})
    prior = PriorClassifier(**rules)
    found: list[tuple[str, str, str, Any]] = [("prior", "class prior", "columns are not used", prior)]
    found += _nearest_mean(kinds, rules)
    found += [
        (key, name, what, BayesClassifier(density, **rules))
        for key, name, what, density in chain(
            _densities(kinds, distinct or {}, levels or {}), _mixtures(kinds, rows), _kernel_densities(kinds, rows)
        )
    ]
    found += _neighbors(kinds, rows, rules)
    return [
        Candidate(
            key, name, f"{what[0].upper()}{what[1:]}.", i, model,
            work=_work(key, kinds, rows or ()), carried=_enough_for_full_covariance(key, kinds, rows),
        )
        for i, (key, name, what, model) in enumerate(found)
    ]  # fmt: skip


def arranged(kinds: Kinds) -> list[str]:
    """Columns in the order of the candidate models: numbers, counts, categories.

    >>> arranged({"color": "category", "visits": "count", "size": "real"})
    ['size', 'visits', 'color']
    """
    return [*_of(kinds, "real"), *_of(kinds, "count"), *_of(kinds, *WORDS)]


def chosen_candidates(
    candidates: Sequence[Candidate], models: str, names: Mapping[str, str] = NAMES
) -> list[Candidate]:
    """The candidates selected by `--models`: "all", or comma-separated names (see `NAMES`).

    Names are the same for every table. A model that does not apply to this table is skipped (see `not_applicable`);
    if none is left, that is an error.
    """
    if models == "all":
        return list(candidates)
    keys, known = _requested_names(models, names), [candidate.key for candidate in candidates]
    unknown = [key for key in keys if key not in names and key not in known]
    if unknown or not keys:
        got = repr(unknown[0] if unknown else models)
        raise DomainError(sentence(by_caller("--models", "models"), f"names of models are {', '.join(names)}", got))
    wanted = {_equivalent_key(key, known) for key in keys}
    if not wanted & set(known):
        expected = f"for these columns there are {', '.join(known)}"
        needs = _needs(known, models, names)
        raise DomainError(sentence(by_caller("--models", "models"), expected, models, needs))
    return [candidate for candidate in candidates if candidate.key in wanted]


def same_model(candidates: Sequence[Candidate], models: str) -> str:
    """A sentence on models named in `--models` that are identical to another candidate here; else empty.

    >>> same_model(model_candidates({"size": "real", "weight": "real"}), "naive-bayes,pooled")
    'All columns are numbers, so naive-bayes is the same model as diagonal: it is compared as diagonal.'
    """
    known = [candidate.key for candidate in candidates]
    pairs = [
        (key, _equivalent_key(key, known)) for key in _requested_names(models) if _equivalent_key(key, known) in known
    ]
    why = {"diagonal": "All columns are numbers", "naive-bayes": "The table has categorical columns"}
    sentences = [
        f"{why[other.removesuffix('-t')]}, so {key} is the same model as {other}: it is compared as {other}."
        for key, other in pairs if key != other
    ]  # fmt: skip
    return " ".join(sentences)


def not_applicable(candidates: Sequence[Candidate], models: str, names: Mapping[str, str] = NAMES) -> str:
    """A sentence on models named in `--models` that do not apply to this table, and what each needs; else empty.

    >>> mixed = model_candidates({"size": "real", "color": "category"})
    >>> not_applicable(mixed, "naive-bayes,diagonal,k-nearest-neighbors")
    'Left out, not for this table: k-nearest-neighbors needs numbers alone, and two rows of each class.'
    """
    told = _needs([candidate.key for candidate in candidates], models, names)
    return f"Left out, not for this table: {told}." if told else ""


def _needs(known: Sequence[str], models: str, names: Mapping[str, str]) -> str:
    """The requirements of those models that are not among the known keys."""
    left = [key for key in _requested_names(models, names) if key in names and _equivalent_key(key, known) not in known]
    return "; ".join(f"{key} needs {names[key]}" for key in left)


def _requested_names(models: str, names: Mapping[str, str] = NAMES) -> list[str]:
    """Comma-separated names, without repetition, in the order of the candidates; unknown names first."""
    keys = dict.fromkeys(key.strip() for key in models.split(",") if key.strip())
    order = list(names)
    return sorted(keys, key=lambda key: order.index(key) if key in names else -1)


def _equivalent_key(key: str, known: Sequence[str]) -> str:
    """The key of a model among these candidates: diagonal Gaussians of numbers and naive Bayes are one model."""
    return key if key in known else TWINS.get(key, key)


def affordable(candidates: Sequence[Candidate], rows: float) -> tuple[list[Candidate], str]:
    """The candidates without those that would take longer than all others together, and a sentence on these.

    `rows` are the training rows of all splits together.

    >>> candidates = model_candidates({"a": "real", "b": "real"}, rows=[1e6, 1e6])
    >>> kept, words = affordable(candidates, 8e6)
    >>> [candidate.key for candidate in candidates if candidate not in kept][:1], words[:9]
    (['student-t'], 'Left out,')
    """
    wide = [candidate for candidate in candidates if not candidate.carried]
    slow = [candidate for candidate in candidates if candidate.work * rows > WORK and candidate.carried]
    reasons = {
        "the rows are too few for full covariances of so many columns": wide,
        "on so many rows they take longer than all other models together": slow,
    }
    words = [
        f"Left out, for {why}: --models {','.join(candidate.key for candidate in left)} compares them."
        for why, left in reasons.items() if left
    ]  # fmt: skip
    return [candidate for candidate in candidates if candidate not in wide and candidate not in slow], " ".join(words)


def without_gaps(candidates: Sequence[Candidate], kinds: Kinds, X: Any) -> tuple[list[Candidate], str]:
    """The candidates that can handle the missing values in X, a Polars frame, and a sentence on the others.

    The posterior predictive of a full covariance has no closed form with missing entries.

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
    """The density of a row: `numbers` for the real columns jointly, counts Poisson, categories independent.

    >>> type(joint({"size": "real", "weight": "real"}, GaussianDensity("full"))).__name__
    'GaussianDensity'
    """
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    if not counts and not words:
        return numbers
    return _product(real, numbers, _other_parts(counts, words, predictive=False))


# ------------------------------------------------------------------------- densities


def _mixtures(kinds: Kinds, rows: Sequence[float] | None) -> Iterator[tuple[str, str, str, Any]]:
    """A Gaussian mixture for the numeric columns of each class, times the distributions of counts and categories."""
    numbers, counts, words = _numbers(kinds)
    if not numbers or rows is None:
        return
    for key, name, what, shape, size, tied in MIXTURES:
        if (shape == "full" and len(numbers) == 1) or not _learnable(len(numbers), shape, size, tied, rows):
            continue
        mixture = MixtureDensity(
            GaussianDensity(shape), size, tie="all" if tied else None, random_state=0, **FIT_SETTINGS
        )  # fmt: skip
        others = _other_parts(counts, words, predictive=False)
        description = f"numbers: {what}; categories independent" if others else what
        whole = _product(numbers, mixture, others).set_params(**FIT_SETTINGS) if others else mixture
        yield key, name, description, whole


def _kernel_densities(kinds: Kinds, rows: Sequence[float] | None) -> Iterator[tuple[str, str, str, Any]]:
    """Kernel density estimates of the numeric columns, if every class has some rows."""
    numbers, counts, words = _numbers(kinds)
    if not numbers or rows is None or min(rows) < ROWS_A_PARAMETER * len(numbers):
        return
    what, others = (
        "any smooth density: kernel density estimation with Gaussian kernels",
        _other_parts(counts, words, predictive=False),
    )
    description = f"numbers: {what}; categories independent" if others else what
    yield (
        "kernel-density",
        "kernel density",
        description,
        _product(numbers, KernelDensity(), others) if others else KernelDensity(),
    )


def _nearest_mean(kinds: Kinds, rules: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """Nearest mean, for numeric columns only."""
    if not _of(kinds, *WORDS):
        what = "columns independent, each with one variance for all classes"
        yield (
            "nearest-centroid",
            "nearest centroid",
            what,
            NearestCentroidClassifier("scaled", class_prior=None, **rules),
        )


def _neighbors(
    kinds: Kinds, rows: Sequence[float] | None, rules: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, Any]]:
    """Nearest neighbors, for numeric columns only, with some rows of each class."""
    if not _of(kinds, *WORDS) and rows is not None and min(rows) >= ROWS_A_PARAMETER:
        what = "neighboring rows are of the same class"
        yield "k-nearest-neighbors", "nearest neighbors", what, KNeighborsClassifier("leave-one-out", "scaled", **rules)


def _enough_for_full_covariance(key: str, kinds: Kinds, rows: Sequence[float] | None) -> bool:
    """Whether there are two rows per column for a full covariance of more than a thousand columns.

    With fewer, a covariance is dominated by the prior, and d³ operations per class and split take minutes.
    """
    d = len(_of(kinds, "real", "count"))
    return key.removesuffix("-counts") not in FULL or d <= WIDE or rows is None or sum(rows) >= ROWS_A_PARAMETER * d


def _work(key: str, kinds: Kinds, rows: Sequence[float]) -> float:
    """Work per row, by components and columns; measured on tables of 150 to 8,000 rows in 2 to 20 columns."""
    d = len(_of(kinds, "real", "count"))
    if key == "student-t":
        return 2 + d / 4
    if key == "kernel-density":
        return _work_of_kernel_densities(max(rows), d)
    if key == "k-nearest-neighbors":  # tree search in few columns; measured on 2,000 to 32,000 rows in 2 to 60 columns
        return 20.0 if d <= 4 else 60 + sum(rows) / 1000
    shapes = {k: (shape, size) for k, _, _, shape, size, _ in MIXTURES}
    if key not in shapes:
        return 0.0
    shape, size = shapes[key]
    return float(size * (d + (d * d / 20 if shape == "full" else 0)))


def _work_of_kernel_densities(m: float, d: int) -> float:
    """Work per row of a class of m rows: tree search in few columns, else all pairs.

    Measured on 200 to 64,000 rows per class in 1 to 6 columns, and 200 to 10,000 in 8 to 256: right to a factor of two.
    """
    return float(m**0.5 * (1.3 + d / 8) if d <= BY_COLUMNS else 10 + m * (0.06 + d / 8000))


def _learnable(d: int, shape: str, size: int, tied: bool, rows: Sequence[float]) -> bool:
    """Whether every class has enough rows for its own parameters, and all together for the shared ones."""
    part = 2 * d if shape == "diagonal" else d * (d + 3) // 2
    own, shared = (size - 1, size * part) if tied else (size * part + size - 1, 0)
    return min(rows) >= ROWS_A_PARAMETER * own and sum(rows) >= ROWS_A_PARAMETER * shared


def _densities(
    kinds: Kinds, distinct: Mapping[str, int], levels: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str, str, Any]]:
    """Key, name, assumption and density of each model that uses the columns."""
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    if counts or words:
        yield "naive-bayes", "naive Bayes", "columns independent, each with its own distribution", _naive(kinds)
        yield (
            "naive-bayes-t", "naive Bayes, predictive",
            "columns independent, posterior predictive distributions",
            _naive(kinds, predictive=True),
        )  # fmt: skip
    if counts and all(distinct.get(name, FEW_LEVELS + 1) <= FEW_LEVELS for name in counts):
        graded = {name: "category" if kind == "count" else kind for name, kind in kinds.items()}
        what = "columns independent; integers are unordered levels"
        yield "naive-bayes-categorical", "naive Bayes, counts as levels", what, _naive(_in_order(graded, kinds))
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
    """Chow–Liu tree of the categorical columns, numbers and counts independent."""
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    sizes = [len(levels.get(word, ())) for word in words]
    if len(words) < 2 or 0 in sizes or max(sizes) > MOST_LEVELS or sum(sizes) > ALL_LEVELS:
        return
    tree = (_unused_name("words", list(kinds)), ChowLiuTreeDensity(words=[list(levels[word]) for word in words]), words)
    what = "categories depend on each other along a tree" + ("; numbers independent" if real or counts else "")
    others = [*_other_parts(counts, [], predictive=False), tree]
    yield "chow-liu", "Chow–Liu tree", what, _product(real, GaussianDensity("diagonal"), others)


def _gaussians(
    numbers: list[str], counts: list[str], words: list[str], more: tuple[str, ...] = ()
) -> Iterator[tuple[str, str, str, Any]]:
    """A joint Gaussian of each shape for the numeric columns, times the distributions of counts and categories."""
    for key, name, what, density in SHAPES:
        if not counts and not words:
            if key in LONE or len(numbers) > 1:
                yield key, name, what, clone(density)
        elif key in more or key not in INDEPENDENT:  # equal to naive Bayes
            others = _other_parts(counts, words, predictive=key == "full-t")
            whole = _product(numbers, clone(density), others)
            whole = whole.set_params(**FIT_SETTINGS) if key == "student-t" else whole
            yield key, name, f"numbers: {what}; categories independent", whole


def _naive(kinds: Kinds, predictive: bool = False) -> Any:
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    gaussian = GaussianDensity("diagonal", predictive="all" if predictive else None)
    return _product(real, gaussian, _other_parts(counts, words, predictive))


def _other_parts(counts: list[str], words: list[str], predictive: bool) -> list[tuple[str, Any, list[str]]]:
    poisson = (
        [(_unused_name("counts", [*counts, *words]), PoissonDensity(predictive=predictive), counts)] if counts else []
    )
    return poisson + [(word, CategoricalDensity(predictive=predictive), [word]) for word in words]


def _product(numbers: list[str], gaussian: Any, others: list[tuple[str, Any, list[str]]]) -> Any:
    taken = [name for name, _, _ in others]
    first = [(_unused_name("numbers", taken), gaussian, numbers)] if numbers else []
    return ProductDensity([*first, *others])


def _unused_name(name: str, taken: Sequence[str]) -> str:
    """A part name that is not a column name."""
    while name in taken:
        name += "_"
    return name


def _in_order(levels: dict[str, str], kinds: Kinds) -> dict[str, str]:
    """Kinds in the order of the columns."""
    return {name: levels[name] for name in arranged(kinds)}


def _numbers(kinds: Kinds) -> tuple[list[str], list[str], list[str]]:
    """Numeric columns, counts and categories: counts are numbers if there are no categories."""
    real, counts, words = _of(kinds, "real"), _of(kinds, "count"), _of(kinds, *WORDS)
    return (real, counts, words) if words else (real + counts, [], [])


def _of(kinds: Kinds, *wanted: str) -> list[str]:
    return [name for name, kind in kinds.items() if kind in wanted]

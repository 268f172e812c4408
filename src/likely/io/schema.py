"""Schema of model files: the table of classes, and the type, shape and bounds of each field.

A new class is one line in `TABLE`. The line names the class by a literal import, so that no text in a file
determines what is loaded, and gives a kind to each field whose annotation is not sufficient: shapes, with letters
that mean one size throughout the value, and strings from a list. The class's own constructor checks the rest.
A class whose constructor checks nothing (statistics) needs a kind for every field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import LikelyError
from likely.core.stream_checkpoint import Following
from likely.core.value import Value
from likely.io.container import Refusal, short

Check = Callable[[Mapping[str, Any]], str]  # a message about the fields together, or ""
Sizes = dict[str, Any]  # the sizes bound to letters of shapes so far

# ----------------------------------------------------------------------- kinds


class Kind(NamedTuple):
    """The kind of a field: a description, and a test that may bind letters of shapes."""

    words: str
    fits: Callable[[Any, Sizes], bool]


def numbers(
    shapes: str = "?", low: float = -np.inf, dtype: type = np.float64, high: float = np.nextafter(np.inf, 0)
) -> Kind:
    """An array of finite numbers ≥ `low`, in one of several shapes; `high` may be +inf.

    "* d d" is (d, d), or (K, d, d) for a stack; "* d | d" allows either; "" is one number; "?" is anything.
    """
    forms = [form.split() for form in shapes.split("|")]

    def fits(x: Any, sizes: Sizes) -> bool:
        if not isinstance(x, np.ndarray) or x.dtype != dtype:
            return False
        return (shapes == "?" or any(_matches(x.shape, form, sizes) for form in forms)) and _bounded(x, low, high)

    words = f"finite {np.dtype(dtype)} numbers" + (f" from {low:g}" if low > -np.inf else "")
    return Kind(words if shapes == "?" else f"{words} in shape {' or '.join(map(_shown, forms))}", fits)


def _shown(form: list[str]) -> str:
    return f"({', '.join('...' if letter == '*' else letter for letter in form)})"


def _bounded(x: Array, low: float, high: float) -> bool:
    if not x.size:
        return True
    least, most = x.min(), x.max()
    return bool(least >= low and least > -np.inf and most <= high)  # NaN fails each


def _matches(shape: tuple[int, ...], form: list[str], sizes: Sizes) -> bool:
    """Whether a shape has this form; letters, and the stack *, are bound at their first use."""
    stack = form[:1] == ["*"]
    lead = len(shape) - len(form) + stack
    if lead not in ((0, 1) if stack else (0,)) or 0 in shape:
        return False
    sides = zip(form, (shape[:lead], *shape[lead:]) if stack else shape, strict=True)
    found = dict(sizes)
    if any(found.setdefault(letter, size) != size for letter, size in sides):
        return False
    sizes.update(found)
    return True


def text(*choices: str) -> Kind:
    """A string, one of `choices` if given."""
    words = f"one of {', '.join(map(repr, choices))}" if choices else "a text"
    return Kind(words, lambda x, sizes: isinstance(x, str) and (not choices or x in choices))


def number(low: float = -np.inf) -> Kind:
    """One plain finite number ≥ `low`."""
    return Kind(f"a finite number from {low:g}", lambda x, sizes: type(x) in (int, float) and low <= x < np.inf)


def maybe(kind: Kind) -> Kind:
    """None, or the given kind."""
    return Kind(f"{kind.words}, or null", lambda x, sizes: x is None or kind.fits(x, sizes))


def either(one: Kind, other: Kind) -> Kind:
    """One of two kinds."""
    return Kind(f"{one.words}, or {other.words}", lambda x, sizes: one.fits(x, sizes) or other.fits(x, sizes))


def value(words: str, *abilities: str) -> Kind:
    """A nested value with the given methods."""
    return Kind(words, lambda x, sizes: isinstance(x, Value) and all(hasattr(type(x), name) for name in abilities))


def of_class(name: str) -> Kind:
    """A nested value of one class of the table."""
    return Kind(f"a {name}", lambda x, sizes: isinstance(x, Value) and type(x).__name__ == name)


def items(kind: Kind) -> Kind:
    """A tuple of one or more of the given kind."""
    return Kind(f"a tuple, each {kind.words}", lambda x, sizes: _all(x) and all(kind.fits(y, sizes) for y in x))


def perhaps(kind: Kind) -> Kind:
    """A tuple of any number of the given kind."""
    return Kind(f"a tuple, each {kind.words}", lambda x, sizes: _empty(x) or items(kind).fits(x, sizes))


def pairs(kind: Kind) -> Kind:
    """A tuple of one or more (name, object), with unique names."""

    def fits(x: Any, sizes: Sizes) -> bool:
        named = _all(x) and all(_all(p) and len(p) == 2 and isinstance(p[0], str) for p in x)
        return named and len({name for name, _ in x}) == len(x) and all(kind.fits(y, sizes) for _, y in x)

    return Kind(f"a tuple of (name, {kind.words}) with each name once", fits)


def forms_of(*choices: str) -> Kind:
    """A tuple of (name, form), perhaps empty: a form is one of several strings, or an array of integers or booleans."""

    def fits(x: Any, sizes: Sizes) -> bool:
        form = Kind("", lambda y, _: y in choices if isinstance(y, str) else _marks(y))
        return _empty(x) or pairs(form).fits(x, sizes)

    return Kind(f"a tuple of (name, one of {', '.join(choices)} or an array)", fits)


def _marks(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "bi" and x.size > 0


def _empty(x: Any) -> bool:
    return isinstance(x, tuple) and not x  # comparing an array with () would be an error


def _all(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) > 0


flag = Kind("true or false", lambda x, sizes: type(x) is bool)
whole = Kind("a whole number", lambda x, sizes: type(x) is int)
labels = Kind(
    "a 1-D array of labels, or null", lambda x, sizes: x is None or (isinstance(x, np.ndarray) and x.ndim == 1)
)
levels = Kind("a 1-D array of labels", lambda x, sizes: isinstance(x, np.ndarray) and x.ndim == 1)
texts = Kind("texts", lambda x, sizes: isinstance(x, tuple) and all(isinstance(y, str) for y in x))
density = value("a density", "log_prob", "sample", "members", "dim")
SEQUENCES = ("viterbi", "smooth", "structure")  # methods that only densities of sequences have
distribution = Kind(
    "a density of rows",
    lambda x, sizes: density.fits(x, sizes) and not any(hasattr(x, ability) for ability in SEQUENCES),
)
densities = Kind(
    "a density, or a tuple of them", lambda x, sizes: density.fits(x, sizes) or items(density).fits(x, sizes)
)
prior = value("a prior", "update", "point")
stats = value("statistics", "total_weight", "__add__")
belief = Kind("a belief", lambda x, sizes: x is None or isinstance(x, Value) or hasattr(x, "partial_fit"))
evidence = Kind("a number, or −inf", lambda x, sizes: type(x) is float and x < np.inf)
logs = Kind(
    "logarithms of weights",
    lambda x, sizes: isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 1 and bool((x < np.inf).all()),
)
one_or_each = Kind(
    "a number, or one per state",
    lambda x, sizes: number(0).fits(x, sizes) or numbers("d", 0).fits(x, sizes),
)
rule_or_number = Kind("a text, or a number", lambda x, sizes: isinstance(x, str) or number(0).fits(x, sizes))
count = Kind("a whole number from 0", lambda x, sizes: type(x) is int and x >= 0)
positive = Kind("a whole number from 1", lambda x, sizes: type(x) is int and x >= 1)
distinct = Kind(
    "a 1-D array of distinct labels", lambda x, sizes: levels.fits(x, sizes) and len(set(x.tolist())) == len(x)
)
names = Kind(
    "a 1-D array of strings",
    lambda x, sizes: levels.fits(x, sizes) and all(isinstance(name, str) for name in x.tolist()),
)
rows = Kind(
    "float64 rows of numbers or NaN",
    lambda x, sizes: isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 2 and not np.isinf(x).any(),
)
end = Kind("a number, perhaps infinite", lambda x, sizes: type(x) is float and x == x)
streams = Kind("a tuple of streams", lambda x, sizes: isinstance(x, tuple) and all(isinstance(y, Following) for y in x))

ANNOTATED = {  # kinds determined by the annotation alone
    "Array": numbers(), "Index": numbers(dtype=np.int64), "NDArray[np.intp]": numbers(dtype=np.int64),
    "bool": flag, "str": text(), "int": whole, "float": number(),
}  # fmt: skip


# Fitted attributes by name: the same name has the same kind everywhere. Attributes that are not listed are values,
# which their own classes check, or are checked by their estimator.
LEARNED = {
    "n_features_in_": positive, "n_covariates_in_": count, "n_clusters_": positive, "k_": positive, "n_iter_": count,
    "feature_names_in_": names, "classes_": distinct, "class_prior_": numbers("C", 0), "class_count_": numbers("C", 0),
    "rows_": rows, "frames_": rows, "sample_": rows, "sample_weight_": numbers("n", 0), "weight_": numbers("n", 0),
    "labels_": numbers("n", 0, np.int64), "kept_": numbers("m", 0, np.int64), "order_": numbers("k", 0, np.int64),
    "offsets_": numbers("o", 0, np.int64), "is_online_": flag, "takes_arrays_": flag, "method_": text(),
    "schema_": text(), "card_": text(), "shares_": numbers("K", 0, high=1.0), "shares_by_": text(),
}  # fmt: skip


def refuse_learned(learned: Mapping[str, Any], where: str) -> None:
    """Raise an error unless fitted attributes have the kinds of their names; letters of shapes hold for all of them."""
    sizes: Sizes = {}
    for name, thing in learned.items():
        if name in LEARNED and not LEARNED[name].fits(thing, sizes):
            raise Refusal(f"{name} of {where} must be {LEARNED[name].words}", _described(thing))


# ---------------------------------------------------------- checks of whole values


def spread_as_kind(center: str, spread: str) -> Check:
    """Check that a covariance is stored in the shape of its kind: no file may need more memory than its size."""

    def check(parts: Mapping[str, Any]) -> str:
        rank = {"full": 2, "diagonal": 1, "spherical": 0, "independent": parts[center].ndim}[parts["kind"]]
        spare = parts[spread].ndim - rank
        return "" if spare in (0, parts[center].ndim - 1) else f"{spread} must be {parts['kind']}"

    return check


def sums_of_moments(parts: Mapping[str, Any]) -> str:
    """Check the sums of a Student t: moments of the same columns and members; counts from 0 to all columns."""
    inside, entries = parts["moments"], parts["entries"]
    if type(inside).__name__ not in ("Moments", "ColumnMoments") or inside.shift.shape != entries.shape:
        return "moments must be of the same columns and members"
    alike = {parts[name].shape for name in ("near", "far", "excess", "level")}
    if parts["seen"].shape != (*entries.shape[:-1], entries.shape[-1] + 1) or len(alike) > 1:
        return "seen must count 0 to d columns, and all other sums be of one shape"
    return "" if alike <= {entries.shape, entries.shape[:-1]} else "sums must be of the same columns and members"


def of_one_width(parts: Mapping[str, Any]) -> str:
    """Check that members that score the same rows have the same number of columns."""
    widths = {part.dim for part in parts["components"]}
    return "" if len(widths) == 1 else f"all members must have one number of columns, not {sorted(widths)}"


def of_one_name_each(parts: Mapping[str, Any]) -> str:
    """Check that the streams of a feed have unique names."""
    names = parts["names"]
    alike = len(names) == len(set(names)) == len(parts["streams"])
    return "" if alike else "each stream must have a name of its own"


def honest_scatter(parts: Mapping[str, Any]) -> str:
    """Check that a scatter matrix is symmetric up to rounding, with a non-negative diagonal."""
    scatter, mean = parts["scatter"], parts["origin"] + parts["shift"]
    variance = np.diagonal(scatter, axis1=-2, axis2=-1)
    if (variance < 0).any():
        return "the diagonal of scatter must not be negative"
    # a constant column has scatter 0 and leaves only the rounding of its mean
    unit = np.hypot(np.sqrt(variance), 1e-6 * np.sqrt(parts["weight"])[..., None] * np.abs(mean))
    d = unit.shape[-1]
    return "" if _symmetric(scatter.reshape(-1, d, d), unit.reshape(-1, d)) else "scatter must be symmetric"


def of_diffuse_directions(parts: Mapping[str, Any]) -> str:
    """Shapes of a diffuse part of q directions: q + 1 information rows, and at most q free coordinates."""
    q = len(parts["offset"])
    if len(parts["information_root"]) != q + 1:
        return f"information_root must have shape {(q + 1, q + 1)}"
    return "" if 0 <= parts["n_free"] <= q else f"n_free must lie in 0 … {q}"


def of_as_many_states(parts: Mapping[str, Any]) -> str:
    """Statistics of transitions with covariates have the states of the others."""
    K = len(getattr(parts["transition"], "coefficients", parts["counts"]))
    stacked = K != len(parts["counts"]) or (parts["initial"].ndim > 1 and hasattr(parts["transition"], "coefficients"))
    return f"transition must have {len(parts['counts'])} states" if stacked else ""


def of_states_and_inputs(parts: Mapping[str, Any]) -> str:
    """Shapes of the moments of states and inputs agree."""
    if parts["whitened_scatter"].shape != (2, 2):
        return "whitened_scatter must have shape (2, 2)"
    enough = len(parts["transition_gram"]) >= len(parts["initial_mean"])
    return "" if enough else "transition_gram must have a row for every state"


def no_negative_variance(parts: Mapping[str, Any]) -> str:
    """Check that predictive variances are not negative."""
    spread = (parts["covariance"], parts["state_covariance"])
    least = min(float(np.diagonal(a, axis1=1, axis2=2).min()) for a in spread)
    return "" if least >= 0 else "variances must not be negative"


def of_that_distribution(parts: Mapping[str, Any]) -> str:
    """Check that pseudo-observations are statistics of the distribution."""
    try:
        with np.errstate(all="ignore"):
            sound = isinstance(parts["distribution"].objective(parts["stats"]), float)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        sound = False
    return "" if sound else "stats must be statistics of the distribution"


def of_one_number_of_columns(parts: Mapping[str, Any]) -> str:
    """Check that a bijector of d columns belongs to a distribution of d columns."""
    widths = {
        int(parts["distribution"].dim),
        *(len(a) for a in (parts["bijector"].scale, parts["bijector"].shift) if a.ndim),
    }
    return (
        "" if len(widths) == 1 else f"distribution and bijector must have one number of columns, not {sorted(widths)}"
    )


def as_the_class_says(name: str) -> Check:
    """The class's own check of its fields, before the value is built."""
    return lambda parts: cast(Any, class_of(name))._complaint(parts)


def _symmetric(a: Array, unit: Array) -> bool:
    """Whether matrices (K, d, d) are symmetric up to 1e-8 of their units; in strips, to avoid copying large ones."""
    K, d = unit.shape
    members, rows = max(1, 10**5 // d**2), max(1, 10**5 // d)
    for k in (slice(i, i + members) for i in range(0, K, members)):
        for j in (slice(i, i + rows) for i in range(0, d, rows)):
            apart = np.abs(a[k, j] - np.swapaxes(a[k, :, j], 1, 2))
            if not (apart <= 1e-8 * unit[k, j, None] * unit[k, None] + 1e-300).all():
                return False
    return True


# ------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Entry:
    """A class in the table: its module, the kinds of its fields, and a check of the whole value."""

    load: Callable[[], type[Value]]
    kinds: Mapping[str, Kind]
    check: Check


def entry(load: Callable[[], Any], check: Check | None = None, **kinds: Kind) -> Entry:
    """One line of the table."""
    return Entry(load, kinds, check or (lambda parts: ""))


TABLE: dict[str, Entry] = {
    # distributions
    "Gaussian": entry(
        lambda: import_module("likely.distributions.gaussian.gaussian").Gaussian, spread_as_kind("mean", "covariance"),
        mean=numbers("* d"), kind=text("full", "diagonal", "spherical"),
    ),
    "StudentT": entry(
        lambda: import_module("likely.distributions.student_t.student_t").StudentT, spread_as_kind("center", "scale"),
        fixed_dof=flag,
        center=numbers("* d"), dof=numbers("* | * d", 0), kind=text("full", "diagonal", "spherical", "independent"),
    ),
    "Exponential": entry(
        lambda: import_module("likely.distributions.univariate.exponential").Exponential, rate=numbers("* d", 0)
    ),
    "FeatureSums": entry(
        lambda: import_module("likely.distributions.statistics.feature_sums").FeatureSums, rows=numbers("*", 0),
        weight=numbers("* d", 0), sums=numbers("* d f"),
    ),
    "PositiveSums": entry(
        lambda: import_module("likely.distributions.statistics.positive_sums").PositiveSums, rows=numbers("*", 0),
        weight=numbers("* d", 0), mean=numbers("* d", 0), lack=numbers("* d", 0),
    ),
    "WeightedValues": entry(
        lambda: import_module("likely.distributions.statistics.weighted_values").WeightedValues, rows=numbers("*", 0),
        weight=numbers("* d", 0), cell=numbers("m", 0, np.intp), value=numbers("m"), each=numbers("m", 0),
    ),
    "EarlierData": entry(
        lambda: import_module("likely.distributions.priors.pseudo_data").EarlierData,
        distribution=density, stats=stats, check=of_that_distribution
    ),
    "Uniform": entry(
        lambda: import_module("likely.distributions.univariate.uniform").Uniform,
        low=numbers("* d"), high=numbers("* d")
    ),
    "Extremes": entry(
        lambda: import_module("likely.distributions.statistics.extremes").Extremes,
        rows=numbers("*", 0), weight=numbers("* d", 0),
        low=numbers("* d"), high=numbers("* d"),
    ),
    "UniformPredictive": entry(
        lambda: import_module("likely.distributions.univariate.uniform_predictive").UniformPredictive,
        low=numbers("* d"), high=numbers("* d"),
        shape=numbers("* d", 0),
    ),
    "Triangular": entry(
        lambda: import_module("likely.distributions.univariate.triangular").Triangular,
        low=numbers("* d"), mode=numbers("* d"),
        high=numbers("* d"), known=text("", "low", "high", "both"),
    ),
    "Laplace": entry(
        lambda: import_module("likely.distributions.univariate.laplace").Laplace,
        center=numbers("* d"), scale=numbers("* d", 0)
    ),
    "Cauchy": entry(
        lambda: import_module("likely.distributions.univariate.cauchy").Cauchy,
        center=numbers("* d"), scale=numbers("* d", 0)
    ),
    "ChiSquare": entry(
        lambda: import_module("likely.distributions.univariate.chi_square").ChiSquare, dof=numbers("* d", 0)
    ),
    "Lomax": entry(
        lambda: import_module("likely.distributions.univariate.lomax").Lomax,
        shape=numbers("* d", 0), scale=numbers("* d", 0)
    ),
    "BilateralPareto": entry(
        lambda: import_module("likely.distributions.priors.bilateral_pareto").BilateralPareto, low=numbers("* d"),
        high=numbers("* d"), shape=numbers("* d", 0),
    ),
    "Binomial": entry(
        lambda: import_module("likely.distributions.univariate.binomial").Binomial,
        trials=numbers("* d", 1), probs=numbers("* d", 0)
    ),
    "BetaBinomial": entry(
        lambda: import_module("likely.distributions.univariate.beta_binomial").BetaBinomial, trials=numbers("* d", 1),
        a=numbers("* d", 0), b=numbers("* d", 0),
    ),
    "BetaNegativeBinomial": entry(
        lambda: import_module("likely.distributions.univariate.beta_negative_binomial").BetaNegativeBinomial,
        size=numbers("* d", 0), a=numbers("* d", 0), b=numbers("* d", 0),
    ),
    "VonMises": entry(
        lambda: import_module("likely.distributions.univariate.von_mises").VonMises, center=numbers("* d"),
        concentration=numbers("* d", 0),
    ),
    "VonMisesSum": entry(
        lambda: import_module("likely.distributions.univariate.von_mises_sum").VonMisesSum, center=numbers("* d"),
        concentration=numbers("* d", 0), belief=numbers("* d", 0),
    ),
    "Successes": entry(
        lambda: import_module("likely.distributions.univariate.binomial").Successes,
        rows=numbers("*", 0), weight=numbers("* d", 0),
        ones=numbers("* d", 0), zeros=numbers("* d", 0), log_ways=numbers("*"), trials=numbers("* d", 1),
    ),
    "UrnCounts": entry(
        lambda: import_module("likely.distributions.categorical.dirichlet_multinomial_counts").UrnCounts,
        rows=numbers("*", 0),
        weight=numbers("* d", 0), cell=numbers("m", 0, np.intp), value=numbers("m"), each=numbers("m", 0),
        log_ways=numbers("*"),
    ),
    "Poisson": entry(lambda: import_module("likely.distributions.univariate.poisson").Poisson, rate=numbers("* d", 0)),
    "KDE": entry(
        lambda: import_module("likely.density.kde").KDE, points=numbers("n d"), bandwidth=maybe(numbers("?", 0)),
        kernel_covariance=maybe(numbers("?")),
        kernel=text(), weight=numbers("n", 0), dof=number(0), edges=maybe(numbers("e", 0, np.int64)),
        tolerance=maybe(number(0)), rule=rule_or_number, unit=text("class", "pooled", "common"),
    ),
    "KNNBalls": entry(
        lambda: import_module("likely.density.knn_balls").KNNBalls, points=numbers("n d"), n_neighbors=number(0),
        weight=numbers("n", 0), unit=numbers("d", 0), metric=text("l1", "l2", "linf"), shared=flag, unbiased=flag,
        scaled=flag, edges=maybe(numbers("e", 0, np.int64)),
    ),
    "Histogram": entry(
        lambda: import_module("likely.density.histogram").Histogram, edges=numbers("e"), masses=numbers("* C", 0),
        kind=text("grid", "columns"), bins=numbers("d", 1, np.int64), pseudo_count=number(0),
    ),
    "NegativeBinomial": entry(
        lambda: import_module("likely.distributions.univariate.negative_binomial").NegativeBinomial,
        size=numbers("* d", 0), prob=numbers("* d", 0), rest=numbers("* d", 0),
    ),
    "Categorical": entry(
        lambda: import_module("likely.distributions.categorical.categorical").Categorical,
        probs=numbers("* L", 0), levels=labels
    ),
    "Multinomial": entry(
        lambda: import_module("likely.distributions.categorical.multinomial").Multinomial,
        probs=numbers("* d", 0), length=numbers("", 0)
    ),
    "DirichletMultinomial": entry(
        lambda: import_module("likely.distributions.categorical.dirichlet_multinomial").DirichletMultinomial,
        alpha=numbers("* d", 0), length=numbers("", 0),
    ),
    "Bernoulli": entry(
        lambda: import_module("likely.distributions.binary.bernoulli").Bernoulli, probs=numbers("* d", 0)
    ),
    "Walsh": entry(
        lambda: import_module("likely.distributions.binary.walsh").Walsh,
        expectations=numbers("* M"), dim=count, order=count
    ),
    "LogLinear": entry(
        lambda: import_module("likely.distributions.binary.log_linear").LogLinear,
        weights=numbers("* M"), dim=count, order=count,
        error=numbers("*", 0),
    ),
    "Bahadur": entry(
        lambda: import_module("likely.distributions.binary.bahadur").Bahadur,
        probs=numbers("* d", 0), correlations=numbers("* M"),
        dim=count, order=count,
    ),
    "ChowLiuTree": entry(
        lambda: import_module("likely.distributions.categorical.chow_liu").ChowLiuTree,
        parent=numbers("* d", dtype=np.int64),
        tables=numbers("* d L L", 0), levels=items(numbers()),
    ),
    "DiscriminantSubspace": entry(
        lambda: import_module("likely.decomposition.discriminant_subspace").DiscriminantSubspace,
        mean=numbers("d"), axes=numbers("q d"),
        within=numbers("q", 0), centroids=numbers("K q"),
    ),
    "FactorGaussian": entry(
        lambda: import_module("likely.distributions.gaussian.factor_gaussian").FactorGaussian,
        mean=numbers("* d"), loadings=numbers("?"), noise_variance=numbers("* d | *", 0), kind=text("spherical",
        "diagonal"),
    ),
    "Product": entry(lambda: import_module("likely.distributions.product").Product, components=pairs(distribution)),
    "Stack": entry(
        lambda: import_module("likely.distributions.stacks.stack").Stack, of_one_width, components=items(density)
    ),
    "Tied": entry(
        lambda: import_module("likely.distributions.stacks.tied").Tied,
        components=distribution, index=numbers("K", dtype=np.int64), what=text("all", "covariance"),
    ),
    # priors
    "Dirichlet": entry(
        lambda: import_module("likely.distributions.categorical.dirichlet").Dirichlet,
        alpha=numbers("* L", 0), levels=labels
    ),
    "Beta": entry(
        lambda: import_module("likely.distributions.univariate.beta").Beta,
        a=numbers("* d", 0), b=numbers("* d", 0), likelihood=text("bernoulli", "binomial", "negative binomial"),
        known=maybe(numbers("* d | d | ", 0)),
    ),
    "DirectionPrior": entry(
        lambda: import_module("likely.distributions.priors.direction_prior").DirectionPrior, belief=distribution,
        concentration=numbers("?", 0),
    ),
    "MultinomialPrior": entry(
        lambda: import_module("likely.distributions.priors.multinomial_prior").MultinomialPrior,
        belief=distribution, length=numbers("", 0)
    ),
    "StudentTPrior": entry(
        lambda: import_module("likely.distributions.priors.student_t_prior").StudentTPrior,
        shape=prior, tails=numbers(""),
        rate=numbers(""),
    ),
    "NormalGamma": entry(
        lambda: import_module("likely.distributions.priors.normal_gamma").NormalGamma,
        mean=numbers("* d"), kappa=numbers("* d", 0),
        shape=numbers("* d", 0), rate=numbers("* d", 0),
    ),
    "CovarianceGivenMean": entry(
        lambda: import_module("likely.distributions.priors.covariance_given_mean").CovarianceGivenMean,
        mean=numbers("d"), distribution=distribution
    ),
    "Wishart": entry(
        lambda: import_module("likely.distributions.matrix.wishart").Wishart,
        dof=numbers("*", 0), scale=numbers("* d d"),
    ),
    "InverseWishart": entry(
        lambda: import_module("likely.distributions.matrix.inverse_wishart").InverseWishart, dof=numbers("*", 0),
        scale=numbers("* d d"),
    ),
    "Elliptical": entry(
        lambda: import_module("likely.distributions.elliptical.elliptical").Elliptical,
        profile=text("gaussian", "t", "laplace", "power", "logistic", "uniform"), center=numbers("* d"),
        scale=numbers("* d d"), shape=numbers("", 0),
    ),
    "WeightedRows": entry(
        lambda: import_module("likely.distributions.elliptical.weighted_rows").WeightedRows, values=numbers("m d"),
        each=numbers("* m", 0),
    ),
    "MatrixSums": entry(
        lambda: import_module("likely.distributions.matrix.matrix_rows").MatrixSums, weight=numbers("*", 0),
        total=numbers("* d d"), inverse=numbers("* d d"), logdet=numbers("*"),
    ),
    "ScaleSums": entry(
        lambda: import_module("likely.distributions.student_t.scale_statistics").ScaleSums,
        sums_of_moments, seen=numbers("* e", 0),
        entries=numbers("* d", 0), near=numbers("* | * d", 0), far=numbers("* | * d", 0),
        excess=numbers("* | * d", 0), level=numbers("* | * d"), moments=stats,
    ),
    "EarlierRows": entry(
        lambda: import_module("likely.distributions.priors.pseudo_observations").EarlierRows,
        mean=numbers("* d"), kappa=numbers("* | ", 0), scale=numbers("* d d | d d"), rows=numbers("* | ", 0),
    ),
    "Gamma": entry(
        lambda: import_module("likely.distributions.univariate.gamma").Gamma, shape=numbers("* d", 0),
        rate=numbers("* d", 0), likelihood=text("poisson", "exponential"),
    ),
    "NormalInverseWishart": entry(
        lambda: import_module("likely.distributions.priors.normal_inverse_wishart").NormalInverseWishart,
        mean=numbers("* d"), kappa=numbers("*", 0), scale=numbers("* d d | d d"), dof=numbers("* | ", 0),
    ),
    "NormalInverseGamma": entry(
        lambda: import_module("likely.distributions.priors.normal_inverse_gamma").NormalInverseGamma,
        mean=numbers("* d"), kappa=numbers("* d", 0), scale=numbers("* d | d | * | ", 0),
        dof=numbers("* d | d | * | ", 0), kind=text("diagonal", "spherical"),
    ),
    "MeanGivenCovariance": entry(
        lambda: import_module("likely.distributions.priors.mean_given_covariance").MeanGivenCovariance,
        belief=distribution, covariance=numbers("d d | d | "),
    ),
    "ProductPrior": entry(
        lambda: import_module("likely.distributions.priors.product_prior").ProductPrior, components=pairs(maybe(prior))
    ),
    # statistics
    "Moments": entry(
        lambda: import_module("likely.distributions.gaussian.moments").Moments, honest_scatter,
        weight=numbers("*", 0), origin=numbers("d"), shift=numbers("* d"), scatter=numbers("* d d"),
        entropy=numbers("*"), complete=flag, seen=maybe(numbers("* d", 0)),
    ),
    "ColumnMoments": entry(
        lambda: import_module("likely.distributions.gaussian.moments").ColumnMoments,
        rows=numbers("*", 0), weight=numbers("* d", 0), origin=numbers("d"), shift=numbers("* d"),
        scatter=numbers("* d", 0),
    ),
    "DistinctRows": entry(
        lambda: import_module("likely.neighbors.distinct_rows").DistinctRows,
        rows=numbers("n d"), weight=numbers("n", 0),
        edges=maybe(numbers("e", 0, np.int64)), gaps=maybe(numbers("n d", dtype=np.bool_)),
    ),
    "BinCounts": entry(
        lambda: import_module("likely.density.histogram").BinCounts, counts=numbers("* C", 0), rows=numbers("*", 0),
        outside=numbers("*", 0),
    ),
    "Counts": entry(
        lambda: import_module("likely.distributions.statistics.counts").Counts,
        rows=numbers("*", 0), weight=numbers("* d", 0), total=numbers("* d", 0), log_factorial=numbers("*"),
    ),
    "WordCounts": entry(
        lambda: import_module("likely.distributions.categorical.multinomial").WordCounts,
        counts=numbers("* d", 0), rows=numbers("*", 0), constant=numbers("*"), complete=flag,
    ),
    "SignSums": entry(
        lambda: import_module("likely.distributions.binary.sign_products").SignSums,
        weight=numbers("* M", 0), total=numbers("* M"),
        entropy=numbers("*"), dim=count, order=count, complete=flag,
    ),
    "PairCounts": entry(
        lambda: import_module("likely.distributions.categorical.pair_counts").PairCounts,
        rows=numbers("*", 0), pairs=numbers("* W W", 0), levels=items(numbers()), entropy=numbers("*"), complete=flag,
    ),
    "Trials": entry(
        lambda: import_module("likely.distributions.binary.bernoulli").Trials,
        rows=numbers("*", 0), ones=numbers("* d", 0), zeros=numbers("* d", 0),
    ),
    "ScatterRoot": entry(
        lambda: import_module("likely.distributions.gaussian.scatter_qr").ScatterRoot,
        weight=numbers("", 0), origin=numbers("d"), shift=numbers("d"), root=numbers("r d"),
    ),
    "LevelCounts": entry(
        lambda: import_module("likely.distributions.categorical.categorical").LevelCounts,
        counts=numbers("* L", 0), rows=numbers("*", 0)
    ),
    "Cost": entry(
        lambda: import_module("likely.decision.cost").Cost, table=numbers("A C", high=np.inf), actions=texts,
        classes=labels,
    ),
    "Mixture": entry(
        lambda: import_module("likely.mixture.mixture").Mixture, weights=numbers("* K", 0), components=density
    ),
    "HMM": entry(
        lambda: import_module("likely.hmm.hmm").HMM, initial=numbers("* N", 0),
        transition=either(numbers("* N N", 0), of_class("LogisticTransition")),
        emission=distribution, final=maybe(numbers("* N", 0)),
    ),
    "HMMStats": entry(
        lambda: import_module("likely.hmm.hmm_stats").HMMStats, of_as_many_states, initial=numbers("* N", 0),
        transition=either(numbers("* N N", 0), of_class("LogisticStats")),
        final=numbers("* N", 0), counts=numbers("* K", 0), emission=stats, entropy=numbers("*"), seen=flag,
    ),
    "HMMPrior": entry(
        lambda: import_module("likely.hmm.priors").HMMPrior, initial=maybe(numbers("* N", 0)),
        transition=maybe(either(numbers("* N N", 0), of_class("LogisticPrior"))), final=maybe(numbers("* N", 0)),
        emission=maybe(prior),
    ),
    "LogisticTransition": entry(
        lambda: import_module("likely.hmm.logistic_transition").LogisticTransition, coefficients=numbers("K K q"),
        possible=numbers("K K", dtype=np.bool_), units=maybe(numbers("t p")),
    ),
    "LogisticStats": entry(
        lambda: import_module("likely.hmm.logistic_transition").LogisticStats, fitted=numbers(""),
        gradient=numbers("K K q"), curvature=numbers("K q q"), coefficients=numbers("K K q"),
    ),
    "LogisticPrior": entry(
        lambda: import_module("likely.hmm.logistic_transition").LogisticPrior, strength=number(0),
        center=numbers("p"), ridge=numbers("p", 0),
    ),
    "LinearGaussian": entry(
        lambda: import_module("likely.statespace.linear.linear_gaussian").LinearGaussian,
        transition=numbers("d d | T d d"),
        process_covariance=numbers("d d | T d d"), observation=numbers("p d | T p d"),
        observation_covariance=numbers("p p | T p p"),
        initial_mean=numbers("d"), initial_covariance=numbers("d d"), control=maybe(numbers("d k | T d k")),
        feedthrough=maybe(numbers("p k | T p k")), diffuse=maybe(numbers("d q")),
    ),
    "DiffusePart": entry(
        lambda: import_module("likely.statespace.linear.state_belief").DiffusePart,
        of_diffuse_directions, mean=numbers("d"), root=numbers("d d"),
        loadings=numbers("d q"), basis=numbers("q q"), offset=numbers("q"), information_root=numbers("r r"),
        n_free=whole, log_prob=number(),
    ),
    "StateBelief": entry(
        lambda: import_module("likely.statespace.linear.state_belief").StateBelief,
        mean=numbers("d"), root=numbers("d d"),
        diffuse_part=maybe(of_class("DiffusePart")),
    ),
    "LinearSDE": entry(
        lambda: import_module("likely.statespace.continuous.linear_sde").LinearSDE, drift=numbers("d d"),
        diffusion=numbers("d d"), observation=numbers("p d"), observation_covariance=numbers("p p"),
        initial_mean=numbers("d"),
        initial_covariance=numbers("d d"), diffuse=maybe(numbers("d q")),
    ),
    "TimedBelief": entry(
        lambda: import_module("likely.statespace.continuous.timed_belief").TimedBelief, state=of_class("StateBelief"),
        time=maybe(number()),
    ),
    "ParticleBelief": entry(
        lambda: import_module("likely.statespace.particle.particle_belief").ParticleBelief,
        states=numbers("N d"), log_weights=logs,
        time=whole, seed=whole, seen=flag, before=maybe(numbers("N d")), ancestors=maybe(numbers("N", dtype=np.int64)),
    ),
    "SwitchingLinearGaussian": entry(
        lambda: import_module("likely.statespace.switching.switching_linear").SwitchingLinearGaussian,
        regimes=items(of_class("LinearGaussian")),
        transition=numbers("K K", 0), initial=numbers("K", 0),
    ),
    "IMMFilter": entry(
        lambda: import_module("likely.statespace.switching.imm_filter").IMMFilter,
        model=of_class("SwitchingLinearGaussian"),
        method=text("imm", "gpb2"),
    ),
    "RaoBlackwellizedFilter": entry(
        lambda: import_module("likely.statespace.switching.rao_blackwellized_filter").RaoBlackwellizedFilter,
        model=of_class("SwitchingLinearGaussian"), n_particles=count,
        resample=maybe(text()), ess_threshold=number(0), proposal=text("optimal", "prior"), random_state=count,
    ),
    "SwitchingBelief": entry(
        lambda: import_module("likely.statespace.switching.switching_belief").SwitchingBelief, means=numbers("n d"),
        roots=numbers("n d d"), which=numbers("n", 0, np.int64), log_weights=logs, n_regimes=whole, time=whole,
        seed=whole, parents=maybe(numbers("n", 0, np.int64)), particle=maybe(numbers("n", 0, np.int64)),
    ),
    "SwitchingStats": entry(
        lambda: import_module("likely.statespace.switching.switching_stats").SwitchingStats,
        regimes=items(of_class("LinearStats")),
        initial=numbers("K", 0), transition=numbers("K K", 0), counts=numbers("K", 0), entropy=numbers(""),
    ),
    "SwitchingPrior": entry(
        lambda: import_module("likely.statespace.switching.switching_em").SwitchingPrior,
        regimes=items(maybe(of_class("LinearPrior"))), initial=numbers("K", 0), transition=numbers("K K", 0),
    ),
    "DataAssociation": entry(
        lambda: import_module("likely.recognizers.tracking.data_association").DataAssociation,
        model=value("a filter", "initial_belief", "predict", "update"), speed=maybe(one_or_each),
    ),
    "TrackBelief": entry(
        lambda: import_module("likely.recognizers.tracking.data_association").TrackBelief,
        states=perhaps(value("a belief", "covariance", "log_prob")), weights=numbers("?", 0),
        parents=numbers(dtype=np.int64), association=numbers("n", 0), confirmed=flag, time=whole,
        moment=maybe(number()), size=count,
    ),
    "SensorDynamics": entry(
        lambda: import_module("likely.recognizers.faults.sensor_dynamics").SensorDynamics,
        mean=numbers("p"), moves=numbers("p p"),
        noise=numbers("p p"), start=numbers("p p"),
    ),
    "FaultWatch": entry(
        lambda: import_module("likely.recognizers.faults.fault_watch").FaultWatch,
        mean=numbers("P"), scale=numbers("P", 0),
        normal=of_class("SensorDynamics"), faults=perhaps(of_class("SensorDynamics")), memory=numbers("J", 0),
        size=numbers("J", 0), shares=numbers("S", 0),
    ),
    "FaultBelief": entry(
        lambda: import_module("likely.recognizers.faults.fault_watch").FaultBelief, log_weights=numbers("L"),
        log_kinds=numbers("M"), frame=maybe(numbers("p")), spread=maybe(numbers("p p")), offsets=numbers("J p"),
        error=numbers("p"), moved=numbers("P", 0), surprise=number(), alarm=flag, due=flag, time=count,
    ),
    "StateForecast": entry(
        lambda: import_module("likely.statespace.linear.forecast").StateForecast,
        no_negative_variance, mean=numbers("s p"),
        covariance=numbers("s p p"), states=numbers("s d"), state_covariance=numbers("s d d"),
    ),
    "LinearStats": entry(
        lambda: import_module("likely.statespace.linear.linear_stats").LinearStats,
        of_states_and_inputs, n_initial=numbers("", 0), initial_sum=numbers("d"), initial_scatter=numbers("d d"),
        n_transitions=numbers("", 0), process_scatter=numbers("d d"), transition_cross=numbers("d h"),
        transition_gram=numbers("h h"), n_observed=numbers("", 0), observation_scatter=numbers("p p"),
        observation_cross=numbers("p h"), observation_gram=numbers("h h"), initial_mean=numbers("d"),
        transition=numbers("d h"), observation=numbers("p h"), whitened_scatter=numbers("w w"), entropy=numbers(""),
        n_frames=numbers("", 0),
    ),
    "LinearPrior": entry(
        lambda: import_module("likely.statespace.linear.linear_em").LinearPrior, stats=of_class("LinearStats")
    ),
    "Structure": entry(
        lambda: import_module("likely.statespace.linear.linear_structure").Structure, learn=texts,
        forms=forms_of("full", "diagonal", "spherical", "scale"),
    ),
    "LinearLearner": entry(
        lambda: import_module("likely.statespace.linear.linear_em").LinearLearner, model=of_class("LinearGaussian"),
        structure=of_class("Structure"),
    ),
    "Topology": entry(
        lambda: import_module("likely.hmm.topology").Topology, initial=numbers("N", dtype=np.bool_),
        transition=numbers("N N", dtype=np.bool_), final=maybe(numbers("N", dtype=np.bool_)),
        density=numbers("K", 0, np.int64), origin=maybe(numbers("K", 0, np.int64)),
    ),
    "WordNetwork": entry(
        lambda: import_module("likely.language.word_network").WordNetwork, words=densities, names=texts,
        bigram=numbers("C C", 0), initial=numbers("C", 0), final=numbers("C", 0), silence=maybe(density),
        pause=number(0),
    ),
    "MFCC": entry(
        lambda: import_module("likely.features.mfcc").MFCC,
        normalize=maybe(text("mean", "mean and variance", "level")), high=maybe(number(0)), trim=maybe(number(0)),
        taper=text("hamming", "hann", "rectangular"),
    ),
    "Dendrogram": entry(
        lambda: import_module("likely.cluster.hierarchy.dendrogram").Dendrogram, merges=numbers("?", 0, np.int64),
        heights=numbers(), weight=numbers("n", 0), method=text(),
    ),
    "CutCurve": entry(
        lambda: import_module("likely.cluster.hierarchy.dendrogram_cut").CutCurve,
        k=numbers("m", 1, np.int64), log_likelihood=numbers("m"),
        bic=numbers("m"), covariance=text("pooled", "full", "diagonal"),
    ),
    "PrincipalSubspace": entry(
        lambda: import_module("likely.decomposition.principal_subspace").PrincipalSubspace,
        mean=numbers("d"), axes=numbers("q d"), variances=numbers("q", 0), rest=numbers("", 0),
    ),
    "Centroids": entry(
        lambda: import_module("likely.cluster.kmeans.centroids").Centroids,
        mean=numbers("K d"), variance=maybe(numbers("K", 0)),
        typical=maybe(numbers("", 0)),
    ),
    "CentroidStats": entry(lambda: import_module("likely.cluster.kmeans.centroids").CentroidStats, moments=stats),
    "FixedComponents": entry(
        lambda: import_module("likely.mixture.interpolation").FixedComponents, components=distribution
    ),
    "FixedStats": entry(
        lambda: import_module("likely.mixture.interpolation").FixedStats, weight=numbers("K", 0), total=numbers("K")
    ),
    "LatticeDistribution": entry(
        lambda: import_module("likely.distributions.sums.lattice_distribution").LatticeDistribution,
        first=number(), step=number(0),
        probs=numbers("m", 0), error=number(0),
    ),
    "GridDistribution": entry(
        lambda: import_module("likely.distributions.sums.grid_distribution").GridDistribution, first=number(),
        step=number(0),
        masses=numbers("m", 0), error=number(0),
    ),
    "Bijector": entry(
        lambda: import_module("likely.distributions.transforms.bijector").Bijector,
        scale=numbers(" | d | d d"), shift=numbers(" | d"),
    ),
    "Transformed": entry(
        lambda: import_module("likely.distributions.transforms.transformed").Transformed, of_one_number_of_columns,
        distribution=distribution, bijector=of_class("Bijector"),
    ),
    "TransformedStats": entry(
        lambda: import_module("likely.distributions.transforms.transformed").TransformedStats,
        components=stats, slope=numbers("*"),
    ),
    "MaximumEntropyDistribution": entry(
        lambda: import_module("likely.distributions.maxent.maximum_entropy_distribution").MaximumEntropyDistribution,
        features=texts,
        multipliers=numbers("k"), low=end, high=end, center=number(), scale=number(0),
    ),
    "RobbinsMonro": entry(
        lambda: import_module("likely.inference.robbins_monro").RobbinsMonro, distribution=distribution,
        step=number(0), delay=number(0),
        power=number(0), learn=texts, natural=flag, average=flag, random_state=count,
    ),
    "RunningEstimate": entry(
        lambda: import_module("likely.inference.robbins_monro").RunningEstimate,
        rule=of_class("RobbinsMonro"), theta=numbers("P"),
        average=numbers("P"), fisher=numbers("P P"), count=count, drift=numbers("?"),
    ),
    "ScaledCopies": entry(
        lambda: import_module("likely.mixture.scaled_copies").ScaledCopies, base=distribution, factors=numbers("F", 0)
    ),
    "GivenWeights": entry(
        lambda: import_module("likely.mixture.fixed_weights").GivenWeights, probs=numbers("K", 0)
    ),
    "SparseWeights": entry(lambda: import_module("likely.mixture.sparse_weights").SparseWeights, alpha=numbers("K")),
    "Following": entry(
        lambda: import_module("likely.core.stream_checkpoint").Following, model=text(), belief=belief, taken=count,
        log_evidence=evidence, alarm=maybe(value("the state of an alarm", "step", "alarm")), seen=text(),
    ),
    "FollowedLines": entry(
        lambda: import_module("likely.core.stream_checkpoint").FollowedLines,
        of_one_name_each, asked=text(), header=text(),
        lines=count, digest=text(), written=count, names=texts, streams=streams, output=text(),
        more=numbers("?", dtype=np.int64),
    ),
    "SPRT": entry(
        lambda: import_module("likely.decision.sequential.sprt").SPRT, alpha=number(0), beta=number(0),
        total=Kind("a number", lambda x, sizes: type(x) is float and x == x), taken=count,
    ),
    "Cusum": entry(
        lambda: import_module("likely.decision.sequential.cusum").Cusum, threshold=number(0),
        total=Kind("a number from 0", lambda x, sizes: type(x) is float and x >= 0),
    ),
    "RaceBelief": entry(
        lambda: import_module("likely.decision.sequential.race").RaceBelief,
        log_probs=Kind("log-probabilities", lambda x, sizes: isinstance(x, np.ndarray) and x.dtype == np.float64
                       and x.ndim == 1 and bool((x < np.inf).all())),
        beliefs=items(belief),
    ),
    "Progress": entry(
        lambda: import_module("likely.core.fit_checkpoint").Progress, model=density,
        prior=maybe(prior), trace=numbers("?"), held_out=numbers("?"), best=maybe(density), weight=number(0),
        reason=text(), converged=flag, early=flag, standing=flag,
    ),
    "MixturePrior": entry(
        lambda: import_module("likely.mixture.priors").MixturePrior, weights=maybe(prior), components=maybe(prior)
    ),
    "MixtureStats": entry(
        lambda: import_module("likely.mixture.mixture").MixtureStats, counts=numbers("* K", 0), components=stats,
        entropy=numbers("*"), seen=flag,
    ),
    "Floor": entry(
        lambda: import_module("likely.classify.calibration.probability_floor").Floor, log=number(), clips=flag
    ),
    "Hyperplane": entry(
        lambda: import_module("likely.decision.boundary.hyperplane").Hyperplane, normal=numbers("d"), offset=number(),
    ),
    "Boundary": entry(
        lambda: import_module("likely.decision.boundary.boundary").Boundary, first=of_class("Gaussian"),
        second=of_class("Gaussian"), offset=number(),
    ),
    "IsotonicMap": entry(
        lambda: import_module("likely.classify.calibration.calibration_maps").IsotonicMap,
        knots=numbers("M"), levels=numbers("M", 0),
        offsets=numbers("B", 0, np.int64),
    ),
    "LogisticMap": entry(
        lambda: import_module("likely.classify.calibration.calibration_maps").LogisticMap,
        slope=numbers("C C"), offset=numbers("C")
    ),
    "Temperature": entry(
        lambda: import_module("likely.classify.calibration.calibration_maps").Temperature,
        temperature=numbers("", 0), classes=whole, lapse=numbers("", 0),
    ),
    "ProbabilityTable": entry(
        lambda: import_module("likely.distributions.categorical.probability_table").ProbabilityTable,
        as_the_class_says("ProbabilityTable"), probs=numbers("?", 0), names=items(text()), levels=items(levels),
        total=maybe(number(0)),
    ),
    "ProductStats": entry(lambda: import_module("likely.distributions.product").ProductStats, components=pairs(stats)),
    "StackStats": entry(lambda: import_module("likely.distributions.stacks.stack").StackStats, components=items(stats)),
}  # fmt: skip


class Values:
    """The catalog of values, used by `nodes`."""

    def take_apart(self, thing: Any) -> tuple[str, dict[str, Any]] | None:
        """Name and fields of a value in the table; NumPy scalars from 0-d arrays become arrays again."""
        name = type(thing).__name__
        if not isinstance(thing, Value) or name not in TABLE or class_of(name) is not type(thing):
            return None
        parts = {f.name: getattr(thing, f.name) for f in fields(thing)}
        return name, {n: np.asarray(p) if isinstance(p, np.generic) else p for n, p in parts.items()}

    def build(self, name: str, parts: dict[str, Any], where: str) -> Value:
        """Check the fields against the table, then call the class's constructor."""
        if name not in TABLE:
            raise Refusal(f"{where} must be of a class that this version knows", short(name))
        cls, kinds = class_of(name), kinds_of(name)
        same_names(parts, kinds, name, where)
        sizes: Sizes = {}
        for field, kind in kinds.items():
            if not kind.fits(parts[field], sizes):
                raise Refusal(f"{field} of {where} ({name}) must be {kind.words}", _described(parts[field]))
        with np.errstate(all="ignore"):
            complaint = TABLE[name].check(parts)
            if complaint:
                raise Refusal(f"{where} is not a valid {name}: {complaint}")
            return _constructed(cls, parts, where)


@cache
def class_of(name: str) -> type[Value]:
    """The class of that name in the table, imported on first use."""
    try:
        return TABLE[name].load()
    except (ImportError, AttributeError) as error:
        raise Refusal(f"{name} must be there to be loaded", error) from error


@cache
def kinds_of(name: str) -> dict[str, Kind]:
    """The kind of each field: from the table, else from its annotation."""
    kinds = {f.name: ANNOTATED.get(str(f.type)) for f in fields(class_of(name)) if f.init} | {**TABLE[name].kinds}
    unsaid = [field for field, kind in kinds.items() if kind is None]
    if unsaid:
        raise Refusal(f"the table in likely.io.schema must say what {', '.join(unsaid)} of {name} may be")
    return {field: kind for field, kind in kinds.items() if kind is not None}


def same_names(parts: Mapping[str, Any], wanted: Any, name: str, where: str) -> None:
    """Raise an error for missing or unknown fields."""
    missing, unknown = [n for n in wanted if n not in parts], [n for n in parts if n not in wanted]
    if missing or unknown:
        got = " and ".join([f"no {n}" for n in missing] + [f"an unknown {n}" for n in unknown])
        raise Refusal(f"{where} must have the fields of a {name}", got)


def unsound(where: str, name: str, error: LikelyError) -> Refusal:
    """The refusal of fields that their class rejects, with the message of the class."""
    return Refusal(f"{where} is not a valid {name}: {str(error).removeprefix(f'{name}: ').rstrip('.')}")


def _constructed(cls: type[Value], parts: dict[str, Any], where: str) -> Value:
    if not hasattr(cls, "__post_init__"):  # the constructor checks nothing: the table has checked everything
        return cls.trusted(**parts)
    try:
        built = cls(**parts)
    except LikelyError as error:
        raise unsound(where, cls.__name__, error) from error
    except Exception as error:  # untrusted numbers: any exception means that the file is invalid
        raise Refusal(f"{where} is no {cls.__name__}", f"parts that do not fit ({type(error).__name__})") from error
    for name, part in parts.items():
        if not _same(getattr(built, name), part):
            raise Refusal(f"{name} of {where} must be as likely writes it", _described(part))
    return built


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Value) and type(a) is type(b):
        return a is b or all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return type(a) is type(b) and (a is b or bool(a == b))


def _described(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype} of shape {x.shape}" + ("" if x.size > 4 else f": {short(x.tolist())}")
    return short(x) if x is None or isinstance(x, str | int | float) else f"a {type(x).__name__}"

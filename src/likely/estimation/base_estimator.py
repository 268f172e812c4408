"""BaseEstimator: the interface of scikit-learn's estimators, with hints for names of other libraries.

It is not derived from scikit-learn's class, which takes most of a second to import: a saved model is loaded and scores
rows without it. scikit-learn asks objects for their methods and tags, not for their class.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from likely.core.arrays import Rows, Targets
from likely.core.description import Description
from likely.core.docstrings import complete
from likely.core.errors import DataError, DomainError, sentence
from likely.estimation.component import INTERNAL
from likely.estimation.parameter_constraints import Interval, for_scikit_learn, is_allowed
from likely.estimation.scikit_learn import clone

_GAUSSIAN = ("component=GaussianDensity(covariance=…)", "density=GaussianDensity(covariance=…)")
_MIXTURE = ("density=MixtureDensity(n_components=…)", "component=MixtureDensity(n_components=…)")
_PRIOR = ("prior", "density=GaussianDensity(prior=…)")
_SHRUNK = ('density=GaussianDensity("shrunk-pooled")',)

# parameters of scikit-learn, hmmlearn, statsmodels, pomegranate, tslearn → ours; of several, the first that exists
PARAMETERS: dict[str, tuple[str, ...]] = {
    "n_components": ("n_states", "n_components", "n_clusters", "n_regimes", *_MIXTURE),
    "states": ("n_states",), "n_states": ("n_regimes",), "k_states": ("n_states",),
    "regimes": ("n_regimes",), "k_regimes": ("n_regimes", "n_states"),
    "n_mix": ("n_components", *_MIXTURE[1:]), "n_clusters": ("n_components", "n_states"),
    "k": ("n_neighbors", "n_clusters"), "n_neighbours": ("n_neighbors",), "n_factors": ("n_components",),
    "covariance_type": ("covariance", *_GAUSSIAN), "tied": ("tie", "covariance"), "store_covariance": (),
    "init_params": ("init",), "initialization": ("init",), "means_init": ("init",), "weights_init": ("init",),
    "precisions_init": ("init",), "warm_start": ("init",),
    "n_iter": ("max_iter",), "max_iterations": ("max_iter",), "maxiter": ("max_iter",),
    "max_iter": ("density=GaussianDensity(max_iter=…)",), "tol": ("density=GaussianDensity(tol=…)",),
    "threshold": ("tol",), "min_covar": _PRIOR, "reg_covar": _PRIOR, "var_smoothing": ("prior",),
    "transmat_prior": ("prior",), "startprob_prior": ("prior",), "means_prior": ("prior",), "covars_prior": ("prior",),
    "weight_concentration_prior": ("prior",), "alpha": ("prior",), "pseudocount": ("prior",),
    "pseudo_count": ("prior",), "reg_param": _SHRUNK, "shrinkage": _SHRUNK,
    "priors": ("class_prior",), "class_weight": ("class_prior", "cost"), "fit_prior": ("class_prior",),
    "bw": ("bandwidth",), "bw_method": ("bandwidth",), "scale": ("relative_bandwidth=scale**0.5",),
    "n_bins": ("bins",), "binarize": ("threshold",), "df": ("dof",),
    "algorithm": ("method", "hard"), "affinity": ("metric",),
    "svd_solver": ("solver",), "solver": ("criterion",), "distribution": ("component", "density"),
    "distributions": ("component", "components"), "estimators": ("components",), "base_estimator": ("estimator",),
    "sakoe_chiba_radius": ("band",), "global_constraint": ("band",), "n_jobs": (), "seed": ("random_state",),
    "random_seed": ("random_state",),
}  # fmt: skip

# fitted attributes and methods of other libraries → ours; of several, the first that exists
_PARTS = ("model_.components", "model_.emission", "model_")
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    **{name: ("mean_", *(f"{one}.mean" for one in _PARTS)) for name in ("means_", "theta_", "location_")},
    **{
        name: ("covariance_", *(f"{one}.covariance" for one in _PARTS))
        for name in ("covariances_", "covars_", "var_", "sigma_", "precisions_", "precision_")
    },
    "transmat_": ("model_.transition",),
    "startprob_": ("model_.initial",),
    "emissionprob_": ("model_.emission.probs",),
    "weights_": ("class_prior_", "model_.weights"),
    "priors_": ("class_prior_",),
    "class_log_prior_": ("class_prior_",),
    "feature_log_prob_": ("model_.components.probs",),
    "lambdas_": ("rate_", "model_.emission.rate", "model_.components.rate"),
    "centers_": ("cluster_centers_", "model_.mean"),
    "converged_": ("report_.converged",),
    "lower_bound_": ("report_.objective",),
    "monitor_": ("report_",),
    "decode": ("model_.viterbi",),
    "aic": ("summary",),
    "bic": ("summary",),
    "loadings_": ("components_",),
    "score_": ("report_.objective",),
}
MADE_OF = {  # attributes that are a function of ours
    **dict.fromkeys(("precisions_", "precision_"), "the inverse of "),
    **dict.fromkeys(("class_log_prior_", "feature_log_prob_"), "the logarithm of "),
}


class Borrowed:
    """An attribute of scikit-learn's own `BaseEstimator`, which is imported when it is asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        import sklearn.base

        return inspect.getattr_static(sklearn.base.BaseEstimator, self.name).__get__(instance, owner)


class MetadataRequest(Borrowed):
    """`set_fit_request` and similar: which metadata (as sample weights) scikit-learn routes to a method.

    A class whose method takes none lacks the attribute.
    """

    def __get__(self, instance: Any, owner: Any) -> Any:
        from sklearn.utils._metadata_requests import RequestMethod

        method = self.name.removeprefix("set_").removesuffix("_request")
        keys = owner._get_class_level_metadata_request_values(method)
        if not keys:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self.name!r}")
        return RequestMethod(method, sorted(keys)).__get__(instance, owner)


@complete
class BaseEstimator:
    """The base class of estimators: parameters, tags and display as scikit-learn has them.

    Errors on names of other libraries give the equivalent here.

    >>> import likely as lk
    >>> lk.HMMDensity(n_components=3)
    Traceback (most recent call last):
    TypeError: HMMDensity takes no n_components=; use n_states=
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {}  # constraints of the parameters

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete(cls)
        if "__init__" in cls.__dict__:
            cls.__init__ = _with_hints(cls.__init__)  # type: ignore[method-assign]

    # --------------------------------------------------------------- parameters

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(_defaults(cls))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep`: also those of estimators among them, as name__parameter."""
        found: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
            found[name] = value
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also nested ones, as name__parameter."""
        known, nested = self.get_params(deep=True), dict[str, dict[str, Any]]()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                text = f"Invalid parameter {name!r} for estimator {self}. "
                raise ValueError(f"{text}Valid parameters are: {self._get_param_names()!r}.")
            if inner:
                nested.setdefault(name, {})[inner] = value
            else:
                setattr(self, name, value)
                known[name] = value
        for name, settings in nested.items():
            known[name].set_params(**settings)
        return self

    def _validate_params(self) -> None:
        """Raise scikit-learn's error for the first invalid parameter.

        True and False are no numbers, though Python counts them as integers.
        """
        for name, allowed in self._parameter_rules.items():
            value = getattr(self, name, None)
            if not is_allowed(value, allowed):
                from sklearn.utils._param_validation import validate_parameter_constraints

                validate_parameter_constraints(
                    self._parameter_constraints, self.get_params(deep=False), caller_name=type(self).__name__
                )
            if isinstance(value, bool) and "boolean" not in allowed and any(isinstance(a, Interval) for a in allowed):
                raise DomainError(sentence(type(self).__name__, f"{name} must be a number", value))

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        """The constraints as scikit-learn's objects: its checks and its message read them."""
        return for_scikit_learn(self._parameter_rules)

    # ------------------------------------------------------------------ display

    def __dir__(self) -> list[str]:
        """Names that users call: without private ones, those of the component protocol and those not available."""
        names = [name for name in super().__dir__() if not name.startswith("_") and name not in INTERNAL]
        return [name for name in names if hasattr(self, name)]

    def __repr__(self) -> str:
        """The class with the parameters that were set, in lines of 80 columns; the middle of a long one is left out."""
        text = printed(self)
        return text if len("".join(text.split())) <= 700 else f"{text[:350]}...{text[-350:]}"

    _repr_html_, _repr_html_inner, _repr_mimebundle_, _html_repr = Borrowed(), Borrowed(), Borrowed(), Borrowed()
    _get_params_html, _get_fitted_attr_html = Borrowed(), Borrowed()

    def column_names(self) -> list[str]:
        """The names of the columns of training; x0, x1, … for an array."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def describe(self) -> Description:
        """What was fitted, and the settings; an estimator that is not fitted has settings only."""
        settings = {name: value for name, value in self.get_params(deep=False).items() if value is not None}
        found = Description.of_fields("settings", settings)
        stored = getattr(self, "saved_attributes", ())
        fitted = {name.rstrip("_"): getattr(self, name) for name in stored if name in vars(self)}
        if not fitted:
            text = ["not fitted: these are its settings"]
            return replace(found, title=type(self).__name__, text=text)
        return Description.of_fields(type(self).__name__, fitted).plus(sections=[found])

    # --------------------------------------------------- protocol of scikit-learn

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __sklearn_clone__(self) -> Self:
        """An unfitted estimator with copies of the parameters.

        scikit-learn copies what it has set (routing, output, callbacks), and refuses constructors that change settings.
        """
        settings = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()}
        made: Self = type(self)(**settings)
        changed = any(getattr(made, name) is not value for name, value in settings.items())
        if changed or any(name.startswith(("_sk", "_metadata")) for name in vars(self)):
            import sklearn.base

            made = sklearn.base.BaseEstimator.__sklearn_clone__(self)
        return made

    get_metadata_routing, _get_metadata_request = Borrowed(), Borrowed()
    _get_class_level_metadata_request_values = Borrowed()
    set_fit_request, set_partial_fit_request = MetadataRequest(), MetadataRequest()
    set_predict_request, set_predict_proba_request = MetadataRequest(), MetadataRequest()
    set_predict_log_proba_request, set_decision_function_request = MetadataRequest(), MetadataRequest()
    set_transform_request, set_inverse_transform_request = MetadataRequest(), MetadataRequest()
    set_score_request = MetadataRequest()

    def __getattr__(self, name: str) -> Any:
        """Called for missing attributes only, so that nothing else is slower."""
        if hasattr(type(self), name):  # a property that failed: show its own error
            object.__getattribute__(self, name)
        ours = next((path for path in ATTRIBUTES.get(name, ()) if _leads_somewhere(self, path)), None)
        hint = "" if ours is None else f"; here it is {MADE_OF.get(name, '')}{ours}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)


class ClassifierMixin:
    """Mixin for classifiers: tags, and accuracy as the score."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose predicted class is the label."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.target_tags.required = True
        return tags


@complete
class RegressorMixin:
    """Mixin for regressors: tags, and R² as the score."""

    def score(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination R² of the predictions."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required = True
        return tags


def _defaults(cls: Any) -> dict[str, Any]:
    """The parameters of a constructor with their defaults, by name; none if the class has no constructor."""
    if cls.__init__ is object.__init__:
        return {}
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return {p.name: p.default for p in sorted(parameters, key=lambda p: p.name) if p.kind is not p.VAR_KEYWORD}


def printed(value: Any, column: int = 0, behind: int = 0) -> str:
    """The repr of a value that begins in a column, before so many closing brackets; of estimators in several lines.

    >>> import likely as lk
    >>> print(printed(lk.HMMDensity(lk.GaussianDensity("diagonal", prior=None), 3), 40))
    HMMDensity(component=GaussianDensity(covariance='diagonal',
                                                                             prior=None),
                                                       n_states=3)
    """
    if not isinstance(value, BaseEstimator):
        return repr(value)
    parts = {f"{name}=": one for name, one in _shown(value).items()}
    text = f"{type(value).__name__}({', '.join(name + printed(one, -(10**6)) for name, one in parts.items())})"
    if column + len(text) + behind <= 80:
        return text
    text = f"{type(value).__name__}("
    indent = end = column + len(text)
    for i, (name, one) in enumerate(parts.items()):
        more = behind + 1 if i == len(parts) - 1 else 1  # brackets, or a comma
        flat = name + printed(one, -(10**6))
        if i and end + 2 + len(flat) + more > 80:
            text, end = f"{text},\n{' ' * indent}", indent
        elif i:
            text, end = f"{text}, ", end + 2
        text += flat if end + len(flat) + more <= 80 else name + printed(one, end + len(name), more)
        end += len(flat)
    return f"{text})"


def _shown(estimator: Any) -> dict[str, Any]:
    """The parameters that are not their defaults, or all of them where scikit-learn is configured so."""
    from sklearn import get_config

    usual, given = _defaults(type(estimator)), estimator.get_params(deep=False)
    whole = not get_config()["print_changed_only"]
    return {name: value for name, value in given.items() if whole or repr(value) != repr(usual[name])}


def check_is_fitted(estimator: Any, *attributes: str) -> None:
    """Raise scikit-learn's NotFittedError before fitting; `attributes` are those that must exist, by default any."""
    if not is_fitted(estimator, *attributes):
        from sklearn.exceptions import NotFittedError

        text = "instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        raise NotFittedError(f"This {type(estimator).__name__} {text}")


def is_fitted(estimator: Any, *attributes: str) -> bool:
    """Whether an estimator was fitted: it has these attributes, or by default any whose name ends in an underscore."""
    if attributes:
        return all(hasattr(estimator, name) for name in attributes)
    if hasattr(estimator, "__sklearn_is_fitted__"):
        return bool(estimator.__sklearn_is_fitted__())
    return any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))


@contextmanager
def whole_or_nothing(estimator: Any) -> Iterator[None]:
    """Context manager of a fit: where it fails, the estimator stays what it was."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def whole_state(estimator: Any, *optional: str) -> bool:
    """Whether all fitted attributes were read; False if none was, an error if some are missing."""
    must = [name for name in estimator.saved_attributes if name not in ("feature_names_in_", *optional)]
    there = [name in vars(estimator) for name in must]
    if any(there) and not all(there):
        lacking = must[there.index(False)]
        raise DataError(sentence(type(estimator).__name__, "all fitted attributes must be present", f"no {lacking}"))
    return all(there)


def _with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor whose error on an unknown parameter gives the equivalent here."""

    signature = inspect.signature(init)
    known = [p.name for p in list(signature.parameters.values())[1:] if p.kind is not p.VAR_KEYWORD]
    takes_any = len(known) + 1 < len(signature.parameters)

    @functools.wraps(init)  # keeps the signature
    def __init__(self: Any, *args: Any, **settings: Any) -> None:
        unknown = [] if takes_any else [name for name in settings if name not in known]
        if unknown:
            raise TypeError("; ".join(_hints(type(self).__name__, unknown, known)))
        init(self, *args, **settings)

    return __init__


def _hints(whose: str, unknown: list[str], known: list[str]) -> Iterator[str]:
    for name in unknown:
        ours = next((one for one in PARAMETERS.get(name, ()) if one.partition("=")[0] in known), None)
        if ours is None:
            ours = next(iter(get_close_matches(name, known, n=1)), None)
        use = f"its parameters are {', '.join(known)}" if ours is None else f"use {ours if '=' in ours else f'{ours}='}"
        yield f"{whose} takes no {name}=; {use}"


def _leads_somewhere(thing: Any, path: str) -> bool:
    """Whether a dotted attribute path exists."""
    try:
        functools.reduce(getattr, path.split("."), thing)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return False
    return True

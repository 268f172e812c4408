"""BaseEstimator: scikit-learn's base class with hints for parameter and attribute names of other libraries."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import sklearn.base
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from likely.core.description import Description
from likely.core.errors import DataError, DomainError, sentence
from likely.estimation.component import INTERNAL

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


class BaseEstimator(sklearn.base.BaseEstimator):  # type: ignore[misc, unused-ignore]
    """scikit-learn's `BaseEstimator`, whose errors on unknown names give the equivalent here.

    >>> import likely as lk
    >>> lk.HMMDensity(n_components=3)
    Traceback (most recent call last):
    TypeError: HMMDensity takes no n_components=; use n_states=
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = _with_hints(cls.__init__)  # type: ignore[method-assign]

    def __dir__(self) -> list[str]:
        """Names that users call: without private ones and those of the component protocol."""
        return [name for name in super().__dir__() if not name.startswith("_") and name not in INTERNAL]

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

    def _validate_params(self) -> None:
        """scikit-learn's validation; True and False are no numbers, though Python counts them as integers."""
        super()._validate_params()
        for name, allowed in self._parameter_constraints.items():
            value = getattr(self, name, None)
            if isinstance(value, bool) and "boolean" not in allowed and any(isinstance(a, Interval) for a in allowed):
                raise DomainError(sentence(type(self).__name__, f"{name} must be a number", value))

    def __getattr__(self, name: str) -> Any:
        """Called for missing attributes only, so that nothing else is slower."""
        if hasattr(type(self), name):  # a property that failed: show its own error
            object.__getattribute__(self, name)
        ours = next((path for path in ATTRIBUTES.get(name, ()) if _leads_somewhere(self, path)), None)
        hint = "" if ours is None else f"; here it is {MADE_OF.get(name, '')}{ours}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator was fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


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

"""Values and estimators of model files: their parts by name, and their construction from untrusted parts.

The parts of a value are its fields, which must be as declared (`core.declared`); the class's own constructor has the
last word. The parts of an estimator are its parameters and its `saved_attributes`; `check_state` has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache, cached_property
from inspect import signature
from typing import Any

import numpy as np

from likely.core import declared
from likely.core.errors import LikelyError
from likely.core.value import Value
from likely.io.container import Refusal, short
from likely.io.registry import class_for, class_of

# Fitted attributes by name: the same name has the same kind everywhere. Attributes that are not listed are values,
# which their own classes check, or are checked by their estimator.
LEARNED = {
    "n_features_in_": declared.positive, "n_covariates_in_": declared.count, "n_clusters_": declared.positive,
    "n_neighbors_": declared.positive, "n_iter_": declared.count, "feature_names_in_": declared.names,
    "classes_": declared.distinct, "class_prior_": declared.numbers("C", 0), "class_count_": declared.numbers("C", 0),
    "rows_": declared.rows, "frames_": declared.rows, "sample_": declared.rows,
    "sample_weight_": declared.numbers("n", 0), "weight_": declared.numbers("n", 0),
    "labels_": declared.numbers("n", 0, np.int64), "prototype_indices_": declared.numbers("m", 0, np.int64),
    "order_": declared.numbers("k", 0, np.int64), "offsets_": declared.numbers("o", 0, np.int64),
    "is_online_": declared.flag, "takes_arrays_": declared.flag, "method_": declared.text(),
    "schema_": declared.text(), "card_": declared.text(), "shrinkage_": declared.numbers("K", 0, high=1.0),
    "shrinkage_method_": declared.text(),
}  # fmt: skip


def refuse_learned(learned: Mapping[str, Any], where: str) -> None:
    """Raise an error unless fitted attributes have the kinds of their names; letters of shapes hold for all of them."""
    sizes: declared.Sizes = {}
    for name, thing in learned.items():
        if name in LEARNED and not LEARNED[name].fits(thing, sizes):
            raise Refusal(f"{name} of {where} must be {LEARNED[name].words}", _described(thing))


def take_apart(thing: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and parts of a value or an estimator that files may hold; None for anything else."""
    name, cls = type(thing).__name__, class_for(thing)
    if cls is None:
        return None
    if isinstance(thing, Value):
        parts = {f.name: getattr(thing, f.name) for f in fields(thing)}
        return name, {n: np.asarray(p) if isinstance(p, np.generic) else p for n, p in parts.items()}
    why = cls.why_not_saved(thing) if hasattr(cls, "why_not_saved") else None
    if why is not None:
        raise Refusal(*why)
    fitted = hasattr(thing, "model_")
    later = {n for n in cls.saved_attributes if fitted and isinstance(getattr(cls, n, None), cached_property)}
    learned = {n: getattr(thing, n) for n in cls.saved_attributes if n in vars(thing) or n in later}
    settings = getattr(thing, "file_settings", lambda: thing.get_params(deep=False))()
    return name, {**settings, **learned}


def build(name: str, parts: dict[str, Any], where: str) -> Any:
    """The value or estimator of these parts; anything wrong is a Refusal."""
    cls = class_of(name)
    if cls is None:
        expected = f"{where} must be of a class that this version knows, or that lk.extend.register has made known"
        raise Refusal(expected, short(name))
    return _value(cls, parts, where) if issubclass(cls, Value) else _estimator(cls, parts, where)


def _value(cls: type[Value], parts: dict[str, Any], where: str) -> Value:
    """A value whose fields are as declared and together pass `inconsistency` and the constructor."""
    name = cls.__name__
    same_names(parts, declared.declarations(cls), name, where)
    odd = declared.complaint(cls, parts)
    if odd is not None:
        raise Refusal(f"{odd[0]} of {where} ({name}) must be {odd[1]}", _described(parts[odd[0]]))
    with np.errstate(all="ignore"):
        why = cls.inconsistency(parts)
        if why:
            raise Refusal(f"{where} is not a valid {name}: {why}")
        return _constructed(cls, parts, where)


def _estimator(cls: Any, parts: dict[str, Any], where: str) -> Any:
    name = cls.__name__
    learned = {n: parts.pop(n) for n in cls.saved_attributes if n in parts}
    same_names(parts, _settings(cls), name, where)
    refuse_learned(learned, where)
    try:
        with np.errstate(all="ignore"):
            estimator = cls(**parts)
            _refuse_settings(estimator, parts, where)
            vars(estimator).update(learned)
            getattr(estimator, "check_state", lambda: None)()
    except Refusal:
        raise
    except LikelyError as error:
        raise unsound(where, name, error) from error
    except Exception as error:  # untrusted settings: any exception means that the file is invalid
        raise Refusal(f"{where} is no {name}", f"parts that do not fit ({type(error).__name__})") from error
    return estimator


def _refuse_settings(estimator: Any, settings: dict[str, Any], where: str) -> None:
    """Raise an error for invalid parameters, with the name from scikit-learn's message."""
    if not hasattr(type(estimator), "_parameter_constraints"):  # then `check_state` checks them
        return
    try:
        estimator._validate_params()
    except LikelyError:
        raise
    except ValueError as error:
        found = re.search(r"'(\w+)' parameter", str(error))
        name = found[1] if found else ""
        expected = f"{name or 'the settings'} of {where} must be such as {type(estimator).__name__} takes"
        raise Refusal(expected, short(settings.get(name))) from None


@cache
def _settings(cls: Any) -> tuple[str, ...]:
    return tuple(signature(cls).parameters)


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

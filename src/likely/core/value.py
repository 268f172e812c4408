"""Base class of immutable values: frozen dataclasses of read-only arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from likely.core.arrays import Array, frozen
from likely.core.docstrings import complete

if TYPE_CHECKING:
    from likely.core.description import Description

T = TypeVar("T")


# Public names of values that the library itself uses, and users do not: `dir` leaves them out.
INTERNAL = frozenset({
    "as_columns", "blank", "corrected", "estimated_from", "field_values", "fixed_parameters", "for_prior", "form",
    "has_finite_moments", "hides_labels", "hyperparameters", "in_kind", "in_words", "inconsistency", "joined_stats",
    "location_words", "log_joint_block", "log_prob_block", "log_responsibilities", "log_smoothing", "mean_durations",
    "member_facts", "merged", "objective_name", "of_sequences", "one_distribution", "parameters_seen_in",
    "placed_by", "predicted_observation", "prepare", "prior_in_kind", "serves", "statistics_in_kind",
    "take", "takes_parts", "trusted", "without_constant",
})  # fmt: skip


@complete
@dataclass(frozen=True, eq=False)
class Value:
    """Base class of distributions, statistics and priors: an immutable record of read-only arrays.

    The public constructor of a subclass validates its arguments; `trusted` builds the same
    record without validation, for code that computed the numbers itself. Copies and pickles go
    through `trusted`, because NumPy would return writable arrays.

    **Caches** are declared and follow from the fields: a `functools.cached_property` of the class, which `fill_cache`
    fills where the result is at hand, or `derived`, what another module computes once per value. Caches are neither
    copied nor saved, and `replace` starts without them. Nothing else writes to a value.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        complete(cls)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # in the class itself, or @dataclass writes its own

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Build a value from its fields without validation."""
        self = object.__new__(cls)
        self._set(**fields)
        return self

    def __dir__(self) -> list[str]:
        """Names that users call: without private ones and those that only the library uses."""
        return [name for name in super().__dir__() if not name.startswith("_") and name not in INTERNAL]

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """What is wrong with fields of a file that are each as declared, but do not fit together; "" if nothing."""
        return ""

    def replace(self, **fields: Any) -> Self:
        """A copy with the given fields replaced, without validation."""
        return self.trusted(**{**self.field_values(), **fields})

    def field_values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _set(self, **fields: Any) -> None:
        """Store validated, normalized fields (for `__post_init__` of subclasses)."""
        stored = self.__dict__  # not object.__setattr__: particle filters make thousands of values per second
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = frozen(value)
            elif isinstance(value, np.floating):
                value = frozen(np.asarray(value))  # sums of 0-d arrays are scalars: make them arrays again
            stored[name] = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.field_values())

    def describe(self) -> Description:
        """What the value holds: numbers and small arrays as facts, nested values as sections."""
        from likely.core.description import Description

        return Description.of_fields(type(self).__name__, self.field_values())

    def _repr_html_(self) -> str:
        return self.describe().to_html()

    def __repr__(self) -> str:
        defaults = {f.name: f.default for f in fields(self) if f.default is None or isinstance(f.default, str)}
        shown = {
            name: value
            for name, value in self.field_values().items()
            if not _is_default(value, defaults.get(name, MISSING))
        }
        return f"{type(self).__name__}({', '.join(f'{name}={_short(value)}' for name, value in shown.items())})"


def fill_cache(value: T, **results: Any) -> T:
    """The same object, with cached properties of its class filled by results that are known already.

    >>> from likely.distributions.gaussian.gaussian import Gaussian
    >>> fill_cache(Gaussian([1.0], 1.0), origin=np.zeros(1)).origin
    array([0.])
    """
    for name, result in results.items():
        if not isinstance(getattr(type(value), name, None), cached_property):
            raise TypeError(f"{type(value).__name__} declares no cached property {name!r}")
        value.__dict__[name] = result
    return value


def derived(value: Any, make: Callable[[Any], T]) -> T:
    """make(value), computed once per value and kept as long as it lives; `make` is a function or a class."""
    found: dict[Any, T] = value.__dict__.setdefault("_derived", {})
    if make not in found:
        found[make] = make(value)
    return found[make]


def _rebuild(cls: type[Value], field_values: dict[str, Any]) -> Value:
    return cls.trusted(**field_values)


def _is_default(value: Any, default: Any) -> bool:
    """Whether the value is the field's default, where the default is None or a string."""
    return value is None if default is None else isinstance(value, str) and value == default


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 16:
        return f"<{'×'.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, separator=", ", max_line_width=10_000).replace("\n", "")
    return repr(value)


__all__ = ["Array", "Value", "derived", "fill_cache"]

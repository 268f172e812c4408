"""A value: named arrays that never change. Improving one returns another."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

import numpy as np

from likely.core.arrays import Array, frozen


@dataclass(frozen=True, eq=False)
class Value:
    """The base of every distribution, statistic and prior: a frozen record of read-only arrays.

    The public constructor of a subclass checks what it is given; `trusted` builds the same
    record without a look, for code that made the numbers itself. Copies and pickles go through
    `trusted`, because NumPy would hand the arrays back writable.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # in the class itself, or @dataclass writes its own

    @classmethod
    def trusted(cls, **parts: Any) -> Self:
        """Build without checks from parts that are known to be right."""
        self = object.__new__(cls)
        self._set(**parts)
        return self

    def replace(self, **parts: Any) -> Self:
        """The same value with some parts exchanged, unchecked."""
        return self.trusted(**{**self._parts(), **parts})

    def _parts(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _set(self, **parts: Any) -> None:
        """For `__post_init__` of subclasses: store the checked, normalized parts."""
        mine = self.__dict__  # not object.__setattr__: clouds of particles make thousands of values a second
        for name, part in parts.items():
            if isinstance(part, np.ndarray):
                part = frozen(part)
            elif isinstance(part, np.floating):
                part = frozen(np.asarray(part))  # sums of 0-d arrays are scalars: make them arrays again
            mine[name] = part

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._parts())

    def __repr__(self) -> str:
        usual = {f.name: f.default for f in fields(self) if f.default is None or isinstance(f.default, str)}
        told = {name: part for name, part in self._parts().items() if not _is_usual(part, usual.get(name, MISSING))}
        return f"{type(self).__name__}({', '.join(f'{name}={_short(part)}' for name, part in told.items())})"


def _rebuild(cls: type[Value], parts: dict[str, Any]) -> Value:
    return cls.trusted(**parts)


def _is_usual(part: Any, usual: Any) -> bool:
    """True for a word, or None, that stands there unless something else is said."""
    return part is None if usual is None else isinstance(part, str) and part == usual


def _short(part: Any) -> str:
    if isinstance(part, np.ndarray) and part.size > 16:
        return f"<{'×'.join(map(str, part.shape))} {part.dtype}>"
    if isinstance(part, np.ndarray):
        return np.array2string(part, precision=4, separator=", ", max_line_width=10_000).replace("\n", "")
    return repr(part)


__all__ = ["Array", "Value"]

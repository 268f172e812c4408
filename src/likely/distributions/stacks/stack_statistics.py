"""Concatenation of statistics of parts of a stack to those of the whole stack."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from likely.distributions.product import Product, ProductStats
from likely.distributions.stacks.stack import Stack, StackStats
from likely.distributions.stacks.tied import Tied


def joined(distribution: Any, parts: list[Any]) -> Any:
    """Statistics of all members, concatenated from those of `distribution.take(index)` for consecutive members."""
    if isinstance(distribution, Tied) and distribution.what == "all":
        return reduce(add, parts)  # tied members share one statistic
    if isinstance(distribution, Tied):
        return joined(distribution.components, parts)
    if isinstance(distribution, Product):
        return ProductStats(
            tuple((name, joined(part, [s[name] for s in parts])) for name, part in distribution.components)
        )
    if isinstance(distribution, Stack):
        return StackStats(tuple(s for part in parts for s in part.components))
    if hasattr(distribution, "joined_stats"):
        return distribution.joined_stats(parts)
    return _stacked(parts)


def _stacked(parts: list[Any]) -> Any:
    """Statistics as one stack: arrays with one entry per member are concatenated, common fields stay."""
    names = [p.field_values() for p in parts]
    out = {name: _concatenated(name, parts, [p[name] for p in names]) for name in names[0]}
    return parts[0].trusted(**out)


def _concatenated(name: str, parts: list[Any], values: list[Any]) -> Any:
    if name == "origin":
        return values[0]
    if name == "shift":  # one origin for all
        return np.concatenate([p.moved(parts[0].origin) for p in parts])
    if isinstance(values[0], bool):
        return all(values)
    if name == "seen" and any(v is not None for v in values):
        return np.concatenate([p.observed for p in parts])
    return None if values[0] is None else np.concatenate(values)

"""How far two statistics, priors or models are from each other, each number in its own units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.statistics.positive_sums import PositiveSums
from likely.distributions.student_t.scale_statistics import ScaleSums
from likely.distributions.transforms.transformed import TransformedStats


def arrays_of(value: Any) -> list[np.ndarray]:
    """All numbers inside a value, depth first, as arrays."""
    if is_dataclass(value):
        return [a for f in fields(value) for a in arrays_of(getattr(value, f.name))]
    if isinstance(value, tuple | list):
        return [a for part in value for a in arrays_of(part)]
    if isinstance(value, dict):
        return [a for part in value.values() for a in arrays_of(part)]
    if isinstance(value, np.ndarray | float | int | np.number):
        return [np.asarray(value)]
    return []


def bits(value: Any) -> bytes:
    """Everything inside a value, as bytes."""
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays_of(value))


def gap(a: Any, b: Any, model: Any = None) -> float:
    """The largest difference between two values of one kind.

    Weights are compared to weights, means and scatters to the spread of the data, which `model` tells for
    data that are too few to show any (one row has no scatter of its own); sums whose terms have both signs to the sizes
    of these terms; all else to its largest entry.
    """
    assert type(a) is type(b)
    if isinstance(a, Moments | ColumnMoments):
        return _moments_gap(a, b, spread(model))
    if isinstance(a, PositiveSums):
        return _positive_gap(a, b, spread(model))
    if is_dataclass(a):
        terms = _sizes_of_terms(a)
        return largest(
            _relative(getattr(a, f.name), getattr(b, f.name), terms[f.name])
            if f.name in terms
            else gap(getattr(a, f.name), getattr(b, f.name), model)
            for f in fields(a)
        )
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        inside = parts(model) or [model] * len(a)
        return largest(gap(p, q, m) for p, q, m in zip(a, b, inside, strict=True))
    if isinstance(a, np.ndarray | float | int | np.number) and not isinstance(a, bool):
        return _relative(np.asarray(a, float), np.asarray(b, float))
    assert a == b
    return 0.0


def largest(gaps: Iterable[float]) -> float:
    """The largest of all; NaN if one is NaN, which Python's own `max` would hide."""
    return float(np.max([0.0, *gaps]))


def parts(model: Any) -> list[Any]:
    """What a composite model is made of."""
    inside = getattr(model, "components", ())
    return list(inside) if isinstance(inside, tuple) else []


def spread(model: Any) -> Any:
    """Variances of the columns, as the model has them; a pair is a named part."""
    if isinstance(model, tuple):
        model = model[1]
    if not isinstance(getattr(model, "components", ()), tuple):
        model = model.components  # a Shared's stack
    return getattr(model, "variance", 0.0)


def _sizes_of_terms(stats: Any) -> dict[str, float]:
    """Sums over rows whose terms have both signs, with Σ w |term|, which bounds their rounding where terms cancel."""
    if isinstance(stats, ScaleSums):  # ½ Σ w o log r, and |log r| ≤ |r − 1| + (r − 1 − log r)
        entries = 1 if stats.near.shape == stats.entries.shape else stats.entries.shape[-1]  # with one r
        return {"level": 0.5 * entries * float((stats.near + stats.far + stats.excess).max())}
    if isinstance(stats, TransformedStats):  # Σ w log |det|: about one nat per row, of the rows of a mean member
        return {"slope": stats.total_weight / stats.slope.size}
    return {}


def _relative(a: np.ndarray, b: np.ndarray, least: float = 0.0) -> float:
    """The largest difference relative to the largest entry, or to `least` where that is larger."""
    assert a.shape == b.shape
    scale = np.abs(a).max(initial=least)
    return float(np.abs(a - b).max(initial=0.0) / (scale or 1.0))


def _moments_gap(a: Any, b: Any, variance: Any) -> float:
    full = isinstance(a, Moments)
    assert a.weight.shape == b.weight.shape and a.scatter.shape == b.scatter.shape
    assert full is False or a.complete == b.complete
    by = np.maximum(a.weight, b.weight)[..., None] if full else np.maximum(a.weight, b.weight)
    shift = np.where(by > 0, b.shift + (b.origin - a.origin), a.shift)  # seen from a's origin
    # the unit is the second moment about the origin, which is the model's mean, so near the data, and the
    # model's own variance; where two origins differ, their distance is part of it
    scatter = np.maximum(*(np.diagonal(s.scatter, axis1=-2, axis2=-1) if full else s.scatter for s in (a, b)))
    far = np.abs(a.shift) + np.abs(b.origin - a.origin)
    square = np.maximum(scatter, 0.0) + by * (far**2 + variance)
    size = np.sqrt(np.divide(square, by, out=np.zeros_like(square), where=by > 0))
    out = [_in_units(a.weight - b.weight, np.maximum(a.weight, b.weight)), _in_units(shift - a.shift, size + far)]
    out.append(
        _in_units(a.scatter - b.scatter, np.sqrt(square[..., :, None] * square[..., None, :]) if full else square)
    )
    if full:
        out.append(_relative(a.entropy, b.entropy))
    else:
        out.append(_in_units(a.rows - b.rows, np.maximum(a.rows, b.rows)))
    return largest(out)


def _positive_gap(a: PositiveSums, b: PositiveSums, variance: Any) -> float:
    """What mean logs lack is half a squared relative spread a row: that of the data, and the model's own."""
    unit = a.lack + b.lack + a.weight * (variance / a.mean**2)
    parts = [_in_units(getattr(a, n) - getattr(b, n), np.abs(getattr(a, n))) for n in ("rows", "weight", "mean")]
    return largest([*parts, _in_units(a.lack - b.lack, unit)])


def _in_units(difference: np.ndarray, unit: np.ndarray) -> float:
    difference = np.abs(difference)
    ratio = np.divide(difference, unit, out=np.where(difference > 0, np.inf, 0.0), where=unit > 0)
    return float(ratio.max(initial=0.0))

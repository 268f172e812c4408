"""Descriptions of state-space models: equations, matrices, initial state, decision rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.cli.console import columns
from likely.statespace.linear.result_repr import counted

WIDEST = 6  # rows and columns of a matrix that is written out
REGIMES = 12  # that are told of
MATRICES = ("transition", "process_covariance", "observation", "observation_covariance", "control", "feedthrough")
TIMED = ("drift", "diffusion", "observation", "observation_covariance")


def linear_account(model: Any) -> Iterator[str]:
    """A `LinearGaussian`: one state per frame."""
    yield f"a linear-Gaussian model: {_size(model)}"
    yield _equations(model)
    if model.length is not None:
        yield f"its matrices change with time: there are {counted(model.length, 'frame')} of them"
    yield from _start(model)
    yield ""
    yield from _matrices(model, MATRICES)


def continuous_account(model: Any) -> Iterator[str]:
    """A `LinearSDE`: a state at any time."""
    yield f"a linear-Gaussian model in continuous time: {_size(model)}"
    yield "dx = drift·x dt + noise of spectral density diffusion; y = observation·x + observation noise"
    yield from _start(model)
    yield "each observation needs its time: `likely follow --time COL`, model.smooth(y, times)"
    yield ""
    yield from _matrices(model, TIMED)


def switching_account(model: Any) -> Iterator[str]:
    """A `SwitchingLinearGaussian`: which regime is on, and what differs between them."""
    yield f"a switching linear-Gaussian model: {counted(model.n_regimes, 'regime')}, {_size(model)}"
    yield _equations(model.regimes[0]) + "; the matrices are those of the regime that is on"
    yield ""
    yield from _chain(model)
    yield ""
    yield from _of_regimes(model.regimes)


def linear_density_account(estimator: Any) -> Iterator[str]:
    """A fitted `LinearGaussianDensity`: its summary, and the whole model."""
    yield str(estimator.summary())
    yield ""
    yield from linear_account(estimator.model_)


def switching_density_account(estimator: Any) -> Iterator[str]:
    """A fitted `SwitchingDensity`: its summary, and the whole model."""
    yield str(estimator.summary())
    yield ""
    yield from switching_account(estimator.model_)


# ---------------------------------------------------------------------- recognizers


def monitor_account(monitor: Any) -> Iterator[str]:
    """A fitted `FaultMonitor`: sensors and alarm rule."""
    yield "a fault monitor of sensors: P(fault), and an alarm by expected cost"
    yield monitor.summary()
    yield f"a fault starts with probability {monitor.hazard:g}, and ends with {monitor.repair:g}"
    if monitor.cost_false is not None and monitor.cost_missed is not None:
        yield f"a false alarm costs {monitor.cost_false:g} per frame, a missed fault {monitor.cost_missed:g}"
    else:
        yield f"the threshold was set for alarms in {100 * monitor.false_alarm_rate:.3g} % of normal frames"
    names = [str(name) for name in getattr(monitor, "feature_names_in_", ())]
    if names:
        yield f"sensors: {', '.join(names[:30])}" + (f" … and {len(names) - 30} more" if len(names) > 30 else "")
    yield "`likely follow` writes p(fault), alarm and the sensor with the largest contribution"


def tracker_account(tracker: Any) -> Iterator[str]:
    """A `Tracker`: motion model, measurements, and when a track is confirmed."""
    rule = tracker.association
    learned = ", noise estimated from tracks" if hasattr(tracker, "spectral_density_") else ""
    yield f"a tracker of one target in {counted(rule.model.dim, 'dimension')}{learned}"
    if rule.clutter_density == 0:
        yield "without clutter: every measurement is from the target"
    else:
        yield f"in clutter of {rule.clutter_density:g} per scan and unit of volume"
        yield f"gate {rule.gate:g}, birth odds {rule.birth_odds:g}"
    survival = f"survival probability {rule.survival_probability:g}"
    yield f"detection probability {rule.detection_probability:g} per scan, {survival}"
    yield f"a track is confirmed when P(exists) reaches {rule.confirm_above:g}, and lost below {rule.lose_below:g}"
    yield ""
    yield from _motion(rule.model)


def _motion(model: Any) -> Iterator[str]:
    found = {"LinearGaussian": linear_account, "LinearSDE": continuous_account}.get(type(model).__name__)
    if found is None:
        yield f"motion model: {type(model).__name__}"
        return
    first, *rest = found(model)
    yield f"motion model: {first}"
    yield from rest


# --------------------------------------------------------------------------- pieces


def _size(model: Any) -> str:
    inputs = getattr(model, "n_inputs", 0)
    more = f", {counted(inputs, 'input')}" if inputs else ""
    return f"{counted(model.states, 'state')}, {counted(model.dim, 'column')}{more}"


def _equations(model: Any) -> str:
    pushed = "" if model.control is None else " + control·u[t]"
    fed = "" if model.feedthrough is None else " + feedthrough·u[t]"
    return f"x[t] = transition·x[t−1]{pushed} + process noise, y[t] = observation·x[t]{fed} + observation noise"


def _start(model: Any) -> Iterator[str]:
    """Description of the initial distribution."""
    unknown = 0 if model.diffuse is None else int(model.diffuse.shape[1])
    if unknown == model.states:
        yield "diffuse initial distribution"
        return
    if unknown:
        yield f"the initial distribution is diffuse in {unknown} of {model.states} directions"
    sd = np.sqrt(np.diagonal(model.initial_covariance))
    yield f"the initial state has mean {_numbers(model.initial_mean)} and standard deviation {_numbers(sd)}"


def _matrices(model: Any, names: tuple[str, ...], indent: str = "  ") -> Iterator[str]:
    for name in names:
        a = getattr(model, name)
        if a is not None:
            yield from written(name, a, indent)


def written(name: str, a: Any, indent: str = "  ") -> Iterator[str]:
    """A matrix row by row if it is small; else its shape and its diagonal or range.

    >>> print(*written("process_covariance", np.array([[0.25, 0.5], [0.5, 1.0]])), sep="\\n")
      process_covariance  0.25  0.5
                           0.5    1
    >>> print(*written("transition", np.eye(9)), sep="\\n")
      transition  9×9, diagonal 1 1 1 1 1 1 …
    """
    if a.ndim == 3:
        yield f"{indent}{name}  one per frame, {'×'.join(map(str, a.shape[1:]))}, from {a.min():.6g} to {a.max():.6g}"
    elif max(a.shape) <= WIDEST:
        cells = [[name if not i else "", *(f"{x + 0.0:.6g}" for x in row)] for i, row in enumerate(a.tolist())]
        yield from (indent + line for line in columns(cells, right=tuple(range(1, len(cells[0])))).split("\n"))
    else:
        square = a.shape[0] == a.shape[1]
        told = f"diagonal {_numbers(np.diagonal(a))}" if square else f"from {a.min():.6g} to {a.max():.6g}"
        yield f"{indent}{name}  {'×'.join(map(str, a.shape))}, {told}"


def _numbers(a: Any) -> str:
    shown = " ".join(f"{x + 0.0:.6g}" for x in np.ravel(a)[:WIDEST].tolist())
    return shown + (" …" if np.size(a) > WIDEST else "")


def _chain(model: Any) -> Iterator[str]:
    K = min(model.n_regimes, REGIMES)
    with np.errstate(divide="ignore"):
        stay = 1.0 / (1.0 - np.minimum(np.diagonal(model.transition), 1.0))
    rows = [["", "regime", "begins", "mean duration", *(f"to {j}" for j in range(K))]]
    for k in range(K):
        moves = [f"{p:.4g}" for p in model.transition[k, :K].tolist()]
        rows.append(["", str(k), f"{model.initial[k]:.4g}", f"{stay[k]:.4g}", *moves])
    yield columns(rows, right=tuple(range(1, len(rows[0]))))
    if model.n_regimes > K:
        yield f"  … and {model.n_regimes - K} more regimes"


def _of_regimes(regimes: Any) -> Iterator[str]:
    """Matrices shared by all regimes once, the others per regime."""
    there = [name for name in MATRICES if getattr(regimes[0], name) is not None]
    shared = [name for name in there if _all_equal([getattr(m, name) for m in regimes])]
    if shared:
        yield "all regimes"
        yield from _matrices(regimes[0], tuple(shared))
    own = tuple(name for name in there if name not in shared)
    for k, regime in enumerate(regimes[:REGIMES] if own else ()):
        yield f"regime {k}"
        yield from _matrices(regime, own)


def _all_equal(matrices: list[Any]) -> bool:
    return all(a is not None and np.array_equal(a, matrices[0]) for a in matrices)

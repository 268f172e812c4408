"""Descriptions of linear state-space models: equations, matrices, initial state, regimes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.core.description import Description, DescriptionTable, counted, entries, first_numbers

MATRICES = ("transition", "process_covariance", "observation", "observation_covariance", "control", "feedthrough")


def linear_description(model: Any) -> Description:
    """A `LinearGaussian`: one state per frame."""
    text = [f"a linear-Gaussian model: {_size(model)}", _equations(model)]
    if model.length is not None:
        text.append(f"its matrices change with time: there are {counted(model.length, 'frame')} of them")
    return Description(type(model).__name__, [*text, *_initial(model)], _matrices(model, MATRICES))


def sde_description(model: Any) -> Description:
    """A `LinearSDE`: a state at any time."""
    text = [
        f"a linear-Gaussian model in continuous time: {_size(model)}",
        "dx = drift·x dt + noise of spectral density diffusion; y = observation·x + observation noise",
        *_initial(model),
        "each observation needs its time: `likely follow --time COL`, model.smooth(y, times)",
    ]
    facts = _matrices(model, ("drift", "diffusion", "observation", "observation_covariance"))
    return Description(type(model).__name__, text, facts)


def switching_description(model: Any) -> Description:
    """A `SwitchingLinearGaussian`: matrices that all regimes share once, the others per regime."""
    regimes = model.regimes
    there = [name for name in MATRICES if getattr(regimes[0], name) is not None]
    shared = [name for name in there if _all_equal([getattr(one, name) for one in regimes])]
    own = [name for name in there if name not in shared]
    sections = [Description("all regimes", facts=_matrices(regimes[0], shared))] if shared else []
    each = enumerate(regimes if own else ())
    sections += [Description(f"regime {k}", facts=_matrices(one, own)) for k, one in each]
    text = [
        f"a switching linear-Gaussian model: {counted(model.n_regimes, 'regime')}, {_size(model)}",
        f"{_equations(regimes[0])}; the matrices are those of the regime that is on",
    ]
    return Description(type(model).__name__, text, tables=[_chain(model)], sections=sections)


def _size(model: Any) -> str:
    inputs = getattr(model, "n_inputs", 0)
    more = f", {counted(inputs, 'input')}" if inputs else ""
    return f"{counted(model.states, 'state')}, {counted(model.dim, 'column')}{more}"


def _equations(model: Any) -> str:
    pushed = "" if model.control is None else " + control·u[t]"
    fed = "" if model.feedthrough is None else " + feedthrough·u[t]"
    return f"x[t] = transition·x[t−1]{pushed} + process noise, y[t] = observation·x[t]{fed} + observation noise"


def _initial(model: Any) -> Iterator[str]:
    unknown = 0 if model.diffuse is None else int(model.diffuse.shape[1])
    if unknown == model.states:
        yield "diffuse initial distribution"
        return
    if unknown:
        yield f"the initial distribution is diffuse in {unknown} of {model.states} directions"
    mean, sd = first_numbers(model.initial_mean), first_numbers(np.sqrt(np.diagonal(model.initial_covariance)))
    yield f"the initial state has mean {mean} and standard deviation {sd}"


def _matrices(model: Any, names: Any) -> dict[str, Any]:
    found = ((name, getattr(model, name)) for name in names)
    return {name: entries(a) for name, a in found if a is not None}


def _chain(model: Any) -> DescriptionTable:
    with np.errstate(divide="ignore"):
        stay = 1.0 / (1.0 - np.minimum(np.diagonal(model.transition), 1.0))
    to = [f"to {j}" for j in range(model.n_regimes)]
    each = zip(model.initial.tolist(), stay.tolist(), model.transition.tolist(), strict=True)
    rows = [(k, begins, mean, *moves) for k, (begins, mean, moves) in enumerate(each)]
    head = ("regime", "begins", "mean duration", *to)
    return DescriptionTable("", head, rows, dict.fromkeys(head[1:], ".4g"), "regimes")


def _all_equal(matrices: list[Any]) -> bool:
    return all(a is not None and np.array_equal(a, matrices[0]) for a in matrices)

"""Description of the states of a fitted hidden Markov model: shares, durations, next states, emissions."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.description import DescriptionTable, clipped, counted

LIKELIEST = 3  # next states that are named


def topology_words(estimator: Any) -> str:
    """The number of states and the topology.

    >>> import likely as lk
    >>> topology_words(lk.HMMDensity(n_states=2).fit([[0.0, 1.0, 5.0, 4.0, 1.0]]))
    '2 states, ergodic, may stop anywhere'
    """
    expanded, K = estimator.topology_, int(estimator.topology_.original.max()) + 1
    words = counted(K, "state")
    if expanded.states != K:
        how = (
            f"order {estimator.order}"
            if estimator.order > 1
            else "durations"
            if estimator.durations
            else "its topology"
        )
        words += f" (expanded to {expanded.states} for {how})"
    asked = estimator.topology
    if isinstance(asked, str):
        shape = asked
    elif np.ndim(asked) == 1 and not hasattr(asked, "transition"):
        shape = f"steps {', '.join(map(str, np.asarray(asked).tolist()))}"
    else:
        shape = "a topology of its own"
    ends = "its end is modeled" if expanded.final is not None else "may stop anywhere"
    nulls = len(expanded.initial) - expanded.states
    return ", ".join([words, shape, ends, *([counted(nulls, "null state")] if nulls else [])])


def states_table(estimator: Any, names: list[str] | None = None, columns: list[str] | None = None) -> DescriptionTable:
    """Per state: share of frames, expected duration, next states, emission distribution."""
    model, topology = estimator.model_, estimator.topology_
    names = names or [str(k) for k in range(int(topology.original.max()) + 1)]
    counts = np.bincount(topology.original, estimator.stats_.counts, len(names))
    shares = counts / max(counts.sum(), 1e-300)
    constant = topology.origin is None and not model.is_logistic
    durations = model.mean_durations() if constant else ()
    rows = []
    for k, name in enumerate(names):
        first = int(np.flatnonzero(topology.original == k)[0])
        leaving = (float(durations[k]), _transitions_words(model, k, names)) if constant else (None, None)
        rows.append(
            (clipped(name, 20), float(shares[k]), *leaving, model.emission.member(first).location_words(columns))
        )
    note = (
        "occupancy: fraction of the frames; mean duration in frames; next states: the most probable transitions"
        if constant
        else ""
    )
    return DescriptionTable(
        "states", ("state", "occupancy", "mean duration", "next states", "emission"), rows, FORMATS, "states", note
    )


FORMATS = {"occupancy": ".1%", "mean duration": ".3g"}


def _transitions_words(model: Any, k: int, names: list[str]) -> str:
    chain = model.chains[0].summed
    on = chain.transition[k].copy()
    on[k] = 0.0
    out = float(chain.final[k]) if model.final is not None else 0.0
    total = on.sum() + out
    if total <= 0:
        return "–"
    found = [(on[j] / total, names[j]) for j in np.argsort(-on, kind="stable")[:LIKELIEST]] + [(out / total, "end")]
    likely = sorted((one for one in found if one[0] >= 0.005), key=lambda one: -one[0])
    return ", ".join(f"{clipped(name, 12)} {p:.2f}" for p, name in likely)

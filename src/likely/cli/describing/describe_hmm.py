"""Descriptions of hidden Markov models: states, expected durations, transitions, emissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.cli.console import clipped, columns
from likely.distributions.stacks.tied import untied
from likely.estimation.novelty.held_out_frames import support
from likely.report.number_format import number

ROWS = 30  # states that a terminal shows
COLUMNS = 4  # of a frame
LEVELS = 3  # of a distribution of words
NUMBERS = ("Gaussian", "FactorGaussian", "StudentT", "Poisson", "NegativeBinomial")  # distributions that have a mean
CLASSES = 12  # whose chains are told of


def density_account(estimator: Any, names: list[str] | None = None, frame: list[str] | None = None) -> Iterator[str]:
    """A fitted `HMMDensity`."""
    model, topology = estimator.model_, estimator.topology_
    yield f"a hidden Markov model of {_size(estimator)}, {_shape(estimator)}"
    yield f"each state emits: {emission_words(model.emission)}"
    stats = estimator.stats_
    weight = f"{stats.sequences:,.6g} sequence{'s' * (stats.sequences != 1)}, {stats.total_weight:,.6g} frames"
    yield f"learned from {weight}; {model.n_parameters:,} parameters"
    yield from support(estimator)
    yield ""
    original = int(topology.original.max()) + 1
    yield from states_table(estimator, names or [str(k) for k in range(original)], frame)


def table_account(thing: Any) -> Iterator[str]:
    """What `likely fit --sequences` wrote: a density, or one per class."""
    card = thing.card
    if card:
        span = " to ".join(map(str, sorted(set(card["lengths"]))))
        n = f"{card['sequences']:,} sequence{'s' * (card['sequences'] != 1)}"
        yield f"learned from {', '.join(card['source'])}: {n} of {span} frame{'s' * (span != '1')}"
    yield f"columns: {', '.join(f'{name} ({kind})' for name, kind in thing.columns.items())}"
    if hasattr(thing, "density_"):
        yield from density_account(thing.density_, thing.state_names, list(thing.columns))
        return
    if card:
        yield card["verdict"].replace(" per row", " per sequence")
    yield from classifier_account(thing.classifier_, list(thing.columns))
    if card.get("calibrated"):
        yield f"with probabilities that were {card['calibrated']} on held-out sequences"


def classifier_account(clf: Any, frame: list[str] | None = None) -> Iterator[str]:
    """A fitted classifier with one chain per class."""
    hidden = hasattr(clf, "density_")
    if hidden:
        yield f"one hidden Markov model per class: {_size(clf.density_)}, {_shape(clf.density_)}"
        yield f"each state emits: {emission_words(clf.model_.components.emission)}"
    yield ""
    rows = [
        ["class", "probability", "weight in training", *(["mean duration of a state, in frames"] if hidden else [])]
    ]
    for c, label in enumerate(clf.classes_.tolist()[:CLASSES]):
        line = [clipped(str(label), 30), f"{clf.class_prior_[c]:.4f}", f"{clf.class_count_[c]:,.6g}"]
        rows.append([*line, *([_mean_durations_text(clf.model_.components.member(c))] if hidden else [])])
    yield columns(rows, right=(1, 2))
    if len(clf.classes_) > CLASSES:
        yield f"… and {len(clf.classes_) - CLASSES} more classes"


def _mean_durations_text(model: Any) -> str:
    stays = stay(model)
    return ", ".join(number(float(s)) for s in stays[:8]) + (" …" if len(stays) > 8 else "")


def stay(model: Any) -> Any:
    """The expected number of frames in each emitting state before the chain leaves it (K,)."""
    with np.errstate(divide="ignore"):
        return 1.0 / (1.0 - np.minimum(np.diag(model.chains[0].summed.transition), 1.0))


def states_table(estimator: Any, names: list[str], frame: list[str] | None = None) -> Iterator[str]:
    """Per state: share of frames, expected duration, next states, emission distribution."""
    model, topology = estimator.model_, estimator.topology_
    counts = np.bincount(topology.original, estimator.stats_.counts, len(names))
    plain = topology.origin is None
    head = ["state", "share", *(["stay", "then"] if plain else []), "emits"]
    rows, stays = [head], stay(model)
    for k, name in enumerate(names[:ROWS]):
        first = int(np.flatnonzero(topology.original == k)[0])
        on = [f"{stays[k]:.3g}", _transitions_text(model, k, names)] if plain else []
        emits = emitted(model.emission.member(first), frame)
        rows.append([clipped(name, 20), f"{counts[k] / max(counts.sum(), 1e-300):.1%}", *on, emits])
    yield columns(rows, right=(1, 2) if plain else (1,))
    if len(names) > ROWS:
        yield f"… and {len(names) - ROWS} more states"
    if plain:
        yield "stay: expected duration in frames; then: most probable next states"


def _transitions_text(model: Any, k: int, names: list[str]) -> str:
    way = model.chains[0].summed
    on = way.transition[k].copy()
    on[k] = 0.0
    out = float(way.final[k]) if model.final is not None else 0.0
    total = on.sum() + out
    if total <= 0:
        return "–"
    told = [(on[j] / total, names[j]) for j in np.argsort(-on, kind="stable")[:LEVELS] if on[j] / total >= 0.005]
    told += [(out / total, "end")] if out / total >= 0.005 else []
    return ", ".join(f"{clipped(name, 12)} {p:.2f}" for p, name in sorted(told, key=lambda t: -t[0]))


def emitted(distribution: Any, frame: list[str] | None = None) -> str:
    """Summary of the emission distribution of one state: means, rates, most probable categories."""
    kind = type(distribution).__name__
    if hasattr(distribution, "names") and hasattr(distribution, "components"):  # a product
        return "; ".join(_part(str(name), part) for name, part in distribution.components[:COLUMNS])
    if kind == "Categorical":
        return words_of(distribution)
    if kind == "Mixture":
        return f"{distribution.size} components, mean {_vector(_middle(distribution), frame)}"
    return _vector(_middle(distribution), frame)


def _part(name: str, distribution: Any) -> str:
    return f"{name}: {emitted(distribution)}"


def _middle(distribution: Any) -> Any:
    """Mean of a numeric distribution; None for others."""
    if type(distribution).__name__ == "Mixture":
        parts = _middle(untied(distribution.components))
        index = getattr(distribution.components, "index", None)
        return None if parts is None else np.asarray(distribution.weights) @ (parts if index is None else parts[index])
    return distribution.mean if type(distribution).__name__ in NUMBERS else getattr(distribution, "probs", None)


def _vector(middle: Any, frame: list[str] | None) -> str:
    if middle is None:
        return ""
    middle = np.atleast_1d(np.asarray(middle, dtype=np.float64))
    names = frame if frame is not None and len(frame) == len(middle) else None
    told = [(f"{names[j]} " if names else "") + number(float(x)) for j, x in enumerate(middle[:COLUMNS])]
    return ", ".join(told) + (" …" if len(middle) > COLUMNS else "")


def words_of(distribution: Any) -> str:
    """The most probable levels of a categorical distribution."""
    best = np.argsort(-distribution.probs, kind="stable")[:LEVELS]
    told = ", ".join(f"{clipped(str(distribution.values[j]), 12)} {distribution.probs[j]:.2f}" for j in best)
    return told + (" …" if len(distribution.probs) > LEVELS else "")


def emission_words(distribution: Any) -> str:
    """The kind of distribution that states have.

    >>> import likely as lk
    >>> emission_words(lk.Gaussian([[0.0], [1.0]], 1.0))
    'a spherical Gaussian of 1 column'
    """
    kind = type(distribution).__name__
    if kind == "Tied":
        return f"{emission_words(distribution.components)}, shared by some states"
    if hasattr(distribution, "names") and hasattr(distribution, "components"):
        return "independent components: " + "; ".join(
            f"{name}: {emission_words(part)}" for name, part in distribution.components[:6]
        )
    if kind == "Mixture":
        inner = emission_words(distribution.components).removeprefix("a ")
        return f"a mixture of {distribution.size} components, each a {inner}"
    if kind == "Categorical":
        return f"a categorical distribution over {distribution.probs.shape[-1]} levels"
    shape = getattr(distribution, "kind", "")
    d = distribution.dim
    return f"a {shape + ' ' if isinstance(shape, str) and shape else ''}{kind} of {d} column{'s' * (d != 1)}"


def _size(estimator: Any) -> str:
    K = int(estimator.topology_.original.max()) + 1
    more = estimator.topology_.states
    words = f"{K} state{'s' * (K != 1)}"
    if more == K:
        return words
    how = f"order {estimator.order}" if estimator.order > 1 else "durations" if estimator.durations else "its moves"
    return f"{words} (expanded to {more} for {how})"


def _shape(estimator: Any) -> str:
    topology = estimator.topology
    if isinstance(topology, str):
        words = topology
    elif np.ndim(topology) == 1 and not hasattr(topology, "transition"):
        words = f"steps {', '.join(map(str, np.asarray(topology).tolist()))}"
    else:
        words = "a topology of its own"
    ends = "its end is modeled" if estimator.topology_.final is not None else "may stop anywhere"
    nulls = len(estimator.topology_.initial) - estimator.topology_.states
    return f"{words}, {ends}" + (f", {nulls} null state{'s' * (nulls != 1)}" if nulls else "")

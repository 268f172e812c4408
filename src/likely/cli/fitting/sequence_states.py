"""Fitting one hidden Markov model to sequences without classes: the number of states, or states that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.cli.console import Console
from likely.cli.fitting.fit_run import FitRun, heard
from likely.cli.fitting.sequence_data import SequenceData, numbers_of_states, refuse_forbidden, refuse_short
from likely.cli.fitting.sequence_input import in_flags

FAIRLY_BRIEF = {"max_iter": 30, "tol": 1e-4}  # of learning where numbers of states are compared by likelihoods


def density_run(data: SequenceData, console: Console) -> FitRun:
    """Fit one hidden Markov model to all sequences, its number of states given, known or chosen."""
    from likely.automl.sequence_candidates import chain
    from likely.automl.sequence_models import SequenceDensity

    job = data.job
    found: dict[str, Any] = {}
    choice, states = None, job.n_states or 1
    if data.states is not None:
        states = max(len(data.state_names), states)
        refuse_short(data, states)
        refuse_forbidden(data, states)
        found["decoded"] = _tested_on_states(data, states, console)
    elif job.n_states is None:
        with in_flags(job.id, names={"choose_states": "--n-states"}):
            choice = _chosen(data, console)
        if choice is not None:
            states = choice.best
            found["choice"] = _choice_as_dict(choice)
    density, caught = heard(
        lambda: chain(data.kinds, states, **job.chain_settings).fit(
            data.X, sample_weight=data.weight, states=data.states
        )
    )
    named = [*data.state_names, *(f"state {k}" for k in range(len(data.state_names), states))]
    model = SequenceDensity.from_fitted(density, data.kinds, job.roles, named if data.state_names else None)
    found |= _account(density, data)
    warnings = (*data.warnings(), *_notes_on_few_sequences(data, choice), *caught)
    return FitRun(job, data, model, warnings, choice=choice, found=found)


def _chosen(data: SequenceData, console: Console) -> Any:
    from likely.automl.choose_states import choose_states
    from likely.automl.sequence_candidates import chain

    job, numbers = data.job, numbers_of_states(data)
    if len(numbers) == 1:
        return None
    console(f"\ncomparing {', '.join(map(str, numbers))} states by held-out likelihood")
    with console.progress(len(numbers) * 5) as done:
        return choose_states(
            chain(data.kinds, 1, **job.chain_settings, **data.brief(FAIRLY_BRIEF)), data.X, numbers,
            cv=job.splitting, groups=data.groups, sample_weight=data.weight, random_state=job.seed,
            n_jobs=data.jobs, callback=lambda k: done(f"{k} states"),
        )  # fmt: skip


def _choice_as_dict(choice: Any) -> dict[str, Any]:
    numbers = zip(choice.numbers, choice.held_out.tolist(), choice.error.tolist(), strict=True)
    return {"states": choice.best, "pieces": choice.pieces,
            "held_out": {str(k): [_finite(v), _finite(e)] for k, v, e in numbers}}  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _account(density: Any, data: SequenceData) -> dict[str, Any]:
    """How frames are shared among the states, and how likely they are a frame."""
    own = density.topology_.original
    shares = np.bincount(own, density.stats_.counts, int(own.max()) + 1)
    logs = density.score_samples(data.X)
    frames = data.X.lengths.astype(np.float64)
    weight = np.ones(len(logs)) if data.weight is None else data.weight
    return {"states": len(shares), "shares": (shares / shares.sum()).tolist(),
            "log_likelihood_per_frame": _finite(float(weight @ logs / (weight @ frames)))}  # fmt: skip


def _notes_on_few_sequences(data: SequenceData, choice: Any) -> list[str]:
    notes = []
    if len(data) == 1:
        notes.append("One sequence only: without --id a file is one sequence; --id COL names the sequence of each row.")
    if choice is not None and choice.pieces > len(data):
        notes.append(
            f"Few sequences: {choice.pieces} pieces of them were held out in turn; pieces of one sequence are similar."
        )
    if choice is not None and choice.best == choice.numbers[-1] and len(choice.numbers) > 1:
        notes.append(f"The largest number tried was chosen: more than {choice.best} states may be better (--n-states).")
    return notes


# ------------------------------------------------------------------- known states


def _tested_on_states(data: SequenceData, states: int, console: Console) -> dict[str, Any] | None:
    """How many frames get their known state on the best path, in sequences left out; None where there are too few."""
    from likely.automl.model_comparison import silence
    from likely.automl.sequence_candidates import chain
    from likely.estimation.parallel import in_threads
    from likely.metrics.confidence_intervals import mean
    from likely.model_selection.splits import make_splits

    if len(data) < 2:
        console("\none sequence: none can be held out")
        return None
    cv = min(data.job.splitting, len(data)) if isinstance(data.job.splitting, int) else data.job.splitting
    labels = np.zeros(len(data), dtype=np.intp)
    splits = make_splits(data.X, labels, cv, weight=data.weight, groups=data.groups, seed=data.job.seed)
    splits = [split for split in splits if len(split.train) and len(split.test)]
    console(f"\ndecoding held-out sequences: {len(splits)} folds")

    def right(split: Any) -> Any:
        train = data.take(split.train)
        density = chain(data.kinds, states, **data.job.chain_settings)
        density.fit(train.X, sample_weight=train.weight, states=train.states)
        return _hits(density, data.take(split.test), states)

    with silence():
        tables = in_threads(right, splits, data.jobs)
    hits, known = (np.concatenate([t[j] for t in tables]) for j in range(2))
    confusion = sum(t[2] for t in tables)
    seen = known > 0
    rate = mean(hits[seen] / known[seen], known[seen] / known.sum())
    return {"right": rate.value, "low": rate.low, "high": rate.high, "frames": int(known.sum()),
            "folds": len(splits), "confusion": confusion.tolist()}  # fmt: skip


def _hits(density: Any, tested: SequenceData, states: int) -> tuple[Any, Any, Any]:
    """By sequence (n,): frames of known state that were decoded so, all of known state; and the confusion (K, K)."""
    from likely.automl.sequence_models import known_rows, states_of

    assert tested.states is not None
    truth, path = tested.states.values, states_of(density, known_rows(density, tested.X)[0]).values
    labels = np.repeat(np.arange(len(tested)), tested.X.lengths)
    there = truth >= 0
    hit = np.bincount(labels[there], path[there] == truth[there], len(tested))
    table = np.bincount(truth[there] * states + path[there], minlength=states * states).reshape(states, states)
    return hit, np.bincount(labels[there], minlength=len(tested)).astype(np.float64), table

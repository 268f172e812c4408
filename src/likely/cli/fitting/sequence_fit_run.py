"""The run of `likely fit --sequences`: read, choose the number of states by cross-validation, fit, write."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from likely._version import __version__
from likely.cli.console import Console
from likely.cli.fitting.fit_job import splitting_words
from likely.cli.fitting.sequence_fit_job import SequenceJob, refuse_deciding
from likely.cli.fitting.sequence_input import (
    Material,
    in_flags,
    read_material,
    refuse_forbidden,
    refuse_short,
    shortest,
)
from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, sentence

STATES = (1, 2, 3, 5, 8)  # that are tried where nobody says how many
BRIEF = {"max_iter": 30, "tol": 1e-3}  # of learning where numbers are compared by decisions: the order stays
FAIRLY_BRIEF = {"max_iter": 30, "tol": 1e-4}  # where they are compared by likelihoods
SHORT = 300  # frames that half of the sequences do not exceed where left-to-right chains are tried unasked
MANY_FRAMES = 50_000  # from which fits go side by side: with 3,700 frames two threads took 28 s, one 21 s
MOST_EXPANDED = 200  # states that durations or orders may be written out to, unasked
FRAMES_A_STATE = 5  # that a class must have for each state where their number is chosen


@dataclass(frozen=True, eq=False)
class SequenceFitRun:
    """Result of a sequence fit: the sequences, the model, how it was chosen, and cautions."""

    job: SequenceJob
    material: Material
    model: Any
    made: str
    hazards: tuple[str, ...]
    contest: Any = None  # of classifiers
    choice: Any = None  # of numbers of states
    found: dict[str, Any] = field(default_factory=dict)  # figures, for the card

    @property
    def card(self) -> dict[str, Any]:
        """All that is remembered, as plain values."""
        m, job = self.material, self.job
        lengths = m.x.lengths
        return {
            "task": "sequences", "made": self.made, "command": job.command, "source": list(m.source),
            "sequences": len(m), "frames": int(lengths.sum()), "lengths": [int(lengths.min()), int(lengths.max())],
            "columns": m.kinds, "target": job.target or ("folder" if m.labels is not None else None),
            "seed": job.seed, "hazards": list(self.hazards), **self.found,
        }  # fmt: skip


def run_job(job: SequenceJob, console: Console) -> SequenceFitRun:
    """Run the job; the model file is written at the end, atomically."""
    check_outputs({"-o": job.out}, (*job.files, job.cost, job.class_prior), models=("-o",))
    material = read_material(job)
    console(material.describe())
    if job.n_states is not None:
        refuse_short(material, job, job.n_states)
    if material.labels is None:
        refuse_deciding(job)
        fit_run = _described(job, material, console)
    else:
        fit_run = _classified(job, material, console)
    fit_run.model.card_ = json.dumps(fit_run.card)
    fit_run.model.save(job.out)
    return fit_run


def _version_and_date() -> str:
    return f"likely {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def numbers_of_states(job: SequenceJob, material: Material) -> tuple[int, ...]:
    """Numbers of states to compare: the given one, or several that the sequence lengths allow."""
    if job.n_states is not None:
        return (job.n_states,)
    least = int(material.x.lengths.min())
    frames = int(material.x.lengths.sum())
    if material.labels is not None:
        labels = np.unique(np.asarray(material.labels).astype(str), return_inverse=True)[1]
        frames = int(np.bincount(labels, material.x.lengths).min())
    expanded = max(job.durations or 1, 1)
    able = [K for K in STATES if shortest(job, K) <= least and (K == 1 or K * FRAMES_A_STATE <= frames)
            and max(K**job.order, K * expanded) <= MOST_EXPANDED]  # fmt: skip
    if not able:
        refuse_short(material, job, 1)
        expected = f"--durations {job.durations} would be expanded to more than {MOST_EXPANDED} states"
        raise DataError(sentence("--n-states", expected, remedy="say how many states"))
    return tuple(able)


def topologies(job: SequenceJob, material: Material) -> tuple[Any, ...]:
    """Topologies to compare: the given one, or ergodic, and left-to-right if sequences are many and short."""
    if job.topology is not None:
        return (job.topology,)
    plain = job.order == 1 and job.durations is None
    many = len(material) >= 10 and float(np.median(material.x.lengths)) <= SHORT
    return ("ergodic", "left-to-right") if plain and many else ("ergodic",)


def brief(material: Material, how: dict[str, Any]) -> dict[str, Any]:
    """Settings of learning while models are compared: numbers alone are cut short.

    States of words may part slowly. Of 30 sequences of letters from 3 states, brief fits of 3 states looked no better
    than those of 2, so that 5 were chosen; with the usual time it was 3.
    """
    return {} if "category" in material.kinds.values() else how


def threads(job: SequenceJob, material: Material) -> int | None:
    """Default number of parallel fits."""
    return job.jobs or (None if int(material.x.lengths.sum()) >= MANY_FRAMES else 1)


# --------------------------------------------------------------------- with classes


def _classified(job: SequenceJob, material: Material, console: Console) -> SequenceFitRun:
    from likely.automl.model_comparison import from_all_rows
    from likely.automl.sequence_models import SequenceClassifier
    from likely.cli.fitting.model_facts import figures, leaderboard, rule_words, verdict

    field, rules = _field(job, material)
    _refuse_single(field)
    contest = _compare_models(job, material, field, rules, console)
    estimator = contest.winner.candidate.estimator
    usual = estimator if contest.winner.candidate.key == "prior" else _with_full_tolerance(estimator)
    classifier, caught = heard(lambda: from_all_rows(usual, field))
    map = contest.winner.calibration
    model = SequenceClassifier.from_fitted(classifier, material.kinds, job.roles, None if map is None else map.map)
    found = {
        "cv": splitting_words(job.splitting, len(field.splits), job.group is not None), "verdict": verdict(contest),
        "criterion": job.criterion, "rule": rule_words(job.criterion),
        "leaderboard": leaderboard(contest), "figures": figures(contest.winner.evaluation),
        "calibrated": map and map.words, "classes": _sizes(field),
    }  # fmt: skip
    hazards = (*_of_classes(field, contest), *caught)
    return SequenceFitRun(job, material, model, _version_and_date(), hazards, contest=contest, found=found)


def _field(job: SequenceJob, material: Material) -> tuple[Any, dict[str, Any]]:
    from likely.automl.model_comparison import Field
    from likely.cli.costs import read_class_prior, read_cost
    from likely.estimation.class_labels import encoded

    classes, labels = encoded(material.labels)
    if len(classes) < 2:
        remedy = "name another column, or none: then one model is fitted to all"
        if job.id is None and len(material) == 1:
            remedy = "--id COL names the sequence of each row; without it a file is one sequence"
        raise DataError(sentence("--target", "two classes are needed", f'only "{classes[0]}"', remedy))
    cost = None if job.cost is None else read_cost(job.cost, classes)
    prior = None if job.class_prior is None else np.array(read_class_prior(job.class_prior, classes))
    field = Field.of(
        material.x, classes, labels, job.splitting, groups=material.groups, seed=job.seed, weight=material.weight,
        cost=cost, reject_cost=job.reject_cost, class_prior=prior, calibrate=job.calibrate,
    )  # fmt: skip
    return field, {"cost": cost, "reject_cost": job.reject_cost, "reject_below": job.reject_below,
                   "novelty": job.novelty}  # fmt: skip


def _compare_models(job: SequenceJob, material: Material, field: Any, rules: dict[str, Any], console: Console) -> Any:
    from likely.automl.model_comparison import compete
    from likely.automl.sequence_candidates import chain_candidates

    least, numbers = int(material.x.lengths.min()), numbers_of_states(job, material)
    candidates = chain_candidates(
        material.kinds, numbers, rules, {**job.settings, **brief(material, BRIEF)}, topologies(job, material), least
    )
    how = splitting_words(job.splitting, len(field.splits), job.group is not None)
    doing = (
        f"comparing {len(candidates)} models" if len(candidates) > 1 else f"evaluating one model, {candidates[0].name}"
    )
    console(f"\n{doing}, whole sequences held out: {how.replace('rows', 'sequences')}")
    with console.progress(len(candidates) * len(field.splits)) as done:
        contest = compete(
            field,
            candidates,
            criterion=job.criterion,
            jobs=threads(job, material),
            callback=lambda candidate: done(candidate.name),
        )
    _refuse_failed(contest)
    return contest


def _refuse_single(field: Any) -> None:
    """One sequence a class can be learned from or tested on, not both."""
    several = [n for n in _sizes(field).values() if n > 1]
    if len(several) < 2:
        came = "one sequence of each" if not several else "two or more of one class only"
        remedy = "use more data; in Python, lk.BayesClassifier(lk.HMMDensity(…)).fit fits without a test"
        expected = "two classes need two sequences each, so that some can be held out"
        raise DataError(sentence("--target", expected, came, remedy))


def _refuse_failed(contest: Any) -> None:
    """Raise if all models but the class frequencies failed."""
    chains = [s for s in contest.standings if s.candidate.key != "prior"]
    if all(s.failure for s in chains):
        reasons = "; ".join(dict.fromkeys(s.failure.rstrip(".") for s in chains))
        raise DataError(sentence("fit", "nothing could be learned from these sequences", remedy=reasons))


def _with_full_tolerance(estimator: Any) -> Any:
    """The winner is learned to the end."""
    from likely.hmm.estimators.hmm_density import HMMDensity

    usual = HMMDensity()
    return estimator.set_params(**{f"density__{name}": getattr(usual, name) for name in BRIEF})


def _sizes(field: Any) -> dict[str, int]:
    rows = np.bincount(field.labels, minlength=len(field.classes)).tolist()
    return {str(c): n for c, n in zip(field.classes.tolist(), rows, strict=True)}


def _of_classes(field: Any, contest: Any) -> list[str]:
    """Cautions about the result."""
    from likely.cli.fitting.fit_run import _absent, _of_the_winner

    few = [f'"{c}" ({n})' for c, n in _sizes(field).items() if n < 10]
    told = (
        [f"Classes with fewer than ten sequences: {', '.join(few[:10])}{' …' if len(few) > 10 else ''}."] if few else []
    )
    absent = sorted({str(c) for split in field.splits for c in _absent(field, split)})
    if absent:
        told.append(f"Absent from the training part of a split, and so never predicted there: {', '.join(absent)}.")
    told += [f"{s.candidate.name} failed: {s.failure}" for s in contest.standings if s.failure]
    return [
        *told,
        *(text.replace("rows", "sequences").replace("per row", "per sequence") for text in _of_the_winner(contest)),
    ]


def heard(learn: Any) -> tuple[Any, tuple[str, ...]]:
    """What was learned, and what was warned of on the way, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = learn()
    return done, tuple(dict.fromkeys(str(w.message) for w in caught))


# ------------------------------------------------------------------ without classes


def _described(job: SequenceJob, material: Material, console: Console) -> SequenceFitRun:
    from likely.automl.sequence_candidates import chain
    from likely.automl.sequence_models import SequenceDensity

    found: dict[str, Any] = {}
    choice = None
    if material.states is not None:
        states = max(len(material.state_names), job.n_states or 0)
        refuse_short(material, job, states)
        refuse_forbidden(material, job, states)
        found["decoded"] = _tested_on_states(job, material, states, console)
    elif job.n_states is not None:
        states = job.n_states
    else:
        with in_flags(job.id, names={"choose_states": "--n-states"}):
            choice = _chosen(job, material, console)
        states = 1 if choice is None else choice.best
        found |= {} if choice is None else {"choice": _choice_as_dict(choice)}
    density, caught = heard(
        lambda: chain(material.kinds, states, **job.settings).fit(
            material.x, sample_weight=material.weight, states=material.states
        )
    )
    named = [*material.state_names, *(f"state {k}" for k in range(len(material.state_names), states))]
    model = SequenceDensity.from_fitted(density, material.kinds, job.roles, named if material.state_names else None)
    found |= _account(density, material)
    hazards = (*_notes_on_few_sequences(material, choice), *caught)
    return SequenceFitRun(job, material, model, _version_and_date(), hazards, choice=choice, found=found)


def _chosen(job: SequenceJob, material: Material, console: Console) -> Any:
    from likely.automl.choose_states import choose_states
    from likely.automl.sequence_candidates import chain

    numbers = numbers_of_states(job, material)
    if len(numbers) == 1:
        return None
    console(f"\ncomparing {', '.join(map(str, numbers))} states by held-out likelihood")
    with console.progress(len(numbers) * 5) as done:
        return choose_states(
            chain(material.kinds, 1, **job.settings, **brief(material, FAIRLY_BRIEF)), material.x, numbers,
            cv=job.splitting, groups=material.groups, sample_weight=material.weight, random_state=job.seed,
            n_jobs=threads(job, material), callback=lambda k: done(f"{k} states"),
        )  # fmt: skip


def _choice_as_dict(choice: Any) -> dict[str, Any]:
    numbers = zip(choice.numbers, choice.held_out.tolist(), choice.error.tolist(), strict=True)
    return {"states": choice.best, "pieces": choice.pieces,
            "held_out": {str(k): [_finite(v), _finite(e)] for k, v, e in numbers}}  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _account(density: Any, material: Material) -> dict[str, Any]:
    """How frames are shared among the states, and how likely they are a frame."""
    own = density.topology_.original
    shares = np.bincount(own, density.stats_.counts, int(own.max()) + 1)
    logs = density.score_samples(material.x)
    frames = material.x.lengths.astype(np.float64)
    weight = np.ones(len(logs)) if material.weight is None else material.weight
    return {"states": len(shares), "shares": (shares / shares.sum()).tolist(),
            "log_likelihood_a_frame": _finite(float(weight @ logs / (weight @ frames)))}  # fmt: skip


def _notes_on_few_sequences(material: Material, choice: Any) -> list[str]:
    told = []
    if len(material) == 1:
        told.append("One sequence only: without --id a file is one sequence; --id COL names the sequence of each row.")
    if choice is not None and choice.pieces > len(material):
        told.append(
            f"Few sequences: {choice.pieces} pieces of them were held out in turn; pieces of one sequence are similar."
        )
    if choice is not None and choice.best == choice.numbers[-1] and len(choice.numbers) > 1:
        told.append(f"The largest number tried was chosen: more than {choice.best} states may be better (--n-states).")
    return told


# ------------------------------------------------------------------- known states


def _tested_on_states(job: SequenceJob, material: Material, states: int, console: Console) -> dict[str, Any] | None:
    """How many frames get their known state on the best path, in sequences left out; None where there are too few."""
    from likely.automl.model_comparison import silence
    from likely.automl.sequence_candidates import chain
    from likely.estimation.parallel import in_threads
    from likely.metrics.confidence_intervals import mean
    from likely.model_selection.splits import make_splits

    if len(material) < 2:
        console("\none sequence: none can be held out")
        return None
    cv = min(job.splitting, len(material)) if isinstance(job.splitting, int) else job.splitting
    labels = np.zeros(len(material), dtype=np.intp)
    splits = make_splits(material.x, labels, cv, weight=material.weight, groups=material.groups, seed=job.seed)
    splits = [split for split in splits if len(split.train) and len(split.test)]
    console(f"\ndecoding held-out sequences: {len(splits)} folds")

    def right(split: Any) -> Any:
        train = material.some(split.train)
        density = chain(material.kinds, states, **job.settings)
        density.fit(train.x, sample_weight=train.weight, states=train.states)
        return _hits(density, material.some(split.test), states)

    with silence():
        tables = in_threads(right, splits, threads(job, material))
    hits, known = (np.concatenate([t[j] for t in tables]) for j in range(2))
    confusion = sum(t[2] for t in tables)
    seen = known > 0
    rate = mean(hits[seen] / known[seen], known[seen] / known.sum())
    return {"right": rate.value, "low": rate.low, "high": rate.high, "frames": int(known.sum()),
            "folds": len(splits), "confusion": confusion.tolist()}  # fmt: skip


def _hits(density: Any, tested: Material, states: int) -> tuple[Any, Any, Any]:
    """By sequence (n,): frames of known state that were decoded so, all of known state; and the confusion (K, K)."""
    from likely.automl.sequence_models import known_rows, states_of

    assert tested.states is not None
    truth, path = tested.states.values, states_of(density, known_rows(density, tested.x)[0]).values
    labels = np.repeat(np.arange(len(tested)), tested.x.lengths)
    there = truth >= 0
    hit = np.bincount(labels[there], path[there] == truth[there], len(tested))
    table = np.bincount(truth[there] * states + path[there], minlength=states * states).reshape(states, states)
    return hit, np.bincount(labels[there], minlength=len(tested)).astype(np.float64), table

"""Evaluation of sequence classifiers and speech recognizers on labeled data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from likely.cli.console import Console
from likely.core.errors import DataError, sentence


def evaluate_sequences(
    thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any], as_json: bool
) -> str:
    """What `likely evaluate` writes about whole sequences."""
    from likely.cli.evaluate import _json, tell_of_other_shares, told_of
    from likely.cli.predict import decision_rules

    _refuse_rows_only(settings)
    console = Console()
    if hasattr(thing, "transcribe"):
        known, x, labels, weight, what = thing, *_sounds(files, settings), None, "sounds"
    else:
        known, x, labels, weight = _sequences(thing, model, files, settings, console)
        what = "sequences"
    rules = ("cost", "reject_cost", "reject_below", "novelty", "class_prior")
    how = decision_rules(known, {name: settings[name] for name in rules})
    e, decisions = _measured(known, x, labels, weight, how, what)
    tell_of_other_shares(e, known.class_prior_, what)
    return _json(e, decisions) if as_json else f"{of(e.summary(), what)}\n\n{told_of(decisions, what)}"


def of(text: str, what: str) -> str:
    """A summary of rows as one of sequences; columns stay aligned.

    >>> of("3 rows, 2 classes", "sequences")
    '3 sequences, 2 classes'
    """
    head, line, rest = text.partition("\n")
    return head.replace("rows", what) + line + rest.replace("     rows", what.rjust(9)).replace(" rows", f" {what}")


def _refuse_rows_only(settings: Mapping[str, Any]) -> None:
    for name in ("sql", "report", "allow_missing"):
        if settings[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is for models of rows: this one takes sequences.")


def _sounds(files: tuple[str, ...], settings: Mapping[str, Any]) -> tuple[list[str], Any]:
    from likely.cli.fitting.sound_data import words_of

    for name in ("target", "id", "time", "columns", "weight"):
        if settings[name]:
            raise click.UsageError(f"--{name} is for tables: the word of a sound is the sub-folder in which it lies.")
    sounds, words = words_of(files)
    return list(sounds), np.array(words, dtype=object)


def _sequences(
    thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any], console: Console
) -> tuple[Any, Any, Any, Any]:
    """The model, labeled sequences, their labels and weights."""
    from likely.cli.fitting.open_sequence_model import named
    from likely.cli.fitting.sequence_input import by_place, missing_labels, read_for, spooled

    known = named(thing, model)
    if not hasattr(known, "classifier_"):
        remedy = "fit one with --target; `likely decode --per sequence` gives log-probabilities"
        raise DataError(sentence(model, "a classifier is needed", "a single hidden Markov model", remedy))
    folder = len(files) == 1 and Path(files[0]).is_dir() and not settings["target"]
    target = settings["target"] or (None if folder else known.schema["roles"].get("label"))
    with spooled(files, symbols=list(known.columns) == ["symbol"]) as there:
        found = by_place(known, read_for(known, there, {**settings, "label": target}, console), settings)
    if found.labels is None:
        raise click.UsageError(
            "name the column with the true labels: --target NAME (or name a folder with sub-folders)"
        )
    gone = missing_labels(found.labels)
    if gone.all():
        raise DataError(sentence("--target", "some sequence must have a label", "none"))
    if gone.any():
        console(f"{int(gone.sum()):,} of {len(found):,} sequences have no label: left out")
    here = np.flatnonzero(~gone)
    weight = None if found.weight is None else found.weight[here]
    return known, _some(found, here), np.asarray(found.labels)[here], weight


def _some(found: Any, here: Any) -> Any:
    from dataclasses import replace

    return replace(found, x=found.x[here], ids=found.ids[here], labels=None, weight=None, states=None, time=None)


def _measured(known: Any, x: Any, labels: Any, weight: Any, how: dict[str, Any], what: str) -> tuple[Any, Any]:
    from likely.decision.combine import change_log_prior
    from likely.metrics.evaluation import Evaluation

    truth = _places(known, x, labels, what)
    posterior = known.log_posterior(x)
    if how.get("class_prior") is not None:
        posterior = change_log_prior(posterior, known.class_prior_, np.asarray(how["class_prior"]))
    cost = known.cost if how.get("cost") is None else how["cost"]
    price = known.reject_cost if how.get("reject_cost") is None else how["reject_cost"]
    e = Evaluation(posterior, truth, known.classes_, cost=cost, reject_cost=price, weight=weight)
    return e, known.decide(x, full=True, **how)


def _places(known: Any, x: Any, labels: Any, what: str) -> Any:
    """Index of each label among the classes; numbers and text that read alike are equal."""
    places = {str(c): i for i, c in enumerate(known.classes_.tolist())}
    names = [f"{c:g}" if isinstance(c, float) else str(c) for c in labels.tolist()]
    odd = next((i for i, name in enumerate(names) if name not in places), None)
    if odd is not None:
        whose = str(x[odd]) if isinstance(x, list) else f'sequence "{x.ids[odd]}"'
        expected = f"labels must be among the model's classes {', '.join(list(places)[:12])}"
        raise DataError(sentence(whose, expected, f'"{names[odd]}"', f"leave such {what} out"))
    return np.array([places[name] for name in names], dtype=np.intp)

"""`likely decode`: the states of sequences (Viterbi, posterior, filter), or their classes."""

from __future__ import annotations

import sys
from typing import Any

import click

from likely.cli import options
from likely.cli.console import Console
from likely.cli.outputs import check_outputs
from likely.io.atomic_write import write_text

EPILOG = """\b
Examples:
  likely decode model.likely walks.csv -o states.csv
  likely decode model.likely walks.csv --path filter --proba
  likely decode gaits.likely new.csv --reject-below 0.9
  likely decode digits.likely number.wav --per word
  tail -n 500 log.csv | likely decode model.likely -
Columns for a hidden Markov model: sequence, frame (from 0), time if there is
one, state and its posterior probability; with --per sequence: log-likelihood,
log-probability of the Viterbi path, and the path.
Columns for a classifier: sequence, frames, decision (a class, a further action,
REJECT or NOVEL), expected cost, p(class), log_prob, novel, and the reason if the
sequence was rejected or if costs led to a class other than the most probable one.
Columns for recordings: file, words, log_prob; with --per word start and end of each
word in seconds, and its confidence; with --single the decision about the one
word, its probability and the reason.
"""

PATHS = ("viterbi", "posterior", "filter")


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option("--id", "id", metavar="COL", help="Column with the sequence ID of each row.  [as in training]")
@click.option("--time", metavar="COL", help="Column that orders the frames.  [as in training]")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Input columns to use for the model's columns, in its order; repeatable.  [by name]")  # fmt: skip
@click.option(
    "--path",
    type=click.Choice(PATHS),
    help="Viterbi path, smoothed posterior of each frame, or filtered posterior.  [viterbi]",
)
@click.option(
    "--per",
    "each",
    type=click.Choice(["frame", "sequence", "word"]),
    help="One output line per frame, sequence or word.  [frame; classifiers and recordings: sequence]",
)
@click.option(
    "--proba", is_flag=True, help="Add the posterior probability of each state (classifiers always write p(class))."
)
@click.option("--single", is_flag=True, help="Isolated words: classify each recording as one word, or reject it.")
@options.deciding
@click.option("--format", "format_", metavar="NAME", help="File format.  [by file extension]")
@click.option("--missing", multiple=True, metavar="TOKEN", help="Another token for a missing value; repeatable.")
@click.option("-o", "--output", "out", metavar="FILE", help="Write to this file (atomically).  [stdout]")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress output on stderr.")
def decode(model: str, files: tuple[str, ...], out: str | None, quiet: bool, **settings: Any) -> None:
    """Decode the states of sequences with a hidden Markov model, or classify sequences with a classifier.

    MODEL is a model file of `likely fit --sequences`, or a model saved from Python. Columns are matched by name. A
    category that did not occur in training counts as missing. A sequence of probability zero keeps its line, without
    a state. For a speech recognizer (`lk.speech.SpokenWords`) the files are WAV files or folders of them, and the
    recognized words are written.
    """
    check_outputs({"-o": out}, (model, *files, settings["cost"], settings["class_prior"]))
    text = decoded(model, files, settings, Console(quiet))
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(out, text)


def decoded(model: str, files: tuple[str, ...], settings: dict[str, Any], console: Console) -> str:
    """The output lines, for any model."""
    from likely.cli.fitting.recording_data import recordings_in
    from likely.cli.fitting.sequence_input import sequences_for, spooled
    from likely.cli.open_model import named
    from likely.io.model_files import load

    thing = load(model)
    if hasattr(thing, "transcribe"):
        with spooled(files) as recordings:
            return _spoken(thing, recordings_in(recordings), settings)  # a folder means the recordings in it
    _no_recordings(settings)
    known = named(thing, model)
    classes = hasattr(known, "classifier_")
    _no_states(settings) if classes else _no_decisions(settings)
    found = sequences_for(known, files, settings, console)
    if classes:
        return classes_csv(known, found, settings)
    time = settings["time"] or known.schema["roles"].get("time") or "time"
    how = (settings["path"] or "viterbi", settings["each"] or "frame", settings["proba"])
    return states_csv(known, found, *how, time, console)


def _no_states(settings: dict[str, Any]) -> None:
    flag = "--path" if settings["path"] else "--per frame" if settings["each"] == "frame" else None
    if flag is not None:
        raise click.UsageError(f"{flag} is for states: this file holds a classifier of whole sequences.")


def _no_decisions(settings: dict[str, Any]) -> None:
    for name in options.RULES:
        if settings[name] is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for classifiers: this file holds a single hidden Markov model."
            )


# ------------------------------------------------------------------------- classes


def classes_csv(model: Any, found: Any, settings: dict[str, Any]) -> str:
    """One line per sequence, with the columns of `likely predict`, its log-probability and its number of frames."""
    import polars as pl

    from likely.cli.predict import DecidedBatch

    done = model.decide(found, full=True, **_rules_of(model, settings))
    kept = pl.DataFrame({"sequence": [str(one) for one in found.ids.tolist()], "frames": found.x.lengths})
    return DecidedBatch(done, kept, {}, model.score_samples(found)).csv(proba=True, header=True)


# -------------------------------------------------------------------------- states


def states_csv(model: Any, found: Any, path: str, each: str, proba: bool, time: str, console: Console) -> str:
    """One line per frame, or per sequence."""
    import numpy as np

    rows, unseen = model.known(found)
    logs = model.model_.log_prob(rows)
    able = np.flatnonzero(np.isfinite(logs))
    states, shares, best = _decoded(model, rows, able, path)
    _tell(found, logs, unseen, unknown_words(model, found, rows) if unseen.any() else "", console)
    names = np.array([*model.state_names, None], dtype=object)[states]
    ids = [str(one) for one in found.ids.tolist()]
    if each == "sequence":
        return _by_sequence(ids, rows, logs, best, names)
    when = {} if found.time is None else {time: found.time.values}
    return _by_frame(ids, rows, when, names, states, shares, model.state_names if proba else ())


def unknown_words(model: Any, found: Any, rows: Any) -> str:
    """Categories that did not occur in training and count as missing."""
    from likely.automl.sequence_models import cells_lost
    from likely.cli.fitting.sequence_input import listed

    return listed([f'"{word}"' for word in cells_lost(model.frames(found).values, rows.values)])


def _decoded(model: Any, rows: Any, able: Any, path: str) -> tuple[Any, Any, Any]:
    """The state of each frame (T,), −1 where its sequence is impossible, all probabilities (T, K), and the best path's
    log-probability (n,)."""
    import numpy as np

    from likely.automl.sequence_models import shares_of

    T, K = len(rows.values), len(model.state_names)
    states, shares, best = np.full(T, -1), np.full((T, K), np.nan), np.full(len(rows), -np.inf)
    if not len(able):
        return states, shares, best
    some, here = rows[able], np.repeat(np.isin(np.arange(len(rows)), able), rows.lengths)
    own = model.original if hasattr(model, "original") else model.density_.topology_.original
    shares[here] = shares_of(model.model_, own, some, 0 if path == "filter" else None).values
    walked = model.model_.viterbi(some)
    best[able] = walked.log_prob
    states[here] = own[walked.states.values] if path == "viterbi" else shares[here].argmax(axis=1)
    return states, shares, best


def _tell(found: Any, logs: Any, unseen: Any, words: str, console: Console) -> None:
    import numpy as np

    from likely.core.description import counted

    frames = int(found.x.lengths.sum())
    able = np.isfinite(logs)
    console(f"{counted(len(found), 'sequence')}, {counted(frames, 'frame')}")
    if able.any():
        rate = float(logs[able].sum() / max(found.x.lengths[able].sum(), 1))
        console(f"log-probability: {rate:.4f} nats per frame")
    _tell_of(found.ids[~able], "of probability zero under the model, left without states", console)
    _tell_of(found.ids[unseen], f"with categories not seen in training, {words}, which count as missing", console)


def _tell_of(ids: Any, words: str, console: Console) -> None:
    from likely.core.description import counted

    if len(ids):
        shown = ", ".join(f'"{one}"' for one in ids.tolist()[:5])
        console(f"{counted(len(ids), 'sequence')} {words}: {shown}{' …' if len(ids) > 5 else ''}")


def _by_frame(ids: list[str], rows: Any, when: dict[str, Any], names: Any, states: Any, shares: Any, all_: Any) -> str:
    import numpy as np
    import polars as pl

    labels = np.repeat(np.arange(len(rows)), rows.lengths)
    own = np.where(states >= 0, shares[np.arange(len(states)), states], np.nan)
    columns: list[pl.Series] = [
        pl.Series("sequence", ids).gather(labels), pl.Series("frame", np.arange(len(labels)) - rows.offsets[labels]),
        *(pl.Series(_apart(name), cells) for name, cells in when.items()),
        pl.Series("state", names.tolist(), dtype=pl.String), pl.Series("probability", own).fill_nan(None),
        *(pl.Series(f"p({name})", shares[:, k]).fill_nan(None) for k, name in enumerate(all_)),
    ]  # fmt: skip
    return pl.DataFrame(columns).write_csv()


def _apart(name: str) -> str:
    """Name of an input column that differs from the output columns."""
    return f"input {name}" if name in ("sequence", "frame", "state", "probability") else name


def _by_sequence(ids: list[str], rows: Any, logs: Any, best: Any, names: Any) -> str:
    import numpy as np
    import polars as pl

    lengths = rows.lengths
    walks = [runs_of(names[a:b].tolist()) for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    frame = pl.DataFrame({
        "sequence": ids, "frames": lengths, "log_prob": logs, "log_prob per frame": logs / np.maximum(lengths, 1),
        "log_prob of best path": best, "path": pl.Series(walks, dtype=pl.String),
    })  # fmt: skip
    return frame.write_csv()


def runs_of(names: list[Any]) -> str | None:
    """Run-length form of a path: each state with its number of frames.

    >>> runs_of(["calm", "calm", "storm"])
    'calm×2 storm×1'
    """
    from itertools import groupby

    if not names or names[0] is None:
        return None
    return " ".join(f"{name}×{len(list(run))}" for name, run in groupby(names))


# ------------------------------------------------------------------------- speech


def _spoken(model: Any, files: tuple[str, ...], settings: dict[str, Any]) -> str:
    """Words of each recording: isolated words, classified, or connected words, decoded."""
    import polars as pl

    from likely.cli.predict import DecidedBatch

    _no_tables(settings)
    if settings["single"]:
        done = model.decide(list(files), full=True, **_rules_of(model, settings))
        decided = [str(choice) for choice in done.choice.tolist()]
        why = DecidedBatch(done, None, {}).reasons()
        reasons = pl.Series([reason or None for reason in why], dtype=pl.String)
        return pl.DataFrame(
            {"file": list(files), "decision": decided, "probability": done.posterior.max(axis=1), "reason": reasons}
        ).write_csv()
    if settings["each"] == "word":
        return _words_csv(files, [model.transcribe(file, confidence=True) for file in files])
    said = [model.transcribe(file) for file in files]
    return pl.DataFrame(
        {"file": list(files), "words": [str(one) for one in said], "log_prob": [one.log_prob for one in said]}
    ).write_csv()


def _words_csv(files: tuple[str, ...], said: list[Any]) -> str:
    """One line per word, with its start and end in seconds and its confidence."""
    import polars as pl

    rows = [
        (
            file,
            str(word),
            round(float(begin), 4),
            round(float(end), 4),
            None if one.confidence is None else float(one.confidence[i]),
        )
        for file, one in zip(files, said, strict=True)
        for i, (word, begin, end) in enumerate(zip(one.words, one.begins, one.ends, strict=True))
    ]
    kinds = {"file": pl.String, "word": pl.String, "begin": pl.Float64, "end": pl.Float64, "confidence": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row").write_csv()


def _no_tables(settings: dict[str, Any]) -> None:
    for name in ("id", "time", "columns", "path", "proba"):
        if settings[name]:
            raise click.UsageError(f"--{name} is for tables of frames: this file holds a speech recognizer.")
    if settings["each"] == "frame":
        raise click.UsageError("--per frame is for states: recordings have --per sequence and --per word.")
    if not settings["single"]:
        for name in options.RULES:
            if settings[name] is not None:
                raise click.UsageError(f"--{name.replace('_', '-')} is for isolated words: add --single.")


def _no_recordings(settings: dict[str, Any]) -> None:
    if settings["single"] or settings["each"] == "word":
        flag = "--single" if settings["single"] else "--per word"
        raise click.UsageError(f"{flag} is for recordings: this file holds no speech recognizer.")


def _rules_of(model: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The options of the decision rule, as `decide` takes them."""
    from likely.cli.predict import decision_rules

    return decision_rules(model, {name: settings[name] for name in options.RULES})

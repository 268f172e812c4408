"""`likely decode`: sequences in, the states of their frames out, or the class of each."""

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
  likely decode digits.likely number.wav --each word
  tail -n 500 log.csv | likely decode model.likely -
Columns for a hidden Markov model: sequence, frame (from 0), the time where
there is one, state and its probability; with --each sequence one line for each: its log-probability, that
of the best path, and the path.
Columns for a classifier: sequence, decision (a class, a further action, REJECT
or NOVEL), expected cost, p(class), log_prob and the reason of a refusal, or
that the costs decided for another class than the most probable one.
Columns for sounds: file and words, log_prob; with --each word the seconds in
which each lies, from the beginning of the sound, and its confidence; with
--single the decision about the one word, its probability and the reason.
"""

PATHS = ("viterbi", "posterior", "filter")
RULES = ("cost", "reject_cost", "reject_below", "novelty", "class_prior")


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option("--id", "id", metavar="COL", help="Whose frame a row is.  [as in training]")
@click.option("--time", metavar="COL", help="The column that orders frames.  [as in training]")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Columns that stand for the model's, in its order; repeatable.  [by name]")  # fmt: skip
@click.option(
    "--path",
    type=click.Choice(PATHS),
    help="States by the best path, by their probability given all frames, or given those so far.  [viterbi]",
)
@click.option(
    "--each",
    type=click.Choice(["frame", "sequence", "word"]),
    help="What a line is.  [frame; classes and sounds: sequence]",
)
@click.option("--proba", is_flag=True, help="With the probability of each state (of each class it is always there).")
@click.option("--single", is_flag=True, help="Each sound is one word: decide which, or refuse.")
@options.deciding
@click.option("--format", "format_", metavar="NAME", help="What the files are, where their ending does not say.")
@click.option("--missing", multiple=True, metavar="TOKEN", help="A further word for a missing cell; repeatable.")
@click.option("-o", "--out", metavar="FILE", help="Write to a file, whole or not at all.  [stdout]")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr.")
def decode(model: str, files: tuple[str, ...], out: str | None, quiet: bool, **told: Any) -> None:
    """Find the states of frames with a hidden Markov model, or the classes of sequences with a classifier.

    MODEL is what `likely fit --sequences` wrote, or a model saved from Python. The columns of the files go by name. A
    word that training never saw counts as missing. A sequence that the model holds for impossible keeps its line,
    without a state. For a recognizer of speech (`lk.SpokenWords`) the files are sounds (WAV) or folders of these, and
    their words are written.
    """
    check_outputs({"-o": out}, (model, *files, told["cost"], told["class_prior"]))
    text = decoded(model, files, told, Console(quiet))
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(out, text)


def decoded(model: str, files: tuple[str, ...], told: dict[str, Any], talk: Console) -> str:
    """What is written, whatever the model."""
    from likely.cli.fitting.open_sequence_model import named
    from likely.cli.fitting.sequence_input import by_place, read_for, spooled
    from likely.cli.fitting.sound_folders import sounds_in
    from likely.io.model_files import load

    thing = load(model)
    if hasattr(thing, "transcribe"):
        with spooled(files) as sounds:
            return _spoken(thing, sounds_in(sounds), told)  # a folder means the sounds in it
    _no_sounds(told)
    known = named(thing, model)
    classes = hasattr(known, "classifier_")
    _no_states(told) if classes else _no_decisions(told)
    with spooled(files, symbols=list(known.columns) == ["symbol"]) as there:
        found = by_place(known, read_for(known, there, told, talk), told)
    if classes:
        return classes_csv(known, found, told)
    time = told["time"] or known.schema["roles"].get("time") or "time"
    how = (told["path"] or "viterbi", told["each"] or "frame", told["proba"])
    return states_csv(known, found, *how, time, talk)


def _no_states(told: dict[str, Any]) -> None:
    flag = "--path" if told["path"] else "--each frame" if told["each"] == "frame" else None
    if flag is not None:
        raise click.UsageError(f"{flag} is for states: this file holds a classifier, which decides about sequences.")


def _no_decisions(told: dict[str, Any]) -> None:
    for name in ("cost", "reject_cost", "reject_below", "novelty", "class_prior"):
        if told[name] is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for classifiers: this file holds one chain of states."
            )


# ------------------------------------------------------------------------- classes


def classes_csv(model: Any, found: Any, told: dict[str, Any]) -> str:
    """A line for each sequence: what is decided, at which cost, and why it was refused."""
    import polars as pl

    done = model.decide(found, full=True, **_rules_of(model, told))
    why = [done._reason(i) if done.index[i] < 0 else done.cost_decided(i) or None for i in range(len(done))]
    columns: list[pl.Series] = [
        pl.Series("sequence", [str(one) for one in found.ids.tolist()]), pl.Series("frames", found.x.lengths),
        pl.Series("decision", [str(choice) for choice in done.choice.tolist()]),
        pl.Series("cost", done.cost).fill_nan(None),
        *(pl.Series(f"p({c})", done.posterior[:, j]) for j, c in enumerate(done.classes.tolist())),
        pl.Series("log_prob", model.score_samples(found)).fill_nan(None),
        pl.Series("reason", why, dtype=pl.String),
    ]  # fmt: skip
    return pl.DataFrame(columns).write_csv()


# -------------------------------------------------------------------------- states


def states_csv(model: Any, found: Any, path: str, each: str, proba: bool, time: str, talk: Console) -> str:
    """A line for each frame, or for each sequence."""
    import numpy as np

    rows, strange = model.known(found)
    logs = model.model_.log_prob(rows)
    able = np.flatnonzero(np.isfinite(logs))
    states, shares, best = _decoded(model, rows, able, path)
    _tell(found, logs, strange, unknown_words(model, found, rows) if strange.any() else "", talk)
    names = np.array([*model.state_names, None], dtype=object)[states]
    ids = [str(one) for one in found.ids.tolist()]
    if each == "sequence":
        return _by_sequence(ids, rows, logs, best, names)
    when = {} if found.time is None else {time: found.time.values}
    return _by_frame(ids, rows, when, names, states, shares, model.state_names if proba else ())


def unknown_words(model: Any, found: Any, rows: Any) -> str:
    """The words of frames that became missing because training never saw them."""
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


def _tell(found: Any, logs: Any, strange: Any, words: str, talk: Console) -> None:
    import numpy as np

    from likely.cli.fitting.sequence_input import counted

    frames = int(found.x.lengths.sum())
    able = np.isfinite(logs)
    talk(f"{counted(len(found), 'sequence')}, {counted(frames, 'frame')}")
    if able.any():
        rate = float(logs[able].sum() / max(found.x.lengths[able].sum(), 1))
        talk(f"log-probability: {rate:.4f} nats per frame")
    _tell_of(found.ids[~able], "impossible under the model, left without states", talk)
    _tell_of(found.ids[strange], f"with what training never saw, {words}, which counts as missing", talk)


def _tell_of(ids: Any, words: str, talk: Console) -> None:
    from likely.cli.fitting.sequence_input import counted

    if len(ids):
        shown = ", ".join(f'"{one}"' for one in ids.tolist()[:5])
        talk(f"{counted(len(ids), 'sequence')} {words}: {shown}{' …' if len(ids) > 5 else ''}")


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
    """A column of the input beside ours."""
    return f"input {name}" if name in ("sequence", "frame", "state", "probability") else name


def _by_sequence(ids: list[str], rows: Any, logs: Any, best: Any, names: Any) -> str:
    import numpy as np
    import polars as pl

    lengths = rows.lengths
    walks = [runs_of(names[a:b].tolist()) for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    frame = pl.DataFrame({
        "sequence": ids, "frames": lengths, "log_prob": logs, "a frame": logs / np.maximum(lengths, 1),
        "log_prob of best path": best, "path": pl.Series(walks, dtype=pl.String),
    })  # fmt: skip
    return frame.write_csv()


def runs_of(names: list[Any]) -> str | None:
    """A path in words: each state with the number of frames that it lasts.

    >>> runs_of(["calm", "calm", "storm"])
    'calm×2 storm×1'
    """
    from itertools import groupby

    if not names or names[0] is None:
        return None
    return " ".join(f"{name}×{len(list(run))}" for name, run in groupby(names))


# ------------------------------------------------------------------------- speech


def _spoken(model: Any, files: tuple[str, ...], told: dict[str, Any]) -> str:
    """Words of each sound: one a file, decided about like any class, or as many as were said."""
    import polars as pl

    _no_tables(told)
    if told["single"]:
        done = model.decide(list(files), full=True, **_rules_of(model, told))
        why = [done._reason(i) if done.index[i] < 0 else done.cost_decided(i) or None for i in range(len(done))]
        decided = [str(choice) for choice in done.choice.tolist()]
        reasons = pl.Series(why, dtype=pl.String)
        return pl.DataFrame(
            {"file": list(files), "decision": decided, "probability": done.posterior.max(axis=1), "reason": reasons}
        ).write_csv()
    if told["each"] == "word":
        return _words_csv(files, [model.transcribe(file, confidence=True) for file in files])
    said = [model.transcribe(file) for file in files]
    return pl.DataFrame(
        {"file": list(files), "words": [str(one) for one in said], "log_prob": [one.log_prob for one in said]}
    ).write_csv()


def _words_csv(files: tuple[str, ...], said: list[Any]) -> str:
    """A line for each word, with the seconds in which it lies and how sure one may be of it."""
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


def _no_tables(told: dict[str, Any]) -> None:
    for name in ("id", "time", "columns", "path", "proba"):
        if told[name]:
            raise click.UsageError(f"--{name} is for tables of frames: this file holds a recognizer of speech.")
    if told["each"] == "frame":
        raise click.UsageError("--each frame is for states: of sounds there are --each sequence and --each word.")
    if not told["single"]:
        for name in RULES:
            if told[name] is not None:
                raise click.UsageError(f"--{name.replace('_', '-')} decides about single words: add --single.")


def _no_sounds(told: dict[str, Any]) -> None:
    if told["single"] or told["each"] == "word":
        flag = "--single" if told["single"] else "--each word"
        raise click.UsageError(f"{flag} is for sounds: this file holds no recognizer of speech.")


def _rules_of(model: Any, told: dict[str, Any]) -> dict[str, Any]:
    """The options that say how to decide, as `decide` takes them."""
    from likely.cli.predict import decision_rules

    return decision_rules(model, {name: told[name] for name in RULES})

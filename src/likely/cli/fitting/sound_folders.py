"""Folders of WAV files: fit and evaluate a recognizer of spoken words; sub-folders are the words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likely.cli.console import Console
from likely.cli.fitting.sequence_fit_job import SequenceJob, refuse_for_sounds
from likely.core.errors import DataError, sentence

LEAST = 2  # sounds of each word, so that one can be left out


def are_sounds(files: tuple[str, ...]) -> bool:
    """Whether files or folders hold sounds: by the first that is no note."""
    first = next(iter(_listed(files)), None)
    return first is not None and first.suffix.lower() == ".wav"


def sounds_in(files: tuple[str, ...]) -> tuple[str, ...]:
    """The sounds that files and folders mean, folders searched through."""
    found = []
    for name in files:
        inside = [path for path in _listed((name,)) if path.suffix.lower() == ".wav"] if Path(name).is_dir() else [name]
        if not inside:
            raise DataError(sentence(name, "a folder must hold sounds", "no .wav file"))
        found += [str(path) for path in inside]
    return tuple(found)


def _listed(files: tuple[str, ...]) -> list[Path]:
    from likely.data.read_sequences import ASIDE

    found: list[Path] = []
    for name in map(Path, files):
        if not name.is_dir():
            found.append(name)
            continue
        every = sorted(path for path in name.rglob("*") if path.is_file())
        found += [path for path in every if not any(ASIDE.match(part) for part in path.relative_to(name).parts)]
    return found


def words_of(files: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """The sounds of one folder, and the word of each: the sub-folder in which it lies."""
    from likely.data.read_sequences import folder_labels

    remedy = "sort the sounds into sub-folders, each called as the word that is said in it"
    if len(files) != 1 or not Path(files[0]).is_dir():
        raise DataError(sentence("sounds", "one folder is needed", ", ".join(files[:3]), remedy))
    sounds = sounds_in(files)
    labels = folder_labels([Path(one) for one in sounds], Path(files[0]))
    if labels is None or any(label is None for label in labels.tolist()):
        raise DataError(sentence(files[0], "every sound must lie in a sub-folder", "some in the folder itself", remedy))
    return sounds, [str(label) for label in labels.tolist()]


# ------------------------------------------------------------------------ learning


def learn_words(job: SequenceJob, console: Console) -> dict[str, Any]:
    """Fit a recognizer to the words of a folder, cross-validate it if there are enough sounds, and write it."""
    from likely.cli.outputs import check_outputs
    from likely.recognizers.speech.spoken_words import SpokenWords

    refuse_for_sounds(job)
    check_outputs({"-o": job.out}, (job.cost, job.class_prior), models=("-o",))
    sounds, words = words_of(job.files)
    counts = dict(sorted({word: words.count(word) for word in set(words)}.items()))
    if len(counts) < 2:
        raise DataError(sentence(job.files[0], "two words are needed", f'only "{words[0]}"'))
    told = ", ".join(f"{word} {n}" for word, n in list(counts.items())[:12])
    console(f"{job.files[0]}: {len(sounds):,} sounds of {len(counts)} words: {told}{' …' if len(counts) > 12 else ''}")
    recognizer = SpokenWords(**_settings(job, sorted(counts)))
    e = _measured(job, recognizer, sounds, words, counts, console)
    from likely.cli.fitting.sequence_fit_run import heard

    recognizer, caught = heard(lambda: recognizer.fit(list(sounds), words))
    recognizer.save(job.out)
    hazards = (*_hazards(counts, e), *caught)
    _tell(e, hazards, job, console)
    return _facts(job, sounds, counts, e, hazards)


def _settings(job: SequenceJob, classes: list[str]) -> dict[str, Any]:
    from likely.cli.costs import read_class_prior, read_cost

    known = np.array(classes)
    asked = {
        "n_states": job.n_states, "n_components": job.n_components,
        "topology": job.topology, "covariance": job.covariance,
        "reject_cost": job.reject_cost, "reject_below": job.reject_below, "novelty": job.novelty,
        "cost": None if job.cost is None else read_cost(job.cost, known),
        "class_prior": None if job.class_prior is None else list(read_class_prior(job.class_prior, known)),
    }  # fmt: skip
    return {"random_state": job.seed} | {name: value for name, value in asked.items() if value is not None}


def _measured(
    job: SequenceJob, recognizer: Any, sounds: Any, words: Any, counts: dict[str, int], console: Console
) -> Any:
    """Evaluation on held-out sounds; None if some word has only one sound."""
    from likely.automl.model_comparison import silence
    from likely.cli.fitting.fit_job import splitting_words
    from likely.model_selection.cross_validation import evaluate

    if min(counts.values()) < LEAST:
        return None
    cv = min(job.splitting, min(counts.values())) if isinstance(job.splitting, int) else job.splitting
    console(f"\nevaluating on held-out sounds: {splitting_words(cv, cv if isinstance(cv, int) else 1, False)}")
    with silence():
        return evaluate(recognizer, list(sounds), words, cv=cv, random_state=job.seed, n_jobs=job.jobs)


def _hazards(counts: dict[str, int], e: Any) -> list[str]:
    few = [f'"{word}" ({n})' for word, n in counts.items() if n < 10]
    told = [f"Words said fewer than ten times: {', '.join(few[:10])}{' …' if len(few) > 10 else ''}."] if few else []
    if e is None:
        told.insert(0, "Not evaluated: each word needs two sounds, so that one can be held out.")
    return told


def _tell(e: Any, hazards: tuple[str, ...], job: SequenceJob, console: Console) -> None:
    from likely.cli.fitting.sequence_fit_text import MOST, confusion

    if e is not None:
        console(f"\non {len(e):,} held-out sounds; intervals are at 95 %")
        console(f"  error     {e.error}\n  log-loss  {e.log_loss} nats")
        if len(e.classes) <= MOST:
            console("\n" + "\n".join(confusion(e.confusion, e.classes.tolist(), e.actions)))
        console("(sounds of one speaker in both training and test inflate the figures)")
    if hazards:
        console("\nbe careful:\n" + "\n".join(f"  - {hazard}" for hazard in hazards))
    console(f"\nwritten: {job.out}; `likely decode {job.out} FILE.wav` recognizes words")


def _facts(job: SequenceJob, sounds: Any, counts: dict[str, int], e: Any, hazards: tuple[str, ...]) -> dict[str, Any]:
    from likely.cli.fitting.model_facts import figures

    return {
        "task": "sounds", "command": job.command, "source": list(job.files), "sounds": len(sounds), "classes": counts,
        "target": "folder", "seed": job.seed, "figures": None if e is None else figures(e), "hazards": list(hazards),
    }  # fmt: skip

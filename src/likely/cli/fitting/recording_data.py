"""Recordings as the data of `likely fit --sequences`: folders of WAV files, whose sub-folders are words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from likely.cli.fitting.fit_job import Job, refuse_for_recordings
from likely.core.errors import DataError, sentence

LEAST = 2  # recordings of each word, so that one can be left out


def are_recordings(files: tuple[str, ...]) -> bool:
    """Whether files or folders hold recordings: by the first that is no note."""
    first = next(iter(_listed(files)), None)
    return first is not None and first.suffix.lower() == ".wav"


def recordings_in(files: tuple[str, ...]) -> tuple[str, ...]:
    """The recordings that files and folders mean, folders searched through."""
    found = []
    for name in files:
        inside = [path for path in _listed((name,)) if path.suffix.lower() == ".wav"] if Path(name).is_dir() else [name]
        if not inside:
            raise DataError(sentence(name, "a folder must hold recordings", "no .wav file"))
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
    """The recordings of one folder, and the word of each: the sub-folder in which it lies."""
    from likely.data.read_sequences import folder_labels

    remedy = "sort the recordings into sub-folders, each called as the word that is said in it"
    if len(files) != 1 or not Path(files[0]).is_dir():
        raise DataError(sentence("recordings", "one folder is needed", ", ".join(files[:3]), remedy))
    recordings = recordings_in(files)
    labels = folder_labels([Path(one) for one in recordings], Path(files[0]))
    if labels is None or any(label is None for label in labels.tolist()):
        raise DataError(
            sentence(files[0], "every recording must lie in a sub-folder", "some in the folder itself", remedy)
        )
    return recordings, [str(label) for label in labels.tolist()]


def files_fingerprint(files: Iterable[str]) -> str:
    """Sixteen hexadecimal digits from the contents of files, in order."""
    digest = blake2b(digest_size=8)
    for name in files:
        content = Path(name).read_bytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


# ------------------------------------------------------------------------ learning


class RecordingData:
    """The recordings of a folder; the sub-folder of each is its word."""

    unit, task = "recording", "classification"
    weight = groups = time = None

    def __init__(self, job: Job) -> None:
        refuse_for_recordings(job)
        recordings, words = words_of(job.files)
        self.X, self.y = list(recordings), np.array(words, dtype=object)
        self.counts = {word: words.count(word) for word in sorted(set(words))}
        fewest = min(self.counts.values())
        folds = min(job.splitting, fewest) if isinstance(job.splitting, int) else job.splitting
        self.testable = fewest >= LEAST
        self.job = replace(job, cv=folds) if self.testable and folds != job.splitting else job
        self.jobs = job.jobs

    def describe(self) -> str:
        """The recordings in a line."""
        counts = ", ".join(f"{word} {n}" for word, n in list(self.counts.items())[:12])
        more = " …" if len(self.counts) > 12 else ""
        return f"{self.job.files[0]}: {len(self.X):,} recordings of {len(self.counts)} words: {counts}{more}"

    def facts(self) -> dict[str, Any]:
        """What a model card says about the data."""
        return {
            "task": "recordings", "unit": self.unit, "recordings": len(self.X), "target": "word",
            "classes": self.counts, "columns": [], "excluded": {}, "fingerprint": files_fingerprint(self.X),
        }  # fmt: skip

    def shown(self) -> Any:
        """The recordings as a report shows them."""
        from likely.cli.fitting.fit_study import ShownRecordings

        return ShownRecordings(self.X)

    def candidates(self, field: Any, rules: dict[str, Any]) -> tuple[list[Any], str, str]:
        """One recognizer, as asked."""
        from likely.automl.candidates import Candidate
        from likely.recognizers.speech.spoken_words import SpokenWords

        job, names = self.job, ("n_states", "n_components", "topology", "covariance")
        asked = {name: getattr(job, name) for name in names if getattr(job, name) is not None}
        recognizer = SpokenWords(**asked, **rules, random_state=job.seed)
        what = "one hidden Markov model of cepstral features per word"
        return [Candidate("hmm", "hidden Markov models of words", what, 1, recognizer)], "", ""

    def model(self, classifier: Any, calibration: Any) -> Any:
        """The recognizer itself."""
        return classifier

    def warnings(self, field: Any) -> Iterator[str]:
        """Warnings about the data."""
        if not self.testable:
            yield "Not evaluated: each word needs two recordings, so that one can be held out."
        else:
            yield "Recordings of one speaker in both training and test inflate the figures."

"""Hidden Markov models on real sequences: promoters, gene families, and the map of a virus.

    python bench/sequences.py                 all sections, and the page docs/results/sequences.md
    python bench/sequences.py --only genes    sections whose name contains this; nothing is written then

Data come from LIKELY_DATA, else from ../shared/data. Published figures: [S] seen in a public source, [M] from memory.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.naive_bayes import MultinomialNB

import likely as lk
from likely.metrics.confidence_intervals import proportion_interval
from pages import conditions, table

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "sequences.md"
PREFACE = """# Results: hidden Markov models

By `python bench/sequences.py` (data from `LIKELY_DATA`). Errors stand with exact 95 % intervals. Published figures:
[S] seen in a public source, [M] from memory. Seconds were taken on a busy machine with two cores.
"""


def share(wrong: int, of: int) -> str:
    """An error rate in percent with its interval."""
    interval = proportion_interval(wrong, of)
    return f"{100 * wrong / of:.1f} ({100 * interval.low:.1f} to {100 * interval.high:.1f})"


# ------------------------------------------------------------------ promoters


def promoters() -> str:
    """106 pieces of DNA, promoters or not: leave one out."""
    with (DATA / "bio" / "promoters.csv").open() as file:
        found = list(csv.DictReader(file))
    x, y = [np.array(list(row["seq"])) for row in found], np.array([row["label"] for row in found])
    symbols = lk.CategoricalDensity(prior=2.0)
    models: dict[str, Any] = {
        "naive Bayes by position": lk.NaiveBayes("categorical"),
        "HMM, one state per position": lk.HMMDensity(symbols, 57, topology="left-to-right", max_iter=1),
        "HMM, (0, 1, 2), 20 states": lk.HMMDensity(symbols, 20, topology=(0, 1, 2), max_iter=30),
        "HMM, ergodic, 4 states": lk.HMMDensity(symbols, 4, n_init=3, max_iter=60, random_state=0),
    }
    lines = []
    for name, density in models.items():
        rows: Any = np.stack(x) if name.startswith("naive") else x
        clf = density if name.startswith("naive") else lk.BayesClassifier(density)
        start = time.perf_counter()
        wrong = sum(left_out(clf, rows, y, i) != y[i] for i in range(len(y)))
        lines.append([name, wrong, share(wrong, len(y)), f"{time.perf_counter() - start:.0f}"])
    head = ["density of a class", "wrong of 106", "error %", "seconds"]
    told = "Published, wrong of 106 [M]: KBANN 4, back-propagation 8, O'Neill 12, 3-NN 13, ID3 19.\n"
    return f"## Promoters, leave-one-out\n\n{table(head, lines)}\n{told}"


def left_out(clf: Any, x: Any, y: Any, i: int) -> Any:
    """The class of sequence i by a classifier that has not seen it."""
    rest = np.delete(np.arange(len(y)), i)
    rows = x[rest] if isinstance(x, np.ndarray) else [x[j] for j in rest]
    clf._alarms = False  # nobody asks what is novel
    return clf.fit(rows, y[rest]).predict(x[[i]] if isinstance(x, np.ndarray) else [x[i]])[0]


# --------------------------------------------------------------- gene families


def genes() -> str:
    """4,380 human coding sequences of seven families: a fifth held out."""
    z = np.load(DATA / "bio" / "gene_families.npz")
    x, y = lk.Ragged.of(z["X"], z["lengths"]), z["y"]
    test = np.random.default_rng(0).random(len(x)) < 0.2
    codons = x_of_codons(x)
    lines = []
    for states in (1, 2, 4, 8):
        density = lk.HMMDensity(lk.CategoricalDensity(), states, max_iter=30, tol=1e-4, random_state=0)
        lines.append([f"HMM of codons, {states} states", *judged(lk.BayesClassifier(density), codons, y, test)])
    bases = lk.HMMDensity(lk.CategoricalDensity(), 3, topology=(1,), final=False, max_iter=30, tol=1e-4)
    ring = lk.hmm.Topology.steps(3, (1,), final=False, around=True)
    bases.topology = ring
    lines.append(["HMM of bases, a ring of 3 states", *judged(lk.BayesClassifier(bases), x, y, test)])
    lines.append(["scikit-learn, naive Bayes on 6-mer counts", *judged_counts(x, y, test)])
    head = ["density of a family", f"wrong of {int(test.sum())}", "error %", "log-loss", "seconds"]
    return f"## Gene families, a fifth held out\n\n{table(head, lines)}\n{GENES}"


GENES = """Many genes of a family are near copies of each other, so the longer the words that are counted, the better:
six bases at a time know the copies by heart. An HMM of a few states knows the style of a family, not its texts.
"""


def x_of_codons(x: Any) -> Any:
    """Bases three at a time, the rest left out."""
    lengths = x.lengths // 3
    keep = np.concatenate([np.arange(a, a + 3 * m) for a, m in zip(x.offsets[:-1], lengths, strict=True)])
    codes = (x.values[keep].view(np.uint32).reshape(-1, 3) - 64) @ np.array([1024, 32, 1])
    return lk.Ragged.of(codes.astype(np.int64), lengths)


def judged(clf: Any, x: Any, y: Any, test: Any) -> list[Any]:
    """Mistakes, error, log-loss and seconds on what was held out."""
    start = time.perf_counter()
    clf._alarms = False
    clf.fit(x[~test], y[~test])
    p = clf.log_posterior(x[test])
    wrong = int((p.argmax(axis=1) != y[test]).sum())
    loss = -p[np.arange(len(p)), y[test]].mean()
    return [wrong, share(wrong, len(p)), f"{loss:.2f}", f"{time.perf_counter() - start:.0f}"]


def judged_counts(x: Any, y: Any, test: Any) -> list[Any]:
    start = time.perf_counter()
    codes = np.searchsorted(np.array(["A", "C", "G", "N", "T"]), x.values)
    counts = np.zeros((len(x), 5**6), dtype=np.float32)
    for i, (a, b) in enumerate(zip(x.offsets[:-1], x.offsets[1:], strict=True)):
        if b - a >= 6:
            words = np.lib.stride_tricks.sliding_window_view(codes[a:b], 6) @ 5 ** np.arange(6)
            counts[i] = np.bincount(words, minlength=5**6)
    nb = MultinomialNB().fit(counts[~test], y[~test])
    p = nb.predict_log_proba(counts[test])
    wrong = int((p.argmax(axis=1) != y[test]).sum())
    loss = -np.maximum(p[np.arange(len(p)), y[test]], -1e6).mean()
    return [wrong, share(wrong, len(p)), f"{loss:.2f}", f"{time.perf_counter() - start:.0f}"]


# ----------------------------------------------------------------------- phage


def phage() -> str:
    """The genome of bacteriophage λ: stretches of unlike composition, found without labels."""
    text = (DATA / "bio" / "lambda_phage.fa").read_text().split("\n", 1)[1].replace("\n", "")
    x = np.array(list(text.upper()))
    lines = []
    for states in (1, 2, 3):
        density = lk.HMMDensity(lk.CategoricalDensity(), states, n_init=4, max_iter=300, tol=1e-7, random_state=0)
        h = density.fit([x])
        n = h.model_.n_parameters
        bic = n * np.log(len(x)) - 2 * h.score([x])
        path = h.predict(x)
        borders = np.flatnonzero(np.diff(path)) + 1
        shown = ", ".join(map(str, borders)) if len(borders) <= 12 else f"{len(borders)} of them"
        lines.append([states, f"{h.score([x]):.1f}", n, f"{bic:.0f}", shown or "none"])
    head = ["states", "log-likelihood", "parameters", "BIC", "borders of the best path"]
    return f"## Bacteriophage λ, {len(x):,} bases\n\n{table(head, lines)}\n{PHAGE}"


PHAGE = """After a short beginning (176 bases, 42 % G and C) the two-state path has the left arm, whose late genes are
rich in G and C (57 %), in one piece: it ends at the second border, near base 22,500. This border and the later ones
lie where Churchill's segmentation of the same genome (1989) has them: near 22,500, 31,000–33,000, 38,000 and
46,500 [M].
"""

SECTIONS: dict[str, Callable[[], str]] = {"promoters": promoters, "genes": genes, "phage": phage}


def main() -> None:
    """Run the sections that were asked for; all of them make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    parts = []
    for name, section in SECTIONS.items():
        if only in name:
            parts.append(section())
            print(parts[-1], flush=True)
    if not only:
        PAGE.write_text("\n".join([PREFACE, *parts, conditions("scikit-learn")]))


if __name__ == "__main__":
    main()

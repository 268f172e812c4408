"""False alarms of `likely follow --false-alarm-every N` in new normal lines, beside what is said to be supported.

    python bench/follow.py [--first SEED] [--trainings COUNT]

Each training is an HMM of n simulated frames, followed through 10,000 new ones. N is n/τ over the number of independent
frames that are to lie above the threshold. What is said holds where alarms come no more often than the sentence of the
command says, or than 1.5 times the stated rate where it says nothing.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.signal import lfilter

import likely as lk
from likely.cli.following.follow_alarms import CLOSE, BySurprisal
from likely.cli.following.follow_models import subject_of
from likely.core.ragged import Ragged
from likely.estimation.novelty.held_out_frames import independent_frames
from likely.estimation.novelty.hmm_novelty_score import ChainTail
from pages import table

ABOVE = (0.3, 3.0, 6.0, 7.75, 15.5, 30.0, 77.5)  # independent frames above the threshold; 7.75: 1 / `supported_rate_`
LEAST = 4.5  # alarms cannot be asked for more often than in one of four lines
NEW = 10_000


def autoregression(rng: Any, T: int, memory: float) -> Any:
    """Two independent columns that keep a share of themselves from frame to frame."""
    return lfilter([1.0], [1.0, -memory], rng.normal(size=(T + 200, 2)), axis=0)[200:]


def chain(rng: Any, T: int, states: int, stay: float, apart: float) -> Any:
    """Two columns of a Markov chain that stays where it is, or goes anywhere."""
    moves = np.where(rng.random(T) < stay, -1, rng.integers(states, size=T))
    moves[0] = 0
    last = np.maximum.accumulate(np.where(moves >= 0, np.arange(T), 0))
    return apart * moves[last][:, None] * [1.0, -1.0] + rng.normal(size=(T, 2))


KINDS: dict[str, tuple[int, Callable[[Any, int], Any]]] = {  # states of the model, frames (T, 2)
    "white noise, 2 states": (2, lambda rng, T: rng.normal(size=(T, 2))),
    "heavy tails (t, 5), 2 states": (2, lambda rng, T: rng.standard_t(5, size=(T, 2))),
    "chain of 2 states": (2, lambda rng, T: chain(rng, T, 2, 0.95, 3.0)),
    "chain of 3 states": (3, lambda rng, T: chain(rng, T, 3, 0.9, 2.0)),
    "memory 0.5, 3 states": (3, lambda rng, T: autoregression(rng, T, 0.5)),
    "memory 0.9, 3 states": (3, lambda rng, T: autoregression(rng, T, 0.9)),
}


def promised(said: list[str], every: float) -> float:
    """The share of lines in which alarms come at most, by what was said."""
    if not said:
        return CLOSE / every
    found = re.search(r"these support one in ([\d.,]+) lines", said[0])
    return 1.0 / float(found[1].replace(",", "")) if found else 1.0


def one_kind(name: str, n: int, seeds: range) -> dict[float, Any]:
    """By the number of frames above the threshold: rates over the stated one, and whether these exceed what is said."""
    states, make = KINDS[name]
    found: dict[float, list[tuple[float, bool]]] = {k: [] for k in ABOVE}
    for seed in seeds:
        x = make(np.random.default_rng([seed, n]), n + NEW)
        model = lk.HMMDensity(n_states=states, random_state=0).fit([x[:n]])
        subject, surprisal = subject_of(model, "model"), -np.log(ChainTail(model.model_).along(Ragged.of([x[n:]])))
        for k in ABOVE:
            every, said = independent_frames(model.held_out_novelty_) / k, list[str]()
            if every > LEAST:
                rule = BySurprisal(subject, every, "model", said.append)
                assert rule.held_out is not None
                share = len(rule.start.run(rule.held_out.neg_log_p_value(surprisal) / 2 - np.log(2))) / NEW
                found[k].append((share * every, share > promised(said, every)))
    return {k: np.array(v).reshape(-1, 2) for k, v in found.items()}


def main() -> None:
    """All kinds and numbers of frames."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--trainings", type=int, default=30, help="of each kind and number of frames")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, above, count = [], 0, 0
    for n in (200, 500, 2000):
        for name in KINDS:
            found = one_kind(name, n, range(options.first, options.first + options.trainings))
            cells = [f"{v[:, 0].mean():.2f}, {v[:, 1].sum():.0f} of {len(v)}" if len(v) else "" for v in found.values()]
            above += sum(int(v[:, 1].sum()) for v in found.values())
            count += sum(map(len, found.values()))
            lines.append([name, n, *cells])
            print(lines[-1], flush=True)
    print(table(["rate over the stated one, above what is said", "n", *(f"{k:g} above" for k in ABOVE)], lines))
    print(f"{above} of {count} rates are above what is said.")


if __name__ == "__main__":
    main()

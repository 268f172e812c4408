"""Choosing the number of HMM states by cross-validated log-likelihood per frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.automl.model_comparison import silence
from likely.automl.sequence_models import known_rows
from likely.core.arrays import Array, Index, Rows
from likely.core.errors import DataError, DomainError, LikelyError, sentence
from likely.core.ragged import Ragged
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parallel import in_threads
from likely.estimation.scikit_learn import clone
from likely.metrics.confidence_intervals import mean, simplest_within_error
from likely.model_selection.splits import Split, make_splits

PLUS_MINUS = (
    "± is one standard error of the paired difference to the best over sequences. "
    "The smallest number of states within it is chosen."
)
PIECES = 20  # pieces of few long sequences, for cross-validation


@dataclass(frozen=True, eq=False)
class StateChoice:
    """Held-out log-likelihood of each number of states, in nats per frame, and the chosen number.

    Parameters
    ----------
    numbers : list of int
        Numbers of states that were compared.
    held_out : array (m,)
        Held-out log-likelihood of each; −∞ if some held-out sequence has density 0, NaN if the fit failed.
    error : array (m,)
        Standard error of its difference to the best.
    failures : dict
        Why fits failed, by number.
    pieces : int
        Number of sequences, or pieces of them, that were held out in turn.

    See Also
    --------
    choose_states : Compare numbers of states.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = [np.repeat(rng.permutation([0.0, 9.0]), 15) + rng.normal(size=30) for _ in range(8)]
    >>> choice = lk.choose_states(lk.HMMDensity(random_state=0), x, [1, 2])
    >>> choice.numbers, choice.best
    ([1, 2], 2)
    """

    numbers: list[int]
    held_out: Array  # (m,): −inf if some held-out sequence has density 0, NaN if the fit failed
    error: Array  # (m,): standard error of its difference to the best
    failures: dict[int, str]  # reasons, by number
    pieces: int  # number of sequences (or pieces of them) held out in turn

    @property
    def best(self) -> int:
        """The smallest number within one standard error of the best."""
        return self.numbers[simplest_within_error(self.held_out, self.error)]

    def __str__(self) -> str:
        top = float(np.where(np.isfinite(self.held_out), self.held_out, -np.inf).max())
        lines = [f"{'states':>6} {'held-out, nats per frame':>25}  {'below the best':<17}"]
        for k, value, error in zip(self.numbers, self.held_out.tolist(), self.error.tolist(), strict=True):
            cell = self.failures.get(k) or ("impossible for some" if np.isneginf(value) else f"{value:.4f}")
            below = "the best" if value == top else f"{top - value:.4f} ± {error:.4f}" if np.isfinite(value) else ""
            lines.append(f"{k:>6} {cell:>25}  {below:<17}{'  chosen' if k == self.best else ''}".rstrip())
        return "\n".join([*(line.rstrip() for line in lines), PLUS_MINUS])


class _HeldOutScore(NamedTuple):
    log_prob: Array  # (m,) of the held-out sequences
    failure: str


def choose_states(
    density: DensityEstimator, X: Rows, numbers: Iterable[int] = (1, 2, 3, 4, 6, 8), *, cv: Any = 5,
    groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None, random_state: int = 0,
    n_jobs: int | None = None, callback: Callable[[int], None] = lambda k: None,
) -> StateChoice:  # fmt: skip
    """Compare numbers of states of an `HMMDensity` by cross-validation over whole sequences.

    Fewer than five sequences are split into pieces, if a sequence may begin and end anywhere.

    Parameters
    ----------
    density : HMMDensity
        The hidden Markov model; it is not changed.
    X : sequences
        Sequences, as `HMMDensity.fit` takes them.
    numbers : iterable of int
        Numbers of states to compare.
    cv : int, float, splitter, "leave-one-out" or "time"
        How sequences are split, as in `evaluate`.
    groups : array-like (n,), optional
        Group of each sequence; one group is never on both sides of a split.
    sample_weight : array-like (n,), optional
        Weight per sequence.
    random_state : int
        Seed of the splits.
    n_jobs : int, optional
        Number of threads; None: one per core.
    callback : callable
        Called with the number of states after each fit.

    Returns
    -------
    StateChoice
        Held-out log-likelihood of each number, and the chosen one, `best`; prints as a table.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = [np.repeat(rng.choice([0.0, 9.0], 6), 8) + rng.normal(0, 1, 48) for _ in range(6)]
    >>> choose_states(lk.HMMDensity(random_state=0), x, (1, 2)).best
    2
    """
    asked = sorted({int(k) for k in numbers})
    if not asked or asked[0] < 1:
        raise DomainError(sentence("choose_states", "numbers of states must be integers above 0", asked))
    seqs, weight, groups = _enough(density, Ragged.of(X), sample_weight, groups, cv)
    splits = make_splits(seqs, np.zeros(len(seqs), dtype=np.intp), cv, weight=weight, groups=groups, seed=random_state)
    splits = [split for split in splits if len(split.train) and len(split.test)]
    tasks = [(k, split) for k in asked for split in splits]

    def run(task: tuple[int, Split]) -> _HeldOutScore:
        done = _tested(clone(density).set_params(n_states=task[0]), seqs, weight, task[1])
        callback(task[0])
        return done

    with silence():
        tested = in_threads(run, tasks, n_jobs)
    per = [tested[i * len(splits) : (i + 1) * len(splits)] for i in range(len(asked))]
    return _compared(asked, per, splits, seqs.lengths, weight)


def _enough(density: Any, seqs: Ragged, weight: Any, groups: Any, cv: Any) -> tuple[Ragged, Array | None, Any]:
    """Sequences for cross-validation: unchanged, or pieces of few long ones."""
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    folds = cv if isinstance(cv, int) else 2
    if len(seqs) >= folds:
        return seqs, weight, groups
    anywhere = isinstance(density.topology, str) and density.topology in ("ergodic", "cyclic") and not density.final
    if not anywhere or len(seqs.values) < 2 * PIECES:
        expected, remedy = f"to choose a number of states, {folds} sequences are needed", "pass a number of states"
        raise DataError(sentence("choose_states", expected, len(seqs), remedy))
    share = np.maximum(np.round(PIECES * seqs.lengths / seqs.lengths.sum()).astype(int), 1)
    cuts = [len(part) for T, m in zip(seqs.lengths, share, strict=True) for part in np.array_split(np.empty(T), m)]
    labels = np.repeat(np.arange(len(seqs)), share)
    kept = [None if part is None else np.asarray(part)[labels] for part in (weight, groups)]
    return Ragged.of(seqs.values, cuts), kept[0], kept[1]


def _tested(density: Any, seqs: Ragged, weight: Array | None, split: Split) -> _HeldOutScore:
    try:
        density.fit(seqs[split.train], sample_weight=None if weight is None else weight[split.train])
        return _HeldOutScore(density.model_.log_prob(known_rows(density, seqs[split.test])[0]), "")
    except LikelyError as error:
        return _HeldOutScore(np.full(len(split.test), np.nan), " ".join(str(error).split()))


def _compared(
    asked: list[int], per: list[list[_HeldOutScore]], splits: list[Split], lengths: Index, weight: Array | None
) -> StateChoice:
    at = np.concatenate([split.test for split in splits])
    frames = lengths[at] * (1.0 if weight is None else weight[at])
    logs = np.array([np.concatenate([t.log_prob for t in tests]) for tests in per])  # (m, sequences)
    with np.errstate(invalid="ignore"):
        rates = np.where(lengths[at] > 0, logs / np.maximum(lengths[at], 1), 0.0)
        held = rates @ frames / frames.sum()
    failures = {k: next(t.failure for t in tests if t.failure) for k, tests in zip(asked, per, strict=True)
                if any(t.failure for t in tests)}  # fmt: skip
    able = np.where(np.isfinite(held), held, -np.inf)
    if np.isneginf(able).all():
        why = next(iter(failures.values()), "held-out sequences have density 0 under every model")
        raise DataError(sentence("choose_states", "the fit must succeed for some number of states", why))
    best = rates[int(able.argmax())]
    errors = [mean(best - one, frames / frames.sum()).se if np.isfinite(one).all() else np.nan for one in rates]
    return StateChoice(asked, held, np.array(errors), failures, len(at))

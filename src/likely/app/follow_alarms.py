"""When a live feed raises an alarm: where silence would cost more, or where surprise is more than a model expects."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.app.follow_models import REGIMES, Subject
from likely.errors import DataError, ModelFileError, sentence

CERTAIN = 1e-12  # correlation that is left of a combination of entries without any variance
DRAWS = 4000  # from which the law of a chain's surprise is known


class ByCost:
    """An alarm where its expected cost is below that of silence: p(fine) · alarm_cost < p(fault) · miss_cost."""

    start = None  # it remembers nothing

    def __init__(self, subject: Subject, faults: tuple[str, ...], miss_cost: float, alarm_cost: float) -> None:
        from likely.decisions.cost import Cost

        self.subject, self.faults = subject, _places(subject, faults)
        self.cost = Cost(np.array([[0.0, miss_cost], [alarm_cost, 0.0]]))

    def step(self, state: Any, predicted: Any, y: Any, news: float, belief: Any) -> tuple[Any, bool]:
        """The next state, and whether there is an alarm."""
        fault = min(float(self.subject.shares(belief)[self.faults].sum()), 1.0)
        silence, alarm = self.cost.expected_of(np.array([[1.0 - fault, fault]]))[0]
        return None, bool(alarm < silence)


def _places(subject: Subject, faults: tuple[str, ...]) -> list[int]:
    shares = subject.shares(subject.plays.initial())
    if shares is None:
        watched = hasattr(subject.plays, "emissions") or hasattr(subject.plays, "emission")
        remedy = "--false-alarm-every watches its surprise" if watched else "leave it out, and read the surprise"
        raise DataError(sentence("--fault", "a model with states is needed", type(subject.plays).__name__, remedy))
    names = subject.states or [str(k) for k in range(len(shares))]
    unknown = [name for name in faults if name not in names]
    if unknown:
        raise DataError(sentence("--fault", f"there must be a state {unknown[0]!r}", f"states {', '.join(names)}"))
    return sorted({names.index(name) for name in faults})


class BySurprise:
    """An alarm where surprise keeps beyond what the model expects: Page's sum of −log u/2 − log 2.

    u is the probability, under the model and given all before, of an observation at least as surprising. While the
    model is right u is uniform and −log u exponential with mean 1, whatever the model; the sum is that of
    log-likelihood ratios against a mean of 2.
    """

    def __init__(self, subject: Subject, false_alarm_every: float, path: str) -> None:
        from likely.decisions.cusum import Cusum

        self.tail = _tail_of(subject.plays, path)
        self.start = Cusum.for_law(law_of_increments, false_alarm_every)

    def step(self, state: Any, predicted: Any, y: Any, news: float, belief: Any) -> tuple[Any, bool]:
        """The next state, and whether there is an alarm; what is not observed adds nothing."""
        u = self.tail(predicted, y, news)
        after = state.step(0.0 if u is None else -np.log(max(u, 1e-300)) / 2 - np.log(2))
        return after, after.alarm


def law_of_increments(z: Any) -> Any:
    """P(−log u/2 − log 2 ≤ z) for uniform u: 1 − e^{−2z}/4 from −log 2 on."""
    return np.where(z >= -np.log(2), 1 - np.exp(-2 * np.maximum(z, -np.log(2))) / 4, 0.0)


def _tail_of(plays: Any, path: str) -> Any:
    if hasattr(plays, "emissions"):
        return ChainTail(plays)
    if hasattr(plays, "emission") and hasattr(plays, "observation"):
        return GaussianTail(plays)
    expected = "--false-alarm-every needs a model whose next observation has a known law: a chain, or a linear one"
    remedy = "use --fault, or leave it out" if _has_states(plays) else "leave it out, and read the surprise"
    raise ModelFileError(sentence(path, expected, type(plays).__name__, remedy))


def _has_states(plays: Any) -> bool:
    return any(hasattr(plays.initial(), name) for name in REGIMES)


class GaussianTail:
    """Of a linear-Gaussian model: −2 log p = log det 2πS + χ², with as many degrees as entries were seen.

    Where S is singular, some combination of entries is certain: it has no degree, and its contrary has log p = −inf.
    """

    def __init__(self, plays: Any) -> None:
        self.plays = plays

    def __call__(self, predicted: Any, y: Any, news: float) -> float | None:
        """P(an observation at least as surprising); None where nothing was seen, or nothing can be expected yet."""
        from scipy.special import chdtrc

        row = y[1] if isinstance(y, tuple) else y  # (time, row) in continuous time
        row = np.atleast_1d(np.asarray(row, dtype=np.float64)).ravel()
        seen = ~np.isnan(row)
        C, R = _at(self.plays.emission, predicted)[seen], _at(self.plays.observation, predicted)[np.ix_(seen, seen)]
        with np.errstate(invalid="ignore"):  # 0 · ∞ while the start is not yet known
            spread = C @ predicted.covariance @ C.T + R
        if not seen.any() or not np.isfinite(spread).all():
            return None
        if news == -np.inf:
            return 0.0
        distance, degrees = _surprise(spread, row[seen] - C @ predicted.mean, news)
        return float(chdtrc(degrees, distance)) if degrees else 1.0


def _surprise(spread: Any, residual: Any, news: float) -> tuple[float, int]:
    """χ² of a residual, and its degrees of freedom."""
    sd = np.sqrt(np.diagonal(spread))
    moving = sd > 0
    shared, axes = np.linalg.eigh(spread[np.ix_(moving, moving)] / np.outer(sd[moving], sd[moving]))
    free = shared > CERTAIN * len(sd)
    if free.sum() == len(sd):
        return max(-2 * news - np.linalg.slogdet(2 * np.pi * spread)[1], 0.0), len(sd)
    along = (axes.T @ (residual[moving] / sd[moving]))[free]
    return float(np.sum(along**2 / shared[free])), int(free.sum())


def _at(matrix: Any, belief: Any) -> Any:
    """A matrix at the time of a belief, where it varies."""
    return matrix if matrix.ndim == 2 else matrix[belief.time]


class ChainTail:
    """Of a hidden Markov model: frames drawn from each state, weighted by how probable the state is now."""

    def __init__(self, plays: Any) -> None:
        self.law, self.each = plays.emissions, max(DRAWS // plays.states, 100)
        rng = np.random.default_rng(0)
        self.drawn = [self.law.member(k).sample(self.each, rng) for k in range(plays.states)]
        self.state = np.repeat(np.arange(plays.states), self.each)
        self.scored: dict[Any, tuple[Any, Any]] = {}  # by which entries were seen

    def __call__(self, predicted: Any, y: Any, news: float) -> float | None:
        """P(a frame at least as surprising), with the same entries missing; None where nothing was seen."""
        gaps = _gaps(y)
        if all(_flat(gaps)):
            return None
        top, shares = self._scores(gaps)
        with np.errstate(divide="ignore"):
            logs = top + np.log(shares @ predicted.probs)
        as_odd = logs <= news + 1e-9 * (1 + abs(news))
        share = np.bincount(self.state[as_odd], minlength=len(predicted.probs)) @ predicted.probs / self.each
        return float((share * self.each + 1) / (self.each + 1))  # the frame itself is one of them

    def _scores(self, gaps: Any) -> tuple[Any, Any]:
        """log of the best state's density of each draw (n,), and all relative to it (n, K)."""
        if gaps not in self.scored:
            logs = np.concatenate([self.law.log_prob(_with_gaps(x, gaps)) for x in self.drawn])
            top = logs.max(axis=1)
            self.scored[gaps] = top, np.exp(logs - top[:, None])
        return self.scored[gaps]


def _gaps(y: Any) -> Any:
    """Which entries of a frame are missing, as a key."""
    from likely.core.arrays import is_gap

    if isinstance(y, dict):
        return tuple((name, _gaps(part)) for name, part in y.items())
    return tuple(bool(is_gap(cell)) for cell in np.ravel(np.asarray(y)).tolist())


def _flat(gaps: Any) -> list[bool]:
    return [one for gap in gaps for one in ([gap] if isinstance(gap, bool) else _flat(gap[1]))]


def _with_gaps(x: Any, gaps: Any) -> Any:
    """Rows with the same entries missing."""
    if not any(_flat(gaps)):
        return x
    if not isinstance(gaps[0], bool):
        from likely.core.columns import Columns

        return Columns({name: _with_gaps(np.asarray(x[name]), own) for name, own in gaps})
    a = np.asarray(x)
    a = a.astype(np.float64 if a.dtype.kind in "biuf" else object)
    wide = a[:, None] if a.ndim == 1 else a
    nothing: Any = np.nan if a.dtype.kind == "f" else None
    wide = np.where(np.array(gaps), nothing, wide)
    return wide[:, 0] if a.ndim == 1 else wide

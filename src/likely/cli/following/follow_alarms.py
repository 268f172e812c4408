"""Alarm rules of `likely follow`: by expected cost, or by CUSUM of the surprisal."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.cli.following.follow_models import REGIMES, Subject
from likely.core.errors import DataError, ModelFileError, sentence

CERTAIN = 1e-12  # correlation that is left of a combination of entries without any variance
STEP = 1.05  # of a threshold that is raised
CLOSE = 1.5  # times the stated rate: false alarms that may come this often need no word


class ByCost:
    """Alarm where its expected cost is below that of no alarm: p(fine) · alarm_cost < p(fault) · miss_cost."""

    start = None  # it remembers nothing

    def __init__(self, subject: Subject, faults: tuple[str, ...], miss_cost: float, alarm_cost: float) -> None:
        from likely.decision.cost import Cost

        self.subject, self.faults = subject, _places(subject, faults)
        self.cost = Cost(np.array([[0.0, miss_cost], [alarm_cost, 0.0]]))

    def step(
        self, state: Any, predicted: Any, y: Any, log_p: float, belief: Any, inputs: Any = None
    ) -> tuple[Any, bool]:
        """The next state, and whether there is an alarm."""
        fault = min(float(self.subject.shares(belief)[self.faults].sum()), 1.0)
        silence, alarm = self.cost.expected_of(np.array([[1.0 - fault, fault]]))[0]
        return None, bool(alarm < silence)


def _places(subject: Subject, faults: tuple[str, ...]) -> list[int]:
    shares = subject.shares(subject.filter.initial_belief())
    if shares is None:
        watched = _has_tail(subject.filter)
        remedy = "--false-alarm-every watches its surprisal" if watched else "leave it out, and read the surprisal"
        raise DataError(sentence("--fault", "a model with states is needed", type(subject.filter).__name__, remedy))
    names = subject.states or [str(k) for k in range(len(shares))]
    unknown = [name for name in faults if name not in names]
    if unknown:
        raise DataError(sentence("--fault", f"there must be a state {unknown[0]!r}", f"states {', '.join(names)}"))
    return sorted({names.index(name) for name in faults})


class BySurprisal:
    """A rule of `AlarmFilter`: CUSUM (Page) of the surprisal, the sum of −log u/2 − log 2.

    u is the predictive p-value: the probability of an observation at least as improbable, given all before. While the
    model is right u is uniform and −log u exponential with mean 1, whatever the model; the sum is that of
    log-likelihood ratios against a mean of 2. Held-out frames give the distribution of −log u where the model is not
    quite right, and how high the sum rises where they depend on each other.
    """

    def __init__(self, subject: Subject, false_alarm_every: float, path: str, console: Any) -> None:
        from likely.decision.sequential.cusum import CUSUM
        from likely.estimation.novelty.held_out_frames import enough

        self.tail = _tail_of(subject.filter, path)
        self.held_out = HeldOutFrames(subject.held_out_novelty) if enough(subject.held_out_novelty) else None
        self.start = CUSUM.for_distribution(distribution_of_increments, false_alarm_every)
        if self.held_out is None:
            console(
                f"The model holds {'too few' if subject.held_out_novelty.shape[1] else 'no'} held-out frames: "
                "the stated false-alarm rate holds only if the model is correct. An HMMDensity that was fitted to "
                "sequences holds some."
            )
            return
        self.start = self.held_out.raised(self.start, false_alarm_every)
        _tell_what_is_supported(subject, false_alarm_every, console)
        if self._increment(np.log(self.tail.each + 1.0)) <= 0:  # the rarest that draws can tell
            console(
                "No line can raise an alarm: a quarter or more of the held-out frames have the smallest p-value that "
                "can be resolved. The model has too many parameters for its frames: use fewer, or more training frames."
            )

    def step(
        self, state: Any, predicted: Any, y: Any, log_p: float, belief: Any, inputs: Any = None
    ) -> tuple[Any, bool]:
        """The next state, and whether there is an alarm; missing observations add nothing."""
        p_value = self.tail(predicted, y, log_p, inputs)
        after = state.step(0.0 if p_value is None else self._increment(-np.log(max(p_value, 1e-300))))
        return after, after.alarm

    def _increment(self, v: float) -> float:
        """Increment of the sum for −log u."""
        rare = v if self.held_out is None else float(self.held_out.neg_log_p_value(np.array([v]))[0])
        return float(rare / 2 - np.log(2))


def _tell_what_is_supported(subject: Subject, false_alarm_every: float, console: Any) -> None:
    """Note if the false-alarm rate that held-out frames support is clearly above the stated one."""
    from likely.estimation.novelty.held_out_frames import drift, drifts, supported_share, supported_words

    share = supported_share(subject.held_out_novelty, subject.later, 1.0 / false_alarm_every)
    if share * false_alarm_every <= CLOSE:
        return
    tried = f"The model was tried on {subject.held_out_novelty[1].sum():,.0f} held-out frames"
    asked = f"where one false alarm in {false_alarm_every:,.6g} lines is asked for"
    more = drift(subject.later) if drifts(subject.later) else "More frames of training support a lower rate."
    console(f"{tried}: {asked}, these support {supported_words(share)} (95 % confidence). {more}")


class HeldOutFrames:
    """Frames that a model had not learned from: kept (3, m), as `left_out_frames` has them. A weight counts copies."""

    def __init__(self, kept: Any) -> None:
        from likely.estimation.novelty.held_out_frames import segments
        from likely.metrics.false_alarms import NAT, tail

        self.runs, self.weights = segments(kept)
        self.frames = float(kept[1].sum())
        found = tail(self.runs, self.weights)
        self.far = found._replace(excess=max(found.excess, NAT))  # no shorter a tail than under the model itself
        order = np.argsort(kept[0], kind="stable")
        self.sorted, self.above = kept[0, order], np.append(np.cumsum(kept[1, order][::-1])[::-1], 0.0)

    def neg_log_p_value(self, v: Any) -> Any:
        """−log p-value of each frame (n,) by the held-out ones, beyond the rarest tenth by an exponential tail."""
        as_odd = self.above[np.searchsorted(self.sorted, v - 1e-12 * np.abs(v), side="left")]
        near = -np.log((1.0 + as_odd) / (1.0 + self.frames))
        share = max(self.far.share, 1.0 / (1.0 + self.frames))
        beyond = (v - self.far.border) / self.far.excess - np.log(share)
        return np.where(v > self.far.border, np.maximum(beyond, 0.0), near)

    def raised(self, watch: Any, false_alarm_every: float) -> Any:
        """A sum with so high a threshold that held-out frames agree."""
        increments = [self.neg_log_p_value(part) / 2 - np.log(2) for part in self.runs]

        def alarms(watch: Any) -> float:
            return float(self.weights @ [len(watch.run(part)) for part in increments])

        while alarms(watch) > self.frames / false_alarm_every:
            watch = watch.replace(threshold=watch.threshold * STEP)
        return watch


def distribution_of_increments(z: Any) -> Any:
    """P(−log u/2 − log 2 ≤ z) for uniform u: 1 − e^{−2z}/4 from −log 2 on."""
    return np.where(z >= -np.log(2), 1 - np.exp(-2 * np.maximum(z, -np.log(2))) / 4, 0.0)


def _has_tail(filter_: Any) -> bool:
    """Whether a filter's predictive distribution is known: a mixture of emissions, or Gaussian."""
    return hasattr(filter_, "emission") or hasattr(filter_, "observation_covariance")


def _tail_of(filter_: Any, path: str) -> Any:
    if hasattr(filter_, "emission"):
        from likely.estimation.novelty.hmm_novelty_score import ChainTail

        return ChainTail(filter_)
    if _has_tail(filter_):
        return GaussianTail(filter_)
    expected = "--false-alarm-every needs a predictive distribution: an HMM or a linear-Gaussian model"
    remedy = "use --fault, or leave it out" if _has_states(filter_) else "leave it out, and read the surprisal"
    raise ModelFileError(sentence(path, expected, type(filter_).__name__, remedy))


def _has_states(filter_: Any) -> bool:
    return any(hasattr(filter_.initial_belief(), name) for name in REGIMES)


class GaussianTail:
    """Of a linear-Gaussian model: −2 log p = log det 2πS + χ², with as many degrees as entries were seen.

    Where S is singular, some combination of entries is certain: it has no degree, and its contrary has log p = −inf.
    """

    def __init__(self, filter_: Any) -> None:
        self.filter = filter_

    def __call__(self, predicted: Any, y: Any, log_p: float, inputs: Any = None) -> float | None:
        """Predictive p-value of an observation; None if it is missing, or has no predictive distribution yet."""
        from scipy.special import chdtrc

        row = np.atleast_1d(np.asarray(y, dtype=np.float64)).ravel()
        if getattr(self.filter, "feedthrough", None) is not None:
            row = row - _at(self.filter.feedthrough, predicted) @ inputs
        seen = ~np.isnan(row)
        C, R = (
            _at(self.filter.observation, predicted)[seen],
            _at(self.filter.observation_covariance, predicted)[np.ix_(seen, seen)],
        )
        with np.errstate(invalid="ignore"):  # 0 · ∞ while the start is not yet known
            spread = C @ predicted.covariance @ C.T + R
        if not seen.any() or not np.isfinite(spread).all():
            return None
        if log_p == -np.inf:
            return 0.0
        distance, degrees = _chi_square(spread, row[seen] - C @ predicted.mean, log_p)
        return float(chdtrc(degrees, distance)) if degrees else 1.0


def _chi_square(spread: Any, residual: Any, log_p: float) -> tuple[float, int]:
    """χ² of a residual, and its degrees of freedom."""
    sd = np.sqrt(np.diagonal(spread))
    moving = sd > 0
    shared, axes = np.linalg.eigh(spread[np.ix_(moving, moving)] / np.outer(sd[moving], sd[moving]))
    free = shared > CERTAIN * len(sd)
    if free.sum() == len(sd):
        return max(-2 * log_p - np.linalg.slogdet(2 * np.pi * spread)[1], 0.0), len(sd)
    along = (axes.T @ (residual[moving] / sd[moving]))[free]
    return float(np.sum(along**2 / shared[free])), int(free.sum())


def _at(matrix: Any, belief: Any) -> Any:
    """A matrix at the time of a belief, where it varies."""
    return matrix if matrix.ndim == 2 else matrix[belief.time]

"""Page's test: run lengths are those of the tables, and alarms come as often as was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from likely.core.errors import DataError, DomainError
from likely.decision.sequential.cusum import CUSUM, run_length
from likely.decision.sequential.sprt import log_ratios

# Montgomery, Introduction to Statistical Quality Control, table 9.3: two-sided, reference ½; shift: h = 4, h = 5
MONTGOMERY = {0.0: (168, 465), 0.25: (74.2, 139), 0.5: (26.6, 38.0), 0.75: (13.3, 17.0), 1.0: (8.38, 10.4),
              1.5: (4.75, 5.75), 2.0: (3.34, 4.01), 3.0: (2.19, 2.57)}  # fmt: skip


@pytest.mark.parametrize("shift", MONTGOMERY)
@pytest.mark.parametrize("which", [0, 1])
def test_run_lengths_are_those_of_the_table(shift, which):
    h = (4.0, 5.0)[which]
    up, down = (run_length(h, lambda z, m=m: ndtr(z + 0.5 - m)) for m in (shift, -shift))
    assert 1 / (1 / up + 1 / down) == pytest.approx(MONTGOMERY[shift][which], rel=0.006)


def first_alarms(threshold: float, z: np.ndarray) -> np.ndarray:
    """When each of many series (n, T) first raises an alarm; T where none does."""
    total, first = np.zeros(len(z)), np.full(len(z), z.shape[1])
    for t in range(z.shape[1]):
        total = np.maximum(0, total + z[:, t])
        first[(total > threshold) & (first == z.shape[1])] = t + 1
    return first


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0])
def test_false_alarms_come_as_often_as_was_asked_for(shift):
    rng = np.random.default_rng(1)
    watch = CUSUM.for_shift(shift, false_alarm_every=100)
    calm = first_alarms(watch.threshold, log_ratios(rng.normal(size=(10_000, 1500)), shift))
    assert calm.mean() == pytest.approx(100, rel=0.03)
    changed = first_alarms(watch.threshold, log_ratios(rng.normal(shift, 1.0, (4_000, 400)), shift))
    distribution = run_length(watch.threshold, lambda z: ndtr((z - shift**2 / 2) / shift))
    assert changed.mean() == pytest.approx(distribution, rel=0.03) and changed.mean() < 35


@pytest.mark.slow
def test_draws_calibrate_as_the_distribution_does():
    z = log_ratios(np.random.default_rng(2).normal(size=200_000), 1.0)
    distribution, drawn = CUSUM.for_shift(1.0, 200), CUSUM.for_draws(z, 200)
    assert drawn.threshold == pytest.approx(distribution.threshold, rel=0.02)


def lattice_run(threshold: float, values: list[int], shares: list[float], unit: float) -> float:
    """The mean run of a sum of whole steps, state by state."""
    last = int(np.floor(threshold / unit + 1e-9))
    moves = np.zeros((last + 1, last + 1))
    for state in range(last + 1):
        for step, share in zip(values, shares, strict=True):
            if state + step <= last:
                moves[state, max(0, state + step)] += share
    return float(np.linalg.solve(np.eye(last + 1) - moves, np.ones(last + 1))[0])


@pytest.mark.parametrize(
    ("steps", "parts", "unit", "every"),
    [([-2, 3], [3, 1], 0.5, 500), ([-1, 30], [49, 1], 0.1, 1000), ([-1, 0, 2], [6, 3, 1], 0.3, 2000)],
)
def test_draws_of_few_values_give_the_least_threshold_that_keeps_the_promise(steps, parts, unit, every):
    z = np.repeat(unit * np.array(steps), parts)
    h, shares = CUSUM.for_draws(z, every).threshold, [part / sum(parts) for part in parts]
    assert lattice_run(h, steps, shares, unit) >= every > lattice_run(h - unit, steps, shares, unit)


@pytest.mark.slow
def test_two_values_without_a_common_unit():
    ratios, rng = np.log([0.8 / 0.9, 0.2 / 0.1]), np.random.default_rng(7)  # one in ten becomes two in ten
    watch = CUSUM.for_draws(np.repeat(ratios, [9, 1]), 300)
    alarms = first_alarms(watch.threshold, rng.choice(ratios, p=[0.9, 0.1], size=(4000, 3000)))
    assert alarms.mean() == pytest.approx(300, rel=0.06)


def test_draws_that_rise_without_a_change_or_never_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(DomainError, match=r"negative on average while nothing has changed, got 0\.99"):
        CUSUM.for_draws(rng.normal(1.0, 0.1, 1000), 100)
    with pytest.raises(DomainError, match=r"positive .* got none"):
        CUSUM.for_draws(np.full(100, -1.0), 100)
    with pytest.raises(DomainError, match=r"positive .* got none"):
        CUSUM.for_distribution(lambda z: np.clip(z + 2.0, 0.0, 1.0), 100)
    with pytest.raises(DomainError, match="once in 4 at most"):
        CUSUM.for_draws([-1.0, -1.0, -1.0, 1.5], 3)
    with pytest.raises(DomainError, match="negative on average"):
        CUSUM.for_draws([-np.inf, np.inf, 1.0], 100)
    assert CUSUM.for_draws([-np.inf, -1.0, -1.0, 1.5], 100).threshold > 1.5  # what is impossible ends at 0


def test_lordens_inequality_holds():
    for h in (1.0, 3.0, 6.0):
        assert run_length(h, lambda z: ndtr(z + 0.5)) >= np.exp(h)


def test_small_shifts_need_more_cells_and_get_them():
    shift = 0.02
    watch = CUSUM.for_shift(shift, false_alarm_every=200_000)
    b, step = watch.threshold / shift + 1.166, shift / 2  # Siegmund's approximation, good for small shifts
    assert (np.exp(2 * step * b) - 2 * step * b - 1) / (2 * step**2) == pytest.approx(200_000, rel=0.01)


def test_it_is_pure_and_begins_again_after_an_alarm():
    watch = CUSUM(3.0)
    risen = watch.step(2.0).step(2.5)
    assert risen.alarm and watch.total == 0 and not risen.step(1.0).alarm and risen.step(1.0).total == 1.0
    assert watch.step(-5.0).total == 0 and watch.step(np.inf).alarm
    assert watch.run([2.0, 2.0, 2.0, 0.5, 1.0, -9.0, 4.0]).tolist() == [1, 4, 6]


def test_nonsense_is_refused():
    with pytest.raises(DomainError, match="threshold"):
        CUSUM(0.0)
    with pytest.raises(DataError, match="pass 0"):
        CUSUM(1.0).step(np.nan)
    with pytest.raises(DomainError, match="as often"):
        CUSUM.for_shift(1.0, 1.5)
    with pytest.raises(DomainError, match="between 1 and"):
        CUSUM.for_shift(1.0, np.inf)
    with pytest.raises(DomainError, match="typical steps"):
        CUSUM.for_draws(np.random.default_rng(0).normal(-1e-4, 1.0, 10_000) - 0.01, 1e9)
    with pytest.raises(DataError, match="increments"):
        CUSUM.for_draws([np.nan, 1.0], 100)

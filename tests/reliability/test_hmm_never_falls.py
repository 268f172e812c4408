"""Baum–Welch and Viterbi training never go down, whatever states emit, and report the likelihood they reached."""

from __future__ import annotations

import re

import numpy as np
import pytest

from likely import LikelyError
from likely.core import Serial
from likely.core.em_loop import iterate
from likely.core.warnings import warnings_collected
from likely.hmm.forward_backward import log_likelihoods
from tests.properties.compare import arrays_of
from tests.reliability.hmm_problems import EMISSIONS, Problem, problem
from tests.reliability.test_em_never_falls import EPS, FALL, LIFTED, condition, offset

STEPS = 4
NOTHING = re.compile("at least one (row|frame)")


def climbs(p: Problem, look: bool) -> bool:
    """Make some steps, each of which must keep its word; False where the sequences are impossible from the start."""
    before = None
    with warnings_collected() as heard, np.errstate(all="ignore"):
        steps = iterate(p.start, p.data, prior=p.prior, engine=Serial(), hard=p.hard)
        for _ in range(STEPS):
            told = len(heard)
            step = next(steps)
            assert not np.isnan(step.objective) and step.objective < np.inf
            size = max(abs(step.objective), step.stats.total_weight, 1.0)
            worst = condition(step.model.emission)
            if before is not None and np.isfinite(before.objective):
                lost = (before.objective - step.objective) / size
                lifted = p.prior is None and any(LIFTED.search(str(note)) for note in heard[told:])
                assert lost <= FALL + EPS * max(condition(before.model.emission), worst) or lifted
            if look:
                want = p.objective(step.model, step.prior)
                far = min(4 * EPS * offset(step.model.emission), 1e-6)  # rounding of rows far from 0, in deviations
                near = abs(step.objective - want) <= (1e-9 + 64 * EPS * worst + far) * size
                assert near or step.objective == want
            zeros_stay(p, step.model)
            before = step
    assert all(np.isfinite(a).all() for a in arrays_of(step.model))
    return bool(np.isfinite(step.objective))


def zeros_stay(p: Problem, model) -> None:
    """What was impossible is exactly 0; what leaves a state adds up to 1."""
    assert (model.initial[p.start.initial == 0] == 0).all() and (model.transition[p.start.transition == 0] == 0).all()
    leave = model.transition.sum(axis=1)
    if model.final is not None:
        assert (model.final[p.start.final == 0] == 0).all()
        leave = leave + model.final
    assert np.allclose(leave, 1, atol=1e-9) and abs(model.initial.sum() - 1) <= 1e-9


def nothing_can_be(p: Problem) -> bool:
    """True if no sequence with weight fits the chain and what is known of its states, or nothing is seen of frames."""
    mask = np.zeros((len(p.x.values), p.start.states)) if p.given is None else p.given.values
    with np.errstate(all="ignore"):
        each = log_likelihoods([p.start.chains[0].summed], mask.copy(), p.x.offsets)[:, 0]
    seen = (p.x.lengths > 0) & (np.ones(len(each)) if p.weight is None else p.weight > 0).astype(bool)
    can = np.repeat(seen & np.isfinite(each), p.x.lengths)
    columns = p.x.values.parts.values() if hasattr(p.x.values, "parts") else [p.x.values]
    return not can.any() or any(not np.isfinite(part[can]).any() for part in columns)


def search(family: str, seeds: range) -> None:
    possible = 0
    for seed in seeds:
        p = problem(family, seed)
        try:
            possible += climbs(p, look=True)
        except LikelyError as error:
            assert NOTHING.search(str(error)) and nothing_can_be(p), f"{family}, seed {seed}: {error}"
        except Exception as error:
            raise AssertionError(f"{family}, seed {seed}") from error
    assert possible > len(seeds) / 2


@pytest.mark.slow
@pytest.mark.parametrize("family", EMISSIONS)
def test_problems(family):
    search(family, range(8))


@pytest.mark.campaign
@pytest.mark.parametrize("family", EMISSIONS)
def test_many_problems(family):
    search(family, range(8, 1040))

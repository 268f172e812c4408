"""Responsibilities: the compiled loops equal the NumPy version bit for bit, and both agree with SciPy."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.special import entr, logsumexp, softmax

from likely.core.job_size import job
from likely.mixture import responsibilities
from likely.mixture.responsibilities import weighted_responsibilities


def logs_of(rng, K, n, how):
    logs = rng.standard_normal((K, n)) * {"near": 1.0, "far": 300.0, "vast": 1e200, "impossible": 50.0}[how] - 1e3
    if how == "impossible":
        logs[rng.random((K, n)) < 0.5] = -np.inf  # some rows then have no member at all
    return logs


def both_ways(logs, prior, weight):
    """What the loops and what NumPy make of the same logs."""
    out = []
    for around in (job(math.inf), nullcontext()):
        with around, np.errstate(all="ignore"):
            out.append(weighted_responsibilities(logs.copy(), prior, weight))
    return out


@pytest.mark.parametrize("how", ["near", "far", "vast", "impossible"])
@pytest.mark.parametrize("K", [1, 2, 3, 16, 130])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_loops_have_the_bits_of_numpy(how, K, n, weighted):
    for seed in range(5):
        rng = np.random.default_rng([seed, K, n])
        logs, prior = logs_of(rng, K, n, how), rng.dirichlet(np.ones(K))
        (fast, unsure), (slow, doubt) = both_ways(logs, prior, rng.random(n) if weighted else None)
        assert fast.tobytes() == slow.tobytes() and np.float64(unsure).tobytes() == np.float64(doubt).tobytes()


def test_the_twins_are_different_code(monkeypatch):
    """Else the comparison above would compare a thing with itself."""
    used = []
    by_numpy = responsibilities._by_numpy
    monkeypatch.setattr(responsibilities, "_by_numpy", lambda *a: used.append("numpy") or by_numpy(*a))
    weighted_responsibilities(np.zeros((2, 3)), np.array([0.5, 0.5]))
    with job(math.inf):
        weighted_responsibilities(np.zeros((2, 3)), np.array([0.5, 0.5]))
    assert used == ["numpy"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("how", ["near", "far"])
def test_shares_and_entropy_are_those_of_the_formula(how, compiled):
    rng = np.random.default_rng(1)
    logs, prior, w = logs_of(rng, 6, 400, how), np.full(6, 1 / 6), rng.random(400)
    (shares, entropy), want = both_ways(logs, prior, w)[not compiled], softmax(logs, axis=0)
    np.testing.assert_allclose(shares, want * w, rtol=1e-12, atol=1e-99)
    assert entropy == pytest.approx(float(w @ entr(want).sum(axis=0)), rel=1e-12, abs=1e-12)
    # what EM needs of them: Σ shares · logs + entropy is the log of the sum
    bound = float((shares * logs).sum() + entropy)
    assert bound == pytest.approx(float(w @ logsumexp(logs, axis=0)), rel=1e-13)


@pytest.mark.parametrize("compiled", [False, True])
def test_where_nobody_can_explain_a_row_the_prior_decides(compiled):
    prior = np.array([0.25, 0.75])
    logs = np.array([[-np.inf, 0.0, -np.inf], [-np.inf, -np.inf, -5.0]])
    (shares, entropy) = both_ways(logs, prior, np.array([2.0, 3.0, 4.0]))[not compiled]
    np.testing.assert_array_equal(shares, [[0.5, 3.0, 0.0], [1.5, 0.0, 4.0]])
    assert entropy == pytest.approx(2 * entr(prior).sum())


@pytest.mark.parametrize("compiled", [False, True])
def test_shares_below_anything_are_none(compiled):
    """Numbers below 1e-100 take a hundred times as long to multiply, and change no sum."""
    logs = np.array([[0.0, 0.0], [-229.0, -231.0]])
    shares, _ = both_ways(logs, np.array([0.5, 0.5]), None)[not compiled]
    assert shares[1, 0] == np.exp(-229.0) and shares[1, 1] == 0.0

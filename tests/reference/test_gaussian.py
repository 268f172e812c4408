"""Gaussian numbers against stored ones of 30 digits; make_gaussian.py made them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likely import Gaussian
from likely.priors import NormalInverseGamma, NormalInverseWishart

REFERENCE = json.loads(Path(__file__).with_name("gaussian.json").read_text())


def hilbert(d):
    return 1.0 / (np.arange(d)[:, None] + np.arange(d) + 1)


def test_log_probabilities_under_a_hilbert_matrix():
    """Condition 1.5e7: rounding the matrix explains 1e-9 of the squared distance."""
    rows = np.array(REFERENCE["rows"], dtype=float)
    found = Gaussian(REFERENCE["mean"], hilbert(6)).log_prob(rows)
    want = np.array([float(v) for v in REFERENCE["log_prob"]])
    np.testing.assert_allclose(found, want, rtol=2e-9)


def test_entropy_and_divergence():
    assert Gaussian(np.zeros(4), hilbert(4)).entropy() == pytest.approx(
        float(REFERENCE["entropy_hilbert_4"]), rel=1e-12
    )
    p, q = Gaussian(np.zeros(3), hilbert(3)), Gaussian(REFERENCE["kl_mean"], 2.0)
    assert p.kl(q) == pytest.approx(float(REFERENCE["kl_hilbert_3_from_2I"]), rel=1e-13)
    assert q.kl(p) == pytest.approx(float(REFERENCE["kl_2I_from_hilbert_3"]), rel=1e-12)


def test_evidence():
    prior = NormalInverseWishart(**REFERENCE["prior"])
    stats = Gaussian([0.0, 0.0], np.eye(2)).collect(REFERENCE["data"])
    assert prior.log_evidence(stats) == pytest.approx(float(REFERENCE["log_evidence"]), rel=1e-14)


def test_evidence_of_one_column():
    """In one column the two priors are one distribution."""
    data = np.array(REFERENCE["data"])[:, :1]
    wishart = NormalInverseWishart([0.5], 0.25, [[1.5]], 3.5).log_evidence(Gaussian([0.0], [[1.0]]).collect(data))
    gamma = NormalInverseGamma([0.5], 0.25, [1.5], 3.5).log_evidence(Gaussian([0.0], [1.0]).collect(data))
    assert wishart == pytest.approx(gamma, rel=1e-14)

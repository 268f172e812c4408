"""Features in one sweep against NumPy's, to the last bit."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from likely import Gaussian
from likely.core import job_size
from likely.core.job_size import job
from likely.distributions.gaussian._loops import quadratic_features

KINDS = ["full", "tied", "diagonal"]


def distribution(kind, d, K=6):
    rng = np.random.default_rng(d)
    a = rng.standard_normal((K, d, d + 2))
    full = a @ np.swapaxes(a, 1, 2)
    spread = {"full": full, "tied": full[0], "diagonal": full[:, range(d), range(d)]}[kind]
    return Gaussian(rng.standard_normal((K, d)), spread, kind="diagonal" if kind == "diagonal" else "full")


def test_a_sweep_is_the_plain_formula(rng):
    x, origin, unit = rng.standard_normal((50, 3)), rng.standard_normal(3), rng.random(3) + 0.5
    first, second = np.array([0, 2, 1]), np.array([0, 0, 2])
    out, length = np.full((7, 60), 7.0), np.full(60, 7.0)
    quadratic_features.expand_rows(x, origin, unit, first, second, out, length)
    u = (x - origin) / unit
    assert np.array_equal(out[:, :50], np.column_stack([np.ones(50), u, u[:, first] * u[:, second]]).T)
    np.testing.assert_allclose(length[:50], (u * u).sum(axis=1), rtol=1e-14)
    assert (out[:, 50:] == 7.0).all() and (length[50:] == 7.0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 7, 20])
@pytest.mark.parametrize("n", [16, 100, 5000])
def test_it_changes_no_bit(kind, d, n):
    """In a large job and outside of one: gaps, outliers and read-only rows included."""
    g = distribution(kind, d)
    x = np.random.default_rng(n).standard_normal((n, d)) * 3
    x[3], x[5, 0], x[7] = 1e9, np.nan, 1e300
    x.setflags(write=False)
    form = g.form
    with job(math.inf), np.errstate(all="ignore"):
        with_loop = g.log_prob(x)
        swept = form._by_product(x, g._natural)
    with np.errstate(all="ignore"):
        plain = form._by_product(x, g._natural)
    near = np.isfinite(plain[0]) & np.isfinite(swept[0])
    assert np.array_equal(swept[0][near], plain[0][near]) and np.array_equal(np.isnan(swept[0]), np.isnan(plain[0]))
    assert g.log_prob(x).tobytes() == with_loop.tobytes()


def test_white_coordinates_change_no_bit(rng):
    thin = np.array([np.diag([1e-9, 1.0, 2.0]), np.eye(3), np.diag([1.0, 1e-10, 1.0])])
    form = Gaussian(rng.standard_normal((3, 3)), thin).form
    u = rng.standard_normal((3, 200))
    by_loop, plain = np.ones((2, 3, 200))
    assert len(form.thin)
    with job(math.inf):
        form.subtract_narrow(u, by_loop)
    form.subtract_narrow(u, plain)
    assert (plain != 1.0).any() and np.array_equal(by_loop, plain)


def test_large_jobs_use_the_loop(monkeypatch):
    """Others do not: a start of 0.3 s is more than they take."""
    calls = []
    monkeypatch.setattr(quadratic_features, "expand_rows", lambda *_: calls.append(1))
    g = distribution("full", 3)
    g.log_prob(np.zeros((100, 3)))
    assert not calls
    monkeypatch.setattr(job_size, "LARGE", 100)
    g.log_prob(np.zeros((100, 3)))
    assert calls


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")
def test_it_compiles_once(rng):
    for kind in KINDS:
        for d in (2, 5):
            g, x = distribution(kind, d), rng.standard_normal((6000, d))
            for rows in (x, np.asfortranarray(x), x.astype(np.float32), x[::2]):
                with job(math.inf):
                    g.log_prob(rows)
                    rows.setflags(write=False)
                    g.log_prob(rows)
    assert len(quadratic_features.expand_rows.dispatcher.signatures) == 1
    options = quadratic_features.expand_rows.dispatcher.targetoptions
    assert options.get("nogil") and not options.get("fastmath")

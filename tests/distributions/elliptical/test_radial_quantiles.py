"""Elliptical distributions of one column: probabilities and quantiles against SciPy, named ones, and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st
from scipy.integrate import quad

import likely as lk

X = np.array([-40.0, -6.0, -1.0, -1e-3, 0.0, 0.3, 2.0, 9.0, 60.0])
P = np.array([1e-12, 1e-5, 0.02, 0.3, 0.5 - 1e-9, 0.5, 0.7, 0.999, 1 - 1e-9])
PEERS = {
    "gaussian": (None, st.norm(0.3, 2.0)),
    "t": (3.0, st.t(3.0, 0.3, 2.0)),
    "laplace": (None, st.laplace(0.3, 2.0)),
    "logistic": (None, st.logistic(0.3, 2.0)),
    "power": (1.7, st.gennorm(3.4, 0.3, 2.0 * 2 ** (1 / 3.4))),
    "uniform": (None, st.uniform(-1.7, 4.0)),
}
LOGS = {
    "gaussian": lambda q: -0.5 * q,
    "t": lambda q: -2.0 * np.log1p(q / 3.0),
    "laplace": lambda q: -np.sqrt(q),
    "logistic": lambda q: -np.sqrt(q) - 2 * np.log1p(np.exp(-np.sqrt(q))),
    "power": lambda q: -0.5 * q**1.7,
    "uniform": lambda q: np.where(q <= 1, 0.0, -np.inf),
}


def distribution(name, written=False):
    return lk.distributions.Elliptical(LOGS[name] if written else name, [0.3], 4.0, None if written else PEERS[name][0])


@pytest.mark.parametrize("name", PEERS)
def test_closed_forms_are_those_of_scipy(name):
    peer = PEERS[name][1]
    assert distribution(name).cdf(X) == pytest.approx(peer.cdf(X), rel=1e-9, abs=1e-300)
    assert distribution(name).quantile(P) == pytest.approx(peer.ppf(P), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", PEERS)
def test_a_function_is_integrated_to_1e_10(name):
    peer = PEERS[name][1]
    assert np.abs(distribution(name, True).cdf(X) - peer.cdf(X)).max() < 1e-10
    found = distribution(name, True).quantile(P)
    assert np.abs(peer.cdf(found) - P).max() < 1e-10
    assert distribution(name, True).cdf(found) == pytest.approx(P, abs=1e-12)


def test_tails_of_a_function_keep_their_digits():
    """Where the integral from the center is 1 to rounding, that from the end is not."""
    assert distribution("laplace", True).cdf([-40.0]) == pytest.approx(PEERS["laplace"][1].cdf([-40.0]), rel=1e-8)


def test_any_profile_by_its_own_density():
    odd = lk.distributions.Elliptical(lambda q: -np.log1p(q) - 0.1 * np.sqrt(q) - 3.0 * (q > 2.0), [1.0], 0.25)

    def density(x):
        return float(np.exp(odd.log_prob([[x]]))[0])

    jump = 0.5 * np.sqrt(2.0)
    whole, _ = quad(density, 1.0, 1.0 + jump, epsabs=1e-12)
    assert odd.cdf([1.0 + jump]) - 0.5 == pytest.approx(whole, abs=1e-10)
    beyond, _ = quad(density, 1.0 + jump, 3.0, epsabs=1e-12)
    assert odd.cdf([3.0]) - odd.cdf([1.0 + jump]) == pytest.approx(beyond, abs=1e-10)


@pytest.mark.slow
def test_jumps_are_found_wherever_they_lie(rng):
    for place in rng.uniform(0.5, 3.0, 20):
        step = lk.distributions.Elliptical(
            lambda q, at=place: np.where(q <= at * at, -0.5 * q, -4.0 - 0.5 * q), [0.0], 1.0
        )
        inner, outer = st.norm.cdf(place) - 0.5, np.exp(-4.0) * st.norm.sf(place)
        assert step.cdf([place])[0] - 0.5 == pytest.approx(0.5 * inner / (inner + outer), abs=1e-11)


@pytest.mark.parametrize("written", [False, True])
def test_ends_stacks_and_what_is_no_share(written):
    flat, bell = distribution("uniform", written), distribution("gaussian", written)
    assert flat.quantile([0.0, 1.0]) == pytest.approx([-1.7, 2.3], abs=1e-9)
    assert bell.quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert np.isnan(bell.quantile([-0.1, 1.1, np.nan])).all()
    assert np.isnan(bell.cdf([np.nan])).all()
    assert bell.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]
    pair = lk.distributions.Elliptical(LOGS["laplace"] if written else "laplace", [[0.0], [1.0]], [[[1.0]], [[4.0]]])
    for k in range(2):
        assert pair.cdf(X)[:, k] == pytest.approx(pair.member(k).cdf(X), rel=1e-13)
        assert pair.quantile(P)[:, k] == pytest.approx(pair.member(k).quantile(P), rel=1e-13)
    assert pair.median.tolist() == [[0.0], [1.0]]


def test_several_columns_are_refused_in_words():
    for ask in ("cdf", "quantile"):
        with pytest.raises(lk.DomainError, match="for one column, got 2 columns"):
            getattr(lk.distributions.Elliptical("laplace", [0.0, 0.0], 1.0), ask)([0.5])


def bent(q):
    return np.where(q < 1.0, 0.0, -1.0) - 0.5 * q


def boxed(q):
    return np.where(q < 4.0, 0.0, -np.inf)


@pytest.mark.parametrize("profile", [bent, boxed, lambda q: -1.2 * np.log1p(q), lambda q: -0.5 * q**2])
def test_many_quantiles_are_looked_up_and_polished(profile):
    asked = []

    def counted(q):
        asked.append(np.size(q))
        return profile(q)

    p = np.sort(np.random.default_rng(3).random(20_000))
    distribution = lk.distributions.Elliptical(counted, [0.0], 1.0)
    at = distribution.quantile(p)
    assert sum(asked) < 300 * len(p)  # bisection alone would ask 1800 times
    assert distribution.cdf(at) == pytest.approx(p, abs=1e-10) and (np.diff(at) >= 0).all()
    assert np.isfinite(distribution.log_prob(at[:, None])).all()

"""What every density owes: it adds up to one, imagines what it scores, and leaves out what was not seen."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from likely import Density
from tests.properties.compare import arrays_of, bits
from tests.properties.grid import cumulative, log_total
from tests.properties.members import Member, is_continuous
from tests.properties.suite import Suite

PROPERTIES = Suite()
FALSE_FAIL = 1e-6
SIGMAS = 4.9  # a normal variable leaves ± 4.9 with probability 1e-6


def stacked(m: Member) -> bool:
    return m.stack


def gappy(m: Member) -> bool:
    return m.gaps


def dkw(n: int, checks: int = 1) -> float:
    """Distance of an empirical distribution of n draws to the true one, exceeded with probability 1e-6 / checks."""
    return float(np.sqrt(np.log(2 * checks / FALSE_FAIL) / (2 * n)))


@PROPERTIES.add(by_class=True)
def plays_the_role(m: Member):
    assert isinstance(m.value, Density)


@PROPERTIES.add()
def adds_up_to_one(m: Member):
    rng = np.random.default_rng(1)
    over = list(range(min(m.dim, 2)))
    for one in m.each():
        # beyond two columns, of the distribution of the first two; that leaving out is integrating is a property of
        # its own
        assert abs(np.expm1(log_total(m, one, np.full(m.dim, np.nan), over, m.draws(2000, rng, one)))) <= 1e-8


@PROPERTIES.add(when=lambda m: m.gaps and m.dim > 1)
def leaving_out_is_integrating(m: Member):
    rng = np.random.default_rng(2)
    for one in m.each()[:2]:
        draws = m.draws(2000, rng, one)
        for row in draws[:1]:
            for over in [[j] for j in range(m.dim)] + [[i, j] for i in range(m.dim) for j in range(i)]:
                gap = row.copy()
                gap[over] = np.nan
                want = log_total(m, one, row, over, draws)
                assert abs(one.log_prob(gap[None])[0] - want) <= 1e-8


@PROPERTIES.add(when=gappy)
def a_row_that_was_not_seen_says_nothing(m: Member):
    assert np.array_equal(m.value.log_prob(np.full((2, m.dim), np.nan)), np.zeros((2, *shape(m))))


def shape(m: Member) -> tuple[int, ...]:
    return (m.value.members,) if m.stack else ()


@PROPERTIES.add(when=gappy)
def samples_follow_the_density_column_by_column(m: Member):
    rng, n = np.random.default_rng(3), 40_000
    for one in m.each()[:2]:
        x = m.draws(n, rng, one)
        for j in range(m.dim):
            points, wanted = cumulative(m, one, j, x)
            found = np.searchsorted(np.sort(x[:, j]), points, side="right") / n
            assert np.abs(found - wanted).max() <= dkw(n)


@PROPERTIES.add(when=lambda m: m.dim > 1 and m.columns[0] == m.columns[1] == "real")
def samples_follow_the_density_jointly(m: Member):
    """P(x₀ ≤ a, x₁ ≤ b) on a lattice of quantiles, by draws and by the density's own integral."""
    rng, n = np.random.default_rng(4), 20_000
    one = m.each()[-1]
    x = m.draws(n, rng, one)
    at = [np.quantile(x[:, j], [0.1, 0.3, 0.5, 0.7, 0.9]) for j in (0, 1)]
    # midpoints of 300 × 300 cells between the extremes; the cells around each quantile are cut there
    edges = [
        np.unique(np.concatenate([np.linspace(-8, 8, 300) * x[:, j].std() + x[:, j].mean(), at[j]])) for j in (0, 1)
    ]
    middle, width = [0.5 * (e[1:] + e[:-1]) for e in edges], [np.diff(e) for e in edges]
    rows = np.full((len(middle[0]) * len(middle[1]), m.dim), np.nan)
    rows[:, 0], rows[:, 1] = np.repeat(middle[0], len(middle[1])), np.tile(middle[1], len(middle[0]))
    mass = np.exp(one.log_prob(rows)).reshape(len(middle[0]), -1) * width[0][:, None] * width[1]
    wanted = np.array([[mass[edges[0][1:] <= a][:, edges[1][1:] <= b].sum() for b in at[1]] for a in at[0]])
    found = np.array([[((x[:, 0] <= a) & (x[:, 1] <= b)).mean() for b in at[1]] for a in at[0]])
    assert np.abs(found - wanted).max() <= dkw(n, 25)


@PROPERTIES.add(when=stacked)
def a_stack_is_its_members_one_by_one(m: Member):
    rng = np.random.default_rng(5)
    value = m.value
    for gaps in (0.0, 0.4):
        x = m.rows(60, rng, gaps)
        out = value.log_prob(x)
        each = np.stack([one.log_prob(x) for one in m.each()], axis=1)
        assert out.shape == (60, value.members)
        assert np.abs(out - each).max() <= 1e-9


@PROPERTIES.add(by_class=True)
def single_precision_comes_back_as_such(m: Member):
    x = m.rows(20, np.random.default_rng(6)).astype(np.float32)
    out = m.value.log_prob(x)
    assert out.dtype == np.float32
    exact = m.value.log_prob(x.astype(np.float64))
    assert exact.dtype == np.float64
    assert np.abs(out - exact).max() <= 1e-6 * (1 + np.abs(exact)).max()


@PROPERTIES.add(by_class=True)
def no_rows_have_no_densities(m: Member):
    assert m.value.log_prob(np.empty((0, m.dim))).shape == (0, *shape(m))
    x = m.value.sample(0, np.random.default_rng(0))
    assert len(x) == 0


@PROPERTIES.add(by_class=True)
def draws_have_the_shape_of_rows(m: Member):
    x = m.value.sample(7, np.random.default_rng(0))
    parts = [x[name] for name in x] if hasattr(x, "parts") else [x]
    assert all(part.shape[: 1 + len(shape(m))] == (7, *shape(m)) for part in parts)


@PROPERTIES.add(by_class=True)
def the_same_seed_draws_the_same(m: Member):
    a, b = (m.draws(9, np.random.default_rng(8)) for _ in range(2))
    assert np.array_equal(a, b) and not np.array_equal(a, m.draws(9, np.random.default_rng(9)))


@PROPERTIES.add(when=gappy)
def a_gap_elsewhere_changes_no_bit(m: Member):
    x = m.rows(30, np.random.default_rng(7))
    broken = x.copy()
    broken[11, 0] = np.nan
    before, after = m.value.log_prob(x), m.value.log_prob(broken)
    others = np.arange(30) != 11
    assert before[others].tobytes() == after[others].tobytes()


@PROPERTIES.add(by_class=True)
def rows_do_not_change(m: Member):
    x = m.rows(30, np.random.default_rng(7), 0.2)
    kept = x.copy()
    m.value.log_prob(x)
    x.setflags(write=False)
    m.value.log_prob(x)
    assert x.tobytes() == kept.tobytes()


@PROPERTIES.add(by_class=True)
def a_vector_is_one_column(m: Member):
    x = m.rows(5, np.random.default_rng(7))
    if m.dim == 1:
        assert np.array_equal(m.value.log_prob(x[:, 0]), m.value.log_prob(x))
        assert np.array_equal(m.value.log_prob(x[:, 0].tolist()), m.value.log_prob(x))
    else:
        assert np.array_equal(m.value.log_prob(x.tolist()), m.value.log_prob(x))


@PROPERTIES.add(by_class=True)
def copies_are_the_same_to_the_bit(m: Member):
    value = m.value
    x = m.rows(10, np.random.default_rng(9), 0.2)
    out = value.log_prob(x)
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert bits(again) == bits(value) and again.log_prob(x).tobytes() == out.tobytes()
        assert all(not a.flags.writeable for a in arrays_of(again) if a.ndim and isinstance(a, np.ndarray))


@PROPERTIES.add(by_class=True)
def arrays_are_read_only(m: Member):
    for a in arrays_of(m.value):
        if a.ndim:
            with pytest.raises(ValueError, match="read-only"):
                a[...] = 0


@PROPERTIES.add(when=lambda m: hasattr(m.value, "entropy"))
def entropy_is_the_mean_surprisal(m: Member):
    rng, value = np.random.default_rng(10), m.value
    entropies = np.ravel(value.entropy())
    assert np.allclose(np.ravel(value.entropy(bits=True)) * np.log(2), entropies, rtol=1e-14)
    for k, one in enumerate(m.each()):
        assert one.entropy() == pytest.approx(entropies[k], rel=1e-12, abs=1e-12)
        surprisal = -one.log_prob(m.draws(20_000, rng, one))
        assert abs(surprisal.mean() - entropies[k]) <= SIGMAS * surprisal.std() / np.sqrt(20_000) + 1e-12


@PROPERTIES.add(when=lambda m: m.other is not None)
def divergence_is_what_the_other_loses(m: Member):
    rng, p, q = np.random.default_rng(11), m.value, m.other()
    found = np.ravel(p.kl(q))
    assert (found > 0).all() and np.abs(np.ravel(p.kl(p))).max() <= 1e-12
    assert np.allclose(np.ravel(p.kl(q, bits=True)) * np.log(2), found, rtol=1e-14)
    for k, one in enumerate(m.each()):
        other = q.member(k) if m.stack else q
        x = m.draws(20_000, rng, one)
        lost = one.log_prob(x) - other.log_prob(x)
        assert abs(lost.mean() - found[k]) <= SIGMAS * lost.std() / np.sqrt(20_000) + 1e-12


def one_column(m: Member) -> bool:
    return m.dim == 1 and hasattr(m.value, "cdf")


@PROPERTIES.add(when=one_column)
def the_distribution_function_is_the_integral(m: Member):
    one = m.each()[0]
    x = m.draws(2000, np.random.default_rng(12), one)
    points, wanted = cumulative(m, one, 0, x)
    tolerance = 2e-4 if is_continuous(m.columns[0]) else 1e-12  # half a cell of the trapezoid rule
    assert np.abs(one.cdf(points) - wanted).max() <= tolerance
    assert one.cdf(points[:, None]).shape == points.shape
    if m.columns[0] == "real":
        # central differences of the distribution function are the density
        h = 1e-5 * (np.quantile(x, 0.9) - np.quantile(x, 0.1))
        slope = (one.cdf(x[:, 0] + h) - one.cdf(x[:, 0] - h)) / (2 * h)
        assert np.abs(slope - np.exp(one.log_prob(x))).max() <= 1e-7 * np.exp(one.log_prob(x)).max()


@PROPERTIES.add(when=one_column)
def quantiles_undo_the_distribution_function(m: Member):
    one = m.each()[0]
    p = np.concatenate(
        [10.0 ** -np.arange(1.0, 300.0, 20.0), np.linspace(0.01, 0.99, 99), 1 - 10.0 ** -np.arange(2.0, 12.0)]
    )
    x = one.quantile(p)
    if is_continuous(m.columns[0]):
        assert np.abs(one.cdf(x) / p - 1).max() <= 1e-9
    else:
        assert (one.cdf(x) >= p).all() and (one.cdf(x - 1) < p).all()


@PROPERTIES.add(by_class=True)
def what_has_other_columns_is_refused(m: Member):
    from likely import LikelyError

    for n in (3, 0):
        with pytest.raises(LikelyError, match=rf"\(n, {m.dim}\)"):
            m.value.log_prob(np.zeros((n, m.dim + 1)))

"""Student's t distribution against mpmath, SciPy, integration, and the Gaussian that it becomes."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from likely.core.errors import DataError, DomainError, ShapeError
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.student_t.student_t import StudentT

EPS = float(np.finfo(float).eps)
FULL = np.array([[2.0, -1.1, 0.3], [-1.1, 1.0, 0.1], [0.3, 0.1, 0.7]])
CENTER = np.array([1.0, -2.0, 0.5])


def worst_bits(n: int, kind: str) -> float:
    """Wrong bits of one-dimensional distributions beyond those that rounding x, μ, S and ν alone would spoil."""
    rng, worst = np.random.default_rng(3), -99.0
    for _ in range(n):
        v = 10 ** rng.uniform(-6, 6) if rng.random() < 0.8 else 10 ** rng.uniform(6, 300)
        s, m = 10 ** rng.uniform(-6, 6), rng.choice([0.0, 10 ** rng.uniform(-6, 6)])
        away = rng.choice([rng.normal(), 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(3, 250)]) * rng.choice([-1, 1])
        x = m + away * np.sqrt(s)
        with mp.workdps(50 if v < 1e12 else 350):
            V, S, M, X = (mp.mpf(float(a)) for a in (v, s, m, x))
            q = (X - M) ** 2 / S
            exact = (
                mp.loggamma((V + 1) / 2)
                - mp.loggamma(V / 2)
                - mp.log(V * mp.pi * S) / 2
                - (V + 1) / 2 * mp.log1p(q / V)
            )
            k = (V + 1) * q / (V + q)
            by_dof = V / 2 * (mp.digamma((V + 1) / 2) - mp.digamma(V / 2) - mp.log1p(q / V)) + (k - 1) / 2
            spoilt = k * (abs(X) + abs(M)) / abs(X - M) + abs(k - 1) / 2 + abs(by_dof)
            if exact < -1e5:
                continue
            got = StudentT([m], [[s]] if kind == "full" else s, v, kind=kind).log_prob([x])[0]
            error = abs(mp.mpf(float(got)) - exact)
            worst = max(worst, float(mp.log(error / (EPS * (abs(exact) + spoilt)), 2)) if error else -99.0)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "spherical", "independent"])
def test_log_prob_is_right_to_the_last_bits(kind):
    assert worst_bits(250, kind) <= 4


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["full", "independent"])
def test_log_prob_is_right_to_the_last_bits_at_ten_thousand_points(kind):
    assert worst_bits(10_000, kind) <= 4


@pytest.mark.parametrize("dof", [1e20, 1e100, 1e300])
def test_many_degrees_of_freedom_make_a_gaussian(dof, rng):
    x = rng.normal(size=(50, 3)) * 3
    x[rng.random(x.shape) < 0.3] = np.nan
    g = Gaussian(CENTER, FULL)
    assert np.abs(StudentT(CENTER, FULL, dof).log_prob(x) - g.log_prob(x)).max() <= 1e-13
    assert StudentT(CENTER, FULL, dof).entropy() == pytest.approx(g.entropy(), rel=1e-15)
    diagonal = Gaussian(CENTER, [1.0, 2.0, 3.0])
    independent = StudentT(CENTER, [1.0, 2.0, 3.0], dof, kind="independent")
    assert np.abs(independent.log_prob(x) - diagonal.log_prob(x)).max() <= 1e-13
    one, peer = StudentT(1.0, 4.0, dof), Gaussian(1.0, 4.0)
    at = np.linspace(-30, 30, 50)
    assert np.allclose(one.cdf(at), peer.cdf(at), rtol=1e-10, atol=0)
    p = np.array([1e-30, 1e-3, 0.4, 0.5, 0.7, 1 - 1e-9])
    assert np.allclose(one.quantile(p), peer.quantile(p), rtol=1e-9)


def test_a_million_degrees_of_freedom_are_not_yet_a_gaussian():
    with mp.workdps(50):
        V = mp.mpf(10) ** 6
        exact = mp.loggamma((V + 1) / 2) - mp.loggamma(V / 2) - mp.log(V * mp.pi) / 2
        assert abs(float(StudentT(0.0, 1.0, 1e6).log_prob([0.0])[0] - exact)) <= 2 * EPS
        assert abs(float(Gaussian(0.0, 1.0).log_prob([0.0])[0] - exact)) > 1e-7


@pytest.mark.parametrize("dof", [0.7, 3.0, 40.0])
def test_several_dimensions_against_scipy(dof, rng):
    """Ney 1.5 with the exponent −(ν + d)/2 (errata)."""
    x = rng.normal(size=(40, 3)) * 4
    assert np.allclose(
        StudentT(CENTER, FULL, dof).log_prob(x), scipy.stats.multivariate_t(CENTER, FULL, dof).logpdf(x), rtol=1e-12
    )
    wanted = scipy.stats.multivariate_t(CENTER, 2.5 * np.eye(3), dof)
    assert np.allclose(StudentT(CENTER, 2.5, dof).log_prob(x), wanted.logpdf(x), rtol=1e-12)
    assert StudentT(CENTER, FULL, dof).entropy() == pytest.approx(
        scipy.stats.multivariate_t(CENTER, FULL, dof).entropy(), rel=1e-10
    )
    each = sum(
        scipy.stats.t(dof, m, np.sqrt(s)).logpdf(x[:, j])
        for j, (m, s) in enumerate(zip(CENTER, [1, 2, 3], strict=True))
    )
    assert np.allclose(StudentT(CENTER, [1.0, 2.0, 3.0], dof, kind="independent").log_prob(x), each, rtol=1e-12)


def test_missing_values_are_integrated_out(rng):
    t = StudentT(CENTER, FULL, 3.0)
    x = rng.normal(size=(8, 3)) * 3
    for hidden in ([0], [1, 2], [0, 2]):
        seen = np.setdiff1d(np.arange(3), hidden)
        gap = x.copy()
        gap[:, hidden] = np.nan
        assert np.allclose(t.log_prob(gap), t.marginal(seen).log_prob(x[:, seen]), rtol=1e-12)

    def along(z):
        return np.exp(t.log_prob([[x[0, 0], z, x[0, 2]]])[0])

    wanted, _ = scipy.integrate.quad(along, -np.inf, np.inf, epsabs=0, epsrel=1e-11)
    assert t.log_prob([[x[0, 0], np.nan, x[0, 2]]])[0] == pytest.approx(np.log(wanted), abs=1e-9)
    assert t.log_prob(np.full((2, 3), np.nan)).tolist() == [0.0, 0.0]
    columns = StudentT(CENTER, [1.0, 2.0, 3.0], [3.0, 5.0, 9.0], kind="independent")
    gap = np.array([[0.3, np.nan, 2.0]])
    assert columns.log_prob(gap)[0] == pytest.approx(columns.marginal([0, 2]).log_prob([[0.3, 2.0]])[0], rel=1e-14)


STACKS = {
    "full": (FULL[None] * np.array([1.0, 2.0, 0.5, 3.0, 1.5])[:, None, None], [1.0, 3.0, 8.0, 100.0, 1e7]),
    "tied": (FULL, [1.0, 3.0, 8.0, 100.0, 1e7]),
    "diagonal": (np.abs(np.add.outer(np.arange(5.0), CENTER)) + 0.1, 3.0),
    "spherical": (np.arange(1.0, 6.0), 3.0),
    "independent": (np.abs(np.add.outer(np.arange(5.0), CENTER)) + 0.1, np.add.outer(np.arange(5.0), [1.0, 2.0, 3.0])),
}


@pytest.mark.parametrize("kind", STACKS)
def test_a_stack_is_its_members_one_by_one(kind, rng):
    scale, dof = STACKS[kind]
    stack = StudentT(rng.normal(size=(5, 3)), scale, dof, kind="full" if kind == "tied" else kind)
    x = rng.normal(size=(60, 3)) * 5
    x[rng.random(x.shape) < 0.2] = np.nan
    x[0] = [1e200, 0.0, -1e180]
    x[1] = [np.nan, 1e250, 1.0]
    each = np.stack([stack.member(k).log_prob(x) for k in range(5)], axis=1)
    assert stack.members == 5 and np.isfinite(each).sum() >= 5 * 58
    assert np.allclose(stack.log_prob(x), each, rtol=1e-11, atol=1e-9)
    assert np.allclose(stack.entropy(), [stack.member(k).entropy() for k in range(5)], rtol=1e-13)


def test_rows_beyond_the_square_root_of_the_largest_number():
    t = StudentT(CENTER, FULL, 3.0)
    far = np.array([[1e200, -3e200, 2e200], [1e200, np.nan, 2e200]])
    near = far / 1e180  # the tail is a power: log p falls by (ν + o) log 10 a decade
    assert np.allclose(t.log_prob(far), t.log_prob(near) - np.array([6, 5]) * 180 * np.log(10), rtol=1e-12)
    assert np.isfinite(StudentT(-1e308, 1.0, 2.0).log_prob([1.7e308]))[0]


def test_a_singular_scale_lives_on_its_flat():
    t = StudentT([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 3.0)
    wanted = scipy.stats.t(3.0, 0, np.sqrt(2)).logpdf(np.sqrt(2) * 0.7)  # along the diagonal, whose variance is 2
    assert t.log_prob([[0.7, 0.7], [0.7, 0.6]]).tolist() == [pytest.approx(wanted, rel=1e-13), -np.inf]


def test_moments_exist_where_they_do():
    t = StudentT(CENTER, FULL, 3.0)
    assert np.array_equal(t.mean, CENTER)
    assert np.allclose(t.covariance, 3 * FULL)
    assert np.allclose(t.variance, 3 * np.diag(FULL))
    assert np.array_equal(StudentT(CENTER, FULL, 0.5).mode, CENTER)
    assert np.array_equal(StudentT(CENTER, FULL, 0.5).center, CENTER)
    stack = StudentT(np.zeros((2, 3)), FULL, [3.0, 4.0])
    assert np.allclose(stack.covariance, [3 * FULL, 2 * FULL])
    assert np.allclose(stack.variance, [3 * np.diag(FULL), 2 * np.diag(FULL)])
    assert np.allclose(StudentT([0.0, 1.0], [1.0, 2.0], [3.0, 4.0], kind="independent").covariance, [3.0, 4.0])
    assert StudentT(CENTER, 2.0, 4.0).covariance == 4.0
    for dof, what in [(1.0, "mean"), (0.5, "mean"), (2.0, "covariance"), (1.5, "variance")]:
        with pytest.raises(DomainError, match=f"the {what} exists"):
            getattr(StudentT(CENTER, FULL, dof), what)


def exact_cdf(t: float, v: float) -> mp.mpf:
    T, V, half = mp.mpf(t), mp.mpf(v), mp.mpf(1) / 2
    share = T * T / (V + T * T)
    if share < half:
        tail = half * (1 - mp.betainc(half, V / 2, 0, share, regularized=True))
    else:
        tail = half * mp.betainc(V / 2, half, 0, V / (V + T * T), regularized=True)
    return tail if t < 0 else 1 - tail


@pytest.mark.slow
def test_distribution_function_and_quantiles_against_mpmath(rng):
    checked = 0
    for _ in range(120):
        v = 10 ** rng.uniform(-4, 6)
        t = rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 1.3 if rng.random() < 0.6 else 200)
        with mp.workdps(60 if abs(t) < 8 else 450):
            try:
                exact = exact_cdf(t, v)
            except mp.libmp.NoConvergence:
                continue
            if exact < 1e-300:
                continue
            distribution = StudentT(0.0, 1.0, v)
            assert abs(float(distribution.cdf(t) / exact - 1)) <= 1e-11
            checked += 1
            if t < 0 and exact > 1e-290:
                assert float(distribution.quantile(float(exact))) == pytest.approx(t, rel=1e-9)
    assert checked > 80


def test_quantiles_near_the_middle_and_in_the_tails():
    for v in (1e-3, 0.3, 1.0, 5.0, 1e3, 1e6):
        distribution = StudentT(0.0, 1.0, v)
        p = np.concatenate([10.0 ** -np.arange(1.0, 300.0, 17.0), 0.5 - 10.0 ** -np.arange(1.0, 12.0), [0.5]])
        x = distribution.quantile(p)
        inside = np.isfinite(x) & (x > -1e290)
        assert inside[-12:].all() and np.abs(distribution.cdf(x[inside]) / p[inside] - 1).max() <= 1e-9
        height = np.exp(distribution.log_prob([0.0])[0])
        assert np.allclose(x[-4:], (p[-4:] - 0.5) / height, rtol=1e-9)  # flat: no digit of p − ½ is lost
    cauchy, far = StudentT(2.0, 9.0, 1.0), np.array([1e-200, 1e-3, 0.3, 0.9])
    assert np.allclose(cauchy.quantile(far), 2 - 3 / np.tan(np.pi * far), rtol=1e-12)
    assert StudentT(1.0, 1.0, 3.0).quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf] and np.isnan(cauchy.quantile(1.5))
    assert StudentT([[0.0], [1.0]], 1.0, [1.0, 5.0]).quantile([0.1, 0.2, 0.3]).shape == (3, 2)
    assert StudentT([[0.0], [1.0]], 1.0, [1.0, 5.0]).cdf(np.zeros((4, 1))).shape == (4, 2)


@pytest.mark.parametrize("kind", ["full", "independent"])
def test_entropy_against_integration(kind):
    for v in (0.8, 4.0, 1e4):
        distribution = StudentT([1.0], [[2.0]] if kind == "full" else 2.0, v, kind=kind)

        def surprisal(u, distribution=distribution):
            return -distribution.log_prob(np.atleast_1d(distribution.quantile(u)))[0]

        wanted = 2 * scipy.integrate.quad(surprisal, 0, 0.5, limit=200, epsrel=1e-10)[0]
        assert distribution.entropy() == pytest.approx(wanted, rel=1e-8)
        assert distribution.entropy(bits=True) * np.log(2) == pytest.approx(distribution.entropy(), rel=1e-15)


def test_conditionals_are_ratios_of_densities(rng):
    t, x = StudentT(CENTER, FULL, 3.0), rng.normal(size=(20, 3)) * 3
    for known in ([1], [0, 2]):
        left = np.setdiff1d(np.arange(3), known)
        given = t.condition({j: x[0, j] for j in known})
        assert given.dof == 3 + len(known)
        rows = np.repeat(x[:1], 20, axis=0)
        rows[:, left] = x[:, left]
        wanted = t.log_prob(rows) - t.marginal(known).log_prob(rows[:, known])
        assert np.allclose(given.log_prob(x[:, left]), wanted, rtol=1e-12)


def test_vectors_of_values_condition_into_a_stack(rng):
    t, values = StudentT(CENTER, FULL, 3.0), np.array([-1.0, 0.0, 5.0])
    stack = t.condition({1: values})
    for k, value in enumerate(values):
        one = t.condition({1: value})
        assert np.allclose(stack.center[k], one.center)
        assert np.allclose(stack.scale[k], one.scale)
        assert stack.dof[k] == one.dof
    both = StudentT([CENTER, CENTER + 1], np.stack([FULL, 2 * FULL]), [3.0, 5.0]).condition(
        {0: [0.3, 0.4], 2: [1.0, 2.0]}
    )
    second = StudentT(CENTER + 1, 2 * FULL, 5.0).condition({0: 0.4, 2: 2.0})
    assert np.allclose(both.scale[1], second.scale) and np.allclose(both.center[1], second.center) and both.dof[1] == 7
    columns = StudentT(CENTER, [1.0, 2.0, 3.0], [3.0, 5.0, 9.0], kind="independent").condition({1: 4.0})
    assert columns.scale.tolist() == [1.0, 3.0]
    assert columns.dof.tolist() == [3.0, 9.0]
    assert columns.center.tolist() == [1.0, 0.5]


@pytest.mark.slow
@pytest.mark.some_cases(2)
@pytest.mark.parametrize("kind", STACKS)
def test_draws_follow_the_distribution(kind, rng):
    scale, _ = STACKS[kind]
    t = StudentT(np.add.outer(np.arange(5.0), CENTER), scale, 5.0, kind="full" if kind == "tied" else kind)
    x = t.sample(20_000, rng)
    assert x.shape == (20_000, 5, 3)
    for k in (0, 4):
        for j in range(3):
            one = t.member(k).marginal([j])
            assert scipy.stats.kstest(x[:, k, j], one.cdf).statistic <= 0.0191  # the DKW bound at 1e-6
    z = x - t.center
    mixed = (z[:, 0, :, None] * z[:, 0, None, :]).mean(axis=0)
    wanted = (
        np.broadcast_to(t.variance[0], (3, 3)) * np.eye(3)
        if kind not in ("full", "tied")
        else 5 / 3 * np.asarray(t.member(0).scale)
    )
    assert np.abs(mixed - wanted).max() <= 0.15 * wanted.max()


def test_tiny_degrees_of_freedom_draw_numbers(rng):
    assert np.isfinite(StudentT(0.0, 1.0, 1e-6).sample(100, rng)).all()


def test_values_keep_their_bits_and_leave_the_callers_arrays_alone():
    center, scale = CENTER.copy(), FULL.copy()
    t = StudentT(center, scale, 3.0)
    center[0] = scale[0, 0] = 99.0
    assert t.center[0] == 1.0 and t.scale.tobytes() == FULL.tobytes()
    again = StudentT(center=t.center, scale=t.scale, dof=t.dof, kind=t.kind)
    assert again.scale.tobytes() == t.scale.tobytes() and again.dof.shape == t.dof.shape == ()
    named = StudentT(mean=[0.0], scale=[[2.0]], dof=3.0)
    assert named.center.tolist() == [0.0] and named.kind == "full"


def test_infinity_is_named_by_row_and_column():
    x = np.ones((50_000, 3))
    x[40_001, 1] = np.inf
    with pytest.raises(DataError, match="row 40001, column 1"):
        StudentT(CENTER, FULL, 3.0).log_prob(x)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: StudentT(CENTER, FULL, 0.0), DomainError, "dof must be positive"),
        (lambda: StudentT(CENTER, FULL), DomainError, "dof must be given"),
        (lambda: StudentT(CENTER, FULL, [1.0, 2.0]), ShapeError, r"dof must be a number or have shape \(\)"),
        (lambda: StudentT(CENTER, -FULL, 3.0), DomainError, "StudentT: scale must not have negative eigenvalues"),
        (lambda: StudentT(CENTER, [1.0, 2.0], 3.0), ShapeError, "StudentT: scale"),
        (lambda: StudentT(CENTER, 1.0, 3.0, kind="round"), DomainError, "'independent', got 'round'"),
        (lambda: StudentT(CENTER, [1.0, 0.0, 1.0], 3.0, kind="independent"), DomainError, "positive"),
        (lambda: StudentT(CENTER, FULL, 3.0).cdf(0.0), DomainError, "one column"),
        (lambda: StudentT(CENTER, FULL, 3.0).marginal([3]), ShapeError, "StudentT: columns"),
        (lambda: StudentT(CENTER, FULL, 3.0).condition({0: 1, 1: 1, 2: 1}), ShapeError, "StudentT.condition"),
        (lambda: StudentT.fit([[1.0, 2.0], [np.inf, 0.0]]), DataError, "StudentT: values.*row 1, column 0"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_far_out_with_few_degrees_of_freedom():
    """z²/ν = 3·10¹⁵, where z² / (ν + z²) has lost what tells it from 1, and yet a third lies beyond."""
    distribution = StudentT(0.0, 0.006599321130444914, 0.019821610680557045)
    assert distribution.cdf([-637541.3676520673])[0] == pytest.approx(0.34636206970145949, rel=1e-14)  # 50 digits

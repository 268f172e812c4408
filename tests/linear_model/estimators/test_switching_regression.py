from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import likely as lk
from likely import DataError, DomainError, FitWarning, ShapeError
from likely.linear_model import SwitchingRegression


def two_levels(rng, n=300, noise=0.5):
    state = [0]
    for u in rng.random(n - 1):
        state.append(state[-1] if u < 0.95 else 1 - state[-1])
    state = np.array(state)
    return np.where(state, 3.0, 0.0) + noise * rng.standard_normal(n), state


def autoregression(rng, n=400, mean=(-1.0, 3.0), ar=0.6):
    y, state = np.zeros(n), np.zeros(n, dtype=int)
    for t in range(1, n):
        state[t] = state[t - 1] if rng.random() < 0.95 else 1 - state[t - 1]
        y[t] = mean[state[t]] + ar * (y[t - 1] - mean[state[t - 1]]) + 0.5 * rng.standard_normal()
    return y, state


def model(**how):
    return SwitchingRegression(2, random_state=0, **how)


def by_enumeration(m, y, X=None):
    """p(y) given the first values, its filtered and smoothed states and predictions, by summing over all paths."""
    r, p, K = m.regimes_, m.lags, m.n_states
    back = p if m.mean_adjusted else 0
    T = len(y) - p
    g = m._functions(len(y), X)
    q, joint, parts = g.shape[1], [], []
    for path in itertools.product(range(K), repeat=T + back):
        log, each, means = np.log(r.initial[path[0]]), [], []
        log += sum(np.log(r.transition[a, b]) for a, b in itertools.pairwise(path))
        for t in range(p, len(y)):
            s = path[t - p + back]
            mean, phi = g[t] @ r.coefficients[s, :q], m.ar_[s]
            for i in range(1, p + 1):
                level = g[t - i] @ r.coefficients[path[t - p + back - i], :q] if m.mean_adjusted else 0.0
                mean += phi[i - 1] * (y[t - i] - level)
            known = not np.isnan([y[t], *y[t - p : t]]).any()
            each.append(norm.logpdf(y[t], mean, np.sqrt(r.variance[s])) if known else 0.0)
            means.append(mean)
        joint.append(np.exp(log + np.cumsum(np.concatenate([[0.0], each]))))
        parts.append((path[back:], means))
    joint = np.array(joint)  # (paths, T + 1): p(path, y_1 … y_t)
    states, means = np.array([p for p, _ in parts]), np.array([m for _, m in parts])
    one_hot = states[:, :, None] == np.arange(K)
    smoothed = np.einsum("n,ntk->tk", joint[:, -1], one_hot) / joint[:, -1].sum()
    filtered = np.einsum("nt,ntk->tk", joint[:, 1:], one_hot) / joint[:, 1:].sum(axis=0)[:, None]
    predicted = (joint[:, :-1] * means).sum(axis=0) / joint[:, :-1].sum(axis=0)
    best = states[joint[:, -1].argmax()]
    return np.log(joint[:, -1].sum()), filtered, smoothed, predicted, best


FORMS = {
    "levels": {},
    "free initial": {"initial": "free"},
    "one lag": {"lags": 1},
    "two lags, shared": {"lags": 2, "shared": ["lags"], "tied_noise": True},
    "mean-adjusted": {"lags": 1, "mean_adjusted": True},
    "mean-adjusted, order 2": {"lags": 2, "mean_adjusted": True, "shared": ["lags"], "tied_noise": True},
    "no constant": {"constant": False, "lags": 1},
    "variance only": {"constant": False},
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_answers_equal_enumeration(rng, name, gap):
    y, _ = autoregression(rng, 120)
    m = model(**FORMS[name], max_iter=20).fit(y)
    few = y[40 : 48 + m.lags].copy()
    if gap:
        few[3 + m.lags] = np.nan
    log_prob, filtered, smoothed, predicted, best = by_enumeration(m, few)
    p = m.lags
    assert m.log_prob(few) == pytest.approx(log_prob, rel=1e-10)
    np.testing.assert_allclose(m.filter(few)[p:], filtered, atol=1e-10)
    np.testing.assert_allclose(m.smooth(few)[p:], smoothed, atol=1e-10)
    known = ~np.isnan(predicted)
    np.testing.assert_allclose(m.predict(few)[p:][known], predicted[known], rtol=1e-9, atol=1e-12)
    if not gap:
        assert np.array_equal(m.viterbi(few)[p:], best)
    assert np.isnan(m.filter(few)[:p]).all() and (m.viterbi(few)[:p] == -1).all()


def test_regressors_equal_enumeration(rng):
    y, _ = autoregression(rng, 120)
    X = rng.standard_normal((120, 2))
    y = y + X @ [1.0, -0.5]
    for how in ({"lags": 1, "mean_adjusted": True}, {"lags": 1, "shared": ["regressors"]}):
        m = model(**how, max_iter=30, tol=1e-3).fit(y, X)
        log_prob, filtered, *_ = by_enumeration(m, y[:8], X[:8])
        assert m.log_prob(y[:8], X[:8]) == pytest.approx(log_prob, rel=1e-10)
        np.testing.assert_allclose(m.filter(y[:8], X[:8])[1:], filtered, atol=1e-10)
        np.testing.assert_allclose(m.coefficients_[:, 1:3].mean(axis=0), [1.0, -0.5], atol=0.4)


def test_known_levels_are_found(rng):
    y, state = two_levels(rng)
    m = model().fit(y)
    assert m.report_.converged and isinstance(m.model_, lk.HMM)
    k = int(m.coefficients_[:, 0].argmax())
    np.testing.assert_allclose(m.coefficients_[[1 - k, k], 0], [0.0, 3.0], atol=0.15)
    np.testing.assert_allclose(np.sqrt(m.noise_variance_), 0.5, rtol=0.15)
    assert ((m.viterbi(y) == k) == state).mean() > 0.98 and ((m.smooth(y)[:, k] > 0.5) == state).mean() > 0.98
    assert (m.expected_durations_ > 8).all()
    np.testing.assert_allclose(m.initial_ @ m.transition_, m.initial_, atol=1e-12)


@pytest.mark.slow
def test_a_mean_adjusted_autoregression_is_found(rng):
    y, state = autoregression(rng, 800)
    m = model(lags=1, mean_adjusted=True, shared=["lags"], tied_noise=True).fit(y)
    k = int(m.coefficients_[:, 0].argmax())
    np.testing.assert_allclose(m.coefficients_[[1 - k, k], 0], [-1.0, 3.0], atol=0.3)
    np.testing.assert_allclose(m.ar_, 0.6, atol=0.12)
    assert ((m.viterbi(y)[1:] == k) == state[1:]).mean() > 0.97


def test_volatility_alone_is_found(rng):
    y = np.where(np.arange(400) // 100 % 2, 3.0, 0.5) * rng.standard_normal(400)
    m = model(constant=False).fit(y)
    np.testing.assert_allclose(np.sort(np.sqrt(m.noise_variance_)), [0.5, 3.0], rtol=0.2)
    assert m.coefficients_.shape == (2, 0) and m.regimes_.n_parameters == 4


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("prior", [None, "weak"])
@pytest.mark.parametrize("name", FORMS)
def test_the_objective_never_falls(rng, name, prior):
    y, _ = autoregression(rng, 150)
    y[50:54] = np.nan
    m = model(**FORMS[name], prior=prior, max_iter=40, tol=0.0)
    m.fit([y[:70], y[70:]])
    trace = np.array(m.report_.trace)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all() and len(trace) > 3
    plain = lk.fit(m.regimes_, m.rows([y[:70], y[70:]]), prior=m.report_.prior, stop=lk.StoppingRule(5, 0.0))
    assert plain.trace[0] == pytest.approx(trace[-1], rel=1e-9) and (np.diff(plain.trace) >= -1e-9).all()


def test_at_the_maximum_the_gradient_vanishes(rng):
    """Also in the transitions of a stationary chain, where the M-step is not a relative frequency."""
    y, _ = autoregression(rng, 60)
    for how in ({}, {"lags": 1, "mean_adjusted": True}):
        m = model(**how, prior=None, tied_noise=True).fit(y)
        rows, best = m.rows(y), m.log_prob(y)
        for k in range(2):
            for step in (1e-4, -1e-4):
                A = m.transition_.copy()
                A[k] += [step, -step]
                pi = np.array([A[1, 0], A[0, 1]]) / (A[1, 0] + A[0, 1])
                assert m.regimes_.replace(transition=A, initial=pi).log_prob(rows)[0] <= best + 1e-8
                beta = m.regimes_.coefficients.copy()
                beta[k, 0] += step
                assert m.regimes_.replace(coefficients=beta).log_prob(rows)[0] <= best + 1e-8


def test_compiled_and_plain_passes_agree(rng):
    y, _ = autoregression(rng, 90)
    y[30] = np.nan
    for how in (FORMS["one lag"], FORMS["mean-adjusted, order 2"], FORMS["free initial"]):
        m = model(**how, max_iter=6, tol=1e-2).fit([y[:40], y[40:]])
        rows, w = m.rows([y[:40], y[40:]]), np.array([1.0, 2.5])
        fast, slow = m.regimes_.collect(rows, w), m.regimes_._collect_by_hmm(rows, w)
        for name in ("initial", "transition", "counts", "entropy"):
            np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(fast.emission.rows, slow.emission.rows, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(fast.emission.sums.scatter, slow.emission.sums.scatter, rtol=1e-8, atol=1e-8)


def test_weights_are_copies_and_offsets_do_not_matter(rng):
    y, z = two_levels(rng, 80)[0], two_levels(rng, 60)[0]
    a, b = model().fit([y, z], sample_weight=[2, 1]), model().fit([y, y, z])
    np.testing.assert_allclose(a.log_prob([y, z]), b.log_prob([y, z]), rtol=1e-6)
    plain = model(lags=1).fit(y)
    for scale, offset in ((2.0**-40, 0.0), (2.0**40, 0.0), (1.0, 1e6)):
        other = model(lags=1).fit(scale * y + offset)
        np.testing.assert_allclose(
            other.predict(scale * y + offset)[1:], scale * plain.predict(y)[1:] + offset, rtol=1e-5
        )


def test_several_series_and_types(rng):
    y = [two_levels(rng, n)[0] for n in (50, 80, 1)]
    m = model(lags=1).fit(y)
    assert [len(a) for a in m.smooth(y)] == [50, 80, 1] and m.log_prob(y).shape == (3,)
    assert m.predictive(y)[1].members == 79
    one = model().fit(pd.Series(y[1]))
    assert (
        one.log_prob(y[1]) == pytest.approx(one.log_prob(y[1].tolist())) == pytest.approx(one.log_prob(y[1][:, None]))
    )
    np.testing.assert_allclose(one.log_prob(lk.Ragged.from_list([y[1]])), [one.log_prob(y[1])])


def test_predictive_densities_and_score(rng):
    y, _ = two_levels(rng)
    m = model(lags=1).fit(y)
    density = m.predictive(y)
    each = [density.member(t).log_prob(y[[t + 1]])[0] for t in range(50)]
    np.testing.assert_allclose(each, m.model_.predictive_log_prob(m.rows(y)).values[:50], rtol=1e-8)
    assert m.score(y) == pytest.approx(m.log_prob(y) / 299)
    np.testing.assert_allclose(m.predict(y)[1:], density.mean[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"lags": 2}, {"lags": 1, "mean_adjusted": True}], ids=repr)
def test_forecasts_equal_simulation(rng, how):
    y, _ = autoregression(rng, 200)
    m = model(**how).fit(y)
    found = m.forecast(y, 4)
    r, p, n = m.regimes_, m.lags, 40_000
    runs = rng.choice(len(r.runs), n, p=m.model_.posterior(m.rows(y), 0).values[-1])
    states = [r.runs[runs, i] for i in range(r.order + 1)]  # the newest first
    last = [np.full(n, y[-i]) for i in range(1, p + 1)]
    for h in range(4):
        new = (rng.random(n)[:, None] > np.cumsum(r.transition[states[0]], axis=1)).sum(axis=1)
        states = [new, *states][: max(r.order + 1, 1)]
        mean = r.coefficients[new, 0].copy()
        for i in range(p):
            level = r.coefficients[states[i + 1], 0] if m.mean_adjusted else 0.0
            mean += m.ar_[new, i] * (last[i] - level)
        value = mean + np.sqrt(r.variance[new]) * rng.standard_normal(n)
        last = [value, *last][:p]
        np.testing.assert_allclose(found.mean[h], value.mean(), atol=0.05)
        np.testing.assert_allclose(found.std[h], value.std(), rtol=0.03)
        np.testing.assert_allclose(found.states[h], np.bincount(new, minlength=2) / n, atol=0.02)
        low, high = found.interval(0.8)
        assert ((value > low[h]) & (value < high[h])).mean() == pytest.approx(0.8, abs=0.02)


def test_merged_paths_keep_means_and_variances(rng, monkeypatch):
    from likely.linear_model.estimators import switching_forecast

    y, _ = autoregression(rng, 200)
    for how in ({"lags": 2}, {"lags": 2, "mean_adjusted": True}):
        m = model(**how).fit(y)
        exact = m.forecast(y, 6)
        monkeypatch.setattr(switching_forecast, "MOST", 8)
        merged = m.forecast(y, 6)
        monkeypatch.undo()
        assert len(merged[5].weights) <= len(exact[5].weights)
        np.testing.assert_allclose(merged.mean, exact.mean, rtol=1e-9)
        np.testing.assert_allclose(merged.std, exact.std, rtol=1e-9)
        np.testing.assert_allclose(merged.states, exact.states, atol=1e-12)
    assert len(list(merged)) == len(merged) == 6


def test_forecast_with_regressors(rng):
    y, _ = two_levels(rng)
    X = rng.standard_normal((300, 1))
    m = model(shared=["regressors"]).fit(y + 2 * X[:, 0], X)
    near, far = (m.forecast(y + 2 * X[:, 0], 1, X, future=[[v]]).mean[0] for v in (0.0, 5.0))
    assert far - near == pytest.approx(10.0, abs=0.5)
    with pytest.raises(ShapeError, match="future="):
        m.forecast(y, 1, X)


def test_samples_have_the_moments_of_the_model(rng):
    y, _ = autoregression(rng, 400)
    m = model(lags=1, mean_adjusted=True, shared=["lags"]).fit(y)
    z, states = m.sample(4000, random_state=0)
    again = model(lags=1, mean_adjusted=True, shared=["lags"], init=m.regimes_).fit(z)
    np.testing.assert_allclose(again.ar_, m.ar_, atol=0.08)
    np.testing.assert_allclose(again.coefficients_, m.coefficients_, atol=0.4)
    assert (again.viterbi(z)[1:] == states[1:]).mean() > 0.95
    X = rng.standard_normal((50, 1))
    other = model().fit(y[:50] + X[:, 0], X)
    assert other.sample(50, X, random_state=1)[0].shape == (50,)


def test_initializations(rng):
    y, state = two_levels(rng)
    best = model().fit(y).log_prob(y)
    assert model(init=state).fit(y).log_prob(y) == pytest.approx(best, abs=0.05)
    assert model(init=[state[:150], state[150:]]).fit([y[:150], y[150:]]).report_.converged
    several = model(n_init=2).fit(y)
    assert len(several.report_.runs) == 2
    one = SwitchingRegression(1, lags=1, prior=None).fit(y)
    plain = lk.LinearRegression().fit(y[:-1, None], y[1:])
    np.testing.assert_allclose(one.coefficients_[0], plain.coefficients_, rtol=1e-6)


def test_basis_and_names(rng):
    x = rng.uniform(-1, 1, 300)
    state = np.arange(300) // 75 % 2
    y = np.where(state, x**2, -2 * x**2) + 0.05 * rng.standard_normal(300)
    m = model(basis=lk.basis.Polynomial(2, constant=False), shared=["constant"]).fit(y, x)
    assert m.coefficient_names_ == ["constant", "x0", "x0^2"]
    np.testing.assert_allclose(np.sort(m.coefficients_[:, 2]), [-2.0, 1.0], atol=0.15)
    assert m.coefficients_[0, 0] == m.coefficients_[1, 0]


def test_summaries(rng):
    y, _ = two_levels(rng)
    m = model(prior=None).fit(y)
    text = str(m.summary(y))
    assert "standard error" in text and "transition 0 to 0" in text and "log-likelihood" in text
    assert m.describe().facts["log-likelihood"] == pytest.approx(m.log_prob(y), rel=1e-9)
    assert "standard error" not in str(m.describe()) and "not fitted" in str(SwitchingRegression().describe())
    once = np.r_[rng.standard_normal(50), 9 + rng.standard_normal(50)]
    never = model(prior=None, initial="free").fit(once)  # the second state is never left
    assert "no standard errors" in str(never.summary(once))


def test_files(rng, tmp_path):
    y, _ = autoregression(rng, 150)
    for how in ({"lags": 1}, {"lags": 2, "mean_adjusted": True, "prior": None}):
        m = model(**how).fit(y)
        m.save(tmp_path / "m.likely")
        again = lk.load(tmp_path / "m.likely")
        assert np.array_equal(again.predict(y), m.predict(y), equal_nan=True)
        assert again.log_prob(y) == m.log_prob(y) and str(again.summary()).startswith("SwitchingRegression")


def test_bad_input_is_refused(rng):
    y, _ = two_levels(rng, 60)
    X = rng.standard_normal((60, 1))
    for settings, match in (
        ({"shared": ["noise"]}, "shared must be among"), ({"mean_adjusted": True}, "about lags"),
        ({"mean_adjusted": True, "lags": 20}, "at most 4096"), ({"n_states": 0}, "n_states"),
    ):  # fmt: skip
        with pytest.raises((DomainError, ValueError), match=match):
            SwitchingRegression(**settings).fit(y)
    with pytest.raises(DataError, match="infinity"):
        model().fit(np.r_[y, np.inf])
    with pytest.raises(DataError, match="at least one observed value with 2"):
        model(lags=2).fit([1.0, 2.0])
    with pytest.raises(DataError, match="at least one observed value"):
        model().fit(y * np.nan)
    with pytest.warns(FitWarning, match="not converged"):
        model(max_iter=3, tol=0.0).fit(y)
    with pytest.raises(DataError, match="y is None"):
        model().fit(None)
    with pytest.raises(ShapeError, match="vector"):
        model().fit(rng.standard_normal((5, 2)))
    with pytest.raises(ShapeError, match="X must have shape"):
        model().fit(y, X[:-1])
    with pytest.raises(ShapeError, match="one table per series"):
        model().fit([y, y], [X])
    with pytest.raises(DataError, match="X must be finite where the series is observed"):
        model().fit(y, np.where(np.arange(60)[:, None] == 9, np.nan, X))
    with pytest.raises(DataError, match="sample_weight"):
        model().fit([y, y], sample_weight=[1.0])
    with pytest.raises(DataError, match="state 0 … 1"):
        model(init=np.full(60, 7)).fit(y)
    m = model(lags=2).fit(y)
    with pytest.raises(ShapeError, match="init must have coefficients"):
        model(init=m.regimes_).fit(y)
    with pytest.raises(DataError, match="last 2 values"):
        m.forecast(np.r_[y, np.nan])
    with pytest.raises(ShapeError, match="one series"):
        m.forecast([y, y])
    fitted = model().fit(y, X)
    with pytest.raises(ShapeError, match="columns of X are needed"):
        fitted.predict(y)
    with pytest.raises(ShapeError, match="X must have shape"):
        fitted.sample(5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_hazards_have_finite_answers(rng):
    """Constant, exact, short and extreme series."""
    y = rng.standard_normal(60)
    for series in (
        np.zeros(30), np.full(30, 1e8), np.arange(40.0), np.r_[y, 1e12], y * 1e-150, y * 1e150, y[:3],
        np.where(np.arange(60) % 2, 1.0, -1.0), np.where(np.arange(60) % 5 == 0, np.nan, y), y.astype(np.float32),
        (10 * y).astype(int),
    ):  # fmt: skip
        for how in ({}, {"lags": 1}, {"lags": 1, "mean_adjusted": True}, {"prior": None, "tied_noise": True}):
            try:
                m = model(**how, max_iter=100).fit(series)
            except lk.LikelyError as error:
                assert str(error).startswith("SwitchingRegression")
                continue
            found = m.predict(series)[m.lags :]
            assert np.isfinite(found[~np.isnan(np.asarray(series, dtype=float)[m.lags :])]).mean() > 0.7
            assert np.isfinite(m.noise_variance_).all() and np.isfinite(m.transition_).all()
            str(m.summary())


def test_compiled_and_plain_m_steps_agree(rng):
    y, _ = autoregression(rng, 200)
    X = rng.standard_normal((200, 1))
    for how in ({"shared": ["regressors"]}, {"lags": 2, "mean_adjusted": True}, {"tied_noise": True, "lags": 1}):
        m = model(**how, max_iter=6, tol=1e-2).fit(y, X)
        stats = m.regimes_.collect(m.rows(y, X))
        for prior in (None, m.regimes_.weak_prior(stats)):
            fast, slow = m.regimes_._fast_steps(stats, prior, 2), m.regimes_._steps(stats, prior, 2)
            assert fast is not None
            for a, b in zip(fast, slow, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    shifted = model(lags=1, max_iter=6, tol=1e-2).fit(y + 1e9)
    stats = shifted.regimes_.collect(shifted.rows(y + 1e9))
    assert shifted.regimes_._fast_steps(stats, None, 1) is None  # ill-conditioned: by orthogonal factors

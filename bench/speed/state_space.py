"""Kalman filters and smoothers, extended Kalman filters and particle filters."""

from __future__ import annotations

import math

import numpy as np

from speed.common import array, library, scaled
from speed.registry import Infeasible, workload


def lgssm_data(T, seed):
    r = np.random.default_rng(seed)
    F = np.array([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [-0.1, 0, 0.95, 0.05], [0, -0.1, -0.05, 0.95]])
    H = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    Q, R = np.diag([0.01, 0.01, 0.05, 0.05]), np.array([[0.3, 0.1], [0.1, 0.4]])
    m0, P0 = np.zeros(4), np.eye(4)
    x, Y = r.multivariate_normal(m0, P0), np.empty((T, 2))
    q, v = r.multivariate_normal(np.zeros(4), Q, T), r.multivariate_normal(np.zeros(2), R, T)
    for t in range(T):
        if t:
            x = F @ x + q[t]
        Y[t] = H @ x + v[t]
    return {"Y": Y, "F": F, "H": H, "Q": Q, "R": R, "m0": m0, "P0": P0}


def ref_kalman(Y, F, H, Q, R, m0, P0, smooth=True):
    T, n = len(Y), len(m0)
    m, P, ll = m0, P0, 0.0
    mf, Pf, mp, Pp = np.empty((T, n)), np.empty((T, n, n)), np.empty((T, n)), np.empty((T, n, n))
    for t in range(T):
        if t:
            m, P = F @ m, F @ P @ F.T + Q
        mp[t], Pp[t] = m, P
        S, e = H @ P @ H.T + R, Y[t] - H @ m
        k = np.linalg.solve(S, H @ P)
        ll -= 0.5 * (np.linalg.slogdet(2 * np.pi * S)[1] + e @ np.linalg.solve(S, e))
        m, P = m + k.T @ e, P - k.T @ (H @ P)
        P = 0.5 * (P + P.T)
        mf[t], Pf[t] = m, P
    if smooth:
        for t in range(T - 2, -1, -1):
            G = np.linalg.solve(Pp[t + 1], F @ Pf[t]).T
            mf[t] = mf[t] + G @ (mf[t + 1] - mp[t + 1])
            Pf[t] = Pf[t] + G @ (Pf[t + 1] - Pp[t + 1]) @ G.T
    return ll, mf, Pf


@workload(
    "kalman",
    "T=20,000, 4 states, 2 observations: filter + RTS smoother (means and covariances)",
    bounds={"mean_err": 1e-6, "cov_err": 1e-6},
)
def kalman(s):
    return lgssm_data(scaled(20_000, s, 200), 18)


_KK = ("F", "H", "Q", "R", "m0", "P0")


@kalman.quality
def _(d, r):
    ll, m, P = ref_kalman(d["Y"], *(d[k] for k in _KK))
    o = {"mean_err": float(abs(array(r["mean"]) - m).max()), "cov_err": float(abs(array(r["cov"]) - P).max())}
    if r.get("loglik") is not None:
        o["loglik"], o["loglik_err"] = float(r["loglik"]), float(r["loglik"]) - ll
    return o


@kalman.peer("statsmodels", note="KalmanSmoother.smooth, its defaults (smooths disturbances too)")
def _(d):
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    Y = np.asfortranarray(d["Y"].T)

    def run():
        ks = KalmanSmoother(k_endog=2, k_states=4, k_posdef=4)
        ks.bind(Y)
        ks["design"], ks["obs_cov"], ks["transition"], ks["state_cov"], ks["selection"] = (
            d["H"],
            d["R"],
            d["F"],
            d["Q"],
            np.eye(4),
        )
        ks.initialize_known(d["m0"], d["P0"])
        s = ks.smooth()
        return {"mean": s.smoothed_state.T, "cov": s.smoothed_state_cov.transpose(2, 0, 1), "loglik": s.llf_obs.sum()}

    return run


@kalman.peer("statsmodels_state", note="KalmanSmoother.smooth(SMOOTHER_STATE|STATE_COV) only, tolerance=0")
def _(d):
    from statsmodels.tsa.statespace.kalman_smoother import SMOOTHER_STATE, SMOOTHER_STATE_COV, KalmanSmoother

    Y = np.asfortranarray(d["Y"].T)

    def run():
        ks = KalmanSmoother(k_endog=2, k_states=4, k_posdef=4)
        ks.bind(Y)
        ks["design"], ks["obs_cov"], ks["transition"], ks["state_cov"], ks["selection"] = (
            d["H"],
            d["R"],
            d["F"],
            d["Q"],
            np.eye(4),
        )
        ks.initialize_known(d["m0"], d["P0"])
        ks.tolerance = 0
        s = ks.smooth(smoother_output=SMOOTHER_STATE | SMOOTHER_STATE_COV)
        return {"mean": s.smoothed_state.T, "cov": s.smoothed_state_cov.transpose(2, 0, 1), "loglik": s.llf_obs.sum()}

    return run


@kalman.peer("filterpy", note="KalmanFilter.batch_filter(update_first) + rts_smoother; no log-likelihood")
def _(d):
    from filterpy.kalman import KalmanFilter

    def run():
        f = KalmanFilter(4, 2)
        f.x, f.P, f.F, f.H, f.Q, f.R = d["m0"].copy(), d["P0"].copy(), d["F"], d["H"], d["Q"], d["R"]
        m, P, _, _ = f.batch_filter(d["Y"], update_first=True)
        m, P, _, _ = f.rts_smoother(m, P)
        return {"mean": m, "cov": P}

    return run


@kalman.peer("pykalman", note="KalmanFilter.smooth; no log-likelihood")
def _(d):
    from pykalman import KalmanFilter

    def run():
        m, P = KalmanFilter(
            d["F"], d["H"], d["Q"], d["R"], initial_state_mean=d["m0"], initial_state_covariance=d["P0"]
        ).smooth(d["Y"])
        return {"mean": m, "cov": P}

    return run


def _dyn_lgssm(d, bias=False):
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    def J(k):
        return jnp.asarray(d[k])

    m = LinearGaussianSSM(4, 2, has_dynamics_bias=bias, has_emissions_bias=bias)
    p, props = m.initialize(
        initial_mean=J("m0"),
        initial_covariance=J("P0"),
        dynamics_weights=J("F"),
        dynamics_covariance=J("Q"),
        emission_weights=J("H"),
        emission_covariance=J("R"),
    )
    return m, p, props


def _dynamax_kalman(par):
    def setup(d):
        import dynamax.linear_gaussian_ssm as lg
        import jax
        import jax.numpy as jnp

        _, p, _ = _dyn_lgssm(d, bias=True)
        Y = jnp.asarray(d["Y"])
        f = jax.jit(lg.parallel_lgssm_smoother if par else lg.lgssm_smoother)

        def run():
            o = jax.block_until_ready(f(p, Y))
            return {"mean": o.smoothed_means, "cov": o.smoothed_covariances, "loglik": o.marginal_loglik}

        return run

    return setup


kalman.peer("dynamax", note="lgssm_smoother, jit, x64")(_dynamax_kalman(False))
kalman.peer("dynamax_parallel", note="associative scan, jit, x64", compiles_long=True)(_dynamax_kalman(True))


@workload("kalman_em", "T=2,000, 4 states, 2 observations: 10 EM iterations over all parameters, same perturbed init")
def kalman_em(s):
    d = lgssm_data(scaled(2_000, s, 100), 19)
    r = np.random.default_rng(20)
    d["F"] = d["F"] + 0.02 * r.normal(size=(4, 4))
    d["H"] = d["H"] + 0.1 * r.normal(size=(2, 4))
    d["Q"], d["R"], d["iters"] = 0.1 * np.eye(4), np.eye(2), 10
    return d


@kalman_em.quality
def _(d, r):
    return {
        "loglik": ref_kalman(d["Y"], *(array(r[k]) for k in _KK), smooth=False)[0],
        "iters": d["iters"],
        "loglik_init": ref_kalman(d["Y"], *(d[k] for k in _KK), smooth=False)[0],
    }


@kalman_em.peer("pykalman", note="KalmanFilter.em(n_iter=10), em_vars = F,H,Q,R,m0,P0")
def _(d):
    from pykalman import KalmanFilter

    def run():
        k = KalmanFilter(
            d["F"],
            d["H"],
            d["Q"],
            d["R"],
            initial_state_mean=d["m0"],
            initial_state_covariance=d["P0"],
            em_vars=[
                "transition_matrices",
                "observation_matrices",
                "transition_covariance",
                "observation_covariance",
                "initial_state_mean",
                "initial_state_covariance",
            ],
        )
        k = k.em(d["Y"], n_iter=d["iters"])
        return {
            "F": k.transition_matrices,
            "H": k.observation_matrices,
            "Q": k.transition_covariance,
            "R": k.observation_covariance,
            "m0": k.initial_state_mean,
            "P0": k.initial_state_covariance,
        }

    return run


@kalman_em.peer("dynamax", note="LinearGaussianSSM.fit_em inside jit, x64, no biases")
def _(d):
    import jax
    import jax.numpy as jnp

    m, p, props = _dyn_lgssm(d)
    Y = jnp.asarray(d["Y"])
    f = jax.jit(lambda p, Y: m.fit_em(p, props, Y, num_iters=d["iters"], verbose=False))

    def run():
        q, _ = jax.block_until_ready(f(p, Y))
        return {
            "F": q.dynamics.weights,
            "H": q.emissions.weights,
            "Q": q.dynamics.cov,
            "R": q.emissions.cov,
            "m0": q.initial.mean,
            "P0": q.initial.cov,
        }

    return run


def tracker(d):
    lk = library()
    return lk.LinearGaussian(
        transition=d["F"],
        process_covariance=d["Q"],
        observation=d["H"],
        observation_covariance=d["R"],
        initial_mean=d["m0"],
        initial_covariance=d["P0"],
    )


@kalman.peer("likely", note="LinearGaussian.smooth: means, covariances and lag-one covariances")
def _(d):
    m, Y = tracker(d), d["Y"]
    m.smooth(Y[:50])

    def run():
        found = m.smooth(Y)
        return {"mean": found.mean, "cov": found.covariance, "loglik": found.log_prob}

    return run


@kalman_em.peer("likely", note="LinearGaussianDensity, all parameters")
def _(d):
    lk = library()

    def learned(Y):
        learner = lk.statespace.ConstrainedLinearGaussian.of(tracker(d))
        return lk.fit(learner, lk.Ragged.of(Y), stop=lk.StoppingRule(d["iters"], 0.0)).model.model

    learned(d["Y"][:50])

    def run():
        m = learned(d["Y"])
        return {
            "F": m.transition,
            "H": m.observation,
            "Q": m.process_covariance,
            "R": m.observation_covariance,
            "m0": m.initial_mean,
            "P0": m.initial_covariance,
        }

    return run


@workload("kalman_gaps", "T=20,000, 4 states, 2 observations, a fifth of the entries missing: filter + smoother")
def kalman_gaps(scale):
    d = lgssm_data(max(int(20_000 * scale), 200), 18)
    d["Y"][np.random.default_rng(5).random(d["Y"].shape) < 0.2] = np.nan
    return d


@kalman_gaps.quality
def _(d, r):
    return {"loglik": float(r["loglik"])}


@kalman_gaps.peer("likely", note="LinearGaussian.smooth")
def _(d):
    m, Y = tracker(d), d["Y"]
    m.smooth(Y[:50])

    def run():
        found = m.smooth(Y)
        return {"mean": found.mean, "cov": found.covariance, "loglik": found.log_prob}

    return run


@kalman_gaps.peer("statsmodels", note="KalmanSmoother.smooth(SMOOTHER_STATE | STATE_COV)")
def _(d):
    from statsmodels.tsa.statespace.kalman_smoother import SMOOTHER_STATE, SMOOTHER_STATE_COV, KalmanSmoother

    Y = np.asfortranarray(d["Y"].T)

    def run():
        ks = KalmanSmoother(k_endog=2, k_states=4, k_posdef=4)
        ks.bind(Y)
        ks["design"], ks["obs_cov"], ks["transition"], ks["state_cov"] = d["H"], d["R"], d["F"], d["Q"]
        ks["selection"] = np.eye(4)
        ks.initialize_known(d["m0"], d["P0"])
        s = ks.smooth(smoother_output=SMOOTHER_STATE | SMOOTHER_STATE_COV)
        return {"mean": s.smoothed_state.T, "loglik": s.llf_obs.sum()}

    return run


@workload("latency_kalman", "1,000 live steps of a filter, 4 states, 2 observations, from Python")
def latency_kalman(scale):
    return lgssm_data(1000, 18)


@latency_kalman.quality
def _(d, r):
    return {"mean0": float(r["mean"][0])}


@latency_kalman.peer("likely", note="lk.step")
def _(d):
    lk, m = library(), tracker(d)
    lk.step(m, lk.step(m, None, d["Y"][0])[0], d["Y"][1])

    def run():
        belief = None
        for y in d["Y"]:
            belief, _ = lk.step(m, belief, y)
        return {"mean": belief.mean}

    return run


@latency_kalman.peer("filterpy", note="KalmanFilter.predict, update")
def _(d):
    from filterpy.kalman import KalmanFilter

    def run():
        f = KalmanFilter(4, 2)
        f.x, f.P, f.F, f.H, f.Q, f.R = d["m0"].copy(), d["P0"].copy(), d["F"], d["H"], d["Q"], d["R"]
        for i, y in enumerate(d["Y"]):
            if i:
                f.predict()
            f.update(y)
        return {"mean": f.x}

    return run


BEACONS = np.array([[0.0, 0.0], [40.0, 0.0], [40.0, 60.0], [0.0, 60.0]])
RANGE, TURN, SLIP, WALK = 0.25, 1e-5, 2.5e-3, 6e-10  # variances


def move(x, u):
    """A robot that turned and drove: pose (x, y, heading), and the scale error of each beacon's ranges."""
    moved, heading = x.copy(), x[2] + u[1]
    moved[0] += u[0] * np.cos(heading)
    moved[1] += u[0] * np.sin(heading)
    moved[2] = heading
    return moved


def move_slope(x, u):
    """Its Jacobian (7, 7)."""
    J, heading = np.eye(7), x[2] + u[1]
    J[0, 2], J[1, 2] = -u[0] * np.sin(heading), u[0] * np.cos(heading)
    return J


def move_variance(u):
    """Variances (7,) of what odometry does not know."""
    along = SLIP * abs(u[0]) + 1e-10
    return np.array([along, along, TURN, WALK, WALK, WALK, WALK])


def ranges_slope(x):
    """The Jacobian (4, 7) of the ranges (1 + s) |x − beacon|."""
    J, away = np.zeros((4, 7)), x[:2] - BEACONS
    d = np.hypot(away[:, 0], away[:, 1])
    J[:, :2] = away * ((1 + x[3:]) / d)[:, None]
    J[range(4), range(3, 7)] = d
    return J


def distances(x):
    """The ranges to be expected (4,)."""
    return np.hypot(x[0] - BEACONS[:, 0], x[1] - BEACONS[:, 1]) * (1 + x[3:])


@workload(
    "ekf",
    "extended Kalman filter, 4,000 frames, 7 states, one of four ranges in a third of the frames",
    bounds={"max_err": 1e-6},
)
def ekf(scale):
    T, rng = max(int(4000 * scale), 100), np.random.default_rng(9)
    u = np.column_stack([np.full(T, 0.1), 0.02 * np.sin(np.arange(T) / 50.0)])
    x = np.array([20.0, 30.0, 0.0, 0.05, 0.02, -0.03, 0.04])
    m0, v0 = np.array([20.0, 30.0, 0, 0, 0, 0, 0]), np.array([0.01] * 3 + [0.01] * 4)
    truth, y = np.empty((T, 7)), np.full((T, 4), np.nan)
    for t in range(T):
        x = truth[t] = move(x, u[t]) + np.sqrt(move_variance(u[t])) * rng.standard_normal(7) if t else x
        if rng.random() < 1 / 3:
            k = rng.integers(4)
            y[t, k] = distances(x)[k] + np.sqrt(RANGE) * rng.standard_normal()
    return {"u": u, "y": y, "m0": m0, "v0": v0, "truth": truth, "reference": dense_ekf(m0, np.diag(v0), y, u)}


def dense_ekf(x, P, y, u):
    """The filtered means by matrices written out."""
    out = np.empty((len(y), 7))
    for t in range(len(y)):
        if t:
            F = move_slope(x, u[t])
            x, P = move(x, u[t]), F @ P @ F.T + np.diag(move_variance(u[t]))
        at = np.flatnonzero(~np.isnan(y[t]))
        if len(at):
            H = ranges_slope(x)[at]
            K = np.linalg.solve(H @ P @ H.T + RANGE * np.eye(len(at)), H @ P).T
            x, P = x + K @ (y[t] - distances(x))[at], P - K @ H @ P
        out[t] = x
    return out


@ekf.quality
def _(d, r):
    away = np.hypot(*(r["mean"] - d["truth"])[:, :2].T)
    return {"max_err": float(np.abs(r["mean"] - d["reference"]).max()), "rmse": float(np.sqrt((away**2).mean()))}


def robot(lk, d):
    """The model as distributions of a stack of states."""

    def transition(x, t, u):
        moved, heading = x.copy(), x[:, 2] + u[1]
        moved[:, 0] += u[0] * np.cos(heading)
        moved[:, 1] += u[0] * np.sin(heading)
        moved[:, 2] = heading
        return lk.Gaussian(moved, move_variance(u))

    def observation(x):
        r = np.hypot(x[:, :1] - BEACONS[:, 0], x[:, 1:2] - BEACONS[:, 1]) * (1 + x[:, 3:])
        return lk.Gaussian(r, RANGE)

    return lk.StateSpace(lk.Gaussian(d["m0"], d["v0"]), transition, observation)


def extended(d, **slopes):
    """The whole filter, first on a few frames."""
    lk = library()
    f = lk.ExtendedKalmanFilter(robot(lk, d), **slopes)
    f.filter(d["y"][:20], d["u"][:20])

    def run():
        found = f.filter(d["y"], d["u"])
        return {"mean": found.mean, "cov": found.covariance}

    return run


@ekf.peer("likely", note="ExtendedKalmanFilter.filter, slopes given")
def _(d):
    return extended(
        d, transition_jacobian=lambda x, t, u: move_slope(x[0], u), observation_jacobian=lambda x: ranges_slope(x[0])
    )


@ekf.peer("likely_differences", note="the same, slopes by central differences")
def _(d):
    return extended(d)


@ekf.peer("filterpy", note="ExtendedKalmanFilter.predict, update; no log p")
def _(d):
    try:
        from filterpy.kalman import ExtendedKalmanFilter
    except ImportError:
        raise Infeasible("filterpy is not installed") from None

    class Filter(ExtendedKalmanFilter):
        def predict_x(self, u=0):
            self.x = move(self.x, u)

    def run():
        f, y, u = Filter(7, 4), d["y"], d["u"]
        f.x, f.P = d["m0"].copy(), np.diag(d["v0"])
        mean, cov = np.empty((len(y), 7)), np.empty((len(y), 7, 7))
        for t in range(len(y)):
            if t:
                f.F, f.Q = move_slope(f.x, u[t]), np.diag(move_variance(u[t]))
                f.predict(u[t])
            at = np.flatnonzero(~np.isnan(y[t]))
            if len(at):
                R = RANGE * np.eye(len(at))
                f.update(y[t, at], lambda x, at: ranges_slope(x)[at], lambda x, at: distances(x)[at], R, at, at)
            mean[t], cov[t] = f.x, f.P
        return {"mean": mean, "cov": cov}

    return run


@workload(
    "particle",
    "stochastic volatility, T=200, N=10,000 particles, bootstrap filter, systematic resampling at ESS < N/2",
    repeats=9,
)
def particle(s):
    r = np.random.default_rng(21)
    T, mu, rho, sig = 200, -1.0, 0.95, 0.25
    x, y = mu + sig / math.sqrt(1 - rho**2) * r.normal(), np.empty(T)
    for t in range(T):
        if t:
            x = mu + rho * (x - mu) + sig * r.normal()
        y[t] = math.exp(x / 2) * r.normal()
    return {"y": y, "N": scaled(10_000, s, 100), "mu": mu, "rho": rho, "sigma": sig}


@particle.quality
def _(d, r):
    """result: logliks = estimates of all calls so far (each call its own seed), mean = filtering means of the last"""
    mu, rho, sig = d["mu"], d["rho"], d["sigma"]
    sd = sig / math.sqrt(1 - rho**2)
    g = np.linspace(mu - 7 * sd, mu + 7 * sd, 1500)
    h = g[1] - g[0]
    K = np.exp(-0.5 * ((g[None] - mu - rho * (g[:, None] - mu)) / sig) ** 2) / (sig * math.sqrt(2 * math.pi)) * h
    p = np.exp(-0.5 * ((g - mu) / sd) ** 2)
    p /= p.sum()
    ll, mean = 0.0, []
    for t, y in enumerate(d["y"]):
        if t:
            p = p @ K
        p = p * np.exp(-0.5 * (g + y * y * np.exp(-g)) - 0.5 * math.log(2 * math.pi))
        ll += math.log(p.sum())
        p /= p.sum()
        mean.append(p @ g)
    L = np.array(r["logliks"])
    o = {
        "loglik_mean_err": float(L.mean() - ll),
        "loglik_sd": float(L.std(ddof=1)) if len(L) > 1 else None,
        "runs": len(L),
    }
    if r.get("mean") is not None:
        o["filtmean_rmse"] = float(np.sqrt(((array(r["mean"]) - np.array(mean)) ** 2).mean()))
    return o


@particle.peer("particles", note="particles 0.4 SMC(Bootstrap(StochVol)), Moments collected")
def _(d):
    import particles
    from particles import state_space_models as ssm
    from particles.collectors import Moments

    L = []

    def run():
        np.random.seed(len(L))  # noqa: NPY002  # what particles draws from
        fk = ssm.Bootstrap(ssm=ssm.StochVol(mu=d["mu"], rho=d["rho"], sigma=d["sigma"]), data=d["y"])
        a = particles.SMC(fk=fk, N=d["N"], resampling="systematic", ESSrmin=0.5, collect=[Moments()])
        a.run()
        L.append(float(a.logLt))
        return {"logliks": L, "mean": np.array([m["mean"] for m in a.summaries.moments]).ravel()}

    return run


@particle.peer("likely", note="ParticleFilter, distributions written as Gaussian; moments kept")
def _(d):
    lk, found, (mu, rho, s) = library(), [], (d["mu"], d["rho"], d["sigma"])
    sv = lk.StateSpace(
        lk.Gaussian([mu], s**2 / (1 - rho**2)),
        lambda x: lk.Gaussian(mu + rho * (x - mu), s**2),
        lambda x: lk.Gaussian(np.zeros_like(x), np.exp(x), kind="diagonal"),
    )
    lk.ParticleFilter(sv, 100, ess_threshold=1.0).run(d["y"][:9])  # compiles the resampling loop

    def run():
        r = lk.ParticleFilter(sv, d["N"], random_state=len(found)).run(d["y"], keep=False)
        found.append(r.log_evidence)
        return {"logliks": found, "mean": r.mean.ravel()}

    return run

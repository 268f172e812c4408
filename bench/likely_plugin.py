"""likely beside its peers: what `../shared/bench/peers.py --plugin bench/likely_plugin.py` adds.

A workload is a generator (deterministic), a quality that is common to all, and one function a peer:
the function prepares, and what it returns is timed.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

# The driver points Numba at its own folder, which is not ours to write; this file is read before Numba is.
os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).resolve().parent / ".numba_cache")

import numpy as np
import scipy.linalg
from peers import Infeasible, peer, torch_, workload

MEMBERS, COLUMNS = 64, 16
LOG_2PI = np.log(2 * np.pi)


def library():
    """likely with what a first call would import, so that set-up pays for it."""
    import likely as lk

    lk.Gaussian(np.zeros(2), np.eye(2)).log_prob(np.zeros((1, 2)))
    return lk


# ---------------------------------------------------------------- gaussian_ml


@peer("gaussian_ml", "likely", note="Gaussian.fit")
def _(d):
    lk = library()

    def run():
        model = lk.Gaussian.fit(d["X"])
        return {"mean": model.mean, "cov": model.covariance}

    return run


# ---------------------------------------------------------------- classifiers


def classifier(covariance):
    """Densities by maximum likelihood, as the peers have them."""
    lk = library()
    return lk.BayesClassifier(lk.GaussianDensity(covariance, prior=None))


def in_set_up(model, d):
    """A first look at a few rows, and the loop that a larger job would load, so that imports are not timed."""
    import likely.distributions.gaussian._loops.quadratic_features  # noqa: F401

    model.fit(d["X"][:500], d["y"][:500]).predict_proba(d["X"][:500])


def classified(covariance):
    """Fit on all rows, then the posteriors of all rows."""

    def setup(d):
        in_set_up(classifier(covariance), d)
        return lambda: {"proba": classifier(covariance).fit(d["X"], d["y"]).predict_proba(d["X"])}

    return setup


peer("qda", "likely", note="BayesClassifier(GaussianDensity('full', prior=None))")(classified("full"))
peer("lda", "likely", note="BayesClassifier(GaussianDensity('pooled', prior=None))")(classified("pooled"))


@peer("gaussian_nb", "likely", note="BayesClassifier(GaussianDensity('diagonal', prior=None))")
def _(d):
    in_set_up(classifier("diagonal"), d)
    return lambda: {"pred": classifier("diagonal").fit(d["X"], d["y"]).predict(d["X"])}


@peer("latency_qda", "likely", note="BayesClassifier.predict_proba")
def _(d):
    model, x = classifier("full").fit(d["X"], d["y"]), d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = model.predict_proba(x)
        return {"p": p}

    return run


@peer("latency_qda", "likely_value", note="Mixture.log_posterior, the value inside")
def _(d):
    model, x = classifier("full").fit(d["X"], d["y"]).model_, d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = model.log_posterior(x)
        return {"p": np.exp(p)}

    return run


# ------------------------------------------------------------- gaussian_stack


def stack(n):
    """64 full Gaussians with variances of 0.05 to 2 along axes of their own, and rows drawn from them."""
    rng = np.random.default_rng(101)
    mean = 1.5 * rng.standard_normal((MEMBERS, COLUMNS))
    axes = np.linalg.qr(rng.standard_normal((MEMBERS, COLUMNS, COLUMNS)))[0]
    factor = axes * np.sqrt(np.geomspace(0.05, 2.0, COLUMNS))
    labels = rng.integers(0, MEMBERS, n)
    noise = rng.standard_normal((n, COLUMNS))
    X = np.empty((n, COLUMNS))
    for k in range(MEMBERS):
        X[labels == k] = noise[labels == k] @ factor[k].T + mean[k]
    return {"X": X, "mean": mean, "cov": factor @ np.swapaxes(factor, 1, 2)}


def punched(X):
    """A tenth of the rows lose each entry with probability 0.1."""
    rng = np.random.default_rng(102)
    holes = (rng.random(len(X)) < 0.1)[:, None] & (rng.random(X.shape) < 0.1)
    return np.where(holes, np.nan, X)


def exact(x, mean, cov):
    """log N of one row under every member, from the marginal of what was seen: slow and plain."""
    at = np.flatnonzero(~np.isnan(x))
    root = np.linalg.cholesky(cov[:, at[:, None], at])
    z = np.stack(
        [scipy.linalg.solve_triangular(r, x[at] - m, lower=True) for r, m in zip(root, mean[:, at], strict=True)]
    )
    logdet = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * ((z * z).sum(axis=1) + logdet + len(at) * LOG_2PI)


def sampled_rows(X):
    """Some rows from everywhere, and some with gaps where there are any."""
    some = np.linspace(0, len(X) - 1, min(300, len(X))).astype(int)
    return np.union1d(some, np.flatnonzero(np.isnan(X).any(axis=1))[:300])


def stack_quality(d, result):
    """Largest error against the plain formula on a sample of rows, and the sum of everything."""
    X, out = result.get("rows", d["X"]), np.asarray(result["log_prob"])
    error = max(float(abs(out[i] - exact(X[i], d["mean"], d["cov"])).max()) for i in sampled_rows(X))
    return {"max_err": error, "sum": float(out.sum())}


@workload("gaussian_stack", "64 full Gaussians, 200,000 x 16: log_prob of every row under every member", k=5)
def gaussian_stack(scale):
    return stack(max(1000, int(200_000 * scale)))


gaussian_stack.quality(stack_quality)


@gaussian_stack.peer("scipy", note="frozen multivariate_normal, one per member")
def _(d):
    from scipy.stats import multivariate_normal

    distributions = [multivariate_normal(m, c) for m, c in zip(d["mean"], d["cov"], strict=True)]
    return lambda: {"log_prob": np.stack([distribution.logpdf(d["X"]) for distribution in distributions], axis=1)}


@gaussian_stack.peer("sklearn", note="GaussianMixture._estimate_log_prob, parameters set by hand")
def _(d):
    from sklearn.mixture import GaussianMixture

    eye = np.eye(COLUMNS)
    roots = [scipy.linalg.solve_triangular(np.linalg.cholesky(c), eye, lower=True).T for c in d["cov"]]
    model = GaussianMixture(MEMBERS, covariance_type="full")
    model.weights_, model.means_ = np.full(MEMBERS, 1 / MEMBERS), d["mean"]
    model.covariances_, model.precisions_cholesky_ = d["cov"], np.array(roots)
    return lambda: {"log_prob": model._estimate_log_prob(d["X"])}


@gaussian_stack.peer("numpy_chol", note="plain triangular solve, one per member")
def _(d):
    roots = np.linalg.cholesky(d["cov"])
    constant = -0.5 * COLUMNS * LOG_2PI - np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)

    def run():
        out = np.empty((len(d["X"]), MEMBERS))
        for k in range(MEMBERS):
            z = scipy.linalg.solve_triangular(roots[k], (d["X"] - d["mean"][k]).T, lower=True, check_finite=False)
            out[:, k] = constant[k] - 0.5 * np.einsum("dn,dn->n", z, z)
        return {"log_prob": out}

    return run


@gaussian_stack.peer("torch", note="distributions.MultivariateNormal, one per member")
def _(d):
    torch = torch_()
    X = torch.from_numpy(d["X"])
    parts = zip(torch.from_numpy(d["mean"]), torch.from_numpy(d["cov"]), strict=True)
    distributions = [torch.distributions.MultivariateNormal(m, c, validate_args=False) for m, c in parts]
    return lambda: {"log_prob": torch.stack([distribution.log_prob(X) for distribution in distributions], dim=1)}


@gaussian_stack.peer("pomegranate", note="Normal.log_probability, one per member, float64")
def _(d):
    torch = torch_()
    torch.set_default_dtype(torch.float64)
    from pomegranate.distributions import Normal

    X = torch.from_numpy(d["X"])
    distributions = [Normal(m, c) for m, c in zip(torch.from_numpy(d["mean"]), torch.from_numpy(d["cov"]), strict=True)]
    return lambda: {"log_prob": torch.stack([distribution.log_probability(X) for distribution in distributions], dim=1)}


@gaussian_stack.peer("likely", note="Gaussian.log_prob")
def _(d):
    model = library().Gaussian(d["mean"], d["cov"])
    model.log_prob(d["X"][:1])  # the others' factors are made in set-up too
    return lambda: {"log_prob": model.log_prob(d["X"])}


# -------------------------------------------------------------- gaussian_gaps


@workload("gaussian_gaps", "the same with a tenth of the rows missing 10 % of their entries", k=5)
def gaussian_gaps(scale):
    d = gaussian_stack.gen(scale)
    return {**d, "whole": d["X"], "X": punched(d["X"])}


gaussian_gaps.quality(stack_quality)


@gaussian_gaps.peer("likely", note="Gaussian.log_prob, gaps integrated out")
def _(d):
    model = library().Gaussian(d["mean"], d["cov"])
    model.log_prob(d["X"][:2000])  # compiles the loops; `first` would otherwise be that
    return lambda: {"log_prob": model.log_prob(d["X"])}


@gaussian_gaps.peer("likely_complete", note="the same rows before the gaps")
def _(d):
    model = library().Gaussian(d["mean"], d["cov"])
    model.log_prob(d["whole"][:1])
    return lambda: {"log_prob": model.log_prob(d["whole"]), "rows": d["whole"]}


@gaussian_gaps.peer("sklearn")
def _(d):
    raise Infeasible("GaussianMixture refuses NaN")


@gaussian_gaps.peer("scipy")
def _(d):
    raise Infeasible("multivariate_normal gives NaN for a row with NaN")


# ------------------------------------------------------------------- mixtures


def gaussian_mixture(kind):
    """EM from the peers' start, by maximum likelihood, for as many iterations as theirs."""

    def setup(d):
        import likely.distributions.gaussian._loops.quadratic_features
        import likely.mixture._loops  # noqa: F401

        lk = library()
        start = lk.Mixture(d["w0"], lk.Gaussian(d["m0"], d["c0"], kind=kind))

        def fitted(X, n_iter):
            component = lk.GaussianDensity(kind, prior=None)
            model = lk.MixtureDensity(component, d["K"], prior=None, init=start, max_iter=n_iter, tol=0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # equal iterations: nobody has converged
                return model.fit(X)

        fitted(d["X"][:2000], 2)

        def run():
            m = fitted(d["X"], d["iters"])
            parts = m.model_.components
            return {"weights": m.weights_, "means": parts.mean, "covs": parts.covariance, "iters": m.report_.iterations}

        return run

    return setup


peer("gmm_full", "likely", note="MixtureDensity(GaussianDensity('full'), prior=None)")(gaussian_mixture("full"))
peer("gmm_diag", "likely", note="MixtureDensity(GaussianDensity('diagonal'), prior=None)")(gaussian_mixture("diagonal"))


@peer("multinomial_mixture", "likely", note="MixtureDensity(MultinomialDensity(prior=0.01)), sparse rows stay sparse")
def _(d):
    lk = library()
    start = lk.Mixture(d["w0"], lk.Multinomial(d["B0"]))

    def run(X=d["X"], n_iter=d["iters"]):
        component = lk.MultinomialDensity(prior=d["a"])
        model = lk.MixtureDensity(component, d["K"], prior=None, init=start, max_iter=n_iter, tol=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # equal iterations: nobody has converged
            m = model.fit(X)
        return {"weights": m.weights_, "B": m.model_.components.probs, "iters": m.report_.iterations}

    run(d["X"][:500], 2)
    return run


# ------------------------------------------------------------------- clusters


@peer("kmeans", "likely", note="KMeans: exact labels, bounds that skip distances")
def _(d):
    lk = library()
    warnings.filterwarnings("ignore", message="KMeans: not converged")  # equal iterations
    lk.KMeans(d["K"], init=d["c0"], max_iter=2, tol=0).fit(d["X"][:5000])

    def run():
        m = lk.KMeans(d["K"], init=d["c0"], max_iter=d["iters"], tol=0).fit(d["X"])
        return {"centers": m.cluster_centers_, "iters": m.n_iter_}

    return run


def tree(link):
    def setup(d):
        from likely.cluster import linkage

        linkage(d["X"][:200], link)
        return lambda: {"Z": linkage(d["X"], link).linkage}

    return setup


peer("hier_ward", "likely", note="linkage(X, 'ward')")(tree("ward"))
peer("hier_average", "likely", note="linkage(X, 'average')")(tree("average"))


# -------------------------------------------------------------------- factors


@peer("pca", "likely", note="PCA(10), from the centered scatter")
def _(d):
    lk = library()
    lk.PCA(2).fit(d["X"][:1000])
    return lambda: {"components": lk.PCA(d["q"]).fit(d["X"]).components_}


# ------------------------------------------------------------------ sequences


@peer("hmm_gauss", "likely", note="HMMDensity(GaussianDensity('diagonal'), prior=None)")
def _(d):
    lk = library()
    start = lk.HMM(d["pi0"], d["A0"], lk.Gaussian(d["m0"], d["v0"], "diagonal"))

    def run(X=d["X"], n_iter=d["iters"]):
        h = learned(lk, lk.GaussianDensity("diagonal"), start, X, n_iter)
        g = h.emission
        return {"pi": h.initial, "A": h.transition, "means": g.mean, "vars": g.covariance}

    run(d["X"][:4], 2)
    return run


@peer("hmm_gmm", "likely", note="HMMDensity(MixtureDensity(GaussianDensity('diagonal'), 4), prior=None)")
def _(d):
    lk = library()
    K, M, D = d["m0"].shape
    parts = lk.Gaussian(d["m0"].reshape(K * M, D), d["v0"].reshape(K * M, D), "diagonal")
    start = lk.HMM(d["pi0"], d["A0"], lk.Mixture(d["w0"], parts))

    def run(X=d["X"], n_iter=d["iters"]):
        h = learned(lk, lk.MixtureDensity(lk.GaussianDensity("diagonal"), M), start, X, n_iter)
        g = h.emission.components
        v = g.covariance.reshape(K, M, D)
        return {
            "pi": h.initial,
            "A": h.transition,
            "weights": h.emission.weights,
            "means": g.mean.reshape(K, M, D),
            "vars": v,
        }

    run(d["X"][:4], 2)
    return run


def learned(lk, component, start, X, n_iter):
    """A fixed number of Baum–Welch iterations from a given start, by maximum likelihood."""
    model = lk.HMMDensity(component, start.states, prior=None, init=start, max_iter=n_iter, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal iterations: nobody has converged
        return model.fit(lk.Ragged.of(X)).model_


@peer("hmm_long", "likely", note="HMM.smooth and HMM.viterbi")
def _(d):
    lk = library()
    h = lk.HMM(d["pi"], d["A"], lk.Categorical(d["B"]))
    x = d["x"]
    h.smooth(x[:50]), h.viterbi(x[:50])

    def run():
        found = h.smooth(x)
        return {"loglik": found.log_prob, "gamma": found.states, "path": h.viterbi(x).states}

    return run


@peer("latency_hmm", "likely", note="Mixture of a stack of HMMs: posterior of one sequence")
def _(d):
    lk = library()
    C, K, D = d["mu"].shape
    g = lk.Gaussian(d["mu"].reshape(C * K, D), d["v"].reshape(C * K, D), "diagonal")
    m = lk.Mixture(np.full(C, 1 / C), lk.HMM(np.tile(d["pi"], (C, 1)), d["A"], g))
    x = lk.Ragged.of(d["x"])
    m.posterior(x)

    def run():
        for _ in range(100):
            p = m.posterior(x)
        return {"p": p[0]}

    return run


def warped(d):
    lk = library()
    lk.alignment.dtw_matrix(d["S"][:30], metric="sqeuclidean", band=d["radius"])
    return lambda: {"D": lk.alignment.dtw_matrix(d["S"], metric="sqeuclidean", band=d["radius"])}


peer("dtw_full", "likely", note="dtw_matrix(S, metric='sqeuclidean')")(warped)
peer("dtw_band", "likely", note="dtw_matrix(S, metric='sqeuclidean', band=50)")(warped)


# --------------------------------------------------------------------- kalman


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


@peer("kalman", "likely", note="LinearGaussian.smooth: means, covariances and lag-one covariances")
def _(d):
    m, Y = tracker(d), d["Y"]
    m.smooth(Y[:50])

    def run():
        found = m.smooth(Y)
        return {"mean": found.mean, "cov": found.covariance, "loglik": found.log_prob}

    return run


@peer("kalman_em", "likely", note="LinearGaussianDensity, all parameters")
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
    from peers import lgssm_data

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
    from peers import lgssm_data

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


# ------------------------------------------------------------- extended filter

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


@workload("ekf", "extended Kalman filter, 4,000 frames, 7 states, one of four ranges in a third of the frames")
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


# ------------------------------------------------------------------- particles


@peer("particle", "likely", note="ParticleFilter, distributions written as Gaussian; moments kept")
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


# -------------------------------------------------------------- kernel density


@peer("kde", "likely", note="KDE(tolerance=1e-4).log_prob")
def _(d):
    lk = library()
    lk.KDE(d["X"][:200], d["h"], tolerance=1e-4).log_prob(d["Q"][:20])  # compiles the loop
    return lambda: {"logdens": lk.KDE(d["X"], d["h"], tolerance=1e-4).log_prob(d["Q"])}


# ------------------------------------------------------------------ neighbors


@peer("knn", "likely", note="NeighborSearch: build and search")
def _(d):
    search = library().NeighborSearch
    search.of(d["X"][:500]).nearest(d["Q"][:200], d["k"])  # loads the loops

    def run():
        away, rows = search.of(d["X"]).nearest(d["Q"], d["k"])
        return {"dist": away, "idx": rows}

    return run

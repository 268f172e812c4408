"""Mixtures of Gaussians and of multinomials by expectation maximization."""

from __future__ import annotations

import math
import warnings

import numpy as np

from speed.common import array, chunks, library, logsumexp, scaled, torch_of
from speed.registry import Infeasible, workload


def mixture_log_likelihood(X, w, mu, cov):
    """mean log-likelihood under a mixture; cov (K,D,D) or (K,D)"""
    K, D = mu.shape
    tot = 0.0
    for s in chunks(len(X), 50_000):
        x = X[s]
        L = np.empty((len(x), K))
        for k in range(K):
            if cov.ndim == 3:
                c = np.linalg.cholesky(cov[k])
                z = np.linalg.solve(c, (x - mu[k]).T)
                L[:, k] = -0.5 * (z * z).sum(0) - np.log(np.diag(c)).sum()
            else:
                L[:, k] = -0.5 * ((x - mu[k]) ** 2 / cov[k]).sum(1) - 0.5 * np.log(cov[k]).sum()
        L += np.log(w) - 0.5 * D * math.log(2 * math.pi)
        tot += logsumexp(L, 1).sum()
    return tot / len(X)


def mixture_quality(d, r):
    w, mu, cov = array(r["weights"]), array(r["means"]), array(r["covs"])
    return {"loglik": mixture_log_likelihood(d["X"], w / w.sum(), mu, cov), "iters": r.get("iters", d["iters"])}


def gmm_data(n, D, K, iters, seed, full):
    r = np.random.default_rng(seed)
    mu = r.normal(size=(K, D)) * 1.5
    z = r.integers(0, K, n)
    X = r.standard_normal((n, D))
    for k in range(K):
        i = np.flatnonzero(z == k)
        X[i] = (X[i] @ (np.eye(D) + 0.3 * r.normal(size=(D, D))).T if full else X[i] * r.uniform(0.5, 1.5, D)) + mu[k]
    m0 = X[r.choice(n, K, replace=False)].copy()
    v = X.var(0)
    c0 = np.stack([np.diag(v)] * K) if full else np.stack([v] * K)
    return {"X": X, "K": K, "iters": iters, "w0": np.full(K, 1 / K), "m0": m0, "c0": c0}


@workload("gmm_full", "200,000 x 16, 16 full covariances, same init, 20 EM iterations")
def gmm_full(s):
    return gmm_data(scaled(200_000, s, 2000), 16, 16, 20, 6, True)


@workload("gmm_diag", "500,000 x 32, 32 diagonal covariances, same init, 10 EM iterations")
def gmm_diag(s):
    return gmm_data(scaled(500_000, s, 2000), 32, 32, 10, 7, False)


def _sk_gmm(kind):
    def setup(d):
        from sklearn.mixture import GaussianMixture

        P = np.linalg.inv(d["c0"]) if kind == "full" else 1 / d["c0"]

        def run():
            m = GaussianMixture(
                d["K"],
                covariance_type=kind,
                max_iter=d["iters"],
                tol=0.0,
                weights_init=d["w0"],
                means_init=d["m0"],
                precisions_init=P,
            ).fit(d["X"])
            return {"weights": m.weights_, "means": m.means_, "covs": m.covariances_, "iters": m.n_iter_}

        return run

    return setup


def _pom_gmm(kind, dt):
    def setup(d):
        torch = torch_of(dt)
        from pomegranate.distributions import Normal
        from pomegranate.gmm import GeneralMixtureModel

        def T(a):
            return torch.tensor(a, dtype=getattr(torch, dt))

        X = torch.from_numpy(d["X"]).to(getattr(torch, dt))

        def run():
            m = GeneralMixtureModel(
                [Normal(T(a), T(c), covariance_type=kind) for a, c in zip(d["m0"], d["c0"], strict=False)],
                priors=T(d["w0"]),
                max_iter=d["iters"],
                tol=-1e300,
            )
            m.fit(X)
            return {
                "weights": m.priors,
                "means": torch.stack([x.means for x in m.distributions]),
                "covs": torch.stack([x.covs for x in m.distributions]),
            }

        return run

    return setup


for _w, _k in ((gmm_full, "full"), (gmm_diag, "diag")):
    _w.quality(mixture_quality)
    _w.peer("sklearn")(_sk_gmm(_k))
    _w.peer("pomegranate", note="float64")(_pom_gmm(_k, "float64"))
    _w.peer("pomegranate_f32", note="float32 (its default)")(_pom_gmm(_k, "float32"))


@workload(
    "multinomial_mixture", "20,000 docs x 2,000 words sparse (~80 tokens), 20 components, same init, 20 EM iterations"
)
def multinomial_mixture(s):
    import scipy.sparse as sp

    r = np.random.default_rng(24)
    n, V, K = scaled(20_000, s, 200), 2000, 20
    B = r.dirichlet(np.full(V, 0.05), K)
    z, L = r.integers(0, K, n), r.poisson(80, n) + 1
    cB = B.cumsum(1)
    rows = np.repeat(np.arange(n), L)
    u = r.random(len(rows))
    cols = np.empty(len(rows), np.int64)
    for k in range(K):
        i = z[rows] == k
        cols[i] = np.minimum(np.searchsorted(cB[k], u[i]), V - 1)
    noise = r.random(len(cols)) < 0.5  # half the tokens are background: clusters overlap
    cols[noise] = np.minimum((V * r.random(noise.sum()) ** 2).astype(int), V - 1)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, cols)), shape=(n, V))
    X.sum_duplicates()
    B0 = r.dirichlet(np.full(V, 1.0), K) * 0.2 + 0.8 * np.asarray(X.sum(0)).ravel() / X.sum()
    B0 = (B0 + 1e-6) / (B0 + 1e-6).sum(1, keepdims=True)
    return {"X": X, "K": K, "iters": 20, "w0": np.full(K, 1 / K), "B0": B0, "a": 0.01}


@multinomial_mixture.quality
def _(d, r):
    L = d["X"] @ np.log(array(r["B"])).T + np.log(array(r["weights"]))
    return {"loglik_per_token": float(logsumexp(L, 1).sum() / d["X"].sum()), "iters": d["iters"]}


@multinomial_mixture.peer(
    "scipy_ref", note="no peer has it: 10 lines of scipy.sparse + numpy, M-step smoothed by a=0.01"
)
def _(d):
    X, XT = d["X"], d["X"].T.tocsr()

    def run():
        w, B = d["w0"], d["B0"]
        for _ in range(d["iters"]):
            L = X @ np.log(B).T + np.log(w)
            L -= L.max(1, keepdims=True)
            np.exp(L, out=L)
            L /= L.sum(1, keepdims=True)
            w = L.mean(0)
            B = (XT @ L).T + d["a"]
            B /= B.sum(1, keepdims=True)
        return {"weights": w, "B": B}

    return run


@multinomial_mixture.peer("pomegranate")
def _(d):
    raise Infeasible(
        "no multinomial distribution of counts: Categorical is one symbol per column, Poisson is another model"
    )


@multinomial_mixture.peer("sklearn")
def _(d):
    raise Infeasible(
        "sklearn has MultinomialNB (supervised) and LatentDirichletAllocation (another model), no multinomial mixture"
    )


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


gmm_full.peer("likely", note="MixtureDensity(GaussianDensity('full'), prior=None)")(gaussian_mixture("full"))
gmm_diag.peer("likely", note="MixtureDensity(GaussianDensity('diagonal'), prior=None)")(gaussian_mixture("diagonal"))


@multinomial_mixture.peer("likely", note="MixtureDensity(MultinomialDensity(prior=0.01)), sparse rows stay sparse")
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


@workload(
    "latency_gmm", "predict_proba of one row, GMM 16 columns, 16 full components (time of 1000 calls)", calls=1000
)
def latency_gmm(s):
    return gmm_data(10_000, 16, 16, 5, 28, True)


latency_gmm.quality(lambda d, r: {"max_p": float(array(r["p"]).max())})


@latency_gmm.peer("sklearn")
def _(d):
    from sklearn.mixture import GaussianMixture

    m = GaussianMixture(
        16, max_iter=5, tol=0.0, weights_init=d["w0"], means_init=d["m0"], precisions_init=np.linalg.inv(d["c0"])
    ).fit(d["X"])
    x = d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = m.predict_proba(x)
        return {"p": p}

    return run


@latency_gmm.peer("pomegranate", note="numpy row in")
def _(d):
    torch = torch_of()
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel

    def T(a):
        return torch.tensor(a, dtype=torch.float64)

    m = GeneralMixtureModel(
        [Normal(T(a), T(c)) for a, c in zip(d["m0"], d["c0"], strict=False)], priors=T(d["w0"]), max_iter=5, tol=-1e300
    )
    m.fit(torch.from_numpy(d["X"]))
    x = d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = m.predict_proba(x)
        return {"p": p}

    return run


@latency_gmm.peer("likely", note="Mixture.posterior")
def _(d):
    lk = library()
    start = lk.Mixture(d["w0"], lk.Gaussian(d["m0"], d["c0"], kind="full"))
    model = lk.fit(start, d["X"], stop=lk.StoppingRule(5, 0.0)).model
    x = d["X"][:1].copy()
    model.posterior(x)

    def run():
        for _ in range(1000):
            p = model.posterior(x)
        return {"p": p}

    return run

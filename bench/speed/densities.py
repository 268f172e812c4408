"""Kernel density estimates, nearest neighbors, principal components and Bayesian regression."""

from __future__ import annotations

import math

import numpy as np

from speed.common import array, chunks, library, logsumexp, scaled, threads
from speed.registry import workload


@workload(
    "kde", "100,000 points, 20,000 queries, 3-D Gaussian kernel, h = n^(-1/7) (Scott)", bounds={"max_abs_err": 1e-4}
)
def kde(s):
    r = np.random.default_rng(8)
    n, m, D = scaled(100_000, s, 500), scaled(20_000, s, 100), 3
    c = r.normal(size=(8, D)) * 2
    X = c[r.integers(0, 8, n)] + r.standard_normal((n, D)) * r.uniform(0.4, 1, (1, D))
    X -= X.mean(0)
    L = np.linalg.cholesky(np.cov(X, rowvar=False))  # exactly white => scipy's kernel is isotropic too
    X = np.ascontiguousarray(np.linalg.solve(L, X.T).T)
    Q = X[r.choice(n, m, replace=False)] + 0.1 * r.standard_normal((m, D))
    return {"X": X, "Q": Q, "h": n ** (-1 / 7)}


@kde.quality
def _(d, r):
    L, X, h = array(r["logdens"]), d["X"], d["h"]
    i = np.arange(0, len(L), max(1, len(L) // 300))
    ref = []
    for q in d["Q"][i]:
        e = -((X - q) ** 2).sum(1) / (2 * h * h)
        ref.append(logsumexp(e, 0) - math.log(len(X)) - 1.5 * math.log(2 * math.pi * h * h))
    return {"mean_logdens": L.mean(), "max_abs_err": float(abs(L[i] - np.array(ref)).max())}


def _sk_kde(rtol, alg="kd_tree"):
    def setup(d):
        from sklearn.neighbors import KernelDensity

        return lambda: {
            "logdens": KernelDensity(bandwidth=d["h"], algorithm=alg, rtol=rtol).fit(d["X"]).score_samples(d["Q"])
        }

    return setup


kde.peer("sklearn_rtol1e-4", note="kd_tree, rtol=1e-4")(_sk_kde(1e-4))
kde.peer("sklearn_rtol1e-2", note="kd_tree, rtol=1e-2")(_sk_kde(1e-2))
kde.peer("sklearn_exact", note="kd_tree, rtol=0")(_sk_kde(0.0))


@kde.peer("scipy", note="gaussian_kde.logpdf (exact)")
def _(d):
    from scipy.stats import gaussian_kde

    return lambda: {"logdens": gaussian_kde(d["X"].T, bw_method=d["h"]).logpdf(d["Q"].T)}


@kde.peer("scipy_pdf", note="log(gaussian_kde.__call__) (exact, no log-sum-exp)")
def _(d):
    from scipy.stats import gaussian_kde

    return lambda: {"logdens": np.log(gaussian_kde(d["X"].T, bw_method=d["h"])(d["Q"].T))}


@kde.peer("likely", note="KDE(tolerance=1e-4).log_prob")
def _(d):
    lk = library()
    lk.KDE(d["X"][:200], d["h"], tolerance=1e-4).log_prob(d["Q"][:20])  # compiles the loop
    return lambda: {"logdens": lk.KDE(d["X"], d["h"], tolerance=1e-4).log_prob(d["Q"])}


@workload("knn", "200,000 x 8 train, 50,000 queries, 10 neighbors: build + query (exact)")
def knn(s):
    r = np.random.default_rng(9)
    n, m, D = scaled(200_000, s, 500), scaled(50_000, s, 100), 8
    c = r.normal(size=(50, D)) * 2
    return {
        "X": c[r.integers(0, 50, n)] + 0.7 * r.standard_normal((n, D)),
        "Q": c[r.integers(0, 50, m)] + 0.7 * r.standard_normal((m, D)),
        "k": 10,
    }


@knn.quality
def _(d, r):
    D_, I = array(r["dist"]), np.asarray(r["idx"])
    i = np.arange(0, len(I), max(1, len(I) // 200))
    hit = 0
    for j in i:
        ref = np.argpartition(((d["X"] - d["Q"][j]) ** 2).sum(1), d["k"])[: d["k"]]
        hit += len(np.intersect1d(ref, I[j]))
    return {"mean_dist": D_.mean(), "recall": hit / (len(i) * d["k"])}


def _sk_knn(alg):
    def setup(d):
        from sklearn.neighbors import NearestNeighbors

        def run():
            a, b = NearestNeighbors(n_neighbors=d["k"], algorithm=alg, n_jobs=threads()).fit(d["X"]).kneighbors(d["Q"])
            return {"dist": a, "idx": b}

        return run

    return setup


knn.peer("sklearn_kdtree", note="n_jobs = threads")(_sk_knn("kd_tree"))
knn.peer("sklearn_brute", note="n_jobs = threads")(_sk_knn("brute"))


@knn.peer("scipy_cKDTree", note="workers = threads")
def _(d):
    from scipy.spatial import cKDTree

    def run():
        a, b = cKDTree(d["X"]).query(d["Q"], k=d["k"], workers=threads())
        return {"dist": a, "idx": b}

    return run


@knn.peer("likely", note="NeighborSearch: build and search")
def _(d):
    search = library().neighbors.NeighborSearch
    search.of(d["X"][:500]).nearest(d["Q"][:200], d["k"])  # loads the loops

    def run():
        away, rows = search.of(d["X"]).nearest(d["Q"], d["k"])
        return {"dist": away, "idx": rows}

    return run


@workload("pca", "200,000 x 200, top 10 components: fit")
def pca(s):
    r = np.random.default_rng(14)
    n, D = scaled(200_000, s, 1000), 200
    X = r.standard_normal((n, D))
    X += (r.standard_normal((n, 15)) * np.linspace(4, 1, 15)) @ r.normal(size=(15, D)) / math.sqrt(10) + r.normal(
        size=D
    )
    return {"X": X, "q": 10}


@pca.quality
def _(d, r):
    X, V = d["X"], array(r["components"])
    m = X.mean(0)
    C = sum((X[s] - m).T @ (X[s] - m) for s in chunks(len(X))) / len(X)
    return {"var_captured": float(np.trace(V @ C @ V.T) / np.trace(C))}


def _sk_pca(solver):
    def setup(d):
        from sklearn.decomposition import PCA

        return lambda: {"components": PCA(d["q"], svd_solver=solver, random_state=0).fit(d["X"]).components_}

    return setup


for _s in ("covariance_eigh", "randomized", "arpack", "full"):
    pca.peer("sklearn_" + _s)(_sk_pca(_s))


@pca.peer("likely", note="PCA(10), from the centered scatter")
def _(d):
    lk = library()
    lk.PCA(2).fit(d["X"][:1000])
    return lambda: {"components": lk.PCA(d["q"]).fit(d["X"]).components_}


@workload("bayes_linear", "200,000 x 100: evidence maximization of (alpha, lambda), tol 1e-3", repeats=5)
def bayes_linear(s):
    r = np.random.default_rng(11)
    n, D = scaled(200_000, s, 500), 100
    X = r.standard_normal((n, D)) @ (np.eye(D) + 0.1 * r.normal(size=(D, D)))
    w = r.normal(size=D) * (r.random(D) < 0.3)
    return {"X": X, "y": X @ w + 2.0 + 1.5 * r.standard_normal(n), "w": w}


@bayes_linear.quality
def _(d, r):
    X, y = d["X"] - d["X"].mean(0), d["y"] - d["y"].mean()
    n, D = X.shape
    a, l = float(r["alpha"]), float(r["lambda"])
    H = l * np.eye(D) + a * (X.T @ X)
    w = np.linalg.solve(H, a * (X.T @ y))
    e = y - X @ w
    ev = 0.5 * (
        n * math.log(a)
        + D * math.log(l)
        - a * (e @ e)
        - l * (w @ w)
        - np.linalg.slogdet(H)[1]
        - n * math.log(2 * math.pi)
    )
    return {"log_evidence": ev, "coef_err": float(abs(array(r["coef"]) - w).max()), "iters": r.get("iters")}


@bayes_linear.peer("sklearn", note="BayesianRidge")
def _(d):
    from sklearn.linear_model import BayesianRidge

    def run():
        m = BayesianRidge(tol=1e-3).fit(d["X"], d["y"])
        return {"coef": m.coef_, "alpha": m.alpha_, "lambda": m.lambda_, "iters": int(m.n_iter_)}

    return run


@bayes_linear.peer("likely", note="BayesianLinearRegression, evidence")
def _(d):
    lk = library()
    lk.BayesianLinearRegression().fit(d["X"][:500], d["y"][:500])

    def run():
        m = lk.BayesianLinearRegression().fit(d["X"], d["y"])
        return {"coef": m.coefficients_[1:], "alpha": m.beta_, "lambda": m.alpha_}

    return run

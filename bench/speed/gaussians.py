"""Gaussian densities and classifiers: estimation, log-densities, quadratic and linear discriminants, naive Bayes."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from speed.common import array, chunks, library, scaled, torch_module, torch_of
from speed.registry import Infeasible, workload


def classes_of_gaussians(n, D, C, seed, shared):
    r = np.random.default_rng(seed)
    mu = r.normal(size=(C, D)) * 0.3
    L = np.eye(D) + r.normal(size=(1 if shared else C, D, D)) * 0.08
    y = r.integers(0, C, n)
    X = r.standard_normal((n, D))
    for c in range(C):
        i = np.flatnonzero(y == c)
        X[i] = X[i] @ L[0 if shared else c].T + mu[c]
    return {"X": X, "y": y, "C": C}


def classification(d, r):
    P = array(r["proba"])
    n = len(P)
    lp = np.log(np.maximum(P[np.arange(n), d["y"]], 1e-300))
    return {"logloss": -lp.mean(), "acc": float((P.argmax(1) == d["y"]).mean())}


@workload("gaussian_ml", "2,000,000 x 32: mean + full ML covariance", repeats=5, bounds={"cov_err": 1e-12})
def gaussian_ml(s):
    r = np.random.default_rng(1)
    n, D = scaled(2_000_000, s), 32
    X = r.standard_normal((n, D)) @ (np.eye(D) + 0.2 * r.normal(size=(D, D))) + 3.0 * r.normal(size=D)
    return {"X": X}


@gaussian_ml.quality
def _(d, r):
    X = d["X"]
    m, C = array(r["mean"]), array(r["cov"])
    m0 = sum(X[s].sum(0) for s in chunks(len(X))) / len(X)
    S = sum((X[s] - m0).T @ (X[s] - m0) for s in chunks(len(X))) / len(X)
    e = m0 - m
    ll = -0.5 * (
        len(m) * math.log(2 * math.pi)
        + np.linalg.slogdet(C)[1]
        + np.trace(np.linalg.solve(C, S))
        + e @ np.linalg.solve(C, e)
    )
    return {"loglik": ll, "cov_err": float(abs(C - S).max())}


@gaussian_ml.peer("numpy", note="X.mean(0), np.cov(bias=True)")
def _(d):
    X = d["X"]
    return lambda: {"mean": X.mean(0), "cov": np.cov(X, rowvar=False, bias=True)}


@gaussian_ml.peer("numpy_gemm", note="one pass X'X - n mm' (loses digits when mean >> sd)")
def _(d):
    X = d["X"]

    def run():
        m = X.mean(0)
        return {"mean": m, "cov": (X.T @ X) / len(X) - np.outer(m, m)}

    return run


@gaussian_ml.peer("sklearn", note="EmpiricalCovariance")
def _(d):
    from sklearn.covariance import EmpiricalCovariance

    X = d["X"]

    def run():
        e = EmpiricalCovariance(store_precision=False).fit(X)
        return {"mean": e.location_, "cov": e.covariance_}

    return run


@gaussian_ml.peer("torch", note="torch.mean, torch.cov")
def _(d):
    torch = torch_module()
    X = torch.from_numpy(d["X"])
    return lambda: {"mean": X.mean(0), "cov": torch.cov(X.T, correction=0)}


@gaussian_ml.peer("likely", note="Gaussian.fit")
def _(d):
    lk = library()

    def run():
        model = lk.Gaussian.fit(d["X"])
        return {"mean": model.mean, "cov": model.covariance}

    return run


@workload("qda", "500,000 x 20, 10 classes: fit + predict_proba on all rows")
def qda(s):
    return classes_of_gaussians(scaled(500_000, s, 2000), 20, 10, 2, shared=False)


qda.quality(classification)


def _sk_da(cls, **kw):
    def setup(d):
        import sklearn.discriminant_analysis as da

        X, y = d["X"], d["y"]
        return lambda: {"proba": getattr(da, cls)(**kw).fit(X, y).predict_proba(X)}

    return setup


qda.peer("sklearn", note="solver=svd (default)")(_sk_da("QuadraticDiscriminantAnalysis"))
qda.peer("sklearn_eigen", note="solver=eigen")(_sk_da("QuadraticDiscriminantAnalysis", solver="eigen"))


@qda.peer("pomegranate", note="BayesClassifier of full Normals, float64")
def _(d):
    torch = torch_of()
    from pomegranate.bayes_classifier import BayesClassifier
    from pomegranate.distributions import Normal

    X, y, C = torch.from_numpy(d["X"]), torch.from_numpy(d["y"]), d["C"]
    D = X.shape[1]

    def run():
        m = BayesClassifier([Normal(torch.zeros(D, dtype=X.dtype), torch.eye(D, dtype=X.dtype)) for _ in range(C)])
        m.fit(X, y)
        return {"proba": m.predict_proba(X)}

    return run


@workload("lda", "500,000 x 20, 10 classes: fit + predict_proba on all rows")
def lda(s):
    return classes_of_gaussians(scaled(500_000, s, 2000), 20, 10, 3, shared=True)


lda.quality(classification)
lda.peer("sklearn", note="solver=svd (default)")(_sk_da("LinearDiscriminantAnalysis"))
lda.peer("sklearn_lsqr", note="solver=lsqr")(_sk_da("LinearDiscriminantAnalysis", solver="lsqr"))


@workload("gaussian_nb", "2,000,000 x 20, 10 classes: fit + predict on all rows")
def gaussian_nb(s):
    r = np.random.default_rng(4)
    n, D, C = scaled(2_000_000, s, 2000), 20, 10
    mu, sd = r.normal(size=(C, D)) * 0.5, r.uniform(0.5, 1.5, (C, D))
    y = r.integers(0, C, n)
    X = r.standard_normal((n, D))
    X *= sd[y]
    X += mu[y]
    return {"X": X, "y": y, "C": C}


@gaussian_nb.quality
def _(d, r):
    return {"acc": float((np.asarray(r["pred"]) == d["y"]).mean())}


@gaussian_nb.peer("sklearn", note="GaussianNB")
def _(d):
    from sklearn.naive_bayes import GaussianNB

    X, y = d["X"], d["y"]
    return lambda: {"pred": GaussianNB().fit(X, y).predict(X)}


@gaussian_nb.peer("pomegranate", note="BayesClassifier of diag Normals, float64")
def _(d):
    torch = torch_of()
    from pomegranate.bayes_classifier import BayesClassifier
    from pomegranate.distributions import Normal

    X, y, C = torch.from_numpy(d["X"]), torch.from_numpy(d["y"]), d["C"]
    D = X.shape[1]

    def run():
        m = BayesClassifier(
            [
                Normal(torch.zeros(D, dtype=X.dtype), torch.ones(D, dtype=X.dtype), covariance_type="diag")
                for _ in range(C)
            ]
        )
        m.fit(X, y)
        return {"pred": m.predict(X)}

    return run


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


qda.peer("likely", note="BayesClassifier(GaussianDensity('full', prior=None))")(classified("full"))
lda.peer("likely", note="BayesClassifier(GaussianDensity('pooled', prior=None))")(classified("pooled"))


@gaussian_nb.peer("likely", note="BayesClassifier(GaussianDensity('diagonal', prior=None))")
def _(d):
    in_set_up(classifier("diagonal"), d)
    return lambda: {"pred": classifier("diagonal").fit(d["X"], d["y"]).predict(d["X"])}


@workload("latency_qda", "predict_proba of one row, QDA, 20 columns, 10 classes (time of 1000 calls)", calls=1000)
def latency_qda(s):
    return classes_of_gaussians(20_000, 20, 10, 27, shared=False)


latency_qda.quality(lambda d, r: {"p0": float(array(r["p"]).ravel()[0])})


@latency_qda.peer("sklearn")
def _(d):
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as Q

    m, x = Q().fit(d["X"], d["y"]), d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = m.predict_proba(x)
        return {"p": p}

    return run


@latency_qda.peer("pomegranate", note="BayesClassifier, numpy row in")
def _(d):
    torch = torch_of()
    from pomegranate.bayes_classifier import BayesClassifier
    from pomegranate.distributions import Normal

    e = torch.float64
    m = BayesClassifier([Normal(torch.zeros(20, dtype=e), torch.eye(20, dtype=e)) for _ in range(10)])
    m.fit(torch.from_numpy(d["X"]), torch.from_numpy(d["y"]))
    x = d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = m.predict_proba(x)
        return {"p": p}

    return run


MEMBERS, COLUMNS = 64, 16
LOG_2PI = np.log(2 * np.pi)


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


@workload(
    "gaussian_stack",
    "64 full Gaussians, 200,000 x 16: log_prob of every row under every member",
    repeats=5,
    bounds={"max_err": 1e-8},
)
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
    torch = torch_module()
    X = torch.from_numpy(d["X"])
    parts = zip(torch.from_numpy(d["mean"]), torch.from_numpy(d["cov"]), strict=True)
    distributions = [torch.distributions.MultivariateNormal(m, c, validate_args=False) for m, c in parts]
    return lambda: {"log_prob": torch.stack([distribution.log_prob(X) for distribution in distributions], dim=1)}


@gaussian_stack.peer("pomegranate", note="Normal.log_probability, one per member, float64")
def _(d):
    torch = torch_module()
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


@workload(
    "gaussian_gaps",
    "64 full Gaussians, 200,000 x 16, a tenth of the rows missing 10 % of their entries",
    repeats=5,
    bounds={"max_err": 1e-8},
)
def gaussian_gaps(scale):
    d = gaussian_stack.generate(scale)
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


@latency_qda.peer("likely", note="BayesClassifier.predict_proba")
def _(d):
    model, x = classifier("full").fit(d["X"], d["y"]), d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = model.predict_proba(x)
        return {"p": p}

    return run


@latency_qda.peer("likely_value", note="Mixture.log_posterior, the value inside")
def _(d):
    model, x = classifier("full").fit(d["X"], d["y"]).model_, d["X"][:1].copy()

    def run():
        for _ in range(1000):
            p = model.log_posterior(x)
        return {"p": np.exp(p)}

    return run

"""k-means and hierarchical clustering."""

from __future__ import annotations

import warnings

import numpy as np

from speed.common import array, chunks, library, scaled, torch_of
from speed.registry import workload


@workload("kmeans", "500,000 x 16, 64 clusters, same random-row init, exactly 20 Lloyd iterations")
def kmeans(s):
    r = np.random.default_rng(5)
    n, D, K = scaled(500_000, s, 1000), 16, 64
    c = r.normal(size=(K, D)) * 1.2
    X = c[r.integers(0, K, n)] + r.standard_normal((n, D))
    return {"X": X, "K": K, "iters": 20, "c0": X[r.choice(n, K, replace=False)].copy()}


@kmeans.quality
def _(d, r):
    C, X, t = array(r["centers"]), d["X"], 0.0
    for s in chunks(len(X)):
        x = X[s]
        t += ((x * x).sum(1) + ((C * C).sum(1) - 2 * x @ C.T).min(1)).sum()
    return {"inertia": t / len(X), "iters": r.get("iters", d["iters"])}


def _sk_kmeans(alg):
    def setup(d):
        from sklearn.cluster import KMeans

        X, c0 = d["X"], d["c0"]

        def run():
            m = KMeans(d["K"], init=c0, n_init=1, max_iter=d["iters"], tol=0, algorithm=alg).fit(X)
            return {"centers": m.cluster_centers_, "iters": m.n_iter_}

        return run

    return setup


kmeans.peer("sklearn", note="lloyd")(_sk_kmeans("lloyd"))
kmeans.peer("sklearn_elkan", note="elkan (same iterates)")(_sk_kmeans("elkan"))


@kmeans.peer("scipy", note="kmeans2(minit='matrix')")
def _(d):
    from scipy.cluster.vq import kmeans2

    return lambda: {"centers": kmeans2(d["X"], d["c0"], iter=d["iters"], minit="matrix")[0]}


@kmeans.peer("pomegranate_f32", note="KMeans(centroids=...), float32 (float64 raises in scatter_add_)")
def _(d):
    torch = torch_of("float32")
    from pomegranate.kmeans import KMeans

    X, c0 = torch.from_numpy(d["X"]).float(), torch.from_numpy(d["c0"]).float()

    def run():
        m = KMeans(centroids=c0.clone(), max_iter=d["iters"], tol=0.0)
        m.tol = -1e300
        m.fit(X)
        return {"centers": m.centroids}

    return run


def hier_data(s):
    r = np.random.default_rng(23)
    n, D = scaled(10_000, s, 100), 8
    c = r.normal(size=(30, D)) * 2
    return {"X": c[r.integers(0, 30, n)] + r.standard_normal((n, D))}


hier_ward = workload("hier_ward", "n=10,000, D=8, Ward linkage from raw points")(hier_data)
hier_average = workload("hier_average", "n=10,000, D=8, average linkage (Euclidean) from raw points")(hier_data)
for _w, _m in ((hier_ward, "ward"), (hier_average, "average")):
    _w.quality(lambda d, r: {"sum_heights": float(array(r["Z"])[:, 2].sum()), "top": float(array(r["Z"])[-1, 2])})

    def _setup_scipy(d, m=_m):
        from scipy.cluster.hierarchy import linkage

        return lambda: {"Z": linkage(d["X"], m)}

    def _setup_fc(d, m=_m):
        import fastcluster

        return lambda: {"Z": fastcluster.linkage(d["X"], m)}

    _w.peer("scipy")(_setup_scipy)
    _w.peer("fastcluster")(_setup_fc)


@hier_ward.peer("fastcluster_vector", note="linkage_vector: O(n) memory")
def _(d):
    import fastcluster

    return lambda: {"Z": fastcluster.linkage_vector(d["X"], "ward")}


@kmeans.peer("likely", note="KMeans: exact labels, bounds that skip distances")
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


hier_ward.peer("likely", note="linkage(X, 'ward')")(tree("ward"))
hier_average.peer("likely", note="linkage(X, 'average')")(tree("average"))

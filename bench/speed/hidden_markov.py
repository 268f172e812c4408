"""Hidden Markov models: Baum-Welch, posteriors and Viterbi paths."""

from __future__ import annotations

import warnings

import numpy as np

from speed.common import array, library, logsumexp, scaled, torch_of
from speed.registry import workload


def forward_log_likelihood(logB, pi, A):
    """batch of sequences: logB (S,T,K) -> sum of log-likelihoods"""
    _S, T, _K = logB.shape
    m = logB.max(2)
    B = np.exp(logB - m[:, :, None])
    a = pi * B[:, 0]
    ll = m.sum()
    for t in range(T):
        if t:
            a = (a @ A) * B[:, t]
        c = a.sum(1, keepdims=True)
        ll += np.log(c).sum()
        a /= c
    return float(ll)


def sampled_chain(r, pi, A, S, T):
    K = len(pi)
    cA, u = A.cumsum(1), r.random((T, S))
    z = np.empty((S, T), np.int64)
    z[:, 0] = np.minimum(np.searchsorted(pi.cumsum(), u[0]), K - 1)
    for t in range(1, T):
        z[:, t] = np.minimum((u[t][:, None] > cA[z[:, t - 1]]).sum(1), K - 1)
    return z


def diagonal_log_density(X, mu, var):
    """X (...,D), mu/var (K,D) -> (...,K)"""
    out = np.empty(X.shape[:-1] + (len(mu),))
    for k in range(len(mu)):
        out[..., k] = -0.5 * ((X - mu[k]) ** 2 / var[k]).sum(-1) - 0.5 * np.log(2 * np.pi * var[k]).sum()
    return out


@workload("hmm_gauss", "500 sequences x 400, 8 states, 8-D diagonal Gaussian: 10 Baum-Welch iterations, same init")
def hmm_gauss(s):
    r = np.random.default_rng(15)
    S, T, K, D = scaled(500, s, 5), 400, 8, 8
    A = r.dirichlet(np.ones(K), K) * 0.2 + 0.8 * np.eye(K)
    mu, sd = r.normal(size=(K, D)), r.uniform(0.6, 1.2, (K, D))
    z = sampled_chain(r, np.full(K, 1 / K), A, S, T)
    X = mu[z] + sd[z] * r.standard_normal((S, T, D))
    v = X.reshape(-1, D).var(0)
    return {
        "X": X,
        "K": K,
        "iters": 10,
        "pi0": np.full(K, 1 / K),
        "A0": np.full((K, K), 0.3 / K) + 0.7 * np.eye(K),
        "m0": mu + 0.5 * r.normal(size=(K, D)),
        "v0": np.stack([v] * K),
    }


@hmm_gauss.quality
def _(d, r):
    pi, A = array(r["pi"]), array(r["A"])
    ll = forward_log_likelihood(
        diagonal_log_density(d["X"], array(r["means"]), array(r["vars"])), pi / pi.sum(), A / A.sum(1, keepdims=True)
    )
    return {"loglik_per_obs": ll / d["X"][..., 0].size, "iters": d["iters"]}


def _hmmlearn_gauss(impl):
    def setup(d):
        from hmmlearn.hmm import GaussianHMM

        S, T, D = d["X"].shape
        X, L = d["X"].reshape(-1, D), [T] * S

        def run():
            m = GaussianHMM(
                d["K"],
                "diag",
                n_iter=d["iters"],
                tol=-np.inf,
                init_params="",
                covars_prior=0.0,
                covars_weight=1.0,
                implementation=impl,
            )
            m.startprob_, m.transmat_, m.means_, m.covars_ = d["pi0"], d["A0"], d["m0"], d["v0"]
            m.fit(X, L)
            return {"pi": m.startprob_, "A": m.transmat_, "means": m.means_, "vars": m._covars_}

        return run

    return setup


hmm_gauss.peer("hmmlearn_scaling", note="implementation='scaling'")(_hmmlearn_gauss("scaling"))
hmm_gauss.peer("hmmlearn_log", note="implementation='log' (its default)")(_hmmlearn_gauss("log"))


@hmm_gauss.peer("pomegranate", note="DenseHMM float64, one batch; end probabilities frozen at 1")
def _(d):
    torch = torch_of()
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    def T(a):
        return torch.tensor(a, dtype=torch.float64)

    X = torch.from_numpy(d["X"])

    def run():
        m = DenseHMM(
            [Normal(T(a), T(c), covariance_type="diag") for a, c in zip(d["m0"], d["v0"], strict=False)],
            edges=T(d["A0"]),
            starts=T(d["pi0"]),
            ends=torch.ones(d["K"], dtype=torch.float64),
            max_iter=d["iters"],
            tol=0.0,
        )
        m.tol = -1e300
        m.ends.frozen = True
        m.fit(X)
        return {
            "pi": torch.exp(m.starts),
            "A": torch.exp(m.edges),
            "means": torch.stack([x.means for x in m.distributions]),
            "vars": torch.stack([x.covs for x in m.distributions]),
        }

    return run


@hmm_gauss.peer("dynamax", note="DiagonalGaussianHMM.fit_em inside jit, x64, near-flat priors")
def _(d):
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import DiagonalGaussianHMM

    K, D = d["K"], d["X"].shape[2]
    h = DiagonalGaussianHMM(
        K,
        D,
        initial_probs_concentration=1.0 + 1e-9,
        transition_matrix_concentration=1.0 + 1e-9,
        emission_prior_mean_concentration=1e-8,
        emission_prior_concentration=1e-8,
        emission_prior_scale=1e-8,
    )
    p, props = h.initialize(
        initial_probs=jnp.asarray(d["pi0"]),
        transition_matrix=jnp.asarray(d["A0"]),
        emission_means=jnp.asarray(d["m0"]),
        emission_scale_diags=jnp.sqrt(jnp.asarray(d["v0"])),
    )
    X = jnp.asarray(d["X"])
    f = jax.jit(lambda p, X: h.fit_em(p, props, X, num_iters=d["iters"], verbose=False))

    def run():
        q, _ = jax.block_until_ready(f(p, X))
        return {
            "pi": q.initial.probs,
            "A": q.transitions.transition_matrix,
            "means": q.emissions.means,
            "vars": np.asarray(q.emissions.scale_diags) ** 2,
        }

    return run


@workload("hmm_long", "one sequence T=200,000, 16 states, 32 symbols: forward-backward posteriors + Viterbi path")
def hmm_long(s):
    r = np.random.default_rng(16)
    T, K, M = scaled(200_000, s, 500), 16, 32
    A = r.dirichlet(np.ones(K) * 0.5, K) * 0.3 + 0.7 * np.eye(K)
    B = r.dirichlet(np.ones(M) * 0.3, K) + 1e-4
    B /= B.sum(1, keepdims=True)
    pi = np.full(K, 1 / K)
    z = sampled_chain(r, pi, A, 1, T)[0]
    x = np.minimum((r.random(T)[:, None] > B.cumsum(1)[z]).sum(1), M - 1)
    return {"x": x, "z": z, "A": A, "B": B, "pi": pi, "K": K}


@hmm_long.quality
def _(d, r):
    g, p = np.asarray(r["gamma"]), np.asarray(r["path"]).ravel()
    s = np.log(d["pi"][p[0]]) + np.log(d["A"][p[:-1], p[1:]]).sum() + np.log(d["B"][p, d["x"]]).sum()
    return {
        "loglik": float(r["loglik"]),
        "viterbi_logp": float(s),
        "post_true": float(g[np.arange(len(p)), d["z"]].mean()),
        "rowsum_err": float(abs(g.sum(1) - 1).max()),
    }


def _hmmlearn_long(impl):
    def setup(d):
        from hmmlearn.hmm import CategoricalHMM

        m = CategoricalHMM(d["K"], implementation=impl)
        m.n_features = d["B"].shape[1]
        m.startprob_, m.transmat_, m.emissionprob_ = d["pi"], d["A"], d["B"]
        X = d["x"][:, None]

        def run():
            l, g = m.score_samples(X)
            return {"loglik": l, "gamma": g, "path": m.decode(X, algorithm="viterbi")[1]}

        return run

    return setup


hmm_long.peer("hmmlearn_scaling")(_hmmlearn_long("scaling"))
hmm_long.peer("hmmlearn_log")(_hmmlearn_long("log"))


def _dynamax_long(par):
    def setup(d):
        import dynamax.hidden_markov_model as hm
        import jax
        import jax.numpy as jnp

        pi, A, B, x = (jnp.asarray(d[k]) for k in ("pi", "A", "B", "x"))

        @jax.jit
        def f(pi, A, B, x):
            L = jnp.log(B).T[x]
            p = hm.parallel_hmm_smoother(pi, A, L) if par else hm.hmm_smoother(pi, A, L)
            return p.marginal_loglik, p.smoothed_probs, hm.hmm_posterior_mode(pi, A, L)

        def run():
            l, g, p = jax.block_until_ready(f(pi, A, B, x))
            return {"loglik": l, "gamma": g, "path": p}

        return run

    return setup


hmm_long.peer(
    "dynamax",
    note="hmm_smoother (scan, which sums transition posteriors too) and hmm_posterior_mode, jit, x64",
)(_dynamax_long(False))
hmm_long.peer("dynamax_parallel", note="parallel_hmm_smoother (associative scan)")(_dynamax_long(True))


@hmm_long.peer("pomegranate", note="DenseHMM float64: forward_backward + viterbi")
def _(d):
    torch = torch_of()
    from pomegranate.distributions import Categorical
    from pomegranate.hmm import DenseHMM

    def T(a):
        return torch.tensor(a, dtype=torch.float64)

    m = DenseHMM(
        [Categorical(T(b)[None]) for b in d["B"]],
        edges=T(d["A"]),
        starts=T(d["pi"]),
        ends=torch.ones(d["K"], dtype=torch.float64),
    )
    X = torch.from_numpy(d["x"])[None, :, None]

    def run():
        e = m._emission_matrix(X)
        _, g, _, _, l = m.forward_backward(emissions=e)
        return {"loglik": l.item(), "gamma": torch.exp(g[0]).numpy(), "path": m.viterbi(emissions=e)[0].numpy()}

    return run


@workload("hmm_gmm", "100 sequences x 300, 6 states x 4 diagonal components, 4-D: 10 Baum-Welch iterations, same init")
def hmm_gmm(s):
    r = np.random.default_rng(17)
    S, T, K, M, D = scaled(100, s, 5), 300, 6, 4, 4
    A = r.dirichlet(np.ones(K), K) * 0.2 + 0.8 * np.eye(K)
    mu = r.normal(size=(K, 1, D)) * 2 + r.normal(size=(K, M, D))
    w = r.dirichlet(np.ones(M) * 3, K)
    z = sampled_chain(r, np.full(K, 1 / K), A, S, T)
    c = np.minimum((r.random((S, T, 1)) > w.cumsum(1)[z]).sum(2), M - 1)
    X = mu[z, c] + 0.5 * r.standard_normal((S, T, D))
    return {
        "X": X,
        "K": K,
        "M": M,
        "iters": 10,
        "pi0": np.full(K, 1 / K),
        "A0": np.full((K, K), 0.3 / K) + 0.7 * np.eye(K),
        "w0": np.full((K, M), 1 / M),
        "m0": mu + 0.4 * r.normal(size=mu.shape),
        "v0": np.ones((K, M, D)),
    }


@hmm_gmm.quality
def _(d, r):
    pi, A, w, mu, v = (array(r[k]) for k in ("pi", "A", "weights", "means", "vars"))
    K, M = w.shape
    L = diagonal_log_density(d["X"], mu.reshape(K * M, -1), v.reshape(K * M, -1)).reshape(
        d["X"].shape[:2] + (K, M)
    ) + np.log(w)
    ll = forward_log_likelihood(logsumexp(L, 3), pi / pi.sum(), A / A.sum(1, keepdims=True))
    return {"loglik_per_obs": ll / d["X"][..., 0].size, "iters": d["iters"]}


def _hmmlearn_gmm(impl):
    def setup(d):
        from hmmlearn.hmm import GMMHMM

        S, T, D = d["X"].shape
        X, L = d["X"].reshape(-1, D), [T] * S

        def run():
            m = GMMHMM(
                d["K"],
                d["M"],
                covariance_type="diag",
                n_iter=d["iters"],
                tol=-np.inf,
                init_params="",
                implementation=impl,
            )
            m.startprob_, m.transmat_, m.weights_, m.means_, m.covars_ = d["pi0"], d["A0"], d["w0"], d["m0"], d["v0"]
            m.n_features = D
            m.fit(X, L)
            return {"pi": m.startprob_, "A": m.transmat_, "weights": m.weights_, "means": m.means_, "vars": m.covars_}

        return run

    return setup


hmm_gmm.peer("hmmlearn_scaling")(_hmmlearn_gmm("scaling"))
hmm_gmm.peer("hmmlearn_log")(_hmmlearn_gmm("log"))


@hmm_gmm.peer("pomegranate", note="DenseHMM of GeneralMixtureModels, float64")
def _(d):
    torch = torch_of()
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel
    from pomegranate.hmm import DenseHMM

    def T(a):
        return torch.tensor(a, dtype=torch.float64)

    X = torch.from_numpy(d["X"])

    def run():
        g = [
            GeneralMixtureModel(
                [Normal(T(a), T(c), covariance_type="diag") for a, c in zip(d["m0"][k], d["v0"][k], strict=False)],
                priors=T(d["w0"][k]),
            )
            for k in range(d["K"])
        ]
        m = DenseHMM(
            g,
            edges=T(d["A0"]),
            starts=T(d["pi0"]),
            ends=torch.ones(d["K"], dtype=torch.float64),
            max_iter=d["iters"],
            tol=0.0,
        )
        m.tol = -1e300
        m.ends.frozen = True
        m.fit(X)
        return {
            "pi": torch.exp(m.starts),
            "A": torch.exp(m.edges),
            "weights": torch.stack([x.priors for x in m.distributions]),
            "means": torch.stack([torch.stack([y.means for y in x.distributions]) for x in m.distributions]),
            "vars": torch.stack([torch.stack([y.covs for y in x.distributions]) for x in m.distributions]),
        }

    return run


@hmm_gmm.peer("dynamax", note="DiagonalGaussianMixtureHMM.fit_em inside jit, x64, near-flat priors")
def _(d):
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import DiagonalGaussianMixtureHMM

    h = DiagonalGaussianMixtureHMM(
        d["K"],
        d["M"],
        d["X"].shape[2],
        initial_probs_concentration=1.0 + 1e-9,
        transition_matrix_concentration=1.0 + 1e-9,
        emission_weights_concentration=1.0 + 1e-9,
        emission_prior_mean_concentration=1e-8,
        emission_prior_shape=1e-8,
        emission_prior_scale=1e-8,
    )

    def J(k):
        return jnp.asarray(d[k])

    p, props = h.initialize(
        initial_probs=J("pi0"),
        transition_matrix=J("A0"),
        emission_weights=J("w0"),
        emission_means=J("m0"),
        emission_scale_diags=jnp.sqrt(J("v0")),
    )
    X = J("X")
    f = jax.jit(lambda p, X: h.fit_em(p, props, X, num_iters=d["iters"], verbose=False))

    def run():
        q, _ = jax.block_until_ready(f(p, X))
        e = q.emissions
        return {
            "pi": q.initial.probs,
            "A": q.transitions.transition_matrix,
            "weights": e.weights,
            "means": e.means,
            "vars": np.asarray(e.scale_diags) ** 2,
        }

    return run


@workload(
    "latency_hmm",
    "class posterior of one sequence (T=50, 4-D) from 5 per-class Gaussian HMMs of 5 states (time of 100 calls)",
    calls=100,
)
def latency_hmm(s):
    r = np.random.default_rng(29)
    C, K, D, T = 5, 5, 4, 50
    return {
        "C": C,
        "K": K,
        "pi": np.full(K, 1 / K),
        "A": np.stack([r.dirichlet(np.ones(K), K) for _ in range(C)]),
        "mu": r.normal(size=(C, K, D)),
        "v": r.uniform(0.5, 1.5, (C, K, D)),
        "x": r.standard_normal((T, D)),
    }


@latency_hmm.quality
def _(d, r):
    L = np.array(
        [
            forward_log_likelihood(diagonal_log_density(d["x"], d["mu"][c], d["v"][c])[None], d["pi"], d["A"][c])
            for c in range(d["C"])
        ]
    )
    return {"max_err": float(abs(array(r["p"]) - np.exp(L - logsumexp(L, 0))).max())}


def _hl_latency(impl):
    def setup(d):
        from hmmlearn.hmm import GaussianHMM

        M = []
        for c in range(d["C"]):
            m = GaussianHMM(d["K"], "diag", implementation=impl)
            m.startprob_, m.transmat_, m.means_, m.covars_ = d["pi"], d["A"][c], d["mu"][c], d["v"][c]
            M.append(m)
        x = d["x"]

        def run():
            for _ in range(100):
                L = np.array([m.score(x) for m in M])
                L = np.exp(L - L.max())
                p = L / L.sum()
            return {"p": p}

        return run

    return setup


latency_hmm.peer("hmmlearn_scaling")(_hl_latency("scaling"))
latency_hmm.peer("hmmlearn_log")(_hl_latency("log"))


@latency_hmm.peer("pomegranate", note="DenseHMM.log_probability x 5, softmax")
def _(d):
    torch = torch_of()
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    def T(a):
        return torch.tensor(a, dtype=torch.float64)

    M = [
        DenseHMM(
            [Normal(T(a), T(v), covariance_type="diag") for a, v in zip(d["mu"][c], d["v"][c], strict=False)],
            edges=T(d["A"][c]),
            starts=T(d["pi"]),
            ends=torch.ones(d["K"], dtype=torch.float64),
        )
        for c in range(d["C"])
    ]
    x = d["x"][None]

    def run():
        for _ in range(100):
            p = torch.softmax(torch.cat([m.log_probability(x) for m in M]), 0)
        return {"p": p}

    return run


@hmm_gauss.peer("likely", note="HMMDensity(GaussianDensity('diagonal'), prior=None)")
def _(d):
    lk = library()
    start = lk.HMM(d["pi0"], d["A0"], lk.Gaussian(d["m0"], d["v0"], "diagonal"))

    def run(X=d["X"], n_iter=d["iters"]):
        h = learned(lk, lk.GaussianDensity("diagonal"), start, X, n_iter)
        g = h.emission
        return {"pi": h.initial, "A": h.transition, "means": g.mean, "vars": g.covariance}

    run(d["X"][:4], 2)
    return run


@hmm_gmm.peer("likely", note="HMMDensity(MixtureDensity(GaussianDensity('diagonal'), 4), prior=None)")
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


@hmm_long.peer("likely", note="HMM.smooth and HMM.viterbi")
def _(d):
    lk = library()
    h = lk.HMM(d["pi"], d["A"], lk.Categorical(d["B"]))
    x = d["x"]
    h.smooth(x[:50]), h.viterbi(x[:50])

    def run():
        found = h.smooth(x)
        return {"loglik": found.log_prob, "gamma": found.states, "path": h.viterbi(x).states}

    return run


@latency_hmm.peer("likely", note="Mixture of a stack of HMMs: posterior of one sequence")
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

"""Golden numbers of values: densities, priors, chains and filters on small grids. The name of a case never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import likely as lk
from tests.properties.members import MEMBERS, Member, Pieces
from tests.properties.pairs import PAIRS, Pair

Rows = np.ndarray
Result = dict[str, Any]

CLOSED, ITERATED = 1e-12, 1e-9  # how far a number may move, as a share of the largest in its array


def rows(columns: tuple[Any, ...], n: int, seed: int = 7) -> Rows:
    """Rows that suit the columns of a density, from NumPy's generator alone: they do not depend on our sampling."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([_column(kind, n, rng) for kind in columns])
    return x / x.sum(axis=1, keepdims=True) if columns and all(kind == "unit" for kind in columns) else x


def _column(kind: Any, n: int, rng: np.random.Generator) -> Rows:
    if isinstance(kind, Pieces):
        low, high = (end if np.isfinite(end) else 3 * np.sign(end) for end in (kind[0], kind[-1]))
        return low + (high - low) * rng.random(n)
    if kind == "real":
        return 1.5 * rng.standard_normal(n)
    if kind == "positive":
        return rng.gamma(2.0, 1.0, n)
    if kind == "unit":
        return rng.uniform(0.1, 0.9, n)
    return rng.poisson(2.0, n).astype(float) if kind == "count" else rng.integers(0, int(kind), n).astype(float)


OF_ONE_COLUMN = {
    "cdf": lambda distribution, x: distribution.cdf(x),
    "quantile": lambda distribution, x: distribution.quantile(np.array([0.1, 0.5, 0.99])),
}
OF_ANY = {
    "mean": lambda distribution, x: distribution.mean,
    "variance": lambda distribution, x: distribution.variance,
    "entropy": lambda distribution, x: (
        distribution.entropy() if callable(distribution.entropy) else distribution.entropy
    ),
    "n_parameters": lambda distribution, x: distribution.n_parameters,
}


def answer(question: Callable[[], Any]) -> Any:
    """What is answered, or the kind of error with which it is refused."""
    try:
        return question()
    except (lk.LikelyError, NotImplementedError, AttributeError, TypeError) as error:
        return f"<{type(error).__name__}>"


def density(distribution: Any, x: Rows, learns: bool = True) -> Result:
    """Everything that one density, or a stack of them, says of some rows."""
    gaps = x.copy()
    gaps[::3, 0] = np.nan
    out: Result = {
        "log_prob": distribution.log_prob(x),
        "log_prob with missing entries": answer(lambda: distribution.log_prob(gaps)),
        "sample": answer(lambda: distribution.sample(4, np.random.default_rng(3))),
    }
    for name, ask in (OF_ANY if x.shape[1] > 1 else OF_ONE_COLUMN | OF_ANY).items():
        out[name] = answer(lambda ask=ask: ask(distribution, x))
    if learns:
        labels = {"labels": np.arange(len(x)) % distribution.members} if distribution.members else {}
        weight = 0.5 + np.arange(len(x)) % 3
        stats = distribution.collect(x, weight, **labels)
        out["statistics"] = stats
        out["statistics of two blocks"] = distribution.collect(
            x[:20], weight[:20], **_first(labels, 20)
        ) + distribution.collect(x[20:], weight[20:], **_rest(labels, 20))
        out["refit"] = answer(lambda: distribution.refit(stats))
        out["objective"] = answer(lambda: distribution.objective(stats))
        out["weak prior"] = answer(lambda: distribution.refit(stats, distribution.weak_prior(stats)))
    return out


def _first(labels: dict[str, Rows], n: int) -> dict[str, Rows]:
    return {name: a[:n] for name, a in labels.items()}


def _rest(labels: dict[str, Rows], n: int) -> dict[str, Rows]:
    return {name: a[n:] for name, a in labels.items()}


def of_member(member: Member) -> Result:
    return density(member.value, rows(member.columns, 48), member.learns)


def of_pair(pair: Pair) -> Result:
    """A conjugate prior: its posterior after some rows, its evidence, what it predicts."""
    prior, model = pair.prior(), pair.model()
    x, labels = pair.rows(24, np.random.default_rng(5))
    stats = model.collect(x, **labels)
    return {
        "posterior": prior.update(stats),
        "log_evidence": answer(lambda: prior.log_evidence(stats)),
        "point": answer(lambda: prior.update(stats).point()),
        "mean": answer(lambda: prior.update(stats).point("mean")),
        "predictive": answer(lambda: prior.update(stats).predictive()),
    }


# ------------------------------------------------------------------- sequences

G2 = lk.Gaussian([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]], [[[1.0, 0.3], [0.3, 0.5]]] * 3)
MOVES = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.0, 0.7]])


def frames(n: int, d: int, seed: int = 11) -> Rows:
    """One smooth sequence."""
    return np.cumsum(0.4 * np.random.default_rng(seed).standard_normal((n, d)), axis=0)


def hmm() -> Result:
    model, x = lk.HMM([0.5, 0.3, 0.2], MOVES, G2), frames(40, 2)
    gaps = x.copy()
    gaps[5:8], gaps[20, 1] = np.nan, np.nan
    stats = model.collect(lk.Ragged.of([x[:25], x[25:]]))
    out = {"sample": model.sample(2, np.random.default_rng(3), length=5)}
    for name, y in (("whole", x), ("with missing entries", gaps)):
        out[name] = {
            "log_prob": model.log_prob([y]),
            "posterior": model.posterior(y),
            "filtered": model.posterior(y, lag=0),
            "viterbi": model.viterbi(y),
            "k_best": model.k_best(y, 3),
            "forecast": model.forecast(y, 3),
        }
    return {**out, "statistics": stats, "refit": model.refit(stats), "objective": model.objective(stats)}


def hmm_of_symbols() -> Result:
    levels = lk.Categorical([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    model = lk.HMM([0.6, 0.4], [[0.7, 0.2], [0.3, 0.5]], levels, final=[0.1, 0.2])
    x = np.random.default_rng(2).integers(0, 3, (30, 1)).astype(float)
    stats = model.collect(lk.Ragged.of([x]))
    return {
        "log_prob": model.log_prob([x, x[:4]]),
        "posterior": model.posterior(x),
        "viterbi": model.viterbi(x),
        "statistics": stats,
        "refit": model.refit(stats),
    }


def driven_hmm() -> Result:
    x = frames(30, 2)
    u = np.sin(np.arange(30.0))[:, None]
    coefficients = np.zeros((2, 2, 2))
    coefficients[0, 1], coefficients[1, 0] = [-2.0, 1.0], [-1.5, -0.7]
    model = lk.HMM(
        [0.6, 0.4], lk.hmm.LogisticTransition(coefficients), lk.Gaussian([[0.0, 0.0], [1.0, 1.0]], np.eye(2))
    )
    y = lk.core.with_covariates(x, u)
    return {"log_prob": model.log_prob(y), "posterior": model.posterior(y)}


def linear() -> Any:
    return lk.LinearGaussian(
        transition=[[1.0, 1.0], [0.0, 0.9]],
        process_covariance=[[0.1, 0.02], [0.02, 0.2]],
        observation=[[1.0, 0.0], [0.5, 0.5]],
        observation_covariance=[[0.3, 0.1], [0.1, 0.4]],
        initial_mean=[0.0, 0.1],
        initial_covariance=[[1.0, 0.2], [0.2, 1.0]],
    )


def linear_gaussian() -> Result:
    model, y = linear(), frames(30, 2)
    gaps = y.copy()
    gaps[4:6], gaps[10, 1] = np.nan, np.nan
    out: Result = {"sample": model.sample(2, np.random.default_rng(3), length=4)}
    for name, z in (("whole", y), ("with missing entries", gaps)):
        out[name] = {
            "log_prob": model.log_prob([z]),
            "filter": model.filter(z),
            "smooth": model.smooth(z),
            "forecast": model.forecast(z, 3),
        }
    learner = lk.statespace.ConstrainedLinearGaussian.of(model)
    stats = learner.collect(lk.Ragged.of([y]))
    return {**out, "statistics": stats, "refit": learner.refit(stats).model}


def local_level() -> Result:
    """A start that nothing is known of."""
    model = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.1]],
        observation=[[1.0]],
        observation_covariance=[[0.5]],
        diffuse=[[1.0]],
    )
    y = frames(20, 1)
    return {"log_prob": model.log_prob([y]), "filter": model.filter(y), "smooth": model.smooth(y)}


def continuous() -> Result:
    model = lk.LinearSDE(
        drift=[[-0.5]],
        diffusion=[[0.3]],
        observation=[[1.0]],
        observation_covariance=[[0.2]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    t, y = np.cumsum(np.random.default_rng(4).gamma(2.0, 0.5, 15)), frames(15, 1)
    return {"filter": model.filter(y, t), "smooth": model.smooth(y, t), "log_prob": model.log_prob(y, t)}


def pendulum() -> Any:
    def swung(x: Rows) -> Any:
        angle, speed = x.T
        return lk.Gaussian(np.column_stack([angle + 0.1 * speed, speed - 0.5 * np.sin(angle)]), [0.01, 0.02])

    return lk.StateSpace(lk.Gaussian([0.5, 0.0], 0.1), swung, lambda x: lk.Gaussian(np.sin(x[:, :1]), 0.05))


def gaussian_filter(make: Callable[[Any], Any]) -> Result:
    y = 0.5 * frames(20, 1)
    f = make(pendulum())
    return {"filter": f.filter(y), "smooth": f.smooth(y), "log_prob": f.log_prob(y), "forecast": f.forecast(y, 2)}


def particle_filter() -> Result:
    y = 0.5 * frames(20, 1)
    f = lk.ParticleFilter(pendulum(), 50, random_state=1)
    return {"run": f.run(y, keep=False), "smooth": f.smooth(y, n_paths=4)}


def switching() -> Any:
    slow, fast = (
        lk.LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[0.2]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.01, 1.0)
    )
    return lk.SwitchingLinearGaussian((slow, fast), [[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])


def interacting() -> Result:
    y = frames(20, 1)
    f = lk.statespace.IMMFilter(switching())
    return {"filter": f.filter(y), "log_prob": f.log_prob(y)}


def rao_blackwell() -> Result:
    y = frames(15, 1)
    f = lk.statespace.RaoBlackwellizedFilter(switching(), 40, random_state=2)
    return {"filter": f.filter(y), "log_prob": f.log_prob(y)}


def switching_learner() -> Result:
    learner = lk.statespace.ConstrainedSwitchingLinearGaussian.of(switching(), ["process_covariance"])
    stats = learner.collect(lk.Ragged.of([frames(20, 1)]))
    return {"statistics": stats, "refit": learner.refit(stats).model}


def live() -> Result:
    """Beliefs and learners that go from frame to frame."""
    y = frames(8, 1)
    timed = lk.LinearSDE.ornstein_uhlenbeck(1.0, spectral_density=4.0)
    belief, news = timed.update(timed.initial_belief(), [0.3], 0.5)
    rule = lk.inference.RobbinsMonro(lk.Gaussian([0.0], 1.0), natural=False, average=False, power=1.0, learn=("mean",))
    level = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.1]],
        observation=[[1.0]],
        observation_covariance=[[0.5]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
    )
    followed = [(b, float(logp)) for b, logp in lk.follow(level, y)]
    return {
        "timed": belief,
        "news": float(news),
        "robbins-monro": rule.run(y).distribution,
        "beliefs": [b for b, _ in followed],
        "log_prob": [logp for _, logp in followed],
    }


def regressions() -> Result:
    x = rows(("real", "real"), 30)
    y = 1.0 + x @ [1.0, -2.0] + 0.5 * rows(("real",), 30, 9)[:, 0]
    stack = lk.linear_model.GaussianRegression([[[1.0, 0.0, 0.0]], [[0.0, 1.0, -1.0]]], [1.0, 2.0])
    pairs, density = lk.core.Columns(y=y, x=x), lk.linear_model.Conditional(stack)
    one = stack.member(0)
    known = lk.priors.CoefficientsGivenNoise(np.zeros(3), 0.5, 0.3).update(one.collect(y, x))
    unknown = lk.priors.MatrixNormalInverseWishart(np.zeros((1, 3)), 0.5, 1.0, 3.0).update(one.collect(y, x))
    mixture = lk.fit(lk.Mixture([0.5, 0.5], density), pairs, stop=lk.StoppingRule(5, 0.0)).model
    return {
        "log_prob": density.log_prob(pairs),
        "refit": density.refit(density.collect(pairs, labels=np.arange(30) % 2)),
        "given": one.given(x[:4]),
        "mixture": mixture,
        "known": known.predictive(),
        "unknown": unknown.predictive(),
        "predictive": [post.predictive().log_prob(y, x) for post in (known, unknown)],
        "estimate": lk.decision.point_estimate(unknown.predictive().given(x[:3]), lambda a, y: np.abs(a - y) ** 1.5),
    }


def other_priors() -> Result:
    distribution = lk.Exponential(1.0)
    mixture = lk.Mixture([0.5, 0.5], lk.mixture.FixedComponents(lk.Gaussian([[0.0], [4.0]], 1.0)))
    x = rows(("real",), 20)
    return {
        "earlier data": lk.priors.PseudoData(distribution, distribution.collect([4.0]))
        .update(distribution.collect([1.0, 1.0]))
        .point(),
        "fixed components": mixture.refit(mixture.collect(x)),
        "sparse weights": lk.priors.SparseWeights.costing(3, 4.0),
    }


def histogram() -> Result:
    distribution = lk.Histogram([0.0, 1.0, 2.0, 4.0], [0.2, 0.5, 0.3])
    x = np.linspace(-1, 5, 13)[:, None]
    return {"log_prob": distribution.log_prob(x), "sample": distribution.sample(4, np.random.default_rng(3))}


def neighbor_balls() -> Result:
    distribution = lk.density.KNNBalls(rows(("real", "real"), 30), 3)
    return {"log_prob": distribution.log_prob(rows(("real", "real"), 12, 8))}


def simple(make: Callable[[], Any], *columns: Any) -> Callable[[], Result]:
    return lambda: density(make(), rows(columns, 48), learns=False)


def scaled() -> Result:
    distribution = lk.mixture.ScaledCopies(lk.Gaussian([0.0, 1.0], np.eye(2)), [1.0, 100.0])
    return density(distribution, rows(("real", "real"), 48), learns=False)


def table_of_probabilities() -> Result:
    table = lk.distributions.ProbabilityTable(a={"x": 0.3, "y": 0.7}, b={"u": 0.2, "v": 0.8})
    return {"repr": repr(table)}


def word_network() -> Result:
    words = [lk.HMM([1.0, 0.0], [[0.7, 0.3], [0.0, 0.8]], lk.Gaussian(m, np.eye(2)), final=[0.0, 0.2]) for m in WORDS]
    network = lk.speech.WordNetwork(words, ("a", "b"))
    x = np.concatenate([frames(6, 2), 3 + frames(6, 2, 3)])
    return {"decode": network.decode(x), "log_prob": network.log_prob([x])}


WORDS = ([[0.0, 0.0], [0.5, 0.5]], [[3.0, 3.0], [3.5, 3.0]])


def alignments() -> Result:
    a, b = frames(12, 2), frames(15, 2, 5)
    found = lk.dtw(a, b)
    return {
        "total": found.total,
        "path": found.path,
        "matrix": lk.alignment.dtw_matrix([a, b, a[:7]]),
        "barycenter": lk.alignment.barycenter([a, b, a[:9]]),
        "places": lk.alignment.subsequence_dtw(a[3:7], np.concatenate([b, a])),
    }


def clusterings() -> Result:
    x = rows(("real", "real"), 40)
    tree = lk.cluster.linkage(x)
    return {"heights": tree.heights, "merges": tree.merges, "silhouette": lk.metrics.silhouette_score(x, x[:, 0] > 0)}


def decisions() -> Result:
    p = np.random.default_rng(1).dirichlet([0.7] * 3, 20)
    cost = lk.Cost([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [1.0, 4.0, 0.0]])
    return {
        "plain": lk.decide(p),
        "cost": lk.decide(p, cost=cost),
        "expected": lk.decide(p, cost=cost, full=True).expected_costs,
        "reject": lk.decide(p, cost=cost, reject_cost=0.5).astype(str),
    }


def divergences() -> Result:
    a, b = lk.Gaussian([0.0, 1.0], np.eye(2)), lk.Gaussian([1.0, 1.0], [[2.0, 0.3], [0.3, 1.0]])
    return {
        "kl": lk.kl_divergence(a, b),
        "bhattacharyya": lk.decision.bhattacharyya_bound(a, b),
        "chernoff": lk.decision.chernoff_bound(a, b),
        "entropy": lk.entropy(b),
    }


OTHERS: dict[str, tuple[Callable[[], Result], float]] = {
    "hmm": (hmm, CLOSED),
    "hmm of symbols with final probabilities": (hmm_of_symbols, CLOSED),
    "regressions": (regressions, ITERATED),
    "hmm with covariates": (driven_hmm, CLOSED),
    "linear-gaussian": (linear_gaussian, CLOSED),
    "local level, diffuse": (local_level, CLOSED),
    "linear sde": (continuous, CLOSED),
    "extended kalman": (lambda: gaussian_filter(lambda m: lk.ExtendedKalmanFilter(m)), ITERATED),
    "unscented kalman": (lambda: gaussian_filter(lambda m: lk.UnscentedKalmanFilter(m)), ITERATED),
    "cubature kalman": (lambda: gaussian_filter(lambda m: lk.statespace.CubatureKalmanFilter(m)), ITERATED),
    "particle filter": (particle_filter, ITERATED),
    "interacting models": (interacting, ITERATED),
    "rao-blackwellized filter": (rao_blackwell, ITERATED),
    "switching learner": (switching_learner, ITERATED),
    "live": (live, ITERATED),
    "other priors": (other_priors, CLOSED),
    "histogram": (histogram, CLOSED),
    "nearest-neighbor balls": (neighbor_balls, CLOSED),
    "multinomial": (simple(lambda: lk.Multinomial([0.2, 0.3, 0.5], 4.0), "count", "count", "count"), CLOSED),
    "dirichlet-multinomial": (
        simple(lambda: lk.distributions.DirichletMultinomial([1.0, 2.0, 3.0]), *("count",) * 3),
        CLOSED,
    ),
    "beta-negative-binomial": (simple(lambda: lk.distributions.BetaNegativeBinomial(3.0, 4.0, 2.0), "count"), CLOSED),
    "grid": (
        simple(lambda: lk.distributions.GridDistribution(0.0, 0.5, [0.1, 0.4, 0.3, 0.2]), Pieces((0.0, 1.9))),
        CLOSED,
    ),
    "scaled copies": (scaled, CLOSED),
    "probability table": (table_of_probabilities, CLOSED),
    "word network": (word_network, CLOSED),
    "alignments": (alignments, CLOSED),
    "clusterings": (clusterings, CLOSED),
    "decisions": (decisions, CLOSED),
    "divergences": (divergences, ITERATED),
}


def cases() -> Iterator[tuple[str, Callable[[], Result], float]]:
    """Name, what makes the numbers, tolerance."""
    for member in MEMBERS:
        yield f"density/{member.name}", lambda m=member: of_member(m), ITERATED if member.hidden else CLOSED
    for pair in PAIRS:
        yield f"prior/{pair.name}", lambda p=pair: of_pair(p), CLOSED
    for name, (make, tolerance) in OTHERS.items():
        yield f"value/{name}", make, tolerance

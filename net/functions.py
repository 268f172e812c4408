"""Golden numbers of public functions: scores, bounds, choices, readers, and the values that they return."""

from __future__ import annotations

import tempfile
import wave
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import likely as lk
from net.estimators import FEW, LABELS, REAL, WALKS, WITH_GAPS, hmm, mixture
from net.values import CLOSED, ITERATED, Result, frames, rows

FIRST, SECOND = np.arange(24) % 3, np.arange(24) // 5 % 4  # two partitions of the same rows
COPIES = 1.0 + np.arange(24) % 2
NEAR, FAR = lk.Gaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 1.0]]), lk.Gaussian([2.0, 1.0], [[2.0, 0.0], [0.0, 0.5]])
POSTERIOR = np.random.default_rng(1).dirichlet([0.7] * 3, 20)
TRUTH = np.arange(20) % 3
JOINT = np.array([[0.2, 0.1, 0.05], [0.05, 0.3, 0.3]])


def partitions() -> Result:
    scores = (
        *(
            lk.metrics.rand_index,
            lk.metrics.adjusted_rand_index,
            lk.metrics.fowlkes_mallows,
            lk.metrics.normalized_mutual_information,
        ),
        *(
            lk.metrics.adjusted_mutual_information,
            lk.metrics.variation_of_information,
            lk.metrics.v_measure,
            lk.metrics.purity,
            lk.metrics.best_matching,
        ),
    )
    out = {score.__name__: [score(FIRST, SECOND), score(FIRST, SECOND, COPIES)] for score in scores}
    return {**out, "contingency_table": lk.metrics.contingency_table(FIRST, SECOND, COPIES).table}


def clusters() -> Result:
    x, found = REAL, (REAL[:, 0] > 0).astype(int)
    return {
        "calinski_harabasz": lk.metrics.calinski_harabasz(x, found),
        "davies_bouldin": lk.metrics.davies_bouldin(x, found),
        "silhouette_samples": lk.metrics.silhouette_samples(x, found),
        "bic_curve": lk.cluster.bic_curve(lk.cluster.linkage(x), x),
        "choose_k": lk.choose_k(x, range(1, 5), n_init=2),
        "choose_components": lk.choose_components(mixture(), x, range(1, 4)),
        "check_unimodality": lk.metrics.check_unimodality(x, LABELS, np.full(len(x), "a")),
    }


def counts() -> Result:
    return {
        "log_stirling2": [lk.cluster.log_stirling2(25, 5), lk.cluster.log_stirling2(10_000, 100)],
        "number_of_paths": [lk.alignment.number_of_paths(5, 4), lk.alignment.number_of_paths(5, 4, diagonal=False)],
    }


def bounds() -> Result:
    return {
        "bayes_error": [lk.bayes_error(lk.Poisson(1.0), lk.Poisson(4.0)), lk.bayes_error(NEAR, FAR, n=500)],
        "bayes_error_from_neighbors": lk.decision.bayes_error_from_neighbors(0.18, 3),
        "cover_hart_bound": lk.decision.cover_hart_bound(0.1, 3),
        "fano_bound": lk.decision.fano_bound(0.7, 3),
        "hellman_raviv_bound": lk.decision.hellman_raviv_bound(0.7),
        "squared_error_bound": lk.decision.squared_error_bound(POSTERIOR, TRUTH),
        "cross_entropy_bound": lk.decision.cross_entropy_bound(POSTERIOR, TRUTH),
        "error_bounds": lk.decision.error_bounds(POSTERIOR, truth=TRUTH),
    }


def information() -> Result:
    p, q = lk.Categorical([0.2, 0.3, 0.5]), lk.Categorical([0.5, 0.3, 0.2])
    return {
        "cross_entropy": [lk.information.cross_entropy(p, q), lk.information.cross_entropy(NEAR, FAR)],
        "js_divergence": [
            lk.information.js_divergence(p, q),
            lk.information.js_divergence(NEAR, FAR, n=500, rng=np.random.default_rng(2)),
        ],
        "conditional_entropy": lk.information.conditional_entropy(JOINT, given=0),
        "mutual_information": [lk.mutual_information(JOINT), lk.mutual_information(NEAR, split=[0])],
        "of two columns": lk.mutual_information(REAL[:, :1], REAL[:, 1:2]),
    }


def posteriors() -> Result:
    prior, new = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    of_two = POSTERIOR[:, :2] / POSTERIOR[:, :2].sum(axis=1, keepdims=True)
    return {
        "change_prior": lk.change_prior(POSTERIOR, prior, new),
        "combine_posteriors": lk.combine_posteriors([POSTERIOR, POSTERIOR[::-1]], prior),
        "fault_alarms": lk.statespace.fault_alarms(of_two, [[0, 5], [1, 0]]),
        "operating_threshold": lk.metrics.operating_threshold(POSTERIOR[:, 1], TRUTH == 1, 0.4, [[0, 5], [1, 0]]),
        "decide": lk.decide(POSTERIOR, reject_cost=0.3, full=True),
    }


def sequential() -> Result:
    """Tests and charts that go from row to row."""
    test, chart = lk.decision.SPRT(alpha=0.05, beta=0.1), lk.decision.CUSUM.for_shift(1.0, false_alarm_every=500.0)
    for step in frames(12, 1)[:, 0]:
        test, chart = test.step(step), chart.step(step)
    fair = lk.HMM([1.0], [[1.0]], lk.Categorical([[0.5, 0.5]]))
    return {"step": lk.step(fair, None, 1)[1], "sprt": test, "verdict": test.verdict,
            "thresholds": test.thresholds, "cusum": chart, "alarm": chart.alarm}  # fmt: skip


def evaluation() -> Result:
    cost = [[0, 1, 5], [2, 0, 1], [1, 4, 0]]
    return {
        "evaluate": lk.evaluate(lk.BayesClassifier(), REAL, LABELS, cv=3, cost=cost),
        "learning_curve": lk.model_selection.learning_curve(lk.BayesClassifier(), REAL, LABELS, sizes=[12, 30], cv=3),
        "hughes_curve": lk.model_selection.hughes_curve(lk.BayesClassifier(), REAL, LABELS, dims=[1, 3], cv=3),
        "proportion_interval": [
            lk.metrics.proportion_interval(2, 178),
            lk.metrics.proportion_interval(2, 178, method="wilson"),
        ],
        "word_errors": lk.speech.word_errors("the cat sat", "the hat sat down"),
        "mahalanobis_goodness_of_fit": lk.metrics.mahalanobis_goodness_of_fit((REAL**2).sum(axis=1), 3),
    }


def boundaries() -> Result:
    found = lk.decision_boundary(NEAR, FAR, class_prior=[0.3, 0.7])
    plane = lk.decision.Hyperplane([3.0, 4.0], -5.0)
    return {"boundary": found, "kind": found.kind, "hyperplane": plane.distance(REAL[:, :2])}


def geometry() -> Result:
    near, at = lk.neighbors.NeighborSearch.of(REAL).nearest(REAL[:9] + 0.1, 3)
    return {
        "nearest": near,
        "at": at,
        "distance_diagnostics": lk.metrics.distance_diagnostics(REAL, n_neighbors=5),
        "hubness": lk.metrics.hubness(at, len(REAL)),
        "intrinsic_dimension": lk.metrics.intrinsic_dimension(np.sort(np.abs(REAL), axis=1)),
        "gaussian_shell": lk.metrics.gaussian_shell(16),
        "relative_contrast": lk.metrics.relative_contrast([1.0, 2.0], [3.0, 2.5]),
        "shell_to_ball_ratio": lk.metrics.shell_to_ball_ratio(16, 0.1),
        "shell_volume_fraction": lk.metrics.shell_volume_fraction(10, 0.1),
        "edited": lk.neighbors.edited_nearest_neighbors(REAL, LABELS),
        "condensed": lk.neighbors.condensed_nearest_neighbor(REAL, LABELS),
        "coulomb_potential": lk.density.coulomb_potential(REAL, REAL[:5]),
    }


def sums() -> Result:
    dice = lk.Categorical(np.full(6, 1 / 6), levels=[1, 2, 3, 4, 5, 6])
    return {
        "convolve": lk.distributions.convolve(lk.Poisson(1.0), lk.Poisson(2.0)),
        "sum_of": lk.distributions.sum_of(dice, copies=2).log_prob([2, 7, 12]),
        "beta": lk.distributions.sum_of(lk.Beta(1, 1), copies=2).cdf([0.5, 1.0]),
    }


def estimation() -> Result:
    x = rows(("positive",), 30)
    near, far = lk.Gaussian([0.0], 1.0), lk.Gaussian([0.0], 25.0)
    rules = ("maximum likelihood", "unbiased", "moments")
    return {
        **{rule: lk.estimate(lk.Exponential, x, rule) for rule in rules},
        "predictive": lk.estimate(lk.Bernoulli, [[1], [1], [0]], "predictive", prior=lk.Beta(2, 2)),
        "interpolation_weights": lk.mixture.interpolation_weights([near, far], REAL[:, :1]).weights,
        "impute": lk.impute(NEAR, WITH_GAPS[:12, :2]),
        "drawn": lk.impute(NEAR, WITH_GAPS[:12, :2], np.random.default_rng(4)),
        "equalize_histogram": lk.density.equalize_histogram([0, 0, 0, 0, 1, 1, 2, 3], levels=4),
        "to a density": lk.density.equalize_histogram([[5, 5], [7, 9]], to=near),
        "sketch": lk.core.Sketch.of(REAL[:, :1].round(), size=8),
        "maximum_entropy": lk.distributions.maximum_entropy(values=[1, 2, 3, 4, 5, 6], expect={"mean": 4.5}).probs,
        "declare_constraints": lk.inference.declare_constraints("Rayleigh", scale="positive"),
    }


def loops() -> Result:
    """EM step by step, from a stream, and in blocks."""
    start = lk.Mixture([0.5, 0.5], lk.Gaussian([[-1.0], [1.0]], 1.0))
    x = REAL[:, :1]
    blocks = list(lk.core.Blocks.of(x, rows=16))
    *_, last = lk.online_em(start, blocks, step=0.7)
    return {
        "iterate": list(islice(lk.core.iterate(start, x), FEW)),
        "block": blocks[1],
        "online_em": last,
        "fit": [
            lk.fit(start, x, stop=lk.StoppingRule(5, 0.0), engine=e) for e in (lk.core.Serial(), lk.core.Threads(2))
        ],
        "robbins-monro": lk.inference.RobbinsMonro(lk.Gaussian([0.0], 1.0), power=1.0, average=False).run(x),
    }


def approximations() -> Result:
    def log_density(z: np.ndarray) -> Any:
        return -0.5 * ((z - [1.0, 2.0]) ** 2 / [1.0, 4.0]).sum(axis=-1)

    found = lk.inference.laplace_approximation(log_density, [0.0, 0.0])
    sampled = lk.inference.smc_sampler(
        lk.Gaussian([0.0], 1.0), likelihood=lambda x: -0.5 * (x[:, 0] - 1.0) ** 2, n_particles=60
    )
    return {"laplace": found, "smc": sampled, "moments": [sampled.mean, sampled.covariance, sampled.log_evidence]}


def state_space() -> Result:
    trend, season = lk.LinearGaussian.local_trend(0.1, 0.0, 1.0), lk.LinearGaussian.seasonal(4, 0.1)
    y = np.arange(20) + np.tile([1.0, 0.0, -1.0, 0.0], 5)
    level, seen = lk.LinearGaussian.local_level(1.0, 1.0), frames(80, 1) + rows(("real",), 80)
    return {
        "structural_components": lk.statespace.structural_components((trend + season).smooth(y), trend, season),
        "standard_errors": lk.statespace.standard_errors(level, seen, ["observation_covariance"]),
        "choose_states": lk.choose_states(hmm(1), WALKS, (1, 2), cv=3),
    }


def words() -> Result:
    bigram = lk.speech.learn_bigram([["yes", "no"], ["no"]], ["no", "yes"], alpha=0.5)
    pattern = lk.alignment.StepPattern((((1, 1, 1.0),), ((1, 0, 1.5),), ((0, 1, 1.5),)))
    return {"bigram": bigram, "dtw": lk.dtw(WALKS[0], WALKS[1], step_pattern=pattern)}


def files() -> Result:
    """What is written comes back."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "rows.csv").write_text("size;color\n1.5;red\nNA;blue\n")
        (at / "walks.csv").write_text("who,t,x\nann,2,5\nbob,1,6\nann,1,7\n")
        with wave.open(str(at / "a.wav"), "wb") as recording:
            recording.setparams((1, 2, 8000, 0, "NONE", ""))
            recording.writeframes(b"\x00\x40\x00\xc0")
        lk.save(NEAR, at / "model.likely")
        lk.fit(
            mixture_start(), REAL[:, :1], stop=lk.StoppingRule(2, 0.0), checkpoint=lk.core.Checkpoint(at / "em.likely")
        )
        walks = lk.read_sequences(at / "walks.csv", id="who", time="t")
        return {
            "read_table": [list(row) for row in lk.read_table(at / "rows.csv").rows()],
            "read_sequences": walks,
            "table": lk.Table.of({"size": [1.5, 2.0], "class": ["a", "b"]}, target="class"),
            "columns": dict(lk.core.Columns(size=[[1.0, 2.0], [3.0, 4.0]], color=["red", "blue"])),
            "read_wav": lk.speech.read_wav(at / "a.wav"),
            "load": lk.load(at / "model.likely"),
            "resumed": lk.fit(mixture_start(), REAL[:, :1], stop=lk.StoppingRule(4, 0.0),
                              checkpoint=lk.core.Checkpoint(at / "em.likely")).model,
        }  # fmt: skip


def converted() -> Result:
    """Models of other libraries: of those that are not installed, objects with their names and attributes."""
    from sklearn.naive_bayes import GaussianNB

    def foreign(module: str, name: str, **attributes: Any) -> Any:
        return type(name, (), {"__module__": module, **attributes})()

    eye = np.eye(2)
    poisson = foreign("hmmlearn.hmm", "PoissonHMM", startprob_=[0.6, 0.4], transmat_=[[0.9, 0.1], [0.2, 0.8]],
                      lambdas_=[[1.0], [5.0]])  # fmt: skip
    filtered = foreign(
        "pykalman.standard", "KalmanFilter", transition_matrices=[[1.0, 0.1], [0.0, 0.9]],
        transition_offsets=[0.1, 0.0], transition_covariance=None, observation_matrices=[[1.0, 0.0]],
        observation_offsets=None, observation_covariance=[[2.0]], initial_state_mean=None, initial_state_covariance=eye,
        n_dim_state=2, n_dim_obs=1,
    )  # fmt: skip
    system = foreign(
        "statsmodels", "FilterResults", transition=eye[..., None], state_intercept=np.zeros((2, 1)),
        selection=eye[..., None], state_cov=0.5 * eye[..., None], design=np.ones((1, 2, 1)),
        obs_intercept=np.zeros((1, 1)),
        obs_cov=np.ones((1, 1, 1)), initial_state=np.zeros(2), initial_state_cov=0 * eye,
        initial_diffuse_state_cov=np.diag([1.0, 0.0]), filter_timing=0,
    )  # fmt: skip
    results = foreign("statsmodels.tsa.statespace.mlemodel", "MLEResults", filter_results=system)
    return {
        "sklearn": lk.from_sklearn(GaussianNB().fit(REAL, LABELS)).log_posterior(REAL[:5]),
        "hmmlearn": lk.from_hmmlearn(poisson).log_prob([[[1.0], [4.0], [6.0]]]),
        "pykalman": lk.from_pykalman(filtered).smooth([1.0, 2.0, 4.0]).mean,
        "statsmodels": lk.from_statsmodels(results).smooth([1.0, 2.0, 4.0]).mean,
    }


def descriptions() -> Result:
    density, chain = lk.GaussianDensity().fit(REAL), mixture_start()
    return {"density": density.describe(), "value": chain.describe(), "text": str(chain.describe())}


def mixture_start() -> Any:
    return lk.Mixture([0.5, 0.5], lk.Gaussian([[-1.0], [1.0]], [[[1.0]], [[2.0]]]))


def bases() -> Result:
    x = REAL[:, :2]
    every = [
        *(
            lk.basis.Identity(),
            lk.basis.Polynomial(3, scaled=True),
            lk.basis.OrthogonalPolynomial(4),
            lk.basis.OrthogonalPolynomial(4, "hermite"),
        ),
        *(
            lk.basis.GaussianBasis(3),
            lk.basis.SigmoidBasis(3),
            lk.basis.Fourier(2),
            lk.basis.BSpline(4),
            lk.basis.PiecewiseLinear(3),
        ),
        *(
            lk.basis.FunctionBasis(np.cos),
            lk.basis.Interactions([lk.basis.Fourier(1, 3.0), lk.basis.PerColumn({0: lk.basis.Identity()})]),
        ),
    ]
    fitted = [basis.fitted(x, 1.0 + np.arange(len(x)) % 3) for basis in every]
    out = {f"{i} {type(basis).__name__}": [basis.design(x[:7]), basis.names("ab")] for i, basis in enumerate(fitted)}
    return {**out, "one-hot": lk.basis.OneHot(["a", "b", "c"]).design(["c", "a", "b"])}


def compared() -> Result:
    from sklearn.linear_model import BayesianRidge, Ridge

    X, y = REAL[:, :2], REAL[:, 2]
    prior = lk.priors.NormalInverseWishart([0.0, 0.0], 0.1, np.eye(2), 4.0)
    densities = lk.compare({"prior": prior, "estimator": lk.GaussianDensity(prior=prior)}, X)
    classifiers = lk.compare([lk.BayesClassifier(), lk.PriorClassifier()], X, LABELS)
    regressions = lk.compare([BayesianRidge()], X, y)
    every = {"densities": densities, "classifiers": classifiers, "regressions": regressions}
    out: Result = {
        name: [found.log_evidence, found.probabilities, found.log_score, found.difference, found.weights]
        for name, found in every.items()
    }
    split, cross = lk.ConformalRegressor(Ridge()), lk.ConformalRegressor(BayesianRidge(), "cross", cv=3)
    both = [model.fit(X, y).interval(X[:5], 0.6) for model in (split, cross)]
    return {
        **out,
        "best": [found.best for found in every.values() if isinstance(found, lk.model_selection.Comparison)],
        "ConformalRegressor": both,
    }


def real_targets() -> Result:
    import polars as pl

    X, y = pl.DataFrame(REAL[:, :2], schema=["a", "b"]), REAL[:, 2]
    X = X.with_columns(pl.Series("word", [["u", "v", None][i % 3] for i in range(len(y))]))
    m = lk.automl.TableRegressor().fit(X, y)
    splines = lk.automl.EncodedRegressor(lk.BayesianLinearRegression(), "splines").fit(X, y)
    z = lk.model_selection.ResidualDistribution.of(y)
    p = lk.model_selection.ResidualPredictive(y[:4], np.ones(4), z)
    e = lk.metrics.RegressionEvaluation.of(m.predictive(X), y, loss="asymmetric", over=3.0, under=1.0)
    told = m.explain(X[:3])
    near = lk.neighbors.KNeighborsRegressor("leave-one-out").fit(REAL[:, :2], y)
    return {
        "table": [m.predict(X[:5]), m.interval(X[:5]), m.decide(X[:5], "absolute")],
        "neighbors": [near.n_neighbors_, near.predict(REAL[:5, :2], return_std=True), near.interval(REAL[:5, :2])],
        "splines": splines.predict(X[:5], return_std=True),
        "residuals": [z.quantile([0.05, 0.5]), z.log_prob([0.0, 9.0]), p.quantile(0.9), p.log_prob_each(y[:4])],
        "evaluation": [e.rmse, e.mean_loss, e.log_score, e.interval_score, e.coverage],
        "explanation": [told.base, told.contributions, isinstance(told, lk.automl.RegressionExplanation)],
    }


CASES: dict[str, tuple[Callable[[], Result], float]] = {
    "regression of a table": (real_targets, ITERATED),
    "scores of partitions": (partitions, CLOSED),
    "bases": (bases, CLOSED),
    "comparison and conformal intervals": (compared, ITERATED),
    "clusters": (clusters, ITERATED),
    "counts": (counts, CLOSED),
    "bounds of errors": (bounds, ITERATED),
    "information": (information, ITERATED),
    "posteriors": (posteriors, CLOSED),
    "sequential tests": (sequential, ITERATED),
    "evaluation": (evaluation, CLOSED),
    "boundaries": (boundaries, CLOSED),
    "geometry": (geometry, CLOSED),
    "sums": (sums, ITERATED),
    "estimation": (estimation, ITERATED),
    "loops of EM": (loops, ITERATED),
    "approximations": (approximations, ITERATED),
    "state space": (state_space, ITERATED),
    "words": (words, CLOSED),
    "descriptions": (descriptions, CLOSED),
    "converted": (converted, CLOSED),
    "files": (files, ITERATED),
}


def cases() -> Iterator[tuple[str, Callable[[], Result], float]]:
    """Name, what makes the numbers, tolerance."""
    for name, (make, tolerance) in CASES.items():
        yield f"function/{name}", make, tolerance

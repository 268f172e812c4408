"""Golden numbers of estimators: what each learns from a small table or a few sequences, and what it then says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

import likely as lk
from net.values import CLOSED, ITERATED, Result, answer, rows

FEW = 12  # passes of iterated fits: enough to show every step, few enough that rounding does not grow


def blobs(n: int = 60, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of real columns."""
    x, y = rows(("real",) * d, n), np.arange(n) % 3
    x[y == 1] += 2.0
    x[y == 2, 0] -= 3.0
    return x, np.array(["a", "b", "c"])[y]


REAL, LABELS = blobs()
WITH_GAPS = np.where(np.random.default_rng(9).random(REAL.shape) < 0.15, np.nan, REAL)
COUNTS = rows(("count",) * 3, 60)
BINARY = rows((2,) * 4, 60)
LEVELS = rows((3, 4), 60)
POSITIVE = rows(("positive", "positive"), 60)
SHARES = rows(("unit",) * 3, 60)
ANGLES = np.random.default_rng(6).vonmises(0.5, 2.0, (60, 1))
TRIALS = np.minimum(COUNTS, 6.0)
WALKS = [np.cumsum(0.5 * np.random.default_rng(k).standard_normal((12 + k, 2)), axis=0) for k in range(6)]
KINDS = np.array(["up", "down"] * 3)
WALKS = [w + (np.arange(len(w))[:, None] * (0.3 if k == "up" else -0.3)) for w, k in zip(WALKS, KINDS, strict=True)]

COST = [[0, 1, 5], [2, 0, 1], [1, 4, 0]]

DENSITIES: dict[str, tuple[Callable[[], Any], np.ndarray, float]] = {
    "gaussian full": (lambda: lk.GaussianDensity(), REAL, CLOSED),
    "gaussian diagonal": (lambda: lk.GaussianDensity("diagonal"), REAL, CLOSED),
    "gaussian spherical": (lambda: lk.GaussianDensity("spherical"), REAL, CLOSED),
    "gaussian maximum likelihood": (lambda: lk.GaussianDensity(prior=None), REAL, CLOSED),
    "gaussian predictive": (lambda: lk.GaussianDensity(predictive="all"), REAL, CLOSED),
    "gaussian missing": (lambda: lk.GaussianDensity(max_iter=FEW, tol=0.0), WITH_GAPS, ITERATED),
    "student t": (lambda: lk.StudentTDensity(max_iter=FEW, tol=0.0), REAL, ITERATED),
    "student t fixed": (lambda: lk.StudentTDensity(dof=4.0, max_iter=FEW, tol=0.0), REAL, ITERATED),
    "contaminated": (lambda: lk.mixture.ContaminatedDensity(max_iter=FEW, tol=0.0), REAL, ITERATED),
    "elliptical": (lambda: lk.distributions.EllipticalDensity(max_iter=FEW), REAL, ITERATED),
    "laplace": (lambda: lk.LaplaceDensity(), REAL, CLOSED),
    "cauchy": (lambda: lk.distributions.CauchyDensity(), REAL, ITERATED),
    "uniform": (lambda: lk.UniformDensity(), REAL, CLOSED),
    "triangular": (lambda: lk.distributions.TriangularDensity(), REAL[:, :1], ITERATED),
    "exponential": (lambda: lk.ExponentialDensity(), POSITIVE, CLOSED),
    "gamma": (lambda: lk.GammaDensity(), POSITIVE, ITERATED),
    "chi-square": (lambda: lk.distributions.ChiSquareDensity(), POSITIVE, ITERATED),
    "beta": (lambda: lk.BetaDensity(), SHARES[:, :2], ITERATED),
    "dirichlet": (lambda: lk.DirichletDensity(), SHARES, ITERATED),
    "von mises": (lambda: lk.distributions.VonMisesDensity(), ANGLES, ITERATED),
    "poisson": (lambda: lk.PoissonDensity(), COUNTS, CLOSED),
    "poisson predictive": (lambda: lk.PoissonDensity(predictive=True), COUNTS, CLOSED),
    "negative binomial": (lambda: lk.NegativeBinomialDensity(), COUNTS, ITERATED),
    "binomial": (lambda: lk.BinomialDensity(trials=6), TRIALS, CLOSED),
    "beta-binomial": (lambda: lk.distributions.BetaBinomialDensity(trials=6), TRIALS, ITERATED),
    "multinomial": (lambda: lk.MultinomialDensity(), COUNTS, CLOSED),
    "dirichlet-multinomial": (lambda: lk.distributions.DirichletMultinomialDensity(), COUNTS + 1, ITERATED),
    "categorical": (lambda: lk.CategoricalDensity(), LEVELS[:, :1], CLOSED),
    "bernoulli": (lambda: lk.BernoulliDensity(), BINARY, CLOSED),
    "walsh": (lambda: lk.distributions.WalshDensity(), BINARY, CLOSED),
    "log-linear": (lambda: lk.distributions.WalshDensity(2, log=True), BINARY, ITERATED),
    "bahadur": (lambda: lk.distributions.BahadurDensity(), BINARY, CLOSED),
    "chow-liu tree": (lambda: lk.ChowLiuTreeDensity(), LEVELS, CLOSED),
    "product": (lambda: lk.ProductDensity(), REAL, CLOSED),
    "kernel density": (lambda: lk.KernelDensity(), REAL, ITERATED),
    "kernel density given": (lambda: lk.KernelDensity(kernel="epanechnikov", bandwidth="silverman"), REAL, CLOSED),
    "histogram": (lambda: lk.HistogramDensity(), REAL, CLOSED),
    "nearest-neighbor density": (lambda: lk.KNNDensity(3), REAL, CLOSED),
    "factor analysis": (lambda: lk.FactorAnalysis(1, max_iter=FEW, tol=0.0), rows(("real",) * 5, 60), ITERATED),
    "ppca": (lambda: lk.decomposition.PPCA(1), REAL, ITERATED),
    "mixture": (lambda: mixture(), REAL, ITERATED),
    "mixture hard": (lambda: mixture(hard=True), REAL, ITERATED),
    "mixture tied": (lambda: mixture(lk.GaussianDensity("pooled")), REAL, ITERATED),
    "mixture of diagonals": (lambda: mixture(lk.GaussianDensity("diagonal")), REAL, ITERATED),
    "mixture missing": (lambda: mixture(), WITH_GAPS, ITERATED),
    "mixture of counts": (lambda: mixture(lk.PoissonDensity()), COUNTS, ITERATED),
    "mixture of bernoullis": (lambda: mixture(lk.BernoulliDensity()), BINARY, ITERATED),
    "mixture, clusters": (lambda: lk.MixtureClusterer(n_components=3, random_state=0, max_iter=FEW), REAL, ITERATED),
    "pca": (lambda: lk.PCA(2), REAL, CLOSED),
    "k-means": (lambda: lk.KMeans(3, random_state=0), REAL, ITERATED),
    "agglomerative": (lambda: lk.AgglomerativeClustering(3), REAL, CLOSED),
}

CLASSIFIERS: dict[str, tuple[Callable[[], Any], np.ndarray, float]] = {
    "bayes": (lambda: lk.BayesClassifier(), REAL, CLOSED),
    "bayes pooled": (lambda: lk.BayesClassifier(lk.GaussianDensity("pooled")), REAL, CLOSED),
    "bayes shrunk-pooled": (lambda: lk.BayesClassifier(lk.GaussianDensity("shrunk-pooled")), REAL, ITERATED),
    "bayes shrunk-diagonal": (lambda: lk.BayesClassifier(lk.GaussianDensity("shrunk-diagonal")), REAL, ITERATED),
    "bayes missing": (lambda: lk.BayesClassifier(lk.GaussianDensity(max_iter=FEW)), WITH_GAPS, ITERATED),
    "bayes kernel density": (lambda: lk.BayesClassifier(lk.KernelDensity()), REAL, ITERATED),
    "bayes mixture": (lambda: lk.BayesClassifier(mixture(lk.GaussianDensity("diagonal"), 2)), REAL, ITERATED),
    "bayes calibrated": (lambda: lk.BayesClassifier(calibration="temperature"), REAL, ITERATED),
    "bayes with costs": (lambda: lk.BayesClassifier(cost=COST, reject_cost=0.5), REAL, CLOSED),
    "naive bayes": (lambda: lk.NaiveBayes(), REAL, CLOSED),
    "naive bayes counts": (lambda: lk.NaiveBayes("poisson"), COUNTS, CLOSED),
    "naive bayes categories": (lambda: lk.NaiveBayes("categorical"), LEVELS, CLOSED),
    "fisher": (lambda: lk.FisherDiscriminant(), REAL, CLOSED),
    "nearest neighbors": (lambda: lk.KNeighborsClassifier(), REAL, CLOSED),
    "nearest neighbors chosen": (lambda: lk.KNeighborsClassifier("leave-one-out"), REAL, CLOSED),
    "nearest centroid": (lambda: lk.NearestCentroidClassifier(), REAL, ITERATED),
    "prior only": (lambda: lk.PriorClassifier(), REAL, CLOSED),
    "calibrated logistic": (lambda: lk.CalibratedClassifier(lk.BayesClassifier(), "logistic"), REAL, ITERATED),
    "calibrated isotonic": (lambda: lk.CalibratedClassifier(lk.BayesClassifier(), "isotonic"), REAL, ITERATED),
    "table": (lambda: lk.TableClassifier(), REAL, ITERATED),
}

TARGET = 1.0 + REAL @ [1.0, 0.0, -0.5] + 0.3 * rows(("real",), 60, 8)[:, 0]
HALVES = np.stack([np.arange(len(REAL)) % 2, 1 - np.arange(len(REAL)) % 2], axis=1)  # responsibilities
REGRESSORS: dict[str, tuple[Callable[[], Any], float]] = {
    "least squares": (lambda: lk.LinearRegression(), CLOSED),
    "polynomial": (lambda: lk.LinearRegression(lk.basis.Polynomial(2)), CLOSED),
    "ridge": (lambda: lk.Ridge(2.0), CLOSED),
    "ridge by evidence": (lambda: lk.Ridge("evidence"), ITERATED),
    "ridge by leave-one-out": (lambda: lk.Ridge("leave-one-out"), ITERATED),
    "evidence": (lambda: lk.BayesianLinearRegression(), ITERATED),
    "relevance": (lambda: lk.BayesianLinearRegression(prior="ard"), ITERATED),
    "gaussian prior": (lambda: lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(4), 4.0)), ITERATED),
    "normal-gamma": (
        lambda: lk.BayesianLinearRegression(prior=lk.priors.NormalGamma(np.zeros(4), 1.0, 1.0, 1.0)),
        CLOSED,
    ),
    "mixture of regressions": (
        lambda: lk.linear_model.MixtureRegression(2, init=HALVES, max_iter=FEW, tol=0.0),
        ITERATED,
    ),
}

CHAINS: dict[str, tuple[Callable[[], Any], float]] = {
    "hmm": (lambda: hmm(2, lk.GaussianDensity()), ITERATED),
    "hmm left-to-right": (
        lambda: hmm(3, lk.GaussianDensity("diagonal"), topology="left-to-right"),
        ITERATED,
    ),
    "hmm hard": (lambda: hmm(2, hard=True), ITERATED),
    "hmm of mixtures": (
        lambda: hmm(2, mixture(lk.GaussianDensity("diagonal"), 2)),
        ITERATED,
    ),
    "linear-gaussian": (lambda: lk.LinearGaussianDensity(n_states=1, max_iter=FEW, accelerate=False), ITERATED),
    "switching": (lambda: lk.SwitchingDensity(2, max_iter=5, random_state=0), ITERATED),
    "hmm with names": (lambda: lk.automl.SequenceDensity(hmm(2)), ITERATED),
}

SEQUENCE_CLASSIFIERS: dict[str, tuple[Callable[[], Any], float]] = {
    "bayes of hmms": (lambda: lk.BayesClassifier(hmm(2)), ITERATED),
    "dtw": (lambda: lk.DTWClassifier(), CLOSED),
    "with names": (
        lambda: lk.automl.SequenceClassifier(lk.BayesClassifier(hmm(1))),
        ITERATED,
    ),
}


def mixture(component: Any = None, k: int = 3, **settings: Any) -> Any:
    return lk.MixtureDensity(component, k, random_state=0, max_iter=FEW, tol=0.0, **settings)


def hmm(states: int, component: Any = None, **settings: Any) -> Any:
    return lk.HMMDensity(component, states, random_state=0, max_iter=FEW, **settings)


BY_TYPE = {"stats_", "report_", "density_", "component_", "held_out_novelty_"}  # asked for by themselves, or settings


def fitted(estimator: Any) -> Result:
    """Public attributes that `fit` made, and the trace of an iterated fit."""
    out = {"@type": type(estimator).__name__}
    for name, value in sorted(vars(estimator).items()):
        if name.endswith("_") and not name.startswith("_"):
            out[name] = f"<{type(value).__name__}>" if name in BY_TYPE else value
    report = getattr(estimator, "report_", None)
    if report is not None:
        out["trace"] = [float(v) for v in report.trace]
        out["reason"] = report.reason
    return {**out, "statistics": getattr(estimator, "stats_", None)}


ASKED = ("score_samples", "predict", "predict_proba", "transform", "log_posterior", "novelty_score")


def answers(estimator: Any, x: Any) -> Result:
    """What a fitted estimator says of rows or sequences."""
    out = {name: answer(lambda n=name: getattr(estimator, n)(x)) for name in ASKED if hasattr(estimator, name)}
    if hasattr(estimator, "decide"):
        out["decide"] = answer(lambda: np.asarray(estimator.decide(x)).astype(str))
        out["expected cost"] = answer(lambda: estimator.decide(x, full=True).expected_costs)
    if hasattr(estimator, "sample"):
        out["sample"] = answer(lambda: estimator.sample(3, random_state=0))
    return out


def of_rows(make: Callable[[], Any], x: np.ndarray, y: np.ndarray | None = None) -> Result:
    weight = 1.0 + np.arange(len(x)) % 2
    labels = () if y is None else (y,)
    learned = make().fit(x, *labels)
    weighted = answer(lambda: make().fit(x, *labels, sample_weight=weight))
    out = {"fitted": fitted(learned), "answers": answers(learned, x[:15])}
    if not isinstance(weighted, str):
        out["weighted"] = answers(weighted, x[:6])
    return out


def of_targets(make: Callable[[], Any]) -> Result:
    learned = make().fit(REAL, TARGET, sample_weight=1.0 + np.arange(60) % 2)
    out = {
        "fitted": fitted(learned),
        "predictive": learned.predictive(REAL[:6]),
        "interval": learned.interval(REAL[:6], 0.8),
        "decide": learned.decide(REAL[:6], "asymmetric", over=3.0, under=1.0),
    }
    if hasattr(learned, "posterior"):
        return {**out, "posterior": learned.posterior(REAL[:6], TARGET[:6])}
    functions, kernel = learned.sample_functions(REAL[:6], 2, 0), learned.equivalent_kernel(REAL[:3], REAL[:4])
    return {**out, "functions": functions, "kernel": kernel}


def of_sequences(make: Callable[[], Any], y: np.ndarray | None = None) -> Result:
    learned = make().fit(WALKS) if y is None else make().fit(WALKS, y)
    return {"fitted": fitted(learned), "answers": answers(learned, WALKS[:3])}


def driven() -> Result:
    u = [np.sin(np.arange(float(len(w))))[:, None] for w in WALKS]
    learned = lk.HMMDensity(n_states=2, random_state=0, max_iter=1).fit(lk.core.with_covariates(WALKS, u))
    return {"fitted": fitted(learned)}


def switching_regression() -> Result:
    y = np.sin(np.arange(90.0) / 7.0) + np.where(np.arange(90) // 30 % 2, 3.0, 0.0) + 0.3 * rows(("real",), 90, 4)[:, 0]
    labels = np.arange(90) // 30 % 2
    out = {}
    for name, settings in {"lags": {"lags": 1}, "mean-adjusted": {"lags": 2, "mean_adjusted": True}}.items():
        learned = lk.linear_model.SwitchingRegression(2, init=labels, max_iter=FEW, **settings).fit(y)
        out[name] = {
            "fitted": fitted(learned),
            "smooth": learned.smooth(y[:12]),
            "predict": learned.predict(y[:12]),
            "viterbi": learned.viterbi(y),
            "forecast": learned.forecast(y, 3).mean,
        }
    return out


def spoken_words() -> Result:
    t = np.arange(1600) / 8000
    recordings = [np.sin(2 * np.pi * (300 + 200 * (k % 2) + 5 * k) * t) for k in range(6)]
    noise = np.random.default_rng(0)
    recordings = [s + 0.05 * noise.standard_normal(len(s)) for s in recordings]
    learned = lk.speech.SpokenWords(2, 1, max_iter=3).fit(recordings, np.array(["low", "high"] * 3))
    return {
        "fitted": fitted(learned),
        "log_posterior": learned.log_posterior(recordings),
        "cepstra": lk.speech.MFCC()(recordings[0]),
    }


def fault_monitor() -> Result:
    x = rows(("real",) * 3, 120)
    x[80:, 0] += 2.0
    learned = lk.FaultMonitor().fit([x[:80], x[80:]], np.array(["normal", "leak"]))
    return {"fitted": fitted(learned), "watch": learned.watch(x[70:90])}


def tracker() -> Result:
    dots = [np.array([[t * 1.0, 2.0 * t], [20.0 - t, 5.0]]) for t in range(12)]
    return {"track": lk.Tracker(clutter_density=0.01, detection_probability=0.9, speed=2.0).run(dots)}


def novelty_of_copies() -> Result:
    """Each row three times: what is left out is left out with its copies."""
    learned = lk.BayesClassifier(novelty=0.1).fit(np.repeat(REAL, 3, axis=0), np.repeat(LABELS, 3))
    return {
        "decide": np.asarray(learned.decide(2.0 * REAL)).astype(str),
        "novelty_score": learned.novelty_score(2.0 * REAL),
    }


def calibrated_discriminant() -> Result:
    x, y = REAL[LABELS != "c"], LABELS[LABELS != "c"]
    learned = lk.CalibratedClassifier(LinearSVC(), "auto").fit(x, y)
    return {"method": learned.method_, "predict_proba": learned.predict_proba(x)}


def thin_part() -> Result:
    x = np.concatenate([REAL, 5.0 + 0.001 * rows(("real",) * 3, 50)])
    return {"parts": mixture(k=2).fit(x).model_}


def sensors_that_agree() -> Result:
    level = np.cumsum(rows(("real",), 300)[:, 0])
    y = np.column_stack([level, level + 1e-4 * rows(("real",), 300, 3)[:, 0]]) + 0.3 * rows(("real",), 300, 5)
    start = lk.LinearGaussian(
        transition=np.eye(1),
        process_covariance=np.eye(1),
        observation=np.ones((2, 1)),
        observation_covariance=np.eye(2),
        initial_mean=np.zeros(1),
        initial_covariance=9 * np.eye(1),
    )
    learned = lk.LinearGaussianDensity(start, ["process_covariance", "observation_covariance"], max_iter=60).fit([y])
    noise = learned.model_.observation_covariance
    return {"reason": learned.report_.reason, "correlation": np.corrcoef(noise).round(3)}


def table_clusterer() -> Result:
    learned = lk.automl.TableClusterer(3, n_init=1).fit(REAL)
    return {"fitted": fitted(learned), "labels": learned.predict(REAL)}


OTHERS: dict[str, tuple[Callable[[], Result], float]] = {
    "hmm with covariates": (driven, ITERATED),
    "switching regression": (switching_regression, ITERATED),
    "spoken words": (spoken_words, ITERATED),
    "fault monitor": (fault_monitor, ITERATED),
    "tracker": (tracker, ITERATED),
    "table clusters": (table_clusterer, ITERATED),
    "novelty of copies": (novelty_of_copies, ITERATED),
    "calibrated discriminant": (calibrated_discriminant, ITERATED),
    "thin part": (thin_part, ITERATED),
    "sensors that agree": (sensors_that_agree, ITERATED),
}


def cases() -> Iterator[tuple[str, Callable[[], Result], float]]:
    """Name, what makes the numbers, tolerance."""
    for name, (make, x, tolerance) in DENSITIES.items():
        yield f"estimator/{name}", lambda m=make, x=x: of_rows(m, x), tolerance
    for name, (make, x, tolerance) in CLASSIFIERS.items():
        yield f"classifier/{name}", lambda m=make, x=x: of_rows(m, x, LABELS), tolerance
    for name, (make, tolerance) in REGRESSORS.items():
        yield f"regressor/{name}", lambda m=make: of_targets(m), tolerance
    for name, (make, tolerance) in CHAINS.items():
        yield f"sequences/{name}", lambda m=make: of_sequences(m), tolerance
    for name, (make, tolerance) in SEQUENCE_CLASSIFIERS.items():
        yield f"sequence classifier/{name}", lambda m=make: of_sequences(m, KINDS), tolerance
    for name, (make, tolerance) in OTHERS.items():
        yield f"recognizer/{name}", make, tolerance

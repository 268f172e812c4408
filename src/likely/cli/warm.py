"""`likely warm`: precompile the Numba functions of all or some subjects."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import click

from likely.core.job_size import job
from likely.numerics import compile

EPILOG = """\b
Examples:
  likely warm
  likely warm hmm kalman
The compiled functions are cached in the folder that `likely info` shows.
"""


@click.command(epilog=EPILOG)
@click.argument("subjects", nargs=-1, metavar="[SUBJECT]...")
def warm(subjects: tuple[str, ...]) -> None:
    """Precompile the Numba functions: the machine code is cached, and later runs load it in milliseconds.

    SUBJECT is one of gaussian, missing, mixture, kmeans, hierarchy, hmm, kalman, switching, particle, words, dtw,
    neighbors, kernel-density, binary.  [all of them]
    """
    unknown = [name for name in subjects if name not in JOBS]
    if unknown:
        raise click.UsageError(f"unknown subject {unknown[0]!r}: choose from {', '.join(JOBS)}.")
    compile.ANNOUNCES = False  # compiling is what the command is for
    start = perf_counter()
    for name in dict.fromkeys(subjects or JOBS):
        began = perf_counter()
        with job(math.inf):  # small jobs would not compile
            JOBS[name]()
        click.echo(f"{name}: {perf_counter() - began:.1f} s", err=True)
    click.echo(f"{len(compiled_loops())} compiled functions are ready after {perf_counter() - start:.1f} s")


def compiled_loops() -> dict[str, int]:
    """The loaded compiled functions, with the number of compiled signatures."""
    loaded = {name: vars(module) for name, module in sys.modules.items() if name.startswith("likely.")}
    found = ((name, function, value) for name, names in loaded.items() for function, value in names.items())
    return {
        f"{name}.{function}": len(getattr(value.dispatcher, "signatures", ()))
        for name, function, value in found
        if isinstance(value, compile.CompiledFunction) and not function.startswith("_")
    }  # helpers with an underscore live inside of others


def _rows(dtype: Any) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    y = np.arange(600) % 5
    return (rng.normal(size=(600, 5)) + y[:, None]).astype(dtype), y


def _complete() -> None:
    """Classifiers without missing values, in both precisions."""
    import likely as lk

    for dtype in ("float64", "float32"):
        X, y = _rows(dtype)
        for kind in ("full", "pooled", "diagonal", "spherical"):
            lk.BayesClassifier(lk.GaussianDensity(kind)).fit(X, y).predict_proba(X.repeat(8, axis=0))
        lk.NaiveBayes().fit(X, y).predict(X)


def _gaps() -> None:
    """The same with missing values: few and many per row, which use different functions."""
    import warnings

    import numpy as np

    import likely as lk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float64", "float32"):
            for share in (0.1, 0.7):
                X, y = _rows(dtype)
                X[np.random.default_rng(1).random(X.shape) < share] = np.nan
                for kind in ("full", "diagonal"):
                    lk.BayesClassifier(lk.GaussianDensity(kind, max_iter=2)).fit(X, y).predict_proba(X)


def _mixtures() -> None:
    """EM of mixtures."""
    import warnings

    import numpy as np

    import likely as lk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float64", "float32"):
            lk.MixtureDensity(n_components=5, max_iter=2, random_state=0).fit(_rows(dtype)[0])
        X = _rows("float64")[0]
        thin = np.ones((5, 5))
        thin[0, 0] = 1e-6  # goes through white coordinates
        parts = lk.Gaussian(X[:5], thin[:, :, None] * np.eye(5))
        lk.Mixture(np.full(5, 0.2), parts).collect(X)


def _kmeans() -> None:
    """k-means, by batches and by exchange, with missing entries and without."""
    import warnings

    import numpy as np

    import likely as lk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float64", "float32"):
            X = _rows(dtype)[0]
            holes = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X).astype(dtype)
            for rows in (X, holes):
                for more in ({}, {"variances": "own"}, {"method": "exchange"}):
                    lk.KMeans(5, max_iter=3, random_state=0).set_params(**more).fit(rows)
        X = _rows("float64")[0]
        lk.KMeans(5, init=X[:1].repeat(5, axis=0), max_iter=3).fit(X)  # four of them are empty


def _hierarchy() -> None:
    """Agglomerative clustering: every linkage, with missing entries and without."""
    import numpy as np

    import likely as lk

    X = _rows("float64")[0]
    for link in ("single", "average", "ward", "centroid", "coordinate-median", "likelihood"):
        lk.cluster.linkage(X, link)
    lk.cluster.linkage(X, "likelihood", covariance="diagonal")
    lk.cluster.linkage(X, "single", metric="cityblock")
    holes = X.copy()
    holes[::2, 0] = np.nan
    lk.cluster.linkage(holes, "average")


def _chains() -> None:
    """HMMs: fitting, decoding, sampling, and the log-domain recursions."""
    import warnings

    import numpy as np

    import likely as lk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float64", "float32"):
            X, y = _rows(dtype)
            words = lk.Ragged(X, np.arange(0, 601, 20))
            density = lk.HMMDensity(lk.GaussianDensity("diagonal"), 2, topology="left-to-right", max_iter=2)
            lk.BayesClassifier(density).fit(words, y[:30]).predict(words)
        distribution = lk.Gaussian(np.array([[0.0], [9.0]]), np.array(1.0))
        h = lk.HMM(np.full(2, 0.5), np.eye(2), distribution)
        x = np.array([[0.0], [0.1], [1e3], [-1e3], [9.0]])
        h.collect([x], hard=True)
        h.posterior(x), h.posterior(x, lag=1), h.viterbi(x), h.k_best(x, 2), h.log_prob([x])
        h.sample(2, np.random.default_rng(0), length=3)
        h.sample_states(x, np.random.default_rng(0))
        X, _ = _rows("float64")
        apart = lk.Gaussian(np.arange(20.0).reshape(4, 5), np.ones((4, 5)), "diagonal")
        lk.HMM(np.full(4, 0.25), np.full((4, 4), 0.25), apart).collect([X])
        for slope in (0.0, -900.0):  # the second needs logarithms
            beta = np.tile([[0.0, 0.0], [slope, 0.0]], (2, 1, 1))
            d, u = lk.HMM(np.full(2, 0.5), lk.hmm.LogisticTransition(beta), distribution), np.zeros(5)
            d.collect([x], covariates=[u]), d.posterior(x, covariates=u), d.log_prob([x], [u])


def _kalman() -> None:
    """Linear-Gaussian models: filter, smoother and sampling, with known and diffuse initial states."""
    import numpy as np

    import likely as lk

    one, rng, y = np.eye(1), np.random.default_rng(0), np.array([0.0, 1.0, 3.0])
    for model in (
        lk.LinearGaussian(
            transition=one,
            process_covariance=one,
            observation=one,
            observation_covariance=one,
            initial_mean=np.zeros(1),
            initial_covariance=one,
        ),
        lk.LinearGaussian(transition=one, process_covariance=one, observation=one, observation_covariance=one),
    ):
        model.smooth(y), model.smooth(y, lag=1), model.sample(2, rng, 3), model.collect([y])
        list(lk.follow(model, y))
    trend = lk.LinearGaussian(
        transition=np.triu(np.ones((2, 2))),
        process_covariance=np.eye(2),
        observation=np.eye(1, 2),
        observation_covariance=one,
    )
    trend.smooth(y, lag=0)
    lk.LinearGaussian.local_level(level_variance=1e-6, observation_variance=1.0).steady_state()  # slow: compiled
    moving = lk.LinearSDE.integrated(2)
    for times in ([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]):
        moving.smooth(y, times), list(lk.follow(moving, y, inputs=times))


def _level() -> Any:
    import numpy as np

    import likely as lk

    one = np.eye(1)
    return lk.LinearGaussian(
        transition=one,
        process_covariance=one,
        observation=one,
        observation_covariance=one,
        initial_mean=np.zeros(1),
        initial_covariance=one,
    )


def _switching() -> None:
    """Switching linear-Gaussian models, and Markov-switching regressions."""
    import numpy as np

    import likely as lk

    y = np.array([0.0, 1.0, 3.0])
    model = lk.SwitchingLinearGaussian((_level(), _level()), np.full((2, 2), 0.5))
    (
        model.smooth(y),
        model.collect([y]),
        list(lk.follow(model, y)),
        lk.statespace.RaoBlackwellizedFilter(model, 3).run(y),
        lk.linear_model.SwitchingRegression(2, random_state=0, max_iter=2, tol=1e9).fit(np.repeat([0.0, 3.0, 1.0], 9)),
    )


def _particles() -> None:
    """Particle filters: every resampling scheme, and variances per particle."""
    import numpy as np

    import likely as lk

    y, distributions = np.array([0.0, 1.0, 3.0]), _level().distributions
    for name in ("systematic", "multinomial"):
        lk.ParticleFilter(distributions, 64, resample=name, ess_threshold=1.0).run(y)
    lk.ParticleFilter(
        lk.StateSpace(distributions.initial, distributions.transition, lambda x: lk.Gaussian(x, x**2 + 1)), 8
    ).run(y)


def _words() -> None:
    """Connected-word recognition, and word errors."""
    import numpy as np

    import likely as lk

    distribution = lk.Gaussian(np.zeros((1, 1)), np.array(1.0))
    net = lk.speech.WordNetwork(
        (lk.HMM(np.ones(1), np.full((1, 1), 0.8), distribution, final=np.full(1, 0.2)),), ("a",)
    )
    net.decode([0.0, 1.0])
    net.k_best([0.0, 1.0], 2)
    lk.speech.word_errors("a b", "a c d")


def _warping() -> None:
    """Dynamic time warping: pairs, batches, nearest neighbors, subsequences, barycenters."""
    import numpy as np

    import likely as lk

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 12))
    gaps = np.where(rng.random((2, 12, 2)) < 0.2, np.nan, rng.normal(size=(2, 12, 2)))
    for steps in ("unweighted", "symmetric"):
        lk.dtw(X[0], X[1], step_pattern=steps).path, lk.dtw(*gaps, step_pattern=steps)
    lk.alignment.dtw_matrix(X)
    lk.DTWClassifier(band=0.2).fit(X, np.arange(30) % 2).predict(X)
    lk.dtw([1.0, 2.0], [1.0, np.nan, 2.0], open_begin=True, open_end=True)
    lk.alignment.dtw_matrix([[1.0, 2.0, 3.0], [1.0, 2.0]], band=2)
    lk.alignment.subsequence_dtw(X[0, :5], X[1])
    lk.alignment.barycenter(X[:3])


def _signs() -> None:
    """Chow-Liu trees with missing values."""
    import numpy as np

    import likely as lk

    lk.distributions.ChowLiuTree.blank(np.eye(2)).collect([[0.0, np.nan]])


def _neighbors() -> None:
    """Nearest neighbors: by tree, by matrix products, with missing values."""
    import numpy as np

    import likely as lk

    for columns in (2, 80):
        X = np.random.default_rng(0).normal(size=(200, columns))
        lk.KNeighborsClassifier(3).fit(X, np.arange(200) % 2).predict(X)
    lk.neighbors.condensed_nearest_neighbor(X, np.arange(200) % 2, method="reduced")
    X[::3, 0] = np.nan
    lk.KNeighborsClassifier(3, "l1").fit(X, np.arange(200) % 2).predict(X)


def _kernel_density() -> None:
    """Kernel density estimates."""
    import likely as lk

    X, y = _rows("float64")
    lk.BayesClassifier(lk.KernelDensity(bandwidth="maximum")).fit(X, y).predict(X)


JOBS: dict[str, Callable[[], None]] = {
    "gaussian": _complete, "missing": _gaps, "mixture": _mixtures, "kmeans": _kmeans, "hierarchy": _hierarchy,
    "hmm": _chains, "kalman": _kalman, "switching": _switching, "particle": _particles, "words": _words,
    "dtw": _warping, "neighbors": _neighbors, "kernel-density": _kernel_density, "binary": _signs,
}  # fmt: skip

"""One thing of every kind that a file can hold, and what it means that two things are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely as lk
from likely.classify.calibration.calibration_maps import IsotonicMap, LogisticMap, Temperature
from likely.classify.calibration.probability_floor import Floor
from likely.core.progress import FollowedLines, Following, Progress
from likely.core.value import Value
from likely.decision.sequential.alarm_filter import AlarmBelief
from likely.decision.sequential.cusum import CUSUM
from likely.decision.sequential.sprt import SPRT
from likely.decomposition.discriminant_subspace import DiscriminantSubspace
from likely.decomposition.principal_subspace import PrincipalSubspace
from likely.distributions.gaussian.scatter_qr import root_of_rows
from likely.distributions.priors.student_t_prior import StudentTPrior
from likely.distributions.statistics.weighted_values import weighted_values
from likely.linear_model.least_squares import RegressionStats, gram_of_rows
from likely.mixture.fixed_weights import FixedWeights
from likely.model_selection.residual_distribution import ResidualDistribution, ResidualPredictive
from likely.recognizers.faults.sensor_dynamics import SensorDynamics
from likely.recognizers.tracking.data_association import DataAssociation
from likely.statespace.linear.linear_em import ConstrainedLinearGaussian

SPREAD = np.array([[2.0, 0.3], [0.3, 1.0]])
FLAT = np.outer([1.0, 2.0], [1.0, 2.0])  # a covariance of rank 1


def table(n: int = 40, d: int = 2) -> np.ndarray:
    return np.random.default_rng(5).normal([3.0, -1.0][:d], [1.0, 2.0][:d], (n, d))


def ternary() -> Any:
    """Rows of −1, 0 and 1, some of them missing."""
    x = np.clip(np.rint(table()), -1.0, 1.0)
    x[3, 1] = np.nan
    return x


def gaps() -> np.ndarray:
    x = table()
    x[::5, 0] = np.nan
    return x


def stack(kind: str) -> lk.Gaussian:
    spread = {"full": np.stack([SPREAD, 2 * SPREAD, SPREAD]), "diagonal": np.ones((3, 2)), "spherical": np.ones(3)}
    return lk.Gaussian(np.arange(6.0).reshape(3, 2), spread[kind], kind)


def categorical(levels: Any = None) -> Any:
    return lk.Categorical([0.2, 0.3, 0.5], levels=levels)


def product() -> Any:
    return lk.Product({"size": lk.Gaussian([0.0, 1.0], 1.0), "visits": lk.Poisson([3.0])})


def weak(x: np.ndarray, kind: str = "full") -> Any:
    g = lk.Gaussian.blank(x, kind=kind)
    return g.weak_prior(g.collect(x))


DISTRIBUTIONS: dict[str, Callable[[], Any]] = {
    "full": lambda: lk.Gaussian([0.0, 1.0], SPREAD),
    "diagonal": lambda: lk.Gaussian([0.0, 1.0], [2.0, 3.0]),
    "spherical": lambda: lk.Gaussian([0.0, 1.0], 2.0),
    "one column": lambda: lk.Gaussian([1e8], [[1e-8]]),
    "singular": lambda: lk.Gaussian([0.0, 1.0], FLAT),
    "singular diagonal": lambda: lk.Gaussian([0.0, 1.0], [1.0, 0.0]),
    "stack full": lambda: stack("full"),
    "stack diagonal": lambda: stack("diagonal"),
    "stack spherical": lambda: stack("spherical"),
    "tied full": lambda: lk.Gaussian(np.arange(6.0).reshape(3, 2), SPREAD),
    "tied diagonal": lambda: lk.Gaussian(np.arange(6.0).reshape(3, 2), [1.0, 2.0]),
    "tied spherical": lambda: lk.Gaussian(np.arange(6.0).reshape(3, 2), 1.5),
    "fitted": lambda: lk.Gaussian.fit(table()),
    "fitted with gaps": lambda: lk.Gaussian.fit(gaps()),
    "many columns": lambda: lk.Gaussian.fit(np.random.default_rng(2).normal(size=(60, 20))),
    "conditioned": lambda: lk.Gaussian([0.0, 1.0], SPREAD).condition({1: 0.5}),
    "student t": lambda: lk.StudentT([0.0, 1.0], SPREAD, 3.0),
    "student t fixed": lambda: lk.StudentT([0.0, 1.0], SPREAD, 3.0, fixed_dof=True),
    "wishart": lambda: lk.distributions.Wishart(4.0, SPREAD),
    "inverse wishart stack": lambda: lk.distributions.InverseWishart([4.0, 5.0], SPREAD),
    "elliptical": lambda: lk.distributions.Elliptical("power", [0.0, 1.0], SPREAD, 0.7),
    "student t stack": lambda: lk.StudentT(np.arange(6.0).reshape(3, 2), np.stack([SPREAD] * 3), [3.0, 4.0, 5.0]),
    "student t tied": lambda: lk.StudentT(np.arange(6.0).reshape(3, 2), SPREAD, [3.0, 4.0, 5.0]),
    "student t independent": lambda: lk.StudentT([0.0, 1.0], [1.0, 2.0], [3.0, 4.0], kind="independent"),
    "exponential": lambda: lk.Exponential([3.0, 0.5]),
    "binomial": lambda: lk.Binomial([4, 9], [[0.2, 0.5], [1.0, 0.0]]),
    "beta-binomial": lambda: lk.distributions.BetaBinomial([4, 9], [0.2, 1.5], 3.0),
    "beta negative binomial": lambda: lk.distributions.BetaNegativeBinomial([4.0, 0.9], [3.2, 1.5], 3.0),
    "von mises": lambda: lk.distributions.VonMises([4.0, 0.9], [[3.2, 0.0], [1.0, 1e6]]),
    "von mises sum": lambda: lk.distributions.VonMisesSum([4.0, 0.9], [3.2, 0.0], 2.0),
    "uniform distribution": lambda: lk.Uniform([3.0, 0.5], [4.0, 7.0]),
    "plateau": lambda: lk.distributions.UniformPredictive([3.0, 0.5], 4.0, 2.0),
    "triangular": lambda: lk.distributions.Triangular([3.0, 0.5], 3.5, 4.0, known="low"),
    "laplace": lambda: lk.Laplace([3.0, 0.5], 4.0),
    "cauchy": lambda: lk.distributions.Cauchy([[3.0, 0.5], [1.0, 2.0]], 4.0),
    "chi square": lambda: lk.distributions.ChiSquare([3.0, 0.5]),
    "lomax": lambda: lk.distributions.Lomax([3.0, 0.5], 2.0),
    "gamma of waits": lambda: lk.Gamma([3.0, 0.5], 2.0, likelihood="exponential"),
    "poisson": lambda: lk.Poisson([3.0, 0.5]),
    "parzen": lambda: lk.KDE(table(), [0.2, 0.5], tolerance=1e-4),
    "parzen by a number": lambda: lk.KDE(table(), 0.6, "t", np.arange(1.0, 41.0), rule=0.6),
    "parzen elliptical": lambda: lk.KDE(table(), kernel_covariance=SPREAD),
    "parzen pooled": lambda: lk.KDE([table(), table(7)], 0.2, rule="scott", unit="pooled"),
    "parzen stack": lambda: lk.KDE([table(), table(7)], [[0.2, 0.5], [1.0, 2.0]], "cube", rule="leave-one-out"),
    "neighbor balls": lambda: lk.density.KNNBalls(table(), 3, metric="l1"),
    "neighbor balls stack": lambda: lk.density.KNNBalls(table(), 3, edges=[0, 10, 40], shared=True),
    "histogram": lambda: lk.Histogram([[0.0, 1.0, 3.0]], [0.5, 0.5]),
    "histogram grid": lambda: lk.Histogram([[0.0, 1.0, 3.0], [0.0, 2.0]], [[[0.5], [0.5]], [[1.0], [0.0]]]),
    "histogram columns": lambda: lk.Histogram([[0.0, 1.0, 3.0], [0.0, 2.0]], [0.5, 0.5, 1.0], "columns"),
    "negative binomial": lambda: lk.NegativeBinomial([3.0, 0.5], [0.2, 1.0]),
    "categorical": categorical,
    "categorical texts": lambda: categorical(["blau", "grün", "rot"]),
    "categorical numbers": lambda: categorical([1, 5, 7]),
    "categorical reals": lambda: categorical([0.5, 1.5, 2.5]),
    "categorical booleans": lambda: lk.Categorical([0.2, 0.8], levels=[False, True]),
    "categorical unlike": lambda: categorical(np.array([1, 2.5, "rot"], dtype=object)),
    "categorical stack": lambda: lk.Categorical([[0.2, 0.8], [0.5, 0.5]]),
    "poisson stack": lambda: lk.Poisson([[3.0, 0.5], [1.0, 1.0]]),
    "product": product,
    "several": lambda: lk.distributions.Stack([lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 2.0)]),
    "several unlike": lambda: lk.distributions.Stack([lk.Gaussian([0.0], 1.0), lk.StudentT([0.0], [[1.0]], 3.0)]),
    "shared": lambda: lk.distributions.Tied(lk.Gaussian([[0.0], [5.0]], 1.0), [0, 1, 1]),
    "shared covariance": lambda: lk.distributions.Tied(stack("full"), [0, 1, 0], "covariance"),
    "mixture": lambda: lk.Mixture([0.2, 0.3, 0.5], stack("full")),
    "multinomial": lambda: lk.Multinomial([0.2, 0.3, 0.5], 7.0),
    "multinomial stack": lambda: lk.Multinomial([[0.2, 0.8], [0.5, 0.5]]),
    "dirichlet-multinomial": lambda: lk.distributions.DirichletMultinomial([0.2, 0.3, 0.5], 7.0),
    "bernoulli": lambda: lk.Bernoulli([0.2, 1.0]),
    "walsh": lambda: lk.distributions.Walsh.of([0.4, 0.1, 0.2, 0.3]),
    "log walsh": lambda: lk.distributions.LogLinear.normalized([0.0, 0.5, -0.2, 0.7], 2),
    "log walsh stack": lambda: lk.distributions.LogLinear.normalized([[0.0, 0.5, -0.2], [0.0, 0.1, 0.3]], 2, 1),
    "bahadur": lambda: lk.distributions.Bahadur([0.5, 0.3], [1.0, 0.0, 0.0, 0.2]),
    "chow tree": lambda: lk.distributions.ChowLiuTree.fit(ternary(), prior="weak"),
    "factors": lambda: lk.distributions.FactorGaussian([0.0, 1.0], [[1.0], [0.5]], [0.5, 2.0]),
    "factors stack": lambda: lk.distributions.FactorGaussian(
        np.arange(6.0).reshape(3, 2), np.ones((3, 2, 1)), [1.0, 2.0, 3.0], "spherical"
    ),
    "no factors": lambda: lk.distributions.FactorGaussian([0.0, 1.0], np.zeros((2, 0)), 2.0),
    "mixtures": lambda: lk.Mixture([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], lk.Gaussian(np.zeros((6, 2)), 1.0)),
    "mixtures that share": lambda: lk.Mixture(
        [[0.2, 0.8], [0.5, 0.5]], lk.distributions.Tied(lk.Gaussian(np.eye(2), 1.0), [0, 1, 0, 1])
    ),
    "contaminated": lambda: lk.Mixture(
        [0.9, 0.1], lk.mixture.ScaledCopies(lk.Gaussian([0.0, 1.0], SPREAD), np.array([1.0, 10.0]))
    ),
    "lattice": lambda: lk.distributions.LatticeDistribution(1.0, 0.5, [0.2, 0.3, 0.5]),
    "grid": lambda: lk.distributions.sum_of(lk.Beta(2.0, 3.0), lk.Gamma(2.0, 1.0), error=1e-3),
    "log-normal": lambda: lk.distributions.Transformed(
        lk.Gaussian([0.0, 1.0], SPREAD), lk.distributions.Bijector.exp()
    ),
    "log-normal stack": lambda: lk.distributions.Transformed(stack("full"), lk.distributions.Bijector.exp()),
    "box-cox": lambda: lk.distributions.Transformed(
        lk.Gamma([2.0, 3.0], 1.0), lk.distributions.Bijector.box_cox([0.5, 0.0])
    ),
    "turned": lambda: lk.distributions.Transformed(
        lk.StudentT([0.0, 1.0], SPREAD, 3.0), lk.distributions.Bijector.affine([[1.0, 2.0], [0.0, 1.0]])
    ),
    "maximum entropy": lambda: lk.distributions.maximum_entropy(
        interval=(0.0, np.inf), expect={"mean": 1.0, "square": 1.5}
    ),
    "scaled": lambda: lk.mixture.ScaledCopies(lk.Gaussian([0.0, 1.0], SPREAD), np.array([1.0, 10.0])),
    "fixed": lambda: lk.mixture.FixedComponents(stack("full")),
    "mixture of t": lambda: lk.Mixture([0.2, 0.3, 0.5], DISTRIBUTIONS["student t tied"]()),
}


def hmm(stacked: bool = False) -> Any:
    """Two emitting states and a null state between them."""
    starts, moves, ends = [0.6, 0.1, 0.3], [[0.5, 0.2, 0.2], [0.0, 0.8, 0.1], [0.5, 0.5, 0.0]], [0.1, 0.1, 0.0]
    if not stacked:
        return lk.HMM(starts, moves, lk.Gaussian([[0.0, 1.0], [3.0, 0.0]], [1.0, 2.0]), final=ends)
    return lk.HMM([starts] * 2, [moves] * 2, lk.Gaussian(np.arange(8.0).reshape(4, 2), 1.0), final=[ends] * 2)


def words() -> Any:
    """Sequences of unequal length."""
    return lk.Ragged(table(), [0, 7, 12, 20, 33, 40])


def stats_of_hmm(**how: Any) -> Any:
    return hmm().collect(words(), **how)


def spherical_start() -> Any:
    distribution = lk.Gaussian([[0.0, 1.0], [3.0, 0.0]], [1.0, 2.0], "spherical")
    return lk.HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], distribution)


def said(mean: float) -> Any:
    return lk.HMM([1.0], [[0.8]], lk.Gaussian([[mean]], 1.0), final=[0.2])


def driven_hmm() -> Any:
    return lk.HMM(
        [0.5, 0.5], lk.hmm.LogisticTransition(np.zeros((2, 2, 2))), lk.Gaussian([[0.0, 1.0], [3.0, 0.0]], 1.0)
    )


def driven_words() -> Any:
    return lk.core.with_covariates(words(), [np.arange(len(s), dtype=float)[:, None] for s in words()])


CHAINS: dict[str, Callable[[], Any]] = {
    "hmm": hmm,
    "hmm stack": lambda: hmm(True),
    "hmm without ends": lambda: lk.HMM([0.5, 0.5], np.eye(2), categorical_stack()),
    "hmm of mixtures that share": lambda: lk.HMM([0.5, 0.5], np.eye(2), DISTRIBUTIONS["mixtures that share"]()),
    "hmm prior": lambda: hmm().weak_prior(stats_of_hmm()),
    "hmm prior of none": lambda: lk.priors.HMMPrior(None, None, None, None),
    "hmm stats": stats_of_hmm,
    "hmm stats of best paths": lambda: stats_of_hmm(hard=True),
    "hmm stats of a stack": lambda: hmm(True).collect(words(), labels=np.arange(5) % 2),
    "hmm stats of known states": lambda: ergodic().collect(
        words(), log_mask=words().map(lambda v: np.arange(len(v)) % 2)
    ),
    "driven hmm": driven_hmm,
    "driven belief": lambda: driven_hmm().predict(driven_hmm().initial_belief()),
    "logistic transition": lambda: lk.hmm.LogisticTransition(np.ones((2, 2, 3)), np.eye(2), [[0.0, 1.0], [1.0, 2.0]]),
    "logistic prior": lambda: lk.priors.LogisticPrior(1.0, [0.0], [2.0]),
    "logistic stats": lambda: driven_hmm().collect(driven_words()).transition,
    "driven prior": lambda: driven_hmm().weak_prior(driven_hmm().collect(driven_words())),
    "driven stats": lambda: driven_hmm().collect(driven_words()),
    "word network": lambda: lk.speech.WordNetwork([said(3.0), said(-3.0)], ["on", "off"], silence=said(0.0)),
    "word network of a stack": lambda: lk.speech.WordNetwork(hmm(True), ["on", "off"]),
    "cepstra": lambda: lk.speech.MFCC(trim=30.0),
    "topology": lambda: lk.hmm.Topology.of("left-to-right", 3).tied([0, 0, 1]),
    "topology without ends": lambda: lk.hmm.Topology.of("ergodic", 2),
}


def categorical_stack() -> Any:
    return DISTRIBUTIONS["categorical stack"]()


def ergodic() -> Any:
    return lk.HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], lk.Gaussian([[0.0, 1.0], [3.0, 0.0]], 1.0))


PRIORS: dict[str, Callable[[], Any]] = {
    "beta of successes": lambda: lk.Beta(2.0, 3.0).update(lk.Binomial([3, 5], 0.5).collect([[1, 2], [3, np.nan]])),
    "beta of failures": lambda: lk.Beta(2.0, [3.0, 1.0], "negative binomial", 2.5),
    "direction": lambda: lk.priors.VonMisesPrior(lk.distributions.VonMises([0.5, 1.0], 2.0), [3.0, 1.0]),
    "student t prior": lambda: StudentTPrior(lk.priors.NormalInverseWishart([0.0, 1.0], 1.0, np.eye(2), 5.0), 2.0, 0.1),
    "normal gamma": lambda: lk.priors.NormalGamma([0.0, 1.0], 1.0, [2.0, 3.0], 1.5),
    "known mean": lambda: lk.priors.CovarianceGivenMean([0.0, 1.0], lk.distributions.InverseWishart(4.0, SPREAD)),
    "bilateral pareto": lambda: lk.priors.BilateralPareto([3.0, 0.5], 4.0, 2.0),
    "earlier data": lambda: lk.priors.PseudoData(lk.Exponential(1.0), lk.Exponential(1.0).collect([2.0])),
    "normal-inverse-wishart": lambda: lk.priors.NormalInverseWishart([0.0, 1.0], 1.0, SPREAD, 4.0),
    "normal-inverse-wishart weak": lambda: weak(table()),
    "normal-inverse-wishart stack": lambda: weak(table()).update(stack("full").collect(table())),
    "normal-inverse-gamma": lambda: lk.priors.NormalInverseGamma([0.0, 1.0], 1.0, [1.0, 2.0], 3.0),
    "normal-inverse-gamma weak": lambda: weak(table(), "diagonal"),
    "normal-inverse-gamma spherical": lambda: weak(table(), "spherical"),
    "normal mean": lambda: lk.priors.MeanGivenCovariance(lk.Gaussian([-2.0], 1.0), 4.0),
    "dirichlet": lambda: lk.Dirichlet([1.0, 2.0, 3.0]),
    "dirichlet with levels": lambda: lk.Dirichlet([1.0, 2.0], levels=["a", "b"]),
    "beta": lambda: lk.Beta([1.0, 2.0], [3.0, 0.5]),
    "multinomial prior": lambda: lk.priors.MultinomialPrior(lk.Dirichlet([1.0, 2.0])),
    "earlier rows": lambda: DISTRIBUTIONS["factors"]().weak_prior(DISTRIBUTIONS["factors"]().collect(table())),
    "given weights": lambda: FixedWeights([0.9, 0.1]),
    "sparse weights": lambda: lk.priors.SparseWeights([-3.0, 0.5]),
    "mixture prior, sparse": lambda: lk.priors.MixturePrior(lk.priors.SparseWeights([-3.0, 0.5]), weak(table())),
    "gamma": lambda: lk.Gamma(2.0, 1.0),
    "gamma stack": lambda: lk.Gamma([[2.0, 1.0], [1.0, 4.0]], 1.0),
    "product prior of none": lambda: lk.priors.ProductPrior((("size", None), ("visits", PRIORS["normal mean"]()))),
    "mixture prior": lambda: lk.priors.MixturePrior(lk.Dirichlet([1.0, 2.0]), weak(table())),
    "mixture prior of none": lambda: lk.priors.MixturePrior(None, None),
    "product prior": lambda: lk.priors.ProductPrior((("visits", lk.Gamma(2.0, 1.0)), ("size", None))),
}

STATS: dict[str, Callable[[], Any]] = {
    "extremes": lambda: lk.Uniform([3.0, 0.5], 4.0).collect([[1.0, 2.0], [3.0, np.nan]]),
    "gamma sums": lambda: lk.Gamma([3.0, 0.5], 4.0).collect([[1.0, 2.0], [3.0, np.nan]]),
    "gamma sums of a stack": lambda: lk.Gamma([[3.0], [0.5]], 4.0).collect([[1.0], [3.0]], labels=np.array([0, 1])),
    "triangular values": lambda: lk.distributions.Triangular([3.0, 0.5], 3.5, 4.0).collect([[3.2, 2.0], [3.0, np.nan]]),
    "distinct rows": lambda: lk.KDE(table(), 0.3).collect(gaps()),
    "distinct rows stack": lambda: lk.KDE([table(), table(7)], 0.3).collect(table(), labels=np.arange(40) % 2),
    "bin counts": lambda: lk.Histogram.blank(table(), bins=3).collect(table()),
    "elliptical rows": lambda: lk.distributions.Elliptical("t", [0.0, 1.0], SPREAD).collect([[1.0, 2.0], [3.0, 0.0]]),
    "wishart sums": lambda: lk.distributions.Wishart(4.0, SPREAD).collect(np.stack([SPREAD, 2 * SPREAD])),
    "student t column sums": lambda: lk.StudentT([0.0, 1.0], 1.0, 3.0, kind="independent").collect([[1.0, 2.0]]),
    "student t sums": lambda: lk.StudentT([0.0, 1.0], SPREAD, 3.0).collect([[1.0, 2.0], [3.0, np.nan]]),
    "successes": lambda: lk.Binomial([3, 5], 0.5).collect([[1, 2], [3, np.nan]]),
    "urn counts": lambda: lk.distributions.DirichletMultinomial([3.0, 5.0]).collect([[1, 2], [3, 0]]),
    "feature sums": lambda: lk.Exponential([3.0, 0.5]).collect([[1.0, 2.0], [3.0, np.nan]]),
    "weighted values": lambda: weighted_values(
        np.array([[1.0, 2.0], [3.0, np.nan], [3.0, 1.0]]), np.ones((1, 3)), None
    ),
    "moments": lambda: lk.Gaussian.blank(table()).collect(table()),
    "moments sum": lambda: DISTRIBUTIONS["full"]().collect(table()) + DISTRIBUTIONS["full"]().collect(table() + 9.0),
    "moments of gaps": lambda: lk.Gaussian.blank(gaps()).collect(gaps()),
    "moments stack": lambda: stack("full").collect(table()),
    "moments of nothing": lambda: DISTRIBUTIONS["full"]().collect(np.empty((0, 2))),
    "moments of constants": lambda: DISTRIBUTIONS["full"]().collect(np.full((7, 2), 0.1)),
    "column moments": lambda: DISTRIBUTIONS["diagonal"]().collect(gaps()),
    "column moments stack": lambda: stack("diagonal").collect(gaps()),
    "counts": lambda: lk.Poisson([3.0, 0.5]).collect([[1, 2], [3, 4]]),
    "level counts": lambda: categorical().collect([0, 1, 1, 2]),
    "word counts": lambda: lk.Multinomial([0.2, 0.8]).collect([[1, 2], [3, 4]]),
    "sign sums": lambda: lk.distributions.Walsh.of([0.4, 0.1, 0.2, 0.3]).collect([[0, 1], [1, np.nan]]),
    "pair counts": lambda: lk.distributions.ChowLiuTree.blank(ternary()).collect(ternary()),
    "pair counts with gaps": lambda: lk.distributions.ChowLiuTree.blank(np.eye(2)).collect([[0, np.nan], [1, 1]]),
    "trials": lambda: lk.Bernoulli([0.2, 0.8]).collect([[0, 1], [1, 1]]),
    "scatter root": lambda: root_of_rows(table(), None, np.zeros(2)),
    "center stats": lambda: lk.cluster.Centroids([[0.0, 1.0], [2.0, 3.0]]).collect(table()),
    "fixed stats": lambda: DISTRIBUTIONS["fixed"]().collect(table()),
    "stats of mixtures": lambda: DISTRIBUTIONS["mixtures"]().collect(table(), labels=np.arange(40) % 2),
    "product stats": lambda: product().collect({"size": table(5), "visits": [1, 2, 3, 4, 5]}),
    "several stats": lambda: DISTRIBUTIONS["several"]().collect(table(d=1)),
    "mixture stats": lambda: DISTRIBUTIONS["mixture"]().collect(table(), labels=np.arange(40) % 3),
    "mixture stats of hidden labels": lambda: DISTRIBUTIONS["mixture"]().collect(table()),
}

COSTS: dict[str, Callable[[], Any]] = {
    "probability table": lambda: lk.distributions.ProbabilityTable(S={"forged": 0.25, "genuine": 0.75}),
    "dendrogram": lambda: lk.cluster.linkage(table()),
    "dendrogram of one": lambda: lk.cluster.linkage(table(1)),
    "bic curve": lambda: lk.cluster.bic_curve(lk.cluster.linkage(table()), table()),
    "centers": lambda: lk.cluster.Centroids([[0.0, 1.0], [2.0, 3.0]]),
    "centers of unlike size": lambda: lk.cluster.Centroids([[0.0, 1.0], [2.0, 3.0]], variance=[1.0, 2.0], typical=1.0),
    "fisher axes": lambda: DiscriminantSubspace.of(np.diag([1.0, 4.0]), [[0.0, 0.0], [2.0, 0.0]], [0.5, 0.5]),
    "principal axes": lambda: PrincipalSubspace.of(DISTRIBUTIONS["full"]().collect(table()), 1),
    "progress": lambda: Progress.at(
        DISTRIBUTIONS["mixture"](),
        PRIORS["mixture prior of none"](),
        40.0,
        [-3.0, -2.0],
        [],
        best=DISTRIBUTIONS["mixture"](),
    ),
    "following": lambda: Following("0123456789abcdef", ("",), (categorical(),), np.array([3]), np.array([-np.inf])),
    "followed lines": lambda: FollowedLines(
        "c",
        ("", "pump"),
        (None, AlarmBelief(categorical(), CUSUM(4.0, 1.5), True)),
        np.array([0, 2]),
        np.array([0.0, -1.5]),
        asked="a",
        header="t,x",
        lines=7,
        digest="b",
        written=120,
    ),
    "alarm belief": lambda: AlarmBelief(categorical(), CUSUM(4.0, 1.5), False),
    "sequential test": lambda: SPRT(0.05, 0.1).step(1.5),
    "cusum": lambda: CUSUM(5.0).step(2.0),
    "change": lambda: lk.distributions.Bijector.power(2.0),
    "transformed stats": lambda: DISTRIBUTIONS["log-normal"]().collect(np.exp(table())),
    "stochastic approximation": lambda: lk.inference.RobbinsMonro(lk.Poisson(2.0), power=0.8, learn=("rate",)),
    "running estimate": lambda: lk.inference.RobbinsMonro(lk.Gaussian([0.0, 1.0], SPREAD)).run(table()),
    "floor": lambda: Floor(-3.0, True),
    "Hyperplane": lambda: lk.decision.Hyperplane([3.0, -4.0], 1.5),
    "Boundary": lambda: lk.decision_boundary(
        DISTRIBUTIONS["full"](), lk.Gaussian([1.0, 5.0], 2.0), class_prior=[0.7, 0.3]
    ),
    "Boundary that is flat": lambda: lk.decision_boundary(lk.Gaussian([0.0], 1.0), lk.Gaussian([2.0], 1.0)),
    "barycenter": lambda: lk.alignment.barycenter([[0.0, 1.0, 2.0], [0.0, 2.0, 2.0, 1.0]]),
    "matches": lambda: lk.alignment.subsequence_dtw([1.0, 2.0], [0.0, 1.0, 2.0, 0.0, 1.0, 2.0], 2),
    "temperature": lambda: Temperature(2.0, 3),
    "logistic map": lambda: LogisticMap(np.eye(2), [0.0, 1.0]),
    "isotonic map": lambda: IsotonicMap([-1.0, 1.0, -2.0, 2.0], [0.1, 0.9, 0.2, 0.8], [0, 2, 4]),
    "cost": lambda: lk.Cost([[0, 1], [5, 0]]),
    "cost with names": lambda: lk.Cost([[0, 1], [5, 0], [2, 2]], ["ask"], np.array(["no", "yes"])),
    "cost of numbers": lambda: lk.Cost([[0, 1], [5, 0]], classes=np.array([3, 7])),
}

COLORS = [["red"], ["blue"], ["red"], [None]]
MIXED = lk.core.Columns(size=[[1.0], [2.0], [4.0]], color=["red", "blue", "red"])


def mixed() -> Any:
    return lk.ProductDensity([("size", lk.GaussianDensity()), ("color", lk.CategoricalDensity(prior=0.5))])


ESTIMATORS: dict[str, Callable[[], Any]] = {  # each with rows that it can score
    "gaussian": lambda: (lk.GaussianDensity().fit(table()), table()),
    "gaussian diagonal": lambda: (lk.GaussianDensity("diagonal", prior=None).fit(gaps()), gaps()),
    "gaussian with a prior": lambda: (lk.GaussianDensity(prior=weak(table())).fit(table()), table()),
    "binomial": lambda: (lk.BinomialDensity(trials=7).fit([[1, 2], [2, 0], [6, 1]]), [[1, 3], [2, 2]]),
    "binomial predictive": lambda: (lk.BinomialDensity(predictive=True).fit([[1, 2], [6, 1]]), [[1, 2], [2, 1]]),
    "beta-binomial": lambda: (
        lk.distributions.BetaBinomialDensity(trials=[7, 5]).fit([[1, 2], [2, 0], [6, 1]]),
        [[1, 3], [2, 2]],
    ),
    "negative binomial": lambda: (lk.NegativeBinomialDensity().fit([[1, 2], [2, 0], [9, 1]]), [[1, 3], [2, 2]]),
    "von mises": lambda: (
        lk.distributions.VonMisesDensity().fit([[1.0, 2.0], [2.0, 0.0], [6.0, 1.0]]),
        [[1.0, 3.0], [2.0, 2.0]],
    ),
    "gamma": lambda: (lk.GammaDensity().fit([[1.0, 2.0], [2.0, 0.5], [6.0, 1.0]]), [[1.0, 3.0], [2.0, 2.0]]),
    "beta": lambda: (lk.BetaDensity(high=9.0).fit([[1.0, 2.0], [2.0, 0.5], [6.0, 1.0]]), [[1.0, 3.0], [2.0, 2.0]]),
    "dirichlet": lambda: (lk.DirichletDensity().fit([[0.1, 0.9], [0.2, 0.8], [0.6, 0.4]]), [[0.1, 0.9], [0.5, 0.5]]),
    "dirichlet-multinomial": lambda: (
        lk.distributions.DirichletMultinomialDensity().fit([[1, 2], [2, 0], [9, 1]]),
        [[1, 3], [2, 2]],
    ),
    "exponential": lambda: (lk.ExponentialDensity().fit([[1, 2], [2, 0], [6, 1]]), [[1, 3], [2, 2]]),
    "student t": lambda: (lk.StudentTDensity().fit(table()), table()),
    "student t independent": lambda: (lk.StudentTDensity("independent", 4.0, prior=None).fit(gaps()), gaps()),
    "elliptical": lambda: (lk.distributions.EllipticalDensity("logistic").fit(table()), table()),
    "waits predicted": lambda: (
        lk.ExponentialDensity(predictive=True).fit([[1, 2], [2, 0], [6, 1]]),
        [[1, 3], [2, 2]],
    ),
    "uniform density": lambda: (lk.UniformDensity().fit([[1, 2], [2, 0], [6, 1]]), [[1, 1], [2, 2]]),
    "uniform predicted": lambda: (lk.UniformDensity(predictive=True).fit([[1, 2], [2, 0], [6, 1]]), [[1, 3], [2, 2]]),
    "triangular": lambda: (lk.distributions.TriangularDensity().fit([[1, 2], [2, 0], [6, 1]]), [[1, 1], [2, 2]]),
    "triangular between": lambda: (
        lk.distributions.TriangularDensity(low=0.0, high=[7.0, 3.0]).fit([[1, 2], [2, 0.5], [6, 1]]),
        [[1, 1], [2, 2]],
    ),
    "laplace": lambda: (lk.LaplaceDensity().fit(gaps()), gaps()),
    "cauchy": lambda: (lk.distributions.CauchyDensity(prior=None).fit(table()), table()),
    "chi square": lambda: (lk.distributions.ChiSquareDensity().fit([[1, 2], [2, 0], [6, 1]]), [[1, 3], [2, 2]]),
    "poisson": lambda: (lk.PoissonDensity().fit([[1, 2], [2, 0], [6, 1]]), [[1, 3], [2, 2]]),
    "parzen": lambda: (lk.KernelDensity(kernel="t", bandwidth="maximum").fit(gaps()), gaps()),
    "parzen elliptical": lambda: (lk.KernelDensity(kernel="elliptical", relative_bandwidth=0.3).fit(table()), gaps()),
    "parzen fixed": lambda: (lk.KernelDensity(kernel="cube", bandwidth=[2.0, 3.0]).fit(table()), gaps()),
    "parzen common": lambda: (lk.KernelDensity(bandwidth="silverman", unit="common").fit(table()), gaps()),
    "neighbor density": lambda: (lk.KNNDensity(3).fit(gaps()), gaps()),
    "histogram": lambda: (lk.HistogramDensity().fit(gaps()), gaps()),
    "histogram grid": lambda: (lk.HistogramDensity(4, joint=True).fit(table()), table()),
    "categorical": lambda: (lk.CategoricalDensity().fit(np.array(COLORS, object)), np.array(COLORS, object)),
    "categorical columns": lambda: (lk.CategoricalDensity().fit([[1, 2], [1, 3], [0, 3]]), [[1, 3], [0, 2]]),
    "product": lambda: (mixed().fit(MIXED), MIXED),
    "product of columns": lambda: (lk.ProductDensity().fit(table()), table()),
}

LABELS = np.array(["a", "b"], dtype=object)[np.arange(40) % 2]


TABLE = {"size": table()[:, 0].tolist(), "color": [("red", "blue", None)[i % 3] for i in range(40)]}


def classifier(density: Any = None, X: Any = None, **how: Any) -> Any:
    X = table() if X is None else X
    return lk.BayesClassifier(density, **how).fit(X, LABELS), X


def mixture_of(component: Any, X: Any, K: int = 2, **how: Any) -> Any:
    return lk.MixtureDensity(component, K, random_state=0, **how).fit(X), X


TEXTS = [["a", "u"], ["b", "v"], ["b", "u"], ["a", "u"]]

ESTIMATORS |= {
    "mixture": lambda: mixture_of(lk.GaussianDensity("full"), gaps()),
    "mixture from a start": lambda: mixture_of(lk.GaussianDensity("full"), table(), 3, init=DISTRIBUTIONS["mixture"]()),
    "mixture with a sparse prior": lambda: mixture_of(None, table(), prior=lk.priors.SparseWeights([0.5, 0.5])),
    "mixture of factors": lambda: mixture_of(lk.decomposition.PPCA(1), table()),
    "mixture of words": lambda: mixture_of(lk.MultinomialDensity(), np.abs(table()).round()),
    "mixture of mixtures": lambda: mixture_of(lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2), table()),
    "clusterer": lambda: (lk.MixtureClusterer(n_components=2, random_state=0).fit(table()), table()),
    "contaminated": lambda: (lk.mixture.ContaminatedDensity().fit(table()), table()),
    "multinomial": lambda: (lk.MultinomialDensity().fit([[1, 2], [2, 0], [6, 1]]), [[1, 3], [2, 2]]),
    "bernoulli": lambda: (lk.BernoulliDensity().fit([[1, 0], [1, 1], [0, 1]]), [[1, 1], [0, 1]]),
    "walsh": lambda: (lk.distributions.WalshDensity().fit(np.sign(table())), np.sign(table())),
    "log walsh": lambda: (lk.distributions.WalshDensity(2, log=True).fit(np.sign(table())), np.sign(table())),
    "bahadur": lambda: (lk.distributions.BahadurDensity(prior=2.0).fit(np.sign(table())), np.sign(table())),
    "chow tree": lambda: (lk.ChowLiuTreeDensity().fit(ternary()), ternary()),
    "chow tree of words": lambda: (lk.ChowLiuTreeDensity(words=[["a", "b"], ["u", "v"]]).fit(TEXTS), TEXTS),
    "classifier of trees": lambda: classifier(lk.ChowLiuTreeDensity(), ternary()),
    "classifier of pairs": lambda: classifier(lk.distributions.WalshDensity(2, log=True), np.sign(table())),
    "fisher": lambda: (lk.FisherDiscriminant(1, criterion="determinant").fit(table(), LABELS), table()),
    "ppca": lambda: (lk.decomposition.PPCA(1).fit(gaps()), gaps()),
    "factor analysis": lambda: (lk.FactorAnalysis(1).fit(table()), table()),
    "classifier of mixtures": lambda: classifier(lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2, random_state=0)),
    "classifier of tied mixtures": lambda: classifier(lk.MixtureDensity(n_components=2, tie="all", random_state=0)),
    "classifier": classifier,
    "classifier of windows": lambda: classifier(lk.KernelDensity(), gaps()),
    "classifier of balls": lambda: classifier(lk.KNNDensity(3, shared=True), gaps()),
    "classifier of histograms": lambda: classifier(lk.HistogramDensity("knuth"), gaps()),
    "classifier with gaps": lambda: classifier(lk.GaussianDensity("pooled"), gaps(), cost=[[0.0, 1.0], [5.0, 0.0]]),
    "classifier by t": lambda: classifier(lk.GaussianDensity(predictive="all"), class_prior=lk.Dirichlet([1.0, 2.0])),
    "classifier blended": lambda: classifier(lk.GaussianDensity("shrunk-pooled"), class_prior={"a": 0.3, "b": 0.7}),
    "classifier with rules": lambda: classifier(cost=COSTS["cost"](), reject_cost=0.2, reject_below=0.5, novelty=0.1),
    "calibrated": lambda: (lk.CalibratedClassifier(lk.NaiveBayes(), cv=2).fit(table(), LABELS), table()),
    "table": lambda: (lk.TableClassifier().fit(TABLE, LABELS), TABLE),
    "clusters": lambda: (lk.automl.TableClusterer(2, n_init=1).fit(TABLE), TABLE),
    "neighbors": lambda: (lk.KNeighborsClassifier(3).fit(gaps(), LABELS), table()),
    "neighbors whitened": lambda: (
        lk.KNeighborsClassifier([1, 3], "mahalanobis", prototypes="edited", class_prior="uniform").fit(table(), LABELS),
        table(),
    ),
    "distances": lambda: (lk.NearestCentroidClassifier("scaled").fit(gaps(), LABELS), table()),
    "distances full": lambda: (lk.NearestCentroidClassifier("mahalanobis", "median").fit(table(), LABELS), table()),
    "distances of order 3": lambda: (
        lk.NearestCentroidClassifier("lp", class_prior=None).fit(table(), LABELS),
        table(),
    ),
    "pipeline": lambda: (make_pipeline(lk.PCA(2), lk.BayesClassifier()).fit(table(), LABELS), table()),
    "pipeline with a scale": lambda: (
        make_pipeline(StandardScaler(), "passthrough", lk.FisherDiscriminant(1), lk.NaiveBayes()).fit(table(), LABELS),
        table(),
    ),
    "frequencies": lambda: (lk.PriorClassifier().fit(table(), LABELS), table()),
    "naive bayes": lambda: (lk.NaiveBayes({"color": "categorical"}).fit(MIXED, [1, 2, 2]), MIXED),
}

LETTERS = lk.Ragged.from_list([["a", "b", "b"], ["b"], ["a", "a", "b", "a", "b"], ["b", "a"]])


def chains(component: Any = None, X: Any = None, **how: Any) -> Any:
    X = words() if X is None else X
    return lk.HMMDensity(component, random_state=0, max_iter=3, **how).fit(X), X


def spoken(**how: Any) -> Any:
    density = lk.HMMDensity(lk.GaussianDensity("diagonal"), random_state=0, max_iter=3, **how)
    return lk.BayesClassifier(density).fit(words(), ["yes", "no", "no", "yes", "no"]), words()


def chained(estimator: Any, labels: Any = None) -> tuple[Any, Any]:
    return estimator.fit(words(), labels), words()


def driven() -> tuple[Any, Any]:
    x = driven_words()
    return lk.HMMDensity(lk.GaussianDensity("diagonal"), 2, random_state=0, max_iter=3).fit(x), x


def regressor(estimator: Any, several: bool = False) -> Any:
    y = 1.0 + table()[:, 0] - np.sin(np.arange(40.0))
    return estimator.fit(table(), np.column_stack([y, -(y**2)]) if several else y), table()


ESTIMATORS |= {
    "least squares": lambda: regressor(lk.LinearRegression()),
    "polynomial": lambda: regressor(lk.LinearRegression(lk.basis.Polynomial(2)), True),
    "ridge": lambda: regressor(lk.Ridge("evidence")),
    "bayesian regression": lambda: regressor(lk.BayesianLinearRegression(), True),
    "relevance": lambda: regressor(lk.BayesianLinearRegression(prior="ard")),
    "neighboring targets": lambda: regressor(lk.neighbors.KNeighborsRegressor("leave-one-out", "scaled")),
    "table of numbers": lambda: (lk.automl.TableRegressor().fit(TABLE, np.arange(float(len(LABELS)))), TABLE),
    "regression with a prior": lambda: regressor(
        lk.BayesianLinearRegression(prior=lk.priors.NormalGamma(np.zeros(3), 1.0, 1.0, 1.0))
    ),
}

SEQUENCE_ESTIMATORS: dict[str, Callable[[], Any]] = {  # each with sequences that it can score
    "hmm": lambda: chains(n_states=2),
    "hmm left to right": lambda: chains(lk.GaussianDensity("diagonal"), n_states=3, topology="left-to-right"),
    "hmm of mixtures": lambda: chains(lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2, tie="all"), n_states=2),
    "hmm of letters": lambda: chains(lk.CategoricalDensity(), LETTERS, n_states=2, prior=1.5),
    "hmm with ties": lambda: chains(n_states=3, tie=[0, 1, 0], topology=lk.hmm.Topology.of("ergodic", 3)),
    "hmm of order 2": lambda: chains(n_states=2, order=2),
    "hmm with durations": lambda: chains(n_states=2, durations=3, prior=None),
    "hmm on moves": lambda: chains(lk.GaussianDensity("spherical"), n_states=2, emit="transitions"),
    "hmm from a start": lambda: chains(lk.GaussianDensity("spherical"), n_states=2, init=spherical_start(), hard=True),
    "hmm with covariates": driven,
    "mixture of hmms": lambda: chained(
        lk.MixtureDensity(lk.HMMDensity(n_states=2, final=True), 2, random_state=0, max_iter=3)
    ),
    "sequence density": lambda: chained(
        lk.automl.SequenceDensity(lk.HMMDensity(n_states=2, random_state=0, max_iter=3))
    ),
    "sequence classifier": lambda: chained(
        lk.automl.SequenceClassifier(lk.BayesClassifier(lk.HMMDensity(n_states=1))), ["yes", "no", "no", "yes", "no"]
    ),
    "dtw": lambda: chained(lk.DTWClassifier(band=0.5), ["yes", "no", "no", "yes", "no"]),
    "classifier of hmms": spoken,
    "classifier of hmms in order": lambda: spoken(n_states=2, topology="left-to-right"),
}

TREND = [[1.0, 1.0], [0.0, 1.0]]


def known_trend() -> Any:
    return lk.LinearGaussian(
        transition=TREND,
        process_covariance=0.1 * np.eye(2),
        observation=[[1.0, 0.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0, 1.0],
        initial_covariance=np.eye(2),
    )


def unknown_trend() -> Any:
    return lk.LinearGaussian(
        transition=TREND, process_covariance=FLAT, observation=[[1.0, 0.0]], observation_covariance=[[1.0]]
    )


def driven_states() -> Any:
    """Matrices that change with time, and inputs."""
    F, G = np.arange(12.0).reshape(3, 2, 2), [[1.0, 0.5]]
    return lk.LinearGaussian(
        transition=[TREND] * 3,
        process_covariance=np.eye(2),
        observation=[[1.0, 0.0]],
        observation_covariance=[[[1.0]]] * 3,
        initial_mean=[0.0, 0.0],
        initial_covariance=np.eye(2),
        control=F,
        feedthrough=G,
    )


def learner(**form: Any) -> Any:
    return ConstrainedLinearGaussian.of(known_trend(), ["process_covariance", "transition"], form)


STATES: dict[str, Callable[[], Any]] = {
    "linear-gaussian": known_trend,
    "linear-gaussian, unknown start": unknown_trend,
    "linear-gaussian with inputs": driven_states,
    "state belief": lambda: known_trend().belief_after([1.0, 2.0]),
    "state belief, start unknown": lambda: unknown_trend().belief_after([1.0]),
    "loose": lambda: unknown_trend().initial_belief().diffuse_part,
    "continuous": lambda: lk.LinearSDE.constant_velocity(dim=2, spectral_density=0.1),
    "timed belief": lambda: lk.step(lk.LinearSDE.ornstein_uhlenbeck(1.0, 0.5), None, [1.0], 2.5)[0],
    "particle belief": lambda: lk.statespace.ParticleBelief(
        [[0.0], [1.0]], np.log([0.25, 0.75]), 3, 7, True, None, np.array([0, 0])
    ),
    "state forecast": lambda: known_trend().forecast([1.0, 2.0], 3),
    "linear stats": lambda: known_trend().collect([[1.0, 2.0, 4.0], [0.0]]),
    "linear stats with inputs": lambda: driven_states().collect([[1.0, 2.0, 4.0]], inputs=[np.ones((3, 2))]),
    "linear prior": lambda: known_trend().weak_prior(STATES["linear stats"]()),
    "structure": lambda: learner().structure,
    "linear learner": learner,
    "linear learner with forms": lambda: learner(process_covariance="diagonal", transition=np.array([[0, 1], [0, 1]])),
    "linear learner with masks": lambda: learner(process_covariance=np.array([1, 1]), transition=np.eye(2, dtype=bool)),
}


def jumps() -> Any:
    calm, wild = (
        lk.LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[1.0]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.01, 25.0)
    )
    return lk.SwitchingLinearGaussian([calm, wild], [[0.9, 0.1], [0.1, 0.9]])


def jump_stats() -> Any:
    return jumps().collect([[1.0, 2.0, 14.0], [0.0]])


def regimes_after(model: Any) -> Any:
    return list(lk.follow(model, [0.0, 0.3, 12.0]))[-1][0]


REGIMES: dict[str, Callable[[], Any]] = {
    "switching": jumps,
    "interacting models": lambda: lk.statespace.IMMFilter(jumps()),
    "all pairs": lambda: lk.statespace.IMMFilter(jumps(), "gpb2"),
    "rao-blackwell": lambda: lk.statespace.RaoBlackwellizedFilter(jumps(), np.int64(7), random_state=3),
    "rao-blackwell by draws": lambda: lk.statespace.RaoBlackwellizedFilter(
        jumps(), 7, resample="residual", ess_threshold=1, proposal="prior"
    ),
    "switching belief": lambda: regimes_after(jumps()),
    "switching belief of paths": lambda: regimes_after(
        lk.statespace.RaoBlackwellizedFilter(jumps(), 3, resample="systematic")
    ),
    "switching belief after an outlier": lambda: list(lk.follow(jumps(), [0.0, 1e12]))[-1][0],
    "switching stats": jump_stats,
    "switching learner": lambda: lk.statespace.ConstrainedSwitchingLinearGaussian.of(
        jumps(), ["process_covariance"], chain=()
    ),
    "switching prior": lambda: jumps().weak_prior(jump_stats()),
}


def radar() -> Any:
    return DataAssociation(known_trend(), 0.1, initial_existence=0.5)


def watch() -> Any:
    return lk.FaultMonitor().fit(np.random.default_rng(2).normal(size=(400, 2))).model_


TRACKS: dict[str, Callable[[], Any]] = {
    "association": radar,
    "track belief": lambda: lk.step(radar(), None, [[0.2], [3.0]])[0],
    "track belief of nothing": lambda: DataAssociation(known_trend(), 0.1, initial_existence=0.0).initial_belief(),
    "sensor dynamics": lambda: SensorDynamics([1.0, 2.0], [[0.8, 0.1], [0.0, 0.5]], SPREAD, 2 * np.eye(2)),
    "fault watch": watch,
    "fault belief": lambda: lk.step(watch(), None, [0.3, np.nan])[0],
}

BASES: dict[str, Callable[[], Any]] = {
    "columns as they are": lambda: lk.basis.Identity(constant=False),
    "polynomial": lambda: lk.basis.Polynomial(3, scaled=True).fitted(table()),
    "polynomial to be scaled": lambda: lk.basis.Polynomial(3, scaled=True),
    "orthogonal polynomial": lambda: lk.basis.OrthogonalPolynomial(3, "hermite").fitted(table()),
    "gaussian basis": lambda: lk.basis.GaussianBasis(4).fitted(table()),
    "gaussian basis to be placed": lambda: lk.basis.GaussianBasis(4, 2.0),
    "sigmoid basis": lambda: lk.basis.SigmoidBasis([0.0, 1.0], 0.5),
    "fourier series": lambda: lk.basis.Fourier(2, 24.0),
    "b-splines": lambda: lk.basis.BSpline(4).fitted(table()),
    "b-splines to be placed": lambda: lk.basis.BSpline(4, 2, "uniform", "error", constant=False),
    "piecewise linear": lambda: lk.basis.PiecewiseLinear([0.0, 1.0]),
    "one-hot": lambda: lk.basis.OneHot(["rot", "blau"]),
    "one-hot of numbers": lambda: lk.basis.OneHot([[1, 2], [0.5, 1.5]], "zeros", constant=False),
    "basis per column": lambda: lk.basis.PerColumn({(0, 1): lk.basis.Identity(), "age": lk.basis.OneHot()}),
    "interactions": lambda: lk.basis.Interactions([lk.basis.Identity(), lk.basis.BSpline(3).fitted(table())]),
}


def regression(members: int | None = None) -> Any:
    shape = (1, 3) if members is None else (members, 1, 3)
    return lk.linear_model.GaussianRegression(np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape), 0.5)


def regression_stats(members: int | None = None) -> Any:
    return regression(members).collect(table()[:, 0], table())


def residuals() -> Any:
    return ResidualDistribution.of(np.linspace(-1.0, 1.0, 21))


def switching_regression() -> Any:
    y = np.repeat([0.0, 3.0, 0.0], 10) + 0.1 * np.sin(np.arange(30.0))
    return lk.linear_model.SwitchingRegression(2, random_state=0, max_iter=3, tol=1e9).fit(y)


def gram() -> Any:
    return gram_of_rows(np.column_stack([np.ones(40), table()]), None)


REGRESSIONS: dict[str, Callable[[], Any]] = {
    "columns themselves": lambda: lk.basis.Identity(constant=False),
    "powers": lambda: lk.basis.Polynomial(3),
    "regression": regression,
    "regressions": lambda: regression(2),
    "polynomial regression": lambda: lk.linear_model.GaussianRegression([1.0, 2.0], 0.5, lk.basis.Polynomial(1)),
    "conditional": lambda: lk.linear_model.Conditional(regression(2)),
    "mixture of regressions": lambda: lk.Mixture([0.4, 0.6], lk.linear_model.Conditional(regression(2))),
    "regression statistics": lambda: regression_stats(2),
    "regression statistics, double-double": lambda: RegressionStats.of(gram(), 1),
    "gram": gram,
    "coefficients": lambda: lk.priors.CoefficientsGivenNoise(np.zeros(3), 2.0, 0.5).update(regression_stats()),
    "coefficients and noise": lambda: regression(2).weak_prior(regression_stats(2)).update(regression_stats(2)),
    "regression predictive": lambda: lk.priors.CoefficientsGivenNoise(np.zeros(3), 2.0, 0.5).predictive(),
    "residuals": residuals,
    "residual predictive": lambda: ResidualPredictive([10.0, 20.0], [1.0, 2.0], residuals()),
    "switching regression": lambda: switching_regression().regimes_,
    "switching regression statistics": lambda: switching_regression().stats_,
    "switching regression prior": lambda: switching_regression().prior_,
}

VALUES = {**DISTRIBUTIONS, **PRIORS, **STATS, **COSTS, **CHAINS, **STATES, **REGIMES, **TRACKS, **BASES, **REGRESSIONS}


def available(table: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Those examples whose classes are there already."""
    made = {}
    for name, make in table.items():
        try:
            made[name] = make()
        except ImportError:
            continue
    return made


def same(a: Any, b: Any) -> bool:
    """The same types and the same bits, all the way down."""
    if isinstance(a, np.generic) and isinstance(b, int | float):  # a scalar of scikit-learn's, as files hold it
        a = a.item()
    a, b = (np.asarray(x) if isinstance(x, np.generic) else x for x in (a, b))
    if kind(a) is not kind(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and (
            a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
        )  # fmt: skip
    if isinstance(a, Value):
        return same(a.field_values(), b.field_values())
    if hasattr(b, "saved_attributes"):
        return same(state(a, b.saved_attributes), state(b, b.saved_attributes))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (a != a and b != b)


def kind(x: Any) -> type:
    """The class, or that of scikit-learn which a class of files stands for."""
    return getattr(type(x), "stands_for", type(x))


def state(estimator: Any, saved: tuple[str, ...]) -> dict[str, Any]:
    learned = {name: vars(estimator)[name] for name in saved if name in vars(estimator)}
    return {**estimator.get_params(deep=False), **learned}


def rows_of(distribution: Any, n: int = 20) -> Any:
    """Rows that the distribution could have made, one of its members' if it is a stack."""
    one = distribution if distribution.members is None else distribution.member(0)
    return one.sample(n, np.random.default_rng(1))

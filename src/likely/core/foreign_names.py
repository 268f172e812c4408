"""Names under which other libraries have what is here, for the error that a wrong name ends in."""

from __future__ import annotations

OURS = {
    # scikit-learn
    "GaussianMixture": "MixtureDensity(GaussianDensity(), n_components=…)",
    "BayesianGaussianMixture": "MixtureDensity(GaussianDensity(), n_components=…, prior=…)",
    "LinearDiscriminantAnalysis": 'BayesClassifier(GaussianDensity("pooled")), or FisherDiscriminant() to project',
    "LDA": 'BayesClassifier(GaussianDensity("pooled")), or FisherDiscriminant() to project',
    "QuadraticDiscriminantAnalysis": "BayesClassifier(GaussianDensity())",
    "QDA": "BayesClassifier(GaussianDensity())",
    "GaussianNB": "NaiveBayes()",
    "MultinomialNB": "BayesClassifier(MultinomialDensity())",
    "BernoulliNB": "BayesClassifier(BernoulliDensity())",
    "CategoricalNB": 'NaiveBayes("categorical")',
    "NearestCentroid": "NearestCentroidClassifier()",
    "DummyClassifier": "PriorClassifier()",
    "CalibratedClassifierCV": "CalibratedClassifier(…)",
    "ProbabilisticPCA": "PPCA()",
    # hmmlearn, pykalman, filterpy, statsmodels
    "GaussianHMM": "HMMDensity(GaussianDensity(), states=…)",
    "GMMHMM": "HMMDensity(MixtureDensity(), states=…)",
    "CategoricalHMM": "HMMDensity(CategoricalDensity(), states=…)",
    "MultinomialHMM": "HMMDensity(MultinomialDensity(), states=…)",
    "PoissonHMM": "HMMDensity(PoissonDensity(), states=…)",
    "KalmanFilter": "LinearGaussian(…) with .filter and .smooth, or LinearGaussianDensity() to learn one",
    "ExtendedKalmanFilter": "ExtendedFilter(StateSpace(…))",
    "UnscentedKalmanFilter": "UnscentedFilter(StateSpace(…))",
    "IMMEstimator": "IMMFilter(…)",
    "UnobservedComponents": "LinearGaussian.local_level(…) and similar",
}


def hint(name: str) -> str:
    """What a name of another library is called here, as the end of a sentence; empty where nothing is known.

    >>> hint("QDA")
    '; here it is BayesClassifier(GaussianDensity())'
    >>> hint("Nothing")
    ''
    """
    return f"; here it is {OURS[name]}" if name in OURS else ""
